/* trainer_apply.c - how the towers' gradients meet and reach the variables, in each mode of update. Ordinary nodes all.
 *
 *     parameter_server   the mean, beside each variable, is applied to it
 *       staged           the same; meanwhile the variable as it was goes to the towers' stages, for the next step
 *     replicated         the mean comes to every tower, and each applies it to its own variables
 *       relaxed          what each applies is the mean of the step before; this step's is kept for the next
 *     independent        each tower applies its own gradients */
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

#include "train/optimizer.h" /* twi_trainable_variables */
#include "train/trainer.h"

static void out_of_memory(tw_trainer *t)
{
    tw_graph_fail(t->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building the update");
}

enum { BUCKET_BYTES = 1 << 20 };

/* On GPUs a copy and a launch cost more than the bytes of most gradients, so they are joined. That changes no bit of the
 * tree's sums. Where the mean goes to variables that lie in one place, each has it beside itself instead. */
static int64_t bucket_bytes(const tw_trainer *t)
{
    const tw_average_options *a = &t->averaging;
    bool several = false, own_order = a->all_reduce && strcmp(a->all_reduce, "nccl") != 0;
    for (int i = 0; i < t->towers; i++) {
        several = several || strcmp(t->tower_devices[i], t->tower_devices[0]) != 0;
        if (tw_device_is(t->tower_devices[i], "CPU"))
            return 0;
    }
    return several && t->variables.update == TW_REPLICATED && !own_order && !a->packs && !a->small_bytes ? BUCKET_BYTES : 0;
}

static tw_average_options how_to_average(const tw_trainer *t)
{
    tw_average_options how = t->averaging;
    if (how.bucket_bytes <= 0)
        how.bucket_bytes = how.bucket_bytes == 0 ? bucket_bytes(t) : 0;
    how.weights = twi_trainer_has_equal_shares(t) ? NULL : t->weights;
    how.devices = t->tower_devices;
    how.beside_variables = true;
    return how;
}

/* ---- one copy ------------------------------------------------------------------------------------------------ */

/* The mean of all towers' gradients, by the variables themselves. */
static tw_grads *average_for(tw_trainer *t, tw_variable **variables)
{
    size_t n = (size_t)t->towers;
    tw_average_options how = how_to_average(t);
    tw_grads *mean = NULL, *lists = tw_graph_keep(t->graph, NULL, n * sizeof *lists);
    tw_variable **kept = tw_graph_keep(t->graph, variables,
                                        sizeof(tw_variable *) * (size_t)t->gradients[0]->count);
    tw_grads **towers = twi_alloc_array(n, sizeof(tw_grads *));
    if (lists && kept && towers) {
        for (int i = 0; i < t->towers; i++) {
            lists[i] = (tw_grads){t->gradients[i]->count, kept, t->gradients[i]->gradients};
            towers[i] = &lists[i];
        }
        mean = tw_average_gradients(t->graph, towers, t->towers, &how);
    } else {
        out_of_memory(t);
    }
    twi_free(towers);
    return mean;
}

/* A node that runs when tower number `tower` no longer looks at what it works with. */
static tw_output tower_is_done(tw_trainer *t, int tower)
{
    const tw_grads *grads = t->gradients[tower];
    tw_output done = {0}, *seen = twi_alloc_array((size_t)grads->count + 1, sizeof *seen);
    int count = 0;
    if (!seen) {
        out_of_memory(t);
        return done;
    }
    seen[count++] = t->fetches[tower];
    for (int i = 0; i < grads->count; i++)
        if (grads->gradients[i].node)
            seen[count++] = grads->gradients[i];
    done = tw_group(tw_name(t->graph, "tower_%d/done", tower), seen, count);
    twi_free(seen);
    return done;
}

/* Brings tower number `tower`'s stages up to `fresh`, the variables' values; the nodes go to nodes[count]. */
static void refill_stages(tw_trainer *t, int tower, const tw_output *fresh, tw_output *nodes)
{
    const tw_grads *grads = t->gradients[tower];
    tw_output done = tower_is_done(t, tower);
    TW_CONTROL(t->graph, done)
        for (int i = 0; i < grads->count; i++)
            TW_COLOCATE(t->graph, grads->variables[i]->handle)
                nodes[i] = tw_assign(tw_name(t->graph, "stage"), grads->variables[i]->handle, fresh[i]);
}

/* The update of the variables, and that of the stages with what the variables were before it. */
static tw_output apply_staged(tw_trainer *t, tw_optimizer *optimizer, tw_variable **variables)
{
    tw_graph *g = t->graph;
    int count = t->gradients[0]->count, stages = count * t->towers;
    tw_output step = {0}, *fresh = twi_alloc_array((size_t)count + 1, sizeof *fresh);
    tw_output *nodes = twi_alloc_array((size_t)stages + 1, sizeof *nodes);
    if (fresh && nodes) {
        for (int i = 0; i < count; i++)
            TW_COLOCATE(g, variables[i]->handle)
                fresh[i] = tw_variable_read(g, variables[i]);
        tw_output read = tw_group(tw_name(g, "read_for_stages"), fresh, count);
        TW_CONTROL(g, read)
            nodes[stages] = tw_apply_gradients(optimizer, t->average, tw_global_step(g));
        for (int k = 0; k < t->towers; k++)
            refill_stages(t, k, fresh, nodes + k * count);
        step = tw_group(tw_name(g, "update_and_stage"), nodes, stages + 1);
    } else {
        out_of_memory(t);
    }
    twi_free(fresh);
    twi_free(nodes);
    return step;
}

static tw_output apply_to_one(tw_trainer *t, tw_optimizer *optimizer)
{
    tw_output step = {0};
    int count;
    tw_variable **variables = twi_trainable_variables(t->graph, &count);
    if (!variables)
        return step;
    tw_grads *mean = average_for(t, variables), *finished = twi_trainer_finish_gradients(t, mean);
    t->average = t->asynchronous ? mean : finished; /* what towers push takes the place of the mean */
    if (finished)
        step = t->variables.staged ? apply_staged(t, optimizer, variables)
                                   : tw_apply_gradients(optimizer, finished, tw_global_step(t->graph));
    twi_free(variables);
    return step;
}

/* ---- a copy for each tower ----------------------------------------------------------------------------------- */

/* What the next step applies to a variable: zeros at first. Beside the variable, and a copy as that is. */
static tw_variable *pending(tw_trainer *t, const tw_variable *variable)
{
    tw_graph *g = t->graph;
    char name[640];
    tw_new_variable new = {variable->dtype, variable->shape};
    if (variable->copy_of) {
        snprintf(name, sizeof name, "%s" TWI_PENDING, variable->copy_of->name);
        new.copy_of = tw_graph_find_variable(g, name);
    }
    snprintf(name, sizeof name, "%s" TWI_PENDING, variable->name);
    tw_enter_colocation(g, variable->handle);
    tw_variable *made = tw_make_variable(g, name, &new);
    tw_leave_colocation(g);
    return made;
}

/* Applies what is pending, then keeps the means for the next step. `all` has the variables of all towers. */
static tw_output apply_late(tw_trainer *t, tw_optimizer *optimizer, tw_grads *all)
{
    tw_graph *g = t->graph;
    size_t n = (size_t)all->count + 1;
    tw_output step = {0}, *means = twi_alloc_array(n, sizeof *means), *nodes = twi_alloc_array(n, sizeof *nodes);
    tw_variable **kept = twi_alloc_array(n, sizeof(tw_variable *));
    int count = 0;
    if (!means || !nodes || !kept) {
        out_of_memory(t);
        goto done;
    }
    for (int i = 0; i < all->count; i++) {
        means[i] = all->gradients[i];
        kept[i] = means[i].node ? pending(t, all->variables[i]) : NULL;
        if (kept[i])
            TW_COLOCATE(g, kept[i]->handle)
                all->gradients[i] = tw_variable_read(g, kept[i]);
    }
    step = nodes[count++] = tw_apply_gradients(optimizer, all, tw_global_step(g));
    for (int i = 0; i < all->count && step.node; i++)
        if (kept[i])
            TW_CONTROL(g, step)
            TW_COLOCATE(g, kept[i]->handle)
                nodes[count++] = tw_assign(tw_name(g, "keep"), kept[i]->handle, means[i]);
    step = tw_group(tw_name(g, "update_and_keep"), nodes, count);
done:
    twi_free(means);
    twi_free(nodes);
    twi_free(kept);
    return step;
}

/* One update of the variables of all towers, each with its tower's mean (or its own gradient). */
static tw_output apply_to_all(tw_trainer *t, tw_optimizer *optimizer, tw_grads *const *means)
{
    int count = means[0]->count;
    size_t n = (size_t)count * (size_t)t->towers + 1;
    tw_grads all = {0};
    tw_output step = {0};
    all.variables = twi_alloc_array(n, sizeof(tw_variable *));
    all.gradients = twi_alloc_array(n, sizeof *all.gradients);
    if (all.variables && all.gradients) {
        for (int k = 0; k < t->towers; k++)
            for (int i = 0; i < count; i++) {
                all.variables[all.count] = means[k]->variables[i];
                all.gradients[all.count++] = means[k]->gradients[i];
            }
        step = t->variables.consistency == TW_RELAXED ? apply_late(t, optimizer, &all)
                                                      : tw_apply_gradients(optimizer, &all, tw_global_step(t->graph));
    } else {
        out_of_memory(t);
    }
    twi_free(all.variables);
    twi_free(all.gradients);
    return step;
}

static tw_output apply_to_replicas(tw_trainer *t, tw_optimizer *optimizer)
{
    tw_output step = {0};
    tw_average_options how = how_to_average(t);
    tw_grads **means = twi_alloc_array((size_t)t->towers, sizeof(tw_grads *));
    if (!means) {
        out_of_memory(t);
        return step;
    }
    tw_all_reduce(t->graph, t->gradients, t->towers, &how, means);
    for (int i = 0; i < t->towers; i++)
        means[i] = twi_trainer_finish_gradients(t, means[i]);
    t->average = means[0];
    if (tw_graph_status(t->graph) == TW_OK)
        step = apply_to_all(t, optimizer, means);
    twi_free(means);
    return step;
}

static tw_output apply_independently(tw_trainer *t, tw_optimizer *optimizer)
{
    tw_output step = {0};
    tw_grads **own = twi_alloc_array((size_t)t->towers, sizeof(tw_grads *));
    if (!own) {
        out_of_memory(t);
        return step;
    }
    for (int i = 0; i < t->towers; i++)
        own[i] = twi_trainer_finish_gradients(t, t->gradients[i]);
    t->average = own[0];
    if (tw_graph_status(t->graph) == TW_OK)
        step = apply_to_all(t, optimizer, own);
    twi_free(own);
    return step;
}

tw_output twi_trainer_apply(tw_trainer *t, tw_optimizer *optimizer)
{
    for (int i = 0; i < t->towers; i++)
        if (!t->gradients[i] || tw_graph_status(t->graph) != TW_OK)
            return (tw_output){0};
    switch (t->variables.update) {
    case TW_REPLICATED:
        return apply_to_replicas(t, optimizer);
    case TW_INDEPENDENT:
        return apply_independently(t, optimizer);
    default:
        return apply_to_one(t, optimizer);
    }
}
