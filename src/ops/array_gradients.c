/* array_gradients.c - the gradient rules of array.c's ops, built from public ops.
 * What depends on shapes is worked out here where they are known, and left to nodes where they are not. */
#include "graph/graph.h"
#include "ops/build.h"
#include "ops/gradients.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

/* In every rule: the node's inputs, its output and the gradient that flows in. */
#define X(i) tw_node_input(g->node, i)
#define Y ((tw_output){g->node, 0})
#define DY (g->dy[0])
#define G (g->graph)

static void needs_shape(twi_gradient *g)
{
    twi_graph_fail(G, TW_UNIMPLEMENTED, "the gradient of %s '%s' needs an axis that is known, and inputs of known rank",
                   g->node->op->name, g->node->name);
}

static tw_output binary(twi_gradient *g, const char *op, tw_output x, tw_output y)
{
    return twi_build(G, op, TWI_INPUTS(x, y), TWI_NO_ATTRS);
}

/* A vector constant of int32 or int64. */
static tw_output ints_of_type(twi_gradient *g, tw_dtype dtype, const int64_t *values, int count)
{
    tw_tensor *tensor = tw_tensor_create(dtype, TW_SHAPE(count));
    for (int i = 0; tensor && i < count; i++)
        if (dtype == TW_INT32)
            ((int32_t *)tensor->data)[i] = (int32_t)values[i];
        else
            ((int64_t *)tensor->data)[i] = values[i];
    return twi_constant_of(G, tensor);
}

/* The shape of x as integers of that type. */
static tw_output shape_of_type(twi_gradient *g, tw_output x, tw_dtype dtype)
{
    tw_shape shape = tw_output_shape(x);
    if (tw_shape_is_known(shape))
        return ints_of_type(g, dtype, shape.dims, shape.rank);
    return twi_build(G, "Shape", &x, 1, TWI_ATTRS(tw_attr_type("out_type", dtype)));
}

/* ---- the same elements ------------------------------------------------------------------------------------- */

void twi_gradient_identity(twi_gradient *g)
{
    for (int i = 0; i < tw_node_num_inputs(g->node); i++)
        g->dx[i] = g->dy[i];
}

void twi_gradient_prevent(twi_gradient *g)
{
    twi_graph_fail(G, TW_FAILED_PRECONDITION, "Gradient explicitly disabled at '%s'. Reason: %s", g->node->name,
                   twi_attr_string(&g->node->attrs, "message", ""));
}

void twi_gradient_check_numerics(twi_gradient *g)
{
    char message[512];
    snprintf(message, sizeof message, "Not a number (NaN) or infinity (Inf) values detected in gradient. %s",
             twi_attr_string(&g->node->attrs, "message", ""));
    g->dx[0] = twi_build(G, "CheckNumerics", &DY, 1, TWI_ATTRS(tw_attr_string("message", message)));
}

void twi_gradient_reshape(twi_gradient *g)
{
    g->dx[0] = tw_reshape_to(G, DY, twi_shape_tensor(G, X(0)));
}

void twi_gradient_fill(twi_gradient *g)
{
    g->dx[1] = tw_reduce_sum(G, DY, NULL, 0, false);
}

void twi_gradient_broadcast_to(twi_gradient *g)
{
    g->dx[0] = twi_unbroadcast(G, DY, X(0), Y);
}

/* ---- cutting ----------------------------------------------------------------------------------------------- */

static tw_output with_masks(twi_gradient *g, const char *op, const tw_output *inputs, int num_inputs)
{
    static const char *const masks[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"};
    tw_attr attrs[5];
    for (int i = 0; i < 5; i++)
        attrs[i] = tw_attr_int(masks[i], twi_attr_int(&g->node->attrs, masks[i], 0));
    return twi_build(G, op, inputs, num_inputs, attrs, 5);
}

void twi_gradient_strided_slice(twi_gradient *g)
{
    tw_output shape = shape_of_type(g, X(0), tw_output_dtype(X(1)));
    g->dx[0] = with_masks(g, "StridedSliceGrad", TWI_INPUTS(shape, X(1), X(2), X(3), DY));
}

void twi_gradient_strided_slice_grad(twi_gradient *g)
{
    g->dx[4] = with_masks(g, "StridedSlice", TWI_INPUTS(DY, X(1), X(2), X(3)));
}

void twi_gradient_strided_slice_update(twi_gradient *g)
{
    g->dx[0] = with_masks(g, "TensorStridedSliceUpdate", TWI_INPUTS(DY, X(1), X(2), X(3), tw_zeros_like(G, X(4))));
    g->dx[4] = with_masks(g, "StridedSlice", TWI_INPUTS(DY, X(1), X(2), X(3)));
}

/* dy with zeros around it, where x lay around its slice. */
void twi_gradient_slice(twi_gradient *g)
{
    tw_shape in = tw_output_shape(X(0)), out = tw_output_shape(Y), begin = twi_shape_of_value(twi_constant_value(X(1)));
    if (tw_shape_is_known(in) && tw_shape_is_known(out) && begin.rank == in.rank) {
        tw_shape after = in;
        for (int i = 0; i < in.rank; i++)
            after.dims[i] -= begin.dims[i] + out.dims[i];
        g->dx[0] = tw_pad(G, DY, begin, after);
        return;
    }
    tw_dtype index = tw_output_dtype(X(1));
    tw_output rest = tw_sub(G, tw_sub(G, shape_of_type(g, X(0), index), shape_of_type(g, Y, index)), X(1));
    tw_output sides[2] = {tw_expand_dims(G, X(1), 1), tw_expand_dims(G, rest, 1)};
    g->dx[0] = binary(g, "Pad", DY, tw_concat(G, sides, 2, 1));
}

/* The part of dy where x lies within its padding. */
void twi_gradient_pad(twi_gradient *g)
{
    const tw_tensor *paddings = twi_constant_value(X(1));
    tw_shape shape = tw_output_shape(X(0)), begin = shape;
    if (tw_shape_is_known(shape) && paddings) {
        for (int i = 0; i < shape.rank; i++)
            begin.dims[i] = twi_tensor_int(paddings, 2 * i);
        g->dx[0] = tw_slice(G, DY, begin, shape);
        return;
    }
    tw_output before = tw_strided_slice(G, X(1),
                                        (tw_strided_slice_options){TW_SHAPE(0, 0), TW_SHAPE(0, 0), .begin_mask = 1,
                                                                   .end_mask = 1, .shrink_axis_mask = 2});
    g->dx[0] =
        twi_build(G, "Slice", TWI_INPUTS(DY, before, shape_of_type(g, X(0), tw_output_dtype(X(1)))), TWI_NO_ATTRS);
}

static tw_output mirror(twi_gradient *g, const char *op)
{
    const char *mode = twi_attr_string(&g->node->attrs, "mode", "");
    return twi_build(G, op, TWI_INPUTS(DY, X(1)), TWI_ATTRS(tw_attr_string("mode", mode)));
}

void twi_gradient_mirror_pad(twi_gradient *g)
{
    g->dx[0] = mirror(g, "MirrorPadGrad");
}

void twi_gradient_mirror_pad_grad(twi_gradient *g)
{
    g->dx[0] = mirror(g, "MirrorPad");
}

/* ---- joining ----------------------------------------------------------------------------------------------- */

/* True if all shapes are known; then sizes[i] is the size of value i along the axis. */
static bool static_concat(twi_gradient *g, const tw_tensor *axis_value, int first, int n, int *axis)
{
    tw_shape out = tw_output_shape(Y);
    if (!axis_value || !tw_shape_is_known(out))
        return false;
    int64_t at = twi_tensor_int(axis_value, 0);
    *axis = (int)(at < 0 ? at + out.rank : at);
    for (int i = 0; i < n; i++)
        if (!tw_shape_is_known(tw_output_shape(X(first + i))))
            return false;
    return true;
}

/* Each value gets its own part of dy. Concat has the axis first, ConcatV2 last. */
void twi_gradient_concat(twi_gradient *g)
{
    int n = tw_node_num_inputs(g->node) - 1, axis;
    int first = strcmp(g->node->op->name, "Concat") == 0, axis_input = first ? 0 : n;
    if (n == 1) {
        g->dx[first] = DY;
        return;
    }
    if (static_concat(g, twi_constant_value(X(axis_input)), first, n, &axis)) {
        tw_shape begin = {.rank = tw_output_shape(Y).rank};
        for (int i = 0; i < n; i++) {
            tw_shape size = tw_output_shape(X(first + i));
            g->dx[first + i] = tw_slice(G, DY, begin, size);
            begin.dims[axis] += size.dims[axis];
        }
        return;
    }
    tw_output *shapes = twi_alloc_array((size_t)n + 1, sizeof *shapes);
    if (!shapes) {
        twi_graph_fail(G, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
        return;
    }
    tw_output at = tw_cast(G, X(axis_input), TW_INT32);
    shapes[0] = tw_floor_mod(G, at, tw_rank_of(G, X(first)));
    for (int i = 0; i < n; i++)
        shapes[i + 1] = shape_of_type(g, X(first + i), TW_INT32);
    tw_node *offsets = tw_add_node(G, "ConcatOffset", NULL, shapes, n + 1, TWI_NO_ATTRS);
    for (int i = 0; i < n; i++)
        g->dx[first + i] =
            twi_build(G, "Slice", TWI_INPUTS(DY, tw_node_output(offsets, i), shapes[i + 1]), TWI_NO_ATTRS);
    twi_free(shapes);
}

/* The gradients of all outputs, zeros for those that have none, and room for one input more. NULL on failure. */
static tw_output *all_gradients(twi_gradient *g)
{
    int n = tw_node_num_outputs(g->node);
    tw_output *all = twi_alloc_array((size_t)n + 1, sizeof *all);
    if (!all)
        twi_graph_fail(G, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
    for (int i = 0; all && i < n; i++)
        all[i] = g->dy[i].node ? g->dy[i] : tw_zeros_like(G, (tw_output){g->node, i});
    return all;
}

static tw_output join(twi_gradient *g, tw_output axis)
{
    int n = tw_node_num_outputs(g->node);
    tw_output *all = all_gradients(g), joined = {0};
    if (all) {
        all[n] = axis;
        joined = n == 1 ? all[0] : twi_build(G, "ConcatV2", all, n + 1, TWI_NO_ATTRS);
    }
    twi_free(all);
    return joined;
}

void twi_gradient_split(twi_gradient *g)
{
    g->dx[1] = join(g, X(0));
}

void twi_gradient_split_v(twi_gradient *g)
{
    g->dx[0] = join(g, X(2));
}

void twi_gradient_pack(twi_gradient *g)
{
    tw_unpack(G, DY, (int)twi_attr_int(&g->node->attrs, "axis", 0), g->dx, tw_node_num_inputs(g->node));
}

void twi_gradient_unpack(twi_gradient *g)
{
    tw_output *all = all_gradients(g);
    if (all)
        g->dx[0] = tw_pack(G, all, tw_node_num_outputs(g->node), (int)twi_attr_int(&g->node->attrs, "axis", 0));
    twi_free(all);
}

/* ---- repeating and rearranging ----------------------------------------------------------------------------- */

/* dy as [m0,s0,m1,s1,...], summed over the repetitions m. Axes that were not repeated stay as they are, so that the
 * ranks stay small. False if the shapes are not known or there are too many axes. */
static bool static_tile(twi_gradient *g)
{
    tw_shape shape = tw_output_shape(X(0)), multiples = twi_shape_of_value(twi_constant_value(X(1)));
    tw_shape split = {.rank = 0};
    int axes[TW_MAX_RANK], num_axes = 0;
    if (!tw_shape_is_known(shape) || multiples.rank != shape.rank)
        return false;
    for (int i = 0; i < shape.rank; i++) {
        bool repeated = multiples.dims[i] != 1;
        if (split.rank + 1 + repeated > TW_MAX_RANK)
            return false;
        if (repeated) {
            axes[num_axes++] = split.rank;
            split.dims[split.rank++] = multiples.dims[i];
        }
        split.dims[split.rank++] = shape.dims[i];
    }
    g->dx[0] = num_axes == 0 ? DY : tw_reduce_sum(G, tw_reshape(G, DY, split), axes, num_axes, false);
    return true;
}

/* Product of the elements of a vector from `begin` to before `end`; with `open` to its end. */
static tw_output product_of(twi_gradient *g, tw_output vector, int64_t begin, int64_t end, bool open)
{
    tw_strided_slice_options slice = {.begin = TW_SHAPE(begin), .end = TW_SHAPE(end), .end_mask = open};
    return binary(g, "Prod", tw_strided_slice(G, vector, slice), twi_constant_int(G, 0));
}

/* Axis by axis, where twice as many would be more than there may be: what lies before, the copies, the axis, and what
 * lies behind. */
static tw_output untile_by_axis(twi_gradient *g, tw_output shape)
{
    tw_output sum = DY, whole = tw_mul(G, shape, X(1));
    for (int i = 0; i < tw_output_shape(X(0)).rank; i++) {
        tw_strided_slice_options own = {TW_SHAPE(i), TW_SHAPE(i + 1), .shrink_axis_mask = 1};
        tw_output parts[] = {product_of(g, shape, 0, i, false), tw_strided_slice(G, X(1), own),
                             tw_strided_slice(G, shape, own), product_of(g, whole, i + 1, 0, true)};
        sum = binary(g, "Sum", tw_reshape_to(G, sum, tw_pack(G, parts, 4, 0)), twi_constant_int(G, 1));
    }
    return sum;
}

void twi_gradient_tile(twi_gradient *g)
{
    if (static_tile(g))
        return;
    tw_output shape = shape_of_type(g, X(0), tw_output_dtype(X(1)));
    if (tw_output_shape(X(0)).rank > TW_MAX_RANK / 2) {
        g->dx[0] = tw_reshape_to(G, untile_by_axis(g, shape), shape);
        return;
    }
    tw_output pairs = tw_pack(G, (tw_output[]){X(1), shape}, 2, 1);
    tw_output split = tw_reshape(G, pairs, TW_SHAPE(-1));
    tw_output axes = tw_range(G, twi_constant_int(G, 0), tw_size_of(G, split), twi_constant_int(G, 2));
    tw_output sum = binary(g, "Sum", tw_reshape_to(G, DY, split), axes);
    g->dx[0] = tw_reshape_to(G, sum, shape);
}

void twi_gradient_conjugate_transpose(twi_gradient *g)
{
    twi_gradient_transpose(g);
    g->dx[0] = tw_conj(G, g->dx[0]);
}

void twi_gradient_transpose(twi_gradient *g)
{
    tw_shape perm = twi_shape_of_value(twi_constant_value(X(1))), inverse = perm;
    if (perm.rank < 0) {
        g->dx[0] = binary(g, "Transpose", DY, twi_build(G, "InvertPermutation", TWI_INPUTS(X(1)), TWI_NO_ATTRS));
        return;
    }
    for (int i = 0; i < perm.rank; i++)
        inverse.dims[perm.dims[i] < 0 ? perm.dims[i] + perm.rank : perm.dims[i]] = i;
    g->dx[0] = tw_transpose(G, DY, inverse);
}

void twi_gradient_reverse(twi_gradient *g)
{
    g->dx[0] = binary(g, "ReverseV2", DY, X(1));
}

/* ---- gathering --------------------------------------------------------------------------------------------- */

/* Rows of dy added up at the rows of params they came from. */
static tw_output gather_rows(twi_gradient *g)
{
    tw_output params = X(0), indices = X(1);
    tw_shape shape = tw_output_shape(params);
    tw_output flat = tw_reshape(G, indices, TW_SHAPE(-1));
    if (tw_shape_is_known(shape) && tw_shape_is_known(tw_output_shape(indices))) {
        tw_shape rows = shape;
        rows.dims[0] = tw_shape_elements(tw_output_shape(indices));
        return tw_unsorted_segment_sum(G, tw_reshape(G, DY, rows), flat, (int)shape.dims[0]);
    }
    tw_output dims = tw_shape_of(G, params);
    tw_strided_slice_options first = {TW_SHAPE(0), TW_SHAPE(1), .shrink_axis_mask = 1};
    tw_strided_slice_options others = {TW_SHAPE(1), TW_SHAPE(0), .end_mask = 1};
    tw_output parts[2] = {tw_expand_dims(G, tw_size_of(G, indices), 0), tw_strided_slice(G, dims, others)};
    tw_output rows = tw_reshape_to(G, DY, tw_concat(G, parts, 2, 0));
    return twi_build(G, "UnsortedSegmentSum", TWI_INPUTS(rows, flat, tw_strided_slice(G, dims, first)), TWI_NO_ATTRS);
}

/* The same along another axis: that axis and the axes of the indices are brought to the front and back. */
static tw_output gather_along(twi_gradient *g, int axis)
{
    tw_shape params = tw_output_shape(X(0)), indices = tw_output_shape(X(1));
    tw_shape front = {.rank = tw_output_shape(Y).rank}, rows = {1, {tw_shape_elements(indices)}};
    tw_shape back = {.rank = params.rank};
    for (int i = 0; i < front.rank; i++)
        front.dims[i] = i < indices.rank ? axis + i : i < indices.rank + axis ? i - indices.rank : i;
    for (int i = 0; i < params.rank; i++) {
        back.dims[i] = i < axis ? i + 1 : i == axis ? 0 : i;
        if (i != axis)
            rows.dims[rows.rank++] = params.dims[i];
    }
    tw_output dy = tw_reshape(G, tw_transpose(G, DY, front), rows);
    tw_output flat = tw_reshape(G, X(1), TW_SHAPE(-1));
    return tw_transpose(G, tw_unsorted_segment_sum(G, dy, flat, (int)params.dims[axis]), back);
}

/* The same for any shapes, with batches: params [b,a,n,i], indices [b,j], dy [b,a,j,i] as that many axes. Rows of all
 * batches are added up at once, those of batch k from k n on. */
static tw_output gather_anywhere(twi_gradient *g, int64_t axis, int64_t batch)
{
    tw_output shape = tw_shape_of(G, X(0)), places = tw_shape_of(G, X(1));
    tw_output b = product_of(g, shape, 0, batch, false), a = product_of(g, shape, batch, axis, false);
    tw_output n = product_of(g, shape, axis, axis + 1, false), i = product_of(g, shape, axis + 1, 0, true);
    tw_output j = product_of(g, places, batch, 0, true);
    tw_output whole = tw_reshape_to(G, DY, tw_pack(G, (tw_output[]){b, a, j, i}, 4, 0));
    tw_output rows = tw_reshape_to(G, tw_transpose(G, whole, TW_SHAPE(0, 2, 1, 3)),
                                   tw_pack(G, (tw_output[]){tw_mul(G, b, j), tw_mul(G, a, i)}, 2, 0));
    tw_output firsts = tw_mul(G, tw_range(G, twi_constant_int(G, 0), b, twi_constant_int(G, 1)), n);
    tw_output ids = tw_reshape_to(G, X(1), tw_pack(G, (tw_output[]){b, j}, 2, 0));
    ids = tw_add(G, ids, tw_cast(G, tw_expand_dims(G, firsts, 1), tw_output_dtype(X(1))));
    tw_output sums = twi_build(G, "UnsortedSegmentSum",
                               TWI_INPUTS(rows, tw_reshape(G, ids, TW_SHAPE(-1)), tw_mul(G, b, n)), TWI_NO_ATTRS);
    sums = tw_reshape_to(G, sums, tw_pack(G, (tw_output[]){b, n, a, i}, 4, 0));
    return tw_reshape_to(G, tw_transpose(G, sums, TW_SHAPE(0, 2, 1, 3)), shape);
}

void twi_gradient_gather(twi_gradient *g)
{
    const tw_tensor *axis_value = tw_node_num_inputs(g->node) > 2 ? twi_constant_value(X(2)) : NULL;
    int64_t axis = axis_value ? twi_tensor_int(axis_value, 0) : 0;
    tw_shape shape = tw_output_shape(X(0));
    int64_t batch = twi_attr_int(&g->node->attrs, "batch_dims", 0);
    if (axis < 0 && shape.rank >= 0)
        axis += shape.rank;
    if (batch < 0 && tw_output_shape(X(1)).rank >= 0)
        batch += tw_output_shape(X(1)).rank;
    if (axis < 0 || batch < 0 || (tw_node_num_inputs(g->node) > 2 && !axis_value))
        needs_shape(g);
    else if (axis == 0)
        g->dx[0] = gather_rows(g);
    else if (batch == 0 && tw_shape_is_known(shape) && tw_shape_is_known(tw_output_shape(X(1))))
        g->dx[0] = gather_along(g, (int)axis);
    else
        g->dx[0] = gather_anywhere(g, axis, batch);
}

/* With what the node does with indices that are no places. */
static tw_output by_policy(twi_gradient *g, const char *op, const tw_output *inputs, int num_inputs)
{
    const char *policy = twi_attr_string(&g->node->attrs, "bad_indices_policy", "");
    return twi_build(G, op, inputs, num_inputs, TWI_ATTRS(tw_attr_string("bad_indices_policy", policy)));
}

void twi_gradient_gather_nd(twi_gradient *g)
{
    g->dx[0] = by_policy(g, "ScatterNd", TWI_INPUTS(X(1), DY, shape_of_type(g, X(0), tw_output_dtype(X(1)))));
}

void twi_gradient_scatter_nd(twi_gradient *g)
{
    g->dx[1] = by_policy(g, "GatherNd", TWI_INPUTS(DY, X(0)));
}

void twi_gradient_dynamic_stitch(twi_gradient *g)
{
    int n = tw_node_num_inputs(g->node) / 2;
    for (int i = 0; i < n; i++)
        g->dx[n + i] = binary(g, "Gather", DY, X(i));
}

void twi_gradient_segment_sum(twi_gradient *g)
{
    g->dx[0] = tw_gather(G, DY, X(1), 0);
}

/* Rows of dy where the ids point; zeros where they are negative, which drops a row. */
void twi_gradient_unsorted_segment_sum(twi_gradient *g)
{
    tw_shape data = tw_output_shape(X(0)), ids = tw_output_shape(X(1));
    tw_output zero = tw_scalar_of(G, tw_output_dtype(X(1)), 0), one = twi_constant_int(G, 1);
    tw_output rows = binary(g, "Gather", DY, tw_maximum(G, X(1), zero));
    tw_output counts = tw_greater_equal(G, X(1), zero);
    for (int i = ids.rank; ids.rank >= 0 && i < data.rank; i++)
        counts = tw_expand_dims(G, counts, -1);
    if (ids.rank < 0 || data.rank < 0) {
        tw_output more = tw_expand_dims(G, tw_sub(G, tw_rank_of(G, X(0)), tw_rank_of(G, X(1))), 0);
        counts =
            tw_reshape_to(G, counts, tw_concat(G, (tw_output[]){tw_shape_of(G, X(1)), tw_fill(G, more, one)}, 2, 0));
    }
    g->dx[0] = tw_select(G, counts, rows, tw_zeros_like(G, rows));
}

/* ---- choosing ---------------------------------------------------------------------------------------------- */

void twi_gradient_select(twi_gradient *g)
{
    const char *op = g->node->op->name;
    tw_output zeros = tw_zeros_like(G, DY);
    g->dx[1] = twi_build(G, op, TWI_INPUTS(X(0), DY, zeros), TWI_NO_ATTRS);
    g->dx[2] = twi_build(G, op, TWI_INPUTS(X(0), zeros, DY), TWI_NO_ATTRS);
    for (int i = 1; i <= 2 && strcmp(op, "SelectV2") == 0; i++)
        g->dx[i] = twi_unbroadcast(G, g->dx[i], X(i), Y);
}

void twi_gradient_diag(twi_gradient *g)
{
    g->dx[0] = tw_diag_part(G, DY);
}

void twi_gradient_diag_part(twi_gradient *g)
{
    g->dx[0] = tw_diag(G, DY);
}

/* Of shapes that are known when it runs. */
static tw_output top_k_back(twi_gradient *g)
{
    tw_strided_slice_options last = {TW_SHAPE(-1), TW_SHAPE(0), .end_mask = 1, .shrink_axis_mask = 1};
    tw_output indices = tw_cast(G, (tw_output){g->node, 1}, TW_INT32);
    tw_output shape = tw_shape_of(G, X(0)), size = tw_size_of(G, X(0));
    tw_output one = twi_constant_int(G, 1), width = tw_maximum(G, tw_strided_slice(G, shape, last), one);
    tw_output k = tw_strided_slice(G, tw_shape_of(G, indices), last), rows = tw_floor_div(G, size, width);
    tw_output starts = tw_mul(G, tw_range(G, twi_constant_int(G, 0), rows, one), width);
    tw_output places = tw_reshape_to(G, indices, tw_pack(G, (tw_output[]){rows, k}, 2, 0));
    places = tw_reshape(G, tw_add(G, places, tw_expand_dims(G, starts, 1)), TW_SHAPE(-1, 1));
    tw_output flat = tw_scatter_nd(G, places, tw_reshape(G, DY, TW_SHAPE(-1)), tw_expand_dims(G, size, 0));
    return tw_reshape_to(G, flat, shape);
}

/* Each value's gradient goes back to its place in x, seen as [rows, last axis]. */
void twi_gradient_top_k(twi_gradient *g)
{
    tw_shape in = tw_output_shape(X(0)), out = tw_output_shape(Y);
    if (!DY.node)
        return;
    if (!tw_shape_is_known(in) || !tw_shape_is_known(out)) {
        g->dx[0] = top_k_back(g);
        return;
    }
    int64_t size = tw_shape_elements(in), width = in.dims[in.rank - 1], rows = width ? size / width : 0;
    tw_output starts =
        tw_range(G, twi_constant_int(G, 0), twi_constant_int(G, size), twi_constant_int(G, width ? width : 1));
    tw_output places = tw_cast(G, (tw_output){g->node, 1}, TW_INT32);
    places = tw_reshape(G, places, TW_SHAPE(rows, out.dims[out.rank - 1]));
    places = tw_reshape(G, tw_add(G, places, tw_expand_dims(G, starts, 1)), TW_SHAPE(-1, 1));
    tw_output flat = tw_scatter_nd(G, places, tw_reshape(G, DY, TW_SHAPE(-1)), twi_constant_ints(G, &size, 1));
    g->dx[0] = tw_reshape(G, flat, in);
}
