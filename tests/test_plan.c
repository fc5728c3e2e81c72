/* test_plan.c - random graphs over several devices give the bits that one device gives without any rewrite or reuse of
 * memory: what is lost, overwritten too early or waited for too little shows, to the thread sanitizer also when the
 * values happen to be right. */
#include "testing.h"

#include <tower/nn.h>
#include <tower/session.h>

enum { GRAPHS = 40, NODES = 40, FETCHES = 6, STEPS = 3, SIDE = 4 };

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Everything is [SIDE,SIDE], so that anything may follow anything. */
static tw_output random_node(tw_graph *g, unsigned *seed, const tw_output *made, int count)
{
    tw_output x = made[draw(seed, (unsigned)count)], y = made[draw(seed, (unsigned)count)];
    tw_output parts[2], three[] = {x, y, made[draw(seed, (unsigned)count)]};
    switch (draw(seed, 12)) {
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

/* The same graph for the same seed, on one device or on three. */
static tw_output build(tw_graph *g, unsigned seed, bool spread, tw_output *fetches)
{
    static const char *const devices[] = {"/cpu:0", "/gpu:0", "/gpu:1"};
    tw_output made[NODES];
    tw_output x = made[0] = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(SIDE, SIDE));
    for (int i = 1; i < NODES; i++)
        TW_DEVICE(g, "%s", devices[draw(&seed, 3) * spread])
            made[i] = random_node(g, &seed, made, i);
    for (int i = 0; i < FETCHES; i++)
        fetches[i] = made[NODES - 1 - (int)draw(&seed, NODES / 2)];
    return x;
}

/* results[STEPS * FETCHES] */
static void run_graph(unsigned seed, bool spread, const char *disable, tw_tensor **results)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_devices *devices = NULL;
    tw_session *s = NULL;
    tw_output fetches[FETCHES], x = build(g, seed, spread, fetches);
    tw_session_options options = {.disable = disable};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = 2}, &devices, &error));
    options.devices = devices;
    assert_ok(tw_session_create(g, &options, &s, &error));
    for (int step = 0; step < STEPS; step++) {
        tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(SIDE, SIDE));
        for (int i = 0; i < SIDE * SIDE; i++)
            ((float *)tw_tensor_data(value))[i] = (float)((i * 7 + step * 5) % 11) / 4 - 1;
        assert_ok(tw_session_run(s, &(tw_feed){x, value}, 1, fetches, FETCHES, results + step * FETCHES, &error));
        tw_tensor_release(value);
    }
    tw_session_destroy(s);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void random_graphs_on_three_devices_give_the_bits_of_one(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < GRAPHS; seed++) {
        tw_tensor *expected[STEPS * FETCHES] = {0}, *results[STEPS * FETCHES] = {0};
        run_graph(seed, false, "all", expected);
        run_graph(seed, true, seed % 2 ? "fuse" : "fold,merge,fuse", results);
        for (int i = 0; i < STEPS * FETCHES; i++) {
            if (memcmp(tw_tensor_data(results[i]), tw_tensor_data(expected[i]), tw_tensor_bytes(expected[i])) != 0)
                fail_msg("graph %u, step %d: fetch %d differs", seed, i / FETCHES, i % FETCHES);
            tw_tensor_release(results[i]);
            tw_tensor_release(expected[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_on_three_devices_give_the_bits_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
