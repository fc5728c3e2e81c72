/* scatter.c - ScatterNd: elements added at places that indices say, in the order of the indices.
 * The counterpart that only copies is GatherNd (gather.c). */
#include "device/cpu/plain/indices.h"
#include "device/cpu/plain/typed.h"

static tw_status prepare(twi_prepare *p)
{
    tw_status status = twi_places_prepare(p);
    return status == TW_OK ? twi_prepare_typed(p) : status;
}

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
    TWI_FLOAT_ROWS("ScatterNd", prepare, scatter_nd, NULL),
    TWI_INTEGER_ROWS("ScatterNd", prepare, scatter_nd, NULL),
    TWI_COMPLEX_ROWS("ScatterNd", prepare, scatter_nd, NULL),
    {"ScatterNd", "plain", TWI_TYPE(TW_BOOL), prepare, scatter_nd_bool},
    {0},
};
