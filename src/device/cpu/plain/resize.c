/* resize.c - images in another size. Each place along an axis of the output is a weighted sum of some places along the
 * axis of the input, its taps; height and width are independent. So a filter is a way to find taps, and a gradient is
 * the same sum the other way round. Images of all types are computed in float, gradients gathered in double. */
#include "device/cpu/plain/resize.h"

#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <string.h>

typedef enum filter { NEAREST, LINEAR, CUBIC, AREA } filter;

/* State, beside which the workspace has: taps of the rows and columns of the larger side, the widened image, and
 * for each thread a row that is blended of several. */
typedef struct resizing {
    filter filter;
    bool align, half;
    int taps; /* of one place, at most */
} resizing;

typedef struct tap {
    int64_t at;
    float weight;
} tap;

/* ---- values of any type ------------------------------------------------------------------------------------------ */

#define WIDEN(T, load)                                                                                                 \
    for (int64_t i = 0; i < count; i++)                                                                                \
        to[i] = (float)load(((const T *)from)[i]);                                                                     \
    break

void twi_widen_numbers(tw_dtype dtype, int64_t count, const void *from, float *to)
{
    switch (dtype) {
    case TW_FLOAT64:
        WIDEN(double, );
    case TW_FLOAT16:
        WIDEN(uint16_t, tw_half_to_float);
    case TW_BFLOAT16:
        WIDEN(uint16_t, tw_bfloat16_to_float);
    case TW_INT8:
        WIDEN(int8_t, );
    case TW_UINT8:
        WIDEN(uint8_t, );
    case TW_INT16:
        WIDEN(int16_t, );
    case TW_UINT16:
        WIDEN(uint16_t, );
    case TW_INT32:
        WIDEN(int32_t, );
    case TW_INT64:
        WIDEN(int64_t, );
    default:
        WIDEN(float, );
    }
}

#define NARROW(T, store)                                                                                               \
    for (int64_t i = 0; i < count; i++)                                                                                \
        ((T *)to)[i] = (T)store(from[i]);                                                                              \
    break
#define TO_HALF(x) tw_float_to_half((float)(x))
#define TO_BFLOAT16(x) tw_float_to_bfloat16((float)(x))

void twi_narrow_numbers(tw_dtype dtype, int64_t count, const double *from, void *to)
{
    switch (dtype) {
    case TW_FLOAT64:
        NARROW(double, );
    case TW_FLOAT16:
        NARROW(uint16_t, TO_HALF);
    case TW_BFLOAT16:
        NARROW(uint16_t, TO_BFLOAT16);
    case TW_INT8:
        NARROW(int8_t, );
    case TW_UINT8:
        NARROW(uint8_t, );
    case TW_INT32:
        NARROW(int32_t, );
    default:
        NARROW(float, );
    }
}

/* ---- taps -------------------------------------------------------------------------------------------------------- */

static int64_t within(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at < size ? at : size - 1;
}

/* How far apart neighbours of the output lie in the input. */
static float scale_of(const resizing *s, int64_t in, int64_t out)
{
    return s->align && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

/* Keys' cubic with a parameter, at a distance below 1 and at one from 1 to 2, in steps of 1/1024 as TensorFlow has it.
 */
static float near_cubic(float a, float x)
{
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}

static float far_cubic(float a, float x)
{
    x += 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static void cubic_taps(const resizing *s, float place, int64_t size, tap *taps)
{
    enum { STEPS = 1024 };
    float a = s->half ? -0.5f : -0.75f, sum = 0;
    float from = floorf(place), step = (float)lrintf((place - from) * STEPS) / STEPS;
    float weights[4] = {far_cubic(a, step), near_cubic(a, step), near_cubic(a, 1 - step), far_cubic(a, 1 - step)};
    for (int k = 0; k < 4; k++) {
        int64_t at = (int64_t)from - 1 + k;
        taps[k] = (tap){within(at, size), weights[k]};
        if (s->half && taps[k].at != at) /* beyond the border */
            taps[k].weight = 0;
        sum += taps[k].weight;
    }
    for (int k = 0; k < 4 && s->half && fabsf(sum) >= 1e-35f; k++)
        taps[k].weight /= sum;
}

/* What of the input's places the output's place covers. */
static void area_taps(const resizing *s, int64_t i, float scale, int64_t size, tap *taps)
{
    float begin = (float)i * scale, end = (float)(i + 1) * scale;
    int64_t at = (int64_t)floorf(begin);
    for (int k = 0; k < s->taps; k++, at++) {
        float left = (float)at > begin ? (float)at : begin, right = (float)(at + 1) < end ? (float)(at + 1) : end;
        taps[k] = (tap){within(at, size), right > left ? (right - left) / scale : 0};
    }
    if (scale == 0) /* one place is the whole input */
        taps[0].weight = 1;
}

/* The taps of all places of an output axis. */
static void find_taps(const resizing *s, int64_t in, int64_t out, tap *taps)
{
    float scale = scale_of(s, in, out);
    for (int64_t i = 0; i < out; i++, taps += s->taps) {
        float place = s->half ? ((float)i + 0.5f) * scale - (s->filter == NEAREST ? 0 : 0.5f) : (float)i * scale;
        float below = floorf(place);
        if (s->filter == NEAREST) {
            taps[0] = (tap){within((int64_t)(s->align ? roundf(place) : below), in), 1};
        } else if (s->filter == LINEAR) {
            taps[0] = (tap){within((int64_t)below, in), 1 - (place - below)};
            taps[1] = (tap){within((int64_t)ceilf(place), in), place - below};
        } else if (s->filter == CUBIC) {
            cubic_taps(s, place, in, taps);
        } else {
            area_taps(s, i, scale, in, taps);
        }
    }
}

/* ---- both ways --------------------------------------------------------------------------------------------------- */

/* [N,H,W,C] of the small side of a sum (the input, a gradient's output) and of its large one. */
typedef struct sides {
    const int64_t *from, *to;
    const tap *rows, *columns;
} sides;

/* Room for taps in the workspace, and for `count` values of a size behind them. */
static tw_status make_room(twi_prepare *p, resizing *s, tw_shape from, tw_shape to, size_t count, size_t size)
{
    float ratio = 1;
    for (int i = 1; i <= 2 && s->filter == AREA; i++)
        ratio = fmaxf(ratio, to.dims[i] ? scale_of(s, from.dims[i], to.dims[i]) : 1);
    s->taps = s->filter == NEAREST ? 1 : s->filter == LINEAR ? 2 : s->filter == CUBIC ? 4 : (int)fminf(ratio, 1e8f) + 2;
    if (to.dims[1] + to.dims[2] > INT32_MAX || (double)(to.dims[1] + to.dims[2]) * s->taps > 3e7)
        return twi_fail(p->error, TW_RESOURCE_EXHAUSTED, "%s '%s': %lld x %lld is too large", p->op, p->node,
                        (long long)to.dims[1], (long long)to.dims[2]);
    twi_make_room(&p->workspace, (size_t)(to.dims[1] + to.dims[2]) * (size_t)s->taps * sizeof(tap));
    twi_make_room(&p->workspace, count * size);
    return twi_keep(p, s, sizeof *s);
}

static sides lay_out(const twi_run *r, const int64_t *from, const int64_t *to, void **rest)
{
    const resizing *s = r->state;
    tap *rows = r->workspace, *columns = rows + to[1] * s->taps;
    size_t used = 0;
    find_taps(s, from[1], to[1], rows);
    find_taps(s, from[2], to[2], columns);
    twi_make_room(&used, (size_t)(to[1] + to[2]) * (size_t)s->taps * sizeof(tap));
    *rest = (char *)r->workspace + used;
    return (sides){from, to, rows, columns};
}

/* A row of the output. Equal neighbours give just their value. */
static void gather_linear(const resizing *s, const sides *z, const float *image, const tap *row, float *to)
{
    int64_t channels = z->from[3], pitch = z->from[2] * channels;
    const float *top = image + row[0].at * pitch, *low = image + row[1].at * pitch;
    for (int64_t x = 0; x < z->to[2]; x++, to += channels) {
        const tap *column = z->columns + x * s->taps;
        int64_t left = column[0].at * channels, right = column[1].at * channels;
        float by_x = column[1].weight, by_y = row[1].weight;
        for (int64_t c = 0; c < channels; c++) {
            float above = top[left + c] + (top[right + c] - top[left + c]) * by_x;
            float below = low[left + c] + (low[right + c] - low[left + c]) * by_x;
            to[c] = above + (below - above) * by_y;
        }
    }
}

/* The four rows become one, `blend` [from's row], and of that four columns one, in TensorFlow's order. */
static void gather_cubic(const resizing *s, const sides *z, const float *image, const tap *row, float *blend, float *to)
{
    int64_t channels = z->from[3], pitch = z->from[2] * channels;
    const float *a = image + row[0].at * pitch, *b = image + row[1].at * pitch;
    const float *c = image + row[2].at * pitch, *d = image + row[3].at * pitch;
    float by_a = row[0].weight, by_b = row[1].weight, by_c = row[2].weight, by_d = row[3].weight;
    TWI_VECTOR_LOOP
    for (int64_t i = 0; i < pitch; i++)
        blend[i] = a[i] * by_a + b[i] * by_b + c[i] * by_c + d[i] * by_d;
    for (int64_t x = 0; x < z->to[2]; x++, to += channels) {
        const tap *t = z->columns + x * s->taps;
        a = blend + t[0].at * channels, b = blend + t[1].at * channels;
        c = blend + t[2].at * channels, d = blend + t[3].at * channels;
        for (int64_t i = 0; i < channels; i++)
            to[i] = a[i] * t[0].weight + b[i] * t[1].weight + c[i] * t[2].weight + d[i] * t[3].weight;
    }
}

static void gather_area(const resizing *s, const sides *z, const float *image, const tap *row, float *to)
{
    int64_t channels = z->from[3], width = z->from[2];
    memset(to, 0, sizeof *to * (size_t)(z->to[2] * channels));
    for (int64_t place = 0; place < z->to[2]; place++, to += channels)
        for (int y = 0; y < s->taps; y++)
            for (int x = 0; x < s->taps; x++) {
                const tap *column = z->columns + place * s->taps + x;
                const float *pixel = image + (row[y].at * width + column->at) * channels;
                float weight = row[y].weight * column->weight;
                for (int64_t c = 0; c < channels && weight != 0; c++)
                    to[c] += weight * pixel[c];
            }
}

static void gather_row(const resizing *s, const sides *z, const float *image, const tap *row, float *blend, float *to)
{
    if (s->filter == LINEAR)
        gather_linear(s, z, image, row, to);
    else if (s->filter == CUBIC)
        gather_cubic(s, z, image, row, blend, to);
    else
        gather_area(s, z, image, row, to);
}

static tw_status check_size(const twi_run *r, const int64_t *in, const int64_t *out)
{
    if (in[1] <= 0 || in[2] <= 0 || out[1] <= 0 || out[2] <= 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': cannot resize %lld x %lld to %lld x %lld", r->node,
                        (long long)in[1], (long long)in[2], (long long)out[1], (long long)out[2]);
    return TW_OK;
}

static tw_status run(const twi_run *r)
{
    const resizing *s = r->state;
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    void *rest;
    tw_status status = check_size(r, in->shape.dims, out->shape.dims);
    if (status != TW_OK || out->elements == 0)
        return status;
    const sides z = lay_out(r, in->shape.dims, out->shape.dims, &rest);
    const float *image = in->dtype == TW_FLOAT32 ? r->inputs[0] : rest;
    float *blends = (float *)rest + (in->dtype == TW_FLOAT32 ? 0 : in->elements);
    if (in->dtype != TW_FLOAT32)
        twi_widen_numbers(in->dtype, in->elements, r->inputs[0], rest);
    int64_t size = z.from[1] * z.from[2] * z.from[3], rows = z.to[0] * z.to[1];
    int shares = twi_team_for(r, rows, out->elements * s->taps);
#pragma omp parallel for num_threads(shares)
    for (int share = 0; share < shares; share++)
        for (int64_t row = rows * share / shares; row < rows * (share + 1) / shares; row++)
            gather_row(s, &z, image + row / z.to[1] * size, z.rows + row % z.to[1] * s->taps,
                       blends + share * z.from[2] * z.from[3], (float *)r->outputs[0] + row * z.to[2] * z.to[3]);
    return TW_OK;
}

/* Copies, of any type. */
static tw_status run_nearest(const twi_run *r)
{
    const int64_t *in = r->input_operands[0].shape.dims, *out = r->output_operands[0].shape.dims;
    size_t pixel = (size_t)in[3] * tw_dtype_size(r->input_operands[0].dtype);
    void *rest;
    tw_status status = check_size(r, in, out);
    if (status != TW_OK || r->output_operands[0].elements == 0)
        return status;
    const sides z = lay_out(r, in, out, &rest);
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < out[0] * out[1]; row++)
        for (int64_t x = 0; x < out[2]; x++)
            memcpy((char *)r->outputs[0] + (size_t)(row * out[2] + x) * pixel,
                   (const char *)r->inputs[0] +
                       (size_t)((row / out[1] * in[1] + z.rows[row % out[1]].at) * in[2] + z.columns[x].at) * pixel,
                   pixel);
    return TW_OK;
}

/* grads [N,h,w,C] to the image's [N,H,W,C]. */
static tw_status run_grad(const twi_run *r)
{
    const resizing *s = r->state;
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    void *rest;
    tw_status status = check_size(r, in->shape.dims, out->shape.dims);
    if (status != TW_OK || out->elements == 0)
        return status;
    const sides z = lay_out(r, out->shape.dims, in->shape.dims, &rest);
    int64_t channels = z.from[3], width = z.from[2];
    double *sums = rest;
    float *grads = (float *)(void *)(sums + out->elements);
    const double *wide = in->dtype == TW_FLOAT64 ? r->inputs[0] : NULL;
    if (!wide)
        twi_widen_numbers(in->dtype, in->elements, r->inputs[0], grads);
    memset(sums, 0, sizeof *sums * (size_t)out->elements);
    for (int64_t pixel = 0; pixel < in->elements / (channels ? channels : 1); pixel++) {
        const tap *row = z.rows + pixel / z.to[2] % z.to[1] * s->taps, *column = z.columns + pixel % z.to[2] * s->taps;
        double *image = sums + pixel / (z.to[1] * z.to[2]) * z.from[1] * width * channels;
        for (int y = 0; y < s->taps; y++)
            for (int x = 0; x < s->taps; x++)
                for (int64_t c = 0; c < channels; c++)
                    image[(row[y].at * width + column[x].at) * channels + c] +=
                        (wide ? wide[pixel * channels + c] : grads[pixel * channels + c]) * row[y].weight *
                        column[x].weight;
    }
    twi_narrow_numbers(out->dtype, out->elements, sums, r->outputs[0]);
    return TW_OK;
}

/* ---- preparing --------------------------------------------------------------------------------------------------- */

static tw_status prepare(twi_prepare *p, filter filter, bool is_grad)
{
    resizing s = {.filter = filter,
                  .align = twi_attr_bool(p->attrs, "align_corners", false),
                  .half = twi_attr_bool(p->attrs, "half_pixel_centers", false)};
    const twi_operand *in = &p->inputs[0], *out = &p->outputs[0];
    if (s.align && s.half && !(is_grad && filter == NEAREST)) /* as TensorFlow has it */
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': align_corners and half_pixel_centers exclude each other", p->op, p->node);
    if (is_grad)
        return make_room(p, &s, out->shape, in->shape, (size_t)(out->elements * 2 + in->elements), sizeof(float));
    size_t widened = in->dtype == TW_FLOAT32 || filter == NEAREST ? 0 : (size_t)in->elements;
    size_t blends = filter == CUBIC ? (size_t)(in->shape.dims[2] * in->shape.dims[3]) * (size_t)p->threads : 0;
    return make_room(p, &s, in->shape, out->shape, widened + blends, sizeof(float));
}

#define PREPARE(name, filter, is_grad)                                                                                 \
    static tw_status name(twi_prepare *p)                                                                              \
    {                                                                                                                  \
        return prepare(p, filter, is_grad);                                                                            \
    }
PREPARE(prepare_nearest, NEAREST, false)
PREPARE(prepare_linear, LINEAR, false)
PREPARE(prepare_cubic, CUBIC, false)
PREPARE(prepare_area, AREA, false)
PREPARE(prepare_nearest_grad, NEAREST, true)
PREPARE(prepare_linear_grad, LINEAR, true)
PREPARE(prepare_cubic_grad, CUBIC, true)

const twi_kernel twi_cpu_resize_kernels[] = {
    {"ResizeNearestNeighbor", "plain", TWI_NUMBER_TYPES, prepare_nearest, run_nearest, twi_free},
    {"ResizeBilinear", "plain", TWI_NUMBER_TYPES, prepare_linear, run, twi_free},
    {"ResizeBicubic", "plain", TWI_NUMBER_TYPES, prepare_cubic, run, twi_free},
    {"ResizeArea", "plain", TWI_NUMBER_TYPES, prepare_area, run, twi_free},
    {"ResizeNearestNeighborGrad", "plain", TWI_NUMBER_TYPES, prepare_nearest_grad, run_grad, twi_free},
    {"ResizeBilinearGrad", "plain", TWI_FLOAT_TYPES, prepare_linear_grad, run_grad, twi_free},
    {"ResizeBicubicGrad", "plain", TWI_FLOAT_TYPES, prepare_cubic_grad, run_grad, twi_free},
    {0},
};
