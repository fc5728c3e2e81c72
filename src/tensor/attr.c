/* attr.c - see attr.h; and the public constructors of tw_attr. */
#include "tensor/attr.h"

#include "base/hash.h"

#include <string.h>

static const twi_attr *find_mark(const twi_attrs *attrs, const char *name)
{
    for (int i = attrs->count - 1; i >= 0 && attrs->items[i].name[0] == '_'; i--)
        if (strcmp(attrs->items[i].name, name) == 0)
            return &attrs->items[i];
    return NULL;
}

const twi_attr *twi_attr_find(const twi_attrs *attrs, const char *name)
{
    if (name[0] == '_')
        return find_mark(attrs, name);
    for (int i = 0; i < attrs->count; i++)
        if (attrs->items[i].name[0] == name[0] && strcmp(attrs->items[i].name, name) == 0)
            return &attrs->items[i];
    return NULL;
}

int64_t twi_attr_int(const twi_attrs *attrs, const char *name, int64_t fallback)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    return attr ? attr->i : fallback;
}

float twi_attr_float(const twi_attrs *attrs, const char *name, float fallback)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    return attr ? attr->f : fallback;
}

bool twi_attr_bool(const twi_attrs *attrs, const char *name, bool fallback)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    return attr ? attr->b : fallback;
}

tw_dtype twi_attr_type(const twi_attrs *attrs, const char *name)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    return attr ? attr->type : TW_INVALID_DTYPE;
}

const char *twi_attr_string(const twi_attrs *attrs, const char *name, const char *fallback)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    return attr ? attr->s.data : fallback;
}

tw_shape twi_attr_shape(const twi_attrs *attrs, const char *name)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    return attr ? attr->shape : TW_UNKNOWN_SHAPE;
}

tw_tensor *twi_attr_tensor(const twi_attrs *attrs, const char *name)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    return attr ? attr->tensor : NULL;
}

const int64_t *twi_attr_ints(const twi_attrs *attrs, const char *name, int *count)
{
    const twi_attr *attr = twi_attr_find(attrs, name);
    *count = attr ? attr->count : 0;
    return attr ? attr->ints : NULL;
}

/* Strings are kept with a final 0, so that code which knows they are text may use them as such. */
static bool copy_string(twi_arena *arena, tw_string from, tw_string *to)
{
    char *data = twi_arena_alloc(arena, from.size + 1);
    if (!data)
        return false;
    if (from.size)
        memcpy(data, from.data, from.size);
    *to = (tw_string){data, from.size};
    return true;
}

static size_t list_item_size(tw_attr_kind kind)
{
    switch (kind) {
    case TW_ATTR_INTS:
        return sizeof(int64_t);
    case TW_ATTR_FLOATS:
        return sizeof(float);
    case TW_ATTR_TYPES:
        return sizeof(tw_dtype);
    case TW_ATTR_STRINGS:
        return sizeof(tw_string);
    case TW_ATTR_SHAPES:
        return sizeof(tw_shape);
    default:
        return 0;
    }
}

bool twi_attr_copy(twi_arena *arena, const twi_attr *from, twi_attr *to)
{
    const char *name = twi_arena_strdup(arena, from->name);
    return name && twi_attr_copy_as(arena, name, from, to);
}

bool twi_attr_copy_as(twi_arena *arena, const char *name, const twi_attr *from, twi_attr *to)
{
    *to = *from;
    to->name = name;
    if (from->kind == TW_ATTR_STRING)
        return copy_string(arena, from->s, &to->s);
    if (from->kind == TW_ATTR_TENSOR) {
        tw_tensor_retain(from->tensor);
        return true;
    }
    size_t size = list_item_size(from->kind);
    if (!size)
        return true;
    to->ints = twi_arena_copy(arena, from->ints, size * (size_t)from->count);
    if (!to->ints)
        return false;
    if (from->kind == TW_ATTR_STRINGS)
        for (int i = 0; i < from->count; i++)
            if (!copy_string(arena, from->strings[i], (tw_string *)&to->strings[i]))
                return false;
    return true;
}

void twi_attr_release(twi_attr *attr)
{
    if (attr->kind == TW_ATTR_TENSOR) {
        tw_tensor_release(attr->tensor);
        attr->tensor = NULL;
    }
}

void twi_attrs_release(twi_attrs *attrs)
{
    for (int i = 0; i < attrs->count; i++)
        twi_attr_release(&attrs->items[i]);
}

static bool strings_equal(tw_string a, tw_string b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool tensors_equal(const tw_tensor *a, const tw_tensor *b)
{
    if (a == b)
        return true;
    if (tw_tensor_dtype(a) != tw_tensor_dtype(b) || !tw_shape_equal(tw_tensor_shape(a), tw_tensor_shape(b)))
        return false;
    if (tw_tensor_dtype(a) != TW_STRING)
        return tw_tensor_bytes(a) == 0 || memcmp(tw_tensor_data(a), tw_tensor_data(b), tw_tensor_bytes(a)) == 0;
    for (int64_t i = 0; i < tw_tensor_elements(a); i++)
        if (!strings_equal(((tw_string *)tw_tensor_data(a))[i], ((tw_string *)tw_tensor_data(b))[i]))
            return false;
    return true;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

bool twi_attr_equal(const twi_attr *a, const twi_attr *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    switch (a->kind) {
    case TW_ATTR_INT:
        return a->i == b->i;
    case TW_ATTR_FLOAT:
        return float_bits(a->f) == float_bits(b->f);
    case TW_ATTR_BOOL:
        return a->b == b->b;
    case TW_ATTR_TYPE:
        return a->type == b->type;
    case TW_ATTR_STRING:
        return strings_equal(a->s, b->s);
    case TW_ATTR_SHAPE:
        return tw_shape_equal(a->shape, b->shape);
    case TW_ATTR_TENSOR:
        return tensors_equal(a->tensor, b->tensor);
    case TW_ATTR_INTS:
    case TW_ATTR_FLOATS:
    case TW_ATTR_TYPES:
        return a->count == 0 || memcmp(a->ints, b->ints, list_item_size(a->kind) * (size_t)a->count) == 0;
    case TW_ATTR_STRINGS:
        for (int i = 0; i < a->count; i++)
            if (!strings_equal(a->strings[i], b->strings[i]))
                return false;
        return true;
    case TW_ATTR_SHAPES:
        for (int i = 0; i < a->count; i++)
            if (!tw_shape_equal(a->shapes[i], b->shapes[i]))
                return false;
        return true;
    }
    return false;
}

tw_attr tw_attr_int(const char *name, int64_t value)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_INT, .i = value};
}

tw_attr tw_attr_float(const char *name, float value)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_FLOAT, .f = value};
}

tw_attr tw_attr_bool(const char *name, bool value)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_BOOL, .b = value};
}

tw_attr tw_attr_type(const char *name, tw_dtype value)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_TYPE, .type = value};
}

tw_attr tw_attr_string(const char *name, const char *value)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_STRING, .s = {(char *)value, value ? strlen(value) : 0}};
}

tw_attr tw_attr_shape(const char *name, tw_shape value)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_SHAPE, .shape = value};
}

tw_attr tw_attr_tensor(const char *name, tw_tensor *value)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_TENSOR, .tensor = value};
}

tw_attr tw_attr_ints(const char *name, const int64_t *values, int count)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_INTS, .count = count, .ints = values};
}

tw_attr tw_attr_floats(const char *name, const float *values, int count)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_FLOATS, .count = count, .floats = values};
}

tw_attr tw_attr_types(const char *name, const tw_dtype *values, int count)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_TYPES, .count = count, .types = values};
}

tw_attr tw_attr_strings(const char *name, const tw_string *values, int count)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_STRINGS, .count = count, .strings = values};
}

tw_attr tw_attr_shapes(const char *name, const tw_shape *values, int count)
{
    return (tw_attr){.name = name, .kind = TW_ATTR_SHAPES, .count = count, .shapes = values};
}

bool twi_attrs_equal(const twi_attrs *a, const twi_attrs *b)
{
    for (int i = 0, k = 0;; i++, k++) {
        while (i < a->count && a->items[i].name[0] == '_')
            i++;
        while (k < b->count && b->items[k].name[0] == '_')
            k++;
        if (i >= a->count || k >= b->count)
            return i >= a->count && k >= b->count;
        if (!twi_attr_equal(&a->items[i], &b->items[k]))
            return false;
    }
}

/* ---- hashing ----------------------------------------------------------------------------------------------------- */

enum { MOST_HASHED = 4096 }; /* bytes of a value: two long ones seldom differ only behind */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count && i < MOST_HASHED; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return twi_hash_mix(hash, count);
}

uint64_t twi_attr_hash(uint64_t hash, const twi_attr *attr)
{
    bool is_tensor = attr->kind == TW_ATTR_TENSOR, has_bytes = is_tensor && tw_tensor_dtype(attr->tensor) != TW_STRING;
    tw_shape shape = is_tensor ? tw_tensor_shape(attr->tensor) : attr->kind == TW_ATTR_SHAPE ? attr->shape : TW_SCALAR;
    for (int i = 0; i < shape.rank; i++)
        hash = twi_hash_mix(hash, (uint64_t)shape.dims[i]);
    if (has_bytes)
        hash = hash_bytes(hash, tw_tensor_data(attr->tensor), tw_tensor_bytes(attr->tensor));
    else if (attr->kind == TW_ATTR_STRING)
        hash = hash_bytes(hash, attr->s.data, attr->s.size);
    else if (attr->kind == TW_ATTR_INT || attr->kind == TW_ATTR_TYPE)
        hash = twi_hash_mix(hash, attr->kind == TW_ATTR_INT ? (uint64_t)attr->i : (uint64_t)attr->type);
    else if (attr->kind == TW_ATTR_FLOAT)
        hash = twi_hash_mix(hash, float_bits(attr->f));
    else if (attr->kind == TW_ATTR_BOOL)
        hash = twi_hash_mix(hash, attr->b);
    return hash;
}
