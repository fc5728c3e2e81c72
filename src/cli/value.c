/* value.c - see value.h. */
#include "value.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
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
} element;

typedef struct integer_type {
    tw_dtype dtype;
    int64_t least, most;
    const char *expected;
} integer_type;

static const integer_type integers[] = {
    {TW_INT8, INT8_MIN, INT8_MAX, "a whole number from -128 to 127"},
    {TW_UINT8, 0, UINT8_MAX, "a whole number from 0 to 255"},
    {TW_INT16, INT16_MIN, INT16_MAX, "a whole number from -32768 to 32767"},
    {TW_INT32, INT32_MIN, INT32_MAX, "a whole number from -2147483648 to 2147483647"},
    {TW_INT64, INT64_MIN, INT64_MAX, "a whole number from -9223372036854775808 to 9223372036854775807"},
    {TW_BOOL, 0, 1, "0 or 1"},
};

static const integer_type *integer_of(tw_dtype dtype)
{
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (integers[i].dtype == dtype)
            return &integers[i];
    return NULL;
}

static bool parse_integer(const integer_type *type, const char *text, element *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || number < type->least || number > type->most)
        return false;
    switch (type->dtype) {
    case TW_INT16:
        value->int16 = (int16_t)number;
        break;
    case TW_INT32:
        value->int32 = (int32_t)number;
        break;
    case TW_INT64:
        value->int64 = number;
        break;
    default: /* a byte */
        value->uint8 = (uint8_t)number;
    }
    return true;
}

/* A finite number that would become infinite is none of the type's. */
static bool parse_float(tw_dtype dtype, const char *text, element *value)
{
    char *end;
    double number = strtod(text, &end), stored = number;
    if (end == text || *end)
        return false;
    bool meant = strpbrk(text, "nN"); /* inf, infinity, nan */
    if (dtype == TW_FLOAT64)
        value->float64 = number;
    else if (dtype == TW_FLOAT32)
        stored = value->float32 = (float)number;
    else if (dtype == TW_FLOAT16)
        stored = tw_half_to_float(value->half = tw_float_to_half((float)number));
    else
        stored = tw_bfloat16_to_float(value->half = tw_float_to_bfloat16((float)number));
    return meant || isfinite(stored);
}

static tw_tensor *filled_with_text(tw_shape shape, const char *text)
{
    tw_tensor *tensor = tw_tensor_create(TW_STRING, shape);
    for (int64_t i = 0; tensor && i < tw_tensor_elements(tensor); i++)
        if (tw_tensor_set_string(tensor, i, text, strlen(text)) != TW_OK) {
            tw_tensor_release(tensor);
            return NULL;
        }
    return tensor;
}

tw_tensor *value_filled(tw_dtype dtype, tw_shape shape, const char *text, const char **expected)
{
    element value;
    const integer_type *integer = integer_of(dtype);
    *expected = NULL;
    if (dtype == TW_STRING)
        return filled_with_text(tw_shape_is_known(shape) ? shape : TW_SCALAR, text);
    if (dtype == TW_RESOURCE || dtype == TW_INVALID_DTYPE)
        return NULL;
    if (integer ? !parse_integer(integer, text, &value) : !parse_float(dtype, text, &value)) {
        *expected = integer ? integer->expected : dtype == TW_FLOAT64 ? "a number" : "a number that the type can hold";
        return NULL;
    }
    size_t size = tw_dtype_size(dtype);
    tw_tensor *tensor = tw_tensor_create(dtype, shape);
    for (int64_t i = 0; tensor && i < tw_tensor_elements(tensor); i++)
        memcpy((char *)tw_tensor_data(tensor) + (size_t)i * size, &value, size);
    return tensor;
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

/* Digits that tell a value of the type from its neighbours. */
static int digits_of(tw_dtype dtype)
{
    return dtype == TW_FLOAT64 ? 17 : 9;
}

/* All of an int64, which a double need not hold. */
static int64_t integer_at(const tw_tensor *tensor, int64_t i)
{
    return tw_tensor_dtype(tensor) == TW_INT64 ? ((const int64_t *)tw_tensor_data(tensor))[i]
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

void value_print(const tw_tensor *tensor, int64_t i)
{
    tw_dtype dtype = tw_tensor_dtype(tensor);
    if (dtype == TW_STRING)
        print_string((const tw_string *)tw_tensor_data(tensor) + i);
    else if (integer_of(dtype))
        printf("%" PRId64, integer_at(tensor, i));
    else
        printf("%.*g", digits_of(dtype), tw_tensor_value(tensor, i));
}

void value_json(json *out, const char *key, const tw_tensor *tensor, int64_t i)
{
    tw_dtype dtype = tw_tensor_dtype(tensor);
    const tw_string *strings = tw_tensor_data(tensor);
    if (dtype == TW_STRING)
        json_bytes(out, key, strings[i].data, strings[i].size);
    else if (integer_of(dtype))
        json_integer(out, key, integer_at(tensor, i));
    else
        json_real(out, key, tw_tensor_value(tensor, i), digits_of(dtype));
}
