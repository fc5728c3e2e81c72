/* nodes.c - the nodes that calls become, and what the attributes of a node say. */
#include "io/functions/lowering.h"

#include "format/tensor_proto.h"

#include <string.h>

tw_status twi_lower_fail_memory(const twi_functions *f)
{
    return twi_fail_memory(f->error, "inlining functions");
}

static twi_attr_value value_of(const char *name, Twi__AttrValue__ValueCase kind)
{
    twi_attr_value a = {.name = name};
    twi__attr_value__init(&a.value);
    a.value.value_case = kind;
    return a;
}

twi_attr_value twi_type_value(const char *name, int32_t type)
{
    twi_attr_value a = value_of(name, TWI__ATTR_VALUE__VALUE_TYPE);
    a.value.type = type;
    return a;
}

twi_attr_value twi_int_value(const char *name, int64_t i)
{
    twi_attr_value a = value_of(name, TWI__ATTR_VALUE__VALUE_I);
    a.value.i = i;
    return a;
}

twi_attr_value twi_bool_value(const char *name, bool b)
{
    twi_attr_value a = value_of(name, TWI__ATTR_VALUE__VALUE_B);
    a.value.b = b;
    return a;
}

twi_attr_value twi_text_value(const char *name, const char *text)
{
    twi_attr_value a = value_of(name, TWI__ATTR_VALUE__VALUE_S);
    a.value.s = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
    return a;
}

twi_attr_value twi_place_value(const char *name, char *place)
{
    twi_attr_value a = value_of(name, TWI__ATTR_VALUE__VALUE_PLACEHOLDER);
    a.value.placeholder = place;
    return a;
}

twi_attr_value twi_list_value(twi_functions *f, const char *name, const Twi__AttrValue__ListValue *list)
{
    twi_attr_value a = value_of(name, TWI__ATTR_VALUE__VALUE_LIST);
    a.value.list = twi_arena_copy(f->arena, list, sizeof *list);
    f->lacks_memory |= !a.value.list;
    return a;
}

twi_attr_value twi_copied_value(const Twi__NodeDef *node, const char *name)
{
    twi_attr_value a = value_of(name, TWI__ATTR_VALUE__VALUE__NOT_SET);
    const Twi__AttrValue *value = twi_lower_attr(node, name);
    if (value)
        a.value = *value;
    return a;
}

bool twi_lower_add_attr(twi_functions *f, Twi__NodeDef *node, const twi_attr_value *attr)
{
    Twi__NodeDef__AttrEntry *entry = twi_arena_alloc(f->arena, sizeof *entry);
    Twi__AttrValue *value = twi_arena_copy(f->arena, &attr->value, sizeof *value);
    if (!entry || !value)
        return false;
    twi__node_def__attr_entry__init(entry);
    entry->key = (char *)attr->name;
    entry->value = value;
    node->attr[node->n_attr++] = entry;
    return true;
}

tw_status twi_lower_add(twi_functions *f, const char *op, const char *name, const char *device,
                        const char *const *inputs, size_t num_inputs, const twi_attr_value *attrs, int num_attrs)
{
    Twi__NodeDef *node = twi_arena_alloc(f->arena, sizeof *node);
    if (f->made++ >= f->most)
        return twi_fail(f->error, TW_RESOURCE_EXHAUSTED, "calls of functions become more than %d nodes", f->most);
    if (!name || !node)
        return twi_lower_fail_memory(f);
    twi__node_def__init(node);
    node->name = (char *)name;
    node->op = (char *)op;
    node->device = (char *)device;
    node->input = twi_arena_alloc(f->arena, sizeof *node->input * (num_inputs + 1));
    node->attr = twi_arena_alloc(f->arena, sizeof *node->attr * (size_t)(num_attrs + 1));
    bool fits = node->input && node->attr;
    for (size_t i = 0; i < num_inputs && fits; i++)
        if (inputs[i])
            node->input[node->n_input++] = (char *)inputs[i];
    for (int i = 0; i < num_attrs && fits; i++)
        fits = twi_lower_add_attr(f, node, &attrs[i]);
    return fits && twi_push(&f->nodes, node) ? TW_OK : twi_lower_fail_memory(f);
}

tw_status twi_lower_add_const(twi_functions *f, const char *name, const char *device, const char *control,
                              tw_shape shape, const Twi__TensorProto *values)
{
    Twi__TensorProto *tensor = twi_arena_copy(f->arena, values, sizeof *tensor);
    twi_attr_value attrs[] = {twi_type_value("dtype", values->dtype), value_of("value", TWI__ATTR_VALUE__VALUE_TENSOR)};
    if (!tensor || !(tensor->tensor_shape = twi_shape_to_proto(f->arena, shape)))
        return twi_lower_fail_memory(f);
    attrs[1].value.tensor = tensor;
    return twi_lower_add(f, "Const", name, device, &control, 1, attrs, 2);
}

char *twi_lower_noted(twi_functions *f, char *name)
{
    f->lacks_memory |= !name;
    return name;
}

const Twi__AttrValue *twi_lower_attr(const Twi__NodeDef *node, const char *name)
{
    for (size_t i = 0; i < node->n_attr; i++)
        if (strcmp(node->attr[i]->key, name) == 0)
            return node->attr[i]->value;
    return NULL;
}

/* The name in a function's attribute, in the arena; NULL: it cannot be read, or memory has run out. */
const char *twi_lower_function_name(twi_arena *arena, const ProtobufCBinaryData *bytes, bool *lacks_memory)
{
    twi_proto proto;
    twi_proto_start(&proto, bytes->len);
    Twi__NameAttrList *list = twi__name_attr_list__unpack(&proto.allocator, bytes->len, bytes->data);
    const char *name = list ? twi_arena_strdup(arena, list->name) : NULL;
    *lacks_memory |= proto.out_of_memory || (list && !name);
    if (list)
        twi__name_attr_list__free_unpacked(list, &proto.allocator);
    return name;
}

const Twi__FunctionDef *twi_lower_function_named(twi_functions *f, const ProtobufCBinaryData *bytes)
{
    const char *name = twi_lower_function_name(f->arena, bytes, &f->lacks_memory);
    return name ? twi_map_get(&f->by_name, name) : NULL;
}

const Twi__FunctionDef *twi_lower_function_at(twi_functions *f, const Twi__NodeDef *node, const char *attr,
                                              size_t number)
{
    const Twi__AttrValue *value = twi_lower_attr(node, attr);
    if (value && value->value_case == TWI__ATTR_VALUE__VALUE_FUNC && number == 0)
        return twi_lower_function_named(f, &value->func);
    if (value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST && number < value->list->n_func)
        return twi_lower_function_named(f, &value->list->func[number]);
    return NULL;
}

const Twi__FunctionDef *twi_lower_function(twi_functions *f, const Twi__NodeDef *node, const char *attr)
{
    return twi_lower_function_at(f, node, attr, 0);
}

size_t twi_lower_count_functions(twi_functions *f, const Twi__NodeDef *node, const char *attr)
{
    const Twi__AttrValue *value = twi_lower_attr(node, attr);
    size_t count = !value ? 0 : value->value_case == TWI__ATTR_VALUE__VALUE_LIST ? value->list->n_func : 1;
    for (size_t i = 0; i < count; i++)
        if (!twi_lower_function_at(f, node, attr, i))
            return 0;
    return count;
}

int32_t twi_lower_type(const Twi__NodeDef *node, const char *attr, size_t i)
{
    const Twi__AttrValue *value = twi_lower_attr(node, attr);
    bool has = value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST && i < value->list->n_type;
    return has ? value->list->type[i] : 0;
}

size_t twi_lower_count_types(const Twi__NodeDef *node, const char *attr)
{
    const Twi__AttrValue *value = twi_lower_attr(node, attr);
    return value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST ? value->list->n_type : 0;
}

size_t twi_lower_count_data(const Twi__NodeDef *node)
{
    size_t count = 0;
    while (count < node->n_input && node->input[count][0] != '^')
        count++;
    return count;
}
