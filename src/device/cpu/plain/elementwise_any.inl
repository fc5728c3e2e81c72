/* elementwise_any.inl - what floats and integers share; see elementwise.c. */

BINARY(add, REAL, ADD(x, y))
BINARY(sub, REAL, SUBTRACT(x, y))
BINARY(mul, REAL, MULTIPLY(x, y))
BINARY(maximum, REAL, x > y || x != x ? x : y)
BINARY(minimum, REAL, x < y || x != x ? x : y)
BINARY(squared_difference, REAL, MULTIPLY(SUBTRACT(x, y), SUBTRACT(x, y)))
BINARY(same, bool, x == y)
BINARY(differs, bool, x != y)
BINARY(less, bool, x < y)
BINARY(less_equal, bool, x <= y)
BINARY(greater, bool, x > y)
BINARY(greater_equal, bool, x >= y)
UNARY(negative, REAL, SUBTRACT((REAL)-0.0, x)) /* from 0, a 0 would keep its sign */
UNARY(square, REAL, MULTIPLY(x, x))
UNARY(sign, REAL, x != x ? x : (REAL)((x > 0) - (x < 0)))

/* Limits are scalars or shaped as x. NaN stays what it is, and as a limit it limits nothing. */
static tw_status NAME(clip)(const twi_run *r)
{
    const REAL *x = r->inputs[0], *low = r->inputs[1], *high = r->inputs[2];
    REAL *y = r->outputs[0];
    int64_t n = r->output_operands[0].elements;
    int64_t low_step = r->input_operands[1].elements > 1, high_step = r->input_operands[2].elements > 1;
    for (int64_t i = 0; i < n; i++) {
        REAL value = x[i], least = low[i * low_step], most = high[i * high_step];
        value = value > most ? most : value;
        y[i] = value < least ? least : value;
    }
    return TW_OK;
}

/* From left to right, in blocks that stay in the cache. */
static tw_status NAME(add_n)(const twi_run *r)
{
    enum { BLOCK = 4096 };
    int64_t n = r->output_operands[0].elements, blocks = (n + BLOCK - 1) / BLOCK;
    REAL *sum = r->outputs[0];
    TWI_PRAGMA(omp parallel for num_threads(twi_team_for(r, blocks, n)))
    for (int64_t k = 0; k < blocks; k++) {
        REAL block[BLOCK];
        int64_t start = k * BLOCK, count = n - start < BLOCK ? n - start : BLOCK;
        memcpy(block, (const REAL *)r->inputs[0] + start, (size_t)count * sizeof(REAL));
        for (int input = 1; input < r->num_inputs; input++) {
            const REAL *x = (const REAL *)r->inputs[input] + start;
            TWI_VECTOR_LOOP
            for (int64_t i = 0; i < count; i++)
                block[i] = ADD(block[i], x[i]);
        }
        memcpy(sum + start, block, (size_t)count * sizeof(REAL));
    }
    return TW_OK;
}
