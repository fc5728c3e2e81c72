/* sweep.h - what gradients.c and loop_gradients.c share while they go back through a graph. */
#ifndef TWI_SWEEP_H
#define TWI_SWEEP_H

#include "graph/blocks.h"
#include "graph/frames.h"

typedef TWI_ARRAY(tw_output) twi_outputs;

/* What a sweep knows of a node. */
typedef struct twi_visited {
    bool leads_to_y, comes_from_x, is_x;
    twi_outputs *arriving; /* [num_outputs] gradients that have arrived; made when needed */
} twi_visited;

typedef struct twi_sweep {
    tw_graph *graph;
    twi_visited *nodes;    /* [room], of which those of num_nodes nodes are used */
    int room;
    int num_nodes;         /* when the sweep began: what it adds is not visited */
    TWI_ARRAY(int) reached; /* ids of the nodes that lead to a y, from the last to the first; with loops of all nodes */
    twi_frames frames;     /* of a graph with loops */
    twi_block *block;      /* that it builds in, */
    int home;              /* and the frame that ys and xs are in */
    struct twi_back *back; /* the loop that it goes back through; NULL: none (loop_gradients.c) */
} twi_sweep;

bool twi_sweep_arrive(twi_sweep *s, tw_output at, tw_output gradient);
/* The gradient of one output: what arrived, added up; {NULL, 0} if nothing did. */
tw_output twi_sweep_sum(twi_sweep *s, tw_output at);
/* Of all nodes of the frame, from the last to the first. */
tw_status twi_sweep_nodes(twi_sweep *s, int frame);
/* Goes back through the loop that the Exit is of, when it is the loop's first. */
tw_status twi_sweep_loop(twi_sweep *s, const tw_node *exit);
/* Of a node in a loop that is gone back through: true if it is of the loop itself, and seen to. */
bool twi_sweep_round(twi_sweep *s, tw_node *node);
bool twi_has_gradient(tw_dtype dtype); /* of a value */

#endif
