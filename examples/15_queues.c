/* 15_queues.c - the CIFAR-10 tutorial's input as it was built: queues, a reader, threads that fill them.
 *
 *     names of files -> FixedLengthRecordReader -> DecodeRaw -> cut and distorted -> shuffle_batch -> prefetch_queue
 *
 * and one dequeue for each tower: capacity 2 * GPUS, one batch for each tower and step. Each arrow into a queue is a
 * queue runner: threads that run the nodes before it over and over, ended by a coordinator.
 *
 *     15_queues [GPUS] [STEPS] [DIRECTORY]
 *
 * DIRECTORY holds data_batch_1.bin and so on; without it a small file of random images is made. The GPUs are virtual.
 *
 * prints: step 4, loss = [0-9.]+ \([0-9]+ batches wait\).*stopped: all is well
 */
#include "example.h"

#include <string.h>
#include <unistd.h>

enum { MOST_GPUS = 64, MOST_FILES = 5, RECORD = 1 + 3072, BATCH = 8, KEPT = 64, THREADS = 4 };

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Labels and pixels that mean nothing. */
static void make_file(const char *path)
{
    unsigned char record[RECORD];
    unsigned number = 1;
    FILE *file = fopen(path, "wb");
    for (int i = 0; file && i < 200; i++) {
        for (int k = 0; k < RECORD; k++)
            record[k] = (unsigned char)((number = number * 1664525 + 1013904223) >> 24);
        record[0] %= 10;
        fwrite(record, 1, RECORD, file);
    }
    if (!file || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static int list_files(const char *directory, char paths[][600], const char *names[])
{
    int count = 0;
    for (int i = 1; i <= MOST_FILES && directory; i++) {
        snprintf(paths[count], 600, "%.500s/data_batch_%d.bin", directory, i);
        if (access(paths[count], R_OK) == 0)
            names[count] = paths[count], count++;
    }
    if (count == 0) {
        snprintf(paths[0], 600, "/tmp/tower-queues-%d.bin", (int)getpid());
        make_file(names[0] = paths[0]);
        count = 1;
    }
    return count;
}

/* ---- the graph --------------------------------------------------------------------------------------------------- */

/* One example, read and distorted anew whenever it is run: image float [24,24,3], label int32 []. */
static void read_example(tw_graph *g, const char *const *names, int num_names, tw_output example[2])
{
    tw_output files = tw_string_input_producer(g, names, num_names, NULL);
    tw_output record = tw_reader_read(g, tw_fixed_length_record_reader(g, 0, RECORD, 0), files, NULL);
    tw_output bytes = tw_decode_raw(g, record, TW_UINT8, true);
    tw_output planes = tw_reshape(g, tw_slice(g, bytes, TW_SHAPE(1), TW_SHAPE(3072)), TW_SHAPE(3, 32, 32));
    tw_output image = tw_cast(g, tw_transpose(g, planes, TW_SHAPE(1, 2, 0)), TW_FLOAT32);
    image = tw_random_crop(g, image, TW_SHAPE(24, 24, 3), 0);
    image = tw_random_flip_left_right(g, image, 0);
    image = tw_random_brightness(g, image, 63, 0);
    image = tw_random_contrast(g, image, 0.2f, 1.8f, 0);
    example[0] = tw_image_standardization(g, image);
    example[1] = tw_reshape(g, tw_cast(g, tw_slice(g, bytes, TW_SHAPE(0), TW_SHAPE(1)), TW_INT32), TW_SCALAR);
}

typedef struct program {
    tw_output loss, train, waiting, initialize;
} program;

static program build(tw_graph *g, const char *const *names, int num_names, int gpus)
{
    program p = {{0}};
    const tw_model *model = tw_model_find("cifar10");
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, model->learning_rate));
    tw_grads *grads[MOST_GPUS];
    tw_output losses[MOST_GPUS], example[2], batch[2], queue;
    TW_DEVICE(g, "/cpu:0") {
        read_example(g, names, num_names, example);
        tw_batch_options options = {.batch = BATCH, .threads = THREADS, .min_after_dequeue = KEPT};
        tw_shuffle_batch(g, example, 2, &options, batch);
        queue = tw_prefetch_queue(g, batch, 2, 2 * gpus);
        p.waiting = tw_queue_size(g, queue);
    }
    for (int i = 0; i < gpus; i++)
        TW_DEVICE(g, "/gpu:%d", i)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            tw_output mine[2];
            TW_DEVICE(g, "/cpu:0")
                tw_dequeue(g, queue, mine);
            losses[i] = tw_model_loss(g, model, mine[0], mine[1], TW_FLOAT32);
            grads[i] = tw_compute_gradients(sgd, losses[i]);
            tw_reuse_variables(g);
        }
    p.loss = tw_reduce_mean(g, tw_pack(g, losses, gpus, 0), NULL, 0, false);
    p.train = tw_apply_gradients(sgd, tw_average_gradients(g, grads, gpus, NULL), tw_global_step(g));
    p.initialize = tw_initialize_variables(g);
    return p;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    int gpus = argc > 1 ? atoi(argv[1]) : 2, steps = argc > 2 ? atoi(argv[2]) : 5;
    char paths[MOST_FILES][600];
    const char *names[MOST_FILES];
    if (gpus < 1 || gpus > MOST_GPUS) {
        fprintf(stderr, "GPUS: expected 1 to %d\n", MOST_GPUS);
        return 2;
    }
    int num_names = list_files(argc > 3 ? argv[3] : NULL, paths, names);
    tw_graph *g = tw_graph_create();
    program p = build(g, names, num_names, gpus);

    tw_error error = TW_NO_ERROR;
    tw_devices *devices = open_gpus(gpus);
    tw_session *session;
    tw_coordinator *coordinator;
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &p.initialize, 1, NULL, &error), &error);
    check(tw_coordinator_create(&coordinator, &error), &error);
    check(tw_start_queue_runners(session, coordinator, &error), &error);

    tw_output fetches[] = {p.loss, p.train, p.waiting};
    tw_tensor *values[3] = {0};
    for (int step = 0; step < steps && !tw_coordinator_should_stop(coordinator); step++) {
        if (tw_session_run(session, NULL, 0, fetches, 3, values, &error) != TW_OK) {
            tw_coordinator_request_stop(coordinator, &error);
            break;
        }
        printf("step %d, loss = %.2f (%d batches wait)\n", step, tw_tensor_value(values[0], 0),
               (int)tw_tensor_value(values[2], 0));
    }
    tw_coordinator_request_stop(coordinator, NULL);
    check(tw_coordinator_join(coordinator, 120, &error), &error);
    printf("stopped: all is well\n");

    for (int i = 0; i < 3; i++)
        tw_tensor_release(values[i]);
    tw_coordinator_destroy(coordinator);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    if (argc <= 3)
        unlink(names[0]);
    return 0;
}
