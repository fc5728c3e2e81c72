/* run_file.c - see run_file.h. */
#include "run_file.h"

#include "clock.h"
#include "command.h"
#include "job.h"
#include "json.h"
#include "whole_file.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tower/io.h>
#include <unistd.h>

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void write_data_set(json *out, const run_facts *f)
{
    const tw_dataset *d = f->dataset;
    char absolute[PATH_MAX];
    bool is_known = f->data_dir[0] && realpath(f->data_dir, absolute);
    json_begin(out, "data_set", '{');
    json_text(out, "name", tw_dataset_name(d));
    json_text(out, "directory", is_known ? absolute : f->data_dir[0] ? f->data_dir : NULL);
    json_integer(out, "examples", tw_dataset_count(d));
    json_integer(out, "height", tw_dataset_height(d));
    json_integer(out, "width", tw_dataset_width(d));
    json_integer(out, "channels", tw_dataset_channels(d));
    json_text(out, "sha256", tw_dataset_digest(d));
    json_begin(out, "files", '[');
    for (int i = 0; tw_dataset_file(d, i); i++) {
        struct stat about = {0};
        bool resolved = realpath(tw_dataset_file(d, i), absolute) != NULL;
        json_begin(out, NULL, '{');
        json_text(out, "path", resolved ? absolute : tw_dataset_file(d, i));
        json_integer(out, "bytes", stat(tw_dataset_file(d, i), &about) == 0 ? (int64_t)about.st_size : -1);
        json_end(out);
    }
    json_end(out);
    json_begin(out, "classes", '[');
    for (int i = 0; i < tw_dataset_classes(d); i++)
        json_text(out, NULL, tw_dataset_class_name(d, i));
    json_end(out);
    json_end(out);
}

static void write_devices(json *out, const run_facts *f)
{
    char text[256];
    json_text(out, "devices", tw_trainer_device_text(f->trainer, text, sizeof text));
    json_begin(out, "tower_devices", '[');
    for (int i = 0; i < tw_trainer_towers(f->trainer); i++)
        json_text(out, NULL, tw_trainer_tower_device(f->trainer, i));
    json_end(out);
    json_text(out, "processor", tw_processor_info().name);
    json_begin(out, "cards", '[');
    for (int i = 0; i < tw_devices_count(f->devices, NULL); i++)
        if (tw_devices_info(f->devices, i).model[0])
            json_text(out, NULL, tw_devices_info(f->devices, i).model);
    json_end(out);
}

/* Those that differ from what a run without options has. */
static void write_given(json *out, const run_facts *f)
{
    char text[PATH_MAX], initial[PATH_MAX];
    json_begin(out, "options", '{');
    for (const option *row = f->options; (row = option_at(row)); row++) {
        if (!row->name || row->once || !option_text(row, f->settings, text, sizeof text))
            continue;
        snprintf(initial, sizeof initial, "%s", row->initial ? row->initial : row->kind == OPTION_FLAG ? "off" : "");
        if (strcmp(text, initial) != 0)
            json_text(out, row->name, text);
    }
    json_end(out);
}

static void write_decided(json *out, const run_facts *f)
{
    char text[1024];
    json_begin(out, "decided", '{');
    json_integer(out, "towers", tw_trainer_towers(f->trainer));
    json_integer(out, "batch_size", tw_trainer_batch(f->trainer));
    json_integer(out, "examples_a_step", tw_trainer_examples(f->trainer));
    json_integer(out, "parameters", tw_trainer_parameters(f->trainer));
    json_text(out, "variable_update", tw_variable_update_name(tw_trainer_variables(f->trainer).update));
    json_text(out, "updates", f->updates);
    json_text(out, "reduction", f->reduction);
    json_text(out, "rate", tw_trainer_rate_text(f->trainer, text, sizeof text));
    json_text(out, "rule", tw_trainer_rule_text(f->trainer, text, sizeof text));
    json_text(out, "input", tw_trainer_input_place(f->trainer) == TW_INPUT_ON_DEVICE ? "device" : "host");
    json_integer(out, "last_step",
                 tw_trainer_last_step(f->trainer) == INT64_MAX ? -1 : tw_trainer_last_step(f->trainer));
    json_end(out);
}

static void write_sessions(json *out, const run_facts *f)
{
    char time[64], host[65] = "", text[256];
    const cJSON *session, *sessions = cJSON_GetObjectItemCaseSensitive(f->before, "sessions");
    json_begin(out, "sessions", '[');
    cJSON_ArrayForEach(session, sessions) json_copy(out, NULL, session);
    gethostname(host, sizeof host - 1);
    json_begin(out, NULL, '{');
    json_text(out, "started", time_of_day(time, sizeof time));
    json_integer(out, "first_step", tw_trainer_steps_done(f->trainer));
    json_text(out, "host", host);
    json_integer(out, "process", (int64_t)getpid());
    json_text(out, "version", tw_version());
    json_text(out, "revision", tw_revision());
    json_text(out, "devices", tw_trainer_device_text(f->trainer, text, sizeof text));
    json_text(out, "changes", tw_trainer_changes(f->trainer));
    json_end(out);
    json_end(out);
}

bool run_file_write(const char *command, const run_facts *f)
{
    char path[PATH_MAX];
    whole_file whole;
    snprintf(path, sizeof path, "%s/" RUN_FILE, f->directory);
    if (!whole_file_open(&whole, path))
        return complain(command, "cannot write '%s': %s", path, strerror(errno));
    json out = {.file = whole.file, .indented = true};
    json_begin(&out, NULL, '{');
    json_text(&out, "version", tw_version());
    json_text(&out, "revision", tw_revision());
    json_text(&out, "model", f->model->name);
    json_integer(&out, "seed", tw_trainer_seed(f->trainer));
    write_data_set(&out, f);
    write_devices(&out, f);
    write_given(&out, f);
    write_decided(&out, f);
    write_sessions(&out, f);
    json_end(&out);
    return whole_file_close(&whole, true) || complain(command, "cannot write '%s': %s", path, strerror(errno));
}

void run_file_tidy(const char *directory)
{
    DIR *open = opendir(directory);
    for (struct dirent *item; open && (item = readdir(open));)
        if (strncmp(item->d_name, RUN_FILE ".tmp-", strlen(RUN_FILE ".tmp-")) == 0)
            unlinkat(dirfd(open), item->d_name, 0);
    if (open)
        closedir(open);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Not what cannot be looked at: reading it says why. */
static bool is_absent(const char *path)
{
    return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

cJSON *run_file_read(const char *command, const char *directory, bool *bad)
{
    char path[PATH_MAX];
    *bad = false;
    if (snprintf(path, sizeof path, "%s/" RUN_FILE, directory) >= (int)sizeof path)
        return NULL;
    if (is_absent(path)) /* "best" and "milestones" lie in the directory that says what they are */
        snprintf(path, sizeof path, "%.4000s/../" RUN_FILE, directory);
    if (is_absent(path))
        return NULL;
    cJSON *found = json_read(command, path);
    *bad = !found;
    return found;
}

char *run_file_directory(const char *path, char directory[PATH_MAX])
{
    struct stat about;
    const char *slash = strrchr(path, '/');
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        snprintf(directory, PATH_MAX, "%s", path);
    else
        snprintf(directory, PATH_MAX, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
    return directory;
}

static bool is_choice(const char *choices, const char *word)
{
    char choice[64];
    bool found = false;
    while (choices && !found && next_choice(&choices, choice, sizeof choice))
        found = strcmp(choice, word) == 0;
    return found;
}

bool run_file_presets(const cJSON *run, const char *directory, const char *except, presets *presets)
{
    char from[PATH_MAX + 16];
    snprintf(from, sizeof from, "%s/" RUN_FILE, directory);
    const cJSON *given, *options = cJSON_GetObjectItemCaseSensitive(run, "options");
    const char *model = json_text_of(run, "model");
    bool good = !model || presets_add(presets, from, "model", model, true);
    const char *data_dir = json_text_of(cJSON_GetObjectItemCaseSensitive(run, "data_set"), "directory");
    if (good && data_dir) /* found in the place of its name, which the environment may move */
        good = presets_add(presets, from, "data-dir", data_dir, true);
    cJSON_ArrayForEach(given, options)
        if (good && cJSON_IsString(given) && !is_choice(except, given->string))
            good = presets_add(presets, from, given->string, given->valuestring, true);
    return good;
}

bool run_file_team(const cJSON *run, const char *directory, presets *presets)
{
    static const char team[] = "cpu with ";
    char from[PATH_MAX + 16], threads[16];
    const char *devices = json_text_of(run, "devices"), *found = devices ? strstr(devices, team) : NULL;
    if (!found)
        return true;
    snprintf(from, sizeof from, "%s/" RUN_FILE, directory);
    snprintf(threads, sizeof threads, "%d", atoi(found + strlen(team)));
    return presets_add(presets, from, "cpu-threads", threads, true);
}

bool checkpoint_text(const char *path, const char *key, char *text, size_t size)
{
    tw_checkpoint *checkpoint;
    tw_tensor *value = NULL;
    text[0] = 0;
    if (tw_checkpoint_open(path, &checkpoint, NULL) == TW_OK && tw_checkpoint_find(checkpoint, key) >= 0 &&
        tw_checkpoint_read(checkpoint, key, &value, NULL) == TW_OK && tw_tensor_dtype(value) == TW_STRING &&
        tw_tensor_elements(value) == 1) {
        const tw_string *string = tw_tensor_data(value);
        snprintf(text, size, "%.*s", (int)string->size, string->size ? string->data : "");
    }
    tw_tensor_release(value);
    tw_checkpoint_close(checkpoint);
    return text[0] != 0;
}

bool run_file_presets_of(const char *command, const char *what, const char *train_dir, presets *presets)
{
    char directory[PATH_MAX], path[PATH_MAX], model[64];
    bool bad, is_model = tw_model_find(what) != NULL, good;
    if (!is_model)
        snprintf(path, sizeof path, "%s", what);
    else if (train_dir)
        snprintf(path, sizeof path, "%s", train_dir);
    else
        snprintf(path, sizeof path, "%s_train", what);
    cJSON *run = run_file_read(command, run_file_directory(path, directory), &bad);
    if (bad)
        return false;
    tw_checkpoint *checkpoint = NULL;
    tw_error error = {0};
    if (!run && !is_model && tw_checkpoint_open(path, &checkpoint, &error) != TW_OK)
        return failed(command, &error), false;
    tw_checkpoint_close(checkpoint);
    good = !run || run_file_presets(run, directory, "batch-size|compat", presets);
    if (good && !run && checkpoint_text(path, "tower/model", model, sizeof model))
        good = presets_add(presets, path, "model", model, true);
    if (good && is_model)
        good = presets_add(presets, "MODEL", "model", what, true);
    if (good && !train_dir)
        good = presets_add(presets, path, "train-dir", path, true);
    cJSON_Delete(run);
    return good || complain(command, "out of memory");
}
