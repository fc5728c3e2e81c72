/* kernels.c - the kernels of CUDA devices, family by family; see cpu/kernels.c.
 *
 * There is no plain row here: what these are tested against runs on the CPU. What a card lacks is placed on the CPU
 * where the session allows it. */
#include "device/cuda/cuda.h"

#define FAMILIES(X)                                                                                                    \
    X(twi_cuda_array_kernels)                                                                                          \
    X(twi_cuda_elementwise_kernels)

#define FAMILY(name) extern const twi_kernel name[];
FAMILIES(FAMILY)

#define ENTRY(name) name,
const twi_kernel *const twi_cuda_kernels[] = {FAMILIES(ENTRY) NULL};
