/* clip.c - gradients kept within bounds: of each element, or of the norm of all. */
#include "base/memory.h"

#include <string.h>
#include <tower/ops.h>
#include <tower/train.h>

#include "train/optimizer.h" /* twi_copy_grads */

tw_grads *twi_copy_grads(tw_graph *graph, const tw_grads *grads)
{
    if (!grads || tw_graph_status(graph) != TW_OK)
        return NULL;
    size_t count = (size_t)grads->count;
    tw_grads *copy = tw_graph_keep(graph, NULL, sizeof *copy);
    tw_variable **variables = tw_graph_keep(graph, grads->variables, sizeof *variables * count);
    tw_output *gradients = tw_graph_keep(graph, grads->gradients, sizeof *gradients * count);
    if (!copy || !variables || !gradients) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while changing gradients");
        return NULL;
    }
    *copy = (tw_grads){grads->count, variables, gradients};
    return copy;
}

tw_grads *tw_clip_gradients(tw_graph *graph, const tw_grads *grads, float most)
{
    if (!(most > 0))
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "gradients clipped to %g, expected more than 0", most);
    tw_grads *clipped = twi_copy_grads(graph, grads);
    if (!clipped)
        return NULL;
    TW_NAME_SCOPE(graph, "clip_by_value") {
        for (int i = 0; i < clipped->count; i++) {
            tw_output g = clipped->gradients[i];
            if (!g.node)
                continue;
            tw_output low = tw_cast(graph, tw_scalar(graph, -most), tw_output_dtype(g));
            tw_output high = tw_cast(graph, tw_scalar(graph, most), tw_output_dtype(g));
            clipped->gradients[i] = tw_clip(graph, g, low, high);
        }
    }
    return clipped;
}

/* The root of the sum of all squares. */
static tw_output global_norm(tw_graph *graph, const tw_grads *grads)
{
    int count = 0;
    tw_output norm = {0}, *halves = twi_alloc_array((size_t)grads->count + 1, sizeof *halves);
    if (!halves) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while clipping gradients");
        return norm;
    }
    for (int i = 0; i < grads->count; i++)
        if (grads->gradients[i].node)
            halves[count++] = tw_l2_loss(graph, tw_cast(graph, grads->gradients[i], TW_FLOAT32));
    if (count == 0) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "there are no gradients whose norm could be clipped");
    } else {
        tw_output half = tw_add_n(graph, halves, count), two = tw_scalar(graph, 2), sum = tw_mul(graph, half, two);
        norm = tw_sqrt(tw_name(graph, "global_norm"), sum);
    }
    twi_free(halves);
    return norm;
}

tw_grads *tw_clip_gradients_by_norm(tw_graph *graph, const tw_grads *grads, float most, tw_output *norm)
{
    if (norm)
        *norm = (tw_output){0};
    if (!(most > 0))
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "gradients clipped to a norm of %g, expected more than 0", most);
    tw_grads *clipped = twi_copy_grads(graph, grads);
    if (!clipped)
        return NULL;
    TW_NAME_SCOPE(graph, "clip_by_global_norm") {
        tw_output found = global_norm(graph, grads), one = tw_scalar(graph, 1), limit = tw_scalar(graph, most);
        tw_output inverse = tw_div(graph, one, found), least = tw_div(graph, one, limit);
        tw_output scale = tw_mul(graph, limit, tw_minimum(graph, inverse, least));
        tw_output nothing = tw_sub(graph, found, found); /* 0, or NaN of a norm that is not finite */
        scale = tw_add(graph, scale, nothing);
        for (int i = 0; i < clipped->count; i++) {
            tw_output g = clipped->gradients[i];
            if (g.node)
                clipped->gradients[i] = tw_mul(graph, g, tw_cast(graph, scale, tw_output_dtype(g)));
        }
        if (norm)
            *norm = found;
    }
    return clipped;
}
