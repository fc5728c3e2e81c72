/* graph.c - steps of a graph that TensorFlow wrote, timed on demand, so that another program can take turns with it
 * (tf1/compare.py).
 *
 *     bench_graph GRAPH [--threads N] [--init NODE]... [--feed NAME=FILE]... --fetch NAME... [--trace FILE]
 *
 * NAME is an output, as loss:0, or a node that is run without giving anything. FILE is an array of NumPy's, or, where
 * it ends in .txt, a text a line. For each number in a line of the standard input, so many steps are run, and their
 * seconds and those of the processors are printed. --trace: how long each kernel of the last one took, for
 * chrome://tracing. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tower/device.h>
#include <tower/io.h>
#include <tower/session.h>

enum { MOST = 16, LONGEST = 512, MOST_TEXTS = 1 << 16 };

typedef struct work {
    tw_graph *graph;
    tw_session *session;
    tw_feed feeds[MOST];
    tw_output init[MOST], fetches[MOST];
    tw_tensor *results[MOST];
    int num_feeds, num_init, num_fetches, threads;
    const char *trace;
} work;

static tw_error error;

static void check(tw_status status)
{
    if (status == TW_OK)
        return;
    fprintf(stderr, "bench_graph: %s\n", error.message);
    exit(1);
}

static void complain(const char *what, const char *which)
{
    fprintf(stderr, "bench_graph: %s '%s'\n", what, which);
    exit(2);
}

static tw_output output_of(const work *w, const char *text)
{
    char name[LONGEST];
    snprintf(name, sizeof name, "%s", text);
    char *colon = strchr(name, ':');
    int index = colon ? atoi(colon + 1) : -1;
    if (colon)
        *colon = 0;
    tw_node *node = tw_graph_find(w->graph, name);
    if (!node)
        complain("there is no node", name);
    return (tw_output){node, index};
}

static tw_tensor *read_texts(const char *path)
{
    static char *lines[MOST_TEXTS];
    size_t room = 0;
    int64_t count = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        complain("cannot read", path);
    for (size_t i = 0; i < MOST_TEXTS && getline(&lines[i], (room = 0, &room), file) > 0; i++)
        count++;
    fclose(file);
    tw_tensor *tensor = tw_tensor_create(TW_STRING, TW_SHAPE(count));
    for (int64_t i = 0; tensor && i < count; i++)
        check(tw_tensor_set_string(tensor, i, lines[i], strcspn(lines[i], "\n")));
    for (int64_t i = 0; i < MOST_TEXTS; i++)
        free(lines[i]);
    return tensor;
}

static void add_feed(work *w, char *text)
{
    char *path = strchr(text, '=');
    if (!path)
        complain("no file for", text);
    *path++ = 0;
    tw_feed *feed = &w->feeds[w->num_feeds++];
    feed->output = output_of(w, text);
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".txt") == 0)
        feed->tensor = read_texts(path);
    else
        check(tw_tensor_read_npy(path, &feed->tensor, &error));
    if (!feed->tensor)
        complain("out of memory for", path);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run_steps(work *w, long steps)
{
    double begin = seconds(CLOCK_MONOTONIC), busy = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < steps; i++)
        check(tw_session_run(w->session, w->feeds, w->num_feeds, w->fetches, w->num_fetches, w->results, &error));
    printf("%.9f %.9f\n", seconds(CLOCK_MONOTONIC) - begin, seconds(CLOCK_PROCESS_CPUTIME_ID) - busy);
    fflush(stdout);
}

static void read_arguments(work *w, int argc, char **argv)
{
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *option = argv[i];
        if (w->num_feeds == MOST || w->num_init == MOST || w->num_fetches == MOST)
            complain("too many of", option);
        if (strcmp(option, "--threads") == 0)
            w->threads = atoi(argv[i + 1]);
        else if (strcmp(option, "--trace") == 0)
            w->trace = argv[i + 1];
        else if (strcmp(option, "--init") == 0)
            w->init[w->num_init++] = output_of(w, argv[i + 1]);
        else if (strcmp(option, "--fetch") == 0)
            w->fetches[w->num_fetches++] = output_of(w, argv[i + 1]);
        else if (strcmp(option, "--feed") == 0)
            add_feed(w, argv[i + 1]);
        else
            complain("unknown option", option);
    }
}

int main(int argc, char **argv)
{
    work w = {.graph = tw_graph_create()};
    tw_devices *devices;
    char line[64];
    if (argc < 2)
        complain("usage:", "bench_graph GRAPH [options]");
    check(tw_graph_load(w.graph, argv[1], NULL, NULL, &error));
    read_arguments(&w, argc, argv);
    check(tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = w.threads, .no_gpus = true), &devices, &error));
    check(tw_session_create(w.graph,
                            TW_OPTIONS(tw_session_options, .devices = devices, .allow_soft_placement = true,
                                       .trace = w.trace != NULL),
                            &w.session, &error));
    for (int i = 0; i < w.num_init; i++)
        check(tw_session_run(w.session, w.feeds, w.num_feeds, &w.init[i], 1, NULL, &error));
    while (fgets(line, sizeof line, stdin))
        run_steps(&w, atol(line));
    if (w.trace)
        check(tw_session_write_trace(w.session, w.trace, &error));
    for (int i = 0; i < w.num_feeds; i++)
        tw_tensor_release(w.feeds[i].tensor);
    for (int i = 0; i < w.num_fetches; i++)
        tw_tensor_release(w.results[i]);
    tw_session_destroy(w.session);
    tw_devices_destroy(devices);
    tw_graph_destroy(w.graph);
    return 0;
}
