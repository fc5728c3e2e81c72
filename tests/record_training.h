/* record_training.h - the CIFAR-10 record's network, an eighth as wide, trained for 20 steps by the trainer as PyTorch
 * trains it (golden/make_record.py), on a device that the test says.
 *
 * Tolerances. Losses are compared in parts of themselves, variables in parts of the root mean square of their values.
 * How far PyTorch's own float32 strays from its float64 after 20 steps golden/record.h says; ten times that is allowed,
 * as in test_training.c: sums have another order here. */
#ifndef RECORD_TRAINING_H
#define RECORD_TRAINING_H

#include "golden_noise.h"
#include "testing.h"

#include "golden/record.h"

#include <math.h>
#include <string.h>
#include <tower/models.h>

#define RECORD_LOSS_TOLERANCE 2e-6
#define RECORD_VALUE_TOLERANCE 1.3e-4

enum { RECORD_IMAGE = 32 * 32 * 3, RECORD_SEED = 10005 }; /* golden/make_record.py has the same seed */

/* Bytes of noise, with three bright rows that tell the class. */
static inline tw_dataset *record_dataset(void)
{
    static uint8_t images[RECORD_EXAMPLES * RECORD_IMAGE];
    int32_t labels[RECORD_EXAMPLES];
    tw_error error = {0};
    tw_dataset *dataset;
    for (uint32_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)((golden_noise(RECORD_SEED + 1000, i) + 1) * 128);
    for (int k = 0; k < RECORD_EXAMPLES; k++) {
        labels[k] = k * 7 % 10;
        uint8_t *rows = images + k * RECORD_IMAGE + 3 * labels[k] * 32 * 3;
        for (int i = 0; i < 3 * 32 * 3; i++)
            rows[i] = (uint8_t)(255 - rows[i] / 4);
    }
    assert_ok(tw_dataset_from("record", images, labels, RECORD_EXAMPLES, 32, 32, 3, 10, &dataset, &error));
    return dataset;
}

static inline void record_set(tw_trainer *trainer, const char *name, uint32_t stream, float spread, float mean,
                              bool dirac)
{
    tw_error error = {0};
    const tw_variable *variable = tw_graph_find_variable(tw_trainer_graph(trainer), name);
    assert_non_null(variable);
    tw_tensor *value = tw_tensor_create(TW_FLOAT32, variable->shape);
    float *values = tw_tensor_data(value);
    for (uint32_t i = 0; i < tw_tensor_elements(value); i++)
        values[i] = golden_noise(RECORD_SEED + stream, i) * spread + mean;
    int64_t inputs = variable->shape.dims[2], filters = variable->shape.dims[3];
    for (int64_t c = 0; dirac && c < inputs && c < filters; c++)
        values[(4 * inputs + c) * filters + c] += 1;
    assert_ok(tw_session_set_variable(tw_trainer_session(trainer), variable, value, &error));
    tw_tensor_release(value);
}

static inline void record_set_first_values(tw_trainer *trainer)
{
    static const int inputs[] = {24, 8, 8, 32, 32, 32};
    record_set(trainer, "whiten/kernel", 107, 0.5f, 0, false);
    record_set(trainer, "head/kernel", 106, 1, 0, false);
    for (int i = 0; i < 6; i++) {
        char name[64];
        snprintf(name, sizeof name, "block%d/conv%d/kernel", i / 2 + 1, i % 2 + 1);
        record_set(trainer, name, 100 + (uint32_t)i, (float)(1 / (2 * sqrt(9.0 * inputs[i]))), 0, true);
    }
}

/* How far a variable is from PyTorch's, as a part of the root mean square. */
static inline double record_distance(tw_trainer *trainer, const struct record_value *golden)
{
    tw_error error = {0};
    tw_tensor *value = NULL;
    const tw_variable *variable = tw_graph_find_variable(tw_trainer_graph(trainer), golden->name);
    assert_non_null(variable);
    assert_ok(tw_session_get_variable(tw_trainer_session(trainer), variable, &value, &error));
    int64_t count = tw_tensor_elements(value);
    double squares = 0, size = golden->norm / sqrt((double)count);
    for (int64_t i = 0; i < count; i++)
        squares += tw_tensor_value(value, i) * tw_tensor_value(value, i);
    double worst = fabs(sqrt(squares) - golden->norm) / golden->norm;
    for (int k = 0; k < RECORD_SAMPLES; k++) {
        int64_t at = k * (count - 1) / (RECORD_SAMPLES - 1);
        worst = fmax(worst, fabs(tw_tensor_value(value, at) - golden->samples[k]) / size);
    }
    tw_tensor_release(value);
    return isnan(squares) ? INFINITY : worst;
}

/* An epoch is 10 steps. In two of them the rates fall to 0, those of the first layer's biases in one. Muon's is a
 * quarter of the record's, rates of what Muon does not update are the record's times the batch. */
static inline tw_model record_model(void)
{
    tw_model model = *tw_model_find("airbench");
    model.width_multiplier = 1 / 8.0f;
    model.rate_ends = 2;
    model.learning_rate /= 4;
    model.groups[0].rate_ends = 1;
    for (int i = 0; i < 3; i++)
        model.groups[i].rate_ratio *= 4 * (float)RECORD_BATCH / (float)model.batch;
    return model;
}

/* `steps` of them, at most RECORD_STEPS. options: what is not said here. */
static inline void assert_record_trains_as_in_pytorch(tw_devices *devices, const char *device, int steps,
                                                      tw_trainer_options options)
{
    tw_error error = {0};
    tw_model model = record_model();
    tw_trainer *trainer;
    tw_dataset *dataset = record_dataset();
    options.model = &model;
    options.dataset = dataset;
    options.devices = devices;
    options.tower_devices = &device;
    options.num_tower_devices = options.towers = 1;
    options.batch = RECORD_BATCH;
    options.seed = 7;
    assert_ok(tw_trainer_create(&options, &trainer, &error));
    record_set_first_values(trainer);
    double losses = 0, values = 0;
    for (int step = 0; step < steps; step++) {
        tw_trainer_step_result result;
        assert_ok(tw_trainer_step(trainer, &result, &error));
        losses = fmax(losses, fabs(result.loss / record_losses[step] - 1));
    }
    for (int i = 0; steps == RECORD_STEPS && i < RECORD_VALUES; i++)
        values = fmax(values, record_distance(trainer, record_values + i));
    print_message("the record's network on %s, %d steps: losses %.1e, values %.1e\n", device, steps, losses, values);
    assert_true(losses <= RECORD_LOSS_TOLERANCE);
    assert_true(values <= RECORD_VALUE_TOLERANCE);
    tw_trainer_destroy(trainer);
    tw_dataset_destroy(dataset);
}

#endif
