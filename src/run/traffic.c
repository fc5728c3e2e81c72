/* traffic.c - see traffic.h. Memory that has been touched is kept as extents in order of address; one is split where a
 * work touches a part of it. */
#include "run/traffic.h"

#include "base/array.h"

#include <stdint.h>
#include <string.h>

typedef TWI_ARRAY(int) works;

typedef struct extent {
    uintptr_t begin, end;
    int writer;    /* the last; -1: none */
    works readers; /* since then */
} extent;

struct twi_traffic {
    TWI_ARRAY(extent) extents;
    works after; /* of the present work, as far as it is told */
    int work;
};

twi_traffic *twi_traffic_create(void)
{
    return twi_alloc(sizeof(twi_traffic));
}

void twi_traffic_destroy(twi_traffic *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->extents.count; i++)
        twi_array_free(&t->extents.items[i].readers);
    twi_array_free(&t->extents);
    twi_array_free(&t->after);
    twi_free(t);
}

static bool note(twi_traffic *t, int work)
{
    if (work < 0 || work == t->work)
        return true;
    for (int i = 0; i < t->after.count; i++)
        if (t->after.items[i] == work)
            return true;
    return twi_push(&t->after, work);
}

/* A extent before number `at`; its readers are its own. */
static bool insert(twi_traffic *t, int at, uintptr_t begin, uintptr_t end, const extent *like)
{
    extent made = {.begin = begin, .end = end, .writer = like ? like->writer : -1};
    for (int i = 0; like && i < like->readers.count; i++)
        if (!twi_push(&made.readers, like->readers.items[i]))
            return twi_array_free(&made.readers), false;
    if (!twi_reserve(&t->extents, t->extents.count + 1))
        return twi_array_free(&made.readers), false;
    extent *to = t->extents.items + at;
    memmove(to + 1, to, sizeof *to * (size_t)(t->extents.count++ - at));
    *to = made;
    return true;
}

/* Number of the first extent that ends behind the address. */
static int find(const twi_traffic *t, uintptr_t address)
{
    int low = 0, high = t->extents.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (t->extents.items[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes the address a border if it lies inside of a extent. */
static bool split(twi_traffic *t, uintptr_t address)
{
    int at = find(t, address);
    if (at == t->extents.count || t->extents.items[at].begin >= address)
        return true;
    extent whole = t->extents.items[at];
    if (!insert(t, at, whole.begin, address, &whole))
        return false;
    t->extents.items[at + 1].begin = address;
    return true;
}

/* Segments for what lies between those that there are. */
static bool cover(twi_traffic *t, uintptr_t begin, uintptr_t end)
{
    for (int at = find(t, begin); begin < end; at++) {
        uintptr_t next = at < t->extents.count && t->extents.items[at].begin < end ? t->extents.items[at].begin : end;
        if (begin < next && !insert(t, at, begin, next, NULL))
            return false;
        begin = t->extents.items[at].end;
    }
    return true;
}

static bool touch_extent(twi_traffic *t, extent *s, bool writes)
{
    if (!writes) {
        bool known = s->readers.count && s->readers.items[s->readers.count - 1] == t->work;
        return note(t, s->writer) && (known || s->writer == t->work || twi_push(&s->readers, t->work));
    }
    bool read_by_others = false;
    for (int i = 0; i < s->readers.count; i++) {
        read_by_others = read_by_others || s->readers.items[i] != t->work;
        if (!note(t, s->readers.items[i]))
            return false;
    }
    if (!read_by_others && !note(t, s->writer)) /* readers come after the writer, all of them */
        return false;
    s->readers.count = 0;
    s->writer = t->work;
    return true;
}

tw_status twi_traffic_touch(twi_traffic *t, const void *memory, size_t bytes, bool writes)
{
    uintptr_t begin = (uintptr_t)memory, end = begin + bytes;
    if (!bytes)
        return TW_OK;
    if (!split(t, begin) || !split(t, end) || !cover(t, begin, end))
        return TW_RESOURCE_EXHAUSTED;
    for (int at = find(t, begin); at < t->extents.count && t->extents.items[at].begin < end; at++)
        if (!touch_extent(t, &t->extents.items[at], writes))
            return TW_RESOURCE_EXHAUSTED;
    return TW_OK;
}

void twi_traffic_end_work(twi_traffic *t, const int **after, int *count)
{
    *after = t->after.items;
    *count = t->after.count;
    t->after.count = 0;
    t->work++;
}
