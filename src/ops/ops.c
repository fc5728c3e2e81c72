/* ops.c - the list of op families. A family is an array of rows in a file of its own: add it here. */
#include "graph/op.h"

#define FAMILIES(X)                                                                                                    \
    X(twi_math_ops)                                                                                                    \
    X(twi_array_ops)                                                                                                   \
    X(twi_random_ops)                                                                                                  \
    X(twi_state_ops)                                                                                                   \
    X(twi_control_ops)                                                                                                 \
    X(twi_conv_ops)                                                                                                    \
    X(twi_activation_ops)                                                                                              \
    X(twi_pool_ops)                                                                                                    \
    X(twi_normalization_ops)                                                                                           \
    X(twi_softmax_ops)                                                                                                 \
    X(twi_image_ops)                                                                                                   \
    X(twi_summary_ops)                                                                                                 \
    X(twi_input_ops)                                                                                                   \
    X(twi_queue_ops)                                                                                                   \
    X(twi_collective_ops)                                                                                              \
    X(twi_reader_ops)                                                                                                  \
    X(twi_saver_ops)                                                                                                   \
    X(twi_fused_ops) /* made by rewrites only */                                                                       \
    X(twi_plan_ops)  /* made by the planner only */

#define FAMILY(name) extern const twi_op name[];
FAMILIES(FAMILY)

#define ENTRY(name) name,
const twi_op *const twi_op_families[] = {FAMILIES(ENTRY) NULL};
