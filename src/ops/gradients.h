/* gradients.h - gradient rules that lie in files of their own: math_gradients.c, array_gradients.c. */
#ifndef TWI_GRADIENTS_H
#define TWI_GRADIENTS_H

#include "graph/op.h"

/* element-wise, two inputs */
twi_gradient_rule twi_gradient_add, twi_gradient_sub, twi_gradient_mul, twi_gradient_mul_no_nan, twi_gradient_real_div,
    twi_gradient_div_no_nan, twi_gradient_floor_mod, twi_gradient_maximum, twi_gradient_minimum,
    twi_gradient_squared_difference, twi_gradient_pow, twi_gradient_xdivy, twi_gradient_clip_by_value;
/* element-wise, one input */
twi_gradient_rule twi_gradient_neg, twi_gradient_abs, twi_gradient_sign, twi_gradient_square, twi_gradient_sqrt,
    twi_gradient_rsqrt, twi_gradient_reciprocal, twi_gradient_exp, twi_gradient_expm1, twi_gradient_log,
    twi_gradient_log1p, twi_gradient_sin, twi_gradient_cos, twi_gradient_tan, twi_gradient_tanh, twi_gradient_sigmoid,
    twi_gradient_erf, twi_gradient_cast;
/* gradients of gradients */
twi_gradient_rule twi_gradient_sqrt_grad, twi_gradient_rsqrt_grad, twi_gradient_reciprocal_grad,
    twi_gradient_sigmoid_grad, twi_gradient_tanh_grad;
/* reductions and products */
twi_gradient_rule twi_gradient_add_n, twi_gradient_sum, twi_gradient_mean, twi_gradient_prod, twi_gradient_extremum,
    twi_gradient_cumsum, twi_gradient_cumprod, twi_gradient_cumulative_logsumexp, twi_gradient_euclidean_norm,
    twi_gradient_matmul, twi_gradient_sparse_matmul, twi_gradient_batch_matmul, twi_gradient_l2_loss;
/* arrays */
twi_gradient_rule twi_gradient_identity, twi_gradient_prevent, twi_gradient_reshape, twi_gradient_fill,
    twi_gradient_broadcast_to, twi_gradient_strided_slice, twi_gradient_strided_slice_grad,
    twi_gradient_strided_slice_update, twi_gradient_slice, twi_gradient_concat, twi_gradient_split,
    twi_gradient_split_v, twi_gradient_pack, twi_gradient_unpack, twi_gradient_tile, twi_gradient_transpose,
    twi_gradient_conjugate_transpose, twi_gradient_pad, twi_gradient_mirror_pad, twi_gradient_mirror_pad_grad, twi_gradient_reverse, twi_gradient_gather,
    twi_gradient_gather_nd, twi_gradient_scatter_nd, twi_gradient_dynamic_stitch, twi_gradient_unsorted_segment_sum,
    twi_gradient_select, twi_gradient_diag, twi_gradient_diag_part, twi_gradient_top_k, twi_gradient_check_numerics,
    twi_gradient_segment_sum;

#endif
