/* functions.h - calls of functions in a graph's library, and conditionals and loops made of such calls, as ordinary
 * nodes.
 *
 * A function that a node calls while it runs (the one of a MapDataset) is kept as nodes of the graph that nothing else
 * takes: what it gives is an IdentityN called NODE/ATTR, and its arguments are nodes NODE/ATTR/arg/0, 1, ... which can
 * only be fed (TowerArgument; TowerVariant where it is a data set). The node's attribute is the name NODE/ATTR, and
 * whoever knows it can run that cut of the graph (run/function.h). A captured resource is no argument: the function's
 * nodes take the resource itself. */
#ifndef TWI_FUNCTIONS_H
#define TWI_FUNCTIONS_H

#include "base/arena.h"
#include "base/status.h"
#include "format/proto/graph.pb-c.h"

typedef struct twi_functions twi_functions;

/* Makes nodes of the graph in which every call is replaced by what the function does. They lie in the arena and in
 * *functions, which is NULL if the graph has no library and stays as it is. */
tw_status twi_functions_inline(twi_arena *arena, const Twi__GraphDef *def, twi_functions **functions, tw_error *error);
Twi__NodeDef **twi_functions_nodes(const twi_functions *functions, size_t *count);
/* Of a call that has stayed as it is: the function that it names and the library lacks, in the arena; else NULL. */
const char *twi_functions_missing(twi_arena *arena, twi_functions *functions, const Twi__NodeDef *node);
void twi_functions_free(twi_functions *functions); /* NULL is fine */

#endif
