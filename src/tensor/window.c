/* window.c - laying windows over images. */
#include "tensor/window.h"

#include "base/status.h"
#include "tensor/tensor.h"

#include <string.h>

/* Sides, strides and dilations stay below this, so that no product of two overflows. */
#define LIMIT INT64_C(0x7fffffff)

static const char *const side_names[2] = {"height", "width"};

/* The entries of a list attribute of four for height and width; those for batch and channels must be `neutral`. */
static tw_status read_four(const twi_attrs *attrs, const char *name, const twi_window *w, int64_t neutral,
                           int64_t values[2], tw_error *error)
{
    int count;
    const int64_t *list = twi_attr_ints(attrs, name, &count);
    values[0] = values[1] = neutral;
    if (!twi_attr_find(attrs, name))
        return TW_OK;
    if (count != 4)
        return twi_fail(error, TW_INVALID_ARGUMENT, "attribute '%s' must have 4 entries, has %d", name, count);
    if (list[0] != neutral || list[w->channel_axis] != neutral)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "attribute '%s' must be %lld for batch and channels, is [%lld,%lld,%lld,%lld]", name,
                        (long long)neutral, (long long)list[0], (long long)list[1], (long long)list[2],
                        (long long)list[3]);
    for (int i = 0; i < 2; i++) {
        values[i] = list[w->axis[i]];
        if (values[i] < 1 || values[i] > LIMIT)
            return twi_fail(error, TW_INVALID_ARGUMENT, "attribute '%s' must be positive (and below 2^31), is %lld",
                            name, (long long)values[i]);
    }
    return TW_OK;
}

static tw_status read_explicit_paddings(const twi_attrs *attrs, twi_window *w, tw_error *error)
{
    int count;
    const int64_t *list = twi_attr_ints(attrs, "explicit_paddings", &count);
    if (count != 8)
        return twi_fail(error, TW_INVALID_ARGUMENT, "attribute 'explicit_paddings' must have 8 entries, has %d", count);
    for (int i = 0; i < 8; i++)
        if (list[i] < 0 || list[i] > LIMIT)
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "attribute 'explicit_paddings' must not be negative (nor reach 2^31), entry %d is %lld", i,
                            (long long)list[i]);
    if (list[0] || list[1] || list[2 * w->channel_axis] || list[2 * w->channel_axis + 1])
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "attribute 'explicit_paddings' must be 0 for batch and channels");
    for (int i = 0; i < 2; i++) {
        w->before[i] = list[2 * w->axis[i]];
        w->after[i] = list[2 * w->axis[i] + 1];
    }
    return TW_OK;
}

/* Output size and padding along one side. */
static tw_status lay_side(twi_window *w, int side, const char *padding, tw_error *error)
{
    int64_t image = w->image[side], size = w->size[side], stride = w->stride[side];
    if (image > LIMIT || size > LIMIT)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%s of image or window is 2^31 or more", side_names[side]);
    if (size == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%s of the window is 0", side_names[side]);
    w->output[side] = -1;
    bool same = strcmp(padding, "SAME") == 0;
    if (same && image >= 0)
        w->output[side] = (image + stride - 1) / stride;
    if (image < 0 || size < 0)
        return TW_OK;

    int64_t reach = (size - 1) * w->dilation[side] + 1; /* input cells from the first to the last of a window */
    if (same) {
        int64_t needed = (w->output[side] - 1) * stride + reach - image;
        if (needed < 0)
            needed = 0;
        w->before[side] = needed / 2;
        w->after[side] = needed - w->before[side];
        return TW_OK;
    }
    int64_t padded = image + w->before[side] + w->after[side];
    w->output[side] = (padded - reach + stride) / stride;
    if (w->output[side] < 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "window of %s %lld (dilation %lld) does not fit image of %s %lld with padding %s",
                        side_names[side], (long long)size, (long long)w->dilation[side], side_names[side],
                        (long long)image, padding);
    return TW_OK;
}

tw_status twi_window_lay(const twi_attrs *attrs, tw_shape image, const tw_shape *filter, twi_window *w,
                         tw_error *error)
{
    tw_status status = TW_OK;
    char text[128];
    bool channels_first = strcmp(twi_attr_string(attrs, "data_format", "NHWC"), "NCHW") == 0;
    const char *padding = twi_attr_string(attrs, "padding", "VALID");
    *w = (twi_window){.axis = {1, 2}, .channel_axis = 3};
    if (channels_first)
        *w = (twi_window){.axis = {2, 3}, .channel_axis = 1};

    if (image.rank >= 0 && image.rank != 4)
        return twi_fail(error, TW_INVALID_ARGUMENT, "images must be %s, got shape %s",
                        channels_first ? "[N,C,H,W]" : "[N,H,W,C]", tw_shape_text(image, text, sizeof text));
    if (!filter && twi_window_reaches_channels(attrs))
        return twi_fail(error, TW_UNIMPLEMENTED,
                        "a pool lies over height and width or, MaxPool on a CPU, over channels; not over both");
    if (filter && filter->rank >= 0 && filter->rank != 4)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the filter must have rank 4, got shape %s",
                        tw_shape_text(*filter, text, sizeof text));
    TWI_TRY(read_four(attrs, "strides", w, 1, w->stride, error));
    TWI_TRY(read_four(attrs, "dilations", w, 1, w->dilation, error));
    if (!filter)
        TWI_TRY(read_four(attrs, "ksize", w, 1, w->size, error));
    if (strcmp(padding, "EXPLICIT") == 0)
        TWI_TRY(read_explicit_paddings(attrs, w, error));
    for (int i = 0; i < 2; i++) {
        w->image[i] = twi_dimension(image, w->axis[i]);
        if (filter)
            w->size[i] = twi_dimension(*filter, i);
        /* A window of nothing but padding would have no maximum. */
        if (!filter && (w->before[i] >= w->size[i] || w->after[i] >= w->size[i]))
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "padding of a pool must be smaller than its window: %s %lld, padding %lld and %lld",
                            side_names[i], (long long)w->size[i], (long long)w->before[i], (long long)w->after[i]);
        TWI_TRY(lay_side(w, i, padding, error));
    }
done:
    return status;
}

tw_status twi_window_lay_given(const twi_attrs *attrs, const tw_tensor *size, const tw_tensor *strides, tw_shape image,
                               twi_window *w, tw_error *error)
{
    const tw_tensor *given[2] = {size, strides};
    int64_t numbers[2][4];
    twi_attr items[4];
    for (int k = 0; k < 2; k++) {
        if (!given[k] || given[k]->elements != 4)
            return twi_fail(error, TW_INVALID_ARGUMENT, "%s must be known and have 4 numbers", k ? "strides" : "ksize");
        for (int i = 0; i < 4; i++)
            numbers[k][i] = twi_tensor_int(given[k], i);
    }
    items[0] = tw_attr_ints("ksize", numbers[0], 4);
    items[1] = tw_attr_ints("strides", numbers[1], 4);
    items[2] = tw_attr_string("padding", twi_attr_string(attrs, "padding", "VALID"));
    items[3] = tw_attr_string("data_format", twi_attr_string(attrs, "data_format", "NHWC"));
    return twi_window_lay(&(twi_attrs){items, 4}, image, NULL, w, error);
}

bool twi_window_reaches_channels(const twi_attrs *attrs)
{
    int count;
    const int64_t *size = twi_attr_ints(attrs, "ksize", &count);
    return count == 4 && strcmp(twi_attr_string(attrs, "data_format", "NHWC"), "NHWC") == 0 && size[0] == 1 &&
           size[3] > 1;
}

bool twi_window_is_over_channels(const twi_attrs *attrs)
{
    int count;
    const int64_t *size = twi_attr_ints(attrs, "ksize", &count);
    return twi_window_reaches_channels(attrs) && size[1] == 1 && size[2] == 1;
}

tw_status twi_window_lay_over_channels(const twi_attrs *attrs, tw_shape image, twi_window *w, tw_error *error)
{
    int count;
    char text[128];
    int64_t size = twi_attr_ints(attrs, "ksize", &count)[3], channels;
    const int64_t *strides = twi_attr_ints(attrs, "strides", &count);
    if (image.rank >= 0 && image.rank != 4)
        return twi_fail(error, TW_INVALID_ARGUMENT, "images must be [N,H,W,C], got shape %s",
                        tw_shape_text(image, text, sizeof text));
    if (count != 4 || strides[0] != 1 || strides[1] != 1 || strides[2] != 1 || strides[3] != size)
        return twi_fail(error, TW_UNIMPLEMENTED, "a pool over %lld channels must have strides [1,1,1,%lld]",
                        (long long)size, (long long)size);
    channels = twi_dimension(image, 3);
    if (channels >= 0 && channels % size != 0)
        return twi_fail(error, TW_UNIMPLEMENTED, "a pool over %lld channels must divide those of the image, %lld",
                        (long long)size, (long long)channels);
    int64_t width = twi_dimension(image, 2);
    *w = (twi_window){.image = {width, channels}, .size = {1, size}, .stride = {1, size}, .dilation = {1, 1},
                      .output = {width, channels < 0 ? -1 : channels / size}, .axis = {2, 3}, .channel_axis = 1};
    return TW_OK;
}

twi_attrs twi_pool_attrs(const twi_attrs *attrs, twi_attr items[TWI_POOL_ATTRS])
{
    int rank[2];
    const int64_t *size = twi_attr_ints(attrs, "ksize", &rank[0]);
    const int64_t *strides = twi_attr_ints(attrs, "pool_strides", &rank[1]);
    items[0] = tw_attr_ints("ksize", size, rank[0]);
    items[1] = tw_attr_ints("strides", strides, rank[1]);
    items[2] = tw_attr_string("padding", twi_attr_string(attrs, "pool_padding", "VALID"));
    items[3] = tw_attr_string("data_format", twi_attr_string(attrs, "data_format", "NHWC"));
    return (twi_attrs){items, TWI_POOL_ATTRS};
}

tw_shape twi_window_output(const twi_window *w, tw_shape image, int64_t channels)
{
    tw_shape shape = {4, {twi_dimension(image, 0)}};
    shape.dims[w->axis[0]] = w->output[0];
    shape.dims[w->axis[1]] = w->output[1];
    shape.dims[w->channel_axis] = channels;
    return shape;
}

/* Channels of the image, and how many groups of them there are. */
static tw_status lay_channels(twi_convolution *c, twi_filters filters, tw_shape image, tw_shape filter, tw_error *error)
{
    char texts[2][128];
    int64_t taken = twi_dimension(filter, 2), made = twi_dimension(filter, 3);
    c->in_channels = twi_dimension(image, c->window.channel_axis);
    if (c->in_channels < 0 && filters != TWI_GROUPED)
        c->in_channels = taken;
    bool is_known = c->in_channels >= 0 && taken >= 0;
    c->groups = is_known || filters != TWI_GROUPED ? 1 : -1;
    if (!is_known || c->in_channels == taken)
        return TW_OK;
    tw_shape_text(image, texts[0], sizeof texts[0]);
    tw_shape_text(filter, texts[1], sizeof texts[1]);
    if (filters == TWI_DEPTHWISE || taken == 0 || c->in_channels == 0 || c->in_channels % taken != 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "image %s has %lld channels, filter %s takes %lld", texts[0],
                        (long long)c->in_channels, texts[1], (long long)taken);
    if (filters == TWI_DENSE)
        return twi_fail(error, TW_UNIMPLEMENTED,
                        "no convolution in groups (image %s has %lld channels, filter %s takes %lld)", texts[0],
                        (long long)c->in_channels, texts[1], (long long)taken);
    c->groups = c->in_channels / taken;
    if (made >= 0 && made % c->groups != 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "the %lld filters of %s cannot be divided among %lld groups of the channels of image %s",
                        (long long)made, texts[1], (long long)c->groups, texts[0]);
    return TW_OK;
}

tw_status twi_convolution_lay(const twi_attrs *attrs, twi_filters filters, tw_shape image, tw_shape filter,
                              tw_shape output, twi_convolution *c, tw_error *error)
{
    char texts[3][128];
    tw_status status = twi_window_lay(attrs, image, &filter, &c->window, error);
    if (status == TW_OK)
        status = lay_channels(c, filters, image, filter, error);
    if (status != TW_OK)
        return status;
    c->batch = twi_dimension(image, 0);
    c->out_channels = twi_dimension(filter, 3);
    if (filters == TWI_DEPTHWISE && c->out_channels >= 0) {
        if (c->in_channels < 0)
            c->out_channels = -1;
        else if (__builtin_mul_overflow(c->out_channels, c->in_channels, &c->out_channels))
            return twi_fail(error, TW_INVALID_ARGUMENT, "filter %s makes too many channels",
                            tw_shape_text(filter, texts[1], sizeof texts[1]));
    }
    tw_shape expected = twi_window_output(&c->window, image, c->out_channels);
    if (!tw_shape_compatible(expected, output))
        return twi_fail(error, TW_INVALID_ARGUMENT, "image %s and filter %s make %s, but the output has shape %s",
                        tw_shape_text(image, texts[0], sizeof texts[0]),
                        tw_shape_text(filter, texts[1], sizeof texts[1]),
                        tw_shape_text(expected, texts[2], sizeof texts[2]),
                        tw_shape_text(output, (char[128]){0}, 128));
    return TW_OK;
}
