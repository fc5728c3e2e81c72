/* trivial.c - the least network of tf_cnn_benchmarks, 4,259,818 parameters:
 *
 *     dense 1 + relu, dense 4096 + relu, dense 1001     224x224x3 -> 1 -> 4096 -> 1001
 *
 *     150,528 + 1,  4,096 + 4,096,  4,096 x 1,001 + 1,001 parameters
 *
 * It computes next to nothing, so a step takes as long as its input, and the update of its variables. */
#include <tower/models.h>
#include <tower/nn.h>

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)training; /* nothing here tells the two apart */
    tw_layer_options relu = {.activation = tw_relu, .compute = dtype}, last = {.compute = dtype};
    tw_output x = tw_dense_layer(g, "affine0", tw_flatten(g, images), 1, &relu);
    x = tw_dense_layer(g, "affine1", x, 4096, &relu);
    return tw_cast(g, tw_dense_layer(g, "affine2", x, model->classes, &last), TW_FLOAT32);
}

const tw_model twi_model_trivial = {
    .name = "trivial",
    .description = "two small dense layers, to see what the input costs (4,259,818 parameters)",
    .dataset = "synthetic",
    .height = 224,
    .width = 224,
    .channels = 3,
    .classes = 1001,
    .batch = 32,
    .scale = 1 / 127.5f,
    .offset = -1,
    .learning_rate = 0.005f,
    .weight_decay = 4e-5f,
    .logits = logits,
};
