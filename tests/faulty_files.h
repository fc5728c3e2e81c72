/* faulty_files.h - a file system on which the n-th call fails, for tests of everything that writes; and a scratch
 * folder.
 *
 *     for (int n = 0;; n++) {
 *         fail_file_call(n, ENOSPC);
 *         tw_status status = save();
 *         if (!stop_failing())
 *             break;                      // fewer than n calls: every one of them has failed once
 *         ... what must hold after a failure ...
 *     }
 */
#ifndef FAULTY_FILES_H
#define FAULTY_FILES_H

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int countdown; /* calls until one fails */
    int reason;    /* errno of that one */
    bool failed;
} faulty;

static inline bool fails_now(void)
{
    if (faulty.countdown-- != 0)
        return false;
    faulty.failed = true;
    errno = faulty.reason;
    return true;
}

static inline int faulty_open(const char *path, int flags, unsigned mode)
{
    return fails_now() ? -1 : twi_posix_files.open(path, flags, mode);
}

/* The failing write leaves half of its bytes behind, as a full disk does. */
static inline ssize_t faulty_write(int fd, const void *bytes, size_t size)
{
    if (!fails_now())
        return twi_posix_files.write(fd, bytes, size);
    (void)!twi_posix_files.write(fd, bytes, size / 2);
    errno = faulty.reason;
    return -1;
}

static inline int faulty_fsync(int fd)
{
    return fails_now() ? -1 : twi_posix_files.fsync(fd);
}

static inline int faulty_close(int fd)
{
    bool fails = fails_now();
    twi_posix_files.close(fd);
    errno = faulty.reason;
    return fails ? -1 : 0;
}

static inline int faulty_rename(const char *from, const char *to)
{
    return fails_now() ? -1 : twi_posix_files.rename(from, to);
}

static inline int faulty_link(const char *from, const char *to)
{
    return fails_now() ? -1 : twi_posix_files.link(from, to);
}

static inline int faulty_unlink(const char *path)
{
    return fails_now() ? -1 : twi_posix_files.unlink(path);
}

static inline void fail_file_call(int n, int reason)
{
    static const twi_file_calls calls = {faulty_open,   faulty_write, faulty_fsync, faulty_close,
                                         faulty_rename, faulty_link,  faulty_unlink};
    faulty.countdown = n;
    faulty.reason = reason;
    faulty.failed = false;
    twi_set_files(&calls);
}

/* Back to POSIX; true if a call failed. */
static inline bool stop_failing(void)
{
    twi_set_files(NULL);
    return faulty.failed;
}

static inline int no_sync(int fd)
{
    (void)fd;
    return 0;
}

/* Until twi_set_files(NULL) or stop_failing(): thousands of damaged files need not reach the disk. */
static inline void skip_syncs(void)
{
    static twi_file_calls quick;
    quick = twi_posix_files;
    quick.fsync = no_sync;
    twi_set_files(&quick);
}

/* Removes a scratch folder and all in it; one that is not there is fine. */
static inline void remove_scratch(const char *folder)
{
    char path[512];
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && unlink(path) != 0)
            remove_scratch(path);
    }
    if (directory)
        closedir(directory);
    rmdir(folder);
}

/* What tests have not removed goes with the process that made it, and not with its children. */
static struct {
    char paths[256][256];
    int count;
    pid_t owner;
} scratch;

static inline void remove_all_scratch(void)
{
    for (int i = 0; i < scratch.count && scratch.owner == getpid(); i++)
        remove_scratch(scratch.paths[i]);
}

/* A new empty folder for one test. */
static inline const char *scratch_folder(void)
{
    static char path[256];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/tower-test-XXXXXX", base ? base : P_tmpdir);
    if (!mkdtemp(path))
        abort();
    if (scratch.count == 0) {
        scratch.owner = getpid();
        atexit(remove_all_scratch);
    }
    if (scratch.count < (int)(sizeof scratch.paths / sizeof *scratch.paths))
        strcpy(scratch.paths[scratch.count++], path);
    return path;
}

/* Names in a folder that hold `part` ("" counts all). */
static inline int count_files(const char *folder, const char *part)
{
    int count = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
    if (directory)
        closedir(directory);
    return count;
}

#endif
