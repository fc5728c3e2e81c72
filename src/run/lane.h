/* lane.h - what a run has to itself: plans, the memory they work in, and the threads that run them.
 *
 * Runs of one lane take turns and share all of this; runs of different lanes overlap. What lanes have in common are the
 * session's graph, placement and resources. */
#ifndef TWI_LANE_H
#define TWI_LANE_H

#include "run/dispatcher.h"

#include <pthread.h>

/* A plan and what it was made for. */
typedef struct twi_planned {
    twi_plan *plan;
    twi_feed_shape *feeds;
    tw_output *fetches;
    int num_feeds, num_fetches;
    int64_t bound_at; /* the lane's `moves` when the plan was last told where the arenas are */
} twi_planned;

/* What a run is to do: feeds with values, or their shapes alone when it is only prepared. */
typedef struct twi_wanted {
    const tw_feed *feeds;              /* [num_feeds], or NULL and */
    const tw_feed_shape *feed_shapes;
    int num_feeds;
    const tw_output *fetches;
    int num_fetches;
} twi_wanted;

tw_output twi_wanted_output(const twi_wanted *wanted, int feed);
twi_feed_shape twi_wanted_shape(const twi_wanted *wanted, int feed); /* of a feed that has been checked */

typedef struct twi_lane {
    pthread_mutex_t turn;       /* held by the run whose turn it is; guards all below. Plans are added only with the
                                   session's lock held too */
    tw_devices *devices;
    twi_dispatchers *dispatchers;
    TWI_ARRAY(twi_planned) plans;
    twi_plan *latest;           /* what ran last; NULL: nothing yet */
    void **arenas;              /* [devices]: shared by all plans, as large as the largest wants */
    size_t *arena_bytes;
    int64_t moves;              /* goes up whenever an arena has moved */
} twi_lane;

/* `wake(user)` is called when a run is to end early, for the kernels that wait. */
tw_status twi_lane_create(tw_devices *devices, void (*wake)(void *user), void *user, twi_lane **lane, tw_error *error);
void twi_lane_destroy(twi_lane *lane); /* NULL is fine; nothing may run in it */

/* The plan made for such feeds and fetches; NULL if there is none yet. */
twi_planned *twi_lane_find(twi_lane *lane, const twi_wanted *wanted);
/* Makes one. */
tw_status twi_lane_add(twi_lane *lane, const twi_request *request, twi_planned **planned, tw_error *error);
/* Gives a plan all memory it needs and makes it the lane's latest: it is ready to run. `shared` guards what lanes have
 * in common: variables. */
tw_status twi_lane_take(twi_lane *lane, twi_planned *planned, pthread_mutex_t *shared, tw_error *error);
/* The arena of a device that suits all plans of the lane. */
size_t twi_lane_largest_arena(const twi_lane *lane, int device);

#endif
