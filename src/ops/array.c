/* array.c - ops that shape arrays, pass them on, or make them of few numbers. Rows, shape rules, builders.
 * Never here: gradient rules (array_gradients.c), kernels (src/device). */
#include "ops/gradients.h"
#include "ops/rules.h"
#include "ops/types.h"

#include <math.h>

/* ---- shape rules ------------------------------------------------------------------------------------------------- */

tw_status twi_check_rank(twi_inference *c, int rank)
{
    return rank <= TW_MAX_RANK
               ? TW_OK
               : twi_fail(c->error, TW_UNIMPLEMENTED, "the result has %d axes, expected at most %d", rank, TW_MAX_RANK);
}

tw_status twi_normal_axis(twi_inference *c, int64_t *axis, int limit)
{
    if (*axis < -limit || *axis >= limit)
        return TWI_REFUSE(c, "axis %lld, expected -%d to %d", (long long)*axis, limit, limit - 1);
    *axis += *axis < 0 ? limit : 0;
    return TW_OK;
}

tw_status twi_spelled_shape(twi_inference *c, int i, bool open, tw_shape *shape)
{
    tw_shape of_input = c->inputs[i];
    tw_shape told = twi_ask_shape(c, i);
    const tw_tensor *value = c->input_values[i];
    *shape = TW_UNKNOWN_SHAPE;
    if (of_input.rank < 0)
        return TW_OK;
    if (of_input.rank != 1)
        return twi_expect_rank(c, i, 1);
    if (of_input.dims[0] < 0)
        return TW_OK;
    if (of_input.dims[0] > TW_MAX_RANK)
        return twi_check_rank(c, of_input.dims[0] > 1000 ? 1000 : (int)of_input.dims[0]);
    *shape = value || told.rank >= 0 ? told : twi_unknown_of_rank((int)of_input.dims[0]);
    for (int k = 0; value && k < shape->rank; k++)
        if (shape->dims[k] < (open ? -1 : 0))
            return TWI_REFUSE(c, "dimension %d of the shape is %lld", k, (long long)shape->dims[k]);
    return TW_OK;
}

static tw_status each_same_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = c->inputs[i];
    return TW_OK;
}

static tw_status shape_of_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        if (c->input_types[i] == TW_VARIANT) /* an array of lists: who knows that it is one list does not ask */
            c->outputs[i] = TW_SHAPE(1);
        else
            c->outputs[i] = c->inputs[i].rank < 0 ? twi_unknown_of_rank(1) : TW_SHAPE(c->inputs[i].rank);
    return TW_OK;
}

/* What is left for the open dimension; -1: it does not come out even. Where dimensions of 0 are given, those of 0 are
 * left out of both products, so that a batch without rows is flattened by [0,-1], too. */
static int64_t dimension_left(tw_shape in, tw_shape out, int open)
{
    tw_shape rest = out;
    bool gives_none = tw_shape_elements(in) == 0, takes_none = false;
    for (int i = 0; i < out.rank; i++) {
        takes_none = takes_none || out.dims[i] == 0;
        rest.dims[i] = i == open || out.dims[i] == 0 ? 1 : out.dims[i];
    }
    for (int i = 0; i < in.rank && takes_none; i++)
        in.dims[i] = in.dims[i] ? in.dims[i] : 1;
    int64_t elements = tw_shape_elements(in), given = tw_shape_elements(rest);
    bool is_even = given > 0 && (takes_none ? gives_none : elements % given == 0);
    return is_even ? elements / given : -1;
}

tw_status twi_reshape_shape(twi_inference *c)
{
    tw_shape out;
    tw_status status = twi_spelled_shape(c, 1, true, &out);
    int64_t elements = tw_shape_elements(c->inputs[0]);
    char from[128], to[128];
    int open = -1;
    c->outputs[0] = out;
    for (int i = 0; i < out.rank && c->input_values[1]; i++)
        if (out.dims[i] < 0) {
            if (open >= 0)
                return TWI_REFUSE(c, "shape %s has more than one dimension left open",
                                  tw_shape_text(out, to, sizeof to));
            open = i;
        }
    if (status != TW_OK || elements < 0)
        return status;
    if (open >= 0)
        c->outputs[0].dims[open] = dimension_left(c->inputs[0], out, open);
    int64_t given = tw_shape_elements(c->outputs[0]);
    if (given != elements && (given >= 0 || c->input_values[1]))
        return TWI_REFUSE(c, "cannot reshape %s (%lld elements) to %s", tw_shape_text(c->inputs[0], from, sizeof from),
                          (long long)elements, tw_shape_text(out, to, sizeof to));
    return TW_OK;
}

static tw_status expand_dims_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = in.rank + 1};
    int64_t axis, count = tw_shape_elements(c->inputs[1]);
    tw_status status = TW_OK;
    if (count >= 0 && count != 1)
        return TWI_REFUSE(c, "the axis is %lld numbers, expected one", (long long)count);
    if (in.rank < 0)
        return TW_OK;
    TWI_TRY(twi_check_rank(c, out.rank));
    if (!twi_number_of(c, 1, &axis)) {
        c->outputs[0] = twi_unknown_of_rank(out.rank);
        return TW_OK;
    }
    TWI_TRY(twi_normal_axis(c, &axis, out.rank));
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = i == axis ? 1 : in.dims[i < axis ? i : i - 1];
    c->outputs[0] = out;
done:
    return status;
}

static tw_status invert_permutation_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    return twi_expect_rank(c, 0, 1);
}

static tw_status squeeze_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = 0};
    int count;
    const int64_t *axes = twi_attr_ints(c->attrs, "squeeze_dims", &count);
    bool goes[TW_MAX_RANK] = {false};
    if (in.rank < 0 || (count == 0 && !tw_shape_is_known(in)))
        return TW_OK;
    for (int i = 0; i < in.rank; i++)
        goes[i] = count == 0 && in.dims[i] == 1;
    for (int k = 0; k < count; k++) {
        int64_t axis = axes[k];
        tw_status status = twi_normal_axis(c, &axis, in.rank);
        if (status != TW_OK)
            return status;
        if (in.dims[axis] > 1 || in.dims[axis] == 0)
            return TWI_REFUSE(c, "cannot squeeze dimension %lld: expected size 1, found %lld", (long long)axis,
                              (long long)in.dims[axis]);
        goes[axis] = true;
    }
    for (int i = 0; i < in.rank; i++)
        if (!goes[i])
            out.dims[out.rank++] = in.dims[i];
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status fill_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 0);
    return status == TW_OK ? twi_spelled_shape(c, 0, false, &c->outputs[0]) : status;
}

static tw_status broadcast_to_shape(twi_inference *c)
{
    tw_shape out, both;
    tw_status status = twi_spelled_shape(c, 1, false, &out);
    if (status == TW_OK)
        status = twi_broadcast_shapes(c->inputs[0], out, &both, c->error);
    char from[128], to[128];
    if (status == TW_OK && tw_shape_is_known(both) && tw_shape_is_known(out) && !tw_shape_equal(both, out))
        return TWI_REFUSE(c, "cannot broadcast %s to %s", tw_shape_text(c->inputs[0], from, sizeof from),
                          tw_shape_text(out, to, sizeof to));
    c->outputs[0] = out;
    return status;
}

static double real_at(const tw_tensor *value)
{
    return value->dtype == TW_INT64 ? (double)*(const int64_t *)value->data : tw_tensor_value(value, 0);
}

/* Whether input i is a rank that is known while the graph is built. */
static bool tells_rank(twi_inference *c, int i, int64_t *rank)
{
    tw_output teller = c->is_building ? c->sources[i] : (tw_output){0};
    if (!teller.node || strcmp(teller.node->op->name, "Rank") != 0)
        return false;
    *rank = tw_output_shape(teller.node->inputs[0]).rank;
    return *rank >= 0;
}

/* From 0 in steps of 1 there are as many as the limit says. */
static bool counts_axes(twi_inference *c, int64_t *count)
{
    const tw_tensor *start = c->input_values[0], *delta = c->input_values[2];
    return c->input_types[0] == TW_INT32 && start && delta && twi_tensor_int(start, 0) == 0 &&
           twi_tensor_int(delta, 0) == 1 && tells_rank(c, 1, count);
}

static tw_status range_shape(twi_inference *c)
{
    const tw_tensor *values[3];
    int64_t axes;
    bool known = true;
    c->outputs[0] = twi_unknown_of_rank(1);
    for (int i = 0; i < 3; i++) {
        tw_status status = twi_expect_rank(c, i, 0);
        if (status != TW_OK)
            return status;
        values[i] = twi_ask_value(c, i);
        known = known && values[i];
    }
    if (!known && counts_axes(c, &axes))
        c->outputs[0] = TW_SHAPE(axes);
    if (!known)
        return TW_OK;
    if (c->input_types[0] == TW_INT32 || c->input_types[0] == TW_INT64) {
        int64_t start = twi_tensor_int(values[0], 0), limit = twi_tensor_int(values[1], 0);
        int64_t delta = twi_tensor_int(values[2], 0);
        uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
        uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
        if (delta == 0 || (delta > 0 ? start > limit : start < limit))
            return TWI_REFUSE(c, "a range from %lld to %lld in steps of %lld", (long long)start, (long long)limit,
                              (long long)delta);
        uint64_t count = distance / step + (distance % step != 0);
        if (count > INT64_MAX || tw_shape_elements(TW_SHAPE((int64_t)count)) < 0)
            return TWI_REFUSE(c, "a range of %llu elements", (unsigned long long)count);
        c->outputs[0] = TW_SHAPE((int64_t)count);
        return TW_OK;
    }
    double start = real_at(values[0]), limit = real_at(values[1]), delta = real_at(values[2]);
    double count = ceil(fabs((limit - start) / delta));
    if (delta == 0 || (delta > 0 ? start > limit : start < limit) || !(count < 0x1p59))
        return TWI_REFUSE(c, "a range from %g to %g in steps of %g", start, limit, delta);
    c->outputs[0] = TW_SHAPE((int64_t)count);
    return TW_OK;
}

static tw_status lin_space_shape(twi_inference *c)
{
    int64_t num = -1;
    for (int i = 0; i < 3; i++) {
        tw_status status = twi_expect_rank(c, i, 0);
        if (status != TW_OK)
            return status;
    }
    if (twi_number_of(c, 2, &num) && num <= 0)
        return TWI_REFUSE(c, "%lld points, expected at least 1", (long long)num);
    c->outputs[0] = TW_SHAPE(num);
    return TW_OK;
}

static tw_status one_hot_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = in.rank + 1};
    int64_t axis = twi_attr_int(c->attrs, "axis", -1), depth = -1;
    tw_status status = TW_OK;
    for (int i = 1; i <= 3; i++)
        TWI_TRY(twi_expect_rank(c, i, 0));
    if (twi_number_of(c, 1, &depth) && depth < 0)
        return TWI_REFUSE(c, "depth %lld, expected at least 0", (long long)depth);
    if (in.rank < 0)
        return TW_OK;
    TWI_TRY(twi_check_rank(c, out.rank));
    TWI_TRY(twi_normal_axis(c, &axis, out.rank));
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = i == axis ? depth : in.dims[i < axis ? i : i - 1];
    c->outputs[0] = out;
done:
    return status;
}

/* How many axes either side was repeated along. An axis where both are 1 counts for both, as in TensorFlow. */
static tw_status gradient_args_shape(twi_inference *c)
{
    tw_shape s[2] = {twi_shape_of_value(twi_ask_value(c, 0)), twi_shape_of_value(twi_ask_value(c, 1))}, both;
    c->outputs[0] = c->outputs[1] = twi_unknown_of_rank(1);
    if (s[0].rank < 0 || s[1].rank < 0)
        return TW_OK;
    tw_status status = twi_broadcast_shapes(s[0], s[1], &both, c->error);
    if (status != TW_OK)
        return status;
    for (int k = 0; k < 2; k++) {
        int64_t count = 0;
        for (int i = 0; i < both.rank; i++) {
            int mine = i - (both.rank - s[k].rank), other = i - (both.rank - s[1 - k].rank);
            int64_t dim = mine < 0 ? 1 : s[k].dims[mine], other_dim = other < 0 ? 1 : s[1 - k].dims[other];
            count += dim == 1 && (other_dim != 1 || !tw_shape_equal(s[0], s[1]));
        }
        c->outputs[k] = TW_SHAPE(count);
    }
    return TW_OK;
}

/* The longer one's rank. */
static tw_status broadcast_args_shape(twi_inference *c)
{
    tw_shape a = c->inputs[0], b = c->inputs[1];
    tw_status status = twi_expect_rank(c, 0, 1);
    c->outputs[0] = twi_unknown_of_rank(1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK && a.rank == 1 && b.rank == 1 && a.dims[0] >= 0 && b.dims[0] >= 0)
        c->outputs[0].dims[0] = a.dims[0] > b.dims[0] ? a.dims[0] : b.dims[0];
    return status;
}

/* What is known of the input and of the attribute; in a plan the input's shape is whole. */
static tw_status ensured_shape(twi_inference *c)
{
    char has[128], wants[128];
    tw_shape wanted = twi_attr_find(c->attrs, "shape")->shape;
    if (twi_merge_shapes(c->inputs[0], wanted, &c->outputs[0], NULL) == TW_OK)
        return TW_OK;
    return TWI_REFUSE(c, "Shape of tensor %s is not compatible with expected shape %s",
                      tw_shape_text(c->inputs[0], has, sizeof has), tw_shape_text(wanted, wants, sizeof wants));
}

/* The same bytes as another type: a last axis more or less where the sizes of elements differ. */
static tw_status bitcast_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    int64_t from = (int64_t)tw_dtype_size(c->input_types[0]), to = (int64_t)tw_dtype_size(c->output_types[0]);
    if (shape.rank < 0)
        return TW_OK;
    if (from > to) {
        if (shape.rank == TW_MAX_RANK)
            return twi_fail(c->error, TW_UNIMPLEMENTED, "input has the highest rank there is, %d", TW_MAX_RANK);
        shape.dims[shape.rank++] = from / to;
    } else if (from < to) {
        int64_t last = shape.rank ? shape.dims[shape.rank - 1] : 1;
        if (shape.rank == 0 || (last >= 0 && last != to / from))
            return TWI_REFUSE(c, "the last axis must have %lld elements of %s to make one of %s",
                              (long long)(to / from), tw_dtype_name(c->input_types[0]),
                              tw_dtype_name(c->output_types[0]));
        shape.rank--;
    }
    c->outputs[0] = shape;
    return TW_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define CAST_BITS "{" TWI_NUMBERS "," TWI_QUANTIZED "}"
#define INDEX "{int32,int64}"
#define FORMATS "src_format:string=NHWC; dst_format:string=NCHW"

const twi_op twi_array_ops[] = {
    {"Identity", "input:T", "output:T", "T:type", twi_shape_same, twi_gradient_identity, TWI_PASSES},
    {"IdentityN", "input:T", "output:T", "T:types>=1", each_same_shape, twi_gradient_identity,
     TWI_PASSES | TWI_UNBOUND},
    {"RefIdentity", "input:Ref(T)", "output:Ref(T)", "T:type", twi_shape_same, twi_gradient_identity, TWI_PASSES, "h",
     .planned_as = "NoOp"},
    {"StopGradient", "input:T", "output:T", "T:type", twi_shape_same, twi_stops_gradient, TWI_PASSES},
    {"Snapshot", "input:T", "output:T", "T:type", twi_shape_same, NULL, TWI_PASSES},
    {"PreventGradient", "input:T", "output:T", "T:type; message:string=", twi_shape_same, twi_gradient_prevent,
     TWI_PASSES},
    {"EnsureShape", "input:T", "output:T", "T:type; shape:shape", ensured_shape, twi_gradient_identity, TWI_PASSES},
    {"Bitcast", "input:T", "output:type", "T:" CAST_BITS "; type:" CAST_BITS, bitcast_shape, twi_not_differentiable},
    {"CheckNumerics", "tensor:T", "output:T", "T:{bfloat16,half,float,double}; message:string", twi_shape_same,
     twi_gradient_check_numerics, TWI_STATEFUL},
    {"Shape", "input:T", "output:out_type", "T:type; out_type:" INDEX "=int32", shape_of_shape, twi_stops_gradient,
     TWI_METADATA},
    {"ShapeN", "input:N*T", "output:N*out_type", "N:int; T:type; out_type:" INDEX "=int32", shape_of_shape,
     twi_stops_gradient, TWI_METADATA},
    {"Size", "input:T", "output:out_type", "T:type; out_type:" INDEX "=int32", twi_shape_scalar, twi_stops_gradient,
     TWI_METADATA},
    {"Rank", "input:T", "output:int32", "T:type", twi_shape_scalar, twi_stops_gradient, TWI_METADATA},
    {"Reshape", "tensor:T, shape:Tshape", "output:T", "T:type; Tshape:" INDEX "=int32", twi_reshape_shape,
     twi_gradient_reshape},
    {"ExpandDims", "input:T, dim:Tdim", "output:T", "T:type; Tdim:" INDEX "=int32", expand_dims_shape,
     twi_gradient_reshape},
    {"Squeeze", "input:T", "output:T", "T:type; squeeze_dims:ints=[]", squeeze_shape, twi_gradient_reshape},
    {"Fill", "dims:index_type, value:T", "output:T", "T:type; index_type:" INDEX "=int32", fill_shape,
     twi_gradient_fill},
    {"ZerosLike", "x:T", "y:T", "T:type", twi_shape_same, twi_stops_gradient, TWI_ELEMENTWISE},
    {"OnesLike", "x:T", "y:T", "T:{bool," TWI_NUMBERS "}", twi_shape_same, twi_not_differentiable, TWI_ELEMENTWISE},
    {"Range", "start:Tidx, limit:Tidx, delta:Tidx", "output:Tidx", "Tidx:{bfloat16,float,double,int32,int64}=int32",
     range_shape, twi_not_differentiable},
    {"LinSpace", "start:T, stop:T, num:Tidx", "output:T", "T:{bfloat16,float,double}; Tidx:" INDEX "=int32",
     lin_space_shape, twi_not_differentiable},
    {"OneHot", "indices:TI, depth:int32, on_value:T, off_value:T", "output:T",
     "axis:int=-1; T:type; TI:{uint8,int8,int32,int64}=int64", one_hot_shape, twi_stops_gradient},
    {"BroadcastTo", "input:T, shape:Tidx", "output:T", "T:type; Tidx:" INDEX "=int32", broadcast_to_shape,
     twi_gradient_broadcast_to},
    {"BroadcastArgs", "s0:T, s1:T", "r0:T", "T:" INDEX "=int32", broadcast_args_shape, twi_not_differentiable},
    {"BroadcastGradientArgs", "s0:T, s1:T", "r0:T, r1:T", "T:" INDEX "=int32", gradient_args_shape,
     twi_not_differentiable},
    {"DataFormatDimMap", "x:T", "y:T", "T:" INDEX "=int32; " FORMATS, twi_shape_same, twi_not_differentiable},
    {"DataFormatVecPermute", "x:T", "y:T", "T:" INDEX "=int32; " FORMATS, twi_shape_same, twi_not_differentiable},
    {"InvertPermutation", "x:T", "y:T", "T:" INDEX "=int32", invert_permutation_shape, twi_stops_gradient},
    {"GuaranteeConst", "input:T", "output:T", "T:type", twi_shape_same, twi_gradient_identity, TWI_PASSES},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------------- */

tw_output tw_identity(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Identity", &x, 1, TWI_NO_ATTRS);
}

tw_output tw_stop_gradient(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "StopGradient", &x, 1, TWI_NO_ATTRS);
}

tw_output tw_zeros_like(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "ZerosLike", &x, 1, TWI_NO_ATTRS);
}

tw_output tw_ones_like(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "OnesLike", &x, 1, TWI_NO_ATTRS);
}

tw_output tw_shape_of(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Shape", &x, 1, TWI_NO_ATTRS);
}

tw_output tw_size_of(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Size", &x, 1, TWI_NO_ATTRS);
}

tw_output tw_rank_of(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "Rank", &x, 1, TWI_NO_ATTRS);
}

tw_output tw_reshape(tw_graph *graph, tw_output x, tw_shape shape)
{
    return twi_build(graph, "Reshape", TWI_INPUTS(x, twi_constant_shape(graph, shape)), TWI_NO_ATTRS);
}

tw_output tw_reshape_to(tw_graph *graph, tw_output x, tw_output shape)
{
    return twi_build(graph, "Reshape", TWI_INPUTS(x, shape), TWI_NO_ATTRS);
}

tw_output tw_expand_dims(tw_graph *graph, tw_output x, int axis)
{
    return twi_build(graph, "ExpandDims", TWI_INPUTS(x, twi_constant_int(graph, axis)), TWI_NO_ATTRS);
}

tw_output tw_squeeze(tw_graph *graph, tw_output x, const int *axes, int num_axes)
{
    int64_t values[TW_MAX_RANK];
    int count = twi_copy_axes(axes, num_axes, values);
    return twi_build(graph, "Squeeze", &x, 1, TWI_ATTRS(tw_attr_ints("squeeze_dims", values, count)));
}

tw_output tw_fill(tw_graph *graph, tw_output dims, tw_output value)
{
    return twi_build(graph, "Fill", TWI_INPUTS(dims, value), TWI_NO_ATTRS);
}

tw_output tw_range(tw_graph *graph, tw_output start, tw_output limit, tw_output delta)
{
    return twi_build(graph, "Range", TWI_INPUTS(start, limit, delta), TWI_NO_ATTRS);
}

tw_output tw_lin_space(tw_graph *graph, tw_output start, tw_output stop, int num)
{
    return twi_build(graph, "LinSpace", TWI_INPUTS(start, stop, twi_constant_int(graph, num)), TWI_NO_ATTRS);
}

tw_output tw_one_hot(tw_graph *graph, tw_output indices, int depth)
{
    return twi_build(graph, "OneHot",
                     TWI_INPUTS(indices, twi_constant_int(graph, depth), tw_scalar(graph, 1), tw_scalar(graph, 0)),
                     TWI_NO_ATTRS);
}

tw_output tw_broadcast_to(tw_graph *graph, tw_output x, tw_shape shape)
{
    return twi_build(graph, "BroadcastTo", TWI_INPUTS(x, twi_constant_shape(graph, shape)), TWI_NO_ATTRS);
}
