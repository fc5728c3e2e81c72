/* pool.cu - pooling and its gradients. Without atomics: a pixel looks for the windows that chose or cover it. */
#include "device/cuda/images.cuh"

/* The first maximum of a window in row-major order, and where it lies; -1: the window covers nothing. */
template <typename T>
static __device__ float find_maximum(const twi_cuda_pool &p, const T *x, int64_t n, int64_t row, int64_t column,
                                     int64_t c, int64_t *where)
{
    int64_t h0, h1, w0, w1;
    float best = 0;
    cells_under(p, 0, row, &h0, &h1);
    cells_under(p, 1, column, &w0, &w1);
    *where = -1;
    for (int64_t h = h0; h < h1; h++)
        for (int64_t w = w0; w < w1; w++) {
            int64_t place = ((n * p.image[0] + h) * p.image[1] + w) * p.channels + c;
            float value = to_float(x[place]);
            if (*where < 0 || value > best) {
                best = value;
                *where = place;
            }
        }
    return best;
}

template <typename T> static __global__ void max_pool_kernel(twi_cuda_pool p, int64_t count, const T *x, T *y)
{
    EACH(i, count)
    {
        int64_t c = i % p.channels, column = i / p.channels % p.output[1], where;
        int64_t row = i / p.channels / p.output[1] % p.output[0], n = i / p.channels / p.output[1] / p.output[0];
        put(y + i, find_maximum(p, x, n, row, column, c, &where));
    }
}

template <typename T>
static __global__ void max_pool_grad_kernel(twi_cuda_pool p, int64_t count, const T *x, const T *dy, T *dx)
{
    EACH(i, count)
    {
        int64_t c = i % p.channels, w = i / p.channels % p.image[1];
        int64_t h = i / p.channels / p.image[1] % p.image[0], n = i / p.channels / p.image[1] / p.image[0];
        int64_t row0, row1, column0, column1, where;
        float sum = 0;
        windows_over(p, 0, h, &row0, &row1);
        windows_over(p, 1, w, &column0, &column1);
        for (int64_t row = row0; row < row1; row++)
            for (int64_t column = column0; column < column1; column++) {
                find_maximum(p, x, n, row, column, c, &where);
                if (where == i)
                    sum += to_float(dy[((n * p.output[0] + row) * p.output[1] + column) * p.channels + c]);
            }
        put(dx + i, sum);
    }
}

template <typename T> static __global__ void average_pool_kernel(twi_cuda_pool p, int64_t count, const T *x, T *y)
{
    EACH(i, count)
    {
        int64_t c = i % p.channels, column = i / p.channels % p.output[1], h0, h1, w0, w1;
        int64_t row = i / p.channels / p.output[1] % p.output[0], n = i / p.channels / p.output[1] / p.output[0];
        float sum = 0;
        cells_under(p, 0, row, &h0, &h1);
        cells_under(p, 1, column, &w0, &w1);
        for (int64_t h = h0; h < h1; h++)
            for (int64_t w = w0; w < w1; w++)
                sum += to_float(x[((n * p.image[0] + h) * p.image[1] + w) * p.channels + c]);
        put(y + i, sum / (float)((h1 - h0) * (w1 - w0)));
    }
}

template <typename T>
static __global__ void average_pool_grad_kernel(twi_cuda_pool p, int64_t count, const T *dy, T *dx)
{
    EACH(i, count)
    {
        int64_t c = i % p.channels, w = i / p.channels % p.image[1];
        int64_t h = i / p.channels / p.image[1] % p.image[0], n = i / p.channels / p.image[1] / p.image[0];
        int64_t row0, row1, column0, column1, h0, h1, w0, w1;
        float sum = 0;
        windows_over(p, 0, h, &row0, &row1);
        windows_over(p, 1, w, &column0, &column1);
        for (int64_t row = row0; row < row1; row++)
            for (int64_t column = column0; column < column1; column++) {
                cells_under(p, 0, row, &h0, &h1);
                cells_under(p, 1, column, &w0, &w1);
                sum += to_float(dy[((n * p.output[0] + row) * p.output[1] + column) * p.channels + c]) /
                       (float)((h1 - h0) * (w1 - w0));
            }
        put(dx + i, sum);
    }
}

cudaError_t twi_cuda_max_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x, void *y)
{
    int64_t n = p->batch * p->output[0] * p->output[1] * p->channels;
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, max_pool_kernel<T>)(*p, n, (const T *)x, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_max_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x,
                                   const void *dy, void *dx)
{
    int64_t n = p->batch * p->image[0] * p->image[1] * p->channels;
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, max_pool_grad_kernel<T>)(*p, n, (const T *)x,
                                                                                    (const T *)dy, (T *)dx))
    return cudaGetLastError();
}

cudaError_t twi_cuda_average_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x, void *y)
{
    int64_t n = p->batch * p->output[0] * p->output[1] * p->channels;
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, average_pool_kernel<T>)(*p, n, (const T *)x, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_average_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *dy,
                                       void *dx)
{
    int64_t n = p->batch * p->image[0] * p->image[1] * p->channels;
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, average_pool_grad_kernel<T>)(*p, n, (const T *)dy,
                                                                                        (T *)dx))
    return cudaGetLastError();
}
