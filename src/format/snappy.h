/* snappy.h - expands blocks in Snappy's raw format, which old TensorFlow checkpoints used for their index. */
#ifndef TWI_SNAPPY_H
#define TWI_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>

/* False for damaged input and when out of memory. *expanded is yours: twi_free(). */
bool twi_snappy_expand(const char *bytes, size_t size, char **expanded, size_t *expanded_size);

#endif
