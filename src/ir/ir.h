/* ir.h - the graph that a plan is made of: small nodes that know who uses them, in regions.
 *
 * A user's graph says what is wanted; a region says what will be done about it, for one set of feeds, fetches and
 * shapes. It is made from the user's graph (plan/specialize.c), improved (src/rewrite), divided among devices and given
 * an order (src/plan), and thrown away in one go. A user's graph is never written to.
 *
 * Edges are lists in both directions, kept up to date: who uses this is a walk and never a search. A region's nodes
 * stand in a topological order at all times: a new edge that disagrees with it moves what must be moved, and one that
 * would close a circle is refused.
 *
 * What a region gives (fetches, or what a body returns) are the inputs of its node `end`, so that they are uses like
 * all others. Branches and loops are no regions of their own: a node may have a guard, and a loop is a node with a
 * plan.
 *
 * Never here: memory of devices, schedules, what a run measures. Those are tables beside it, by a node's id. */
#ifndef TWI_IR_H
#define TWI_IR_H

#include "base/arena.h"
#include "base/array.h"
#include "device/device.h"
#include "graph/graph.h"

typedef struct twi_node twi_node;
typedef struct twi_region twi_region;

/* Output `index` of a node; index -1: the node itself, having run. {NULL, 0}: none. */
typedef struct twi_value {
    twi_node *node;
    int index;
} twi_value;

/* An input of a node, and at the same time its place in the list of those that use the value. */
typedef struct twi_edge {
    twi_node *node;                  /* the value that is used; */
    int index;                       /* -1: the user only comes after the node */
    twi_node *user;
    struct twi_edge *next, *previous; /* of those who use the same, oldest first */
} twi_edge;

typedef struct twi_uses {
    twi_edge *first, *last;
    int count;
} twi_uses;

typedef struct twi_result {
    tw_dtype dtype;
    int rank;       /* and dims: the shape, in as many numbers as it has axes; see twi_shape() */
    int64_t *dims;
    twi_uses uses;
} twi_result;

struct twi_node {
    int id;                          /* place in region->nodes */
    int rank;                        /* among nodes that could come next the lowest does; of a copy its origin's order */
    int device;                      /* index in the set of devices; -1 before placement */
    tw_dtype kernel_type;            /* what rows of kernels are asked for: twi_kernel_type() of its attributes */
    twi_region *region;
    const twi_op *op;
    const char *name;
    const tw_node *origin;           /* the user's node whose work this is (part of); NULL: nobody's */
    twi_attrs attrs;                 /* every attribute of the signature, defaults filled in, and marks */
    tw_dtype resource_dtype;         /* of a node that makes a resource: dtype behind the handle */
    int num_inputs, num_controls, num_results;
    twi_edge *inputs;
    twi_edge **controls;             /* what it comes after besides */
    twi_result *results;
    twi_uses followers;              /* who comes after it, control edges */
    twi_node *guard;                 /* runs only where this one, which it comes after, gave true; NULL: always */
    twi_node *became;                /* once it is gone: the node that does its work; NULL: nobody does */
    struct twi_task *task;           /* prepared for its device (plan/stages.h) */
    struct twi_loop *loop;           /* of a loop, its plan (plan/plan.h) */
    struct twi_series_facts *series; /* of what makes a stack or an array (plan/plan.h) */
    /* of region.c and order.c */
    twi_node *next, *previous;
    int64_t place;
    unsigned seen, goal;
    int room;                        /* for controls */
    bool owns_attrs, gone;
    bool is_users;                   /* what its origin became, not something made beside it */
    bool opaque;                     /* passes values on of which none was known to be constant: no need to look behind it */
};

/* Ops that passes ask for by identity, where an op's traits (graph/op.h) do not say what they want to know. */
#define TWI_KNOWN_OPS(X)                                                                                               \
    X(Add) X(AddN) X(AddV2) X(AssignAddVariableOp) X(AssignSubVariableOp) X(AssignVariableOp) X(BiasAddGrad) X(Cast)   \
    X(ConcatV2) X(Const) X(Conv2D) X(Conv2DBackpropFilter) X(Conv2DBackpropInput) X(Einsum) X(ExpandDims) X(Identity)  \
    X(L2Loss) X(Mean) X(Mul) X(NoOp) X(PreventGradient) X(Rank) X(ReadVariableOp) X(RealDiv) X(Reshape)                \
    X(ResourceApplyGradientDescent) X(Size) X(SparseSoftmaxCrossEntropyWithLogits) X(SplitV) X(Sub) X(Tile)            \
    X(TowerBatch) X(Transpose) X(_AllFiniteMany) X(_ApplyGradientDescentMany) X(_ApplyMany) X(_Choose) X(_Copy)        \
    X(_Feed) X(_Conv2DBatchNormRelu) X(_Conv2DMaxPoolLRN) X(_FusedConv2D) X(_Guard) X(_MovingAverageMany) X(_Which)

typedef enum twi_known {
#define X(name) TWI_OP_##name,
    TWI_KNOWN_OPS(X)
#undef X
    TWI_NUM_KNOWN,
} twi_known;

struct twi_region {
    twi_arena arena;
    TWI_ARRAY(twi_node *) nodes;     /* by id; in topological order after twi_region_sort() and twi_region_sweep() */
    twi_node *first, *last;          /* in topological order, always */
    twi_node *end;                   /* has what is wanted as its inputs; not one of `nodes` */
    const twi_op *known[TWI_NUM_KNOWN];
    tw_error error;                  /* the first one; status TW_OK while all is well */
    bool touched;                    /* since the last sweep */
    bool has_images;                 /* nodes whose op has a layout */
    uint64_t asked;                  /* of the node made last: inputs whose value its shape rule would know (op.h) */
    bool may_misfit;                 /* what is made may have inputs of wrong shapes, for it may never run; */
    bool misfits;                    /* so does the node made last, whose outputs have unknown shapes */
    /* of order.c */
    unsigned epoch;
    TWI_ARRAY(twi_node *) stack, found;
};

/* ---- region.c: making and changing ----------------------------------------------------------------------------- */

twi_region *twi_region_create(void); /* NULL when out of memory */
void twi_region_destroy(twi_region *region); /* NULL is fine */

/* Latches an error; the first wins. Functions that return a node return NULL once there is one. */
void twi_region_fail(twi_region *region, tw_status code, const char *format, ...) TW_PRINTF(3, 4);
void twi_region_fail_memory(twi_region *region);
/* What is latched, also written to *error; TW_OK if nothing is. */
tw_status twi_region_check(const twi_region *region, tw_error *error);

/* What a node shall be. Inputs with index -1 come last: they are what it comes after. */
typedef struct twi_wish {
    const twi_op *op;
    const char *name;                /* borrowed */
    const tw_node *origin;
    int rank, device;
    twi_node *behind;                /* its place is behind this, too; NULL: no matter */
    const twi_value *inputs;
    int num_inputs;
    const twi_attr *attrs;
    int num_attrs;
} twi_wish;

/* Matches types and attributes with the op's signature, infers shapes, and puts the node behind the last of its inputs.
 * A place that agrees with its rank saves sorting. */
twi_node *twi_node_make(twi_region *region, const twi_wish *wish);
/* The same for a node that is as its origin is, under the same op: attributes are the origin's own, and the node comes
 * last. */
twi_node *twi_node_copy(twi_region *region, const tw_node *origin, const twi_value *inputs, int num_inputs);
/* A node that stands for `like`: its name is like's with `suffix` appended; device, rank, origin and guard are like's.
 * Its place is before like's where its inputs allow that. */
twi_node *twi_node_like(twi_region *region, const twi_node *like, const char *suffix, const twi_op *op,
                        const twi_value *inputs, int num_inputs, const twi_attr *attrs, int num_attrs);
/* A Const of that tensor, which is retained. */
twi_node *twi_node_constant(twi_region *region, const twi_node *like, const char *suffix, tw_tensor *value);

/* Takes a node away that nobody uses. */
void twi_node_drop(twi_node *node);

/* Leads input i of a node elsewhere. */
void twi_set_input(twi_node *node, int i, twi_value value);
/* Every use of `from` becomes one of `to`, but to.node's own; to.node is noted to do its work. */
void twi_replace(twi_value from, twi_value to);
/* The order that `from` gave through control edges, in both directions, is now given by `to`. */
void twi_move_controls(twi_node *from, twi_node *to);
/* `node` comes after `before`. False: it cannot, for `before` needs it, or memory has run out. */
bool twi_add_control(twi_node *node, twi_node *before);
/* It need not any more, if it had to. */
void twi_drop_control(twi_node *node, const twi_node *before);

/* The node runs only where the guard gives true; NULL: always. */
void twi_set_guard(twi_node *node, twi_node *guard);

/* What is known of an output's shape. Latches an error when out of memory. */
void twi_node_set_shape(twi_node *node, int output, tw_shape shape);

/* Sets what the region gives. */
bool twi_region_set_end(twi_region *region, const twi_value *values, int count);

/* ---- looking ---------------------------------------------------------------------------------------------------- */

static inline bool twi_is(const twi_node *node, twi_known op)
{
    return node && node->op == node->region->known[op];
}

static inline bool twi_has_trait(const twi_node *node, unsigned trait)
{
    return node && (node->op->flags & trait);
}

static inline twi_value twi_out(const twi_node *node, int index)
{
    return (twi_value){(twi_node *)node, index};
}

static inline twi_value twi_in(const twi_node *node, int i)
{
    return (twi_value){node->inputs[i].node, node->inputs[i].index};
}

static inline bool twi_same(twi_value a, twi_value b)
{
    return a.node == b.node && a.index == b.index;
}

static inline twi_uses *twi_uses_of(twi_value value)
{
    return value.index < 0 ? &value.node->followers : &value.node->results[value.index].uses;
}

static inline tw_dtype twi_dtype(twi_value value)
{
    return value.node->results[value.index].dtype;
}

/* Of a resource that of the variable behind the handle, of a variant that of the list's elements. */
static inline tw_shape twi_shape(twi_value value)
{
    const twi_result *result = &value.node->results[value.index];
    tw_shape shape = {.rank = result->rank};
    for (int i = 0; i < result->rank; i++)
        shape.dims[i] = result->dims[i];
    return shape;
}

/* What takes up room of a known size: a handle always does, and so does a list, whatever is in it. */
static inline bool twi_shape_is_settled(twi_value value)
{
    tw_dtype dtype = twi_dtype(value);
    return dtype == TW_RESOURCE || dtype == TW_VARIANT || tw_shape_is_known(twi_shape(value));
}

/* Data inputs first, then what it comes after. */
static inline const twi_edge *twi_dependency(const twi_node *node, int i)
{
    return i < node->num_inputs ? &node->inputs[i] : node->controls[i - node->num_inputs];
}

static inline int twi_num_dependencies(const twi_node *node)
{
    return node->num_inputs + node->num_controls;
}

/* Asks for the memory of the nodes that a sweep by id comes to next, as twi_look_ahead() does for a user's graph. */
__attribute__((always_inline)) static inline void twi_region_look_ahead(const twi_region *region, int id, int step)
{
    enum { FAR = 18, MIDDLE = 12, NEAR = 6 };
    int far = id + FAR * step, middle = id + MIDDLE * step, near = id + NEAR * step;
    if (far < 0 || far >= region->nodes.count)
        return;
    const twi_node *const *nodes = (const twi_node *const *)region->nodes.items;
    for (size_t at = 0; at < sizeof **nodes; at += 64)
        __builtin_prefetch((const char *)nodes[far] + at);
    __builtin_prefetch(nodes[middle]->inputs);
    __builtin_prefetch(nodes[middle]->results);
    __builtin_prefetch(nodes[middle]->task);
    for (int i = 0; i < nodes[near]->num_inputs && i < 4; i++)
        __builtin_prefetch(nodes[near]->inputs[i].node);
}

/* The node that alone uses the value; NULL: there are none or several, or the region gives it. */
twi_node *twi_only_user(twi_value value);
/* The tensor that the value is known to be: a Const's, through nodes that pass it on. Borrowed; NULL if not known. */
tw_tensor *twi_constant(twi_value value);

/* ---- operands.c -------------------------------------------------------------------------------------------------- */

/* As kernels see it; without the resource behind a handle. */
twi_operand twi_operand_of(twi_value value);
/* Whether the device has a kernel that takes the node with its attributes, types and shapes: TW_OK, or TW_UNIMPLEMENTED
 * and why, in *error as a sentence and in *refusal in the kernel's own words; both may be NULL. Other errors: it could
 * not be asked. */
tw_status twi_node_accepted(const twi_node *node, twi_device *device, bool plain_only, tw_error *refusal, tw_error *error);

/* ---- order.c ----------------------------------------------------------------------------------------------------- */

/* True if one node may stand in the place of these: they run under the same guard, and no path leads from one of them
 * through others back to one. */
bool twi_may_join(twi_node *const *nodes, int count);
/* Whether a path leads from one node to the other; a node leads to itself. */
bool twi_leads_to(const twi_node *from, const twi_node *to);
/* Drops nodes that the end does not need. */
void twi_region_sweep(twi_region *region);
/* The same, then puts dependencies first, and else the lowest rank. TW_INTERNAL: a circle. */
tw_status twi_region_sort(twi_region *region, tw_error *error);
/* Sorts by keys[id], those that are equal by ties[id] (NULL: none), and what is equal then keeps its order. That must
 * be a topological order. */
tw_status twi_region_sort_by(twi_region *region, const int64_t *keys, const int64_t *ties, tw_error *error);

/* For region.c: a place behind `before` (NULL: the first), and the move of what must come behind a node. */
void twi_order_insert(twi_region *region, twi_node *node, twi_node *before);
void twi_order_remove(twi_region *region, twi_node *node);
bool twi_order_edge(twi_region *region, twi_node *before, twi_node *after);

#endif
