/* nccl_world.h - the communicators of cards that reduce together, the thread that calls NCCL for them, and its guard.
 *
 * Calls of the library wait for other cards, and some of them have been known not to come back. So whoever asks for
 * something waits for the thread, and a guard sees to it that it is in no call longer than the patience that it was
 * given; then the thread is given up, with all that the call may still touch, and the error names call and
 * communicator. What cards are at then the guard aborts. A call that comes back after all finds its world left by
 * everybody else: the thread ends the communicators that are left and gives back what is its own.
 *
 * The thread looks at what is under way, too, and aborts communicators when that does not end, or when another task is
 * lost: who waits for the card in the driver goes on then, and learns of it afterwards. */
#ifndef TWI_CUDA_NCCL_WORLD_H
#define TWI_CUDA_NCCL_WORLD_H

#include "device/cuda/libraries.h"

#ifdef TOWER_WITH_NCCL
typedef struct twi_nccl_world twi_nccl_world;

/* What one card gives to a reduction: `count` elements on the card. */
typedef struct twi_nccl_share {
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
} twi_nccl_share;

/* A world of cards[count], with a stream for each that is this process's, and `patience` in seconds. Where some are
 * other tasks', each of those tasks that has a card makes it, too. Its calls are for one thread at a time. What fails
 * of them ends the communicators, which are aborted, or given up: from then on each call fails with it. Also one that
 * could not be made is to be closed; NULL: memory has run out. */
tw_status twi_nccl_world_create(twi_device *const *cards, int count, double patience, twi_nccl_world **world,
                                tw_error *error);
bool twi_nccl_spans_tasks(const twi_nccl_world *world);
cudaStream_t twi_nccl_stream(const twi_nccl_world *world, int rank);

/* Hands what each card of this process was given to the cards, as one group, behind what their streams have been given
 * so far. */
void twi_nccl_give(twi_nccl_world *world, int rank, twi_nccl_share share);
tw_status twi_nccl_reduce(twi_nccl_world *world, tw_error *error);
/* Whether it has failed so far. */
tw_status twi_nccl_check(twi_nccl_world *world, tw_error *error);
/* The same, and whether all that a card was handed has ended: without waiting. */
tw_status twi_nccl_look(twi_nccl_world *world, int rank, bool *ended, tw_error *error);

/* Ends communicators at once, and kernels of theirs that are under way. Of errors the log is told, as by the next. */
void twi_nccl_world_abort(twi_nccl_world *world, const tw_error *why);
/* The polite end: without an error, nobody is cut short. NULL is fine. Not for who holds a lock that is taken by who
 * watches the tasks. */
void twi_nccl_world_close(twi_nccl_world *world);

/* "/job:localhost/.../device:GPU:1, /job:localhost/.../device:GPU:2": adds a name to a list of them. */
void twi_nccl_list(char *names, size_t size, const char *name);
/* "... has not come within the collective timeout of 300 s: 'loss' (nccl.c:9)": those of the list. */
tw_status twi_nccl_too_late(const char *names, double patience, const char *what, const char *where, tw_error *error);
#endif

#endif
