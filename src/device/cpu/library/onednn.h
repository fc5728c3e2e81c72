/* onednn.h - the library's primitives behind plain C: one description, one object, one run.
 * Lives here:  what hides oneDNN's versions, its exceptions, its layouts.
 * Never here:  ops, attributes, kernel rows (conv.c, matmul.c).
 *
 * The caller says how its tensors lie in memory. A tensor marked `free` may be computed in whatever layout the
 * primitive likes best: the object then carries the reorder and the room for the copy, so nobody outside ever sees a
 * blocked layout.
 *
 * Equal runs on teams of one size give equal bits. Teams of different sizes may not: the library divides sums among
 * threads as it sees fit. */
#ifndef TWI_ONEDNN_H
#define TWI_ONEDNN_H

#include "base/status.h"

#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum twi_dnnl_kind {
    TWI_DNNL_CONVOLUTION,         /* dst = src * weights (+ bias) */
    TWI_DNNL_CONVOLUTION_DATA,    /* src = gradient of the input, from weights and dst = gradient of the output */
    TWI_DNNL_CONVOLUTION_WEIGHTS, /* weights, bias = their gradients, from src and dst = gradient of the output */
    TWI_DNNL_MATMUL,              /* dst [M,N] = src [M,K] * weights [K,N] (+ bias [1,N]); of rank 3 many, of
                                     src or weights perhaps one for all */
} twi_dnnl_kind;

/* dims in the library's order (N,C,H,W for activations; K,C,H,W for filters, of groups G,K/G,C/G,H,W; D before H of
 * volumes, which have no groups); strides in elements say where they lie. rank 0: there is none. */
typedef struct twi_dnnl_tensor {
    tw_dtype dtype; /* TW_FLOAT32 or TW_BFLOAT16 */
    int rank;
    int64_t dims[5], strides[5];
    bool free;
} twi_dnnl_tensor;

typedef struct twi_dnnl_spec {
    twi_dnnl_kind kind;
    twi_dnnl_tensor src, weights, bias, dst;
    int64_t strides[3], dilations[3]; /* as many as src has axes: (depth,) height, width; dilation 1 is none */
    int64_t before[3], after[3];      /* padding */
    bool relu;                        /* of the forward kinds: dst = max(0, ...) */
    int threads;                      /* the team that will run it */
} twi_dnnl_spec;

typedef struct twi_dnnl twi_dnnl;

/* Builds the primitive. TW_UNIMPLEMENTED: the library has none for this; TW_RESOURCE_EXHAUSTED: memory ran out, as
 * far as the library can say so (it may also end the process). Yours: twi_dnnl_destroy(). */
tw_status twi_dnnl_create(const twi_dnnl_spec *spec, twi_dnnl **out, tw_error *error);
void twi_dnnl_destroy(twi_dnnl *primitive); /* NULL is fine */
size_t twi_dnnl_workspace(const twi_dnnl *primitive); /* bytes twi_dnnl_run() needs, aligned to 64 */
/* What decides its bits: "oneDNN 2.6.3 with the instructions AVX2 (0x7)"; ONEDNN_MAX_CPU_ISA asks for fewer. */
void twi_dnnl_about(char *text, size_t size);
/* Name of the implementation the library chose ("brgconv:avx512_core"). Borrowed. */
const char *twi_dnnl_implementation(const twi_dnnl *primitive);

/* Pointers of tensors that the spec leaves out are NULL. One thread at a time, on a team of spec.threads. */
tw_status twi_dnnl_run(twi_dnnl *primitive, const void *src, const void *weights, const void *bias, const void *dst,
                       void *workspace, tw_error *error);

/* True if the CPU computes this type faster than it would after conversion to float. */
bool twi_dnnl_has_type(tw_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
