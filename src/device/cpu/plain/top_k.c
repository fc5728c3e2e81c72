/* top_k.c - TopKV2: the k largest elements of each row and where they stand. */
#include "device/cpu/plain/typed.h"

static tw_status prepare_top_k(twi_prepare *p)
{
    tw_shape shape = p->inputs[0].shape;
    if (shape.dims[shape.rank - 1] > INT32_MAX)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': rows of %lld elements are too long for int32 indices",
                        p->op, p->node, (long long)shape.dims[shape.rank - 1]);
    return twi_prepare_typed(p);
}

#define BODY "device/cpu/plain/top_k.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(top_k)

const twi_kernel twi_cpu_top_k_kernels[] = {
    TWI_FLOAT_ROWS("TopKV2", prepare_top_k, top_k, NULL),
    TWI_INTEGER_ROWS("TopKV2", prepare_top_k, top_k, NULL),
    {0},
};
