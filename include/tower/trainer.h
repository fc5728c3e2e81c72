/* trainer.h - the trainer: trains a model with towers on several devices, in any mode of update, and goes on from
 * checkpoints.
 *
 * Everything here is made of the other public headers: read src/train/trainer*.c as an example of a training loop. What
 * else a checkpoint says of a run stands on docs/checkpoint-keys.md. */
#ifndef TOWER_TRAINER_H
#define TOWER_TRAINER_H

#include <tower/data.h>
#include <tower/io.h>
#include <tower/models.h>
#include <tower/session.h>
#include <tower/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is asked for ---------------------------------------------------------------------------------------- */

typedef struct tw_trainer tw_trainer;

/* Who has the variables, and who updates them. */
typedef enum tw_variable_update {
    TW_UPDATE_DEFAULT,  /* of options: what the checkpoint was made with, or parameter_server */
    TW_UPDATE_PARAMETER_SERVER, /* there is one copy; the mean of the towers' gradients is applied to it once */
    TW_UPDATE_REPLICATED,       /* each tower has its own; all get the mean, and each tower applies it to its own */
    TW_UPDATE_INDEPENDENT,      /* each tower has its own and trains it alone. Towers never meet: this is no way to train a
                            network, but how fast the machine could be if meeting cost nothing */
    TW_UPDATE_DISTRIBUTED_REPLICATED, /* there is one copy, as of a parameter server, and each tower has its own
                            besides: the mean is applied to the one, which then goes to all others */
    TW_UPDATE_LOCAL,            /* local SGD: each group of towers has its own, to which the mean of the group's
                            gradients is applied in every step; every so many steps the groups' copies become their
                            mean. See options.groups and options.meet_every */
} tw_variable_update;

/* On which of the parameter devices each variable of a parameter server lies. */
typedef enum tw_variable_placement {
    TW_PLACE_DEFAULT, /* of options: TW_PLACE_SINGLE on CPUs, TW_PLACE_LEAST_LOADED on GPUs */
    TW_PLACE_SINGLE,       /* all on the first */
    TW_PLACE_ROTATE,       /* in turn, in order of creation */
    TW_PLACE_LEAST_LOADED, /* where the fewest elements are so far, the first among equals (tw_least_loaded) */
    TW_PLACE_LEAST_BYTES,  /* the same, in bytes */
} tw_variable_placement;

typedef enum tw_parameter_device {
    TW_PARAMETERS_DEFAULT,  /* of options: the CPU; with TW_PLACE_ROTATE and the like the kind that towers run on */
    TW_PARAMETERS_ON_CPU, /* the CPU devices */
    TW_PARAMETERS_ON_GPU, /* the GPUs that towers run on */
} tw_parameter_device;

/* When a replica applies the mean. */
typedef enum tw_variable_consistency {
    TW_CONSISTENCY_DEFAULT, /* of options: strong, where the checkpoint does not say */
    TW_CONSISTENCY_STRONG,               /* in the step that made it */
    TW_CONSISTENCY_RELAXED,              /* one step later; in the first step zeros */
} tw_variable_consistency;

/* How variables are kept. Zero values are sensible. What belongs to another mode of update is refused by name. */
typedef struct tw_variable_options {
    tw_variable_update update;
    tw_variable_placement placement;      /* of a parameter server, ... */
    tw_parameter_device parameter_device; /* ... of its variables */
    bool staged;                          /* of a parameter server: towers work with the variables as they were before
                                             the latest update, from a copy of their own that is brought up to date
                                             while they compute */
    tw_variable_consistency consistency;  /* of replicas */
} tw_variable_options;

TW_API const char *tw_variable_update_name(tw_variable_update update); /* "parameter_server" */

/* When gradients become updates. Synchronous: those of all towers are averaged, and a step is one update. Asynchronous:
 * each tower by itself, again and again, takes the variables as they are (pulls), computes gradients of its own batch,
 * and brings them to the variables as they are by then (pushes): an update. Pulls and pushes are whole: none sees half
 * of another. A step is then one update of one tower, "global_step" counts updates, and batch examples are a step.
 * Update u takes the u-th batch of the stream of data, or one near it, so that a number of updates has seen the same
 * examples as synchronous steps with as many batches in all. */
typedef enum tw_updates {
    TW_UPDATES_DEFAULT, /* of a trainer's options: as the checkpoint says, or synchronous */
    TW_UPDATES_SYNCHRONOUS,
    TW_UPDATES_ASYNCHRONOUS,
} tw_updates;

/* In which order towers push. By arrival it depends on the speed of the devices, and with it the numbers that training
 * makes. The others are drawn: the time each batch takes is taken from a model instead of a clock, so that the
 * numbers are those of a run on such devices, on whatever devices it runs. */
typedef enum tw_order {
    TW_ORDER_ARRIVAL,
    TW_ORDER_EQUAL,       /* all take as long: tower after tower, staleness is the number of the other towers */
    TW_ORDER_UNIFORM,     /* between a half and one and a half */
    TW_ORDER_EXPONENTIAL, /* any time, with mean one */
    TW_ORDER_STRAGGLER,   /* all take as long, but tower 0 four times that */
} tw_order;

/* Of asynchronous updates. The staleness of an update is the number of updates that others pushed between its pull and
 * its push. Zero values are sensible. */
typedef struct tw_asynchronous {
    bool bounded;           /* no update is staler than max_staleness. So at most max_staleness + 1 towers compute at */
    int64_t max_staleness;  /* once, and one that is ready waits where its push would make another's too stale. 0: one
                               tower at a time, each from the newest variables */
    tw_order order;
    int64_t order_seed;     /* of a drawn one */
    const char *log;        /* a file for the order, a line for each update, written while they are made; NULL: none */
    const char *replay;     /* a file that was such a log: its order is made again, to the same bits, on any number of
                               devices of the same kind. Towers, batch and seed are the file's unless given */
    void (*delay)(void *user, int tower); /* called by a tower when it has computed, before it may push; NULL: none. For
                                             experiments with slow devices */
    void *delay_user;
} tw_asynchronous;

/* How stale updates were. */
typedef struct tw_staleness {
    int64_t updates, most;
    double mean;
    int64_t histogram[32]; /* updates of staleness 0, 1, ...; the last: of 31 and more */
} tw_staleness;

/* How the learning rate goes on from the first one. ORDER SCHEDULE */
typedef enum tw_schedule {
    TW_SCHEDULE_MODEL, /* as the model says */
    TW_SCHEDULE_CONSTANT,
    TW_SCHEDULE_EXPONENTIAL, /* times `factor` after each `length` */
    TW_SCHEDULE_POLYNOMIAL,  /* to `end` within `length`, with `power` */
    TW_SCHEDULE_COSINE,      /* to `end` within `length` */
    TW_SCHEDULE_PIECEWISE,   /* rates[i] from at[i] on */
} tw_schedule;

/* What lengths are counted in. Only with TW_RATE_STEPS does the number of towers change what a rate is after so many
 * examples. */
typedef enum tw_rate_unit { TW_RATE_EPOCHS, TW_RATE_STEPS, TW_RATE_EXAMPLES } tw_rate_unit;

enum { TW_MOST_RATES = 16 };

/* Where training departs from the recipe of a model. Zeros: nowhere. When a run is resumed the schedule, down to
 * scale_rate, goes on as the checkpoint says unless one is given; the rest is to be given again: a checkpoint knows the
 * rule it was made with, and another is refused. */
typedef struct tw_rule {
    tw_schedule schedule;
    tw_rate_unit unit;
    double length;           /* of exponential, polynomial and cosine */
    float factor, end, power; /* power 0: 1; exponential rates do not fall below `end` */
    int num_rates;           /* of piecewise */
    double at[TW_MOST_RATES];
    float rates[TW_MOST_RATES];
    double warm_up;          /* the rate rises in a line for so long */
    bool scale_rate;         /* linear scaling: the first rate times examples a step / examples a tower of the model */

    bool nesterov;           /* of momentum */
    float beta1, beta2;      /* of Adam; beta1 also RMSProp's momentum (-1: none), beta2 its decay; 0: the usual ones */
    float epsilon;           /* of Adam and RMSProp; 0: the usual one */
    float decoupled_decay;   /* see tw_decouple_weight_decay(); of variables with the model's decay_rank */

    float clip_value, clip_norm; /* of the averaged gradients, see tw_clip_gradients() and ..._by_norm(); 0: no */
    float loss_scale;        /* fixed, or the first of an automatic one; 0: none, or 2^15 if automatic */
    bool automatic_loss_scale;
    int loss_scale_every;    /* good steps until it doubles; 0: 1000 */
} tw_rule;

/* How batches come to the towers. */
typedef enum tw_trainer_input {
    TW_INPUT_PIPELINE, /* from one stream, of which each tower has its own stretch of every step (data.h) */
    TW_INPUT_PREFETCH, /* through one queue of 2 * towers batches, of which each tower takes one a step, in the towers'
                          order: the same batches */
    TW_INPUT_QUEUES,   /* through a queue for each tower, from a stream of its own: an example may come up in several
                          towers at once */
    TW_INPUT_FILES,    /* as the CIFAR-10 tutorial: nodes of the graph read the data set's files, distort and shuffle, in
                          each tower by itself. Threads fill the queues, so no two runs take the same batches; what is in
                          queues is in no checkpoint. Records are texts, which those threads allocate. For data sets in
                          files of CIFAR-10's binary version */
    TW_INPUT_FILES_PREFETCH, /* the same once for all, and a queue of 2 * towers batches, of which each tower takes one a
                                step */
} tw_trainer_input;

/* Where batches are made; the numbers are the same. ORDER INPUT_PLACE */
typedef enum tw_input_place {
    TW_INPUT_AUTO,      /* on the devices, where towers run on real GPUs of which a tenth of the memory holds the data set;
                           else on the host */
    TW_INPUT_ON_HOST,   /* by threads of the host, ahead of time */
    TW_INPUT_ON_DEVICE, /* by the tower's device, as a part of its step: the data set's bytes lie there. For
                           TW_INPUT_PIPELINE and towers that step together */
} tw_input_place;

/* Zero values are sensible. */
typedef struct tw_trainer_options {
    size_t size; /* TW_SIZED(tw_trainer_options) sets it: see language.h */
    const tw_model *model;             /* borrowed */
    const tw_dataset *dataset;         /* borrowed */
    tw_devices *devices;               /* borrowed */
    const char *const *tower_devices;  /* tower i runs on tower_devices[i mod num_tower_devices]; NULL: on all GPUs in
                                          turn, or where there is none on all CPU devices. The names
                                          are borrowed as long as the trainer lives */
    int num_tower_devices;
    tw_variable_options variables;
    int towers;                        /* 0: as the checkpoint says, or one for each device */
    int batch;                         /* examples a tower and step; 0: as the checkpoint says, or the model's */
    int64_t global_batch;              /* or examples a step for all towers; what does not divide goes to the first */
    const int *tower_shares;           /* [towers] how unequal devices share them, such as {3, 1}; NULL: equally */
    int num_tower_shares;              /* must be the number of towers */
    int64_t seed;                      /* of initial values and data; 0: as the checkpoint says, or 1 */
    tw_dtype dtype;                    /* 0: as the checkpoint says, or TW_FLOAT32 */
    tw_model_optimizer optimizer;      /* 0: as the checkpoint says, or the model's */
    float learning_rate;               /* the first one; 0: as the checkpoint says, or the model's */
    tw_rule rule;                      /* where the run departs from the model's recipe */
    tw_average_options average;        /* how the towers' gradients meet. Its all_reduce is the checkpoint's unless it
                                          is given, the rest is to be given again when a run is resumed; its
                                          `devices`, `weights` and `beside_variables` are the trainer's to say */
    tw_updates updates;                /* 0: as the checkpoint says, or synchronous */
    tw_asynchronous asynchronous;      /* for asynchronous updates */
    tw_trainer_input input;            /* to be given again when a run is resumed */
    tw_input_place input_place;
    int input_threads;                 /* of each stream, or of each shuffling queue; 0: chosen, and 16 */
    bool repeat_batch;                 /* each tower takes its first batch in every step, so that input costs nothing:
                                          for measuring */
    bool accuracy;                     /* steps say how many examples the network had right; not with asynchronous
                                          updates */
    const char *resume_from;           /* a checkpoint, or a directory whose latest complete one is taken; NULL: none.
                                          A directory without any starts anew; one with damaged ones only fails */
    bool with_summaries;               /* steps with summaries will run too: they are planned along */
    bool plan_only;                    /* plan and no more: no memory of devices is taken, no step can run; what the
                                          session says of itself (tower/explain.h) is what is wanted */
    tw_session_options session;        /* placement, rewrites, trace; its `devices` is ignored */
    bool accept_other_bits;            /* go on from a checkpoint that was made with another data set or rule, or on
                                          devices of another kind or team: tw_trainer_changes() says what changes */
    bool as_tutorial;                  /* as the CIFAR-10 tutorial: summaries have its tags ("total_loss", not
                                          "train/loss") and images, checkpoints the number of the step done last */
    float rate_factor;      /* the learning rate is so many times what the schedule gives, above 0 and at most 1;
                               0: as the checkpoint says, or 1. tw_trainer_roll_back() lowers it */
    int64_t check_replicas; /* after every so many steps what towers hold copies of is compared: replicas, and the
                               copies of staged updates. Where two differ, which only a fault of the machine can
                               do, the step fails with TW_DATA_LOSS and names the first tensor that differs,
                               the element, the step and the devices. 0: never */
    /* Of TW_UPDATE_LOCAL: tower i of N is of group i * groups / N (rounded down), so that a group is a block of
     * neighbours, and runs on tower_devices[i * num_tower_devices / N]. The numbers depend on towers, groups and
     * meet_every, not on devices. Each group has a copy of the variables and of the optimizer's slots. */
    int groups;         /* from 1 to the number of towers; 0: as the checkpoint says, or one for each tower */
    int64_t meet_every; /* the variables of all groups become their mean, each group counting for its examples, after
                           each step whose number, counted from 1, is a multiple of this; slots stay as they are. 0: as
                           the checkpoint says, or 8 */
} tw_trainer_options;

/* ---- training ------------------------------------------------------------------------------------------------- */

/* Builds the graph of all towers, places it, and gives every variable its value. Moving means and variances of batch
 * normalization are those of tower 0, brought up to date with each step. The numbers that training makes depend
 * on model, data, towers, batch, seed, the mode of update and the kind of device, not on how many devices there are: a
 * run may be stopped and resumed with others and goes on to the bit, unless its graph reads files (TW_INPUT_FILES).
 * Settings that differ from the checkpoint's are refused by name; so are another model, and unless it is accepted
 * another data set or kind of device. All that will run is planned first: a job for which a device has no room fails
 * with TW_RESOURCE_EXHAUSTED before anything runs.
 *
 * The mean is over examples: where towers have unequal shares of them, each gradient counts for its share. Parameter
 * server and strong replicas give the same bits, wherever variables lie. What is saved has one copy of each variable,
 * with the names it would have without towers (those of independent towers are tower 0's), and any mode of update goes
 * on from it. Staged and relaxed updates keep what is under way in "NAME/Staged" and "NAME/Pending", and resume to the
 * bit too; where a checkpoint has none, they begin as a fresh run does. What is saved of several groups
 * (TW_UPDATE_LOCAL) is under each name the mean of the groups' variables (slots and moving averages, too), and beside
 * it "group_k/NAME" for each group, with which the run goes on to the bit. From a checkpoint of another mode all groups
 * begin with the same.
 *
 * Yours: tw_trainer_destroy(). */
TW_API tw_status tw_trainer_create(const tw_trainer_options *options, tw_trainer **trainer, tw_error *error);
TW_API void tw_trainer_destroy(tw_trainer *trainer); /* NULL is fine */

typedef struct tw_trainer_step_result {
    int64_t step;              /* number of this step, from 0 */
    float loss;                /* mean over examples; asynchronous: over those of the tower that made the update */
    const float *tower_losses; /* [towers] the latest of each; borrowed until the next step */
    int tower;                 /* asynchronous: that made the update; else 0 */
    int64_t staleness;         /* of the update; synchronous: 0 */
    float top_1, top_5;        /* parts of the examples whose label was the first, or among the first five, choices of
                                  the network before the update; 0 unless the options ask for accuracy */
} tw_trainer_step_result;

/* One synchronous step of all towers, or one asynchronous update, by whichever tower's turn it is. Between calls towers
 * go on computing, but nothing is pulled or pushed. When one tower fails, all end. A loss that is not a number fails
 * with TW_OUT_OF_RANGE and "Model diverged with loss = NaN", naming step and tower; the variables are then worth
 * nothing. From the second step on (asynchronous: the second of each tower) nothing is allocated. */
TW_API tw_status tw_trainer_step(tw_trainer *trainer, tw_trainer_step_result *result, tw_error *error);

/* So many steps in a row; the result is the last one's. Small steps on GPUs are faster so, since the host is not waited
 * for between them (tw_session_run_steps). A loss that is not a number is noticed at the end. */
TW_API tw_status tw_trainer_run_steps(tw_trainer *trainer, int64_t steps, tw_trainer_step_result *result,
                                      tw_error *error);

/* A step that also writes the tutorial's summaries: losses (with what the last tower's is the sum of) and learning rate
 * as scalars, "train/loss" first, or under the tutorial's tags if the options ask for these; variables, gradients and
 * activations as histograms, with how many activations are zero. Values that are not finite are left out. Trains
 * exactly as tw_trainer_step does. Asynchronous: the loss is the update's, staleness (mean and most since the summaries
 * before) is added, activations and parts of the loss are left out. Of several tasks every one calls it, task 0 with
 * the writer and the others with NULL; pictures are left out. */
TW_API tw_status tw_trainer_step_with_summaries(tw_trainer *trainer, tw_event_writer *events,
                                                tw_trainer_step_result *result, tw_error *error);

/* Saves everything a resumed run needs as DIRECTORY/model.ckpt-STEP, STEP being how many steps are done (with the
 * option as_tutorial one less: the first step has number 0). Variables
 * that are not finite are no state to go on from: nothing is saved then, and it fails with TW_OUT_OF_RANGE. A resumed
 * asynchronous run loses no example, but what was under way is computed anew from newer variables: it goes on
 * well, not to the bit, as if towers had waited for the checkpoint. Its log says so, and can be replayed. */
TW_API tw_status tw_trainer_save(tw_trainer *trainer, const char *directory, int keep, tw_error *error);
TW_API int64_t tw_trainer_checkpoint_step(const tw_trainer *trainer); /* the STEP of a checkpoint saved now */

/* What a trainer is made of. */
TW_API int64_t tw_trainer_steps_done(const tw_trainer *trainer); /* also before it was resumed */
TW_API int tw_trainer_towers(const tw_trainer *trainer);
TW_API int tw_trainer_batch(const tw_trainer *trainer);          /* examples a tower; the largest share */
TW_API int tw_trainer_share(const tw_trainer *trainer, int tower); /* examples of each step that it gets */
TW_API int64_t tw_trainer_examples(const tw_trainer *trainer);   /* of a step: of all towers; asynchronous: of one */
TW_API tw_variable_options tw_trainer_variables(const tw_trainer *trainer); /* with all that was chosen filled in */
/* The mode of update in use, for people: "each tower applies the mean gradient to its own copy"; and whose numbers
 * training gives so (NULL: never mind). Both are valid for ever. */
TW_API const char *tw_trainer_update_text(const tw_trainer *trainer, const char **numbers);
/* How many groups of towers have variables of their own (TW_UPDATE_LOCAL), and after how many steps they meet (NULL:
 * never mind); 0, and 0, in other modes. */
TW_API int tw_trainer_groups(const tw_trainer *trainer, int64_t *meet_every);
TW_API int64_t tw_trainer_seed(const tw_trainer *trainer);
TW_API tw_updates tw_trainer_updates(const tw_trainer *trainer);
/* How many steps there can be in all: as many as a replayed order has, INT64_MAX otherwise. */
TW_API int64_t tw_trainer_last_step(const tw_trainer *trainer);
/* Measured by this trainer, for one tower, or for all together (-1). */
TW_API void tw_trainer_staleness(const tw_trainer *trainer, int tower, tw_staleness *staleness);

/* What decides the bits that the towers' devices make, as a checkpoint remembers it: "cpu with 2 threads", "virtual".
 * Returns text. */
TW_API char *tw_trainer_device_text(const tw_trainer *trainer, char *text, size_t size);

/* What the checkpoint remembers and the options asked to be otherwise: "learning rate 0.05 instead of 0.1; reduction
 * ring instead of tree"; "" if nothing. And the spec in use, NULL if there is none. Borrowed. */
TW_API const char *tw_trainer_changes(const tw_trainer *trainer);
TW_API const char *tw_trainer_all_reduce(const tw_trainer *trainer);

/* The learning rate of the latest step with summaries; a NaN before the first, and of asynchronous updates. */
TW_API float tw_trainer_latest_rate(const tw_trainer *trainer);

/* The rule in use, for people: how gradients become updates ("momentum 0.9 with Nesterov's look ahead, gradients
 * clipped to a norm of 1"), and how the rate goes on, with the steps and epochs at which it changes. Return text. */
TW_API char *tw_trainer_rule_text(const tw_trainer *trainer, char *text, size_t size);
TW_API char *tw_trainer_rate_text(const tw_trainer *trainer, char *text, size_t size);

/* The loss scale that the next step uses, 1 if there is none; how many steps were left out because of overflow since
 * the trainer was made (NULL: never mind); and where the latest was, "" if nowhere. Borrowed until the next step. */
TW_API float tw_trainer_loss_scale(const tw_trainer *trainer, int64_t *skipped, const char **where);

TW_API int64_t tw_trainer_parameters(const tw_trainer *trainer); /* elements of all trainable variables */
/* What the plan of a step holds and moves. */
TW_API tw_status tw_trainer_plan_info(const tw_trainer *trainer, tw_plan_info *info, tw_error *error);
TW_API const char *tw_trainer_tower_device(const tw_trainer *trainer, int tower); /* in full; borrowed */
TW_API tw_session *tw_trainer_session(tw_trainer *trainer);      /* borrowed */
TW_API tw_graph *tw_trainer_graph(tw_trainer *trainer);          /* borrowed */
TW_API tw_input_place tw_trainer_input_place(const tw_trainer *trainer); /* where batches are made, never TW_INPUT_AUTO */
/* Of what the host makes; all 0 where devices make it. Of a graph that reads files the threads alone are known. */
TW_API void tw_trainer_input_statistics(const tw_trainer *trainer, tw_pipeline_statistics *statistics);

/* ---- when training diverges ---------------------------------------------------------------------------------- */

/* Of a run whose step (or saving) failed with TW_OUT_OF_RANGE: trains again with a trainer of these options, which
 * resume from what that run had begun from or had saved before; from the step `good`, before which all was well, on
 * every number is looked at (tw_session_check_numbers), up to and with the step `last`. *found gets TW_OUT_OF_RANGE and
 * the first node that made a NaN or an infinity, with the ranges of what it took; TW_OK if there is none this time,
 * which means that the machine does not compute the same twice. The other trainer is best destroyed before, for its
 * memory. Asynchronous updates, and batches that the graph reads from files, are refused: they do not go the same way
 * again. */
TW_API tw_status tw_trainer_find_divergence(const tw_trainer_options *options, int64_t good, int64_t last,
                                            tw_error *found, tw_error *error);

/* Goes back to the newest whole checkpoint of the directory, or if it has none to the beginning, with `factor` (above
 * 0, at most 1) of the rates that it had (options.rate_factor). The options are those that the trainer was made with.
 * What has the trainer's session or graph has nothing any more: *trainer is destroyed and another one made; on failure
 * it is NULL. The same batches come again (but for TW_INPUT_FILES): pixels are finite, so a batch is never to blame. */
TW_API tw_status tw_trainer_roll_back(tw_trainer **trainer, const tw_trainer_options *options, const char *directory,
                                      float factor, tw_error *error);

/* ---- choosing a mode of update ------------------------------------------------------------------------------- */

enum { TW_MOST_UPDATE_TRIALS = 4 };

typedef struct tw_update_trial {
    tw_variable_options variables;
    int towers;
    double step_seconds;        /* the median step; 0, and so the next: a device has no room for this mode */
    double examples_per_second; /* in such a step */
} tw_update_trial;

/* Trains for so many steps (and two before) in each mode that gives the same numbers: a parameter server on the CPU,
 * one on the GPUs if towers run there, replicas; and with independent towers, the bound that none of them can beat. The
 * options' own `variables` are not looked at; nothing is saved. One tower meets nobody: of these only parameter servers
 * are tried for it. */
TW_API tw_status tw_compare_updates(const tw_trainer_options *options, int steps,
                                    tw_update_trial trials[TW_MOST_UPDATE_TRIALS], int *count, tw_error *error);

/* The number of the trial to go on with: the first that fits, unless a later one has at_least (such as 1.03, for noise)
 * times its speed, and so on. Independent towers are never chosen; -1: nothing fits. */
TW_API int tw_choose_update(const tw_update_trial *trials, int count, double at_least);

#ifdef __cplusplus
}
#endif
#endif
