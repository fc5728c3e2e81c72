/* trainer.c - the training loop of one model over several towers, made of the public functions alone.
 *
 * A tower is a name scope on a device; all towers share the variables, which lie on one device (the CPU, as in the
 * tutorial); their gradients are averaged there. Nothing that computes a number here knows how many devices there are,
 * which is why resuming on others gives the same bits. */
#define _GNU_SOURCE
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

#define INPUT "input" /* the session's source */

/* What must agree between a checkpoint and the run that resumes it; saved as int64 scalars of these names. */
enum { TOWERS, BATCH, SEED, DTYPE, OPTIMIZER, NUM_SETTINGS };
static const struct {
    const char *name, *words;
} settings[NUM_SETTINGS] = {
    [TOWERS] = {"tower/towers", "number of towers"},
    [BATCH] = {"tower/batch", "batch size per tower"},
    [SEED] = {"tower/seed", "seed"},
    [DTYPE] = {"tower/dtype", "dtype"},
    [OPTIMIZER] = {"tower/optimizer", "optimizer"},
};

struct tw_trainer {
    const tw_model *model;
    int64_t setting[NUM_SETTINGS];
    int towers, batch;
    int64_t step;
    tw_graph *graph;
    tw_session *session;
    tw_pipeline *pipeline;
    const char **tower_devices; /* [towers], as asked */
    tw_output *images, *labels; /* [towers] */
    tw_output *fetches;         /* losses of all towers, the training step, then what summaries want */
    tw_tensor **results;        /* [num_fetches] what they gave, reused from step to step */
    int num_fetches;            /* with those of summaries */
    int num_parts;              /* losses that the last tower's is the sum of; fetched behind the rate */
    float *losses;              /* [towers] */
    tw_grads *average;
    tw_output rate;
    bool keep_batch;            /* the next batch of the last tower is wanted for summaries, here: */
    tw_tensor *kept_images, *kept_labels;
    tw_plan_info plan;          /* of a step, once one has run */
    bool planned;
};

/* ---- settings --------------------------------------------------------------------------------------------- */

static tw_status read_setting(tw_checkpoint *checkpoint, int i, int64_t *value, tw_error *error)
{
    tw_tensor *tensor = NULL;
    tw_status status = tw_checkpoint_read(checkpoint, settings[i].name, &tensor, error);
    if (status != TW_OK)
        return status;
    bool plausible = tw_tensor_elements(tensor) == 1 && tw_tensor_dtype(tensor) == TW_INT64;
    *value = plausible ? *(int64_t *)tw_tensor_data(tensor) : 0;
    tw_tensor_release(tensor);
    if (plausible && (i == SEED || (*value >= 1 && *value <= 1 << 20)))
        return TW_OK;
    return twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not a sensible number", tw_checkpoint_path(checkpoint),
                    settings[i].name);
}

/* "sgd", "bfloat16", "64": a setting as a person would give it. */
static const char *setting_text(int i, int64_t value, char text[32])
{
    static const char *const optimizers[] = {
        [TW_MODEL_GRADIENT_DESCENT] = "sgd", [TW_MODEL_MOMENTUM] = "momentum", [TW_MODEL_ADAM] = "adam"};
    if (i == DTYPE)
        return tw_dtype_name((tw_dtype)value);
    if (i == OPTIMIZER && value >= TW_MODEL_GRADIENT_DESCENT && value <= TW_MODEL_ADAM)
        return optimizers[value];
    snprintf(text, 32, "%lld", (long long)value);
    return text;
}

/* What was asked for, else what the checkpoint (may be NULL) says, else 0. Asking for something else than it says is an
 * error; a checkpoint by somebody else, which says nothing, is taken as it is. */
static tw_status find_settings(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                               tw_error *error)
{
    const int64_t asked[NUM_SETTINGS] = {options->towers, options->batch, options->seed, options->dtype,
                                         options->optimizer};
    for (int i = 0; i < NUM_SETTINGS; i++) {
        t->setting[i] = asked[i];
        if (!checkpoint || tw_checkpoint_find(checkpoint, settings[i].name) < 0)
            continue;
        int64_t saved;
        char before[32], now[32];
        tw_status status = read_setting(checkpoint, i, &saved, error);
        if (status != TW_OK)
            return status;
        if (asked[i] && asked[i] != saved)
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "checkpoint %s was made with %s %s, but %s was asked for: leave that out to resume, or "
                            "train into another directory",
                            tw_checkpoint_path(checkpoint), settings[i].words, setting_text(i, saved, before),
                            setting_text(i, asked[i], now));
        t->setting[i] = saved;
    }
    return TW_OK;
}

/* ---- the graph -------------------------------------------------------------------------------------------- */

static bool is_cpu(const char *device)
{
    return strncasecmp(device, "cpu", 3) == 0 || strcasestr(device, "/cpu") || strcasestr(device, "device:cpu");
}

static tw_status choose_devices(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    int gpus = tw_devices_count(options->devices, "GPU"), cpus = tw_devices_count(options->devices, "CPU");
    int count = options->num_tower_devices ? options->num_tower_devices : gpus ? gpus : cpus;
    if (t->setting[TOWERS] == 0)
        t->setting[TOWERS] = count;
    t->towers = (int)t->setting[TOWERS];
    t->tower_devices = twi_alloc_array((size_t)t->towers, sizeof *t->tower_devices);
    if (!t->tower_devices)
        return twi_fail_memory(error, "creating a trainer");
    for (int i = 0; i < t->towers; i++) /* a set of devices lists CPUs first */
        t->tower_devices[i] = options->num_tower_devices
                                  ? options->tower_devices[i % count]
                                  : tw_devices_info(options->devices, (gpus ? cpus : 0) + i % count).name;
    return TW_OK;
}

static void build_input(tw_trainer *t, int tower)
{
    const tw_model *m = t->model;
    tw_dtype types[] = {TW_FLOAT32, TW_INT32};
    tw_shape shapes[] = {TW_SHAPE(t->batch, m->height, m->width, m->channels), TW_SHAPE(t->batch)};
    tw_output outputs[2];
    TW_DEVICE(t->graph, "%s", is_cpu(t->tower_devices[tower]) ? t->tower_devices[tower] : "/cpu:0")
        tw_input(t->graph, INPUT, tower, types, shapes, 2, outputs);
    t->images[tower] = outputs[0];
    t->labels[tower] = outputs[1];
}

/* Models ask for their variables inside a tower's device scope; they are to lie where the options say. */
static const char *place_variable(void *home, const tw_node *node)
{
    return strcmp(tw_node_op(node), "VarHandleOp") == 0 ? home : "";
}

static void build_tower(tw_trainer *t, int tower, const char *home, tw_optimizer *optimizer, tw_grads **grads)
{
    tw_graph *g = t->graph;
    TW_NAME_SCOPE(g, "tower_%d", tower) {
        build_input(t, tower);
        TW_DEVICE(g, "%s", t->tower_devices[tower]) {
            tw_enter_device_function(g, place_variable, (void *)home);
            t->fetches[tower] = tw_model_loss(g, t->model, t->images[tower], t->labels[tower],
                                              (tw_dtype)t->setting[DTYPE]);
            tw_leave_device(g);
            *grads = tw_compute_gradients(optimizer, t->fetches[tower]);
        }
    }
    tw_reuse_variables(g);
}

/* What summaries look at besides the towers' losses: the rate, what the last tower's loss is made of, and the averaged
 * gradients. Variables and activations are read on their own. */
static tw_status list_fetches(tw_trainer *t, tw_error *error)
{
    char scope[32];
    snprintf(scope, sizeof scope, "tower_%d", t->towers - 1);
    t->num_parts = tw_get_collection(t->graph, "losses", scope, NULL, 0);
    int first = t->towers + 1, most = first + 1 + t->num_parts + t->average->count;
    tw_output *fetches = twi_alloc_array((size_t)most, sizeof *fetches);
    t->results = twi_alloc_array((size_t)most, sizeof *t->results);
    if (!fetches || !t->results) {
        twi_free(fetches);
        return twi_fail_memory(error, "creating a trainer");
    }
    memcpy(fetches, t->fetches, sizeof *fetches * (size_t)first);
    twi_free(t->fetches);
    t->fetches = fetches;
    t->num_fetches = first;
    fetches[t->num_fetches++] = t->rate;
    tw_get_collection(t->graph, "losses", scope, fetches + t->num_fetches, t->num_parts);
    t->num_fetches += t->num_parts;
    for (int i = 0; i < t->average->count; i++)
        if (t->average->gradients[i].node)
            fetches[t->num_fetches++] = t->average->gradients[i];
    return TW_OK;
}

/* ---- the recipe ---- */

static int64_t steps_of_epochs(double steps_per_epoch, double epochs)
{
    double steps = floor(steps_per_epoch * epochs);
    return steps < 1 ? 1 : (int64_t)steps;
}

static tw_output build_rate(tw_graph *g, const tw_model *m, float rate, double steps_per_epoch)
{
    const tw_variable *step = tw_global_step(g);
    int64_t boundaries[TW_MOST_RATE_STEPS];
    float rates[TW_MOST_RATE_STEPS + 1] = {rate};
    int count = 0;
    if (m->epochs_per_decay > 0)
        return tw_exponential_decay(g, rate, step, (double)steps_of_epochs(steps_per_epoch, m->epochs_per_decay),
                                    m->decay_factor, true);
    for (; count < TW_MOST_RATE_STEPS && m->rate_steps[count].factor > 0; count++) {
        boundaries[count] = steps_of_epochs(steps_per_epoch, m->rate_steps[count].epoch);
        if (count && boundaries[count] <= boundaries[count - 1]) /* epochs of less than a step */
            boundaries[count] = boundaries[count - 1] + 1;
        rates[count + 1] = rate * m->rate_steps[count].factor;
    }
    return count ? tw_piecewise_constant(g, step, boundaries, count, rates) : tw_scalar(g, rate);
}

static tw_optimizer *build_optimizer(tw_graph *g, tw_model_optimizer kind, tw_output rate)
{
    switch (kind) {
    case TW_MODEL_MOMENTUM:
        return tw_momentum(g, rate, 0.9f, false);
    case TW_MODEL_ADAM:
        return tw_adam(g, rate, 0.9f, 0.999f, 1e-8f);
    default:
        return tw_gradient_descent(g, rate);
    }
}

/* What runs with the update: the moving averages of the variables, and tower 0's updates of batch normalization. The
 * other towers' would overwrite each other in no order. */
static tw_output finish_step(tw_graph *g, const tw_model *m, tw_output apply)
{
    if (m->average_decay > 0) {
        tw_averages *averages = tw_moving_averages(g, m->average_decay, tw_global_step(g), apply);
        apply = averages ? averages->update : (tw_output){0};
    }
    int count = tw_get_collection(g, "update_ops", "tower_0", NULL, 0);
    if (count == 0)
        return apply;
    tw_output whole = {0}, *parts = twi_alloc_array((size_t)count + 1, sizeof *parts);
    if (parts) {
        parts[0] = apply;
        tw_get_collection(g, "update_ops", "tower_0", parts + 1, count);
        whole = tw_group(tw_name(g, "train"), parts, count + 1);
    }
    twi_free(parts);
    return whole; /* dead when memory ran out */
}

static tw_status build_graph(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    const tw_model *m = t->model;
    const char *home = options->variable_device ? options->variable_device : "/cpu:0";
    tw_graph *g = t->graph;
    tw_grads **grads = twi_alloc_array((size_t)t->towers, sizeof *grads);
    if (!grads)
        return twi_fail_memory(error, "creating a trainer");
    tw_graph_set_seed(g, t->setting[SEED]);
    tw_enter_device(g, "%s", home);
    tw_variable *step = tw_global_step(g);
    float rate = options->learning_rate > 0 ? options->learning_rate : m->learning_rate;
    t->rate = build_rate(g, m, rate, (double)tw_dataset_count(options->dataset) / ((double)t->batch * t->towers));
    tw_optimizer *optimizer = build_optimizer(g, (tw_model_optimizer)t->setting[OPTIMIZER], t->rate);
    for (int i = 0; i < t->towers; i++)
        build_tower(t, i, home, optimizer, &grads[i]);
    t->average = tw_average_gradients(g, grads, t->towers, NULL);
    tw_output apply = tw_apply_gradients(optimizer, t->average, step);
    t->fetches[t->towers] = finish_step(g, m, apply);
    tw_leave_device(g);
    twi_free(grads);
    if (tw_graph_status(g) != TW_OK)
        return twi_fail(error, tw_graph_status(g), "%s", tw_graph_message(g));
    if (!t->fetches[t->towers].node)
        return twi_fail_memory(error, "creating a trainer");
    return list_fetches(t, error);
}

/* ---- input ------------------------------------------------------------------------------------------------ */

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    tw_trainer *t = user;
    tw_status status = tw_pipeline_next(t->pipeline, tower, outputs[0], outputs[1], error);
    if (status == TW_OK && t->keep_batch && tower == t->towers - 1) {
        memcpy(tw_tensor_data(t->kept_images), outputs[0], tw_tensor_bytes(t->kept_images));
        memcpy(tw_tensor_data(t->kept_labels), outputs[1], tw_tensor_bytes(t->kept_labels));
    }
    return status;
}

static tw_status open_input(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    const tw_model *m = t->model;
    tw_pipeline_options pipeline = {
        .batch = t->batch,
        .towers = t->towers,
        .seed = (uint64_t)t->setting[SEED],
        .shuffle = true,
        .augmentation = m->training,
        .crop = m->height,
        .scale = m->scale,
        .offset = m->offset,
        .threads = options->input_threads,
        .first_step = t->step,
    };
    tw_status status = tw_pipeline_create(options->dataset, &pipeline, &t->pipeline, error);
    if (status != TW_OK)
        return status;
    if (tw_pipeline_height(t->pipeline) != m->height || tw_pipeline_width(t->pipeline) != m->width ||
        tw_pipeline_channels(t->pipeline) != m->channels || tw_dataset_classes(options->dataset) > m->classes)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "model %s takes %dx%dx%d images of at most %d classes; data set %s gives %dx%dx%d of %d",
                        m->name, m->height, m->width, m->channels, m->classes, tw_dataset_name(options->dataset),
                        tw_pipeline_height(t->pipeline), tw_pipeline_width(t->pipeline),
                        tw_pipeline_channels(t->pipeline), tw_dataset_classes(options->dataset));
    return tw_session_set_source(t->session, INPUT, fill, t, error);
}

/* ---- beginning and ending --------------------------------------------------------------------------------- */

/* The checkpoint to resume from; NULL if there is none. */
static tw_status open_checkpoint(const char *path, tw_checkpoint **checkpoint, tw_error *error)
{
    char latest[4096];
    *checkpoint = NULL;
    if (!path)
        return TW_OK;
    tw_error nothing = {0};
    tw_checkpoint_list *list;
    tw_status status = tw_checkpoint_latest(path, latest, sizeof latest, NULL, &nothing);
    if (status == TW_OK)
        return tw_checkpoint_open(latest, checkpoint, error);
    if (status != TW_NOT_FOUND)
        return twi_fail(error, status, "%s", nothing.message);
    if (tw_checkpoint_list_open(path, &list, NULL) == TW_OK) { /* a directory: there is none, or all are damaged */
        int damaged = tw_checkpoint_list_count(list);
        tw_checkpoint_list_close(list);
        return damaged ? twi_fail(error, TW_DATA_LOSS, "%s", nothing.message) : TW_OK;
    }
    status = tw_checkpoint_open(path, checkpoint, &nothing); /* a checkpoint's own path */
    return status == TW_OK || status == TW_NOT_FOUND ? TW_OK : twi_fail(error, status, "%s", nothing.message);
}

static tw_status restore(tw_trainer *t, tw_checkpoint *checkpoint, tw_error *error)
{
    tw_tensor *step = NULL;
    tw_status status = tw_restore(t->session, checkpoint, NULL, NULL, error);
    if (status == TW_OK)
        status = tw_session_get_variable(t->session, tw_global_step(t->graph), &step, error);
    if (status == TW_OK)
        t->step = *(int64_t *)tw_tensor_data(step);
    tw_tensor_release(step);
    return status;
}

static tw_status make_arrays(tw_trainer *t, tw_error *error)
{
    size_t n = (size_t)t->towers;
    const tw_model *m = t->model;
    t->images = twi_alloc_array(n, sizeof *t->images);
    t->labels = twi_alloc_array(n, sizeof *t->labels);
    t->losses = twi_alloc_array(n, sizeof *t->losses);
    t->fetches = twi_alloc_array(n + 1, sizeof *t->fetches);
    t->kept_images = tw_tensor_create(TW_FLOAT32, TW_SHAPE(t->batch, m->height, m->width, m->channels));
    t->kept_labels = tw_tensor_create(TW_INT32, TW_SHAPE(t->batch));
    t->graph = tw_graph_create();
    if (t->images && t->labels && t->losses && t->fetches && t->graph && t->kept_images && t->kept_labels)
        return TW_OK;
    return twi_fail_memory(error, "creating a trainer");
}

tw_status tw_trainer_create(const tw_trainer_options *options, tw_trainer **result, tw_error *error)
{
    tw_status status;
    tw_checkpoint *checkpoint = NULL;
    tw_trainer *t = twi_alloc(sizeof *t);
    *result = NULL;
    if (!t)
        return twi_fail_memory(error, "creating a trainer");
    if (!options->model || !options->dataset || !options->devices)
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "a trainer needs a model, a data set and devices"));
    t->model = options->model;
    TWI_TRY(open_checkpoint(options->resume_from, &checkpoint, error));
    TWI_TRY(find_settings(t, options, checkpoint, error));
    t->setting[BATCH] = t->setting[BATCH] ? t->setting[BATCH] : t->model->batch;
    t->setting[SEED] = t->setting[SEED] ? t->setting[SEED] : 1;
    t->setting[DTYPE] = t->setting[DTYPE] ? t->setting[DTYPE] : TW_FLOAT32;
    t->setting[OPTIMIZER] = t->setting[OPTIMIZER] ? t->setting[OPTIMIZER] : t->model->optimizer;
    t->setting[OPTIMIZER] = t->setting[OPTIMIZER] ? t->setting[OPTIMIZER] : TW_MODEL_GRADIENT_DESCENT;
    t->batch = (int)t->setting[BATCH];
    TWI_TRY(choose_devices(t, options, error));
    TWI_TRY(make_arrays(t, error));
    TWI_TRY(build_graph(t, options, error));
    tw_session_options session = options->session;
    session.devices = options->devices;
    tw_output initialize = tw_initialize_variables(t->graph);
    TWI_TRY(tw_session_create(t->graph, &session, &t->session, error));
    if (checkpoint)
        TWI_TRY(restore(t, checkpoint, error));
    else
        TWI_TRY(tw_session_run(t->session, NULL, 0, &initialize, 1, NULL, error));
    TWI_TRY(open_input(t, options, error));
    *result = t;
    t = NULL;
done:
    tw_checkpoint_close(checkpoint);
    tw_trainer_destroy(t);
    return status;
}

void tw_trainer_destroy(tw_trainer *t)
{
    if (!t)
        return;
    for (int i = 0; t->results && i < t->num_fetches; i++)
        tw_tensor_release(t->results[i]);
    tw_session_destroy(t->session);
    tw_pipeline_destroy(t->pipeline);
    tw_graph_destroy(t->graph);
    tw_tensor_release(t->kept_images);
    tw_tensor_release(t->kept_labels);
    twi_free(t->tower_devices);
    twi_free(t->images);
    twi_free(t->labels);
    twi_free(t->losses);
    twi_free(t->fetches);
    twi_free(t->results);
    twi_free(t);
}

/* ---- stepping --------------------------------------------------------------------------------------------- */

static tw_status take_step(tw_trainer *t, int num_fetches, tw_trainer_step_result *result, tw_error *error)
{
    tw_status status = tw_session_run(t->session, NULL, 0, t->fetches, num_fetches, t->results, error);
    if (status != TW_OK)
        return twi_prefix(error, "step %lld", (long long)t->step), status;
    if (!t->planned) {
        status = tw_session_plan_info(t->session, &t->plan, error);
        if (status != TW_OK)
            return status;
        t->planned = true;
    }
    double sum = 0;
    for (int i = 0; i < t->towers; i++) {
        t->losses[i] = *(float *)tw_tensor_data(t->results[i]);
        if (!isfinite(t->losses[i]))
            return twi_fail(error, TW_OUT_OF_RANGE, "Model diverged with loss = %s at step %lld in tower_%d (%s)",
                            isnan(t->losses[i]) ? "NaN" : "infinity", (long long)t->step, i, t->tower_devices[i]);
        sum += t->losses[i];
    }
    *result = (tw_trainer_step_result){t->step++, (float)(sum / t->towers), t->losses};
    return TW_OK;
}

tw_status tw_trainer_step(tw_trainer *t, tw_trainer_step_result *result, tw_error *error)
{
    return take_step(t, t->towers + 1, result, error);
}

/* ---- summaries -------------------------------------------------------------------------------------------- */

static tw_status write_losses(tw_trainer *t, tw_event_writer *events, const tw_trainer_step_result *r, tw_error *error)
{
    tw_status status;
    int rate = t->towers + 1;
    TWI_TRY(tw_event_writer_add_scalar(events, "total_loss", r->step, r->loss, error));
    for (int i = 0; i < t->towers && t->towers > 1; i++) {
        char tag[64];
        snprintf(tag, sizeof tag, "towers/%d/total_loss", i);
        TWI_TRY(tw_event_writer_add_scalar(events, tag, r->step, r->tower_losses[i], error));
    }
    TWI_TRY(tw_event_writer_add_scalar(events, "learning_rate", r->step, *(float *)tw_tensor_data(t->results[rate]),
                                       error));
    for (int i = rate + 1; i <= rate + t->num_parts; i++) {
        char tag[300];
        tw_strip_tower_name(tw_node_name(t->fetches[i].node), tag, sizeof tag);
        TWI_TRY(tw_event_writer_add_scalar(events, tag, r->step, *(float *)tw_tensor_data(t->results[i]), error));
    }
done:
    return status;
}

/* Values that are not finite have no histogram, and do not end training: the loss of a step does, which names it. */
static tw_status write_histogram(tw_event_writer *events, const char *tag, int64_t step, const tw_tensor *tensor,
                                 tw_error *error)
{
    tw_error reason = {0};
    tw_status status = tw_event_writer_add_histogram(events, tag, step, tensor, &reason);
    if (status == TW_OK)
        return TW_OK;
    if (status != TW_INVALID_ARGUMENT)
        return twi_fail(error, status, "%s", reason.message);
    twi_log(TWI_LOG_INFO, "step %lld: %s; it is left out", (long long)step, reason.message);
    return TW_OK;
}

/* Variables as they are after the step, gradients as they were in it. */
static tw_status write_variables(tw_trainer *t, tw_event_writer *events, int64_t step, tw_error *error)
{
    int at = t->towers + 2 + t->num_parts;
    for (int i = 0; i < t->average->count; i++) {
        const tw_variable *variable = t->average->variables[i];
        tw_tensor *value = NULL;
        tw_status status = tw_session_get_variable(t->session, variable, &value, error);
        if (status == TW_OK)
            status = write_histogram(events, variable->name, step, value, error);
        tw_tensor_release(value);
        if (status == TW_OK && t->average->gradients[i].node) {
            char tag[300];
            snprintf(tag, sizeof tag, "%s/gradients", variable->name);
            status = write_histogram(events, tag, step, t->results[at++], error);
        }
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static float share_of_zeros(const tw_tensor *tensor)
{
    int64_t zeros = 0, count = tw_tensor_elements(tensor);
    const float *floats = tw_tensor_data(tensor);
    const uint16_t *bfloats = tw_tensor_data(tensor);
    switch (tw_tensor_dtype(tensor)) { /* millions of values: the loops for the types that networks have are vectors' */
    case TW_FLOAT32:
        for (int64_t i = 0; i < count; i++)
            zeros += floats[i] == 0;
        break;
    case TW_BFLOAT16:
        for (int64_t i = 0; i < count; i++)
            zeros += (bfloats[i] & 0x7fff) == 0;
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            zeros += tw_tensor_value(tensor, i) == 0;
    }
    return count ? (float)zeros / (float)count : 0;
}

/* Runs the last tower's network forward once more, on the batch it has just seen, with the new variables. */
static tw_status write_activations(tw_trainer *t, tw_event_writer *events, int64_t step, tw_error *error)
{
    enum { MOST = 128 };
    tw_output outputs[MOST];
    tw_tensor *values[MOST] = {0};
    tw_status status = TW_OK;
    char scope[32], name[300], tag[320];
    int last = t->towers - 1;
    snprintf(scope, sizeof scope, "tower_%d", last);
    int count = tw_get_collection(t->graph, "activations", scope, outputs, MOST);
    if (count > MOST)
        count = MOST;
    tw_feed feeds[] = {{t->images[last], t->kept_images}};
    TWI_TRY(tw_session_run(t->session, feeds, 1, outputs, count, values, error));
    for (int i = 0; i < count; i++) {
        tw_strip_tower_name(tw_node_name(outputs[i].node), name, sizeof name);
        snprintf(tag, sizeof tag, "%s/activations", name);
        TWI_TRY(write_histogram(events, tag, step, values[i], error));
        snprintf(tag, sizeof tag, "%s/sparsity", name);
        TWI_TRY(tw_event_writer_add_scalar(events, tag, step, share_of_zeros(values[i]), error));
    }
done:
    for (int i = 0; i < count; i++)
        tw_tensor_release(values[i]);
    return status;
}

tw_status tw_trainer_step_with_summaries(tw_trainer *t, tw_event_writer *events, tw_trainer_step_result *result,
                                         tw_error *error)
{
    tw_status status;
    t->keep_batch = true;
    TWI_TRY(take_step(t, t->num_fetches, result, error));
    TWI_TRY(write_losses(t, events, result, error));
    TWI_TRY(write_variables(t, events, result->step, error));
    TWI_TRY(write_activations(t, events, result->step, error));
    TWI_TRY(tw_event_writer_flush(events, error));
done:
    t->keep_batch = false;
    return status;
}

/* ---- saving ----------------------------------------------------------------------------------------------- */

tw_status tw_trainer_save(tw_trainer *t, const char *directory, int keep, tw_error *error)
{
    tw_named_tensor extras[NUM_SETTINGS] = {{NULL}};
    tw_status status = TW_OK;
    for (int i = 0; i < NUM_SETTINGS; i++) {
        extras[i] = (tw_named_tensor){settings[i].name, tw_tensor_int64(t->setting[i])};
        if (!extras[i].tensor)
            TWI_TRY(twi_fail_memory(error, "saving a checkpoint"));
    }
    tw_save_options options = {.keep = keep, .extras = extras, .num_extras = NUM_SETTINGS};
    TWI_TRY(tw_save(t->session, directory, t->step, &options, error));
done:
    for (int i = 0; i < NUM_SETTINGS; i++)
        tw_tensor_release((tw_tensor *)extras[i].tensor);
    return status;
}

/* ---- answers ---------------------------------------------------------------------------------------------- */

int64_t tw_trainer_steps_done(const tw_trainer *t)
{
    return t->step;
}

int tw_trainer_towers(const tw_trainer *t)
{
    return t->towers;
}

int tw_trainer_batch(const tw_trainer *t)
{
    return t->batch;
}

int64_t tw_trainer_seed(const tw_trainer *t)
{
    return t->setting[SEED];
}

int64_t tw_trainer_parameters(const tw_trainer *t)
{
    int64_t parameters = 0;
    for (int i = 0; i < t->average->count; i++)
        parameters += tw_shape_elements(t->average->variables[i]->shape);
    return parameters;
}

tw_status tw_trainer_plan_info(const tw_trainer *t, tw_plan_info *info, tw_error *error)
{
    if (!t->planned)
        return twi_fail(error, TW_FAILED_PRECONDITION, "the plan of a step is made when the first one runs");
    *info = t->plan;
    return TW_OK;
}

const char *tw_trainer_tower_device(const tw_trainer *t, int tower)
{
    const char *placed = tw_session_device(t->session, t->fetches[tower].node);
    return placed ? placed : t->tower_devices[tower];
}

tw_session *tw_trainer_session(tw_trainer *t)
{
    return t->session;
}

tw_graph *tw_trainer_graph(tw_trainer *t)
{
    return t->graph;
}

void tw_trainer_input_statistics(const tw_trainer *t, tw_pipeline_statistics *statistics)
{
    tw_pipeline_get_statistics(t->pipeline, statistics);
}
