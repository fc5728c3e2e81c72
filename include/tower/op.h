/* op.h - what ops there are, and what each of them takes and gives: for programs that build graphs of ops that they do
 * not know beforehand, such as bindings of other languages, which can write their own builders of it.
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

#ifdef __cplusplus
}
#endif
#endif
