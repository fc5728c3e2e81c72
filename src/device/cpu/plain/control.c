/* control.c - ops that do nothing, check a condition or tell values to the log. */
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/kernel.h"
#include "tensor/tensor.h"

#include <string.h>

static tw_status run_nothing(const twi_run *r)
{
    (void)r;
    return TW_OK;
}

/* "[1 2 3...]", at most `limit` elements (-1: all). */
static void summarize(twi_text *text, const twi_operand *operand, const void *data, int64_t limit)
{
    tw_tensor view = {.dtype = operand->dtype, .data = (void *)data};
    int64_t shown = limit < 0 || limit > operand->elements ? operand->elements : limit;
    twi_text_printf(text, "[");
    for (int64_t i = 0; i < shown; i++) {
        const char *gap = i ? " " : "";
        if (operand->dtype == TW_STRING) {
            const tw_string *string = (const tw_string *)data + i;
            twi_text_printf(text, "%s", gap);
            twi_text_append(text, string->data, string->size);
        } else if (operand->dtype == TW_INT64) {
            twi_text_printf(text, "%s%lld", gap, (long long)((const int64_t *)data)[i]);
        } else if (tw_dtype_is_complex(operand->dtype)) {
            twi_text_printf(text, "%s(%g,%g)", gap, tw_tensor_value(&view, i), tw_tensor_imaginary(&view, i));
        } else {
            twi_text_printf(text, "%s%g", gap, tw_tensor_value(&view, i));
        }
    }
    twi_text_printf(text, shown < operand->elements ? "...]" : "]");
}

typedef struct telling {
    int64_t summarize, left; /* how often Print will speak; -1: always */
    char message[256];
} telling;

static tw_status prepare_telling(twi_prepare *p)
{
    telling *t = twi_alloc(sizeof *t);
    if (!t)
        return twi_fail_memory(p->error, p->node);
    t->summarize = twi_attr_int(p->attrs, "summarize", 3);
    t->left = twi_attr_int(p->attrs, "first_n", -1);
    strncpy(t->message, twi_attr_string(p->attrs, "message", ""), sizeof t->message - 1);
    p->state = t;
    return TW_OK;
}

static tw_status run_assert(const twi_run *r)
{
    if (*(const uint8_t *)r->inputs[0])
        return TW_OK;
    const telling *t = r->state;
    twi_text text = {0};
    for (int i = 1; i < r->num_inputs; i++) {
        twi_text_printf(&text, " ");
        summarize(&text, &r->input_operands[i], r->inputs[i], t->summarize);
    }
    twi_fail(r->error, TW_INVALID_ARGUMENT, "assertion failed:%s (%s)", twi_text_string(&text), r->node);
    twi_text_free(&text);
    return TW_INVALID_ARGUMENT;
}

static tw_status run_print(const twi_run *r)
{
    telling *t = r->state;
    if (r->outputs[0] != r->inputs[0])
        memcpy(r->outputs[0], r->inputs[0], r->input_operands[0].bytes);
    if (t->left == 0 || !twi_log_wants(TWI_LOG_INFO))
        return TW_OK;
    t->left -= t->left > 0;
    twi_text text = {0};
    for (int i = 1; i < r->num_inputs; i++)
        summarize(&text, &r->input_operands[i], r->inputs[i], t->summarize);
    twi_log(TWI_LOG_INFO, "%s%s", t->message, twi_text_string(&text));
    twi_text_free(&text);
    return TW_OK;
}

/* Where the text would go, and how it would end, is the log's affair. */
static tw_status run_print_text(const twi_run *r)
{
    const tw_string *text = r->inputs[0];
    twi_log(TWI_LOG_INFO, "%.*s", (int)text->size, text->data ? text->data : "");
    return TW_OK;
}

/* Rows that are never planned: their shape rule refuses (ops/control.c). */
static tw_status refuse_python(const twi_prepare *p)
{
    return twi_fail(p->error, TW_UNIMPLEMENTED, "'%s' calls a function of Python", p->node);
}

const twi_kernel twi_cpu_control_kernels[] = {
    {"NoOp", "plain", 0, NULL, run_nothing},
    {"ControlTrigger", "plain", 0, NULL, run_nothing},
    {"Assert", "plain", 0, prepare_telling, run_assert, twi_free},
    {"PrintV2", "plain", 0, NULL, run_print_text},
    {"PyFunc", "plain", 0, .accepts = refuse_python},
    {"PyFuncStateless", "plain", 0, .accepts = refuse_python},
    {"EagerPyFunc", "plain", 0, .accepts = refuse_python},
    {"Print", "plain", TWI_STORED_TYPES, prepare_telling, run_print, twi_free},
    {0},
};
