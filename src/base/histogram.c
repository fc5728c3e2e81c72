/* histogram.c - see histogram.h. */
#include "base/histogram.h"

#include <float.h>
#include <string.h>

/* 774 limits from 1e-12 up by tenths, then the largest double; the same mirrored below zero, and zero itself. Made by
 * repeated multiplication, because pow() would give other last bits. */
void twi_histogram_start(twi_histogram *h)
{
    enum { ZERO = TWI_HISTOGRAM_BUCKETS / 2 };
    memset(h, 0, sizeof *h);
    int i = 1;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1, i++) {
        h->limits[ZERO + i] = limit;
        h->limits[ZERO - i] = -limit;
    }
    h->limits[ZERO + i] = DBL_MAX;
    h->limits[ZERO - i] = -DBL_MAX;
    h->min = DBL_MAX;
    h->max = -DBL_MAX;
}

void twi_histogram_add(twi_histogram *h, double value)
{
    int first = 0, count = TWI_HISTOGRAM_BUCKETS - 1; /* the last limit takes what is left */
    while (count > 0) {                               /* the first limit above the value */
        int half = count / 2;
        if (h->limits[first + half] <= value) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    h->buckets[first]++;
    h->min = value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
    h->num++;
    h->sum += value;
    h->sum_squares += value * value;
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
