/* test_ops_control.c - ops that order, check and tell. */
#include "op_testing.h"
#include <tower/session.h>

static void a_group_runs_after_its_members(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output members[] = {tw_no_op(g), tw_scalar(g, 1)};
    tw_output group = tw_group(g, members, 2);
    assert_int_equal(group.index, -1);
    assert_string_equal(tw_node_name(group.node), "group_deps");
    assert_int_equal(tw_node_num_control_inputs(group.node), 2);
    assert_ptr_equal(tw_node_control_input(group.node, 1), members[1].node);
    assert_string_equal(tw_node_name(tw_group(tw_name(g, "all"), members, 2).node), "all");
    tw_graph_destroy(g);
}

static tw_tensor *condition(bool value)
{
    return tw_tensor_from(TW_BOOL, TW_SCALAR, &value);
}

static void an_assertion_that_holds_lets_the_run_go_on(void **state)
{
    (void)state;
    tw_error error = {0};
    twt_op op = {.op = "Assert", .inputs = {condition(true), tw_tensor_float(1)}, .num_inputs = 2};
    assert_ok(twt_op_run(&op, &error));
    twt_op_release(&op);
}

static void an_assertion_that_fails_shows_the_beginning_of_its_data(void **state)
{
    (void)state;
    tw_error error = {0};
    twt_op op = {.op = "Assert", .num_inputs = 3};
    op.inputs[0] = condition(false);
    op.inputs[1] = tw_tensor_string("too large:", 10);
    op.inputs[2] = tw_tensor_from(TW_FLOAT32, TW_SHAPE(4), (float[]){1, 2.5f, -3, 4});
    assert_fails(twt_op_run(&op, &error), TW_INVALID_ARGUMENT, "assertion failed: [too large:] [1 2.5 -3...] (n)");
    twt_op_release(&op);
}

static char told[256];
static int times_told;

static void keep_text(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    snprintf(told, sizeof told, "%s", text);
    times_told++;
}

static void print_passes_its_input_on_and_tells_the_log(void **state)
{
    (void)state;
    tw_error error = {0};
    twt_op op = {.op = "Print", .num_inputs = 2, .attrs = {tw_attr_string("message", "sizes: ")}, .num_attrs = 1};
    op.inputs[0] = tw_tensor_float(7);
    op.inputs[1] = tw_tensor_from(TW_INT32, TW_SHAPE(2), (int32_t[]){5, 6});
    tw_set_log(keep_text, NULL, 2);
    assert_ok(twt_op_run(&op, &error));
    tw_set_log(NULL, NULL, 0);
    assert_int_equal(times_told, 1);
    assert_string_equal(told, "sizes: [5 6]");
    assert_true(tw_tensor_value(op.outputs[0], 0) == 7);
    twt_op_release(&op);
}

/* What is known while a plan is made is told by each run nevertheless, and not by the plan. */
static void print_of_constants_tells_the_log_whenever_it_runs(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_output five = tw_scalar_of(g, TW_INT32, 5), printed = tw_print(g, five, &five, 1, "it is ");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    times_told = 0;
    tw_set_log(keep_text, NULL, 2);
    assert_ok(tw_session_prepare(s, NULL, 0, &printed, 1, &error));
    assert_int_equal(times_told, 0);
    for (int run = 1; run <= 2; run++) {
        tw_tensor *value = NULL;
        assert_ok(tw_session_run(s, NULL, 0, &printed, 1, &value, &error));
        assert_int_equal(times_told, run);
        tw_tensor_release(value);
    }
    tw_set_log(NULL, NULL, 0);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_runs_after_its_members),
        cmocka_unit_test(an_assertion_that_holds_lets_the_run_go_on),
        cmocka_unit_test(an_assertion_that_fails_shows_the_beginning_of_its_data),
        cmocka_unit_test(print_passes_its_input_on_and_tells_the_log),
        cmocka_unit_test(print_of_constants_tells_the_log_whenever_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
