/* op.h - what an op is: one row of a table. Rows live in src/ops, one file a family.
 *
 *     { "MatMul", "a:T, b:T", "product:T",
 *       "transpose_a:bool=false; transpose_b:bool=false; T:{bfloat16,half,float,double,int32}",
 *       matmul_shape, matmul_gradient },
 *
 * Signatures, in TensorFlow's names and order:
 *   inputs, outputs  "name:TYPE, name:TYPE"   TYPE is a dtype name ("int32", "resource"), the name of a type attribute
 *                    ("T"), "N*TYPE" for a list as long as the int attribute N, the name of a list(type) attribute
 *                    ("Tcomponents") for a list of mixed types, or Ref(TYPE)
 *   attributes       "name:KIND=default; name:KIND"   KIND is int, float, bool, type, string, shape, tensor, ints,
 *                    floats, types, strings, shapes, or a set: {float,half} a type among these, {SAME,VALID} a string
 *                    among these. Without "=default" the attribute is required (or follows from the inputs).
 *                    A list of inputs has one tensor or more, but with a number that is int>=0 may have none. Other
 *                    minima, int>=2 or of a list's length ints>=4, are for those who build by TensorFlow's rules.
 *                    Defaults: 3, 0.5, true, NHWC, [], [1,1,1,1], float, unknown (a shape)
 *                    One whose name begins with "Tower" is not TensorFlow's, and is in no file.
 *
 * What an op is to the rest of the engine stands in its row, too: its flags, the roles of its inputs, what it makes.
 * Nobody asks for an op by its name.
 *
 * An empty cell is an honest error, not a crash: no gradient rule means that the op cannot be differentiated. */
#ifndef TWI_OP_H
#define TWI_OP_H

#include "base/status.h"
#include "tensor/attr.h"

#include <limits.h>

#include <tower/graph.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* What a shape rule sees and fills in. Shapes may be unknown in part; outputs start as TW_UNKNOWN_SHAPE. The rule runs
 * when the node is built and again when a plan is made, then with every fed shape known. */
typedef struct twi_inference {
    const struct twi_op *op;
    const char *node; /* for messages; twi_fail's callers need not repeat it */
    const twi_attrs *attrs;
    int num_inputs;
    const tw_dtype *input_types;
    const tw_shape *inputs; /* of a resource: the shape of the variable behind it; of a list: of its elements */
    tw_tensor *const *input_values;   /* value of input i if it is a known constant, else NULL; see twi_ask_value() */
    uint64_t asked;                   /* inputs whose value is not known and would tell more; the last bit: any of the rest */
    const tw_output *sources;         /* whose outputs the inputs are: of a handle, the node that made the resource */
    bool is_building;                 /* and none of them is fed: no plan is made yet */
    int num_outputs;
    const tw_dtype *output_types;
    tw_shape *outputs;
    tw_error *error;
} twi_inference;

/* The value of input i; NULL: it is not known. Where the output's shape depends on it a plan is then made for the value
 * that comes (plan/border.c), so a rule asks for what it cannot do without, and looks at input_values where a value is
 * welcome but need not be there. */
static inline const tw_tensor *twi_ask_value(twi_inference *c, int i)
{
    if (!c->input_values[i])
        c->asked |= UINT64_C(1) << (i < 63 ? i : 63);
    return c->input_values[i];
}

/* Returns TW_OK, or fails with twi_fail(c->error, TW_INVALID_ARGUMENT, "...") naming the shapes; the caller puts
 * "OP 'node': " in front. */
typedef tw_status twi_shape_rule(twi_inference *c);

/* Rules that many ops share (graph/shape_rules.c). */
twi_shape_rule twi_shape_scalar;       /* every output is a scalar */
twi_shape_rule twi_shape_scalars;      /* every input is one, too */
twi_shape_rule twi_shape_same;         /* every output has input 0's shape */
twi_shape_rule twi_shape_broadcast;    /* output 0 = inputs 0 and 1 broadcast as NumPy does */
twi_shape_rule twi_shape_merged;       /* all inputs and outputs have one shape (AddN) */
twi_shape_rule twi_shape_unknown;      /* nothing can be said */
twi_shape_rule twi_shape_batch;        /* TowerBatch's (ops/input.c) */
twi_shape_rule twi_shape_from_attr;    /* output 0 = attribute "shape" */

/* Helpers for rules. */
tw_status twi_broadcast_shapes(tw_shape a, tw_shape b, tw_shape *out, tw_error *error);
/* The most specific shape compatible with both; fails if there is none. */
tw_status twi_merge_shapes(tw_shape a, tw_shape b, tw_shape *out, tw_error *error);
/* The shape that a 1-D int32/int64 tensor spells (-1: unknown dimension); value NULL gives TW_UNKNOWN_SHAPE. */
tw_shape twi_shape_of_value(const tw_tensor *value);
/* The shape that input i spells, as far as it is known: its value, or the shape that a node tells (Shape). */
tw_shape twi_ask_shape(twi_inference *c, int i);
tw_status twi_expect_rank(twi_inference *c, int input, int rank); /* unknown rank passes */

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

/* What a gradient rule sees and fills in, using the public builders (tower/ops.h, tower/nn.h). */
typedef struct twi_gradient {
    tw_graph *graph;
    tw_node *node;        /* the forward node */
    const tw_output *dy;  /* [num_outputs]: gradients flowing in; {NULL, 0} where none does */
    tw_output *dx;        /* [num_inputs]: the rule fills these; left {NULL, 0} means none */
    int first;            /* the first node that this call of tw_gradients() has added */
} twi_gradient;

typedef void twi_gradient_rule(twi_gradient *g);

twi_gradient_rule twi_not_differentiable; /* known to have no gradient: passes none on, silently */
twi_gradient_rule twi_stops_gradient;     /* the same of whole numbers, where these have gradients (gradients.c) */

/* ---- rows -------------------------------------------------------------------------------------------------- */

/* What an op is. */
enum {
    TWI_STATEFUL = 1 << 0,    /* may not be folded, merged or dropped when it is asked for; every other op may */
    TWI_COMMUTATIVE = 1 << 1, /* inputs may change places (merging common nodes) */
    TWI_HOST_ONLY = 1 << 2,   /* has no kernel on GPUs, as in TensorFlow */
    TWI_REWRITTEN = 1 << 3,   /* made by rewrites and the planner only: names start with '_', never in files */

    TWI_ELEMENTWISE = 1 << 4, /* an element of the output depends on the same element of each input, broadcast as NumPy
                                 does: so among inputs of one rank the order of dimensions does not matter */
    TWI_REDUCES = 1 << 5,     /* combines the elements of input 0 along the dimensions that input 1 names */
    TWI_PASSES = 1 << 6,      /* does nothing but give input i as output i, on the same device */
    TWI_METADATA = 1 << 7,    /* looks at the shapes of its inputs only: output i tells of input i */
    TWI_SPARSE = 1 << 8,      /* sums rows (input 0) into places (input 1): a gradient that is mostly zeros */

    TWI_CONSTANT = 1 << 9,     /* gives its attribute "value" */
    TWI_PLACEHOLDER = 1 << 10, /* must be fed */
    TWI_FEED = 1 << 11,        /* in a plan: gives what the run is fed */
    TWI_INPUT = 1 << 12,       /* brings a step's examples */
    TWI_READ = 1 << 13,        /* gives the whole value of a variable */
    TWI_RESTORE = 1 << 14,     /* gives what files hold, in the shapes of the variables it is assigned to */

    TWI_COPY = 1 << 15,       /* in a plan: output 0 is input 0, on another device */
    TWI_COLLECTIVE = 1 << 16, /* one of several nodes, each on a device of its own, that compute together */
    TWI_UNBOUND = 1 << 17,    /* hands resources on and need not be where they are */
    TWI_UNKNOWN = 1 << 18,    /* stands for a node of a file that cannot be built; fails when it is run */

    TWI_MAKES_SHAPE = 1 << 19, /* outputs whose shape stays unknown are tensors that its kernel makes, of what it finds */
    TWI_SWITCH = 1 << 20,     /* gives input 0 as output 1 where input 1, a predicate, holds, else as output 0 */
    TWI_MERGE = 1 << 21,      /* gives the one of its inputs that was computed, and which one that is */
    TWI_CHOOSE = 1 << 22,     /* in a plan: output 0 becomes its last input if the node runs; else it stays as it was */
    TWI_ENTER = 1 << 23,      /* gives its input in a loop, */
    TWI_EXIT = 1 << 24,       /* outside of it, */
    TWI_NEXT = 1 << 25,       /* in the loop's next round */
    TWI_LOOP_COND = 1 << 26,  /* whether there is another round */
    TWI_LOOP = 1 << 27,       /* in a plan: a whole loop */
    TWI_PUTS = 1 << 28,       /* puts its input 2, or 1 if it has two, into a stack or an array, */
    TWI_TAKES = 1 << 29,      /* gives what was put there, */
    TWI_COUNTS = 1 << 30,     /* how many elements an array has */
    TWI_MAY_BE_FED = INT_MIN,  /* 1 << 31: a placeholder that gives its input where it is not fed */
};

/* What a node makes, mostly one without inputs, so that others can work on it: a handle of it, or of a variable a
 * reference. */
typedef enum twi_made {
    TWI_MAKES_NOTHING,
    TWI_MAKES_VARIABLE,
    TWI_MAKES_DATA_SET, /* a variable for a data set, or for batches of it, which nobody trains */
    TWI_MAKES_QUEUE,
    TWI_MAKES_READER,
    TWI_MAKES_TABLE,
    TWI_MAKES_SERIES, /* a stack or an array, for a run */
    TWI_MAKES_RECIPE, /* a data set: of what its inputs are when it runs (device/dataset/dataset.h) */
    TWI_MAKES_ITERATOR,
} twi_made;

typedef struct twi_op {
    const char *name;
    const char *inputs, *outputs, *attrs;
    twi_shape_rule *shape;
    twi_gradient_rule *gradient; /* NULL: an error if a gradient must pass */
    unsigned flags;              /* TWI_STATEFUL... */
    /* One letter for each input of the signature, one for a whole list; NULL: all are values.
     *   .  a value
     *   r  a variable that is read
     *   w  a variable that gets a value, whether it had one or not
     *   u  a variable that is read and written, the one of an update
     *   s  a slot of an update, read and written
     *   h  a variable of which no value is needed
     *   q  a queue, a reader, a table, a data set or an iterator
     *   m  a mutex, which is locked
     *   k  the lock of a mutex, which is given back
     *   i  indices into the variable's first dimension
     *   n  a number of an update, a scalar
     *   g  its gradient
     *   d  a weight decay that is part of the gradient
     *   l  a weight decay apart from it, taken off the variable before the update */
    const char *roles;
    twi_made makes;
    const char *planned_as; /* name of the op that stands for it in a plan, where it is not fed; NULL: itself */
    const char *written_as; /* the same in files, for an op that TensorFlow has not: of what brings examples a node for each
                               output; NULL: itself */
    /* How it works on images, if it asks for the order of their dimensions or takes these by number: a letter for each
     * input of the signature (one for a whole list), a colon, one for each output. NULL: it does not.
     *   i  an image
     *   s  a number for each dimension: how long it is, where a part begins
     *   p  pairs of numbers, one for each dimension
     *   a  the number of a dimension
     *   .  anything else */
    const char *layout;
} twi_op;

static inline bool twi_op_is(const twi_op *op, unsigned flag)
{
    return (op->flags & flag) != 0;
}

/* The role of a node's input: a node has more inputs than its op has letters where a list is one of them. */
char twi_op_role(const twi_op *op, const twi_attrs *attrs, int input);
/* The letter of op->layout for a node's input; '.' for an op without. */
char twi_op_layout(const twi_op *op, const twi_attrs *attrs, int input);
/* Whether the output or input is a variable itself, passed along an edge: Ref(TYPE) in the signature. */
bool twi_op_gives_reference(const twi_op *op, const twi_attrs *attrs, int output);
bool twi_op_takes_reference(const twi_op *op, const twi_attrs *attrs, int input);

/* Of a role: who is read must have a value before, who is written has one afterwards. */
static inline bool twi_role_is_variable(char role)
{
    return role == 'r' || role == 'w' || role == 'u' || role == 's' || role == 'h';
}

static inline bool twi_role_reads(char role)
{
    return role == 'r' || role == 'u' || role == 's';
}

static inline bool twi_role_writes(char role)
{
    return role == 'w' || role == 'u' || role == 's';
}

/* Makes a variable whose shape its graph leaves open in part or wholly: assignments may change it from run to run. */
static inline bool twi_is_growing(const twi_op *op, const twi_attrs *attrs)
{
    return op->makes == TWI_MAKES_VARIABLE && !tw_shape_is_known(twi_attr_shape(attrs, "shape"));
}

/* Whether some input's role writes. A node may still have none of a list of them. */
bool twi_op_writes(const twi_op *op);
/* Whether looking at variables is all it has to do with state: two that run between the same writes give the same. */
bool twi_op_only_reads(const twi_op *op);

/* The name of the op that stands for this one in a plan. */
static inline const char *twi_op_planned(const twi_op *op)
{
    return op->planned_as ? op->planned_as : op->name;
}

/* The families, ended by NULL; each is ended by a row without a name. src/ops/ops.c is the list. */
extern const twi_op *const twi_op_families[];

/* A signature, read. */
typedef struct twi_argument {
    const char *name;
    tw_dtype dtype;          /* fixed type, or TW_INVALID_DTYPE */
    const char *type_attr;   /* name of the type attribute, or NULL */
    const char *number_attr; /* "N" of N*T, or NULL */
    const char *list_attr;   /* list(type) attribute, or NULL */
    bool is_ref;
} twi_argument;

typedef struct twi_attr_spec {
    const char *name;
    tw_attr_kind kind;
    bool has_default;
    bool has_minimum;        /* "int>=2", "types>=1": of its value, or of its length. What is built here may have less,
                              * but that a list of inputs is empty only where "int>=0" says so */
    int minimum;
    twi_attr value;          /* the default */
    uint64_t allowed_types;  /* bit 1 << dtype; 0: any */
    const char *const *allowed_strings;
    int num_allowed_strings; /* 0: any */
} twi_attr_spec;

typedef struct twi_signature {
    twi_argument *inputs, *outputs;
    twi_attr_spec *attrs;
    int num_inputs, num_outputs, num_attrs;
} twi_signature;

const twi_op *twi_op_find(const char *name); /* NULL if not registered */
/* What a row's texts say, read when it is first asked for; any thread may ask. NULL when out of memory; a malformed row
 * is a bug of ours and asserts (a test reads all rows). */
const twi_signature *twi_op_signature(const twi_op *op);
/* Whether the type attribute is that of texts, where TensorFlow also has variants. */
bool twi_signature_wants_text(const twi_signature *signature, const char *type_attr);

#endif
