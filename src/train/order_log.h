/* order_log.h - the file that says in which order the towers of an asynchronous training made their updates, so that it
 * can be replayed. A text, a line for each update:
 *
 *     tower order 1
 *     model cifar10 towers 4 batch 32 seed 1 first 0
 *     0 tower 2 pulled 0 batch 2 loss 0x1.2b4f7ap+2
 *     1 tower 0 pulled 0 batch 0 loss 0x1.2ac03p+2
 *
 * Update 1 was computed by tower 0 on batch 0 from the variables as they were after `pulled` updates. Lines are added
 * as updates are made; a last line without its end is that of a program which was killed, and does not count. */
#ifndef TWI_ORDER_LOG_H
#define TWI_ORDER_LOG_H

#include <stdint.h>
#include <tower/status.h>

/* What the run was made with. */
typedef struct twi_order_head {
    char model[64];
    int64_t towers, batch, seed;
    int64_t first; /* number of the first update in the file; not 0 when an earlier part was lost */
} twi_order_head;

typedef struct twi_order_record {
    int tower;
    int64_t pulled, batch;
    float loss;
} twi_order_record;

/* A whole log in memory. */
typedef struct twi_order_log {
    twi_order_head head;
    twi_order_record *records; /* [count]; number i is update head.first + i */
    int64_t count;
} twi_order_log;

/* Everything in it is checked: a log that no run can have written is TW_DATA_LOSS and names the line. */
tw_status twi_order_log_read(const char *path, twi_order_log *log, tw_error *error);
void twi_order_log_free(twi_order_log *log); /* all zeros is fine */

typedef struct twi_order_writer twi_order_writer;

/* Begins the log of a run whose next update is number `step`. What the file says about earlier updates of the same run
 * is kept, and what it says about later ones, which the checkpoint does not have, is dropped. */
tw_status twi_order_writer_open(const char *path, const twi_order_head *head, int64_t step, twi_order_writer **writer,
                                tw_error *error);
/* A line, handed to the system at once. */
tw_status twi_order_writer_add(twi_order_writer *writer, const twi_order_record *record, tw_error *error);
void twi_order_writer_close(twi_order_writer *writer); /* NULL is fine */

#endif
