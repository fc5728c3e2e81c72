/* quantize.c - floats as a quantized network would see them: FakeQuant, whose gradient passes where nothing is cut off.
 */
#include "ops/rules.h"

/* inputs [...,d], min and max scalars, or [d] one for each channel; of a gradient, the gradients first. */
static tw_status quantize_shape(twi_inference *c, bool by_channel, bool is_grad)
{
    tw_shape shape = c->inputs[0], channels = TW_SCALAR;
    int64_t bits = twi_attr_int(c->attrs, "num_bits", 8);
    tw_status status = is_grad ? twi_merge_shapes(shape, c->inputs[1], &shape, c->error) : TW_OK;
    if (status == TW_OK && (bits < 2 || bits > 16))
        status = TWI_REFUSE(c, "num_bits is between 2 and 16, inclusive, not %lld", (long long)bits);
    if (status != TW_OK)
        return status;
    if (by_channel) {
        if (shape.rank == 0)
            return TWI_REFUSE(c, "input 0 is a scalar and has no channels");
        channels = TW_SHAPE(shape.rank < 0 ? -1 : shape.dims[shape.rank - 1]);
    }
    for (int i = is_grad ? 2 : 1; i < c->num_inputs && status == TW_OK; i++)
        status = twi_merge_shapes(channels, c->inputs[i], &channels, c->error);
    c->outputs[0] = shape;
    for (int i = 1; i < c->num_outputs; i++)
        c->outputs[i] = channels;
    return status;
}

static tw_status all_shape(twi_inference *c)
{
    return quantize_shape(c, false, false);
}

static tw_status channels_shape(twi_inference *c)
{
    return quantize_shape(c, true, false);
}

static tw_status all_grad_shape(twi_inference *c)
{
    return quantize_shape(c, false, true);
}

static tw_status channels_grad_shape(twi_inference *c)
{
    return quantize_shape(c, true, true);
}

/* The op's own gradient gives one for each input. */
static void gradients(twi_gradient *g, const char *op)
{
    tw_output inputs[4] = {DY(0)};
    int count = tw_node_num_inputs(g->node);
    for (int i = 0; i < count; i++)
        inputs[i + 1] = X(i);
    tw_output first = twi_build_like(g->node, op, inputs, count + 1);
    for (int i = 0; i < count && first.node; i++)
        g->dx[i] = tw_node_output(first.node, i);
}

static void args_gradient(twi_gradient *g)
{
    gradients(g, "FakeQuantWithMinMaxArgsGradient");
}

static void all_gradient(twi_gradient *g)
{
    gradients(g, "FakeQuantWithMinMaxVarsGradient");
}

static void channels_gradient(twi_gradient *g)
{
    gradients(g, "FakeQuantWithMinMaxVarsPerChannelGradient");
}

/* ---- through integers and back: all, or each slice along an axis, in one range, which is given, or from the least to
 * the largest element ---- */

/* The axis of the input; -1: there are no slices. */
static tw_status find_axis(twi_inference *c, int input, int64_t *axis)
{
    *axis = twi_attr_int(c->attrs, "axis", -1);
    if (*axis < -1)
        return TWI_REFUSE(c, "axis should be at least -1, got %lld", (long long)*axis);
    if (*axis >= TW_MAX_RANK)
        return TWI_REFUSE(c, "axis is %lld, there are at most %d", (long long)*axis, TW_MAX_RANK);
    return *axis < 0 ? TW_OK : twi_expect_rank_at_least(c, input, (int)*axis + 1);
}

static tw_status round_trip_shape(twi_inference *c)
{
    int64_t axis, slices = -1;
    tw_status status = find_axis(c, 0, &axis);
    if (status == TW_OK && axis >= 0 && c->inputs[0].rank >= 0)
        slices = c->inputs[0].dims[axis];
    for (int i = 1; i < c->num_inputs && status == TW_OK; i++) {
        bool is_range = axis >= 0 && i < 3 && twi_attr_bool(c->attrs, "range_given", false);
        status = is_range ? twi_expect_rank(c, i, 1) : axis < 0 || i == 3 ? twi_expect_rank(c, i, 0) : TW_OK;
        if (status == TW_OK && is_range && c->inputs[i].rank == 1 &&
            !twi_merge_dims(slices, c->inputs[i].dims[0], &slices))
            return TWI_REFUSE(c, "input %d has %lld numbers for %lld slices", i, (long long)c->inputs[i].dims[0],
                              (long long)slices);
    }
    c->outputs[0] = c->inputs[0];
    return status;
}

/* The gradient, what was rounded and the range: gradients of these three. */
static tw_status round_trip_grad_shape(twi_inference *c)
{
    int64_t axis;
    tw_shape range = TW_SCALAR;
    tw_status status = find_axis(c, 1, &axis);
    if (status == TW_OK)
        status = twi_merge_shapes(c->inputs[0], c->inputs[1], &c->outputs[0], c->error);
    if (status == TW_OK && axis >= 0)
        range = TW_SHAPE(c->outputs[0].rank > axis ? c->outputs[0].dims[axis] : -1);
    for (int i = 2; i < 4 && status == TW_OK; i++)
        status = twi_merge_shapes(range, c->inputs[i], &range, c->error);
    c->outputs[1] = c->outputs[2] = range;
    return status;
}

static void round_trip_gradient(twi_gradient *g)
{
    tw_attr axis = tw_attr_int("axis", twi_attr_int(&g->node->attrs, "axis", -1));
    tw_output first = twi_build(G, "QuantizeAndDequantizeV4Grad", TWI_INPUTS(DY(0), X(0), X(1), X(2)), TWI_ATTRS(axis));
    for (int i = 0; i < 3 && first.node; i++)
        g->dx[i] = tw_node_output(first.node, i);
}

/* As if nothing had been rounded. */
static void straight_through(twi_gradient *g)
{
    g->dx[0] = DY(0);
}

#define FLOATS "{bfloat16,half,float,double}"
#define BITS "num_bits:int=8; narrow_range:bool=false"
#define RANGE "min:float=-6; max:float=6; " BITS
#define BACKPROPS "backprops_wrt_input:float, backprop_wrt_min:float, backprop_wrt_max:float"

const twi_op twi_quantize_ops[] = {
    {"FakeQuantWithMinMaxArgs", "inputs:float", "outputs:float", RANGE, all_shape, args_gradient},
    {"FakeQuantWithMinMaxArgsGradient", "gradients:float, inputs:float", "backprops:float", RANGE, all_grad_shape,
     NULL},
    {"FakeQuantWithMinMaxVars", "inputs:float, min:float, max:float", "outputs:float", BITS, all_shape, all_gradient},
    {"FakeQuantWithMinMaxVarsGradient", "gradients:float, inputs:float, min:float, max:float", BACKPROPS, BITS,
     all_grad_shape, NULL},
    {"FakeQuantWithMinMaxVarsPerChannel", "inputs:float, min:float, max:float", "outputs:float", BITS, channels_shape,
     channels_gradient},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", "gradients:float, inputs:float, min:float, max:float", BACKPROPS,
     BITS, channels_grad_shape, NULL},
    {"QuantizeAndDequantize", "input:T", "output:T",
     "signed_input:bool=true; num_bits:int=8; range_given:bool=false; input_min:float=0; input_max:float=0; "
     "T:" FLOATS,
     round_trip_shape, straight_through},
    {"QuantizeAndDequantizeV2", "input:T, input_min:T, input_max:T", "output:T",
     "signed_input:bool=true; num_bits:int=8; range_given:bool=false; T:" FLOATS
     "; round_mode:{HALF_TO_EVEN,HALF_UP}=HALF_TO_EVEN; narrow_range:bool=false; axis:int=-1",
     round_trip_shape, straight_through},
    {"QuantizeAndDequantizeV3", "input:T, input_min:T, input_max:T, num_bits:int32", "output:T",
     "signed_input:bool=true; range_given:bool=true; T:" FLOATS "; narrow_range:bool=false; axis:int=-1",
     round_trip_shape, straight_through},
    {"QuantizeAndDequantizeV4", "input:T, input_min:T, input_max:T", "output:T",
     "signed_input:bool=true; num_bits:int=8; range_given:bool=false; T:" FLOATS
     "; round_mode:{HALF_TO_EVEN,HALF_UP}=HALF_TO_EVEN; narrow_range:bool=false; axis:int=-1",
     round_trip_shape, round_trip_gradient},
    {"QuantizeAndDequantizeV4Grad", "gradients:T, input:T, input_min:T, input_max:T",
     "input_backprop:T, input_min_backprop:T, input_max_backprop:T", "T:" FLOATS "; axis:int=-1", round_trip_grad_shape,
     NULL},
    {0},
};
