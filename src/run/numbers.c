/* numbers.c - see numbers.h. Values are read as those of fetches are, so this serves every kind of device. */
#include "run/numbers.h"

#include "base/text.h"
#include "run/recording.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { READ_BYTES = 16384, SHOWN_INPUTS = 8 };

/* What is in a tensor. */
typedef struct range {
    double least, most;    /* of those that are finite */
    int64_t elements, bad; /* how many are not */
    int64_t first;         /* of these */
    double example;        /* which that is */
} range;

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static bool is_float(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
}

static double number_at(tw_dtype dtype, const void *memory, int64_t i)
{
    switch (dtype) {
    case TW_FLOAT32:
        return ((const float *)memory)[i];
    case TW_FLOAT64:
        return ((const double *)memory)[i];
    case TW_FLOAT16:
        return tw_half_to_float(((const uint16_t *)memory)[i]);
    default:
        return tw_bfloat16_to_float(((const uint16_t *)memory)[i]);
    }
}

static void take(range *r, double number)
{
    if (isfinite(number)) {
        r->least = fmin(r->least, number);
        r->most = fmax(r->most, number);
    } else if (r->bad++ == 0) {
        r->first = r->elements;
        r->example = number;
    }
    r->elements++;
}

static tw_status look_at_memory(twi_device *device, tw_dtype dtype, const char *memory, int64_t elements, range *r,
                                tw_error *error)
{
    _Alignas(64) char part[READ_BYTES];
    int64_t size = (int64_t)tw_dtype_size(dtype), most = READ_BYTES / size;
    tw_status status = TW_OK;
    for (int64_t at = 0; at < elements && status == TW_OK; at += most) {
        int64_t count = elements - at < most ? elements - at : most;
        status = device->ops->read(device, part, memory + at * size, (size_t)(count * size), error);
        for (int64_t i = 0; i < count && status == TW_OK; i++)
            take(r, number_at(dtype, part, i));
    }
    return status;
}

/* Of a handle, its variable. What has no numbers of these types has an empty range. */
static tw_status look(const twi_step *step, const twi_operand *operand, const void *memory, range *r)
{
    const twi_resource *v = operand->dtype == TW_RESOURCE ? operand->resource : NULL;
    *r = (range){.least = INFINITY, .most = -INFINITY};
    if (v && v->device && v->memory && is_float(v->dtype))
        return look_at_memory(v->device, v->dtype, v->memory, tw_shape_elements(v->shape), r, step->run.error);
    if (!is_float(operand->dtype) || operand->elements < 0 || !memory)
        return TW_OK;
    return look_at_memory(step->device, operand->dtype, memory, operand->elements, r, step->run.error);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static const char *word_of(double number)
{
    return isnan(number) ? "NaN" : number > 0 ? "infinity" : "-infinity";
}

static const char *name_of(const twi_node *node, int input, const twi_operand *operand)
{
    return operand->resource && operand->resource->device ? operand->resource->name : node->inputs[input].node->name;
}

static void tell_range(twi_text *text, const twi_node *node, int input, const twi_operand *operand, const range *r)
{
    twi_text_printf(text, "%s'%s' ", input ? ", " : "; it takes ", name_of(node, input, operand));
    if (r->elements == 0)
        twi_text_printf(text, "(%s)", tw_dtype_name(operand->dtype));
    else if (r->bad < r->elements)
        twi_text_printf(text, "from %.6g to %.6g", r->least, r->most);
    if (r->bad)
        twi_text_printf(text, "%s%lld of %lld not finite", r->bad < r->elements ? " but for " : "", (long long)r->bad,
                        (long long)r->elements);
}

/* `written` is an output's number, or where the step wrote a variable the name of that. */
static tw_status tell(const twi_step *step, const twi_node *node, const range *taken, const char *written,
                      const range *r)
{
    twi_text text = {0};
    bool given = false;
    for (int i = 0; i < step->run.num_inputs; i++)
        given |= taken[i].bad > 0;
    twi_text_printf(&text, "%s '%s' (%s, %s) %s %s: %lld of %lld values of %s, the first number %lld",
                    given ? "what is not finite comes from outside:" : "node", node->name, node->op->name,
                    twi_device_local_name(step->device), given ? "passes on" : "makes", word_of(r->example),
                    (long long)r->bad, (long long)r->elements, written, (long long)r->first);
    for (int i = 0; i < step->run.num_inputs && i < SHOWN_INPUTS; i++)
        tell_range(&text, node, i, &step->run.input_operands[i], &taken[i]);
    if (step->run.num_inputs > SHOWN_INPUTS)
        twi_text_printf(&text, " and %d more", step->run.num_inputs - SHOWN_INPUTS);
    tw_status status = text.failed ? twi_fail_memory(step->run.error, "looking at numbers")
                                   : twi_fail(step->run.error, TW_OUT_OF_RANGE, "%s", text.data);
    twi_text_free(&text);
    return status;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static tw_status look_at_inputs(const twi_step *step, range *taken)
{
    tw_status status = TW_OK;
    for (int i = 0; i < step->run.num_inputs && status == TW_OK; i++)
        status = look(step, &step->run.input_operands[i], step->run.inputs[i], &taken[i]);
    return status;
}

static tw_status look_at_results(const twi_step *step, const twi_node *node, const range *taken)
{
    const twi_run *run = &step->run;
    range made;
    char name[600];
    tw_status status = TW_OK;
    for (int i = 0; i < run->num_outputs && status == TW_OK; i++) {
        snprintf(name, sizeof name, "output %d", i);
        status = look(step, &run->output_operands[i], run->outputs[i], &made);
        if (status == TW_OK && made.bad)
            return tell(step, node, taken, name, &made);
    }
    for (int i = 0; i < run->num_inputs && status == TW_OK; i++) {
        const twi_operand *operand = &run->input_operands[i];
        if (operand->dtype != TW_RESOURCE ||
            taken[i].bad) /* who only reads such a variable has an output to show for it */
            continue;
        snprintf(name, sizeof name, "variable '%.500s'", name_of(node, i, operand));
        status = look(step, operand, run->inputs[i], &made);
        if (status == TW_OK && made.bad)
            return tell(step, node, taken, name, &made);
    }
    return status;
}

tw_status twi_run_checked_step(const twi_plan *plan, twi_step_id id)
{
    const twi_step *step = &plan->lists[id.device].steps[id.position];
    const twi_node *node = plan->lists[id.device].nodes[id.position];
    bool is_skipped = step->condition && step->condition->holds && !*step->condition->holds;
    if (is_skipped || (!step->kernel && !step->loop)) /* a copy makes nothing */
        return twi_run_step(step);
    range *taken = twi_alloc_array((size_t)step->run.num_inputs + 1, sizeof *taken);
    if (!taken)
        return twi_fail_memory(step->run.error, "looking at numbers");
    tw_status status = look_at_inputs(step, taken);
    if (status == TW_OK)
        status = twi_run_step(step);
    if (status == TW_OK)
        status = look_at_results(step, node, taken);
    twi_free(taken);
    return status;
}
