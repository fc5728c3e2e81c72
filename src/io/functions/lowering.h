/* lowering.h - what the files of this folder share: the nodes that calls become, and where they go.
 *
 * A call's node keeps its name and its outputs: an IdentityN of what takes its place. In a function, an input is an
 * argument's name or NODE:OUTPUT:NUMBER, where OUTPUT is the name that the op's signature has for it. Functions whose
 * result is a text or a list have it in the arena, and give NULL when memory has run out. */
#ifndef TWI_LOWERING_H
#define TWI_LOWERING_H

#include "base/arena.h"
#include "base/array.h"
#include "base/map.h"
#include "base/status.h"
#include "format/protobuf.h"
#include "graph/op.h"
#include "io/functions/functions.h"

enum { TWI_PROTO_RESOURCE = TW_RESOURCE, TWI_PROTO_VARIANT = 21 };
enum { TWI_MOST_CALLS = 64 }; /* that lie in each other */

typedef struct twi_function_library {
    twi_proto proto;
    Twi__FunctionDefLibrary *message;
} twi_function_library;

struct twi_functions {
    twi_arena *arena;
    twi_function_library *libraries;
    size_t num_libraries;
    twi_map by_name;  /* Twi__FunctionDef */
    twi_map names;    /* -> Twi__NodeDef, of the graph and of functions that were opened */
    twi_map for_cpus; /* api_implements -> the Twi__FunctionDef that is meant for CPUs */
    TWI_ARRAY(Twi__NodeDef *) nodes;
    twi_map passed;    /* "call:8" -> what the call gives there, where it is a handle or what it was given itself */
    twi_map gradients; /* name -> twi_function_gradient */
    const char *stack[TWI_MOST_CALLS]; /* names of the functions that are being inlined */
    int depth, made, most;             /* nodes made so far, and how many there may be */
    bool lacks_memory;                 /* a function, a name or a list is not there for want of memory */
    bool named;                        /* the error names the node whose function cannot be put in its place */
    tw_error *error;
};

/* Where the nodes of a function go. */
typedef struct twi_function_place {
    const char *prefix;               /* "cond/then/" */
    const char *device;               /* of those that ask for none */
    const char *pivot;                /* "^cond/pivot": what nodes without inputs come after; NULL: nothing */
    const Twi__FunctionDef *function; /* NULL: the graph itself */
    char **arguments;                 /* [input_arg] what the function is given */
    const bool *unchanging;           /* [input_arg] in a loop, whether it stays; NULL: none does */
    bool is_alone;                    /* its nodes are all on `device`, whatever they ask for */
    bool waits;                       /* it is a call's that comes after other nodes: so does what uses resources */
    twi_map nodes;                    /* of the function, by name */
} twi_function_place;

/* A place for a function that is called from another one; its results and controls have room. */
typedef struct twi_function_call {
    twi_function_place place;
    char **results, **controls;
    size_t num_results, num_controls;
} twi_function_call;

/* A node that is lowered, with its name, device and inputs as they are in the graph. */
typedef struct twi_lowering {
    twi_functions *f;
    const Twi__NodeDef *node;
    const char *name, *device;
    char **inputs; /* [node->n_input] */
    size_t num_data;
    const twi_function_place *place; /* that the node is in */
} twi_lowering;

/* ---- making nodes (nodes.c) -------------------------------------------------------------------------------------- */

typedef struct twi_attr_value {
    const char *name;
    Twi__AttrValue value;
} twi_attr_value;

tw_status twi_lower_fail_memory(const twi_functions *f);
twi_attr_value twi_type_value(const char *name, int32_t type);
twi_attr_value twi_int_value(const char *name, int64_t i);
twi_attr_value twi_bool_value(const char *name, bool b);
twi_attr_value twi_text_value(const char *name, const char *text);
twi_attr_value twi_place_value(const char *name, char *place); /* the name of a function that is kept */
twi_attr_value twi_list_value(twi_functions *f, const char *name, const Twi__AttrValue__ListValue *list);
twi_attr_value twi_copied_value(const Twi__NodeDef *node, const char *name); /* the node's; none, if it has none */

bool twi_lower_add_attr(twi_functions *f, Twi__NodeDef *node, const twi_attr_value *attr);
/* Adds a node with these inputs, of which NULLs are left out. */
tw_status twi_lower_add(twi_functions *f, const char *op, const char *name, const char *device,
                        const char *const *inputs, size_t num_inputs, const twi_attr_value *attrs, int num_attrs);
/* A constant of that shape, whose values lie in the arena or in the graph that is read; `control` may be NULL. */
tw_status twi_lower_add_const(twi_functions *f, const char *name, const char *device, const char *control,
                              tw_shape shape, const Twi__TensorProto *values);
/* That there is no memory for a name shows in the end, where an input without one was left out. */
char *twi_lower_noted(twi_functions *f, char *name);
#define TWI_PRINT(...) twi_lower_noted(f, twi_arena_printf(f->arena, __VA_ARGS__))

/* ---- what a node's attributes say (nodes.c) ---------------------------------------------------------------------- */

const Twi__AttrValue *twi_lower_attr(const Twi__NodeDef *node, const char *name); /* NULL: it has none */
/* The name in a function's attribute; NULL: it cannot be read, or memory has run out. */
const char *twi_lower_function_name(twi_arena *arena, const ProtobufCBinaryData *bytes, bool *lacks_memory);
const Twi__FunctionDef *twi_lower_function_named(twi_functions *f, const ProtobufCBinaryData *bytes);
/* The function that an attribute names, or the number-th of a list; NULL: there is none. */
const Twi__FunctionDef *twi_lower_function_at(twi_functions *f, const Twi__NodeDef *node, const char *attr,
                                              size_t number);
const Twi__FunctionDef *twi_lower_function(twi_functions *f, const Twi__NodeDef *node, const char *attr);
/* How many there are; 0 also where one is not in the library. */
size_t twi_lower_count_functions(twi_functions *f, const Twi__NodeDef *node, const char *attr);
int32_t twi_lower_type(const Twi__NodeDef *node, const char *attr, size_t i); /* of a list; 0: there is none */
size_t twi_lower_count_types(const Twi__NodeDef *node, const char *attr);
size_t twi_lower_count_data(const Twi__NodeDef *node); /* inputs before the controls */
int64_t twi_lower_length(const Twi__NodeDef *node, const twi_argument *argument);

/* ---- calls (calls.c) --------------------------------------------------------------------------------------------- */

int twi_lower_argument(const twi_function_place *p, const char *name); /* its number; -1: it is none */
/* Whether an input is what the function was given, and stays in the loop that it is in. */
bool twi_lower_stays(const twi_function_place *p, const char *input);
/* The function that a node of its own name calls, as TensorFlow 1's Defun has it; NULL: none. */
const Twi__FunctionDef *twi_lower_function_as_op(twi_functions *f, const Twi__NodeDef *node);
char *twi_lower_resolve(twi_functions *f, const twi_function_place *p, const char *input); /* as the graph calls it */
const char *twi_lower_returned(const Twi__FunctionDef *function, size_t i);
tw_status twi_lower_open(twi_functions *f, const Twi__FunctionDef *function, const char *prefix, const char *device,
                         const char *pivot, size_t num_arguments, twi_function_call *c);
/* For the inputs from `first` on; the nodes come after all that the call does, in the place that it is in. */
tw_status twi_lower_open_called(twi_lowering *l, const Twi__FunctionDef *function, size_t first, twi_function_call *c);
/* Puts a function's nodes in their place. results[output_arg]: what it gives; controls: "^node" for what it does
 * besides. */
tw_status twi_lower_inline(twi_functions *f, twi_function_place *p, char **results, char **controls);
/* What a call's output is, for those who may take it past the call. */
bool twi_lower_note_passed(twi_functions *f, const char *name, size_t i, char *value);
/* The call's own name, with its outputs: what has taken its place. */
tw_status twi_lower_add_outputs(twi_functions *f, const char *name, const char *device, const Twi__NodeDef *node,
                                const char *types, char **values, size_t count, char **controls, size_t num_controls);
tw_status twi_lower_add_with_controls(twi_lowering *l, const char *op, const char *name, const char *a, const char *b,
                                      const twi_attr_value *attrs, int num_attrs);
tw_status twi_lower_call_function(twi_lowering *l, const Twi__FunctionDef *function, size_t first);

/* ---- what becomes of a node (functions.c: the table) ------------------------------------------------------------- */

tw_status twi_lower_node(twi_functions *f, const twi_function_place *p, const Twi__NodeDef *node); /* functions.c */
/* The function, or of several that implement the same the one for CPUs. */
const Twi__FunctionDef *twi_lower_implementation(twi_functions *f, const Twi__FunctionDef *function);
tw_status twi_lower_call(twi_lowering *l);
tw_status twi_lower_named(twi_lowering *l); /* a node whose op is the function itself (kept.c) */
tw_status twi_lower_if(twi_lowering *l);
tw_status twi_lower_case(twi_lowering *l);
tw_status twi_lower_while(twi_lowering *l);
tw_status twi_lower_parse(twi_lowering *l);
tw_status twi_lower_gradient(twi_lowering *l);
tw_status twi_lower_batch_norm(twi_lowering *l);
tw_status twi_lower_padded_conv(twi_lowering *l);
tw_status twi_lower_copied_data_set(twi_lowering *l);
tw_status twi_lower_wrapped_data_set(twi_lowering *l);
bool twi_copies_data_set(const Twi__NodeDef *node); /* a GeneratorDataset */
bool twi_keeps_averages(const Twi__NodeDef *node); /* batch normalization */
/* Keeps all functions that the node calls. In its attributes a function's place takes the function's. */
tw_status twi_lower_keep_functions(twi_functions *f, Twi__NodeDef *node, char **inputs);

#endif
