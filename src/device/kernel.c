/* kernel.c - what many prepare()s end with; see kernel.h. */
#include "device/kernel.h"

#include "base/memory.h"

#include <string.h>

tw_status twi_keep(twi_prepare *p, const void *state, size_t size)
{
    void *copy = twi_alloc(size);
    if (!copy)
        return twi_fail_memory(p->error, p->node);
    p->state = memcpy(copy, state, size);
    return TW_OK;
}

size_t twi_make_room(size_t *size, size_t bytes)
{
    size_t at = *size;
    *size += (bytes + 63) / 64 * 64;
    return at;
}
