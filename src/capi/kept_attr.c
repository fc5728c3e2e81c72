/* kept_attr.c - attributes that begin with an underscore are the caller's own: Tower has no use for them and no room in
 * its nodes, so that they are kept beside operations, and are in their messages.
 * Never here:  "_class", which is Tower's, too. */
#include "capi.h"

#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

struct kept_attr {
    tw_attr attr; /* without a kind if none of Tower's has such a value: `i` is a TF_AttrType, `count` -1 of no list */
    wire value;   /* the AttrValue, whose texts are borrowed */
    void *items;  /* of a list */
};

bool is_kept(const char *name, size_t size)
{
    static const char class[] = "_class";
    return size > 0 && *name == '_' && (size != sizeof class - 1 || memcmp(name, class, size) != 0);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

enum {
    LIST = 1,
    S = 2,
    I = 3,
    F = 4,
    B = 5,
    TYPE = 6,
    SHAPE = 7,
    TENSOR = 8,
    PLACEHOLDER = 9,
    FUNC = 10
}; /* of an AttrValue and of its list */

static float float_of(uint64_t value)
{
    uint32_t bits = (uint32_t)value;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static tw_shape read_shape(const wire_field *message)
{
    enum { DIM = 2, UNKNOWN_RANK = 3, SIZE = 1 };
    tw_shape shape = {0};
    wire_field field, size;
    wire_reader r = wire_read(message->data, message->size);
    while (wire_next(&r, &field) && shape.rank >= 0) {
        bool is_dim = field.number == DIM && field.type == 2;
        if ((field.number == UNKNOWN_RANK && field.value) || (is_dim && shape.rank == TW_MAX_RANK))
            return TW_UNKNOWN_SHAPE;
        wire_reader dim = is_dim ? wire_read(field.data, field.size) : (wire_reader){0};
        int64_t *at = &shape.dims[is_dim ? shape.rank++ : 0];
        while (is_dim && wire_next(&dim, &size))
            if (size.number == SIZE)
                *at = (int64_t)size.value;
    }
    return shape;
}

/* NULL: memory ran out. */
static void *add_item(kept_attr *k, size_t size)
{
    char *grown = realloc(k->items, size * (size_t)(k->attr.count + 1));
    if (grown)
        k->items = grown;
    return grown ? grown + size * (size_t)k->attr.count++ : NULL;
}

/* One more of a list, of a number or of a message. */
static bool read_item(kept_attr *k, const wire_field *item, uint64_t value)
{
    static const tw_attr_kind kinds[] = {[S] = TW_ATTR_STRINGS,
                                         [I] = TW_ATTR_INTS,
                                         [F] = TW_ATTR_FLOATS,
                                         [TYPE] = TW_ATTR_TYPES,
                                         [SHAPE] = TW_ATTR_SHAPES};
    void *at = NULL;
    k->attr.kind = item->number <= SHAPE ? kinds[item->number] : 0;
    switch (item->number) {
    case S:
        if ((at = add_item(k, sizeof(tw_string))))
            *(tw_string *)at = (tw_string){(char *)item->data, item->size};
        return at;
    case I:
        if ((at = add_item(k, sizeof(int64_t))))
            *(int64_t *)at = (int64_t)value;
        return at;
    case F:
        if ((at = add_item(k, sizeof(float))))
            *(float *)at = float_of(value);
        return at;
    case B:
        if ((at = add_item(k, sizeof(unsigned char))))
            *(unsigned char *)at = value != 0;
        k->attr.i = TF_ATTR_BOOL;
        return at;
    case TYPE:
        if ((at = add_item(k, sizeof(tw_dtype))))
            *(tw_dtype *)at = (tw_dtype)value;
        return at;
    case SHAPE:
        if ((at = add_item(k, sizeof(tw_shape))))
            *(tw_shape *)at = read_shape(item);
        return at;
    default:
        k->attr.count++;
        k->attr.i = item->number == FUNC ? TF_ATTR_FUNC : TF_ATTR_TENSOR;
        return true;
    }
}

/* Its numbers may be packed. All are as the first is; what is not is passed over. */
static bool read_list(kept_attr *k, const wire_field *list)
{
    int number = 0;
    uint64_t value;
    wire_field item;
    bool fits = true;
    k->attr.kind = TW_ATTR_INTS; /* of an empty one nobody knows */
    for (wire_reader r = wire_read(list->data, list->size); fits && wire_next(&r, &item);) {
        number = number ? number : item.number;
        if (item.number != number)
            continue;
        bool is_packed = item.type == 2 && item.number >= I && item.number <= TYPE;
        bool is_floats = is_packed && item.number == F;
        wire_reader packed = is_packed && !is_floats ? wire_read(item.data, item.size) : (wire_reader){0};
        if (!is_packed)
            fits = read_item(k, &item, item.value);
        for (size_t at = 0; is_floats && fits && at + sizeof(uint32_t) <= item.size; at += sizeof(uint32_t)) {
            uint32_t bits;
            memcpy(&bits, item.data + at, sizeof bits);
            fits = read_item(k, &item, bits);
        }
        while (is_packed && !is_floats && fits && wire_next_packed(&packed, &value))
            fits = read_item(k, &item, value);
    }
    if (k->attr.kind)
        k->attr.ints = k->items; /* or whatever they are */
    return fits;
}

static bool read_value(kept_attr *k)
{
    static const tw_attr_kind kinds[] = {
        [S] = TW_ATTR_STRING,  [I] = TW_ATTR_INT,       [F] = TW_ATTR_FLOAT,      [B] = TW_ATTR_BOOL,
        [TYPE] = TW_ATTR_TYPE, [SHAPE] = TW_ATTR_SHAPE, [TENSOR] = TW_ATTR_TENSOR};
    tw_error error;
    wire_field field;
    wire_reader r = wire_read(k->value.data, k->value.size);
    if (!wire_next(&r, &field))
        return true;
    if (field.number == LIST)
        return read_list(k, &field);
    k->attr.count = -1;
    k->attr.i = field.number == PLACEHOLDER ? TF_ATTR_PLACEHOLDER : TF_ATTR_FUNC;
    if (field.number < S || field.number > TENSOR)
        return true;
    k->attr.kind = kinds[field.number];
    switch (field.number) {
    case S:
        k->attr.s = (tw_string){(char *)field.data, field.size};
        break;
    case I:
        k->attr.i = (int64_t)field.value;
        break;
    case F:
        k->attr.f = float_of(field.value);
        break;
    case B:
        k->attr.b = field.value;
        break;
    case TYPE:
        k->attr.type = (tw_dtype)field.value;
        break;
    case SHAPE:
        k->attr.shape = read_shape(&field);
        break;
    default:
        if (!(k->attr.tensor = tensor_of_message(&(TF_Buffer){.data = field.data, .length = field.size}, &error)))
            k->attr = (tw_attr){.name = k->attr.name, .count = -1, .i = TF_ATTR_TENSOR};
    }
    return true;
}

/* ---- keeping ---------------------------------------------------------------------------------------------------- */

static void free_kept(kept_attr *k)
{
    if (k->attr.kind == TW_ATTR_TENSOR)
        tw_tensor_release(k->attr.tensor);
    free((char *)k->attr.name);
    free(k->items);
    wire_free(&k->value);
}

void free_kept_attrs(TF_Operation *oper)
{
    for (int i = 0; i < oper->num_kept; i++)
        free_kept(&oper->kept[i]);
    free(oper->kept);
}

bool drop_attr(TF_Operation *oper, const char *name, size_t size)
{
    int i = 0;
    while (i < oper->num_kept && (strncmp(oper->kept[i].attr.name, name, size) != 0 || oper->kept[i].attr.name[size]))
        i++;
    if (i == oper->num_kept)
        return false;
    free_kept(&oper->kept[i]);
    oper->kept[i] = oper->kept[--oper->num_kept];
    return true;
}

bool keep_attr(TF_Operation *oper, const char *name, size_t name_size, const void *value, size_t size)
{
    kept_attr made = {.attr.name = strndup(name, name_size)};
    kept_attr *grown = realloc(oper->kept, sizeof *grown * (size_t)(oper->num_kept + 1));
    if (grown)
        oper->kept = grown;
    wire_append(&made.value, value, size);
    if (!grown || !made.attr.name || made.value.failed || !read_value(&made)) {
        free_kept(&made);
        return false;
    }
    drop_attr(oper, name, name_size);
    oper->kept[oper->num_kept++] = made;
    return true;
}

/* ---- what operations have --------------------------------------------------------------------------------------- */

int num_attrs(const TF_Operation *oper)
{
    return tw_node_num_attrs(oper->node) + oper->num_kept;
}

const tw_attr *attr_at(const TF_Operation *oper, int i)
{
    int own = tw_node_num_attrs(oper->node);
    if (i < own || i >= own + oper->num_kept)
        return tw_node_attr_at(oper->node, i);
    return &oper->kept[i - own].attr;
}

const tw_attr *attr_of(const TF_Operation *oper, const char *name)
{
    for (int i = 0; i < oper->num_kept; i++)
        if (strcmp(oper->kept[i].attr.name, name) == 0)
            return &oper->kept[i].attr;
    return tw_node_attr(oper->node, name);
}

const unsigned char *bools_of(const tw_attr *attr)
{
    return ((const kept_attr *)attr)->items; /* its first member */
}

tw_status write_node_def(wire *def, const TF_Operation *oper, tw_error *error)
{
    enum { ATTR = 5, KEY = 1, VALUE = 2 };
    void *bytes;
    size_t size;
    tw_status status = tw_node_export(oper->node, &bytes, &size, error);
    if (status != TW_OK)
        return status;
    wire_append(def, bytes, size);
    tw_free(bytes);
    for (int i = 0; i < oper->num_kept; i++) {
        wire entry = {0};
        wire_text(&entry, KEY, oper->kept[i].attr.name);
        wire_bytes(&entry, VALUE, oper->kept[i].value.data, oper->kept[i].value.size);
        wire_message(def, ATTR, &entry);
    }
    return TW_OK;
}
