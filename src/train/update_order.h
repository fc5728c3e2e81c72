/* update_order.h - whose turn it is in an asynchronous training: which tower pulls the variables next, and whose
 * gradients are pushed into them next.
 * Never here:  threads, variables, clocks but a drawn one.
 *
 * The version of the variables is the number of updates made. A tower that has pulled and not yet pushed is under way;
 * the staleness of its update is how many versions came between. */
#ifndef TWI_UPDATE_ORDER_H
#define TWI_UPDATE_ORDER_H

#include "train/order_log.h"

#include <tower/trainer.h>

/* What a tower is about. */
typedef struct twi_flight {
    bool under_way;
    int64_t pulled, batch; /* the version it computes from; of the stream of data */
    double lands;          /* when it is done, on the drawn clock */
    int64_t begun;         /* how many there were before, for drawing */
    int64_t waiting_since; /* of those that are not under way: their place in line */
} twi_flight;

typedef struct twi_update_order {
    int towers, num_under_way;
    twi_flight *flights;     /* [towers] */
    int64_t version;
    tw_asynchronous options; /* bound, kind of order, seed */
    double now;              /* the drawn clock */
    int64_t lined_up;        /* gives places in line */
    int64_t next_batch;      /* of the stream, which is one for all towers */
    int64_t *left_over;      /* [num_left_over] batches before it that were under way when an earlier run ended: they
                                come first */
    int num_left_over;
    const twi_order_log *replay;
    int64_t *pulls;          /* [replay->count] records in the order in which they pull */
    int64_t next_pull;
} twi_update_order;

/* `version` updates are made, `batches`[num_batches] is what twi_update_order_batches said then; NULL: none have been
 * taken but those of the updates. `replay` (NULL: none) is borrowed; if it has no such order from here on, that is
 * TW_INVALID_ARGUMENT. */
tw_status twi_update_order_begin(twi_update_order *order, int towers, const tw_asynchronous *options, int64_t version,
                                 const int64_t *batches, int num_batches, const twi_order_log *replay, tw_error *error);
void twi_update_order_free(twi_update_order *order); /* all zeros is fine */

/* The tower that is to pull now; -1: none, until another update is pushed. */
int twi_update_order_next_pull(const twi_update_order *order);
const twi_flight *twi_update_order_pull(twi_update_order *order, int tower);

/* The tower whose update is to be pushed next, wherever the others are; -1: whoever is there first and may. */
int twi_update_order_next_push(const twi_update_order *order);
/* Whether its update can be pushed now without making another one too stale. */
bool twi_update_order_may_push(const twi_update_order *order, int tower);
/* Returns the staleness. */
int64_t twi_update_order_push(twi_update_order *order, int tower);

/* Where the stream of data stands, for a checkpoint: writes the next batch, then those that are under way, to
 * batches[1 + towers] and returns how many numbers these are. */
int twi_update_order_batches(const twi_update_order *order, int64_t *batches);

#endif
