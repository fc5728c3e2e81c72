/* kernel_index.h - the rows of a list of kernels by op, so that planning a hundred thousand nodes does not walk the
 * list for each. A set of devices makes one for each list, before anybody may ask, and its devices share it. */
#ifndef TWI_KERNEL_INDEX_H
#define TWI_KERNEL_INDEX_H

#include "base/map.h"
#include "device/kernel.h"

/* The rows of an op, fastest first. */
typedef struct twi_kernel_rows {
    const twi_kernel **rows;
    int count;
    uint64_t types;  /* that some row takes; all bits where a row takes any */
    uint64_t lacked; /* types for which the rows are hidden; see twi_device_ops */
} twi_kernel_rows;

typedef struct twi_kernel_index {
    const twi_kernel *const *families; /* what it was made of */
    uint64_t (*lacks)(const char *op);
    twi_map by_op;
    twi_kernel_rows *ops;
    const twi_kernel **rows;
} twi_kernel_index;

/* NULL when out of memory. lacks NULL: no types are hidden. */
twi_kernel_index *twi_kernel_index_make(const twi_kernel *const *families, uint64_t (*lacks)(const char *op));
void twi_kernel_index_free(twi_kernel_index *index); /* NULL is fine */

/* NULL: there are none, nor has the program registered the op (own.h). */
const twi_kernel_rows *twi_kernel_index_find(const twi_kernel_index *index, const char *op);

#endif
