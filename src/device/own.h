/* own.h - the ops that a program has registered (tower/op.h), by name, and the kernel that calls their functions. They
 * are added to what is built in, never replace it, and stay.
 * Never here:  signatures and rules, which are the graph's (graph/own_op.c). */
#ifndef TWI_OWN_H
#define TWI_OWN_H

#include "device/kernel_index.h"

#include <tower/op.h>

typedef struct twi_own_op {
    const char *name;
    tw_op_functions functions;
    const void *op; /* its row, a twi_op */
    twi_kernel kernel;
    const twi_kernel *only; /* that */
    twi_kernel_rows rows;   /* a list of it, which every device whose list lacks the op has; the op's row says that
                               hosts alone run it */
} twi_own_op;

const twi_own_op *twi_own_find(const char *name); /* NULL: there is none */
const twi_own_op *twi_own_at(int i);              /* in the order of registering; NULL: there are not so many */
/* Fills in the kernel and adds the op, which lives from then on. TW_ALREADY_EXISTS, or memory ran out. */
tw_status twi_own_add(twi_own_op *own, tw_error *error);

#endif
