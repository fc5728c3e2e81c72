/* top_k.inl - the largest elements of each row, for one type; see typed.h. */

/* Larger, or as large and earlier. */
static inline bool NAME(better)(const REAL *row, int32_t a, int32_t b)
{
    return row[a] > row[b] || (!(row[a] < row[b]) && a < b);
}

/* Lets the entry at i sink in a heap whose top is the worst. */
static void NAME(sink)(const REAL *row, int32_t *heap, int64_t count, int64_t i)
{
    int32_t entry = heap[i];
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && NAME(better)(row, heap[child], heap[child + 1]);
        if (!NAME(better)(row, entry, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = entry;
}

/* heap[k] becomes the places of the k best of n, best first. */
static void NAME(select_best)(const REAL *row, int64_t n, int32_t *heap, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        heap[i] = (int32_t)i;
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        NAME(sink)(row, heap, k, i);
    for (int64_t i = k; i < n; i++)
        if (NAME(better)(row, (int32_t)i, heap[0])) {
            heap[0] = (int32_t)i;
            NAME(sink)(row, heap, k, 0);
        }
    for (int64_t left = k - 1; left > 0; left--) {
        int32_t worst = heap[0];
        heap[0] = heap[left];
        heap[left] = worst;
        NAME(sink)(row, heap, left, 0);
    }
}

static tw_status NAME(top_k)(const twi_run *r)
{
    tw_shape in = r->input_operands[0].shape;
    int64_t n = in.dims[in.rank - 1], k = r->output_operands[0].shape.dims[in.rank - 1];
    const REAL *from = r->inputs[0];
    REAL *values = r->outputs[0];
    int64_t width = (int64_t)tw_dtype_size(r->output_operands[1].dtype);
    if (k == 0 || n == 0)
        return TW_OK;
    int64_t rows = r->input_operands[0].elements / n;
    TWI_PARALLEL_LOOP(r)
    for (int64_t i = 0; i < rows; i++) {
        int32_t *places = (int32_t *)((char *)r->outputs[1] + i * k * width);
        NAME(select_best)(from + i * n, n, places, k);
        for (int64_t j = 0; j < k; j++)
            values[i * k + j] = from[i * n + places[j]];
        if (width > (int64_t)sizeof *places)
            widen_places(places, k);
    }
    return TW_OK;
}
