/* volume.h - how the windows of convolutions and pools lie in volumes [N,D,H,W,C], and patches in images, for shape
 * rules and kernels. Along each axis, output place o covers the input places o * stride - before + k * dilation. */
#ifndef TWI_VOLUME_H
#define TWI_VOLUME_H

#include "tensor/attr.h"

#include <string.h>

enum { TWI_VOLUME_AXES = 3 };

typedef struct twi_volume {
    int axes;                                                                 /* 2 of images, 3 */
    int64_t in[TWI_VOLUME_AXES], size[TWI_VOLUME_AXES], out[TWI_VOLUME_AXES]; /* -1: not known */
    int64_t stride[TWI_VOLUME_AXES], dilation[TWI_VOLUME_AXES], before[TWI_VOLUME_AXES];
} twi_volume;

/* The number of axis i (0 the batch) in a list attribute; 1 if there is none. */
static inline int64_t twi_volume_number(const twi_attrs *attrs, const char *name, int i)
{
    int count;
    const int64_t *values = twi_attr_ints(attrs, name, &count);
    return i < count ? values[i] : 1;
}

/* Lays windows of `size`, with strides and padding of the attributes. NULL, or what is wrong. */
static inline const char *twi_volume_lay(const twi_attrs *attrs, const char *dilations, int axes, const int64_t *in,
                                         const int64_t *size, twi_volume *v)
{
    bool same = strcmp(twi_attr_string(attrs, "padding", "VALID"), "SAME") == 0;
    *v = (twi_volume){.axes = axes};
    if (twi_volume_number(attrs, "strides", 0) != 1 || twi_volume_number(attrs, "strides", axes + 1) != 1 ||
        twi_volume_number(attrs, dilations, 0) != 1 || twi_volume_number(attrs, dilations, axes + 1) != 1)
        return "strides and dilations of batch and channels are 1";
    for (int i = 0; i < axes; i++) {
        v->in[i] = in[i];
        v->size[i] = size[i];
        v->stride[i] = twi_volume_number(attrs, "strides", i + 1);
        v->dilation[i] = twi_volume_number(attrs, dilations, i + 1);
        v->out[i] = -1;
        if (v->stride[i] < 1 || v->dilation[i] < 1 || v->stride[i] > INT32_MAX || v->dilation[i] > INT32_MAX)
            return "strides and dilations are positive";
        if (size[i] == 0 || size[i] > INT32_MAX)
            return "windows have some size";
        if (in[i] < 0 || size[i] < 0)
            continue;
        int64_t reach = (size[i] - 1) * v->dilation[i] + 1;
        v->out[i] = same ? (in[i] + v->stride[i] - 1) / v->stride[i] : (in[i] - reach + v->stride[i]) / v->stride[i];
        if (v->out[i] < 0)
            return "a window is larger than what it lies in";
        int64_t padding = (v->out[i] - 1) * v->stride[i] + reach - in[i];
        v->before[i] = same && padding > 0 ? padding / 2 : 0;
    }
    return NULL;
}

#endif
