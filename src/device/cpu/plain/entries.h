/* entries.h - entries of sparse tensors, sorted by their index. */
#ifndef TWI_CPU_ENTRIES_H
#define TWI_CPU_ENTRIES_H

#include <stdint.h>

typedef struct twi_entry {
    const int64_t *index; /* [rank] */
    int64_t rank, number; /* number: which entry it is */
} twi_entry;

/* As for qsort(): row-major; of equal ones the first comes first. */
static inline int twi_entry_order(const void *a, const void *b)
{
    const twi_entry *x = a, *y = b;
    for (int64_t i = 0; i < x->rank; i++)
        if (x->index[i] != y->index[i])
            return x->index[i] < y->index[i] ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

#endif
