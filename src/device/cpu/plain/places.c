/* places.c - where numbers fall: into bins, among sorted ones, at which index of an array; and the n-th of them. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "tensor/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Element i as a double, by which all that are compared here are told apart but integers beyond 2^53. */
static double number_at(tw_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case TW_FLOAT32:
        return (double)((const float *)data)[i];
    case TW_FLOAT64:
        return ((const double *)data)[i];
    case TW_FLOAT16:
        return (double)tw_half_to_float(((const uint16_t *)data)[i]);
    case TW_BFLOAT16:
        return (double)tw_bfloat16_to_float(((const uint16_t *)data)[i]);
    case TW_UINT64:
        return (double)((const uint64_t *)data)[i];
    default:
        return (double)twi_integer_at(dtype, data, i);
    }
}

static int compare(tw_dtype dtype, const void *a, const void *b)
{
    if (dtype == TW_UINT64)
        return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
    if (dtype == TW_INT64)
        return *(const int64_t *)a < *(const int64_t *)b ? -1 : *(const int64_t *)a > *(const int64_t *)b;
    double x = number_at(dtype, a, 0), y = number_at(dtype, b, 0);
    return x < y ? -1 : x > y;
}

/* ---- bins -------------------------------------------------------------------------------------------------------- */

/* What lies outside of the range falls into the first or last bin. */
static tw_status run_histogram(const twi_run *r)
{
    tw_dtype dtype = r->input_operands[0].dtype;
    int64_t bins = r->output_operands[0].elements;
    double low = number_at(dtype, r->inputs[1], 0), high = number_at(dtype, r->inputs[1], 1);
    if (!(low < high))
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': value_range[0] must be below value_range[1], got [%g,%g]",
                        r->node, low, high);
    double step = high / (double)bins - low / (double)bins; /* in this order: borders are where TensorFlow has them */
    if (r->output_operands[0].bytes)
        memset(r->outputs[0], 0, r->output_operands[0].bytes);
    for (int64_t i = 0; i < r->input_operands[0].elements; i++) {
        double value = number_at(dtype, r->inputs[0], i);
        if (isnan(value) && bins > 1)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': values must not contain NaN, value %lld is one", r->node,
                            (long long)i);
        int64_t bin = (int64_t)fmin((fmin(fmax(value, low), high) - low) / step, (double)(bins - 1));
        if (r->output_operands[0].dtype == TW_INT64)
            ((int64_t *)r->outputs[0])[bin]++;
        else
            ((int32_t *)r->outputs[0])[bin]++;
    }
    return TW_OK;
}

/* ---- among sorted ones ------------------------------------------------------------------------------------------- */

/* How many of a row are smaller, or with `upper` not larger. */
static void find_bounds(const twi_run *r, bool upper)
{
    tw_dtype dtype = r->input_operands[0].dtype;
    int64_t rows = r->input_operands[1].shape.dims[0], n = r->input_operands[0].shape.dims[1];
    int64_t m = r->input_operands[1].shape.dims[1];
    for (int64_t i = 0; i < rows * m; i++) {
        const void *value = twi_element(r->inputs[1], dtype, i);
        int64_t low = 0, high = n;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            int order = compare(dtype, twi_element(r->inputs[0], dtype, i / m * n + middle), value);
            if (order < 0 || (upper && order == 0))
                low = middle + 1;
            else
                high = middle;
        }
        twi_output_int(r, 0, i, low);
    }
}

static tw_status run_lower(const twi_run *r)
{
    return find_bounds(r, false), TW_OK;
}

static tw_status run_upper(const twi_run *r)
{
    return find_bounds(r, true), TW_OK;
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

static tw_status run_unravel(const twi_run *r)
{
    int64_t rank = r->input_operands[1].elements, n = r->input_operands[0].elements, all = 1;
    for (int64_t k = 0; k < rank; k++)
        if (twi_input_int(r, 1, k) < 1 || __builtin_mul_overflow(all, twi_input_int(r, 1, k), &all))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': dims cannot contain a dim of %lld", r->node,
                            (long long)twi_input_int(r, 1, k));
    for (int64_t i = 0; i < n; i++) {
        int64_t place = twi_input_int(r, 0, i);
        if (place < 0 || place >= all)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': index %lld is out of bound as with dims", r->node,
                            (long long)place);
        for (int64_t k = rank - 1; k >= 0; k--) {
            twi_output_int(r, 0, k * n + i, place % twi_input_int(r, 1, k));
            place /= twi_input_int(r, 1, k);
        }
    }
    return TW_OK;
}

/* ---- the n-th ---------------------------------------------------------------------------------------------------- */

typedef struct ranked {
    const void *element;
    tw_dtype dtype;
} ranked;

static int by_value(const void *a, const void *b)
{
    return compare(((const ranked *)a)->dtype, ((const ranked *)a)->element, ((const ranked *)b)->element);
}

static tw_status prepare_nth(twi_prepare *p)
{
    static const bool reverse = true;
    const tw_shape *in = &p->inputs[0].shape;
    p->workspace = sizeof(ranked) * (size_t)(in->dims[in->rank - 1] + 1);
    p->state = twi_attr_bool(p->attrs, "reverse", false) ? (void *)(uintptr_t)&reverse : NULL;
    return TW_OK;
}

static tw_status run_nth(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    int64_t size = in->shape.dims[in->shape.rank - 1], n = *(const int32_t *)r->inputs[1];
    ranked *row = r->workspace;
    if (n < 0 || n >= size)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': Input must have last dimension > n = %lld, but it has %lld",
                        r->node, (long long)n, (long long)size);
    for (int64_t i = 0; i < r->output_operands[0].elements; i++) {
        for (int64_t k = 0; k < size; k++)
            row[k] = (ranked){twi_element(r->inputs[0], in->dtype, i * size + k), in->dtype};
        qsort(row, (size_t)size, sizeof *row, by_value);
        twi_copy_elements(1, in->dtype, row[r->state ? size - 1 - n : n].element,
                          twi_element_of_output(r->outputs[0], in->dtype, i));
    }
    return TW_OK;
}

const twi_kernel twi_cpu_places_kernels[] = {
    {"HistogramFixedWidth", "plain", 0, NULL, run_histogram},
    {"LowerBound", "plain", TWI_NUMBER_TYPES, NULL, run_lower},
    {"UpperBound", "plain", TWI_NUMBER_TYPES, NULL, run_upper},
    {"UnravelIndex", "plain", 0, NULL, run_unravel},
    {"NthElement", "plain", TWI_NUMBER_TYPES, prepare_nth, run_nth},
    {0},
};
