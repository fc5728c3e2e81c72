/* vgg16.c - the network of 16 layers of Simonyan and Zisserman (2014), 138,361,641 parameters:
 *
 *     2 convolutions 3x3x64,  max pool 2     224x224x3 -> 112x112x64            38,720 parameters
 *     2 convolutions 3x3x128, max pool 2     -> 56x56x128                      221,440
 *     3 convolutions 3x3x256, max pool 2     -> 28x28x256                    1,475,328
 *     3 convolutions 3x3x512, max pool 2     -> 14x14x512                    5,899,776
 *     3 convolutions 3x3x512, max pool 2     -> 7x7x512                      7,079,424
 *     dense 4096, dropout                                                  102,764,544
 *     dense 4096, dropout                                                   16,781,312
 *     dense 1001                                                             4,101,097
 *
 * with relu behind all but the last. */
#include "dense_head.h"

#include <tower/models.h>
#include <tower/nn.h>

#include <stdio.h>

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    static const struct {
        int convolutions, filters;
    } stages[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
    tw_layer_options relu = {.activation = tw_relu, .compute = dtype};
    tw_output x = images;
    for (int stage = 0; stage < 5; stage++) {
        for (int i = 0; i < stages[stage].convolutions; i++) {
            char name[32];
            snprintf(name, sizeof name, "conv%d_%d", stage + 1, i + 1);
            x = tw_conv2d_layer(g, name, x, stages[stage].filters, 3, NULL, &relu);
            tw_add_to_collection(g, "activations", x);
        }
        x = tw_max_pool(g, x, &(tw_pool_options){.window = {2}});
    }
    return twi_dense_head(g, x, model->classes, dtype, training);
}

const tw_model twi_model_vgg16 = {
    .name = "vgg16",
    .description = "VGG-16 for ImageNet: much to compute and much to reduce (138,361,641 parameters)",
    .dataset = "synthetic",
    .height = 224,
    .width = 224,
    .channels = 3,
    .classes = 1001,
    .batch = 64,
    .scale = 1 / 127.5f,
    .offset = -1,
    .learning_rate = 0.005f,
    .weight_decay = 4e-5f,
    .logits = logits,
};
