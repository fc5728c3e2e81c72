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
 *                    Defaults: 3, 0.5, true, NHWC, [], [1,1,1,1], float, unknown (a shape)
 *
 * An empty cell is an honest error, not a crash: no gradient rule means that the op cannot be differentiated. */
#ifndef TWI_OP_H
#define TWI_OP_H

#include "base/status.h"
#include "tensor/attr.h"

#include <tower/graph.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* What a shape rule sees and fills in. Shapes may be unknown in part; outputs start as TW_UNKNOWN_SHAPE. The rule runs
 * when the node is built and again when a plan is made, then with every fed shape known. */
typedef struct twi_inference {
    const char *node; /* for messages; twi_fail's callers need not repeat it */
    const twi_attrs *attrs;
    int num_inputs;
    const tw_dtype *input_types;
    const tw_shape *inputs;           /* of a resource: the shape of the variable behind it */
    tw_tensor *const *input_values;   /* value of input i if it is a known constant, else NULL */
    const tw_output *sources;         /* whose outputs the inputs are: of a handle, the node that made the resource */
    int num_outputs;
    const tw_dtype *output_types;
    tw_shape *outputs;
    tw_error *error;
} twi_inference;

/* Returns TW_OK, or fails with twi_fail(c->error, TW_INVALID_ARGUMENT, "...") naming the shapes; the caller puts
 * "OP 'node': " in front. */
typedef tw_status twi_shape_rule(twi_inference *c);

/* Rules that many ops share (graph/shape_rules.c). */
twi_shape_rule twi_shape_scalar;       /* every output is a scalar */
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
tw_status twi_expect_rank(twi_inference *c, int input, int rank); /* unknown rank passes */

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

/* What a gradient rule sees and fills in, using the public builders (tower/ops.h, tower/nn.h). */
typedef struct twi_gradient {
    tw_graph *graph;
    tw_node *node;        /* the forward node */
    const tw_output *dy;  /* [num_outputs]: gradients flowing in; {NULL, 0} where none does */
    tw_output *dx;        /* [num_inputs]: the rule fills these; left {NULL, 0} means none */
} twi_gradient;

typedef void twi_gradient_rule(twi_gradient *g);

twi_gradient_rule twi_not_differentiable; /* known to have no gradient: passes none on, silently */

/* ---- rows -------------------------------------------------------------------------------------------------- */

enum {
    TWI_STATEFUL = 1,    /* may not be folded, merged or dropped when it is asked for */
    TWI_COMMUTATIVE = 2, /* inputs may change places (merging common nodes) */
    TWI_HOST_ONLY = 4,   /* has no kernel on GPUs, as in TensorFlow */
    TWI_REWRITTEN = 8,   /* made by rewrites only: names start with '_', never in files */
};

typedef struct twi_op {
    const char *name;
    const char *inputs, *outputs, *attrs;
    twi_shape_rule *shape;
    twi_gradient_rule *gradient; /* NULL: an error if a gradient must pass */
    unsigned flags;
} twi_op;

/* The families, ended by NULL; each is ended by a row without a name. src/ops/ops.c is the list. */
extern const twi_op *const twi_op_families[];

/* A signature, parsed once. */
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
/* Parses a row's texts into memory of the arena. False when out of memory; a malformed row is a bug of ours and asserts
 * (a test parses all rows). */
bool twi_signature_parse(twi_arena *arena, const twi_op *op, twi_signature *signature);

#endif
