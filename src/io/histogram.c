/* histogram.c - see histogram.h. */
#include "io/histogram.h"

#include "base/status.h"

#include <float.h>
#include <math.h>

#define POSITIVE 775 /* limits above 0 */

/* By repeated multiplication, not by powers: TensorFlow does so, and the last bits are part of the file. */
static void fill_limits(double limits[TWI_HISTOGRAM_BUCKETS])
{
    double limit = 1e-12;
    limits[POSITIVE] = 0;
    for (int i = 1; i <= POSITIVE; i++, limit *= 1.1) {
        double value = i < POSITIVE ? limit : DBL_MAX;
        limits[POSITIVE + i] = value;
        limits[POSITIVE - i] = -value;
    }
}

/* The first bucket whose limit is above value; the greatest double itself belongs to the last. */
static int bucket_of(const double limits[TWI_HISTOGRAM_BUCKETS], double value)
{
    int low = 0, high = TWI_HISTOGRAM_BUCKETS - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (limits[middle] > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

tw_status twi_histogram_of(const tw_tensor *tensor, const char *tag, twi_histogram *histogram, tw_error *error)
{
    tw_dtype dtype = tw_tensor_dtype(tensor);
    int64_t elements = tw_tensor_elements(tensor);
    if (dtype == TW_STRING || dtype == TW_RESOURCE)
        return twi_fail(error, TW_INVALID_ARGUMENT, "histogram '%s' needs numbers, not a tensor of type %s", tag,
                        tw_dtype_name(dtype));
    *histogram = (twi_histogram){.min = DBL_MAX, .max = -DBL_MAX};
    fill_limits(histogram->limit);
    for (int64_t i = 0; i < elements; i++) {
        double value = tw_tensor_value(tensor, i);
        if (!isfinite(value))
            return twi_fail(error, TW_INVALID_ARGUMENT, "histogram '%s' has %s at element %lld", tag,
                            isnan(value) ? "a NaN" : "an infinity", (long long)i);
        histogram->bucket[bucket_of(histogram->limit, value)]++;
        histogram->min = value < histogram->min ? value : histogram->min;
        histogram->max = value > histogram->max ? value : histogram->max;
        histogram->num++;
        histogram->sum += value;
        histogram->sum_squares += value * value;
    }
    for (int i = 0; i < TWI_HISTOGRAM_BUCKETS; i++) {
        bool in_run = histogram->count > 0 && histogram->bucket[i] == 0 && histogram->bucket[histogram->count - 1] == 0;
        histogram->count += !in_run; /* never above i + 1, so nothing unread is overwritten */
        histogram->limit[histogram->count - 1] = histogram->limit[i];
        histogram->bucket[histogram->count - 1] = histogram->bucket[i];
    }
    return TW_OK;
}
