/* dense_loss.cu - the last two layers of a network, their loss, and the gradients of both, in one launch. A block takes
 * some rows from the first product to the last; what lies between stays in its shared memory. Weights come from the
 * second cache, from where all blocks read them. Sums have an order of their own, the same in every run. */
#include "device/cuda/last_block.cuh"
#include "device/cuda/vector.cuh"

enum { ROWS = 4, DENSE_THREADS = 512, WIDE = 4, SHARERS = 8, PAIR = 2 };
static_assert(TWI_CUDA_DENSE_WIDTH * ROWS * 4 + DENSE_THREADS * WIDE * ROWS * 4 < 48 << 10, "shared memory of a block");

/* A number of each of the block's rows. */
struct alignas(16) several {
    float at[ROWS];
};

/* out = x * w of w[inner, columns], V columns a thread; as many threads as there are share a sum, and leave theirs in
 * parts. */
template <int V, typename T>
static __device__ void multiply(const T *w, int inner, int columns, const several *x, several *parts, several *out)
{
    const int groups = columns / V, splits = min(DENSE_THREADS / groups, inner);
    const int column = (int)threadIdx.x % groups * V, split = (int)threadIdx.x / groups;
    several sums[V] = {};
#pragma unroll 8
    for (int k = split < splits ? split : inner; k < inner; k += splits) {
        const several own = x[k];
        float y[V];
        widen(load<V, V>(w + (int64_t)k * columns + column), y);
#pragma unroll
        for (int v = 0; v < V; v++)
            for (int r = 0; r < ROWS; r++)
                sums[v].at[r] += own.at[r] * y[v];
    }
    for (int v = 0; v < V && split < splits; v++)
        parts[split * columns + column + v] = sums[v];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < columns; i += DENSE_THREADS) {
        several all = parts[i];
        for (int s = 1; s < splits; s++)
            for (int r = 0; r < ROWS; r++)
                all.at[r] += parts[s * columns + i].at[r];
        out[i] = all;
    }
    __syncthreads();
}

/* out = y * w' of w[outer, columns]: SHARERS threads a sum, V neighbours at a time. */
template <int V, typename T>
static __device__ void multiply_transposed(const T *w, int outer, int columns, const several *y, several *out)
{
    constexpr int AT_ONCE = DENSE_THREADS / SHARERS;
    const int lane = (int)threadIdx.x % SHARERS;
    for (int first = (int)threadIdx.x / SHARERS; first - (int)threadIdx.x / SHARERS < outer; first += PAIR * AT_ONCE) {
        several sums[PAIR] = {};
        for (int n = lane * V; n < columns; n += SHARERS * V) {
            float x[PAIR][V] = {};
            for (int i = 0; i < PAIR; i++)
                if (first + i * AT_ONCE < outer)
                    widen(load<V, V>(w + (int64_t)(first + i * AT_ONCE) * columns + n), x[i]);
#pragma unroll
            for (int v = 0; v < V; v++)
                for (int i = 0; i < PAIR; i++)
                    for (int r = 0; r < ROWS; r++)
                        sums[i].at[r] += x[i][v] * y[n + v].at[r];
        }
        for (int i = 0; i < PAIR; i++) {
            for (int step = SHARERS / 2; step > 0; step /= 2)
                for (int r = 0; r < ROWS; r++)
                    sums[i].at[r] += __shfl_xor_sync(0xffffffffu, sums[i].at[r], step);
            if (lane == 0 && first + i * AT_ONCE < outer)
                out[first + i * AT_ONCE] = sums[i];
        }
    }
    __syncthreads();
}

/* A layer's sums get their bias, as a T and back; with relu what is not above 0 is 0. */
template <typename T>
static __device__ void finish(bool relu, int columns, const T *bias, several *x, int64_t row, int64_t rows, T *to)
{
    for (int i = (int)threadIdx.x; i < columns; i += DENSE_THREADS)
        for (int r = 0; r < ROWS; r++) {
            float sum = x[i].at[r] + to_float(bias[i]);
            x[i].at[r] = rounded<T>(relu && sum <= 0 ? 0 : sum);
            if (to && row + r < rows)
                put(to + (row + r) * columns + i, x[i].at[r]);
        }
    __syncthreads();
}

/* What of the gradients the features let pass takes the features' place. */
template <typename T>
static __device__ void let_pass(bool relu, int columns, const several *gradients, several *features, int64_t row,
                                int64_t rows, T *to)
{
    for (int r = 0; r < ROWS; r++)
        for (int i = (int)threadIdx.x; i < columns; i += DENSE_THREADS) {
            float passed = relu && !(features[i].at[r] > 0) ? 0 : rounded<T>(gradients[i].at[r]);
            features[i].at[r] = passed;
            if (row + r < rows)
                put(to + (row + r) * columns + i, passed);
        }
    __syncthreads();
}

/* The row's loss; its logits become their gradients. A warp's work. */
template <typename T>
static __device__ void lose(const twi_cuda_dense_loss &p, several *logits, int r, int64_t row)
{
    const int lane = (int)threadIdx.x % 32;
    const bool there = row < p.rows;
    const int64_t label = !there ? 0 : p.wide ? ((const int64_t *)p.labels)[row] : ((const int32_t *)p.labels)[row];
    const bool known = label >= 0 && label < p.classes;
    float maximum = -INFINITY, sum = 0, factor = *p.scale / p.divisor, own = 0;
    for (int c = lane; c < p.classes; c += 32)
        maximum = fmaxf(maximum, logits[c].at[r]);
    for (int step = 16; step > 0; step /= 2)
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, step));
    for (int c = lane; c < p.classes; c += 32) {
        sum += expf(logits[c].at[r] - maximum);
        own += c == label ? logits[c].at[r] - maximum : 0;
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
        own += __shfl_xor_sync(0xffffffffu, own, step);
    }
    for (int c = lane; c < p.classes; c += 32) {
        float gradient = known ? expf(logits[c].at[r] - maximum) / sum - (c == label) : NAN;
        logits[c].at[r] = rounded<T>(gradient * factor);
        if (there)
            put((T *)p.dlogits + row * p.classes + c, gradient * factor);
    }
    if (lane == 0 && there)
        p.losses[row] = known ? logf(sum) - own : NAN;
}

/* The mean of all rows' losses, once they are there. */
static __device__ void average(const twi_cuda_dense_loss &p, float *sums)
{
    float sum = 0;
    for (int64_t i = threadIdx.x; i < p.rows; i += DENSE_THREADS)
        sum += p.losses[i];
    sums[threadIdx.x] = sum;
    for (int half = DENSE_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        *p.loss = sums[0] / (float)p.rows;
}

template <int V, typename T>
static __global__ void __launch_bounds__(DENSE_THREADS) dense_loss_kernel(twi_cuda_dense_loss p)
{
    DYNAMIC_SHARED(several, shared);
    several *x = shared, *hidden = x + p.inputs, *logits = hidden + p.hidden, *parts = logits + p.classes;
    const int64_t row = blockIdx.x * (int64_t)ROWS;
    for (int r = 0; r < ROWS; r++)
        for (int i = (int)threadIdx.x; i < p.inputs; i += DENSE_THREADS)
            x[i].at[r] = row + r < p.rows ? to_float(((const T *)p.x)[(row + r) * p.inputs + i]) : 0;
    __syncthreads();
    multiply<V>((const T *)p.weights, p.inputs, p.hidden, x, parts, hidden);
    finish(true, p.hidden, (const T *)p.bias, hidden, row, p.rows, (T *)p.h);
    multiply<1>((const T *)p.last_weights, p.hidden, p.classes, hidden, parts, logits);
    finish(false, p.classes, (const T *)p.last_bias, logits, row, p.rows, (T *)NULL);
    if (threadIdx.x < ROWS * 32)
        lose<T>(p, logits, (int)threadIdx.x / 32, row + threadIdx.x / 32);
    __syncthreads();
    multiply_transposed<1>((const T *)p.last_weights, p.hidden, p.classes, logits, parts);
    let_pass(true, p.hidden, parts, hidden, row, p.rows, (T *)p.dhidden);
    multiply_transposed<V>((const T *)p.weights, p.inputs, p.hidden, hidden, parts);
    let_pass(p.relu, p.inputs, parts, x, row, p.rows, (T *)p.dx);
    if (comes_last(p.counter, gridDim.x))
        average(p, (float *)shared);
}

bool twi_cuda_dense_loss_fits(int64_t inputs, int64_t hidden, int64_t classes)
{
    return inputs > 0 && hidden > 0 && classes > 0 && inputs + hidden + classes <= TWI_CUDA_DENSE_WIDTH &&
           hidden <= DENSE_THREADS && classes <= DENSE_THREADS;
}

template <typename T> static void launch(cudaStream_t stream, const twi_cuda_dense_loss &p)
{
    const unsigned blocks = (unsigned)((p.rows + ROWS - 1) / ROWS);
    const size_t shared = (size_t)(p.inputs + p.hidden + p.classes + DENSE_THREADS * WIDE) * sizeof(several);
    if (p.hidden % WIDE == 0 && is_aligned(p.weights, WIDE * sizeof(T)))
        LAUNCH(blocks, DENSE_THREADS, shared, stream, dense_loss_kernel<WIDE, T>)(p);
    else
        LAUNCH(blocks, DENSE_THREADS, shared, stream, dense_loss_kernel<1, T>)(p);
}

cudaError_t twi_cuda_dense_loss_run(cudaStream_t stream, tw_dtype type, const twi_cuda_dense_loss *p)
{
    FLOAT_TYPES(type, launch<T>(stream, *p))
    return cudaGetLastError();
}
