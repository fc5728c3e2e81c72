/* op.h - what ops there are, and what each of them takes and gives: for programs that build graphs of ops that they do
 * not know beforehand, such as bindings of other languages, which can write their own builders of it. And ops of one's
 * own.
 *
 *     tw_op_info *op;
 *     if (tw_op_describe("MatMul", &op, &error) == TW_OK)
 *         for (int i = 0; i < op->num_inputs; i++)
 *             puts(op->inputs[i].name);
 *     tw_op_info_destroy(op); */
#ifndef TOWER_OP_H
#define TOWER_OP_H

#include <tower/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an op takes or gives under one name: a tensor, or a list of them. Of `dtype`, `type_attr` and `types_attr` one
 * says the type. */
typedef struct tw_op_argument {
    const char *name;
    tw_dtype dtype;          /* always this one; TW_INVALID_DTYPE: an attribute says it */
    const char *type_attr;   /* the attribute that is the type; NULL: none is */
    const char *number_attr; /* the attribute that is the length of the list; NULL: it is one, or `types_attr` says */
    const char *types_attr;  /* the attribute that is the types of the list, one for each; NULL: none is */
    bool is_reference;       /* the variable itself, not its value */
} tw_op_argument;

typedef struct tw_op_attr {
    const char *name;
    tw_attr_kind kind;
    bool is_optional;           /* where it is left out it is `initial` */
    tw_attr initial;
    const tw_dtype *types;      /* [num_types] those that it may be; none: any */
    int num_types;
    const char *const *strings; /* [num_strings] those that it may be; none: any */
    int num_strings;
    bool has_minimum;           /* in TensorFlow, of its value or of a list's length: */
    int minimum;
} tw_op_attr;

typedef struct tw_op_info {
    const char *name;
    tw_op_argument *inputs, *outputs; /* in order */
    tw_op_attr *attrs;
    int num_inputs, num_outputs, num_attrs;
    bool is_stateful;       /* runs as often as it is asked for, and may give something else each time */
    bool is_commutative;    /* its inputs may change places */
    bool is_differentiable; /* gradients go back through it, or are known not to */
} tw_op_info;

/* The name of op number i, from 0; NULL behind the last. Valid for ever. */
TW_API const char *tw_op_at(int i);

/* What is known of an op. Yours: tw_op_info_destroy(). TW_NOT_FOUND: there is no such op here. */
TW_API tw_status tw_op_describe(const char *name, tw_op_info **info, tw_error *error);
TW_API void tw_op_info_destroy(tw_op_info *info); /* NULL is fine */

/* ---- ops of one's own ------------------------------------------------------------------------------------------
 *
 * An op that a program registers is built, imported, planned and run as Tower's own are, on CPU devices:
 *
 *     static tw_status cube(void *kernel, tw_op_run *run, tw_error *error)
 *     {
 *         tw_op_value x = tw_op_run_input(run, 0);
 *         float *y;
 *         tw_status status = tw_op_run_output(run, 0, x.shape, (void **)&y, error);
 *         for (int64_t i = 0; i < tw_shape_elements(x.shape) && status == TW_OK; i++)
 *             y[i] = ((const float *)x.data)[i] * ((const float *)x.data)[i] * ((const float *)x.data)[i];
 *         return status;
 *     }
 *     ...
 *     tw_op_argument x = {.name = "x", .dtype = TW_FLOAT32}, y = {.name = "y", .dtype = TW_FLOAT32};
 *     tw_op_info op = {.name = "Cube", .inputs = &x, .num_inputs = 1, .outputs = &y, .num_outputs = 1};
 *     tw_op_register(&op, TW_OPTIONS(tw_op_functions, .compute = cube), &error);
 *     ...
 *     tw_node *node = tw_add_node(graph, "Cube", NULL, &input, 1, NULL, 0);
 *
 * Its functions may be called from any thread, and at the same time for different nodes; compute() for one node in
 * several lanes, too. Where shape() leaves an output's shape open the rest of a run is planned when the shape has
 * come. */

/* What shape() and create() are told of a node. Borrowed for the call. */
typedef struct tw_op_node {
    const char *op, *name;
    const char *device;          /* that it runs on; NULL for shape() */
    const tw_attr *attrs;        /* [num_attrs] those of its op, defaults filled in, then marks ("_class") */
    const tw_dtype *input_types; /* [num_inputs] */
    const tw_shape *inputs;      /* as far as they are known */
    const tw_dtype *output_types; /* [num_outputs] */
    int num_attrs, num_inputs, num_outputs;
} tw_op_node;

typedef struct tw_op_run tw_op_run; /* a call of compute() */

typedef struct tw_op_functions {
    size_t size; /* TW_SIZED(tw_op_functions) sets it: see language.h */
    void *user;  /* for shape(), create() and gradient() */
    /* The shapes of the outputs, which are unknown before; called when a node is built, and again when it is planned,
     * with the shapes that came. NULL: nothing is known. */
    tw_status (*shape)(void *user, const tw_op_node *node, tw_shape *outputs, tw_error *error);
    /* What compute() is given for this node: made once for each session that runs it. NULL: `user`. */
    tw_status (*create)(void *user, const tw_op_node *node, void **kernel, tw_error *error);
    /* Makes every output with tw_op_run_output(). NULL: such nodes can be built, and not run. */
    tw_status (*compute)(void *kernel, tw_op_run *run, tw_error *error);
    void (*destroy)(void *kernel); /* what create() has made, when its session goes; NULL: nothing is to be done */
    /* Builds the gradients dx of the node's inputs of those of its outputs; {NULL, 0} in either: there is none. NULL:
     * the op's is_differentiable says whether none go back through it, or asking for them is an error. */
    void (*gradient)(void *user, tw_graph *graph, tw_node *node, const tw_output *dy, tw_output *dx);
} tw_op_functions;

/* Adds an op, for all graphs and for ever; what is given is copied. TW_ALREADY_EXISTS: there is one of that name.
 * TW_INVALID_ARGUMENT: it contradicts itself, say by a type attribute that is not among its attributes.
 * TW_UNIMPLEMENTED: it takes or gives references, handles or variants. */
TW_API tw_status tw_op_register(const tw_op_info *op, const tw_op_functions *functions, tw_error *error);

/* An input of a run: of TW_STRING the data are tw_strings. Borrowed until compute() returns. */
typedef struct tw_op_value {
    tw_dtype dtype;
    tw_shape shape;
    const void *data;
} tw_op_value;

/* For compute(). */
TW_API const char *tw_op_run_node(const tw_op_run *run); /* the node's name */
TW_API int tw_op_run_num_inputs(const tw_op_run *run);
TW_API int tw_op_run_num_outputs(const tw_op_run *run);
TW_API tw_op_value tw_op_run_input(const tw_op_run *run, int i);      /* data NULL: there is none */
TW_API tw_dtype tw_op_run_output_dtype(const tw_op_run *run, int i); /* TW_INVALID_DTYPE: there is none */
TW_API bool tw_op_run_is_ending(const tw_op_run *run); /* who waits, or takes long, looks and returns TW_CANCELLED */
/* Where output i, which has this shape, is to be written; the same each time it is asked for. Of TW_STRING these are
 * empty tw_strings, for tw_op_run_set_string(). TW_INVALID_ARGUMENT: shape() has said another shape. */
TW_API tw_status tw_op_run_output(tw_op_run *run, int i, tw_shape shape, void **data, tw_error *error);
/* Makes an element of output i, which is of TW_STRING and has been made, a copy of these bytes. */
TW_API tw_status tw_op_run_set_string(tw_op_run *run, int i, int64_t element, const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
