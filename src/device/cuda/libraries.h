/* libraries.h - cuBLASLt, cuDNN and NCCL as tables of the calls in use, opened when a kernel needs them, or before.
 *
 * They are 0.5 GB and more, so a program that only lists devices must not load them; and a machine that lacks one still
 * has the kernels that do without. */
#ifndef TWI_CUDA_LIBRARIES_H
#define TWI_CUDA_LIBRARIES_H

#include "device/cuda/cuda.h"

#include <cublasLt.h>
#ifdef TOWER_WITH_CUDNN
#include <cudnn.h>
#endif
#ifdef TOWER_WITH_NCCL
#include <nccl.h>
#endif

#define TWI_CUBLAS_CALLS(X)                                                                                            \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtGetStatusString)                                                                                         \
    X(cublasLtGetVersion)                                                                                              \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)                                                                                     \
    X(cublasLtMatrixLayoutSetAttribute)                                                                                \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmulAlgoConfigGetAttribute)                                                                            \
    X(cublasLtMatmul)

#define TWI_CUDNN_CALLS(X)                                                                                             \
    X(cudnnCreate)                                                                                                     \
    X(cudnnDestroy)                                                                                                    \
    X(cudnnSetStream)                                                                                                  \
    X(cudnnGetErrorString)                                                                                             \
    X(cudnnGetVersion)                                                                                                 \
    X(cudnnBackendCreateDescriptor)                                                                                    \
    X(cudnnBackendDestroyDescriptor)                                                                                   \
    X(cudnnBackendSetAttribute)                                                                                        \
    X(cudnnBackendGetAttribute)                                                                                        \
    X(cudnnBackendFinalize)                                                                                            \
    X(cudnnBackendExecute)

#define TWI_NCCL_CALLS(X)                                                                                              \
    X(ncclGetVersion)                                                                                                  \
    X(ncclGetErrorString)                                                                                              \
    X(ncclGetLastError)                                                                                                \
    X(ncclGetUniqueId)                                                                                                 \
    X(ncclCommInitRankConfig)                                                                                          \
    X(ncclCommGetAsyncError)                                                                                           \
    X(ncclCommFinalize)                                                                                                \
    X(ncclCommDestroy)                                                                                                 \
    X(ncclCommAbort)                                                                                                   \
    X(ncclGroupStart)                                                                                                  \
    X(ncclGroupEnd)                                                                                                    \
    X(ncclAllReduce)

#define X(call) __typeof__(&call) call;
typedef struct twi_cublas {
    TWI_CUBLAS_CALLS(X)
    const char *(*text)(int code);
} twi_cublas;

#ifdef TOWER_WITH_CUDNN
typedef struct twi_cudnn {
    TWI_CUDNN_CALLS(X)
    const char *(*text)(int code);
} twi_cudnn;
#endif

#ifdef TOWER_WITH_NCCL
typedef struct twi_nccl {
    TWI_NCCL_CALLS(X)
} twi_nccl;
#endif
#undef X

/* Opens cuBLASLt and cuDNN where they are installed; whoever asks for one that is not is told so. */
void twi_libraries_open(void);

/* The library and the device's handle, both made when first asked for. TW_UNAVAILABLE where the library is not
 * installed: that is to be mended, and no refusal that moves nodes to the CPU. */
tw_status twi_cublas_open(twi_device *d, const twi_cublas **library, cublasLtHandle_t *handle, tw_error *error);
void twi_cublas_close(twi_cuda_device *c);
#ifdef TOWER_WITH_CUDNN
/* The library without a card. */
tw_status twi_cudnn_library(const twi_cudnn **library, tw_error *error);
/* A handle of cuDNN's is for one thread at a time: hold c->cudnn_lock around calls that take it,
 * and take no other lock meanwhile but c->lock: a step that is recorded waits for it, and so may who times engines. */
tw_status twi_cudnn_open(twi_device *d, const twi_cudnn **library, cudnnHandle_t *handle, tw_error *error);
/* From now on the handle's work goes there; under the lock. */
tw_status twi_cudnn_to_stream(twi_cuda_device *c, cudaStream_t stream, tw_error *error);
#endif
void twi_cudnn_close(twi_cuda_device *c);
#ifdef TOWER_WITH_NCCL
tw_status twi_nccl_open(const twi_nccl **library, tw_error *error);
#endif

/* As TWI_CALL, of a library's table: TWI_LIBRARY_CALL(d, error, cublas, cublasLtCreate, &handle); */
#define TWI_LIBRARY_CALL(d, error, library, function, ...)                                                             \
    do {                                                                                                               \
        int code_ = (int)(library)->function(__VA_ARGS__);                                                             \
        if (code_ != 0) {                                                                                              \
            status = twi_library_fail(error, d, #function, TWI_HERE, (library)->text(code_));                          \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)
tw_status twi_library_fail(tw_error *error, const twi_device *d, const char *call, const char *where, const char *text);

#endif
