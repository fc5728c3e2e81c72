/* wire.h - the fields of a message of protocol buffers, one after the other where they lie: for who looks for a few of
 * them, and for messages from outside that would take many times their size when they are unpacked. */
#ifndef TWI_WIRE_H
#define TWI_WIRE_H

#include "base/little_endian.h"

#include <stddef.h>
#include <stdint.h>

typedef enum twi_wire { TWI_VARINT = 0, TWI_FIXED64 = 1, TWI_BYTES = 2, TWI_FIXED32 = 5 } twi_wire;

typedef struct twi_field {
    uint64_t number;
    twi_wire wire;
    uint64_t value;    /* of a varint */
    const char *bytes; /* of all others */
    size_t size;
} twi_field;

/* 1, or 0 at the end, or -1 where the bytes are none. */
static inline int twi_next_field(const char **at, const char *end, twi_field *f)
{
    uint64_t tag;
    if (*at == end)
        return 0;
    if (!twi_get_varint(at, end, &tag))
        return -1;
    f->number = tag >> 3;
    f->wire = (twi_wire)(tag & 7);
    f->size = f->wire == TWI_FIXED64 ? 8 : f->wire == TWI_FIXED32 ? 4 : 0;
    if (f->wire == TWI_VARINT)
        return twi_get_varint(at, end, &f->value) ? 1 : -1;
    if (f->wire == TWI_BYTES) {
        uint64_t size;
        if (!twi_get_varint(at, end, &size) || size > (uint64_t)(end - *at))
            return -1;
        f->size = (size_t)size;
    } else if (f->size == 0 || f->size > (size_t)(end - *at)) {
        return -1;
    }
    f->bytes = *at;
    *at += f->size;
    return 1;
}

#endif
