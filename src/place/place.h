/* place.h - which device each node runs on, and why.
 * Lives here:  colocation, the rules that choose, soft placement, the placement log, the reasons.
 * Never here:  copies, memory, anything that runs.
 *
 * The rules are TensorFlow's: nodes that must share a device form a group; a group takes the first of the devices that
 * its members ask for and have kernels on, GPUs before CPUs and lower numbers first. */
#ifndef TWI_PLACE_H
#define TWI_PLACE_H

#include "device/device.h"
#include "graph/graph.h"

typedef struct twi_placement_options {
    bool soft; /* an impossible device is replaced by the best existing one */
    const tw_devices *devices;
} twi_placement_options;

/* A node that does not run where it was asked to. */
typedef struct twi_move {
    int node;          /* id */
    const char *asked; /* the graph's text */
    int device;
} twi_move;

/* Where the nodes of a graph are. The graph itself is never changed. All zeros: nothing is placed yet. */
typedef struct twi_placement {
    int count;            /* nodes placed: ids 0 to count - 1 */
    int *devices;         /* [count] index into options->devices->items */
    const char **reasons; /* [count] one sentence each */
    int *order;           /* [count] ids in the order they were placed in, which is the log's */
    twi_move *moves;
    int num_moves;
    twi_arena arena; /* holds all of the above */
} twi_placement;

/* Places every node. Call it again when the graph has grown: stateful nodes stay where they are, the others are placed
 * anew. On failure the placement is left as it was. The message is TensorFlow's: it names the operation, the device
 * asked for, the devices there are, and the node. */
tw_status twi_place(const tw_graph *graph, const twi_placement_options *options, twi_placement *placement,
                    tw_error *error);
void twi_placement_free(twi_placement *placement);

/* TensorFlow's log of placements, line by line: "Device mapping:" with the GPUs, then "NAME: (OP): DEVICE" for every
 * node in order of placing. */
typedef void twi_line_function(void *user, const char *line);
void twi_placement_log(const tw_graph *graph, const tw_devices *devices, const twi_placement *placement,
                       twi_line_function *line, void *user);

#endif
