/* scale.c - what planning costs, by the size of the graph.
 *
 *     bench_scale [--layers L] [--towers T] [--gpus N] [--identities] [--json]
 *
 * A chain of L layers, each a variable, MatMul 8x8, Add and Tanh, with gradients and gradient descent; T towers of it
 * on N virtual GPUs (0: one CPU). With --identities a chain of L Identity nodes instead. Without --layers sizes from
 * 10^3 to 10^6 nodes, and for each how much longer a node takes than in the smallest graph that takes more than a tenth
 * of a second.
 *
 * Prints nodes of the graph; seconds for building it and for tw_session_prepare() of a step, in processor time; ns and
 * bytes of memory a node of planning; the first run and a run after it in seconds of the clock. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tower/device.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>

enum { UNITS = 8, MOST_TOWERS = 64 };

typedef struct job {
    int layers, towers, gpus;
    bool identities, json;
} job;

typedef struct figures {
    int nodes;
    double build, plan, first, second; /* seconds */
    double bytes;                      /* a node */
} figures;

static tw_error error;

static void check(tw_status status)
{
    if (status == TW_OK)
        return;
    fprintf(stderr, "bench_scale: %s\n", error.message);
    exit(1);
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Bytes of memory that the process has. */
static double resident(void)
{
    long pages = 0, own = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &own) != 2)
        own = 0;
    if (file)
        fclose(file);
    return (double)own * (double)sysconf(_SC_PAGESIZE);
}

/* ---- graphs ------------------------------------------------------------------------------------------------ */

static tw_output small_square(tw_graph *g)
{
    static float values[UNITS * UNITS];
    tw_tensor *tensor = tw_tensor_from(TW_FLOAT32, TW_SHAPE(UNITS, UNITS), values);
    tw_output output = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return output;
}

static tw_output build_tower(tw_graph *g, const job *j)
{
    char name[32];
    tw_output x = small_square(g);
    for (int i = 0; i < j->layers; i++) {
        snprintf(name, sizeof name, "w%d", i);
        tw_variable *w = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(UNITS, UNITS),
                                         (tw_initializer){.kind = TW_INIT_CONSTANT, .a = 0.1f});
        x = tw_tanh(g, tw_add(g, tw_matmul(g, x, w->value), small_square(g)));
    }
    return tw_reduce_mean(g, x, NULL, 0, false);
}

/* Every tower has variables of its own: what is measured is planning, not how towers meet. */
static tw_output build_chain(tw_graph *g, const job *j)
{
    char scope[32];
    tw_output steps[MOST_TOWERS];
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.01f));
    for (int t = 0; t < j->towers; t++) {
        snprintf(scope, sizeof scope, j->gpus ? "/gpu:%d" : "/cpu:0", j->gpus ? t % j->gpus : 0);
        tw_enter_device(g, "%s", scope);
        snprintf(scope, sizeof scope, "tower_%d", t);
        tw_enter_variable_scope(g, "%s", scope);
        tw_output loss = build_tower(g, j);
        int first = t * j->layers;
        tw_variable **own = malloc(sizeof *own * (size_t)j->layers);
        for (int i = 0; i < j->layers; i++)
            own[i] = tw_graph_variable(g, first + i);
        steps[t] = tw_apply_gradients(sgd, tw_compute_gradients_of(sgd, loss, own, j->layers), NULL);
        free(own);
        tw_leave_variable_scope(g);
        tw_leave_device(g);
    }
    return tw_group(g, steps, j->towers);
}

static tw_output build_identities(tw_graph *g, const job *j)
{
    tw_output x =
        tw_get_variable(g, "x", TW_FLOAT32, TW_SCALAR, (tw_initializer){.kind = TW_INIT_CONSTANT, .a = 1})->value;
    for (int i = 0; i < j->layers; i++)
        x = tw_identity(g, x);
    return x;
}

/* ---- measuring --------------------------------------------------------------------------------------------- */

static double timed_run(tw_session *session, tw_output step)
{
    tw_tensor *value = NULL;
    double began = seconds_of(CLOCK_MONOTONIC);
    check(tw_session_run(session, NULL, 0, &step, 1, &value, &error));
    tw_tensor_release(value);
    return seconds_of(CLOCK_MONOTONIC) - began;
}

static figures measure(const job *j)
{
    figures f = {0};
    tw_devices *devices;
    tw_session *session;
    check(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = j->gpus}, &devices, &error));
    double began = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    tw_graph *g = tw_graph_create();
    tw_output step = j->identities ? build_identities(g, j) : build_chain(g, j);
    tw_output init = tw_initialize_variables(g);
    f.build = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - began;
    f.nodes = tw_graph_num_nodes(g);
    check(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    double before = resident();
    began = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    check(tw_session_prepare(session, NULL, 0, &step, 1, &error));
    f.plan = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - began;
    f.bytes = (resident() - before) / f.nodes;
    timed_run(session, init);
    f.first = timed_run(session, step);
    f.second = timed_run(session, step);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
    return f;
}

static void print(const job *j, const figures *f, double ratio)
{
    if (j->json)
        printf("{\"nodes\": %d, \"build_s\": %.4f, \"plan_s\": %.4f, \"plan_ns_a_node\": %.0f, \"bytes_a_node\": %.0f, "
               "\"first_run_s\": %.4f, \"run_s\": %.4f}\n",
               f->nodes, f->build, f->plan, f->plan * 1e9 / f->nodes, f->bytes, f->first, f->second);
    else
        printf("%9d %9.3f %9.3f %9.0f %9.0f %9.3f %9.3f %9.2f\n", f->nodes, f->build, f->plan, f->plan * 1e9 / f->nodes,
               f->bytes, f->first, f->second, ratio);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"layers", required_argument, NULL, 'l'},
        {"towers", required_argument, NULL, 't'},
        {"gpus", required_argument, NULL, 'g'},
        {"identities", no_argument, NULL, 'i'},
        {"json", no_argument, NULL, 'j'},
        {0},
    };
    job j = {.towers = 1};
    bool good = true;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 'l': j.layers = atoi(optarg); break;
        case 't': j.towers = atoi(optarg); break;
        case 'g': j.gpus = atoi(optarg); break;
        case 'i': j.identities = true; break;
        case 'j': j.json = true; break;
        default: good = false;
        }
    int sizes[] = {60, 600, 6000, 60000}, count = j.layers ? 1 : 4;
    double base = 0;
    if (!good || optind < argc || j.towers < 1 || j.towers > MOST_TOWERS || j.layers < 0) {
        fprintf(stderr, "usage: bench_scale [--layers L] [--towers T, at most %d] [--gpus N] [--identities] [--json]\n",
                MOST_TOWERS);
        return 2;
    }
    if (!j.json)
        printf("%9s %9s %9s %9s %9s %9s %9s %9s\n", "nodes", "build s", "plan s", "ns/node", "B/node", "first s", "run s",
               "ratio");
    for (int i = 0; i < count; i++) {
        if (count > 1)
            j.layers = sizes[i] * (j.identities ? 16 : 1);
        figures f = measure(&j);
        base = base > 0 || (f.plan < 0.1 && count > 1) ? base : f.plan / f.nodes;
        print(&j, &f, base > 0 ? f.plan / f.nodes / base : 1);
    }
    return 0;
}
