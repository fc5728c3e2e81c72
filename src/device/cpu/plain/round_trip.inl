/* round_trip.inl - floats rounded as integers of few bits; see round_trip.c. */

/* As it is given, or from the least to the largest of a slice's elements. */
static void NAME(find_range)(const twi_run *r, int64_t slice, int64_t count, REAL *low, REAL *high)
{
    const rounding *s = r->state;
    const REAL *x = r->inputs[0];
    tw_shape shape = r->input_operands[0].shape;
    *low = s->range_given ? (REAL)s->low : count ? x[element_of(shape, s->axis, slice, 0)] : 0;
    *high = s->range_given ? (REAL)s->high : *low;
    if (s->range_given && r->num_inputs > 1) {
        *low = ((const REAL *)r->inputs[1])[slice];
        *high = ((const REAL *)r->inputs[2])[slice];
    }
    for (int64_t i = 0; i < count && !s->range_given; i++) {
        REAL value = x[element_of(shape, s->axis, slice, i)];
        *low = value < *low ? value : *low;
        *high = value > *high ? value : *high;
    }
}

/* What a step is, and its inverse; the side that needs the larger step decides, the other one moves. */
static REAL NAME(find_scale)(const rounding *s, int bits, REAL *low, REAL *high, REAL *inverse)
{
    REAL least = (REAL)(s->is_signed ? -((int64_t)1 << (bits - 1)) + s->narrow : 0);
    REAL most = (REAL)(((int64_t)1 << (bits - s->is_signed)) - 1),
         largest = sizeof(REAL) == 4 ? (REAL)3.40282347e38 : (REAL)1.7976931348623157e308;
    REAL from_low = least * *low > 0 ? least / *low : largest, from_high = most * *high > 0 ? most / *high : largest;
    if (from_low < from_high) {
        *inverse = *low / least;
        *high = most * *inverse;
        return from_low;
    }
    *inverse = *high / most;
    *low = least * *inverse;
    return from_high;
}

static tw_status NAME(round_slice)(const twi_run *r, int bits, int64_t slice, int64_t count)
{
    const rounding *s = r->state;
    const REAL *x = r->inputs[0];
    REAL *y = r->outputs[0], low, high, inverse;
    NAME(find_range)(r, slice, count, &low, &high);
    if (low > high)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Invalid range: input_min %g > input_max %g", r->node,
                        (double)low, (double)high);
    REAL scale = NAME(find_scale)(s, bits, &low, &high, &inverse);
    for (int64_t k = 0; k < count; k++) {
        int64_t i = element_of(r->input_operands[0].shape, s->axis, slice, k);
        REAL inside = !s->range_given ? x[i] : x[i] < low ? low : x[i] > high ? high : x[i];
        REAL steps = inside * scale;
        y[i] = (REAL)(s->half_up ? floor(steps + (REAL)0.5) : rint(steps)) * inverse;
    }
    return TW_OK;
}

static tw_status NAME(round_trip)(const twi_run *r)
{
    const rounding *s = r->state;
    const twi_operand *x = &r->input_operands[0];
    int64_t slices = s->axis < 0 ? 1 : x->elements || s->range_given ? x->shape.dims[s->axis] : 0;
    int bits;
    tw_status status = find_bits(r, &bits);
    for (int64_t slice = 0; slice < slices && status == TW_OK; slice++)
        status = NAME(round_slice)(r, bits, slice, x->elements / slices);
    return status;
}

/* Gradients pass where the input was in its range; none goes to the range. */
static tw_status NAME(round_trip_grad)(const twi_run *r)
{
    const rounding *s = r->state;
    const REAL *dy = r->inputs[0], *x = r->inputs[1], *low = r->inputs[2], *high = r->inputs[3];
    const twi_operand *operand = &r->input_operands[1];
    int64_t slices = s->axis < 0 ? 1 : operand->shape.dims[s->axis];
    for (int64_t slice = 0; slice < slices; slice++)
        for (int64_t k = 0; k < operand->elements / slices; k++) {
            int64_t i = element_of(operand->shape, s->axis, slice, k);
            ((REAL *)r->outputs[0])[i] = x[i] >= low[slice] && x[i] <= high[slice] ? dy[i] : 0;
        }
    for (int i = 1; i < 3; i++)
        for (int64_t k = 0; k < slices; k++)
            ((REAL *)r->outputs[i])[k] = 0;
    return TW_OK;
}
