/* plan.h - what a graph becomes for one set of feeds, fetches and shapes: prepared kernels in order, a list for each
 * device, every byte of memory assigned.
 *
 *     specialize -> rewrite -> partition -> prepare -> order -> memory -> lists
 *
 * Nothing here runs; src/run walks the lists. All that is slow happens here, so that running allocates nothing, looks
 * nothing up and knows no names. */
#ifndef TWI_PLAN_H
#define TWI_PLAN_H

#include "device/resources.h"
#include "rewrite/rewrite.h"

#include <tower/session.h> /* tw_plan_info */

#include <limits.h>

typedef struct twi_feed_shape {
    tw_output output;
    tw_dtype dtype;
    tw_shape shape;
} twi_feed_shape;

/* What is to be planned. Everything is borrowed for the call. */
typedef struct twi_request {
    tw_graph *graph;
    const int *placement;        /* [nodes of graph]: index of the device of each */
    const twi_feed_shape *feeds;  /* [num_feeds] */
    int num_feeds;
    const tw_output *fetches;    /* [num_fetches]; index -1: only run the node */
    int num_fetches;
    tw_devices *devices;
    twi_resource_table *resources;
    const char *disable;         /* rewrites to leave out; "reuse": memory reuse */
    bool plain_kernels;
} twi_request;

/* A block of memory that one output holds, or several when they share it. */
typedef struct twi_buffer {
    enum { TWI_IN_ARENA, TWI_IN_KEPT, TWI_IN_VARIABLE } place;
    int device;
    size_t bytes;
    int first, last;             /* steps of the device's list between which it is in use, both included; INT_MAX: to the
                                    end of the run */
    size_t offset;               /* in the device's arena or kept memory */
    twi_resource *variable;
    const tw_tensor *constant;   /* TWI_IN_KEPT: value to be written once; NULL for strings made by kernels */
} twi_buffer;

/* A node prepared for its device. */
typedef struct twi_task {
    tw_node *node;
    const twi_kernel *kernel;    /* NULL: a copy, a feed, a constant, or nothing at all */
    twi_prepare prepare;
    twi_operand *operands;       /* inputs, then outputs */
    twi_buffer **outputs;        /* [num_outputs]; shared when two outputs share memory */
    int position;                /* in its device's list */
} twi_task;

typedef struct twi_wait {
    int device, position;        /* until that device has finished the step at this position */
} twi_wait;

/* One entry of a device's list. */
typedef struct twi_step {
    const twi_kernel *kernel;    /* NULL: a copy if `source` is not NULL, else nothing */
    twi_run run;
    twi_device *source;          /* of a copy */
    size_t bytes;                /* of a copy */
    bool copies_strings;
    twi_wait *waits;
    int num_waits;
    const tw_node *node;         /* for messages and traces */
    int64_t started_ns, ended_ns; /* of the latest run, when traced */
} twi_step;

typedef struct twi_list {
    twi_device *device;
    twi_step *steps;
    int count;
    size_t arena_bytes;          /* buffers and workspace of a step */
    size_t workspace_offset;
    void *kept;                  /* constants and strings, owned by the plan */
    size_t kept_bytes;
    tw_error error;              /* of the step that failed in the latest run */
} twi_list;

/* Where a feed goes or a fetch comes from. */
typedef struct twi_port {
    twi_device *device;          /* NULL: a fetch without a value */
    twi_buffer *buffer;
    void *memory;
    tw_dtype dtype;
    tw_shape shape;
    size_t bytes;
    tw_tensor *result;           /* of a fetch, while it runs: what its value goes into */
} twi_port;

typedef struct twi_plan {
    tw_graph *graph;             /* its own copy, rewritten */
    twi_arena arena;
    twi_list *lists;             /* [num_lists], one for each device of the set, in its order */
    int num_lists;
    twi_port *feeds, *fetches;
    int num_feeds, num_fetches;
    twi_resource **needed;       /* variables that must have a value before the run */
    twi_resource **assigned;     /* variables that have one afterwards */
    int num_needed, num_assigned;
    tw_plan_info info;
} twi_plan;

tw_status twi_plan_create(const twi_request *request, twi_plan **plan, tw_error *error);
void twi_plan_destroy(twi_plan *plan); /* NULL is fine */
/* Tells the plan where the devices' arenas lie (arenas[num_lists]); before the first run and whenever one has moved. */
void twi_plan_bind(twi_plan *plan, void *const *arenas);

/* ---- the stages, each in the file of its name ------------------------------------------------------------------ */

/* A plan under construction. */
typedef struct twi_planning {
    const twi_request *request;
    twi_plan *plan;
    twi_rewriting rewriting;     /* graph, fetches */
    tw_error *error;
} twi_planning;

/* Copies what the fetches need into a new graph with every shape known, feeds cut out, constants folded. */
tw_status twi_specialize(twi_planning *p);
/* Puts a _Copy on each edge between devices; one tensor crosses to one device once. */
tw_status twi_partition(twi_planning *p);
/* Finds a kernel for every node and prepares it. */
tw_status twi_prepare_tasks(twi_planning *p);
/* Lets reads of a variable be its memory itself where order allows, puts readers before writers, sorts, numbers
 * positions. */
tw_status twi_order(twi_planning *p);
/* Makes buffers by lifetime and gives them offsets. Needs positions. */
tw_status twi_assign_memory(twi_planning *p);
/* Writes down the steps of each device and what they wait for. */
tw_status twi_make_lists(twi_planning *p);

/* True when output 0 of the node is its input 0's memory. */
bool twi_task_shares(const twi_task *task);
twi_buffer *twi_buffer_of(tw_output output);

#endif
