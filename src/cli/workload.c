/* workload.c - see workload.h. */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/nn.h>
#include <tower/ops.h>

struct workload {
    tw_trainer *trainer; /* or the rest: */
    const workload_options *options;
    tw_graph *graph;
    tw_session *session;
    int towers, batch;
    int each;            /* what a tower is asked for: its loss, with accuracy two more */
    tw_output *fetches;  /* [towers * each] */
    tw_tensor **results; /* [towers * each] */
    float *images;       /* one batch, which every tower takes in every step */
    int32_t *labels;
};

/* ---- the network alone ------------------------------------------------------------------------------------- */

static const char *tower_place(const workload *w, int tower)
{
    const tw_trainer_options *o = &w->options->trainer;
    return o->tower_devices[tower % o->num_tower_devices];
}

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    const workload *w = user;
    const tw_model *m = w->options->trainer.model;
    (void)tower;
    (void)error;
    memcpy(outputs[0], w->images, sizeof(float) * (size_t)w->batch * (size_t)(m->height * m->width * m->channels));
    memcpy(outputs[1], w->labels, sizeof(int32_t) * (size_t)w->batch);
    return TW_OK;
}

static const char *place_variable(void *device, const tw_node *node)
{
    return tw_node_is_variable(node) ? device : "";
}

static void build_tower(workload *w, int tower)
{
    const tw_trainer_options *o = &w->options->trainer;
    const tw_model *m = o->model;
    tw_graph *g = w->graph;
    tw_dtype dtype = o->dtype ? o->dtype : TW_FLOAT32;
    tw_output batch[2];
    TW_NAME_SCOPE(g, "tower_%d", tower) {
        tw_input(g, "input", tower, (tw_dtype[]){TW_FLOAT32, TW_INT32},
                 (tw_shape[]){TW_SHAPE(w->batch, m->height, m->width, m->channels), TW_SHAPE(w->batch)}, 2, batch);
        TW_DEVICE(g, "%s", tower_place(w, tower)) {
            tw_enter_device_function(g, place_variable, (void *)(uintptr_t)"/cpu:0");
            tw_output logits = tw_cast(g, m->logits(g, m, batch[0], dtype, false), TW_FLOAT32);
            tw_output each = tw_sparse_softmax_cross_entropy(g, logits, batch[1]);
            tw_output *fetches = w->fetches + tower * w->each;
            fetches[0] = tw_reduce_mean(tw_name(g, "loss"), each, NULL, 0, false);
            for (int k = 1; k < w->each; k++)
                fetches[k] = tw_accuracy(g, logits, batch[1], k == 1 ? 1 : 5);
            tw_leave_device(g);
        }
    }
    tw_reuse_variables(g);
}

static void make_batch(workload *w)
{
    const tw_model *m = w->options->trainer.model;
    int64_t pixels = (int64_t)w->batch * m->height * m->width * m->channels;
    uint32_t x = 1;
    for (int64_t i = 0; i < pixels; i++) {
        x = x * 1664525u + 1013904223u;
        w->images[i] = (float)(x >> 8) / (1 << 23) - 1;
    }
    for (int i = 0; i < w->batch; i++)
        w->labels[i] = i % m->classes;
}

static tw_status no_memory(tw_error *error)
{
    if (error) {
        error->status = TW_RESOURCE_EXHAUSTED;
        snprintf(error->message, sizeof error->message, "out of memory while building the network");
    }
    return TW_RESOURCE_EXHAUSTED;
}

static tw_status open_forward(workload *w, tw_error *error)
{
    const tw_trainer_options *o = &w->options->trainer;
    const tw_model *m = o->model;
    w->towers = o->towers ? o->towers : o->num_tower_devices;
    w->batch = o->batch ? o->batch : m->batch;
    w->each = o->accuracy ? 3 : 1;
    size_t fetches = (size_t)(w->towers * w->each), batch = (size_t)w->batch;
    w->fetches = calloc(fetches, sizeof *w->fetches);
    w->results = calloc(fetches, sizeof(tw_tensor *));
    w->images = calloc(batch * (size_t)(m->height * m->width * m->channels), sizeof *w->images);
    w->labels = calloc(batch, sizeof *w->labels);
    w->graph = tw_graph_create();
    if (!w->fetches || !w->results || !w->images || !w->labels || !w->graph)
        return no_memory(error);
    make_batch(w);
    tw_graph_set_seed(w->graph, o->seed ? o->seed : 1);
    for (int i = 0; i < w->towers; i++)
        build_tower(w, i);
    tw_output initialize = tw_initialize_variables(w->graph);
    tw_session_options session = o->session;
    session.devices = o->devices;
    tw_status status = tw_session_create(w->graph, &session, &w->session, error); /* fails as the graph did */
    if (status == TW_OK)
        status = tw_session_set_source(w->session, "input", fill, w, error);
    if (status == TW_OK)
        status = tw_session_run(w->session, NULL, 0, &initialize, 1, NULL, error);
    return status;
}

static tw_status run_forward(workload *w, int64_t steps, workload_result *result, tw_error *error)
{
    tw_status status =
        tw_session_run_steps(w->session, steps, NULL, 0, w->fetches, w->towers * w->each, w->results, NULL, error);
    float means[3] = {0};
    for (int i = 0; i < w->towers * w->each && status == TW_OK; i++)
        means[i % w->each] += (float)tw_tensor_value(w->results[i], 0) / (float)w->towers;
    *result = (workload_result){means[0], means[1], means[2]};
    return status;
}

/* ---- either ------------------------------------------------------------------------------------------------ */

tw_status workload_open(const workload_options *options, workload **opened, tw_error *error)
{
    workload *w = calloc(1, sizeof *w);
    *opened = NULL;
    if (!w)
        return no_memory(error);
    w->options = options;
    tw_status status = options->forward_only ? open_forward(w, error)
                                             : tw_trainer_create(&options->trainer, &w->trainer, error);
    if (status == TW_OK)
        *opened = w;
    else
        workload_close(w);
    return status;
}

void workload_close(workload *w)
{
    if (!w)
        return;
    for (int i = 0; w->results && i < w->towers * w->each; i++)
        tw_tensor_release(w->results[i]);
    tw_trainer_destroy(w->trainer);
    tw_session_destroy(w->session);
    tw_graph_destroy(w->graph);
    free(w->fetches);
    free(w->results);
    free(w->images);
    free(w->labels);
    free(w);
}

tw_status workload_run(workload *w, int64_t steps, workload_result *result, tw_error *error)
{
    if (!w->trainer)
        return run_forward(w, steps, result, error);
    tw_trainer_step_result step;
    tw_status status = tw_trainer_run_steps(w->trainer, steps, &step, error);
    if (status == TW_OK)
        *result = (workload_result){step.loss, step.top_1, step.top_5};
    return status;
}

int workload_towers(const workload *w)
{
    return w->trainer ? tw_trainer_towers(w->trainer) : w->towers;
}

int64_t workload_examples(const workload *w)
{
    return w->trainer ? tw_trainer_examples(w->trainer) : (int64_t)w->batch * w->towers;
}

const char *workload_device(const workload *w, int tower)
{
    return w->trainer ? tw_trainer_tower_device(w->trainer, tower)
                      : tw_session_device(w->session, w->fetches[tower * w->each].node);
}

tw_session *workload_session(workload *w)
{
    return w->trainer ? tw_trainer_session(w->trainer) : w->session;
}

tw_trainer *workload_trainer(workload *w)
{
    return w->trainer;
}
