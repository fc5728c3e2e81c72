/* array.c - ops that make, shape, cut, join and rearrange arrays. Rows, shape rules, builders.
 * Never here: gradient rules (array_gradients.c), kernels (src/device). */
#include "graph/graph.h"
#include "ops/build.h"
#include "ops/gradients.h"
#include "ops/rules.h"
#include "ops/types.h"
#include "tensor/strided.h"
#include "tensor/tensor.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <tower/ops.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

#define FAIL(c, ...) twi_fail((c)->error, TW_INVALID_ARGUMENT, __VA_ARGS__)

static tw_shape unknown_of_rank(int rank)
{
    tw_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = -1;
    return shape;
}

static tw_status check_rank(twi_inference *c, int rank)
{
    return rank <= TW_MAX_RANK ? TW_OK
                               : twi_fail(c->error, TW_UNIMPLEMENTED, "the result has %d axes, expected at most %d", rank,
                                          TW_MAX_RANK);
}

/* *axis counted from the front; `limit` axes exist. */
static tw_status normal_axis(twi_inference *c, int64_t *axis, int limit)
{
    if (*axis < -limit || *axis >= limit)
        return FAIL(c, "axis %lld, expected -%d to %d", (long long)*axis, limit, limit - 1);
    *axis += *axis < 0 ? limit : 0;
    return TW_OK;
}

/* The shape that input i spells: its dimensions if they are known, its rank if that is. -1 is allowed as an unknown
 * dimension when `open`. */
static tw_status spelled_shape(twi_inference *c, int i, bool open, tw_shape *shape)
{
    tw_shape of_input = c->inputs[i];
    const tw_tensor *value = twi_ask_value(c, i);
    *shape = TW_UNKNOWN_SHAPE;
    if (of_input.rank < 0)
        return TW_OK;
    if (of_input.rank != 1)
        return twi_expect_rank(c, i, 1);
    if (of_input.dims[0] < 0)
        return TW_OK;
    if (of_input.dims[0] > TW_MAX_RANK)
        return check_rank(c, of_input.dims[0] > 1000 ? 1000 : (int)of_input.dims[0]);
    *shape = value ? twi_shape_of_value(value) : unknown_of_rank((int)of_input.dims[0]);
    for (int k = 0; value && k < shape->rank; k++)
        if (shape->dims[k] < (open ? -1 : 0))
            return FAIL(c, "dimension %d of the shape is %lld", k, (long long)shape->dims[k]);
    return TW_OK;
}

static tw_status const_shape(twi_inference *c)
{
    const tw_tensor *value = twi_attr_tensor(c->attrs, "value");
    if (!value)
        return FAIL(c, "attribute 'value' holds no tensor");
    if (value->dtype != c->output_types[0])
        return FAIL(c, "the value is %s, attribute 'dtype' says %s", tw_dtype_name(value->dtype),
                    tw_dtype_name(c->output_types[0]));
    if (value->dtype == TW_RESOURCE) /* whose elements are no bytes to copy */
        return FAIL(c, "a constant is a handle: only nodes make these");
    c->outputs[0] = value->shape;
    return TW_OK;
}

static tw_status default_shape(twi_inference *c)
{
    return twi_merge_shapes(twi_attr_shape(c->attrs, "shape"), TW_UNKNOWN_SHAPE, &c->outputs[0], c->error);
}

/* The attribute's, which what is fed instead may need; the default must fit. */
static tw_status with_default_shape(twi_inference *c)
{
    tw_shape merged;
    c->outputs[0] = twi_attr_shape(c->attrs, "shape");
    return twi_merge_shapes(c->inputs[0], c->outputs[0], &merged, c->error);
}

static tw_status each_same_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = c->inputs[i];
    return TW_OK;
}

static tw_status shape_of_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        if (c->input_types[i] == TW_VARIANT) /* an array of lists: who knows that it is one list does not ask */
            c->outputs[i] = TW_SHAPE(1);
        else
            c->outputs[i] = c->inputs[i].rank < 0 ? unknown_of_rank(1) : TW_SHAPE(c->inputs[i].rank);
    return TW_OK;
}

tw_status twi_reshape_shape(twi_inference *c)
{
    tw_shape out;
    tw_status status = spelled_shape(c, 1, true, &out);
    int64_t elements = tw_shape_elements(c->inputs[0]);
    if (status != TW_OK || !c->input_values[1]) {
        c->outputs[0] = out;
        return status;
    }
    char from[128], to[128];
    int open = -1;
    tw_shape rest = out;
    for (int i = 0; i < out.rank; i++)
        if (out.dims[i] < 0) {
            if (open >= 0)
                return FAIL(c, "shape %s has more than one dimension left open", tw_shape_text(out, to, sizeof to));
            open = i;
            rest.dims[i] = 1;
        }
    int64_t given = tw_shape_elements(rest);
    if (elements >= 0 && (open < 0 ? given != elements : given <= 0 || elements % given != 0))
        return FAIL(c, "cannot reshape %s (%lld elements) to %s", tw_shape_text(c->inputs[0], from, sizeof from),
                    (long long)elements, tw_shape_text(out, to, sizeof to));
    if (elements >= 0 && open >= 0)
        out.dims[open] = elements / given;
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status expand_dims_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = in.rank + 1};
    int64_t axis;
    tw_status status = TW_OK;
    if (in.rank < 0)
        return TW_OK;
    TWI_TRY(check_rank(c, out.rank));
    if (!twi_number_of(c, 1, &axis)) {
        c->outputs[0] = unknown_of_rank(out.rank);
        return TW_OK;
    }
    TWI_TRY(normal_axis(c, &axis, out.rank));
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = i == axis ? 1 : in.dims[i < axis ? i : i - 1];
    c->outputs[0] = out;
done:
    return status;
}

static tw_status squeeze_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = 0};
    int count;
    const int64_t *axes = twi_attr_ints(c->attrs, "squeeze_dims", &count);
    bool goes[TW_MAX_RANK] = {false};
    if (in.rank < 0 || (count == 0 && !tw_shape_is_known(in)))
        return TW_OK;
    for (int i = 0; i < in.rank; i++)
        goes[i] = count == 0 && in.dims[i] == 1;
    for (int k = 0; k < count; k++) {
        int64_t axis = axes[k];
        tw_status status = normal_axis(c, &axis, in.rank);
        if (status != TW_OK)
            return status;
        if (in.dims[axis] > 1 || in.dims[axis] == 0)
            return FAIL(c, "cannot squeeze dimension %lld: expected size 1, found %lld", (long long)axis,
                        (long long)in.dims[axis]);
        goes[axis] = true;
    }
    for (int i = 0; i < in.rank; i++)
        if (!goes[i])
            out.dims[out.rank++] = in.dims[i];
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status fill_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 0);
    return status == TW_OK ? spelled_shape(c, 0, false, &c->outputs[0]) : status;
}

static tw_status broadcast_to_shape(twi_inference *c)
{
    tw_shape out, both;
    tw_status status = spelled_shape(c, 1, false, &out);
    if (status == TW_OK)
        status = twi_broadcast_shapes(c->inputs[0], out, &both, c->error);
    char from[128], to[128];
    if (status == TW_OK && tw_shape_is_known(both) && tw_shape_is_known(out) && !tw_shape_equal(both, out))
        return FAIL(c, "cannot broadcast %s to %s", tw_shape_text(c->inputs[0], from, sizeof from),
                    tw_shape_text(out, to, sizeof to));
    c->outputs[0] = out;
    return status;
}

static double real_at(const tw_tensor *value)
{
    return value->dtype == TW_INT64 ? (double)*(const int64_t *)value->data : tw_tensor_value(value, 0);
}

static tw_status range_shape(twi_inference *c)
{
    const tw_tensor *values[3];
    bool known = true;
    c->outputs[0] = unknown_of_rank(1);
    for (int i = 0; i < 3; i++) {
        tw_status status = twi_expect_rank(c, i, 0);
        if (status != TW_OK)
            return status;
        values[i] = twi_ask_value(c, i);
        known = known && values[i];
    }
    if (!known)
        return TW_OK;
    if (c->input_types[0] == TW_INT32 || c->input_types[0] == TW_INT64) {
        int64_t start = twi_tensor_int(values[0], 0), limit = twi_tensor_int(values[1], 0);
        int64_t delta = twi_tensor_int(values[2], 0);
        uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
        uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
        if (delta == 0 || (delta > 0 ? start > limit : start < limit))
            return FAIL(c, "a range from %lld to %lld in steps of %lld", (long long)start, (long long)limit,
                        (long long)delta);
        uint64_t count = distance / step + (distance % step != 0);
        if (count > INT64_MAX || tw_shape_elements(TW_SHAPE((int64_t)count)) < 0)
            return FAIL(c, "a range of %llu elements", (unsigned long long)count);
        c->outputs[0] = TW_SHAPE((int64_t)count);
        return TW_OK;
    }
    double start = real_at(values[0]), limit = real_at(values[1]),
           delta = real_at(values[2]);
    double count = ceil(fabs((limit - start) / delta));
    if (delta == 0 || (delta > 0 ? start > limit : start < limit) || !(count < 0x1p59))
        return FAIL(c, "a range from %g to %g in steps of %g", start, limit, delta);
    c->outputs[0] = TW_SHAPE((int64_t)count);
    return TW_OK;
}

static tw_status lin_space_shape(twi_inference *c)
{
    int64_t num = -1;
    for (int i = 0; i < 3; i++) {
        tw_status status = twi_expect_rank(c, i, 0);
        if (status != TW_OK)
            return status;
    }
    if (twi_number_of(c, 2, &num) && num <= 0)
        return FAIL(c, "%lld points, expected at least 1", (long long)num);
    c->outputs[0] = TW_SHAPE(num);
    return TW_OK;
}

static tw_status one_hot_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = in.rank + 1};
    int64_t axis = twi_attr_int(c->attrs, "axis", -1), depth = -1;
    tw_status status = TW_OK;
    for (int i = 1; i <= 3; i++)
        TWI_TRY(twi_expect_rank(c, i, 0));
    if (twi_number_of(c, 1, &depth) && depth < 0)
        return FAIL(c, "depth %lld, expected at least 0", (long long)depth);
    if (in.rank < 0)
        return TW_OK;
    TWI_TRY(check_rank(c, out.rank));
    TWI_TRY(normal_axis(c, &axis, out.rank));
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = i == axis ? depth : in.dims[i < axis ? i : i - 1];
    c->outputs[0] = out;
done:
    return status;
}

/* How many axes either side was repeated along. An axis where both are 1 counts for both, as in TensorFlow. */
static tw_status gradient_args_shape(twi_inference *c)
{
    tw_shape s[2] = {twi_shape_of_value(twi_ask_value(c, 0)), twi_shape_of_value(twi_ask_value(c, 1))}, both;
    c->outputs[0] = c->outputs[1] = unknown_of_rank(1);
    if (s[0].rank < 0 || s[1].rank < 0)
        return TW_OK;
    tw_status status = twi_broadcast_shapes(s[0], s[1], &both, c->error);
    if (status != TW_OK)
        return status;
    for (int k = 0; k < 2; k++) {
        int64_t count = 0;
        for (int i = 0; i < both.rank; i++) {
            int mine = i - (both.rank - s[k].rank), other = i - (both.rank - s[1 - k].rank);
            int64_t dim = mine < 0 ? 1 : s[k].dims[mine], other_dim = other < 0 ? 1 : s[1 - k].dims[other];
            count += dim == 1 && (other_dim != 1 || !tw_shape_equal(s[0], s[1]));
        }
        c->outputs[k] = TW_SHAPE(count);
    }
    return TW_OK;
}

/* The longer one's rank. */
static tw_status broadcast_args_shape(twi_inference *c)
{
    tw_shape a = c->inputs[0], b = c->inputs[1];
    tw_status status = twi_expect_rank(c, 0, 1);
    c->outputs[0] = unknown_of_rank(1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK && a.rank == 1 && b.rank == 1 && a.dims[0] >= 0 && b.dims[0] >= 0)
        c->outputs[0].dims[0] = a.dims[0] > b.dims[0] ? a.dims[0] : b.dims[0];
    return status;
}

/* The numbers of input i as an array of int64; NULL where they are not known. */
static const int64_t *spec_values(const tw_tensor *value, int64_t numbers[32])
{
    for (int64_t i = 0; value && i < value->elements && i < 32; i++)
        numbers[i] = twi_tensor_int(value, i);
    return value ? numbers : NULL;
}

/* Whether some number is a range (its stride counts), and one with a bound that is not an edge. */
static void find_ranges(const twi_strided_spec *spec, bool *ranges, bool *bounded)
{
    uint32_t all = spec->count < 32 ? (UINT32_C(1) << spec->count) - 1 : UINT32_MAX;
    uint32_t are = all & ~(spec->ellipsis_mask | spec->new_axis_mask | spec->shrink_axis_mask);
    *ranges = are != 0;
    *bounded = (are & ~(spec->begin_mask & spec->end_mask)) != 0;
}

static tw_status strided_slice_shape(twi_inference *c)
{
    int64_t numbers[3][32];
    twi_strided_spec spec = twi_strided_masks(c->attrs);
    twi_strided result;
    int64_t count = -1;
    for (int i = 1; i <= 3; i++) {
        tw_shape shape = c->inputs[i];
        tw_status status = twi_expect_rank(c, i, 1);
        if (status != TW_OK)
            return status;
        if (shape.rank == 1 && shape.dims[0] >= 0) {
            if (count >= 0 && shape.dims[0] != count)
                return FAIL(c, "begin, end and strides have %lld and %lld numbers", (long long)count,
                            (long long)shape.dims[0]);
            count = shape.dims[0];
        }
    }
    if (c->inputs[0].rank < 0 || count < 0)
        return TW_OK;
    if (count > 32)
        return FAIL(c, "the slice has %lld numbers, expected at most 32", (long long)count);
    spec.count = (int)count;
    bool ranges, bounded;
    find_ranges(&spec, &ranges, &bounded);
    spec.begin = spec_values(bounded ? twi_ask_value(c, 1) : c->input_values[1], numbers[0]);
    spec.end = spec_values(bounded ? twi_ask_value(c, 2) : c->input_values[2], numbers[1]);
    spec.stride = spec_values(ranges ? twi_ask_value(c, 3) : c->input_values[3], numbers[2]);
    tw_status status = twi_strided_resolve(&spec, c->inputs[0], &result, c->error);
    c->outputs[0] = result.output;
    return status;
}

static tw_status strided_slice_grad_shape(twi_inference *c)
{
    return spelled_shape(c, 0, false, &c->outputs[0]);
}

static tw_status slice_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], begin = TW_UNKNOWN_SHAPE, size;
    tw_status status;
    TWI_TRY(spelled_shape(c, 2, true, &size));
    const tw_tensor *from_value = tw_shape_is_known(size) ? c->input_values[1] : twi_ask_value(c, 1);
    if (from_value)
        TWI_TRY(spelled_shape(c, 1, false, &begin));
    tw_shape of_begin = c->inputs[1];
    int numbers = of_begin.rank == 1 && of_begin.dims[0] >= 0 && of_begin.dims[0] <= TW_MAX_RANK ? (int)of_begin.dims[0] : -1;
    int rank = in.rank >= 0 ? in.rank : numbers >= 0 ? numbers : size.rank;
    if (of_begin.rank >= 0)
        TWI_TRY(twi_expect_rank(c, 1, 1));
    if (rank < 0)
        return TW_OK;
    if ((numbers >= 0 && numbers != rank) || (size.rank >= 0 && size.rank != rank))
        return FAIL(c, "begin and size must have %d numbers, one an axis", rank);
    tw_shape out = unknown_of_rank(rank);
    for (int i = 0; i < rank; i++) {
        int64_t dim = in.rank < 0 ? -1 : in.dims[i], from = from_value ? begin.dims[i] : -1;
        if (c->input_values[2])
            out.dims[i] = size.dims[i] >= 0 ? size.dims[i] : dim >= 0 && from >= 0 && from <= dim ? dim - from : -1;
        if (dim >= 0 && ((from >= 0 && from > dim) || (out.dims[i] >= 0 && out.dims[i] > dim - (from > 0 ? from : 0))))
            return FAIL(c, "axis %d: begin %lld, size %lld do not lie within %lld", i, (long long)from,
                        (long long)(c->input_values[2] ? size.dims[i] : -1), (long long)dim);
    }
    c->outputs[0] = out;
done:
    return status;
}

tw_status twi_concat_shape(twi_inference *c, int axis_input, int first_value, int n)
{
    tw_shape out = TW_UNKNOWN_SHAPE;
    int64_t axis = 0, sum = 0;
    bool axis_known = twi_number_of(c, axis_input, &axis);
    tw_status status = twi_expect_rank(c, axis_input, 0);
    if (status != TW_OK)
        return status;
    for (int i = 0; i < n; i++) {
        tw_shape shape = c->inputs[first_value + i];
        char text[2][128];
        if (shape.rank < 0) {
            sum = -1;
            continue;
        }
        if (shape.rank == 0)
            return FAIL(c, "value %d is a scalar: pack scalars, do not join them", i);
        int64_t normal = axis;
        if (axis_known && (status = normal_axis(c, &normal, shape.rank)) != TW_OK)
            return status;
        if (!axis_known) {
            if (out.rank >= 0 && out.rank != shape.rank)
                return FAIL(c, "values of rank %d and %d", out.rank, shape.rank);
            out = unknown_of_rank(shape.rank);
            continue;
        }
        if (sum < 0 || shape.dims[normal] < 0)
            sum = -1;
        else if (__builtin_add_overflow(sum, shape.dims[normal], &sum))
            return FAIL(c, "the values are too large to be joined");
        shape.dims[normal] = -1;
        if (twi_merge_shapes(out, shape, &out, NULL) != TW_OK)
            return FAIL(c, "value %d has shape %s, which does not fit %s beside axis %lld", i,
                        tw_shape_text(c->inputs[first_value + i], text[0], sizeof text[0]),
                        tw_shape_text(out, text[1], sizeof text[1]), (long long)normal);
    }
    if (axis_known && out.rank >= 0)
        out.dims[axis < 0 ? axis + out.rank : axis] = sum;
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status concat_shape(twi_inference *c)
{
    return twi_concat_shape(c, 0, 1, c->num_inputs - 1);
}

static tw_status concat_v2_shape(twi_inference *c)
{
    return twi_concat_shape(c, c->num_inputs - 1, 0, c->num_inputs - 1);
}

static tw_status concat_offset_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = c->inputs[i + 1];
    return twi_expect_rank(c, 0, 0);
}

static tw_status split_shape(twi_inference *c)
{
    tw_shape in = c->inputs[1], out = in;
    int64_t axis;
    bool axis_known = twi_number_of(c, 0, &axis);
    if (c->num_outputs == 0)
        return FAIL(c, "num_split is 0");
    if (in.rank >= 0 && axis_known) {
        tw_status status = normal_axis(c, &axis, in.rank);
        if (status != TW_OK)
            return status;
        if (in.dims[axis] >= 0 && in.dims[axis] % c->num_outputs != 0)
            return FAIL(c, "axis %lld of size %lld cannot be split into %d equal parts", (long long)axis,
                        (long long)in.dims[axis], c->num_outputs);
        out.dims[axis] = in.dims[axis] < 0 ? -1 : in.dims[axis] / c->num_outputs;
    } else if (in.rank >= 0) {
        out = unknown_of_rank(in.rank);
    }
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = out;
    return TW_OK;
}

static tw_status split_v_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    const tw_tensor *sizes = twi_ask_value(c, 1);
    int64_t axis, rest = -1, sum = 0;
    if (in.rank < 0)
        return TW_OK;
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = unknown_of_rank(in.rank);
    if (!twi_number_of(c, 2, &axis))
        return TW_OK;
    tw_status status = normal_axis(c, &axis, in.rank);
    if (status != TW_OK)
        return status;
    for (int i = 0; i < c->num_outputs; i++) {
        c->outputs[i] = in;
        c->outputs[i].dims[axis] = -1;
    }
    if (!sizes)
        return TW_OK;
    if (sizes->elements != c->num_outputs)
        return FAIL(c, "%lld sizes for %d parts", (long long)sizes->elements, c->num_outputs);
    for (int i = 0; i < c->num_outputs; i++) {
        int64_t size = twi_tensor_int(sizes, i);
        if (size < -1 || (size == -1 && rest >= 0))
            return FAIL(c, size < -1 ? "size %lld of a part" : "only one size may be left open (%lld)",
                        (long long)size);
        if (size < 0)
            rest = i;
        else if (__builtin_add_overflow(sum, size, &sum))
            return FAIL(c, "the sizes of the parts are too large");
        c->outputs[i].dims[axis] = size;
    }
    if (in.dims[axis] >= 0 && (rest < 0 ? sum != in.dims[axis] : sum > in.dims[axis]))
        return FAIL(c, "the sizes of the parts sum up to %lld, axis %lld has %lld", (long long)sum, (long long)axis,
                    (long long)in.dims[axis]);
    if (rest >= 0 && in.dims[axis] >= 0)
        c->outputs[rest].dims[axis] = in.dims[axis] - sum;
    return TW_OK;
}

static tw_status pack_shape(twi_inference *c)
{
    tw_status status = twi_shape_merged(c);
    tw_shape in = c->outputs[0], out = {.rank = in.rank + 1};
    int64_t axis = twi_attr_int(c->attrs, "axis", 0);
    if (status != TW_OK || in.rank < 0)
        return status;
    if ((status = check_rank(c, out.rank)) != TW_OK || (status = normal_axis(c, &axis, out.rank)) != TW_OK)
        return status;
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = i == axis ? c->num_inputs : in.dims[i < axis ? i : i - 1];
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status unpack_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = {.rank = in.rank - 1};
    int64_t axis = twi_attr_int(c->attrs, "axis", 0);
    if (in.rank < 0)
        return TW_OK;
    tw_status status = normal_axis(c, &axis, in.rank);
    if (status != TW_OK)
        return status;
    if (in.dims[axis] >= 0 && in.dims[axis] != c->num_outputs)
        return FAIL(c, "axis %lld has size %lld, expected %d", (long long)axis, (long long)in.dims[axis],
                    c->num_outputs);
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = in.dims[i < axis ? i : i + 1];
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = out;
    return TW_OK;
}

static tw_status tile_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], multiples;
    tw_status status = spelled_shape(c, 1, false, &multiples);
    if (status != TW_OK || multiples.rank < 0) {
        c->outputs[0] = in.rank < 0 ? TW_UNKNOWN_SHAPE : unknown_of_rank(in.rank);
        return status;
    }
    if (in.rank < 0)
        in = unknown_of_rank(multiples.rank);
    if (in.rank != multiples.rank)
        return FAIL(c, "%d multiples, expected %d, one an axis", multiples.rank, in.rank);
    for (int i = 0; i < in.rank; i++)
        if (in.dims[i] < 0 || multiples.dims[i] < 0)
            in.dims[i] = -1;
        else if (__builtin_mul_overflow(in.dims[i], multiples.dims[i], &in.dims[i]))
            return FAIL(c, "axis %d becomes too large", i);
    c->outputs[0] = in;
    return TW_OK;
}

static tw_status transpose_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], perm, out;
    bool taken[TW_MAX_RANK] = {false};
    tw_status status = spelled_shape(c, 1, true, &perm);
    if (status != TW_OK)
        return status;
    if (in.rank >= 0 && perm.rank >= 0 && in.rank != perm.rank)
        return FAIL(c, "a permutation of %d axes, the input has %d", perm.rank, in.rank);
    int rank = in.rank >= 0 ? in.rank : perm.rank;
    out = rank < 0 ? TW_UNKNOWN_SHAPE : unknown_of_rank(rank);
    for (int i = 0; c->input_values[1] && i < rank; i++) {
        int64_t axis = perm.dims[i];
        if ((status = normal_axis(c, &axis, rank)) != TW_OK)
            return status;
        if (taken[axis])
            return FAIL(c, "axis %lld appears twice in the permutation", (long long)axis);
        taken[axis] = true;
        out.dims[i] = in.rank < 0 ? -1 : in.dims[axis];
    }
    c->outputs[0] = out;
    return TW_OK;
}

/* sign 1: paddings are added; -1: taken away. limit: an axis may grow by at most its size less this; -1: by any. */
static tw_status pad_by(twi_inference *c, int sign, int limit)
{
    tw_shape in = c->inputs[0], of_paddings = c->inputs[1];
    const tw_tensor *paddings = twi_ask_value(c, 1);
    tw_status status = twi_expect_rank(c, 1, 2);
    if (status != TW_OK)
        return status;
    if (in.rank >= 0 && of_paddings.rank == 2 &&
        ((of_paddings.dims[0] >= 0 && of_paddings.dims[0] != in.rank) ||
         (of_paddings.dims[1] >= 0 && of_paddings.dims[1] != 2)))
        return FAIL(c, "paddings of shape [%lld,%lld], expected [%d,2]", (long long)of_paddings.dims[0],
                    (long long)of_paddings.dims[1], in.rank);
    if (in.rank < 0)
        return TW_OK;
    for (int i = 0; i < in.rank; i++) {
        int64_t sum = -1;
        for (int k = 0; paddings && k < 2; k++) {
            int64_t padding = twi_tensor_int(paddings, 2 * i + k);
            int64_t dim = in.dims[i];
            if (padding < 0 || padding > INT64_MAX / 4 || (limit >= 0 && sign > 0 && dim >= 0 && padding > dim - limit))
                return FAIL(c, "padding %lld of axis %d, which has size %lld", (long long)padding, i, (long long)dim);
            sum = k ? sum + padding : padding;
        }
        if (!paddings || in.dims[i] < 0)
            in.dims[i] = -1;
        else if (__builtin_add_overflow(in.dims[i], sign * sum, &in.dims[i]))
            return FAIL(c, "axis %d becomes too large", i);
        if (paddings && sign < 0 && c->inputs[0].dims[i] >= 0 && in.dims[i] < 0)
            return FAIL(c, "axis %d is smaller than its paddings", i);
    }
    c->outputs[0] = in;
    return TW_OK;
}

static tw_status pad_shape(twi_inference *c)
{
    tw_status status = c->num_inputs > 2 ? twi_expect_rank(c, 2, 0) : TW_OK; /* what the pads are of */
    return status == TW_OK ? pad_by(c, 1, -1) : status;
}

static int mirror_limit(const twi_inference *c)
{
    return strcmp(twi_attr_string(c->attrs, "mode", ""), "REFLECT") == 0 ? 1 : 0;
}

static tw_status mirror_pad_shape(twi_inference *c)
{
    return pad_by(c, 1, mirror_limit(c));
}

static tw_status mirror_pad_grad_shape(twi_inference *c)
{
    return pad_by(c, -1, mirror_limit(c));
}

static tw_status gather(twi_inference *c, bool axis_known, int64_t axis, int64_t batch)
{
    tw_shape params = c->inputs[0], indices = c->inputs[1], out = {.rank = 0};
    tw_status status;
    if (params.rank < 0 || indices.rank < 0)
        return TW_OK;
    batch += batch < 0 ? indices.rank : 0;
    if (batch < 0 || batch > indices.rank)
        return FAIL(c, "batch_dims is %lld, the indices have %d axes", (long long)batch, indices.rank);
    TWI_TRY(check_rank(c, params.rank + indices.rank - 1 - (int)batch));
    if (!axis_known) {
        c->outputs[0] = unknown_of_rank(params.rank + indices.rank - 1 - (int)batch);
        return TW_OK;
    }
    TWI_TRY(normal_axis(c, &axis, params.rank));
    if (batch > axis)
        return FAIL(c, "batch_dims %lld is greater than axis %lld", (long long)batch, (long long)axis);
    for (int i = 0; i < batch; i++)
        if (params.dims[i] >= 0 && indices.dims[i] >= 0 && params.dims[i] != indices.dims[i])
            return FAIL(c, "batch dimension %d is %lld in params and %lld in indices", i, (long long)params.dims[i],
                        (long long)indices.dims[i]);
    for (int i = 0; i < axis; i++)
        out.dims[out.rank++] = params.dims[i];
    for (int i = (int)batch; i < indices.rank; i++)
        out.dims[out.rank++] = indices.dims[i];
    for (int i = (int)axis + 1; i < params.rank; i++)
        out.dims[out.rank++] = params.dims[i];
    c->outputs[0] = out;
done:
    return status;
}

static tw_status gather_shape(twi_inference *c)
{
    return gather(c, true, 0, 0);
}

static tw_status resource_gather_shape(twi_inference *c)
{
    return gather(c, true, 0, twi_attr_int(c->attrs, "batch_dims", 0));
}

static tw_status gather_v2_shape(twi_inference *c)
{
    int64_t axis = 0;
    tw_status status = twi_expect_rank(c, 2, 0);
    if (status != TW_OK)
        return status;
    bool known = twi_number_of(c, 2, &axis);
    return gather(c, known, axis, twi_attr_int(c->attrs, "batch_dims", 0));
}

static tw_status gather_nd_shape(twi_inference *c)
{
    tw_shape params = c->inputs[0], out = c->inputs[1];
    if (out.rank == 0)
        return FAIL(c, "indices are a scalar, expected at least one axis");
    if (params.rank < 0 || out.rank < 0 || out.dims[out.rank - 1] < 0)
        return TW_OK;
    int64_t depth = out.dims[--out.rank];
    if (depth > params.rank)
        return FAIL(c, "indices of %lld numbers into %d axes", (long long)depth, params.rank);
    tw_status status = check_rank(c, out.rank + params.rank - (int)depth);
    for (int i = (int)depth; status == TW_OK && i < params.rank; i++)
        out.dims[out.rank++] = params.dims[i];
    c->outputs[0] = out;
    return status;
}

static tw_status scatter_nd_shape(twi_inference *c)
{
    tw_shape out, indices = c->inputs[0], updates = c->inputs[1], slice = TW_UNKNOWN_SHAPE, expected;
    tw_status status = spelled_shape(c, 2, false, &out);
    c->outputs[0] = out;
    if (status != TW_OK || out.rank < 0 || indices.rank <= 0 || indices.dims[indices.rank - 1] < 0)
        return status;
    int64_t depth = indices.dims[indices.rank - 1];
    char text[2][128];
    if (depth > out.rank || indices.rank - 1 + out.rank - depth > TW_MAX_RANK)
        return FAIL(c, "indices %s do not fit the shape %s", tw_shape_text(indices, text[0], sizeof text[0]),
                    tw_shape_text(out, text[1], sizeof text[1]));
    slice = indices;
    slice.rank--;
    for (int i = (int)depth; i < out.rank; i++)
        slice.dims[slice.rank++] = out.dims[i];
    if (twi_merge_shapes(slice, updates, &expected, NULL) != TW_OK)
        return FAIL(c, "updates have shape %s, expected %s", tw_shape_text(updates, text[0], sizeof text[0]),
                    tw_shape_text(slice, text[1], sizeof text[1]));
    return TW_OK;
}

/* The greatest index decides the length, if all are known. */
static tw_status dynamic_stitch_shape(twi_inference *c)
{
    int n = c->num_inputs / 2;
    tw_shape rest = TW_UNKNOWN_SHAPE;
    int64_t length = 0;
    for (int i = 0; i < n; i++) {
        tw_shape indices = c->inputs[i], data = c->inputs[n + i], own = {.rank = 0};
        const tw_tensor *value = c->input_values[i];
        for (int64_t k = 0; value && k < value->elements; k++) {
            int64_t index = twi_tensor_int(value, k);
            if (index < 0)
                return FAIL(c, "index %lld", (long long)index);
            if (length >= 0 && index >= length)
                length = index + 1;
        }
        length = value ? length : -1;
        if (indices.rank < 0 || data.rank < 0)
            continue;
        for (int k = 0; k < data.rank; k++)
            if (k >= indices.rank)
                own.dims[own.rank++] = data.dims[k];
            else if (indices.dims[k] >= 0 && data.dims[k] >= 0 && indices.dims[k] != data.dims[k])
                return FAIL(c, "data %d does not begin with the shape of its indices", i);
        if (data.rank < indices.rank)
            return FAIL(c, "data %d does not begin with the shape of its indices", i);
        tw_status status = twi_merge_shapes(rest, own, &rest, c->error);
        if (status != TW_OK)
            return status;
    }
    if (rest.rank < 0)
        return TW_OK;
    tw_status status = check_rank(c, rest.rank + 1);
    if (status != TW_OK)
        return status;
    memmove(rest.dims + 1, rest.dims, sizeof *rest.dims * (size_t)rest.rank);
    rest.dims[0] = length;
    rest.rank++;
    c->outputs[0] = rest;
    return TW_OK;
}

tw_status twi_unsorted_segment_shape(twi_inference *c)
{
    tw_shape data = c->inputs[0], ids = c->inputs[1], out = {.rank = 1};
    int64_t segments = -1;
    if (twi_number_of(c, 2, &segments) && segments < 0)
        return FAIL(c, "%lld segments", (long long)segments);
    if (data.rank < 0 || ids.rank < 0)
        return TW_OK;
    if (ids.rank > data.rank)
        return FAIL(c, "segment ids have %d axes, data only %d", ids.rank, data.rank);
    for (int i = 0; i < ids.rank; i++)
        if (ids.dims[i] >= 0 && data.dims[i] >= 0 && ids.dims[i] != data.dims[i])
            return FAIL(c, "the data does not begin with the shape of the segment ids");
    tw_status status = check_rank(c, data.rank - ids.rank + 1);
    if (status != TW_OK)
        return status;
    out.dims[0] = segments;
    for (int i = ids.rank; i < data.rank; i++)
        out.dims[out.rank++] = data.dims[i];
    c->outputs[0] = out;
    return TW_OK;
}

/* Ids rise, so the last one says how many segments there are. */
tw_status twi_segment_shape(twi_inference *c)
{
    tw_shape data = c->inputs[0], ids = c->inputs[1];
    const tw_tensor *value = c->input_values[1];
    tw_status status = twi_expect_rank(c, 1, 1);
    if (status != TW_OK || data.rank < 0)
        return status;
    if (data.rank == 0 || (data.dims[0] >= 0 && ids.rank == 1 && ids.dims[0] >= 0 && data.dims[0] != ids.dims[0]))
        return FAIL(c, "the data must have one row for each segment id");
    c->outputs[0] = data;
    c->outputs[0].dims[0] = value ? 0 : -1;
    if (value && value->elements) {
        int64_t last = twi_tensor_int(value, value->elements - 1);
        if (last < 0 || last == INT64_MAX)
            return FAIL(c, "the last segment id is %lld", (long long)last);
        c->outputs[0].dims[0] = last + 1;
    }
    return TW_OK;
}

/* The condition is shaped as t and e, a scalar, or one bool for each of their first axis. */
static tw_status select_shape(twi_inference *c)
{
    tw_shape condition = c->inputs[0], out, merged;
    tw_status status = twi_merge_shapes(c->inputs[1], c->inputs[2], &out, c->error);
    if (status != TW_OK)
        return status;
    if (condition.rank == 1 && out.rank > 1) {
        if (condition.dims[0] >= 0 && out.dims[0] >= 0 && condition.dims[0] != out.dims[0])
            return FAIL(c, "the condition has %lld elements, the first axis %lld", (long long)condition.dims[0],
                        (long long)out.dims[0]);
    } else if (condition.rank > 0) {
        status = twi_merge_shapes(condition, out, &merged, c->error);
    }
    c->outputs[0] = out;
    return status;
}

static tw_status select_v2_shape(twi_inference *c)
{
    tw_shape both;
    tw_status status = twi_broadcast_shapes(c->inputs[1], c->inputs[2], &both, c->error);
    return status == TW_OK ? twi_broadcast_shapes(c->inputs[0], both, &c->outputs[0], c->error) : status;
}

static tw_status diag_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = in;
    if (in.rank < 0)
        return TW_OK;
    tw_status status = check_rank(c, 2 * in.rank);
    for (int i = 0; status == TW_OK && i < in.rank; i++)
        out.dims[out.rank++] = in.dims[i];
    c->outputs[0] = out;
    return status;
}

static tw_status diag_part_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], out = in;
    char text[128];
    if (in.rank < 0)
        return TW_OK;
    if (in.rank == 0 || in.rank % 2)
        return FAIL(c, "the input has shape %s, expected an even number of axes", tw_shape_text(in, text, sizeof text));
    out.rank /= 2;
    for (int i = 0; i < out.rank; i++) {
        int64_t other = in.dims[i + out.rank];
        if (in.dims[i] >= 0 && other >= 0 && in.dims[i] != other)
            return FAIL(c, "the input has shape %s, whose halves differ", tw_shape_text(in, text, sizeof text));
        out.dims[i] = in.dims[i] < 0 ? other : in.dims[i];
    }
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status top_k_shape(twi_inference *c)
{
    tw_shape out = c->inputs[0];
    int64_t k = -1;
    if (twi_number_of(c, 1, &k) && k < 0)
        return FAIL(c, "k is %lld", (long long)k);
    if (out.rank < 0)
        return TW_OK;
    if (out.rank == 0)
        return FAIL(c, "the input is a scalar, expected at least one axis");
    if (out.dims[out.rank - 1] >= 0 && k > out.dims[out.rank - 1])
        return FAIL(c, "k is %lld, the last axis has only %lld", (long long)k, (long long)out.dims[out.rank - 1]);
    out.dims[out.rank - 1] = k;
    c->outputs[0] = c->outputs[1] = out;
    return TW_OK;
}

/* Along the first axis, of which each has one. */
static tw_status parallel_concat_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    for (int i = 1; i < c->num_inputs; i++) {
        tw_status status = twi_merge_shapes(shape, c->inputs[i], &shape, c->error);
        if (status != TW_OK)
            return status;
    }
    if (shape.rank == 0 || (shape.rank > 0 && shape.dims[0] > 1))
        return FAIL(c, "All input shapes must be fully defined and start with 1");
    if (shape.rank > 0)
        shape.dims[0] = c->num_inputs;
    c->outputs[0] = shape;
    return TW_OK;
}

/* What is known of the input and of the attribute; in a plan the input's shape is whole. */
static tw_status ensured_shape(twi_inference *c)
{
    char has[128], wants[128];
    tw_shape wanted = twi_attr_find(c->attrs, "shape")->shape;
    if (twi_merge_shapes(c->inputs[0], wanted, &c->outputs[0], NULL) == TW_OK)
        return TW_OK;
    return FAIL(c, "Shape of tensor %s is not compatible with expected shape %s",
                tw_shape_text(c->inputs[0], has, sizeof has), tw_shape_text(wanted, wants, sizeof wants));
}

/* The same bytes as another type: a last axis more or less where the sizes of elements differ. */
static tw_status bitcast_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    int64_t from = (int64_t)tw_dtype_size(c->input_types[0]), to = (int64_t)tw_dtype_size(c->output_types[0]);
    if (shape.rank < 0)
        return TW_OK;
    if (from > to) {
        if (shape.rank == TW_MAX_RANK)
            return twi_fail(c->error, TW_UNIMPLEMENTED, "input has the highest rank there is, %d", TW_MAX_RANK);
        shape.dims[shape.rank++] = from / to;
    } else if (from < to) {
        int64_t last = shape.rank ? shape.dims[shape.rank - 1] : 1;
        if (shape.rank == 0 || (last >= 0 && last != to / from))
            return FAIL(c, "the last axis must have %lld elements of %s to make one of %s", (long long)(to / from),
                        tw_dtype_name(c->input_types[0]), tw_dtype_name(c->output_types[0]));
        shape.rank--;
    }
    c->outputs[0] = shape;
    return TW_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define NUMBERS "{" TWI_REALS "}"
#define ADDED "{" TWI_NUMBERS "}"
#define CAST_BITS "{" TWI_NUMBERS "," TWI_QUANTIZED "}"
#define INDEX "{int32,int64}"
#define FORMATS "src_format:string=NHWC; dst_format:string=NCHW"
#define STRIDED_MASKS                                                                                                  \
    "T:type; Index:" INDEX "; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; "            \
    "shrink_axis_mask:int=0"

const twi_op twi_array_ops[] = {
    {"Const", "", "output:dtype", "value:tensor; dtype:type", const_shape, twi_not_differentiable, TWI_CONSTANT},
    {"Placeholder", "", "output:dtype", "dtype:type; shape:shape=unknown", default_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_PLACEHOLDER},
    {"PlaceholderV2", "", "output:dtype", "dtype:type; shape:shape", default_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_PLACEHOLDER},
    {"PlaceholderWithDefault", "input:dtype", "output:dtype", "dtype:type; shape:shape", with_default_shape,
     twi_gradient_identity, TWI_STATEFUL | TWI_MAY_BE_FED, .planned_as = "Identity"},
    {"Identity", "input:T", "output:T", "T:type", twi_shape_same, twi_gradient_identity, TWI_PASSES},
    {"IdentityN", "input:T", "output:T", "T:types", each_same_shape, twi_gradient_identity, TWI_PASSES | TWI_UNBOUND},
    {"RefIdentity", "input:Ref(T)", "output:Ref(T)", "T:type", twi_shape_same, twi_gradient_identity, TWI_PASSES, "h",
     .planned_as = "NoOp"},
    {"StopGradient", "input:T", "output:T", "T:type", twi_shape_same, twi_stops_gradient, TWI_PASSES},
    {"PreventGradient", "input:T", "output:T", "T:type; message:string=", twi_shape_same, twi_gradient_prevent,
     TWI_PASSES},
    {"EnsureShape", "input:T", "output:T", "T:type; shape:shape", ensured_shape, twi_gradient_identity, TWI_PASSES},
    {"Bitcast", "input:T", "output:type", "T:" CAST_BITS "; type:" CAST_BITS, bitcast_shape, twi_not_differentiable},
    {"CheckNumerics", "tensor:T", "output:T", "T:{bfloat16,half,float,double}; message:string", twi_shape_same,
     twi_gradient_check_numerics, TWI_STATEFUL},

    {"Shape", "input:T", "output:out_type", "T:type; out_type:" INDEX "=int32", shape_of_shape, twi_stops_gradient,
     TWI_METADATA},
    {"ShapeN", "input:N*T", "output:N*out_type", "N:int; T:type; out_type:" INDEX "=int32", shape_of_shape,
     twi_stops_gradient, TWI_METADATA},
    {"Size", "input:T", "output:out_type", "T:type; out_type:" INDEX "=int32", twi_shape_scalar, twi_stops_gradient,
     TWI_METADATA},
    {"Rank", "input:T", "output:int32", "T:type", twi_shape_scalar, twi_stops_gradient, TWI_METADATA},
    {"Reshape", "tensor:T, shape:Tshape", "output:T", "T:type; Tshape:" INDEX "=int32", twi_reshape_shape,
     twi_gradient_reshape},
    {"ExpandDims", "input:T, dim:Tdim", "output:T", "T:type; Tdim:" INDEX "=int32", expand_dims_shape,
     twi_gradient_reshape},
    {"Squeeze", "input:T", "output:T", "T:type; squeeze_dims:ints=[]", squeeze_shape, twi_gradient_reshape},

    {"Fill", "dims:index_type, value:T", "output:T", "T:type; index_type:" INDEX "=int32", fill_shape,
     twi_gradient_fill},
    {"ZerosLike", "x:T", "y:T", "T:type", twi_shape_same, twi_stops_gradient, TWI_ELEMENTWISE},
    {"OnesLike", "x:T", "y:T", "T:{bool," TWI_NUMBERS "}", twi_shape_same, twi_not_differentiable, TWI_ELEMENTWISE},
    {"Range", "start:Tidx, limit:Tidx, delta:Tidx", "output:Tidx", "Tidx:{bfloat16,float,double,int32,int64}=int32",
     range_shape, twi_not_differentiable},
    {"LinSpace", "start:T, stop:T, num:Tidx", "output:T", "T:{bfloat16,float,double}; Tidx:" INDEX "=int32",
     lin_space_shape, twi_not_differentiable},
    {"OneHot", "indices:TI, depth:int32, on_value:T, off_value:T", "output:T",
     "axis:int=-1; T:type; TI:{uint8,int32,int64}=int64", one_hot_shape, twi_stops_gradient},
    {"BroadcastTo", "input:T, shape:Tidx", "output:T", "T:type; Tidx:" INDEX "=int32", broadcast_to_shape,
     twi_gradient_broadcast_to},
    {"BroadcastArgs", "s0:T, s1:T", "r0:T", "T:" INDEX "=int32", broadcast_args_shape, twi_not_differentiable},
    {"BroadcastGradientArgs", "s0:T, s1:T", "r0:T, r1:T", "T:" INDEX "=int32", gradient_args_shape,
     twi_not_differentiable},
    {"DataFormatDimMap", "x:T", "y:T", "T:" INDEX "=int32; " FORMATS, twi_shape_same, twi_not_differentiable},
    {"DataFormatVecPermute", "x:T", "y:T", "T:" INDEX "=int32; " FORMATS, twi_shape_same, twi_not_differentiable},
    {"InvertPermutation", "x:T", "y:T", "T:" INDEX "=int32", twi_shape_same, twi_stops_gradient},

    {"StridedSlice", "input:T, begin:Index, end:Index, strides:Index", "output:T", STRIDED_MASKS, strided_slice_shape,
     twi_gradient_strided_slice},
    {"StridedSliceGrad", "shape:Index, begin:Index, end:Index, strides:Index, dy:T", "output:T", STRIDED_MASKS,
     strided_slice_grad_shape, twi_gradient_strided_slice_grad},
    {"Slice", "input:T, begin:Index, size:Index", "output:T", "T:type; Index:" INDEX, slice_shape, twi_gradient_slice,
     .layout = "iss:i"},
    {"ConcatV2", "values:N*T, axis:Tidx", "output:T", "N:int; T:type; Tidx:" INDEX "=int32", concat_v2_shape,
     twi_gradient_concat, .layout = "ia:i"},
    {"Concat", "concat_dim:int32, values:N*T", "output:T", "N:int; T:type", concat_shape, twi_gradient_concat},
    {"ConcatOffset", "concat_dim:int32, shape:N*int32", "offset:N*int32", "N:int", concat_offset_shape,
     twi_stops_gradient},
    {"Split", "split_dim:int32, value:T", "output:num_split*T", "num_split:int; T:type", split_shape,
     twi_gradient_split},
    {"SplitV", "value:T, size_splits:Tlen, split_dim:int32", "output:num_split*T",
     "num_split:int; T:type; Tlen:" INDEX "=int64", split_v_shape, twi_gradient_split_v},
    {"Pack", "values:N*T", "output:T", "N:int; T:type; axis:int=0", pack_shape, twi_gradient_pack},
    {"Unpack", "value:T", "output:num*T", "num:int; T:type; axis:int=0", unpack_shape, twi_gradient_unpack},
    {"Tile", "input:T, multiples:Tmultiples", "output:T", "T:type; Tmultiples:" INDEX "=int32", tile_shape,
     twi_gradient_tile, .layout = "is:i"},
    {"Transpose", "x:T, perm:Tperm", "y:T", "T:type; Tperm:" INDEX "=int32", transpose_shape, twi_gradient_transpose},
    {"ConjugateTranspose", "x:T, perm:Tperm", "y:T", "T:type; Tperm:" INDEX "=int32", transpose_shape,
     twi_gradient_conjugate_transpose},
    {"Pad", "input:T, paddings:Tpaddings", "output:T", "T:type; Tpaddings:" INDEX "=int32", pad_shape, twi_gradient_pad,
     .layout = "ip:i"},
    {"PadV2", "input:T, paddings:Tpaddings, constant_values:T", "output:T", "T:type; Tpaddings:" INDEX "=int32",
     pad_shape, twi_gradient_pad, .layout = "ip.:i"},
    {"MirrorPad", "input:T, paddings:Tpaddings", "output:T",
     "T:type; Tpaddings:" INDEX "=int32; mode:{REFLECT,SYMMETRIC}", mirror_pad_shape, twi_gradient_mirror_pad,
     .layout = "ip:i"},
    {"MirrorPadGrad", "input:T, paddings:Tpaddings", "output:T",
     "T:type; Tpaddings:" INDEX "=int32; mode:{REFLECT,SYMMETRIC}", mirror_pad_grad_shape,
     twi_gradient_mirror_pad_grad},
    {"ReverseV2", "tensor:T, axis:Tidx", "output:T", "Tidx:" INDEX "=int32; T:{bool,string," TWI_NUMBERS "}",
     twi_shape_same, twi_gradient_reverse},
    {"Gather", "params:Tparams, indices:Tindices", "output:Tparams",
     "validate_indices:bool=true; Tparams:type; Tindices:" INDEX, gather_shape, twi_gradient_gather},
    {"ResourceGather", "resource:resource, indices:Tindices", "output:dtype",
     "batch_dims:int=0; validate_indices:bool=true; dtype:type; Tindices:" INDEX, resource_gather_shape, NULL,
     TWI_STATEFUL, "ri"},
    {"GatherV2", "params:Tparams, indices:Tindices, axis:Taxis", "output:Tparams",
     "batch_dims:int=0; Tparams:type; Tindices:" INDEX "; Taxis:" INDEX, gather_v2_shape, twi_gradient_gather},
    {"GatherNd", "params:Tparams, indices:Tindices", "output:Tparams", "Tparams:type; Tindices:" INDEX, gather_nd_shape,
     twi_gradient_gather_nd},
    {"ResourceGatherNd", "resource:resource, indices:Tindices", "output:dtype", "dtype:type; Tindices:" INDEX,
     gather_nd_shape, NULL, TWI_STATEFUL, "ri"},
    {"ScatterNd", "indices:Tindices, updates:T, shape:Tindices", "output:T", "T:type; Tindices:" INDEX,
     scatter_nd_shape, twi_gradient_scatter_nd},
    {"DynamicStitch", "indices:N*int32, data:N*T", "merged:T", "N:int; T:type", dynamic_stitch_shape,
     twi_gradient_dynamic_stitch, TWI_MAKES_SHAPE},
    {"ParallelDynamicStitch", "indices:N*int32, data:N*T", "merged:T", "N:int; T:type", dynamic_stitch_shape,
     twi_gradient_dynamic_stitch, TWI_MAKES_SHAPE},
    {"UnsortedSegmentSum", "data:T, segment_ids:Tindices, num_segments:Tnumsegments", "output:T",
     "T:" ADDED "; Tindices:" INDEX "; Tnumsegments:" INDEX "=int32", twi_unsorted_segment_shape,
     twi_gradient_unsorted_segment_sum, TWI_SPARSE},
    {"SegmentSum", "data:T, segment_ids:Tindices", "output:T", "T:" ADDED "; Tindices:" INDEX, twi_segment_shape,
     twi_gradient_segment_sum, TWI_MAKES_SHAPE},
    {"Select", "condition:bool, t:T, e:T", "output:T", "T:type", select_shape, twi_gradient_select},
    {"SelectV2", "condition:bool, t:T, e:T", "output:T", "T:type", select_v2_shape, twi_gradient_select,
     TWI_ELEMENTWISE},
    {"Diag", "diagonal:T", "output:T", "T:{bfloat16,half,float,double,int32,int64,complex64,complex128}", diag_shape,
     twi_gradient_diag},
    {"DiagPart", "input:T", "diagonal:T", "T:{bfloat16,half,float,double,int32,int64,complex64,complex128}",
     diag_part_shape, twi_gradient_diag_part},
    {"TopKV2", "input:T, k:int32", "values:T, indices:int32", "sorted:bool=true; T:" NUMBERS, top_k_shape,
     twi_gradient_top_k},
    {"ParallelConcat", "values:N*T", "output:T", "N:int; T:type; shape:shape", parallel_concat_shape, NULL},
    {"GuaranteeConst", "input:T", "output:T", "T:type", twi_shape_same, twi_gradient_identity, TWI_PASSES},
    {0},
};

/* ---- constants --------------------------------------------------------------------------------------------- */

tw_output tw_constant(tw_graph *graph, tw_tensor *tensor)
{
    if (!tensor) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT,
                       "tw_constant: the tensor is NULL; one is not made if its shape is not wholly known, or memory ran out");
        return (tw_output){0};
    }
    return twi_build(graph, "Const", NULL, 0,
                     TWI_ATTRS(tw_attr_tensor("value", tensor), tw_attr_type("dtype", tw_tensor_dtype(tensor))));
}

tw_output twi_constant_of(tw_graph *graph, tw_tensor *tensor)
{
    if (!tensor)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory for a constant");
    tw_output output = tw_constant(graph, tensor);
    tw_tensor_release(tensor);
    return output;
}

tw_output tw_scalar(tw_graph *graph, float value)
{
    return twi_constant_of(graph, tw_tensor_float(value));
}

static bool is_number(tw_dtype dtype)
{
    return dtype != TW_STRING && dtype != TW_RESOURCE && dtype != TW_VARIANT && tw_dtype_size(dtype) > 0;
}

tw_output tw_scalar_of(tw_graph *graph, tw_dtype dtype, double value)
{
    if (!is_number(dtype)) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "a number of type %s", tw_dtype_name(dtype));
        return (tw_output){0};
    }
    tw_tensor *tensor = tw_tensor_create(dtype, TW_SCALAR);
    if (tensor)
        twi_tensor_set_number(tensor, 0, value);
    return twi_constant_of(graph, tensor);
}

tw_output tw_constant_floats(tw_graph *graph, tw_shape shape, const float *values)
{
    TWI_NEED_IN(graph, values, "values", (tw_output){0});
    return twi_constant_of(graph, tw_tensor_from(TW_FLOAT32, shape, values));
}

tw_output tw_constant_int32s(tw_graph *graph, tw_shape shape, const int32_t *values)
{
    TWI_NEED_IN(graph, values, "values", (tw_output){0});
    return twi_constant_of(graph, tw_tensor_from(TW_INT32, shape, values));
}

/* A constant that a builder adds for itself: the name tw_name() gave is for the op that follows. */
static tw_output helper_constant(tw_graph *graph, tw_tensor *tensor)
{
    if (!graph) {
        tw_tensor_release(tensor);
        return (tw_output){0};
    }
    const char *name = graph->next_name;
    graph->next_name = NULL;
    tw_output output = twi_constant_of(graph, tensor);
    graph->next_name = name;
    return output;
}

/* int32, or int64 if a value needs it. */
tw_output twi_constant_ints(tw_graph *graph, const int64_t *values, int count)
{
    bool narrow = true;
    for (int i = 0; i < count; i++)
        narrow = narrow && values[i] == (int32_t)values[i];
    tw_tensor *tensor = tw_tensor_create(narrow ? TW_INT32 : TW_INT64, TW_SHAPE(count));
    for (int i = 0; tensor && i < count; i++)
        if (narrow)
            ((int32_t *)tensor->data)[i] = (int32_t)values[i];
        else
            ((int64_t *)tensor->data)[i] = values[i];
    return helper_constant(graph, tensor);
}

tw_output twi_constant_int(tw_graph *graph, int64_t value)
{
    return helper_constant(graph, tw_tensor_int32((int32_t)value));
}

static tw_output ints(tw_graph *graph, tw_shape shape)
{
    if (shape.rank <= TW_MAX_RANK)
        return twi_constant_ints(graph, shape.dims, shape.rank);
    tw_graph_fail(graph, TW_INVALID_ARGUMENT, "a shape of %d dimensions; at most %d", shape.rank, TW_MAX_RANK);
    return (tw_output){0};
}

tw_output twi_shape_tensor(tw_graph *graph, tw_output x)
{
    tw_shape shape = x.node ? tw_output_shape(x) : TW_UNKNOWN_SHAPE;
    return tw_shape_is_known(shape) ? ints(graph, shape) : tw_shape_of(graph, x);
}

tw_output tw_zeros(tw_graph *graph, tw_dtype dtype, tw_shape shape)
{
    return tw_fill(graph, ints(graph, shape), tw_scalar_of(graph, dtype, 0));
}

tw_output tw_ones(tw_graph *graph, tw_dtype dtype, tw_shape shape)
{
    return tw_fill(graph, ints(graph, shape), tw_scalar_of(graph, dtype, 1));
}

tw_output tw_placeholder(tw_graph *graph, tw_dtype dtype, tw_shape shape)
{
    return twi_build(graph, "Placeholder", NULL, 0,
                     TWI_ATTRS(tw_attr_type("dtype", dtype), tw_attr_shape("shape", shape)));
}

tw_output tw_placeholder_with_default(tw_graph *graph, tw_output value, tw_shape shape)
{
    return twi_build(graph, "PlaceholderWithDefault", &value, 1, TWI_ATTRS(tw_attr_shape("shape", shape)));
}

/* ---- builders ---------------------------------------------------------------------------------------------- */

static tw_output unary(tw_graph *graph, const char *op, tw_output x)
{
    return twi_build(graph, op, &x, 1, TWI_NO_ATTRS);
}

static tw_output binary(tw_graph *graph, const char *op, tw_output x, tw_output y)
{
    return twi_build(graph, op, TWI_INPUTS(x, y), TWI_NO_ATTRS);
}

tw_output tw_identity(tw_graph *graph, tw_output x)
{
    return unary(graph, "Identity", x);
}

tw_output tw_stop_gradient(tw_graph *graph, tw_output x)
{
    return unary(graph, "StopGradient", x);
}

tw_output tw_zeros_like(tw_graph *graph, tw_output x)
{
    return unary(graph, "ZerosLike", x);
}

tw_output tw_ones_like(tw_graph *graph, tw_output x)
{
    return unary(graph, "OnesLike", x);
}

tw_output tw_shape_of(tw_graph *graph, tw_output x)
{
    return unary(graph, "Shape", x);
}

tw_output tw_size_of(tw_graph *graph, tw_output x)
{
    return unary(graph, "Size", x);
}

tw_output tw_rank_of(tw_graph *graph, tw_output x)
{
    return unary(graph, "Rank", x);
}

tw_output tw_reshape(tw_graph *graph, tw_output x, tw_shape shape)
{
    return binary(graph, "Reshape", x, ints(graph, shape));
}

tw_output tw_reshape_to(tw_graph *graph, tw_output x, tw_output shape)
{
    return binary(graph, "Reshape", x, shape);
}

tw_output tw_expand_dims(tw_graph *graph, tw_output x, int axis)
{
    return binary(graph, "ExpandDims", x, twi_constant_int(graph, axis));
}

static int copy_axes(const int *axes, int num_axes, int64_t values[TW_MAX_RANK])
{
    int count = axes ? num_axes < TW_MAX_RANK ? num_axes : TW_MAX_RANK : 0;
    for (int i = 0; i < count; i++)
        values[i] = axes[i];
    return count;
}

tw_output tw_squeeze(tw_graph *graph, tw_output x, const int *axes, int num_axes)
{
    int64_t values[TW_MAX_RANK];
    int count = copy_axes(axes, num_axes, values);
    return twi_build(graph, "Squeeze", &x, 1, TWI_ATTRS(tw_attr_ints("squeeze_dims", values, count)));
}

tw_output tw_fill(tw_graph *graph, tw_output dims, tw_output value)
{
    return binary(graph, "Fill", dims, value);
}

tw_output tw_range(tw_graph *graph, tw_output start, tw_output limit, tw_output delta)
{
    return twi_build(graph, "Range", TWI_INPUTS(start, limit, delta), TWI_NO_ATTRS);
}

tw_output tw_lin_space(tw_graph *graph, tw_output start, tw_output stop, int num)
{
    return twi_build(graph, "LinSpace", TWI_INPUTS(start, stop, twi_constant_int(graph, num)), TWI_NO_ATTRS);
}

tw_output tw_one_hot(tw_graph *graph, tw_output indices, int depth)
{
    return twi_build(graph, "OneHot",
                     TWI_INPUTS(indices, twi_constant_int(graph, depth), tw_scalar(graph, 1), tw_scalar(graph, 0)),
                     TWI_NO_ATTRS);
}

tw_output tw_broadcast_to(tw_graph *graph, tw_output x, tw_shape shape)
{
    return binary(graph, "BroadcastTo", x, ints(graph, shape));
}

tw_output tw_slice(tw_graph *graph, tw_output x, tw_shape begin, tw_shape size)
{
    return twi_build(graph, "Slice", TWI_INPUTS(x, ints(graph, begin), ints(graph, size)), TWI_NO_ATTRS);
}

tw_output tw_strided_slice(tw_graph *graph, tw_output x, tw_strided_slice_options options)
{
    tw_shape strides = options.strides;
    if (strides.rank == 0) {
        strides = options.begin;
        for (int i = 0; i < strides.rank; i++)
            strides.dims[i] = 1;
    }
    return twi_build(graph, "StridedSlice",
                     TWI_INPUTS(x, ints(graph, options.begin), ints(graph, options.end), ints(graph, strides)),
                     TWI_ATTRS(tw_attr_int("begin_mask", options.begin_mask), tw_attr_int("end_mask", options.end_mask),
                               tw_attr_int("ellipsis_mask", options.ellipsis_mask),
                               tw_attr_int("new_axis_mask", options.new_axis_mask),
                               tw_attr_int("shrink_axis_mask", options.shrink_axis_mask)));
}

tw_output tw_concat(tw_graph *graph, const tw_output *values, int num_values, int axis)
{
    TWI_NEED_IN(graph, values || num_values <= 0, "values", (tw_output){0});
    tw_output *inputs = twi_alloc_array((size_t)num_values + 1, sizeof *inputs);
    if (!inputs) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while joining %d values", num_values);
        return (tw_output){0};
    }
    memcpy(inputs, values, sizeof *inputs * (size_t)num_values);
    inputs[num_values] = twi_constant_int(graph, axis);
    tw_output output = twi_build(graph, "ConcatV2", inputs, num_values + 1, TWI_NO_ATTRS);
    twi_free(inputs);
    return output;
}

static void outputs_of(tw_node *node, tw_output *outputs, int count)
{
    for (int i = 0; i < count; i++)
        outputs[i] = tw_node_output(node, i);
}

void tw_split(tw_graph *graph, tw_output x, int axis, tw_output *parts, int num_parts)
{
    TWI_NEED_IN(graph, parts || num_parts <= 0, "parts", );
    tw_node *node = tw_add_node(graph, "Split", NULL, TWI_INPUTS(twi_constant_int(graph, axis), x),
                                TWI_ATTRS(tw_attr_int("num_split", num_parts)));
    outputs_of(node, parts, num_parts);
}

void tw_split_sizes(tw_graph *graph, tw_output x, int axis, const int64_t *sizes, tw_output *parts, int num_parts)
{
    TWI_NEED_IN(graph, sizes, "sizes", );
    TWI_NEED_IN(graph, parts || num_parts <= 0, "parts", );
    tw_output size_splits = twi_constant_of(graph, tw_tensor_from(TW_INT64, TW_SHAPE(num_parts), sizes));
    tw_node *node = tw_add_node(graph, "SplitV", NULL, TWI_INPUTS(x, size_splits, twi_constant_int(graph, axis)),
                                TWI_ATTRS(tw_attr_int("num_split", num_parts)));
    outputs_of(node, parts, num_parts);
}

tw_output tw_pack(tw_graph *graph, const tw_output *values, int num_values, int axis)
{
    return twi_build(graph, "Pack", values, num_values, TWI_ATTRS(tw_attr_int("axis", axis)));
}

void tw_unpack(tw_graph *graph, tw_output x, int axis, tw_output *values, int num_values)
{
    TWI_NEED_IN(graph, values || num_values <= 0, "values", );
    tw_node *node =
        tw_add_node(graph, "Unpack", NULL, &x, 1, TWI_ATTRS(tw_attr_int("num", num_values), tw_attr_int("axis", axis)));
    outputs_of(node, values, num_values);
}

tw_output tw_tile(tw_graph *graph, tw_output x, tw_shape multiples)
{
    return binary(graph, "Tile", x, ints(graph, multiples));
}

tw_output tw_transpose(tw_graph *graph, tw_output x, tw_shape permutation)
{
    return binary(graph, "Transpose", x, ints(graph, permutation));
}

/* [rank,2]: what is added before and after each axis. */
static tw_output paddings(tw_graph *graph, tw_shape before, tw_shape after)
{
    int32_t values[2 * TW_MAX_RANK];
    if (before.rank < 0 || before.rank != after.rank) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "paddings before %d and after %d axes", before.rank, after.rank);
        return (tw_output){0};
    }
    for (int i = 0; i < before.rank; i++) {
        values[2 * i] = (int32_t)before.dims[i];
        values[2 * i + 1] = (int32_t)after.dims[i];
    }
    return tw_constant_int32s(graph, TW_SHAPE(before.rank, 2), values);
}

tw_output tw_pad(tw_graph *graph, tw_output x, tw_shape before, tw_shape after)
{
    return binary(graph, "Pad", x, paddings(graph, before, after));
}

tw_output tw_mirror_pad(tw_graph *graph, tw_output x, tw_shape before, tw_shape after, bool repeat_edge)
{
    return twi_build(graph, "MirrorPad", TWI_INPUTS(x, paddings(graph, before, after)),
                     TWI_ATTRS(tw_attr_string("mode", repeat_edge ? "SYMMETRIC" : "REFLECT")));
}

tw_output tw_reverse(tw_graph *graph, tw_output x, const int *axes, int num_axes)
{
    int64_t values[TW_MAX_RANK];
    int count = copy_axes(axes, num_axes, values);
    return binary(graph, "ReverseV2", x, twi_constant_ints(graph, values, count));
}

tw_output tw_gather(tw_graph *graph, tw_output params, tw_output indices, int axis)
{
    return twi_build(graph, "GatherV2", TWI_INPUTS(params, indices, twi_constant_int(graph, axis)), TWI_NO_ATTRS);
}

tw_output tw_gather_nd(tw_graph *graph, tw_output params, tw_output indices)
{
    return binary(graph, "GatherNd", params, indices);
}

tw_output tw_scatter_nd(tw_graph *graph, tw_output indices, tw_output updates, tw_output shape)
{
    return twi_build(graph, "ScatterNd", TWI_INPUTS(indices, updates, shape), TWI_NO_ATTRS);
}

tw_output tw_unsorted_segment_sum(tw_graph *graph, tw_output data, tw_output ids, int num_segments)
{
    return twi_build(graph, "UnsortedSegmentSum", TWI_INPUTS(data, ids, twi_constant_int(graph, num_segments)),
                     TWI_NO_ATTRS);
}

bool tw_find_rows(tw_output sum, tw_rows *rows)
{
    const tw_node *node = sum.node;
    if (!node || !twi_op_is(node->op, TWI_SPARSE))
        return false;
    tw_shape shape = tw_output_shape(sum), ids = tw_output_shape(node->inputs[1]);
    if (shape.rank < 1 || shape.dims[0] < 0 || shape.dims[0] > INT_MAX || ids.rank != 1)
        return false;
    *rows = (tw_rows){node->inputs[0], node->inputs[1], (int)shape.dims[0]};
    return true;
}

tw_output tw_select(tw_graph *graph, tw_output condition, tw_output yes, tw_output no)
{
    return twi_build(graph, "SelectV2", TWI_INPUTS(condition, yes, no), TWI_NO_ATTRS);
}

tw_output tw_diag(tw_graph *graph, tw_output diagonal)
{
    return unary(graph, "Diag", diagonal);
}

tw_output tw_diag_part(tw_graph *graph, tw_output x)
{
    return unary(graph, "DiagPart", x);
}

void tw_top_k(tw_graph *graph, tw_output x, int k, tw_output *values, tw_output *indices)
{
    TWI_NEED_IN(graph, values, "values", );
    TWI_NEED_IN(graph, indices, "indices", );
    tw_node *node = tw_add_node(graph, "TopKV2", NULL, TWI_INPUTS(x, twi_constant_int(graph, k)), TWI_NO_ATTRS);
    *values = tw_node_output(node, 0);
    *indices = tw_node_output(node, 1);
}
