/* batch_norm.cu - batch normalization, with a sum and a ReLU behind it, and the gradients. x is [rows, channels]; a block
 * takes neighbouring channels of one part of the rows, a thread a quad of them. Of the blocks that share channels the last
 * merges what all have found, so that each way is two launches. Sizes alone say which rows meet in which order. */
#include "device/cuda/images.cuh"
#include "device/cuda/last_block.cuh"

static const int TOGETHER = 8; /* rows whose quads a thread has at hand while it sums, */
static const int SIDE_BY_SIDE = 4; /* and while it writes; loads do not wait for each other */

/* Blocks that a multiprocessor has room for: registers hold what these read, bytes enough to keep memory busy. */
template <typename T, bool WHOLE> static constexpr int AT_ONCE = WHOLE ? 8 / sizeof(T) : 2;

/* How many values there are in each channel of a quad, their means, and sums of squares of what they differ from it. */
struct alignas(16) moments {
    float mean[QUAD], squares[QUAD], count;
};

/* Of dy, and of dy * (x - mean); or their means over the rows. */
struct alignas(16) sums {
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

/* A quad as it lies in memory. Whole ones move as words, which take fewer registers and instructions. */
template <typename T> union alignas(QUAD * sizeof(T)) raw_quad {
    uint32_t words[QUAD * sizeof(T) / sizeof(uint32_t)];
    vector<T, QUAD> numbers;
};

static __device__ __forceinline__ float number_of(const raw_quad<float> &quad, int k)
{
    return __uint_as_float(quad.words[k]);
}

/* One instruction: a bfloat16 is the upper half of the float. */
static __device__ __forceinline__ float number_of(const raw_quad<__nv_bfloat16> &quad, int k)
{
    return __uint_as_float(k % 2 ? quad.words[k / 2] & 0xffff0000u : quad.words[k / 2] << 16);
}

static __device__ __forceinline__ float number_of(const raw_quad<__half> &quad, int k)
{
    return __half2float(__ushort_as_half((unsigned short)(quad.words[k / 2] >> k % 2 * 16)));
}

/* Quads of a thread's rows. Those of several tensors are taken before the first is looked at. */
template <typename T, int ROWS> struct quads_of_rows {
    raw_quad<T> of[ROWS];

    __device__ __forceinline__ float at(int i, int k) const
    {
        return number_of(of[i], k);
    }
};

/* From row `first` on; 0 from row `end` on, and where there is no tensor. */
template <bool WHOLE, int ROWS, typename T>
static __device__ __forceinline__ quads_of_rows<T, ROWS> take_rows(const twi_cuda_batch_norm &b, const T *from, int first,
                                                                   int end, int c)
{
    quads_of_rows<T, ROWS> rows = {};
    if (from)
        for (int i = 0; i < ROWS; i++) {
            int row = first + i * (int)blockDim.y;
            const T *quad = from + (unsigned)(row * b.channels + c);
            if (WHOLE && row < end)
                rows.of[i] = *(const raw_quad<T> *)quad;
            else
                for (int k = 0; k < QUAD && !WHOLE && row < end && c + k < b.channels; k++)
                    rows.of[i].numbers.at[k] = quad[k];
        }
    return rows;
}

/* Called by all threads with what they have found in their block's part. True where `all` is now what is true of all
 * rows: in row 0 of the threads of that block of its channels which comes last. */
template <typename V>
static __device__ __forceinline__ bool merge_parts(const twi_cuda_batch_norm &b, V *parts, unsigned *counters, V *all)
{
    const unsigned quad = (unsigned)quad_of_thread(), each = (unsigned)quads_of_row(b);
    *all = merge_rows(*all);
    if (threadIdx.y == 0 && quad < each)
        parts[blockIdx.x * each + quad] = *all;
    if (!comes_last(counters + blockIdx.y, gridDim.x))
        return false;
    *all = {};
#pragma unroll 4
    for (unsigned part = threadIdx.y; part < gridDim.x && quad < each; part += blockDim.y)
        merge(all, parts[part * each + quad]);
    *all = merge_rows(*all);
    return threadIdx.y == 0 && quad < each;
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/* Of the thread's next rows, from `row` on, one of which there is. */
template <typename T, bool WHOLE>
static __device__ __forceinline__ moments moments_of(const twi_cuda_batch_norm &b, const T *x, int row, int end, int c)
{
    quads_of_rows<T, TOGETHER> rows = take_rows<WHOLE, TOGETHER>(b, x, row, end, c);
    moments some = {};
    for (int i = 0; i < TOGETHER; i++) {
        some.count += row + i * (int)blockDim.y < end;
        for (int k = 0; k < QUAD; k++)
            some.mean[k] += rows.at(i, k);
    }
    float inverse = 1 / some.count;
    for (int k = 0; k < QUAD; k++)
        some.mean[k] *= inverse;
    for (int i = 0; i < TOGETHER; i++)
        for (int k = 0; k < QUAD; k++) {
            float apart = i < some.count ? rows.at(i, k) - some.mean[k] : 0;
            some.squares[k] += apart * apart;
        }
    return some;
}

static __device__ __forceinline__ void put_moments(const twi_cuda_batch_norm &b, const moments &all,
                                                   const twi_cuda_moments &to, int quad)
{
    float bessel = (float)((double)b.rows / (double)(b.rows > 1 ? b.rows - 1 : 1));
    for (int k = 0; k < QUAD && quad * QUAD + k < b.channels; k++) {
        int c = quad * QUAD + k;
        float variance = b.rows ? all.squares[k] / (float)b.rows : 0;
        to.mean[c] = all.mean[k];
        to.variance[c] = variance;
        to.batch_mean[c] = b.rows ? all.mean[k] : NAN;
        to.batch_variance[c] = b.rows ? variance * bessel : NAN;
    }
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, AT_ONCE<T, WHOLE>)
    moments_kernel(twi_cuda_batch_norm b, const T *x, twi_cuda_moments to, moments *parts, unsigned *counters)
{
    int quad = quad_of_thread(), c = quad * QUAD, end, begin = part_of_block(b, &end);
    moments all = {};
    for (int row = begin + (int)threadIdx.y; row < end && c < b.channels; row += TOGETHER * (int)blockDim.y)
        merge(&all, moments_of<T, WHOLE>(b, x, row, end, c));
    if (merge_parts(b, parts, counters, &all))
        put_moments(b, all, to, quad);
}

/* What a quad's values are normalized with. */
struct quad_norm {
    float middle[QUAD], factor[QUAD], shift[QUAD];
};

template <bool WHOLE>
static __device__ __forceinline__ quad_norm norm_of(const twi_cuda_batch_norm &b, const twi_cuda_normed &in, int c)
{
    quad_norm own;
    float variance[QUAD];
    take_quad<WHOLE>(own.middle, in.mean, c, b.channels);
    take_quad<WHOLE>(own.factor, in.scale, c, b.channels);
    take_quad<WHOLE>(own.shift, in.offset, in.offset ? c : b.channels, b.channels);
    take_quad<WHOLE>(variance, in.variance, c, b.channels);
    for (int k = 0; k < QUAD; k++)
        own.factor[k] *= rsqrtf(variance[k] + b.epsilon);
    return own;
}

static __device__ __forceinline__ float normalize(const quad_norm &own, int k, float x)
{
    return (x - own.middle[k]) * own.factor[k] + own.shift[k];
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, AT_ONCE<T, WHOLE>) normalize_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, T *y)
{
    const int c = quad_of_thread() * QUAD, step = (int)blockDim.y, stride = (int)gridDim.x * SIDE_BY_SIDE * step;
    if (c >= b.channels)
        return;
    const quad_norm own = norm_of<WHOLE>(b, in, c);
    for (int first = (int)blockIdx.x * SIDE_BY_SIDE * step + (int)threadIdx.y; first < b.rows; first += stride) {
        auto x = take_rows<WHOLE, SIDE_BY_SIDE>(b, (const T *)in.x, first, b.rows, c);
        auto sides = take_rows<WHOLE, SIDE_BY_SIDE>(b, (const T *)in.side, first, b.rows, c);
#pragma unroll
        for (int i = 0; i < SIDE_BY_SIDE && first + i * step < b.rows; i++) {
            float values[QUAD];
            for (int k = 0; k < QUAD; k++) {
                values[k] = normalize(own, k, x.at(i, k)) + sides.at(i, k);
                values[k] = b.relu && values[k] <= 0 ? 0 : values[k];
            }
            put_quad<WHOLE>(y + (unsigned)((first + i * step) * b.channels + c), values, c, b.channels);
        }
    }
}

/* ---- backward ------------------------------------------------------------------------------------------------------- */

/* Of a thread's rows: x, and the gradient of what the normalization gave. */
struct row_gradients {
    float x[SIDE_BY_SIDE][QUAD], gradients[SIDE_BY_SIDE][QUAD];
};

/* The gradient is the sum of those given, where the ReLU was open. */
template <typename T, bool WHOLE>
static __device__ __forceinline__ row_gradients gradients_of(const twi_cuda_batch_norm &b, const twi_cuda_normed &in,
                                                             const quad_norm &own, int first, int end, int c)
{
    auto x = take_rows<WHOLE, SIDE_BY_SIDE>(b, (const T *)in.x, first, end, c);
    auto one = take_rows<WHOLE, SIDE_BY_SIDE>(b, (const T *)in.gradients[0], first, end, c);
    auto other = take_rows<WHOLE, SIDE_BY_SIDE>(b, (const T *)in.gradients[1], first, end, c);
    auto y = take_rows<WHOLE, SIDE_BY_SIDE>(b, (const T *)in.y, first, end, c);
    row_gradients rows;
    for (int i = 0; i < SIDE_BY_SIDE; i++)
        for (int k = 0; k < QUAD; k++) {
            rows.x[i][k] = x.at(i, k);
            float output = in.y ? y.at(i, k) : normalize(own, k, rows.x[i][k]);
            float gradient = one.at(i, k) + other.at(i, k);
            rows.gradients[i][k] = !b.relu || output > 0 ? gradient : 0;
        }
    return rows;
}

/* The gradients of scale and offset, and what the rows' have in common. */
static __device__ __forceinline__ sums put_sums(const twi_cuda_batch_norm &b, const sums &all, const float *variance,
                                                float *dscale, float *doffset, int quad)
{
    float rows = b.rows ? (float)b.rows : 1;
    sums mean = {};
    for (int k = 0; k < QUAD && quad * QUAD + k < b.channels; k++) {
        int c = quad * QUAD + k;
        float root = rsqrtf(variance[c] + b.epsilon);
        doffset[c] = all.gradients[k];
        dscale[c] = all.products[k] * root;
        mean.gradients[k] = b.training ? all.gradients[k] / rows : 0;
        mean.products[k] = b.training ? all.products[k] / rows * root * root : 0;
    }
    return mean;
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, AT_ONCE<T, WHOLE>)
    sums_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, float *dscale, float *doffset, sums *means, sums *parts,
                unsigned *counters)
{
    int quad = quad_of_thread(), c = quad * QUAD, end, begin = part_of_block(b, &end);
    const quad_norm own = norm_of<WHOLE>(b, in, c);
    sums all = {};
    for (int row = begin + (int)threadIdx.y; row < end && c < b.channels; row += SIDE_BY_SIDE * (int)blockDim.y) {
        const row_gradients rows = gradients_of<T, WHOLE>(b, in, own, row, end, c);
        for (int i = 0; i < SIDE_BY_SIDE; i++)
            for (int k = 0; k < QUAD; k++) {
                all.gradients[k] += rows.gradients[i][k];
                all.products[k] += rows.gradients[i][k] * (rows.x[i][k] - own.middle[k]);
            }
    }
    if (merge_parts(b, parts, counters, &all))
        means[quad] = put_sums(b, all, in.variance, dscale, doffset, quad);
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(THREADS, AT_ONCE<T, WHOLE>)
    spread_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, const sums *means, T *dx, T *dside)
{
    const int c = quad_of_thread() * QUAD, step = (int)blockDim.y, stride = (int)gridDim.x * SIDE_BY_SIDE * step;
    if (c >= b.channels)
        return;
    const quad_norm own = norm_of<WHOLE>(b, in, c);
    const sums mean = means[c / QUAD];
    for (int first = (int)blockIdx.x * SIDE_BY_SIDE * step + (int)threadIdx.y; first < b.rows; first += stride) {
        row_gradients rows = gradients_of<T, WHOLE>(b, in, own, first, b.rows, c);
#pragma unroll
        for (int i = 0; i < SIDE_BY_SIDE && first + i * step < b.rows; i++) {
            unsigned to = (unsigned)((first + i * step) * b.channels + c);
            const float (&own_gradients)[QUAD] = rows.gradients[i];
            if (dside)
                put_quad<WHOLE>(dside + to, own_gradients, c, b.channels);
            for (int k = 0; k < QUAD; k++)
                rows.x[i][k] = own.factor[k] * (own_gradients[k] - mean.gradients[k] -
                                                (rows.x[i][k] - own.middle[k]) * mean.products[k]);
            put_quad<WHOLE>(dx + to, rows.x[i], c, b.channels);
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

static bool vectors_are_whole(const twi_cuda_batch_norm *b, const twi_cuda_normed *in)
{
    return are_whole(b->channels, in->scale, in->offset, in->mean, in->variance);
}

cudaError_t twi_cuda_batch_norm_run(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                    const twi_cuda_normed *in, const twi_cuda_moments *to, void *y, void *workspace,
                                    unsigned *counters)
{
    dim3 grid((unsigned)b->parts, columns_of(b)), threads = threads_of(b);
    bool whole = vectors_are_whole(b, in) && are_whole(b->channels, in->x, in->side, y, NULL);
    twi_cuda_normed with = *in;
    if (b->channels == 0)
        return cudaSuccess;
    if (b->training) {
        FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid, threads, 0, stream, moments_kernel<T, WHOLE>)(
                                           *b, (const T *)in->x, *to, (moments *)workspace, counters)))
        with.mean = to->mean;
        with.variance = to->variance;
    }
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid_of_rows(b), threads, 0, stream, normalize_kernel<T, WHOLE>)(
                                       *b, with, (T *)y)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_batch_norm_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                     const twi_cuda_normed *in, void *dx, float *dscale, float *doffset, void *dside,
                                     void *workspace, unsigned *counters)
{
    dim3 grid((unsigned)b->parts, columns_of(b)), threads = threads_of(b);
    bool whole = vectors_are_whole(b, in) &&
                 are_whole(b->channels, in->x, in->y, in->gradients[0], in->gradients[1]) &&
                 are_whole(b->channels, dx, dside, NULL, NULL);
    sums *parts = (sums *)workspace, *means = parts + (size_t)b->parts * (size_t)((b->channels + QUAD - 1) / QUAD);
    if (b->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid, threads, 0, stream, sums_kernel<T, WHOLE>)(
                                       *b, *in, dscale, doffset, means, parts, counters)))
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid_of_rows(b), threads, 0, stream, spread_kernel<T, WHOLE>)(
                                       *b, *in, means, (T *)dx, (T *)dside)))
    return cudaGetLastError();
}
