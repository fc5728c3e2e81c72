/* branches.h - the conditions of a graph's own nodes, as they follow from its Switches: for gradients.
 *
 * They are found when first asked for, and from then on for what has been added since. A plan finds its own
 * (plan/conditions.c): there, feeds cut edges, and predicates may be known. */
#ifndef TWI_BRANCHES_H
#define TWI_BRANCHES_H

#include "graph/guards.h"

#include <tower/graph.h>

typedef struct twi_branches twi_branches;

void twi_branches_destroy(twi_branches *branches); /* NULL is fine */

/* A side of a condition. */
typedef struct twi_condition_side {
    tw_output predicate;
    bool value;
} twi_condition_side;

/* The conditions that input i of a Merge runs under, and the Merge does not; outer ones first. How many, or -1: the
 * graph has failed. 0: the other inputs never come, or this one does (*never), since a condition around has decided. */
int twi_branches_between(tw_graph *graph, const tw_node *merge, int i, twi_condition_side sides[TWI_MOST_CONDITIONS],
                         bool *never);
/* All that an output has a value under; outer ones first. How many, or -1: the graph has failed. */
int twi_branches_of(tw_graph *graph, tw_output output, twi_condition_side sides[TWI_MOST_CONDITIONS]);
/* Where a predicate was computed, by which conditions are told apart. */
tw_output twi_branches_root(tw_output predicate);

#endif
