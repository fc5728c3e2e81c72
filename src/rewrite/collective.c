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

enum { MOST_TOWERS = 1024 };

/* The only element of a constant, or `otherwise`. */
static int64_t constant_integer(twi_value value, int64_t otherwise)
{
    const tw_tensor *tensor = twi_constant(value);
    return tensor && tw_tensor_elements(tensor) == 1 ? (int64_t)tw_tensor_value(tensor, 0) : otherwise;
}

/* The towers' tensors behind a Mean, or 0 if it is not an average of towers. */
static int match_average(const twi_node *mean, twi_value *towers)
{
    if (!twi_is(mean, TWI_OP_Mean) || constant_integer(twi_in(mean, 1), -1) != 0 || mean->num_controls ||
        twi_attr_bool(&mean->attrs, "keep_dims", false))
        return 0;
    const twi_node *concat = mean->inputs[0].node;
    if (!twi_is(concat, TWI_OP_ConcatV2) || twi_only_user(twi_in(mean, 0)) != mean)
        return 0;
    int count = concat->num_inputs - 1;
    if (count < 2 || count > MOST_TOWERS || constant_integer(twi_in(concat, count), -1) != 0)
        return 0;
    for (int i = 0; i < count; i++) {
        const twi_node *expand = concat->inputs[i].node;
        /* ExpandDims of a constant size may have been folded into a Reshape with a leading 1: only the plain form */
        if (!twi_is(expand, TWI_OP_ExpandDims) || constant_integer(twi_in(expand, 1), -1) != 0)
            return 0;
        towers[i] = twi_in(expand, 0);
    }
    tw_dtype dtype = twi_dtype(towers[0]);
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 ? count : 0;
}

static twi_value make_scale(twi_rewriting *r, const twi_node *like, tw_dtype dtype, int towers)
{
    tw_tensor *scale = tw_tensor_create(dtype, TW_SCALAR);
    if (scale && dtype == TW_FLOAT32)
        *(float *)tw_tensor_data(scale) = 1.0f / (float)towers;
    else if (scale)
        *(double *)tw_tensor_data(scale) = 1.0 / towers;
    twi_value value = twi_out(twi_node_constant(r->region, like, "/scale", scale), 0);
    tw_tensor_release(scale);
    return value;
}

static twi_value make_sum(twi_rewriting *r, twi_value left, twi_value right)
{
    tw_attr mark = tw_attr_bool("_reduction", true);
    twi_node *sum = twi_rewrite_make(r, left.node, "/tower_sum", "AddV2", (twi_value[]){left, right}, 2, &mark, 1);
    if (sum && sum->rank < right.node->rank)
        sum->rank = right.node->rank;
    return twi_out(sum, 0);
}

/* The tree over the towers, which are overwritten, and the scaling of its sum; NULL: a device refuses one of them. */
static twi_node *make_average(twi_rewriting *r, const twi_node *mean, twi_value *towers, int count)
{
    tw_attr mark = tw_attr_bool("_reduction", true);
    for (int stride = 1; stride < count; stride *= 2)
        for (int i = 0; i + stride < count; i += 2 * stride) {
            towers[i] = make_sum(r, towers[i], towers[i + stride]);
            if (!towers[i].node)
                return NULL;
        }
    twi_value scaled[] = {towers[0], make_scale(r, mean, twi_dtype(towers[0]), count)};
    return scaled[1].node ? twi_rewrite_make(r, mean, "/tower_mean", "Mul", scaled, 2, &mark, 1) : NULL;
}

tw_status twi_rewrite_collective(twi_rewriting *r, tw_error *error)
{
    twi_region *region = r->region;
    twi_value *towers = twi_alloc_array(MOST_TOWERS, sizeof *towers);
    if (!towers)
        return twi_fail_memory(error, "rewriting averages");
    for (int id = 0, n = region->nodes.count; id < n; id++) {
        twi_node *mean = region->nodes.items[id];
        int count = mean->gone ? 0 : match_average(mean, towers), before = region->nodes.count;
        twi_node *average = count ? make_average(r, mean, towers, count) : NULL;
        if (average) {
            twi_replace(twi_out(mean, 0), twi_out(average, 0));
            twi_move_controls(mean, average);
        } else {
            twi_rewrite_undo(r, before);
        }
    }
    twi_free(towers);
    return TW_OK; /* an error is on the region */
}
