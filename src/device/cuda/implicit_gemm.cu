/* implicit_gemm.cu - convolutions of few channels as products of matrices that are never written down (matrix.cuh).
 *
 * A block has a tile of the result: some rows of an image, or some whole images. What of the source these see, with zeros
 * around the image, lies in the block's shared memory as [pixels][words], some words apart so that the eight pixels of a
 * fragment lie in banks of their own. A row of the left matrix is a pixel of the result, its columns are the cells and
 * channels of the filter, so a fragment is loaded from where the pixel and the cell meet.
 *
 * Up to 4 channels are filled up to 4, and then four cells of the filter are 16 columns.
 *
 * Where a pool and a local response normalization follow one of few channels, a block has an image, which stays in its
 * shared memory as [pixels][channels] until its windows have been looked at.
 *
 * Where a batch normalization follows, a block leaves the moments of what it has stored: a lane has those of the quads
 * of channels that it stores, lanes and warps merge theirs at the end.
 *
 * The gradient of the image is the convolution of the output's gradient with the filter turned round. The gradient of the
 * filter adds over pixels: each warp takes some of a tile's, the warps' sums are added in the block, those of a few
 * neighbouring blocks by the last of them, and what these have by the last of all: one block would read them for longer
 * than another launch takes. All in an order that sizes alone decide. */
#include "device/cuda/divide.cuh"
#include "device/cuda/large_shared.cuh"
#include "device/cuda/last_block.cuh"
#include "device/cuda/matrix.cuh"
#include "device/cuda/moments.cuh"

enum {
    WARP = 32,
    FEW_CHANNELS = 4,          /* in memory there are as many */
    SLICE = 16,                /* channels that a block of the filter's gradient has, of each side */
    FILTER_WARPS = 8,
    MOST_WARPS = 9,
    MOST_WIDTH = 128,          /* of a result */
    MOST_GROUPS = 9,           /* of 16 columns, in the filter's gradient */
    GAP = 4,                   /* words between rows of shared memory */
    PIECE = 4,                 /* words that are sent at once */
    BLOCKS = 264,              /* about as many, the same on every card; each has several tiles */
    POOL_WARPS = 16,           /* at most, of a block that pools; each convolves POOL_ROWS tiles of rows at once */
    POOL_ROWS = 2,
    APART = 16,                /* numbers between the channels of pixels, where these are pooled */
    TOGETHER = 16,             /* blocks whose sums the last of them adds up: about the root of BLOCKS */
};

struct tiling {
    int batch, channels;       /* of the source */
    int source[2], result[2], size[2], before[2];
    int images, rows;          /* of results in a tile: whole images, or rows of one */
    int down;                  /* tiles of an image, one below the other */
    int stride;                /* words from a pixel of the source to the next in shared memory */
    int patch[2];              /* sides of what a tile sees of an image */
    int words, pixels, tiles;  /* of a tile's patch; of a tile; in all */
    twi_divider by_down, by_patch[2], by_rows, by_width, by_size;
};

/* Whose results a tile's are: they lie side by side. */
struct span {
    int image, row;            /* of the first one */
    int first, count;          /* its number; how many there are */
};

static __device__ __forceinline__ span span_of(const tiling &t, int tile)
{
    uint32_t row;
    const int image = (int)twi_divide(t.by_down, (uint32_t)tile, &row) * t.images, top = (int)row * t.rows;
    const int left = t.images > 1 ? (t.batch - image) * t.result[0] : t.result[0] - top;
    return {image, top, (image * t.result[0] + top) * t.result[1], min(t.pixels, left * t.result[1])};
}

/* Numbers as a word; there are `count` of them, and then zeros. */
template <typename T> static __device__ __forceinline__ uint32_t word_of(const T *from, int count, int apart = 1)
{
    T numbers[in_word<T>()];
    uint32_t word;
#pragma unroll
    for (int i = 0; i < in_word<T>(); i++)
        if (i < count)
            numbers[i] = from[i * apart];
        else
            put(&numbers[i], 0.0f);
    memcpy(&word, numbers, sizeof word);
    return word;
}

/* Four words, or zeros, from anywhere. */
template <bool ALIGNED, typename T>
static __device__ __forceinline__ void bring(uint32_t *to, const T *from, bool there)
{
    if (ALIGNED)
        send(to, from, there);
    else
        for (int i = 0; i < PIECE; i++)
            to[i] = there ? word_of(from + i * in_word<T>(), in_word<T>()) : 0;
}

/* PIECES a pixel, from a channel on, of what a tile sees; 0: all of few channels. */
template <typename T, int PIECES, bool ALIGNED>
static __device__ __forceinline__ void load_patch(const tiling &t, int tile, int channel, const T *from, uint32_t *to)
{
    constexpr bool FEW = PIECES == 0;
    constexpr int EACH = FEW ? 1 : PIECES;
    const span at = span_of(t, tile);
    const int image = at.image, top = at.row - t.before[0];
    for (int i = (int)threadIdx.x; i < t.images * t.patch[0] * t.patch[1] * EACH; i += (int)blockDim.x) {
        const int pixel = i / EACH, piece = i % EACH;
        uint32_t column, line;
        const uint32_t lines = twi_divide(t.by_patch[1], (uint32_t)pixel, &column);
        const int n = (int)twi_divide(t.by_patch[0], lines, &line) + image;
        const int x = (int)column - t.before[1], y = (int)line + top;
        const bool there = x >= 0 && x < t.source[1] && y >= 0 && y < t.source[0] && n < t.batch;
        const T *cell = from + (there ? ((n * t.source[0] + y) * t.source[1] + x) * t.channels : 0);
        uint32_t *own = to + pixel * t.stride;
        if (!FEW)
            bring<ALIGNED>(own + piece * PIECE, cell + channel + piece * PIECE * in_word<T>(), there);
        else
#pragma unroll
            for (int w = 0; w < FEW_CHANNELS / in_word<T>(); w++)
                own[w] = word_of(cell + w * in_word<T>(), there ? t.channels - w * in_word<T>() : 0);
    }
}

/* Where in the patch the first cell of the filter lies for a pixel of the tile. */
static __device__ __forceinline__ int place_of(const tiling &t, int pixel)
{
    uint32_t x, y;
    const uint32_t lines = twi_divide(t.by_width, pixel < t.pixels ? (uint32_t)pixel : 0, &x);
    const uint32_t image = twi_divide(t.by_rows, lines, &y);
    return (((int)image * t.patch[0] + (int)y) * t.patch[1] + (int)x) * t.stride;
}

static __device__ __forceinline__ int cell_offset(const tiling &t, int cell)
{
    uint32_t x;
    const uint32_t y = twi_divide(t.by_size, (uint32_t)cell, &x);
    return ((int)y * t.patch[1] + (int)x) * t.stride;
}

/* ---- the output, and the gradient of the image ------------------------------------------------------------------- */

struct filters {
    int channels;              /* of the result */
    int row;                   /* words of the filter of one of them */
    bool turned;               /* [channels of the source][cells][of the result] are to be taken from the last cell on */
    bool relu;
};

/* A filter's place among those of 16 channels: even ones first, so that a lane's sums are of neighbours. */
static __device__ __forceinline__ int filter_row(int n)
{
    return n / 16 * 16 + n % 2 * 8 + n % 16 / 2;
}

/* Filters of COUNT channels of the result, from `channel` on, some words apart. */
template <typename T, int COUNT, bool FEW, bool ALIGNED>
static __device__ void load_filters(const tiling &t, const filters &f, int channel, const T *from, uint32_t *to)
{
    const int all = t.size[0] * t.size[1], words = t.channels / in_word<T>(), stride = f.row + GAP;
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    if (f.turned) {
        const int apart = all * f.channels;
        for (int i = warp; i < all * words; i += warps) { /* a word of COUNT channels */
            const int cell = i / words, w = i % words;
            const T *first = from + w * in_word<T>() * apart + (all - 1 - cell) * f.channels + channel;
            for (int n = lane; n < COUNT; n += WARP)
                to[filter_row(n) * stride + i] = word_of(first + n, in_word<T>(), apart);
        }
        return;
    }
    for (int n = warp; n < COUNT; n += warps) { /* a channel */
        const T *own = from + (channel + n) * all * t.channels;
        uint32_t *row = to + filter_row(n) * stride;
        if (FEW)
            for (int w = lane; w < f.row; w += WARP) {
                const int cell = w * in_word<T>() / FEW_CHANNELS, c = w * in_word<T>() % FEW_CHANNELS;
                row[w] = word_of(own + cell * t.channels + c, cell < all ? t.channels - c : 0);
            }
        else
            for (int piece = lane; piece < f.row / PIECE; piece += WARP)
                bring<ALIGNED>(row + piece * PIECE, own + piece * PIECE * in_word<T>(), true);
    }
}

/* 16 columns of `ROWS` tiles of rows times as many rows of `COLUMNS` tiles of columns. Words first and second of a row lie
 * at its place and the offsets. */
template <typename T, int ROWS, int COLUMNS>
static __device__ __forceinline__ void multiply_words(const uint32_t *patch, const int (&places)[ROWS][2], int first,
                                                      int second, const uint32_t *filter, int stride,
                                                      sums (&s)[ROWS][COLUMNS])
{
    left a[ROWS];
    right b[COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            a[i].at[half] = factor<T>(patch[places[i][half] + first]);
            a[i].at[half + 2] = factor<T>(patch[places[i][half] + second]);
        }
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
        b[j].at[0] = factor<T>(filter[j * TILE_COLUMNS * stride]);
        b[j].at[1] = factor<T>(filter[j * TILE_COLUMNS * stride + 4]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
            multiply_add<T>(s[i][j], a[i], b[j]);
}

/* The moments of what a lane stores of a tile, each a quad of its pixels, as far as there are such. */
template <typename T, int ROWS>
static __device__ __forceinline__ void add_moments(const vector<T, QUAD> (&stored)[ROWS * 2], int first, int count,
                                                   moments *all)
{
    moments some = {};
#pragma unroll
    for (int i = 0; i < ROWS * 2; i++)
        if (first + i * 8 < count) {
            some.count += 1;
            for (int k = 0; k < QUAD; k++)
                some.mean[k] += to_float(stored[i].at[k]);
        }
    if (some.count == 0)
        return;
    const float inverse = __fdividef(1, some.count);
    for (int k = 0; k < QUAD; k++)
        some.mean[k] *= inverse;
#pragma unroll
    for (int i = 0; i < ROWS * 2; i++)
        for (int k = 0; k < QUAD && first + i * 8 < count; k++) {
            const float apart = to_float(stored[i].at[k]) - some.mean[k];
            some.squares[k] += apart * apart;
        }
    merge(all, some);
}

/* Leaves what the block's lanes have found, of `quads` in all from `quad` on; room is the block's own. */
template <int COUNT>
static __device__ __forceinline__ void leave_moments(moments (&all)[COUNT], moments *room, int quad, int quads,
                                                     part *parts)
{
    const int warp = (int)threadIdx.x / WARP, g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    const int warps = (int)blockDim.x / WARP;
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        for (int step = 4; step < WARP; step *= 2)
            merge(&all[j], other_lane(all[j], step));
        if (g == 0)
            room[(warp * COUNT + j) * 4 + lane] = all[j];
    }
    __syncthreads();
    const int own = (int)threadIdx.x;
    if (own >= COUNT * 4)
        return;
    moments found = room[own];
    for (int w = 1; w < warps; w++)
        merge(&found, room[w * COUNT * 4 + own]);
    parts[(int)blockIdx.x * quads + quad + own] = part_of(found);
    if (quad + own == 0)
        rows_of_parts(parts, (int)gridDim.x, quads)[blockIdx.x] = found.count;
}

/* Of two tiles of columns a lane has four channels that lie side by side, of two pixels. `to` is where the first of
 * `count` pixels of a tile lies, some numbers apart from the next. */
template <typename T, int ROWS, int COLUMNS, bool ALIGNED, bool MOMENTS>
static __device__ __forceinline__ void store_results(bool relu, int count, int apart, int first_pixel, int channel,
                                                     const T *bias, const sums (&s)[ROWS][COLUMNS], T *to,
                                                     moments (&all)[MOMENTS ? COLUMNS / 2 : 1])
{
    const int g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    T *own = to + (first_pixel + g) * apart + channel + lane * 4;
#pragma unroll
    for (int j = 0; j < COLUMNS / 2; j++) {
        float add[4] = {};
        if (bias)
#pragma unroll
            for (int k = 0; k < 4; k++)
                add[k] = to_float(bias[channel + j * 2 * TILE_COLUMNS + lane * 4 + k]);
        vector<T, QUAD> stored[ROWS * 2];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int next = i * TILE_ROWS + half * 8;
                float x[4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const float sum = s[i][2 * j + k % 2].at[half * 2 + k / 2] + add[k];
                    x[k] = relu && sum <= 0 ? 0 : sum;
                }
                stored[i * 2 + half] = narrow<T, QUAD>(x);
                if (first_pixel + next + g < count)
                    store<ALIGNED ? QUAD : 1>(own + next * apart + j * 2 * TILE_COLUMNS, stored[i * 2 + half]);
            }
        if constexpr (MOMENTS)
            add_moments<T, ROWS>(stored, first_pixel + g, count, &all[j]);
    }
}

/* A block's filters stay; one tile is multiplied while the next is on its way. */
template <typename T, int ROWS, int COLUMNS, int PIECES, bool ALIGNED, bool MOMENTS>
static __global__ void __launch_bounds__(MOST_WARPS *WARP, 1)
convolve_kernel(tiling t, filters f, const T *source, const T *filter, const T *bias, T *to, part *parts)
{
    DYNAMIC_SHARED(uint4, shared);
    constexpr bool FEW = PIECES == 0;
    constexpr int COUNT = COLUMNS * TILE_COLUMNS, IN_CELL = FEW_CHANNELS / in_word<T>();
    const int warp = (int)threadIdx.x / WARP, g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    const int first_pixel = warp * ROWS * TILE_ROWS, channel = (int)blockIdx.y * COUNT, stride = f.row + GAP;
    uint32_t *rows = (uint32_t *)shared, *patches = rows + COUNT * stride;
    int places[ROWS][2], *offsets = (int *)(patches + 2 * t.words);
    moments all[MOMENTS ? COLUMNS / 2 : 1] = {};
    load_filters<T, COUNT, FEW, ALIGNED>(t, f, channel, filter, rows);
    load_patch<T, PIECES, ALIGNED>(t, (int)blockIdx.x, 0, source, patches);
    depart();
    for (int i = 0; i < ROWS; i++)
        for (int half = 0; half < 2; half++)
            places[i][half] = place_of(t, first_pixel + i * TILE_ROWS + half * 8 + g);
    for (int i = (int)threadIdx.x; i < f.row / IN_CELL && FEW; i += (int)blockDim.x)
        offsets[i] = i < t.size[0] * t.size[1] ? cell_offset(t, i) : 0;
    for (int tile = (int)blockIdx.x, turn = 0; tile < t.tiles; tile += (int)gridDim.x, turn = 1 - turn) {
        const uint32_t *patch = patches + turn * t.words, *row = rows + g * stride + lane;
        sums s[ROWS][COLUMNS] = {};
        if (tile + (int)gridDim.x < t.tiles)
            load_patch<T, PIECES, ALIGNED>(t, tile + (int)gridDim.x, 0, source, patches + (1 - turn) * t.words);
        depart();
        arrive<1>();
        __syncthreads();
        if (FEW) {
            for (int w = 0; w < f.row; w += TILE_WORDS)
                multiply_words<T, ROWS, COLUMNS>(patch, places, offsets[(w + lane) / IN_CELL] + lane % IN_CELL,
                                                 offsets[(w + lane + 4) / IN_CELL] + lane % IN_CELL, row + w, stride, s);
        } else {
            for (int y = 0; y < t.size[0]; y++)
                for (int x = 0; x < t.size[1]; x++) {
                    const int offset = (y * t.patch[1] + x) * t.stride + lane;
#pragma unroll 2
                    for (int w = 0; w < PIECES * PIECE; w += TILE_WORDS)
                        multiply_words<T, ROWS, COLUMNS>(patch, places, offset + w, offset + w + 4, row + w, stride, s);
                    row += PIECES * PIECE;
                }
        }
        const span at = span_of(t, tile);
        store_results<T, ROWS, COLUMNS, ALIGNED, MOMENTS>(f.relu, at.count, f.channels, first_pixel, channel, bias, s,
                                                          to + at.first * f.channels, all);
        __syncthreads();
    }
    if constexpr (MOMENTS) /* which nobody needs the tiles' room for any more */
        leave_moments(all, (moments *)shared, channel / QUAD, f.channels / QUAD, parts);
}

/* ---- the output, pooled and normalized --------------------------------------------------------------------------- */

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

/* ---- the gradient of the filter ---------------------------------------------------------------------------------- */

/* A block has 16 channels of the output's gradient a side, and of the image's 16, or its few, at `groups` cells (or, of
 * few channels, fours of cells), over some of the tiles. */
struct gradient {
    int out_channels, cells;
    int groups, parts;         /* of 16 columns a block; of the cells */
    int slices;                /* of the image's channels */
    int pixels;                /* of a tile, filled up with zeros */
    int buffers;               /* tiles in shared memory at once */
};

/* Words from a pixel to the next in shared memory, of so many slices. */
template <typename T> static __host__ __device__ constexpr int slice_stride(int slices)
{
    return slices * SLICE / in_word<T>() + (in_word<T>() == 2 ? GAP : 2 * GAP);
}

/* Pixels of a tile of the output's gradient. */
template <typename T, int SIDES, bool ALIGNED>
static __device__ __forceinline__ void load_gradients(const tiling &t, const gradient &p, int tile, int channel,
                                                      const T *from, uint32_t *to)
{
    constexpr int PIECES = SIDES * SLICE / in_word<T>() / PIECE, STRIDE = slice_stride<T>(SIDES);
    const span at = span_of(t, tile);
    for (int i = (int)threadIdx.x; i < p.pixels * PIECES; i += (int)blockDim.x) {
        const int pixel = i / PIECES, piece = i % PIECES;
        const bool there = pixel < at.count;
        const T *own = from + (there ? (at.first + pixel) * p.out_channels : 0) + channel;
        bring<ALIGNED>(to + pixel * STRIDE + piece * PIECE, own + piece * PIECE * in_word<T>(), there);
    }
}

/* Of what lies as [pixels][words] a fragment whose rows, or columns, are a pixel's numbers, and whose words are pixels: of
 * words of two numbers the two fragments of their first ones and of their second ones. */
static __device__ __forceinline__ void gather(const uint32_t *from, const int (&pixels)[4], uint32_t &first0,
                                              uint32_t &second0, uint32_t &first1, uint32_t &second1)
{
    const uint32_t x0 = from[pixels[0]], x1 = from[pixels[1]], x2 = from[pixels[2]], x3 = from[pixels[3]];
    first0 = first_of(x0, x1);
    second0 = second_of(x0, x1);
    first1 = first_of(x2, x3);
    second1 = second_of(x2, x3);
}

/* Which pixels a lane has of those that a fragment's words are. */
template <typename T> static __device__ __forceinline__ int pixel_of(int lane, int i)
{
    return in_word<T>() == 2 ? 2 * lane + i % 2 + i / 2 * 8 : lane + i % 2 * 4;
}

template <typename T, int SIDES, int GROUPS>
static __device__ __forceinline__ void add_pixels(int pixels, const uint32_t *patch, const uint32_t *gradients,
                                                  const int *places, const int (&offsets)[GROUPS][2],
                                                  sums (&s)[SIDES][GROUPS][2])
{
    constexpr int AT_ONCE = TILE_WORDS * in_word<T>(), STRIDE = slice_stride<T>(SIDES);
    const int warp = (int)threadIdx.x / WARP, g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    for (int first = warp * AT_ONCE; first < pixels; first += FILTER_WARPS * AT_ONCE) {
        left a[SIDES];
        int own[4], place[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            own[i] = (first + pixel_of<T>(lane, i)) * STRIDE;
            place[i] = places[first + pixel_of<T>(lane, i)];
        }
#pragma unroll
        for (int m = 0; m < SIDES; m++) {
            const uint32_t *side = gradients + m * SLICE / in_word<T>() + g;
            if (in_word<T>() == 2)
                gather(side, own, a[m].at[0], a[m].at[1], a[m].at[2], a[m].at[3]);
            else
#pragma unroll
                for (int i = 0; i < 4; i++)
                    a[m].at[i] = factor<T>(side[own[i / 2] + i % 2 * 8]);
        }
#pragma unroll
        for (int q = 0; q < GROUPS; q++) {
            right b[2];
            if (in_word<T>() == 2)
                gather(patch + offsets[q][0], place, b[0].at[0], b[1].at[0], b[0].at[1], b[1].at[1]);
            else
#pragma unroll
                for (int i = 0; i < 4; i++)
                    b[i / 2].at[i % 2] = factor<T>(patch[place[i % 2] + offsets[q][i / 2]]);
#pragma unroll
            for (int m = 0; m < SIDES; m++) {
                multiply_add<T>(s[m][q][0], a[m], b[0]);
                multiply_add<T>(s[m][q][1], a[m], b[1]);
            }
        }
    }
}

/* The sums of all warps, by all threads: [COUNT][WARP] of the block. */
template <int SIDES, int GROUPS>
static __device__ __forceinline__ void fold_warps(float *room, const sums (&s)[SIDES][GROUPS][2], float *to)
{
    constexpr int COUNT = SIDES * GROUPS * 2 * 4;
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        room[(warp * COUNT + i) * WARP + lane] = s[i / (GROUPS * 8)][i / 8 % GROUPS][i / 4 % 2].at[i % 4];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < COUNT * WARP; i += FILTER_WARPS * WARP) {
        float sum = room[i];
#pragma unroll
        for (int w = 1; w < FILTER_WARPS; w++)
            sum += room[w * COUNT * WARP + i];
        to[i] = sum;
    }
}

/* What the card has of a column of blocks' sums: element i of part p lies at all + p * apart + i. */
struct block_sums {
    float *all;
    int64_t apart;
};

/* Part `first` becomes the sum of itself and of every `step`th behind it up to `end`, of COUNT numbers each. */
template <int COUNT>
static __device__ __forceinline__ void add_parts(const block_sums &of, int first, int end, int step)
{
    constexpr int V = width<float>::value;
    for (int i = (int)threadIdx.x * V; i < COUNT; i += FILTER_WARPS * WARP * V) {
        float *to = of.all + first * of.apart + i;
        auto sum = load<V, V>((const float *)to);
#pragma unroll 8
        for (int p = first + step; p < end; p += step) {
            const auto more = load<V, V>((const float *)of.all + p * of.apart + i);
#pragma unroll
            for (int v = 0; v < V; v++)
                sum.at[v] += more.at[v];
        }
        store<V>(to, sum);
    }
}

/* Adds up what all blocks of a column have, by the last that comes of each TOGETHER, and the last of those; true in that
 * one, where part 0 is the sum. */
template <int COUNT> static __device__ __forceinline__ bool add_blocks(const block_sums &of, unsigned *counters)
{
    const int blocks = (int)gridDim.x, group = (int)blockIdx.x / TOGETHER, groups = (blocks + TOGETHER - 1) / TOGETHER;
    const int first = group * TOGETHER, end = min(first + TOGETHER, blocks);
    if (!comes_last(counters + 1 + group, (unsigned)(end - first)))
        return false;
    add_parts<COUNT>(of, first, end, 1);
    if (!comes_last(counters, (unsigned)groups))
        return false;
    add_parts<COUNT>(of, 0, blocks, TOGETHER);
    __syncthreads();
    return true;
}

/* Sum i of a lane's belongs to this number of the filter's gradient; -1: to none. `y`: which blocks have it. */
template <typename T, int SIDES, int GROUPS, bool FEW>
static __device__ __forceinline__ int64_t place_of_sum(const gradient &p, int channels, int y, int i, int of)
{
    const int g = of / 4, t = of % 4, row = i / 2 % 2, right = i % 2, second = i / 4 % 2, q = i / 8 % GROUPS;
    const int k = i / 8 / GROUPS * SLICE + (in_word<T>() == 2 ? 2 * g + row : g + 8 * row);
    const int column = in_word<T>() == 2 ? 4 * t + 2 * right + second : 8 * second + 2 * t + right;
    const int part = y % p.parts, slice = y / p.parts % p.slices;
    const int first = part * p.groups + q, cell = FEW ? first * 4 + column / FEW_CHANNELS : first;
    const int c = FEW ? column % FEW_CHANNELS : slice * SLICE + column;
    const int64_t out = y / p.parts / p.slices * SIDES * SLICE + k;
    return q < p.groups && cell < p.cells && c < channels ? (out * p.cells + cell) * channels + c : -1;
}

/* parts: [blocks along x][along y][SIDES * GROUPS * 8][WARP] */
template <typename T, int SIDES, int GROUPS, bool FEW, bool ALIGNED>
static __global__ void __launch_bounds__(FILTER_WARPS *WARP)
filter_gradient_kernel(tiling t, gradient p, const T *image, const T *gradients, float *sums_of_blocks, unsigned *counters,
                       T *to)
{
    DYNAMIC_SHARED(uint4, shared);
    constexpr int IN_CELL = FEW_CHANNELS / in_word<T>(), PIECES = FEW ? 0 : SLICE / in_word<T>() / PIECE;
    constexpr int COUNT = SIDES * GROUPS * 8 * WARP;
    const int g = (int)threadIdx.x % WARP / 4, y = (int)blockIdx.y, step = (int)gridDim.x;
    const int part = y % p.parts, slice = y / p.parts % p.slices, channel = y / p.parts / p.slices * SIDES * SLICE;
    const int room = t.words + p.pixels * slice_stride<T>(SIDES);
    uint32_t *tiles = (uint32_t *)shared;
    int *places = (int *)(tiles + p.buffers * room), offsets[GROUPS][2];
    sums s[SIDES][GROUPS][2] = {};
    const auto load = [&](int tile, uint32_t *to) {
        load_patch<T, PIECES, ALIGNED>(t, tile, slice * SLICE, image, to);
        load_gradients<T, SIDES, ALIGNED>(t, p, tile, channel, gradients, to + t.words);
        depart();
    };
    load((int)blockIdx.x, tiles);
    for (int i = (int)threadIdx.x; i < p.pixels; i += (int)blockDim.x)
        places[i] = place_of(t, i);
#pragma unroll
    for (int q = 0; q < GROUPS; q++)
        for (int half = 0; half < 2; half++) {
            const int word = g + half * TILE_WORDS, first = part * p.groups + q; /* of 16 columns; a cell, or four */
            const int cell = FEW ? first * 4 + word / IN_CELL : first;
            offsets[q][half] = (q < p.groups && cell < p.cells ? cell_offset(t, cell) : 0) + (FEW ? word % IN_CELL : word);
        }
    for (int tile = (int)blockIdx.x, turn = 0; tile < t.tiles; tile += step, turn = p.buffers - 1 - turn) {
        if (p.buffers == 2 && tile + step < t.tiles) {
            load(tile + step, tiles + (1 - turn) * room);
            arrive<1>();
        } else {
            arrive<0>();
        }
        __syncthreads();
        const uint32_t *patch = tiles + turn * room;
        add_pixels<T, SIDES, GROUPS>(p.pixels, patch, patch + t.words, places, offsets, s);
        __syncthreads();
    }
    const block_sums of = {sums_of_blocks + (int64_t)y * COUNT, (int64_t)gridDim.y * COUNT};
    fold_warps<SIDES, GROUPS>((float *)tiles, s, of.all + (int64_t)blockIdx.x * of.apart);
    if (!add_blocks<COUNT>(of, counters + y * (1 + (step + TOGETHER - 1) / TOGETHER)))
        return;
    for (int i = (int)threadIdx.x; i < COUNT; i += (int)blockDim.x) {
        const int64_t place = place_of_sum<T, SIDES, GROUPS, FEW>(p, t.channels, y, i / WARP, i % WARP);
        if (place >= 0)
            put(to + place, of.all[i]);
    }
}

/* ---- which of them ----------------------------------------------------------------------------------------------- */

/* How a variant computes; rows and columns in tiles, of a warp. */
struct shape {
    tiling t;
    filters f;
    gradient p;
    int pieces;                /* of a pixel of the source; 0: it has few channels */
    int rows, columns, warps, sides, groups;
    dim3 grid;
    size_t shared;
};

static const struct {
    int rows, columns;
} variants[] = {{1, 2}, {2, 2}, {4, 2}, {1, 4}, {2, 4}, {2, 8}}; /* the first takes what is not aligned, too */
static const struct {
    int sides, pixels, blocks;
} filter_variants[] = {{1, 256, BLOCKS}, {1, 512, BLOCKS}, {1, 512, BLOCKS / 2}, {2, 256, BLOCKS}, {2, 256, BLOCKS / 2},
                       {2, 512, BLOCKS / 2}};

/* As many whole images as have no more than so many pixels, or as many rows of one, all tiles of a size. */
static bool cut(tiling *t, int pixels)
{
    const int image = t->result[0] * t->result[1];
    t->images = image <= pixels ? min(pixels / image, t->batch) : 1;
    t->rows = image <= pixels ? t->result[0] : pixels / t->result[1];
    if (t->rows < 1 || t->result[1] > MOST_WIDTH)
        return false;
    t->down = (t->result[0] + t->rows - 1) / t->rows;
    t->rows = (t->result[0] + t->down - 1) / t->down;
    t->patch[0] = t->rows + t->size[0] - 1;
    t->patch[1] = t->result[1] + t->size[1] - 1;
    t->words = (t->images * t->patch[0] * t->patch[1] * t->stride + PIECE - 1) / PIECE * PIECE;
    t->pixels = t->images * t->rows * t->result[1];
    t->tiles = (t->batch + t->images - 1) / t->images * t->down;
    t->by_down = twi_divider_of(t->down);
    t->by_rows = twi_divider_of(t->rows);
    t->by_width = twi_divider_of(t->result[1]);
    t->by_size = twi_divider_of(t->size[1]);
    for (int i = 0; i < 2; i++)
        t->by_patch[i] = twi_divider_of(t->patch[i]);
    return true;
}

static int blocks_of(const tiling *t, int blocks, int across)
{
    return max(1, min((blocks + across - 1) / across, t->tiles));
}

static bool lay_forward(const twi_cuda_conv *c, int number, shape *s)
{
    const bool back = c->direction == TWI_CONV_BACKWARD_DATA;
    const int source = back ? c->out_channels : c->in_channels, result = back ? c->in_channels : c->out_channels;
    const int in_word = (int)(sizeof(uint32_t) / tw_dtype_size(c->type));
    if (number >= (int)(sizeof variants / sizeof variants[0]))
        return false;
    s->rows = variants[number].rows;
    s->columns = variants[number].columns;
    const int columns = s->columns * TILE_COLUMNS, cells = c->size[0] * c->size[1];
    const bool few = source <= FEW_CHANNELS;
    if (result % columns || (few && back) || (!few && source != 16 && source != 32 && source != 64))
        return false;
    const int words = (few ? FEW_CHANNELS : source) / in_word;
    s->pieces = few ? 0 : words / PIECE;
    s->t.batch = c->batch;
    s->t.channels = source;
    s->t.stride = few ? words : words + GAP;
    for (int i = 0; i < 2; i++) {
        s->t.source[i] = back ? c->output[i] : c->image[i];
        s->t.result[i] = back ? c->image[i] : c->output[i];
        s->t.size[i] = c->size[i];
        s->t.before[i] = back ? c->size[i] - 1 - c->before[i] : c->before[i];
    }
    if (!cut(&s->t, MOST_WARPS * s->rows * TILE_ROWS))
        return false;
    s->warps = (s->t.pixels + s->rows * TILE_ROWS - 1) / (s->rows * TILE_ROWS);
    s->f.channels = result;
    s->f.row = (cells * words + TILE_WORDS - 1) / TILE_WORDS * TILE_WORDS;
    s->f.turned = back;
    s->f.relu = c->relu;
    s->grid = dim3((unsigned)blocks_of(&s->t, BLOCKS, result / columns), (unsigned)(result / columns), 1);
    s->shared = (size_t)(columns * (s->f.row + GAP) + 2 * s->t.words + (few ? s->f.row : 0)) * sizeof(uint32_t);
    const size_t merged = sizeof(moments) * (size_t)(s->warps * columns / QUAD);
    s->shared = c->moments && s->shared < merged ? merged : s->shared;
    return s->shared <= c->shared;
}

/* An image a block; of half numbers nobody joins what this is for. */
static bool lay_pool(const twi_cuda_conv *c, shape *s)
{
    const twi_cuda_pool *p = &c->pool;
    const int in_word = (int)(sizeof(uint32_t) / tw_dtype_size(c->type)), channels = c->out_channels;
    const int words = FEW_CHANNELS / in_word, pixels = c->output[0] * c->output[1];
    if (!c->pooled || c->type == TW_FLOAT16 || c->in_channels > FEW_CHANNELS || channels % 16 ||
        p->size[0] * p->size[1] > 256)
        return false;
    s->columns = channels % 64 ? 2 : 8;
    s->t.batch = c->batch;
    s->t.channels = c->in_channels;
    s->t.stride = words;
    for (int i = 0; i < 2; i++) {
        s->t.source[i] = c->image[i];
        s->t.result[i] = c->output[i];
        s->t.size[i] = c->size[i];
        s->t.before[i] = c->before[i];
    }
    if (!cut(&s->t, pixels))
        return false;
    s->f.channels = channels;
    s->f.row = (c->size[0] * c->size[1] * words + TILE_WORDS - 1) / TILE_WORDS * TILE_WORDS;
    s->f.relu = c->relu;
    const int rows = POOL_ROWS * TILE_ROWS, units = (pixels + rows - 1) / rows * (channels / s->columns / TILE_COLUMNS);
    s->warps = min(units, (int)POOL_WARPS);
    s->grid = dim3((unsigned)c->batch, 1, 1);
    const size_t inputs = (size_t)(channels * (s->f.row + GAP) + s->t.words + s->f.row) * sizeof(uint32_t);
    const size_t maxima = (size_t)p->output[0] * (size_t)p->output[1] * (size_t)channels * sizeof(float);
    s->shared = (size_t)pixels * (size_t)(channels + APART) * tw_dtype_size(c->type) + max(inputs, maxima);
    return s->shared <= c->shared;
}

static bool lay_filter(const twi_cuda_conv *c, int number, shape *s)
{
    const int in_word = (int)(sizeof(uint32_t) / tw_dtype_size(c->type)), cells = c->size[0] * c->size[1];
    if (number >= (int)(sizeof filter_variants / sizeof filter_variants[0]))
        return false;
    const bool few = c->in_channels <= FEW_CHANNELS;
    s->sides = filter_variants[number].sides;
    if (c->out_channels % (s->sides * SLICE) || (!few && c->in_channels % SLICE))
        return false;
    const int columns = few ? (cells + 3) / 4 : cells;
    const int stride = in_word == 2 ? slice_stride<__half>(1) : slice_stride<float>(1);
    const int apart = in_word == 2 ? slice_stride<__half>(s->sides) : slice_stride<float>(s->sides);
    s->pieces = few ? 0 : 1;
    s->t.batch = c->batch;
    s->t.channels = c->in_channels;
    s->t.stride = few ? FEW_CHANNELS / in_word : stride;
    for (int i = 0; i < 2; i++) {
        s->t.source[i] = c->image[i];
        s->t.result[i] = c->output[i];
        s->t.size[i] = c->size[i];
        s->t.before[i] = c->before[i];
    }
    s->p.out_channels = c->out_channels;
    s->p.cells = cells;
    s->p.parts = (columns + MOST_GROUPS - 1) / MOST_GROUPS;
    s->p.groups = (columns + s->p.parts - 1) / s->p.parts;
    s->p.slices = few ? 1 : c->in_channels / SLICE;
    s->groups = s->p.groups <= 3 ? 3 : s->p.groups <= 7 ? 7 : MOST_GROUPS;
    const int across = s->p.parts * s->p.slices * (c->out_channels / SLICE / s->sides), at_once = TILE_WORDS * in_word;
    if (!cut(&s->t, filter_variants[number].pixels))
        return false;
    s->p.pixels = (s->t.pixels + at_once - 1) / at_once * at_once;
    s->grid = dim3((unsigned)blocks_of(&s->t, filter_variants[number].blocks, across), (unsigned)across, 1);
    s->p.buffers = s->t.tiles > (int)s->grid.x ? 2 : 1;
    /* The warps' sums take the tiles' place. */
    const size_t tiles = (size_t)(s->p.buffers * (s->t.words + s->p.pixels * apart) + s->p.pixels) * sizeof(uint32_t);
    const size_t folded = sizeof(float) * FILTER_WARPS * WARP * 8 * (size_t)(s->sides * s->groups);
    s->shared = tiles < folded ? folded : tiles;
    return s->shared <= c->shared;
}

/* Places in images and filters are counted in 31 bits. */
static bool counts(const twi_cuda_conv *c)
{
    const double out = (double)c->out_channels, in = (double)c->in_channels;
    const double most = INT32_MAX / 4;
    return c->batch > 0 && (double)c->batch * c->image[0] * c->image[1] * in < most &&
           (double)c->batch * c->output[0] * c->output[1] * out < most && out * in * c->size[0] * c->size[1] < most;
}

static bool lay(const twi_cuda_conv *c, int number, shape *s)
{
    *s = (shape){};
    return counts(c) && (c->direction == TWI_CONV_BACKWARD_FILTER ? lay_filter(c, number, s)
                         : twi_cuda_conv_pools(number)            ? lay_pool(c, s)
                                                                  : lay_forward(c, number, s));
}

bool twi_cuda_conv_pools(int variant)
{
    return variant == (int)(sizeof variants / sizeof variants[0]);
}

bool twi_cuda_conv_fits(const twi_cuda_conv *c, int variant, size_t *workspace)
{
    shape s;
    const bool fits = lay(c, variant, &s) && s.grid.y < 65536;
    *workspace = fits && c->direction == TWI_CONV_BACKWARD_FILTER
                     ? (size_t)s.grid.x * s.grid.y * (size_t)(s.sides * s.groups) * 8 * WARP * sizeof(float)
                     : 0;
    return fits;
}

int twi_cuda_conv_parts(const twi_cuda_conv *c, int variant)
{
    shape s;
    return lay(c, variant, &s) ? (int)s.grid.x : 0;
}

/* What a launch reads and writes. */
struct operands {
    const void *source, *filter, *bias;
    void *to, *moments;
};

template <typename T, int ROWS, int COLUMNS, int PIECES, bool ALIGNED, bool MOMENTS>
static cudaError_t convolve(cudaStream_t stream, const shape &s, const operands &o)
{
    return launch_large(s.grid, (unsigned)(s.warps * WARP), s.shared, stream,
                        convolve_kernel<T, ROWS, COLUMNS, PIECES, ALIGNED, MOMENTS>, s.t, s.f, (const T *)o.source,
                        (const T *)o.filter, (const T *)o.bias, (T *)o.to, (part *)o.moments);
}

template <typename T, int ROWS, int COLUMNS, bool ALIGNED, bool MOMENTS>
static cudaError_t choose_pieces(cudaStream_t stream, const shape &s, const operands &o)
{
    constexpr int ALL = 16 / in_word<T>() / PIECE; /* of 16 channels */
    return s.pieces == 0         ? convolve<T, ROWS, COLUMNS, 0, ALIGNED, MOMENTS>(stream, s, o)
           : s.pieces == ALL     ? convolve<T, ROWS, COLUMNS, ALL, ALIGNED, MOMENTS>(stream, s, o)
           : s.pieces == 2 * ALL ? convolve<T, ROWS, COLUMNS, 2 * ALL, ALIGNED, MOMENTS>(stream, s, o)
                                 : convolve<T, ROWS, COLUMNS, 4 * ALL, ALIGNED, MOMENTS>(stream, s, o);
}

template <typename T, bool MOMENTS>
static cudaError_t choose_variant(cudaStream_t stream, const shape &s, const operands &o)
{
#define TRY(ROWS, COLUMNS)                                                                                             \
    if (s.rows == ROWS && s.columns == COLUMNS)                                                                        \
        return choose_pieces<T, ROWS, COLUMNS, true, MOMENTS>(stream, s, o);
    TRY(1, 2)
    TRY(2, 2)
    TRY(4, 2)
    TRY(1, 4)
    TRY(2, 4)
    TRY(2, 8)
#undef TRY
    return cudaErrorInvalidValue;
}

/* Moments are wanted of what is trained in alone: no kernels of half numbers are made for them. */
template <typename T>
static cudaError_t choose_convolve(cudaStream_t stream, bool aligned, const shape &s, const operands &o)
{
    if (!o.moments)
        return aligned ? choose_variant<T, false>(stream, s, o) : choose_pieces<T, 1, 2, false, false>(stream, s, o);
    if constexpr (!std::is_same<T, __half>::value)
        if (aligned)
            return choose_variant<T, true>(stream, s, o);
    return cudaErrorInvalidValue;
}

/* What blocks leave to the last of them, and where they count themselves. */
struct scratch {
    float *sums;
    unsigned *counters;
};

template <typename T, int SIDES, int GROUPS, bool FEW, bool ALIGNED>
static cudaError_t gradient_of_filter(cudaStream_t stream, const shape &s, const void *image, const void *gradients,
                                      const scratch &own, void *to)
{
    return launch_large(s.grid, FILTER_WARPS * WARP, s.shared, stream,
                        filter_gradient_kernel<T, SIDES, GROUPS, FEW, ALIGNED>, s.t, s.p, (const T *)image,
                        (const T *)gradients, own.sums, own.counters, (T *)to);
}

template <typename T, int SIDES, int GROUPS>
static cudaError_t choose_alignment(cudaStream_t stream, bool aligned, const shape &s, const void *image,
                                    const void *gradients, const scratch &own, void *to)
{
    if (s.pieces == 0)
        return aligned ? gradient_of_filter<T, SIDES, GROUPS, true, true>(stream, s, image, gradients, own, to)
                       : gradient_of_filter<T, SIDES, GROUPS, true, false>(stream, s, image, gradients, own, to);
    return aligned ? gradient_of_filter<T, SIDES, GROUPS, false, true>(stream, s, image, gradients, own, to)
                   : gradient_of_filter<T, SIDES, GROUPS, false, false>(stream, s, image, gradients, own, to);
}

template <typename T>
static cudaError_t choose_gradient(cudaStream_t stream, bool aligned, const shape &s, const void *image,
                                   const void *gradients, const scratch &own, void *to)
{
#define TRY(SIDES, GROUPS)                                                                                             \
    if (s.sides == SIDES && s.groups == GROUPS)                                                                        \
        return choose_alignment<T, SIDES, GROUPS>(stream, aligned, s, image, gradients, own, to);
    TRY(1, 3)
    TRY(1, 7)
    TRY(1, MOST_GROUPS)
    TRY(2, 3)
    TRY(2, 7)
    TRY(2, MOST_GROUPS)
#undef TRY
    return cudaErrorInvalidValue;
}

cudaError_t twi_cuda_conv_run(cudaStream_t stream, const twi_cuda_conv *c, int variant, void *image, void *filter,
                              void *output, const void *bias, void *moments, void *workspace)
{
    const bool aligned = is_aligned(image) && is_aligned(filter) && is_aligned(output);
    shape s;
    if (!lay(c, aligned || c->direction == TWI_CONV_BACKWARD_FILTER ? variant : 0, &s))
        return cudaErrorInvalidValue;
    cudaError_t code = cudaErrorInvalidValue;
    FLOAT_TYPES(c->type,
                code = c->direction == TWI_CONV_FORWARD
                           ? choose_convolve<T>(stream, aligned, s, {image, filter, bias, output, moments})
                       : c->direction == TWI_CONV_BACKWARD_DATA
                           ? choose_convolve<T>(stream, aligned, s, {output, filter, nullptr, image, nullptr})
                           : choose_gradient<T>(stream, aligned, s, image, output, {(float *)workspace, c->counters},
                                                filter))
    return code;
}

template <typename T>
static cudaError_t convolve_pool(cudaStream_t stream, const twi_cuda_conv *c, const shape &s, const void *image,
                                 const void *filter, const void *bias, const pooled_image<T> &to)
{
    const auto kernel = s.columns == 8 ? convolve_pool_kernel<T, 8> : convolve_pool_kernel<T, 2>;
    return launch_large(s.grid, (unsigned)(s.warps * WARP), s.shared, stream, kernel, s.t, s.f, c->pool, c->lrn,
                        (const T *)image, (const T *)filter, (const T *)bias, to);
}

cudaError_t twi_cuda_conv_pool(cudaStream_t stream, const twi_cuda_conv *c, int variant, const void *image,
                               const void *filter, const void *bias, void *y, void *pooled, uint8_t *argmax)
{
    shape s;
    if (!twi_cuda_conv_pools(variant) || !lay(c, variant, &s))
        return cudaErrorInvalidValue;
    const bool whole = is_aligned(y) && is_aligned(pooled) && is_aligned(argmax);
    return c->type == TW_FLOAT32 ? convolve_pool<float>(stream, c, s, image, filter, bias,
                                                        {(float *)y, (float *)pooled, argmax, whole})
                                 : convolve_pool<__nv_bfloat16>(stream, c, s, image, filter, bias,
                                                                {(__nv_bfloat16 *)y, (__nv_bfloat16 *)pooled, argmax,
                                                                 whole});
}
