/* optimizer.h - what the files of this folder share. */
#ifndef TWI_OPTIMIZER_H
#define TWI_OPTIMIZER_H

#include <tower/train.h>

tw_graph *twi_optimizer_graph(const tw_optimizer *optimizer);

/* The trainable variables in order of creation; the array is the caller's (twi_free). NULL when memory runs out. */
tw_variable **twi_trainable_variables(tw_graph *graph, int *count);

#endif
