/* models.h - networks that are ready to train, and the trainer that trains them with towers.
 *
 * Everything here is made of the other public headers: read src/models and src/train/trainer.c as examples. */
#ifndef TOWER_MODELS_H
#define TOWER_MODELS_H

#include <tower/data.h>
#include <tower/io.h>
#include <tower/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models -------------------------------------------------------------------------------------------------- */

/* How gradients become updates, with the values that everybody uses: momentum 0.9; Adam's 0.9, 0.999 and 1e-8. */
typedef enum tw_model_optimizer {
    TW_MODEL_OPTIMIZER, /* of a trainer's options: what the model says */
    TW_MODEL_GRADIENT_DESCENT,
    TW_MODEL_MOMENTUM,
    TW_MODEL_ADAM,
} tw_model_optimizer;

/* From this epoch on the learning rate is the first one times `factor`. */
typedef struct tw_rate_step {
    float epoch, factor;
} tw_rate_step;

enum { TW_MOST_RATE_STEPS = 4 };

/* A network and the recipe it is known with. An epoch is once the data set, whatever batch and number of towers. */
typedef struct tw_model {
    const char *name;         /* "cifar10" */
    const char *description;  /* one line */
    const char *dataset;      /* what it is made for */
    int height, width, channels;  /* of the images it takes */
    int classes;              /* logits for each image; a data set may have fewer */
    int layers;               /* of networks that come in several depths; 0: the others */
    int batch;                /* examples a tower */

    tw_augmentation training, evaluation;
    float scale, offset;      /* a pixel becomes x * scale + offset where augmentation does not standardise; 0: 1/255 */

    tw_model_optimizer optimizer; /* 0: gradient descent */
    float learning_rate;      /* the first one. Then either a staircase: */
    float decay_factor, epochs_per_decay;        /* times decay_factor after each so many epochs; 0: no staircase */
    tw_rate_step rate_steps[TW_MOST_RATE_STEPS]; /* or these, epochs rising; factor 0 ends them */
    float weight_decay;       /* this times half the sum of squares of all trainable variables joins the loss; 0: what
                                 the network itself adds to "losses" is all */
    float average_decay;      /* of the moving averages that evaluation uses; 0: none are kept */

    /* Adds the network: images float [N,height,width,channels] to float logits [N,classes]. Its own losses join the
     * collection "losses", updates of batch normalization "update_ops" (when training), activations worth a summary
     * "activations". dtype: what convolutions and products compute in (TW_FLOAT32, TW_BFLOAT16); variables are float32
     * either way. */
    tw_output (*logits)(tw_graph *graph, const struct tw_model *model, tw_output images, tw_dtype dtype, bool training);
} tw_model;

TW_API const tw_model *tw_model_find(const char *name); /* NULL if there is none of that name */
TW_API int tw_model_count(void);
TW_API const tw_model *tw_model_at(int i);

/* The loss of one tower in training: mean cross-entropy and the model's weight decay, added to the collection "losses",
 * plus what else the network put there inside the open name scope. labels are int32 [N]. */
TW_API tw_output tw_model_loss(tw_graph *graph, const tw_model *model, tw_output images, tw_output labels,
                               tw_dtype dtype);

/* ---- training ------------------------------------------------------------------------------------------------- */

typedef struct tw_trainer tw_trainer;

/* Zero values are sensible. */
typedef struct tw_trainer_options {
    const tw_model *model;             /* borrowed */
    const tw_dataset *dataset;         /* borrowed */
    tw_devices *devices;               /* borrowed */
    const char *const *tower_devices;  /* tower i runs on tower_devices[i mod num_tower_devices]; NULL: on all GPUs in
                                          turn, or where there is none on all CPU devices. The names
                                          are borrowed as long as the trainer lives */
    int num_tower_devices;
    const char *variable_device;       /* NULL: "/cpu:0" */
    int towers;                        /* 0: as the checkpoint says, or one for each device */
    int batch;                         /* examples a tower and step; 0: as the checkpoint says, or the model's */
    int64_t seed;                      /* of initial values and data; 0: as the checkpoint says, or 1 */
    tw_dtype dtype;                    /* 0: as the checkpoint says, or TW_FLOAT32 */
    tw_model_optimizer optimizer;      /* 0: as the checkpoint says, or the model's */
    float learning_rate;               /* the first one; 0: the model's */
    int input_threads;                 /* 0: chosen */
    const char *resume_from;           /* a checkpoint, or a directory whose latest complete one is taken; NULL: none.
                                          A directory without any starts anew; one with damaged ones only fails */
    tw_session_options session;        /* placement, rewrites, trace; its `devices` is ignored */
} tw_trainer_options;

/* Builds the graph of all towers, places it, and gives every variable its value. Moving means and variances of batch
 * normalization are those of tower 0, brought up to date with each step. The numbers that training makes depend
 * on model, data, towers, batch, seed and the kind of device, not on how many devices there are: a run may be stopped
 * and resumed with others and goes on to the bit. Settings that differ from the checkpoint's are refused by name.
 * Yours: tw_trainer_destroy(). */
TW_API tw_status tw_trainer_create(const tw_trainer_options *options, tw_trainer **trainer, tw_error *error);
TW_API void tw_trainer_destroy(tw_trainer *trainer); /* NULL is fine */

typedef struct tw_trainer_step_result {
    int64_t step;              /* number of this step, from 0 */
    float loss;                /* mean over towers */
    const float *tower_losses; /* [towers]; borrowed until the next step */
} tw_trainer_step_result;

/* One synchronous step of all towers. A loss that is not a number fails with TW_OUT_OF_RANGE and "Model diverged with
 * loss = NaN", naming step and tower; the variables are then worth nothing. From the second step on nothing is
 * allocated. */
TW_API tw_status tw_trainer_step(tw_trainer *trainer, tw_trainer_step_result *result, tw_error *error);

/* A step that also writes the tutorial's summaries: losses (with what the last tower's is the sum of) and learning rate
 * as scalars; variables, gradients and activations as histograms, with how many activations are zero. Values that are
 * not finite are left out. Trains exactly as tw_trainer_step does. */
TW_API tw_status tw_trainer_step_with_summaries(tw_trainer *trainer, tw_event_writer *events,
                                                tw_trainer_step_result *result, tw_error *error);

/* Saves everything a resumed run needs as DIRECTORY/model.ckpt-STEP, STEP being the number of steps done. */
TW_API tw_status tw_trainer_save(tw_trainer *trainer, const char *directory, int keep, tw_error *error);

/* What a trainer is made of. */
TW_API int64_t tw_trainer_steps_done(const tw_trainer *trainer); /* also before it was resumed */
TW_API int tw_trainer_towers(const tw_trainer *trainer);
TW_API int tw_trainer_batch(const tw_trainer *trainer);          /* examples a tower */
TW_API int64_t tw_trainer_seed(const tw_trainer *trainer);
TW_API int64_t tw_trainer_parameters(const tw_trainer *trainer); /* elements of all trainable variables */
/* What the plan of a step holds and moves. TW_FAILED_PRECONDITION before this trainer's first step. */
TW_API tw_status tw_trainer_plan_info(const tw_trainer *trainer, tw_plan_info *info, tw_error *error);
TW_API const char *tw_trainer_tower_device(const tw_trainer *trainer, int tower); /* in full; borrowed */
TW_API tw_session *tw_trainer_session(tw_trainer *trainer);      /* borrowed */
TW_API tw_graph *tw_trainer_graph(tw_trainer *trainer);          /* borrowed */
TW_API void tw_trainer_input_statistics(const tw_trainer *trainer, tw_pipeline_statistics *statistics);

/* ---- evaluation ------------------------------------------------------------------------------------------------ */

typedef struct tw_evaluation {
    int64_t step;     /* of the checkpoint */
    int64_t examples, correct;
    double precision; /* correct / examples: precision @ 1 */
    bool used_averages;
} tw_evaluation;

/* Restores a checkpoint (or the latest of a directory), with the moving averages in place of the variables unless
 * `raw`, and looks at each example of the data set once. devices NULL: opened for the call. */
TW_API tw_status tw_evaluate(const tw_model *model, const tw_dataset *dataset, const char *checkpoint,
                             tw_devices *devices, bool raw, tw_evaluation *result, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
