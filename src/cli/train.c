/* train.c - `tower train`: a model, a data set, devices, and the loop that trains until told otherwise.
 * Lives here:  the options, what follows from them, the loop.
 * Never here:  building graphs (the trainer does), what is printed (train_report.c). */
#include "command.h"
#include "job.h"
#include "signals.h"
#include "train_report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEVICES = 256, MOST_TOWERS = 1024, KEPT_CHECKPOINTS = 5 };

typedef struct settings {
    job job;
    int64_t max_steps, batch_size, global_batch_size, towers, num_gpus, seed;
    int64_t save_every, log_every, summary_every, input_threads;
    const char *devices, *trace, *disable, *learning_rate;
    int soft_placement, dtype, optimizer;
    bool log_device_placement, resume;
} settings;

static const tw_dtype dtypes[] = {TW_INVALID_DTYPE, TW_FLOAT32, TW_BFLOAT16}; /* as in the choices of --dtype */
static const tw_model_optimizer optimizers[] = {TW_MODEL_OPTIMIZER, TW_MODEL_GRADIENT_DESCENT, TW_MODEL_MOMENTUM,
                                                TW_MODEL_ADAM}; /* and of --optimizer */

/* ---- what follows from the options ------------------------------------------------------------------------- */

/* Where towers go, as names for the trainer; it puts tower i on number i modulo count. Count 0: it chooses. */
typedef struct tower_devices {
    char text[4096];
    const char *names[MOST_DEVICES];
    int count;
} tower_devices;

static bool add_device(tower_devices *list, size_t *used, const char *format, ...) TW_PRINTF(3, 4);
static bool add_device(tower_devices *list, size_t *used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof list->text - *used;
    int length = vsnprintf(list->text + *used, room, format, arguments);
    va_end(arguments);
    if (list->count == MOST_DEVICES || length < 0 || (size_t)length >= room)
        return complain("train", "--devices: expected at most %d devices in %zu letters", MOST_DEVICES,
                        sizeof list->text);
    list->names[list->count++] = list->text + *used;
    *used += (size_t)length + 1;
    return true;
}

/* --devices gpu:0,gpu:1 or --num-gpus 2; --num-gpus 0 means the CPU devices. */
static bool choose_tower_devices(const settings *s, const tw_devices *devices, tower_devices *list)
{
    size_t used = 0;
    list->count = 0;
    if (s->devices && s->num_gpus != NOT_GIVEN)
        return complain("train", "--devices and --num-gpus both say where towers go; give one of them");
    for (const char *name = s->devices; name && *name;) {
        int length = (int)strcspn(name, ",");
        if (length == 0)
            return complain("train", "--devices: expected names such as gpu:0,gpu:1, found '%s'", s->devices);
        if (!add_device(list, &used, "%s%.*s", *name == '/' ? "" : "/", length, name))
            return false;
        name += length + (name[length] == ',');
    }
    int gpus = s->num_gpus == NOT_GIVEN ? 0 : (int)s->num_gpus;
    int cpus = s->num_gpus == 0 ? tw_devices_count(devices, "CPU") : 0;
    for (int i = 0; i < gpus; i++)
        if (!add_device(list, &used, "/gpu:%d", i))
            return false;
    for (int i = 0; i < cpus; i++)
        if (!add_device(list, &used, "/cpu:%d", i))
            return false;
    return true;
}

/* The towers of the run in a directory; 0: there is none, or it does not say. */
static int towers_to_resume(const char *directory)
{
    static const char name[] = "tower/towers"; /* as the trainer saves it */
    tw_checkpoint *checkpoint = NULL;
    tw_tensor *value = NULL;
    double towers = 0;
    if (tw_checkpoint_open(directory, &checkpoint, NULL) == TW_OK && tw_checkpoint_find(checkpoint, name) >= 0 &&
        tw_checkpoint_read(checkpoint, name, &value, NULL) == TW_OK && tw_tensor_elements(value) == 1)
        towers = tw_tensor_value(value, 0);
    tw_tensor_release(value);
    tw_checkpoint_close(checkpoint);
    return towers >= 1 && towers <= MOST_TOWERS ? (int)towers : 0;
}

/* How many towers there will be. */
static int expected_towers(const settings *s, const tw_devices *devices, const tower_devices *list)
{
    if (s->towers != NOT_GIVEN)
        return (int)s->towers;
    int before = s->resume ? towers_to_resume(s->job.train_dir) : 0;
    if (before)
        return before;
    if (list->count > 0)
        return list->count;
    int gpus = tw_devices_count(devices, "GPU");
    return gpus > 0 ? gpus : tw_devices_count(devices, "CPU");
}

/* Examples for each tower, 0 if neither option says; *towers becomes their number if the total was given. */
static bool choose_batch(const settings *s, const tw_devices *devices, const tower_devices *list, int *batch,
                         int *towers)
{
    *batch = s->batch_size == NOT_GIVEN ? 0 : (int)s->batch_size;
    *towers = s->towers == NOT_GIVEN ? 0 : (int)s->towers;
    if (s->global_batch_size == NOT_GIVEN)
        return true;
    int expected = *towers = expected_towers(s, devices, list);
    if (s->global_batch_size % expected != 0)
        return complain("train",
                        "--global-batch-size %" PRId64 " does not divide by %d towers; %" PRId64 " and %" PRId64 " do",
                        s->global_batch_size, expected, s->global_batch_size - s->global_batch_size % expected,
                        s->global_batch_size - s->global_batch_size % expected + expected);
    int share = (int)(s->global_batch_size / expected);
    if (*batch && *batch != share)
        return complain("train",
                        "--batch-size %d for each of %d towers makes %" PRId64 ", not the --global-batch-size "
                        "of %" PRId64,
                        *batch, expected, (int64_t)*batch * expected, s->global_batch_size);
    *batch = share;
    return true;
}

/* 0 if it was not given: the model's. */
static bool choose_learning_rate(const settings *s, float *rate)
{
    char *end = NULL;
    *rate = s->learning_rate ? strtof(s->learning_rate, &end) : 0;
    if (!s->learning_rate || (end != s->learning_rate && !*end && *rate > 0 && *rate <= 1e6f))
        return true;
    return complain("train", "--learning-rate: expected a number above 0, such as 0.1, found '%s'", s->learning_rate);
}

/* The library passes over names it does not know, so that older and newer ones agree; here they are slips of the pen.
 */
static bool disable_is_known(const char *list)
{
    static const char *const known[] = {"fold", "merge", "collective", "fuse", "update", "reuse", "all"};
    while (list && *list) {
        char name[32];
        size_t length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        nearest near = {.word = name};
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            found |= length < sizeof name && strcmp(name, known[i]) == 0;
            nearest_consider(&near, known[i]);
        }
        if (!found)
            return complain("train", "--disable: there is no rewrite '%s'%s%s%s", name,
                            near.best ? "; did you mean '" : "", near.best ? near.best : "", near.best ? "'?" : "");
        list += length + (list[length] == ',');
    }
    return true;
}

/* Whether --disable names a rewrite, by itself or with all others. */
static bool leaves_out(const char *list, const char *rewrite)
{
    while (list && *list) {
        size_t length = strcspn(list, ",");
        if ((length == strlen(rewrite) && strncmp(list, rewrite, length) == 0) ||
            (length == strlen("all") && strncmp(list, "all", length) == 0))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* Looks before training whether the trace, which is written after it, has a place. */
static bool trace_can_be_written(const char *path)
{
    char folder[PATH_MAX];
    struct stat about;
    const char *slash = strrchr(path, '/');
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return complain("train", "--trace: expected a file to write, but '%s' is something else", path);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (access(folder, W_OK) == 0)
        return true;
    return complain("train", "--trace: cannot write '%s': %s", path, strerror(errno));
}

/* A run that would mix with an earlier one's files is refused. */
static bool directory_is_fresh(const char *directory)
{
    tw_checkpoint_list *list;
    if (tw_checkpoint_list_open(directory, &list, NULL) != TW_OK)
        return true; /* not there yet, or it will be complained about when it is written to */
    int count = tw_checkpoint_list_count(list);
    int64_t step = count ? tw_checkpoint_list_step(list, count - 1) : 0;
    tw_checkpoint_list_close(list);
    if (count)
        return complain("train",
                        "'%s' holds checkpoints of an earlier run, up to step %" PRId64
                        "; --resume continues it, another --train-dir begins anew",
                        directory, step);
    return true;
}

static void print_placement(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* ---- the loop ---------------------------------------------------------------------------------------------- */

static tw_status save(tw_trainer *trainer, train_report *report, tw_error *error)
{
    char path[PATH_MAX];
    tw_status status = tw_trainer_save(trainer, report->train_dir, KEPT_CHECKPOINTS, error);
    if (status == TW_OK && snprintf(path, sizeof path, "%s/model.ckpt-%" PRId64, report->train_dir,
                                    tw_trainer_steps_done(trainer)) < (int)sizeof path)
        report_saved(report, path);
    return status;
}

/* Trains until max_steps are done or a signal asks to stop, and saves at the end of either. */
static tw_status train(const settings *s, tw_trainer *trainer, tw_event_writer *events, train_report *report,
                       tw_error *error)
{
    tw_trainer_step_result result;
    tw_status status = TW_OK;
    int64_t done = tw_trainer_steps_done(trainer), first = done, saved = done;
    while (status == TW_OK && done < s->max_steps && !signals_stop()) {
        /* Summaries run more than the step, and a trace shows what ran last. */
        bool to_be_traced = s->trace && done + 1 == s->max_steps;
        bool summaries = s->summary_every > 0 && done % s->summary_every == 0 && !to_be_traced;
        status = summaries ? tw_trainer_step_with_summaries(trainer, events, &result, error)
                           : tw_trainer_step(trainer, &result, error);
        if (status != TW_OK)
            break;
        if (done++ == first)
            report_plan(report);
        if (s->log_every > 0 && result.step % s->log_every == 0) {
            report_step(report, &result);
            report_input(report);
        }
        if (done % s->save_every == 0 || signals_take_save()) {
            status = save(trainer, report, error);
            saved = done;
        }
    }
    if (status == TW_OK && done > saved)
        status = save(trainer, report, error);
    if (status == TW_OK && s->trace && done > first)
        status = tw_session_write_trace(tw_trainer_session(trainer), s->trace, error);
    if (status == TW_OK)
        report_end(report, done - first, signals_stop());
    return status;
}

/* The graph, for TensorBoard's graph page. */
static tw_status write_graph(tw_trainer *trainer, tw_event_writer *events, tw_error *error)
{
    void *bytes = NULL;
    size_t size = 0;
    tw_status status = tw_graph_export(tw_trainer_graph(trainer), &bytes, &size, error);
    if (status == TW_OK)
        status = tw_event_writer_add_graph(events, bytes, size, error);
    tw_free(bytes);
    return status;
}

/* With everything opened: builds the trainer, and trains. Returns the exit code. */
static int run_with(const settings *s, tw_devices *devices, tw_dataset *data, const char *data_dir)
{
    tower_devices where;
    int batch, towers;
    float rate;
    if (!disable_is_known(s->disable) || !choose_learning_rate(s, &rate) || !choose_tower_devices(s, devices, &where) ||
        !choose_batch(s, devices, &where, &batch, &towers))
        return EXIT_USAGE;
    if (s->trace && !trace_can_be_written(s->trace))
        return EXIT_FAILED;
    if (!s->resume && !directory_is_fresh(s->job.train_dir))
        return EXIT_FAILED;

    tw_trainer_options wanted = {
        .model = tw_model_at(s->job.model),
        .dataset = data,
        .devices = devices,
        .tower_devices = where.count ? where.names : NULL,
        .num_tower_devices = where.count,
        .towers = towers,
        .batch = batch,
        .seed = s->seed == NOT_GIVEN ? 0 : s->seed,
        .dtype = dtypes[s->dtype],
        .optimizer = optimizers[s->optimizer],
        .learning_rate = rate,
        .input_threads = (int)s->input_threads,
        .resume_from = s->resume ? s->job.train_dir : NULL,
        .session =
            {
                .allow_soft_placement = s->soft_placement,
                .log_device_placement = s->log_device_placement,
                .placement_log = print_placement,
                .disable = s->disable,
                .trace = s->trace != NULL,
            },
    };
    tw_error error = {0};
    tw_trainer *trainer = NULL;
    tw_event_writer *events = NULL;
    tw_status status = tw_trainer_create(&wanted, &trainer, &error);
    bool wrong_settings = status == TW_INVALID_ARGUMENT;
    if (status == TW_OK)
        status = tw_event_writer_create(s->job.train_dir, &events, &error);
    if (status == TW_OK && tw_trainer_steps_done(trainer) > 0)
        status = tw_event_writer_add_restart(events, tw_trainer_steps_done(trainer), &error);
    if (status == TW_OK && events)
        status = write_graph(trainer, events, &error);
    if (status == TW_OK) {
        train_report report = {
            .as_json = s->job.format == FORMAT_JSON,
            .model = wanted.model,
            .dataset = data,
            .data_dir = data_dir,
            .train_dir = s->job.train_dir,
            .max_steps = s->max_steps,
            .save_every = s->save_every,
            .trainer = trainer,
            .tree = !leaves_out(s->disable, "collective"),
        };
        signals_watch();
        report_start(&report);
        status = train(s, trainer, events, &report, &error);
    }
    tw_status closed = tw_event_writer_close(events, status == TW_OK ? &error : NULL);
    tw_trainer_destroy(trainer);
    if (status == TW_OK)
        status = closed;
    if (status != TW_OK) {
        failed("train", &error);
        return wrong_settings ? EXIT_USAGE : EXIT_FAILED;
    }
    return signals_stop() ? 128 + signals_stop() : EXIT_DONE;
}

static int run(const void *given)
{
    settings filled = *(const settings *)given, *s = &filled;
    char directory[PATH_MAX], own[64];
    s->job.train_dir = job_train_dir(&s->job, own, sizeof own);
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines appear as they come, through a pipe too */
    tw_devices *devices = job_open_devices("train", &s->job);
    tw_dataset *data = devices ? job_load_data("train", &s->job, TW_SPLIT_TRAIN, directory) : NULL;
    int code = data ? run_with(s, devices, data, directory) : EXIT_FAILED;
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
    return code;
}

static const option options[] = {
    MODEL_OPERAND(settings),
    DATA_OPTIONS(settings),
    {"resume", NULL, OPTION_FLAG, offsetof(settings, resume),
     "continue from the newest complete checkpoint of the train directory; to the bit, on any number of devices of the "
     "same kind"},

    {"max-steps", "N", OPTION_NUMBER, offsetof(settings, max_steps), "stop when so many steps are done in all",
     .initial = "1000000", .least = 1, .most = INT64_MAX, .section = "training"},
    {"batch-size", "N", OPTION_NUMBER, offsetof(settings, batch_size),
     "examples for each tower and step; without it the model's own (128; mnist: 1000)", .least = 1, .most = 1 << 20},
    {"global-batch-size", "N", OPTION_NUMBER, offsetof(settings, global_batch_size),
     "examples a step for all towers together, instead of --batch-size", .least = 1, .most = 1 << 28},
    {"towers", "N", OPTION_NUMBER, offsetof(settings, towers),
     "copies of the network; without it one for each device. Decides the numbers, as devices decide the speed",
     .least = 1, .most = MOST_TOWERS},
    {"seed", "N", OPTION_NUMBER, offsetof(settings, seed),
     "of the initial values and of the order of the data; without it 1", .least = 1, .most = INT64_MAX},
    {"optimizer", "NAME", OPTION_CHOICE, offsetof(settings, optimizer),
     "how gradients become updates; model: as the checkpoint says, or the model", .initial = "model",
     .choices = "model|sgd|momentum|adam"},
    {"learning-rate", "R", OPTION_TEXT, offsetof(settings, learning_rate),
     "the first learning rate, instead of the model's; to be given again with --resume"},
    {"dtype", "TYPE", OPTION_CHOICE, offsetof(settings, dtype),
     "what convolutions and matrix products compute in; auto: as the checkpoint says, or float32; variables are "
     "float32 in any case",
     .initial = "auto", .choices = "auto|float32|bfloat16"},

    {"num-gpus", "N", OPTION_NUMBER, offsetof(settings, num_gpus),
     "train on gpu:0 to gpu:N-1; 0: on the CPU; without it and --devices: on all GPUs, or else on the CPU", .least = 0,
     .most = MOST_DEVICES, .section = "devices"},
    {"devices", "LIST", OPTION_TEXT, offsetof(settings, devices),
     "train on these devices: gpu:0,gpu:1; tower i runs on number i modulo their count"},
    VIRTUAL_GPUS_OPTION(settings),
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    {"soft-placement", "on|off", OPTION_CHOICE, offsetof(settings, soft_placement),
     "replace a device that does not exist, or cannot do an operation, by the best that does", .initial = "on",
     .choices = "off|on"},
    {"log-device-placement", NULL, OPTION_FLAG, offsetof(settings, log_device_placement),
     "say on standard error where each node runs"},
    {"disable", "LIST", OPTION_TEXT, offsetof(settings, disable),
     "leave out rewrites of the graph, separated by commas: fold, merge, collective, fuse, update, reuse (of memory), "
     "or all"},
    {"input-threads", "N", OPTION_NUMBER, offsetof(settings, input_threads),
     "threads that prepare the data; 0: one for every four cores", .initial = "0", .most = 256},

    {"save-every", "N", OPTION_NUMBER, offsetof(settings, save_every), "steps between checkpoints", .initial = "1000",
     .least = 1, .most = INT64_MAX, .section = "output"},
    {"log-every", "N", OPTION_NUMBER, offsetof(settings, log_every), "steps between lines; 0: none", .initial = "10",
     .most = INT64_MAX},
    {"summary-every", "N", OPTION_NUMBER, offsetof(settings, summary_every),
     "steps between summaries for TensorBoard; 0: none", .initial = "100", .most = INT64_MAX},
    {"trace", "FILE", OPTION_FILE, offsetof(settings, trace),
     "write the times of every kernel of the last step there; opens in Perfetto and chrome://tracing"},
    FORMAT_OPTION(settings, job.format),
    {0},
};

const command train_command = {
    .name = "train",
    .summary = "train a network over several devices",
    .description =
        "Trains a network: every tower computes the gradients of its own part of the batch, their mean updates the "
        "variables that all share. The network 'cifar10' is that of TensorFlow's CIFAR-10 tutorial, and the options "
        "that the tutorial has mean the same here; 'resnet20' to 'resnet110' are those of cifar10_estimator, "
        "'mnist' that of a well-known sample for several GPUs.\n\n"
        "The numbers depend on the seed, the number of towers and the batch, never on the number of devices: a run may "
        "be stopped and resumed on more or fewer devices of the same kind (GPUs, or CPU devices with as many threads "
        "each) and goes on as if nothing had happened. Ctrl-C (and the signals TERM and HUP) finishes the step, saves "
        "a checkpoint and leaves; a second one leaves at once. The signal USR1 saves a checkpoint.",
    .examples = "tower data fetch cifar10\n"
                "tower train cifar10 --max-steps 6000\n"
                "tower train cifar10 --virtual-gpus 2 --batch-size 64 --train-dir train\n"
                "tower train cifar10 --train-dir train --resume --devices gpu:0,gpu:1\n"
                "tower train resnet20 --global-batch-size 128 --max-steps 3900\n"
                "tower train mnist --data-set fashion-mnist --max-steps 500\n"
                "tower train cifar10 --data-set synthetic --max-steps 20 --trace trace.json",
    .exit_codes = "128+n stopped by signal n, after saving",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
