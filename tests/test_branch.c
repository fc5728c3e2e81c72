/* test_branch.c - conditions as a C program builds them, and graphs that make no sense of Switch and Merge. */
#include "testing.h"

#include <tower/io.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>

static tw_output placeholder_bool(tw_graph *g)
{
    return tw_placeholder(g, TW_BOOL, TW_SCALAR);
}

static tw_session *open_session(tw_graph *g)
{
    tw_error error = {0};
    tw_session *s;
    assert_ok(tw_session_create(g, NULL, &s, &error));
    return s;
}

static tw_tensor *bool_tensor(bool value)
{
    return tw_tensor_from(TW_BOOL, TW_SCALAR, &value);
}

/* The fetched float, where the predicate is fed; x may be a dead output. */
static float run(tw_session *s, tw_output predicate, bool value, tw_output x, float fed, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_feed feeds[] = {{predicate, bool_tensor(value)}, {x, tw_tensor_float(fed)}};
    assert_ok(tw_session_run(s, feeds, x.node ? 2 : 1, &fetch, 1, fetch.index < 0 ? NULL : &result, &error));
    float y = result ? (float)tw_tensor_value(result, 0) : 0;
    tw_tensor_release(result);
    tw_tensor_release(feeds[0].tensor);
    tw_tensor_release(feeds[1].tensor);
    return y;
}

static void a_condition_gives_the_side_that_is_taken(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output p = placeholder_bool(g), x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), then, otherwise;
    TW_WHEN(g, p) then = tw_square(g, x);
    TW_UNLESS(g, p) otherwise = tw_neg(g, x);
    tw_output y = tw_cond(g, p, then, otherwise), as_it_is = tw_cond(g, p, x, otherwise);
    tw_session *s = open_session(g);
    assert_true(run(s, p, true, x, 3, y) == 9);
    assert_true(run(s, p, false, x, 3, y) == -3);
    assert_true(run(s, p, true, x, 3, as_it_is) == 3);
    assert_true(run(s, p, false, x, 3, as_it_is) == -3);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_value_of_a_side_that_was_not_taken_cannot_be_fetched(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output p = placeholder_bool(g), then;
    TW_WHEN(g, p) then = tw_scalar(g, 4);
    tw_session *s = open_session(g);
    tw_tensor *result = NULL;
    tw_feed feed = {p, bool_tensor(false)};
    assert_true(run(s, p, true, (tw_output){0}, 0, then) == 4);
    assert_fails(tw_session_run(s, &feed, 1, &then, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "Retval[0] does not have value");
    assert_null(result);
    tw_tensor_release(feed.tensor);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void what_a_side_changes_is_changed_only_if_it_is_taken(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output p = placeholder_bool(g), q = tw_scalar_of(g, TW_BOOL, 1), change;
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){.a = 1});
    TW_WHEN(g, p) TW_WHEN(g, q) change = tw_assign_add(g, v->handle, tw_scalar(g, 5));
    tw_session *s = open_session(g);
    tw_output init = tw_initialize_variables(g);
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    for (int i = 0; i < 4; i++)
        run(s, p, i % 2, (tw_output){0}, 0, (tw_output){change.node, -1});
    tw_tensor *value = NULL;
    assert_ok(tw_session_get_variable(s, v, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 11);
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* f(x, w) with conditions in each other, whose gradients must be what differences say. */
static tw_output build(tw_graph *g, tw_output p, tw_output x, tw_variable *w, tw_output *grads)
{
    tw_output a, b, c, d, q = tw_greater(g, x, tw_scalar(g, 0.5f));
    tw_output h = tw_mul(g, x, w->value);
    TW_WHEN(g, p)
    {
        TW_WHEN(g, q) a = tw_exp(g, h);
        TW_UNLESS(g, q) b = tw_square(g, tw_mul(g, h, w->value));
        a = tw_mul(g, tw_cond(g, q, a, b), x);
    }
    TW_UNLESS(g, p)
    {
        c = tw_cond(g, q, h, tw_scalar(g, 7));
        d = tw_add(g, c, tw_square(g, w->value));
        tw_output never, always; /* what is asked for once more is decided */
        TW_WHEN(g, p) never = tw_sin(g, h);
        TW_UNLESS(g, p) always = tw_cos(g, h);
        d = tw_add(g, d, tw_cond(g, p, never, always));
    }
    tw_output y = tw_add(g, tw_cond(g, p, a, d), tw_mul(g, w->value, tw_scalar(g, 3)));
    tw_gradients(g, &y, 1, NULL, (tw_output[]){x, w->value}, 2, grads);
    return y;
}

static void gradients_flow_through_the_side_that_was_taken(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output p = placeholder_bool(g), x = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), grads[2];
    tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, TW_SCALAR, (tw_initializer){.a = 0.75f});
    tw_output y = build(g, p, x, w, grads);
    assert_string_equal(tw_graph_message(g), "");
    tw_session *s = open_session(g);
    tw_output init = tw_initialize_variables(g);
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    for (int i = 0; i < 4; i++) {
        float at = i / 2 ? 0.25f : 1, step = 1.0f / 128;
        float dx = run(s, p, i % 2, x, at, grads[0]), dw = run(s, p, i % 2, x, at, grads[1]);
        float difference = (run(s, p, i % 2, x, at + step, y) - run(s, p, i % 2, x, at - step, y)) / (2 * step);
        assert_floats_near(&dx, &difference, 1, 1e-3);
        tw_tensor *up = tw_tensor_float(0.75f + step), *down = tw_tensor_float(0.75f - step),
                  *back = tw_tensor_float(0.75f);
        assert_ok(tw_session_set_variable(s, w, up, &error));
        difference = run(s, p, i % 2, x, at, y);
        assert_ok(tw_session_set_variable(s, w, down, &error));
        difference = (difference - run(s, p, i % 2, x, at, y)) / (2 * step);
        assert_ok(tw_session_set_variable(s, w, back, &error));
        assert_floats_near(&dw, &difference, 1, 1e-3);
        tw_tensor_release(up);
        tw_tensor_release(down);
        tw_tensor_release(back);
    }
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_variable_made_in_a_block_is_one_of_the_graph(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output p = placeholder_bool(g), then;
    TW_WHEN(g, p)
    {
        tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){.a = 2});
        then = tw_mul(g, v->value, tw_scalar(g, 3));
    }
    tw_output y = tw_cond(g, p, then, tw_scalar(g, 1));
    tw_session *s = open_session(g);
    tw_output init = tw_initialize_variables(g);
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    assert_true(run(s, p, true, (tw_output){0}, 0, y) == 6);
    assert_true(run(s, p, false, (tw_output){0}, 0, y) == 1);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_block_wants_a_bool(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    TW_WHEN(g, tw_scalar(g, 1)) tw_scalar(g, 2);
    assert_message(tw_graph_message(g), "a branch is taken by a bool, and 'Const' is float");
    tw_graph_destroy(g);
}

static tw_node *add(tw_graph *g, const char *op, const char *name, tw_output a, tw_output b)
{
    return tw_add_node(g, op, name, (tw_output[]){a, b}, 2, NULL, 0);
}

static void a_merge_takes_the_branch_that_is_there_and_inputs_in_branches_only(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output p = tw_name(g, "p") ? placeholder_bool(g) : (tw_output){0}, q = placeholder_bool(g), x = tw_scalar(g, 2);
    tw_node *a = add(g, "Switch", "a", x, p), *b = add(g, "Switch", "b", tw_scalar(g, 3), q);
    tw_output mixed = {add(g, "Merge", "mixed", (tw_output){a, 0}, (tw_output){b, 1}), 0};
    tw_output plain = {add(g, "Merge", "plain", x, (tw_output){a, 1}), 0};
    tw_session *s = open_session(g);
    tw_feed feeds[] = {{p, bool_tensor(true)}, {q, bool_tensor(true)}};
    tw_tensor *result = NULL;
    assert_ok(tw_session_run(s, feeds, 2, &mixed, 1, &result, &error));
    assert_true(*(float *)tw_tensor_data(result) == 3);
    tw_tensor_release(result);
    result = NULL;
    assert_fails(tw_session_run(s, feeds, 2, &plain, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "Merge 'plain': its inputs are not the branches of conditions");
    tw_tensor_release(feeds[1].tensor);
    feeds[1].tensor = bool_tensor(false);
    assert_fails(tw_session_run(s, feeds, 2, &mixed, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "Retval[0] does not have value");
    tw_tensor_release(feeds[0].tensor);
    tw_tensor_release(feeds[1].tensor);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void conditions_that_lie_too_deep_in_each_other_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output x = tw_scalar(g, 2), p[300];
    tw_feed feeds[300];
    for (int i = 0; i < 300; i++) {
        p[i] = placeholder_bool(g);
        feeds[i] = (tw_feed){p[i], bool_tensor(true)};
        x = (tw_output){add(g, "Switch", NULL, x, p[i]), 1};
    }
    tw_session *s = open_session(g);
    tw_tensor *result = NULL;
    assert_fails(tw_session_run(s, feeds, 300, &x, 1, &result, &error), TW_RESOURCE_EXHAUSTED,
                 "more than 256 conditions lie in each other");
    for (int i = 0; i < 300; i++)
        tw_tensor_release(feeds[i].tensor);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_gives_the_side_that_is_taken),
        cmocka_unit_test(a_value_of_a_side_that_was_not_taken_cannot_be_fetched),
        cmocka_unit_test(what_a_side_changes_is_changed_only_if_it_is_taken),
        cmocka_unit_test(gradients_flow_through_the_side_that_was_taken),
        cmocka_unit_test(a_variable_made_in_a_block_is_one_of_the_graph),
        cmocka_unit_test(a_block_wants_a_bool),
        cmocka_unit_test(a_merge_takes_the_branch_that_is_there_and_inputs_in_branches_only),
        cmocka_unit_test(conditions_that_lie_too_deep_in_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
