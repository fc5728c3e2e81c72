/* wrong_graph.h - graphs that TensorFlow wrote, with one thing about one of their nodes made wrong: an input that is
 * missing, of another type, shape or value, or another handle; an attribute of another value or kind. What an input is
 * made into is computed of what it was when the graph runs, so that it is nothing that shape rules could see; and once
 * more where they can.
 *
 * Nodes of functions take something else that is there, or is not, and have other attributes.
 *
 * Tests try one of many such graphs. With TOWER_WRONG=all in the environment they try all of them, with TOWER_WRONG=OP
 * all of that op, with 3/8 the third part of eight, with "functions" those with something wrong in a function, with
 * "pairs" a sample of those with two things wrong, in one node or in two of which one takes what the other gives
 * ("pairs1" and so on: other samples; "pairs/OP": of that op); in children, so that one that crashes or hangs is named,
 * its graph kept, and the others still run:
 *
 *     TOWER_WRONG=all build/asan/tests/test_shapes | grep -E 'CRASH|ERROR|UNNAMED'
 */
#ifndef WRONG_GRAPH_H
#define WRONG_GRAPH_H

#include "testing.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <tower/graph.h>
#include <tower/io.h>
#include <tower/op.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <unistd.h>

/* ---- messages on the wire ---------------------------------------------------------------------------------------- */

static inline size_t read_varint(const char **at)
{
    size_t value = 0, byte, shift = 0;
    do {
        byte = (unsigned char)*(*at)++;
        value |= (byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    return value;
}

static inline void write_varint(char **at, size_t value)
{
    for (; value > 127; value >>= 7)
        *(*at)++ = (char)(value | 128);
    *(*at)++ = (char)value;
}

static inline void write_field(char **at, int number, const void *bytes, size_t size)
{
    *(*at)++ = (char)(number << 3 | 2);
    write_varint(at, size);
    memcpy(*at, bytes, size);
    *at += size;
}

/* The next field of a GraphDef or of a NodeDef, all of whose fields have a length; false: there are no more. */
static inline bool next_field(const char **at, const char *end, int *number, const char **bytes, size_t *size)
{
    if (*at >= end)
        return false;
    *number = (int)(read_varint(at) >> 3);
    *size = read_varint(at);
    *bytes = *at;
    *at += *size;
    return true;
}

static inline bool is_called(const char *node, size_t size, const char *name)
{
    const char *field;
    int number;
    size_t length;
    while (next_field(&node, node + size, &number, &field, &length))
        if (number == 1)
            return length == strlen(name) && memcmp(field, name, length) == 0;
    return false;
}

/* Whether a field of that number is a node of that name. */
static inline bool has_node(const char *at, size_t size, int nodes, const char *name)
{
    const char *end = at + size, *field;
    int number;
    size_t length;
    while (next_field(&at, end, &number, &field, &length))
        if (number == nodes && is_called(field, length, name))
            return true;
    return false;
}

/* A piece of a message. */
typedef struct piece {
    const char *bytes;
    size_t size;
} piece;

/* The first field of that number, as text. */
static inline void read_text_field(piece message, int wanted, char text[128])
{
    const char *at = message.bytes, *bytes;
    int number;
    size_t size;
    text[0] = 0;
    while (!text[0] && next_field(&at, message.bytes + message.size, &number, &bytes, &size))
        if (number == wanted)
            snprintf(text, 128, "%.*s", (int)size, bytes);
}

enum { NODES = 1, LIBRARY = 2, FUNCTIONS = 1, NODES_OF_FUNCTION = 3 }; /* fields of a GraphDef and what is in it */

/* Whether a graph, or a function of its library, has it. */
static inline bool graph_has_node(const char *graph, size_t size, const char *name)
{
    const char *end = graph + size, *library, *function;
    int number;
    size_t length, size_of_function;
    if (has_node(graph, size, NODES, name))
        return true;
    while (next_field(&graph, end, &number, &library, &length))
        for (const char *at = library;
             number == LIBRARY && next_field(&at, library + length, &number, &function, &size_of_function);
             number = LIBRARY)
            if (number == FUNCTIONS && has_node(function, size_of_function, NODES_OF_FUNCTION, name))
                return true;
    return false;
}

/* Whether the words name a node of the graph, as Tower's and TensorFlow's do: itself, an output of it, or, where it is
 * of a function, behind the name of who calls that, and before those of nodes that stand for it. */
static inline bool names_a_node(const char *graph, size_t size, const char *words)
{
    static const char *const before[] = {"'", "{{node ", "(", "FetchOutputs ", "variable ", "uninitialized value "};
    char name[1024];
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        for (const char *at = words; (at = strstr(at, before[i]));) {
            at += strlen(before[i]);
            snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "' }):"), at);
            for (char *end = name + strlen(name); end; end = strrchr(name, '/')) {
                end[0] = 0;
                for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
                    if (part[0] && graph_has_node(graph, size, part))
                        return true;
            }
        }
    return false;
}

static inline bool is_sweep(void)
{
    return getenv("TOWER_WRONG") != NULL;
}

/* Words that are about what is fetched or fed, by its number: TensorFlow's, and of what is no node. */
static inline bool is_about_fetch(const char *words)
{
    return strncmp(words, "Retval[", strlen("Retval[")) == 0 ||
           (strncmp(words, "feed ", strlen("feed ")) == 0 && strstr(words, " is not an output of this graph")) ||
           (strncmp(words, "fetch ", strlen("fetch ")) == 0 && strstr(words, " is a dead output"));
}

/* What a wrong graph, or a run of it, has come to: values, or a refusal whose words name a node. A run that is ended
 * from outside, as watches do, has none to name. */
static inline void assert_refused_or_given(const char *graph, size_t size, const char *what, tw_status status,
                                           const char *words)
{
    if (status == TW_INTERNAL || (status != TW_OK && !words[0]))
        fail_msg("%s: status %d, '%s'", what, status, words);
    bool named = status == TW_OK || status == TW_CANCELLED || is_about_fetch(words) || names_a_node(graph, size, words);
    if (!named && is_sweep())
        printf("UNNAMED %s: status %d, %s\n", what, status, words);
    else if (!named)
        fail_msg("%s: status %d, '%s' names no node", what, status, words);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static inline tw_output made(tw_graph *h, const char *op, const tw_output *inputs, int num_inputs, const tw_attr *attrs,
                             int num_attrs)
{
    return tw_node_output(tw_add_node(h, op, NULL, inputs, num_inputs, attrs, num_attrs), 0);
}

static inline tw_output text_scalar(tw_graph *h, const char *text)
{
    tw_tensor *tensor = tw_tensor_create(TW_STRING, TW_SCALAR);
    assert_int_equal(tw_tensor_set_string(tensor, 0, text, strlen(text)), TW_OK);
    tw_output output = tw_constant(h, tensor);
    tw_tensor_release(tensor);
    return output;
}

enum {
    OTHER_SHAPES = 10,
    OTHER_TYPES = 7, /* beside strings */
    OTHER_HANDLES = 17,
    OTHER_VARIABLES = 21
};

/* The number-th other shape or type of x, of OTHER_SHAPES + OTHER_TYPES + 1. */
static inline tw_output in_other_form(tw_graph *h, tw_output x, int number)
{
    static const tw_dtype types[OTHER_TYPES] = {TW_FLOAT32, TW_FLOAT64, TW_INT32,    TW_INT64,
                                                TW_BOOL,    TW_UINT8,   TW_COMPLEX64};
    tw_output flat = tw_reshape(h, x, TW_SHAPE(-1)), twice[] = {x, x};
    switch (number) {
    case 0:
        return tw_reshape(h, tw_slice(h, flat, TW_SHAPE(0), TW_SHAPE(1)), TW_SCALAR);
    case 1:
        return flat;
    case 2:
        return tw_expand_dims(h, x, 0);
    case 3:
        return tw_reshape(h, x, TW_SHAPE(1, 1, 1, 1, 1, -1));
    case 4:
        return tw_slice(h, flat, TW_SHAPE(0), TW_SHAPE(0));
    case 5:
        return tw_concat(h, twice, 2, 0);
    case 6:
        return tw_concat(h, twice, 2, -1);
    case 7: /* no rows */
        return tw_gather(h, x, tw_constant_int32s(h, TW_SHAPE(0), (int32_t[]){0}), 0);
    case 8: /* the first row, as one and as all there is */
        return tw_gather(h, x, tw_constant_int32s(h, TW_SCALAR, (int32_t[]){0}), 0);
    case 9:
        return tw_gather(h, x, tw_constant_int32s(h, TW_SHAPE(1), (int32_t[]){0}), 0);
    default:
        number -= OTHER_SHAPES;
        if (number == OTHER_TYPES)
            return tw_fill(h, tw_shape_of(h, x), text_scalar(h, "7"));
        if (tw_output_dtype(x) == TW_STRING)
            return tw_fill(h, tw_shape_of(h, x), tw_cast(h, tw_scalar(h, 1), types[number]));
        return tw_cast(h, x, types[number]);
    }
}

static const double other_numbers[] = {0, -1, 1, 2, 100, -3, -2147483648.0, -9e18, 9e18, 2147483647, 1e30, NAN};
static const char *const other_texts[] = {"", "\xff\xfe", "-12.5e300x", "a/b,c d", "7", "\x01", "{", "%s%d*"};

static inline bool is_float_type(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || tw_dtype_is_complex(dtype);
}

static inline int count_values(tw_dtype dtype)
{
    enum { NUMBERS = sizeof other_numbers / sizeof *other_numbers, TEXTS = sizeof other_texts / sizeof *other_texts };
    /* What is of 2147483647 elements takes its time. */
    int whole = is_sweep() ? NUMBERS - 2 : dtype == TW_INT64 ? NUMBERS - 3 : NUMBERS - 4; /* 9e18 becomes 2147483647 */
    return dtype == TW_STRING ? TEXTS : dtype == TW_BOOL ? 2 : is_float_type(dtype) ? NUMBERS : whole;
}

/* x with the number-th other value in all places, in the first, in the last, of 3 * count_values(). */
static inline tw_output of_other_value(tw_graph *h, tw_output x, int number)
{
    tw_dtype dtype = tw_output_dtype(x);
    tw_output value =
        dtype == TW_STRING ? text_scalar(h, other_texts[number / 3])
        : dtype == TW_BOOL
            ? tw_cast(h, tw_scalar(h, number / 3 ? 1 : 0), dtype)
            : tw_cast(h, tw_scalar_of(h, is_float_type(dtype) ? TW_FLOAT64 : TW_INT64, other_numbers[number / 3]),
                      dtype);
    if (number % 3 == 0)
        return tw_fill(h, tw_shape_of(h, x), value);
    tw_output flat = tw_reshape(h, x, TW_SHAPE(-1)), one = tw_reshape(h, value, TW_SHAPE(1)), parts[2] = {one};
    if (number % 3 == 1) {
        parts[1] = tw_slice(h, flat, TW_SHAPE(1), TW_SHAPE(-1));
    } else {
        tw_output size =
            tw_sub(h, tw_reshape(h, tw_size_of(h, x), TW_SHAPE(1)), tw_constant_int32s(h, TW_SHAPE(1), (int32_t[]){1}));
        tw_output slice[] = {flat, tw_constant_int32s(h, TW_SHAPE(1), (int32_t[]){0}), size};
        parts[0] = made(h, "Slice", slice, 3, NULL, 0);
        parts[1] = one;
    }
    return tw_reshape_to(h, tw_concat(h, parts, 2, 0), tw_shape_of(h, x));
}

/* A variable, resource or reference, that has the number-th of OTHER_VARIABLES values; 0: it has none. */
static inline tw_output other_variable(tw_graph *h, bool by_reference, int number)
{
    static const tw_shape shapes[] = {{0, {0}}, {1, {0}}, {1, {3}}, {3, {2, 2, 2}}, {2, {0, 3}}};
    static const tw_dtype types[] = {TW_FLOAT32, TW_INT32, TW_FLOAT64, TW_INT64};
    enum { TYPES = sizeof types / sizeof *types };
    bool is_set = number > 0;
    number -= is_set;
    tw_dtype dtype = types[number % TYPES];
    tw_output value = tw_cast(h, tw_zeros(h, TW_FLOAT32, shapes[number / TYPES]), dtype);
    tw_attr attrs[] = {tw_attr_type("dtype", dtype), tw_attr_shape("shape", TW_UNKNOWN_SHAPE)};
    tw_attr unchecked = tw_attr_bool("validate_shape", false);
    tw_output handle = made(h, by_reference ? "VariableV2" : "VarHandleOp", NULL, 0, attrs, 2);
    tw_output inputs[] = {handle, value};
    if (!is_set)
        return handle;
    if (by_reference)
        return made(h, "Assign", inputs, 2, &unchecked, 1);
    tw_node *assign = tw_add_node(h, "AssignVariableOp", NULL, inputs, 2, NULL, 0);
    TW_CONTROL(h, ((tw_output){assign, -1}))
    handle = tw_identity(h, handle);
    return handle;
}

/* The number-th handle of something else, of OTHER_HANDLES, or of a variable. */
static inline tw_output other_handle(tw_graph *h, int number)
{
    static const tw_dtype types[] = {TW_FLOAT32};
    tw_shape shapes[] = {TW_SCALAR};
    tw_attr of_type = tw_attr_type("dtype", TW_FLOAT32), types_attr = tw_attr_types("component_types", types, 1);
    tw_attr table[] = {tw_attr_type("key_dtype", TW_STRING), tw_attr_type("value_dtype", TW_INT64)};
    tw_attr elements[] = {tw_attr_types("output_types", types, 1), tw_attr_shapes("output_shapes", shapes, 1),
                          tw_attr_string("shared_name", ""), tw_attr_string("container", "")};
    tw_attr accumulates[] = {of_type, tw_attr_shape("shape", TW_UNKNOWN_SHAPE)};
    tw_attr listed = tw_attr_type("element_dtype", TW_FLOAT32), stacked = tw_attr_type("elem_type", TW_FLOAT32);
    tw_attr parts[] = {tw_attr_types("Toutput_types", types, 1), tw_attr_shapes("output_shapes", shapes, 1)};
    tw_attr ragged[] = {tw_attr_int("RAGGED_RANK", 1), tw_attr_bool("batched_input", true)};
    tw_attr optional = tw_attr_types("Toutput_types", types, 1), empty = tw_attr_type("dtype", TW_VARIANT);
    tw_output zero = tw_scalar(h, 0), two = tw_scalar_of(h, TW_INT32, 2);
    tw_output rows = tw_zeros(h, TW_FLOAT32, TW_SHAPE(2, 3)),
              shape = tw_constant_int32s(h, TW_SHAPE(0), (int32_t[]){0});
    switch (number) {
    case 0:
        return made(h, "MutableHashTableV2", NULL, 0, table, 2);
    case 1:
        return made(h, "HashTableV2", NULL, 0, table, 2);
    case 2:
        return made(h, "StackV2", &two, 1, &stacked, 1);
    case 3:
        return made(h, "TensorArrayV3", &two, 1, &of_type, 1);
    case 4:
        return made(h, "FIFOQueueV2", NULL, 0, &types_attr, 1);
    case 5:
        return made(h, "IteratorV2", NULL, 0, elements, 4);
    case 6:
        return made(h, "ResourceConditionalAccumulator", NULL, 0, accumulates, 2);
    case 7:
        return made(h, "DummyMemoryCache", NULL, 0, NULL, 0);
    case 8:
        return made(h, "TextLineReaderV2", NULL, 0, NULL, 0);
    case 9:
        return made(h, "EmptyTensorList", (tw_output[]){shape, two}, 2, &listed, 1);
    case 10:
        return made(h, "TensorListFromTensor", (tw_output[]){rows, shape}, 2, &listed, 1);
    case 11:
        return made(h, "TensorDataset", &zero, 1, parts, 2);
    case 12:
        return made(h, "OptionalNone", NULL, 0, NULL, 0);
    case 13:
        return made(h, "OptionalFromValue", &zero, 1, &optional, 1);
    case 14:
        return made(h, "RaggedTensorToVariant",
                    (tw_output[]){tw_cast(h, tw_constant_int32s(h, TW_SHAPE(3), (int32_t[]){0, 1, 2}), TW_INT64), rows},
                    2, ragged, 2);
    case 15:
        return made(h, "Empty", &shape, 1, &empty, 1);
    case 16:
        return zero;
    default:
        return other_variable(h, false, number - OTHER_HANDLES);
    }
}

static inline bool is_handle_type(tw_dtype dtype)
{
    return dtype == TW_RESOURCE || dtype == TW_VARIANT;
}

static inline int count_ways(tw_dtype dtype, bool by_reference, bool by_value)
{
    return by_reference            ? OTHER_VARIABLES
           : is_handle_type(dtype) ? OTHER_HANDLES + OTHER_VARIABLES
           : by_value              ? 3 * count_values(dtype)
                                   : OTHER_SHAPES + OTHER_TYPES + 1;
}

/* Where the nodes lie that make an input into something else; of what is wrong second, in another place. */
static const char *wrong_scope = "wrong";

/* The nodes that make an input into something else, the number-th of count_ways(), as fields of a GraphDef, without
 * "wrong/of", what it was, and the name of the last. To be freed. */
static inline char *wrong_nodes(tw_dtype dtype, bool by_reference, bool by_value, int number, bool hidden, size_t *size,
                                char name[64])
{
    tw_graph *h = tw_graph_create();
    char of_name[64];
    snprintf(of_name, sizeof of_name, "%s/of", wrong_scope);
    tw_output of = tw_placeholder(tw_name(h, "%s", of_name), dtype, TW_UNKNOWN_SHAPE), is = {0};
    void *bytes;
    tw_error error = {0};
    TW_NAME_SCOPE(h, "%s", wrong_scope)
    {
        if (by_reference)
            is = other_variable(h, true, number);
        else if (is_handle_type(dtype))
            is = other_handle(h, number);
        else
            TW_CONTROL(h, of)
        is = by_value ? of_other_value(h, of, number) : in_other_form(h, of, number);
        if (hidden)
            is = tw_placeholder_with_default(h, is, TW_UNKNOWN_SHAPE);
    }
    assert_string_equal(tw_graph_message(h), "");
    snprintf(name, 64, "%s:%d", tw_node_name(is.node), is.index);
    assert_ok(tw_graph_export(h, &bytes, size, &error));
    char *fields = malloc(*size + 1), *to = fields;
    const char *at = bytes, *end = at + *size, *field;
    int number_of_field;
    size_t length;
    while (next_field(&at, end, &number_of_field, &field, &length))
        if (number_of_field == 1 && !is_called(field, length, of_name))
            write_field(&to, 1, field, length);
    *size = (size_t)(to - fields);
    tw_free(bytes);
    tw_graph_destroy(h);
    return fields;
}

/* "wrong/of": what the input is without a mistake. */
static inline void write_right(char **to, const char *input, size_t size, tw_dtype dtype)
{
    char node[1024], *at = node, type[] = {'\x0a', 1, 'T', '\x12', 2, '\x30', (char)dtype}, name[64];
    assert_true(size < 900);
    write_field(&at, 1, name, (size_t)snprintf(name, sizeof name, "%s/of", wrong_scope));
    write_field(&at, 2, "Identity", 8);
    write_field(&at, 3, input, size);
    write_field(&at, 5, type, sizeof type);
    write_field(to, 1, node, (size_t)(at - node));
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

typedef struct wrong_attr {
    const char *what, *bytes;
    size_t size;
} wrong_attr;
#define WRONG(what, bytes)                                                                                             \
    {                                                                                                                  \
        what, bytes, sizeof bytes - 1                                                                                  \
    }

/* Values of attributes on the wire. */
static const wrong_attr wrong_attrs[] = {
    WRONG("nothing", ""),
    WRONG("0", "\x18\x00"),
    WRONG("1", "\x18\x01"),
    WRONG("2", "\x18\x02"),
    WRONG("5", "\x18\x05"),
    WRONG("100", "\x18\x64"),
    WRONG("-1", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    WRONG("the largest int32", "\x18\xff\xff\xff\xff\x07"),
    WRONG("the largest int64", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
    WRONG("the least int64", "\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
    WRONG("0.0", "\x25\x00\x00\x00\x00"),
    WRONG("-1.0", "\x25\x00\x00\x80\xbf"),
    WRONG("1e30", "\x25\xca\xf2\x49\x71"),
    WRONG("NaN", "\x25\x00\x00\xc0\x7f"),
    WRONG("false", "\x28\x00"),
    WRONG("true", "\x28\x01"),
    WRONG("float", "\x30\x01"),
    WRONG("int32", "\x30\x03"),
    WRONG("string", "\x30\x07"),
    WRONG("bool", "\x30\x0a"),
    WRONG("complex64", "\x30\x08"),
    WRONG("resource", "\x30\x14"),
    WRONG("variant", "\x30\x15"),
    WRONG("no type", "\x30\x63"),
    WRONG("''", "\x12\x00"),
    WRONG("'nonsense'", "\x12\x08nonsense"),
    WRONG("'VALID'", "\x12\x05VALID"),
    WRONG("'%s\\xff'", "\x12\x03%s\xff"),
    WRONG("a shape of unknown rank", "\x3a\x02\x18\x01"),
    WRONG("a scalar's shape", "\x3a\x00"),
    WRONG("shape [0]", "\x3a\x04\x12\x02\x08\x00"),
    WRONG("shape [3]", "\x3a\x04\x12\x02\x08\x03"),
    WRONG("shape [?,2]", "\x3a\x11\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x02\x08\x02"),
    WRONG("a large shape", "\x3a\x0c\x12\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
    WRONG("an empty list", "\x0a\x00"),
    WRONG("[1]", "\x0a\x03\x1a\x01\x01"),
    WRONG("[0,0]", "\x0a\x04\x1a\x02\x00\x00"),
    WRONG("[1,2,2,1]", "\x0a\x06\x1a\x04\x01\x02\x02\x01"),
    WRONG("[-1]", "\x0a\x0c\x1a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    WRONG("[the largest int32, 1]", "\x0a\x08\x1a\x06\xff\xff\xff\xff\x07\x01"),
    WRONG("[1.0]", "\x0a\x06\x22\x04\x00\x00\x80\x3f"),
    WRONG("[float]", "\x0a\x03\x32\x01\x01"),
    WRONG("[int32,string]", "\x0a\x04\x32\x02\x03\x07"),
    WRONG("[resource]", "\x0a\x03\x32\x01\x14"),
    WRONG("['']", "\x0a\x02\x12\x00"),
    WRONG("['a','b']", "\x0a\x06\x12\x01\x61\x12\x01\x62"),
    WRONG("[shape []]", "\x0a\x02\x3a\x00"),
    WRONG("[a shape of unknown rank, shape [3]]", "\x0a\x0a\x3a\x02\x18\x01\x3a\x04\x12\x02\x08\x03"),
};
enum { WRONG_ATTRS = sizeof wrong_attrs / sizeof *wrong_attrs };
#undef WRONG

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* What is wrong about a node. */
typedef struct mistake {
    int input;               /* this input is missing, or "wrong/is" in its place; -1: none is */
    const char *name;        /* of what stands there; NULL: it is missing */
    int attr;                /* place of an attribute in the file; -1: it is none */
    const wrong_attr *value; /* what it is; NULL: it is missing */
} mistake;

/* Writes the node again, with the mistake. False: it has no such input or attribute, which is said by nothing else. */
static inline bool write_node(char **to, const char *node, size_t size, const mistake *m, const char **right,
                              size_t *right_size, char what[100])
{
    char *copy = malloc(size + 1024), *at = copy;
    const char *from = node, *field;
    int number, inputs = 0, attrs = 0;
    size_t length;
    bool found = false;
    while (next_field(&from, node + size, &number, &field, &length)) {
        if (number == 3 && !(length && field[0] == '^') && inputs++ == m->input) {
            found = true;
            *right = field;
            *right_size = length;
            if (m->name)
                write_field(&at, 3, m->name, strlen(m->name));
        } else if (number == 5 && attrs++ == m->attr) {
            char entry[1024], *in = entry;
            const char *key = field + 1;
            size_t letters = read_varint(&key);
            found = letters < 500 && key[0] != '_';
            write_field(&in, 1, key, found ? letters : 0);
            snprintf(what, 100, "attribute %.*s", found ? (int)letters : 0, key);
            if (m->value) {
                write_field(&in, 2, m->value->bytes, m->value->size);
                write_field(&at, 5, entry, (size_t)(in - entry));
            }
        } else {
            write_field(&at, number, field, length);
        }
    }
    write_field(to, 1, copy, (size_t)(at - copy));
    free(copy);
    return found;
}

static inline bool takes_reference(const tw_node *node, int i)
{
    tw_op_info *op = NULL;
    tw_error error = {0};
    bool is =
        tw_op_describe(tw_node_op(node), &op, &error) == TW_OK && i < op->num_inputs && op->inputs[i].is_reference;
    tw_op_info_destroy(op);
    return is;
}

/* Who is given the graphs: `what` says what is wrong with `node` there. */
typedef struct wrong_user {
    void (*run)(void *user, const char *bytes, size_t size, const char *what);
    void *user;
    int one_of; /* of so many graphs one is handed on, */
    int count;
    bool all;   /* or each, */
    bool often; /* or of fewer */
} wrong_user;

static inline void make_wrong(const char *bytes, size_t size, const tw_node *node, const mistake *m, const char *more,
                              size_t more_size, const char *says, wrong_user *user)
{
    char *copy = malloc(size + more_size + 4096), *to = copy, attr[100] = "", what[300];
    const char *at = bytes, *field, *right = NULL;
    int number;
    size_t length, right_size = 0;
    bool found = false;
    while (next_field(&at, bytes + size, &number, &field, &length))
        if (number == 1 && is_called(field, length, tw_node_name(node)))
            found = write_node(&to, field, length, m, &right, &right_size, attr);
        else
            write_field(&to, number, field, length);
    if (found && m->name && !takes_reference(node, m->input) &&
        !is_handle_type(tw_output_dtype(tw_node_input(node, m->input))))
        write_right(&to, right, right_size, tw_output_dtype(tw_node_input(node, m->input)));
    memcpy(to, more, more_size);
    to += more_size;
    snprintf(what, sizeof what, "%s '%s': %s%s", tw_node_op(node), tw_node_name(node), attr, says);
    if (found)
        user->run(user->user, copy, (size_t)(to - copy), what);
    free(copy);
}

static inline bool is_due(wrong_user *user)
{
    enum { OFTEN = 16 };
    return user->count++ % (user->often ? user->one_of / OFTEN + 1 : user->one_of) == 0 || user->all;
}

/* In place of an input, what other nodes of the graph give. */
static inline void each_other_edge(const char *bytes, size_t size, const tw_node *node, mistake *m, wrong_user *user)
{
    enum { MOST = 16 };
    const char *at = bytes, *field;
    char what[200], name[140];
    int number, nodes = 0, others = 0;
    size_t length;
    while (next_field(&at, bytes + size, &number, &field, &length))
        nodes += number == NODES;
    at = bytes;
    while (next_field(&at, bytes + size, &number, &field, &length)) {
        if (number != NODES || others++ % (nodes / MOST + 1) != m->input % (nodes / MOST + 1) || !is_due(user))
            continue;
        read_text_field((piece){field, length}, 1, name);
        m->name = name;
        snprintf(what, sizeof what, "input %d is '%s'", m->input, name);
        make_wrong(bytes, size, node, m, "", 0, what, user);
    }
}

/* Hands on all graphs that there are with one thing about that node wrong. */
static inline void each_wrong_graph(const char *bytes, size_t size, const tw_node *node, wrong_user *user)
{
    char what[200], name[64];
    mistake m = {.attr = -1};
    for (m.input = 0; m.input < tw_node_num_inputs(node); m.input++) {
        tw_dtype dtype = tw_output_dtype(tw_node_input(node, m.input));
        bool by_reference = takes_reference(node, m.input), is_handle = by_reference || is_handle_type(dtype);
        snprintf(what, sizeof what, "input %d is missing", m.input);
        m.name = NULL;
        if (is_due(user))
            make_wrong(bytes, size, node, &m, "", 0, what, user);
        for (int way = 0; way < 4; way++) { /* form or value, seen or hidden */
            bool by_value = way / 2;
            for (int k = 0; k < count_ways(dtype, by_reference, by_value); k++) {
                size_t more;
                if (!is_due(user))
                    continue;
                char *nodes = wrong_nodes(dtype, by_reference, by_value, k, way % 2, &more, name);
                snprintf(what, sizeof what, "input %d %s %d%s", m.input,
                         is_handle  ? "is other handle"
                         : by_value ? "has value"
                                    : "has form",
                         k, way % 2 ? ", hidden" : "");
                m.name = name;
                make_wrong(bytes, size, node, &m, nodes, more, what, user);
                free(nodes);
            }
            if (is_handle)
                break;
        }
        each_other_edge(bytes, size, node, &m, user);
    }
    m.input = -1;
    m.value = NULL;
    for (m.attr = 0; m.attr < tw_node_num_attrs(node); m.attr++)
        for (int k = -1; k < WRONG_ATTRS; k++) {
            m.value = k < 0 ? NULL : &wrong_attrs[k];
            snprintf(what, sizeof what, " is %s", k < 0 ? "missing" : m.value->what);
            if (is_due(user))
                make_wrong(bytes, size, node, &m, "", 0, what, user);
        }
}

/* ---- nodes of functions ----------------------------------------------------------------------------------------- */

/* The message with another value of one of its fields, to be freed. */
static inline piece with_field(piece message, piece field, piece value)
{
    char *copy = malloc(message.size + value.size + 16), *to = copy;
    const char *at = message.bytes, *bytes;
    int number;
    size_t size;
    while (next_field(&at, message.bytes + message.size, &number, &bytes, &size))
        if (bytes == field.bytes)
            write_field(&to, number, value.bytes, value.size);
        else
            write_field(&to, number, bytes, size);
    return (piece){copy, (size_t)(to - copy)};
}

/* A node of a function of the graph's library. */
typedef struct inner_node {
    piece graph, library, function, node;
    char op[128], name[128], of[128]; /* of: the function */
    int num_inputs, num_attrs;
} inner_node;

static inline void describe_inner(inner_node *n)
{
    const char *at = n->node.bytes, *bytes;
    int number;
    size_t size;
    read_text_field(n->node, 1, n->name);
    read_text_field(n->node, 2, n->op);
    n->num_inputs = n->num_attrs = 0;
    while (next_field(&at, n->node.bytes + n->node.size, &number, &bytes, &size)) {
        n->num_inputs += number == 3 && !(size && bytes[0] == '^');
        n->num_attrs += number == 5;
    }
}

static inline void make_inner_wrong(const inner_node *n, const mistake *m, const char *says, wrong_user *user)
{
    char *copy = malloc(n->node.size + 4096), *to = copy, attr[100] = "", what[600];
    const char *right, *at = copy;
    size_t right_size;
    int number;
    piece made;
    if (write_node(&to, n->node.bytes, n->node.size, m, &right, &right_size, attr)) {
        next_field(&at, to, &number, &made.bytes, &made.size);
        piece function = with_field(n->function, n->node, made);
        piece library = with_field(n->library, n->function, function);
        piece graph = with_field(n->graph, n->library, library);
        snprintf(what, sizeof what, "%s '%s' of function '%s': %s%s", n->op, n->name, n->of, attr, says);
        user->run(user->user, graph.bytes, graph.size, what);
        free((char *)function.bytes);
        free((char *)library.bytes);
        free((char *)graph.bytes);
    }
    free(copy);
}

/* In place of an input, what other nodes of the function take, the node itself, and what is not there. */
static inline void each_other_input(const inner_node *n, mistake *m, wrong_user *user)
{
    enum { MOST = 12 };
    char what[200], itself[140];
    const char *at = n->function.bytes, *node, *input;
    int number, others = 0;
    size_t size, length;
    snprintf(itself, sizeof itself, "%s:output:0", n->name);
    const char *names[] = {NULL, itself, "nonsense", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        m->name = names[i];
        snprintf(what, sizeof what, "input %d is %s", m->input, names[i] ? names[i] : "missing");
        if (is_due(user))
            make_inner_wrong(n, m, what, user);
    }
    while (next_field(&at, n->function.bytes + n->function.size, &number, &node, &size))
        for (const char *in = node;
             number == NODES_OF_FUNCTION && others < MOST && next_field(&in, node + size, &number, &input, &length);
             number = NODES_OF_FUNCTION) {
            char name[128];
            snprintf(name, sizeof name, "%.*s", (int)length, input);
            m->name = name;
            snprintf(what, sizeof what, "input %d is '%s'", m->input, name);
            if (number == 3 && others++ < MOST && is_due(user))
                make_inner_wrong(n, m, what, user);
        }
}

static inline void each_wrong_inner(const inner_node *n, wrong_user *user)
{
    char what[200];
    mistake m = {.attr = -1};
    for (m.input = 0; m.input < n->num_inputs; m.input++)
        each_other_input(n, &m, user);
    m.input = -1;
    for (m.attr = 0; m.attr < n->num_attrs; m.attr++)
        for (int k = -1; k < WRONG_ATTRS; k++) {
            m.value = k < 0 ? NULL : &wrong_attrs[k];
            snprintf(what, sizeof what, " is %s", k < 0 ? "missing" : m.value->what);
            if (is_due(user))
                make_inner_wrong(n, &m, what, user);
        }
}

/* ---- where files are written ------------------------------------------------------------------------------------ */

static char wrong_folder[600], came_from[600];

/* For names of files that are wrong: from here on they lie in a folder of their own. */
static inline void enter_scratch(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(wrong_folder, sizeof wrong_folder, "%s/tower_wrong_XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(wrong_folder));
    assert_non_null(getcwd(came_from, sizeof came_from));
    assert_int_equal(chdir(wrong_folder), 0);
}

static inline void leave_scratch(void)
{
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", wrong_folder);
    assert_int_equal(chdir(came_from), 0);
    assert_int_equal(system(command), 0);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Ops that single cases try (test_wrong_nodes.c), and those that were tried here. */
static char tried_ops[2000][64];
static int num_tried_ops;

static inline bool was_tried(const char *op)
{
    for (int i = 0; i < num_tried_ops; i++)
        if (strcmp(tried_ops[i], op) == 0)
            return true;
    assert_true(num_tried_ops < 2000);
    snprintf(tried_ops[num_tried_ops++], 64, "%s", op);
    return false;
}

/* Those of single cases. */
static inline void read_ops_of_cases(void)
{
    static const char *const files[] = {"math", "array", "nn", "image", "rare", "complex", "other"};
    char path[600];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, GOLDEN_DIR "/ops_%s.txt", files[i]);
        char *text = read_whole(path, NULL);
        for (char *at = text; (at = strstr(at, "\ncase ")); at += 6) {
            char op[64];
            snprintf(op, sizeof op, "%.*s", (int)strcspn(at + 6, "\n"), at + 6);
            was_tried(op);
        }
        free(text);
    }
}

/* Ends what waits for ever, or goes round for ever, as a queue that nobody fills may and a loop whose end is out of
 * reach: neither is a mistake, and to be ended is to be refused. So nothing hangs on how soon that is. */
typedef struct watch {
    tw_session *s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_over;
} watch;

static inline void *watch_run(void *argument)
{
    watch *w = argument;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->is_over && pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0)
        ;
    if (!w->is_over)
        tw_session_cancel(w->s);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static inline void begin_watch(watch *w, tw_session *s)
{
    *w = (watch){.s = s};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    assert_int_equal(pthread_create(&w->thread, NULL, watch_run, w), 0);
}

static inline void end_watch(watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

/* For sweeps: each graph after the other in a child, and another child after one that has crashed. */
typedef struct sweep {
    wrong_user *user;
    struct shared {
        int count, graphs;
        char what[700];
        size_t size;
        char graph[1 << 22];
    } * shared;
    int first;
} sweep;

/* Says in which child's graph something went wrong, and where the graph is kept. */
static inline void tell_crash(const sweep *s, int status)
{
    char path[600];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/tower_crash_%d.pb", base ? base : "/tmp", (int)getpid() + s->shared->graphs);
    FILE *file = fopen(path, "wb");
    bool kept = file && fwrite(s->shared->graph, s->shared->size, 1, file) == 1;
    kept = file && fclose(file) == 0 && kept;
    printf("CRASH %s: %s %d, %s\n", s->shared->what, WIFSIGNALED(status) ? "signal" : "exit",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), kept ? path : "not kept");
}

static inline void run_in_child(void *argument, const char *bytes, size_t size, const char *what)
{
    sweep *s = argument;
    if (s->shared->count++ < s->first)
        return;
    snprintf(s->shared->what, sizeof s->shared->what, "%s", what);
    s->shared->graphs = s->shared->count;
    s->shared->size = size < sizeof s->shared->graph ? size : 0;
    memcpy(s->shared->graph, bytes, s->shared->size);
    alarm(60); /* who hangs is told of, and ended */
    s->user->run(s->user->user, bytes, size, what);
}

/* A graph with one thing wrong about a node is given another: of the same node, or of one that gives it something. */
typedef struct pairs {
    wrong_user second;
    const tw_node *node;
    const char *first; /* what is wrong first */
    wrong_user *user;
} pairs;

static inline void run_pair(void *argument, const char *bytes, size_t size, const char *what)
{
    pairs *p = argument;
    char both[600];
    snprintf(both, sizeof both, "%s; %s", p->first, what);
    p->user->run(p->user->user, bytes, size, both);
}

static inline void each_second(void *argument, const char *bytes, size_t size, const char *what)
{
    enum { MOST_JOINED = 3 };
    pairs *p = argument;
    p->first = what;
    wrong_scope = "wrong_too";
    each_wrong_graph(bytes, size, p->node, &p->second);
    for (int i = 0; i < tw_node_num_inputs(p->node) && i < MOST_JOINED; i++)
        each_wrong_graph(bytes, size, tw_node_input(p->node, i).node, &p->second);
    wrong_scope = "wrong";
}

/* A sample of them, by the number behind "pairs" in TOWER_WRONG. */
static inline void each_pair(const char *bytes, size_t size, const tw_node *node, wrong_user *user)
{
    enum { ONE_OF_FIRST = 29, ONE_OF_SECOND = 211 };
    int seed = atoi(getenv("TOWER_WRONG") + strlen("pairs"));
    pairs p = {.second = {run_pair, &p, ONE_OF_SECOND, seed, false}, .node = node, .user = user};
    wrong_user first = {each_second, &p, ONE_OF_FIRST, seed, false};
    each_wrong_graph(bytes, size, node, &first);
}

static inline bool are_pairs(void)
{
    const char *wanted = getenv("TOWER_WRONG");
    return wanted && strncmp(wanted, "pairs", strlen("pairs")) == 0;
}

static inline bool wants_pairs_of(const char *op)
{
    const char *only = are_pairs() ? strchr(getenv("TOWER_WRONG"), '/') : NULL;
    return are_pairs() && (!only || strcmp(only + 1, op) == 0);
}

/* All graphs with one thing wrong about a node, of the graph itself or, if there is an `inner`, of a function; or with
 * two. */
static inline void each_wrong(const char *bytes, size_t size, const tw_node *node, const inner_node *inner,
                              wrong_user *user)
{
    if (inner)
        each_wrong_inner(inner, user);
    else if (are_pairs())
        each_pair(bytes, size, node, user);
    else
        each_wrong_graph(bytes, size, node, user);
}

static inline void sweep_node(const char *bytes, size_t size, const tw_node *node, const inner_node *inner,
                              wrong_user *user)
{
    sweep s = {.user = user,
               .shared = mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    for (int crashes = 0; crashes < 8; crashes++) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL); /* not cmocka's */
            signal(SIGABRT, SIG_DFL);
            wrong_user in_child = {run_in_child, &s, 1, 0, true};
            s.shared->count = 0;
            each_wrong(bytes, size, node, inner, &in_child);
            fflush(stdout);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (status == 0)
            break;
        tell_crash(&s, status);
        s.first = s.shared->graphs;
    }
    printf("SWEPT %s%s: %d graphs\n", inner ? "in a function " : "", inner ? inner->op : tw_node_op(node),
           s.shared->graphs);
    munmap(s.shared, sizeof *s.shared);
}

/* Which of them once crashed, so that more of their graphs are tried each time. */
static inline bool had_crashed(const char *op)
{
    static const char *const ops[] = {"ConcatenateDataset", "ParseExample",       "ParseSingleExample",
                                      "SparseReshape",      "TensorArraySplitV3", "TensorArrayScatterV3",
                                      "UnbatchDataset",     "WindowDataset"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i], op) == 0)
            return true;
    return false;
}

static inline bool is_wanted(const char *op, bool in_function)
{
    const char *wanted = getenv("TOWER_WRONG");
    char key[64];
    int part, parts;
    snprintf(key, sizeof key, "%s%.50s", in_function ? "in f " : "", op);
    if (was_tried(key))
        return false;
    if (wanted && sscanf(wanted, "%d/%d", &part, &parts) == 2)
        return num_tried_ops % parts == part % parts;
    return !wanted || strcmp(wanted, "all") == 0 || strcmp(wanted, op) == 0 || (!in_function && wants_pairs_of(op)) ||
           (in_function && strcmp(wanted, "functions") == 0);
}

/* The first node of each op in a function that was not tried in one yet. */
static inline void each_wrong_inner_node(const char *bytes, size_t size, wrong_user *user)
{
    inner_node n = {.graph = {bytes, size}};
    const char *in_graph = bytes, *end = bytes + size;
    int number;
    while (next_field(&in_graph, end, &number, &n.library.bytes, &n.library.size)) {
        const char *in_library = n.library.bytes, *end_of_library = in_library + n.library.size;
        while (number == LIBRARY &&
               next_field(&in_library, end_of_library, &number, &n.function.bytes, &n.function.size)) {
            const char *in_function = n.function.bytes, *end_of_function = in_function + n.function.size;
            bool is_function = number == FUNCTIONS;
            while (is_function &&
                   next_field(&in_function, end_of_function, &number, &n.node.bytes, &n.node.size)) {
                if (number == 1) { /* the signature, whose first field is the name */
                    read_text_field(n.node, 1, n.of);
                } else if (number == NODES_OF_FUNCTION) {
                    describe_inner(&n);
                    if (is_wanted(n.op, true))
                        is_sweep() ? sweep_node(bytes, size, NULL, &n, user) : each_wrong_inner(&n, user);
                }
            }
            number = LIBRARY;
        }
    }
}

/* The first node of each op that was not tried yet. */
static inline void each_wrong_node(const char *bytes, size_t size, wrong_user *user)
{
    tw_error error = {0};
    tw_graph *right = tw_graph_create();
    if (tw_graph_import(right, bytes, size, NULL, &error) == TW_OK)
        for (int i = 0; i < tw_graph_num_nodes(right); i++) {
            const tw_node *node = tw_graph_node(right, i);
            user->all = is_sweep();
            user->often = had_crashed(tw_node_op(node));
            if (is_wanted(tw_node_op(node), false))
                is_sweep() ? sweep_node(bytes, size, node, NULL, user) : each_wrong_graph(bytes, size, node, user);
        }
    tw_graph_destroy(right);
    user->often = false;
    each_wrong_inner_node(bytes, size, user);
}

#endif
