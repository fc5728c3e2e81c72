/* reduction.h - which elements become one where axes are reduced.
 *
 * Neighbouring axes that are all kept or all reduced are joined. */
#ifndef TWI_REDUCTION_H
#define TWI_REDUCTION_H

#include "device/kernel.h"

/* Output o is made of the elements at start(o) + start(k), o over the kept axes, k over the reduced ones. */
typedef struct twi_reduction {
    bool exclusive, reverse;    /* of running sums */
    bool ready;                 /* the axes were known when the kernel was prepared */
    int64_t outputs, inputs;    /* elements of the output; elements behind one of them */
    int num_kept, num_reduced;
    int64_t kept_size[TW_MAX_RANK], kept_step[TW_MAX_RANK];
    int64_t reduced_size[TW_MAX_RANK], reduced_step[TW_MAX_RANK];
    int64_t run;                /* length of the last reduced axis if its elements are neighbours, else 1 */
} twi_reduction;

/* Where number `index` of the elements along these axes lies. */
static inline int64_t twi_reduction_start(int64_t index, int count, const int64_t *size, const int64_t *step)
{
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        start += index % size[i] * step[i];
        index /= size[i];
    }
    return start;
}

/* The prepare() of reductions whose axes are input 1; the row's release() is twi_free(). */
tw_status twi_prepare_reduction(twi_prepare *p);
/* The reduction to do now: as prepared, or `now`, from the axes of this run; NULL: they are wrong, which r->error
 * says. */
const twi_reduction *twi_reduction_of(const twi_run *r, twi_reduction *now);

#endif
