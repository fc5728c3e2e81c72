/* test_every_replica.c - over numbers of towers, steps, towers and tensors: a bit of what one tower holds flips, and
 * the next step says so, by step, tensor and device. test_trainer.c tries one. label: slow */
#include "testing.h"

#include <tower/models.h>
#include <tower/train.h>

enum { LATEST = 5 };

static int flipped;

/* A trainer whose towers each hold all variables, after so many steps. */
typedef struct run {
    tw_devices *devices;
    tw_trainer *trainer;
    int towers, steps;
} run;

static tw_dataset *dataset;

static run start(int towers, int steps)
{
    run r = {.towers = towers, .steps = steps};
    tw_error error = {0};
    tw_trainer_step_result result;
    assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = towers, .cpu_threads = 1}, &r.devices, &error));
    tw_trainer_options options = {.size = sizeof options,
                                  .model = tw_model_find("mnist"),
                                  .dataset = dataset,
                                  .devices = r.devices,
                                  .seed = 7,
                                  .towers = towers,
                                  .batch = 2,
                                  .check_replicas = 1,
                                  .variables = {.update = TW_UPDATE_REPLICATED}};
    assert_ok(tw_trainer_create(&options, &r.trainer, &error));
    for (int i = 0; i < steps; i++)
        assert_ok(tw_trainer_step(r.trainer, &result, &error));
    return r;
}

static void finish(run *r)
{
    tw_trainer_destroy(r->trainer);
    tw_devices_destroy(r->devices);
}

/* The number-th of what the tower holds and trains; NULL: there are no more. */
static const tw_variable *copy_of(const run *r, int tower, int number)
{
    char device[16];
    tw_graph *g = tw_trainer_graph(r->trainer);
    snprintf(device, sizeof device, "GPU:%d", tower);
    for (int i = 0; i < tw_graph_num_variables(g); i++) {
        const tw_variable *v = tw_graph_variable(g, i);
        if (v->copy_of && v->copy_of->trainable && strstr(tw_node_device(v->handle.node), device) && number-- == 0)
            return v;
    }
    return NULL;
}

static tw_tensor *value_of(const run *r, const tw_variable *copy)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    assert_ok(tw_session_get_variable(tw_trainer_session(r->trainer), copy, &value, &error));
    return value;
}

static void set(const run *r, const tw_variable *copy, tw_tensor *value)
{
    tw_error error = {0};
    assert_ok(tw_session_set_variable(tw_trainer_session(r->trainer), copy, value, &error));
    tw_tensor_release(value);
}

static void flip(run *r, int tower, const tw_variable *copy)
{
    char step[64], device[32];
    tw_error error = {0};
    tw_trainer_step_result result;
    tw_tensor *value = value_of(r, copy);
    uint32_t *bits = (uint32_t *)tw_tensor_data(value) + tw_tensor_elements(value) / 2;
    *bits ^= UINT32_C(1) << (*bits ? 22 : 30); /* one that no update swallows */
    set(r, copy, value);
    snprintf(step, sizeof step, "step %d: towers hold different values of '", r->steps);
    snprintf(device, sizeof device, "/device:GPU:%d", tower);
    assert_fails(tw_trainer_step(r->trainer, &result, &error), TW_DATA_LOSS, step);
    assert_message(error.message, copy->copy_of->name);
    assert_message(error.message, copy->name);
    assert_message(error.message, device);
    flipped++;
}

static void flip_each(void)
{
    tw_error error = {0};
    assert_ok(tw_dataset_synthetic(64, 28, 28, 1, 10, 5, &dataset, &error));
    for (int towers = 2; towers <= 4; towers++)
        for (int steps = 0; steps < LATEST; steps++)
            for (int tower = 1; tower < towers; tower++)
                for (int number = steps % 2;; number += 2) { /* every second tensor */
                    run r = start(towers, steps);
                    const tw_variable *copy = copy_of(&r, tower, number);
                    if (copy)
                        flip(&r, tower, copy);
                    finish(&r);
                    if (!copy)
                        break;
                }
    tw_dataset_destroy(dataset);
}

static void a_bit_that_flips_is_named_by_step_tensor_and_device(void **state)
{
    (void)state;
    flip_each();
    print_message("%d bits flipped\n", flipped);
    assert_true(flipped >= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bit_that_flips_is_named_by_step_tensor_and_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
