/* measure.c - see measure.h. */
#include "measure.h"

#include "clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOWERS = 1024 };

/* ---- delays ------------------------------------------------------------------------------------------------ */

static tw_status delay_tower(workload *w, const injection *injection, int tower, tw_error *error)
{
    tw_delay delay = {injection->kind, workload_device(w, tower), tower, injection->seconds};
    return tw_session_delay(workload_session(w), &delay, error);
}

static tw_status inject(workload *w, const injection *injection, tw_error *error)
{
    if (injection->kind == TW_TIME_KINDS)
        return TW_OK;
    if (injection->tower >= 0)
        return delay_tower(w, injection, injection->tower % workload_towers(w), error);
    if (injection->kind != TW_TIME_COMPUTE)
        return delay_tower(w, injection, 0, error);
    for (int i = 0; i < workload_towers(w); i++) {
        tw_status status = delay_tower(w, injection, i, error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

/* ---- steps ------------------------------------------------------------------------------------------------- */

/* Adds the parts of the step that was just taken; what the session did not see of it is the program's own. */
static tw_status take_apart(workload *w, double seconds, measurement *m, tw_error *error)
{
    const char *devices[MOST_TOWERS];
    tw_waterfall parts;
    int towers = workload_towers(w);
    for (int i = 0; i < towers; i++)
        devices[i] = workload_device(w, i);
    tw_status status = tw_session_gather_times(workload_session(w), error);
    if (status == TW_OK)
        status = tw_session_waterfall(workload_session(w), devices, towers, &parts, error);
    if (status != TW_OK)
        return status;
    parts.seconds[TW_TIME_LAUNCH] += seconds - parts.total;
    if (parts.slowest >= 0 && parts.seconds[TW_TIME_IMBALANCE] > m->most_imbalance) {
        m->most_imbalance = parts.seconds[TW_TIME_IMBALANCE];
        m->parts.slowest = parts.slowest;
    }
    m->parts.hidden += parts.hidden;
    for (int k = 0; k < TW_TIME_KINDS; k++)
        m->parts.seconds[k] += parts.seconds[k];
    m->parts.total += seconds;
    return TW_OK;
}

static tw_status warm_up(workload *w, const measure_options *o, tw_error *error)
{
    workload_result result;
    tw_status status = TW_OK;
    for (int i = 0; i < o->warm_up && status == TW_OK; i++) {
        status = workload_run(w, 1, &result, error);
        if (status == TW_OK && o->trace && i == (o->warm_up >= 2 ? o->warm_up - 2 : 0))
            status = tw_session_write_trace(workload_session(w), o->trace, error);
        if (status == TW_OK && i == 0)
            status = inject(w, &o->injection, error);
    }
    return status;
}

/* How many steps come next: up to the next line, or the end. */
static int steps_of_row(const measure_options *o, const pace *pace, int done)
{
    int left = o->steps - done, line = o->display_every ? o->display_every - done % o->display_every : left;
    return o->take_apart || done == 0 ? 1 : (int)pace_steps(pace, line < left ? line : left);
}

static tw_status take_row(workload *w, int steps, pace *pace, measurement *m, tw_error *error)
{
    double begin = seconds_now();
    tw_status status = workload_run(w, steps, &m->last, error);
    double seconds = seconds_now() - begin;
    for (int i = 0; i < steps && status == TW_OK; i++)
        m->times[m->steps++] = seconds / steps;
    pace_learn(pace, steps, seconds);
    return status == TW_OK && m->taken_apart ? take_apart(w, seconds, m, error) : status;
}

tw_status measure(workload *w, const measure_options *o, measurement *m, tw_error *error)
{
    pace pace = o->pace;
    *m = (measurement){.examples = workload_examples(w), .taken_apart = o->take_apart, .parts.slowest = -1};
    m->times = calloc((size_t)o->steps, sizeof *m->times);
    if (!m->times) {
        *error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory for the times of the steps"};
        return TW_RESOURCE_EXHAUSTED;
    }
    if (o->warming_up)
        o->warming_up(o->user);
    tw_status status = warm_up(w, o, error);
    if (o->warm && status == TW_OK)
        o->warm(o->user);
    double start = seconds_now();
    while (m->steps < o->steps && status == TW_OK) {
        int steps = steps_of_row(o, &pace, m->steps);
        status = tw_devices_share(tw_session_devices(workload_session(w)), &steps, sizeof steps, error);
        if (status == TW_OK)
            status = take_row(w, steps, &pace, m, error);
        m->wall = seconds_now() - start;
        if (o->stepped && status == TW_OK)
            o->stepped(o->user, m);
    }
    return status;
}

/* ---- speed ------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

speed measured_speed(const measurement *m, double alpha)
{
    speed s = {0};
    int n = m->steps;
    double *speeds = calloc((size_t)n + 1, sizeof *speeds);
    double time = 0, weights = 0, sum = 0, squares = 0;
    for (int i = 0; speeds && i < n; i++) {
        double weight = alpha > 0 ? pow(1 - alpha, n - 1 - i) : 1;
        time += weight * m->times[i];
        weights += weight;
        speeds[i] = (double)m->examples / m->times[i];
        sum += speeds[i];
    }
    if (!speeds || n == 0) {
        free(speeds);
        return s;
    }
    s.mean = (double)m->examples / (time / weights);
    for (int i = 0; i < n; i++)
        squares += (speeds[i] - sum / n) * (speeds[i] - sum / n);
    s.uncertainty = sqrt(squares / n) / sqrt(n);
    double middle = median(speeds, n);
    for (int i = 0; i < n; i++)
        speeds[i] = fabs(speeds[i] - middle);
    s.jitter = 1.4826 * median(speeds, n);
    free(speeds);
    return s;
}
