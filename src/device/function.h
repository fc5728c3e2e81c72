/* function.h - a function of the graph, as a kernel calls it: the one of a MapDataset, a cut of the graph that is
 * planned for the shapes that come and run beside the run whose kernel calls.
 *
 * Who may call finds functions through a resource of the session's, "functions", while a kernel is prepared. What
 * stands behind it is run/function.c. */
#ifndef TWI_FUNCTION_H
#define TWI_FUNCTION_H

#include "device/kernel.h"

#define TWI_FUNCTIONS "functions" /* name of the resource */

typedef struct twi_function twi_function;
struct twi_function {
    /* Any thread may call, and several at once; they wait for each other only where the function makes data sets. A
     * NULL among the arguments is a captured resource, which the function has anyway. results[num_results] become new
     * tensors; after an error they are NULL. A handle is a tensor (device/dataset/dataset.h). */
    tw_status (*call)(twi_function *self, tw_tensor *const *arguments, int num_arguments, tw_tensor **results,
                      tw_error *error);
    int num_results;
    void (*restart)(twi_function *self); /* its streams of random numbers begin anew, if they are seeded */
    bool draws; /* what it gives depends on the order of calls: random numbers */
};

/* Object of the resource "functions". */
typedef struct twi_function_table {
    tw_status (*find)(struct twi_function_table *self, const char *name, twi_function **function, tw_error *error);
} twi_function_table;

#endif
