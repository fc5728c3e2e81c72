/* trainer_modes.h - a mode of update: a row that says how variables are made, how gradients meet and how they are
 * applied. How to add one: docs/guide/adding-an-update-mode.md. */
#ifndef TWI_TRAINER_MODES_H
#define TWI_TRAINER_MODES_H

#include "train/trainer.h"
#include "train/trainer_names.h"

struct twi_mode {
    const char *name; /* in checkpoints, for ever; the number there in those of revisions before, 0: none */
    int before;
    const char *words, *numbers; /* for people: what is applied to what; whose numbers several towers so give */
    bool applied_late;           /* one update behind: also one tower gives other numbers then */

    /* What options ask for it. */
    tw_variable_update update;
    bool staged, relaxed;

    /* How variables are made: where those of models lie (NULL: with their tower, and each has its own), and what a
     * tower works with in place of a trainable one (NULL: that itself). */
    tw_device_function *place;
    tw_variable *(*own)(tw_trainer *t, tw_variable *variable);

    /* How gradients meet: fills the mean of those of all towers into means[towers] if it comes everywhere, else into
     * means[0]. NULL: never, each tower goes by its own. */
    void (*meet)(tw_trainer *t, tw_grads **means);
    bool everywhere;
    bool grouped; /* towers of a group share a copy, and the groups' copies meet from time to time (trainer_groups.c) */

    /* How they are applied: returns the node that stands for the update. */
    tw_output (*apply)(tw_trainer *t, tw_optimizer *optimizer, tw_grads *const *means);

    bool asynchronous;      /* towers may update each by itself */
    bool keeps_means;       /* variables hold means for later, and begin with zeros where a checkpoint has none */
    const char *not_scaled; /* why an automatic loss scale does not go with it; NULL: it does */
};

/* Variables that belong to modes: their names are behind, and before, that of the variable. */
#define TWI_STAGED "/Staged"
#define TWI_PENDING "/Pending"
#define TWI_COPY "copy_%d/"

/* The table, in trainer_apply.c; ends with a row without a name. */
extern const twi_mode twi_modes[];

/* The mode that options ask for, ... */
tw_status twi_mode_find(const tw_variable_options *options, const twi_mode **mode, tw_error *error);
/* ... and options that ask for it. */
void twi_mode_ask(const twi_mode *mode, tw_variable_options *options);
/* The modes by numbers from TWI_FIRST_MODE on, which mean nothing outside of this process. */
enum { TWI_FIRST_MODE = 1 };
const twi_mode *twi_mode_at(int64_t number);
int64_t twi_mode_number(const twi_mode *mode);

/* ---- ways to make variables, for rows: trainer_variables.c ---- */

tw_device_function twi_on_parameter_devices; /* user: the trainer */
tw_variable *twi_own_stage(tw_trainer *t, tw_variable *variable);
tw_variable *twi_own_copy(tw_trainer *t, tw_variable *variable);  /* tower 0 has the variable itself, ... */
tw_variable *twi_own_local(tw_trainer *t, tw_variable *variable); /* ... or a copy as all others do */
tw_variable *twi_own_of_group(tw_trainer *t, tw_variable *variable); /* that of the tower's group (trainer_groups.c) */
/* One of that name on the device of the tower under construction, which begins as `variable` does and goes its own
 * way. */
tw_variable *twi_own_made(tw_trainer *t, const char *name, tw_variable *variable);

#endif
