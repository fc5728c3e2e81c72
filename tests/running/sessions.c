/* sessions.c - runs of a session that are known to wait for queues, and sessions of several tasks, whose messages are
 * made up. */
#include "faulty_memory.h"
#include "parts.h"
#include "runs_in_threads.h"

#include "comm/comm.h"
#include "device/state/queue.h"
#include "run/session.h"

#include <errno.h>

/* ---- runs that wait for queues ----------------------------------------------------------------------------------- */

/* Waits until so many threads wait for queues of the session. */
static void wait_until_waiting(tw_session *s, int threads)
{
    for (int found = -1; found < threads; nap()) {
        found = 0;
        pthread_mutex_lock(&s->lock);
        for (const twi_resource *r = s->resources.first; r; r = r->next)
            found += twi_queue_of(r) ? twi_queue_waiting(twi_queue_of(r)) : 0;
        pthread_mutex_unlock(&s->lock);
    }
}

static void a_run_that_waits_for_an_element_lets_others_go_on(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, NULL), out, value = constant(g, 42);
    tw_output put = tw_enqueue(g, q, &value, 1);
    tw_dequeue(g, q, &out);
    tw_session *s = open_session(g, 0);
    runner waiting;
    start(&waiting, s, 1, out);
    wait_until_waiting(s, 1);
    assert_false(waiting.ended);
    run_ok(s, put);
    assert_int_equal(finish(&waiting), 42);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_full_queue_makes_those_wait_who_put_something_in(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, &(tw_queue_options){.capacity = 2}), out;
    tw_output values = tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){1, 2, 3}), four = constant(g, 4);
    tw_output put_many = tw_enqueue_many(g, q, &values, 1), put = tw_enqueue(g, q, &four, 1);
    tw_output close = tw_queue_close(g, q, false), cancel = tw_queue_close(g, q, true), size = tw_queue_size(g, q);
    tw_dequeue(g, q, &out);
    tw_session *s = open_session(g, 0);
    runner first, second, closing, sizes;
    start(&first, s, 1, (tw_output){put_many.node, -1});
    wait_until_waiting(s, 1);
    start(&second, s, 2, (tw_output){put.node, -1});
    wait_until_waiting(s, 2);
    start(&closing, s, 3, (tw_output){close.node, -1}); /* comes after those who wait already */
    wait_until_waiting(s, 3);
    start(&sizes, s, 4, size);
    assert_int_equal(finish(&sizes), 2);
    assert_false(first.ended || second.ended || closing.ended);
    tw_error error = {0};
    tw_tensor *result = NULL;
    for (int i = 1; i <= 4; i++) {
        assert_ok(tw_session_run(s, NULL, 0, &out, 1, &result, &error));
        assert_int_equal((int)tw_tensor_value(result, 0), i);
    }
    finish(&first);
    finish(&second);
    finish(&closing);
    assert_true(first.status == TW_OK && second.status == TW_OK && closing.status == TW_OK);
    assert_fails(tw_session_run(s, NULL, 0, &out, 1, &result, &error), TW_OUT_OF_RANGE, "insufficient elements");
    cancel.index = -1;
    assert_fails(tw_session_run(s, NULL, 0, &cancel, 1, NULL, &error), TW_CANCELLED, "already closed");
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void closing_with_cancel_fails_those_who_wait_for_room(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, &(tw_queue_options){.capacity = 1});
    tw_output value = constant(g, 1), put = tw_enqueue(g, q, &value, 1), cancel = tw_queue_close(g, q, true);
    tw_session *s = open_session(g, 0);
    runner waiting;
    run_ok(s, put);
    start(&waiting, s, 1, (tw_output){put.node, -1});
    wait_until_waiting(s, 1);
    assert_false(waiting.ended);
    run_ok(s, cancel);
    finish(&waiting);
    assert_int_equal(waiting.status, TW_CANCELLED);
    assert_message(waiting.error.message, "enqueue of FIFOQueue 'FIFOQueueV2' was cancelled");
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void those_who_wait_are_served_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    enum { WAITING = 5 };
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, NULL), out;
    tw_output values = tw_constant_int32s(g, TW_SHAPE(WAITING), (int32_t[]){0, 1, 2, 3, 4});
    tw_output put = tw_enqueue_many(g, q, &values, 1);
    tw_dequeue(g, q, &out);
    tw_session *s = open_session(g, 0);
    runner waiting[WAITING];
    for (int i = 0; i < WAITING; i++) {
        start(&waiting[i], s, 1 + i, out);
        wait_until_waiting(s, 1 + i);
    }
    run_ok(s, put);
    for (int i = 0; i < WAITING; i++)
        assert_int_equal(finish(&waiting[i]), i);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* Who holds a session's graph gives it back: others plan again. */
static void a_graph_that_was_held_is_given_back(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_session *s = open_session(g, 0);
    tw_session_hold(s);
    assert_int_equal(pthread_mutex_trylock(&s->lock), EBUSY);
    tw_session_release(s);
    assert_int_equal(pthread_mutex_trylock(&s->lock), 0);
    pthread_mutex_unlock(&s->lock);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void start_two_that_wait(tw_session *s, tw_output out, runner waiting[2])
{
    for (int i = 0; i < 2; i++) {
        start(&waiting[i], s, 1 + i, out);
        wait_until_waiting(s, 1 + i);
    }
}

/* A kernel that waits in a lane is woken when the lane is cancelled, and others go on. */
static void cancelling_a_lane_wakes_who_waits_there(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, NULL), out, seven = constant(g, 7);
    tw_output put = tw_enqueue(g, q, &seven, 1);
    tw_dequeue(g, q, &out);
    tw_session *s = open_session(g, 0);
    runner waiting[2];
    start_two_that_wait(s, out, waiting);
    tw_session_cancel_lane(s, 1);
    finish(&waiting[0]);
    assert_int_equal(waiting[0].status, TW_CANCELLED);
    assert_false(waiting[1].ended);
    run_ok(s, put);
    assert_int_equal(finish(&waiting[1]), 7);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* Who waits for an element ends, and only then the session's memory goes. */
static void destroying_a_session_ends_runs_that_wait(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, NULL), out;
    tw_dequeue(g, q, &out);
    tw_session *s = open_session(g, 0);
    runner waiting[2];
    start_two_that_wait(s, out, waiting);
    tw_session_destroy(s);
    for (int i = 0; i < 2; i++) {
        finish(&waiting[i]);
        assert_int_equal(waiting[i].status, TW_CANCELLED);
    }
    tw_graph_destroy(g);
}

/* ---- values that cannot be read ---------------------------------------------------------------------------------- */

static tw_status read_nothing(twi_device *d, void *host, const void *from, size_t bytes, tw_error *error)
{
    (void)d, (void)host, (void)from, (void)bytes;
    return twi_fail(error, TW_UNAVAILABLE, "no paper");
}

static void a_variable_that_cannot_be_read_leaves_nothing_behind(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *value = NULL;
    tw_graph *g = tw_graph_create();
    const tw_variable *v = tw_get_variable(g, "v", TW_INT32, TW_SCALAR, (tw_initializer){0});
    tw_session *s = open_session(g, 0);
    run_ok(s, tw_initialize_variables(g));
    twi_device *device = tw_session_devices(s)->items[0];
    const twi_device_ops *ops = device->ops;
    twi_device_ops broken = *ops;
    broken.read = read_nothing;
    device->ops = &broken;
    fail_allocation(-1); /* counts them */
    assert_fails(tw_session_get_variable(s, v, &value, &error), TW_UNAVAILABLE, "no paper");
    assert_null(value);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
    device->ops = ops;
    assert_ok(tw_session_get_variable(s, v, &value, &error));
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- sessions of several tasks, whose messages are made up ------------------------------------------------------- */

enum { NUMBERS = 4 }; /* that a stream's place may have */

typedef struct company {
    twi_comm comm;
    int64_t there[3][NUMBERS]; /* where the streams of tasks 1 and 2 stand */
    int ended[4], num_ended;   /* lanes */
    int silent;                /* the task that does not answer; 0: all do */
} company;

static tw_status hear_nothing(twi_comm *c, int to, int channel, const void *data, size_t bytes, tw_error *error)
{
    (void)c, (void)to, (void)channel, (void)data, (void)bytes, (void)error;
    return TW_OK;
}

static tw_status tell_place(twi_comm *c, int from, int channel, void *data, size_t bytes, const char *what,
                            tw_error *error)
{
    company *all = (company *)c;
    (void)channel;
    if (from >= c->tasks || from == all->silent)
        return twi_fail(error, TW_UNAVAILABLE, "task %d does not say where %s stands", from, what);
    memcpy(data, all->there[from], bytes);
    return TW_OK;
}

static void note_end(twi_comm *c, int lane, tw_status status, const char *why)
{
    company *all = (company *)c;
    assert_int_equal(status, TW_CANCELLED);
    assert_string_equal(why, "the lane was cancelled");
    assert_in_range(all->num_ended, 0, 3);
    all->ended[all->num_ended++] = lane;
}

static twi_comm_watcher *watcher;

static void note_watcher(twi_comm *c, twi_comm_watcher *w)
{
    (void)c;
    assert_null(watcher);
    watcher = w;
}

static void forget_watcher(twi_comm *c, twi_comm_watcher *w)
{
    (void)c;
    assert_ptr_equal(watcher, w);
    watcher = NULL;
}

static const twi_comm_ops company_ops = {.send = hear_nothing, .receive = tell_place, .end = note_end,
                                         .watch = note_watcher, .unwatch = forget_watcher};

static company others = {.comm = {.ops = &company_ops, .tasks = 3, .lane_channels = 2}};

static tw_session *open_in_company(tw_graph *g);

/* Runs that wait end with that, when the session is cancelled or loses the other tasks. */
static void wake_those_who_wait(tw_session *(*open)(tw_graph *g), void (*end)(tw_session *s), tw_status status,
                                const char *why)
{
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, &(tw_queue_options){.capacity = 1}), pair, names;
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_output values = tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){1, 2, 3});
    tw_dtype text = TW_STRING;
    tw_output empty = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, NULL);
    tw_output put = tw_enqueue_many(g, q, &values, 1);
    names = tw_queue(g, TW_QUEUE_FIFO, &text, scalars, 1, NULL);
    tw_output record = tw_reader_read(g, tw_whole_file_reader(g), names, NULL);
    tw_dequeue_many(g, empty, 2, &pair);
    tw_session *s = open(g);
    runner waiting[4];
    start(&waiting[0], s, 1, (tw_output){put.node, -1});
    start(&waiting[1], s, 2, pair);
    start(&waiting[2], s, 3, record);
    start(&waiting[3], s, 4, record); /* waits for the reader, which waits for a name */
    wait_until_waiting(s, 3);
    for (int i = 0; i < 4; i++)
        assert_false(waiting[i].ended);
    end(s);
    for (int i = 0; i < 4; i++) {
        finish(&waiting[i]);
        assert_int_equal(waiting[i].status, status);
    }
    for (int lane = 1; lane < 6; lane += 4) /* that ran, and a new one */
        assert_fails(tw_session_run_in(s, lane, NULL, 0, &values, 1, &result, &error), status, why);
    tw_devices *of_company = open == open_in_company ? tw_session_devices(s) : NULL;
    if (of_company)
        of_company->comm = &others.comm;
    tw_session_destroy(s);
    assert_null(watcher);
    tw_graph_destroy(g);
    if (of_company)
        of_company->comm = NULL;
    tw_devices_destroy(of_company);
}

static tw_session *open_alone(tw_graph *g)
{
    return open_session(g, 0);
}

static void cancelling_a_session_wakes_those_who_wait(void **state)
{
    (void)state;
    wake_those_who_wait(open_alone, tw_session_cancel, TW_CANCELLED, "the session was cancelled");
}

static tw_session *open_in_company(tw_graph *g)
{
    tw_session_options options = TW_SIZED(tw_session_options);
    tw_session *s = NULL;
    tw_error error = {0};
    assert_ok(tw_devices_create(NULL, &options.devices, &error));
    options.devices->comm = &others.comm;
    assert_ok(tw_session_create(g, &options, &s, &error));
    options.devices->comm = NULL; /* runs are this task's alone */
    return s;
}

static void lose_company(tw_session *s)
{
    watcher->lost(watcher->user, TW_ABORTED, "task 2 has ended before its work was done");
    tw_session_cancel(s); /* the first reason stays */
}

static void who_waits_for_itself_hears_that_the_other_tasks_are_lost(void **state)
{
    (void)state;
    wake_those_who_wait(open_in_company, lose_company, TW_ABORTED, "task 2 has ended before its work was done");
}

/* Where the stream stands that this task has drawn from so far, as far as `mine` says, and others as far as they
 * say. */
static tw_status ask_for_stream(company *all, tw_session *s, const int64_t *mine, int64_t *place, tw_error *why)
{
    const char *name = NULL;
    tw_error error = {0};
    tw_devices *devices = tw_session_devices(s);
    tw_tensor *at = tw_tensor_from(TW_INT64, TW_SHAPE(NUMBERS), mine), *stands = NULL;
    assert_ok(tw_session_set_stream(s, "draw", at, &error));
    devices->comm = &all->comm;
    tw_status status = tw_session_get_stream(s, 0, &name, &stands, why);
    devices->comm = NULL;
    if (status == TW_OK) {
        assert_string_equal(name, "draw");
        memcpy(place, tw_tensor_data(stands), sizeof *place * NUMBERS);
    }
    tw_tensor_release(at);
    tw_tensor_release(stands);
    return status;
}

static void a_stream_stands_where_the_task_is_that_has_drawn_most(void **state)
{
    (void)state;
    static const struct {
        int64_t mine[NUMBERS], one[NUMBERS], two[NUMBERS];
        int furthest;
    } cases[] = {
        {{5, 0, 0, 0}, {0}, {0}, 0},
        {{0}, {5, 0, 0, 0}, {0}, 1},
        {{5, 0, 0, 0}, {6, 0, 0, 0}, {7, 0, 0, 0}, 2},
        {{5, 0, 0, 0}, {7, 0, 0, 0}, {6, 0, 0, 0}, 1},
        {{9, 9, 9, 0}, {8, 8, 8, 1}, {7, 7, 7, 0}, 1},  /* the last number counts most */
        {{9, 1, 0, 0}, {8, 2, 0, 0}, {-1, 1, 0, 0}, 1},
        {{1, 0, 0, 0}, {-1, 0, 0, 0}, {2, 0, 0, 0}, 1}, /* without a sign */
        {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, 0},
    };
    company all = {.comm = {.ops = &company_ops, .tasks = 3, .lane_channels = 2}};
    tw_error error = {0};
    int64_t place[NUMBERS] = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s = open_session(g, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *numbers[] = {cases[i].mine, cases[i].one, cases[i].two};
        memcpy(all.there[1], cases[i].one, sizeof cases[i].one);
        memcpy(all.there[2], cases[i].two, sizeof cases[i].two);
        assert_ok(ask_for_stream(&all, s, cases[i].mine, place, &error));
        assert_memory_equal(place, numbers[cases[i].furthest], sizeof place);
    }
    for (all.silent = 1; all.silent < 3; all.silent++)
        assert_fails(ask_for_stream(&all, s, cases[0].mine, place, &error), TW_UNAVAILABLE, "where draw stands");
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* Of those that a session gives out alone, which only one task may be at; all runs of it, and what was never run. */
static void a_lane_that_was_given_out_is_cancelled_on_all_tasks(void **state)
{
    (void)state;
    static const int lanes[] = {0, TWI_FIRST_GIVEN - 1, TWI_FIRST_GIVEN, TWI_MOST_LANES - 1, TWI_MOST_LANES},
                     ends[] = {0, 0, 3, 1, 0};
    company all = {.comm = {.ops = &company_ops, .tasks = 3, .lane_channels = 2}};
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_graph *g = tw_graph_create();
    tw_output one = constant(g, 1), two = constant(g, 2);
    tw_session *s = open_session(g, 0);
    tw_devices *devices = tw_session_devices(s);
    for (int i = 0; i < 3; i++) { /* two plans each, of three lanes */
        assert_ok(tw_session_run_in(s, lanes[i], NULL, 0, &one, 1, &result, &error));
        assert_ok(tw_session_run_in(s, lanes[i], NULL, 0, &two, 1, &result, &error));
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(s->lanes[lanes[i]]->together, lanes[i] < TWI_FIRST_GIVEN);
    devices->comm = &all.comm;
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        all.num_ended = 0;
        tw_session_cancel_lane(s, lanes[i]);
        assert_int_equal(all.num_ended, ends[i]);
        for (int k = 0; k < all.num_ended; k++)
            assert_int_equal(all.ended[k], lanes[i]);
    }
    devices->comm = NULL;
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int run_sessions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_waits_for_an_element_lets_others_go_on),
        cmocka_unit_test(a_full_queue_makes_those_wait_who_put_something_in),
        cmocka_unit_test(closing_with_cancel_fails_those_who_wait_for_room),
        cmocka_unit_test(those_who_wait_are_served_in_the_order_in_which_they_came),
        cmocka_unit_test(cancelling_a_session_wakes_those_who_wait),
        cmocka_unit_test(who_waits_for_itself_hears_that_the_other_tasks_are_lost),
        cmocka_unit_test(a_graph_that_was_held_is_given_back),
        cmocka_unit_test(cancelling_a_lane_wakes_who_waits_there),
        cmocka_unit_test(destroying_a_session_ends_runs_that_wait),
        cmocka_unit_test(a_variable_that_cannot_be_read_leaves_nothing_behind),
        cmocka_unit_test(a_stream_stands_where_the_task_is_that_has_drawn_most),
        cmocka_unit_test(a_lane_that_was_given_out_is_cancelled_on_all_tasks),
    };
    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
