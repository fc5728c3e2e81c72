/* test_border.c - graphs whose shapes depend on values that a run computes or is fed: they run in parts, and plans are
 * kept for what comes again.
 * label: threads */
#include "testing.h"

#include "faulty_memory.h"
#include "planned_nodes.h"

#include <pthread.h>
#include <tower/ops.h>
#include <tower/session.h>

static tw_output add(tw_graph *g, const char *op, const char *name, const tw_output *inputs, int count)
{
    return tw_node_output(tw_add_node(g, op, name, inputs, count, NULL, 0), 0);
}

#define ADD(g, op, name, ...)                                                                                          \
    add(g, op, name, (tw_output[]){__VA_ARGS__}, (int)(sizeof((tw_output[]){__VA_ARGS__}) / sizeof(tw_output)))

static tw_tensor *floats(int count, const float *values)
{
    return tw_tensor_from(TW_FLOAT32, TW_SHAPE(count), values);
}

static tw_tensor *integers(int count, const int32_t *values)
{
    return tw_tensor_from(TW_INT32, TW_SHAPE(count), values);
}

/* One fed value, one result; the caller's to release. */
static tw_tensor *run(tw_session *s, tw_output fed, tw_tensor *value, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_status status = tw_session_run(s, &(tw_feed){fed, value}, 1, &fetch, 1, &result, &error);
    if (status != TW_OK)
        fail_msg("%s", error.message);
    tw_tensor_release(value);
    return result;
}

static void assert_floats(tw_tensor *tensor, tw_shape shape, const float *values)
{
    char has[128], wants[128];
    assert_non_null(tensor);
    assert_string_equal(tw_shape_text(tw_tensor_shape(tensor), has, sizeof has),
                        tw_shape_text(shape, wants, sizeof wants));
    for (int64_t i = 0; i < tw_shape_elements(shape); i++)
        assert_float_equal(((float *)tw_tensor_data(tensor))[i], values[i], 1e-6);
    tw_tensor_release(tensor);
}

/* Those elements of x that are greater than nothing, doubled; and x in a shape that is fed. */
typedef struct positives {
    tw_graph *g;
    tw_session *s;
    tw_output x, indices, doubled, sum, shape, shaped;
} positives;

static positives make_positives(const tw_session_options *options)
{
    positives p = {.g = tw_graph_create()};
    tw_error error = {0};
    p.x = tw_placeholder(p.g, TW_FLOAT32, TW_SHAPE(-1));
    tw_output mask = ADD(p.g, "Greater", "mask", p.x, tw_constant_floats(p.g, TW_SCALAR, (float[]){0}));
    p.indices = ADD(p.g, "Where", "where", mask);
    tw_output flat = tw_reshape(p.g, p.indices, TW_SHAPE(-1));
    tw_output taken = ADD(p.g, "GatherV2", "taken", p.x, flat, tw_constant_int32s(p.g, TW_SCALAR, (int32_t[]){0}));
    p.doubled = tw_add(p.g, taken, taken);
    p.sum = ADD(p.g, "Sum", "sum", p.doubled, tw_constant_int32s(p.g, TW_SCALAR, (int32_t[]){0}));
    p.shape = tw_placeholder(p.g, TW_INT32, TW_SHAPE(-1));
    p.shaped = ADD(p.g, "Reshape", "shaped", p.x, p.shape);
    if (tw_graph_status(p.g) != TW_OK)
        fail_msg("%s", tw_graph_message(p.g));
    assert_ok(tw_session_create(p.g, options, &p.s, &error));
    return p;
}

static void drop_positives(positives *p)
{
    tw_session_destroy(p->s);
    tw_graph_destroy(p->g);
}

static void what_is_found_decides_the_shape_of_what_follows(void **state)
{
    (void)state;
    positives p = make_positives(NULL);
    for (int i = 0; i < 3; i++) {
        assert_floats(run(p.s, p.x, floats(4, (float[]){1, -1, 2, 3}), p.doubled), TW_SHAPE(3), (float[]){2, 4, 6});
        assert_floats(run(p.s, p.x, floats(4, (float[]){-1, -1, 2, -3}), p.doubled), TW_SHAPE(1), (float[]){4});
        assert_floats(run(p.s, p.x, floats(4, (float[]){-1, -1, -1, -1}), p.doubled), TW_SHAPE(0), NULL);
        assert_floats(run(p.s, p.x, floats(2, (float[]){5, 6}), p.sum), TW_SCALAR, (float[]){22});
    }
    drop_positives(&p);
}

static void a_shape_may_be_fed_as_a_value(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_output shape = tw_placeholder(g, TW_INT32, TW_SHAPE(-1));
    tw_output six = tw_constant_floats(g, TW_SHAPE(6), (float[]){1, 2, 3, 4, 5, 6});
    tw_output shaped = ADD(g, "Reshape", "shaped", six, shape);
    tw_output sum = ADD(g, "Sum", "sum", shaped, tw_constant_int32s(g, TW_SCALAR, (int32_t[]){0}));
    assert_ok(tw_session_create(g, NULL, &s, &error));
    for (int i = 0; i < 2; i++) {
        assert_floats(run(s, shape, integers(2, (int32_t[]){2, 3}), sum), TW_SHAPE(3), (float[]){5, 7, 9});
        assert_floats(run(s, shape, integers(2, (int32_t[]){3, -1}), sum), TW_SHAPE(2), (float[]){9, 12});
        assert_floats(run(s, shape, integers(1, (int32_t[]){6}), sum), TW_SCALAR, (float[]){21});
    }
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- what a session says and keeps ---------------------------------------------------------------------------- */

static void plans_of_many_shapes_stay_within_the_bound(void **state)
{
    (void)state;
    tw_session_options options = TW_SIZED(tw_session_options);
    options.kept_plans = 8;
    positives p = make_positives(&options);
    float values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = i % 3 == 0 ? 1 : -1;
    for (int n = 1; n <= 1000; n++) {
        float expected = 2 * (float)((n + 2) / 3);
        assert_floats(run(p.s, p.x, floats(n, values), p.sum), TW_SCALAR, &expected);
        if (n % 100 == 0)
            assert_int_equal(planned_plans(p.s), 9);
    }
    drop_positives(&p);
}

/* A number that goes up with every step, and as many ones, in a row of steps. */
static void plans_of_a_row_of_steps_stay_within_the_bound(void **state)
{
    (void)state;
    tw_session_options options = TW_SIZED(tw_session_options);
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_tensor *result = NULL;
    options.kept_plans = 4;
    tw_variable *count = tw_get_variable(g, "count", TW_INT32, TW_SHAPE(1), (tw_initializer){0});
    tw_output more = {0};
    TW_CONTROL(g, tw_assign_add(g, count->handle, tw_constant_int32s(g, TW_SHAPE(1), (int32_t[]){1})))
        more = tw_variable_read(g, count);
    tw_output ones = ADD(g, "Fill", "ones", more, tw_constant_floats(g, TW_SCALAR, (float[]){1}));
    tw_output sum = ADD(g, "Sum", "sum", ones, tw_constant_int32s(g, TW_SCALAR, (int32_t[]){0}));
    tw_output init = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &options, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_run_steps(s, 30, NULL, 0, &sum, 1, &result, NULL, &error));
    assert_floats(result, TW_SCALAR, (float[]){30});
    assert_int_equal(planned_plans(s), 2 + 4);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* What could not be planned counts for nothing. */
static void plans_that_could_not_be_made_do_not_raise_the_bound(void **state)
{
    (void)state;
    tw_session_options options = TW_SIZED(tw_session_options);
    tw_error error = {0};
    options.kept_plans = 2;
    positives p = make_positives(&options);
    for (int i = 0; i < 10; i++) {
        tw_tensor *result = NULL;
        tw_output unfed = tw_placeholder(p.g, TW_FLOAT32, TW_SCALAR);
        assert_fails(tw_session_run(p.s, NULL, 0, &unfed, 1, &result, &error), TW_INVALID_ARGUMENT, "feed");
    }
    for (int n = 1; n < 10; n++) {
        float ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, expected = 2 * (float)n;
        assert_floats(run(p.s, p.x, floats(n, ones), p.sum), TW_SCALAR, &expected);
    }
    assert_int_equal(planned_plans(p.s), 3);
    drop_positives(&p);
}

/* What differs in the number of feeds or of fetches alone is something else. */
static void fewer_feeds_and_fewer_fetches_are_another_run(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_tensor *values[] = {floats(1, (float[]){2}), floats(1, (float[]){3})}, *results[2] = {NULL};
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(1));
    tw_output y = tw_placeholder_with_default(g, tw_constant_floats(g, TW_SHAPE(1), (float[]){5}), TW_SHAPE(1));
    tw_output fetches[] = {tw_add(g, x, y), tw_mul(g, x, y)};
    tw_feed feeds[] = {{x, values[0]}, {y, values[1]}};
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, feeds, 2, fetches, 2, results, &error));
    for (int i = 0; i < 2; i++) {
        assert_floats(results[i], TW_SHAPE(1), (float[]){i ? 6 : 5});
        results[i] = NULL;
    }
    assert_ok(tw_session_run(s, feeds, 1, fetches, 2, results, &error));
    for (int i = 0; i < 2; i++) {
        assert_floats(results[i], TW_SHAPE(1), (float[]){i ? 10 : 7});
        results[i] = NULL;
    }
    assert_ok(tw_session_run(s, feeds, 1, fetches, 1, results, &error));
    assert_floats(results[0], TW_SHAPE(1), (float[]){7});
    assert_null(results[1]);
    for (int i = 0; i < 2; i++)
        tw_tensor_release(values[i]);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_feed_of_another_type_does_not_fit_a_plan(void **state)
{
    (void)state;
    tw_error error = {0};
    positives p = make_positives(NULL);
    tw_tensor *whole = integers(2, (int32_t[]){1, 2}), *result = NULL;
    assert_floats(run(p.s, p.x, floats(2, (float[]){1, 2}), p.sum), TW_SCALAR, (float[]){6});
    assert_fails(tw_session_run(p.s, &(tw_feed){p.x, whole}, 1, &p.sum, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "int32");
    assert_null(result);
    tw_tensor_release(whole);
    drop_positives(&p);
}

static void what_comes_again_is_not_planned_again(void **state)
{
    (void)state;
    positives p = make_positives(NULL);
    for (int i = 0; i < 20; i++) {
        assert_floats(run(p.s, p.x, floats(2, (float[]){1, 2}), p.doubled), TW_SHAPE(2), (float[]){2, 4});
        assert_floats(run(p.s, p.x, floats(2, (float[]){-1, 2}), p.doubled), TW_SHAPE(1), (float[]){4});
        assert_int_equal(planned_plans(p.s), 3);
    }
    drop_positives(&p);
}

static void several_runs_in_a_row_cross_the_border_each_time(void **state)
{
    (void)state;
    positives p = make_positives(NULL);
    tw_error error = {0};
    int64_t done = 0;
    tw_tensor *result = NULL, *x = floats(3, (float[]){1, -2, 3});
    assert_ok(tw_session_run_steps(p.s, 5, &(tw_feed){p.x, x}, 1, &p.sum, 1, &result, &done, &error));
    assert_int_equal(done, 5);
    assert_floats(result, TW_SCALAR, (float[]){8});
    tw_tensor_release(x);
    drop_positives(&p);
}

static void what_is_wanted_before_and_behind_comes_together(void **state)
{
    (void)state;
    positives p = make_positives(NULL);
    tw_error error = {0};
    tw_output fetches[] = {p.sum, p.indices, {p.sum.node, -1}, p.doubled, p.indices};
    tw_tensor *results[5] = {NULL}, *x = floats(3, (float[]){1, -2, 3});
    for (int i = 0; i < 3; i++)
        assert_ok(tw_session_run(p.s, &(tw_feed){p.x, x}, 1, fetches, 5, results, &error));
    assert_int_equal(((int64_t *)tw_tensor_data(results[1]))[1], 2);
    assert_int_equal(((int64_t *)tw_tensor_data(results[4]))[1], 2);
    assert_null(results[2]);
    assert_floats(results[3], TW_SHAPE(2), (float[]){2, 6});
    assert_floats(results[0], TW_SCALAR, (float[]){8});
    tw_tensor_release(results[1]);
    tw_tensor_release(results[4]);
    tw_tensor_release(x);
    drop_positives(&p);
}

static void a_trace_has_all_parts_of_the_run(void **state)
{
    (void)state;
    tw_session_options options = TW_SIZED(tw_session_options);
    tw_error error = {0};
    tw_timeline *timeline;
    tw_waterfall waterfall;
    bool found = false, summed = false;
    double sum = 0;
    options.trace = true;
    positives p = make_positives(&options);
    assert_floats(run(p.s, p.x, floats(2, (float[]){1, 2}), p.sum), TW_SCALAR, (float[]){6});
    assert_ok(tw_session_timeline(p.s, &timeline, &error));
    for (int i = 0; i < timeline->num_spans; i++) {
        found = found || strcmp(timeline->spans[i].op, "Where") == 0;
        summed = summed || strcmp(timeline->spans[i].op, "Sum") == 0;
    }
    assert_true(found && summed);
    tw_timeline_destroy(timeline);
    assert_ok(tw_session_waterfall(p.s, NULL, 0, &waterfall, &error));
    for (int i = 0; i < TW_TIME_KINDS; i++)
        sum += waterfall.seconds[i];
    assert_float_equal(sum, waterfall.total, 1e-9);
    drop_positives(&p);
}

static void what_lies_behind_is_said_to_be_planned_later(void **state)
{
    (void)state;
    positives p = make_positives(NULL);
    tw_error error = {0};
    tw_explanation *e;
    tw_plan_info info;
    tw_feed_shape shape = {p.x, TW_SHAPE(3)};
    assert_ok(tw_session_prepare(p.s, &shape, 1, &p.sum, 1, &error));
    assert_ok(tw_session_explain(p.s, tw_graph_find(p.g, "sum"), &e, &error));
    assert_int_equal(e->fate, TW_FATE_LATER);
    tw_explanation_destroy(e);
    assert_floats(run(p.s, p.x, floats(3, (float[]){1, 2, 3}), p.sum), TW_SCALAR, (float[]){12});
    assert_ok(tw_session_explain(p.s, tw_graph_find(p.g, "sum"), &e, &error));
    assert_int_equal(e->fate, TW_FATE_STEP);
    tw_explanation_destroy(e);
    assert_ok(tw_session_plan_info(p.s, &info, &error));
    assert_in_range(info.kernels, 4, 20);
    drop_positives(&p);
}

static void a_failure_behind_the_border_names_the_node_and_leaves_the_results(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_output x = tw_placeholder(g, TW_INT32, TW_SHAPE(-1));
    tw_output y = ADD(g, "Unique", "unique", x);
    tw_output taken = ADD(g, "GatherV2", "taken", y, tw_constant_int32s(g, TW_SCALAR, (int32_t[]){2}),
                          tw_constant_int32s(g, TW_SCALAR, (int32_t[]){0}));
    tw_tensor *few = integers(3, (int32_t[]){1, 1, 2}), *many = integers(3, (int32_t[]){1, 2, 5}), *results[2] = {NULL};
    tw_output fetches[] = {y, taken};
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, &(tw_feed){x, few}, 1, fetches, 2, results, &error), TW_INVALID_ARGUMENT, "taken");
    assert_null(results[0]);
    assert_ok(tw_session_run(s, &(tw_feed){x, many}, 1, fetches, 2, results, &error));
    assert_int_equal(*(int32_t *)tw_tensor_data(results[1]), 5);
    tw_tensor *kept = results[0];
    assert_fails(tw_session_run(s, &(tw_feed){x, few}, 1, fetches, 2, results, &error), TW_INVALID_ARGUMENT, "taken");
    assert_ptr_equal(results[0], kept);
    for (int i = 0; i < 2; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(few);
    tw_tensor_release(many);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void borders_without_end_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_output x = tw_placeholder(g, TW_INT32, TW_SHAPE(-1)), y = x;
    tw_tensor *value = integers(2, (int32_t[]){1, 2}), *result = NULL;
    for (int i = 0; i < 1100; i++)
        y = ADD(g, "Unique", NULL, y);
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, &(tw_feed){x, value}, 1, &y, 1, &result, &error), TW_RESOURCE_EXHAUSTED, "behind");
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_cancelled_session_ends_between_the_parts(void **state)
{
    (void)state;
    positives p = make_positives(NULL);
    tw_error error = {0};
    tw_tensor *result = NULL, *x = floats(2, (float[]){1, 2});
    tw_session_cancel(p.s);
    assert_fails(tw_session_run(p.s, &(tw_feed){p.x, x}, 1, &p.sum, 1, &result, &error), TW_CANCELLED, "cancelled");
    tw_tensor_release(x);
    drop_positives(&p);
}

/* Each allocation fails once: the run says so, and the next one is right. Nothing is left behind. */
static void memory_that_runs_out_on_the_way_fails_the_run_alone(void **state)
{
    (void)state;
    bool failed = true;
    for (int n = 0; failed; n++) {
        tw_error error = {0};
        tw_tensor *results[3] = {NULL};
        fail_allocation(1 << 30);
        positives p = make_positives(TW_OPTIONS(tw_session_options, .disable = "merge"));
        tw_feed feeds[] = {{p.x, floats(4, (float[]){1, -1, 2, -2})}, {p.shape, integers(2, (int32_t[]){2, 2})}};
        tw_output fetches[] = {p.sum, p.indices, p.shaped};
        memory.countdown = n;
        tw_status status = tw_session_run(p.s, feeds, 2, fetches, 3, results, &error);
        failed = forgive_allocations();
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
        assert_true(!failed || (!results[0] && !results[1] && !results[2]));
        for (int i = 0; i < 2; i++)
            assert_ok(tw_session_run(p.s, feeds, 2, fetches, 3, results, &error));
        assert_float_equal(*(float *)tw_tensor_data(results[0]), 6, 0);
        for (int i = 0; i < 3; i++)
            tw_tensor_release(results[i]);
        for (int i = 0; i < 2; i++)
            tw_tensor_release(feeds[i].tensor);
        drop_positives(&p);
        if (memory.live)
            fail_msg("%d blocks are left behind when allocation %d fails", (int)memory.live, n);
        stop_failing_allocations();
    }
}

typedef struct one_lane {
    positives *p;
    int lane;
    bool right;
} one_lane;

static void *run_in_lane(void *argument)
{
    one_lane *l = argument;
    float values[8];
    l->right = true;
    for (int i = 0; i < 200; i++) {
        tw_error error = {0};
        tw_tensor *result = NULL;
        int count = 1 + (i * 7 + l->lane) % 8;
        for (int k = 0; k < count; k++)
            values[k] = k % (1 + i % 3) == 0 ? 1 : -1;
        float expected = 0;
        for (int k = 0; k < count; k++)
            expected += values[k] > 0 ? 2 : 0;
        tw_tensor *x = floats(count, values);
        tw_status status =
            tw_session_run_in(l->p->s, l->lane, &(tw_feed){l->p->x, x}, 1, &l->p->sum, 1, &result, &error);
        l->right = l->right && status == TW_OK && *(float *)tw_tensor_data(result) == expected;
        tw_tensor_release(result);
        tw_tensor_release(x);
    }
    return NULL;
}

static void runs_of_several_lanes_cross_borders_side_by_side(void **state)
{
    (void)state;
    enum { LANES = 3 };
    tw_session_options options = TW_SIZED(tw_session_options);
    options.kept_plans = 4;
    positives p = make_positives(&options);
    pthread_t threads[LANES];
    one_lane lanes[LANES];
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (one_lane){&p, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, run_in_lane, &lanes[i]), 0);
    }
    for (int i = 0; i < LANES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < LANES; i++)
        assert_true(lanes[i].right);
    drop_positives(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_found_decides_the_shape_of_what_follows),
        cmocka_unit_test(a_shape_may_be_fed_as_a_value),
        cmocka_unit_test(plans_of_many_shapes_stay_within_the_bound),
        cmocka_unit_test(plans_of_a_row_of_steps_stay_within_the_bound),
        cmocka_unit_test(plans_that_could_not_be_made_do_not_raise_the_bound),
        cmocka_unit_test(fewer_feeds_and_fewer_fetches_are_another_run),
        cmocka_unit_test(a_feed_of_another_type_does_not_fit_a_plan),
        cmocka_unit_test(what_comes_again_is_not_planned_again),
        cmocka_unit_test(several_runs_in_a_row_cross_the_border_each_time),
        cmocka_unit_test(what_is_wanted_before_and_behind_comes_together),
        cmocka_unit_test(a_trace_has_all_parts_of_the_run),
        cmocka_unit_test(what_lies_behind_is_said_to_be_planned_later),
        cmocka_unit_test(a_failure_behind_the_border_names_the_node_and_leaves_the_results),
        unthreaded_test(borders_without_end_are_refused),
        cmocka_unit_test(a_cancelled_session_ends_between_the_parts),
        cmocka_unit_test(memory_that_runs_out_on_the_way_fails_the_run_alone),
        cmocka_unit_test(runs_of_several_lanes_cross_borders_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
