/* quantized.c - floats into the steps of a range and back, and sums in 32 bits into bytes. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/quantized.h"
#include "device/cpu/plain/typed.h"

#include <float.h>

/* MIN_COMBINED: the range's ends are the type's. MIN_FIRST: 0 is a step, too. SCALED: 0 is step 0. */
typedef enum mode { MIN_COMBINED, MIN_FIRST, SCALED } mode;

typedef struct quantizing {
    mode mode;
    bool even; /* halves go to the even step */
    int narrow, axis;
    float least_share; /* how small a part of its ends a range may be */
} quantizing;

static tw_status prepare(twi_prepare *p)
{
    const char *name = twi_attr_string(p->attrs, "mode", "MIN_COMBINED");
    quantizing q = {
        .mode = strcmp(name, "SCALED") == 0 ? SCALED : strcmp(name, "MIN_FIRST") == 0 ? MIN_FIRST : MIN_COMBINED,
        .even = strcmp(twi_attr_string(p->attrs, "round_mode", ""), "HALF_TO_EVEN") == 0,
        .narrow = twi_attr_bool(p->attrs, "narrow_range", false),
        .axis = (int)twi_attr_int(p->attrs, "axis", -1),
        .least_share = twi_attr_float(p->attrs, "ensure_minimum_range", 0.01f)};
    return twi_keep(p, &q, sizeof q);
}

/* The elements of one slice: `count` runs of `run`, `apart` from each other. */
typedef struct slice {
    int64_t begin, run, apart, count;
} slice;

static slice slice_of(tw_shape shape, int axis, int64_t i)
{
    if (axis < 0)
        return (slice){0, tw_shape_elements(shape), 0, 1};
    int64_t run = twi_elements_between(shape, axis + 1, shape.rank);
    return (slice){i * run, run, run * shape.dims[axis], twi_elements_between(shape, 0, axis)};
}

/* ---- to steps ---------------------------------------------------------------------------------------------------- */

/* With 0 inside, and ends that differ enough. */
static twi_range widen(twi_range given, float least_share)
{
    float low = fminf(0, given.low), size = fmaxf(1, fmaxf(fabsf(given.low), fabsf(given.high)));
    return (twi_range){low, fmaxf(0, fmaxf(given.high, low + size * least_share))};
}

/* Steps for one: the smaller of what the two sides allow. The range becomes what the ends of the type stand for. */
static float scale_of(twi_steps s, int narrow, twi_range *range)
{
    float least = (float)(s.least + narrow), most = (float)s.most;
    float of_low = least * range->low > 0 ? least / range->low : FLT_MAX;
    float of_high = most * range->high > 0 ? most / range->high : FLT_MAX;
    float scale = of_low < of_high ? of_low : of_high;
    *range = (twi_range){least / scale, most / scale};
    return scale;
}

static float cut(float x, twi_range range)
{
    return x > range.high ? range.high : x >= range.low ? x : range.low;
}

/* One slice. */
static twi_range quantize(const twi_run *r, const slice *s, twi_range range)
{
    const quantizing *q = r->state;
    const float *x = r->inputs[0];
    tw_dtype dtype = r->output_operands[0].dtype;
    twi_steps steps = twi_steps_of(dtype);
    float scale = q->mode == SCALED ? scale_of(steps, q->narrow, &range)
                                    : (float)(steps.most - steps.least) / (range.high - range.low);
    float half = steps.least < 0 ? (float)(steps.count / 2) : 0;
    twi_to_steps first = twi_to_steps_of(steps, range);
    for (int64_t k = 0; k < s->count; k++)
        for (int64_t i = s->begin + k * s->apart, end = i + s->run; i < end; i++) {
            float y;
            if (q->mode == MIN_FIRST)
                y = (float)twi_step_of(first, x[i]);
            else if (q->mode == SCALED)
                y = q->even ? rintf(cut(x[i], range) * scale) : roundf(cut(x[i], range) * scale);
            else if (half > 0)
                y = roundf((cut(x[i], range) - range.low) * scale - half);
            else
                y = (cut(x[i], range) - range.low) * scale + 0.5f;
            twi_put_integer(dtype, r->outputs[0], i, twi_within(steps, twi_whole_of_float(y)));
        }
    return range;
}

static tw_status run_quantize(const twi_run *r)
{
    const quantizing *q = r->state;
    for (int64_t i = 0; i < r->output_operands[1].elements; i++) {
        twi_range given = {((const float *)r->inputs[1])[i], ((const float *)r->inputs[2])[i]};
        if (given.high < given.low)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': input_max_range must be larger than input_min_range, got %g and %g", r->node,
                            (double)given.high, (double)given.low);
        slice s = slice_of(r->output_operands[0].shape, q->axis, i);
        twi_range range = quantize(r, &s, widen(given, q->least_share));
        ((float *)r->outputs[1])[i] = range.low;
        ((float *)r->outputs[2])[i] = range.high;
    }
    return TW_OK;
}

/* ---- from steps -------------------------------------------------------------------------------------------------- */

/* value = (step + before) * scale + after */
typedef struct line {
    float before, scale, after;
} line;

static line line_of(const quantizing *q, twi_steps s, twi_range range)
{
    if (q->mode == MIN_FIRST) {
        twi_from_steps f = twi_from_steps_of(s, range);
        return (line){0, f.scale, f.offset};
    }
    if (q->mode == SCALED) {
        float of_low = s.least ? range.low / (float)(s.least + q->narrow) : 0, of_high = range.high / (float)s.most;
        return (line){0, s.least && of_low > of_high ? of_low : of_high, 0};
    }
    float most = (float)s.most - (float)s.least;
    return (line){s.least ? (most + 1) / 2 : 0, (range.high - range.low) / most, range.low};
}

static tw_status run_dequantize(const twi_run *r)
{
    const quantizing *q = r->state;
    const twi_operand *in = &r->input_operands[0];
    bool narrow = r->output_operands[0].dtype == TW_BFLOAT16;
    int64_t slices = q->axis < 0 ? 1 : in->shape.dims[q->axis];
    bool whole = q->mode == SCALED && slices == 1;
    for (int64_t n = 0; n < slices; n++) {
        twi_range range = {((const float *)r->inputs[1])[n], ((const float *)r->inputs[2])[n]};
        line l = line_of(q, twi_steps_of(in->dtype), range);
        slice s = slice_of(in->shape, q->axis, n);
        for (int64_t k = 0; k < s.count; k++)
            for (int64_t i = s.begin + k * s.apart, end = i + s.run; i < end; i++) {
                float x = (float)twi_integer_at(in->dtype, r->inputs[0], i);
                x = whole ? (float)twi_whole_of_float(x) : x; /* 32 bits may have been rounded up to 2^31 */
                float y = (x + l.before) * l.scale + l.after;
                if (narrow)
                    ((uint16_t *)r->outputs[0])[i] = tw_float_to_bfloat16(y);
                else
                    ((float *)r->outputs[0])[i] = y;
            }
    }
    return TW_OK;
}

/* ---- into another range ------------------------------------------------------------------------------------------ */

/* What the least and the largest integer of input 0 stand for, 0 among it. */
static twi_range used_range(const twi_run *r)
{
    const int32_t *x = r->inputs[0];
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (int64_t i = 0; i < r->input_operands[0].elements; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    twi_steps s = twi_steps_of(TW_QINT32);
    twi_range given = twi_range_at(r, 1);
    return (twi_range){fminf(0, twi_value_of_step(s, least, given)), twi_value_of_step(s, most, given)};
}

/* Bytes are found in fixed point with 16 bits behind the point, rounded half up. */
static void into_bytes(const int32_t *x, int64_t count, twi_range from, twi_range to, uint8_t *y)
{
    float size = to.high - to.low, bytes_for_one = size == 0 ? 0 : (float)(255.0 / (double)size);
    float middle = (float)((double)(from.low + from.high) / 2);
    int64_t scale = size == 0 ? 0 : twi_whole(255.0 * 0x1p16 * (double)(from.high - from.low) / (double)size);
    int64_t offset = twi_whole(middle * bytes_for_one * 0x1p16f) + 0x8000;
    offset -= size == 0 ? 0 : twi_whole(round(0x1p16 * ((double)to.low * 255.0) / (double)size));
    for (int64_t i = 0; i < count; i++) {
        int64_t scaled = (int64_t)((uint64_t)x[i] * (uint64_t)scale) >> 32, byte = (scaled + offset) >> 16;
        y[i] = (uint8_t)(byte < 0 ? 0 : byte > 255 ? 255 : byte);
    }
}

static void requantize(const twi_run *r, twi_range to)
{
    const int32_t *x = r->inputs[0];
    int64_t count = r->input_operands[0].elements;
    tw_dtype dtype = r->output_operands[0].dtype;
    twi_range from = twi_range_at(r, 1);
    twi_from_steps f = twi_from_steps_of(twi_steps_of(TW_QINT32), from);
    twi_to_steps t = twi_to_steps_of(twi_steps_of(dtype), to);
    if (dtype == TW_QUINT8)
        into_bytes(x, count, from, to, r->outputs[0]);
    else
        for (int64_t i = 0; i < count; i++)
            twi_put_integer(dtype, r->outputs[0], i, twi_step_of(t, twi_float_of(f, x[i])));
    twi_put_range(r, to);
}

static tw_status run_used_range(const twi_run *r)
{
    twi_put_range(r, used_range(r));
    return TW_OK;
}

static tw_status run_shrink(const twi_run *r)
{
    requantize(r, used_range(r));
    return TW_OK;
}

static tw_status run_requantize(const twi_run *r)
{
    twi_range to = twi_range_at(r, 3);
    if (!(to.low <= 0))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': requested_output_min must be <= 0, but got %g", r->node,
                        (double)to.low);
    if (!(to.high >= to.low))
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': requested_output_max must be >= requested_output_min, but got %g and %g", r->node,
                        (double)to.high, (double)to.low);
    requantize(r, to);
    return TW_OK;
}

const twi_kernel twi_cpu_quantized_kernels[] = {
    {"QuantizeV2", "plain", 0, prepare, run_quantize, twi_free},
    {"Dequantize", "plain", 0, prepare, run_dequantize, twi_free},
    {"RequantizationRange", "plain", 0, NULL, run_used_range},
    {"Requantize", "plain", 0, NULL, run_requantize},
    {"QuantizeDownAndShrinkRange", "plain", 0, NULL, run_shrink},
    {0},
};
