/* reduce.cu - sums, means, extremes, their places and products along axes, in an order that sizes alone decide.
 *
 * A block folds a part: each thread every so many elements, then the threads of a warp, then the warps. Where an output
 * has several parts, the block that comes last folds them in the same way, so every reduction is one launch. */
#include "device/cuda/divide.cuh"
#include "device/cuda/last_block.cuh"
#include "device/cuda/many.cuh"

static const int FOLDERS = 512, WARP = 32, WARPS = FOLDERS / WARP; /* threads of a block */
static const int TURNS = 4;                                        /* loads of a thread under way at once */
static const int COLUMN_BLOCK = 32, ROW_BLOCK = 8;                 /* of those that look for places */
static const int MOST_PARTS = 128; /* of all outputs: a block for each of a large card's multiprocessors */

/* ---- folding ----------------------------------------------------------------------------------------------------- */

/* What is folded often is known when a kernel is compiled. */
enum kind { SUMS, SQUARES, OTHERS };

static __device__ __forceinline__ float first_of(twi_cuda_fold fold)
{
    return fold == TWI_CUDA_LARGEST ? -INFINITY : fold == TWI_CUDA_SMALLEST ? INFINITY : fold == TWI_CUDA_PRODUCT;
}

template <kind K> static __device__ __forceinline__ float combine(twi_cuda_fold fold, float a, float b)
{
    if (K != OTHERS)
        return a + b;
    switch (fold) {
    case TWI_CUDA_LARGEST:
        return b > a || b != b ? b : a;
    case TWI_CUDA_SMALLEST:
        return b < a || b != b ? b : a;
    default:
        return a * b;
    }
}

static __device__ __forceinline__ float finish(twi_cuda_fold fold, float a, int64_t inputs)
{
    return fold == TWI_CUDA_MEAN ? a / (float)inputs : fold == TWI_CUDA_HALF_SQUARES ? a * 0.5f : a;
}

/* Each of V values of a warp's threads that lie `step` apart as one, in all of them. */
template <kind K, int V> static __device__ __forceinline__ void fold_warp(twi_cuda_fold fold, float value[V], unsigned step)
{
    for (; step < WARP; step *= 2)
#pragma unroll
        for (int v = 0; v < V; v++)
            value[v] = combine<K>(fold, value[v], __shfl_xor_sync(0xffffffff, value[v], (int)step));
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

/* Indices along axes, the last axis first. All but the first axis are divided by, so with several an index is below
 * 2^31. */
struct axes {
    int count;
    twi_divider size[TW_MAX_RANK];
    int64_t step[TW_MAX_RANK];
};

static __device__ __forceinline__ int64_t start_of(const axes &a, int64_t index)
{
    int64_t start = 0;
    for (int i = 0; i < a.count - 1; i++) {
        uint32_t at;
        index = twi_divide(a.size[i], (uint32_t)index, &at);
        start += at * a.step[i];
    }
    return a.count ? start + index * a.step[a.count - 1] : 0;
}

/* A reader gets what lies in memory, V elements of it, and then says what numbers that is: a thread gets several before
 * it looks at the first. */

/* Elements k to k + V of those that begin at `start`, which lie side by side; A of them at once. */
template <typename T, int V, int A> struct neighbours {
    const T *x;
    typedef vector<T, V> got;

    __device__ __forceinline__ got get(int64_t start, int64_t k) const
    {
        return load<V, A>(x + start + k);
    }

    __device__ __forceinline__ void read(const got &own, int64_t, int64_t, float to[V]) const
    {
        widen(own, to);
    }
};

/* The same of memory that may be aligned. */
template <typename T, int V> struct some_neighbours {
    const T *x;
    bool aligned;
    typedef vector<T, V> got;

    __device__ __forceinline__ got get(int64_t start, int64_t k) const
    {
        return aligned ? load<V, V>(x + start + k) : load<V, 1>(x + start + k);
    }

    __device__ __forceinline__ void read(const got &own, int64_t, int64_t, float to[V]) const
    {
        widen(own, to);
    }
};

/* Element k along axes. */
template <typename T> struct strided {
    const T *x;
    axes along;
    typedef T got;

    __device__ __forceinline__ got get(int64_t start, int64_t k) const
    {
        return x[start + start_of(along, k)];
    }

    __device__ __forceinline__ void read(const got &own, int64_t, int64_t, float to[1]) const
    {
        to[0] = to_float(own);
    }
};

/* Gradients of what a ReLU gave, y, as far as it lets them pass; these are written on the way, perhaps over dy or y. */
template <typename T, int V, int A> struct passed {
    const T *dy, *y;
    T *dx;
    struct got {
        vector<T, V> dy, y;
    };

    __device__ __forceinline__ got get(int64_t start, int64_t k) const
    {
        return {load<V, A>(dy + start + k), load<V, A>(y + start + k)};
    }

    __device__ __forceinline__ void read(got own, int64_t start, int64_t k, float to[V]) const
    {
#pragma unroll
        for (int v = 0; v < V; v++) {
            to[v] = to_float(own.y.at[v]) > 0 ? to_float(own.dy.at[v]) : 0;
            put(&own.dy.at[v], to[v]);
        }
        store<A>(dx + start + k, own.dy);
    }
};

/* The way of a thread: numbers i = begin, begin + step, ... below end; number i is read at (start + i * below, k + i *
 * beside). */
struct way {
    int64_t begin, step, end, start, below, k, beside;
};

/* All that lies on the way, folded; TURNS loads at a time. */
template <kind K, int V, typename R>
static __device__ __forceinline__ void fold_way(twi_cuda_fold fold, const R &reader, const way &w, float own[V])
{
#pragma unroll
    for (int v = 0; v < V; v++)
        own[v] = first_of(fold);
#pragma unroll 1
    for (int64_t i = w.begin; i < w.end; i += TURNS * w.step) {
        typename R::got got[TURNS] = {};
#pragma unroll
        for (int t = 0; t < TURNS; t++)
            if (int64_t at = i + t * w.step; at < w.end)
                got[t] = reader.get(w.start + at * w.below, w.k + at * w.beside);
#pragma unroll
        for (int t = 0; t < TURNS; t++)
            if (int64_t at = i + t * w.step; at < w.end) {
                float x[V];
                reader.read(got[t], w.start + at * w.below, w.k + at * w.beside, x);
#pragma unroll
                for (int v = 0; v < V; v++)
                    own[v] = combine<K>(fold, own[v], K == SQUARES ? x[v] * x[v] : x[v]);
            }
    }
}

/* ---- rows: what an output is made of lies side by side, or anywhere ---------------------------------------------- */

/* What kernels need to know of a reduction. */
struct job {
    twi_cuda_fold fold;
    int64_t outputs, inputs, part; /* inputs of each part, of the last perhaps fewer */
    int splits;
    axes kept;
};

/* Inputs from begin to end as one, in the first thread of each row of the block's. */
template <kind K, int V, typename R>
static __device__ __forceinline__ float fold_row(twi_cuda_fold fold, const R &reader, int64_t start, int64_t begin,
                                                 int64_t end)
{
    __shared__ float all[WARPS];
    float own[V];
    fold_way<K, V>(fold, reader, {begin + threadIdx.x * V, blockDim.x * V, end, start, 0, 0, 1}, own);
#pragma unroll
    for (int v = 1; v < V; v++)
        own[0] = combine<K>(fold, own[0], own[v]);
    fold_warp<K, 1>(fold, own, 1);
    if (blockDim.x == WARP)
        return own[0];
    if (threadIdx.x % WARP == 0)
        all[threadIdx.x / WARP] = own[0];
    __syncthreads();
    own[0] = threadIdx.x < WARPS ? all[threadIdx.x] : first_of(fold);
    fold_warp<K, 1>(fold, own, 1);
    return own[0];
}

/* A warp for each output, or a block for each part of one, whose number is blockIdx.y. */
template <kind K, int V, typename R, typename T>
static __global__ void __launch_bounds__(FOLDERS) rows_kernel(job j, R reader, T *y, float *parts, unsigned *counters)
{
    int64_t o = blockIdx.x * (int64_t)blockDim.y + threadIdx.y, begin = blockIdx.y * j.part, end = begin + j.part;
    if (o >= j.outputs)
        return;
    float value = fold_row<K, V>(j.fold, reader, start_of(j.kept, o), begin, end < j.inputs ? end : j.inputs);
    if (j.splits > 1) {
        if (threadIdx.x == 0)
            parts[o * j.splits + blockIdx.y] = value;
        if (!comes_last(counters + o, gridDim.y))
            return;
        value = fold_row<K == SQUARES ? SUMS : K, 1>(j.fold, neighbours<float, 1, 1>{parts}, o * j.splits, 0, j.splits);
    }
    if (threadIdx.x == 0)
        put(y + o, finish(j.fold, value, j.inputs));
}

/* ---- columns: outputs lie side by side, what each is made of one row below the other ----------------------------- */

/* Where a thread of a block stands that is `across` threads wide. */
struct place {
    unsigned x, y, across, down;
};

typedef float sums_of_warps[WARPS][2 * WARP];

/* Rows from begin to end as one, from column `first` on in the block's thread number c for its column c. */
template <kind K, int V, typename R>
static __device__ __forceinline__ float fold_columns(twi_cuda_fold fold, const R &reader, sums_of_warps all, place p,
                                                     int64_t first, int64_t columns, int64_t begin, int64_t end)
{
    unsigned number = p.y * p.across + p.x;
    int64_t column = first + p.x * V;
    float own[V], value = first_of(fold);
    fold_way<K, V>(fold, reader, {begin + p.y, p.down, column < columns ? end : 0, 0, columns, column, 0}, own);
    fold_warp<K, V>(fold, own, p.across);
#pragma unroll
    for (int v = 0; v < V; v++)
        if (number % WARP < p.across)
            all[number / WARP][p.x * V + v] = own[v];
    __syncthreads();
    if (number < p.across * V)
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            value = combine<K>(fold, value, all[w][number]);
    return value;
}

/* A block's work: the columns of its width in one part of the rows. Blocks of the same columns share a counter. */
template <kind K, int V, typename R, typename T>
static __device__ __forceinline__ void fold_part(const job &j, const R &reader, place p, int64_t block, int part, T *y,
                                                 float *parts, unsigned *counters)
{
    __shared__ sums_of_warps all;
    unsigned number = p.y * p.across + p.x;
    int64_t first = block * (p.across * V), column = first + number, begin = part * j.part, end = begin + j.part;
    bool writes = number < p.across * V && column < j.outputs;
    float value = fold_columns<K, V>(j.fold, reader, all, p, first, j.outputs, begin, end < j.inputs ? end : j.inputs);
    if (j.splits > 1) {
        if (writes)
            parts[part * j.outputs + column] = value;
        if (!comes_last(counters + block, (unsigned)j.splits))
            return;
        value = fold_columns<K, V>(j.fold, neighbours<float, V, V>{parts}, all, p, first, j.outputs, 0, j.splits);
    }
    if (writes)
        put(y + column, finish(j.fold, value, j.inputs));
}

/* A block for blockDim.x * V columns of one part of the rows, whose number is blockIdx.y. */
template <kind K, int V, typename R, typename T>
static __global__ void __launch_bounds__(FOLDERS)
    columns_kernel(job j, R reader, T *y, float *parts, unsigned *counters)
{
    place p = {threadIdx.x, threadIdx.y, blockDim.x, blockDim.y};
    fold_part<K, V>(j, reader, p, blockIdx.x, (int)blockIdx.y, y, parts, counters);
}

/* Sums of columns of many, each with blocks of its own, the parts of the first columns first. */
struct sums {
    int count;
    const void *x[TWI_CUDA_SUMMED];
    void *y[TWI_CUDA_SUMMED];
    int64_t outputs[TWI_CUDA_SUMMED], inputs[TWI_CUDA_SUMMED], part[TWI_CUDA_SUMMED], first_part[TWI_CUDA_SUMMED];
    int first_block[TWI_CUDA_SUMMED], first_counter[TWI_CUDA_SUMMED], splits[TWI_CUDA_SUMMED], across[TWI_CUDA_SUMMED];
    bool wide[TWI_CUDA_SUMMED];
};

template <typename T>
static __global__ void __launch_bounds__(FOLDERS) sums_kernel(sums s, float *parts, unsigned *counters)
{
    const int V = width<T>::value;
    int i = array_of_block(s.count, s.first_block), number = (int)blockIdx.x - s.first_block[i];
    unsigned across = (unsigned)s.across[i];
    job j = {TWI_CUDA_SUM, s.outputs[i], s.inputs[i], s.part[i], s.splits[i], {}};
    place p = {threadIdx.x % across, threadIdx.x / across, across, FOLDERS / across};
    int64_t block = number / j.splits;
    int part = number % j.splits;
    const T *x = (const T *)s.x[i];
    T *y = (T *)s.y[i];
    parts += s.first_part[i];
    counters += s.first_counter[i];
    if (s.wide[i])
        fold_part<SUMS, V>(j, some_neighbours<T, V>{x, is_aligned(x)}, p, block, part, y, parts, counters);
    else
        fold_part<SUMS, 1>(j, neighbours<T, 1, 1>{x}, p, block, part, y, parts, counters);
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

static bool is_sum(const twi_cuda_reduction *d)
{
    return d->fold == TWI_CUDA_SUM || d->fold == TWI_CUDA_MEAN || d->fold == TWI_CUDA_HALF_SQUARES ||
           d->fold == TWI_CUDA_PASSED;
}

/* How many elements a thread takes at once, and how many threads stand side by side. */
static void plan_columns(twi_cuda_reduction *d, int width)
{
    d->width = is_sum(d) && d->outputs % width == 0 ? width : 1;
    int most = d->width > 1 ? 2 * WARP / width : WARP;
    for (d->across = 1; d->across < most && d->across * d->width < d->outputs;)
        d->across *= 2;
}

static void plan_rows(twi_cuda_reduction *d, int width)
{
    bool joined = d->num_reduced == 1 && d->reduced_step[0] == 1;
    d->width = is_sum(d) && joined && d->inputs % width == 0 ? width : 1;
    d->across = d->inputs <= 1024 ? WARP : FOLDERS;
}

/* Blocks for 128 multiprocessors or more, but in each part four turns of every thread, and not so many parts that
 * folding those takes long. */
size_t twi_cuda_reduction_plan(twi_cuda_reduction *d, tw_dtype type)
{
    int width = (int)(16 / tw_dtype_size(type));
    d->columns = d->num_kept == 1 && d->num_reduced == 1 && d->kept_step[0] == 1 &&
                 (d->outputs > 1 || d->fold == TWI_CUDA_PASSED) && d->fold != TWI_CUDA_HALF_SQUARES;
    (d->columns ? plan_columns : plan_rows)(d, width);
    int64_t together = d->columns ? d->across * d->width : FOLDERS / d->across; /* outputs of a block */
    int64_t turn = d->columns ? FOLDERS / d->across : FOLDERS * d->width;       /* inputs that its threads take at once */
    int64_t blocks = (d->outputs + together - 1) / together, splits = d->inputs / (4 * turn);
    splits = blocks && splits > MOST_PARTS / blocks ? MOST_PARTS / blocks : splits;
    d->splits = splits < 1 ? 1 : (int)splits;
    d->part = ((d->inputs + d->splits - 1) / d->splits + d->width - 1) / d->width * d->width;
    return d->splits > 1 ? (size_t)(d->outputs * d->splits) * sizeof(float) : 0;
}

/* What a launch is given. */
struct run {
    cudaStream_t stream;
    const twi_cuda_reduction *d;
    float *parts;
    unsigned *counters;
};

static axes axes_of(int count, const int64_t *size, const int64_t *step)
{
    axes a = {};
    a.count = count;
    for (int i = 0; i < count; i++) {
        a.size[i] = twi_divider_of(size[i]);
        a.step[i] = step[i];
    }
    return a;
}

static job job_of(const twi_cuda_reduction *d)
{
    return {d->fold, d->outputs, d->inputs, d->part, d->splits, axes_of(d->num_kept, d->kept_size, d->kept_step)};
}

template <kind K, int V, typename R, typename T> static void launch_rows(const run &r, R reader, T *y)
{
    int64_t down = FOLDERS / r.d->across;
    dim3 grid((unsigned)((r.d->outputs + down - 1) / down), (unsigned)r.d->splits);
    LAUNCH(grid, dim3((unsigned)r.d->across, (unsigned)down), 0, r.stream, rows_kernel<K, V, R, T>)(
        job_of(r.d), reader, y, r.parts, r.counters);
}

template <kind K, int V, typename R, typename T> static void launch_columns(const run &r, R reader, T *y)
{
    int64_t together = r.d->across * V;
    dim3 grid((unsigned)((r.d->outputs + together - 1) / together), (unsigned)r.d->splits);
    LAUNCH(grid, dim3((unsigned)r.d->across, (unsigned)(FOLDERS / r.d->across)), 0, r.stream,
           columns_kernel<K, V, R, T>)(job_of(r.d), reader, y, r.parts, r.counters);
}

/* A vector at a time where `width` says so; where its address does not fit, still in the same order. */
template <typename T> static void add_columns(const run &r, const T *x, T *y)
{
    const int V = width<T>::value;
    if (r.d->width == 1)
        launch_columns<SUMS, 1>(r, neighbours<T, 1, 1>{x}, y);
    else if (is_aligned(x))
        launch_columns<SUMS, V>(r, neighbours<T, V, V>{x}, y);
    else
        launch_columns<SUMS, V>(r, neighbours<T, V, 1>{x}, y);
}

template <typename T> static void add_passed(const run &r, const T *dy, const T *y, T *dx, T *db)
{
    const int V = width<T>::value;
    if (r.d->width == 1)
        launch_columns<SUMS, 1>(r, passed<T, 1, 1>{dy, y, dx}, db);
    else if (is_aligned(dy) && is_aligned(y) && is_aligned(dx))
        launch_columns<SUMS, V>(r, passed<T, V, V>{dy, y, dx}, db);
    else
        launch_columns<SUMS, V>(r, passed<T, V, 1>{dy, y, dx}, db);
}

template <kind K, typename T> static void add_rows(const run &r, const T *x, T *y)
{
    const int V = width<T>::value;
    if (r.d->width == 1)
        launch_rows<K, 1>(r, strided<T>{x, axes_of(r.d->num_reduced, r.d->reduced_size, r.d->reduced_step)}, y);
    else if (is_aligned(x))
        launch_rows<K, V>(r, neighbours<T, V, V>{x}, y);
    else
        launch_rows<K, V>(r, neighbours<T, V, 1>{x}, y);
}

template <typename T> static void fold_others(const run &r, const T *x, T *y)
{
    if (r.d->columns)
        launch_columns<OTHERS, 1>(r, neighbours<T, 1, 1>{x}, y);
    else
        launch_rows<OTHERS, 1>(r, strided<T>{x, axes_of(r.d->num_reduced, r.d->reduced_size, r.d->reduced_step)}, y);
}

cudaError_t twi_cuda_reduce(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *x, void *y,
                            void *workspace, unsigned *counters)
{
    run r = {stream, d, (float *)workspace, counters};
    if (d->outputs == 0)
        return cudaSuccess;
    if (d->outputs > INT32_MAX)
        return cudaErrorInvalidValue;
    if (type == TW_BOOL)
        fold_others(r, (const bool *)x, (bool *)y);
    else if (!is_sum(d))
        FLOAT_TYPES(type, fold_others(r, (const T *)x, (T *)y))
    else if (d->columns)
        FLOAT_TYPES(type, add_columns(r, (const T *)x, (T *)y))
    else if (d->fold == TWI_CUDA_HALF_SQUARES)
        FLOAT_TYPES(type, add_rows<SQUARES>(r, (const T *)x, (T *)y))
    else
        FLOAT_TYPES(type, add_rows<SUMS>(r, (const T *)x, (T *)y))
    return cudaGetLastError();
}

int64_t twi_cuda_columns_blocks(const twi_cuda_reduction *d)
{
    int together = d->across * d->width;
    return (d->outputs + together - 1) / together;
}

/* Rounded up, so that those of the next are aligned. */
int64_t twi_cuda_columns_parts(const twi_cuda_reduction *d)
{
    return d->splits > 1 ? (d->outputs * d->splits + 7) / 8 * 8 : 0;
}

cudaError_t twi_cuda_sum_columns(cudaStream_t stream, tw_dtype type, int count, const twi_cuda_reduction *const *d,
                                 const void *const *x, void *const *y, float *parts, unsigned *counters)
{
    sums s = {};
    int blocks = 0, counted = 0;
    int64_t parted = 0;
    for (s.count = 0; s.count < count; s.count++) {
        int i = s.count;
        if (!d[i]->columns || d[i]->fold != TWI_CUDA_SUM)
            return cudaErrorInvalidValue;
        s.x[i] = x[i];
        s.y[i] = y[i];
        s.outputs[i] = d[i]->outputs;
        s.inputs[i] = d[i]->inputs;
        s.part[i] = d[i]->part;
        s.splits[i] = d[i]->splits;
        s.across[i] = d[i]->across;
        s.wide[i] = d[i]->width > 1;
        s.first_block[i] = blocks;
        s.first_counter[i] = counted;
        s.first_part[i] = parted;
        blocks += (int)twi_cuda_columns_blocks(d[i]) * d[i]->splits;
        counted += (int)twi_cuda_columns_blocks(d[i]);
        parted += twi_cuda_columns_parts(d[i]);
    }
    FLOAT_TYPES(type, LAUNCH((unsigned)blocks, FOLDERS, 0, stream, sums_kernel<T>)(s, parts, counters))
    return cudaGetLastError();
}

cudaError_t twi_cuda_relu_grad_bias(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *dy,
                                    const void *y, void *dx, void *db, void *workspace, unsigned *counters)
{
    run r = {stream, d, (float *)workspace, counters};
    if (d->outputs == 0)
        return cudaSuccess;
    if (!d->columns || d->fold != TWI_CUDA_PASSED)
        return cudaErrorInvalidValue;
    FLOAT_TYPES(type, add_passed(r, (const T *)dy, (const T *)y, (T *)dx, (T *)db))
    return cudaGetLastError();
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

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
static __global__ void extreme_kernel(twi_cuda_reduction d, axes kept, const T *x, I *places)
{
    __shared__ found all[ROW_BLOCK][COLUMN_BLOCK];
    int64_t o = blockIdx.x * (int64_t)ROW_BLOCK + threadIdx.y, step = d.num_reduced ? d.reduced_step[0] : 0;
    const T *base = x + (o < d.outputs ? start_of(kept, o) : 0);
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
    found best = all[threadIdx.y][0];
    places[o] = best.number < 0 ? 0 : (I)best.number; /* nothing but NaN */
}

cudaError_t twi_cuda_find_extreme(cudaStream_t stream, tw_dtype type, const twi_cuda_reduction *d, const void *x,
                                  tw_dtype to, void *places)
{
    unsigned blocks = (unsigned)((d->outputs + ROW_BLOCK - 1) / ROW_BLOCK);
    axes kept = axes_of(d->num_kept, d->kept_size, d->kept_step);
    if (d->outputs == 0)
        return cudaSuccess;
    if (to == TW_INT64)
        FLOAT_TYPES(type, LAUNCH(blocks, dim3(COLUMN_BLOCK, ROW_BLOCK), 0, stream, extreme_kernel<T, int64_t>)(
                              *d, kept, (const T *)x, (int64_t *)places))
    else
        FLOAT_TYPES(type, LAUNCH(blocks, dim3(COLUMN_BLOCK, ROW_BLOCK), 0, stream, extreme_kernel<T, int32_t>)(
                              *d, kept, (const T *)x, (int32_t *)places))
    return cudaGetLastError();
}
