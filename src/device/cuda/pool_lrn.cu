/* pool_lrn.cu - pooling and local response normalization in one pass, in either order, and their gradients with the
 * ReLU's before them. A thread takes a quad of channels. A block takes whole pixels, where neighbouring channels need
 * what it computes, or a band of an image's rows, where neighbouring pixels do, and meets in shared memory. */
#include "device/cuda/images.cuh"
#include "device/cuda/large_shared.cuh"

/* The numbers of cells that a quad of windows chose, a byte each, the first the lowest. */
template <bool WHOLE>
static __device__ __forceinline__ uint32_t take_cells(const uint8_t *pixel, int c, int channels)
{
    uint32_t cells = 0;
    if (WHOLE)
        cells = *(const uint32_t *)(pixel + c);
    else
        for (int k = 0; k < QUAD; k++)
            cells |= c + k < channels ? (uint32_t)pixel[c + k] << 8 * k : 0;
    return cells;
}

template <bool WHOLE>
static __device__ __forceinline__ void put_cells(uint8_t *to, const int (&cells)[QUAD], int c, int channels)
{
    vector<uint8_t, QUAD> all;
    for (int k = 0; k < QUAD; k++)
        all.at[k] = (uint8_t)cells[k];
    if (WHOLE)
        store<QUAD>(to, all);
    else
        for (int k = 0; k < QUAD; k++)
            if (c + k < channels)
                to[k] = all.at[k];
}

/* ---- bands ------------------------------------------------------------------------------------------------------ */

enum { BAND_THREADS = 512, BANDS = 256 }; /* two blocks for each multiprocessor of a large card */

/* What blocks are told: how many rows of an image are a band, how many bands an image, and what they divide by. */
struct bands {
    int rows, each_image;
    twi_divider quads, width; /* of a pixel; cells of a row of a window */
    int turns[2];
};

/* A block's band, and where in it its thread stands: `slots` pixels are looked at, at once. */
struct band {
    int n, first, rows, slot, slots, c;
};

static __device__ __forceinline__ band band_of_block(const bands &b, int rows)
{
    const int n = (int)blockIdx.x / b.each_image, first = ((int)blockIdx.x - n * b.each_image) * b.rows;
    unsigned quad, slot = twi_divide(b.quads, threadIdx.x, &quad);
    return {n, first, min(b.rows, rows - first), (int)slot, (int)(blockDim.x / b.quads.divisor), (int)quad * QUAD};
}

/* Sums for the pixels of a band. The channels of a quad lie apart, so that neighbours touch neighbours. */
struct tile {
    float *at;
    int rows, columns, quads;

    __device__ __forceinline__ float *quad(int row, int column, int c) const
    {
        return at + (row * columns + column) * quads * QUAD + c / QUAD;
    }
};

static __device__ __forceinline__ tile clear_tile(float *at, int rows, int columns, int quads)
{
    for (int i = (int)threadIdx.x; i < rows * columns * quads; i += (int)blockDim.x)
        store<QUAD>(at + i * QUAD, vector<float, QUAD>());
    __syncthreads();
    return {at, rows, columns, quads};
}

/* Adds what a window at (top, left) of the tile gives to the cells that it chose, as far as they lie there. */
static __device__ __forceinline__ void add_to_chosen(const tile &t, const bands &b, int top, int left, int c,
                                                     int channels, uint32_t cells,
                                                     const float (&gradients)[QUAD])
{
    for (int k = 0; k < QUAD; k++) {
        unsigned x, y = twi_divide(b.width, cells >> 8 * k & 255, &x);
        int row = top + (int)y, column = left + (int)x;
        if (row >= 0 && row < t.rows && column >= 0 && column < t.columns && c + k < channels)
            t.quad(row, column, c)[k * t.quads] += gradients[k];
    }
}

/* take(inside, row, column) for all windows over a band. Those that overlap come in different turns, so that what they
 * choose is added without a collision, and always in the same order. All threads come as often. */
template <typename F>
static __device__ __forceinline__ void take_turns(const pooling &pool, const bands &b, const band &own, F take)
{
    int row0, row1;
    windows_over(pool, 0, own.first, own.rows, &row0, &row1);
    for (int turn = 0; turn < b.turns[0] * b.turns[1]; turn++) {
        const int down = turn / b.turns[1], beside = turn % b.turns[1];
        const int first = row0 + (down + b.turns[0] - row0 % b.turns[0]) % b.turns[0];
        const int rows = (row1 - first + b.turns[0] - 1) / b.turns[0];
        const int columns = (pool.p.output[1] - beside + b.turns[1] - 1) / b.turns[1];
        for (int i = 0; i < rows * columns; i += own.slots) {
            const int window = i + own.slot, row = window / columns;
            take(window < rows * columns, first + row * b.turns[0], beside + (window - row * columns) * b.turns[1]);
        }
        __syncthreads();
    }
}

/* ---- forward -------------------------------------------------------------------------------------------------------- */

/* MaxPool, then LRN. */
template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(MOST_THREADS)
    pool_lrn_kernel(twi_cuda_pool p, twi_cuda_lrn l, quads q, const T *x, T *y, T *pooled, uint8_t *argmax)
{
    DYNAMIC_SHARED(float, shared);
    const unsigned i = thread_of_launch();
    const bool inside = i < (unsigned)q.count;
    const place at = place_of(q, i);
    const int own = (int)threadIdx.x * QUAD, padded = (int)q.each.divisor * QUAD;
    auto read = [&](float (&values)[QUAD], int h, int w) {
        take_quad<WHOLE>(values, x + element_of(p.image, p.channels, at.n, h, w, 0), at.c, p.channels);
    };
    float most[QUAD] = {0, 0, 0, 0}, normalized[QUAD];
    int cells[QUAD];
    if (inside)
        find_maximum<WHOLE ? AT_HAND : 1>(p, at.row, at.column, read, most, cells);
    store<QUAD>(shared + own, narrow<float, QUAD>(most));
    __syncthreads();
    if (!inside)
        return;
    unsigned to = element_of(p.output, p.channels, at.n, at.row, at.column, at.c);
    normalize<true>(l, shared + own - at.c, at.c, padded, most, normalized);
    put_quad<WHOLE>(y + to, normalized, at.c, p.channels);
    put_quad<WHOLE>(pooled + to, most, at.c, p.channels);
    put_cells<WHOLE>(argmax + to, cells, at.c, p.channels);
}

/* LRN, then MaxPool: a block normalizes the pixels under a band of windows. */
template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(BAND_THREADS, 2)
    lrn_pool_kernel(twi_cuda_pool p, twi_cuda_lrn l, bands b, const T *x, T *y, uint8_t *argmax)
{
    DYNAMIC_SHARED(float, normalized);
    const band own = band_of_block(b, p.output[0]);
    const int padded = (int)b.quads.divisor * QUAD;
    int first, end, unused;
    cells_under(p, 0, own.first, &first, &unused);
    cells_under(p, 0, own.first + own.rows - 1, &unused, &end);
    const T *image = x + element_of(p.image, p.channels, own.n, first, 0, 0);
    const int pixels = (end - first) * p.image[1];
    float values[QUAD] = {0, 0, 0, 0}, next[QUAD];
    if (own.slot < pixels)
        take_quad<WHOLE>(values, image + own.slot * p.channels, own.c, p.channels);
    for (int i = own.slot; i < pixels; i += own.slots) {
        float powers[QUAD];
        const int ahead = min(i + own.slots, pixels - 1); /* so that nobody waits for it */
        take_quad<WHOLE>(next, image + ahead * p.channels, own.c, p.channels);
        normalize<WHOLE>(l, image + i * p.channels, own.c, p.channels, values, powers);
        store<QUAD>(normalized + i * padded + own.c, narrow<float, QUAD>(powers));
        for (int k = 0; k < QUAD; k++)
            values[k] = next[k];
    }
    __syncthreads();
    auto read = [&](float (&values)[QUAD], int h, int w) {
        take_quad<true>(values, normalized + ((h - first) * p.image[1] + w) * padded, own.c, padded);
    };
    for (int i = own.slot; i < own.rows * p.output[1]; i += own.slots) {
        const int row = own.first + i / p.output[1], column = i % p.output[1];
        float most[QUAD];
        int cells[QUAD];
        find_maximum<1>(p, row, column, read, most, cells);
        const unsigned to = element_of(p.output, p.channels, own.n, row, column, own.c);
        put_quad<WHOLE>(y + to, most, own.c, p.channels);
        put_cells<WHOLE>(argmax + to, cells, own.c, p.channels);
    }
}

/* ---- backward ------------------------------------------------------------------------------------------------------- */

/* Where the ReLU before was shut nothing goes on. */
static __device__ __forceinline__ void shut(bool relu, const float (&x)[QUAD], float (&dx)[QUAD])
{
    for (int k = 0; k < QUAD; k++)
        if (relu && x[k] <= 0)
            dx[k] = 0;
}

/* Of MaxPool, then LRN. A pixel that was not above 0 and was chosen all the same is where the ReLU was shut. */
template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(BAND_THREADS, 2)
    pool_lrn_grad_kernel(pooling pool, twi_cuda_lrn l, bool relu, bands b, const T *dy, const T *pooled,
                         const uint8_t *argmax, T *dx)
{
    DYNAMIC_SHARED(float, shared);
    const twi_cuda_pool &p = pool.p;
    const band own = band_of_block(b, p.image[0]);
    const int channels = p.channels, c = own.c;
    const tile sums = clear_tile(shared + 2 * blockDim.x * QUAD, own.rows, p.image[1], (int)b.quads.divisor);
    take_turns(pool, b, own, [&](bool inside, int row, int column) {
        const unsigned window = inside ? element_of(p.output, channels, own.n, row, column, 0) : 0;
        float x[QUAD] = {0, 0, 0, 0}, given[QUAD] = {0, 0, 0, 0}, gradient[QUAD];
        uint32_t cells = 0;
        if (inside) {
            take_quad<WHOLE>(x, pooled + window, c, channels);
            take_quad<WHOLE>(given, dy + window, c, channels);
            cells = take_cells<WHOLE>(argmax + window, c, channels);
        }
        lrn_gradient(l, shared, c, channels, x, NULL, given, gradient);
        shut(relu, x, gradient);
        if (inside)
            add_to_chosen(sums, b, row * p.stride[0] - p.before[0] - own.first, column * p.stride[1] - p.before[1], c,
                       channels, cells, gradient);
    });
    T *to = dx + element_of(p.image, channels, own.n, own.first, 0, c);
    for (int i = own.slot; i < own.rows * p.image[1]; i += own.slots) {
        float values[QUAD];
        for (int k = 0; k < QUAD; k++)
            values[k] = sums.quad(0, i, c)[k * sums.quads];
        put_quad<WHOLE>(to + i * channels, values, c, channels);
    }
}

/* Of LRN, then MaxPool. */
template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(BAND_THREADS, 2)
    lrn_pool_grad_kernel(pooling pool, twi_cuda_lrn l, bool relu, bands b, const T *dy, const T *x,
                         const uint8_t *argmax, T *dx)
{
    DYNAMIC_SHARED(float, shared);
    const twi_cuda_pool &p = pool.p;
    const band own = band_of_block(b, p.image[0]);
    const int channels = p.channels, c = own.c;
    const tile sums = clear_tile(shared + 2 * blockDim.x * QUAD, own.rows, p.image[1], (int)b.quads.divisor);
    const unsigned start = element_of(p.image, channels, own.n, own.first, 0, 0);
    const int pixels = own.rows * p.image[1];
    float value[QUAD], next[QUAD];
    take_quad<WHOLE>(value, x + start + (unsigned)(min(own.slot, pixels - 1) * channels), c, channels);
    take_turns(pool, b, own, [&](bool inside, int row, int column) {
        if (inside) {
            const unsigned window = element_of(p.output, channels, own.n, row, column, 0);
            float given[QUAD];
            const uint32_t cells = take_cells<WHOLE>(argmax + window, c, channels);
            take_quad<WHOLE>(given, dy + window, c, channels);
            add_to_chosen(sums, b, row * p.stride[0] - p.before[0] - own.first, column * p.stride[1] - p.before[1], c,
                       channels, cells, given);
        }
    });
    for (int i = own.slot; i - own.slot < pixels; i += own.slots) {
        const bool inside = i < pixels;
        float given[QUAD] = {0, 0, 0, 0}, gradient[QUAD];
        const int ahead = min(i + own.slots, pixels - 1); /* so that nobody waits for it */
        take_quad<WHOLE>(next, x + start + (unsigned)(ahead * channels), c, channels);
        for (int k = 0; k < QUAD && inside; k++)
            given[k] = sums.quad(0, i, c)[k * sums.quads];
        lrn_gradient(l, shared, c, channels, value, NULL, given, gradient);
        shut(relu, value, gradient);
        if (inside)
            put_quad<WHOLE>(dx + start + (unsigned)(i * channels + c), gradient, c, channels);
        for (int k = 0; k < QUAD; k++)
            value[k] = next[k];
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------ */

/* What a launch in bands asks for. */
struct band_launch {
    bands b;
    unsigned blocks, threads;
    size_t shared;
};

static unsigned quads_of_pixel(const twi_cuda_pool *p)
{
    return ((unsigned)p->channels + QUAD - 1) / QUAD;
}

static size_t floats_of_row(const twi_cuda_pool *p)
{
    return (size_t)p->image[1] * quads_of_pixel(p) * QUAD;
}

/* Floats that the threads of a block exchange. */
static size_t floats_exchanged(const twi_cuda_pool *p)
{
    return BAND_THREADS / quads_of_pixel(p) * quads_of_pixel(p) * QUAD * 2;
}

static size_t rows_under_window(const twi_cuda_pool *p)
{
    return (size_t)(p->size[0] > p->stride[0] ? p->size[0] : p->stride[0]);
}

bool twi_cuda_bands_fit(const twi_cuda_pool *p)
{
    const size_t most = ASKED_SHARED / sizeof(float);
    return p->channels == 0 || (quads_of_pixel(p) <= BAND_THREADS && floats_of_row(p) * rows_under_window(p) <= most &&
                                floats_of_row(p) + floats_exchanged(p) <= most);
}

/* Of `rows` of each image; a band has `before` floats of shared memory, and `each` in every row. As many bands as fill
 * a card, or more, such that two of their blocks fit into a multiprocessor. */
static cudaError_t plan_bands(const twi_cuda_pool *p, int rows, size_t before, size_t each, band_launch *made)
{
    size_t most;
    cudaError_t code = ask_for_shared(&most);
    most = max(most / 2, (size_t)ASKED_SHARED) / sizeof(float);
    const int fit = (int)((most - before) / each), wanted = (int)(((int64_t)rows * p->batch + BANDS - 1) / BANDS);
    bands *b = &made->b;
    b->rows = wanted < fit ? wanted : fit;
    b->each_image = (rows + b->rows - 1) / b->rows;
    b->quads = twi_divider_of(quads_of_pixel(p));
    b->width = twi_divider_of(p->size[1]);
    for (int i = 0; i < 2; i++)
        b->turns[i] = (p->size[i] + p->stride[i] - 1) / p->stride[i];
    made->blocks = (unsigned)(p->batch * b->each_image);
    made->threads = BAND_THREADS / quads_of_pixel(p) * quads_of_pixel(p);
    made->shared = (before + each * (size_t)b->rows) * sizeof(float);
    return code;
}

cudaError_t twi_cuda_pool_lrn(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                              const void *x, void *y, void *pooled, uint8_t *argmax)
{
    const quads q = windows_of(p);
    if (q.count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(are_whole(q.channels, x, y, pooled, argmax),
                            LAUNCH(blocks_of_pixels(q), threads_of(q), shared_of(q, 1), stream,
                                   pool_lrn_kernel<T, WHOLE>)(*p, *l, q, (const T *)x, (T *)y, (T *)pooled, argmax)))
    return cudaGetLastError();
}

cudaError_t twi_cuda_lrn_pool(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                              const void *x, void *y, uint8_t *argmax)
{
    const size_t row = floats_of_row(p);
    band_launch m;
    if (windows_of(p).count == 0)
        return cudaSuccess;
    cudaError_t code = plan_bands(p, p->output[0], (rows_under_window(p) - (size_t)p->stride[0]) * row,
                                  (size_t)p->stride[0] * row, &m);
    if (code == cudaSuccess)
        FLOAT_TYPES(type, QUADS(are_whole(p->channels, x, y, argmax, NULL),
                                code = launch_large(m.blocks, m.threads, m.shared, stream, lrn_pool_kernel<T, WHOLE>,
                                                    *p, *l, m.b, (const T *)x, (T *)y, argmax)))
    return code;
}

cudaError_t twi_cuda_pool_lrn_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *pooled, const uint8_t *argmax, void *dx)
{
    band_launch m;
    if ((int64_t)p->batch * p->image[0] * p->image[1] * p->channels == 0)
        return cudaSuccess;
    cudaError_t code = plan_bands(p, p->image[0], floats_exchanged(p), floats_of_row(p), &m);
    if (code == cudaSuccess)
        FLOAT_TYPES(type, QUADS(are_whole(p->channels, dy, pooled, argmax, dx),
                                code = launch_large(m.blocks, m.threads, m.shared, stream,
                                                    pool_lrn_grad_kernel<T, WHOLE>, pooling_of(p), *l, relu, m.b,
                                                    (const T *)dy, (const T *)pooled, argmax, (T *)dx)))
    return code;
}

cudaError_t twi_cuda_lrn_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *x, const uint8_t *argmax, void *dx)
{
    band_launch m;
    if ((int64_t)p->batch * p->image[0] * p->image[1] * p->channels == 0)
        return cudaSuccess;
    cudaError_t code = plan_bands(p, p->image[0], floats_exchanged(p), floats_of_row(p), &m);
    if (code == cudaSuccess)
        FLOAT_TYPES(type, QUADS(are_whole(p->channels, dy, x, argmax, dx),
                                code = launch_large(m.blocks, m.threads, m.shared, stream,
                                                    lrn_pool_grad_kernel<T, WHOLE>, pooling_of(p), *l, relu, m.b,
                                                    (const T *)dy, (const T *)x, argmax, (T *)dx)))
    return code;
}
