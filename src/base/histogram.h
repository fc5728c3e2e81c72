/* histogram.h - TensorFlow's histograms of values: exponential buckets, so fine near zero and wide far out. */
#ifndef TWI_HISTOGRAM_H
#define TWI_HISTOGRAM_H

#define TWI_HISTOGRAM_BUCKETS 1551

typedef struct twi_histogram {
    double min, max, num, sum, sum_squares;
    double limits[TWI_HISTOGRAM_BUCKETS];  /* upper edges, rising */
    double buckets[TWI_HISTOGRAM_BUCKETS]; /* counts */
} twi_histogram;                           /* 25 KB: not for small stacks */

void twi_histogram_start(twi_histogram *histogram);
void twi_histogram_add(twi_histogram *histogram, double value); /* a finite value */
/* Makes every run of empty buckets one bucket, as TensorFlow writes them; returns how many there are then. */
int twi_histogram_squeeze(twi_histogram *histogram);

#endif
