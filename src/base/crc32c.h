/* crc32c.h - CRC-32C (Castagnoli), the checksum of record files, event files and checkpoints. */
#ifndef TWI_CRC32C_H
#define TWI_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of what `crc` covers (0: nothing yet) followed by these bytes. */
uint32_t twi_crc32c(uint32_t crc, const void *bytes, size_t size);

/* The same without the processor's instruction; for tests. */
uint32_t twi_crc32c_by_table(uint32_t crc, const void *bytes, size_t size);

/* Checksums are stored masked, so that a checksum over bytes that hold checksums stays a good one: rotated right by
 * 15 bits, plus a constant. */
static inline uint32_t twi_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Whether what is stored is the masked form of the checksum. Fuzzers' builds take any for good: inputs that are drawn
 * would never get past it. */
bool twi_crc32c_matches(uint32_t stored, uint32_t crc);

#endif
