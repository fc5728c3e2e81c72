/* resnet.c - the residual networks for CIFAR-10 of TensorFlow's cifar10_estimator (He et al., version 1), of 20 to 110
 * layers:
 *
 *     3x3 convolution, 16 channels                       32x32x3  -> 32x32x16
 *     3 stages of (layers - 2) / 6 blocks                32x32x16 -> 32x32x16 -> 16x16x32 -> 8x8x64
 *     mean over the image, dense
 *
 * A block is two 3x3 convolutions, each with batch normalization, beside a shortcut without weights. Variables have the
 * names that TensorFlow's layers take of themselves ("resnet/conv2d_3/kernel", "resnet/BatchNorm_3/gamma"). */
#include <stdio.h>
#include <tower/models.h>
#include <tower/nn.h>

typedef struct network {
    tw_graph *g;
    const tw_model *model;
    tw_dtype dtype; /* that convolutions compute in */
    bool training;
    int convolutions, norms; /* so far */
} network;

static void layer_name(char name[32], const char *kind, int before)
{
    if (before)
        snprintf(name, 32, "%s_%d", kind, before);
    else
        snprintf(name, 32, "%s", kind);
}

/* Strides above 1 see the image padded by one pixel on all sides, where SAME would pad below and right alone. */
static tw_output convolution(network *n, tw_output x, int filters, int stride)
{
    char name[32];
    layer_name(name, "conv2d", n->convolutions++);
    if (stride > 1)
        x = tw_pad(n->g, x, TW_SHAPE(0, 1, 1, 0), TW_SHAPE(0, 1, 1, 0));
    tw_conv2d_options window = {.stride = {stride}, .padding = stride > 1 ? TW_PADDING_VALID : TW_PADDING_SAME};
    tw_layer_options options = {.no_biases = true, .compute = n->dtype};
    return tw_conv2d_layer(n->g, name, x, filters, 3, &window, &options);
}

static tw_output normalize(network *n, tw_output x)
{
    char name[32];
    layer_name(name, "BatchNorm", n->norms++);
    return tw_batch_norm_layer(n->g, name, x, n->model->norm_decay, n->model->norm_epsilon, n->training);
}

static tw_output relu(network *n, tw_output x)
{
    tw_output y = tw_relu(n->g, x);
    tw_add_to_collection(n->g, "activations", y);
    return y;
}

/* x itself, or made to fit a block that is smaller and deeper: pooled, with channels of zeros before and after. */
static tw_output shortcut(network *n, tw_output x, int in, int out, int stride)
{
    if (in == out)
        return x;
    int more = (out - in) / 2;
    x = tw_avg_pool(n->g, x, &(tw_pool_options){.window = {stride}, .stride = {stride}});
    return tw_pad(n->g, x, TW_SHAPE(0, 0, 0, more), TW_SHAPE(0, 0, 0, more));
}

static tw_output block(network *n, tw_output x, int in, int out, int stride)
{
    tw_output y = {0};
    TW_NAME_SCOPE(n->g, "residual_v1") {
        y = relu(n, normalize(n, convolution(n, x, out, stride)));
        y = normalize(n, convolution(n, y, out, 1));
        tw_output beside = shortcut(n, x, in, out, stride);
        y = relu(n, tw_add(n->g, y, beside));
    }
    return y;
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    static const int channels[] = {16, 16, 32, 64}, strides[] = {1, 2, 2};
    network n = {.g = g, .model = model, .dtype = dtype, .training = training};
    tw_output x = images;
    TW_VARIABLE_SCOPE(g, "resnet") {
        x = relu(&n, normalize(&n, convolution(&n, x, channels[0], 1)));
        for (int stage = 0; stage < 3; stage++)
            TW_NAME_SCOPE(g, "stage")
                for (int i = 0; i < (model->layers - 2) / 6; i++) {
                    int in = channels[i ? stage + 1 : stage], stride = i ? 1 : strides[stage];
                    x = block(&n, x, in, channels[stage + 1], stride);
                }
        x = tw_reduce_mean(g, x, (int[]){1, 2}, 2, false);
        x = tw_dense_layer(g, "dense", x, model->classes, &(tw_layer_options){.compute = dtype});
    }
    return tw_cast(g, x, TW_FLOAT32);
}

/* The batch and the rates are the original's for one tower; with more, each takes its 128 unless told otherwise. It
 * counts epochs of 45,000 images although it trains on 40,000; here an epoch is the data set. */
#define RESNET(name_ending, depth, words, parameters)                                                                  \
    const tw_model twi_model_resnet##name_ending = {                                                                   \
        .name = "resnet" #name_ending,                                                                                 \
        .description = "the residual network of " words " layers for CIFAR-10 (" parameters " parameters)",            \
        .dataset = "cifar10",                                                                                          \
        .height = 32,                                                                                                  \
        .width = 32,                                                                                                   \
        .channels = 3,                                                                                                 \
        .classes = 11, /* the original's: one class stays empty, and its checkpoints have a column for it */          \
        .layers = depth,                                                                                               \
        .batch = 128,                                                                                                  \
        .training = TW_AUGMENT_PAD_CROP_FLIP,                                                                          \
        .evaluation = TW_AUGMENT_NONE,                                                                                 \
        .scale = 1 / 128.0f,                                                                                           \
        .offset = -1,                                                                                                  \
        .optimizer = TW_OPTIMIZER_MOMENTUM,                                                                                \
        .learning_rate = 0.1f,                                                                                         \
        .rate_steps = {{82, 0.1f}, {123, 0.01f}, {300, 0.002f}},                                                       \
        .momentum = 0.9f,                                                                                              \
        .weight_decay = 2e-4f,                                                                                         \
        .norm_decay = 0.997f,                                                                                          \
        .norm_epsilon = 1e-5f,                                                                                         \
        .logits = logits,                                                                                              \
    }

RESNET(, 44, "6n + 2", "with 44: 658,651"); /* .layers may be set */
RESNET(20, 20, "20", "269,787");
RESNET(32, 32, "32", "464,219");
RESNET(44, 44, "44", "658,651");
RESNET(56, 56, "56", "853,083");
RESNET(110, 110, "110", "1,728,027");
