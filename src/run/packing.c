/* packing.c - see packing.h.
 *
 *     strings   of each its size and its bytes
 *     lists     of each whether it is there, then shape, most and count, and each item that is set: its number, type,
 *               shape and values; -1 ends them */
#include "run/packing.h"

#include "base/status.h"

#include <string.h>

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static void put_string(twi_text *p, const tw_string *string)
{
    uint64_t size = string->size;
    twi_text_append(p, &size, sizeof size);
    twi_text_append(p, string->data, string->size);
}

static void put_values(twi_text *p, tw_dtype dtype, const void *values, size_t count);

static void put_tensor(twi_text *p, const tw_tensor *tensor)
{
    twi_text_append(p, &tensor->dtype, sizeof tensor->dtype);
    twi_text_append(p, &tensor->shape, sizeof tensor->shape);
    put_values(p, tensor->dtype, tensor->data, (size_t)tensor->elements);
}

static void put_list(twi_text *p, const twi_tensor_list *list)
{
    char there = list != NULL;
    int64_t none = -1;
    twi_text_append(p, &there, sizeof there);
    if (!there)
        return;
    twi_text_append(p, &list->wanted, sizeof list->wanted);
    twi_text_append(p, &list->most, sizeof list->most);
    twi_text_append(p, &list->count, sizeof list->count);
    for (int64_t i = twi_tensor_list_next(list, 0); i < list->count; i = twi_tensor_list_next(list, i + 1)) {
        twi_text_append(p, &i, sizeof i);
        put_tensor(p, twi_tensor_list_item(list, i));
    }
    twi_text_append(p, &none, sizeof none);
}

static void put_values(twi_text *p, tw_dtype dtype, const void *values, size_t count)
{
    if (!twi_owns_memory(dtype)) {
        twi_text_append(p, values, count * tw_dtype_size(dtype));
        return;
    }
    for (size_t i = 0; i < count && !p->failed; i++)
        if (dtype == TW_STRING)
            put_string(p, (const tw_string *)values + i);
        else
            put_list(p, ((twi_tensor_list *const *)values)[i]);
}

bool twi_pack_values(tw_dtype dtype, const void *values, size_t count, twi_text *packed)
{
    put_values(packed, dtype, values, count);
    return !packed->failed;
}

/* ---- unpacking --------------------------------------------------------------------------------------------------- */

enum { DEEPEST = 64 }; /* lists in lists */

typedef struct unpacking {
    const char *at;
    size_t left;
    int depth;
    const char *what;
    tw_error *error;
} unpacking;

static tw_status fail_short(const unpacking *u)
{
    return twi_fail(u->error, TW_DATA_LOSS, "what another task has sent is no such value: %s", u->what);
}

static tw_status take(unpacking *u, void *to, size_t bytes)
{
    if (bytes > u->left)
        return fail_short(u);
    if (bytes)
        memcpy(to, u->at, bytes);
    u->at += bytes;
    u->left -= bytes;
    return TW_OK;
}

static tw_status take_string(unpacking *u, tw_string *string)
{
    uint64_t size = 0;
    tw_status status = take(u, &size, sizeof size);
    if (status != TW_OK || size > u->left)
        return status != TW_OK ? status : fail_short(u);
    if (!twi_string_set(string, u->at, (size_t)size))
        return twi_fail_memory(u->error, "receiving strings");
    u->at += size;
    u->left -= size;
    return TW_OK;
}

static tw_status take_values(unpacking *u, tw_dtype dtype, void *values, size_t count);

/* Whether values of such a tensor can be in what is left: each takes a byte at least. */
static bool fits(const unpacking *u, tw_dtype dtype, const tw_shape *shape)
{
    size_t size = tw_dtype_size(dtype), most = u->left / (twi_owns_memory(dtype) || !size ? 1 : size);
    bool good = (size || twi_owns_memory(dtype)) && shape->rank >= 0 && shape->rank <= TW_MAX_RANK;
    size_t elements = 1;
    for (int i = 0; i < shape->rank && good; i++) {
        good = shape->dims[i] >= 0 && (elements == 0 || (uint64_t)shape->dims[i] <= SIZE_MAX / elements);
        elements *= good ? (size_t)shape->dims[i] : 1;
    }
    return good && elements <= most;
}

static tw_status take_tensor(unpacking *u, tw_tensor **tensor)
{
    tw_dtype dtype = TW_INVALID_DTYPE;
    tw_shape shape = TW_SCALAR;
    tw_status status = take(u, &dtype, sizeof dtype);
    *tensor = NULL;
    if (status == TW_OK)
        status = take(u, &shape, sizeof shape);
    if (status != TW_OK || !fits(u, dtype, &shape))
        return status != TW_OK ? status : fail_short(u);
    if (!(*tensor = twi_tensor_create(dtype, shape)))
        return twi_fail_memory(u->error, "receiving a list of tensors");
    status = take_values(u, dtype, (*tensor)->data, (size_t)(*tensor)->elements);
    if (status == TW_OK)
        return TW_OK;
    tw_tensor_release(*tensor);
    *tensor = NULL;
    return status;
}

static tw_status take_items(unpacking *u, twi_tensor_list *list)
{
    tw_status status = TW_OK;
    for (int64_t i = 0; status == TW_OK;) {
        tw_tensor *item;
        status = take(u, &i, sizeof i);
        if (status != TW_OK || i == -1)
            return status;
        if (i < 0 || i >= list->count)
            return fail_short(u);
        status = take_tensor(u, &item);
        if (status == TW_OK && !twi_tensor_list_put(list, i, item))
            status = twi_fail_memory(u->error, "receiving a list of tensors");
    }
    return status;
}

static tw_status take_list(unpacking *u, twi_tensor_list **list)
{
    char there = 0;
    int64_t most = 0, count = 0;
    tw_shape wanted = TW_SCALAR;
    tw_status status = take(u, &there, sizeof there);
    twi_tensor_list_release(*list);
    *list = NULL;
    if (status != TW_OK || !there)
        return status;
    status = take(u, &wanted, sizeof wanted);
    if (status == TW_OK)
        status = take(u, &most, sizeof most);
    if (status == TW_OK)
        status = take(u, &count, sizeof count);
    if (status != TW_OK || wanted.rank > TW_MAX_RANK || count < 0 || u->depth >= DEEPEST)
        return status != TW_OK ? status : fail_short(u);
    if (!(*list = twi_tensor_list_create(count)))
        return twi_fail_memory(u->error, "receiving a list of tensors");
    (*list)->wanted = wanted;
    (*list)->most = most;
    u->depth++;
    status = take_items(u, *list);
    u->depth--;
    return status;
}

static tw_status take_values(unpacking *u, tw_dtype dtype, void *values, size_t count)
{
    tw_status status = TW_OK;
    if (!twi_owns_memory(dtype))
        return take(u, values, count * tw_dtype_size(dtype));
    for (size_t i = 0; i < count && status == TW_OK; i++)
        status = dtype == TW_STRING ? take_string(u, (tw_string *)values + i)
                                    : take_list(u, (twi_tensor_list **)values + i);
    return status;
}

tw_status twi_unpack_values(const char *bytes, size_t size, tw_dtype dtype, void *values, size_t count,
                            const char *what, tw_error *error)
{
    unpacking u = {bytes, size, 0, what, error};
    tw_status status = take_values(&u, dtype, values, count);
    return status == TW_OK && u.left ? fail_short(&u) : status;
}
