/* tails.cu - pooling and local response normalization in one pass, in either order, and their gradients with the ReLU's
 * before them. A block takes whole pixels; what neighbouring channels need of each other is in shared memory. */
#include "device/cuda/images.cuh"

/* Element i of an image or of what was pooled of it. */
struct place {
    int64_t n, row, column, c;
};

static __device__ place place_of(const int64_t side[2], int64_t channels, int64_t i)
{
    int64_t pixel = i / channels;
    return {pixel / side[1] / side[0], pixel / side[1] % side[0], pixel % side[1], i % channels};
}

static __device__ int64_t element_of(const int64_t side[2], int64_t channels, int64_t n, int64_t row, int64_t column,
                                     int64_t c)
{
    return ((n * side[0] + row) * side[1] + column) * channels + c;
}

/* What a pixel of the image collects from the windows whose maximum it was. */
template <typename T>
static __device__ float collect(const twi_cuda_pool &p, const T *gradient, const uint8_t *argmax, const place &at)
{
    int64_t row0, row1, column0, column1;
    float sum = 0;
    windows_over(p, 0, at.row, &row0, &row1);
    windows_over(p, 1, at.column, &column0, &column1);
    for (int64_t row = row0; row < row1; row++)
        for (int64_t column = column0; column < column1; column++) {
            int64_t ky = at.row + p.before[0] - row * p.stride[0], kx = at.column + p.before[1] - column * p.stride[1];
            int64_t window = element_of(p.output, p.channels, at.n, row, column, at.c);
            if (argmax[window] == ky * p.size[1] + kx)
                sum += to_float(gradient[window]);
        }
    return sum;
}

/* The part of [0, elements) that a block has, whole pixels of it. */
static __device__ int64_t part_of_block(int64_t pixels, int64_t channels, int64_t elements, int64_t *end)
{
    int64_t begin = blockIdx.x * pixels * channels;
    *end = begin + pixels * channels < elements ? begin + pixels * channels : elements;
    return begin;
}

/* MaxPool, then LRN. */
template <typename T>
static __global__ void pool_lrn_kernel(twi_cuda_pool p, twi_cuda_lrn l, int64_t pixels, const T *x, T *y, T *pooled,
                                       uint8_t *argmax)
{
    DYNAMIC_SHARED(float, shared);
    int64_t elements = l.pixels * l.channels, end, begin = part_of_block(pixels, l.channels, elements, &end);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        place at = place_of(p.output, p.channels, i);
        int64_t h0, h1, w0, w1, best = -1;
        float most = 0;
        cells_under(p, 0, at.row, &h0, &h1);
        cells_under(p, 1, at.column, &w0, &w1);
        for (int64_t h = h0; h < h1; h++)
            for (int64_t w = w0; w < w1; w++) {
                float value = to_float(x[element_of(p.image, p.channels, at.n, h, w, at.c)]);
                if (best < 0 || value > most) {
                    int64_t ky = h + p.before[0] - at.row * p.stride[0], kx = w + p.before[1] - at.column * p.stride[1];
                    most = value;
                    best = ky * p.size[1] + kx;
                }
            }
        shared[i - begin] = most;
        put(pooled + i, most);
        argmax[i] = (uint8_t)best;
    }
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        int64_t c = (i - begin) % l.channels;
        const float *pixel = shared + (i - begin - c);
        put(y + i, pixel[c] * to_minus(l.bias + l.alpha * around(l, pixel, pixel, c), l.beta));
    }
}

/* LRN, then MaxPool: a window's cells are normalized one after the other, all of a block's pixels at a time. */
template <typename T>
static __global__ void lrn_pool_kernel(twi_cuda_pool p, twi_cuda_lrn l, int64_t pixels, const T *x, T *y,
                                       uint8_t *argmax)
{
    DYNAMIC_SHARED(float, shared);
    int64_t elements = p.batch * p.output[0] * p.output[1] * p.channels;
    int64_t end, begin = part_of_block(pixels, l.channels, elements, &end);
    float *most = shared + pixels * l.channels;
    for (int64_t ky = 0; ky < p.size[0]; ky++)
        for (int64_t kx = 0; kx < p.size[1]; kx++) {
            __syncthreads(); /* nobody looks at the last cell any more */
            for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
                place at = place_of(p.output, p.channels, i);
                int64_t h = at.row * p.stride[0] - p.before[0] + ky, w = at.column * p.stride[1] - p.before[1] + kx;
                if (h >= 0 && h < p.image[0] && w >= 0 && w < p.image[1])
                    shared[i - begin] = to_float(x[element_of(p.image, p.channels, at.n, h, w, at.c)]);
            }
            __syncthreads();
            for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
                place at = place_of(p.output, p.channels, i);
                int64_t h0, h1, w0, w1, c = at.c;
                int64_t h = at.row * p.stride[0] - p.before[0] + ky, w = at.column * p.stride[1] - p.before[1] + kx;
                cells_under(p, 0, at.row, &h0, &h1);
                cells_under(p, 1, at.column, &w0, &w1);
                if (h < h0 || h >= h1 || w < w0 || w >= w1)
                    continue;
                const float *pixel = shared + (i - begin - c);
                float value = pixel[c] * to_minus(l.bias + l.alpha * around(l, pixel, pixel, c), l.beta);
                if ((h == h0 && w == w0) || value > most[i - begin]) {
                    most[i - begin] = value;
                    argmax[i] = (uint8_t)(ky * p.size[1] + kx);
                }
            }
        }
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        put(y + i, most[i - begin]);
}

/* The gradient of a normalization at channel c of a pixel, where y's is gradients[]: with s the sums of the forward pass,
 * dy_c * s_c^-beta - 2 alpha beta x_c * sum of dy_j y_j / s_j, j around c; ratios[j] is y_j / s_j. */
static __device__ float lrn_gradient(const twi_cuda_lrn &l, const float *values, const float *gradients,
                                     const float *ratios, int64_t c)
{
    float sum = l.bias + l.alpha * around(l, values, values, c);
    return gradients[c] * to_minus(sum, l.beta) + values[c] * (-2 * l.alpha * l.beta * around(l, gradients, ratios, c));
}

/* Of elements [begin, end), whole pixels, whose values and gradients are in shared memory: what is behind them is, too. */
template <typename T>
static __device__ void lrn_gradients(const twi_cuda_lrn &l, bool relu, int64_t begin, int64_t end, const float *values,
                                     const float *gradients, float *ratios, T *dx)
{
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        int64_t c = (i - begin) % l.channels;
        const float *pixel = values + (i - begin - c);
        float sum = l.bias + l.alpha * around(l, pixel, pixel, c);
        ratios[i - begin] = pixel[c] * to_minus(sum, l.beta) / sum;
    }
    __syncthreads();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        int64_t c = (i - begin) % l.channels, pixel = i - begin - c;
        float gradient = lrn_gradient(l, values + pixel, gradients + pixel, ratios + pixel, c);
        put(dx + i, relu && values[i - begin] <= 0 ? 0 : gradient);
    }
}

/* The normalization's gradient of what was pooled, into the workspace. A pixel that was not above 0 and was chosen all
 * the same is where the ReLU was shut. */
template <typename T>
static __global__ void pooled_gradient_kernel(twi_cuda_lrn l, bool relu, int64_t pixels, const T *dy, const T *pooled,
                                              float *gradient)
{
    DYNAMIC_SHARED(float, shared);
    int64_t size = pixels * l.channels, end, begin = part_of_block(pixels, l.channels, l.pixels * l.channels, &end);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        shared[i - begin] = to_float(pooled[i]);
        shared[size + i - begin] = to_float(dy[i]);
    }
    lrn_gradients(l, relu, begin, end, shared, shared + size, shared + 2 * size, gradient);
}

template <typename T>
static __global__ void spread_kernel(twi_cuda_pool p, int64_t n, const float *gradient, const uint8_t *argmax, T *dx)
{
    EACH(i, n)
        put(dx + i, collect(p, gradient, argmax, place_of(p.image, p.channels, i)));
}

template <typename T>
static __global__ void lrn_pool_grad_kernel(twi_cuda_pool p, twi_cuda_lrn l, bool relu, int64_t pixels, const T *dy,
                                            const T *x, const uint8_t *argmax, T *dx)
{
    DYNAMIC_SHARED(float, shared);
    int64_t size = pixels * l.channels, end, begin = part_of_block(pixels, l.channels, l.pixels * l.channels, &end);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        shared[i - begin] = to_float(x[i]);
        shared[size + i - begin] = collect(p, dy, argmax, place_of(p.image, p.channels, i));
    }
    lrn_gradients(l, relu, begin, end, shared, shared + size, shared + 2 * size, dx);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------ */

/* Of a kernel of whole pixels that wants so many floats of shared memory for each element. */
struct tail_grid {
    int64_t pixels; /* of a block */
    unsigned blocks;
    size_t shared;
};

static tail_grid grid_of(int64_t pixels, int64_t channels, int arrays)
{
    int64_t each = pixels_of_block(channels);
    return {each, (unsigned)((pixels + each - 1) / each), (size_t)(each * channels * arrays) * sizeof(float)};
}

static int64_t windows_of(const twi_cuda_pool *p)
{
    return p->batch * p->output[0] * p->output[1];
}

cudaError_t twi_cuda_pool_lrn(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                              const void *x, void *y, void *pooled, uint8_t *argmax)
{
    tail_grid g = grid_of(l->pixels, l->channels, 1);
    if (l->pixels * l->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(g.blocks, THREADS, g.shared, stream, pool_lrn_kernel<T>)(
                          *p, *l, g.pixels, (const T *)x, (T *)y, (T *)pooled, argmax))
    return cudaGetLastError();
}

cudaError_t twi_cuda_lrn_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                              const void *x, void *y, uint8_t *argmax)
{
    tail_grid g = grid_of(windows_of(p), l->channels, 2);
    if (windows_of(p) * l->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(g.blocks, THREADS, g.shared, stream, lrn_pool_kernel<T>)(*p, *l, g.pixels, (const T *)x,
                                                                                    (T *)y, argmax))
    return cudaGetLastError();
}

cudaError_t twi_cuda_pool_lrn_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *pooled, const uint8_t *argmax, void *dx,
                                   void *workspace)
{
    tail_grid g = grid_of(l->pixels, l->channels, 3);
    int64_t n = p->batch * p->image[0] * p->image[1] * p->channels;
    if (l->pixels * l->channels > 0)
        FLOAT_TYPES(type, LAUNCH(g.blocks, THREADS, g.shared, stream, pooled_gradient_kernel<T>)(
                              *l, relu, g.pixels, (const T *)dy, (const T *)pooled, (float *)workspace))
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, spread_kernel<T>)(*p, n, (const float *)workspace,
                                                                              argmax, (T *)dx))
    return cudaGetLastError();
}

cudaError_t twi_cuda_lrn_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *x, const uint8_t *argmax, void *dx)
{
    tail_grid g = grid_of(l->pixels, l->channels, 3);
    if (l->pixels * l->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(g.blocks, THREADS, g.shared, stream, lrn_pool_grad_kernel<T>)(
                          *p, *l, relu, g.pixels, (const T *)dy, (const T *)x, argmax, (T *)dx))
    return cudaGetLastError();
}
