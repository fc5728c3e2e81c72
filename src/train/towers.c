/* towers.c - what towers have in common: their losses, their gradients, and the average of these.
 * Never here: how the average is computed (rewrite/collective.c), where towers lie (place). */
#include "base/log.h"
#include "graph/graph.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <tower/ops.h>
#include <tower/train.h>

#include "train/optimizer.h" /* twi_optimizer_graph */

/* ---- losses ------------------------------------------------------------------------------------------------ */

tw_output tw_add_loss(tw_graph *graph, tw_output loss)
{
    if (loss.node)
        tw_add_to_collection(graph, "losses", loss);
    return loss;
}

tw_output tw_total_loss(tw_graph *graph, const char *scope)
{
    char open[512];
    if (!scope) {
        snprintf(open, sizeof open, "%s", tw_name_scope(graph));
        if (*open)
            open[strlen(open) - 1] = 0; /* without the '/' */
        scope = open;
    }
    if (graph->error.status != TW_OK)
        return (tw_output){0};
    int count = tw_get_collection(graph, "losses", scope, NULL, 0);
    if (!count) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "no loss lies inside the scope '%s'; were they added with "
                                                   "tw_add_loss()?", scope);
        return (tw_output){0};
    }
    tw_output *losses = twi_alloc_array((size_t)count, sizeof *losses);
    if (!losses) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding up losses");
        return (tw_output){0};
    }
    tw_get_collection(graph, "losses", scope, losses, count);
    tw_output total = tw_add_n(tw_name(graph, "total_loss"), losses, count);
    twi_free(losses);
    return total;
}

/* The length of a tower's part of a name at its start, "tower_12/"; 0 if there is none. */
static size_t tower_part(const char *name)
{
    static const char prefix[] = "tower_";
    size_t length = sizeof prefix - 1;
    if (strncmp(name, prefix, length) != 0)
        return 0;
    while (isdigit((unsigned char)name[length]))
        length++;
    return name[length] == '/' ? length + 1 : 0;
}

char *tw_strip_tower_name(const char *name, char *text, size_t size)
{
    size_t at = 0;
    while (*name) {
        size_t part = tower_part(name);
        name += part;
        if (!part && at + 1 < size)
            text[at++] = *name;
        name += !part;
    }
    if (size)
        text[at] = 0;
    return text;
}

/* ---- gradients --------------------------------------------------------------------------------------------- */

static tw_grads *new_grads(tw_graph *graph, tw_variable *const *variables, int count)
{
    tw_grads *grads = twi_arena_alloc(&graph->arena, sizeof *grads);
    tw_variable **kept = twi_arena_copy(&graph->arena, variables, sizeof *kept * (size_t)count);
    tw_output *gradients = twi_arena_alloc(&graph->arena, sizeof *gradients * (size_t)(count + 1));
    if (!grads || !kept || !gradients) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while computing gradients");
        return NULL;
    }
    *grads = (tw_grads){count, kept, gradients};
    return grads;
}

tw_grads *tw_compute_gradients_of(tw_optimizer *optimizer, tw_output loss, tw_variable *const *variables, int count)
{
    if (!optimizer)
        return NULL;
    tw_graph *graph = twi_optimizer_graph(optimizer);
    tw_output *handles = twi_alloc_array((size_t)count + 1, sizeof *handles);
    tw_grads *grads = graph->error.status == TW_OK ? new_grads(graph, variables, count) : NULL;
    if (!handles)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while computing gradients");
    if (handles && grads) {
        for (int i = 0; i < count; i++)
            handles[i] = variables[i]->handle; /* whatever node reads the variable, it reads it from here */
        tw_gradients(graph, &loss, 1, NULL, handles, count, grads->gradients);
    }
    twi_free(handles);
    return graph->error.status == TW_OK ? grads : NULL;
}

tw_grads *tw_compute_gradients(tw_optimizer *optimizer, tw_output loss)
{
    if (!optimizer)
        return NULL;
    tw_graph *graph = twi_optimizer_graph(optimizer);
    int count = 0;
    tw_variable **trainable = twi_trainable_variables(graph, &count);
    tw_grads *grads = trainable ? tw_compute_gradients_of(optimizer, loss, trainable, count) : NULL;
    twi_free(trainable);
    return grads;
}

tw_variable **twi_trainable_variables(tw_graph *graph, int *count)
{
    *count = 0;
    tw_variable **trainable = twi_alloc_array((size_t)graph->variables.count + 1, sizeof *trainable);
    if (!trainable) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while listing trainable variables");
        return NULL;
    }
    for (int i = 0; i < graph->variables.count; i++)
        if (graph->variables.items[i]->trainable)
            trainable[(*count)++] = graph->variables.items[i];
    return trainable;
}

/* ---- averaging --------------------------------------------------------------------------------------------- */

static tw_status check_towers(tw_graph *graph, tw_grads *const *towers, int num_towers)
{
    if (num_towers < 1)
        return twi_graph_fail(graph, TW_INVALID_ARGUMENT, "an average of %d towers", num_towers);
    for (int t = 0; t < num_towers; t++) {
        if (!towers[t])
            return twi_graph_fail(graph, TW_INVALID_ARGUMENT, "tower %d has no gradients to average", t);
        for (int i = 0; i < towers[0]->count && i < towers[t]->count; i++)
            if (towers[t]->variables[i] != towers[0]->variables[i])
                return twi_graph_fail(graph, TW_INVALID_ARGUMENT,
                                      "variable number %d is '%s' in tower 0 and '%s' in tower %d: towers must share "
                                      "their variables",
                                      i, towers[0]->variables[i]->name, towers[t]->variables[i]->name, t);
        if (towers[t]->count != towers[0]->count)
            return twi_graph_fail(graph, TW_INVALID_ARGUMENT, "tower 0 has %d variables, tower %d has %d",
                                  towers[0]->count, t, towers[t]->count);
    }
    return TW_OK;
}

/* The towers' gradients of variable i as outputs[num_towers]; zeros where one is missing. False if all are missing,
 * which the log says, or on an error. */
static bool collect(tw_graph *graph, tw_grads *const *towers, int num_towers, int i, bool missing_as_zero,
                    tw_output *outputs)
{
    const tw_variable *variable = towers[0]->variables[i];
    int missing = -1, has = -1;
    for (int t = num_towers - 1; t >= 0; t--) {
        outputs[t] = towers[t]->gradients[i];
        if (outputs[t].node)
            has = t;
        else
            missing = t;
    }
    if (has < 0) {
        twi_log(TWI_LOG_WARNING, "variable '%s' has a gradient in none of the %d towers and is left out of the average",
                variable->name, num_towers);
        return false;
    }
    if (missing >= 0 && !missing_as_zero) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT,
                       "variable '%s' has a gradient in tower %d, but none in tower %d: its loss does not depend on it",
                       variable->name, has, missing);
        return false;
    }
    for (int t = 0; t < num_towers; t++)
        if (!outputs[t].node)
            outputs[t] = tw_zeros_like(graph, outputs[has]);
    return true;
}

tw_grads *tw_average_gradients(tw_graph *graph, tw_grads *const *towers, int num_towers,
                               const tw_average_options *options)
{
    if (graph->error.status != TW_OK || check_towers(graph, towers, num_towers) != TW_OK)
        return NULL;
    if (num_towers == 1)
        return towers[0];
    tw_grads *average = new_grads(graph, towers[0]->variables, towers[0]->count);
    tw_output *outputs = twi_alloc_array((size_t)num_towers, sizeof *outputs);
    if (!outputs)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while averaging gradients");
    for (int i = 0; average && outputs && i < average->count && graph->error.status == TW_OK; i++) {
        if (!collect(graph, towers, num_towers, i, options && options->missing_as_zero, outputs))
            continue;
        for (int t = 0; t < num_towers; t++)
            outputs[t] = tw_expand_dims(graph, outputs[t], 0);
        tw_output all = tw_concat(tw_name(graph, "concat"), outputs, num_towers, 0);
        average->gradients[i] = tw_reduce_mean(graph, all, TW_AXES(0), false);
    }
    twi_free(outputs);
    return graph->error.status == TW_OK ? average : NULL;
}
