/* lane.h - what a run has to itself: plans, the memory they work in, and the threads that run them.
 *
 * Runs of one lane take turns and share all of this; runs of different lanes overlap. What lanes have in common are the
 * session's graph, placement and resources, which they reach through the planner. */
#ifndef TWI_LANE_H
#define TWI_LANE_H

#include "run/dispatcher.h"

#include <pthread.h>

/* What a run is looked at for, which makes it slower. */
enum { TWI_LOOK_TIMES = 1, TWI_LOOK_NUMBERS = 2 };

/* Whom plans are asked of. */
typedef struct twi_lane twi_lane;

typedef struct twi_planner {
    twi_request request;   /* all that is not of one cut: neither feeds nor fetches, and behind nothing */
    pthread_mutex_t *lock; /* guards what lanes have in common, and their lists of plans */
    tw_status (*place)(void *user, tw_error *error); /* places what the graph has grown by; with the lock held */
    void *user;
    void (*wake)(void *user); /* wakes kernels that wait, when a run is to end early */
    /* With the lock held: when the oldest run under way began, by the resources' clock, but for the lane's own and the
     * one that it is within. */
    int64_t (*oldest)(void *user, const twi_lane *lane);
    int most; /* plans that a lane keeps for shapes which may come again */
} twi_planner;

struct twi_lane {
    pthread_mutex_t turn; /* held by the run whose turn it is; guards all below. The lists change only with the
                             planner's lock held too */
    const twi_planner *planner;
    tw_devices *devices;
    int number; /* of the session's; of several tasks TWI_ALONE for what a kernel calls */
    bool together; /* tasks: its runs end on all of them with the same, and the next one begins anew */
    twi_dispatchers *dispatchers;
    TWI_ARRAY(struct twi_cut *) cuts;   /* what was asked for (chain.h) */
    TWI_ARRAY(struct twi_link *) links; /* every plan, those behind borders too, oldest first */
    TWI_ARRAY(twi_plan *) latest;       /* what ran last, part by part; none: nothing yet */
    void **arenas;                      /* [devices]: shared by all plans, as large as the largest wants */
    size_t *arena_bytes;
    int64_t moves; /* goes up whenever an arena has moved */
    int64_t runs;  /* so many have begun */
    atomic_llong began; /* the run under way, by the resources' clock; 0: there is none */
    const atomic_bool *ending; /* of a lane within a step: what its kernels look at while they wait; NULL: its own */
};

/* `wake(user)` is called when a run is to end early, for the kernels that wait. */
tw_status twi_lane_create(const twi_planner *planner, void (*wake)(void *user), void *user, twi_lane **lane,
                          tw_error *error);
void twi_lane_destroy(twi_lane *lane); /* NULL is fine; nothing may run in it */

/* Gives a plan all memory it needs: it is ready to run. *bound_at is the lane's `moves` when the plan was last told
 * where the arenas are; -1: never. */
tw_status twi_lane_take(twi_lane *lane, twi_plan *plan, int64_t *bound_at, tw_error *error);
/* The arena of a device that suits all plans of the lane. */
size_t twi_lane_largest_arena(const twi_lane *lane, int device);

#endif
