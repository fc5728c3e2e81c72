/* gemm.h - products of matrices for convolutions, on the registers of AVX-512.
 * Lives here:  rows times one panel of columns, the layout of panels.
 * Never here:  what the rows are (conv_gemm.c, conv_winograd.c); other CPUs.
 *
 * The second matrix is cut into panels of 64 columns, the last of as many whole vectors of 16 as it needs, and each
 * panel lies by itself, row after row: the panel that begins at a column begins at that column x the number of rows.
 * The first matrix stays where it is: of each of its rows there are pointers to pieces of one length, one a tap of a
 * filter. */
#ifndef TWI_GEMM_H
#define TWI_GEMM_H

#include <stdbool.h>
#include <stdint.h>

enum { TWI_GEMM_LANES = 16, TWI_GEMM_PANEL = 4 * TWI_GEMM_LANES };

/* Floats of a row of the panel that begins at this of so many columns. */
static inline int64_t twi_gemm_width(int64_t columns, int64_t column)
{
    int64_t left = (columns - column + TWI_GEMM_LANES - 1) / TWI_GEMM_LANES * TWI_GEMM_LANES;
    return left < TWI_GEMM_PANEL ? left : TWI_GEMM_PANEL;
}

/* A matrix [rows][columns] as panels; what is empty of the last vector is 0. Yours: twi_free_aligned(); NULL:
 * out of memory. */
float *twi_gemm_pack(const float *matrix, int64_t rows, int64_t columns);

typedef struct twi_gemm {
    int64_t pieces, length;     /* of a row of the first matrix */
    const float *const *from;   /* [pieces][pitch]: its rows */
    int64_t pitch;
    const float *panel;         /* [pieces * length][width] */
    int64_t columns;            /* of the panel that count */
    const float *start;         /* [columns] that the sums begin with; NULL: 0 */
    float *const *to;           /* where the columns of each row go */
    int64_t column;             /* and how far from there */
    bool relu;
} twi_gemm;

/* `count` rows. A row's sums are made in the order of the panel, however many there are. Asks for what lies behind the
 * panel meanwhile, as much as it has itself: the next one. */
void twi_gemm_run(const twi_gemm *g, int64_t count);

#endif
