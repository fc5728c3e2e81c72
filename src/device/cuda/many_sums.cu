/* many_sums.cu - half the sums of squares of many tensors at once, or whether all of each is finite, which is a sum
 * of those that are not: a block for each piece of a tensor, and the last block to finish adds the parts of each, in
 * their order. */
#include "device/cuda/last_block.cuh"
#include "device/cuda/many.cuh"

static const int ROUNDS = 4, TURN = ROUNDS * CHUNK; /* loads of a thread under way at once, and elements of a block's */
static const int WARP = 32, SHARERS = 8;            /* threads that add up a tensor's parts */
static const int PARTS_AT_ONCE = 2;                 /* of a thread, that it reads: with all threads all parts */
static_assert(THREADS * PARTS_AT_ONCE >= TWI_CUDA_MANY_SUMS_PARTS, "all parts");

/* The sum over the neighbours that share it, a power of two, in all of them. */
static __device__ __forceinline__ float sum_of(int sharers, float x)
{
    for (int step = sharers / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* The sum over a block, in thread 0. */
static __device__ __forceinline__ float sum_of_block(float x)
{
    __shared__ float sums[THREADS / WARP];
    x = sum_of(WARP, x);
    if (threadIdx.x % WARP == 0)
        sums[threadIdx.x / WARP] = x;
    __syncthreads();
    float sum = 0;
    for (int warp = 0; warp < THREADS / WARP && threadIdx.x == 0; warp++)
        sum += sums[warp];
    return sum;
}

/* The squares of the first `count` of x, a turn of the block's at most, or how many of these are not finite. */
template <typename T, bool FINITE> static __device__ __forceinline__ float add_turn(const T *x, int count, float sum)
{
    const bool whole = count >= TURN && is_aligned(x);
    raw<T, TOGETHER> some[ROUNDS] = {};
#pragma unroll
    for (int i = 0; i < ROUNDS; i++) {
        const int at = i * CHUNK + (int)threadIdx.x * TOGETHER;
        if (whole)
            some[i] = *(const raw<T, TOGETHER> *)(x + at);
        else
            for (int k = 0; k < TOGETHER; k++)
                if (at + k < count)
                    some[i].numbers.at[k] = x[at + k];
    }
#pragma unroll
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < TOGETHER; k++)
            if (const float number = number_of(some[i], k); FINITE)
                sum += fabsf(number) < INFINITY ? 0 : 1;
            else
                sum += number * number;
    return sum;
}

/* What the last block makes of all parts. */
template <typename T, bool FINITE>
static __device__ __forceinline__ void put_sums(const twi_cuda_many_sums &l, const float *parts, int count)
{
    __shared__ float all[THREADS * PARTS_AT_ONCE];
    float own[PARTS_AT_ONCE] = {};
#pragma unroll
    for (int i = 0; i < PARTS_AT_ONCE; i++)
        if (int at = i * THREADS + (int)threadIdx.x; at < count)
            own[i] = parts[at];
#pragma unroll
    for (int i = 0; i < PARTS_AT_ONCE; i++)
        all[i * THREADS + threadIdx.x] = own[i];
    __syncthreads();
    for (int first = 0; first < l.count; first += THREADS / SHARERS) {
        const int v = first + (int)threadIdx.x / SHARERS, end = v < l.count ? l.first_block[v + 1] : 0;
        float sum = 0;
#pragma unroll 4
        for (int b = v < l.count ? l.first_block[v] + (int)threadIdx.x % SHARERS : 0; b < end; b += SHARERS)
            sum += all[b];
        sum = sum_of(SHARERS, sum);
        if (v < l.count && threadIdx.x % SHARERS == 0) {
            if (FINITE)
                *(bool *)l.to[v] = sum == 0;
            else
                put((T *)l.to[v], sum * 0.5f);
        }
    }
}

template <typename T, bool FINITE>
static __global__ void __launch_bounds__(THREADS)
    many_sums_kernel(twi_cuda_many_sums l, int piece, float *parts, unsigned *counter)
{
    const int v = array_of_block(l.count, l.first_block), begin = ((int)blockIdx.x - l.first_block[v]) * piece;
    const int end = min(l.elements[v] - begin, piece);
    const T *x = (const T *)l.x[v] + begin;
    float sum = 0;
    for (int at = 0; at < end; at += TURN)
        sum = add_turn<T, FINITE>(x + at, end - at, sum);
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
    if (comes_last(counter, gridDim.x))
        put_sums<T, FINITE>(l, parts, (int)gridDim.x);
}

/* So many turns a block that there are no more blocks than parts, one at least for each tensor. */
static int piece_of(const twi_cuda_many_sums *l)
{
    int64_t elements = 0;
    for (int v = 0; v < l->count; v++)
        elements += l->elements[v];
    return (int)(elements / ((TWI_CUDA_MANY_SUMS_PARTS - TWI_CUDA_MANY) * (int64_t)TURN) + 1) * TURN;
}

cudaError_t twi_cuda_many_sums_run(cudaStream_t stream, tw_dtype type, bool finite, twi_cuda_many_sums *sums,
                                   float *parts, unsigned *counter)
{
    const int piece = piece_of(sums);
    int blocks = 0;
    for (int v = 0; v < sums->count; v++) {
        sums->first_block[v] = blocks;
        blocks += sums->elements[v] / piece + 1;
    }
    sums->first_block[sums->count] = blocks;
    FLOAT_TYPES(type, const auto kernel = finite ? many_sums_kernel<T, true> : many_sums_kernel<T, false>;
                LAUNCH((unsigned)blocks, THREADS, 0, stream, kernel)(*sums, piece, parts, counter))
    return cudaGetLastError();
}
