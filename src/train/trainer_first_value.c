/* trainer_first_value.c - the first value of a variable that depends on the data: a graph of its own makes it of some
 * images, once, on the host. */
#include "base/status.h"

#include <tower/ops.h>

#include "train/trainer.h"

/* The first `count` examples as evaluation sees them; yours. */
static tw_status first_images(const tw_model *m, const tw_dataset *dataset, int count, tw_tensor **images,
                              tw_error *error)
{
    tw_pipeline *pipeline = NULL;
    tw_tensor *labels = NULL;
    tw_status status = TW_OK;
    tw_pipeline_options options = {.batch = count,
                                   .augmentation = m->evaluation,
                                   .crop = m->height,
                                   .scale = m->scale,
                                   .offset = m->offset,
                                   .threads = 1,
                                   .prefetch = 1};
    *images = NULL;
    TWI_TRY(tw_pipeline_create(dataset, &options, &pipeline, error));
    *images = tw_tensor_create(TW_FLOAT32, TW_SHAPE(count, m->height, m->width, m->channels));
    labels = tw_tensor_create(TW_INT32, TW_SHAPE(count));
    if (!*images || !labels)
        TWI_LEAVE(twi_fail_memory(error, "reading the first examples"));
    TWI_TRY(tw_pipeline_next(pipeline, 0, tw_tensor_data(*images), tw_tensor_data(labels), error));
done:
    tw_tensor_release(labels);
    tw_pipeline_destroy(pipeline);
    return status;
}

/* What the model makes of images; yours. */
static tw_status make_value(const tw_trainer *t, tw_tensor *images, tw_tensor **value, tw_error *error)
{
    const tw_model *m = t->recipe.model;
    tw_session *session = NULL;
    tw_status status = TW_OK;
    tw_graph *g = tw_graph_create();
    if (!g)
        return twi_fail_memory(error, "making a first value");
    tw_feed feed = {.tensor = images};
    tw_output made = {0};
    TW_DEVICE(g, "/cpu:0")
    {
        feed.output = tw_placeholder(g, TW_FLOAT32, tw_tensor_shape(images));
        made = m->data_value(g, m, feed.output);
    }
    TWI_TRY(tw_session_create(g, &(tw_session_options){.devices = t->devices}, &session, error));
    TWI_TRY(tw_session_run(session, &feed, 1, &made, 1, value, error));
done:
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return status;
}

tw_status twi_trainer_begin_with_data(tw_trainer *t, const tw_dataset *dataset, tw_error *error)
{
    const tw_model *m = t->recipe.model;
    tw_tensor *images = NULL, *value = NULL;
    tw_status status = TW_OK;
    if (!m->data_variable || !m->data_value)
        return TW_OK;
    /* It is not trained, so all towers have the same. */
    const tw_variable *variable = tw_graph_find_variable(t->graph, m->data_variable);
    if (!variable || variable->trainable)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "model %s begins '%s' with what the data say, expected a variable "
                        "that is there and not trained",
                        m->name, m->data_variable);
    int64_t most = tw_dataset_count(dataset), count = m->data_images < most ? m->data_images : most;
    TWI_TRY(first_images(m, dataset, (int)count, &images, error));
    TWI_TRY(make_value(t, images, &value, error));
    TWI_TRY(tw_session_set_variable(t->session, variable, value, error));
done:
    tw_tensor_release(images);
    tw_tensor_release(value);
    return status;
}
