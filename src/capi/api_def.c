/* api_def.c - descriptions of ops for those who write bindings by program: what the ops themselves say, and what people
 * have written over it (ApiDefs, in protobuf's text format).
 * Never here:  ops (op_def.c). */
#include "capi.h"
#include "text_proto.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages --------------------------------------------------------------------------------------------------- */

enum { /* of an ApiDef */
       GRAPH_OP_NAME = 1,
       VISIBILITY,
       ENDPOINT,
       IN_ARG,
       OUT_ARG,
       ATTR,
       SUMMARY,
       DESCRIPTION,
       DESCRIPTION_PREFIX,
       DESCRIPTION_SUFFIX,
       ARG_ORDER,
       VISIBLE = 1
};
enum { NAME = 1, RENAME_TO, ABOUT, DEFAULT_OF_ATTR = 3, ABOUT_ATTR }; /* of its arguments and attributes */

static const char *const visibilities[] = {"DEFAULT_VISIBILITY", "VISIBLE", "SKIP", "HIDDEN", NULL};
static const text_field endpoint_fields[] = {
    {"name", 1, TEXT, 0, 0}, {"deprecated", 3, WHOLE, 0, 0}, {"deprecation_version", 4, WHOLE, 0, 0}, {0}};
static const text_field arg_fields[] = {
    {"name", NAME, TEXT, 0, 0}, {"rename_to", RENAME_TO, TEXT, 0, 0}, {"description", ABOUT, TEXT, 0, 0}, {0}};
static const text_field attr_fields[] = {
    {"name", NAME, TEXT, 0, 0},
    {"rename_to", RENAME_TO, TEXT, 0, 0},
    {"default_value", DEFAULT_OF_ATTR, MESSAGE, attr_value_text, 0},
    {"description", ABOUT_ATTR, TEXT, 0, 0},
    {0},
};
static const text_field api_fields[] = {
    {"graph_op_name", GRAPH_OP_NAME, TEXT, 0, 0},
    {"visibility", VISIBILITY, WORD, 0, visibilities},
    {"endpoint", ENDPOINT, MESSAGE, endpoint_fields, 0},
    {"in_arg", IN_ARG, MESSAGE, arg_fields, 0},
    {"out_arg", OUT_ARG, MESSAGE, arg_fields, 0},
    {"attr", ATTR, MESSAGE, attr_fields, 0},
    {"summary", SUMMARY, TEXT, 0, 0},
    {"description", DESCRIPTION, TEXT, 0, 0},
    {"description_prefix", DESCRIPTION_PREFIX, TEXT, 0, 0},
    {"description_suffix", DESCRIPTION_SUFFIX, TEXT, 0, 0},
    {"arg_order", ARG_ORDER, TEXT, 0, 0},
    {"deprecation_message", 12, TEXT, 0, 0},
    {"deprecation_version", 13, WHOLE, 0, 0},
    {0},
};
static const text_field all_fields[] = {{"op", 1, MESSAGE, api_fields, 0}, {0}};

/* ---- ops -------------------------------------------------------------------------------------------------------- */

/* An argument or an attribute. Texts have a 0 behind them that is not of their size (set). */
typedef struct part {
    int kind; /* IN_ARG, OUT_ARG, ATTR */
    wire name, rename_to, about, initial;
    bool has_initial;
} part;

typedef struct api {
    wire name, endpoints, summary, about; /* endpoints: the fields */
    uint64_t visibility;
    part *parts;
    wire *order;
    int num_parts, num_order;
} api;

struct TF_ApiDefMap {
    pthread_mutex_t lock;
    api *ops;
    int count;
    bool asked; /* what is written over has been written into the texts, and no more comes */
};

static void set(wire *text, const void *data, size_t size)
{
    wire_free(text);
    wire_append(text, data, size);
    wire_append(text, "", 1);
    text->size -= !text->failed;
}

static bool is_same(const wire *a, const wire *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static const char *string(const wire *text)
{
    return text->data && !text->failed ? (const char *)text->data : "";
}

/* ARRAY, which has so many items, with one more, all zeros; NULL: memory ran out. */
static void *grow(void *array, int count, size_t size)
{
    char *grown = realloc(array, size * ((size_t)count + 1));
    if (grown)
        memset(grown + size * (size_t)count, 0, size);
    return grown;
}

static part *add_part(api *op, int kind)
{
    part *grown = grow(op->parts, op->num_parts, sizeof *grown);
    if (!grown)
        return NULL;
    op->parts = grown;
    op->parts[op->num_parts].kind = kind;
    return &op->parts[op->num_parts++];
}

static bool add_order(wire **order, int *count, const void *data, size_t size)
{
    wire *grown = grow(*order, *count, sizeof *grown);
    if (!grown)
        return false;
    *order = grown;
    set(&grown[(*count)++], data, size);
    return true;
}

static void free_order(wire *order, int count)
{
    for (int i = 0; i < count; i++)
        wire_free(&order[i]);
    free(order);
}

static void free_part(part *p)
{
    wire_free(&p->name);
    wire_free(&p->rename_to);
    wire_free(&p->about);
    wire_free(&p->initial);
}

void TF_DeleteApiDefMap(TF_ApiDefMap *apimap)
{
    for (int i = 0; apimap && i < apimap->count; i++) {
        api *op = &apimap->ops[i];
        for (int k = 0; k < op->num_parts; k++)
            free_part(&op->parts[k]);
        free_order(op->order, op->num_order);
        free(op->parts);
        wire_free(&op->name);
        wire_free(&op->endpoints);
        wire_free(&op->summary);
        wire_free(&op->about);
    }
    if (!apimap)
        return;
    pthread_mutex_destroy(&apimap->lock);
    free(apimap->ops);
    free(apimap);
}

/* ---- what ops say ----------------------------------------------------------------------------------------------- */

/* An ArgDef or AttrDef. */
static void read_part(api *op, int kind, const wire_field *message, TF_Status *status)
{
    enum { ABOUT_ARGUMENT = 2, DEFAULT_VALUE = 3, ABOUT_ATTRIBUTE = 4 };
    wire_field field;
    part *p = add_part(op, kind);
    wire_reader r = wire_read(message->data, message->size);
    while (p && wire_next(&r, &field)) {
        if (field.type != 2)
            continue;
        if (field.number == NAME)
            set(&p->name, field.data, field.size);
        if (field.number == (kind == ATTR ? ABOUT_ATTRIBUTE : ABOUT_ARGUMENT))
            set(&p->about, field.data, field.size);
        if (kind == ATTR && field.number == DEFAULT_VALUE) {
            set(&p->initial, field.data, field.size);
            p->has_initial = true;
        }
    }
    if (r.wrong)
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable OpList");
    if (p)
        set(&p->rename_to, p->name.data, p->name.size);
    if (!p || (kind == IN_ARG && !add_order(&op->order, &op->num_order, p->name.data, p->name.size)))
        set_no_memory(status);
}

/* An OpDef. */
static void read_op(api *op, const wire_field *message, TF_Status *status)
{
    enum { INPUT_ARG = 2, OUTPUT_ARG = 3, ATTRIBUTE = 4, SUMMARY_OF_OP = 5, ABOUT_OP = 6 };
    wire_field field;
    wire endpoint = {0};
    wire_reader r = wire_read(message->data, message->size);
    while (is_ok(status) && wire_next(&r, &field)) {
        if (field.type != 2)
            continue;
        if (field.number == NAME)
            set(&op->name, field.data, field.size);
        if (field.number == SUMMARY_OF_OP)
            set(&op->summary, field.data, field.size);
        if (field.number == ABOUT_OP)
            set(&op->about, field.data, field.size);
        if (field.number >= INPUT_ARG && field.number <= ATTRIBUTE)
            read_part(op, IN_ARG + field.number - INPUT_ARG, &field, status);
    }
    op->visibility = VISIBLE;
    wire_text(&endpoint, NAME, string(&op->name));
    wire_message(&op->endpoints, ENDPOINT, &endpoint);
    if (r.wrong)
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable OpList");
}

TF_ApiDefMap *TF_NewApiDefMap(TF_Buffer *op_list_buffer, TF_Status *status)
{
    enum { OP = 1 };
    wire_field field;
    TF_ApiDefMap *map = calloc(1, sizeof *map);
    TF_SetStatus(status, TF_OK, "");
    if (!map) {
        set_no_memory(status);
        return NULL;
    }
    pthread_mutex_init(&map->lock, NULL);
    wire_reader r = wire_read(op_list_buffer->data, op_list_buffer->length);
    while (is_ok(status) && wire_next(&r, &field)) {
        if (field.number != OP || field.type != 2)
            continue;
        api *grown = grow(map->ops, map->count, sizeof *grown);
        if (grown)
            read_op(&(map->ops = grown)[map->count++], &field, status);
        else
            set_no_memory(status);
    }
    if (r.wrong)
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable OpList");
    if (is_ok(status))
        return map;
    TF_DeleteApiDefMap(map);
    return NULL;
}

/* ---- what is written over --------------------------------------------------------------------------------------- */

static bool merge_part(api *op, int kind, const wire_field *message, TF_Status *status)
{
    wire_field field;
    wire name = {0};
    part *found = NULL;
    wire_reader r = wire_read(message->data, message->size);
    while (wire_next(&r, &field))
        if (field.number == NAME)
            set(&name, field.data, field.size);
    for (int i = 0; i < op->num_parts && !found; i++)
        if (op->parts[i].kind == kind && is_same(&op->parts[i].name, &name))
            found = &op->parts[i];
    if (!found)
        set_status(status, TF_FAILED_PRECONDITION, "%s %s not defined in base api for %s",
                   kind == ATTR ? "Attribute" : "Argument", string(&name), string(&op->name));
    wire_free(&name);
    r = wire_read(message->data, message->size);
    while (found && wire_next(&r, &field)) {
        if (field.number == RENAME_TO && field.size)
            set(&found->rename_to, field.data, field.size);
        if (field.number == (kind == ATTR ? ABOUT_ATTR : ABOUT) && field.size)
            set(&found->about, field.data, field.size);
        if (kind == ATTR && field.number == DEFAULT_OF_ATTR) {
            set(&found->initial, field.data, field.size);
            found->has_initial = true;
        }
    }
    return found;
}

static void join(wire *text, const wire *order, int count)
{
    for (int i = 0; i < count; i++) {
        wire_append(text, i ? ", " : "", i ? 2 : 0);
        wire_append(text, order[i].data, order[i].size);
    }
    wire_append(text, "", 1);
}

static bool occurs_as_often(const wire *name, const wire *a, const wire *b, int count)
{
    int difference = 0;
    for (int i = 0; i < count; i++)
        difference += is_same(name, &a[i]) - is_same(name, &b[i]);
    return difference == 0;
}

/* The same arguments in another order, which is taken over if it is one. */
static bool merge_order(api *op, wire **order, int count, TF_Status *status)
{
    bool same = count == op->num_order;
    if (!same)
        set_status(status, TF_FAILED_PRECONDITION, "Invalid number of arguments %d for %s. Expected: %d", count,
                   string(&op->name), op->num_order);
    for (int i = 0; i < count && same; i++)
        if (!(same = occurs_as_often(&(*order)[i], *order, op->order, count))) {
            wire given = {0}, base = {0};
            join(&given, *order, count);
            join(&base, op->order, count);
            set_status(status, TF_FAILED_PRECONDITION,
                       "Invalid arg_order: %s for %s. All elements in arg_order override must match base arg_order: %s",
                       string(&given), string(&op->name), string(&base));
            wire_free(&given);
            wire_free(&base);
        }
    if (same) {
        wire *former = op->order;
        op->order = *order;
        *order = former;
    }
    return same;
}

/* Puts a line before or behind what an op says of itself. */
static void frame(wire *about, const wire *before, const wire *behind)
{
    wire whole = {0};
    wire_append(&whole, before->data, before->size);
    wire_append(&whole, "\n", before->size ? 1 : 0);
    wire_append(&whole, about->data, about->size);
    wire_append(&whole, "\n", behind->size ? 1 : 0);
    wire_append(&whole, behind->data, behind->size);
    set(about, whole.data, whole.size);
    about->failed |= whole.failed;
    wire_free(&whole);
}

static void merge(api *op, const wire_field *message, TF_Status *status)
{
    wire_field field;
    wire endpoints = {0}, before = {0}, behind = {0}, *order = NULL;
    int num_order = 0;
    bool fits = true;
    wire_reader r = wire_read(message->data, message->size);
    for (const uint8_t *from = r.at; fits && wire_next(&r, &field); from = r.at) {
        if (field.number == VISIBILITY && field.value)
            op->visibility = field.value;
        if (field.number == ENDPOINT)
            wire_append(&endpoints, from, (size_t)(r.at - from));
        if (field.number >= IN_ARG && field.number <= ATTR)
            fits = merge_part(op, field.number, &field, status);
        if (field.number == SUMMARY && field.size)
            set(&op->summary, field.data, field.size);
        if (field.number == DESCRIPTION && field.size)
            set(&op->about, field.data, field.size);
        if (field.number == DESCRIPTION_PREFIX)
            set(&before, field.data, field.size);
        if (field.number == DESCRIPTION_SUFFIX)
            set(&behind, field.data, field.size);
        if (field.number == ARG_ORDER && !(fits = add_order(&order, &num_order, field.data, field.size)))
            set_no_memory(status);
    }
    if (fits && (num_order == 0 || merge_order(op, &order, num_order, status))) {
        frame(&op->about, &before, &behind);
        if (endpoints.size) {
            wire_free(&op->endpoints);
            op->endpoints = endpoints;
            endpoints = (wire){0};
        }
    }
    wire_free(&endpoints);
    wire_free(&before);
    wire_free(&behind);
    free_order(order, num_order);
}

static api *find_api(const TF_ApiDefMap *map, const void *name, size_t size)
{
    for (int i = 0; i < map->count; i++)
        if (is_same(&map->ops[i].name, &(wire){.data = (uint8_t *)name, .size = size}))
            return &map->ops[i];
    return NULL;
}

/* What is of no op of the map is passed over. */
static void merge_all(const TF_ApiDefMap *map, const wire *defs, TF_Status *status)
{
    wire_field def, field;
    wire_reader r = wire_read(defs->data, defs->size);
    while (is_ok(status) && wire_next(&r, &def)) {
        api *op = NULL;
        wire_reader inner = wire_read(def.data, def.size);
        while (wire_next(&inner, &field))
            if (field.number == GRAPH_OP_NAME)
                op = find_api(map, field.data, field.size);
        if (op)
            merge(op, &def, status);
    }
}

void TF_ApiDefMapPut(TF_ApiDefMap *api_def_map, const char *text, size_t text_len, TF_Status *status)
{
    wire defs = {0};
    TF_SetStatus(status, TF_OK, "");
    pthread_mutex_lock(&api_def_map->lock);
    if (api_def_map->asked)
        set_status(status, TF_FAILED_PRECONDITION,
                   "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
    else if (text_to_wire(all_fields, text, text_len, &defs, status))
        merge_all(api_def_map, &defs, status);
    pthread_mutex_unlock(&api_def_map->lock);
    wire_free(&defs);
}

/* ---- asking ----------------------------------------------------------------------------------------------------- */

static void replace(wire *text, const wire *from, const wire *to)
{
    wire replaced = {0};
    if (!text->size || from->failed || to->failed)
        return;
    const uint8_t *at = text->data, *end = at + text->size, *found;
    while ((found = memmem(at, (size_t)(end - at), from->data, from->size))) {
        wire_append(&replaced, at, (size_t)(found - at));
        wire_append(&replaced, to->data, to->size);
        at = found + from->size;
    }
    wire_append(&replaced, at, (size_t)(end - at));
    set(text, replaced.data, replaced.size);
    text->failed |= replaced.failed;
    wire_free(&replaced);
}

static void quote(wire *quoted, const wire *name)
{
    wire_append(quoted, "`", 1);
    wire_append(quoted, name->data, name->size);
    wire_append(quoted, "`", 1);
}

/* In the op's texts, where a name stands in backticks. */
static void rename_in_texts(api *op, const wire *from, const wire *to)
{
    wire quoted = {0}, other = {0};
    if (is_same(from, to))
        return;
    quote(&quoted, from);
    quote(&other, to);
    for (int i = 0; i < op->num_parts; i++)
        replace(&op->parts[i].about, &quoted, &other);
    replace(&op->summary, &quoted, &other);
    replace(&op->about, &quoted, &other);
    wire_free(&quoted);
    wire_free(&other);
}

/* The name of its first endpoint is the one that the op goes by. */
static void rename_by_endpoint(api *op)
{
    wire_field endpoint, field;
    wire name = {0};
    wire_reader r = wire_read(op->endpoints.data, op->endpoints.size);
    if (!wire_next(&r, &endpoint))
        return;
    r = wire_read(endpoint.data, endpoint.size);
    while (wire_next(&r, &field))
        if (field.number == NAME)
            set(&name, field.data, field.size);
    rename_in_texts(op, &op->name, &name);
    wire_free(&name);
}

static void write_optional(wire *w, int field, const wire *text)
{
    if (text->size)
        wire_bytes(w, field, text->data, text->size);
    w->failed |= text->failed;
}

static void write_api(wire *w, const api *op)
{
    wire_bytes(w, GRAPH_OP_NAME, op->name.data, op->name.size);
    wire_int(w, VISIBILITY, op->visibility);
    wire_append(w, op->endpoints.data, op->endpoints.size);
    for (int kind = IN_ARG; kind <= ATTR; kind++)
        for (int i = 0; i < op->num_parts; i++) {
            const part *p = &op->parts[i];
            wire message = {0};
            if (p->kind != kind)
                continue;
            write_optional(&message, NAME, &p->name);
            write_optional(&message, RENAME_TO, &p->rename_to);
            if (p->has_initial)
                wire_bytes(&message, DEFAULT_OF_ATTR, p->initial.data, p->initial.size);
            write_optional(&message, kind == ATTR ? ABOUT_ATTR : ABOUT, &p->about);
            wire_message(w, kind, &message);
        }
    write_optional(w, SUMMARY, &op->summary);
    write_optional(w, DESCRIPTION, &op->about);
    for (int i = 0; i < op->num_order; i++)
        wire_bytes(w, ARG_ORDER, op->order[i].data, op->order[i].size);
}

static void end_writing_over(TF_ApiDefMap *map)
{
    for (int i = 0; i < map->count && !map->asked; i++) {
        api *op = &map->ops[i];
        rename_by_endpoint(op);
        for (int kind = IN_ARG; kind <= ATTR; kind++)
            for (int k = 0; k < op->num_parts; k++)
                if (op->parts[k].kind == kind)
                    rename_in_texts(op, &op->parts[k].name, &op->parts[k].rename_to);
    }
    map->asked = true;
}

/* Of no such op: NULL, and no error, as TensorFlow has it. */
TF_Buffer *TF_ApiDefMapGet(TF_ApiDefMap *api_def_map, const char *name, size_t name_len, TF_Status *status)
{
    wire def = {0};
    TF_SetStatus(status, TF_OK, "");
    pthread_mutex_lock(&api_def_map->lock);
    end_writing_over(api_def_map);
    const api *op = find_api(api_def_map, name, name_len);
    if (op)
        write_api(&def, op);
    pthread_mutex_unlock(&api_def_map->lock);
    TF_Buffer *buffer = op ? TF_NewBuffer() : NULL;
    if (buffer)
        fill_buffer(buffer, &def, status);
    else if (op)
        set_no_memory(status);
    wire_free(&def);
    if (is_ok(status))
        return buffer;
    TF_DeleteBuffer(buffer);
    return NULL;
}
