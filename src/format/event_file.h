/* event_file.h - what kernels write into event files beside what programs do (tower/io.h). */
#ifndef TWI_EVENT_FILE_H
#define TWI_EVENT_FILE_H

#include <tower/io.h>

/* As tw_event_writer_create(); the file's name ends in `suffix`. */
tw_status twi_event_writer_create(const char *directory, const char *suffix, tw_event_writer **writer, tw_error *error);
tw_status twi_event_writer_add_graph(tw_event_writer *writer, int64_t step, const void *graph_def, size_t bytes,
                                     tw_error *error);
/* A serialized Event as it is, with its own time. */
tw_status twi_event_writer_add_event(tw_event_writer *writer, const void *event, size_t bytes, tw_error *error);

#endif
