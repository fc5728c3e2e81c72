/* volume.c - convolutions and pools of volumes [N,D,H,W,C], dilations of images and patches of both: plain loops
 * over windows. */
#include "device/fused/volume.h"

#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* The window of the output's place number `o` among all of a volume, at offset number `k` within: the place in the
 * input, in pixels; -1: in the padding. */
static int64_t place_of(const twi_volume *v, int64_t o, int64_t k)
{
    int64_t place = 0, stride = 1;
    for (int i = v->axes - 1; i >= 0; i--) {
        int64_t at = o % v->out[i] * v->stride[i] - v->before[i] + k % v->size[i] * v->dilation[i];
        if (at < 0 || at >= v->in[i])
            return -1;
        place += at * stride;
        stride *= v->in[i];
        o /= v->out[i];
        k /= v->size[i];
    }
    return place;
}

static int64_t product(const int64_t *dims, int count)
{
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        all *= dims[i];
    return all;
}

/* State: the windows. Those of convolutions have the filter's size, others an attribute's. */
static tw_status keep_windows(twi_prepare *p, const char *dilations, tw_shape image, const int64_t *size)
{
    twi_volume v;
    const char *why = twi_volume_lay(p->attrs, dilations, image.rank - 2, image.dims + 1, size, &v);
    if (why)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %s", p->op, p->node, why);
    p->workspace = twi_widened_bytes(p);
    return twi_keep(p, &v, sizeof v);
}

static tw_status prepare_conv(twi_prepare *p)
{
    return keep_windows(p, "dilations", p->inputs[0].shape, p->inputs[1].shape.dims);
}

static tw_status prepare_conv_input(twi_prepare *p)
{
    return keep_windows(p, "dilations", p->outputs[0].shape, p->inputs[1].shape.dims);
}

static tw_status prepare_conv_filter(twi_prepare *p)
{
    return keep_windows(p, "dilations", p->inputs[0].shape, p->outputs[0].shape.dims);
}

static tw_status prepare_pool(twi_prepare *p)
{
    int count;
    return keep_windows(p, "dilations", p->inputs[0].shape, twi_attr_ints(p->attrs, "ksize", &count) + 1);
}

static tw_status prepare_avg_grad(twi_prepare *p)
{
    int count;
    return keep_windows(p, "dilations", p->outputs[0].shape, twi_attr_ints(p->attrs, "ksize", &count) + 1);
}

static tw_status prepare_dilation(twi_prepare *p)
{
    return keep_windows(p, "rates", p->inputs[0].shape, p->inputs[1].shape.dims);
}

static tw_status prepare_patches(twi_prepare *p)
{
    int count;
    return keep_windows(p, "rates", p->inputs[0].shape, twi_attr_ints(p->attrs, "ksizes", &count) + 1);
}

#define BODY "device/cpu/plain/volume.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY

TWI_WIDENED(dilation)
TWI_WIDENED(dilation_input)
TWI_WIDENED(dilation_filter)
TWI_WIDENED(conv)
TWI_WIDENED(conv_input)
TWI_WIDENED(conv_filter)
TWI_WIDENED(max_pool)
TWI_WIDENED(max_pool_grad)
TWI_WIDENED(max_pool_grad_grad)
TWI_WIDENED(avg_pool)
TWI_WIDENED(avg_pool_grad)

/* A patch is its pixels side by side; zeros where they are padding. */
static tw_status run_patches(const twi_run *r)
{
    const twi_volume *v = r->state;
    tw_dtype dtype = r->input_operands[0].dtype;
    int64_t channels = r->input_operands[0].shape.dims[v->axes + 1], images = r->input_operands[0].shape.dims[0];
    int64_t outs = product(v->out, v->axes), ins = product(v->in, v->axes), window = product(v->size, v->axes);
    tw_status status = twi_clear_elements(r, r->output_operands[0].elements, dtype, r->outputs[0]);
    for (int64_t i = 0; i < images * outs && channels && status == TW_OK; i++)
        for (int64_t k = 0; k < window; k++) {
            int64_t place = place_of(v, i % outs, k);
            if (place >= 0)
                twi_copy_elements(channels, dtype,
                                  twi_element(r->inputs[0], dtype, (i / outs * ins + place) * channels),
                                  twi_element_of_output(r->outputs[0], dtype, (i * window + k) * channels));
        }
    return status;
}

const twi_kernel twi_cpu_volume_kernels[] = {
    TWI_FLOAT_ROWS("Conv3D", prepare_conv, conv, twi_free),
    TWI_FLOAT_ROWS("Conv3DBackpropInputV2", prepare_conv_input, conv_input, twi_free),
    TWI_FLOAT_ROWS("Conv3DBackpropFilterV2", prepare_conv_filter, conv_filter, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("MaxPool3D", prepare_pool, max_pool, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("MaxPool3DGrad", prepare_pool, max_pool_grad, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("MaxPool3DGradGrad", prepare_pool, max_pool_grad_grad, twi_free),
    TWI_FLOAT_ROWS("AvgPool3D", prepare_pool, avg_pool, twi_free),
    TWI_FLOAT_ROWS("AvgPool3DGrad", prepare_avg_grad, avg_pool_grad, twi_free),
    TWI_FLOAT_ROWS("Dilation2D", prepare_dilation, dilation, twi_free),
    TWI_FLOAT_ROWS("Dilation2DBackpropInput", prepare_dilation, dilation_input, twi_free),
    TWI_FLOAT_ROWS("Dilation2DBackpropFilter", prepare_dilation, dilation_filter, twi_free),
    {"ExtractImagePatches", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), prepare_patches, run_patches, twi_free},
    {"ExtractVolumePatches", "plain", TWI_NUMBER_TYPES, prepare_patches, run_patches, twi_free},
    {0},
};
