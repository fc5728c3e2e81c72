/* A card in parts (logical GPUs), on a card that is not there (card.h): a step of several is recorded once, traced or
 * not, and nobody is warned. */
#include "testing.h"

#include "card.h"

#include <tower/models.h>
#include <tower/train.h>

enum { PARTS = 4 };
static const char *const parts[PARTS] = {"/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3"};

static int warnings;

static void note(void *user, int level, const char *text)
{
    (void)user;
    warnings += level <= 1;
    if (level <= 1)
        fprintf(stderr, "%s\n", text);
}

/* Steps of one tower on each part. */
static void train(bool traced)
{
    enum { STEPS = 4, RECORDED = 2 }; /* the first runs node by node */
    tw_error error = {0};
    tw_devices *devices;
    tw_dataset *data;
    tw_trainer *trainer;
    tw_trainer_step_result result;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .logical_gpus = PARTS}, &devices, &error));
    assert_ok(tw_dataset_synthetic(4, 32, 32, 3, 10, 1, &data, &error));
    tw_trainer_options options = {.model = tw_model_find("cifar10"), .dataset = data, .devices = devices, .seed = 1,
                                  .batch = 2, .tower_devices = parts, .num_tower_devices = PARTS, .towers = PARTS,
                                  .variables = {.update = TW_UPDATE_REPLICATED}, .session = {.trace = traced}};
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    for (int step = 1; step <= STEPS; step++) {
        long recordings = card_count("cudaGraphInstantiate"), launches = card_count("cudaGraphLaunch");
        assert_ok(tw_trainer_step(trainer, &result, &error));
        if (step >= RECORDED) {
            assert_int_equal(card_count("cudaGraphInstantiate") - recordings, step == RECORDED);
            assert_int_equal(card_count("cudaGraphLaunch") - launches, 1);
        }
    }
    tw_trainer_destroy(trainer);
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
}

static void a_step_of_parts_is_recorded_once(void **state)
{
    (void)state;
    tw_set_log(note, NULL, 1);
    card_be_lazy(1);
    for (int traced = 0; traced < 2; traced++) {
        warnings = 0;
        train(traced);
        assert_int_equal(warnings, 0);
        assert_string_equal(card_leaks(), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_parts_is_recorded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
