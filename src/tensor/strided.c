/* strided.c - see strided.h. */
#include "tensor/strided.h"

#include "base/status.h"

twi_strided_spec twi_strided_masks(const twi_attrs *attrs)
{
    return (twi_strided_spec){
        .begin_mask = (uint32_t)twi_attr_int(attrs, "begin_mask", 0),
        .end_mask = (uint32_t)twi_attr_int(attrs, "end_mask", 0),
        .ellipsis_mask = (uint32_t)twi_attr_int(attrs, "ellipsis_mask", 0),
        .new_axis_mask = (uint32_t)twi_attr_int(attrs, "new_axis_mask", 0),
        .shrink_axis_mask = (uint32_t)twi_attr_int(attrs, "shrink_axis_mask", 0),
    };
}

static tw_status add_output(twi_strided *out, int64_t size, tw_error *error)
{
    if (out->output.rank == TW_MAX_RANK)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the slice has more than %d axes", TW_MAX_RANK);
    out->output.dims[out->output.rank++] = size;
    return TW_OK;
}

static tw_status take_whole(twi_strided *out, int axis, int64_t dim, tw_error *error)
{
    out->begin[axis] = 0;
    out->stride[axis] = 1;
    out->size[axis] = dim;
    return add_output(out, dim, error);
}

/* x[i]: one element, and the axis goes. */
static tw_status take_one(const twi_strided_spec *spec, int i, twi_strided *out, int axis, int64_t dim, tw_error *error)
{
    out->stride[axis] = 1;
    out->size[axis] = 1;
    if (spec->stride && spec->stride[i] <= 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "only stride 1 is allowed where an axis is shrunk (number %d)", i);
    if (!spec->begin || dim < 0)
        return TW_OK;
    int64_t at = spec->begin[i];
    if (at < -dim || at >= dim)
        return twi_fail(error, TW_INVALID_ARGUMENT, "slice index %lld of dimension %d out of bounds (size %lld)",
                        (long long)at, axis, (long long)dim);
    out->begin[axis] = at < 0 ? at + dim : at;
    return TW_OK;
}

/* A bound as an offset between `low` and `high`; counted from the end if negative. */
static int64_t clamp_bound(int64_t bound, int64_t dim, int64_t low, int64_t high)
{
    if (bound < 0)
        bound = bound < -dim ? -1 : bound + dim;
    return bound < low ? low : bound > high ? high : bound;
}

static tw_status take_range(const twi_strided_spec *spec, int i, twi_strided *out, int axis, int64_t dim,
                            tw_error *error)
{
    bool from_edge = spec->begin_mask >> i & 1, to_edge = spec->end_mask >> i & 1;
    int64_t stride = spec->stride ? spec->stride[i] : 0, size = -1;
    if (spec->stride && stride == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "strides[%d] must be non-zero", i);
    if (stride && dim >= 0 && (from_edge || spec->begin) && (to_edge || spec->end)) {
        /* both bounds as offsets; the end of a backward range may be -1 */
        int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
        int64_t begin = from_edge ? (stride > 0 ? low : high) : clamp_bound(spec->begin[i], dim, low, high);
        int64_t end = to_edge ? (stride > 0 ? high : low) : clamp_bound(spec->end[i], dim, low, high);
        int64_t distance = end - begin;
        size = distance == 0 || (distance < 0) != (stride < 0) ? 0 : (distance - (stride > 0 ? 1 : -1)) / stride + 1;
        out->begin[axis] = begin;
    }
    out->stride[axis] = stride;
    out->size[axis] = size;
    return add_output(out, size, error);
}

tw_status twi_strided_resolve(const twi_strided_spec *spec, tw_shape shape, twi_strided *out, tw_error *error)
{
    *out = (twi_strided){.rank = shape.rank};
    if (spec->count > 32)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the slice has %d numbers, expected at most 32", spec->count);
    if (spec->ellipsis_mask & (spec->ellipsis_mask - 1))
        return twi_fail(error, TW_INVALID_ARGUMENT, "multiple ellipses in a slice");
    int axis = 0;
    for (int i = 0; i < spec->count; i++) {
        tw_status status = TW_OK;
        if (spec->ellipsis_mask >> i & 1) {
            int after = 0; /* axes that the numbers after the ellipsis speak of */
            for (int k = i + 1; k < spec->count; k++)
                after += !(spec->new_axis_mask >> k & 1);
            for (; axis < shape.rank - after && status == TW_OK; axis++)
                status = take_whole(out, axis, shape.dims[axis], error);
        } else if (spec->new_axis_mask >> i & 1) {
            status = add_output(out, 1, error);
        } else if (axis == shape.rank) {
            return twi_fail(error, TW_INVALID_ARGUMENT, "the slice speaks of dimension %d, the input has only %d", axis,
                            shape.rank);
        } else if (spec->shrink_axis_mask >> i & 1) {
            status = take_one(spec, i, out, axis, shape.dims[axis], error);
            axis++;
        } else {
            status = take_range(spec, i, out, axis, shape.dims[axis], error);
            axis++;
        }
        if (status != TW_OK)
            return status;
    }
    for (; axis < shape.rank; axis++) {
        tw_status status = take_whole(out, axis, shape.dims[axis], error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}
