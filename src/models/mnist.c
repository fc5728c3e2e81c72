/* mnist.c - the network of the MNIST sample of golbin's TensorFlow-Multi-GPUs, 619,146 parameters:
 *
 *     conv 3x3x64,  max pool 2     28x28x1  -> 13x13x64
 *     conv 3x3x128, max pool 2     13x13x64 -> 5x5x128
 *     conv 3x3x128, max pool 2     5x5x128  -> 1x1x128
 *     dense 1024 + relu, dense 256 + relu, dense 10
 *
 * Convolutions have no activation and no padding. The sample's dropouts are left out because they do nothing there: it
 * calls tf.layers.dropout(x, rate, True), and the third argument is not `training`. Variables have its names
 * ("L2/conv2d/kernel"). */
#include <tower/models.h>
#include <tower/nn.h>

static tw_output convolution(tw_graph *g, const char *name, tw_output x, int filters, tw_dtype dtype)
{
    TW_VARIABLE_SCOPE(g, "%s", name) {
        tw_layer_options options = {.compute = dtype};
        x = tw_conv2d_layer(g, "conv2d", x, filters, 3, &(tw_conv2d_options){.padding = TW_PADDING_VALID}, &options);
        x = tw_max_pool(g, x, &(tw_pool_options){.window = {2}, .padding = TW_PADDING_VALID});
    }
    tw_add_to_collection(g, "activations", x);
    return x;
}

static tw_output dense(tw_graph *g, const char *name, tw_output x, int units, tw_activation *activation, tw_dtype dtype)
{
    TW_VARIABLE_SCOPE(g, "%s", name) {
        tw_layer_options options = {.activation = activation, .compute = dtype};
        x = tw_dense_layer(g, "dense", x, units, &options);
    }
    tw_add_to_collection(g, "activations", x);
    return x;
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)training; /* nothing here tells the two apart */
    tw_output x = convolution(g, "L1", images, 64, dtype);
    x = convolution(g, "L2", x, 128, dtype);
    x = convolution(g, "L2-1", x, 128, dtype);
    x = dense(g, "L3", tw_flatten(g, x), 1024, tw_relu, dtype);
    x = dense(g, "L4", x, 256, tw_relu, dtype);
    return tw_cast(g, dense(g, "LF", x, model->classes, NULL, dtype), TW_FLOAT32);
}

const tw_model twi_model_mnist = {
    .name = "mnist",
    .description = "the MNIST sample's convolutional network (619,146 parameters)",
    .dataset = "mnist",
    .height = 28,
    .width = 28,
    .channels = 1,
    .classes = 10,
    .batch = 1000, /* the sample takes 10,000 for all towers, which wants gigabytes */
    .training = TW_AUGMENT_NONE,
    .evaluation = TW_AUGMENT_NONE,
    .optimizer = TW_OPTIMIZER_ADAM,
    .learning_rate = 0.001f,
    .logits = logits,
};
