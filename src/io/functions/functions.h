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

/* The gradient of a function (SymbolicGradient): a node that was made an IdentityN of the function's arguments, which
 * are to be replaced by the gradients of ys by them, where dys flow in; all names of nodes. Its data inputs are the
 * arguments, then come `controls` of its own, and some that only bring ys and dys before it. */
typedef struct twi_function_gradient {
    int arguments, controls, count;
    char **ys, **dys; /* [count] */
} twi_function_gradient;

/* What is noted of the node of that name; NULL: nothing. */
const twi_function_gradient *twi_functions_gradient(const twi_functions *functions, const char *name);
void twi_functions_free(twi_functions *functions); /* NULL is fine */

#endif
