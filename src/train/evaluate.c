/* evaluate.c - precision @ 1 of a checkpoint: every example of a data set is looked at once. */
#include "base/sized.h"
#include "base/status.h"

#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

enum { DEFAULT_BATCH = 100 };

typedef struct evaluation {
    int batch;
    tw_graph *graph;
    tw_session *session;
    tw_devices *own_devices;
    tw_pipeline *pipeline;
    tw_checkpoint *checkpoint;
    tw_output images, labels, hits;
    tw_tensor *image_values, *label_values;
} evaluation;

static tw_status build(evaluation *e, const tw_model *m, tw_error *error)
{
    e->graph = tw_graph_create();
    if (!e->graph)
        return twi_fail_memory(error, "building an evaluation");
    e->images = tw_placeholder(e->graph, TW_FLOAT32, TW_SHAPE(e->batch, m->height, m->width, m->channels));
    e->labels = tw_placeholder(e->graph, TW_INT32, TW_SHAPE(e->batch));
    e->hits = tw_in_top_k(e->graph, m->logits(e->graph, m, e->images, TW_FLOAT32, false), e->labels, 1);
    if (tw_graph_status(e->graph) != TW_OK)
        return twi_fail(error, tw_graph_status(e->graph), "%s", tw_graph_message(e->graph));
    return TW_OK;
}

static tw_status count_hits(evaluation *e, int64_t examples, tw_evaluation *result, tw_error *error)
{
    tw_tensor *hits = NULL;
    tw_status status = TW_OK;
    tw_feed feeds[] = {{e->images, e->image_values}, {e->labels, e->label_values}};
    while (result->examples < examples) {
        TWI_TRY(tw_pipeline_next(e->pipeline, 0, tw_tensor_data(e->image_values), tw_tensor_data(e->label_values),
                                 error));
        TWI_TRY(tw_session_run(e->session, feeds, 2, &e->hits, 1, &hits, error));
        for (int i = 0; i < e->batch && result->examples < examples; i++, result->examples++) /* the last batch wraps */
            result->correct += tw_tensor_value(hits, i) != 0;
    }
    result->precision = examples ? (double)result->correct / (double)examples : 0;
done:
    tw_tensor_release(hits);
    return status;
}

static tw_status open_session(evaluation *e, tw_devices *devices, tw_error *error)
{
    tw_session_options options = {.devices = devices, .allow_soft_placement = true};
    if (!devices) {
        tw_status status = tw_devices_create(NULL, &e->own_devices, error);
        if (status != TW_OK)
            return status;
        options.devices = e->own_devices;
    }
    return tw_session_create(e->graph, &options, &e->session, error);
}

tw_status tw_evaluate(const tw_model *model, const tw_dataset *dataset, const char *checkpoint, tw_devices *devices,
                      const tw_evaluation_options *given, tw_evaluation *result, tw_error *error)
{
    TWI_NEED(model, "model", error);
    TWI_NEED(result, "result", error);
    tw_model whole, *m = &whole;
    tw_evaluation_options options;
    evaluation e = {.batch = DEFAULT_BATCH};
    tw_status status;
    int averages = 0;
    *result = (tw_evaluation){0};
    TWI_TRY(twi_sized(m, model, TWI_SIZE(tw_model, logits), error));
    TWI_TRY(twi_sized(&options, given, TWI_SIZE(tw_evaluation_options, batch), error));
    if (options.batch > 0)
        e.batch = options.batch;
    tw_pipeline_options pipeline = {
        .batch = e.batch, .augmentation = m->evaluation, .crop = m->height, .scale = m->scale, .offset = m->offset};
    TWI_TRY(tw_checkpoint_open(checkpoint, &e.checkpoint, error));
    result->step = tw_checkpoint_step(e.checkpoint);
    TWI_TRY(build(&e, m, error));
    TWI_TRY(open_session(&e, devices, error));
    TWI_TRY(tw_restore(e.session, e.checkpoint, &(tw_restore_options){.averages = !options.raw}, &averages, error));
    result->used_averages = averages > 0;
    TWI_TRY(tw_pipeline_create(dataset, &pipeline, &e.pipeline, error));
    if (tw_pipeline_height(e.pipeline) != m->height || tw_pipeline_width(e.pipeline) != m->width ||
        tw_pipeline_channels(e.pipeline) != m->channels)
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "model %s takes %dx%dx%d images; data set %s gives %dx%dx%d",
                         m->name, m->height, m->width, m->channels, tw_dataset_name(dataset),
                         tw_pipeline_height(e.pipeline), tw_pipeline_width(e.pipeline),
                         tw_pipeline_channels(e.pipeline)));
    e.image_values = tw_tensor_create(TW_FLOAT32, TW_SHAPE(e.batch, m->height, m->width, m->channels));
    e.label_values = tw_tensor_create(TW_INT32, TW_SHAPE(e.batch));
    if (!e.image_values || !e.label_values)
        TWI_TRY(twi_fail_memory(error, "evaluating"));
    TWI_TRY(count_hits(&e, tw_dataset_count(dataset), result, error));
done:
    tw_pipeline_destroy(e.pipeline);
    tw_session_destroy(e.session);
    tw_devices_destroy(e.own_devices);
    tw_graph_destroy(e.graph);
    tw_checkpoint_close(e.checkpoint);
    tw_tensor_release(e.image_values);
    tw_tensor_release(e.label_values);
    return status;
}
