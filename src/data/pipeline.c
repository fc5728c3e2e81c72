/* pipeline.c - the stream of batches: buffers, the threads that fill them, those who wait for them.
 * Lives here:  order and hand-over.
 * Never here:  what an example is (stream/stream.h), what is done to an image (stream/distort.h).
 *
 * Each tower has `depth` places; batch s of the tower goes to place s mod depth, so towers never wait for each other.
 * A place goes free -> filling -> ready -> lent -> free, always under the lock; its buffers belong to the threads that
 * are filling it, each its own examples, or to whom it is lent. A seek raises `generation`: batches of an older one are
 * dropped when they are found ready, or as soon as nobody works on them. A batch with a picture that cannot be read
 * is ready with the reason. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"
#include "base/cores.h"
#include "base/thread.h"
#include "data/dataset.h"
#include "stream/distort.h"

#include <string.h>

enum { MAX_BATCH = 1 << 20, MAX_TOWERS = 4096, MAX_THREADS = 256, MAX_PREFETCH = 1024, BUFFER_ALIGNMENT = 64 };
enum { CHUNK = 32 }; /* examples that a thread takes at a time */
#define MAX_STEP (INT64_MAX / ((int64_t)MAX_BATCH * MAX_TOWERS))

enum place_state { FREE, FILLING, READY, LENT };

struct place {
    enum place_state state;
    int64_t step;
    uint64_t generation;
    int working, filled; /* threads that are at it; examples that are done, or given up */
    float *images;
    int32_t *labels;
    int failed_at;     /* the first example that failed; below 0: none has */
    tw_error *failure; /* why; NULL: memory for it was missing, too */
};

struct tower {
    int64_t next_fill, next_take; /* steps */
    int claimed;                  /* examples of next_fill that threads have taken */
    int share;                    /* of a step's examples: so many, ... */
    int64_t start;                /* ... from there */
    bool untaken;                 /* nothing is made for it */
};

struct worker {
    tw_pipeline *pipeline;
    pthread_t thread;
    void *scratch;    /* for twi_distort() */
    uint8_t *picture; /* an image of the data set that is not kept; NULL: all are in memory */
};

/* What a thread does next: examples [from, to) of a tower's step. */
struct chunk {
    int tower;
    int64_t step;
    int from, to;
    struct place *place;
};

struct tw_pipeline {
    const tw_dataset *dataset;
    tw_pipeline_options options; /* with the defaults filled in; `batch` is the largest share, `shares` NULL */
    int64_t examples;            /* of a step */
    int height, width, channels; /* of an image that goes out */

    pthread_mutex_t lock;
    pthread_cond_t room, ready; /* a place became free; a batch became ready. Both: cancelled */
    bool cancelled;
    uint64_t generation;
    struct tower *towers; /* [towers] */
    struct place *places; /* [towers, prefetch] */
    tw_pipeline_statistics statistics;
    int64_t wait_ns, fill_ns;

    float *images; /* all places' in one block */
    int32_t *labels;
    twi_distorter distorter;
    struct worker *workers;
    int num_started;
};

static size_t image_values(const tw_pipeline *p)
{
    return (size_t)p->height * (size_t)p->width * (size_t)p->channels;
}

static struct place *place_of(tw_pipeline *p, int tower, int64_t step)
{
    return &p->places[tower * p->options.prefetch + step % p->options.prefetch];
}

/* ---- filling ----------------------------------------------------------------------------------------------- */

/* Returns how many examples were made: fewer, with the reason, if one could not be read. */
static int fill(struct worker *worker, const struct chunk *c, tw_error *reason)
{
    const tw_pipeline *p = worker->pipeline;
    const tw_dataset *d = p->dataset;
    const size_t out = image_values(p);
    const int64_t first = c->step * p->examples + p->towers[c->tower].start;
    int i = c->from;
    for (; i < c->to; i++) {
        int64_t k = first + i, index = twi_example_index(d->count, p->options.seed, p->options.shuffle, k);
        twi_distortion drawn = twi_draw_distortion(&p->distorter, p->options.seed, k, d->count, index);
        const uint8_t *image;
        if (twi_dataset_image(d, index, worker->picture, &image, reason) != TW_OK)
            break;
        twi_distort(&p->distorter, &drawn, image, c->place->images + (size_t)i * out, worker->scratch);
        c->place->labels[i] = d->labels[index];
    }
    return i - c->from;
}

/* Whether there is work for the tower: a step that is begun, or a place that is free for the next one. */
static bool has_work(tw_pipeline *p, int tower)
{
    struct tower *t = &p->towers[tower];
    return !t->untaken && (t->claimed > 0 || place_of(p, tower, t->next_fill)->state == FREE);
}

/* Claims examples for the tower that is furthest behind; false: there is nothing to do. */
static bool claim(tw_pipeline *p, struct chunk *c)
{
    struct tower *t = NULL;
    for (int i = 0; i < p->options.towers; i++)
        if (has_work(p, i) && (!t || p->towers[i].next_fill < t->next_fill))
            t = &p->towers[c->tower = i];
    if (!t)
        return false;
    c->step = t->next_fill;
    c->place = place_of(p, c->tower, c->step);
    c->from = t->claimed;
    c->to = t->share - c->from < CHUNK ? t->share : c->from + CHUNK;
    if (c->from == 0) {
        c->place->state = FILLING;
        c->place->step = c->step;
        c->place->generation = p->generation;
        c->place->filled = 0;
        c->place->failed_at = -1;
    }
    c->place->working++;
    t->claimed = c->to;
    if (c->to == t->share) {
        t->claimed = 0;
        t->next_fill++;
    } else {
        pthread_cond_signal(&p->room); /* there is more for whoever sleeps */
    }
    return true;
}

/* An example could not be read. Of several errors of a batch that of the first example is told. */
static void note_failure(struct place *place, int example, const tw_error *reason)
{
    if (place->failed_at >= 0 && place->failed_at < example)
        return;
    place->failed_at = example;
    if (!place->failure)
        place->failure = twi_alloc(sizeof *place->failure);
    if (place->failure)
        *place->failure = *reason;
}

static void finish(tw_pipeline *p, const struct chunk *c, int made, const tw_error *reason)
{
    struct place *place = c->place;
    place->working--;
    place->filled += c->to - c->from;
    if (c->from + made < c->to)
        note_failure(place, c->from + made, reason);
    if (place->generation != p->generation) {
        if (place->working == 0) {
            place->state = FREE;
            pthread_cond_broadcast(&p->room);
        }
    } else if (place->filled == p->towers[c->tower].share) {
        place->state = READY;
        pthread_cond_broadcast(&p->ready);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    tw_pipeline *p = worker->pipeline;
    pthread_mutex_lock(&p->lock);
    while (!p->cancelled) {
        struct chunk chunk;
        if (!claim(p, &chunk)) {
            pthread_cond_wait(&p->room, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        tw_error reason = {0};
        int64_t start = twi_monotonic_ns();
        int made = fill(worker, &chunk, &reason);
        int64_t took = twi_monotonic_ns() - start;
        pthread_mutex_lock(&p->lock);
        p->fill_ns += took;
        finish(p, &chunk, made, &reason);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- taking ------------------------------------------------------------------------------------------------ */

tw_status tw_pipeline_acquire(tw_pipeline *p, int tower, tw_pipeline_batch_view *view, tw_error *error)
{
    TWI_NEED(p, "pipeline", error);
    if (tower < 0 || tower >= p->options.towers)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the input pipeline has no tower %d; it has %d", tower,
                        p->options.towers);
    if (p->towers[tower].untaken)
        return twi_fail(error, TW_FAILED_PRECONDITION,
                        "the input pipeline makes no batches for tower %d: options.untaken says that nobody takes them",
                        tower);
    pthread_mutex_lock(&p->lock);
    int64_t step = p->towers[tower].next_take, start = 0;
    uint64_t generation = p->generation;
    struct place *place = place_of(p, tower, step);
    if (!p->cancelled) /* a cancelled pipeline may be asked any number of times */
        p->towers[tower].next_take++;
    while (!p->cancelled && generation == p->generation && !(place->state == READY && place->step == step)) {
        if (!start) {
            start = twi_monotonic_ns();
            p->statistics.waits++;
        }
        pthread_cond_wait(&p->ready, &p->lock);
    }
    if (start)
        p->wait_ns += twi_monotonic_ns() - start;
    bool cancelled = p->cancelled, moved = generation != p->generation;
    tw_status status = TW_OK;
    if (!cancelled && !moved && place->failed_at >= 0) { /* whoever asks again is told again */
        p->towers[tower].next_take = step;
        status = place->failure ? twi_fail(error, place->failure->status, "%s", place->failure->message)
                                : twi_fail_memory(error, "reading images");
    } else if (!cancelled && !moved) {
        place->state = LENT;
        p->statistics.batches++;
        *view = (tw_pipeline_batch_view){
            .images = place->images,
            .labels = place->labels,
            .step = step,
            .tower = tower,
            .place = (int)(place - p->places),
        };
    }
    pthread_mutex_unlock(&p->lock);
    if (cancelled)
        return twi_fail(error, TW_CANCELLED, "the input pipeline was cancelled");
    if (moved)
        return twi_fail(error, TW_ABORTED,
                        "the input pipeline moved to another step while tower %d waited for step %lld", tower,
                        (long long)step);
    return status;
}

void tw_pipeline_release(tw_pipeline *p, const tw_pipeline_batch_view *view)
{
    TWI_NEED_OR(p, );
    TWI_NEED_OR(view, );
    pthread_mutex_lock(&p->lock);
    p->places[view->place].state = FREE;
    pthread_cond_signal(&p->room);
    pthread_mutex_unlock(&p->lock);
}

tw_status tw_pipeline_next(tw_pipeline *p, int tower, float *images, int32_t *labels, tw_error *error)
{
    TWI_NEED(p, "pipeline", error);
    tw_pipeline_batch_view view;
    tw_status status = tw_pipeline_acquire(p, tower, &view, error);
    if (status != TW_OK)
        return status;
    size_t batch = (size_t)p->towers[tower].share;
    memcpy(images, view.images, batch * image_values(p) * sizeof *images);
    memcpy(labels, view.labels, batch * sizeof *labels);
    tw_pipeline_release(p, &view);
    return TW_OK;
}

static tw_status check_step(int64_t step, tw_error *error)
{
    if (step < 0 || step > MAX_STEP)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the input pipeline cannot go to step %lld; 0 to %lld are expected",
                        (long long)step, (long long)MAX_STEP);
    return TW_OK;
}

tw_status tw_pipeline_seek(tw_pipeline *p, int64_t step, tw_error *error)
{
    TWI_NEED(p, "pipeline", error);
    tw_status status = check_step(step, error);
    if (status != TW_OK)
        return status;
    pthread_mutex_lock(&p->lock);
    p->generation++;
    for (int t = 0; t < p->options.towers; t++) {
        p->towers[t].next_fill = p->towers[t].next_take = step;
        p->towers[t].claimed = 0;
    }
    for (int i = 0; i < p->options.towers * p->options.prefetch; i++)
        if (p->places[i].state == READY || (p->places[i].state == FILLING && p->places[i].working == 0))
            p->places[i].state = FREE;
    pthread_cond_broadcast(&p->room);
    pthread_cond_broadcast(&p->ready);
    pthread_mutex_unlock(&p->lock);
    return TW_OK;
}

void tw_pipeline_cancel(tw_pipeline *p)
{
    TWI_NEED_OR(p, );
    pthread_mutex_lock(&p->lock);
    p->cancelled = true;
    pthread_cond_broadcast(&p->room);
    pthread_cond_broadcast(&p->ready);
    pthread_mutex_unlock(&p->lock);
}

void tw_pipeline_get_statistics(tw_pipeline *p, tw_pipeline_statistics *statistics)
{
    TWI_NEED_OR(p, );
    TWI_NEED_OR(statistics, );
    pthread_mutex_lock(&p->lock);
    *statistics = p->statistics;
    statistics->wait_seconds = (double)p->wait_ns * 1e-9;
    statistics->fill_seconds = (double)p->fill_ns * 1e-9;
    statistics->threads = p->options.threads;
    pthread_mutex_unlock(&p->lock);
}

/* ---- making and destroying --------------------------------------------------------------------------------- */

static tw_status check_range(const char *what, int value, int least, int most, tw_error *error)
{
    if (value < least || value > most)
        return twi_fail(error, TW_INVALID_ARGUMENT, "input pipeline: %s is %d, expected %d to %d", what, value, least,
                        most);
    return TW_OK;
}

static tw_status fill_in_defaults(tw_pipeline_options *o, bool decodes, tw_error *error)
{
    tw_status status;
    if (o->towers == 0)
        o->towers = 1;
    if (o->prefetch == 0)
        o->prefetch = 2;
    if (o->threads == 0) {
        int some = twi_usable_cores() / (decodes ? 2 : 4), most = decodes ? 16 : 4;
        o->threads = some < 1 ? 1 : some > most ? most : some;
    }
    TWI_TRY(check_range("towers", o->towers, 1, MAX_TOWERS, error));
    for (int t = 0; o->shares && t < o->towers; t++) {
        TWI_TRY(check_range("a tower's share", o->shares[t], 1, MAX_BATCH, error));
        if (t == 0 || o->shares[t] > o->batch)
            o->batch = o->shares[t];
    }
    TWI_TRY(check_range("batch", o->batch, 1, MAX_BATCH, error));
    TWI_TRY(check_range("prefetch", o->prefetch, 1, MAX_PREFETCH, error));
    TWI_TRY(check_range("threads", o->threads, 1, MAX_THREADS, error));
    TWI_TRY(check_step(o->first_step, error));
done:
    return status;
}

static tw_status allocate_places(tw_pipeline *p, tw_error *error)
{
    const int places = p->options.towers * p->options.prefetch;
    const size_t batch = (size_t)p->options.batch;
    size_t values;
    p->towers = twi_alloc_array((size_t)p->options.towers, sizeof *p->towers);
    p->places = twi_alloc_array((size_t)places, sizeof *p->places);
    if (!__builtin_mul_overflow((size_t)places * batch, image_values(p) * sizeof *p->images, &values)) {
        p->images = twi_alloc_aligned(values, BUFFER_ALIGNMENT);
        p->labels = twi_alloc_array((size_t)places * batch, sizeof *p->labels);
    }
    if (!p->towers || !p->places || !p->images || !p->labels)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                        "out of memory for an input pipeline of %d batches of %d images of %dx%dx%d", places,
                        p->options.batch, p->height, p->width, p->channels);
    for (int t = 0; t < p->options.towers; t++) {
        p->towers[t].next_fill = p->towers[t].next_take = p->options.first_step;
        p->towers[t].share = p->options.shares ? p->options.shares[t] : p->options.batch;
        p->towers[t].start = p->examples;
        p->examples += p->towers[t].share;
        p->towers[t].untaken = p->options.untaken && p->options.untaken[t];
    }
    p->options.shares = NULL; /* the caller's, like */
    p->options.untaken = NULL;
    for (int i = 0; i < places; i++) {
        p->places[i].images = p->images + (size_t)i * batch * image_values(p);
        p->places[i].labels = p->labels + (size_t)i * batch;
    }
    return TW_OK;
}

tw_status tw_pipeline_image_size(const tw_dataset *d, const tw_pipeline_options *options, int *height, int *width,
                                 tw_error *error)
{
    TWI_NEED(d, "dataset", error);
    TWI_NEED(options, "options", error);
    TWI_NEED(height, "height", error);
    TWI_NEED(width, "width", error);
    twi_distorter made;
    tw_status status = twi_distorter_init(&made, options->augmentation, d->height, d->width, d->channels, options->crop,
                                          options->scale, options->offset, error);
    if (status == TW_OK) {
        *height = made.out_height;
        *width = made.out_width;
    }
    return status;
}

tw_status tw_pipeline_create(const tw_dataset *dataset, const tw_pipeline_options *options, tw_pipeline **pipeline,
                             tw_error *error)
{
    TWI_NEED(dataset, "dataset", error);
    TWI_NEED(options, "options", error);
    TWI_NEED(pipeline, "pipeline", error);
    tw_status status;
    tw_pipeline *p = twi_alloc(sizeof *p);
    if (!p)
        return twi_fail_memory(error, "making an input pipeline");
    bool decodes = !tw_dataset_images(dataset);
    p->dataset = dataset;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->room, NULL);
    pthread_cond_init(&p->ready, NULL);
    TWI_TRY(twi_sized(&p->options, options, TWI_SIZE(tw_pipeline_options, first_step), error));
    TWI_TRY(fill_in_defaults(&p->options, decodes, error));

    p->workers = twi_alloc_array((size_t)p->options.threads, sizeof *p->workers);
    if (!p->workers) {
        status = twi_fail_memory(error, "making an input pipeline");
        goto done;
    }
    TWI_TRY(twi_distorter_init(&p->distorter, p->options.augmentation, dataset->height, dataset->width,
                               dataset->channels, p->options.crop, p->options.scale, p->options.offset, error));
    for (int i = 0; i < p->options.threads; i++) {
        struct worker *w = &p->workers[i];
        w->pipeline = p;
        w->scratch = twi_alloc(twi_distort_scratch(&p->distorter));
        w->picture = dataset->pictures ? twi_resize(NULL, twi_image_bytes(dataset)) : NULL;
        if (!w->scratch || (dataset->pictures && !w->picture))
            TWI_LEAVE(twi_fail_memory(error, "making an input pipeline"));
    }
    p->height = p->distorter.out_height;
    p->width = p->distorter.out_width;
    p->channels = dataset->channels;
    TWI_TRY(allocate_places(p, error));
    for (int i = 0; i < p->options.threads; i++, p->num_started++)
        TWI_TRY(twi_thread_start(&p->workers[i].thread, "tower-input", NULL, 0, work, &p->workers[i], error));
    *pipeline = p;
    p = NULL;
done:
    tw_pipeline_destroy(p);
    return status;
}

void tw_pipeline_destroy(tw_pipeline *p)
{
    if (!p)
        return;
    tw_pipeline_cancel(p);
    for (int i = 0; i < p->num_started; i++)
        pthread_join(p->workers[i].thread, NULL);
    for (int i = 0; p->workers && i < p->options.threads; i++) {
        twi_free(p->workers[i].scratch);
        twi_free(p->workers[i].picture);
    }
    for (int i = 0; p->places && i < p->options.towers * p->options.prefetch; i++)
        twi_free(p->places[i].failure);
    twi_free(p->workers);
    twi_free(p->towers);
    twi_free(p->places);
    twi_free_aligned(p->images);
    twi_free(p->labels);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
    twi_free(p);
}

int tw_pipeline_batch(const tw_pipeline *pipeline)
{
    TWI_NEED_OR(pipeline, 0);
    return pipeline->options.batch;
}

int tw_pipeline_towers(const tw_pipeline *pipeline)
{
    TWI_NEED_OR(pipeline, 0);
    return pipeline->options.towers;
}

int tw_pipeline_height(const tw_pipeline *pipeline)
{
    TWI_NEED_OR(pipeline, 0);
    return pipeline->height;
}

int tw_pipeline_width(const tw_pipeline *pipeline)
{
    TWI_NEED_OR(pipeline, 0);
    return pipeline->width;
}

int tw_pipeline_channels(const tw_pipeline *pipeline)
{
    TWI_NEED_OR(pipeline, 0);
    return pipeline->channels;
}
