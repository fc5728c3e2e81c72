/* layers.c - layers: a few ops with their variables, made through the public builders. */
#include "base/sized.h"
#include "graph/graph.h"

#include <tower/nn.h>

static tw_initializer initializer_or(const tw_initializer *given, tw_initializer fallback)
{
    return given ? *given : fallback;
}

static tw_output variable(tw_graph *graph, const char *name, tw_dtype dtype, tw_shape shape, tw_initializer initializer)
{
    tw_variable *variable = tw_get_variable(graph, name, dtype, shape, initializer);
    return variable ? variable->value : (tw_output){0};
}

/* x as the type that is computed in. */
static tw_output computing(tw_graph *graph, tw_output x, const tw_layer_options *options)
{
    return options->compute ? tw_cast(graph, x, options->compute) : x;
}

/* Variables of a layer that computes in a type of its own are float32. */
static tw_output parameter(tw_graph *graph, const char *name, tw_output x, tw_shape shape, tw_initializer initializer,
                           const tw_layer_options *options)
{
    tw_dtype dtype = options->compute ? TW_FLOAT32 : tw_output_dtype(x);
    return computing(graph, variable(graph, name, dtype, shape, initializer), options);
}

/* x with biases added and the activation applied. */
static tw_output finish(tw_graph *graph, tw_output x, int units, const tw_layer_options *options)
{
    if (!options->no_biases)
        x = tw_bias_add(graph, x, parameter(graph, "bias", x, TW_SHAPE(units),
                                            initializer_or(options->biases, (tw_initializer){0}), options));
    return options->activation ? options->activation(graph, x) : x;
}

tw_output tw_dense_layer(tw_graph *graph, const char *name, tw_output x, int units, const tw_layer_options *given)
{
    TWI_NEED_OR(graph, (tw_output){0});
    tw_output y = {0};
    tw_shape shape = tw_output_shape(x);
    tw_layer_options whole, *options = &whole;
    TWI_TAKE_IN(graph, options, given, TWI_SIZE(tw_layer_options, compute), y);
    TW_VARIABLE_SCOPE(graph, "%s", name) {
        tw_initializer weights = initializer_or(options->weights, (tw_initializer){.kind = TW_INIT_GLOROT_UNIFORM});
        tw_output kernel = parameter(graph, "kernel", x, TW_SHAPE(shape.rank == 2 ? shape.dims[1] : -1, units), weights,
                                     options);
        y = finish(graph, tw_matmul(graph, computing(graph, x, options), kernel), units, options);
    }
    return y;
}

tw_output tw_conv2d_layer(tw_graph *graph, const char *name, tw_output images, int filters, int size,
                          const tw_conv2d_options *window, const tw_layer_options *given)
{
    TWI_NEED_OR(graph, (tw_output){0});
    tw_output y = {0};
    tw_shape shape = tw_output_shape(images);
    tw_layer_options whole, *options = &whole;
    TWI_TAKE_IN(graph, options, given, TWI_SIZE(tw_layer_options, compute), y);
    TW_VARIABLE_SCOPE(graph, "%s", name) {
        tw_initializer weights = initializer_or(options->weights, (tw_initializer){.kind = TW_INIT_GLOROT_UNIFORM});
        tw_output kernel =
            parameter(graph, "kernel", images, TW_SHAPE(size, size, shape.rank == 4 ? shape.dims[3] : -1, filters),
                      weights, options);
        y = finish(graph, tw_conv2d(graph, computing(graph, images, options), kernel, window), filters, options);
    }
    return y;
}

/* moving -= (moving - batch) * (1 - momentum), where the variable is. */
static void update_moving(tw_graph *graph, const tw_variable *moving, tw_output batch, float momentum)
{
    TW_COLOCATE(graph, moving->handle) {
        tw_output step = tw_mul(graph, tw_sub(graph, tw_variable_read(graph, moving), batch),
                                tw_scalar(graph, 1 - momentum));
        tw_add_to_collection(graph, "update_ops", tw_assign_sub(graph, moving->handle, step));
    }
}

static tw_output batch_norm(tw_graph *graph, const char *name, tw_output images, float momentum, float epsilon,
                            bool training, bool scaled)
{
    TWI_NEED_OR(graph, (tw_output){0});
    tw_shape shape = tw_output_shape(images), channels = TW_SHAPE(shape.rank == 4 ? shape.dims[3] : -1);
    tw_initializer zeros = {0}, ones = {.a = 1};
    tw_batch_norm norm = {0};
    TW_VARIABLE_SCOPE(graph, "%s", name) {
        tw_output gamma =
            scaled ? variable(graph, "gamma", TW_FLOAT32, channels, ones) : tw_ones(graph, TW_FLOAT32, channels);
        tw_output beta = variable(graph, "beta", TW_FLOAT32, channels, zeros);
        tw_variable *mean = tw_get_state_variable(graph, "moving_mean", TW_FLOAT32, channels, zeros);
        tw_variable *variance = tw_get_state_variable(graph, "moving_variance", TW_FLOAT32, channels, ones);
        if (mean && variance) {
            norm = tw_fused_batch_norm(graph, images, gamma, beta, mean->value, variance->value, epsilon, training);
            if (training) {
                update_moving(graph, mean, norm.mean, momentum);
                update_moving(graph, variance, norm.variance, momentum);
            }
        }
    }
    return norm.y;
}

tw_output tw_batch_norm_layer(tw_graph *graph, const char *name, tw_output images, float momentum, float epsilon,
                              bool training)
{
    return batch_norm(graph, name, images, momentum, epsilon, training, true);
}

tw_output tw_unscaled_batch_norm_layer(tw_graph *graph, const char *name, tw_output images, float momentum,
                                       float epsilon, bool training)
{
    return batch_norm(graph, name, images, momentum, epsilon, training, false);
}

tw_output tw_flatten(tw_graph *graph, tw_output x)
{
    tw_shape shape = tw_output_shape(x);
    if (shape.rank == 2)
        return x;
    int64_t size = shape.rank < 1 ? -1 : 1;
    for (int i = 1; i < shape.rank && size >= 0; i++)
        size = shape.dims[i] < 0 ? -1 : size * shape.dims[i];
    /* one of the two is left to be found at run time */
    if (size >= 0)
        return tw_reshape(graph, x, TW_SHAPE(-1, size));
    return tw_reshape(graph, x, TW_SHAPE(shape.rank < 1 ? -1 : shape.dims[0], -1));
}

/* Patches of images [N,H,W,C] as rows [.., size * size * C], in the order of a filter. */
static tw_output patches(tw_graph *graph, tw_output images, int size)
{
    enum { MOST = 8 };
    tw_output parts[MOST * MOST];
    const int64_t *dims = tw_output_shape(images).dims;
    int64_t height = dims[1] - size + 1, width = dims[2] - size + 1, channels = dims[3];
    if (size < 1 || size > MOST || height < 1 || width < 1) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                      "whitening filters of %d pixels, expected 1 to %d and no more than "
                      "images of %lldx%lld have",
                      size, MOST, (long long)dims[1], (long long)dims[2]);
        return (tw_output){0};
    }
    for (int i = 0; i < size * size; i++)
        parts[i] =
            tw_slice(graph, images, TW_SHAPE(0, i / size, i % size, 0), TW_SHAPE(dims[0], height, width, channels));
    return tw_reshape(graph, tw_concat(graph, parts, size * size, 3),
                      TW_SHAPE(dims[0] * height * width, size * size * channels));
}

tw_output tw_whitening_filters(tw_graph *graph, tw_output images, int size, float epsilon)
{
    TWI_NEED_OR(graph, (tw_output){0});
    tw_shape shape = tw_output_shape(images);
    if (!images.node)
        return images;
    if (shape.rank != 4 || !tw_shape_is_known(shape)) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT, "whitening filters are made of images [N,H,W,C] of known size");
        return (tw_output){0};
    }
    tw_output filters = {0};
    TW_NAME_SCOPE(graph, "whitening_filters")
    {
        tw_output rows = patches(graph, images, size);
        double count = (double)(shape.dims[0] * (shape.dims[1] - size + 1) * (shape.dims[2] - size + 1));
        int64_t side = size * size * shape.dims[3];
        tw_output square = tw_mul(graph, tw_matmul_transposed(graph, rows, rows, true, false),
                                  tw_scalar_of(graph, tw_output_dtype(images), 1 / count));
        tw_node *eigen = tw_add_node(graph, "SelfAdjointEigV2", NULL, &square, 1, NULL, 0); /* the weakest first */
        tw_output vectors = tw_node_output(eigen, 1);
        tw_output scale = tw_rsqrt(
            graph, tw_add(graph, tw_node_output(eigen, 0), tw_scalar_of(graph, tw_output_dtype(images), epsilon)));
        tw_output strongest = tw_reverse(graph, tw_mul(graph, vectors, scale), TW_AXES(1));
        filters = tw_concat(graph, (tw_output[]){strongest, tw_neg(graph, strongest)}, 2, 1);
        filters = tw_reshape(graph, filters, TW_SHAPE(size, size, shape.dims[3], 2 * side));
    }
    return filters;
}

tw_output tw_dropout(tw_graph *graph, tw_output x, float rate, int64_t seed)
{
    tw_dtype dtype = tw_output_dtype(x);
    if (rate == 0)
        return x;
    tw_output kept = {0};
    TW_NAME_SCOPE(graph, "dropout") {
        tw_output chance = tw_random_uniform(graph, tw_shape_of(graph, x), dtype, seed);
        tw_output mask = tw_greater_equal(graph, chance, tw_scalar_of(graph, dtype, rate));
        tw_output scaled = tw_mul(graph, x, tw_scalar_of(graph, dtype, 1 / (1 - (double)rate)));
        kept = tw_mul(graph, scaled, tw_cast(graph, mask, dtype));
    }
    if (kept.node) /* as far as x's is known: the random numbers in between hide it */
        kept.node->output_shapes[0] = tw_output_shape(x);
    return kept;
}
