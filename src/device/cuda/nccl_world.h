/* nccl_world.h - the communicators of cards that reduce together, and the thread that alone calls NCCL for them.
 *
 * Calls of the library wait for other cards, and some of them have been known not to come back. So whoever asks for
 * something waits for the thread, and for no call longer than the patience that he was given; then the thread is given
 * up, with all that the call may still touch, and the error names call and communicator. A call that comes back after
 * all finds its world left by everybody else: the thread ends the communicators and gives back what is its own. */
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

/* A world of cards[count], with a stream for each, and `patience` in seconds. Its calls are for one thread at a time.
 * What fails of them ends the world and sets *world to NULL: its communicators are aborted, or given up. */
tw_status twi_nccl_world_create(twi_cuda_device *const *cards, int count, double patience, twi_nccl_world **world,
                                tw_error *error);
cudaStream_t twi_nccl_stream(const twi_nccl_world *world, int rank);

/* Hands shares[count] to the cards, as one group, behind what their streams have been given so far. */
tw_status twi_nccl_reduce(twi_nccl_world **world, const twi_nccl_share *shares, tw_error *error);
/* What is under way goes well, as far as the library knows. */
tw_status twi_nccl_look(twi_nccl_world **world, tw_error *error);

/* Ends communicators at once, and kernels of theirs that are under way. There is nobody to be told of errors but the
 * log, as with the next. NULL is fine. */
void twi_nccl_world_abort(twi_nccl_world *world);
/* The polite end: without an error, nobody is cut short. NULL is fine. */
void twi_nccl_world_close(twi_nccl_world *world);

/* "/job:localhost/.../device:GPU:1, /job:localhost/.../device:GPU:2": adds a name to a list of them. */
void twi_nccl_list(char *names, size_t size, const char *name);
/* "... has not come within the collective timeout of 300 s: 'loss' (nccl.c:9)": those of the list. */
tw_status twi_nccl_too_late(const char *names, double patience, const char *what, const char *where, tw_error *error);
#endif

#endif
