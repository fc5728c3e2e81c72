/* histogram.c - see histogram.h.
 *
 * Buckets grow by tenths, which no bit of a double tells. Cells do: each holds the numbers of one exponent and one
 * value of the four highest bits behind it, so a cell is narrower than a bucket and at most one limit lies in it. The
 * search is then a look-up and a comparison, without a branch that values as random as weights could mislead. */
#include "base/histogram.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    ZERO = TWI_HISTOGRAM_BUCKETS / 2, /* of the limit 0 */
    LIMITS = ZERO - 1,                /* finite limits above it; the largest double comes behind them */
    FIRST_CELL = (1023 - 40) << 4,    /* 2^-40 is less than the least limit, 2^67 more than the greatest */
};

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* 774 limits from 1e-12 up by tenths, then the largest double; the same mirrored below zero, and zero itself. Made by
 * repeated multiplication, because pow() would give other last bits. */
void twi_histogram_start(twi_histogram *h)
{
    memset(h, 0, sizeof *h);
    int i = 1;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1, i++) {
        h->limits[ZERO + i] = limit;
        h->limits[ZERO - i] = -limit;
    }
    h->limits[ZERO + i] = DBL_MAX;
    h->limits[ZERO - i] = -DBL_MAX;
    for (int cell = 0, below = 0; cell < TWI_HISTOGRAM_CELLS; cell++) {
        uint64_t least = (uint64_t)(FIRST_CELL + cell) << 48;
        while (below < LIMITS && bits_of(h->limits[ZERO + below + 1]) <= least)
            below++;
        h->cells[cell] = (uint16_t)below;
    }
    h->min = DBL_MAX;
    h->max = -DBL_MAX;
}

/* The first bucket whose limit is above the value; the largest double itself belongs to the last. */
static inline int bucket_of(const twi_histogram *h, double value)
{
    const double *limits = h->limits + ZERO; /* of what is above zero, from 1 */
    double size = fabs(value);
    int64_t cell = (int64_t)(bits_of(size) >> 48) - FIRST_CELL;
    cell = cell < 0 ? 0 : cell;
    int below =
        h->cells[cell < TWI_HISTOGRAM_CELLS ? cell : TWI_HISTOGRAM_CELLS - 1]; /* all: no limit is in the last */
    int up = ZERO + 1 + below + (below < LIMITS && limits[below + 1] <= size);
    int down = ZERO - below - (limits[below + 1] < size) + (limits[below] >= size); /* a limit is of the other side */
    return value >= 0 ? up : down;
}

void twi_histogram_add(twi_histogram *h, double value)
{
    h->buckets[bucket_of(h, value)]++;
    h->min = value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
    h->num++;
    h->sum += value;
    h->sum_squares += value * value;
}

int64_t twi_histogram_add_floats(twi_histogram *h, const float *values, int64_t count)
{
    double min = h->min, max = h->max, sum = h->sum, squares = h->sum_squares;
    int64_t i = 0;
    for (; i < count && isfinite(values[i]); i++) {
        double value = values[i];
        h->buckets[bucket_of(h, value)]++;
        min = value < min ? value : min;
        max = value > max ? value : max;
        sum += value;
        squares += value * value;
    }
    h->min = min;
    h->max = max;
    h->num += (double)i;
    h->sum = sum;
    h->sum_squares = squares;
    return i;
}

int twi_histogram_squeeze(twi_histogram *h)
{
    int kept = 0;
    for (int i = 0; i < TWI_HISTOGRAM_BUCKETS; i++, kept++) {
        while (h->buckets[i] <= 0 && i + 1 < TWI_HISTOGRAM_BUCKETS && h->buckets[i + 1] <= 0)
            i++;
        h->limits[kept] = h->limits[i];
        h->buckets[kept] = h->buckets[i];
    }
    return kept;
}
