/* models.c - the list of models, the loss they share, and when their learning rates change. */
#include <math.h>
#include <string.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

#define MODELS(X) /* a model is a file of its own: add it here */                                                      \
    X(cifar10)                                                                                                         \
    X(resnet) X(resnet20) X(resnet32) X(resnet44) X(resnet56) X(resnet110) X(airbench) X(mnist) X(trivial) X(alexnet)  \
        X(vgg16) X(resnet50) X(inception3)

#define X(name) extern const tw_model twi_model_##name;
MODELS(X)
#undef X

#define X(name) &twi_model_##name,
static const tw_model *const models[] = {MODELS(X)};
#undef X

int tw_model_count(void)
{
    return (int)(sizeof models / sizeof *models);
}

const tw_model *tw_model_at(int i)
{
    return i >= 0 && i < tw_model_count() ? models[i] : NULL;
}

const tw_model *tw_model_find(const char *name)
{
    for (int i = 0; name && i < tw_model_count(); i++)
        if (strcmp(models[i]->name, name) == 0)
            return models[i];
    return NULL;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), ending = strlen(end);
    return length >= ending && strcmp(name + length - ending, end) == 0;
}

int tw_model_group_of(const tw_model *model, const char *variable)
{
    if (model && variable)
        for (int i = 0; i < TW_MOST_MODEL_GROUPS && model->groups[i].ending; i++)
            if (ends_with(variable, model->groups[i].ending))
                return i;
    return -1;
}

static bool is_weighed(const tw_model *model, const tw_variable *variable)
{
    bool norm = ends_with(variable->name, "/gamma") || ends_with(variable->name, "/beta");
    return variable->trainable && !(norm && model->decay_spares_norms) && variable->shape.rank >= model->decay_rank;
}

/* decay * half the sum of squares of all trainable variables of a group (-1: of none): biases too, and those of batch
 * normalization unless they are spared. */
static void add_weight_decay(tw_graph *g, const tw_model *model, int group, float decay)
{
    enum { MOST = 512 };
    tw_output norms[MOST];
    int count = 0;
    for (int i = 0; i < tw_graph_num_variables(g); i++) {
        if (!is_weighed(model, tw_graph_variable(g, i)) ||
            tw_model_group_of(model, tw_graph_variable(g, i)->name) != group)
            continue;
        const tw_variable *variable = tw_variable_here(g, tw_graph_variable(g, i));
        if (count == MOST) {
            norms[0] = tw_add_n(g, norms, MOST);
            count = 1;
        }
        norms[count++] = variable ? tw_l2_loss(g, variable->value) : (tw_output){0};
    }
    tw_output sum = tw_add_n(g, norms, count), factor = tw_scalar(g, decay);
    tw_add_loss(g, tw_mul(tw_name(g, "weight_loss"), sum, factor));
}

static tw_output cross_entropy(tw_graph *g, const tw_model *model, tw_output logits, tw_output labels)
{
    const char *name = "cross_entropy_per_example";
    if (!(model->label_smoothing > 0))
        return tw_sparse_softmax_cross_entropy(tw_name(g, "%s", name), logits, labels);
    tw_output losses = {0};
    TW_NAME_SCOPE(g, "%s", name)
    losses = tw_smoothed_softmax_cross_entropy(g, logits, labels, model->label_smoothing);
    return losses;
}

tw_output tw_model_loss(tw_graph *g, const tw_model *model, tw_output images, tw_output labels, tw_dtype dtype)
{
    if (!g || !model)
        return (tw_output){0};
    tw_output logits = model->logits(g, model, images, dtype, true);
    tw_add_to_collection(g, "logits", logits);
    tw_add_to_collection(g, "classes", tw_arg_max(tw_name(g, "classes"), logits, 1));
    tw_add_to_collection(g, "probabilities", tw_softmax(tw_name(g, "probabilities"), logits));
    tw_output per_example = cross_entropy(g, model, logits, labels);
    tw_add_loss(g, tw_reduce_mean(tw_name(g, "cross_entropy"), per_example, NULL, 0, false));
    if (model->weight_decay > 0)
        add_weight_decay(g, model, -1, model->weight_decay);
    for (int i = 0; i < TW_MOST_MODEL_GROUPS && model->groups[i].ending; i++)
        if (model->groups[i].weight_decay > 0)
            add_weight_decay(g, model, i, model->groups[i].weight_decay);
    tw_output total = tw_total_loss(g, NULL);
    return model->loss_average_decay > 0 ? tw_average_losses(g, model->loss_average_decay, total) : total;
}

int tw_model_rate_changes(const tw_model *m, int64_t examples, int64_t in_tower, int64_t in_step,
                          int64_t steps[TW_MOST_RATE_STEPS])
{
    if (!m || !steps)
        return 0;
    double epoch = (double)(m->epochs.examples ? m->epochs.examples : examples);
    double in_epoch = epoch / (double)(m->epochs.of_one_tower ? in_tower : in_step);
    if (m->epochs.whole_batches && in_epoch >= 1)
        in_epoch = floor(in_epoch);
    if (m->epochs_per_decay > 0) {
        steps[0] = (int64_t)fmax(1, floor(in_epoch * m->epochs_per_decay));
        return 1;
    }
    int count = 0;
    for (; count < TW_MOST_RATE_STEPS && m->rate_steps[count].factor > 0; count++) {
        steps[count] = (int64_t)fmax(1, floor(in_epoch * m->rate_steps[count].epoch));
        if (count && steps[count] <= steps[count - 1]) /* epochs of less than a step */
            steps[count] = steps[count - 1] + 1;
    }
    return count;
}
