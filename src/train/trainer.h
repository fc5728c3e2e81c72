/* trainer.h - what a trainer is, for the files that make one. Each part of it belongs to the files that stand with it:
 *
 *     trainer.c             beginning, stepping, ending
 *     recipe                what is asked for
 *       trainer_settings.c    what a checkpoint and a run must agree on
 *       trainer_recall.c      what a checkpoint remembers and a run may change
 *       trainer_rule.c        the rule in words, and whether a checkpoint was made with another
 *       trainer_names.h       what numbers are called in checkpoints
 *     towers
 *       trainer_shares.c      how many of a step's examples each tower gets
 *     groups
 *       trainer_groups.c      towers that share a copy of the variables, and how the groups' copies meet
 *     variables
 *       trainer_variables.c   where they lie, and which of them a tower works with
 *       trainer_step_device.c        where the step is counted and the rate computed
 *     trainer_modes.h       the modes of update, a row each
 *     input
 *       trainer_input.c       the towers' batches
 *       trainer_data.c        the same made on the towers' devices
 *       trainer_files.c       batches that the graph reads from files
 *     update
 *       trainer_update.c      the model's recipe and the rule: rate, optimizer, what runs with an update
 *       trainer_apply.c       how the towers' gradients meet and reach the variables
 *     scaling
 *       trainer_scale.c       what a step does about its loss scale
 *     fetched
 *       trainer_graph.c       the graph of a step, and what is fetched of it
 *       trainer_plan.c        all that will run, planned; whether there is room for it
 *       trainer_summaries.c   a step that writes summaries
 *     watch
 *       trainer_watch.c       replicas compared, where a NaN came from, going back
 *     trainer_checkpoint.c  from which checkpoint a trainer begins, and how it saves one
 *     trainer_origin.c      on what a checkpoint was made, and what it means to go on with something else
 *     asynchronous.h        towers that update each by itself
 *
 * All of it is made of public functions: of the inside it sees base alone, which knows no tensor. */
#ifndef TWI_TRAINER_H
#define TWI_TRAINER_H

#include <tower/nn.h>
#include <tower/queue.h>
#include <tower/trainer.h>

typedef struct twi_asynchronous twi_asynchronous;
typedef struct twi_mode twi_mode;

/* ---- the parts ------------------------------------------------------------------------------------------------- */

/* What must agree between a checkpoint and the run that resumes it. ORDER SETTINGS: trainer_settings.c */
enum { TWI_TOWERS, TWI_BATCH, TWI_SEED, TWI_DTYPE, TWI_OPTIMIZER, TWI_UPDATE, TWI_SYNC, TWI_NUM_SETTINGS };

/* What is asked for, and where nothing is what the checkpoint says. */
typedef struct twi_recipe {
    const tw_model *model;
    tw_rule rule;
    float first_rate;           /* that schedules begin with */
    float rate_factor;          /* of all that the schedule gives; 1 unless a run went back */
    tw_average_options average; /* how gradients meet, as asked */
    char saved_all_reduce[256]; /* the checkpoint's; "": none */
    char changes[700];          /* what is otherwise than in the checkpoint; "": nothing */
    int64_t setting[TWI_NUM_SETTINGS];
    int64_t data_examples; /* of the data set */
} twi_recipe;

typedef struct twi_towers {
    int count;
    const char **devices; /* [count], as asked */
    int *shares;          /* [count] of a step's examples; the largest is setting[TWI_BATCH] */
    float *weights;       /* [count] the same */
    int64_t examples;     /* of a step */
} twi_towers;

typedef struct twi_groups {
    int count;           /* 0: the mode of update knows none */
    int64_t meet_every;  /* steps */
    tw_output meeting;   /* the node that stands for it; {NULL, 0}: there is nobody to meet */
} twi_groups;

typedef struct twi_variables {
    tw_variable_options options; /* with what was chosen filled in */
    const twi_mode *mode;        /* of update, as they ask */
    const char **devices;        /* [num_devices] of parameters, where there is one copy */
    int num_devices, next;
    int64_t *loads; /* [num_devices], for: */
    tw_least_loaded spread;
    int building; /* the tower under construction */
} twi_variables;

typedef struct twi_step_device {
    int number;  /* of the device where the step is counted and the rate computed; -1: the CPU */
    int refused; /* nodes meant for there that it has no kernel for */
} twi_step_device;

enum { TWI_MOST_FILES = 5 };

typedef struct twi_input {
    tw_trainer_input kind;
    tw_output *images, *labels; /* [towers] */
    bool *elsewhere;            /* [towers] another task makes the tower's batches */
    bool on_device;             /* batches are made where towers are; no pipelines then */
    tw_variable (*data)[2];     /* [towers] images and labels of the data set on the tower's device, with their reads */
    bool repeats;               /* the first batch in every step */
    bool ahead;                 /* batches of the next step are made beside each step, and wait in variables */
    tw_output *made;            /* [2 * towers] puts the images or labels of the next step there, ... */
    tw_output *made_first;      /* ... those of this step, */
    tw_output first;            /* all of them; {NULL, 0}: there is no such thing */
    bool waits;                 /* what is there is the next step's */
    tw_output position;         /* number of the step whose batch is taken */
    tw_output next_position;    /* and of the one after it, whose batch is made ahead */
    tw_pipeline **pipelines;    /* [num_pipelines] one, or with TW_INPUT_QUEUES one for each tower */
    int num_pipelines;
    tw_pipeline *pipeline;            /* the first of them */
    tw_output summary;                /* of the last tower's images and of queues; {NULL, 0}: none */
    tw_output queue;                  /* that the tower under construction takes its batch from; {NULL, 0}: none */
    tw_coordinator *coordinator;      /* of the threads that fill queues; NULL: none */
    const char *files[TWI_MOST_FILES]; /* [num_files] that nodes read; the graph's */
    int num_files, threads;            /* the latter of each shuffling queue, ... */
    int64_t kept;                      /* ... and the examples that stay in it, to draw from */
    tw_pipeline_batch_view *repeated; /* [towers] the batches that are taken in every step; NULL: they go on */
} twi_input;

typedef struct twi_update {
    tw_output rate;
    tw_grads **gradients; /* [towers] of each tower's loss, by what it works with */
    tw_grads *average;    /* of tower 0's variables */
} twi_update;

typedef struct twi_scaling {
    tw_loss_scale *scale; /* NULL: none */
    int64_t skipped;      /* steps left out because gradients overflowed */
    char where[800];      /* the latest did */
} twi_scaling;

typedef struct twi_fetched {
    tw_output *outputs; /* losses of all towers, the training step, with accuracy that of each tower, with an
                           automatic loss scale what it found and what it is; then what summaries want */
    bool accuracy;
    int num_always;      /* of those, how many a step without summaries has */
    int num_losses;      /* the first of the parts: the others are averages */
    int num_parts;       /* losses that the last tower's is the sum of, and averages; behind the rate */
    int count;           /* with those of summaries; the last is the last tower's images */
    tw_tensor **tensors; /* [count] what they gave, reused from step to step */
    float *losses;       /* [towers] */
    tw_plan_info plan;   /* of a step */
} twi_fetched;

typedef struct twi_watch {
    int64_t replicas_every; /* steps until they are compared again; 0: never */
} twi_watch;

struct tw_trainer {
    tw_model model; /* the options', whole: what an older header lacks is 0 */
    const tw_dataset *dataset;
    tw_devices *devices;
    tw_graph *graph;
    tw_session *session;
    int64_t step;
    twi_recipe recipe;
    twi_towers towers;
    twi_groups groups;
    twi_variables variables;
    twi_step_device step_device;
    twi_input input;
    twi_update update;
    twi_scaling scaling;
    twi_fetched fetched;
    twi_watch watch;
    bool as_tutorial;
    twi_asynchronous *asynchronous; /* NULL: updates are synchronous */
};

/* ---- the recipe ------------------------------------------------------------------------------------------------ */

/* Each setting becomes what was asked for, else what the checkpoint (may be NULL) says, else its default; the number of
 * towers stays 0 until devices are known. */
tw_status twi_recipe_find_settings(twi_recipe *recipe, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                   tw_error *error);
/* Whether the checkpoint has setting number i. */
bool twi_recipe_is_set(const tw_checkpoint *checkpoint, int i);
/* Refuses a checkpoint that was made with another rule, unless that is accepted. */
tw_status twi_recipe_check_rule(twi_recipe *recipe, tw_checkpoint *checkpoint, bool accept, tw_error *error);
enum { TWI_RULE_SIZE = 1024 };
#define TWI_RULE_NAME "tower/rule" /* what this is saved as: */
/* The i-th group of the model's variables that is trained apart; NULL: there are no more. */
const tw_model_group *twi_recipe_group(const twi_recipe *recipe, int i);
char *twi_recipe_rule_text(const twi_recipe *recipe, char *text, size_t size);
/* The schedule of a rule in its own units: "exponential over 350 epochs (factor 0.1, ...)". */
char *twi_schedule_text(const tw_rule *rule, char *text, size_t size);
/* How many steps so many of the rule's units are, at least 1. */
double twi_trainer_steps(const tw_trainer *t, double length);
/* Gives the model's variable that depends on the data its first value. */
tw_status twi_trainer_begin_with_data(tw_trainer *t, const tw_dataset *dataset, tw_error *error);
/* The step at which an epoch, which need not be a whole number, ends. */
double twi_trainer_epoch(const tw_trainer *t, double epoch);

/* The settings as tensors for a checkpoint. Release them all, also after an error. */
tw_status twi_recipe_settings_to_save(const twi_recipe *recipe, tw_named_tensor tensors[TWI_NUM_SETTINGS],
                                      tw_error *error);

/* The first rate, the schedule and the reduction become what was asked for, else what the checkpoint (may be NULL)
 * says, else the model's. Release the tensors to save, also after an error. */
enum { TWI_NUM_RECALLED = 3 };
#define TWI_RATE_FACTOR_NAME "tower/rate_factor" /* is saved where it is not 1 */
tw_status twi_recipe_recall(twi_recipe *recipe, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                            tw_error *error);
tw_status twi_recipe_recalled_to_save(const twi_recipe *recipe, tw_named_tensor tensors[TWI_NUM_RECALLED],
                                      tw_error *error);

/* Adds "WHAT NOW instead of BEFORE" to the changes that a run goes on with. */
void twi_recipe_note(twi_recipe *recipe, const char *what, const char *now, const char *before);

/* ---- checkpoints ---- */

/* Refuses a checkpoint of another model; then, once it is known where towers run, one of other data or devices, unless
 * that is accepted. The checkpoint may be NULL. Release the tensors to save, also after an error. */
tw_status twi_origin_check_model(const tw_trainer *t, tw_checkpoint *checkpoint, tw_error *error);
tw_status twi_origin_check(tw_trainer *t, tw_checkpoint *checkpoint, const tw_dataset *dataset, bool accept,
                           tw_error *error);
/* Among several tasks: each has read its own, and example k must be the same whoever reads it. */
tw_status twi_data_agree(tw_devices *devices, const tw_dataset *dataset, const char *what, tw_error *error);
enum { TWI_NUM_ORIGINS = 8 };
tw_status twi_origin_to_save(const tw_trainer *t, tw_named_tensor tensors[TWI_NUM_ORIGINS], tw_error *error);

/* The checkpoint to resume from; NULL if there is none. */
tw_status twi_trainer_open_checkpoint(const char *path, tw_checkpoint **checkpoint, tw_error *error);
tw_status twi_trainer_restore(tw_trainer *t, tw_checkpoint *checkpoint, tw_error *error);

/* ---- what each tower gets, and works with ---------------------------------------------------------------------- */

/* Says how many towers there are and where each goes. */
tw_status twi_trainer_choose_devices(tw_trainer *t, const tw_trainer_options *options, tw_error *error);

/* These need the towers. The checkpoint may be NULL. */
tw_status twi_trainer_find_shares(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                  tw_error *error);
tw_status twi_trainer_find_variables(tw_trainer *t, const tw_trainer_options *options, tw_error *error);

bool twi_trainer_has_equal_shares(const tw_trainer *t);
tw_tensor *twi_shares_to_save(const twi_towers *towers, const char **name); /* NULL: memory ran out */

/* These need the mode of update. Of each group its first tower has the copy beside it; the group behind the last begins
 * behind the last tower. */
tw_status twi_trainer_find_groups(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                  tw_error *error);
int twi_trainer_group_of(const tw_trainer *t, int tower);
int twi_first_of_group(const tw_trainer *t, int group);
/* All that is trained: the trainable variables, and then what each other group has of them; the array is the caller's
 * (twi_free). NULL when memory runs out. */
tw_variable **twi_trainer_trained(const tw_trainer *t, int *count);

/* Adds the mean of the groups' copies, a fetch of its own; how many of so many steps may come in a row before it is
 * due; and it itself, where it is. */
void twi_trainer_build_meeting(tw_trainer *t);
int64_t twi_trainer_steps_to_meet(const tw_trainer *t, int64_t steps);
tw_status twi_trainer_meet(tw_trainer *t, tw_error *error);

/* What a checkpoint has of them besides, at most so many tensors, put behind the first *count. Release them all, also
 * after an error. */
int twi_groups_most_to_save(const tw_trainer *t);
tw_status twi_groups_to_save(const tw_trainer *t, tw_named_tensor *tensors, int *count, tw_error *error);
/* What a variable is saved as, and what is looked for in a checkpoint for it; NULL: its own name. */
const char *twi_groups_rename(const tw_trainer *t, const char *name, char *text, size_t size);
const char *twi_groups_look_for(const tw_trainer *t, const tw_checkpoint *checkpoint, const char *name, char *text,
                                size_t size);

/* Variables made or found in between are those that a tower works with. */
void twi_trainer_enter_variables(tw_trainer *t, int tower);
void twi_trainer_leave_variables(tw_trainer *t);

/* Where variables lie on GPUs, the step is counted and the rate computed on tower 0's, so that a step takes nothing to
 * the host; if it has kernels for that. */
tw_status twi_trainer_find_step_device(tw_trainer *t, tw_error *error);
void twi_trainer_enter_step_device(tw_trainer *t); /* tw_leave_device() leaves */

/* ---- the graph ------------------------------------------------------------------------------------------------- */

/* All that a step runs and fetches; the arrays of the towers are there. */
tw_status twi_trainer_build_graph(tw_trainer *t, const tw_dataset *dataset, tw_error *error);

/* The rate alone, as the schedule says, on a graph that counts steps. */
tw_output twi_trainer_build_rate(const tw_trainer *t, tw_graph *graph);
/* The optimizer of the run; its rate becomes the update's. */
tw_optimizer *twi_trainer_build_optimizer(tw_trainer *t);
/* The loss scale of the run; NULL if there is none. */
tw_loss_scale *twi_trainer_build_scale(tw_trainer *t);
/* Whether an automatic one goes with the way variables are updated. */
tw_status twi_trainer_check_scale(const tw_trainer *t, tw_error *error);
/* A mean of the towers' gradients as it is to be applied: unscaled, then clipped. */
tw_grads *twi_trainer_finish_gradients(tw_trainer *t, tw_grads *mean);
/* Looks, after a step, whether it overflowed; it is an error if the scale can get no smaller. */
tw_status twi_trainer_look_at_scale(tw_trainer *t, tw_error *error);
/* From the towers' gradients to updated variables: sets the update's average and returns the node that stands for it.
 */
tw_output twi_trainer_apply(tw_trainer *t, tw_optimizer *optimizer);
/* That, and what runs with it: the node that stands for the whole step. */
tw_output twi_trainer_build_update(tw_trainer *t, tw_optimizer *optimizer);

/* ---- the plan -------------------------------------------------------------------------------------------------- */

/* Plans what will run: `initialize` ({NULL, 0}: nothing), steps, what summaries want if the options say so. Fails with
 * TW_RESOURCE_EXHAUSTED if a device has no room for it, unless it is only to be planned. */
tw_status twi_trainer_prepare(tw_trainer *t, const tw_trainer_options *options, tw_output initialize, tw_error *error);

enum { TWI_MOST_ACTIVATIONS = 128 };
/* What summaries show of the last tower's activations. Returns how many. */
int twi_trainer_activations(const tw_trainer *t, tw_output outputs[TWI_MOST_ACTIVATIONS]);

/* ---- input ----------------------------------------------------------------------------------------------------- */

#define TWI_TRAINER_INPUT "input" /* the session's source */

/* Adds where the tower's images and labels come from; towers in order. */
void twi_trainer_build_input(tw_trainer *t, int tower);
/* Refuses images of another size, or of more classes, than the model takes. */
tw_status twi_check_images(const tw_model *model, const tw_dataset *dataset, int height, int width, tw_error *error);
/* Once the session is there. */
tw_status twi_trainer_open_input(tw_trainer *t, const tw_trainer_options *options, tw_error *error);
/* Ends the threads that fill queues. */
void twi_input_stop(twi_input *input);
void twi_input_close(twi_input *input, int towers); /* nothing runs any more */

/* `status`, unless the threads that fill queues have ended for another reason, which is then the failure. */
tw_status twi_input_explain(twi_input *input, tw_status status, tw_error *error);

bool twi_input_reads_files(tw_trainer_input kind);
/* Finds the files that nodes are to read, or refuses model and data set. Needs the graph. */
tw_status twi_trainer_choose_files(tw_trainer *t, const tw_trainer_options *options, tw_error *error);
/* Before the towers, the queue that they share; then a tower's batch. */
void twi_trainer_build_prefetch(tw_trainer *t);
void twi_trainer_build_files(tw_trainer *t, int tower);

/* Decides whether devices make the batches. */
tw_status twi_trainer_choose_input_place(tw_trainer *t, const tw_trainer_options *options, tw_error *error);
/* Adds the data set to each device with towers; then a tower's batch of it. */
void twi_trainer_build_data(tw_trainer *t, const tw_dataset *dataset);
void twi_trainer_build_batch(tw_trainer *t, int tower);
/* Where batches are made ahead: the step, which makes the next one's as well. */
tw_output twi_trainer_build_ahead(tw_trainer *t, tw_output step);
/* Before a step: sees to it that its batch waits. */
tw_status twi_trainer_make_first_batch(tw_trainer *t, tw_error *error);
tw_status twi_trainer_give_data(tw_trainer *t, const tw_dataset *dataset, tw_error *error);

/* ---- summaries ------------------------------------------------------------------------------------------------- */

/* A point of the curve of that name, under the tag that the options ask for. */
tw_status twi_trainer_write_curve(const tw_trainer *t, tw_event_writer *events, const char *name, int64_t step, float value,
                                  tw_error *error);
/* Histograms of the variables as they are, and of the gradients (one for each variable that has one) they moved by. */
tw_status twi_trainer_write_variables(tw_trainer *t, tw_event_writer *events, int64_t step,
                                      tw_tensor *const *gradients, tw_error *error);

/* ---- asynchronous updates -------------------------------------------------------------------------------------- */

/* Reads the order to be replayed, if there is one: it fills in settings that were not asked for. */
tw_status twi_asynchronous_open(tw_trainer *t, tw_trainer_options *options, tw_error *error);
/* With the settings known: forgets about all this if updates are synchronous, and refuses what does not go together. */
tw_status twi_asynchronous_agree(tw_trainer *t, const tw_trainer_options *options, tw_error *error);
/* Plans what the towers run, and pulls and pushes. */
tw_status twi_asynchronous_prepare(tw_trainer *t, tw_error *error);
/* Starts the towers. The checkpoint (may be NULL) is the one that was restored. */
tw_status twi_asynchronous_start(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                 tw_error *error);
void twi_asynchronous_stop(twi_asynchronous *a); /* NULL is fine; the session runs nothing afterwards */
void twi_asynchronous_destroy(twi_asynchronous *a);
tw_status twi_asynchronous_step(tw_trainer *t, tw_trainer_step_result *result, tw_error *error);
tw_status twi_asynchronous_write_summaries(tw_trainer *t, tw_event_writer *events, const tw_trainer_step_result *result,
                                           tw_error *error);
/* Waits until no tower computes, for a checkpoint, and adds to it where the stream of data stands. */
tw_status twi_asynchronous_rest(tw_trainer *t, tw_named_tensor *batches, tw_error *error);
/* The batch of the tower that asks for it. */
tw_status twi_asynchronous_fill(tw_trainer *t, int tower, void *const *outputs, tw_error *error);

/* ---- watching -------------------------------------------------------------------------------------------------- */

/* Refuses to compare what need not agree. */
tw_status twi_trainer_check_watch(const tw_trainer *t, tw_error *error);
/* How many of so many steps may come in a row before something is looked at; and that look, where it is due. */
int64_t twi_trainer_steps_to_watch(const tw_trainer *t, int64_t steps);
tw_status twi_trainer_look_at_replicas(tw_trainer *t, tw_error *error);

/* ---- stepping -------------------------------------------------------------------------------------------------- */

/* Runs so many steps with the first num_fetches fetches. */
tw_status twi_trainer_take_steps(tw_trainer *t, int64_t steps, int num_fetches, tw_trainer_step_result *result,
                                 tw_error *error);

#endif
