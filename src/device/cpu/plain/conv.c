/* conv.c - Conv2D, DepthwiseConv2dNative and their gradients in plain C: any type, stride, dilation and padding.
 * They are what the fast kernels are tested against. */
#include "base/memory.h"
#include "device/cpu/plain/chain.h"
#include "device/cpu/plain/typed.h"
#include "tensor/window.h"

#include <string.h>

enum { CHANNELS_TOGETHER = 64 /* of a gradient of filters that are one a channel: a job */ };

/* The input cell that cell k of the window at output cell o lies on; negative in the padding. */
static inline int64_t input_cell(const twi_window *w, int side, int64_t o, int64_t k)
{
    int64_t cell = o * w->stride[side] - w->before[side] + k * w->dilation[side];
    return cell < w->image[side] ? cell : -1;
}

/* The output cell whose window has its cell k on this input cell; -1 if there is none. */
static inline int64_t output_cell(const twi_window *w, int side, int64_t input, int64_t k)
{
    int64_t start = input + w->before[side] - k * w->dilation[side];
    int64_t cell = start / w->stride[side];
    return start >= 0 && start % w->stride[side] == 0 && cell < w->output[side] ? cell : -1;
}

#define BODY "device/cpu/plain/conv.inl"
#include "device/cpu/plain/for_floats.h"

TWI_WIDENED(conv2d)
TWI_WIDENED(conv2d_backprop_input)
TWI_WIDENED(conv2d_backprop_filter)
TWI_WIDENED(depthwise)
TWI_WIDENED(depthwise_backprop_input)
TWI_WIDENED(depthwise_backprop_filter)

static tw_status accepts(const twi_prepare *p)
{
    const char *format = twi_attr_string(p->attrs, "data_format", "NHWC");
    if (strcmp(format, "NHWC") != 0)
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        "The %s op currently only supports the NHWC tensor format on the CPU. The op was given the "
                        "format: %s",
                        p->op, format);
    return TW_OK;
}

static tw_status prepare(twi_prepare *p, const twi_operand *image, const twi_operand *filter,
                         const twi_operand *output)
{
    twi_convolution *convolution = p->state = twi_alloc(sizeof *convolution);
    if (!convolution)
        return twi_fail_memory(p->error, "preparing a convolution");
    const twi_filters filters = strncmp(p->op, "Depthwise", 9) == 0 ? TWI_DEPTHWISE : TWI_GROUPED;
    tw_status status = twi_convolution_lay(p->attrs, filters, image->shape, filter->shape, output->shape, convolution,
                                           p->error);
    if (status != TW_OK)
        return status;
    /* What is empty may be as long as it likes along its other axes, and is not walked along them. */
    const twi_operand *walked = image == &p->outputs[0] ? image : output;
    if (walked->elements == 0)
        convolution->batch = 0;
    if (filter->elements == 0)
        convolution->window.size[0] = convolution->window.size[1] = 0;
    p->workspace = twi_widened_bytes(p);
    return TW_OK;
}

static tw_status prepare_forward(twi_prepare *p)
{
    return prepare(p, &p->inputs[0], &p->inputs[1], &p->outputs[0]);
}

static tw_status prepare_backprop_input(twi_prepare *p)
{
    tw_status status = prepare(p, &p->outputs[0], &p->inputs[1], &p->inputs[2]);
    if (status == TW_OK) /* the transposed filter; that of a narrow type is a float's */
        p->workspace += (size_t)p->inputs[1].elements *
                        (p->inputs[1].dtype == TW_FLOAT64 ? sizeof(double) : sizeof(float));
    return status;
}

static tw_status prepare_backprop_filter(twi_prepare *p)
{
    return prepare(p, &p->inputs[0], &p->outputs[0], &p->inputs[2]);
}

static tw_status prepare_fused(twi_prepare *p)
{
    return twi_chain_biased(p, "Conv2D");
}

static tw_status prepare_filter_bias(twi_prepare *p)
{
    static const twi_link links[] = {{"Conv2DBackpropFilter", 3, {0, 1, 2}, -1}, {"BiasAddGrad", 1, {2}, -2}};
    return twi_chain_prepare(p, true, links, 2);
}

#define FUSED_TYPES (TWI_NARROW_TYPES | TWI_TYPE(TW_FLOAT32))

const twi_kernel twi_cpu_conv_kernels[] = {
    TWI_FLOAT_ROWS("Conv2D", prepare_forward, conv2d, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("Conv2DBackpropInput", prepare_backprop_input, conv2d_backprop_input, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("Conv2DBackpropFilter", prepare_backprop_filter, conv2d_backprop_filter,
                   twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("DepthwiseConv2dNative", prepare_forward, depthwise, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("DepthwiseConv2dNativeBackpropInput", prepare_backprop_input, depthwise_backprop_input,
                   twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("DepthwiseConv2dNativeBackpropFilter", prepare_backprop_filter, depthwise_backprop_filter,
                   twi_free, .accepts = accepts),
    {"_FusedConv2D", "plain", FUSED_TYPES, prepare_fused, twi_chain_run, twi_chain_release, .accepts = accepts},
    {"_Conv2DBackpropFilterBias", "plain", FUSED_TYPES, prepare_filter_bias, twi_chain_run, twi_chain_release,
     .accepts = accepts},
    {0},
};
