/* test_every_nan.c - a NaN is made at a drawn step, place of the network, tower and number of devices, forwards or in
 * the gradients alone: the run ends or does not save it, and the node that made it is named by step and device. What no
 * loss and no variable ever meets (a maximum passes over it) ends nothing. test_trainer.c tries one. label: once */
#include "testing.h"

#include "faulty_files.h" /* scratch_folder */

#include <stdlib.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/train.h>

enum { SIZE = 8, STEPS = 8, DRAWN = 100, VARIABLES = 30 };

typedef enum place { BEFORE_POOL, BEHIND_POOL, IN_SECOND, IN_DENSE, NUM_PLACES } place;

/* What is drawn; step -1: no NaN. */
static struct {
    int64_t step;
    place place;
    int tower, towers, devices, element;
    bool in_gradients;
} bad;

static int draw(int count)
{
    return rand() / 7 % count;
}

/* 0, and at the step one: NaN. The element alone, if it is forwards: 0 / (how far away the step is + 1 at all
 * others). */
static tw_output nothing_or_nan(tw_graph *g, tw_output x, tw_output away)
{
    tw_shape shape = tw_output_shape(x);
    float others[SIZE * SIZE * SIZE];
    memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)--shape.rank);
    int64_t elements = tw_shape_elements(shape);
    for (int64_t i = 0; i < elements; i++)
        others[i] = i != bad.element % elements;
    tw_output divisor = tw_add(g, tw_constant_floats(g, shape, others), away);
    return tw_div(tw_name(g, "poison"), tw_scalar(g, 0), divisor);
}

/* The same number; the derivative of the root of 0 is infinite. */
static tw_output bad_gradient(tw_graph *g, tw_output x, tw_output away)
{
    tw_output root = tw_sqrt(tw_name(g, "poison"), tw_add(g, tw_sub(g, x, x), away));
    return tw_add(g, x, tw_sub(g, root, tw_stop_gradient(g, root)));
}

static tw_output poisoned(tw_graph *g, tw_output x, place place)
{
    char tower[16];
    snprintf(tower, sizeof tower, "tower_%d/", bad.tower);
    if (bad.step < 0 || place != bad.place || strncmp(tw_node_name(x.node), tower, strlen(tower)) != 0)
        return x;
    tw_output step = tw_cast(g, tw_variable_read(g, tw_global_step(g)), TW_FLOAT32);
    tw_output away = tw_square(g, tw_sub(g, step, tw_scalar(g, (float)bad.step)));
    return bad.in_gradients ? bad_gradient(g, x, away) : tw_add(g, x, nothing_or_nan(g, x, away));
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    tw_conv2d_options window = {.stride = {1, 1}};
    tw_layer_options options = {.activation = tw_relu};
    (void)dtype;
    (void)training;
    tw_output x = poisoned(g, tw_conv2d_layer(g, "first", images, 8, 3, &window, &options), BEFORE_POOL);
    x = poisoned(g, tw_max_pool(g, x, &(tw_pool_options){.window = {2}}), BEHIND_POOL);
    x = poisoned(g, tw_conv2d_layer(g, "second", x, 4, 3, &window, &options), IN_SECOND);
    return poisoned(g, tw_dense_layer(g, "logits", tw_flatten(g, x), model->classes, NULL), IN_DENSE);
}

static const tw_model model = {
    .name = "tiny",
    .description = "for tests",
    .dataset = "mnist",
    .height = SIZE,
    .width = SIZE,
    .channels = 1,
    .classes = 4,
    .batch = 2,
    .learning_rate = 0.1f,
    .logits = logits,
};

static tw_dataset *dataset;

static tw_trainer_options options_on(tw_devices *devices)
{
    return (tw_trainer_options){.size = sizeof(tw_trainer_options),
                                .model = &model,
                                .dataset = dataset,
                                .devices = devices,
                                .seed = 7,
                                .towers = bad.towers,
                                .batch = 2};
}

static tw_devices *devices_drawn(void)
{
    tw_devices *devices;
    tw_error error = {0};
    bad.devices = 1 + draw(4);
    bad.towers = bad.devices * (1 + draw(2));
    bad.tower = draw(bad.towers);
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = bad.devices, .cpu_threads = 1}, &devices, &error));
    return devices;
}

/* Trains as far as it goes, and saves: how many steps were good. */
static int64_t good_steps(tw_trainer *trainer, const char *folder, tw_error *error)
{
    tw_trainer_step_result result;
    int64_t good = 0;
    while (good < STEPS && tw_trainer_step(trainer, &result, error) == TW_OK)
        good++;
    if (good == STEPS)
        tw_trainer_save(trainer, folder, 5, error);
    return good;
}

/* True if the run met it. */
static bool make_one(const char *folder)
{
    tw_error error = {0}, found = {0};
    tw_devices *devices = devices_drawn();
    bad.step = draw(STEPS);
    bad.place = (place)draw(NUM_PLACES);
    bad.element = draw(1000);
    bad.in_gradients = draw(3) == 0;
    tw_trainer_options options = options_on(devices);
    tw_trainer *trainer;
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    char begin[64], device[32];
    snprintf(device, sizeof device, "GPU:%s", strrchr(tw_trainer_tower_device(trainer, bad.tower), ':') + 1);
    int64_t good = good_steps(trainer, folder, &error);
    bool met = error.status != TW_OK;
    tw_trainer_destroy(trainer);
    assert_true(error.status == TW_OK || error.status == TW_OUT_OF_RANGE);
    assert_true(met || (bad.place == BEFORE_POOL && !bad.in_gradients)); /* a maximum may pass over it there */
    assert_true(good >= bad.step);
    assert_ok(tw_trainer_find_divergence(&options, met ? good : 0, STEPS, &found, &error));
    snprintf(begin, sizeof begin, "step %lld: node 'tower_%d/", (long long)bad.step, bad.tower);
    const char *where = strstr(found.message, "poison"), *end = strstr(found.message, "' (");
    if (strncmp(found.message, begin, strlen(begin)) != 0 || !where || where > end || !strstr(end, device))
        fail_msg("expected \"%s...poison\" on %s, found \"%s\"", begin, device, found.message);
    tw_devices_destroy(devices);
    return met;
}

static void a_nan_is_traced_to_the_node_that_made_it(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    int met = 0;
    for (int i = 0; i < DRAWN; i++)
        met += make_one(folder);
    print_message("%d drawn, %d of them met by a loss or a variable\n", DRAWN, met);
    assert_true(met >= DRAWN * 3 / 4);
    remove_scratch(folder);
}

/* Whether or not the network shows it, and however many steps come behind. */
static void a_variable_with_a_nan_is_never_saved(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    tw_error error = {0};
    int tried = 0, hidden = 0;
    bad.step = -1;
    for (int i = 0; i < VARIABLES; i++) {
        tw_devices *devices = devices_drawn();
        tw_trainer_options options = options_on(devices);
        tw_trainer *trainer;
        tw_tensor *value = NULL;
        assert_ok(tw_trainer_create(&options, &trainer, &error));
        tw_graph *g = tw_trainer_graph(trainer);
        const tw_variable *v = tw_graph_variable(g, i % tw_graph_num_variables(g));
        if (v->dtype == TW_FLOAT32) {
            tried++;
            assert_ok(tw_session_get_variable(tw_trainer_session(trainer), v, &value, &error));
            ((float *)tw_tensor_data(value))[draw((int)tw_tensor_elements(value))] = NAN;
            assert_ok(tw_session_set_variable(tw_trainer_session(trainer), v, value, &error));
            tw_tensor_release(value);
            hidden += good_steps(trainer, folder, &error) == STEPS;
            assert_int_equal(error.status, TW_OUT_OF_RANGE); /* of a step, or at last of saving */
            error = (tw_error){0};
        }
        tw_trainer_destroy(trainer);
        tw_devices_destroy(devices);
    }
    print_message("%d tried, %d of them shown by no loss\n", tried, hidden);
    assert_true(tried > VARIABLES / 2);
    remove_scratch(folder);
}

static int make_data(void **state)
{
    tw_error error = {0};
    (void)state;
    srand(26);
    return tw_dataset_synthetic(64, SIZE, SIZE, 1, 4, 5, &dataset, &error) != TW_OK;
}

static int drop_data(void **state)
{
    (void)state;
    tw_dataset_destroy(dataset);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nan_is_traced_to_the_node_that_made_it),
        cmocka_unit_test(a_variable_with_a_nan_is_never_saved),
    };
    return cmocka_run_group_tests(tests, make_data, drop_data);
}
