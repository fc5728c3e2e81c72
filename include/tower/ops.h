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

/* Two inputs of one type, which broadcast. tw_div is the true quotient of floats; tw_floor_div and tw_floor_mod round
 * towards minus infinity, and dividing integers by zero is an error when the node runs. */
TW_API tw_output tw_add(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_sub(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_mul(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_div(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_div_no_nan(tw_graph *graph, tw_output x, tw_output y); /* 0 where y is 0 */
TW_API tw_output tw_floor_div(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_floor_mod(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_maximum(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_minimum(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_squared_difference(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_pow(tw_graph *graph, tw_output x, tw_output y);

/* Comparisons: bool outputs, inputs of one type, which broadcast. */
TW_API tw_output tw_equal(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_not_equal(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_less(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_less_equal(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_greater(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_greater_equal(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_logical_and(tw_graph *graph, tw_output x, tw_output y); /* of bools */
TW_API tw_output tw_logical_or(tw_graph *graph, tw_output x, tw_output y);
TW_API tw_output tw_logical_not(tw_graph *graph, tw_output x);

/* One input, the output has its shape. tw_round rounds halves to even. */
TW_API tw_output tw_neg(tw_graph *graph, tw_output x);
TW_API tw_output tw_abs(tw_graph *graph, tw_output x); /* of complex numbers their magnitude, a real number */
TW_API tw_output tw_sign(tw_graph *graph, tw_output x);
TW_API tw_output tw_square(tw_graph *graph, tw_output x);
TW_API tw_output tw_sqrt(tw_graph *graph, tw_output x);
TW_API tw_output tw_rsqrt(tw_graph *graph, tw_output x);
TW_API tw_output tw_reciprocal(tw_graph *graph, tw_output x);
TW_API tw_output tw_exp(tw_graph *graph, tw_output x);
TW_API tw_output tw_expm1(tw_graph *graph, tw_output x);
TW_API tw_output tw_log(tw_graph *graph, tw_output x);
TW_API tw_output tw_log1p(tw_graph *graph, tw_output x);
TW_API tw_output tw_sin(tw_graph *graph, tw_output x);
TW_API tw_output tw_cos(tw_graph *graph, tw_output x);
TW_API tw_output tw_tan(tw_graph *graph, tw_output x);
TW_API tw_output tw_tanh(tw_graph *graph, tw_output x);
TW_API tw_output tw_sigmoid(tw_graph *graph, tw_output x);
TW_API tw_output tw_erf(tw_graph *graph, tw_output x);
TW_API tw_output tw_floor(tw_graph *graph, tw_output x);
TW_API tw_output tw_ceil(tw_graph *graph, tw_output x);
TW_API tw_output tw_round(tw_graph *graph, tw_output x);
TW_API tw_output tw_is_nan(tw_graph *graph, tw_output x); /* bool outputs */
TW_API tw_output tw_is_inf(tw_graph *graph, tw_output x);
TW_API tw_output tw_is_finite(tw_graph *graph, tw_output x);

/* Converts; returns x itself if it has that type. Floats become integers by cutting off the fraction; what lies beyond
 * the integers becomes the nearest one, NaN becomes 0. Of complex numbers real types get the real part. */
TW_API tw_output tw_cast(tw_graph *graph, tw_output x, tw_dtype dtype);
TW_API tw_output tw_clip(tw_graph *graph, tw_output x, tw_output low, tw_output high); /* limits: scalars or as x */
TW_API tw_output tw_add_n(tw_graph *graph, const tw_output *inputs, int num_inputs);   /* all of one shape */

/* Reductions over axes; negative ones count from the last. NULL means all axes, TW_AXES(0, 1) gives some. The reduced
 * axes go, or stay as 1 with keep_dims. */
#define TW_AXES(...) TW_LIST(int, __VA_ARGS__)
TW_API tw_output tw_reduce_sum(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims);
TW_API tw_output tw_reduce_mean(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims);
TW_API tw_output tw_reduce_prod(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims);
TW_API tw_output tw_reduce_max(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims);
TW_API tw_output tw_reduce_min(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims);
TW_API tw_output tw_reduce_all(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims); /* bool */
TW_API tw_output tw_reduce_any(tw_graph *graph, tw_output x, const int *axes, int num_axes, bool keep_dims);
TW_API tw_output tw_arg_max(tw_graph *graph, tw_output x, int axis); /* int64: place of the first greatest */
TW_API tw_output tw_arg_min(tw_graph *graph, tw_output x, int axis);
TW_API tw_output tw_l2_loss(tw_graph *graph, tw_output x);           /* scalar: half the sum of squares */

/* Running sums and products along an axis. exclusive: element i leaves itself out; reverse: from the end. */
TW_API tw_output tw_cumsum(tw_graph *graph, tw_output x, int axis, bool exclusive, bool reverse);
TW_API tw_output tw_cumprod(tw_graph *graph, tw_output x, int axis, bool exclusive, bool reverse);

/* [m,k] x [k,n] -> [m,n]; a transposed factor is given as [k,m], [n,k]. The batched one broadcasts leading axes, and of
 * complex matrices takes the adjoint where it transposes: each element's conjugate, too. */
TW_API tw_output tw_matmul(tw_graph *graph, tw_output a, tw_output b);
TW_API tw_output tw_matmul_transposed(tw_graph *graph, tw_output a, tw_output b, bool transpose_a, bool transpose_b);
TW_API tw_output tw_batch_matmul(tw_graph *graph, tw_output x, tw_output y, bool transpose_x, bool transpose_y);

/* ---- complex numbers (src/ops/complex.c) -------------------------------------------------------------------- */

/* Most of the arithmetic above takes complex64 and complex128 as it is. These go between them and float and double. */
TW_API tw_output tw_complex(tw_graph *graph, tw_output real, tw_output imaginary); /* which broadcast */
TW_API tw_output tw_real(tw_graph *graph, tw_output x);
TW_API tw_output tw_imaginary(tw_graph *graph, tw_output x);
TW_API tw_output tw_angle(tw_graph *graph, tw_output x); /* from -pi to pi */
TW_API tw_output tw_conj(tw_graph *graph, tw_output x);  /* the conjugate; real numbers as they are */

/* ---- Fourier transforms (src/ops/fourier.c) ----------------------------------------------------------------- */

/* Over the last `axes` axes, 1 to 3, of complex numbers: each of the n numbers along an axis becomes the sum over k of
 * x_k e^(-2 pi i j k / n), for j from 0 to n - 1. The inverse has e^(+2 pi i j k / n) and divides by n. Any n; those
 * whose prime factors are small are fastest. */
TW_API tw_output tw_fft(tw_graph *graph, tw_output x, int axes);
TW_API tw_output tw_inverse_fft(tw_graph *graph, tw_output x, int axes);

/* The same of real numbers, float or double, whose transform is complex64 or complex128 and has along the last axis
 * only the n / 2 + 1 numbers that say the rest; and back. `lengths` are n along each of the axes of the real numbers,
 * to which what is transformed is cut or filled up with zeros; NULL: as long as they are (n = 2 (m - 1) of m complex
 * ones). */
TW_API tw_output tw_real_fft(tw_graph *graph, tw_output x, int axes, const int64_t *lengths);
TW_API tw_output tw_inverse_real_fft(tw_graph *graph, tw_output x, int axes, const int64_t *lengths);

/* ---- arrays: constants, shapes, slicing, joining (src/ops: constant.c, array.c, slice.c, gather.c) --------------- */

TW_API tw_output tw_constant(tw_graph *graph, tw_tensor *tensor);        /* retains tensor: do not write to it again */
TW_API tw_output tw_scalar(tw_graph *graph, float value);                /* float constants */
TW_API tw_output tw_scalar_of(tw_graph *graph, tw_dtype dtype, double value); /* any type but string */
TW_API tw_output tw_constant_floats(tw_graph *graph, tw_shape shape, const float *values);
TW_API tw_output tw_constant_int32s(tw_graph *graph, tw_shape shape, const int32_t *values);
TW_API tw_output tw_zeros(tw_graph *graph, tw_dtype dtype, tw_shape shape);
TW_API tw_output tw_ones(tw_graph *graph, tw_dtype dtype, tw_shape shape);
TW_API tw_output tw_placeholder(tw_graph *graph, tw_dtype dtype, tw_shape shape); /* must be fed */
TW_API tw_output tw_placeholder_with_default(tw_graph *graph, tw_output value, tw_shape shape);

TW_API tw_output tw_identity(tw_graph *graph, tw_output x);               /* x, on this node's device */
TW_API tw_output tw_stop_gradient(tw_graph *graph, tw_output x);         /* no gradient flows through */
TW_API tw_output tw_zeros_like(tw_graph *graph, tw_output x);
TW_API tw_output tw_ones_like(tw_graph *graph, tw_output x);

TW_API tw_output tw_shape_of(tw_graph *graph, tw_output x);              /* int32: its dimensions, as a vector, */
TW_API tw_output tw_size_of(tw_graph *graph, tw_output x);               /* the number of its elements, */
TW_API tw_output tw_rank_of(tw_graph *graph, tw_output x);               /* of its dimensions */

/* The same elements under another shape. At most one dimension of `shape` may be -1: it follows from the others. */
TW_API tw_output tw_reshape(tw_graph *graph, tw_output x, tw_shape shape);
TW_API tw_output tw_reshape_to(tw_graph *graph, tw_output x, tw_output shape);     /* shape: a vector of integers */
TW_API tw_output tw_expand_dims(tw_graph *graph, tw_output x, int axis);           /* a new axis of size 1 before axis */
TW_API tw_output tw_squeeze(tw_graph *graph, tw_output x, const int *axes, int num_axes); /* NULL: all of size 1 */

TW_API tw_output tw_fill(tw_graph *graph, tw_output dims, tw_output value);        /* value: a scalar */
TW_API tw_output tw_range(tw_graph *graph, tw_output start, tw_output limit, tw_output delta); /* limit left out */
TW_API tw_output tw_lin_space(tw_graph *graph, tw_output start, tw_output stop, int num);      /* stop included */
TW_API tw_output tw_one_hot(tw_graph *graph, tw_output indices, int depth);        /* float, along a new last axis */
TW_API tw_output tw_broadcast_to(tw_graph *graph, tw_output x, tw_shape shape);

/* The part of x that begins at `begin` and is `size` long (-1: to the end), one number an axis. */
TW_API tw_output tw_slice(tw_graph *graph, tw_output x, tw_shape begin, tw_shape size);

/* x[begin:end:strides] as in Python, one number an axis; bit i of a mask speaks of number i. */
typedef struct tw_strided_slice_options {
    tw_shape begin, end, strides; /* strides of rank 0: all 1 */
    int begin_mask, end_mask;     /* from the first, to the last element */
    int ellipsis_mask;            /* "...": all axes that are not spoken of; one bit at most */
    int new_axis_mask;            /* a new axis of size 1 */
    int shrink_axis_mask;         /* the single element at begin; the axis goes */
} tw_strided_slice_options;
TW_API tw_output tw_strided_slice(tw_graph *graph, tw_output x, tw_strided_slice_options options);

/* Joins along an axis, which must be there, and takes apart again; other axes must agree. */
TW_API tw_output tw_concat(tw_graph *graph, const tw_output *values, int num_values, int axis);
TW_API void tw_split(tw_graph *graph, tw_output x, int axis, tw_output *parts, int num_parts); /* equal parts */
TW_API void tw_split_sizes(tw_graph *graph, tw_output x, int axis, const int64_t *sizes, tw_output *parts,
                           int num_parts);
TW_API tw_output tw_pack(tw_graph *graph, const tw_output *values, int num_values, int axis); /* along a new axis */
TW_API void tw_unpack(tw_graph *graph, tw_output x, int axis, tw_output *values, int num_values);

TW_API tw_output tw_tile(tw_graph *graph, tw_output x, tw_shape multiples);        /* repeated along each axis */
TW_API tw_output tw_transpose(tw_graph *graph, tw_output x, tw_shape permutation); /* out axis i is axis perm[i] */
TW_API tw_output tw_pad(tw_graph *graph, tw_output x, tw_shape before, tw_shape after); /* with zeros */
TW_API tw_output tw_mirror_pad(tw_graph *graph, tw_output x, tw_shape before, tw_shape after, bool repeat_edge);
TW_API tw_output tw_reverse(tw_graph *graph, tw_output x, const int *axes, int num_axes);

/* Slices of params along an axis, at places that may repeat. */
TW_API tw_output tw_gather(tw_graph *graph, tw_output params, tw_output indices, int axis);
TW_API tw_output tw_gather_nd(tw_graph *graph, tw_output params, tw_output indices); /* last axis: a place in params */
TW_API tw_output tw_scatter_nd(tw_graph *graph, tw_output indices, tw_output updates, tw_output shape); /* adds up */
TW_API tw_output tw_unsorted_segment_sum(tw_graph *graph, tw_output data, tw_output ids, int num_segments);

/* A sum of rows, as the last of these makes it and as gradients of tw_gather() are: values[i] is a part of row ids[i]
 * of `count`, and rows that nobody names are 0. Who knows it can touch those rows alone. */
typedef struct tw_rows {
    tw_output values, ids;
    int count;
} tw_rows;
TW_API bool tw_find_rows(tw_output sum, tw_rows *rows); /* false: it is not known to be one */

TW_API tw_output tw_select(tw_graph *graph, tw_output condition, tw_output yes, tw_output no); /* all broadcast */
TW_API tw_output tw_diag(tw_graph *graph, tw_output diagonal);
TW_API tw_output tw_diag_part(tw_graph *graph, tw_output x);
/* The k greatest along the last axis, greatest first, and their places (int32); equal ones by place. */
TW_API void tw_top_k(tw_graph *graph, tw_output x, int k, tw_output *values, tw_output *indices);

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
/* The value of a scalar int32 or int64 variable, which goes up by one; at the limit TW_OUT_OF_RANGE. */
TW_API tw_output tw_count_up_to(tw_graph *graph, tw_output handle, int64_t limit);
TW_API tw_output tw_is_initialized(tw_graph *graph, tw_output handle); /* a bool: has it a value? */
TW_API tw_output tw_variable_shape(tw_graph *graph, tw_output handle); /* int32 [rank] */

/* variable[indices[i]] -= updates[i], one after the other; float and double on all devices, other numbers on CPUs. */
TW_API tw_output tw_scatter_sub(tw_graph *graph, tw_output handle, tw_output indices, tw_output updates);

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
/* Fails the run when the condition (a bool scalar) is false; the message shows `summarize` elements of each of
 * `data`. */
TW_API tw_output tw_assert(tw_graph *graph, tw_output condition, const tw_output *data, int num_data, int summarize);
/* Passes input on, and tells `message` and a few elements of each of `data` to the log (tw_set_log) whenever it
 * runs. */
TW_API tw_output tw_print(tw_graph *graph, tw_output input, const tw_output *data, int num_data, const char *message);

/* ---- conditions (src/ops/branch.c) ---------------------------------------------------------------------------- */

/* `then` where the predicate, a bool, holds, else `otherwise`; they have one type and one shape. What is computed for
 * one of them alone stands in a block, and is not run where the other is taken; gradients flow back through the one
 * that was.
 *
 *     tw_output small, large;
 *     TW_WHEN(g, is_small)   small = tw_square(g, x);
 *     TW_UNLESS(g, is_small) large = tw_sub(g, tw_abs(g, x), tw_scalar(g, 0.5f));
 *     tw_output y = tw_cond(g, is_small, small, large);
 *
 * What such a block changes (tw_assign() and its like) is changed only if it is taken: name it among what is run. A
 * value of a block that was not taken cannot be fetched. */
TW_API tw_output tw_cond(tw_graph *graph, tw_output predicate, tw_output then, tw_output otherwise);

/* ---- loops (src/graph/loops.c) -------------------------------------------------------------------------------- */

/* The block of a TW_LOOP is a round. `values` are what the loop begins with; in the block they are what they are in
 * this round, and what they are set to there is what the next round has; behind the block they are what the last round
 * left. What stands before tw_while() is computed in each round, to find out whether it is one; what stands behind it
 * only if it is. Both are computed again in every round.
 *
 *     tw_output v[] = {x, tw_scalar_of(g, TW_INT32, 0)};
 *     TW_LOOP(g, v, 2) {
 *         tw_while(g, tw_less(g, v[1], n));
 *         v[0] = tw_tanh(g, tw_matmul(g, v[0], w->value));
 *         v[1] = tw_add(g, v[1], tw_scalar_of(g, TW_INT32, 1));
 *     }
 *     tw_output y = v[0];
 *
 * What is taken from outside (n, w) is the same in all rounds. A value keeps its type, and its shape unless it begins
 * with one that is not known (tw_placeholder_with_default()). Loops stand in loops and in branches, and branches in
 * loops; device and name scopes reach in, control scopes from outside hold back what the loop begins with. A variable
 * is read and changed (tw_variable_read(), tw_assign()) in each round where that stands behind tw_while(), and what
 * changes it must be what something else comes after (TW_CONTROL), for nothing inside can be fetched; variable->value
 * was read before the loop. tw_name() before the block names it, "while" otherwise.
 *
 * tw_gradients() goes back through loops, of its values and of what they take from outside, through as many rounds as
 * there were; each round keeps what that needs. Gradients of these gradients are not to be had. */
TW_API void tw_while(tw_graph *graph, tw_output predicate);
/* The number of the innermost loop's round, an int32 from 0. So a limit is
 * tw_while(g, tw_less(g, tw_round_number(g), most)). */
TW_API tw_output tw_round_number(tw_graph *graph);

/* ---- scans (src/ops/scan.c) ------------------------------------------------------------------------------------- */

/* A loop over the slices of tensors along their first axis, built by one call of a function, which builds the nodes of
 * a step: elements[i] is the step's slice of what is scanned; state[i] is what the step before left, and is set to what
 * this one leaves; results[i] is set to what this step gives. Gradients flow back to all that it takes, from outside
 * too.
 *
 *     static void step(void *user, tw_graph *g, const tw_output *x, tw_output *h, tw_output *y)
 *     {
 *         const layer *l = user;
 *         y[0] = h[0] = tw_tanh(g, tw_add(g, tw_matmul(g, x[0], l->w), tw_matmul(g, h[0], l->u)));
 *     }
 *
 *     tw_scan(g, step, &layer, (tw_scan_values){.elements = &x, .num_elements = 1, .state = &h, .num_state = 1,
 *                                               .results = &y, .num_results = 1, .steps = longest}); */
typedef void tw_scan_function(void *user, tw_graph *graph, const tw_output *elements, tw_output *state,
                              tw_output *results);
typedef struct tw_scan_values {
    const tw_output *elements; /* each [n, ...], with one n */
    int num_elements;
    tw_output *state; /* what the first step begins with; is set to what the last one leaves */
    int num_state;
    tw_output *results; /* is set to what the steps give, [n, ...] */
    int num_results;
    tw_output steps; /* int32: how many there are, at most n; {NULL, 0}: n. Rows of results behind them are 0 */
} tw_scan_values;
TW_API void tw_scan(tw_graph *graph, tw_scan_function *function, void *user, tw_scan_values values);

/* The function of each slice by itself: a scan without a state. */
typedef void tw_map_function(void *user, tw_graph *graph, const tw_output *elements, tw_output *results);
TW_API void tw_map(tw_graph *graph, tw_map_function *function, void *user, const tw_output *elements, int num_elements,
                   tw_output *results, int num_results);

/* ---- collectives (src/ops/collective.c) ----------------------------------------------------------------------- */

/* The sum of the inputs of all nodes of that shared name, of which there are num_devices, each on a real GPU of its
 * own: TensorFlow's NcclAllReduce, in no fixed order of addition. All of them run in a step, or none. tw_all_reduce()
 * makes them. */
TW_API tw_output tw_nccl_all_reduce(tw_graph *graph, tw_output input, int num_devices, const char *shared_name);

/* ---- input (src/ops/input.c) ------------------------------------------------------------------------------- */

/* A batch from outside the graph, as `count` outputs: the session's source of that name (tw_session_set_source) fills
 * them anew in every step, for this tower. Runs on CPUs only. */
TW_API void tw_input(tw_graph *graph, const char *source, int tower, const tw_dtype *types, const tw_shape *shapes,
                     int count, tw_output *outputs);

/* ---- images and summaries (src/ops/image.c, src/ops/summary.c) --------------------------------------------- */

/* (x - mean) * factor + mean for every image and channel; factor is a float scalar. */
/* What the CIFAR-10 tutorial does to one image of floats [H,W,C], drawn anew in every run; in TensorFlow's numbers. The
 * crop works on any shape. Brightness moves by a number in [-max_delta, max_delta), contrast is multiplied by one in
 * [lower, upper); a standardized image has mean 0 and deviation 1, or less if all its pixels are nearly alike. */
TW_API tw_output tw_random_crop(tw_graph *graph, tw_output x, tw_shape size, int64_t seed);
TW_API tw_output tw_random_flip_left_right(tw_graph *graph, tw_output image, int64_t seed);
TW_API tw_output tw_random_brightness(tw_graph *graph, tw_output image, float max_delta, int64_t seed);
TW_API tw_output tw_random_contrast(tw_graph *graph, tw_output image, float lower, float upper, int64_t seed);
TW_API tw_output tw_image_standardization(tw_graph *graph, tw_output image);
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
/* The first `most` of the images [N,H,W,C] (C: 1, 3 or 4) as PNG, tagged NAME/image/0 and so on; or NAME/image if most
 * is 1. Floats from 0 to the largest fill the range of bytes; where some are negative, 0 lies in its middle. */
TW_API tw_output tw_summary_image(tw_graph *graph, const char *name, tw_output images, int most);
TW_API tw_output tw_merge_summaries(tw_graph *graph, const tw_output *summaries, int count);
/* All of the collection that lie inside the scope (NULL: all) in one; {NULL, 0} if there are none. */
TW_API tw_output tw_merge_all_summaries(tw_graph *graph, const char *scope);

#ifdef __cplusplus
}
#endif
#endif
