/* products.h - what large matrices are worked on with: products, and rows that are added to and turned.
 * Plain C, built for each vector unit; the bits are the same on all, since each number is the outcome of the same
 * operations in the same order. */
#ifndef TWI_CPU_PRODUCTS_H
#define TWI_CPU_PRODUCTS_H

#include <stdint.h>

/* Bytes of a row of a panel, and of the sums that it makes. */
enum { TWI_PANEL_BYTES = 128 };

/* sums [rows][panel] += a [rows,k] times a panel of k rows, each as long as the sums' and `step` numbers behind the one
 * before. a's rows and columns lie a_row and a_column apart. Integers wrap. */
#define TWI_PANEL(name, type)                                                                                          \
    void (*name)(type *sums, int64_t rows, const type *a, int64_t a_row, int64_t a_column, const type *panel,          \
                 int64_t step, int64_t k)

typedef struct twi_products {
    const char *name;
    /* c [m,n] -= a [m,k] b [k,n]; rows lie lc, la and lb numbers apart. */
    void (*subtract)(double *c, int64_t lc, const double *a, int64_t la, const double *b, int64_t lb, int64_t m,
                     int64_t n, int64_t k);
    double (*dot)(const double *x, const double *y, int64_t n);
    void (*add)(double *to, double factor, const double *x, int64_t n); /* to += factor x */
    /* to += f x + g y; returns to . z */
    double (*add_two)(double *to, double f, const double *x, double g, const double *y, const double *z, int64_t n);
    /* x, y = c x - s y, s x + c y */
    void (*turn)(double *x, double *y, double c, double s, int64_t n);
    TWI_PANEL(panel_float, float);
    TWI_PANEL(panel_double, double);
    TWI_PANEL(panel_int32, int32_t);
    TWI_PANEL(panel_int64, int64_t);
} twi_products;

/* Of this CPU's widest unit; and all that it can run, fastest first, ended by NULL. */
const twi_products *twi_products_best(void);
const twi_products *const *twi_products_usable(void);

#endif
