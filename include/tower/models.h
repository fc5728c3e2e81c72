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

/* A network and the recipe it is known with. */
typedef struct tw_model {
    const char *name;         /* "cifar10" */
    const char *description;  /* one line */
    const char *dataset;      /* what it is made for */
    int height, width, channels, classes;  /* of the images it takes */
    int batch;                /* examples a tower */
    tw_augmentation training, evaluation;
    float learning_rate;      /* of gradient descent; times decay_factor every epochs_per_decay, in a staircase */
    float decay_factor, epochs_per_decay;
    float average_decay;      /* of the moving averages that evaluation uses */

    /* Adds the network: images float [N,height,width,channels] to float logits [N,classes]. Weight decay is added to
     * the collection "losses"; activations worth a summary to "activations". dtype: what convolutions and products
     * compute in (TW_FLOAT32, TW_BFLOAT16); variables are float32 either way. */
    tw_output (*logits)(tw_graph *graph, tw_output images, tw_dtype dtype);
} tw_model;

TW_API const tw_model *tw_model_find(const char *name); /* NULL if there is none of that name */
TW_API int tw_model_count(void);
TW_API const tw_model *tw_model_at(int i);

/* The loss of one tower: mean cross-entropy, added to the collection "losses", plus what else the network put there
 * inside the open name scope. labels are int32 [N]. */
TW_API tw_output tw_model_loss(tw_graph *graph, const tw_model *model, tw_output images, tw_output labels,
                               tw_dtype dtype);

/* ---- training ------------------------------------------------------------------------------------------------- */

typedef struct tw_trainer tw_trainer;

/* Zero values are sensible. */
typedef struct tw_trainer_options {
    const tw_model *model;
    const tw_dataset *dataset;         /* borrowed */
    tw_devices *devices;               /* borrowed */
    const char *const *tower_devices;  /* tower i runs on tower_devices[i mod num_tower_devices]; NULL: on all GPUs in
                                          turn, or where there is none on all CPU devices */
    int num_tower_devices;
    const char *variable_device;       /* NULL: "/cpu:0" */
    int towers;                        /* 0: as the checkpoint says, or one for each device */
    int batch;                         /* examples a tower and step; 0: as the checkpoint says, or the model's */
    int64_t seed;                      /* of initial values and data; 0: as the checkpoint says, or 1 */
    tw_dtype dtype;                    /* 0: TW_FLOAT32 */
    float learning_rate;               /* 0: the model's */
    int input_threads;                 /* 0: chosen */
    const char *resume_from;           /* a checkpoint, or a directory whose latest complete one is taken; NULL: none.
                                          A directory without one starts anew */
    tw_session_options session;        /* placement, rewrites, trace; its `devices` is ignored */
} tw_trainer_options;

/* Builds the graph of all towers, places it, and gives every variable its value. The numbers that training makes depend
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

/* A step that also writes the tutorial's summaries: losses and learning rate as scalars; variables, gradients and
 * activations as histograms, with how many activations are zero. Trains exactly as tw_trainer_step does. */
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
