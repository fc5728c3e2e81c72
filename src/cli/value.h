/* value.h - elements of tensors as the user types and reads them. Nothing is rounded on the way: integers have all
 * their digits, floats as many as tell them from their neighbours, and NaN and infinities are words. */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "json.h"

#include <tower/tensor.h>

/* A tensor of that type from what was typed: a number or a text, which stands in every place of `shape` (of which
 * dimensions that are not known are 1 then), or a list of lists as [[1, 2], [3, 4]], whose shape is its own. Texts in
 * lists may stand in quotes, with JSON's escapes ("a\u0000b"), and alone, too, if they begin and end with one. NULL:
 * then wrong[size] says what was expected and found. */
tw_tensor *value_parse(tw_dtype dtype, tw_shape shape, const char *text, char *wrong, size_t size);

/* The same numbers as another type, if that has them all: floats may be rounded, but not to infinity, and nothing
 * becomes a whole number that is none. Gives up the reference to `tensor`. */
tw_tensor *value_convert(tw_tensor *tensor, tw_dtype dtype, char *wrong, size_t size);

/* Element i: 3, 0.5, nan, -inf, 1.5-2j, or 'a text' in which what is not UTF-8 or cannot be printed is \xNN. */
void value_print(const tw_tensor *tensor, int64_t i);

/* The same as a member of JSON; NaN and infinities are "NaN", "Infinity" and "-Infinity", complex
 * numbers lists of their two parts. */
void value_json(json *out, const char *key, const tw_tensor *tensor, int64_t i);

#endif
