/* data.h - images to learn from: data sets, the input pipeline that feeds towers, and downloads.
 *
 *     tw_dataset *train;
 *     tw_dataset_load("cifar10", "data", TW_SPLIT_TRAIN, NULL, &train, &error);
 *     tw_pipeline *input;
 *     tw_pipeline_create(train, TW_OPTIONS(tw_pipeline_options,
 *         .batch = 128, .towers = 2, .seed = 1, .shuffle = true, .augmentation = TW_AUGMENT_TUTORIAL_TRAIN),
 *         &input, &error);
 *     while (...)
 *         tw_pipeline_next(input, tower, images, labels, &error);
 *
 * A data set is loaded into memory once, as bytes, pictures of one's own also one by one, when they are needed. A
 * pipeline turns it into an endless stream of float images whose
 * k-th example depends on the seed and on k alone: not on the number of threads, of towers or of devices, nor on
 * where the stream was entered. */
#ifndef TOWER_DATA_H
#define TOWER_DATA_H

#include <tower/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets --------------------------------------------------------------------------------------------- */

/* Labelled images: `count` of them, bytes in [count, height, width, channels] order, labels 0 to classes - 1. Does not
 * change once made; any number of threads may read it. */
typedef struct tw_dataset tw_dataset;

typedef enum tw_dataset_split {
    TW_SPLIT_TRAIN,
    TW_SPLIT_TEST,
    TW_SPLIT_VALIDATION, /* what is held back from the training half */
} tw_dataset_split;

/* Told how many of the images have been read, from any thread, one at a time; false: stop, which is TW_CANCELLED. */
typedef bool tw_read_progress(void *user, const char *what, int64_t done, int64_t total);

typedef struct tw_dataset_options {
    size_t size; /* TW_SIZED(tw_dataset_options) sets it: see language.h */
    bool as_rgb32;    /* grey 28x28 images become 32x32x3: two black pixels on each side, the grey in each channel; so a
                         network made for CIFAR-10 takes them. No effect on images that are 32x32x3 */
    bool allow_fewer; /* accept CIFAR-10 files of fewer than 10,000 examples, such as a sample of the set; a file whose
                         size is not a whole number of examples is refused in any case */
    bool sizes_only;  /* for plans: no file is read. As many images as the official files have, of their size, but what
                         they show means nothing; `directory` may be NULL */
    int64_t hold_back; /* so many examples at the end of the training half are left out of TW_SPLIT_TRAIN and are
                          TW_SPLIT_VALIDATION: 10,000 of CIFAR-10 are data_batch_5.bin. TW_INVALID_ARGUMENT: all of
                          them, or none where TW_SPLIT_VALIDATION is asked for */
    int height, width, channels; /* of "images": what each is made to be; 0: 32, as the height, 3 */
    tw_read_progress *progress;  /* told how far the reading of all "images" is; NULL: nobody wants to know */
    void *user;
    bool when_needed; /* pictures of "images" are found, but each is read when somebody needs it, and so no sooner is
                         said that one is damaged; their files have to stay where they are. Arrays are read at once */
    int64_t image_memory; /* and as many as lie in so many bytes are kept, the others read each time; 0: a third of the
                             memory that is left, ... */
    int processes; /* ... which so many processes of this machine share; 0: 1 */
} tw_dataset_options;

/* Loads one half of a data set from its official files:
 *
 *   name                      files, in `directory`
 *   "cifar10"                 data_batch_1.bin to data_batch_5.bin, test_batch.bin; there or in cifar-10-batches-bin/
 *   "mnist", "fashion-mnist"  train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte,
 *                             t10k-labels-idx1-ubyte; each plain or with .gz
 *
 *   "images"                  of one's own: a folder for each class, which is named by it, with JPEG or PNG files, or
 *                             such folders in 'train' and 'test'; or a list of pictures, labels.csv (or train.csv and
 *                             test.csv), with lines "file,label"; or arrays of NumPy's, images.npy, uint8 [N,H,W] or
 *                             [N,H,W,C], and labels.npy (or train_images.npy, train_labels.npy, test_images.npy, ...;
 *                             x_train.npy, y_train.npy, ...); or TensorFlow's files of records, NAME.tfrecord or
 *                             NAME-00000-of-00008, with a tf.train.Example each: image/encoded (or image, image_raw) and
 *                             image/class/text (or image/class/label, label); those whose name begins with "test" or
 *                             "val" are the test half. Without a test half every fifth example of a class is it.
 *                             The middle of each picture is scaled; turns that a camera notes are not made
 *
 * directory NULL: where the distribution's package puts it, for "fashion-mnist" (Debian: dataset-fashion-mnist).
 * options may be NULL. *dataset is yours: tw_dataset_destroy().
 * TW_NOT_FOUND: no such directory or file; the message says what was looked for and how to get it. TW_DATA_LOSS: a
 * file is cut short, damaged or not of this format. TW_INVALID_ARGUMENT: unknown name. */
TW_API tw_status tw_dataset_load(const char *name, const char *directory, tw_dataset_split split,
                                 const tw_dataset_options *options, tw_dataset **dataset, tw_error *error);

/* One picture, JPEG or PNG, as those of "images" are read: pixels [height, width, channels] are filled in. */
TW_API tw_status tw_image_read(const char *path, int height, int width, int channels, uint8_t *pixels, tw_error *error);

/* A data set of your own: `images` [count, height, width, channels] and `labels` [count] are copied. channels is 1 to
 * 4. Yours: tw_dataset_destroy(). TW_INVALID_ARGUMENT: a size or a label out of its range. */
TW_API tw_status tw_dataset_from(const char *name, const uint8_t *images, const int32_t *labels, int64_t count,
                                 int height, int width, int channels, int classes, tw_dataset **dataset,
                                 tw_error *error);

/* Random images and labels, the same for equal arguments; named "synthetic". For benchmarks and trials without any
 * file. Pixels are normal as in tf_cnn_benchmarks (mean 127, deviation 60, cut at two deviations), labels uniform.
 * Yours: tw_dataset_destroy(). */
TW_API tw_status tw_dataset_synthetic(int64_t count, int height, int width, int channels, int classes, uint64_t seed,
                                      tw_dataset **dataset, tw_error *error);

TW_API void tw_dataset_destroy(tw_dataset *dataset); /* NULL is fine; pipelines on it must be gone */

TW_API const char *tw_dataset_name(const tw_dataset *dataset); /* "cifar10"; borrowed */
TW_API int64_t tw_dataset_count(const tw_dataset *dataset);
TW_API int tw_dataset_height(const tw_dataset *dataset); /* pixels */
TW_API int tw_dataset_width(const tw_dataset *dataset);
TW_API int tw_dataset_channels(const tw_dataset *dataset);
TW_API int tw_dataset_classes(const tw_dataset *dataset);
/* [count, height, width, channels]; borrowed. NULL: options.when_needed, and not all have been read and kept. */
TW_API const uint8_t *tw_dataset_images(const tw_dataset *dataset);
TW_API const int32_t *tw_dataset_labels(const tw_dataset *dataset); /* [count]; borrowed */

/* One of the images, which is read if need be: pixels [height, width, channels] are filled in. Any thread. */
TW_API tw_status tw_dataset_image(const tw_dataset *dataset, int64_t index, uint8_t *pixels, tw_error *error);

/* Reads with all cores what options.when_needed has left for later, and keeps what there is room for; so a picture that
 * cannot be read is found. progress may be NULL. TW_OK at once where all are in memory. Any thread. */
TW_API tw_status tw_dataset_read(const tw_dataset *dataset, tw_read_progress *progress, void *user, tw_error *error);

/* What a label means, for example "frog"; "" where no names are known. Borrowed. */
TW_API const char *tw_dataset_class_name(const tw_dataset *dataset, int label);

/* The path of the i-th file that it was read from, in order; NULL beyond the last, and for data from no file.
 * Borrowed. */
TW_API const char *tw_dataset_file(const tw_dataset *dataset, int i);

/* The SHA-256 of its sizes, labels and pixels, as 64 digits: data sets with the same are the same to a network. Of
 * pictures of one's own the names and the sizes of their files stand for the pixels, which nobody may have read.
 * Computed when it is first asked for, in a second for some hundred megabytes. Borrowed. */
TW_API const char *tw_dataset_digest(const tw_dataset *dataset);

/* Looks at all of it: examples of each class [classes], mean and standard deviation of each channel [channels] in
 * units of a byte (0 to 255), which are NaN for pictures that options.when_needed has left for later until
 * tw_dataset_read() has read them. Each pointer may be NULL. */
TW_API void tw_dataset_info(const tw_dataset *dataset, int64_t *class_counts, double *mean, double *stddev);

/* Which data set lies in a directory, as a name for tw_dataset_load(): by its files, and MNIST from Fashion-MNIST by
 * the first labels. NULL if there is none that is known. */
TW_API const char *tw_dataset_detect(const char *directory);

/* ---- pipelines --------------------------------------------------------------------------------------------- */

/* What happens to an image on its way. All give float32 in [height, width, channels] order. */
typedef enum tw_augmentation {
    /* Nothing: x * scale + offset. */
    TW_AUGMENT_NONE,
    /* The CIFAR-10 tutorial's, in this order: random crop of crop x crop pixels; flip left to right with probability
     * 1/2; brightness moved by a number in [-63, 63); contrast multiplied by one in [0.2, 1.8); then standardised:
     * (x - mean) / max(stddev, 1 / sqrt(number of values)). */
    TW_AUGMENT_TUTORIAL_TRAIN,
    /* Its counterpart for evaluation: the central crop, standardised. */
    TW_AUGMENT_TUTORIAL_EVAL,
    /* For residual networks: 4 zero pixels added on each side, random crop of the original size, flip with
     * probability 1/2; then x * scale + offset. */
    TW_AUGMENT_PAD_CROP_FLIP,
    /* The CIFAR-10 speed record's: 2 pixels added on each side, in which the image is reflected (its border is not
     * repeated), random crop of the original size; flip left to right of half the images, drawn from (seed, which image
     * it is) in epoch 0, and from then on in every other epoch: two epochs in a row show each image both ways. Then
     * x * scale + offset. TW_INVALID_ARGUMENT: images of fewer than 3 pixels. */
    TW_AUGMENT_REFLECT_CROP_ALTERNATE,
} tw_augmentation;

typedef struct tw_pipeline_options {
    size_t size; /* TW_SIZED(tw_pipeline_options) sets it: see language.h */
    int batch;  /* examples for one tower and step; at least 1 */
    int towers; /* 0: 1 */
    const int *shares; /* [towers] how many of a step's examples each tower gets, at least 1; NULL: `batch` each */
    uint64_t seed;
    bool shuffle; /* each epoch in an order of its own; otherwise in that of the files */
    tw_augmentation augmentation;
    int crop;            /* pixels, for the two of the tutorial; 0: 24 */
    float scale, offset; /* for the others; scale 0: 1/255 */
    int threads;         /* 0: one for every four cores, at least 1 and at most 4; or, where pictures are decoded, one
                            for every two, at most 16 */
    int prefetch;        /* batches held ready for each tower; 0: 2 */
    int64_t first_step;  /* where the stream is entered */
    const bool *untaken; /* [towers] those whose batches nobody will take: none are made. NULL: all are taken */
} tw_pipeline_options;

/* An endless stream of batches, filled ahead of time by threads of its own.
 *
 * Let N be the number of examples of the data set. Example k of the stream is number k mod N of epoch k / N; when
 * shuffling, that is the image which a permutation keyed by (seed, epoch) puts there. Its distortions are drawn from
 * (seed, k), flips that alternate from (seed, image). Step s of T towers with batches of b consists of the examples sTb
 * to (s+1)Tb - 1, of which tower t gets b in a row from sTb + tb. With shares it consists of as many examples as they
 * add up to, dealt in order of towers. */
typedef struct tw_pipeline tw_pipeline;

/* Allocates all buffers and starts the threads; afterwards nothing is allocated, but to decode pictures that are read
 * when they are needed. The data set must outlive the pipeline. *pipeline is yours: tw_pipeline_destroy().
 * TW_INVALID_ARGUMENT: options out of range, or images smaller than the crop. */
TW_API tw_status tw_pipeline_create(const tw_dataset *dataset, const tw_pipeline_options *options,
                                    tw_pipeline **pipeline, tw_error *error);

/* Stops the threads and frees everything. No call on it may be under way: tw_pipeline_cancel() first, and wait for
 * those that are. NULL is fine. */
TW_API void tw_pipeline_destroy(tw_pipeline *pipeline);

/* How large the images would be that a pipeline of these options makes of the data set's: of the options augmentation
 * and crop are looked at. TW_INVALID_ARGUMENT: images smaller than the crop, or an augmentation that there is not. */
TW_API tw_status tw_pipeline_image_size(const tw_dataset *dataset, const tw_pipeline_options *options, int *height,
                                        int *width, tw_error *error);

TW_API int tw_pipeline_batch(const tw_pipeline *pipeline); /* examples for one tower and step; the largest share */
TW_API int tw_pipeline_towers(const tw_pipeline *pipeline);
TW_API int tw_pipeline_height(const tw_pipeline *pipeline); /* of the images it gives */
TW_API int tw_pipeline_width(const tw_pipeline *pipeline);
TW_API int tw_pipeline_channels(const tw_pipeline *pipeline);

/* Copies the next batch of `tower` to images [batch, height, width, channels] and labels [batch] (or its share),
 * waiting until it is ready. Towers advance independently, each through its own batches in order; any thread may call,
 * several at once. TW_CANCELLED after tw_pipeline_cancel(); TW_ABORTED if a seek happened while it waited; what reading
 * a picture of the batch failed with, now and until a seek. */
TW_API tw_status tw_pipeline_next(tw_pipeline *pipeline, int tower, float *images, int32_t *labels, tw_error *error);

/* A batch lent out instead of copied: valid until released. While it is out, its place cannot be filled again, so
 * with every place out (see prefetch) the next acquire waits for a release. */
typedef struct tw_pipeline_batch_view {
    const float *images;
    const int32_t *labels;
    int64_t step;
    int tower, place; /* for release */
} tw_pipeline_batch_view;

/* As tw_pipeline_next(), but lends the batch; every view acquired must be released once. */
TW_API tw_status tw_pipeline_acquire(tw_pipeline *pipeline, int tower, tw_pipeline_batch_view *view, tw_error *error);
TW_API void tw_pipeline_release(tw_pipeline *pipeline, const tw_pipeline_batch_view *view);

/* Lets every tower continue with `step` (0 or more); batches that were ready are dropped. */
TW_API tw_status tw_pipeline_seek(tw_pipeline *pipeline, int64_t step, tw_error *error);

/* Wakes everybody who waits; from now on next and acquire fail with TW_CANCELLED. */
TW_API void tw_pipeline_cancel(tw_pipeline *pipeline);

typedef struct tw_pipeline_statistics {
    int64_t batches;     /* handed out */
    int64_t waits;       /* how many of them were not ready when asked for */
    double wait_seconds; /* how long callers waited for those, added up */
    double fill_seconds; /* how long threads worked, added up */
    int threads;
} tw_pipeline_statistics;

/* Since the pipeline was created. Waiting that grows with the steps means that the input holds training back. */
TW_API void tw_pipeline_get_statistics(tw_pipeline *pipeline, tw_pipeline_statistics *statistics);

/* ---- downloads --------------------------------------------------------------------------------------------- */

/* Told about a download at its beginning, from time to time, even while the server sends nothing, and at its end:
 * `done` of `total` bytes of `file` are there, counting what an earlier try left. Returns false to stop. */
typedef bool tw_fetch_progress(void *user, const char *file, int64_t done, int64_t total);

/* Brings the official files of "cifar10", "mnist" or "fashion-mnist" into `directory`, which is made if need be, laid
 * out as tw_dataset_load() wants them. Files that are there are not downloaded again; so an archive put there by hand
 * is taken as if it had been downloaded.
 *
 * Each file is downloaded as NAME.part, which the next call continues if this one is cut short, checked against the
 * SHA-256 known for it, and only then given its name. base_url (NULL: the official places, one after the other) is
 * where the files are looked for instead: an http, https or file URL of a folder. progress may be NULL. While another
 * fetch is at work in the directory this one waits, which it says once (tw_set_log), and finds what that has brought.
 *
 * TW_UNAVAILABLE: no connection; the message says which file to put where by hand.
 * TW_DATA_LOSS: what came is not the official file. TW_CANCELLED: progress said so. TW_UNIMPLEMENTED: no
 * libcurl, and a file is missing. TW_INVALID_ARGUMENT: unknown name. */
TW_API tw_status tw_data_fetch(const char *name, const char *directory, const char *base_url,
                               tw_fetch_progress *progress, void *user, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
