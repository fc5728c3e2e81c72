/* messages.c - what crosses between tasks while a plan runs: which messages go where, in which order, and what becomes
 * of failures. The other tasks, the devices and the plans are made up. */
#include "faulty_memory.h"
#include "parts.h"

#include "comm/comm.h"
#include "device/resources.h"
#include "run/messages.h"
#include "run/packing.h"
#include "tensor/tensor.h"

/* This task is the middle one of three; each has a device of that number. */
enum { FIRST, OWN, LAST, TASKS };
enum { LANE = 2, OF_FETCHES = TWI_CHANNEL_OF_LANES + LANE * (1 + TASKS), OF_DEVICE = OF_FETCHES + 1 };

static struct fixture {
    struct tw_devices set;
    twi_device devices[TASKS], *items[TASKS];
    twi_device_ops ops;
    twi_comm comm;
    char told[512]; /* "s0@9:4 ": sent to task 0 in channel 9, 4 bytes; "g": got, from; "r", "w": the device's */
    char sent[512]; /* all bytes of that */
    size_t num_sent;
    const char *come;   /* what comes, without end */
    tw_status get_ends; /* instead */
    char fails;         /* calls of that letter do ... */
    int after;          /* ... after so many */
    twi_plan plan;
    twi_list lists[TASKS];
    twi_step step;
} f;

static tw_error error;

static void tell(const char *format, ...)
{
    size_t at = strlen(f.told);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f.told + at, sizeof f.told - at, format, arguments);
    va_end(arguments);
}

static tw_status fail_if_it_is_time(char letter, tw_error *why)
{
    return letter == f.fails && f.after-- == 0 ? twi_fail(why, TW_ABORTED, "no coffee") : TW_OK;
}

static tw_status send_bytes(twi_comm *c, int to, int channel, const void *data, size_t bytes, tw_error *why)
{
    (void)c;
    tell("s%d@%d:%zu ", to, channel, bytes);
    if (bytes)
        memcpy(f.sent + f.num_sent, data, bytes);
    f.num_sent += bytes;
    return fail_if_it_is_time('s', why);
}

static tw_status get_bytes(twi_comm *c, int from, int channel, void *data, size_t bytes, const char *what,
                           tw_error *why)
{
    (void)c;
    assert_non_null(what);
    tell("g%d@%d:%zu ", from, channel, bytes);
    if (f.get_ends != TW_OK)
        return twi_fail(why, f.get_ends, "no more");
    if (bytes)
        memcpy(data, f.come, bytes);
    f.come += bytes;
    return fail_if_it_is_time('g', why);
}

static void end_lane(twi_comm *c, int lane, tw_status status, const char *why)
{
    (void)c;
    tell("e%d:%d:%s ", lane, status, why);
}

static tw_status renew_lane(twi_comm *c, int lane, const char *what, tw_error *why)
{
    (void)c;
    assert_string_equal(what, "the end of a run");
    tell("n%d ", lane);
    return fail_if_it_is_time('n', why);
}

static const twi_comm_ops comm_ops = {send_bytes, get_bytes, end_lane, renew_lane, NULL, NULL, NULL};

static tw_status read_device(twi_device *d, void *host, const void *from, size_t bytes, tw_error *why)
{
    assert_false(d->absent);
    tell("r%zu ", bytes);
    memcpy(host, from, bytes);
    return fail_if_it_is_time('r', why);
}

static tw_status write_device(twi_device *d, void *to, const void *host, size_t bytes, tw_error *why)
{
    assert_false(d->absent);
    tell("w%zu ", bytes);
    memcpy(to, host, bytes);
    return fail_if_it_is_time('w', why);
}

/* Nothing has been told; calls of that letter fail after so many. */
static void begin(char fails, int after)
{
    f = (struct fixture){.set = {.items = f.items, .count = TASKS, .comm = &f.comm, .task = OWN, .tasks = TASKS},
                         .ops = {.type = "TEST", .kind = "test", .read = read_device, .write = write_device},
                         .comm = {.ops = &comm_ops, .task = OWN, .tasks = TASKS, .lane_channels = 1 + TASKS},
                         .fails = fails,
                         .after = after,
                         .come = "abcdefghijklmnopqrstuvwxyz"};
    f.plan = (twi_plan){.lists = f.lists, .num_lists = TASKS, .lane = LANE};
    for (int i = 0; i < TASKS; i++) {
        f.devices[i] = (twi_device){.ops = &f.ops, .set = &f.set, .task = i, .absent = i != OWN};
        f.items[i] = &f.devices[i];
        f.lists[i] = (twi_list){.device = &f.devices[i], .steps = &f.step};
    }
    error = (tw_error){0};
    fail_allocation(-1);
}

/* What was told of a call that gave `status`; nothing is left in memory. */
static void assert_told(tw_status status, tw_status expected, const char *told)
{
    assert_int_equal(status, expected);
    assert_string_equal(f.told, told);
    if (expected == TW_ABORTED)
        assert_string_equal(error.message, "no coffee");
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
}

/* In a channel: so many bytes. */
static const char *line(const char *format, int channel)
{
    static char text[200];
    snprintf(text, sizeof text, format, channel, channel, channel, channel);
    return text;
}

/* ---- values of one device for another --------------------------------------------------------------------------- */

static tw_status move(int to, int from, char *at, tw_dtype dtype, size_t bytes)
{
    return twi_move_value(LANE, &f.devices[to], at, &f.devices[from], at, dtype, bytes, "a value", &error);
}

static void a_value_goes_from_its_task_to_where_it_is_wanted(void **state)
{
    (void)state;
    char memory_of_it[9] = "12345678";
    begin(0, 0);
    assert_told(move(FIRST, OWN, memory_of_it, TW_UINT8, 8), TW_OK, line("r8 s0@%d:8 ", OF_FETCHES));
    assert_memory_equal(f.sent, "12345678", 8);
    begin('r', 0);
    assert_told(move(FIRST, OWN, memory_of_it, TW_UINT8, 8), TW_ABORTED, "r8 ");
    begin('s', 0);
    assert_told(move(FIRST, OWN, memory_of_it, TW_UINT8, 8), TW_ABORTED, line("r8 s0@%d:8 ", OF_FETCHES));
    begin(0, 0);
    f.devices[OWN].is_host = true;
    assert_told(move(LAST, OWN, memory_of_it, TW_UINT8, 8), TW_OK, line("s2@%d:8 ", OF_FETCHES));
    begin(0, 0);
    assert_told(move(LAST, FIRST, memory_of_it, TW_UINT8, 8), TW_OK, "");
    begin('g', 0);
    assert_told(move(OWN, LAST, memory_of_it, TW_UINT8, 8), TW_ABORTED, line("g2@%d:8 ", OF_FETCHES));
    begin('w', 0);
    assert_told(move(OWN, LAST, memory_of_it, TW_UINT8, 8), TW_ABORTED, line("g2@%d:8 w8 ", OF_FETCHES));
    begin(0, 0);
    assert_told(move(OWN, LAST, memory_of_it, TW_UINT8, 8), TW_OK, line("g2@%d:8 w8 ", OF_FETCHES));
    assert_string_equal(memory_of_it, "abcdefgh");
    begin(0, 0);
    f.devices[OWN].is_host = true;
    assert_told(move(OWN, FIRST, memory_of_it, TW_UINT8, 4), TW_OK, line("g0@%d:4 ", OF_FETCHES));
    for (int to = FIRST; to <= OWN; to++) { /* memory of the host for it, also of nothing */
        begin(0, 0);
        memory.countdown = 0;
        assert_told(move(to, 1 - to, memory_of_it, TW_UINT8, 8), TW_RESOURCE_EXHAUSTED, "");
        begin(0, 0);
        assert_int_equal(move(to, 1 - to, memory_of_it, TW_UINT8, 0), TW_OK);
        stop_failing_allocations();
    }
}

static tw_string words[2] = {{"ab", 2}, {"", 0}};
enum { PACKED = 2 * sizeof(uint64_t) + 2 };

/* How many bytes come, and then these. */
static const char *packed_words(uint64_t bytes)
{
    static char text[sizeof(uint64_t) + PACKED];
    twi_text packed = {0};
    assert_true(twi_pack_values(TW_STRING, words, 2, &packed));
    assert_int_equal(packed.size, PACKED);
    memcpy(text, &bytes, sizeof bytes);
    memcpy(text + sizeof bytes, packed.data, PACKED);
    twi_text_free(&packed);
    return text;
}

static void strings_go_behind_how_many_bytes_they_are(void **state)
{
    (void)state;
    char said[200];
    for (int n = 0; n < 3; n++) {
        begin('s', n);
        snprintf(said, sizeof said, n ? "s0@%d:8 s0@%d:%d " : "s0@%d:8 ", OF_FETCHES, OF_FETCHES, PACKED);
        assert_told(move(FIRST, OWN, (char *)words, TW_STRING, sizeof words), n < 2 ? TW_ABORTED : TW_OK, said);
    }
    assert_memory_equal(f.sent, packed_words(PACKED), sizeof(uint64_t) + PACKED);
    begin(0, 0);
    memory.countdown = 0;
    assert_told(move(FIRST, OWN, (char *)words, TW_STRING, sizeof words), TW_RESOURCE_EXHAUSTED, "");
    for (int n = 0; n < 2; n++) {
        tw_string got[2] = {{0}};
        begin('g', n);
        f.come = packed_words(PACKED);
        snprintf(said, sizeof said, n ? "g2@%d:8 g2@%d:%d " : "g2@%d:8 ", OF_FETCHES, OF_FETCHES, PACKED);
        assert_told(move(OWN, LAST, (char *)got, TW_STRING, sizeof got), TW_ABORTED, said);
    }
    begin(0, 0);
    tw_tensor *got = tw_tensor_create(TW_STRING, TW_SHAPE(2));
    f.come = packed_words(PACKED);
    assert_ok(move(OWN, LAST, tw_tensor_data(got), TW_STRING, sizeof words));
    assert_string_equal(f.told, said);
    assert_int_equal(((tw_string *)tw_tensor_data(got))->size, 2);
    assert_memory_equal(((tw_string *)tw_tensor_data(got))->data, "ab", 2);
    f.come = packed_words(PACKED - 1);
    assert_int_equal(move(OWN, LAST, tw_tensor_data(got), TW_STRING, sizeof words), TW_DATA_LOSS);
    f.come = packed_words(UINT64_MAX);
    assert_int_equal(move(OWN, LAST, tw_tensor_data(got), TW_STRING, sizeof words), TW_RESOURCE_EXHAUSTED);
    f.come = packed_words(PACKED);
    memory.countdown = 0;
    assert_int_equal(move(OWN, LAST, tw_tensor_data(got), TW_STRING, sizeof words), TW_RESOURCE_EXHAUSTED);
    tw_tensor_release(got);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
}

/* ---- values for all ---------------------------------------------------------------------------------------------- */

static void what_all_are_to_know_comes_from_the_one_that_has_it(void **state)
{
    (void)state;
    char host[8] = "", here[8] = "1234567";
    tw_shape shape = TW_SHAPE(3);
    begin(0, 0);
    assert_told(twi_share_value(LANE, &f.devices[OWN], here, host, 8, "a value", &error), TW_OK,
                line("r8 s0@%d:8 s2@%d:8 ", OF_FETCHES));
    assert_string_equal(host, "1234567");
    begin('r', 0);
    assert_told(twi_share_value(LANE, &f.devices[OWN], here, host, 8, "a value", &error), TW_ABORTED, "r8 ");
    begin(0, 0);
    assert_told(twi_share_value(LANE, &f.devices[LAST], NULL, host, 8, "a value", &error), TW_OK,
                line("g2@%d:8 ", OF_FETCHES));
    assert_memory_equal(host, "abcdefgh", 8);
    begin(0, 0);
    assert_told(twi_share_value(TWI_ALONE, &f.devices[OWN], here, host, 8, "a value", &error), TW_OK, "r8 ");
    begin(0, 0);
    assert_told(twi_share_shape(TWI_ALONE, &f.devices[OWN], &shape, "a shape", &error), TW_OK, "");
    begin(0, 0);
    assert_told(twi_share_shape(LANE, &f.devices[OWN], &shape, "a shape", &error), TW_OK, f.told);
    assert_int_equal(f.num_sent, 2 * sizeof shape);
    assert_memory_equal(f.sent, &shape, sizeof shape);
    begin(0, 0);
    assert_true(twi_is_among_tasks(&f.devices[OWN], 0));
    assert_false(twi_is_among_tasks(&f.devices[OWN], TWI_ALONE));
    f.set.comm = NULL;
    assert_false(twi_is_among_tasks(&f.devices[OWN], 0));
    f.devices[OWN].set = NULL;
    assert_false(twi_is_among_tasks(&f.devices[OWN], 0));
    stop_failing_allocations();
}

static void strings_for_all_are_packed_once(void **state)
{
    (void)state;
    char said[300];
    tw_tensor *got = tw_tensor_create(TW_STRING, TW_SHAPE(2)), *bytes = tw_tensor_create(TW_UINT8, TW_SHAPE(8));
    tw_string *first = tw_tensor_data(got);
    begin(0, 0);
    assert_ok(twi_share_tensor(LANE, &f.devices[OWN], words, got, "words", &error));
    snprintf(said, sizeof said, "s0@%d:8 s0@%d:%d s2@%d:8 s2@%d:%d ", OF_FETCHES, OF_FETCHES, PACKED, OF_FETCHES,
             OF_FETCHES, PACKED);
    assert_string_equal(f.told, said);
    assert_memory_equal(first->data, "ab", 2);
    assert_memory_equal(f.sent, packed_words(PACKED), sizeof(uint64_t) + PACKED);
    twi_free_owned(TW_STRING, first, 2);
    assert_int_equal(memory.live, 0);
    begin('s', 1); /* nothing comes behind a failure, nor out of it */
    assert_int_equal(twi_share_tensor(LANE, &f.devices[OWN], words, got, "words", &error), TW_ABORTED);
    assert_null(first->data);
    assert_null(strstr(f.told, "s2"));
    begin(0, 0);
    f.come = packed_words(PACKED);
    assert_ok(twi_share_tensor(LANE, &f.devices[LAST], NULL, got, "words", &error));
    snprintf(said, sizeof said, "g2@%d:8 g2@%d:%d ", OF_FETCHES, OF_FETCHES, PACKED);
    assert_string_equal(f.told, said);
    assert_memory_equal(first->data, "ab", 2);
    twi_free_owned(TW_STRING, first, 2);
    begin(0, 0);
    assert_ok(twi_share_tensor(TWI_ALONE, &f.devices[OWN], words, got, "words", &error));
    assert_string_equal(f.told, "");
    assert_memory_equal(first->data, "ab", 2);
    twi_free_owned(TW_STRING, first, 2);
    begin(0, 0);
    memory.countdown = 0;
    assert_int_equal(twi_share_tensor(TWI_ALONE, &f.devices[OWN], words, got, "words", &error), TW_RESOURCE_EXHAUSTED);
    begin(0, 0);
    assert_told(twi_share_tensor(LANE, &f.devices[OWN], "1234567", bytes, "bytes", &error), TW_OK,
                line("r8 s0@%d:8 s2@%d:8 ", OF_FETCHES));
    tw_tensor_release(got);
    tw_tensor_release(bytes);
}

/* To whom it goes, from which device, and what is told. */
static void what_some_are_to_know_goes_to_them_alone(void **state)
{
    (void)state;
    static const struct {
        tw_receivers to;
        int device;
        const char *told;
    } cases[] = {
        {{FIRST, -1}, OWN, "r8 s0@%d:8 "},
        {{FIRST, LAST}, OWN, "r8 s0@%d:8 s2@%d:8 "},
        {{OWN, -1}, OWN, "r8 "},
        {{OWN, LAST}, OWN, "r8 s2@%d:8 "},
        {{FIRST, OWN}, OWN, "r8 s0@%d:8 "},
        {{LAST, LAST}, OWN, "r8 s2@%d:8 "},
        {{OWN, FIRST}, OWN, "r8 s0@%d:8 "},
        {{FIRST, -1}, LAST, ""},
        {{OWN, -1}, LAST, "g2@%d:8 "},
        {{FIRST, OWN}, LAST, "g2@%d:8 "},
        {{-1, -1}, OWN, "r8 s0@%d:8 s2@%d:8 "},
        {{-1, -1}, FIRST, "g0@%d:8 "},
        {{LAST, FIRST}, OWN, "r8 s2@%d:8 s0@%d:8 "},
    };
    tw_tensor *into = tw_tensor_create(TW_UINT8, TW_SHAPE(8));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(0, 0);
        assert_told(twi_give_tensor(LANE, &f.devices[cases[i].device], "1234567", into, cases[i].to, "it", &error),
                    TW_OK, line(cases[i].told, OF_FETCHES));
    }
    begin('r', 0);
    assert_told(twi_give_tensor(LANE, &f.devices[OWN], "1234567", into, (tw_receivers){FIRST, LAST}, "it", &error),
                TW_ABORTED, "r8 ");
    begin('s', 0);
    assert_told(twi_give_tensor(LANE, &f.devices[OWN], "1234567", into, (tw_receivers){FIRST, LAST}, "it", &error),
                TW_ABORTED, line("r8 s0@%d:8 ", OF_FETCHES));
    begin(0, 0);
    assert_told(twi_give_tensor(TWI_ALONE, &f.devices[OWN], "1234567", into, (tw_receivers){FIRST, LAST}, "it", &error),
                TW_OK, "r8 ");
    tw_tensor_release(into);
    into = tw_tensor_create(TW_STRING, TW_SHAPE(2)); /* strings go to all */
    begin(0, 0);
    assert_ok(twi_give_tensor(LANE, &f.devices[OWN], words, into, (tw_receivers){FIRST, -1}, "it", &error));
    assert_non_null(strstr(f.told, "s2"));
    tw_tensor_release(into);
    stop_failing_allocations();
}

/* ---- how runs end ------------------------------------------------------------------------------------------------ */

static const char *const both_lanes_end = "e%d:%d:no more e%d:%d:no more ";

static const char *end_of_both(const char *before, const char *behind)
{
    static char text[300];
    int within = twi_lane_within(LANE), n = 0;
    n = snprintf(text, sizeof text, "%s", before);
    n += snprintf(text + n, sizeof text - n, both_lanes_end, LANE, TW_OUT_OF_RANGE, within, TW_OUT_OF_RANGE);
    snprintf(text + n, sizeof text - n, behind, LANE, within);
    return text;
}

static void the_lanes_of_loops_end_with_the_runs(void **state)
{
    (void)state;
    begin(0, 0);
    f.plan.depth = 1;
    twi_end_run(&f.plan, TW_OUT_OF_RANGE, "no more");
    assert_told(TW_OK, TW_OK, end_of_both("", ""));
    begin(0, 0);
    f.set.comm = NULL;
    twi_end_run(&f.plan, TW_OUT_OF_RANGE, "no more");
    assert_told(TW_OK, TW_OK, "");
}

static void a_lane_ends_alone_where_there_is_no_more(void **state)
{
    (void)state;
    bool ends[TASKS] = {false};
    static const struct {
        int lane;
        bool ends;
        tw_status status;
        bool expected;
    } cases[] = {
        {LANE, false, TW_OUT_OF_RANGE, false},
        {LANE, true, TW_OUT_OF_RANGE, true},
        {LANE, true, TW_CANCELLED, false},
        {TWI_FIRST_GIVEN, false, TW_OUT_OF_RANGE, true},
        {TWI_FIRST_GIVEN, false, TW_CANCELLED, true},
        {TWI_FIRST_GIVEN, true, TW_ABORTED, false},
        {TWI_FIRST_GIVEN - 1, false, TW_CANCELLED, false},
    };
    begin(0, 0);
    for (int i = 0; i < 7; i++) {
        f.plan.lane = cases[i].lane;
        f.plan.ends = cases[i].ends ? ends : NULL;
        assert_true(twi_ends_lane(&f.plan, cases[i].status) == cases[i].expected);
    }
    stop_failing_allocations();
}

/* Who may have no more says whether that is so. */
static void runs_that_may_end_end_together(void **state)
{
    (void)state;
    bool all[TASKS] = {true, true, true}, last[TASKS] = {false, false, true}, own[TASKS] = {false, true, false};
    begin(0, 0);
    f.plan.ends = all;
    assert_told(twi_end_together(&f.plan, TW_OK, &error), TW_OK, line("s0@%d:0 s2@%d:0 g0@%d:0 g2@%d:0 ", OF_FETCHES));
    begin(0, 0);
    f.plan.ends = last;
    assert_told(twi_end_together(&f.plan, TW_OK, &error), TW_OK, line("g2@%d:0 ", OF_FETCHES));
    begin(0, 0);
    f.plan.ends = own;
    assert_told(twi_end_together(&f.plan, TW_OK, &error), TW_OK, line("s0@%d:0 s2@%d:0 ", OF_FETCHES));
    begin('s', 0);
    f.plan.ends = all;
    assert_told(twi_end_together(&f.plan, TW_OK, &error), TW_ABORTED, line("s0@%d:0 ", OF_FETCHES));
    begin('g', 0);
    f.plan.ends = all;
    assert_told(twi_end_together(&f.plan, TW_OK, &error), TW_ABORTED, line("s0@%d:0 s2@%d:0 g0@%d:0 ", OF_FETCHES));
    begin(0, 0);
    f.plan.ends = all;
    assert_told(twi_end_together(&f.plan, TW_INVALID_ARGUMENT, &error), TW_INVALID_ARGUMENT, "");
}

/* Where there is no more here, or on another. */
static void a_run_that_has_ended_begins_anew(void **state)
{
    (void)state;
    bool last[TASKS] = {false, false, true};
    begin(0, 0);
    f.plan.depth = 1;
    f.plan.ends = last;
    strcpy(error.message, "no more");
    assert_told(twi_end_together(&f.plan, TW_OUT_OF_RANGE, &error), TW_OUT_OF_RANGE, end_of_both("", "n%d n%d "));
    assert_string_equal(error.message, "no more");
    begin(0, 0);
    f.plan.depth = 1;
    f.plan.ends = last;
    f.get_ends = TW_OUT_OF_RANGE;
    char heard[32];
    snprintf(heard, sizeof heard, "g2@%d:0 ", OF_FETCHES);
    assert_told(twi_end_together(&f.plan, TW_OK, &error), TW_OUT_OF_RANGE, end_of_both(heard, "n%d n%d "));
    begin('n', 0);
    f.plan.depth = 1;
    f.plan.ends = last;
    strcpy(error.message, "no more");
    assert_told(twi_end_together(&f.plan, TW_OUT_OF_RANGE, &error), TW_ABORTED, end_of_both("", "n%d "));
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static char kept[8];
static const void *inputs[2] = {"nonsense", "1234567"};
static void *outputs[1] = {kept};

/* A step of a device that copies from another's, unless that is -1, and waits for steps of these, "-": of none. */
static twi_step_id make_step(int device, int source, const char *waits)
{
    static twi_step_id ids[4];
    int count = 0;
    for (const char *at = waits; *at != '-'; at++)
        ids[count++].device = *at - '0';
    f.step = (twi_step){
        .device = &f.devices[device],
        .source = source < 0 ? NULL : &f.devices[source],
        .bytes = 8,
        .waits = ids,
        .num_waits = count,
        .owned = TW_INVALID_DTYPE,
        .run = {
            .inputs = inputs, .num_inputs = 2, .outputs = outputs, .num_outputs = 1, .node = "it", .error = &error}};
    return (twi_step_id){device, 0};
}

static void steps_of_others_are_sent_what_they_need(void **state)
{
    (void)state;
    static const struct {
        int device, source;
        const char *waits, *told;
    } cases[] = {
        {LAST, OWN, "-", "r8 s2@%d:8 "}, {LAST, OWN, "1-", "r8 s2@%d:8 "}, {FIRST, -1, "1-", "s0@%d:0 "},
        {FIRST, LAST, "1-", "s0@%d:0 "}, {FIRST, LAST, "2-", ""},          {FIRST, -1, "-", ""},
    };
    for (int i = 0; i < 6; i++) {
        begin(0, 0);
        twi_step_id id = make_step(cases[i].device, cases[i].source, cases[i].waits);
        assert_told(twi_send_for(&f.plan, id), TW_OK, line(cases[i].told, OF_DEVICE + cases[i].device));
        if (f.num_sent)
            assert_string_equal(f.sent, "1234567");
    }
}

/* Whether or not a branch there was taken. */
static void what_a_branch_elsewhere_assigns_may_have_a_value(void **state)
{
    (void)state;
    twi_resource variables[2] = {0}, *assigned[2] = {&variables[0], &variables[1]};
    twi_condition condition = {.assigned = assigned, .num_assigned = 1};
    begin(0, 0);
    twi_step_id id = make_step(FIRST, -1, "-");
    f.step.condition = &condition;
    assert_told(twi_send_for(&f.plan, id), TW_OK, "");
    assert_true(variables[0].initialized);
    assert_false(variables[1].initialized);
}

static void steps_here_wait_for_what_they_need_of_others(void **state)
{
    (void)state;
    static const struct {
        int source;
        const char *waits, *told;
        bool done;
    } cases[] = {
        {LAST, "-", "g2@%d:8 w8 ", true},
        {LAST, "0-", "g0@%d:0 g2@%d:8 w8 ", true},
        {FIRST, "2-", "g0@%d:8 w8 g2@%d:0 ", true},
        {-1, "0-", "g0@%d:0 ", false},
        {-1, "02-", "g0@%d:0 g2@%d:0 ", false},
        {-1, "-", "", false},
        {OWN, "1-", "", false},
    };
    bool done;
    for (int i = 0; i < 7; i++) {
        begin(0, 0);
        twi_step_id id = make_step(OWN, cases[i].source, cases[i].waits);
        done = !cases[i].done;
        assert_told(twi_receive_for(&f.plan, id, &done), TW_OK, line(cases[i].told, OF_DEVICE + OWN));
        assert_true(done == cases[i].done);
    }
    begin('g', 0);
    twi_step_id id = make_step(OWN, -1, "02-");
    assert_told(twi_receive_for(&f.plan, id, &done), TW_ABORTED, line("g0@%d:0 ", OF_DEVICE + OWN));
    begin(0, 0);
    f.set.comm = NULL;
    id = make_step(OWN, LAST, "0-");
    assert_told(twi_receive_for(&f.plan, id, &done), TW_OK, "");
}

int run_messages(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_goes_from_its_task_to_where_it_is_wanted),
        cmocka_unit_test(strings_go_behind_how_many_bytes_they_are),
        cmocka_unit_test(what_all_are_to_know_comes_from_the_one_that_has_it),
        cmocka_unit_test(strings_for_all_are_packed_once),
        cmocka_unit_test(what_some_are_to_know_goes_to_them_alone),
        cmocka_unit_test(the_lanes_of_loops_end_with_the_runs),
        cmocka_unit_test(a_lane_ends_alone_where_there_is_no_more),
        cmocka_unit_test(runs_that_may_end_end_together),
        cmocka_unit_test(a_run_that_has_ended_begins_anew),
        cmocka_unit_test(steps_of_others_are_sent_what_they_need),
        cmocka_unit_test(what_a_branch_elsewhere_assigns_may_have_a_value),
        cmocka_unit_test(steps_here_wait_for_what_they_need_of_others),
    };
    return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
