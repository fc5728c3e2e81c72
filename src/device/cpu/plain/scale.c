/* scale.c - ScaleAndTranslate: images in another size, by a filter of any width, scaled and shifted as two numbers each
 * say, and its gradient. A place along an axis of the output is a sum of the places of the input that the filter spans
 * there; rows are made first, then columns. All is computed in float, as TensorFlow does. */
#include "base/memory.h"
#include "device/cpu/plain/resize.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

static const float pi = 3.14159265358979f;

static float lanczos(float x, float radius)
{
    if (x > radius)
        return 0;
    return x <= 1e-3f ? 1 : radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float lanczos1(float x)
{
    return lanczos(x, 1);
}

static float lanczos3(float x)
{
    return lanczos(x, 3);
}

static float lanczos5(float x)
{
    return lanczos(x, 5);
}

static float gaussian(float x)
{
    return x >= 1.5f ? 0 : expf(-x * x * 2); /* a deviation of a third of the radius */
}

static float box(float x)
{
    return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}

static float triangle(float x)
{
    return x < 1 ? 1 - x : 0;
}

static float keys_cubic(float x)
{
    if (x >= 2)
        return 0;
    return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}

static float mitchell_cubic(float x)
{
    if (x >= 2)
        return 0;
    return x >= 1 ? ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9 : (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

/* A weight by the distance, which is not negative. */
typedef struct filter {
    const char *name;
    float radius;
    float (*weight)(float x);
} filter;

static const filter filters[] = {
    {"lanczos1", 1, lanczos1}, {"lanczos3", 3, lanczos3}, {"lanczos5", 5, lanczos5},       {"gaussian", 1.5f, gaussian},
    {"box", 0.5f, box},        {"triangle", 1, triangle}, {"keyscubic", 2, keys_cubic}, {"mitchellcubic", 2, mitchell_cubic},
};

typedef struct scaling {
    const filter *filter;
    bool antialias;
} scaling;

static tw_status prepare_scale(twi_prepare *p)
{
    const char *name = twi_attr_string(p->attrs, "kernel_type", "lanczos3");
    scaling s = {.antialias = twi_attr_bool(p->attrs, "antialias", true)};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (strcmp(name, filters[i].name) == 0)
            s.filter = &filters[i];
    if (!s.filter)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': Unrecognized kernel type: %s", p->op, p->node, name);
    return twi_keep(p, &s, sizeof s);
}

/* ---- spans ------------------------------------------------------------------------------------------------------- */

/* What each place of an axis is made of: `weights` of `width` places from `starts` on. */
typedef struct spans {
    int64_t count, width, *starts;
    float *weights;
} spans;

static void free_spans(spans *s)
{
    twi_free(s->starts);
    twi_free(s->weights);
}

/* One place, which lies at `at` in the input. */
static void find_span(const scaling *s, float at, float stretch, int64_t in, int64_t *start, int64_t width, float *weights)
{
    float reach = s->filter->radius * stretch, shrink = 1 / stretch, sum = 0, last = (float)(in - 1);
    int64_t begin = (int64_t)fminf(fmaxf(ceilf(at - reach - 0.5f), 0), last);
    int64_t end = (int64_t)fminf(fmaxf(floorf(at + reach - 0.5f), 0), last) + 1;
    end = end > in ? in : end; /* where a float has no room for the last number */
    end = end - begin > width ? begin + width : end;
    *start = begin;
    for (int64_t k = begin; k < end; k++)
        sum += weights[k - begin] = s->filter->weight(fabsf(((float)k + 0.5f - at) * shrink)); /* not divided: edges */
    for (int64_t k = begin; k < end; k++)
        weights[k - begin] = fabsf(sum) >= 1000 * 1.17549435e-38f ? weights[k - begin] / sum : 0;
}

static tw_status make_spans(const twi_run *r, int axis, int64_t in, int64_t out, spans *spans)
{
    const scaling *s = r->state;
    float scale = ((const float *)r->inputs[2])[axis], shift = ((const float *)r->inputs[3])[axis];
    float step = 1 / scale, stretch = s->antialias && step > 1 ? step : 1;
    if (!(scale > 0) || !isfinite(step) || !isfinite(shift))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': scale[%d] is %g and translation[%d] %g, expected a positive "
                                                       "scale, and numbers", r->node, axis, (double)scale, axis, (double)shift);
    double width = 2 * ceil((double)(s->filter->radius * stretch)) + 1;
    spans->count = out;
    spans->width = width < (double)in ? (int64_t)width : in;
    spans->starts = twi_alloc_array((size_t)out, sizeof *spans->starts);
    spans->weights = twi_alloc_array((size_t)out, (size_t)spans->width * sizeof *spans->weights);
    if (!spans->starts || !spans->weights)
        return twi_fail_memory(r->error, r->node);
    for (int64_t i = 0; i < out; i++) {
        float at = ((float)i + 0.5f) * step - step * shift;
        if (at >= 0 && at <= (float)in) /* what lies outside is nothing */
            find_span(s, at, stretch, in, &spans->starts[i], spans->width, spans->weights + i * spans->width);
    }
    return TW_OK;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* Adds to each of the axis' places, `size` numbers apart, the sum that its span says; or, the other way round, to the
 * places of the span what is at the place. */
static void add_spans(const spans *s, int64_t in, const float *from, float *to, int64_t size, bool back)
{
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t k = 0; k < s->width && s->starts[i] + k < in; k++) {
            float weight = s->weights[i * s->width + k];
            const float *x = from + (back ? i : s->starts[i] + k) * size;
            float *y = to + (back ? s->starts[i] + k : i) * size;
            for (int64_t c = 0; c < size && weight != 0; c++)
                y[c] += weight * x[c];
        }
}

/* An image [in.h,in.w,C] to [out.h,out.w,C], or back; `middle` has [out.h,in.w,C]. */
static void scale_image(const spans spans[2], const int64_t *in, const float *from, float *middle, float *to, bool back)
{
    int64_t rows = spans[0].count, columns = spans[1].count, channels = in[3];
    twi_clear(middle, sizeof *middle * (size_t)(rows * in[2] * channels));
    twi_clear(to, sizeof *to * (size_t)((back ? in[1] * in[2] : rows * columns) * channels));
    if (!back)
        add_spans(&spans[0], in[1], from, middle, in[2] * channels, false);
    for (int64_t y = 0; y < rows; y++)
        add_spans(&spans[1], in[2], (back ? from : middle) + y * (back ? columns : in[2]) * channels,
                  (back ? middle : to) + y * (back ? in[2] : columns) * channels, channels, back);
    if (back)
        add_spans(&spans[0], in[1], middle, to, in[2] * channels, true);
}

/* Images of shape `in` become what is given, or what is given becomes their gradient. */
static tw_status run_spans(const twi_run *r, const int64_t *in, const int64_t *out, bool back)
{
    spans axes[2] = {{0}, {0}};
    int64_t size = in[1] * in[2] * in[3], scaled = out[1] * out[2] * out[3], between = out[1] * in[2] * in[3];
    float *buffer = NULL;
    tw_dtype dtype = r->input_operands[0].dtype;
    tw_status status = TW_OK;
    if (in[0] * scaled == 0 || size == 0)
        return twi_clear(r->outputs[0], r->output_operands[0].bytes), TW_OK;
    for (int axis = 0; axis < 2 && status == TW_OK; axis++)
        status = make_spans(r, axis, in[1 + axis], out[1 + axis], &axes[axis]);
    if (status == TW_OK && !(buffer = twi_alloc_array((size_t)(size + between), sizeof *buffer)))
        status = twi_fail_memory(r->error, r->node);
    for (int64_t i = 0; i < in[0] && status == TW_OK; i++) {
        const float *from = buffer;
        if (dtype == TW_FLOAT32)
            from = (const float *)r->inputs[0] + i * (back ? scaled : size);
        else
            twi_widen_numbers(dtype, size, (const char *)r->inputs[0] + (size_t)(i * size) * tw_dtype_size(dtype), buffer);
        scale_image(axes, in, from, buffer + size, (float *)r->outputs[0] + i * (back ? size : scaled), back);
    }
    twi_free(buffer);
    free_spans(&axes[0]);
    free_spans(&axes[1]);
    return status;
}

static tw_status run_scale(const twi_run *r)
{
    return run_spans(r, r->input_operands[0].shape.dims, r->output_operands[0].shape.dims, false);
}

static tw_status run_scale_grad(const twi_run *r)
{
    return run_spans(r, r->output_operands[0].shape.dims, r->input_operands[0].shape.dims, true);
}

const twi_kernel twi_cpu_scale_kernels[] = {
    {"ScaleAndTranslate", "plain", 0, prepare_scale, run_scale, twi_free},
    {"ScaleAndTranslateGrad", "plain", 0, prepare_scale, run_scale_grad, twi_free},
    {0},
};
