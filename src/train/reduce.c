/* reduce.c - which gradients travel together: one by one, the small ones in groups, in buckets as they are computed, or
 * all of them in equal packs; and sparse ones as the rows they touch. Never here: what an algorithm does
 * (reduce_algorithms.c). */
#include "train/reduce.h"

#include "base/log.h"
#include "base/memory.h"

#include <tower/ops.h>

enum { SMALL_GROUP = 10 };

/* Variables whose gradients are joined. */
typedef struct bundle {
    int *members;
    int count;
    int64_t elements;
} bundle;

static int num_results(const twi_reducer *r)
{
    return r->everywhere ? r->towers : 1;
}

static int result_place(const twi_reducer *r, int result)
{
    return r->everywhere ? result : TWI_AT_ROOT;
}

/* ---- dense gradients --------------------------------------------------------------------------------------- */

/* Tower t's gradients of the bundle, end to end. parts[count] is room. */
static tw_output join_bundle(const twi_reducer *r, const bundle *b, const tw_grads *tower, int t, tw_output *parts)
{
    twi_reduce_enter(r, t);
    for (int i = 0; i < b->count; i++)
        parts[i] = tw_reshape(tw_name(r->graph, "flat"), tower->gradients[b->members[i]], TW_SHAPE(-1));
    tw_output whole = b->count == 1 ? parts[0] : tw_concat(tw_name(r->graph, "joined"), parts, b->count, 0);
    twi_reduce_leave(r, t);
    return whole;
}

/* And back: the mean of the bundle at a place becomes gradients again. */
static void part_bundle(const twi_reducer *r, const bundle *b, tw_output mean, int place, tw_grads *average,
                        tw_output *parts, int64_t *sizes)
{
    twi_reduce_enter(r, place);
    for (int i = 0; i < b->count; i++)
        sizes[i] = tw_shape_elements(average->variables[b->members[i]]->shape);
    if (b->count == 1)
        parts[0] = mean;
    else
        tw_split_sizes(tw_name(r->graph, "parted"), mean, 0, sizes, parts, b->count);
    for (int i = 0; i < b->count; i++) {
        const tw_variable *variable = average->variables[b->members[i]];
        average->gradients[b->members[i]] = tw_reshape(tw_name(r->graph, "average"), parts[i], variable->shape);
    }
    twi_reduce_leave(r, place);
}

/* flat[towers] -> means[results], cut into packs on the way. */
static bool reduce_in_packs(twi_reducer *r, tw_output *flat, int64_t elements, int packs, tw_output *means)
{
    int n = r->towers, results = num_results(r);
    packs = packs < elements ? packs : (int)elements;
    if (packs <= 1)
        return twi_reduce_flat(r, flat, elements, means);
    int64_t *sizes = twi_alloc_array((size_t)packs, sizeof *sizes);
    tw_output *cut = twi_alloc_array((size_t)packs * (size_t)n, sizeof *cut);        /* [tower][pack] */
    tw_output *reduced = twi_alloc_array((size_t)packs * (size_t)n, sizeof *reduced); /* [pack][result] */
    tw_output *column = twi_alloc_array((size_t)(packs + n), sizeof *column);
    bool good = sizes && cut && reduced && column;
    if (!good)
        tw_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while packing gradients");
    for (int k = 0; k < packs && good; k++)
        sizes[k] = elements / packs + (k < elements % packs);
    for (int t = 0; t < n && good; t++) {
        twi_reduce_enter(r, t);
        tw_split_sizes(tw_name(r->graph, "packs"), flat[t], 0, sizes, cut + t * packs, packs);
        twi_reduce_leave(r, t);
    }
    for (int k = 0; k < packs && good; k++) {
        for (int t = 0; t < n; t++)
            column[t] = cut[t * packs + k];
        good = twi_reduce_flat(r, column, sizes[k], reduced + k * results);
    }
    for (int t = 0; t < results && good; t++) {
        for (int k = 0; k < packs; k++)
            column[k] = reduced[k * results + t];
        twi_reduce_enter(r, result_place(r, t));
        means[t] = tw_concat(tw_name(r->graph, "unpacked"), column, packs, 0);
        twi_reduce_leave(r, result_place(r, t));
    }
    twi_free(sizes);
    twi_free(cut);
    twi_free(reduced);
    twi_free(column);
    return good;
}

static void reduce_bundle(twi_reducer *r, const bundle *b, tw_grads *const *towers, tw_grads **averages)
{
    size_t n = (size_t)r->towers;
    tw_output *flat = twi_alloc_array(n, sizeof *flat), *means = twi_alloc_array(n, sizeof *means);
    tw_output *parts = twi_alloc_array((size_t)b->count, sizeof *parts);
    int64_t *sizes = twi_alloc_array((size_t)b->count, sizeof *sizes);
    if (flat && means && parts && sizes) {
        for (int t = 0; t < r->towers; t++)
            flat[t] = join_bundle(r, b, towers[t], t, parts);
        if (reduce_in_packs(r, flat, b->elements, r->options->packs, means))
            for (int t = 0; t < num_results(r); t++)
                part_bundle(r, b, means[t], result_place(r, t), averages[t], parts, sizes);
    } else {
        tw_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while joining gradients");
    }
    twi_free(flat);
    twi_free(means);
    twi_free(parts);
    twi_free(sizes);
}

/* ---- sparse gradients -------------------------------------------------------------------------------------- */

static bool all_sparse(const twi_reducer *r, tw_grads *const *towers, int i)
{
    tw_rows first, rows;
    if (r->options->sparse_as_dense || !tw_find_rows(towers[0]->gradients[i], &first))
        return false;
    for (int t = 1; t < r->towers; t++)
        if (!tw_find_rows(towers[t]->gradients[i], &rows) || tw_output_dtype(rows.ids) != tw_output_dtype(first.ids))
            return false;
    return true;
}

/* Values and ids of all towers, in their order, as they come to a place; narrowed on the way if that is asked for. */
static void collect_rows(const twi_reducer *r, tw_grads *const *towers, int i, int place, tw_output *values,
                         tw_output *ids)
{
    for (int t = 0; t < r->towers; t++) {
        tw_rows rows;
        tw_find_rows(towers[t]->gradients[i], &rows);
        bool narrow = r->options->wire && tw_output_dtype(rows.values) == TW_FLOAT32;
        twi_reduce_enter(r, t);
        values[t] = narrow ? tw_cast(r->graph, rows.values, r->options->wire) : rows.values;
        twi_reduce_leave(r, t);
        twi_reduce_enter(r, place);
        values[t] = narrow ? tw_cast(r->graph, values[t], TW_FLOAT32) : values[t];
        twi_reduce_leave(r, place);
        ids[t] = rows.ids;
    }
}

static void reduce_rows(const twi_reducer *r, tw_grads *const *towers, int i, tw_grads **averages)
{
    tw_graph *g = r->graph;
    tw_rows rows;
    tw_output *values = twi_alloc_array(2 * (size_t)r->towers, sizeof *values), *ids = values + r->towers;
    if (!values) {
        tw_graph_fail(g, TW_RESOURCE_EXHAUSTED, "out of memory while averaging sparse gradients");
        return;
    }
    tw_find_rows(towers[0]->gradients[i], &rows);
    twi_log(TWI_LOG_INFO,
            "variable '%s' has a sparse gradient: the rows that %d towers touch are joined, not all %d added",
            towers[0]->variables[i]->name, r->towers, rows.count);
    double share = tw_output_dtype(rows.values) == TW_FLOAT64 ? 1.0 / r->towers : 1.0f / (float)r->towers;
    for (int t = 0; t < num_results(r); t++) {
        int place = result_place(r, t);
        collect_rows(r, towers, i, place, values, ids);
        twi_reduce_enter(r, place);
        tw_output all = tw_concat(tw_name(g, "values"), values, r->towers, 0);
        tw_output scaled = tw_mul(g, all, tw_scalar_of(g, tw_output_dtype(rows.values), share));
        tw_output touched = tw_concat(tw_name(g, "rows"), ids, r->towers, 0);
        averages[t]->gradients[i] = tw_unsorted_segment_sum(tw_name(g, "sparse_average"), scaled, touched, rows.count);
        twi_reduce_leave(r, place);
    }
    twi_free(values);
}

/* ---- all of them ------------------------------------------------------------------------------------------- */

/* As TensorFlow's tutorial builds it; rewrite/collective.c makes a tree of it. */
static tw_output mean_of_stack(const twi_reducer *r, tw_grads *const *towers, int i)
{
    tw_output mean = {0}, *layers = twi_alloc_array((size_t)r->towers, sizeof *layers);
    if (layers) {
        for (int t = 0; t < r->towers; t++)
            layers[t] = tw_expand_dims(r->graph, towers[t]->gradients[i], 0);
        if (r->options->beside_variables)
            tw_enter_colocation(r->graph, towers[0]->variables[i]->handle);
        tw_output all = tw_concat(tw_name(r->graph, "concat"), layers, r->towers, 0);
        mean = tw_reduce_mean(r->graph, all, TW_AXES(0), false);
        if (r->options->beside_variables)
            tw_leave_colocation(r->graph);
    } else {
        tw_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while averaging gradients");
    }
    twi_free(layers);
    return mean;
}

static int64_t bytes_of(const tw_variable *variable)
{
    return tw_shape_elements(variable->shape) * (int64_t)tw_dtype_size(variable->dtype);
}

/* Whether variable i joins a bundle that has some members already, or begins one. */
static bool joins(const twi_reducer *r, const bundle *b, const tw_grads *grads, int i)
{
    const tw_variable *first = grads->variables[b->members[0]], *variable = grads->variables[i];
    int64_t most = r->options->small_bytes, size = (int64_t)tw_dtype_size(variable->dtype);
    int group = r->options->small_group ? r->options->small_group : SMALL_GROUP;
    if (first->dtype != variable->dtype)
        return false;
    if (r->options->bucket_bytes)
        return b->elements * size + bytes_of(variable) <= r->options->bucket_bytes;
    return r->options->packs || (b->count < group && bytes_of(first) <= most && bytes_of(variable) <= most);
}

/* In order of variables; for buckets in that in which tower 0 computes the gradients, the last layer's first. */
static void find_sequence(const twi_reducer *r, const tw_grads *grads, int *sequence)
{
    for (int i = 0; i < grads->count; i++) {
        int at = i;
        const tw_node *node = grads->gradients[i].node;
        for (; r->options->bucket_bytes && node && at > 0; at--) {
            const tw_node *before = grads->gradients[sequence[at - 1]].node;
            if (before && tw_node_number(before) <= tw_node_number(node))
                break;
            sequence[at] = sequence[at - 1];
        }
        sequence[at] = i;
    }
}

/* Bundles the gradients that wait and reduces bundle after bundle. */
static void reduce_dense(twi_reducer *r, bool *waits, tw_grads *const *towers, tw_grads **averages)
{
    int count = towers[0]->count;
    int *sequence = twi_alloc_array((size_t)count + 1, sizeof *sequence);
    bundle b = {.members = twi_alloc_array((size_t)count + 1, sizeof *b.members)};
    if (b.members && sequence)
        find_sequence(r, towers[0], sequence);
    else
        tw_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while averaging gradients");
    for (int i = 0; i < count && tw_graph_status(r->graph) == TW_OK; i++) {
        if (!waits[sequence[i]])
            continue;
        b.members[0] = sequence[i];
        b.count = 0;
        b.elements = 0;
        for (int k = i; k < count; k++) {
            int next = sequence[k];
            if (!waits[next])
                continue;
            if (k > i && !joins(r, &b, towers[0], next)) {
                if (r->options->bucket_bytes)
                    break; /* whoever comes later would hold this one up */
                continue;
            }
            b.members[b.count++] = next;
            b.elements += tw_shape_elements(towers[0]->variables[next]->shape);
            waits[next] = false;
        }
        reduce_bundle(r, &b, towers, averages);
    }
    twi_free(b.members);
    twi_free(sequence);
}

void twi_reduce_all(twi_reducer *r, tw_grads *const *towers, tw_grads **averages)
{
    tw_graph *g = r->graph;
    int count = towers[0]->count, first = tw_graph_num_nodes(g);
    bool *waits = twi_alloc_array((size_t)count + 1, sizeof *waits);
    if (!waits)
        tw_graph_fail(g, TW_RESOURCE_EXHAUSTED, "out of memory while averaging gradients");
    for (int t = 0; t < num_results(r); t++)
        averages[t] = twi_new_grads(g, towers[t]->variables, count);
    for (int i = 0; i < count && tw_graph_status(g) == TW_OK; i++) {
        if (!towers[0]->gradients[i].node)
            continue;
        if (all_sparse(r, towers, i))
            reduce_rows(r, towers, i, averages);
        else if (r->stacked)
            averages[0]->gradients[i] = mean_of_stack(r, towers, i);
        else
            waits[i] = true;
    }
    if (tw_graph_status(g) == TW_OK)
        reduce_dense(r, waits, towers, averages);
    tw_mark_reduction(g, first);
    twi_free(waits);
}
