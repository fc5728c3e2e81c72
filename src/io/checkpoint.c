/* checkpoint.c - the checkpoints of a directory: saving so that nothing is lost, finding the latest, deleting the old.
 *
 * A save writes PREFIX-STEP.data-00000-of-00001.tmp-PID-RANDOM and PREFIX-STEP.index.tmp-PID-RANDOM, syncs both,
 * renames the data, renames the index, syncs the directory. The index is the commit record: before its rename the
 * checkpoint does not exist, afterwards it is complete. Only then are `checkpoint` rewritten and older checkpoints
 * deleted.
 *
 * Where PREFIX-STEP exists already, there is a moment with its old index over the new data. Therefore the old pair is
 * first given second names, PREFIX-STEP.replaced.*, under which it is a checkpoint of the same step.
 *
 * One save at a time: a process locks the directory meanwhile, and what it finds there under temporary names was left
 * behind by one that was killed. Where directories cannot be locked, that stays.
 *
 * Lives here:  names, their order in time, the protocol. Never here: what is in the files (bundle.c). */
#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "format/bundle.h"
#include "format/saved_slices.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA_SUFFIX ".data-00000-of-00001"
#define INDEX_SUFFIX ".index"
#define REPLACED ".replaced"
#define STATE_FILE "checkpoint"
#define MOST_STATE_BYTES (1 << 20)

typedef TWI_ARRAY(char *) names;

static void free_names(names *names)
{
    for (int i = 0; i < names->count; i++)
        twi_free(names->items[i]);
    twi_array_free(names);
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

/* DIRECTORY/NAME; twi_free() it, NULL when out of memory. */
static char *join(const char *directory, const char *name)
{
    twi_text path = {0};
    const char *between = ends_with(directory, "/") ? "" : "/";
    twi_text_printf(&path, "%s%s%s", directory, between, name);
    return path.data;
}

/* All names in a directory, in no order. */
static tw_status list_directory(const char *path, names *names, tw_error *error)
{
    tw_status status = TW_OK;
    struct dirent *entry;
    DIR *directory = opendir(path);
    if (!directory)
        return twi_fail_file(error, "list", path);
    while (status == TW_OK && (entry = twi_next_entry(directory, path, &status, error))) {
        char *name = twi_strdup(entry->d_name);
        if (!name || !twi_push(names, name)) {
            twi_free(name);
            status = twi_fail_memory(error, "listing a directory");
        }
    }
    closedir(directory);
    return status;
}

/* ---- listing ---- */

typedef struct found {
    char *path;
    int64_t step;
    bool named; /* by the state file */
} found;

struct tw_checkpoint_list {
    TWI_ARRAY(found) items;
};

/* By step; then one that was set aside before the one that replaced it, and the state file's before that. */
static int by_age(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (ends_with(x->path, REPLACED) != ends_with(y->path, REPLACED))
        return ends_with(x->path, REPLACED) ? -1 : 1;
    if (x->named != y->named)
        return x->named ? 1 : -1;
    return strcmp(x->path, y->path);
}

static bool add_found(tw_checkpoint_list *list, char *path, bool named)
{
    for (int i = 0; path && i < list->items.count; i++)
        if (strcmp(list->items.items[i].path, path) == 0) {
            list->items.items[i].named |= named;
            twi_free(path);
            return true;
        }
    if (path && twi_push(&list->items, (found){path, twi_checkpoint_step_of(path), named}))
        return true;
    twi_free(path);
    return false;
}

/* The model_checkpoint_path of a state file, in *path (NULL if it has none); relative ones lie in the directory. */
static tw_status read_state(const char *directory, char **path, tw_error *error)
{
    static const char key[] = "model_checkpoint_path:";
    tw_status status = TW_OK;
    char *file = join(directory, STATE_FILE), *text = NULL;
    size_t size;
    twi_text value = {0};
    *path = NULL;
    if (!file) {
        status = twi_fail_memory(error, "reading a checkpoint's state");
        goto done;
    }
    TWI_TRY(twi_file_read(file, MOST_STATE_BYTES, &text, &size, error));
    const char *at = text;
    while (at && !starts_with(at, key))
        at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    if (!at)
        goto done;
    at += strlen(key);
    at += strspn(at, " \t");
    char quote = *at++;
    if (quote != '"' && quote != '\'')
        goto done;
    for (; *at && *at != quote && *at != '\n'; at++) {
        char byte = *at;
        if (byte == '\\' && at[1] >= '0' && at[1] <= '3') { /* three octal digits, as we and protobuf write them */
            unsigned number = 0;
            for (int i = 0; i < 3 && at[1] >= '0' && at[1] <= '7'; i++)
                number = number * 8 + (unsigned)(*++at - '0');
            byte = (char)number;
        } else if (byte == '\\' && at[1]) {
            byte = *++at;
        }
        twi_text_append(&value, &byte, 1);
    }
    if (value.failed)
        TWI_LEAVE(twi_fail_memory(error, "reading a checkpoint's state"));
    if (*at != quote || value.size == 0)
        goto done;
    *path = value.data[0] == '/' ? twi_strdup(value.data) : join(directory, value.data);
    if (!*path)
        status = twi_fail_memory(error, "reading a checkpoint's state");
done:
    twi_text_free(&value);
    twi_free(text);
    twi_free(file);
    return status;
}

tw_status tw_checkpoint_list_open(const char *directory, tw_checkpoint_list **list, tw_error *error)
{
    TWI_NEED(directory, "directory", error);
    TWI_NEED(list, "list", error);
    tw_status status = TW_OK;
    names all = {0};
    tw_checkpoint_list *made = twi_alloc(sizeof *made);
    *list = NULL;
    if (!made) {
        status = twi_fail_memory(error, "listing checkpoints");
        goto done;
    }
    TWI_TRY(list_directory(directory, &all, error));
    for (int i = 0; i < all.count; i++) {
        char *name = all.items[i];
        if (!ends_with(name, INDEX_SUFFIX) || strlen(name) == strlen(INDEX_SUFFIX))
            continue;
        name[strlen(name) - strlen(INDEX_SUFFIX)] = 0;
        if (!add_found(made, join(directory, name), false)) {
            status = twi_fail_memory(error, "listing checkpoints");
            goto done;
        }
    }
    if (made->items.count > 0)
        qsort(made->items.items, (size_t)made->items.count, sizeof *made->items.items, by_age);
    *list = made;
    made = NULL;
done:
    tw_checkpoint_list_close(made);
    free_names(&all);
    return status;
}

void tw_checkpoint_list_close(tw_checkpoint_list *list)
{
    if (!list)
        return;
    for (int i = 0; i < list->items.count; i++)
        twi_free(list->items.items[i].path);
    twi_array_free(&list->items);
    twi_free(list);
}

int tw_checkpoint_list_count(const tw_checkpoint_list *list)
{
    TWI_NEED_OR(list, 0);
    return list->items.count;
}

const char *tw_checkpoint_list_path(const tw_checkpoint_list *list, int i)
{
    TWI_NEED_OR(list, "");
    return list->items.items[i].path;
}

int64_t tw_checkpoint_list_step(const tw_checkpoint_list *list, int i)
{
    TWI_NEED_OR(list, 0);
    return list->items.items[i].step;
}

/* ---- opening ---- */

/* Opens the newest checkpoint that is complete, after checking all of it. */
static tw_status open_latest(const char *directory, tw_checkpoint **checkpoint, tw_error *error)
{
    tw_status status = TW_OK;
    tw_checkpoint_list *list = NULL;
    tw_error reason = {0};
    char *named = NULL;
    *checkpoint = NULL;
    TWI_TRY(tw_checkpoint_list_open(directory, &list, error));
    status = read_state(directory, &named, &reason);
    if (status == TW_RESOURCE_EXHAUSTED) /* says nothing about what is named: another must not win */
        TWI_LEAVE(twi_fail(error, status, "%s", reason.message));
    if (named && !add_found(list, named, true))
        TWI_LEAVE(twi_fail_memory(error, "looking for the latest checkpoint"));
    if (named)
        qsort(list->items.items, (size_t)list->items.count, sizeof *list->items.items, by_age);
    else if (status != TW_OK && status != TW_NOT_FOUND)
        twi_log(TWI_LOG_WARNING, "%s", reason.message);
    status = TW_OK;
    for (int i = list->items.count - 1; i >= 0; i--) {
        const char *path = list->items.items[i].path;
        tw_checkpoint *candidate;
        if (twi_bundle_open(path, &candidate, &reason) == TW_OK && twi_bundle_verify(candidate, &reason) == TW_OK) {
            *checkpoint = candidate;
            goto done;
        }
        tw_checkpoint_close(candidate);
        if (reason.status == TW_RESOURCE_EXHAUSTED) { /* says nothing about the checkpoint: an older one must not win */
            status = twi_fail(error, reason.status, "%s", reason.message);
            goto done;
        }
        twi_log(TWI_LOG_WARNING, "passing over checkpoint '%s': %s", path, reason.message);
    }
    if (list->items.count == 0)
        status = twi_fail(error, TW_NOT_FOUND, "there is no checkpoint in '%s'", directory);
    else
        status = twi_fail(error, TW_NOT_FOUND, "none of the %d checkpoints in '%s' is complete; the oldest: %s",
                          list->items.count, directory, reason.message);
done:
    tw_checkpoint_list_close(list);
    return status;
}

tw_status tw_checkpoint_latest(const char *directory, char *path, size_t size, int64_t *step, tw_error *error)
{
    TWI_NEED(directory, "directory", error);
    TWI_NEED(path, "path", error);
    tw_checkpoint *checkpoint;
    tw_status status = open_latest(directory, &checkpoint, error);
    if (status != TW_OK)
        return status;
    const char *found = tw_checkpoint_path(checkpoint);
    if (strlen(found) >= size) {
        status = twi_fail(error, TW_OUT_OF_RANGE, "the path '%s' does not fit into %zu bytes", found, size);
    } else {
        strcpy(path, found);
        if (step)
            *step = tw_checkpoint_step(checkpoint);
    }
    tw_checkpoint_close(checkpoint);
    return status;
}

tw_status tw_checkpoint_open(const char *path, tw_checkpoint **checkpoint, tw_error *error)
{
    TWI_NEED(path, "path", error);
    TWI_NEED(checkpoint, "checkpoint", error);
    struct stat about;
    *checkpoint = NULL;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return open_latest(path, checkpoint, error);
    tw_status status;
    twi_text index = {0};
    char *prefix = twi_strdup(path);
    if (prefix && ends_with(prefix, INDEX_SUFFIX))
        prefix[strlen(prefix) - strlen(INDEX_SUFFIX)] = 0;
    twi_text_printf(&index, "%s" INDEX_SUFFIX, prefix ? prefix : "");
    if (!prefix || index.failed)
        status = twi_fail_memory(error, "opening a checkpoint");
    else if (stat(index.data, &about) != 0 && (errno == ENOENT || errno == ENOTDIR) &&
             !twi_saved_slices_are_there(prefix))
        status = twi_fail(error, TW_NOT_FOUND, "there is no checkpoint '%s': neither a directory nor '%s' is there",
                          path, index.data);
    else
        status = twi_bundle_open(prefix, checkpoint, error);
    twi_text_free(&index);
    twi_free(prefix);
    return status;
}

tw_status tw_checkpoint_verify(const char *path, tw_error *error)
{
    TWI_NEED(path, "path", error);
    tw_checkpoint *checkpoint;
    tw_status status = tw_checkpoint_open(path, &checkpoint, error);
    if (status == TW_OK)
        status = twi_bundle_verify(checkpoint, error);
    tw_checkpoint_close(checkpoint);
    return status;
}

/* ---- saving ---- */

/* The paths of one save. */
typedef struct paths {
    char *directory;
    const char *prefix;
    twi_text base;                /* DIRECTORY/PREFIX-STEP */
    twi_text data, index;         /* the final names, */
    twi_text new_data, new_index; /* those while they are written, */
    twi_text old_data, old_index; /* and those of a checkpoint that is being replaced */
} paths;

static bool make_paths(paths *paths, const char *directory, const char *prefix, int64_t step)
{
    paths->directory = twi_strdup(*directory ? directory : ".");
    paths->prefix = prefix;
    if (!paths->directory)
        return false;
    char *start = join(paths->directory, prefix);
    if (!start)
        return false;
    twi_text_printf(&paths->base, "%s-%lld", start, (long long)step);
    twi_free(start);
    const char *base = twi_text_string(&paths->base);
    twi_text_printf(&paths->data, "%s" DATA_SUFFIX, base);
    twi_text_printf(&paths->index, "%s" INDEX_SUFFIX, base);
    twi_name_beside(&paths->new_data, twi_text_string(&paths->data));
    twi_name_beside(&paths->new_index, twi_text_string(&paths->index));
    twi_text_printf(&paths->old_data, "%s" REPLACED DATA_SUFFIX, base);
    twi_text_printf(&paths->old_index, "%s" REPLACED INDEX_SUFFIX, base);
    return !(paths->base.failed | paths->data.failed | paths->index.failed | paths->new_data.failed |
             paths->new_index.failed | paths->old_data.failed | paths->old_index.failed);
}

static void free_paths(paths *paths)
{
    twi_free(paths->directory);
    twi_text *const all[] = {&paths->base,      &paths->data,     &paths->index,    &paths->new_data,
                             &paths->new_index, &paths->old_data, &paths->old_index};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        twi_text_free(all[i]);
}

/* Gives the checkpoint that is about to be replaced its second names, if it is worth keeping. A broken one is not: then
 * a pair set aside earlier may be the last good one, and stays. */
static tw_status set_aside(const paths *paths, bool *was_set_aside, tw_error *error)
{
    tw_status status = TW_OK;
    const twi_file_calls *files = twi_files();
    tw_checkpoint *old = NULL;
    *was_set_aside = false;
    if (twi_bundle_open(paths->base.data, &old, NULL) != TW_OK || twi_bundle_verify(old, NULL) != TW_OK)
        goto done;
    files->unlink(paths->old_index.data);
    files->unlink(paths->old_data.data);
    if (files->link(paths->data.data, paths->old_data.data) != 0) {
        status = twi_fail_file(error, "give a second name to", paths->data.data);
    } else if (files->link(paths->index.data, paths->old_index.data) != 0) {
        status = twi_fail_file(error, "give a second name to", paths->index.data);
        files->unlink(paths->old_data.data);
    } else {
        *was_set_aside = true;
        status = twi_sync_directory_of(paths->index.data, error);
    }
done:
    tw_checkpoint_close(old);
    return status;
}

/* From files under temporary names to a checkpoint; or back to what was there before. */
static tw_status commit(const paths *paths, tw_error *error)
{
    tw_status status = TW_OK;
    const twi_file_calls *files = twi_files();
    bool aside = false, renamed_data = false, renamed_index = false;
    if (twi_file_exists(paths->index.data))
        TWI_TRY(set_aside(paths, &aside, error));
    TWI_TRY(twi_rename(paths->new_data.data, paths->data.data, error));
    renamed_data = true;
    TWI_TRY(twi_rename(paths->new_index.data, paths->index.data, error));
    renamed_index = true;
    TWI_TRY(twi_sync_directory_of(paths->index.data, error));
done:
    if (status == TW_OK || renamed_index)
        return status;
    files->unlink(paths->new_index.data);
    files->unlink(renamed_data ? paths->data.data : paths->new_data.data);
    if (aside && (!renamed_data || files->rename(paths->old_data.data, paths->data.data) == 0)) {
        files->unlink(paths->old_index.data);
        files->unlink(paths->old_data.data);
    }
    return status;
}

/* Bytes of the PREFIX-STEP (or PREFIX-STEP.replaced) that a file name begins with; 0 if it is not ours. */
static size_t base_size(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    if (!starts_with(name, prefix) || name[size] != '-' || !isdigit((unsigned char)name[size + 1]))
        return 0;
    size++;
    size += strspn(name + size, "0123456789");
    if (starts_with(name + size, REPLACED))
        size += strlen(REPLACED);
    return name[size] == '.' || name[size] == 0 ? size : 0;
}

static void append_quoted(twi_text *text, const char *key, const char *value)
{
    twi_text_printf(text, "%s: \"", key);
    for (; *value; value++) {
        unsigned char byte = (unsigned char)*value;
        if (byte == '"' || byte == '\\')
            twi_text_printf(text, "\\%c", byte);
        else if (byte < ' ' || byte > '~')
            twi_text_printf(text, "\\%03o", byte);
        else
            twi_text_append(text, value, 1);
    }
    twi_text_append(text, "\"\n", 2);
}

/* Of a path in a directory. */
static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* The checkpoints of this prefix up to this step move to the front of the list; gives their number. */
static int keep_ours(const paths *paths, tw_checkpoint_list *list, int64_t step)
{
    int ours = 0;
    for (int i = 0; i < list->items.count; i++) {
        found *item = &list->items.items[i], kept = *item;
        const char *name = name_of(item->path);
        if (base_size(name, paths->prefix) != strlen(name))
            continue;
        if (item->step > step) {
            twi_log(TWI_LOG_WARNING,
                    "'%s' is of a later step than the checkpoint just saved, %lld: readers will take it "
                    "for the latest",
                    item->path, (long long)step);
            continue;
        }
        *item = list->items.items[ours];
        list->items.items[ours++] = kept;
    }
    return ours;
}

/* How many at the front of the list are beyond the last `keep` steps. */
static int count_doomed(const found *ours, int count, int keep)
{
    int steps = 0;
    for (int i = count - 1; i >= 0; i--) {
        steps += i == count - 1 || ours[i].step != ours[i + 1].step;
        if (keep > 0 && steps > keep)
            return i + 1;
    }
    return 0;
}

static tw_status write_state(const paths *paths, const found *kept, int count, tw_error *error)
{
    tw_status status = TW_OK;
    twi_text text = {0};
    char *file = join(paths->directory, STATE_FILE);
    append_quoted(&text, "model_checkpoint_path", name_of(paths->base.data));
    for (int i = 0; i < count; i++)
        if (!ends_with(kept[i].path, REPLACED))
            append_quoted(&text, "all_model_checkpoint_paths", name_of(kept[i].path));
    if (!file || text.failed)
        status = twi_fail_memory(error, "writing a checkpoint's state");
    else
        status = twi_file_replace(file, text.data, text.size, error);
    if (status != TW_OK)
        twi_prefix(error, "'%s' is saved, but its name is not in '%s/" STATE_FILE "'", paths->base.data,
                   paths->directory);
    twi_text_free(&text);
    twi_free(file);
    return status;
}

static void delete_file(const char *path)
{
    tw_error reason;
    if (twi_files()->unlink(path) != 0 && errno != ENOENT) {
        twi_fail_file(&reason, "delete", path);
        twi_log(TWI_LOG_WARNING, "%s", reason.message);
    }
}

/* Waits until nobody else saves in the directory; -1: there are no locks here. The end of the process ends it, too. */
static int lock_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), locked;
    do
        locked = fd >= 0 ? flock(fd, LOCK_EX) : -1;
    while (fd >= 0 && locked != 0 && errno == EINTR);
    if (fd >= 0 && locked != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Not by closing it alone: a child that has begun meanwhile has the descriptor too, and the next who waits would wait
 * for that one's end. */
static void unlock_directory(int fd)
{
    if (fd < 0)
        return;
    flock(fd, LOCK_UN);
    close(fd);
}

/* Deletes what no index owns: data of deleted checkpoints, and what killed processes left behind. */
static void sweep(const char *directory, const char *prefix, bool left_behind)
{
    names all = {0};
    tw_error reason = {0};
    if (list_directory(directory, &all, &reason) != TW_OK)
        twi_log(TWI_LOG_WARNING, "%s", reason.message);
    for (int i = 0; i < all.count; i++) {
        const char *name = all.items[i];
        size_t base = base_size(name, prefix);
        bool unwanted = left_behind && twi_is_beside(name) && (base > 0 || starts_with(name, STATE_FILE TWI_BESIDE));
        char *path = join(directory, name);
        if (path && !unwanted && base > 0 && !twi_is_beside(name) &&
            (starts_with(name + base, ".data-") || strcmp(name + base, ".meta") == 0)) {
            twi_text index = {0};
            twi_text_printf(&index, "%.*s" INDEX_SUFFIX, (int)(strlen(path) - strlen(name) + base), path);
            unwanted = !index.failed && !twi_file_exists(index.data);
            twi_text_free(&index);
        }
        if (path && unwanted)
            delete_file(path);
        twi_free(path);
    }
    free_names(&all);
}

tw_status tw_checkpoint_tidy(const char *directory, const char *prefix, tw_error *error)
{
    TWI_NEED(directory, "directory", error);
    TWI_NEED(prefix, "prefix", error);
    struct stat about;
    if (stat(directory, &about) != 0)
        return twi_fail_file(error, "look into", directory);
    int lock = lock_directory(directory);
    sweep(directory, prefix, lock >= 0);
    unlock_directory(lock);
    return TW_OK;
}

tw_status tw_checkpoint_save(const char *directory, const char *prefix, int64_t step, const tw_named_tensor *tensors,
                             int count, int keep, tw_error *error)
{
    TWI_NEED(directory, "directory", error);
    TWI_NEED(prefix, "prefix", error);
    TWI_NEED(tensors || count <= 0, "tensors", error);
    tw_status status = TW_OK;
    paths paths = {0};
    tw_checkpoint_list *list = NULL;
    int lock = -1;
    if (!*prefix || strchr(prefix, '/'))
        return twi_fail(error, TW_INVALID_ARGUMENT, "the prefix of a checkpoint must be a file name, not '%s'", prefix);
    if (step < 0 || keep < 0 || count < 0)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "a checkpoint needs a step (%lld), a number to keep (%d) and of tensors (%d) that are not negative",
            (long long)step, keep, count);
    if (!make_paths(&paths, directory, prefix, step)) {
        status = twi_fail_memory(error, "saving a checkpoint");
        goto done;
    }
    TWI_TRY(twi_make_directories(paths.directory, error));
    lock = lock_directory(paths.directory);
    TWI_TRY(twi_bundle_write(paths.new_data.data, paths.new_index.data, tensors, count, error));
    TWI_TRY(commit(&paths, error));
    delete_file(paths.old_index.data);

    TWI_TRY(tw_checkpoint_list_open(paths.directory, &list, error));
    int ours = keep_ours(&paths, list, step), doomed = count_doomed(list->items.items, ours, keep);
    TWI_TRY(write_state(&paths, list->items.items + doomed, ours - doomed, error));
    for (int i = 0; i < doomed; i++) {
        twi_text index = {0};
        twi_text_printf(&index, "%s" INDEX_SUFFIX, list->items.items[i].path);
        if (!index.failed)
            delete_file(index.data);
        twi_text_free(&index);
    }
    sweep(paths.directory, prefix, lock >= 0);
done:
    unlock_directory(lock);
    tw_checkpoint_list_close(list);
    free_paths(&paths);
    return status;
}
