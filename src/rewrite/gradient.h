/* gradient.h - what a kernel for many variables reads instead of a tower's gradient: that which the gradient is made of
 * by small nodes that nobody else needs, and which vanish then. For joint updates (update.c) and buckets (buckets.c). */
#ifndef TWI_GRADIENT_H
#define TWI_GRADIENT_H

#include "rewrite/rewrite.h"

/* value, as float, + decay * variable */
typedef struct twi_raw_gradient {
    tw_output value;
    tw_output decay, variable; /* a scalar and a variable's read; decay {NULL, 0}: nothing is added */
    const tw_node *user;       /* who has value among its inputs */
    bool turned;               /* value has the last axis of its filter first */
    bool cut;                  /* value is longer: a bucket, in which the gradient begins at `offset` */
    int64_t offset;
} twi_raw_gradient;

/* Whether a variable is read, that of the handle or, if it is {NULL, 0}, any one. */
bool twi_is_read_of(tw_output output, tw_output handle);
/* A node of that op between a gradient and its user, which nobody else wants and which waits for nobody; else NULL. */
tw_node *twi_find_link(const twi_rewriting *r, tw_output output, const char *op, const tw_node *user);

/* The scalar s if `term` is s * variable (see twi_is_read_of), which *variable becomes; else {NULL, 0}. */
tw_output twi_decay_of(const twi_rewriting *r, tw_output term, tw_output handle, tw_output *variable);
/* Takes weight decay, AddN(value, s * variable), out of a gradient that `reader` is to read. */
void twi_split_decay(const twi_rewriting *r, twi_raw_gradient *g, const tw_node *reader, tw_output handle);
/* Takes a cast to float out of it, if the reader's device has a kernel of that op for the narrow type. */
void twi_take_cast(const twi_rewriting *r, twi_raw_gradient *g, const tw_node *reader, const char *op);
/* Takes the SplitV that cuts it out of a bucket out, if the reader's device lays buckets itself. */
void twi_take_cut(const twi_rewriting *r, twi_raw_gradient *g, const tw_node *reader);
/* The convolution that makes the gradient of a filter, and on the reader's device could leave it turned; else NULL. */
tw_node *twi_find_turnable(const twi_rewriting *r, const twi_raw_gradient *g, const tw_node *reader);
/* Lets it. */
void twi_take_turned(twi_rewriting *r, twi_raw_gradient *g, tw_node *conv);

#endif
