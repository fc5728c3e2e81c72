/* quantized.c - arithmetic on steps of a range: numbers are small integers, and two floats beside them say what the
 * least and the largest integer stand for. What TensorFlow 1's quantize_nodes makes of frozen graphs. Types are those
 * for which TensorFlow has kernels on CPUs. */
#include "ops/rules.h"
#include "tensor/window.h"

/* Inputs from `first` on are ranges, one number each. */
static tw_status expect_numbers(twi_inference *c, int first)
{
    char text[128];
    for (int i = first; i < c->num_inputs; i++)
        if (tw_shape_elements(c->inputs[i]) >= 0 && tw_shape_elements(c->inputs[i]) != 1)
            return TWI_REFUSE(c, "input %d must be one number of a range, got shape %s", i,
                              tw_shape_text(c->inputs[i], text, sizeof text));
    return TW_OK;
}

/* The last two outputs are a range. */
static tw_status give_range(twi_inference *c, tw_status status)
{
    c->outputs[c->num_outputs - 2] = c->outputs[c->num_outputs - 1] = TW_SCALAR;
    return status;
}

/* input, low, high: low and high are single numbers or, with an axis, one for each slice. */
static tw_status expect_ranges(twi_inference *c, tw_shape *range)
{
    int64_t axis = twi_attr_int(c->attrs, "axis", -1);
    *range = TW_SCALAR;
    if (axis < -1 || axis >= TW_MAX_RANK)
        return TWI_REFUSE(c, "axis must be at least -1 and below %d, got %lld", TW_MAX_RANK, (long long)axis);
    if (axis < 0)
        return expect_numbers(c, 1);
    tw_status status = twi_expect_rank_at_least(c, 0, (int)axis + 1);
    *range = TW_SHAPE(c->inputs[0].rank < 0 || status != TW_OK ? -1 : c->inputs[0].dims[axis]);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = twi_merge_shapes(*range, c->inputs[i], range, c->error);
    if (status == TW_OK && strcmp(twi_attr_string(c->attrs, "mode", ""), "MIN_FIRST") == 0)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "MIN_FIRST mode is not implemented with an axis");
    return status;
}

static tw_status quantize_shape(twi_inference *c)
{
    bool even = strcmp(twi_attr_string(c->attrs, "round_mode", ""), "HALF_TO_EVEN") == 0;
    const char *mode = twi_attr_string(c->attrs, "mode", "");
    if (even && strcmp(mode, "SCALED") != 0)
        return TWI_REFUSE(c, "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '%s'", mode);
    c->outputs[0] = c->inputs[0];
    tw_status status = expect_ranges(c, &c->outputs[1]);
    c->outputs[2] = c->outputs[1];
    return status;
}

static tw_status dequantize_shape(twi_inference *c)
{
    tw_shape range;
    const char *mode = twi_attr_string(c->attrs, "mode", "");
    if (c->output_types[0] == TW_BFLOAT16 && strcmp(mode, "MIN_COMBINED") != 0)
        return TWI_REFUSE(c, "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%s'", mode);
    c->outputs[0] = c->inputs[0];
    return expect_ranges(c, &range);
}

static tw_status range_shape(twi_inference *c)
{
    return give_range(c, expect_numbers(c, 1));
}

static tw_status same_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    return give_range(c, expect_numbers(c, 1));
}

static tw_status product_shape(twi_inference *c)
{
    tw_status status = twi_matmul_shape(c);
    return give_range(c, status == TW_OK ? expect_numbers(c, 2) : status);
}

static tw_status sum_shape(twi_inference *c)
{
    tw_status status = twi_shape_broadcast(c);
    return give_range(c, status == TW_OK ? expect_numbers(c, 2) : status);
}

static tw_status bias_shape(twi_inference *c)
{
    tw_status status = twi_bias_add_shape(c);
    return give_range(c, status == TW_OK ? expect_numbers(c, 2) : status);
}

static tw_status expect_ones(twi_inference *c, const char *name)
{
    const twi_attr *attr = twi_attr_find(c->attrs, name);
    if (attr->count == 4 && attr->ints[0] == 1 && attr->ints[1] == attr->ints[2] && attr->ints[3] == 1)
        return TW_OK;
    return TWI_REFUSE(c, "%s must be 4 numbers, 1 of images and channels, and equal of rows and columns", name);
}

static tw_status convolution_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_status status = expect_ones(c, "strides");
    if (status == TW_OK)
        status = expect_numbers(c, 2);
    if (status == TW_OK)
        status = twi_convolution_lay(c->attrs, TWI_DENSE, c->inputs[0], c->inputs[1], TW_UNKNOWN_SHAPE, &laid,
                                     c->error);
    if (status == TW_OK && (laid.window.dilation[0] != 1 || laid.window.dilation[1] != 1))
        return twi_fail(c->error, TW_UNIMPLEMENTED, "only dilations of 1 are supported");
    if (status == TW_OK)
        c->outputs[0] = twi_window_output(&laid.window, c->inputs[0], laid.out_channels);
    return give_range(c, status);
}

static tw_status pool_shape(twi_inference *c)
{
    twi_window window;
    tw_status status = twi_window_lay(c->attrs, c->inputs[0], NULL, &window, c->error);
    if (status == TW_OK)
        c->outputs[0] = twi_window_output(&window, c->inputs[0], twi_dimension(c->inputs[0], window.channel_axis));
    return give_range(c, status == TW_OK ? expect_numbers(c, 1) : status);
}

static tw_status reshape_shape(twi_inference *c)
{
    tw_status status = twi_reshape_shape(c);
    return give_range(c, status == TW_OK ? expect_numbers(c, 2) : status);
}

/* axis, values, and the ends of their ranges */
static tw_status concat_shape(twi_inference *c)
{
    int count = (c->num_inputs - 1) / 3;
    tw_status status = twi_concat_shape(c, 0, 1, count);
    return give_range(c, status == TW_OK ? expect_numbers(c, 1 + count) : status);
}

#define ANY "{qint8,quint8,qint32,qint16,quint16}"
#define RANGE(in, out) in ":float, " out ":float"
#define MODE "mode:{MIN_COMBINED,MIN_FIRST,SCALED}=MIN_COMBINED; narrow_range:bool=false; axis:int=-1"
#define DOWN "Tinput:{qint32}; out_type:{qint8,quint8}"
#define PAIR "x:T1, y:T2, min_x:float, max_x:float, min_y:float, max_y:float"
#define BYTES "T1:{quint8}; T2:{quint8}; Toutput:{qint32}=qint32"
#define RECTIFIED                                                                                                      \
    "features:Tinput, " RANGE("min_features", "max_features"),                                                         \
        "activations:out_type, " RANGE("min_activations", "max_activations"),                                          \
        "Tinput:{quint8,qint32}; out_type:{quint8,qint32}=quint8", same_shape, NULL, TWI_HOST_ONLY
#define POOLED                                                                                                         \
    "input:T, " RANGE("min_input", "max_input"), "output:T, " RANGE("min_output", "max_output"),                       \
        "T:{qint8,quint8}; ksize:ints; strides:ints; padding:{SAME,VALID}", pool_shape, NULL, TWI_HOST_ONLY

const twi_op twi_quantized_ops[] = {
    {"QuantizeV2", "input:float, " RANGE("min_range", "max_range"), "output:T, " RANGE("output_min", "output_max"),
     "T:" ANY "; " MODE "; round_mode:{HALF_AWAY_FROM_ZERO,HALF_TO_EVEN}=HALF_AWAY_FROM_ZERO; "
     "ensure_minimum_range:float=0.01",
     quantize_shape, NULL, TWI_HOST_ONLY},
    {"Dequantize", "input:T, " RANGE("min_range", "max_range"), "output:dtype",
     "T:" ANY "; " MODE "; dtype:{bfloat16,float}=float", dequantize_shape, NULL, TWI_HOST_ONLY},
    {"RequantizationRange", "input:Tinput, " RANGE("input_min", "input_max"), RANGE("output_min", "output_max"),
     "Tinput:{qint32}", range_shape, NULL, TWI_HOST_ONLY},
    {"Requantize",
     "input:Tinput, " RANGE("input_min", "input_max") ", " RANGE("requested_output_min", "requested_output_max"),
     "output:out_type, " RANGE("output_min", "output_max"), DOWN, same_shape, NULL, TWI_HOST_ONLY},
    {"QuantizeDownAndShrinkRange", "input:Tinput, " RANGE("input_min", "input_max"),
     "output:out_type, " RANGE("output_min", "output_max"), "Tinput:{qint32}; out_type:{quint8}", same_shape, NULL,
     TWI_HOST_ONLY},
    {"QuantizedMatMul", "a:T1, b:T2, " RANGE("min_a", "max_a") ", " RANGE("min_b", "max_b"),
     "out:Toutput, " RANGE("min_out", "max_out"),
     BYTES "; transpose_a:bool=false; transpose_b:bool=false; Tactivation:" ANY "=quint8", product_shape, NULL,
     TWI_HOST_ONLY},
    {"QuantizedConv2D",
     "input:Tinput, filter:Tfilter, " RANGE("min_input", "max_input") ", " RANGE("min_filter", "max_filter"),
     "output:out_type, " RANGE("min_output", "max_output"),
     "Tinput:{quint8}; Tfilter:{quint8}; out_type:{qint32}=qint32; strides:ints; padding:{SAME,VALID}; "
     "dilations:ints=[1,1,1,1]",
     convolution_shape, NULL, TWI_HOST_ONLY},
    {"QuantizedBiasAdd", "input:T1, bias:T2, " RANGE("min_input", "max_input") ", " RANGE("min_bias", "max_bias"),
     "output:out_type, " RANGE("min_out", "max_out"), "T1:{qint8,quint8}; T2:{qint8,quint8}; out_type:{qint32}",
     bias_shape, NULL, TWI_HOST_ONLY},
    {"QuantizedAdd", PAIR, "z:Toutput, " RANGE("min_z", "max_z"), BYTES, sum_shape, NULL, TWI_HOST_ONLY},
    {"QuantizedMul", PAIR, "z:Toutput, " RANGE("min_z", "max_z"), BYTES, sum_shape, NULL, TWI_HOST_ONLY},
    {"QuantizedRelu", RECTIFIED},
    {"QuantizedRelu6", RECTIFIED},
    {"QuantizedMaxPool", POOLED},
    {"QuantizedAvgPool", POOLED},
    {"QuantizedReshape", "tensor:T, shape:Tshape, " RANGE("input_min", "input_max"),
     "output:T, " RANGE("output_min", "output_max"), "T:{quint8,qint32}; Tshape:{int32,int64}=int32", reshape_shape,
     NULL, TWI_HOST_ONLY},
    {"QuantizedConcat", "concat_dim:int32, values:N*T, input_mins:N*float, input_maxes:N*float",
     "output:T, " RANGE("output_min", "output_max"), "N:int; T:{quint8,qint32}", concat_shape, NULL, TWI_HOST_ONLY},
    {0},
};
