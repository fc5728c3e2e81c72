/* recipe.c - see recipe.h. */
#include "recipe.h"

#include "command.h" /* complain */

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool follow_layers(const char *command, const recipe *r, tw_model *model)
{
    if (r->num_layers == NOT_GIVEN)
        return true;
    if (!model->layers)
        return complain(command, "--num-layers: the model %s comes in one depth only", model->name);
    if ((r->num_layers - 2) % 6)
        return complain(command,
                        "Invalid --num-layers parameter: three stages of blocks of two layers and two more make "
                        "6n + 2, such as %" PRId64 " or %" PRId64 ", found %" PRId64,
                        (r->num_layers - 2) / 6 * 6 + 2, (r->num_layers - 2) / 6 * 6 + 8, r->num_layers);
    model->layers = (int)r->num_layers;
    return true;
}

/* A value that only some models have: *place is not 0 there, and there is no `what` where it is. */
static bool follow_value(const char *command, const char *option, double value, float *place, const char *what,
                         const tw_model *model)
{
    if (isnan(value))
        return true;
    if (*place == 0)
        return complain(command, "--%s: the model %s has no %s", option, model->name, what);
    *place = (float)value;
    return true;
}

static bool wants(const char *command, const char *form, const char *dataset, int layers, const tw_model *model)
{
    if (strcmp(model->dataset, dataset) == 0 && (model->layers > 0) == (layers > 0))
        return true;
    return complain(command, "--compat %s: expected %s, found the model %s", form,
                    layers ? "a residual network for CIFAR-10, such as resnet" : "the model cifar10", model->name);
}

/* ORDER COMPAT */
static bool follow_program(const char *command, const recipe *r, tw_model *model)
{
    switch (r->compat) {
    case COMPAT_TUTORIAL: /* that of r0.7 */
        if (!wants(command, "tutorial", "cifar10", 0, model))
            return false;
        model->stddev = 1e-4f;
        model->epochs = (tw_epochs){.examples = 50000, .of_one_tower = true};
        model->loss_average_decay = 0.9f;
        return true;
    case COMPAT_TUTORIAL_PREFETCH:
        if (!wants(command, "tutorial-prefetch", "cifar10", 0, model))
            return false;
        model->epochs = (tw_epochs){.examples = 50000};
        model->loss_average_decay = 0.9f;
        return true;
    case COMPAT_ESTIMATOR:
        if (!wants(command, "estimator", "cifar10", 1, model))
            return false;
        model->epochs = (tw_epochs){.examples = 45000, .whole_batches = true};
        return true;
    default:
        return true;
    }
}

bool recipe_is_tutorial(const recipe *r)
{
    return r->compat == COMPAT_TUTORIAL || r->compat == COMPAT_TUTORIAL_PREFETCH;
}

/* ORDER COMPAT */
tw_trainer_input recipe_input(const recipe *r, const tw_dataset *data)
{
    bool in_files = strcmp(tw_dataset_name(data), "cifar10") == 0;
    return r->compat == COMPAT_TUTORIAL            ? (in_files ? TW_INPUT_FILES : TW_INPUT_QUEUES)
           : r->compat == COMPAT_TUTORIAL_PREFETCH ? (in_files ? TW_INPUT_FILES_PREFETCH : TW_INPUT_PREFETCH)
                                                   : TW_INPUT_PIPELINE;
}

bool input_reads_files(tw_trainer_input input)
{
    return input == TW_INPUT_FILES || input == TW_INPUT_FILES_PREFETCH;
}

bool recipe_follow(const char *command, const recipe *r, const tw_model *named, tw_model *model)
{
    static const char norms[] = "batch normalization";
    *model = *named;
    if (!follow_program(command, r, model) || !follow_layers(command, r, model) ||
        !follow_value(command, "batch-norm-decay", r->batch_norm_decay, &model->norm_decay, norms, model) ||
        !follow_value(command, "batch-norm-epsilon", r->batch_norm_epsilon, &model->norm_epsilon, norms, model) ||
        !follow_value(command, "width-multiplier", r->width_multiplier, &model->width_multiplier, "other width", model))
        return false;
    if (r->num_classes != NOT_GIVEN)
        model->classes = (int)r->num_classes;
    if (!isnan(r->momentum))
        model->momentum = (float)r->momentum;
    if (!isnan(r->weight_decay))
        model->weight_decay = (float)r->weight_decay;
    if (!r->distortion) /* the images of evaluation: as large, nothing random */
        model->training = model->evaluation;
    return true;
}

void recipe_of_network(recipe *r)
{
    r->momentum = r->weight_decay = r->batch_norm_decay = NAN;
    r->distortion = true;
    r->compat = COMPAT_NONE;
}
