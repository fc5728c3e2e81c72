/* segment.inl - sums, means and products of rows by segment for one type; see segment.c. */

REDUCTION(any_sum, 0, COMBINES, ADD(a, b))
REDUCTION(any_prod, 1, COMBINES, MULTIPLY(a, b))
REDUCTION(sorted_prod, 1, TAKES, MULTIPLY(a, b))

static void NAME(sorted_sum)(const twi_run *r)
{
    NAME(any_sum)(r);
}

/* Sums, then each divided by the rows it is of. */
static void NAME(sorted_mean)(const twi_run *r)
{
    const int64_t n = r->input_operands[1].elements, segments = r->output_operands[0].shape.dims[0];
    const int64_t row = segments ? r->output_operands[0].elements / segments : 0;
    REAL *to = r->outputs[0];
    NAME(any_sum)(r);
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t id = twi_input_int(r, 1, i);
        for (end = i + 1; end < n && twi_input_int(r, 1, end) == id;)
            end++;
        for (int64_t k = 0; k < row; k++)
            to[id * row + k] = (REAL)(to[id * row + k] / (REAL)(end - i));
    }
}

SORTED(sum)
SORTED(mean)
SORTED(prod)
UNSORTED(sum)
UNSORTED(prod)
