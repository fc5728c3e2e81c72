/* blocks.h - what nodes are built in: a branch, or a loop's round.
 *
 * What a node takes from outside of its block is led into it: through a Switch into a branch, through an Enter into a
 * loop (blocks.c). A loop is two blocks: what is built before its test, and its body, which is the branch in which the
 * test holds (loops.c). Outer blocks of a block are those around it. */
#ifndef TWI_BLOCKS_H
#define TWI_BLOCKS_H

#include "base/array.h"

#include <tower/graph.h>

typedef struct twi_block twi_block;

/* A value from outside, and as the block has it. */
typedef struct twi_passage {
    tw_output outside, inside;
} twi_passage;

/* Each value that is led into a block. */
typedef struct twi_passages {
    twi_passage *slots; /* open addressing, at most half full; without a node outside: free */
    size_t capacity, count;
} twi_passages;

/* How a loop of gradients gets values of the loop that it goes back through. True: *x is such a value as the block has
 * it now; false: it is none, or *x is what it was before it entered that loop. */
typedef bool twi_revisit(void *user, tw_output *x);

struct twi_block {
    twi_block *outer, *before; /* of which it is a part; that was made before it */
    tw_output predicate;       /* of a branch, */
    bool value;                /* which is taken where the predicate is that */
    tw_node *pivot;            /* runs where the block does; NULL: nobody has needed it */
    twi_passages passages;
    twi_revisit *revisit; /* NULL: this is no loop of gradients */
    void *revisitor;
    const char *frame;          /* of a loop: its name; NULL: this is a branch */
    int64_t at_once;            /* of a loop: so many rounds may be under way, where TensorFlow runs it */
    twi_block *body;            /* of a loop; NULL: nothing is tested yet */
    TWI_ARRAY(tw_node *) turns; /* of a loop: a Merge for each variable, whose way back twi_loop_next() makes */
    int counter;                /* of a loop: the number of the round is this variable; -1: nobody has asked */
    tw_output *values;          /* of a TW_LOOP: what its block works on; the caller's */
    int num_values;
};

void twi_blocks_free(tw_graph *graph);

/* The branch inside of `outer` (NULL: of none) in which the predicate has the value; each exists once. NULL: the graph
 * has failed. */
twi_block *twi_branch_find(tw_graph *graph, twi_block *outer, tw_output predicate, bool value);

/* What a new node of the block takes instead of `inputs`; of none (NULL) they are looked at only, and `inside` may be
 * NULL. *pivot: what it comes after, if nothing that it takes is of the block, else NULL. False: the graph failed. */
bool twi_block_inputs(tw_graph *graph, twi_block *block, const tw_output *inputs, int num_inputs, tw_output *inside,
                      tw_node **pivot);
/* x as the block has it; no node: the graph has failed. */
tw_output twi_block_pass(tw_graph *graph, twi_block *block, tw_output x);

/* A node of the block that takes its inputs as they are, whatever scopes of control inputs are open. It is put where
 * the first of them is. */
tw_node *twi_add_in_block(tw_graph *graph, twi_block *block, const char *op, const tw_output *inputs, int num_inputs,
                          const tw_attr *attrs, int num_attrs);

/* ---- of scopes.c ------------------------------------------------------------------------------------------------ */

twi_block *twi_scope_block(const tw_graph *graph); /* that new nodes are built in; NULL: none */
bool twi_scope_is_raw(const tw_graph *graph);      /* they take their inputs as they are */
/* New nodes are of the block (NULL: of none), until tw_leave_branch(). What is open outside gives them no control
 * inputs. */
void twi_enter_block(tw_graph *graph, twi_block *block, bool raw);

/* The same of a loop, of which it is the scope; twi_scope_go_on() puts its body in the block's place. */
void twi_enter_loop_block(tw_graph *graph, twi_block *loop);
void twi_leave_loop_block(tw_graph *graph);
twi_block *twi_scope_loop(const tw_graph *graph); /* whose scope is the innermost of all; NULL: it is no loop's */
void twi_scope_go_on(tw_graph *graph, twi_block *body);

/* ---- loops.c ----------------------------------------------------------------------------------------------------- */

/* A new loop inside of `outer`, whose frame is called so. NULL: the graph has failed. */
twi_block *twi_loop_begin(tw_graph *graph, twi_block *outer, const char *frame);
/* x, which is outside, in the loop. */
tw_output twi_loop_enter(tw_graph *graph, twi_block *loop, tw_output x, bool is_constant);
/* Adds a variable that begins with `initial`, a value outside of the loop: which one it is. */
int twi_loop_variable(tw_graph *graph, twi_block *loop, tw_output initial);
/* What the variable is in a round. */
tw_output twi_loop_value(const twi_block *loop, int variable);
/* There is a round if the predicate holds. */
void twi_loop_test(tw_graph *graph, twi_block *loop, tw_output predicate);
void twi_loop_next(tw_graph *graph, twi_block *loop, int variable, tw_output next); /* what it is in the next one */
/* What the variable is behind the last one; to be asked for when nothing is added to the loop any more. */
tw_output twi_loop_result(tw_graph *graph, twi_block *loop, int variable);

#endif
