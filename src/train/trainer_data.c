/* trainer_data.c - batches that are made on the towers' devices: whether they are, the graph, and the data set's way there.
 * Never here:  batches that come from the host (trainer_input.c). */
#include "base/status.h"

#include <string.h>

#include "train/trainer.h"

/* ---- where ----------------------------------------------------------------------------------------------------- */

/* Towers run on real GPUs, and a tenth of the memory of each holds the data set. */
static bool suits_devices(const tw_trainer *t, const tw_trainer_options *options)
{
    const tw_dataset *d = options->dataset;
    int64_t pixels = (int64_t)tw_dataset_height(d) * tw_dataset_width(d);
    int64_t bytes = tw_dataset_count(d) * (pixels * tw_dataset_channels(d) + (int64_t)sizeof(int32_t));
    for (int i = 0; i < t->towers.count; i++)
        if (tw_device_is(t->towers.devices[i], "CPU"))
            return false;
    for (int i = tw_devices_count(options->devices, "CPU"); i < tw_devices_count(options->devices, NULL); i++) {
        tw_device_info gpu = tw_devices_info(options->devices, i);
        size_t memory = gpu.memory_limit ? gpu.memory_limit : gpu.memory_total;
        if (!gpu.model[0] || bytes > (int64_t)(memory / 10))
            return false;
    }
    return tw_devices_count(options->devices, "GPU") > 0;
}

tw_status twi_trainer_choose_input_place(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    const tw_model *m = t->recipe.model;
    const tw_dataset *d = options->dataset;
    bool can = t->input.kind == TW_INPUT_PIPELINE && !t->asynchronous;
    if (options->input_place < TW_INPUT_AUTO || options->input_place > TW_INPUT_ON_DEVICE)
        return twi_fail(error, TW_INVALID_ARGUMENT, "options.input_place: there is no number %d",
                        (int)options->input_place);
    if (options->input_place == TW_INPUT_ON_DEVICE && !can)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "devices make batches of one stream for towers that step together: they go neither with queues "
                        "nor with asynchronous updates");
    t->input.repeats = options->repeat_batch;
    t->input.on_device = can && (options->input_place == TW_INPUT_ON_DEVICE ||
                                 (options->input_place == TW_INPUT_AUTO && suits_devices(t, options)));
    if (!t->input.on_device)
        return TW_OK;
    int height, width;
    tw_pipeline_options made = {.augmentation = m->training, .crop = m->height};
    tw_status status = tw_pipeline_image_size(d, &made, &height, &width, error);
    return status == TW_OK ? twi_check_images(m, d, height, width, error) : status;
}

tw_input_place tw_trainer_input_place(const tw_trainer *t)
{
    TWI_NEED_OR(t, 0);
    return t->input.on_device ? TW_INPUT_ON_DEVICE : TW_INPUT_ON_HOST;
}

/* ---- in the graph ---------------------------------------------------------------------------------------------- */

/* The first tower on that tower's device. */
static int first_there(const tw_trainer *t, int tower)
{
    int first = 0;
    while (strcmp(t->towers.devices[first], t->towers.devices[tower]) != 0)
        first++;
    return first;
}

static void add_data(tw_graph *g, const char *name, tw_dtype dtype, tw_shape shape, tw_variable *data)
{
    tw_attr attrs[] = {tw_attr_type("dtype", dtype), tw_attr_shape("shape", shape)};
    tw_node *node = tw_add_node(g, "TowerData", name, NULL, 0, attrs, 2);
    *data = (tw_variable){.dtype = dtype, .shape = shape, .handle = tw_node_output(node, 0)};
    data->value = tw_read_variable(g, data->handle);
    if (node)
        data->name = tw_node_name(node);
}

/* Variables begin as they do with input from the host: nothing that is made here counts for their seeds. */
void twi_trainer_build_data(tw_trainer *t, const tw_dataset *d)
{
    tw_graph *g = t->graph;
    tw_shape images = TW_SHAPE(tw_dataset_count(d), tw_dataset_height(d), tw_dataset_width(d), tw_dataset_channels(d));
    tw_enter_uncounted(g);
    for (int i = 0; i < t->towers.count; i++) {
        int first = first_there(t, i);
        if (first < i) {
            memcpy(t->input.data[i], t->input.data[first], sizeof t->input.data[i]);
            continue;
        }
        TW_DEVICE(g, "%s", t->towers.devices[i])
        TW_NAME_SCOPE(g, "data")
        {
            add_data(g, "images", TW_UINT8, images, &t->input.data[i][0]);
            add_data(g, "labels", TW_INT32, TW_SHAPE(tw_dataset_count(d)), &t->input.data[i][1]);
            }
    }
    twi_trainer_enter_step_device(t);
    t->input.position =
        t->input.repeats ? tw_scalar_of(g, TW_INT64, (double)t->step) : tw_variable_read(g, tw_global_step(g));
    tw_leave_device(g);
    tw_leave_uncounted(g);
}

void twi_trainer_build_batch(tw_trainer *t, int tower)
{
    const tw_model *m = t->recipe.model;
    tw_output inputs[] = {t->input.data[tower][0].value, t->input.data[tower][1].value, t->input.position};
    int64_t first = 0;
    for (int i = 0; i < tower; i++)
        first += t->towers.shares[i];
    tw_attr attrs[] = {
        tw_attr_int("batch", t->towers.shares[tower]),
        tw_attr_int("examples", t->towers.examples),
        tw_attr_int("first", first),
        tw_attr_int("seed", t->recipe.setting[TWI_SEED]),
        tw_attr_int("augmentation", m->training),
        tw_attr_int("crop", m->height),
        tw_attr_float("scale", m->scale),
        tw_attr_float("offset", m->offset),
    };
    TW_DEVICE(t->graph, "%s", t->towers.devices[tower])
    {
        tw_node *node = tw_add_node(t->graph, "TowerBatch", NULL, inputs, 3, attrs, sizeof attrs / sizeof *attrs);
        t->input.images[tower] = tw_node_output(node, 0);
        t->input.labels[tower] = tw_node_output(node, 1);
    }
}

/* ---- in the session -------------------------------------------------------------------------------------------- */

static tw_status give(tw_trainer *t, const tw_variable *data, const void *values, tw_error *error)
{
    tw_tensor *value = tw_tensor_wrap(data->dtype, data->shape, (void *)values, NULL, NULL);
    if (!value)
        return twi_fail_memory(error, "creating a trainer");
    tw_status status = tw_session_set_variable(t->session, data, value, error);
    tw_tensor_release(value);
    return status;
}

tw_status twi_trainer_give_data(tw_trainer *t, const tw_dataset *d, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < t->towers.count && status == TW_OK; i++) {
        if (first_there(t, i) < i)
            continue;
        status = give(t, &t->input.data[i][0], tw_dataset_images(d), error);
        if (status == TW_OK)
            status = give(t, &t->input.data[i][1], tw_dataset_labels(d), error);
    }
    return status;
}
