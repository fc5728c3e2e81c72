/* matmul.c - matrix products on oneDNN: MatMul with every transposition, _FusedMatMul with bias and ReLU.
 * Transposed operands are only strides; nothing is copied here. */
#include "device/cpu/library/onednn.h"
#include "device/kernel.h"

static twi_dnnl_tensor matrix(const twi_operand *operand, bool transposed)
{
    int64_t rows = operand->shape.dims[0], columns = operand->shape.dims[1];
    twi_dnnl_tensor tensor = {operand->dtype, 2, {rows, columns}, {columns, 1}, false};
    if (transposed)
        tensor = (twi_dnnl_tensor){operand->dtype, 2, {columns, rows}, {1, columns}, false};
    return tensor;
}

static tw_status matmul_prepare(twi_prepare *p)
{
    twi_dnnl *primitive;
    if (!twi_dnnl_has_type(p->inputs[0].dtype) || p->inputs[0].elements == 0 || p->inputs[1].elements == 0)
        return TW_UNIMPLEMENTED;
    twi_dnnl_spec spec = {
        .kind = TWI_DNNL_MATMUL,
        .src = matrix(&p->inputs[0], twi_attr_bool(p->attrs, "transpose_a", false)),
        .weights = matrix(&p->inputs[1], twi_attr_bool(p->attrs, "transpose_b", false)),
        .dst = matrix(&p->outputs[0], false),
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
    {"_FusedMatMul", "onednn", TYPES, matmul_prepare, matmul_run, matmul_release, .shares = true},
    {0},
};
