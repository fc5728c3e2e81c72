/* histogram.h - how the values of a tensor are spread, in TensorFlow's buckets. */
#ifndef TWI_HISTOGRAM_H
#define TWI_HISTOGRAM_H

#include <tower/tensor.h>

/* 774 limits from 1e-12 on, each 1.1 times the one before, then the greatest double; their negatives; and 0. */
#define TWI_HISTOGRAM_BUCKETS 1551

typedef struct twi_histogram {
    double min, max, num, sum, sum_squares;
    int count;                            /* of buckets; a run of empty ones counts as one */
    double limit[TWI_HISTOGRAM_BUCKETS];  /* bucket i covers limit[i - 1] <= x < limit[i] */
    double bucket[TWI_HISTOGRAM_BUCKETS]; /* values in it */
} twi_histogram;

/* The tag is for messages. TW_INVALID_ARGUMENT for strings, NaN and infinities. */
tw_status twi_histogram_of(const tw_tensor *tensor, const char *tag, twi_histogram *histogram, tw_error *error);

#endif
