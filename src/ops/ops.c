/* ops.c - the list of op families. A family is an array of rows in a file of its own; declare and add it here. */
#include "graph/op.h"

extern const twi_op twi_math_ops[], twi_array_ops[], twi_random_ops[], twi_state_ops[], twi_control_ops[],
    twi_image_ops[], twi_summary_ops[];
extern const twi_op twi_conv_ops[], twi_activation_ops[], twi_pool_ops[], twi_normalization_ops[], twi_softmax_ops[],
    twi_fused_ops[];

const twi_op *const twi_op_families[] = {
    twi_math_ops,    twi_array_ops, twi_random_ops,  twi_state_ops,
    twi_control_ops, twi_image_ops, twi_summary_ops,
    twi_conv_ops,    twi_activation_ops, twi_pool_ops, twi_normalization_ops, twi_softmax_ops,
    twi_fused_ops,
    NULL,
};
