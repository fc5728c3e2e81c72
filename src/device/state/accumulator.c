/* accumulator.c - see accumulator.h. */
#include "device/state/accumulator.h"

#include "base/memory.h"
#include "device/state/monitor.h"
#include "tensor/tensor.h"

#include <string.h>

/* Rows side by side with their indices, in rising order, and how many gradients had each; a dense gradient is one
 * row. */
typedef struct rows {
    int64_t count;
    int64_t *indices, *times; /* [count] */
    char *values;             /* [count, row] */
} rows;

struct twi_accumulator {
    twi_monitor monitor; /* first; guards all that changes */
    twi_accumulator_options options; /* with a name of its own */
    int64_t step, gradients;
    tw_shape shape; /* of a gradient; of a sparse one its rows count for nothing */
    rows sum;
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void free_rows(rows *r)
{
    twi_free(r->indices);
    twi_free(r->times);
    twi_free(r->values);
    *r = (rows){0};
}

static void destroy(void *object)
{
    twi_accumulator *a = object;
    if (!a)
        return;
    free_rows(&a->sum);
    twi_free((char *)a->options.name);
    twi_monitor_destroy(&a->monitor);
    twi_free(a);
}

twi_accumulator *twi_accumulator_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

const twi_accumulator_options *twi_accumulator_what(const twi_accumulator *a)
{
    return &a->options;
}

tw_status twi_accumulator_make(twi_resource *resource, const twi_accumulator_options *o, tw_error *error)
{
    const twi_accumulator *found = twi_accumulator_of(resource);
    if (found && found->options.dtype == o->dtype && tw_shape_equal(found->options.shape, o->shape) &&
        found->options.sparse == o->sparse && found->options.mean == o->mean)
        return TW_OK;
    if (found || resource->object || resource->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT, "accumulator '%s': that name is taken by %s", o->name,
                        found ? "another accumulator" : "something that is no accumulator");
    twi_accumulator *a = twi_alloc(sizeof *a);
    char *name = a ? twi_strdup(o->name) : NULL;
    if (!name) {
        twi_free(a);
        return twi_fail_memory(error, "making an accumulator");
    }
    a->options = *o;
    a->options.name = name;
    twi_monitor_init(&a->monitor);
    resource->object = a;
    resource->destroy = destroy;
    resource->wake = twi_monitor_wake;
    return TW_OK;
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static void add(tw_dtype dtype, int64_t count, const void *from, void *to)
{
    for (int64_t i = 0; i < count; i++)
        switch (dtype) {
        case TW_FLOAT32:
            ((float *)to)[i] += ((const float *)from)[i];
            break;
        case TW_FLOAT64:
            ((double *)to)[i] += ((const double *)from)[i];
            break;
        default:
            ((uint16_t *)to)[i] = tw_float_to_half(tw_half_to_float(((uint16_t *)to)[i]) +
                                                   tw_half_to_float(((const uint16_t *)from)[i]));
        }
}

static void divide(tw_dtype dtype, int64_t count, int64_t by, void *values)
{
    for (int64_t i = 0; i < count; i++)
        switch (dtype) {
        case TW_FLOAT32:
            ((float *)values)[i] /= (float)by;
            break;
        case TW_FLOAT64:
            ((double *)values)[i] /= (double)by;
            break;
        default:
            ((uint16_t *)values)[i] = tw_float_to_half(tw_half_to_float(((uint16_t *)values)[i]) / (float)by);
        }
}

/* ---- gathering, with the lock held ------------------------------------------------------------------------------- */

static int64_t row_elements(const twi_accumulator *a)
{
    int64_t elements = 1;
    for (int i = a->options.sparse; i < a->shape.rank; i++)
        elements *= a->shape.dims[i];
    return elements;
}

/* Merges rows that come, in rising order of their indices, with those there are. */
static tw_status merge(twi_accumulator *a, const twi_run *r, const rows *more)
{
    int64_t elements = row_elements(a), i = 0, k = 0;
    size_t row = (size_t)elements * tw_dtype_size(a->options.dtype), most = (size_t)(a->sum.count + more->count);
    rows made = {.indices = twi_alloc_array(most + 1, sizeof(int64_t)),
                 .times = twi_alloc_array(most + 1, sizeof(int64_t)),
                 .values = twi_alloc_array(most + 1, row + 1)};
    if (!made.indices || !made.times || !made.values) {
        free_rows(&made);
        return twi_fail_memory(r->error, "gathering gradients");
    }
    while (i < a->sum.count || k < more->count) {
        char *to = made.values + (size_t)made.count * row;
        bool old = i < a->sum.count && (k == more->count || a->sum.indices[i] <= more->indices[k]);
        bool both = old && k < more->count && a->sum.indices[i] == more->indices[k];
        const rows *from = old ? &a->sum : more;
        int64_t at = old ? i : k;
        made.indices[made.count] = from->indices[at];
        made.times[made.count++] = (old ? a->sum.times[i] : 1) + both;
        if (row)
            memcpy(to, from->values + (size_t)at * row, row);
        if (both)
            add(a->options.dtype, elements, more->values + (size_t)k * row, to);
        i += old;
        k += !old || both;
    }
    free_rows(&a->sum);
    a->sum = made;
    return TW_OK;
}

/* The first gradient says what the options leave open. */
static tw_status check_shape(twi_accumulator *a, const twi_run *r, tw_shape shape)
{
    char wants[96], has[96];
    tw_shape wanted = a->gradients ? a->shape : a->options.shape, compared = shape;
    if (a->options.sparse && shape.rank > 0 && wanted.rank > 0)
        wanted.dims[0] = compared.dims[0]; /* how many rows there are is not said by those that come */
    if (!tw_shape_compatible(wanted, compared))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
                        tw_shape_text(wanted, wants, sizeof wants), tw_shape_text(shape, has, sizeof has));
    a->shape = shape;
    return TW_OK;
}

tw_status twi_accumulator_apply(twi_accumulator *a, const twi_run *r, int64_t step, const int64_t *indices,
                                tw_shape shape, const void *values)
{
    static const int64_t whole[] = {0};
    /* merge() reads these and changes nothing */
    rows more = {indices ? shape.dims[0] : 1, (int64_t *)(uintptr_t)(indices ? indices : whole), NULL,
                 (char *)(uintptr_t)values};
    tw_status status = TW_OK;
    twi_monitor_enter(&a->monitor);
    if (step >= a->step) {
        status = check_shape(a, r, shape);
        if (status == TW_OK)
            status = merge(a, r, &more);
        if (status == TW_OK && a->gradients++ >= 0)
            twi_monitor_notify(&a->monitor);
    }
    twi_monitor_leave(&a->monitor);
    return status;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

static tw_status give(twi_accumulator *a, const twi_run *r)
{
    tw_shape shape = a->shape;
    void *values, *indices, *full;
    int at = a->options.sparse;
    int64_t elements = row_elements(a);
    if (a->options.sparse)
        shape.dims[0] = a->sum.count;
    tw_status status = twi_make_output(r, at, shape, &values);
    if (status == TW_OK && a->options.sparse)
        status = twi_make_output(r, 0, TW_SHAPE(a->sum.count), &indices);
    if (status == TW_OK && a->options.sparse)
        status = twi_make_output(r, 2, TW_SHAPE(shape.rank), &full);
    if (status != TW_OK)
        return status;
    size_t row = (size_t)elements * tw_dtype_size(a->options.dtype);
    for (int64_t i = 0; i < a->sum.count && a->options.mean; i++)
        divide(a->options.dtype, elements, a->sum.times[i], a->sum.values + (size_t)i * row);
    if (a->sum.count && row)
        memcpy(values, a->sum.values, (size_t)a->sum.count * row);
    if (a->options.sparse && a->sum.count)
        memcpy(indices, a->sum.indices, (size_t)a->sum.count * sizeof(int64_t));
    for (int i = 0; i < shape.rank && a->options.sparse; i++)
        ((int64_t *)full)[i] = i ? shape.dims[i] : a->options.shape.rank > 0 ? a->options.shape.dims[0] : -1;
    return TW_OK;
}

tw_status twi_accumulator_take(twi_accumulator *a, const twi_run *r, int64_t required)
{
    tw_status status = TW_OK;
    if (required < 1)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "Argument num_required must be at least 1, not %lld",
                        (long long)required);
    twi_monitor_enter(&a->monitor);
    while (a->gradients < required && !twi_run_is_ending(r))
        twi_monitor_wait(&a->monitor);
    if (a->gradients < required) {
        status =
            twi_fail(r->error, TW_CANCELLED, "taking a gradient of accumulator '%s' was cancelled", a->options.name);
    } else {
        status = give(a, r);
        free_rows(&a->sum);
        a->gradients = 0;
        a->step++;
    }
    twi_monitor_leave(&a->monitor);
    return status;
}

void twi_accumulator_set_step(twi_accumulator *a, int64_t step)
{
    twi_monitor_enter(&a->monitor);
    a->step = step;
    twi_monitor_leave(&a->monitor);
}

int64_t twi_accumulator_count(twi_accumulator *a)
{
    twi_monitor_enter(&a->monitor);
    int64_t count = a->gradients;
    twi_monitor_leave(&a->monitor);
    return count;
}
