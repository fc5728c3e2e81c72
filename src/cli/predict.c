/* predict.c - `tower predict`: what a trained network takes pictures for. */
#include "command.h"
#include "job.h"
#include "json.h"
#include "recipe.h"
#include "run_file.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    job job;
    recipe recipe; /* what concerns the network */
    const char *what;
    texts images;
    int64_t top;
    bool raw;
} settings;

/* All that is needed to say something of pictures. */
typedef struct seer {
    const settings *s;
    tw_model model;
    const char *checkpoint;
    tw_devices *devices;
    cJSON *run;           /* NULL: the directory has no run.json */
    tw_dataset *pictures; /* those that could be read */
    float *probabilities; /* [pictures, classes] */
    const char **paths;   /* of the pictures */
    int classes;
} seer;

static bool read_presets(const void *given, presets *presets)
{
    const settings *s = given;
    return run_file_presets_of("predict", s->what, s->job.train_dir, presets);
}

static const char *class_name(const seer *p, int class, char text[64])
{
    const cJSON *names =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(p->run, "data_set"), "classes");
    const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(names, class));
    if (name && *name)
        snprintf(text, 64, "%s", name);
    else
        snprintf(text, 64, "class %d", class);
    return text;
}

/* Those that cannot be read are complained about; false: that is all of them, or something else is wrong. */
static bool read_pictures(seer *p, bool *some_failed)
{
    int side = job_image_side(&p->model), channels = p->model.channels, count = 0;
    size_t bytes = (size_t)side * (size_t)side * (size_t)channels;
    uint8_t *pixels = malloc(bytes * (size_t)p->s->images.count);
    int32_t *labels = calloc((size_t)p->s->images.count, sizeof *labels);
    tw_error error = {0};
    p->paths = calloc((size_t)p->s->images.count, sizeof(char *));
    bool good = pixels && labels && p->paths;
    for (int i = 0; good && i < p->s->images.count; i++) {
        if (tw_image_read(p->s->images.items[i], side, side, channels, pixels + (size_t)count * bytes, &error) == TW_OK)
            p->paths[count++] = p->s->images.items[i];
        else
            *some_failed = failed("predict", &error) != EXIT_DONE;
    }
    if (!good)
        complain("predict", "out of memory");
    else if (count &&
             tw_dataset_from("pictures", pixels, labels, count, side, side, channels, 1, &p->pictures, &error) != TW_OK)
        failed("predict", &error);
    free(pixels);
    free(labels);
    return p->pictures != NULL;
}

static bool look(seer *p)
{
    tw_error error = {0};
    tw_scores *scores;
    int64_t count = tw_dataset_count(p->pictures);
    p->classes = p->model.classes;
    p->probabilities = calloc((size_t)count * (size_t)p->classes, sizeof *p->probabilities);
    if (!p->probabilities)
        return complain("predict", "out of memory");
    tw_evaluation_options options = {.size = sizeof options,
                                     .raw = p->s->raw,
                                     .batch = count < 100 ? (int)count : 100,
                                     .probabilities = p->probabilities};
    if (tw_score(&p->model, p->pictures, p->checkpoint, p->devices, &options, &scores, &error) != TW_OK)
        return failed("predict", &error) == EXIT_DONE;
    tw_scores_destroy(scores);
    return true;
}

/* The class of the `rank`-th highest probability, from 0. */
static int class_at(const float *probabilities, int classes, int rank)
{
    for (int c = 0; c < classes; c++) {
        int before = 0;
        for (int k = 0; k < classes; k++)
            before += probabilities[k] > probabilities[c] || (probabilities[k] == probabilities[c] && k < c);
        if (before == rank)
            return c;
    }
    return 0; /* not reached: ranks are those of classes, but for NaNs */
}

static void print_text(const seer *p, int top)
{
    char name[64];
    for (int64_t i = 0; i < tw_dataset_count(p->pictures); i++) {
        const float *row = p->probabilities + i * p->classes;
        printf("%s:", p->paths[i]);
        for (int k = 0; k < top; k++) {
            int c = class_at(row, p->classes, k);
            printf("%s %s %.1f %%", k ? "," : "", class_name(p, c, name), 100 * (double)row[c]);
        }
        printf("\n");
    }
}

static void print_json(const seer *p, int top)
{
    char name[64];
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_begin(&out, "images", '[');
    for (int64_t i = 0; i < tw_dataset_count(p->pictures); i++) {
        const float *row = p->probabilities + i * p->classes;
        json_begin(&out, NULL, '{');
        json_text(&out, "path", p->paths[i]);
        json_begin(&out, "classes", '[');
        for (int k = 0; k < top; k++) {
            int c = class_at(row, p->classes, k);
            json_begin(&out, NULL, '{');
            json_text(&out, "name", class_name(p, c, name));
            json_integer(&out, "number", c);
            json_number(&out, "probability", (double)row[c]);
            json_end(&out);
        }
        json_end(&out);
        json_end(&out);
    }
    json_end(&out);
    json_end(&out);
}

static int run(const void *given)
{
    settings filled = *(const settings *)given, *s = &filled;
    char own[64], directory[PATH_MAX];
    bool bad = false, some_failed = false;
    if (s->job.model < 0) {
        complain("predict", "'%s' does not say which model it was made by (it has no " RUN_FILE "); give --model",
                 s->what);
        return EXIT_USAGE;
    }
    recipe_of_network(&s->recipe);
    seer p = {.s = s, .checkpoint = job_train_dir(&s->job, own, sizeof own)};
    if (!recipe_follow("predict", &s->recipe, tw_model_at(s->job.model), &p.model))
        return EXIT_USAGE;
    p.run = run_file_read("predict", run_file_directory(p.checkpoint, directory), &bad);
    bool good =
        !bad && read_pictures(&p, &some_failed) && (p.devices = job_open_devices("predict", &s->job)) && look(&p);
    int top = s->top < p.classes ? (int)s->top : p.classes;
    if (good && s->job.format == FORMAT_JSON)
        print_json(&p, top);
    else if (good)
        print_text(&p, top);
    cJSON_Delete(p.run);
    tw_dataset_destroy(p.pictures);
    tw_devices_destroy(p.devices);
    free(p.probabilities);
    free(p.paths);
    return good && !some_failed ? EXIT_DONE : EXIT_FAILED;
}

static const option options[] = {
    {NULL, "RUN", OPTION_DIRECTORY, offsetof(settings, what),
     "a train directory, or a checkpoint in one; or a model, whose --train-dir it is then"},
    {NULL, "IMAGE...", OPTION_TEXTS, offsetof(settings, images), "pictures, JPEG or PNG"},
    {"top", "N", OPTION_NUMBER, offsetof(settings, top), "say so many of the likeliest classes", .initial = "3",
     .least = 1, .most = 1000},
    {"train-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, job.train_dir),
     "where RUN's checkpoints lie, if it is a model"},
    {"model", "NAME", OPTION_CHOICE, offsetof(settings, job.model), "the network, where RUN does not say which it is",
     .list_choices = job_model_names},
    {"raw", NULL, OPTION_FLAG, offsetof(settings, raw),
     "take the variables as they were trained last, not their moving averages"},
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    VIRTUAL_GPUS_OPTION(settings),
    FORMAT_OPTION(settings, job.format),
    NETWORK_OPTIONS(settings),
    {0},
};

const command predict_command = {
    .name = "predict",
    .summary = "say what a trained network takes pictures for",
    .description =
        "Restores the newest complete checkpoint of a train directory and shows it pictures: the middle of each, "
        "scaled to "
        "the size that the network was trained with. Prints the likeliest classes with their probabilities. The train "
        "directory says which model it is and what its classes are called.",
    .examples = "tower predict cifar10_train cat.jpg\ntower predict pets/best *.jpg --top 1\n"
                "tower predict cifar10_train cat.jpg --format json",
    .of_tasks = TASKS_FIRST,
    .options = options,
    .settings_bytes = sizeof(settings),
    .read_presets = read_presets,
    .run = run,
};
