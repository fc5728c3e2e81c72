/* batches.c - a batch that is made only to wait in variables for its step (train/trainer_data.c) is made where it
 * waits: without a copy, and without other memory for it.
 * Never here: when that is: behind whoever looks at the batch before it (plan/order.c). */
#include "rewrite/rewrite.h"

/* The assignment that alone wants the value; NULL: there is none. */
static twi_node *assignment_of(twi_value value)
{
    twi_node *user = twi_only_user(value);
    return user && twi_is(user, TWI_OP_AssignVariableOp) && user->device == value.node->device ? user : NULL;
}

static void make_in_place(twi_rewriting *r, twi_node *batch)
{
    twi_node *images = assignment_of(twi_out(batch, 0)), *labels = assignment_of(twi_out(batch, 1));
    twi_node *const nodes[] = {batch, images, labels};
    if (!images || !labels || !twi_may_join(nodes, 3))
        return;
    const twi_value inputs[] = {twi_in(batch, 0), twi_in(batch, 1), twi_in(batch, 2), twi_in(images, 0),
                                twi_in(labels, 0)};
    /* like the last of them: reads of what waits come before it (weights.c) */
    twi_node *joint = twi_rewrite_make(r, labels, "/in_place", "_TowerBatchInto", inputs, 5, batch->attrs.items,
                                       batch->attrs.count);
    for (int i = 0; joint && i < 3; i++)
        twi_move_controls(nodes[i], joint);
}

void twi_make_batches_in_place(twi_rewriting *r)
{
    for (int id = 0, count = r->region->nodes.count; id < count; id++) {
        twi_node *node = r->region->nodes.items[id];
        if (!node->gone && twi_is(node, TWI_OP_TowerBatch))
            make_in_place(r, node);
    }
}
