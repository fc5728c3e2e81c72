/* packing.h - values that own memory, strings and lists of tensors, as bytes, for messages between tasks: all of them
 * are of one program on machines of one kind, so numbers lie as they are in memory. */
#ifndef TWI_PACKING_H
#define TWI_PACKING_H

#include "tensor/variant.h"

typedef struct twi_packed {
    char *bytes; /* to be freed by whoever has them packed, also after a failure */
    size_t size, room;
    bool failed; /* memory has run out */
} twi_packed;

/* Of type TW_STRING or TW_VARIANT. False: memory has run out. */
bool twi_pack_values(tw_dtype dtype, const void *values, size_t count, twi_packed *packed);
/* The same values again, in place of those that are there, which are let go. `what` is what messages call them. */
tw_status twi_unpack_values(const char *bytes, size_t size, tw_dtype dtype, void *values, size_t count, const char *what,
                     tw_error *error);

#endif
