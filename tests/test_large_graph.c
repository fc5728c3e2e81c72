/* test_large_graph.c - what it costs to build a graph, and to plan a run of it, grows as the graph does. Each test took
 * many seconds, or minutes, when something looked through all that had been built before; now it takes a blink. */
#include "testing.h"

#include <time.h>
#include <tower/ops.h>
#include <tower/session.h>

enum { MOST_SECONDS = 10 };

static tw_graph *g;
static tw_output x;
static clock_t began;

static void begin(void)
{
    g = tw_graph_create();
    x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2));
    began = clock();
}

static void end(void)
{
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    assert_string_equal(tw_graph_message(g), "");
    if (seconds > MOST_SECONDS)
        fail_msg("took %.1f s", seconds);
    tw_graph_destroy(g);
}

static void names_are_made_unique_beside_many_like_them(void **state)
{
    (void)state;
    enum { NAMES = 30000 };
    begin();
    for (int i = 1; i <= NAMES; i++)
        tw_tanh(tw_name(g, "a_%d", i), x);
    assert_string_equal(tw_node_name(tw_tanh(tw_name(g, "a"), x).node), "a");
    for (int i = 1; i < NAMES; i++)
        tw_tanh(tw_name(g, "A"), x);
    assert_string_equal(tw_node_name(tw_tanh(tw_name(g, "a"), x).node), "a_60000");
    end();
}

static void a_group_of_many_nodes_has_each_once(void **state)
{
    (void)state;
    enum { NODES = 300000 };
    static tw_output outputs[NODES + 2];
    begin();
    for (int i = 0; i < NODES; i++)
        outputs[i] = tw_tanh(g, x);
    outputs[NODES] = outputs[0];
    outputs[NODES + 1] = outputs[NODES - 1];
    assert_int_equal(tw_node_num_control_inputs(tw_group(g, outputs, NODES + 2).node), NODES);
    end();
}

static void a_constant_is_passed_on_many_times(void **state)
{
    (void)state;
    enum { NODES = 100000 };
    begin();
    tw_output y = tw_scalar(g, 3);
    for (int i = 0; i < NODES; i++)
        y = tw_identity(g, y);
    end();
}

static void gradients_are_asked_for_a_million_times_at_once(void **state)
{
    (void)state;
    enum { LAYERS = 100000, TIMES = 1000000 };
    static tw_output xs[TIMES], gradients[TIMES];
    begin();
    tw_output y = x;
    for (int i = 0; i < LAYERS; i++)
        y = tw_tanh(g, y);
    for (int i = 0; i < TIMES; i++)
        xs[i] = x;
    tw_gradients(g, &y, 1, NULL, xs, TIMES, gradients);
    assert_non_null(gradients[0].node);
    assert_ptr_equal(gradients[TIMES - 1].node, gradients[0].node);
    end();
}

/* Runs `y` once, after `before` if there is such a node. */
static void run(tw_output before, tw_output y)
{
    tw_error error = {0};
    tw_session *s;
    tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(2)), *result = NULL;
    tw_feed feed = {x, value};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.allow_soft_placement = true}, &s, &error));
    if (before.node)
        assert_ok(tw_session_run(s, NULL, 0, &before, 1, NULL, &error));
    assert_ok(tw_session_run(s, &feed, 1, &y, 1, &result, &error));
    tw_tensor_release(value);
    tw_tensor_release(result);
    tw_session_destroy(s);
}

static void a_variable_is_changed_and_read_many_times_in_a_row(void **state)
{
    (void)state;
    enum { TIMES = 4000 };
    begin();
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0});
    tw_output y = x;
    for (int i = 0; i < TIMES; i++) {
        tw_output change = tw_assign_sub(g, v->handle, y);
        TW_CONTROL(g, change)
        y = tw_variable_read(g, v);
    }
    run(tw_initialize_variables(g), y);
    end();
}

static void many_variables_are_looked_at_by_reference(void **state)
{
    (void)state;
    enum { VARIABLES = 30000 };
    static tw_output references[VARIABLES], assigned[VARIABLES];
    begin();
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SHAPE(2))};
    tw_output zero = tw_zeros(g, TW_FLOAT32, TW_SHAPE(2));
    for (int i = 0; i < VARIABLES; i++) {
        references[i] = tw_node_output(tw_add_node(g, "VariableV2", NULL, NULL, 0, attrs, 2), 0);
        tw_output inputs[] = {references[i], zero};
        assigned[i] = tw_node_output(tw_add_node(g, "Assign", NULL, inputs, 2, NULL, 0), 0);
    }
    run(tw_group(g, assigned, VARIABLES), tw_add_n(g, references, VARIABLES));
    end();
}

static void many_nodes_differ_only_in_what_they_wait_for(void **state)
{
    (void)state;
    enum { NODES = 40000 };
    begin();
    tw_output y = tw_tanh(g, x);
    for (int i = 0; i < NODES; i++)
        TW_CONTROL(g, y)
    y = tw_tanh(g, x);
    run((tw_output){0}, y);
    end();
}

static void a_loop_has_many_values(void **state)
{
    (void)state;
    enum { VALUES = 30000 };
    static tw_output values[VALUES];
    begin();
    for (int i = 0; i < VALUES; i++)
        values[i] = x;
    TW_LOOP(g, values, VALUES)
    {
        tw_while(g, tw_less(g, tw_round_number(g), tw_scalar_of(g, TW_INT32, 2)));
        for (int i = 0; i < VALUES; i++)
            values[i] = tw_tanh(g, values[i]);
    }
    run((tw_output){0}, values[VALUES - 1]);
    end();
}

static void many_loops_follow_each_other_and_have_gradients(void **state)
{
    (void)state;
    enum { LOOPS = 900 };
    begin();
    tw_output values[] = {x}, gradient;
    for (int i = 0; i < LOOPS; i++)
        TW_LOOP(g, values, 1)
        {
            tw_while(g, tw_less(g, tw_round_number(g), tw_scalar_of(g, TW_INT32, 2)));
            values[0] = tw_tanh(g, values[0]);
        }
    tw_gradients(g, values, 1, NULL, &x, 1, &gradient);
    run((tw_output){0}, gradient);
    end();
}

static void many_nodes_ask_for_a_device_of_their_own(void **state)
{
    (void)state;
    enum { NODES = 30000 };
    begin();
    tw_output y = x;
    for (int i = 0; i < NODES; i++)
        TW_DEVICE(g, "/gpu:GPU-%08x", (unsigned)i)
        y = tw_tanh(g, y);
    run((tw_output){0}, y);
    end();
}

/* Most of what such a plan has lies in slots (plan/memory.c), which are given back in the order of time. */
static void thousands_of_values_keep_to_their_memory(void **state)
{
    (void)state;
    enum { TIMES = 6000, BACK = 5, LONGEST = 300 };
    static uint32_t sums[TIMES + BACK];
    static tw_output values[TIMES + BACK];
    int32_t numbers[LONGEST], *got;
    tw_error error = {0};
    tw_session *s;
    tw_tensor *one = tw_tensor_int32(1), *result = NULL;
    begin();
    tw_output fed = tw_placeholder(g, TW_INT32, TW_SCALAR);
    for (int i = 0; i < BACK; i++) {
        values[i] = tw_add(g, fed, tw_scalar_of(g, TW_INT32, i));
        sums[i] = (uint32_t)i + 1;
    }
    for (int i = 0; i < TIMES; i++) { /* values[i]: numbers of some length; sums[i]: theirs, as 32 bits hold them */
        int length = 1 + i * 7 % LONGEST;
        uint32_t sum = 0;
        for (int k = 0; k < length; k++) {
            numbers[k] = i + k;
            sum += (uint32_t)numbers[k] * sums[i + BACK - 1];
        }
        sums[i + BACK] = sum + (uint32_t)length * sums[i];
        tw_output last = tw_reduce_sum(g, values[i + BACK - 1], NULL, 0, false);
        tw_output first = tw_reduce_sum(g, values[i], NULL, 0, false);
        tw_output times = tw_mul(g, tw_constant_int32s(g, TW_SHAPE(length), numbers), last);
        values[i + BACK] = tw_add(g, times, first);
    }
    tw_output y = tw_reduce_sum(g, values[TIMES + BACK - 1], NULL, 0, false);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    for (int run = 0; run < 2; run++) {
        assert_ok(tw_session_run(s, &(tw_feed){fed, one}, 1, &y, 1, &result, &error));
        got = tw_tensor_data(result);
        assert_int_equal((uint32_t)*got, sums[TIMES + BACK - 1]);
    }
    tw_tensor_release(one);
    tw_tensor_release(result);
    tw_session_destroy(s);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_made_unique_beside_many_like_them),
        cmocka_unit_test(a_group_of_many_nodes_has_each_once),
        cmocka_unit_test(a_constant_is_passed_on_many_times),
        cmocka_unit_test(gradients_are_asked_for_a_million_times_at_once),
        cmocka_unit_test(a_variable_is_changed_and_read_many_times_in_a_row),
        cmocka_unit_test(many_variables_are_looked_at_by_reference),
        cmocka_unit_test(many_nodes_differ_only_in_what_they_wait_for),
        cmocka_unit_test(a_loop_has_many_values),
        cmocka_unit_test(many_loops_follow_each_other_and_have_gradients),
        cmocka_unit_test(many_nodes_ask_for_a_device_of_their_own),
        cmocka_unit_test(thousands_of_values_keep_to_their_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
