/* loss_scale.c - losses made larger so that gradients in float16 do not vanish, and what happens when they overflow.
 *
 * Everything is nodes and variables of the graph: whether a step was good is known on no device before all towers are
 * done, and the scale is saved and restored like a weight. */
#include "base/status.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>
#include <tower/train.h>

#include "train/optimizer.h" /* twi_copy_grads */

static const float most_scale = 1 << 24, least_scale = 1;

static tw_loss_scale *new_scale(tw_graph *graph, float scale)
{
    if (!(scale >= least_scale && scale <= most_scale))
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "a loss scale of %g, expected 1 to 2^24", scale);
    if (tw_graph_status(graph) != TW_OK)
        return NULL;
    tw_loss_scale *s = tw_graph_keep(graph, NULL, sizeof *s);
    if (!s)
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making a loss scale");
    else
        *s = (tw_loss_scale){0};
    return s;
}

tw_loss_scale *tw_fixed_loss_scale(tw_graph *graph, float scale)
{
    tw_loss_scale *s = new_scale(graph, scale);
    if (s)
        s->scale = tw_scalar(tw_name(graph, "loss_scale"), scale);
    return s;
}

tw_loss_scale *tw_automatic_loss_scale(tw_graph *graph, float first, int every)
{
    if (every < 1)
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "a loss scale that doubles every %d steps, expected 1 or more",
                      every);
    tw_loss_scale *s = new_scale(graph, first);
    if (!s)
        return NULL;
    s->automatic = true;
    s->every = every;
    s->value = tw_make_variable(graph, "loss_scale",
                                &(tw_new_variable){TW_FLOAT32, TW_SCALAR, {.kind = TW_INIT_CONSTANT, .a = first}});
    s->good = tw_make_variable(graph, "loss_scale/good_steps",
                               &(tw_new_variable){TW_FLOAT32, TW_SCALAR, {.kind = TW_INIT_CONSTANT, .a = 0}});
    if (!s->value || !s->good)
        return NULL;
    s->scale = s->value->value;
    return s;
}

/* ---- looking for overflow ---- */

/* Adds whether a gradient is finite to found[]; tower -1: the average. */
static void look_at(tw_graph *graph, tw_loss_scale *s, const tw_variable *variable, tw_output gradient, int tower,
                    tw_output *found)
{
    char text[700];
    snprintf(text, sizeof text, tower < 0 ? "the average of the gradients of '%s'" : "the gradient of '%s' in tower %d",
             variable->name, tower);
    s->names[s->count] = tw_graph_keep(graph, text, strlen(text) + 1);
    TW_COLOCATE(graph, gradient)
        found[s->count++] = tw_reduce_all(graph, tw_is_finite(graph, gradient), NULL, 0, false);
}

/* From the last variable to the first, as gradients are computed: what overflows hands it on to those behind. */
static void look_at_all(tw_graph *graph, tw_loss_scale *s, const tw_grads *grads, int tower, tw_output *found)
{
    for (int i = grads->count - 1; i >= 0; i--)
        if (grads->gradients[i].node)
            look_at(graph, s, grads->variables[i], grads->gradients[i], tower, found);
}

static void find_overflow(tw_graph *graph, tw_loss_scale *s, tw_grads *const *towers, int num_towers,
                          const tw_grads *average)
{
    size_t most = (size_t)average->count * (size_t)(num_towers + 1) + 1;
    tw_output *found = twi_alloc_array(most, sizeof *found);
    s->names = tw_graph_keep(graph, NULL, sizeof *s->names * most);
    if (!found || !s->names) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while scaling losses");
    } else {
        for (int t = 0; t < num_towers; t++)
            look_at_all(graph, s, towers[t], t, found);
        if (num_towers > 1) /* which may overflow on the way, in half precision */
            look_at_all(graph, s, average, -1, found);
        s->finite = tw_pack(tw_name(graph, "finite"), found, s->count, 0);
        s->good_step = tw_reduce_all(tw_name(graph, "good_step"), s->finite, NULL, 0, false);
    }
    twi_free(found);
}

/* After `every` good steps twice the scale, after a bad one half of it. */
static void build_update(tw_graph *graph, tw_loss_scale *s)
{
    tw_output zero = tw_scalar(graph, 0), one = tw_scalar(graph, 1), two = tw_scalar(graph, 2);
    tw_output half = tw_scalar(graph, 0.5f), most = tw_scalar(graph, most_scale), least = tw_scalar(graph, least_scale);
    tw_output good = tw_add(graph, s->good->value, one);
    good = tw_select(graph, s->good_step, good, zero);
    tw_output enough = tw_greater_equal(graph, good, tw_scalar(graph, (float)s->every));
    tw_output doubled = tw_mul(graph, s->scale, two), halved = tw_mul(graph, s->scale, half);
    doubled = tw_minimum(graph, doubled, most);
    halved = tw_maximum(graph, halved, least);
    tw_output next = tw_select(graph, enough, doubled, s->scale);
    next = tw_select(graph, s->good_step, next, halved);
    good = tw_select(graph, enough, zero, good);
    tw_output parts[2];
    parts[0] = tw_assign(graph, s->value->handle, next);
    parts[1] = tw_assign(graph, s->good->handle, good);
    s->update = tw_group(tw_name(graph, "update"), parts, 2);
}

tw_grads *tw_unscale_gradients(tw_graph *graph, tw_loss_scale *s, tw_grads *const *towers, int num_towers,
                               const tw_grads *average)
{
    TWI_NEED_IN(graph, towers || num_towers <= 0, "towers", NULL);
    tw_grads *unscaled = s ? twi_copy_grads(graph, average) : NULL;
    if (!unscaled)
        return NULL;
    TW_NAME_SCOPE(graph, "unscale") {
        bool first = s->automatic && !s->good_step.node;
        if (first)
            find_overflow(graph, s, towers, num_towers, average);
        tw_output inverse = tw_div(graph, tw_scalar(graph, 1), s->scale);
        for (int i = 0; i < unscaled->count && tw_graph_status(graph) == TW_OK; i++) {
            tw_output g = unscaled->gradients[i];
            if (!g.node)
                continue;
            tw_output smaller = tw_mul(graph, g, tw_cast(graph, inverse, tw_output_dtype(g)));
            if (s->automatic)
                smaller = tw_select(graph, s->good_step, smaller, tw_zeros_like(graph, g));
            unscaled->gradients[i] = smaller;
        }
        if (first)
            build_update(graph, s);
    }
    return tw_graph_status(graph) == TW_OK ? unscaled : NULL;
}
