/* branches.h - the conditions of a graph's own nodes: those that it is built under (branch_scopes.c), and those that
 * follow from its Switches, for gradients of a Merge (branches.c).
 *
 * The latter are found when first asked for, and from then on for what has been added since. A plan finds its own
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
 * graph has failed. */
int twi_branches_between(tw_graph *graph, const tw_node *merge, int i, twi_condition_side sides[TWI_MOST_CONDITIONS]);

/* ---- branch_scopes.c ----------------------------------------------------------------------------------------------
 */

typedef struct twi_branch twi_branch;

/* The branch that new nodes are built in; NULL: none. Of scopes.c. */
twi_branch *twi_scope_branch(const tw_graph *graph);

void twi_branch_scopes_free(tw_graph *graph);
/* The branch inside of `outer` (NULL: of none) in which the predicate has the value; each exists once. NULL: the graph
 * has failed. */
twi_branch *twi_branch_find(tw_graph *graph, twi_branch *outer, tw_output predicate, bool value);
tw_output twi_branch_predicate(const twi_branch *branch); /* of NULL: none */

/* What a new node of the branch takes instead of `inputs`: of a value from outside, that side of a Switch. *pivot: what
 * it comes after, if nothing that it takes is of the branch; NULL else. False: the graph has failed. */
bool twi_branch_inputs(tw_graph *graph, twi_branch *branch, const tw_output *inputs, int num_inputs, tw_output *inside,
                       tw_node **pivot);

#endif
