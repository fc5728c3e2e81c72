/* graph.h - building a dataflow graph: nodes, attributes, scopes, variables, collections, gradients.
 *
 * A tw_graph owns everything added to it. Nothing is computed here: building checks types, infers shapes and returns
 * handles. The first error latches on the graph: later calls do nothing and return dead outputs ({NULL, 0}), so a
 * model can be written without a check in between; ask tw_graph_status() once at the end.
 *
 * A graph is built by one thread at a time. Sessions keep copies of what they run, so a graph may grow between runs. */
#ifndef TOWER_GRAPH_H
#define TOWER_GRAPH_H

#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_graph tw_graph;
typedef struct tw_node tw_node;

/* The index-th output of a node. index -1 stands for the node itself, as ops without outputs return it. */
typedef struct tw_output {
    tw_node *node;
    int index;
} tw_output;

TW_API tw_graph *tw_graph_create(void);              /* yours: tw_graph_destroy(); NULL when out of memory */
TW_API void tw_graph_destroy(tw_graph *graph);       /* NULL is fine */
TW_API tw_status tw_graph_status(const tw_graph *graph);
TW_API const char *tw_graph_message(const tw_graph *graph); /* "" while all is well; names node, op and shapes */

/* For builders of your own, which are read like those of the library. tw_graph_fail() latches an error (the first wins)
 * and returns its code. tw_graph_keep() gives memory that lasts as long as the graph: a copy of `from`, or zeros if
 * that is NULL; NULL when memory ran out, which is for the caller to latch. */
TW_API tw_status tw_graph_fail(tw_graph *graph, tw_status code, const char *format, ...) TW_PRINTF(3, 4);
TW_API void *tw_graph_keep(tw_graph *graph, const void *from, size_t bytes);

/* From which line of a program's text the graph is built from here on, for messages: an error that latches and a run's
 * error about a node that was built since end with " (model.c:41)". Copies `file`; NULL forgets. Gives the graph back.
 * C and C++ need not call it: with tower.h each call that builds says where it stands (located.h). For bindings of
 * other languages. */
TW_API tw_graph *tw_graph_at(tw_graph *graph, const char *file, int line);

/* Takes back what was built since the graph had `num_nodes` nodes, and the error that has latched: nodes, variables,
 * what joined collections, names. For programs that go on after an error, such as a shell. It is for what no session
 * was asked to run or to prepare, and what no open scope was given. */
TW_API void tw_graph_take_back(tw_graph *graph, int num_nodes);

/* Random ops made after this call derive their seeds from it as tf.set_random_seed does (op seeds count the nodes). */
TW_API void tw_graph_set_seed(tw_graph *graph, int64_t seed);

/* ---- attributes -------------------------------------------------------------------------------------------- */

typedef enum tw_attr_kind {
    TW_ATTR_INT = 1,
    TW_ATTR_FLOAT,
    TW_ATTR_BOOL,
    TW_ATTR_TYPE,
    TW_ATTR_STRING,
    TW_ATTR_SHAPE,
    TW_ATTR_TENSOR,
    TW_ATTR_INTS, /* the lists */
    TW_ATTR_FLOATS,
    TW_ATTR_TYPES,
    TW_ATTR_STRINGS,
    TW_ATTR_SHAPES,
} tw_attr_kind;

/* A named attribute value. Pointers are borrowed for the call and copied into the graph (tensors are retained). */
typedef struct tw_attr {
    const char *name;
    tw_attr_kind kind;
    int count; /* of a list */
    union {
        int64_t i;
        float f;
        bool b;
        tw_dtype type;
        tw_string s;
        tw_shape shape;
        tw_tensor *tensor;
        const int64_t *ints;
        const float *floats;
        const tw_dtype *types;
        const tw_string *strings;
        const tw_shape *shapes;
    };
} tw_attr;

/* Attributes as values, to be passed to tw_add_node(); they borrow what they are given. */
TW_API tw_attr tw_attr_int(const char *name, int64_t value);
TW_API tw_attr tw_attr_float(const char *name, float value);
TW_API tw_attr tw_attr_bool(const char *name, bool value);
TW_API tw_attr tw_attr_type(const char *name, tw_dtype value);
TW_API tw_attr tw_attr_string(const char *name, const char *value);
TW_API tw_attr tw_attr_shape(const char *name, tw_shape value);
TW_API tw_attr tw_attr_tensor(const char *name, tw_tensor *value);
TW_API tw_attr tw_attr_ints(const char *name, const int64_t *values, int count);
TW_API tw_attr tw_attr_floats(const char *name, const float *values, int count);
TW_API tw_attr tw_attr_types(const char *name, const tw_dtype *values, int count);
TW_API tw_attr tw_attr_strings(const char *name, const tw_string *values, int count);
TW_API tw_attr tw_attr_shapes(const char *name, const tw_shape *values, int count);

/* ---- nodes ------------------------------------------------------------------------------------------------- */

/* Adds a node of any registered op: the door beneath all typed builders in ops.h and nn.h. Attributes that follow from
 * the inputs (T, N) and those with defaults may be left out. A list input `N*T` is given as that many consecutive
 * inputs. Name NULL: the op's name, made unique within the name scope ("MatMul", "MatMul_1", ...); a name that ends in
 * '/' (as tw_name_scope() gives it) is taken whole, whatever scope is open. A control input is written as an output
 * with index -1 among the inputs, after the data inputs. */
TW_API tw_node *tw_add_node(tw_graph *graph, const char *op, const char *name, const tw_output *inputs,
                            int num_inputs, const tw_attr *attrs, int num_attrs);

/* The next node (or variable) added gets this name; returns graph, so that it can stand in a builder's first
 * argument: tw_matmul(tw_name(g, "fc%d", 1), x, w). The other arguments must be outputs that exist already: C does not
 * say which argument is evaluated first, so a builder nested there might take the name. */
TW_API tw_graph *tw_name(tw_graph *graph, const char *format, ...) TW_PRINTF(2, 3);

TW_API tw_output tw_node_output(tw_node *node, int index); /* {node, index}; {node, -1} for a node without outputs */
TW_API const char *tw_node_name(const tw_node *node);
TW_API const char *tw_node_op(const tw_node *node);
/* As requested; "": nothing is. Canonical where a scope said it; as a file has it, which may be no device's name. */
TW_API const char *tw_node_device(const tw_node *node);
TW_API int tw_node_num_inputs(const tw_node *node);     /* data inputs */
TW_API tw_output tw_node_input(const tw_node *node, int i); /* node NULL: there is no such input */
TW_API int tw_node_num_outputs(const tw_node *node);
TW_API int tw_node_num_control_inputs(const tw_node *node);
TW_API tw_node *tw_node_control_input(const tw_node *node, int i); /* NULL: there is none */
TW_API const tw_attr *tw_node_attr(const tw_node *node, const char *name); /* borrowed; NULL if absent */
TW_API int tw_node_num_attrs(const tw_node *node); /* those of its op, defaults filled in, then marks ("_class") */
TW_API const tw_attr *tw_node_attr_at(const tw_node *node, int i); /* borrowed; NULL: there is none */
TW_API tw_dtype tw_output_dtype(tw_output output);
TW_API tw_shape tw_output_shape(tw_output output);      /* as far as it is known while building */

/* The input that an output is, whatever that is: its node does nothing but pass it on, and waits for no other. node
 * NULL: there is none. */
TW_API tw_output tw_output_passed(tw_output output);

/* What is known of an output's shape and what `shape` says are both so from here on, for what is built on it:
 * dimensions become known and are never forgotten. TW_INVALID_ARGUMENT: the two cannot both be so. */
TW_API tw_status tw_output_refine(tw_output output, tw_shape shape, tw_error *error);

/* What a node is, whatever its op is called: graphs of other times have other names for the same. */
TW_API bool tw_node_is_constant(const tw_node *node);    /* its attribute "value" is what it gives */
TW_API bool tw_node_is_placeholder(const tw_node *node); /* it must be fed */
TW_API bool tw_node_may_be_fed(const tw_node *node);     /* it is made to be fed, and has a value where it is not */
TW_API bool tw_node_is_variable(const tw_node *node);    /* it makes one: a device function may place variables alone */
TW_API bool tw_node_tells_shapes(const tw_node *node);   /* it looks at the shapes of its inputs alone */
TW_API bool tw_node_is_unknown(const tw_node *node);     /* of a file, and there is no such op here: running it fails */

TW_API tw_node *tw_graph_find(const tw_graph *graph, const char *name); /* NULL if absent */
TW_API int tw_graph_num_nodes(const tw_graph *graph);
TW_API tw_node *tw_graph_node(const tw_graph *graph, int i); /* in order of creation */
TW_API int tw_node_number(const tw_node *node); /* its place in that order: inputs have lower numbers than who uses them */

/* ---- scopes ------------------------------------------------------------------------------------------------ */

/* Scopes read as blocks and nest; the arguments are printf's. Leave a block only by its end: `break`, `return` and
 * `goto` out of it are an error of the graph that names the scope and where it was opened. What such a block contains
 * goes into a function, or behind an `if`. (Compilers other than GCC and Clang find out when a scope around it is left,
 * or when a session is created: an error while a scope is open that is not the block around it.)
 *
 *     TW_DEVICE(g, "/gpu:%d", i)
 *     TW_NAME_SCOPE(g, "tower_%d", i) {
 *         ...
 *     }
 *
 * TW_DEVICE        requests a device for new nodes; inner scopes override outer ones component by component.
 * TW_NAME_SCOPE    prefixes names; reused names become scope_1, scope_2, as in TensorFlow.
 * TW_VARIABLE_SCOPE prefixes the names of variables, and opens a name scope of that name too.
 * TW_CONTROL       new nodes run after `output`'s node.
 * TW_COLOCATE      new nodes run where `output`'s node runs; device scopes outside are ignored.
 * TW_WHEN, TW_UNLESS  new nodes run only if `predicate`, a bool, is true; if it is false. tw_cond() (ops.h) joins what
 *                  they compute. Variables that are made inside are as if they had been made outside.
 * TW_LOOP          what is built inside is a round of a loop over values: see loops in ops.h. */
typedef struct tw_scope_ { /* a block, on the caller's stack; what follows is for the macros alone */
    tw_graph *graph;
    struct tw_scope_ *outer;
    int depth;
    bool is_open, is_known;
} tw_scope_;
TW_API tw_scope_ tw_scope_begin_(tw_graph *graph, const char *file, int line); /* of the scope that was just entered */
TW_API bool tw_scope_is_open_(tw_scope_ *scope);
TW_API void tw_scope_end_(tw_scope_ *scope); /* an error if the block was left with the scope open */
#ifdef __GNUC__
#define TW_IS_OPEN_(scope) tw_scope_is_open_(&scope)
#else
#define TW_IS_OPEN_(scope) scope.is_open /* nobody tells when the block is gone, so the graph must not know it */
#endif
/* The outer loop tells compilers that the block is run once, so that what it sets is set. */
#define TW_SCOPE_BLOCK_(graph, enter, leave)                                                                           \
    for (bool tw_once_ = true; tw_once_; tw_once_ = false)                                                             \
        for (tw_scope_ tw_block_ TW_AT_END_(tw_scope_end_) = ((enter), tw_scope_begin_(graph, __FILE__, __LINE__));    \
             tw_once_ && ((void)TW_IS_OPEN_(tw_block_), true);                                                         \
             (leave), tw_block_.is_open = false, tw_once_ = false)
#define TW_DEVICE(graph, ...) TW_SCOPE_BLOCK_(graph, tw_enter_device(graph, __VA_ARGS__), tw_leave_device(graph))
#define TW_NAME_SCOPE(graph, ...)                                                                                      \
    TW_SCOPE_BLOCK_(graph, tw_enter_name_scope(graph, __VA_ARGS__), tw_leave_name_scope(graph))
#define TW_VARIABLE_SCOPE(graph, ...)                                                                                  \
    TW_SCOPE_BLOCK_(graph, tw_enter_variable_scope(graph, __VA_ARGS__), tw_leave_variable_scope(graph))
#define TW_CONTROL(graph, output)                                                                                      \
    TW_SCOPE_BLOCK_(graph, tw_enter_control(graph, output), tw_leave_control(graph))
#define TW_COLOCATE(graph, output)                                                                                     \
    TW_SCOPE_BLOCK_(graph, tw_enter_colocation(graph, output), tw_leave_colocation(graph))
#define TW_WHEN(graph, predicate)                                                                                      \
    TW_SCOPE_BLOCK_(graph, tw_enter_branch(graph, predicate, true), tw_leave_branch(graph))
#define TW_UNLESS(graph, predicate)                                                                                    \
    TW_SCOPE_BLOCK_(graph, tw_enter_branch(graph, predicate, false), tw_leave_branch(graph))
#define TW_LOOP(graph, values, count) TW_SCOPE_BLOCK_(graph, tw_enter_loop(graph, values, count), tw_leave_loop(graph))

TW_API void tw_enter_device(tw_graph *graph, const char *format, ...) TW_PRINTF(2, 3); /* "" changes nothing */
/* A device function: called for each new node, returns a device string ("" or NULL changes nothing), which merges
 * like a scope's string. The returned text must stay valid until the next call. Leave with tw_leave_device(). */
typedef const char *tw_device_function(void *user, const tw_node *node);
TW_API void tw_enter_device_function(tw_graph *graph, tw_device_function *function, void *user);
/* A device function that spreads variables: each new one goes to the device with the fewest elements (or bytes) so far,
 * the first among equals; every other node goes to `worker`. What inner scopes decided stands. Keep it where it is
 * until the scope is left; towers that share variables use one:
 *
 *     const char *gpus[] = {"/gpu:0", "/gpu:1"};
 *     int64_t loads[2] = {0};
 *     tw_least_loaded spread = {.devices = gpus, .num_devices = 2, .loads = loads, .worker = "/gpu:0"};
 *     tw_enter_device_function(g, tw_least_loaded_device, &spread); */
typedef struct tw_least_loaded {
    const char *const *devices; /* [num_devices] where variables may live; borrowed */
    int num_devices;
    int64_t *loads;             /* [num_devices] elements (or bytes) each holds, zeros at first; borrowed */
    const char *worker;         /* of everything else; NULL or "": says nothing */
    bool by_bytes;
} tw_least_loaded;
TW_API tw_device_function tw_least_loaded_device;
TW_API void tw_enter_no_device(tw_graph *graph);       /* forgets all outer device scopes, as tf.device(None) */
TW_API void tw_leave_device(tw_graph *graph);
TW_API void tw_enter_name_scope(tw_graph *graph, const char *format, ...) TW_PRINTF(2, 3);
TW_API void tw_leave_name_scope(tw_graph *graph);
TW_API const char *tw_name_scope(const tw_graph *graph); /* "tower_0/" inside TW_NAME_SCOPE(g, "tower_0"); "" outside */
TW_API void tw_enter_variable_scope(tw_graph *graph, const char *format, ...) TW_PRINTF(2, 3);
TW_API void tw_leave_variable_scope(tw_graph *graph);
TW_API void tw_enter_control(tw_graph *graph, tw_output output);
TW_API void tw_leave_control(tw_graph *graph);
TW_API void tw_enter_colocation(tw_graph *graph, tw_output output);
TW_API void tw_leave_colocation(tw_graph *graph);
TW_API void tw_enter_branch(tw_graph *graph, tw_output predicate, bool value);
TW_API void tw_leave_branch(tw_graph *graph);
TW_API void tw_enter_loop(tw_graph *graph, tw_output *values, int count);
TW_API void tw_leave_loop(tw_graph *graph);

/* Nodes made in between do not count for the seeds of random ops, which otherwise follow from how many nodes there are
 * before them: so a network begins with the same values whoever makes its input, or wherever its variables lie. */
TW_API void tw_enter_uncounted(tw_graph *graph);
TW_API void tw_leave_uncounted(tw_graph *graph);

/* Says that the nodes from number `first` on bring together what several devices have computed. Each then runs as soon
 * as it has its inputs, beside what else is computed, as if it had been made right after them; reports and traces count
 * its time as reduction, not as work of a tower. What is computed stays the same. */
TW_API void tw_mark_reduction(tw_graph *graph, int first);

/* ---- variables --------------------------------------------------------------------------------------------- */

/* How a variable starts. Zero value: zeros. */
typedef enum tw_initializer_kind {
    TW_INIT_CONSTANT,
    TW_INIT_UNIFORM,          /* a <= x < b */
    TW_INIT_NORMAL,           /* mean a, standard deviation b */
    TW_INIT_TRUNCATED_NORMAL, /* the same, redrawn beyond two standard deviations */
    TW_INIT_GLOROT_UNIFORM,   /* +-sqrt(6 / (fan_in + fan_out)); fans as TensorFlow's layers count them */
    TW_INIT_DIRAC,            /* of filters [kh,kw,C,K]: the first C pass on the channel of their number, the others are
                                 uniform in +-sqrt(1 / fan_in) */
} tw_initializer_kind;

typedef struct tw_initializer {
    tw_initializer_kind kind;
    float a, b;
    int64_t seed; /* op seed; 0: derived from the graph's */
} tw_initializer;

typedef struct tw_variable {
    const char *name;      /* "conv1/weights": scope and name; this is its name in checkpoints */
    tw_dtype dtype;
    tw_shape shape;
    bool trainable;
    const struct tw_variable *copy_of; /* NULL, or the one this is a copy of: see tw_copy_variable() */
    tw_output handle;      /* VarHandleOp */
    tw_output initializer; /* the node that gives it its first value; {NULL, 0}: the file it is from has none */
    tw_output value;       /* ReadVariableOp made with the variable; tw_variable_read makes one here and now */
    const char *whole;     /* of a part of a partitioned variable: that one's name, which checkpoints have; NULL: no part */
    const char *part;      /* which part: "1000 64 0,500:-" (tw_named_tensor) */
} tw_variable;

/* The variable `name` within the current variable scopes: made, or found again after tw_reuse_variables() (then
 * dtype and shape must agree). Making one that exists, or reusing one that does not, is an error that says so. New
 * variables join the collections "variables" and, if trainable, "trainable_variables". NULL on a failed graph. */
TW_API tw_variable *tw_get_variable(tw_graph *graph, const char *name, tw_dtype dtype, tw_shape shape,
                                    tw_initializer initializer);
/* The same, not trainable and with any name below the scope: counters, averages, slots. */
TW_API tw_variable *tw_get_state_variable(tw_graph *graph, const char *name, tw_dtype dtype, tw_shape shape,
                                          tw_initializer initializer);
/* A variable of exactly this name, whatever variable scopes are open and whether they reuse: slots, averages, counters
 * beside other variables. It is an error if the name is taken. NULL on a failed graph. */
typedef struct tw_new_variable {
    tw_dtype dtype;
    tw_shape shape;
    tw_initializer initializer;
    tw_output initial_value;     /* what it begins with instead, for example tw_variable_initial_value(); may be {NULL, 0} */
    bool trainable;
    const tw_variable *copy_of;  /* NULL, or the one this is a copy of: checkpoints leave it out, see tw_copy_variable() */
} tw_new_variable;
TW_API tw_variable *tw_make_variable(tw_graph *graph, const char *name, const tw_new_variable *variable);
TW_API tw_output tw_variable_initial_value(const tw_variable *variable); /* what its initializer assigns; {NULL, 0}:
                                                                            nothing that is known */
TW_API tw_output tw_variable_read(tw_graph *graph, const tw_variable *variable);
/* From here to the end of the enclosing variable scope (or for good, outside of one) variables are found, not made. */
TW_API void tw_reuse_variables(tw_graph *graph);
TW_API int tw_graph_num_variables(const tw_graph *graph);
TW_API tw_variable *tw_graph_variable(const tw_graph *graph, int i); /* in order of creation */
TW_API tw_variable *tw_graph_find_variable(const tw_graph *graph, const char *name);
/* One node that runs every variable's initializer. */
TW_API tw_output tw_initialize_variables(tw_graph *graph);

/* A variable of exactly this name that begins as `variable` does: what another tower works with. It is not trainable.
 * It goes where the open device scopes say. Checkpoints leave it out, and when they are restored it gets the value of
 * `variable`. It is an error if the name is taken. */
TW_API tw_variable *tw_copy_variable(tw_graph *graph, const tw_variable *variable, const char *name);

/* A variable getter has the last word in tw_get_variable() and tw_get_state_variable(): it is handed the variable they
 * found or made and returns what the caller gets, that one or another of its type and shape. So a network that knows
 * nothing of it can be built on copies. Getters nest, the innermost is asked first. */
typedef tw_variable *tw_variable_getter(void *user, tw_graph *graph, tw_variable *variable);
TW_API void tw_enter_variable_getter(tw_graph *graph, tw_variable_getter *getter, void *user);
TW_API void tw_leave_variable_getter(tw_graph *graph);
/* What the open getters make of a variable; itself where none is open. */
TW_API tw_variable *tw_variable_here(tw_graph *graph, tw_variable *variable);

/* The step counter, an int64 state variable "global_step"; made at the first call. */
TW_API tw_variable *tw_global_step(tw_graph *graph);

/* ---- collections ------------------------------------------------------------------------------------------- */

/* Named lists of outputs, such as "losses". */
TW_API void tw_add_to_collection(tw_graph *graph, const char *collection, tw_output output);
/* Writes up to `limit` members whose names lie inside `scope` (whole components: "tower_1" does not match
 * "tower_10/x"; NULL or "" matches all) and returns how many there are. */
TW_API int tw_get_collection(const tw_graph *graph, const char *collection, const char *scope, tw_output *outputs,
                             int limit);
TW_API int tw_graph_num_collections(const tw_graph *graph);
TW_API const char *tw_graph_collection(const tw_graph *graph, int i); /* its name; in order of creation */

/* ---- gradients --------------------------------------------------------------------------------------------- */

/* Adds the nodes that compute d(sum of ys)/d(xs[i]) into grads[i], under the name scope "gradients". Each node is
 * colocated with the op it differentiates. Where no path leads from xs[i] to a y, grads[i] is {NULL, 0}: "none".
 * grad_ys (may be NULL) are the gradients flowing into ys; ones otherwise, but complex ys must have theirs. By a
 * complex x = a + ib the gradient is the complex number dy/da + i dy/db, as in TensorFlow. An op without a gradient on
 * a path that needs one latches an error that names the op and the node. */
TW_API void tw_gradients(tw_graph *graph, const tw_output *ys, int num_ys, const tw_output *grad_ys,
                         const tw_output *xs, int num_xs, tw_output *grads);
/* The same with the names that TensorFlow's C API gives: under the name scope `prefix`, by ops alone, PREFIX/OnesLike,
 * PREFIX/MatMul, PREFIX/MatMul_1, PREFIX/Multiply (Mul is so called in TensorFlow's C++); ys may be whole numbers. */
TW_API void tw_gradients_under(tw_graph *graph, const char *prefix, const tw_output *ys, int num_ys,
                               const tw_output *grad_ys, const tw_output *xs, int num_xs, tw_output *grads);

#ifdef __cplusplus
}
#endif
#endif
