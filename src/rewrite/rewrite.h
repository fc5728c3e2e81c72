/* rewrite.h - improving a plan's own copy of a graph: one pass a file, each may be switched off by name.
 *
 * Passes see a graph that holds only what this plan needs, with every shape known and every node assigned to a device
 * (node->assigned). They add nodes with twi_rewrite_node() and lead consumers to them with twi_rewrite_replace(); what
 * nobody needs any more is dropped afterwards, and the graph is put in topological order again. New nodes may be made
 * in any order, so within a pass creation order is not topological any more.
 *
 * A pass must not change results beyond the op's tolerance; nodes on different devices are never joined (but see
 * update.c). */
#ifndef TWI_REWRITE_H
#define TWI_REWRITE_H

#include "base/array.h"
#include "device/device.h"
#include "graph/graph.h"

/* An op of ours that a device's kernel refused when the plan was made before: it is not made there again. */
typedef struct twi_refused_op {
    const char *op; /* the row's */
    int device;
} twi_refused_op;

typedef TWI_ARRAY(twi_refused_op) twi_refused_ops;

typedef struct twi_rewriting {
    tw_graph *graph;       /* the plan's copy: passes may change it freely */
    tw_output *fetches;    /* [num_fetches] what must be kept; replacements are followed here too */
    int num_fetches;
    tw_devices *devices;
    const twi_refused_ops *refused; /* NULL: none */
    bool fold_everything;  /* false: only integers, which shapes are made of */
} twi_rewriting;

typedef tw_status twi_rewrite_pass(twi_rewriting *r, tw_error *error);

/* The passes in the order they run. ORDER REWRITES: rewrite.c has the table. */
twi_rewrite_pass twi_rewrite_merge;      /* merge.c: equal nodes become one */
twi_rewrite_pass twi_rewrite_collective; /* collective.c: the averaging of towers becomes a fixed tree */
twi_rewrite_pass twi_rewrite_fuse;       /* fuse.c: chains of layers become one kernel */
twi_rewrite_pass twi_rewrite_losses;     /* losses.c: a softmax's loss and its gradient, or all L2 losses, become one kernel */
twi_rewrite_pass twi_rewrite_buckets;    /* buckets.c: gradients that travel together are laid end to end by one */
twi_rewrite_pass twi_rewrite_update;     /* update.c: the updates of all variables become one kernel */
twi_rewrite_pass twi_rewrite_scalars;    /* scalars.c: arithmetic on scalars becomes one kernel */
twi_rewrite_pass twi_rewrite_weights;    /* weights.c: casts of variables, and turns of filters, too */

/* Runs all passes but those named in `disable` ("fuse,merge", "all", NULL). */
tw_status twi_rewrite(twi_rewriting *r, const char *disable, tw_error *error);
/* Whether all names in `disable` are known; the message lists those that are. */
tw_status twi_rewrite_check_names(const char *disable, tw_error *error);
bool twi_rewrite_is_disabled(const char *disable, const char *name);

/* True where such an op may be made in the node's place: its device has a kernel for the type (TW_INVALID_DTYPE: of an op
 * without), which has not refused it. */
bool twi_rewrite_has_kernel(const twi_rewriting *r, const tw_node *node, const char *op, tw_dtype type);

/* A new node that stands for `like`: its name is like's with `suffix` appended, its device and order are like's. */
tw_node *twi_rewrite_node(twi_rewriting *r, const tw_node *like, const char *suffix, const char *op,
                          const tw_output *inputs, int num_inputs, const tw_attr *attrs, int num_attrs);
/* Every use of `from` (data inputs and fetches) becomes a use of `to`, which is noted to do its work. */
void twi_rewrite_replace(twi_rewriting *r, tw_output from, tw_output to);
/* The order `from` gave through control edges (in both directions) is now given by `to`. */
void twi_rewrite_move_controls(twi_rewriting *r, tw_node *from, tw_node *to);

/* `node` runs after `before`. */
void twi_rewrite_add_control(twi_rewriting *r, tw_node *node, tw_node *before);

/* Data uses of an output, fetches included. */
int twi_rewrite_count_uses(const twi_rewriting *r, tw_output output);
/* The node that alone uses this output, and the output is not fetched; else NULL. */
tw_node *twi_rewrite_only_user(const twi_rewriting *r, tw_output output);
/* The i-th user of an output in order of id (0 <= i); NULL when there are no more. */
tw_node *twi_rewrite_user(const twi_rewriting *r, tw_output output, int i);

/* True if one node may stand in the place of these: no path leads from one of them through others back to one. */
bool twi_rewrite_may_join(const twi_rewriting *r, tw_node *const *nodes, int count);

/* Drops nodes that no fetch needs and sorts the rest: dependencies first, else by order. Renumbers ids. */
tw_status twi_rewrite_clean(twi_rewriting *r, tw_error *error);

/* fold.c, which the planner calls while it copies the graph: if the node's outputs can be known now, makes Const nodes
 * for them, writes them to outputs[] and returns TW_OK with *folded true. Shape, Size and Rank of known shapes fold, and
 * whatever has only constant inputs, no state and a small result. */
tw_status twi_fold(twi_rewriting *r, tw_node *node, tw_output *outputs, bool *folded, tw_error *error);

#endif
