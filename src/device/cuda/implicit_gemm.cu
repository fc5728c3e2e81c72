/* implicit_gemm.cu - convolutions of few channels as products of matrices that are never written down (matrix.cuh).
 *
 * A block has a tile of the result: some rows of an image, or some whole images. What of the source these see, with zeros
 * around the image, lies in the block's shared memory as [pixels][words], some words apart so that the eight pixels of a
 * fragment lie in banks of their own. A row of the left matrix is a pixel of the result, its columns are the cells and
 * channels of the filter, so a fragment is loaded from where the pixel and the cell meet.
 *
 * Up to 4 channels are filled up to 4, and then four cells of the filter are 16 columns.
 *
 * The gradient of the image is the convolution of the output's gradient with the filter turned round. The gradient of the
 * filter adds over pixels: each warp takes some of a tile's, the warps' sums are added in the block, the blocks' by a
 * second launch. All in an order that sizes alone decide. */
#include "device/cuda/divide.cuh"
#include "device/cuda/matrix.cuh"

enum {
    WARP = 32,
    FEW_CHANNELS = 4,          /* in memory there are as many */
    SLICE = 16,                /* channels that a block of the filter's gradient has, of each side */
    FILTER_WARPS = 8,
    MOST_WARPS = 8,
    MOST_GROUPS = 9,           /* of 16 columns, in the filter's gradient */
    GAP = 4,                   /* words between rows of shared memory */
    PIECE = 4,                 /* words that are sent at once */
    BLOCKS = 264,              /* about as many, the same on every card; each has several tiles */
    MOST_SHARED = 220 << 10,
};

struct tiling {
    int batch, channels;       /* of the source */
    int source[2], result[2], size[2], before[2];
    int images, rows;          /* of results in a tile: whole images, or rows of one */
    int down;                  /* tiles of an image, one below the other */
    int stride;                /* words from a pixel of the source to the next in shared memory */
    int patch[2];              /* sides of what a tile sees of an image */
    int words, pixels, tiles;  /* of a tile's patch; of a tile; in all */
    bool aligned;              /* to 16 bytes: all that is sent */
    twi_divider by_down, by_patch[2], by_rows, by_width;
};

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
template <typename T> static __device__ __forceinline__ void bring(bool aligned, uint32_t *to, const T *from, bool there)
{
    if (aligned)
        send(to, from, there);
    else
        for (int i = 0; i < PIECE; i++)
            to[i] = there ? word_of(from + i * in_word<T>(), in_word<T>()) : 0;
}

/* PIECES a pixel, from a channel on, of what a tile sees; 0: all of few channels. */
template <typename T, int PIECES>
static __device__ __forceinline__ void load_patch(const tiling &t, int tile, int channel, const T *from, uint32_t *to)
{
    constexpr bool FEW = PIECES == 0;
    constexpr int EACH = FEW ? 1 : PIECES;
    uint32_t row;
    const int image = (int)twi_divide(t.by_down, (uint32_t)tile, &row) * t.images;
    const int top = (int)row * t.rows - t.before[0];
    for (int i = (int)threadIdx.x; i < t.images * t.patch[0] * t.patch[1] * EACH; i += (int)blockDim.x) {
        const int pixel = i / EACH, piece = i % EACH;
        uint32_t column, line;
        const uint32_t lines = twi_divide(t.by_patch[1], (uint32_t)pixel, &column);
        const int n = (int)twi_divide(t.by_patch[0], lines, &line) + image;
        const int x = (int)column - t.before[1], y = (int)line + top;
        const bool there = x >= 0 && x < t.source[1] && y >= 0 && y < t.source[0] && n < t.batch;
        const T *at = from + (there ? ((n * t.source[0] + y) * t.source[1] + x) * t.channels : 0);
        uint32_t *own = to + pixel * t.stride;
        if (!FEW)
            bring(t.aligned, own + piece * PIECE, at + channel + piece * PIECE * in_word<T>(), there);
        else
#pragma unroll
            for (int w = 0; w < FEW_CHANNELS / in_word<T>(); w++)
                own[w] = word_of(at + w * in_word<T>(), there ? t.channels - w * in_word<T>() : 0);
    }
}

/* A pixel of a tile. */
struct spot {
    int image, y, x;           /* counted in the tile */
};

static __device__ __forceinline__ spot find(const tiling &t, int pixel)
{
    uint32_t x, y;
    const uint32_t lines = twi_divide(t.by_width, (uint32_t)pixel, &x);
    const int image = (int)twi_divide(t.by_rows, lines, &y);
    return {image, (int)y, (int)x};
}

/* Where in the patch the first cell of the filter lies for a pixel of the tile. */
static __device__ __forceinline__ int place_of(const tiling &t, int pixel)
{
    const spot at = find(t, pixel < t.pixels ? pixel : 0);
    return ((at.image * t.patch[0] + at.y) * t.patch[1] + at.x) * t.stride;
}

/* The pixel's number among all of the results; -1: it is not there. */
static __device__ __forceinline__ int number_of(const tiling &t, int tile, int pixel)
{
    uint32_t row;
    const spot at = find(t, pixel);
    const int image = (int)twi_divide(t.by_down, (uint32_t)tile, &row) * t.images + at.image;
    const int y = (int)row * t.rows + at.y;
    const bool there = pixel < t.pixels && image < t.batch && y < t.result[0];
    return there ? (image * t.result[0] + y) * t.result[1] + at.x : -1;
}

static __device__ __forceinline__ int cell_offset(const tiling &t, int cell)
{
    return (cell / t.size[1] * t.patch[1] + cell % t.size[1]) * t.stride;
}

/* ---- the output, and the gradient of the image --------------------------------------------------------------------- */

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
template <typename T, int COUNT, bool FEW>
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
                bring(t.aligned, row + piece * PIECE, own + piece * PIECE * in_word<T>(), true);
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

/* Of two tiles of columns a lane has four channels that lie side by side, of two pixels. */
template <typename T, int ROWS, int COLUMNS>
static __device__ __forceinline__ void store_results(const tiling &t, const filters &f, int tile, int first_pixel,
                                                     int channel, const T *bias, const sums (&s)[ROWS][COLUMNS], T *to)
{
    const int g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    float add[COLUMNS / 2][4] = {};
    if (bias)
#pragma unroll
        for (int j = 0; j < COLUMNS / 2; j++)
            for (int k = 0; k < 4; k++)
                add[j][k] = to_float(bias[channel + j * 2 * TILE_COLUMNS + lane * 4 + k]);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int number = number_of(t, tile, first_pixel + i * TILE_ROWS + half * 8 + g);
            T *own = to + number * f.channels + channel + lane * 4;
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j++) {
                float x[4];
                for (int k = 0; k < 4; k++) {
                    const float sum = s[i][2 * j + k % 2].at[half * 2 + k / 2] + add[j][k];
                    x[k] = f.relu && sum <= 0 ? 0 : sum;
                }
                if (number >= 0 && t.aligned)
                    store<4>(own + j * 2 * TILE_COLUMNS, narrow<T, 4>(x));
                else if (number >= 0)
                    store<1>(own + j * 2 * TILE_COLUMNS, narrow<T, 4>(x));
            }
        }
}

/* A block's filters stay; one tile is multiplied while the next is on its way. */
template <typename T, int ROWS, int COLUMNS, int PIECES>
static __global__ void __launch_bounds__(MOST_WARPS * WARP)
convolve_kernel(tiling t, filters f, const T *source, const T *filter, const T *bias, T *to)
{
    DYNAMIC_SHARED(uint4, shared);
    constexpr bool FEW = PIECES == 0;
    constexpr int COUNT = COLUMNS * TILE_COLUMNS, IN_CELL = FEW_CHANNELS / in_word<T>();
    const int warp = (int)threadIdx.x / WARP, g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    const int first_pixel = warp * ROWS * TILE_ROWS, channel = (int)blockIdx.y * COUNT, stride = f.row + GAP;
    uint32_t *rows = (uint32_t *)shared, *patches = rows + COUNT * stride;
    int places[ROWS][2], *offsets = (int *)(patches + 2 * t.words);
    load_filters<T, COUNT, FEW>(t, f, channel, filter, rows);
    load_patch<T, PIECES>(t, (int)blockIdx.x, 0, source, patches);
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
            load_patch<T, PIECES>(t, tile + (int)gridDim.x, 0, source, patches + (1 - turn) * t.words);
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
#pragma unroll
                    for (int w = 0; w < PIECES * PIECE; w += TILE_WORDS)
                        multiply_words<T, ROWS, COLUMNS>(patch, places, offset + w, offset + w + 4, row + w, stride, s);
                    row += PIECES * PIECE;
                }
        }
        store_results<T, ROWS, COLUMNS>(t, f, tile, first_pixel, channel, bias, s, to);
        __syncthreads();
    }
}

/* ---- the gradient of the filter ------------------------------------------------------------------------------------- */

/* A block has 16 channels of the output's gradient, and of the image's 16, or its few, at `groups` cells (or, of few
 * channels, fours of cells), over some of the tiles. */
struct gradient {
    int out_channels, cells;
    int groups, parts;         /* of 16 columns a block; of the cells */
    int slices;                /* of the image's channels */
    int stride;                /* words from a pixel of the output's gradient to the next in shared memory */
    int buffers;               /* tiles in shared memory at once */
};

/* Pixels of a tile of the output's gradient, filled up with zeros. */
template <typename T>
static __device__ void load_gradients(const tiling &t, const gradient &p, int tile, int channel, int pixels, const T *from,
                                      uint32_t *to)
{
    constexpr int PIECES = SLICE / in_word<T>() / PIECE;
    for (int i = (int)threadIdx.x; i < pixels * PIECES; i += (int)blockDim.x) {
        const int pixel = i / PIECES, piece = i % PIECES, number = number_of(t, tile, pixel);
        const T *own = from + (number >= 0 ? number * p.out_channels : 0) + channel;
        bring(t.aligned, to + pixel * p.stride + piece * PIECE, own + piece * PIECE * in_word<T>(), number >= 0);
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

/* Which pixels a lane has of those that a fragment's words are, and how far apart in the list they are. */
template <typename T> static __device__ __forceinline__ int pixel_of(int lane, int i)
{
    return in_word<T>() == 2 ? 2 * lane + i % 2 + i / 2 * 8 : lane + i % 2 * 4;
}

template <typename T, int GROUPS>
static __device__ void add_pixels(const gradient &p, int pixels, const uint32_t *patch, const uint32_t *gradients,
                                  const int *places, const int (&offsets)[GROUPS][2], sums (&s)[GROUPS][2])
{
    constexpr int AT_ONCE = TILE_WORDS * in_word<T>();
    const int warp = (int)threadIdx.x / WARP, g = (int)threadIdx.x % WARP / 4, lane = (int)threadIdx.x % 4;
    for (int first = warp * AT_ONCE; first < pixels; first += FILTER_WARPS * AT_ONCE) {
        left a;
        int own[4], place[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            own[i] = (first + pixel_of<T>(lane, i)) * p.stride;
            place[i] = places[first + pixel_of<T>(lane, i)];
        }
        if (in_word<T>() == 2) {
            gather(gradients + g, own, a.at[0], a.at[1], a.at[2], a.at[3]);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                a.at[i] = factor<T>(gradients[own[i / 2] + g + i % 2 * 8]);
        }
#pragma unroll
        for (int q = 0; q < GROUPS; q++) {
            right b[2];
            if (in_word<T>() == 2) {
                gather(patch + offsets[q][0], place, b[0].at[0], b[1].at[0], b[0].at[1], b[1].at[1]);
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    b[i / 2].at[i % 2] = factor<T>(patch[place[i % 2] + offsets[q][i / 2]]);
            }
            multiply_add<T>(s[q][0], a, b[0]);
            multiply_add<T>(s[q][1], a, b[1]);
        }
    }
}

/* The sums of all warps, in the first one. */
template <int GROUPS> static __device__ void fold_warps(float *room, sums (&s)[GROUPS][2])
{
    constexpr int COUNT = GROUPS * 2 * 4;
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    for (int half = FILTER_WARPS / 2; half > 0; half /= 2) {
        float *own = room + warp % half * COUNT * WARP + lane;
        if (warp >= half && warp < 2 * half)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                own[i * WARP] = s[i / 8][i / 4 % 2].at[i % 4];
        __syncthreads();
        if (warp < half)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                s[i / 8][i / 4 % 2].at[i % 4] += own[i * WARP];
        __syncthreads();
    }
}

/* parts: [blocks along x][slices][GROUPS * 8][WARP] */
template <typename T, int GROUPS, bool FEW>
static __global__ void __launch_bounds__(FILTER_WARPS *WARP)
filter_gradient_kernel(tiling t, gradient p, const T *image, const T *gradients, float *parts)
{
    DYNAMIC_SHARED(uint4, shared);
    constexpr int AT_ONCE = TILE_WORDS * in_word<T>(), IN_CELL = FEW_CHANNELS / in_word<T>();
    constexpr int PIECES = FEW ? 0 : SLICE / in_word<T>() / PIECE;
    const int warp = (int)threadIdx.x / WARP, g = (int)threadIdx.x % WARP / 4;
    const int part = (int)blockIdx.y % p.parts, slice = (int)blockIdx.y / p.parts % p.slices;
    const int channel = (int)blockIdx.y / p.parts / p.slices * SLICE;
    const int pixels = (t.pixels + AT_ONCE - 1) / AT_ONCE * AT_ONCE, room = t.words + pixels * p.stride;
    uint32_t *tiles = (uint32_t *)shared;
    int *places = (int *)(tiles + p.buffers * room), offsets[GROUPS][2];
    sums s[GROUPS][2] = {};
    for (int i = (int)threadIdx.x; i < pixels; i += (int)blockDim.x)
        places[i] = place_of(t, i);
    for (int q = 0; q < GROUPS; q++)
        for (int half = 0; half < 2; half++) {
            const int word = g + half * TILE_WORDS, first = part * p.groups + q; /* of 16 columns; a cell, or four */
            const int cell = FEW ? first * 4 + word / IN_CELL : first;
            offsets[q][half] = (q < p.groups && cell < p.cells ? cell_offset(t, cell) : 0) + (FEW ? word % IN_CELL : word);
        }
    const auto load = [&](int tile, uint32_t *to) {
        load_patch<T, PIECES>(t, tile, slice * SLICE, image, to);
        load_gradients(t, p, tile, channel, pixels, gradients, to + t.words);
        depart();
    };
    const int count = t.tiles, step = (int)gridDim.x;
    if (p.buffers == 2)
        load((int)blockIdx.x, tiles);
    for (int tile = (int)blockIdx.x, turn = 0; tile < count; tile += step, turn = p.buffers - 1 - turn) {
        const int next = p.buffers == 2 ? tile + step : tile;
        if (next < count)
            load(next, tiles + (p.buffers == 2 ? 1 - turn : 0) * room);
        if (next < count && p.buffers == 2)
            arrive<1>();
        else
            arrive<0>();
        __syncthreads();
        const uint32_t *patch = tiles + turn * room;
        add_pixels<T, GROUPS>(p, pixels, patch, patch + t.words, places, offsets, s);
        __syncthreads();
    }
    fold_warps<GROUPS>((float *)tiles, s);
    float *own = parts + ((int64_t)blockIdx.x * gridDim.y + blockIdx.y) * GROUPS * 8 * WARP + threadIdx.x % WARP;
    if (warp == 0)
#pragma unroll
        for (int i = 0; i < GROUPS * 8; i++)
            own[i * WARP] = s[i / 8][i / 4 % 2].at[i % 4];
}

/* The sums of all blocks: 32 of a lane's each, which of the filter's those are. */
template <typename T, bool FEW>
static __global__ void __launch_bounds__(FILTER_WARPS *WARP)
fold_filter_kernel(gradient p, int channels, int groups, int blocks, const float *parts, T *to)
{
    __shared__ float room[FILTER_WARPS][WARP];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    const int i = (int)blockIdx.x % (groups * 8), block = (int)blockIdx.x / (groups * 8);
    const int64_t apart = (int64_t)gridDim.x * WARP;
    const float *own = parts + (int64_t)blockIdx.x * WARP + lane;
    float sum = 0;
#pragma unroll 8
    for (int b = warp; b < blocks; b += FILTER_WARPS)
        sum += own[b * apart];
    room[warp][lane] = sum;
    __syncthreads();
    if (warp)
        return;
    for (int w = 1; w < FILTER_WARPS; w++)
        sum += room[w][lane];
    const int row = i / 2 % 2, right = i % 2, second = i / 4 % 2, q = i / 8;
    const int k = in_word<T>() == 2 ? 2 * g + row : g + 8 * row;
    const int column = in_word<T>() == 2 ? 4 * t + 2 * right + second : 8 * second + 2 * t + right;
    const int part = block % p.parts, slice = block / p.parts % p.slices;
    const int first = part * p.groups + q, cell = FEW ? first * 4 + column / FEW_CHANNELS : first;
    const int c = FEW ? column % FEW_CHANNELS : slice * SLICE + column;
    const int64_t out = block / p.parts / p.slices * SLICE + k;
    if (q < p.groups && cell < p.cells && c < channels)
        put(to + (out * p.cells + cell) * channels + c, sum);
}

/* ---- which of them ---------------------------------------------------------------------------------------------------- */

/* How a variant computes; rows and columns in tiles, of a warp. */
struct shape {
    tiling t;
    filters f;
    gradient p;
    int pieces;                /* of a pixel of the source; 0: it has few channels */
    int rows, columns, warps, groups;
    dim3 grid;
    size_t shared;
};

static const struct {
    int rows, columns;
} variants[] = {{2, 4}, {4, 2}, {2, 2}, {1, 4}, {1, 2}, {4, 4}};
static const struct {
    int pixels, blocks;
} filter_variants[] = {{512, BLOCKS / 2}, {256, BLOCKS}, {256, BLOCKS / 2}, {512, BLOCKS}, {128, BLOCKS}};

/* As many whole images as have no more than so many pixels, or as many rows of one, all tiles of a size. */
static bool cut(tiling *t, int pixels)
{
    const int image = t->result[0] * t->result[1];
    t->images = image <= pixels ? min(pixels / image, t->batch) : 1;
    t->rows = image <= pixels ? t->result[0] : pixels / t->result[1];
    if (t->rows < 1)
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
    return s->shared <= MOST_SHARED;
}

static bool lay_filter(const twi_cuda_conv *c, int number, shape *s)
{
    const int in_word = (int)(sizeof(uint32_t) / tw_dtype_size(c->type)), cells = c->size[0] * c->size[1];
    if (number >= (int)(sizeof filter_variants / sizeof filter_variants[0]))
        return false;
    const bool few = c->in_channels <= FEW_CHANNELS;
    if (c->out_channels % SLICE || (!few && c->in_channels % SLICE))
        return false;
    const int columns = few ? (cells + 3) / 4 : cells, own = SLICE / in_word + (in_word == 2 ? 4 : 8);
    s->pieces = few ? 0 : 1;
    s->t.batch = c->batch;
    s->t.channels = c->in_channels;
    s->t.stride = few ? FEW_CHANNELS / in_word : own;
    for (int i = 0; i < 2; i++) {
        s->t.source[i] = c->image[i];
        s->t.result[i] = c->output[i];
        s->t.size[i] = c->size[i];
        s->t.before[i] = c->before[i];
    }
    s->p.out_channels = c->out_channels;
    s->p.cells = cells;
    s->p.stride = own;
    s->p.parts = (columns + MOST_GROUPS - 1) / MOST_GROUPS;
    s->p.groups = (columns + s->p.parts - 1) / s->p.parts;
    s->p.slices = few ? 1 : c->in_channels / SLICE;
    s->groups = s->p.groups <= 3 ? 3 : s->p.groups <= 7 ? 7 : MOST_GROUPS;
    const int across = s->p.parts * s->p.slices * (c->out_channels / SLICE), at_once = TILE_WORDS * in_word;
    if (!cut(&s->t, filter_variants[number].pixels))
        return false;
    const int pixels = (s->t.pixels + at_once - 1) / at_once * at_once;
    s->grid = dim3((unsigned)blocks_of(&s->t, filter_variants[number].blocks, across), (unsigned)across, 1);
    s->p.buffers = s->t.tiles > (int)s->grid.x ? 2 : 1;
    /* The warps' sums take the tiles' place. */
    const size_t tiles = (size_t)(s->p.buffers * (s->t.words + pixels * own)) * sizeof(uint32_t);
    const size_t folded = sizeof(float) * FILTER_WARPS / 2 * WARP * 8 * (size_t)s->groups;
    s->shared = (tiles < folded ? folded : tiles) + (size_t)pixels * sizeof(int);
    return s->shared <= MOST_SHARED;
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
    return counts(c) &&
           (c->direction == TWI_CONV_BACKWARD_FILTER ? lay_filter(c, number, s) : lay_forward(c, number, s));
}

bool twi_cuda_conv_fits(const twi_cuda_conv *c, int variant, size_t *workspace)
{
    shape s;
    const bool fits = lay(c, variant, &s) && s.grid.y < 65536;
    *workspace = fits && c->direction == TWI_CONV_BACKWARD_FILTER
                     ? (size_t)s.grid.x * s.grid.y * (size_t)s.groups * 8 * WARP * sizeof(float)
                     : 0;
    return fits;
}

template <typename K> static cudaError_t allow(K *kernel, size_t shared)
{
    return shared <= 48 << 10 ? cudaSuccess
                              : cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                     (int)shared);
}

template <typename T, int ROWS, int COLUMNS, int PIECES>
static cudaError_t convolve(cudaStream_t stream, const shape &s, const void *source, const void *filter, const void *bias,
                            void *to)
{
    cudaError_t code = allow(convolve_kernel<T, ROWS, COLUMNS, PIECES>, s.shared);
    if (code == cudaSuccess)
        LAUNCH(s.grid, (unsigned)(s.warps * WARP), s.shared, stream, convolve_kernel<T, ROWS, COLUMNS, PIECES>)
        (s.t, s.f, (const T *)source, (const T *)filter, (const T *)bias, (T *)to);
    return code;
}

template <typename T, int ROWS, int COLUMNS>
static cudaError_t choose_pieces(cudaStream_t stream, const shape &s, const void *source, const void *filter,
                                 const void *bias, void *to)
{
    constexpr int ALL = 16 / in_word<T>() / PIECE; /* of 16 channels */
    return s.pieces == 0         ? convolve<T, ROWS, COLUMNS, 0>(stream, s, source, filter, bias, to)
           : s.pieces == ALL     ? convolve<T, ROWS, COLUMNS, ALL>(stream, s, source, filter, bias, to)
           : s.pieces == 2 * ALL ? convolve<T, ROWS, COLUMNS, 2 * ALL>(stream, s, source, filter, bias, to)
                                 : convolve<T, ROWS, COLUMNS, 4 * ALL>(stream, s, source, filter, bias, to);
}

template <typename T>
static cudaError_t choose_convolve(cudaStream_t stream, const shape &s, const void *source, const void *filter,
                                   const void *bias, void *to)
{
#define TRY(ROWS, COLUMNS)                                                                                             \
    if (s.rows == ROWS && s.columns == COLUMNS)                                                                        \
        return choose_pieces<T, ROWS, COLUMNS>(stream, s, source, filter, bias, to);
    TRY(2, 4)
    TRY(4, 2)
    TRY(2, 2)
    TRY(1, 4)
    TRY(1, 2)
    TRY(4, 4)
#undef TRY
    return cudaErrorInvalidValue;
}

template <typename T, int GROUPS, bool FEW>
static cudaError_t gradient_of_filter(cudaStream_t stream, const shape &s, const void *image, const void *gradients,
                                      float *parts, void *to)
{
    cudaError_t code = allow(filter_gradient_kernel<T, GROUPS, FEW>, s.shared);
    if (code != cudaSuccess)
        return code;
    LAUNCH(s.grid, FILTER_WARPS * WARP, s.shared, stream, filter_gradient_kernel<T, GROUPS, FEW>)
    (s.t, s.p, (const T *)image, (const T *)gradients, parts);
    LAUNCH(s.grid.y * (unsigned)(GROUPS * 8), FILTER_WARPS * WARP, 0, stream, fold_filter_kernel<T, FEW>)
    (s.p, s.t.channels, GROUPS, (int)s.grid.x, parts, (T *)to);
    return code;
}

template <typename T>
static cudaError_t choose_gradient(cudaStream_t stream, const shape &s, const void *image, const void *gradients,
                                   float *parts, void *to)
{
#define TRY(GROUPS)                                                                                                    \
    if (s.groups == GROUPS)                                                                                            \
        return s.pieces == 0 ? gradient_of_filter<T, GROUPS, true>(stream, s, image, gradients, parts, to)                     \
                             : gradient_of_filter<T, GROUPS, false>(stream, s, image, gradients, parts, to);
    TRY(3)
    TRY(7)
    TRY(MOST_GROUPS)
#undef TRY
    return cudaErrorInvalidValue;
}

cudaError_t twi_cuda_conv_run(cudaStream_t stream, const twi_cuda_conv *c, int variant, void *image, void *filter,
                              void *output, const void *bias, void *workspace)
{
    shape s;
    if (!lay(c, variant, &s))
        return cudaErrorInvalidValue;
    s.t.aligned = is_aligned(image) && is_aligned(filter) && is_aligned(output);
    cudaError_t code = cudaErrorInvalidValue;
    FLOAT_TYPES(c->type,
                code = c->direction == TWI_CONV_FORWARD ? choose_convolve<T>(stream, s, image, filter, bias, output)
                       : c->direction == TWI_CONV_BACKWARD_DATA
                           ? choose_convolve<T>(stream, s, output, filter, nullptr, image)
                           : choose_gradient<T>(stream, s, image, output, (float *)workspace, filter))
    return code == cudaSuccess ? cudaGetLastError() : code;
}
