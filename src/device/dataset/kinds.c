/* kinds.c - see kinds.h. */
#include "device/dataset/kinds.h"

#include <string.h>

const twi_recipe_kind *twi_recipe_find(const char *op)
{
    static const twi_recipe_kind *const families[] = {twi_source_kinds, twi_order_kinds, twi_shuffle_kinds,
                                                      twi_batch_kinds, twi_function_kinds};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const twi_recipe_kind *k = families[f]; k->op; k++)
            if (strcmp(k->op, op) == 0)
                return k;
    return NULL;
}

tw_status twi_begin_input(twi_iteration *it, tw_error *error)
{
    return twi_iteration_begin(it->recipe->arguments[0], it->monitor, it->state, error);
}

void twi_end_input(twi_iteration *it)
{
    twi_iteration_end(twi_input(it));
}

const twi_recipe *twi_input_recipe(const twi_recipe *r)
{
    return twi_recipe_of(r->arguments[0]);
}

int64_t twi_count_same(const twi_recipe *r)
{
    return twi_recipe_count(twi_input_recipe(r));
}

tw_status twi_at_same(const twi_recipe *r, int64_t index, tw_tensor **element, tw_error *error)
{
    return twi_recipe_at(twi_input_recipe(r), index, element, error);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

tw_tensor **twi_rows_at(const twi_rows *r, int64_t i)
{
    return r->items + (r->first + i) % r->capacity * r->width;
}

static bool grow(twi_rows *r)
{
    twi_rows grown = {.capacity = r->capacity ? 2 * r->capacity : 16, .count = r->count, .width = r->width};
    size_t row = sizeof *r->items * (size_t)r->width;
    grown.items = twi_alloc_array((size_t)grown.capacity, row + 1);
    for (int64_t i = 0; i < r->count && grown.items; i++)
        memcpy(twi_rows_at(&grown, i), twi_rows_at(r, i), row);
    if (!grown.items)
        return false;
    twi_free(r->items);
    *r = grown;
    return true;
}

bool twi_rows_push(twi_rows *r, tw_tensor *const *element)
{
    if (r->count == r->capacity && !grow(r))
        return false;
    memcpy(twi_rows_at(r, r->count++), element, sizeof *element * (size_t)r->width);
    return true;
}

void twi_rows_drop(twi_rows *r, int64_t count)
{
    for (int64_t i = 0; i < count && r->count; i++) {
        twi_element_drop(twi_rows_at(r, 0), r->width);
        r->first = (r->first + 1) % r->capacity;
        r->count--;
    }
}

void twi_rows_free(twi_rows *r)
{
    twi_rows_drop(r, r->count);
    twi_free(r->items);
    *r = (twi_rows){.width = r->width};
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static tw_status copy_elements(const tw_tensor *from, int64_t at, tw_tensor *to, int64_t where, int64_t count,
                               tw_error *error)
{
    size_t size = tw_dtype_size(from->dtype);
    const tw_string *strings = from->data;
    if (from->dtype == TW_RESOURCE)
        return twi_fail(error, TW_UNIMPLEMENTED, "data sets cannot be batched");
    if (from->dtype != TW_STRING && count)
        memcpy((char *)to->data + (size_t)where * size, (const char *)from->data + (size_t)at * size,
               (size_t)count * size);
    for (int64_t i = 0; i < count && from->dtype == TW_STRING; i++)
        if (!twi_string_set((tw_string *)to->data + where + i, strings[at + i].data, strings[at + i].size))
            return twi_fail_memory(error, "copying strings");
    return TW_OK;
}

tw_status twi_put_elements(tw_tensor *to, int64_t at, const tw_tensor *from, tw_error *error)
{
    return copy_elements(from, 0, to, at, from->elements, error);
}

tw_status twi_take_elements(const tw_tensor *from, int64_t at, tw_shape shape, tw_tensor **to, tw_error *error)
{
    *to = tw_tensor_create(from->dtype, shape);
    return *to ? copy_elements(from, at, *to, 0, (*to)->elements, error) : twi_fail_memory(error, "making an element");
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

tw_status twi_recipe_call(const twi_recipe *r, int which, tw_tensor *const *given, int count, tw_tensor **results,
                          tw_error *error)
{
    tw_tensor *arguments[2 * TWI_ELEMENT];
    int lists = r->kind->lists[1] ? which : 0, first = r->kind->before, captured;
    for (int i = 0; i < lists; i++)
        first += r->lists[i];
    captured = r->lists[lists];
    if (count + captured > 2 * TWI_ELEMENT)
        return twi_fail(error, TW_UNIMPLEMENTED, "a function of '%s' takes %d values, expected at most %d", r->node,
                        count + captured, 2 * TWI_ELEMENT);
    if (count)
        memcpy(arguments, given, sizeof *given * (size_t)count);
    if (captured)
        memcpy(arguments + count, r->arguments + first, sizeof *given * (size_t)captured);
    return r->functions[which]->call(r->functions[which], arguments, count + captured, results, error);
}
