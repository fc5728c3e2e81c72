/* value.h - elements of tensors as the user types and reads them. Nothing is rounded on the way: integers have all their
 * digits, floats as many as tell them from their neighbours, and NaN and infinities are words. */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "json.h"

#include <tower/tensor.h>

/* A tensor of this type and shape with `text` in every place; NULL if it is no value of the type, and then *expected
 * says what is, or NULL if tensors of this type and shape cannot be typed (or memory runs out). Texts are taken as they
 * are. */
tw_tensor *value_filled(tw_dtype dtype, tw_shape shape, const char *text, const char **expected);

/* Element i: 3, 0.5, nan, -inf, or 'a text' in which what is not UTF-8 or cannot be printed is \xNN. */
void value_print(const tw_tensor *tensor, int64_t i);

/* The same as a member of JSON; NaN and infinities are "NaN", "Infinity" and "-Infinity". */
void value_json(json *out, const char *key, const tw_tensor *tensor, int64_t i);

#endif
