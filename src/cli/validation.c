/* validation.c - see validation.h. */
#include "validation.h"

#include "clock.h"
#include "command.h"
#include "json.h"
#include "painter.h"
#include "progress.h"
#include "scores.h"
#include "whole_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY "eval.jsonl"

enum { MOST_MATRIX = 20 }; /* classes whose confusion matrix is written every time */

static void history_path(const validation *v, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.4000s/" HISTORY, v->directory);
}

static void take_accuracy(validation *v, int64_t step, double accuracy)
{
    bool better = accuracy > v->best;
    v->worse = better ? 0 : v->worse + 1;
    v->best_step = better ? step : v->best_step;
    v->best = better ? accuracy : v->best;
}

/* What was measured before this session began; of steps that are done again nothing is known. */
static bool read_history(validation *v, int64_t steps_done)
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    history_path(v, path);
    FILE *file = fopen(path, "r");
    bool good = file || errno == ENOENT;
    errno = good ? 0 : errno;
    while (file && getline(&line, &room, file) > 0) {
        cJSON *entry = cJSON_Parse(line);
        int64_t step = json_integer_of(entry, "step", -1);
        double accuracy = json_number_of(entry, "precision_at_1", -1);
        if (step >= 0 && step <= steps_done && accuracy >= 0)
            take_accuracy(v, step, accuracy);
        cJSON_Delete(entry);
    }
    good = good && (!file || feof(file)); /* else early stopping would count from the wrong one */
    if (!good)
        complain("train", "cannot read '%s': %s", path, strerror(errno));
    free(line);
    if (file)
        fclose(file);
    return good;
}

static bool write_history(const validation *v, const tw_scores *scores)
{
    char path[PATH_MAX], time[64];
    history_path(v, path);
    char *line = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&line, &size);
    if (!file)
        return complain("train", "cannot write '%s': %s", path, strerror(errno));
    json out = {.file = file};
    json_begin(&out, NULL, '{');
    json_text(&out, "time", time_of_day(time, sizeof time));
    scores_json(&out, scores, v->data, scores->classes <= MOST_MATRIX);
    json_end(&out);
    bool good = (fclose(file) == 0 && whole_line_append(path, line, size)) ||
                complain("train", "cannot write '%s': %s", path, strerror(errno));
    free(line);
    return good;
}

/* Each device that a tower runs on, once. */
static void find_devices(validation *v, tw_trainer *trainer)
{
    for (int i = 0; i < tw_trainer_towers(trainer) && v->num_names < MOST_JOB_DEVICES; i++) {
        const char *name = tw_trainer_tower_device(trainer, i);
        bool listed = false;
        for (int k = 0; k < v->num_names; k++)
            listed |= strcmp(v->names[k], name) == 0;
        if (!listed)
            v->names[v->num_names++] = name;
    }
}

/* Of several tasks what task 0 has read is what all go by, and it alone writes. */
static bool share_history(validation *v, int64_t steps_done)
{
    tw_error error = {0};
    bool good = tw_devices_task(v->devices) != 0 || read_history(v, steps_done);
    struct history {
        double best;
        int64_t best_step, worse, good;
    } history = {v->best, v->best_step, v->worse, good};
    if (tw_devices_share(v->devices, &history, sizeof history, &error) != TW_OK)
        return failed("train", &error) == EXIT_DONE;
    if (!history.good)
        return false;
    v->best = history.best;
    v->best_step = history.best_step;
    v->worse = history.worse;
    return true;
}

bool validation_open(const training *t, tw_trainer *trainer, validation *v)
{
    static const tw_dataset_split splits[] = {TW_SPLIT_TEST, TW_SPLIT_TEST, TW_SPLIT_TRAIN, TW_SPLIT_VALIDATION};
    const train_settings *s = &t->settings;
    char directory[PATH_MAX];
    *v = (validation){
        .settings = s, .model = &t->model, .directory = s->job.train_dir, .devices = t->devices, .best = -1};
    if (s->eval_every == 0)
        return true;
    bool held_back = s->eval_data == 0 && s->job.hold_back > 0; /* "auto" */
    v->data = job_load_data("train", &s->job, held_back ? TW_SPLIT_VALIDATION : splits[s->eval_data], directory);
    if (!v->data)
        return false;
    find_devices(v, trainer);
    return share_history(v, tw_trainer_steps_done(trainer));
}

void validation_follow(validation *v, tw_trainer *trainer)
{
    v->num_names = 0;
    v->best = -1;
    v->best_step = v->worse = 0;
    find_devices(v, trainer);
    if (v->data)
        share_history(v, tw_trainer_steps_done(trainer));
}

void validation_close(validation *v)
{
    tw_dataset_destroy(v->data);
}

static bool show_progress(void *user, int64_t done, int64_t total)
{
    progress_update(user, "evaluating", done, total);
    return true;
}

static tw_status measure(const validation *v, bool in_panel, tw_scores **scores, tw_error *error)
{
    progress progress = progress_to(stderr);
    progress.unit = "examples";
    progress.quiet = 2;
    tw_evaluation_options options = {.size = sizeof options,
                                     .tower_devices = v->names,
                                     .num_tower_devices = v->num_names,
                                     /* no lines among lines */
                                     .progress = progress.moving && !in_panel ? show_progress : NULL,
                                     .user = &progress,
                                     .views = TW_VIEWS_ONE}; /* as the record's log has it: often, so cheap */
    if (in_panel)
        busy_begin("evaluating");
    tw_status status = tw_score(v->model, v->data, v->directory, v->devices, &options, scores, error);
    if (in_panel)
        busy_end();
    progress_end(&progress);
    return status;
}

/* The trainer has the same variables as the checkpoint, so the best one is simply saved once more. */
static tw_status keep_best(const validation *v, tw_trainer *trainer, tw_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.4000s/best", v->directory);
    return tw_trainer_save(trainer, path, 1, error);
}

tw_status validation_run(validation *v, tw_trainer *trainer, tw_event_writer *events, train_report *report,
                         tw_error *error)
{
    tw_scores *scores;
    double begin = seconds_now();
    tw_status status = measure(v, report->panel != NULL, &scores, error);
    if (status != TW_OK)
        return status;
    take_accuracy(v, scores->step, scores_top_1(scores));
    if (tw_devices_task(v->devices) == 0) {
        status = scores_write(events, scores, v->data, error);
        write_history(v, scores); /* has complained; training is worth more */
    }
    if (status == TW_OK && v->settings->keep_best && v->worse == 0)
        status = keep_best(v, trainer, error);
    report_evaluation(report, scores, v->data, v->best, v->best_step, seconds_now() - begin);
    tw_scores_destroy(scores);
    return status;
}

bool validation_says_stop(const validation *v)
{
    return v->settings->early_stopping > 0 && v->worse >= v->settings->early_stopping;
}
