/* summary_writer.h - the event file that nodes of a graph write summaries to: a resource of the session's. */
#ifndef TWI_SUMMARY_WRITER_H
#define TWI_SUMMARY_WRITER_H

#include "device/kernel.h"

typedef struct twi_summary_writer twi_summary_writer;

/* Makes the resource one without a file, or checks that it is one. */
tw_status twi_summary_writer_make(twi_resource *resource, const char *node, tw_error *error);
twi_summary_writer *twi_summary_writer_of(const twi_resource *resource); /* NULL: something else is behind the handle */

/* Gives it a new file in that folder, unless it has one. What is written is flushed when more than max_queue events
 * have come, or flush_millis have passed. */
tw_status twi_summary_writer_open(twi_summary_writer *writer, const char *folder, const char *suffix, int64_t max_queue,
                                  int64_t flush_millis, tw_error *error);

typedef enum twi_written {
    TWI_WRITE_SUMMARY, /* a serialized Summary */
    TWI_WRITE_GRAPH,   /* a serialized GraphDef */
    TWI_WRITE_EVENT,   /* a serialized Event, with a time and a step of its own */
} twi_written;

/* TW_NOT_FOUND: it has no file, or it was closed. */
tw_status twi_summary_writer_add(twi_summary_writer *writer, twi_written what, int64_t step, const void *bytes,
                                 size_t size, tw_error *error);
tw_status twi_summary_writer_flush(twi_summary_writer *writer, tw_error *error);
tw_status twi_summary_writer_close(twi_summary_writer *writer, tw_error *error); /* one without a file is fine */

#endif
