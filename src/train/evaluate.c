/* evaluate.c - what a checkpoint is worth: every example of a data set is looked at once, a batch at a time on each
 * device. Which devices these are makes no difference to the numbers: each batch is computed alone, and what comes of
 * it is added up here, in the order of the examples. */
#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"
#include "train/trainer.h"

#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

enum { DEFAULT_BATCH = 100, LOSS = 0, CHOICE, FIRST, FIVE, PROBABILITIES, MOST_FETCHES };

typedef struct evaluation {
    const tw_evaluation_options *options;
    int batch, towers, fetches, classes; /* fetches: of each tower */
    tw_views views;
    tw_graph *graph;
    tw_session *session;
    tw_devices *own_devices;
    tw_pipeline *pipeline;
    tw_checkpoint *checkpoint;
    tw_feed *feeds;      /* [2 * towers] images and labels of each */
    tw_tensor **fed;     /* [2 * towers] their values */
    tw_output *outputs;  /* [fetches * towers] */
    tw_tensor **results; /* [fetches * towers] */
} evaluation;

/* An image shifted by a pixel: `by` 0 down and to the right, 2 up and to the left. */
static tw_output shifted(tw_graph *g, tw_output images, int by)
{
    tw_shape all = tw_output_shape(images), one = TW_SHAPE(0, 1, 1, 0);
    return tw_slice(g, tw_mirror_pad(g, images, one, one, false), TW_SHAPE(0, by, by, 0), all);
}

static int count_views(tw_views views)
{
    return views == TW_VIEWS_SHIFTED ? 6 : views == TW_VIEWS_MIRRORED ? 2 : 1;
}

/* Logits by all views: one batch with all of them goes through the network, as floats they come out, and their mean. */
static tw_output logits_of(const evaluation *e, const tw_model *m, tw_output images)
{
    tw_graph *g = e->graph;
    int count = count_views(e->views);
    if (count == 1)
        return m->logits(g, m, images, TW_FLOAT32, false);
    tw_output views[6] = {images};
    float weights[6] = {1 / (count == 2 ? 2.0f : 4)};
    for (int i = 2; i < count; i += 2) {
        views[i] = shifted(g, images, i == 2 ? 0 : 2);
        weights[i] = 1 / 8.0f;
    }
    for (int i = 0; i < count; i += 2) {
        views[i + 1] = tw_reverse(g, views[i], (int[]){2}, 1);
        weights[i + 1] = weights[i];
    }
    tw_output logits = m->logits(g, m, tw_concat(g, views, count, 0), TW_FLOAT32, false);
    logits = tw_reshape(g, logits, TW_SHAPE(count, e->batch, -1));
    logits = tw_mul(g, logits, tw_constant_floats(g, TW_SHAPE(count, 1, 1), weights));
    return tw_reduce_sum(g, logits, (int[]){0}, 1, false);
}

static void build_tower(evaluation *e, const tw_model *m, int tower)
{
    tw_graph *g = e->graph;
    tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(e->batch, m->height, m->width, m->channels));
    tw_output labels = tw_placeholder(g, TW_INT32, TW_SHAPE(e->batch));
    tw_output logits = logits_of(e, m, images);
    tw_output *outputs = e->outputs + tower * e->fetches;
    outputs[LOSS] = tw_sparse_softmax_cross_entropy(g, logits, labels);
    outputs[CHOICE] = tw_arg_max(g, logits, 1);
    outputs[FIRST] = tw_in_top_k(g, logits, labels, 1);
    outputs[FIVE] = tw_in_top_k(g, logits, labels, 5);
    if (e->fetches > PROBABILITIES)
        outputs[PROBABILITIES] = tw_softmax(g, logits);
    e->feeds[2 * tower].output = images;
    e->feeds[2 * tower + 1].output = labels;
    if (tw_graph_status(g) == TW_OK)
        e->classes = (int)tw_output_shape(logits).dims[1];
}

static tw_status build(evaluation *e, const tw_model *m, tw_error *error)
{
    size_t towers = (size_t)e->towers;
    e->graph = tw_graph_create();
    e->feeds = twi_alloc_array(2 * towers, sizeof *e->feeds);
    e->fed = twi_alloc_array(2 * towers, sizeof *e->fed);
    e->outputs = twi_alloc_array(towers * (size_t)e->fetches, sizeof *e->outputs);
    e->results = twi_alloc_array(towers * (size_t)e->fetches, sizeof *e->results);
    if (!e->graph || !e->feeds || !e->fed || !e->outputs || !e->results)
        return twi_fail_memory(error, "building an evaluation");
    for (int i = 0; i < e->towers; i++) {
        const char *device = e->options->tower_devices ? e->options->tower_devices[i] : "";
        TW_DEVICE(e->graph, "%s", device)
        TW_NAME_SCOPE(e->graph, "tower_%d", i)
        build_tower(e, m, i);
        tw_reuse_variables(e->graph);
        e->fed[2 * i] = tw_tensor_create(TW_FLOAT32, TW_SHAPE(e->batch, m->height, m->width, m->channels));
        e->fed[2 * i + 1] = tw_tensor_create(TW_INT32, TW_SHAPE(e->batch));
        for (int k = 2 * i; k < 2 * i + 2; k++) {
            if (!e->fed[k])
                return twi_fail_memory(error, "evaluating");
            e->feeds[k].tensor = e->fed[k];
        }
    }
    if (tw_graph_status(e->graph) != TW_OK)
        return twi_fail(error, tw_graph_status(e->graph), "%s", tw_graph_message(e->graph));
    return TW_OK;
}

/* What one tower's batch adds, from example number `first` on; those beyond the last are the stream's next round. */
static void add_up(const evaluation *e, int tower, int64_t first, int64_t examples, double *loss, tw_scores *scores)
{
    tw_tensor *const *results = e->results + tower * e->fetches;
    const float *losses = tw_tensor_data(results[LOSS]);
    const int64_t *choices = tw_tensor_data(results[CHOICE]);
    const int32_t *labels = tw_tensor_data(e->fed[2 * tower + 1]);
    const bool *first_hit = tw_tensor_data(results[FIRST]), *five_hit = tw_tensor_data(results[FIVE]);
    for (int i = 0; i < e->batch && first + i < examples; i++) {
        scores->examples++;
        scores->correct += first_hit[i];
        scores->correct_5 += five_hit[i];
        scores->confusion[labels[i] * e->classes + choices[i]]++;
        *loss += losses[i];
        for (int c = 0; c < e->classes && e->options->probabilities; c++)
            e->options->probabilities[(first + i) * e->classes + c] =
                ((float *)tw_tensor_data(results[PROBABILITIES]))[i * e->classes + c];
    }
}

static tw_status look_at_all(evaluation *e, int64_t examples, tw_scores *scores, tw_error *error)
{
    tw_status status = TW_OK;
    double loss = 0;
    while (scores->examples < examples) {
        int64_t first = scores->examples;
        for (int i = 0; i < e->towers; i++)
            TWI_TRY(tw_pipeline_next(e->pipeline, i, tw_tensor_data(e->fed[2 * i]), tw_tensor_data(e->fed[2 * i + 1]),
                                     error));
        TWI_TRY(
            tw_session_run(e->session, e->feeds, 2 * e->towers, e->outputs, e->towers * e->fetches, e->results, error));
        for (int i = 0; i < e->towers; i++)
            add_up(e, i, first + (int64_t)i * e->batch, examples, &loss, scores);
        if (e->options->progress && !e->options->progress(e->options->user, scores->examples, examples))
            TWI_LEAVE(twi_fail(error, TW_CANCELLED, "the evaluation was stopped after %lld of %lld examples",
                               (long long)scores->examples, (long long)examples));
    }
    scores->loss = examples ? loss / (double)examples : 0;
done:
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

static tw_status open_input(evaluation *e, const tw_model *m, const tw_dataset *dataset, tw_error *error)
{
    tw_pipeline_options options = {.batch = e->batch,
                                   .towers = e->towers,
                                   .augmentation = m->evaluation,
                                   .crop = m->height,
                                   .scale = m->scale,
                                   .offset = m->offset};
    tw_status status = tw_pipeline_create(dataset, &options, &e->pipeline, error);
    if (status != TW_OK)
        return status;
    if (tw_pipeline_height(e->pipeline) != m->height || tw_pipeline_width(e->pipeline) != m->width ||
        tw_pipeline_channels(e->pipeline) != m->channels)
        return twi_fail(error, TW_INVALID_ARGUMENT, "model %s takes %dx%dx%d images; data set %s gives %dx%dx%d",
                        m->name, m->height, m->width, m->channels, tw_dataset_name(dataset),
                        tw_pipeline_height(e->pipeline), tw_pipeline_width(e->pipeline),
                        tw_pipeline_channels(e->pipeline));
    if (tw_dataset_classes(dataset) > e->classes)
        return twi_fail(error, TW_INVALID_ARGUMENT, "model %s tells %d classes apart; data set %s has %d", m->name,
                        e->classes, tw_dataset_name(dataset), tw_dataset_classes(dataset));
    return TW_OK;
}

static void close_evaluation(evaluation *e)
{
    tw_pipeline_destroy(e->pipeline);
    tw_session_destroy(e->session);
    tw_devices_destroy(e->own_devices);
    tw_graph_destroy(e->graph);
    tw_checkpoint_close(e->checkpoint);
    for (int i = 0; e->fed && i < 2 * e->towers; i++)
        tw_tensor_release(e->fed[i]);
    for (int i = 0; e->results && i < e->towers * e->fetches; i++)
        tw_tensor_release(e->results[i]);
    twi_free(e->feeds);
    twi_free(e->fed);
    twi_free(e->outputs);
    twi_free(e->results);
}

tw_status tw_score(const tw_model *model, const tw_dataset *dataset, const char *checkpoint, tw_devices *devices,
                   const tw_evaluation_options *given, tw_scores **scores, tw_error *error)
{
    TWI_NEED(model, "model", error);
    TWI_NEED(dataset, "dataset", error);
    TWI_NEED(scores, "scores", error);
    tw_model whole, *m = &whole;
    tw_evaluation_options options;
    evaluation e = {.options = &options, .batch = DEFAULT_BATCH, .towers = 1};
    tw_scores *made = NULL;
    tw_status status;
    int averages = 0;
    *scores = NULL;
    TWI_TRY(twi_sized(m, model, TWI_SIZE(tw_model, logits), error));
    TWI_TRY(twi_sized(&options, given, TWI_SIZE(tw_evaluation_options, batch), error));
    if (options.batch > 0)
        e.batch = options.batch;
    if (options.tower_devices && options.num_tower_devices > 0)
        e.towers = options.num_tower_devices;
    e.views = options.views != TW_VIEWS_DEFAULT ? options.views : m->views;
    if (e.views < TW_VIEWS_DEFAULT || e.views > TW_VIEWS_SHIFTED)
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "options.views: there is no number %d", (int)e.views));
    e.fetches = options.probabilities ? MOST_FETCHES : PROBABILITIES;
    if (devices)
        TWI_TRY(twi_data_agree(devices, dataset, "the data that they are evaluated on", error));
    TWI_TRY(tw_checkpoint_open(checkpoint, &e.checkpoint, error));
    TWI_TRY(build(&e, m, error));
    made = twi_alloc(sizeof *made);
    if (made)
        made->confusion = twi_alloc_array((size_t)e.classes * (size_t)e.classes, sizeof *made->confusion);
    if (!made || !made->confusion)
        TWI_LEAVE(twi_fail_memory(error, "evaluating"));
    TWI_TRY(open_session(&e, devices, error));
    TWI_TRY(tw_restore(e.session, e.checkpoint, &(tw_restore_options){.averages = !options.raw}, &averages, error));
    TWI_TRY(open_input(&e, m, dataset, error));
    made->step = tw_checkpoint_step(e.checkpoint);
    made->classes = e.classes;
    made->used_averages = averages > 0;
    made->views = count_views(e.views);
    TWI_TRY(look_at_all(&e, tw_dataset_count(dataset), made, error));
    *scores = made;
    made = NULL;
done:
    tw_scores_destroy(made);
    close_evaluation(&e);
    return status;
}

void tw_scores_destroy(tw_scores *scores)
{
    if (!scores)
        return;
    twi_free(scores->confusion);
    twi_free(scores);
}

tw_status tw_evaluate(const tw_model *model, const tw_dataset *dataset, const char *checkpoint, tw_devices *devices,
                      const tw_evaluation_options *options, tw_evaluation *result, tw_error *error)
{
    TWI_NEED(result, "result", error);
    tw_scores *scores;
    *result = (tw_evaluation){0};
    tw_status status = tw_score(model, dataset, checkpoint, devices, options, &scores, error);
    if (status != TW_OK)
        return status;
    *result = (tw_evaluation){.step = scores->step,
                              .examples = scores->examples,
                              .correct = scores->correct,
                              .precision = scores->examples ? (double)scores->correct / (double)scores->examples : 0,
                              .used_averages = scores->used_averages};
    tw_scores_destroy(scores);
    return TW_OK;
}
