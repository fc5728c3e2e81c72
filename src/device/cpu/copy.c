/* copy.c - see copy.h. */
#include "device/cpu/copy.h"

#include <string.h>

enum { WORTH_A_TEAM = 32768 * sizeof(float), LINE = 64 }; /* bytes; the former as for elementwise kernels */

static size_t part(size_t bytes, int i, int parts)
{
    return i == parts ? bytes : bytes / LINE * (size_t)i / (size_t)parts * LINE;
}

static int count_parts(size_t bytes, int threads)
{
    return bytes < WORTH_A_TEAM ? 1 : threads;
}

void twi_copy_block(void *to, const void *from, size_t bytes, int threads)
{
    int parts = count_parts(bytes, threads);
    if (parts == 1 && bytes) /* nothing may have no address */
        memcpy(to, from, bytes);
    if (parts == 1)
        return;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; i++) {
        size_t first = part(bytes, i, parts);
        memcpy((char *)to + first, (const char *)from + first, part(bytes, i + 1, parts) - first);
    }
}

void twi_clear_block(void *to, size_t bytes, int threads)
{
    int parts = count_parts(bytes, threads);
    if (parts == 1 && bytes)
        memset(to, 0, bytes);
    if (parts == 1)
        return;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int i = 0; i < parts; i++) {
        size_t first = part(bytes, i, parts);
        memset((char *)to + first, 0, part(bytes, i + 1, parts) - first);
    }
}
