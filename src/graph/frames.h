/* frames.h - which loop each node of a graph is in.
 *
 * A frame begins at its Enters and ends at its Exits; frame 0 is the graph itself. A node is in the frame of what it
 * takes; one that takes values of two is in none (-1), and refused when it is needed. */
#ifndef TWI_FRAMES_H
#define TWI_FRAMES_H

#include "base/array.h"
#include "graph/graph.h"

typedef struct twi_frame {
    const char *name;
    int parent, depth;                /* -1: it is the graph; 0 of the graph */
    const tw_node *cond;              /* its LoopCond; NULL: it has none */
    const tw_node *second_cond;       /* one too many */
    TWI_ARRAY(const tw_node *) nodes; /* that are in it, but not in one of its own frames */
    TWI_ARRAY(const tw_node *) exits; /* which are its parent's nodes */
    TWI_ARRAY(int) frames;            /* whose parent it is */
} twi_frame;

typedef struct twi_frames {
    TWI_ARRAY(twi_frame) items;
    twi_map by_name; /* "PARENT/NAME" -> number + 1 */
    twi_arena arena;
    int *of;          /* [nodes] */
    bool *unchanging; /* [nodes] depends on nothing that changes from round to round, and may be computed
                         before the loop; */
    bool *gated;      /* [nodes] who takes something of such a node runs only where there is a round */
    int *puts;        /* [nodes] of what makes a stack or an array: how many nodes put something into it */
    uint8_t *sides;   /* [nodes] the sides of its loop's LoopCond that it waits for: a bit 1 << value each */
} twi_frames;

tw_status twi_frames_find(const tw_graph *graph, twi_frames *frames, tw_error *error);
void twi_frames_free(twi_frames *frames);

/* The node that has made what a handle, given by this one, is of. */
const tw_node *twi_made_by(const tw_node *handle);

/* Whether nothing ever comes of an Exit: what it takes waits for a round and for there to be none. So it is with what
 * TensorFlow's gradients make of loops under control inputs from outside. */
bool twi_exit_is_dead(const twi_frames *frames, const tw_node *exit);

/* Whether `inner` is `frame` or lies in it. */
bool twi_frame_is_within(const twi_frames *frames, int inner, int frame);

/* The number of the frame of that name in `parent`, made if there is none; -1: memory has run out. For those who have
 * no graph yet. */
int twi_frame_number(twi_frames *frames, int parent, const char *name);

#endif
