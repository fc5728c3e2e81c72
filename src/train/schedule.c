/* schedule.c - learning rates that follow the step. */
#include "graph/graph.h"

#include <tower/ops.h>
#include <tower/train.h>

tw_output tw_exponential_decay(tw_graph *graph, float rate, const tw_variable *step, double decay_steps,
                               float decay_rate, bool staircase)
{
    tw_output decayed = {0};
    if (!step)
        return decayed;
    if (!(decay_steps > 0)) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "exponential decay over %g steps, expected more than 0",
                       decay_steps);
        return decayed;
    }
    TW_NAME_SCOPE(graph, "ExponentialDecay") {
        const char *scope = tw_name_scope(graph);
        tw_output start = tw_scalar(tw_name(graph, "learning_rate"), rate);
        tw_output at = tw_cast(graph, step->value, TW_FLOAT32);
        tw_output steps = tw_scalar(tw_name(graph, "decay_steps"), (float)decay_steps);
        tw_output times = tw_div(tw_name(graph, "truediv"), at, steps);
        if (staircase)
            times = tw_floor(graph, times);
        tw_output base = tw_scalar(tw_name(graph, "decay_rate"), decay_rate);
        tw_output factor = tw_pow(graph, base, times);
        decayed = tw_mul(tw_name(graph, "%s", scope), start, factor);
    }
    return decayed;
}

tw_output tw_piecewise_constant(tw_graph *graph, const tw_variable *step, const int64_t *boundaries, int count,
                                const float *values)
{
    tw_output rate = {0};
    if (!step)
        return rate;
    for (int i = 1; i < count; i++)
        if (boundaries[i] <= boundaries[i - 1]) {
            twi_graph_fail(graph, TW_INVALID_ARGUMENT, "boundaries must rise, but %lld follows %lld",
                           (long long)boundaries[i], (long long)boundaries[i - 1]);
            return rate;
        }
    TW_NAME_SCOPE(graph, "PiecewiseConstant") {
        rate = tw_scalar(graph, values[0]);
        for (int i = 0; i < count; i++) {
            tw_output passed = tw_greater(graph, step->value, tw_scalar_of(graph, step->dtype, (double)boundaries[i]));
            rate = tw_select(graph, passed, tw_scalar(graph, values[i + 1]), rate);
        }
    }
    return rate;
}
