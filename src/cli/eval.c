/* eval.c - `tower eval`: how often a trained network is right. */
#include "clock.h"
#include "command.h"
#include "job.h"
#include "json.h"
#include "painter.h"
#include "progress.h"
#include "recipe.h"
#include "run_file.h"
#include "scores.h"
#include "signals.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <time.h>

typedef struct settings {
    job job;
    recipe recipe; /* what concerns the network */
    const char *what;
    int64_t batch_size, interval;
    int split, as_tutorial, views;
    const char *events; /* NULL: below the train directory */
    bool raw, confusion, no_events, once;
} settings;

enum { TUTORIALS_INTERVAL = 300 }; /* seconds */

static const tw_dataset_split splits[] = {TW_SPLIT_TEST, TW_SPLIT_TRAIN,
                                          TW_SPLIT_VALIDATION}; /* as in the choices below */

static void print_result(const settings *s, const tw_dataset *data, const tw_scores *scores)
{
    char time[64];
    time_of_day(time, sizeof time);
    if (s->job.format == FORMAT_JSON) {
        json out = {.file = stdout};
        json_begin(&out, NULL, '{');
        json_text(&out, "time", time);
        json_text(&out, "data_set", tw_dataset_name(data));
        scores_json(&out, scores, data, true);
        json_end(&out);
        return;
    }
    printf("%s: precision @ 1 = %.3f\n", time, scores_top_1(scores));
    if (s->as_tutorial)
        return;
    printf("  %-16s %" PRId64 "%s\n", "step", scores->step,
           scores->used_averages ? ", with the moving averages of its variables" : "");
    printf("  %-16s %" PRId64 " of %s: %" PRId64 " right, the label among the first five of %" PRId64 "\n", "examples",
           scores->examples, tw_dataset_name(data), scores->correct, scores->correct_5);
    if (scores->views > 1)
        printf("  %-16s %d of each example\n", "views", scores->views);
    printf("  %-16s %.4g\n", "loss", scores->loss);
    scores_print_classes(scores, data);
    if (s->confusion)
        scores_print_confusion(scores, data);
}

/* In a folder of its own, which TensorBoard shows as another run: training may be writing beside. */
static void write_events(const settings *s, const char *checkpoint, const tw_dataset *data, const tw_scores *scores)
{
    char directory[PATH_MAX], path[PATH_MAX + 8];
    tw_error error = {0};
    tw_event_writer *events = NULL;
    if (s->events)
        snprintf(path, sizeof path, "%s", s->events);
    else
        snprintf(path, sizeof path, "%s/eval", run_file_directory(checkpoint, directory));
    tw_status status = tw_event_writer_create(path, &events, &error);
    if (status == TW_OK)
        status = scores_write(events, scores, data, &error);
    if (status == TW_OK && s->as_tutorial)
        status = tw_event_writer_add_scalar(events, "Precision @ 1", scores->step, (float)scores_top_1(scores), &error);
    tw_status closed = tw_event_writer_close(events, status == TW_OK ? &error : NULL);
    if (status != TW_OK || closed != TW_OK)
        complain("eval", "the result is not in the event log: %s", error.message);
}

/* A network is good for what it has learned from; another data set has to be asked for by name. */
static bool data_suits(const settings *s, const char *checkpoint, const tw_dataset *data)
{
    char trained_on[64];
    if (s->job.data_set != 0 || !checkpoint_text(checkpoint, "tower/data_set", trained_on, sizeof trained_on) ||
        strcmp(trained_on, tw_dataset_name(data)) == 0)
        return true;
    return complain("eval", "'%s' was trained on %s, and this is %s; '--data-set %s' says that this is meant",
                    checkpoint, trained_on, tw_dataset_name(data), tw_dataset_name(data));
}

/* Labels are numbers: a class that is missing here, or one more, would move all behind it. */
static bool classes_agree(const char *checkpoint, const tw_dataset *data)
{
    char directory[PATH_MAX];
    bool bad, agree = true;
    int i = 0;
    cJSON *run = run_file_read("eval", run_file_directory(checkpoint, directory), &bad);
    const cJSON *name,
        *names = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(run, "data_set"), "classes");
    cJSON_ArrayForEach(name, names)
    {
        const char *then = cJSON_GetStringValue(name), *now = tw_dataset_class_name(data, i++);
        if (agree && then && *then && *now && strcmp(then, now) != 0)
            agree = complain("eval", "class %d was '%s' in training and is '%s' here: the data sets have other classes",
                             i - 1, then, now);
    }
    cJSON_Delete(run);
    return agree;
}

static bool show_progress(void *user, int64_t done, int64_t total)
{
    progress_update(user, "evaluating", done, total);
    return true;
}

static bool read_presets(const void *given, presets *presets)
{
    const settings *s = given;
    return run_file_presets_of("eval", s->what, s->job.train_dir, presets);
}

static int evaluate(const settings *s, const tw_model *model, const char *checkpoint, tw_devices *devices,
                    const tw_dataset *data)
{
    const char *names[MOST_JOB_DEVICES];
    tw_error error = {0};
    tw_scores *scores;
    progress progress = progress_to(stderr);
    progress.unit = "examples";
    progress.quiet = 2;
    tw_evaluation_options options = {.size = sizeof options,
                                     .raw = s->raw,
                                     .batch = (int)s->batch_size,
                                     .tower_devices = names,
                                     .num_tower_devices = job_all_devices(devices, names),
                                     .progress = show_progress,
                                     .user = &progress,
                                     .views = (tw_views)s->views};
    tw_status status = tw_score(model, data, checkpoint, devices, &options, &scores, &error);
    progress_end(&progress);
    if (status != TW_OK)
        return failed("eval", &error);
    print_result(s, data, scores);
    if (!s->no_events)
        write_events(s, checkpoint, data, scores);
    tw_scores_destroy(scores);
    return EXIT_DONE;
}

/* Waits until there is another checkpoint than *step, or one at all; the tutorial looks again at the one it knows.
 * False: a signal came. */
static bool wait_for_another(const settings *s, const char *directory, int64_t *step)
{
    bool again = s->as_tutorial && *step >= 0;
    for (int64_t tenths = again; !signals_stop(); tenths++) {
        char path[PATH_MAX];
        int64_t found;
        bool is_due = tenths % (10 * s->interval) == 0;
        if (is_due && tw_checkpoint_latest(directory, path, sizeof path, &found, NULL) == TW_OK &&
            (found != *step || again)) {
            *step = found;
            return true;
        }
        if (is_due && *step < 0 && s->job.format != FORMAT_JSON)
            puts("No checkpoint file found");
        fflush(stdout);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return false;
}

/* Each checkpoint that is found, until a signal comes. */
static int evaluate_on(const settings *s, const tw_model *model, const char *checkpoint, tw_devices *devices,
                       const tw_dataset *data)
{
    int code = EXIT_DONE;
    int64_t step = -1;
    signals_watch(NULL);
    while (code == EXIT_DONE && wait_for_another(s, checkpoint, &step))
        code = evaluate(s, model, checkpoint, devices, data);
    return code == EXIT_DONE ? 128 + signals_stop() : code;
}

static int run(const void *given)
{
    settings filled = *(const settings *)given, *s = &filled;
    tw_model model;
    if (s->job.model < 0) {
        complain("eval", "'%s' does not say which model it was made by (it has no " RUN_FILE "); give --model",
                 s->what);
        return EXIT_USAGE;
    }
    if (s->interval == NOT_GIVEN)
        filled.interval = s->as_tutorial ? TUTORIALS_INTERVAL : 0;
    if (s->job.format == FORMAT_JSON)
        busy_silence();
    recipe_of_network(&s->recipe);
    char directory[PATH_MAX], own[64];
    const char *checkpoint = job_train_dir(&s->job, own, sizeof own);
    tw_devices *devices = job_open_devices("eval", &s->job);
    tw_dataset *data = devices ? job_load_data("eval", &s->job, splits[s->split], directory) : NULL;
    int code = EXIT_FAILED;
    if (data)
        job_count_classes(data, &s->recipe.num_classes);
    if (data && !recipe_follow("eval", &s->recipe, tw_model_at(s->job.model), &model))
        code = EXIT_USAGE;
    else if (data && data_suits(s, checkpoint, data) && classes_agree(checkpoint, data))
        code = s->interval > 0 && !s->once ? evaluate_on(s, &model, checkpoint, devices, data)
                                           : evaluate(s, &model, checkpoint, devices, data);
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
    return code;
}

static const option options[] = {
    {NULL, "RUN", OPTION_DIRECTORY, offsetof(settings, what),
     "a train directory, or a checkpoint in one; or a model, whose --train-dir it is then"},
    DATA_OPTIONS(settings),
    {"model", "NAME", OPTION_CHOICE, offsetof(settings, job.model), "the network, where RUN does not say which it is",
     .list_choices = job_model_names},
    {"eval-data", "HALF", OPTION_CHOICE, offsetof(settings, split), "the half of the data set to look at",
     .initial = "test", .choices = "test|train|validation"},
    {"batch-size", "N", OPTION_NUMBER, offsetof(settings, batch_size),
     "examples at a time, any number: none is left out or counted twice", .initial = "100", .least = 1, .most = 1 << 20,
     .also = "eval-batch-size"},
    {"views", "HOW", OPTION_CHOICE, offsetof(settings, views),
     "how often each image is looked at: as it is, mirrored too, or both of these also shifted by a pixel either way (6 "
     "views); without it as the model has it (airbench: shifted, all others: one)",
     .initial = "model", .choices = "model|one|mirrored|shifted"}, /* ORDER tw_views */
    {"confusion", NULL, OPTION_FLAG, offsetof(settings, confusion),
     "print for each class what it was taken for how often"},
    {"no-events", NULL, OPTION_FLAG, offsetof(settings, no_events),
     "leave the event log alone; otherwise the result joins the curves in the train directory's 'eval'"},
    {"eval-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, events), "where that event log is written instead",
     .once = true},
    {"eval-interval-secs", "N", OPTION_NUMBER, offsetof(settings, interval),
     "look for a newer checkpoint every N seconds and go on with that, until a signal comes; 0, or without it: once",
     .most = 1 << 30, .once = true},
    {"compat", "PROGRAM", OPTION_CHOICE, offsetof(settings, as_tutorial),
     "tutorial: as cifar10_eval, look every 300 seconds, also when there is no newer checkpoint, and print its line "
     "alone", .initial = "none", .choices = "none|tutorial", .once = true},
    {"run-once", NULL, OPTION_FLAG, offsetof(settings, once), "look once, whatever --eval-interval-secs says", .once = true},
    NETWORK_OPTIONS(settings),
    {"raw", NULL, OPTION_FLAG, offsetof(settings, raw),
     "take the variables as they were trained last, not their moving averages"},
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    VIRTUAL_GPUS_OPTION(settings),
    LOGICAL_GPUS_OPTION(settings),
    GPU_NUMBERS_OPTIONS(settings),
    FORMAT_OPTION(settings, job.format),
    {0},
};

const command eval_command = {
    .name = "eval",
    .summary = "measure the accuracy of a trained network",
    .description =
        "Restores the newest complete checkpoint of the train directory, with the moving averages, if there are any, "
        "in place of the variables, looks at every example of the data set once, on all devices, and prints how many "
        "are "
        "classified right: the share whose label is the network's first choice (precision @ 1), and of each class how "
        "many, "
        "and what it is taken for most often.\n\n"
        "The train directory says which model, data set and devices these are; options change that. It may run while "
        "the "
        "training does: a checkpoint is complete as soon as it is there.",
    .examples = "tower eval cifar10_train\ntower eval cifar10_train --confusion\n"
                "tower eval train/model.ckpt-1000 --format json\ntower eval cifar10 --data-dir data --train-dir train",
    .of_tasks = TASKS_FIRST,
    .options = options,
    .settings_bytes = sizeof(settings),
    .read_presets = read_presets,
    .run = run,
};
