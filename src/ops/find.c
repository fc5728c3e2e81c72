/* find.c - ops that look for something: how much they find, and with that the shape of what they give, is known only
 * when they have run. Never here: ops whose shape follows from small operands (array.c). */
#include "graph/graph.h"
#include "ops/build.h"
#include "ops/types.h"
#include "tensor/tensor.h"

#include <tower/ops.h>

#define FAIL(c, ...) twi_fail((c)->error, TW_INVALID_ARGUMENT, __VA_ARGS__)

/* ---- shape rules --------------------------------------------------------------------------------------------- */

static tw_status where_shape(twi_inference *c)
{
    c->outputs[0] = (tw_shape){2, {-1, c->inputs[0].rank}};
    return TW_OK;
}

/* y, idx and, of those that count, how often. */
static tw_status unique_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    c->outputs[0] = TW_SHAPE(-1);
    c->outputs[1] = c->inputs[0];
    if (c->num_outputs > 2)
        c->outputs[2] = TW_SHAPE(-1);
    return status;
}

/* The same of slices along an axis; without one of the elements of a vector. */
static tw_status unique_v2_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    tw_status status = twi_expect_rank(c, 1, 1);
    if (status != TW_OK || (c->inputs[1].rank == 1 && c->inputs[1].dims[0] == 0))
        return status == TW_OK ? unique_shape(c) : status;
    const tw_tensor *axis = twi_ask_value(c, 1);
    c->outputs[1] = TW_SHAPE(-1);
    if (c->num_outputs > 2)
        c->outputs[2] = TW_SHAPE(-1);
    if (!axis || in.rank < 0)
        return TW_OK;
    int64_t at = axis->elements == 1 ? twi_tensor_int(axis, 0) : in.rank;
    if (axis->elements != 1 || at < -in.rank || at >= in.rank)
        return FAIL(c, "axis must be none or one of -%d to %d", in.rank, in.rank - 1);
    at += at < 0 ? in.rank : 0;
    c->outputs[1].dims[0] = in.dims[at];
    in.dims[at] = -1;
    c->outputs[0] = in;
    return TW_OK;
}

static tw_status list_diff_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 1);
    c->outputs[0] = c->outputs[1] = TW_SHAPE(-1);
    return status == TW_OK ? twi_expect_rank(c, 1, 1) : status;
}

static tw_status dynamic_partition_shape(twi_inference *c)
{
    tw_shape data = c->inputs[0], parts = c->inputs[1], out = {.rank = 1, .dims = {-1}};
    if (data.rank < 0 || parts.rank < 0)
        return TW_OK;
    if (parts.rank > data.rank)
        return FAIL(c, "partitions have %d axes, data only %d", parts.rank, data.rank);
    for (int i = 0; i < parts.rank; i++)
        if (parts.dims[i] >= 0 && data.dims[i] >= 0 && parts.dims[i] != data.dims[i])
            return FAIL(c, "the data does not begin with the shape of the partitions");
    if (data.rank - parts.rank + 1 > TW_MAX_RANK)
        return FAIL(c, "the result has more than %d axes", TW_MAX_RANK);
    for (int i = parts.rank; i < data.rank; i++)
        out.dims[out.rank++] = data.dims[i];
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = out;
    return TW_OK;
}

/* What is rated, scores and numbers. */
static tw_status check_rated(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 2);
    for (int i = 1; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, i == 1 ? 1 : 0);
    return status;
}

static tw_status check_boxes(twi_inference *c)
{
    char text[128];
    tw_shape boxes = c->inputs[0];
    if (boxes.rank == 2 && boxes.dims[1] >= 0 && boxes.dims[1] != 4)
        return FAIL(c, "boxes have shape %s, expected [N,4]", tw_shape_text(boxes, text, sizeof text));
    return check_rated(c);
}

static tw_status suppression_shape(twi_inference *c)
{
    c->outputs[0] = TW_SHAPE(-1);
    return check_boxes(c);
}

static tw_status overlaps_shape(twi_inference *c)
{
    char text[128];
    tw_shape overlaps = c->inputs[0];
    c->outputs[0] = TW_SHAPE(-1);
    if (overlaps.rank == 2 && overlaps.dims[0] >= 0 && overlaps.dims[1] >= 0 && overlaps.dims[0] != overlaps.dims[1])
        return FAIL(c, "overlaps must be square, but have shape %s", tw_shape_text(overlaps, text, sizeof text));
    return check_rated(c);
}

/* How many there are comes last; where what is missing is filled up, the most is the shape. */
static tw_status padded_suppression_shape(twi_inference *c)
{
    bool pads = twi_attr_bool(c->attrs, "pad_to_max_output_size", false);
    const tw_tensor *most = pads ? twi_ask_value(c, 2) : NULL;
    for (int i = 0; i < c->num_outputs - 1; i++)
        c->outputs[i] = TW_SHAPE(most && most->elements == 1 ? twi_tensor_int(most, 0) : -1);
    c->outputs[c->num_outputs - 1] = TW_SCALAR;
    return check_boxes(c);
}

/* boxes [B,N,1 or C,4], scores [B,N,C], most of a class, most in all, thresholds: boxes, scores, classes, how many */
static tw_status combined_shape(twi_inference *c)
{
    tw_shape boxes = c->inputs[0], scores = c->inputs[1];
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 3);
    for (int i = 2; i < 6 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    if (status != TW_OK)
        return status;
    if (boxes.rank == 4 && boxes.dims[3] >= 0 && boxes.dims[3] != 4)
        return FAIL(c, "boxes have %lld numbers, expected 4", (long long)boxes.dims[3]);
    int64_t batch = boxes.rank < 0 ? -1 : boxes.dims[0], classes = scores.rank < 0 ? -1 : scores.dims[2];
    for (int i = 0; i < 2 && boxes.rank == 4 && scores.rank == 3; i++)
        if (boxes.dims[i] >= 0 && scores.dims[i] >= 0 && boxes.dims[i] != scores.dims[i])
            return FAIL(c, "boxes and scores have %lld and %lld in axis %d", (long long)boxes.dims[i],
                        (long long)scores.dims[i], i);
    if (boxes.rank == 4 && classes >= 0 && boxes.dims[2] >= 0 && boxes.dims[2] != 1 && boxes.dims[2] != classes)
        return FAIL(c, "third dimension of boxes must be either 1 or num classes (%lld), got %lld", (long long)classes,
                    (long long)boxes.dims[2]);
    const tw_tensor *each = twi_ask_value(c, 2), *all = twi_ask_value(c, 3);
    int64_t most = all ? twi_tensor_int(all, 0) : -1, of_class = each ? twi_tensor_int(each, 0) : -1;
    if ((all && most <= 0) || (each && of_class <= 0))
        return FAIL(c, "max_size_per_class and max_total_size must be positive");
    if (twi_attr_bool(c->attrs, "pad_per_class", false))
        most = !all || !each || classes < 0 ? -1 : of_class * classes < most ? of_class * classes : most;
    c->outputs[0] = TW_SHAPE(batch, most, 4);
    c->outputs[1] = c->outputs[2] = TW_SHAPE(batch, most);
    c->outputs[3] = TW_SHAPE(batch);
    return TW_OK;
}

/* ---- gradients ----------------------------------------------------------------------------------------------- */

/* Each part's gradient goes back to where its rows came from. */
static void dynamic_partition_gradient(twi_gradient *g)
{
    tw_graph *graph = g->graph;
    tw_output data = tw_node_input(g->node, 0), parts = tw_node_input(g->node, 1);
    int n = g->node->num_outputs;
    tw_output flat_shape = twi_constant_ints(graph, (int64_t[]){-1}, 1);
    tw_output flat = tw_reshape_to(graph, parts, flat_shape);
    tw_output count = twi_build(graph, "Size", TWI_INPUTS(parts), TWI_NO_ATTRS);
    tw_output places = twi_build(
        graph, "Range", TWI_INPUTS(twi_constant_int(graph, 0), count, twi_constant_int(graph, 1)), TWI_NO_ATTRS);
    tw_node *of_parts = tw_add_node(graph, "DynamicPartition", NULL, TWI_INPUTS(places, flat),
                                    TWI_ATTRS(tw_attr_int("num_partitions", n)));
    tw_output *inputs = twi_alloc_array(2 * (size_t)n, sizeof *inputs);
    if (!inputs || !of_parts) {
        if (!inputs)
            twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while differentiating");
        twi_free(inputs);
        return;
    }
    for (int i = 0; i < n; i++) {
        inputs[i] = tw_node_output(of_parts, i);
        inputs[n + i] = g->dy[i].node ? g->dy[i] : tw_zeros_like(graph, tw_node_output(g->node, i));
    }
    tw_output rows = twi_build(graph, "ParallelDynamicStitch", inputs, 2 * n, TWI_NO_ATTRS);
    g->dx[0] = tw_reshape_to(graph, rows, twi_shape_tensor(graph, data));
    twi_free(inputs);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

#define FOUND TWI_HOST_ONLY | TWI_MAKES_SHAPE
#define INDEX "{int32,int64}"
#define IDX "out_idx:" INDEX "=int32"
#define BOXES "boxes:T, scores:T, max_output_size:int32"
#define THRESHOLDS "iou_threshold:T_threshold, score_threshold:T_threshold"
#define BOX_TYPES "T:{half,float}=float; T_threshold:{half,float}=float"

const twi_op twi_find_ops[] = {
    {"Where", "input:T", "index:int64", "T:{bool," TWI_NUMBERS "}=bool", where_shape, twi_not_differentiable, FOUND},
    {"Unique", "x:T", "y:T, idx:out_idx", "T:type; " IDX, unique_shape, NULL, FOUND},
    {"UniqueWithCounts", "x:T", "y:T, idx:out_idx, count:out_idx", "T:type; " IDX, unique_shape, NULL, FOUND},
    {"UniqueV2", "x:T, axis:Taxis", "y:T, idx:out_idx", "T:type; Taxis:" INDEX "=int64; " IDX, unique_v2_shape, NULL,
     FOUND},
    {"UniqueWithCountsV2", "x:T, axis:Taxis", "y:T, idx:out_idx, count:out_idx", "T:type; Taxis:" INDEX "=int64; " IDX,
     unique_v2_shape, NULL, FOUND},
    {"ListDiff", "x:T, y:T", "out:T, idx:out_idx", "T:type; " IDX, list_diff_shape, twi_not_differentiable, FOUND},
    {"Bucketize", "input:T", "output:int32", "boundaries:floats; T:{int32,int64,float,double}", twi_shape_same,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"DynamicPartition", "data:T, partitions:int32", "outputs:num_partitions*T", "num_partitions:int>=1; T:type",
     dynamic_partition_shape, dynamic_partition_gradient, FOUND},
    {"NonMaxSuppression", "boxes:float, scores:float, max_output_size:int32", "selected_indices:int32",
     "iou_threshold:float=0.5", suppression_shape, twi_not_differentiable, FOUND},
    {"NonMaxSuppressionV2", BOXES ", iou_threshold:T_threshold", "selected_indices:int32", BOX_TYPES, suppression_shape,
     twi_not_differentiable, FOUND},
    {"NonMaxSuppressionV3", BOXES ", " THRESHOLDS, "selected_indices:int32", BOX_TYPES, suppression_shape,
     twi_not_differentiable, FOUND},
    {"NonMaxSuppressionV4", BOXES ", " THRESHOLDS, "selected_indices:int32, valid_outputs:int32",
     BOX_TYPES "; pad_to_max_output_size:bool=false", padded_suppression_shape, twi_not_differentiable, FOUND},
    {"NonMaxSuppressionV5",
     BOXES ", "
           "iou_threshold:T, score_threshold:T, soft_nms_sigma:T",
     "selected_indices:int32, selected_scores:T, valid_outputs:int32",
     "T:{half,float}=float; pad_to_max_output_size:bool=false", padded_suppression_shape, twi_not_differentiable,
     FOUND},
    {"NonMaxSuppressionWithOverlaps",
     "overlaps:float, scores:float, max_output_size:int32, overlap_threshold:float, score_threshold:float",
     "selected_indices:int32", "", overlaps_shape, twi_not_differentiable, FOUND},
    {"CombinedNonMaxSuppression",
     "boxes:float, scores:float, max_output_size_per_class:int32, max_total_size:int32, iou_threshold:float, "
     "score_threshold:float",
     "nmsed_boxes:float, nmsed_scores:float, nmsed_classes:float, valid_detections:int32",
     "pad_per_class:bool=false; clip_boxes:bool=true", combined_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {0},
};
