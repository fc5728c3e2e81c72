/* pool.c - MaxPool, AvgPool and their gradients in plain C: any type, window, stride and padding.
 * They are what the fast kernels are tested against. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/quantized.h"
#include "device/cpu/plain/typed.h"
#include "tensor/window.h"

#include <string.h>

enum { CHANNEL_BLOCK = 16 };

typedef struct pool {
    twi_window window;
    int64_t batch, channels;
    bool counts_batch; /* places are numbered through all images */
} pool;

/* Places from begin to before end. */
typedef struct span {
    int64_t begin, end;
} span;

/* The real input cells, padding left out, under the window of output cell o. */
static inline span cells_under(const twi_window *w, int side, int64_t o)
{
    int64_t begin = o * w->stride[side] - w->before[side], end = begin + w->size[side];
    return (span){begin < 0 ? 0 : begin, end > w->image[side] ? w->image[side] : end};
}

/* The output cells whose windows cover an input cell. */
static inline span windows_over(const twi_window *w, int side, int64_t input)
{
    int64_t last = (input + w->before[side]) / w->stride[side], first = input + w->before[side] - w->size[side] + 1;
    first = first <= 0 ? 0 : (first + w->stride[side] - 1) / w->stride[side];
    return (span){first, last < w->output[side] ? last + 1 : w->output[side]};
}

/* Where in dx the place is that input 2 says of window i; -1: nowhere. */
static int64_t place_in_all(const twi_run *r, int64_t i)
{
    const pool *p = r->state;
    int64_t all = r->output_operands[0].elements, place = twi_input_int(r, 2, i);
    if (!p->counts_batch && p->batch)
        place += i / (r->input_operands[1].elements / p->batch) * (all / p->batch);
    return place < all ? place : -1;
}

static tw_status fail_place(const twi_run *r, int64_t i)
{
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': place %lld is not in the image", r->node,
                    (long long)twi_input_int(r, 2, i));
}

#define BODY "device/cpu/plain/pool.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY
#define BODY "device/cpu/plain/average_pool.inl"
#include "device/cpu/plain/for_floats.h"

TWI_WIDENED(max_pool)
TWI_WIDENED(max_pool_grad)
TWI_WIDENED(max_pool_grad_grad)
TWI_WIDENED(max_pool_where)
TWI_WIDENED(max_pool_grad_where)
TWI_WIDENED(average_pool)
TWI_WIDENED(average_pool_grad)

static tw_status accepts(const twi_prepare *p)
{
    const char *format = twi_attr_string(p->attrs, "data_format", "NHWC");
    if (strcmp(format, "NHWC") != 0)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "Default %s only supports NHWC on device type CPU, got %s",
                        strncmp(p->op, "Max", 3) == 0 ? "MaxPoolingOp" : "AvgPoolingOp", format);
    return TW_OK;
}

static tw_status prepare(twi_prepare *p, const twi_operand *image, const twi_operand *output)
{
    char texts[2][128];
    pool *state = p->state = twi_alloc(sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, "preparing a pool");
    const twi_operand *last =
        &p->inputs[p->num_inputs - 1]; /* strides, behind the window, where no attribute says them */
    tw_status status =
        twi_attr_find(p->attrs, "ksize")
            ? twi_window_lay(p->attrs, image->shape, NULL, &state->window, p->error)
            : twi_window_lay_given(p->attrs, last[-1].value, last->value, image->shape, &state->window, p->error);
    state->batch = p->outputs[0].elements ? twi_dimension(image->shape, 0) : 0; /* other sides may be very long */
    state->channels = twi_dimension(image->shape, 3);
    tw_shape expected = twi_window_output(&state->window, image->shape, state->channels);
    if (status == TW_OK && !tw_shape_equal(expected, output->shape))
        status = twi_fail(p->error, TW_INVALID_ARGUMENT, "pooling makes %s of the image, but the output has shape %s",
                          tw_shape_text(expected, texts[0], sizeof texts[0]),
                          tw_shape_text(output->shape, texts[1], sizeof texts[1]));
    state->counts_batch = twi_attr_bool(p->attrs, "include_batch_in_index", false);
    p->workspace = twi_widened_bytes(p);
    return status;
}

static tw_status prepare_forward(twi_prepare *p)
{
    return prepare(p, &p->inputs[0], &p->outputs[0]);
}

/* Over channels each row is an image of one channel. */
static tw_status prepare_max(twi_prepare *p)
{
    tw_shape image = p->inputs[0].shape;
    if (!twi_window_is_over_channels(p->attrs))
        return prepare_forward(p);
    pool *state = p->state = twi_alloc(sizeof *state);
    if (!state)
        return twi_fail_memory(p->error, "preparing a pool");
    *state = (pool){.batch = p->outputs[0].elements ? image.dims[0] * image.dims[1] : 0, .channels = 1};
    p->workspace = twi_widened_bytes(p);
    return twi_window_lay_over_channels(p->attrs, image, &state->window, p->error);
}

/* Every window of a real image has a real cell; over an empty one, explicit padding makes windows that have none, of
 * which nothing is picked. */
static tw_status prepare_picking(twi_prepare *p)
{
    tw_status status = prepare_forward(p);
    if (status == TW_OK && p->inputs[0].elements == 0)
        ((pool *)p->state)->batch = 0;
    return status;
}

/* x, y, dy: dx */
static tw_status prepare_max_grad(twi_prepare *p)
{
    if (!tw_shape_equal(p->inputs[0].shape, p->outputs[0].shape))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the gradient must have the image's shape");
    return prepare(p, &p->inputs[0], &p->inputs[2]);
}

/* x, y, gradient of dx: gradient of dy */
static tw_status prepare_max_grad_grad(twi_prepare *p)
{
    if (!tw_shape_equal(p->inputs[0].shape, p->inputs[2].shape))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "the gradient must have the image's shape");
    return prepare_picking(p);
}

/* x, dy, places: dx */
static tw_status prepare_grad_where(twi_prepare *p)
{
    return prepare(p, &p->inputs[0], &p->inputs[1]);
}

/* shape of x, dy: dx */
static tw_status prepare_average_grad(twi_prepare *p)
{
    return prepare(p, &p->outputs[0], &p->inputs[1]);
}

/* ---- of steps of a range, which stays: means are those of the integers, rounded towards 0 ------------------------ */

static tw_status max_pool_of_steps(const twi_run *r)
{
    tw_status status = r->input_operands[0].dtype == TW_QINT8 ? max_pool_int8(r) : max_pool_uint8(r);
    twi_put_range(r, twi_range_at(r, 1));
    return status;
}

static tw_status average_pool_of_steps(const twi_run *r)
{
    const pool *p = r->state;
    const twi_window *w = &p->window;
    tw_dtype dtype = r->input_operands[0].dtype;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < p->batch * w->output[0] * w->output[1] * p->channels; i++) {
        int64_t place = i / p->channels, row = place / w->output[1], image = row / w->output[0] * w->image[0], sum = 0;
        span rows = cells_under(w, 0, row % w->output[0]), columns = cells_under(w, 1, place % w->output[1]);
        for (int64_t h = rows.begin; h < rows.end; h++)
            for (int64_t v = columns.begin; v < columns.end; v++)
                sum += twi_integer_at(dtype, r->inputs[0],
                                      ((image + h) * w->image[1] + v) * p->channels + i % p->channels);
        twi_put_integer(dtype, r->outputs[0], i, sum / ((rows.end - rows.begin) * (columns.end - columns.begin)));
    }
    twi_put_range(r, twi_range_at(r, 1));
    return TW_OK;
}

const twi_kernel twi_cpu_pool_kernels[] = {
    {"QuantizedMaxPool", "plain", 0, prepare_forward, max_pool_of_steps, twi_free},
    {"QuantizedAvgPool", "plain", 0, prepare_forward, average_pool_of_steps, twi_free},
    TWI_FLOAT_ROWS("MaxPool", prepare_max, max_pool, twi_free, .accepts = accepts),
    TWI_INTEGER_ROWS("MaxPool", prepare_max, max_pool, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("MaxPoolGrad", prepare_max_grad, max_pool_grad, twi_free, .accepts = accepts),
    TWI_INTEGER_ROWS("MaxPoolGrad", prepare_max_grad, max_pool_grad, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("MaxPoolGradGrad", prepare_max_grad_grad, max_pool_grad_grad, twi_free, .accepts = accepts),
    TWI_INTEGER_ROWS("MaxPoolGradGrad", prepare_max_grad_grad, max_pool_grad_grad, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("MaxPoolV2", prepare_forward, max_pool, twi_free, .accepts = accepts),
    TWI_INTEGER_ROWS("MaxPoolV2", prepare_forward, max_pool, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("MaxPoolGradV2", prepare_max_grad, max_pool_grad, twi_free, .accepts = accepts),
    TWI_INTEGER_ROWS("MaxPoolGradV2", prepare_max_grad, max_pool_grad, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("MaxPoolGradGradV2", prepare_max_grad_grad, max_pool_grad_grad, twi_free, .accepts = accepts),
    TWI_INTEGER_ROWS("MaxPoolGradGradV2", prepare_max_grad_grad, max_pool_grad_grad, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("MaxPoolWithArgmax", prepare_picking, max_pool_where, twi_free),
    TWI_INTEGER_ROWS("MaxPoolWithArgmax", prepare_picking, max_pool_where, twi_free),
    TWI_FLOAT_ROWS("MaxPoolGradWithArgmax", prepare_grad_where, max_pool_grad_where, twi_free),
    TWI_INTEGER_ROWS("MaxPoolGradWithArgmax", prepare_grad_where, max_pool_grad_where, twi_free),
    TWI_FLOAT_ROWS("AvgPool", prepare_forward, average_pool, twi_free, .accepts = accepts),
    TWI_FLOAT_ROWS("AvgPoolGrad", prepare_average_grad, average_pool_grad, twi_free, .accepts = accepts),
    {0},
};
