/* fused.c - ops that stand for a chain of others: made by the rewrites "fuse", "losses", "buckets", "update", "scalars" and
 * "weights" only, never by builders or files.
 * Lives here:  signatures and shape rules, and with each row the chain it stands for.
 * Never here:  finding the chains (rewrite/fuse.c, losses.c, buckets.c, sums.c, update.c, scalars.c, weights.c).
 *
 * Numerics are those of the chain, up to rounding: nothing between two links is rounded to the narrow type of a tensor
 * that no longer exists. */
#include "graph/op.h"
#include "tensor/window.h"

/* ---- shape rules ------------------------------------------------------------------------------------------- */

static tw_status expect_channels(const twi_inference *c, int input, int64_t channels)
{
    char text[128];
    if (tw_shape_compatible(c->inputs[input], TW_SHAPE(channels)))
        return TW_OK;
    return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must have shape [%lld], has %s", input,
                    (long long)channels, tw_shape_text(c->inputs[input], text, sizeof text));
}

static tw_status conv_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_status status = twi_convolution_lay(c->attrs, TWI_GROUPED, c->inputs[0], c->inputs[1], TW_UNKNOWN_SHAPE, &laid,
                                           c->error);
    if (status != TW_OK)
        return status;
    c->outputs[0] = twi_window_output(&laid.window, c->inputs[0], laid.out_channels);
    return expect_channels(c, 2, laid.out_channels);
}

static tw_status conv_filter_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_shape filter = twi_shape_of_value(twi_ask_value(c, 1));
    tw_status status = twi_convolution_lay(c->attrs, TWI_GROUPED, c->inputs[0], filter, c->inputs[2], &laid, c->error);
    c->outputs[0] = filter;
    c->outputs[1] = TW_SHAPE(twi_dimension(filter, 3));
    return status;
}

/* The same convolutions with filters [K,kh,kw,C]. */
static tw_status transposed_conv_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_status status = twi_convolution_lay(c->attrs, TWI_GROUPED, c->inputs[0], twi_transpose_filter_back(c->inputs[1]),
                                           TW_UNKNOWN_SHAPE, &laid, c->error);
    if (status != TW_OK)
        return status;
    c->outputs[0] = twi_window_output(&laid.window, c->inputs[0], laid.out_channels);
    return c->num_inputs > 2 ? expect_channels(c, 2, laid.out_channels) : TW_OK;
}

/* Image, filter, scale, side: as a convolution and _BatchNormRelu. */
static tw_status normalized_conv_shape(twi_inference *c, bool transposed)
{
    twi_convolution laid;
    tw_shape filter = transposed ? twi_transpose_filter_back(c->inputs[1]) : c->inputs[1];
    tw_status status = twi_convolution_lay(c->attrs, TWI_GROUPED, c->inputs[0], filter, TW_UNKNOWN_SHAPE, &laid,
                                           c->error);
    if (status != TW_OK)
        return status;
    c->outputs[0] = c->outputs[6] = twi_window_output(&laid.window, c->inputs[0], laid.out_channels);
    for (int i = 1; i < 5; i++)
        c->outputs[i] = c->inputs[2];
    c->outputs[5] = TW_SHAPE(0);
    return expect_channels(c, 2, laid.out_channels);
}

static tw_status straight_normalized_shape(twi_inference *c)
{
    return normalized_conv_shape(c, false);
}

static tw_status transposed_normalized_shape(twi_inference *c)
{
    return normalized_conv_shape(c, true);
}

static tw_status transposed_input_shape(twi_inference *c)
{
    twi_convolution laid;
    c->outputs[0] = twi_shape_of_value(twi_ask_value(c, 0));
    return twi_convolution_lay(c->attrs, TWI_GROUPED, c->outputs[0], twi_transpose_filter_back(c->inputs[1]),
                               c->inputs[2], &laid, c->error);
}

static tw_status transposed_filter_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_shape filter = twi_shape_of_value(twi_ask_value(c, 1));
    c->outputs[0] = twi_transpose_filter(filter);
    return twi_convolution_lay(c->attrs, TWI_GROUPED, c->inputs[0], filter, c->inputs[2], &laid, c->error);
}

/* Whether the i-th of a list is transposed, by attribute `transposed`, which may be empty. */
static bool is_transposed(const twi_inference *c, int i)
{
    int count = 0;
    const int64_t *transposed = twi_attr_ints(c->attrs, "transposed", &count);
    return i < count && transposed[i];
}

/* The shape of input i, a variable, in that layout. */
static tw_shape laid_shape(const twi_inference *c, int i)
{
    return is_transposed(c, i) ? twi_transpose_filter(c->inputs[i]) : c->inputs[i];
}

/* Whether gradient i lies in a vector, by attribute `offsets`: such a one holds the variable from offsets[i] >= 0
 * on. */
static bool lies_in(const twi_inference *c, int i, tw_shape variable, tw_shape vector)
{
    int count = 0;
    const int64_t *offsets = twi_attr_ints(c->attrs, "offsets", &count);
    return i < count && offsets[i] >= 0 && vector.rank == 1 && tw_shape_elements(variable) >= 0 &&
           offsets[i] + tw_shape_elements(variable) <= vector.dims[0];
}

static tw_status weights_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_inputs; i++)
        c->outputs[i] = laid_shape(c, i);
    return TW_OK;
}

static tw_status biases_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_inputs; i++)
        c->outputs[i] = TW_SHAPE(c->inputs[i].rank > 0 ? twi_dimension(c->inputs[i], c->inputs[i].rank - 1) : -1);
    return TW_OK;
}

static tw_status matmul_shape(twi_inference *c)
{
    char text[2][128];
    tw_shape a = c->inputs[0], b = c->inputs[1];
    if ((a.rank >= 0 && a.rank != 2) || (b.rank >= 0 && b.rank != 2))
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "both factors must be matrices, got %s and %s",
                        tw_shape_text(a, text[0], sizeof text[0]), tw_shape_text(b, text[1], sizeof text[1]));
    bool turn_a = twi_attr_bool(c->attrs, "transpose_a", false), turn_b = twi_attr_bool(c->attrs, "transpose_b", false);
    int64_t inner_a = twi_dimension(a, !turn_a), inner_b = twi_dimension(b, turn_b);
    if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%s and %s cannot be multiplied",
                        tw_shape_text(a, text[0], sizeof text[0]), tw_shape_text(b, text[1], sizeof text[1]));
    c->outputs[0] = TW_SHAPE(twi_dimension(a, turn_a), twi_dimension(b, !turn_b));
    return c->num_inputs > 2 ? expect_channels(c, 2, c->outputs[0].dims[1]) : TW_OK;
}

/* Every output has the shape of a pool of the image. */
static tw_status pool_outputs(twi_inference *c, const twi_attrs *attrs, tw_shape image)
{
    twi_window w;
    tw_status status = twi_window_lay(attrs, image, NULL, &w, c->error);
    for (int i = 0; i < c->num_outputs && status == TW_OK; i++)
        c->outputs[i] = twi_window_output(&w, image, twi_dimension(image, w.channel_axis));
    return status;
}

static tw_status pooled_shape(twi_inference *c)
{
    return pool_outputs(c, c->attrs, c->inputs[0]);
}

/* Of a convolution that is pooled. */
static tw_status pooled_conv_shape(twi_inference *c, bool transposed)
{
    twi_convolution laid;
    twi_attr items[TWI_POOL_ATTRS];
    const twi_attrs pool = twi_pool_attrs(c->attrs, items);
    tw_shape filter = transposed ? twi_transpose_filter_back(c->inputs[1]) : c->inputs[1];
    tw_status status = twi_convolution_lay(c->attrs, TWI_GROUPED, c->inputs[0], filter, TW_UNKNOWN_SHAPE, &laid,
                                           c->error);
    if (status == TW_OK)
        status = expect_channels(c, 2, laid.out_channels);
    return status == TW_OK ? pool_outputs(c, &pool, twi_window_output(&laid.window, c->inputs[0], laid.out_channels))
                           : status;
}

/* Of filter and bias: image, sizes. */
static tw_status pooled_conv_grad_shape(twi_inference *c)
{
    twi_convolution laid;
    tw_shape filter = twi_shape_of_value(twi_ask_value(c, 1));
    c->outputs[0] = filter;
    c->outputs[1] = TW_SHAPE(twi_dimension(filter, 3));
    return twi_convolution_lay(c->attrs, TWI_GROUPED, c->inputs[0], filter, TW_UNKNOWN_SHAPE, &laid, c->error);
}

static tw_status straight_pooled_shape(twi_inference *c)
{
    return pooled_conv_shape(c, false);
}

static tw_status transposed_pooled_shape(twi_inference *c)
{
    return pooled_conv_shape(c, true);
}

/* Of the image that was pooled: attributes height and width, the rest as in the pooled one. */
static tw_status unpooled_shape(twi_inference *c)
{
    tw_shape pooled = c->inputs[1];
    c->outputs[0] = TW_SHAPE(twi_dimension(pooled, 0), twi_attr_int(c->attrs, "height", -1),
                             twi_attr_int(c->attrs, "width", -1), twi_dimension(pooled, 3));
    return TW_OK;
}

static tw_status second_input_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[1];
    return TW_OK;
}

/* Of _ReluGradBias: gradients, features. */
static tw_status relu_grad_bias_shape(twi_inference *c)
{
    char text[2][128];
    tw_shape gradients = c->inputs[0];
    if (!tw_shape_compatible(gradients, c->inputs[1]))
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "gradients have shape %s, features %s",
                        tw_shape_text(gradients, text[0], sizeof text[0]),
                        tw_shape_text(c->inputs[1], text[1], sizeof text[1]));
    if (gradients.rank >= 0 && gradients.rank < 2)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "the gradient must have channels, has shape %s",
                        tw_shape_text(gradients, text[0], sizeof text[0]));
    c->outputs[0] = gradients;
    c->outputs[1] = TW_SHAPE(gradients.rank > 0 ? gradients.dims[gradients.rank - 1] : -1);
    return TW_OK;
}

/* Of _BatchNormRelu: x, scale. */
static tw_status batch_norm_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    for (int i = 1; i < 5; i++)
        c->outputs[i] = c->inputs[1];
    c->outputs[5] = TW_SHAPE(0);
    return TW_OK;
}

/* Of _BatchNormReluGrad: M gradients, x, scale. */
static tw_status batch_norm_grad_shape(twi_inference *c)
{
    int gradients = (int)twi_attr_int(c->attrs, "M", 1), sides = (int)twi_attr_int(c->attrs, "N", 0);
    if (gradients < 1 || gradients > 2 || sides > 1)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "M is %d and N %d, expected 1 or 2, and 0 or 1", gradients,
                        sides);
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = c->inputs[gradients + (i == 1 || i == 2)];
    return TW_OK;
}

/* Gradients are of a float type each. */
static tw_status expect_floats(const twi_inference *c, int first, int count)
{
    for (int i = first; i < first + count; i++)
        if (c->input_types[i] != TW_FLOAT32 && c->input_types[i] != TW_BFLOAT16 && c->input_types[i] != TW_FLOAT16)
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must be of a float type, is %s", i,
                            tw_dtype_name(c->input_types[i]));
    return TW_OK;
}

/* Of _JoinGradients: gradients, then a variable and a decay for each of `decayed`. */
static tw_status joined_shape(twi_inference *c)
{
    char text[2][128];
    int decays = 0, count = c->num_inputs - 2 * (int)twi_attr_int(c->attrs, "D", 0);
    const int64_t *decayed = twi_attr_ints(c->attrs, "decayed", &decays);
    int64_t elements = 0;
    if (count < 1 || count + 2 * decays != c->num_inputs)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%d gradients, %d of them decayed, %d inputs", count, decays,
                        c->num_inputs);
    for (int i = 0; i < count; i++) {
        int64_t more = tw_shape_elements(c->inputs[i]);
        elements = elements < 0 || more < 0 ? -1 : elements + more;
    }
    for (int i = 0; i < decays; i++) {
        int of = (int)decayed[i];
        if (of < 0 || of >= count)
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "decay %d is that of gradient %d, expected 0 to %d", i, of,
                            count - 1);
        tw_shape expected = is_transposed(c, of) ? twi_transpose_filter_back(c->inputs[of]) : c->inputs[of];
        if (!tw_shape_compatible(expected, c->inputs[count + i]) ||
            !tw_shape_compatible(TW_SCALAR, c->inputs[count + decays + i]))
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "gradient %d has a variable of shape %s and a decay of shape %s",
                            of, tw_shape_text(c->inputs[count + i], text[0], sizeof text[0]),
                            tw_shape_text(c->inputs[count + decays + i], text[1], sizeof text[1]));
    }
    c->outputs[0] = TW_SHAPE(elements);
    return expect_floats(c, 0, count);
}

static tw_status softmax_loss_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    c->outputs[1] = c->inputs[0];
    return TW_OK;
}

static tw_status dense_loss_shape(twi_inference *c)
{
    int64_t rows = twi_dimension(c->inputs[0], 0), hidden = twi_dimension(c->inputs[1], 1);
    c->outputs[0] = c->outputs[3] = TW_SHAPE(rows, hidden);
    c->outputs[1] = TW_SCALAR;
    c->outputs[2] = TW_SHAPE(rows, twi_dimension(c->inputs[3], 1));
    c->outputs[4] = c->inputs[0];
    return TW_OK;
}

/* N variables, a scalar, N or M tensors of their shapes, M being N or 2 N; then as many scalars or nothing. */
static tw_status many_shape(twi_inference *c)
{
    char text[2][128];
    int count = (int)twi_attr_int(c->attrs, "N", 0), tensors = (int)twi_attr_int(c->attrs, "M", count);
    if (tensors != count && tensors != 2 * count)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "M is %d, expected N or 2 N, %d or %d", tensors, count, 2 * count);
    for (int i = 0; i < tensors; i++)
        if (!lies_in(c, i, c->inputs[i % count], c->inputs[count + 1 + i]) &&
            !tw_shape_compatible(laid_shape(c, i % count), c->inputs[count + 1 + i]))
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "variable %d has shape %s, what goes into it %s", i % count,
                            tw_shape_text(c->inputs[i % count], text[0], sizeof text[0]),
                            tw_shape_text(c->inputs[count + 1 + i], text[1], sizeof text[1]));
    for (int i = count; i < c->num_inputs; i = i == count ? count + 1 + tensors : i + 1)
        if (!tw_shape_compatible(c->inputs[i], TW_SCALAR))
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must be a scalar, has shape %s", i,
                            tw_shape_text(c->inputs[i], text[0], sizeof text[0]));
    return expect_floats(c, count + 1, tensors);
}

/* N variables, S slots (all of the first kind, then all of the second), K numbers, M gradients (N or 2 N), D decays (M
 * or none), L losses (N or none). */
static tw_status update_shape(twi_inference *c)
{
    char text[2][128];
    int count = (int)twi_attr_int(c->attrs, "N", 0), gradients = (int)twi_attr_int(c->attrs, "M", 0),
        slots = (int)twi_attr_int(c->attrs, "S", 0), numbers = (int)twi_attr_int(c->attrs, "K", 0),
        decays = (int)twi_attr_int(c->attrs, "D", 0), losses = (int)twi_attr_int(c->attrs, "L", 0);
    int first_number = count + slots, first_gradient = first_number + numbers;
    if (count < 1 || slots % count || (gradients != count && gradients != 2 * count) ||
        (decays && decays != gradients) || (losses && losses != count))
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%d variables, %d slots, %d gradients, %d decays, %d losses", count,
                        slots, gradients, decays, losses);
    for (int i = count; i < c->num_inputs; i++) {
        bool is_scalar = i >= first_number && (i < first_gradient || i >= first_gradient + gradients);
        int variable = (i < first_number ? i : i - first_gradient + count) % count;
        tw_shape expected = is_scalar             ? TW_SCALAR
                            : i >= first_gradient ? laid_shape(c, variable)
                                                  : c->inputs[variable];
        bool lies = i >= first_gradient && !is_scalar &&
                    lies_in(c, i - first_gradient, c->inputs[variable], c->inputs[i]);
        if (!lies && !tw_shape_compatible(expected, c->inputs[i]))
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must have shape %s, has %s", i,
                            tw_shape_text(expected, text[0], sizeof text[0]),
                            tw_shape_text(c->inputs[i], text[1], sizeof text[1]));
    }
    return expect_floats(c, first_gradient, gradients);
}

/* The same, then N averages and their weight. */
static tw_status averaged_shape(twi_inference *c)
{
    char text[2][128];
    twi_inference update = *c;
    int count = (int)twi_attr_int(c->attrs, "N", 0), first = update.num_inputs -= count + 1;
    for (int i = 0; i <= count; i++) {
        tw_shape expected = i < count ? c->inputs[i] : TW_SCALAR;
        if (!tw_shape_compatible(expected, c->inputs[first + i]))
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must have shape %s, has %s", first + i,
                            tw_shape_text(expected, text[0], sizeof text[0]),
                            tw_shape_text(c->inputs[first + i], text[1], sizeof text[1]));
    }
    return update_shape(&update);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FLOAT_TYPES "{half,bfloat16,float}"
#define FLOATS "T:" FLOAT_TYPES
#define CONV                                                                                                           \
    "strides:ints; padding:{SAME,VALID,EXPLICIT}; explicit_paddings:ints=[]; data_format:{NHWC,NCHW}=NHWC; "           \
    "dilations:ints=[1,1,1,1]"
#define CONV2D CONV "; use_cudnn_on_gpu:bool=true" /* TensorFlow's own attributes */
#define LRN "depth_radius:int=5; bias:float=1; alpha:float=1; beta:float=0.5"
#define POOL "ksize:ints; strides:ints; padding:{SAME,VALID}; data_format:{NHWC}=NHWC; " LRN
#define POOLED_CONV CONV2D "; relu:bool=false; ksize:ints; pool_strides:ints; pool_padding:{SAME,VALID}; " LRN
#define BATCH_NORM "N:int; epsilon:float=0.0001; data_format:{NHWC}=NHWC; is_training:bool=true"
#define NORMALIZED "N:int; " CONV2D "; epsilon:float=0.0001"
#define NORMALIZED_CONV                                                                                                \
    "y:T, batch_mean:float, batch_variance:float, reserve_space_1:float, reserve_space_2:float, "                      \
    "reserve_space_3:float, convolved:T"

/* Variables of a batch's shapes. */
static tw_status batch_into_shape(twi_inference *c)
{
    tw_shape made[2];
    twi_inference batch = *c;
    batch.outputs = made;
    batch.num_outputs = 2;
    tw_status status = twi_shape_batch(&batch);
    for (int i = 0; i < 2 && status == TW_OK; i++)
        status = twi_merge_shapes(made[i], c->inputs[3 + i], &made[i], c->error);
    return status;
}

const twi_op twi_fused_ops[] = {
    /* TowerBatch, Cast of its images */
    {"_TowerBatch", "images:uint8, labels:int32, step:int64", "batch:T, batch_labels:int32",
     "T:{half,bfloat16}; batch:int; examples:int; first:int=0; seed:int=0; shuffle:bool=true; augmentation:int=0; "
     "crop:int=0; scale:float=0; offset:float=0",
     twi_shape_batch, NULL, TWI_REWRITTEN | TWI_INPUT},
    /* TowerBatch, AssignVariableOp of its images, and of its labels */
    {"_TowerBatchInto", "images:uint8, labels:int32, step:int64, batch:resource, batch_labels:resource", "",
     "batch:int; examples:int; first:int=0; seed:int=0; shuffle:bool=true; augmentation:int=0; crop:int=0; "
     "scale:float=0; offset:float=0",
     batch_into_shape, NULL, TWI_REWRITTEN | TWI_STATEFUL | TWI_INPUT, "...ww"},
    /* Conv2D, BiasAdd and, with relu, Relu */
    {"_FusedConv2D", "input:T, filter:T, bias:T", "output:T", FLOATS "; " CONV "; relu:bool=false", conv_shape, NULL,
     TWI_REWRITTEN},
    /* N variables: the Cast of each to T (of float there is none); where transposed[i], [kh,kw,C,K] becomes
     * [K,kh,kw,C] */
    {"_CastMany", "x:N*float", "y:N*T", FLOATS "; N:int; transposed:ints=[]", weights_shape, NULL, TWI_REWRITTEN},
    /* Conv2D and, with N = 1, BiasAdd and, with relu, Relu; the filter is [K,kh,kw,C] here and below */
    {"_TransposedFilterConv2D", "input:T, filter:T, bias:N*T", "output:T",
     FLOATS "; N:int; " CONV2D "; relu:bool=false", transposed_conv_shape, NULL, TWI_REWRITTEN},
    {"_TransposedFilterConv2DBackpropInput", "input_sizes:int32, filter:T, out_backprop:T", "output:T",
     FLOATS "; " CONV2D, transposed_input_shape, NULL, TWI_REWRITTEN},
    {"_TransposedFilterConv2DBackpropFilter", "input:T, filter_sizes:int32, out_backprop:T", "output:T",
     FLOATS "; " CONV2D, transposed_filter_shape, NULL, TWI_REWRITTEN},
    /* Conv2DBackpropFilter and BiasAddGrad of the same gradient; U is T, or the type both were cast to */
    {"_Conv2DBackpropFilterBias", "input:T, filter_sizes:int32, out_backprop:T", "filter_backprop:U, bias_backprop:U",
     FLOATS "; U:" FLOAT_TYPES "; " CONV, conv_filter_shape, NULL, TWI_REWRITTEN},
    /* MatMul; with N = 1 BiasAdd; with relu Relu. U is T, or without these the type the product was cast to. */
    {"_FusedMatMul", "a:T, b:T, bias:N*T", "product:U",
     FLOATS "; N:int; U:" FLOAT_TYPES "; transpose_a:bool=false; transpose_b:bool=false; relu:bool=false",
     matmul_shape, NULL, TWI_REWRITTEN},

    /* ReluGrad, and BiasAddGrad of what it lets pass */
    {"_ReluGradBias", "gradients:T, features:T", "backprops:T, bias_backprop:T", FLOATS, relu_grad_bias_shape, NULL,
     TWI_REWRITTEN},

    /* MaxPool, LRN. Also what the pool gave, and for each window the number, ky * width of the window + kx, of the
     * first cell that held the maximum. */
    {"_MaxPoolLRN", "input:T", "output:T, pooled:T, argmax:uint8", FLOATS "; " POOL, pooled_shape, NULL, TWI_REWRITTEN},
    /* _FusedConv2D, and the same of what it gives, which is gone afterwards */
    {"_Conv2DMaxPoolLRN", "input:T, filter:T, bias:T", "output:T, pooled:T, argmax:uint8", FLOATS "; " POOLED_CONV,
     straight_pooled_shape, NULL, TWI_REWRITTEN},
    {"_TransposedFilterConv2DMaxPoolLRN", "input:T, filter:T, bias:T", "output:T, pooled:T, argmax:uint8",
     FLOATS "; " POOLED_CONV, transposed_pooled_shape, NULL, TWI_REWRITTEN},
    /* _MaxPoolLRNGrad, and of what it gives Conv2DBackpropFilter and BiasAddGrad */
    {"_Conv2DMaxPoolLRNGrad", "input:T, filter_sizes:int32, gradient:T, pooled:T, argmax:uint8",
     "filter_backprop:T, bias_backprop:T", FLOATS "; " POOLED_CONV, pooled_conv_grad_shape, NULL, TWI_REWRITTEN},
    /* LRNGrad, MaxPoolGrad and, with relu, ReluGrad */
    {"_MaxPoolLRNGrad", "gradient:T, pooled:T, argmax:uint8", "output:T",
     FLOATS "; " POOL "; height:int; width:int; relu:bool=false", unpooled_shape, NULL, TWI_REWRITTEN},
    /* LRN, MaxPool */
    {"_LRNMaxPool", "input:T", "output:T, argmax:uint8", FLOATS "; " POOL, pooled_shape, NULL, TWI_REWRITTEN},
    /* MaxPoolGrad, LRNGrad and, with relu, ReluGrad */
    {"_LRNMaxPoolGrad", "gradient:T, input:T, argmax:uint8", "output:T", FLOATS "; " POOL "; relu:bool=false",
     second_input_shape, NULL, TWI_REWRITTEN},

    /* FusedBatchNorm, V2 or V3; with N = 1 AddV2 of that and side; Relu. The other outputs are the third version's. */
    {"_BatchNormRelu", "x:T, scale:float, offset:float, mean:float, variance:float, side:N*T",
     "y:T, batch_mean:float, batch_variance:float, reserve_space_1:float, reserve_space_2:float, reserve_space_3:float",
     FLOATS "; " BATCH_NORM, batch_norm_shape, NULL, TWI_REWRITTEN},
    /* Conv2D, and while training the same of what it gives, which is an output, too */
    {"_Conv2DBatchNormRelu", "input:T, filter:T, scale:float, offset:float, side:N*T", NORMALIZED_CONV,
     FLOATS "; " NORMALIZED, straight_normalized_shape, NULL, TWI_REWRITTEN},
    {"_TransposedFilterConv2DBatchNormRelu", "input:T, filter:T, scale:float, offset:float, side:N*T", NORMALIZED_CONV,
     FLOATS "; " NORMALIZED, transposed_normalized_shape, NULL, TWI_REWRITTEN},
    /* with M = 2 AddN of the gradients; ReluGrad with y, which without a side is computed again; FusedBatchNormGrad, V2
     * or V3. With N = 1 also what the ReLU let pass, which is the side's gradient. */
    {"_BatchNormReluGrad",
     "gradients:M*T, x:T, scale:float, reserve_space_1:float, reserve_space_2:float, offset:float, y:N*T",
     "x_backprop:T, scale_backprop:float, offset_backprop:float, side_backprop:N*T", FLOATS "; M:int; " BATCH_NORM,
     batch_norm_grad_shape, NULL, TWI_REWRITTEN},

    /* gradients end to end: Cast to float and Reshape of each and, with decay i, AddN of gradients[decayed[i]] and of
     * decays[i] * vars[i]; ConcatV2. Where transposed[k], gradients[k] is [K,kh,kw,C], and becomes [kh,kw,C,K].
     * T as below. */
    {"_JoinGradients", "gradients:G, vars:D*float, decays:D*float", "joined:float",
     "G:types; D:int; T:" FLOAT_TYPES "; decayed:ints=[]; transposed:ints=[]", joined_shape, NULL, TWI_REWRITTEN},

    /* AddV2 of neighbours, AddV2 of what that gives, and so on; Mul by scale */
    {"_TowerMean", "terms:N*T", "mean:T", "N:int; T:{float}; scale:float", twi_shape_same, NULL, TWI_REWRITTEN},

    /* var[i] -= alpha * (deltas[i] + decays[i] * var[i]): Mul, AddN, ResourceApplyGradientDescent of N variables. With
     * M = 2 N the mean of two towers: AddV2 of that and of the same with deltas[N + i] and decays[N + i], then Mul by
     * scale. A decay that is known to be 0 is none. Variables are float; a delta of a narrow type stands for its Cast,
     * T is the type of those that are narrow, or float if none is. The deltas of variable i are [K,kh,kw,C] where
     * transposed[i]. Where offsets[k] >= 0 delta k is a part of a vector, from there on: a Reshape of an output of
     * SplitV. */
    {"_ApplyGradientDescentMany", "vars:N*resource, alpha:float, deltas:G, decays:M*float", "",
     "N:int; M:int; T:" FLOAT_TYPES "; G:types; transposed:ints=[]; offsets:ints=[]; scale:float=1", many_shape, NULL,
     TWI_REWRITTEN | TWI_STATEFUL, "ungd"},
    /* `update`, ResourceApplyMomentum or another optimizer's, whose numbers these are, of each variable with its slots.
     * Gradients are gradients[i] + decays[i] * vars[i], the mean of two towers if M = 2 N, as above; before it, with
     * losses, vars[i] -= losses[i] * vars[i]: Mul, AssignSubVariableOp. */
    {"_ApplyMany", "vars:N*resource, slots:S*resource, numbers:K*float, gradients:G, decays:D*float, losses:L*float", "",
     "update:string; N:int; M:int; S:int; K:int; D:int; L:int; T:" FLOAT_TYPES "; G:types; transposed:ints=[]; "
     "offsets:ints=[]; scale:float=1; use_nesterov:bool=false", update_shape, NULL, TWI_REWRITTEN | TWI_STATEFUL,
     "usngdl"},
    /* The same, and then by the new values averages[i] -= (averages[i] - vars[i]) * weight: _MovingAverageMany. */
    {"_ApplyAveragedMany",
     "vars:N*resource, slots:S*resource, numbers:K*float, gradients:G, decays:D*float, losses:L*float, "
     "averages:N*resource, weight:float",
     "",
     "update:string; N:int; M:int; S:int; K:int; D:int; L:int; T:" FLOAT_TYPES "; G:types; transposed:ints=[]; "
     "offsets:ints=[]; scale:float=1; use_nesterov:bool=false", averaged_shape, NULL, TWI_REWRITTEN | TWI_STATEFUL,
     "usngdlun"},
    /* averages[i] -= (averages[i] - values[i]) * weight: Sub, Mul, AssignSubVariableOp of N variables */
    {"_MovingAverageMany", "averages:N*resource, weight:T, values:N*T", "", "N:int; T:{float}", many_shape, NULL,
     TWI_REWRITTEN | TWI_STATEFUL, "un."},
    /* BiasAddGrad of N gradients with the channels last */
    {"_BiasAddGradMany", "out_backprops:N*T", "biases:N*T", "N:int; " FLOATS, biases_shape, NULL, TWI_REWRITTEN},
    /* L2Loss of N tensors */
    {"_L2LossMany", "tensors:N*T", "losses:N*T", "N:int; " FLOATS, twi_shape_scalar, NULL, TWI_REWRITTEN},
    /* IsFinite and All of each of N tensors */
    {"_AllFiniteMany", "tensors:N*T", "finite:N*bool", "N:int; " FLOATS, twi_shape_scalar, NULL, TWI_REWRITTEN},
    /* SparseSoftmaxCrossEntropyWithLogits of the logits as float and Mean of its losses; its gradient, times scale /
     * divisor, as a U. */
    {"_SoftmaxLoss", "logits:T, labels:Tlabels, scale:float", "loss:float, backprop:U",
     FLOATS "; U:{half,bfloat16,float}; Tlabels:{int32,int64}; divisor:float=1", softmax_loss_shape, NULL, TWI_REWRITTEN},
    /* _FusedMatMul with relu, giving hidden; _FusedMatMul without; _SoftmaxLoss; MatMul by last_weights transposed;
     * ReluGrad with hidden; MatMul by weights transposed; with relu ReluGrad with x */
    {"_DenseLoss",
     "x:T, weights:T, bias:T, last_weights:T, last_bias:T, labels:Tlabels, scale:float",
     "hidden:T, loss:float, logits_backprop:T, hidden_backprop:T, x_backprop:T",
     FLOATS "; Tlabels:{int32,int64}; divisor:float=1; relu:bool=false", dense_loss_shape, NULL, TWI_REWRITTEN},
    /* A small program of ops on scalars. Step i is ops[i], a place in the list of device/fused/scalars.h, on counts[i]
     * of the operands and gives a value of types[i]. Operand or result k >= 0 is input k, ~k what step k gives.
     * Afterwards vars[i] has the value writes[i]. */
    {"_Scalars", "values:Tin, vars:N*resource", "values_out:Tout",
     "Tin:types; N:int; Tout:types; ops:ints; types:types; counts:ints; operands:ints; results:ints; writes:ints",
     twi_shape_scalar, NULL, TWI_REWRITTEN | TWI_STATEFUL, ".u"},
    {0},
};
