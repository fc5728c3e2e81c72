/* bias.inl - adding a bias along the channels, and its gradient. The value is seen as [outer, channels, inner]. */

static tw_status NAME(bias_add)(const twi_run *r)
{
    const bias *b = r->state;
    const REAL *value = r->inputs[0], *bias = r->inputs[1];
    REAL *y = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < b->outer; row++) {
        const REAL *from = value + row * b->channels * b->inner;
        REAL *to = y + row * b->channels * b->inner;
        if (b->inner == 1) {
            TWI_VECTOR_LOOP
            for (int64_t c = 0; c < b->channels; c++)
                to[c] = ADD(from[c], bias[c]);
            continue;
        }
        for (int64_t c = 0; c < b->channels; c++)
            for (int64_t i = c * b->inner; i < (c + 1) * b->inner; i++)
                to[i] = ADD(from[i], bias[c]);
    }
    return TW_OK;
}

/* A job is a block of channels, summed in order. */
static tw_status NAME(bias_add_grad)(const twi_run *r)
{
    const bias *b = r->state;
    const REAL *dy = r->inputs[0];
    REAL *dbias = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t begin = 0; begin < b->channels; begin += CHANNEL_BLOCK) {
        int64_t count = b->channels - begin < CHANNEL_BLOCK ? b->channels - begin : CHANNEL_BLOCK;
        SUM sums[CHANNEL_BLOCK] = {0};
        for (int64_t row = 0; row < b->outer; row++) {
            const REAL *from = dy + (row * b->channels + begin) * b->inner;
            if (b->inner == 1) {
                for (int64_t c = 0; c < count; c++)
                    sums[c] += (SUM)from[c];
                continue;
            }
            for (int64_t c = 0; c < count; c++)
                for (int64_t i = c * b->inner; i < (c + 1) * b->inner; i++)
                    sums[c] += (SUM)from[i];
        }
        for (int64_t c = 0; c < count; c++)
            dbias[begin + c] = (REAL)sums[c];
    }
    return TW_OK;
}
