/* alexnet.c - AlexNet as Krizhevsky's second paper has it ("one weird trick", 2014), 61,104,937 parameters:
 *
 *     conv1 11x11x64 / 4, max pool 3/2     227x227x3 -> 55x55x64 -> 27x27x64         23,296 parameters
 *     conv2 5x5x192, max pool 3/2          -> 27x27x192 -> 13x13x192                307,392
 *     conv3 3x3x384                        -> 13x13x384                             663,936
 *     conv4 3x3x256                        -> 13x13x256                             884,992
 *     conv5 3x3x256, max pool 3/2          -> 13x13x256 -> 6x6x256                  590,080
 *     dense 4096, dropout                                                        37,752,832
 *     dense 4096, dropout                                                        16,781,312
 *     dense 1001                                                                  4,101,097
 *
 * with relu behind all but the last. */
#include "dense_head.h"

#include <tower/models.h>
#include <tower/nn.h>

typedef struct network {
    tw_graph *g;
    tw_dtype dtype; /* that convolutions and products compute in */
} network;

static tw_output convolution(const network *n, const char *name, tw_output x, int filters, int size,
                             const tw_conv2d_options *window)
{
    x = tw_conv2d_layer(n->g, name, x, filters, size, window,
                        &(tw_layer_options){.activation = tw_relu, .compute = n->dtype});
    tw_add_to_collection(n->g, "activations", x);
    return x;
}

static tw_output pool(const network *n, tw_output x)
{
    return tw_max_pool(n->g, x, &(tw_pool_options){.window = {3}, .stride = {2}, .padding = TW_PADDING_VALID});
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    network n = {g, dtype};
    tw_output x =
        convolution(&n, "conv1", images, 64, 11, &(tw_conv2d_options){.stride = {4}, .padding = TW_PADDING_VALID});
    x = convolution(&n, "conv2", pool(&n, x), 192, 5, NULL);
    x = convolution(&n, "conv3", pool(&n, x), 384, 3, NULL);
    x = convolution(&n, "conv4", x, 256, 3, NULL);
    x = convolution(&n, "conv5", x, 256, 3, NULL);
    return twi_dense_head(g, pool(&n, x), model->classes, dtype, training);
}

const tw_model twi_model_alexnet = {
    .name = "alexnet",
    .description = "AlexNet for ImageNet: most of it dense layers, so much to reduce (61,104,937 parameters)",
    .dataset = "synthetic",
    .height = 227,
    .width = 227,
    .channels = 3,
    .classes = 1001,
    .batch = 512,
    .scale = 1 / 127.5f,
    .offset = -1,
    .learning_rate = 0.005f,
    .weight_decay = 4e-5f,
    .logits = logits,
};
