/* tensor.h - types, shapes and tensors: the values that go into and come out of a graph.
 *
 * A tw_tensor is a typed, shaped block of host memory with a reference count. Device memory never appears here: a
 * session copies feeds to devices and fetches back. */
#ifndef TOWER_TENSOR_H
#define TOWER_TENSOR_H

#include <tower/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*  X(NAME, number, bytes, "name")   The numbers are TensorFlow's DataType, the names those of its op list. An element
 *  of a complex type is its real part, then its imaginary part, as C's float _Complex and C++'s std::complex<float> are.
 *  Quantized types (QINT8 and so on) are integers of that size that stand for numbers of some range; they are carried,
 *  cast and compared, and ops called Quantized compute with them. Values of RESOURCE and VARIANT are handles of what a
 *  session has, and lists of tensors: edges of a graph have them, programs do not */
#define TW_DTYPE_LIST(X)                                                                                               \
    X(FLOAT32, 1, 4, "float")                                                                                          \
    X(FLOAT64, 2, 8, "double")                                                                                         \
    X(INT32, 3, 4, "int32")                                                                                            \
    X(UINT8, 4, 1, "uint8")                                                                                            \
    X(INT16, 5, 2, "int16")                                                                                            \
    X(INT8, 6, 1, "int8")                                                                                              \
    X(STRING, 7, 16, "string")                                                                                         \
    X(COMPLEX64, 8, 8, "complex64")                                                                                    \
    X(INT64, 9, 8, "int64")                                                                                            \
    X(BOOL, 10, 1, "bool")                                                                                             \
    X(QINT8, 11, 1, "qint8")                                                                                           \
    X(QUINT8, 12, 1, "quint8")                                                                                         \
    X(QINT32, 13, 4, "qint32")                                                                                         \
    X(BFLOAT16, 14, 2, "bfloat16")                                                                                     \
    X(QINT16, 15, 2, "qint16")                                                                                         \
    X(QUINT16, 16, 2, "quint16")                                                                                       \
    X(UINT16, 17, 2, "uint16")                                                                                         \
    X(COMPLEX128, 18, 16, "complex128")                                                                                \
    X(FLOAT16, 19, 2, "half")                                                                                          \
    X(RESOURCE, 20, 8, "resource")                                                                                     \
    X(VARIANT, 21, 8, "variant")                                                                                       \
    X(UINT32, 22, 4, "uint32")                                                                                         \
    X(UINT64, 23, 8, "uint64")

/* An element of TW_BOOL is 0 or 1; what ops make of other bytes is not defined. */
typedef enum tw_dtype {
    TW_INVALID_DTYPE = 0,
#define X(name, number, bytes, text) TW_##name = number,
    TW_DTYPE_LIST(X)
#undef X
} tw_dtype;

TW_API const char *tw_dtype_name(tw_dtype dtype);   /* "float"; "invalid" for unknown numbers */
TW_API size_t tw_dtype_size(tw_dtype dtype);        /* bytes of one element; 0 for unknown numbers */
TW_API tw_dtype tw_dtype_from_name(const char *name); /* also "float32", "float64", "float16"; TW_INVALID_DTYPE if unknown */

#define TW_MAX_RANK 12

/* A shape. rank -1: nothing is known; dims[i] -1: that dimension is not known. Passed by value. */
typedef struct tw_shape {
    int rank;
    int64_t dims[TW_MAX_RANK];
} tw_shape;

#define TW_SCALAR TW_VALUE(tw_shape, 0, {0})
#define TW_UNKNOWN_SHAPE TW_VALUE(tw_shape, -1, {0})

/* TW_SHAPE(128, 24, 24, 3) is the shape of these dimensions. */
#ifdef __cplusplus
#define TW_SHAPE(...) (tw_shape_of_dims_(__VA_ARGS__))
extern "C++" {
template <typename... Dims> inline tw_shape tw_shape_of_dims_(Dims... dims)
{
    return tw_shape{(int)sizeof...(dims), {(int64_t)dims...}};
}
}
#else
#define TW_SHAPE(...)                                                                                                  \
    ((tw_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#endif

TW_API bool tw_shape_is_known(tw_shape shape);              /* rank and every dimension */
TW_API bool tw_shape_equal(tw_shape a, tw_shape b);         /* unknown equals only unknown */
TW_API bool tw_shape_compatible(tw_shape a, tw_shape b);    /* could be the same once all is known */
TW_API int64_t tw_shape_elements(tw_shape shape);           /* product; 1 for scalars; -1 if not known or over 2^59, which
                                                               no memory holds, also if an axis of 0 hides that */
/* Writes "[128,24,24,3]", "[?,10]", "[]" or "<unknown>" into text, cut to size; returns text. */
TW_API char *tw_shape_text(tw_shape shape, char *text, size_t size);

/* An element of a TW_STRING tensor: bytes that may hold zeros, owned by the tensor. */
typedef struct tw_string {
    char *data;
    size_t size;
} tw_string;

typedef struct tw_tensor tw_tensor;

/* A new tensor of zeros (strings: empty). Yours: tw_tensor_release(). NULL when the shape is not fully known, its
 * size overflows, or memory runs out. Data is aligned to 64 bytes. */
TW_API tw_tensor *tw_tensor_create(tw_dtype dtype, tw_shape shape);

/* The same with the values copied from `values`, tw_tensor_bytes() of them (strings: an array of tw_string). */
TW_API tw_tensor *tw_tensor_from(tw_dtype dtype, tw_shape shape, const void *values);

/* A tensor over memory of yours; `release(user)` is called when the last reference goes (it may be NULL). */
TW_API tw_tensor *tw_tensor_wrap(tw_dtype dtype, tw_shape shape, void *values, void (*release)(void *user), void *user);

TW_API tw_tensor *tw_tensor_float(float value);             /* scalars; yours */
TW_API tw_tensor *tw_tensor_int32(int32_t value);
TW_API tw_tensor *tw_tensor_int64(int64_t value);
TW_API tw_tensor *tw_tensor_string(const char *text, size_t bytes);

TW_API tw_tensor *tw_tensor_retain(tw_tensor *tensor);      /* one more reference; returns tensor */
TW_API void tw_tensor_release(tw_tensor *tensor);           /* NULL is fine */

/* What a tensor is and where its values lie. */
TW_API tw_dtype tw_tensor_dtype(const tw_tensor *tensor);
TW_API tw_shape tw_tensor_shape(const tw_tensor *tensor);
TW_API int64_t tw_tensor_elements(const tw_tensor *tensor);
TW_API size_t tw_tensor_bytes(const tw_tensor *tensor);     /* elements x tw_dtype_size */
TW_API void *tw_tensor_data(const tw_tensor *tensor);       /* borrowed; row-major */

/* Replaces element i of a TW_STRING tensor by a copy of bytes. */
TW_API tw_status tw_tensor_set_string(tw_tensor *tensor, int64_t i, const char *data, size_t bytes);

/* Element i as a double whatever the numeric dtype, of a complex one its real part; NAN for strings. Convenience for
 * tests and printing. */
TW_API double tw_tensor_value(const tw_tensor *tensor, int64_t i);

/* The imaginary part of element i; 0 of types that have none. */
TW_API double tw_tensor_imaginary(const tw_tensor *tensor, int64_t i);

/* Whether elements of the type have an imaginary part. */
TW_API bool tw_dtype_is_complex(tw_dtype dtype);

/* Conversions of single values, rounding to nearest even. */
TW_API uint16_t tw_float_to_bfloat16(float value);
TW_API float tw_bfloat16_to_float(uint16_t bits);
TW_API uint16_t tw_float_to_half(float value);
TW_API float tw_half_to_float(uint16_t bits);

#ifdef __cplusplus
}
#endif
#endif
