/* sha256.c - see sha256.h. */
#include "base/sha256.h"

#include <nettle/base16.h>

void twi_sha256_init(twi_sha256 *sha)
{
    sha256_init(sha);
}

void twi_sha256_add(twi_sha256 *sha, const void *bytes, size_t size)
{
    sha256_update(sha, size, bytes);
}

void twi_sha256_text(twi_sha256 *sha, char text[TWI_SHA256_TEXT])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(sha, sizeof digest, digest);
    base16_encode_update(text, sizeof digest, digest);
    text[TWI_SHA256_TEXT - 1] = '\0';
}
