/* asynchronous.h - towers that update each by itself.
 *
 * The graph is that of a synchronous step, run in parts. A tower's part is fed the variables, as they were pulled, and
 * gives its loss and gradients; the part behind the average is fed these in place of the average, and updates. Each
 * tower has a thread and a lane of the session. All that touches the variables happens in lane 0, on the thread that
 * calls step(): pulls and pushes are whole, and in the one order that update_order.h decides.
 *
 * Over several tasks all of them run all lanes, each what is on its own devices. What is pulled goes to the tower's
 * task, a gradient to that of its variable, and to the first one, which writes summaries. Who came first, where that
 * decides, is what the first task has seen.
 *
 *     asynchronous.c         pulling, pushing, and what is told about it
 *     asynchronous_towers.c  the towers' threads and batches; beginning and ending
 *     update_order.c         whose turn it is
 *     order_log.c            how that is written down */
#ifndef TWI_ASYNCHRONOUS_H
#define TWI_ASYNCHRONOUS_H

#include "train/trainer_modes.h"
#include "train/update_order.h"

#include <pthread.h>

enum twi_worker_state { TWI_RESTS, TWI_COMPUTES, TWI_HAS_COMPUTED };

/* A tower. What is not guarded belongs to its thread while it computes, and else to the thread that steps. */
typedef struct twi_worker {
    twi_asynchronous *all;
    int tower;
    pthread_t thread;
    bool started;
    enum twi_worker_state state; /* guarded */
    int64_t arrived;         /* its place among those that have computed; guarded */
    int64_t batch, place;    /* its batch of the stream, and when it is to take it among those who do so here */
    tw_tensor **values;      /* [variables] as pulled */
    tw_feed *feeds;          /* [variables] */
    tw_output *fetches;      /* [num_fetches] loss, gradients, for tower 0 the updates of batch normalization */
    tw_tensor **results;     /* [num_fetches] */
    int num_fetches;
    tw_receivers *pulls;    /* [variables] of several tasks, those that need them */
    tw_receivers *pushes;   /* [num_fetches] */
    tw_status status;
    tw_error error;
    tw_staleness staleness;
} twi_worker;

struct twi_asynchronous {
    tw_trainer *trainer;
    tw_asynchronous options;
    twi_order_log replay;
    twi_order_writer *log;
    twi_update_order order;
    twi_worker *workers; /* [towers] */
    int num_variables, num_gradients;
    tw_output *values; /* [num_variables] what is pulled */
    tw_feed *pushed;   /* [num_gradients] what is pushed instead of the averages */
    tw_tensor *rate;
    int64_t pulls;     /* of towers whose batches are made here */
    double stale_sum;  /* since the latest summaries: */
    int64_t stale_count, stale_most;
    bool differs;      /* from the run that is replayed */
    tw_error failure;  /* ends all; status TW_OK: none so far */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t begin, arrival, input;
    bool stop;
    int64_t arrivals;
    int64_t inputs_taken; /* pulls whose batch has been taken */
    int64_t next_input;   /* batch that the pipeline gives next; of whoever's turn it is */
};

#endif
