/* quantized_math.c - products and sums of steps of a range, in 32 bits that wrap, and what gives bytes for bytes. */
#include "base/memory.h"
#include "device/cpu/plain/broadcast.h"
#include "device/cpu/plain/elementwise.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/quantized.h"
#include "device/cpu/plain/typed.h"
#include "tensor/window.h"

/* How much larger than their terms sums may grow, of biases and of others. */
enum { ROOM_OF_BIASES = 1 << 17, ROOM_OF_SUMS = 1 << 14 };

/* The step of 0 in the range of inputs `at` and behind. */
static uint32_t zero_of(const twi_run *r, int input, int at)
{
    return (uint32_t)twi_any_step(twi_steps_of(r->input_operands[input].dtype), 0, twi_range_at(r, at));
}

/* Inputs 0 and 1 have ranges in inputs 2 to 5. */
static void give_range_of_products(const twi_run *r)
{
    twi_put_range(r, twi_range_of_products(twi_steps_of(r->input_operands[0].dtype), twi_range_at(r, 2),
                                           twi_steps_of(r->input_operands[1].dtype), twi_range_at(r, 4)));
}

static tw_status expect_ranges(const twi_run *r, const char *first, const char *second)
{
    for (int i = 0; i < 2; i++) {
        twi_range range = twi_range_at(r, 2 + 2 * i);
        const char *name = i ? second : first;
        if (!(range.high > range.low))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': max_%s must be larger than min_%s, got %g and %g",
                            r->node, name, name, (double)range.high, (double)range.low);
    }
    return TW_OK;
}

/* ---- products of matrices ---------------------------------------------------------------------------------------- */

typedef struct transposes {
    bool a, b;
} transposes;

static tw_status prepare_product(twi_prepare *p)
{
    transposes t = {twi_attr_bool(p->attrs, "transpose_a", false), twi_attr_bool(p->attrs, "transpose_b", false)};
    return twi_keep(p, &t, sizeof t);
}

static tw_status run_product(const twi_run *r)
{
    const transposes *t = r->state;
    const uint8_t *a = r->inputs[0], *b = r->inputs[1];
    int32_t *y = r->outputs[0];
    tw_shape of_a = r->input_operands[0].shape, out = r->output_operands[0].shape;
    int64_t m = out.dims[0], n = out.dims[1], depth = of_a.dims[t->a ? 0 : 1];
    int64_t a_row = t->a ? 1 : depth, a_next = t->a ? m : 1, b_row = t->b ? 1 : n, b_next = t->b ? depth : 1;
    tw_status status = expect_ranges(r, "a", "b");
    if (status != TW_OK)
        return status;
    uint32_t zero_a = zero_of(r, 0, 2), zero_b = zero_of(r, 1, 4);
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            uint32_t sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += (a[i * a_row + k * a_next] - zero_a) * (b[k * b_row + j * b_next] - zero_b);
            y[i * n + j] = (int32_t)sum;
        }
    give_range_of_products(r);
    return TW_OK;
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

typedef struct convolution {
    twi_convolution laid;
    int64_t before[2]; /* cells above and left of the image */
} convolution;

static tw_status prepare_convolution(twi_prepare *p)
{
    convolution c;
    tw_status status = twi_convolution_lay(p->attrs, TWI_DENSE, p->inputs[0].shape, p->inputs[1].shape,
                                           p->outputs[0].shape, &c.laid, p->error);
    if (status != TW_OK)
        return status;
    const twi_window *w = &c.laid.window;
    for (int i = 0; i < 2; i++) /* TensorFlow's kernel puts windows into the middle, VALID ones too */
        c.before[i] = ((w->output[i] - 1) * w->stride[i] + w->size[i] - w->image[i]) / 2;
    return twi_keep(p, &c, sizeof c);
}

/* Adds what cell (h, v) of image `n`, or what lies there outside of it, gives each channel. */
static void add_cell(const twi_run *r, const convolution *c, int64_t n, const int64_t at[2], const uint8_t *filter,
                     const uint32_t zeros[3], uint32_t *sums)
{
    const twi_window *w = &c->laid.window;
    int64_t depth = c->laid.in_channels, channels = c->laid.out_channels;
    bool inside = at[0] >= 0 && at[0] < w->image[0] && at[1] >= 0 && at[1] < w->image[1];
    int64_t place = (n * w->image[0] + at[0]) * w->image[1] + at[1];
    const uint8_t *cell = inside ? (const uint8_t *)r->inputs[0] + place * depth : NULL;
    for (int64_t d = 0; d < depth; d++) {
        uint32_t x = (cell ? cell[d] : zeros[2]) - zeros[0];
        for (int64_t k = 0; k < channels; k++)
            sums[k] += x * (filter[d * channels + k] - zeros[1]);
    }
}

static tw_status run_convolution(const twi_run *r)
{
    const convolution *c = r->state;
    const twi_window *w = &c->laid.window;
    int64_t channels = c->laid.out_channels, cells = w->output[0] * w->output[1];
    uint32_t zeros[3] = {zero_of(r, 0, 2), zero_of(r, 1, 4)};
    /* Around the image stands 0's step in a byte; a range above 0 has none there, and 0 itself is taken. */
    zeros[2] = (int32_t)zeros[0] < 0 ? zeros[0] : (uint8_t)zeros[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < c->laid.batch * cells; i++) {
        uint32_t *sums = (uint32_t *)r->outputs[0] + i * channels;
        const uint8_t *filter = r->inputs[1];
        twi_clear(sums, sizeof *sums * (size_t)channels);
        for (int64_t h = 0; h < w->size[0]; h++)
            for (int64_t v = 0; v < w->size[1]; v++, filter += c->laid.in_channels * channels) {
                int64_t at[2] = {i % cells / w->output[1] * w->stride[0] - c->before[0] + h,
                                 i % w->output[1] * w->stride[1] - c->before[1] + v};
                add_cell(r, c, i / cells, at, filter, zeros, sums);
            }
    }
    give_range_of_products(r);
    return TW_OK;
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

/* Both in the range of sums, which is around 0; what its zero is beside 0 is taken off. */
static tw_status run_bias(const twi_run *r)
{
    const twi_operand *x = &r->input_operands[0], *bias = &r->input_operands[1];
    twi_range range = twi_range_of_sums(twi_range_at(r, 2), twi_range_at(r, 4), ROOM_OF_BIASES);
    twi_steps s = twi_steps_of(TW_QINT32);
    twi_to_steps t = twi_to_steps_of(s, range);
    twi_from_steps of_x = twi_from_steps_of(twi_steps_of(x->dtype), twi_range_at(r, 2));
    twi_from_steps of_bias = twi_from_steps_of(twi_steps_of(bias->dtype), twi_range_at(r, 4));
    uint32_t zero = (uint32_t)twi_step(s, 0, range);
    for (int64_t i = 0; i < x->elements; i++) {
        int32_t one = twi_step_of(t, twi_float_of(of_x, twi_integer_at(x->dtype, r->inputs[0], i)));
        int32_t two =
            twi_step_of(t, twi_float_of(of_bias, twi_integer_at(bias->dtype, r->inputs[1], i % bias->elements)));
        ((int32_t *)r->outputs[0])[i] = (int32_t)((uint32_t)one + (uint32_t)two + zero);
    }
    twi_put_range(r, range);
    return TW_OK;
}

/* A byte as a step among sums: at + byte * by, cut off at the ends of 32 bits. */
typedef struct lifted {
    int64_t at, by;
} lifted;

static lifted lift(twi_range from, twi_range to)
{
    twi_steps bytes = twi_steps_of(TW_QUINT8), sums = twi_steps_of(TW_QINT32);
    int64_t at = twi_any_step(sums, twi_value_of_step(bytes, 0, from), to);
    return (lifted){at, (int32_t)(twi_any_step(sums, twi_value_of_step(bytes, 1, from), to) - at)};
}

/* Of a single byte, which is converted by itself. */
static lifted lift_one(uint8_t byte, twi_range from, twi_range to)
{
    return (lifted){twi_step(twi_steps_of(TW_QINT32), twi_value_of_step(twi_steps_of(TW_QUINT8), byte, from), to), 0};
}

static uint32_t lifted_step(lifted l, uint8_t byte)
{
    return (uint32_t)twi_within(twi_steps_of(TW_QINT32), l.at + byte * l.by);
}

static tw_status run_sum(const twi_run *r)
{
    const twi_broadcast *b = r->state;
    tw_status status = expect_ranges(r, "x", "y");
    twi_range range = twi_range_of_sums(twi_range_at(r, 2), twi_range_at(r, 4), ROOM_OF_SUMS);
    if (status != TW_OK)
        return status;
    lifted of_x = lift(twi_range_at(r, 2), range), of_y = lift(twi_range_at(r, 4), range);
    if (r->input_operands[0].elements == 1)
        of_x = lift_one(*(const uint8_t *)r->inputs[0], twi_range_at(r, 2), range);
    else if (r->input_operands[1].elements == 1)
        of_y = lift_one(*(const uint8_t *)r->inputs[1], twi_range_at(r, 4), range);
    for (int64_t n = 0, i = 0, x, y; n < b->runs; n++) {
        twi_broadcast_start(b, n, &x, &y);
        for (int64_t k = 0; k < b->run; k++, i++, x += b->x_moves, y += b->y_moves)
            ((uint32_t *)r->outputs[0])[i] = lifted_step(of_x, ((const uint8_t *)r->inputs[0])[x]) +
                                             lifted_step(of_y, ((const uint8_t *)r->inputs[1])[y]);
    }
    twi_put_range(r, range);
    return TW_OK;
}

static tw_status run_pair_product(const twi_run *r)
{
    const twi_broadcast *b = r->state;
    tw_status status = expect_ranges(r, "x", "y");
    if (status != TW_OK)
        return status;
    uint32_t zero_x = zero_of(r, 0, 2), zero_y = zero_of(r, 1, 4);
    for (int64_t n = 0, i = 0, x, y; n < b->runs; n++) {
        twi_broadcast_start(b, n, &x, &y);
        for (int64_t k = 0; k < b->run; k++, i++, x += b->x_moves, y += b->y_moves)
            ((uint32_t *)r->outputs[0])[i] =
                (((const uint8_t *)r->inputs[0])[x] - zero_x) * (((const uint8_t *)r->inputs[1])[y] - zero_y);
    }
    give_range_of_products(r);
    return TW_OK;
}

/* ---- the range stays --------------------------------------------------------------------------------------------- */

/* Not below the step of 0, nor above that of `most`. */
static void rectify(const twi_run *r, const float *most)
{
    const twi_operand *x = &r->input_operands[0];
    twi_steps s = twi_steps_of(x->dtype);
    twi_range range = twi_range_at(r, 1);
    int64_t zero = twi_step(s, 0, range), last = most ? twi_step(s, *most, range) : s.most;
    for (int64_t i = 0; i < x->elements; i++) {
        int64_t step = twi_integer_at(x->dtype, r->inputs[0], i);
        step = step < zero ? zero : step;
        twi_put_integer(x->dtype, r->outputs[0], i, step > last ? last : step);
    }
    twi_put_range(r, range);
}

static tw_status accepts_rectified(const twi_prepare *p)
{
    if (p->inputs[0].dtype != p->outputs[0].dtype)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "Tinput and out_type must be the same, got %s and %s",
                        tw_dtype_name(p->inputs[0].dtype), tw_dtype_name(p->outputs[0].dtype));
    return TW_OK;
}

static tw_status run_relu(const twi_run *r)
{
    rectify(r, NULL);
    return TW_OK;
}

static tw_status run_relu6(const twi_run *r)
{
    rectify(r, &(float){6});
    return TW_OK;
}

static tw_status run_reshape(const twi_run *r)
{
    twi_copy_elements(r->input_operands[0].elements, r->input_operands[0].dtype, r->inputs[0], r->outputs[0]);
    twi_put_range(r, twi_range_at(r, 2));
    return TW_OK;
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

/* `count` elements into another range; they are copied where it is the same. */
static void move_into(const void *from, twi_range old, tw_dtype dtype, int64_t count, void *to, twi_range range)
{
    twi_steps s = twi_steps_of(dtype);
    twi_from_steps f = twi_from_steps_of(s, old);
    twi_to_steps t = twi_to_steps_of(s, range);
    bool same = old.low == range.low && old.high == range.high;
    for (int64_t i = 0; i < count; i++) {
        int32_t step = twi_integer_at(dtype, from, i);
        twi_put_integer(dtype, to, i, same ? step : twi_step_of(t, twi_float_of(f, step)));
    }
}

/* axis, values, lows, highs: the range holds all ends and 0, and of signed integers is around 0. */
static tw_status run_join(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    int axis, count = (r->num_inputs - 1) / 3;
    tw_status status = twi_input_axis(r, 0, 0, out->shape.rank, &axis);
    if (status != TW_OK)
        return status;
    twi_range range = {0, -INFINITY};
    for (int i = 1; i <= count; i++) {
        range.low = fminf(range.low, *(const float *)r->inputs[count + i]);
        range.high = fmaxf(range.high, *(const float *)r->inputs[2 * count + i]);
    }
    if (out->dtype == TW_QINT32) {
        range.high = fmaxf(fabsf(range.low), fabsf(range.high));
        range.low = -range.high;
    }
    int64_t inner = twi_elements_between(out->shape, axis + 1, out->shape.rank), at = 0;
    for (int64_t row = 0; row < twi_elements_between(out->shape, 0, axis); row++)
        for (int i = 1; i <= count; i++) {
            int64_t size = r->input_operands[i].shape.dims[axis] * inner;
            twi_range old = {*(const float *)r->inputs[count + i], *(const float *)r->inputs[2 * count + i]};
            move_into(twi_element(r->inputs[i], out->dtype, row * size), old, out->dtype, size,
                      twi_element_of_output(r->outputs[0], out->dtype, at), range);
            at += size;
        }
    twi_put_range(r, range);
    return TW_OK;
}

const twi_kernel twi_cpu_quantized_math_kernels[] = {
    {"QuantizedMatMul", "plain", 0, prepare_product, run_product, twi_free},
    {"QuantizedConv2D", "plain", 0, prepare_convolution, run_convolution, twi_free},
    {"QuantizedBiasAdd", "plain", 0, NULL, run_bias},
    {"QuantizedAdd", "plain", 0, twi_prepare_comparison, run_sum, twi_free},
    {"QuantizedMul", "plain", 0, twi_prepare_comparison, run_pair_product, twi_free},
    {"QuantizedRelu", "plain", 0, NULL, run_relu, NULL, accepts_rectified},
    {"QuantizedRelu6", "plain", 0, NULL, run_relu6, NULL, accepts_rectified},
    {"QuantizedReshape", "plain", 0, NULL, run_reshape},
    {"QuantizedConcat", "plain", 0, NULL, run_join},
    {0},
};
