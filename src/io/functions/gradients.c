/* gradients.c - SymbolicGradient: the function that the library says gives it, or a place for it
 * (twi_function_gradient). */
#include "io/functions/lowering.h"

#include <string.h>

/* The function that the library says gives the gradient of this one; NULL: it says nothing. */
static const Twi__FunctionDef *registered_gradient(twi_functions *f, const Twi__FunctionDef *function)
{
    const Twi__FunctionDef *found = NULL;
    for (size_t i = 0; i < f->num_libraries && !found; i++)
        for (size_t k = 0; k < f->libraries[i].message->n_gradient && !found; k++) {
            const Twi__GradientDef *gradient = f->libraries[i].message->gradient[k];
            if (strcmp(gradient->function_name, function->signature->name) == 0)
                found = twi_map_get(&f->by_name, gradient->gradient_func);
        }
    return found;
}

/* The arguments as nodes of their own: what is given twice is two. The controls follow. */
static tw_status name_arguments(twi_lowering *l, size_t count, char **inputs, char **original)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    for (size_t i = 0; i < count && status == TW_OK; i++) {
        twi_attr_value type = twi_type_value("T", twi_lower_type(l->node, "Tin", i));
        if (type.value.type == TWI_PROTO_RESOURCE)
            return twi_fail(f->error, TW_UNIMPLEMENTED,
                            "node '%s' (%s): its input %zu is a handle, which has no gradient", l->name, l->node->op,
                            i);
        original[i] = l->node->input[i];
        inputs[i] = TWI_PRINT("%s/x_%zu", l->name, i);
        status = twi_lower_add(f, "Identity", inputs[i], l->device, (const char *const *)&l->inputs[i], 1, &type, 1);
    }
    for (size_t i = l->num_data; i < l->node->n_input; i++) {
        original[count + i - l->num_data] = l->node->input[i];
        inputs[count + i - l->num_data] = l->inputs[i];
    }
    return status;
}

static const char *control_on(twi_functions *f, const char *value)
{
    const char *colon = strrchr(value, ':');
    return TWI_PRINT("^%.*s", colon ? (int)(colon - value) : (int)strlen(value), value);
}

/* An IdentityN of the arguments (twi_function_gradient). Inputs: the function's arguments, then a gradient for each of
 * its results. */
tw_status twi_lower_gradient(twi_lowering *l)
{
    twi_functions *f = l->f;
    const Twi__FunctionDef *function = twi_lower_function(f, l->node, "f");
    if (!function) /* it was there when the node was looked at */
        return twi_lower_fail_memory(f);
    const Twi__FunctionDef *gradient = registered_gradient(f, function);
    size_t arguments = function->signature->n_input_arg, results = function->signature->n_output_arg;
    size_t controls = l->node->n_input - l->num_data, count = arguments + controls;
    if (gradient)
        return twi_lower_call_function(l, gradient, 0);
    if (l->num_data != arguments + results || twi_lower_count_types(l->node, "Tin") != l->num_data ||
        twi_lower_count_types(l->node, "Tout") != arguments || !arguments || !results)
        return twi_fail(f->error, TW_INVALID_ARGUMENT,
                        "node '%s' (%s) has %zu inputs and %zu outputs; its function takes %zu and gives %zu", l->name,
                        l->node->op, l->num_data, twi_lower_count_types(l->node, "Tout"), arguments, results);
    char **original = twi_arena_alloc(f->arena, sizeof *original * (count + 1));
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (count + 2 * results + 2));
    twi_function_gradient *noted = twi_arena_alloc(f->arena, sizeof *noted);
    Twi__NodeDef body = *l->node;
    twi_lowering within = *l;
    twi_function_call c;
    twi_attr_value types = twi_copied_value(l->node, "Tout");
    if (!original || !inputs || !noted)
        return twi_lower_fail_memory(f);
    tw_status status = name_arguments(l, arguments, (char **)inputs, original);
    body.input = original;
    body.n_input = count;
    within.node = &body;
    within.inputs = (char **)inputs;
    within.num_data = arguments;
    if (status == TW_OK)
        status = twi_lower_open_called(&within, function, 0, &c);
    if (status == TW_OK)
        status = twi_lower_inline(f, &c.place, c.results, c.controls);
    if (status != TW_OK)
        return status;
    *noted = (twi_function_gradient){(int)arguments, (int)controls, (int)results, c.results, l->inputs + arguments};
    for (size_t i = 0; i < results; i++) {
        inputs[count + 2 * i] = control_on(f, noted->ys[i]);
        inputs[count + 2 * i + 1] = control_on(f, noted->dys[i]);
        if (!inputs[count + 2 * i] || !inputs[count + 2 * i + 1])
            return twi_lower_fail_memory(f);
    }
    types.name = "T";
    status = twi_lower_add(f, "IdentityN", l->name, l->device, inputs, count + 2 * results, &types, 1);
    return status == TW_OK && !twi_map_put(&f->gradients, l->name, noted) ? twi_lower_fail_memory(f) : status;
}

const twi_function_gradient *twi_functions_gradient(const twi_functions *f, const char *name)
{
    return f ? twi_map_get(&f->gradients, name) : NULL;
}
