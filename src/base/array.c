/* array.c - see array.h. */
#include "base/array.h"

#include <limits.h>

bool twi_array_grow(void **items, int *capacity, int needed, size_t bytes)
{
    int grown = *capacity < 8 ? 8 : *capacity > INT_MAX / 2 ? INT_MAX : *capacity * 2;
    if (grown < needed)
        grown = needed;
    if ((size_t)grown > SIZE_MAX / bytes)
        return false;
    void *moved = twi_resize(*items, (size_t)grown * bytes);
    if (!moved)
        return false;
    *items = moved;
    *capacity = grown;
    return true;
}
