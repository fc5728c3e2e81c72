/* tfrecord.h - files of records, as TensorFlow frames them: data sets and event files.
 *
 *     8 bytes  length L, little-endian
 *     4 bytes  masked CRC-32C of these 8
 *     L bytes  data
 *     4 bytes  masked CRC-32C of the data
 */
#ifndef TWI_TFRECORD_H
#define TWI_TFRECORD_H

#include "base/file.h"

/* Appends one record; errors latch on the file. */
void twi_record_write(twi_file_writer *file, const void *bytes, size_t size);

typedef struct twi_record_reader twi_record_reader;
tw_status twi_record_open(const char *path, twi_record_reader **reader, tw_error *error);
/* Of a file that may be packed: "GZIP", "ZLIB", or "". Offsets are those of what comes of it. */
tw_status twi_record_open_packed(const char *path, const char *kind, twi_record_reader **reader, tw_error *error);
/* The next record, borrowed until the next call. TW_OUT_OF_RANGE after the last one; TW_DATA_LOSS, with the offset of
 * the record in the message, for one that is cut short or does not match its checksums. A record that failed is met
 * again by the next call: nothing behind it can be trusted. */
tw_status twi_record_next(twi_record_reader *reader, const char **bytes, size_t *size, tw_error *error);
uint64_t twi_record_offset(const twi_record_reader *reader);      /* in the file, of the record that comes next */
void twi_record_seek(twi_record_reader *reader, uint64_t offset); /* to a value twi_record_offset() gave */
void twi_record_close(twi_record_reader *reader);                 /* NULL is fine */

#endif
