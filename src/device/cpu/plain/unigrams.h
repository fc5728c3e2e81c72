/* unigrams.h - weights of classes, 0 to before their number, to draw classes by: given once, or counted as they come.
 * Lives here:  the weights, and which class a random number stands for.
 * Never here:  streams of random numbers, what a loss makes of the classes. */
#ifndef TWI_CPU_UNIGRAMS_H
#define TWI_CPU_UNIGRAMS_H

#include "base/array.h"
#include "device/kernel.h"

/* ---- weights that are given: a draw takes two numbers, however many classes there are ---------------------------- */

typedef struct twi_fixed_unigrams {
    TWI_ARRAY(float) weights;
    double total;
    float *keep;  /* of a class: how likely it stays if it is drawn evenly, */
    int *instead; /* and which one it becomes if not (Walker's method) */
} twi_fixed_unigrams;

/* From attributes vocab_file or unigrams, distortion, num_reserved_ids, num_shards, shard and range_max. `u` is zeros before,
 * and to be freed after a failure too. */
tw_status twi_fixed_unigrams_make(const twi_prepare *p, twi_fixed_unigrams *u);
void twi_fixed_unigrams_free(twi_fixed_unigrams *u);

/* `even`: one of the classes, all alike; `part`: from 0 to before 1. */
static inline int64_t twi_fixed_unigrams_pick(const twi_fixed_unigrams *u, int64_t even, float part)
{
    return part < u->keep[even] ? even : u->instead[even];
}

/* ---- weights that are counted: each class begins with 1 ----------------------------------------------------------- */

typedef struct twi_learned_unigrams twi_learned_unigrams;

twi_learned_unigrams *twi_learned_unigrams_make(int64_t count); /* NULL: no memory */
void twi_learned_unigrams_free(void *unigrams);
void twi_learned_unigrams_lock(twi_learned_unigrams *u);
void twi_learned_unigrams_unlock(twi_learned_unigrams *u);
/* Between these two: */
int32_t twi_learned_unigrams_total(const twi_learned_unigrams *u);
int32_t twi_learned_unigrams_weight(const twi_learned_unigrams *u, int64_t value);
/* The class in whose share of the total, laid end to end, `at` lies. */
int64_t twi_learned_unigrams_pick(const twi_learned_unigrams *u, int32_t at);
/* One more of each; those beyond a total of INT32_MAX are not counted. */
void twi_learned_unigrams_count(twi_learned_unigrams *u, const int64_t *values, int64_t count);

#endif
