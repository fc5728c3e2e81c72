/* averages.c - exponential moving averages, of variables and of losses. */
#include "base/status.h"
#include "base/memory.h"
#include "train/optimizer.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

/* 1 - decay, where decay is at most (1 + n) / (10 + n). */
static tw_output weight_of_new(tw_graph *graph, float decay, const tw_variable *num_updates)
{
    tw_output kept = tw_scalar(tw_name(graph, "decay"), decay);
    if (num_updates) {
        tw_output n = tw_cast(graph, tw_variable_read(graph, num_updates), TW_FLOAT32);
        tw_output one = tw_scalar(tw_name(graph, "add/x"), 1);
        tw_output above = tw_add(tw_name(graph, "add"), one, n);
        tw_output ten = tw_scalar(tw_name(graph, "add_1/x"), 10);
        tw_output below = tw_add(tw_name(graph, "add_1"), ten, n);
        tw_output early = tw_div(tw_name(graph, "truediv"), above, below);
        kept = tw_minimum(graph, kept, early);
    }
    tw_output one = tw_scalar(tw_name(graph, "sub/x"), 1);
    return tw_sub(tw_name(graph, "sub"), one, kept);
}

static tw_variable *make_average(tw_graph *graph, const tw_variable *variable)
{
    char name[640];
    snprintf(name, sizeof name, "%s/ExponentialMovingAverage", variable->name);
    if (tw_graph_find_variable(graph, name)) {
        tw_graph_fail(graph, TW_ALREADY_EXISTS, "variable '%s' has a moving average already", variable->name);
        return NULL;
    }
    tw_enter_colocation(graph, variable->handle);
    tw_variable *average = tw_make_variable(
        graph, name,
        &(tw_new_variable){variable->dtype, variable->shape, .initial_value = tw_variable_initial_value(variable)});
    tw_leave_colocation(graph);
    return average;
}

/* average -= (average - variable) * weight */
static tw_output update_average(tw_graph *graph, const tw_variable *variable, const tw_variable *average,
                                tw_output weight)
{
    tw_output update = {0};
    TW_COLOCATE(graph, average->handle)
    TW_NAME_SCOPE(graph, "AssignMovingAvg") {
        const char *scope = tw_name_scope(graph);
        tw_output old = tw_variable_read(graph, average), new = tw_variable_read(graph, variable);
        tw_output part = tw_cast(graph, weight, variable->dtype);
        tw_output apart = tw_sub(tw_name(graph, "sub"), old, new);
        tw_output move = tw_mul(tw_name(graph, "mul"), apart, part);
        update = tw_assign_sub(tw_name(graph, "%s", scope), average->handle, move);
    }
    return update;
}

/* The average of one loss, brought up to date: the node that reads it then. */
static tw_output average_loss(tw_graph *graph, float decay, tw_output loss)
{
    char name[640];
    if (!loss.node)
        return (tw_output){0};
    snprintf(name, sizeof name, "%s/avg", tw_node_name(loss.node));
    tw_variable *average = tw_make_variable(graph, name, &(tw_new_variable){.dtype = TW_FLOAT32, .shape = TW_SCALAR});
    tw_output value = {0};
    if (!average)
        return value;
    TW_COLOCATE(graph, average->handle) {
        tw_output apart = tw_sub(graph, tw_variable_read(graph, average), tw_cast(graph, loss, TW_FLOAT32));
        tw_output weight = tw_scalar(graph, 1 - decay);
        tw_output update = tw_assign_sub(graph, average->handle, tw_mul(graph, apart, weight));
        TW_CONTROL(graph, update)
            value = tw_variable_read(tw_name(graph, "%s/average/", tw_node_name(loss.node)), average);
    }
    tw_add_to_collection(graph, "loss_averages", value);
    return value;
}

tw_output tw_average_losses(tw_graph *graph, float decay, tw_output total)
{
    TWI_NEED_OR(graph, (tw_output){0});
    enum { MOST = 64 };
    tw_output losses[MOST + 1], averages[MOST + 1];
    char scope[512];
    snprintf(scope, sizeof scope, "%s", tw_name_scope(graph));
    if (*scope)
        scope[strlen(scope) - 1] = 0; /* without the '/' */
    int count = tw_get_collection(graph, "losses", scope, losses, MOST);
    if (count > MOST) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "averages of %d losses in '%s', expected at most %d", count, scope,
                      MOST);
        return (tw_output){0};
    }
    losses[count++] = total;
    TW_NAME_SCOPE(graph, "loss_averages")
        for (int i = 0; i < count; i++)
            averages[i] = average_loss(graph, decay, losses[i]);
    if (tw_graph_status(graph) != TW_OK)
        return (tw_output){0};
    tw_output all = tw_group(graph, averages, count), given = {0};
    TW_CONTROL(graph, all)
        given = tw_identity(graph, total);
    return given;
}

static bool is_float(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
}

tw_averages *twi_moving_averages_of(tw_graph *graph, tw_variable *const *trained, int count, float decay,
                                    const tw_variable *num_updates, tw_output after)
{
    if (tw_graph_status(graph) != TW_OK || !trained)
        return NULL;
    tw_averages *a = tw_graph_keep(graph, NULL, sizeof *a);
    tw_variable **pairs = tw_graph_keep(graph, NULL, 2 * sizeof *pairs * (size_t)(count + 1));
    tw_output *updates = twi_alloc_array((size_t)count + 1, sizeof *updates);
    if (!a || !pairs || !updates) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making moving averages");
        goto done;
    }
    *a = (tw_averages){.variables = pairs, .averages = pairs + count};
    for (int i = 0; i < count && tw_graph_status(graph) == TW_OK; i++)
        if (is_float(trained[i]->dtype)) {
            a->variables[a->count] = trained[i];
            a->averages[a->count++] = make_average(graph, trained[i]);
        }
    if (tw_graph_status(graph) != TW_OK)
        goto done;
    TW_NAME_SCOPE(graph, "ExponentialMovingAverage") {
        const char *scope = tw_name_scope(graph);
        if (after.node)
            tw_enter_control(graph, after);
        tw_output weight = weight_of_new(graph, decay, num_updates);
        for (int i = 0; i < a->count; i++)
            updates[i] = update_average(graph, a->variables[i], a->averages[i], weight);
        if (after.node)
            tw_leave_control(graph);
        if (tw_graph_status(graph) == TW_OK)
            a->update = tw_group(tw_name(graph, "%s", scope), updates, a->count);
    }
done:
    twi_free(updates);
    return tw_graph_status(graph) == TW_OK ? a : NULL;
}

tw_averages *tw_moving_averages(tw_graph *graph, float decay, const tw_variable *num_updates, tw_output after)
{
    int count = 0;
    if (tw_graph_status(graph) != TW_OK)
        return NULL;
    tw_variable **trainable = twi_trainable_variables(graph, &count);
    tw_averages *averages = twi_moving_averages_of(graph, trainable, count, decay, num_updates, after);
    twi_free(trainable);
    return averages;
}
