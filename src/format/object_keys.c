/* object_keys.c - see object_keys.h.
 *
 *     TrackableObjectGraph  1: objects      object  2: tensors      tensor  2: the variable's name, 3: its key */
#include "format/object_keys.h"

#include "format/wire.h"

#include <string.h>

static tw_status fail_memory(tw_error *error)
{
    return twi_fail_memory(error, "reading which objects a checkpoint has");
}

static char *copy_text(twi_object_keys *keys, const twi_field *text)
{
    char *copy = twi_arena_alloc(&keys->texts, text->size + 1);
    if (copy && text->size)
        memcpy(copy, text->bytes, text->size);
    return copy;
}

/* Gives false where the bytes are no message. */
static bool find_names(const twi_field *tensor, twi_field *name, twi_field *key)
{
    const char *at = tensor->bytes, *end = at + tensor->size;
    twi_field f;
    int read;
    *name = *key = (twi_field){0};
    while ((read = twi_next_field(&at, end, &f)) > 0)
        if (f.wire == TWI_BYTES && f.number == 2)
            *name = f;
        else if (f.wire == TWI_BYTES && f.number == 3)
            *key = f;
    return read == 0;
}

static tw_status read_tensor(twi_object_keys *keys, const twi_field *tensor, tw_error *error)
{
    twi_field name, key;
    if (!find_names(tensor, &name, &key))
        return twi_fail(error, TW_DATA_LOSS, "a tensor of an object is no message");
    if (name.size == 0 || key.size == 0)
        return TW_OK;
    char *text = copy_text(keys, &name), *value = copy_text(keys, &key);
    if (!text || !value)
        return fail_memory(error);
    const char *known = twi_map_get(&keys->keys, text);
    if (known && strcmp(known, value) == 0)
        return TW_OK;
    return twi_map_put(&keys->keys, text, known ? "" : value) ? TW_OK : fail_memory(error);
}

static tw_status read_object(twi_object_keys *keys, const twi_field *object, tw_error *error)
{
    tw_status status = TW_OK;
    const char *at = object->bytes, *end = at + object->size;
    twi_field f;
    int read = 0;
    while (status == TW_OK && (read = twi_next_field(&at, end, &f)) > 0)
        if (f.wire == TWI_BYTES && f.number == 2)
            status = read_tensor(keys, &f, error);
    return read < 0 ? twi_fail(error, TW_DATA_LOSS, "an object is no message") : status;
}

tw_status twi_object_keys_read(twi_object_keys *keys, const char *bytes, size_t size, tw_error *error)
{
    tw_status status = TW_OK;
    const char *at = bytes, *end = bytes + size;
    twi_field f;
    int read = 0;
    while (status == TW_OK && (read = twi_next_field(&at, end, &f)) > 0)
        if (f.wire == TWI_BYTES && f.number == 1)
            status = read_object(keys, &f, error);
    return read < 0 ? twi_fail(error, TW_DATA_LOSS, "the graph of objects is no message") : status;
}

void twi_object_keys_free(twi_object_keys *keys)
{
    twi_map_free(&keys->keys);
    twi_arena_free(&keys->texts);
}
