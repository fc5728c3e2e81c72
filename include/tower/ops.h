/* ops.h - builders for single ops: mathematics, arrays, random numbers, state, control, images, summaries.
 *
 * Each adds one node (TensorFlow's op of that name, in its types and numerics) and returns its output. On a wrong type
 * or shape the graph latches an error that names the node, the op and what it found, and the result is dead
 * ({NULL, 0}); dead outputs may be passed on freely. Shapes use [N,H,W,C] and broadcast as NumPy does. */
#ifndef TOWER_OPS_H
#define TOWER_OPS_H

#include <tower/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- math: element-wise, reductions, matrix products (src/ops/math.c) -------------------------------------- */

/* ---- arrays: constants, shapes, slicing, joining (src/ops/array.c) ----------------------------------------- */

/* ---- random numbers (src/ops/random.c) --------------------------------------------------------------------- */

/* TensorFlow's streams, bit for bit: the same seeds give the same numbers. seed 0: derived from the graph's seed
 * (tw_graph_set_seed) and the number of nodes so far; without a graph seed different in every session. A node goes on
 * in its stream from run to run; checkpoints keep the place. shape is an int32 or int64 vector. */
TW_API tw_output tw_random_uniform(tw_graph *graph, tw_output shape, tw_dtype dtype, int64_t seed); /* [0, 1) */
/* low <= x < high, both int32 or int64 scalars */
TW_API tw_output tw_random_uniform_int(tw_graph *graph, tw_output shape, tw_output low, tw_output high, int64_t seed);
TW_API tw_output tw_random_normal(tw_graph *graph, tw_output shape, tw_dtype dtype, int64_t seed); /* mean 0, sd 1 */
TW_API tw_output tw_truncated_normal(tw_graph *graph, tw_output shape, tw_dtype dtype, int64_t seed); /* |x| < 2 */
TW_API tw_output tw_random_shuffle(tw_graph *graph, tw_output value, int64_t seed); /* permutes along axis 0 */
/* Class numbers (int64 [N, num_samples]) drawn with probabilities softmax(logits), logits [N, classes]. */
TW_API tw_output tw_multinomial(tw_graph *graph, tw_output logits, tw_output num_samples, int64_t seed);

/* ---- state: variables and their updates (src/ops/state.c) -------------------------------------------------- */

/* Each takes the handle of a variable (tw_variable.handle). Those that change it have no output and return the node
 * ({node, -1}); when they run relative to a read is decided by data and control edges alone. Optimizers
 * (tower/train.h) make the tw_apply_ nodes; the hyperparameters are scalars of the variable's type. */
TW_API tw_output tw_read_variable(tw_graph *graph, tw_output handle);
TW_API tw_output tw_assign(tw_graph *graph, tw_output handle, tw_output value);
TW_API tw_output tw_assign_add(tw_graph *graph, tw_output handle, tw_output value);
TW_API tw_output tw_assign_sub(tw_graph *graph, tw_output handle, tw_output value);
TW_API tw_output tw_is_initialized(tw_graph *graph, tw_output handle); /* a bool: has it a value? */
TW_API tw_output tw_variable_shape(tw_graph *graph, tw_output handle); /* int32 [rank] */

/* variable -= rate * gradient */
TW_API tw_output tw_apply_gradient_descent(tw_graph *graph, tw_output handle, tw_output rate, tw_output gradient);
/* accumulator = accumulator * momentum + gradient; variable -= rate * accumulator.
 * nesterov: variable -= gradient * rate + accumulator * momentum * rate */
TW_API tw_output tw_apply_momentum(tw_graph *graph, tw_output handle, tw_output accumulator, tw_output rate,
                                   tw_output gradient, tw_output momentum, bool nesterov);
/* m += (gradient - m) * (1 - beta1); v += (gradient^2 - v) * (1 - beta2);
 * variable -= m * rate * sqrt(1 - beta2_power) / (1 - beta1_power) / (sqrt(v) + epsilon) */
TW_API tw_output tw_apply_adam(tw_graph *graph, tw_output handle, tw_output m, tw_output v, tw_output beta1_power,
                               tw_output beta2_power, tw_output rate, tw_output beta1, tw_output beta2,
                               tw_output epsilon, tw_output gradient);
/* mean_square += (gradient^2 - mean_square) * (1 - decay);
 * momentum_slot = momentum_slot * momentum + rate * gradient / sqrt(mean_square + epsilon);
 * variable -= momentum_slot */
TW_API tw_output tw_apply_rms_prop(tw_graph *graph, tw_output handle, tw_output mean_square, tw_output momentum_slot,
                                   tw_output rate, tw_output decay, tw_output momentum, tw_output epsilon,
                                   tw_output gradient);

/* ---- control (src/ops/control.c) --------------------------------------------------------------------------- */

TW_API tw_output tw_no_op(tw_graph *graph); /* runs after the open control scopes' nodes, and does nothing */
/* One node that runs after all of them; "group_deps" unless tw_name() says otherwise. */
TW_API tw_output tw_group(tw_graph *graph, const tw_output *outputs, int count);
/* Fails the run when the condition (a bool scalar) is false; the message shows `summarize` elements of each of `data`. */
TW_API tw_output tw_assert(tw_graph *graph, tw_output condition, const tw_output *data, int num_data, int summarize);
/* Passes input on, and tells `message` and a few elements of each of `data` to the log (tw_set_log) whenever it runs. */
TW_API tw_output tw_print(tw_graph *graph, tw_output input, const tw_output *data, int num_data, const char *message);

/* ---- images and summaries (src/ops/image.c, src/ops/summary.c) --------------------------------------------- */

/* (x - mean) * factor + mean for every image and channel; factor is a float scalar. */
TW_API tw_output tw_adjust_contrast(tw_graph *graph, tw_output images, tw_output factor);
/* Strings as vectors of dtype; all must have the same length, which must be known when the graph is planned. */
TW_API tw_output tw_decode_raw(tw_graph *graph, tw_output bytes, tw_dtype dtype, bool little_endian);
/* size: int32 [2], the new height and width. */
TW_API tw_output tw_resize_nearest_neighbor(tw_graph *graph, tw_output images, tw_output size, bool align_corners,
                                            bool half_pixel_centers);

/* Summaries are string scalars that hold serialized Summary messages, for event logs (tower/io.h). The full name of
 * the node, "tower_0/loss", is the tag; characters that tags may not have become '_'. Each joins the collection
 * "summaries". */
TW_API tw_output tw_summary_scalar(tw_graph *graph, const char *name, tw_output value);
TW_API tw_output tw_summary_histogram(tw_graph *graph, const char *name, tw_output values);
TW_API tw_output tw_merge_summaries(tw_graph *graph, const tw_output *summaries, int count);
/* All of the collection that lie inside the scope (NULL: all) in one; {NULL, 0} if there are none. */
TW_API tw_output tw_merge_all_summaries(tw_graph *graph, const char *scope);

#ifdef __cplusplus
}
#endif
#endif
