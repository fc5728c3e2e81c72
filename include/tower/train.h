/* train.h - training: losses, gradients of towers and their average, optimizers, schedules, moving averages, and saving
 * and restoring what was trained.
 *
 * One step of several towers, as ordinary nodes:
 *
 *     tw_optimizer *sgd = tw_gradient_descent(g, tw_exponential_decay(g, 0.1f, tw_global_step(g), 136718, 0.1f, true));
 *     for (int i = 0; i < towers; i++)
 *         TW_DEVICE(g, "/gpu:%d", i)
 *         TW_NAME_SCOPE(g, "tower_%d", i) {
 *             grads[i] = tw_compute_gradients(sgd, model(g, images[i], labels[i]));
 *             tw_reuse_variables(g);
 *         }
 *     tw_output apply = tw_apply_gradients(sgd, tw_average_gradients(g, grads, towers, NULL), tw_global_step(g));
 *     tw_averages *averages = tw_moving_averages(g, 0.9999f, tw_global_step(g), apply);
 *     ... run averages->update, once a step ...
 *
 * What is added to a graph belongs to it and goes with it. Errors latch on the graph: results are then NULL or
 * {NULL, 0} and may be passed on freely. */
#ifndef TOWER_TRAIN_H
#define TOWER_TRAIN_H

#include <tower/graph.h>
#include <tower/io.h>
#include <tower/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ------------------------------------------------------------------------------------------------ */

/* Adds a scalar to the collection "losses". Returns it. Anything that is known to be no scalar is an error that names
 * it. */
TW_API tw_output tw_add_loss(tw_graph *graph, tw_output loss);

/* The sum of the losses whose names lie inside `scope` ("tower_0"; NULL: inside the open name scope): the loss of one
 * tower. A node named "total_loss". It is an error if there are none. */
TW_API tw_output tw_total_loss(tw_graph *graph, const char *scope);

/* Keeps moving averages of the losses inside the open name scope, and of `total`, their sum:
 *
 *     average -= (1 - decay) * (average - loss), from 0
 *
 * as variables named after the losses, "tower_0/cross_entropy/avg", so towers have each their own; the new values join
 * the collection "loss_averages". Returns `total`, to be had once all averages are up to date. */
TW_API tw_output tw_average_losses(tw_graph *graph, float decay, tw_output total);

/* Writes `name` without "tower_0/", "tower_12/" and so on to text, cut to size; returns text. So the summaries of all
 * towers have one name. */
TW_API char *tw_strip_tower_name(const char *name, char *text, size_t size);

/* ---- gradients --------------------------------------------------------------------------------------------- */

typedef struct tw_optimizer tw_optimizer;
typedef struct tw_loss_scale tw_loss_scale;

/* A gradient for each of some variables. */
typedef struct tw_grads {
    int count;
    tw_variable **variables;
    tw_output *gradients; /* {NULL, 0}: none, no path leads from the variable to the loss */
} tw_grads;

/* tw_graph_at() of the optimizer's graph. Gives the optimizer back. */
TW_API tw_optimizer *tw_optimizer_at(tw_optimizer *optimizer, const char *file, int line);

/* Gradients of a loss, a scalar, with respect to all trainable variables that the graph has by now, in order of their
 * creation, under the name scope "gradients". */
TW_API tw_grads *tw_compute_gradients(tw_optimizer *optimizer, tw_output loss);
/* The same for the given variables. */
TW_API tw_grads *tw_compute_gradients_of(tw_optimizer *optimizer, tw_output loss, tw_variable *const *variables,
                                         int count);

/* How gradients of towers meet. Zero values are sensible. */
typedef struct tw_average_options {
    size_t size; /* TW_SIZED(tw_average_options) sets it: see language.h */
    bool missing_as_zero;       /* a tower without a gradient that others have counts as zeros; otherwise it is an error */
    bool sparse_as_dense;       /* gradients of few rows (see below) are averaged whole */
    const float *weights;       /* [num_towers] what each tower counts for, usually its examples; NULL: all the same */
    const char *all_reduce;     /* a spec, see tw_all_reduce(); NULL: "tree" */
    const char *const *devices; /* [num_towers] where each tower's part of the work runs; NULL: beside its gradients */
    bool beside_variables;      /* each mean lies on its variable's device; otherwise where the open scopes say */
    int packs;                  /* all gradients of a type are joined and cut into so many equal packs; 0: they are not */
    int64_t small_bytes;        /* gradients of at most so many bytes are joined (0: none are), ... */
    int small_group;            /* ... at most so many at a time; 0: 10 */
    int64_t bucket_bytes;       /* gradients are joined in the order in which they are computed, up to so many bytes
                                   each time, so that the first meet while the last are computed; 0: they are not. A
                                   trainer takes 0 for what it finds best, and less for none */
    tw_dtype wire;              /* TW_FLOAT16 or TW_BFLOAT16: what float gradients become between two towers; sums stay
                                   float. 0: they cross as they are */
} tw_average_options;

/* The mean of the towers' gradients, variable by variable, inside the open device scopes. All towers must speak of the
 * same variables. A variable that has a gradient in no tower has none in the result, which the log says; one that lacks
 * it in some towers only is an error that names variable and tower, unless the options say otherwise. With one tower
 * its gradients are returned as they are. options NULL: all zero.
 *
 * Without a spec, packs and wire the nodes are TensorFlow's (ExpandDims, ConcatV2, Mean over the new axis), and a
 * session computes them as the tree of tw_all_reduce(). Whatever the options, the order of every sum follows from them
 * and from the number of towers, so that the bits do not depend on devices.
 *
 * Weights: the sum of weight * gradient over the sum of the weights. Weights that are all the same give the bits of no
 * weights; a tower of weight 0 has no part in the mean.
 *
 * A gradient is sparse if it touches few rows: that of a variable which the towers read by one tw_gather() along axis 0
 * is UnsortedSegmentSum(values, row numbers). Such gradients are averaged by joining the towers' values and row
 * numbers, in order of towers, which is again such a node; so only the rows that were touched cross between devices.
 * The log names them. */
TW_API tw_grads *tw_average_gradients(tw_graph *graph, tw_grads *const *towers, int num_towers,
                                      const tw_average_options *options);

/* The same mean for towers that have variables of their own: averages[t] (of [num_towers]) speaks of tower t's
 * variables and lies on its device. All of them have the same bits. On failure all are NULL.
 *
 * The spec says how, in the words of TensorFlow's benchmarks: ALGORITHM, ALGORITHM#SHARDS, ALGORITHM/ALGORITHM, or
 * SPEC:LIMIT:SPEC and so on, where gradients of at most LIMIT elements (suffixes k or K, M, G, T, of 1024) go by the
 * spec before it. "pscpu:2k:pscpu#2:64k:xring" is an example. Shards are cut from a gradient and reduced side by side,
 * each beginning at another tower. Behind '/' stands what happens between processes; there is one.
 *
 *     tree    pairs, pairs of pairs, ... down to tower 0, and back the same way
 *     ring    each tower owns a slice; sums travel once round the ring to the owner, means once more to all ("xring")
 *     rechd   halves exchanged with towers at distance n/2, n/4, ... and back; what n has beyond a power of two joins a
 *             neighbour first
 *     pscpu   all to /cpu:0, added in order of towers, and back
 *     psgpu   the same on the towers' own devices, in turn
 *     hierarchical   each half of the towers to one of its own, then the two sums to one of these, and back
 *             the same way; on the towers in turn
 *     nccl    by NVIDIA's library, where each tower has a whole card of its own (tw_devices_check_nccl()), and for
 *             tw_all_reduce() alone: its order of addition is its own, and another for another number of devices
 *     collective   is understood and refused: there is no such executor here
 *
 * Gradients of fewer elements than there are towers go by the tree where slices would be empty. */
TW_API void tw_all_reduce(tw_graph *graph, tw_grads *const *towers, int num_towers, const tw_average_options *options,
                          tw_grads **averages);

/* Whether a spec can be understood and done; the message names the place in it. */
TW_API tw_status tw_all_reduce_check(const char *spec, tw_error *error);

/* ---- optimizers -------------------------------------------------------------------------------------------- */

/* The rate is a float scalar: a constant (tw_scalar(g, 0.1f)), a schedule, a placeholder. Slots are variables named
 * after theirs ("conv1/weights/Momentum") and lie where that lies; like all variables they are saved and restored. */
TW_API tw_optimizer *tw_gradient_descent(tw_graph *graph, tw_output rate);

/* accumulator = momentum * accumulator + gradient; variable -= rate * accumulator. */
TW_API tw_optimizer *tw_momentum(tw_graph *graph, tw_output rate, float momentum, bool nesterov);

/* Kingma and Ba's; the usual values are 0.9, 0.999, 1e-8. The variables "beta1_power" and "beta2_power" count steps. */
TW_API tw_optimizer *tw_adam(tw_graph *graph, tw_output rate, float beta1, float beta2, float epsilon);

/* The usual values are 0.9, 0 and 1e-10. */
TW_API tw_optimizer *tw_rms_prop(tw_graph *graph, tw_output rate, float decay, float momentum, float epsilon);

/* Zero values are those that its authors advise. */
typedef struct tw_muon_options {
    size_t size;         /* TW_SIZED(tw_muon_options) sets it: see language.h */
    float momentum;      /* 0: 0.95 */
    bool plain_momentum; /* the accumulator itself instead of Nesterov's gradient + momentum * accumulator */
    int iterations;      /* of Newton and Schulz's; 0: 5 */
    bool normalize; /* before an update the variable is scaled so that its norm is the root of its last dimension: on
                       average a filter's is 1 */
} tw_muon_options;

/* Muon (Jordan et al. 2024) updates a matrix by its momentum made orthogonal, so that all directions of it move alike:
 *
 *     accumulator = momentum * accumulator + gradient; variable -= rate * orthogonal(gradient + momentum * accumulator)
 *
 * Filters [kh,kw,C,K] are matrices [kh * kw * C, K]. orthogonal(X) divides X by its norm, then makes it so many times
 *
 *     a X + (b A + c A A) X,  A = X X^T, on the shorter side of X;  a = 3.4445, b = -4.775, c = 2.0315
 *
 * which brings all singular values near 1. It is computed in the variable's type, where the original rounds to
 * bfloat16. The rate is not scaled by the matrix's shape. Variables of fewer than two dimensions are updated by
 * momentum at the same rate, unless tw_optimize_apart() says otherwise. options NULL: all zero. */
TW_API tw_optimizer *tw_muon(tw_graph *graph, tw_output rate, const tw_muon_options *options);

/* From now on `other`, of the same graph, updates the variables whose names end with `ending` ("head/kernel"), at a
 * rate of its own; of several calls for a variable the first counts. What holds for a step as a whole stays with this
 * optimizer: the guard, the count of steps, the names of nodes. */
TW_API void tw_optimize_apart(tw_optimizer *optimizer, const char *ending, tw_optimizer *other);

/* From now on every update of a variable of at least `least_rank` dimensions (2: biases and normalizations are spared;
 * 0: of all) begins with variable -= rate * decay * variable. Such decay is no part of the gradient: with
 * tw_adam() this is AdamW. */
TW_API void tw_decouple_weight_decay(tw_optimizer *optimizer, float decay, int least_rank);

/* From now on updates in a step whose gradients overflowed leave variables, slots and powers as they are, to the bit.
 * The scale is an automatic one; tw_unscale_gradients() is called before tw_apply_gradients(). RMSProp with momentum
 * cannot, which is an error; without, its slot for that, which nobody reads, is all that changes. */
TW_API void tw_guard_optimizer(tw_optimizer *optimizer, const tw_loss_scale *scale);

/* One update of every variable that has a gradient, then global_step += 1 if that is given (NULL: no counter). Returns
 * the node that stands for the whole step ({node, -1}), named after the optimizer ("GradientDescent"). Variables
 * without a gradient stay as they are, which the log says; it is an error if no variable has one. */
TW_API tw_output tw_apply_gradients(tw_optimizer *optimizer, const tw_grads *grads, tw_variable *global_step);

/* ---- schedules --------------------------------------------------------------------------------------------- */

/* rate * decay_rate^(step / decay_steps), the quotient rounded down if `staircase`. */
TW_API tw_output tw_exponential_decay(tw_graph *graph, float rate, const tw_variable *step, double decay_steps,
                                      float decay_rate, bool staircase);

/* values[0] while step <= boundaries[0], then values[1] while step <= boundaries[1], ...; values has count + 1. */
TW_API tw_output tw_piecewise_constant(tw_graph *graph, const tw_variable *step, const int64_t *boundaries, int count,
                                       const float *values);

/* (rate - end) * (1 - min(step, decay_steps) / decay_steps)^power + end. */
TW_API tw_output tw_polynomial_decay(tw_graph *graph, float rate, const tw_variable *step, double decay_steps, float end,
                                     float power);

/* Half a cosine from rate to end: (rate - end) * (1 + cos(pi * min(step, decay_steps) / decay_steps)) / 2 + end. */
TW_API tw_output tw_cosine_decay(tw_graph *graph, float rate, const tw_variable *step, double decay_steps, float end);

/* rate * min(1, (step + 1) / steps): rises in a line to what another schedule says, from the first step on. */
TW_API tw_output tw_warm_up(tw_graph *graph, tw_output rate, const tw_variable *step, double steps);

/* ---- clipping ---------------------------------------------------------------------------------------------- */

/* Gradients with every element inside [-most, most]. Like the next, for the towers' average: clipping each tower's own
 * would depend on how a batch is divided. */
TW_API tw_grads *tw_clip_gradients(tw_graph *graph, const tw_grads *grads, float most);

/* Gradients times min(1, most / norm), norm being the root of the sum of the squares of all their elements, which
 * *norm (may be NULL) becomes. A norm that is not finite makes them all NaN, so that it cannot be overlooked. */
TW_API tw_grads *tw_clip_gradients_by_norm(tw_graph *graph, const tw_grads *grads, float most, tw_output *norm);

/* ---- loss scaling ------------------------------------------------------------------------------------------ */

/* Small gradients vanish in float16; a loss that is multiplied by some number has gradients as many times as large. */
struct tw_loss_scale {
    tw_output scale;           /* float scalar */
    bool automatic;
    int every;                 /* good steps after which an automatic one doubles */
    tw_variable *value, *good; /* of an automatic one: "loss_scale", "loss_scale/good_steps", saved like all variables */
    int count;                 /* what tw_unscale_gradients() looked at: [count] gradients, */
    const char **names;        /* "the gradient of 'conv1/weights' in tower 1" and */
    tw_output finite;          /* bool [count]: whether all of its elements are finite */
    tw_output good_step;       /* bool scalar: they all are */
    tw_output update;          /* {node, -1}: brings an automatic scale up to date */
};

/* Always the same scale. */
TW_API tw_loss_scale *tw_fixed_loss_scale(tw_graph *graph, float scale);

/* A scale that doubles after `every` steps without overflow (up to 2^24) and halves (down to 1) in a step with one. */
TW_API tw_loss_scale *tw_automatic_loss_scale(tw_graph *graph, float first, int every);

/* The average of the towers' gradients (which are of loss * scale), divided by the scale. With an automatic scale, all
 * become 0 in a step in which any gradient of a tower, or their average, is not finite; give the scale to
 * tw_guard_optimizer() too, and such a step changes nothing. Where each tower has an average of its own, call it for
 * each: the first call looks for overflow. */
TW_API tw_grads *tw_unscale_gradients(tw_graph *graph, tw_loss_scale *scale, tw_grads *const *towers, int num_towers,
                                      const tw_grads *average);

/* ---- moving averages --------------------------------------------------------------------------------------- */

typedef struct tw_averages {
    int count;
    tw_variable **variables; /* the trainable variables of the graph */
    tw_variable **averages;  /* "conv1/weights/ExponentialMovingAverage" */
    tw_output update;        /* {node, -1}: brings all averages up to date */
} tw_averages;

/* average -= (1 - decay) * (average - variable), for all trainable variables that the graph has by now. An average
 * starts at its variable's initial value. With num_updates (usually the global step) the decay is
 * min(decay, (1 + num_updates) / (10 + num_updates)), so that early averages follow fast. The update reads variables
 * and num_updates after the node `after` has run: the training step ({NULL, 0}: whenever it is run). */
TW_API tw_averages *tw_moving_averages(tw_graph *graph, float decay, const tw_variable *num_updates, tw_output after);

/* ---- saving and restoring ------------------------------------------------------------------------------------ */

/* Zero values are sensible. */
typedef struct tw_save_options {
    size_t size; /* TW_SIZED(tw_save_options) sets it: see language.h */
    const char *prefix;            /* NULL: "model.ckpt" */
    int keep;                      /* how many checkpoints of this prefix stay; 0: all */
    const tw_named_tensor *extras; /* what else is to be remembered, for example settings; read them again with */
    int num_extras;                /* tw_checkpoint_read() */
    bool meta_graph;               /* writes the graph beside it, too, as PREFIX-STEP.meta (tw_meta_graph_export); that this
                                      failed is said in the log alone */
    bool finite;                   /* a variable that is not finite is refused (TW_OUT_OF_RANGE), nothing is saved */
    /* The name in the checkpoint of the graph's variable `name`, borrowed until the next call; NULL: the same; "": it
     * is left out. */
    const char *(*rename)(void *user, const char *name);
    void *user;
} tw_save_options;

/* Saves all variables of the session's graph, except copies (tw_copy_variable), under their names, and where its random
 * streams stand, as DIRECTORY/PREFIX-STEP, with the care that tw_checkpoint_save() promises. Streams are called
 * "tower/streams/NODE"; those of initial values, which are drawn once, are left out. Every variable must have a value.
 * options NULL: all zero. */
TW_API tw_status tw_save(tw_session *session, const char *directory, int64_t step, const tw_save_options *options,
                         tw_error *error);

/* Zero values are sensible. */
typedef struct tw_restore_options {
    size_t size; /* TW_SIZED(tw_restore_options) sets it: see language.h */
    bool averages;      /* for evaluation: a variable whose moving average the checkpoint has gets that */
    bool allow_missing; /* variables that the checkpoint lacks keep what they have; otherwise it is an error */
    /* The name in the checkpoint of the graph's variable `name`, borrowed until the next call; NULL: the same; "": it
     * is not asked for, the variable keeps what it has. */
    const char *(*rename)(void *user, const char *name);
    void *user;
} tw_restore_options;

/* Gives the variables of the session's graph, and its random streams, what the checkpoint holds, under their names or,
 * in a checkpoint of objects, by tw_checkpoint_key(); copies of variables (tw_copy_variable) get what their originals
 * get. What else it holds is passed over, so a graph for evaluation needs no slots. Nothing is changed unless all can
 * be: a variable that is missing, or of another type or shape, is an error that names it and the checkpoint.
 * *num_averages (may be NULL) says how many variables got their average. options NULL: all zero. */
TW_API tw_status tw_restore(tw_session *session, tw_checkpoint *checkpoint, const tw_restore_options *options,
                            int *num_averages, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
