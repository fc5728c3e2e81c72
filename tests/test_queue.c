/* test_queue.c - queues and readers: order, waiting, closing, what is refused. label: threads */
#include "faulty_memory.h"
#include "testing.h"

#include <pthread.h>
#include <sched.h>
#include <tower/ops.h>
#include <time.h>
#include <tower/queue.h>
#include <unistd.h>

typedef struct fixture {
    tw_graph *g;
    tw_session *s;
    tw_error error;
} fixture;

static fixture begin(void)
{
    return (fixture){.g = tw_graph_create()};
}

static void open_session(fixture *f)
{
    tw_error error = {0};
    assert_string_equal(tw_graph_message(f->g), "");
    assert_ok(tw_session_create(f->g, NULL, &f->s, &error));
}

static void end(fixture *f)
{
    tw_session_destroy(f->s);
    tw_graph_destroy(f->g);
}

static tw_status run(fixture *f, tw_output node, tw_tensor **result)
{
    f->error = (tw_error){0};
    tw_output fetch = {node.node, result ? node.index : -1};
    return tw_session_run(f->s, NULL, 0, &fetch, 1, result, &f->error);
}

#define assert_runs(node)                                                                                              \
    do {                                                                                                               \
        if (run(&f, (node), NULL) != TW_OK)                                                                            \
            fail_msg("%s: %s", #node, f.error.message);                                                                \
    } while (0)

#define assert_run_fails(node, code, part)                                                                             \
    do {                                                                                                               \
        tw_tensor *unwanted = NULL;                                                                                    \
        assert_int_equal(run(&f, (node), (node).index >= 0 ? &unwanted : NULL), (code));                               \
        assert_message(f.error.message, part);                                                                         \
        tw_tensor_release(unwanted);                                                                                   \
    } while (0)

/* The run's value is these int32 numbers. */
static void expect_ints(fixture *f, tw_output node, int count, const int32_t *expected)
{
    tw_tensor *result = NULL;
    if (run(f, node, &result) != TW_OK)
        fail_msg("%s", f->error.message);
    assert_int_equal(tw_tensor_elements(result), count);
    for (int i = 0; i < count; i++)
        assert_int_equal((int)tw_tensor_value(result, i), expected[i]);
    tw_tensor_release(result);
}

#define EXPECT_INTS(node, ...)                                                                                         \
    expect_ints(&f, (node), (int)(sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t)), (int32_t[]){__VA_ARGS__})

static const tw_dtype one_int[] = {TW_INT32};
static const tw_shape scalars[] = {{0, {0}}};

static tw_output int_queue(tw_graph *g, tw_queue_kind kind, tw_queue_options options)
{
    return tw_queue(g, kind, one_int, scalars, 1, &options);
}

static tw_output ints(tw_graph *g, int count, const int32_t *values)
{
    return tw_constant_int32s(g, TW_SHAPE(count), values);
}

static tw_output add(tw_graph *g, const char *op, const tw_output *inputs, int num_inputs, const tw_attr *attrs,
                     int count)
{
    return tw_node_output(tw_add_node(g, op, NULL, inputs, num_inputs, attrs, count), 0);
}

#define ADD(op, num, inputs, ...)                                                                                      \
    add(f.g, op, (tw_output[])inputs, num, (tw_attr[]){__VA_ARGS__}, (int)(sizeof((tw_attr[]){__VA_ARGS__}) / sizeof(tw_attr)))
#define LIST(...) {__VA_ARGS__}

/* ---- queues ------------------------------------------------------------------------------------------------ */

static void a_fifo_queue_gives_elements_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    fixture f = begin();
    tw_output q = int_queue(f.g, TW_QUEUE_FIFO, (tw_queue_options){.capacity = 10}), one, three;
    tw_output many = ints(f.g, 5, (int32_t[]){1, 2, 3, 4, 5}), seven = tw_scalar_of(f.g, TW_INT32, 7);
    tw_output put_many = tw_enqueue_many(f.g, q, &many, 1), put = tw_enqueue(f.g, q, &seven, 1);
    tw_output size = tw_queue_size(f.g, q);
    tw_dequeue(f.g, q, &one);
    tw_dequeue_many(f.g, q, 3, &three);
    assert_true(tw_shape_equal(tw_output_shape(one), TW_SCALAR));
    assert_true(tw_shape_equal(tw_output_shape(three), TW_SHAPE(3)));
    open_session(&f);
    assert_runs(put_many);
    assert_runs(put);
    EXPECT_INTS(size, 6);
    EXPECT_INTS(one, 1);
    EXPECT_INTS(three, 2, 3, 4);
    assert_runs(put_many);
    EXPECT_INTS(three, 5, 7, 1);
    EXPECT_INTS(size, 4);
    end(&f);
}

static void components_of_several_types_stay_together(void **state)
{
    (void)state;
    fixture f = begin();
    tw_dtype types[] = {TW_FLOAT32, TW_STRING, TW_INT64};
    tw_shape shapes[] = {TW_SHAPE(2), TW_SCALAR, TW_SCALAR};
    tw_output q = tw_queue(f.g, TW_QUEUE_FIFO, types, shapes, 3, NULL), out[3], two[3];
    tw_string words[] = {{"one", 3}, {"zwei", 4}, {"t\0r", 3}};
    tw_tensor *text = tw_tensor_from(TW_STRING, TW_SHAPE(3), words);
    tw_tensor *numbers = tw_tensor_from(TW_INT64, TW_SHAPE(3), (int64_t[]){10, 20, 30});
    tw_output in[] = {tw_constant_floats(f.g, TW_SHAPE(3, 2), (float[]){1, 2, 3, 4, 5, 6}), tw_constant(f.g, text),
                      tw_constant(f.g, numbers)};
    tw_output put = tw_enqueue_many(f.g, q, in, 3);
    tw_dequeue(f.g, q, out);
    tw_dequeue_many(f.g, q, 2, two);
    open_session(&f);
    tw_tensor *results[3] = {0};
    tw_error error = {0};
    for (int round = 0; round < 3; round++) {
        assert_runs(put);
        assert_ok(tw_session_run(f.s, NULL, 0, out, 3, results, &error));
        assert_true(tw_tensor_value(results[0], 1) == 2 && tw_tensor_value(results[2], 0) == 10);
        assert_memory_equal(((tw_string *)tw_tensor_data(results[1]))[0].data, "one", 3);
        assert_ok(tw_session_run(f.s, NULL, 0, two, 3, results, &error));
        assert_true(tw_tensor_value(results[0], 3) == 6 && tw_tensor_value(results[2], 1) == 30);
        assert_int_equal(((tw_string *)tw_tensor_data(results[1]))[1].size, 3);
        assert_memory_equal(((tw_string *)tw_tensor_data(results[1]))[1].data, "t\0r", 3);
    }
    for (int i = 0; i < 3; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(text);
    tw_tensor_release(numbers);
    end(&f);
}

static void a_closed_queue_gives_what_it_has_and_then_says_so(void **state)
{
    (void)state;
    fixture f = begin();
    tw_output q = int_queue(f.g, TW_QUEUE_FIFO, (tw_queue_options){.shared_name = "examples"}), one, two;
    tw_output many = ints(f.g, 3, (int32_t[]){1, 2, 3}), put = tw_enqueue_many(f.g, q, &many, 1);
    tw_output close = tw_queue_close(f.g, q, false), closed = tw_queue_is_closed(f.g, q), size = tw_queue_size(f.g, q);
    tw_dequeue(f.g, q, &one);
    tw_dequeue_many(f.g, q, 2, &two);
    open_session(&f);
    assert_runs(put);
    EXPECT_INTS(closed, 0);
    assert_runs(close);
    EXPECT_INTS(closed, 1);
    EXPECT_INTS(two, 1, 2);
    assert_run_fails(two, TW_OUT_OF_RANGE, "is closed and has insufficient elements (requested 2, current size 1)");
    EXPECT_INTS(size, 1); /* what was taken was put back */
    EXPECT_INTS(one, 3);
    assert_run_fails(one, TW_OUT_OF_RANGE, "(requested 1, current size 0)");
    assert_run_fails(put, TW_CANCELLED, "is closed");
    assert_run_fails(close, TW_CANCELLED, "is already closed");
    end(&f);
}

/* How many elements there are by now, while others take and put. */
static int size_of(fixture *f, tw_output size)
{
    tw_tensor *result = NULL;
    if (run(f, size, &result) != TW_OK)
        fail_msg("%s", f->error.message);
    int elements = (int)tw_tensor_value(result, 0);
    tw_tensor_release(result);
    return elements;
}

typedef struct taking {
    tw_session *s;
    tw_output three;
} taking;

static void *run_taking(void *user)
{
    const taking *t = user;
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_status status = tw_session_run_in(t->s, 1, NULL, 0, &t->three, 1, &result, &error);
    tw_tensor_release(result);
    return (void *)(intptr_t)status;
}

/* Who wants three has two in hand when the queue is closed, or the run is cancelled. */
static void what_was_in_hand_when_a_run_gave_up_is_there_again_in_its_order(void **state)
{
    (void)state;
    for (int cancels = 0; cancels < 2; cancels++) {
        fixture f = begin();
        tw_output q = int_queue(f.g, TW_QUEUE_FIFO, (tw_queue_options){0}), one;
        tw_output many = ints(f.g, 2, (int32_t[]){1, 2}), put = tw_enqueue_many(f.g, q, &many, 1);
        tw_output close = tw_queue_close(f.g, q, false), size = tw_queue_size(f.g, q);
        taking t;
        pthread_t thread;
        void *status;
        tw_dequeue(f.g, q, &one);
        tw_dequeue_many(f.g, q, 3, &t.three);
        open_session(&f);
        t.s = f.s;
        assert_runs(put);
        assert_int_equal(pthread_create(&thread, NULL, run_taking, &t), 0);
        while (size_of(&f, size) > 0)
            sched_yield();
        if (cancels)
            tw_session_cancel_lane(f.s, 1);
        else
            assert_runs(close);
        pthread_join(thread, &status);
        assert_int_equal((intptr_t)status, cancels ? TW_CANCELLED : TW_OUT_OF_RANGE);
        EXPECT_INTS(size, 2);
        EXPECT_INTS(one, 1);
        EXPECT_INTS(one, 2);
        end(&f);
    }
}

static void a_shuffle_queue_keeps_some_to_draw_from_until_it_is_closed(void **state)
{
    (void)state;
    int32_t first[6], order[2][6];
    for (int round = 0; round < 2; round++) {
        fixture f = begin();
        tw_output q = int_queue(f.g, TW_QUEUE_SHUFFLE,
                                (tw_queue_options){.capacity = 10, .min_after_dequeue = 3, .seed = 5});
        tw_output many = ints(f.g, 6, (int32_t[]){0, 1, 2, 3, 4, 5}), put = tw_enqueue_many(f.g, q, &many, 1), one;
        tw_output close = tw_queue_close(f.g, q, false), size = tw_queue_size(f.g, q);
        tw_dequeue(f.g, q, &one);
        open_session(&f);
        assert_runs(put);
        for (int i = 0; i < 6; i++) {
            tw_tensor *result = NULL;
            if (i == 3) {
                EXPECT_INTS(size, 3);
                assert_runs(close);
            }
            assert_int_equal(run(&f, one, &result), TW_OK);
            order[round][i] = (int32_t)tw_tensor_value(result, 0);
            tw_tensor_release(result);
        }
        end(&f);
    }
    assert_memory_equal(order[0], order[1], sizeof order[0]); /* the seed decides */
    memcpy(first, order[0], sizeof first);
    bool seen[6] = {0}, moved = false;
    for (int i = 0; i < 6; i++) {
        seen[first[i]] = true;
        moved = moved || first[i] != i;
    }
    for (int i = 0; i < 6; i++)
        assert_true(seen[i]);
    assert_true(moved);
}

static void a_priority_queue_gives_the_smallest_first(void **state)
{
    (void)state;
    fixture f = begin();
    tw_output q = tw_queue(f.g, TW_QUEUE_PRIORITY, one_int, scalars, 1, NULL), out[2];
    tw_tensor *ranks = tw_tensor_from(TW_INT64, TW_SHAPE(5), (int64_t[]){3, 1, 2, 1, -9});
    tw_output in[] = {tw_constant(f.g, ranks), ints(f.g, 5, (int32_t[]){30, 10, 20, 11, -90})};
    tw_output put = tw_enqueue_many(f.g, q, in, 2);
    tw_dequeue_many(f.g, q, 5, out);
    open_session(&f);
    assert_runs(put);
    EXPECT_INTS(out[1], -90, 10, 11, 20, 30);
    tw_tensor_release(ranks);
    end(&f);
}

static void a_padding_queue_fills_smaller_elements_up_with_zeros(void **state)
{
    (void)state;
    fixture f = begin();
    tw_shape open = {1, {-1}}, padded = TW_SHAPE(4);
    tw_output q = tw_queue(f.g, TW_QUEUE_PADDING, one_int, &open, 1, NULL), batch, unplanned;
    tw_output small = ints(f.g, 1, (int32_t[]){1}), large = ints(f.g, 3, (int32_t[]){2, 3, 4});
    tw_output put_small = tw_enqueue(f.g, q, &small, 1), put_large = tw_enqueue(f.g, q, &large, 1);
    tw_dequeue_padded(f.g, q, 2, &padded, &batch);
    tw_dequeue_many(f.g, q, 2, &unplanned);
    open_session(&f);
    assert_runs(put_small);
    assert_runs(put_large);
    EXPECT_INTS(unplanned, 1, 0, 0, 2, 3, 4);
    assert_runs(put_small);
    assert_runs(put_large);
    EXPECT_INTS(batch, 1, 0, 0, 0, 2, 3, 4, 0);
    end(&f);
}

static void queues_of_one_shared_name_are_one_queue(void **state)
{
    (void)state;
    fixture f = begin();
    tw_queue_options named = {.shared_name = "common"}, narrow = {.shared_name = "common", .capacity = 3};
    tw_output a = int_queue(f.g, TW_QUEUE_FIFO, named), b = int_queue(f.g, TW_QUEUE_FIFO, named), out, other;
    tw_output seven = tw_scalar_of(f.g, TW_INT32, 7), put = tw_enqueue(f.g, a, &seven, 1);
    tw_dequeue(f.g, b, &out);
    tw_dequeue(f.g, int_queue(f.g, TW_QUEUE_FIFO, narrow), &other);
    open_session(&f);
    assert_runs(put);
    EXPECT_INTS(out, 7);
    assert_run_fails(other, TW_INVALID_ARGUMENT, "that name is taken by another FIFOQueue");
    end(&f);
}

static void what_does_not_fit_a_queue_is_refused_before_the_step(void **state)
{
    (void)state;
    fixture f = begin();
    tw_output q = int_queue(f.g, TW_QUEUE_FIFO, (tw_queue_options){0});
    tw_output float_value = tw_scalar(f.g, 1), wide = ints(f.g, 2, (int32_t[]){1, 2});
    tw_output both[] = {wide, wide};
    tw_output wrong_type = tw_enqueue(f.g, q, &float_value, 1), wrong_shape = tw_enqueue(f.g, q, &wide, 1);
    tw_output wrong_count = tw_enqueue_many(f.g, q, both, 2);
    tw_variable *v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
    tw_output not_a_queue = tw_queue_size(f.g, v->handle);
    open_session(&f);
    assert_run_fails(wrong_type, TW_INVALID_ARGUMENT, "component 0 of FIFOQueue 'FIFOQueueV2' is int32, not float");
    assert_run_fails(wrong_shape, TW_INVALID_ARGUMENT, "has shape [], not [2]");
    assert_run_fails(wrong_count, TW_INVALID_ARGUMENT, "has elements of 1 components, not 2");
    assert_run_fails(not_a_queue, TW_INVALID_ARGUMENT, "not the handle of a queue");
    end(&f);
    tw_graph *g = tw_graph_create();
    int_queue(g, TW_QUEUE_SHUFFLE, (tw_queue_options){.capacity = 3, .min_after_dequeue = 3});
    assert_message(tw_graph_message(g), "'min_after_dequeue' is 3, expected less than the capacity");
    tw_graph_destroy(g);
}

static void a_queue_that_has_been_full_allocates_nothing(void **state)
{
    (void)state;
    fixture f = begin();
    tw_dtype type[] = {TW_FLOAT32};
    tw_shape shape[] = {TW_SHAPE(7, 5)};
    tw_output q = tw_queue(f.g, TW_QUEUE_SHUFFLE, type, shape, 1,
                           &(tw_queue_options){.capacity = 12, .min_after_dequeue = 2}), batch;
    tw_output values = tw_ones(f.g, TW_FLOAT32, TW_SHAPE(4, 7, 5)), put = tw_enqueue_many(f.g, q, &values, 1);
    tw_dequeue_many(f.g, q, 4, &batch);
    open_session(&f);
    int64_t before = 0;
    tw_tensor *result = NULL;
    for (int i = 0; i < 30; i++) {
        if (i == 0)
            assert_runs(put); /* 4 stay, and 8 more make it full */
        if (i == 3)
            before = tw_allocation_count();
        assert_runs(put);
        assert_runs(put);
        assert_int_equal(run(&f, batch, &result), TW_OK);
        assert_int_equal(run(&f, batch, &result), TW_OK);
    }
    assert_int_equal(tw_allocation_count(), before);
    tw_tensor_release(result);
    end(&f);
}

/* Fills and empties a queue of numbers and strings, which grows as it goes, and reads a record. */
static tw_status use_queues(tw_graph *g, tw_error *error)
{
    tw_dtype types[] = {TW_INT32, TW_STRING}, text = TW_STRING;
    tw_shape shapes[] = {TW_SCALAR, TW_SCALAR};
    tw_string words[20] = {{"a", 1}, {"b", 1}};
    tw_session *s = NULL;
    tw_tensor *results[3] = {0}, *list = tw_tensor_from(TW_STRING, TW_SHAPE(20), words);
    tw_tensor *file = tw_tensor_string(SOURCE_DIR "/README.md", strlen(SOURCE_DIR "/README.md"));
    if (!g || !list || !file) {
        tw_tensor_release(list);
        tw_tensor_release(file);
        return TW_RESOURCE_EXHAUSTED;
    }
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, types, shapes, 2, NULL), taken[2], one[2];
    tw_output names = tw_queue(g, TW_QUEUE_FIFO, &text, shapes, 1, NULL), name = tw_constant(g, file);
    tw_output in[] = {tw_zeros(g, TW_INT32, TW_SHAPE(20)), tw_constant(g, list)};
    tw_output runs[] = {tw_enqueue_many(g, q, in, 2), tw_enqueue(g, names, &name, 1)};
    tw_dequeue_many(g, q, 15, taken);
    tw_dequeue(g, q, one);
    tw_output record = tw_reader_read(g, tw_text_line_reader(g, 0), names, NULL);
    tw_output fetches[] = {taken[1], one[1], record};
    tw_tensor_release(list);
    tw_tensor_release(file);
    tw_status status = tw_session_create(g, NULL, &s, error);
    for (int i = 0; i < 2 && status == TW_OK; i++)
        status = tw_session_run(s, NULL, 0, (tw_output[]){{runs[i].node, -1}}, 1, NULL, error);
    if (status == TW_OK)
        status = tw_session_run(s, NULL, 0, fetches, 3, results, error);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(results[i]);
    tw_session_destroy(s);
    return status;
}

static void whichever_allocation_fails_nothing_is_lost(void **state)
{
    (void)state;
    bool failed = true;
    for (int n = 0; failed; n += 1 + n / 60) {
        tw_error error = {0};
        fail_allocation(n);
        tw_graph *g = tw_graph_create();
        tw_status status = use_queues(g, &error);
        tw_graph_destroy(g);
        failed = stop_failing_allocations();
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
        assert_int_equal(memory.live, 0);
    }
}

/* ---- readers ----------------------------------------------------------------------------------------------- */

static const char *write_file(char *path, size_t size, const char *name, const void *bytes, size_t count)
{
    snprintf(path, size, "/tmp/tower-queue-%d-%s", (int)getpid(), name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
    return path;
}

/* A closed queue of these names is what the reader reads; the texts "key value" are what it says, the end included. */
static void expect_records(tw_graph *g, tw_output reader, const char *const *names, int num_names,
                           const char *const *expected, int count)
{
    fixture f = {.g = g};
    tw_tensor *list = tw_tensor_create(TW_STRING, TW_SHAPE(num_names));
    for (int i = 0; i < num_names; i++)
        tw_tensor_set_string(list, i, names[i], strlen(names[i]));
    tw_dtype type = TW_STRING;
    tw_output queue = tw_queue(g, TW_QUEUE_FIFO, &type, scalars, 1, NULL), content = tw_constant(g, list), key;
    tw_output put = tw_enqueue_many(g, queue, &content, 1), close = tw_queue_close(g, queue, false);
    tw_output value = tw_reader_read(g, reader, queue, &key), produced = tw_reader_num_records_produced(g, reader);
    open_session(&f);
    assert_runs(put);
    assert_runs(close);
    tw_tensor *results[2] = {0};
    tw_error error = {0};
    for (int i = 0; i < count; i++) {
        char text[400];
        assert_ok(tw_session_run(f.s, NULL, 0, (tw_output[]){key, value}, 2, results, &error));
        const tw_string *k = tw_tensor_data(results[0]), *v = tw_tensor_data(results[1]);
        const char *name = strrchr(k->data, '/');
        snprintf(text, sizeof text, "%s %.*s", strstr(name, "-") ? strrchr(name, '-') + 1 : name, (int)v->size,
                 v->data);
        assert_string_equal(text, expected[i]);
    }
    assert_run_fails(value, TW_OUT_OF_RANGE, "is closed and has insufficient elements");
    expect_ints(&f, produced, 1, (int32_t[]){count});
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
    tw_tensor_release(list);
    end(&f);
}

static void a_reader_of_fixed_records_goes_from_file_to_file(void **state)
{
    (void)state;
    char a[100], b[100], empty[100];
    tw_graph *g = tw_graph_create();
    const char *names[] = {write_file(a, sizeof a, "a", "HHabcdefgh", 10), /* a part of a record at the end */
                           write_file(empty, sizeof empty, "empty", "", 0), write_file(b, sizeof b, "b", "HHijk", 5)};
    const char *expected[] = {"a:0 abc", "a:1 def", "b:0 ijk"};
    expect_records(g, tw_fixed_length_record_reader(g, 2, 3, 0), names, 3, expected, 3);
    g = tw_graph_create();
    const char *with_footer[] = {"a:0 abc", "a:1 def"};
    expect_records(g, tw_fixed_length_record_reader(g, 2, 3, 2), names, 3, with_footer, 2);
    unlink(a);
    unlink(b);
    unlink(empty);
}

static void a_reader_of_lines_gives_each_line_without_its_end(void **state)
{
    (void)state;
    char a[100], b[100];
    tw_graph *g = tw_graph_create();
    const char *names[] = {write_file(a, sizeof a, "a", "head\none\r\n\nthree", 16),
                           write_file(b, sizeof b, "b", "head\nx\n", 7)};
    const char *expected[] = {"a:2 one", "a:3 ", "a:4 three", "b:2 x"};
    expect_records(g, tw_text_line_reader(g, 1), names, 2, expected, 4);
    unlink(a);
    unlink(b);
}

static void a_reader_of_whole_files_gives_each_file(void **state)
{
    (void)state;
    char a[100], b[100];
    tw_graph *g = tw_graph_create();
    const char *names[] = {write_file(a, sizeof a, "a", "all of it", 9), write_file(b, sizeof b, "b", "", 0)};
    const char *expected[] = {"a all of it", "b "};
    expect_records(g, tw_whole_file_reader(g), names, 2, expected, 2);
    unlink(a);
    unlink(b);
}

static void a_reader_of_tfrecords_gives_their_data_with_their_offsets(void **state)
{
    (void)state;
    /* "first" and "second", as TensorFlow writes them: a length and data, each with its checksum behind it */
    static const uint8_t records[] = {0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xea, 0xb2, 0x04, 0x3e, 0x66, 0x69,
                                    0x72, 0x73, 0x74, 0x55, 0xff, 0x23, 0xe5, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                    0x00, 0x73, 0x69, 0xd5, 0x37, 0x73, 0x65, 0x63, 0x6f, 0x6e, 0x64, 0xd3, 0xe0, 0xd3,
                                    0xca};
    char a[100];
    write_file(a, sizeof a, "a", (const char *)records, sizeof records);
    tw_graph *g = tw_graph_create();
    const char *names[] = {a}, *expected[] = {"a:0 first", "a:21 second"};
    expect_records(g, tw_record_reader(g), names, 1, expected, 2);
    unlink(a);
}

/* Two files of two records: in batches of three an epoch ends within one. */
static void a_record_input_gives_each_record_once_an_epoch(void **state)
{
    (void)state;
    static const uint8_t records[] = {0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xea, 0xb2, 0x04,
                                      0x3e, 0x66, 0x69, 0x72, 0x73, 0x74, 0x55, 0xff, 0x23, 0xe5, 0x06,
                                      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x73, 0x69, 0xd5, 0x37,
                                      0x73, 0x65, 0x63, 0x6f, 0x6e, 0x64, 0xd3, 0xe0, 0xd3, 0xca};
    char a[100], b[100], pattern[110];
    write_file(a, sizeof a, "records_a", (const char *)records, sizeof records);
    write_file(b, sizeof b, "records_b", (const char *)records, sizeof records);
    snprintf(pattern, sizeof pattern, "%.*s?", (int)strlen(a) - 1, a);
    fixture f = begin();
    tw_attr attrs[] = {tw_attr_string("file_pattern", pattern), tw_attr_int("batch_size", 3),
                       tw_attr_int("file_buffer_size", 2), tw_attr_float("file_shuffle_shift_ratio", 0.5f)};
    tw_output batch = tw_node_output(tw_add_node(f.g, "RecordInput", NULL, NULL, 0, attrs, 4), 0);
    attrs[0] = tw_attr_string("file_pattern", "/nowhere/at/all");
    tw_output none = tw_node_output(tw_add_node(f.g, "RecordInput", NULL, NULL, 0, attrs, 1), 0);
    open_session(&f);
    for (int step = 0, seen = 0, first = 0; step < 8; step++) {
        tw_tensor *result = NULL;
        assert_int_equal(run(&f, batch, &result), TW_OK);
        for (int i = 0; i < 3; i++) {
            const tw_string *record = (const tw_string *)tw_tensor_data(result) + i;
            assert_true(record->size == 5 || record->size == 6);
            first += record->size == 5;
            if (++seen % 4 == 0)
                assert_int_equal(2 * first, seen);
        }
        tw_tensor_release(result);
    }
    assert_run_fails(none, TW_NOT_FOUND, "Found no files at /nowhere/at/all");
    unlink(a);
    unlink(b);
    end(&f);
}

static void a_file_that_cannot_be_read_is_an_error_and_then_passed_over(void **state)
{
    (void)state;
    fixture f = begin();
    char a[100];
    write_file(a, sizeof a, "a", "abc", 3);
    tw_string words[] = {{"/nowhere/at/all", 15}, {a, strlen(a)}};
    tw_tensor *list = tw_tensor_from(TW_STRING, TW_SHAPE(2), words);
    tw_dtype type = TW_STRING;
    tw_output queue = tw_queue(f.g, TW_QUEUE_FIFO, &type, scalars, 1, NULL), names = tw_constant(f.g, list);
    tw_output put = tw_enqueue_many(f.g, queue, &names, 1);
    tw_output value = tw_reader_read(f.g, tw_fixed_length_record_reader(f.g, 0, 3, 0), queue, NULL);
    tw_output bytes = tw_decode_raw(f.g, value, TW_UINT8, true); /* its shape follows from the reader's */
    assert_true(tw_shape_equal(tw_output_shape(bytes), TW_SHAPE(3)));
    open_session(&f);
    assert_runs(put);
    assert_run_fails(value, TW_NOT_FOUND, "/nowhere/at/all");
    EXPECT_INTS(bytes, 'a', 'b', 'c');
    tw_tensor_release(list);
    unlink(a);
    end(&f);
}

static tw_output string_of(tw_graph *g, const char *text)
{
    tw_string word = {(char *)(uintptr_t)text, strlen(text)};
    tw_tensor *tensor = tw_tensor_from(TW_STRING, TW_SCALAR, &word);
    tw_output constant = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return constant;
}

static void whole_files_are_written_found_and_read(void **state)
{
    (void)state;
    fixture f = begin();
    char a[100], pattern[120], deep[120];
    write_file(a, sizeof a, "a", "old", 3);
    snprintf(pattern, sizeof pattern, "%s*", a);
    snprintf(deep, sizeof deep, "%s-folder/b", a);
    tw_attr note = tw_attr_string("_note", "");
    tw_output name = string_of(f.g, a), other = string_of(f.g, deep);
    tw_output write = ADD("WriteFile", 2, LIST(name, string_of(f.g, "new")), note);
    tw_output into = ADD("WriteFile", 2, LIST(other, string_of(f.g, "deep")), note);
    tw_output bytes = tw_decode_raw(f.g, ADD("ReadFile", 1, LIST(name), note), TW_UINT8, true);
    tw_output found = ADD("MatchingFiles", 1, LIST(string_of(f.g, pattern)), note);
    tw_output missing = ADD("ReadFile", 1, LIST(string_of(f.g, "/nowhere/at/all")), note);
    open_session(&f);
    EXPECT_INTS(bytes, 'o', 'l', 'd');
    assert_runs(write);
    EXPECT_INTS(bytes, 'n', 'e', 'w');
    assert_runs(into);
    assert_true(access(deep, R_OK) == 0);
    tw_tensor *names = NULL;
    assert_int_equal(run(&f, found, &names), TW_OK);
    assert_int_equal(tw_tensor_elements(names), 2); /* the file and the folder, in order */
    assert_int_equal(((const tw_string *)tw_tensor_data(names))[0].size, strlen(a));
    tw_tensor_release(names);
    assert_run_fails(missing, TW_NOT_FOUND, "/nowhere/at/all");
    end(&f);
    unlink(deep);
    *strrchr(deep, '/') = 0;
    rmdir(deep);
    unlink(a);
}

/* ---- accumulators and staging areas: TensorFlow's values ------------------------------------------------------- */

static tw_output longs(tw_graph *g, const int64_t two[2])
{
    tw_tensor *tensor = tw_tensor_from(TW_INT64, TW_SHAPE(2), two);
    tw_output constant = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return constant;
}

static tw_output accumulator(tw_graph *g, const char *op, const char *reduction)
{
    tw_shape shape = {2, {5, 2}};
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", shape),
                       tw_attr_string("reduction_type", reduction)};
    return add(g, op, NULL, 0, attrs, 3);
}

static tw_output apply(tw_graph *g, tw_output accumulator, int64_t step, float value)
{
    float values[10];
    for (int i = 0; i < 10; i++)
        values[i] = value * (float)(i + 1);
    tw_output inputs[] = {accumulator, tw_scalar_of(g, TW_INT64, (double)step),
                          tw_constant_floats(g, TW_SHAPE(5, 2), values)};
    return add(g, "AccumulatorApplyGradient", inputs, 3, NULL, 0);
}

/* The run's value is these floats. */
static void expect_floats(fixture *f, tw_output node, int count, const float *expected)
{
    tw_tensor *result = NULL;
    if (run(f, node, &result) != TW_OK)
        fail_msg("%s", f->error.message);
    assert_true(tw_tensor_elements(result) >= count);
    for (int i = 0; i < count; i++)
        assert_float_equal((float)tw_tensor_value(result, i), expected[i], 0);
    tw_tensor_release(result);
}

#define EXPECT_FLOATS(node, ...)                                                                                       \
    expect_floats(&f, (node), (int)(sizeof(float[]){__VA_ARGS__} / sizeof(float)), (float[]){__VA_ARGS__})

static void an_accumulator_gives_the_mean_of_fresh_gradients_and_drops_stale_ones(void **state)
{
    (void)state;
    for (int sums = 0; sums < 2; sums++) {
        fixture f = begin();
        tw_output a = accumulator(f.g, "ConditionalAccumulator", sums ? "SUM" : "MEAN");
        tw_output first = apply(f.g, a, 0, 1), second = apply(f.g, a, 0, 3), next = apply(f.g, a, 1, 4);
        tw_output sixth = apply(f.g, a, 6, 1), seventh = apply(f.g, a, 7, 1);
        tw_output count = ADD("AccumulatorNumAccumulated", 1, LIST(a), tw_attr_string("_note", ""));
        tw_output two = ADD("AccumulatorTakeGradient", 2, LIST(a, tw_scalar_of(f.g, TW_INT32, 2)),
                            tw_attr_type("dtype", TW_FLOAT32));
        tw_output one = ADD("AccumulatorTakeGradient", 2, LIST(a, tw_scalar_of(f.g, TW_INT32, 1)),
                            tw_attr_type("dtype", TW_FLOAT32));
        tw_output none = ADD("AccumulatorTakeGradient", 2, LIST(a, tw_scalar_of(f.g, TW_INT32, 0)),
                             tw_attr_type("dtype", TW_FLOAT32));
        tw_output to_seven = ADD("AccumulatorSetGlobalStep", 2, LIST(a, tw_scalar_of(f.g, TW_INT64, 7)),
                                 tw_attr_string("_note", ""));
        assert_true(tw_shape_equal(tw_output_shape(two), TW_SHAPE(5, 2)));
        open_session(&f);
        assert_runs(first);
        assert_runs(second);
        EXPECT_INTS(count, 2);
        EXPECT_FLOATS(two, sums ? 4 : 2, sums ? 8 : 4);
        assert_runs(first); /* of step 0: too late */
        EXPECT_INTS(count, 0);
        assert_runs(next);
        EXPECT_FLOATS(one, 4, 8);
        assert_runs(to_seven);
        assert_runs(sixth);
        EXPECT_INTS(count, 0);
        assert_runs(seventh);
        EXPECT_INTS(count, 1);
        assert_run_fails(none, TW_INVALID_ARGUMENT, "num_required must be at least 1");
        end(&f);
    }
}

static void a_sparse_accumulator_gives_each_row_the_mean_of_those_that_had_it(void **state)
{
    (void)state;
    fixture f = begin();
    static const float values[2][4] = {{1, 1, 2, 2}, {4, 6, 8, 8}};
    static const int64_t indices[2][2] = {{0, 2}, {2, 3}};
    tw_output a = accumulator(f.g, "SparseConditionalAccumulator", "MEAN"), apply[2];
    for (int i = 0; i < 2; i++)
        apply[i] = ADD("SparseAccumulatorApplyGradient", 5,
                       LIST(a, tw_scalar_of(f.g, TW_INT64, 0), longs(f.g, indices[i]),
                            tw_constant_floats(f.g, TW_SHAPE(2, 2), values[i]),
                            longs(f.g, (int64_t[]){5, 2})),
                       tw_attr_bool("has_known_shape", true));
    tw_output take = ADD("SparseAccumulatorTakeGradient", 2, LIST(a, tw_scalar_of(f.g, TW_INT32, 2)),
                         tw_attr_type("dtype", TW_FLOAT32));
    open_session(&f);
    assert_runs(apply[0]);
    assert_runs(apply[1]);
    tw_output fetches[] = {tw_node_output(take.node, 0), tw_node_output(take.node, 1), tw_node_output(take.node, 2)};
    tw_tensor *results[3] = {0};
    tw_error error = {0};
    assert_ok(tw_session_run(f.s, NULL, 0, fetches, 3, results, &error));
    static const float rows[] = {1, 1, 3, 4, 8, 8}, places[] = {0, 2, 3}, full[] = {5, 2};
    const float *expected[] = {places, rows, full};
    static const int sizes[] = {3, 6, 2};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(tw_tensor_elements(results[k]), sizes[k]);
        for (int64_t i = 0; i < tw_tensor_elements(results[k]); i++)
            assert_float_equal((float)tw_tensor_value(results[k], i), expected[k][i], 0);
        tw_tensor_release(results[k]);
    }
    end(&f);
}

static void a_staging_area_gives_what_was_put_there_in_order(void **state)
{
    (void)state;
    fixture f = begin();
    tw_dtype types[] = {TW_INT32};
    tw_attr area[] = {tw_attr_types("dtypes", types, 1), tw_attr_string("shared_name", "area"),
                      tw_attr_int("capacity", 3)};
    tw_output two = ints(f.g, 2, (int32_t[]){1, 2}), three = ints(f.g, 3, (int32_t[]){3, 4, 5});
    tw_output stage = add(f.g, "Stage", &two, 1, area, 3), other = add(f.g, "Stage", &three, 1, area, 3);
    tw_output take = add(f.g, "Unstage", NULL, 0, area, 3), size = add(f.g, "StageSize", NULL, 0, area, 3);
    tw_output clear = add(f.g, "StageClear", NULL, 0, area, 3);
    tw_output twice = tw_add(f.g, take, take);
    open_session(&f);
    assert_runs(stage);
    assert_runs(other);
    EXPECT_INTS(size, 2);
    EXPECT_INTS(twice, 2, 4);
    EXPECT_INTS(take, 3, 4, 5);
    assert_runs(stage);
    assert_runs(clear);
    EXPECT_INTS(size, 0);
    end(&f);
}

/* A staging area of an int32 and a float, with room for one tuple. */
typedef struct staging {
    fixture f;
    tw_output put, put_again, take, size, clear;
} staging;

static tw_output keyed(tw_graph *g, const char *op, int64_t key, int32_t index, const tw_output *values, int count)
{
    static const tw_dtype types[] = {TW_INT32, TW_FLOAT32};
    tw_dtype given[2] = {0};
    tw_output inputs[4] = {tw_scalar_of(g, TW_INT64, (double)key)};
    bool puts = strstr(op, "Stage") != NULL;
    inputs[1] = ints(g, count == 1 ? 1 : 2, count == 1 ? &index : (int32_t[]){0, index});
    for (int i = 0; i < count && values; i++) {
        inputs[2 + i] = values[i];
        given[i] = tw_output_dtype(values[i]);
    }
    tw_attr attrs[] = {tw_attr_types("dtypes", types, 2), tw_attr_string("shared_name", "area"),
                       tw_attr_int("capacity", 1), tw_attr_types("fake_dtypes", given, count)};
    return add(g, op, inputs, 2 + (values ? count : 0), attrs, puts ? 4 : 3);
}

static staging make_staging(void)
{
    staging s = {.f = begin()};
    tw_dtype types[] = {TW_INT32, TW_FLOAT32};
    tw_attr area[] = {tw_attr_types("dtypes", types, 2), tw_attr_string("shared_name", "area"),
                      tw_attr_int("capacity", 1)};
    tw_output both[] = {ints(s.f.g, 2, (int32_t[]){1, 2}), tw_scalar(s.f.g, 3)};
    s.put = keyed(s.f.g, "MapStage", 5, 1, both, 2);
    s.put_again = keyed(s.f.g, "MapStage", 6, 1, both, 2);
    s.take = keyed(s.f.g, "MapUnstage", 5, 1, NULL, 2);
    s.size = add(s.f.g, "MapSize", NULL, 0, area, 3);
    s.clear = add(s.f.g, "MapClear", NULL, 0, area, 3);
    return s;
}

static void *run_put(void *user)
{
    staging *s = user;
    tw_output node = {s->put_again.node, -1};
    tw_error error = {0};
    return (void *)(intptr_t)tw_session_run_in(s->f.s, 1, NULL, 0, &node, 1, NULL, &error);
}

static void a_staging_area_with_keys_that_is_full_lets_who_puts_something_there_wait(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        staging s = make_staging();
        fixture f = s.f;
        pthread_t thread;
        void *status;
        open_session(&f);
        s.f = f;
        assert_runs(s.put);
        assert_int_equal(pthread_create(&thread, NULL, run_put, &s), 0);
        if (way == 0)
            EXPECT_INTS(s.take, 1, 2);
        else if (way == 1)
            assert_runs(s.clear);
        else
            tw_session_cancel(f.s);
        pthread_join(thread, &status);
        assert_int_equal((intptr_t)status, way == 2 ? TW_CANCELLED : TW_OK);
        if (way < 2)
            EXPECT_INTS(s.size, 1);
        end(&f);
    }
}

static void what_does_not_fit_a_staging_area_with_keys_is_refused(void **state)
{
    (void)state;
    fixture f = begin();
    tw_output number = ints(f.g, 1, (int32_t[]){1}), real = tw_scalar(f.g, 1), both[] = {number, real};
    tw_output bound = keyed(f.g, "MapStage", 1, 2, both, 2), type = keyed(f.g, "MapStage", 1, 0, &real, 1);
    tw_output order = keyed(f.g, "MapStage", 1, 0, both, 2), put = keyed(f.g, "MapStage", 1, 1, both, 2);
    tw_output take = keyed(f.g, "MapUnstage", 1, 0, NULL, 1);
    tw_output peek = keyed(f.g, "MapPeek", 1, 7, NULL, 2);
    open_session(&f);
    assert_run_fails(((tw_output){bound.node, -1}), TW_INVALID_ARGUMENT, "Index '2' for key '1' was out of bounds '2'");
    assert_run_fails(((tw_output){type.node, -1}), TW_INVALID_ARGUMENT, "a value of float, component 0 has int32");
    assert_run_fails(((tw_output){order.node, -1}), TW_INVALID_ARGUMENT, "Indices are not strictly ordered");
    assert_runs(put);
    assert_run_fails(take, TW_INVALID_ARGUMENT, "1 indices for 2 components");
    assert_run_fails(peek, TW_INVALID_ARGUMENT, "Index '7' for key '1' was out of bounds '2'");
    end(&f);
}

/* ---- critical sections ------------------------------------------------------------------------------------- */

/* Two sections of one mutex: the long one doubles a variable once something comes through a gate, the short one adds
 * 1. */
typedef struct sections {
    fixture f;
    tw_output gate, began; /* queues: what the long one waits for, and where it says that it has begun */
    tw_output first, open, close, look, is_long, is_short, value;
} sections;

static sections make_sections(void)
{
    sections s = {.f = begin()};
    tw_graph *g = s.f.g;
    tw_attr shape[] = {tw_attr_type("dtype", TW_INT32), tw_attr_shape("shape", TW_SCALAR)};
    tw_output one = tw_scalar_of(g, TW_INT32, 1), three = tw_scalar_of(g, TW_INT32, 3), said, passed, before;
    tw_output variable = add(g, "VarHandleOp", NULL, 0, shape, 2), mutex = add(g, "MutexV2", NULL, 0, NULL, 0);
    tw_output lock = add(g, "MutexLock", &mutex, 1, NULL, 0), other = add(g, "MutexLock", &mutex, 1, NULL, 0);
    s.gate = int_queue(g, TW_QUEUE_FIFO, (tw_queue_options){.capacity = 10});
    s.began = int_queue(g, TW_QUEUE_FIFO, (tw_queue_options){.capacity = 10});
    s.first = tw_assign(g, variable, three);
    s.open = tw_enqueue(g, s.gate, &one, 1);
    s.close = tw_queue_close(g, s.gate, false);
    s.value = tw_read_variable(g, variable);
    tw_dequeue(g, s.began, &s.look);
    TW_CONTROL(g, lock)
        said = tw_enqueue(g, s.began, &one, 1);
    TW_CONTROL(g, said) {
        before = tw_read_variable(g, variable);
        tw_dequeue(g, s.gate, &passed);
    }
    tw_output twice = tw_assign(g, variable, tw_add(g, before, tw_mul(g, before, passed)));
    TW_CONTROL(g, twice)
        s.is_long = add(g, "ConsumeMutexLock", &lock, 1, NULL, 0);
    TW_CONTROL(g, other)
        before = tw_assign_add(g, variable, one);
    TW_CONTROL(g, before)
        s.is_short = add(g, "ConsumeMutexLock", &other, 1, NULL, 0);
    open_session(&s.f);
    assert_int_equal(run(&s.f, s.first, NULL), TW_OK);
    return s;
}

typedef struct runner {
    sections *s;
    tw_output node;
    int lane;
    tw_status status;
    tw_error error;
    tw_tensor *value;
} runner;

static void *run_beside(void *user)
{
    runner *r = user;
    r->node.index = -1;
    r->status = tw_session_run_in(r->s->f.s, r->lane, NULL, 0, &r->node, 1, NULL, &r->error);
    return NULL;
}

static void *fetch_beside(void *user)
{
    runner *r = user;
    r->status = tw_session_run_in(r->s->f.s, r->lane, NULL, 0, &r->node, 1, &r->value, &r->error);
    return NULL;
}

/* The long one has the lock when the short one comes. `end` ends the long one's waiting. */
static int32_t run_both(sections *s, tw_output end_waiting, runner *first, runner *second)
{
    pthread_t threads[2];
    *first = (runner){.s = s, .node = s->is_long, .lane = 1};
    *second = (runner){.s = s, .node = s->is_short, .lane = 2};
    assert_int_equal(pthread_create(&threads[0], NULL, run_beside, first), 0);
    expect_ints(&s->f, s->look, 1, (int32_t[]){1});
    assert_int_equal(pthread_create(&threads[1], NULL, run_beside, second), 0);
    if (end_waiting.node)
        assert_int_equal(run(&s->f, end_waiting, NULL), TW_OK);
    else
        tw_session_cancel(s->f.s);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    tw_tensor *value = NULL;
    if (end_waiting.node)
        assert_int_equal(run(&s->f, s->value, &value), TW_OK);
    int32_t number = value ? (int32_t)tw_tensor_value(value, 0) : 0;
    tw_tensor_release(value);
    return number;
}

/* A run that waits has begun with a variable of two elements; meanwhile that gets three, and then four. */
static void a_run_has_a_variable_as_it_was_however_often_another_gives_it_a_shape(void **state)
{
    (void)state;
    sections s = {.f = begin()};
    tw_graph *g = s.f.g;
    tw_attr open[] = {tw_attr_type("dtype", TW_INT32), tw_attr_shape("shape", TW_SHAPE(-1))};
    tw_output one = tw_scalar_of(g, TW_INT32, 1), variable = add(g, "VarHandleOp", NULL, 0, open, 2), assigned[3];
    tw_output said, passed, read, zero = ints(g, 1, (int32_t[]){0});
    for (int i = 0; i < 3; i++)
        assigned[i] = tw_assign(g, variable, ints(g, 2 + i, (int32_t[]){10, 20, 30, 40}));
    s.gate = int_queue(g, TW_QUEUE_FIFO, (tw_queue_options){.capacity = 10});
    s.began = int_queue(g, TW_QUEUE_FIFO, (tw_queue_options){.capacity = 10});
    s.open = tw_enqueue(g, s.gate, &one, 1);
    tw_dequeue(g, s.began, &s.look);
    said = tw_enqueue(g, s.began, &one, 1);
    TW_CONTROL(g, said)
        tw_dequeue(g, s.gate, &passed);
    TW_CONTROL(g, passed)
        read = tw_read_variable(g, variable);
    tw_output sum = add(g, "Sum", (tw_output[]){read, zero}, 2, NULL, 0);
    open_session(&s.f);
    assert_int_equal(run(&s.f, assigned[0], NULL), TW_OK);
    runner waits = {.s = &s, .node = sum, .lane = 1};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fetch_beside, &waits), 0);
    expect_ints(&s.f, s.look, 1, (int32_t[]){1});
    assert_int_equal(run(&s.f, assigned[1], NULL), TW_OK);
    assert_int_equal(run(&s.f, assigned[2], NULL), TW_OK);
    assert_int_equal(run(&s.f, assigned[1], NULL), TW_OK);
    assert_int_equal(run(&s.f, s.open, NULL), TW_OK);
    pthread_join(thread, NULL);
    assert_int_equal(waits.status, TW_OK);
    assert_int_equal((int)tw_tensor_value(waits.value, 0), 30);
    tw_tensor_release(waits.value);
    expect_ints(&s.f, tw_read_variable(g, variable), 3, (int32_t[]){10, 20, 30});
    end(&s.f);
}

static void runs_in_critical_sections_of_one_mutex_come_one_after_the_other(void **state)
{
    (void)state;
    sections s = make_sections();
    runner first, second;
    assert_int_equal(run_both(&s, s.open, &first, &second), 7);
    assert_int_equal(run_both(&s, s.open, &first, &second), 15);
    assert_true(first.status == TW_OK && second.status == TW_OK);
    end(&s.f);
}

static void a_run_that_fails_in_a_critical_section_gives_the_lock_back(void **state)
{
    (void)state;
    sections s = make_sections();
    runner first, second;
    assert_int_equal(run_both(&s, s.close, &first, &second), 4);
    assert_int_equal(first.status, TW_OUT_OF_RANGE);
    assert_int_equal(second.status, TW_OK);
    end(&s.f);
}

static void cancelling_a_session_ends_who_waits_for_a_lock(void **state)
{
    (void)state;
    sections s = make_sections();
    runner first, second;
    run_both(&s, (tw_output){0}, &first, &second);
    assert_int_equal(first.status, TW_CANCELLED);
    assert_int_equal(second.status, TW_CANCELLED);
    end(&s.f);
}

/* ---- runs that fail ---------------------------------------------------------------------------------------- */

static tw_status fail_late(void *user, int tower, void *const *outputs, tw_error *error)
{
    (void)user, (void)tower, (void)outputs;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* by then the other device waits, mostly */
    *error = (tw_error){TW_OUT_OF_RANGE, "no more of it"};
    return TW_OUT_OF_RANGE;
}

static void a_step_that_fails_ends_what_another_device_waits_for(void **state)
{
    (void)state;
    fixture f = begin();
    tw_devices *devices;
    tw_error error = {0};
    tw_output both[2], q;
    TW_DEVICE(f.g, "/cpu:0") {
        q = int_queue(f.g, TW_QUEUE_FIFO, (tw_queue_options){.capacity = 10});
        tw_dequeue(f.g, q, &both[0]);
    }
    TW_DEVICE(f.g, "/cpu:1")
        tw_input(f.g, "late", 0, one_int, scalars, 1, &both[1]);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_devices = 2, .no_gpus = true}, &devices, &error));
    assert_ok(tw_session_create(f.g, &(tw_session_options){.devices = devices}, &f.s, &error));
    assert_ok(tw_session_set_source(f.s, "late", fail_late, NULL, &error));
    tw_tensor *values[2] = {NULL};
    assert_int_equal(tw_session_run(f.s, NULL, 0, both, 2, values, &error), TW_OUT_OF_RANGE);
    assert_message(error.message, "no more of it");
    end(&f);
    tw_devices_destroy(devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fifo_queue_gives_elements_in_the_order_in_which_they_came),
        cmocka_unit_test(components_of_several_types_stay_together),
        cmocka_unit_test(a_closed_queue_gives_what_it_has_and_then_says_so),
        cmocka_unit_test(what_was_in_hand_when_a_run_gave_up_is_there_again_in_its_order),
        cmocka_unit_test(a_shuffle_queue_keeps_some_to_draw_from_until_it_is_closed),
        cmocka_unit_test(a_priority_queue_gives_the_smallest_first),
        cmocka_unit_test(a_padding_queue_fills_smaller_elements_up_with_zeros),
        cmocka_unit_test(queues_of_one_shared_name_are_one_queue),
        cmocka_unit_test(what_does_not_fit_a_queue_is_refused_before_the_step),
        cmocka_unit_test(a_queue_that_has_been_full_allocates_nothing),
        cmocka_unit_test(whichever_allocation_fails_nothing_is_lost),
        cmocka_unit_test(a_reader_of_fixed_records_goes_from_file_to_file),
        cmocka_unit_test(a_reader_of_lines_gives_each_line_without_its_end),
        cmocka_unit_test(a_reader_of_whole_files_gives_each_file),
        cmocka_unit_test(a_reader_of_tfrecords_gives_their_data_with_their_offsets),
        cmocka_unit_test(a_record_input_gives_each_record_once_an_epoch),
        cmocka_unit_test(a_file_that_cannot_be_read_is_an_error_and_then_passed_over),
        cmocka_unit_test(whole_files_are_written_found_and_read),
        cmocka_unit_test(an_accumulator_gives_the_mean_of_fresh_gradients_and_drops_stale_ones),
        cmocka_unit_test(a_sparse_accumulator_gives_each_row_the_mean_of_those_that_had_it),
        cmocka_unit_test(a_staging_area_gives_what_was_put_there_in_order),
        cmocka_unit_test(a_staging_area_with_keys_that_is_full_lets_who_puts_something_there_wait),
        cmocka_unit_test(what_does_not_fit_a_staging_area_with_keys_is_refused),
        cmocka_unit_test(runs_in_critical_sections_of_one_mutex_come_one_after_the_other),
        cmocka_unit_test(a_run_has_a_variable_as_it_was_however_often_another_gives_it_a_shape),
        cmocka_unit_test(a_run_that_fails_in_a_critical_section_gives_the_lock_back),
        cmocka_unit_test(cancelling_a_session_ends_who_waits_for_a_lock),
        cmocka_unit_test(a_step_that_fails_ends_what_another_device_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
