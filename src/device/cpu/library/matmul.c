/* matmul.c - matrix products on oneDNN: MatMul and BatchMatMul with every transposition, _FusedMatMul with bias and ReLU.
 * Transposed operands are only strides; nothing is copied here. */
#include "device/cpu/library/onednn.h"
#include "device/kernel.h"

#include <string.h>

/* The product of the axes before the last two. */
static int64_t count_batches(tw_shape shape)
{
    int64_t batches = 1;
    for (int i = 0; i < shape.rank - 2; i++)
        batches *= shape.dims[i];
    return batches;
}

/* Matrices one behind the other; a single one is the same for all of the output's. */
static twi_dnnl_tensor matrices(const twi_operand *operand, bool transposed, bool batched)
{
    const int64_t *dims = operand->shape.dims + operand->shape.rank - 2;
    int64_t rows = dims[0], columns = dims[1];
    twi_dnnl_tensor tensor = {operand->dtype, 3, {count_batches(operand->shape), rows, columns},
                              {rows * columns, columns, 1}, false};
    if (transposed)
        tensor = (twi_dnnl_tensor){operand->dtype, 3, {tensor.dims[0], columns, rows}, {rows * columns, 1, columns}, false};
    if (!batched) {
        memmove(tensor.dims, tensor.dims + 1, 2 * sizeof *tensor.dims);
        memmove(tensor.strides, tensor.strides + 1, 2 * sizeof *tensor.strides);
        tensor.rank = 2;
    }
    return tensor;
}

/* Whether an operand has a matrix for each of the output's, or one for all. */
static bool has_batches(const twi_operand *operand, const twi_operand *output)
{
    int64_t batches = count_batches(operand->shape);
    return batches == 1 || batches == count_batches(output->shape);
}

static tw_status matmul_prepare(twi_prepare *p)
{
    twi_dnnl *primitive;
    twi_operand a = p->inputs[0], b = p->inputs[1], y = p->outputs[0];
    bool turn_a = twi_attr_bool(p->attrs, "transpose_a", false) || twi_attr_bool(p->attrs, "adj_x", false);
    bool turn_b = twi_attr_bool(p->attrs, "transpose_b", false) || twi_attr_bool(p->attrs, "adj_y", false);
    if (!twi_dnnl_has_type(a.dtype) || a.elements == 0 || b.elements == 0 || !has_batches(&a, &y) || !has_batches(&b, &y))
        return TW_UNIMPLEMENTED;
    if (count_batches(b.shape) == 1 && !turn_a) { /* rows of many matrices are those of one */
        a.shape = TW_SHAPE(a.elements / a.shape.dims[a.shape.rank - 1], a.shape.dims[a.shape.rank - 1]);
        y.shape = TW_SHAPE(y.elements / y.shape.dims[y.shape.rank - 1], y.shape.dims[y.shape.rank - 1]);
    }
    bool batched = count_batches(y.shape) > 1;
    twi_dnnl_spec spec = {
        .kind = TWI_DNNL_MATMUL,
        .src = matrices(&a, turn_a, batched),
        .weights = matrices(&b, turn_b, batched),
        .dst = matrices(&y, false, batched),
        .relu = twi_attr_bool(p->attrs, "relu", false),
        .threads = p->threads,
    };
    if (p->num_inputs > 2)
        spec.bias = (twi_dnnl_tensor){p->inputs[2].dtype, 2, {1, p->inputs[2].elements}, {p->inputs[2].elements, 1}};
    tw_status status = twi_dnnl_create(&spec, &primitive, p->error);
    if (status != TW_OK)
        return status;
    p->state = primitive;
    p->workspace = twi_dnnl_workspace(primitive);
    return TW_OK;
}

static tw_status matmul_run(const twi_run *r)
{
    return twi_dnnl_run(r->state, r->inputs[0], r->inputs[1], r->num_inputs > 2 ? r->inputs[2] : NULL, r->outputs[0],
                        r->workspace, r->error);
}

static void matmul_release(void *state)
{
    twi_dnnl_destroy(state);
}

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

const twi_kernel twi_onednn_matmul_kernels[] = {
    {"MatMul", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {"BatchMatMul", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {"BatchMatMulV2", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {"_FusedMatMul", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {0},
};
