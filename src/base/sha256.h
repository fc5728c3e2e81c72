/* sha256.h - the hash SHA-256 (FIPS 180-4) as text, which tells downloads and data sets apart. Nettle computes it,
 * by the processor's own instructions where there are any (1.3 GB/s): a training begins with the hash of its data. */
#ifndef TWI_SHA256_H
#define TWI_SHA256_H

#include <nettle/sha2.h>
#include <stddef.h>

typedef struct sha256_ctx twi_sha256;

enum { TWI_SHA256_TEXT = 65 }; /* 64 hexadecimal digits and the final 0 */

void twi_sha256_init(twi_sha256 *sha);
void twi_sha256_add(twi_sha256 *sha, const void *bytes, size_t size);
void twi_sha256_text(twi_sha256 *sha, char text[TWI_SHA256_TEXT]); /* the end: init before adding again */

#endif
