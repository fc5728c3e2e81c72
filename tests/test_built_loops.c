/* test_built_loops.c - loops as a C program builds them, and their gradients: against differences, against the same
 * network without a loop, on devices, and what is said of those that make no sense. */
#include "gradient_testing.h"

#include "faulty_memory.h"
#include "golden_graph.h"

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
            TW_WHEN(g, is_odd) product = tw_mul(g, i, tw_round_number(g));
            sum[0] = tw_add(g, sum[0], tw_cond(g, is_odd, product, whole(g, 0)));
        }
    }
    big = tw_mul(g, sum[0], whole(g, 10));
    tw_session *s = open_session(g, NULL);
    assert_true(run_for(s, big) == 10 * ((2 + 3 + 4 + 5) * 1 + (4 + 5) * 3));
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_round_reads_and_changes_variables(void **state)
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

static void a_loop_comes_after_what_a_scope_around_it_comes_after(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){.a = 1});
    tw_output sum[] = {tw_scalar(g, 0)}, set = tw_assign(g, v->handle, tw_scalar(g, 5));
    TW_CONTROL(g, set) TW_LOOP(g, sum, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 3)));
        sum[0] = tw_add(g, sum[0], tw_variable_read(g, v));
    }
    tw_output init = tw_initialize_variables(g);
    tw_session *s = open_session(g, NULL);
    run_for(s, init);
    assert_true(run_for(s, sum[0]) == 15);
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

/* Output 0 of a list op that is told the elements' type, and how shapes are spelled if it asks. */
static tw_output list_op(tw_graph *g, const char *op, const tw_output *inputs, int count, bool spells)
{
    tw_attr attrs[] = {tw_attr_type("element_dtype", TW_FLOAT64), tw_attr_type("shape_type", TW_INT32)};
    return tw_node_output(tw_add_node(g, op, NULL, inputs, count, attrs, spells ? 2 : 1), 0);
}

static tw_output empty_list(tw_graph *g, tw_output shape)
{
    return list_op(g, "EmptyTensorList", (tw_output[]){shape, whole(g, -1)}, 2, true);
}

static tw_output push(tw_graph *g, tw_output list, tw_output x)
{
    return list_op(g, "TensorListPushBack", (tw_output[]){list, x}, 2, false);
}

/* Lists that begin alike share what they have; what is pushed to one, or popped, is not seen by others. */
static void lists_with_one_beginning_are_apart(void **state)
{
    (void)state;
    static const double want[3][5] = {{1, 2, 3}, {1, 2, 4}, {1, 5}};
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output shape = tw_zeros(g, TW_INT32, TW_SHAPE(0)), x = tw_placeholder(g, TW_FLOAT64, TW_SCALAR), lists[3];
    tw_output two = push(g, push(g, empty_list(g, shape), x), real(g, 2));
    lists[0] = push(g, two, real(g, 3));
    lists[1] = push(g, two, real(g, 4));
    lists[2] = push(g, list_op(g, "TensorListPopBack", (tw_output[]){two, shape}, 2, false), real(g, 5));
    for (int i = 0; i < 3; i++)
        lists[i] = list_op(g, "TensorListStack", (tw_output[]){lists[i], shape}, 2, false);
    tw_session *s = open_session(g, NULL);
    tw_feed feed = {x, tw_tensor_create(TW_FLOAT64, TW_SCALAR)};
    *(double *)tw_tensor_data(feed.tensor) = 1;
    for (int run = 0; run < 3; run++) {
        tw_tensor *results[3] = {NULL};
        assert_ok(tw_session_run(s, &feed, 1, lists, 3, results, &error));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(tw_tensor_elements(results[i]), i < 2 ? 3 : 2);
            for (int64_t k = 0; k < tw_tensor_elements(results[i]); k++)
                assert_true(tw_tensor_value(results[i], k) == want[i][k]);
            tw_tensor_release(results[i]);
        }
    }
    tw_tensor_release(feed.tensor);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static size_t bytes_taken;

static void *weighing_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    bytes_taken += bytes;
    if (bytes)
        return realloc(block, bytes);
    free(block);
    return NULL;
}

/* What all rounds take together, which would grow with the square of their number if each copied the list. */
static size_t weigh_rounds(tw_session *s, tw_output n, int32_t rounds, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_feed feed = {n, tw_tensor_from(TW_INT32, TW_SCALAR, &rounds)};
    bytes_taken = 0;
    assert_ok(tw_session_run(s, &feed, 1, &fetch, 1, &result, &error));
    assert_true(tw_tensor_value(result, 0) == rounds);
    tw_tensor_release(result);
    tw_tensor_release(feed.tensor);
    return bytes_taken;
}

static void a_round_that_changes_a_list_does_not_copy_it(void **state)
{
    (void)state;
    tw_set_allocator(weighing_resize, NULL);
    tw_graph *g = tw_graph_create();
    tw_output n = tw_placeholder(g, TW_INT32, TW_SCALAR), shape = tw_zeros(g, TW_INT32, TW_SHAPE(0));
    tw_output list[] = {empty_list(g, shape)}, v[] = {{0}, real(g, 0)};
    TW_LOOP(g, list, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), n));
        list[0] = push(g, list[0], real(g, 1));
    }
    v[0] = list[0];
    TW_LOOP(g, v, 1)
    {
        tw_output i = tw_round_number(g);
        tw_while(g, tw_less(g, i, n));
        v[0] = list_op(g, "TensorListSetItem", (tw_output[]){v[0], i, real(g, 1)}, 3, false);
    }
    TW_LOOP(g, v, 2)
    {
        tw_while(g, tw_less(g, tw_round_number(g), n));
        v[0] = list_op(g, "TensorListPopBack", (tw_output[]){v[0], shape}, 2, false);
        v[1] = tw_add(g, v[1], (tw_output){v[0].node, 1});
    }
    tw_session *s = open_session(g, NULL);
    weigh_rounds(s, n, 10, v[1]); /* plans, too */
    size_t few = weigh_rounds(s, n, 1000, v[1]), many = weigh_rounds(s, n, 4000, v[1]);
    assert_true(many < 5 * few);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_set_allocator(NULL, NULL);
}

/* ---- gradients against differences ------------------------------------------------------------------------------- */

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

/* No loop: what lists of TensorFlow 2's loops are made with. */
static tw_output listed(tw_graph *g, const tw_output *x)
{
    static const int32_t three[] = {3}, places[] = {3, 0, 1, 0}, third[] = {2};
    tw_output shape = tw_constant_int32s(g, TW_SHAPE(1), three), row = tw_expand_dims(g, tw_square(g, x[1]), 0);
    tw_output list = push(g, push(g, empty_list(g, shape), x[0]), x[1]), popped;
    list = push(g, list, tw_mul(g, x[0], x[1]));
    list = list_op(g, "TensorListPopBack", (tw_output[]){list, shape}, 2, false);
    popped = (tw_output){list.node, 1};
    list = tw_node_output(tw_add_node(g, "TensorListResize", NULL, (tw_output[]){list, whole(g, 4)}, 2, NULL, 0), 0);
    list = list_op(g, "TensorListSetItem", (tw_output[]){list, whole(g, 3), tw_sin(g, x[0])}, 3, false);
    tw_output some = list_op(
        g, "TensorListGather", (tw_output[]){list, tw_constant_int32s(g, TW_SHAPE(4), places), shape}, 3, false);
    tw_output first = list_op(g, "TensorListGetItem", (tw_output[]){list, whole(g, 0), shape}, 3, false);
    list = list_op(g, "TensorListScatterIntoExistingList",
                   (tw_output[]){list, row, tw_constant_int32s(g, TW_SHAPE(1), third)}, 3, false);
    tw_output all = list_op(g, "TensorListStack", (tw_output[]){list, shape}, 2, false);
    return tw_add_n(g, (tw_output[]){tw_reduce_sum(g, tw_square(g, all), TW_AXES(0), false), popped, first,
                                     tw_reduce_prod(g, some, TW_AXES(0), false)}, 4);
}

/* A list that grows when it is set behind its end is as short as it was on the way back. */
static tw_output list_that_grows(tw_graph *g, const tw_output *x)
{
    static const int32_t three[] = {3};
    tw_attr attrs[] = {tw_attr_type("element_dtype", TW_FLOAT64), tw_attr_bool("resize_if_index_out_of_bounds", true)};
    tw_output shape = tw_constant_int32s(g, TW_SHAPE(1), three), row = tw_expand_dims(g, x[0], 0);
    tw_output list = list_op(g, "TensorListFromTensor", (tw_output[]){row, shape}, 2, true);
    tw_node *set = tw_add_node(g, "TensorListSetItem", NULL, (tw_output[]){list, whole(g, 2), x[1]}, 3, attrs, 2);
    tw_output all = list_op(g, "TensorListStack", (tw_output[]){tw_node_output(set, 0), shape}, 2, false);
    return tw_reduce_sum(g, tw_square(g, all), TW_AXES(0), false);
}

/* Each round takes an element of a list that the rounds before have pushed to. */
static tw_output list_in_a_loop(tw_graph *g, const tw_output *x)
{
    static const int32_t three[] = {3};
    tw_output shape = tw_constant_int32s(g, TW_SHAPE(1), three), v[] = {push(g, empty_list(g, shape), x[0]), x[1]};
    TW_LOOP(g, v, 2)
    {
        tw_output i = tw_round_number(g);
        tw_while(g, tw_less(g, i, whole(g, 3)));
        v[1] = tw_mul(g, v[1], tw_sin(g, list_op(g, "TensorListGetItem", (tw_output[]){v[0], i, shape}, 3, false)));
        v[0] = push(g, v[0], v[1]);
    }
    tw_output all = list_op(g, "TensorListStack", (tw_output[]){v[0], shape}, 2, false);
    return tw_add(g, v[1], tw_reduce_sum(g, all, TW_AXES(0), false));
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
    {"lists", listed, {{1, {3}}, {1, {3}}}, 2},
    {"a list that grows", list_that_grows, {{1, {3}}, {1, {3}}}, 2},
    {"a list in a loop", list_in_a_loop, {{1, {3}}, {1, {3}}}, 2},
    {"a map", mapped, {{2, {4, 2}}, {2, {4, 2}}, {1, {2}}}, 3},
};

static void gradients_go_back_through_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        twt_check_gradients(&cases[i]);
}

/* ---- gradients of loops that TensorFlow wrote, beside its own ---------------------------------------------------- */

enum { MOST = 8 };

typedef tw_output foreign_loss(tw_graph *g, const tw_output *ys);

typedef struct foreign {
    const char *file, *ys[4]; /* of these */
    foreign_loss *loss;       /* the gradients of this, */
    const char *xs[MOST];     /* for these */
    const char *gradients[MOST]; /* are what these nodes of the file give; none: what updates of variables take */
} foreign;

static tw_output sum_of(tw_graph *g, tw_output x)
{
    return tw_reduce_sum(g, x, NULL, 0, false);
}

static tw_output the_sum(tw_graph *g, const tw_output *ys)
{
    return sum_of(g, ys[0]);
}

static tw_output the_squares(tw_graph *g, const tw_output *ys)
{
    return sum_of(g, tw_square(g, ys[0]));
}

static tw_output the_product(tw_graph *g, const tw_output *ys)
{
    return sum_of(g, tw_mul(g, ys[0], ys[1]));
}

static tw_output of_scans(tw_graph *g, const tw_output *ys)
{
    tw_output cube = tw_mul(g, tw_square(g, ys[1]), ys[1]);
    return tw_add_n(g, (tw_output[]){the_squares(g, ys), sum_of(g, cube), the_product(g, ys + 2)}, 3);
}

static tw_output of_parts(tw_graph *g, const tw_output *ys)
{
    tw_output cube = tw_mul(g, tw_square(g, ys[1]), ys[1]), row = tw_gather(g, ys[2], whole(g, 1), 0);
    return tw_add_n(g, (tw_output[]){the_squares(g, ys), sum_of(g, cube), sum_of(g, row)}, 3);
}

static const foreign foreign_loops[] = {
    {"gradients_of_loops", {"while/Exit_1"}, the_squares, {"x"}, {"gradients/AddN_2"}},
    {"gradients_of_loops", {"while_1/Exit"}, the_sum, {"x"}, {"gradients_1/Exp_grad/mul"}},
    {"gradients_of_loops", {"while_2/Exit_1"}, the_squares, {"x"}, {"gradients_2/AddN_2"}},
    {"gradients_of_loops_in_loops", {"while/Exit_1"}, the_sum, {"x"}, {"gradients/AddN_1"}},
    {"arrays", {"add_1"}, the_sum, {"x"}, {"gradients/AddN_7"}},
    {"recurrent_dynamic_resources", {"add"}, the_sum, {"cell/gates", "cell/candidate", "cell/bias"}, {0}},
    {"recurrent_dynamic_references", {"add"}, the_sum, {"cell/gates", "cell/candidate", "cell/bias"}, {0}},
    {"autoencoder_with_a_loop", {"Mean"}, the_sum, {"w"}, {0}},
    {"calls_in_loops", {"Identity"}, the_squares, {"arg0", "arg1"}, {"Identity_1", "Identity_2"}},
    {"lists_of_scans",
     {"Identity", "Identity_1", "Identity_2", "Identity_3"},
     of_scans,
     {"arg0", "arg1"},
     {"Identity_4", "Identity_5"}},
    {"lists_of_scans_of_any_length",
     {"Identity", "Identity_1"},
     the_product,
     {"arg0", "arg1"},
     {"Identity_2", "Identity_3"}},
    {"lists_in_lists", {"Identity"}, the_squares, {"arg0", "arg1"}, {"Identity_1", "Identity_2"}},
    {"lists_and_conditions", {"Identity"}, the_squares, {"arg1", "arg2"}, {"Identity_1", "Identity_2"}},
    {"lists_taken_apart", {"Identity", "Identity_1", "Identity_2"}, of_parts, {"arg0"}, {"Identity_6"}},
    {"lists_of_an_lstm",
     {"Identity_1"},
     the_sum,
     {"arg0", "arg1", "arg2", "arg3", "arg4", "arg5", "arg6"},
     {"Identity_2", "Identity_3", "Identity_4", "Identity_5", "Identity_6", "Identity_7", "Identity_8"}},
};

/* Numbers for all placeholders: whole ones are places and lengths. */
static int feed_all(tw_graph *g, tw_feed feeds[MOST])
{
    static const int32_t places[] = {2, 0, 3}, rounds = 4;
    static const bool yes = true;
    unsigned seed = 5;
    int count = 0;
    for (int i = 0; i < tw_graph_num_nodes(g); i++) {
        tw_output x = {tw_graph_node(g, i), 0};
        tw_shape shape = tw_output_shape(x);
        if (!tw_node_is_placeholder(x.node))
            continue;
        for (int k = 0; k < shape.rank; k++)
            shape.dims[k] = shape.dims[k] < 0 ? 4 : shape.dims[k];
        feeds[count++] = (tw_feed){
            x, tw_output_dtype(x) == TW_FLOAT32  ? twt_spread(TW_FLOAT32, shape, -1, 1, &seed)
               : tw_output_dtype(x) == TW_INT32 ? tw_tensor_from(TW_INT32, shape, shape.rank ? places : &rounds)
                                                 : tw_tensor_from(TW_BOOL, shape, &yes)};
    }
    return count;
}

/* What the update of a variable takes of the name scope "gradients". */
static tw_output gradient_of_update(tw_graph *g, const tw_node *variable)
{
    for (int i = 0; i < tw_graph_num_nodes(g); i++) {
        tw_node *node = tw_graph_node(g, i);
        bool updates = strstr(tw_node_op(node), "Apply") && tw_node_input(node, 0).node == variable;
        for (int k = 0; updates && k < tw_node_num_inputs(node); k++)
            if (strncmp(tw_node_name(tw_node_input(node, k).node), "gradients/", 10) == 0)
                return tw_node_input(node, k);
    }
    fail_msg("nobody updates %s", tw_node_name(variable));
    return (tw_output){0};
}

static void assert_near_tensorflow(const foreign *f, const char *x, const tw_tensor *got, const tw_tensor *want)
{
    for (int64_t i = 0; i < tw_tensor_elements(want); i++) {
        double a = tw_tensor_value(got, i), b = tw_tensor_value(want, i);
        if (!(fabs(a - b) <= 2e-6 * fmax(1, fabs(b))))
            fail_msg("%s, %s: element %d is %.9g, TensorFlow's %.9g", f->file, x, (int)i, a, b);
    }
}

static void compare_with_tensorflow(const foreign *f)
{
    tw_error error = {0};
    tw_graph *g = read_golden_graph("flow", f->file);
    tw_output ys[4], xs[MOST], gradients[MOST], init = {tw_graph_find(g, "init"), -1};
    tw_feed feeds[MOST];
    int num_feeds = feed_all(g, feeds), num_xs = 0;
    for (int i = 0; i < 4 && f->ys[i]; i++)
        ys[i] = (tw_output){tw_graph_find(g, f->ys[i]), 0};
    for (; num_xs < MOST && f->xs[num_xs]; num_xs++)
        xs[num_xs] = (tw_output){tw_graph_find(g, f->xs[num_xs]), 0};
    tw_output loss = f->loss(g, ys);
    tw_gradients(g, &loss, 1, NULL, xs, num_xs, gradients);
    if (tw_graph_status(g) != TW_OK)
        fail_msg("%s: %s", f->file, tw_graph_message(g));
    tw_session *s = open_session(g, NULL);
    if (init.node)
        assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    for (int i = 0; i < num_xs; i++) {
        tw_tensor *results[2] = {NULL};
        tw_output theirs = f->gradients[i] ? (tw_output){tw_graph_find(g, f->gradients[i]), 0}
                                           : gradient_of_update(g, xs[i].node);
        if (tw_session_run(s, feeds, num_feeds, (tw_output[]){gradients[i], theirs}, 2, results, &error) != TW_OK)
            fail_msg("%s, %s: %s", f->file, f->xs[i], error.message);
        assert_near_tensorflow(f, f->xs[i], results[0], results[1]);
        tw_tensor_release(results[0]);
        tw_tensor_release(results[1]);
    }
    for (int i = 0; i < num_feeds; i++)
        tw_tensor_release(feeds[i].tensor);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void loops_that_tensorflow_wrote_have_its_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof foreign_loops / sizeof *foreign_loops; i++)
        compare_with_tensorflow(&foreign_loops[i]);
}

/* ---- more about gradients ---------------------------------------------------------------------------------------- */

/* Of two calls of tw_gradients(), with a session that had run the loop before there were any. */
static void a_loop_is_gone_back_through_as_often_as_one_likes(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_variable *x = tw_get_variable(g, "x", TW_FLOAT64, TW_SCALAR, (tw_initializer){.a = 3});
    tw_output v[] = {real(g, 1), real(g, 2)}, first, second;
    TW_LOOP(g, v, 2)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 3)));
        v[0] = tw_mul(g, v[0], tw_variable_read(g, x));
        v[1] = tw_mul(g, v[1], x->value);
    }
    tw_output init = tw_initialize_variables(g), sum = tw_add(g, v[0], v[1]);
    tw_session *s = open_session(g, NULL);
    run_for(s, init);
    assert_true(run_for(s, sum) == 27 + 54);
    tw_gradients(g, &v[0], 1, NULL, &x->handle, 1, &first);
    tw_gradients(g, &sum, 1, NULL, &x->handle, 1, &second);
    assert_string_equal(tw_graph_message(g), "");
    tw_tensor *results[2] = {NULL};
    assert_ok(tw_session_run(s, NULL, 0, (tw_output[]){first, second}, 2, results, &error));
    assert_true(tw_tensor_value(results[0], 0) == 27);
    assert_true(tw_tensor_value(results[1], 0) == 27 + 54);
    assert_true(run_for(s, sum) == 27 + 54);
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* A round that draws numbers has the gradient of those that it drew. */
static void what_a_round_has_drawn_is_not_drawn_again(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    int64_t dims[] = {4};
    tw_tensor *shape = tw_tensor_from(TW_INT64, TW_SHAPE(1), dims), *results[2] = {NULL};
    tw_output x = tw_ones(g, TW_FLOAT64, TW_SHAPE(4)), v[] = {x}, dx;
    TW_LOOP(g, v, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), whole(g, 3)));
        v[0] = tw_mul(g, v[0], tw_random_uniform(g, tw_constant(g, shape), TW_FLOAT64, 5));
    }
    tw_gradients(g, v, 1, NULL, &x, 1, &dx);
    tw_session *s = open_session(g, NULL);
    assert_ok(tw_session_run(s, NULL, 0, (tw_output[]){v[0], dx}, 2, results, &error));
    for (int i = 0; i < 4; i++)
        assert_true(fabs(tw_tensor_value(results[0], i) - tw_tensor_value(results[1], i)) < 1e-15);
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
    tw_tensor_release(shape);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- a network over sequences of different length ---------------------------------------------------------------- */

enum { T = 6, B = 4, D = 3, H = 5, STEPS = 6 };

typedef enum { UNROLLED, LOOP, SCAN } form;

typedef struct recurrent {
    tw_variable *w, *u, *b, *out;
    tw_output x, lengths; /* [T,B,D], [B] */
} recurrent;

/* Sequences that have ended keep their state. */
static tw_output next_state(tw_graph *g, recurrent *r, tw_output x, tw_output h, tw_output step)
{
    tw_output sum = tw_add(g, tw_matmul(g, x, tw_variable_read(g, r->w)), tw_matmul(g, h, tw_variable_read(g, r->u)));
    tw_output next = tw_tanh(g, tw_bias_add(g, sum, r->b->value));
    return tw_select(g, tw_expand_dims(g, tw_less(g, step, r->lengths), 1), next, h);
}

static void step_of(void *user, tw_graph *g, const tw_output *x, tw_output *h, tw_output *results)
{
    (void)results;
    h[0] = next_state(g, user, x[0], h[0], tw_round_number(g));
}

static tw_output last_state(tw_graph *g, recurrent *r, form form)
{
    tw_output h[] = {tw_zeros(g, TW_FLOAT32, TW_SHAPE(B, H))}, slices[T];
    tw_output longest = tw_reduce_max(g, r->lengths, NULL, 0, false);
    if (form == UNROLLED)
        tw_unpack(g, r->x, 0, slices, T);
    for (int t = 0; t < T && form == UNROLLED; t++)
        h[0] = next_state(g, r, slices[t], h[0], whole(g, t));
    if (form == SCAN)
        tw_scan(g, step_of, r, (tw_scan_values){&r->x, 1, h, 1, .steps = longest});
    if (form != LOOP)
        return h[0];
    TW_LOOP(g, h, 1)
    {
        tw_output step = tw_round_number(g);
        tw_while(g, tw_less(g, step, longest));
        h[0] = next_state(g, r, tw_gather(g, r->x, step, 0), h[0], step);
    }
    return h[0];
}

static tw_output build_tower(tw_graph *g, recurrent *r, tw_output y, form form)
{
    tw_initializer small = {TW_INIT_UNIFORM, -0.5f, 0.5f, .seed = 7};
    r->w = tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(D, H), small);
    r->u = tw_get_variable(g, "u", TW_FLOAT32, TW_SHAPE(H, H), small);
    r->b = tw_get_variable(g, "b", TW_FLOAT32, TW_SHAPE(H), (tw_initializer){0});
    r->out = tw_get_variable(g, "out", TW_FLOAT32, TW_SHAPE(H, 1), small);
    tw_output guess = tw_matmul(g, last_state(g, r, form), r->out->value);
    return tw_reduce_mean(g, tw_square(g, tw_sub(g, guess, y)), NULL, 0, false);
}

/* Trains on so many towers, each with examples of its own, on so many devices ("gpu", "cpu"). */
static void train(form form, int towers, const char *device, int devices, float losses[STEPS])
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_grads *grads[2];
    tw_output loss[2];
    tw_feed feeds[6];
    tw_devices *set;
    unsigned seed = 1;
    tw_graph_set_seed(g, 3);
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.2f));
    for (int i = 0; i < towers; i++)
        TW_DEVICE(g, "/%s:%d", device, i % devices)
        TW_NAME_SCOPE(g, "tower_%d", i)
        {
            int32_t lengths[] = {4, 0, 3 + i, 1};
            recurrent r = {.x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(T, B, D)),
                           .lengths = tw_placeholder(g, TW_INT32, TW_SHAPE(B))};
            tw_output y = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(B, 1));
            loss[i] = build_tower(g, &r, y, form);
            grads[i] = tw_compute_gradients(sgd, loss[i]);
            feeds[3 * i] = (tw_feed){r.x, twt_spread(TW_FLOAT32, TW_SHAPE(T, B, D), -1, 1, &seed)};
            feeds[3 * i + 1] = (tw_feed){r.lengths, tw_tensor_from(TW_INT32, TW_SHAPE(B), lengths)};
            feeds[3 * i + 2] = (tw_feed){y, twt_spread(TW_FLOAT32, TW_SHAPE(B, 1), -1, 1, &seed)};
            tw_reuse_variables(g);
        }
    tw_output update = tw_apply_gradients(sgd, tw_average_gradients(g, grads, towers, NULL), NULL);
    tw_output init = tw_initialize_variables(g), fetches[] = {loss[towers - 1], update};
    tw_device_options options = {.cpu_devices = 2, .cpu_threads = 1, .virtual_gpus = 2, .no_gpus = true};
    assert_ok(tw_devices_create(&options, &set, &error));
    tw_session *s = open_session(g, &(tw_session_options){.devices = set});
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    for (int i = 0; i < STEPS; i++) {
        tw_tensor *results[2] = {NULL};
        assert_ok(tw_session_run(s, feeds, 3 * towers, fetches, 2, results, &error));
        losses[i] = (float)tw_tensor_value(results[0], 0);
        tw_tensor_release(results[0]);
    }
    for (int i = 0; i < 3 * towers; i++)
        tw_tensor_release(feeds[i].tensor);
    tw_session_destroy(s);
    tw_devices_destroy(set);
    tw_graph_destroy(g);
}

static void sequences_of_different_length_train_as_without_a_loop(void **state)
{
    (void)state;
    float unrolled[STEPS], looped[STEPS], scanned[STEPS];
    train(UNROLLED, 1, "cpu", 1, unrolled);
    train(LOOP, 1, "cpu", 1, looped);
    train(SCAN, 1, "cpu", 1, scanned);
    assert_floats_near(looped, unrolled, STEPS, 1e-6);
    assert_memory_equal(looped, scanned, sizeof looped);
    assert_true(looped[STEPS - 1] < 0.9f * looped[0]);
}

static void towers_of_loops_have_the_same_bits_on_any_number_of_devices(void **state)
{
    (void)state;
    static const char *const kinds[] = {"gpu", "cpu"};
    float together[STEPS], apart[STEPS], unrolled[STEPS];
    for (int i = 0; i < 2; i++)
        for (form form = LOOP; form <= SCAN; form++) {
            train(form, 2, kinds[i], 1, together);
            train(form, 2, kinds[i], 2, apart);
            train(UNROLLED, 2, kinds[i], 2, unrolled);
            assert_memory_equal(together, apart, sizeof apart);
            assert_floats_near(apart, unrolled, STEPS, 1e-6);
        }
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

typedef void mistake(tw_graph *g, tw_output x); /* x: a scalar float */

static void left_by_return(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1)
    {
        tw_while(g, tw_less(g, x, tw_scalar(g, 3)));
        return;
    }
}

static void without_an_end(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1) x = tw_square(g, x);
}

static void with_two_tests(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1)
    {
        tw_while(g, tw_less(g, x, tw_scalar(g, 3)));
        tw_while(g, tw_less(g, x, tw_scalar(g, 4)));
    }
}

static void with_a_test_in_a_scope(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1)
        TW_NAME_SCOPE(g, "inner") tw_while(g, tw_less(g, x, tw_scalar(g, 3)));
}

static void while_a_number_holds(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1) tw_while(g, x);
}

static void while_several_hold(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1) tw_while(g, tw_less(g, x, tw_zeros(g, TW_FLOAT32, TW_SHAPE(2))));
}

static void with_another_shape(tw_graph *g, tw_output x)
{
    tw_output v[] = {x, x};
    TW_LOOP(g, v, 2)
    {
        tw_while(g, tw_less(g, v[0], tw_scalar(g, 3)));
        v[1] = tw_pack(g, v, 2, 0);
    }
}

static void with_another_type(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1)
    {
        tw_while(g, tw_less(g, x, tw_scalar(g, 3)));
        x = tw_cast(g, x, TW_INT32);
    }
}

static void with_a_dead_value(tw_graph *g, tw_output x)
{
    TW_LOOP(g, &x, 1)
    {
        tw_while(g, tw_less(g, x, tw_scalar(g, 3)));
        x = (tw_output){0};
    }
}

static void taken_from_outside(tw_graph *g, tw_output x)
{
    tw_output inside;
    TW_LOOP(g, &x, 1)
    {
        tw_while(g, tw_less(g, x, tw_scalar(g, 3)));
        x = inside = tw_name(g, "doubled") ? tw_add(g, x, x) : x;
    }
    tw_square(g, inside);
}

static void outside_of_loops(tw_graph *g, tw_output x)
{
    tw_while(g, tw_less(g, x, tw_scalar(g, 3)));
}

static void differentiated_inside(tw_graph *g, tw_output x)
{
    tw_output v[] = {x}, dx;
    TW_LOOP(g, v, 1)
    {
        tw_while(g, tw_less(g, v[0], tw_scalar(g, 3)));
        v[0] = tw_square(tw_name(g, "inside"), v[0]);
        tw_gradients(g, v, 1, NULL, &x, 1, &dx);
    }
}

static void differentiated_twice(tw_graph *g, tw_output x)
{
    tw_output v[] = {x}, dx;
    TW_LOOP(g, v, 1)
    {
        tw_while(g, tw_less(g, v[0], tw_scalar(g, 3)));
        v[0] = tw_square(g, v[0]);
    }
    tw_gradients(g, v, 1, NULL, &x, 1, &dx);
    tw_gradients(g, &dx, 1, NULL, &x, 1, &v[0]);
}

static void two_results(void *user, tw_graph *g, const tw_output *x, tw_output *results)
{
    (void)user;
    results[0] = tw_square(g, x[0]);
}

static void mapped_to_nothing(tw_graph *g, tw_output x)
{
    tw_output rows = tw_pack(g, (tw_output[]){x, x}, 2, 0), results[2];
    tw_map(g, two_results, NULL, &rows, 1, results, 2);
}

static void mapped_over_a_scalar(tw_graph *g, tw_output x)
{
    tw_output results[2];
    tw_map(g, two_results, NULL, &x, 1, results, 1);
}

static const struct {
    mistake *make;
    const char *message;
} mistakes[] = {
    {left_by_return, "TW_LOOP(\"while\") at "},
    {without_an_end, "loop 'while' has no end: tw_while() in its block says how long it goes on"},
    {with_two_tests, "loop 'while': tw_while() is called twice"},
    {with_a_test_in_a_scope, "tw_while(): stands in the block of a TW_LOOP, and in no other scope in it"},
    {while_a_number_holds, "loop 'while': there is a round while a bool holds, and 'while/Merge' is float []"},
    {while_several_hold, "there is a round while a bool holds, and 'while/Less' is bool [2]"},
    {with_another_shape, "loop 'while': value 1 begins as float [] and comes back as float [2] ('while/Pack')"},
    {with_another_type, "loop 'while': value 0 begins as float [] and comes back as int32 [] ('while/Cast')"},
    {with_a_dead_value, "loop 'while': value 0 comes back as a dead output"},
    {taken_from_outside, "'while/doubled' is computed in the rounds of the loop 'while', and cannot be taken"},
    {outside_of_loops, "tw_while(): stands in the block of a TW_LOOP"},
    {differentiated_inside, "'while/inside' is computed in the rounds of a loop, and 'x' is not in the same"},
    {differentiated_twice, "gradients of a loop's gradients are not supported: 'gradients/while/"},
    {mapped_to_nothing, "scan: its function leaves result 1 a dead output"},
    {mapped_over_a_scalar, "scan: element 0, 'x', is []: expected slices as many as of 'x'"},
};

static void mistakes_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        tw_graph *g = tw_graph_create();
        mistakes[i].make(g, tw_placeholder(tw_name(g, "x"), TW_FLOAT32, TW_SCALAR));
        if (!strstr(tw_graph_message(g), mistakes[i].message))
            fail_msg("mistake %d: '%s', expected '%s'", (int)i, tw_graph_message(g), mistakes[i].message);
        tw_graph_destroy(g);
    }
}

/* Builds loops, scans and their gradients, plans and runs them. */
static tw_status build_and_run(tw_error *error)
{
    double data[10] = {0.5, -1, 2};
    tw_tensor *values = tw_tensor_from(TW_FLOAT64, TW_SHAPE(5, 2), data), *result = NULL;
    tw_graph *g = values ? tw_graph_create() : NULL;
    tw_session *s = NULL;
    tw_output xs[2] = {{0}}, y[3], dx;
    tw_status status = g ? TW_OK : TW_RESOURCE_EXHAUSTED;
    if (g) {
        xs[0] = tw_constant(g, values);
        xs[1] = tw_constant(g, values);
        y[0] = loop_in_a_branch_in_a_loop(g, (tw_output[]){xs[0], tw_zeros(g, TW_FLOAT64, TW_SHAPE(2, 2))});
        y[1] = mapped(g, (tw_output[]){xs[0], xs[1], xs[1]});
        y[2] = listed(g, (tw_output[]){tw_zeros(g, TW_FLOAT64, TW_SHAPE(3)), tw_zeros(g, TW_FLOAT64, TW_SHAPE(3))});
        tw_gradients(g, y, 3, NULL, xs, 1, &dx);
        status = tw_graph_status(g);
        snprintf(error->message, sizeof error->message, "%s", tw_graph_message(g));
    }
    if (status == TW_OK)
        status = tw_session_create(g, NULL, &s, error);
    if (status == TW_OK)
        status = tw_session_run(s, NULL, 0, &dx, 1, &result, error);
    tw_tensor_release(result);
    tw_tensor_release(values);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    return status;
}

/* Memory fails where it has not failed before, until it has everywhere. */
static void fail_everywhere(tw_status (*work)(const void *of, tw_error *error), const void *of, const char *name)
{
    tw_error error = {0};
    for (bool failed = true; failed;) {
        fail_at_new_place();
        tw_status status = work(of, &error);
        int live = memory.live;
        failed = stop_failing_allocations();
        if (live || (status != TW_OK && !(failed && status == TW_RESOURCE_EXHAUSTED)))
            fail_msg("%s: status %d, %s; %d blocks are left", name, status, error.message, live);
    }
}

/* The gradients of a case, and a plan for them; of those that know their shapes also a run. */
static tw_status differentiate(const void *of, tw_error *error)
{
    const twt_gradient_case *c = of;
    tw_output x[TWT_MOST_XS], dx[TWT_MOST_XS];
    tw_session *s = NULL;
    tw_graph *g = tw_graph_create();
    if (!g)
        return TW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < c->num_xs; i++)
        x[i] = tw_add(g, tw_zeros(g, TW_FLOAT64, c->shapes[i]), tw_scalar_of(g, TW_FLOAT64, 0.5));
    tw_output y = tw_reduce_sum(g, c->function(g, x), NULL, 0, false);
    tw_gradients(g, &y, 1, NULL, x, c->num_xs, dx);
    tw_status status = tw_graph_status(g);
    snprintf(error->message, sizeof error->message, "%s", tw_graph_message(g));
    if (status == TW_OK)
        status = tw_session_create(g, NULL, &s, error);
    if (status == TW_OK)
        status = tw_session_prepare(s, NULL, 0, dx, c->num_xs, error);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    return status;
}

static tw_status build(const void *of, tw_error *error)
{
    (void)of;
    return build_and_run(error);
}

static void building_loops_fails_cleanly_when_memory_runs_out(void **state)
{
    (void)state;
    fail_everywhere(build, NULL, "a loop");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fail_everywhere(differentiate, &cases[i], cases[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_gives_what_its_last_round_left),
        cmocka_unit_test(a_loop_of_no_rounds_gives_what_it_began_with),
        cmocka_unit_test(loops_and_branches_stand_in_loops),
        cmocka_unit_test(a_round_reads_and_changes_variables),
        cmocka_unit_test(a_loop_comes_after_what_a_scope_around_it_comes_after),
        cmocka_unit_test(a_value_may_change_its_shape),
        cmocka_unit_test(lists_with_one_beginning_are_apart),
        cmocka_unit_test(a_round_that_changes_a_list_does_not_copy_it),
        cmocka_unit_test(gradients_go_back_through_loops),
        cmocka_unit_test(a_loop_is_gone_back_through_as_often_as_one_likes),
        cmocka_unit_test(what_a_round_has_drawn_is_not_drawn_again),
        cmocka_unit_test(loops_that_tensorflow_wrote_have_its_gradients),
        cmocka_unit_test(sequences_of_different_length_train_as_without_a_loop),
        cmocka_unit_test(towers_of_loops_have_the_same_bits_on_any_number_of_devices),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(building_loops_fails_cleanly_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
