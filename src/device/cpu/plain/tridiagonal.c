/* tridiagonal.c - TridiagonalSolve and TridiagonalMatMul: matrices that are their three middle diagonals. */
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

#include <complex.h>
#include <math.h>

#define BODY "device/cpu/plain/tridiagonal.inl"
#include "device/cpu/plain/for_complex.h"
#include "device/cpu/plain/for_floats.h"
#undef BODY

static const bool pivots_marker = true;

/* state: whether rows may change places. The workspace has three diagonals. */
static tw_status prepare_solve(twi_prepare *p)
{
    tw_shape rhs = p->inputs[1].shape;
    if (twi_attr_bool(p->attrs, "partial_pivoting", true))
        p->state = (void *)&pivots_marker;
    p->workspace = 3 * (size_t)rhs.dims[rhs.rank - 2] * tw_dtype_size(p->inputs[1].dtype);
    return TW_OK;
}

#define ROWS(op, prepare, f)                                                                                           \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float},                                                           \
        {op, "plain", TWI_TYPE(TW_FLOAT64), prepare, f##_double}, TWI_COMPLEX_ROWS(op, prepare, f, NULL)

const twi_kernel twi_cpu_tridiagonal_kernels[] = {
    ROWS("TridiagonalSolve", prepare_solve, solve_diagonals),
    ROWS("TridiagonalMatMul", NULL, multiply_diagonals),
    {0},
};
