/* find.c - ops that look for something and make what they give as large as what they have found: Where, Unique and its
 * like, ListDiff, DynamicPartition; and
 * Bucketize, which looks for a place.
 * Never here: boxes (boxes.c), ops that give as much as shapes say. */
#include "base/hash.h"
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

#include <string.h>

/* ---- Where ------------------------------------------------------------------------------------------------------- */

enum { MARKED = 2048 }; /* elements at a time */

/* Says of each element whether it is anything but zero; of floats -0 is zero and NaN is not. */
#define MARK(type, per_element, is_zero)                                                                               \
    {                                                                                                                  \
        const type *x = (const type *)data + first * (per_element);                                                    \
        TWI_VECTOR_LOOP                                                                                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            set[i] = !(is_zero);                                                                                       \
        return;                                                                                                        \
    }
static void mark(tw_dtype dtype, const void *data, int64_t first, int64_t count, uint8_t *set)
{
    switch (dtype) {
    case TW_FLOAT32:
        MARK(float, 1, x[i] == 0)
    case TW_FLOAT64:
        MARK(double, 1, x[i] == 0)
    case TW_FLOAT16:
    case TW_BFLOAT16:
        MARK(uint16_t, 1, (x[i] & 0x7fff) == 0)
    case TW_COMPLEX64:
        MARK(float, 2, (x[2 * i] == 0) & (x[2 * i + 1] == 0))
    case TW_COMPLEX128:
        MARK(double, 2, (x[2 * i] == 0) & (x[2 * i + 1] == 0))
    default:
        break;
    }
    switch (tw_dtype_size(dtype)) {
    case 1:
        MARK(uint8_t, 1, x[i] == 0)
    case 2:
        MARK(uint16_t, 1, x[i] == 0)
    case 4:
        MARK(uint32_t, 1, x[i] == 0)
    default:
        MARK(uint64_t, 1, x[i] == 0)
    }
}

static int64_t count_set(const twi_operand *in, const void *data)
{
    uint8_t set[MARKED];
    int64_t all = 0;
    for (int64_t first = 0; first < in->elements; first += MARKED) {
        int64_t count = in->elements - first < MARKED ? in->elements - first : MARKED;
        uint32_t some = 0;
        mark(in->dtype, data, first, count, set);
        TWI_PRAGMA(omp simd reduction(+ : some))
        for (int64_t i = 0; i < count; i++)
            some += set[i];
        all += some;
    }
    return all;
}

/* Of `run` elements of a row, the first at `at`, the places of those that are set go to `out`, where `left` have room.
 * Each is written where the next one found belongs, so that nothing waits for whether it counts. */
static inline __attribute__((always_inline)) int64_t find_in_row(const uint8_t *set, int64_t run, int rank,
                                                                 const int64_t *at, int64_t left, int64_t *out)
{
    int64_t found = 0;
    for (int64_t i = 0; i < run && found < left; i++) {
        for (int k = 0; k < rank - 1; k++)
            out[found * rank + k] = at[k];
        out[found * rank + rank - 1] = at[rank - 1] + i;
        found += set[i];
    }
    return found;
}

/* Goes on by a part of a row. */
static void advance(const tw_shape *shape, int64_t run, int64_t *at)
{
    int k = shape->rank - 1;
    for (at[k] += run; k > 0 && at[k] == shape->dims[k]; at[--k]++)
        at[k] = 0;
}

static tw_status run_where(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    int rank = in->shape.rank;
    int64_t left = count_set(in, r->inputs[0]), at[TW_MAX_RANK] = {0}, *out;
    int64_t row = rank ? in->shape.dims[rank - 1] : 1;
    uint8_t set[MARKED];
    tw_status status = twi_make_output(r, 0, TW_SHAPE(left, rank), (void **)&out);
    for (int64_t i = 0; status == TW_OK && rank && left > 0;) {
        int64_t first = i % MARKED, run = row - at[rank - 1], found;
        if (first == 0)
            mark(in->dtype, r->inputs[0], i, in->elements - i < MARKED ? in->elements - i : MARKED, set);
        run = run < MARKED - first ? run : MARKED - first;
        found = rank == 1   ? find_in_row(set + first, run, 1, at, left, out)
                : rank == 2 ? find_in_row(set + first, run, 2, at, left, out)
                            : find_in_row(set + first, run, rank, at, left, out);
        out += found * rank;
        left -= found;
        i += run;
        advance(&in->shape, run, at);
    }
    return status;
}

/* ---- elements that are the same ---------------------------------------------------------------------------------- */

/* Things that are compared: element i is data[block * stride + i * inner + k] for all blocks and k < inner. */
typedef struct things {
    tw_dtype dtype;
    size_t size; /* of an element */
    const void *data;
    int64_t count, blocks, stride, inner;
} things;

static things elements_of(const twi_run *r, int input)
{
    const twi_operand *x = &r->input_operands[input];
    return (things){x->dtype, tw_dtype_size(x->dtype), r->inputs[input], x->elements, 1, x->elements, 1};
}

/* By ==: -0 is 0, and NaN is like nothing, not even itself. */
static bool same_element(tw_dtype dtype, const void *a, const void *b)
{
    const tw_string *s = a, *t = b;
    switch (dtype) {
    case TW_FLOAT32:
        return *(const float *)a == *(const float *)b;
    case TW_FLOAT64:
        return *(const double *)a == *(const double *)b;
    case TW_FLOAT16:
        return tw_half_to_float(*(const uint16_t *)a) == tw_half_to_float(*(const uint16_t *)b);
    case TW_BFLOAT16:
        return tw_bfloat16_to_float(*(const uint16_t *)a) == tw_bfloat16_to_float(*(const uint16_t *)b);
    case TW_STRING:
        return s->size == t->size && (s->size == 0 || memcmp(s->data, t->data, s->size) == 0);
    case TW_INT32:
        return *(const int32_t *)a == *(const int32_t *)b;
    case TW_INT64:
        return *(const int64_t *)a == *(const int64_t *)b;
    default:
        return memcmp(a, b, tw_dtype_size(dtype)) == 0;
    }
}

/* What is the same has the same hash. */
static uint64_t hash_element(tw_dtype dtype, size_t size, const void *element)
{
    const tw_string *s = element;
    uint64_t hash = 0;
    uint8_t is_set = 1;
    bool is_float = dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
    const char *bytes = dtype == TW_STRING ? s->data : element;
    if (is_float)
        mark(dtype, element, 0, 1, &is_set);
    if (!is_set)
        return 0;
    if (dtype == TW_STRING)
        size = s->size;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        if (size - i == 4) /* copies of a known size are instructions */
            memcpy(&word, bytes + i, 4);
        else if (size - i >= 8)
            memcpy(&word, bytes + i, 8);
        else
            memcpy(&word, bytes + i, size - i);
        hash = twi_hash_mix(hash, word);
    }
    return hash;
}

static const void *part_of(const things *t, int64_t i, int64_t block, int64_t k)
{
    return (const char *)t->data + (size_t)(block * t->stride + i * t->inner + k) * t->size;
}

static bool same_thing(const things *t, int64_t i, const things *u, int64_t j)
{
    bool same = true;
    for (int64_t block = 0; block < t->blocks; block++)
        for (int64_t k = 0; k < t->inner && same; k++)
            same = same_element(t->dtype, part_of(t, i, block, k), part_of(u, j, block, k));
    return same;
}

static uint64_t hash_thing(const things *t, int64_t i)
{
    uint64_t hash = 0;
    for (int64_t block = 0; block < t->blocks; block++)
        for (int64_t k = 0; k < t->inner; k++)
            hash = twi_hash_mix(hash, hash_element(t->dtype, t->size, part_of(t, i, block, k)));
    return hash;
}

/* A table of things by what they are, in the workspace. */
typedef struct table {
    int64_t *slots; /* [capacity] number of a thing, from 1; 0: free */
    int64_t capacity;
} table;

static int64_t table_capacity(int64_t count)
{
    int64_t capacity = 16;
    while (capacity < 2 * count)
        capacity *= 2;
    return capacity;
}

/* With room for so many things, where there is memory for all that there may be. */
static table make_table(const twi_run *r, int64_t count)
{
    table t = {r->workspace, table_capacity(count)};
    memset(t.slots, 0, sizeof *t.slots * (size_t)t.capacity);
    return t;
}

/* Where thing j of u, or one of t that is the same, is or would be. */
static int64_t *find_slot(const table *table, const things *t, const things *u, int64_t j)
{
    int64_t at = (int64_t)(hash_thing(u, j) & (uint64_t)(table->capacity - 1));
    while (table->slots[at] && !same_thing(t, table->slots[at] - 1, u, j))
        at = (at + 1) & (table->capacity - 1);
    return &table->slots[at];
}

/* Makes it larger, with the things in it, and says where thing i, which is not among them, goes. */
static int64_t *grow_table(const twi_run *r, table *table, const things *t, const int64_t *firsts, int64_t count,
                           int64_t i)
{
    *table = make_table(r, table->capacity);
    for (int64_t k = 0; k < count; k++)
        *find_slot(table, t, t, firsts[k]) = firsts[k] + 1;
    return find_slot(table, t, t, i);
}

/* ---- Unique ------------------------------------------------------------------------------------------------------ */

static int64_t thing_bytes(int64_t count)
{
    return (int64_t)sizeof(int64_t) * (table_capacity(count) + 2 * count + 1);
}

static tw_status prepare_unique(twi_prepare *p)
{
    int64_t most = p->inputs[0].elements;
    for (int i = 0; i < p->inputs[0].shape.rank;
         i++) /* of an empty tensor there are as many slices along another axis */
        most = p->inputs[0].shape.dims[i] > most ? p->inputs[0].shape.dims[i] : most;
    p->workspace = (size_t)thing_bytes(most);
    return TW_OK;
}

static tw_status find_things(const twi_run *r, things *t, int *axis)
{
    const twi_operand *x = &r->input_operands[0];
    *t = elements_of(r, 0);
    *axis = 0;
    if (r->num_inputs == 1 || r->input_operands[1].elements == 0)
        return TW_OK;
    tw_status status = twi_input_axis(r, 1, 0, x->shape.rank, axis);
    if (status == TW_OK) {
        t->count = x->shape.dims[*axis];
        t->blocks = twi_elements_between(x->shape, 0, *axis);
        t->inner = twi_elements_between(x->shape, *axis + 1, x->shape.rank);
        t->stride = t->count * t->inner;
    }
    return status;
}

/* y: the first of each, in the order in which they come. */
static tw_status write_unique(const twi_run *r, const things *t, int axis, const int64_t *firsts, int64_t count)
{
    tw_shape shape = r->input_operands[0].shape;
    void *y;
    shape.dims[axis] = count;
    tw_status status = twi_make_output(r, 0, shape, &y);
    for (int64_t block = 0; block < t->blocks && status == TW_OK; block++)
        for (int64_t i = 0; i < count && status == TW_OK; i++)
            if (!twi_copy_elements(t->inner, t->dtype, part_of(t, firsts[i], block, 0),
                                   twi_element_of_output(y, t->dtype, (block * count + i) * t->inner)))
                status = twi_fail_memory(r->error, r->node);
    return status;
}

static void put_index(tw_dtype dtype, void *to, int64_t i, int64_t value)
{
    if (dtype == TW_INT64)
        ((int64_t *)to)[i] = value;
    else
        ((int32_t *)to)[i] = (int32_t)value;
}

/* Output k as indices. */
static tw_status write_indices(const twi_run *r, int k, const int64_t *values, int64_t count)
{
    void *to;
    tw_status status = twi_make_output(r, k, TW_SHAPE(count), &to);
    for (int64_t i = 0; i < count && status == TW_OK; i++)
        put_index(r->output_operands[k].dtype, to, i, values[i]);
    return status;
}

static tw_status run_unique(const twi_run *r)
{
    things t;
    int axis;
    tw_status status = find_things(r, &t, &axis);
    if (status != TW_OK)
        return status;
    table seen = make_table(r, t.count < 64 ? t.count : 64); /* what is the same often needs a small one */
    int64_t *firsts = (int64_t *)r->workspace + table_capacity(t.count), *numbers = firsts + t.count, count = 0;
    for (int64_t i = 0; i < t.count; i++) {
        int64_t *slot = find_slot(&seen, &t, &t, i);
        if (!*slot) {
            if (table_capacity(count + 1) > seen.capacity)
                slot = grow_table(r, &seen, &t, firsts, count, i);
            *slot = i + 1;
            numbers[i] = count;
            firsts[count++] = i;
        } else {
            numbers[i] = numbers[*slot - 1];
        }
    }
    status = write_unique(r, &t, axis, firsts, count);
    if (status == TW_OK)
        status = write_indices(r, 1, numbers, t.count);
    if (status != TW_OK || r->num_outputs < 3)
        return status;
    memset(firsts, 0, sizeof *firsts * (size_t)count);
    for (int64_t i = 0; i < t.count; i++)
        firsts[numbers[i]]++;
    return write_indices(r, 2, firsts, count);
}

/* ---- ListDiff: what is in x and not in y, and where it was ---------------------------------------------------------
 */

static tw_status prepare_list_diff(twi_prepare *p)
{
    p->workspace = sizeof(int64_t) * (size_t)(table_capacity(p->inputs[1].elements) + p->inputs[0].elements + 1);
    return TW_OK;
}

static tw_status run_list_diff(const twi_run *r)
{
    things x = elements_of(r, 0), y = elements_of(r, 1);
    table known = make_table(r, y.count);
    int64_t *left = known.slots + known.capacity, count = 0;
    for (int64_t i = 0; i < y.count; i++)
        *find_slot(&known, &y, &y, i) = i + 1;
    for (int64_t i = 0; i < x.count; i++)
        if (!*find_slot(&known, &y, &x, i))
            left[count++] = i;
    tw_status status = write_unique(r, &x, 0, left, count);
    return status == TW_OK ? write_indices(r, 1, left, count) : status;
}

/* ---- DynamicPartition ----------------------------------------------------------------------------------------------
 */

static tw_status prepare_partition(twi_prepare *p)
{
    p->workspace = sizeof(int64_t) * ((size_t)p->num_outputs + 1) + sizeof(void *) * ((size_t)p->num_outputs + 1);
    return TW_OK;
}

static tw_status count_parts(const twi_run *r, int64_t *counts)
{
    const int32_t *parts = r->inputs[1];
    memset(counts, 0, sizeof *counts * (size_t)r->num_outputs);
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        char text[128];
        if (parts[i] < 0 || parts[i] >= r->num_outputs)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': partitions%s = %d is not in [0, %d)", r->node,
                            twi_position_text(r->input_operands[1].shape, i, text, sizeof text), parts[i],
                            r->num_outputs);
        counts[parts[i]]++;
    }
    return TW_OK;
}

static tw_status run_partition(const twi_run *r)
{
    const twi_operand *data = &r->input_operands[0], *of = &r->input_operands[1];
    const int32_t *parts = r->inputs[1];
    int64_t *counts = r->workspace;
    void **to = (void **)(counts + r->num_outputs + 1);
    int64_t row = twi_elements_between(data->shape, of->shape.rank, data->shape.rank);
    tw_status status = count_parts(r, counts);
    for (int k = 0; k < r->num_outputs && status == TW_OK; k++) {
        tw_shape shape = {.rank = 1, .dims = {counts[k]}};
        for (int i = of->shape.rank; i < data->shape.rank; i++)
            shape.dims[shape.rank++] = data->shape.dims[i];
        status = twi_make_output(r, k, shape, &to[k]);
        counts[k] = 0;
    }
    for (int64_t i = 0; i < of->elements && status == TW_OK; i++)
        if (!twi_copy_elements(row, data->dtype, twi_element(r->inputs[0], data->dtype, i * row),
                               twi_element_of_output(to[parts[i]], data->dtype, counts[parts[i]]++ * row)))
            status = twi_fail_memory(r->error, r->node);
    return status;
}

/* ---- Bucketize: how many of the boundaries are not above -----------------------------------------------------------
 */

typedef struct boundaries {
    const float *values;
    int count;
} boundaries;

static tw_status prepare_bucketize(twi_prepare *p)
{
    const twi_attr *attr = twi_attr_find(p->attrs, "boundaries");
    boundaries b = {attr->floats, attr->count};
    for (int i = 1; i < b.count; i++)
        if (b.values[i] < b.values[i - 1])
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': Expected sorted boundaries", p->op, p->node);
    return twi_keep(p, &b, sizeof b);
}

static double number_at(tw_dtype dtype, const void *data, int64_t i)
{
    return dtype == TW_FLOAT32   ? (double)((const float *)data)[i]
           : dtype == TW_FLOAT64 ? ((const double *)data)[i]
           : dtype == TW_INT64   ? (double)((const int64_t *)data)[i]
                                 : (double)((const int32_t *)data)[i];
}

static tw_status run_bucketize(const twi_run *r)
{
    const boundaries *b = r->state;
    for (int64_t i = 0; i < r->output_operands[0].elements; i++) {
        double x = number_at(r->input_operands[0].dtype, r->inputs[0], i);
        int low = 0, high = b->count;
        while (low < high) {
            int middle = (low + high) / 2;
            if (x < (double)b->values[middle])
                high = middle;
            else
                low = middle + 1;
        }
        ((int32_t *)r->outputs[0])[i] = low;
    }
    return TW_OK;
}

const twi_kernel twi_cpu_find_kernels[] = {
    {"Where", "plain", 0, NULL, run_where, NULL},
    {"Unique", "plain", 0, prepare_unique, run_unique, NULL},
    {"UniqueWithCounts", "plain", 0, prepare_unique, run_unique, NULL},
    {"UniqueV2", "plain", 0, prepare_unique, run_unique, NULL},
    {"UniqueWithCountsV2", "plain", 0, prepare_unique, run_unique, NULL},
    {"ListDiff", "plain", 0, prepare_list_diff, run_list_diff, NULL},
    {"Bucketize", "plain", 0, prepare_bucketize, run_bucketize, twi_free},
    {"DynamicPartition", "plain", 0, prepare_partition, run_partition, NULL},
    {0},
};
