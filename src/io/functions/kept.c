/* kept.c - functions that a node calls while it runs are kept beside it (functions.h). */
#include "io/functions/lowering.h"

#include <string.h>

/* Where the node's captured values for the function begin among its inputs, and how many there are. */
static size_t find_captured(const Twi__NodeDef *node, const char *attr, size_t *first)
{
    const twi_op *op = twi_op_find(node->op);
    const twi_signature *signature = op ? twi_op_signature(op) : NULL;
    size_t length = strlen(attr);
    *first = 0;
    if (!signature)
        return 0;
    for (int i = 0; i < signature->num_inputs; i++) {
        const char *name = signature->inputs[i].name;
        bool own = strncmp(name, attr, length) == 0 && strcmp(name + length, "_other_arguments") == 0;
        size_t count = (size_t)twi_lower_length(node, &signature->inputs[i]);
        if (own || strcmp(name, "other_arguments") == 0)
            return count;
        *first += count;
    }
    return 0;
}

/* Whether the node takes texts where it takes that argument. */
static bool takes_text(const Twi__NodeDef *node, const char *argument)
{
    const twi_op *op = twi_op_find(node->op);
    const twi_signature *signature = op ? twi_op_signature(op) : NULL;
    size_t end = 0;
    if (!signature)
        return false;
    for (int i = 0; i < signature->num_inputs; i++) {
        size_t first = end;
        end += (size_t)twi_lower_length(node, &signature->inputs[i]);
        for (size_t k = first; k < end && k < node->n_input; k++)
            if (strcmp(node->input[k], argument) == 0 &&
                twi_signature_wants_text(signature, signature->inputs[i].type_attr))
                return true;
    }
    return false;
}

/* The type of an argument that TensorFlow calls a variant: text where it is a sparse or ragged tensor. */
static int32_t type_of_argument(const Twi__FunctionDef *function, size_t i)
{
    const Twi__FunctionDef__ArgDef *argument = function->signature->input_arg[i];
    for (size_t k = 0; k < function->n_node_def && argument->type == TWI_PROTO_VARIANT; k++)
        if (takes_text(function->node_def[k], argument->name))
            return TW_STRING;
    return argument->type;
}

/* Arguments of the function: TowerArgument nodes, but for captured resources. */
static tw_status add_arguments(twi_functions *f, const Twi__NodeDef *node, char **inputs, const char *attr,
                               twi_function_call *c)
{
    const Twi__FunctionDef *function = c->place.function;
    size_t count = function->signature->n_input_arg, first, captured = find_captured(node, attr, &first);
    tw_status status = TW_OK;
    if (captured > count || first + captured > node->n_input)
        return twi_fail(f->error, TW_INVALID_ARGUMENT,
                        "function '%s' takes %zu arguments, of which node '%s' captures %zu", function->signature->name,
                        count, node->name, captured);
    for (size_t i = 0; i < count && status == TW_OK; i++) {
        int32_t type = type_of_argument(function, i);
        twi_attr_value value = twi_type_value("T", type);
        c->place.arguments[i] = type == TWI_PROTO_RESOURCE && i + captured >= count
                                    ? inputs[first + (i + captured - count)]
                                    : TWI_PRINT("%sarg/%zu", c->place.prefix, i);
        if (type != TWI_PROTO_RESOURCE)
            status = twi_lower_add(f, type == TWI_PROTO_VARIANT ? "TowerVariant" : "TowerArgument",
                                   c->place.arguments[i], c->place.device, NULL, 0, &value, type != TWI_PROTO_VARIANT);
        else if (i + captured < count)
            status = twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' takes a resource that is not captured",
                              function->signature->name);
    }
    return status;
}

/* What it gives, under its name. */
tw_status twi_lower_add_given(twi_functions *f, const char *name, const twi_function_call *c)
{
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (c->num_results + c->num_controls + 1));
    Twi__AttrValue__ListValue list = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    list.n_type = c->num_results;
    list.type = twi_arena_alloc(f->arena, sizeof *list.type * (c->num_results + 1));
    if (!inputs || !list.type)
        return twi_lower_fail_memory(f);
    for (size_t i = 0; i < c->num_results; i++) {
        list.type[i] = c->place.function->signature->output_arg[i]->type;
        inputs[i] = c->results[i];
    }
    for (size_t i = 0; i < c->num_controls; i++)
        inputs[c->num_results + i] = c->controls[i];
    twi_attr_value types = twi_list_value(f, "T", &list);
    return types.value.list ? twi_lower_add(f, c->num_results ? "IdentityN" : "NoOp", name, c->place.device, inputs,
                                            c->num_results + c->num_controls, &types, c->num_results > 0)
                            : twi_lower_fail_memory(f);
}

/* A node whose op is the function itself, and whose device is that of all of it, as in TensorFlow. */
tw_status twi_lower_named(twi_lowering *l)
{
    twi_functions *f = l->f;
    const Twi__FunctionDef *function = twi_lower_implementation(f, twi_lower_function_as_op(f, l->node));
    twi_function_call c;
    tw_status status = twi_lower_open_called(l, function, 0, &c);
    c.place.is_alone = true;
    if (status == TW_OK)
        status = twi_lower_inline(f, &c.place, c.results, c.controls);
    for (size_t i = 0; i < c.num_results && status == TW_OK; i++)
        if (function->signature->output_arg[i]->type == TWI_PROTO_RESOURCE &&
            !twi_lower_note_passed(f, l->name, i, c.results[i]))
            status = twi_lower_fail_memory(f);
    return status == TW_OK ? twi_lower_add_given(f, l->name, &c) : status;
}

/* A data set's function runs on the host, where no node asks for more. */
static tw_status keep_function(twi_functions *f, const Twi__NodeDef *node, const Twi__FunctionDef *function,
                               const char *name, const char *attr, char **inputs)
{
    const char *at = TWI_PRINT("%s/%s", name, attr);
    twi_function_call c;
    tw_status status = twi_lower_open(f, function, TWI_PRINT("%s/%s/", name, attr), "/device:CPU:0", NULL,
                                      function->signature->n_input_arg, &c);
    if (status == TW_OK && !at)
        status = twi_lower_fail_memory(f);
    if (status == TW_OK)
        status = add_arguments(f, node, inputs, attr, &c);
    if (status == TW_OK)
        status = twi_lower_inline(f, &c.place, c.results, c.controls);
    return status == TW_OK ? twi_lower_add_given(f, at, &c) : status;
}

/* Keeps all that the node calls. In its attributes the function's place takes the function's: as a placeholder, which
 * files have in libraries alone. */
tw_status twi_lower_keep_functions(twi_functions *f, Twi__NodeDef *node, char **inputs)
{
    tw_status status = TW_OK;
    for (size_t i = 0; i < node->n_attr && twi_op_find(node->op) && status == TW_OK; i++) {
        const char *attr = node->attr[i]->key;
        const Twi__FunctionDef *function = twi_lower_function(f, node, attr);
        if (!function || attr[0] == '_')
            continue;
        twi_attr_value place = twi_place_value(attr, TWI_PRINT("%s/%s", node->name, attr));
        size_t count = node->n_attr;
        node->n_attr = i;
        if (!place.value.placeholder || !twi_lower_add_attr(f, node, &place))
            status = twi_lower_fail_memory(f);
        node->n_attr = count;
        if (status == TW_OK)
            status = keep_function(f, node, function, node->name, attr, inputs);
    }
    return status;
}
