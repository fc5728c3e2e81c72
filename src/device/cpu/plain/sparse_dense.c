/* sparse_dense.c - sparse tensors made dense, and multiplied by dense matrices. */
#include "device/cpu/plain/cmplx.h"
#include "device/cpu/plain/indices.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

static const bool validate_marker = true; /* state: places must rise */

static tw_status prepare_to_dense(twi_prepare *p)
{
    if (twi_attr_bool(p->attrs, "validate_indices", true))
        p->state = (void *)&validate_marker;
    return TW_OK;
}

/* Places in order, none twice. */
static tw_status check_order(const twi_run *r, const twi_places *places)
{
    for (int64_t i = 1; i < places->count; i++) {
        int64_t last = twi_places_offset(r, 0, places, i - 1), at = twi_places_offset(r, 0, places, i);
        if (at <= last)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices[%lld] is %s", r->node, (long long)i,
                            at == last ? "repeated" : "out of order");
    }
    return TW_OK;
}

/* Indices [n,rank]; [n] and a scalar are of one axis. */
static tw_status run_to_dense(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    twi_operand indices = r->input_operands[0];
    twi_operand operands[4] = {indices, r->input_operands[1], r->input_operands[2], r->input_operands[3]};
    twi_run inner = *r;
    twi_places places;
    if (indices.shape.rank < 2)
        operands[0].shape = TW_SHAPE(indices.elements, 1);
    inner.input_operands = operands;
    if (operands[0].shape.dims[1] != out->shape.rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': places of %lld numbers in %d axes", r->node,
                        (long long)operands[0].shape.dims[1], out->shape.rank);
    tw_status status = twi_places_check(&inner, 0, out->shape, &places);
    if (status == TW_OK && r->state)
        status = check_order(&inner, &places);
    if (status == TW_OK)
        status = twi_fill_elements(r, out->elements, out->dtype, r->inputs[3], r->outputs[0]);
    bool one = r->input_operands[2].shape.rank == 0;
    for (int64_t i = 0; i < places.count && status == TW_OK; i++)
        if (!twi_copy_elements(
                1, out->dtype, twi_element(r->inputs[2], out->dtype, one ? 0 : i),
                twi_element_of_output(r->outputs[0], out->dtype, twi_places_offset(&inner, 0, &places, i))))
            status = twi_fail_memory(r->error, r->node);
    return status;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

enum { ADJOINT_A = 1, ADJOINT_B = 2 };

static tw_status prepare_product(twi_prepare *p)
{
    p->state = (void *)(intptr_t)((twi_attr_bool(p->attrs, "adjoint_a", false) ? ADJOINT_A : 0) |
                                  (twi_attr_bool(p->attrs, "adjoint_b", false) ? ADJOINT_B : 0));
    return twi_prepare_typed(p);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static tw_status prepare_sum(twi_prepare *p)
{
    p->can_overwrite[3] = true;
    return twi_prepare_typed(p);
}

/* An index, a value and a whole shape for each entry. */
static tw_status check_operands(const twi_run *r)
{
    const int64_t *dims = r->input_operands[0].shape.dims, count = r->input_operands[1].elements;
    tw_shape b = r->input_operands[3].shape;
    bool fits = dims[0] == count && dims[1] == b.rank && r->input_operands[2].elements == b.rank;
    for (int k = 0; fits && k < b.rank; k++)
        fits = twi_input_int(r, 2, k) == b.dims[k];
    if (fits)
        return TW_OK;
    char text[128];
    return twi_fail(r->error, TW_INVALID_ARGUMENT,
                    "'%s': indices [%lld,%lld] for %lld values of a tensor like b, which has the shape %s", r->node,
                    (long long)dims[0], (long long)dims[1], (long long)count, tw_shape_text(b, text, sizeof text));
}

#define BODY "device/cpu/plain/sparse_dense.inl"
#define CONJUGATED(is, x) (x)
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef CONJUGATED
#define CONJUGATED(is, x) ((is) ? (REAL)conj(x) : (x))
#include "device/cpu/plain/for_complex.h"
#undef BODY

TWI_WIDENED(sparse_product)
TWI_WIDENED(sparse_plus_dense)

const twi_kernel twi_cpu_sparse_dense_kernels[] = {
    {"SparseToDense", "plain", TWI_MOVED_TYPES, prepare_to_dense, run_to_dense},
    TWI_FLOAT_ROWS("SparseTensorDenseMatMul", prepare_product, sparse_product, NULL),
    TWI_COMPLEX_ROWS("SparseTensorDenseMatMul", prepare_product, sparse_product, NULL),
    {"SparseTensorDenseMatMul", "plain", TWI_TYPE(TW_INT32), prepare_product, sparse_product_int32},
    TWI_FLOAT_ROWS("SparseTensorDenseAdd", prepare_sum, sparse_plus_dense, NULL),
    TWI_COMPLEX_ROWS("SparseTensorDenseAdd", prepare_sum, sparse_plus_dense, NULL),
    TWI_INTEGER_ROWS("SparseTensorDenseAdd", prepare_sum, sparse_plus_dense, NULL),
    {0},
};
