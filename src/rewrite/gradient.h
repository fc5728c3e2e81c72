/* gradient.h - what a kernel for many variables reads instead of a tower's gradient: that which the gradient is made of
 * by small nodes that nobody else needs, and which vanish then. For joint updates (update.c) and buckets (buckets.c).
 *
 * Looking changes nothing. A filter's gradient is left transposed by another convolution, which is made before the
 * joint node and takes over only when that is there. */
#ifndef TWI_GRADIENT_H
#define TWI_GRADIENT_H

#include "rewrite/rewrite.h"

/* value, as float, + decay * variable */
typedef struct twi_raw_gradient {
    twi_value value;
    twi_value decay, variable; /* a scalar and a variable's read; decay {NULL, 0}: nothing is added */
    const twi_node *user;      /* who has value among its inputs */
    twi_node *conv;            /* makes value, and could leave it with the last axis of its filter first; NULL: none */
    bool transposed;           /* value is left so, by another convolution */
    bool cut;                  /* value is longer: a bucket, in which the gradient begins at `offset` */
    int64_t offset;
} twi_raw_gradient;

/* Whether a variable is read, that of the handle or, if it is {NULL, 0}, any one. */
bool twi_is_read_of(twi_value value, twi_value handle);
/* A node of that op between a gradient and its user, which nobody else wants and which waits for nobody; else NULL. */
twi_node *twi_find_link(twi_value value, twi_known op, const twi_node *user);

/* The scalar s if `term` is s * variable (see twi_is_read_of), which *variable becomes; else {NULL, 0}. */
twi_value twi_decay_of(twi_value term, twi_value handle, twi_value *variable);
/* Takes weight decay, AddN(value, s * variable), out of a gradient that `reader` is to read. */
void twi_split_decay(const twi_rewriting *r, twi_raw_gradient *g, const twi_node *reader, twi_value handle);
/* Takes a cast to float out of it, if the reader's device has a kernel of that op for the narrow type. */
void twi_take_cast(const twi_rewriting *r, twi_raw_gradient *g, const twi_node *reader, const char *op);
/* Takes the SplitV that cuts it out of a bucket out, if the reader's device lays buckets itself. *last, all zeros at
 * first, is where the one before began: who asks in order need not add up all lengths again. */
typedef struct twi_cut {
    const twi_node *split;
    int index;
    int64_t offset;
} twi_cut;
void twi_take_cut(const twi_rewriting *r, twi_cut *last, twi_raw_gradient *g, const twi_node *reader);
/* Notes the convolution that makes the gradient of a filter, if on the reader's device it could leave it transposed. */
void twi_find_conv(const twi_rewriting *r, twi_raw_gradient *g, const twi_node *reader);

/* Makes convolutions that leave the gradients transposed where all of them can; false: they are as they were. */
bool twi_make_transposed(twi_rewriting *r, twi_raw_gradient *gradients, int count);
/* Once the joint node is there: what waited for the old convolution waits for the new one. */
void twi_settle_transposed(const twi_raw_gradient *g);

#endif
