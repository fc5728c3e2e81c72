/* softmax.c - softmax, the cross entropies and InTopK: signatures, shapes, gradients, builders. */
#include "ops/build.h"

#include <tower/nn.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

static tw_status softmax_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    if (c->inputs[0].rank == 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "logits must have at least rank 1, got a scalar");
    return TW_OK;
}

/* Logits and labels broadcast to [N,C]: losses [N], backprop [N,C]. */
static tw_status cross_entropy_shape(twi_inference *c)
{
    tw_shape both, matrix = {2, {-1, -1}};
    char texts[2][128];
    if (twi_broadcast_shapes(c->inputs[0], c->inputs[1], &both, NULL) != TW_OK ||
        twi_merge_shapes(both, matrix, &both, NULL) != TW_OK || c->inputs[0].rank == 1 || c->inputs[1].rank == 1 ||
        c->inputs[0].rank == 0 || c->inputs[1].rank == 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT,
                        "logits and labels must be [N,C] and of one size, got logits %s and labels %s",
                        tw_shape_text(c->inputs[0], texts[0], sizeof texts[0]),
                        tw_shape_text(c->inputs[1], texts[1], sizeof texts[1]));
    c->outputs[0] = (tw_shape){1, {both.dims[0]}};
    c->outputs[1] = both;
    return TW_OK;
}

/* A matrix [N,C] and a vector [N]: *count is N as far as it is known. */
static tw_status expect_rows(twi_inference *c, const char *matrix, const char *vector, int64_t *count)
{
    char texts[2][128];
    tw_shape rows = {1, {-1}};
    tw_status status = twi_expect_rank(c, 0, 2);
    if (status == TW_OK && c->inputs[0].rank == 2)
        rows.dims[0] = c->inputs[0].dims[0];
    if (status == TW_OK && twi_merge_shapes(rows, c->inputs[1], &rows, NULL) != TW_OK)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%s must be [N,C] and %s [N], got %s and %s", matrix, vector,
                        tw_shape_text(c->inputs[0], texts[0], sizeof texts[0]),
                        tw_shape_text(c->inputs[1], texts[1], sizeof texts[1]));
    *count = rows.dims[0];
    return status;
}

static tw_status sparse_cross_entropy_shape(twi_inference *c)
{
    int64_t count;
    tw_status status = expect_rows(c, "logits", "labels", &count);
    if (status != TW_OK)
        return status;
    int64_t classes = c->inputs[0].rank < 0 ? -1 : c->inputs[0].dims[1];
    if (classes == 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "logits must have at least one class");
    c->outputs[0] = (tw_shape){1, {count}};
    c->outputs[1] = (tw_shape){2, {count, classes}};
    return TW_OK;
}

static tw_status in_top_k_shape(twi_inference *c)
{
    c->outputs[0] = (tw_shape){1, {-1}};
    tw_status status = expect_rows(c, "predictions", "targets", &c->outputs[0].dims[0]);
    return status == TW_OK && c->num_inputs == 3 ? twi_expect_rank(c, 2, 0) : status;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

/* (dy - sum of dy * softmax) * softmax */
static tw_output through_softmax(tw_graph *graph, tw_output dy, tw_output softmax)
{
    tw_output sum = tw_reduce_sum(graph, tw_mul(graph, dy, softmax), TW_AXES(-1), true);
    return tw_mul(graph, tw_sub(graph, dy, sum), softmax);
}

static void softmax_gradient(twi_gradient *g)
{
    g->dx[0] = through_softmax(g->graph, g->dy[0], tw_node_output(g->node, 0));
}

/* dy - (sum of dy) * softmax */
static void log_softmax_gradient(twi_gradient *g)
{
    tw_output sum = tw_reduce_sum(g->graph, g->dy[0], TW_AXES(-1), true);
    tw_output softmax = tw_exp(g->graph, tw_node_output(g->node, 0));
    g->dx[0] = tw_sub(g->graph, g->dy[0], tw_mul(g->graph, sum, softmax));
}

/* Losses [N] as a column. */
static tw_output scaled_rows(tw_graph *graph, tw_output dloss, tw_output matrix)
{
    return tw_mul(graph, tw_expand_dims(graph, dloss, -1), matrix);
}

static void cross_entropy_gradient(twi_gradient *g)
{
    tw_output logits = g->node->inputs[0], labels = g->node->inputs[1];
    tw_output dlogits = {0}, dlabels = {0};
    if (g->dy[0].node) {
        dlogits = scaled_rows(g->graph, g->dy[0], tw_node_output(g->node, 1));
        dlabels = scaled_rows(g->graph, g->dy[0], tw_neg(g->graph, tw_log_softmax(g->graph, logits)));
    }
    if (g->dy[1].node) { /* of backprop = softmax - labels */
        tw_output more = through_softmax(g->graph, g->dy[1], tw_softmax(g->graph, logits));
        tw_output less = tw_neg(g->graph, g->dy[1]);
        dlogits = dlogits.node ? tw_add(g->graph, dlogits, more) : more;
        dlabels = dlabels.node ? tw_add(g->graph, dlabels, less) : less;
    }
    g->dx[0] = twi_unbroadcast(g->graph, dlogits, logits, labels);
    g->dx[1] = twi_unbroadcast(g->graph, dlabels, labels, logits);
}

static void sparse_cross_entropy_gradient(twi_gradient *g)
{
    tw_output backprop = tw_node_output(g->node, 1);
    if (!g->dy[0].node)
        return;
    backprop = twi_build(g->graph, "PreventGradient", TWI_INPUTS(backprop),
                         TWI_ATTRS(tw_attr_string("message", "the gradient of a sparse cross entropy has no gradient: "
                                                             "use the dense one")));
    g->dx[0] = scaled_rows(g->graph, g->dy[0], backprop);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FLOATS "T:{half,bfloat16,float,double}"

const twi_op twi_softmax_ops[] = {
    {"Softmax", "logits:T", "softmax:T", FLOATS, softmax_shape, softmax_gradient},
    {"LogSoftmax", "logits:T", "logsoftmax:T", FLOATS, softmax_shape, log_softmax_gradient},
    {"SoftmaxCrossEntropyWithLogits", "features:T, labels:T", "loss:T, backprop:T", FLOATS, cross_entropy_shape,
     cross_entropy_gradient},
    {"SparseSoftmaxCrossEntropyWithLogits", "features:T, labels:Tlabels", "loss:T, backprop:T",
     FLOATS "; Tlabels:{int32,int64}=int64", sparse_cross_entropy_shape, sparse_cross_entropy_gradient},
    {"InTopK", "predictions:float, targets:T", "precision:bool", "k:int; T:{int32,int64}=int32", in_top_k_shape, NULL,
     TWI_HOST_ONLY},
    {"InTopKV2", "predictions:float, targets:T, k:T", "precision:bool", "T:{int32,int64}=int32", in_top_k_shape, NULL},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

tw_output tw_softmax(tw_graph *graph, tw_output logits)
{
    return twi_build(graph, "Softmax", TWI_INPUTS(logits), TWI_NO_ATTRS);
}

tw_output tw_log_softmax(tw_graph *graph, tw_output logits)
{
    return twi_build(graph, "LogSoftmax", TWI_INPUTS(logits), TWI_NO_ATTRS);
}

tw_output tw_softmax_cross_entropy(tw_graph *graph, tw_output logits, tw_output labels)
{
    return twi_build(graph, "SoftmaxCrossEntropyWithLogits", TWI_INPUTS(logits, labels), TWI_NO_ATTRS);
}

tw_output tw_sparse_softmax_cross_entropy(tw_graph *graph, tw_output logits, tw_output labels)
{
    return twi_build(graph, "SparseSoftmaxCrossEntropyWithLogits", TWI_INPUTS(logits, labels), TWI_NO_ATTRS);
}

tw_output tw_smoothed_softmax_cross_entropy(tw_graph *graph, tw_output logits, tw_output labels, float smoothing)
{
    TWI_NEED_OR(graph, (tw_output){0});
    if (!(smoothing >= 0 && smoothing <= 1)) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "labels smoothed by %g, expected 0 to 1", (double)smoothing);
        return (tw_output){0};
    }
    if (!logits.node || !labels.node)
        return (tw_output){0};
    tw_dtype dtype = tw_output_dtype(logits);
    tw_output certain = tw_sparse_softmax_cross_entropy(graph, logits, labels);
    tw_output any = tw_reduce_mean(graph, tw_log_softmax(graph, logits), TW_AXES(-1), false);
    return tw_sub(graph, tw_mul(graph, certain, tw_scalar_of(graph, dtype, 1 - (double)smoothing)),
                  tw_mul(graph, any, tw_scalar_of(graph, dtype, smoothing)));
}

tw_output tw_in_top_k(tw_graph *graph, tw_output predictions, tw_output targets, int k)
{
    if (!targets.node)
        return targets;
    tw_output number = tw_scalar_of(graph, tw_output_dtype(targets), k);
    return twi_build(graph, "InTopKV2", TWI_INPUTS(predictions, targets, number), TWI_NO_ATTRS);
}

tw_output tw_accuracy(tw_graph *graph, tw_output predictions, tw_output targets, int k)
{
    tw_output hits = tw_in_top_k(graph, tw_cast(graph, predictions, TW_FLOAT32), targets, k);
    return tw_reduce_mean(tw_name(graph, "accuracy"), tw_cast(graph, hits, TW_FLOAT32), NULL, 0, false);
}
