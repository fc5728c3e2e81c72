/* variant.c - see variant.h. */
#include "tensor/variant.h"

#include "base/memory.h"

#include <string.h>

/* ---- items ------------------------------------------------------------------------------------------------------- */

static void release_items(twi_tensor_items *shared)
{
    if (!shared || atomic_fetch_sub_explicit(&shared->holders, 1, memory_order_acq_rel) != 1)
        return;
    for (int64_t i = 0; i < atomic_load(&shared->used); i++)
        tw_tensor_release(shared->items[i]);
    twi_free(shared);
}

/* Whether nobody else sees the items of a list that has one holder. */
static bool has_items_alone(const twi_tensor_list *list)
{
    return !list->shared || atomic_load_explicit(&list->shared->holders, memory_order_acquire) == 1;
}

/* Lets go what a longer list had, which is gone. */
static void cut(twi_tensor_list *list)
{
    int64_t used = list->shared ? atomic_load(&list->shared->used) : 0;
    for (int64_t i = list->count; i < used; i++)
        tw_tensor_release(list->items[i]);
    if (used > list->count)
        atomic_store(&list->shared->used, list->count);
}

/* Room for so many items, which the list has alone; those that it has stay. */
static bool reserve(twi_tensor_list *list, int64_t count)
{
    bool alone = has_items_alone(list);
    int64_t before = list->shared ? list->shared->room : 0,
            room = before + before / 2 > count ? before + before / 2 : count;
    if (alone && count <= before)
        return true;
    if ((uint64_t)room > (SIZE_MAX - sizeof(twi_tensor_items)) / sizeof(tw_tensor *) / 2)
        return false;
    size_t bytes = sizeof(twi_tensor_items) + (size_t)room * sizeof(tw_tensor *);
    twi_tensor_items *made = alone ? twi_resize(list->shared, bytes) : twi_alloc(bytes);
    if (!made)
        return false;
    for (int64_t i = 0; i < list->count && !alone; i++)
        made->items[i] = list->items[i] ? tw_tensor_retain(list->items[i]) : NULL;
    if (!alone || !list->shared) {
        atomic_init(&made->holders, 1);
        atomic_init(&made->used, list->count);
    }
    if (!alone)
        release_items(list->shared);
    made->room = room;
    list->shared = made;
    list->items = made->items;
    return true;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static twi_tensor_list *make(tw_shape wanted, int64_t most)
{
    twi_tensor_list *list = twi_alloc(sizeof *list);
    if (!list)
        return NULL;
    atomic_init(&list->holders, 1);
    list->wanted = wanted;
    list->most = most;
    return list;
}

twi_tensor_list *twi_tensor_list_create(int64_t count)
{
    twi_tensor_list *list = make(TW_UNKNOWN_SHAPE, -1);
    if (list && twi_tensor_list_resize(list, count))
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
    release_items(list->shared);
    twi_free(list);
}

/* Makes *list one that the caller alone holds, of items that others may see. */
static bool own_length(twi_tensor_list **list)
{
    const twi_tensor_list *old = *list;
    if (old && atomic_load_explicit(&(*list)->holders, memory_order_acquire) == 1)
        return true;
    twi_tensor_list *made = make(old ? old->wanted : TW_UNKNOWN_SHAPE, old ? old->most : -1);
    if (!made)
        return false;
    if (old && old->shared) {
        atomic_fetch_add_explicit(&old->shared->holders, 1, memory_order_relaxed);
        made->count = old->count;
        made->shared = old->shared;
        made->items = old->items;
    }
    twi_tensor_list_release(*list);
    *list = made;
    return true;
}

bool twi_tensor_list_own(twi_tensor_list **list)
{
    if (!own_length(list))
        return false;
    if (!has_items_alone(*list))
        return reserve(*list, (*list)->count);
    cut(*list);
    return true;
}

bool twi_tensor_list_resize(twi_tensor_list *list, int64_t count)
{
    if (count > 0 && !reserve(list, count))
        return false;
    for (int64_t i = count; i < list->count; i++)
        tw_tensor_release(list->items[i]);
    for (int64_t i = list->count; i < count; i++)
        list->items[i] = NULL;
    list->count = count;
    if (list->shared)
        atomic_store(&list->shared->used, count);
    return true;
}

/* Among those that share the items the first to come gets the next place; others get items of their own. */
static bool take_place(twi_tensor_list *list)
{
    long long count = list->count;
    return list->shared && count < list->shared->room &&
           atomic_compare_exchange_strong(&list->shared->used, &count, count + 1);
}

bool twi_tensor_list_push(twi_tensor_list **list, tw_tensor *tensor)
{
    if (!own_length(list))
        return false;
    if (has_items_alone(*list))
        cut(*list);
    if (!take_place(*list)) {
        if (!reserve(*list, (*list)->count + 1))
            return false;
        atomic_store(&(*list)->shared->used, (*list)->count + 1);
    }
    (*list)->items[(*list)->count++] = tensor;
    return true;
}

bool twi_tensor_list_pop(twi_tensor_list **list)
{
    if (!own_length(list))
        return false;
    (*list)->count--;
    if (has_items_alone(*list))
        cut(*list);
    return true;
}

void twi_tensor_list_put(twi_tensor_list *list, int64_t i, tw_tensor *tensor)
{
    tw_tensor_release(list->items[i]);
    list->items[i] = tensor;
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
    for (int64_t i = 0; list && i < list->count; i++) {
        const tw_tensor *item = list->items[i];
        if (item)
            shape = twi_join_elements(shape, item->dtype == TW_VARIANT
                                                 ? twi_tensor_list_shape(*(twi_tensor_list **)item->data)
                                                 : item->shape);
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
