/* little_endian.h - numbers as these file formats lay them out, whatever the machine's order. */
#ifndef TWI_LITTLE_ENDIAN_H
#define TWI_LITTLE_ENDIAN_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t twi_get32(const void *bytes)
{
    const uint8_t *p = bytes;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t twi_get64(const void *bytes)
{
    return twi_get32(bytes) | (uint64_t)twi_get32((const uint8_t *)bytes + 4) << 32;
}

static inline void twi_put32(void *bytes, uint32_t value)
{
    uint8_t *p = bytes;
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static inline void twi_put64(void *bytes, uint64_t value)
{
    twi_put32(bytes, (uint32_t)value);
    twi_put32((uint8_t *)bytes + 4, (uint32_t)(value >> 32));
}

#define TWI_VARINT_BYTES 10 /* at most */

/* Seven bits a byte, lowest first, the top bit set on all but the last. Returns the number of bytes. */
static inline int twi_put_varint(void *bytes, uint64_t value)
{
    uint8_t *p = bytes;
    int size = 0;
    for (; value >= 128; value >>= 7)
        p[size++] = (uint8_t)(value | 128);
    p[size++] = (uint8_t)value;
    return size;
}

/* Reads one between *at and end and moves *at behind it. Only the shortest spelling of a number counts as one: then
 * no bit of a file can change without changing what it says. */
static inline bool twi_get_varint(const char **at, const char *end, uint64_t *value)
{
    uint64_t result = 0;
    const char *p = *at;
    for (int shift = 0; shift < 64 && p < end; shift += 7) {
        uint64_t byte = (uint8_t)*p++;
        if (shift == 63 && byte > 1)
            return false;
        result |= (byte & 127) << shift;
        if (byte < 128) {
            if (byte == 0 && shift > 0)
                return false;
            *at = p;
            *value = result;
            return true;
        }
    }
    return false;
}

#endif
