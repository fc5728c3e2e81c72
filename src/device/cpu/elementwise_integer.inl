/* elementwise_integer.inl - what only integers do; see elementwise.c. The smallest divided by -1 wraps to itself. */

BINARY(truncate_div, REAL, y == (REAL)-1 ? SUBTRACT(0, x) : x / y)
BINARY(floor_div, REAL, y == (REAL)-1 ? SUBTRACT(0, x) : x / y - (x % y != 0 && (x < 0) != (y < 0)))
BINARY(mod, REAL, y == (REAL)-1 ? 0 : x % y)
BINARY(floor_mod, REAL, y == (REAL)-1 ? 0 : x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0))
DIVISION(truncate_div)
DIVISION(floor_div)
DIVISION(mod)
DIVISION(floor_mod)
UNARY(absolute, REAL, x < 0 ? SUBTRACT(0, x) : x)
UNARY(unchanged, REAL, x)

/* By squaring; a negative exponent gives 0, but 1 and -1 stay what they are. */
static inline REAL NAME(integer_power)(REAL base, REAL exponent)
{
    if (exponent < 0)
        return base == 1 ? 1 : base == (REAL)-1 ? (REAL)(exponent & 1 ? -1 : 1) : 0;
    REAL result = 1;
    for (; exponent > 0; exponent = (REAL)(exponent >> 1), base = MULTIPLY(base, base))
        if (exponent & 1)
            result = MULTIPLY(result, base);
    return result;
}
BINARY(power, REAL, NAME(integer_power)(x, y))
