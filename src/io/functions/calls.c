/* calls.c - a call becomes the nodes of its function, under its name. */
#include "io/functions/lowering.h"

#include <stdlib.h>
#include <string.h>

int twi_lower_argument(const twi_function_place *p, const char *name)
{
    for (size_t i = 0; p->function && i < p->function->signature->n_input_arg; i++)
        if (strcmp(p->function->signature->input_arg[i]->name, name) == 0)
            return (int)i;
    return -1;
}

int64_t twi_lower_length(const Twi__NodeDef *node, const twi_argument *argument)
{
    const Twi__AttrValue *value = argument->number_attr ? twi_lower_attr(node, argument->number_attr) : NULL;
    int64_t number = value && value->value_case == TWI__ATTR_VALUE__VALUE_I ? value->i : 1;
    if (argument->number_attr) /* what no node has is refused when it is built */
        return number < 0 ? 0 : number < INT32_MAX ? number : INT32_MAX;
    return argument->list_attr ? (int64_t)twi_lower_count_types(node, argument->list_attr) : 1;
}

const Twi__FunctionDef *twi_lower_function_as_op(twi_functions *f, const Twi__NodeDef *node)
{
    return twi_op_find(node->op) ? NULL : twi_map_get(&f->by_name, node->op);
}

/* The number of the node's output that the signature calls `name` and numbers from `index`. */
static int64_t output_number(twi_functions *f, const Twi__NodeDef *node, const char *name, int64_t index)
{
    const twi_op *op = twi_op_find(node->op);
    const Twi__FunctionDef *function = twi_lower_function_as_op(f, node);
    const twi_signature *signature = op ? twi_op_signature(op) : NULL;
    int64_t first = 0;
    for (size_t i = 0; function && i < function->signature->n_output_arg; i++)
        if (strcmp(function->signature->output_arg[i]->name, name) == 0)
            return (int64_t)i;
    if (!signature || index < 0 || index > INT32_MAX)
        return index; /* a call's outputs have one name */
    for (int i = 0; i < signature->num_outputs && strcmp(signature->outputs[i].name, name) != 0; i++)
        first += twi_lower_length(node, &signature->outputs[i]);
    return first + index;
}

/* An input as it is called in the graph; NULL: memory has run out. */
char *twi_lower_resolve(twi_functions *f, const twi_function_place *p, const char *input)
{
    bool control = input[0] == '^';
    if (!p->function)
        return (char *)input;
    int argument = twi_lower_argument(p, input + control);
    if (control && argument >= 0)
        return TWI_PRINT("^%.*s", (int)strcspn(p->arguments[argument], ":"), p->arguments[argument]);
    if (control)
        return TWI_PRINT("^%s%s", p->prefix, input + 1);
    if (argument >= 0)
        return p->arguments[argument];
    char *name = twi_arena_strdup(f->arena, input), *output = name ? strchr(name, ':') : NULL;
    char *index = output ? strchr(output + 1, ':') : NULL;
    if (!name)
        return NULL;
    if (output)
        *output++ = 0;
    if (index)
        *index++ = 0;
    const Twi__NodeDef *node = output ? twi_map_get(&p->nodes, name) : NULL;
    long long number = index ? atoll(index) : 0;
    if (node)
        number = output_number(f, node, output, number);
    return number ? TWI_PRINT("%s%s:%lld", p->prefix, name, number) : TWI_PRINT("%s%s", p->prefix, name);
}

const char *twi_lower_returned(const Twi__FunctionDef *function, size_t i)
{
    for (size_t k = 0; k < function->n_ret; k++)
        if (strcmp(function->ret[k]->key, function->signature->output_arg[i]->name) == 0)
            return function->ret[k]->value;
    return NULL;
}

tw_status twi_lower_inline(twi_functions *f, twi_function_place *p, char **results, char **controls)
{
    const Twi__FunctionDef *function = p->function;
    tw_status status = TW_OK;
    if (f->depth == TWI_MOST_CALLS)
        return twi_fail(f->error, TW_RESOURCE_EXHAUSTED, "more than %d calls of functions lie in each other",
                        TWI_MOST_CALLS);
    for (int i = 0; i < f->depth; i++)
        if (strcmp(f->stack[i], function->signature->name) == 0)
            return twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' calls itself", function->signature->name);
    f->stack[f->depth++] = function->signature->name;
    for (size_t i = 0; i < function->n_node_def; i++) {
        Twi__NodeDef *node = function->node_def[i];
        const char *name = TWI_PRINT("%s%s", p->prefix, node->name);
        if (!twi_map_put(&p->nodes, node->name, node) || !name || !twi_map_put(&f->names, name, node))
            TWI_LEAVE(twi_lower_fail_memory(f));
    }
    for (size_t i = 0; i < function->n_node_def; i++)
        TWI_TRY(twi_lower_node(f, p, function->node_def[i]));
    for (size_t i = 0; i < function->signature->n_output_arg; i++) {
        const char *value = twi_lower_returned(function, i);
        if (!value)
            TWI_LEAVE(twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' does not say what it gives as '%s'",
                               function->signature->name, function->signature->output_arg[i]->name));
        if (!(results[i] = twi_lower_resolve(f, p, value)))
            TWI_LEAVE(twi_lower_fail_memory(f));
    }
    for (size_t i = 0; i < function->n_control_ret; i++)
        if (!(controls[i] = TWI_PRINT("^%s", function->control_ret[i]->value)) ||
            !(controls[i] = twi_lower_resolve(f, p, controls[i])))
            TWI_LEAVE(twi_lower_fail_memory(f));
done:
    twi_map_free(&p->nodes);
    f->depth -= f->depth > 0;
    return status;
}

/* Whether one of the function's nodes would be called like a node of the graph, or of a function that is around it. */
static bool is_taken(twi_functions *f, const Twi__FunctionDef *function, const char *prefix)
{
    bool taken = false;
    for (size_t i = 0; i < function->n_node_def && !taken; i++) {
        const char *name = TWI_PRINT("%s%s", prefix, function->node_def[i]->name);
        taken = name && twi_map_get(&f->names, name);
    }
    return taken;
}

tw_status twi_lower_open(twi_functions *f, const Twi__FunctionDef *function, const char *prefix, const char *device,
                         const char *pivot, size_t num_arguments, twi_function_call *c)
{
    if (!function) /* it was there when the node was looked at */
        return twi_lower_fail_memory(f);
    while (prefix && is_taken(f, function, prefix))
        prefix = TWI_PRINT("%sbody/", prefix);
    *c = (twi_function_call){.place = {.prefix = prefix, .device = device, .pivot = pivot, .function = function},
                             .num_results = function->signature->n_output_arg,
                             .num_controls = function->n_control_ret};
    c->place.arguments = twi_arena_alloc(f->arena, sizeof(char *) * (num_arguments + 1));
    c->results = twi_arena_alloc(f->arena, sizeof(char *) * (c->num_results + 1));
    c->controls = twi_arena_alloc(f->arena, sizeof(char *) * (c->num_controls + 1));
    if (!prefix || !c->place.arguments || !c->results || !c->controls)
        return twi_lower_fail_memory(f);
    if (function->signature->n_input_arg != num_arguments)
        return twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' takes %zu arguments and is given %zu",
                        function->signature->name, function->signature->n_input_arg, num_arguments);
    return TW_OK;
}

bool twi_lower_note_passed(twi_functions *f, const char *name, size_t i, char *value)
{
    char *key = TWI_PRINT("%s:%zu", name, i);
    return key && twi_map_put(&f->passed, key, value) && (i > 0 || twi_map_put(&f->passed, name, value));
}

tw_status twi_lower_add_outputs(twi_functions *f, const char *name, const char *device, const Twi__NodeDef *node,
                                const char *types, char **values, size_t count, char **controls, size_t num_controls)
{
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (count + num_controls + 1));
    twi_attr_value type = {.name = "T"};
    const Twi__AttrValue *list = twi_lower_attr(node, types);
    if (!inputs)
        return twi_lower_fail_memory(f);
    if (count != twi_lower_count_types(node, types))
        return twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s) has %zu outputs, and its function gives %zu",
                        name, node->op, twi_lower_count_types(node, types), count);
    for (size_t i = 0; i < count; i++)
        inputs[i] = values[i];
    for (size_t i = 0; i < count; i++)
        if (twi_lower_type(node, types, i) == TWI_PROTO_RESOURCE && !twi_lower_note_passed(f, name, i, values[i]))
            return twi_lower_fail_memory(f);
    for (size_t i = 0; i < num_controls; i++)
        inputs[count + i] = controls[i];
    if (count)
        type.value = *list;
    return twi_lower_add(f, count ? "IdentityN" : "NoOp", name, device, inputs, count + num_controls, &type, count > 0);
}

bool twi_lower_stays(const twi_function_place *p, const char *input)
{
    int argument = twi_lower_argument(p, input);
    return argument >= 0 && p->unchanging && p->unchanging[argument];
}

/* What the nodes of the function come after: all that the call itself does, in the place that it is in. */
tw_status twi_lower_open_called(twi_lowering *l, const Twi__FunctionDef *function, size_t first, twi_function_call *c)
{
    twi_functions *f = l->f;
    size_t num_arguments = l->num_data - first;
    const char *pivot = l->place->pivot, *prefix = TWI_PRINT("%s/", l->name);
    const char *const *controls = (const char *const *)l->inputs + l->num_data;
    size_t count = l->node->n_input - l->num_data;
    tw_status status = TW_OK;
    if (count == 1 && (!pivot || strcmp(pivot, controls[0]) == 0)) {
        pivot = controls[0];
    } else if (count) {
        const char **all = twi_arena_alloc(f->arena, sizeof *all * (count + 1)),
                   *begin = TWI_PRINT("%s/begin", l->name);
        if (!all || !begin || !(pivot = TWI_PRINT("^%s", begin)))
            return twi_lower_fail_memory(f);
        memcpy(all, controls, sizeof *all * count);
        all[count] = l->place->pivot;
        status = twi_lower_add(f, "NoOp", begin, l->device, all, count + 1, NULL, 0);
    }
    if (status == TW_OK)
        status = twi_lower_open(f, function, prefix, l->device, pivot, num_arguments, c);
    bool *unchanging = status == TW_OK ? twi_arena_alloc(f->arena, num_arguments + 1) : NULL;
    if (!unchanging)
        return status == TW_OK ? twi_lower_fail_memory(f) : status;
    for (size_t i = 0; i < num_arguments; i++) {
        c->place.arguments[i] = l->inputs[first + i];
        unchanging[i] = twi_lower_stays(l->place, l->node->input[first + i]);
    }
    c->place.unchanging = unchanging;
    c->place.waits = count > 0;
    return TW_OK;
}

tw_status twi_lower_call_function(twi_lowering *l, const Twi__FunctionDef *function, size_t first)
{
    twi_functions *f = l->f;
    twi_function_call c;
    tw_status status = twi_lower_open_called(l, function, first, &c);
    if (status == TW_OK)
        status = twi_lower_inline(f, &c.place, c.results, c.controls);
    if (status == TW_OK)
        status = twi_lower_add_outputs(f, l->name, l->device, l->node, "Tout", c.results, c.num_results, c.controls,
                                       c.num_controls);
    return status;
}

tw_status twi_lower_call(twi_lowering *l)
{
    return twi_lower_call_function(l, twi_lower_implementation(l->f, twi_lower_function(l->f, l->node, "f")), 0);
}

/* Inputs, and behind them the node's control inputs. */
static const char **with_controls(twi_lowering *l, const char *a, const char *b, size_t *count)
{
    const char **inputs = twi_arena_alloc(l->f->arena, sizeof *inputs * (l->node->n_input + 3));
    *count = 0;
    if (!inputs)
        return NULL;
    inputs[(*count)++] = a;
    if (b)
        inputs[(*count)++] = b;
    for (size_t i = l->num_data; i < l->node->n_input; i++)
        inputs[(*count)++] = l->inputs[i];
    return inputs;
}

tw_status twi_lower_add_with_controls(twi_lowering *l, const char *op, const char *name, const char *a, const char *b,
                                      const twi_attr_value *attrs, int num_attrs)
{
    size_t count;
    const char **inputs = with_controls(l, a, b, &count);
    return inputs ? twi_lower_add(l->f, op, name, l->device, inputs, count, attrs, num_attrs)
                  : twi_lower_fail_memory(l->f);
}
