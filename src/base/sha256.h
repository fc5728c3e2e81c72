/* sha256.h - the hash SHA-256 (FIPS 180-4), by which downloads are recognised. */
#ifndef TWI_SHA256_H
#define TWI_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct twi_sha256 {
    uint32_t state[8];
    uint64_t size;     /* bytes so far */
    uint8_t block[64]; /* the last size mod 64 of them */
} twi_sha256;

enum { TWI_SHA256_TEXT = 65 }; /* 64 hexadecimal digits and the final 0 */

void twi_sha256_init(twi_sha256 *sha);
void twi_sha256_add(twi_sha256 *sha, const void *bytes, size_t size);
void twi_sha256_text(twi_sha256 *sha, char text[TWI_SHA256_TEXT]); /* the end: init before adding again */

#endif
