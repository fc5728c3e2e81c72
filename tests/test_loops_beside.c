/* test_loops_beside.c - loops that need nothing of each other run side by side on the threads of a device: which do,
 * that nothing else comes of it, and whose error is told. A session that is traced runs them one after the other, as
 * one with one thread does. label: threads */
#include "testing.h"

#include <string.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/session.h>

enum { SIZE = 8192 };

static tw_output whole(tw_graph *g, int32_t value)
{
    return tw_constant_int32s(g, TW_SCALAR, &value);
}

static tw_session *open_session(tw_graph *g, tw_devices *devices, bool trace)
{
    tw_error error = {0};
    tw_session *s;
    tw_session_options options = TW_SIZED(tw_session_options);
    options.devices = devices;
    options.trace = trace;
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &options, &s, &error));
    return s;
}

static tw_devices *open_threads(int threads)
{
    tw_error error = {0};
    tw_devices *devices;
    tw_device_options options = TW_SIZED(tw_device_options);
    options.cpu_devices = 1;
    options.cpu_threads = threads;
    assert_ok(tw_devices_create(&options, &devices, &error));
    return devices;
}

/* ---- which do ---------------------------------------------------------------------------------------------------- */

/* So many rounds over SIZE numbers, which want memory. */
static tw_output count_up(tw_graph *g, tw_output from, tw_variable *counter)
{
    tw_output v[] = {from, tw_identity(g, from)};
    TW_LOOP(g, v, 2)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 9)));
        tw_output next = tw_add(g, v[0], tw_sigmoid(g, v[1]));
        v[1] = tw_sub(g, v[0], v[1]);
        v[0] = next;
        if (counter)
            TW_CONTROL(g, tw_assign_add(g, counter->handle, tw_scalar(g, 1))) v[0] = tw_identity(g, v[0]);
    }
    return tw_reduce_sum(g, v[0], NULL, 0, false);
}

typedef enum { APART, IN_A_ROW, COUNTING } relation;

/* Bytes in which a step of two loops works. */
static int64_t bytes_of_two(relation how, int threads)
{
    tw_error error = {0};
    tw_devices *devices = open_threads(threads);
    tw_graph *g = tw_graph_create();
    tw_variable *counter = tw_get_variable(g, "counter", TW_FLOAT32, TW_SCALAR, (tw_initializer){.a = 0});
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(SIZE));
    tw_output first = count_up(g, x, how == COUNTING ? counter : NULL);
    tw_output second = count_up(g, how == IN_A_ROW ? tw_mul(g, x, first) : x, how == COUNTING ? counter : NULL);
    tw_output fetches[] = {first, second}, init = tw_initialize_variables(g);
    tw_session *s = open_session(g, devices, false);
    tw_tensor *zeros = tw_tensor_create(TW_FLOAT32, TW_SHAPE(SIZE)), *results[2] = {NULL};
    tw_plan_info info;
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_run(s, &(tw_feed){x, zeros}, 1, fetches, 2, results, &error));
    assert_ok(tw_session_plan_info(s, &info, &error));
    for (int i = 0; i < 2; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(zeros);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
    return info.arena_bytes;
}

static void loops_that_need_nothing_of_each_other_have_memory_of_their_own(void **state)
{
    (void)state;
    assert_true(bytes_of_two(APART, 2) >= bytes_of_two(APART, 1) + SIZE * 4);
}

static void loops_that_need_each_other_run_one_after_the_other(void **state)
{
    (void)state;
    assert_int_equal(bytes_of_two(IN_A_ROW, 2), bytes_of_two(IN_A_ROW, 1));
}

static void loops_that_change_a_variable_run_one_after_the_other(void **state)
{
    (void)state;
    assert_int_equal(bytes_of_two(COUNTING, 2), bytes_of_two(COUNTING, 1));
}

/* ---- what comes of it -------------------------------------------------------------------------------------------- */

enum { NETWORKS = 5, ROUNDS = 12, ROWS = 16, WIDTH = 24, STEPS = 5, GIVEN = 2 * NETWORKS + 1 };

/* A network of a state that forgets at random, with a loop in each round. */
static tw_output read_on(tw_graph *g, tw_variable *w, tw_output x, int number)
{
    int64_t dims[] = {ROWS, WIDTH};
    tw_tensor *shape = tw_tensor_from(TW_INT64, TW_SHAPE(2), dims);
    tw_output h[] = {tw_mul(g, x, tw_scalar(g, (float)(number + 1) / NETWORKS))};
    TW_LOOP(g, h, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, ROUNDS + number)));
        tw_output kept = tw_random_uniform(g, tw_constant(g, shape), TW_FLOAT32, 7 + number);
        tw_output inner[] = {tw_mul(g, h[0], kept)};
        TW_LOOP(g, inner, 1)
        {
            tw_while(g, tw_less(g, tw_round_number(g), whole(g, 2)));
            inner[0] = tw_tanh(g, tw_matmul(g, inner[0], w->value));
        }
        h[0] = tw_add(g, inner[0], tw_mul(g, h[0], tw_scalar(g, 0.5f)));
    }
    tw_tensor_release(shape);
    return tw_reduce_mean(g, h[0], NULL, 0, false);
}

/* Values and gradients of some networks, of the last of some runs. */
static void run_networks(int threads, bool trace, double *values)
{
    tw_error error = {0};
    tw_devices *devices = open_threads(threads);
    tw_graph *g = tw_graph_create();
    float begin[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++)
        begin[i] = (float)(i % 17) / 17;
    tw_tensor *image = tw_tensor_from(TW_FLOAT32, TW_SHAPE(ROWS, WIDTH), begin);
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(ROWS, WIDTH)), fetches[GIVEN], losses[NETWORKS];
    tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(WIDTH, WIDTH),
                                     (tw_initializer){TW_INIT_TRUNCATED_NORMAL, .b = 0.3f, .seed = 3});
    for (int i = 0; i < NETWORKS; i++) {
        tw_output dx;
        fetches[i] = losses[i] = read_on(g, w, x, i);
        tw_gradients(g, &losses[i], 1, NULL, &x, 1, &dx);
        fetches[NETWORKS + i] = tw_reduce_sum(g, tw_square(g, dx), NULL, 0, false);
    }
    tw_output dw, init = tw_initialize_variables(g);
    tw_gradients(g, losses, NETWORKS, NULL, &w->handle, 1, &dw);
    fetches[GIVEN - 1] = tw_reduce_sum(g, tw_square(g, dw), NULL, 0, false);
    tw_session *s = open_session(g, devices, trace);
    tw_tensor *results[GIVEN] = {NULL};
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    for (int step = 0; step < STEPS; step++)
        assert_ok(tw_session_run(s, &(tw_feed){x, image}, 1, fetches, GIVEN, results, &error));
    for (int i = 0; i < GIVEN; i++) {
        values[i] = tw_tensor_value(results[i], 0);
        tw_tensor_release(results[i]);
    }
    tw_tensor_release(image);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
}

static void side_by_side_and_one_after_the_other_give_the_same_bits(void **state)
{
    (void)state;
    double alone[GIVEN], traced[GIVEN], beside[GIVEN];
    run_networks(1, false, alone);
    assert_true(alone[0] != 0 && alone[GIVEN - 1] > 0);
    for (int threads = 2; threads <= 4; threads++) {
        run_networks(threads, true, traced);
        run_networks(threads, false, beside);
        assert_memory_equal(traced, alone, sizeof alone);
        assert_memory_equal(beside, alone, sizeof alone);
    }
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Takes row after row until there is none. */
static tw_output take_rows(tw_graph *g, const char *scope, tw_output rows, int32_t rounds)
{
    tw_output v[] = {tw_scalar(g, 0)};
    TW_NAME_SCOPE(g, "%s", scope) TW_LOOP(g, v, 1)
    {
        tw_output i = tw_round_number(g);
        tw_while(g, tw_less(g, i, whole(g, rounds)));
        v[0] = tw_add(g, v[0], tw_gather(g, rows, i, 0));
    }
    return v[0];
}

static void check_failure(int32_t first, int32_t second, const char *who)
{
    tw_error error = {0};
    tw_devices *devices = open_threads(2);
    tw_graph *g = tw_graph_create();
    tw_output rows = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(4));
    tw_output fetches[] = {take_rows(g, "one", rows, first), take_rows(g, "two", rows, second)};
    tw_session *s = open_session(g, devices, false);
    tw_tensor *values = tw_tensor_create(TW_FLOAT32, TW_SHAPE(4)), *results[2] = {NULL};
    for (int again = 0; again < 3; again++) {
        assert_fails(tw_session_run(s, &(tw_feed){rows, values}, 1, fetches, 2, results, &error), TW_INVALID_ARGUMENT,
                     "not in [0, 4)");
        assert_message(error.message, who);
    }
    tw_tensor_release(values);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
}

static void the_first_loop_that_failed_is_told(void **state)
{
    (void)state;
    check_failure(9, 4, "'one/");
    check_failure(4, 9, "'two/");
    check_failure(9, 9, "'one/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_that_need_nothing_of_each_other_have_memory_of_their_own),
        cmocka_unit_test(loops_that_need_each_other_run_one_after_the_other),
        cmocka_unit_test(loops_that_change_a_variable_run_one_after_the_other),
        cmocka_unit_test(side_by_side_and_one_after_the_other_give_the_same_bits),
        cmocka_unit_test(the_first_loop_that_failed_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
