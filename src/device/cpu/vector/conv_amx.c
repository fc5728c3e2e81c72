/* conv_amx.c - gradients of convolution filters in bfloat16 on the matrix units of x86 (row "amx"), where oneDNN is
 * three to five times slower than in the forward direction.
 * Lives here:  Conv2DBackpropFilter, _Conv2DBackpropFilterBias of stride 1 on images NHWC.
 * Never here:  the other directions, which oneDNN does well (library/conv.c).
 *
 * The gradient is a product of matrices for each cell of the filter: dW[cell] = sum over positions of dy[position][K] *
 * x[position + cell][C]. A tile instruction multiplies a tile A, 16 rows of 32 numbers, with a tile B, 16 rows of 16
 * pairs, and adds to 16 x 16 floats. So per image
 *
 *   A = dy transposed:  [K/16] tiles for each 32 positions, 16 filters x 32 positions
 *   B = x in pairs:      positions p and p + 1 side by side; as pairs cannot begin anywhere, once from even positions
 *                        and once from odd ones, which serve the even and the odd columns of the filter
 *
 * Positions count along rows of the padded image, so that a cell of the filter is nothing but an offset; dy is 0 in the
 * padding. Images with few channels (3) would leave B's columns empty: there a column is one of kw * C neighbouring
 * numbers, which are the whole row of the filter at once.
 *
 * Images are packed a few at a time by all threads; then each thread multiplies for its own part of the filter, in the
 * order of images. So the bits do not depend on the number of threads. */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#include <string.h>

#ifdef __x86_64__

#include <immintrin.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TWI_TARGET "avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16"
#include "device/cpu/vector/target.h"

enum {
    SIDE = 16,                    /* of a tile */
    STEP = 32,                    /* positions of a tile */
    TILE = SIDE * STEP,           /* numbers of a tile A or B */
    BLOCK = 4 * SIDE * SIDE,      /* floats of a block of the result: 2 x 2 tiles */
    TOGETHER = 8,                 /* images packed at a time */
    MOST_POSITIONS = 1 << 14,     /* of an image; beyond, packing would not stay in the cache */
};

/* Sixteen columns of B: where they begin in an image's pairs, and which rows [C] of the filter [kh*kw*C, K] they
 * are. */
typedef struct group {
    int64_t offset; /* in numbers */
    int64_t row;
    int rows;
} group;

typedef struct filter_state {
    int64_t batch, height, width, channels;
    int64_t out_height, out_width, filters, kh, kw;
    int64_t before[2];
    bool runs;                    /* a column of B is a number of a run of kw * C */
    int64_t pitch;                /* positions in a row; even */
    int64_t positions;            /* that dy has; a multiple of STEP */
    int64_t pairs;                /* pairs of positions in one plane of B */
    int64_t k_tiles, column_tiles, planes; /* planes: 2 if there are odd pairs too */
    int64_t transposed, paired;       /* numbers of one image in A and B */
    int64_t num_groups, blocks;   /* blocks: pairs of k tiles times pairs of groups */
    /* parts of the workspace, in bytes */
    size_t at_transposed, at_paired, at_result, at_zeros, at_sources, at_sums;
    size_t source_bytes;          /* a thread has, to find or copy an image's pixels */
    group groups[];
} filter_state;

typedef struct filter_job {
    const filter_state *s;
    const uint16_t *x, *dy;
    char *workspace;
    void *out;
    bool out_is_float;
} filter_job;

/* ---- packing ------------------------------------------------------------------------------------------------- */

/* to[k][i] = rows[i][k] for 16 x 16 numbers; rows of `to` are STEP apart. */
static inline void transpose(const uint16_t *const *rows, int64_t k, uint16_t *to)
{
    __m512i a[8], b[8];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(rows[i] + k))),
                                  _mm256_loadu_si256((const __m256i *)(rows[i + 8] + k)), 1);
    /* In each 128-bit lane: 8 x 8 numbers, transposed by taking neighbours apart three times. */
    for (int i = 0; i < 4; i++) {
        b[i] = _mm512_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
        b[i + 4] = _mm512_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_epi32(b[i], b[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(b[i], b[i + 1]);
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 2; i++) {
            int at = 4 * half + i;
            b[4 * half + 2 * i] = _mm512_unpacklo_epi64(a[at], a[at + 2]);
            b[4 * half + 2 * i + 1] = _mm512_unpackhi_epi64(a[at], a[at + 2]);
        }
    for (int i = 0; i < 8; i++) { /* lanes: rows 0-7 of columns 0-7 and 8-15, rows 8-15 of the same */
        __m512i columns = _mm512_shuffle_i64x2(b[i], b[i], 0xd8);
        _mm256_storeu_si256((__m256i *)(to + i * STEP), _mm512_castsi512_si256(columns));
        _mm256_storeu_si256((__m256i *)(to + (i + 8) * STEP), _mm512_extracti64x4_epi64(columns, 1));
    }
}

static void pack_gradient(const filter_state *s, const uint16_t *dy, const uint16_t *zeros, uint16_t *to)
{
    for (int64_t p = 0; p < s->positions; p += SIDE) {
        const uint16_t *rows[SIDE];
        for (int64_t i = 0; i < SIDE; i++) {
            int64_t y = (p + i) / s->pitch, x = (p + i) % s->pitch;
            rows[i] = y < s->out_height && x < s->out_width ? dy + (y * s->out_width + x) * s->filters : zeros;
        }
        for (int64_t k = 0; k < s->k_tiles; k++)
            transpose(rows, k * SIDE, to + (k * s->positions / STEP + p / STEP) * TILE + p % STEP);
    }
}

/* 16 numbers of two positions side by side. */
static inline void pair_up(const uint16_t *even, const uint16_t *odd, uint16_t *to)
{
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)even));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)odd));
    _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

/* Channels are columns: sources[] are the pixels of all positions. */
static void pack_channels(const filter_state *s, const uint16_t *x, const uint16_t *zeros, const uint16_t **sources,
                          uint16_t *to)
{
    for (int64_t p = 0; p < 2 * s->pairs + 1; p++) {
        int64_t row = p / s->pitch - s->before[0], column = p % s->pitch - s->before[1];
        bool inside = row >= 0 && row < s->height && column >= 0 && column < s->width;
        sources[p] = inside ? x + (row * s->width + column) * s->channels : zeros;
    }
    for (int64_t plane = 0; plane < s->planes; plane++)
        for (int64_t c = 0; c < s->column_tiles; c++)
            for (int64_t i = 0; i < s->pairs; i++, to += STEP)
                pair_up(sources[2 * i + plane] + c * SIDE, sources[2 * i + plane + 1] + c * SIDE, to);
}

/* Runs are columns: the image is copied into its padding first. */
static void pack_runs(const filter_state *s, const uint16_t *x, uint16_t *padded, uint16_t *to)
{
    memset(padded, 0, s->source_bytes);
    for (int64_t row = 0; row < s->height; row++)
        memcpy(padded + ((row + s->before[0]) * s->pitch + s->before[1]) * s->channels,
               x + row * s->width * s->channels, (size_t)(s->width * s->channels) * sizeof *x);
    for (int64_t c = 0; c < s->column_tiles; c++)
        for (int64_t i = 0; i < s->pairs; i++, to += STEP) {
            const uint16_t *from = padded + 2 * i * s->channels + c * SIDE;
            pair_up(from, from + s->channels, to);
        }
}

static void pack(const filter_job *j, int64_t n, int64_t place, int thread)
{
    const filter_state *s = j->s;
    const uint16_t *zeros = (const uint16_t *)(j->workspace + s->at_zeros);
    const uint16_t *x = j->x + n * s->height * s->width * s->channels;
    void *sources = j->workspace + s->at_sources + (size_t)thread * s->source_bytes;
    uint16_t *paired = (uint16_t *)(j->workspace + s->at_paired) + place * s->paired;
    pack_gradient(s, j->dy + n * s->out_height * s->out_width * s->filters, zeros,
                  (uint16_t *)(j->workspace + s->at_transposed) + place * s->transposed);
    if (s->runs)
        pack_runs(s, x, sources, paired);
    else
        pack_channels(s, x, zeros, sources, paired);
}

/* ---- multiplying --------------------------------------------------------------------------------------------- */

/* Adds the products of one image to a block: 1 or 2 tiles of filters times 1 or 2 groups of columns. */
static inline void multiply(const uint16_t *a0, const uint16_t *a1, const uint16_t *b0, const uint16_t *b1,
                            int64_t steps, float *block)
{
    _tile_loadd(0, block, 64);
    if (b1)
        _tile_loadd(1, block + SIDE * SIDE, 64);
    if (a1)
        _tile_loadd(2, block + 2 * SIDE * SIDE, 64);
    if (a1 && b1)
        _tile_loadd(3, block + 3 * SIDE * SIDE, 64);
    for (int64_t i = 0; i < steps; i++) {
        _tile_loadd(4, a0 + i * TILE, 64);
        _tile_loadd(6, b0 + i * TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (b1) {
            _tile_loadd(7, b1 + i * TILE, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (a1) {
            _tile_loadd(5, a1 + i * TILE, 64);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (a1 && b1)
            _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, block, 64);
    if (b1)
        _tile_stored(1, block + SIDE * SIDE, 64);
    if (a1)
        _tile_stored(2, block + 2 * SIDE * SIDE, 64);
    if (a1 && b1)
        _tile_stored(3, block + 3 * SIDE * SIDE, 64);
}

static void multiply_block(const filter_job *j, int64_t place, int64_t block)
{
    const filter_state *s = j->s;
    int64_t steps = s->positions / STEP, group_pairs = (s->num_groups + 1) / 2;
    int64_t k = block / group_pairs * 2, g = block % group_pairs * 2;
    const uint16_t *transposed =
        (const uint16_t *)(j->workspace + s->at_transposed) + place * s->transposed + k * steps * TILE;
    const uint16_t *paired = (const uint16_t *)(j->workspace + s->at_paired) + place * s->paired;
    multiply(transposed, k + 1 < s->k_tiles ? transposed + steps * TILE : NULL, paired + s->groups[g].offset,
             g + 1 < s->num_groups ? paired + s->groups[g + 1].offset : NULL, steps,
             (float *)(j->workspace + s->at_result) + block * BLOCK);
}

static void write_block(const filter_job *j, int64_t block)
{
    const filter_state *s = j->s;
    int64_t group_pairs = (s->num_groups + 1) / 2;
    const float *result = (const float *)(j->workspace + s->at_result) + block * BLOCK;
    for (int tile = 0; tile < 4; tile++) {
        int64_t k = block / group_pairs * 2 + tile / 2, g = block % group_pairs * 2 + tile % 2;
        if (k >= s->k_tiles || g >= s->num_groups)
            continue;
        for (int row = 0; row < s->groups[g].rows; row++)
            for (int i = 0; i < SIDE; i++) {
                float value = result[tile * SIDE * SIDE + i * SIDE + row];
                int64_t at = (s->groups[g].row + row) * s->filters + k * SIDE + i;
                if (j->out_is_float)
                    ((float *)j->out)[at] = value;
                else
                    ((uint16_t *)j->out)[at] = tw_float_to_bfloat16(value);
            }
    }
}

static void configure_tiles(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = SIDE;
    }
    _tile_loadconfig(&config);
}

/* What one thread of the team does of the images from n on: packs some, and when all are, multiplies some blocks. */
static void pack_some(const filter_job *j, int64_t n, int64_t images, int thread, int team)
{
    for (int64_t i = images * thread / team; i < images * (thread + 1) / team; i++)
        pack(j, n + i, i, thread);
}

static void multiply_some(const filter_job *j, int64_t n, int64_t images, int thread, int team)
{
    const filter_state *s = j->s;
    int64_t first = s->blocks * thread / team, last = s->blocks * (thread + 1) / team;
    if (n == 0)
        memset((float *)(j->workspace + s->at_result) + first * BLOCK, 0, (size_t)((last - first) * BLOCK) * sizeof(float));
    configure_tiles();
    for (int64_t i = 0; i < images; i++)
        for (int64_t block = first; block < last; block++)
            multiply_block(j, i, block);
    _tile_release();
    for (int64_t block = first; block < last && n + images == s->batch; block++)
        write_block(j, block);
}

#include "device/cpu/vector/target_end.h"

/* ---- the two halves ------------------------------------------------------------------------------------------ */

/* The kernel saves tiles only for processes that asked for them. */
static bool has_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    static const unsigned TILES = 1u << 24 | 1u << 22; /* of leaf 7: AMX-TILE, AMX-BF16 */
    unsigned a, b, c, d = 0;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    return (d & TILES) == TILES && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

static int64_t up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Groups of columns in an order that keeps what they read in the cache: of two tiles of channels at a time, all that
 * begin at even positions, then the others. */
static void find_groups(filter_state *s)
{
    group *g = s->groups;
    int64_t plane = s->column_tiles * s->pairs * STEP;
    for (int64_t c = 0; s->runs && c < s->column_tiles; c++)
        for (int64_t ky = 0; ky < s->kh; ky++) {
            int64_t left = s->kw * s->channels - c * SIDE;
            *g++ = (group){(c * s->pairs + ky * s->pitch / 2) * STEP, ky * s->kw * s->channels + c * SIDE,
                           (int)(left < SIDE ? left : SIDE)};
        }
    for (int64_t pair = 0; !s->runs && pair < s->column_tiles; pair += 2)
        for (int64_t odd = 0; odd < s->planes; odd++)
            for (int64_t ky = 0; ky < s->kh; ky++)
                for (int64_t kx = odd; kx < s->kw; kx += 2)
                    for (int64_t c = pair; c < pair + 2 && c < s->column_tiles; c++)
                        *g++ = (group){odd * plane + (c * s->pairs + (ky * s->pitch + kx) / 2) * STEP,
                                       (ky * s->kw + kx) * s->channels + c * SIDE, SIDE};
    s->num_groups = g - s->groups;
    s->blocks = (s->k_tiles + 1) / 2 * ((s->num_groups + 1) / 2);
}

static void lay_workspace(filter_state *s, twi_prepare *p)
{
    size_t size = 0;
    int64_t rows = s->batch * s->out_height * s->out_width;
    s->at_transposed = twi_make_room(&size, (size_t)(TOGETHER * s->transposed * 2));
    s->at_paired = twi_make_room(&size, (size_t)(TOGETHER * s->paired * 2));
    s->at_result = twi_make_room(&size, (size_t)(s->blocks * BLOCK * 4));
    s->at_zeros = twi_make_room(&size, (size_t)((s->filters + s->channels) * 2));
    s->at_sources = twi_make_room(&size, (size_t)((int64_t)s->source_bytes * p->threads));
    s->at_sums = twi_make_room(&size, (size_t)(p->num_outputs > 1 ? twi_row_chunks(rows) * s->filters * 4 : 0));
    p->workspace = size;
}

/* Conv2DBackpropFilter (input, filter_sizes, out_backprop); _Conv2DBackpropFilterBias has a second output. */
static tw_status filter_prepare(twi_prepare *p)
{
    twi_convolution c;
    const twi_operand *x = &p->inputs[0], *dy = &p->inputs[2];
    tw_dtype out = p->outputs[0].dtype;
    if (x->dtype != TW_BFLOAT16 || (out != TW_BFLOAT16 && out != TW_FLOAT32) || x->elements == 0 || dy->elements == 0 ||
        strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0 || !has_tiles())
        return TW_UNIMPLEMENTED;
    tw_status status = twi_convolution_lay(p->attrs, TWI_DENSE, x->shape, p->outputs[0].shape, dy->shape, &c, p->error);
    if (status != TW_OK)
        return status;
    const twi_window *w = &c.window;
    filter_state s = {
        .batch = c.batch, .height = w->image[0], .width = w->image[1], .channels = c.in_channels,
        .out_height = w->output[0], .out_width = w->output[1], .filters = c.out_channels, .kh = w->size[0],
        .kw = w->size[1], .before = {w->before[0], w->before[1]}, .runs = c.in_channels % SIDE != 0,
    };
    bool plain = w->stride[0] == 1 && w->stride[1] == 1 && w->dilation[0] == 1 && w->dilation[1] == 1;
    if (!plain || s.filters % SIDE != 0 || s.kw * s.channels > (s.runs ? 4 * SIDE : INT32_MAX) ||
        (s.out_height + s.kh) * (s.out_width + s.kw + 1) > MOST_POSITIONS)
        return TW_UNIMPLEMENTED;
    s.pitch = up(s.out_width + s.kw - 1, 2);
    s.positions = up(s.out_height * s.pitch, STEP);
    s.pairs = up(s.positions + (s.kh - 1) * s.pitch + s.kw, 2) / 2;
    s.k_tiles = s.filters / SIDE;
    s.column_tiles = s.runs ? up(s.kw * s.channels, SIDE) / SIDE : s.channels / SIDE;
    s.planes = !s.runs && s.kw > 1 ? 2 : 1;
    s.transposed = s.k_tiles * s.positions * SIDE;
    s.paired = s.planes * s.column_tiles * s.pairs * STEP;
    /* runs: a padded image, and what the last pair may read beyond it */
    int64_t padded = (2 * s.pairs + 2) * s.channels + (s.column_tiles + 1) * SIDE;
    int64_t rows = (s.height + s.before[0] + 1) * s.pitch * s.channels;
    s.source_bytes = (size_t)up(s.runs ? 2 * (padded > rows ? padded : rows) : 8 * (2 * s.pairs + 1), 64);

    int64_t most_groups = s.kh * (s.runs ? s.column_tiles : s.kw * s.column_tiles);
    filter_state *state = twi_alloc(sizeof *state + (size_t)most_groups * sizeof *state->groups);
    if (!state)
        return twi_fail_memory(p->error, p->node);
    *state = s;
    find_groups(state);
    lay_workspace(state, p);
    p->state = state;
    return TW_OK;
}

static tw_status filter_run(const twi_run *r)
{
    const filter_state *s = r->state;
    filter_job job = {s, r->inputs[0], r->inputs[2], r->workspace, r->outputs[0],
                      r->output_operands[0].dtype == TW_FLOAT32};
    memset(job.workspace + s->at_zeros, 0, (size_t)(s->filters + s->channels) * sizeof(uint16_t));
    for (int64_t n = 0; n < s->batch; n += TOGETHER) {
        int64_t images = s->batch - n < TOGETHER ? s->batch - n : TOGETHER;
#pragma omp parallel num_threads(r->threads)
        pack_some(&job, n, images, omp_get_thread_num(), omp_get_num_threads());
#pragma omp parallel num_threads(r->threads)
        multiply_some(&job, n, images, omp_get_thread_num(), omp_get_num_threads());
    }
    if (r->num_outputs > 1)
        twi_sum_columns(r->threads, TWI_BFLOATS, r->inputs[2], s->batch * s->out_height * s->out_width, s->filters,
                        (float *)(job.workspace + s->at_sums), twi_form_of(r->output_operands[1].dtype), r->outputs[1]);
    return TW_OK;
}

const twi_kernel twi_amx_kernels[] = {
    {"Conv2DBackpropFilter", "amx", TWI_TYPE(TW_BFLOAT16), filter_prepare, filter_run, twi_free, .shares = true},
    {"_Conv2DBackpropFilterBias", "amx", TWI_TYPE(TW_BFLOAT16), filter_prepare, filter_run, twi_free, .shares = true},
    {0},
};

#else

const twi_kernel twi_amx_kernels[] = {{0}};

#endif
