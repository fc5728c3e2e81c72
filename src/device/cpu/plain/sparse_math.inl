/* sparse_math.inl - sums of sparse tensors for one type; see sparse_math.c. */

/* The sum of the next entries, and where they lie. */
static REAL NAME(next_sum)(const twi_run *r, const merge *m, int order, const int64_t **index)
{
    const REAL *a = r->inputs[1], *b = r->inputs[4];
    *index = order <= 0 ? m->a + m->at_a * m->rank : m->b + m->at_b * m->rank;
    return order < 0 ? a[m->at_a] : order > 0 ? b[m->at_b] : ADD(a[m->at_a], b[m->at_b]);
}

/* What is left of one when the other is at its end is not compared: so TensorFlow has it. */
static bool NAME(is_kept)(const twi_run *r, const merge *m, REAL sum)
{
    return m->at_a >= m->num_a || m->at_b >= m->num_b || fabs((double)sum) >= (double)*(const REAL *)r->inputs[6];
}

static __attribute__((unused)) tw_status NAME(sparse_add)(const twi_run *r)
{
    const merge begin = {r->inputs[0], r->inputs[3], r->input_operands[1].elements, r->input_operands[4].elements,
                         r->input_operands[2].elements, 0, 0};
    const int64_t *index;
    int64_t count = 0, *indices = NULL, at = 0;
    REAL *values = NULL;
    int order;
    tw_status status = expect_alike(r);
    for (merge m = begin; status == TW_OK && next_of(&m, &order); pass(&m, order))
        count += NAME(is_kept)(r, &m, NAME(next_sum)(r, &m, order, &index));
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(count, begin.rank), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(count), (void **)&values);
    for (merge m = begin; status == TW_OK && next_of(&m, &order); pass(&m, order)) {
        REAL sum = NAME(next_sum)(r, &m, order, &index);
        if (!NAME(is_kept)(r, &m, sum))
            continue;
        memcpy(indices + at * begin.rank, index, sizeof *index * (size_t)begin.rank);
        values[at++] = sum;
    }
    for (int64_t k = 0; k < begin.rank && status == TW_OK; k++)
        ((int64_t *)r->outputs[2])[k] = twi_input_int(r, 2, k);
    return status;
}

/* What of the sum an entry of a or b has gone into: 0 where it was left out. */
static __attribute__((unused)) tw_status NAME(sparse_add_gradient)(const twi_run *r)
{
    const REAL *dy = r->inputs[0];
    int64_t rank = r->input_operands[3].shape.dims[1];
    if (r->input_operands[0].elements != r->input_operands[3].shape.dims[0])
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld gradients for %lld entries of the sum", r->node,
                        (long long)r->input_operands[0].elements, (long long)r->input_operands[3].shape.dims[0]);
    for (int k = 0; k < 2; k++) {
        if (r->input_operands[1 + k].shape.dims[1] != rank)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': indices of %lld numbers, those of the sum of %lld",
                            r->node, (long long)r->input_operands[1 + k].shape.dims[1], (long long)rank);
        REAL *to = r->outputs[k];
        int order;
        merge m = {r->inputs[1 + k], r->inputs[3], r->output_operands[k].elements, r->input_operands[0].elements, rank,
                   0, 0};
        for (; next_of(&m, &order); pass(&m, order))
            if (order <= 0)
                to[m.at_a] = order == 0 ? dy[m.at_b] : (REAL)0;
    }
    return TW_OK;
}

/* Places without entries are 0, of a maximum too. */
static __attribute__((unused)) tw_status NAME(sparse_reduce)(const twi_run *r)
{
    int64_t strides[TW_MAX_RANK];
    const REAL *values = r->inputs[1];
    REAL *to = r->outputs[0];
    char *met = r->state ? r->workspace : NULL;
    tw_status status = expect_entries(r);
    if (status != TW_OK)
        return status;
    twi_clear(to, sizeof *to * (size_t)r->output_operands[0].elements);
    if (met)
        twi_clear(met, (size_t)r->output_operands[0].elements);
    find_strides(r, strides);
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        int64_t place = place_of(r, strides, i);
        if (place < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': entry %lld does not lie in the shape", r->node,
                            (long long)i);
        if (!met)
            to[place] = ADD(to[place], values[i]);
        else if (!met[place] || values[i] > to[place])
            to[place] = values[i];
        if (met)
            met[place] = 1;
    }
    return TW_OK;
}

/* One output entry for each index that is left; the sum or the largest of its entries. */
static __attribute__((unused)) tw_status NAME(sparse_reduce_to_sparse)(const twi_run *r)
{
    int64_t *indices = NULL, *shape = NULL, at = -1, groups;
    const REAL *from = r->inputs[1];
    REAL *to = NULL;
    twi_entry *entries = r->workspace;
    left l;
    tw_status status = expect_entries(r);
    if (status == TW_OK)
        status = find_left(r, r->output_operands[2].shape.dims[0] == r->input_operands[2].elements, &l);
    if (status != TW_OK)
        return status;
    groups = sort_left(r, &l, entries);
    status = twi_make_output(r, 0, TW_SHAPE(groups, l.rank), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(groups), (void **)&to);
    if (status == TW_OK)
        status = twi_make_output(r, 2, TW_SHAPE(l.rank), (void **)&shape);
    for (int64_t i = 0; i < r->input_operands[1].elements && status == TW_OK; i++) {
        REAL value = from[entries[i].number];
        if (i == 0 || compare(entries[i - 1].index, entries[i].index, l.rank) != 0) {
            memcpy(indices + ++at * l.rank, entries[i].index, sizeof *indices * (size_t)l.rank);
            to[at] = value;
        } else if (!r->state) {
            to[at] = ADD(to[at], value);
        } else if (value > to[at]) {
            to[at] = value;
        }
    }
    for (int k = 0; k < l.rank && status == TW_OK; k++)
        shape[k] = l.reduced[l.axes[k]] ? 1 : twi_input_int(r, 2, l.axes[k]);
    return status;
}

static tw_status NAME(one_of)(const twi_run *r, bool larger)
{
    const REAL *a = r->inputs[1], *b = r->inputs[4];
    const merge begin = {r->inputs[0], r->inputs[3], r->input_operands[1].elements, r->input_operands[4].elements,
                         r->input_operands[2].elements, 0, 0};
    int64_t count = 0, *indices = NULL, at = 0;
    REAL *values = NULL;
    int order;
    tw_status status = expect_alike(r);
    for (merge m = begin; status == TW_OK && next_of(&m, &order); pass(&m, order))
        count++;
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE(count, begin.rank), (void **)&indices);
    if (status == TW_OK)
        status = twi_make_output(r, 1, TW_SHAPE(count), (void **)&values);
    for (merge m = begin; status == TW_OK && next_of(&m, &order); pass(&m, order)) {
        REAL x = order <= 0 ? a[m.at_a] : (REAL)0, y = order >= 0 ? b[m.at_b] : (REAL)0;
        memcpy(indices + at * begin.rank, order <= 0 ? m.a + m.at_a * m.rank : m.b + m.at_b * m.rank,
               sizeof *indices * (size_t)begin.rank);
        values[at++] = isnan((double)x) || (!isnan((double)y) && larger == (x > y)) ? x : y; /* a NaN shows */
    }
    return status;
}

static __attribute__((unused)) tw_status NAME(larger_of)(const twi_run *r)
{
    return NAME(one_of)(r, true);
}

static __attribute__((unused)) tw_status NAME(smaller_of)(const twi_run *r)
{
    return NAME(one_of)(r, false);
}

static REAL NAME(combined)(intptr_t how, REAL x, REAL y)
{
    bool wraps = (REAL)0.5 == 0 && (REAL)-1 < 0 && y == (REAL)-1; /* the lowest integer has no opposite */
    if (how != BY)
        return how == PLUS ? ADD(x, y) : MULTIPLY(x, y);
    return wraps ? SUBTRACT((REAL)0, x) : (REAL)(x / y);
}

static __attribute__((unused)) tw_status NAME(with_dense)(const twi_run *r)
{
    const REAL *values = r->inputs[1], *dense = r->inputs[3];
    int64_t strides[TW_MAX_RANK];
    REAL *to = r->outputs[0];
    tw_status status = expect_entries(r);
    if (status == TW_OK)
        status = find_dense_strides(r, strides);
    for (int64_t i = 0; i < r->input_operands[1].elements && status == TW_OK; i++) {
        int64_t place = place_of(r, strides, i);
        if (place < 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': entry %lld does not lie in the shape", r->node,
                            (long long)i);
        if ((intptr_t)r->state == BY && (REAL)0.5 == 0 && dense[place] == 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Integer division by zero", r->node);
        to[i] = NAME(combined)((intptr_t)r->state, values[i], dense[place]);
    }
    return status;
}

/* Along the last axis: over the entries that agree in all other numbers, which lie side by side. */
static __attribute__((unused)) tw_status NAME(sparse_softmax)(const twi_run *r)
{
    int64_t n = r->input_operands[1].elements, rank = r->input_operands[2].elements, end;
    const int64_t *indices = r->inputs[0];
    const REAL *x = r->inputs[1];
    REAL *y = r->outputs[0];
    tw_status status = expect_entries(r);
    if (status == TW_OK && rank < 2)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': a shape of %lld axes, expected at least 2", r->node,
                          (long long)rank);
    for (int64_t first = 0; first < n && status == TW_OK; first = end) {
        REAL most = x[first], sum = 0;
        for (end = first + 1; end < n && compare(indices + first * rank, indices + end * rank, rank - 1) == 0; end++)
            most = x[end] > most ? x[end] : most;
        for (int64_t i = first; i < end; i++)
            sum = ADD(sum, y[i] = (REAL)exp((double)SUBTRACT(x[i], most)));
        for (int64_t i = first; i < end; i++)
            y[i] = (REAL)(y[i] / sum);
    }
    return status;
}
