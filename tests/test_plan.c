/* test_plan.c - random graphs over several devices give the bits that one device gives without any rewrite or reuse of
 * memory: what is lost, overwritten too early or waited for too little shows, to the thread sanitizer also when the
 * values happen to be right. So do random ends of steps, with updates that rewrites join, and networks with the layers
 * that they fuse, and whatever looks like them. */
#include "random_ends.h"
#include "random_networks.h"

#include <tower/nn.h>
#include <tower/session.h>

enum { GRAPHS = 40, ENDS = 150, NETWORKS = 60, STEPS = 3, SIDE = TWT_END_SIDE, MOST_FETCHES = TWT_END_FETCHES };
enum { NODES = 40, FETCHES = 10 }; /* of a graph of anything */

/* Everything is [SIDE,SIDE], so that anything may follow anything. */
static tw_output random_node(tw_graph *g, unsigned *seed, const tw_output *made, int count)
{
    tw_output x = made[twt_draw(seed, (unsigned)count)], y = made[twt_draw(seed, (unsigned)count)];
    tw_output parts[2], three[] = {x, y, made[twt_draw(seed, (unsigned)count)]};
    switch (twt_draw(seed, 12)) {
    case 0:
        return tw_add(g, x, y);
    case 1:
        return tw_sub(g, x, y);
    case 2:
        return tw_mul(g, x, tw_scalar(g, 0.5f));
    case 3:
        return tw_tanh(g, tw_matmul(g, x, y));
    case 4:
        return tw_reshape(g, tw_reshape(g, x, TW_SHAPE(SIDE * SIDE)), TW_SHAPE(SIDE, SIDE));
    case 5:
        return tw_identity(g, x);
    case 6:
        return tw_relu(g, x);
    case 7:
        tw_split(g, x, 0, parts, 2);
        return tw_concat(g, (tw_output[]){parts[1], parts[0]}, 2, 0);
    case 8:
        return tw_transpose(g, x, TW_SHAPE(1, 0));
    case 9:
        return tw_tanh(g, tw_add_n(g, three, 3));
    case 10:
        return tw_softmax(g, x);
    default:
        return tw_sub(g, x, tw_reduce_mean(g, y, TW_AXES(0), true));
    }
}

static const char *const devices[] = {"/cpu:0", "/gpu:0", "/gpu:1"}; /* of a spread graph */

/* Returns how many fetches there are. */
typedef int builder(tw_graph *g, tw_output x, unsigned seed, bool spread, tw_output *fetches);

/* The same graph for the same seed, on one device or on three. */
static int build_any(tw_graph *g, tw_output x, unsigned seed, bool spread, tw_output *fetches)
{
    tw_output made[NODES] = {x};
    for (int i = 1; i < NODES; i++)
        TW_DEVICE(g, "%s", devices[twt_draw(&seed, 3) * spread])
            made[i] = random_node(g, &seed, made, i);
    for (int i = 0; i < FETCHES; i++)
        fetches[i] = made[NODES - 1 - (int)twt_draw(&seed, NODES / 2)];
    return FETCHES;
}

static tw_output few_kinds(tw_graph *g, unsigned kind, tw_output x)
{
    switch (kind) {
    case 0:
        return tw_relu(g, x);
    case 1:
        return tw_tanh(g, x);
    case 2:
        return tw_square(g, x);
    default:
        return tw_neg(g, x);
    }
}

/* Nodes of few kinds, many of which compute the same thing, some of them of constants, and some of which, or of the
 * constants, wait until something is counted: the same or something else. The sum of all, and the count. On one device,
 * or on three, where a constant need not be where it is read. */
static int build_alike(tw_graph *g, tw_output x, unsigned seed, bool spread, tw_output *fetches)
{
    static const float few[SIDE * SIDE] = {1, -2, 0.5f};
    tw_output one = tw_scalar(g, 1), made[NODES] = {x}, awaited[NODES] = {one};
    tw_new_variable of_count = {.dtype = TW_FLOAT32, .shape = TW_SCALAR, .initial_value = tw_scalar(g, 0)};
    tw_variable *count = tw_make_variable(g, "count", &of_count);
    unsigned where = seed;
    int num_awaited = 1;
    for (int i = 1; i < NODES; i++) {
        if (twt_draw(&seed, 4) == 0)
            awaited[num_awaited++] = tw_assign_add(g, count->handle, one);
        tw_output from = made[twt_draw(&seed, i < 3 ? (unsigned)i : 3)];
        TW_CONTROL(g, awaited[twt_draw(&seed, (unsigned)num_awaited)])
        TW_DEVICE(g, "%s", devices[twt_draw(&where, 3) * spread])
            from = twt_draw(&seed, 6) ? from : tw_constant_floats(g, TW_SHAPE(SIDE, SIDE), few);
        TW_CONTROL(g, awaited[twt_draw(&seed, (unsigned)num_awaited) * twt_draw(&seed, 2)])
        TW_DEVICE(g, "%s", devices[twt_draw(&where, 3) * spread])
            made[i] = few_kinds(g, twt_draw(&seed, 4), from);
    }
    fetches[0] = tw_add_n(g, made, NODES);
    TW_CONTROL(g, fetches[0])
        fetches[1] = tw_variable_read(g, count);
    return 2;
}

/* On one device, or on three. */
static int build_end(tw_graph *g, tw_output x, unsigned seed, bool spread, tw_output *fetches)
{
    static const char *const one[] = {"/cpu:0", "/cpu:0", "/cpu:0"}, *const three[] = {"/cpu:0", "/cpu:1", "/gpu:0"};
    return twt_random_end(g, x, seed, spread ? three : one, fetches);
}

/* On one device. */
static int build_network(tw_graph *g, tw_output x, unsigned seed, bool spread, tw_output *fetches)
{
    (void)spread;
    return twt_random_network(g, x, seed, fetches);
}

/* ---- running them ------------------------------------------------------------------------------------------------ */

/* results[STEPS * MOST_FETCHES]. Returns how many fetches there are. */
static int run_graph(builder *build, unsigned seed, bool spread, const char *disable, tw_tensor **results)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_devices *all = NULL;
    tw_session *s = NULL;
    tw_output fetches[MOST_FETCHES], x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(SIDE, SIDE)), initialize;
    tw_session_options options = {.disable = disable};
    int count = 0;
    TW_DEVICE(g, "/cpu:0")
        count = build(g, x, seed, spread, fetches);
    initialize = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .cpu_devices = 2, .virtual_gpus = 2}, &all,
                                &error));
    options.devices = all;
    assert_ok(tw_session_create(g, &options, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &initialize, 1, NULL, &error));
    for (int step = 0; step < STEPS; step++) {
        tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(SIDE, SIDE));
        for (int i = 0; i < SIDE * SIDE; i++)
            ((float *)tw_tensor_data(value))[i] = (float)((i * 7 + step * 5) % 11) / 4 - 1;
        assert_ok(tw_session_run(s, &(tw_feed){x, value}, 1, fetches, count, results + step * MOST_FETCHES, &error));
        tw_tensor_release(value);
    }
    tw_session_destroy(s);
    tw_devices_destroy(all);
    tw_graph_destroy(g);
    return count;
}

/* One device without rewrites, and as said; tolerance 0: the bits. */
static void compare(builder *build, unsigned seed, bool spread, const char *disable, double tolerance)
{
    tw_tensor *expected[STEPS * MOST_FETCHES] = {0}, *results[STEPS * MOST_FETCHES] = {0};
    int count = run_graph(build, seed, false, "all", expected);
    assert_int_equal(run_graph(build, seed, spread, disable, results), count);
    for (int i = 0; i < STEPS * MOST_FETCHES; i++) {
        bool equal = !expected[i] || memcmp(tw_tensor_data(results[i]), tw_tensor_data(expected[i]),
                                            tw_tensor_bytes(expected[i])) == 0;
        for (int64_t k = 0; !equal && k < tw_tensor_elements(expected[i]); k++) {
            double a = tw_tensor_value(results[i], k), b = tw_tensor_value(expected[i], k);
            if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= tolerance * fmax(1, fabs(b))))
                fail_msg("graph %u, step %d: fetch %d is %.9g, expected %.9g", seed, i / MOST_FETCHES, i % MOST_FETCHES,
                         a, b);
        }
        tw_tensor_release(results[i]);
        tw_tensor_release(expected[i]);
    }
}

static void random_graphs_on_three_devices_give_the_bits_of_one(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < GRAPHS; seed++)
        compare(build_any, seed, true, seed % 2 ? "fuse" : "fold,merge,fuse", 0);
}

static void nodes_that_compute_the_same_are_one_and_wait_for_what_they_waited_for(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < GRAPHS; seed++)
        compare(build_alike, seed, seed % 2, NULL, 0);
}

static void random_ends_of_steps_give_the_bits_of_what_is_not_joined(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < ENDS; seed++)
        compare(build_end, seed, seed % 2, NULL, 0);
}

static void random_networks_give_the_values_of_what_is_not_fused(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < NETWORKS; seed++)
        compare(build_network, seed, false, NULL, twt_has_narrow_layers(seed) ? 0.02 : 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_on_three_devices_give_the_bits_of_one),
        cmocka_unit_test(nodes_that_compute_the_same_are_one_and_wait_for_what_they_waited_for),
        cmocka_unit_test(random_ends_of_steps_give_the_bits_of_what_is_not_joined),
        cmocka_unit_test(random_networks_give_the_values_of_what_is_not_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
