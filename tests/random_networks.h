/* random_networks.h - small networks of images, drawn at random, and their gradients: layers with the chains that
 * rewrites fuse, and what only looks like them, or is wanted by others, too. Values stay within what float32 tells
 * apart, so that a term which is missing shows. */
#ifndef RANDOM_NETWORKS_H
#define RANDOM_NETWORKS_H

#include "testing.h"

#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/train.h>

#include "random_ends.h" /* twt_draw */

enum { TWT_SIDE = TWT_END_SIDE, TWT_CELLS = TWT_SIDE * TWT_SIDE, TWT_LAYERS = 8, TWT_MOST = 120 };
enum { TWT_NETWORK_FETCHES = 10 };

/* Images of TWT_SIDE channels that are at hand, and the weights so far. */
typedef struct twt_network {
    tw_graph *g;
    unsigned seed;
    tw_dtype narrow; /* of some layers */
    tw_variable *count; /* of nodes that nobody asks for, but for which others wait */
    tw_output images[TWT_MOST], weights[TWT_MOST];
    int num_images, num_weights;
} twt_network;

static inline bool twt_has_narrow_layers(unsigned seed)
{
    return seed % 4 == 3;
}

static inline tw_output twt_keep_image(twt_network *n, tw_output image)
{
    if (twt_draw(&n->seed, 3) == 0)
        n->images[n->num_images++] = image;
    return image;
}

/* Rather one of the last. */
static inline tw_output twt_any_image(twt_network *n)
{
    int last = n->num_images < 3 ? n->num_images : 3;
    return n->images[n->num_images - 1 - (int)twt_draw(&n->seed, (unsigned)last)];
}

/* A variable of multiples of an eighth. */
static inline tw_output twt_weight(twt_network *n, tw_dtype dtype, tw_shape shape)
{
    char name[16];
    float values[9 * TWT_CELLS];
    for (int64_t i = 0; i < tw_shape_elements(shape); i++)
        values[i] = (float)((int)twt_draw(&n->seed, 9) - 4) / 8;
    snprintf(name, sizeof name, "w%d", n->num_weights);
    tw_new_variable made = {.dtype = TW_FLOAT32, .shape = shape, .trainable = true};
    made.initial_value = tw_constant_floats(n->g, shape, values);
    tw_output value = tw_make_variable(n->g, name, &made)->value;
    n->weights[n->num_weights++] = value;
    return tw_cast(n->g, value, dtype);
}

/* What the next node waits for: that something is counted, or nothing. What takes the place of nodes that wait has to
 * wait, too, or the count is lost. */
static inline tw_output twt_awaited(twt_network *n)
{
    tw_output one = tw_scalar(n->g, 1);
    return twt_draw(&n->seed, 6) ? one : tw_assign_add(n->g, n->count->handle, one);
}

static inline tw_output twt_convolve(twt_network *n, tw_output x, tw_dtype dtype)
{
    tw_output w = twt_weight(n, dtype, TW_SHAPE(3, 3, TWT_SIDE, TWT_SIDE));
    TW_CONTROL(n->g, twt_awaited(n))
        x = tw_conv2d(n->g, x, w, NULL);
    return x;
}

static inline tw_output twt_rectify(twt_network *n, tw_output x)
{
    TW_CONTROL(n->g, twt_awaited(n))
        x = tw_relu(n->g, x);
    return x;
}

/* With a bias of one kind or another, or what only looks like one. */
static inline tw_output twt_add_bias(twt_network *n, tw_output x, tw_dtype dtype)
{
    tw_shape shape = tw_output_shape(x);
    tw_output bias;
    switch (twt_draw(&n->seed, 8)) {
    case 0:
        return tw_add(n->g, twt_weight(n, dtype, TW_SHAPE(TWT_SIDE)), x);
    case 1:
        return tw_add(n->g, x, twt_weight(n, dtype, TW_SHAPE(shape.dims[shape.rank - 2], 1)));
    case 2:
        return tw_add(n->g, x, twt_weight(n, dtype, TW_SHAPE(1)));
    default:
        bias = twt_weight(n, dtype, TW_SHAPE(TWT_SIDE));
        TW_CONTROL(n->g, twt_awaited(n))
            x = tw_bias_add(n->g, x, bias);
        return x;
    }
}

static inline tw_output twt_normalize(twt_network *n, tw_output x)
{
    tw_output scale = twt_weight(n, TW_FLOAT32, TW_SHAPE(TWT_SIDE)), none = {0};
    tw_output offset = twt_weight(n, TW_FLOAT32, TW_SHAPE(TWT_SIDE));
    bool training = twt_draw(&n->seed, 3) > 0;
    tw_output moments = training ? none : tw_constant_floats(n->g, TW_SHAPE(TWT_SIDE), (float[]){1, 2, 3, 4});
    return twt_keep_image(n, tw_fused_batch_norm(n->g, x, scale, offset, moments, moments, 0.5f, training).y);
}

/* Of each cell by itself. */
static inline tw_output twt_dense(twt_network *n, tw_output x, tw_dtype dtype)
{
    tw_output w = twt_weight(n, dtype, TW_SHAPE(TWT_SIDE, TWT_SIDE));
    return twt_add_bias(n, tw_matmul_transposed(n->g, x, w, false, twt_draw(&n->seed, 4) == 0), dtype);
}

static inline tw_output twt_layer(twt_network *n)
{
    static const tw_pool_options pool = {.window = {3}, .stride = {1}};
    tw_graph *g = n->g;
    tw_output x = twt_any_image(n);
    tw_dtype dtype = twt_draw(&n->seed, 2) ? TW_FLOAT32 : n->narrow;
    switch (twt_draw(&n->seed, 6)) {
    case 0:
        x = twt_add_bias(n, twt_convolve(n, tw_cast(g, x, dtype), dtype), dtype);
        x = dtype == TW_FLOAT32 ? twt_keep_image(n, x) : x;
        return tw_cast(g, twt_rectify(n, x), TW_FLOAT32);
    case 1:
        x = twt_dense(n, tw_cast(g, tw_reshape(g, x, TW_SHAPE(TWT_CELLS, TWT_SIDE)), dtype), dtype);
        x = twt_draw(&n->seed, 2) ? twt_rectify(n, x) : x;
        return tw_cast(g, tw_reshape(g, x, TW_SHAPE(1, TWT_SIDE, TWT_SIDE, TWT_SIDE)), TW_FLOAT32);
    case 2:
        return tw_lrn(g, twt_keep_image(n, tw_max_pool(g, x, &pool)), 1, 1, 0.5f, 0.75f);
    case 3:
        return tw_max_pool(g, twt_keep_image(n, tw_lrn(g, x, 1, 1, 0.5f, 0.75f)), &pool);
    case 4:
        x = twt_normalize(n, twt_draw(&n->seed, 2) ? twt_keep_image(n, twt_convolve(n, x, TW_FLOAT32)) : x);
        if (twt_draw(&n->seed, 2))
            x = twt_keep_image(n, tw_add(g, x, twt_draw(&n->seed, 4) ? twt_any_image(n)
                                                                     : twt_weight(n, TW_FLOAT32, TW_SHAPE(TWT_SIDE))));
        return twt_rectify(n, x);
    default:
        return tw_tanh(g, tw_add(g, x, twt_any_image(n)));
    }
}

/* Two layers and the mean loss of a softmax, to which shares of some weights' squares may be added; or a sum, or a mean
 * in which some count for more, or something more is made of it. */
static inline tw_output twt_classify(twt_network *n, tw_output image)
{
    static const int32_t classes[TWT_CELLS] = {0, 1, 2, 3, 1, 1, 0, 2, 3, 0, 2, 1, 3, 2, 0, 1};
    tw_graph *g = n->g;
    tw_output labels = tw_constant_int32s(g, TW_SHAPE(TWT_CELLS), classes);
    tw_output x = tw_cast(g, tw_reshape(g, image, TW_SHAPE(TWT_CELLS, TWT_SIDE)), n->narrow);
    x = twt_dense(n, x, n->narrow);
    x = twt_dense(n, twt_draw(&n->seed, 6) ? tw_relu(g, x) : x, n->narrow);
    x = twt_draw(&n->seed, 6) ? x : tw_relu(g, x);
    x = tw_sparse_softmax_cross_entropy(g, tw_cast(g, x, TW_FLOAT32), labels);
    float counts[TWT_CELLS];
    for (int i = 0; i < TWT_CELLS; i++)
        counts[i] = (float)(1 + i % 2);
    if (twt_draw(&n->seed, 3) == 0)
        x = tw_mul(g, x, tw_constant_floats(g, TW_SHAPE(TWT_CELLS), counts));
    tw_output loss = twt_draw(&n->seed, 4) ? tw_reduce_mean(g, x, NULL, 0, false) : tw_reduce_sum(g, x, NULL, 0, false);
    if (twt_draw(&n->seed, 3) == 0)
        loss = tw_mul(g, loss, twt_draw(&n->seed, 2) ? tw_scalar(g, 0.5f) : loss);
    for (int i = n->num_weights - 1; i >= 0 && twt_draw(&n->seed, 3); i--)
        loss = tw_add(g, loss, tw_mul(g, tw_l2_loss(g, n->weights[i]), tw_scalar(g, 0.125f)));
    return loss;
}

/* The count, once all else that is fetched is there. */
static inline tw_output twt_read_count(twt_network *n, const tw_output *fetches, int count)
{
    tw_output value = {0};
    TW_CONTROL(n->g, tw_group(n->g, fetches, count))
        value = tw_variable_read(n->g, n->count);
    return value;
}

/* Builds a network of x, which has TWT_CELLS elements. Returns how many fetches there are: the loss, an image, gradients
 * of the last weights, unless layers are narrow: what rounding turns from 0 to less has another gradient; and the
 * count. */
static inline int twt_random_network(tw_graph *g, tw_output x, unsigned seed, tw_output fetches[TWT_NETWORK_FETCHES])
{
    twt_network n = {.g = g, .seed = seed, .narrow = twt_has_narrow_layers(seed) ? TW_BFLOAT16 : TW_FLOAT32};
    tw_output grey = tw_reshape(g, x, TW_SHAPE(1, TWT_SIDE, TWT_SIDE, 1)), gradients[TWT_MOST], loss;
    tw_new_variable of_count = {.dtype = TW_FLOAT32, .shape = TW_SCALAR, .initial_value = tw_scalar(g, 0)};
    n.count = tw_make_variable(g, "count", &of_count);
    n.images[n.num_images++] = tw_mul(g, grey, twt_weight(&n, TW_FLOAT32, TW_SHAPE(TWT_SIDE)));
    for (int i = 0; i < TWT_LAYERS; i++) {
        tw_output made = twt_layer(&n);
        n.images[n.num_images++] = made;
    }
    tw_output last = n.images[n.num_images - 1];
    loss = twt_draw(&n.seed, 3) ? twt_classify(&n, last) : tw_reduce_sum(g, tw_sin(g, last), NULL, 0, false);
    tw_gradients(g, &loss, 1, NULL, n.weights, n.num_weights, gradients);
    int count = 0;
    fetches[count++] = loss;
    fetches[count++] = twt_any_image(&n);
    for (int i = n.num_weights - 1; i >= 0 && n.narrow == TW_FLOAT32; i--)
        if (gradients[i].node && count < TWT_NETWORK_FETCHES - 1)
            fetches[count++] = gradients[i];
    fetches[count] = twt_read_count(&n, fetches, count);
    return count + 1;
}

#endif
