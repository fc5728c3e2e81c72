/* pool.cu - pooling and its gradients. Without atomics: a pixel looks for the windows that chose or cover it. A thread
 * takes a quad of channels. */
#include "device/cuda/images.cuh"

template <typename T, bool WHOLE>
static __global__ void max_pool_kernel(twi_cuda_pool p, quads q, const T *x, T *y)
{
    const unsigned i = thread_of_launch();
    if (i >= (unsigned)q.count)
        return;
    const place at = place_of(q, i);
    auto read = [&](float (&values)[QUAD], int h, int w) {
        take_quad<WHOLE>(values, x + element_of(p.image, p.channels, at.n, h, w, 0), at.c, p.channels);
    };
    float most[QUAD];
    int cells[QUAD];
    find_maximum<WHOLE ? AT_HAND : 1>(p, at.row, at.column, read, most, cells);
    put_quad<WHOLE>(y + element_of(p.output, p.channels, at.n, at.row, at.column, at.c), most, at.c, p.channels);
}

template <typename T, bool WHOLE, int SIDE>
static __global__ void max_pool_grad_kernel(pooling pool, quads q, const T *x, const T *dy, T *dx)
{
    const unsigned i = thread_of_launch();
    if (i >= (unsigned)q.count)
        return;
    const twi_cuda_pool &p = pool.p;
    place at = place_of(q, i);
    at.row *= SIDE;
    at.column *= SIDE;
    auto read = [&](float (&values)[QUAD], int h, int w) {
        take_quad<WHOLE>(values, x + element_of(p.image, p.channels, at.n, h, w, 0), at.c, p.channels);
    };
    auto look = [&](int (&cells)[QUAD], float (&gradients)[QUAD], int row, int column) {
        float most[QUAD];
        find_maximum<1>(p, row, column, read, most, cells);
        take_quad<WHOLE>(gradients, dy + element_of(p.output, p.channels, at.n, row, column, 0), at.c, p.channels);
    };
    float sums[SIDE][SIDE][QUAD];
    collect<SIDE>(pool, at, look, sums);
    put_pixels<WHOLE>(p, at, dx, sums);
}

template <typename T, bool WHOLE>
static __global__ void average_pool_kernel(twi_cuda_pool p, quads q, const T *x, T *y)
{
    const unsigned i = thread_of_launch();
    if (i >= (unsigned)q.count)
        return;
    const place at = place_of(q, i);
    int h0, h1, w0, w1;
    float sums[QUAD] = {0, 0, 0, 0};
    cells_under(p, 0, at.row, &h0, &h1);
    cells_under(p, 1, at.column, &w0, &w1);
    for (int h = h0; h < h1; h++)
        for (int w = w0; w < w1; w++) {
            float values[QUAD];
            take_quad<WHOLE>(values, x + element_of(p.image, p.channels, at.n, h, w, 0), at.c, p.channels);
            for (int k = 0; k < QUAD; k++)
                sums[k] += values[k];
        }
    for (int k = 0; k < QUAD; k++)
        sums[k] /= (float)((h1 - h0) * (w1 - w0));
    put_quad<WHOLE>(y + element_of(p.output, p.channels, at.n, at.row, at.column, at.c), sums, at.c, p.channels);
}

template <typename T, bool WHOLE, int SIDE>
static __global__ void average_pool_grad_kernel(pooling pool, quads q, const T *dy, T *dx)
{
    const unsigned i = thread_of_launch();
    if (i >= (unsigned)q.count)
        return;
    const twi_cuda_pool &p = pool.p;
    place at = place_of(q, i);
    at.row *= SIDE;
    at.column *= SIDE;
    int row0, row1, column0, column1, h0, h1, w0, w1;
    float sums[SIDE][SIDE][QUAD] = {};
    windows_over(pool, 0, at.row, SIDE, &row0, &row1);
    windows_over(pool, 1, at.column, SIDE, &column0, &column1);
    for (int row = row0; row < row1; row++)
        for (int column = column0; column < column1; column++) {
            float values[QUAD];
            take_quad<WHOLE>(values, dy + element_of(p.output, p.channels, at.n, row, column, 0), at.c, p.channels);
            cells_under(p, 0, row, &h0, &h1);
            cells_under(p, 1, column, &w0, &w1);
            const float share = 1 / (float)((h1 - h0) * (w1 - w0));
            for (int y = 0; y < SIDE; y++)
                for (int x = 0; x < SIDE; x++)
                    for (int k = 0; k < QUAD; k++)
                        if (at.row + y >= h0 && at.row + y < h1 && at.column + x >= w0 && at.column + x < w1)
                            sums[y][x][k] += values[k] * share;
        }
    put_pixels<WHOLE>(p, at, dx, sums);
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

cudaError_t twi_cuda_max_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x, void *y)
{
    const quads q = windows_of(p);
    if (q.count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(are_whole(q.channels, x, y, NULL, NULL),
                            LAUNCH(blocks_of(q), FEW_THREADS, 0, stream, max_pool_kernel<T, WHOLE>)(
                                *p, q, (const T *)x, (T *)y)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_max_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x,
                                   const void *dy, void *dx)
{
    if (squares_of(p, 1).count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, SIDES(p, QUADS(are_whole(p->channels, x, dy, dx, NULL),
                                     LAUNCH(blocks_of(squares_of(p, SIDE)), FEW_THREADS, 0, stream,
                                            max_pool_grad_kernel<T, WHOLE, SIDE>)(pooling_of(p), squares_of(p, SIDE),
                                                                                  (const T *)x, (const T *)dy,
                                                                                  (T *)dx))))
    return cudaGetLastError();
}

cudaError_t twi_cuda_average_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *x, void *y)
{
    const quads q = windows_of(p);
    if (q.count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(are_whole(q.channels, x, y, NULL, NULL),
                            LAUNCH(blocks_of(q), FEW_THREADS, 0, stream, average_pool_kernel<T, WHOLE>)(
                                *p, q, (const T *)x, (T *)y)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_average_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const void *dy,
                                       void *dx)
{
    if (squares_of(p, 1).count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, SIDES(p, QUADS(are_whole(p->channels, dy, dx, NULL, NULL),
                                     LAUNCH(blocks_of(squares_of(p, SIDE)), FEW_THREADS, 0, stream,
                                            average_pool_grad_kernel<T, WHOLE, SIDE>)(
                                         pooling_of(p), squares_of(p, SIDE), (const T *)dy, (T *)dx))))
    return cudaGetLastError();
}
