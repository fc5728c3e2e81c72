/* models.c - the list of models, and the loss they share. */
#include <string.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

extern const tw_model twi_model_cifar10, twi_model_resnet20, twi_model_resnet32, twi_model_resnet44, twi_model_resnet56,
    twi_model_resnet110, twi_model_mnist;

static const tw_model *const models[] = { /* a model is a file of its own; add it here */
    &twi_model_cifar10,  &twi_model_resnet20, &twi_model_resnet32,
    &twi_model_resnet44, &twi_model_resnet56, &twi_model_resnet110,
    &twi_model_mnist,
};

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
    for (int i = 0; i < tw_model_count(); i++)
        if (strcmp(models[i]->name, name) == 0)
            return models[i];
    return NULL;
}

/* decay * half the sum of squares of all trainable variables, biases and those of batch normalization too. */
static void add_weight_decay(tw_graph *g, float decay)
{
    enum { MOST = 512 };
    tw_output norms[MOST];
    int count = 0;
    for (int i = 0; i < tw_graph_num_variables(g); i++) {
        if (!tw_graph_variable(g, i)->trainable)
            continue;
        if (count == MOST) {
            norms[0] = tw_add_n(g, norms, MOST);
            count = 1;
        }
        norms[count++] = tw_l2_loss(g, tw_graph_variable(g, i)->value);
    }
    tw_output sum = tw_add_n(g, norms, count), factor = tw_scalar(g, decay);
    tw_add_loss(g, tw_mul(tw_name(g, "weight_loss"), sum, factor));
}

tw_output tw_model_loss(tw_graph *g, const tw_model *model, tw_output images, tw_output labels, tw_dtype dtype)
{
    tw_output logits = model->logits(g, model, images, dtype, true);
    tw_output per_example = tw_sparse_softmax_cross_entropy(tw_name(g, "cross_entropy_per_example"), logits, labels);
    tw_add_loss(g, tw_reduce_mean(tw_name(g, "cross_entropy"), per_example, NULL, 0, false));
    if (model->weight_decay > 0)
        add_weight_decay(g, model->weight_decay);
    return tw_total_loss(g, NULL);
}
