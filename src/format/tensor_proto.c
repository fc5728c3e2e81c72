/* tensor_proto.c - see tensor_proto.h. */
#include "format/tensor_proto.h"

#include "base/status.h"
#include "tensor/tensor.h" /* twi_put_integer() */

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor_content is little-endian, and nothing here swaps bytes"
#endif

/* ---- into messages --------------------------------------------------------------------------------------------- */

Twi__TensorShapeProto *twi_shape_to_proto(twi_arena *arena, tw_shape shape)
{
    int rank = shape.rank < 0 ? 0 : shape.rank;
    Twi__TensorShapeProto *proto = twi_arena_alloc(arena, sizeof *proto);
    Twi__TensorShapeProto__Dim *dims = twi_arena_alloc(arena, sizeof *dims * (size_t)rank);
    Twi__TensorShapeProto__Dim **list = twi_arena_alloc(arena, sizeof *list * (size_t)rank);
    if (!proto || !dims || !list)
        return NULL;
    twi__tensor_shape_proto__init(proto);
    proto->unknown_rank = shape.rank < 0;
    proto->n_dim = (size_t)rank;
    proto->dim = list;
    for (int i = 0; i < rank; i++) {
        twi__tensor_shape_proto__dim__init(&dims[i]);
        dims[i].size = shape.dims[i];
        list[i] = &dims[i];
    }
    return proto;
}

ProtobufCBinaryData *twi_strings_to_proto(twi_arena *arena, const tw_tensor *tensor)
{
    size_t count = (size_t)tw_tensor_elements(tensor);
    const tw_string *strings = tw_tensor_data(tensor);
    ProtobufCBinaryData *list = twi_arena_alloc(arena, sizeof *list * count);
    for (size_t i = 0; i < count && list; i++)
        list[i] = (ProtobufCBinaryData){strings[i].size, (uint8_t *)strings[i].data};
    return list;
}

Twi__TensorProto *twi_tensor_to_proto(twi_arena *arena, const tw_tensor *tensor)
{
    Twi__TensorProto *proto = twi_arena_alloc(arena, sizeof *proto);
    if (!proto)
        return NULL;
    twi__tensor_proto__init(proto);
    proto->dtype = (int32_t)tw_tensor_dtype(tensor);
    proto->tensor_shape = twi_shape_to_proto(arena, tw_tensor_shape(tensor));
    if (!proto->tensor_shape)
        return NULL;
    if (tw_tensor_dtype(tensor) != TW_STRING) {
        proto->tensor_content = (ProtobufCBinaryData){tw_tensor_bytes(tensor), tw_tensor_data(tensor)};
        return proto;
    }
    proto->n_string_val = (size_t)tw_tensor_elements(tensor);
    proto->string_val = twi_strings_to_proto(arena, tensor);
    return proto->string_val ? proto : NULL;
}

bool twi_tensor_to_text(const tw_tensor *tensor, tw_string *text)
{
    twi_arena arena = {0};
    const Twi__TensorProto *proto = twi_tensor_to_proto(&arena, tensor);
    size_t size = proto ? twi__tensor_proto__get_packed_size(proto) : 0;
    uint8_t *bytes = proto ? twi_arena_alloc(&arena, size + 1) : NULL;
    bool done = bytes && twi__tensor_proto__pack(proto, bytes) == size && twi_string_set(text, bytes, size);
    twi_arena_free(&arena);
    return done;
}

/* ---- out of messages ------------------------------------------------------------------------------------------- */

tw_status twi_dtype_from_proto(int32_t number, tw_dtype *dtype, tw_error *error)
{
    *dtype = (tw_dtype)number;
    if (tw_dtype_size(*dtype))
        return TW_OK;
    return twi_fail(error, TW_UNIMPLEMENTED, "data type %d is not one of Tower's", (int)number);
}

tw_status twi_shape_from_proto(const Twi__TensorShapeProto *proto, tw_shape *shape, tw_error *error)
{
    *shape = TW_SCALAR;
    if (proto && proto->unknown_rank) {
        *shape = TW_UNKNOWN_SHAPE;
        return proto->n_dim ? twi_fail(error, TW_INVALID_ARGUMENT, "a shape of unknown rank has dimensions") : TW_OK;
    }
    if (!proto)
        return TW_OK;
    if (proto->n_dim > TW_MAX_RANK)
        return twi_fail(error, TW_UNIMPLEMENTED, "a shape has %zu dimensions, at most %d are supported", proto->n_dim,
                        TW_MAX_RANK);
    shape->rank = (int)proto->n_dim;
    for (int i = 0; i < shape->rank; i++) {
        shape->dims[i] = proto->dim[i]->size;
        if (shape->dims[i] < -1)
            return twi_fail(error, TW_INVALID_ARGUMENT, "dimension %d of a shape is %lld", i,
                            (long long)shape->dims[i]);
    }
    return TW_OK;
}

/* The list that holds values of this dtype: how many there are. */
static size_t list_length(const Twi__TensorProto *proto, tw_dtype dtype)
{
    switch (dtype) {
    case TW_FLOAT32:
        return proto->n_float_val;
    case TW_FLOAT64:
        return proto->n_double_val;
    case TW_INT32:
    case TW_INT16:
    case TW_INT8:
    case TW_UINT8:
    case TW_UINT16:
    case TW_QINT32:
    case TW_QINT16:
    case TW_QUINT16:
    case TW_QINT8:
    case TW_QUINT8:
        return proto->n_int_val;
    case TW_COMPLEX64: /* real and imaginary parts by turns */
        return proto->n_scomplex_val / 2;
    case TW_COMPLEX128:
        return proto->n_dcomplex_val / 2;
    case TW_INT64:
        return proto->n_int64_val;
    case TW_UINT32:
        return proto->n_uint32_val;
    case TW_UINT64:
        return proto->n_uint64_val;
    case TW_BOOL:
        return proto->n_bool_val;
    case TW_FLOAT16:
    case TW_BFLOAT16:
        return proto->n_half_val;
    default: /* TW_STRING; others have no constants */
        return proto->n_string_val;
    }
}

/* Element i := the list's value number k. False when out of memory. */
static bool set_element(tw_tensor *tensor, int64_t i, const Twi__TensorProto *proto, size_t k)
{
    void *data = tw_tensor_data(tensor);
    switch (tw_tensor_dtype(tensor)) {
    case TW_FLOAT32:
        ((float *)data)[i] = proto->float_val[k];
        return true;
    case TW_FLOAT64:
        ((double *)data)[i] = proto->double_val[k];
        return true;
    case TW_COMPLEX64:
        memcpy((float *)data + 2 * i, proto->scomplex_val + 2 * k, 2 * sizeof(float));
        return true;
    case TW_COMPLEX128:
        memcpy((double *)data + 2 * i, proto->dcomplex_val + 2 * k, 2 * sizeof(double));
        return true;
    case TW_INT64:
        ((int64_t *)data)[i] = proto->int64_val[k];
        return true;
    case TW_UINT32:
        ((uint32_t *)data)[i] = proto->uint32_val[k];
        return true;
    case TW_UINT64:
        ((uint64_t *)data)[i] = proto->uint64_val[k];
        return true;
    case TW_BOOL:
        ((uint8_t *)data)[i] = proto->bool_val[k] != 0;
        return true;
    case TW_FLOAT16:
    case TW_BFLOAT16:
        ((uint16_t *)data)[i] = (uint16_t)proto->half_val[k];
        return true;
    case TW_STRING:
        return tw_tensor_set_string(tensor, i, (char *)proto->string_val[k].data, proto->string_val[k].len) == TW_OK;
    default: /* the other integers, which have a list together */
        twi_put_integer(tw_tensor_dtype(tensor), data, i, proto->int_val[k]);
        return true;
    }
}

/* What the values would take beyond what their message takes. */
static size_t extra_bytes(const Twi__TensorProto *proto, tw_dtype dtype, size_t count, size_t length)
{
    size_t bytes = count * tw_dtype_size(dtype), present = length * tw_dtype_size(dtype);
    if (dtype == TW_STRING && length && count > length)
        bytes += (count - length) * proto->string_val[length - 1].len;
    return bytes > present ? bytes - present : 0;
}

static tw_status check_size(const Twi__TensorProto *proto, tw_dtype dtype, tw_shape shape, size_t *spare_bytes,
                            tw_error *error)
{
    char text[128];
    int64_t count = tw_shape_elements(shape);
    tw_shape_text(shape, text, sizeof text);
    if (count < 0) /* not known, or more than there can be bytes for */
        return twi_fail(error, TW_INVALID_ARGUMENT, "a constant has the shape %s", text);
    size_t content = dtype == TW_STRING ? 0 : proto->tensor_content.len, wanted = (size_t)count * tw_dtype_size(dtype);
    if (content && content != wanted)
        return twi_fail(error, TW_INVALID_ARGUMENT, "a constant of %s %s has %zu bytes of content, expected %zu",
                        tw_dtype_name(dtype), text, content, wanted);
    size_t extra = content ? 0 : extra_bytes(proto, dtype, (size_t)count, list_length(proto, dtype));
    if (extra > *spare_bytes)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                        "a constant of %s %s has few values in the file, to be repeated: the constants of one file may "
                        "grow by %zu more bytes",
                        tw_dtype_name(dtype), text, *spare_bytes);
    *spare_bytes -= extra;
    return TW_OK;
}

tw_status twi_tensor_from_proto(const Twi__TensorProto *proto, size_t *spare_bytes, tw_tensor **tensor, tw_error *error)
{
    tw_dtype dtype;
    tw_shape shape;
    tw_status status = twi_dtype_from_proto(proto->dtype, &dtype, error);
    if (status == TW_OK && (dtype == TW_RESOURCE || dtype == TW_VARIANT))
        status = twi_fail(error, TW_UNIMPLEMENTED, "a constant is a handle, which only the process has that wrote it");
    if (status == TW_OK)
        status = twi_shape_from_proto(proto->tensor_shape, &shape, error);
    if (status == TW_OK)
        status = check_size(proto, dtype, shape, spare_bytes, error);
    if (status != TW_OK)
        return status;
    tw_tensor *made = tw_tensor_create(dtype, shape);
    if (!made)
        return twi_fail_memory(error, "reading a constant");
    size_t length = list_length(proto, dtype);
    int64_t count = tw_tensor_elements(made);
    if (dtype != TW_STRING && proto->tensor_content.len) {
        memcpy(tw_tensor_data(made), proto->tensor_content.data, proto->tensor_content.len);
        for (int64_t i = 0; dtype == TW_BOOL && i < count; i++)
            ((uint8_t *)tw_tensor_data(made))[i] = ((uint8_t *)tw_tensor_data(made))[i] != 0;
    } else if (length) {
        for (int64_t i = 0; i < count; i++)
            if (!set_element(made, i, proto, (size_t)i < length ? (size_t)i : length - 1)) {
                tw_tensor_release(made);
                return twi_fail_memory(error, "reading a constant");
            }
    }
    *tensor = made;
    return TW_OK;
}
