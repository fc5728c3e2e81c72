/* session.h - what a session is, for the files that make one: session.c (plans, runs, variables) and answers.c (what it
 * says of them). */
#ifndef TWI_SESSION_H
#define TWI_SESSION_H

#include "comm/comm.h"
#include "place/place.h"
#include "run/function.h"

#include <stdatomic.h>

struct tw_session {
    tw_graph *graph;
    tw_session_options options;
    char *disable;              /* copy of options.disable */
    tw_devices *devices;
    bool owns_devices;
    pthread_mutex_t lock;       /* guards all below */
    twi_placement placement;
    twi_resource_table resources;
    twi_planner planner;        /* what lanes plan with */
    twi_called *functions;   /* that kernels call */
    twi_lane *lanes[TWI_MOST_LANES]; /* NULL: nothing has run there yet; lane 0 is there from the start */
    int latest_lane;             /* where a run began last, of those that were not given out */
    int lanes_taken;             /* by tw_session_take_lane(), from the last one down */
    const tw_error *cancelled;   /* what all runs fail with; NULL: they do not */
    twi_comm_watcher watcher;    /* of the other tasks, whose failure ends all runs, too: */
    tw_error lost;
    atomic_uint look; /* at what runs do (run/part.h) */
};

/* Places what is not placed yet. The caller holds the lock. */
tw_status twi_session_place(tw_session *session, tw_error *error);

#endif
