/* trainer_groups.c - groups of towers with a copy of the variables each (local SGD): which tower is of which, whose
 * copy it works with, when the copies become their mean, and what a checkpoint has of them.
 *
 * The copy of group 0 is NAME itself, that of group k is "group_k/NAME"; slots and moving averages are named after
 * them. A checkpoint has "group_k/NAME" for each group, and as NAME their mean, which all who know no groups take.
 * Never here: how a group's gradients meet and are applied (trainer_apply.c). */
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>
#include <tower/ops.h>

#include "train/optimizer.h" /* twi_trainable_variables */
#include "train/trainer_modes.h"

#define GROUP "group_%d/%s"
#define GROUPS "tower/groups"         /* in a checkpoint, int64: how many there are, ... */
#define MEET_EVERY "tower/meet_every" /* ... and after how many steps they meet */

enum { DEFAULT_MEET_EVERY = 8, MOST_STEPS = 1 << 30 };

/* ---- who is in which ------------------------------------------------------------------------------------------- */

int twi_trainer_group_of(const tw_trainer *t, int tower)
{
    return (int)((int64_t)tower * t->groups.count / t->towers.count);
}

int twi_first_of_group(const tw_trainer *t, int group)
{
    return (int)(((int64_t)group * t->towers.count + t->groups.count - 1) / t->groups.count);
}

/* The examples of a step that the towers of each group have: what it counts for in a mean. */
static int64_t examples_of(const tw_trainer *t, int group)
{
    int64_t examples = 0;
    for (int i = twi_first_of_group(t, group); i < twi_first_of_group(t, group + 1); i++)
        examples += t->towers.shares[i];
    return examples;
}

/* What the checkpoint (may be NULL) has as a number from 1 to `most`; 0: nothing. */
static tw_status recall(tw_checkpoint *checkpoint, const char *key, int64_t most, int64_t *value, tw_error *error)
{
    tw_tensor *saved = NULL;
    *value = 0;
    if (!checkpoint || tw_checkpoint_find(checkpoint, key) < 0)
        return TW_OK;
    tw_status status = tw_checkpoint_read(checkpoint, key, &saved, error);
    if (status != TW_OK)
        return status;
    if (tw_tensor_dtype(saved) == TW_INT64 && tw_tensor_elements(saved) == 1)
        *value = *(const int64_t *)tw_tensor_data(saved);
    if (*value < 1 || *value > most)
        status = twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not a sensible number",
                          tw_checkpoint_path(checkpoint), key);
    tw_tensor_release(saved);
    return status;
}

static tw_status check_options(const tw_trainer *t, const tw_trainer_options *o, tw_error *error)
{
    const twi_mode *mode = t->variables.mode;
    if (!mode->grouped && (o->groups || o->meet_every))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.%s goes with options.variables.update=%s only, not with %s",
                        o->groups ? "groups" : "meet_every", tw_variable_update_name(TW_UPDATE_LOCAL), mode->name);
    if (o->groups < 0 || o->groups > t->towers.count)
        return twi_fail(error, TW_INVALID_ARGUMENT, "options.groups=%d: expected 1 to %d, the number of towers",
                        o->groups, t->towers.count);
    if (o->meet_every < 0 || o->meet_every > MOST_STEPS)
        return twi_fail(error, TW_INVALID_ARGUMENT, "options.meet_every=%lld: expected a number of steps, 1 to %d",
                        (long long)o->meet_every, MOST_STEPS);
    return TW_OK;
}

tw_status twi_trainer_find_groups(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                  tw_error *error)
{
    int64_t groups, every;
    tw_status status;
    TWI_TRY(check_options(t, options, error));
    if (!t->variables.mode->grouped)
        return TW_OK;
    TWI_TRY(recall(checkpoint, GROUPS, t->towers.count, &groups, error));
    TWI_TRY(recall(checkpoint, MEET_EVERY, MOST_STEPS, &every, error));
    if (groups && options->groups && options->groups != groups)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "checkpoint %s was made with %lld groups of towers, but options.groups=%d was asked for: leave "
                        "that out to resume, or train into another directory",
                        tw_checkpoint_path(checkpoint), (long long)groups, options->groups);
    t->groups.count = options->groups ? options->groups : groups ? (int)groups : t->towers.count;
    t->groups.meet_every = options->meet_every ? options->meet_every : every ? every : DEFAULT_MEET_EVERY;
    if (every && t->groups.meet_every != every) {
        char now[32], before[32];
        snprintf(now, sizeof now, "%lld", (long long)t->groups.meet_every);
        snprintf(before, sizeof before, "%lld", (long long)every);
        twi_recipe_note(&t->recipe, "steps between meetings", now, before);
    }
done:
    return status;
}

int tw_trainer_groups(const tw_trainer *t, int64_t *meet_every)
{
    if (meet_every)
        *meet_every = t ? t->groups.meet_every : 0;
    TWI_NEED_OR(t, 0);
    return t->groups.count;
}

/* ---- their variables ------------------------------------------------------------------------------------------- */

/* What group number `group` has in place of a variable, slot or moving average of group 0; NULL: that is not copied. */
static tw_variable *copy_for(const tw_trainer *t, const tw_variable *variable, int group)
{
    char name[700];
    snprintf(name, sizeof name, GROUP, group, variable->name);
    return tw_graph_find_variable(t->graph, name);
}

/* One that trains on its own, so checkpoints have it; it begins as the variable does. */
tw_variable *twi_own_of_group(tw_trainer *t, tw_variable *variable)
{
    int group = twi_trainer_group_of(t, t->variables.building);
    char name[700];
    if (group == 0 || tw_graph_status(t->graph) != TW_OK)
        return variable;
    tw_variable *found = copy_for(t, variable, group);
    if (found)
        return found;
    if (variable->dtype != TW_FLOAT32 && variable->dtype != TW_FLOAT64) {
        tw_graph_fail(t->graph, TW_UNIMPLEMENTED, "variable '%s' is %s: groups of towers have float and double only",
                      variable->name, tw_dtype_name(variable->dtype));
        return NULL;
    }
    snprintf(name, sizeof name, GROUP, group, variable->name);
    return twi_own_made(t, name, variable);
}

tw_variable **twi_trainer_trained(const tw_trainer *t, int *count)
{
    tw_variable **trainable = twi_trainable_variables(t->graph, count);
    if (!trainable || t->groups.count < 2)
        return trainable;
    tw_variable **all = twi_alloc_array((size_t)t->groups.count * (size_t)*count + 1, sizeof(tw_variable *));
    if (all)
        memcpy(all, trainable, sizeof(tw_variable *) * (size_t)*count);
    else
        tw_graph_fail(t->graph, TW_RESOURCE_EXHAUSTED, "out of memory while listing what groups train");
    twi_free(trainable);
    for (int k = 1; all && k < t->groups.count; k++) {
        const tw_grads *own = t->update.gradients[twi_first_of_group(t, k)];
        memcpy(all + *count, own->variables, sizeof(tw_variable *) * (size_t)own->count);
        *count += own->count;
    }
    return all;
}

/* ---- meeting --------------------------------------------------------------------------------------------------- */

/* What a group brings along: its variables and what they are. */
static void read_copies(tw_trainer *t, int group, tw_grads *copies, tw_output *values)
{
    *copies = *t->update.gradients[twi_first_of_group(t, group)];
    copies->gradients = values;
    for (int i = 0; i < copies->count; i++)
        TW_COLOCATE(t->graph, copies->variables[i]->handle)
            values[i] = tw_variable_read(t->graph, copies->variables[i]);
}

/* As the towers' gradients meet, but that variables cross as they are. */
static tw_average_options how_to_meet(tw_trainer *t)
{
    tw_average_options how = t->recipe.average;
    const size_t n = (size_t)t->groups.count;
    const char **devices = tw_graph_keep(t->graph, NULL, n * sizeof *devices);
    float *weights = tw_graph_keep(t->graph, NULL, n * sizeof *weights);
    bool equal = true;
    for (int k = 0; devices && weights && k < t->groups.count; k++) {
        devices[k] = t->towers.devices[twi_first_of_group(t, k)];
        weights[k] = (float)examples_of(t, k);
        equal = equal && weights[k] == weights[0];
    }
    if (!devices || !weights)
        tw_graph_fail(t->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building the groups' mean");
    how.devices = devices;
    how.weights = equal ? NULL : weights;
    how.bucket_bytes = 0;
    how.wire = 0;
    return how;
}

/* The copies become their mean, which comes to each of them with the same bits. */
static tw_output build_meeting(tw_trainer *t, tw_grads *lists, tw_grads **copies, tw_grads **means, tw_output *values,
                               tw_output *nodes)
{
    tw_graph *g = t->graph;
    tw_average_options how = how_to_meet(t);
    int count = t->update.gradients[0]->count, made = 0;
    for (int k = 0; k < t->groups.count; k++) {
        read_copies(t, k, &lists[k], values + k * count);
        copies[k] = &lists[k];
    }
    if (tw_graph_status(g) == TW_OK)
        tw_all_reduce(g, copies, t->groups.count, &how, means);
    for (int k = 0; k < t->groups.count && tw_graph_status(g) == TW_OK; k++)
        for (int i = 0; i < count; i++)
            TW_COLOCATE(g, copies[k]->variables[i]->handle)
                nodes[made++] = tw_assign(g, copies[k]->variables[i]->handle, means[k]->gradients[i]);
    return tw_graph_status(g) == TW_OK ? tw_group(tw_name(g, "met"), nodes, made) : (tw_output){0};
}

void twi_trainer_build_meeting(tw_trainer *t)
{
    if (t->groups.count < 2 || tw_graph_status(t->graph) != TW_OK)
        return;
    size_t n = (size_t)t->groups.count, all = n * (size_t)t->update.gradients[0]->count;
    tw_grads *lists = twi_alloc_array(n, sizeof *lists);
    tw_grads **pointers = twi_alloc_array(2 * n, sizeof(tw_grads *));
    tw_output *outputs = twi_alloc_array(2 * all + 1, sizeof *outputs);
    if (lists && pointers && outputs)
        TW_NAME_SCOPE(t->graph, "meeting")
            t->groups.meeting = build_meeting(t, lists, pointers, pointers + n, outputs, outputs + all);
    else
        tw_graph_fail(t->graph, TW_RESOURCE_EXHAUSTED, "out of memory while building the groups' mean");
    twi_free(lists);
    twi_free(pointers);
    twi_free(outputs);
}

int64_t twi_trainer_steps_to_meet(const tw_trainer *t, int64_t steps)
{
    int64_t every = t->groups.meet_every, next = every ? every - t->step % every : steps;
    return next < steps ? next : steps;
}

tw_status twi_trainer_meet(tw_trainer *t, tw_error *error)
{
    bool due = t->groups.meeting.node && t->step % t->groups.meet_every == 0;
    return due ? tw_session_run(t->session, NULL, 0, &t->groups.meeting, 1, NULL, error) : TW_OK;
}

/* ---- in checkpoints -------------------------------------------------------------------------------------------- */

int twi_groups_most_to_save(const tw_trainer *t)
{
    return t->groups.count ? 2 + tw_graph_num_variables(t->graph) : 0;
}

const char *twi_groups_rename(const tw_trainer *t, const char *name, char *text, size_t size)
{
    const tw_variable *variable = t->groups.count > 1 ? tw_graph_find_variable(t->graph, name) : NULL;
    if (!variable || !copy_for(t, variable, 1))
        return NULL;
    snprintf(text, size, GROUP, 0, name);
    return text;
}

const char *twi_groups_look_for(const tw_trainer *t, const tw_checkpoint *checkpoint, const char *name, char *text,
                                size_t size)
{
    const char *rest = strchr(name, '/');
    const char *own = twi_groups_rename(t, name, text, size);
    char *end = NULL;
    if (own)
        return tw_checkpoint_find(checkpoint, own) >= 0 ? own : NULL;
    bool of_group = t->groups.count > 1 && rest && strncmp(name, "group_", 6) == 0 && strtol(name + 6, &end, 10) > 0 &&
                    end == rest;
    return of_group && tw_checkpoint_find(checkpoint, name) < 0 ? rest + 1 : NULL;
}

/* sum += weight * value, in double, so that the mean of what is equal is that to the bit. */
static void add_value(const tw_tensor *value, double weight, double *sum)
{
    int64_t elements = tw_tensor_elements(value);
    for (int64_t i = 0; i < elements; i++)
        sum[i] += weight * tw_tensor_value(value, i);
}

static void divide(const double *sum, double by, tw_tensor *mean)
{
    int64_t elements = tw_tensor_elements(mean);
    void *data = tw_tensor_data(mean);
    for (int64_t i = 0; i < elements; i++)
        if (tw_tensor_dtype(mean) == TW_FLOAT64)
            ((double *)data)[i] = sum[i] / by;
        else
            ((float *)data)[i] = (float)(sum[i] / by);
}

/* The mean of what all groups have of a variable, in order of groups. */
static tw_status find_mean(const tw_trainer *t, const tw_variable *variable, tw_tensor **mean, tw_error *error)
{
    double *sum = twi_alloc_array((size_t)tw_shape_elements(variable->shape) + 1, sizeof *sum);
    tw_status status = TW_OK;
    *mean = tw_tensor_create(variable->dtype, variable->shape);
    if (!sum || !*mean)
        status = twi_fail_memory(error, "saving a checkpoint");
    for (int k = 0; k < t->groups.count && status == TW_OK; k++) {
        tw_tensor *value = NULL;
        status = tw_session_get_variable(t->session, k ? copy_for(t, variable, k) : variable, &value, error);
        if (status == TW_OK)
            add_value(value, (double)examples_of(t, k), sum);
        tw_tensor_release(value);
    }
    if (status == TW_OK)
        divide(sum, (double)t->towers.examples, *mean);
    twi_free(sum);
    return status;
}

tw_status twi_groups_to_save(const tw_trainer *t, tw_named_tensor *tensors, int *count, tw_error *error)
{
    tw_status status = TW_OK;
    if (!t->groups.count)
        return TW_OK;
    tensors[(*count)++] = (tw_named_tensor){GROUPS, tw_tensor_int64(t->groups.count)};
    tensors[(*count)++] = (tw_named_tensor){MEET_EVERY, tw_tensor_int64(t->groups.meet_every)};
    if (!tensors[*count - 1].tensor || !tensors[*count - 2].tensor)
        return twi_fail_memory(error, "saving a checkpoint");
    for (int i = 0; i < tw_graph_num_variables(t->graph) && status == TW_OK && t->groups.count > 1; i++) {
        const tw_variable *variable = tw_graph_variable(t->graph, i);
        tw_tensor *mean = NULL;
        if (!copy_for(t, variable, 1))
            continue;
        status = find_mean(t, variable, &mean, error);
        tensors[(*count)++] = (tw_named_tensor){variable->name, mean};
    }
    return status;
}
