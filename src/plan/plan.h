/* plan.h - what a graph becomes for one set of feeds, fetches and shapes: prepared kernels in order, a list for each
 * device, every byte of memory assigned. How it is made: plan/stages.h.
 *
 * Nothing here runs; src/run walks the lists. All that is slow happens here, so that running allocates nothing, looks
 * nothing up and knows no names. */
#ifndef TWI_PLAN_H
#define TWI_PLAN_H

#include "device/resources.h"
#include "ir/ir.h"
#include "place/place.h"

#include <tower/session.h> /* tw_plan_info */

typedef struct twi_feed_shape {
    tw_output output;
    tw_dtype dtype;
    tw_shape shape;
    tw_tensor *value;            /* what the plan may take for granted, as shapes depend on it; NULL: any will do */
    bool dead;                   /* it lies in a branch that was not taken before the border; it has no shape */
} twi_feed_shape;

/* What a plan made for these values takes a value's shape for: of a list that of its elements (tensor/variant.h). */
tw_shape twi_feed_shape_of(const tw_tensor *value);

/* ---- borders: plans of parts --------------------------------------------------------------------------------- */

/* A value that the part behind a border is fed with. */
typedef struct twi_crossing {
    tw_output output;            /* index -1: nothing but whether the node has run, in its branch */
    int fetch;                   /* the plan's fetch that gives it; -1: it is */
    int feed;                    /* a feed of the plan itself; -1: it is */
    tw_tensor *constant;         /* known since planning */
    bool dead;                   /* it lies in a branch that this plan never takes */
    bool by_value;               /* a shape behind depends on what is in it */
} twi_crossing;

/* An assignment that gives a variable another shape than it has: it is done between the parts. */
typedef struct twi_reshape {
    const char *variable;        /* its name */
    int value;                   /* which crossing is the value, */
    int taken;                   /* and which says whether the branch was taken that the assignment is in; -1: it is in none */
} twi_reshape;

/* Where a plan ends because shapes behind depend on values that it computes (border.c). What is left to do is a cut of
 * the same graph: crossing values are fed, what was wanted and is not there yet is fetched. */
typedef struct twi_border {
    twi_crossing *crossings;
    int num_crossings;
    twi_reshape *reshapes;
    int num_reshapes;
    tw_output *fetches;          /* [num_fetches] of those wanted, what lies behind */
    int *places;                 /* [num_fetches] which of those wanted they are */
    int num_fetches;
    const bool *done;            /* [num_done] by id in the user's graph: what need not and must not be done again */
    const bool *late;            /* [num_done] what is planned behind it */
    int num_done;
    int depth;                   /* borders before this one */
    const tw_node *cause;        /* the first node whose shape was not known */
} twi_border;

/* What is known of a stack or an array. */
typedef struct twi_series_facts {
    const char *key, *name;      /* of its resource; in the graph */
    struct twi_series_facts *base; /* of which it is the gradient; NULL: of none */
    struct twi_series_facts *handles; /* of a stack: of which handles are pushed; NULL: none are */
    tw_shape shape;              /* of an element */
    bool has_shape, varies;      /* it is known; it differs from element to element */
    bool filled;                 /* somebody puts something into it, */
    tw_tensor *value;            /* which is always this, the table's; NULL: it differs, or nobody knows */
    int64_t size;                /* -1: not known */
} twi_series_facts;

typedef struct twi_series_table {
    twi_map by_name;
    twi_arena arena;
    TWI_ARRAY(tw_tensor *) values; /* of elements that are always the same */
    int number;                  /* of the plan that has them; 0: it has none yet */
} twi_series_table;

/* What is to be planned. Everything is borrowed for the call. */
typedef struct twi_request {
    tw_graph *graph;
    twi_placement *placement;    /* of the graph */
    int64_t soft_budget;         /* as in tw_session_options */
    const twi_feed_shape *feeds;  /* [num_feeds] */
    int num_feeds;
    bool any_fed_shapes;         /* as in tw_session_options */
    const tw_output *fetches;    /* [num_fetches]; index -1: only run the node */
    int num_fetches;
    const twi_border *behind;    /* which border the cut lies behind; NULL: none */
    tw_devices *devices;
    twi_resource_table *resources;
    const char *disable;         /* rewrites to leave out; "reuse": memory reuse */
    bool plain_kernels;
    bool alone;                  /* of several tasks, by this one for itself: what a kernel calls */
    bool one_thread;             /* for each kernel: such plans run side by side */
    const struct twi_frames *frames; /* of a loop's round: those of the graph, and */
    int frame;                   /* which one it is; 0: it is a run of the graph */
    int home;                    /* device on which feeds enter */
    int lane;                    /* whose plan it will be */
    bool beside;                 /* of several tasks others may plan something else before this, in another lane */
    twi_series_table *series;    /* of a loop's round: the run's stacks and arrays, and */
    struct twi_copies *copies;   /* what its plan uses besides (plan/specialize.h); NULL: it is none of a plan */
    int num_changing;            /* how many of the feeds the first fetches but one become in the next round */
    const struct twi_planner *planner; /* of whom loops ask plans for their rounds while they run (run/lane.h) */
} twi_request;

enum { TWI_ALONE = -1 }; /* instead of a lane's number: its runs have nothing to do with other tasks */
enum { TWI_MOST_LANES = 1024, TWI_FIRST_GIVEN = 512 }; /* of a session; those from there on it gives out, to queue runners;
                                                           what is within them has numbers behind them */

/* Of the loops of a lane's plans that span tasks. One serves all that lie equally deep: in each task they are steps of
 * one list, the first device's, so one comes after the other. So every task knows the lanes of loops that it has not
 * planned yet, and what others plan meanwhile changes none. */
static inline int twi_lane_within(int lane)
{
    return lane == TWI_ALONE ? TWI_ALONE : lane + TWI_MOST_LANES;
}

/* A step: the list of which device, and where in it. */
typedef struct twi_step_id {
    int device, position;
} twi_step_id;

/* What a step that is not always done looks at first; of a step that always is, NULL. */
typedef struct twi_condition {
    const bool *holds;           /* it is skipped where this is false; NULL: never */
    twi_resource **needed;       /* variables that must have a value when it begins: whether they have is not known before */
    twi_resource **assigned;     /* have one when it has ended */
    int num_needed, num_assigned;
} twi_condition;

/* A loop: a plan that is run again and again, by one step. Its feeds are the values that change from round to round,
 * and after them those that do not; its fetches whether there is another round, the values for it, what leaves the
 * loop, and all feeds, so that these keep their memory. */
typedef struct twi_loop {
    struct twi_plan *plan;
    int num_changing, num_results; /* num_feeds and num_fetches are the plan's */
    int device;                  /* of the step, and the only one with a list; -1: there are several */
    bool spans;                  /* tasks: all of them run its rounds together, ... */
    int lane;                    /* ... in the one within their plan's; else TWI_ALONE */
    void **arenas;               /* [devices] of the plan */
    bool owns_arenas;            /* else they are the step's workspace */
    struct twi_step **steps;     /* [num_steps] of that list, what does something */
    int num_steps;
    struct twi_dispatchers *dispatchers; /* NULL: one list needs none */
    void (*close)(struct twi_dispatchers *dispatchers);
    struct twi_chained *chained; /* its rounds run as chains, for shapes change in it, and `plan` is NULL; else NULL */
} twi_loop;

/* What a loop's rounds are cut of, where each is planned for the shapes that come (run/chain.h). */
typedef struct twi_chained {
    tw_output *fed, *fetches; /* as a loop's plan has them, but that no feed is fetched */
    tw_tensor **known;        /* [num_fed] what does not change and is known already; NULL: it comes */
    int num_fed, num_fetches;
    int frame;                /* whose round it is */
    bool ends;                /* nodes of it take from a queue or a data set */
    twi_series_table *series; /* the run's stacks and arrays */
    const struct twi_planner *planner;
    struct twi_rounds *rounds; /* what they run in (run/rounds.h); NULL: none has yet */
    void (*close)(struct twi_rounds *rounds);
} twi_chained;

/* One entry of a device's list, as small as walking it allows: what else there is to know of steps stands in tables
 * beside the list. */
typedef struct twi_step {
    const twi_kernel *kernel;    /* NULL: a copy if `source` is not NULL, else nothing */
    twi_run run;
    twi_device *device;          /* whose list it is in */
    twi_device *source;          /* of a copy */
    size_t bytes;                /* of a copy */
    twi_condition *condition;    /* NULL: it is always done */
    twi_loop *loop;              /* of a loop */
    int beside;                  /* so many steps from this one on are loops that may run side by side; 0: none */
    const twi_step_id *waits;    /* steps of other devices that it begins after */
    int num_waits;
    int num_sent;                /* the last of these: copies to devices of other tasks of what this one's task has. They
                                    are done when that has been sent */
    tw_dtype owned;              /* of a copy whose values own memory: their type, else TW_INVALID_DTYPE */
    bool awaited;                /* some step or segment waits for it, so progress is reported when it has ended */
} twi_step;

/* ---- what devices record --------------------------------------------------------------------------------------- */

/* A step of a segment, and what recording it needs to know and finds out. */
typedef struct twi_recorded {
    twi_step_id id;
    size_t workspace;            /* bytes of its run's */
    const void *touches;         /* as its kernel's prepare() says; NULL: nothing else */
    int *after, num_after;       /* numbers of the steps of the segment that it came after when it was recorded */
} twi_recorded;

/* Steps of one phase, neighbours in the list of each device of a group that records together, which may be recorded and
 * replayed as one. The first part's device leads: it replays, and waits for what all of them wait for outside; the
 * others follow. */
typedef struct twi_segment {
    struct twi_part *parts;
    int num_parts;
    twi_recorded *steps;         /* of all parts, in an order that runs nothing before what it needs */
    int num_steps;
    twi_step_id *waits;
    int num_waits;
    bool refused;                /* recording it failed */
    void *recording;             /* of the leader; NULL: none yet */
} twi_segment;

/* What is in the list of one device. */
typedef struct twi_part {
    const twi_segment *segment;
    int device, first, end;      /* positions */
} twi_part;

/* Where a step of a list is in a segment. */
typedef struct twi_member {
    const twi_part *part;        /* NULL: in none */
    int number;                  /* in the segment's steps */
} twi_member;

/* ---- lists ------------------------------------------------------------------------------------------------------- */

enum { TWI_WORKSPACES = 3 };

typedef struct twi_list {
    twi_device *device;
    twi_step *steps;
    int count;
    const twi_node **nodes;      /* [count] whose work the steps are */
    twi_member *members;         /* [count] of segments; NULL: the device records nothing */
    size_t arena_bytes;          /* buffers and workspace of a step */
    size_t workspaces[TWI_WORKSPACES]; /* where they lie in the arena: behind the buffers, in this order */
    int num_workspaces;          /* kernels that have one */
    void *kept;                  /* constants and strings, owned by the plan; NULL until it is held */
    size_t kept_bytes;
    tw_error error;              /* of the step that failed in the latest run */
} twi_list;

/* ---- what is measured -------------------------------------------------------------------------------------------- */

typedef struct twi_span {
    int64_t started_ns, ended_ns;
    tw_time_kind kind;           /* what the step's time is spent on */
} twi_span;

/* Of one list. */
typedef struct twi_track {
    twi_span *spans;             /* [count] */
    void *timeline;              /* of a device that tells when it did what: marks 2 i and 2 i + 1 are before and behind
                                    step i; NULL: the host sees it */
    int64_t *marks;              /* [2 count] what it has told */
} twi_track;

/* The latest traced run. */
typedef struct twi_trace {
    bool on;                     /* the run at hand is traced */
    bool gathered;               /* what other tasks' devices did is in it */
    int64_t began_ns, ended_ns;
    twi_track *tracks;           /* [num_lists] */
} twi_trace;

/* How long a step of a traced run is held up on purpose, for tests of what measures time. */
typedef struct twi_step_delay {
    int64_t before_ns, behind_ns; /* it starts; it has done its work */
} twi_step_delay;

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* Where a feed goes or a fetch comes from. */
typedef struct twi_port {
    twi_device *device;          /* NULL: a fetch without a value */
    struct twi_buffer *buffer;   /* NULL: it has no value in the plan */
    bool is_again;               /* of a fetch: one before it is of the same memory */
    bool is_made;                /* at `memory` lies the address of a tensor that a kernel made */
    void *memory;
    tw_dtype dtype;
    tw_shape shape;
    size_t bytes;
    const char *name;            /* of a fetch: the node's, for messages */
    const bool *holds;           /* of a fetch: false where it has no value; NULL: it always has */
    twi_device *guard;           /* where `holds` lies */
    bool dead;                   /* of a fetch: it had none in the latest run */
    tw_tensor *result;           /* of a fetch, while it runs: what its value goes into */
    bool lent;                   /* a feed that may be read where it lies, for nobody writes over it; a fetch that may
                                  * be made where it is to lie */
    void *where;                 /* of such a one: the tensor's memory, if it is read or made there, else `memory` */
} twi_port;

/* What points at a port that is lent. */
typedef struct twi_pointer {
    void **at;
    const twi_port *port;
} twi_pointer;

typedef struct twi_plan {
    twi_region *region;          /* of nodes in the order of the plan */
    twi_arena arena;
    twi_list *lists;             /* [num_lists], one for each device of the set, in its order */
    int num_lists;
    int lane;                    /* whose plan it is: runs of different ones overlap */
    int depth;                   /* to which loops that span tasks lie in it; 0: there are none */
    twi_segment *segments;
    int num_segments;
    TWI_ARRAY(twi_loop *) loops;
    twi_series_table series;     /* of a run's plan */
    bool *ends;                  /* [tasks] who take from queues or data sets, of whom all hear where there is no more;
                                  * NULL: nobody does */
    bool apart;                  /* it is one task's, of several, and gives nothing: the others need not plan or run it */
    bool ran;                    /* once, step by step: libraries load what they need then, which cannot be recorded */
    twi_port *feeds, *fetches;
    int num_feeds, num_fetches, num_wanted; /* fetches: those wanted, then what crosses the border */
    TWI_ARRAY(twi_pointer) pointers; /* at feeds and fetches that are lent */
    twi_border *border;          /* NULL: it has none, and gives all that was wanted */
    int *guards_of_fetches;      /* [num_fetches] which of the region's results says whether it has a value; -1: none */
    twi_resource **needed;       /* variables that must have a value before the run */
    twi_resource **assigned;     /* variables that have one afterwards */
    int num_needed, num_assigned;
    TWI_ARRAY(const twi_resource *) growing; /* variables whose shape the graph leaves open: it is for those they have */
    twi_node **origins;          /* [num_origins] by id in the user's graph: the first copy of the node; NULL: none */
    int num_origins;             /* 0: it is a loop's, and nobody asks */
    bool held;                   /* it has its constants, and its variables have memory */
    tw_plan_info info;
    twi_trace *trace;            /* NULL: its runs are not traced (run/trace.c) */
    twi_step_delay **delays;     /* [num_lists][count]; NULL: nothing is delayed. Where something is, nothing is replayed */
    bool checked;                /* the run at hand looks at the numbers of each step (run/numbers.h); nor is it then */
} twi_plan;

/* Whether one call does all of a segment. */
static inline bool twi_is_replayed(const twi_plan *plan, const twi_segment *segment)
{
    return segment->recording && !plan->delays && !plan->checked;
}

static inline twi_span *twi_span_of(const twi_plan *plan, twi_step_id id)
{
    return &plan->trace->tracks[id.device].spans[id.position];
}

static inline int twi_leader(const twi_segment *segment)
{
    return segment->parts[0].device;
}

/* Takes no memory of any device but, for a moment, what a card tries algorithms on. */
tw_status twi_plan_create(const twi_request *request, twi_plan **plan, tw_error *error);
void twi_plan_destroy(twi_plan *plan); /* NULL is fine */
/* Gives its variables their memory, and the plan its constants, unless they have it; before it is bound. */
tw_status twi_plan_hold(twi_plan *plan, tw_error *error);
/* Tells the plan where the devices' arenas lie (arenas[num_lists]); before the first run and whenever one has moved. */
void twi_plan_bind(twi_plan *plan, void *const *arenas);
/* Leads who reads and makes what is lent to where that lies now. */
void twi_plan_lead(const twi_plan *plan);

/* Among several tasks: whether a step waits for a message of a task that is not its own device's. It says that what the
 * step waits for there is done, and has the bytes if they are copied from there. */
bool twi_step_needs(const twi_plan *plan, const twi_step *step, int task);

/* ---- report.c: what a plan says of itself ---------------------------------------------------------------------- */

/* What became of a node of the user's graph, and which tensors it makes cross between devices: fills the second half of
 * the explanation. */
tw_status twi_plan_explain(const twi_plan *plan, const tw_node *node, twi_arena *arena, tw_explanation *explanation,
                           tw_error *error);
/* Fills nodes[plan->region->nodes.count], but for lane and plan; texts are copied into the arena. False when out of
 * memory. */
bool twi_plan_list_nodes(const twi_plan *plan, twi_placement *placement, twi_arena *arena, tw_planned_node *nodes);
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

#endif
