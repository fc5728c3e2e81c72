/* multiply.inl - a block of a product of REAL matrices by the panels of products.h. A panel of columns is laid down row
 * after row, as much of it as a cache holds, and gone through with the block's rows; few rows take it as it lies. Each
 * sum is made in the order of k, whatever the sizes and the team. */

/* a [m,k] and b [k,n], whose rows and columns lie so far apart. */
typedef struct NAME(factors) {
    const REAL *a, *b;
    int64_t m, n, k, a_row, a_column, b_row, b_column;
} NAME(factors);

enum { NAME(BLOCK) = 48, NAME(PANEL) = TWI_PANEL_BYTES / sizeof(REAL) }; /* rows and columns of a block */

/* The product's block that begins at row i0 and column j0; `to` is the whole product, to which it is added, or not. */
static void NAME(multiply_block)(const NAME(factors) *f, int64_t i0, int64_t j0, bool adds, REAL *to, int64_t to_row)
{
    enum { ROWS = NAME(BLOCK), COLUMNS = NAME(PANEL), FEW = 6, DEEP = 128 };
    int64_t rows = f->m - i0 < ROWS ? f->m - i0 : ROWS, width = f->n - j0 < COLUMNS ? f->n - j0 : COLUMNS;
    const REAL *a = f->a + i0 * f->a_row, *b = f->b + j0 * f->b_column;
    bool as_it_lies = f->b_column == 1 && width == COLUMNS && rows <= FEW;
    REAL sums[ROWS * COLUMNS], panel[DEEP * COLUMNS];
    to += i0 * to_row + j0;
    memset(sums, 0, (size_t)rows * COLUMNS * sizeof *sums);
    memset(panel, 0, width < COLUMNS ? sizeof panel : 0);
    for (int64_t i = 0; i < rows && adds; i++)
        memcpy(sums + i * COLUMNS, to + i * to_row, (size_t)width * sizeof *to);
    for (int64_t k0 = 0; k0 < f->k; k0 += DEEP) {
        int64_t deep = f->k - k0 < DEEP ? f->k - k0 : DEEP;
        const REAL *from = b + k0 * f->b_row;
        for (int64_t k = 0; k < deep && !as_it_lies && f->b_column == 1; k++)
            memcpy(panel + k * COLUMNS, from + k * f->b_row, (size_t)width * sizeof *panel);
        for (int64_t k = 0; k < deep && f->b_column != 1; k++)
            for (int64_t j = 0; j < width; j++)
                panel[k * COLUMNS + j] = from[k * f->b_row + j * f->b_column];
        twi_products_best()->NAME(panel)(sums, rows, a + k0 * f->a_column, f->a_row, f->a_column,
                                         as_it_lies ? from : panel, as_it_lies ? f->b_row : COLUMNS, deep);
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, sums + i * COLUMNS, (size_t)width * sizeof *to);
}
