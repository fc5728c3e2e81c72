/* softmax.inl - softmax and cross entropy, row by row. A row of logits x is shifted by its maximum m, so that no
 * exponential overflows: softmax = exp(x - m) / sum, log softmax = x - m - log(sum). */

/* The maximum of a row, and the sum of exp(x - maximum); `step` is 0 for a single logit that stands for all. */
static inline REAL NAME(sum_exponentials)(const REAL *x, int64_t classes, int64_t step, REAL *sum)
{
    REAL maximum = x[0];
    for (int64_t c = 1; c < classes; c++)
        maximum = x[c * step] > maximum ? x[c * step] : maximum;
    SUM total = 0;
    for (int64_t c = 0; c < classes; c++)
        total += exp(x[c * step] - maximum);
    *sum = (REAL)total;
    return maximum;
}

/* The same, and the exponentials divided by their sum, which may take the row's own place. */
static inline REAL NAME(soften)(const REAL *x, int64_t classes, REAL *y, REAL *sum)
{
    REAL maximum = x[0];
    for (int64_t c = 1; c < classes; c++)
        maximum = x[c] > maximum ? x[c] : maximum;
    SUM total = 0;
    for (int64_t c = 0; c < classes; c++)
        total += y[c] = exp(x[c] - maximum);
    REAL whole = *sum = (REAL)total;
    TWI_VECTOR_LOOP
    for (int64_t c = 0; c < classes; c++)
        y[c] /= whole;
    return maximum;
}

static tw_status NAME(softmax)(const twi_run *r)
{
    rows shape = rows_of(&r->input_operands[0]);
    const REAL *logits = r->inputs[0];
    REAL *to = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < shape.count; row++) {
        REAL sum;
        NAME(soften)(logits + row * shape.classes, shape.classes, to + row * shape.classes, &sum);
    }
    return TW_OK;
}

static tw_status NAME(log_softmax)(const twi_run *r)
{
    rows shape = rows_of(&r->input_operands[0]);
    const REAL *logits = r->inputs[0];
    REAL *to = r->outputs[0];
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < shape.count; row++) {
        const REAL *x = logits + row * shape.classes;
        REAL *y = to + row * shape.classes, sum, maximum = NAME(sum_exponentials)(x, shape.classes, 1, &sum);
        REAL logarithm = log(sum);
        for (int64_t c = 0; c < shape.classes; c++)
            y[c] = x[c] - maximum - logarithm;
    }
    return TW_OK;
}

/* loss = -sum of label * log softmax, backprop = softmax - label; either operand may be [1,C], [N,1] or [1,1]. */
static tw_status NAME(cross_entropy)(const twi_run *r)
{
    tw_shape logits_shape = r->input_operands[0].shape, labels_shape = r->input_operands[1].shape;
    rows shape = rows_of(&r->output_operands[1]);
    const REAL *logits = r->inputs[0], *labels = r->inputs[1];
    REAL *loss = r->outputs[0], *backprop = r->outputs[1];
    int64_t x_step = logits_shape.dims[1] != 1, label_step = labels_shape.dims[1] != 1;
    twi_clear(loss, r->output_operands[0].bytes); /* without classes there is none */
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < shape.count; row++) {
        const REAL *x = logits + (logits_shape.dims[0] == 1 ? 0 : row * logits_shape.dims[1]);
        const REAL *label = labels + (labels_shape.dims[0] == 1 ? 0 : row * labels_shape.dims[1]);
        REAL *back = backprop + row * shape.classes;
        REAL sum, maximum = NAME(sum_exponentials)(x, shape.classes, x_step, &sum), logarithm = log(sum);
        SUM total = 0;
        for (int64_t c = 0; c < shape.classes; c++) {
            REAL shifted = x[c * x_step] - maximum, wanted = label[c * label_step];
            if (wanted != 0) /* 0 times an infinite loss is no loss */
                total += wanted * (logarithm - shifted);
            back[c] = exp(shifted) / sum - wanted;
        }
        loss[row] = (REAL)total;
    }
    return TW_OK;
}

static tw_status NAME(sparse_cross_entropy)(const twi_run *r)
{
    rows shape = rows_of(&r->input_operands[0]);
    const REAL *logits = r->inputs[0];
    REAL *loss = r->outputs[0], *backprop = r->outputs[1];
    tw_status status = twi_check_labels(r, shape.classes);
    if (status != TW_OK)
        return status;
    TWI_PARALLEL_LOOP(r)
    for (int64_t row = 0; row < shape.count; row++) {
        const REAL *x = logits + row * shape.classes;
        REAL *back = backprop + row * shape.classes, sum;
        REAL maximum = NAME(soften)(x, shape.classes, back, &sum);
        int64_t label = integer_at(&r->input_operands[1], r->inputs[1], row);
        back[label] -= 1;
        loss[row] = log(sum) - (x[label] - maximum);
    }
    return TW_OK;
}
