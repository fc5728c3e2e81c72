/* reduce.cu - sums, means, extremes and products along axes, in an order that sizes alone decide. */
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
        return b > a ? b : a;
    case TWI_CUDA_SMALLEST:
        return b < a ? b : a;
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
        FLOAT_TYPES(type, LAUNCH(grid, dim3(COLUMN_BLOCK, ROW_BLOCK), 0, stream, columns_kernel<T>)(*d, (const T *)x,
                                                                                                (T *)y, parts))
    } else {
        FLOAT_TYPES(type, LAUNCH((unsigned)(d->outputs * d->splits), THREADS, 0, stream, fold_kernel<T>)(
                              *d, (const T *)x, (T *)y, parts))
    }
    if (d->splits > 1)
        FLOAT_TYPES(type, LAUNCH((unsigned)d->outputs, THREADS, 0, stream, parts_kernel<T>)(*d, parts, (T *)y))
    return cudaGetLastError();
}
