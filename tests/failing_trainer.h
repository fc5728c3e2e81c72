/* failing_trainer.h - a job for failing_job.h: a trainer with all that belongs to it, from the data set to
 * evaluation. */
#ifndef FAILING_TRAINER_H
#define FAILING_TRAINER_H

#include "failing_job.h"

#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

enum { EXAMPLE = 1 + 32 * 32 * 3 };

typedef struct trainer_job {
    job base;
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
    tw_event_writer *events;
    tw_graph *copy;
    void *graph_def;
    size_t graph_def_size;
} trainer_job;

/* Five files of two examples each. */
static void write_examples(const char *folder)
{
    static unsigned char bytes[2 * EXAMPLE];
    for (int i = 1; i <= 5; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/data_batch_%d.bin", folder, i);
        for (int k = 0; k < 2 * EXAMPLE; k++)
            bytes[k] = (unsigned char)(k % EXAMPLE ? (k * 7 + i * 31) % 251 : (k + i) % 10);
        FILE *file = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
        fclose(file);
    }
}

static tw_output tiny_logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)dtype;
    tw_conv2d_options window = {.stride = {2}};
    tw_layer_options options = {.activation = tw_relu};
    tw_output x = tw_conv2d_layer(g, "conv", images, 2, 3, &window, &options);
    tw_add_to_collection(g, "activations", x);
    x = tw_batch_norm_layer(g, "norm", x, 0.9f, 1e-3f, training);
    return tw_dense_layer(g, "logits", tw_flatten(g, x), model->classes, NULL);
}

static const tw_model tiny_model = {
    .name = "tiny",
    .description = "for tests",
    .dataset = "cifar10",
    .height = 8,
    .width = 8,
    .channels = 3,
    .classes = 10,
    .batch = 2,
    .training = TW_AUGMENT_TUTORIAL_TRAIN,
    .evaluation = TW_AUGMENT_TUTORIAL_EVAL,
    .optimizer = TW_OPTIMIZER_MOMENTUM,
    .learning_rate = 0.1f,
    .decay_factor = 0.5f,
    .epochs_per_decay = 1,
    .weight_decay = 1e-3f,
    .average_decay = 0.9f,
    .logits = tiny_logits,
};

static tw_status load_examples(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_dataset_options few = {.allow_fewer = true};
    return tw_dataset_load("cifar10", j->base.folder, TW_SPLIT_TRAIN, &few, &j->dataset, error);
}

static tw_status open_trainer_devices(void *job, tw_error *error)
{
    trainer_job *j = job;
    return tw_devices_create(&(tw_device_options){.virtual_gpus = 2, .cpu_threads = 1}, &j->devices, error);
}

static tw_status open_trainer(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_trainer_options options = {.model = &tiny_model, .dataset = j->dataset, .devices = j->devices, .towers = 2,
                                  .input_threads = 1, .session = {.trace = true}};
    return tw_trainer_create(&options, &j->trainer, error);
}

static tw_status take_step(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_trainer_step_result result;
    tw_status status = tw_trainer_step(j->trainer, &result, error);
    if (status == TW_OK)
        note(&j->base, result.loss);
    return status;
}

static tw_status open_events(void *job, tw_error *error)
{
    trainer_job *j = job;
    return tw_event_writer_create(j->base.folder, &j->events, error);
}

/* A summary that cannot be written does not undo the step. */
static tw_status summarize_step(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_trainer_step_result result;
    return tw_trainer_steps_done(j->trainer) == 2
               ? TW_OK
               : tw_trainer_step_with_summaries(j->trainer, j->events, &result, error);
}

static tw_status write_trace(void *job, tw_error *error)
{
    trainer_job *j = job;
    char path[256];
    snprintf(path, sizeof path, "%s/trace", j->base.folder);
    return tw_session_write_trace(tw_trainer_session(j->trainer), path, error);
}

static tw_status export_graph(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_status status = tw_graph_export(tw_trainer_graph(j->trainer), &j->graph_def, &j->graph_def_size, error);
    if (status == TW_OK)
        status = tw_event_writer_add_graph(j->events, j->graph_def, j->graph_def_size, error);
    if (status != TW_OK) {
        tw_free(j->graph_def);
        j->graph_def = NULL;
    }
    return status;
}

static tw_status import_graph(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_graph_destroy(j->copy);
    j->copy = tw_graph_create();
    return j->copy ? tw_graph_import(j->copy, j->graph_def, j->graph_def_size, NULL, error) : out_of_memory(error);
}

static tw_status save_trainer(void *job, tw_error *error)
{
    trainer_job *j = job;
    return tw_trainer_save(j->trainer, j->base.folder, 2, error);
}

/* Also what the folder holds of other steps is passed over: the older checkpoint is of the same step. */
static tw_status evaluate(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_evaluation e;
    tw_status status =
        tw_evaluate(&tiny_model, j->dataset, j->base.folder, j->devices, NULL, &e, error);
    if (status == TW_OK)
        note(&j->base, (double)e.correct * 1000 + (double)e.step);
    return status;
}

static tw_status resume_trainer(void *job, tw_error *error)
{
    trainer_job *j = job;
    tw_trainer_options options = {.model = &tiny_model, .dataset = j->dataset, .devices = j->devices,
                                  .input_place = TW_INPUT_ON_DEVICE, .resume_from = j->base.folder};
    tw_trainer_destroy(j->trainer);
    j->trainer = NULL;
    return tw_trainer_create(&options, &j->trainer, error);
}

static void close_trainer_job(void *job)
{
    trainer_job *j = job;
    tw_error error = {0};
    if (j->events)
        unlink(tw_event_writer_path(j->events)); /* or thousands would lie in the folder */
    tw_event_writer_close(j->events, &error);
    tw_trainer_destroy(j->trainer);
    tw_devices_destroy(j->devices);
    tw_dataset_destroy(j->dataset);
    tw_graph_destroy(j->copy);
    tw_free(j->graph_def);
}

static const job_kind trainer_job_kind = {
    .bytes = sizeof(trainer_job),
    .prepare = write_examples,
    .stages = {load_examples, open_trainer_devices, open_trainer, take_step, write_trace, open_events, summarize_step,
               export_graph, import_graph, save_trainer, evaluate, resume_trainer, take_step},
    .close = close_trainer_job,
    .saves = 9,
};

#endif
