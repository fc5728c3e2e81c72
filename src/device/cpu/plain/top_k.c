/* top_k.c - TopKV2, ApproxTopK: the k largest elements of each row and where they stand. */
#include "device/cpu/plain/typed.h"

static tw_status prepare_top_k(twi_prepare *p)
{
    tw_shape shape = p->inputs[0].shape;
    if (shape.dims[shape.rank - 1] > INT32_MAX)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': rows of %lld elements are too long for int32 indices",
                        p->op, p->node, (long long)shape.dims[shape.rank - 1]);
    return twi_prepare_typed(p);
}

/* Places that lie at the beginning of their row become int64, from the last on. */
static void widen_places(int32_t *places, int64_t count)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        int64_t wide = places[i];
        memcpy((char *)places + i * (int64_t)sizeof wide, &wide, sizeof wide);
    }
}

#define BODY "device/cpu/plain/top_k.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(top_k)

/* What TensorFlow has on CPUs, where the answer is exact. */
static tw_status accepts_approximate(const twi_prepare *p)
{
    int64_t axis = twi_attr_int(p->attrs, "reduction_dimension", -1);
    bool largest = twi_attr_bool(p->attrs, "is_max_k", true);
    if (axis != -1 || !largest)
        return twi_fail(p->error, TW_UNIMPLEMENTED,
                        "only the largest elements of the last axis have a kernel (reduction_dimension -1, is_max_k "
                        "true); reduction_dimension is %lld, is_max_k %s",
                        (long long)axis, largest ? "true" : "false");
    return TW_OK;
}

const twi_kernel twi_cpu_top_k_kernels[] = {
    TWI_FLOAT_ROWS("TopKV2", prepare_top_k, top_k, NULL),
    TWI_INTEGER_ROWS("TopKV2", prepare_top_k, top_k, NULL),
    TWI_FLOAT_BUT_DOUBLE_ROWS("ApproxTopK", prepare_top_k, top_k, NULL, accepts_approximate),
    {0},
};
