/* whole_file.c - see whole_file.h. */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool whole_file_open(whole_file *whole, const char *path)
{
    whole->file = NULL;
    if (snprintf(whole->path, sizeof whole->path, "%s", path) >= (int)sizeof whole->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
        whole->beside[0] = 0;
        whole->file = fopen(path, "we");
        return whole->file != NULL;
    }
    struct timespec now; /* in a container a process may have the number of one that was killed while it wrote */
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(whole->beside, sizeof whole->beside, "%s.tmp-%ld-%llx", path, (long)getpid(),
             (unsigned long long)now.tv_sec << 30 | (unsigned long long)now.tv_nsec);
    whole->file = fopen(whole->beside, "wxe");
    return whole->file != NULL;
}

/* Without this a power cut may take the file's new name back. */
static bool sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES; /* one may write to a folder that one may not read */
    bool good = fsync(fd) == 0 || errno == EINVAL; /* this file system does not sync folders */
    int reason = errno;
    close(fd);
    errno = reason;
    return good;
}

bool whole_file_close(whole_file *whole, bool good)
{
    if (!whole->file)
        return false;
    bool in_place = !whole->beside[0];
    good = good && !ferror(whole->file) && fflush(whole->file) == 0 && (in_place || fsync(fileno(whole->file)) == 0);
    int reason = errno;
    if (fclose(whole->file) != 0 && good) {
        good = false;
        reason = errno;
    }
    whole->file = NULL;
    if (in_place) {
        errno = reason;
        return good;
    }
    if (good && rename(whole->beside, whole->path) == 0)
        return sync_folder_of(whole->path);
    if (good)
        reason = errno;
    unlink(whole->beside);
    errno = reason;
    return false;
}

bool whole_file_write(const char *path, const void *bytes, size_t size)
{
    whole_file whole;
    return whole_file_open(&whole, path) && whole_file_close(&whole, fwrite(bytes, 1, size, whole.file) == size);
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            errno = wrote == 0 ? EIO : errno;
            return false;
        }
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

bool whole_line_append(const char *path, const char *line, size_t size)
{
    char last = '\n';
    struct stat about;
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool good = fstat(fd, &about) == 0, regular = good && S_ISREG(about.st_mode);
    good = good && (!regular || about.st_size == 0 || pread(fd, &last, 1, about.st_size - 1) == 1);
    bool untouched = !good;
    good = good && (last == '\n' || write_all(fd, "\n", 1)) && write_all(fd, line, size) &&
           (!regular || fsync(fd) == 0);
    int reason = errno;
    if (!good && !untouched && regular && ftruncate(fd, about.st_size) != 0)
        errno = reason; /* what is left of it is no line, and will be ended by the next one */
    if (close(fd) != 0 && good)
        return false;
    errno = reason;
    return good;
}

bool make_folders(const char *path, bool *made)
{
    char part[PATH_MAX];
    struct stat about;
    *made = false;
    if (strlen(path) >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (const char *at = path + 1; *path; at++) {
        if (*at && *at != '/')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        bool made_part = mkdir(part, 0777) == 0;
        int reason = errno; /* why not, which is not what stat() then says */
        *made |= made_part;
        if (!made_part && stat(part, &about) != 0) {
            errno = reason;
            return false;
        }
        if (!*at)
            break;
    }
    return true;
}
