/* crop.c - boxes cut out of images and resized: CropAndResize and its gradients. A box says the places of its corners
 * as parts of the image's height and width; what lies outside of the image has a value of its own, and no gradient. */
#include "base/memory.h"
#include "device/cpu/plain/resize.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <string.h>

typedef struct cropping {
    bool nearest;
    float outside;
} cropping;

/* What crops [n,h,w,C], boxes [n,4] and box_ind [n] are cut from. */
typedef struct cuts {
    const float *boxes;
    const int32_t *images;
    int64_t count, height, width, channels; /* of the crops */
    int64_t batch, image_height, image_width;
} cuts;

/* A place along an axis of the image. */
typedef struct place {
    bool inside;
    float at, part; /* how far behind `low` */
    int64_t low, high;
} place;

static place find_place(float from, float to, int64_t size, int64_t crop, int64_t i)
{
    float last = (float)(size - 1);
    place p = {.at = crop > 1 ? from * last + (float)i * ((to - from) * last / (float)(crop - 1))
                              : 0.5f * (from + to) * last};
    p.inside = p.at >= 0 && p.at <= last;
    if (!p.inside)
        return p;
    p.low = (int64_t)floorf(p.at);
    p.high = (int64_t)ceilf(p.at);
    p.part = p.at - (float)p.low;
    return p;
}

static tw_status check_cuts(const twi_run *r, const cuts *z, int indices)
{
    for (int64_t i = 0; i < z->count; i++)
        if (z->images[i] < 0 || z->images[i] >= z->batch)
            return twi_fail(r->error, TW_OUT_OF_RANGE, "'%s': box_index[%lld] of input %d is %d, of %lld images",
                            r->node, (long long)i, indices, z->images[i], (long long)z->batch);
    if (z->count && (z->image_height <= 0 || z->image_width <= 0 || z->height <= 0 || z->width <= 0))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': images and crops have some height and width", r->node);
    return TW_OK;
}

static cuts read_cuts(const twi_run *r, int boxes, tw_shape crops, tw_shape image)
{
    return (cuts){r->inputs[boxes], r->inputs[boxes + 1], crops.dims[0], crops.dims[1], crops.dims[2],
                  crops.dims[3],    image.dims[0],        image.dims[1], image.dims[2]};
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static float look(const float *image, const cuts *z, const place *y, const place *x, int64_t c, bool nearest)
{
    const float *at = image + c;
    int64_t row = z->image_width * z->channels, pixel = z->channels;
    if (nearest)
        return at[(int64_t)roundf(y->at) * row + (int64_t)roundf(x->at) * pixel];
    const float *top = at + y->low * row, *low = at + y->high * row;
    float above = top[x->low * pixel] + (top[x->high * pixel] - top[x->low * pixel]) * x->part;
    float below = low[x->low * pixel] + (low[x->high * pixel] - low[x->low * pixel]) * x->part;
    return above + (below - above) * y->part;
}

static tw_status run_crop(const twi_run *r)
{
    const cropping *s = r->state;
    const twi_operand *in = &r->input_operands[0];
    const cuts z = read_cuts(r, 1, r->output_operands[0].shape, in->shape);
    tw_status status = check_cuts(r, &z, 2);
    if (status != TW_OK || r->output_operands[0].elements == 0)
        return status;
    const float *images = in->dtype == TW_FLOAT32 ? r->inputs[0] : r->workspace;
    if (in->dtype != TW_FLOAT32)
        twi_widen_numbers(in->dtype, in->elements, r->inputs[0], r->workspace);
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < z.count * z.height; row++) {
        const float *box = z.boxes + row / z.height * 4;
        const float *image = images + z.images[row / z.height] * z.image_height * z.image_width * z.channels;
        place y = find_place(box[0], box[2], z.image_height, z.height, row % z.height);
        float *to = (float *)r->outputs[0] + row * z.width * z.channels;
        for (int64_t i = 0; i < z.width; i++) {
            place x = find_place(box[1], box[3], z.image_width, z.width, i);
            for (int64_t c = 0; c < z.channels; c++)
                *to++ = y.inside && x.inside ? look(image, &z, &y, &x, c, s->nearest) : s->outside;
        }
    }
    return TW_OK;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static void scatter(double *image, const cuts *z, const place *y, const place *x, int64_t c, float dy, bool nearest)
{
    double *at = image + c;
    int64_t row = z->image_width * z->channels, pixel = z->channels;
    if (nearest) {
        at[(int64_t)roundf(y->at) * row + (int64_t)roundf(x->at) * pixel] += dy;
        return;
    }
    float above = dy * (1 - y->part), below = dy * y->part;
    at[y->low * row + x->low * pixel] += above * (1 - x->part);
    at[y->low * row + x->high * pixel] += above * x->part;
    at[y->high * row + x->low * pixel] += below * (1 - x->part);
    at[y->high * row + x->high * pixel] += below * x->part;
}

static tw_status run_grad_image(const twi_run *r)
{
    const cropping *s = r->state;
    const twi_operand *out = &r->output_operands[0];
    const cuts z = read_cuts(r, 1, r->input_operands[0].shape, out->shape);
    const float *dy = r->inputs[0];
    double *sums = r->workspace;
    tw_status status = check_cuts(r, &z, 2);
    if (status == TW_OK && z.channels != out->shape.dims[3])
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': gradients of %lld channels, an image of %lld", r->node,
                          (long long)z.channels, (long long)out->shape.dims[3]);
    if (status != TW_OK || out->elements == 0)
        return status;
    memset(sums, 0, sizeof *sums * (size_t)out->elements);
    for (int64_t row = 0; row < z.count * z.height; row++) {
        const float *box = z.boxes + row / z.height * 4;
        double *image = sums + z.images[row / z.height] * z.image_height * z.image_width * z.channels;
        place y = find_place(box[0], box[2], z.image_height, z.height, row % z.height);
        for (int64_t i = 0; i < z.width; i++) {
            place x = find_place(box[1], box[3], z.image_width, z.width, i);
            for (int64_t c = 0; c < z.channels; c++, dy++)
                if (y.inside && x.inside)
                    scatter(image, &z, &y, &x, c, *dy, s->nearest);
        }
    }
    twi_narrow_numbers(out->dtype, out->elements, sums, r->outputs[0]);
    return TW_OK;
}

/* What a place moves by as a corner of its box does: the nearer one more. */
static void add_to_corners(float slope, int64_t size, int64_t crop, int64_t i, float *from, float *to)
{
    float last = (float)(size - 1), part = crop > 1 ? (float)i * (last / (float)(crop - 1)) : 0.5f * last;
    *from += slope * (last - part);
    *to += slope * part;
}

static tw_status run_grad_boxes(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[1];
    const cuts z = read_cuts(r, 2, r->input_operands[0].shape, in->shape);
    const float *dy = r->inputs[0], *images = in->dtype == TW_FLOAT32 ? r->inputs[1] : r->workspace;
    float *to = r->outputs[0];
    tw_status status = check_cuts(r, &z, 3);
    if (status != TW_OK)
        return status;
    if (in->dtype != TW_FLOAT32)
        twi_widen_numbers(in->dtype, in->elements, r->inputs[1], r->workspace);
    twi_clear(to, sizeof *to * (size_t)r->output_operands[0].elements);
    if (r->input_operands[0].elements == 0)
        return TW_OK;
    for (int64_t row = 0; row < z.count * z.height; row++) {
        const float *box = z.boxes + row / z.height * 4;
        float *corners = to + row / z.height * 4;
        const float *image = images + z.images[row / z.height] * z.image_height * z.image_width * z.channels;
        place y = find_place(box[0], box[2], z.image_height, z.height, row % z.height);
        for (int64_t i = 0; i < z.width; i++) {
            place x = find_place(box[1], box[3], z.image_width, z.width, i);
            for (int64_t c = 0; c < z.channels; c++, dy++) {
                if (!y.inside || !x.inside)
                    continue;
                int64_t line = z.image_width * z.channels;
                const float *top = image + y.low * line + c, *low = image + y.high * line + c;
                float top_left = top[x.low * z.channels], top_right = top[x.high * z.channels];
                float low_left = low[x.low * z.channels], low_right = low[x.high * z.channels];
                float by_y = (1 - x.part) * (low_left - top_left) + x.part * (low_right - top_right);
                float by_x = (1 - y.part) * (top_right - top_left) + y.part * (low_right - low_left);
                add_to_corners(by_y * *dy, z.image_height, z.height, row % z.height, &corners[0], &corners[2]);
                add_to_corners(by_x * *dy, z.image_width, z.width, i, &corners[1], &corners[3]);
            }
        }
    }
    return TW_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Room for an image of floats, or for sums in double. */
static tw_status prepare(twi_prepare *p, const twi_operand *image, size_t size)
{
    cropping s = {strcmp(twi_attr_string(p->attrs, "method", "bilinear"), "nearest") == 0,
                  twi_attr_float(p->attrs, "extrapolation_value", 0)};
    twi_make_room(&p->workspace, (size_t)image->elements * size);
    return twi_keep(p, &s, sizeof s);
}

static tw_status prepare_crop(twi_prepare *p)
{
    return prepare(p, &p->inputs[0], sizeof(float));
}

static tw_status prepare_grad_image(twi_prepare *p)
{
    return prepare(p, &p->outputs[0], sizeof(double));
}

static tw_status prepare_grad_boxes(twi_prepare *p)
{
    return prepare(p, &p->inputs[1], sizeof(float));
}

const twi_kernel twi_cpu_crop_kernels[] = {
    {"CropAndResize", "plain", TWI_NUMBER_TYPES, prepare_crop, run_crop, twi_free},
    {"CropAndResizeGradImage", "plain", TWI_FLOAT_TYPES, prepare_grad_image, run_grad_image, twi_free},
    {"CropAndResizeGradBoxes", "plain", TWI_NUMBER_TYPES, prepare_grad_boxes, run_grad_boxes, twi_free},
    {0},
};
