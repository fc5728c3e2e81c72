/* queue.h - queues of tensors: what lies between those who make examples and the step that wants a batch of them.
 *
 * A queue is a resource of the session's. Its elements are rows of components, each of its own type and shape. It is
 * the one thing by which two runs of a session meet: who finds it full or empty waits, and lets other runs go on
 * meanwhile. Waiters are served in the order in which they came. A closed queue takes nothing more and gives what it
 * has.
 *
 * Memory of elements is used again, so a queue that has once been as full as it gets allocates nothing but strings. */
#ifndef TWI_QUEUE_H
#define TWI_QUEUE_H

#include "device/kernel.h"

typedef struct twi_queue twi_queue;

enum { TWI_QUEUE_COMPONENTS = 64 }; /* at most */

typedef enum twi_queue_order {
    TWI_QUEUE_FIFO,
    TWI_QUEUE_RANDOM,   /* any of what it holds, drawn from a seeded stream */
    TWI_QUEUE_PRIORITY, /* the smallest first component, among equals the oldest */
} twi_queue_order;

typedef struct twi_queue_options {
    const char *kind;   /* "FIFOQueue": for messages */
    const char *name;
    twi_queue_order order;
    bool pads;          /* batches are filled up with zeros to the largest of their elements */
    int64_t capacity;   /* elements; -1: no limit */
    int64_t min_after_dequeue;
    uint64_t seed, seed2;
    int num_components;
    const tw_dtype *types;
    const tw_shape *shapes; /* NULL: elements may have any shape, and only single ones can be taken */
} twi_queue_options;

/* Makes the resource that queue, or checks that it is one of these options already. */
tw_status twi_queue_make(twi_resource *resource, const twi_queue_options *options, tw_error *error);
/* The queue behind a handle; NULL if something else is. */
twi_queue *twi_queue_of(const twi_resource *resource);

/* Whether tensors of these types and shapes may be put in, or taken out, as `rows` (-1: a single element). */
tw_status twi_queue_check(const twi_queue *queue, const twi_operand *components, int count, int64_t rows,
                          tw_error *error);

/* Waits for room and puts in an element, or with rows >= 0 so many, one for each place of the first dimension.
 * TW_CANCELLED when the queue is closed or the run is given up. */
tw_status twi_queue_put(twi_queue *queue, const twi_run *r, const twi_operand *operands, const void *const *components,
                        int64_t rows);
/* Waits for an element. TW_OUT_OF_RANGE when the queue is closed and will never have one. */
tw_status twi_queue_take_one(twi_queue *queue, const twi_run *r, const twi_operand *operands, void *const *components);
/* Waits for an element, or with rows >= 0 for so many; with `up_to`, of a queue that is closed, for what it has left,
 * if that is anything. They become the run's outputs, made as large as needed where their shapes were not known. What
 * was taken is put back if there will never be as many. */
tw_status twi_queue_take(twi_queue *queue, const twi_run *r, int64_t rows, bool up_to);

/* Waits until it has more than `index` elements, and gives that one, from the oldest on, as the run's outputs; it
 * stays. */
tw_status twi_queue_peek(twi_queue *queue, const twi_run *r, int64_t index);

/* Lets those who wait to put something in do so first, or with `cancel` fails them. TW_CANCELLED if it is closed
 * already. */
tw_status twi_queue_close(twi_queue *queue, const twi_run *r, bool cancel);
void twi_queue_clear(twi_queue *queue); /* drops what it has */
int twi_queue_waiting(twi_queue *queue); /* threads that sleep until it changes */
int64_t twi_queue_size(twi_queue *queue);
bool twi_queue_is_closed(twi_queue *queue);

#endif
