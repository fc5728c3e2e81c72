/* quantize.c - floats rounded to the steps of a quantized range, which is moved so that 0 is one of its steps. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

typedef struct quantizing {
    float least, most; /* of quantized numbers */
    float min, max;    /* of attributes */
} quantizing;

/* A range from `low` to `high`, whose middle steps are `scale` apart. */
typedef struct range {
    float low, high, scale;
    bool is_empty; /* it was 0 to 0: then all is passed, or zero */
} range;

static tw_status prepare(twi_prepare *p)
{
    quantizing q = {.least = twi_attr_bool(p->attrs, "narrow_range", false) ? 1 : 0,
                    .most = (float)((1 << twi_attr_int(p->attrs, "num_bits", 8)) - 1),
                    .min = twi_attr_float(p->attrs, "min", -6),
                    .max = twi_attr_float(p->attrs, "max", 6)};
    if (p->num_inputs < 3 && !(q.min < q.max))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': min %g is not below max %g", p->op, p->node,
                        (double)q.min, (double)q.max);
    return twi_keep(p, &q, sizeof q);
}

static range find_range(const quantizing *q, float min, float max)
{
    range z = {.is_empty = min == 0 && max == 0};
    if (z.is_empty)
        return z;
    z.scale = (max - min) / (q->most - q->least);
    float zero = q->least - min / z.scale;
    zero = zero < q->least ? q->least : zero > q->most ? q->most : roundf(zero);
    z.low = (q->least - zero) * z.scale;
    z.high = (q->most - zero) * z.scale;
    return z;
}

/* The range of channel c; the limits are inputs `at` and behind, or attributes. */
static range range_of(const twi_run *r, int at, int64_t c)
{
    const quantizing *q = r->state;
    if (r->num_inputs <= at)
        return find_range(q, q->min, q->max);
    return find_range(q, ((const float *)r->inputs[at])[c], ((const float *)r->inputs[at + 1])[c]);
}

/* How many channels have ranges of their own. */
static int64_t num_channels(const twi_run *r, int at)
{
    return r->num_inputs > at ? r->input_operands[at].elements : 1;
}

/* Ties go where TensorFlow's order of operations takes them, which divides for one range that is an input, and else
 * multiplies. */
static tw_status quantize(const twi_run *r, bool divides)
{
    const float *x = r->inputs[0];
    float *y = r->outputs[0];
    int64_t channels = num_channels(r, 1);
    for (int64_t c = 0; c < channels; c++) {
        range z = range_of(r, 1, c);
        float inverse = z.is_empty ? 0 : 1 / z.scale, zero = floorf(-z.low * inverse + 0.5f);
        for (int64_t i = c; i < r->output_operands[0].elements; i += channels) {
            float inside = (x[i] < z.low ? z.low : x[i] > z.high ? z.high : x[i]) - z.low;
            float steps = divides ? inside / z.scale : inside * inverse;
            y[i] = z.is_empty ? 0 : floorf(steps - zero + 0.5f) * z.scale;
        }
    }
    return TW_OK;
}

static tw_status run(const twi_run *r)
{
    return quantize(r, false);
}

static tw_status run_vars(const twi_run *r)
{
    return quantize(r, true);
}

/* dy, x: dx where x is inside of the range, and what is below and above it goes to its limits. */
static tw_status run_grad(const twi_run *r)
{
    const float *dy = r->inputs[0], *x = r->inputs[1];
    float *dx = r->outputs[0];
    int64_t channels = num_channels(r, 2);
    for (int64_t c = 0; c < channels; c++) {
        range z = range_of(r, 2, c);
        double below = 0, above = 0;
        for (int64_t i = c; i < r->output_operands[0].elements; i += channels) {
            bool inside = z.is_empty || (x[i] >= z.low && x[i] <= z.high);
            dx[i] = inside ? dy[i] : 0;
            below += !z.is_empty && x[i] < z.low ? dy[i] : 0;
            above += !z.is_empty && x[i] > z.high ? dy[i] : 0;
        }
        if (r->num_outputs > 1) {
            ((float *)r->outputs[1])[c] = (float)below;
            ((float *)r->outputs[2])[c] = (float)above;
        }
    }
    return TW_OK;
}

const twi_kernel twi_cpu_quantize_kernels[] = {
    {"FakeQuantWithMinMaxArgs", "plain", 0, prepare, run, twi_free},
    {"FakeQuantWithMinMaxVars", "plain", 0, prepare, run_vars, twi_free},
    {"FakeQuantWithMinMaxVarsPerChannel", "plain", 0, prepare, run, twi_free},
    {"FakeQuantWithMinMaxArgsGradient", "plain", 0, prepare, run_grad, twi_free},
    {"FakeQuantWithMinMaxVarsGradient", "plain", 0, prepare, run_grad, twi_free},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", "plain", 0, prepare, run_grad, twi_free},
    {0},
};
