/* scatter.c - ScatterNd: elements added at places that indices say, in the order of the indices.
 * The counterpart that only copies is GatherNd (gather.c). */
#include "device/cpu/plain/indices.h"
#include "device/cpu/plain/typed.h"

#define BODY "device/cpu/plain/scatter.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#include "device/cpu/plain/for_complex.h"

/* The sum of bools is whether any is true. */
#define ADD(a, b) ((a) | (b))
#define REAL uint8_t
#define NAME(f) f##_bool
#include BODY
#undef BODY

TWI_WIDENED(scatter_nd)

const twi_kernel twi_cpu_scatter_kernels[] = {
    TWI_FLOAT_ROWS("ScatterNd", twi_prepare_typed, scatter_nd, NULL),
    TWI_INTEGER_ROWS("ScatterNd", twi_prepare_typed, scatter_nd, NULL),
    TWI_COMPLEX_ROWS("ScatterNd", twi_prepare_typed, scatter_nd, NULL),
    {"ScatterNd", "plain", TWI_TYPE(TW_BOOL), NULL, scatter_nd_bool},
    {0},
};
