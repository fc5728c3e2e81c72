/* pool_lrn.cu - pooling and local response normalization in one pass, in either order, and their gradients with the
 * ReLU's before them. A thread takes a quad of channels. A block takes whole pixels, where neighbouring channels need
 * what it computes, or a band of an image's rows, where neighbouring pixels do, and meets in shared memory. */
#include "device/cuda/images.cuh"
#include "device/cuda/large_shared.cuh"

/* What the SIDE * SIDE pixels from `at` on collect of the windows' gradients. */
template <bool WHOLE, int SIDE, typename T>
static __device__ __forceinline__ void collect_chosen(const pooling &pool, const place &at, const T *gradient,
                                                      const uint8_t *argmax, float (&sums)[SIDE][SIDE][QUAD])
{
    const int channels = pool.p.channels;
    auto look = [&](int (&cells)[QUAD], float (&gradients)[QUAD], int row, int column) {
        unsigned window = element_of(pool.p.output, channels, at.n, row, column, 0);
        take_cells<WHOLE>(cells, argmax + window, at.c, channels);
        take_quad<WHOLE>(gradients, gradient + window, at.c, channels);
    };
    collect<SIDE>(pool, at, look, sums);
}

/* ---- bands ------------------------------------------------------------------------------------------------------ */

enum { BAND_THREADS = 512, BANDS = 256 }; /* two blocks for each multiprocessor of a large card */

/* What blocks are told: how many rows of an image are a band, how many bands an image, and what they divide by. */
struct bands {
    int rows, each_image;
    twi_divider quads; /* of a pixel */
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

/* ---- forward ----------------------------------------------------------------------------------------------------- */

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

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* A block has the rows of an image that are a band of squares of SIDE * SIDE pixels, so that a window is looked at
 * once for all of one. */
template <typename T, bool WHOLE, int SIDE>
static __global__ void __launch_bounds__(BAND_THREADS, WHOLE ? 2 : 1)
    pool_lrn_grad_kernel(pooling pool, twi_cuda_lrn l, bool relu, bands b, const T *dy, const T *pooled,
                         const uint8_t *argmax, T *dx)
{
    DYNAMIC_SHARED(float, shared);
    const twi_cuda_pool &p = pool.p;
    const int across = (p.image[1] + SIDE - 1) / SIDE, padded = (int)b.quads.divisor * QUAD;
    const band own = band_of_block(b, (p.image[0] + SIDE - 1) / SIDE);
    float *gradients = shared + 2 * QUAD * blockDim.x;
    int top, end;
    windows_over(pool, 0, own.first * SIDE, min(own.rows * SIDE, p.image[0] - own.first * SIDE), &top, &end);
    const unsigned from = element_of(p.output, p.channels, own.n, top, 0, 0);
    const auto read = [&](float (&x)[QUAD], float (&given)[QUAD], int window) {
        take_quad<WHOLE>(x, pooled + from + window * p.channels, own.c, p.channels);
        take_quad<WHOLE>(given, dy + from + window * p.channels, own.c, p.channels);
    };
    pooled_gradients(l, relu, {own.slot, own.slots, own.c}, (end - top) * p.output[1], read, shared, gradients);
    auto look = [&](int (&cells)[QUAD], float (&values)[QUAD], int row, int column) {
        const int window = (row - top) * p.output[1] + column;
        take_cells<WHOLE>(cells, argmax + from + window * p.channels, own.c, p.channels);
        take_quad<true>(values, gradients + window * padded, own.c, padded);
    };
    for (int i = own.slot; i < own.rows * across; i += own.slots) {
        const place at = {own.n, (own.first + i / across) * SIDE, i % across * SIDE, own.c};
        float sums[SIDE][SIDE][QUAD];
        collect(pool, at, look, sums);
        put_pixels<WHOLE>(p, at, dx, sums);
    }
}

template <typename T, bool WHOLE>
static __global__ void __launch_bounds__(MOST_THREADS)
    lrn_pool_grad_kernel(pooling pool, twi_cuda_lrn l, bool relu, quads q, const T *dy, const T *x,
                         const uint8_t *argmax, T *dx)
{
    DYNAMIC_SHARED(float, shared);
    const unsigned i = thread_of_launch();
    const bool inside = i < (unsigned)q.count;
    const place at = place_of(q, i);
    const unsigned pixel = element_of(pool.p.image, l.channels, at.n, at.row, at.column, 0);
    float value[QUAD] = {0, 0, 0, 0}, given[1][1][QUAD] = {{{0, 0, 0, 0}}}, gradient[QUAD];
    if (inside) {
        take_quad<WHOLE>(value, x + pixel, at.c, l.channels);
        collect_chosen<WHOLE>(pool, at, dy, argmax, given);
    }
    lrn_gradient(l, shared, at.c, l.channels, value, NULL, given[0][0], gradient);
    shut(relu, value, gradient);
    if (inside)
        put_quad<WHOLE>(dx + pixel + at.c, gradient, at.c, l.channels);
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

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

static unsigned threads_of_band(const twi_cuda_pool *p)
{
    return BAND_THREADS / quads_of_pixel(p) * quads_of_pixel(p);
}

static size_t rows_under_window(const twi_cuda_pool *p)
{
    return (size_t)(p->size[0] > p->stride[0] ? p->size[0] : p->stride[0]);
}

/* Of the gradient: of a row of windows; for each row of squares there is one, and besides as many of such; and what it
 * needs before. */
static size_t floats_of_windows(const twi_cuda_pool *p)
{
    return (size_t)p->output[1] * quads_of_pixel(p) * QUAD;
}

static size_t windows_before(const twi_cuda_pool *p)
{
    return (size_t)((max(p->size[0], 2) - 2) / p->stride[0] + 1);
}

static size_t gradient_room(const twi_cuda_pool *p)
{
    return (size_t)threads_of_band(p) * QUAD * 2;
}

bool twi_cuda_bands_fit(const twi_cuda_pool *p)
{
    const size_t most = ASKED_SHARED / sizeof(float);
    return p->channels == 0 ||
           (quads_of_pixel(p) <= BAND_THREADS && floats_of_row(p) * rows_under_window(p) <= most &&
            floats_of_windows(p) * (windows_before(p) + 1) + gradient_room(p) <= most);
}

/* Of `rows` of each image; a band has `before` floats of shared memory, and `each` in every row. As many bands as fill
 * a card, or more, such that two of their blocks fit into a multiprocessor. */
static band_launch plan_bands(const twi_cuda_pool *p, int rows, size_t before, size_t each)
{
    band_launch made;
    const size_t most = max(p->shared / 2, (size_t)ASKED_SHARED) / sizeof(float);
    const int fit = (int)((most - before) / each), wanted = (int)(((int64_t)rows * p->batch + BANDS - 1) / BANDS);
    bands *b = &made.b;
    b->rows = wanted < fit ? wanted : fit;
    b->each_image = (rows + b->rows - 1) / b->rows;
    b->quads = twi_divider_of(quads_of_pixel(p));
    made.blocks = (unsigned)(p->batch * b->each_image);
    made.threads = threads_of_band(p);
    made.shared = (before + each * (size_t)b->rows) * sizeof(float);
    return made;
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
    if (windows_of(p).count == 0)
        return cudaSuccess;
    const band_launch m = plan_bands(p, p->output[0], (rows_under_window(p) - (size_t)p->stride[0]) * row,
                                     (size_t)p->stride[0] * row);
    cudaError_t code = cudaErrorInvalidValue;
    FLOAT_TYPES(type, QUADS(are_whole(p->channels, x, y, argmax, NULL),
                            code = launch_large(m.blocks, m.threads, m.shared, stream, lrn_pool_kernel<T, WHOLE>, *p, *l,
                                                m.b, (const T *)x, (T *)y, argmax)))
    return code;
}

cudaError_t twi_cuda_pool_lrn_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *pooled, const uint8_t *argmax, void *dx)
{
    const size_t row = floats_of_windows(p);
    cudaError_t code = cudaErrorInvalidValue;
    if ((int64_t)p->batch * p->image[0] * p->image[1] * p->channels == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, SIDES(p, const int rows = (p->image[0] + SIDE - 1) / SIDE;
                            const band_launch m = plan_bands(p, rows, windows_before(p) * row + gradient_room(p), row);
                            QUADS(are_whole(p->channels, dy, pooled, argmax, dx),
                                  code = launch_large(m.blocks, m.threads, m.shared, stream,
                                                      pool_lrn_grad_kernel<T, WHOLE, SIDE>, pooling_of(p), *l, relu,
                                                      m.b, (const T *)dy, (const T *)pooled, argmax, (T *)dx))))
    return code;
}

cudaError_t twi_cuda_lrn_pool_grad(cudaStream_t stream, tw_dtype type, const twi_cuda_pool *p, const twi_cuda_lrn *l,
                                   bool relu, const void *dy, const void *x, const uint8_t *argmax, void *dx)
{
    const quads q = quads_of(p->batch, p->image[0], p->image[1], p->channels);
    if (q.count == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, QUADS(are_whole(q.channels, dy, x, argmax, dx),
                            LAUNCH(blocks_of_pixels(q), threads_of(q), shared_of(q, 2), stream,
                                   lrn_pool_grad_kernel<T, WHOLE>)(pooling_of(p), *l, relu, q, (const T *)dy,
                                                                   (const T *)x, argmax, (T *)dx)))
    return cudaGetLastError();
}
