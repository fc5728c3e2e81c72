/* conv_pool.cu - convolutions of few channels with a pool and a local response normalization behind them, and the
 * gradients of their filters and biases, as products of matrices (implicit_gemm.cuh).
 *
 * A block has an image, and what the convolution gives of it, or that's gradient, is never anywhere but in its shared
 * memory: as [pixels][channels], some apart so that the eight pixels of a fragment lie in banks of their own.
 *
 * Forward its windows are looked at there. Backward what was pooled has its gradient by the normalization first,
 * which the pixels then collect from their windows. Warps share out the channels, by 16, and the pixels; the sums of
 * a block's images stay in registers. */
#include "device/cuda/images.cuh"
#include "device/cuda/implicit_gemm.cuh"

enum {
    POOL_WARPS = 16,           /* at most, of a block, forward */
    GRADIENT_WARPS = 12,       /* and backward, where a thread has many sums */
    POOL_ROWS = 2,             /* tiles of rows that one convolves at once */
    APART = 16,                /* numbers between the channels of pixels */
    POOL_BLOCKS = BLOCKS / 2,  /* at most, of gradients; a large card has about as many multiprocessors */
    SIDE = 2,                  /* a thread collects for so many pixels at once, down and across */
    FEW_GROUPS = 3,            /* of 16 columns, and MOST_POOL_GROUPS at most: 28 cells of a filter */
    MOST_POOL_GROUPS = 7,
};

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Where those of all windows go. */
template <typename T> struct pooled_image {
    T *y, *most;
    uint8_t *argmax;
    bool whole; /* quads move at once */
};

/* All of the block's image, by units of rows and of COLUMNS tiles of columns. */
template <typename T, int COLUMNS>
static __device__ __forceinline__ void convolve_image(const tiling &t, const filters &f, const uint32_t *rows,
                                                      const uint32_t *patch, const int *offsets, const T *bias,
                                                      T *image)
{
    constexpr int COUNT = COLUMNS * TILE_COLUMNS, IN_CELL = FEW_CHANNELS / in_word<T>(), PIXELS = POOL_ROWS * TILE_ROWS;
    const int g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4, stride = f.row + GAP;
    const int down = (t.pixels + PIXELS - 1) / PIXELS, units = down * (f.channels / COUNT);
    for (int unit = (int)threadIdx.x / WARP; unit < units; unit += (int)blockDim.x / WARP) {
        const int first_pixel = unit % down * PIXELS, channel = unit / down * COUNT;
        const uint32_t *row = rows + (channel + g) * stride + lane;
        sums s[POOL_ROWS][COLUMNS] = {};
        moments none[1];
        int places[POOL_ROWS][2];
        for (int i = 0; i < POOL_ROWS; i++)
            for (int half = 0; half < 2; half++)
                places[i][half] = place_of(t, first_pixel + i * TILE_ROWS + half * 8 + g);
        for (int w = 0; w < f.row; w += TILE_WORDS)
            multiply_words<T, POOL_ROWS, COLUMNS>(patch, places, offsets[(w + lane) / IN_CELL] + lane % IN_CELL,
                                                  offsets[(w + lane + 4) / IN_CELL] + lane % IN_CELL, row + w, stride,
                                                  s);
        store_results<T, POOL_ROWS, COLUMNS, true, false>(f.relu, t.pixels, f.channels + APART, first_pixel, channel,
                                                          bias, s, image, none);
    }
}

/* The maxima of windows, as floats in `room`, too. */
template <typename T>
static __device__ __forceinline__ void pool_image(const twi_cuda_pool &p, const T *image, const pooled_image<T> &to,
                                                  float *room)
{
    const int each = p.channels / QUAD, apart = p.channels + APART;
    for (int i = (int)threadIdx.x; i < p.output[0] * p.output[1] * each; i += (int)blockDim.x) {
        const int window = i / each, c = i % each * QUAD, row = window / p.output[1];
        const auto read = [&](float (&values)[QUAD], int h, int w) {
            take_quad<true>(values, image + (h * p.image[1] + w) * apart, c, p.channels);
        };
        float most[QUAD];
        int cells[QUAD];
        find_maximum<AT_HAND>(p, row, window - row * p.output[1], read, most, cells);
        store<QUAD>(room + i * QUAD, narrow<float, QUAD>(most));
        if (to.whole) {
            put_quad<true>(to.most + i * QUAD, most, c, p.channels);
            put_cells<true>(to.argmax + i * QUAD, cells, c, p.channels);
        } else {
            put_quad<false>(to.most + i * QUAD, most, c, p.channels);
            put_cells<false>(to.argmax + i * QUAD, cells, c, p.channels);
        }
    }
}

template <typename T>
static __device__ __forceinline__ void normalize_image(const twi_cuda_pool &p, const twi_cuda_lrn &l, const float *room,
                                                       const pooled_image<T> &to)
{
    const int each = p.channels / QUAD;
    for (int i = (int)threadIdx.x; i < p.output[0] * p.output[1] * each; i += (int)blockDim.x) {
        const int window = i / each, c = i % each * QUAD;
        const float *pixel = room + window * p.channels;
        float x[QUAD], normalized[QUAD];
        take_quad<true>(x, pixel, c, p.channels);
        normalize<true>(l, pixel, c, p.channels, x, normalized);
        if (to.whole)
            put_quad<true>(to.y + i * QUAD, normalized, c, p.channels);
        else
            put_quad<false>(to.y + i * QUAD, normalized, c, p.channels);
    }
}

/* Maxima take the place of filters and patch, which nobody needs any more. */
template <typename T, int COLUMNS>
static __global__ void __launch_bounds__(POOL_WARPS *WARP, 1)
convolve_pool_kernel(tiling t, filters f, twi_cuda_pool p, twi_cuda_lrn l, const T *source, const T *filter,
                     const T *bias, pooled_image<T> to)
{
    DYNAMIC_SHARED(uint4, shared);
    constexpr int COUNT = COLUMNS * TILE_COLUMNS, IN_CELL = FEW_CHANNELS / in_word<T>();
    T *image = (T *)shared;
    uint32_t *rows = (uint32_t *)(image + t.pixels * (f.channels + APART)), *patch = rows + f.channels * (f.row + GAP);
    int *offsets = (int *)(patch + t.words);
    const int first = (int)blockIdx.x * p.output[0] * p.output[1] * f.channels;
    for (int channel = 0; channel < f.channels; channel += COUNT)
        load_filters<T, COUNT, true, false>(t, f, channel, filter, rows + channel * (f.row + GAP));
    load_patch<T, 0, false>(t, (int)blockIdx.x, 0, source, patch);
    for (int i = (int)threadIdx.x; i < f.row / IN_CELL; i += (int)blockDim.x)
        offsets[i] = i < t.size[0] * t.size[1] ? cell_offset(t, i) : 0;
    __syncthreads();
    convolve_image<T, COLUMNS>(t, f, rows, patch, offsets, bias, image);
    __syncthreads();
    to = {to.y + first, to.most + first, to.argmax + first, to.whole};
    pool_image(p, image, to, (float *)rows);
    __syncthreads();
    normalize_image(p, l, (float *)rows, to);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* What there is of all windows. */
template <typename T> struct pooled_before {
    const T *dy, *most;
    const uint8_t *argmax;
    bool whole; /* quads move at once */
};

/* The gradients of an image's pixels, some numbers apart and zeros behind them up to `pixels`, and their sums. */
template <typename T>
static __device__ __forceinline__ void spread_image(const pooling &pool, const standing &own, int pixels, int apart,
                                                    const uint8_t *argmax, bool whole, const float *gradients, T *image,
                                                    float (&sum)[QUAD])
{
    const twi_cuda_pool &p = pool.p;
    const int across = (p.image[1] + SIDE - 1) / SIDE, down = (p.image[0] + SIDE - 1) / SIDE;
    const auto look = [&](int (&cells)[QUAD], float (&values)[QUAD], int row, int column) {
        const int window = (row * p.output[1] + column) * p.channels;
        if (whole)
            take_cells<true>(cells, argmax + window, own.c, p.channels);
        else
            take_cells<false>(cells, argmax + window, own.c, p.channels);
        take_quad<true>(values, gradients + window, own.c, p.channels);
    };
    for (int i = own.slot; i < down * across; i += own.slots) {
        const place at = {0, i / across * SIDE, i % across * SIDE, own.c};
        float collected[SIDE][SIDE][QUAD];
        collect(pool, at, look, collected);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                if (at.row + y >= p.image[0] || at.column + x >= p.image[1])
                    continue;
                const auto rounded = narrow<T, QUAD>(collected[y][x]);
                store<QUAD>(image + ((at.row + y) * p.image[1] + at.column + x) * apart + own.c, rounded);
                for (int k = 0; k < QUAD; k++)
                    sum[k] += to_float(rounded.at[k]);
            }
    }
    const float none[QUAD] = {};
    for (int i = p.image[0] * p.image[1] + own.slot; i < pixels; i += own.slots)
        store<QUAD>(image + i * apart + own.c, narrow<T, QUAD>(none));
}

/* The sums of all threads that have a channel, in the order of their slots. */
static __device__ __forceinline__ void fold_slots(int channels, int slots, float *room, const float (&sum)[QUAD],
                                                  float *to)
{
    store<QUAD>(room + (int)threadIdx.x * QUAD, narrow<float, QUAD>(sum));
    __syncthreads();
    for (int c = (int)threadIdx.x; c < channels; c += (int)blockDim.x) {
        float all = room[c];
        for (int slot = 1; slot < slots; slot++)
            all += room[slot * channels + c];
        to[c] = all;
    }
}

/* Parts are [blocks][warps of channels, GROUPS * 8, WARP; channels]. `room`: words for an image's gradient. */
template <typename T, int GROUPS>
static __global__ void __launch_bounds__(GRADIENT_WARPS *WARP, 1)
pool_gradient_kernel(tiling t, gradient p, pooling pool, twi_cuda_lrn l, bool relu, int room, const T *source,
                     pooled_before<T> of, float *sums_of_blocks, unsigned *counters, T *filter, T *bias)
{
    DYNAMIC_SHARED(uint4, shared);
    constexpr int COUNT = GROUPS * 8 * WARP;
    const int channels = p.out_channels, each = channels / QUAD, slices = channels / SLICE;
    const int warp = (int)threadIdx.x / WARP, shares = (int)blockDim.x / WARP / slices;
    const int windows = pool.p.output[0] * pool.p.output[1], stride = slice_stride<T>(slices);
    const standing own = {(int)threadIdx.x / each, (int)blockDim.x / each, (int)threadIdx.x % each * QUAD};
    uint32_t *image = (uint32_t *)shared, *patch = image + room;
    int *places = (int *)(patch + t.words), offsets[GROUPS][2];
    float *gradients = (float *)(places + p.pixels), sum[QUAD] = {};
    sums s[1][GROUPS][2] = {};
    for (int i = (int)threadIdx.x; i < p.pixels; i += (int)blockDim.x)
        places[i] = place_of(t, i);
    find_columns<T, GROUPS, true>(t, p, 0, offsets);
    for (int n = (int)blockIdx.x; n < t.batch; n += (int)gridDim.x) {
        const int first = n * windows * channels;
        const auto read = [&](float (&x)[QUAD], float (&dy)[QUAD], int window) {
            const int at = first + window * channels;
            if (of.whole) {
                take_quad<true>(x, of.most + at, own.c, channels);
                take_quad<true>(dy, of.dy + at, own.c, channels);
            } else {
                take_quad<false>(x, of.most + at, own.c, channels);
                take_quad<false>(dy, of.dy + at, own.c, channels);
            }
        };
        load_patch<T, 0, false>(t, n, 0, source, patch);
        pooled_gradients(l, relu, own, windows, read, (float *)image, gradients);
        spread_image(pool, own, p.pixels, stride * in_word<T>(), of.argmax + first, of.whole, gradients, (T *)image,
                     sum);
        __syncthreads();
        add_pixels<T, 1, GROUPS>(warp / slices, shares, p.pixels, stride, patch,
                                 image + warp % slices * SLICE / in_word<T>(), places, offsets, s);
        __syncthreads();
    }
    const int numbers = slices * COUNT, count = numbers + channels;
    const block_sums all = {sums_of_blocks, count, count};
    float *part = all.all + (int64_t)blockIdx.x * count;
    fold_warps<1, GROUPS>(numbers, shares, (float *)shared, s, part);
    __syncthreads();
    fold_slots(channels, own.slots, (float *)shared, sum, part + numbers);
    if (!add_blocks(all, counters))
        return;
    for (int i = (int)threadIdx.x; i < numbers; i += (int)blockDim.x) {
        const int64_t at = place_of_sum<T, 1, GROUPS, true>(p, t.channels, i / COUNT, i % COUNT / WARP, i % WARP);
        if (at >= 0)
            put(filter + at, all.all[i]);
    }
    for (int c = (int)threadIdx.x; c < channels; c += (int)blockDim.x)
        put(bias + c, all.all[numbers + c]);
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

struct pool_shape {
    tiling t;
    filters f;                 /* forward */
    int columns;
    gradient p;                /* backward */
    int groups, room;
    unsigned blocks, threads;
    size_t shared, workspace;
};

static void lay_forward(const twi_cuda_conv *c, pool_shape *s)
{
    const twi_cuda_pool *p = &c->pool;
    const int in_word = (int)(sizeof(uint32_t) / tw_dtype_size(c->type)), channels = c->out_channels;
    const int pixels = s->t.pixels, rows = POOL_ROWS * TILE_ROWS;
    s->columns = channels % 64 ? 2 : 8;
    s->f.channels = channels;
    s->f.row = (c->size[0] * c->size[1] * FEW_CHANNELS / in_word + TILE_WORDS - 1) / TILE_WORDS * TILE_WORDS;
    s->f.relu = c->relu;
    const int units = (pixels + rows - 1) / rows * (channels / s->columns / TILE_COLUMNS);
    s->threads = (unsigned)(min(units, (int)POOL_WARPS) * WARP);
    s->blocks = (unsigned)c->batch;
    const size_t inputs = (size_t)(channels * (s->f.row + GAP) + s->t.words + s->f.row) * sizeof(uint32_t);
    const size_t maxima = (size_t)p->output[0] * (size_t)p->output[1] * (size_t)channels * sizeof(float);
    s->shared = (size_t)pixels * (size_t)(channels + APART) * tw_dtype_size(c->type) + max(inputs, maxima);
}

/* Threads are whole pixels, and warps whole shares of the channels. */
static bool lay_backward(const twi_cuda_conv *c, pool_shape *s)
{
    const twi_cuda_pool *p = &c->pool;
    const int in_word = (int)(sizeof(uint32_t) / tw_dtype_size(c->type)), at_once = TILE_WORDS * in_word;
    const int channels = c->out_channels, slices = channels / SLICE, cells = c->size[0] * c->size[1];
    const int columns = (cells + 3) / 4; /* four cells each */
    if (slices > GRADIENT_WARPS || columns > MOST_POOL_GROUPS)
        return false;
    s->groups = columns <= FEW_GROUPS ? FEW_GROUPS : MOST_POOL_GROUPS;
    s->p.out_channels = channels;
    s->p.cells = cells;
    s->p.groups = columns;
    s->p.parts = s->p.slices = 1;
    s->p.pixels = (s->t.pixels + at_once - 1) / at_once * at_once;
    s->p.out_last = true;
    s->threads = (unsigned)(GRADIENT_WARPS / slices * slices * WARP);
    s->blocks = (unsigned)min(c->batch, (int)POOL_BLOCKS);
    const int stride = in_word == 2 ? slice_stride<__half>(slices) : slice_stride<float>(slices);
    s->room = max(s->p.pixels * stride, (int)s->threads * QUAD * 2);
    const int words = s->room + s->t.words + s->p.pixels + p->output[0] * p->output[1] * channels;
    const int folded = (int)s->threads * s->groups * 8, numbers = slices * s->groups * 8 * WARP + channels;
    s->shared = (size_t)max(words, folded) * sizeof(uint32_t);
    s->workspace = s->blocks * (size_t)numbers * sizeof(float);
    return true;
}

static bool lay(const twi_cuda_conv *c, pool_shape *s)
{
    *s = (pool_shape){};
    if (!c->pooled || !counts(c) || c->in_channels > FEW_CHANNELS || c->out_channels % SLICE ||
        c->pool.size[0] * c->pool.size[1] > 256)
        return false;
    s->t.batch = c->batch;
    s->t.channels = c->in_channels;
    s->t.stride = FEW_CHANNELS * (int)tw_dtype_size(c->type) / (int)sizeof(uint32_t);
    for (int i = 0; i < 2; i++) {
        s->t.source[i] = c->image[i];
        s->t.result[i] = c->output[i];
        s->t.size[i] = c->size[i];
        s->t.before[i] = c->before[i];
    }
    if (!cut(&s->t, c->output[0] * c->output[1]))
        return false;
    if (c->direction == TWI_CONV_FORWARD)
        lay_forward(c, s);
    else if (!lay_backward(c, s))
        return false;
    return s->shared <= c->shared;
}

bool twi_cuda_conv_pool_fits(const twi_cuda_conv *c, size_t *workspace)
{
    pool_shape s;
    const bool fits = lay(c, &s);
    *workspace = fits ? s.workspace : 0;
    return fits;
}

template <typename T>
static cudaError_t convolve_pool(cudaStream_t stream, const twi_cuda_conv *c, const pool_shape &s, const void *image,
                                 const void *filter, const void *bias, const pooled_image<T> &to)
{
    const auto kernel = s.columns == 8 ? convolve_pool_kernel<T, 8> : convolve_pool_kernel<T, 2>;
    return launch_large(s.blocks, s.threads, s.shared, stream, kernel, s.t, s.f, c->pool, c->lrn, (const T *)image,
                        (const T *)filter, (const T *)bias, to);
}

cudaError_t twi_cuda_conv_pool(cudaStream_t stream, const twi_cuda_conv *c, const void *image, const void *filter,
                               const void *bias, void *y, void *pooled, uint8_t *argmax)
{
    pool_shape s;
    cudaError_t code = cudaErrorInvalidValue;
    const bool whole = is_aligned(y) && is_aligned(pooled) && is_aligned(argmax);
    if (c->direction == TWI_CONV_FORWARD && lay(c, &s))
        FLOAT_TYPES(c->type, code = convolve_pool<T>(stream, c, s, image, filter, bias,
                                                     {(T *)y, (T *)pooled, argmax, whole}))
    return code;
}

template <typename T>
static cudaError_t pool_gradient(cudaStream_t stream, const twi_cuda_conv *c, const pool_shape &s, const void *image,
                                 const pooled_before<T> &of, void *filter, void *bias, void *workspace)
{
    const auto kernel =
        s.groups == FEW_GROUPS ? pool_gradient_kernel<T, FEW_GROUPS> : pool_gradient_kernel<T, MOST_POOL_GROUPS>;
    return launch_large(s.blocks, s.threads, s.shared, stream, kernel, s.t, s.p, pooling_of(&c->pool), c->lrn, c->relu,
                        s.room, (const T *)image, of, (float *)workspace, c->counters, (T *)filter, (T *)bias);
}

cudaError_t twi_cuda_conv_pool_grad(cudaStream_t stream, const twi_cuda_conv *c, const void *image, const void *dy,
                                    const void *pooled, const uint8_t *argmax, void *filter, void *bias,
                                    void *workspace)
{
    pool_shape s;
    cudaError_t code = cudaErrorInvalidValue;
    const bool whole = is_aligned(dy) && is_aligned(pooled) && is_aligned(argmax);
    if (c->direction == TWI_CONV_BACKWARD_FILTER && lay(c, &s))
        FLOAT_TYPES(c->type, code = pool_gradient<T>(stream, c, s, image,
                                                     {(const T *)dy, (const T *)pooled, argmax, whole}, filter, bias,
                                                     workspace))
    return code;
}
