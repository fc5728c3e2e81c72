/* random_ends.h - what a step of training ends with, drawn at random: updates of variables with what rewrites join with
 * them, which are means of towers, weight decay, casts, moving averages, counts of steps and rates that follow from
 * these; and what only looks so, or is wanted by others, too.
 *
 * Edges decide what every read of a variable finds, so that no rewrite may change a value: all first writes come behind
 * all reads that were made with the variables, as what these are computed from does. */
#ifndef RANDOM_ENDS_H
#define RANDOM_ENDS_H

#include "testing.h"

#include <tower/ops.h>
#include <tower/train.h>

enum { TWT_END_SIDE = 4, TWT_END_VARIABLES = 6, TWT_END_VALUES = 300, TWT_END_FETCHES = 48 };
enum { TWT_END_TOWERS = 4 };

typedef enum twt_end_kind { TWT_DESCENT, TWT_AVERAGE, TWT_DECAY, TWT_MOMENTUM, TWT_TRAINING } twt_end_kind;

typedef struct twt_end {
    tw_graph *g;
    unsigned seed;
    const char *const *devices; /* three; the variables' is the first */
    twt_end_kind kind;          /* of most updates */
    tw_output values[TWT_END_VALUES], scalars[3], wanted[TWT_END_VALUES];
    int num_values, num_wanted;
    tw_variable *variables[TWT_END_VARIABLES], *slots[TWT_END_VARIABLES];
    tw_output now[TWT_END_VARIABLES], written[TWT_END_VARIABLES]; /* what they were read as, and changed by, last */
    tw_variable *count; /* a scalar */
} twt_end;

static inline unsigned twt_draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % below; /* the lower bits repeat soon */
}

static inline bool twt_one_in(twt_end *e, unsigned many)
{
    return twt_draw(&e->seed, many) == 0;
}

/* Others may use it later. */
static inline tw_output twt_keep(twt_end *e, tw_output value)
{
    if (twt_one_in(e, 6))
        e->values[e->num_values++] = value;
    return value;
}

static inline const char *twt_draw_device(twt_end *e)
{
    return twt_one_in(e, 3) ? e->devices[twt_draw(&e->seed, 3)] : "";
}

static inline tw_output twt_any_value(twt_end *e)
{
    return e->values[twt_draw(&e->seed, (unsigned)e->num_values)];
}

static inline tw_output twt_any_scalar(twt_end *e)
{
    return e->scalars[twt_one_in(e, 3) ? twt_draw(&e->seed, 3) : 0];
}

static inline tw_output twt_multiply(twt_end *e, tw_output value)
{
    tw_output by = twt_one_in(e, 5) ? e->values[0] : twt_any_scalar(e);
    if (twt_one_in(e, 12))
        return tw_div(e->g, value, by);
    return twt_one_in(e, 2) ? tw_mul(e->g, value, by) : tw_mul(e->g, by, value);
}

static inline tw_output twt_narrowed(twt_end *e, tw_output value)
{
    return tw_cast(e->g, tw_cast(e->g, value, TW_BFLOAT16), TW_FLOAT32);
}

/* What is left of a variable, or of another one, or of what it was before its first update; it may be fetched, too. */
static inline tw_output twt_share_of(twt_end *e, int v)
{
    tw_output value = twt_one_in(e, 6)   ? e->now[twt_draw(&e->seed, TWT_END_VARIABLES)]
                      : twt_one_in(e, 6) ? e->variables[v]->value
                                         : e->now[v];
    if (twt_one_in(e, 4))
        value = twt_narrowed(e, value);
    tw_output share = twt_multiply(e, value);
    if (twt_one_in(e, 8))
        e->wanted[e->num_wanted++] = share;
    return share;
}

static inline tw_output twt_gradient(twt_end *e, int v)
{
    tw_output terms[2];
    for (int i = 0; i < 2; i++)
        TW_DEVICE(e->g, "%s", twt_draw_device(e)) {
            terms[i] = twt_any_value(e);
            if (twt_one_in(e, 4))
                terms[i] = twt_keep(e, twt_narrowed(e, terms[i]));
            if (twt_one_in(e, 2))
                terms[i] = twt_keep(e, tw_add_n(e->g, (tw_output[]){terms[i], twt_share_of(e, v), twt_any_value(e)},
                                                twt_one_in(e, 5) ? 3 : 2));
        }
    if (twt_one_in(e, 2))
        return terms[0];
    tw_output other = twt_one_in(e, 6) ? twt_any_scalar(e) : terms[1];
    tw_output sum = twt_one_in(e, 8)   ? tw_sub(e->g, terms[0], other)
                    : twt_one_in(e, 2) ? tw_add(e->g, terms[0], other)
                                       : tw_add(e->g, other, terms[0]);
    return twt_keep(e, twt_multiply(e, twt_keep(e, sum)));
}

static inline tw_output twt_move(twt_end *e, int v)
{
    tw_output from = twt_one_in(e, 8)   ? e->now[twt_draw(&e->seed, TWT_END_VARIABLES)]
                     : twt_one_in(e, 8) ? e->variables[v]->value
                                        : e->now[v];
    tw_output to = twt_one_in(e, 8) ? twt_any_scalar(e) : twt_any_value(e);
    return twt_multiply(e, twt_keep(e, twt_one_in(e, 8) ? tw_add(e->g, from, to) : tw_sub(e->g, from, to)));
}

/* Behind all that has read or changed a variable. */
static inline void twt_enter_write(twt_end *e, int v)
{
    tw_enter_control(e->g, e->written[v].node ? e->written[v] : e->values[0]);
    tw_enter_control(e->g, e->written[v].node ? e->now[v] : e->values[0]);
}

static inline void twt_leave_write(twt_end *e, int v, tw_output made, bool reads)
{
    tw_leave_control(e->g);
    tw_leave_control(e->g);
    e->written[v] = made;
    if (reads)
        TW_CONTROL(e->g, made)
            e->now[v] = tw_variable_read(e->g, e->variables[v]);
}

/* Decoupled weight decay before an update of v, or what only looks so: of another variable, or growth. */
static inline tw_output twt_lose(twt_end *e, int v)
{
    int of = twt_one_in(e, 4) ? (int)twt_draw(&e->seed, TWT_END_VARIABLES) : v;
    tw_output share = twt_share_of(e, v), handle = e->variables[of]->handle;
    twt_enter_write(e, of);
    tw_output loss = twt_one_in(e, 6) ? tw_assign_add(e->g, handle, share) : tw_assign_sub(e->g, handle, share);
    twt_leave_write(e, of, loss, twt_one_in(e, 6));
    return loss;
}

static inline void twt_update(twt_end *e, int v)
{
    twt_end_kind kind = twt_one_in(e, 4) ? twt_draw(&e->seed, TWT_TRAINING) : e->kind;
    tw_output handle = e->variables[v]->handle, slot = e->slots[v]->handle, rate = twt_any_scalar(e), made = {0};
    tw_output operand = kind == TWT_AVERAGE ? twt_move(e, v)
                        : kind == TWT_DECAY ? tw_add(e->g, twt_share_of(e, v), twt_any_value(e))
                                            : twt_gradient(e, v);
    tw_output loss = kind == TWT_MOMENTUM && !twt_one_in(e, 4) ? twt_lose(e, v) : e->values[0];
    twt_enter_write(e, v);
    TW_CONTROL(e->g, loss)
        TW_CONTROL(e->g, twt_one_in(e, 6) ? twt_any_value(e) : loss)
            made = kind == TWT_DESCENT    ? tw_apply_gradient_descent(e->g, handle, rate, operand)
                   : kind == TWT_MOMENTUM ? tw_apply_momentum(e->g, handle, slot, rate, operand, e->scalars[1], false)
                                          : tw_assign_sub(e->g, handle, operand);
    twt_leave_write(e, v, made, true);
}

static inline tw_optimizer *twt_draw_optimizer(twt_end *e, tw_output rate)
{
    switch (twt_draw(&e->seed, 4)) {
    case 0:
        return tw_gradient_descent(e->g, rate);
    case 1:
        return tw_momentum(e->g, rate, 0.5f, twt_one_in(e, 2));
    case 2:
        return tw_adam(e->g, rate, 0.5f, 0.75f, 0.1f);
    default:
        return tw_rms_prop(e->g, rate, 0.5f, 0.25f, 0.1f);
    }
}

/* Changes the count behind what comes last, or beside it. Returns what comes last then. */
static inline tw_output twt_change_count(twt_end *e, tw_output last)
{
    tw_output handle = e->count->handle, before = e->count->value, made = {0}, one = tw_scalar(e->g, 1);
    tw_output more = twt_one_in(e, 3) ? twt_any_scalar(e) : one;
    TW_CONTROL(e->g, twt_one_in(e, 2) ? last : before)
        made = twt_one_in(e, 3)   ? tw_assign(e->g, handle, tw_add(e->g, tw_mul(e->g, before, e->scalars[1]), more))
               : twt_one_in(e, 4) ? tw_assign_sub(e->g, handle, more)
                                  : tw_assign_add(e->g, handle, more);
    TW_CONTROL(e->g, made)
        e->wanted[e->num_wanted++] = tw_mul(e->g, tw_variable_read(e->g, e->count), twt_any_scalar(e));
    return tw_group(e->g, (tw_output[]){last, made}, 2);
}

/* The mean of some towers' gradients, each of its own, joined in one way or another. TensorFlow's nodes are added as a
 * tree by a rewrite alone: of more than two that gives other bits. */
static inline const tw_grads *twt_average(twt_end *e, const tw_grads *of_one)
{
    static const tw_average_options ways[] = {
        {0}, {.bucket_bytes = 200}, {.packs = 2}, {.small_bytes = 100}, {.all_reduce = "ring"}};
    int way = (int)twt_draw(&e->seed, 5), towers = way ? 2 + (int)twt_draw(&e->seed, TWT_END_TOWERS - 1) : 2;
    tw_output gradients[TWT_END_TOWERS][TWT_END_VARIABLES];
    tw_grads grads[TWT_END_TOWERS], *list[TWT_END_TOWERS];
    for (int t = 0; t < towers; t++) {
        for (int i = 0; i < of_one->count; i++)
            gradients[t][i] = t || !of_one->gradients[i].node ? twt_gradient(e, i) : of_one->gradients[i];
        grads[t] = (tw_grads){of_one->count, of_one->variables, gradients[t]};
        list[t] = &grads[t];
    }
    return tw_average_gradients(e->g, list, towers, &ways[way]);
}

/* As a trainer does, but that something may happen between updates and averages. Returns what comes last. */
static inline tw_output twt_train(twt_end *e)
{
    tw_variable *step = tw_global_step(e->g);
    tw_output rate = twt_one_in(e, 2) ? twt_any_scalar(e) : tw_exponential_decay(e->g, 0.3f, step, 2, 0.5f, true);
    tw_optimizer *optimizer = twt_draw_optimizer(e, rate);
    tw_output gradients[TWT_END_VARIABLES];
    tw_variable *variables[TWT_END_VARIABLES];
    int first = twt_one_in(e, 8) ? 1 : 0; /* in another order than they were made in */
    for (int i = 0; i < TWT_END_VARIABLES; i++) {
        int v = (first + i) % TWT_END_VARIABLES;
        variables[i] = e->variables[v];
        gradients[i] = i && twt_one_in(e, 32) ? (tw_output){0} : twt_gradient(e, v);
    }
    if (twt_one_in(e, 3))
        tw_decouple_weight_decay(optimizer, 0.125f, 0);
    tw_grads grads = {TWT_END_VARIABLES, variables, gradients};
    tw_output last = tw_apply_gradients(optimizer, twt_one_in(e, 2) ? twt_average(e, &grads) : &grads, step);
    if (twt_one_in(e, 3))
        last = twt_change_count(e, last);
    if (twt_one_in(e, 8))
        TW_CONTROL(e->g, last)
            last = tw_assign_add(e->g, e->variables[first]->handle, e->values[0]);
    if (twt_one_in(e, 4))
        return last;
    const tw_averages *averages = tw_moving_averages(e->g, 0.75f, twt_one_in(e, 2) ? step : NULL, last);
    assert_non_null(averages);
    return averages->update;
}

/* Builds an end of a step in which x is [TWT_END_SIDE, TWT_END_SIDE]. Returns how many fetches there are: what
 * variables hold afterwards, and some of what was computed on the way. */
static inline int twt_random_end(tw_graph *g, tw_output x, unsigned seed, const char *const devices[3],
                                 tw_output fetches[TWT_END_FETCHES])
{
    static const twt_end_kind kinds[] = {TWT_DESCENT,  TWT_TRAINING, TWT_AVERAGE,  TWT_TRAINING,
                                         TWT_MOMENTUM, TWT_TRAINING, TWT_MOMENTUM, TWT_DECAY};
    twt_end e = {.g = g, .seed = seed, .devices = devices, .kind = kinds[seed / 2 % 8]};
    int count = 0;
    for (int v = 0; v < TWT_END_VARIABLES; v++)
        TW_DEVICE(g, "%s", twt_draw_device(&e)) {
            char name[16];
            snprintf(name, sizeof name, "slot%d", v);
            e.slots[v] = tw_get_state_variable(g, name, TW_FLOAT32, TW_SHAPE(TWT_END_SIDE, TWT_END_SIDE),
                                               (tw_initializer){.a = 0.25f});
            snprintf(name, sizeof name, "v%d", v);
            e.variables[v] = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(TWT_END_SIDE, TWT_END_SIDE),
                                             (tw_initializer){.a = 1.1f + (float)v});
            e.now[v] = e.variables[v]->value;
        }
    e.count = tw_get_state_variable(g, "count", TW_FLOAT32, TW_SCALAR, (tw_initializer){.a = 0.5f});
    e.scalars[0] = tw_scalar(g, 0.03f);
    e.scalars[1] = tw_scalar(g, 0.3f);
    e.scalars[2] = tw_reduce_mean(g, x, NULL, 0, false);
    if (twt_one_in(&e, 2))
        e.scalars[2] = tw_mul(g, e.scalars[2], e.count->value);
    tw_enter_control(g, e.count->value);
    for (int v = 0; v < TWT_END_VARIABLES; v++)
        tw_enter_control(g, e.now[v]);
    e.values[e.num_values++] = tw_tanh(g, x);
    e.values[e.num_values++] = tw_cos(g, x);
    for (int v = 0; v <= TWT_END_VARIABLES; v++)
        tw_leave_control(g);
    if (e.kind == TWT_TRAINING) {
        tw_output last = twt_train(&e);
        TW_CONTROL(g, last)
            for (int i = 0; i < tw_graph_num_variables(g); i++)
                fetches[count++] = tw_variable_read(g, tw_graph_variable(g, i));
    } else {
        for (int v = 0; v < TWT_END_VARIABLES; v++)
            twt_update(&e, twt_one_in(&e, 4) ? (int)twt_draw(&e.seed, TWT_END_VARIABLES) : v);
        for (int v = 0; v < TWT_END_VARIABLES; v++)
            fetches[count++] = e.now[v];
        twt_change_count(&e, tw_group(g, e.now, TWT_END_VARIABLES));
    }
    fetches[count++] = twt_any_value(&e);
    for (int i = 0; i < e.num_wanted && count < TWT_END_FETCHES; i++)
        fetches[count++] = e.wanted[i];
    return count;
}

#endif
