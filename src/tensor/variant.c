/* variant.c - see variant.h. */
#include "tensor/variant.h"

#include "base/memory.h"

#include <string.h>

/* ---- items ------------------------------------------------------------------------------------------------------- */

enum { BITS = 4, WIDTH = 1 << BITS, MOST_LEVELS = 15 }; /* of a part; of them above each other, as an int64 counts */

static void release_items(twi_tensor_items *items, int levels);

/* A tensor, or a part that has so many levels. */
static void release_below(void *below, int levels)
{
    if (levels > 0)
        release_items(below, levels);
    else
        tw_tensor_release(below);
}

static void release_items(twi_tensor_items *items, int levels)
{
    if (!items || atomic_fetch_sub_explicit(&items->holders, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < WIDTH; i++)
        release_below(items->below[i], levels - 1);
    twi_free(items);
}

static twi_tensor_items *copy_items(const twi_tensor_items *items, int levels)
{
    twi_tensor_items *copy = twi_alloc(sizeof *copy);
    if (!copy)
        return NULL;
    atomic_init(&copy->holders, 1);
    for (int i = 0; items && i < WIDTH; i++) {
        copy->below[i] = items->below[i];
        if (copy->below[i] && levels > 1)
            atomic_fetch_add_explicit(&((twi_tensor_items *)copy->below[i])->holders, 1, memory_order_relaxed);
        else if (copy->below[i])
            tw_tensor_retain(copy->below[i]);
    }
    return copy;
}

/* Makes *items a part that nobody else has. */
static bool own_items(twi_tensor_items **items, int levels)
{
    if (*items && atomic_load_explicit(&(*items)->holders, memory_order_acquire) == 1)
        return true;
    twi_tensor_items *copy = copy_items(*items, levels);
    if (!copy)
        return false;
    release_items(*items, levels);
    *items = copy;
    return true;
}

static int place_of(int64_t i, int levels)
{
    return (int)(i >> (BITS * (levels - 1))) & (WIDTH - 1);
}

tw_tensor *twi_tensor_list_item(const twi_tensor_list *list, int64_t i)
{
    void *below = list->items;
    for (int levels = list->levels; levels > 0 && below; levels--)
        below = ((twi_tensor_items *)below)->below[place_of(i, levels)];
    return below;
}

int64_t twi_tensor_list_next(const twi_tensor_list *list, int64_t i)
{
    while (i < list->count) {
        void *below = list->items;
        int levels = list->levels;
        for (; levels > 0 && below; levels--)
            below = ((twi_tensor_items *)below)->below[place_of(i, levels)];
        if (below)
            return i;
        i = (i | ((INT64_C(1) << (BITS * levels)) - 1)) + 1; /* behind the part that is not there */
    }
    return list->count;
}

/* Takes away what lies behind the first `count` of a part. */
static bool cut(twi_tensor_items **items, int levels, int64_t count)
{
    int64_t each = INT64_C(1) << (BITS * (levels - 1));
    if (!*items)
        return true;
    if (!own_items(items, levels))
        return false;
    for (int i = 0; i < WIDTH; i++, count -= each) {
        void **below = &(*items)->below[i];
        if (count > 0 && count < each && !cut((twi_tensor_items **)below, levels - 1, count))
            return false;
        if (count > 0)
            continue;
        release_below(*below, levels - 1);
        *below = NULL;
    }
    return true;
}

static bool set(twi_tensor_list *list, int64_t i, tw_tensor *tensor)
{
    twi_tensor_items **items = &list->items;
    for (int levels = list->levels; levels > 1; levels--) {
        if (!own_items(items, levels))
            return false;
        items = (twi_tensor_items **)&(*items)->below[place_of(i, levels)];
    }
    if (!own_items(items, 1))
        return false;
    tw_tensor_release((*items)->below[place_of(i, 1)]);
    (*items)->below[place_of(i, 1)] = tensor;
    return true;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

twi_tensor_list *twi_tensor_list_create(int64_t count)
{
    twi_tensor_list *list = twi_alloc(sizeof *list);
    if (!list)
        return NULL;
    atomic_init(&list->holders, 1);
    list->wanted = TW_UNKNOWN_SHAPE;
    list->most = -1;
    if (twi_tensor_list_resize(list, count))
        return list;
    twi_tensor_list_release(list);
    return NULL;
}

twi_tensor_list *twi_tensor_list_hold(twi_tensor_list *list)
{
    if (list)
        atomic_fetch_add_explicit(&list->holders, 1, memory_order_relaxed);
    return list;
}

void twi_tensor_list_release(twi_tensor_list *list)
{
    if (!list || atomic_fetch_sub_explicit(&list->holders, 1, memory_order_acq_rel) != 1)
        return;
    release_items(list->items, list->levels);
    twi_free(list);
}

bool twi_tensor_list_own(twi_tensor_list **list)
{
    twi_tensor_list *old = *list;
    if (old && atomic_load_explicit(&old->holders, memory_order_acquire) == 1)
        return true;
    twi_tensor_list *copy = twi_tensor_list_create(0);
    if (!copy)
        return false;
    if (old) {
        copy->wanted = old->wanted;
        copy->most = old->most;
        copy->count = old->count;
        copy->splits = old->splits;
        copy->levels = old->levels;
        copy->items = old->items;
    }
    if (copy->items)
        atomic_fetch_add_explicit(&copy->items->holders, 1, memory_order_relaxed);
    twi_tensor_list_release(old);
    *list = copy;
    return true;
}

/* A level above makes room for so many times as many. */
static bool grow(twi_tensor_list *list)
{
    twi_tensor_items *above = list->items ? copy_items(NULL, list->levels + 1) : NULL;
    if (list->items && !above)
        return false;
    if (above)
        above->below[0] = list->items;
    list->items = above;
    list->levels++;
    return true;
}

bool twi_tensor_list_resize(twi_tensor_list *list, int64_t count)
{
    while (count > 0 && (list->levels == 0 || (count - 1) >> (BITS * list->levels)))
        if (list->levels == MOST_LEVELS || !grow(list))
            return false;
    if (count < list->count && !cut(&list->items, list->levels, count))
        return false;
    list->count = count;
    return true;
}

bool twi_tensor_list_put(twi_tensor_list *list, int64_t i, tw_tensor *tensor)
{
    bool fits = set(list, i, tensor);
    if (!fits)
        tw_tensor_release(tensor);
    return fits;
}

tw_shape twi_join_elements(tw_shape a, tw_shape b)
{
    tw_shape none = TWI_NO_ELEMENTS;
    if (a.rank == none.rank || b.rank == none.rank)
        return a.rank == none.rank ? b : a;
    return tw_shape_equal(a, b) ? a : TW_UNKNOWN_SHAPE;
}

/* Elements that are lists themselves count by what is in them, as they do in plans. */
tw_shape twi_tensor_list_shape(const twi_tensor_list *list)
{
    tw_shape shape = TWI_NO_ELEMENTS;
    for (int64_t i = list ? twi_tensor_list_next(list, 0) : 0; list && i < list->count;
         i = twi_tensor_list_next(list, i + 1)) {
        const tw_tensor *item = twi_tensor_list_item(list, i);
        shape = twi_join_elements(
            shape, item->dtype == TW_VARIANT ? twi_tensor_list_shape(*(twi_tensor_list **)item->data) : item->shape);
    }
    return shape;
}

bool twi_copy_owned(tw_dtype dtype, const void *from, void *to, size_t count)
{
    bool fits = true;
    for (size_t i = 0; i < count && fits; i++)
        if (dtype == TW_STRING) {
            const tw_string *string = (const tw_string *)from + i;
            fits = twi_string_set((tw_string *)to + i, string->data, string->size);
        } else {
            twi_tensor_list *list = twi_tensor_list_hold(((twi_tensor_list *const *)from)[i]);
            twi_tensor_list_release(((twi_tensor_list **)to)[i]);
            ((twi_tensor_list **)to)[i] = list;
        }
    return fits;
}

void twi_free_owned(tw_dtype dtype, void *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (dtype == TW_STRING) {
            tw_string *string = (tw_string *)values + i;
            twi_free(string->data);
            string->data = NULL; /* another output may share the buffer */
        } else {
            twi_tensor_list_release(((twi_tensor_list **)values)[i]);
            ((twi_tensor_list **)values)[i] = NULL;
        }
}
