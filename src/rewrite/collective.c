/* collective.c - the averaging of towers becomes a reduction in a fixed order.
 *
 * Averaging is built as ordinary nodes: one ExpandDims a tower, ConcatV2, Mean over the new axis. Here each such group
 * turns into a binary tree of additions over the towers,
 *
 *     round 1:  0+1   2+3   4+5   6+7        round 2:  (0+1)+(2+3) ...        and so on, then x 1/N
 *
 * whose shape depends on the number of towers alone, never on devices, so that any number of devices gives the same
 * bits. Each addition runs on the device of its left operand; the partial sums are what crosses between devices. */
#include "rewrite/rewrite.h"

#include <string.h>

static bool is_op(const tw_node *node, const char *op)
{
    return node && strcmp(node->op->name, op) == 0;
}

/* The only element of a constant, or `otherwise`. */
static int64_t constant_integer(tw_output output, int64_t otherwise)
{
    const tw_tensor *value = twi_constant_value(output);
    return value && tw_tensor_elements(value) == 1 ? (int64_t)tw_tensor_value(value, 0) : otherwise;
}

/* The towers' tensors behind a Mean, or 0 if it is not an average of towers. */
static int match_average(const twi_rewriting *r, const tw_node *mean, tw_output *towers, int limit)
{
    if (!is_op(mean, "Mean") || constant_integer(mean->inputs[1], -1) != 0 || mean->num_control_inputs ||
        twi_attr_bool(&mean->attrs, "keep_dims", false))
        return 0;
    tw_node *concat = mean->inputs[0].node;
    if (!is_op(concat, "ConcatV2") || twi_rewrite_count_uses(r, mean->inputs[0]) != 1)
        return 0;
    int count = concat->num_inputs - 1;
    if (count < 2 || count > limit || constant_integer(concat->inputs[count], -1) != 0)
        return 0;
    for (int i = 0; i < count; i++) {
        tw_node *expand = concat->inputs[i].node;
        /* ExpandDims of a constant size may have been folded into a Reshape with a leading 1: only the plain form */
        if (!is_op(expand, "ExpandDims") || constant_integer(expand->inputs[1], -1) != 0)
            return 0;
        towers[i] = expand->inputs[0];
    }
    tw_dtype dtype = tw_output_dtype(towers[0]);
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 ? count : 0;
}

static tw_output scale_constant(twi_rewriting *r, const tw_node *like, tw_dtype dtype, int towers)
{
    tw_tensor *scale = tw_tensor_create(dtype, TW_SCALAR);
    if (!scale) {
        twi_graph_fail(r->graph, TW_RESOURCE_EXHAUSTED, "out of memory while rewriting averages");
        return (tw_output){0};
    }
    if (dtype == TW_FLOAT32)
        *(float *)tw_tensor_data(scale) = 1.0f / (float)towers;
    else
        *(double *)tw_tensor_data(scale) = 1.0 / towers;
    tw_attr attrs[] = {tw_attr_tensor("value", scale), tw_attr_type("dtype", dtype)};
    tw_output output = tw_node_output(twi_rewrite_node(r, like, "/scale", "Const", NULL, 0, attrs, 2), 0);
    tw_tensor_release(scale);
    return output;
}

tw_status twi_rewrite_collective(twi_rewriting *r, tw_error *error)
{
    enum { MOST_TOWERS = 1024 };
    tw_output *towers = twi_alloc_array(MOST_TOWERS, sizeof *towers);
    if (!towers)
        return twi_fail_memory(error, "rewriting averages");
    tw_attr mark = tw_attr_bool("_reduction", true);
    int n = r->graph->nodes.count;
    for (int id = 0; id < n; id++) {
        tw_node *mean = r->graph->nodes.items[id];
        int count = match_average(r, mean, towers, MOST_TOWERS);
        for (int stride = 1; stride < count; stride *= 2)
            for (int i = 0; i + stride < count; i += 2 * stride) {
                tw_output pair[] = {towers[i], towers[i + stride]};
                tw_node *sum = twi_rewrite_node(r, towers[i].node, "/tower_sum", "AddV2", pair, 2, &mark, 1);
                if (!sum)
                    goto done;
                if (sum->order < towers[i + stride].node->order)
                    sum->order = towers[i + stride].node->order;
                towers[i] = tw_node_output(sum, 0);
            }
        if (!count)
            continue;
        tw_output scaled[] = {towers[0], scale_constant(r, mean, tw_output_dtype(towers[0]), count)};
        tw_node *average = twi_rewrite_node(r, mean, "/tower_mean", "Mul", scaled, 2, &mark, 1);
        if (!average)
            goto done;
        twi_rewrite_replace(r, (tw_output){mean, 0}, tw_node_output(average, 0));
        twi_rewrite_move_controls(r, mean, average);
    }
done:
    twi_free(towers);
    return TW_OK; /* an error is on the graph */
}
