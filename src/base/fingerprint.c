/* fingerprint.c - see fingerprint.h. FarmHash mixes the first and last bytes of short texts at once, and of long ones
 * blocks of 64 into two pairs of words, the last block reaching back to be whole. */
#include "base/fingerprint.h"

#include <stdbool.h>
#include <string.h>

static const uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

typedef struct pair {
    uint64_t first, second;
} pair;

static uint64_t word(const char *at)
{
    uint64_t value = 0;
    for (int i = 8; i-- > 0;)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

static uint64_t half(const char *at)
{
    uint64_t value = 0;
    for (int i = 4; i-- > 0;)
        value = value << 8 | (unsigned char)at[i];
    return value;
}

static uint64_t rotate_right(uint64_t x, int by)
{
    return x >> by | x << (64 - by);
}

static uint64_t mix(uint64_t x)
{
    return x ^ x >> 47;
}

static uint64_t join(uint64_t x, uint64_t y, uint64_t factor)
{
    return mix((y ^ mix((x ^ y) * factor)) * factor) * factor;
}

static uint64_t of_shortest(const char *s, size_t n)
{
    uint64_t factor = k2 + 2 * n;
    if (n >= 8) {
        uint64_t a = word(s) + k2, b = word(s + n - 8);
        return join(rotate_right(b, 37) * factor + a, (rotate_right(a, 25) + b) * factor, factor);
    }
    if (n >= 4)
        return join(n + (half(s) << 3), half(s + n - 4), factor);
    if (n == 0)
        return k2;
    uint64_t ends = (unsigned char)s[0] + ((uint64_t)(unsigned char)s[n >> 1] << 8);
    uint64_t length = n + ((uint64_t)(unsigned char)s[n - 1] << 2);
    return mix(ends * k2 ^ length * k0) * k2;
}

static uint64_t of_short(const char *s, size_t n)
{
    uint64_t factor = k2 + 2 * n, a = word(s) * k1, b = word(s + 8), c = word(s + n - 8) * factor;
    uint64_t d = word(s + n - 16) * k2;
    return join(rotate_right(a + b, 43) + rotate_right(c, 30) + d, a + rotate_right(b + k2, 18) + c, factor);
}

static uint64_t of_medium(const char *s, size_t n)
{
    uint64_t factor = k2 + 2 * n, a = word(s) * k2, b = word(s + 8), c = word(s + n - 8) * factor;
    uint64_t d = word(s + n - 16) * k2, e = word(s + 16) * factor, f = word(s + 24);
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = join(y, a + rotate_right(b + k2, 18) + c, factor);
    uint64_t g = (y + word(s + n - 32)) * factor, h = (z + word(s + n - 24)) * factor;
    return join(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g, factor);
}

/* Four words into a pair. */
static pair blend(const char *s, uint64_t a, uint64_t b)
{
    a += word(s);
    b = rotate_right(b + a + word(s + 24), 21);
    uint64_t before = a;
    a += word(s + 8) + word(s + 16);
    return (pair){a + word(s + 24), b + rotate_right(a, 44) + before};
}

static uint64_t of_long(const char *s, size_t n)
{
    size_t blocks = (n - 1) / 64, rest = (n - 1) % 64;
    uint64_t x = 81, y = 81 * k1 + 113, z = mix(y * k2 + 113) * k2, swapped;
    pair v = {0, 0}, w = {0, 0};
    x = x * k2 + word(s);
    for (size_t block = 0; block <= blocks; block++) {
        bool last = block == blocks;
        const char *at = last ? s + n - 64 : s + 64 * block;
        uint64_t factor = last ? k1 + ((z & 0xff) << 1) : k1, weight = last ? 9 : 1;
        if (last) {
            w.first += rest;
            v.first += w.first;
            w.first += v.first;
        }
        x = rotate_right(x + y + v.first + word(at + 8), 37) * factor;
        y = rotate_right(y + v.second + word(at + 48), 42) * factor;
        x ^= w.second * weight;
        y += v.first * weight + word(at + 40);
        z = rotate_right(z + w.first, 33) * factor;
        v = blend(at, v.second * factor, x + w.first);
        w = blend(at + 32, z + w.second, y + word(at + 16));
        swapped = z;
        z = x;
        x = swapped;
        if (last)
            return join(join(v.first, w.first, factor) + mix(y) * k0 + z, join(v.second, w.second, factor) + x, factor);
    }
    return 0;
}

uint64_t twi_fingerprint(const char *bytes, size_t size)
{
    return size <= 16   ? of_shortest(bytes, size)
           : size <= 32 ? of_short(bytes, size)
           : size <= 64 ? of_medium(bytes, size)
                        : of_long(bytes, size);
}

/* ---- SipHash ----------------------------------------------------------------------------------------------------- */

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_right(v[1], 51) ^ v[0];
    v[0] = rotate_right(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_right(v[3], 48) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_right(v[3], 43) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_right(v[1], 47) ^ v[2];
    v[2] = rotate_right(v[2], 32);
}

static void take(uint64_t v[4], uint64_t message)
{
    v[3] ^= message;
    sip_round(v);
    sip_round(v);
    v[0] ^= message;
}

uint64_t twi_keyed_hash(const uint64_t key[2], const char *bytes, size_t size)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                     key[1] ^ 0x7465646279746573};
    char last[8] = {0};
    size_t whole = size / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        take(v, word(bytes + i));
    if (size > whole)
        memcpy(last, bytes + whole, size - whole);
    last[7] = (char)size;
    take(v, word(last));
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t twi_murmur_hash(const char *bytes, size_t size)
{
    const uint64_t m = 0xc6a4a7935bd1e995;
    size_t whole = size / 8 * 8;
    uint64_t hash = 0xdecafcaffe ^ size * m, last = 0;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t k = word(bytes + i) * m;
        hash = (hash ^ (k ^ k >> 47) * m) * m;
    }
    for (size_t i = whole; i < size; i++)
        last |= (uint64_t)(unsigned char)bytes[i] << 8 * (i - whole);
    if (size > whole)
        hash = (hash ^ last) * m;
    hash = (hash ^ hash >> 47) * m;
    return hash ^ hash >> 47;
}
