/* value.c - see value.h. */
#include "value.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- typed ------------------------------------------------------------------------------------------------------- */

typedef union element {
    int8_t int8;
    int16_t int16;
    int32_t int32;
    int64_t int64;
    uint8_t uint8;
    uint16_t half;
    float float32;
    double float64;
    float complex64[2];
    double complex128[2];
} element;

typedef struct integer_type {
    tw_dtype dtype;
    int64_t least;
    uint64_t most;
    const char *expected;
} integer_type;

static const integer_type integers[] = {
    {TW_INT8, INT8_MIN, INT8_MAX, "a whole number from -128 to 127"},
    {TW_UINT8, 0, UINT8_MAX, "a whole number from 0 to 255"},
    {TW_INT16, INT16_MIN, INT16_MAX, "a whole number from -32768 to 32767"},
    {TW_INT32, INT32_MIN, INT32_MAX, "a whole number from -2147483648 to 2147483647"},
    {TW_INT64, INT64_MIN, INT64_MAX, "a whole number from -9223372036854775808 to 9223372036854775807"},
    {TW_UINT16, 0, UINT16_MAX, "a whole number from 0 to 65535"},
    {TW_UINT32, 0, UINT32_MAX, "a whole number from 0 to 4294967295"},
    {TW_UINT64, 0, UINT64_MAX, "a whole number from 0 to 18446744073709551615"},
    {TW_BOOL, 0, 1, "0 or 1"},
    {TW_QINT8, INT8_MIN, INT8_MAX, "a whole number from -128 to 127"},
    {TW_QUINT8, 0, UINT8_MAX, "a whole number from 0 to 255"},
    {TW_QINT16, INT16_MIN, INT16_MAX, "a whole number from -32768 to 32767"},
    {TW_QUINT16, 0, UINT16_MAX, "a whole number from 0 to 65535"},
    {TW_QINT32, INT32_MIN, INT32_MAX, "a whole number from -2147483648 to 2147483647"},
};

static const integer_type *integer_of(tw_dtype dtype)
{
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (integers[i].dtype == dtype)
            return &integers[i];
    return NULL;
}

static const char *expected_of(tw_dtype dtype)
{
    const integer_type *integer = integer_of(dtype);
    if (integer)
        return integer->expected;
    if (tw_dtype_is_complex(dtype))
        return "a number as 1.5, 2j or 1.5-2j that the type can hold";
    return dtype == TW_FLOAT64 ? "a number" : "a number that the type can hold";
}

static void store_integer(tw_dtype dtype, int64_t number, element *value)
{
    switch (tw_dtype_size(dtype)) {
    case 2:
        value->int16 = (int16_t)number;
        break;
    case 4:
        value->int32 = (int32_t)number;
        break;
    case 8:
        value->int64 = number;
        break;
    default:
        value->uint8 = (uint8_t)number;
    }
}

/* What is stored is finite if the number is. */
static bool store_float(tw_dtype dtype, double number, element *value)
{
    double stored = number;
    if (dtype == TW_FLOAT64)
        value->float64 = number;
    else if (dtype == TW_FLOAT32)
        stored = value->float32 = (float)number;
    else if (dtype == TW_FLOAT16)
        stored = tw_half_to_float(value->half = tw_float_to_half((float)number));
    else
        stored = tw_bfloat16_to_float(value->half = tw_float_to_bfloat16((float)number));
    return isfinite(stored) || !isfinite(number);
}

static bool parse_integer(const integer_type *type, const char *text, element *value)
{
    char *end;
    errno = 0;
    bool yes = type->dtype == TW_BOOL && strcmp(text, "true") == 0;
    bool no = type->dtype == TW_BOOL && strcmp(text, "false") == 0;
    bool negative = text[strspn(text, " \t\r\n")] == '-'; /* strtoull() would take it as a large number */
    unsigned long long number = yes || no  ? yes
                                : negative ? (unsigned long long)strtoll(text, &end, 10)
                                           : strtoull(text, &end, 10);
    if (!yes && !no && (end == text || *end || errno))
        return false;
    store_integer(type->dtype, (int64_t)number, value);
    return negative ? (int64_t)number >= type->least : number <= type->most;
}

/* A finite number that would become infinite is none of the type's. */
static bool parse_float(tw_dtype dtype, const char *text, element *value)
{
    char *end;
    double number = strtod(text, &end);
    bool meant = strpbrk(text, "nN"); /* inf, infinity, nan */
    return end != text && !*end && (meant || isfinite(number)) && store_float(dtype, number, value);
}

static bool store_complex(tw_dtype dtype, double real, double imaginary, element *value)
{
    bool is_double = dtype == TW_COMPLEX128;
    element parts[2] = {0};
    bool fits = store_float(is_double ? TW_FLOAT64 : TW_FLOAT32, real, &parts[0]) &&
                store_float(is_double ? TW_FLOAT64 : TW_FLOAT32, imaginary, &parts[1]);
    for (int i = 0; i < 2; i++)
        if (is_double)
            value->complex128[i] = parts[i].float64;
        else
            value->complex64[i] = parts[i].float32;
    return fits;
}

/* As Python writes them: 1.5, 2j, 1.5-2j. */
static bool parse_complex(tw_dtype dtype, const char *text, element *value)
{
    char *end;
    double parts[2] = {strtod(text, &end), 0};
    if (end == text)
        return false;
    if (*end == 'j') {
        parts[1] = parts[0];
        parts[0] = 0;
        end++;
    } else if (*end == '+' || *end == '-') {
        const char *second = end;
        parts[1] = strtod(second, &end);
        if (end == second || *end++ != 'j')
            return false;
    }
    bool meant = strpbrk(text, "nN"); /* inf, infinity, nan */
    return !*end && (meant || (isfinite(parts[0]) && isfinite(parts[1]))) &&
           store_complex(dtype, parts[0], parts[1], value);
}

static bool parse_number(tw_dtype dtype, const char *text, element *value)
{
    const integer_type *integer = integer_of(dtype);
    return integer                      ? parse_integer(integer, text, value)
           : tw_dtype_is_complex(dtype) ? parse_complex(dtype, text, value)
                                        : parse_float(dtype, text, value);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

enum { LONGEST_WORD = 512 };

/* Elements one behind the other: of numbers their bytes, of texts tw_strings. */
typedef struct list {
    const char *at;
    tw_dtype dtype;
    tw_shape shape; /* as far as it was met: rank 0 before the first element */
    int64_t count, capacity;
    char *elements;
    char *wrong;
    size_t wrong_size;
} list;

static bool fail(list *l, const char *format, ...) TW_PRINTF(2, 3);
static bool fail(list *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->wrong, l->wrong_size, format, arguments);
    va_end(arguments);
    return false;
}

static void skip_blanks(list *l)
{
    l->at += strspn(l->at, " \t\r\n");
}

static bool append(list *l, const void *element)
{
    size_t bytes = tw_dtype_size(l->dtype);
    if (l->count == l->capacity) {
        int64_t capacity = l->capacity ? 2 * l->capacity : 64;
        char *larger = realloc(l->elements, (size_t)capacity * bytes);
        if (!larger)
            return fail(l, "out of memory");
        l->elements = larger;
        l->capacity = capacity;
    }
    memcpy(l->elements + (size_t)l->count++ * bytes, element, bytes);
    return true;
}

static size_t put_utf8(unsigned code, char *to)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xC0 | code >> 6);
        to[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 63));
        to[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 63));
    to[2] = (char)(0x80 | (code >> 6 & 63));
    to[3] = (char)(0x80 | (code & 63));
    return 4;
}

/* What stands behind a backslash; moves *at past it. */
static size_t unescape(const char **at, char *to)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    char c = *(*at)++;
    const char *letter = c ? strchr(letters, c) : NULL;
    unsigned code, low;
    int read = 0, second = 0;
    if (c == 'u' && sscanf(*at, "%4x%n", &code, &read) == 1 && read == 4) {
        *at += 4;
        if (code >> 10 == 0xD800 >> 10 && sscanf(*at, "\\u%4x%n", &low, &second) == 1 && second == 6 &&
            low >> 10 == 0xDC00 >> 10) { /* what needs more than sixteen bits is written as two */
            *at += 6;
            code = 0x10000 + ((code & 1023) << 10 | (low & 1023));
        }
        return put_utf8(code, to);
    }
    *to = letter ? meant[letter - letters] : c;
    return 1;
}

/* A text in quotes at l->at, into memory of its own. */
static bool take_quoted(list *l, tw_string *text)
{
    *text = (tw_string){malloc(strlen(l->at) + 1), 0};
    if (!text->data)
        return fail(l, "out of memory");
    for (l->at++; *l->at && *l->at != '"';)
        if (*l->at == '\\' && l->at[1]) {
            l->at++;
            text->size += unescape(&l->at, text->data + text->size);
        } else {
            text->data[text->size++] = *l->at++;
        }
    if (*l->at++ == '"')
        return true;
    free(text->data);
    return fail(l, "expected a quote at the end of a text");
}

static bool take_element(list *l)
{
    tw_string text = {0};
    element value;
    char word[LONGEST_WORD];
    if (*l->at == '"' && l->dtype == TW_STRING)
        return take_quoted(l, &text) && append(l, &text);
    size_t length = strcspn(l->at, l->dtype == TW_STRING ? ",]" : ",] \t\r\n[");
    if (length >= sizeof word)
        return fail(l, "expected %s, found %zu characters", expected_of(l->dtype), length);
    snprintf(word, sizeof word, "%.*s", (int)length, l->at);
    l->at += length;
    if (l->dtype != TW_STRING)
        return parse_number(l->dtype, word, &value) ? append(l, &value)
                                                    : fail(l, "expected %s, found '%s'", expected_of(l->dtype), word);
    text = (tw_string){malloc(length + 1), length};
    if (!text.data)
        return fail(l, "out of memory");
    memcpy(text.data, word, length);
    return append(l, &text);
}

/* A list at l->at, `depth` lists deep. */
static bool take_list(list *l, int depth)
{
    int64_t members = 0;
    bool first = l->shape.rank <= depth; /* it says how long its neighbours are */
    if (depth == TW_MAX_RANK)
        return fail(l, "expected at most %d lists in each other", TW_MAX_RANK);
    if (first && l->count)
        return fail(l, "a list stands beside a number");
    if (first)
        l->shape.rank = depth + 1;
    l->at++;
    for (skip_blanks(l); *l->at && *l->at != ']'; members++) {
        bool is_list = *l->at == '[';
        if (!is_list && l->shape.rank > depth + 1)
            return fail(l, "a number stands beside a list");
        if (!(is_list ? take_list(l, depth + 1) : take_element(l)))
            return false;
        skip_blanks(l);
        if (*l->at == ',')
            l->at++;
        skip_blanks(l);
    }
    if (*l->at++ != ']')
        return fail(l, "expected ']' at the end of a list");
    if (first)
        l->shape.dims[depth] = members;
    else if (l->shape.dims[depth] != members)
        return fail(l, "one list has %lld members, its neighbour %lld", (long long)l->shape.dims[depth],
                    (long long)members);
    return true;
}

static tw_tensor *parse_list(tw_dtype dtype, const char *text, char *wrong, size_t size)
{
    list l = {.at = text, .dtype = dtype, .wrong = wrong, .wrong_size = size};
    tw_tensor *tensor = NULL;
    bool good = take_list(&l, 0);
    if (good) /* else it may have come to the end */
        skip_blanks(&l);
    if (good && *l.at)
        good = fail(&l, "expected nothing behind the list, found '%.20s'", l.at);
    if (good && !(tensor = tw_tensor_from(dtype, l.shape, l.elements ? l.elements : "")))
        fail(&l, "out of memory");
    for (int64_t i = 0; dtype == TW_STRING && i < l.count; i++)
        free(((tw_string *)(void *)l.elements)[i].data);
    free(l.elements);
    return tensor;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static tw_tensor *filled_with_text(tw_shape shape, tw_string text)
{
    tw_tensor *tensor = tw_tensor_create(TW_STRING, shape);
    for (int64_t i = 0; tensor && i < tw_tensor_elements(tensor); i++)
        if (tw_tensor_set_string(tensor, i, text.data, text.size) != TW_OK) {
            tw_tensor_release(tensor);
            return NULL;
        }
    return tensor;
}

static tw_tensor *parse_text(tw_shape shape, const char *text, char *wrong, size_t size)
{
    list l = {.at = text, .dtype = TW_STRING, .wrong = wrong, .wrong_size = size};
    size_t length = strlen(text);
    tw_string quoted;
    if (length < 2 || *text != '"' || text[length - 1] != '"')
        return filled_with_text(shape, (tw_string){(char *)text, length});
    if (!take_quoted(&l, &quoted))
        return NULL;
    tw_tensor *tensor = filled_with_text(shape, quoted);
    free(quoted.data);
    return tensor;
}

tw_tensor *value_parse(tw_dtype dtype, tw_shape shape, const char *text, char *wrong, size_t size)
{
    element value;
    *wrong = 0;
    if (tw_dtype_size(dtype) == 0 || dtype == TW_RESOURCE || dtype == TW_VARIANT) {
        snprintf(wrong, size, "values of this type cannot be typed");
        return NULL;
    }
    if (*text == '[')
        return parse_list(dtype, text, wrong, size);
    if (shape.rank < 0)
        shape = TW_SCALAR;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = shape.dims[i] < 0 ? 1 : shape.dims[i];
    if (dtype == TW_STRING)
        return parse_text(shape, text, wrong, size);
    if (!parse_number(dtype, text, &value)) {
        snprintf(wrong, size, "expected %s, found '%.200s'", expected_of(dtype), text);
        return NULL;
    }
    size_t bytes = tw_dtype_size(dtype);
    tw_tensor *tensor = tw_tensor_create(dtype, shape);
    for (int64_t i = 0; tensor && i < tw_tensor_elements(tensor); i++)
        memcpy((char *)tw_tensor_data(tensor) + (size_t)i * bytes, &value, bytes);
    if (!tensor)
        snprintf(wrong, size, "out of memory");
    return tensor;
}

static int64_t integer_at(const tw_tensor *tensor, int64_t i);

tw_tensor *value_convert(tw_tensor *tensor, tw_dtype dtype, char *wrong, size_t size)
{
    tw_dtype from = tw_tensor_dtype(tensor);
    const integer_type *integer = integer_of(dtype);
    size_t bytes = tw_dtype_size(dtype);
    *wrong = 0;
    if (from == dtype)
        return tensor;
    if (from == TW_STRING || dtype == TW_STRING || from == TW_RESOURCE || dtype == TW_RESOURCE || dtype == TW_VARIANT ||
        (tw_dtype_is_complex(from) && !tw_dtype_is_complex(dtype)))
        snprintf(wrong, size, "expected %s, found %s", tw_dtype_name(dtype), tw_dtype_name(from));
    tw_tensor *made = *wrong ? NULL : tw_tensor_create(dtype, tw_tensor_shape(tensor));
    for (int64_t i = 0; made && !*wrong && i < tw_tensor_elements(tensor); i++) {
        element value = {0};
        double number = tw_tensor_value(tensor, i);
        bool fits = integer
                        ? number == floor(number) && number >= (double)integer->least && number < (double)integer->most + 1
                    : tw_dtype_is_complex(dtype)
                        ? store_complex(dtype, number, tw_tensor_imaginary(tensor, i), &value)
                        : store_float(dtype, number, &value);
        if (fits && integer)
            store_integer(dtype,
                          integer_of(from) ? integer_at(tensor, i)
                          : number < 0     ? (int64_t)number
                                           : (int64_t)(uint64_t)number,
                          &value);
        if (!fits)
            snprintf(wrong, size, "expected %s, found %.17g", expected_of(dtype), number);
        memcpy((char *)tw_tensor_data(made) + (size_t)i * bytes, &value, bytes);
    }
    if (!made && !*wrong)
        snprintf(wrong, size, "out of memory");
    tw_tensor_release(tensor);
    if (!*wrong)
        return made;
    tw_tensor_release(made);
    return NULL;
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

/* Digits that tell a value of the type from its neighbours. */
static int digits_of(tw_dtype dtype)
{
    return dtype == TW_FLOAT64 || dtype == TW_COMPLEX128 ? 17 : 9;
}

/* All of an int64, which a double need not hold; of a uint64 its bits. */
static int64_t integer_at(const tw_tensor *tensor, int64_t i)
{
    return tw_tensor_dtype(tensor) == TW_INT64 || tw_tensor_dtype(tensor) == TW_UINT64
               ? ((const int64_t *)tw_tensor_data(tensor))[i]
               : (int64_t)tw_tensor_value(tensor, i);
}

static void print_string(const tw_string *string)
{
    const char *data = string->data ? string->data : "";
    putchar('\'');
    for (size_t i = 0; i < string->size;) {
        unsigned char c = (unsigned char)data[i];
        size_t length = json_utf8_length(data + i, string->size - i);
        if (length == 0 || c < 0x20 || c == 0x7F)
            printf("\\x%02x", c);
        else
            fwrite(data + i, 1, length, stdout);
        i += length ? length : 1;
    }
    putchar('\'');
}

/* One that is not a number has no sign here, whatever its bits say. */
static double unsigned_nan(double number)
{
    return isnan(number) ? NAN : number;
}

void value_print(const tw_tensor *tensor, int64_t i)
{
    tw_dtype dtype = tw_tensor_dtype(tensor);
    if (dtype == TW_STRING)
        print_string((const tw_string *)tw_tensor_data(tensor) + i);
    else if (dtype == TW_UINT64)
        printf("%" PRIu64, (uint64_t)integer_at(tensor, i));
    else if (integer_of(dtype))
        printf("%" PRId64, integer_at(tensor, i));
    else
        printf("%.*g", digits_of(dtype), unsigned_nan(tw_tensor_value(tensor, i)));
    if (tw_dtype_is_complex(dtype))
        printf("%+.*gj", digits_of(dtype), unsigned_nan(tw_tensor_imaginary(tensor, i)));
}

void value_json(json *out, const char *key, const tw_tensor *tensor, int64_t i)
{
    tw_dtype dtype = tw_tensor_dtype(tensor);
    const tw_string *strings = tw_tensor_data(tensor);
    if (dtype == TW_STRING)
        json_bytes(out, key, strings[i].data, strings[i].size);
    else if (dtype == TW_UINT64)
        json_unsigned(out, key, (uint64_t)integer_at(tensor, i));
    else if (integer_of(dtype))
        json_integer(out, key, integer_at(tensor, i));
    else if (tw_dtype_is_complex(dtype)) {
        json_begin(out, key, '[');
        json_real(out, NULL, tw_tensor_value(tensor, i), digits_of(dtype));
        json_real(out, NULL, tw_tensor_imaginary(tensor, i), digits_of(dtype));
        json_end(out);
    } else
        json_real(out, key, tw_tensor_value(tensor, i), digits_of(dtype));
}
