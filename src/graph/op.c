/* op.c - the op registry: finding a row, and reading the texts of its signature.
 * The grammar is in op.h. Rows are ours, so a malformed one asserts. */
#include "graph/op.h"

#include "base/array.h"
#include "base/map.h"
#include "graph/own_op.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding a row --------------------------------------------------------------------------------------------- */

/* All rows by the hash of their names, for every node that is built asks: filled at the first question. */
enum { SLOTS = 4096 };
static const twi_op *table[SLOTS];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* Where the row of that name is, or would be. */
static const twi_op **slot_of(const char *name)
{
    uint64_t slot = twi_hash_text(name) % SLOTS;
    while (table[slot] && strcmp(table[slot]->name, name) != 0)
        slot = (slot + 1) % SLOTS;
    return &table[slot];
}

static void fill_table(void)
{
    int count = 0;
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *op = *family; op->name; op++) {
            assert(++count < SLOTS / 2); /* so that chains are short, and end */
            *slot_of(op->name) = op;
        }
    (void)count;
}

const twi_op *twi_op_find(const char *name)
{
    pthread_once(&table_once, fill_table);
    const twi_op *op = *slot_of(name);
    return op ? op : twi_own_row(name);
}

/* ---- reading a signature --------------------------------------------------------------------------------------- */

/* Zeroed, for as long as the process, as rows are; NULL when out of memory. The C library's, for what a program's own
 * allocator (tw_set_allocator) gives comes back to it. One thread at a time reads signatures, and asks for it. */
static void *keep(size_t bytes)
{
    enum { BLOCK = 16 << 10, ALIGNMENT = 16 };
    static char *block;
    static size_t left;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (bytes > left) {
        left = bytes > BLOCK ? bytes : BLOCK;
        block = calloc(1, left);
        left = block ? left : 0;
    }
    if (!block || bytes > left)
        return NULL;
    left -= bytes;
    return block + left;
}

static void *kept_copy(const void *from, size_t bytes)
{
    void *copy = keep(bytes);
    return copy ? memcpy(copy, from, bytes) : NULL;
}

/* A piece of text under the reader's finger. */
typedef struct reader {
    const char *at;
    bool failed; /* out of memory */
} reader;

static void skip_spaces(reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static bool accept(reader *r, char c)
{
    skip_spaces(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* Copies up to the first character of `stops` (or the end), without trailing spaces. */
static const char *read_word(reader *r, const char *stops)
{
    skip_spaces(r);
    size_t size = strcspn(r->at, stops);
    const char *start = r->at;
    r->at += size;
    while (size && start[size - 1] == ' ')
        size--;
    char *word = keep(size + 1);
    if (!word) {
        r->failed = true;
        return "";
    }
    return memcpy(word, start, size);
}

static int count_items(const char *text, char separator)
{
    int count = *text != 0;
    for (int depth = 0; *text; text++) {
        depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
        count += *text == separator && depth == 0 && text[1];
    }
    return count;
}

static const twi_attr_spec *find_spec(const twi_signature *s, const char *name)
{
    for (int i = 0; i < s->num_attrs; i++)
        if (strcmp(s->attrs[i].name, name) == 0)
            return &s->attrs[i];
    return NULL;
}

static void read_type(reader *r, const twi_signature *s, twi_argument *argument)
{
    const char *word = read_word(r, "*,)");
    if (accept(r, '*')) {
        argument->number_attr = word;
        word = read_word(r, ",)");
    }
    if (strncmp(word, "Ref(", 4) == 0) {
        argument->is_ref = true;
        word += 4;
        accept(r, ')');
    }
    argument->dtype = tw_dtype_from_name(word);
    if (argument->dtype != TW_INVALID_DTYPE)
        return;
    const twi_attr_spec *spec = find_spec(s, word);
    assert(r->failed || spec); /* a type attribute that the row does not declare */
    if (spec && spec->kind == TW_ATTR_TYPES)
        argument->list_attr = word;
    else
        argument->type_attr = word;
}

static twi_argument *read_arguments(reader *r, const char *text, const twi_signature *s, int *count)
{
    *count = count_items(text, ',');
    twi_argument *arguments = keep(sizeof *arguments * (size_t)*count);
    if (!arguments) {
        r->failed = true;
        *count = 0;
        return NULL;
    }
    r->at = text;
    for (int i = 0; i < *count && !r->failed; i++) {
        arguments[i].name = read_word(r, ":");
        accept(r, ':');
        read_type(r, s, &arguments[i]);
        accept(r, ',');
    }
    return arguments;
}

/* "{a,b,c}": all dtypes, or strings. */
static void read_set(reader *r, twi_attr_spec *spec)
{
    int count = 1;
    for (const char *c = r->at; *c && *c != '}'; c++)
        count += *c == ',';
    const char **words = keep(sizeof *words * (size_t)count);
    if (!words) {
        r->failed = true;
        return;
    }
    bool types = true;
    for (int i = 0; i < count; i++) {
        words[i] = read_word(r, ",}");
        tw_dtype dtype = tw_dtype_from_name(words[i]);
        types = types && dtype != TW_INVALID_DTYPE;
        spec->allowed_types |= UINT64_C(1) << dtype;
        accept(r, ',');
    }
    accept(r, '}');
    spec->kind = types ? TW_ATTR_TYPE : TW_ATTR_STRING;
    if (!types) {
        spec->allowed_types = 0;
        spec->allowed_strings = words;
        spec->num_allowed_strings = count;
    }
}

static tw_attr_kind kind_of_word(const reader *r, const char *word)
{
    static const struct {
        const char *word;
        tw_attr_kind kind;
    } kinds[] = {
        {"int", TW_ATTR_INT},         {"float", TW_ATTR_FLOAT},   {"bool", TW_ATTR_BOOL},   {"type", TW_ATTR_TYPE},
        {"string", TW_ATTR_STRING},   {"shape", TW_ATTR_SHAPE},   {"tensor", TW_ATTR_TENSOR}, {"ints", TW_ATTR_INTS},
        {"floats", TW_ATTR_FLOATS},   {"types", TW_ATTR_TYPES},   {"strings", TW_ATTR_STRINGS},
        {"shapes", TW_ATTR_SHAPES},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, word) == 0)
            return kinds[i].kind;
    assert(r->failed || !"unknown attribute kind");
    return TW_ATTR_INT;
}

static void read_kind(reader *r, twi_attr_spec *spec)
{
    spec->kind = kind_of_word(r, read_word(r, ">=;"));
    spec->has_minimum = accept(r, '>');
    if (spec->has_minimum)
        spec->minimum = (int)strtol(r->at + strlen("="), (char **)&r->at, 10);
}

/* Lists of integers or floats, or an empty list of any kind. */
static void read_default_list(reader *r, twi_attr_spec *spec)
{
    bool is_float = spec->kind == TW_ATTR_FLOATS;
    int64_t items[16];
    float floats[16];
    int count = 0;
    accept(r, '[');
    while (!accept(r, ']')) {
        char *end;
        if (is_float)
            floats[count++] = strtof(r->at, &end);
        else
            items[count++] = strtoll(r->at, &end, 10);
        assert(end > r->at && count < 16);
        r->at = end;
        accept(r, ',');
    }
    spec->value.count = count;
    if (is_float)
        spec->value.floats = kept_copy(floats, sizeof *floats * (size_t)count);
    else
        spec->value.ints = kept_copy(items, sizeof *items * (size_t)count);
    if (is_float ? !spec->value.floats : !spec->value.ints)
        r->failed = true;
}

static void read_default(reader *r, twi_attr_spec *spec)
{
    spec->has_default = true;
    skip_spaces(r);
    if (*r->at == '[' && spec->kind != TW_ATTR_SHAPE) {
        read_default_list(r, spec);
        return;
    }
    const char *word = read_word(r, ";");
    switch (spec->kind) {
    case TW_ATTR_INT:
        spec->value.i = strtoll(word, NULL, 10);
        break;
    case TW_ATTR_FLOAT:
        spec->value.f = strtof(word, NULL);
        break;
    case TW_ATTR_BOOL:
        spec->value.b = strcmp(word, "true") == 0;
        break;
    case TW_ATTR_TYPE:
        spec->value.type = tw_dtype_from_name(word);
        assert(r->failed || spec->value.type != TW_INVALID_DTYPE);
        break;
    case TW_ATTR_STRING:
        spec->value.s = (tw_string){(char *)word, strlen(word)};
        break;
    case TW_ATTR_SHAPE:
        spec->value.shape = strcmp(word, "[]") == 0 ? TW_SCALAR : TW_UNKNOWN_SHAPE;
        break;
    default:
        assert(!"no default for this kind");
    }
}

static void read_attrs(reader *r, const char *text, twi_signature *s)
{
    s->num_attrs = count_items(text, ';');
    s->attrs = keep(sizeof *s->attrs * (size_t)s->num_attrs);
    if (!s->attrs) {
        r->failed = true;
        s->num_attrs = 0;
    }
    r->at = text;
    for (int i = 0; i < s->num_attrs && !r->failed; i++) {
        twi_attr_spec *spec = &s->attrs[i];
        spec->name = read_word(r, ":");
        accept(r, ':');
        if (accept(r, '{'))
            read_set(r, spec);
        else
            read_kind(r, spec);
        spec->value.name = spec->name;
        spec->value.kind = spec->kind;
        if (accept(r, '='))
            read_default(r, spec);
        bool more = accept(r, ';');
        assert(r->failed || more || i == s->num_attrs - 1);
        (void)more;
    }
}

static const twi_signature *read_signature(const twi_op *op)
{
    reader r = {0};
    twi_signature *signature = keep(sizeof *signature);
    if (!signature)
        return NULL;
    read_attrs(&r, op->attrs, signature);
    signature->inputs = read_arguments(&r, op->inputs, signature, &signature->num_inputs);
    signature->outputs = read_arguments(&r, op->outputs, signature, &signature->num_outputs);
    return r.failed ? NULL : signature;
}

const twi_signature *twi_op_signature(const twi_op *op)
{
    static _Atomic(const twi_signature *) known[SLOTS]; /* of the rows in the table */
    static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
    const twi_signature *signature = twi_own_signature(op);
    if (signature)
        return signature;
    pthread_once(&table_once, fill_table);
    _Atomic(const twi_signature *) *slot = &known[slot_of(op->name) - table];
    signature = atomic_load_explicit(slot, memory_order_acquire);
    if (signature)
        return signature;
    pthread_mutex_lock(&reading);
    signature = atomic_load_explicit(slot, memory_order_relaxed);
    if (!signature)
        signature = read_signature(op);
    atomic_store_explicit(slot, signature, memory_order_release);
    pthread_mutex_unlock(&reading);
    return signature;
}

/* ---- what a row says ------------------------------------------------------------------------------------------- */

/* How many inputs or outputs the argument has whose type begins at `type`: a list has as many as an attribute says. */
static int length_of(const char *type, const twi_attrs *attrs)
{
    size_t size = strcspn(type, "*,");
    for (int i = 0; i < attrs->count; i++) {
        const twi_attr *attr = &attrs->items[i];
        if (strncmp(attr->name, type, size) != 0 || attr->name[size])
            continue;
        if (type[size] == '*')
            return (int)attr->i;
        return attr->kind == TW_ATTR_TYPES ? attr->count : 1;
    }
    return 1;
}

/* The type, in a text of arguments, of the one that has the index-th input or output; NULL: there is none. *place is
 * its place in the text. */
static const char *type_at(const char *arguments, const twi_attrs *attrs, int index, int *place)
{
    *place = 0;
    for (const char *type = strchr(arguments, ':'); type; type = strchr(type, ':'), ++*place) {
        int length = length_of(++type, attrs);
        if (index < length)
            return type;
        index -= length;
    }
    return NULL;
}

char twi_op_role(const twi_op *op, const twi_attrs *attrs, int input)
{
    int place;
    return op->roles && type_at(op->inputs, attrs, input, &place) ? op->roles[place] : '.';
}

char twi_op_layout(const twi_op *op, const twi_attrs *attrs, int input)
{
    int place;
    return op->layout && type_at(op->inputs, attrs, input, &place) ? op->layout[place] : '.';
}

static bool is_reference(const char *arguments, const twi_attrs *attrs, int index)
{
    int place;
    const char *type = strstr(arguments, "Ref(") ? type_at(arguments, attrs, index, &place) : NULL;
    size_t size = type ? strcspn(type, "*,") : 0; /* of the attribute that says how many, if there is one */
    return type && strncmp(type[size] == '*' ? &type[size + 1] : type, "Ref(", 4) == 0;
}

bool twi_op_gives_reference(const twi_op *op, const twi_attrs *attrs, int output)
{
    return is_reference(op->outputs, attrs, output);
}

bool twi_op_takes_reference(const twi_op *op, const twi_attrs *attrs, int input)
{
    return is_reference(op->inputs, attrs, input);
}

bool twi_op_writes(const twi_op *op)
{
    return op->roles && strpbrk(op->roles, "wus");
}

bool twi_op_only_reads(const twi_op *op)
{
    return op->roles && strpbrk(op->roles, "rh") && !strpbrk(op->roles, "wusq");
}

void twi_not_differentiable(twi_gradient *g)
{
    (void)g; /* leaves every dx at none */
}

void twi_stops_gradient(twi_gradient *g)
{
    twi_not_differentiable(g);
}

bool twi_signature_wants_text(const twi_signature *signature, const char *type_attr)
{
    uint64_t text = UINT64_C(1) << TW_STRING, variant = UINT64_C(1) << TW_VARIANT;
    for (int i = 0; i < signature->num_attrs && type_attr; i++)
        if (strcmp(signature->attrs[i].name, type_attr) == 0)
            return (signature->attrs[i].allowed_types | variant) == (text | variant);
    return false;
}
