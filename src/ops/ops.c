/* ops.c - the list of op families. A family is an array of rows in a file of its own; declare and add it here. */
#include "graph/op.h"

const twi_op *const twi_op_families[] = {
    NULL,
};
