/* slice.c - ops that cut, join, turn and pad arrays. Rows, shape rules, builders.
 * Never here: gradient rules (array_gradients.c), kernels (src/device). */
#include "ops/gradients.h"
#include "ops/rules.h"
#include "ops/types.h"
#include "tensor/strided.h"

/* ---- shape rules ------------------------------------------------------------------------------------------------- */

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
                return TWI_REFUSE(c, "begin, end and strides have %lld and %lld numbers", (long long)count,
                                  (long long)shape.dims[0]);
            count = shape.dims[0];
        }
    }
    if (c->inputs[0].rank < 0 || count < 0)
        return TW_OK;
    if (count > 32)
        return TWI_REFUSE(c, "the slice has %lld numbers, expected at most 32", (long long)count);
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
    return twi_spelled_shape(c, 0, false, &c->outputs[0]);
}

static tw_status slice_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], begin = TW_UNKNOWN_SHAPE, size;
    tw_status status;
    TWI_TRY(twi_spelled_shape(c, 2, true, &size));
    const tw_tensor *from_value = tw_shape_is_known(size) ? c->input_values[1] : twi_ask_value(c, 1);
    if (from_value)
        TWI_TRY(twi_spelled_shape(c, 1, false, &begin));
    tw_shape of_begin = c->inputs[1];
    int numbers =
        of_begin.rank == 1 && of_begin.dims[0] >= 0 && of_begin.dims[0] <= TW_MAX_RANK ? (int)of_begin.dims[0] : -1;
    int rank = in.rank >= 0 ? in.rank : numbers >= 0 ? numbers : size.rank;
    if (of_begin.rank >= 0)
        TWI_TRY(twi_expect_rank(c, 1, 1));
    if (rank < 0)
        return TW_OK;
    if ((numbers >= 0 && numbers != rank) || (size.rank >= 0 && size.rank != rank))
        return TWI_REFUSE(c, "begin and size must have %d numbers, one an axis", rank);
    tw_shape out = twi_unknown_of_rank(rank);
    for (int i = 0; i < rank; i++) {
        int64_t dim = in.rank < 0 ? -1 : in.dims[i], from = from_value ? begin.dims[i] : -1;
        if (c->input_values[2])
            out.dims[i] = size.dims[i] >= 0 ? size.dims[i] : dim >= 0 && from >= 0 && from <= dim ? dim - from : -1;
        if (dim >= 0 && ((from >= 0 && from > dim) || (out.dims[i] >= 0 && out.dims[i] > dim - (from > 0 ? from : 0))))
            return TWI_REFUSE(c, "axis %d: begin %lld, size %lld do not lie within %lld", i, (long long)from,
                              (long long)(c->input_values[2] ? size.dims[i] : -1), (long long)dim);
    }
    c->outputs[0] = out;
done:
    return status;
}

/* XLA's slices have a begin for each axis, which is moved to where the part fits: so it must fit somewhere. */
static tw_status check_movable(twi_inference *c, tw_shape part, int begins)
{
    tw_shape in = c->inputs[0], numbers = c->inputs[begins];
    char text[2][128];
    tw_status status = twi_expect_rank(c, begins, 1);
    if (status != TW_OK || in.rank < 0)
        return status;
    if (numbers.rank == 1 && numbers.dims[0] >= 0 && numbers.dims[0] != in.rank)
        return TWI_REFUSE(c, "%lld indices for an input of shape %s, expected one an axis", (long long)numbers.dims[0],
                          tw_shape_text(in, text[0], sizeof text[0]));
    bool fits = part.rank < 0 || part.rank == in.rank;
    for (int i = 0; i < part.rank && fits; i++)
        fits = part.dims[i] < 0 || in.dims[i] < 0 || part.dims[i] <= in.dims[i];
    return fits ? TW_OK
                : TWI_REFUSE(c, "a part of shape %s does not lie within %s",
                             tw_shape_text(part, text[0], sizeof text[0]), tw_shape_text(in, text[1], sizeof text[1]));
}

static tw_status dynamic_slice_shape(twi_inference *c)
{
    tw_status status = twi_spelled_shape(c, 2, false, &c->outputs[0]);
    return status == TW_OK ? check_movable(c, c->outputs[0], 1) : status;
}

static tw_status dynamic_update_slice_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    return check_movable(c, c->inputs[1], 2);
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
            return TWI_REFUSE(c, "value %d is a scalar: pack scalars, do not join them", i);
        int64_t normal = axis;
        if (axis_known && (status = twi_normal_axis(c, &normal, shape.rank)) != TW_OK)
            return status;
        if (!axis_known) {
            if (out.rank >= 0 && out.rank != shape.rank)
                return TWI_REFUSE(c, "values of rank %d and %d", out.rank, shape.rank);
            out = twi_unknown_of_rank(shape.rank);
            continue;
        }
        if (sum < 0 || shape.dims[normal] < 0)
            sum = -1;
        else if (__builtin_add_overflow(sum, shape.dims[normal], &sum))
            return TWI_REFUSE(c, "the values are too large to be joined");
        shape.dims[normal] = -1;
        if (twi_merge_shapes(out, shape, &out, NULL) != TW_OK)
            return TWI_REFUSE(c, "value %d has shape %s, which does not fit %s beside axis %lld", i,
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

/* Its axes, if they are known, are different ones. */
static tw_status reverse_v2_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    const tw_tensor *axes = c->input_values[1];
    bool turned[TW_MAX_RANK] = {false};
    tw_status status = twi_expect_rank(c, 1, 1);
    for (int64_t i = 0; axes && in.rank >= 0 && i < axes->elements && status == TW_OK; i++) {
        int64_t axis = twi_tensor_int(axes, i);
        status = twi_normal_axis(c, &axis, in.rank);
        if (status == TW_OK && turned[axis])
            return TWI_REFUSE(c, "axis %lld specified more than once", (long long)axis);
        if (status == TW_OK)
            turned[axis] = true;
    }
    c->outputs[0] = in;
    return status;
}

static tw_status split_shape(twi_inference *c)
{
    tw_shape in = c->inputs[1], out = in;
    int64_t axis;
    bool axis_known = twi_number_of(c, 0, &axis);
    if (c->num_outputs == 0)
        return TWI_REFUSE(c, "num_split is 0");
    tw_status scalar = twi_expect_rank(c, 0, 0);
    if (scalar != TW_OK)
        return scalar;
    if (in.rank >= 0 && axis_known) {
        tw_status status = twi_normal_axis(c, &axis, in.rank);
        if (status != TW_OK)
            return status;
        if (in.dims[axis] >= 0 && in.dims[axis] % c->num_outputs != 0)
            return TWI_REFUSE(c, "axis %lld of size %lld cannot be split into %d equal parts", (long long)axis,
                              (long long)in.dims[axis], c->num_outputs);
        out.dims[axis] = in.dims[axis] < 0 ? -1 : in.dims[axis] / c->num_outputs;
    } else if (in.rank >= 0) {
        out = twi_unknown_of_rank(in.rank);
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
    tw_status status = twi_expect_rank(c, 1, 1);
    status = status == TW_OK ? twi_expect_rank(c, 2, 0) : status;
    if (status != TW_OK || in.rank < 0)
        return status;
    if (in.rank == 0)
        return TWI_REFUSE(c, "a scalar cannot be split");
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = twi_unknown_of_rank(in.rank);
    if (!twi_number_of(c, 2, &axis))
        return TW_OK;
    status = twi_normal_axis(c, &axis, in.rank);
    if (status != TW_OK)
        return status;
    for (int i = 0; i < c->num_outputs; i++) {
        c->outputs[i] = in;
        c->outputs[i].dims[axis] = -1;
    }
    if (!sizes)
        return TW_OK;
    if (sizes->elements != c->num_outputs)
        return TWI_REFUSE(c, "%lld sizes for %d parts", (long long)sizes->elements, c->num_outputs);
    for (int i = 0; i < c->num_outputs; i++) {
        int64_t size = twi_tensor_int(sizes, i);
        if (size < -1 || (size == -1 && rest >= 0))
            return TWI_REFUSE(c, size < -1 ? "size %lld of a part" : "only one size may be left open (%lld)",
                              (long long)size);
        if (size < 0)
            rest = i;
        else if (__builtin_add_overflow(sum, size, &sum))
            return TWI_REFUSE(c, "the sizes of the parts are too large");
        c->outputs[i].dims[axis] = size;
    }
    if (in.dims[axis] >= 0 && (rest < 0 ? sum != in.dims[axis] : sum > in.dims[axis]))
        return TWI_REFUSE(c, "the sizes of the parts sum up to %lld, axis %lld has %lld", (long long)sum,
                          (long long)axis, (long long)in.dims[axis]);
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
    if ((status = twi_check_rank(c, out.rank)) != TW_OK || (status = twi_normal_axis(c, &axis, out.rank)) != TW_OK)
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
    tw_status status = twi_normal_axis(c, &axis, in.rank);
    if (status != TW_OK)
        return status;
    if (in.dims[axis] >= 0 && in.dims[axis] != c->num_outputs)
        return TWI_REFUSE(c, "axis %lld has size %lld, expected %d", (long long)axis, (long long)in.dims[axis],
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
    tw_status status = twi_spelled_shape(c, 1, false, &multiples);
    if (status != TW_OK || multiples.rank < 0) {
        c->outputs[0] = in.rank < 0 ? TW_UNKNOWN_SHAPE : twi_unknown_of_rank(in.rank);
        return status;
    }
    if (in.rank < 0)
        in = twi_unknown_of_rank(multiples.rank);
    if (in.rank != multiples.rank)
        return TWI_REFUSE(c, "%d multiples, expected %d, one an axis", multiples.rank, in.rank);
    for (int i = 0; i < in.rank; i++)
        if (in.dims[i] < 0 || multiples.dims[i] < 0)
            in.dims[i] = -1;
        else if (__builtin_mul_overflow(in.dims[i], multiples.dims[i], &in.dims[i]))
            return TWI_REFUSE(c, "axis %d becomes too large", i);
    c->outputs[0] = in;
    return TW_OK;
}

static tw_status transpose_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], perm, out;
    bool taken[TW_MAX_RANK] = {false};
    tw_status status = twi_spelled_shape(c, 1, true, &perm);
    if (status != TW_OK)
        return status;
    if (in.rank >= 0 && perm.rank >= 0 && in.rank != perm.rank)
        return TWI_REFUSE(c, "a permutation of %d axes, the input has %d", perm.rank, in.rank);
    int rank = in.rank >= 0 ? in.rank : perm.rank;
    out = rank < 0 ? TW_UNKNOWN_SHAPE : twi_unknown_of_rank(rank);
    for (int i = 0; c->input_values[1] && i < rank; i++) {
        int64_t axis = perm.dims[i];
        if ((status = twi_normal_axis(c, &axis, rank)) != TW_OK)
            return status;
        if (taken[axis])
            return TWI_REFUSE(c, "axis %lld appears twice in the permutation", (long long)axis);
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
        return TWI_REFUSE(c, "paddings of shape [%lld,%lld], expected [%d,2]", (long long)of_paddings.dims[0],
                          (long long)of_paddings.dims[1], in.rank);
    if (in.rank < 0)
        return TW_OK;
    for (int i = 0; i < in.rank; i++) {
        int64_t sum = -1;
        for (int k = 0; paddings && k < 2; k++) {
            int64_t padding = twi_tensor_int(paddings, 2 * i + k);
            int64_t dim = in.dims[i];
            if (padding < 0 || padding > INT64_MAX / 4 || (limit >= 0 && sign > 0 && dim >= 0 && padding > dim - limit))
                return TWI_REFUSE(c, "padding %lld of axis %d, which has size %lld", (long long)padding, i,
                                  (long long)dim);
            sum = k ? sum + padding : padding;
        }
        if (!paddings || in.dims[i] < 0)
            in.dims[i] = -1;
        else if (__builtin_add_overflow(in.dims[i], sign * sum, &in.dims[i]))
            return TWI_REFUSE(c, "axis %d becomes too large", i);
        if (paddings && sign < 0 && c->inputs[0].dims[i] >= 0 && in.dims[i] < 0)
            return TWI_REFUSE(c, "axis %d is smaller than its paddings", i);
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
        return TWI_REFUSE(c, "All input shapes must be fully defined and start with 1");
    if (shape.rank > 0)
        shape.dims[0] = c->num_inputs;
    c->outputs[0] = shape;
    return TW_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define INDEX "{int32,int64}"
#define STRIDED_MASKS                                                                                                  \
    "T:type; Index:" INDEX "; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; "            \
    "shrink_axis_mask:int=0"

const twi_op twi_slice_ops[] = {
    {"StridedSlice", "input:T, begin:Index, end:Index, strides:Index", "output:T", STRIDED_MASKS, strided_slice_shape,
     twi_gradient_strided_slice},
    {"StridedSliceGrad", "shape:Index, begin:Index, end:Index, strides:Index, dy:T", "output:T", STRIDED_MASKS,
     strided_slice_grad_shape, twi_gradient_strided_slice_grad},
    {"Slice", "input:T, begin:Index, size:Index", "output:T", "T:type; Index:" INDEX, slice_shape, twi_gradient_slice,
     .layout = "iss:i"},
    {"XlaDynamicSlice", "input:T, start_indices:Tindices, size_indices:Tindices", "output:T",
     "T:type; Tindices:" INDEX, dynamic_slice_shape, NULL, TWI_HOST_ONLY},
    {"XlaDynamicUpdateSlice", "input:T, update:T, indices:Tindices", "output:T", "T:type; Tindices:" INDEX,
     dynamic_update_slice_shape, NULL, TWI_HOST_ONLY},
    {"ConcatV2", "values:N*T, axis:Tidx", "output:T", "N:int>=2; T:type; Tidx:" INDEX "=int32", concat_v2_shape,
     twi_gradient_concat, .layout = "ia:i"},
    {"Concat", "concat_dim:int32, values:N*T", "output:T", "N:int>=2; T:type", concat_shape, twi_gradient_concat},
    {"ConcatOffset", "concat_dim:int32, shape:N*int32", "offset:N*int32", "N:int>=2", concat_offset_shape,
     twi_stops_gradient},
    {"Split", "split_dim:int32, value:T", "output:num_split*T", "num_split:int>=1; T:type", split_shape,
     twi_gradient_split},
    {"SplitV", "value:T, size_splits:Tlen, split_dim:int32", "output:num_split*T",
     "num_split:int>=1; T:type; Tlen:" INDEX "=int64", split_v_shape, twi_gradient_split_v},
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
     reverse_v2_shape, twi_gradient_reverse},
    {"ParallelConcat", "values:N*T", "output:T", "N:int; T:type; shape:shape", parallel_concat_shape, NULL},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------------- */

tw_output tw_slice(tw_graph *graph, tw_output x, tw_shape begin, tw_shape size)
{
    return twi_build(graph, "Slice", TWI_INPUTS(x, twi_constant_shape(graph, begin), twi_constant_shape(graph, size)),
                     TWI_NO_ATTRS);
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
                     TWI_INPUTS(x, twi_constant_shape(graph, options.begin), twi_constant_shape(graph, options.end),
                                twi_constant_shape(graph, strides)),
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
    return twi_build(graph, "Tile", TWI_INPUTS(x, twi_constant_shape(graph, multiples)), TWI_NO_ATTRS);
}

tw_output tw_transpose(tw_graph *graph, tw_output x, tw_shape permutation)
{
    return twi_build(graph, "Transpose", TWI_INPUTS(x, twi_constant_shape(graph, permutation)), TWI_NO_ATTRS);
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
    return twi_build(graph, "Pad", TWI_INPUTS(x, paddings(graph, before, after)), TWI_NO_ATTRS);
}

tw_output tw_mirror_pad(tw_graph *graph, tw_output x, tw_shape before, tw_shape after, bool repeat_edge)
{
    return twi_build(graph, "MirrorPad", TWI_INPUTS(x, paddings(graph, before, after)),
                     TWI_ATTRS(tw_attr_string("mode", repeat_edge ? "SYMMETRIC" : "REFLECT")));
}

tw_output tw_reverse(tw_graph *graph, tw_output x, const int *axes, int num_axes)
{
    int64_t values[TW_MAX_RANK];
    int count = twi_copy_axes(axes, num_axes, values);
    return twi_build(graph, "ReverseV2", TWI_INPUTS(x, twi_constant_ints(graph, values, count)), TWI_NO_ATTRS);
}
