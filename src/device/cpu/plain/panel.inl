/* panel.inl - rows times a panel of columns, for one type (NUMBER: as it wraps) and a vector unit of BYTES; see
 * products.h. So many rows are made together as registers have room for. */

typedef NUMBER OF(vector) __attribute__((vector_size(BYTES)));
#define VECTOR OF(vector)
enum {
    OF(WIDTH) = BYTES / sizeof(TYPE),
    OF(VECTORS) = TWI_PANEL_BYTES / BYTES,
    OF(TILE) = BYTES == 64 ? 8 : BYTES == 32 ? 3 : 1,
};
#define WIDTH OF(WIDTH)
#define VECTORS OF(VECTORS)
#define TILE OF(TILE)

INLINE void OF(panel_tile)(int rows, TYPE *sums, const TYPE *a, int64_t a_row, int64_t a_column, const TYPE *panel,
                           int64_t step, int64_t k)
{
    VECTOR sum[TILE][VECTORS];
    for (int i = 0; i < rows; i++)
        memcpy(sum[i], sums + i * WIDTH * VECTORS, sizeof sum[i]);
    for (int64_t l = 0; l < k; l++, a += a_column, panel += step) {
        VECTOR row[VECTORS];
        memcpy(row, panel, sizeof row);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] += (NUMBER)a[i * a_row] * row[v];
    }
    for (int i = 0; i < rows; i++)
        memcpy(sums + i * WIDTH * VECTORS, sum[i], sizeof sum[i]);
}

static void OF(panel)(TYPE *sums, int64_t rows, const TYPE *a, int64_t a_row, int64_t a_column, const TYPE *panel,
                      int64_t step, int64_t k)
{
    for (; rows >= TILE; rows -= TILE, a += TILE * a_row, sums += TILE * WIDTH * VECTORS)
        OF(panel_tile)(TILE, sums, a, a_row, a_column, panel, step, k);
    for (; rows > 0; rows--, a += a_row, sums += WIDTH * VECTORS)
        OF(panel_tile)(1, sums, a, a_row, a_column, panel, step, k);
}

#undef VECTOR
#undef WIDTH
#undef VECTORS
#undef TILE
#undef TYPE
#undef NUMBER
#undef OF
