/* dispatchers.c - dispatchers, on plans made by hand and devices that are made up: in which order steps are done, what
 * is replayed, how runs end, what is timed, and what is said to other tasks. */
#include "parts.h"
#include "testing.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "run/dispatcher.h"
#include "run/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { LISTS = 3, MOST_STEPS = 4, MOST_TOLD = 64, A_WHILE = 5 };

typedef struct fixture fixture;

typedef struct work {
    fixture *f;
    char letter;      /* told when it is done */
    int milliseconds; /* that it takes */
    char behind;      /* what must have been told before it ends; 0: nothing */
    bool waits;       /* as a queue's kernel does, until the run is to end */
    tw_status fails;
    bool silent;      /* without a word */
} work;

struct fixture {
    struct tw_devices set; /* first: a device finds the fixture by it */
    twi_device devices[LISTS], *items[LISTS];
    twi_device_ops ops;
    twi_comm comm;
    twi_plan plan;
    twi_list lists[LISTS];
    twi_step steps[LISTS][MOST_STEPS];
    work works[LISTS][MOST_STEPS];
    char names[LISTS][MOST_STEPS][2];
    twi_segment segment;
    twi_part parts[2 + 1]; /* the last is no part of the segment */
    twi_step_id waits[2];
    twi_member members[2][MOST_STEPS];
    twi_trace trace;
    twi_track tracks[LISTS];
    twi_span spans[LISTS][MOST_STEPS + 1]; /* the last is no step's */
    int64_t marks[2 * MOST_STEPS];
    twi_dispatchers *all;
    tw_status replay_fails, follow_fails, times_fail, late[LISTS]; /* late: only shows when all is to be done */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    char told[MOST_TOLD]; /* letters, in the order in which things happened */
    int num_told;
    atomic_int drained; /* so many lists */
};

static void tell(fixture *f, char letter)
{
    pthread_mutex_lock(&f->lock);
    if (f->num_told < MOST_TOLD - 1)
        f->told[f->num_told++] = letter;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

static void wait_for(int milliseconds)
{
    nanosleep(&(struct timespec){0, milliseconds * 1000000}, NULL);
}

static tw_status do_work(const twi_run *r)
{
    const work *w = r->state;
    wait_for(w->milliseconds);
    tell(w->f, w->letter);
    pthread_mutex_lock(&w->f->lock);
    while ((w->waits && !atomic_load(r->ending)) || (w->behind && !strchr(w->f->told, w->behind)))
        pthread_cond_wait(&w->f->moved, &w->f->lock);
    pthread_mutex_unlock(&w->f->lock);
    return w->fails == TW_OK || w->silent ? w->fails : twi_fail(r->error, w->fails, "%c went wrong", w->letter);
}

static const twi_kernel kernel = {"Work", "made up", 0, NULL, do_work, NULL};

static void wake(void *user)
{
    tell(user, '!');
}

/* made-up devices */

static fixture *of(const twi_device *d)
{
    return (fixture *)d->set;
}

static bool shares(const twi_device *d, const twi_device *other)
{
    return d != other;
}

static tw_status follow(twi_device *d, twi_device *other, tw_error *error)
{
    fixture *f = of(d);
    tell(f, d == other ? '?' : (char)('0' + other->name.id));
    return f->follow_fails ? twi_fail(error, f->follow_fails, "there is no following") : TW_OK;
}

static tw_status replay(twi_device *d, void *recording, tw_error *error)
{
    fixture *f = of(d);
    tell(f, recording == &f->segment ? 'R' : '?');
    return f->replay_fails ? twi_fail(error, f->replay_fails, "the card is lost") : TW_OK;
}

static tw_status synchronize(twi_device *d, tw_error *error)
{
    fixture *f = of(d);
    f->drained++;
    tw_status status = f->late[d->name.id];
    return status == TW_OK ? TW_OK : twi_fail(error, status, "device %d failed late", d->name.id);
}

static tw_status mark(twi_device *d, void *timeline, int number, tw_error *error)
{
    (void)number, (void)error;
    assert_ptr_equal(timeline, of(d));
    return TW_OK;
}

/* Of four steps the second one alone is told of in full. */
static tw_status read_timeline(twi_device *d, void *timeline, int64_t *ns, tw_error *error)
{
    static const int64_t marks[2 * MOST_STEPS] = {0, 0, 10, 20, 30, 0, 0, 40};
    fixture *f = timeline;
    tell(f, 'T');
    memcpy(ns, marks, sizeof marks);
    return f->times_fail ? twi_fail(error, f->times_fail, "%s has no clock", d->text) : TW_OK;
}

static fixture *open_fixture(void)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    f->ops = (twi_device_ops){.type = "TEST", .kind = "test", .synchronize = synchronize, .replay = replay,
                              .mark = mark, .read_timeline = read_timeline};
    f->set = (struct tw_devices){.items = f->items, .count = LISTS, .tasks = 1};
    f->plan = (twi_plan){.lists = f->lists, .num_lists = LISTS, .ran = true};
    for (int i = 0; i < LISTS; i++) {
        f->items[i] = &f->devices[i];
        f->devices[i] = (twi_device){.ops = &f->ops, .set = &f->set, .name = {.id = i}, .text = "/device:TEST"};
        f->lists[i] = (twi_list){.device = &f->devices[i], .steps = f->steps[i]};
        f->tracks[i].spans = f->spans[i];
    }
    f->trace.tracks = f->tracks;
    return f;
}

static void close_fixture(fixture *f)
{
    twi_dispatchers_destroy(f->all);
    pthread_cond_destroy(&f->moved);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* A step of a device, behind `num_waits` others. The node is called like the work's letter. */
static work *add_work(fixture *f, int device, char letter, const twi_step_id *waits, int num_waits)
{
    int at = f->lists[device].count++;
    work *w = &f->works[device][at];
    *w = (work){.f = f, .letter = letter};
    f->names[device][at][0] = letter;
    f->steps[device][at] = (twi_step){
        .kernel = &kernel, .device = &f->devices[device], .waits = waits, .num_waits = num_waits, .awaited = true,
        .run = {.state = w, .node = f->names[device][at], .error = &f->lists[device].error}};
    return w;
}

/* What is told of so many rounds. */
static const char *run(fixture *f, int64_t rounds, tw_status expected, tw_error *error)
{
    int64_t done = -1;
    *error = (tw_error){0};
    f->num_told = f->drained = 0;
    memset(f->told, 0, sizeof f->told);
    if (!f->all) {
        assert_int_equal(twi_dispatchers_create(&f->set, wake, f, &f->all, error), TW_OK);
        assert_int_equal(twi_dispatchers_prepare(f->all, &f->plan, NULL, error), TW_OK);
    }
    assert_int_equal(twi_dispatchers_run(f->all, &f->plan, rounds, &done, error), expected);
    assert_true(expected != TW_OK || done == rounds);
    return f->told;
}

static int count(const char *told, char letter)
{
    int n = 0;
    for (; *told; told++)
        n += *told == letter;
    return n;
}

/* order */

static const twi_step_id first_of_0 = {0, 0}, first_of_1 = {1, 0}, first_of_2 = {2, 0}, last_of_0 = {0, 1},
                         last_of_1 = {1, 1};

/* a, b, c, each behind the one before. */
static fixture *open_three(void)
{
    fixture *f = open_fixture();
    add_work(f, 0, 'a', NULL, 0)->milliseconds = A_WHILE;
    add_work(f, 1, 'b', &first_of_0, 1)->milliseconds = A_WHILE;
    add_work(f, 0, 'c', &first_of_1, 1)->milliseconds = A_WHILE;
    return f;
}

static void a_step_begins_behind_what_it_waits_for_in_its_own_round(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_three();
    assert_string_equal(run(f, 3, TW_OK, &error), "abcabcabc");
    assert_int_equal(f->drained, 2);
    f->plan.ran = false; /* the first one alone then */
    assert_string_equal(run(f, 3, TW_OK, &error), "abcabcabc");
    assert_int_equal(f->drained, 4);
    close_fixture(f);
}

static void a_queue_comes_behind_those_whose_memory_its_device_looks_at(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_three();
    f->ops.follow = follow;
    assert_string_equal(run(f, 1, TW_OK, &error), "abc"); /* no memory is shared */
    f->ops.shares_memory = shares;
    assert_string_equal(run(f, 1, TW_OK, &error), "a0b1c");
    run(f, 2, TW_OK, &error);
    assert_int_equal(count(f->told, '0'), 2 + 1); /* between rounds each follows the other */
    assert_int_equal(count(f->told, '1'), 2 + 1);
    assert_int_equal(count(f->told, '?'), 0);
    f->follow_fails = TW_UNAVAILABLE;
    run(f, 1, TW_UNAVAILABLE, &error);
    assert_memory_equal(f->told, "a0", 2);
    assert_int_equal(count(f->told, 'b') + count(f->told, 'c'), 0);
    assert_string_equal(error.message, "there is no following [[{{node b}}]]");
    close_fixture(f);
}

/* b has been done when the list behind it fails to meet the other's between rounds. */
static void queues_that_cannot_meet_between_rounds_end_the_run(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_fixture();
    add_work(f, 0, 'a', NULL, 0);
    add_work(f, 1, 'b', NULL, 0);
    f->ops.follow = follow;
    f->ops.shares_memory = shares;
    f->follow_fails = TW_UNAVAILABLE;
    run(f, 2, TW_UNAVAILABLE, &error);
    assert_string_equal(error.message, "there is no following");
    assert_int_equal(count(f->told, 'a'), 1);
    assert_int_equal(count(f->told, 'b'), 1);
    assert_int_equal(count(f->told, '!'), 1);
    assert_int_equal(f->drained, 2);
    close_fixture(f);
}

/* Steps stand for the loops here. A run that is looked at has them one after the other. */
static void loops_side_by_side_begin_behind_all_that_any_of_them_waits_for(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_fixture();
    work *a = add_work(f, 0, 'a', NULL, 0);
    a->milliseconds = A_WHILE;
    add_work(f, 1, 'p', NULL, 0);
    work *q = add_work(f, 1, 'q', &first_of_0, 1);
    add_work(f, 0, 'b', &last_of_1, 1);
    add_work(f, 1, 'c', &last_of_0, 1); /* behind the loops there is something that waits for them */
    f->steps[1][0].beside = 2;
    run(f, 2, TW_OK, &error);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(f->told[5 * round], 'a');
        assert_memory_equal(&f->told[5 * round + 3], "bc", 2);
    }
    q->fails = TW_INTERNAL;
    run(f, 1, TW_INTERNAL, &error);
    assert_string_equal(error.message, "q went wrong [[{{node q}}]]");
    assert_int_equal(count(f->told, 'b') + count(f->told, 'c'), 0);
    q->fails = TW_OK;
    a->behind = 'p';
    f->plan.trace = &f->trace;
    f->trace.on = true;
    assert_string_equal(run(f, 1, TW_OK, &error), "paqbc");
    assert_true(f->spans[1][1].started_ns >= f->spans[1][0].ended_ns && f->spans[1][0].ended_ns > 0);
    f->trace.on = false;
    a->behind = 0;
    f->ops.follow = follow;
    f->ops.shares_memory = shares;
    f->follow_fails = TW_UNAVAILABLE;
    run(f, 1, TW_UNAVAILABLE, &error);
    assert_string_equal(error.message, "there is no following [[{{node p}}]]");
    assert_int_equal(count(f->told, 'p') + count(f->told, 'q'), 0);
    close_fixture(f);
}

/* what is replayed */

static void put_in_segment(fixture *f, int device, int first, int end)
{
    f->parts[device] = (twi_part){&f->segment, device, first, end};
    f->lists[device].members = f->members[device];
    for (int i = first; i < end; i++)
        f->members[device][i].part = &f->parts[device];
}

/* s and s in a segment with t and t of the second device, which wait for y on the third; z there waits for them. On the
 * first device x comes before, if `begun`, and before y; on the second w and v around it, if `partly`: then it waits
 * for w, too. */
static fixture *open_replayed(bool begun, bool partly)
{
    fixture *f = open_fixture();
    if (begun)
        add_work(f, 0, 'x', NULL, 0);
    add_work(f, 0, 's', NULL, 0);
    add_work(f, 0, 's', NULL, 0);
    put_in_segment(f, 0, begun, begun + 2);
    if (partly)
        add_work(f, 1, 'w', NULL, 0);
    add_work(f, 1, 't', NULL, 0);
    add_work(f, 1, 't', NULL, 0);
    put_in_segment(f, 1, partly, partly + 2);
    if (partly)
        add_work(f, 1, 'v', NULL, 0);
    add_work(f, 2, 'y', begun ? &first_of_0 : NULL, begun)->milliseconds = A_WHILE;
    add_work(f, 2, 'z', &last_of_1, 1)->milliseconds = A_WHILE;
    f->parts[2] = (twi_part){&f->segment, 2, 0, 3};
    f->waits[0] = first_of_2;
    f->waits[1] = first_of_1;
    f->segment = (twi_segment){.parts = f->parts, .num_parts = 2, .waits = f->waits, .num_waits = 1 + partly,
                               .recording = &f->segment};
    return f;
}

static void the_leader_replays_for_all_behind_what_any_of_them_waits_for(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_replayed(true, false);
    assert_string_equal(run(f, 2, TW_OK, &error), "xyRzxyRz");
    assert_int_equal(f->drained, 3);
    f->segment.recording = NULL; /* step by step */
    run(f, 1, TW_OK, &error);
    assert_int_equal(count(f->told, 'R'), 0);
    assert_int_equal(count(f->told, 's') + count(f->told, 't'), 4);
    close_fixture(f);
}

static void who_follows_goes_on_when_the_leader_has_replayed(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_replayed(true, true);
    run(f, 1, TW_OK, &error);
    assert_int_equal(count(f->told, 'R'), 1);
    assert_true(strchr(f->told, 'w') < strchr(f->told, 'R'));
    assert_true(strchr(f->told, 'y') < strchr(f->told, 'R'));
    assert_true(strchr(f->told, 'v') > strchr(f->told, 'R'));
    close_fixture(f);
}

/* Nobody follows what comes behind it by itself: the lists that one replay is all of. */
static void lists_of_one_replay_need_not_meet_between_rounds(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_replayed(false, false);
    f->ops.follow = follow;
    f->ops.shares_memory = shares;
    run(f, 2, TW_OK, &error);
    assert_int_equal(count(f->told, 'R'), 2);
    assert_int_equal(count(f->told, '2'), 2 + 1); /* R for y, and between rounds for z */
    assert_int_equal(count(f->told, '1'), 2 + 1); /* z for t, and between rounds y for both lists */
    assert_int_equal(count(f->told, '0'), 1);
    assert_int_equal(f->drained, 3);
    close_fixture(f);
}

static void a_replay_that_fails_ends_the_run(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_replayed(true, true);
    f->replay_fails = TW_UNAVAILABLE;
    run(f, 1, TW_UNAVAILABLE, &error);
    assert_string_equal(error.message, "the card is lost [[{{node s}}]]");
    assert_int_equal(count(f->told, 'z') + count(f->told, 'v'), 0);
    close_fixture(f);
    f = open_replayed(false, false);
    f->follow_fails = TW_ABORTED; /* before it is handed over */
    f->ops.follow = follow;
    f->ops.shares_memory = shares;
    run(f, 1, TW_ABORTED, &error);
    assert_int_equal(count(f->told, 'R'), 0);
    close_fixture(f);
}

/* how runs end */

static void the_first_failure_is_the_runs_and_kernels_are_woken_once(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_fixture();
    add_work(f, 0, 'a', NULL, 0)->fails = TW_INTERNAL;
    work *b = add_work(f, 1, 'b', NULL, 0);
    b->fails = TW_ABORTED;
    b->behind = '!';
    add_work(f, 1, 'c', NULL, 0);
    add_work(f, 2, 'd', &first_of_0, 1);
    run(f, 3, TW_INTERNAL, &error);
    assert_string_equal(error.message, "a went wrong [[{{node a}}]]");
    assert_int_equal(count(f->told, '!'), 1);
    assert_int_equal(count(f->told, 'c') + count(f->told, 'd'), 0);
    close_fixture(f);
}

static void a_failing_step_wakes_those_of_its_run_that_wait(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_fixture();
    work *waiting = add_work(f, 0, 'w', NULL, 0), *failing = add_work(f, 1, 'a', NULL, 0);
    waiting->waits = true;
    waiting->fails = TW_CANCELLED;
    failing->behind = 'w';
    failing->fails = TW_OUT_OF_RANGE;
    run(f, 1, TW_OUT_OF_RANGE, &error);
    assert_string_equal(error.message, "a went wrong [[{{node a}}]]");
    close_fixture(f);
}

/* A loop of one round, with one step. */
static void a_loop_fails_by_the_words_of_its_step(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_fixture();
    uint8_t goes_on = 0;
    work inner = {.f = f, .letter = 'i'};
    twi_list list = {.device = &f->devices[0], .count = 1};
    twi_step step = {.kernel = &kernel, .device = &f->devices[0],
                     .run = {.state = &inner, .node = "inner", .error = &list.error}};
    twi_step *steps[] = {&step};
    twi_port decides = {.device = &f->devices[0], .memory = &goes_on};
    twi_plan plan = {.lists = &list, .num_lists = 1, .fetches = &decides};
    twi_loop loop = {.plan = &plan, .steps = steps, .num_steps = 1};
    list.steps = &step;
    f->devices[0].is_host = true;
    add_work(f, 0, 'a', NULL, 0);
    f->steps[0][0].kernel = NULL;
    f->steps[0][0].loop = &loop;
    assert_string_equal(run(f, 1, TW_OK, &error), "i");
    inner.fails = TW_UNAVAILABLE;
    run(f, 1, TW_UNAVAILABLE, &error);
    assert_memory_equal(error.message, "i went wrong [[{{node inner}}]]", strlen("i went wrong [[{{node inner}}]]"));
    list.error = (tw_error){0};
    inner.silent = true;
    run(f, 1, TW_UNAVAILABLE, &error);
    assert_memory_equal(error.message, "Work failed [[{{node inner}}]]", strlen("Work failed [[{{node inner}}]]"));
    close_fixture(f);
}

static void a_failure_that_shows_when_a_queue_is_drained_is_its_lists(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_three();
    f->late[1] = TW_UNAVAILABLE;
    run(f, 1, TW_UNAVAILABLE, &error);
    assert_string_equal(error.message, "device 1 failed late");
    assert_int_equal(count(f->told, '!'), 1);
    f->works[1][0].fails = TW_INTERNAL; /* b: its own failure stays */
    run(f, 1, TW_INTERNAL, &error);
    assert_string_equal(error.message, "b went wrong [[{{node b}}]]");
    f->late[1] = f->works[1][0].fails = TW_OK;
    run(f, 1, TW_OK, &error);
    close_fixture(f);
}

/* times */

static void a_delay_is_of_the_step_that_it_is_put_into(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_fixture();
    twi_step_delay delays[] = {{A_WHILE * 1000000, 2 * A_WHILE * 1000000}}, *lists[LISTS] = {delays};
    add_work(f, 0, 'a', NULL, 0);
    f->plan.trace = &f->trace;
    f->trace.on = true;
    f->plan.delays = lists;
    int64_t began = twi_monotonic_ns();
    run(f, 1, TW_OK, &error);
    assert_true(f->spans[0][0].started_ns >= began + delays[0].before_ns);
    assert_true(f->spans[0][0].ended_ns >= f->spans[0][0].started_ns + delays[0].behind_ns);
    close_fixture(f);
}

/* What is not told of takes no time. */
static void a_device_that_tells_when_it_did_what_is_asked_at_the_end_of_a_traced_run(void **state)
{
    (void)state;
    static const int64_t expected[MOST_STEPS][2] = {{5, 5}, {10, 20}, {20, 20}, {20, 20}};
    tw_error error;
    fixture *f = open_fixture();
    for (int i = 0; i < MOST_STEPS; i++)
        add_work(f, 0, (char)('a' + i), NULL, 0);
    f->plan.trace = &f->trace;
    f->trace.began_ns = 5;
    f->tracks[0].timeline = f;
    f->tracks[0].marks = f->marks;
    assert_string_equal(run(f, 1, TW_OK, &error), "abcd");
    f->trace.on = true;
    assert_string_equal(run(f, 1, TW_OK, &error), "abcdT");
    for (int i = 0; i < MOST_STEPS; i++) {
        assert_int_equal(f->spans[0][i].started_ns, expected[i][0]);
        assert_int_equal(f->spans[0][i].ended_ns, expected[i][1]);
    }
    assert_int_equal(f->spans[0][MOST_STEPS].ended_ns, 0);
    f->times_fail = TW_UNAVAILABLE;
    assert_string_equal(run(f, 1, TW_UNAVAILABLE, &error), "abcdT!");
    assert_string_equal(error.message, "/device:TEST has no clock");
    f->works[0][3].fails = TW_INTERNAL;
    assert_string_equal(run(f, 1, TW_INTERNAL, &error), "abcd!");
    close_fixture(f);
}

/* other tasks */

static fixture *of_comm(const twi_comm *c)
{
    return (fixture *)((char *)(uintptr_t)c - offsetof(fixture, comm));
}

static tw_status send_word(twi_comm *c, int to, int channel, const void *data, size_t bytes, tw_error *error)
{
    (void)channel, (void)data, (void)bytes, (void)error;
    wait_for(A_WHILE);
    tell(of_comm(c), to == 1 ? 's' : '?');
    return TW_OK;
}

static tw_status receive_word(twi_comm *c, int from, int channel, void *data, size_t bytes, const char *what,
                              tw_error *error)
{
    (void)channel, (void)data, (void)bytes, (void)what, (void)error;
    wait_for(A_WHILE);
    tell(of_comm(c), from == 1 ? 'r' : '?');
    return TW_OK;
}

static void end_lane(twi_comm *c, int lane, tw_status status, const char *why)
{
    (void)lane, (void)status, (void)why;
    tell(of_comm(c), 'E');
}

static void abort_all(twi_comm *c, tw_status status, const char *why)
{
    (void)status, (void)why;
    tell(of_comm(c), 'A');
}

/* The second device is another task's. */
static fixture *open_tasks(void)
{
    static const twi_comm_ops ops = {.send = send_word, .receive = receive_word, .end = end_lane, .abort = abort_all};
    fixture *f = open_fixture();
    f->comm = (twi_comm){.ops = &ops, .tasks = 2, .lane_channels = 3};
    f->set.comm = &f->comm;
    f->set.tasks = 2;
    f->devices[0].is_host = f->devices[1].is_host = true;
    f->devices[1].task = 1;
    f->devices[1].absent = true;
    return f;
}

static void copy_from(fixture *f, int device, int position, int from)
{
    twi_step *step = &f->steps[device][position];
    step->kernel = NULL;
    step->source = &f->devices[from];
    step->run.inputs = (const void *const *)f->items;
    step->run.outputs = (void *const *)f->items;
    step->run.num_inputs = 1;
}

static void who_writes_over_what_another_task_reads_waits_until_it_is_sent(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_tasks();
    add_work(f, 0, 'a', NULL, 0);
    add_work(f, 1, '-', &first_of_0, 1);
    copy_from(f, 1, 0, 0);
    add_work(f, 0, 'c', &first_of_1, 1);
    f->steps[0][1].num_sent = 1;
    assert_string_equal(run(f, 2, TW_OK, &error), "ascasc");
    close_fixture(f);
}

/* By its message: the walker of the other's list here, who knows nothing of it, is waited for only where all do a loop
 * together. */
static void what_another_task_has_done_is_heard_of(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_tasks();
    add_work(f, 1, '-', NULL, 0);
    add_work(f, 0, 'b', &first_of_1, 1);
    assert_string_equal(run(f, 2, TW_OK, &error), "rbrb");
    close_fixture(f);
}

static void what_has_come_began_when_it_came(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_tasks();
    add_work(f, 1, '-', NULL, 0);
    add_work(f, 0, '-', &first_of_1, 1);
    copy_from(f, 0, 0, 1);
    assert_string_equal(run(f, 1, TW_OK, &error), "r");
    assert_int_equal(f->spans[0][0].started_ns, 0);
    f->plan.trace = &f->trace;
    run(f, 1, TW_OK, &error);
    assert_int_equal(f->spans[0][0].started_ns, 0);
    f->trace.on = true;
    int64_t began = twi_monotonic_ns();
    assert_string_equal(run(f, 1, TW_OK, &error), "r");
    assert_true(f->spans[0][0].started_ns >= began + A_WHILE * 1000000);
    assert_int_equal(f->spans[0][0].started_ns, f->spans[0][0].ended_ns);
    close_fixture(f);
}

static void a_failure_ends_all_tasks_or_where_data_end_the_lane_that_has_it(void **state)
{
    (void)state;
    tw_error error;
    fixture *f = open_tasks();
    add_work(f, 0, 'a', NULL, 0)->fails = TW_OUT_OF_RANGE;
    assert_string_equal(run(f, 1, TW_OUT_OF_RANGE, &error), "aA!");
    f->plan.lane = TWI_FIRST_GIVEN;
    assert_string_equal(run(f, 1, TW_OUT_OF_RANGE, &error), "a!E");
    f->plan.apart = true;
    assert_string_equal(run(f, 1, TW_OUT_OF_RANGE, &error), "a!");
    f->plan.apart = false;
    f->plan.lane = TWI_ALONE;
    assert_string_equal(run(f, 1, TW_OUT_OF_RANGE, &error), "a!");
    f->plan.lane = TWI_FIRST_GIVEN;
    f->set.comm = NULL;
    assert_string_equal(run(f, 1, TW_OUT_OF_RANGE, &error), "a!");
    close_fixture(f);
}

int run_dispatchers(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_begins_behind_what_it_waits_for_in_its_own_round),
        cmocka_unit_test(a_queue_comes_behind_those_whose_memory_its_device_looks_at),
        cmocka_unit_test(queues_that_cannot_meet_between_rounds_end_the_run),
        cmocka_unit_test(loops_side_by_side_begin_behind_all_that_any_of_them_waits_for),
        cmocka_unit_test(the_leader_replays_for_all_behind_what_any_of_them_waits_for),
        cmocka_unit_test(who_follows_goes_on_when_the_leader_has_replayed),
        cmocka_unit_test(lists_of_one_replay_need_not_meet_between_rounds),
        cmocka_unit_test(a_replay_that_fails_ends_the_run),
        cmocka_unit_test(the_first_failure_is_the_runs_and_kernels_are_woken_once),
        cmocka_unit_test(a_failing_step_wakes_those_of_its_run_that_wait),
        cmocka_unit_test(a_loop_fails_by_the_words_of_its_step),
        cmocka_unit_test(a_failure_that_shows_when_a_queue_is_drained_is_its_lists),
        cmocka_unit_test(a_delay_is_of_the_step_that_it_is_put_into),
        cmocka_unit_test(a_device_that_tells_when_it_did_what_is_asked_at_the_end_of_a_traced_run),
        cmocka_unit_test(who_writes_over_what_another_task_reads_waits_until_it_is_sent),
        cmocka_unit_test(what_another_task_has_done_is_heard_of),
        cmocka_unit_test(what_has_come_began_when_it_came),
        cmocka_unit_test(a_failure_ends_all_tasks_or_where_data_end_the_lane_that_has_it),
    };
    return cmocka_run_group_tests_name("dispatchers", tests, NULL, NULL);
}
