/* batch_norm.cu - batch normalization, with a sum and a ReLU behind it, and the gradients. x is [rows, channels]; a block
 * takes neighbouring channels of one part of the rows, a thread a quad of them. Sizes alone say which rows meet in which
 * order. */
#include "device/cuda/images.cuh"

static const int TOGETHER = 8; /* rows whose quads a thread has at hand while it sums, */
static const int SIDE_BY_SIDE = 4; /* and while it writes; loads do not wait for each other */

/* How many values there are in each channel of a quad, their means, and sums of squares of what they differ from it. */
struct moments {
    float count, mean[QUAD], squares[QUAD];
};

/* Of dy, and of dy * (x - mean); or their means over the rows. */
struct sums {
    float gradients[QUAD], products[QUAD];
};

static __device__ __forceinline__ void merge(moments *a, const moments &b)
{
    float count = a->count + b.count, share = count == 0 ? 0 : b.count / count, weight = a->count * share;
    for (int k = 0; k < QUAD; k++) {
        float apart = b.mean[k] - a->mean[k];
        a->mean[k] += apart * share;
        a->squares[k] += b.squares[k] + apart * apart * weight;
    }
    a->count = count;
}

static __device__ __forceinline__ void merge(sums *a, const sums &b)
{
    for (int k = 0; k < QUAD; k++) {
        a->gradients[k] += b.gradients[k];
        a->products[k] += b.products[k];
    }
}

/* What the rows of threads of a block have found in each channel, as one, in row 0. */
template <typename V> static __device__ V merge_rows(V value)
{
    __shared__ V values[THREADS];
    unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
    values[at] = value;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) {
            merge(&value, values[at + half * blockDim.x]);
            values[at] = value;
        }
    }
    return value;
}

/* Which quad of channels is the thread's, and where it begins. */
static __device__ __forceinline__ int quad_of_thread(void)
{
    return (int)(blockIdx.y * blockDim.x + threadIdx.x);
}

/* The first row of the block's part, and the first behind it. */
static __device__ __forceinline__ int part_of_block(const twi_cuda_batch_norm &b, int *end)
{
    int begin = (int)blockIdx.x * b.rows_of_part;
    *end = min(begin + b.rows_of_part, b.rows);
    return begin;
}

static __device__ __forceinline__ int quads_of_row(const twi_cuda_batch_norm &b)
{
    return (b.channels + QUAD - 1) / QUAD;
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/* Of the thread's next rows, from `row` on. */
template <typename T, bool WHOLE>
static __device__ __forceinline__ moments moments_of(const twi_cuda_batch_norm &b, const T *x, int row, int end, int c)
{
    float values[TOGETHER][QUAD];
    moments some = {};
    for (int i = 0; i < TOGETHER; i++) {
        int at = row + i * (int)blockDim.y;
        take_quad<WHOLE>(values[i], x + (unsigned)(at * b.channels), at < end ? c : b.channels, b.channels);
        some.count += at < end;
        for (int k = 0; k < QUAD; k++)
            some.mean[k] += values[i][k];
    }
    float inverse = 1 / some.count;
    for (int k = 0; k < QUAD; k++)
        some.mean[k] *= inverse;
    for (int i = 0; i < TOGETHER; i++)
        for (int k = 0; k < QUAD; k++) {
            float apart = i < some.count ? values[i][k] - some.mean[k] : 0;
            some.squares[k] += apart * apart;
        }
    return some;
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS) moments_kernel(twi_cuda_batch_norm b, const T *x, moments *parts)
{
    int quad = quad_of_thread(), c = quad * QUAD, end, begin = part_of_block(b, &end);
    moments all = {};
    for (int row = begin + (int)threadIdx.y; row < end && c < b.channels; row += TOGETHER * (int)blockDim.y)
        merge(&all, moments_of<T, WHOLE>(b, x, row, end, c));
    all = merge_rows(all);
    if (threadIdx.y == 0 && c < b.channels)
        parts[blockIdx.x * (unsigned)quads_of_row(b) + (unsigned)quad] = all;
}

template <typename V> static __device__ V merge_parts(const twi_cuda_batch_norm &b, const V *parts, int quad)
{
    V all = {};
    int each = quads_of_row(b);
    for (int part = (int)threadIdx.y; part < b.parts && quad < each; part += (int)blockDim.y)
        merge(&all, parts[part * each + quad]);
    return merge_rows(all);
}

static __global__ void __launch_bounds__(THREADS)
    finish_moments(twi_cuda_batch_norm b, const moments *parts, twi_cuda_moments to)
{
    int quad = quad_of_thread();
    moments all = merge_parts(b, parts, quad);
    float bessel = (float)((double)b.rows / (double)(b.rows > 1 ? b.rows - 1 : 1));
    for (int k = 0; k < QUAD; k++) {
        int c = quad * QUAD + k;
        if (threadIdx.y || c >= b.channels)
            return;
        float variance = b.rows ? all.squares[k] / (float)b.rows : 0;
        to.mean[c] = all.mean[k];
        to.variance[c] = variance;
        to.batch_mean[c] = b.rows ? all.mean[k] : NAN;
        to.batch_variance[c] = b.rows ? variance * bessel : NAN;
    }
}

/* What a quad's values are normalized with. */
struct quad_norm {
    float middle[QUAD], factor[QUAD], shift[QUAD];
};

static __device__ __forceinline__ quad_norm norm_of(const twi_cuda_batch_norm &b, const twi_cuda_normed &in, int c)
{
    quad_norm own;
    for (int k = 0; k < QUAD; k++) {
        int at = min(c + k, b.channels - 1);
        own.middle[k] = in.mean[at];
        own.factor[k] = in.scale[at] * rsqrtf(in.variance[at] + b.epsilon);
        own.shift[k] = in.offset ? in.offset[at] : 0;
    }
    return own;
}

static __device__ __forceinline__ float normalize(const quad_norm &own, int k, float x)
{
    return (x - own.middle[k]) * own.factor[k] + own.shift[k];
}

/* The quad of a row; beyond the last, or where there is no tensor, 0. */
template <typename T, bool WHOLE>
static __device__ __forceinline__ void take_row(const twi_cuda_batch_norm &b, const void *from, int row, int c,
                                                float (&values)[QUAD])
{
    take_quad<WHOLE>(values, (const T *)from + (unsigned)(row * b.channels), from && row < b.rows ? c : b.channels,
                     b.channels);
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS) normalize_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, T *y)
{
    const int c = quad_of_thread() * QUAD, step = (int)blockDim.y, stride = (int)gridDim.x * SIDE_BY_SIDE * step;
    if (c >= b.channels)
        return;
    const quad_norm own = norm_of(b, in, c);
    for (int first = (int)blockIdx.x * SIDE_BY_SIDE * step + (int)threadIdx.y; first < b.rows; first += stride) {
        float values[SIDE_BY_SIDE][QUAD], sides[SIDE_BY_SIDE][QUAD];
        for (int i = 0; i < SIDE_BY_SIDE; i++) {
            take_row<T, WHOLE>(b, in.x, first + i * step, c, values[i]);
            take_row<T, WHOLE>(b, in.side, first + i * step, c, sides[i]);
        }
        for (int i = 0; i < SIDE_BY_SIDE && first + i * step < b.rows; i++) {
            for (int k = 0; k < QUAD; k++) {
                float value = normalize(own, k, values[i][k]) + sides[i][k];
                values[i][k] = b.relu && value <= 0 ? 0 : value;
            }
            put_quad<WHOLE>(y + (unsigned)((first + i * step) * b.channels + c), values[i], c, b.channels);
        }
    }
}

/* ---- backward ------------------------------------------------------------------------------------------------------- */

/* Rows of a thread: x, and the gradient of what the normalization gave: the sum of those given, where the ReLU was open. */
template <typename T, bool WHOLE, int ROWS>
static __device__ __forceinline__ void gradients_of(const twi_cuda_batch_norm &b, const twi_cuda_normed &in,
                                                    const quad_norm &own, int first, int end, int c,
                                                    float (&x)[ROWS][QUAD], float (&gradients)[ROWS][QUAD])
{
    float second[ROWS][QUAD], y[ROWS][QUAD];
    for (int i = 0; i < ROWS; i++) {
        int row = first + i * (int)blockDim.y;
        row = row < end ? row : b.rows; /* which is none */
        take_row<T, WHOLE>(b, in.x, row, c, x[i]);
        take_row<T, WHOLE>(b, in.gradients[0], row, c, gradients[i]);
        take_row<T, WHOLE>(b, in.gradients[1], row, c, second[i]);
        take_row<T, WHOLE>(b, in.y, row, c, y[i]);
    }
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < QUAD; k++) {
            bool open = !b.relu || (in.y ? y[i][k] : normalize(own, k, x[i][k])) > 0;
            gradients[i][k] = open ? gradients[i][k] + second[i][k] : 0;
        }
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS) sums_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, sums *parts)
{
    int quad = quad_of_thread(), c = quad * QUAD, end, begin = part_of_block(b, &end);
    const quad_norm own = norm_of(b, in, c);
    sums all = {};
    for (int row = begin + (int)threadIdx.y; row < end && c < b.channels; row += SIDE_BY_SIDE * (int)blockDim.y) {
        float x[SIDE_BY_SIDE][QUAD], gradients[SIDE_BY_SIDE][QUAD];
        gradients_of<T, WHOLE>(b, in, own, row, end, c, x, gradients);
        for (int i = 0; i < SIDE_BY_SIDE; i++)
            for (int k = 0; k < QUAD; k++) {
                all.gradients[k] += gradients[i][k];
                all.products[k] += gradients[i][k] * (x[i][k] - own.middle[k]);
            }
    }
    all = merge_rows(all);
    if (threadIdx.y == 0 && c < b.channels)
        parts[blockIdx.x * (unsigned)quads_of_row(b) + (unsigned)quad] = all;
}

static __global__ void __launch_bounds__(THREADS)
    finish_sums(twi_cuda_batch_norm b, const sums *parts, const float *variance, float *dscale, float *doffset,
                sums *means)
{
    int quad = quad_of_thread();
    sums all = merge_parts(b, parts, quad), mean = {};
    float rows = b.rows ? (float)b.rows : 1;
    if (threadIdx.y || quad >= quads_of_row(b))
        return;
    for (int k = 0; k < QUAD && quad * QUAD + k < b.channels; k++) {
        int c = quad * QUAD + k;
        float root = rsqrtf(variance[c] + b.epsilon);
        doffset[c] = all.gradients[k];
        dscale[c] = all.products[k] * root;
        mean.gradients[k] = b.training ? all.gradients[k] / rows : 0;
        mean.products[k] = b.training ? all.products[k] / rows * root * root : 0;
    }
    means[quad] = mean;
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS)
    spread_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, const sums *means, T *dx, T *dside)
{
    const int c = quad_of_thread() * QUAD, step = (int)blockDim.y, stride = (int)gridDim.x * SIDE_BY_SIDE * step;
    if (c >= b.channels)
        return;
    const quad_norm own = norm_of(b, in, c);
    const sums mean = means[c / QUAD];
    for (int first = (int)blockIdx.x * SIDE_BY_SIDE * step + (int)threadIdx.y; first < b.rows; first += stride) {
        float x[SIDE_BY_SIDE][QUAD], gradients[SIDE_BY_SIDE][QUAD];
        gradients_of<T, WHOLE>(b, in, own, first, b.rows, c, x, gradients);
        for (int i = 0; i < SIDE_BY_SIDE && first + i * step < b.rows; i++) {
            unsigned to = (unsigned)((first + i * step) * b.channels + c);
            if (dside)
                put_quad<WHOLE>(dside + to, gradients[i], c, b.channels);
            for (int k = 0; k < QUAD; k++)
                x[i][k] = own.factor[k] *
                          (gradients[i][k] - mean.gradients[k] - (x[i][k] - own.middle[k]) * mean.products[k]);
            put_quad<WHOLE>(dx + to, x[i], c, b.channels);
        }
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------ */

/* As many quads side by side as there are, up to a warp of them. */
static dim3 threads_of(const twi_cuda_batch_norm *b)
{
    unsigned width = 1;
    while (width < 32 && width * QUAD < (unsigned)b->channels)
        width *= 2;
    return dim3(width, THREADS / width);
}

static unsigned columns_of(const twi_cuda_batch_norm *b)
{
    unsigned width = threads_of(b).x * QUAD;
    return ((unsigned)b->channels + width - 1) / width;
}

/* So many blocks in all, if there is work for them: each thread takes so many rows at a time. */
static unsigned blocks_for_rows(const twi_cuda_batch_norm *b, unsigned blocks, int rows)
{
    unsigned each = (unsigned)rows * threads_of(b).y, most = ((unsigned)b->rows + each - 1) / each;
    unsigned wanted = blocks / (columns_of(b) + 1) + 1;
    return wanted < most ? wanted : most < 1 ? 1 : most;
}

/* Enough parts to fill a card, and few enough to be merged quickly. */
size_t twi_cuda_batch_norm_plan(twi_cuda_batch_norm *b)
{
    int parts = (int)blocks_for_rows(b, 1024, TOGETHER);
    b->rows_of_part = (b->rows + parts - 1) / parts;
    b->parts = b->rows_of_part ? (b->rows + b->rows_of_part - 1) / b->rows_of_part : 1;
    return (size_t)(b->parts + 1) * (size_t)((b->channels + QUAD - 1) / QUAD) * sizeof(moments);
}

static dim3 grid_of_rows(const twi_cuda_batch_norm *b)
{
    return dim3(blocks_for_rows(b, 2048, SIDE_BY_SIDE), columns_of(b));
}

cudaError_t twi_cuda_batch_norm_run(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                    const twi_cuda_normed *in, const twi_cuda_moments *to, void *y, void *workspace)
{
    dim3 grid((unsigned)b->parts, columns_of(b)), threads = threads_of(b);
    bool whole = are_whole(b->channels, in->x, in->side, y, NULL);
    moments *parts = (moments *)workspace;
    twi_cuda_normed with = *in;
    if (b->channels == 0)
        return cudaSuccess;
    if (b->training) {
        FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid, threads, 0, stream, moments_kernel<T, WHOLE>)(
                                           *b, (const T *)in->x, parts)))
        LAUNCH(dim3(1, grid.y), threads, 0, stream, finish_moments)(*b, parts, *to);
        with.mean = to->mean;
        with.variance = to->variance;
    }
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid_of_rows(b), threads, 0, stream, normalize_kernel<T, WHOLE>)(
                                       *b, with, (T *)y)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_batch_norm_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                     const twi_cuda_normed *in, void *dx, float *dscale, float *doffset, void *dside,
                                     void *workspace)
{
    dim3 grid((unsigned)b->parts, columns_of(b)), threads = threads_of(b);
    bool whole = are_whole(b->channels, in->x, in->y, in->gradients[0], in->gradients[1]) &&
                 are_whole(b->channels, dx, dside, NULL, NULL);
    sums *parts = (sums *)workspace, *means = parts + (size_t)b->parts * (size_t)((b->channels + QUAD - 1) / QUAD);
    if (b->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid, threads, 0, stream, sums_kernel<T, WHOLE>)(*b, *in, parts)))
    LAUNCH(dim3(1, grid.y), threads, 0, stream, finish_sums)(*b, parts, in->variance, dscale, doffset, means);
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid_of_rows(b), threads, 0, stream, spread_kernel<T, WHOLE>)(
                                       *b, *in, means, (T *)dx, (T *)dside)))
    return cudaGetLastError();
}
