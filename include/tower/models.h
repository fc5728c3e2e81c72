/* models.h - networks that are ready to train, and their evaluation.
 *
 * Everything here is made of the other public headers: read src/models as examples. Who trains them is in trainer.h. */
#ifndef TOWER_MODELS_H
#define TOWER_MODELS_H

#include <tower/data.h>
#include <tower/io.h>
#include <tower/session.h>
#include <tower/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models -------------------------------------------------------------------------------------------------- */

/* How gradients become updates, with the values that everybody uses: momentum 0.9; Adam's 0.9, 0.999 and 1e-8;
 * RMSProp's 0.9, 0.9 and, as TensorFlow's benchmarks have it, 1; Muon's 0.95. ORDER OPTIMIZER */
typedef enum tw_model_optimizer {
    TW_OPTIMIZER_DEFAULT, /* of a trainer's options: what the model says */
    TW_OPTIMIZER_GRADIENT_DESCENT,
    TW_OPTIMIZER_MOMENTUM,
    TW_OPTIMIZER_ADAM,
    TW_OPTIMIZER_RMS_PROP,
    TW_OPTIMIZER_MUON,
} tw_model_optimizer;

/* From this epoch on the learning rate is the first one times `factor`. */
typedef struct tw_rate_step {
    float epoch, factor;
} tw_rate_step;

enum { TW_MOST_RATE_STEPS = 4 };

/* What a schedule counts as an epoch. Zeros: the data set, once, whatever the batch and the number of towers. */
typedef struct tw_epochs {
    int64_t examples;   /* that an epoch is said to have; 0: as many as the data set */
    bool of_one_tower;  /* batches of one tower alone are counted, so N towers see N times as many examples in each */
    bool whole_batches; /* an epoch ends with the last batch that fits into it */
} tw_epochs;

/* Variables that are trained in another way than the rest, where the optimizer is the model's own. */
typedef struct tw_model_group {
    const char *ending;           /* of their names: "head/kernel"; NULL ends the list */
    tw_model_optimizer optimizer; /* TW_OPTIMIZER_GRADIENT_DESCENT or TW_OPTIMIZER_MOMENTUM */
    float momentum;               /* 0: 0.9 */
    bool nesterov;
    float rate_ratio;             /* their learning rate is so many times the model's, ... */
    float rate_ends;              /* ... and falls in a line to 0 at this epoch; 0: with the model's */
    float weight_decay;           /* of them, in place of the model's */
} tw_model_group;

enum { TW_MOST_MODEL_GROUPS = 4 };

/* By how many views of an image evaluation tells its class: logits are the mean of theirs, in which an image as it is
 * weighs as much as all that are shifted. */
typedef enum tw_views {
    TW_VIEWS_DEFAULT,  /* of an evaluation's options: what the model says; of a model: one */
    TW_VIEWS_ONE,      /* as it is */
    TW_VIEWS_MIRRORED, /* and left to right: two */
    TW_VIEWS_SHIFTED,  /* both of these also shifted by a pixel, down and right or up and left, with the border
                          reflected: six */
} tw_views;

/* A network and the recipe it is known with. */
typedef struct tw_model {
    size_t size; /* TW_SIZED(tw_model) sets it: see language.h */
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
    float momentum;           /* of TW_OPTIMIZER_MOMENTUM; 0: 0.9 */
    float learning_rate;      /* the first one. Then either a staircase: */
    float decay_factor, epochs_per_decay;        /* times decay_factor after each so many epochs; 0: no staircase */
    tw_rate_step rate_steps[TW_MOST_RATE_STEPS]; /* or these, epochs rising; factor 0 ends them */
    tw_epochs epochs;
    float weight_decay;       /* this times half the sum of squares of all trainable variables joins the loss; 0: what
                                 the network itself adds to "losses" is all */
    bool decay_spares_norms;  /* gamma and beta of batch normalization are left out of that */
    int decay_rank;           /* variables of fewer dimensions are; 2: biases and what normalizations have */
    float norm_decay, norm_epsilon; /* of batch normalization; 0: the network has none */
    float average_decay;      /* of the moving averages that evaluation uses; 0: none are kept */
    float loss_average_decay; /* of moving averages of each tower's losses, see tw_average_losses(); 0: none are kept */
    float stddev;             /* of the first weights of the convolutions of cifar10; 0: others have their own */

    /* Adds the network: images float [N,height,width,channels] to float logits [N,classes]. Its own losses join the
     * collection "losses", updates of batch normalization "update_ops" (when training), activations worth a summary
     * "activations". dtype: what convolutions and products compute in (TW_FLOAT32, TW_BFLOAT16); variables are float32
     * either way. */
    tw_output (*logits)(tw_graph *graph, const struct tw_model *model, tw_output images, tw_dtype dtype, bool training);

    /* The variable of that name, which is not trained, begins with a value that depends on the data, such as
     * tw_whitening_filters(): what this makes of the first `data_images` images of the data set, as evaluation sees
     * them. NULL: there is none. */
    const char *data_variable;
    int data_images;
    tw_output (*data_value)(tw_graph *graph, const struct tw_model *model, tw_output images);

    float width_multiplier;   /* of networks that may have so many times their channels; 0: 1 */
    float label_smoothing;    /* of the loss in training, see tw_smoothed_softmax_cross_entropy() */
    float rate_ends;          /* the learning rate falls in a line to 0 at this epoch; 0: it does not */
    bool nesterov;            /* of TW_OPTIMIZER_MOMENTUM, as if the rule said so */
    tw_muon_options muon;     /* of TW_OPTIMIZER_MUON; its momentum is above */
    tw_model_group groups[TW_MOST_MODEL_GROUPS]; /* the first that fits a variable is its group */
    tw_views views;           /* of an image in evaluation */
} tw_model;

TW_API const tw_model *tw_model_find(const char *name); /* NULL if there is none of that name */
TW_API int tw_model_count(void);
TW_API const tw_model *tw_model_at(int i);

/* The loss of one tower in training: mean cross-entropy and the model's weight decay, added to the collection "losses",
 * plus what else the network put there inside the open name scope. labels are int32 [N]. What the tower says of its
 * images joins the collections "logits" (float [N,classes]), "probabilities" (their softmax) and "classes" (int64
 * [N]). */
TW_API tw_output tw_model_loss(tw_graph *graph, const tw_model *model, tw_output images, tw_output labels,
                               tw_dtype dtype);

/* Which of the model's groups a variable of that name is in; -1: in none. */
TW_API int tw_model_group_of(const tw_model *model, const char *variable);

/* After how many steps the model's learning rate changes, with a data set of so many examples, of which a step sees
 * `in_step` and a tower at most `in_tower`: the length of each stair of a staircase, or the steps of `rate_steps`,
 * rising. Returns how many there are; 0: the rate stays. */
TW_API int tw_model_rate_changes(const tw_model *model, int64_t examples, int64_t in_tower, int64_t in_step,
                                 int64_t steps[TW_MOST_RATE_STEPS]);

/* ---- evaluation ------------------------------------------------------------------------------------------------ */

typedef struct tw_evaluation {
    int64_t step;     /* of the checkpoint */
    int64_t examples, correct;
    double precision; /* correct / examples: precision @ 1 */
    bool used_averages;
} tw_evaluation;

/* Zero values are sensible. */
typedef struct tw_evaluation_options {
    size_t size; /* TW_SIZED(tw_evaluation_options) sets it: see language.h */
    bool raw;  /* leave the moving averages be and take the variables themselves */
    int batch; /* examples at a time, any number: none is left out or counted twice; 0: 100 */
    const char *const *tower_devices; /* so many at a time on each of these; how many there are makes no */
    int num_tower_devices;            /* difference to what comes out. NULL: placement chooses one device */
    float *probabilities;             /* [examples, classes of the network], filled in; NULL: never mind */
    /* Told of examples now and then; false: stop, which is TW_CANCELLED. NULL: nobody wants to know. */
    bool (*progress)(void *user, int64_t done, int64_t total);
    void *user;
    tw_views views;                   /* each costs as much as one */
} tw_evaluation_options;

/* Restores a checkpoint (or the latest of a directory), with the moving averages, if it has any, in place of the
 * variables, and looks at each example of the data set once. devices NULL: opened for the call. options NULL: all
 * zero. */
TW_API tw_status tw_evaluate(const tw_model *model, const tw_dataset *dataset, const char *checkpoint,
                             tw_devices *devices, const tw_evaluation_options *options, tw_evaluation *result,
                             tw_error *error);

/* All that one look at each example says. */
typedef struct tw_scores {
    int64_t step;                         /* of the checkpoint */
    int64_t examples, correct, correct_5; /* the label was the first choice, or among the first five */
    double loss;                          /* mean cross-entropy, without weight decay */
    int classes;                          /* of the network: what a data set lacks stays 0 */
    int64_t *confusion;                   /* [classes, classes]: of label i, how many were taken for k */
    bool used_averages;
    int views;                            /* of each example, which were looked at */
} tw_scores;

/* As tw_evaluate(). *scores is yours: tw_scores_destroy(). */
TW_API tw_status tw_score(const tw_model *model, const tw_dataset *dataset, const char *checkpoint, tw_devices *devices,
                          const tw_evaluation_options *options, tw_scores **scores, tw_error *error);
TW_API void tw_scores_destroy(tw_scores *scores); /* NULL is fine */

/* ---- prediction ------------------------------------------------------------------------------------------------ */

/* The network with the values of a checkpoint (or the latest of a directory; `raw` as above) as constants: a GraphDef
 * for TensorFlow and whatever else reads these. It takes "images" [?, height, width, channels], as the model's
 * evaluation makes them of pixels, and gives "logits" and "probabilities" [?, classes]. *bytes is yours: tw_free(). */
TW_API tw_status tw_freeze(const tw_model *model, const char *checkpoint, bool raw, void **bytes, size_t *size,
                           tw_error *error);

#ifdef __cplusplus
}
#endif

#include <tower/trainer.h> /* which was a part of this header once */

#endif
