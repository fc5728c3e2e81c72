/* Running, from within: dispatchers and plans made by hand, who comes after whom by the memory that is touched, where
 * the time of a step went that is made up, runs that are known to wait for queues, values as bytes between tasks, and
 * tasks that lose each other, played in one process. label: threads */
#include "runs_in_threads.h"

#include "base/clock.h"
#include "comm/exchange.h"
#include "device/state/queue.h"
#include "faulty_memory.h"
#include "run/dispatcher.h"
#include "run/packing.h"
#include "run/session.h"
#include "run/trace.h"
#include "run/traffic.h"
#include "run/waterfall.h"

#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- dispatchers: plans made by hand, on devices that are made up ------------------------------------------------ */

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

static void end_lane(twi_comm *c, int channel, int count_of_them, tw_status status, const char *why)
{
    (void)channel, (void)count_of_them, (void)status, (void)why;
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
    f->comm = (twi_comm){.ops = &ops, .tasks = 2};
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

/* ---- traffic: against every pair of works, looked at one by one -------------------------------------------------- */

enum { WORKS = 40, TOUCHES = 3, ADDRESSES = 60 };

typedef struct touch {
    int begin, end;
    bool writes;
} touch;

static bool meet(const touch *a, const touch *b)
{
    return a->begin < b->end && b->begin < a->end && (a->writes || b->writes);
}

static bool must_wait(touch works[WORKS][TOUCHES], int work, int before)
{
    for (int i = 0; i < TOUCHES; i++)
        for (int k = 0; k < TOUCHES; k++)
            if (meet(&works[work][i], &works[before][k]))
                return true;
    return false;
}

static uint32_t next(uint32_t *state)
{
    return *state = *state * 1664525u + 1013904223u, *state >> 8;
}

/* waits[a][b]: a comes after b, by what was said of a or of those between. */
static void check(uint32_t seed)
{
    static char memory[ADDRESSES];
    touch works[WORKS][TOUCHES];
    bool waits[WORKS][WORKS] = {{false}};
    twi_traffic *t = twi_traffic_create();
    assert_non_null(t);
    for (int w = 0; w < WORKS; w++) {
        const int *after;
        int count;
        for (int i = 0; i < TOUCHES; i++) {
            int begin = (int)(next(&seed) % ADDRESSES), length = 1 + (int)(next(&seed) % 6);
            int end = begin + length < ADDRESSES ? begin + length : ADDRESSES;
            works[w][i] = (touch){begin, end, next(&seed) % 3 == 0};
            assert_int_equal(twi_traffic_touch(t, memory + begin, (size_t)(end - begin), works[w][i].writes), TW_OK);
        }
        twi_traffic_end_work(t, &after, &count);
        for (int i = 0; i < count; i++) {
            assert_true(after[i] >= 0 && after[i] < w);
            assert_true(must_wait(works, w, after[i])); /* nobody waits for nothing */
            for (int k = 0; k < i; k++)
                assert_int_not_equal(after[i], after[k]);
            waits[w][after[i]] = true;
            for (int k = 0; k < w; k++)
                waits[w][k] |= waits[after[i]][k];
        }
        for (int before = 0; before < w; before++)
            assert_true(waits[w][before] || !must_wait(works, w, before));
    }
    twi_traffic_destroy(t);
}

static void works_come_after_those_that_they_meet_in_memory(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 300; seed++)
        check(seed);
}

static void works_that_only_read_are_side_by_side(void **state)
{
    (void)state;
    char memory[64];
    const int *after;
    int count;
    twi_traffic *t = twi_traffic_create();
    assert_int_equal(twi_traffic_touch(t, memory, 64, true), TW_OK);
    twi_traffic_end_work(t, &after, &count);
    assert_int_equal(count, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(twi_traffic_touch(t, memory + 8 * i, 40, false), TW_OK);
        assert_int_equal(twi_traffic_touch(t, NULL, 0, true), TW_OK);
        twi_traffic_end_work(t, &after, &count);
        assert_true(count == 1 && after[0] == 0);
    }
    assert_int_equal(twi_traffic_touch(t, memory + 16, 1, true), TW_OK);
    twi_traffic_end_work(t, &after, &count);
    assert_int_equal(count, 3);
    twi_traffic_destroy(t);
}

/* ---- a run made up by hand -------------------------------------------------------------------------------------- */

enum { CPU, GPU0, GPU1, DEVICES };

typedef struct made_up {
    twi_plan plan;
    twi_list lists[DEVICES];
    twi_device devices[DEVICES];
    twi_step steps[DEVICES][8];
    const twi_node *nodes[DEVICES][8];
    twi_span spans[DEVICES][8];
    twi_track tracks[DEVICES];
    twi_trace trace;
    tw_graph *g;
} made_up;

static const twi_kernel some_kernel = {"Any", "plain"};
static const char *const texts[DEVICES] = {"/cpu:0", "/gpu:0", "/gpu:1"};
static const char *const gpus[] = {"/gpu:0", "/gpu:1"};

static void begin(made_up *m)
{
    *m = (made_up){.g = tw_graph_create()};
    for (int d = 0; d < DEVICES; d++) {
        snprintf(m->devices[d].text, sizeof m->devices[d].text, "%s", texts[d]);
        m->lists[d] = (twi_list){.device = &m->devices[d], .steps = m->steps[d], .nodes = m->nodes[d]};
        m->tracks[d].spans = m->spans[d];
    }
    m->plan = (twi_plan){.region = twi_region_create(), .lists = m->lists, .num_lists = DEVICES, .trace = &m->trace};
    m->trace = (twi_trace){.began_ns = 1000, .tracks = m->tracks};
}

static void end(made_up *m)
{
    twi_region_destroy(m->plan.region);
    tw_graph_destroy(m->g);
}

/* The node as a plan has it, with all that it needs. */
static twi_node *planned(made_up *m, const tw_node *node)
{
    twi_value inputs[8];
    for (int i = 0; i < m->plan.region->nodes.count; i++)
        if (m->plan.region->nodes.items[i]->origin == node)
            return m->plan.region->nodes.items[i];
    for (int i = 0; i < node->num_inputs; i++)
        inputs[i] = twi_out(planned(m, node->inputs[i].node), node->inputs[i].index);
    return twi_node_copy(m->plan.region, node, inputs, node->num_inputs);
}

/* Adds a step that runs from started to ended (ns after the beginning). */
static twi_step *add(made_up *m, int device, tw_node *node, int started, int ended)
{
    int i = m->lists[device].count++;
    twi_node *made = planned(m, node);
    m->steps[device][i] = (twi_step){.kernel = &some_kernel};
    m->nodes[device][i] = made;
    m->spans[device][i] = (twi_span){.started_ns = 1000 + started, .ended_ns = 1000 + ended};
    made->device = device;
    return &m->steps[device][i];
}

/* Takes the run apart, which ends then (ns after the beginning). */
static tw_waterfall take_apart(made_up *m, int ended)
{
    tw_waterfall w;
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < m->lists[d].count; i++)
            m->spans[d][i].kind = twi_time_kind_of(&m->steps[d][i], m->nodes[d][i]);
    m->trace.ended_ns = 1000 + ended;
    twi_waterfall(&(twi_plan *){&m->plan}, 1, gpus, 2, &w);
    return w;
}

static twi_step *after(twi_step *step, twi_step_id *wait, int device, int position)
{
    *wait = (twi_step_id){device, position};
    step->waits = wait;
    step->num_waits = 1;
    return step;
}

static tw_node *input_node(tw_graph *g)
{
    tw_output batch;
    tw_input(g, "x", 0, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(1)}, 1, &batch);
    return batch.node;
}

static void a_step_is_taken_apart_along_the_chain_that_held_it_up(void **state)
{
    (void)state;
    made_up m;
    twi_step_id waits[3];
    tw_waterfall w;
    begin(&m);
    tw_output square = tw_square(m.g, tw_placeholder(m.g, TW_FLOAT32, TW_SHAPE(1))), sum = tw_add(m.g, square, square);
    tw_variable *v = tw_get_variable(m.g, "v", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){0});
    tw_output apply = tw_apply_gradient_descent(m.g, v->handle, tw_scalar(m.g, 1), sum);
    twi_mark_node(sum.node, "_reduction");
    assert_string_equal(tw_graph_message(m.g), "");

    add(&m, CPU, input_node(m.g), 100, 300);                                   /* 100 launch, 200 input */
    tw_node *copied = tw_identity(m.g, square).node;
    twi_step *copy = after(add(&m, GPU1, copied, 350, 450), &waits[0], CPU, 0); /* 50 launch, 100 copies */
    copy->kernel = NULL;
    copy->source = &m.devices[CPU];
    add(&m, GPU1, square.node, 450, 1450);                                     /* 1000 compute, of which ... */
    add(&m, GPU0, square.node, 350, 1150);                                     /* ... the other tower needs 800 */
    after(add(&m, GPU0, sum.node, 1500, 1600), &waits[1], GPU1, 1);            /* 50 launch, 100 reduction */
    after(add(&m, CPU, apply.node, 1600, 1900), &waits[2], GPU0, 1);           /* 300 compute */
    w = take_apart(&m, 2000);                                                  /* 100 launch */
    static const double expected[TW_TIME_KINDS] = {800 + 300, 200, 100, 100, 200, 100 + 50 + 50 + 100};
    for (int k = 0; k < TW_TIME_KINDS; k++)
        if (fabs(w.seconds[k] * 1e9 - expected[k]) > 1e-3)
            fail_msg("%s: %.1f ns, expected %.1f", tw_time_kind_name((tw_time_kind)k), w.seconds[k] * 1e9, expected[k]);
    assert_true(fabs(w.total * 1e9 - 2000) < 1e-3);
    end(&m);
}

static void expect_ns(const tw_waterfall *w, tw_time_kind kind, double expected)
{
    if (fabs(w->seconds[kind] * 1e9 - expected) > 1e-3)
        fail_msg("%s: %.1f ns, expected %.1f", tw_time_kind_name(kind), w->seconds[kind] * 1e9, expected);
}

/* Updates of variables are done once for all towers, so a device that has more of them than another is not slow. */
static void whatever_writes_a_variable_is_no_towers_work(void **state)
{
    (void)state;
    made_up m;
    tw_waterfall w;
    for (int which = 0; which < 4; which++) {
        begin(&m);
        tw_output x = tw_placeholder(m.g, TW_FLOAT32, TW_SHAPE(1)), rows = tw_zeros(m.g, TW_FLOAT32, TW_SHAPE(1, 2));
        tw_output v = tw_get_variable(m.g, "v", TW_FLOAT32, TW_SHAPE(3, 2), (tw_initializer){0})->handle;
        tw_output update = which == 0   ? tw_scatter_sub(m.g, v, tw_zeros(m.g, TW_INT32, TW_SHAPE(1)), rows)
                           : which == 1 ? tw_assign(m.g, v, tw_zeros(m.g, TW_FLOAT32, TW_SHAPE(3, 2)))
                           : which == 2 ? tw_read_variable(m.g, v)
                                        : tw_is_initialized(m.g, v);
        bool writes = which < 2;
        assert_string_equal(tw_graph_message(m.g), "");
        add(&m, GPU0, x.node, 0, 100);
        add(&m, GPU1, x.node, 0, 100);
        add(&m, GPU1, update.node, 100, 600);
        w = take_apart(&m, 600);
        expect_ns(&w, TW_TIME_IMBALANCE, writes ? 0 : 500);
        expect_ns(&w, TW_TIME_COMPUTE, writes ? 600 : 100);
        end(&m);
    }
}

static void waiting_for_a_queue_is_input(void **state)
{
    (void)state;
    made_up m;
    tw_waterfall w;
    tw_output taken;
    begin(&m);
    tw_output queue = tw_queue(m.g, TW_QUEUE_FIFO, (tw_dtype[]){TW_FLOAT32}, (tw_shape[]){TW_SHAPE(1)}, 1, NULL);
    tw_dequeue(m.g, queue, &taken);
    assert_string_equal(tw_graph_message(m.g), "");
    add(&m, CPU, taken.node, 0, 400);
    w = take_apart(&m, 400);
    expect_ns(&w, TW_TIME_INPUT, 400);
    end(&m);
}

/* ---- runs that wait for queues ----------------------------------------------------------------------------------- */

/* Waits until so many threads wait for queues of the session. */
static void wait_until_waiting(tw_session *s, int threads)
{
    for (int found = -1; found < threads; nanosleep(&(struct timespec){0, 1000000}, NULL)) {
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

static void cancelling_a_session_wakes_those_who_wait(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, &(tw_queue_options){.capacity = 1}), pair, names;
    tw_output values = tw_constant_int32s(g, TW_SHAPE(3), (int32_t[]){1, 2, 3});
    tw_dtype text = TW_STRING;
    tw_output empty = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, NULL);
    tw_output put = tw_enqueue_many(g, q, &values, 1);
    names = tw_queue(g, TW_QUEUE_FIFO, &text, scalars, 1, NULL);
    tw_output record = tw_reader_read(g, tw_whole_file_reader(g), names, NULL);
    tw_dequeue_many(g, empty, 2, &pair);
    tw_session *s = open_session(g, 0);
    runner waiting[4];
    start(&waiting[0], s, 1, (tw_output){put.node, -1});
    start(&waiting[1], s, 2, pair);
    start(&waiting[2], s, 3, record);
    start(&waiting[3], s, 4, record); /* waits for the reader, which waits for a name */
    wait_until_waiting(s, 3);
    for (int i = 0; i < 4; i++)
        assert_false(waiting[i].ended);
    tw_session_cancel(s);
    for (int i = 0; i < 4; i++) {
        finish(&waiting[i]);
        assert_int_equal(waiting[i].status, TW_CANCELLED);
    }
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
    for (int i = 0; i < 2; i++) {
        start(&waiting[i], s, 1 + i, out);
        wait_until_waiting(s, 1 + i);
    }
    tw_session_cancel_lane(s, 1);
    finish(&waiting[0]);
    assert_int_equal(waiting[0].status, TW_CANCELLED);
    assert_false(waiting[1].ended);
    run_ok(s, put);
    assert_int_equal(finish(&waiting[1]), 7);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- sessions of several tasks, whose messages are made up ------------------------------------------------------- */

enum { NUMBERS = 4 }; /* that a stream's place may have */

typedef struct company {
    twi_comm comm;
    int64_t there[3][NUMBERS]; /* where the streams of tasks 1 and 2 stand */
    int ended[4], num_ended;   /* channels, from the first of a lane on */
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

static void note_end(twi_comm *c, int channel, int count_of_them, tw_status status, const char *why)
{
    company *all = (company *)c;
    (void)count_of_them;
    assert_int_equal(status, TW_CANCELLED);
    assert_string_equal(why, "the lane was cancelled");
    assert_in_range(all->num_ended, 0, 3);
    all->ended[all->num_ended++] = channel;
}

static const twi_comm_ops company_ops = {.send = hear_nothing, .receive = tell_place, .end = note_end};

/* Where the stream stands that this task has drawn from so far, as far as `mine` says, and others as far as they say. */
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
    company all = {.comm = {.ops = &company_ops, .tasks = 3}};
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
    company all = {.comm = {.ops = &company_ops, .tasks = 3}};
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
            assert_int_equal(all.ended[k], TWI_CHANNEL_OF_LANES + lanes[i] * (1 + devices->count));
    }
    devices->comm = NULL;
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- strings and lists of tensors as bytes, for messages between tasks ------------------------------------------- */

enum { ITEMS = 20 };

/* Where the numbers of a list lie in its bytes, and in those of its first item. */
enum {
    AT_WANTED = 1,
    AT_MOST = AT_WANTED + sizeof(tw_shape),
    AT_COUNT = AT_MOST + sizeof(int64_t),
    AT_ITEM = AT_COUNT + sizeof(int64_t),
    AT_DTYPE = AT_ITEM + sizeof(int64_t),
    AT_SHAPE = AT_DTYPE + sizeof(tw_dtype),
    AT_VALUES = AT_SHAPE + sizeof(tw_shape)
};

static void put(twi_tensor_list *list, int64_t i, tw_tensor *tensor)
{
    assert_non_null(tensor);
    assert_true(twi_tensor_list_put(list, i, tensor));
}

/* A list as the only element of a tensor, which has it from then on. */
static tw_tensor *tensor_of(twi_tensor_list *list)
{
    tw_tensor *tensor = twi_tensor_create(TW_VARIANT, TW_SCALAR);
    *(twi_tensor_list **)tensor->data = list;
    return tensor;
}

/* Numbers, nothing, words, and a list with a number. */
static twi_tensor_list *make_list(void)
{
    tw_string words[] = {{"a", 1}, {"", 0}, {"b\0c", 3}};
    twi_tensor_list *list = twi_tensor_list_create(ITEMS), *inner = twi_tensor_list_create(1);
    list->wanted = TW_SHAPE(3);
    list->most = 40;
    put(inner, 0, tw_tensor_from(TW_INT64, TW_SCALAR, (int64_t[]){-5}));
    put(list, 0, tw_tensor_from(TW_FLOAT32, TW_SHAPE(3), (float[]){1, 2, 3}));
    put(list, 7, tw_tensor_from(TW_STRING, TW_SHAPE(3), words));
    put(list, 18, tw_tensor_create(TW_FLOAT32, TW_SHAPE(0, 2)));
    put(list, ITEMS - 1, tensor_of(inner));
    return list;
}

static void check_list(const twi_tensor_list *list)
{
    static const int64_t set[] = {0, 7, 18, ITEMS - 1, ITEMS};
    assert_non_null(list);
    assert_int_equal(list->count, ITEMS);
    assert_int_equal(list->most, 40);
    assert_true(tw_shape_equal(list->wanted, TW_SHAPE(3)));
    for (int i = 0; i < 5; i++)
        assert_int_equal(twi_tensor_list_next(list, i ? set[i - 1] + 1 : 0), set[i]);
    for (int i = 0; i < 3; i++)
        assert_true(tw_tensor_value(twi_tensor_list_item(list, 0), i) == i + 1);
    const tw_string *words = twi_tensor_list_item(list, 7)->data;
    assert_int_equal(words[1].size, 0);
    assert_int_equal(words[2].size, 3);
    assert_memory_equal(words[2].data, "b\0c", 3);
    assert_true(tw_shape_equal(twi_tensor_list_item(list, 18)->shape, TW_SHAPE(0, 2)));
    const twi_tensor_list *inner = *(twi_tensor_list **)twi_tensor_list_item(list, ITEMS - 1)->data;
    assert_int_equal(inner->count, 1);
    assert_int_equal(inner->most, -1);
    assert_true(tw_tensor_value(twi_tensor_list_item(inner, 0), 0) == -5);
}

/* What has come, from bytes with nothing behind them. */
static tw_status unpack(const char *bytes, size_t size, tw_dtype dtype, void *values, size_t count, tw_error *error)
{
    char *copy = malloc(size + !size);
    *error = (tw_error){0};
    memcpy(copy, bytes, size);
    tw_status status = twi_unpack_values(copy, size, dtype, values, count, "a value", error);
    free(copy);
    return status;
}

static void values_come_as_they_went(void **state)
{
    (void)state;
    tw_error error;
    twi_text packed = {0};
    tw_string words[] = {{"one", 3}, {"", 0}, {"t\0o", 3}}, came[3] = {{0}};
    twi_tensor_list *lists[] = {make_list(), NULL, twi_tensor_list_create(0)};
    twi_tensor_list *got[] = {NULL, twi_tensor_list_create(3), make_list()};
    assert_true(twi_string_set(&came[1], "let go", 6));
    assert_true(twi_pack_values(TW_STRING, words, 3, &packed));
    assert_ok(unpack(packed.data, packed.size, TW_STRING, came, 3, &error));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(came[i].size, words[i].size);
        assert_memory_equal(came[i].data, words[i].data, words[i].size);
        twi_string_set(&came[i], NULL, 0);
    }
    twi_text_free(&packed);
    packed = (twi_text){0};
    assert_true(twi_pack_values(TW_VARIANT, lists, 3, &packed));
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, got, 3, &error));
    check_list(got[0]);
    assert_null(got[1]);
    assert_int_equal(got[2]->count, 0);
    for (int i = 0; i < 3; i++) {
        twi_tensor_list_release(lists[i]);
        twi_tensor_list_release(got[i]);
    }
    twi_text_free(&packed);
}

static void refuse(const char *bytes, size_t size, tw_dtype dtype)
{
    tw_error error;
    tw_tensor *value = twi_tensor_create(dtype, TW_SHAPE(2));
    assert_fails(unpack(bytes, size, dtype, value->data, 1, &error), TW_DATA_LOSS,
                 "what another task has sent is no such value: a value");
    tw_tensor_release(value);
}

/* Cut anywhere, or with a byte too many. */
static void lengths_are_looked_at(void **state)
{
    (void)state;
    tw_string word = {"abc", 3};
    twi_tensor_list *list = make_list();
    for (int owned = 0; owned < 2; owned++) {
        twi_text packed = {0};
        tw_dtype dtype = owned ? TW_VARIANT : TW_STRING;
        assert_true(twi_pack_values(dtype, owned ? (void *)&list : &word, 1, &packed));
        for (size_t size = 0; size < packed.size; size++)
            refuse(packed.data, size, dtype);
        twi_text_append(&packed, "", 1);
        refuse(packed.data, packed.size, dtype);
        twi_text_free(&packed);
    }
    twi_tensor_list_release(list);
}

/* The same with other bytes at one place. */
static void refuse_with(const twi_text *packed, size_t at, const void *bytes, size_t size)
{
    char *copy = malloc(packed->size);
    memcpy(copy, packed->data, packed->size);
    memcpy(copy + at, bytes, size);
    refuse(copy, packed->size, TW_VARIANT);
    free(copy);
}

static void numbers_are_looked_at(void **state)
{
    (void)state;
    static const int64_t items[] = {-2, ITEMS, INT64_MAX}, sizes[] = {-1, 4, INT64_MAX, 1 << 20}, none = -1;
    static const tw_dtype dtypes[] = {TW_INVALID_DTYPE, (tw_dtype)1000};
    static const int ranks[] = {-1, TW_MAX_RANK + 1, 1 << 30};
    tw_error error;
    twi_text packed = {0};
    twi_tensor_list *list = make_list();
    const tw_shape many = TW_SHAPE(1 << 30, 1 << 30, 1 << 30), some = TW_SHAPE(INT64_MAX, 3);
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    for (int i = 0; i < 3; i++)
        refuse_with(&packed, AT_ITEM, &items[i], sizeof items[i]);
    for (int i = 0; i < 2; i++)
        refuse_with(&packed, AT_DTYPE, &dtypes[i], sizeof dtypes[i]);
    for (int i = 0; i < 3; i++)
        refuse_with(&packed, AT_SHAPE + offsetof(tw_shape, rank), &ranks[i], sizeof ranks[i]);
    for (int i = 0; i < 4; i++)
        refuse_with(&packed, AT_SHAPE + offsetof(tw_shape, dims), &sizes[i], sizeof sizes[i]);
    refuse_with(&packed, AT_SHAPE, &many, sizeof many);
    refuse_with(&packed, AT_SHAPE, &some, sizeof some);
    refuse_with(&packed, AT_COUNT, &none, sizeof none);
    refuse_with(&packed, AT_WANTED + offsetof(tw_shape, rank), &ranks[1], sizeof ranks[1]);
    packed.data[0] = 2; /* not nothing: a list is there */
    twi_tensor_list_release(list);
    list = NULL;
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, &list, 1, &error));
    check_list(list);
    twi_tensor_list_release(list);
    twi_text_free(&packed);
}

/* As many elements as there are bytes, and one more. */
static void shapes_must_fit_into_what_is_left(void **state)
{
    (void)state;
    static const int64_t none = -1;
    tw_error error;
    twi_text packed = {0};
    twi_tensor_list *list = twi_tensor_list_create(1), *got = NULL;
    put(list, 0, tw_tensor_from(TW_UINT8, TW_SHAPE(2, 4), "abcdefgh"));
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    assert_int_equal(packed.size, AT_VALUES + 8 + sizeof none);
    refuse_with(&packed, AT_SHAPE, &TW_SHAPE(17), sizeof(tw_shape));
    refuse_with(&packed, AT_SHAPE, &TW_SHAPE(16), sizeof(tw_shape)); /* fits, and its end is missing */
    refuse_with(&packed, AT_SHAPE, &TW_SHAPE(0), sizeof(tw_shape));  /* what was an element is no item's number */
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, &got, 1, &error));
    assert_memory_equal(twi_tensor_list_item(got, 0)->data, "abcdefgh", 8);
    twi_tensor_list_release(got);
    twi_tensor_list_release(list);
    twi_text_free(&packed);
}

/* Strings of nothing take less than they do here; and there may be as many dimensions as a shape has. */
static void the_smallest_values_of_most_dimensions_come(void **state)
{
    (void)state;
    tw_error error;
    twi_text packed = {0};
    twi_tensor_list *list = twi_tensor_list_create(2), *got = NULL;
    tw_shape most = {.rank = TW_MAX_RANK};
    for (int i = 0; i < TW_MAX_RANK; i++)
        most.dims[i] = 1;
    put(list, 0, tw_tensor_create(TW_UINT8, most));
    put(list, 1, tw_tensor_create(TW_STRING, TW_SHAPE(20)));
    assert_true(twi_pack_values(TW_VARIANT, &list, 1, &packed));
    assert_ok(unpack(packed.data, packed.size, TW_VARIANT, &got, 1, &error));
    assert_true(tw_shape_equal(twi_tensor_list_item(got, 0)->shape, most));
    assert_true(tw_shape_equal(twi_tensor_list_item(got, 1)->shape, TW_SHAPE(20)));
    twi_tensor_list_release(got);
    twi_tensor_list_release(list);
    twi_text_free(&packed);
}

/* So many lists, one in the other. */
static twi_tensor_list *nest(int depth)
{
    twi_tensor_list *list = twi_tensor_list_create(1);
    for (int i = 1; i < depth; i++) {
        twi_tensor_list *around = twi_tensor_list_create(1);
        put(around, 0, tensor_of(list));
        list = around;
    }
    return list;
}

static void lists_are_64_deep_at_most(void **state)
{
    (void)state;
    tw_error error;
    for (int depth = 64; depth < 66; depth++) {
        twi_text packed = {0};
        twi_tensor_list *lists[] = {nest(depth), nest(1)}, *got[2] = {NULL};
        assert_true(twi_pack_values(TW_VARIANT, lists, 2, &packed));
        tw_status status = unpack(packed.data, packed.size, TW_VARIANT, got, 2, &error);
        assert_int_equal(status, depth > 64 ? TW_DATA_LOSS : TW_OK);
        for (int i = 0; i < 2; i++) {
            twi_tensor_list_release(lists[i]);
            twi_tensor_list_release(got[i]);
        }
        twi_text_free(&packed);
    }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    bool failed = true;
    for (int n = 0; failed; n++) {
        tw_error error = {0};
        twi_text packed = {0};
        tw_string word = {"abc", 3};
        fail_allocation(1 << 30);
        twi_tensor_list *list = make_list();
        tw_tensor *words = twi_tensor_create(TW_STRING, TW_SCALAR), *lists = twi_tensor_create(TW_VARIANT, TW_SCALAR);
        memory.countdown = n;
        bool fits = twi_pack_values(TW_STRING, &word, 1, &packed);
        tw_status status = fits ? unpack(packed.data, packed.size, TW_STRING, words->data, 1, &error) : TW_OK;
        if (fits && status == TW_OK) {
            packed.size = 0;
            fits = twi_pack_values(TW_VARIANT, &list, 1, &packed);
            status = fits ? unpack(packed.data, packed.size, TW_VARIANT, lists->data, 1, &error) : TW_OK;
        }
        failed = stop_failing_allocations();
        assert_true(failed == (!fits || status == TW_RESOURCE_EXHAUSTED));
        assert_true(failed || status == TW_OK);
        tw_set_allocator(faulty_resize, NULL);
        twi_text_free(&packed);
        tw_tensor_release(words);
        tw_tensor_release(lists);
        twi_tensor_list_release(list);
        assert_int_equal(memory.live, 0);
        stop_failing_allocations();
    }
}

/* ---- tasks that one process plays -------------------------------------------------------------------------------- */

/* A carrier of messages in memory: what is sent lies with the receiver until it is due, in the order of who sent it.
 * Each player can be told to be late, to lose a message, to say it twice, to spoil it, to hang, or to end without a
 * word. */
enum { PLAYERS = 3, ROUNDS = 20, CHANNEL = 5 };

typedef struct letter {
    struct letter *next;
    int64_t due_ns;
    twi_header header;
    char data[];
} letter;

typedef struct player {
    twi_exchange x;
    struct player *all; /* [PLAYERS] */
    pthread_t thread;
    tw_status (*work)(twi_comm *c, tw_error *error);
    tw_status status;
    tw_error error;
    pthread_mutex_t lock;
    letter *lines[PLAYERS]; /* from each, with the lock */
    int64_t late_ns, held_ns; /* each of its messages, at most; for so long it is held up at once */
    int64_t begins_ns;        /* so late it begins */
    int lost, twice, spoiled; /* which of its messages, counted from 1 */
    int spoken;
    bool hangs, vanishes;
    bool failed_at_the_end; /* when its carrier was closed */
} player;

static void lay_down(player *to, int from, const twi_header *header, const void *data, int64_t due_ns)
{
    letter *l = calloc(1, sizeof *l + (size_t)header->bytes);
    l->due_ns = due_ns;
    l->header = *header;
    if (header->bytes)
        memcpy(l->data, data, (size_t)header->bytes);
    pthread_mutex_lock(&to->lock);
    letter **end = &to->lines[from];
    while (*end)
        end = &(*end)->next;
    *end = l;
    pthread_mutex_unlock(&to->lock);
}

static bool player_put(twi_exchange *x, int to, const twi_header *given, const void *data, bool patient)
{
    player *p = (player *)x;
    twi_header header = *given;
    int number = header.channel >= 0 ? ++p->spoken : -1, from = x->base.task;
    int64_t due = twi_monotonic_ns() + p->late_ns * (number % 7);
    (void)patient;
    if (p->hangs || number == p->lost)
        return true;
    header.magic += number == p->spoiled;
    lay_down(&p->all[to], from, &header, data, due);
    if (number == p->twice)
        lay_down(&p->all[to], from, &header, data, due);
    return true;
}

static bool take_letter(player *p, int from)
{
    letter *l = p->lines[from];
    if (!l || l->due_ns > twi_monotonic_ns())
        return false;
    p->lines[from] = l->next;
    twi_message *m = twi_exchange_room(&p->x, from, &l->header);
    if (m) {
        memcpy(m->data, l->data, m->bytes);
        twi_exchange_hand_in(&p->x, from, &l->header, m);
    }
    free(l);
    return true;
}

static twi_progress player_pump(twi_exchange *x)
{
    player *p = (player *)x;
    twi_progress progress = TWI_NOTHING;
    pthread_mutex_lock(&p->lock);
    for (int from = 0; from < PLAYERS; from++)
        while (take_letter(p, from))
            progress = TWI_CAME;
    if (p->held_ns)
        nanosleep(&(struct timespec){p->held_ns / 1000000000, p->held_ns % 1000000000}, NULL);
    p->held_ns = 0;
    pthread_mutex_unlock(&p->lock);
    return progress;
}

/* The others may still write to it: it is freed when all have ended. */
static void player_close(twi_exchange *x)
{
    ((player *)x)->failed_at_the_end = atomic_load(&x->failed);
}

static const twi_carrier_ops in_memory = {player_put, player_pump, player_close};

static void *act(void *argument)
{
    player *p = argument;
    nanosleep(&(struct timespec){p->begins_ns / 1000000000, p->begins_ns % 1000000000}, NULL);
    if (p->begins_ns && twi_exchange_start(&p->x, &p->error) != TW_OK)
        return NULL;
    p->status = p->work(&p->x.base, &p->error);
    for (int i = 0; i < PLAYERS && p->vanishes; i++)
        if (i != p->x.base.task)
            twi_exchange_lost(&p->all[i].x, p->x.base.task);
    twi_comm_close(&p->x.base);
    return NULL;
}

static void set_up(player *players, tw_status (*work)(twi_comm *c, tw_error *error), double deadline)
{
    tw_error error = {0};
    memset(players, 0, sizeof *players * PLAYERS);
    for (int i = 0; i < PLAYERS; i++) {
        player *p = &players[i];
        p->all = players;
        p->work = work;
        pthread_mutex_init(&p->lock, NULL);
        assert_ok(twi_exchange_init(&p->x, &in_memory, i, PLAYERS, deadline, &error));
    }
}

static void play(player *players)
{
    tw_error error = {0};
    for (int i = 0; i < PLAYERS; i++)
        if (!players[i].begins_ns)
            assert_ok(twi_exchange_start(&players[i].x, &error));
    for (int i = 0; i < PLAYERS; i++)
        assert_int_equal(pthread_create(&players[i].thread, NULL, act, &players[i]), 0);
    for (int i = 0; i < PLAYERS; i++)
        pthread_join(players[i].thread, NULL);
    for (int i = 0; i < PLAYERS; i++) {
        twi_exchange_clear(&players[i].x);
        pthread_mutex_destroy(&players[i].lock);
        for (int from = 0; from < PLAYERS; from++)
            for (letter *l = players[i].lines[from], *next; l; l = next) {
                next = l->next;
                free(l);
            }
    }
}

/* Bytes of a message that nobody else sends, and as many as nobody else does. */
static size_t compose(char *text, int from, int to, int round)
{
    size_t bytes = (size_t)(1 + from + PLAYERS * (to + PLAYERS * round));
    memset(text, from * 64 + to * 16 + round % 16, bytes);
    return bytes;
}

/* Everybody speaks to everybody in each round, then all share and compare. */
static tw_status converse(twi_comm *c, tw_error *error)
{
    enum { MOST = PLAYERS * PLAYERS * (ROUNDS + 1) };
    char sent[MOST], came[MOST];
    tw_status status = TW_OK;
    for (int round = 0; round < ROUNDS && status == TW_OK; round++) {
        for (int to = 0; to < c->tasks && status == TW_OK; to++)
            if (to != c->task)
                status = c->ops->send(c, to, CHANNEL, sent, compose(sent, c->task, to, round), error);
        for (int from = 0; from < c->tasks && status == TW_OK; from++) {
            size_t bytes = compose(sent, from, c->task, round);
            if (from == c->task)
                continue;
            status = c->ops->receive(c, from, CHANNEL, came, bytes, "a word", error);
            if (status == TW_OK && memcmp(sent, came, bytes) != 0)
                return twi_fail(error, TW_INTERNAL, "another word came");
        }
    }
    uint64_t shared = (uint64_t)c->task;
    if (status == TW_OK)
        status = twi_comm_share(c, 1, &shared, sizeof shared, "a number", error);
    return status == TW_OK && shared != 1 ? twi_fail(error, TW_INTERNAL, "another number came") : status;
}

static void describe_number(const void *user, size_t i, char *text, size_t size)
{
    const uint64_t *numbers = user;
    snprintf(text, size, "number %d", (int)numbers[i]);
}

static tw_status compare_lists(twi_comm *c, tw_error *error)
{
    uint64_t numbers[] = {7, 8, c->task == 2 ? 10 : 9};
    return twi_comm_compare(c, &(twi_comm_list){numbers, 3, describe_number, numbers}, "what they know", error);
}

/* All end with that status, and what they say holds `part`; `except` may have ended otherwise. */
static void assert_all_end(const player *players, tw_status status, const char *part, int except)
{
    for (int i = 0; i < PLAYERS; i++)
        if (i != except) {
            if (players[i].status != status)
                fail_msg("task %d: status %d, %s", i, players[i].status, players[i].error.message);
            assert_message(players[i].error.message, part);
        }
}

/* They have one clock, so what is found is at most what a message may have taken. */
static tw_status compare_clocks(twi_comm *c, tw_error *error)
{
    int64_t began = twi_monotonic_ns(), ahead = INT64_MAX;
    tw_status status = twi_comm_clock(c, &ahead, error);
    int64_t took = twi_monotonic_ns() - began;
    return status == TW_OK && (ahead > took || ahead < -took || (c->task == 0 && ahead != 0))
               ? twi_fail(error, TW_INTERNAL, "ahead by %lld ns, found within %lld", (long long)ahead, (long long)took)
               : status;
}

static void clocks_of_tasks_are_compared(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, compare_clocks, 30);
    players[1].late_ns = 200000;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static void messages_come_in_their_order_however_late(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse, 30);
    players[1].late_ns = 200000;
    players[2].late_ns = 50000;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

/* Task 0 says a word and ends the channel and the one behind it. What came before that is taken, what waits or is sent in
 * them fails with its status on all, and other channels go on. */
static tw_status end_some_channels(twi_comm *c, tw_error *error)
{
    char word[8] = "word";
    tw_error ended = {0};
    tw_status status = TW_OK;
    if (c->task == 0) {
        status = c->ops->send(c, 1, CHANNEL, word, sizeof word, error);
        c->ops->end(c, CHANNEL, 2, TW_OUT_OF_RANGE, "there are no more words");
        if (c->ops->send(c, 1, CHANNEL, word, sizeof word, &ended) != TW_OUT_OF_RANGE)
            return twi_fail(error, TW_INTERNAL, "a word was sent behind the end");
    }
    if (c->task == 1)
        status = c->ops->receive(c, 0, CHANNEL, word, sizeof word, "a word", error);
    for (int i = 0; i < 2 && status == TW_OK && c->task > 0; i++)
        if (c->ops->receive(c, 0, CHANNEL + i, word, sizeof word, "a word", &ended) != TW_OUT_OF_RANGE ||
            !strstr(ended.message, "no more words"))
            return twi_fail(error, TW_INTERNAL, "channel %d: '%s'", CHANNEL + i, ended.message);
    return status == TW_OK ? twi_comm_share_in(c, CHANNEL + 2, 0, word, sizeof word, "a word", error) : status;
}

static void a_channel_that_ends_ends_alone_and_behind_what_came(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, end_some_channels, 30);
    players[0].late_ns = 200000;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static tw_status do_nothing(twi_comm *c, tw_error *error)
{
    (void)c, (void)error;
    return TW_OK;
}

/* Everybody sends the number of the round to everybody, which comes even where others have ended the channels since,
 * and some words that nobody takes. One of the tasks ends the channels, the others listen until they hear it. */
static tw_status speak_until_the_end(twi_comm *c, int round, tw_error *error)
{
    int word = round, first = round % c->tasks;
    tw_status status = TW_OK;
    tw_error ended;
    for (int to = 0; to < c->tasks && status == TW_OK; to++)
        if (to != c->task)
            status = c->ops->send(c, to, CHANNEL, &word, sizeof word, error);
    for (int from = 0; from < c->tasks && status == TW_OK; from++) {
        if (from != c->task)
            status = c->ops->receive(c, from, CHANNEL, &word, sizeof word, "a word", error);
        if (status == TW_OUT_OF_RANGE || (status == TW_OK && word != round))
            return twi_fail(error, TW_INTERNAL, "round %d has word %d, status %d", round, word, status);
    }
    for (int i = 0; i < (round + c->task) % 3; i++)
        c->ops->send(c, (c->task + 1) % c->tasks, CHANNEL + i, &word, sizeof word, &ended);
    while (status == TW_OK && c->task != first)
        status = c->ops->receive(c, first, CHANNEL, &word, sizeof word, "a word", error);
    return status == TW_OK ? twi_fail(error, TW_OUT_OF_RANGE, "the round ends") : status;
}

static tw_status begin_anew(twi_comm *c, tw_error *error)
{
    tw_status status = TW_OK;
    for (int round = 0; round < ROUNDS && status == TW_OK; round++) {
        status = speak_until_the_end(c, round, error);
        if (status != TW_OUT_OF_RANGE)
            return status;
        c->ops->end(c, CHANNEL, 2, status, error->message);
        status = c->ops->renew(c, CHANNEL, 2, "the next round", error);
    }
    return status;
}

static void channels_that_have_ended_begin_anew(void **state)
{
    (void)state;
    player players[PLAYERS];
    for (int late = -1; late < PLAYERS; late++) {
        set_up(players, begin_anew, 30);
        if (late >= 0)
            players[late].late_ns = 100000;
        play(players);
        assert_all_end(players, TW_OK, "", -1);
    }
    set_up(players, begin_anew, 30);
    players[1].work = do_nothing;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has left; task", 1);
}

enum { MANY = 2000, FAR = 256 }; /* messages, and how many may be ahead */
static atomic_int said, heard, most_ahead;

/* Task 0 only speaks, and task 1 only listens, after a while. What is ahead lies in the memory of task 1. */
static tw_status speak_or_listen(twi_comm *c, tw_error *error)
{
    char word[8];
    tw_status status = TW_OK;
    for (int i = 0; i < MANY && status == TW_OK && c->task < 2; i++) {
        if (c->task == 1 && i == 0)
            nanosleep(&(struct timespec){0, 100000000}, NULL);
        if (c->task == 1) {
            int ahead = atomic_load(&said) - atomic_load(&heard);
            most_ahead = ahead > most_ahead ? ahead : most_ahead;
        }
        status = c->task == 0 ? c->ops->send(c, 1, CHANNEL, word, sizeof word, error)
                              : c->ops->receive(c, 0, CHANNEL, word, sizeof word, "a word", error);
        atomic_fetch_add(c->task == 0 ? &said : &heard, 1);
    }
    return status;
}

static void who_only_sends_stays_near_who_receives(void **state)
{
    (void)state;
    player players[PLAYERS];
    said = heard = most_ahead = 0;
    set_up(players, speak_or_listen, 30);
    play(players);
    assert_all_end(players, TW_OK, "", -1);
    assert_int_equal(heard, MANY);
    assert_in_range(most_ahead, FAR / 2, FAR + 1);
}

static tw_status speak_in_vain(twi_comm *c, tw_error *error)
{
    char word[8] = "";
    tw_status status = TW_OK;
    for (int i = 0; i < MANY && status == TW_OK; i++)
        status = c->ops->send(c, 1, CHANNEL, word, sizeof word, error);
    return status;
}

static tw_status end_without_a_word(twi_comm *c, tw_error *error)
{
    (void)c, (void)error;
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    return TW_OK;
}

static void who_waits_to_be_listened_to_is_told_that_nobody_will(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, do_nothing, 30);
    players[0].work = speak_in_vain;
    players[1].work = end_without_a_word;
    players[1].hangs = players[1].vanishes = true;
    play(players);
    assert_int_equal(players[0].status, TW_ABORTED);
    assert_string_equal(players[0].error.message, "task 1 has ended before its work was done");
}

static void what_differs_is_told_to_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, compare_lists, 30);
    play(players);
    assert_all_end(players, TW_FAILED_PRECONDITION,
                   "tasks differ in what they know: task 2 has 'number 10', task 0 has 'number 9'", -1);
}

static void who_is_silent_is_named_by_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse, 0.3);
    players[2].hangs = true;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 2 has not been heard of for", 2);
}

static void who_ends_without_a_word_is_named_by_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse, 30);
    players[1].work = do_nothing;
    players[1].hangs = players[1].vanishes = true;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has ended before its work was done", 1);
}

/* What is said alike is said by the first; what another has to say beside that, it says. */
static tw_status complain_alike(twi_comm *c, tw_error *error)
{
    char word = 0;
    if (c->ops->is_to_say(c, 7) != (c->task == 0))
        return twi_fail(error, TW_INTERNAL, "what all say alike was not said once");
    tw_status status = twi_comm_share(c, 2, &word, sizeof word, "a word", error);
    return status == TW_OK && c->task == 1 && !c->ops->is_to_say(c, 8)
               ? twi_fail(error, TW_INTERNAL, "what one alone has to say was not said")
               : status;
}

static void what_all_say_alike_the_first_says(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, complain_alike, 30);
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static atomic_int warnings;

static void hear_warning(void *user, int level, const char *message)
{
    (void)user, (void)level;
    assert_message(message, "s for a word of task 2, which is there but does not send it; after 8 s that ends the run");
    warnings++;
}

/* Beyond the deadline, but not beyond all patience. */
static tw_status wait_for_the_last(twi_comm *c, tw_error *error)
{
    char word = 0;
    if (c->task == 2)
        nanosleep(&(struct timespec){0, 700000000}, NULL);
    return twi_comm_share(c, 2, &word, sizeof word, "a word", error);
}

static void who_waits_for_longer_than_the_deadline_is_told_what_for(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, wait_for_the_last, 0.4);
    tw_set_log(hear_warning, NULL, TW_LOG_WARNING);
    play(players);
    tw_set_log(NULL, NULL, TW_LOG_WARNING);
    assert_all_end(players, TW_OK, "", -1);
    assert_int_equal(warnings, 2);
}

/* Longer than twice the deadline below; then tasks 0 and 2 have something to say to each other. */
static tw_status work_long(twi_comm *c, tw_error *error)
{
    char word = 0;
    nanosleep(&(struct timespec){1, 200000000}, NULL);
    tw_status status = c->ops->send(c, 2 - c->task, CHANNEL, &word, 1, error);
    return status == TW_OK ? c->ops->receive(c, 2 - c->task, CHANNEL, &word, 1, "a word", error) : status;
}

/* It waits for them, since messages move only while somebody asks, and hears of them as long as that is. */
static void who_is_done_waits_for_others_beyond_the_deadline(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, work_long, 0.5);
    players[1].work = do_nothing;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
    for (int i = 0; i < PLAYERS; i++)
        if (players[i].failed_at_the_end)
            fail_msg("task %d: %s", i, players[i].x.reason);
}

/* Who waits at its end for one that dies does not wait for the deadline. */
static void who_is_done_sees_that_another_has_died(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, do_nothing, 30);
    players[1].work = end_without_a_word;
    players[1].hangs = players[1].vanishes = true;
    int64_t began = twi_monotonic_ns();
    play(players);
    assert_true(twi_monotonic_ns() - began < INT64_C(10000000000));
    for (int i = 0; i < PLAYERS; i += 2) {
        assert_true(players[i].failed_at_the_end);
        assert_string_equal(players[i].x.reason, "task 1 has ended before its work was done");
    }
}

/* They have not listened in that time, and do not say of the one who is late that he was silent. */
static void who_was_held_up_takes_nobody_for_lost(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse, 1);
    players[0].held_ns = players[2].held_ns = 700000000;
    players[1].begins_ns = 1300000000;
    play(players);
    assert_all_end(players, TW_OK, "", -1);
}

static void what_is_lost_or_comes_twice_or_spoiled_is_noticed(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, converse, 30);
    players[1].lost = 3;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has sent message 2 to task 0 where 1 was due", -1);
    set_up(players, converse, 30);
    players[1].twice = 3;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has sent message 1 to task 0 where 2 was due", -1);
    set_up(players, converse, 30);
    players[1].spoiled = 3;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 1 has sent what is no message", -1);
}

static tw_status say_one_byte(twi_comm *c, tw_error *error)
{
    char byte[2] = "";
    tw_status status = TW_OK;
    for (int to = 0; to < c->tasks && status == TW_OK; to++)
        if (to != c->task)
            status = c->ops->send(c, to, CHANNEL, byte, 1, error);
    int from = c->task == 0 ? 1 : 0;
    return status == TW_OK ? c->ops->receive(c, from, CHANNEL, byte, c->task == 2 ? 2 : 1, "a byte", error) : status;
}

static tw_status give_up(twi_comm *c, tw_error *error)
{
    c->ops->abort(c, TW_OUT_OF_RANGE, "no coffee");
    return twi_fail(error, TW_OUT_OF_RANGE, "task 2 failed: no coffee");
}

static void other_lengths_and_failures_and_early_ends_are_told_to_all(void **state)
{
    (void)state;
    player players[PLAYERS];
    set_up(players, say_one_byte, 30);
    play(players);
    assert_int_equal(players[2].status, TW_ABORTED);
    assert_string_equal(players[2].error.message, "task 0 has sent 1 bytes where task 2 expected 2: a byte");
    set_up(players, converse, 30);
    players[2].work = give_up;
    play(players);
    assert_all_end(players, TW_OUT_OF_RANGE, "task 2 failed: no coffee", -1);
    set_up(players, converse, 30);
    players[2].work = do_nothing;
    play(players);
    assert_all_end(players, TW_ABORTED, "task 2 has left; task", 2);
}

/* ---- two tasks with sockets between them ------------------------------------------------------------------------- */

static twi_comm *join_by(int task, const char *sockets, double deadline)
{
    char number[16];
    tw_error error = {0};
    twi_comm *c = NULL;
    snprintf(number, sizeof number, "%d", task);
    setenv("TOWER_TASK", number, 1);
    setenv("TOWER_TASK_SOCKETS", sockets, 1);
    assert_true(twi_comm_local.is_here());
    assert_ok(twi_comm_local.open(deadline, &c, &error));
    unsetenv("TOWER_TASK");
    return c;
}

static twi_comm *join(int task, int socket, double deadline)
{
    char sockets[32];
    snprintf(sockets, sizeof sockets, task ? "%d,-" : "-,%d", socket);
    return join_by(task, sockets, deadline);
}

enum { LINES = 4, WORDS = 60, LONGEST = 1 << 18 };

/* One end of a channel. */
typedef struct speaker {
    twi_comm *c;
    int channel;
    pthread_t thread;
    tw_status status;
    tw_error error;
} speaker;

/* Long words and short ones, of which some are waited for and some come before they are. */
static void *speak(void *argument)
{
    speaker *s = argument;
    char *word = malloc(LONGEST), *expected = malloc(LONGEST);
    for (int i = 0; i < WORDS && s->status == TW_OK; i++) {
        size_t bytes = (size_t)(i * i * i * 37 + s->channel) % LONGEST;
        bool mine = (i + s->c->task) % 2 == 0;
        memset(expected, i * LINES + s->channel, bytes);
        s->status = mine ? s->c->ops->send(s->c, 1 - s->c->task, s->channel, expected, bytes, &s->error)
                         : s->c->ops->receive(s->c, 1 - s->c->task, s->channel, word, bytes, "a word", &s->error);
        if (s->status == TW_OK && !mine && memcmp(word, expected, bytes) != 0)
            s->status = twi_fail(&s->error, TW_INTERNAL, "another word came");
    }
    free(word);
    free(expected);
    return NULL;
}

static void several_runs_speak_over_one_pair_of_sockets(void **state)
{
    (void)state;
    int pair[2];
    speaker speakers[2 * LINES] = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    twi_comm *ends[] = {join(0, pair[0], 30), join(1, pair[1], 30)};
    for (int i = 0; i < 2 * LINES; i++) {
        speakers[i].c = ends[i % 2];
        speakers[i].channel = 1 + i / 2 * 64; /* of one bucket */
        assert_int_equal(pthread_create(&speakers[i].thread, NULL, speak, &speakers[i]), 0);
    }
    for (int i = 0; i < 2 * LINES; i++) {
        pthread_join(speakers[i].thread, NULL);
        assert_int_equal(speakers[i].status, TW_OK);
    }
    twi_comm_close(ends[0]);
    twi_comm_close(ends[1]);
}

static bool put_nothing(twi_exchange *x, int to, const twi_header *header, const void *data, bool patient)
{
    (void)x, (void)to, (void)header, (void)data, (void)patient;
    return true;
}

static void close_nothing(twi_exchange *x)
{
    twi_exchange_clear(x);
}

typedef struct pair_of_bytes {
    twi_comm *c;
    uint8_t first, second;
} pair_of_bytes;

static void *receive_two(void *argument)
{
    pair_of_bytes *p = argument;
    p->c->ops->receive(p->c, 1, CHANNEL, &p->first, 1, "a byte", NULL);
    p->c->ops->receive(p->c, 1, CHANNEL, &p->second, 1, "a byte", NULL);
    return NULL;
}

/* Whether somebody waits for the next message of a channel that is there already. */
static bool is_waited_for(twi_exchange *x, twi_channel *c)
{
    pthread_mutex_lock(&x->lock);
    bool waits = c->direct.data;
    pthread_mutex_unlock(&x->lock);
    return waits;
}

/* The first of two has room before somebody waits, and is handed in when he does; the other comes when that has just been
 * taken. Whoever is too slow for that tries again. */
static void a_message_does_not_come_to_the_place_of_the_one_before(void **state)
{
    (void)state;
    enum { TRIES = 300 };
    static const twi_carrier_ops nothing = {put_nothing, NULL, close_nothing};
    tw_error error = {0};
    twi_exchange x = {0};
    assert_ok(twi_exchange_init(&x, &nothing, 0, 2, 30, &error));
    for (int i = 0; i < TRIES; i++) {
        pair_of_bytes bytes = {&x.base, 0, 0};
        twi_header first = {TWI_MAGIC, CHANNEL, 1, 2 * (uint64_t)i % TWI_NUMBERS}, second = first;
        second.number++;
        pthread_t thread;
        twi_message *one = twi_exchange_room(&x, 1, &first), *two;
        twi_channel *c = one->channel;
        pthread_create(&thread, NULL, receive_two, &bytes);
        while (!is_waited_for(&x, c))
            sched_yield();
        *one->data = 1;
        twi_exchange_hand_in(&x, 1, &first, one);
        while (atomic_load(&c->first))
            ;
        two = twi_exchange_room(&x, 1, &second);
        assert_true(two->data && two->data != (char *)&bytes.first);
        *two->data = 2;
        twi_exchange_hand_in(&x, 1, &second, two);
        pthread_join(thread, NULL);
        assert_int_equal(bytes.first * 10 + bytes.second, 12);
    }
    twi_exchange_clear(&x);
}

/* What a task sends is led on to the other, but for all that comes after so many bytes. */
typedef struct wire {
    int from, to;
    size_t left;
    bool ends; /* and then the wire is gone; else there is silence */
} wire;

static void *lead_on(void *argument)
{
    wire *w = argument;
    char bytes[4096];
    ssize_t n;
    while ((n = recv(w->from, bytes, sizeof bytes, 0)) > 0) {
        size_t led = (size_t)n < w->left ? (size_t)n : w->left;
        if (led && send(w->to, bytes, led, MSG_NOSIGNAL) < 0)
            break;
        w->left -= led;
        if (w->left == 0 && w->ends)
            shutdown(w->to, SHUT_RDWR);
    }
    return NULL;
}

static void *send_long(void *c)
{
    static char word[LONGEST];
    ((twi_comm *)c)->ops->send(c, 0, CHANNEL, word, sizeof word, NULL);
    return NULL;
}

/* Half a message comes to where it is waited for. Nobody writes there when the wait has ended. */
static void half_a_message_ends_the_wait_for_it(void **state)
{
    (void)state;
    static const char *const said[] = {"task 1 has not been heard of for", "task 1 has ended before its work was done"};
    for (int ends = 0; ends < 2; ends++) {
        int near[2], far[2];
        pthread_t leading, back, sending;
        tw_error error = {0};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, near), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, far), 0);
        wire there = {far[1], near[1], LONGEST / 2, ends}, here = {near[1], far[1], SIZE_MAX, false};
        twi_comm *waits = join(0, near[0], 1), *sends = join(1, far[0], 1);
        pthread_create(&leading, NULL, lead_on, &there);
        pthread_create(&back, NULL, lead_on, &here);
        pthread_create(&sending, NULL, send_long, sends);
        char *word = malloc(LONGEST);
        assert_fails(waits->ops->receive(waits, 1, CHANNEL, word, LONGEST, "a word", &error), TW_ABORTED, said[ends]);
        free(word);
        pthread_join(sending, NULL);
        twi_comm_close(sends);
        twi_comm_close(waits);
        pthread_join(leading, NULL);
        pthread_join(back, NULL);
        close(near[1]);
        close(far[1]);
    }
}

/* ---- what tasks wait for ------------------------------------------------------------------------------------------- */

typedef struct waits {
    int values, words, sent; /* messages with a value, without; and what is done when it has been sent */
} waits;

static waits count_waits(const twi_plan *plan)
{
    waits found = {0};
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++) {
            const twi_step *step = &plan->lists[d].steps[i];
            int other = 1 - step->device->task;
            bool value = step->source && step->source->task == other;
            found.values += value;
            found.words += !value && twi_step_needs(plan, step, other);
            found.sent += step->num_sent;
        }
    return found;
}

/* Two tasks, of which one has a variable that the other reads before it is written. What comes of the reading crosses
 * back, or does not, but for the order in which both happen. */
static waits plan_reading_elsewhere(bool comes_back)
{
    tw_error error = {0};
    tw_device_options options = TW_SIZED(tw_device_options);
    tw_devices *devices;
    tw_session *session;
    tw_graph *g = tw_graph_create();
    tw_output doubled, written, seen, done;
    options.plan_tasks = 2;
    assert_ok(tw_devices_create(&options, &devices, &error));
    TW_DEVICE(g, "/job:worker/task:0") {
        tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(4), (tw_initializer){0});
        tw_output read = tw_variable_read(g, v);
        TW_DEVICE(g, "/job:worker/task:1")
            doubled = tw_add(g, read, read);
        tw_output one = tw_ones(g, TW_FLOAT32, TW_SHAPE(4));
        seen = comes_back ? doubled : read;
        TW_CONTROL(g, seen)
            written = tw_assign_add(g, v->handle, one);
    }
    TW_DEVICE(g, "/job:worker/task:1")
        done = tw_group(g, &doubled, 1);
    tw_output fetches[] = {written, done};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_prepare(session, NULL, 0, fetches, 2, &error));
    waits found = count_waits(session->lanes[0]->links.items[0]->plan);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
    return found;
}

static void a_variable_waits_until_it_is_sent_and_not_for_word_that_it_has_come(void **state)
{
    (void)state;
    waits found = plan_reading_elsewhere(false);
    assert_int_equal(found.values, 1);
    assert_int_equal(found.sent, 1);
    assert_int_equal(found.words, 0);
    found = plan_reading_elsewhere(true); /* here the word is what was asked for */
    assert_int_equal(found.values, 1);
    assert_int_equal(found.words, 1);
}

static void *close_in_thread(void *c)
{
    twi_comm_close(c);
    return NULL;
}

/* Three tasks, of which this thread plays the last: it beats, and looks at nothing that it is sent. The first is done
 * and has no room to tell it so for longer than the deadline; it goes on to hear of the second, to whom it has said
 * so. Else it would end without that word, and be named by the last. */
static void who_has_no_room_to_say_that_he_is_done_hears_of_the_others(void **state)
{
    (void)state;
    enum { LEAVE = -2 };
    int first[2], near[2], far[2], small = 4096;
    char sockets[32];
    pthread_t closing;
    twi_header beat, last = {0}, next;
    for (int i = 0; i < 3; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, i == 0 ? first : i == 1 ? near : far), 0);
    setsockopt(near[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    snprintf(sockets, sizeof sockets, "%d,-,%d", first[1], far[0]);
    twi_comm *second = join_by(1, sockets, 1);
    snprintf(sockets, sizeof sockets, "-,%d,%d", first[0], near[0]);
    twi_comm *done = join_by(0, sockets, 1);
    assert_int_equal(recv(far[1], &beat, sizeof beat, MSG_WAITALL), sizeof beat);
    while (send(near[0], &beat, sizeof beat, MSG_DONTWAIT) == sizeof beat)
        ;
    pthread_create(&closing, NULL, close_in_thread, done);
    for (int i = 0; i < 25; i++) {
        send(near[1], &beat, sizeof beat, MSG_NOSIGNAL);
        send(far[1], &beat, sizeof beat, MSG_NOSIGNAL);
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    while (recv(near[1], &next, sizeof next, MSG_WAITALL) == sizeof next)
        last = next;
    assert_int_equal(last.channel, LEAVE);
    pthread_join(closing, NULL);
    twi_comm_close(second);
    close(near[1]);
    close(far[1]);
}

/* "dispatchers", "sessions", "packing": these alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest dispatchers[] = {
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
    const struct CMUnitTest sessions[] = {
        cmocka_unit_test(a_run_that_waits_for_an_element_lets_others_go_on),
        cmocka_unit_test(a_full_queue_makes_those_wait_who_put_something_in),
        cmocka_unit_test(closing_with_cancel_fails_those_who_wait_for_room),
        cmocka_unit_test(those_who_wait_are_served_in_the_order_in_which_they_came),
        cmocka_unit_test(cancelling_a_session_wakes_those_who_wait),
        cmocka_unit_test(a_graph_that_was_held_is_given_back),
        cmocka_unit_test(cancelling_a_lane_wakes_who_waits_there),
        cmocka_unit_test(a_stream_stands_where_the_task_is_that_has_drawn_most),
        cmocka_unit_test(a_lane_that_was_given_out_is_cancelled_on_all_tasks),
    };
    const struct CMUnitTest packing[] = {
        cmocka_unit_test(values_come_as_they_went),
        cmocka_unit_test(lengths_are_looked_at),
        cmocka_unit_test(numbers_are_looked_at),
        cmocka_unit_test(shapes_must_fit_into_what_is_left),
        cmocka_unit_test(the_smallest_values_of_most_dimensions_come),
        cmocka_unit_test(lists_are_64_deep_at_most),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(works_come_after_those_that_they_meet_in_memory),
        cmocka_unit_test(works_that_only_read_are_side_by_side),
        cmocka_unit_test(a_step_is_taken_apart_along_the_chain_that_held_it_up),
        cmocka_unit_test(whatever_writes_a_variable_is_no_towers_work),
        cmocka_unit_test(waiting_for_a_queue_is_input),
        cmocka_unit_test(messages_come_in_their_order_however_late),
        cmocka_unit_test(clocks_of_tasks_are_compared),
        cmocka_unit_test(who_only_sends_stays_near_who_receives),
        cmocka_unit_test(a_channel_that_ends_ends_alone_and_behind_what_came),
        cmocka_unit_test(channels_that_have_ended_begin_anew),
        cmocka_unit_test(who_waits_to_be_listened_to_is_told_that_nobody_will),
        cmocka_unit_test(what_differs_is_told_to_all),
        cmocka_unit_test(who_is_silent_is_named_by_all),
        cmocka_unit_test(who_ends_without_a_word_is_named_by_all),
        cmocka_unit_test(what_all_say_alike_the_first_says),
        cmocka_unit_test(who_waits_for_longer_than_the_deadline_is_told_what_for),
        cmocka_unit_test(who_is_done_waits_for_others_beyond_the_deadline),
        cmocka_unit_test(who_is_done_sees_that_another_has_died),
        cmocka_unit_test(who_was_held_up_takes_nobody_for_lost),
        cmocka_unit_test(what_is_lost_or_comes_twice_or_spoiled_is_noticed),
        cmocka_unit_test(other_lengths_and_failures_and_early_ends_are_told_to_all),
        cmocka_unit_test(several_runs_speak_over_one_pair_of_sockets),
        cmocka_unit_test(a_message_does_not_come_to_the_place_of_the_one_before),
        cmocka_unit_test(half_a_message_ends_the_wait_for_it),
        cmocka_unit_test(a_variable_waits_until_it_is_sent_and_not_for_word_that_it_has_come),
        cmocka_unit_test(who_has_no_room_to_say_that_he_is_done_hears_of_the_others),
    };
    const char *alone = argc > 1 ? argv[1] : NULL;
    int failed = 0;
    if (!alone || strcmp(alone, "dispatchers") == 0)
        failed += cmocka_run_group_tests(dispatchers, NULL, NULL);
    if (!alone || strcmp(alone, "sessions") == 0)
        failed += cmocka_run_group_tests(sessions, NULL, NULL);
    if (!alone || strcmp(alone, "packing") == 0)
        failed += cmocka_run_group_tests(packing, NULL, NULL);
    return alone ? failed : failed + cmocka_run_group_tests(others, NULL, NULL);
}
