/* typed.h - one body of loops, many types.
 *
 * X.inl holds loops written for REAL, its functions named NAME(f). X.c says
 *
 *     #define BODY "device/cpu/X.inl"
 *     #include "device/cpu/plain/for_floats.h"        (or for_integers.h, for_complex.h, or several)
 *
 * and has f_float, f_double, f_int32, f_complex64... SUM is the type in which long sums of REAL are kept: double for
 * floats, uint64_t for integers, which wrap; ADD, SUBTRACT and MULTIPLY(a, b) wrap likewise.
 *
 * Half and bfloat16 are computed in float: their operands are widened into the workspace, f_float runs, and what it
 * wrote is rounded once at the end. */
#ifndef TWI_CPU_TYPED_H
#define TWI_CPU_TYPED_H

#include "device/cpu/team.h" /* twi_team_run() */
#include "device/kernel.h"

#include <string.h>

/* Bytes of workspace for the widened operands of a node, a multiple of 64; 0 if it has no 16-bit floats. A prepare()
 * adds it to what the kernel itself needs. */
size_t twi_widened_bytes(const twi_prepare *p);
/* Runs f on float copies of the 16-bit operands; f finds its own workspace where it expects it. */
tw_status twi_run_widened(const twi_run *r, tw_status (*f)(const twi_run *r));

/* The prepare() of kernels that need nothing else. */
tw_status twi_prepare_typed(twi_prepare *p);
/* The same for element-wise kernels: output 0 may lie over any of the first inputs of its size. */
tw_status twi_prepare_elementwise(twi_prepare *p);

/* Zeros; an empty operand may have no memory at all. */
void twi_clear(void *to, size_t bytes);

#define TWI_WIDENED(f)                                                                                                 \
    static tw_status f##_widened(const twi_run *r)                                                                     \
    {                                                                                                                  \
        return twi_run_widened(r, f##_float);                                                                          \
    }

/* Rows of a table: op, prepare, f, release and what follows it. */
#define TWI_NARROW_TYPES (TWI_TYPE(TW_FLOAT16) | TWI_TYPE(TW_BFLOAT16))
#define TWI_FLOAT_BUT_DOUBLE_ROWS(op, prepare, f, ...)                                                             \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float, __VA_ARGS__},                                              \
        {op, "plain", TWI_NARROW_TYPES, prepare, f##_widened, __VA_ARGS__}
#define TWI_FLOAT_ROWS(op, prepare, f, ...)                                                                        \
    TWI_FLOAT_BUT_DOUBLE_ROWS(op, prepare, f, __VA_ARGS__),                                                            \
        {op, "plain", TWI_TYPE(TW_FLOAT64), prepare, f##_double, __VA_ARGS__}
#define TWI_WIDE_INTEGER_ROWS(op, prepare, f, ...)                                                                 \
    {op, "plain", TWI_TYPE(TW_INT32), prepare, f##_int32, __VA_ARGS__},                                                \
        {op, "plain", TWI_TYPE(TW_INT64), prepare, f##_int64, __VA_ARGS__}
#define TWI_SIGNED_INTEGER_ROWS(op, prepare, f, ...)                                                               \
    TWI_WIDE_INTEGER_ROWS(op, prepare, f, __VA_ARGS__),                                                                \
        {op, "plain", TWI_TYPE(TW_INT16), prepare, f##_int16, __VA_ARGS__},                                            \
        {op, "plain", TWI_TYPE(TW_INT8), prepare, f##_int8, __VA_ARGS__}
#define TWI_INTEGER_ROWS(op, prepare, f, ...)                                                                      \
    TWI_SIGNED_INTEGER_ROWS(op, prepare, f, __VA_ARGS__),                                                              \
        {op, "plain", TWI_TYPE(TW_UINT8), prepare, f##_uint8, __VA_ARGS__},                                            \
        {op, "plain", TWI_TYPE(TW_UINT16), prepare, f##_uint16, __VA_ARGS__},                                          \
        {op, "plain", TWI_TYPE(TW_UINT32), prepare, f##_uint32, __VA_ARGS__},                                          \
        {op, "plain", TWI_TYPE(TW_UINT64), prepare, f##_uint64, __VA_ARGS__}

#define TWI_COMPLEX_ROWS(op, prepare, f, ...)                                                                          \
    {op, "plain", TWI_TYPE(TW_COMPLEX64), prepare, f##_complex64, __VA_ARGS__},                                        \
        {op, "plain", TWI_TYPE(TW_COMPLEX128), prepare, f##_complex128, __VA_ARGS__}

/* The team shares the iterations of the next loop, which must write to disjoint places: then results do not depend on
 * the number of threads. TWI_VECTOR_LOOP asks for vector instructions where iterations are independent. */
#define TWI_PRAGMA(text) _Pragma(#text)
#define TWI_PARALLEL_LOOP(r) TWI_PRAGMA(omp parallel for num_threads((r)->threads))
#define TWI_VECTOR_LOOP TWI_PRAGMA(omp simd)

/* Element-wise loops shorter than this stay on one thread. */
#define TWI_PARALLEL_ELEMENTS 16384
#define TWI_PARALLEL_ELEMENTS_LOOP(r, count)                                                                           \
    TWI_PRAGMA(omp parallel for simd num_threads((r)->threads)                                                         \
                   if ((r)->threads > 1 && (count) >= TWI_PARALLEL_ELEMENTS))

/* How many threads share `items` that are made of so many elements: one does where these are few. */
int twi_team_for(const twi_run *r, int64_t items, int64_t elements);

#endif
