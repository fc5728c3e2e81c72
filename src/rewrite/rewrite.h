/* rewrite.h - improving a plan's region: one pass a file, each may be switched off by name.
 *
 * Passes see a region that holds only what this plan needs, with every shape known and every node on its device. They
 * find what they look for by the lists of users (ir/ir.h), make nodes with twi_rewrite_make(), which asks the device
 * whether it has a kernel for just this node, and lead consumers to them with twi_replace() and twi_move_controls().
 * What nobody needs any more is dropped after each pass.
 *
 * What a pass may do: it must not change results beyond the op's tolerance; nodes on different devices are never joined
 * (but see update.c); nodes are joined only where twi_may_join() allows it; a node that is made must have a kernel that
 * accepts it; a refusal leaves everything as it was. A pass costs no more than n log n. */
#ifndef TWI_REWRITE_H
#define TWI_REWRITE_H

#include "device/device.h"
#include "ir/ir.h"

typedef struct twi_rewriting {
    twi_region *region;
    tw_devices *devices;
    bool fold_everything; /* false: only integers, which shapes are made of */
} twi_rewriting;

typedef tw_status twi_rewrite_pass(twi_rewriting *r, tw_error *error);

/* The passes in the order they run, each in the file of its name. */
#define TWI_REWRITES(X)                                                                                                \
    X(merge)      /* equal nodes become one */                                                                         \
    X(einsum)     /* products of tensors become products of matrices */                                                \
    X(collective) /* the averaging of towers becomes a fixed tree */                                                   \
    X(fuse)       /* chains of layers become one kernel */                                                             \
    X(losses)     /* a network's end, and L2 losses, become few kernels */                                             \
    X(buckets)    /* gradients that travel together are laid end to end by one */                                      \
    X(update)     /* the updates of all variables become one kernel */                                                 \
    X(sums)       /* the mean of towers becomes one kernel */                                                          \
    X(scalars)    /* arithmetic on scalars becomes one kernel */                                                       \
    X(averages)   /* moving averages are part of the updates that they follow */                                       \
    X(weights)    /* casts of variables, and transposed filters, too */

#define X(name) twi_rewrite_pass twi_rewrite_##name;
TWI_REWRITES(X)
#undef X

/* Runs all passes but those named in `disable` ("fuse,merge", "all", NULL). */
tw_status twi_rewrite(twi_rewriting *r, const char *disable, tw_error *error);
/* Whether all names in `disable` are known; the message lists those that are. */
tw_status twi_rewrite_check_names(const char *disable, tw_error *error);
bool twi_rewrite_is_disabled(const char *disable, const char *name);

/* Whether the node's device has some kernel for the op and type (TW_INVALID_DTYPE: of an op without): a question to ask
 * before looking further; the answer may still be no for the node that is made then. */
bool twi_rewrite_has_kernel(const twi_rewriting *r, const twi_node *node, const char *op, tw_dtype type);

/* A new node that stands for `like`: its name is like's with `suffix` appended, its device and rank are like's. NULL:
 * the device refuses it, and nothing has changed; or the region has failed. */
twi_node *twi_rewrite_make(twi_rewriting *r, const twi_node *like, const char *suffix, const char *op,
                           const twi_value *inputs, int num_inputs, const tw_attr *attrs, int num_attrs);
/* Takes back what was made since the region had `count` nodes, and what nobody of before uses. */
void twi_rewrite_undo(twi_rewriting *r, int count);

/* fold.c, which the planner calls while it copies the graph: if the node's outputs can be known now, makes Const nodes
 * for them, writes them to outputs[] and returns TW_OK with *folded true. Shape, Size and Rank of known shapes fold,
 * and whatever has only constant inputs, no state and a small result. */
tw_status twi_fold(twi_rewriting *r, twi_node *node, twi_value *outputs, bool *folded, tw_error *error);

/* counters.c, for scalars.c: what counts steps no longer waits for the updates that it comes after, nor does what is
 * computed of the count alone. */
tw_status twi_free_counters(twi_rewriting *r, tw_error *error);
/* Of "fuse": batches that wait in variables; a failure is on the region (batches.c). */
void twi_make_batches_in_place(twi_rewriting *r);

#endif
