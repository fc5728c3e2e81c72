/* session.h - running a graph on devices.
 *
 * A session holds the values of a graph's variables and everything prepared for running it. The first run with a new
 * combination of feeds (and their shapes) and fetches places, rewrites and plans; later ones only run.
 *
 * Any thread may call. Runs take turns, unless they are in different lanes (tw_session_run_in): then they overlap. */
#ifndef TOWER_SESSION_H
#define TOWER_SESSION_H

#include <tower/device.h>
#include <tower/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_session tw_session;

/* Where soft placement puts what cannot be where it was asked for. */
typedef enum tw_soft_choice {
    TW_SOFT_LOWEST, /* on the first device that can run it: GPUs before CPUs, lower numbers first; as in TensorFlow */
    TW_SOFT_WRAP,   /* "/gpu:5" of two GPUs on number 5 mod 2, so that the load of missing devices is spread */
    TW_SOFT_CPU,    /* on the CPU, where that can run it */
} tw_soft_choice;

/* Zero values are sensible. */
typedef struct tw_session_options {
    size_t size; /* TW_SIZED(tw_session_options) sets it: see language.h */
    tw_devices *devices;           /* borrowed; NULL: the session opens its own with default options. Sessions may share
                                      them: each has threads and memory of its own, so their runs overlap */
    bool allow_soft_placement;     /* an impossible device is replaced by the best existing one, and reported */
    tw_soft_choice soft_choice;
    int64_t soft_budget;           /* the most bytes a step may copy between devices because of soft placement; a plan that
                                      costs more is refused, with a table of what moved. 0: any; below 0: none at all */
    bool log_device_placement;     /* sends TensorFlow's "name: (Op): device" lines to `placement_log` */
    void (*placement_log)(void *user, const char *line); /* NULL: to the log (tw_set_log), as information */
    void *placement_log_user;
    const char *disable;           /* comma-separated names of rewrites to leave out, such as "fold,merge", or "all";
                                      also "reuse" for memory reuse. NULL: none. tw_rewrite_name() gives them; one that
                                      there is not is refused, with those that there are */
    bool plain_kernels;            /* reference kernels only */
    bool trace;                    /* keep times of every kernel of the latest run (tw_session_write_trace) */
    int kept_plans;                /* a plan is made for the shapes of what is fed, and of values that shapes depend on. So
                                      many are kept for shapes that come again; what was not used for longest goes. 0: 64 */
    bool any_fed_shapes;           /* a feed may contradict the shape that is known of its output, as in TensorFlow's C
                                      API: the plan is then for what is fed, as far as that goes */
} tw_session_options;

/* The names that `disable` takes, numbered from 0 ("all", "fold", ...); static. NULL: there is none of this number. */
TW_API const char *tw_rewrite_name(int i);

/* Whether device number `device` of a set has a kernel for the node's op and type, so that a device function need not
 * ask for what cannot be. A kernel may still refuse a node for its attributes or shapes when a run is planned. */
TW_API bool tw_devices_have_kernel(const tw_devices *devices, int device, const tw_node *node);

/* Yours: tw_session_destroy(). The graph is borrowed and must outlive the session; it may grow between runs, and during
 * one while the session is held (tw_session_hold).
 * Fails with the graph's own error if that has one. options NULL: all zero. */
TW_API tw_status tw_session_create(tw_graph *graph, const tw_session_options *options, tw_session **session,
                                   tw_error *error);
TW_API void tw_session_destroy(tw_session *session); /* NULL is fine; cancels runs in progress and waits for them */

/* Between the two the session does not look at its graph, which may grow although runs are under way: one that has to
 * plan waits. Whoever holds it calls nothing else of the session, and is the one that releases it. */
TW_API void tw_session_hold(tw_session *session);
TW_API void tw_session_release(tw_session *session);

typedef struct tw_feed {
    tw_output output;  /* usually a Placeholder's; any output may be fed */
    tw_tensor *tensor; /* borrowed for the run */
} tw_feed;

/* Runs what the fetches need. A fetch with index -1 only runs its node. results must begin as NULLs
 * (`tw_tensor *results[2] = {NULL, NULL};`): results[i] receives a tensor of yours (for index -1 it stays as it is). In
 * later runs it may hold that tensor: if nobody else refers to it and type and shape fit, it is filled again, otherwise
 * released and replaced; so a loop that keeps its results array allocates nothing. The same tensor twice, or one that
 * is also fed, is refused. results may be NULL if nothing is wanted. On failure no result is replaced; a tensor
 * that was to be filled again may be so in part. */
TW_API tw_status tw_session_run(tw_session *session, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                                int num_fetches, tw_tensor **results, tw_error *error);

/* So many runs in a row: what is fetched is of the last. The threads of the devices do not come back in between, and a
 * GPU gets the steps ahead of time and never waits for the host, which for steps of a fraction of a millisecond is most
 * of the time. *done (NULL is fine): how many have ended; fewer than `steps` if one fails. Numbers are those of as many
 * calls of tw_session_run(). */
TW_API tw_status tw_session_run_steps(tw_session *session, int64_t steps, const tw_feed *feeds, int num_feeds,
                                      const tw_output *fetches, int num_fetches, tw_tensor **results, int64_t *done,
                                      tw_error *error);

/* The same for what most loops want: nothing is fed and nothing fetched. */
TW_API tw_status tw_session_repeat(tw_session *session, tw_output node, int64_t steps, tw_error *error);

/* A run in a lane of its own. Runs of one lane take turns and share memory and threads; runs of different lanes
 * overlap, each lane with its own, made when it is first used. tw_session_run() is lane 0, and so is everything below
 * that reads or sets what outlives a run (sources, variables, streams); lanes go up to 1023.
 *
 * Lanes share the variables and random streams, and nothing puts their accesses in order: when a run in one lane
 * changes what a run in another looks at, the latter sees old values, new ones, or some of each, as in TensorFlow.
 * Who cares keeps such runs apart. A run that waits (for a queue, in a source) holds up its own lane only. */
TW_API tw_status tw_session_run_in(tw_session *session, int lane, const tw_feed *feeds, int num_feeds,
                                   const tw_output *fetches, int num_fetches, tw_tensor **results, tw_error *error);

/* Of several tasks, who gets what is fetched: two of them (second -1: one), or all (first -1). */
typedef struct tw_receivers {
    int first, second;
} tw_receivers;

/* The same, where results[i] are wanted by to[i] alone, which saves sending them to all others: there they are tensors
 * of the same shape whose elements mean nothing. Strings and lists of tensors go to all, and so does all that a run
 * fetches in which a shape depends on values. to NULL: all. */
TW_API tw_status tw_session_run_to(tw_session *session, int lane, const tw_feed *feeds, int num_feeds,
                                   const tw_output *fetches, int num_fetches, const tw_receivers *to,
                                   tw_tensor **results, tw_error *error);
/* Of several tasks, the one on which feed i of a lane's latest run or preparation enters: what others feed there is not
 * looked at. It is the one that alone wants it, else the first. -1: nobody wants it, or nothing was prepared. */
TW_API int tw_session_fed_task(tw_session *session, int lane, int i);
/* Of several tasks, the one whose devices have all of a lane's latest run or preparation, which gives no values: the
 * others need not call it, and what they call does nothing. *task -1: several have a part in it. */
TW_API tw_status tw_session_lane_task(tw_session *session, int lane, int *task, tw_error *error);

/* A lane that nobody has been given yet, from 1023 down to 512; who picks lanes himself takes them from 1 up. Queue
 * runners have theirs from here. It is never given back. */
TW_API tw_status tw_session_take_lane(tw_session *session, int *lane, tw_error *error);

/* From now on runs look at every floating-point number that their kernels take and make, and at the variables that they
 * write, or not any more. A run then ends with TW_OUT_OF_RANGE at the first node that makes a NaN or an infinity; the
 * message names it, its device, and the ranges of what it takes. What is not finite already when a run begins (in a
 * feed, a variable, a constant) is told of the first node that passes it on. For finding out: a step takes several
 * times as long. A node that makes an infinity which another is there to remove ends the run as well. */
TW_API tw_status tw_session_check_numbers(tw_session *session, bool on, tw_error *error);

/* Ends runs in progress, in all lanes: what waits in a queue is woken, what computes ends with its present kernel. They
 * and all later runs fail with TW_CANCELLED; variables can still be read. Does not wait for anything. */
TW_API void tw_session_cancel(tw_session *session);

/* The same for one lane: the run in it, and all that would follow there. A number that is no lane is none. */
TW_API void tw_session_cancel_lane(tw_session *session, int lane);

/* Once no run is in the lane: runs may begin there again. So a run that took too long is ended, and no other. Lanes
 * that the session gives out stay cancelled, and so does a session. */
TW_API void tw_session_reopen_lane(tw_session *session, int lane);

typedef struct tw_feed_shape {
    tw_output output;
    tw_shape shape; /* wholly known */
} tw_feed_shape;

/* Places and plans such a run without running it: what may fail for another reason than the data fails now, and what
 * it will take is known (tower/explain.h), but no memory of any device is taken before the run. */
TW_API tw_status tw_session_prepare(tw_session *session, const tw_feed_shape *feeds, int num_feeds,
                                    const tw_output *fetches, int num_fetches, tw_error *error);
TW_API tw_status tw_session_prepare_in(tw_session *session, int lane, const tw_feed_shape *feeds, int num_feeds,
                                       const tw_output *fetches, int num_fetches, tw_error *error);

/* Where the graph's tw_input() nodes of that source get their values: `fill` writes the next batch of `tower` into
 * outputs[i], host memory of the declared types and shapes. It is called from dispatcher threads, for several towers at
 * once, and may wait. `user` must outlive the session or the next call of this for the same name, which may not come
 * while another lane runs with that source. */
typedef tw_status tw_source_function(void *user, int tower, void *const *outputs, tw_error *error);
TW_API tw_status tw_session_set_source(tw_session *session, const char *source, tw_source_function *fill, void *user,
                                       tw_error *error);

/* Variables by handle of the graph: their values are copied to and from new host tensors. Setting one initializes it.
 * This is what checkpoints use. */
TW_API tw_status tw_session_get_variable(tw_session *session, const tw_variable *variable, tw_tensor **value,
                                         tw_error *error);
TW_API tw_status tw_session_set_variable(tw_session *session, const tw_variable *variable, const tw_tensor *value,
                                         tw_error *error);

/* Random ops draw from streams that go on from run to run; a stream is named after its op's node. Where it stands is a
 * few int64 numbers ([3]), which together with the variables are all that a graph remembers. A session knows the
 * streams of what has run in it so far, in no order that means anything, and those that were set: their ops go on from
 * there. *name is borrowed from the session, *place is yours. */
TW_API int tw_session_num_streams(tw_session *session);
TW_API tw_status tw_session_get_stream(tw_session *session, int i, const char **name, tw_tensor **place,
                                       tw_error *error);
TW_API tw_status tw_session_set_stream(tw_session *session, const char *name, const tw_tensor *place, tw_error *error);

TW_API tw_graph *tw_session_graph(const tw_session *session); /* the one it was created with */
TW_API tw_devices *tw_session_devices(const tw_session *session); /* the options', or its own; borrowed */

/* The device a node was placed on, in full; NULL before it was placed. Borrowed from the session. */
TW_API const char *tw_session_device(tw_session *session, const tw_node *node);
/* Why it is there, in one sentence; NULL before it was placed. */
TW_API const char *tw_session_why(tw_session *session, const tw_node *node);

/* What a plan holds and moves, for the plan of the latest run or preparation; those in lanes that were given out, such
 * as queue runners', do not count. This and the trace wait for that run to end. */
typedef struct tw_plan_info {
    int nodes, kernels, copies;   /* after rewriting; kernels that run; copies between devices */
    int64_t copied_bytes;         /* between devices, a step */
    int64_t arena_bytes;          /* buffers of one step, over all devices */
    int64_t variable_bytes;       /* over all devices; with data sets that lie on them */
    int64_t constant_bytes;
} tw_plan_info;
TW_API tw_status tw_session_plan_info(tw_session *session, tw_plan_info *info, tw_error *error);
/* The same for the latest run of a lane. */
TW_API tw_status tw_session_plan_info_in(tw_session *session, int lane, tw_plan_info *info, tw_error *error);

/* Runs are traced from now on, or not any more, whatever the option says: to look at one of many. A plan that a card
 * has recorded without marks goes on untraced. */
TW_API tw_status tw_session_set_trace(tw_session *session, bool on, tw_error *error);

/* Writes the latest traced run as a Chrome trace (opens in Perfetto): one row a device, one slice a kernel. Of several
 * tasks every one calls it, and task 0 writes; their clocks are compared. */
TW_API tw_status tw_session_write_trace(tw_session *session, const char *path, tw_error *error);

/* ---- where the time went --------------------------------------------------------------------------------------- */

typedef enum tw_time_kind { /* ORDER TIME */
    TW_TIME_COMPUTE,   /* kernels, as long as the least loaded of the towers' devices needed for its own; and updates */
    TW_TIME_IMBALANCE, /* how much longer the device that held the run up needed */
    TW_TIME_REDUCTION, /* bringing gradients together, with the copies that needs */
    TW_TIME_COPIES,    /* all other copies between devices */
    TW_TIME_INPUT,     /* waiting for the next batch, and taking it */
    TW_TIME_LAUNCH,    /* the rest: waking threads, handing steps over, feeding, fetching */
    TW_TIME_KINDS,
} tw_time_kind;

TW_API const char *tw_time_kind_name(tw_time_kind kind); /* "compute" */

/* The wall time of a run, taken apart along the chain of steps that each waited for the one before: what another step
 * hid is not in it. */
typedef struct tw_waterfall {
    double seconds[TW_TIME_KINDS]; /* which add up to total */
    double total;
    double hidden; /* what all devices spent on bringing gradients together beside the chain */
    int slowest;   /* of the towers' devices the one that imbalance is of; -1: there is none */
} tw_waterfall;

/* A kernel that ran, or a copy. */
typedef struct tw_span {
    const char *node, *op; /* as the plan calls them; borrowed from the session, like what follows */
    const char *device;    /* in full */
    const char *kernel;    /* NULL: a copy from another device */
    int plan, number;      /* of the node in its plan (tower/explain.h, tw_session_planned): a run may have parts, with a
                              plan each */
    tw_time_kind kind;     /* never TW_TIME_IMBALANCE */
    double begin, end;     /* seconds from the beginning of the run */
} tw_span;

typedef struct tw_timeline {
    tw_span *spans;        /* part by part, device by device, each in the order in which they ran */
    int num_spans;
    double seconds;        /* of the run */
    int lane, plan;        /* whose nodes these are; of a run in parts the first plan */
} tw_timeline;

/* When each device did what in the latest traced run. Yours: tw_timeline_destroy(), before the session. */
TW_API tw_status tw_session_timeline(tw_session *session, tw_timeline **timeline, tw_error *error);
/* The same for the latest run of a lane. TW_FAILED_PRECONDITION: nothing has run there, or it was not traced. */
TW_API tw_status tw_session_timeline_in(tw_session *session, int lane, tw_timeline **timeline, tw_error *error);
TW_API void tw_timeline_destroy(tw_timeline *timeline); /* NULL is fine */

/* Of several tasks: when the others' devices did what in the latest traced run becomes known to this one, for the calls
 * before and behind this. Every task calls it. */
TW_API tw_status tw_session_gather_times(tw_session *session, tw_error *error);

/* That of the latest run, which must be traced. tower_devices: the full names of the devices that towers run on. A real
 * GPU tells when it did what. */
TW_API tw_status tw_session_waterfall(tw_session *session, const char *const *tower_devices, int count,
                                      tw_waterfall *waterfall, tw_error *error);

/* A delay that is put into a run. */
typedef struct tw_delay {
    tw_time_kind kind; /* not imbalance: that is one device's compute */
    const char *device;
    int tower;         /* of TW_TIME_INPUT: in taking its batch, wherever that happens */
    double seconds;    /* 0: no longer */
} tw_delay;

/* For testing what measures time: from now on traced runs like the latest one are held up in the last step of that kind
 * on that device, or for TW_TIME_LAUNCH before its last kernel. TW_NOT_FOUND if there is none. */
TW_API tw_status tw_session_delay(tw_session *session, const tw_delay *delay, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
