/* trainer_input.c - the towers' batches: from pipelines into the session, straight or through queues. */
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

enum { GRACE_SECONDS = 10 };

/* ---- in the graph -------------------------------------------------------------------------------------------- */

/* The next batch of a stream: of tower `number`, or of its own queue, or (0) of the one queue. */
static void add_source(tw_trainer *t, int number, const char *device, tw_output outputs[2])
{
    const tw_model *m = t->recipe.model;
    tw_dtype types[] = {TW_FLOAT32, TW_INT32};
    tw_shape shapes[] = {TW_SHAPE(t->towers.shares[number], m->height, m->width, m->channels),
                         TW_SHAPE(t->towers.shares[number])};
    TW_DEVICE(t->graph, "%s", device)
        tw_input(t->graph, TWI_TRAINER_INPUT, number, types, shapes, 2, outputs);
}

/* The CPU that makes batches for a device that is none: of several tasks the device's own. */
static const char *host_of(const char *device, char *host, size_t size)
{
    bool of_task = tw_device_in_job(device, "worker");
    snprintf(host, size, "%.*s/cpu:0", of_task ? (int)(strrchr(device, '/') - device) : 0, device);
    return host;
}

static bool is_elsewhere(const tw_devices *devices, const char *name)
{
    int device = tw_devices_find(devices, name);
    return device >= 0 && tw_devices_info(devices, device).task != tw_devices_task(devices);
}

void twi_trainer_build_input(tw_trainer *t, int tower)
{
    if (t->input.on_device) {
        twi_trainer_build_batch(t, tower);
        return;
    }
    if (twi_input_reads_files(t->input.kind)) {
        twi_trainer_build_files(t, tower);
        return;
    }
    bool shared = t->input.kind == TW_INPUT_PREFETCH, own = t->input.kind == TW_INPUT_QUEUES;
    const char *device = t->towers.devices[tower];
    tw_output batch[2] = {{0}};
    if (own || (shared && tower == 0)) {
        add_source(t, tower, "/cpu:0", batch);
        TW_DEVICE(t->graph, "/cpu:0")
        t->input.queue = tw_prefetch_queue(t->graph, batch, 2, shared ? 2 * t->towers.count : 2);
    }
    if (shared || own) {
        tw_enter_device(t->graph, "/cpu:0");
        if (shared && tower > 0)
            tw_enter_control(t->graph,
                             t->input.images[tower - 1]); /* in turn, or who gets which batch would be chance */
        tw_dequeue(t->graph, t->input.queue, batch);
        if (shared && tower > 0)
            tw_leave_control(t->graph);
        tw_leave_device(t->graph);
    } else {
        char host[160];
        const char *where = tw_device_is(device, "CPU") ? device : host_of(device, host, sizeof host);
        add_source(t, tower, where, batch);
        t->input.elsewhere[tower] = is_elsewhere(t->devices, where);
    }
    t->input.images[tower] = batch[0];
    t->input.labels[tower] = batch[1];
}

/* ---- in the session ------------------------------------------------------------------------------------------ */

/* The tower's first batch, which stays lent out. */
static tw_status repeat(tw_trainer *t, int tower, void *const *outputs, tw_error *error)
{
    tw_pipeline_batch_view *batch = &t->input.repeated[tower];
    const tw_model *m = t->recipe.model;
    size_t examples = (size_t)t->towers.shares[tower],
           values = (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    if (!batch->images) {
        tw_status status = tw_pipeline_acquire(t->input.pipeline, tower, batch, error);
        if (status != TW_OK)
            return status;
    }
    memcpy(outputs[0], batch->images, sizeof(float) * examples * values);
    memcpy(outputs[1], batch->labels, sizeof(int32_t) * examples);
    return TW_OK;
}

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    tw_trainer *t = user;
    if (t->asynchronous && !t->input.repeated)
        return twi_asynchronous_fill(t, tower, outputs, error);
    if (t->input.repeated)
        return repeat(t, tower, outputs, error);
    if (t->input.num_pipelines > 1)
        return tw_pipeline_next(t->input.pipelines[tower], 0, outputs[0], outputs[1], error);
    return tw_pipeline_next(t->input.pipelines[0], tower, outputs[0], outputs[1], error);
}

tw_status twi_check_images(const tw_model *m, const tw_dataset *d, int height, int width, tw_error *error)
{
    if (height == m->height && width == m->width && tw_dataset_channels(d) == m->channels &&
        tw_dataset_classes(d) <= m->classes)
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT,
                    "model %s takes %dx%dx%d images of at most %d classes; data set %s gives %dx%dx%d of %d", m->name,
                    m->height, m->width, m->channels, m->classes, tw_dataset_name(d), height, width,
                    tw_dataset_channels(d), tw_dataset_classes(d));
}

static tw_status open_pipeline(tw_trainer *t, const tw_trainer_options *options, int number, tw_error *error)
{
    const tw_model *m = t->recipe.model;
    bool one_stream = t->asynchronous && !options->repeat_batch; /* a batch for whoever comes */
    tw_pipeline_options wanted = {
        .towers = one_stream || t->input.kind != TW_INPUT_PIPELINE ? 1 : t->towers.count,
        .shares = t->towers.shares + number,
        .prefetch = !one_stream             ? 0
                    : t->towers.count < 512 ? 2 * t->towers.count
                                            : 1024,
        .seed = (uint64_t)t->recipe.setting[TWI_SEED] + (uint64_t)number,
        .shuffle = true,
        .augmentation = m->training,
        .crop = m->height,
        .scale = m->scale,
        .offset = m->offset,
        .threads = options->input_threads,
        .untaken = one_stream || t->input.kind != TW_INPUT_PIPELINE ? NULL : t->input.elsewhere,
        .first_step = t->input.kind == TW_INPUT_PREFETCH ? t->step * t->towers.count : t->step,
    };
    tw_status status = tw_pipeline_create(options->dataset, &wanted, &t->input.pipelines[number], error);
    if (status != TW_OK)
        return status;
    tw_pipeline *p = t->input.pipelines[number];
    return twi_check_images(m, options->dataset, tw_pipeline_height(p), tw_pipeline_width(p), error);
}

/* What sources of the session take batches from. */
static tw_status open_pipelines(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    int count = t->input.kind == TW_INPUT_QUEUES ? t->towers.count : 1;
    tw_status status = TW_OK;
    t->input.pipelines = twi_alloc_array((size_t)count, sizeof *t->input.pipelines);
    if (!t->input.pipelines)
        return twi_fail_memory(error, "creating a trainer");
    for (; t->input.num_pipelines < count && status == TW_OK; t->input.num_pipelines++)
        status = open_pipeline(t, options, t->input.num_pipelines, error);
    t->input.pipeline = t->input.pipelines[0];
    if (status == TW_OK && options->repeat_batch) {
        t->input.repeated = twi_alloc_array((size_t)t->towers.count, sizeof *t->input.repeated);
        status = t->input.repeated ? TW_OK : twi_fail_memory(error, "creating a trainer");
    }
    if (status == TW_OK)
        status = tw_session_set_source(t->session, TWI_TRAINER_INPUT, fill, t, error);
    return status;
}

tw_status twi_trainer_open_input(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    if (t->input.on_device)
        return twi_trainer_give_data(t, options->dataset, error);
    tw_status status = twi_input_reads_files(t->input.kind) ? TW_OK : open_pipelines(t, options, error);
    if (status == TW_OK && t->input.kind != TW_INPUT_PIPELINE)
        status = tw_coordinator_create(&t->input.coordinator, error);
    if (status == TW_OK && t->input.coordinator)
        status = tw_start_queue_runners(t->session, t->input.coordinator, error);
    return status;
}

tw_status twi_input_explain(twi_input *input, tw_status status, tw_error *error)
{
    tw_error why = {0};
    if (!input->coordinator || !tw_coordinator_should_stop(input->coordinator) ||
        tw_coordinator_join(input->coordinator, GRACE_SECONDS, &why) == TW_OK || why.status == TW_DEADLINE_EXCEEDED)
        return status;
    return twi_fail(error, why.status, "%s", why.message);
}

void twi_input_stop(twi_input *input)
{
    for (int i = 0; input->coordinator && i < input->num_pipelines; i++)
        if (input->pipelines[i])
            tw_pipeline_cancel(input->pipelines[i]); /* wakes threads that fill queues */
    tw_coordinator_destroy(input->coordinator);
}

void tw_trainer_input_statistics(const tw_trainer *t, tw_pipeline_statistics *statistics)
{
    TWI_NEED_OR(t, );
    TWI_NEED_OR(statistics, );
    *statistics = (tw_pipeline_statistics){0};
    if (twi_input_reads_files(t->input.kind))
        statistics->threads = t->input.threads * (t->input.kind == TW_INPUT_FILES ? t->towers.count : 1);
    for (int i = 0; i < t->input.num_pipelines; i++) {
        tw_pipeline_statistics s;
        tw_pipeline_get_statistics(t->input.pipelines[i], &s);
        statistics->batches += s.batches;
        statistics->waits += s.waits;
        statistics->wait_seconds += s.wait_seconds;
        statistics->fill_seconds += s.fill_seconds;
        statistics->threads += s.threads;
    }
}

void twi_input_close(twi_input *input, int towers)
{
    for (int i = 0; input->repeated && i < towers; i++)
        if (input->repeated[i].images)
            tw_pipeline_release(input->pipeline, &input->repeated[i]);
    twi_free(input->repeated);
    for (int i = 0; i < input->num_pipelines; i++)
        tw_pipeline_destroy(input->pipelines[i]);
    twi_free(input->pipelines);
}
