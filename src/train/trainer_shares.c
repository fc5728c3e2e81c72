/* trainer_shares.c - how many of a step's examples each tower gets, and what its gradient so counts for. */
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/io.h>

#include "train/trainer.h"

#define SHARES "tower/shares" /* in a checkpoint, where they are unequal: int32 [towers] */

enum { MOST_EXAMPLES = 1 << 28, MOST_PARTS = 1 << 20 };

/* The unequal shares of a checkpoint that has them. */
static tw_status read_unequal(tw_trainer *t, tw_checkpoint *checkpoint, tw_error *error)
{
    tw_tensor *tensor = NULL;
    tw_status status = tw_checkpoint_read(checkpoint, SHARES, &tensor, error);
    if (status != TW_OK)
        return status;
    bool good = tw_tensor_dtype(tensor) == TW_INT32 && tw_tensor_elements(tensor) == t->towers.count;
    for (int i = 0; good && i < t->towers.count; i++) {
        t->towers.shares[i] = ((int32_t *)tw_tensor_data(tensor))[i];
        good = t->towers.shares[i] >= 1 && t->towers.shares[i] <= MOST_EXAMPLES;
    }
    tw_tensor_release(tensor);
    return good ? TW_OK
                : twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not a share for each of %d towers",
                           tw_checkpoint_path(checkpoint), SHARES, t->towers.count);
}

/* The shares of the checkpoint (may be NULL), or equal ones of the batch for each tower. */
static tw_status begin_with(tw_trainer *t, tw_checkpoint *checkpoint, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < t->towers.count; i++)
        t->towers.shares[i] = (int)t->recipe.setting[TWI_BATCH];
    if (checkpoint && tw_checkpoint_find(checkpoint, SHARES) >= 0)
        status = read_unequal(t, checkpoint, error);
    for (int i = 0; i < t->towers.count; i++)
        t->towers.examples += t->towers.shares[i];
    return status;
}

static tw_status check_options(const tw_trainer *t, const tw_trainer_options *o, tw_error *error)
{
    if (o->batch && o->global_batch && o->global_batch != (int64_t)o->batch * t->towers.count)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.batch=%d for each of %d tower%s makes %lld, not options.global_batch=%lld", o->batch,
                        t->towers.count, t->towers.count == 1 ? "" : "s", (long long)o->batch * t->towers.count,
                        (long long)o->global_batch);
    if (o->global_batch > MOST_EXAMPLES)
        return twi_fail(error, TW_INVALID_ARGUMENT, "options.global_batch is %lld; at most %d is expected",
                        (long long)o->global_batch, MOST_EXAMPLES);
    if (!o->tower_shares)
        return TW_OK;
    if (o->batch)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "options.batch gives each tower %d examples, options.tower_shares gives them unequal numbers; say "
            "with options.global_batch how many there are to share",
            o->batch);
    if (o->num_tower_shares != t->towers.count)
        return twi_fail(error, TW_INVALID_ARGUMENT, "options.tower_shares has %d part%s for %d tower%s",
                        o->num_tower_shares, o->num_tower_shares == 1 ? "" : "s", t->towers.count,
                        t->towers.count == 1 ? "" : "s");
    for (int i = 0; i < t->towers.count; i++)
        if (o->tower_shares[i] < 1 || o->tower_shares[i] > MOST_PARTS)
            return twi_fail(error, TW_INVALID_ARGUMENT, "options.tower_shares: %d for tower %d; expected 1 to %d",
                            o->tower_shares[i], i, MOST_PARTS);
    return TW_OK;
}

/* `parts` NULL: equally. What does not divide goes to the first towers, one each. */
static void deal(int64_t examples, const int *parts, int towers, int *shares)
{
    int64_t all = 0, dealt = 0;
    for (int i = 0; i < towers; i++)
        all += parts ? parts[i] : 1;
    for (int i = 0; i < towers; i++)
        dealt += shares[i] = (int)(examples * (parts ? parts[i] : 1) / all);
    for (int i = 0; dealt < examples; i++, dealt++)
        shares[i]++;
}

/* What was asked for, in place of what t began with; a checkpoint that says how its run was dealt insists on that. */
static tw_status change(tw_trainer *t, const tw_trainer_options *o, tw_checkpoint *checkpoint, tw_error *error)
{
    bool fixed = checkpoint && twi_recipe_is_set(checkpoint, TWI_BATCH);
    int64_t examples = o->global_batch ? o->global_batch
                       : o->batch      ? (int64_t)o->batch * t->towers.count
                                       : t->towers.examples;
    int *shares = twi_alloc_array((size_t)t->towers.count, sizeof *shares);
    tw_status status = TW_OK;
    if (!shares)
        return twi_fail_memory(error, "creating a trainer");
    deal(examples, o->tower_shares, t->towers.count, shares);
    for (int i = 0; i < t->towers.count && status == TW_OK; i++) {
        if (shares[i] < 1)
            status =
                twi_fail(error, TW_INVALID_ARGUMENT, "options.global_batch=%lld leaves no example for tower %d of %d",
                         (long long)examples, i, t->towers.count);
        else if (fixed && shares[i] != t->towers.shares[i])
            status = twi_fail(error, TW_INVALID_ARGUMENT,
                              "checkpoint %s was made with %lld examples a step, %d of them for tower %d, but %lld and "
                              "%d were asked for: leave that out to resume, or train into another directory",
                              tw_checkpoint_path(checkpoint), (long long)t->towers.examples, t->towers.shares[i], i,
                              (long long)examples, shares[i]);
        t->towers.shares[i] = shares[i];
    }
    t->towers.examples = examples;
    twi_free(shares);
    return status;
}

tw_status twi_trainer_find_shares(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                  tw_error *error)
{
    t->towers.shares = twi_alloc_array((size_t)t->towers.count, sizeof *t->towers.shares);
    t->towers.weights = twi_alloc_array((size_t)t->towers.count, sizeof *t->towers.weights);
    if (!t->towers.shares || !t->towers.weights)
        return twi_fail_memory(error, "creating a trainer");
    tw_status status = check_options(t, options, error);
    if (status == TW_OK)
        status = begin_with(t, checkpoint, error);
    if (status == TW_OK && (options->batch || options->global_batch || options->tower_shares))
        status = change(t, options, checkpoint, error);
    t->recipe.setting[TWI_BATCH] = 0;
    for (int i = 0; i < t->towers.count; i++) {
        t->towers.weights[i] = (float)t->towers.shares[i];
        if (t->towers.shares[i] > t->recipe.setting[TWI_BATCH])
            t->recipe.setting[TWI_BATCH] = t->towers.shares[i];
    }
    return status;
}

bool twi_trainer_has_equal_shares(const tw_trainer *t)
{
    return t->towers.examples == (int64_t)t->recipe.setting[TWI_BATCH] * t->towers.count;
}

tw_tensor *twi_shares_to_save(const twi_towers *towers, const char **name)
{
    *name = SHARES;
    return tw_tensor_from(TW_INT32, TW_SHAPE(towers->count), towers->shares);
}
