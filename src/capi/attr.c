/* attr.c - attributes of operations: what they are, and their values in the caller's memory.
 * Never here:  setting attributes (build.c). */
#include "capi.h"

#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

/* ---- names ------------------------------------------------------------------------------------------------------ */

int TF_OperationGetNumAttrs(TF_Operation *oper)
{
    return num_attrs(oper);
}

int TF_OperationGetAttrNameLength(TF_Operation *oper, int i)
{
    const tw_attr *attr = attr_at(oper, i);
    return attr ? (int)strlen(attr->name) : -1;
}

void TF_OperationGetAttrName(TF_Operation *oper, int i, char *output, TF_Status *status)
{
    const tw_attr *attr = attr_at(oper, i);
    TF_SetStatus(status, TF_OK, "");
    if (attr)
        memcpy(output, attr->name, strlen(attr->name)); /* without an end, for which there may be no room */
    else
        set_status(status, TF_OUT_OF_RANGE, "Operation only has %d attributes, can't get the %dth", num_attrs(oper), i);
}

/* ---- what they are ---------------------------------------------------------------------------------------------- */

static const tw_attr *find_attr(TF_Operation *oper, const char *name, TF_Status *status)
{
    const tw_attr *attr = attr_of(oper, name);
    TF_SetStatus(status, TF_OK, "");
    if (!attr)
        set_status(status, TF_INVALID_ARGUMENT, "Operation '%s' has no attr named '%s'.", TF_OperationName(oper), name);
    return attr;
}

TF_AttrType type_of_kind(tw_attr_kind kind)
{
    switch (kind) {
    case TW_ATTR_STRING:
    case TW_ATTR_STRINGS:
        return TF_ATTR_STRING;
    case TW_ATTR_INT:
    case TW_ATTR_INTS:
        return TF_ATTR_INT;
    case TW_ATTR_FLOAT:
    case TW_ATTR_FLOATS:
        return TF_ATTR_FLOAT;
    case TW_ATTR_BOOL:
        return TF_ATTR_BOOL;
    case TW_ATTR_TYPE:
    case TW_ATTR_TYPES:
        return TF_ATTR_TYPE;
    case TW_ATTR_SHAPE:
    case TW_ATTR_SHAPES:
        return TF_ATTR_SHAPE;
    default:
        return TF_ATTR_TENSOR;
    }
}

bool is_list_kind(tw_attr_kind kind)
{
    return kind >= TW_ATTR_INTS;
}

static bool is_list(const tw_attr *attr)
{
    return attr->kind ? is_list_kind(attr->kind) : attr->count >= 0;
}

static int64_t total_size(const tw_attr *attr)
{
    int64_t total = 0;
    if (is_list(attr) && attr->count == 0)
        return -1;
    switch (attr->kind) {
    case TW_ATTR_STRING:
        return (int64_t)attr->s.size;
    case TW_ATTR_SHAPE:
        return attr->shape.rank;
    case TW_ATTR_STRINGS:
        for (int i = 0; i < attr->count; i++)
            total += (int64_t)attr->strings[i].size;
        return total;
    case TW_ATTR_SHAPES:
        for (int i = 0; i < attr->count; i++)
            total += attr->shapes[i].rank > 0 ? attr->shapes[i].rank : 0;
        return total;
    default:
        return -1;
    }
}

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation *oper, const char *attr_name, TF_Status *status)
{
    TF_AttrMetadata metadata = {0};
    const tw_attr *attr = find_attr(oper, attr_name, status);
    if (!attr)
        return metadata;
    metadata.is_list = is_list(attr);
    metadata.list_size = is_list(attr) ? attr->count : -1;
    metadata.type = attr->kind ? type_of_kind(attr->kind) : (TF_AttrType)attr->i;
    metadata.total_size = total_size(attr);
    return metadata;
}

/* The attribute if it is of that kind. */
static const tw_attr *find_kind(TF_Operation *oper, const char *name, tw_attr_kind kind, TF_Status *status)
{
    static const char *const words[] = {
        [TF_ATTR_STRING] = "string", [TF_ATTR_INT] = "int",     [TF_ATTR_FLOAT] = "float",   [TF_ATTR_BOOL] = "bool",
        [TF_ATTR_TYPE] = "type",     [TF_ATTR_SHAPE] = "shape", [TF_ATTR_TENSOR] = "tensor",
    };
    const tw_attr *attr = find_attr(oper, name, status);
    bool list = kind >= TW_ATTR_INTS;
    if (!attr || attr->kind == kind)
        return attr;
    if (list && !is_list(attr))
        set_status(status, TF_INVALID_ARGUMENT, "Value for '%s' is not a list.", name);
    else
        set_status(status, TF_INVALID_ARGUMENT, "Attribute '%s' is not a %s%s", name, list ? "list of " : "",
                   words[type_of_kind(kind)]);
    return NULL;
}

enum { NO_KIND = 0 }; /* a list of tensors */

/* The same for those getters whose errors are others in TensorFlow: what is not there is TF_NOT_FOUND. */
static const tw_attr *get_kind(TF_Operation *oper, const char *name, tw_attr_kind kind, TF_Status *status)
{
    static const char *const words[] = {
        [NO_KIND] = "list(tensor)",       [TW_ATTR_INT] = "int",          [TW_ATTR_FLOAT] = "float",
        [TW_ATTR_BOOL] = "bool",          [TW_ATTR_TYPE] = "type",        [TW_ATTR_STRING] = "string",
        [TW_ATTR_SHAPE] = "shape",        [TW_ATTR_TENSOR] = "tensor",    [TW_ATTR_INTS] = "list(int)",
        [TW_ATTR_FLOATS] = "list(float)", [TW_ATTR_TYPES] = "list(type)", [TW_ATTR_STRINGS] = "list(string)",
        [TW_ATTR_SHAPES] = "list(shape)",
    };
    const tw_attr *attr = attr_of(oper, name);
    TF_SetStatus(status, TF_OK, "");
    if (!attr)
        set_status(status, TF_NOT_FOUND, "No attr named '%s' in NodeDef:\n\t [[{{node %s}}]]", name,
                   TF_OperationName(oper));
    else if (attr->kind != kind)
        set_status(status, TF_INVALID_ARGUMENT,
                   "AttrValue had value with type '%s' when '%s' expected\n\t for attr '%s'", words[attr->kind],
                   words[kind], name);
    return is_ok(status) ? attr : NULL;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

void TF_OperationGetAttrString(TF_Operation *oper, const char *attr_name, void *value, size_t max_length,
                               TF_Status *status)
{
    const tw_attr *attr = find_kind(oper, attr_name, TW_ATTR_STRING, status);
    size_t length = !attr ? 0 : attr->s.size < max_length ? attr->s.size : max_length;
    if (length)
        memcpy(value, attr->s.data, length);
}

void TF_OperationGetAttrStringList(TF_Operation *oper, const char *attr_name, void **values, size_t *lengths,
                                   int max_values, void *storage, size_t storage_size, TF_Status *status)
{
    const tw_attr *attr = find_kind(oper, attr_name, TW_ATTR_STRINGS, status);
    char *at = storage;
    for (int i = 0; attr && i < least(max_values, attr->count); i++) {
        tw_string text = attr->strings[i];
        if (text.size > storage_size) {
            set_status(status, TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of strings");
            return;
        }
        values[i] = at;
        lengths[i] = text.size;
        if (text.size)
            memcpy(at, text.data, text.size);
        at += text.size;
        storage_size -= text.size;
    }
}

#define GETTER(Name, c_type, KIND, member)                                                                             \
    void TF_OperationGetAttr##Name(TF_Operation *oper, const char *attr_name, c_type *value, TF_Status *status)        \
    {                                                                                                                  \
        const tw_attr *attr = get_kind(oper, attr_name, KIND, status);                                                 \
        if (attr)                                                                                                      \
            *value = (c_type)attr->member;                                                                             \
    }
#define LIST_GETTER(Name, c_type, KIND, member)                                                                        \
    void TF_OperationGetAttr##Name(TF_Operation *oper, const char *attr_name, c_type *values, int max_values,          \
                                   TF_Status *status)                                                                  \
    {                                                                                                                  \
        const tw_attr *attr = find_kind(oper, attr_name, KIND, status);                                                \
        for (int i = 0; attr && i < least(max_values, attr->count); i++)                                               \
            values[i] = (c_type)attr->member[i];                                                                       \
    }
GETTER(Int, int64_t, TW_ATTR_INT, i)
GETTER(Float, float, TW_ATTR_FLOAT, f)
GETTER(Bool, unsigned char, TW_ATTR_BOOL, b)
GETTER(Type, TF_DataType, TW_ATTR_TYPE, type)
LIST_GETTER(IntList, int64_t, TW_ATTR_INTS, ints)
LIST_GETTER(FloatList, float, TW_ATTR_FLOATS, floats)
LIST_GETTER(TypeList, TF_DataType, TW_ATTR_TYPES, types)

/* Ops have none, but operations may have one that is kept. */
void TF_OperationGetAttrBoolList(TF_Operation *oper, const char *attr_name, unsigned char *values, int max_values,
                                 TF_Status *status)
{
    const tw_attr *attr = find_attr(oper, attr_name, status);
    bool fits = attr && !attr->kind && attr->count >= 0 && attr->i == TF_ATTR_BOOL;
    for (int i = 0; fits && i < least(max_values, attr->count); i++)
        values[i] = bools_of(attr)[i];
    if (attr && !fits)
        set_status(status, TF_INVALID_ARGUMENT, "Attribute '%s' is not a list of bool", attr_name);
}

void TF_OperationGetAttrShape(TF_Operation *oper, const char *attr_name, int64_t *value, int num_dims,
                              TF_Status *status)
{
    const tw_attr *attr = get_kind(oper, attr_name, TW_ATTR_SHAPE, status);
    for (int i = 0; attr && i < least(num_dims, attr->shape.rank); i++)
        value[i] = attr->shape.dims[i];
}

void TF_OperationGetAttrShapeList(TF_Operation *oper, const char *attr_name, int64_t **dims, int *num_dims,
                                  int num_shapes, int64_t *storage, int storage_size, TF_Status *status)
{
    const tw_attr *attr = get_kind(oper, attr_name, TW_ATTR_SHAPES, status);
    for (int i = 0; attr && i < least(num_shapes, attr->count); i++) {
        const tw_shape *shape = &attr->shapes[i];
        dims[i] = storage;
        num_dims[i] = shape->rank;
        if (shape->rank > storage_size) {
            set_status(status, TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of shapes");
            return;
        }
        for (int k = 0; k < shape->rank; k++)
            *storage++ = shape->dims[k];
        storage_size -= shape->rank > 0 ? shape->rank : 0;
    }
}

static TF_Tensor *copy_tensor(const tw_tensor *tensor)
{
    tw_tensor *copy = tw_tensor_from(tw_tensor_dtype(tensor), tw_tensor_shape(tensor), tw_tensor_data(tensor));
    return copy ? tensor_from_tower(copy) : NULL;
}

/* A copy: constants of the graph are not to be written to. */
void TF_OperationGetAttrTensor(TF_Operation *oper, const char *attr_name, TF_Tensor **value, TF_Status *status)
{
    const tw_attr *attr = get_kind(oper, attr_name, TW_ATTR_TENSOR, status);
    *value = attr ? copy_tensor(attr->tensor) : NULL;
    if (attr && !*value)
        set_no_memory(status);
}

/* ---- as messages ------------------------------------------------------------------------------------------------ */

enum { LIST = 1, SHAPE = 7, TENSOR = 8 }; /* of an AttrValue, and of its list */

/* The node's AttrValue of that name. */
static void find_value(TF_Operation *oper, const char *name, wire *value, TF_Status *status)
{
    enum { ATTR = 5, KEY = 1, VALUE = 2 };
    wire def = {0};
    tw_error error = TW_NO_ERROR;
    wire_field field, part, found;
    if (!find_attr(oper, name, status))
        return;
    if (write_node_def(&def, oper, &error) != TW_OK)
        set_error(status, &error);
    else if (def.failed)
        set_no_memory(status);
    wire_reader r = wire_read(def.data, def.size);
    while (wire_next(&r, &field)) {
        bool is_it = false;
        wire_reader entry =
            field.number == ATTR && field.type == 2 ? wire_read(field.data, field.size) : (wire_reader){0};
        found = (wire_field){0};
        while (wire_next(&entry, &part)) {
            is_it |= part.number == KEY && wire_is_text(&part, name);
            if (part.number == VALUE)
                found = part;
        }
        if (is_it)
            wire_append(value, found.data, found.size);
    }
    wire_free(&def);
}

void TF_OperationGetAttrValueProto(TF_Operation *oper, const char *attr_name, TF_Buffer *output_attr_value,
                                   TF_Status *status)
{
    wire value = {0};
    find_value(oper, attr_name, &value, status);
    if (is_ok(status))
        fill_buffer(output_attr_value, &value, status);
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation *oper, const char *attr_name, TF_Buffer *value, TF_Status *status)
{
    wire whole = {0}, shape = {0};
    wire_field field;
    if (!find_kind(oper, attr_name, TW_ATTR_SHAPE, status))
        return;
    find_value(oper, attr_name, &whole, status);
    wire_reader r = wire_read(whole.data, whole.size);
    while (wire_next(&r, &field))
        if (field.number == SHAPE)
            wire_append(&shape, field.data, field.size);
    wire_free(&whole);
    if (is_ok(status))
        fill_buffer(value, &shape, status);
}

/* The next element of that number, in whichever list of the message; `list` is inside of one. */
static bool next_element(wire_reader *message, wire_reader *list, int number, wire_field *element)
{
    wire_field field;
    for (;;) {
        while (wire_next(list, element))
            if (element->number == number && element->type == 2)
                return true;
        if (!wire_next(message, &field))
            return false;
        if (field.number == LIST && field.type == 2)
            *list = wire_read(field.data, field.size);
    }
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation *oper, const char *attr_name, TF_Buffer **values,
                                             int max_values, TF_Status *status)
{
    int count = 0;
    wire whole = {0};
    wire_field shape;
    if (!find_kind(oper, attr_name, TW_ATTR_SHAPES, status))
        return;
    find_value(oper, attr_name, &whole, status);
    wire_reader r = wire_read(whole.data, whole.size), list = {0};
    while (is_ok(status) && count < max_values && next_element(&r, &list, SHAPE, &shape))
        if (!(values[count++] = TF_NewBufferFromString(shape.data, shape.size)))
            set_no_memory(status);
    for (int i = 0; i < count && !is_ok(status); i++) {
        TF_DeleteBuffer(values[i]);
        values[i] = NULL;
    }
    wire_free(&whole);
}

static TF_Tensor *read_tensor(const wire_field *message, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    tw_tensor *tensor = tensor_of_message(&(TF_Buffer){message->data, message->size, NULL}, &error);
    TF_Tensor *read = tensor ? tensor_from_tower(tensor) : NULL;
    if (!tensor)
        set_error(status, &error);
    else if (!read)
        set_no_memory(status);
    return read;
}

/* No op that there is has such a list, but operations may have one that is kept. */
void TF_OperationGetAttrTensorList(TF_Operation *oper, const char *attr_name, TF_Tensor **values, int max_values,
                                   TF_Status *status)
{
    int count = 0;
    wire whole = {0};
    wire_field tensor;
    for (int i = 0; i < max_values; i++)
        values[i] = NULL;
    const tw_attr *attr = get_kind(oper, attr_name, (tw_attr_kind)NO_KIND, status);
    if (!attr)
        return;
    if (attr->i != TF_ATTR_TENSOR || attr->count < 0) {
        set_status(status, TF_INVALID_ARGUMENT, "Attribute '%s' is not a list of tensors", attr_name);
        return;
    }
    find_value(oper, attr_name, &whole, status);
    wire_reader r = wire_read(whole.data, whole.size), list = {0};
    while (is_ok(status) && count < max_values && next_element(&r, &list, TENSOR, &tensor))
        values[count++] = read_tensor(&tensor, status);
    for (int i = 0; i < count && !is_ok(status); i++) {
        TF_DeleteTensor(values[i]);
        values[i] = NULL;
    }
    wire_free(&whole);
}
