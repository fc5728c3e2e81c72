/* trainer_files.c - batches that nodes of the graph read from the data set's own files, as the CIFAR-10 tutorial has
 * them:
 *
 *     names -> FixedLengthRecordReader -> DecodeRaw -> distortions -> RandomShuffleQueue -> batches
 *
 * Nodes have the names of the tutorial's program; threads fill the queues, and what is in them is in no checkpoint.
 * Never here:  batches of the numbered stream (trainer_input.c, trainer_data.c). */
#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <tower/ops.h>

#include "train/trainer.h"

enum {
    SIDE = 32,
    CHANNELS = 3,
    LABEL = 1, /* bytes before the planes of red, green and blue */
    RECORD = LABEL + CHANNELS * SIDE * SIDE,
    THREADS = 16,
};
#define KEPT 0.4 /* of the data set's examples stay in the queue, to draw from */

bool twi_input_reads_files(tw_trainer_input kind)
{
    return kind == TW_INPUT_FILES || kind == TW_INPUT_FILES_PREFETCH;
}

/* ---- what can be read ------------------------------------------------------------------------------------------ */

/* Graphs know files by their whole paths, so that they run from any folder. */
static tw_status note_file(tw_trainer *t, const char *file, int64_t *records, tw_error *error)
{
    char path[PATH_MAX];
    twi_file_reader *reader = NULL;
    tw_status status = twi_file_open(file, &reader, error);
    if (status != TW_OK)
        return status;
    *records += (int64_t)twi_file_size(reader) / RECORD;
    twi_file_reader_close(reader);
    if (!realpath(file, path))
        return twi_fail(error, TW_NOT_FOUND, "cannot find the path of '%s': %s", file, strerror(errno));
    const char *kept = tw_graph_keep(t->graph, path, strlen(path) + 1);
    t->input.files[t->input.num_files++] = kept;
    return kept ? TW_OK : twi_fail_memory(error, "creating a trainer");
}

static tw_status find_files(tw_trainer *t, const tw_dataset *d, tw_error *error)
{
    tw_status status = TW_OK;
    int64_t records = 0;
    for (int i = 0; tw_dataset_file(d, i) && status == TW_OK; i++)
        status = i == TWI_MOST_FILES ? twi_fail(error, TW_INVALID_ARGUMENT, "data set %s has more than %d files",
                                       tw_dataset_name(d), TWI_MOST_FILES)
                            : note_file(t, tw_dataset_file(d, i), &records, error);
    if (status == TW_OK && records != tw_dataset_count(d))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "data set %s has %lld examples, its files %lld: a graph reads files whole, so none can be held back",
                        tw_dataset_name(d), (long long)tw_dataset_count(d), (long long)records);
    return status;
}

tw_status twi_trainer_choose_files(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    static const char *const planned[TWI_MOST_FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                               "data_batch_4.bin", "data_batch_5.bin"};
    const tw_model *m = t->recipe.model;
    const tw_dataset *d = options->dataset;
    if (!twi_input_reads_files(t->input.kind))
        return TW_OK;
    if (m->training != TW_AUGMENT_TUTORIAL_TRAIN && m->training != TW_AUGMENT_TUTORIAL_EVAL)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "model %s: a graph that reads files makes images as the CIFAR-10 tutorial does, which this model "
                        "does not ask for", m->name);
    if (strcmp(tw_dataset_name(d), "cifar10") != 0 || (!tw_dataset_file(d, 0) && !options->plan_only))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "data set %s: expected one in files of CIFAR-10's binary version, which graphs read",
                        tw_dataset_name(d));
    t->input.threads = options->input_threads ? options->input_threads : THREADS;
    t->input.kept = (int64_t)((double)tw_dataset_count(d) * KEPT);
    if (tw_dataset_file(d, 0))
        return find_files(t, d, error);
    memcpy(t->input.files, planned, sizeof planned);
    t->input.num_files = TWI_MOST_FILES;
    return TW_OK;
}

/* ---- in the graph ---------------------------------------------------------------------------------------------- */

static tw_output cut(tw_graph *g, tw_output bytes, int64_t from, int64_t to)
{
    return tw_strided_slice(g, bytes, (tw_strided_slice_options){.begin = TW_SHAPE(from), .end = TW_SHAPE(to)});
}

/* The tutorial's order: its brightness and contrast do not commute. */
static tw_output distort(tw_graph *g, const tw_model *m, tw_output image)
{
    image = tw_random_crop(g, image, TW_SHAPE(m->height, m->width, CHANNELS), 0);
    image = tw_random_flip_left_right(g, image, 0);
    image = tw_random_brightness(g, image, 63, 0);
    return tw_random_contrast(g, image, 0.2f, 1.8f, 0);
}

static tw_output crop_middle(tw_graph *g, const tw_model *m, tw_output image)
{
    return tw_slice(g, image, TW_SHAPE((SIDE - m->height) / 2, (SIDE - m->width) / 2, 0),
                    TW_SHAPE(m->height, m->width, CHANNELS));
}

/* One example, read anew whenever it is run: image float [height,width,3], label int32 [1]. */
static void read_example(tw_graph *g, const tw_model *m, tw_output names, tw_output example[2])
{
    TW_NAME_SCOPE(g, "data_augmentation")
    {
        tw_output reader = tw_fixed_length_record_reader(g, 0, RECORD, 0);
        tw_output record = tw_decode_raw(g, tw_reader_read(g, reader, names, NULL), TW_UINT8, true);
        example[1] = tw_cast(g, cut(g, record, 0, LABEL), TW_INT32);
        tw_output planes = tw_reshape(g, cut(g, record, LABEL, RECORD), TW_SHAPE(CHANNELS, SIDE, SIDE));
        tw_output image = tw_cast(g, tw_transpose(tw_name(g, "transpose"), planes, TW_SHAPE(1, 2, 0)), TW_FLOAT32);
        image = m->training == TW_AUGMENT_TUTORIAL_TRAIN ? distort(g, m, image) : crop_middle(g, m, image);
        example[0] = tw_image_standardization(g, image);
    }
}

/* Images and labels, by queues of their own. */
static void build_batch(tw_trainer *t, int batch, tw_output outputs[2])
{
    tw_graph *g = t->graph;
    tw_output example[2];
    tw_batch_options options = {.batch = batch, .threads = t->input.threads, .min_after_dequeue = t->input.kept};
    TW_DEVICE(g, "/cpu:0")
    {
        tw_output names = tw_string_input_producer(g, t->input.files, t->input.num_files, NULL);
        read_example(g, t->recipe.model, names, example);
        tw_shuffle_batch(g, example, 2, &options, outputs);
        outputs[1] = tw_reshape(g, outputs[1], TW_SHAPE(batch));
    }
}

void twi_trainer_build_prefetch(tw_trainer *t)
{
    tw_output batch[2];
    if (t->input.kind != TW_INPUT_FILES_PREFETCH)
        return;
    build_batch(t, t->towers.shares[0], batch);
    TW_DEVICE(t->graph, "/cpu:0")
        t->input.queue = tw_prefetch_queue(t->graph, batch, 2, 2 * t->towers.count);
}

void twi_trainer_build_files(tw_trainer *t, int tower)
{
    tw_output batch[2];
    if (t->input.kind == TW_INPUT_FILES_PREFETCH)
        TW_DEVICE(t->graph, "/cpu:0")
            tw_dequeue(t->graph, t->input.queue, batch);
    else
        build_batch(t, t->towers.shares[tower], batch);
    t->input.images[tower] = batch[0];
    t->input.labels[tower] = batch[1];
}
