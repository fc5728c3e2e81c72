/* 07_mnist_towers.c - one batch cut over several GPUs: the MNIST sample of golbin's TensorFlow-Multi-GPUs.
 *
 * Where the CIFAR-10 tutorial computes a gradient in each tower and averages them, this sample joins the losses of all
 * examples and takes the gradient of their one mean. Each node of the gradient runs beside the node it differentiates
 * (colocate_gradients_with_ops, of which the sample says "Important!"; here it is always so), hence on every GPU again.
 *
 *     07_mnist_towers [quick|timings|listing] [GPUS] [DIRECTORY]
 *
 * It runs on the GPUs that are detected; where there are fewer than asked for, virtual ones stand in for them. Its
 * graph is written to the folder logs, for TensorBoard.
 *
 * The sample is known in two settings: the published times belong to 10 epochs of batches of 10,000 ("timings"), the
 * published listing has 1000 epochs of 20,000 ("listing"). Both are of 55,000 images: 5,000 are held back.
 * scripts/mnist-table makes the published table of it.
 * DIRECTORY holds MNIST or Fashion-MNIST; without it the distribution's package is taken, or else random images.
 *
 * prints: 2 GPUs are detected : .'/device:GPU:0', .*total cost : .*Training time : 0:00:[0-9.]+ seconds /w 2 GPUs
 */
#include "example.h"

#include <string.h>
#include <time.h>

enum { MOST_GPUS = 64 };

typedef struct setting {
    const char *name;
    int batch, batches, epochs; /* batch: for all GPUs together; batches: of an epoch */
} setting;

static const setting settings[] = {
    {"quick", 80, 5, 1},
    {"timings", 10000, 5, 10},
    {"listing", 20000, 2, 1000},
};

typedef struct program {
    tw_graph *g;
    tw_output images, labels; /* of the whole batch, to be fed */
    tw_output fetches[2];     /* the loss and the training step */
} program;

static program build(int batch, int gpus)
{
    program p = {.g = tw_graph_create()};
    tw_graph *g = p.g;
    const tw_model *model = tw_model_find("mnist");
    tw_output images[MOST_GPUS], labels[MOST_GPUS], losses[MOST_GPUS];

    p.images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(batch, 28, 28, 1));
    p.labels = tw_placeholder(g, TW_INT32, TW_SHAPE(batch));
    tw_split(g, p.images, 0, images, gpus);
    tw_split(g, tw_one_hot(g, p.labels, model->classes), 0, labels, gpus);
    for (int i = 0; i < gpus; i++)
        TW_DEVICE(g, "/gpu:%d", i) {
            tw_output logits = model->logits(g, model, images[i], TW_FLOAT32, true);
            losses[i] = tw_softmax_cross_entropy(g, logits, labels[i]); /* [batch / gpus] */
            tw_reuse_variables(g);
        }
    p.fetches[0] = tw_reduce_mean(g, tw_concat(g, losses, gpus, 0), NULL, 0, false);

    tw_optimizer *adam = tw_adam(g, tw_scalar(g, 0.001f), 0.9f, 0.999f, 1e-8f);
    p.fetches[1] = tw_apply_gradients(adam, tw_compute_gradients(adam, p.fetches[0]), NULL);
    return p;
}

/* How many the machine has; two without any, which are virtual then. */
static int detected_gpus(void)
{
    tw_error error = TW_NO_ERROR;
    tw_devices *devices;
    check(tw_devices_create(NULL, &devices, &error), &error);
    int count = tw_devices_count(devices, "GPU");
    tw_devices_destroy(devices);
    return count ? count : 2;
}

/* "2 GPUs are detected : ['/device:GPU:0', '/device:GPU:1']" */
static void print_gpus(const tw_devices *devices, int gpus)
{
    int first = tw_devices_count(devices, "CPU");
    printf("%d GPUs are detected : [", gpus);
    for (int i = 0; i < gpus; i++)
        printf("%s'%s'", i ? ", " : "", strstr(tw_devices_info(devices, first + i).name, "/device:"));
    printf("]\n");
}

static tw_dataset *load(const char *directory)
{
    tw_error error = TW_NO_ERROR;
    tw_dataset *data = NULL;
    const char *name = directory ? tw_dataset_detect(directory) : "fashion-mnist";
    tw_dataset_options options = {.hold_back = 5000};
    tw_status status = tw_dataset_load(name ? name : "mnist", directory, TW_SPLIT_TRAIN, &options, &data, &error);
    if (status != TW_OK && !directory)
        status = tw_dataset_synthetic(1000, 28, 28, 1, 10, 1, &data, &error);
    check(status, &error);
    return data;
}

/* The graph, for TensorBoard. */
static void write_graph(const tw_graph *g)
{
    tw_error error = TW_NO_ERROR;
    tw_event_writer *writer;
    void *bytes = NULL;
    size_t size = 0;
    check(tw_event_writer_create("logs", &writer, &error), &error);
    check(tw_graph_export(g, &bytes, &size, &error), &error);
    check(tw_event_writer_add_graph(writer, bytes, size, &error), &error);
    check(tw_event_writer_close(writer, &error), &error);
    tw_free(bytes);
}

/* "0:00:22.252533", as Python prints a difference of times. */
static void print_duration(double seconds)
{
    long long whole = (long long)seconds;
    int millionths = (int)((seconds - (double)whole) * 1e6);
    printf("%lld:%02lld:%02lld.%06d", whole / 3600, whole / 60 % 60, whole % 60, millionths);
}

static double now(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void train(const setting *s, const program *p, tw_session *session, tw_pipeline *input, int gpus)
{
    tw_error error = TW_NO_ERROR;
    tw_tensor *images = tw_tensor_create(TW_FLOAT32, TW_SHAPE(s->batch, 28, 28, 1));
    tw_tensor *labels = tw_tensor_create(TW_INT32, TW_SHAPE(s->batch)), *results[2] = {NULL};
    tw_feed feeds[] = {{p->images, images}, {p->labels, labels}};
    if (!images || !labels) {
        fprintf(stderr, "no memory for %d images\n", s->batch);
        exit(1);
    }
    double start = now();
    for (int epoch = 0; epoch < s->epochs; epoch++) {
        double cost = 0;
        for (int i = 0; i < s->batches; i++) {
            check(tw_pipeline_next(input, 0, tw_tensor_data(images), tw_tensor_data(labels), &error), &error);
            check(tw_session_run(session, feeds, 2, p->fetches, 2, results, &error), &error);
            cost += tw_tensor_value(results[0], 0);
        }
        printf("total cost : %g\n", cost);
    }
    printf("--- Training time : ");
    print_duration(now() - start);
    printf(" seconds /w %d GPUs ---\n", gpus);
    tw_tensor_release(results[0]);
    tw_tensor_release(images);
    tw_tensor_release(labels);
}

int main(int argc, char **argv)
{
    const setting *s = NULL;
    const char *name = argc > 1 ? argv[1] : "quick";
    int gpus = argc > 2 ? atoi(argv[2]) : detected_gpus();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strcmp(settings[i].name, name) == 0)
            s = &settings[i];
    if (!s || gpus < 1 || gpus > MOST_GPUS) {
        fprintf(stderr, "usage: 07_mnist_towers [quick|timings|listing] [GPUS] [DIRECTORY]\n");
        return 2;
    }

    tw_error error = TW_NO_ERROR;
    tw_devices *devices = open_gpus(gpus);
    tw_session *session;
    tw_pipeline *input;
    print_gpus(devices, gpus);
    tw_dataset *data = load(argc > 3 ? argv[3] : NULL);
    printf("total: %lld, %d, %d\n", (long long)tw_dataset_count(data), s->batches, s->batch);
    tw_pipeline_options options = {.batch = s->batch, .seed = 1, .shuffle = true};
    check(tw_pipeline_create(data, &options, &input, &error), &error);

    program p = build(s->batch, gpus);
    tw_output init = tw_initialize_variables(p.g);
    tw_session_options placement = {.devices = devices, .allow_soft_placement = true};
    check(tw_session_create(p.g, &placement, &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), &error);
    write_graph(p.g);
    train(s, &p, session, input, gpus);

    tw_session_destroy(session);
    tw_graph_destroy(p.g);
    tw_pipeline_destroy(input);
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
    return 0;
}
