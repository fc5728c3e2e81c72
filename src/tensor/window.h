/* window.h - how the windows of a convolution or a pool lie over an image.
 * Lives here:  strides, dilations and padding, read from a node's attributes and checked; sizes of outputs.
 * Never here:  arithmetic on pixels.
 *
 * Along each side, output cell o covers the input cells  o * stride - before + k * dilation,  0 <= k < size;
 * those outside of the image are padding. */
#ifndef TWI_WINDOW_H
#define TWI_WINDOW_H

#include "tensor/attr.h"

typedef struct twi_window {
    /* {height, width}; image, size and output are -1 where the shapes do not say */
    int64_t image[2], size[2], output[2];
    int64_t stride[2], dilation[2];
    int64_t before[2], after[2]; /* cells of padding above and left, below and right */
    int axis[2], channel_axis;   /* of the image: {1, 2}, 3 in NHWC; {2, 3}, 1 in NCHW */
} twi_window;

/* Of a convolution (attributes strides, dilations, padding, explicit_paddings, data_format) or, with `filter` NULL, of
 * a pool (ksize, strides, padding, explicit_paddings, data_format). Image and filter [kh,kw,...] may be unknown in
 * part or whole. The window always fits: every side of the output has at least 0 cells. */
tw_status twi_window_lay(const twi_attrs *attrs, tw_shape image, const tw_shape *filter, twi_window *window,
                         tw_error *error);

/* The same of a pool whose window and strides are operands, int32 [4]; NULL: not known yet, and nothing is laid. */
tw_status twi_window_lay_given(const twi_attrs *attrs, const tw_tensor *size, const tw_tensor *strides, tw_shape image,
                               twi_window *window, tw_error *error);

/* MaxPool alone also takes a window over channels, in NHWC: ksize and strides [1,1,1,k], k a divisor of the channels.
 * It lies over {width, channels}, and each row is an image of its own: axis {2, 3}, channel_axis 1. twi_window_lay()
 * refuses it with TW_UNIMPLEMENTED, so that kernels that know nothing of it leave it to others, as it does what reaches
 * over channels and more, which nobody takes. */
bool twi_window_reaches_channels(const twi_attrs *attrs);
bool twi_window_is_over_channels(const twi_attrs *attrs);
tw_status twi_window_lay_over_channels(const twi_attrs *attrs, tw_shape image, twi_window *window, tw_error *error);

/* Attributes of a pool that stands behind a convolution in one node, as a pool by itself has them. */
enum { TWI_POOL_ATTRS = 4 };
twi_attrs twi_pool_attrs(const twi_attrs *attrs, twi_attr items[TWI_POOL_ATTRS]);

/* [N, output, output, channels] in the order of the data format; N is the image's. */
tw_shape twi_window_output(const twi_window *window, tw_shape image, int64_t channels);

/* Dimension `axis` of a shape; -1 if it or the rank is not known. */
static inline int64_t twi_dimension(tw_shape shape, int axis)
{
    return shape.rank < 0 ? -1 : shape.dims[axis];
}

/* What a filter sees of an image's channels, and so what who lays a convolution takes. A grouped one may be dense: its
 * filter's shape alone says which it is. */
typedef enum twi_filters {
    TWI_DENSE,    /* all channels; groups are refused with TW_UNIMPLEMENTED, so that another kernel may take them */
    TWI_GROUPED,  /* those of its group: the i-th G-th of the filters sees the i-th G-th of the channels */
    TWI_DEPTHWISE /* one */
} twi_filters;

/* A convolution of whole tensors: image [N,H,W,C], filter [kh,kw,C/G,K], output [N,h,w,K]; depthwise: filter
 * [kh,kw,C,M], output [N,h,w,C*M]. Shapes may be unknown in part; what is known of the three must agree. */
typedef struct twi_convolution {
    twi_window window;
    int64_t batch, in_channels, out_channels; /* -1 where not known */
    int64_t groups;                           /* G; -1: not known; of depthwise ones 1 */
} twi_convolution;

/* A filter with its last axis first, [K,kh,kw,C], as some devices want it; and back. */
static inline tw_shape twi_transpose_filter(tw_shape filter)
{
    return filter.rank != 4 ? filter : TW_SHAPE(filter.dims[3], filter.dims[0], filter.dims[1], filter.dims[2]);
}

static inline tw_shape twi_transpose_filter_back(tw_shape filter)
{
    return filter.rank != 4 ? filter : TW_SHAPE(filter.dims[1], filter.dims[2], filter.dims[3], filter.dims[0]);
}

tw_status twi_convolution_lay(const twi_attrs *attrs, twi_filters filters, tw_shape image, tw_shape filter,
                              tw_shape output, twi_convolution *convolution, tw_error *error);

#endif
