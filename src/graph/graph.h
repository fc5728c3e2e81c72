/* graph.h - inside of a graph: nodes in order of creation, scopes, variables, collections.
 *
 * Inputs always exist before the node that uses them, so the order of creation is a topological order and nothing here
 * ever sorts. The way back of a loop is no input but a field of its own (`backward`). A loop's Exits come behind all of
 * its nodes but those that gradients have added to it (loop_gradients.c), and nothing that these take comes of an
 * Exit. */
#ifndef TWI_GRAPH_H
#define TWI_GRAPH_H

#include "base/arena.h"
#include "base/array.h"
#include "base/map.h"
#include "graph/op.h"

struct tw_node {
    tw_graph *graph;
    int id;                    /* place in graph->nodes */
    const char *name;
    const twi_op *op;
    const char *device;        /* requested, canonical ("/device:GPU:1"); "" if none */
    twi_attrs attrs;           /* every attribute of the signature, defaults filled in, and "_class" */
    const tw_node *beside;     /* whom its one "_class" names; NULL: it has none, or was read with it from a file */
    int num_inputs;
    tw_output *inputs;
    int num_control_inputs;
    tw_node **control_inputs;
    const tw_node *awaited_by; /* the latest node that has this one among its control inputs */
    int num_outputs;
    tw_dtype *output_types;
    tw_shape *output_shapes;   /* of a resource output: shape of the variable behind it */
    tw_dtype resource_dtype;   /* of a node that makes a resource: dtype behind the handle */
    tw_dtype kernel_type;      /* what rows of kernels are asked for: twi_kernel_type() of its attributes */
    tw_output backward;        /* of a loop's Merge: what its last input is really, which comes later than the Merge; in
                                  `inputs` the first stands there once more. Without a node: 1 + the id of the
                                  _Unknown node that it was to be, or 0 */
    struct twi_block *block;   /* that it was built in (blocks.c); NULL: none */
    int order;                 /* its rank among nodes that are ready: its id, but for reductions (reduction.c) */
    const char *file;          /* that it was built from, */
    int line;                  /* in this line; NULL: nobody said */
    tw_node **constants;       /* of a node that passes values on: [num_outputs] which constants they are, or NULL;
                                  NULL: none is one */
};

typedef struct twi_collection {
    const char *name;
    TWI_ARRAY(tw_output) members;
} twi_collection;

struct tw_graph {
    twi_arena arena;
    TWI_ARRAY(tw_node *) nodes;
    twi_map by_name;
    twi_map used_names;                     /* every name and scope ever given, lower case, to make new ones unique */
    TWI_ARRAY(tw_variable *) variables;
    twi_map variables_by_name;
    TWI_ARRAY(twi_collection *) collections;
    struct twi_scopes *scopes;              /* scopes.c */
    const char *next_name;                  /* of tw_name() */
    bool named_by_class;                    /* nodes without a name have those of TensorFlow's classes of C++ */
    bool may_misfit; /* what is added may have inputs of wrong shapes: then those of its outputs are not known, and this
                        is false again */
    bool branches, loops;                   /* some node is a Switch or a Merge; of a loop */
    struct twi_branches *conditions;        /* branches.c; NULL until somebody asks */
    struct twi_block *latest_block;         /* of those that it was built in */
    twi_map branches_by_predicate;          /* blocks.c */
    int64_t seed;
    bool has_seed;
    int uncounted;                          /* nodes that seeds of random ops pass over, so that a network draws the same
                                               numbers on copies, and whatever makes its input */
    struct twi_visited *marks;              /* gradients.c: [marks_room], all zero between two sweeps */
    int marks_room;
    twi_map files;                          /* their names as the graph keeps them */
    const char *file;                       /* what is built comes from here (tw_graph_at); NULL: nobody says */
    int line;
    tw_error error;                         /* the first one; status TW_OK while all is well */
};

/* Asks for the memory of the nodes that a sweep comes to next, from `id` on upwards or, with step -1, downwards: a
 * large graph lies in no cache, and who waits for one node after another waits most of the time. (GCC 12 drops calls of
 * a function that does nothing else, unless it must inline it.) */
__attribute__((always_inline)) static inline void twi_look_ahead(const tw_graph *graph, int id, int step)
{
    enum { FAR = 18, MIDDLE = 12, NEAR = 6 };
    int far = id + FAR * step, middle = id + MIDDLE * step, near = id + NEAR * step;
    if (far < 0 || far >= graph->nodes.count)
        return;
    const tw_node *const *nodes = (const tw_node *const *)graph->nodes.items;
    __builtin_prefetch(nodes[far]);
    __builtin_prefetch((const char *)nodes[far] + 64);
    __builtin_prefetch(nodes[middle]->inputs);
    if (nodes[middle]->attrs.count)
        __builtin_prefetch(&nodes[middle]->attrs.items[nodes[middle]->attrs.count - 1]);
    for (int i = 0; i < nodes[near]->num_inputs && i < 4; i++)
        __builtin_prefetch(nodes[near]->inputs[i].node);
}

#define twi_graph_fail tw_graph_fail /* the same; a word for those inside */
/* Latches what `error` holds. */
tw_status twi_graph_latch(tw_graph *graph, const tw_error *error);

/* Adds " (model.c:41)" to a message that names a node of the graph, as TensorFlow does, "{{node fc1}}", or as we do,
 * 'fc1'; nothing where none is named, or nobody has said where it was built. */
void twi_graph_say_where(const tw_graph *graph, tw_error *error);

/* Adds " [[{{node fc1}}]]" to a message that does not name the node yet. */
void twi_say_node(tw_error *error, const char *name);

/* Says why a node's op, or an attribute of it, was not understood when the graph was read. */
tw_status twi_fail_unknown(const tw_node *node, tw_error *error);

enum { TWI_NAME_BYTES = 4096 }; /* of a node's name, and its end: functions in functions lengthen names */

/* A name nobody has yet: `base` or base_1, base_2...; marks it used. NULL when out of memory. */
const char *twi_graph_unique_name(tw_graph *graph, const char *base);

/* The value of an output if it is known while building: a Const's tensor, through Identity and the like. Borrowed;
 * NULL if not known. */
tw_tensor *twi_constant_value(tw_output output);

/* Runs the op's shape rule on the node's inputs as they are now and writes node->output_shapes. */
tw_status twi_infer_shapes(tw_node *node, tw_error *error);

/* Whether a node of a file may be called so, in TensorFlow's words: letters, digits and _.\-/> */
bool twi_is_node_name(const char *name);

/* Builds a node under exactly this name, or fails with TW_ALREADY_EXISTS; `device` is canonical and no scope is asked:
 * for graphs that come from files. */
tw_node *twi_add_named_node(tw_graph *graph, const twi_op *op, const char *name, const char *device,
                            const tw_output *inputs, int num_inputs, const tw_attr *attrs, int num_attrs);

/* Takes back the nodes from number `count` on, with their variables and their places in collections. Asks for no
 * memory. */
void twi_graph_cut(tw_graph *graph, int count);

/* Gives a node a bool attribute that says something about it and changes nothing it does, such as "_reduction" (of
 * nodes that bring towers' gradients together). Its copies in plans have it too. */
tw_status twi_mark_node(tw_node *node, const char *mark);


/* Attributes seed and seed2 of a random op, derived as TensorFlow does from (graph seed, op seed): an op without a seed
 * of its own (0) uses the number of nodes so far; (0, 0) is drawn anew by every session. */
void twi_op_seeds(const tw_graph *graph, int64_t op_seed, int64_t seeds[2]);

/* Makes variables of the handles among the nodes from `first` on that are assigned and read: those of an imported
 * graph. */
tw_status twi_adopt_variables(tw_graph *graph, int first);

/* -- references.c -- */
bool twi_output_is_reference(tw_output output);
bool twi_input_is_reference(const tw_node *node, int i);

/* -- scopes.c -- */
typedef struct twi_scopes twi_scopes;
twi_scopes *twi_scopes_create(void);
void twi_scopes_destroy(twi_scopes *scopes);
/* All scopes must have been left by the time something happens, such as "a session is created": an error of the graph
 * that names one which was not. Returns the graph's status. */
tw_status twi_scopes_check(tw_graph *graph, const char *when);
/* The device the open scopes give a new node (its other fields are filled in already), canonical, in the graph's
 * arena; runs device functions. */
const char *twi_scope_device(tw_graph *graph, tw_node *node);
int twi_scope_controls(const tw_graph *graph, tw_node *const **controls); /* control inputs of new nodes */
tw_node *twi_scope_colocation(const tw_graph *graph);                     /* NULL if none is open */
const char *twi_scope_variables(const tw_graph *graph);                   /* "conv1/" or "" */
bool twi_scope_reuses(const tw_graph *graph);
tw_variable *twi_scope_getters(tw_graph *graph, tw_variable *variable);   /* what they make of it; NULL stays NULL */
/* A name scope that is `name` itself, whatever is open and used ("conv1/weights/"; NULL: memory ran out); leave with
 * tw_leave_name_scope(). */
void twi_enter_absolute_scope(tw_graph *graph, const char *name);
/* New nodes are where ops without kernels on GPUs can be: where `beside` is if that asks for a CPU, anywhere else. */
void twi_enter_host(tw_graph *graph, tw_output beside);
void twi_leave_host(tw_graph *graph);
/* Forgets the open control inputs until tw_leave_control(). */
void twi_enter_no_control(tw_graph *graph);

#endif
