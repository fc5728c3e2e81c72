/* histogram.h - TensorFlow's histograms of values: exponential buckets, so fine near zero and wide far out. */
#ifndef TWI_HISTOGRAM_H
#define TWI_HISTOGRAM_H

#include <stdint.h>

#define TWI_HISTOGRAM_BUCKETS 1551
#define TWI_HISTOGRAM_CELLS 1712

typedef struct twi_histogram {
    double min, max, num, sum, sum_squares;
    double limits[TWI_HISTOGRAM_BUCKETS];  /* upper edges, rising */
    double buckets[TWI_HISTOGRAM_BUCKETS]; /* counts; bucket i holds limits[i - 1] <= x < limits[i] */
    uint16_t cells[TWI_HISTOGRAM_CELLS];   /* how many limits above zero lie at or below the least number of a cell: see
                                              histogram.c */
} twi_histogram;                           /* 29 KB: not for small stacks */

void twi_histogram_start(twi_histogram *histogram);
void twi_histogram_add(twi_histogram *histogram, double value); /* a finite value */
/* Adds all; stops at the first value that is not finite. Returns how many were added. */
int64_t twi_histogram_add_floats(twi_histogram *histogram, const float *values, int64_t count);
/* Makes every run of empty buckets one bucket, as TensorFlow writes them; returns how many there are then. */
int twi_histogram_squeeze(twi_histogram *histogram);

#endif
