/* test_queue_runners.c - runs that meet at a queue: waiting, waking, coordinators, runners, and input made of them.
 * label: threads */
#include "testing.h"

#include "runs_in_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <tower/ops.h>
#include <tower/queue.h>
#include <unistd.h>

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

/* ---- waiting ----------------------------------------------------------------------------------------------- */

static void a_failure_elsewhere_in_a_run_wakes_its_part_that_waits(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_error error = {0};
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, one_int, scalars, 1, NULL), out, wrong;
    tw_dequeue(g, q, &out);
    TW_DEVICE(g, "/gpu:0")
    {
        tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR);
        tw_attr message = tw_attr_string("message", "is not finite");
        tw_output y = tw_div(g, x, tw_sub(g, x, x));
        wrong = tw_node_output(tw_add_node(g, "CheckNumerics", NULL, &y, 1, &message, 1), 0);
        tw_session *s = open_session(g, 1);
        tw_tensor *one = tw_tensor_float(1), *results[2] = {0};
        tw_output fetches[] = {out, wrong};
        assert_fails(tw_session_run(s, &(tw_feed){x, one}, 1, fetches, 2, results, &error), TW_INVALID_ARGUMENT,
                     "is not finite");
        tw_tensor_release(one);
        tw_session_destroy(s);
    }
    tw_graph_destroy(g);
}

static void what_is_put_in_many_threads_take_out_once_each(void **state)
{
    (void)state;
    enum { TAKERS = 3, EACH = 150 };
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_SHUFFLE, one_int, scalars, 1,
                           &(tw_queue_options){.capacity = 7, .min_after_dequeue = 2, .seed = 1});
    tw_variable *counter = tw_get_state_variable(g, "counter", TW_INT32, TW_SCALAR, (tw_initializer){0});
    tw_output number = tw_count_up_to(g, counter->handle, EACH), out;
    tw_output put = tw_enqueue(g, q, &number, 1);
    tw_output initialize = tw_initialize_variables(g);
    tw_dequeue_many(g, q, 2, &out);
    tw_session *s = open_session(g, 0);
    tw_coordinator *c;
    tw_error error = {0};
    run_ok(s, initialize);
    tw_add_queue_runner(g, &(tw_queue_runner){.queue = q, .enqueues = (tw_output[]){put}, .num_enqueues = 1});
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    int seen[EACH] = {0}, taken = 0;
    for (tw_status status = TW_OK; status == TW_OK;) {
        runner takers[TAKERS];
        for (int i = 0; i < TAKERS; i++)
            start(&takers[i], s, 10 + i, out);
        for (int i = 0; i < TAKERS; i++) {
            pthread_join(takers[i].thread, NULL);
            status = status == TW_OK ? takers[i].status : status;
            for (int k = 0; takers[i].status == TW_OK && k < 2; k++, taken++)
                seen[(int)tw_tensor_value(takers[i].result, k)]++;
            tw_tensor_release(takers[i].result);
        }
        assert_true(status == TW_OK || status == TW_OUT_OF_RANGE);
    }
    assert_int_equal(taken, EACH);
    for (int i = 0; i < EACH; i++)
        assert_int_equal(seen[i], 1);
    tw_coordinator_request_stop(c, NULL);
    assert_ok(tw_coordinator_join(c, PATIENCE, &error));
    tw_coordinator_destroy(c);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_thread_that_waits_for_gradients_ends_when_asked(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, (tw_dtype[]){TW_FLOAT32}, scalars, 1, NULL);
    tw_attr of[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SCALAR)};
    tw_output sum = tw_node_output(tw_add_node(g, "ConditionalAccumulator", NULL, NULL, 0, of, 2), 0);
    tw_output take[] = {sum, tw_scalar_of(g, TW_INT32, 1)};
    tw_output mean = tw_node_output(tw_add_node(g, "AccumulatorTakeGradient", NULL, take, 2, of, 1), 0);
    tw_output put = tw_enqueue(g, q, &mean, 1);
    tw_add_queue_runner(g, &(tw_queue_runner){.queue = q, .enqueues = (tw_output[]){put}, .num_enqueues = 1});
    tw_session *s = open_session(g, 0);
    tw_coordinator *c;
    tw_error error = {0};
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    pause_for(0.05); /* it may wait by now, or not yet */
    tw_coordinator_request_stop(c, NULL);
    assert_ok(tw_coordinator_join(c, PATIENCE, &error));
    tw_coordinator_destroy(c);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* What is put comes behind what is taken, as it was built, or it would wait for room for ever. */
static void a_full_queue_is_taken_from_before_it_is_put_into(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output taken, one = tw_scalar_of(g, TW_FLOAT32, 1);
    tw_output q = tw_queue(g, TW_QUEUE_FIFO, (tw_dtype[]){TW_FLOAT32}, scalars, 1,
                           TW_OPTIONS(tw_queue_options, .capacity = 1));
    tw_dequeue(g, q, &taken);
    tw_output both[] = {tw_add(g, taken, one), tw_enqueue(g, q, &one, 1)}, first = tw_enqueue(g, q, &one, 1);
    tw_session *s = open_session(g, 0);
    tw_error error = {0};
    assert_ok(tw_session_run(s, NULL, 0, &first, 1, NULL, &error));
    for (int step = 0; step < 3; step++) {
        tw_tensor *got[2] = {0};
        assert_ok(tw_session_run(s, NULL, 0, both, 2, got, &error));
        assert_true(tw_tensor_value(got[0], 0) == 2);
        tw_tensor_release(got[0]);
    }
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* As two workers of a SyncReplicasOptimizer in one graph: each hands in a gradient and waits for a token, and a thread
 * makes tokens when it has the gradients of both. So the first may not wait before the second has handed in its own. */
static void who_waits_for_another_run_keeps_nothing_from_it(void **state)
{
    (void)state;
    enum { STEPS = 3, WORKERS = 2 };
    for (int gpus = 0; gpus < 2; gpus++) {
        tw_graph *g = tw_graph_create();
        tw_output q = tw_queue(g, TW_QUEUE_FIFO, (tw_dtype[]){TW_FLOAT32}, scalars, 1, NULL), tokens[WORKERS];
        tw_attr of[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SCALAR)};
        tw_output sum = tw_node_output(tw_add_node(g, "ConditionalAccumulator", NULL, NULL, 0, of, 2), 0);
        for (int i = 0; i < WORKERS; i++) {
            tw_output gradient = tw_scalar_of(g, TW_FLOAT32, 2 + 2 * i);
            TW_DEVICE(g, gpus ? "/gpu:0" : "/cpu:0")
                gradient = tw_abs(g, gradient);
            tw_output given[] = {sum, tw_scalar_of(g, TW_INT64, STEPS), gradient};
            tw_output handed_in = tw_node_output(tw_add_node(g, "AccumulatorApplyGradient", NULL, given, 3, of, 1), 0);
            TW_CONTROL(g, handed_in)
                tw_dequeue(g, q, &tokens[i]);
        }
        tw_output take[] = {sum, tw_scalar_of(g, TW_INT32, WORKERS)};
        tw_output mean = tw_node_output(tw_add_node(g, "AccumulatorTakeGradient", NULL, take, 2, of, 1), 0);
        tw_output made = tw_pack(g, (tw_output[]){mean, mean}, WORKERS, 0);
        tw_output put = tw_enqueue_many(g, q, &made, 1);
        tw_add_queue_runner(g, &(tw_queue_runner){.queue = q, .enqueues = (tw_output[]){put}, .num_enqueues = 1});
        tw_session *s = open_session(g, gpus);
        tw_coordinator *c;
        tw_error error = {0};
        assert_ok(tw_coordinator_create(&c, &error));
        assert_ok(tw_start_queue_runners(s, c, &error));
        for (int step = 0; step < STEPS; step++) {
            tw_tensor *got[WORKERS] = {0};
            assert_ok(tw_session_run(s, NULL, 0, tokens, WORKERS, got, &error));
            for (int i = 0; i < WORKERS; i++) {
                assert_true(tw_tensor_value(got[i], 0) == 3);
                tw_tensor_release(got[i]);
            }
        }
        tw_coordinator_request_stop(c, NULL);
        assert_ok(tw_coordinator_join(c, PATIENCE, &error));
        tw_coordinator_destroy(c);
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
}

/* ---- coordinators ------------------------------------------------------------------------------------------ */

static tw_status wait_for_stop(tw_coordinator *c, void *user, tw_error *error)
{
    (void)error;
    while (!tw_coordinator_wait_for_stop(c, PATIENCE))
        ;
    atomic_fetch_add((atomic_int *)user, 1);
    return TW_OK;
}

static tw_status fail_soon(tw_coordinator *c, void *user, tw_error *error)
{
    (void)c;
    snprintf(error->message, sizeof error->message, "%s", (const char *)user);
    return TW_DATA_LOSS;
}

static tw_status come_when_let_go(tw_coordinator *c, void *user, tw_error *error)
{
    (void)c, (void)error;
    while (!atomic_load((atomic_bool *)user))
        pause_for(0.001);
    return TW_OK;
}

static void the_first_failure_ends_all_threads_and_is_reported(void **state)
{
    (void)state;
    tw_coordinator *c;
    tw_error error = {0}, later = {TW_INTERNAL, "later"};
    atomic_int ended = 0;
    assert_ok(tw_coordinator_create(&c, &error));
    for (int i = 0; i < 3; i++)
        assert_ok(tw_coordinator_start(c, "waits", wait_for_stop, &ended, &error));
    assert_false(tw_coordinator_should_stop(c));
    assert_ok(tw_coordinator_start(c, "fails", fail_soon, "the disk is gone", &error));
    assert_fails(tw_coordinator_join(c, PATIENCE, &error), TW_DATA_LOSS, "the disk is gone");
    assert_int_equal(ended, 3);
    tw_coordinator_request_stop(c, &later);
    assert_fails(tw_coordinator_join(c, PATIENCE, &error), TW_DATA_LOSS, "the disk is gone");
    tw_coordinator_destroy(c);
}

static void the_end_of_the_data_is_no_failure(void **state)
{
    (void)state;
    tw_coordinator *c;
    tw_error error = {0}, end = {TW_OUT_OF_RANGE, "no more"};
    assert_ok(tw_coordinator_create(&c, &error));
    assert_false(tw_coordinator_wait_for_stop(c, 0.01));
    tw_coordinator_request_stop(c, &end);
    assert_true(tw_coordinator_wait_for_stop(c, PATIENCE));
    assert_ok(tw_coordinator_join(c, PATIENCE, &error));
    tw_coordinator_destroy(c);
}

static void threads_that_outlast_the_grace_period_are_named(void **state)
{
    (void)state;
    tw_coordinator *c;
    tw_error error = {0};
    atomic_bool let_go = false;
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_coordinator_start(c, "sluggish", come_when_let_go, &let_go, &error));
    tw_coordinator_request_stop(c, NULL);
    assert_fails(tw_coordinator_join(c, 0.02, &error), TW_DEADLINE_EXCEEDED, "still run: sluggish");
    atomic_store(&let_go, true);
    tw_coordinator_destroy(c); /* waits */
}

/* ---- input ------------------------------------------------------------------------------------------------- */

static void names_come_as_often_as_there_are_epochs_and_then_end(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    const char *names[] = {"a", "b", "c"};
    tw_output queue = tw_string_input_producer(g, names, 3, &(tw_input_producer_options){.epochs = 2, .seed = 3}), name;
    tw_dequeue(g, queue, &name);
    tw_output initialize = tw_initialize_variables(g);
    assert_non_null(tw_graph_find(g, "input_producer/input_producer_EnqueueMany"));
    assert_non_null(tw_graph_find(g, "input_producer/limit_epochs/epochs"));
    assert_string_equal(tw_node_op(tw_graph_find(g, "input_producer")), "FIFOQueueV2");
    tw_session *s = open_session(g, 0);
    tw_error error = {0};
    tw_coordinator *c;
    run_ok(s, initialize);
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    int seen[2][3] = {{0}};
    tw_tensor *result = NULL;
    for (int i = 0; i < 6; i++) {
        assert_ok(tw_session_run(s, NULL, 0, &name, 1, &result, &error));
        seen[i / 3][((tw_string *)tw_tensor_data(result))[0].data[0] - 'a']++;
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(seen[i / 3][i % 3], 1);
    assert_int_equal(tw_session_run(s, NULL, 0, &name, 1, &result, &error), TW_OUT_OF_RANGE);
    tw_coordinator_request_stop(c, &error);
    assert_ok(tw_coordinator_join(c, PATIENCE, &error));
    tw_tensor_release(result);
    tw_coordinator_destroy(c);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_runner_that_fails_stops_its_coordinator(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    const char *names[] = {"/nowhere/at/all"};
    tw_output queue = tw_string_input_producer(g, names, 1, NULL), batch;
    tw_output record = tw_reader_read(g, tw_whole_file_reader(g), queue, NULL);
    tw_batch(g, &record, 1, &(tw_batch_options){.batch = 4, .threads = 3}, &batch);
    tw_session *s = open_session(g, 0);
    tw_error error = {0};
    tw_coordinator *c;
    tw_tensor *result = NULL;
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    assert_fails(tw_session_run(s, NULL, 0, &batch, 1, &result, &error), TW_OUT_OF_RANGE, "is closed");
    assert_fails(tw_coordinator_join(c, PATIENCE, &error), TW_NOT_FOUND, "/nowhere/at/all");
    tw_coordinator_destroy(c);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* Point 12 of the acceptance list: capacity 2N, one dequeue a tower, one batch for each tower and step. */
static void each_tower_takes_exactly_one_batch_a_step(void **state)
{
    (void)state;
    enum { TOWERS = 3, STEPS = 20, BATCH = 4, EXAMPLES = TOWERS * STEPS * BATCH };
    tw_graph *g = tw_graph_create();
    tw_variable *counter = tw_get_state_variable(g, "counter", TW_INT32, TW_SCALAR, (tw_initializer){0});
    tw_output example = tw_count_up_to(g, counter->handle, EXAMPLES), batch, taken[TOWERS], sums[TOWERS];
    tw_batch(g, &example, 1, &(tw_batch_options){.batch = BATCH}, &batch);
    tw_output queue = tw_prefetch_queue(g, &batch, 1, 2 * TOWERS), size = tw_queue_size(g, queue);
    tw_attr const *capacity = tw_node_attr(queue.node, "capacity");
    assert_int_equal(capacity->i, 2 * TOWERS);
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(g, "/gpu:%d", i)
        TW_NAME_SCOPE(g, "tower_%d", i)
        {
            TW_DEVICE(g, "/cpu:0")
                tw_dequeue(g, queue, &taken[i]);
            sums[i] = tw_reduce_sum(g, tw_cast(g, taken[i], TW_FLOAT32), NULL, 0, false);
        }
    tw_output initialize = tw_initialize_variables(g), fetches[2 * TOWERS];
    memcpy(fetches, taken, sizeof taken);
    memcpy(fetches + TOWERS, sums, sizeof sums);
    tw_session *s = open_session(g, TOWERS);
    tw_error error = {0};
    tw_coordinator *c;
    tw_tensor *results[2 * TOWERS] = {0}, *waiting = NULL;
    int seen[EXAMPLES] = {0};
    run_ok(s, initialize);
    assert_ok(tw_coordinator_create(&c, &error));
    assert_ok(tw_start_queue_runners(s, c, &error));
    for (int step = 0; step < STEPS; step++) {
        assert_ok(tw_session_run(s, NULL, 0, fetches, 2 * TOWERS, results, &error));
        for (int i = 0; i < TOWERS; i++) {
            int first = (int)tw_tensor_value(results[i], 0), sum = 0;
            assert_int_equal(first % BATCH, 0); /* a whole batch, as it was put in */
            for (int k = 0; k < BATCH; k++) {
                assert_int_equal((int)tw_tensor_value(results[i], k), first + k);
                seen[first + k]++;
                sum += first + k;
            }
            assert_int_equal((int)tw_tensor_value(results[TOWERS + i], 0), sum);
        }
        assert_ok(tw_session_run(s, NULL, 0, &size, 1, &waiting, &error));
        assert_true(tw_tensor_value(waiting, 0) <= 2 * TOWERS);
    }
    for (int i = 0; i < EXAMPLES; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(tw_session_run(s, NULL, 0, fetches, 2 * TOWERS, results, &error), TW_OUT_OF_RANGE);
    tw_coordinator_request_stop(c, &error);
    assert_ok(tw_coordinator_join(c, PATIENCE, &error));
    for (int i = 0; i < 2 * TOWERS; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(waiting);
    tw_coordinator_destroy(c);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_elsewhere_in_a_run_wakes_its_part_that_waits),
        cmocka_unit_test(what_is_put_in_many_threads_take_out_once_each),
        cmocka_unit_test(a_thread_that_waits_for_gradients_ends_when_asked),
        cmocka_unit_test(a_full_queue_is_taken_from_before_it_is_put_into),
        cmocka_unit_test(who_waits_for_another_run_keeps_nothing_from_it),
        cmocka_unit_test(the_first_failure_ends_all_threads_and_is_reported),
        cmocka_unit_test(the_end_of_the_data_is_no_failure),
        cmocka_unit_test(threads_that_outlast_the_grace_period_are_named),
        cmocka_unit_test(names_come_as_often_as_there_are_epochs_and_then_end),
        cmocka_unit_test(a_runner_that_fails_stops_its_coordinator),
        cmocka_unit_test(each_tower_takes_exactly_one_batch_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
