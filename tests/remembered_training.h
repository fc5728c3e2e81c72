/* remembered_training.h - two small trainings whose checkpoints of an earlier revision are kept (tests/golden): every
 * choice in them is another than what nobody asked for. */
#ifndef REMEMBERED_TRAINING_H
#define REMEMBERED_TRAINING_H

#include <tower/models.h>
#include <tower/nn.h>

enum { REMEMBERED_STEPS = 3, REMEMBERED_SIDE = 8 };

static tw_output remembered_logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)training;
    tw_output x = tw_cast(g, tw_flatten(g, images), dtype);
    return tw_dense_layer(g, "logits", tw_cast(g, x, TW_FLOAT32), model->classes, NULL);
}

static const tw_model remembered_model = {
    .name = "remembered",
    .description = "for tests",
    .dataset = "synthetic",
    .height = REMEMBERED_SIDE,
    .width = REMEMBERED_SIDE,
    .channels = 1,
    .classes = 4,
    .batch = 6,
    .training = TW_AUGMENT_PAD_CROP_FLIP,
    .learning_rate = 0.1f,
    .logits = remembered_logits,
};

typedef struct remembered_run {
    const char *name;
    tw_trainer_options options;
} remembered_run;

static const remembered_run remembered_runs[] = {
    {"trainer_before",
     {.towers = 3,
      .batch = 4,
      .seed = -9,
      .dtype = TW_BFLOAT16,
      .optimizer = TW_OPTIMIZER_RMS_PROP,
      .learning_rate = 0.03f,
      .variables = {.update = TW_UPDATE_REPLICATED, .consistency = TW_CONSISTENCY_RELAXED},
      .average = {.all_reduce = "ring"},
      .rule = {.schedule = TW_SCHEDULE_PIECEWISE,
               .unit = TW_RATE_EXAMPLES,
               .num_rates = 2,
               .at = {24, 48},
               .rates = {0.02f, 0.007f},
               .warm_up = 12,
               .scale_rate = true}}},
    {"trainer_before_alone",
     {.towers = 2,
      .optimizer = TW_OPTIMIZER_ADAM,
      .updates = TW_UPDATES_ASYNCHRONOUS,
      .asynchronous = {.order = TW_ORDER_EQUAL},
      .rule = {.schedule = TW_SCHEDULE_POLYNOMIAL, .unit = TW_RATE_STEPS, .length = 5, .end = 0.01f, .power = 2}}},
};

/* Data and devices. */
typedef struct remembered_ground {
    tw_dataset *data;
    tw_devices *devices;
} remembered_ground;

static inline tw_status remembered_open(remembered_ground *ground, tw_error *error)
{
    tw_device_options options = {.cpu_threads = 1, .virtual_gpus = 2, .no_gpus = true};
    *ground = (remembered_ground){0};
    tw_status status = tw_dataset_synthetic(40, REMEMBERED_SIDE, REMEMBERED_SIDE, 1, 4, 3, &ground->data, error);
    return status == TW_OK ? tw_devices_create(&options, &ground->devices, error) : status;
}

static inline void remembered_close(remembered_ground *ground)
{
    tw_dataset_destroy(ground->data);
    tw_devices_destroy(ground->devices);
}

static inline tw_trainer_options remembered_options(const remembered_run *run, const remembered_ground *ground)
{
    tw_trainer_options options = run->options;
    options.model = &remembered_model;
    options.dataset = ground->data;
    options.devices = ground->devices;
    return options;
}

#endif
