/* while.c - While becomes the frame of a loop. */
#include "io/functions/lowering.h"

#include <string.h>

/* unchanging[i]: value i comes back as it went in. */
static tw_status add_entries(twi_lowering *l, const bool *unchanging)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    for (size_t i = 0; i < l->num_data && status == TW_OK; i++) {
        twi_attr_value type = twi_type_value("T", twi_lower_type(l->node, "T", i));
        twi_attr_value attrs[] = {type, twi_text_value("frame_name", l->name),
                                  twi_bool_value("is_constant", unchanging[i])};
        const char *merged[] = {TWI_PRINT("%s/enter_%zu", l->name, i), TWI_PRINT("%s/next_%zu", l->name, i)};
        const char *switched[] = {TWI_PRINT("%s/merge_%zu", l->name, i), TWI_PRINT("%s/cond", l->name)};
        twi_attr_value two[] = {type, twi_int_value("N", 2)};
        status = twi_lower_add_with_controls(l, "Enter", merged[0], l->inputs[i], NULL, attrs, 3);
        if (status == TW_OK && !unchanging[i])
            status = twi_lower_add(f, "Merge", switched[0], l->device, merged, 2, two, 2);
        if (status == TW_OK && !unchanging[i])
            status =
                twi_lower_add(f, "Switch", TWI_PRINT("%s/switch_%zu", l->name, i), l->device, switched, 2, &type, 1);
    }
    return status;
}

static tw_status inline_part(twi_lowering *l, const char *attr, const bool *unchanging, const char *pivot,
                             const char *changing, twi_function_call *c)
{
    twi_functions *f = l->f;
    tw_status status = twi_lower_open(f, twi_lower_function(f, l->node, attr), TWI_PRINT("%s/%s/", l->name, attr),
                                      l->device, pivot, l->num_data, c);
    c->place.unchanging = unchanging;
    for (size_t i = 0; i < l->num_data && status == TW_OK; i++)
        if (!(c->place.arguments[i] =
                  unchanging[i] ? TWI_PRINT("%s/enter_%zu", l->name, i) : TWI_PRINT(changing, l->name, i)))
            status = twi_lower_fail_memory(f);
    return status == TW_OK ? twi_lower_inline(f, &c->place, c->results, c->controls) : status;
}

/* The ways back, of which the first waits for all that a round does besides. */
static tw_status add_ways_back(twi_lowering *l, const bool *unchanging, const twi_function_call *body, char **outputs)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    bool waits = true;
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (body->num_controls + 1));
    for (size_t i = 0; i < body->num_controls && inputs; i++)
        inputs[i + 1] = body->controls[i];
    for (size_t i = 0; i < l->num_data && status == TW_OK; i++) {
        twi_attr_value type = twi_type_value("T", twi_lower_type(l->node, "T", i));
        const char *out = TWI_PRINT("%s/switch_%zu", l->name, i);
        outputs[i] = unchanging[i] ? l->inputs[i] : TWI_PRINT("%s/exit_%zu", l->name, i);
        if (!inputs || !out || !outputs[i])
            return twi_lower_fail_memory(f);
        inputs[0] = body->results[i];
        if (!unchanging[i])
            status = twi_lower_add(f, "NextIteration", TWI_PRINT("%s/next_%zu", l->name, i), l->device, inputs,
                                   waits ? body->num_controls + 1 : 1, &type, 1);
        waits = waits && unchanging[i];
        if (status == TW_OK && !unchanging[i])
            status = twi_lower_add(f, "Exit", outputs[i], l->device, &out, 1, &type, 1);
    }
    return status;
}

tw_status twi_lower_while(twi_lowering *l)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    const Twi__FunctionDef *function = twi_lower_function(f, l->node, "body");
    bool *unchanging = twi_arena_alloc(f->arena, l->num_data + 1);
    char **outputs = twi_arena_alloc(f->arena, sizeof *outputs * (l->num_data + 1));
    size_t first = 0;
    twi_function_call test, body;
    if (!function || !unchanging || !outputs)
        return twi_lower_fail_memory(f);
    for (size_t i = 0; i < l->num_data && i < function->signature->n_output_arg && i < function->signature->n_input_arg;
         i++) {
        const char *value = twi_lower_returned(function, i);
        unchanging[i] = value && strcmp(value, function->signature->input_arg[i]->name) == 0;
    }
    while (first < l->num_data && unchanging[first])
        first++;
    if (first == l->num_data || function->signature->n_output_arg != l->num_data)
        return twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s): no value changes from round to round", l->name,
                        l->node->op);
    TWI_TRY(add_entries(l, unchanging));
    TWI_TRY(inline_part(l, "cond", unchanging, TWI_PRINT("^%s/merge_%zu", l->name, first), "%s/merge_%zu", &test));
    if (test.num_results != 1)
        TWI_LEAVE(twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s): its condition gives %zu values", l->name,
                           l->node->op, test.num_results));
    TWI_TRY(twi_lower_add(f, "LoopCond", TWI_PRINT("%s/cond", l->name), l->device, (const char *const *)test.results, 1,
                          NULL, 0));
    twi_attr_value type = twi_type_value("T", twi_lower_type(l->node, "T", first));
    const char *pivot = TWI_PRINT("%s/switch_%zu:1", l->name, first);
    TWI_TRY(twi_lower_add(f, "Identity", TWI_PRINT("%s/body", l->name), l->device, &pivot, 1, &type, 1));
    TWI_TRY(inline_part(l, "body", unchanging, TWI_PRINT("^%s/body", l->name), "%s/switch_%zu:1", &body));
    TWI_TRY(add_ways_back(l, unchanging, &body, outputs));
    for (size_t i = 0; i < l->num_data; i++)
        if (unchanging[i] && !twi_lower_note_passed(f, l->name, i, l->inputs[i]))
            TWI_LEAVE(twi_lower_fail_memory(f));
    TWI_TRY(twi_lower_add_outputs(f, l->name, l->device, l->node, "T", outputs, l->num_data, NULL, 0));
done:
    return status;
}
