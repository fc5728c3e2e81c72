/* op_builder.c - ops of one's own: the texts by which one is told what it takes and gives are read, and it is
 * registered with Tower. What its functions do is in op_shapes.c and kernels.c. Never here:  how values of attributes
 * are written (text_proto.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_op.h"
#include "text_proto.h"

typedef enum part { ATTR, INPUT, OUTPUT, PARTS } part;

typedef struct text_list {
    char **items;
    int count;
} text_list;

struct TF_OpDefinitionBuilder {
    char *name;
    text_list specs[PARTS];
    bool is_commutative, is_stateful;
    bool failed; /* out of memory */
    shape_function *shape;
};

/* ---- being told ------------------------------------------------------------------------------------------------- */

static bool add_text(text_list *list, const char *text, size_t size)
{
    char *copy = strndup(text, size);
    char **grown = copy ? realloc(list->items, sizeof *grown * ((size_t)list->count + 1)) : NULL;
    if (!grown) {
        free(copy);
        return false;
    }
    grown[list->count++] = copy;
    list->items = grown;
    return true;
}

static void free_texts(text_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (text_list){0};
}

TF_OpDefinitionBuilder *TF_NewOpDefinitionBuilder(const char *op_name)
{
    TF_OpDefinitionBuilder *b = calloc(1, sizeof *b);
    char *name = b ? strdup(op_name ? op_name : "") : NULL;
    if (!name) {
        free(b);
        return NULL;
    }
    b->name = name;
    return b;
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder *builder)
{
    if (!builder)
        return;
    for (part p = ATTR; p < PARTS; p++)
        free_texts(&builder->specs[p]);
    free(builder->name);
    free(builder);
}

static void add_spec(TF_OpDefinitionBuilder *b, part p, const char *text)
{
    b->failed = !add_text(&b->specs[p], text ? text : "", text ? strlen(text) : 0) || b->failed;
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder *builder, const char *attr_spec)
{
    add_spec(builder, ATTR, attr_spec);
}

void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder *builder, const char *input_spec)
{
    add_spec(builder, INPUT, input_spec);
}

void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder *builder, const char *output_spec)
{
    add_spec(builder, OUTPUT, output_spec);
}

void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder *builder, bool is_commutative)
{
    builder->is_commutative = is_commutative;
}

void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder *builder, bool is_stateful)
{
    builder->is_stateful = is_stateful;
}

void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder *builder, bool is_aggregate)
{
    (void)builder;
    (void)is_aggregate;
}

void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder *builder, bool allows_uninitialized_input)
{
    (void)builder;
    (void)allows_uninitialized_input;
}

void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder *builder, int version, const char *explanation)
{
    (void)builder;
    (void)version;
    (void)explanation;
}

void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder *builder, shape_function *function)
{
    builder->shape = function;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* An op as it is read. */
typedef struct reading {
    const char *op, *spec; /* the text at hand, */
    const char *at;        /* and where in it */
    tw_op_info info;
    text_list words;       /* what info's names point to */
    TF_Operation defaults; /* none of a graph: its attributes are what info's values point to */
    TF_Status *status;
} reading;

static bool wrong(reading *r, const char *expected)
{
    set_status(r->status, TF_INVALID_ARGUMENT, "op '%s': expected %s at '%s' in \"%s\"", r->op, expected, r->at,
               r->spec);
    return false;
}

static bool lacks(reading *r, const char *what)
{
    set_status(r->status, TF_UNIMPLEMENTED, "op '%s': Tower has no %s for ops of one's own: \"%s\"", r->op, what,
               r->spec);
    return false;
}

static void skip_blanks(reading *r)
{
    r->at += strspn(r->at, " \t\n");
}

static bool accept(reading *r, const char *text)
{
    skip_blanks(r);
    if (strncmp(r->at, text, strlen(text)) != 0)
        return false;
    r->at += strlen(text);
    return true;
}

static const char *keep(reading *r, const char *text, size_t size)
{
    if (add_text(&r->words, text, size))
        return r->words.items[r->words.count - 1];
    set_no_memory(r->status);
    return NULL;
}

/* NULL: there is none, and the status says so. */
static const char *read_word(reading *r, const char *expected)
{
    skip_blanks(r);
    size_t size = strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (size == 0) {
        wrong(r, expected);
        return NULL;
    }
    const char *word = keep(r, r->at, size);
    r->at += size;
    return word;
}

static const char *read_name(reading *r)
{
    const char *name = read_word(r, "a name");
    if (name && !accept(r, ":")) {
        wrong(r, "':' behind the name");
        return NULL;
    }
    return name;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

#define REALS "float double int32 int64 uint8 int16 int8 uint16 half uint32 uint64 bfloat16 "
#define QUANTIZED "qint8 quint8 qint16 quint16 qint32 "

/* The types that a word stands for, each with a blank behind it; "": it is a type's name, or none. */
static const char *types_of(const char *word)
{
    static const char *const sets[][2] = {
        {"numbertype", REALS "complex64 complex128 qint8 quint8 qint32 "},
        {"numerictype", REALS "complex64 complex128 qint8 quint8 qint32 "},
        {"realnumbertype", REALS},
        {"realnumerictype", REALS},
        {"quantizedtype", QUANTIZED},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i][0], word) == 0)
            return sets[i][1];
    return "";
}

static bool add_type(reading *r, tw_op_attr *attr, tw_dtype type)
{
    tw_dtype *grown = realloc((tw_dtype *)attr->types, sizeof *grown * ((size_t)attr->num_types + 1));
    if (!grown) {
        set_no_memory(r->status);
        return false;
    }
    grown[attr->num_types++] = type;
    attr->types = grown;
    return true;
}

static bool add_types(reading *r, tw_op_attr *attr, const char *word)
{
    bool fits = true;
    tw_dtype type = tw_dtype_from_name(word);
    const char *set = types_of(word);
    if (!*set)
        return type == TW_INVALID_DTYPE ? wrong(r, "types before") : add_type(r, attr, type);
    for (size_t size; *set && fits; set += size + 1) {
        char name[16];
        size = strcspn(set, " ");
        snprintf(name, sizeof name, "%.*s", (int)size, set);
        fits = add_type(r, attr, tw_dtype_from_name(name));
    }
    return fits;
}

static bool add_string(reading *r, tw_op_attr *attr, char quote)
{
    const char *end = strchr(r->at, quote);
    if (!end)
        return wrong(r, "the end of the text");
    const char *text = keep(r, r->at, (size_t)(end - r->at));
    const char **grown =
        text ? realloc((const char **)attr->strings, sizeof *grown * ((size_t)attr->num_strings + 1)) : NULL;
    r->at = end + 1;
    if (!grown) {
        set_no_memory(r->status);
        return false;
    }
    grown[attr->num_strings++] = text;
    attr->strings = grown;
    return true;
}

/* What is between braces: types, or texts. */
static bool read_set(reading *r, tw_op_attr *attr)
{
    bool fits = true;
    do {
        char quote = accept(r, "'") ? '\'' : accept(r, "\"") ? '"' : 0;
        const char *word = quote ? NULL : read_word(r, "a type or a text");
        fits = quote ? add_string(r, attr, quote) : word && add_types(r, attr, word);
    } while (fits && accept(r, ","));
    if (!fits)
        return false;
    if (!accept(r, "}") || (attr->num_types && attr->num_strings))
        return wrong(r, "'}' behind types alone or texts alone");
    attr->kind = attr->num_strings ? TW_ATTR_STRING : TW_ATTR_TYPE;
    return true;
}

static bool read_kind(reading *r, tw_op_attr *attr)
{
    static const struct {
        const char *word;
        tw_attr_kind kind;
    } kinds[] = {
        {"int", TW_ATTR_INT},       {"float", TW_ATTR_FLOAT}, {"bool", TW_ATTR_BOOL},     {"type", TW_ATTR_TYPE},
        {"string", TW_ATTR_STRING}, {"shape", TW_ATTR_SHAPE}, {"tensor", TW_ATTR_TENSOR},
    };
    if (accept(r, "{"))
        return read_set(r, attr);
    const char *word = read_word(r, "the kind of an attribute");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && word; i++)
        if (strcmp(kinds[i].word, word) == 0) {
            attr->kind = kinds[i].kind;
            return true;
        }
    if (!word)
        return false;
    if (strcmp(word, "func") == 0)
        return lacks(r, "attributes that are functions");
    attr->kind = TW_ATTR_TYPE;
    return *types_of(word) ? add_types(r, attr, word) : wrong(r, "the kind of an attribute before");
}

static bool read_list_kind(reading *r, tw_op_attr *attr)
{
    if (!read_kind(r, attr))
        return false;
    if (!accept(r, ")"))
        return wrong(r, "')' behind the kind of a list's items");
    switch (attr->kind) {
    case TW_ATTR_INT:
        attr->kind = TW_ATTR_INTS;
        break;
    case TW_ATTR_FLOAT:
        attr->kind = TW_ATTR_FLOATS;
        break;
    case TW_ATTR_TYPE:
        attr->kind = TW_ATTR_TYPES;
        break;
    case TW_ATTR_STRING:
        attr->kind = TW_ATTR_STRINGS;
        break;
    case TW_ATTR_SHAPE:
        attr->kind = TW_ATTR_SHAPES;
        break;
    default:
        return lacks(r, "lists of bools and of tensors");
    }
    return true;
}

static const char *field_of(tw_attr_kind kind)
{
    switch (type_of_kind(kind)) {
    case TF_ATTR_INT:
        return "i:";
    case TF_ATTR_FLOAT:
        return "f:";
    case TF_ATTR_BOOL:
        return "b:";
    case TF_ATTR_TYPE:
        return "type:";
    case TF_ATTR_STRING:
        return "s:";
    case TF_ATTR_SHAPE:
        return "shape:";
    default:
        return "tensor:";
    }
}

static void add_text_to(wire *w, const char *text)
{
    wire_append(w, text, strlen(text));
}

/* To the end of the text. An empty list is none of the node's. */
static bool read_default(reading *r, tw_op_attr *attr, int number)
{
    bool listed = is_list_kind(attr->kind);
    char key[16];
    attr->is_optional = true;
    attr->initial = (tw_attr){.name = attr->name, .kind = attr->kind};
    skip_blanks(r);
    if (!*r->at)
        return wrong(r, "a default");
    if (listed && *r->at != '[')
        return wrong(r, "'[' of a list");
    if (listed && r->at[1 + strspn(r->at + 1, " ")] == ']')
        return true;
    wire text = {0}, value = {0};
    snprintf(key, sizeof key, "_%d", number);
    add_text_to(&text, listed ? "list { " : "");
    add_text_to(&text, field_of(attr->kind));
    add_text_to(&text, r->at);
    add_text_to(&text, listed ? " }" : "");
    bool read = !text.failed && text_to_wire(attr_value_text, (const char *)text.data, text.size, &value, r->status);
    bool kept = read && keep_attr(&r->defaults, key, strlen(key), value.data, value.size);
    const tw_attr *initial = kept ? attr_of(&r->defaults, key) : NULL;
    wire_free(&text);
    wire_free(&value);
    if (initial && initial->kind == attr->kind)
        attr->initial = *initial;
    else if (!read || initial)
        return wrong(r, "a default of that kind");
    else
        set_no_memory(r->status);
    return initial;
}

static bool read_attr(reading *r, int number)
{
    tw_op_attr *attr = &r->info.attrs[number];
    attr->name = read_name(r);
    if (!attr->name || !(accept(r, "list(") ? read_list_kind(r, attr) : read_kind(r, attr)))
        return false;
    if (accept(r, ">=")) {
        char *end;
        attr->has_minimum = true;
        attr->minimum = (int)strtol(r->at, &end, 10);
        if (end == r->at)
            return wrong(r, "a number behind '>='");
        r->at = end;
    }
    if (accept(r, "="))
        return read_default(r, attr, number);
    skip_blanks(r);
    return !*r->at || wrong(r, "the end");
}

/* ---- inputs and outputs ----------------------------------------------------------------------------------------- */

static tw_op_attr *find_attr(reading *r, const char *name)
{
    for (int i = 0; i < r->info.num_attrs; i++)
        if (strcmp(r->info.attrs[i].name, name) == 0)
            return &r->info.attrs[i];
    return NULL;
}

/* A list has something in it if nothing else is said. */
static void want_some(tw_op_attr *attr)
{
    if (!attr || attr->has_minimum)
        return;
    attr->has_minimum = true;
    attr->minimum = 1;
}

static bool read_argument(reading *r, tw_op_argument *argument)
{
    argument->name = read_name(r);
    if (argument->name && accept(r, "Ref(")) /* as is found when it is registered */
        argument->is_reference = true;
    const char *word = argument->name ? read_word(r, "a type") : NULL;
    if (word && accept(r, "*")) {
        argument->number_attr = word;
        want_some(find_attr(r, word));
        argument->is_reference = accept(r, "Ref(");
        word = read_word(r, "a type behind '*'");
    }
    if (!word)
        return false;
    tw_op_attr *attr = find_attr(r, word);
    if (!attr)
        argument->dtype = tw_dtype_from_name(word);
    else if (attr->kind == TW_ATTR_TYPES)
        argument->types_attr = word;
    else
        argument->type_attr = word;
    if (!attr && argument->dtype == TW_INVALID_DTYPE)
        return wrong(r, "a type, or an attribute that is one, before");
    if (argument->types_attr)
        want_some(attr);
    if (argument->is_reference && !accept(r, ")"))
        return wrong(r, "')'");
    skip_blanks(r);
    return !*r->at || wrong(r, "the end");
}

static bool read_specs(reading *r, const TF_OpDefinitionBuilder *b, part p)
{
    const text_list *specs = &b->specs[p];
    tw_op_argument *arguments = p == ATTR ? NULL : calloc((size_t)specs->count + 1, sizeof *arguments);
    bool fits = true;
    if (p == ATTR) {
        r->info.attrs = calloc((size_t)specs->count + 1, sizeof *r->info.attrs);
    } else {
        *(p == INPUT ? &r->info.inputs : &r->info.outputs) = arguments;
        *(p == INPUT ? &r->info.num_inputs : &r->info.num_outputs) = specs->count;
    }
    if (p == ATTR ? !r->info.attrs : !arguments) {
        set_no_memory(r->status);
        return false;
    }
    for (int i = 0; i < specs->count && fits; i++) {
        r->spec = r->at = specs->items[i];
        if (p == ATTR)
            r->info.num_attrs = i + 1;
        fits = p == ATTR ? read_attr(r, i) : read_argument(r, &arguments[i]);
    }
    return fits;
}

static void free_reading(reading *r)
{
    for (int i = 0; i < r->info.num_attrs; i++) {
        free((tw_dtype *)r->info.attrs[i].types);
        free((const char **)r->info.attrs[i].strings);
    }
    free(r->info.attrs);
    free(r->info.inputs);
    free(r->info.outputs);
    free_texts(&r->words);
    free_kept_attrs(&r->defaults);
}

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder *builder, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    tw_error error = TW_NO_ERROR;
    reading r = {.op = builder->name, .status = status};
    r.info = (tw_op_info){
        .name = builder->name, .is_commutative = builder->is_commutative, .is_stateful = builder->is_stateful};
    if (builder->failed)
        set_no_memory(status);
    bool read = !builder->failed && read_specs(&r, builder, ATTR) && read_specs(&r, builder, INPUT) &&
                read_specs(&r, builder, OUTPUT);
    if (read && register_own_op(&r.info, builder->shape, &error) != TW_OK)
        set_error(status, &error);
    free_reading(&r);
    TF_DeleteOpDefinitionBuilder(builder);
}
