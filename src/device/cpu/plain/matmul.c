/* matmul.c - matrix products in plain C: three loops, sums in double (integers wrap). Those types that no library here
 * has, and that programs do multiply, go by panels. */
#include "base/memory.h"
#include "device/cpu/plain/chain.h"
#include "device/cpu/plain/cmplx.h"
#include "device/cpu/plain/products.h"
#include "device/cpu/plain/typed.h"

#include <string.h>

/* product(i, j) = sum over k of a(i, k) b(k, j); steps are in elements. */
typedef struct product {
    int64_t batches, m, n, k;
    int64_t a_row, a_column, b_row, b_column;
    bool conj_a, conj_b;              /* of complex numbers each factor's conjugate is taken */
    int rank;                         /* of the batch axes of the output */
    int64_t size[TW_MAX_RANK], a_step[TW_MAX_RANK], b_step[TW_MAX_RANK];
    tw_status (*run)(const twi_run *r); /* of BatchMatMulV3, whose operands have types of their own */
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
    if (tw_shape_elements(out) == 0) /* of products without elements there may be any number */
        d->batches = 0;
}

/* Where the operands of matrix number `batch` begin, in elements. */
static void find_operands(const product *d, int64_t batch, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int axis = d->rank - 1; axis >= 0; axis--) {
        *a += batch % d->size[axis] * d->a_step[axis];
        *b += batch % d->size[axis] * d->b_step[axis];
        batch /= d->size[axis];
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

#undef CONJUGATED
#undef BODY

#define REAL double
#define NAME(f) f##_double
#include "device/cpu/plain/matmul_panels.inl"
#undef REAL
#undef NAME
#define REAL int32_t
#define NAME(f) f##_int32
#include "device/cpu/plain/matmul_panels.inl"
#undef REAL
#undef NAME
#define REAL int64_t
#define NAME(f) f##_int64
#include "device/cpu/plain/matmul_panels.inl"
#undef REAL
#undef NAME

TWI_WIDENED(matmul)

static tw_status prepare_fused(twi_prepare *p)
{
    return twi_chain_biased(p, "MatMul");
}

/* ---- BatchMatMulV3: of one type, or bytes whose product is of int32 ---------------------------------------------- */

static const void *widen_bytes(const twi_run *r, int input, int32_t *to)
{
    bool is_signed = r->input_operands[input].dtype == TW_INT8;
    const int8_t *from = r->inputs[input];
    for (int64_t i = 0; i < r->input_operands[input].elements; i++)
        to[i] = is_signed ? from[i] : (uint8_t)from[i];
    return to;
}

static tw_status matmul_bytes(const twi_run *r)
{
    int32_t *place = r->workspace;
    const void *inputs[] = {widen_bytes(r, 0, place), widen_bytes(r, 1, place + r->input_operands[0].elements)};
    twi_run inner = *r;
    inner.inputs = inputs;
    return matmul_panels_int32(&inner);
}

static bool are_bytes(const twi_prepare *p)
{
    tw_dtype a = p->inputs[0].dtype, b = p->inputs[1].dtype;
    return (a == TW_INT8 || a == TW_UINT8) && (b == TW_INT8 || b == TW_UINT8) && p->outputs[0].dtype == TW_INT32;
}

static tw_status accept_mixed(const twi_prepare *p)
{
    tw_dtype a = p->inputs[0].dtype, b = p->inputs[1].dtype, out = p->outputs[0].dtype;
    return are_bytes(p) || (a == out && b == out)
               ? TW_OK
               : twi_fail(p->error, TW_UNIMPLEMENTED, "there is no product of %s and %s that is %s", tw_dtype_name(a),
                          tw_dtype_name(b), tw_dtype_name(out));
}

static tw_status prepare_mixed(twi_prepare *p)
{
    static tw_status (*const runs[])(const twi_run *r) = {
        [TW_BFLOAT16] = matmul_widened,  [TW_FLOAT16] = matmul_widened, [TW_FLOAT32] = matmul_float,
        [TW_FLOAT64] = matmul_panels_double, [TW_INT16] = matmul_int16, [TW_INT32] = matmul_panels_int32,
        [TW_INT64] = matmul_panels_int64, [TW_COMPLEX64] = matmul_complex64,
        [TW_COMPLEX128] = matmul_complex128,
    };
    tw_status status = prepare(p);
    if (status != TW_OK)
        return status;
    ((product *)p->state)->run = are_bytes(p) ? matmul_bytes : runs[p->outputs[0].dtype];
    if (are_bytes(p))
        p->workspace = (size_t)(p->inputs[0].elements + p->inputs[1].elements) * sizeof(int32_t);
    return TW_OK;
}

static tw_status run_mixed(const twi_run *r)
{
    return ((const product *)r->state)->run(r);
}

#define PANEL_ROWS(op)                                                                                                 \
    {op, "plain", TWI_TYPE(TW_FLOAT64), prepare, matmul_panels_double, twi_free},                                      \
        TWI_WIDE_INTEGER_ROWS(op, prepare, matmul_panels, twi_free)

const twi_kernel twi_cpu_matmul_kernels[] = {
    TWI_FLOAT_BUT_DOUBLE_ROWS("MatMul", prepare, matmul, twi_free),
    PANEL_ROWS("MatMul"),
    TWI_COMPLEX_ROWS("MatMul", prepare, matmul, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("BatchMatMul", prepare, matmul, twi_free),
    PANEL_ROWS("BatchMatMul"),
    TWI_COMPLEX_ROWS("BatchMatMul", prepare, matmul, twi_free),
    TWI_FLOAT_BUT_DOUBLE_ROWS("BatchMatMulV2", prepare, matmul, twi_free),
    PANEL_ROWS("BatchMatMulV2"),
    {"BatchMatMulV2", "plain", TWI_TYPE(TW_INT16), prepare, matmul_int16, twi_free},
    TWI_COMPLEX_ROWS("BatchMatMulV2", prepare, matmul, twi_free),
    {"BatchMatMulV3", "plain", 0, prepare_mixed, run_mixed, twi_free, accept_mixed},
    {"SparseMatMul", "plain", 0, prepare, matmul_widened, twi_free}, /* each operand float or bfloat16 */
    {"_FusedMatMul", "plain", TWI_NARROW_TYPES | TWI_TYPE(TW_FLOAT32), prepare_fused, twi_chain_run, twi_chain_release},
    {0},
};
