/* match.h - a call of an op, matched with its signature: which values its attributes have, how long its lists are, what
 * it gives. For the nodes of users' graphs (graph.c) and of plans (src/ir).
 * Never here: shapes, names, devices. */
#ifndef TWI_MATCH_H
#define TWI_MATCH_H

#include "graph/graph.h"

typedef struct twi_call {
    twi_arena *arena;            /* where what is found lies */
    const twi_op *op;
    const twi_signature *signature; /* lives as long as the arena */
    const char *node;            /* name, for messages */
    const tw_dtype *input_types;
    int num_inputs;
    const tw_output *sources;    /* whose outputs the inputs are; NULL: of no user's graph */
    const tw_attr *attrs;        /* as given */
    int num_attrs;
    tw_error *error;
    /* filled in */
    twi_attrs completed;         /* every attribute of the signature, then the marks. Yours: twi_attrs_release() */
    tw_dtype *output_types;
    int num_outputs;
    twi_attr *values;            /* scratch: by place in the signature; kind 0 where none is known yet */
} twi_call;

/* On failure nothing need be released. */
tw_status twi_match_call(twi_call *call);

#endif
