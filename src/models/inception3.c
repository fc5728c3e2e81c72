/* inception3.c - Inception v3 (Szegedy et al. 2015) without its auxiliary head, 23,836,617 parameters:
 *
 *     five convolutions and two max pools                     299x299x3 -> 35x35x192
 *     3 blocks of 1x1, 5x5, two 3x3, pool                     -> 35x35x288
 *     a block that makes images smaller                       -> 17x17x768
 *     4 blocks whose 7x7 convolutions are 1x7 after 7x1       -> 17x17x768
 *     another block that makes images smaller                 -> 8x8x1280
 *     2 blocks that split 3x3 into 1x3 beside 3x1             -> 8x8x2048
 *     mean over the image, dropout, dense 1001                2048 x 1,001 + 1,001 parameters
 *
 * With 1000 classes there are 23,834,568 parameters: 21,751,136 of convolutions, 2 x 17,216 of batch normalization
 * behind each of them, and 2,049,000. Branches are joined by channels. */
#include <stdio.h>
#include <tower/models.h>
#include <tower/nn.h>

typedef struct network {
    tw_graph *g;
    const tw_model *model;
    tw_dtype dtype; /* that convolutions compute in */
    bool training;
    int convolutions; /* so far */
} network;

/* A convolution of any window with its batch normalization and relu. */
static tw_output convolution(network *n, tw_output x, int filters, int height, int width, int stride,
                             tw_padding padding)
{
    tw_graph *g = n->g;
    tw_shape shape = tw_output_shape(x);
    tw_conv2d_options window = {.stride = {stride}, .padding = padding};
    TW_VARIABLE_SCOPE(g, "conv%d", n->convolutions++) {
        tw_variable *kernel =
            tw_get_variable(g, "kernel", TW_FLOAT32, TW_SHAPE(height, width, shape.rank == 4 ? shape.dims[3] : -1, filters),
                            (tw_initializer){.kind = TW_INIT_GLOROT_UNIFORM});
        tw_output seen = tw_cast(g, x, n->dtype), filter = kernel ? tw_cast(g, kernel->value, n->dtype) : x;
        x = tw_conv2d(g, seen, filter, &window);
        x = tw_batch_norm_layer(g, "batchnorm", x, n->model->norm_decay, n->model->norm_epsilon, n->training);
        x = tw_relu(g, x);
    }
    tw_add_to_collection(g, "activations", x);
    return x;
}

static tw_output same(network *n, tw_output x, int filters, int height, int width)
{
    return convolution(n, x, filters, height, width, 1, TW_PADDING_SAME);
}

/* 3x3, moved by two pixels, inside the image. */
static tw_output smaller(network *n, tw_output x, int filters)
{
    return convolution(n, x, filters, 3, 3, 2, TW_PADDING_VALID);
}

static tw_output smaller_pool(network *n, tw_output x)
{
    return tw_max_pool(n->g, x, &(tw_pool_options){.window = {3}, .stride = {2}, .padding = TW_PADDING_VALID});
}

static tw_output mean_pool(network *n, tw_output x)
{
    return tw_avg_pool(n->g, x, &(tw_pool_options){.window = {3}, .stride = {1}});
}

static tw_output block_35(network *n, tw_output x, int pooled)
{
    tw_output branches[4];
    branches[0] = same(n, x, 64, 1, 1);
    branches[1] = same(n, same(n, x, 48, 1, 1), 64, 5, 5);
    branches[2] = same(n, same(n, same(n, x, 64, 1, 1), 96, 3, 3), 96, 3, 3);
    branches[3] = same(n, mean_pool(n, x), pooled, 1, 1);
    return tw_concat(n->g, branches, 4, 3);
}

static tw_output from_35_to_17(network *n, tw_output x)
{
    tw_output branches[3];
    branches[0] = smaller(n, x, 384);
    branches[1] = smaller(n, same(n, same(n, x, 64, 1, 1), 96, 3, 3), 96);
    branches[2] = smaller_pool(n, x);
    return tw_concat(n->g, branches, 3, 3);
}

static tw_output block_17(network *n, tw_output x, int inner)
{
    tw_output branches[4], y;
    branches[0] = same(n, x, 192, 1, 1);
    y = same(n, same(n, x, inner, 1, 1), inner, 1, 7);
    branches[1] = same(n, y, 192, 7, 1);
    y = same(n, same(n, same(n, x, inner, 1, 1), inner, 7, 1), inner, 1, 7);
    branches[2] = same(n, same(n, y, inner, 7, 1), 192, 1, 7);
    branches[3] = same(n, mean_pool(n, x), 192, 1, 1);
    return tw_concat(n->g, branches, 4, 3);
}

static tw_output from_17_to_8(network *n, tw_output x)
{
    tw_output branches[3], y;
    branches[0] = smaller(n, same(n, x, 192, 1, 1), 320);
    y = same(n, same(n, same(n, x, 192, 1, 1), 192, 1, 7), 192, 7, 1);
    branches[1] = smaller(n, y, 192);
    branches[2] = smaller_pool(n, x);
    return tw_concat(n->g, branches, 3, 3);
}

static tw_output block_8(network *n, tw_output x)
{
    tw_output branches[6], y;
    branches[0] = same(n, x, 320, 1, 1);
    y = same(n, x, 384, 1, 1);
    branches[1] = same(n, y, 384, 1, 3);
    branches[2] = same(n, y, 384, 3, 1);
    y = same(n, same(n, x, 448, 1, 1), 384, 3, 3);
    branches[3] = same(n, y, 384, 1, 3);
    branches[4] = same(n, y, 384, 3, 1);
    branches[5] = same(n, mean_pool(n, x), 192, 1, 1);
    return tw_concat(n->g, branches, 6, 3);
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    network n = {g, model, dtype, training, 0};
    tw_output x = smaller(&n, images, 32);
    x = convolution(&n, x, 32, 3, 3, 1, TW_PADDING_VALID);
    x = smaller_pool(&n, same(&n, x, 64, 3, 3));
    x = convolution(&n, x, 80, 1, 1, 1, TW_PADDING_VALID);
    x = smaller_pool(&n, convolution(&n, x, 192, 3, 3, 1, TW_PADDING_VALID));
    for (int i = 0; i < 3; i++)
        x = block_35(&n, x, i ? 64 : 32);
    x = from_35_to_17(&n, x);
    static const int inner[] = {128, 160, 160, 192};
    for (int i = 0; i < 4; i++)
        x = block_17(&n, x, inner[i]);
    x = from_17_to_8(&n, x);
    for (int i = 0; i < 2; i++)
        x = block_8(&n, x);
    x = tw_reduce_mean(g, x, (int[]){1, 2}, 2, false);
    if (training)
        x = tw_dropout(g, x, 0.2f, 0);
    x = tw_dense_layer(g, "dense", x, model->classes, &(tw_layer_options){.compute = dtype});
    return tw_cast(g, x, TW_FLOAT32);
}

const tw_model twi_model_inception3 = {
    .name = "inception3",
    .description = "Inception v3 for ImageNet: many small branches (23,836,617 parameters)",
    .dataset = "synthetic",
    .height = 299,
    .width = 299,
    .channels = 3,
    .classes = 1001,
    .batch = 32,
    .scale = 1 / 127.5f,
    .offset = -1,
    .learning_rate = 0.005f,
    .weight_decay = 4e-5f,
    .decay_spares_norms = true,
    .norm_decay = 0.9f,
    .norm_epsilon = 1e-3f,
    .logits = logits,
};
