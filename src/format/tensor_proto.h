/* tensor_proto.h - tensors, shapes and types as messages: TensorProto, TensorShapeProto. */
#ifndef TWI_TENSOR_PROTO_H
#define TWI_TENSOR_PROTO_H

#include "base/arena.h"
#include "format/proto/tensor.pb-c.h"

#include <stdbool.h>
#include <tower/tensor.h>

/* Into messages that live in the arena and borrow the tensor's values. NULL when out of memory. */
Twi__TensorShapeProto *twi_shape_to_proto(twi_arena *arena, tw_shape shape);
ProtobufCBinaryData *twi_strings_to_proto(twi_arena *arena, const tw_tensor *tensor); /* its elements */
Twi__TensorProto *twi_tensor_to_proto(twi_arena *arena, const tw_tensor *tensor);
/* Into a message's bytes; false when out of memory. */
bool twi_tensor_to_text(const tw_tensor *tensor, tw_string *text);

/* Out of messages that may be hostile. A shape NULL stands for an empty one, as on the wire. */
tw_status twi_dtype_from_proto(int32_t number, tw_dtype *dtype, tw_error *error);
tw_status twi_shape_from_proto(const Twi__TensorShapeProto *proto, tw_shape *shape, tw_error *error);
/* *tensor is yours. A list that is shorter than the tensor (its last value is repeated) makes much of few bytes: what
 * it makes is taken from *spare_bytes, and refused when that is used up. */
tw_status twi_tensor_from_proto(const Twi__TensorProto *proto, size_t *spare_bytes, tw_tensor **tensor,
                                tw_error *error);

#endif
