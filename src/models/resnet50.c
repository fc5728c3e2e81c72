/* resnet50.c - the residual network of 50 layers for ImageNet (He et al. 2015, version 1), 25,559,081 parameters:
 *
 *     7x7 convolution, 64 channels, stride 2; max pool 3/2     224x224x3 -> 112x112x64 -> 56x56x64
 *     3, 4, 6, 3 blocks of 256, 512, 1024, 2048 channels       -> 56x56 -> 28x28 -> 14x14 -> 7x7
 *     mean over the image, dense 1001                          2048 x 1,001 + 1,001 parameters
 *
 * A block is a 1x1, a 3x3 and a 1x1 convolution, the first two with a quarter of the channels, beside a shortcut that
 * is a 1x1 convolution where the shape changes. With 1000 classes there are 25,557,032 parameters, the number known of
 * this network. Batch normalization follows each convolution; it is spared the weight decay. */
#include <tower/models.h>
#include <tower/nn.h>

typedef struct network {
    tw_graph *g;
    const tw_model *model;
    tw_dtype dtype; /* that convolutions compute in */
    bool training;
    int convolutions; /* so far */
} network;

/* A convolution padded the same on all sides whatever the stride, and its batch normalization. */
static tw_output convolution(network *n, tw_output x, int filters, int size, int stride)
{
    int around = size / 2;
    tw_conv2d_options window = {
        .stride = {stride}, .padding = TW_PADDING_EXPLICIT, .explicit_padding = {around, around, around, around}};
    TW_VARIABLE_SCOPE(n->g, "conv%d", n->convolutions++) {
        x = tw_conv2d_layer(n->g, "conv2d", x, filters, size, &window,
                            &(tw_layer_options){.no_biases = true, .compute = n->dtype});
        x = tw_batch_norm_layer(n->g, "batchnorm", x, n->model->norm_decay, n->model->norm_epsilon, n->training);
    }
    return x;
}

static tw_output relu(network *n, tw_output x)
{
    x = tw_relu(n->g, x);
    tw_add_to_collection(n->g, "activations", x);
    return x;
}

static tw_output block(network *n, tw_output x, int channels, int stride, bool changes_shape)
{
    tw_output beside = changes_shape ? convolution(n, x, channels, 1, stride) : x;
    x = relu(n, convolution(n, x, channels / 4, 1, stride));
    x = relu(n, convolution(n, x, channels / 4, 3, 1));
    x = convolution(n, x, channels, 1, 1);
    return relu(n, tw_add(n->g, x, beside));
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    static const int blocks[] = {3, 4, 6, 3};
    network n = {g, model, dtype, training, 0};
    tw_output x = relu(&n, convolution(&n, images, 64, 7, 2));
    x = tw_max_pool(g, x, &(tw_pool_options){.window = {3}, .stride = {2}});
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < blocks[stage]; i++)
            x = block(&n, x, 256 << stage, i == 0 && stage > 0 ? 2 : 1, i == 0);
    x = tw_reduce_mean(g, x, (int[]){1, 2}, 2, false);
    x = tw_dense_layer(g, "dense", x, model->classes, &(tw_layer_options){.compute = dtype});
    return tw_cast(g, x, TW_FLOAT32);
}

const tw_model twi_model_resnet50 = {
    .name = "resnet50",
    .description = "ResNet-50 for ImageNet: much to compute, little to reduce (25,559,081 parameters)",
    .dataset = "synthetic",
    .height = 224,
    .width = 224,
    .channels = 3,
    .classes = 1001,
    .batch = 64,
    .scale = 1 / 127.5f,
    .offset = -1,
    .optimizer = TW_OPTIMIZER_MOMENTUM,
    .learning_rate = 0.032f, /* 0.128 for 256 examples, in proportion */
    .rate_steps = {{30, 0.1f}, {60, 0.01f}, {80, 0.001f}, {90, 0.0001f}},
    .weight_decay = 4e-5f,
    .decay_spares_norms = true,
    .norm_decay = 0.9f,
    .norm_epsilon = 1e-5f,
    .logits = logits,
};
