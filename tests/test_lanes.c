/* test_lanes.c - lanes of a session: runs that overlap, variables in common, and the end of runs that wait.
 * label: threads */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tower/explain.h>
#include <tower/ops.h>
#include <tower/session.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

/* A source that waits until it is opened. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open;
    int entered;
} gate;

static gate new_gate(void)
{
    return (gate){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
}

static tw_status pass(void *user, int tower, void *const *outputs, tw_error *error)
{
    gate *g = user;
    (void)error;
    pthread_mutex_lock(&g->lock);
    g->entered++;
    pthread_cond_broadcast(&g->moved);
    while (!g->open)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
    *(float *)outputs[0] = 10 + (float)tower;
    return TW_OK;
}

static void wait_until_entered(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->entered)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void open_gate(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

typedef struct fixture {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_variable *v;
    tw_output read, add, gated; /* of v; v = v + 1; what comes through the gate, times 2, on the second GPU */
    gate gate;
} fixture;

static void open_fixture(fixture *f)
{
    tw_error error = {0};
    tw_dtype type = TW_FLOAT32;
    tw_shape shape = TW_SHAPE(1);
    tw_output input;
    *f = (fixture){.g = tw_graph_create(), .gate = new_gate()};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_devices = 1, .virtual_gpus = 2}, &f->devices, &error));
    TW_DEVICE(f->g, "/gpu:0") {
        f->v = tw_get_variable(f->g, "v", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){.a = 3});
        f->read = tw_add(f->g, f->v->value, tw_scalar(f->g, 0));
        f->add = tw_assign_add(f->g, f->v->handle, tw_ones(f->g, TW_FLOAT32, TW_SHAPE(1)));
    }
    TW_DEVICE(f->g, "/cpu:0")
        tw_input(f->g, "gate", 0, &type, &shape, 1, &input);
    TW_DEVICE(f->g, "/gpu:1")
        f->gated = tw_mul(f->g, input, tw_scalar(f->g, 2));
    tw_output initialize = tw_initialize_variables(f->g);
    assert_string_equal(tw_graph_message(f->g), "");
    assert_ok(tw_session_create(f->g, &(tw_session_options){.devices = f->devices}, &f->s, &error));
    assert_ok(tw_session_run(f->s, NULL, 0, &initialize, 1, NULL, &error));
    assert_ok(tw_session_set_source(f->s, "gate", pass, &f->gate, &error));
}

static void close_fixture(fixture *f)
{
    tw_session_destroy(f->s);
    tw_devices_destroy(f->devices);
    tw_graph_destroy(f->g);
}

/* A run in a thread of its own. */
typedef struct runner {
    fixture *f;
    int lane;
    tw_output fetch;
    tw_status status;
    tw_error error;
    float value;
    pthread_t thread;
} runner;

static void *run_once(void *argument)
{
    runner *r = argument;
    tw_tensor *result = NULL;
    r->status = tw_session_run_in(r->f->s, r->lane, NULL, 0, &r->fetch, 1, &result, &r->error);
    r->value = result ? (float)tw_tensor_value(result, 0) : 0;
    tw_tensor_release(result);
    return NULL;
}

static void begin(runner *r, fixture *f, int lane, tw_output fetch)
{
    *r = (runner){.f = f, .lane = lane, .fetch = fetch};
    assert_int_equal(pthread_create(&r->thread, NULL, run_once, r), 0);
}

/* A fixture with a run in that lane that waits at the gate. */
static void open_waiting(fixture *f, runner *waiting, int lane)
{
    open_fixture(f);
    begin(waiting, f, lane, f->gated);
    wait_until_entered(&f->gate);
}

static void let_through(runner *waiting)
{
    open_gate(&waiting->f->gate);
    pthread_join(waiting->thread, NULL);
}

static float run_in(fixture *f, int lane, tw_output fetch)
{
    runner r = {.f = f, .lane = lane, .fetch = fetch};
    run_once(&r);
    assert_string_equal(r.error.message, "");
    assert_int_equal(r.status, TW_OK);
    return r.value;
}

/* ---- overlap ----------------------------------------------------------------------------------------------------- */

static void a_run_that_waits_holds_up_its_own_lane_only(void **state)
{
    (void)state;
    fixture f;
    runner waiting;
    open_waiting(&f, &waiting, 1);
    assert_true(run_in(&f, 0, f.read) == 3);
    assert_true(run_in(&f, 2, f.read) == 3);
    let_through(&waiting);
    assert_int_equal(waiting.status, TW_OK);
    assert_true(waiting.value == 20);
    assert_true(run_in(&f, 1, f.gated) == 20); /* and goes on */
    close_fixture(&f);
}

static void what_lane_0_waits_for_may_come_from_another(void **state)
{
    (void)state;
    fixture f;
    runner waiting;
    open_waiting(&f, &waiting, 0);
    assert_true(run_in(&f, 1023, f.read) == 3);
    let_through(&waiting);
    assert_true(waiting.value == 20);
    close_fixture(&f);
}

static void lanes_share_the_variables(void **state)
{
    (void)state;
    fixture f;
    tw_error error = {0};
    open_fixture(&f);
    for (int i = 1; i <= 8; i++)
        run_in(&f, i % 4, (tw_output){f.add.node, -1});
    assert_true(run_in(&f, 5, f.read) == 11);
    tw_tensor *value = NULL;
    assert_ok(tw_session_get_variable(f.s, f.v, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 11);
    tw_tensor_release(value);
    close_fixture(&f);
}

/* What a thread of the storm does: lanes of its own and a shared one, plans of many shapes, no variable written. */
typedef struct storm {
    fixture *f;
    tw_output x, y;
    int number, wrong;
} storm;

enum { THREADS = 4, TIMES = 60 };

static void *hammer(void *argument)
{
    storm *s = argument;
    for (int i = 0; i < TIMES; i++) {
        int size = 1 + (i + s->number) % 5;
        float numbers[5] = {1, 2, 3, 4, (float)s->number};
        tw_tensor *value = tw_tensor_from(TW_FLOAT32, TW_SHAPE(size), numbers), *results[2] = {0};
        tw_feed feed = {s->x, value};
        tw_output fetches[] = {s->y, s->f->read};
        int lane = i % 3 == 0 ? 1 : 2 + s->number;
        if (tw_session_run_in(s->f->s, lane, &feed, 1, fetches, 2, results, NULL) != TW_OK ||
            tw_tensor_value(results[1], 0) != 3 || tw_tensor_value(results[0], size - 1) != 2 * numbers[size - 1])
            s->wrong++;
        tw_tensor_release(results[0]);
        tw_tensor_release(results[1]);
        tw_tensor_release(value);
        s->wrong += !tw_session_device(s->f->s, s->y.node) || !tw_session_why(s->f->s, s->y.node);
    }
    return NULL;
}

static void plans_are_made_in_several_lanes_at_once(void **state)
{
    (void)state;
    fixture f;
    storm storms[THREADS];
    pthread_t threads[THREADS];
    open_fixture(&f);
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(-1)), y;
    TW_DEVICE(f.g, "/gpu:1")
        y = tw_add(f.g, x, x);
    for (int i = 0; i < THREADS; i++) {
        storms[i] = (storm){&f, x, y, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &storms[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(storms[i].wrong, 0);
    }
    close_fixture(&f);
}

static void a_repeated_run_in_a_lane_allocates_nothing(void **state)
{
    (void)state;
    fixture f;
    tw_error error = {0};
    tw_tensor *result = NULL;
    open_fixture(&f);
    assert_ok(tw_session_run_in(f.s, 3, NULL, 0, &f.read, 1, &result, &error));
    int64_t before = tw_allocation_count();
    for (int i = 0; i < 10; i++)
        assert_ok(tw_session_run_in(f.s, 3, NULL, 0, &f.read, 1, &result, &error));
    assert_int_equal(tw_allocation_count(), before);
    tw_tensor_release(result);
    close_fixture(&f);
}

static void a_lane_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    fixture f;
    tw_error error = {0};
    tw_tensor *value = NULL;
    open_fixture(&f);
    assert_fails(tw_session_run_in(f.s, 1024, NULL, 0, &f.read, 1, &value, &error), TW_INVALID_ARGUMENT,
                 "lane 1024: expected a number from 0 to 1023");
    assert_fails(tw_session_run_in(f.s, -1, NULL, 0, &f.read, 1, &value, &error), TW_INVALID_ARGUMENT, "lane -1");
    close_fixture(&f);
}

/* ---- the end of runs --------------------------------------------------------------------------------------------- */

static void a_cancelled_session_ends_its_runs_and_keeps_its_values(void **state)
{
    (void)state;
    fixture f;
    runner waiting;
    tw_error error = {0};
    tw_tensor *value = NULL;
    open_waiting(&f, &waiting, 1);
    tw_session_cancel(f.s);
    let_through(&waiting); /* the source's own business; the product behind it is not computed any more */
    assert_int_equal(waiting.status, TW_CANCELLED);
    assert_string_equal(waiting.error.message, "the session was cancelled");
    assert_fails(tw_session_run(f.s, NULL, 0, &f.read, 1, &value, &error), TW_CANCELLED, "the session was cancelled");
    assert_ok(tw_session_get_variable(f.s, f.v, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 3);
    tw_tensor_release(value);
    close_fixture(&f);
}

static tw_status run_dry(void *user, int tower, void *const *outputs, tw_error *error)
{
    (void)user, (void)tower, (void)outputs;
    *error = (tw_error){TW_OUT_OF_RANGE, "no batch is left"};
    return TW_OUT_OF_RANGE;
}

/* Cancels the session at the next allocation, which a run makes for its results: it has begun then, its steps not. */
static void *cancel_once(void *user, void *block, size_t bytes)
{
    _Atomic(tw_session *) *session = user;
    tw_session *cancelled = bytes ? atomic_exchange(session, NULL) : NULL;
    if (cancelled)
        tw_session_cancel(cancelled);
    if (bytes)
        return realloc(block, bytes);
    free(block);
    return NULL;
}

static void a_run_that_is_cancelled_as_it_begins_ends_though_the_one_before_has_failed(void **state)
{
    (void)state;
    fixture f;
    runner failing, cancelled;
    tw_error error = {0};
    open_fixture(&f);
    assert_true(run_in(&f, 0, f.read) == 3);
    assert_ok(tw_session_set_source(f.s, "gate", run_dry, NULL, &error));
    begin(&failing, &f, 0, f.gated);
    pthread_join(failing.thread, NULL);
    assert_int_equal(failing.status, TW_OUT_OF_RANGE);
    static _Atomic(tw_session *) session;
    session = f.s;
    tw_set_allocator(cancel_once, &session);
    begin(&cancelled, &f, 0, f.read);
    pthread_join(cancelled.thread, NULL);
    tw_set_allocator(NULL, NULL);
    assert_null(session);
    assert_int_equal(cancelled.status, TW_CANCELLED);
    assert_string_equal(cancelled.error.message, "the session was cancelled");
    close_fixture(&f);
}

static void a_lane_that_was_cancelled_can_be_opened_again(void **state)
{
    (void)state;
    fixture f;
    runner waiting;
    tw_error error = {0};
    tw_tensor *value = NULL;
    open_waiting(&f, &waiting, 1);
    tw_session_cancel_lane(f.s, 1);
    assert_true(run_in(&f, 0, f.read) == 3);
    let_through(&waiting);
    assert_int_equal(waiting.status, TW_CANCELLED);
    assert_fails(tw_session_run_in(f.s, 1, NULL, 0, &f.read, 1, &value, &error), TW_CANCELLED, "was cancelled");
    tw_session_reopen_lane(f.s, 1);
    assert_true(run_in(&f, 1, f.gated) == 20);
    tw_session_reopen_lane(f.s, 2); /* nothing has run there */
    tw_session_reopen_lane(f.s, -1);
    tw_session_cancel(f.s);
    tw_session_reopen_lane(f.s, 1);
    assert_fails(tw_session_run_in(f.s, 1, NULL, 0, &f.read, 1, &value, &error), TW_CANCELLED, "was cancelled");
    close_fixture(&f);
}

/* Lane 0 too; those that a session gives out are not opened again, and there are none beyond the last. */
static void lanes_are_cancelled_and_opened_by_their_numbers(void **state)
{
    (void)state;
    fixture f;
    tw_error error = {0};
    tw_tensor *value = NULL;
    open_fixture(&f);
    open_gate(&f.gate);
    tw_session_cancel_lane(f.s, -1);
    tw_session_cancel_lane(f.s, 1024);
    tw_session_reopen_lane(f.s, 1024);
    assert_true(run_in(&f, 0, f.gated) == 20);
    tw_session_cancel_lane(f.s, 0);
    assert_fails(tw_session_run(f.s, NULL, 0, &f.gated, 1, &value, &error), TW_CANCELLED, "was cancelled");
    tw_session_reopen_lane(f.s, 0);
    assert_true(run_in(&f, 0, f.gated) == 20);
    assert_true(run_in(&f, 512, f.gated) == 20);
    tw_session_cancel_lane(f.s, 512);
    tw_session_reopen_lane(f.s, 512);
    assert_fails(tw_session_run_in(f.s, 512, NULL, 0, &f.gated, 1, &value, &error), TW_CANCELLED, "was cancelled");
    close_fixture(&f);
}

/* What is told of the latest run is of those that a caller began, and not of those behind the scenes. */
static void the_latest_run_is_not_of_a_lane_that_was_given_out(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_timeline *timeline;
    tw_tensor *result = NULL;
    tw_session *s;
    tw_graph *g = tw_graph_create();
    tw_output sum = tw_add(g, tw_scalar(g, 1), tw_scalar(g, 2));
    assert_ok(tw_session_create(g, TW_OPTIONS(tw_session_options, .trace = true), &s, &error));
    static const int lanes[] = {1, 512, 511, 1023}, told[] = {1, 1, 511, 511};
    for (int i = 0; i < 4; i++) {
        assert_ok(tw_session_run_in(s, lanes[i], NULL, 0, &sum, 1, &result, &error));
        assert_ok(tw_session_timeline(s, &timeline, &error));
        assert_int_equal(timeline->lane, told[i]);
        tw_timeline_destroy(timeline);
    }
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_waits_holds_up_its_own_lane_only),
        cmocka_unit_test(what_lane_0_waits_for_may_come_from_another),
        cmocka_unit_test(lanes_share_the_variables),
        cmocka_unit_test(plans_are_made_in_several_lanes_at_once),
        cmocka_unit_test(a_repeated_run_in_a_lane_allocates_nothing),
        cmocka_unit_test(a_lane_that_does_not_exist_is_refused),
        cmocka_unit_test(a_cancelled_session_ends_its_runs_and_keeps_its_values),
        cmocka_unit_test(a_lane_that_was_cancelled_can_be_opened_again),
        cmocka_unit_test(lanes_are_cancelled_and_opened_by_their_numbers),
        cmocka_unit_test(the_latest_run_is_not_of_a_lane_that_was_given_out),
        cmocka_unit_test(a_run_that_is_cancelled_as_it_begins_ends_though_the_one_before_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
