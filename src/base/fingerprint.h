/* fingerprint.h - hashes of bytes that files and graphs agree on: FarmHash's Fingerprint64, SipHash-2-4 with a key, and
 * MurmurHash64A with TensorFlow's seed. */
#ifndef TWI_FINGERPRINT_H
#define TWI_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

uint64_t twi_fingerprint(const char *bytes, size_t size);
uint64_t twi_murmur_hash(const char *bytes, size_t size);
uint64_t twi_keyed_hash(const uint64_t key[2], const char *bytes, size_t size);

#endif
