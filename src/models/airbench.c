/* airbench.c - the network of the CIFAR-10 speed record airbench94 (Jordan 2024), as of its version with Muon:
 * 1,971,352 parameters, and 288 in filters that are not trained:
 *
 *     2x2 convolution without padding, 24 whitening filters, biases, GELU     32x32x3  -> 31x31x24
 *     3 blocks of 64, 256 and 256 channels: 3x3 convolution, max pool 2,      31x31x24 -> 15x15x64
 *       batch normalization, GELU, 3x3 convolution, batch normalization,               -> 7x7x256
 *       GELU                                                                           -> 3x3x256
 *     max pool 3, dense 10 without biases, divided by the inputs it has                -> 256 -> 10
 *
 * Filters of blocks begin as ones that pass their input on, those of the first layer as whitening filters of the data,
 * and these stay. Batch normalization has no scale. The record adds the losses of a batch up, which is 2000 images;
 * here a loss is their mean, and rates of what Muon does not update are 2000 times the record's. */
#include <tower/models.h>
#include <tower/nn.h>

enum { BATCH = 2000 };
#define RATE 0.24f /* of Muon */

typedef struct network {
    tw_graph *g;
    const tw_model *model;
    tw_dtype dtype; /* that convolutions compute in */
    bool training;
} network;

static int channels(const tw_model *model, int of_original)
{
    return model->width_multiplier > 0 ? (int)((float)of_original * model->width_multiplier) : of_original;
}

/* Pixels of 0 to 1 less the data set's mean, in units of its deviation, channel by channel. */
static tw_output standardize(tw_graph *g, tw_output images)
{
    static const float mean[] = {0.4914f, 0.4822f, 0.4465f}, deviation[] = {0.2470f, 0.2435f, 0.2616f};
    tw_output centered = tw_sub(g, images, tw_constant_floats(g, TW_SHAPE(3), mean));
    return tw_div(g, centered, tw_constant_floats(g, TW_SHAPE(3), deviation));
}

static tw_output convolution(network *n, const char *name, tw_output x, int filters)
{
    tw_initializer dirac = {.kind = TW_INIT_DIRAC};
    tw_layer_options options = {.weights = &dirac, .no_biases = true, .compute = n->dtype};
    return tw_conv2d_layer(n->g, name, x, filters, 3, NULL, &options);
}

static tw_output normalize(network *n, const char *name, tw_output x)
{
    const tw_model *m = n->model;
    x = tw_unscaled_batch_norm_layer(n->g, name, x, m->norm_decay, m->norm_epsilon, n->training);
    x = tw_gelu(n->g, x);
    tw_add_to_collection(n->g, "activations", x);
    return x;
}

static tw_output block(network *n, const char *name, tw_output x, int filters)
{
    TW_VARIABLE_SCOPE(n->g, "%s", name)
    {
        x = convolution(n, "conv1", x, filters);
        x = tw_max_pool(n->g, x, &(tw_pool_options){.window = {2}, .padding = TW_PADDING_VALID});
        x = normalize(n, "norm1", x);
        x = normalize(n, "norm2", convolution(n, "conv2", x, filters));
    }
    return x;
}

static tw_output whiten(network *n, tw_output x)
{
    tw_graph *g = n->g;
    TW_VARIABLE_SCOPE(g, "whiten")
    {
        tw_variable *kernel = tw_get_state_variable(g, "kernel", TW_FLOAT32, TW_SHAPE(2, 2, 3, 24),
                                                    (tw_initializer){.kind = TW_INIT_GLOROT_UNIFORM});
        tw_variable *bias = tw_get_variable(g, "bias", TW_FLOAT32, TW_SHAPE(24), (tw_initializer){0});
        if (kernel && bias) {
            x = tw_conv2d(g, tw_cast(g, x, n->dtype), tw_cast(g, kernel->value, n->dtype),
                          &(tw_conv2d_options){.padding = TW_PADDING_VALID});
            x = tw_gelu(g, tw_bias_add(g, x, tw_cast(g, bias->value, n->dtype)));
        }
    }
    return x;
}

static tw_output whitening(tw_graph *g, const tw_model *model, tw_output images)
{
    (void)model;
    return tw_whitening_filters(g, standardize(g, images), 2, 5e-4f);
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    network n = {g, model, dtype, training};
    int last = channels(model, 256);
    tw_output x = whiten(&n, standardize(g, images));
    x = block(&n, "block1", x, channels(model, 64));
    x = block(&n, "block2", x, channels(model, 256));
    x = block(&n, "block3", x, last);
    x = tw_max_pool(g, x, &(tw_pool_options){.window = {3}, .padding = TW_PADDING_VALID});
    tw_initializer normal = {.kind = TW_INIT_NORMAL, .b = 1};
    tw_layer_options options = {.weights = &normal, .no_biases = true, .compute = dtype};
    x = tw_dense_layer(g, "head", tw_flatten(g, x), model->classes, &options);
    return tw_mul(g, tw_cast(g, x, TW_FLOAT32), tw_scalar(g, 1 / (float)last));
}

#define RATIO(rate) (BATCH * (rate) / RATE)
#define DECAY(rate) (2e-6f / (rate))

const tw_model twi_model_airbench = {
    .size = sizeof(tw_model),
    .name = "airbench",
    .description = "the CIFAR-10 speed record's network, with Muon (1,971,352 parameters)",
    .dataset = "cifar10",
    .height = 32,
    .width = 32,
    .channels = 3,
    .classes = 10,
    .batch = BATCH,
    .training = TW_AUGMENT_REFLECT_CROP_ALTERNATE,
    .evaluation = TW_AUGMENT_NONE,
    .optimizer = TW_OPTIMIZER_MUON,
    .learning_rate = RATE,
    .momentum = 0.6f,
    .rate_ends = 8,
    .norm_decay = 0.6f,
    .norm_epsilon = 1e-12f,
    .label_smoothing = 0.2f,
    .muon = {.iterations = 3, .normalize = true},
    .groups = {{.ending = "whiten/bias",
                .optimizer = TW_OPTIMIZER_MOMENTUM,
                .momentum = 0.85f,
                .nesterov = true,
                .rate_ratio = RATIO(0.053f),
                .rate_ends = 3,
                .weight_decay = DECAY(0.053f)},
               {.ending = "/beta",
                .optimizer = TW_OPTIMIZER_MOMENTUM,
                .momentum = 0.85f,
                .nesterov = true,
                .rate_ratio = RATIO(0.053f),
                .weight_decay = DECAY(0.053f)},
               {.ending = "head/kernel",
                .optimizer = TW_OPTIMIZER_MOMENTUM,
                .momentum = 0.85f,
                .nesterov = true,
                .rate_ratio = RATIO(0.67f),
                .weight_decay = DECAY(0.67f)}},
    .logits = logits,
    .data_variable = "whiten/kernel",
    .data_images = 5000,
    .data_value = whitening,
    .width_multiplier = 1,
    .views = TW_VIEWS_SHIFTED,
};
