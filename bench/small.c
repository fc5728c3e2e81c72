/* small.c - what a step costs when there is next to nothing to compute: the library's own share of it.
 *
 *     bench_small [--gpus N] [--threads N]
 *
 * Prints medians, in nanoseconds:
 *     empty        a run that fetches a node which does nothing
 *     scalar       a run that fetches a scalar, less an empty one
 *     kernel       of a chain of CHAIN kernels on a single float: a run's time for each
 *     small        a training step of 64-32-10 units at batch 32 that fetches its loss
 *     small, row   the same without the loss, of ROW steps in one call
 * and the allocations of all steps measured. With --gpus the chain goes from one virtual GPU to the next and the
 * network is trained by as many towers. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tower/device.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>

enum { BATCH = 32, INPUTS = 64, HIDDEN = 32, CLASSES = 10, CHAIN = 1000, ROW = 10, SAMPLES = 2001, MOST_GPUS = 64 };

static tw_error error;

static void check(tw_status status)
{
    if (status == TW_OK)
        return;
    fprintf(stderr, "bench_small: %s\n", error.message);
    exit(1);
}

/* ---- graphs ------------------------------------------------------------------------------------------------ */

static const char *place(int i, int gpus)
{
    static char name[32];
    snprintf(name, sizeof name, gpus ? "/gpu:%d" : "/cpu:0", gpus ? i % gpus : 0);
    return name;
}

/* A variable, so that nothing of the chain is constant; no rewrite joins negations. */
static tw_output chain(tw_graph *g, int gpus)
{
    tw_output x;
    TW_DEVICE(g, "%s", place(0, gpus))
        x = tw_get_variable(g, "x", TW_FLOAT32, TW_SCALAR, (tw_initializer){.kind = TW_INIT_CONSTANT, .a = 1})->value;
    for (int i = 0; i < CHAIN; i++)
        TW_DEVICE(g, "%s", place(i, gpus))
            x = tw_neg(g, x);
    return x;
}

static tw_output random_floats(tw_graph *g, tw_shape shape)
{
    static float values[BATCH * INPUTS];
    for (int i = 0; i < BATCH * INPUTS; i++)
        values[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return tw_constant_floats(g, shape, values);
}

static tw_output loss_of(tw_graph *g)
{
    int32_t labels[BATCH];
    tw_layer_options relu = {.activation = tw_relu};
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    tw_output x = tw_dense_layer(g, "hidden", random_floats(g, TW_SHAPE(BATCH, INPUTS)), HIDDEN, &relu);
    tw_output logits = tw_dense_layer(g, "logits", x, CLASSES, NULL);
    tw_output losses = tw_sparse_softmax_cross_entropy(g, logits, tw_constant_int32s(g, TW_SHAPE(BATCH), labels));
    return tw_reduce_mean(g, losses, NULL, 0, false);
}

/* Returns the update; *loss is the first tower's. */
static tw_output network(tw_graph *g, int gpus, tw_output *loss)
{
    tw_grads *grads[MOST_GPUS];
    int towers = gpus ? gpus : 1;
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.01f));
    for (int i = 0; i < towers; i++)
        TW_DEVICE(g, "%s", place(i, gpus)) {
            tw_output mine = loss_of(g);
            if (i == 0)
                *loss = mine;
            grads[i] = tw_compute_gradients(sgd, mine);
            tw_reuse_variables(g);
        }
    return tw_apply_gradients(sgd, towers == 1 ? grads[0] : tw_average_gradients(g, grads, towers, NULL), NULL);
}

/* ---- measuring --------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Of a step, as a median. */
static double measure(tw_session *s, const tw_output *fetches, int count, int row, int samples)
{
    static double times[SAMPLES];
    tw_tensor *results[2] = {NULL};
    for (int i = -samples / 10 - 2; i < samples; i++) {
        double start = now_ns();
        check(row > 1 ? tw_session_run_steps(s, row, NULL, 0, fetches, count, results, NULL, &error)
                      : tw_session_run(s, NULL, 0, fetches, count, results, &error));
        if (i >= 0)
            times[i] = (now_ns() - start) / row;
    }
    for (int i = 0; i < count; i++)
        tw_tensor_release(results[i]);
    qsort(times, (size_t)samples, sizeof *times, ascending);
    return times[samples / 2];
}

int main(int argc, char **argv)
{
    int gpus = 0, threads = 1;
    for (int i = 1; i < argc; i++) {
        int value = i + 1 < argc ? atoi(argv[i + 1]) : -1;
        if (strcmp(argv[i], "--gpus") == 0 && value >= 0 && value <= MOST_GPUS)
            gpus = value, i++;
        else if (strcmp(argv[i], "--threads") == 0 && value > 0)
            threads = value, i++;
        else
            return fprintf(stderr, "usage: bench_small [--gpus N] [--threads N]\n"), 2;
    }
    tw_graph *g = tw_graph_create();
    tw_devices *devices;
    tw_session *s;
    tw_output loss, end = chain(g, gpus), update = network(g, gpus, &loss), scalar, nothing = tw_no_op(g);
    TW_DEVICE(g, "/cpu:0")
        scalar = tw_scalar(g, 3);
    tw_output initialize = tw_initialize_variables(g), both[] = {update, loss};
    if (tw_graph_status(g) != TW_OK)
        return fprintf(stderr, "bench_small: %s\n", tw_graph_message(g)), 1;
    check(tw_devices_create(&(tw_device_options){.cpu_threads = threads, .virtual_gpus = gpus}, &devices, &error));
    check(tw_session_create(g, &(tw_session_options){.devices = devices}, &s, &error));
    check(tw_session_run(s, NULL, 0, &initialize, 1, NULL, &error));

    double empty = measure(s, &nothing, 1, 1, SAMPLES);
    double fetch = measure(s, &scalar, 1, 1, SAMPLES) - empty;
    double kernels = measure(s, &end, 1, 1, SAMPLES / 10) - empty;
    double step = measure(s, both, 2, 1, SAMPLES), in_rows = measure(s, &update, 1, ROW, SAMPLES / 20);
    int64_t before = tw_allocation_count();
    tw_tensor *results[2] = {NULL};
    check(tw_session_run(s, NULL, 0, both, 2, results, &error));
    int64_t made = tw_allocation_count() - before;
    before = tw_allocation_count();
    check(tw_session_run(s, NULL, 0, both, 2, results, &error));
    printf("empty %.0f ns, scalar %.0f ns, kernel %.0f ns, small %.0f ns, small in a row %.0f ns, allocations %lld (first "
           "run %lld)\n",
           empty, fetch, kernels / CHAIN, step, in_rows, (long long)(tw_allocation_count() - before), (long long)made);
    for (int i = 0; i < 2; i++)
        tw_tensor_release(results[i]);
    tw_session_destroy(s);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return 0;
}
