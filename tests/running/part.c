/* part.c - one plan, run: where feeds are read, what becomes of results, how often it is begun. The plan, its device
 * and the other tasks are made up; its only step has nothing to compute. */
#include "faulty_memory.h"
#include "parts.h"

#include "comm/comm.h"
#include "device/resources.h"
#include "run/part.h"
#include "run/trace.h"
#include "tensor/tensor.h"

enum { MOST = 4, LANE = 2 };

static struct fixture {
    struct tw_devices set;
    twi_device device, *items[1];
    twi_device_ops ops;
    twi_comm comm;
    twi_plan plan;
    twi_list list;
    twi_step step;
    twi_port feeds[MOST], fetches[MOST];
    twi_lane lane;
    tw_tensor *results[MOST];
    int runs, written, sent; /* so often */
    tw_status run_fails, write_fails, send_fails;
    tw_tensor *makes; /* what a run makes */
    tw_tensor *made;  /* where it lies then */
} f;

static tw_error error;

static tw_status work(const twi_run *r)
{
    f.runs++;
    if (f.makes)
        f.made = tw_tensor_retain(f.makes);
    return f.run_fails == TW_OK ? TW_OK : twi_fail(r->error, f.run_fails, "no coffee");
}

static const twi_kernel kernel = {"Work", "made up", 0, NULL, work, NULL};

static tw_status write_device(twi_device *d, void *to, const void *host, size_t bytes, tw_error *why)
{
    (void)d;
    f.written++;
    memcpy(to, host, bytes);
    return f.write_fails == TW_OK ? TW_OK : twi_fail(why, f.write_fails, "no sugar");
}

static tw_status read_device(twi_device *d, void *host, const void *from, size_t bytes, tw_error *why)
{
    (void)d, (void)why;
    memcpy(host, from, bytes);
    return TW_OK;
}

static tw_status synchronize(twi_device *d, tw_error *why)
{
    (void)d, (void)why;
    return TW_OK;
}

static tw_status send_bytes(twi_comm *c, int to, int channel, const void *data, size_t bytes, tw_error *why)
{
    (void)c, (void)to, (void)channel, (void)data, (void)bytes;
    f.sent++;
    return f.send_fails == TW_OK ? TW_OK : twi_fail(why, f.send_fails, "no milk");
}

/* What comes is nothing but zeros: of shapes, those of scalars. */
static tw_status get_bytes(twi_comm *c, int from, int channel, void *data, size_t bytes, const char *what,
                           tw_error *why)
{
    (void)c, (void)from, (void)channel, (void)what, (void)why;
    memset(data, 0, bytes);
    return TW_OK;
}

static const twi_comm_ops comm_ops = {send_bytes, get_bytes, NULL, NULL, NULL, NULL, NULL};

static void wake(void *user)
{
    (void)user;
}

/* A plan of one device and step. What is fetched behind the last is none's. */
static void begin(int num_feeds, int num_fetches)
{
    static char node[] = "it";
    f = (struct fixture){
        .ops = {.type = "TEST", .kind = "test", .read = read_device, .write = write_device, .synchronize = synchronize},
        .comm = {.ops = &comm_ops, .task = 0, .tasks = 2, .lane_channels = 3}};
    error = (tw_error){0};
    f.items[0] = &f.device;
    f.set = (struct tw_devices){.items = f.items, .count = 1, .tasks = 1};
    f.device = (twi_device){.ops = &f.ops, .set = &f.set, .text = "/device:TEST"};
    f.step = (twi_step){.kernel = &kernel, .device = &f.device, .run = {.node = node, .error = &f.list.error}};
    f.list = (twi_list){.device = &f.device, .steps = &f.step, .count = 1};
    f.plan = (twi_plan){.lists = &f.list,
                        .num_lists = 1,
                        .lane = LANE,
                        .ran = true,
                        .feeds = f.feeds,
                        .num_feeds = num_feeds,
                        .fetches = f.fetches,
                        .num_fetches = num_fetches,
                        .num_wanted = num_fetches};
    fail_allocation(-1);
    assert_ok(twi_dispatchers_create(&f.set, wake, NULL, &f.lane.dispatchers, &error));
    assert_ok(twi_dispatchers_prepare(f.lane.dispatchers, &f.plan, NULL, &error));
}

static void finish(void)
{
    for (int i = 0; i < MOST; i++)
        tw_tensor_release(f.results[i]);
    tw_tensor_release(f.makes);
    twi_dispatchers_destroy(f.lane.dispatchers);
    assert_null(f.made);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
}

static tw_status run(int64_t steps, unsigned look, const tw_feed *feeds, int64_t *done)
{
    return twi_part_run(&f.lane, &f.plan, steps, look, feeds, NULL, f.results, done, &error);
}

static char anything[64]; /* stands for a buffer */

static void feed_at(int i, void *where, bool lent)
{
    f.feeds[i] = (twi_port){.device = &f.device,
                            .buffer = (struct twi_buffer *)anything,
                            .memory = where,
                            .dtype = TW_UINT8,
                            .shape = TW_SHAPE(4),
                            .bytes = 4,
                            .lent = lent,
                            .where = where};
}

static void fetch_from(int i, void *where)
{
    f.fetches[i] = (twi_port){.device = &f.device,
                              .buffer = (struct twi_buffer *)anything,
                              .memory = where,
                              .dtype = TW_UINT8,
                              .shape = TW_SHAPE(4),
                              .bytes = 4,
                              .name = "cup"};
}

/* As a plan has it: of two of one memory the second is there again. */
static void fetch_made(int i, tw_tensor **where)
{
    fetch_from(i, where);
    f.fetches[i].is_made = true;
    for (int k = 0; k < i; k++)
        f.fetches[i].is_again = f.fetches[i].is_again || f.fetches[k].memory == (void *)where;
}

/* ---- feeds ------------------------------------------------------------------------------------------------------- */

/* What is lent, where kernels may read it: at addresses of 64 bytes. */
static void feeds_are_written_or_read_where_they_lie(void **state)
{
    (void)state;
    static _Alignas(64) char bytes[128];
    char memory_of_it[3][4];
    void *reads[2] = {NULL};
    int64_t done;
    twi_pointer pointers[] = {{&reads[0], &f.feeds[0]}, {&reads[1], &f.feeds[1]}};
    for (int odd = 0; odd < 2; odd++) {
        begin(3, 0);
        tw_tensor *lent = tw_tensor_create(TW_UINT8, TW_SHAPE(4)), own = *lent;
        own.data = bytes + odd;
        tw_feed feeds[MOST] = {{{0}, &own}, {{0}, lent}, {{0}, lent}, {{0}, NULL}};
        feed_at(0, memory_of_it[0], true);
        feed_at(1, memory_of_it[1], false);
        feed_at(2, memory_of_it[2], false);
        feed_at(3, memory_of_it[2], true);
        f.feeds[2].buffer = NULL; /* nobody needs it */
        f.plan.pointers.items = pointers;
        f.plan.pointers.count = 2;
        memcpy(own.data, "abcd", 4);
        memcpy(lent->data, "efgh", 4);
        reads[0] = reads[1] = memory_of_it[0];
        assert_ok(run(3, 0, feeds, &done));
        assert_int_equal(done, 3);
        assert_int_equal(f.runs, 3); /* one by one: a feed may give its memory to what comes behind it */
        assert_int_equal(f.written, odd ? 6 : 3);
        assert_memory_equal(memory_of_it[1], "efgh", 4);
        assert_ptr_equal(f.feeds[0].where, odd ? memory_of_it[0] : own.data);
        assert_ptr_equal(f.feeds[1].where, memory_of_it[1]);
        assert_ptr_equal(reads[0], odd ? reads[0] : own.data);
        if (odd)
            assert_memory_equal(memory_of_it[0], "abcd", 4);
        reads[0] = NULL;
        assert_ok(run(1, 0, feeds, &done));
        assert_null(reads[0]); /* who reads it is told where it lies when that changes */
        tw_tensor_release(lent);
        finish();
    }
}

static void feeds_that_cannot_be_written_end_the_run(void **state)
{
    (void)state;
    char memory_of_it[4];
    int64_t done;
    begin(1, 0);
    tw_tensor *given = tw_tensor_create(TW_UINT8, TW_SHAPE(4));
    feed_at(0, memory_of_it, false);
    f.write_fails = TW_ABORTED;
    assert_fails(run(1, 0, &(tw_feed){{0}, given}, &done), TW_ABORTED, "no sugar");
    assert_int_equal(f.runs, 0);
    assert_int_equal(done, 0);
    tw_tensor_release(given);
    finish();
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void a_failed_run_leaves_results_as_they_were(void **state)
{
    (void)state;
    int64_t done;
    begin(0, 2);
    tw_tensor *old = f.results[0] = tw_tensor_create(TW_UINT8, TW_SHAPE(4)), *other;
    other = f.results[1] = tw_tensor_create(TW_UINT8, TW_SHAPE(5)); /* does not fit */
    fetch_from(0, "abcd");
    fetch_from(1, "efgh");
    f.fetches[2].result = old; /* none of this plan's */
    f.run_fails = TW_ABORTED;
    assert_fails(run(1, 0, NULL, &done), TW_ABORTED, "no coffee");
    assert_ptr_equal(f.results[0], old);
    assert_ptr_equal(f.results[1], other);
    assert_null(f.fetches[0].result);
    assert_null(f.fetches[1].result);
    assert_ptr_equal(f.fetches[2].result, old);
    f.run_fails = TW_OK;
    memory.countdown = 0; /* for the second */
    assert_fails(run(1, 0, NULL, &done), TW_RESOURCE_EXHAUSTED, "fetching 'cup'");
    assert_int_equal(f.runs, 1);
    assert_null(f.fetches[0].result);
    assert_ok(run(1, 0, NULL, &done));
    assert_ptr_equal(f.results[0], old);
    assert_memory_equal(tw_tensor_data(f.results[0]), "abcd", 4);
    assert_ptr_not_equal(f.results[1], other);
    assert_memory_equal(tw_tensor_data(f.results[1]), "efgh", 4);
    finish();
}

/* The first fetch of what a kernel has made gives it, another a copy. */
static void what_a_kernel_has_made_is_ones_alone(void **state)
{
    (void)state;
    int64_t done;
    tw_tensor *none = NULL;
    begin(0, 3);
    f.makes = tw_tensor_from(TW_UINT8, TW_SHAPE(3), "abc");
    fetch_from(0, "abcd");
    fetch_made(1, &f.made);
    fetch_made(2, &f.made);
    f.fetches[3].is_made = true;
    f.fetches[3].memory = &f.makes; /* none of this plan's */
    assert_ok(run(1, 0, NULL, &done));
    assert_ptr_equal(f.results[1], f.makes);
    assert_ptr_not_equal(f.results[2], f.makes);
    assert_memory_equal(tw_tensor_data(f.results[2]), "abc", 3);
    assert_null(f.made);
    assert_non_null(f.makes);
    fetch_made(0, &none);
    assert_fails(run(1, 0, NULL, &done), TW_INTERNAL, "a kernel has made no tensor");
    assert_non_null(f.made); /* goes with the next run's */
    tw_tensor_release(f.made);
    f.made = NULL;
    finish();
}

/* Two fetches of different things give each what was made. */
static void each_of_two_that_were_made_is_given(void **state)
{
    (void)state;
    int64_t done;
    begin(0, 2);
    f.makes = tw_tensor_from(TW_UINT8, TW_SHAPE(3), "abc");
    tw_tensor *another = tw_tensor_retain(f.makes);
    fetch_made(0, &f.made);
    fetch_made(1, &another);
    assert_ok(run(1, 0, NULL, &done));
    assert_ptr_equal(f.results[0], f.makes);
    assert_ptr_equal(f.results[1], f.makes);
    assert_null(another);
    finish();
}

static void memory_for_copies_of_what_was_made_may_run_out(void **state)
{
    (void)state;
    int64_t done;
    begin(0, 2);
    f.makes = tw_tensor_from(TW_UINT8, TW_SHAPE(3), "abc");
    fetch_made(0, &f.made);
    fetch_made(1, &f.made);
    memory.countdown = 0;
    assert_fails(run(1, 0, NULL, &done), TW_RESOURCE_EXHAUSTED, "fetching 'cup'");
    assert_null(f.results[0]);
    tw_tensor_release(f.made);
    f.made = NULL;
    finish();
}

/* Who has made it tells its shape, and then what it holds; each task has a tensor of its own. */
static void tasks_learn_the_shape_of_what_was_made(void **state)
{
    (void)state;
    int64_t done;
    begin(0, 1);
    f.set.comm = &f.comm;
    f.makes = tw_tensor_from(TW_UINT8, TW_SHAPE(3), "abc");
    fetch_made(0, &f.made);
    assert_ok(run(1, 0, NULL, &done));
    assert_int_equal(f.sent, 2);
    assert_ptr_not_equal(f.results[0], f.makes);
    assert_memory_equal(tw_tensor_data(f.results[0]), "abc", 3);
    f.send_fails = TW_ABORTED;
    assert_fails(run(1, 0, NULL, &done), TW_ABORTED, "no milk");
    assert_int_equal(f.sent, 3);
    tw_tensor_release(f.made);
    f.made = NULL;
    f.send_fails = TW_OK;
    f.device.absent = true;
    f.device.task = 1;
    tw_tensor_release(f.makes);
    f.makes = NULL;
    assert_ok(run(1, 0, NULL, &done));
    assert_int_equal(tw_tensor_shape(f.results[0]).rank, 0);
    finish();
}

/* What was not taken has no value: a fault of who wants it, and no more where it only crosses a border. */
static void what_holds_not_has_no_value(void **state)
{
    (void)state;
    int64_t done;
    bool holds[2] = {true, false};
    begin(0, 2);
    for (int i = 0; i < 2; i++) {
        fetch_from(i, "abcd");
        f.fetches[i].holds = &holds[i];
        f.fetches[i].guard = &f.device;
    }
    f.plan.num_wanted = 1;
    assert_ok(run(1, 0, NULL, &done));
    assert_false(f.fetches[0].dead);
    assert_true(f.fetches[1].dead);
    assert_memory_equal(tw_tensor_data(f.results[0]), "abcd", 4);
    memset(tw_tensor_data(f.results[1]), 0, 4);
    assert_ok(run(1, 0, NULL, &done));
    assert_memory_equal(tw_tensor_data(f.results[1]), "\0\0\0\0", 4); /* nobody has looked */
    f.plan.num_wanted = 2;
    assert_fails(run(1, 0, NULL, &done), TW_INVALID_ARGUMENT, "Retval[1] does not have value");
    f.set.comm = &f.comm;
    f.send_fails = TW_ABORTED;
    holds[0] = false;
    assert_fails(run(1, 0, NULL, &done), TW_ABORTED, "no milk");
    finish();
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void runs_that_are_looked_at_are_timed_one_by_one(void **state)
{
    (void)state;
    int64_t done;
    twi_span span = {0};
    twi_track track = {.spans = &span};
    twi_trace trace = {.tracks = &track};
    begin(0, 0);
    f.plan.trace = &trace;
    assert_ok(run(2, TWI_LOOK_TIMES, NULL, &done));
    assert_int_equal(f.runs, 2);
    assert_int_equal(done, 2);
    assert_true(trace.on);
    assert_true(trace.began_ns > 0 && span.started_ns >= trace.began_ns && trace.ended_ns >= span.ended_ns);
    trace.ended_ns = 0;
    assert_ok(run(3, 0, NULL, &done));
    assert_int_equal(f.runs, 5);
    assert_false(trace.on);
    assert_int_equal(trace.ended_ns, 0);
    f.run_fails = TW_ABORTED;
    assert_fails(run(3, TWI_LOOK_TIMES, NULL, &done), TW_ABORTED, "no coffee");
    assert_int_equal(f.runs, 6);
    assert_int_equal(trace.ended_ns, 0);
    finish();
}

static void variables_have_values_before_and_after(void **state)
{
    (void)state;
    int64_t done;
    twi_resource has = {.name = "has", .initialized = true}, lacks = {.name = "lacks"}, gets[2] = {{0}};
    twi_resource *needed[] = {&has, &lacks, &lacks}, *assigned[] = {&gets[0], &gets[1]};
    begin(0, 0);
    f.plan.needed = needed;
    f.plan.num_needed = 1;
    f.plan.assigned = assigned;
    f.plan.num_assigned = 1;
    assert_ok(run(1, 0, NULL, &done));
    assert_true(gets[0].initialized);
    assert_false(gets[1].initialized);
    needed[0] = &lacks;
    needed[1] = &has;
    f.plan.num_needed = 2;
    assert_fails(run(1, 0, NULL, &done), TW_FAILED_PRECONDITION, "lacks");
    assert_int_equal(f.runs, 1);
    finish();
}

int run_part(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(feeds_are_written_or_read_where_they_lie),
        cmocka_unit_test(feeds_that_cannot_be_written_end_the_run),
        cmocka_unit_test(a_failed_run_leaves_results_as_they_were),
        cmocka_unit_test(what_a_kernel_has_made_is_ones_alone),
        cmocka_unit_test(each_of_two_that_were_made_is_given),
        cmocka_unit_test(memory_for_copies_of_what_was_made_may_run_out),
        cmocka_unit_test(tasks_learn_the_shape_of_what_was_made),
        cmocka_unit_test(what_holds_not_has_no_value),
        cmocka_unit_test(runs_that_are_looked_at_are_timed_one_by_one),
        cmocka_unit_test(variables_have_values_before_and_after),
    };
    return cmocka_run_group_tests_name("part", tests, NULL, NULL);
}
