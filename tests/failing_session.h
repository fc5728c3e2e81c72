/* failing_session.h - a job for failing_job.h: two towers built by hand, trained, asked, saved and restored. */
#ifndef FAILING_SESSION_H
#define FAILING_SESSION_H

#include "failing_job.h"

#include <tower/nn.h>
#include <tower/train.h>

enum { TOWERS = 2, BATCH = 2, INPUTS = 3, CLASSES = 2, MANY = 512 };

typedef struct session_job {
    job base;
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_checkpoint *checkpoint;
    tw_output initialize, fetches[TOWERS + 1]; /* losses, then the step */
    tw_tensor *results[TOWERS + 1];
    tw_output summary, asked, answer;
    tw_tensor *summary_result, *question, *answer_result;
} session_job;

static tw_output kernel_of(tw_graph *g)
{
    return tw_variable_read(g, tw_graph_find_variable(g, "hidden/kernel"));
}

static tw_output tower_loss(tw_graph *g, int tower)
{
    tw_dtype types[] = {TW_FLOAT32, TW_INT32};
    tw_shape shapes[] = {TW_SHAPE(BATCH, INPUTS), TW_SHAPE(BATCH)};
    tw_output batch[2];
    tw_initializer weights = {TW_INIT_TRUNCATED_NORMAL, 0, 0.5f, 5};
    TW_DEVICE(g, "/cpu:0")
        tw_input(g, "examples", tower, types, shapes, 2, batch);
    tw_layer_options hidden = {.weights = &weights, .activation = tw_relu}, last = {.weights = &weights};
    tw_output x = tw_dense_layer(g, "hidden", batch[0], 3, &hidden);
    x = tw_dropout(g, x, 0.25f, 0);
    x = tw_dense_layer(g, "logits", x, CLASSES, &last);
    tw_add_loss(g, tw_reduce_mean(g, tw_sparse_softmax_cross_entropy(g, x, batch[1]), NULL, 0, false));
    tw_add_loss(g, tw_mul(g, tw_l2_loss(g, kernel_of(g)), tw_scalar(g, 0.1f)));
    return tw_total_loss(g, NULL);
}

static tw_status build(void *job, tw_error *error)
{
    session_job *j = job;
    tw_grads *grads[TOWERS];
    tw_graph_destroy(j->g);
    tw_graph *g = j->g = tw_graph_create();
    if (!g)
        return out_of_memory(error);
    tw_graph_set_seed(g, 3);
    tw_variable *step = tw_global_step(g);
    tw_optimizer *optimizer = tw_momentum(g, tw_exponential_decay(g, 0.1f, step, 2, 0.5f, true), 0.9f, false);
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(g, "/gpu:%d", i)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            j->fetches[i] = tower_loss(g, i);
            grads[i] = tw_compute_gradients(optimizer, j->fetches[i]);
            tw_reuse_variables(g);
        }
    tw_output apply = tw_apply_gradients(optimizer, tw_average_gradients(g, grads, TOWERS, NULL), step);
    tw_averages *averages = tw_moving_averages(g, 0.9f, step, apply);
    if (averages)
        j->fetches[TOWERS] = averages->update;
    j->summary = tw_summary_scalar(g, "sum", tw_reduce_sum(g, kernel_of(g), NULL, 0, false));
    j->asked = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(-1, INPUTS));
    TW_DEVICE(g, "/gpu:1")
        j->answer = tw_reduce_max(g, tw_matmul(g, j->asked, kernel_of(g)), NULL, 0, false);
    j->initialize = tw_initialize_variables(g);
    *error = (tw_error){tw_graph_status(g), {0}};
    snprintf(error->message, sizeof error->message, "%s", tw_graph_message(g));
    return tw_graph_status(g);
}

static tw_status open_devices(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_devices_create(&(tw_device_options){.virtual_gpus = 2, .cpu_threads = 1}, &j->devices, error);
}

static tw_status open_session(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_session_create(j->g, &(tw_session_options){.devices = j->devices, .plain_kernels = true}, &j->s, error);
}

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    (void)user, (void)error;
    for (int i = 0; i < BATCH * INPUTS; i++)
        ((float *)outputs[0])[i] = (float)((3 * i + tower) % 5) / 4;
    for (int i = 0; i < BATCH; i++)
        ((int32_t *)outputs[1])[i] = (i + tower) % CLASSES;
    return TW_OK;
}

static tw_status connect(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_session_set_source(j->s, "examples", fill, NULL, error);
}

static tw_status initialize(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_session_run(j->s, NULL, 0, &j->initialize, 1, NULL, error);
}

static tw_status step(void *job, tw_error *error)
{
    session_job *j = job;
    tw_status status = tw_session_run(j->s, NULL, 0, j->fetches, TOWERS + 1, j->results, error);
    if (status != TW_OK)
        return status;
    for (int i = 0; i < TOWERS; i++)
        note(&j->base, *(float *)tw_tensor_data(j->results[i]));
    return TW_OK;
}

static tw_status summarize(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_session_run(j->s, NULL, 0, &j->summary, 1, &j->summary_result, error);
}

static tw_status ask(session_job *j, int rows, tw_error *error)
{
    tw_tensor_release(j->question);
    j->question = tw_tensor_create(TW_FLOAT32, TW_SHAPE(rows, INPUTS));
    if (!j->question)
        return out_of_memory(error);
    return tw_session_run(j->s, &(tw_feed){j->asked, j->question}, 1, &j->answer, 1, &j->answer_result, error);
}

static tw_status ask_little(void *job, tw_error *error)
{
    session_job *j = job;
    return ask(j, 1, error);
}

/* Arenas grow: the plans of the stages before must find their buffers elsewhere. */
static tw_status ask_much(void *job, tw_error *error)
{
    session_job *j = job;
    return ask(j, MANY, error);
}

static tw_status save(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_save(j->s, j->base.folder, 2, &(tw_save_options){.keep = 2}, error);
}

static tw_status open_checkpoint(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_checkpoint_open(j->base.folder, &j->checkpoint, error);
}

static tw_status restore(void *job, tw_error *error)
{
    session_job *j = job;
    return tw_restore(j->s, j->checkpoint, NULL, NULL, error);
}

static void close_session_job(void *job)
{
    session_job *j = job;
    tw_checkpoint_close(j->checkpoint);
    for (int i = 0; i < TOWERS + 1; i++)
        tw_tensor_release(j->results[i]);
    tw_tensor_release(j->summary_result);
    tw_tensor_release(j->question);
    tw_tensor_release(j->answer_result);
    tw_session_destroy(j->s);
    tw_devices_destroy(j->devices);
    tw_graph_destroy(j->g);
}

static const job_kind session_job_kind = {
    .bytes = sizeof(session_job),
    .stages = {build, open_devices, open_session, connect, initialize, step, ask_little, ask_much, step, summarize,
               save, open_checkpoint, restore, step},
    .close = close_session_job,
    .saves = 10,
    .quiet = 1 << 8 | 1 << 13, /* steps after the first */
};

#endif
