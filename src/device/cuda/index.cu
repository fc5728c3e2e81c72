/* index.cu - rows that numbers name: taken from an array, added up where they point, made of them. What a number that
 * is no row's names is zeros, and adds nothing, as on TensorFlow's GPUs: nobody could be told in time. */
#include "device/cuda/divide.cuh"
#include "device/cuda/typed.cuh"

static const int LANES = 32, COLUMNS = 8; /* that a lane adds up at once */

struct gathering {
    int count;
    int64_t rows, row;
    twi_divider row_by, picked, outer;
    bool wide;
};

template <typename U>
static __global__ void gather_kernel(gathering g, const U *x, const void *numbers, U *y)
{
    EACH(i, g.count)
    {
        uint32_t at, k, o;
        uint32_t rest = twi_divide(g.row_by, (uint32_t)i, &at);
        uint32_t batch = twi_divide(g.outer, twi_divide(g.picked, rest, &k), &o);
        int64_t number = integer_at(g.wide, numbers, (int64_t)batch * g.picked.divisor + k);
        int64_t from = ((int64_t)batch * g.outer.divisor + o) * g.rows + number;
        U value = {};
        if (number >= 0 && number < g.rows)
            value = x[from * g.row + at];
        y[i] = value;
    }
}

template <typename U>
static __global__ void one_hot_kernel(int count, twi_divider depth, twi_divider inner, bool wide, const void *numbers,
                                      const U *on, const U *off, U *y)
{
    EACH(i, count)
    {
        uint32_t at, k;
        uint32_t outer = twi_divide(depth, twi_divide(inner, (uint32_t)i, &at), &k);
        y[i] = integer_at(wide, numbers, (int64_t)outer * inner.divisor + at) == k ? *on : *off;
    }
}

template <typename U>
static __global__ void band_kernel(int count, twi_divider rows, twi_divider columns, bool wide, const void *lower,
                                   const void *upper, const U *x, U *y)
{
    int64_t below = integer_at(wide, lower, 0), above = integer_at(wide, upper, 0);
    EACH(i, count)
    {
        uint32_t row, column;
        twi_divide(rows, twi_divide(columns, (uint32_t)i, &column), &row);
        int64_t ahead = (int64_t)column - row;
        U nothing = {};
        y[i] = (below < 0 || -ahead <= below) && (above < 0 || ahead <= above) ? x[i] : nothing;
    }
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* What sums are in. */
template <typename T> struct sum_of {
    using type = float;
};
template <> struct sum_of<int32_t> {
    using type = uint32_t;
};
template <> struct sum_of<int64_t> {
    using type = uint64_t;
};

template <typename T> static __device__ __forceinline__ float widened(T x)
{
    return to_float(x);
}

static __device__ __forceinline__ uint32_t widened(int32_t x)
{
    return (uint32_t)x;
}

static __device__ __forceinline__ uint64_t widened(int64_t x)
{
    return (uint64_t)x;
}

static __device__ __forceinline__ void put(int32_t *to, uint32_t x)
{
    *to = (int32_t)x;
}

static __device__ __forceinline__ void put(int64_t *to, uint64_t x)
{
    *to = (int64_t)x;
}

/* Which of the 32 numbers from `begin` on, before `end`, are that one; for all lanes. */
static __device__ __forceinline__ unsigned alike(bool wide, const void *numbers, int64_t number, int64_t begin,
                                                 int64_t end)
{
    int64_t k = begin + threadIdx.x;
    return __ballot_sync(0xffffffffu, k < end && integer_at(wide, numbers, k) == number);
}

/* A warp takes a number; the first of those that are alike adds up the updates of all, in their order. */
template <typename T>
static __global__ void add_rows_kernel(bool subtracts, int64_t n, int64_t rows, int64_t row, bool wide,
                                       const void *numbers, const T *updates, T *to)
{
    using S = typename sum_of<T>::type;
    int64_t i = blockIdx.x * (int64_t)blockDim.y + threadIdx.y;
    int64_t number = i < n ? integer_at(wide, numbers, i) : -1;
    bool first = number >= 0 && number < rows;
    for (int64_t begin = 0; begin < i && first; begin += LANES)
        first = alike(wide, numbers, number, begin, i) == 0;
    for (int64_t c = threadIdx.x; first && c - threadIdx.x < row; c += LANES * COLUMNS) {
        S sums[COLUMNS];
        for (int v = 0; v < COLUMNS; v++)
            sums[v] = c + v * LANES < row ? (S)widened(to[number * row + c + v * LANES]) : (S)0;
        for (int64_t begin = i; begin < n; begin += LANES)
            for (unsigned which = alike(wide, numbers, number, begin, n); which; which &= which - 1) {
                const T *update = updates + (begin + __ffs((int)which) - 1) * row + c;
                for (int v = 0; v < COLUMNS && c + v * LANES < row; v++) {
                    S x = (S)widened(update[v * LANES]);
                    sums[v] = subtracts ? sums[v] - x : sums[v] + x;
                }
            }
        for (int v = 0; v < COLUMNS && c + v * LANES < row; v++)
            put(to + number * row + c + v * LANES, sums[v]);
    }
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

cudaError_t twi_cuda_gather(cudaStream_t stream, const twi_cuda_picking *p, const void *x, bool wide,
                            const void *numbers, void *y)
{
    int bytes = 16; /* as large a piece as rows are made of, and both arrays lie by */
    while (p->row_bytes % bytes || ((uintptr_t)x | (uintptr_t)y) % (uintptr_t)bytes)
        bytes /= 2;
    gathering g = {};
    g.row = p->row_bytes / bytes;
    g.count = (int)(p->batch * p->outer * p->picked * g.row);
    g.rows = p->rows;
    g.row_by = twi_divider_of(g.row);
    g.picked = twi_divider_of(p->picked);
    g.outer = twi_divider_of(p->outer);
    g.wide = wide;
    if (g.count == 0)
        return cudaSuccess;
    if (bytes == 16)
        LAUNCH(blocks_for(g.count), THREADS, 0, stream, gather_kernel<uint4>)(g, (const uint4 *)x, numbers, (uint4 *)y);
    else
        SIZED_TYPES(bytes, LAUNCH(blocks_for(g.count), THREADS, 0, stream, gather_kernel<T>)(g, (const T *)x, numbers,
                                                                                             (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_one_hot(cudaStream_t stream, int bytes, int64_t outer, int64_t depth, int64_t inner, bool wide,
                             const void *numbers, const void *on, const void *off, void *y)
{
    int count = (int)(outer * depth * inner);
    if (count == 0)
        return cudaSuccess;
    SIZED_TYPES(bytes, LAUNCH(blocks_for(count), THREADS, 0, stream, one_hot_kernel<T>)(
                     count, twi_divider_of(depth), twi_divider_of(inner), wide, numbers, (const T *)on, (const T *)off,
                     (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_band(cudaStream_t stream, int bytes, int64_t matrices, int64_t rows, int64_t columns, bool wide,
                          const void *lower, const void *upper, const void *x, void *y)
{
    int count = (int)(matrices * rows * columns);
    if (count == 0)
        return cudaSuccess;
    SIZED_TYPES(bytes, LAUNCH(blocks_for(count), THREADS, 0, stream, band_kernel<T>)(
                     count, twi_divider_of(rows), twi_divider_of(columns), wide, lower, upper, (const T *)x, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_add_rows(cudaStream_t stream, tw_dtype type, bool subtracts, int64_t n, int64_t rows, int64_t row,
                              bool wide, const void *numbers, const void *updates, void *to)
{
    const int warps = 8;
    if (n == 0 || row == 0)
        return cudaSuccess;
    NUMBER_TYPES(type, LAUNCH((unsigned)((n + warps - 1) / warps), dim3(LANES, warps), 0, stream, add_rows_kernel<T>)(
                           subtracts, n, rows, row, wide, numbers, (const T *)updates, (T *)to))
    return cudaGetLastError();
}
