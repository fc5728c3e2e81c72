/* own_op.c - ops that a program registers: from what it says of one to a row, whose rules call its functions. The
 * kernel is in device/own.c. */
#include "graph/own_op.h"

#include "base/memory.h"
#include "base/sized.h"
#include "device/own.h"
#include "graph/graph.h"

#include <ctype.h>
#include <string.h>

enum { MOST_ARGUMENTS = 64 }; /* as match.c takes */

typedef struct registered {
    twi_op row; /* first */
    twi_own_op own;
    twi_signature signature;
    twi_arena arena; /* has all of this but what it is in */
} registered;

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static tw_status ask_for_shapes(twi_inference *c)
{
    const tw_op_functions *functions = &((const registered *)c->op)->own.functions;
    if (!functions->shape)
        return TW_OK;
    tw_op_node node = {c->op->name,     c->node,         NULL,          c->attrs->items, c->input_types, c->inputs,
                       c->output_types, c->attrs->count, c->num_inputs, c->num_outputs};
    tw_status status = functions->shape(functions->user, &node, c->outputs, c->error);
    for (int i = 0; i < c->num_outputs && status == TW_OK; i++)
        if (c->outputs[i].rank < -1 || c->outputs[i].rank > TW_MAX_RANK)
            status = twi_fail(c->error, TW_INVALID_ARGUMENT, "its output %d has %d dimensions, the most are %d", i,
                              c->outputs[i].rank, TW_MAX_RANK);
    return status;
}

static void ask_for_gradient(twi_gradient *g)
{
    const tw_op_functions *functions = &((const registered *)g->node->op)->own.functions;
    functions->gradient(functions->user, g->graph, g->node, g->dy, g->dx);
}

const twi_op *twi_own_row(const char *name)
{
    const twi_own_op *own = twi_own_find(name);
    return own ? own->op : NULL;
}

const twi_signature *twi_own_signature(const twi_op *op)
{
    return op->shape == ask_for_shapes ? &((const registered *)op)->signature : NULL;
}

/* ---- what is said of it ----------------------------------------------------------------------------------------- */

static bool is_name(const char *text)
{
    bool is = text && isalpha((unsigned char)*text);
    for (; is && *text; text++)
        is = isalnum((unsigned char)*text) || strchr("_.>/", *text);
    return is;
}

static const tw_op_attr *find_attr(const tw_op_info *op, const char *name)
{
    for (int i = 0; i < op->num_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return &op->attrs[i];
    return NULL;
}

/* An attribute that an argument names must be there, of that kind. NULL names none. */
static tw_status check_named(const tw_op_info *op, const tw_op_argument *a, const char *named, tw_attr_kind kind,
                             const char *what, tw_error *error)
{
    const tw_op_attr *attr = named ? find_attr(op, named) : NULL;
    if (!named || (attr && attr->kind == kind))
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "op '%s': '%s' of '%s' is no attribute that is %s", op->name, named,
                    a->name, what);
}

static tw_status check_argument(const tw_op_info *op, const tw_op_argument *a, tw_error *error)
{
    int types = (a->dtype != TW_INVALID_DTYPE) + (a->type_attr != NULL) + (a->types_attr != NULL);
    if (!is_name(a->name))
        return twi_fail(error, TW_INVALID_ARGUMENT, "op '%s': '%s' is no name of an input or output", op->name,
                        a->name ? a->name : "");
    if (types != 1 || (a->types_attr && a->number_attr) || (types && a->dtype && !tw_dtype_size(a->dtype)))
        return twi_fail(error, TW_INVALID_ARGUMENT, "op '%s': one thing says the type of '%s', found %d", op->name,
                        a->name, types);
    if (a->is_reference || a->dtype == TW_RESOURCE || a->dtype == TW_VARIANT)
        return twi_fail(error, TW_UNIMPLEMENTED, "op '%s': '%s' is a %s, which ops of one's own do not work on",
                        op->name, a->name, a->is_reference ? "reference" : tw_dtype_name(a->dtype));
    tw_status status = check_named(op, a, a->type_attr, TW_ATTR_TYPE, "a type", error);
    if (status == TW_OK)
        status = check_named(op, a, a->number_attr, TW_ATTR_INT, "a number", error);
    return status == TW_OK ? check_named(op, a, a->types_attr, TW_ATTR_TYPES, "a list of types", error) : status;
}

static tw_status check_arguments(const tw_op_info *op, const tw_op_argument *arguments, int count, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < count && status == TW_OK; i++)
        status = check_argument(op, &arguments[i], error);
    return status;
}

static tw_status check(const tw_op_info *op, tw_error *error)
{
    if (!is_name(op->name))
        return twi_fail(error, TW_INVALID_ARGUMENT, "'%s' is no name of an op", op->name ? op->name : "");
    if (op->num_inputs < 0 || op->num_outputs < 0 || op->num_attrs < 0 || (op->num_inputs && !op->inputs) ||
        (op->num_outputs && !op->outputs) || (op->num_attrs && !op->attrs))
        return twi_fail(error, TW_INVALID_ARGUMENT, "op '%s': a list is missing, or shorter than nothing", op->name);
    if (op->num_inputs > MOST_ARGUMENTS)
        return twi_fail(error, TW_INVALID_ARGUMENT, "op '%s' has %d inputs, at most %d can be told apart", op->name,
                        op->num_inputs, MOST_ARGUMENTS);
    for (int i = 0; i < op->num_attrs; i++) {
        const tw_op_attr *attr = &op->attrs[i];
        if (!is_name(attr->name) || find_attr(op, attr->name) != attr)
            return twi_fail(error, TW_INVALID_ARGUMENT, "op '%s': '%s' is no name of an attribute, or that of two",
                            op->name, attr->name ? attr->name : "");
        if (attr->is_optional && attr->initial.kind != attr->kind)
            return twi_fail(error, TW_INVALID_ARGUMENT, "op '%s': what attribute '%s' is at first is of another kind",
                            op->name, attr->name);
    }
    tw_status status = check_arguments(op, op->inputs, op->num_inputs, error);
    return status == TW_OK ? check_arguments(op, op->outputs, op->num_outputs, error) : status;
}

/* ---- the row ---------------------------------------------------------------------------------------------------- */

static const char *copy_text(twi_arena *arena, const char *text, bool *fits)
{
    const char *copy = text ? twi_arena_strdup(arena, text) : NULL;
    *fits = *fits && (copy || !text);
    return copy;
}

static twi_argument *copy_arguments(twi_arena *arena, const tw_op_argument *from, int count, bool *fits)
{
    twi_argument *arguments = twi_arena_alloc(arena, sizeof *arguments * ((size_t)count + 1));
    *fits = *fits && arguments;
    for (int i = 0; i < count && *fits; i++)
        arguments[i] = (twi_argument){.name = copy_text(arena, from[i].name, fits),
                                      .dtype = from[i].dtype,
                                      .type_attr = copy_text(arena, from[i].type_attr, fits),
                                      .number_attr = copy_text(arena, from[i].number_attr, fits),
                                      .list_attr = copy_text(arena, from[i].types_attr, fits)};
    return arguments;
}

/* "x:T, rest:N*float", as rows have them (op.h). */
static const char *text_of(twi_arena *arena, const tw_op_argument *arguments, int count, bool *fits)
{
    const char *text = "";
    for (int i = 0; i < count && text; i++) {
        const tw_op_argument *a = &arguments[i];
        text = twi_arena_printf(arena, "%s%s%s:%s%s%s", text, i ? ", " : "", a->name,
                                a->number_attr ? a->number_attr : "", a->number_attr ? "*" : "",
                                a->type_attr    ? a->type_attr
                                : a->types_attr ? a->types_attr
                                                : tw_dtype_name(a->dtype));
    }
    *fits = *fits && text;
    return text;
}

static void copy_attr(twi_arena *arena, const tw_op_attr *from, twi_attr_spec *to, bool *fits)
{
    const char **strings = twi_arena_alloc(arena, sizeof *strings * ((size_t)from->num_strings + 1));
    *to = (twi_attr_spec){.name = copy_text(arena, from->name, fits),
                          .kind = from->kind,
                          .has_default = from->is_optional,
                          .has_minimum = from->has_minimum,
                          .minimum = from->minimum,
                          .value = {.name = to->name, .kind = from->kind},
                          .allowed_strings = strings,
                          .num_allowed_strings = from->num_strings};
    *fits = *fits && strings;
    for (int i = 0; i < from->num_types; i++)
        to->allowed_types |= UINT64_C(1) << from->types[i];
    for (int i = 0; i < from->num_strings && *fits; i++)
        strings[i] = copy_text(arena, from->strings[i], fits);
    if (from->is_optional && *fits)
        *fits = twi_attr_copy_as(arena, to->name, &from->initial, &to->value);
    to->value.name = to->name;
}

static bool copy(registered *made, const tw_op_info *from)
{
    bool fits = true;
    twi_arena *arena = &made->arena;
    twi_signature *s = &made->signature;
    *s = (twi_signature){.inputs = copy_arguments(arena, from->inputs, from->num_inputs, &fits),
                         .outputs = copy_arguments(arena, from->outputs, from->num_outputs, &fits),
                         .attrs = twi_arena_alloc(arena, sizeof *s->attrs * ((size_t)from->num_attrs + 1)),
                         .num_inputs = from->num_inputs,
                         .num_outputs = from->num_outputs,
                         .num_attrs = from->num_attrs};
    fits = fits && s->attrs;
    for (int i = 0; i < from->num_attrs && fits; i++)
        copy_attr(arena, &from->attrs[i], &s->attrs[i], &fits);
    made->row = (twi_op){.name = copy_text(arena, from->name, &fits),
                         .inputs = text_of(arena, from->inputs, from->num_inputs, &fits),
                         .outputs = text_of(arena, from->outputs, from->num_outputs, &fits),
                         .attrs = "",
                         .shape = ask_for_shapes,
                         .gradient = made->own.functions.gradient ? ask_for_gradient
                                     : from->is_differentiable    ? twi_not_differentiable
                                                                  : NULL,
                         .flags = TWI_HOST_ONLY | TWI_MAKES_SHAPE | (from->is_stateful ? TWI_STATEFUL : 0) |
                                  (from->is_commutative ? TWI_COMMUTATIVE : 0)};
    made->own.name = made->row.name;
    made->own.op = &made->row;
    return fits;
}

tw_status tw_op_register(const tw_op_info *op, const tw_op_functions *functions, tw_error *error)
{
    TWI_NEED(op, "op", error);
    TWI_NEED(functions, "functions", error);
    tw_op_functions taken;
    registered *made = NULL;
    tw_status status;
    TWI_TRY(twi_sized(&taken, functions, TWI_SIZE(tw_op_functions, gradient), error));
    TWI_TRY(check(op, error));
    if (twi_op_find(op->name))
        TWI_LEAVE(twi_fail(error, TW_ALREADY_EXISTS, "there is an op '%s' already", op->name));
    if (!(made = twi_alloc(sizeof *made)))
        TWI_LEAVE(twi_fail_memory(error, "registering an op"));
    made->own.functions = taken;
    TWI_TRY(copy(made, op) ? TW_OK : twi_fail_memory(error, "registering an op"));
    TWI_TRY(twi_own_add(&made->own, error));
    return TW_OK;
done:
    if (made)
        twi_arena_free(&made->arena);
    twi_free(made);
    return status;
}
