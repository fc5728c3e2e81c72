/* kernels.c - the CPU's kernels, family by family, fastest first.
 *
 * A family is an array of rows ended by a row without an op; it lives in the file it is named after. To add one, declare
 * it here and give it a line in the list. For one op the first family that accepts the shapes wins, so families built on
 * libraries stand above the plain C loops, which accept everything and are what the others are tested against. */
#include "device/device.h"

extern const twi_kernel twi_tail_kernels[], twi_vector_nn_kernels[], twi_vector_update_kernels[];
extern const twi_kernel twi_onednn_conv_kernels[], twi_onednn_matmul_kernels[];
extern const twi_kernel twi_cpu_state_kernels[], twi_cpu_random_kernels[], twi_cpu_control_kernels[],
    twi_cpu_image_kernels[], twi_cpu_summary_kernels[];
extern const twi_kernel twi_cpu_conv_kernels[], twi_cpu_bias_kernels[], twi_cpu_activation_kernels[],
    twi_cpu_pool_kernels[], twi_cpu_normalization_kernels[], twi_cpu_softmax_kernels[], twi_cpu_fused_kernels[];
extern const twi_kernel twi_cpu_array_kernels[], twi_cpu_slice_kernels[], twi_cpu_rearrange_kernels[];

const twi_kernel *const twi_cpu_kernels[] = {
    twi_tail_kernels, twi_onednn_conv_kernels, twi_onednn_matmul_kernels, twi_vector_nn_kernels,
    twi_vector_update_kernels,
    twi_cpu_state_kernels, twi_cpu_random_kernels, twi_cpu_control_kernels, twi_cpu_image_kernels,
    twi_cpu_summary_kernels,
    twi_cpu_conv_kernels, twi_cpu_bias_kernels, twi_cpu_activation_kernels, twi_cpu_pool_kernels,
    twi_cpu_normalization_kernels, twi_cpu_softmax_kernels, twi_cpu_fused_kernels,
    twi_cpu_array_kernels, twi_cpu_slice_kernels, twi_cpu_rearrange_kernels,
    NULL,
};
