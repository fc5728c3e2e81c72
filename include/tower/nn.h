/* nn.h - builders for neural-network ops, and the layers made of them.
 *
 * Images are [N,H,W,C], filters [kh,kw,C,K]. The rules of ops.h hold: TensorFlow's numerics, dead outputs on error. */
#ifndef TOWER_NN_H
#define TOWER_NN_H

#include <tower/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolutions and biases (src/ops/conv.c) -------------------------------------------------------------- */

/* How many cells around the image count, as zeros (as nothing at all in pools).
 * TW_PADDING_SAME       as many as give ceil(side / stride) outputs; the odd one lies below and right
 * TW_PADDING_VALID      none: windows stay inside
 * TW_PADDING_EXPLICIT   as the options say */
typedef enum tw_padding { TW_PADDING_SAME, TW_PADDING_VALID, TW_PADDING_EXPLICIT } tw_padding;

/* Pairs are {vertical, horizontal}; a second entry of 0 means "as the first", so {.stride = {2}} is 2 by 2. NULL, or
 * all zeros: stride 1, no dilation, SAME. */
typedef struct tw_conv2d_options {
    size_t size; /* TW_SIZED(tw_conv2d_options) sets it: see language.h */
    int stride[2];           /* 0: 1 */
    int dilation[2];         /* 0: 1 */
    tw_padding padding;
    int explicit_padding[4]; /* of TW_PADDING_EXPLICIT: top, bottom, left, right */
} tw_conv2d_options;

/* Images [N,H,W,C] and filter [kh,kw,C,K] give [N,h,w,K] (a cross-correlation: the filter is not flipped). With a
 * filter [kh,kw,C/G,K] there are G groups: the i-th K/G filters see the i-th C/G channels alone. Such are computed on
 * CPUs. */
TW_API tw_output tw_conv2d(tw_graph *graph, tw_output images, tw_output filter, const tw_conv2d_options *options);
/* Filter [kh,kw,C,M] gives [N,h,w,C*M]: output channel c * M + m sees input channel c alone. */
TW_API tw_output tw_depthwise_conv2d(tw_graph *graph, tw_output images, tw_output filter,
                                     const tw_conv2d_options *options);
/* value [...,C] + bias [C] */
TW_API tw_output tw_bias_add(tw_graph *graph, tw_output value, tw_output bias);

/* ---- activations, element by element (src/ops/activation.c) ------------------------------------------------ */

TW_API tw_output tw_relu(tw_graph *graph, tw_output x);                     /* max(x, 0) */
TW_API tw_output tw_relu6(tw_graph *graph, tw_output x);                    /* min(max(x, 0), 6) */
TW_API tw_output tw_leaky_relu(tw_graph *graph, tw_output x, float alpha);  /* x, or alpha * x where x < 0 */
TW_API tw_output tw_elu(tw_graph *graph, tw_output x);                      /* x, or exp(x) - 1 where x < 0 */
TW_API tw_output tw_selu(tw_graph *graph, tw_output x);                     /* scaled elu of self-normalizing networks */
TW_API tw_output tw_softplus(tw_graph *graph, tw_output x);                 /* log(1 + exp(x)) */
TW_API tw_output tw_softsign(tw_graph *graph, tw_output x);                 /* x / (1 + |x|) */
TW_API tw_output tw_gelu(tw_graph *graph, tw_output x);                     /* x * Phi(x), by erf: no approximation */

/* ---- pools (src/ops/pool.c) -------------------------------------------------------------------------------- */

/* Pairs as in tw_conv2d_options. */
typedef struct tw_pool_options {
    size_t size; /* TW_SIZED(tw_pool_options) sets it: see language.h */
    int window[2];
    int stride[2];           /* 0: the window's, so that windows do not overlap */
    tw_padding padding;
    int explicit_padding[4]; /* tw_max_pool only; smaller than the window */
} tw_pool_options;

/* The gradient goes to the first of equal maxima in row-major order. */
TW_API tw_output tw_max_pool(tw_graph *graph, tw_output images, const tw_pool_options *options);
/* The mean of the real cells: padding is not counted. */
TW_API tw_output tw_avg_pool(tw_graph *graph, tw_output images, const tw_pool_options *options);

/* ---- normalization (src/ops/normalization.c) --------------------------------------------------------------- */

/* Local response normalization over channels: x / (bias + alpha * sum of x_j^2 over |j - c| <= radius)^beta. The sum is
 * not divided by the size of the window. */
TW_API tw_output tw_lrn(tw_graph *graph, tw_output images, int radius, float bias, float alpha, float beta);

typedef struct tw_batch_norm {
    tw_output y;
    tw_output mean, variance; /* [C]: of the batch (the variance with divisor n - 1), for moving averages */
} tw_batch_norm;

/* (images - mean) / sqrt(variance + epsilon) * scale + offset, channel by channel; scale and offset are float [C].
 * Training: mean and variance are the batch's, those given are not used and may be dead. Else they must be given. */
TW_API tw_batch_norm tw_fused_batch_norm(tw_graph *graph, tw_output images, tw_output scale, tw_output offset,
                                         tw_output mean, tw_output variance, float epsilon, bool training);

/* ---- softmax, losses, accuracy (src/ops/softmax.c) --------------------------------------------------------- */

TW_API tw_output tw_softmax(tw_graph *graph, tw_output logits);     /* along the last dimension */
TW_API tw_output tw_log_softmax(tw_graph *graph, tw_output logits);
/* Losses [N] of logits [N,C] against probabilities [N,C]. */
TW_API tw_output tw_softmax_cross_entropy(tw_graph *graph, tw_output logits, tw_output labels);
/* Losses [N] of logits [N,C] against classes [N] (int32 or int64). A label outside of [0,C) fails the step on a CPU. */
TW_API tw_output tw_sparse_softmax_cross_entropy(tw_graph *graph, tw_output logits, tw_output labels);
/* The same against smoothed labels (Szegedy et al.): 1 - smoothing for the class, and of `smoothing` (0 to 1) an equal
 * part for each, its own among them. */
TW_API tw_output tw_smoothed_softmax_cross_entropy(tw_graph *graph, tw_output logits, tw_output labels,
                                                   float smoothing);
/* Bools [N]: is the target (int32 or int64 [N]) among the k greatest of float predictions [N,C]? Ties count as in. */
TW_API tw_output tw_in_top_k(tw_graph *graph, tw_output predictions, tw_output targets, int k);

/* The part of the examples whose target is among the k greatest, a float scalar. */
TW_API tw_output tw_accuracy(tw_graph *graph, tw_output predictions, tw_output targets, int k);

/* ---- layers: ops with their variables (src/ops/layers.c) --------------------------------------------------- */

/* Each opens the variable scope `name`, so a layer's variables are "name/kernel", "name/bias" and so on; after
 * tw_reuse_variables() the same name finds them again. */

typedef tw_output tw_activation(tw_graph *graph, tw_output x); /* tw_relu, tw_elu, tw_tanh... */

/* NULL, or all zeros: Glorot uniform weights, zero biases, no activation. */
typedef struct tw_layer_options {
    size_t size; /* TW_SIZED(tw_layer_options) sets it: see language.h */
    const tw_initializer *weights;
    const tw_initializer *biases;
    bool no_biases;
    tw_activation *activation;
    tw_dtype compute; /* what the layer computes in and gives, such as TW_BFLOAT16; its variables are float32 then.
                         0: the type of x, for the variables, too */
} tw_layer_options;

/* x [N,inputs] gives [N,units]; "kernel" [inputs,units], "bias" [units]. What x is not known to have must be known:
 * its second dimension. */
TW_API tw_output tw_dense_layer(tw_graph *graph, const char *name, tw_output x, int units,
                                const tw_layer_options *options);
/* "kernel" [size,size,C,filters], "bias" [filters]; window: how the filter moves, NULL as for tw_conv2d. */
TW_API tw_output tw_conv2d_layer(tw_graph *graph, const char *name, tw_output images, int filters, int size,
                                 const tw_conv2d_options *window, const tw_layer_options *options);

/* "gamma", "beta" (trainable), "moving_mean", "moving_variance", all [C]. In training the batch's own moments are used
 * and the updates  moving = moving * momentum + batch * (1 - momentum)  are left in the collection "update_ops" (of
 * this name scope: one tower's can be asked for); otherwise the moving ones are used. */
TW_API tw_output tw_batch_norm_layer(tw_graph *graph, const char *name, tw_output images, float momentum, float epsilon,
                                     bool training);
/* The same without "gamma": what is normalized is shifted, and not scaled. */
TW_API tw_output tw_unscaled_batch_norm_layer(tw_graph *graph, const char *name, tw_output images, float momentum,
                                              float epsilon, bool training);

/* [N,...] as [N, everything else]. */
TW_API tw_output tw_flatten(tw_graph *graph, tw_output x);
/* Filters [size,size,C,2D] for a first layer, D = size * size * C, made of images [N,H,W,C]: the principal directions
 * of their patches, the strongest first, each divided by sqrt(variance + epsilon), then all of them again with the
 * other sign. So what they give is uncorrelated and of about the same size. Variances are around 0, not around the
 * mean. */
TW_API tw_output tw_whitening_filters(tw_graph *graph, tw_output images, int size, float epsilon);
/* Sets elements to 0 with probability rate (0 <= rate < 1) and scales the others by 1 / (1 - rate). seed as in
 * tw_random_uniform. */
TW_API tw_output tw_dropout(tw_graph *graph, tw_output x, float rate, int64_t seed);

#ifdef __cplusplus
}
#endif
#endif
