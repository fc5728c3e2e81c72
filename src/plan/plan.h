/* plan.h - what a graph becomes for one set of feeds, fetches and shapes: prepared kernels in order, a list for each
 * device, every byte of memory assigned.
 *
 *     specialize -> assign -> rewrite -> partition -> rendezvous -> prepare -> order -> memory -> lists
 *
 * Nothing here runs; src/run walks the lists. All that is slow happens here, so that running allocates nothing, looks
 * nothing up and knows no names. */
#ifndef TWI_PLAN_H
#define TWI_PLAN_H

#include "device/resources.h"
#include "place/place.h"
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
    twi_placement *placement;    /* of the graph */
    int64_t soft_budget;         /* as in tw_session_options */
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
    const twi_node *maker;        /* the first whose output it is */
    size_t bytes;
    int first, last;             /* steps of the device's list between which it is in use, both included; INT_MAX: to the
                                    end of the run */
    size_t offset;               /* in the device's arena or kept memory */
    twi_resource *variable;
    const tw_tensor *constant;   /* TWI_IN_KEPT: value to be written once; NULL for strings made by kernels */
} twi_buffer;

/* A node prepared for its device. */
typedef struct twi_task {
    twi_node *node;
    const twi_kernel *kernel;    /* NULL: a copy, a feed, a constant, or nothing at all */
    twi_prepare prepare;
    bool borrows;                /* the kernel's state is another task's, which is alike */
    twi_operand *operands;       /* inputs, then outputs */
    twi_buffer **outputs;        /* [num_outputs]; shared when two outputs share memory */
    int workspace;               /* number of the one that it gets */
    int position;                /* in its device's list */
    int phase;                   /* see order.c; 0 where no device records */
} twi_task;

typedef struct twi_wait {
    int device, position;        /* until that device has finished the step at this position */
} twi_wait;

/* Steps of one phase, neighbours in the list of each device of a group that records together, which may be recorded and
 * replayed as one. The first part's device replays; it waits for what all of them wait for outside, and the others for
 * it. */
typedef struct twi_segment {
    struct twi_part {
        int device, first, end;  /* steps of that device's list */
    } *parts;
    int num_parts;
    struct twi_step **steps;     /* of all parts, in an order that runs nothing before what it needs */
    int num_steps;
    twi_wait *waits;
    int num_waits;
    int **after;                 /* [num_steps][num_after[i]] steps of it that step i came after when it was recorded */
    int *num_after;
    bool refused;                /* recording it failed */
    void *recording;             /* of the first part's device; NULL: none yet */
} twi_segment;

/* One entry of a device's list. */
typedef struct twi_step {
    const twi_kernel *kernel;    /* NULL: a copy if `source` is not NULL, else nothing */
    twi_run run;
    twi_device *device;          /* whose list it is in */
    twi_device *source;          /* of a copy */
    size_t bytes;                /* of a copy */
    size_t workspace;            /* bytes of the run's */
    const void *touches;         /* as its kernel's prepare() says; NULL: nothing else */
    bool copies_strings;
    twi_wait *waits;
    int num_waits;
    twi_segment *segment;        /* of which a part begins here, up to segment_end; NULL: none */
    int segment_end;
    const twi_segment *within;   /* that it is a step of; NULL: none */
    int number;                  /* there */
    const twi_node *node;         /* for messages and traces */
    int64_t started_ns, ended_ns; /* of the latest run, when traced */
    tw_time_kind kind;           /* what its time is spent on; run/waterfall.c says */
    int64_t late_ns, slow_ns;    /* delays before it starts and before it ends, in traced runs; for tests of what measures
                                    time */
} twi_step;

enum { TWI_WORKSPACES = 3 };

typedef struct twi_list {
    twi_device *device;
    twi_step *steps;
    int count;
    void *timeline;              /* of a device that tells when it did what: marks 2 i and 2 i + 1 are before and behind
                                    step i; NULL: the host sees it, or nobody has asked yet */
    int64_t *marks;              /* [2 count] what it has told */
    size_t arena_bytes;          /* buffers and workspace of a step */
    size_t workspaces[TWI_WORKSPACES]; /* where they lie in the arena: behind the buffers, in this order */
    int num_workspaces;          /* kernels that have one */
    void *kept;                  /* constants and strings, owned by the plan; NULL until it is held */
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
    twi_region *region;          /* of nodes in the order of the plan */
    twi_arena arena;
    twi_list *lists;             /* [num_lists], one for each device of the set, in its order */
    int num_lists;
    twi_segment *segments;
    int num_segments;
    bool ran;                    /* once, step by step: libraries load what they need then, which cannot be recorded */
    twi_port *feeds, *fetches;
    int num_feeds, num_fetches;
    twi_resource **needed;       /* variables that must have a value before the run */
    twi_resource **assigned;     /* variables that have one afterwards */
    int num_needed, num_assigned;
    twi_node **origins;          /* [num_origins] by id in the user's graph: the first copy of the node; NULL: none */
    int num_origins;
    bool held;                   /* it has its constants, and its variables have memory */
    tw_plan_info info;
    int64_t began_ns, ended_ns;  /* of the latest run, when traced */
    bool has_kinds;              /* its steps' */
    bool delayed;                /* some step is (late_ns, slow_ns): then nothing is replayed */
} twi_plan;

/* Takes no memory of any device but, for a moment, what a card tries algorithms on. */
tw_status twi_plan_create(const twi_request *request, twi_plan **plan, tw_error *error);
void twi_plan_destroy(twi_plan *plan); /* NULL is fine */
/* Gives its variables their memory, and the plan its constants, unless they have it; before it is bound. */
tw_status twi_plan_hold(twi_plan *plan, tw_error *error);
/* Tells the plan where the devices' arenas lie (arenas[num_lists]); before the first run and whenever one has moved. */
void twi_plan_bind(twi_plan *plan, void *const *arenas);

/* ---- the stages, each in the file of its name (references.c serves specialize.c) ------------------------------------------------------------------ */

/* A plan under construction. */
typedef struct twi_planning {
    const twi_request *request;
    twi_plan *plan;
    twi_rewriting rewriting;     /* region */
    int *groups;                 /* [devices] the first that it records together with; -1: it does not record */
    tw_error *error;
} twi_planning;

/* Copies what the fetches need into the region with every shape known, feeds cut out, constants folded. */
tw_status twi_specialize(twi_planning *p);
/* A read of the variable behind a handle for a node that takes a reference to it as a value: after these controls, and
 * after `writer` if there is one. */
tw_status twi_read_reference(twi_planning *p, twi_value handle, twi_value writer, const tw_node *reader,
                             const twi_value *controls, int num_controls, twi_value *value);
/* The node's attributes as its form on handles wants them. */
tw_status twi_handle_attrs(twi_planning *p, const tw_node *node, const twi_op *form, twi_attrs *attrs);
/* Those of a RestoreV2 with the shapes of what it restores. */
tw_status twi_restored_attrs(twi_planning *p, const tw_node *node, twi_attrs *attrs);
/* Gives every node its device. */
tw_status twi_assign_devices(twi_planning *p);
/* Puts a _Copy on each edge between devices; one tensor crosses to one device once. */
tw_status twi_partition(twi_planning *p);
/* Makes neighbours of the members of a rendezvous, one on each device. */
tw_status twi_rendezvous(twi_planning *p);
/* Whether `node`, which comes after `before` on another device, need not wait for it: both are members of a rendezvous,
 * which sees to that, and says who is late. */
bool twi_share_rendezvous(const twi_node *node, const twi_node *before);
/* Finds a kernel for every node and prepares it. Notes a refusal where the plan had better be made again: a node of the
 * user's in the placement, an op that a rewrite made in p->refused. */
tw_status twi_prepare_tasks(twi_planning *p);
/* Lets reads of a variable be its memory itself where order allows, puts readers before writers, sorts (what a device
 * records together), numbers positions. */
tw_status twi_order(twi_planning *p);
/* Of twi_order(): lets reductions between devices be done beside the towers' other work. */
tw_status twi_overlap(twi_planning *p);
/* Makes buffers by lifetime and gives them offsets. Needs positions. */
tw_status twi_assign_memory(twi_planning *p);
/* Writes down the steps of each device and what they wait for. */
tw_status twi_make_lists(twi_planning *p);

/* Of the devices that nodes are assigned to: which record together. Before twi_order(). */
tw_status twi_group_devices(twi_planning *p);
/* True for a step that breaks a recording off: it copies into the group, or looks at the host. */
bool twi_breaks_recording(const twi_planning *p, const twi_node *node);
/* Finds what devices may record; and drops what they have recorded, because something lies elsewhere now. */
tw_status twi_find_segments(twi_planning *p);
void twi_forget_recordings(twi_plan *plan);

/* ---- report.c: what a plan says of itself ---------------------------------------------------------------------- */

/* What became of a node of the user's graph, and which tensors it makes cross between devices: fills the second half of
 * the explanation. */
tw_status twi_plan_explain(const twi_plan *plan, const tw_node *node, twi_arena *arena, tw_explanation *explanation,
                           tw_error *error);
/* Charges the groups of moves with the bytes that cross because of them. */
void twi_plan_charge(const twi_plan *plan, twi_placement *placement, tw_moves *moves);

/* ---- usage.c: who holds which memory ---- */

typedef TWI_ARRAY(tw_memory_item) twi_memory_items;
/* Constants of the plan on a device, and what its arena holds at its fullest; *fullest is the node that then runs, or
 * NULL. Names are the plan's. */
tw_status twi_plan_list_constants(const twi_plan *plan, int device, twi_memory_items *items, tw_error *error);
tw_status twi_plan_list_arena(const twi_plan *plan, int device, twi_memory_items *items, const char **fullest,
                              tw_error *error);

/* A node of a reduction of the towers' gradients; copies are not marked. */
bool twi_is_reduction(const twi_node *node);
/* A node whose output is the handle of a variable. */
bool twi_makes_variable(const twi_node *node);
/* True when output 0 of the node is its input 0's memory. */
bool twi_task_shares(const twi_task *task);
twi_buffer *twi_buffer_of(twi_value output);
size_t twi_buffer_room(const twi_buffer *buffer); /* its bytes, rounded up as memory is laid out */

#endif
