/* inject.c - a library to be loaded before all others (LD_PRELOAD) in which calls fail. What to do stands in the
 * environment:
 *
 *     FAULT=CALLS:ACTION:N[+]      at the N-th of these calls, from 0; "+": and at all that follow
 *     FAULT_COUNT=FILE             how many of these calls there were is written there when the program ends
 *
 * CALLS are names with commas between them, or "files" (open, write, fsync, rename, link, unlink, close, ftruncate),
 * "memory" (malloc, calloc, realloc, posix_memalign, aligned_alloc), "onednn" (those of oneDNN alone), "threads"
 * (pthread_create). ACTION is an errno's name, SHORT (half of a write), KILL (before the call), KILLED (after it) or a
 * signal: TERM, INT, HUP, USR1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what to do ------------------------------------------------------------------------------------------------ */

typedef enum verdict { GO_ON, FAIL, SHORT_WRITE, KILL_AFTER } verdict;

static char calls[256];
static int number = -1, reason, signal_to_raise;
static bool for_good, is_short, kills_before, kills_after;
static atomic_int met;

static const struct { const char *name; int value; } reasons[] = {
    {"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EDQUOT", EDQUOT}, {"EINTR", EINTR}, {"EMFILE", EMFILE}, {"EFBIG", EFBIG},
    {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}, {"ESTALE", ESTALE}, {"EACCES", EACCES}, {"EROFS", EROFS},
}, signals[] = {{"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}};

static const char *members_of(const char *group)
{
    return strcmp(group, "files") == 0     ? ",open,write,fsync,rename,link,unlink,close,ftruncate,"
           : strcmp(group, "memory") == 0  ? ",malloc,calloc,realloc,posix_memalign,aligned_alloc,"
           : strcmp(group, "threads") == 0 ? ",pthread_create,"
                                           : NULL;
}

__attribute__((constructor)) static void read_fault(void)
{
    char text[256], *rest = text, *group, *action, *at;
    const char *fault = getenv("FAULT");
    if (!fault)
        return;
    snprintf(text, sizeof text, "%s", fault);
    group = strsep(&rest, ":");
    action = strsep(&rest, ":");
    at = strsep(&rest, ":");
    if (!action || !at)
        return;
    if (members_of(group))
        snprintf(calls, sizeof calls, "%s", members_of(group));
    else
        snprintf(calls, sizeof calls, ",%.200s,", group);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(reasons[i].name, action) == 0)
            reason = reasons[i].value;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(signals[i].name, action) == 0)
            signal_to_raise = signals[i].value;
    is_short = strcmp(action, "SHORT") == 0;
    kills_before = strcmp(action, "KILL") == 0;
    kills_after = strcmp(action, "KILLED") == 0;
    for_good = strchr(at, '+') != NULL;
    number = atoi(at);
}

__attribute__((destructor)) static void write_count(void)
{
    const char *path = getenv("FAULT_COUNT");
    FILE *file = path && number >= 0 ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%d\n", atomic_load(&met));
        fclose(file);
    }
}

static verdict judge(const char *call) /* ",write," */
{
    if (number < 0 || !strstr(calls, call))
        return GO_ON;
    int mine = atomic_fetch_add(&met, 1);
    if (mine < number || (mine > number && !for_good))
        return GO_ON;
    if (kills_before)
        kill(getpid(), SIGKILL);
    if (signal_to_raise)
        kill(getpid(), signal_to_raise);
    if (is_short)
        return SHORT_WRITE;
    errno = reason;
    return kills_after ? KILL_AFTER : reason ? FAIL : GO_ON;
}

static int after(verdict v, int result)
{
    if (v == KILL_AFTER)
        kill(getpid(), SIGKILL);
    return result;
}

#define REAL(type, name)                                                                                               \
    static type *real;                                                                                                 \
    if (!real)                                                                                                         \
        real = (type *)dlsym(RTLD_NEXT, name)

/* ---- files: only those that are written, and regular ones ------------------------------------------------------- */

typedef int open_call(const char *, int, ...);
typedef ssize_t write_call(int, const void *, size_t);
typedef int fd_call(int);
typedef int two_paths_call(const char *, const char *);
typedef int path_call(const char *);

int open(const char *path, int flags, ...)
{
    REAL(open_call, "open");
    va_list list;
    va_start(list, flags);
    unsigned mode = flags & O_CREAT ? va_arg(list, unsigned) : 0;
    va_end(list);
    verdict v = flags & (O_CREAT | O_DIRECTORY) ? judge(",open,") : GO_ON;
    return v == FAIL ? -1 : after(v, real(path, flags, mode));
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    REAL(write_call, "write");
    verdict v = fd > 2 ? judge(",write,") : GO_ON;
    if (v == FAIL)
        return -1;
    ssize_t written = real(fd, bytes, v == SHORT_WRITE && size > 1 ? size / 2 : size);
    after(v, 0);
    return written;
}

int fsync(int fd)
{
    REAL(fd_call, "fsync");
    verdict v = judge(",fsync,");
    return v == FAIL ? -1 : after(v, real(fd));
}

int close(int fd)
{
    REAL(fd_call, "close");
    verdict v = fd > 2 ? judge(",close,") : GO_ON;
    int saved = errno, result = real(fd);
    if (v == FAIL)
        errno = saved;
    return v == FAIL ? -1 : after(v, result);
}

int rename(const char *from, const char *to)
{
    REAL(two_paths_call, "rename");
    verdict v = judge(",rename,");
    return v == FAIL ? -1 : after(v, real(from, to));
}

int link(const char *from, const char *to)
{
    REAL(two_paths_call, "link");
    verdict v = judge(",link,");
    return v == FAIL ? -1 : after(v, real(from, to));
}

int unlink(const char *path)
{
    REAL(path_call, "unlink");
    verdict v = judge(",unlink,");
    return v == FAIL ? -1 : after(v, real(path));
}

/* ---- memory and threads: libraries' as well --------------------------------------------------------------------- */

/* C++'s new asks malloc() on behalf of whom has called it. */
static __thread bool asked_by_onednn;

static bool is_in_onednn(const void *code)
{
    Dl_info found;
    return dladdr(code, &found) && found.dli_fname && strstr(found.dli_fname, "libdnnl");
}

static bool is_refused(const char *call, const void *caller)
{
    if (strcmp(calls, ",onednn,") == 0) {
        bool asked = asked_by_onednn;
        asked_by_onednn = false;
        call = asked || is_in_onednn(caller) ? calls : "none of them";
    }
    return judge(call) == FAIL;
}

#define IS_REFUSED(call) is_refused(call, __builtin_return_address(0))

typedef void *new_call(size_t);

#define NEW(name)                                                                                                      \
    void *name(size_t size)                                                                                            \
    {                                                                                                                  \
        REAL(new_call, #name);                                                                                         \
        asked_by_onednn = strcmp(calls, ",onednn,") == 0 && is_in_onednn(__builtin_return_address(0));                 \
        return real(size);                                                                                             \
    }

NEW(_Znwm)
NEW(_Znam)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    return IS_REFUSED(",malloc,") ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return IS_REFUSED(",calloc,") ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return size && IS_REFUSED(",realloc,") ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return IS_REFUSED(",aligned_alloc,") ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made = IS_REFUSED(",posix_memalign,") ? NULL : __libc_memalign(alignment, size);
    if (made)
        *block = made;
    return made ? 0 : ENOMEM;
}

typedef int create_call(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg)
{
    REAL(create_call, "pthread_create");
    return judge(",pthread_create,") == FAIL ? reason : real(thread, attributes, start, arg);
}
