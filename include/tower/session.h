/* session.h - running a graph on devices.
 *
 * A session holds the values of a graph's variables and everything prepared for running it. The first run with a new
 * combination of feeds (and their shapes) and fetches places, rewrites and plans; later ones only run. Runs of one
 * session from several threads are safe: they take turns. */
#ifndef TOWER_SESSION_H
#define TOWER_SESSION_H

#include <tower/device.h>
#include <tower/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_session tw_session;

/* Zero values are sensible. */
typedef struct tw_session_options {
    tw_devices *devices;           /* borrowed; NULL: the session opens its own with default options. Sessions may share
                                      them: each has threads and memory of its own, so their runs overlap */
    bool allow_soft_placement;     /* an impossible device is replaced by the best existing one, and reported */
    bool log_device_placement;     /* sends TensorFlow's "name: (Op): device" lines to `placement_log` */
    void (*placement_log)(void *user, const char *line);
    void *placement_log_user;
    const char *disable;           /* comma-separated names of rewrites to leave out ("fold,merge,collective,fuse,update") or
                                      "all"; also "reuse" for memory reuse. NULL: none */
    bool plain_kernels;            /* reference kernels only */
    bool trace;                    /* keep times of every kernel of the latest run (tw_session_write_trace) */
} tw_session_options;

/* Yours: tw_session_destroy(). The graph is borrowed and must outlive the session; it may grow between runs, not during one.
 * Fails with the graph's own error if that has one. options NULL: all zero. */
TW_API tw_status tw_session_create(tw_graph *graph, const tw_session_options *options, tw_session **session,
                                   tw_error *error);
TW_API void tw_session_destroy(tw_session *session); /* NULL is fine; waits for runs in progress */

typedef struct tw_feed {
    tw_output output;  /* usually a Placeholder's; any output may be fed */
    tw_tensor *tensor; /* borrowed for the run */
} tw_feed;

/* Runs what the fetches need. A fetch with index -1 only runs its node. results[i] receives a tensor of yours (NULL for
 * index -1). It may hold one from an earlier run: if nobody else refers to it and type and shape fit, it is filled
 * again, otherwise released and replaced; so a loop that keeps its results array allocates nothing. results may be NULL
 * if nothing is wanted. On failure no result is replaced; a tensor that was to be filled again may be so in part. */
TW_API tw_status tw_session_run(tw_session *session, const tw_feed *feeds, int num_feeds, const tw_output *fetches,
                                int num_fetches, tw_tensor **results, tw_error *error);

/* Where the graph's tw_input() nodes of that source get their values: `fill` writes the next batch of `tower` into
 * outputs[i], host memory of the declared types and shapes. It is called from dispatcher threads, for several towers at
 * once, and may wait. `user` must outlive the session or the next call of this for the same name. */
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

/* The device a node was placed on, in full; NULL before it was placed. Borrowed from the session. */
TW_API const char *tw_session_device(tw_session *session, const tw_node *node);
/* Why it is there, in one sentence; NULL before it was placed. */
TW_API const char *tw_session_why(tw_session *session, const tw_node *node);

/* What a plan holds and moves, for the latest run's plan. */
typedef struct tw_plan_info {
    int nodes, kernels, copies;   /* after rewriting; kernels that run; copies between devices */
    int64_t copied_bytes;         /* between devices, a step */
    int64_t arena_bytes;          /* buffers of one step, over all devices */
    int64_t variable_bytes;       /* over all devices */
    int64_t constant_bytes;
} tw_plan_info;
TW_API tw_status tw_session_plan_info(tw_session *session, tw_plan_info *info, tw_error *error);

/* Writes the latest traced run as a Chrome trace (opens in Perfetto): one row a device, one slice a kernel. */
TW_API tw_status tw_session_write_trace(tw_session *session, const char *path, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
