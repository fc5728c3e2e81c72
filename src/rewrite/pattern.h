/* pattern.h - fusions as rows: which nodes to find, on what conditions, and what to put in their place.
 *
 *     {.find = "p = Conv2D(x, w); b = BiasAdd(p, c); ?r = Relu(b)",
 *      .make = "_FusedConv2D(x, w, c) -> r|b",
 *      .attrs = "p: T,strides,padding; relu = ?r"}
 *
 * find   clauses, RESULTS = OPS(ARGUMENTS). The first is where a search begins; each other is found as the maker or as a
 *        user of a value that is known by then. A name stands for one value; "_" for any; "..." for whatever inputs are
 *        left. OPS are alternatives, "Add|AddV2"; a commutative op's two inputs may change places. A clause with "?" may
 *        be missing; in ARGUMENTS "z|y" is the first that is there. What is longest is tried first. A node of a clause with
 *        "&" is only looked at, and stays.
 * make   nodes, OP(ARGUMENTS) -> RESULTS, separated by ";". An argument "s?" is left out if it is not there. A result
 *        that was found takes the place of the value, which everybody then uses; one that was not is a new name, for
 *        nodes made after it. A node whose results are all missing is not made. Each takes the place of the nodes found
 *        from which its results come, up to those of the nodes before it.
 * attrs  for every node made: "p: A,B" copies attributes of the node that makes p; "relu = ?r" says whether r is there,
 *        "N = #s" as a number. What is not the new op's is passed over.
 *
 * A row is applied where all nodes are on one device, nobody outside wants a value that vanishes, twi_may_join() allows
 * it, and the device accepts what is made. Otherwise everything stays as it was. */
#ifndef TWI_PATTERN_H
#define TWI_PATTERN_H

#include "rewrite/rewrite.h"

enum {
    TWI_PATTERN_CLAUSES = 8,
    TWI_PATTERN_NAMES = 24,
    TWI_PATTERN_ATTRS = 32,
};

typedef struct twi_match twi_match;

typedef struct twi_attr_list {
    tw_attr items[TWI_PATTERN_ATTRS];
    int count;
} twi_attr_list;

typedef struct twi_fusion {
    const char *find, *make, *attrs;
    bool (*fits)(const twi_match *match);                        /* more conditions; NULL: none */
    void (*more)(const twi_match *match, twi_attr_list *attrs); /* more attributes; NULL: none */
    uint64_t types; /* of attribute T of the first clause's node; of others, what its device has more than plain kernels
                       for; 0: any */
} twi_fusion;

/* What a name of the pattern stands for; {NULL, 0}: it is not there. For fits() and more(). */
twi_value twi_matched(const twi_match *match, const char *name);
/* The node that makes it; NULL. */
twi_node *twi_matched_node(const twi_match *match, const char *name);

/* Applies rows in turn, each wherever it fits. */
tw_status twi_apply_fusions(twi_rewriting *r, const twi_fusion *rows, int count, tw_error *error);

#endif
