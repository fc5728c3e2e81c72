/* own_op.h - rows of the ops that a program has registered (tower/op.h). */
#ifndef TWI_OWN_OP_H
#define TWI_OWN_OP_H

#include "graph/op.h"

const twi_op *twi_own_row(const char *name); /* NULL: there is none */
/* What such an op has in place of texts; NULL: it is one of Tower's. */
const twi_signature *twi_own_signature(const twi_op *op);

#endif
