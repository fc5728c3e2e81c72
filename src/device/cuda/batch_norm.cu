/* batch_norm.cu - batch normalization, with a sum and a ReLU behind it, and the gradients. x is [rows, channels]; a block
 * takes neighbouring channels of one part of the rows, a thread one channel. Sizes alone say which rows meet in which
 * order. */
#include "device/cuda/typed.cuh"

static const int TOGETHER = 8; /* values that a thread has at hand at a time */

/* How many values there are, their mean, and the sum of the squares of what they differ from it. */
struct moments {
    float count, mean, squares;
};

/* Of dy, and of dy * (x - mean); or their means over the rows. */
struct sums {
    float gradients, products;
};

static __device__ moments merge(moments a, moments b)
{
    float count = a.count + b.count, apart = b.mean - a.mean;
    if (count == 0)
        return a;
    float share = b.count / count;
    return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

static __device__ sums merge(sums a, sums b)
{
    return {a.gradients + b.gradients, a.products + b.products};
}

/* What the rows of threads of a block have found in each channel, as one, in row 0. */
template <typename V> static __device__ V merge_rows(V value)
{
    __shared__ V values[THREADS];
    unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
    values[at] = value;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            values[at] = merge(values[at], values[at + half * blockDim.x]);
    }
    return values[at];
}

static __device__ int64_t channel_of_thread(void)
{
    return blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
}

/* The first row of the block's part, and the first behind it. */
static __device__ int64_t part_of_block(const twi_cuda_batch_norm &b, int64_t *end)
{
    int64_t size = (b.rows + b.parts - 1) / b.parts, begin = blockIdx.y * size;
    *end = begin + size < b.rows ? begin + size : b.rows;
    return begin;
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

template <typename T>
static __global__ void moments_kernel(twi_cuda_batch_norm b, const T *x, moments *parts)
{
    int64_t c = channel_of_thread(), end, begin = part_of_block(b, &end);
    moments all = {0, 0, 0};
    for (int64_t row = begin + threadIdx.y; row < end && c < b.channels; row += TOGETHER * blockDim.y) {
        float values[TOGETHER];
        moments some = {0, 0, 0};
        for (int i = 0; i < TOGETHER; i++) {
            int64_t at = row + i * blockDim.y;
            values[i] = at < end ? to_float(x[at * b.channels + c]) : 0;
            some.mean += values[i];
            some.count += at < end;
        }
        some.mean /= some.count;
        for (int i = 0; i < TOGETHER; i++) {
            float apart = i < some.count ? values[i] - some.mean : 0;
            some.squares += apart * apart;
        }
        all = merge(all, some);
    }
    all = merge_rows(all);
    if (threadIdx.y == 0 && c < b.channels)
        parts[blockIdx.y * b.channels + c] = all;
}

template <typename V> static __device__ V merge_parts(const twi_cuda_batch_norm &b, const V *parts, int64_t c)
{
    V all = {};
    for (int64_t part = threadIdx.y; part < b.parts && c < b.channels; part += blockDim.y)
        all = merge(all, parts[part * b.channels + c]);
    return merge_rows(all);
}

static __global__ void finish_moments(twi_cuda_batch_norm b, const moments *parts, twi_cuda_moments to)
{
    int64_t c = channel_of_thread();
    moments all = merge_parts(b, parts, c);
    if (threadIdx.y || c >= b.channels)
        return;
    float variance = b.rows ? all.squares / (float)b.rows : 0;
    double bessel = (double)b.rows / (double)(b.rows > 1 ? b.rows - 1 : 1);
    to.mean[c] = all.mean;
    to.variance[c] = variance;
    to.batch_mean[c] = b.rows ? all.mean : NAN;
    to.batch_variance[c] = b.rows ? (float)(variance * bessel) : NAN;
}

/* What a channel's values are normalized with. */
struct channel {
    float middle, factor, shift;
};

static __device__ channel channel_of(const twi_cuda_batch_norm &b, const twi_cuda_normed &in, int64_t c)
{
    return {in.mean[c], in.scale[c] / sqrtf(in.variance[c] + b.epsilon), in.offset ? in.offset[c] : 0};
}

static __device__ float normalize(const channel &own, float x)
{
    return (x - own.middle) * own.factor + own.shift;
}

template <typename T>
static __global__ void normalize_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, T *y)
{
    const T *x = (const T *)in.x, *side = (const T *)in.side;
    int64_t c = channel_of_thread(), end, begin = part_of_block(b, &end);
    if (c >= b.channels)
        return;
    channel own = channel_of(b, in, c);
    for (int64_t row = begin + threadIdx.y; row < end; row += blockDim.y) {
        int64_t at = row * b.channels + c;
        float value = normalize(own, to_float(x[at]));
        if (side)
            value += to_float(side[at]);
        put(y + at, b.relu && value <= 0 ? 0 : value);
    }
}

/* ---- backward ------------------------------------------------------------------------------------------------------- */

/* Of what the normalization gave: the sum of those given, where the ReLU was open. */
template <typename T>
static __device__ float gradient_at(const twi_cuda_batch_norm &b, const twi_cuda_normed &in, const channel &own,
                                    int64_t at, float x)
{
    float gradient = to_float(((const T *)in.gradients[0])[at]);
    if (in.gradients[1])
        gradient += to_float(((const T *)in.gradients[1])[at]);
    if (!b.relu)
        return gradient;
    return (in.y ? to_float(((const T *)in.y)[at]) : normalize(own, x)) > 0 ? gradient : 0;
}

template <typename T>
static __global__ void sums_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, sums *parts)
{
    int64_t c = channel_of_thread(), end, begin = part_of_block(b, &end);
    channel own = {0, 0, 0};
    sums all = {0, 0};
    if (c < b.channels)
        own = channel_of(b, in, c);
    for (int64_t row = begin + threadIdx.y; row < end && c < b.channels; row += blockDim.y) {
        int64_t at = row * b.channels + c;
        float x = to_float(((const T *)in.x)[at]), gradient = gradient_at<T>(b, in, own, at, x);
        all.gradients += gradient;
        all.products += gradient * (x - own.middle);
    }
    all = merge_rows(all);
    if (threadIdx.y == 0 && c < b.channels)
        parts[blockIdx.y * b.channels + c] = all;
}

static __global__ void finish_sums(twi_cuda_batch_norm b, const sums *parts, const float *variance, float *dscale,
                                   float *doffset, sums *means)
{
    int64_t c = channel_of_thread();
    sums all = merge_parts(b, parts, c);
    if (threadIdx.y || c >= b.channels)
        return;
    float root = 1 / sqrtf(variance[c] + b.epsilon), rows = b.rows ? (float)b.rows : 1;
    doffset[c] = all.gradients;
    dscale[c] = all.products * root;
    means[c] = {b.training ? all.gradients / rows : 0, b.training ? all.products / rows * root * root : 0};
}

template <typename T>
static __global__ void spread_kernel(twi_cuda_batch_norm b, twi_cuda_normed in, const sums *means, T *dx, T *dside)
{
    int64_t c = channel_of_thread(), end, begin = part_of_block(b, &end);
    if (c >= b.channels)
        return;
    channel own = channel_of(b, in, c);
    sums mean = means[c];
    for (int64_t row = begin + threadIdx.y; row < end; row += blockDim.y) {
        int64_t at = row * b.channels + c;
        float x = to_float(((const T *)in.x)[at]), gradient = gradient_at<T>(b, in, own, at, x);
        if (dside)
            put(dside + at, gradient);
        put(dx + at, own.factor * (gradient - mean.gradients - (x - own.middle) * mean.products));
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------ */

/* As many channels side by side as there are, up to a warp of them. */
static dim3 threads_of(const twi_cuda_batch_norm *b)
{
    unsigned width = 1;
    while (width < 32 && width < b->channels)
        width *= 2;
    return dim3(width, THREADS / width);
}

static unsigned columns_of(const twi_cuda_batch_norm *b)
{
    unsigned width = threads_of(b).x;
    return (unsigned)((b->channels + width - 1) / width);
}

/* Enough blocks to fill a card, but no part of fewer rows than a block has at hand at a time. */
size_t twi_cuda_batch_norm_plan(twi_cuda_batch_norm *b)
{
    int64_t most = b->rows / (TOGETHER * (int64_t)threads_of(b).y), columns = columns_of(b);
    int64_t wanted = columns ? 2048 / columns : 1;
    b->parts = wanted < most ? wanted : most;
    if (b->parts < 1)
        b->parts = 1;
    return (size_t)(b->parts + 1) * (size_t)b->channels * sizeof(moments);
}

cudaError_t twi_cuda_batch_norm_run(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                    const twi_cuda_normed *in, const twi_cuda_moments *to, void *y, void *workspace)
{
    dim3 grid(columns_of(b), (unsigned)b->parts), threads = threads_of(b);
    moments *parts = (moments *)workspace;
    twi_cuda_normed with = *in;
    if (b->channels == 0)
        return cudaSuccess;
    if (b->training) {
        FLOAT_TYPES(type, LAUNCH(grid, threads, 0, stream, moments_kernel<T>)(*b, (const T *)in->x, parts))
        LAUNCH(grid.x, threads, 0, stream, finish_moments)(*b, parts, *to);
        with.mean = to->mean;
        with.variance = to->variance;
    }
    FLOAT_TYPES(type, LAUNCH(grid, threads, 0, stream, normalize_kernel<T>)(*b, with, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_batch_norm_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_batch_norm *b,
                                     const twi_cuda_normed *in, void *dx, float *dscale, float *doffset, void *dside,
                                     void *workspace)
{
    dim3 grid(columns_of(b), (unsigned)b->parts), threads = threads_of(b);
    sums *parts = (sums *)workspace, *means = parts + b->parts * b->channels;
    if (b->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(grid, threads, 0, stream, sums_kernel<T>)(*b, *in, parts))
    LAUNCH(grid.x, threads, 0, stream, finish_sums)(*b, parts, in->variance, dscale, doffset, means);
    FLOAT_TYPES(type, LAUNCH(grid, threads, 0, stream, spread_kernel<T>)(*b, *in, means, (T *)dx, (T *)dside))
    return cudaGetLastError();
}
