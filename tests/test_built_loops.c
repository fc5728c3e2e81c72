/* test_built_loops.c - loops as a C program builds them, and their gradients: against differences, against the same
 * network without a loop, on devices, and what is said of those that make no sense. label: threads */
#include "gradient_testing.h"

#include <tower/io.h>
#include <tower/nn.h>
#include <tower/tower.h>

static tw_output whole(tw_graph *g, int32_t value)
{
    return tw_constant_int32s(g, TW_SCALAR, &value);
}

static tw_output real(tw_graph *g, double value)
{
    return tw_scalar_of(g, TW_FLOAT64, value);
}

static tw_session *open_session(tw_graph *g, const tw_session_options *options)
{
    tw_error error = {0};
    tw_session *s;
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, options, &s, &error));
    return s;
}

static double run_for(tw_session *s, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    assert_ok(tw_session_run(s, NULL, 0, &fetch, 1, fetch.index < 0 ? NULL : &result, &error));
    double value = result ? tw_tensor_value(result, 0) : 0;
    tw_tensor_release(result);
    return value;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* Greatest common divisor, a loop whose values change places. */
static void a_loop_gives_what_its_last_round_left(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output v[] = {whole(g, 84), whole(g, 30)};
    TW_LOOP(g, v, 2)
    {
        tw_while(g, tw_not_equal(g, v[1], whole(g, 0)));
        tw_output rest = tw_floor_mod(g, v[0], v[1]);
        v[0] = v[1];
        v[1] = rest;
    }
    tw_session *s = open_session(g, NULL);
    assert_true(run_for(s, v[0]) == 6);
    assert_true(run_for(s, v[1]) == 0);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_loop_of_no_rounds_gives_what_it_began_with(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output v[] = {real(g, 7)}, x = real(g, 3), dx;
    TW_LOOP(g, v, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 0)));
        v[0] = tw_mul(g, v[0], x);
    }
    tw_gradients(g, v, 1, NULL, &x, 1, &dx);
    tw_session *s = open_session(g, NULL);
    assert_true(run_for(s, v[0]) == 7);
    assert_true(run_for(s, dx) == 0);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* sum of i * j for j < i < 6: a loop in a loop, whose limit is a value of the outer one; and a branch in that. */
static void loops_and_branches_stand_in_loops(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output sum[] = {whole(g, 0)}, big;
    TW_LOOP(g, sum, 1)
    {
        tw_output i = tw_round_number(g);
        tw_while(g, tw_less(g, i, whole(g, 6)));
        TW_LOOP(g, sum, 1)
        {
            tw_output j = tw_round_number(g), product;
            tw_while(g, tw_less(g, j, i));
            tw_output is_odd = tw_equal(g, tw_floor_mod(g, j, whole(g, 2)), whole(g, 1));
            TW_WHEN(g, is_odd) product = tw_mul(g, i, j);
            sum[0] = tw_add(g, sum[0], tw_cond(g, is_odd, product, whole(g, 0)));
        }
    }
    big = tw_mul(g, sum[0], whole(g, 10));
    tw_session *s = open_session(g, NULL);
    assert_true(run_for(s, big) == 10 * ((2 + 3 + 4 + 5) * 1 + (4 + 5) * 3));
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_loop_without_values_changes_variables(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){.a = 1});
    tw_output done[] = {whole(g, 0)};
    TW_LOOP(g, done, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 5)));
        tw_output doubled = tw_assign(g, v->handle, tw_mul(g, tw_variable_read(g, v), tw_scalar(g, 2)));
        TW_CONTROL(g, doubled) done[0] = tw_identity(g, done[0]);
    }
    tw_output init = tw_initialize_variables(g);
    tw_session *s = open_session(g, NULL);
    run_for(s, init);
    run_for(s, done[0]);
    assert_true(run_for(s, v->value) == 32);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_value_may_change_its_shape(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output v[] = {tw_placeholder_with_default(g, tw_scalar_of(g, TW_INT32, 1), TW_UNKNOWN_SHAPE)};
    v[0] = tw_reshape(g, v[0], TW_SHAPE(1));
    v[0] = tw_placeholder_with_default(g, v[0], TW_SHAPE(-1));
    TW_LOOP(g, v, 1)
    {
        tw_while(g, tw_less(g, tw_size_of(g, v[0]), whole(g, 20)));
        v[0] = tw_concat(g, (tw_output[]){v[0], v[0]}, 2, 0);
    }
    tw_output size = tw_size_of(g, v[0]);
    tw_session *s = open_session(g, NULL);
    assert_true(run_for(s, size) == 32);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- gradients against differences
 * ------------------------------------------------------------------------------------- */

static tw_output powers(tw_graph *g, const tw_output *x)
{
    tw_output v[] = {x[0]};
    TW_LOOP(g, v, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 4)));
        v[0] = tw_tanh(g, tw_matmul(g, v[0], x[1]));
    }
    return v[0];
}

/* How many rounds there are, x decides; what it decides by is a part of what it computes. */
static tw_output grows(tw_graph *g, const tw_output *x)
{
    tw_output v[] = {x[0]};
    TW_LOOP(g, v, 1)
    {
        tw_output size = tw_reduce_sum(g, tw_square(g, v[0]), NULL, 0, false);
        tw_while(g, tw_less(g, size, real(g, 1000)));
        v[0] = tw_add(g, tw_mul(g, v[0], real(g, 1.5)), tw_mul(g, x[1], tw_sqrt(g, size)));
    }
    return v[0];
}

/* Values change places, one stays, one is forgotten, one becomes what does not change. */
static tw_output changes_places(tw_graph *g, const tw_output *x)
{
    tw_output v[] = {x[0], x[1], x[2], x[0], x[1]};
    TW_LOOP(g, v, 5)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 3)));
        tw_output first = v[0];
        v[0] = tw_mul(g, v[1], v[2]);
        v[1] = tw_sin(g, first);
        v[3] = x[2];
        v[4] = tw_square(g, x[1]);
    }
    return tw_add_n(g, v, 5);
}

static tw_output takes_sides(tw_graph *g, const tw_output *x)
{
    tw_output v[] = {x[0]}, small, large;
    TW_LOOP(g, v, 1)
    {
        tw_output sum = tw_reduce_sum(g, v[0], NULL, 0, false);
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 6)));
        tw_output is_small = tw_less(g, sum, real(g, 2));
        TW_WHEN(g, is_small) small = tw_mul(g, tw_exp(g, v[0]), x[1]);
        TW_UNLESS(g, is_small) large = tw_mul(g, tw_sin(g, v[0]), tw_mul(g, sum, real(g, 0.25)));
        v[0] = tw_cond(g, is_small, small, large);
    }
    return v[0];
}

static tw_output loops_in_loops(tw_graph *g, const tw_output *x)
{
    tw_output v[] = {x[0]};
    TW_LOOP(g, v, 1)
    {
        tw_output i = tw_round_number(g), before = v[0];
        tw_while(g, tw_less(g, i, whole(g, 4)));
        TW_LOOP(g, v, 1)
        {
            tw_while(g, tw_less(g, tw_round_number(g), i));
            v[0] = tw_sin(g, tw_add(g, tw_mul(g, v[0], x[1]), before));
        }
        v[0] = tw_mul(g, v[0], tw_cos(g, x[1]));
    }
    return v[0];
}

static tw_output loop_in_a_branch(tw_graph *g, const tw_output *x)
{
    tw_output is_positive = tw_less(g, real(g, -100), tw_reduce_sum(g, x[0], NULL, 0, false)), v[] = {x[0]};
    TW_WHEN(g, is_positive) v[0] = powers(g, x);
    return tw_add(g, tw_cond(g, is_positive, v[0], x[0]), x[0]);
}

static tw_output loop_in_a_branch_in_a_loop(tw_graph *g, const tw_output *x)
{
    tw_output v[] = {x[0]};
    TW_LOOP(g, v, 1)
    {
        tw_output i = tw_round_number(g), inner, is_odd = tw_equal(g, tw_floor_mod(g, i, whole(g, 2)), whole(g, 1));
        tw_while(g, tw_less(g, i, whole(g, 4)));
        TW_WHEN(g, is_odd) inner = powers(g, (tw_output[]){v[0], x[1]});
        v[0] = tw_cond(g, is_odd, inner, tw_sin(g, v[0]));
    }
    return v[0];
}

/* A cell with a state, that gives something else than it keeps. */
static void cell(void *user, tw_graph *g, const tw_output *x, tw_output *state, tw_output *results)
{
    const tw_output *w = user;
    state[0] = tw_tanh(g, tw_add(g, tw_mul(g, x[0], w[0]), state[0]));
    results[0] = tw_square(g, state[0]);
}

static tw_output scanned(tw_graph *g, const tw_output *x)
{
    tw_output h = tw_zeros(g, TW_FLOAT64, TW_SHAPE(2)), y, w = x[1];
    tw_scan(g, cell, &w, (tw_scan_values){x, 1, &h, 1, &y, 1, {0}});
    return tw_add(g, y, h);
}

static tw_output scanned_in_part(tw_graph *g, const tw_output *x)
{
    tw_output h = tw_zeros(g, TW_FLOAT64, TW_SHAPE(2)), y, w = x[1];
    tw_scan(g, cell, &w, (tw_scan_values){x, 1, &h, 1, &y, 1, whole(g, 3)});
    return tw_add(g, y, h);
}

static void product_of(void *user, tw_graph *g, const tw_output *x, tw_output *y)
{
    y[0] = tw_mul(g, x[0], tw_reduce_sum(g, tw_mul(g, x[1], *(tw_output *)user), NULL, 0, false));
}

static tw_output mapped(tw_graph *g, const tw_output *x)
{
    tw_output y, w = x[2];
    tw_map(g, product_of, &w, x, 2, &y, 1);
    return y;
}

static const twt_gradient_case cases[] = {
    {"powers", powers, {{2, {2, 3}}, {2, {3, 3}}}, 2},
    {"powers of what is not known", powers, {{2, {2, 3}}, {2, {3, 3}}}, 2, .open = true},
    {"rounds that x decides", grows, {{1, {3}}, {1, {3}}}, 2, .low = 0.5, .high = 1},
    {"values that change places", changes_places, {{1, {3}}, {1, {3}}, {1, {3}}}, 3},
    {"sides", takes_sides, {{1, {3}}, {1, {3}}}, 2, .low = 0.2, .high = 0.9},
    {"loops in loops", loops_in_loops, {{1, {3}}, {1, {3}}}, 2},
    {"a loop in a branch", loop_in_a_branch, {{2, {2, 3}}, {2, {3, 3}}}, 2},
    {"a loop in a branch in a loop", loop_in_a_branch_in_a_loop, {{2, {2, 3}}, {2, {3, 3}}}, 2},
    {"a scan", scanned, {{2, {5, 2}}, {1, {2}}}, 2},
    {"a scan of an open number", scanned, {{2, {5, 2}}, {1, {2}}}, 2, .open = true},
    {"a part of a scan", scanned_in_part, {{2, {5, 2}}, {1, {2}}}, 2},
    {"a map", mapped, {{2, {4, 2}}, {2, {4, 2}}, {1, {2}}}, 3},
};

static void gradients_go_back_through_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        twt_check_gradients(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_gives_what_its_last_round_left),
        cmocka_unit_test(a_loop_of_no_rounds_gives_what_it_began_with),
        cmocka_unit_test(loops_and_branches_stand_in_loops),
        cmocka_unit_test(a_loop_without_values_changes_variables),
        cmocka_unit_test(a_value_may_change_its_shape),
        cmocka_unit_test(gradients_go_back_through_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
