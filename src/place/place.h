/* place.h - which device each node runs on, and why.
 * Lives here:  colocation, the rules that choose, soft placement, the placement log, the reasons.
 * Never here:  copies, memory, anything that runs.
 *
 * The rules are TensorFlow's: nodes that must share a device form a group; a group takes the first of the devices that
 * its members ask for and have kernels on, GPUs before CPUs and lower numbers first. */
#ifndef TWI_PLACE_H
#define TWI_PLACE_H

#include "base/array.h"
#include "device/device.h"
#include "graph/graph.h"

#include <tower/explain.h>

typedef struct twi_placement_options {
    bool soft; /* an impossible device is replaced by an existing one */
    const tw_devices *devices;
    tw_soft_choice choice; /* by which */
} twi_placement_options;

/* The device's kernel for a node's op and type does not take the node: its shapes or attributes. */
typedef struct twi_refusal {
    const tw_node *node;
    int device;
    char *reason; /* in the kernel's own words */
} twi_refusal;

typedef TWI_ARRAY(twi_refusal) twi_refusals;

/* Where the nodes of a graph are. The graph itself is never changed. All zeros: nothing is placed yet. */
typedef struct twi_placement {
    int count;                 /* nodes placed: ids 0 to count - 1 */
    int *devices;              /* [count] index into options->devices->items; -1: none has a kernel for it */
    int *order;                /* [count] ids in the order they were placed in, which is the log's */
    const char **sentences;    /* [count] made when first asked for */
    struct twi_groups *groups; /* what was decided from: the reasons */
    twi_refusals refusals;     /* what planning found, which placing heeds */
    twi_arena arena;           /* holds the arrays and the sentences */
} twi_placement;

/* Places every node. Call it again when the graph has grown: stateful nodes stay where they are, the others are placed
 * anew. On failure the placement is left as it was. The message is TensorFlow's: it names the operation, the device
 * asked for, the devices there are, and the node. A node for which no device has a kernel fails only when it is
 * needed (twi_placement_check). The graph and the devices are borrowed until the placement is freed. */
tw_status twi_place(const tw_graph *graph, const twi_placement_options *options, twi_placement *placement,
                    tw_error *error);
void twi_placement_free(twi_placement *placement);

/* Notes that the device where the node is refuses it, unless placing it anew would not help: without soft placement,
 * for a node that keeps state, or where no other kind of device has a kernel. */
tw_status twi_placement_refuse(twi_placement *placement, const tw_node *node, const char *reason, tw_error *error);
/* Places the graph as before, but heeds what has been noted. If that fails the placement stays as it was, and all but
 * the first `known` refusals are forgotten. */
tw_status twi_place_again(const tw_graph *graph, twi_placement *placement, int known);

/* Fails, in TensorFlow's words, for a node that no device has a kernel for. */
tw_status twi_placement_check(const twi_placement *placement, const tw_node *node, tw_error *error);

/* ---- reasons --------------------------------------------------------------------------------------------------- */

/* All that placement knows of a node; lists and texts are in the arena. */
tw_status twi_explain(twi_placement *placement, const tw_node *node, twi_arena *arena, tw_explanation *explanation,
                      tw_error *error);
/* The reason in one sentence; NULL when out of memory. */
const char *twi_placement_why(twi_placement *placement, const tw_node *node);

/* True if soft placement moved the node: it asked for a device and runs on another, because what its group asks for
 * cannot be. */
bool twi_is_moved(twi_placement *placement, const tw_node *node);
/* What it moved, grouped; bytes are 0. Lists and texts are in the arena. */
tw_status twi_list_moves(twi_placement *placement, twi_arena *arena, tw_moves *moves, tw_error *error);

/* ---- the log --------------------------------------------------------------------------------------------------- */

/* TensorFlow's log of placements, line by line: "Device mapping:" with the GPUs, then "NAME: (OP): DEVICE" for every
 * node in order of placing. */
typedef void twi_line_function(void *user, const char *line);
void twi_placement_log(const tw_graph *graph, const tw_devices *devices, const twi_placement *placement,
                       twi_line_function *line, void *user);

#endif
