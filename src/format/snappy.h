/* snappy.h - expands blocks in Snappy's raw format, which old TensorFlow checkpoints used for their index. */
#ifndef TWI_SNAPPY_H
#define TWI_SNAPPY_H

#include <stddef.h>
#include <tower/status.h>

/* TW_DATA_LOSS for damaged input, TW_RESOURCE_EXHAUSTED when out of memory. *expanded is yours: twi_free(). */
tw_status twi_snappy_expand(const char *bytes, size_t size, char **expanded, size_t *expanded_size);

#endif
