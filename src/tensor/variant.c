/* variant.c - see variant.h. */
#include "tensor/variant.h"

#include "base/memory.h"

#include <string.h>

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
    twi_free(list);
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
    for (int64_t i = 0; i < list->count; i++)
        tw_tensor_release(list->items[i]);
    twi_free(list->items);
    twi_free(list);
}

static twi_tensor_list *copy_of(const twi_tensor_list *list)
{
    twi_tensor_list *copy = twi_tensor_list_create(list->count);
    if (!copy)
        return NULL;
    copy->wanted = list->wanted;
    copy->most = list->most;
    for (int64_t i = 0; i < list->count; i++)
        copy->items[i] = list->items[i] ? tw_tensor_retain(list->items[i]) : NULL;
    return copy;
}

bool twi_tensor_list_own(twi_tensor_list **list)
{
    if (*list && atomic_load_explicit(&(*list)->holders, memory_order_acquire) == 1)
        return true;
    twi_tensor_list *copy = *list ? copy_of(*list) : twi_tensor_list_create(0);
    if (!copy)
        return false;
    twi_tensor_list_release(*list);
    *list = copy;
    return true;
}

bool twi_tensor_list_resize(twi_tensor_list *list, int64_t count)
{
    if (count > list->room) {
        int64_t room = count > list->room + list->room / 2 ? count : list->room + list->room / 2;
        tw_tensor **items = (uint64_t)room <= SIZE_MAX / sizeof *items / 2
                                ? twi_resize(list->items, (size_t)room * sizeof *items)
                                : NULL;
        if (!items)
            return false;
        list->items = items;
        list->room = room;
    }
    for (int64_t i = count; i < list->count; i++)
        tw_tensor_release(list->items[i]);
    for (int64_t i = list->count; i < count; i++)
        list->items[i] = NULL;
    list->count = count;
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
