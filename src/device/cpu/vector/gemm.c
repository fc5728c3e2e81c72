/* gemm.c - see gemm.h. */
#include "device/cpu/vector/gemm.h"

#include "base/memory.h"

#include <string.h>

#ifdef __x86_64__

#include <immintrin.h>

enum { LANES = TWI_GEMM_LANES, MOST_ROWS = 12, MOST_VECTORS = 4 };

/* Rows of a tile, by the vectors of its panel: what fits into 32 registers with the panel's vectors and a factor. */
static const int64_t most_rows[MOST_VECTORS + 1] = {0, 12, 12, 8, 6};

float *twi_gemm_pack(const float *matrix, int64_t rows, int64_t columns)
{
    int64_t vectors = (columns + LANES - 1) / LANES;
    float *panels = twi_alloc_aligned((size_t)(rows * vectors * LANES) * sizeof *panels, 64), *to = panels;
    for (int64_t column = 0; column < columns && panels; column += TWI_GEMM_PANEL) {
        int64_t width = twi_gemm_width(columns, column), count = columns - column < width ? columns - column : width;
        for (int64_t i = 0; i < rows; i++, to += width)
            memcpy(to, matrix + i * columns + column, (size_t)count * sizeof *to);
    }
    return panels;
}

typedef struct tile {
    const twi_gemm *g;
    const float *const *from;
    float *const *to;
    const float *ahead; /* will be wanted soon */
} tile;

#define TWI_TARGET "avx512f"
#include "device/cpu/vector/target.h"

static inline __attribute__((always_inline)) void make_tile(int rows, int vectors, const tile *t)
{
    const twi_gemm *g = t->g;
    __m512 sums[MOST_ROWS][MOST_VECTORS], some[MOST_VECTORS];
    __mmask16 last = (__mmask16)((1u << (g->columns - (vectors - 1) * LANES)) - 1);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        __mmask16 mask = v == vectors - 1 ? last : 0xffff;
        some[v] = g->start ? _mm512_maskz_loadu_ps(mask, g->start + v * LANES) : _mm512_setzero_ps();
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++)
            sums[i][v] = some[v];
    }
    const float *panel = g->panel, *ahead = t->ahead, *from[MOST_ROWS];
    const float *const *piece = t->from;
    int64_t length = g->length;
    for (int64_t k = 0; k < g->pieces; k++, piece += g->pitch) {
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++)
            from[i] = piece[i];
        for (int64_t c = 0; c < length; c++, panel += vectors * LANES, ahead += LANES) {
            __builtin_prefetch(ahead, 0, 2);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                some[v] = _mm512_loadu_ps(panel + v * LANES);
#pragma GCC unroll 12
            for (int i = 0; i < rows; i++) {
                __m512 factor = _mm512_set1_ps(from[i][c]);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++)
                    sums[i][v] = _mm512_fmadd_ps(factor, some[v], sums[i][v]);
            }
        }
    }
    __m512 zero = _mm512_setzero_ps();
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            __m512 y = sums[i][v];
            if (g->relu) /* NaN is handed on: the second operand counts where one is NaN */
                y = _mm512_max_ps(zero, y);
            _mm512_mask_storeu_ps(t->to[i] + g->column + v * LANES, v == vectors - 1 ? last : 0xffff, y);
        }
}

#define TILE(rows, vectors)                                                                                            \
    static void tile_##vectors##_##rows(const tile *t)                                                                 \
    {                                                                                                                  \
        make_tile(rows, vectors, t);                                                                                   \
    }
#define UP_TO_6(X, vectors) X(1, vectors) X(2, vectors) X(3, vectors) X(4, vectors) X(5, vectors) X(6, vectors)
#define UP_TO_8(X, vectors) UP_TO_6(X, vectors) X(7, vectors) X(8, vectors)
#define UP_TO_12(X, vectors) UP_TO_8(X, vectors) X(9, vectors) X(10, vectors) X(11, vectors) X(12, vectors)
#define EACH(X) UP_TO_12(X, 1) UP_TO_12(X, 2) UP_TO_8(X, 3) UP_TO_6(X, 4)
EACH(TILE)

#include "device/cpu/vector/target_end.h"

#define ENTRY(rows, vectors) [vectors][rows] = tile_##vectors##_##rows,
static void (*const tiles[MOST_VECTORS + 1][MOST_ROWS + 1])(const tile *t) = {EACH(ENTRY)};

/* Tiles are of as many rows as fit, or of one less where that leaves none over. */
void twi_gemm_run(const twi_gemm *g, int64_t count)
{
    int64_t vectors = (g->columns + LANES - 1) / LANES, parts = (count + most_rows[vectors] - 1) / most_rows[vectors];
    int64_t depth = g->pieces * g->length;
    const float *next = g->panel + depth * vectors * LANES;
    for (int64_t i = 0; i < parts; i++) {
        int64_t first = count * i / parts, rows = count * (i + 1) / parts - first;
        tile t = {g, g->from + first, g->to + first, next + i % vectors * depth * LANES};
        tiles[vectors][rows](&t);
    }
}

#endif
