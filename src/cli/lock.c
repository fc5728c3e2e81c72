/* lock.c - see lock.h. The lock is the kernel's (flock), so it ends with its process however that ends; what the file
 * says is for people, and for file systems that have no locks. */
#include "lock.h"

#include "clock.h"
#include "command.h"
#include "whole_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_SIZE = 65 };
enum { MOST_FOLDER = PATH_MAX - 96 }; /* names of files in it are up to 80 bytes long */

/* Who wrote a lock file. */
typedef struct holder {
    long process; /* 0: nobody, or it cannot be read */
    char host[HOST_SIZE], since[64];
} holder;

static holder read_holder(int file)
{
    char text[256];
    holder found = {0};
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = 0;
    if (sscanf(text, "process %ld on %64s since %63[^\n]", &found.process, found.host, found.since) != 3)
        found.process = 0;
    return found;
}

static const char *own_host(char host[HOST_SIZE])
{
    if (gethostname(host, HOST_SIZE - 1) != 0 || !host[0])
        strcpy(host, "unknown");
    host[HOST_SIZE - 1] = 0;
    return host;
}

static void write_holder(int file)
{
    char text[256], host[HOST_SIZE], time[64];
    int size = snprintf(text, sizeof text, "process %ld on %s since %s\n", (long)getpid(), own_host(host),
                        time_of_day(time, sizeof time));
    if (ftruncate(file, 0) != 0 || pwrite(file, text, (size_t)size, 0) != size)
        return; /* the lock holds all the same; who has it cannot be said then */
}

/* Where a file system has no locks, a process that answers holds it. */
static bool seems_alive(const holder *h)
{
    char host[HOST_SIZE];
    return h->process > 0 &&
           (strcmp(h->host, own_host(host)) != 0 || kill((pid_t)h->process, 0) == 0 || errno == EPERM);
}

/* Whether the file at the path is still the one that is open: its last holder deletes it. */
static bool is_still_there(const lock *lock)
{
    struct stat opened, there;
    if (fstat(lock->file, &opened) != 0)
        return true; /* who cannot know must not look again and again */
    if (stat(lock->path, &there) != 0)
        return errno != ENOENT;
    return opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

static bool refuse(const char *command, lock *lock, const holder *h)
{
    if (h->process)
        complain(command,
                 "'%s' is being trained into by process %ld on %s since %s; wait until it ends, or take another "
                 "--train-dir",
                 lock->directory, h->process, h->host, h->since);
    else
        complain(command,
                 "'%s' is being trained into by another process; wait until it ends, or take another --train-dir",
                 lock->directory);
    close(lock->file);
    lock->file = -1;
    return false;
}

/* Whoever opens a pipe waits for somebody at its other end, and a run opens files of many names in its directory. */
static bool has_no_pipe(const char *command, const char *directory)
{
    DIR *open = opendir(directory);
    struct stat about;
    bool good = true;
    for (struct dirent *item; good && open && (item = readdir(open));)
        if (fstatat(dirfd(open), item->d_name, &about, 0) == 0 && S_ISFIFO(about.st_mode))
            good = complain(command, "'%s/%s' is a pipe, a train directory has files", directory, item->d_name);
    if (open)
        closedir(open);
    return good;
}

bool lock_take(const char *command, const char *directory, lock *lock)
{
    *lock = (struct lock){.file = -1};
    snprintf(lock->directory, sizeof lock->directory, "%s", directory);
    if (strlen(directory) > MOST_FOLDER)
        return complain(command,
                        "the path '%s' is too long for a train directory: expected at most %d bytes, found %zu",
                        directory, MOST_FOLDER, strlen(directory));
    if (!make_folders(directory, &lock->made_directory))
        return complain(command, "cannot make the directory '%s': %s", directory, strerror(errno));
    if (!has_no_pipe(command, directory))
        return false;
    snprintf(lock->path, sizeof lock->path, "%s/lock", directory);
    for (;;) {
        lock->file = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock->file < 0)
            return complain(command, "cannot write '%s': %s", lock->path, strerror(errno));
        bool held = flock(lock->file, LOCK_EX | LOCK_NB) == 0, refused = !held && errno == EWOULDBLOCK;
        holder before = read_holder(lock->file);
        if (refused || (!held && seems_alive(&before)))
            return refuse(command, lock, &before);
        if (!is_still_there(lock)) { /* it was given back in between */
            close(lock->file);
            continue;
        }
        if (before.process)
            complain(command,
                     "process %ld, which trained into '%s' since %s, came to no proper end; its lock is taken over",
                     before.process, directory, before.since);
        write_holder(lock->file);
        return true;
    }
}

bool lock_keep(const char *command, lock *lock)
{
    struct lock again;
    if (lock->file < 0 || is_still_there(lock))
        return true;
    if (!lock_take(command, lock->directory, &again))
        return false;
    complain(command, "'%s' was removed while this run trains into '%s'; what is saved from now on lies there alone",
             lock->path, lock->directory);
    close(lock->file);
    *lock = again;
    return true;
}

void lock_release(lock *lock)
{
    if (lock->file < 0)
        return;
    if (is_still_there(lock)) /* else it may be another's */
        unlink(lock->path);
    close(lock->file);
    lock->file = -1;
    if (lock->made_directory)
        rmdir(lock->directory); /* only if nothing came to lie in it */
}
