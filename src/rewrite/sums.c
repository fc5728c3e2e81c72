/* sums.c - the mean of towers is one node where a device has a kernel for it and sees what is added:
 *
 *     AddV2 of neighbours, AddV2 of what that gives, and so on; Mul by a constant        _TowerMean
 *
 * Where towers have devices that look at each other's memory, sums of other devices are taken in: nothing crosses then
 * but the towers' own tensors, which lie where they are. Never here: means that an update makes as it reads (update.c),
 * which has been before. */
#include "rewrite/rewrite.h"

enum { MOST_TERMS = 8 }; /* of a launch; ORDER TERMS: launch.h */

/* What is added to the mean that is being looked at. */
typedef struct terms {
    const twi_rewriting *r;
    const twi_node *mean;
    twi_value items[MOST_TERMS];
    int count;
} terms;

/* A sum that nobody else wants, on a device whose memory the mean's sees. */
static const twi_node *sum_of(const terms *t, twi_value value, const twi_node *user)
{
    twi_device *const *devices = t->r->devices->items;
    const twi_node *sum = value.node;
    bool fits = twi_is(sum, TWI_OP_AddV2) && twi_only_user(value) == user && !sum->num_controls &&
                sum->guard == t->mean->guard && twi_dtype(value) == TW_FLOAT32 &&
                (sum->device == t->mean->device || twi_device_sees(devices[t->mean->device], devices[sum->device]));
    for (int i = 0; i < 2 && fits; i++)
        fits = tw_shape_equal(twi_shape(twi_in(sum, i)), twi_shape(value));
    return fits ? sum : NULL;
}

/* Notes what the value is the sum of, in order, and returns how many; 0: too many, or added in another order:
 * neighbours first, so the left of two sums has all the terms that a power of two can hold. */
static int gather(terms *t, twi_value value, const twi_node *user)
{
    const twi_node *sum = sum_of(t, value, user);
    if (!sum) {
        if (t->count == MOST_TERMS)
            return 0;
        t->items[t->count++] = value;
        return 1;
    }
    int left = gather(t, twi_in(sum, 0), sum), right = left ? gather(t, twi_in(sum, 1), sum) : 0, most = 1;
    while (2 * most < left + right)
        most *= 2;
    return right && left == most ? left + right : 0;
}

static bool is_scale(twi_value value)
{
    const tw_tensor *scale = twi_constant(value);
    return scale && twi_dtype(value) == TW_FLOAT32 && tw_tensor_elements(scale) == 1 && twi_shape(value).rank == 0;
}

static void join(twi_rewriting *r, twi_node *mean)
{
    terms t = {.r = r, .mean = mean};
    if (!is_scale(twi_in(mean, 1)) || gather(&t, twi_in(mean, 0), mean) < 2)
        return;
    tw_attr attrs[] = {tw_attr_int("N", t.count),
                       tw_attr_float("scale", (float)tw_tensor_value(twi_constant(twi_in(mean, 1)), 0)),
                       tw_attr_bool("_reduction", true)};
    twi_node *joint = twi_rewrite_make(r, mean, "/joint", "_TowerMean", t.items, t.count, attrs, 3);
    if (joint) {
        twi_replace(twi_out(mean, 0), twi_out(joint, 0));
        twi_move_controls(mean, joint);
    }
}

tw_status twi_rewrite_sums(twi_rewriting *r, tw_error *error)
{
    (void)error; /* what goes wrong is on the region */
    for (int id = 0, count = r->region->nodes.count; id < count; id++) {
        twi_node *node = r->region->nodes.items[id];
        if (!node->gone && twi_is(node, TWI_OP_Mul) && twi_attr_find(&node->attrs, "_reduction") &&
            twi_rewrite_has_kernel(r, node, "_TowerMean", TW_FLOAT32))
            join(r, node);
    }
    return TW_OK;
}
