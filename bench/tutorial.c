/* tutorial.c - training the CIFAR-10 tutorial's network, or another model, as a user of the library does: whole steps
 * of a trainer on synthetic images, input pipeline and all, each step's loss looked at.
 *
 *     bench_tutorial [--model NAME] [--threads N] [--cpu-devices N] [--gpus N] [--towers N] [--batch N]
 *                    [--dtype float32|bfloat16] [--steps N] [--warm-up N] [--json] [--trace FILE] [--disable REWRITES]
 *     bench_tutorial --first-step N ...
 *
 * Without --first-step: the median time of a step, and the median of the processors' time in it, which other programs
 * disturb less. With it: N processes, one after the other, are started to take one
 * step each, and what is measured is from before a process is started to the end of its step.
 * --threads is the team of each CPU device; 0, as without it, its share of the cores. --gpus N trains on the
 * first N GPUs, each with variables of its own; --tf32 lets them multiply in TF32.
 * The last step's heap allocations are counted twice: those the library made, and all of the process. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <tower/tower.h>
#include <unistd.h>

enum { MOST_STEPS = 100000, EXAMPLES = 1024, MOST_GPUS = 64 };

/* ---- every allocation of the process ----------------------------------------------------------------------- */

/* glibc's own functions; those of the usual names, below, stand before them for all libraries of the process. */
#pragma GCC visibility push(default)
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_long process_allocations;

static void count_one(void)
{
    atomic_fetch_add_explicit(&process_allocations, 1, memory_order_relaxed);
}

void *malloc(size_t bytes)
{
    count_one();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_one();
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count_one();
    return __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    count_one();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = memalign(alignment, bytes);
    return *block ? 0 : ENOMEM;
}
#pragma GCC visibility pop

/* ---- options ----------------------------------------------------------------------------------------------- */

typedef struct settings {
    int threads, cpu_devices, gpus, towers, batch, steps, warm_up;
    int first_step;   /* processes to start; 0: none */
    double since;     /* s, of the clock below: measure from there to the end of one step; 0: no */
    bool json, tf32;
    const char *model, *dtype, *trace, *disable;
} settings;

enum {
    MODEL = 256, THREADS, CPU_DEVICES, GPUS, TOWERS, BATCH, DTYPE, STEPS, WARM_UP, JSON, TRACE, DISABLE, FIRST_STEP, SINCE, TF32,
};

static const struct option options[] = {
    {"model", required_argument, NULL, MODEL},
    {"threads", required_argument, NULL, THREADS},
    {"cpu-devices", required_argument, NULL, CPU_DEVICES},
    {"gpus", required_argument, NULL, GPUS},
    {"towers", required_argument, NULL, TOWERS},
    {"batch", required_argument, NULL, BATCH},
    {"dtype", required_argument, NULL, DTYPE},
    {"steps", required_argument, NULL, STEPS},
    {"warm-up", required_argument, NULL, WARM_UP},
    {"json", no_argument, NULL, JSON},
    {"tf32", no_argument, NULL, TF32},
    {"trace", required_argument, NULL, TRACE},
    {"disable", required_argument, NULL, DISABLE},
    {"first-step", required_argument, NULL, FIRST_STEP},
    {"since", required_argument, NULL, SINCE}, /* what --first-step gives to the processes it starts */
    {0},
};

static void die(const char *text)
{
    fprintf(stderr, "bench_tutorial: %s\n", text);
    exit(1);
}

static int number(const char *text, int least, int most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < least || value > most) {
        fprintf(stderr, "bench_tutorial: '%s' is not a number from %d to %d\n", text, least, most);
        exit(2);
    }
    return (int)value;
}

static settings read_options(int argc, char **argv)
{
    settings s = {.cpu_devices = 1, .steps = 30, .warm_up = 5, .model = "cifar10", .dtype = "float32"};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case MODEL: s.model = optarg; break;
        case THREADS: s.threads = number(optarg, 0, 1024); break;
        case CPU_DEVICES: s.cpu_devices = number(optarg, 1, 1024); break;
        case GPUS: s.gpus = number(optarg, 1, MOST_GPUS); break;
        case TOWERS: s.towers = number(optarg, 1, 1024); break;
        case BATCH: s.batch = number(optarg, 1, 1 << 16); break;
        case DTYPE: s.dtype = optarg; break;
        case STEPS: s.steps = number(optarg, 1, MOST_STEPS); break;
        case WARM_UP: s.warm_up = number(optarg, 0, MOST_STEPS); break;
        case JSON: s.json = true; break;
        case TF32: s.tf32 = true; break;
        case TRACE: s.trace = optarg; break;
        case DISABLE: s.disable = optarg; break;
        case FIRST_STEP: s.first_step = number(optarg, 1, 1000); break;
        case SINCE: s.since = strtod(optarg, NULL); break;
        default: exit(2);
        }
    if (strcmp(s.dtype, "float32") != 0 && strcmp(s.dtype, "bfloat16") != 0) {
        fprintf(stderr, "bench_tutorial: '%s' is not a type; float32 and bfloat16 are\n", s.dtype);
        exit(2);
    }
    if (!tw_model_find(s.model)) {
        fprintf(stderr, "bench_tutorial: there is no model '%s'\n", s.model);
        exit(2);
    }
    return s;
}

/* ---- measuring --------------------------------------------------------------------------------------------- */

static double now(void) /* s */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of all processors, s. */
static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

typedef struct training {
    tw_dataset *dataset;
    tw_devices *devices;
    tw_trainer *trainer;
    tw_error error;
} training;

static void check(const training *t, tw_status status)
{
    if (status != TW_OK)
        die(t->error.message);
}

static void start(training *t, const settings *s)
{
    const tw_model *model = tw_model_find(s->model);
    int height = model->height > 32 ? model->height : 32, width = model->width > 32 ? model->width : 32;
    check(t, tw_dataset_synthetic(EXAMPLES, height, width, model->channels, model->classes, 1, &t->dataset, &t->error));
    check(t, tw_devices_create(&(tw_device_options){.cpu_devices = s->cpu_devices, .cpu_threads = s->threads,
                                                    .tf32 = s->tf32, .no_gpus = s->gpus == 0},
                               &t->devices, &t->error));
    char names[MOST_GPUS][16];
    const char *places[MOST_GPUS];
    for (int i = 0; i < s->gpus; i++) {
        snprintf(names[i], sizeof names[i], "/gpu:%d", i);
        places[i] = names[i];
    }
    tw_trainer_options o = {
        .model = model,
        .tower_devices = s->gpus ? places : NULL,
        .num_tower_devices = s->gpus,
        .variables = {.update = s->gpus ? TW_UPDATE_REPLICATED : TW_UPDATE_DEFAULT},
        .dataset = t->dataset,
        .devices = t->devices,
        .towers = s->towers,
        .batch = s->batch,
        .dtype = strcmp(s->dtype, "bfloat16") == 0 ? TW_BFLOAT16 : TW_FLOAT32,
        .session = {.trace = s->trace != NULL, .disable = s->disable},
    };
    check(t, tw_trainer_create(&o, &t->trainer, &t->error));
}

static float take_step(training *t)
{
    tw_trainer_step_result result;
    check(t, tw_trainer_step(t->trainer, &result, &t->error));
    return result.loss;
}

static void end(training *t)
{
    tw_trainer_destroy(t->trainer);
    tw_devices_destroy(t->devices);
    tw_dataset_destroy(t->dataset);
}

static void measure_steps(const settings *s)
{
    static double times[MOST_STEPS], processor_times[MOST_STEPS]; /* ms */
    training t = {0};
    start(&t, s);
    float first = take_step(&t), loss = first;
    for (int i = 1; i < s->warm_up; i++)
        take_step(&t);
    tw_pipeline_statistics before, after;
    tw_trainer_input_statistics(t.trainer, &before);
    long process = 0;
    int64_t library = 0;
    for (int i = 0; i < s->steps; i++) {
        process = atomic_load(&process_allocations);
        library = tw_allocation_count();
        double begin = now(), processor = processor_time();
        loss = take_step(&t);
        times[i] = (now() - begin) * 1e3;
        processor_times[i] = (processor_time() - processor) * 1e3;
    }
    process = atomic_load(&process_allocations) - process;
    library = tw_allocation_count() - library;
    tw_trainer_input_statistics(t.trainer, &after);
    if (s->trace)
        check(&t, tw_session_write_trace(tw_trainer_session(t.trainer), s->trace, &t.error));
    double middle = median(times, s->steps), least = times[0], most = times[s->steps - 1];
    double processor = median(processor_times, s->steps);
    double waited = (after.wait_seconds - before.wait_seconds) * 1e3 / s->steps;
    double filled = (after.fill_seconds - before.fill_seconds) * 1e3 / s->steps;
    double images = tw_trainer_batch(t.trainer) * tw_trainer_towers(t.trainer) / middle * 1e3;
    int threads = tw_devices_info(t.devices, 0).threads;
    int64_t steps = tw_trainer_steps_done(t.trainer);
    if (s->json)
        printf("{\"dtype\": \"%s\", \"gpus\": %d, \"cpu_devices\": %d, \"threads\": %d, \"towers\": %d, \"batch\": %d, "
               "\"ms\": %.4f, \"processor_ms\": %.4f, \"least_ms\": %.4f, \"most_ms\": %.4f, "
               "\"images_per_second\": %.1f, \"input_wait_ms\": %.4f, \"input_fill_ms\": %.4f, \"last_step\": %lld, "
               "\"library_allocations\": %lld, \"process_allocations\": %ld, \"loss\": %.4f}\n",
               s->dtype, s->gpus, s->cpu_devices, threads, tw_trainer_towers(t.trainer), tw_trainer_batch(t.trainer),
               middle, processor, least, most, images, waited, filled, (long long)steps - 1, (long long)library,
               process, loss);
    else
        printf("%s, %d CPU device%s of %d thread%s, %d tower%s of %d images: median %.2f ms a step (%.2f to %.2f), "
               "%.2f of processors, %.0f images/s\ninput: %.2f ms a step of a thread's work, %.2f ms waited for\n"
               "heap allocations in step %lld: %lld of the library, %ld of the process\nloss %.3f -> %.3f\n",
               s->dtype, s->cpu_devices, s->cpu_devices == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
               tw_trainer_towers(t.trainer), tw_trainer_towers(t.trainer) == 1 ? "" : "s", tw_trainer_batch(t.trainer),
               middle, least, most, processor, images, filled, waited, (long long)steps - 1, (long long)library,
               process, first, loss);
    end(&t);
}

/* ---- from nothing to the end of the first step --------------------------------------------------------------- */

static void report_first_step(const settings *s)
{
    training t = {0};
    start(&t, s);
    take_step(&t);
    printf("%.4f\n", (now() - s->since) * 1e3);
    end(&t);
}

/* Starts this program again, with --since; returns what it prints, ms. */
static double one_first_step(int argc, char **argv)
{
    extern char **environ;
    char since[64], line[64] = "", *arguments[64];
    if (argc + 3 > (int)(sizeof arguments / sizeof *arguments))
        die("too many arguments");
    memcpy(arguments, argv, (size_t)argc * sizeof *argv);
    arguments[argc] = "--since";
    arguments[argc + 1] = since;
    arguments[argc + 2] = NULL;
    int ends[2], status;
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe(ends) != 0)
        die(strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    snprintf(since, sizeof since, "%.9f", now());
    if (posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ) != 0)
        die("cannot start a process");
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    waitpid(child, &status, 0);
    if (!read || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("a process failed to take its first step");
    return strtod(line, NULL);
}

static void measure_first_steps(const settings *s, int argc, char **argv)
{
    static double times[1000]; /* ms */
    for (int i = 0; i < s->first_step; i++)
        times[i] = one_first_step(argc, argv);
    double middle = median(times, s->first_step);
    printf(s->json ? "{\"processes\": %d, \"first_step_ms\": %.2f, \"least_ms\": %.2f, \"most_ms\": %.2f}\n"
                   : "%d processes: median %.1f ms from start to the end of the first step (%.1f to %.1f)\n",
           s->first_step, middle, times[0], times[s->first_step - 1]);
}

int main(int argc, char **argv)
{
    settings s = read_options(argc, argv);
    if (s.since > 0)
        report_first_step(&s);
    else if (s.first_step)
        measure_first_steps(&s, argc, argv);
    else
        measure_steps(&s);
    return 0;
}
