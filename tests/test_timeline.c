/* What a session says of a traced run, kernel by kernel, and of the plan behind it: what the report and the panel are
 * made of. */
#include "testing.h"

#include <tower/tower.h>

enum { TOWERS = 2 };

typedef struct fixture {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_variable *w;
    tw_output step;
} fixture;

static tw_error error;

/* Two towers fit w to y = 3 x. */
static void start(fixture *f)
{
    const float x[] = {1, 2, 3}, y[] = {3, 6, 9};
    tw_grads *grads[TOWERS];
    *f = (fixture){.g = tw_graph_create()};
    tw_optimizer *sgd = tw_gradient_descent(f->g, tw_scalar(f->g, 0.02f));
    f->w = tw_get_variable(f->g, "w", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){0});
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(f->g, "/gpu:%d", i)
    TW_NAME_SCOPE(f->g, "tower_%d", i)
    {
        tw_output guess = tw_mul(f->g, f->w->value, tw_constant_floats(f->g, TW_SHAPE(3), x));
        tw_output wrong = tw_sub(f->g, guess, tw_constant_floats(f->g, TW_SHAPE(3), y));
        grads[i] = tw_compute_gradients(sgd, tw_reduce_mean(f->g, tw_square(f->g, wrong), NULL, 0, false));
    }
    f->step = tw_apply_gradients(sgd, tw_average_gradients(f->g, grads, TOWERS, NULL), NULL);
    tw_output init = tw_initialize_variables(f->g);
    assert_ok(
        tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = TOWERS, .no_gpus = true), &f->devices, &error));
    assert_ok(tw_session_create(f->g, TW_OPTIONS(tw_session_options, .devices = f->devices), &f->s, &error));
    assert_ok(tw_session_run(f->s, NULL, 0, &init, 1, NULL, &error));
}

static void stop(fixture *f)
{
    tw_session_destroy(f->s);
    tw_devices_destroy(f->devices);
    tw_graph_destroy(f->g);
}

static void run(fixture *f, bool traced)
{
    assert_ok(tw_session_set_trace(f->s, traced, &error));
    assert_ok(tw_session_run(f->s, NULL, 0, &f->step, 1, NULL, &error));
}

static tw_timeline *timeline_of(fixture *f)
{
    tw_timeline *timeline = NULL;
    assert_ok(tw_session_timeline(f->s, &timeline, &error));
    return timeline;
}

static void an_untraced_session_has_no_timeline_until_it_is_asked_to_trace(void **state)
{
    (void)state;
    fixture f;
    tw_timeline *timeline;
    start(&f);
    run(&f, false);
    assert_fails(tw_session_timeline(f.s, &timeline, &error), TW_FAILED_PRECONDITION, "no traced run");
    assert_null(timeline);
    run(&f, true);
    timeline = timeline_of(&f);
    assert_true(timeline->num_spans > 0);
    tw_timeline_destroy(timeline);
    stop(&f);
}

static void spans_follow_each_other_within_the_run_on_each_device(void **state)
{
    (void)state;
    fixture f;
    start(&f);
    run(&f, true);
    tw_timeline *t = timeline_of(&f);
    int copies = 0, on_gpus = 0;
    for (int i = 0; i < t->num_spans; i++) {
        const tw_span *span = &t->spans[i], *before = i ? &t->spans[i - 1] : NULL;
        assert_true(span->begin >= 0 && span->begin <= span->end && span->end <= t->seconds);
        if (before && strcmp(before->device, span->device) == 0)
            assert_true(before->end <= span->begin);
        copies += !span->kernel;
        on_gpus += tw_device_is(span->device, "GPU") && span->kernel;
    }
    assert_true(copies > 0);
    assert_true(on_gpus >= 2 * TOWERS);
    tw_timeline_destroy(t);
    stop(&f);
}

static bool are_of_one_run(const tw_timeline *a, const tw_timeline *b)
{
    bool same = a->num_spans == b->num_spans && a->seconds == b->seconds;
    for (int i = 0; same && i < a->num_spans; i++)
        same = a->spans[i].begin == b->spans[i].begin && a->spans[i].end == b->spans[i].end;
    return same;
}

static void a_run_that_is_not_traced_leaves_the_timeline_as_it_was(void **state)
{
    (void)state;
    fixture f;
    start(&f);
    run(&f, true);
    tw_timeline *before = timeline_of(&f);
    run(&f, false);
    tw_timeline *after = timeline_of(&f);
    assert_true(are_of_one_run(before, after));
    run(&f, true);
    tw_timeline *again = timeline_of(&f);
    assert_false(are_of_one_run(before, again));
    tw_timeline_destroy(before);
    tw_timeline_destroy(after);
    tw_timeline_destroy(again);
    stop(&f);
}

static void looking_at_some_runs_changes_no_bit(void **state)
{
    (void)state;
    fixture f[2];
    tw_tensor *w[2];
    for (int i = 0; i < 2; i++) {
        start(&f[i]);
        for (int k = 0; k < 20; k++)
            run(&f[i], i && k % 3 == 0);
        assert_ok(tw_session_get_variable(f[i].s, f[i].w, &w[i], &error));
    }
    assert_memory_equal(tw_tensor_data(w[0]), tw_tensor_data(w[1]), 3 * sizeof(float));
    for (int i = 0; i < 2; i++) {
        tw_tensor_release(w[i]);
        stop(&f[i]);
    }
}

static void spans_are_numbered_as_the_plans_nodes_whose_edges_and_bytes_are_told(void **state)
{
    (void)state;
    fixture f;
    tw_planned *planned;
    start(&f);
    run(&f, true);
    tw_timeline *t = timeline_of(&f);
    assert_ok(tw_session_planned(f.s, &planned, &error));
    const tw_planned_node *nodes = NULL;
    int count = 0;
    for (int i = 0; i < planned->num_nodes; i++)
        if (planned->nodes[i].lane == t->lane && planned->nodes[i].plan == t->plan) {
            nodes = nodes ? nodes : &planned->nodes[i];
            count++;
        }
    for (int i = 0; i < t->num_spans; i++) {
        assert_in_range(t->spans[i].number, 0, count - 1);
        const tw_planned_node *node = &nodes[t->spans[i].number];
        assert_string_equal(node->name, t->spans[i].node);
        assert_string_equal(node->device, t->spans[i].device);
        if (t->spans[i].kernel) {
            assert_string_equal(node->kernel, t->spans[i].kernel);
            continue;
        }
        assert_int_equal(node->num_inputs, 1); /* a copy */
        assert_string_not_equal(nodes[node->inputs[0]].device, node->device);
        assert_true(node->bytes > 0);
        assert_null(node->why);
    }
    bool explained = false;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < nodes[i].num_inputs; k++)
            assert_in_range(nodes[i].inputs[k], 0, count - 1);
        explained = explained || (nodes[i].why && strstr(nodes[i].why, "GPU:1"));
    }
    assert_true(explained);
    tw_planned_destroy(planned);
    tw_timeline_destroy(t);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untraced_session_has_no_timeline_until_it_is_asked_to_trace),
        cmocka_unit_test(spans_follow_each_other_within_the_run_on_each_device),
        cmocka_unit_test(a_run_that_is_not_traced_leaves_the_timeline_as_it_was),
        cmocka_unit_test(looking_at_some_runs_changes_no_bit),
        cmocka_unit_test(spans_are_numbered_as_the_plans_nodes_whose_edges_and_bytes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
