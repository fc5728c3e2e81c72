/* softmax.c - Softmax, LogSoftmax and SparseSoftmaxCrossEntropyWithLogits of many classes on our own loops (rows
 * "vector"). Few classes are the plain kernels', whose numbers those of a network of ten classes have always been. */
#include "base/memory.h"
#include "device/cpu/plain/labels.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

enum { LEAST_CLASSES = 64 };

#define TYPES TWI_TYPE(TW_FLOAT32)

static tw_status prepare(twi_prepare *p)
{
    const twi_operand *logits = &p->inputs[0];
    int64_t classes = logits->shape.rank > 0 ? logits->shape.dims[logits->shape.rank - 1] : 0;
    if (classes < LEAST_CLASSES || logits->elements == 0)
        return TW_UNIMPLEMENTED;
    twi_softmax_job job = {.rows = logits->elements / classes, .classes = classes};
    return twi_keep(p, &job, sizeof job);
}

/* Softmax (logits) */
static tw_status softmax_prepare(twi_prepare *p)
{
    p->can_overwrite[0] = true;
    return prepare(p);
}

static tw_status softmax_run(const twi_run *r)
{
    twi_softmax_job job = *(const twi_softmax_job *)r->state;
    job.logits = r->inputs[0];
    job.output = r->outputs[0];
    twi_team_run(r->threads, twi_loops_best()->softmax, &job, job.rows);
    return TW_OK;
}

/* LogSoftmax (logits) */
static tw_status log_softmax_prepare(twi_prepare *p)
{
    tw_status status = prepare(p);
    if (status == TW_OK)
        ((twi_softmax_job *)p->state)->logarithm = true;
    return status;
}

/* SparseSoftmaxCrossEntropyWithLogits (features, labels) -> loss, backprop */
static tw_status loss_run(const twi_run *r)
{
    twi_softmax_job job = *(const twi_softmax_job *)r->state;
    tw_status status = twi_check_labels(r, job.classes);
    if (status != TW_OK)
        return status;
    job.logits = r->inputs[0];
    job.labels = r->inputs[1];
    job.wide_labels = r->input_operands[1].dtype == TW_INT64;
    job.loss = r->outputs[0];
    job.output = r->outputs[1];
    twi_team_run(r->threads, twi_loops_best()->softmax, &job, job.rows);
    return TW_OK;
}

const twi_kernel twi_vector_softmax_kernels[] = {
    {"Softmax", "vector", TYPES, softmax_prepare, softmax_run, twi_free},
    {"LogSoftmax", "vector", TYPES, log_softmax_prepare, softmax_run, twi_free},
    {"SparseSoftmaxCrossEntropyWithLogits", "vector", TYPES, prepare, loss_run, twi_free},
    {0},
};
