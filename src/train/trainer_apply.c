/* trainer_apply.c - the modes of update: how the towers' gradients meet and reach the variables, by ordinary nodes, and
 * the table of who does which.
 *
 *     parameter_server   there is one copy; the mean, beside each variable, is applied to it
 *       staged           the same; meanwhile the variable as it was goes to the towers' stages, for the next step
 *     replicated         each tower has a copy; the mean comes to every tower, which applies it to its own
 *       relaxed          what each applies is the mean of the step before; this step's is kept for the next
 *     independent        each tower has a copy, to which it applies its own gradients
 *     distributed_replicated   there is one copy, to which the mean is applied; what comes of it goes to every tower's
 *     local              each group of towers has a copy, to which the group's mean is applied
 *
 * How to add one: docs/guide/adding-an-update-mode.md. Never here: where variables lie (trainer_variables.c). */
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

#include "train/optimizer.h" /* twi_trainable_variables */
#include "train/trainer_modes.h"

static void out_of_memory(tw_trainer *t)
{
    tw_graph_fail(t->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building the update");
}

enum { BUCKET_BYTES = 1 << 20 };

/* On GPUs a copy and a launch cost more than the bytes of most gradients, so they are joined. That changes no bit of
 * the tree's sums. Where the mean goes to variables that lie in one place, each has it beside itself instead. */
static int64_t bucket_bytes(const tw_trainer *t)
{
    const tw_average_options *a = &t->recipe.average;
    bool several = false, own_order = a->all_reduce && strcmp(a->all_reduce, "nccl") != 0;
    for (int i = 0; i < t->towers.count; i++) {
        several = several || strcmp(t->towers.devices[i], t->towers.devices[0]) != 0;
        if (tw_device_is(t->towers.devices[i], "CPU"))
            return 0;
    }
    return several && t->variables.mode->everywhere && !own_order && !a->packs && !a->small_bytes ? BUCKET_BYTES : 0;
}

static tw_average_options how_to_average(const tw_trainer *t)
{
    tw_average_options how = t->recipe.average;
    if (how.bucket_bytes <= 0)
        how.bucket_bytes = how.bucket_bytes == 0 ? bucket_bytes(t) : 0;
    how.weights = twi_trainer_has_equal_shares(t) ? NULL : t->towers.weights;
    how.devices = t->towers.devices;
    how.beside_variables = true;
    return how;
}

/* ---- how gradients meet -------------------------------------------------------------------------------------- */

/* The gradients of all towers, by the variables themselves instead of what each works with. */
static tw_grads **by_variables(tw_trainer *t, tw_variable **variables)
{
    size_t n = (size_t)t->towers.count, count = (size_t)t->update.gradients[0]->count;
    tw_grads *lists = tw_graph_keep(t->graph, NULL, n * sizeof *lists);
    tw_variable **kept = tw_graph_keep(t->graph, variables, sizeof(tw_variable *) * count);
    tw_grads **towers = tw_graph_keep(t->graph, NULL, n * sizeof(tw_grads *));
    for (int i = 0; lists && kept && towers && i < t->towers.count; i++) {
        lists[i] = (tw_grads){(int)count, kept, t->update.gradients[i]->gradients};
        towers[i] = &lists[i];
    }
    return lists && kept ? towers : NULL;
}

/* The tutorial's graph has these nodes at its top, where they hide everything else. */
static void enter_average(tw_trainer *t)
{
    if (!t->as_tutorial)
        tw_enter_name_scope(t->graph, "average");
}

static void leave_average(tw_trainer *t)
{
    if (!t->as_tutorial)
        tw_leave_name_scope(t->graph);
}

static void meet_at_variables(tw_trainer *t, tw_grads **means)
{
    int count;
    tw_average_options how = how_to_average(t);
    tw_variable **variables = twi_trainable_variables(t->graph, &count);
    tw_grads **towers = variables ? by_variables(t, variables) : NULL;
    enter_average(t);
    if (towers)
        means[0] = tw_average_gradients(t->graph, towers, t->towers.count, &how);
    else
        out_of_memory(t);
    leave_average(t);
    twi_free(variables);
}

/* How many copies of the variables are updated. */
static int num_copies(const tw_trainer *t)
{
    return t->variables.mode->place ? 1 : t->variables.mode->grouped ? t->groups.count : t->towers.count;
}

static bool are_equal(const int *shares, int count)
{
    for (int i = 1; i < count; i++)
        if (shares[i] != shares[0])
            return false;
    return true;
}

/* The mean of each group's towers, beside their copy. */
static void meet_in_groups(tw_trainer *t, tw_grads **means)
{
    for (int k = 0; k < t->groups.count && tw_graph_status(t->graph) == TW_OK; k++) {
        int first = twi_first_of_group(t, k), count = twi_first_of_group(t, k + 1) - first;
        tw_average_options how = how_to_average(t);
        how.devices += first;
        how.weights = are_equal(t->towers.shares + first, count) ? NULL : t->towers.weights + first;
        enter_average(t);
        means[k] = tw_average_gradients(t->graph, t->update.gradients + first, count, &how);
        leave_average(t);
    }
}

static void meet_everywhere(tw_trainer *t, tw_grads **means)
{
    tw_average_options how = how_to_average(t);
    enter_average(t);
    tw_all_reduce(t->graph, t->update.gradients, t->towers.count, &how, means);
    leave_average(t);
}

/* ---- one copy ------------------------------------------------------------------------------------------------ */

static tw_output apply_once(tw_trainer *t, tw_optimizer *optimizer, tw_grads *const *means)
{
    return tw_apply_gradients(optimizer, means[0], tw_global_step(t->graph));
}

/* A node that runs when tower number `tower` no longer looks at what it works with. */
static tw_output tower_is_done(tw_trainer *t, int tower)
{
    const tw_grads *grads = t->update.gradients[tower];
    tw_output done = {0}, *seen = twi_alloc_array((size_t)grads->count + 1, sizeof *seen);
    int count = 0;
    if (!seen) {
        out_of_memory(t);
        return done;
    }
    seen[count++] = t->fetched.outputs[tower];
    for (int i = 0; i < grads->count; i++)
        if (grads->gradients[i].node)
            seen[count++] = grads->gradients[i];
    done = tw_group(tw_name(t->graph, "tower_%d/done", tower), seen, count);
    twi_free(seen);
    return done;
}

/* Brings what tower number `tower` works with up to `fresh`, the variables' values; the nodes go to nodes[count]. */
static void refill_tower(tw_trainer *t, int tower, const tw_output *fresh, tw_output *nodes)
{
    const tw_grads *grads = t->update.gradients[tower];
    tw_output done = tower_is_done(t, tower);
    TW_CONTROL(t->graph, done)
        for (int i = 0; i < grads->count; i++)
            TW_COLOCATE(t->graph, grads->variables[i]->handle)
                nodes[i] = tw_assign(tw_name(t->graph, "stage"), grads->variables[i]->handle, fresh[i]);
}

static void read_variables(tw_trainer *t, const tw_grads *means, tw_output *fresh)
{
    for (int i = 0; i < means->count; i++)
        TW_COLOCATE(t->graph, means->variables[i]->handle)
            fresh[i] = tw_variable_read(t->graph, means->variables[i]);
}

/* The update of the variables, and that of what the towers work with: by what the variables are after it, or where a
 * mode is one step late were before it. */
static tw_output apply_and_refill(tw_trainer *t, tw_optimizer *optimizer, tw_grads *const *means)
{
    tw_graph *g = t->graph;
    int count = means[0]->count, copies = count * t->towers.count;
    tw_output step = {0}, *fresh = twi_alloc_array((size_t)count + 1, sizeof *fresh);
    tw_output *nodes = twi_alloc_array((size_t)copies + 1, sizeof *nodes);
    if (fresh && nodes) {
        if (t->variables.mode->applied_late) {
            read_variables(t, means[0], fresh);
            tw_output read = tw_group(tw_name(g, "read_for_stages"), fresh, count);
            TW_CONTROL(g, read)
                nodes[copies] = tw_apply_gradients(optimizer, means[0], tw_global_step(g));
        } else {
            nodes[copies] = tw_apply_gradients(optimizer, means[0], tw_global_step(g));
            TW_CONTROL(g, nodes[copies])
                read_variables(t, means[0], fresh);
        }
        for (int k = 0; k < t->towers.count; k++)
            refill_tower(t, k, fresh, nodes + k * count);
        step = tw_group(tw_name(g, "update_and_stage"), nodes, copies + 1);
    } else {
        out_of_memory(t);
    }
    twi_free(fresh);
    twi_free(nodes);
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

/* The variables of all towers, or groups, each with its own mean (or gradient); false: memory ran out. */
static bool join_copies(tw_trainer *t, tw_grads *const *means, tw_grads *all)
{
    size_t n = (size_t)means[0]->count * (size_t)num_copies(t) + 1;
    *all = (tw_grads){0};
    all->variables = twi_alloc_array(n, sizeof(tw_variable *));
    all->gradients = twi_alloc_array(n, sizeof *all->gradients);
    for (int k = 0; k < num_copies(t) && all->variables && all->gradients; k++)
        for (int i = 0; i < means[0]->count; i++) {
            all->variables[all->count] = means[k]->variables[i];
            all->gradients[all->count++] = means[k]->gradients[i];
        }
    if (!all->variables || !all->gradients)
        out_of_memory(t);
    return all->variables && all->gradients;
}

static void free_joined(tw_grads *all)
{
    twi_free(all->variables);
    twi_free(all->gradients);
}

static tw_output apply_to_all(tw_trainer *t, tw_optimizer *optimizer, tw_grads *const *means)
{
    tw_grads all;
    tw_output step = {0};
    if (join_copies(t, means, &all))
        step = tw_apply_gradients(optimizer, &all, tw_global_step(t->graph));
    free_joined(&all);
    return step;
}

/* Applies what is pending, then keeps the means for the next step. */
static tw_output apply_late(tw_trainer *t, tw_optimizer *optimizer, tw_grads *const *means)
{
    tw_graph *g = t->graph;
    tw_grads all;
    bool joined = join_copies(t, means, &all);
    size_t n = (size_t)all.count + 1;
    tw_output step = {0}, *late = twi_alloc_array(n, sizeof *late), *nodes = twi_alloc_array(n, sizeof *nodes);
    tw_variable **kept = twi_alloc_array(n, sizeof(tw_variable *));
    int count = 0;
    if (!joined || !late || !nodes || !kept) {
        out_of_memory(t);
        goto done;
    }
    for (int i = 0; i < all.count; i++) {
        late[i] = all.gradients[i];
        kept[i] = late[i].node ? pending(t, all.variables[i]) : NULL;
        if (kept[i])
            TW_COLOCATE(g, kept[i]->handle)
                all.gradients[i] = tw_variable_read(g, kept[i]);
    }
    step = nodes[count++] = tw_apply_gradients(optimizer, &all, tw_global_step(g));
    for (int i = 0; i < all.count && step.node; i++) {
        if (!kept[i])
            continue;
        TW_CONTROL(g, step)
            TW_COLOCATE(g, kept[i]->handle)
                nodes[count++] = tw_assign(tw_name(g, "keep"), kept[i]->handle, late[i]);
    }
    step = tw_group(tw_name(g, "update_and_keep"), nodes, count);
done:
    twi_free(late);
    twi_free(nodes);
    twi_free(kept);
    free_joined(&all);
    return step;
}

/* ---- the modes ----------------------------------------------------------------------------------------------- */

const twi_mode twi_modes[] = {
    {
        .name = "parameter_server",
        .words = "the mean gradient is applied to the one copy there is",
        .numbers = "those of one device with as many towers",
        .before = 1,
        .update = TW_UPDATE_PARAMETER_SERVER,
        .place = twi_on_parameter_devices,
        .meet = meet_at_variables,
        .apply = apply_once,
        .asynchronous = true,
    },
    {
        .name = "parameter_server staged",
        .words = "the mean gradient is applied to one copy; towers compute with that of the step before",
        .numbers = "one update late, on any number of devices the same",
        .applied_late = true,
        .before = 4,
        .update = TW_UPDATE_PARAMETER_SERVER,
        .staged = true,
        .place = twi_on_parameter_devices,
        .own = twi_own_stage,
        .meet = meet_at_variables,
        .apply = apply_and_refill,
        .not_scaled = "staged variables: towers would compute with the scale of another step than the variables'",
    },
    {
        .name = "replicated",
        .words = "each tower applies the mean gradient to its own copy",
        .numbers = "those of one device with as many towers",
        .before = 2,
        .update = TW_UPDATE_REPLICATED,
        .own = twi_own_copy,
        .meet = meet_everywhere,
        .everywhere = true,
        .apply = apply_to_all,
    },
    {
        .name = "replicated relaxed",
        .words = "each tower applies the mean gradient of the step before to its own copy",
        .numbers = "one update late, on any number of devices the same",
        .applied_late = true,
        .before = 5,
        .update = TW_UPDATE_REPLICATED,
        .relaxed = true,
        .own = twi_own_copy,
        .meet = meet_everywhere,
        .everywhere = true,
        .apply = apply_late,
        .keeps_means = true,
        .not_scaled = "relaxed consistency: a step that is left out would take the update of the step before with it",
    },
    {
        .name = "independent",
        .words = "towers never meet: an upper bound for speed, no way to train; tower 0's copy is saved",
        .numbers = "of as many runs as there are towers",
        .before = 3,
        .update = TW_UPDATE_INDEPENDENT,
        .own = twi_own_copy,
        .apply = apply_to_all,
    },
    {
        .name = "distributed_replicated",
        .words = "the mean gradient is applied to one copy, which then goes to that of each tower",
        .numbers = "those of one device with as many towers",
        .update = TW_UPDATE_DISTRIBUTED_REPLICATED,
        .place = twi_on_parameter_devices,
        .own = twi_own_local,
        .meet = meet_at_variables,
        .apply = apply_and_refill,
    },
    {
        .name = "local",
        .words = "each group of towers applies its own mean gradient to its own copy; from time to time the copies "
                 "become their mean",
        .numbers = "of as many towers, groups and steps between meetings, on any number of devices the same",
        .update = TW_UPDATE_LOCAL,
        .grouped = true,
        .own = twi_own_of_group,
        .meet = meet_in_groups,
        .apply = apply_to_all,
        .not_scaled = "local updates: groups would have to agree on each step's scale, which they do not wait for",
    },
    {.name = NULL},
};

/* ---- the update ---------------------------------------------------------------------------------------------- */

/* What each tower has, or of one copy the first alone, after they have met. */
static tw_output meet_and_apply(tw_trainer *t, tw_optimizer *optimizer, tw_grads **means)
{
    const twi_mode *mode = t->variables.mode;
    int count = num_copies(t);
    if (mode->meet)
        mode->meet(t, means);
    else
        memcpy(means, t->update.gradients, sizeof *means * (size_t)count);
    tw_grads *raw = means[0];
    for (int i = 0; i < count; i++)
        means[i] = twi_trainer_finish_gradients(t, means[i]);
    t->update.average = t->asynchronous ? raw : means[0]; /* what towers push takes the place of the mean */
    return tw_graph_status(t->graph) == TW_OK && means[0] ? mode->apply(t, optimizer, means) : (tw_output){0};
}

tw_output twi_trainer_apply(tw_trainer *t, tw_optimizer *optimizer)
{
    tw_output step = {0};
    for (int i = 0; i < t->towers.count; i++)
        if (!t->update.gradients[i] || tw_graph_status(t->graph) != TW_OK)
            return step;
    tw_grads **means = twi_alloc_array((size_t)t->towers.count, sizeof(tw_grads *));
    if (means)
        step = meet_and_apply(t, optimizer, means);
    else
        out_of_memory(t);
    twi_free(means);
    return step;
}
