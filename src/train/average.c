/* average.c - towers' gradients in, their mean out: what must agree, what is missing, what each tower counts for.
 * Never here: how sums are made (reduce.c; rewrite/collective.c for the mean as TensorFlow builds it). */
#include "base/sized.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/reduce.h"

#include <math.h>
#include <tower/ops.h>

/* ---- what must agree --------------------------------------------------------------------------------------- */

static tw_status check_variable(tw_graph *graph, const tw_variable *first, const tw_variable *other, int i, int t,
                                bool shared)
{
    char a[128], b[128];
    if (shared && first != other)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "variable number %d is '%s' in tower 0 and '%s' in tower %d: towers must share their "
                             "variables",
                             i, first->name, other->name, t);
    if (first->dtype != other->dtype || !tw_shape_equal(first->shape, other->shape))
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "variable number %d is '%s', %s %s, in tower 0 and '%s', %s %s, in tower %d", i,
                             first->name, tw_dtype_name(first->dtype), tw_shape_text(first->shape, a, sizeof a),
                             other->name, tw_dtype_name(other->dtype), tw_shape_text(other->shape, b, sizeof b), t);
    return TW_OK;
}

static tw_status check_towers(tw_graph *graph, tw_grads *const *towers, int num_towers, bool shared)
{
    if (num_towers < 1)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT, "an average of %d towers", num_towers);
    for (int t = 0; t < num_towers; t++) {
        if (!towers[t])
            return tw_graph_fail(graph, TW_INVALID_ARGUMENT, "tower %d has no gradients to average", t);
        for (int i = 0; i < towers[0]->count && i < towers[t]->count; i++)
            if (check_variable(graph, towers[0]->variables[i], towers[t]->variables[i], i, t, shared) != TW_OK)
                return tw_graph_status(graph);
        if (towers[t]->count != towers[0]->count)
            return tw_graph_fail(graph, TW_INVALID_ARGUMENT, "tower 0 has %d variables, tower %d has %d",
                                 towers[0]->count, t, towers[t]->count);
    }
    return TW_OK;
}

static tw_status check_options(tw_graph *graph, const tw_average_options *o, int num_towers, bool everywhere,
                               twi_reduce_spec *spec)
{
    tw_error error = {0};
    double sum = 0;
    if (o->wire && o->wire != TW_FLOAT16 && o->wire != TW_BFLOAT16)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT, "gradients cross as half or bfloat16, not as %s",
                             tw_dtype_name(o->wire));
    if (o->packs < 0 || o->small_bytes < 0 || o->small_group < 0)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "packs, small_bytes and small_group are at least 0, found %d, "
                             "%lld and %d",
                             o->packs, (long long)o->small_bytes, o->small_group);
    if (o->packs && o->small_bytes)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "gradients are joined into packs or the small ones among themselves, not both");
    if (o->bucket_bytes < 0 || (o->bucket_bytes && (o->packs || o->small_bytes)))
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "bucket_bytes is at least 0, and goes neither with packs nor with "
                             "small_bytes; found %lld",
                             (long long)o->bucket_bytes);
    for (int t = 0; o->weights && t < num_towers; t++) {
        if (!(o->weights[t] >= 0) || isinf(o->weights[t]))
            return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                                 "the weight of tower %d is %g, expected a number of at "
                                 "least 0",
                                 t, (double)o->weights[t]);
        sum += o->weights[t];
    }
    if (o->weights && sum <= 0)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT, "the weights of all %d towers are 0", num_towers);
    if (twi_reduce_spec_parse(o->all_reduce ? o->all_reduce : "tree", spec, &error) != TW_OK)
        return tw_graph_fail(graph, error.status, "%s", error.message);
    if (twi_reduce_uses_nccl(spec) && !everywhere)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "all-reduce spec '%.200s': nccl brings the mean to every tower, for "
                             "variables that each has a copy of; here there is one",
                             o->all_reduce);
    if (twi_reduce_uses_nccl(spec) && o->wire)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "all-reduce spec '%.200s': nccl adds in the type that crosses, so "
                             "gradients cannot cross as %s and have sums of float",
                             o->all_reduce, tw_dtype_name(o->wire));
    return TW_OK;
}

/* ---- what is missing, and weights -------------------------------------------------------------------------- */

/* The towers' gradients of variable i are all there or all missing, which the log says; or this is an error. */
static tw_status complete(twi_reducer *r, tw_grads *const *towers, int i)
{
    const tw_variable *variable = towers[0]->variables[i];
    int missing = -1, has = -1;
    for (int t = r->towers - 1; t >= 0; t--)
        *(towers[t]->gradients[i].node ? &has : &missing) = t;
    if (has < 0)
        twi_log(TWI_LOG_WARNING, "variable '%s' has a gradient in none of the %d towers and is left out of the average",
                variable->name, r->towers);
    else if (missing >= 0 && !r->options->missing_as_zero)
        return tw_graph_fail(r->graph, TW_INVALID_ARGUMENT,
                             "variable '%s' has a gradient in tower %d, but none in tower %d: its loss does not depend "
                             "on it",
                             variable->name, has, missing);
    for (int t = 0; t < r->towers && has >= 0; t++)
        if (!towers[t]->gradients[i].node) {
            twi_reduce_enter(r, t);
            towers[t]->gradients[i] = tw_zeros(r->graph, variable->dtype, variable->shape);
            twi_reduce_leave(r, t);
        }
    return tw_graph_status(r->graph);
}

/* What the towers' plain mean becomes the weighted one by, for tower t. */
static double factor_of(const twi_reducer *r, int t)
{
    const float *weights = r->options->weights;
    double sum = 0;
    for (int k = 0; weights && k < r->towers; k++)
        sum += weights[k];
    return weights ? weights[t] * (double)r->towers / sum : 1;
}

/* 0 makes zeros of anything, also of what is not a number. */
static tw_output times(tw_graph *graph, tw_output x, double factor)
{
    return factor == 0 ? tw_zeros_like(graph, x) : tw_mul(graph, x, tw_scalar_of(graph, tw_output_dtype(x), factor));
}

static tw_output weigh(twi_reducer *r, int t, tw_output x)
{
    tw_rows rows;
    double factor = factor_of(r, t);
    if (!x.node || factor == 1)
        return x;
    twi_reduce_enter(r, t);
    if (tw_find_rows(x, &rows))
        x = tw_unsorted_segment_sum(r->graph, times(r->graph, rows.values, factor), rows.ids, rows.count);
    else
        x = times(r->graph, x, factor);
    twi_reduce_leave(r, t);
    return x;
}

/* Some gradient of each tower; a neighbour's where it has none. */
static void find_anchors(tw_grads *const *towers, int num_towers, tw_output *anchors)
{
    for (int t = 0; t < num_towers; t++) {
        for (int i = 0; i < towers[t]->count && !anchors[t].node; i++)
            anchors[t] = towers[t]->gradients[i];
        if (!anchors[t].node && t > 0)
            anchors[t] = anchors[t - 1];
    }
    for (int t = num_towers - 2; t >= 0; t--)
        if (!anchors[t].node)
            anchors[t] = anchors[t + 1];
}

/* Copies of the towers' lists, ready to be averaged; false on an error, which is on the graph. */
static bool prepare(twi_reducer *r, tw_grads *const *towers, tw_grads **ready)
{
    for (int t = 0; t < r->towers; t++) {
        ready[t] = twi_new_grads(r->graph, towers[t]->variables, towers[t]->count);
        for (int i = 0; ready[t] && i < towers[t]->count; i++)
            ready[t]->gradients[i] = weigh(r, t, towers[t]->gradients[i]);
        if (!ready[t])
            return false;
    }
    for (int i = 0; i < towers[0]->count; i++)
        if (complete(r, ready, i) != TW_OK)
            return false;
    return true;
}

/* ---- the mean ---------------------------------------------------------------------------------------------- */

static bool wants_stack(const tw_average_options *o)
{
    return !o->all_reduce && !o->packs && !o->small_bytes && !o->bucket_bytes && !o->wire;
}

/* averages[num_towers], or averages[0] at the root. What is in them after an error means nothing. */
static void average(tw_graph *graph, tw_grads *const *towers, int num_towers, const tw_average_options *options,
                    bool everywhere, tw_grads **averages)
{
    tw_average_options whole;
    TWI_TAKE_IN(graph, &whole, options, TWI_SIZE(tw_average_options, wire), );
    twi_reducer r = {.graph = graph, .towers = num_towers, .options = &whole};
    r.everywhere = everywhere;
    r.stacked = !everywhere && wants_stack(r.options);
    if (tw_graph_status(graph) != TW_OK || check_towers(graph, towers, num_towers, !everywhere) != TW_OK ||
        check_options(graph, r.options, num_towers, everywhere, &r.spec) != TW_OK)
        return;
    if (num_towers == 1) {
        averages[0] = towers[0];
        return;
    }
    tw_output *anchors = twi_alloc_array(2 * (size_t)num_towers, sizeof *anchors);
    tw_grads **ready = twi_alloc_array((size_t)num_towers, sizeof(tw_grads *));
    if (!anchors || !ready)
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while averaging gradients");
    r.anchors = anchors;
    if (anchors && ready) {
        find_anchors(towers, num_towers, anchors);
        if (prepare(&r, towers, ready))
            twi_reduce_all(&r, ready, averages);
    }
    twi_free(anchors);
    twi_free(ready);
}

tw_grads *tw_average_gradients(tw_graph *graph, tw_grads *const *towers, int num_towers,
                               const tw_average_options *options)
{
    TWI_NEED_IN(graph, towers || num_towers <= 0, "towers", NULL);
    tw_grads *mean = NULL;
    average(graph, towers, num_towers, options, false, &mean);
    return tw_graph_status(graph) == TW_OK ? mean : NULL;
}

void tw_all_reduce(tw_graph *graph, tw_grads *const *towers, int num_towers, const tw_average_options *options,
                   tw_grads **averages)
{
    TWI_NEED_IN(graph, towers || num_towers <= 0, "towers", );
    TWI_NEED_IN(graph, averages, "averages", );
    average(graph, towers, num_towers, options, true, averages);
    for (int t = 0; t < num_towers && tw_graph_status(graph) != TW_OK; t++)
        averages[t] = NULL;
}
