/* explain.h - what a session decided, and why: where each node runs, what became of it, what plans are made of, what
 * soft placement moved, who holds which memory.
 *
 *     tw_session_prepare(session, NULL, 0, &train, 1, &error);      ... or after a run
 *     tw_explanation *why;
 *     if (tw_session_explain(session, node, &why, &error) == TW_OK)
 *         puts(why->sentence);
 *     tw_explanation_destroy(why);
 *
 * Answers are copies of what the session knows at the time; nodes and texts in them are borrowed as it says. */
#ifndef TOWER_EXPLAIN_H
#define TOWER_EXPLAIN_H

#include <tower/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one node ------------------------------------------------------------------------------------------------ */

/* The rule that placed a node's group: itself and all that must run where it runs. */
typedef enum tw_placement_rule {
    TW_PLACED_FREELY,         /* nothing was asked for: the first device that all of the group can run on */
    TW_PLACED_AS_ASKED,       /* the first of those that were asked for */
    TW_PLACED_SOFTLY,         /* what was asked for cannot be: soft placement chose */
    TW_PLACED_WITH_INPUT,     /* Shape, Size, Rank: where their input is */
    TW_PLACED_WITH_CONSUMERS, /* a node without inputs: where all that use it are */
    TW_PLACED_EARLIER,        /* it keeps state: where it was before the graph grew */
    TW_PLACED_NOWHERE,            /* no device has a kernel; a run that needs it fails */
} tw_placement_rule;

/* Why a request could not be met. */
typedef enum tw_obstacle {
    TW_OBSTACLE_NONE,
    TW_OBSTACLE_NO_DEVICE, /* there is no such device */
    TW_OBSTACLE_NO_KERNEL, /* `obstacles` have no kernel there, or none that takes their shapes and attributes */
    TW_OBSTACLE_GROUP,     /* what others of the group ask for excludes it */
} tw_obstacle;

/* Why a device was passed over. */
typedef enum tw_rejection {
    TW_REJECTED_BY_REQUEST, /* something else was asked for, by the node `by` */
    TW_REJECTED_NO_KERNEL,  /* `by`, of the group, has no kernel there */
    TW_REJECTED_LATER,      /* it would do: GPUs come before CPUs, lower numbers first */
    TW_REJECTED_FOR_COPIES, /* it would do, but the input or the consumers are elsewhere */
    TW_REJECTED_STATE,      /* the state is elsewhere: the graph has grown since */
} tw_rejection;

typedef struct tw_rejected_device {
    const char *device; /* in full */
    tw_rejection why;
    const tw_node *by;  /* NULL: nobody in particular */
    const char *refusal; /* of TW_REJECTED_NO_KERNEL: what its kernel says that does not take `by`; NULL: it has none */
} tw_rejected_device;

/* One step of the chain that leads from a node to the one that decides for its group: `node` must run where `with`
 * does. */
typedef enum tw_link_kind {
    TW_LINK_USES,     /* node uses the variable (or other resource) of `with` */
    TW_LINK_USED_BY,  /* the other way round */
    TW_LINK_NAMES,    /* node names `with` in _class: colocation was asked for */
    TW_LINK_NAMED_BY, /* the other way round */
} tw_link_kind;

typedef struct tw_colocation_link {
    const tw_node *node, *with;
    tw_link_kind kind;
} tw_colocation_link;

/* A tensor that crosses between devices in every step. */
typedef struct tw_crossing {
    const char *tensor;    /* the node that makes it, as the plan calls it */
    const char *from, *to; /* devices, in full */
    int64_t bytes;
    bool arrives;          /* the explained node reads it; otherwise makes it */
} tw_crossing;

/* What a plan made of a node. */
typedef enum tw_fate {
    TW_FATE_UNPLANNED, /* no plan needs it; or none was made yet */
    TW_FATE_STEP,      /* a step of its own: `kernel` runs */
    TW_FATE_FREE,      /* it costs nothing: its output is the memory of its input, or of the variable it reads */
    TW_FATE_FED,       /* a run brings its value */
    TW_FATE_CONSTANT,  /* a value of the plan's; computed while planning, unless the node is a Const */
    TW_FATE_JOINED,    /* part of `became`: fused with others, or merged with an equal node */
    TW_FATE_DROPPED,   /* after rewriting nobody wants it any more */
    TW_FATE_LATER,     /* shapes depend on values that a run computes, or that it is fed: planned when these are there */
} tw_fate;

typedef struct tw_explanation {
    const tw_node *node;
    const char *sentence;      /* the reason in one sentence */
    const char *device;        /* in full; NULL: it was not placed */
    const char *requested;     /* what the node itself asks for; "" nothing */
    tw_placement_rule rule;
    const tw_node *decided_by; /* whose request, or place, all of the group follow; often the node itself */
    const char *request;       /* what that node asks for; "" nothing */
    int group_size;            /* nodes that run where it does because they must, itself among them */
    bool gave_way;             /* the node's own request had to: its group runs elsewhere */
    tw_obstacle obstacle;      /* of TW_PLACED_SOFTLY and TW_PLACED_NOWHERE */
    const tw_node **obstacles; /* with any of these left the request still fails, without all of them it is met */
    int num_obstacles;
    const char *refusal;       /* what the kernel there says that does not take the first of them; NULL: there is none */
    tw_rejected_device *rejected; /* all other devices, in the order of preference */
    int num_rejected;
    tw_colocation_link *chain;    /* from the node to decided_by */
    int num_links;

    tw_fate fate;              /* in the latest plan that has it */
    const char *became, *became_op; /* name and op in that plan; NULL if it is not there */
    const char *kernel;        /* "onednn", "plain"; NULL: none runs */
    tw_crossing *crossings;
    int num_crossings;
    int64_t crossing_bytes;    /* of all of them, a step */
} tw_explanation;

/* Why a node is where it is, as data. Places the graph if that has not been done. Yours: tw_explanation_destroy(),
 * before the session. */
TW_API tw_status tw_session_explain(tw_session *session, const tw_node *node, tw_explanation **explanation,
                                    tw_error *error);
TW_API void tw_explanation_destroy(tw_explanation *explanation); /* NULL is fine */

/* ---- what plans are made of -------------------------------------------------------------------------------------- */

/* A node of a plan: one of the graph's, or what rewrites and the planner made. */
typedef struct tw_planned_node {
    const char *name, *op; /* as the plan calls them; rewrites' and the planner's own ops begin with "_" */
    const char *device;    /* in full */
    tw_fate fate;          /* TW_FATE_STEP (a copy between devices among them), _FREE, _FED or _CONSTANT */
    const char *kernel;    /* "onednn", "plain"; NULL: none runs */
    int lane;              /* whose plan it is */
    int plan;              /* number among those that the lane keeps, the oldest 0 */
    const int *inputs;     /* [num_inputs] nodes that it takes a value of, by their number in the plan, from 0 */
    int num_inputs;
    int64_t bytes;         /* of its outputs; 0 where they are not made anew: handles, what is passed on */
    const char *why;       /* why the node of the graph whose work it is is there; NULL: it is nobody's, such as a copy */
    int64_t read, written; /* bytes of the tensors and variables that a step's node takes and gives, each once, however
                              often its kernel goes over them, whatever it keeps in between; 0 where nothing runs */
} tw_planned_node;

typedef struct tw_planned {
    tw_planned_node *nodes; /* plan by plan, each in an order in which it could be run on one device */
    int num_nodes, num_plans;
} tw_planned;

/* All plans made so far (tw_session_prepare, tw_session_run), node by node: which ops run, where, by which kernels.
 * Yours: tw_planned_destroy(), before the session's devices. */
TW_API tw_status tw_session_planned(tw_session *session, tw_planned **planned, tw_error *error);
TW_API void tw_planned_destroy(tw_planned *planned); /* NULL is fine */

/* ---- soft placement -------------------------------------------------------------------------------------------- */

/* Nodes of one op that soft placement moved for one reason; or, when what they asked for does not exist, all that asked
 * for it. */
typedef struct tw_move_group {
    const char *op;        /* NULL: of any */
    tw_dtype dtype;        /* of the op; TW_INVALID_DTYPE: it has none */
    const char *asked;     /* the device asked for */
    const char *device;    /* where they run, in full */
    tw_obstacle obstacle;
    const tw_node *because; /* of TW_OBSTACLE_NO_KERNEL: a node of such a group that has no kernel where it was asked to
                               run; an op like the moved ones, or colocated with them */
    const char *refusal;    /* what the kernel there says that does not take it; NULL: there is none */
    const tw_node **nodes;
    int num_nodes;
    int64_t bytes;          /* that cross between devices in a step because of these moves */
} tw_move_group;

typedef struct tw_moves {
    tw_move_group *groups;
    int num_groups, num_nodes;
    int64_t bytes;          /* of all groups */
    bool planned;           /* bytes are those of the latest plan; false: nothing was planned yet, they are 0 */
} tw_moves;

/* What soft placement moved so far. That a kernel does not take a node's shapes is known once a plan is made.
 * Yours: tw_moves_destroy(), before the session. */
TW_API tw_status tw_session_moves(tw_session *session, tw_moves **moves, tw_error *error);
TW_API void tw_moves_destroy(tw_moves *moves); /* NULL is fine */
/* As a table for people, a line for each group, or with `every_node` for each node; "" if nothing moved. Yours:
 * tw_free(). NULL when out of memory. */
TW_API char *tw_moves_table(const tw_moves *moves, bool every_node);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef enum tw_memory_use {
    TW_MEMORY_VARIABLE,  /* trainable, and copies of such */
    TW_MEMORY_SLOT,      /* any other variable: slots of optimizers, averages, counters */
    TW_MEMORY_CONSTANT,  /* and texts */
    TW_MEMORY_BUFFER,    /* the output of a node */
    TW_MEMORY_INPUT,     /* the same, of a node that input comes from, or a copy of that */
    TW_MEMORY_WORKSPACE, /* scratch of the kernel that wants most */
    TW_MEMORY_REST,      /* gaps between buffers, and rounding */
} tw_memory_use;

typedef struct tw_memory_item {
    tw_memory_use use;
    const char *name; /* of the variable, or of the node; NULL for the rest */
    const char *op;   /* of the node */
    int64_t bytes;    /* as they are held */
} tw_memory_item;

/* What a session holds of one device once all that it has prepared has run. */
typedef struct tw_device_memory {
    const char *device; /* in full */
    int64_t limit;      /* of the device; 0: none */
    int64_t variables, constants, arena; /* the arena is shared by all plans: as large as the largest wants */
    int64_t total;      /* the sum of the three */
    const char *fullest; /* the node that runs when the arena is fullest; NULL: it is empty */
    tw_memory_item *items; /* variables, constants, then the arena at its fullest; their bytes add up to the total */
    int num_items;
} tw_device_memory;

typedef struct tw_memory {
    tw_device_memory *devices;
    int num_devices;
} tw_memory;

/* Who holds, or will hold, which memory, by the plans made so far (tw_session_prepare, tw_session_run): to the byte
 * what tw_devices_info() counts for this session afterwards. Yours: tw_memory_destroy(), before the session. */
TW_API tw_status tw_session_memory(tw_session *session, tw_memory **memory, tw_error *error);
TW_API void tw_memory_destroy(tw_memory *memory); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
