/* inflate.h - files and bytes that zlib has packed: those that are named "GZIP" or "ZLIB" where TensorFlow reads
 * files. */
#ifndef TWI_INFLATE_H
#define TWI_INFLATE_H

#include "base/file.h"

/* A way to pack files, "GZIP" or "ZLIB", or "", which says that they are not packed, as a text that stays. NULL:
 * another one. */
const char *twi_packing(const char *kind);

/* Opens a file that is packed so, one piece after the other; what comes of it is kept in memory. TW_DATA_LOSS: it is
 * not, or cut short; TW_RESOURCE_EXHAUSTED: more than 4 GiB come of it; TW_INVALID_ARGUMENT: there is no such kind. */
tw_status twi_file_open_packed(const char *path, const char *kind, twi_file_reader **reader, tw_error *error);

/* What was packed so, as bytes that are yours: twi_free(). `name` is for messages; errors are the same. Of nothing
 * comes nothing. */
tw_status twi_inflate(const char *name, const char *kind, const char *packed, size_t packed_size, char **bytes,
                      size_t *size, tw_error *error);

#endif
