/* test_while.c - what loops promise besides their values: they end when they are told to, take no memory from round to
 * round, go out as they came in, and fail cleanly when memory runs out. label: threads */
#include "testing.h"

#include "faulty_memory.h"
#include "golden_graph.h"
#include "planned_nodes.h"

#include <pthread.h>
#include <time.h>
#include <tower/io.h>
#include <tower/ops.h>
#include <tower/session.h>

static tw_output output_of(tw_graph *g, const char *name)
{
    tw_node *node = tw_graph_find(g, name);
    assert_non_null(node);
    return tw_node_output(node, 0);
}

/* Of counts.pb: so many rounds of (i + 1, y * 2 + x). */
static tw_status count_to(tw_graph *g, tw_session *s, int32_t rounds, tw_tensor **result, tw_error *error)
{
    tw_tensor *n = tw_tensor_from(TW_INT32, TW_SCALAR, &rounds), *x = tw_tensor_create(TW_FLOAT32, TW_SHAPE(3));
    tw_feed feeds[] = {{output_of(g, "n"), n}, {output_of(g, "x"), x}};
    tw_output fetch = output_of(g, "while/Exit");
    tw_status status = tw_session_run(s, feeds, 2, &fetch, 1, result, error);
    tw_tensor_release(n);
    tw_tensor_release(x);
    return status;
}

static int allocations;

static void *counting_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    allocations += bytes > 0;
    if (bytes)
        return realloc(block, bytes);
    free(block);
    return NULL;
}

static void rounds_of_a_loop_take_no_memory(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_session *s;
    int few, many;
    tw_set_allocator(counting_resize, NULL);
    tw_graph *g = read_golden_graph("flow", "counts");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(count_to(g, s, 10, &result, &error)); /* plans, too */
    allocations = 0;
    assert_ok(count_to(g, s, 10, &result, &error));
    few = allocations;
    allocations = 0;
    assert_ok(count_to(g, s, 10000, &result, &error));
    many = allocations;
    assert_int_equal((int)tw_tensor_value(result, 0), 10000);
    assert_int_equal(many, few);
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_set_allocator(NULL, NULL);
}

/* A stack of what `pushed` is, pops something of another type: a number, or the handle of an array. */
static void check_other_type(tw_dtype pushed, tw_dtype popped, const char *says)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_session *s;
    int32_t size = 4, values[] = {1, 2, 3, 4};
    tw_graph *g = tw_graph_create();
    tw_output n = tw_constant_int32s(g, TW_SCALAR, &size), value = tw_constant_int32s(g, TW_SHAPE(4), values);
    tw_attr type = tw_attr_type("elem_type", TW_FLOAT32), float_type = tw_attr_type("dtype", TW_FLOAT32);
    tw_output stack = tw_node_output(tw_add_node(g, "StackV2", "stack", &n, 1, &type, 1), 0);
    tw_output array = tw_node_output(tw_add_node(g, "TensorArrayV3", "array", &n, 1, &float_type, 1), 0);
    tw_output elem = pushed == TW_RESOURCE ? array : tw_cast(g, value, pushed), both[] = {stack, elem};
    tw_node *push = tw_add_node(g, "StackPushV2", "push", both, 2, NULL, 0);
    tw_output top, fetch = {0};
    TW_CONTROL(g, tw_node_output(push, -1))
    {
        tw_attr wanted = tw_attr_type("elem_type", popped);
        fetch = top = tw_node_output(tw_add_node(g, "StackPopV2", "pop", &stack, 1, &wanted, 1), 0);
    }
    if (popped == TW_RESOURCE)
        fetch = tw_node_output(tw_add_node(g, "TensorArraySizeV3", "size",
                                           (tw_output[]){top, tw_scalar(g, 0)}, 2, NULL, 0), 0);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, NULL, 0, &fetch, 1, &result, &error), TW_INVALID_ARGUMENT, says);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void what_comes_off_a_stack_has_the_type_of_what_was_put_there(void **state)
{
    (void)state;
    check_other_type(TW_INT8, TW_FLOAT64, "int8");
    check_other_type(TW_RESOURCE, TW_COMPLEX128, "int64");
    check_other_type(TW_INT8, TW_RESOURCE, "nobody has pushed");
}

static void the_gradient_of_an_array_that_is_none_is_refused_by_name(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_session *s;
    tw_graph *g = tw_graph_create();
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
    tw_output inputs[] = {v->handle, tw_scalar(g, 0)};
    tw_attr source = tw_attr_string("source", "gradients");
    tw_output flow = {tw_add_node(g, "TensorArrayGradV3", "none", inputs, 2, &source, 1), 1};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, NULL, 0, &flow, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "TensorArrayGradV3 'none': nobody has made what it works on");
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* TensorFlow's gradients keep the shapes of each round on stacks; a loop that takes them off has shapes that are
 * known. */
static void gradients_of_loops_of_any_shape_are_planned_with_the_rest(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *s;
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    int32_t rounds = 3;
    tw_tensor *n = tw_tensor_from(TW_INT32, TW_SCALAR, &rounds), *result = NULL;
    tw_tensor *x = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 3), numbers);
    tw_tensor *b = tw_tensor_from(TW_FLOAT32, TW_SHAPE(3), numbers);
    tw_graph *g = read_golden_graph("flow", "gradients_of_loops_of_any_shape");
    tw_feed feeds[] = {{output_of(g, "n"), n}, {output_of(g, "x"), x}, {output_of(g, "b"), b}};
    tw_output fetch = output_of(g, "gradients/AddN_2");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, feeds, 3, &fetch, 1, &result, &error));
    assert_int_equal(planned_plans(s), 1);
    tw_tensor_release(n);
    tw_tensor_release(x);
    tw_tensor_release(b);
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void *cancel_soon(void *session)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    tw_session_cancel(session);
    return NULL;
}

static void cancel_without_end(const char *name)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    pthread_t thread;
    tw_session *s;
    tw_graph *g = read_golden_graph("flow", name);
    tw_output fetch = output_of(g, "a_exit");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, s), 0);
    assert_fails(tw_session_run(s, NULL, 0, &fetch, 1, &result, &error), TW_CANCELLED, "cancelled");
    pthread_join(thread, NULL);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_loop_without_an_end_is_ended_by_cancelling(void **state)
{
    (void)state;
    cancel_without_end("endless");
    cancel_without_end("endless_by_shapes"); /* whose rounds are planned for the shapes that come */
}

static void a_loop_goes_out_as_it_came_in(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_session *s;
    void *bytes;
    size_t size;
    tw_graph *g = read_golden_graph("flow", "counts"), *again = tw_graph_create();
    assert_ok(tw_graph_export(g, &bytes, &size, &error));
    tw_graph_destroy(g);
    assert_ok(tw_graph_import(again, bytes, size, NULL, &error));
    tw_free(bytes);
    assert_ok(tw_session_create(again, NULL, &s, &error));
    assert_ok(count_to(again, s, 7, &result, &error));
    assert_int_equal((int)tw_tensor_value(result, 0), 7);
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(again);
}

/* Imports, plans and runs a graph; TW_OK where no allocation failed. */
static tw_status work(const char *bytes, size_t size, const char *fed, const char *fetched, tw_error *error)
{
    tw_session *s = NULL;
    tw_tensor *result = NULL;
    tw_graph *g = tw_graph_create();
    tw_status status = g ? tw_graph_import(g, bytes, size, NULL, error) : TW_RESOURCE_EXHAUSTED;
    if (status == TW_OK)
        status = tw_session_create(g, NULL, &s, error);
    if (status == TW_OK) {
        tw_tensor *value = tw_tensor_create(TW_FLOAT32, strcmp(fed, "x") ? TW_SCALAR : TW_SHAPE(3));
        tw_feed feed = {output_of(g, fed), value};
        tw_output fetch = output_of(g, fetched);
        status = value ? tw_session_run(s, &feed, 1, &fetch, 1, &result, error) : TW_RESOURCE_EXHAUSTED;
        tw_tensor_release(value);
    }
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    return status;
}

static void loops_fail_cleanly_when_memory_runs_out(void **state)
{
    (void)state;
    char path[600];
    size_t size;
    tw_error error = {0};
    snprintf(path, sizeof path, "%s/flow/gradients_of_loops_in_loops.pb", GOLDEN_DIR);
    char *bytes = read_whole(path, &size);
    bool failed = true;
    for (int n = 0; failed; n += 1 + n / 7) {
        fail_allocation(n);
        tw_status status = work(bytes, size, "x", "gradients/while/Enter_1_grad/Exit", &error);
        failed = stop_failing_allocations();
        assert_true(status == (failed ? TW_RESOURCE_EXHAUSTED : TW_OK));
        assert_int_equal(memory.live, 0);
    }
    free(bytes);
}

/* ---- rounds that are planned for the shapes that come ----------------------------------------------------------- */

/* A vector that doubles in each round, the number of rounds, a word that grows, and a number that does not change. */
typedef struct doubling {
    tw_graph *g;
    tw_session *s;
    tw_output x, rounds, values[4];
} doubling;

static doubling open_doubling(void)
{
    doubling d = {.g = tw_graph_create()};
    tw_error error = {0};
    tw_tensor *a = tw_tensor_from(TW_STRING, TW_SCALAR, &(tw_string){"a", 1});
    tw_output zero = tw_scalar_of(d.g, TW_INT32, 0), letter = tw_constant(d.g, a);
    tw_tensor_release(a);
    d.x = tw_placeholder(d.g, TW_FLOAT32, TW_SHAPE(-1));
    d.rounds = tw_placeholder(d.g, TW_INT32, TW_SCALAR);
    tw_output v[] = {d.x, zero, letter, tw_scalar(d.g, 7)};
    TW_LOOP(d.g, v, 4)
    {
        tw_while(d.g, tw_less(d.g, v[1], d.rounds));
        v[0] = tw_concat(d.g, (tw_output[]){v[0], v[0]}, 2, 0);
        v[1] = tw_add(d.g, v[1], tw_scalar_of(d.g, TW_INT32, 1));
        v[2] = tw_node_output(tw_add_node(d.g, "Add", NULL, (tw_output[]){v[2], letter}, 2, NULL, 0), 0);
    }
    memcpy(d.values, v, sizeof v);
    assert_string_equal(tw_graph_message(d.g), "");
    assert_ok(tw_session_create(d.g, NULL, &d.s, &error));
    return d;
}

static void close_doubling(doubling *d)
{
    tw_session_destroy(d->s);
    tw_graph_destroy(d->g);
}

static tw_status run_doubling(const doubling *d, int32_t rounds, tw_tensor **results, tw_error *error)
{
    float numbers[] = {3, 5};
    tw_tensor *x = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), numbers), *n = tw_tensor_from(TW_INT32, TW_SCALAR, &rounds);
    tw_feed feeds[] = {{d->x, x}, {d->rounds, n}};
    tw_status status = x && n ? tw_session_run(d->s, feeds, 2, d->values, 4, results, error) : TW_RESOURCE_EXHAUSTED;
    tw_tensor_release(x);
    tw_tensor_release(n);
    return status;
}

static void check_doubling(const doubling *d, int rounds)
{
    tw_error error = {0};
    tw_tensor *results[4] = {NULL};
    assert_ok(run_doubling(d, rounds, results, &error));
    assert_int_equal(tw_tensor_elements(results[0]), 2 << rounds);
    for (int i = 0; i < 2 << rounds; i++)
        assert_true(tw_tensor_value(results[0], i) == (i % 2 ? 5 : 3));
    assert_true(tw_tensor_value(results[1], 0) == rounds);
    assert_int_equal(((tw_string *)tw_tensor_data(results[2]))->size, 1 + rounds);
    assert_true(tw_tensor_value(results[3], 0) == 7);
    for (int i = 0; i < 4; i++)
        tw_tensor_release(results[i]);
}

/* Where memory is not there on the way, in each place that asks for some, the run fails and the next is right. */
static void rounds_of_other_shapes_fail_cleanly_when_memory_runs_out(void **state)
{
    (void)state;
    for (bool failed = true; failed;) {
        tw_error error = {0};
        tw_tensor *results[4] = {NULL};
        fail_at_new_place();
        memory.by_place = false;
        doubling d = open_doubling();
        memory.by_place = true;
        tw_status status = run_doubling(&d, 2, results, &error);
        failed = forgive_allocations();
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
        for (int i = 0; i < 4; i++)
            tw_tensor_release(results[i]);
        check_doubling(&d, 3);
        check_doubling(&d, 0);
        close_doubling(&d);
        assert_int_equal(memory.live, 0);
        stop_failing_allocations();
    }
}

static void a_round_is_planned_when_the_graph_has_grown(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *results[4] = {NULL};
    fail_allocation(-1);
    doubling d = open_doubling();
    check_doubling(&d, 1);
    tw_scalar(d.g, 1);
    check_doubling(&d, 2);
    TW_DEVICE(d.g, "/gpu:7")
        tw_scalar(d.g, 1);
    check_doubling(&d, 2);
    assert_fails(run_doubling(&d, 3, results, &error), TW_INVALID_ARGUMENT, "GPU:7");
    close_doubling(&d);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_of_a_loop_take_no_memory),
        cmocka_unit_test(the_gradient_of_an_array_that_is_none_is_refused_by_name),
        cmocka_unit_test(gradients_of_loops_of_any_shape_are_planned_with_the_rest),
        cmocka_unit_test(what_comes_off_a_stack_has_the_type_of_what_was_put_there),
        cmocka_unit_test(a_loop_without_an_end_is_ended_by_cancelling),
        cmocka_unit_test(a_loop_goes_out_as_it_came_in),
        cmocka_unit_test(loops_fail_cleanly_when_memory_runs_out),
        cmocka_unit_test(rounds_of_other_shapes_fail_cleanly_when_memory_runs_out),
        cmocka_unit_test(a_round_is_planned_when_the_graph_has_grown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
