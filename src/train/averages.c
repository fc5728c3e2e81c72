/* averages.c - exponential moving averages of variables. */
#include "graph/graph.h"
#include "train/optimizer.h"

#include <stdio.h>
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
        twi_graph_fail(graph, TW_ALREADY_EXISTS, "variable '%s' has a moving average already", variable->name);
        return NULL;
    }
    tw_enter_colocation(graph, variable->handle);
    tw_variable *average = twi_make_variable(
        graph, name,
        &(twi_new_variable){variable->dtype, variable->shape, .initial_value = twi_initial_value(variable)});
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

static bool is_float(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
}

tw_averages *tw_moving_averages(tw_graph *graph, float decay, const tw_variable *num_updates, tw_output after)
{
    if (graph->error.status != TW_OK)
        return NULL;
    int count = 0;
    tw_variable **trainable = twi_trainable_variables(graph, &count);
    if (!trainable)
        return NULL;
    tw_averages *a = twi_arena_alloc(&graph->arena, sizeof *a);
    tw_variable **pairs = twi_arena_alloc(&graph->arena, 2 * sizeof *pairs * (size_t)(count + 1));
    tw_output *updates = twi_alloc_array((size_t)count + 1, sizeof *updates);
    if (!a || !pairs || !updates) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making moving averages");
        goto done;
    }
    *a = (tw_averages){.variables = pairs, .averages = pairs + count};
    for (int i = 0; i < count && graph->error.status == TW_OK; i++)
        if (is_float(trainable[i]->dtype)) {
            a->variables[a->count] = trainable[i];
            a->averages[a->count++] = make_average(graph, trainable[i]);
        }
    if (graph->error.status != TW_OK)
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
        if (graph->error.status == TW_OK)
            a->update = tw_group(tw_name(graph, "%s", scope), updates, a->count);
    }
done:
    twi_free(updates);
    twi_free(trainable);
    return graph->error.status == TW_OK ? a : NULL;
}
