/* cifar10.c - the network of TensorFlow's CIFAR-10 tutorial, 1,068,298 parameters:
 *
 *     conv1 5x5x64 + relu, max pool 3/2, LRN     24x24x3  -> 12x12x64
 *     conv2 5x5x64 + relu, LRN, max pool 3/2     12x12x64 -> 6x6x64
 *     local3 384 + relu, local4 192 + relu, softmax_linear 10
 *
 * Pool and normalization change places between the blocks, as in the original. */
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/train.h>

/* Weights from a truncated normal, with their decay (weight_decay * half the sum of squares) among the losses. */
static tw_output weights(tw_graph *g, tw_shape shape, float stddev, float weight_decay, tw_dtype dtype)
{
    tw_initializer normal = {TW_INIT_TRUNCATED_NORMAL, 0, stddev, 0};
    tw_variable *v = tw_get_variable(g, "weights", TW_FLOAT32, shape, normal);
    if (!v)
        return (tw_output){0};
    if (weight_decay > 0) {
        tw_output norm = tw_l2_loss(g, v->value), factor = tw_scalar(g, weight_decay);
        tw_add_loss(g, tw_mul(tw_name(g, "weight_loss"), norm, factor));
    }
    return tw_cast(g, v->value, dtype);
}

static tw_output biases(tw_graph *g, int64_t count, float value, tw_dtype dtype)
{
    tw_variable *v = tw_get_variable(g, "biases", TW_FLOAT32, TW_SHAPE(count), (tw_initializer){.a = value});
    return v ? tw_cast(g, v->value, dtype) : (tw_output){0};
}

static tw_output convolution(tw_graph *g, const char *name, tw_output x, int in, int out, float stddev, float bias,
                             tw_dtype dtype)
{
    tw_output y = {0};
    TW_VARIABLE_SCOPE(g, "%s", name) {
        y = tw_conv2d(g, x, weights(g, TW_SHAPE(5, 5, in, out), stddev, 0, dtype), NULL);
        y = tw_bias_add(g, y, biases(g, out, bias, dtype));
        y = tw_relu(tw_name(g, "%s", name), y);
    }
    tw_add_to_collection(g, "activations", y);
    return y;
}

static tw_output dense(tw_graph *g, const char *name, tw_output x, int in, int out, float stddev, float weight_decay,
                       float bias, tw_dtype dtype)
{
    tw_output y = {0};
    bool last = weight_decay == 0; /* the layer's name goes to what it gives */
    TW_VARIABLE_SCOPE(g, "%s", name) {
        y = tw_matmul(g, x, weights(g, TW_SHAPE(in, out), stddev, weight_decay, dtype));
        tw_output b = biases(g, out, bias, dtype);
        y = tw_bias_add(last ? tw_name(g, "%s", name) : g, y, b);
        y = last ? y : tw_relu(tw_name(g, "%s", name), y);
    }
    tw_add_to_collection(g, "activations", y);
    return y;
}

static tw_output pool(tw_graph *g, const char *name, tw_output x)
{
    return tw_max_pool(tw_name(g, "%s", name), x, &(tw_pool_options){.window = {3}, .stride = {2}});
}

static tw_output normalize(tw_graph *g, const char *name, tw_output x)
{
    return tw_lrn(tw_name(g, "%s", name), x, 4, 1.0f, 0.001f / 9.0f, 0.75f);
}

static tw_output logits(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)training; /* nothing here tells the two apart */
    tw_output x = tw_cast(g, images, dtype);
    x = convolution(g, "conv1", x, 3, 64, model->stddev, 0.0f, dtype);
    x = normalize(g, "norm1", pool(g, "pool1", x));
    x = convolution(g, "conv2", x, 64, 64, model->stddev, 0.1f, dtype);
    x = pool(g, "pool2", normalize(g, "norm2", x));
    x = tw_flatten(g, x);
    x = dense(g, "local3", x, 2304, 384, 0.04f, 0.004f, 0.1f, dtype);
    x = dense(g, "local4", x, 384, 192, 0.04f, 0.004f, 0.1f, dtype);
    x = dense(g, "softmax_linear", x, 192, model->classes, 1 / 192.0f, 0, 0.0f, dtype);
    return tw_cast(g, x, TW_FLOAT32);
}

const tw_model twi_model_cifar10 = {
    .name = "cifar10",
    .description = "the CIFAR-10 tutorial's convolutional network (1,068,298 parameters)",
    .dataset = "cifar10",
    .height = 24,
    .width = 24,
    .channels = 3,
    .classes = 10,
    .batch = 128,
    .training = TW_AUGMENT_TUTORIAL_TRAIN,
    .evaluation = TW_AUGMENT_TUTORIAL_EVAL,
    .optimizer = TW_OPTIMIZER_GRADIENT_DESCENT,
    .learning_rate = 0.1f,
    .decay_factor = 0.1f,
    .epochs_per_decay = 350,
    .average_decay = 0.9999f,
    .stddev = 5e-2f,
    .logits = logits,
};
