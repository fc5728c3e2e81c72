/* elementwise.h - loops over elements, for the families of functions that are made of them: NAME(f) from an expression
 * of x, or of x and y, which broadcast; see typed.h. No row has some of them in some types. */
#ifndef TWI_ELEMENTWISE_H
#define TWI_ELEMENTWISE_H

#include "device/cpu/plain/broadcast.h"
#include "device/cpu/plain/typed.h"

/* The prepare() of BINARY's; the row's release() is twi_free(). */
tw_status twi_prepare_binary(twi_prepare *p);
/* The same of elements of another size than the result's, which never lies over them. */
tw_status twi_prepare_comparison(twi_prepare *p);

/* y[i] from x */
#define UNARY(f, OUT, expression)                                                                                      \
    static __attribute__((unused)) tw_status NAME(f)(const twi_run *r)                                                 \
    {                                                                                                                  \
        const REAL *restrict from = r->inputs[0];                                                                      \
        OUT *to = r->outputs[0];                                                                                       \
        int64_t n = r->output_operands[0].elements;                                                                    \
        TWI_PARALLEL_ELEMENTS_LOOP(r, n)                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            REAL x = from[i];                                                                                          \
            to[i] = (OUT)(expression);                                                                                 \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }

/* z[i] from x and y, which broadcast. A short run, of which there may be many, does without a region. */
#define BINARY_RUN(n, X, Y, OUT, expression)                                                                           \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        REAL x = X, y = Y;                                                                                             \
        to[i] = (OUT)(expression);                                                                                     \
    }
#define BINARY_LOOP(r, n, X, Y, OUT, expression)                                                                       \
    if (n < TWI_PARALLEL_ELEMENTS) {                                                                                   \
        TWI_VECTOR_LOOP                                                                                                \
        BINARY_RUN(n, X, Y, OUT, expression)                                                                           \
    } else {                                                                                                           \
        TWI_PARALLEL_ELEMENTS_LOOP(r, n)                                                                               \
        BINARY_RUN(n, X, Y, OUT, expression)                                                                           \
    }
#define BINARY(f, OUT, expression)                                                                                     \
    static __attribute__((unused)) tw_status NAME(f)(const twi_run *r)                                                 \
    {                                                                                                                  \
        const twi_broadcast *b = r->state;                                                                             \
        for (int64_t k = 0; k < b->runs; k++) {                                                                        \
            int64_t x_start, y_start, n = b->run;                                                                      \
            twi_broadcast_start(b, k, &x_start, &y_start);                                                             \
            const REAL *xs = (const REAL *)r->inputs[0] + x_start, *ys = (const REAL *)r->inputs[1] + y_start;         \
            OUT *to = (OUT *)r->outputs[0] + k * n;                                                                    \
            if (b->x_moves && b->y_moves) {                                                                            \
                BINARY_LOOP(r, n, xs[i], ys[i], OUT, expression)                                                       \
            } else if (b->x_moves) {                                                                                   \
                REAL fixed = ys[0];                                                                                    \
                BINARY_LOOP(r, n, xs[i], fixed, OUT, expression)                                                       \
            } else {                                                                                                   \
                REAL fixed = xs[0];                                                                                    \
                BINARY_LOOP(r, n, fixed, ys[i], OUT, expression)                                                       \
            }                                                                                                          \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }

#endif
