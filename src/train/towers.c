/* towers.c - what towers have in common: their losses and their gradients.
 * Never here: how gradients meet (average.c), where towers lie (place). */
#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <tower/ops.h>
#include <tower/train.h>

#include "train/optimizer.h" /* twi_optimizer_graph */
#include "base/status.h"
#include "train/reduce.h"    /* twi_new_grads */

/* ---- losses ------------------------------------------------------------------------------------------------ */

/* False, with an error on the graph, if it is known to be none. */
static bool is_scalar(tw_graph *graph, tw_output loss)
{
    char text[128];
    tw_shape shape = tw_output_shape(loss);
    if (!loss.node || shape.rank <= 0)
        return true;
    tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                  "the loss '%s' has shape %s, expected a scalar: take its mean or sum first", tw_node_name(loss.node),
                  tw_shape_text(shape, text, sizeof text));
    return false;
}

tw_output tw_add_loss(tw_graph *graph, tw_output loss)
{
    TWI_NEED_OR(graph, (tw_output){0});
    if (!is_scalar(graph, loss))
        return (tw_output){0};
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
    if (tw_graph_status(graph) != TW_OK)
        return (tw_output){0};
    int count = tw_get_collection(graph, "losses", scope, NULL, 0);
    if (!count) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                      "no loss lies inside the scope '%s'; were they added with "
                      "tw_add_loss()?",
                      scope);
        return (tw_output){0};
    }
    tw_output *losses = twi_alloc_array((size_t)count, sizeof *losses);
    if (!losses) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding up losses");
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
    TWI_NEED_OR(name, NULL);
    TWI_NEED_OR(text, NULL);
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

tw_grads *twi_new_grads(tw_graph *graph, tw_variable *const *variables, int count)
{
    tw_grads *grads = tw_graph_keep(graph, NULL, sizeof *grads);
    tw_variable **kept = tw_graph_keep(graph, variables, sizeof *kept * (size_t)count);
    tw_output *gradients = tw_graph_keep(graph, NULL, sizeof *gradients * (size_t)(count + 1));
    if (!grads || !kept || !gradients) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while computing gradients");
        return NULL;
    }
    *grads = (tw_grads){count, kept, gradients};
    return grads;
}

tw_grads *tw_compute_gradients_of(tw_optimizer *optimizer, tw_output loss, tw_variable *const *variables, int count)
{
    TWI_NEED_OR(variables || count <= 0, NULL);
    if (!optimizer)
        return NULL;
    tw_graph *graph = twi_optimizer_graph(optimizer);
    if (!is_scalar(graph, loss))
        return NULL;
    tw_output *handles = twi_alloc_array((size_t)count + 1, sizeof *handles);
    tw_grads *grads = tw_graph_status(graph) == TW_OK ? twi_new_grads(graph, variables, count) : NULL;
    if (!handles)
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while computing gradients");
    if (handles && grads) {
        for (int i = 0; i < count; i++)
            handles[i] = variables[i]->handle; /* whatever node reads the variable, it reads it from here */
        tw_gradients(graph, &loss, 1, NULL, handles, count, grads->gradients);
    }
    twi_free(handles);
    return tw_graph_status(graph) == TW_OK ? grads : NULL;
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
    tw_variable **trainable = twi_alloc_array((size_t)tw_graph_num_variables(graph) + 1, sizeof *trainable);
    if (!trainable) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while listing trainable variables");
        return NULL;
    }
    for (int i = 0; i < tw_graph_num_variables(graph); i++)
        if (tw_graph_variable(graph, i)->trainable)
            trainable[(*count)++] = tw_graph_variable(graph, i);
    return trainable;
}
