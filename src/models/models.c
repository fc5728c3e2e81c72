/* models.c - the list of models, and the loss they share. */
#include <string.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

extern const tw_model twi_model_cifar10;

static const tw_model *const models[] = { /* a model is a file of its own; add it here */
    &twi_model_cifar10,
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

tw_output tw_model_loss(tw_graph *g, const tw_model *model, tw_output images, tw_output labels, tw_dtype dtype)
{
    tw_output logits = model->logits(g, images, dtype);
    tw_output per_example = tw_sparse_softmax_cross_entropy(tw_name(g, "cross_entropy_per_example"), logits, labels);
    tw_add_loss(g, tw_reduce_mean(tw_name(g, "cross_entropy"), per_example, NULL, 0, false));
    return tw_total_loss(g, NULL);
}
