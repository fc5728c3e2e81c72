/* kernels.c - the kernels of CUDA devices, family by family; see cpu/kernels.c.
 *
 * There is no plain row here: what these are tested against runs on the CPU. What a card lacks is placed on the CPU
 * where the session allows it. */
#include "device/cuda/cuda.h"

#define FAMILIES(X)                                                                                                    \
    X(twi_cuda_matmul_kernels)      /* by NVIDIA's libraries */                                                        \
    X(twi_cuda_conv_kernels)                                                                                           \
    X(twi_cuda_array_kernels)       /* by our own kernels */                                                           \
    X(twi_cuda_index_kernels)                                                                                          \
    X(twi_cuda_elementwise_kernels)                                                                                    \
    X(twi_cuda_reduce_kernels)                                                                                         \
    X(twi_cuda_pool_kernels)                                                                                           \
    X(twi_cuda_normalization_kernels)                                                                                  \
    X(twi_cuda_batch_norm_kernels)                                                                                     \
    X(twi_cuda_pool_lrn_kernels)                                                                                       \
    X(twi_cuda_dense_loss_kernels)                                                                                     \
    X(twi_cuda_softmax_kernels)                                                                                        \
    X(twi_cuda_state_kernels)                                                                                          \
    X(twi_cuda_many_sums_kernels)                                                                                      \
    X(twi_cuda_scalar_kernels)                                                                                         \
    X(twi_cuda_gradient_kernels)                                                                                       \
    X(twi_cuda_weights_kernels)                                                                                        \
    X(twi_cuda_random_kernels)                                                                                         \
    X(twi_cuda_examples_kernels)                                                                                       \
    X(twi_cuda_nccl_kernels)        /* that cards do together */

#define FAMILY(name) extern const twi_kernel name[];
FAMILIES(FAMILY)

#define ENTRY(name) name,
const twi_kernel *const twi_cuda_kernels[] = {FAMILIES(ENTRY) NULL};
