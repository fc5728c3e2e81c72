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

/* Adds a scalar to the collection "losses". Returns it. */
TW_API tw_output tw_add_loss(tw_graph *graph, tw_output loss);

/* The sum of the losses whose names lie inside `scope` ("tower_0"; NULL: inside the open name scope): the loss of one
 * tower. A node named "total_loss". It is an error if there are none. */
TW_API tw_output tw_total_loss(tw_graph *graph, const char *scope);

/* Writes `name` without "tower_0/", "tower_12/" and so on to text, cut to size; returns text. So the summaries of all
 * towers have one name. */
TW_API char *tw_strip_tower_name(const char *name, char *text, size_t size);

/* ---- gradients --------------------------------------------------------------------------------------------- */

typedef struct tw_optimizer tw_optimizer;

/* A gradient for each of some variables. */
typedef struct tw_grads {
    int count;
    tw_variable **variables;
    tw_output *gradients; /* {NULL, 0}: none, no path leads from the variable to the loss */
} tw_grads;

/* Gradients of a loss with respect to all trainable variables that the graph has by now, in order of their creation,
 * under the name scope "gradients". */
TW_API tw_grads *tw_compute_gradients(tw_optimizer *optimizer, tw_output loss);
/* The same for the given variables. */
TW_API tw_grads *tw_compute_gradients_of(tw_optimizer *optimizer, tw_output loss, tw_variable *const *variables,
                                         int count);

typedef struct tw_average_options {
    bool missing_as_zero; /* a tower without a gradient that others have counts as zeros; otherwise it is an error */
} tw_average_options;

/* The mean of the towers' gradients, variable by variable. All towers must speak of the same variables. The nodes are
 * TensorFlow's (ExpandDims, ConcatV2, Mean over the new axis); a session computes them as a sum in a fixed order of
 * towers, so that the bits depend on the number of towers and not on devices. A variable that has a gradient in no
 * tower has none in the result, which the log says; one that lacks it in some towers only is an error that names
 * variable and tower, unless the options say otherwise. With one tower its gradients are returned as they are. options
 * NULL: all zero. */
TW_API tw_grads *tw_average_gradients(tw_graph *graph, tw_grads *const *towers, int num_towers,
                                      const tw_average_options *options);

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
    const char *prefix;            /* NULL: "model.ckpt" */
    int keep;                      /* how many checkpoints of this prefix stay; 0: all */
    const tw_named_tensor *extras; /* what else is to be remembered, for example settings; read them again with */
    int num_extras;                /* tw_checkpoint_read() */
} tw_save_options;

/* Saves all variables of the session's graph under their names, and where its random streams stand, as
 * DIRECTORY/PREFIX-STEP, with the care that tw_checkpoint_save() promises. Streams are called "tower/streams/NODE";
 * those of initial values, which are drawn once, are left out. Every variable must have a value. options NULL: all
 * zero. */
TW_API tw_status tw_save(tw_session *session, const char *directory, int64_t step, const tw_save_options *options,
                         tw_error *error);

/* Zero values are sensible. */
typedef struct tw_restore_options {
    bool averages;      /* for evaluation: a variable whose moving average the checkpoint has gets that */
    bool allow_missing; /* variables that the checkpoint lacks keep what they have; otherwise it is an error */
    /* The name in the checkpoint of the graph's variable `name`, borrowed until the next call; NULL: the same. */
    const char *(*rename)(void *user, const char *name);
    void *user;
} tw_restore_options;

/* Gives the variables of the session's graph, and its random streams, what the checkpoint holds. What else it holds is
 * passed over, so a graph for evaluation needs no slots. Nothing is changed unless all can be: a variable that is
 * missing, or of another type or shape, is an error that names it and the checkpoint. *num_averages (may be NULL) says
 * how many variables got their average. options NULL: all zero. */
TW_API tw_status tw_restore(tw_session *session, tw_checkpoint *checkpoint, const tw_restore_options *options,
                            int *num_averages, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
