/* special_integer.inl - bits of integers; see special.c. */

/* How far to shift: not backwards, and not by as many bits as there are. */
static inline int NAME(bits_to_shift)(REAL by)
{
    enum { LAST = 8 * sizeof(REAL) - 1 };
    return by < 0 ? 0 : by > LAST ? LAST : (int)by;
}

BINARY(both_bits, REAL, x &y)
BINARY(any_bits, REAL, x | y)
BINARY(odd_bits, REAL, x ^ y)
BINARY(shift_left, REAL, (uint64_t)x << NAME(bits_to_shift)(y))
BINARY(shift_right, REAL, x >> NAME(bits_to_shift)(y))
UNARY(invert, REAL, ~x)
UNARY(count_bits, uint8_t, __builtin_popcountll((uint64_t)x << (64 - 8 * sizeof(REAL))))
