/* typed.c - running float kernels on half and bfloat16. */
#include "device/cpu/plain/typed.h"

#include "device/cpu/vector/casts.h"

#include <string.h>

enum { MOST_OPERANDS = 20 }; /* inputs or outputs of a kernel that is widened */

static bool is_narrow(const twi_operand *operand)
{
    return operand->dtype == TW_FLOAT16 || operand->dtype == TW_BFLOAT16;
}

static size_t widened_size(const twi_operand *operand)
{
    return is_narrow(operand) && operand->elements > 0 ? ((size_t)operand->elements * sizeof(float) + 63) / 64 * 64 : 0;
}

size_t twi_widened_bytes(const twi_prepare *p)
{
    size_t bytes = 0;
    for (int i = 0; i < p->num_inputs; i++)
        bytes += widened_size(&p->inputs[i]);
    for (int i = 0; i < p->num_outputs; i++)
        bytes += widened_size(&p->outputs[i]);
    return bytes;
}

#define CONVERT(function, from_type, to_type, convert)                                                                 \
    static void function(const twi_run *r, int64_t count, const from_type *restrict from, to_type *restrict to)        \
    {                                                                                                                  \
        TWI_PARALLEL_ELEMENTS_LOOP(r, count)                                                                           \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = convert(from[i]);                                                                                  \
    }
CONVERT(widen_halves, uint16_t, float, twi_widen_half)
CONVERT(widen_bfloats, uint16_t, float, twi_widen_bfloat16)
CONVERT(narrow_to_halves, float, uint16_t, twi_narrow_float)
CONVERT(narrow_to_bfloats, float, uint16_t, twi_narrow_to_bfloat16)

static void widen(const twi_run *r, const twi_operand *operand, const uint16_t *from, float *to)
{
    (operand->dtype == TW_FLOAT16 ? widen_halves : widen_bfloats)(r, operand->elements, from, to);
}

static void narrow(const twi_run *r, const twi_operand *operand, const float *from, uint16_t *to)
{
    (operand->dtype == TW_FLOAT16 ? narrow_to_halves : narrow_to_bfloats)(r, operand->elements, from, to);
}

/* The operand that f sees. */
static twi_operand as_float(twi_operand operand)
{
    if (is_narrow(&operand)) {
        operand.dtype = TW_FLOAT32;
        operand.bytes = (size_t)operand.elements * sizeof(float);
        operand.value = NULL;
    }
    return operand;
}

/* Empty operands take nothing of a workspace that may not be there. */
static char *behind(char *place, const twi_operand *operand)
{
    size_t size = widened_size(operand);
    return size ? place + size : place;
}

tw_status twi_run_widened(const twi_run *r, tw_status (*f)(const twi_run *r))
{
    const void *inputs[MOST_OPERANDS];
    void *outputs[MOST_OPERANDS];
    twi_operand input_operands[MOST_OPERANDS], output_operands[MOST_OPERANDS];
    if (r->num_inputs > MOST_OPERANDS || r->num_outputs > MOST_OPERANDS)
        return twi_fail(r->error, TW_INTERNAL, "'%s' has too many operands to be widened", r->node);
    char *place = r->workspace;
    for (int i = 0; i < r->num_inputs; i++) {
        input_operands[i] = as_float(r->input_operands[i]);
        inputs[i] = r->inputs[i];
        if (is_narrow(&r->input_operands[i])) {
            inputs[i] = place;
            widen(r, &r->input_operands[i], r->inputs[i], (float *)(void *)place);
            place = behind(place, &r->input_operands[i]);
        }
    }
    for (int i = 0; i < r->num_outputs; i++) {
        output_operands[i] = as_float(r->output_operands[i]);
        outputs[i] = r->outputs[i];
        if (is_narrow(&r->output_operands[i])) {
            outputs[i] = place;
            place = behind(place, &r->output_operands[i]);
        }
    }
    twi_run inner = *r;
    inner.inputs = inputs;
    inner.outputs = outputs;
    inner.input_operands = input_operands;
    inner.output_operands = output_operands;
    inner.workspace = place;
    tw_status status = f(&inner);
    for (int i = 0; i < r->num_outputs && status == TW_OK; i++)
        if (is_narrow(&r->output_operands[i]))
            narrow(r, &r->output_operands[i], outputs[i], r->outputs[i]);
    return status;
}

void twi_clear(void *to, size_t bytes)
{
    if (bytes)
        memset(to, 0, bytes);
}

int twi_team_for(const twi_run *r, int64_t items, int64_t elements)
{
    return items > 1 && elements >= TWI_PARALLEL_ELEMENTS ? r->threads : 1;
}

tw_status twi_prepare_typed(twi_prepare *p)
{
    p->workspace = twi_widened_bytes(p);
    return TW_OK;
}

tw_status twi_prepare_elementwise(twi_prepare *p)
{
    for (int i = 0; i < p->num_inputs && i < 4; i++)
        p->can_overwrite[i] = true;
    return twi_prepare_typed(p);
}
