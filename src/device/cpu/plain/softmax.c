/* softmax.c - Softmax, LogSoftmax, the cross entropies and InTopK in plain C. */
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/plain/labels.h"
#include "device/cpu/plain/typed.h"

#include <string.h>
#include <tgmath.h>

/* A tensor [..., classes] as rows; none where there is nothing to compute. */
typedef struct rows {
    int64_t count, classes;
} rows;

static rows rows_of(const twi_operand *operand)
{
    int64_t classes = operand->shape.dims[operand->shape.rank - 1];
    return (rows){classes ? operand->elements / classes : 0, classes};
}

static int64_t integer_at(const twi_operand *operand, const void *values, int64_t i)
{
    return operand->dtype == TW_INT32 ? ((const int32_t *)values)[i] : ((const int64_t *)values)[i];
}

static tw_status fail_label(const twi_run *r, int64_t label, int64_t classes)
{
    const twi_operand *labels = &r->input_operands[1];
    twi_text text = {0};
    for (int64_t i = 0; i < labels->elements && text.size < TW_MESSAGE_SIZE; i++)
        twi_text_printf(&text, "%s%lld", i ? " " : "", (long long)integer_at(labels, r->inputs[1], i));
    twi_fail(r->error, TW_INVALID_ARGUMENT,
             "Received a label value of %lld which is outside the valid range of [0, %lld).  Label values: %s",
             (long long)label, (long long)classes, twi_text_string(&text));
    twi_text_free(&text);
    return TW_INVALID_ARGUMENT;
}

tw_status twi_check_labels(const twi_run *r, int64_t classes)
{
    const twi_operand *labels = &r->input_operands[1];
    for (int64_t i = 0; i < labels->elements; i++) {
        int64_t label = integer_at(labels, r->inputs[1], i);
        if (label < 0 || label >= classes)
            return fail_label(r, label, classes);
    }
    return TW_OK;
}

#define BODY "device/cpu/plain/softmax.inl"
#include "device/cpu/plain/for_floats.h"

TWI_WIDENED(softmax)
TWI_WIDENED(log_softmax)
TWI_WIDENED(cross_entropy)
TWI_WIDENED(sparse_cross_entropy)

/* ---- in top k ---------------------------------------------------------------------------------------------- */

/* A target that is no class or not finite is not in; nor is any target of a row with a class that is not finite. */
static bool in_top(const float *predictions, int64_t classes, int64_t target, int64_t k)
{
    int64_t above = 0;
    if (target < 0 || target >= classes)
        return false;
    for (int64_t c = 0; c < classes; c++) {
        if (!isfinite(predictions[c]))
            return false;
        above += predictions[c] > predictions[target];
    }
    return above < k;
}

static void find_in_top(const twi_run *r, int64_t k)
{
    tw_shape shape = r->input_operands[0].shape;
    const float *predictions = r->inputs[0];
    bool *precision = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < shape.dims[0]; row++)
        precision[row] = in_top(predictions + row * shape.dims[1], shape.dims[1],
                                integer_at(&r->input_operands[1], r->inputs[1], row), k);
}

static tw_status in_top_k(const twi_run *r)
{
    find_in_top(r, *(const int64_t *)r->state);
    return TW_OK;
}

static tw_status in_top_k_v2(const twi_run *r)
{
    find_in_top(r, integer_at(&r->input_operands[2], r->inputs[2], 0));
    return TW_OK;
}

/* State: k. */
static tw_status prepare_in_top_k(twi_prepare *p)
{
    int64_t *k = twi_alloc(sizeof *k);
    if (!k)
        return twi_fail_memory(p->error, "preparing InTopK");
    *k = twi_attr_int(p->attrs, "k", 1);
    p->state = k;
    return TW_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

const twi_kernel twi_cpu_softmax_kernels[] = {
    TWI_FLOAT_ROWS("Softmax", twi_prepare_elementwise, softmax, NULL),
    TWI_FLOAT_ROWS("LogSoftmax", twi_prepare_elementwise, log_softmax, NULL),
    TWI_FLOAT_ROWS("SoftmaxCrossEntropyWithLogits", twi_prepare_typed, cross_entropy, NULL),
    TWI_FLOAT_ROWS("SparseSoftmaxCrossEntropyWithLogits", twi_prepare_typed, sparse_cross_entropy, NULL),
    {"InTopK", "plain", 0, prepare_in_top_k, in_top_k, twi_free},
    {"InTopKV2", "plain", 0, NULL, in_top_k_v2, NULL},
    {0},
};
