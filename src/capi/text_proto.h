/* text_proto.h - protobuf's text format, made into what lies on the wire: the other way in for messages that people
 * write. Tables say which fields a message has. */
#ifndef CAPI_TEXT_PROTO_H
#define CAPI_TEXT_PROTO_H

#include <tensorflow/c/c_api.h>

#include "wire.h"

typedef struct text_field {
    const char *name; /* NULL: the end of the table */
    int number;
    enum { TEXT = 1, WHOLE, REAL, DOUBLE, TYPE_NAME, WORD, MESSAGE } kind; /* WHOLE: of bools, too */
    const struct text_field *fields;                               /* of a message */
    const char *const *words;                                      /* of an enumeration from 0, ending with NULL */
} text_field;

extern const text_field attr_value_text[]; /* an AttrValue, but for those that are functions */

/* Appends a message's fields. False: the status says in which line what is wrong. Beside texts in quotes there are
 * those that end before a line that begins with a word: `description: <<END`. */
bool text_to_wire(const text_field *fields, const char *text, size_t size, wire *w, TF_Status *status);

#endif
