/* large_shared.cuh - launches whose blocks want more shared memory than every card gives: the card is told of the
 * kernel. How much there is, launchers are told (twi_card.shared). */
#ifndef TWI_CUDA_LARGE_SHARED_CUH
#define TWI_CUDA_LARGE_SHARED_CUH

#include "device/cuda/typed.cuh"

enum { SMALL_SHARED = 48 << 10, ASKED_SHARED = 64 << 10 }; /* bytes that every card gives a block, and one that asks */

template <typename... P, typename... A>
static cudaError_t launch_large(dim3 blocks, unsigned threads, size_t shared, cudaStream_t stream,
                                void (*kernel)(P...), A... arguments)
{
    cudaError_t code = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int)shared);
    if (code == cudaSuccess)
        LAUNCH(blocks, threads, shared, stream, kernel)(arguments...);
    return code == cudaSuccess ? cudaGetLastError() : code;
}

#endif
