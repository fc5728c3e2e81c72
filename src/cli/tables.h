/* tables.h - what the tables of a graph that change hold, in checkpoints as TensorFlow's Saver has it: as tensors
 * NAME-keys and NAME-values, where NAME is the last part of the table's own name; of a SavedModel, by its keys. Nodes
 * that export and import it are added to the graph before it runs.
 * Never here:  variables, which tw_save() and tw_restore() know. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "keys.h"

#include <tower/io.h>
#include <tower/session.h>

typedef struct table {
    tw_node *node;
    char *keys, *values; /* their names in a checkpoint */
    tw_output given[2], taken[2], import; /* keys and values that are exported; those that are fed to be imported */
    bool is_kept;
} table;

typedef struct tables {
    table *items;
    int count;
    tw_named_tensor *held; /* what they held when it was fetched: two tensors a table that is kept */
    int num_held;
} tables;

/* Says which are left out. Complains and returns false if memory has run out. What has been found is yours, also then:
 * tables_free(). */
bool tables_find(const char *command, tw_graph *graph, const keys *keys, tables *found);
void tables_free(tables *tables);

/* Fetches what they hold, in place of what was fetched before. */
tw_status tables_fetch(tables *tables, tw_session *session, tw_error *error);

/* Puts what the checkpoint has into the tables in place of what they hold; one that it has not stays as it is. */
tw_status tables_restore(const tables *tables, tw_session *session, tw_checkpoint *checkpoint, tw_error *error);

#endif
