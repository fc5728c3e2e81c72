/* meta_graph.h - reading a MetaGraphDef with all that is to be known of it: what meta_graph.c gives and graph_file.c
 * takes. */
#ifndef TWI_META_GRAPH_H
#define TWI_META_GRAPH_H

#include "format/proto/meta_graph.pb-c.h"
#include "graph/graph.h"

#include <tower/io.h>
#include <tower/queue.h>

/* What users see, and the memory it lies in. */
typedef struct twi_about {
    tw_graph_about about;
    twi_arena arena;
} twi_about;

/* As tw_meta_graph_import(), and fills in *about, which is all zeros before. */
tw_status twi_meta_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, twi_about *about,
                                tw_error *error);

tw_status twi_about_add_initializer(twi_about *about, tw_output output, tw_error *error);
void twi_about_free(twi_about *about);

#endif
