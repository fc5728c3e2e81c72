/* bundle_files.c - checkpoints under a prefix that somebody else chose: written whole, and several made one.
 * Never here:  directories that keep the latest few (io/checkpoint.c). */
#include "base/array.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "format/bundle.h"

#include <string.h>
#include <unistd.h>

#define DATA_SUFFIX ".data-00000-of-00001"

/* The directory of a path, of which only the first bytes are used; false when out of memory. */
static bool directory_of(const char *path, twi_text *directory)
{
    const char *slash = strrchr(path, '/');
    twi_text_printf(directory, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return !directory->failed;
}

static tw_status make_directory_of(const char *prefix, tw_error *error)
{
    twi_text directory = {0};
    tw_status status = TW_OK;
    if (!directory_of(prefix, &directory))
        status = twi_fail_memory(error, "saving a checkpoint");
    else if (directory.size)
        status = twi_make_directories(directory.data, error);
    twi_text_free(&directory);
    return status;
}

/* An older checkpoint of the prefix ends with the unlinking of its index; the new one begins with the renaming of its
 * own. */
tw_status twi_bundle_save(const char *prefix, const tw_named_tensor *tensors, int count, tw_error *error)
{
    tw_status status = TW_OK;
    twi_text paths[4] = {0}; /* data, index; while they are written */
    for (int i = 0; i < 2; i++) {
        twi_text_printf(&paths[i], "%s%s", prefix, i ? ".index" : DATA_SUFFIX);
        twi_name_beside(&paths[2 + i], twi_text_string(&paths[i]));
    }
    for (int i = 0; i < 4; i++)
        if (paths[i].failed)
            TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    TWI_TRY(make_directory_of(prefix, error));
    TWI_TRY(twi_bundle_write(paths[2].data, paths[3].data, tensors, count, error));
    twi_files()->unlink(paths[1].data);
    status = twi_rename(paths[2].data, paths[0].data, error);
    if (status == TW_OK)
        status = twi_rename(paths[3].data, paths[1].data, error);
    if (status == TW_OK) {
        status = twi_sync_directory_of(paths[1].data, error);
    } else {
        twi_files()->unlink(paths[2].data);
        twi_files()->unlink(paths[3].data);
    }
done:
    for (int i = 0; i < 4; i++)
        twi_text_free(&paths[i]);
    return status;
}

typedef TWI_ARRAY(tw_named_tensor) tensors;

/* Tensor i, or part k of it, under a name that is borrowed from the checkpoint. */
static tw_status read_one(tw_checkpoint *checkpoint, int i, int k, tensors *all, tw_error *error)
{
    twi_text part = {0};
    tw_named_tensor one = {.name = tw_checkpoint_name(checkpoint, i)};
    if (twi_bundle_num_parts(checkpoint, i))
        twi_bundle_part(checkpoint, i, k, &part);
    tw_tensor *tensor = NULL;
    tw_status status = part.failed ? twi_fail_memory(error, "merging checkpoints")
                                   : tw_checkpoint_read_part(checkpoint, one.name, part.data, &tensor, error);
    one.tensor = tensor;
    one.part = part.data;
    if (status == TW_OK && twi_push(all, one))
        return TW_OK;
    tw_tensor_release(tensor);
    twi_text_free(&part);
    return status == TW_OK ? twi_fail_memory(error, "merging checkpoints") : status;
}

static tw_status read_all(tw_checkpoint *checkpoint, tensors *all, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++) {
        int parts = twi_bundle_num_parts(checkpoint, i);
        for (int k = 0; k < (parts ? parts : 1) && status == TW_OK; k++)
            status = read_one(checkpoint, i, k, all, error);
    }
    return status;
}

/* The files of a checkpoint that twi_bundle_save() wrote, and its directory if nothing else lies there. */
static void remove_checkpoint(const char *prefix)
{
    twi_text path = {0}, directory = {0};
    twi_text_printf(&path, "%s.index", prefix);
    if (!path.failed)
        twi_files()->unlink(path.data);
    twi_text_free(&path);
    twi_text_printf(&path, "%s" DATA_SUFFIX, prefix);
    if (!path.failed)
        twi_files()->unlink(path.data);
    if (directory_of(prefix, &directory) && strcmp(directory.data, ".") != 0)
        rmdir(directory.data);
    twi_text_free(&path);
    twi_text_free(&directory);
}

tw_status twi_bundle_merge(const char *const *prefixes, int count, const char *destination, bool remove,
                           tw_error *error)
{
    tw_status status = TW_OK;
    tensors all = {0};
    TWI_ARRAY(tw_checkpoint *) parts = {0};
    for (int i = 0; i < count; i++) {
        tw_checkpoint *part;
        TWI_TRY(twi_bundle_open(prefixes[i], &part, error));
        if (!twi_push(&parts, part)) {
            tw_checkpoint_close(part);
            TWI_LEAVE(twi_fail_memory(error, "merging checkpoints"));
        }
        TWI_TRY(read_all(part, &all, error));
    }
    TWI_TRY(twi_bundle_save(destination, all.items, all.count, error));
    for (int i = 0; i < count && remove; i++)
        if (strcmp(prefixes[i], destination) != 0)
            remove_checkpoint(prefixes[i]);
done:
    for (int i = 0; i < all.count; i++) {
        tw_tensor_release((tw_tensor *)all.items[i].tensor);
        twi_free((char *)all.items[i].part);
    }
    for (int i = 0; i < parts.count; i++)
        tw_checkpoint_close(parts.items[i]);
    twi_array_free(&all);
    twi_array_free(&parts);
    return status;
}
