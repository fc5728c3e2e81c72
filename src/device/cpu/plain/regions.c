/* regions.c - boxes over images: drawn, and sampled as crops with TensorFlow's random numbers. */
#include "base/memory.h"
#include "base/word_stream.h"
#include "device/state/random.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static const float own_colors[10][4] = {{1, 1, 0, 1},     {0, 0, 1, 1},   {1, 0, 0, 1},   {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
                                        {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

typedef struct canvas {
    tw_dtype dtype;
    void *pixels; /* [H,W,C] */
    int64_t height, width, channels;
    float color[4];
} canvas;

static void dot(const canvas *c, int64_t y, int64_t x)
{
    for (int64_t k = 0; k < c->channels; k++) {
        int64_t at = (y * c->width + x) * c->channels + k;
        if (c->dtype == TW_FLOAT16)
            ((uint16_t *)c->pixels)[at] = tw_float_to_half(c->color[k]);
        else
            ((float *)c->pixels)[at] = c->color[k];
    }
}

/* A box's place along a side; what no integer holds lies outside. */
static int64_t place(float part, int64_t size)
{
    float at = part * (float)(size - 1);
    return at > -1e9f && at < 1e9f ? (int64_t)at : at >= 1e9f ? INT32_MAX : INT32_MIN;
}

static int64_t within(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at < size ? at : size - 1;
}

/* The sides that lie in the image, as far as they do. */
static void draw(const canvas *c, const float box[4])
{
    int64_t y0 = place(box[0], c->height), x0 = place(box[1], c->width);
    int64_t y1 = place(box[2], c->height), x1 = place(box[3], c->width);
    if (y0 > y1 || x0 > x1 || y0 >= c->height || y1 < 0 || x0 >= c->width || x1 < 0)
        return;
    for (int64_t x = within(x0, c->width); x <= within(x1, c->width); x++) {
        if (y0 >= 0)
            dot(c, y0, x);
        if (y1 < c->height)
            dot(c, y1, x);
    }
    for (int64_t y = within(y0, c->height); y <= within(y1, c->height); y++) {
        if (x0 >= 0)
            dot(c, y, x0);
        if (x1 < c->width)
            dot(c, y, x1);
    }
}

static void choose_color(const twi_run *r, int64_t box, canvas *c)
{
    const twi_operand *colors = r->num_inputs > 2 ? &r->input_operands[2] : NULL;
    int64_t given = colors ? colors->shape.dims[0] : 0, has = colors ? colors->shape.dims[1] : 4;
    for (int64_t k = 0; k < 4; k++)
        c->color[k] = !given         ? own_colors[box % 10][k]
                      : k < has      ? ((const float *)r->inputs[2])[box % given * has + k]
                                     : 0;
    if (c->channels == 1 && !given)
        c->color[0] = 1;
}

static tw_status run_draw(const twi_run *r)
{
    const twi_operand *images = &r->input_operands[0];
    const tw_shape *shape = &images->shape;
    int64_t boxes = r->input_operands[1].shape.dims[1];
    canvas c = {images->dtype, r->outputs[0], shape->dims[1], shape->dims[2], shape->dims[3], {0}};
    if (images->bytes)
        memcpy(r->outputs[0], r->inputs[0], images->bytes);
    if (r->num_inputs > 2 && r->input_operands[2].shape.dims[0] && r->input_operands[2].shape.dims[1] < c.channels)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': colors have %lld channels, the images %lld", r->node,
                        (long long)r->input_operands[2].shape.dims[1], (long long)c.channels);
    for (int64_t b = 0; b < shape->dims[0] && images->elements; b++) {
        c.pixels = (char *)r->outputs[0] + (size_t)b * (images->bytes / (size_t)shape->dims[0]);
        for (int64_t i = 0; i < boxes; i++) {
            choose_color(r, i, &c);
            draw(&c, (const float *)r->inputs[1] + (b * boxes + i) * 4);
        }
    }
    return TW_OK;
}

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

typedef struct sampling {
    twi_resource *stream; /* NULL: seeds are an input */
    float aspect[2], area[2], covered;
    int64_t attempts;
    bool whole; /* the image counts as a box where there is none */
} sampling;

typedef struct rectangle {
    int64_t x0, y0, x1, y1;
} rectangle;

/* Below n, all alike: what would favour some is drawn again. */
static int64_t next_below(twi_word_stream *w, uint32_t n)
{
    uint32_t word = twi_next_word(w), rest = UINT32_MAX % n + 1;
    if ((n & (n - 1)) == 0)
        return word & (n - 1);
    while (word < rest)
        word = twi_next_word(w);
    return word % n;
}

static int64_t area(rectangle r)
{
    return r.x1 > r.x0 && r.y1 > r.y0 ? (r.x1 - r.x0) * (r.y1 - r.y0) : 0;
}

static rectangle common(rectangle a, rectangle b)
{
    return (rectangle){a.x0 > b.x0 ? a.x0 : b.x0, a.y0 > b.y0 ? a.y0 : b.y0, a.x1 < b.x1 ? a.x1 : b.x1,
                       a.y1 < b.y1 ? a.y1 : b.y1};
}

/* A crop of that aspect ratio whose area lies within the limits; false: there is none. Float where TensorFlow has
 * float, so that the numbers drawn are the same. */
static bool draw_crop(const sampling *s, twi_word_stream *w, int64_t width, int64_t height, float aspect,
                      rectangle *crop)
{
    if (s->area[1] <= 0 || aspect <= 0 || width <= 0 || height <= 0 || s->area[0] > s->area[1])
        return false;
    float least = s->area[0] * (float)width * (float)height, most = s->area[1] * (float)width * (float)height;
    int64_t h = lrintf(sqrtf(least / aspect)), highest = lrintf(sqrtf(most / aspect));
    if (lrintf((float)highest * aspect) > width)
        highest = (int64_t)(((double)width + 0.5 - (double)0.0000001f) / (double)aspect);
    highest = highest > height ? height : highest;
    h = h >= highest ? highest : h;
    if (h < highest)
        h += next_below(w, (uint32_t)(highest - h + 1));
    int64_t across = lrintf((float)h * aspect);
    if ((float)(across * h) < least)
        across = lrintf((float)++h * aspect);
    if ((float)(across * h) > most)
        across = lrintf((float)--h * aspect);
    float size = (float)(across * h);
    if (size < least || size > most || across > width || h > height || across <= 0 || h <= 0)
        return false;
    int64_t y = h < height ? next_below(w, (uint32_t)(height - h)) : 0;
    int64_t x = across < width ? next_below(w, (uint32_t)(width - across)) : 0;
    *crop = (rectangle){x, y, x + across, y + h};
    return true;
}

static bool covers(const sampling *s, rectangle crop, const rectangle *boxes, int64_t count)
{
    for (int64_t i = 0; i < count && area(crop) >= 1; i++)
        if (area(boxes[i]) >= 1 && (float)area(common(crop, boxes[i])) / (float)area(boxes[i]) >= s->covered)
            return true;
    return false;
}

static int64_t side(const twi_run *r, int k)
{
    return twi_integer_at(r->input_operands[0].dtype, r->inputs[0], k);
}

static void give(const twi_run *r, int output, int k, int64_t value)
{
    twi_put_integer(r->input_operands[0].dtype, r->outputs[output], k, value);
}

static tw_status read_boxes(const twi_run *r, int64_t width, int64_t height, rectangle *boxes, int64_t count)
{
    const float *from = r->inputs[1];
    for (int64_t i = 0; i < 4 * count; i++)
        if (!(from[i] >= 0 && from[i] <= 1))
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': All bounding box coordinates must be in [0.0, 1.0]: %g is not", r->node, (double)from[i]);
    for (int64_t i = 0; i < count; i++, from += 4)
        boxes[i] = (rectangle){(int64_t)(from[1] * (float)width), (int64_t)(from[0] * (float)height),
                               (int64_t)(from[3] * (float)width), (int64_t)(from[2] * (float)height)};
    return TW_OK;
}

static tw_status run_sample(const twi_run *r)
{
    sampling s = *(const sampling *)r->state;
    int64_t height = side(r, 0), width = side(r, 1), count = r->input_operands[1].elements / 4;
    rectangle *boxes = r->workspace, image = {0, 0, width, height}, crop = image;
    if (height <= 0 || width <= 0 || height > INT32_MAX || width > INT32_MAX)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': an image of %lld x %lld cannot be cropped", r->node,
                        (long long)height, (long long)width);
    if (r->num_inputs > 2)
        s.covered = *(const float *)r->inputs[2];
    if (!(s.covered >= 0 && s.covered <= 1))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': min_object_covered must be in [0, 1], not %g", r->node,
                        (double)s.covered);
    tw_status status = read_boxes(r, width, height, boxes, count);
    if (status != TW_OK)
        return status;
    if (count == 0 && !s.whole)
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "'%s': no bounding boxes are given, and use_image_if_no_bounding_boxes is not set", r->node);
    if (count == 0)
        boxes[count++] = image;
    twi_word_stream w =
        twi_word_stream_of(s.stream ? twi_random_take(s.stream, (uint64_t)s.attempts) : twi_random_seeded(r, 3));
    for (int64_t i = 0; i < s.attempts; i++) {
        float aspect = twi_uniform_float(twi_next_word(&w)) * (s.aspect[1] - s.aspect[0]) + s.aspect[0];
        if (draw_crop(&s, &w, width, height, aspect, &crop) && covers(&s, crop, boxes, count))
            break;
        crop = image;
    }
    give(r, 0, 0, crop.y0), give(r, 0, 1, crop.x0), give(r, 0, 2, 0);
    give(r, 1, 0, crop.y1 - crop.y0), give(r, 1, 1, crop.x1 - crop.x0), give(r, 1, 2, -1);
    float *box = r->outputs[2];
    box[0] = (float)crop.y0 / (float)height;
    box[1] = (float)crop.x0 / (float)width;
    box[2] = (float)crop.y1 / (float)height;
    box[3] = (float)crop.x1 / (float)width;
    return TW_OK;
}

static bool read_range(const twi_prepare *p, const char *name, float limits[2])
{
    const twi_attr *attr = twi_attr_find(p->attrs, name);
    for (int i = 0; i < 2 && attr->count == 2; i++)
        limits[i] = attr->floats[i];
    return attr->count == 2 && limits[0] > 0 && limits[1] > 0 && limits[0] <= limits[1];
}

static tw_status prepare_seeded_sample(twi_prepare *p)
{
    sampling s = {.covered = (float)twi_attr_float(p->attrs, "min_object_covered", 0.1),
                  .attempts = twi_attr_int(p->attrs, "max_attempts", 100),
                  .whole = twi_attr_bool(p->attrs, "use_image_if_no_bounding_boxes", false)};
    if (!read_range(p, "aspect_ratio_range", s.aspect) || !read_range(p, "area_range", s.area) || s.area[1] > 1 ||
        s.attempts < 1)
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': aspect_ratio_range and area_range are two positive numbers that rise, areas are at most "
                        "1, and max_attempts is positive",
                        p->op, p->node);
    p->workspace = (size_t)(p->inputs[1].elements / 4 + 1) * sizeof(rectangle);
    return twi_keep(p, &s, sizeof s);
}

static tw_status prepare_sample(twi_prepare *p)
{
    twi_resource *stream = NULL;
    tw_status status = twi_random_find(p, &stream);
    if (status == TW_OK)
        status = prepare_seeded_sample(p);
    if (status == TW_OK)
        ((sampling *)p->state)->stream = stream;
    return status;
}

const twi_kernel twi_cpu_regions_kernels[] = {
    {"DrawBoundingBoxes", "plain", 0, NULL, run_draw},
    {"DrawBoundingBoxesV2", "plain", 0, NULL, run_draw},
    {"SampleDistortedBoundingBox", "plain", 0, prepare_sample, run_sample, twi_free},
    {"SampleDistortedBoundingBoxV2", "plain", 0, prepare_sample, run_sample, twi_free},
    {"StatelessSampleDistortedBoundingBox", "plain", 0, prepare_seeded_sample, run_sample, twi_free},
    {0},
};
