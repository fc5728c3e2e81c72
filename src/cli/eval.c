/* eval.c - `tower eval`: how often a trained network is right. */
#include "clock.h"
#include "command.h"
#include "job.h"
#include "json.h"
#include "recipe.h"

#include <limits.h>
#include <math.h>

typedef struct settings {
    job job;
    recipe recipe; /* what concerns the network */
    int64_t batch_size;
    int split;
    bool raw;
} settings;

static const tw_dataset_split splits[] = {TW_SPLIT_TEST, TW_SPLIT_TRAIN, TW_SPLIT_VALIDATION}; /* as in the choices below */

static void print_result(const settings *s, const tw_evaluation *result)
{
    char time[64];
    time_of_day(time, sizeof time);
    if (s->job.format == FORMAT_TEXT) {
        printf("%s: precision @ 1 = %.3f\n", time, result->precision);
        return;
    }
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "time", time);
    json_integer(&out, "step", result->step);
    json_number(&out, "precision_at_1", result->precision);
    json_integer(&out, "examples", result->examples);
    json_integer(&out, "correct", result->correct);
    json_flag(&out, "moving_averages", result->used_averages);
    json_end(&out);
}

static int run(const void *given)
{
    settings filled = *(const settings *)given, *s = &filled;
    tw_model model;
    s->recipe.momentum = s->recipe.weight_decay = s->recipe.batch_norm_decay = NAN; /* of training alone */
    s->recipe.distortion = true;
    s->recipe.compat = COMPAT_NONE;
    if (!recipe_follow("eval", &s->recipe, tw_model_at(s->job.model), &model))
        return EXIT_USAGE;
    char directory[PATH_MAX], own[64];
    tw_error error = {0};
    tw_evaluation result;
    tw_devices *devices = job_open_devices("eval", &s->job);
    tw_dataset *data = devices ? job_load_data("eval", &s->job, splits[s->split], directory) : NULL;
    int code = EXIT_FAILED;
    if (data) {
        tw_evaluation_options options = {.raw = s->raw, .batch = (int)s->batch_size};
        if (tw_evaluate(&model, data, job_train_dir(&s->job, own, sizeof own), devices, &options, &result, &error) ==
            TW_OK) {
            print_result(s, &result);
            code = EXIT_DONE;
        } else {
            failed("eval", &error);
        }
    }
    tw_dataset_destroy(data);
    tw_devices_destroy(devices);
    return code;
}

static const option options[] = {
    MODEL_OPERAND(settings),
    DATA_OPTIONS(settings),
    {"eval-data", "HALF", OPTION_CHOICE, offsetof(settings, split), "the half of the data set to look at",
     .initial = "test", .choices = "test|train|validation"},
    {"batch-size", "N", OPTION_NUMBER, offsetof(settings, batch_size),
     "examples at a time, any number: none is left out or counted twice", .initial = "100", .least = 1, .most = 1 << 20,
     .also = "eval-batch-size"},
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
        "in place of the variables, looks at every example of the data set once, and prints how many are classified right: the share "
        "whose label is the network's first choice (precision @ 1).\n\n"
        "It may run while the training does: a checkpoint is complete as soon as it is there.",
    .examples = "tower eval cifar10\ntower eval cifar10 --data-dir data --train-dir train\n"
                "tower eval cifar10 --train-dir train/model.ckpt-1000 --format json",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
