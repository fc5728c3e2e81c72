/* global_norm.inl - BatchNormWithGlobalNormalization for one type; see global_norm.c. */

/* x [pixels,C], mean, variance, offset and scale [C]: y [pixels,C]. The workspace has a factor a channel. */
static tw_status NAME(global_norm)(const twi_run *r)
{
    const global_norm *n = r->state;
    const REAL *x = r->inputs[0], *mean = r->inputs[1], *variance = r->inputs[2], *offset = r->inputs[3];
    const REAL *gamma = r->inputs[4];
    REAL *y = r->outputs[0], *scale = r->workspace;
    int64_t channels = r->input_operands[1].elements;
    int64_t pixels = r->output_operands[0].elements ? r->output_operands[0].elements / channels : 0;
    for (int64_t c = 0; c < channels; c++)
        scale[c] = (n->scales ? gamma[c] : (REAL)1) / (REAL)sqrt((double)(variance[c] + (REAL)n->epsilon));
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < pixels; i++) {
        TWI_VECTOR_LOOP
        for (int64_t c = 0; c < channels; c++)
            y[i * channels + c] = (x[i * channels + c] - mean[c]) * scale[c] + offset[c];
    }
    return TW_OK;
}
