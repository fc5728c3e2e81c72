/* job.c - see job.h. */
#include "job.h"

#include "command.h" /* complain */
#include "painter.h" /* busy_silence */
#include "places.h"
#include "progress.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of random images: as many as fit, and with the last class left empty where the model's own number is one more. */
enum { MOST_EXAMPLES = 1024, MOST_BYTES = 32 << 20, FEW_BYTES = 256 << 20, CLASSES = 10, IMAGENET_CLASSES = 1000 };

static const char *const data_sets[] = {NULL, "cifar10", "mnist", "fashion-mnist", "synthetic", "images"}; /* ORDER DATA_SET */

const char *job_model_names(void)
{
    static char names[1024];
    size_t used = 0;
    for (int i = 0; i < tw_model_count() && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? "|" : "", tw_model_at(i)->name);
    return names;
}

const char *job_train_dir(const job *job, char *path, size_t size)
{
    if (job->train_dir)
        return job->train_dir;
    snprintf(path, size, "%s_train", tw_model_at(job->model)->name);
    return path;
}

static bool is_imagenet(const tw_model *model)
{
    return strcmp(model->dataset, "synthetic") == 0; /* there is no reader of the true one */
}

static bool wants_synthetic(const job *job)
{
    const char *name = data_sets[job->data_set];
    return name ? strcmp(name, "synthetic") == 0 : is_imagenet(tw_model_at(job->model)) && !job->data_dir;
}

int job_image_side(const tw_model *model)
{
    return is_imagenet(model) ? model->height : model->channels == 3 ? 32 : 28;
}

void job_count_classes(const tw_dataset *data, int64_t *num_classes)
{
    if (*num_classes == NOT_GIVEN && strcmp(tw_dataset_name(data), "images") == 0)
        *num_classes = tw_dataset_classes(data) > 1 ? tw_dataset_classes(data) : 2;
}

static tw_status make_synthetic(const job *job, tw_dataset **data, tw_error *error)
{
    const tw_model *model = tw_model_at(job->model);
    bool imagenet = is_imagenet(model);
    int side = job_image_side(model);
    int64_t fit = MOST_BYTES / ((int64_t)side * side * model->channels);
    return tw_dataset_synthetic(fit < MOST_EXAMPLES ? fit : MOST_EXAMPLES, side, side, model->channels,
                                imagenet ? IMAGENET_CLASSES : CLASSES, 1, data, error);
}

tw_dataset *job_data_sizes(const char *command, const job *job)
{
    const tw_model *model = tw_model_at(job->model);
    const char *name = data_sets[job->data_set], *found = job->data_dir ? tw_dataset_detect(job->data_dir) : NULL;
    bool own = found ? strcmp(found, "images") == 0 : name && strcmp(name, "images") == 0;
    tw_dataset_options options = {.size = sizeof options,
                                  .as_rgb32 = model->channels == 3,
                                  .hold_back = job->hold_back,
                                  .sizes_only = true,
                                  .height = job_image_side(model),
                                  .width = job_image_side(model),
                                  .channels = model->channels};
    tw_dataset *data = NULL;
    tw_error error = {0};
    tw_status status = wants_synthetic(job) || (!name && !found && is_imagenet(model))
                           ? make_synthetic(job, &data, &error)
                           : tw_dataset_load(name ? name : found ? found : model->dataset, own ? job->data_dir : NULL, TW_SPLIT_TRAIN,
                                             &options, &data, &error);
    if (status != TW_OK)
        failed(command, &error);
    return data;
}

/* Nobody has said what lies there, and it does not show. */
static void complain_of_nothing(const char *command, const char *directory, const tw_model *model)
{
    DIR *there = opendir(directory);
    const char *why = there ? "" : strerror(errno), *made_for = is_imagenet(model) ? NULL : model->dataset;
    complain(command,
             "there is no data set in '%s'%s%s: expected images of your own (a folder for each class, a labels.csv, "
             "images.npy and labels.npy, or files of records)%s%s%s%s%s",
             directory, *why ? ": " : "", why, made_for ? ", or what 'tower data fetch " : "", made_for ? made_for : "",
             made_for ? " --data-dir " : "", made_for ? directory : "", made_for ? "' brings" : "");
    if (there)
        closedir(there);
}

/* Few pictures are read at once, so that one which is damaged is named before anything else is done. Tasks read each
 * its own. */
static tw_status read_few(const tw_dataset *data, int tasks, progress *progress, tw_error *error)
{
    double bytes =
        (double)tw_dataset_count(data) * tw_dataset_height(data) * tw_dataset_width(data) * tw_dataset_channels(data);
    return tasks > 1 || bytes > FEW_BYTES ? TW_OK : tw_dataset_read(data, progress_go_on, progress, error);
}

tw_dataset *job_load_data(const char *command, const job *job, tw_dataset_split split, char *directory)
{
    const tw_model *model = tw_model_at(job->model);
    const char *name = data_sets[job->data_set];
    tw_dataset *data = NULL;
    tw_error error = {0};
    tw_status status;
    int tasks = 1;
    if (job->tasks)
        tw_task_started(&tasks);

    directory[0] = 0;
    if (wants_synthetic(job)) {
        status = make_synthetic(job, &data, &error);
    } else {
        if (!data_directory(command, job->data_dir, name ? name : model->dataset, directory, PATH_MAX))
            return NULL;
        if (!name)
            name = tw_dataset_detect(directory);
        if (!name && job->data_dir) {
            complain_of_nothing(command, directory, model);
            return NULL;
        }
        if (!name)
            name = model->dataset; /* loading it says what was looked for */
        progress progress = progress_to(stderr);
        progress.unit = "images";
        progress.quiet = 2;
        tw_dataset_options options = {.size = sizeof options,
                                      .as_rgb32 = model->channels == 3,
                                      .hold_back = job->hold_back,
                                      .height = job_image_side(model),
                                      .width = job_image_side(model),
                                      .channels = model->channels,
                                      .when_needed = true,
                                      .image_memory = job->image_memory > 0 ? job->image_memory : 0,
                                      .processes = tasks};
        status = tw_dataset_load(name, directory, split, &options, &data, &error);
        if (status == TW_NOT_FOUND && !job->data_dir) { /* or where a package of the distribution puts it */
            status = tw_dataset_load(name, NULL, split, &options, &data, NULL);
            directory[0] = 0;
        }
        if (status == TW_OK)
            status = read_few(data, tasks, &progress, &error);
        progress_end(&progress);
    }
    if (status == TW_OK)
        return data;
    failed(command, &error);
    tw_dataset_destroy(data);
    return NULL;
}

tw_devices *job_open_devices(const char *command, const job *job)
{
    int code;
    return job_open_tasks(command, job, &code);
}

void job_plan_for_started(job *job)
{
    int started;
    tw_task_started(&started);
    if (job->plan_tasks == NOT_GIVEN && started > 1)
        job->plan_tasks = started;
}

tw_devices *job_open_tasks(const char *command, const job *job, int *code)
{
    tw_error error = {0};
    tw_devices *devices = NULL;
    tw_device_options options = {
        .size = sizeof options,
        .cpu_devices = (int)job->cpu_devices,
        .cpu_threads = (int)job->cpu_threads,
        .virtual_gpus = (int)job->virtual_gpus,
        .logical_gpus = (int)job->logical_gpus,
        .collective_timeout = (double)job->collective_timeout,
        .tf32 = job->tf32,
        .fast = job->fast,
        .virtual_gpu_memory = job->virtual_gpu_memory > 0 ? (size_t)job->virtual_gpu_memory : 0,
        .gpu_memory_limit = job->gpu_memory_limit > 0 ? (size_t)job->gpu_memory_limit : 0,
        .gpu_memory_fraction = job->gpu_memory_fraction > 0 ? job->gpu_memory_fraction : 0,
        .allow_growth = job->allow_growth,
        .tasks = job->tasks,
        .ps_tasks = job->ps_tasks,
        .plan_tasks = job->plan_tasks > 0 ? (int)job->plan_tasks : 0,
    };
    if (job->verbose)
        show_details();
    tw_status status = tw_devices_create(&options, &devices, &error);
    bool wrong_words = status == TW_INVALID_ARGUMENT; /* which are looked at before the others are joined */
    if (job->tasks && !wrong_words)
        complain_joining(false);
    *code = status == TW_OK ? EXIT_DONE : failed(command, &error);
    if (wrong_words)
        *code = EXIT_USAGE;
    if (devices && tw_devices_tasks(devices) > 1)
        complain_among(devices);
    return devices;
}

void job_close_tasks(tw_devices *devices)
{
    complain_among(NULL);
    tw_devices_destroy(devices);
}

/* Whether each task may have its own: what is read lies elsewhere on another machine, and only the first writes. */
static bool is_own(const option *row, const char *section)
{
    static const char *const paths[] = {"data-dir", "train-dir", "config"};
    if (!row->name)
        return row->kind != OPTION_CHOICE;
    bool own = strcmp(section, "devices") == 0 || strcmp(section, "tasks") == 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && !own; i++)
        own = strcmp(row->name, paths[i]) == 0;
    return own;
}

/* "--seed 5", "no --seed", of a path "--trace", or of an operand "MODEL mnist", and a line end. */
static void write_option(const option *row, const void *settings, FILE *out)
{
    char text[PATH_MAX];
    bool given = option_text(row, settings, text, sizeof text);
    bool path = row->kind == OPTION_FILE || row->kind == OPTION_DIRECTORY;
    fprintf(out, "%s%s%s%s%s\n", given ? "" : "no ", row->name ? "--" : "", row->name ? row->name : row->argument,
            given && !path ? " " : "", given && !path ? text : "");
}

/* A line for the command and one for each row. Yours: free(). */
static char *list_options(const char *command, const option *table, const void *settings)
{
    char *list = NULL;
    size_t size;
    const char *section = "";
    FILE *out = open_memstream(&list, &size);
    if (out)
        fprintf(out, "tower %s\n", command);
    for (const option *row = table; out && (row = option_at(row)); row++) {
        section = row->section ? row->section : section;
        if (!is_own(row, section))
            write_option(row, settings, out);
    }
    if (out)
        fclose(out);
    return list;
}

int job_options_agree(const char *command, const option *table, const void *settings, tw_devices *devices)
{
    tw_error error = {0};
    char *list = tw_devices_tasks(devices) > 1 ? list_options(command, table, settings) : NULL;
    tw_status status = list ? tw_devices_agree(devices, list, "their options", &error) : TW_OK;
    free(list);
    int code = status == TW_OK ? EXIT_DONE : failed(command, &error);
    return code == EXIT_FAILED ? EXIT_USAGE : code; /* or another is lost */
}

bool job_leave_printing(const char *command, const tw_devices *devices)
{
    if (tw_devices_task(devices) == 0)
        return true;
    busy_silence();
    return freopen("/dev/null", "w", stdout) || complain(command, "cannot open /dev/null: %s", strerror(errno));
}

int job_all_devices(const tw_devices *devices, const char *names[MOST_JOB_DEVICES])
{
    int count = 0;
    const char *type = tw_devices_count(devices, "GPU") > 0 ? "GPU" : "CPU";
    for (int i = 0; i < tw_devices_count(devices, NULL) && count < MOST_JOB_DEVICES; i++)
        if (strcmp(tw_devices_info(devices, i).type, type) == 0)
            names[count++] = tw_devices_info(devices, i).name;
    return count;
}

const char *job_card_text(const tw_devices *devices, const char *device, char *text, size_t size)
{
    tw_device_info info = {.name = ""};
    for (int i = 0; i < tw_devices_count(devices, NULL) && strcmp(info.name, device) != 0; i++)
        info = tw_devices_info(devices, i);
    text[0] = 0;
    if (strcmp(info.name, device) != 0 || !info.model[0])
        return text;
    int length = snprintf(text, size, "%s%s, %.1f GiB, %d multiprocessors", info.parts ? "logical: part of " : "",
                          info.model, (double)info.memory_total / (1 << 30), info.multiprocessors);
    if (info.parts && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", %d of %d", info.part + 1, info.parts);
    return text;
}

void job_print_cards(const tw_devices *devices, const char *indent)
{
    char text[160];
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        const char *name = tw_devices_info(devices, i).name, *local = strstr(name, "/device:");
        if (*job_card_text(devices, name, text, sizeof text))
            printf("%s%s %s\n", indent, local ? local : name, text);
    }
}
