/* strided.h - what x[begin:end:stride] selects: the arithmetic of StridedSlice, for shape rules and kernels alike. */
#ifndef TWI_STRIDED_H
#define TWI_STRIDED_H

#include "tensor/attr.h"

/* The parts of an index expression: count numbers each; NULL where the values are not known. */
typedef struct twi_strided_spec {
    int count; /* at most 32 */
    const int64_t *begin, *end, *stride;
    uint32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
} twi_strided_spec;

/* What it selects of a shape. Axis i of x contributes x[begin[i] + k * stride[i]] for k < size[i]; sizes that depend on
 * something unknown are -1. */
typedef struct twi_strided {
    int rank; /* of x */
    int64_t begin[TW_MAX_RANK], stride[TW_MAX_RANK], size[TW_MAX_RANK];
    tw_shape output; /* the sizes without the shrunk axes and with the new ones */
} twi_strided;

/* The masks of a StridedSlice op's attributes, with count and values left out. */
twi_strided_spec twi_strided_masks(const twi_attrs *attrs);
/* shape must have a known rank; its dimensions need not be known. */
tw_status twi_strided_resolve(const twi_strided_spec *spec, tw_shape shape, twi_strided *out, tw_error *error);

#endif
