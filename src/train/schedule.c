/* schedule.c - learning rates that follow the step. */
#include "base/status.h"
#include <tower/ops.h>
#include <tower/train.h>

tw_output tw_exponential_decay(tw_graph *graph, float rate, const tw_variable *step, double decay_steps,
                               float decay_rate, bool staircase)
{
    tw_output decayed = {0};
    if (!step)
        return decayed;
    if (!(decay_steps > 0)) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "exponential decay over %g steps, expected more than 0", decay_steps);
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
    TWI_NEED_IN(graph, boundaries || count <= 0, "boundaries", (tw_output){0});
    TWI_NEED_IN(graph, values, "values", (tw_output){0});
    tw_output rate = {0};
    if (!step)
        return rate;
    for (int i = 1; i < count; i++)
        if (boundaries[i] <= boundaries[i - 1]) {
            tw_graph_fail(graph, TW_INVALID_ARGUMENT, "boundaries must rise, but %lld follows %lld",
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

static bool has_length(tw_graph *graph, const char *what, const tw_variable *step, double steps)
{
    if (step && !(steps > 0))
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "%s over %g steps, expected more than 0", what, steps);
    return step && steps > 0;
}

/* min(step, steps) / steps */
static tw_output share_done(tw_graph *graph, const tw_variable *step, double steps)
{
    tw_output all = tw_scalar(tw_name(graph, "decay_steps"), (float)steps);
    tw_output done = tw_minimum(graph, tw_cast(graph, step->value, TW_FLOAT32), all);
    return tw_div(graph, done, all);
}

/* (rate - end) * share + end */
static tw_output between(tw_graph *graph, float rate, float end, tw_output share)
{
    tw_output scaled = tw_mul(graph, tw_scalar(graph, rate - end), share);
    return tw_add(graph, scaled, tw_scalar(graph, end));
}

tw_output tw_polynomial_decay(tw_graph *graph, float rate, const tw_variable *step, double decay_steps, float end,
                              float power)
{
    tw_output decayed = {0};
    if (!has_length(graph, "polynomial decay", step, decay_steps))
        return decayed;
    TW_NAME_SCOPE(graph, "PolynomialDecay") {
        tw_output left = tw_sub(graph, tw_scalar(graph, 1), share_done(graph, step, decay_steps));
        decayed = between(graph, rate, end, tw_pow(graph, left, tw_scalar(tw_name(graph, "power"), power)));
    }
    return decayed;
}

tw_output tw_cosine_decay(tw_graph *graph, float rate, const tw_variable *step, double decay_steps, float end)
{
    const float pi = 3.14159265358979f;
    tw_output decayed = {0};
    if (!has_length(graph, "cosine decay", step, decay_steps))
        return decayed;
    TW_NAME_SCOPE(graph, "CosineDecay") {
        tw_output angle = tw_mul(graph, tw_scalar(graph, pi), share_done(graph, step, decay_steps));
        tw_output one = tw_scalar(graph, 1), half = tw_scalar(graph, 0.5f);
        decayed = between(graph, rate, end, tw_mul(graph, tw_add(graph, tw_cos(graph, angle), one), half));
    }
    return decayed;
}

tw_output tw_warm_up(tw_graph *graph, tw_output rate, const tw_variable *step, double steps)
{
    tw_output warm = {0};
    if (!has_length(graph, "a warm-up", step, steps))
        return warm;
    TW_NAME_SCOPE(graph, "WarmUp") {
        tw_output one = tw_scalar(graph, 1);
        tw_output next = tw_add(graph, tw_cast(graph, step->value, TW_FLOAT32), one);
        tw_output share = tw_div(graph, next, tw_scalar(tw_name(graph, "steps"), (float)steps));
        warm = tw_mul(graph, rate, tw_minimum(graph, share, one));
    }
    return warm;
}
