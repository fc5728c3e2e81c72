/* crc32c.c - CRC-32C: polynomial 0x1EDC6F41, bits reflected, starting and ending with all ones.
 * Lives here:  one way by table for every processor, one by instruction for those that have it.
 * Never here:  file formats. */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* table[k][b] is the remainder of byte b followed by k zero bytes, so eight bytes are folded with eight look-ups that
 * do not wait for each other. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int k = 0; k < 8; k++) {
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
            table[k][byte] = crc;
        }
    }
}

uint32_t twi_crc32c_by_table(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    pthread_once(&table_once, fill_table);
    crc = ~crc;
    for (; size >= 8; p += 8, size -= 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = table[7][crc & 255] ^ table[6][crc >> 8 & 255] ^ table[5][crc >> 16 & 255] ^ table[4][crc >> 24] ^
              table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; size > 0; p++, size--)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 255];
    return ~crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
    uint64_t wide = ~crc;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size > 0; p++, size--)
        crc = _mm_crc32_u8(crc, *p);
    return ~crc;
}

#elif defined(__ARM_FEATURE_CRC32)

#include <arm_acle.h>

static bool has_instruction(void)
{
    return true;
}

static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
    crc = ~crc;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        crc = __crc32cd(crc, word);
    }
    for (; size > 0; p++, size--)
        crc = __crc32cb(crc, *p);
    return ~crc;
}

#else

static bool has_instruction(void)
{
    return false;
}

#define by_instruction twi_crc32c_by_table

#endif

uint32_t twi_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    return has_instruction() ? by_instruction(crc, bytes, size) : twi_crc32c_by_table(crc, bytes, size);
}

bool twi_crc32c_matches(uint32_t stored, uint32_t crc)
{
#ifdef TOWER_FUZZING
    (void)stored, (void)crc;
    return true;
#else
    return stored == twi_crc32c_mask(crc);
#endif
}
