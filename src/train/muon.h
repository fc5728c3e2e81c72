/* muon.h - the update of one matrix by Muon, for optimizer.c. */
#ifndef TWI_MUON_H
#define TWI_MUON_H

#include <tower/train.h>

/* Scalars have the variable's type. The variable has two dimensions or more. */
typedef struct twi_muon_update {
    const tw_muon_options *options; /* none of them 0 */
    const tw_variable *variable, *accumulator;
    tw_output gradient, rate, momentum;
} twi_muon_update;

/* {node, -1}: when both are up to date. */
tw_output twi_update_by_muon(tw_graph *graph, const twi_muon_update *update);

#endif
