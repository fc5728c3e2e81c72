/* quantized.h - what the steps of a range stand for: conversions between floats and small integers, and the ranges of
 * results. Arithmetic is TensorFlow's to the bit, float where it has floats and double where it has doubles.
 * Lives here:  one number, one range.
 * Never here:  loops over tensors. */
#ifndef TWI_QUANTIZED_H
#define TWI_QUANTIZED_H

#include "device/kernel.h"
#include "tensor/tensor.h" /* twi_integer_at(): steps are integers */

#include <math.h>

/* The integers of a type. */
typedef struct twi_steps {
    int64_t least, most;
    double count;
} twi_steps;

static inline twi_steps twi_steps_of(tw_dtype dtype)
{
    switch (dtype) {
    case TW_QINT8:
        return (twi_steps){INT8_MIN, INT8_MAX, 0x1p8};
    case TW_QUINT8:
        return (twi_steps){0, UINT8_MAX, 0x1p8};
    case TW_QINT16:
        return (twi_steps){INT16_MIN, INT16_MAX, 0x1p16};
    case TW_QUINT16:
        return (twi_steps){0, UINT16_MAX, 0x1p16};
    default:
        return (twi_steps){INT32_MIN, INT32_MAX, 0x1p32};
    }
}

/* The ends of a range. */
typedef struct twi_range {
    float low, high;
} twi_range;

static inline twi_range twi_range_at(const twi_run *r, int input)
{
    return (twi_range){*(const float *)r->inputs[input], *(const float *)r->inputs[input + 1]};
}

static inline void twi_put_range(const twi_run *r, twi_range range)
{
    *(float *)r->outputs[r->num_outputs - 2] = range.low;
    *(float *)r->outputs[r->num_outputs - 1] = range.high;
}

/* A whole number that is near enough for an int64_t; what is none is 0. */
static inline int64_t twi_whole(double x)
{
    return isnan(x) ? 0 : (int64_t)fmin(fmax(x, -0x1p61), 0x1p61);
}

/* As processors that TensorFlow runs on convert: what 32 bits cannot hold becomes the least number of 32 bits. */
static inline int64_t twi_whole_of_float(float x)
{
    return x >= -0x1p31f && x < 0x1p31f ? (int64_t)x : INT32_MIN;
}

static inline int64_t twi_within(twi_steps s, int64_t step)
{
    return step < s.least ? s.least : step > s.most ? s.most : step;
}

/* ---- by doubles: single numbers ---------------------------------------------------------------------------------- */

/* The step of a float, also one that the type has not. */
static inline int64_t twi_any_step(twi_steps s, float x, twi_range range)
{
    if (range.low == range.high)
        return s.least;
    double scale = s.count / ((double)(range.high - range.low) * (s.count / (s.count - 1)));
    return twi_whole(round(x * scale) - round(range.low * scale)) + s.least;
}

static inline int64_t twi_step(twi_steps s, float x, twi_range range)
{
    return twi_within(s, twi_any_step(s, x, range));
}

static inline float twi_value_of_step(twi_steps s, int64_t step, twi_range range)
{
    if (range.low == range.high)
        return range.low;
    double scale = (double)(range.high - range.low) * (s.count / (s.count - 1)) / s.count;
    double low = (double)roundf(range.low / (float)scale) * (double)(float)scale;
    return (float)(low + (double)(step - s.least) * scale);
}

/* ---- by floats: whole tensors ------------------------------------------------------------------------------------ */

/* What is found once for a range: value = offset + step * scale. */
typedef struct twi_from_steps {
    float offset, scale;
} twi_from_steps;

static inline twi_from_steps twi_from_steps_of(twi_steps s, twi_range range)
{
    float scale = (float)((double)(range.high - range.low) / (s.count - 1));
    float low = range.high == range.low ? range.low : roundf(range.low / scale) * scale;
    return (twi_from_steps){low - (float)s.least * scale, scale};
}

static inline float twi_float_of(twi_from_steps f, int32_t step)
{
    return f.offset + (float)step * f.scale;
}

/* step = round(value * scale) - offset, cut off at the ends; the last float below 2^31 is the largest of 32 bits. */
typedef struct twi_to_steps {
    float offset, scale, least, most;
} twi_to_steps;

static inline twi_to_steps twi_to_steps_of(twi_steps s, twi_range range)
{
    float scale = range.high == range.low ? 0 : (float)((s.count - 1) / (double)(range.high - range.low));
    return (twi_to_steps){roundf(range.low * scale) - (float)s.least, scale, (float)s.least,
                          s.most == INT32_MAX ? 0x1.fffffep30f : (float)s.most};
}

static inline int32_t twi_step_of(twi_to_steps t, float value)
{
    float step = roundf(value * t.scale) - t.offset;
    return (int32_t)(step > t.most ? t.most : step >= t.least ? step : t.least);
}

/* ---- ranges of results ------------------------------------------------------------------------------------------- */

/* Of products in 32 bits. */
static inline twi_range twi_range_of_products(twi_steps a, twi_range of_a, twi_steps b, twi_range of_b)
{
    float one = (of_a.high - of_a.low) / (float)(a.most - a.least);
    one *= (of_b.high - of_b.low) / (float)(b.most - b.least);
    return (twi_range){one * (float)INT32_MIN, one * (float)INT32_MAX};
}

/* Of sums in 32 bits: around 0, and `room` times as large as either. */
static inline twi_range twi_range_of_sums(twi_range a, twi_range b, int room)
{
    float most = a.high > -a.low ? a.high : -a.low, other = b.high > -b.low ? b.high : -b.low;
    most = (most > other ? most : other) * (float)room;
    return (twi_range){-most, most};
}

#endif
