/* elementwise_integer.inl - what only integers do; see elementwise.c. The smallest divided by -1 wraps to itself. */
#define IS_MINUS_ONE(y) ((REAL)-1 < 0 && (y) == (REAL)-1)

BINARY(truncate_div, REAL, IS_MINUS_ONE(y) ? SUBTRACT(0, x) : x / y)
BINARY(floor_div, REAL, IS_MINUS_ONE(y) ? SUBTRACT(0, x) : x / y - (x % y != 0 && (x < 0) != (y < 0)))
BINARY(mod, REAL, IS_MINUS_ONE(y) ? 0 : x % y)
BINARY(floor_mod, REAL, IS_MINUS_ONE(y) ? 0 : x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0))
DIVISION(truncate_div)
DIVISION(floor_div)
DIVISION(mod)
DIVISION(floor_mod)
UNARY(absolute, REAL, x < 0 ? SUBTRACT(0, x) : x)
UNARY(unchanged, REAL, x)

/* By squaring. */
static inline __attribute__((unused)) REAL NAME(integer_power)(REAL base, REAL exponent)
{
    REAL result = 1;
    for (; exponent > 0; exponent = (REAL)(exponent >> 1), base = MULTIPLY(base, base))
        if (exponent & 1)
            result = MULTIPLY(result, base);
    return result;
}
BINARY(power, REAL, NAME(integer_power)(x, y))

static __attribute__((unused)) tw_status NAME(power_checked)(const twi_run *r)
{
    for (int64_t i = 0; i < r->input_operands[1].elements; i++)
        if (((const REAL *)r->inputs[1])[i] < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "Integers to negative integer powers are not allowed");
    return NAME(power)(r);
}
#undef IS_MINUS_ONE
