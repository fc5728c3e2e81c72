/* match.c - see match.h. */
#include "graph/match.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ITEMS = 65535 /* of a list of inputs or outputs */ };

static twi_attr *value_of(const twi_call *d, const char *name)
{
    for (int i = 0; i < d->signature->num_attrs; i++)
        if (strcmp(d->signature->attrs[i].name, name) == 0)
            return &d->values[i];
    return NULL;
}

static tw_status fail(const twi_call *d, const char *format, ...) TW_PRINTF(2, 3);
static tw_status fail(const twi_call *d, const char *format, ...)
{
    char text[TW_MESSAGE_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return twi_fail(d->error, TW_INVALID_ARGUMENT, "%s '%s': %s", d->op->name, d->node, text);
}

static const char *kind_name(tw_attr_kind kind)
{
    static const char *const names[] = {"nothing", "an int",     "a float", "a bool",    "a type",        "a string",
                                        "a shape", "a tensor",   "ints",    "floats",    "types",         "strings",
                                        "shapes"};
    return names[kind];
}

/* What a pointer in it should lead to. */
static bool is_missing(const tw_attr *attr)
{
    if (attr->kind == TW_ATTR_TENSOR)
        return !attr->tensor;
    if (attr->kind == TW_ATTR_STRING)
        return !attr->s.data;
    return attr->kind >= TW_ATTR_INTS && attr->count > 0 && !attr->ints;
}

static tw_status take_given_attrs(twi_call *d)
{
    const tw_attr *attrs = d->attrs;
    for (int i = 0; i < d->num_attrs; i++) {
        if (!attrs[i].name || is_missing(&attrs[i]))
            return fail(d, "attribute '%s' is NULL", attrs[i].name ? attrs[i].name : "");
        if (attrs[i].name[0] == '_')
            continue; /* "_class" and other marks are not the op's own */
        twi_attr *value = value_of(d, attrs[i].name);
        if (!value)
            return fail(d, "has no attribute '%s'", attrs[i].name);
        tw_attr_kind wanted = d->signature->attrs[value - d->values].kind;
        if (attrs[i].kind != wanted)
            return fail(d, "attribute '%s' is %s, expected %s", attrs[i].name, kind_name(attrs[i].kind),
                              kind_name(wanted));
        *value = attrs[i];
    }
    return TW_OK;
}

/* Lengths of lists that were given as attributes (N of N*T) may come from anywhere. */
static tw_status check_length(const twi_call *d, const twi_argument *argument)
{
    const twi_attr *value = argument->number_attr ? value_of(d, argument->number_attr) : NULL;
    if (!value || !value->kind || (value->i >= 0 && value->i <= MOST_ITEMS))
        return TW_OK;
    return fail(d, "attribute '%s' is %lld, expected 0 to %d", argument->number_attr, (long long)value->i,
                      MOST_ITEMS);
}

static tw_status check_lengths(const twi_call *d)
{
    tw_status status = TW_OK;
    for (int i = 0; i < d->signature->num_inputs && status == TW_OK; i++)
        status = check_length(d, &d->signature->inputs[i]);
    for (int i = 0; i < d->signature->num_outputs && status == TW_OK; i++)
        status = check_length(d, &d->signature->outputs[i]);
    return status;
}

/* How many inputs an argument takes; -1: what the list's attribute would say is not given. */
static int given_length(const twi_call *d, const twi_argument *argument)
{
    if (!argument->number_attr && !argument->list_attr)
        return 1;
    const twi_attr *value = value_of(d, argument->number_attr ? argument->number_attr : argument->list_attr);
    return !value->kind ? -1 : argument->number_attr ? (int)value->i : value->count;
}

/* How many inputs argument i takes. Lists share what the single arguments leave over; an N that is not given yet is
 * found by division among the lists of that N. Where lists of several kinds are not given, nobody can tell what is
 * whose: each then takes all that is left, which is more than there is. */
static int argument_length(const twi_call *d, int i)
{
    const twi_argument *argument = &d->signature->inputs[i];
    int length = given_length(d, argument), left = d->num_inputs, sharing = 0;
    if (length >= 0)
        return length;
    for (int k = 0; k < d->signature->num_inputs; k++) {
        const twi_argument *other = &d->signature->inputs[k];
        bool same = argument->number_attr ? other->number_attr && !strcmp(other->number_attr, argument->number_attr)
                                          : k == i;
        int given = given_length(d, other);
        if (same)
            sharing++;
        else
            left -= given > 0 ? given : 0;
    }
    return left < 0 ? 0 : left / sharing;
}

static const char *name_of_source(const twi_call *d, int input)
{
    return d->sources ? d->sources[input].node->name : "a plan";
}

static tw_status match_input(twi_call *d, const twi_argument *argument, int index, tw_dtype *list_types, int at)
{
    tw_dtype dtype = d->input_types[index], wanted = argument->dtype;
    if (argument->list_attr) {
        const twi_attr *given = value_of(d, argument->list_attr);
        list_types[at] = wanted = given->kind ? given->types[at] : dtype;
    } else if (argument->type_attr) {
        twi_attr *type = value_of(d, argument->type_attr);
        if (!type->kind)
            *type = tw_attr_type(argument->type_attr, dtype);
        wanted = type->type;
    }
    if (dtype != wanted)
        return fail(d, "input %d ('%s', from '%s') is %s, expected %s", index, argument->name,
                          name_of_source(d, index), tw_dtype_name(dtype), tw_dtype_name(wanted));
    if (argument->is_ref && d->sources && !twi_output_is_reference(d->sources[index]))
        return fail(d, "input %d ('%s') is to be written, and '%s' is not a variable", index, argument->name,
                          name_of_source(d, index));
    return TW_OK;
}

static bool must_have_some(const twi_call *d, const twi_argument *argument)
{
    const twi_signature *s = d->signature;
    bool must = argument->number_attr && !(d->op->flags & TWI_REWRITTEN);
    for (int i = 0; i < s->num_attrs && must; i++)
        must =
            !s->attrs[i].has_minimum || s->attrs[i].minimum > 0 || strcmp(s->attrs[i].name, argument->number_attr) != 0;
    return must;
}

static tw_status match_inputs(twi_call *d)
{
    int lengths[64], total = 0;
    for (int i = 0; i < d->signature->num_inputs; i++) {
        total += lengths[i] = argument_length(d, i);
        if (lengths[i] < 1 && must_have_some(d, &d->signature->inputs[i]))
            return fail(d, "the list '%s' is empty", d->signature->inputs[i].name);
    }
    if (total != d->num_inputs)
        return fail(d, "got %d input%s, expected %d (%s)", d->num_inputs, d->num_inputs == 1 ? "" : "s", total,
                          d->op->inputs[0] ? d->op->inputs : "none");
    int index = 0;
    for (int i = 0; i < d->signature->num_inputs; i++) {
        const twi_argument *argument = &d->signature->inputs[i];
        tw_dtype *types = twi_arena_alloc(d->arena, sizeof *types * (size_t)lengths[i]);
        if (!types)
            return twi_fail_memory(d->error, "building a node");
        for (int at = 0; at < lengths[i]; at++, index++) {
            tw_status status = match_input(d, argument, index, types, at);
            if (status != TW_OK)
                return status;
        }
        if (argument->number_attr && !value_of(d, argument->number_attr)->kind)
            *value_of(d, argument->number_attr) = tw_attr_int(argument->number_attr, lengths[i]);
        if (argument->list_attr && !value_of(d, argument->list_attr)->kind)
            *value_of(d, argument->list_attr) = tw_attr_types(argument->list_attr, types, lengths[i]);
    }
    return TW_OK;
}

static tw_status check_type(const twi_call *d, const twi_attr_spec *spec, tw_dtype type)
{
    if (tw_dtype_size(type) == 0)
        return fail(d, "attribute '%s' holds %d, which is not the number of a type", spec->name, (int)type);
    if (!spec->allowed_types || spec->allowed_types >> type & 1)
        return TW_OK;
    fail(d, "attribute '%s' is %s, which this op does not take", spec->name, tw_dtype_name(type));
    return d->error ? d->error->status = TW_UNIMPLEMENTED : TW_UNIMPLEMENTED;
}

static tw_status check_string(const twi_call *d, const twi_attr_spec *spec, const char *string)
{
    for (int i = 0; i < spec->num_allowed_strings; i++)
        if (strcmp(spec->allowed_strings[i], string) == 0)
            return TW_OK;
    if (!spec->num_allowed_strings)
        return TW_OK;
    bool more = spec->num_allowed_strings > 1;
    return fail(d, "attribute '%s' is \"%s\", expected %s%s%s", spec->name, string, spec->allowed_strings[0],
                more ? " or " : "", more ? spec->allowed_strings[1] : "");
}

/* Of a list every item. */
static tw_status check_value(const twi_call *d, const twi_attr_spec *spec, const twi_attr *value)
{
    tw_status status = TW_OK;
    bool is_list = spec->kind == TW_ATTR_TYPES || spec->kind == TW_ATTR_STRINGS;
    for (int i = 0; i < (is_list ? value->count : 1) && status == TW_OK; i++)
        if (spec->kind == TW_ATTR_TYPE || spec->kind == TW_ATTR_TYPES)
            status = check_type(d, spec, is_list ? value->types[i] : value->type);
        else if (spec->kind == TW_ATTR_STRING || spec->kind == TW_ATTR_STRINGS)
            status = check_string(d, spec, is_list ? value->strings[i].data : value->s.data);
    return status;
}

static tw_status complete_attrs(twi_call *d)
{
    for (int i = 0; i < d->signature->num_attrs; i++) {
        const twi_attr_spec *spec = &d->signature->attrs[i];
        if (!d->values[i].kind) {
            if (!spec->has_default)
                return fail(d, "attribute '%s' (%s) is required", spec->name, kind_name(spec->kind));
            d->values[i] = spec->value;
        }
        tw_status status = check_value(d, spec, &d->values[i]);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static int output_length(const twi_call *d, const twi_argument *argument)
{
    if (argument->number_attr)
        return (int)value_of(d, argument->number_attr)->i;
    return argument->list_attr ? value_of(d, argument->list_attr)->count : 1;
}

static tw_status find_outputs(twi_call *d)
{
    for (int i = 0; i < d->signature->num_outputs; i++)
        d->num_outputs += output_length(d, &d->signature->outputs[i]);
    d->output_types = twi_arena_alloc(d->arena, sizeof *d->output_types * (size_t)d->num_outputs);
    if (!d->output_types)
        return twi_fail_memory(d->error, "building a node");
    for (int i = 0, index = 0; i < d->signature->num_outputs; i++) {
        const twi_argument *argument = &d->signature->outputs[i];
        for (int at = 0, length = output_length(d, argument); at < length; at++, index++)
            d->output_types[index] = argument->list_attr   ? value_of(d, argument->list_attr)->types[at]
                                     : argument->type_attr ? value_of(d, argument->type_attr)->type
                                                           : argument->dtype;
    }
    return TW_OK;
}

/* The op's own attributes in the order of its signature, then the marks ("_class"). */
static tw_status keep_attrs(twi_call *d)
{
    twi_attrs *kept = &d->completed;
    int marks = 0;
    for (int i = 0; i < d->num_attrs; i++)
        marks += d->attrs[i].name[0] == '_';
    kept->items = twi_arena_alloc(d->arena, sizeof *kept->items * (size_t)(d->signature->num_attrs + marks));
    bool fits = kept->items != NULL;
    for (int i = 0; i < d->signature->num_attrs && fits; i++)
        fits = twi_attr_copy_as(d->arena, d->signature->attrs[i].name, &d->values[i], &kept->items[kept->count]) &&
               ++kept->count;
    for (int i = 0; i < d->num_attrs && fits; i++)
        if (d->attrs[i].name[0] == '_')
            fits = twi_attr_copy(d->arena, &d->attrs[i], &kept->items[kept->count]) && ++kept->count;
    if (fits)
        return TW_OK;
    twi_attrs_release(kept);
    return twi_fail_memory(d->error, "building a node");
}

tw_status twi_match_call(twi_call *d)
{
    enum { FEW = 16 };
    tw_status status;
    twi_attr few[FEW] = {0};
    bool fits = d->signature->num_attrs <= FEW;
    d->values = fits ? few : twi_arena_alloc(d->arena, sizeof *d->values * (size_t)d->signature->num_attrs);
    if (!d->values)
        return twi_fail_memory(d->error, "building a node");
    TWI_TRY(take_given_attrs(d));
    TWI_TRY(check_lengths(d));
    TWI_TRY(match_inputs(d));
    TWI_TRY(complete_attrs(d));
    TWI_TRY(find_outputs(d));
    TWI_TRY(keep_attrs(d));
done:
    d->values = NULL;
    return status;
}
