/* keys.h - by which keys a checkpoint of objects has what variables and tables of a graph hold, as that of a SavedModel
 * does. Programs of TensorFlow 2 may have many variables without a name, each of which is "Variable" in a checkpoint of
 * objects; the nodes by which the graph restores itself know which is which. Never here:  what a checkpoint is asked
 * for or given (run.c, tables.c). */
#ifndef CLI_KEYS_H
#define CLI_KEYS_H

#include <tower/io.h>
#include <tower/session.h>

typedef struct keys {
    const char **of_nodes[2]; /* by the number of a handle's node: what is read into it, a table's values second; NULL:
                                 nothing is */
    int num_nodes;
} keys;

/* False if memory has run out, which is complained about. What has been found is yours, also then: keys_free(). */
bool keys_find(const char *command, const tw_graph *graph, keys *found);
void keys_free(keys *keys);

/* Of a handle's node, or a table's; `part` 1: of its values. NULL: the graph does not restore it. */
const char *keys_of(const keys *keys, const tw_node *node, int part);

/* By which name a checkpoint, such as the model's own, has the variable: by the graph's own key, or that of a variable
 * that was called so. NULL: it has it not. */
const char *keys_of_variable(const keys *keys, tw_checkpoint *checkpoint, const tw_variable *variable);

/* The key by which a checkpoint of objects has a variable of that name, of its type: the name of a file of an export is
 * a variable, too, and may be called as one of the program's is. In the graph a name may have got a number, since
 * another was like it but for small letters. NULL: none. */
const char *key_by_name(tw_checkpoint *checkpoint, const tw_variable *variable);

#endif
