/* Scopes that are not left as they should be are noticed and named. */
#include "testing.h"

#include <stdbool.h>
#include <tower/ops.h>
#include <tower/session.h>

#define FILE_NAME "test_scopes.c"

static void a_block_that_is_left_by_break_is_an_error_that_names_it(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    TW_DEVICE(g, "/gpu:%d", 1)
    {
        tw_no_op(g);
        break;
    }
    assert_int_equal(tw_graph_status(g), TW_FAILED_PRECONDITION);
    assert_message(tw_graph_message(g), "TW_DEVICE(\"/device:GPU:1\")");
    assert_message(tw_graph_message(g), FILE_NAME);
    assert_message(tw_graph_message(g), "break");
    tw_graph_destroy(g);
}

static void return_in_the_middle(tw_graph *g)
{
    TW_NAME_SCOPE(g, "tower_%d", 3)
    TW_VARIABLE_SCOPE(g, "inner")
    {
        if (g)
            return;
    }
}

static void a_block_that_is_left_by_return_is_an_error_that_names_the_innermost(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    return_in_the_middle(g);
    assert_message(tw_graph_message(g), "TW_VARIABLE_SCOPE(\"inner/\")");
    assert_string_equal(tw_name_scope(g), ""); /* both are closed */
    tw_graph_destroy(g);
}

static void every_kind_of_block_notices(void **state)
{
    (void)state;
    static const char *const names[] = {"TW_DEVICE", "TW_NAME_SCOPE", "TW_VARIABLE_SCOPE", "TW_CONTROL", "TW_COLOCATE"};
    for (int kind = 0; kind < 5; kind++) {
        tw_graph *g = tw_graph_create();
        tw_output x = tw_scalar(g, 1);
        if (kind == 0)
            TW_DEVICE(g, "/cpu:0") break;
        if (kind == 1)
            TW_NAME_SCOPE(g, "a") break;
        if (kind == 2)
            TW_VARIABLE_SCOPE(g, "a") break;
        if (kind == 3)
            TW_CONTROL(g, x) break;
        if (kind == 4)
            TW_COLOCATE(g, x) break;
        assert_message(tw_graph_message(g), names[kind]);
        tw_graph_destroy(g);
    }
}

static void blocks_that_are_left_by_their_end_are_fine(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    for (int i = 0; i < 3; i++)
        TW_DEVICE(g, "/cpu:0")
        TW_NAME_SCOPE(g, "tower_%d", i)
        {
            if (i == 1)
                continue; /* goes on behind the block's end */
            for (int k = 0; k < 3; k++)
                if (k == 1)
                    break; /* of a loop within */
            tw_no_op(g);
        }
    assert_string_equal(tw_graph_message(g), "");
    assert_string_equal(tw_name_scope(g), "");
    tw_graph_destroy(g);
}

static void a_scope_that_was_entered_and_not_left_is_noticed_when_a_session_is_created(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_graph *g = tw_graph_create();
    tw_enter_device(g, "/cpu:%d", 0);
    tw_no_op(g);
    assert_fails(tw_session_create(g, NULL, &session, &error), TW_FAILED_PRECONDITION,
                 "tw_enter_device(\"/device:CPU:0\") is still open");
    assert_message(tw_graph_message(g), "tw_leave_");
    tw_graph_destroy(g);
}

static void an_inner_scope_that_was_not_left_is_noticed_when_the_outer_one_is(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    TW_NAME_SCOPE(g, "outer")
        tw_enter_control(g, tw_no_op(g));
    assert_message(tw_graph_message(g), "tw_enter_control(\"outer/NoOp\") was still open when a scope around it was left");
    assert_string_equal(tw_name_scope(g), "");
    tw_graph_destroy(g);
}

static void leaving_what_was_not_entered_is_an_error(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_leave_control(g);
    assert_message(tw_graph_message(g), "tw_leave_control(): no such scope is open");
    tw_graph_destroy(g);
}

static int errors;

static void count_errors(void *user, int level, const char *text)
{
    (void)user;
    errors += level == TW_LOG_ERROR && strstr(text, "tw_enter_name_scope(\"a/\") is still open");
}

static void a_scope_that_is_open_when_its_graph_is_destroyed_is_told_to_the_log(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_set_log(count_errors, NULL, TW_LOG_ERROR);
    tw_enter_name_scope(g, "a");
    tw_graph_destroy(g);
    tw_set_log(NULL, NULL, 0);
    assert_int_equal(errors, 1);
}

static void destroy_and_return(void)
{
    tw_graph *g = tw_graph_create();
    TW_DEVICE(g, "/cpu:0")
    TW_NAME_SCOPE(g, "a")
    {
        tw_graph_destroy(g);
        return;
    }
}

static void a_graph_may_be_destroyed_within_a_block(void **state)
{
    (void)state;
    destroy_and_return();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_that_is_left_by_break_is_an_error_that_names_it),
        cmocka_unit_test(a_block_that_is_left_by_return_is_an_error_that_names_the_innermost),
        cmocka_unit_test(every_kind_of_block_notices),
        cmocka_unit_test(blocks_that_are_left_by_their_end_are_fine),
        cmocka_unit_test(a_scope_that_was_entered_and_not_left_is_noticed_when_a_session_is_created),
        cmocka_unit_test(an_inner_scope_that_was_not_left_is_noticed_when_the_outer_one_is),
        cmocka_unit_test(leaving_what_was_not_entered_is_an_error),
        cmocka_unit_test(a_scope_that_is_open_when_its_graph_is_destroyed_is_told_to_the_log),
        cmocka_unit_test(a_graph_may_be_destroyed_within_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
