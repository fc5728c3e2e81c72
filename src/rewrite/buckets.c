/* buckets.c - the gradients of a tower that travel together are laid end to end by one node, where a device has a kernel
 * for it:
 *
 *     Cast to float, AddN with weight decay, Reshape, of each; ConcatV2        _JoinGradients
 *
 * Never here: which gradients travel together (train/reduce.c), and what becomes of their mean (update.c). */
#include "rewrite/gradient.h"

#include <string.h>

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

/* Vectors of floats, one after another. */
static bool is_bucket(const tw_node *node)
{
    return is(node, "ConcatV2") && node->output_types[0] == TW_FLOAT32 && node->output_shapes[0].rank == 1 &&
           node->num_inputs > 2;
}

/* What the joint node reads for an input of the bucket. */
static twi_raw_gradient find_gradient(twi_rewriting *r, const tw_node *bucket, tw_output input)
{
    twi_raw_gradient g = {.value = input, .user = bucket};
    for (const tw_node *flat; (flat = twi_find_link(r, g.value, "Reshape", g.user));) {
        g.value = flat->inputs[0];
        g.user = flat;
    }
    twi_split_decay(r, &g, bucket, (tw_output){0});
    twi_take_cast(r, &g, bucket, "_JoinGradients");
    tw_node *conv = twi_find_turnable(r, &g, bucket);
    if (conv)
        twi_take_turned(r, &g, conv);
    return g;
}

static tw_status join(twi_rewriting *r, tw_node *bucket, tw_error *error)
{
    size_t count = (size_t)bucket->num_inputs - 1;
    tw_output *inputs = twi_alloc_array(3 * count, sizeof *inputs); /* gradients; later variables and decays */
    tw_output *variables = twi_alloc_array(2 * count, sizeof *variables), *decays = variables + count;
    int64_t *turned = twi_alloc_array(2 * count, sizeof *turned), *decayed = turned + count;
    tw_status status = inputs && variables && turned ? TW_OK : twi_fail_memory(error, "joining gradients");
    tw_dtype type = TW_FLOAT32;
    int n = (int)count, num_decayed = 0;
    for (int i = 0; i < n && status == TW_OK; i++) {
        twi_raw_gradient g = find_gradient(r, bucket, bucket->inputs[i]);
        inputs[i] = g.value;
        turned[i] = g.turned;
        type = tw_output_dtype(g.value) != TW_FLOAT32 ? tw_output_dtype(g.value) : type;
        if (!g.decay.node)
            continue;
        variables[num_decayed] = g.variable;
        decays[num_decayed] = g.decay;
        decayed[num_decayed++] = i;
    }
    if (status == TW_OK) {
        memcpy(inputs + n, variables, (size_t)num_decayed * sizeof *inputs);
        memcpy(inputs + n + num_decayed, decays, (size_t)num_decayed * sizeof *inputs);
        tw_attr attrs[] = {tw_attr_type("T", type), tw_attr_int("D", num_decayed),
                           tw_attr_ints("decayed", decayed, num_decayed), tw_attr_ints("turned", turned, n),
                           tw_attr_bool("_reduction", true)};
        int num_attrs = twi_attr_find(&bucket->attrs, "_reduction") ? 5 : 4;
        tw_node *joint = twi_rewrite_node(r, bucket, "/joint", "_JoinGradients", inputs, n + 2 * num_decayed, attrs,
                                          num_attrs);
        if (joint) {
            twi_rewrite_replace(r, (tw_output){bucket, 0}, (tw_output){joint, 0});
            twi_rewrite_move_controls(r, bucket, joint);
        }
    }
    twi_free(inputs);
    twi_free(variables);
    twi_free(turned);
    return status;
}

tw_status twi_rewrite_buckets(twi_rewriting *r, tw_error *error)
{
    tw_status status = TW_OK;
    for (int id = 0, count = r->graph->nodes.count; id < count && status == TW_OK; id++) {
        tw_node *node = r->graph->nodes.items[id];
        if (is_bucket(node) && twi_rewrite_has_kernel(r, node, "_JoinGradients", TW_FLOAT32))
            status = join(r, node, error);
    }
    return status;
}
