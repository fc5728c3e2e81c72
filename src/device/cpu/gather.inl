/* gather.inl - adding up rows by index, in the order of the indices; and the greatest elements. */

static void NAME(add_row)(const REAL *from, REAL *to, int64_t width)
{
    TWI_VECTOR_LOOP
    for (int64_t k = 0; k < width; k++)
        to[k] = ADD(to[k], from[k]);
}

static tw_status NAME(scatter_nd)(const twi_run *r)
{
    const twi_operand *y = &r->output_operands[0];
    places p = lay_places(r->input_operands[0].shape, y->shape);
    REAL *to = r->outputs[0];
    memset(to, 0, (size_t)y->elements * sizeof *to);
    for (int64_t i = 0; i < p.count; i++) {
        int64_t row = find_place(r, 0, &p, i);
        if (row < 0)
            return TW_INVALID_ARGUMENT;
        NAME(add_row)((const REAL *)r->inputs[1] + i * p.width, to + row * p.width, p.width);
    }
    return TW_OK;
}

/* Rows with a negative id are dropped. */
static tw_status NAME(unsorted_segment_sum)(const twi_run *r)
{
    const twi_operand *y = &r->output_operands[0], *ids = &r->input_operands[1];
    int64_t rows = y->shape.dims[0], width = ids->elements ? r->input_operands[0].elements / ids->elements : 0;
    REAL *to = r->outputs[0];
    memset(to, 0, (size_t)y->elements * sizeof *to);
    for (int64_t i = 0; i < ids->elements; i++) {
        int64_t row = twi_input_int(r, 1, i);
        if (row >= rows)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "segment_ids[%lld] = %lld is out of range [0, %lld)",
                            (long long)i, (long long)row, (long long)rows);
        if (row >= 0)
            NAME(add_row)((const REAL *)r->inputs[0] + i * width, to + row * width, width);
    }
    return TW_OK;
}

/* a comes before b in the result: it is greater, or equal and earlier. */
static bool NAME(precedes)(const REAL *row, int32_t a, int32_t b)
{
    return row[a] > row[b] || (row[a] == row[b] && a < b);
}

/* Restores the heap below `at`: its root is the place that comes last of all. */
static void NAME(sift)(const REAL *row, int32_t *heap, int64_t at, int64_t count)
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && NAME(precedes)(row, heap[child], heap[child + 1]))
            child++;
        if (!NAME(precedes)(row, heap[at], heap[child]))
            return;
        int32_t place = heap[at];
        heap[at] = heap[child];
        heap[child] = place;
    }
}

/* The k best places of a row, kept in a heap and then sorted within it. */
static void NAME(top_of_row)(const REAL *row, int64_t width, int32_t *places, REAL *values, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        places[i] = (int32_t)i;
    for (int64_t i = k / 2; i-- > 0;)
        NAME(sift)(row, places, i, k);
    for (int64_t i = k; i < width; i++)
        if (NAME(precedes)(row, (int32_t)i, places[0])) {
            places[0] = (int32_t)i;
            NAME(sift)(row, places, 0, k);
        }
    for (int64_t left = k; left > 1; left--) {
        int32_t last = places[0];
        places[0] = places[left - 1];
        places[left - 1] = last;
        NAME(sift)(row, places, 0, left - 1);
    }
    for (int64_t i = 0; i < k; i++)
        values[i] = row[places[i]];
}

static tw_status NAME(top_k)(const twi_run *r)
{
    tw_shape in = r->input_operands[0].shape, out = r->output_operands[0].shape;
    int64_t width = in.dims[in.rank - 1], k = out.dims[out.rank - 1];
    int64_t rows = width ? r->input_operands[0].elements / width : 0;
    if (k == 0)
        return TW_OK;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < rows; i++)
        NAME(top_of_row)((const REAL *)r->inputs[0] + i * width, width, (int32_t *)r->outputs[1] + i * k,
                         (REAL *)r->outputs[0] + i * k, k);
    return TW_OK;
}
