/* packing.h - values that own memory, strings and lists of tensors, as bytes, for messages between tasks: all of them
 * are of one program on machines of one kind, so numbers lie as they are in memory. */
#ifndef TWI_PACKING_H
#define TWI_PACKING_H

#include "base/text.h"
#include "tensor/variant.h"

/* Of type TW_STRING or TW_VARIANT, behind what is packed already; to be freed also after a failure. False: memory has
 * run out. */
bool twi_pack_values(tw_dtype dtype, const void *values, size_t count, twi_text *packed);
/* The same values again, in place of those that are there, which are let go. `what` is what messages call them. */
tw_status twi_unpack_values(const char *bytes, size_t size, tw_dtype dtype, void *values, size_t count, const char *what,
                     tw_error *error);

#endif
