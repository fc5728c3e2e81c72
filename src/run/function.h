/* function.h - functions of the graph that kernels call (device/function.h): cuts of the graph, run as chains in lanes
 * of their own, as many as there are calls at once.
 *
 * A function is called by the name of the node that gives its results; its arguments are nodes NAME/arg/0, 1, ...
 * (io/functions/functions.h). */
#ifndef TWI_RUN_FUNCTION_H
#define TWI_RUN_FUNCTION_H

#include "device/function.h"
#include "run/chain.h"

typedef struct twi_called twi_called;

/* Lanes plan with the planner; `wake(user)` as of a lane. Kernels find the table in the planner's resources. */
tw_status twi_functions_create(const twi_planner *planner, void (*wake)(void *user), void *user, twi_called **functions,
                               tw_error *error);
/* Ends calls early, and lets nobody call any more. */
void twi_functions_cancel(twi_called *functions);
/* Waits for calls to end and frees lanes. Calls fail from now on. */
void twi_functions_close(twi_called *functions);   /* NULL is fine */
void twi_functions_destroy(twi_called *functions); /* when no kernel may call any more; NULL is fine */

#endif
