/* text_format.h - messages in protobuf's text format (graph.pbtxt), made into what lies on the wire, so that there is
 * one reader of each message. */
#ifndef TWI_TEXT_FORMAT_H
#define TWI_TEXT_FORMAT_H

#include "base/text.h"

#include <protobuf-c/protobuf-c.h>

/* Appends the message to *wire. TW_INVALID_ARGUMENT, with the line, for what is not in the format or not of a field's
 * type; fields that `kind` does not have are passed over. */
tw_status twi_text_to_wire(const ProtobufCMessageDescriptor *kind, const char *text, size_t size, twi_text *wire,
                           tw_error *error);

/* The first word of a text if that begins like a message: a name, and ':', '{' or '<' behind it. word[size] is "" if it
 * does not. */
void twi_text_first_field(const char *text, size_t text_size, char *word, size_t size);

#endif
