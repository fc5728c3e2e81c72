/* trainer_recall.c - what a checkpoint remembers and a run may change: the first rate, its schedule, the reduction. Where
 * nothing is asked for they go on as they were; where something else is, that is done, and can be said. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/io.h>

#include "train/trainer.h"

#define RATE "tower/learning_rate"
#define SCHEDULE "tower/schedule"
#define ALL_REDUCE "tower/all_reduce"

/* A schedule as numbers, in its own units. */
enum { SCHEDULE_NUMBERS = 9 + 2 * TW_MOST_RATES };

static void put_schedule(const tw_rule *r, double numbers[SCHEDULE_NUMBERS])
{
    const double start[] = {r->schedule, r->unit,    r->length,     r->factor,   r->end,
                            r->power,    r->warm_up, r->scale_rate, r->num_rates};
    memset(numbers, 0, SCHEDULE_NUMBERS * sizeof *numbers);
    memcpy(numbers, start, sizeof start);
    for (int i = 0; i < r->num_rates; i++) {
        numbers[9 + 2 * i] = r->at[i];
        numbers[10 + 2 * i] = r->rates[i];
    }
}

/* False if they are none that put_schedule() could have made. */
static bool take_schedule(const double numbers[SCHEDULE_NUMBERS], tw_rule *r)
{
    for (int i = 0; i < SCHEDULE_NUMBERS; i++)
        if (!(numbers[i] >= 0 && numbers[i] <= 1e18))
            return false;
    if (numbers[0] > TW_SCHEDULE_PIECEWISE || numbers[1] > TW_EXAMPLES || numbers[8] > TW_MOST_RATES)
        return false;
    r->schedule = (tw_schedule)numbers[0];
    r->unit = (tw_rate_unit)numbers[1];
    r->length = numbers[2];
    r->factor = (float)numbers[3];
    r->end = (float)numbers[4];
    r->power = (float)numbers[5];
    r->warm_up = numbers[6];
    r->scale_rate = numbers[7] != 0;
    r->num_rates = (int)numbers[8];
    for (int i = 0; i < r->num_rates; i++) {
        r->at[i] = numbers[9 + 2 * i];
        r->rates[i] = (float)numbers[10 + 2 * i];
    }
    return true;
}

static bool asks_for_schedule(const tw_rule *r)
{
    return r->schedule != TW_SCHEDULE_MODEL || r->warm_up > 0 || r->scale_rate;
}

/* One of the above of a checkpoint, of a type and with so many elements; NULL: it has none. */
static tw_status look_up(tw_checkpoint *checkpoint, const char *name, tw_dtype dtype, int64_t elements, tw_tensor **found,
                         tw_error *error)
{
    *found = NULL;
    if (!checkpoint || tw_checkpoint_find(checkpoint, name) < 0)
        return TW_OK;
    tw_status status = tw_checkpoint_read(checkpoint, name, found, error);
    if (status == TW_OK && (tw_tensor_dtype(*found) != dtype || tw_tensor_elements(*found) != elements))
        return twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not what a trainer saves",
                        tw_checkpoint_path(checkpoint), name);
    return status;
}

/* "learning rate 0.05 instead of 0.1" */
static void note(tw_trainer *t, const char *what, const char *now, const char *before)
{
    size_t used = strlen(t->changes);
    snprintf(t->changes + used, sizeof t->changes - used, "%s%s %s instead of %s", used ? "; " : "", what, now, before);
}

static void recall_rate(tw_trainer *t, float asked, const tw_tensor *saved)
{
    float before = saved ? (float)tw_tensor_value(saved, 0) : t->model->learning_rate;
    char old[32], new[32];
    t->first_rate = asked > 0 ? asked : before;
    snprintf(old, sizeof old, "%g", (double)before);
    snprintf(new, sizeof new, "%g", (double)t->first_rate);
    if (saved && t->first_rate != before)
        note(t, "learning rate", new, old);
}

static bool recall_schedule(tw_trainer *t, const tw_tensor *saved)
{
    double numbers[SCHEDULE_NUMBERS];
    tw_rule before = t->rule;
    char old[256], new[256];
    if (!saved)
        return true;
    if (!take_schedule(tw_tensor_data(saved), &before))
        return false;
    put_schedule(&t->rule, numbers);
    if (!asks_for_schedule(&t->rule))
        t->rule = before;
    else if (memcmp(numbers, tw_tensor_data(saved), sizeof numbers) != 0)
        note(t, "rate", twi_schedule_text(&t->rule, new, sizeof new), twi_schedule_text(&before, old, sizeof old));
    return true;
}

static void recall_reduction(tw_trainer *t, const tw_tensor *saved)
{
    const tw_string *before = saved ? tw_tensor_data(saved) : NULL;
    if (!before || t->setting[TWI_UPDATE] == TW_INDEPENDENT) /* gradients never meet */
        return;
    snprintf(t->all_reduce, sizeof t->all_reduce, "%.*s", (int)before->size, before->size ? before->data : "");
    const char *asked = t->averaging.all_reduce, *was = t->all_reduce[0] ? t->all_reduce : "tree";
    if (!asked)
        t->averaging.all_reduce = t->all_reduce[0] ? t->all_reduce : NULL;
    else if (strcmp(asked, was) != 0)
        note(t, "reduction", asked, was);
}

tw_status twi_trainer_recall(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                             tw_error *error)
{
    tw_status status;
    tw_tensor *rate = NULL, *schedule = NULL, *reduction = NULL;
    TWI_TRY(look_up(checkpoint, RATE, TW_FLOAT32, 1, &rate, error));
    TWI_TRY(look_up(checkpoint, SCHEDULE, TW_FLOAT64, SCHEDULE_NUMBERS, &schedule, error));
    TWI_TRY(look_up(checkpoint, ALL_REDUCE, TW_STRING, 1, &reduction, error));
    recall_rate(t, options->learning_rate, rate);
    recall_reduction(t, reduction);
    if (!recall_schedule(t, schedule) || !(t->first_rate > 0))
        TWI_TRY(twi_fail(error, TW_DATA_LOSS, "checkpoint %s: its learning rate is not a sensible one",
                         tw_checkpoint_path(checkpoint)));
done:
    tw_tensor_release(rate);
    tw_tensor_release(schedule);
    tw_tensor_release(reduction);
    return status;
}

tw_status twi_trainer_memories_to_save(const tw_trainer *t, tw_named_tensor tensors[TWI_NUM_MEMORIES], tw_error *error)
{
    double numbers[SCHEDULE_NUMBERS];
    const char *spec = t->averaging.all_reduce ? t->averaging.all_reduce : "";
    put_schedule(&t->rule, numbers);
    tensors[0] = (tw_named_tensor){RATE, tw_tensor_float(t->first_rate)};
    tensors[1] = (tw_named_tensor){SCHEDULE, tw_tensor_from(TW_FLOAT64, TW_SHAPE(SCHEDULE_NUMBERS), numbers)};
    tensors[2] = (tw_named_tensor){ALL_REDUCE, tw_tensor_string(spec, strlen(spec))};
    return tensors[0].tensor && tensors[1].tensor && tensors[2].tensor ? TW_OK
                                                                       : twi_fail_memory(error, "saving a checkpoint");
}

const char *tw_trainer_changes(const tw_trainer *t)
{
    return t->changes;
}

const char *tw_trainer_all_reduce(const tw_trainer *t)
{
    return t->averaging.all_reduce;
}
