/* normalization.cu - local response normalization and its gradient. A thread takes a quad of channels, a block whole
 * pixels. */
#include "device/cuda/images.cuh"

template <typename T, bool WHOLE> static __global__ void lrn_kernel(twi_cuda_lrn l, quads q, const T *x, T *y)
{
    const unsigned i = thread_of_launch();
    if (i >= (unsigned)q.count)
        return;
    unsigned own, pixel = twi_divide(q.each, i, &own) * (unsigned)l.channels;
    const int c = (int)own * QUAD;
    float value[QUAD], normalized[QUAD];
    take_quad<WHOLE>(value, x + pixel, c, l.channels);
    normalize<WHOLE>(l, x + pixel, c, l.channels, value, normalized);
    put_quad<WHOLE>(y + pixel + c, normalized, c, l.channels);
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(MOST_THREADS, 1)
    lrn_grad_kernel(twi_cuda_lrn l, quads q, const T *dy, const T *x, const T *y, T *dx)
{
    DYNAMIC_SHARED(float, shared);
    const unsigned i = thread_of_launch();
    unsigned own, pixel = twi_divide(q.each, i, &own) * (unsigned)l.channels;
    const int c = (int)own * QUAD;
    float value[QUAD] = {0, 0, 0, 0}, normalized[QUAD] = {0, 0, 0, 0}, given[QUAD] = {0, 0, 0, 0}, gradient[QUAD];
    if (i < (unsigned)q.count) {
        take_quad<WHOLE>(value, x + pixel, c, l.channels);
        take_quad<WHOLE>(normalized, y + pixel, c, l.channels);
        take_quad<WHOLE>(given, dy + pixel, c, l.channels);
    }
    lrn_gradient(l, shared, c, l.channels, value, normalized, given, gradient);
    if (i < (unsigned)q.count)
        put_quad<WHOLE>(dx + pixel + c, gradient, c, l.channels);
}

cudaError_t twi_cuda_lrn_run(cudaStream_t stream, tw_dtype type, const twi_cuda_lrn *l, const void *x, void *y)
{
    const quads q = quads_of(l->pixels, 1, 1, l->channels);
    if (q.count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(are_whole(l->channels, x, y, NULL, NULL),
                            LAUNCH(blocks_of(q), FEW_THREADS, 0, stream, lrn_kernel<T, WHOLE>)(*l, q, (const T *)x,
                                                                                              (T *)y)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_lrn_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_lrn *l, const void *dy, const void *x,
                              const void *y, void *dx)
{
    const quads q = quads_of(l->pixels, 1, 1, l->channels);
    if (q.count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(are_whole(l->channels, dy, x, y, dx),
                            LAUNCH(blocks_of_pixels(q), threads_of(q), shared_of(q, 2), stream,
                                   lrn_grad_kernel<T, WHOLE>)(*l, q, (const T *)dy, (const T *)x, (const T *)y,
                                                              (T *)dx)))
    return cudaGetLastError();
}
