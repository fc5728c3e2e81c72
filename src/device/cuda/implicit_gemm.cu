/* implicit_gemm.cu - convolutions of few channels, and their gradients, as products of matrices that are never written
 * down (implicit_gemm.cuh, matrix.cuh).
 *
 * Where a batch normalization follows, a block leaves the moments of what it has stored: a lane has those of the quads
 * of channels that it stores, lanes and warps merge theirs at the end.
 *
 * The gradient of the image is the convolution of the output's gradient with the filter turned round. */
#include "device/cuda/implicit_gemm.cuh"

/* ---- the output, and the gradient of the image ------------------------------------------------------------------- */

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

/* ---- the gradient of the filter ---------------------------------------------------------------------------------- */

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

/* parts: [blocks along x][along y][SIDES * GROUPS * 8][WARP] */
template <typename T, int SIDES, int GROUPS, bool FEW, bool ALIGNED>
static __global__ void __launch_bounds__(FILTER_WARPS *WARP)
filter_gradient_kernel(tiling t, gradient p, const T *image, const T *gradients, float *sums_of_blocks, unsigned *counters,
                       T *to)
{
    DYNAMIC_SHARED(uint4, shared);
    constexpr int PIECES = FEW ? 0 : SLICE / in_word<T>() / PIECE;
    constexpr int COUNT = SIDES * GROUPS * 8 * WARP;
    const int y = (int)blockIdx.y, step = (int)gridDim.x;
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
    find_columns<T, GROUPS, FEW>(t, p, part, offsets);
    for (int tile = (int)blockIdx.x, turn = 0; tile < t.tiles; tile += step, turn = p.buffers - 1 - turn) {
        if (p.buffers == 2 && tile + step < t.tiles) {
            load(tile + step, tiles + (1 - turn) * room);
            arrive<1>();
        } else {
            arrive<0>();
        }
        __syncthreads();
        const uint32_t *patch = tiles + turn * room;
        add_pixels<T, SIDES, GROUPS>((int)threadIdx.x / WARP, FILTER_WARPS, p.pixels, slice_stride<T>(SIDES), patch,
                                     patch + t.words, places, offsets, s);
        __syncthreads();
    }
    const block_sums of = {sums_of_blocks + (int64_t)y * COUNT, (int64_t)gridDim.y * COUNT, COUNT};
    fold_warps<SIDES, GROUPS>(COUNT, FILTER_WARPS, (float *)tiles, s, of.all + (int64_t)blockIdx.x * of.apart);
    if (!add_blocks(of, counters + y * (1 + (step + TOGETHER - 1) / TOGETHER)))
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
static_assert(sizeof variants / sizeof *variants <= TWI_CUDA_CONV_POOLS &&
                  sizeof filter_variants / sizeof *filter_variants <= TWI_CUDA_CONV_POOLS,
              "variants have numbers below that of the one that pools");

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

template <typename T>
static cudaError_t choose_convolve(cudaStream_t stream, bool aligned, const shape &s, const operands &o)
{
    if (o.moments)
        return aligned ? choose_variant<T, true>(stream, s, o) : cudaErrorInvalidValue;
    return aligned ? choose_variant<T, false>(stream, s, o) : choose_pieces<T, 1, 2, false, false>(stream, s, o);
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
