/* guards.h - under which conditions a node of a graph with branches runs.
 *
 * A guard is a set of literals "this predicate has that value", all of which must hold. A Switch adds one to what it
 * gives, a Merge takes off the one in which its inputs differ; every other node has what all its inputs have together.
 * Each set exists once, so that guards are compared by their addresses; NULL is the empty set: always.
 *
 * Predicates are numbers: whoever asks says which number stands for which value. */
#ifndef TWI_GUARDS_H
#define TWI_GUARDS_H

#include "base/arena.h"
#include "base/status.h"

enum { TWI_MOST_CONDITIONS = 256 }; /* that lie in each other */

typedef struct twi_literal {
    int predicate, index; /* the value: which node's, which output */
    bool value;
} twi_literal;

typedef struct twi_guard {
    const struct twi_guard *rest; /* the set without its last literal; NULL: that is all */
    twi_literal last;             /* the largest, in order of predicates */
    int count;
    void *user; /* what whoever asks keeps with it */
} twi_guard;

/* Of what never runs: it needs both sides of a condition, or one that is known not to hold. */
extern twi_guard twi_never;

typedef struct twi_guards {
    twi_arena arena;
    twi_guard **slots; /* open addressing, at most half full */
    size_t capacity, count;
} twi_guards;

void twi_guards_free(twi_guards *guards);

/* All of `a` and of `b`. */
tw_status twi_guard_join(twi_guards *guards, twi_guard *a, twi_guard *b, twi_guard **both, tw_error *error);
/* All of `a`, and the literal. */
tw_status twi_guard_with(twi_guards *guards, twi_guard *a, twi_literal literal, twi_guard **both, tw_error *error);
/* Of a Merge's inputs: leaves out those that never run, and puts together the same ones and the two sides of a
 * condition, of which one runs whatever the predicate is. *count: how many are left. */
tw_status twi_guard_merge(twi_guards *guards, twi_guard **sets, int *count, tw_error *error);

#endif
