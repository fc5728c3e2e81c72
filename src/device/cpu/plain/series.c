/* series.c - stacks and TensorArrays: what loops keep for each other. Elements are copied in and out; where the next
 * run keeps as many, it takes no memory. */
#include "device/state/series.h"

#include "base/memory.h"
#include "tensor/tensor.h"

#include <string.h>

static tw_status series_of(const twi_run *r, twi_resource *resource, twi_series **series)
{
    *series = twi_series_of(resource);
    return *series ? TW_OK : twi_fail_memory(r->error, r->node);
}

static int64_t integer(const twi_run *r, int input)
{
    const void *data = r->inputs[input];
    return r->input_operands[input].dtype == TW_INT64 ? *(const int64_t *)data : *(const int32_t *)data;
}

static tw_status run_nothing(const twi_run *r)
{
    (void)r;
    return TW_OK;
}

/* ---- stacks --------------------------------------------------------------------------------------------------------
 */

static tw_status run_stack(const twi_run *r)
{
    twi_series *s;
    tw_status status = series_of(r, r->output_operands[0].resource, &s);
    if (status != TW_OK)
        return status;
    s->grows = true;
    return twi_series_reset(s, 0, r->error);
}

static tw_status prepare_push(twi_prepare *p)
{
    p->can_overwrite[1] = true;
    return TW_OK;
}

static tw_status run_push(const twi_run *r)
{
    twi_series *s;
    void *element;
    size_t bytes = r->input_operands[1].bytes;
    tw_status status = series_of(r, r->input_operands[0].resource, &s);
    if (status == TW_OK)
        status = twi_series_at(s, s->count, bytes, &element, r->error);
    if (status != TW_OK)
        return status;
    memcpy(element, r->inputs[1], bytes);
    if (r->outputs[0] != r->inputs[1])
        memcpy(r->outputs[0], r->inputs[1], bytes);
    return TW_OK;
}

static tw_status run_pop(const twi_run *r)
{
    twi_series *s;
    tw_status status = series_of(r, r->input_operands[0].resource, &s);
    if (status != TW_OK)
        return status;
    if (s->count == 0)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Stack[%s] is empty when calling Pop().", r->node);
    s->count--;
    memcpy(r->outputs[0], s->data + (size_t)s->count * s->bytes, r->output_operands[0].bytes);
    return TW_OK;
}

/* ---- arrays --------------------------------------------------------------------------------------------------------
 */

static tw_status prepare_array(twi_prepare *p)
{
    bool grows = twi_attr_bool(p->attrs, "dynamic_size", false);
    return twi_keep(p, &grows, sizeof grows);
}

static tw_status run_array(const twi_run *r)
{
    twi_series *s;
    tw_status status = series_of(r, r->output_operands[0].resource, &s);
    if (status != TW_OK)
        return status;
    s->grows = *(const bool *)r->state;
    *(float *)r->outputs[1] = 0;
    return twi_series_reset(s, integer(r, 0), r->error);
}

/* Asked for again, it is the one that is there. */
static tw_status run_gradient(const twi_run *r)
{
    twi_series *base, *s;
    tw_status status = series_of(r, r->input_operands[0].resource, &base);
    if (status == TW_OK)
        status = series_of(r, r->output_operands[0].resource, &s);
    if (status == TW_OK && s->made != base->made) {
        status = twi_series_reset(s, base->count, r->error);
        s->made = base->made;
    }
    if (status != TW_OK)
        return status;
    s->grows = base->grows;
    s->sums = true;
    *(float *)r->outputs[1] = *(const float *)r->inputs[1];
    return TW_OK;
}

static tw_status add(const twi_run *r, tw_dtype dtype, void *to, const void *from, size_t bytes)
{
#define ADD(type)                                                                                                      \
    for (size_t i = 0; i < bytes / sizeof(type); i++)                                                                  \
        ((type *)to)[i] += ((const type *)from)[i];                                                                    \
    return TW_OK
    switch (dtype) {
    case TW_FLOAT32:
        ADD(float);
    case TW_FLOAT64:
        ADD(double);
    case TW_INT32:
        ADD(int32_t);
    case TW_INT64:
        ADD(int64_t);
#undef ADD
    default:
        return twi_fail(r->error, TW_UNIMPLEMENTED, "a gradient of %s is written twice", tw_dtype_name(dtype));
    }
}

static tw_status write_element(const twi_run *r, twi_series *s, int64_t index, const void *value, size_t bytes)
{
    void *element;
    tw_status status = twi_series_at(s, index, bytes, &element, r->error);
    if (status == TW_OK && s->written[index] && s->sums)
        return add(r, r->input_operands[2].dtype, element, value, bytes);
    if (status == TW_OK && s->written[index])
        return twi_fail(r->error, TW_INVALID_ARGUMENT,
                        "Could not write to TensorArray index %lld because it has already been written to.",
                        (long long)index);
    if (status != TW_OK)
        return status;
    memcpy(element, value, bytes);
    s->written[index] = true;
    return TW_OK;
}

/* An element that nobody wrote is zeros. */
static tw_status read_element(const twi_run *r, twi_series *s, int64_t index, void *value, size_t bytes)
{
    void *element = NULL;
    bool grows = s->grows;
    s->grows = false;
    tw_status status = twi_series_at(s, index, bytes, &element, r->error);
    s->grows = grows;
    if (status != TW_OK)
        return status;
    if (s->written[index])
        memcpy(value, element, bytes);
    else
        memset(value, 0, bytes);
    return TW_OK;
}

static tw_status run_write(const twi_run *r)
{
    twi_series *s;
    tw_status status = series_of(r, r->input_operands[0].resource, &s);
    *(float *)r->outputs[0] = *(const float *)r->inputs[3];
    return status == TW_OK ? write_element(r, s, integer(r, 1), r->inputs[2], r->input_operands[2].bytes) : status;
}

static tw_status run_read(const twi_run *r)
{
    twi_series *s;
    tw_status status = series_of(r, r->input_operands[0].resource, &s);
    return status == TW_OK ? read_element(r, s, integer(r, 1), r->outputs[0], r->output_operands[0].bytes) : status;
}

static tw_status run_scatter(const twi_run *r)
{
    twi_series *s;
    int64_t count = r->input_operands[1].elements;
    size_t bytes = count ? r->input_operands[2].bytes / (size_t)count : 0;
    tw_status status = series_of(r, r->input_operands[0].resource, &s);
    *(float *)r->outputs[0] = *(const float *)r->inputs[3];
    for (int64_t i = 0; i < count && status == TW_OK; i++)
        status = write_element(r, s, ((const int32_t *)r->inputs[1])[i], (const char *)r->inputs[2] + (size_t)i * bytes,
                               bytes);
    return status;
}

static tw_status run_gather(const twi_run *r)
{
    twi_series *s;
    int64_t count = r->input_operands[1].elements;
    size_t bytes = count ? r->output_operands[0].bytes / (size_t)count : 0;
    tw_status status = series_of(r, r->input_operands[0].resource, &s);
    for (int64_t i = 0; i < count && status == TW_OK; i++)
        status =
            read_element(r, s, ((const int32_t *)r->inputs[1])[i], (char *)r->outputs[0] + (size_t)i * bytes, bytes);
    return status;
}

static tw_status run_size(const twi_run *r)
{
    twi_series *s;
    tw_status status = series_of(r, r->input_operands[0].resource, &s);
    *(int32_t *)r->outputs[0] = status == TW_OK ? (int32_t)s->count : 0;
    return status;
}

const twi_kernel twi_cpu_series_kernels[] = {
    {"StackV2", "plain", 0, NULL, run_stack},
    {"StackPushV2", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), prepare_push, run_push},
    {"StackPopV2", "plain", 0, NULL, run_pop},
    {"StackCloseV2", "plain", 0, NULL, run_nothing},
    {"TensorArrayV3", "plain", 0, prepare_array, run_array, twi_free},
    {"TensorArrayGradV3", "plain", 0, NULL, run_gradient},
    {"TensorArrayWriteV3", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), NULL, run_write},
    {"TensorArrayReadV3", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), NULL, run_read},
    {"TensorArrayScatterV3", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), NULL, run_scatter},
    {"TensorArrayGatherV3", "plain", TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL), NULL, run_gather},
    {"TensorArraySizeV3", "plain", 0, NULL, run_size},
    {"TensorArrayCloseV3", "plain", 0, NULL, run_nothing},
    {"_Series", "plain", 0, NULL, run_nothing},
    {0},
};
