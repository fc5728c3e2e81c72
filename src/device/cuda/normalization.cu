/* normalization.cu - local response normalization and its gradient. A block takes whole pixels, so that neighbouring
 * channels meet in shared memory. */
#include "device/cuda/images.cuh"

template <typename T>
static __global__ void lrn_kernel(twi_cuda_lrn l, int64_t pixels_of_block, const T *x, T *y)
{
    DYNAMIC_SHARED(float, shared);
    int64_t begin = blockIdx.x * pixels_of_block * l.channels, end = begin + pixels_of_block * l.channels;
    if (end > l.pixels * l.channels)
        end = l.pixels * l.channels;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        shared[i - begin] = to_float(x[i]);
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        int64_t c = (i - begin) % l.channels;
        const float *pixel = shared + (i - begin - c);
        put(y + i, pixel[c] * to_minus(l.bias + l.alpha * around(l, pixel, pixel, c), l.beta));
    }
}

/* With s the sums of the forward pass: dx_c = dy_c * s_c^-beta - 2 alpha beta x_c * sum of dy_j y_j / s_j, j around c. */
template <typename T>
static __global__ void lrn_grad_kernel(twi_cuda_lrn l, int64_t pixels_of_block, const T *dy, const T *x, const T *y,
                                       T *dx)
{
    DYNAMIC_SHARED(float, shared);
    int64_t begin = blockIdx.x * pixels_of_block * l.channels, size = pixels_of_block * l.channels;
    int64_t end = begin + size < l.pixels * l.channels ? begin + size : l.pixels * l.channels;
    float *values = shared, *gradients = shared + size, *ratios = gradients + size;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        values[i - begin] = to_float(x[i]);
        gradients[i - begin] = to_float(dy[i]);
    }
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        int64_t c = (i - begin) % l.channels;
        const float *pixel = values + (i - begin - c);
        ratios[i - begin] = to_float(y[i]) / (l.bias + l.alpha * around(l, pixel, pixel, c));
    }
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        int64_t at = i - begin, c = at % l.channels;
        float sum = l.bias + l.alpha * around(l, values + at - c, values + at - c, c);
        float neighbours = around(l, gradients + at - c, ratios + at - c, c);
        put(dx + i, gradients[at] * to_minus(sum, l.beta) + values[at] * (-2 * l.alpha * l.beta * neighbours));
    }
}

static unsigned lrn_blocks(const twi_cuda_lrn *l)
{
    return (unsigned)((l->pixels + pixels_of_block(l->channels) - 1) / pixels_of_block(l->channels));
}

cudaError_t twi_cuda_lrn_run(cudaStream_t stream, tw_dtype type, const twi_cuda_lrn *l, const void *x, void *y)
{
    if (l->pixels * l->channels == 0)
        return cudaSuccess;
    int64_t pixels = pixels_of_block(l->channels);
    size_t shared = (size_t)(pixels * l->channels) * sizeof(float);
    FLOAT_TYPES(type,
                LAUNCH(lrn_blocks(l), THREADS, shared, stream, lrn_kernel<T>)(*l, pixels, (const T *)x, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_lrn_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_lrn *l, const void *dy, const void *x,
                              const void *y, void *dx)
{
    if (l->pixels * l->channels == 0)
        return cudaSuccess;
    int64_t pixels = pixels_of_block(l->channels);
    size_t shared = 3 * (size_t)(pixels * l->channels) * sizeof(float);
    FLOAT_TYPES(type, LAUNCH(lrn_blocks(l), THREADS, shared, stream, lrn_grad_kernel<T>)(
                          *l, pixels, (const T *)dy, (const T *)x, (const T *)y, (T *)dx))
    return cudaGetLastError();
}
