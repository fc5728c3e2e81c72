/* trainer_data.c - batches that are made on the towers' devices: whether they are, the graph, and the data set's way
 * there.
 *
 * A card does beside each other what does not wait for each other. So there a step takes its batch from variables, in
 * which it waits, and puts that of the next one there, once nobody looks at the old one any more: beside the update,
 * or, where images are cast for the network, beside its way back. Before the first step of a run, and after one that
 * failed, a batch is made by itself.
 * Never here:  batches that come from the host (trainer_input.c). */
#include "base/status.h"

#include <string.h>

#include "train/trainer.h"

/* ---- where ----------------------------------------------------------------------------------------------------- */

/* All towers run on real GPUs. */
static bool are_cards(const tw_trainer *t)
{
    bool all = true;
    for (int i = 0; i < t->towers.count && all; i++) {
        int device = tw_devices_find(t->devices, t->towers.devices[i]);
        all = device >= 0 && !tw_device_is(t->towers.devices[i], "CPU") && tw_devices_info(t->devices, device).model[0];
    }
    return all;
}

/* Towers run on real GPUs, and a tenth of the memory of each holds the data set. */
static bool suits_devices(const tw_trainer *t, const tw_trainer_options *options)
{
    const tw_dataset *d = options->dataset;
    int64_t pixels = (int64_t)tw_dataset_height(d) * tw_dataset_width(d);
    int64_t bytes = tw_dataset_count(d) * (pixels * tw_dataset_channels(d) + (int64_t)sizeof(int32_t));
    for (int i = tw_devices_count(options->devices, "CPU"); i < tw_devices_count(options->devices, NULL); i++) {
        tw_device_info gpu = tw_devices_info(options->devices, i);
        size_t memory = gpu.memory_limit ? gpu.memory_limit : gpu.memory_total;
        if (bytes > (int64_t)(memory / 10))
            return false;
    }
    return are_cards(t);
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
    /* A step that is left out because its gradients overflow is not counted: its batch comes again. */
    t->input.ahead = are_cards(t) && !t->input.repeats && !t->recipe.rule.automatic_loss_scale;
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

/* A variable, and its read. */
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
    if (t->input.ahead) /* a value of its own: what counts the step need not wait for who looks at it */
        t->input.next_position = tw_add(tw_name(g, "next_step"), t->input.position, tw_scalar_of(g, TW_INT64, 1));
    tw_leave_device(g);
    tw_leave_uncounted(g);
}

static void add_batch(tw_trainer *t, int tower, tw_output position, tw_output batch[2])
{
    const tw_model *m = t->recipe.model;
    tw_output inputs[] = {t->input.data[tower][0].value, t->input.data[tower][1].value, position};
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
    tw_node *node = tw_add_node(t->graph, "TowerBatch", NULL, inputs, 3, attrs, sizeof attrs / sizeof *attrs);
    batch[0] = tw_node_output(node, 0);
    batch[1] = tw_node_output(node, 1);
}

/* The tower's batch waits; others take its place, the next one in a step, the first by itself. */
static void add_waiting(tw_trainer *t, int tower, const tw_output next[2])
{
    static const char *const names[] = {"images", "labels"};
    tw_graph *g = t->graph;
    tw_output first[2];
    add_batch(t, tower, t->input.position, first);
    for (int i = 0; i < 2; i++) {
        tw_variable waiting;
        add_data(g, names[i], tw_output_dtype(next[i]), tw_output_shape(next[i]), &waiting);
        t->input.made[2 * tower + i] = tw_assign(g, waiting.handle, next[i]);
        t->input.made_first[2 * tower + i] = tw_assign(g, waiting.handle, first[i]);
        (i ? t->input.labels : t->input.images)[tower] = waiting.value;
    }
}

void twi_trainer_build_batch(tw_trainer *t, int tower)
{
    tw_graph *g = t->graph;
    tw_output batch[2];
    TW_DEVICE(g, "%s", t->towers.devices[tower])
    {
        add_batch(t, tower, t->input.ahead ? t->input.next_position : t->input.position, batch);
        t->input.images[tower] = batch[0];
        t->input.labels[tower] = batch[1];
        if (t->input.ahead) {
            tw_enter_uncounted(g);
            TW_NAME_SCOPE(g, "waiting")
            add_waiting(t, tower, batch);
            tw_leave_uncounted(g);
        }
    }
}

tw_output twi_trainer_build_ahead(tw_trainer *t, tw_output step)
{
    const int count = 2 * t->towers.count;
    if (!t->input.ahead)
        return step;
    t->input.first = tw_group(tw_name(t->graph, "first_batch"), t->input.made_first, count);
    tw_output all[] = {step, tw_group(tw_name(t->graph, "next_batch"), t->input.made, count)};
    return tw_group(tw_name(t->graph, "step_and_next_batch"), all, 2);
}

/* ---- in the session -------------------------------------------------------------------------------------------- */

tw_status twi_trainer_make_first_batch(tw_trainer *t, tw_error *error)
{
    if (!t->input.first.node || t->input.waits)
        return TW_OK;
    tw_status status = tw_session_run(t->session, NULL, 0, &t->input.first, 1, NULL, error);
    t->input.waits = status == TW_OK;
    return status;
}

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
    tw_status status = tw_dataset_read(d, NULL, NULL, error);
    if (status == TW_OK && !tw_dataset_images(d))
        return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                        "devices can make batches only of what lies in memory, and of the %lld images of data set %s "
                        "not all are kept there; options.input_place of the host does without",
                        (long long)tw_dataset_count(d), tw_dataset_name(d));
    for (int i = 0; i < t->towers.count && status == TW_OK; i++) {
        if (first_there(t, i) < i)
            continue;
        status = give(t, &t->input.data[i][0], tw_dataset_images(d), error);
        if (status == TW_OK)
            status = give(t, &t->input.data[i][1], tw_dataset_labels(d), error);
    }
    return status;
}
