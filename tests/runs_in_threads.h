/* runs_in_threads.h - runs of a session in threads of their own, for tests of what waits for what. */
#ifndef RUNS_IN_THREADS_H
#define RUNS_IN_THREADS_H

#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tower/ops.h>
#include <tower/queue.h>
#include <tower/session.h>

static const tw_dtype one_int[] = {TW_INT32};
static const tw_shape scalars[] = {{0, {0}}};

/* A run in a thread of its own. */
typedef struct runner {
    tw_session *session;
    int lane;
    tw_output fetch;
    pthread_t thread;
    atomic_bool ended;
    tw_status status;
    tw_error error;
    tw_tensor *result;
} runner;

static inline tw_session *open_session(tw_graph *g, int gpus)
{
    tw_error error = {0};
    tw_session *s;
    char count[16];
    snprintf(count, sizeof count, "%d", gpus);
    setenv("TOWER_VIRTUAL_GPUS", count, 1);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    return s;
}

static inline void *run_in_thread(void *argument)
{
    runner *r = argument;
    r->status = tw_session_run_in(r->session, r->lane, NULL, 0, &r->fetch, 1, &r->result, &r->error);
    r->ended = true;
    return NULL;
}

static inline void start(runner *r, tw_session *s, int lane, tw_output fetch)
{
    *r = (runner){.session = s, .lane = lane, .fetch = fetch};
    assert_int_equal(pthread_create(&r->thread, NULL, run_in_thread, r), 0);
}

static inline int finish(runner *r)
{
    int value = 0;
    pthread_join(r->thread, NULL);
    if (r->result)
        value = (int)tw_tensor_value(r->result, 0);
    tw_tensor_release(r->result);
    return value;
}

static inline tw_output constant(tw_graph *g, int value)
{
    return tw_scalar_of(g, TW_INT32, value);
}

static inline void run_ok(tw_session *s, tw_output node)
{
    tw_error error = {0};
    node.index = -1;
    assert_ok(tw_session_run(s, NULL, 0, &node, 1, NULL, &error));
}

#endif
