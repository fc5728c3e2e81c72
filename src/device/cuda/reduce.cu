/* reduce.cu - sums, means, extremes, their places and products along axes, in an order that sizes alone decide. */
#include "device/cuda/typed.cuh"

static const int COLUMN_BLOCK = 32, ROW_BLOCK = 8;

static __device__ float first_of(twi_cuda_fold fold)
{
    return fold == TWI_CUDA_LARGEST ? -INFINITY : fold == TWI_CUDA_SMALLEST ? INFINITY : fold == TWI_CUDA_PRODUCT;
}

static __device__ float combine(twi_cuda_fold fold, float a, float b)
{
    switch (fold) {
    case TWI_CUDA_LARGEST:
        return b > a || b != b ? b : a;
    case TWI_CUDA_SMALLEST:
        return b < a || b != b ? b : a;
    case TWI_CUDA_PRODUCT:
        return a * b;
    default:
        return a + b;
    }
}

static __device__ float finish(twi_cuda_fold fold, float a, int64_t inputs)
{
    return fold == TWI_CUDA_MEAN ? a / (float)inputs : fold == TWI_CUDA_HALF_SQUARES ? a * 0.5f : a;
}

static __device__ int64_t start_of(int64_t index, int count, const int64_t *size, const int64_t *step)
{
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        start += index % size[i] * step[i];
        index /= size[i];
    }
    return start;
}

/* The block's values as one, in thread 0. */
static __device__ float fold_block(twi_cuda_fold fold, float value)
{
    __shared__ float values[256];
    values[threadIdx.x] = value;
    for (unsigned half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            values[threadIdx.x] = combine(fold, values[threadIdx.x], values[threadIdx.x + half]);
    }
    return values[0];
}

/* A block for each part of each output: blockIdx.x = output * splits + part. */
template <typename T>
static __global__ void fold_kernel(twi_cuda_reduction d, const T *x, T *y, float *parts)
{
    int64_t o = blockIdx.x / d.splits, part = blockIdx.x % d.splits, size = (d.inputs + d.splits - 1) / d.splits;
    int64_t end = (part + 1) * size < d.inputs ? (part + 1) * size : d.inputs;
    const T *base = x + start_of(o, d.num_kept, d.kept_size, d.kept_step);
    float value = first_of(d.fold);
    for (int64_t k = part * size + threadIdx.x; k < end; k += blockDim.x) {
        float v = to_float(base[start_of(k, d.num_reduced, d.reduced_size, d.reduced_step)]);
        value = combine(d.fold, value, d.fold == TWI_CUDA_HALF_SQUARES ? v * v : v);
    }
    value = fold_block(d.fold, value);
    if (threadIdx.x == 0 && d.splits > 1)
        parts[blockIdx.x] = value;
    else if (threadIdx.x == 0)
        put(y + o, finish(d.fold, value, d.inputs));
}

/* A block for 32 columns of one part of the rows. */
template <typename T>
static __global__ void columns_kernel(twi_cuda_reduction d, const T *x, T *y, float *parts)
{
    __shared__ float values[ROW_BLOCK][COLUMN_BLOCK];
    int64_t column = blockIdx.x * (int64_t)COLUMN_BLOCK + threadIdx.x, part = blockIdx.y;
    int64_t size = (d.inputs + d.splits - 1) / d.splits;
    int64_t end = (part + 1) * size < d.inputs ? (part + 1) * size : d.inputs;
    float value = first_of(d.fold);
    for (int64_t k = part * size + threadIdx.y; k < end && column < d.outputs; k += ROW_BLOCK)
        value = combine(d.fold, value, to_float(x[k * d.outputs + column]));
    values[threadIdx.y][threadIdx.x] = value;
    for (unsigned half = ROW_BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            values[threadIdx.y][threadIdx.x] =
                combine(d.fold, values[threadIdx.y][threadIdx.x], values[threadIdx.y + half][threadIdx.x]);
    }
    if (threadIdx.y || column >= d.outputs)
        return;
    if (d.splits > 1)
        parts[column * d.splits + part] = values[0][threadIdx.x];
    else
        put(y + column, finish(d.fold, values[0][threadIdx.x], d.inputs));
}

/* The parts of each output, a block each. */
template <typename T> static __global__ void parts_kernel(twi_cuda_reduction d, const float *parts, T *y)
{
    float value = first_of(d.fold);
    for (int64_t k = threadIdx.x; k < d.splits; k += blockDim.x)
        value = combine(d.fold, value, parts[blockIdx.x * d.splits + k]);
    value = fold_block(d.fold, value);
    if (threadIdx.x == 0)
        put(y + blockIdx.x, finish(d.fold, value, d.inputs));
}

/* Enough blocks to fill a card, but no part of fewer than 1024 elements, or 64 rows. */
size_t twi_cuda_reduction_plan(twi_cuda_reduction *d)
{
    d->columns = d->num_kept == 1 && d->num_reduced == 1 && d->kept_step[0] == 1 && d->outputs > 1 &&
                 d->fold != TWI_CUDA_HALF_SQUARES;
    int64_t blocks = d->columns ? (d->outputs + COLUMN_BLOCK - 1) / COLUMN_BLOCK : d->outputs;
    int64_t most = d->inputs / (d->columns ? 64 : 1024), wanted = blocks ? 1024 / blocks : 1;
    d->splits = wanted < most ? wanted : most;
    if (d->splits < 1)
        d->splits = 1;
    return d->splits > 1 ? (size_t)(d->outputs * d->splits) * sizeof(float) : 0;
}

/* Float types and bool. */
#define FOLDED_TYPES(type, ...)                                                                                        \
    if ((type) == TW_BOOL) {                                                                                           \
        using T = bool;                                                                                                \
        __VA_ARGS__;                                                                                                   \
    } else {                                                                                                           \
        FLOAT_TYPES(type, __VA_ARGS__)                                                                                 \
    }

cudaError_t twi_cuda_reduce(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *x, void *y,
                            void *workspace)
{
    float *parts = (float *)workspace;
    if (d->outputs == 0)
        return cudaSuccess;
    if (d->outputs * d->splits > INT32_MAX)
        return cudaErrorInvalidValue;
    if (d->columns) {
        dim3 grid((unsigned)((d->outputs + COLUMN_BLOCK - 1) / COLUMN_BLOCK), (unsigned)d->splits);
        FOLDED_TYPES(type, LAUNCH(grid, dim3(COLUMN_BLOCK, ROW_BLOCK), 0, stream, columns_kernel<T>)(*d, (const T *)x,
                                                                                                 (T *)y, parts))
    } else {
        FOLDED_TYPES(type, LAUNCH((unsigned)(d->outputs * d->splits), THREADS, 0, stream, fold_kernel<T>)(
                              *d, (const T *)x, (T *)y, parts))
    }
    if (d->splits > 1) {
        FOLDED_TYPES(type, LAUNCH((unsigned)d->outputs, THREADS, 0, stream, parts_kernel<T>)(*d, parts, (T *)y))
    }
    return cudaGetLastError();
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

/* A value and its number along the axis; number -1: none yet. */
struct found {
    float value;
    int64_t number;
};

static __device__ found better(twi_cuda_fold fold, found a, found b)
{
    bool beats = fold == TWI_CUDA_LARGEST ? b.value > a.value : b.value < a.value;
    if (b.number < 0 || a.number < 0)
        return b.number < 0 ? a : b;
    return beats || (b.value == a.value && b.number < a.number) ? b : a;
}

/* A row of threads for each output. */
template <typename T, typename I>
static __global__ void extreme_kernel(twi_cuda_reduction d, const T *x, I *places)
{
    __shared__ found all[ROW_BLOCK][COLUMN_BLOCK];
    int64_t o = blockIdx.x * (int64_t)ROW_BLOCK + threadIdx.y, step = d.num_reduced ? d.reduced_step[0] : 0;
    const T *base = x + (o < d.outputs ? start_of(o, d.num_kept, d.kept_size, d.kept_step) : 0);
    found own = {0, -1};
    for (int64_t k = threadIdx.x; k < d.inputs && o < d.outputs; k += COLUMN_BLOCK) {
        float value = to_float(base[k * step]);
        if (value == value)
            own = better(d.fold, own, {value, k});
    }
    all[threadIdx.y][threadIdx.x] = own;
    for (unsigned half = COLUMN_BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            all[threadIdx.y][threadIdx.x] =
                better(d.fold, all[threadIdx.y][threadIdx.x], all[threadIdx.y][threadIdx.x + half]);
    }
    if (threadIdx.x || o >= d.outputs)
        return;
    float first = to_float(base[0]);
    found best = all[threadIdx.y][0];
    places[o] = first != first || best.number < 0 ? 0 : (I)best.number;
}

cudaError_t twi_cuda_find_extreme(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *x,
                                  tw_dtype to, void *places)
{
    unsigned blocks = (unsigned)((d->outputs + ROW_BLOCK - 1) / ROW_BLOCK);
    if (d->outputs == 0)
        return cudaSuccess;
    if (to == TW_INT64)
        FLOAT_TYPES(type, LAUNCH(blocks, dim3(COLUMN_BLOCK, ROW_BLOCK), 0, stream, extreme_kernel<T, int64_t>)(
                              *d, (const T *)x, (int64_t *)places))
    else
        FLOAT_TYPES(type, LAUNCH(blocks, dim3(COLUMN_BLOCK, ROW_BLOCK), 0, stream, extreme_kernel<T, int32_t>)(
                              *d, (const T *)x, (int32_t *)places))
    return cudaGetLastError();
}
