/* train.c - `tower train`: the options, and the loop that trains until told otherwise.
 * Never here:  what follows from the options (training.c), building graphs (the trainer does), what is printed
 *              (train_report.c). */
#include "command.h"
#include "clock.h"
#include "config.h"
#include "divergence.h"
#include "fit.h"
#include "job.h"
#include "json.h"
#include "lock.h"
#include "moves.h"
#include "painter.h"
#include "run_file.h"
#include "signals.h"
#include "train_report.h"
#include "training.h"
#include "validation.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tower/crash.h>
#include <unistd.h>

typedef train_settings settings;

/* ---- before training --------------------------------------------------------------------------------------- */

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

/* The text that a preset gives an option; NULL: none does. */
static const char *preset_text(const presets *presets, const char *name)
{
    const char *text = NULL;
    for (int i = 0; i < presets->count; i++)
        if (strcmp(presets->items[i].name, name) == 0)
            text = presets->items[i].text;
    return text;
}

/* A run that goes on has the options that it had; then those of --config; the command line wins over both. */
static bool read_presets(const void *given, presets *presets)
{
    const settings *s = given;
    const char *again = getenv(RESUME_VARIABLE);
    char own[64];
    struct presets file = {0};
    bool good = !s->config || config_read("train", s->config, NULL, &file), bad = false;
    const char *resume = preset_text(&file, "resume"), *directory = preset_text(&file, "train-dir");
    if (s->job.train_dir || !directory)
        directory = s->job.train_dir || s->job.model >= 0 ? job_train_dir(&s->job, own, sizeof own) : NULL;
    bool is_again = again && again[0];
    if (good && directory && (s->resume || is_again || (resume && strcmp(resume, "on") == 0))) {
        cJSON *before = run_file_read("train", directory, &bad);
        good = !bad && (!before || ((s->accept_other_bits || run_file_team(before, directory, presets)) &&
                                    run_file_presets(before, directory, NULL, presets)) ||
                        complain("train", "out of memory"));
        cJSON_Delete(before);
    }
    presets_free(&file);
    return good && (!s->config || config_read("train", s->config, NULL, presets)) &&
           (!is_again || presets_add(presets, RESUME_VARIABLE, "resume", "on", false) ||
            complain("train", "out of memory"));
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

/* A run that is to go on but has nothing to go on from begins anew, which is right the first time a job is started and
 * wrong when the directory is mistyped: so it is said. */
static void tell_if_nothing_resumes(const char *directory, bool is_new)
{
    tw_checkpoint_list *list;
    bool there = tw_checkpoint_list_open(directory, &list, NULL) == TW_OK;
    int count = there ? tw_checkpoint_list_count(list) : 0;
    if (there)
        tw_checkpoint_list_close(list);
    if (count == 0)
        complain("train", "--resume: there is %s '%s'; training begins at step 0",
                 is_new ? "no directory" : "no checkpoint in", directory);
}

/* Why a job that has no room has none, and what would have. */
static void tell_what_fits(const training *t)
{
    tw_error error = {0};
    int64_t batch = 0;
    if (fit_largest_batch(&t->options, 0, &batch, &error) != TW_OK)
        return;
    if (batch > 0)
        complain("train", "the largest batch for each tower that fits is %" PRId64 " (--batch-size %" PRId64 ")", batch,
                 batch);
    else if (batch == 0)
        complain("train", "not even a batch of one example for each tower fits");
}

/* ---- the loop ---------------------------------------------------------------------------------------------- */

/* A milestone is saved a second time, where nothing is deleted. */
static tw_status save(const settings *s, tw_trainer *trainer, train_report *report, tw_error *error)
{
    char path[PATH_MAX];
    int64_t done = tw_trainer_steps_done(trainer);
    if (!lock_keep("train", report->lock)) {
        snprintf(error->message, sizeof error->message, "nothing is saved into '%.800s' any more", report->train_dir);
        return error->status = TW_FAILED_PRECONDITION;
    }
    busy_begin("saving");
    tw_status status = tw_trainer_save(trainer, report->train_dir, (int)s->keep, error);
    if (status == TW_OK && s->keep_every > 0 && done % s->keep_every == 0) {
        snprintf(path, sizeof path, "%.4000s/milestones", report->train_dir);
        status = tw_trainer_save(trainer, path, 0, error);
    }
    busy_end();
    if (status == TW_OK && snprintf(path, sizeof path, "%s/model.ckpt-%" PRId64, report->train_dir,
                                    tw_trainer_checkpoint_step(trainer)) < (int)sizeof path)
        report_saved(report, path);
    return status;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The steps behind which a checkpoint is due: the tutorial saves after its steps 0, 1000, ..., and counts from 0. */
static int64_t steps_since_save(const settings *s, int64_t done)
{
    return (done + s->save_every - recipe_is_tutorial(&s->recipe)) % s->save_every;
}

/* How many steps may come in a row: to the step that gets a line, that is saved behind, or before one with
 * summaries. */
static int64_t steps_to_next_stop(const settings *s, const train_report *report, int64_t done)
{
    int64_t most = smaller(report->max_steps - done, s->save_every - steps_since_save(s, done));
    if (s->eval_every > 0)
        most = smaller(most, s->eval_every - done % s->eval_every);
    if (s->keep_every > 0)
        most = smaller(most, s->keep_every - done % s->keep_every);
    if (s->log_every > 0)
        most = smaller(most, (s->log_every - done % s->log_every) % s->log_every + 1);
    if (s->summary_every > 0)
        most = smaller(most, s->summary_every - done % s->summary_every);
    most = smaller(most, report_steps_to_look(report, done));
    return tw_trainer_updates(report->trainer) == TW_UPDATES_ASYNCHRONOUS ? 1 : most;
}

static bool is_due(int64_t every, int64_t done)
{
    return every > 0 && done % every == 0;
}

/* What was asked of the process from outside. */
typedef struct asked {
    int stop, save;
} asked;

/* Among several tasks all stop where task 0 says that any was asked to; to save it alone is asked. */
static tw_status look_outside(const train_report *report, asked *asked, tw_error *error)
{
    asked->stop = tw_devices_asked(report->devices, signals_stop());
    asked->save = signals_take_save();
    return tw_devices_share(report->devices, asked, sizeof *asked, error);
}

/* How many steps come next, and whether that is looked at; of several tasks as task 0 says. */
typedef struct turn {
    int64_t steps;
    bool looked_at;
} turn;

/* Trains until max_steps are done, a signal asks to stop or it gets no better, and saves at the end. Says of a run that
 * diverges in which steps. */
static tw_status train(const settings *s, tw_trainer *trainer, tw_event_writer *events, validation *validation,
                       train_report *report, divergence *divergence, tw_error *error)
{
    tw_trainer_step_result result;
    tw_status status = TW_OK;
    pace pace = {.fixed = s->steps_per_execution};
    int64_t done = tw_trainer_steps_done(trainer), first = done, saved = done;
    asked asked;
    status = look_outside(report, &asked, error);
    while (status == TW_OK && done < report->max_steps && !asked.stop && !report->stopped_early) {
        /* Summaries run more than the step, and a trace shows what ran last. */
        bool to_be_traced = s->trace && done + 1 == report->max_steps;
        bool summaries = s->summary_every > 0 && done % s->summary_every == 0 && !to_be_traced;
        turn turn = {.looked_at = !summaries && report_wants_look(report, done)};
        bool alone = summaries || turn.looked_at || done == first;
        turn.steps = alone ? 1 : pace_steps(&pace, steps_to_next_stop(s, report, done));
        status = tw_devices_share(report->devices, &turn, sizeof turn, error);
        if (status != TW_OK)
            break;
        if (turn.looked_at)
            report_begin_look(report);
        divergence->good = done;
        divergence->last = done + turn.steps - 1;
        double begin = seconds_now();
        bool fills = done == first && report->reads_files;
        if (fills)
            busy_begin("filling queues with images");
        status = summaries ? tw_trainer_step_with_summaries(trainer, events, &result, error)
                           : tw_trainer_run_steps(trainer, turn.steps, &result, error);
        if (fills)
            busy_end();
        if (status != TW_OK)
            break;
        if (!summaries)
            pace_learn(&pace, turn.steps, seconds_now() - begin);
        if (done == first && divergence->count == 0)
            report_plan(report);
        done += turn.steps;
        report_count(report, &result);
        if (turn.looked_at)
            report_end_look(report);
        status = look_outside(report, &asked, error);
        if (status != TW_OK)
            break;
        bool is_last = done == report->max_steps || asked.stop;
        if (s->log_every > 0 && (result.step % s->log_every == 0 || is_last)) {
            report_step(report, &result);
            report_input(report);
            report_time(report, done);
        }
        bool measured = is_due(s->eval_every, done);
        if (steps_since_save(s, done) == 0 || is_due(s->keep_every, done) || measured || asked.save) {
            status = save(s, trainer, report, error);
            saved = done;
        }
        if (status == TW_OK && measured) {
            status = validation_run(validation, trainer, events, report, error);
            report->has_best = s->keep_best;
            report->stopped_early = status == TW_OK && validation_says_stop(validation);
        }
    }
    if (status == TW_OK && done > saved)
        status = save(s, trainer, report, error);
    if (status == TW_OK && s->trace && done > first)
        status = tw_session_write_trace(tw_trainer_session(trainer), s->trace, error);
    if (status == TW_OK)
        report_end(report, done - first, asked.stop ? asked.stop : signals_stop());
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

static tw_status open_events(const settings *s, tw_trainer *trainer, tw_event_writer **events, tw_error *error)
{
    if (tw_devices_task(tw_session_devices(tw_trainer_session(trainer))) != 0)
        return TW_OK;
    tw_status status = tw_event_writer_create(s->job.train_dir, events, error);
    if (status == TW_OK && tw_trainer_steps_done(trainer) > 0)
        status = tw_event_writer_add_restart(*events, tw_trainer_steps_done(trainer), error);
    return status == TW_OK && *events ? write_graph(trainer, *events, error) : status;
}

/* cifar10_estimator's batch is dealt out one by one. */
static bool shares_suit(const settings *s, const tw_trainer *trainer)
{
    int towers = tw_trainer_towers(trainer);
    if (s->recipe.compat != COMPAT_ESTIMATOR || tw_trainer_share(trainer, 0) == tw_trainer_share(trainer, towers - 1))
        return true;
    return complain("train", "--train-batch-size must be multiple of --num-gpus, which %" PRId64 " is not of %d; without "
                             "--compat estimator the first towers get one more", tw_trainer_examples(trainer), towers);
}

static bool write_run_file(const training *t, tw_trainer *trainer, const train_report *report, const cJSON *before)
{
    run_facts facts = {.directory = t->settings.job.train_dir,
                       .options = train_options,
                       .settings = &t->settings,
                       .model = &t->model,
                       .dataset = t->data,
                       .devices = t->devices,
                       .trainer = trainer,
                       .data_dir = t->data_dir,
                       .reduction = report->reduction,
                       .updates = report->updates,
                       .before = before};
    return run_file_write("train", &facts);
}

/* Builds the trainer, and trains. `before` is what the directory says of the run that goes on. Returns the exit
 * code. */
static int run_job(training *t, divergence *divergence, lock *lock, const cJSON *before)
{
    const settings *s = &t->settings;
    tw_error error = {0};
    tw_trainer *trainer = NULL;
    tw_event_writer *events = NULL;
    validation validation = {0};
    const update_mode *mode = update_mode_at(s->update.variable_update);
    char how[128];
    int stopped_by = 0; /* a signal */
    busy_begin("comparing ways to update");
    tw_status status = update_choose(&s->update, &t->options, s->job.format == FORMAT_JSON, &error);
    busy_end();
    busy_begin("building and planning the network");
    if (status == TW_OK)
        status = tw_trainer_create(&t->options, &trainer, &error);
    busy_end();
    bool unwritten = false, wrong_settings = status == TW_INVALID_ARGUMENT, no_room = status == TW_RESOURCE_EXHAUSTED;
    if (status == TW_OK && !shares_suit(s, trainer)) {
        tw_trainer_destroy(trainer);
        return EXIT_USAGE;
    }
    if (status == TW_OK)
        status = moves_tell("train", tw_trainer_session(trainer), s->job.verbose, &error);
    if (status == TW_OK)
        status = open_events(s, trainer, &events, &error);
    if (status == TW_OK) {
        train_report report = {
            .as_json = s->job.format == FORMAT_JSON,
            .model = &t->model,
            .dataset = t->data,
            .data_dir = t->data_dir,
            .train_dir = s->job.train_dir,
            .lock = lock,
            .step_is_written = tw_devices_task(t->devices) != 0, /* by task 0 alone */
            .max_steps = s->max_steps < tw_trainer_last_step(trainer) ? s->max_steps : tw_trainer_last_step(trainer),
            .save_every = s->save_every,
            .keep = s->keep,
            .trainer = trainer,
            .devices = t->devices,
            .traced = s->trace != NULL,
            .trace = s->trace,
            .as_tutorial = recipe_is_tutorial(&s->recipe) && tw_trainer_updates(trainer) == TW_UPDATES_SYNCHRONOUS,
            .reads_files = input_reads_files(t->options.input),
            .updates = asynchronous_text(tw_trainer_updates(trainer), &t->options.asynchronous, how, sizeof how),
            .mode = mode ? mode->name : NULL,
            .reduction = tw_trainer_all_reduce(trainer)          ? tw_trainer_all_reduce(trainer)
                         : leaves_out(s->disable, "collective") ? "one device"
                                                                : "tree",
        };
        if (tw_trainer_changes(trainer)[0])
            complain("train", "this run goes on with %s", tw_trainer_changes(trainer));
        unwritten = !validation_open(t, trainer, &validation);
        if (!unwritten) {
            report_start(&report); /* first: run.json waits for the data set's hash */
            unwritten = tw_devices_task(t->devices) == 0 && !write_run_file(t, trainer, &report, before);
        }
        signals_watch(NULL);
        if (!unwritten) {
            report_progress(&report, s->progress);
            do
                status = train(s, trainer, events, &validation, &report, divergence, &error);
            while (status != TW_OK &&
                   divergence_goes_back(divergence, t, &trainer, events, &validation, &report, &error));
            stopped_by = report.stopped_by;
            panel_close(report.panel); /* of a run that failed */
        }
    }
    tw_status closed = tw_event_writer_close(events, status == TW_OK ? &error : NULL);
    validation_close(&validation);
    tw_trainer_destroy(trainer);
    if (status == TW_OK)
        status = closed;
    if (status == TW_OK && unwritten)
        return EXIT_FAILED;
    if (status == TW_OK)
        return stopped_by ? 128 + stopped_by : EXIT_DONE;
    if (s->job.format == FORMAT_JSON)
        report_failure(&error);
    int code = failed("train", &error);
    if (error.status == TW_OUT_OF_RANGE)
        divergence_explain(divergence, t);
    if (no_room && tw_devices_tasks(t->devices) == 1)
        tell_what_fits(t);
    return wrong_settings ? EXIT_USAGE : code;
}

/* What goes with several tasks. Task 0 alone prints. */
static bool over_tasks(training *t)
{
    settings *s = &t->settings;
    if (tw_devices_task(t->devices) != 0)
        s->progress = PROGRESS_NONE;
    return job_leave_printing("train", t->devices);
}

/* Of several tasks the first one takes the directory, for all. */
static int enter_directory(const training *t, lock *lock)
{
    const settings *s = &t->settings;
    bool good = true;
    if (tw_devices_task(t->devices) == 0 && (good = lock_take("train", s->job.train_dir, lock))) {
        tw_checkpoint_tidy(s->job.train_dir, "model.ckpt", NULL); /* nobody else saves here now */
        run_file_tidy(s->job.train_dir);
        if (s->resume)
            tell_if_nothing_resumes(s->job.train_dir, lock->made_directory);
        good = s->resume || directory_is_fresh(s->job.train_dir);
    }
    tw_error error = {0};
    if (tw_devices_share(t->devices, &good, sizeof good, &error) != TW_OK)
        return failed("train", &error);
    return good ? EXIT_DONE : EXIT_FAILED;
}

static int run(const void *given)
{
    training t;
    lock lock = {.file = -1};
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines appear as they come, through a pipe too */
    if (((const settings *)given)->job.model < 0) {
        complain("train", "expected MODEL: the network, as a word, in --config's file, or in the " RUN_FILE
                          " of a train directory with --resume");
        return EXIT_USAGE;
    }
    int tasks;
    tw_task_started(&tasks);
    if (tasks > 1) /* who ends before all are there leaves the others to wait; alone it may end at once */
        signals_watch(NULL);
    int code = training_open("train", given, TRAINING_WITH_DATA, &t);
    if (code != EXIT_DONE)
        return code;
    if ((code = job_options_agree("train", train_options, given, t.devices)) != EXIT_DONE) {
        training_close(&t);
        return code;
    }
    const settings *s = &t.settings;
    divergence divergence;
    if (!divergence_read("train", s->on_divergence, &divergence)) {
        training_close(&t);
        return EXIT_USAGE;
    }
    if (s->eval_every == 0 && (s->keep_best || s->early_stopping > 0)) {
        complain("train", "%s goes by evaluations; say how often with --eval-every",
                 s->keep_best ? "--keep-best" : "--early-stopping");
        training_close(&t);
        return EXIT_USAGE;
    }
    snprintf(t.order_log, sizeof t.order_log, "%s/order.log", s->job.train_dir);
    t.options.asynchronous.log = t.order_log;
    bool bad = false, writes = tw_devices_task(t.devices) == 0;
    cJSON *before = s->resume ? run_file_read("train", s->job.train_dir, &bad) : NULL;
    if (tw_devices_tasks(t.devices) > 1 && !over_tasks(&t))
        code = EXIT_USAGE;
    else
        code = bad || (writes && s->trace && !trace_can_be_written(s->trace)) ? EXIT_FAILED
                                                                              : enter_directory(&t, &lock);
    if (code == EXIT_DONE) {
        tw_set_crash_report(s->job.train_dir, true, NULL); /* without one training is worth as much */
        code = run_job(&t, &divergence, &lock, before);
        tw_set_crash_report(NULL, false, NULL);
    }
    lock_release(&lock);
    cJSON_Delete(before);
    training_close(&t);
    return code;
}

const option train_options[] = {
    {NULL, "MODEL", OPTION_CHOICE, offsetof(settings, job.model),
     "the network; --config and --resume may know it", .list_choices = job_model_names, .optional = true},
    DATA_OPTIONS(settings),
    {"resume", NULL, OPTION_FLAG, offsetof(settings, resume),
     "continue from the newest complete checkpoint of the train directory, with the options that its run.json has, but "
     "for those given; to the bit, on any number of devices of the same kind, but for --compat tutorial, whose queues are in "
     "no checkpoint", .once = true},
    {"accept-other-bits", NULL, OPTION_FLAG, offsetof(settings, accept_other_bits),
     "resume although the data set, the rule or the kind of device is another, which is said; the run then ends with "
     "other bits", .once = true},
    {"config", "FILE", OPTION_FILE, offsetof(settings, config),
     "take options from there, a line 'name = value' for each ('model = cifar10'); what is given here wins",
     .once = true},

    {"max-steps", "N", OPTION_NUMBER, offsetof(settings, max_steps), "stop when so many steps are done in all",
     .initial = "1000000", .least = 1, .most = INT64_MAX, .section = "training", .also = "train-steps"},
    {"batch-size", "N", OPTION_NUMBER, offsetof(settings, batch_size),
     "examples for each tower and step; without it the model's own (128; mnist: 1000; alexnet: 512; vgg16, resnet50: "
     "64; inception3, trivial: 32)", .least = 1, .most = 1 << 20, .instead = "global-batch-size"},
    {"global-batch-size", "N", OPTION_NUMBER, offsetof(settings, global_batch_size),
     "examples a step for all towers together, instead of --batch-size; what does not divide goes to the first towers",
     .least = 1, .most = 1 << 28,
     .also = "train-batch-size", .instead = "batch-size"},
    {"towers", "N", OPTION_NUMBER, offsetof(settings, towers),
     "copies of the network; without it one for each device. Decides the numbers, as devices decide the speed",
     .least = 1, .most = MOST_TOWERS},
    {"tower-shares", "A:B:...", OPTION_TEXT, offsetof(settings, tower_shares),
     "how towers on unequal devices share the --global-batch-size: 3:1 gives the first three of four examples"},
    {"seed", "N", OPTION_NUMBER, offsetof(settings, seed),
     "of the initial values and of the order of the data; without it 1", .least = 1, .most = INT64_MAX},
    {"learning-rate", "R", OPTION_TEXT, offsetof(settings, learning_rate),
     "the first learning rate, instead of the model's or the checkpoint's"},
    {"dtype", "TYPE", OPTION_CHOICE, offsetof(settings, dtype),
     "what convolutions and matrix products compute in; auto: as the checkpoint says, or float32; variables are "
     "float32 in any case. CPUs compute float16 through float32: right, but slow",
     .initial = "auto", .choices = "auto|float32|bfloat16|float16", .also = "use-fp16=float16"},
    RECIPE_OPTIONS(settings),
    NETWORK_OPTIONS(settings),
    RULE_OPTIONS(settings),

    UPDATE_OPTIONS(settings),

    {"num-gpus", "N", OPTION_NUMBER, offsetof(settings, num_gpus),
     "train on gpu:0 to gpu:N-1; 0: on the CPU; without it and --devices: on all GPUs, or else on the CPU", .least = 0,
     .most = MOST_DEVICES, .section = "devices", .instead = "devices"},
    {"devices", "LIST", OPTION_TEXT, offsetof(settings, devices),
     "train on these devices: gpu:0,gpu:1; tower i runs on number i modulo their count", .instead = "num-gpus"},
    VIRTUAL_GPUS_OPTION(settings),
    LOGICAL_GPUS_OPTION(settings),
    GPU_NUMBERS_OPTIONS(settings),
    COLLECTIVE_TIMEOUT_OPTION(settings),
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    GPU_MEMORY_OPTIONS(settings),
    {"soft-placement", "HOW", OPTION_CHOICE, offsetof(settings, soft_placement),
     "replace a device that does not exist, or cannot do an operation: on: by the first that can; wrap: gpu:5 of two by "
     "number 5 modulo 2; cpu: by the CPU. What moved is said", .initial = "on", .choices = "off|on|wrap|cpu"},
    {"soft-budget", "BYTES", OPTION_BYTES, offsetof(settings, soft_budget),
     "refuse to train if that makes more bytes cross between devices in a step", .most = INT64_MAX},
    {"log-device-placement", NULL, OPTION_FLAG, offsetof(settings, log_device_placement),
     "say on standard error where each node runs", .once = true},
    VERBOSE_OPTION(settings),
    {"disable", "LIST", OPTION_TEXT, offsetof(settings, disable),
     "leave out rewrites of the graph, separated by commas: fold, layout, merge, einsum, collective, fuse, losses, "
     "buckets, update, sums, scalars, averages, weights, reuse (of memory), or all"},
    {"input", "WHERE", OPTION_CHOICE, offsetof(settings, input),
     "who makes the batches: threads of the host, or each tower's device, where the data set then lies; the numbers are "
     "the same. auto: the device if towers run on real GPUs of which a tenth of the memory holds the data set",
     .initial = "auto", .choices = "auto|host|device"}, /* ORDER INPUT_PLACE */
    {"input-threads", "N", OPTION_NUMBER, offsetof(settings, input_threads),
     "threads of the host that prepare the data; 0: one for every four cores, for every two if they decode pictures",
     .initial = "0", .most = 256},

    {"data-format", "ORDER", OPTION_CHOICE, offsetof(settings, unused_choice),
     "cifar10_estimator's, taken and not needed: images are channels-last, and kernels choose what they want",
     .choices = "channels_last|channels_first|NHWC|NCHW", .once = true},
    {"num-inter-threads", "N", OPTION_NUMBER, offsetof(settings, unused_number),
     "cifar10_estimator's, taken and not needed: each device has one dispatcher", .most = 1 << 20, .once = true},

    CLUSTER_OPTIONS(settings),

    ASYNCHRONOUS_OPTIONS(settings),

    REDUCTION_OPTIONS(settings),

    {"on-divergence", "HOW", OPTION_TEXT, offsetof(settings, on_divergence),
     "what happens when the loss is no number any more, or a variable: stop says which node made the first NaN or "
     "infinity; rollback:K goes back to the newest checkpoint with half the learning rate, at most K times",
     .initial = "stop", .section = "faults"},
    {"check-replicas", "N", OPTION_NUMBER, offsetof(settings, check_replicas),
     "every so many steps compare the copies of variables that towers hold, and stop with the name of the first that "
     "differs; 0: never. With --variable-update replicated or --staged-vars", .initial = "0", .most = INT64_MAX},

    {"eval-every", "N", OPTION_NUMBER, offsetof(settings, eval_every),
     "measure the accuracy every so many steps, on the checkpoint that is saved for it; 0: never. It costs time, but no "
     "bits",
     .initial = "0", .most = INT64_MAX, .section = "evaluation"},
    {"eval-data", "HALF", OPTION_CHOICE, offsetof(settings, eval_data),
     "on what; auto: on the examples of --hold-back, if there are any, or else on the test half", .initial = "auto",
     .choices = "auto|test|train|validation"},
    {"keep-best", NULL, OPTION_FLAG, offsetof(settings, keep_best),
     "keep the checkpoint with the best accuracy in the train directory's 'best'"},
    {"early-stopping", "N", OPTION_NUMBER, offsetof(settings, early_stopping),
     "stop when so many evaluations in a row are no better than the best; 0: never", .initial = "0", .most = 1 << 20},

    {"save-every", "N", OPTION_NUMBER, offsetof(settings, save_every), "steps between checkpoints", .initial = "1000",
     .least = 1, .most = INT64_MAX, .section = "output"},
    {"keep", "N", OPTION_NUMBER, offsetof(settings, keep), "how many checkpoints stay, the newest; 0: all",
     .initial = "5", .most = 1 << 20},
    {"keep-every", "N", OPTION_NUMBER, offsetof(settings, keep_every),
     "keep a checkpoint every so many steps for good, in the train directory's 'milestones'; 0: none", .initial = "0",
     .most = INT64_MAX},
    {"log-every", "N", OPTION_NUMBER, offsetof(settings, log_every), "steps between lines; 0: none", .initial = "10",
     .most = INT64_MAX, .also = "log-frequency"},
    {"summary-every", "N", OPTION_NUMBER, offsetof(settings, summary_every),
     "steps between summaries for TensorBoard; 0: none", .initial = "100", .most = INT64_MAX},
    STEPS_PER_EXECUTION_OPTION(settings),
    {"trace", "FILE", OPTION_FILE, offsetof(settings, trace),
     "write the times of every kernel of the last step there; opens in Perfetto and chrome://tracing", .once = true},
    {"progress", "HOW", OPTION_CHOICE, offsetof(settings, progress),
     "how it shows how far it is: a panel that is drawn in place, lines, or none; auto: the panel in a terminal of at "
     "least 60 columns, lines elsewhere, also with NO_COLOR or TERM=dumb", .initial = "auto",
     .choices = "auto|panel|lines|none", .once = true}, /* ORDER PROGRESS */
    FORMAT_OPTION(settings, job.format),
    {0},
};

static const refusal train_refusals[] = {
    CLUSTER_REFUSALS,
    {"cross-replica-sync", "it is --sync on or --sync off here"},
    {0},
};

const command train_command = {
    .name = "train",
    .summary = "train a network over several devices",
    .description =
        "Trains a network: every tower computes the gradients of its own part of the batch, their mean updates the "
        "variables that all share. The network 'cifar10' is that of TensorFlow's CIFAR-10 tutorial, and the options "
        "that the tutorial has mean the same here; 'resnet' and 'resnet20' to 'resnet110' are those of "
        "cifar10_estimator, 'mnist' that of a well-known sample for several GPUs. 'trivial', 'alexnet', 'vgg16', "
        "'resnet50' and 'inception3' are there to be timed, on random images as large as ImageNet's.\n\n"
        "The numbers depend on the seed, the number of towers and the batch, never on the number of devices: a run may "
        "be stopped and resumed on more or fewer devices of the same kind (GPUs, or CPU devices with as many threads "
        "each) and goes on as if nothing had happened. With --sync off each tower updates the variables by itself, as "
        "soon as it has gradients: a step is then one update, the numbers depend on who comes first, and the train "
        "directory's order.log says who did, so that --replay can do it again. Ctrl-C (and the signals TERM and HUP) "
        "finishes the step, saves a checkpoint and leaves; another, a second later or more, leaves at "
        "once. The signal USR1 saves a checkpoint.",
    .examples = "tower data fetch cifar10\n"
                "tower train cifar10 --max-steps 6000\n"
                "tower train cifar10 --virtual-gpus 2 --batch-size 64 --train-dir train\n"
                "tower train cifar10 --train-dir train --resume --devices gpu:0,gpu:1\n"
                "tower train resnet20 --global-batch-size 128 --max-steps 3900\n"
                "tower train resnet --num-layers 26 --train-batch-size 128 --num-gpus 2\n"
                "tower train resnet50 --max-steps 10 --batch-size 2\n"
                "tower train cifar10 --virtual-gpus 4 --sync off --max-staleness 6 --train-dir stale\n"
                "tower train cifar10 --virtual-gpus 1 --replay stale/order.log --train-dir again\n"
                "tower train mnist --data-set fashion-mnist --max-steps 500\n"
                "tower train cifar10 --data-set synthetic --max-steps 20 --trace trace.json",
    .exit_codes = "75 task lost, 128+n stopped by signal n, after saving",
    .of_tasks = TASKS_JOINED,
    .options = train_options,
    .refusals = train_refusals,
    .settings_bytes = sizeof(settings),
    .read_presets = read_presets,
    .run = run,
};
