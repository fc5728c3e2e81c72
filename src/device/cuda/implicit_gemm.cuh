/* implicit_gemm.cuh - what kernels share that make a convolution of few channels a product of matrices
 * (implicit_gemm.cu, conv_pool.cu).
 *
 * A block has a tile of the result: some rows of an image, or some whole images. What of the source these see, with
 * zeros around the image, lies in the block's shared memory as [pixels][words], some words apart so that the eight
 * pixels of a fragment lie in banks of their own. A row of the left matrix is a pixel of the result, its columns are
 * the cells and channels of the filter, so a fragment is loaded from where the pixel and the cell meet.
 *
 * Up to 4 channels are filled up to 4, and then four cells of the filter are 16 columns.
 *
 * The gradient of the filter adds over pixels: each warp takes some of a tile's, the warps' sums are added in the
 * block, those of a few neighbouring blocks by the last of them, and what these have by the last of all: one block
 * would read them for longer than another launch takes. All in an order that sizes alone decide. */
#ifndef TWI_CUDA_IMPLICIT_GEMM_CUH
#define TWI_CUDA_IMPLICIT_GEMM_CUH

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
    bool turned;               /* [channels of the source][cells][of the result] are taken from the last cell on */
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

/* 16 columns of `ROWS` tiles of rows times as many rows of `COLUMNS` tiles of columns. Words first and second of a
 * row lie at its place and the offsets. */
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

/* ---- the gradient of the filter ---------------------------------------------------------------------------------- */

/* A block has 16 channels of the output's gradient a side, and of the image's 16, or its few, at `groups` cells (or, of
 * few channels, fours of cells), over some of the tiles. */
struct gradient {
    int out_channels, cells;
    int groups, parts;         /* of 16 columns a block; of the cells */
    int slices;                /* of the image's channels */
    int pixels;                /* of a tile, filled up with zeros */
    int buffers;               /* tiles in shared memory at once */
    bool out_last;             /* what is written is [cells][of the image][of the gradient], not the last first */
};

/* Words from a pixel to the next in shared memory, of so many slices. */
template <typename T> static __host__ __device__ constexpr int slice_stride(int slices)
{
    return slices * SLICE / in_word<T>() + (in_word<T>() == 2 ? GAP : 2 * GAP);
}

/* Of what lies as [pixels][words] a fragment whose rows, or columns, are a pixel's numbers, and whose words are
 * pixels: of words of two numbers the two fragments of their first ones and of their second ones. */
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

/* Adds a warp's share of a tile's pixels; `stride`: words from a pixel of the gradient to the next. */
template <typename T, int SIDES, int GROUPS>
static __device__ __forceinline__ void add_pixels(int share, int shares, int pixels, int stride, const uint32_t *patch,
                                                  const uint32_t *gradients, const int *places,
                                                  const int (&offsets)[GROUPS][2], sums (&s)[SIDES][GROUPS][2])
{
    constexpr int AT_ONCE = TILE_WORDS * in_word<T>();
    const int g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    for (int first = share * AT_ONCE; first < pixels; first += shares * AT_ONCE) {
        left a[SIDES];
        int own[4], place[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            own[i] = (first + pixel_of<T>(lane, i)) * stride;
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

/* Where in the patch the columns of a warp's groups are, by half: of so many channels, or of few at four cells. */
template <typename T, int GROUPS, bool FEW>
static __device__ __forceinline__ void find_columns(const tiling &t, const gradient &p, int part,
                                                    int (&offsets)[GROUPS][2])
{
    constexpr int IN_CELL = FEW_CHANNELS / in_word<T>();
#pragma unroll
    for (int q = 0; q < GROUPS; q++)
        for (int half = 0; half < 2; half++) {
            const int word = (int)threadIdx.x % WARP / 4 + half * TILE_WORDS, first = part * p.groups + q;
            const int cell = FEW ? first * 4 + word / IN_CELL : first;
            offsets[q][half] = q < p.groups && cell < p.cells ? cell_offset(t, cell) : 0;
            offsets[q][half] += FEW ? word % IN_CELL : word;
        }
}

/* The sums of `shares` times as many warps as have `numbers` of them, by all threads. */
template <int SIDES, int GROUPS>
static __device__ __forceinline__ void fold_warps(int numbers, int shares, float *room,
                                                  const sums (&s)[SIDES][GROUPS][2], float *to)
{
    constexpr int COUNT = SIDES * GROUPS * 2 * 4;
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        room[(warp * COUNT + i) * WARP + lane] = s[i / (GROUPS * 8)][i / 8 % GROUPS][i / 4 % 2].at[i % 4];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < numbers; i += (int)blockDim.x) {
        float sum = room[i];
#pragma unroll
        for (int w = 1; w < shares; w++)
            sum += room[w * numbers + i];
        to[i] = sum;
    }
}

/* What the card has of a column of blocks' sums, `count` each: number i of part p lies at all + p * apart + i. */
struct block_sums {
    float *all;
    int64_t apart;
    int count;
};

/* Part `first` becomes the sum of itself and of every `step`th behind it up to `end`. */
static __device__ __forceinline__ void add_parts(const block_sums &of, int first, int end, int step)
{
    constexpr int V = width<float>::value;
    for (int i = (int)threadIdx.x * V; i < of.count; i += (int)blockDim.x * V) {
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

/* Adds up what all blocks of a column have, by the last that comes of each TOGETHER, and the last of those; true in
 * that one, where part 0 is the sum. */
static __device__ __forceinline__ bool add_blocks(const block_sums &of, unsigned *counters)
{
    const int blocks = (int)gridDim.x, group = (int)blockIdx.x / TOGETHER, groups = (blocks + TOGETHER - 1) / TOGETHER;
    const int first = group * TOGETHER, end = min(first + TOGETHER, blocks);
    if (!comes_last(counters + 1 + group, (unsigned)(end - first)))
        return false;
    add_parts(of, first, end, 1);
    if (!comes_last(counters, (unsigned)groups))
        return false;
    add_parts(of, 0, blocks, TOGETHER);
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
    return q >= p.groups || cell >= p.cells || c >= channels ? -1
           : p.out_last                                      ? ((int64_t)cell * channels + c) * p.out_channels + out
                                                             : (out * p.cells + cell) * channels + c;
}

/* As many whole images as have no more than so many pixels, or as many rows of one, all tiles of a size. */
static inline bool cut(tiling *t, int pixels)
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

/* Places in images and filters are counted in 31 bits. */
static inline bool counts(const twi_cuda_conv *c)
{
    const double out = (double)c->out_channels, in = (double)c->in_channels;
    const double most = INT32_MAX / 4;
    return c->batch > 0 && (double)c->batch * c->image[0] * c->image[1] * in < most &&
           (double)c->batch * c->output[0] * c->output[1] * out < most && out * in * c->size[0] * c->size[1] < most;
}

#endif
