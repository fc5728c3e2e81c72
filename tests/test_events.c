/* Event logs: against TensorFlow's bytes, from several threads, and with failing calls. */
#include "testing.h"

#include "faulty_files.h"
#include "faulty_memory.h"
#include "messages_testing.h"

#include <float.h>
#include <pthread.h>
#include <tower/io.h>

static const char *folder;
static tw_error error;

static int enter(void **state)
{
    (void)state;
    folder = scratch_folder();
    error = (tw_error){0};
    return 0;
}

static int leave(void **state)
{
    (void)state;
    twi_set_files(NULL);
    remove_scratch(folder);
    return 0;
}

static void log_of_tensorflow_is_read(void **state)
{
    (void)state;
    events *events = read_events(GOLDEN_DIR "/events");
    int values = 0;
    assert_int_equal(events->end, TW_OUT_OF_RANGE);
    assert_string_equal(events->items[0]->file_version, "brain.Event:2");
    for (int i = 1; i < events->count; i++)
        if (events->items[i]->what_case == TWI__EVENT__WHAT_SUMMARY) {
            assert_int_equal(events->items[i]->summary->n_value, 3);
            assert_string_equal(events->items[i]->summary->value[0]->tag, "loss");
            assert_true(events->items[i]->summary->value[0]->simple_value == 0.25f);
            values++;
        }
    assert_int_equal(values, 3);
    free_events(events);
}

static void assert_same_message(const void *a, const void *b)
{
    static uint8_t x[65536], y[65536];
    size_t size = protobuf_c_message_pack(a, x);
    assert_int_equal(protobuf_c_message_pack(b, y), size);
    assert_memory_equal(x, y, size);
}

static void scalars_and_histograms_are_tensorflows_to_the_bit(void **state)
{
    (void)state;
    float numbers[] = {-3.5f, 0, 0, 1e-13f, 0.25f, 0.26f, 7, 1e20f};
    tw_tensor *weights = tw_tensor_from(TW_FLOAT32, TW_SHAPE(8), numbers);
    tw_tensor *none = tw_tensor_create(TW_FLOAT32, TW_SHAPE(0));
    tw_event_writer *writer;
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    assert_ok(tw_event_writer_add_scalar(writer, "loss", 300, 0.25f, &error));
    assert_ok(tw_event_writer_add_histogram(writer, "weights", 300, weights, &error));
    assert_ok(tw_event_writer_add_histogram(writer, "none", 300, none, &error));
    assert_ok(tw_event_writer_flush(writer, &error));
    events *ours = read_events(tw_event_writer_path(writer)), *theirs = read_events(GOLDEN_DIR "/events");
    const Twi__Event *expected = theirs->items[theirs->count - 1];
    assert_int_equal(ours->count, 4);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ours->items[i + 1]->step, expected->step);
        assert_true(ours->items[i + 1]->wall_time > 1.7e9);
        assert_int_equal(ours->items[i + 1]->summary->n_value, 1);
        Twi__Summary__Value *value = expected->summary->value[i];
        value->base.n_unknown_fields = 0; /* metadata, which old readers did without */
        assert_same_message(ours->items[i + 1]->summary->value[0], value);
        value->base.n_unknown_fields = value->base.unknown_fields != NULL;
    }
    free_events(ours);
    free_events(theirs);
    assert_ok(tw_event_writer_close(writer, &error));
    tw_tensor_release(weights);
    tw_tensor_release(none);
}

static void file_begins_with_its_version_which_is_flushed_at_once(void **state)
{
    (void)state;
    tw_event_writer *writer;
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    events *events = read_events(tw_event_writer_path(writer));
    assert_int_equal(events->count, 1);
    assert_string_equal(events->items[0]->file_version, "brain.Event:2");
    free_events(events);
    const char *name = strrchr(tw_event_writer_path(writer), '/') + 1;
    long long seconds;
    assert_int_equal(sscanf(name, "events.out.tfevents.%10lld.", &seconds), 1);
    assert_true(seconds > 1700000000);
    assert_ok(tw_event_writer_add_scalar(writer, "x", 1, 1, &error));
    events = read_events(tw_event_writer_path(writer));
    assert_int_equal(events->count, 1); /* buffered */
    free_events(events);
    assert_ok(tw_event_writer_close(writer, &error));
}

static void graphs_restarts_and_summaries_are_kept_as_given(void **state)
{
    (void)state;
    static const char graph[] = "\x0a\x07\x0a\x01"
                                "a\x12\x02"
                                "Op";
    static const char summary[] = "\x0a\x0b\x0a\x04"
                                  "loss\x15\0\0\x80\x3e";
    static const char foreign[] = "\x0a\x07\x0a\x01"
                                  "t\x4a\x02\x12\0"; /* with metadata that Tower does not know */
    tw_event_writer *writer;
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    assert_ok(tw_event_writer_add_graph(writer, graph, sizeof graph - 1, &error));
    assert_ok(tw_event_writer_add_restart(writer, 40, &error));
    assert_ok(tw_event_writer_add_summary(writer, 41, summary, sizeof summary - 1, &error));
    assert_ok(tw_event_writer_add_summary(writer, 42, foreign, sizeof foreign - 1, &error));
    assert_fails(tw_event_writer_add_summary(writer, 43, "\x0a\x70", 2, &error), TW_INVALID_ARGUMENT, "Summary");
    assert_ok(tw_event_writer_flush(writer, &error));
    events *events = read_events(tw_event_writer_path(writer));
    assert_int_equal(events->count, 5);
    assert_int_equal(events->items[1]->graph_def.len, sizeof graph - 1);
    assert_memory_equal(events->items[1]->graph_def.data, graph, sizeof graph - 1);
    assert_int_equal(events->items[2]->step, 40);
    assert_int_equal(events->items[2]->session_log->status, TWI__SESSION_LOG__SESSION_STATUS__START);
    assert_string_equal(events->items[3]->summary->value[0]->tag, "loss");
    assert_int_equal(events->items[4]->summary->value[0]->base.n_unknown_fields, 1);
    free_events(events);
    assert_ok(tw_event_writer_close(writer, &error));
}

static void histogram_counts_every_value_once(void **state)
{
    (void)state;
    double numbers[] = {-DBL_MAX, DBL_MAX, -1e-12, 1e-12, 0, 5e-324, -5e-324, 1, 1.1};
    int count = sizeof numbers / sizeof *numbers;
    tw_tensor *tensor = tw_tensor_from(TW_FLOAT64, TW_SHAPE(count), numbers);
    tw_event_writer *writer;
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    assert_ok(tw_event_writer_add_histogram(writer, "h", 0, tensor, &error));
    assert_ok(tw_event_writer_flush(writer, &error));
    events *events = read_events(tw_event_writer_path(writer));
    const Twi__HistogramProto *histogram = events->items[1]->summary->value[0]->histo;
    double total = 0;
    assert_int_equal(histogram->n_bucket, histogram->n_bucket_limit);
    for (size_t i = 0; i < histogram->n_bucket; i++) {
        double inside = 0, below = i ? histogram->bucket_limit[i - 1] : -INFINITY;
        assert_true(below < histogram->bucket_limit[i]);
        for (int k = 0; k < count; k++)
            inside += numbers[k] >= below && (numbers[k] < histogram->bucket_limit[i] ||
                                              (numbers[k] == DBL_MAX && i + 1 == histogram->n_bucket));
        assert_true(histogram->bucket[i] == inside);
        assert_true(i == 0 || histogram->bucket[i] > 0 ||
                    histogram->bucket[i - 1] > 0); /* runs of empty ones are joined */
        total += inside;
    }
    assert_true(total == count && histogram->num == count);
    assert_true(histogram->min == -DBL_MAX && histogram->max == DBL_MAX);
    free_events(events);
    assert_ok(tw_event_writer_close(writer, &error));
    tw_tensor_release(tensor);
}

static void histogram_of_bfloat16_is_that_of_the_same_floats(void **state)
{
    (void)state;
    enum { COUNT = 2500 };
    static float floats[COUNT];
    static uint16_t bfloats[COUNT];
    for (int i = 0; i < COUNT; i++) {
        bfloats[i] = tw_float_to_bfloat16((float)((i * 37) % 1000 - 500) / 7);
        floats[i] = tw_bfloat16_to_float(bfloats[i]);
    }
    tw_tensor *tensors[] = {tw_tensor_from(TW_FLOAT32, TW_SHAPE(COUNT), floats),
                            tw_tensor_from(TW_BFLOAT16, TW_SHAPE(COUNT), bfloats)};
    tw_event_writer *writer;
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    for (int i = 0; i < 2; i++)
        assert_ok(tw_event_writer_add_histogram(writer, "h", i, tensors[i], &error));
    assert_ok(tw_event_writer_flush(writer, &error));
    events *events = read_events(tw_event_writer_path(writer));
    const Twi__HistogramProto *a = events->items[1]->summary->value[0]->histo;
    const Twi__HistogramProto *b = events->items[2]->summary->value[0]->histo;
    assert_true(a->num == COUNT && b->num == COUNT && a->sum == b->sum && a->sum_squares == b->sum_squares);
    assert_true(a->min == b->min && a->max == b->max);
    assert_int_equal(a->n_bucket, b->n_bucket);
    assert_memory_equal(a->bucket, b->bucket, a->n_bucket * sizeof *a->bucket);
    free_events(events);
    bfloats[COUNT - 1] = 0x7f80;
    tw_tensor *infinite = tw_tensor_from(TW_BFLOAT16, TW_SHAPE(COUNT), bfloats);
    assert_fails(tw_event_writer_add_histogram(writer, "h", 0, infinite, &error), TW_INVALID_ARGUMENT,
                 "an infinity at element 2499");
    assert_ok(tw_event_writer_close(writer, &error));
    tw_tensor_release(infinite);
    for (int i = 0; i < 2; i++)
        tw_tensor_release(tensors[i]);
}

static void histogram_of_no_numbers_is_refused_by_tag_and_the_log_goes_on(void **state)
{
    (void)state;
    float numbers[] = {1, NAN, INFINITY};
    tw_tensor *tensor = tw_tensor_from(TW_FLOAT32, TW_SHAPE(3), numbers), *text = tw_tensor_string("x", 1);
    tw_event_writer *writer;
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    assert_fails(tw_event_writer_add_histogram(writer, "w", 0, tensor, &error), TW_INVALID_ARGUMENT,
                 "'w' has a NaN at");
    ((float *)tw_tensor_data(tensor))[1] = 2;
    assert_fails(tw_event_writer_add_histogram(writer, "w", 0, tensor, &error), TW_INVALID_ARGUMENT, "infinity");
    assert_fails(tw_event_writer_add_histogram(writer, "w", 0, text, &error), TW_INVALID_ARGUMENT, "type string");
    assert_ok(tw_event_writer_add_scalar(writer, "x", 0, NAN, &error));
    assert_ok(tw_event_writer_flush(writer, &error));
    events *events = read_events(tw_event_writer_path(writer));
    assert_int_equal(events->count, 2);
    free_events(events);
    assert_ok(tw_event_writer_close(writer, &error));
    tw_tensor_release(tensor);
    tw_tensor_release(text);
}

static void two_writers_of_one_second_have_files_of_their_own(void **state)
{
    (void)state;
    tw_event_writer *a, *b;
    char deep[160];
    snprintf(deep, sizeof deep, "%s/run", folder);
    assert_ok(tw_event_writer_create(deep, &a, &error));
    assert_ok(tw_event_writer_create(deep, &b, &error));
    assert_string_not_equal(tw_event_writer_path(a), tw_event_writer_path(b));
    assert_ok(tw_event_writer_close(a, &error));
    assert_ok(tw_event_writer_close(b, &error));
    assert_ok(tw_event_writer_close(NULL, &error));
    assert_int_equal(count_files(deep, "tfevents"), 2);
    remove_scratch(deep);
}

/* The call of the C library, which this stands in place of. */
static int readings_until_failure = -1; // below 0: never

ssize_t pread64(int fd, void *bytes, size_t size, off_t offset); // on machines of 64 bits the same

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    if (readings_until_failure == 0) {
        errno = EIO;
        return -1;
    }
    readings_until_failure -= readings_until_failure > 0;
    return pread64(fd, bytes, size, offset);
}

/* Who reads on behind a log that was cut off must not take this for one. */
static void log_that_a_disk_does_not_give_is_not_taken_for_a_cut_one(void **state)
{
    (void)state;
    tw_event_reader *reader;
    tw_event event;
    assert_ok(tw_event_reader_open(GOLDEN_DIR "/events", &reader, &error));
    readings_until_failure = 0;
    tw_status status = tw_event_reader_next(reader, &event, &error);
    readings_until_failure = -1;
    assert_int_equal(status, TW_UNKNOWN);
    assert_message(error.message, "golden/events': Input/output error");
    tw_event_reader_close(reader);
}

static void *add_many(void *writer)
{
    for (int i = 0; i < 300; i++) {
        tw_event_writer_add_scalar(writer, "a tag that is long enough to be torn", i, (float)i, NULL);
        if (i % 50 == 0)
            tw_event_writer_flush(writer, NULL);
    }
    return NULL;
}

static void events_of_several_threads_are_never_torn(void **state)
{
    (void)state;
    pthread_t threads[4];
    tw_event_writer *writer;
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, writer), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_ok(tw_event_writer_flush(writer, &error));
    events *events = read_events(tw_event_writer_path(writer));
    assert_int_equal(events->end, TW_OUT_OF_RANGE);
    assert_int_equal(events->count, 1 + 4 * 300);
    free_events(events);
    assert_ok(tw_event_writer_close(writer, &error));
}

static void failed_call_is_reported_and_what_was_flushed_stays_readable(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        char path[256] = "";
        tw_event_writer *writer;
        int flushed = 0;
        error = (tw_error){0};
        fail_file_call(n, n % 2 ? EIO : ENOSPC);
        tw_status status = tw_event_writer_create(folder, &writer, &error);
        if (status == TW_OK) {
            snprintf(path, sizeof path, "%s", tw_event_writer_path(writer));
            for (int i = 0; i < 3 && status == TW_OK; i++, flushed += status == TW_OK) {
                tw_event_writer_add_scalar(writer, "x", i, 1, NULL);
                status = tw_event_writer_flush(writer, &error);
            }
            tw_event_writer_add_scalar(writer, "after the failure", 9, 1, NULL);
            tw_status closed = tw_event_writer_close(writer, status == TW_OK ? &error : NULL);
            assert_true(status == TW_OK || closed == status); /* the first error, again */
            status = closed;
        }
        if (!stop_failing()) {
            assert_int_equal(status, TW_OK);
            break;
        }
        assert_int_not_equal(status, TW_OK);
        assert_message(error.message, folder);
        if (!*path) {
            assert_int_equal(count_files(folder, ""), 0); /* no file without a version */
            continue;
        }
        events *events = read_events(path);
        assert_true(events->count >= 1 + flushed);
        for (int i = 1; i <= flushed; i++)
            assert_int_equal(events->items[i]->step, i - 1);
        free_events(events);
        unlink(path);
    }
}

static void running_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    tw_tensor *tensor = tw_tensor_float(1);
    bool failed = true;
    for (int n = 0; failed; n++) {
        tw_event_writer *writer;
        fail_allocation(n);
        tw_status status = tw_event_writer_create(folder, &writer, &error);
        if (status == TW_OK) {
            status = tw_event_writer_add_histogram(writer, "h", 1, tensor, &error);
            if (status == TW_OK)
                status = tw_event_writer_add_summary(writer, 1, "\x0a\0", 2, &error);
            assert_int_equal(tw_event_writer_close(writer, &error), TW_OK);
        }
        assert_int_equal(memory.live, 0);
        failed = stop_failing_allocations();
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
    }
    tw_tensor_release(tensor);
}

static void hostile_message_cannot_take_much_memory(void **state)
{
    (void)state;
    static uint8_t bytes[100000]; /* 50,000 empty values of a Summary */
    for (size_t i = 0; i < sizeof bytes; i += 2)
        bytes[i] = 0x0a;
    twi_proto proto;
    twi_proto_start(&proto, 10);
    assert_null(twi__summary__unpack(&proto.allocator, sizeof bytes, bytes));
    assert_false(proto.out_of_memory);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static void what_was_written_is_read_value_by_value(void **state)
{
    (void)state;
    tw_event_writer *writer;
    tw_event_reader *reader;
    tw_event event;
    const float spread[] = {-1, 0.5f, 0.5f, 2};
    tw_tensor *values = tw_tensor_from(TW_FLOAT32, TW_SHAPE(4), spread);
    assert_ok(tw_event_writer_create(folder, &writer, &error));
    assert_ok(tw_event_writer_add_scalar(writer, "loss", 3, 0.25f, &error));
    assert_ok(tw_event_writer_add_restart(writer, 2, &error));
    assert_ok(tw_event_writer_add_histogram(writer, "weights", 2, values, &error));
    assert_ok(tw_event_writer_flush(writer, &error));
    assert_ok(tw_event_reader_open(tw_event_writer_path(writer), &reader, &error));
    assert_ok(tw_event_reader_next(reader, &event, &error));
    assert_int_equal(event.kind, TW_EVENT_SCALAR);
    assert_string_equal(event.tag, "loss");
    assert_int_equal(event.step, 3);
    assert_true(event.value == 0.25f && event.time > 1e9);
    assert_ok(tw_event_reader_next(reader, &event, &error));
    assert_int_equal(event.kind, TW_EVENT_RESTART);
    assert_int_equal(event.step, 2);
    assert_ok(tw_event_reader_next(reader, &event, &error));
    assert_int_equal(event.kind, TW_EVENT_HISTOGRAM);
    assert_true(event.min == -1 && event.max == 2 && event.sum == 2);
    double count = 0;
    for (int i = 0; i < event.num_buckets; i++)
        count += event.counts[i];
    assert_true(count == 4);
    assert_fails(tw_event_reader_next(reader, &event, &error), TW_OUT_OF_RANGE, "no more records");
    tw_event_reader_close(reader);
    tw_event_writer_close(writer, NULL);
    tw_tensor_release(values);
}

static void tensorflows_log_is_read_and_a_cut_one_up_to_the_cut(void **state)
{
    (void)state;
    tw_event_reader *reader;
    tw_event event;
    int scalars = 0;
    char path[512], command[2048];
    assert_ok(tw_event_reader_open(GOLDEN_DIR "/events", &reader, &error));
    while (tw_event_reader_next(reader, &event, &error) == TW_OK)
        scalars += event.kind == TW_EVENT_SCALAR && strcmp(event.tag, "loss") == 0;
    assert_int_equal(error.status, TW_OUT_OF_RANGE);
    assert_int_equal(scalars, 3);
    tw_event_reader_close(reader);
    error = (tw_error){0};
    snprintf(path, sizeof path, "%s/cut", folder);
    snprintf(command, sizeof command, "head -c -3 '%s/events' > '%s'", GOLDEN_DIR, path);
    assert_int_equal(system(command), 0);
    assert_ok(tw_event_reader_open(path, &reader, &error));
    while (tw_event_reader_next(reader, &event, &error) == TW_OK)
        ;
    assert_int_equal(error.status, TW_DATA_LOSS);
    tw_event_reader_close(reader);
    error = (tw_error){0};
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(log_of_tensorflow_is_read),
        TEST(scalars_and_histograms_are_tensorflows_to_the_bit),
        TEST(file_begins_with_its_version_which_is_flushed_at_once),
        TEST(graphs_restarts_and_summaries_are_kept_as_given),
        TEST(histogram_counts_every_value_once),
        TEST(histogram_of_bfloat16_is_that_of_the_same_floats),
        TEST(histogram_of_no_numbers_is_refused_by_tag_and_the_log_goes_on),
        TEST(two_writers_of_one_second_have_files_of_their_own),
        TEST(log_that_a_disk_does_not_give_is_not_taken_for_a_cut_one),
        TEST(events_of_several_threads_are_never_torn),
        TEST(failed_call_is_reported_and_what_was_flushed_stays_readable),
        TEST(running_out_of_memory_is_reported_and_leaks_nothing),
        TEST(hostile_message_cannot_take_much_memory),
        TEST(what_was_written_is_read_value_by_value),
        TEST(tensorflows_log_is_read_and_a_cut_one_up_to_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
