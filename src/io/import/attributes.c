/* attributes.c - what a file says of a node, as its op wants it. */
#include "io/import/import.h"

#include "base/memory.h"
#include "format/protobuf.h"
#include "format/tensor_proto.h"

#include <stdio.h>
#include <stdlib.h>

/* A string with a 0 behind it, as code expects that knows it to be text. */
static tw_status copy_string(twi_importer *m, ProtobufCBinaryData from, tw_string *to)
{
    char *data = twi_arena_alloc(&m->arena, from.len + 1);
    if (!data)
        return twi_import_fail_memory(m);
    if (from.len)
        memcpy(data, from.data, from.len);
    *to = (tw_string){data, from.len};
    return TW_OK;
}

static tw_status read_strings(twi_importer *m, const Twi__AttrValue__ListValue *list, twi_attr *attr)
{
    tw_string *strings = twi_arena_alloc(&m->arena, sizeof *strings * list->n_s);
    if (!strings)
        return twi_import_fail_memory(m);
    *attr = tw_attr_strings(attr->name, strings, (int)list->n_s);
    for (size_t i = 0; i < list->n_s; i++) {
        tw_status status = copy_string(m, list->s[i], &strings[i]);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static tw_status read_types(twi_importer *m, const Twi__AttrValue__ListValue *list, twi_attr *attr)
{
    tw_dtype *types = twi_arena_alloc(&m->arena, sizeof *types * list->n_type);
    if (!types)
        return twi_import_fail_memory(m);
    *attr = tw_attr_types(attr->name, types, (int)list->n_type);
    for (size_t i = 0; i < list->n_type; i++) {
        tw_status status = twi_dtype_from_proto(list->type[i], &types[i], m->error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static tw_status read_shapes(twi_importer *m, const Twi__AttrValue__ListValue *list, twi_attr *attr)
{
    tw_shape *shapes = twi_arena_alloc(&m->arena, sizeof *shapes * list->n_shape);
    if (!shapes)
        return twi_import_fail_memory(m);
    *attr = tw_attr_shapes(attr->name, shapes, (int)list->n_shape);
    for (size_t i = 0; i < list->n_shape; i++) {
        tw_status status = twi_shape_from_proto(list->shape[i], &shapes[i], m->error);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static bool is_list(tw_attr_kind kind)
{
    return kind >= TW_ATTR_INTS;
}

/* A list says what is in it unless it is empty: then it is of the kind that the op wants. */
static tw_status read_list(twi_importer *m, const Twi__AttrValue__ListValue *list, tw_attr_kind wanted, twi_attr *attr)
{
    size_t in_all =
        list->n_i + list->n_f + list->n_b + list->n_type + list->n_s + list->n_shape + list->n_tensor + list->n_func;
    if (in_all > INT_MAX)
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "a list has %zu values", in_all);
    if (in_all == 0) {
        *attr = (twi_attr){.name = attr->name, .kind = is_list(wanted) ? wanted : TW_ATTR_STRINGS};
        return TW_OK;
    }
    if (list->n_i == in_all) {
        *attr = tw_attr_ints(attr->name, list->i, (int)in_all);
        return TW_OK;
    }
    if (list->n_f == in_all) {
        *attr = tw_attr_floats(attr->name, list->f, (int)in_all);
        return TW_OK;
    }
    if (list->n_type == in_all)
        return read_types(m, list, attr);
    if (list->n_s == in_all)
        return read_strings(m, list, attr);
    if (list->n_shape == in_all)
        return read_shapes(m, list, attr);
    return twi_fail(m->error, TW_UNIMPLEMENTED,
                    "a list of values of several kinds, or of bools, tensors or functions, is not supported");
}

static tw_status read_tensor(twi_importer *m, const Twi__TensorProto *proto, twi_attr *attr)
{
    tw_tensor *tensor;
    tw_status status = twi_tensor_from_proto(proto, &m->spare_bytes, &tensor, m->error);
    if (status != TW_OK)
        return status;
    if (!twi_push(&m->tensors, tensor)) {
        tw_tensor_release(tensor);
        return twi_import_fail_memory(m);
    }
    *attr = tw_attr_tensor(attr->name, tensor);
    return TW_OK;
}

static tw_status read_place(twi_importer *m, const char *name, twi_attr *attr)
{
    char *place = twi_arena_printf(&m->arena, "%s%s", m->prefix, name);
    if (!place)
        return twi_import_fail_memory(m);
    *attr = tw_attr_string(attr->name, place);
    return TW_OK;
}

static tw_status read_attr(twi_importer *m, const Twi__AttrValue *value, tw_attr_kind wanted, twi_attr *attr)
{
    switch (value ? value->value_case : TWI__ATTR_VALUE__VALUE__NOT_SET) {
    case TWI__ATTR_VALUE__VALUE_LIST:
        return read_list(m, value->list, wanted, attr);
    case TWI__ATTR_VALUE__VALUE_S:
        attr->kind = TW_ATTR_STRING;
        return copy_string(m, value->s, &attr->s);
    case TWI__ATTR_VALUE__VALUE_I:
        *attr = tw_attr_int(attr->name, value->i);
        return TW_OK;
    case TWI__ATTR_VALUE__VALUE_F:
        *attr = tw_attr_float(attr->name, value->f);
        return TW_OK;
    case TWI__ATTR_VALUE__VALUE_B:
        *attr = tw_attr_bool(attr->name, value->b != 0);
        return TW_OK;
    case TWI__ATTR_VALUE__VALUE_TYPE:
        attr->kind = TW_ATTR_TYPE;
        return twi_dtype_from_proto(value->type, &attr->type, m->error);
    case TWI__ATTR_VALUE__VALUE_SHAPE:
        attr->kind = TW_ATTR_SHAPE;
        return twi_shape_from_proto(value->shape, &attr->shape, m->error);
    case TWI__ATTR_VALUE__VALUE_TENSOR:
        return read_tensor(m, value->tensor, attr);
    case TWI__ATTR_VALUE__VALUE_PLACEHOLDER: /* where a function is kept (functions.h) */
        if (m->functions && wanted == TW_ATTR_STRING)
            return read_place(m, value->placeholder, attr);
        /* fallthrough */
    case TWI__ATTR_VALUE__VALUE_FUNC:
        return twi_fail(m->error, TW_UNIMPLEMENTED, "functions are not supported");
    default:
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "it has no value");
    }
}

/* Newer writers know more attributes than we do. One that says what holds without it says nothing: it is off, as most
 * are by default, or has one of these values, or is a hint that changes no result. */
static bool says_nothing(const twi_attr *attr)
{
    /* Of MatMul: an input is a gradient. Of Equal and NotEqual: what shapes that do not fit give, which is refused. Of
     * FusedBatchNorm: how averages move, which has become nodes (functions/batch_norm.c), or is not asked for. */
    static const char *const hints[] = {"grad_a", "grad_b", "grad_x", "grad_y", "incompatible_shape_error",
                                        "exponential_avg_factor"};
    static const twi_attr usual[] = {
        {.name = "shape_type", .kind = TW_ATTR_TYPE, .type = TW_INT32},    /* ConcatOffset */
        {.name = "Tk", .kind = TW_ATTR_TYPE, .type = TW_INT32},            /* TopKV2 */
        {.name = "index_type", .kind = TW_ATTR_TYPE, .type = TW_INT32},    /* TopKV2 */
    };
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(attr->name, hints[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(attr->name, usual[i].name) == 0)
            return attr->kind == usual[i].kind && twi_attr_equal(attr, &usual[i]);
    switch (attr->kind) {
    case TW_ATTR_INT:
        return attr->i == 0;
    case TW_ATTR_FLOAT:
        return attr->f == 0;
    case TW_ATTR_BOOL:
        return !attr->b;
    case TW_ATTR_STRING:
        return attr->s.size == 0;
    default:
        return is_list(attr->kind) && attr->count == 0;
    }
}

/* "loc:@x" for a node of this file: it must be there, and may get a prefix. */
static tw_status read_class(twi_importer *m, twi_attr *attr)
{
    if (attr->kind != TW_ATTR_STRINGS)
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "it is not a list of strings");
    for (int i = 0; i < attr->count; i++) {
        tw_string *string = (tw_string *)&attr->strings[i];
        if (strncmp(string->data, "loc:@", 5) != 0)
            continue;
        const twi_import_item *beside = twi_map_get(&m->outside, string->data + 5);
        if (!beside && !(beside = twi_map_get(&m->places, string->data + 5)))
            return twi_fail(m->error, TW_INVALID_ARGUMENT, "node '%s' is not in the graph", string->data + 5);
        char *text = twi_arena_printf(&m->arena, "loc:@%s", beside->name);
        if (!text)
            return twi_import_fail_memory(m);
        *string = (tw_string){text, strlen(text)};
    }
    return TW_OK;
}

static const twi_attr_spec *find_spec(const twi_signature *signature, const char *name)
{
    for (int i = 0; i < signature->num_attrs; i++)
        if (strcmp(signature->attrs[i].name, name) == 0)
            return &signature->attrs[i];
    return NULL;
}

/* Of placeholders made before version 22, [] means that nothing is known, where the shape may be left out. */
static void reread_old_shape(const twi_importer *m, const twi_import_item *item, const twi_attr_spec *spec,
                             twi_attr *attr)
{
    int version = m->def->versions ? m->def->versions->producer : m->def->version;
    if (version < 22 && twi_op_is(item->op, TWI_PLACEHOLDER) && spec && spec->has_default &&
        attr->kind == TW_ATTR_SHAPE && attr->shape.rank == 0)
        attr->shape = TW_UNKNOWN_SHAPE;
}

tw_status twi_import_attrs(twi_importer *m, twi_import_item *item)
{
    const twi_signature *signature = twi_op_signature(item->op);
    item->attrs = twi_arena_alloc(&m->arena, sizeof *item->attrs * item->def->n_attr);
    if (!signature || !item->attrs)
        return twi_import_fail_memory(m);
    for (size_t i = 0; i < item->def->n_attr; i++) {
        const Twi__NodeDef__AttrEntry *entry = item->def->attr[i];
        const twi_attr_spec *spec = find_spec(signature, entry->key);
        twi_attr attr = {.name = entry->key};
        if (entry->key[0] == '_' && strcmp(entry->key, "_class") != 0)
            continue; /* marks of other runtimes, and "_output_shapes", which are inferred anew */
        tw_status status = read_attr(m, entry->value, spec ? spec->kind : 0, &attr);
        if (status == TW_OK && strcmp(entry->key, "_class") == 0)
            status = read_class(m, &attr);
        if (status != TW_OK) {
            twi_prefix(m->error, "attribute '%s'", entry->key);
            return status;
        }
        reread_old_shape(m, item, spec, &attr);
        if (!spec && entry->key[0] != '_' && !says_nothing(&attr))
            return twi_fail(m->error, TW_UNIMPLEMENTED, "attribute '%s' is not known, and is not off", entry->key);
        if (spec || entry->key[0] == '_')
            item->attrs[item->num_attrs++] = attr;
    }
    return TW_OK;
}
