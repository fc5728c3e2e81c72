/* whole_file.c - see whole_file.h. */
#include "whole_file.h"

#include <errno.h>
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
        return true;
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
