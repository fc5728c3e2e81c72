/* batch_norm.cu - batch normalization, with a sum and a ReLU behind it, and the gradients. x is [rows, channels]; a
 * block takes neighbouring channels, a thread a quad of them in every so many rows.
 *
 * Each way is two launches. In the first the rows are cut into parts, and a block finds what is true of its part. In
 * the second every block merges all parts for itself while its first rows are on their way: that is one more read for a
 * thread, where a block that came last and did it for all would have the second launch wait. Sizes alone say which rows
 * meet in which order, and two who merge what they have found get the same bits. */
#include "device/cuda/moments.cuh"

static const int NORM_THREADS = 512, WARP = 32, WARPS = NORM_THREADS / WARP;
static const int MOST_QUADS = 8;    /* of a block */
static const int NORM_BLOCKS = 128; /* one for each multiprocessor of a large card */
static const int LEAST_ROWS = 4;    /* of a thread, before there is another block */

/* Rows that a thread has at hand: loads do not wait for each other, and are bytes enough to keep memory busy. */
template <typename T> static constexpr int TOGETHER = 16 / sizeof(T);

/* Of dy, and of dy * (x - mean). */
struct sums {
    float gradients[QUAD], products[QUAD];
};

static __device__ __forceinline__ void merge(sums *a, const sums &b)
{
    for (int k = 0; k < QUAD; k++) {
        a->gradients[k] += b.gradients[k];
        a->products[k] += b.products[k];
    }
}

/* What the lanes of a warp have found in each quad, as one, in all of them. */
template <typename V> static __device__ __forceinline__ void merge_warp(V *value)
{
    for (int step = (int)blockDim.x; step < WARP; step *= 2)
        merge(value, other_lane(*value, step));
}

/* The same of a block, all of whose threads come. Each warp merges what all have found. */
template <typename V> static __device__ __forceinline__ void merge_block(V *value)
{
    __shared__ V found[WARPS * MOST_QUADS];
    const int width = (int)blockDim.x, thread = (int)threadIdx.y * width + (int)threadIdx.x, lane = thread % WARP;
    merge_warp(value);
    if (lane < width)
        found[thread / WARP * width + lane] = *value;
    __syncthreads();
    *value = {};
    for (int i = lane; i < WARPS * width; i += WARP)
        merge(value, found[i]);
    merge_warp(value);
}

/* Which quad of channels is the thread's. */
static __device__ __forceinline__ int quad_of_thread(void)
{
    return (int)(blockIdx.y * blockDim.x + threadIdx.x);
}

/* The first row of a part, and the first behind it. */
static __device__ __forceinline__ int begin_of(const twi_cuda_batch_norm &b, int part)
{
    return min(part * b.rows_of_part, b.rows);
}

/* Of the rows that a thread takes in a launch over all of them, `rows` at a time, the first; and how far it is to the
 * first of the next time. */
static __device__ __forceinline__ int first_row(int rows, int *stride)
{
    *stride = (int)(gridDim.x * blockDim.y) * rows;
    return (int)(blockIdx.x * blockDim.y) * rows + (int)threadIdx.y;
}

static __host__ __device__ __forceinline__ int quads_of_row(const twi_cuda_batch_norm &b)
{
    return (b.channels + QUAD - 1) / QUAD;
}

/* Quads of a thread's rows. Those of several tensors are taken before the first is looked at. */
template <typename T, int ROWS> struct quads_of_rows {
    raw<T, QUAD> of[ROWS];

    __device__ __forceinline__ float at(int i, int k) const
    {
        return number_of(of[i], k);
    }
};

/* From row `first` on; 0 from row `end` on, and where there is no tensor or no such channel. */
template <bool WHOLE, int ROWS, typename T>
static __device__ __forceinline__ quads_of_rows<T, ROWS> take_rows(const twi_cuda_batch_norm &b, const void *tensor,
                                                                   int first, int end, int c)
{
    quads_of_rows<T, ROWS> rows = {};
    if (tensor && c < b.channels)
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int row = first + i * (int)blockDim.y;
            const T *quad = (const T *)tensor + (unsigned)(row * b.channels + c);
            if (WHOLE && row < end)
                rows.of[i] = *(const raw<T, QUAD> *)quad;
            else
                for (int k = 0; k < QUAD && !WHOLE && row < end && c + k < b.channels; k++)
                    rows.of[i].numbers.at[k] = quad[k];
        }
    return rows;
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ part part_of(const sums &s)
{
    return {narrow<float, QUAD>(s.gradients), narrow<float, QUAD>(s.products)};
}

static __device__ __forceinline__ void take_part(const part &p, float, sums *s)
{
    widen(p.first, s->gradients);
    widen(p.second, s->products);
}

/* Leaves what the block's threads have found in its part of the rows. */
template <typename V>
static __device__ __forceinline__ void leave_part(const twi_cuda_batch_norm &b, part *parts, V *found)
{
    const int quad = quad_of_thread();
    merge_block(found);
    if (threadIdx.y == 0 && quad < quads_of_row(b))
        parts[(int)blockIdx.x * quads_of_row(b) + quad] = part_of(*found);
}

/* What is true of part p. */
template <typename V>
static __device__ __forceinline__ V part_at(const twi_cuda_batch_norm &b, part *parts, int p, int quad)
{
    const int quads = quads_of_row(b);
    const part own = {load<QUAD, QUAD>((const float *)parts[p * quads + quad].first.at),
                      load<QUAD, QUAD>((const float *)parts[p * quads + quad].second.at)};
    V found = {};
    take_part(own, b.counted ? rows_of_parts(parts, b.parts, quads)[p] : (float)(begin_of(b, p + 1) - begin_of(b, p)),
              &found);
    return found;
}

/* What is true of all rows: each row of threads takes every so many parts, and most have one. */
template <typename V> static __device__ __forceinline__ V merge_parts(const twi_cuda_batch_norm &b, part *parts)
{
    const int quad = quad_of_thread(), step = (int)blockDim.y;
    V all = {};
    int p = (int)threadIdx.y;
    if (p < b.parts && quad < quads_of_row(b))
        all = part_at<V>(b, parts, p, quad);
    for (p += step; p < b.parts && quad < quads_of_row(b); p += step)
        merge(&all, part_at<V>(b, parts, p, quad));
    merge_block(&all);
    return all;
}

/* Whether the thread is the one that tells of its quad what is true of all rows. */
static __device__ __forceinline__ bool tells(void)
{
    return blockIdx.x == 0 && threadIdx.y == 0;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Of the thread's next rows, from `row` on, one of which there is. */
template <typename T, bool WHOLE>
static __device__ __forceinline__ moments moments_of(const twi_cuda_batch_norm &b, const T *x, int row, int end, int c)
{
    constexpr int ROWS = TOGETHER<T>;
    const auto rows = take_rows<WHOLE, ROWS, T>(b, x, row, end, c);
    moments some = {};
    for (int i = 0; i < ROWS; i++) {
        some.count += row + i * (int)blockDim.y < end;
        for (int k = 0; k < QUAD; k++)
            some.mean[k] += rows.at(i, k);
    }
    float inverse = __fdividef(1, some.count);
    for (int k = 0; k < QUAD; k++)
        some.mean[k] *= inverse;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < QUAD; k++) {
            float apart = i < some.count ? rows.at(i, k) - some.mean[k] : 0;
            some.squares[k] += apart * apart;
        }
    return some;
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(NORM_THREADS, 1)
    moments_kernel(twi_cuda_batch_norm b, const T *x, part *parts)
{
    const int c = quad_of_thread() * QUAD, end = begin_of(b, (int)blockIdx.x + 1);
    moments all = {};
    for (int row = begin_of(b, (int)blockIdx.x) + (int)threadIdx.y; row < end; row += TOGETHER<T> * (int)blockDim.y)
        merge(&all, moments_of<T, WHOLE>(b, x, row, end, c));
    leave_part(b, parts, &all);
}

static __device__ __forceinline__ void put_moments(const twi_cuda_batch_norm &b, const moments &all,
                                                   const twi_cuda_moments &to, int c)
{
    for (int k = 0; k < QUAD && c + k < b.channels; k++) {
        float variance = all.squares[k] * b.share;
        to.mean[c + k] = all.mean[k];
        to.variance[c + k] = variance;
        to.batch_mean[c + k] = b.rows ? all.mean[k] : NAN;
        to.batch_variance[c + k] = b.rows ? variance * b.bessel : NAN;
    }
}

/* What a quad's values are normalized with. */
struct quad_norm {
    float middle[QUAD], factor[QUAD], shift[QUAD];
};

/* Of moments that are given; 0 where none are. */
template <bool WHOLE>
static __device__ __forceinline__ quad_norm take_norm(const twi_cuda_batch_norm &b, const twi_cuda_normed &in, int c,
                                                      float (&variance)[QUAD])
{
    quad_norm own;
    take_quad<WHOLE>(own.middle, in.mean, in.mean ? c : b.channels, b.channels);
    take_quad<WHOLE>(own.factor, in.scale, c, b.channels);
    take_quad<WHOLE>(own.shift, in.offset, in.offset ? c : b.channels, b.channels);
    take_quad<WHOLE>(variance, in.variance, in.variance ? c : b.channels, b.channels);
    return own;
}

/* The factor is the scale before. */
static __device__ __forceinline__ void divide_by_deviation(const twi_cuda_batch_norm &b, const float (&variance)[QUAD],
                                                           quad_norm *own)
{
    for (int k = 0; k < QUAD; k++)
        own->factor[k] *= rsqrtf(variance[k] + b.epsilon);
}

static __device__ __forceinline__ float normalize(const quad_norm &own, int k, float x)
{
    return (x - own.middle[k]) * own.factor[k] + own.shift[k];
}

/* While training, the moments are those of the parts, and are told. */
template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(NORM_THREADS, 1)
    normalize_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, twi_cuda_moments to, part *parts, T *y)
{
    constexpr int ROWS = TOGETHER<T>;
    const int c = quad_of_thread() * QUAD, step = (int)blockDim.y;
    int stride, first = first_row(ROWS, &stride);
    auto x = take_rows<WHOLE, ROWS, T>(b, in.x, first, b.rows, c);
    auto sides = take_rows<WHOLE, ROWS, T>(b, in.side, first, b.rows, c);
    float variance[QUAD];
    quad_norm own = take_norm<WHOLE>(b, in, c, variance);
    if (b.training) {
        const moments all = merge_parts<moments>(b, parts);
        if (tells())
            put_moments(b, all, to, c);
        for (int k = 0; k < QUAD; k++) {
            own.middle[k] = all.mean[k];
            variance[k] = all.squares[k] * b.share;
        }
    }
    divide_by_deviation(b, variance, &own);
    while (first < b.rows && c < b.channels) {
#pragma unroll
        for (int i = 0; i < ROWS && first + i * step < b.rows; i++) {
            float values[QUAD];
            for (int k = 0; k < QUAD; k++) {
                values[k] = normalize(own, k, x.at(i, k)) + sides.at(i, k);
                values[k] = b.relu && values[k] <= 0 ? 0 : values[k];
            }
            put_quad<WHOLE>(y + (unsigned)((first + i * step) * b.channels + c), values, c, b.channels);
        }
        first += stride;
        if (first < b.rows) {
            x = take_rows<WHOLE, ROWS, T>(b, in.x, first, b.rows, c);
            sides = take_rows<WHOLE, ROWS, T>(b, in.side, first, b.rows, c);
        }
    }
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* What the gradient of what the normalization gave is made of. */
template <typename T, int ROWS> struct taken {
    quads_of_rows<T, ROWS> x, one, other, y;
};

template <bool WHOLE, int ROWS, typename T>
static __device__ __forceinline__ taken<T, ROWS> take(const twi_cuda_batch_norm &b, const twi_cuda_normed &in,
                                                      int first, int end, int c)
{
    taken<T, ROWS> rows;
    rows.x = take_rows<WHOLE, ROWS, T>(b, in.x, first, end, c);
    rows.one = take_rows<WHOLE, ROWS, T>(b, in.gradients[0], first, end, c);
    rows.other = take_rows<WHOLE, ROWS, T>(b, in.gradients[1], first, end, c);
    rows.y = take_rows<WHOLE, ROWS, T>(b, in.y, first, end, c);
    return rows;
}

/* In row i: the sum of the gradients given, where the ReLU was open. */
template <typename T, int ROWS>
static __device__ __forceinline__ float gradient_of(const twi_cuda_batch_norm &b, const twi_cuda_normed &in,
                                                    const quad_norm &own, const taken<T, ROWS> &rows, int i, int k)
{
    float output = in.y ? rows.y.at(i, k) : normalize(own, k, rows.x.at(i, k));
    return !b.relu || output > 0 ? rows.one.at(i, k) + rows.other.at(i, k) : 0;
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(NORM_THREADS, 1)
    sums_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, part *parts)
{
    constexpr int ROWS = TOGETHER<T>;
    const int c = quad_of_thread() * QUAD, end = begin_of(b, (int)blockIdx.x + 1);
    int row = begin_of(b, (int)blockIdx.x) + (int)threadIdx.y;
    auto rows = take<WHOLE, ROWS, T>(b, in, row, end, c);
    float variance[QUAD];
    quad_norm own = take_norm<WHOLE>(b, in, c, variance);
    divide_by_deviation(b, variance, &own);
    sums all = {};
    while (row < end) {
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < QUAD; k++) {
                float gradient = gradient_of(b, in, own, rows, i, k);
                all.gradients[k] += gradient;
                all.products[k] += gradient * (rows.x.at(i, k) - own.middle[k]);
            }
        row += ROWS * (int)blockDim.y;
        if (row < end)
            rows = take<WHOLE, ROWS, T>(b, in, row, end, c);
    }
    leave_part(b, parts, &all);
}

/* The gradients of scale and offset; the sums become what the rows' gradients have in common. */
static __device__ __forceinline__ void put_sums(const twi_cuda_batch_norm &b, const float (&variance)[QUAD],
                                                float *dscale, float *doffset, int c, sums *all)
{
    for (int k = 0; k < QUAD; k++) {
        float root = rsqrtf(variance[k] + b.epsilon);
        if (tells() && c + k < b.channels) {
            doffset[c + k] = all->gradients[k];
            dscale[c + k] = all->products[k] * root;
        }
        all->gradients[k] *= b.training ? b.share : 0;
        all->products[k] *= b.training ? b.share * root * root : 0;
    }
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(NORM_THREADS, 1)
    spread_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, part *parts, float *dscale, float *doffset, T *dx,
                  T *dside)
{
    constexpr int ROWS = TOGETHER<T>;
    const int c = quad_of_thread() * QUAD, step = (int)blockDim.y;
    int stride, first = first_row(ROWS, &stride);
    auto rows = take<WHOLE, ROWS, T>(b, in, first, b.rows, c);
    float variance[QUAD];
    quad_norm own = take_norm<WHOLE>(b, in, c, variance);
    sums mean = merge_parts<sums>(b, parts);
    put_sums(b, variance, dscale, doffset, c, &mean);
    divide_by_deviation(b, variance, &own);
    while (first < b.rows && c < b.channels) {
#pragma unroll
        for (int i = 0; i < ROWS && first + i * step < b.rows; i++) {
            const unsigned to = (unsigned)((first + i * step) * b.channels + c);
            float gradients[QUAD], values[QUAD];
            for (int k = 0; k < QUAD; k++) {
                gradients[k] = gradient_of(b, in, own, rows, i, k);
                values[k] = own.factor[k] * (gradients[k] - mean.gradients[k] -
                                             (rows.x.at(i, k) - own.middle[k]) * mean.products[k]);
            }
            if (dside)
                put_quad<WHOLE>(dside + to, gradients, c, b.channels);
            put_quad<WHOLE>(dx + to, values, c, b.channels);
        }
        first += stride;
        if (first < b.rows)
            rows = take<WHOLE, ROWS, T>(b, in, first, b.rows, c);
    }
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

/* As many quads side by side as there are, up to MOST_QUADS. */
static dim3 threads_of(const twi_cuda_batch_norm *b)
{
    unsigned width = 1;
    while (width < MOST_QUADS && width * QUAD < (unsigned)b->channels)
        width *= 2;
    return dim3(width, NORM_THREADS / width);
}

static unsigned columns_of(const twi_cuda_batch_norm *b)
{
    unsigned width = threads_of(b).x * QUAD;
    return ((unsigned)b->channels + width - 1) / width;
}

/* For the rows of each column of blocks. */
static unsigned blocks_of(const twi_cuda_batch_norm *b)
{
    unsigned each = LEAST_ROWS * threads_of(b).y, wanted = ((unsigned)b->rows + each - 1) / each;
    unsigned most = (NORM_BLOCKS + columns_of(b) - 1) / columns_of(b);
    return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

/* A part for each block, and for each row of its threads, which merge them, one at most. */
size_t twi_cuda_batch_norm_plan(twi_cuda_batch_norm *b)
{
    int parts = (int)(blocks_of(b) < threads_of(b).y ? blocks_of(b) : threads_of(b).y);
    b->rows_of_part = (b->rows + parts - 1) / parts;
    b->parts = b->rows_of_part ? (b->rows + b->rows_of_part - 1) / b->rows_of_part : 1;
    b->share = b->rows ? 1 / (float)b->rows : 0;
    b->bessel = (float)((double)b->rows / (double)(b->rows > 1 ? b->rows - 1 : 1));
    return (size_t)b->parts * (size_t)quads_of_row(*b) * sizeof(part);
}

static dim3 grid_of_rows(const twi_cuda_batch_norm *b)
{
    return dim3(blocks_of(b), columns_of(b));
}

static bool vectors_are_whole(const twi_cuda_batch_norm *b, const twi_cuda_normed *in)
{
    return are_whole(b->channels, in->scale, in->offset, in->mean, in->variance);
}

cudaError_t twi_cuda_batch_norm_moments(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b, const void *x,
                                        void *workspace)
{
    dim3 grid((unsigned)b->parts, columns_of(b));
    if (b->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(are_whole(b->channels, x, NULL, NULL, NULL),
                            LAUNCH(grid, threads_of(b), 0, stream, moments_kernel<T, WHOLE>)(*b, (const T *)x,
                                                                                             (part *)workspace)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_batch_norm_run(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                    const twi_cuda_normed *in, const twi_cuda_moments *to, void *y, void *workspace)
{
    bool whole = vectors_are_whole(b, in) && are_whole(b->channels, in->x, in->side, y, NULL);
    twi_cuda_normed with = *in;
    if (b->channels == 0)
        return cudaSuccess;
    if (b->training)
        with.mean = with.variance = NULL;
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid_of_rows(b), threads_of(b), 0, stream, normalize_kernel<T, WHOLE>)(
                                       *b, with, *to, (part *)workspace, (T *)y)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_batch_norm_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                     const twi_cuda_normed *in, void *dx, float *dscale, float *doffset, void *dside,
                                     void *workspace)
{
    dim3 grid((unsigned)b->parts, columns_of(b)), threads = threads_of(b);
    bool whole = vectors_are_whole(b, in) &&
                 are_whole(b->channels, in->x, in->y, in->gradients[0], in->gradients[1]) &&
                 are_whole(b->channels, dx, dside, NULL, NULL);
    part *parts = (part *)workspace;
    if (b->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid, threads, 0, stream, sums_kernel<T, WHOLE>)(*b, *in, parts)))
    FLOAT_TYPES(type, QUADS(whole, LAUNCH(grid_of_rows(b), threads, 0, stream, spread_kernel<T, WHOLE>)(
                                       *b, *in, parts, dscale, doffset, (T *)dx, (T *)dside)))
    return cudaGetLastError();
}
