/* softmax.c - rows of softmax, of the cross entropy of labels, alone or with mean and gradient, and of
 * InTopK. */
#include "base/memory.h"
#include "device/cuda/cuda.h"
#include "device/cuda/launch.h"

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

static tw_status run_rows(const twi_run *r, bool logarithm)
{
    const twi_operand *logits = &r->input_operands[0];
    int64_t classes = logits->shape.dims[logits->shape.rank - 1];
    return TWI_LAUNCH(r, twi_cuda_softmax(r->stream, logits->dtype, logarithm, classes ? logits->elements / classes : 0,
                                          classes, r->inputs[0], r->outputs[0]));
}

static tw_status run_softmax(const twi_run *r)
{
    return run_rows(r, false);
}

static tw_status run_log_softmax(const twi_run *r)
{
    return run_rows(r, true);
}

static tw_status run_sparse(const twi_run *r)
{
    const twi_operand *logits = &r->input_operands[0];
    int64_t classes = logits->shape.dims[1], rows = classes ? logits->shape.dims[0] : 0;
    return TWI_LAUNCH(r, twi_cuda_sparse_cross_entropy(r->stream, logits->dtype, rows, classes, r->inputs[0],
                                                       r->input_operands[1].dtype, r->inputs[1], r->outputs[0],
                                                       r->outputs[1]));
}

static tw_status accepts_dense(const twi_prepare *p)
{
    if (tw_shape_equal(p->inputs[0].shape, p->inputs[1].shape))
        return TW_OK;
    return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU takes labels of the logits' shape", p->op);
}

static tw_status run_dense(const twi_run *r)
{
    const twi_operand *logits = &r->input_operands[0];
    int64_t classes = logits->shape.dims[1], rows = classes ? logits->shape.dims[0] : 0;
    return TWI_LAUNCH(r, twi_cuda_cross_entropy(r->stream, logits->dtype, rows, classes, r->inputs[0], r->inputs[1],
                                                r->outputs[0], r->outputs[1]));
}

static tw_status prepare_loss(twi_prepare *p)
{
    float divisor = twi_attr_float(p->attrs, "divisor", 1);
    return twi_keep(p, &divisor, sizeof divisor);
}

static tw_status run_loss(const twi_run *r)
{
    const twi_operand *logits = &r->input_operands[0];
    return TWI_LAUNCH(r, twi_cuda_softmax_loss(r->stream, logits->dtype, r->output_operands[1].dtype,
                                               logits->shape.dims[0], logits->shape.dims[1], r->inputs[0],
                                               r->input_operands[1].dtype, r->inputs[1], r->inputs[2],
                                               *(const float *)r->state, r->outputs[0], r->outputs[1]));
}

static tw_status run_in_top(const twi_run *r)
{
    tw_shape shape = r->input_operands[0].shape;
    return TWI_LAUNCH(r, twi_cuda_in_top(r->stream, shape.dims[0], shape.dims[1], r->inputs[0],
                                         r->input_operands[1].dtype, r->inputs[1], r->inputs[2], r->outputs[0]));
}

const twi_kernel twi_cuda_softmax_kernels[] = {
    {"Softmax", "cuda", FLOATS, NULL, run_softmax},
    {"LogSoftmax", "cuda", FLOATS, NULL, run_log_softmax},
    {"SparseSoftmaxCrossEntropyWithLogits", "cuda", FLOATS, NULL, run_sparse},
    {"SoftmaxCrossEntropyWithLogits", "cuda", FLOATS, NULL, run_dense, .accepts = accepts_dense},
    {"_SoftmaxLoss", "cuda", FLOATS, prepare_loss, run_loss, twi_free},
    {"InTopKV2", "cuda", 0, NULL, run_in_top},
    {0},
};
