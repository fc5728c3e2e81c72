/* optimizer.h - what the files of this folder share. */
#ifndef TWI_OPTIMIZER_H
#define TWI_OPTIMIZER_H

#include <tower/train.h>

tw_graph *twi_optimizer_graph(const tw_optimizer *optimizer);

/* From now on gradients are taken as the tensors they are, not as the rows they are made of: they will be fed. */
void twi_take_whole_gradients(tw_optimizer *optimizer);

/* Gradients of the same variables, to be changed; NULL when the graph has failed. */
tw_grads *twi_copy_grads(tw_graph *graph, const tw_grads *grads);

/* The trainable variables in order of creation; the array is the caller's (twi_free). NULL when memory runs out. */
tw_variable **twi_trainable_variables(tw_graph *graph, int *count);

/* tw_moving_averages() of the given variables. NULL: none is given, since memory ran out, or the graph has failed. */
tw_averages *twi_moving_averages_of(tw_graph *graph, tw_variable *const *variables, int count, float decay,
                                    const tw_variable *num_updates, tw_output after);

#endif
