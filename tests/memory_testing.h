/* memory_testing.h - what a plan of a device's memory must keep. */
#ifndef MEMORY_TESTING_H
#define MEMORY_TESTING_H

#include "testing.h"

#include <tower/explain.h>

static inline void assert_items_add_up(const tw_device_memory *m)
{
    int64_t items = 0;
    for (int i = 0; i < m->num_items; i++)
        items += m->items[i].bytes;
    assert_int_equal(items, m->total);
}

#endif
