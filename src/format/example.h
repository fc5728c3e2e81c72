/* example.h - tf.train.Example as records hold it: named features, each a list of strings, floats or integers; and
 * SequenceExample, which has such features as its context, and beside them named lists of features. Read where they
 * lie, without memory of its own; nothing is believed of the bytes. */
#ifndef TWI_EXAMPLE_H
#define TWI_EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <tower/tensor.h>

typedef struct twi_feature {
    const char *key;
    size_t key_size;
    tw_dtype dtype;           /* TW_STRING, TW_FLOAT32, TW_INT64; TW_INVALID_DTYPE: it holds no list */
    const char *values, *end; /* the list as it was written */
} twi_feature;

/* Where the reader stands; begin with twi_example_begin(). */
typedef struct twi_example {
    const char *at, *end;       /* in the example */
    const char *feature, *last; /* in its features */
    uint64_t number;            /* of the field that these are in */
} twi_example;

twi_example twi_example_begin(const void *bytes, size_t size);
/* The next feature: 1; 0: there are no more; -1: these bytes are no example. */
int twi_example_next(twi_example *example, twi_feature *feature);

/* The lists of features of a SequenceExample, one by one as above; a list's `values` are its features. Its context is
 * read as an example. */
twi_example twi_sequence_begin(const void *bytes, size_t size);
int twi_sequence_next(twi_example *sequence, twi_feature *list);
/* The next feature of a list, from *at on, which begins as its `values`: 1, 0, -1. It has no key. */
int twi_list_next(const twi_feature *list, const char **at, twi_feature *feature);

/* How many values it has; -1: they cannot be read. */
int64_t twi_feature_count(const twi_feature *feature);
/* Writes them from `to` on: int64_t, float or tw_string, of which each becomes a copy. False: memory has run out. */
bool twi_feature_read(const twi_feature *feature, void *to);

#endif
