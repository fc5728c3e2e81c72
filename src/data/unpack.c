/* unpack.c - taking the files wanted out of a compressed tar archive, and nothing else.
 * Lives here:  all that knows libarchive.
 *
 * Names in the archive are only compared, never used as paths; sizes must be the ones expected. */
#include "data/fetch.h"

#include "base/file.h"
#include "base/status.h"
#include "data/dataset.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <string.h>

static tw_status fail_archive(tw_error *error, const char *path, struct archive *archive)
{
    const char *reason = archive_error_string(archive);
    return twi_fail(error, TW_DATA_LOSS, "'%s' cannot be unpacked: %s", path, reason ? reason : "damaged");
}

/* Which member an entry is; -1: none that is wanted. */
static int find_member(const twi_fetch_set *set, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    size_t length = strlen(set->folder);
    if (!name || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) ||
        strncmp(name, set->folder, length) != 0 || name[length] != '/')
        return -1;
    for (int i = 0; i < TWI_FETCH_MAX_MEMBERS && set->members[i]; i++)
        if (strcmp(name + length + 1, set->members[i]) == 0)
            return i;
    return -1;
}

/* Beside its place, then renamed. */
static tw_status unpack_member(struct archive *archive, const char *archive_path, const char *path, int64_t size,
                               tw_error *error)
{
    char part[TWI_PATH_SIZE], chunk[1 << 14];
    twi_file_writer *writer = NULL;
    tw_status status;
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the data directory's name is too long");
    TWI_TRY(twi_file_create(part, &writer, error));
    for (int64_t done = 0; done < size;) {
        la_ssize_t found = archive_read_data(archive, chunk, sizeof chunk);
        if (found < 1)
            TWI_LEAVE(fail_archive(error, archive_path, archive));
        if (found > size - done)
            TWI_LEAVE(twi_fail(error, TW_DATA_LOSS, "'%s' cannot be unpacked: a member has more than its %lld bytes",
                               archive_path, (long long)size));
        twi_file_write(writer, chunk, (size_t)found);
        done += found;
        if (twi_file_flush(writer, NULL) != TW_OK)
            break; /* close reports it */
    }
    status = twi_file_close(writer, true, error);
    writer = NULL;
    if (status == TW_OK)
        TWI_TRY(twi_rename(part, path, error));
done:
    if (writer)
        twi_file_close(writer, false, NULL);
    if (status != TW_OK)
        twi_files()->unlink(part);
    return status;
}

tw_status twi_unpack(const twi_fetch_set *set, const char *directory, const char *archive_path, tw_error *error)
{
    char folder[TWI_PATH_SIZE], path[TWI_PATH_SIZE];
    bool unpacked[TWI_FETCH_MAX_MEMBERS] = {false};
    tw_status status;
    struct archive *archive = archive_read_new();
    if (!archive)
        return twi_fail_memory(error, "unpacking an archive");
    archive_read_support_filter_gzip(archive);
    archive_read_support_format_tar(archive);
    if (archive_read_open_filename(archive, archive_path, 1 << 16) != ARCHIVE_OK) {
        status = fail_archive(error, archive_path, archive);
        goto done;
    }
    if (!twi_data_path(folder, directory, set->folder)) {
        status = twi_fail(error, TW_INVALID_ARGUMENT, "the data directory's name is too long");
        goto done;
    }
    TWI_TRY(twi_make_directories(folder, error));
    for (;;) {
        struct archive_entry *entry;
        int code = archive_read_next_header(archive, &entry);
        if (code == ARCHIVE_EOF)
            break;
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {
            status = fail_archive(error, archive_path, archive);
            goto done;
        }
        int member = find_member(set, entry);
        if (member < 0 || unpacked[member])
            continue;
        if (archive_entry_size(entry) != set->member_size) {
            status = twi_fail(error, TW_DATA_LOSS, "'%s' holds %s/%s with %lld bytes, expected %lld", archive_path,
                              set->folder, set->members[member], (long long)archive_entry_size(entry),
                              (long long)set->member_size);
            goto done;
        }
        if (!twi_data_path(path, folder, set->members[member])) {
            status = twi_fail(error, TW_INVALID_ARGUMENT, "the data directory's name is too long");
            goto done;
        }
        TWI_TRY(unpack_member(archive, archive_path, path, set->member_size, error));
        unpacked[member] = true;
    }
    for (int i = 0; i < TWI_FETCH_MAX_MEMBERS && set->members[i]; i++)
        if (!unpacked[i]) {
            status =
                twi_fail(error, TW_DATA_LOSS, "'%s' does not hold %s/%s", archive_path, set->folder, set->members[i]);
            goto done;
        }
    twi_data_path(path, folder, set->members[0]);
    TWI_TRY(twi_sync_directory_of(path, error));
done:
    archive_read_free(archive);
    return status;
}
