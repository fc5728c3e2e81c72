/* gather.c - ops that take and put rows and elements by their numbers, or choose among them. Rows, shape rules,
 * builders. Never here: gradient rules (array_gradients.c), kernels (src/device). */
#include "ops/gradients.h"
#include "ops/rules.h"
#include "ops/types.h"

#include <limits.h>

/* ---- shape rules ------------------------------------------------------------------------------------------------- */

static tw_status gather(twi_inference *c, bool axis_known, int64_t axis, int64_t batch)
{
    tw_shape params = c->inputs[0], indices = c->inputs[1], out = {.rank = 0};
    tw_status status;
    if (params.rank < 0 || indices.rank < 0)
        return TW_OK;
    batch += batch < 0 ? indices.rank : 0;
    if (batch < 0 || batch > indices.rank)
        return TWI_REFUSE(c, "batch_dims is %lld, the indices have %d axes", (long long)batch, indices.rank);
    TWI_TRY(twi_check_rank(c, params.rank + indices.rank - 1 - (int)batch));
    if (!axis_known) {
        c->outputs[0] = twi_unknown_of_rank(params.rank + indices.rank - 1 - (int)batch);
        return TW_OK;
    }
    TWI_TRY(twi_normal_axis(c, &axis, params.rank));
    if (batch > axis)
        return TWI_REFUSE(c, "batch_dims %lld is greater than axis %lld", (long long)batch, (long long)axis);
    for (int i = 0; i < batch; i++)
        if (params.dims[i] >= 0 && indices.dims[i] >= 0 && params.dims[i] != indices.dims[i])
            return TWI_REFUSE(c, "batch dimension %d is %lld in params and %lld in indices", i,
                              (long long)params.dims[i], (long long)indices.dims[i]);
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
        return TWI_REFUSE(c, "indices are a scalar, expected at least one axis");
    if (params.rank < 0 || out.rank < 0 || out.dims[out.rank - 1] < 0)
        return TW_OK;
    int64_t depth = out.dims[--out.rank];
    if (depth > params.rank)
        return TWI_REFUSE(c, "indices of %lld numbers into %d axes", (long long)depth, params.rank);
    tw_status status = twi_check_rank(c, out.rank + params.rank - (int)depth);
    for (int i = (int)depth; status == TW_OK && i < params.rank; i++)
        out.dims[out.rank++] = params.dims[i];
    c->outputs[0] = out;
    return status;
}

static tw_status scatter_nd_shape(twi_inference *c)
{
    tw_shape out, indices = c->inputs[0], updates = c->inputs[1], slice = TW_UNKNOWN_SHAPE, expected;
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    status = status == TW_OK ? twi_spelled_shape(c, 2, false, &out) : status;
    if (status != TW_OK)
        return status;
    c->outputs[0] = out;
    if (out.rank < 0 || indices.rank < 0 || indices.dims[indices.rank - 1] < 0)
        return status;
    int64_t depth = indices.dims[indices.rank - 1];
    char text[2][128];
    if (depth > out.rank || indices.rank - 1 + out.rank - depth > TW_MAX_RANK)
        return TWI_REFUSE(c, "indices %s do not fit the shape %s", tw_shape_text(indices, text[0], sizeof text[0]),
                          tw_shape_text(out, text[1], sizeof text[1]));
    slice = indices;
    slice.rank--;
    for (int i = (int)depth; i < out.rank; i++)
        slice.dims[slice.rank++] = out.dims[i];
    if (twi_merge_shapes(slice, updates, &expected, NULL) != TW_OK)
        return TWI_REFUSE(c, "updates have shape %s, expected %s", tw_shape_text(updates, text[0], sizeof text[0]),
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
                return TWI_REFUSE(c, "index %lld", (long long)index);
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
                return TWI_REFUSE(c, "data %d does not begin with the shape of its indices", i);
        if (data.rank < indices.rank)
            return TWI_REFUSE(c, "data %d does not begin with the shape of its indices", i);
        tw_status status = twi_merge_shapes(rest, own, &rest, c->error);
        if (status != TW_OK)
            return status;
    }
    if (rest.rank < 0)
        return TW_OK;
    tw_status status = twi_check_rank(c, rest.rank + 1);
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
        return TWI_REFUSE(c, "%lld segments", (long long)segments);
    if (data.rank < 0 || ids.rank < 0)
        return TW_OK;
    if (ids.rank > data.rank)
        return TWI_REFUSE(c, "segment ids have %d axes, data only %d", ids.rank, data.rank);
    for (int i = 0; i < ids.rank; i++)
        if (ids.dims[i] >= 0 && data.dims[i] >= 0 && ids.dims[i] != data.dims[i])
            return TWI_REFUSE(c, "the data does not begin with the shape of the segment ids");
    tw_status status = twi_check_rank(c, data.rank - ids.rank + 1);
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
        return TWI_REFUSE(c, "the data must have one row for each segment id");
    c->outputs[0] = data;
    c->outputs[0].dims[0] = value ? 0 : -1;
    if (value && value->elements) {
        int64_t last = twi_tensor_int(value, value->elements - 1);
        if (last < 0 || last == INT64_MAX)
            return TWI_REFUSE(c, "the last segment id is %lld", (long long)last);
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
            return TWI_REFUSE(c, "the condition has %lld elements, the first axis %lld", (long long)condition.dims[0],
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
    tw_status status = twi_check_rank(c, 2 * in.rank);
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
        return TWI_REFUSE(c, "the input has shape %s, expected an even number of axes",
                          tw_shape_text(in, text, sizeof text));
    out.rank /= 2;
    for (int i = 0; i < out.rank; i++) {
        int64_t other = in.dims[i + out.rank];
        if (in.dims[i] >= 0 && other >= 0 && in.dims[i] != other)
            return TWI_REFUSE(c, "the input has shape %s, whose halves differ", tw_shape_text(in, text, sizeof text));
        out.dims[i] = in.dims[i] < 0 ? other : in.dims[i];
    }
    c->outputs[0] = out;
    return TW_OK;
}

/* Shapes of the k best along an axis, which may be counted from the end; a k that is not known yet is -1. */
static tw_status best_shape(twi_inference *c, int64_t k, int64_t axis)
{
    tw_shape out = c->inputs[0];
    if (out.rank < 0)
        return TW_OK;
    if (out.rank == 0)
        return TWI_REFUSE(c, "the input is a scalar, expected at least one axis");
    tw_status status = twi_normal_axis(c, &axis, out.rank);
    if (status != TW_OK)
        return status;
    if (out.dims[axis] >= 0 && k > out.dims[axis])
        return TWI_REFUSE(c, "k is %lld, %s axis has only %lld", (long long)k,
                          axis == out.rank - 1 ? "the last" : "that", (long long)out.dims[axis]);
    out.dims[axis] = k;
    c->outputs[0] = c->outputs[1] = out;
    return TW_OK;
}

static tw_status top_k_shape(twi_inference *c)
{
    int64_t k = -1;
    tw_status status = twi_expect_rank(c, 1, 0);
    if (status != TW_OK)
        return status;
    if (twi_number_of(c, 1, &k) && k < 0)
        return TWI_REFUSE(c, "k is %lld", (long long)k);
    return best_shape(c, k, -1);
}

static tw_status approx_top_k_shape(twi_inference *c)
{
    int64_t k = twi_attr_int(c->attrs, "k", 0);
    if (k < 0)
        return TWI_REFUSE(c, "k is %lld", (long long)k);
    return best_shape(c, k, twi_attr_int(c->attrs, "reduction_dimension", -1));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define NUMBERS "{" TWI_REALS "}"
#define ADDED "{" TWI_NUMBERS "}"
#define INDEX "{int32,int64}"

const twi_op twi_gather_ops[] = {
    {"Gather", "params:Tparams, indices:Tindices", "output:Tparams",
     "validate_indices:bool=true; Tparams:type; Tindices:" INDEX, gather_shape, twi_gradient_gather},
    {"ResourceGather", "resource:resource, indices:Tindices", "output:dtype",
     "batch_dims:int=0; validate_indices:bool=true; dtype:type; Tindices:" INDEX, resource_gather_shape, NULL,
     TWI_STATEFUL, "ri"},
    {"GatherV2", "params:Tparams, indices:Tindices, axis:Taxis", "output:Tparams",
     "batch_dims:int=0; Tparams:type; Tindices:" INDEX "; Taxis:" INDEX, gather_v2_shape, twi_gradient_gather},
    {"GatherNd", "params:Tparams, indices:Tindices", "output:Tparams",
     "Tparams:type; Tindices:" INDEX "; bad_indices_policy:string=", gather_nd_shape, twi_gradient_gather_nd},
    {"ResourceGatherNd", "resource:resource, indices:Tindices", "output:dtype", "dtype:type; Tindices:" INDEX,
     gather_nd_shape, NULL, TWI_STATEFUL, "ri"},
    {"ScatterNd", "indices:Tindices, updates:T, shape:Tindices", "output:T",
     "T:type; Tindices:" INDEX "; bad_indices_policy:string=", scatter_nd_shape, twi_gradient_scatter_nd},
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
    {"TopKV2", "input:T, k:Tk", "values:T, indices:index_type",
     "sorted:bool=true; T:" NUMBERS "; Tk:" INDEX "=int32; index_type:" INDEX "=int32", top_k_shape,
     twi_gradient_top_k},
    {"ApproxTopK", "input:T", "values:T, indices:int32",
     "k:int; reduction_dimension:int=-1; recall_target:float=0.95; is_max_k:bool=true; "
     "reduction_input_size_override:int=-1; aggregate_to_topk:bool=true; T:{half,bfloat16,float}",
     approx_top_k_shape, twi_gradient_top_k, TWI_HOST_ONLY},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------------- */

tw_output tw_gather(tw_graph *graph, tw_output params, tw_output indices, int axis)
{
    return twi_build(graph, "GatherV2", TWI_INPUTS(params, indices, twi_constant_int(graph, axis)), TWI_NO_ATTRS);
}

tw_output tw_gather_nd(tw_graph *graph, tw_output params, tw_output indices)
{
    return twi_build(graph, "GatherNd", TWI_INPUTS(params, indices), TWI_NO_ATTRS);
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
    return twi_build(graph, "Diag", &diagonal, 1, TWI_NO_ATTRS);
}

tw_output tw_diag_part(tw_graph *graph, tw_output x)
{
    return twi_build(graph, "DiagPart", &x, 1, TWI_NO_ATTRS);
}

void tw_top_k(tw_graph *graph, tw_output x, int k, tw_output *values, tw_output *indices)
{
    TWI_NEED_IN(graph, values, "values", );
    TWI_NEED_IN(graph, indices, "indices", );
    tw_node *node = tw_add_node(graph, "TopKV2", NULL, TWI_INPUTS(x, twi_constant_int(graph, k)), TWI_NO_ATTRS);
    *values = tw_node_output(node, 0);
    *indices = tw_node_output(node, 1);
}
