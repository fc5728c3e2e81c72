/* matmul.c - matrix products in plain C: three loops, sums in double (integers wrap). */
#include "base/memory.h"
#include "device/cpu/plain/chain.h"
#include "device/cpu/plain/cmplx.h"
#include "device/cpu/plain/typed.h"

#include <string.h>

/* product(i, j) = sum over k of a(i, k) b(k, j); steps are in elements. */
typedef struct product {
    int64_t batches, m, n, k;
    int64_t a_row, a_column, b_row, b_column;
    bool conj_a, conj_b;              /* of complex numbers each factor's conjugate is taken */
    int rank;                         /* of the batch axes of the output */
    int64_t size[TW_MAX_RANK], a_step[TW_MAX_RANK], b_step[TW_MAX_RANK];
} product;

static void batch_axes(product *d, tw_shape a, tw_shape b, tw_shape out)
{
    int64_t a_next = d->m * d->k, b_next = d->k * d->n;
    d->batches = 1;
    d->rank = out.rank - 2;
    for (int i = d->rank - 1; i >= 0; i--) {
        int ia = i - (out.rank - a.rank), ib = i - (out.rank - b.rank);
        int64_t da = ia < 0 ? 1 : a.dims[ia], db = ib < 0 ? 1 : b.dims[ib];
        d->size[i] = out.dims[i];
        d->a_step[i] = da == 1 ? 0 : a_next;
        d->b_step[i] = db == 1 ? 0 : b_next;
        d->batches *= out.dims[i];
        a_next *= da;
        b_next *= db;
    }
}

static tw_status prepare(twi_prepare *p)
{
    tw_status status = twi_prepare_typed(p);
    if (status != TW_OK)
        return status;
    product *d = twi_alloc(sizeof *d);
    if (!d)
        return twi_fail_memory(p->error, "preparing a matrix product");
    tw_shape a = p->inputs[0].shape, b = p->inputs[1].shape, out = p->outputs[0].shape;
    bool turn_a = twi_attr_bool(p->attrs, "transpose_a", false) || twi_attr_bool(p->attrs, "adj_x", false);
    bool turn_b = twi_attr_bool(p->attrs, "transpose_b", false) || twi_attr_bool(p->attrs, "adj_y", false);
    int64_t a_width = a.dims[a.rank - 1], b_width = b.dims[b.rank - 1];
    d->m = out.dims[out.rank - 2];
    d->n = out.dims[out.rank - 1];
    d->k = turn_a ? a.dims[a.rank - 2] : a_width;
    d->conj_a = twi_attr_bool(p->attrs, "adj_x", false);
    d->conj_b = twi_attr_bool(p->attrs, "adj_y", false);
    d->a_row = turn_a ? 1 : a_width;
    d->a_column = turn_a ? a_width : 1;
    d->b_row = turn_b ? 1 : b_width;
    d->b_column = turn_b ? b_width : 1;
    batch_axes(d, a, b, out);
    p->state = d;
    return TW_OK;
}

#define BODY "device/cpu/plain/matmul.inl"
#define CONJUGATED(is, x) (x)
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef CONJUGATED
#define CONJUGATED(is, x) ((is) ? conj(x) : (x))
#include "device/cpu/plain/for_complex.h"

TWI_WIDENED(matmul)

static tw_status prepare_fused(twi_prepare *p)
{
    return twi_chain_biased(p, "MatMul");
}

const twi_kernel twi_cpu_matmul_kernels[] = {
    TWI_FLOAT_ROWS("MatMul", prepare, matmul, twi_free),
    TWI_WIDE_INTEGER_ROWS("MatMul", prepare, matmul, twi_free),
    TWI_COMPLEX_ROWS("MatMul", prepare, matmul, twi_free),
    TWI_FLOAT_ROWS("BatchMatMul", prepare, matmul, twi_free),
    TWI_WIDE_INTEGER_ROWS("BatchMatMul", prepare, matmul, twi_free),
    TWI_COMPLEX_ROWS("BatchMatMul", prepare, matmul, twi_free),
    TWI_FLOAT_ROWS("BatchMatMulV2", prepare, matmul, twi_free),
    TWI_WIDE_INTEGER_ROWS("BatchMatMulV2", prepare, matmul, twi_free),
    {"BatchMatMulV2", "plain", TWI_TYPE(TW_INT16), prepare, matmul_int16, twi_free},
    TWI_COMPLEX_ROWS("BatchMatMulV2", prepare, matmul, twi_free),
    {"SparseMatMul", "plain", 0, prepare, matmul_widened, twi_free}, /* each operand float or bfloat16 */
    {"_FusedMatMul", "plain", TWI_NARROW_TYPES | TWI_TYPE(TW_FLOAT32), prepare_fused, twi_chain_run, twi_chain_release},
    {0},
};
