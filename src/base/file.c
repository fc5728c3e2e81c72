/* file.c - see file.h. */
#include "base/file.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES 65536

static int posix_open(const char *path, int flags, unsigned mode)
{
    return open(path, flags, (mode_t)mode);
}

const twi_file_calls twi_posix_files = {
    .open = posix_open,
    .write = write,
    .fsync = fsync,
    .close = close,
    .rename = rename,
    .link = link,
    .unlink = unlink,
};

static const twi_file_calls *calls = &twi_posix_files;

void twi_set_files(const twi_file_calls *replacement)
{
    calls = replacement ? replacement : &twi_posix_files;
}

const twi_file_calls *twi_files(void)
{
    return calls;
}

static tw_status status_of_errno(int number)
{
    switch (number) {
    case ENOENT:
        return TW_NOT_FOUND;
    case EEXIST:
        return TW_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return TW_PERMISSION_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return TW_RESOURCE_EXHAUSTED;
    case EISDIR:
    case ENOTDIR:
        return TW_FAILED_PRECONDITION;
    case EINVAL:
    case ENAMETOOLONG:
        return TW_INVALID_ARGUMENT;
    default:
        return TW_UNKNOWN;
    }
}

tw_status twi_fail_file(tw_error *error, const char *verb, const char *path)
{
    int number = errno;
    return twi_fail(error, status_of_errno(number), "cannot %s '%s': %s", verb, path, strerror(number));
}

/* ---- writing ---- */

struct twi_file_writer {
    int fd;
    char *path;   /* what it becomes: messages name that, for nobody finds the name that it has until then */
    char *buffer; /* BUFFER_BYTES */
    size_t used;
    tw_error error; /* the first one, if its status is set */
};

/* Without what twi_name_beside() has added, be it once or for a file beside a file. */
static char *final_name(const char *path)
{
    char *name = twi_strdup(path), *slash = name ? strrchr(name, '/') : NULL;
    char *last = slash ? slash + 1 : name;
    if (name && twi_is_beside(last))
        *strstr(last, TWI_BESIDE) = 0;
    return name;
}

static tw_status create(const char *path, int flags, twi_file_writer **writer, tw_error *error)
{
    twi_file_writer *made = twi_alloc(sizeof *made);
    if (!made)
        return twi_fail_memory(error, "opening a file");
    made->fd = -1;
    made->path = final_name(path);
    made->buffer = twi_resize(NULL, BUFFER_BYTES);
    tw_status status = TW_OK;
    if (!made->path || !made->buffer) {
        status = twi_fail_memory(error, "opening a file");
    } else {
        do
            made->fd = calls->open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
        while (made->fd < 0 && errno == EINTR);
        if (made->fd < 0)
            status = twi_fail_file(error, "create", made->path);
    }
    if (status != TW_OK) {
        twi_free(made->buffer);
        twi_free(made->path);
        twi_free(made);
        made = NULL;
    }
    *writer = made;
    return status;
}

tw_status twi_file_create(const char *path, twi_file_writer **writer, tw_error *error)
{
    tw_status status = create(path, O_EXCL, writer, error);
    if (status == TW_ALREADY_EXISTS && calls->unlink(path) == 0)
        status = create(path, O_EXCL, writer, error);
    return status;
}

tw_status twi_file_create_new(const char *path, twi_file_writer **writer, tw_error *error)
{
    return create(path, O_EXCL, writer, error);
}

tw_status twi_file_append(const char *path, twi_file_writer **writer, tw_error *error)
{
    return create(path, O_APPEND | O_NOFOLLOW, writer, error);
}

static void write_out(twi_file_writer *writer, const char *bytes, size_t size)
{
    while (size > 0 && writer->error.status == TW_OK) {
        ssize_t wrote = calls->write(writer->fd, bytes, size);
        if (wrote > 0) {
            bytes += wrote;
            size -= (size_t)wrote;
        } else if (wrote == 0 || errno != EINTR) {
            if (wrote == 0)
                errno = EIO; /* nothing taken and no reason given: trying again could go on for ever */
            twi_fail_file(&writer->error, "write", writer->path);
        }
    }
}

void twi_file_write(twi_file_writer *writer, const void *bytes, size_t size)
{
    if (writer->used + size > BUFFER_BYTES) {
        write_out(writer, writer->buffer, writer->used);
        writer->used = 0;
    }
    if (size >= BUFFER_BYTES) {
        write_out(writer, bytes, size);
    } else if (size > 0) {
        memcpy(writer->buffer + writer->used, bytes, size);
        writer->used += size;
    }
}

static tw_status report(const twi_file_writer *writer, tw_error *error)
{
    if (error && writer->error.status != TW_OK)
        *error = writer->error;
    return writer->error.status;
}

tw_status twi_file_flush(twi_file_writer *writer, tw_error *error)
{
    write_out(writer, writer->buffer, writer->used);
    writer->used = 0;
    return report(writer, error);
}

tw_status twi_file_close(twi_file_writer *writer, bool sync, tw_error *error)
{
    twi_file_flush(writer, NULL);
    if (sync && writer->error.status == TW_OK && calls->fsync(writer->fd) != 0)
        twi_fail_file(&writer->error, "sync", writer->path);
    /* After EINTR the descriptor is gone on Linux: close is called once, whatever it says. */
    if (calls->close(writer->fd) != 0 && writer->error.status == TW_OK)
        twi_fail_file(&writer->error, "close", writer->path);
    tw_status status = report(writer, error);
    twi_free(writer->buffer);
    twi_free(writer->path);
    twi_free(writer);
    return status;
}

/* ---- reading ---- */

struct twi_file_reader {
    int fd;
    char *path;
    uint64_t size;
    char *bytes; /* all of them, instead of a file; else NULL */
};

static bool is_pipe(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISFIFO(about.st_mode);
}

static tw_status open_to_read(const char *path, twi_file_reader **reader, tw_error *error)
{
    tw_status status = TW_OK;
    struct stat about;
    twi_file_reader *made = twi_alloc(sizeof *made);
    if (!made)
        return twi_fail_memory(error, "opening a file");
    made->path = twi_strdup(path);
    do
        made->fd = open(path, O_RDONLY | O_CLOEXEC);
    while (made->fd < 0 && errno == EINTR);
    if (!made->path)
        status = twi_fail_memory(error, "opening a file");
    else if (made->fd < 0 || fstat(made->fd, &about) != 0)
        status = twi_fail_file(error, "open", path);
    else if (S_ISDIR(about.st_mode))
        status = twi_fail(error, TW_FAILED_PRECONDITION, "'%s' is a directory, a file was expected", path);
    else
        made->size = (uint64_t)about.st_size;
    if (status != TW_OK) {
        twi_file_reader_close(made);
        made = NULL;
    }
    *reader = made;
    return status;
}

tw_status twi_file_open(const char *path, twi_file_reader **reader, tw_error *error)
{
    *reader = NULL;
    if (is_pipe(path))
        return twi_fail(error, TW_FAILED_PRECONDITION, "'%s' is a pipe, a file was expected", path);
    return open_to_read(path, reader, error);
}

tw_status twi_file_open_bytes(const char *path, char *bytes, size_t size, twi_file_reader **reader, tw_error *error)
{
    *reader = twi_alloc(sizeof **reader);
    char *name = twi_strdup(path);
    if (!*reader || !name) {
        twi_free(*reader);
        twi_free(name);
        twi_free(bytes);
        *reader = NULL;
        return twi_fail_memory(error, "opening a file");
    }
    **reader = (twi_file_reader){-1, name, size, bytes};
    return TW_OK;
}

uint64_t twi_file_size(const twi_file_reader *reader)
{
    return reader->size;
}

tw_status twi_file_read_at(const twi_file_reader *reader, uint64_t offset, void *bytes, size_t size, tw_error *error)
{
    char *to = bytes;
    if (offset > INT64_MAX)
        return twi_fail(error, TW_DATA_LOSS, "'%s' has no offset %llu", reader->path, (unsigned long long)offset);
    if (reader->fd < 0 && offset <= reader->size && size <= reader->size - offset) {
        if (size)
            memcpy(to, reader->bytes + offset, size);
        return TW_OK;
    }
    while (size > 0) {
        ssize_t got = reader->fd < 0 ? 0 : pread(reader->fd, to, size, (off_t)offset);
        if (got > 0) {
            to += got;
            offset += (uint64_t)got;
            size -= (size_t)got;
        } else if (got == 0) {
            return twi_fail(error, TW_DATA_LOSS, "'%s' ends at %llu, %zu more bytes were expected", reader->path,
                            (unsigned long long)offset, size);
        } else if (errno != EINTR) {
            return twi_fail_file(error, "read", reader->path);
        }
    }
    return TW_OK;
}

tw_status twi_file_look(twi_file_window *w, uint64_t offset, size_t size, const char **bytes, tw_error *error)
{
    enum { LEAST = 262144 };
    if (offset < w->offset || offset - w->offset > w->size || w->size - (size_t)(offset - w->offset) < size) {
        uint64_t whole = twi_file_size(w->file), rest = whole > offset ? whole - offset : 0;
        size_t wanted = size > LEAST ? size : LEAST;
        if (size <= rest && wanted > rest)
            wanted = (size_t)rest;
        w->size = 0;
        if (wanted > w->capacity) {
            char *larger = twi_resize(w->bytes, wanted);
            if (!larger)
                return twi_fail_memory(error, "reading a file");
            w->bytes = larger;
            w->capacity = wanted;
        }
        tw_status status = twi_file_read_at(w->file, offset, w->bytes, wanted, error);
        if (status != TW_OK)
            return status;
        w->offset = offset;
        w->size = wanted;
    }
    *bytes = w->bytes + (offset - w->offset);
    return TW_OK;
}

void twi_file_window_free(twi_file_window *w)
{
    twi_free(w->bytes);
    *w = (twi_file_window){0};
}

void twi_file_reader_close(twi_file_reader *reader)
{
    if (!reader)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    twi_free(reader->bytes);
    twi_free(reader->path);
    twi_free(reader);
}

tw_status twi_file_read(const char *path, size_t limit, char **bytes, size_t *size, tw_error *error)
{
    if (is_pipe(path))
        return twi_fail(error, TW_FAILED_PRECONDITION, "'%s' is a pipe, a file was expected", path);
    return twi_file_read_any(path, limit, bytes, size, error);
}

tw_status twi_file_read_any(const char *path, size_t limit, char **bytes, size_t *size, tw_error *error)
{
    tw_status status = TW_OK;
    twi_file_reader *reader = NULL;
    char *data = NULL;
    if (limit > PTRDIFF_MAX - 2)
        limit = PTRDIFF_MAX - 2;
    TWI_TRY(open_to_read(path, &reader, error));
    /* The size is a hint only: the kernel's own files say 0, and a growing file is longer by now. One byte beyond
     * the limit is asked for, so that a file that is too long shows itself. */
    bool fits = reader->size <= limit;
    size_t used = 0, capacity = (fits ? (size_t)reader->size : limit) + 1;
    for (ssize_t got = 1; fits && got != 0;) {
        if (!data || used == capacity) {
            if (data)
                capacity = capacity > limit / 2 ? limit + 1 : capacity * 2;
            char *larger = twi_resize(data, capacity + 1);
            if (!larger) {
                status = twi_fail_memory(error, "reading a file");
                goto done;
            }
            data = larger;
        }
        got = read(reader->fd, data + used, capacity - used);
        if (got < 0 && errno != EINTR) {
            status = twi_fail_file(error, "read", path);
            goto done;
        }
        used += got > 0 ? (size_t)got : 0;
        fits = used <= limit;
    }
    if (!fits)
        TWI_LEAVE(twi_fail(error, TW_OUT_OF_RANGE, "'%s' is larger than the %zu bytes allowed here", path, limit));
    data[used] = 0;
    *bytes = data;
    *size = used;
    data = NULL;
done:
    twi_free(data);
    twi_file_reader_close(reader);
    return status;
}

/* ---- names and directories ---- */

void twi_name_beside(twi_text *name, const char *path)
{
    uint64_t number;
    struct timespec now;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) { /* while the machine starts */
        clock_gettime(CLOCK_MONOTONIC, &now);
        number = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)(uintptr_t)name;
    }
    twi_text_printf(name, "%s" TWI_BESIDE "%ld-%016" PRIx64, path, (long)getpid(), number);
}

bool twi_is_beside(const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t start = strlen(TWI_BESIDE);
    return dot && strncmp(dot, TWI_BESIDE, start) == 0 && dot[start] &&
           !dot[start + strspn(dot + start, "0123456789abcdef-")];
}

tw_status twi_rename(const char *from, const char *to, tw_error *error)
{
    return calls->rename(from, to) == 0 ? TW_OK : twi_fail_file(error, "rename to", to);
}

/* The folder that holds path: "." for a bare name. twi_free() it; NULL when out of memory. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *copy = twi_strdup(slash ? path : ".");
    if (copy && slash)
        copy[slash == path ? 1 : slash - path] = 0;
    return copy;
}

tw_status twi_sync_directory_of(const char *path, tw_error *error)
{
    tw_status status = TW_OK;
    char *directory = directory_of(path);
    if (!directory)
        return twi_fail_memory(error, "syncing a directory");
    int fd = calls->open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) {
        status = twi_fail_file(error, "open", directory);
    } else {
        /* EINVAL: this file system does not sync directories; there is nothing better to do on it. */
        if (calls->fsync(fd) != 0 && errno != EINVAL)
            status = twi_fail_file(error, "sync", directory);
        if (calls->close(fd) != 0 && status == TW_OK)
            status = twi_fail_file(error, "close", directory);
    }
    twi_free(directory);
    return status;
}

/* A device, a pipe or a socket, which is written to; a file instead of it would be the end of it. */
static bool is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

static tw_status write_to_special(const char *path, const void *bytes, size_t size, tw_error *error)
{
    twi_file_writer *writer = NULL;
    tw_status status = create(path, 0, &writer, error);
    if (status != TW_OK)
        return status;
    twi_file_write(writer, bytes, size);
    return twi_file_close(writer, false, error);
}

tw_status twi_file_replace(const char *path, const void *bytes, size_t size, tw_error *error)
{
    if (is_special(path))
        return write_to_special(path, bytes, size, error);
    tw_status status = TW_OK;
    twi_file_writer *writer = NULL;
    twi_text beside = {0};
    bool made = false;
    twi_name_beside(&beside, path);
    if (beside.failed)
        return twi_fail_memory(error, "replacing a file");
    TWI_TRY(twi_file_create_new(beside.data, &writer, error));
    made = true;
    twi_file_write(writer, bytes, size);
    TWI_TRY(twi_file_close(writer, true, error));
    TWI_TRY(twi_rename(beside.data, path, error));
    made = false;
    TWI_TRY(twi_sync_directory_of(path, error));
done:
    if (made)
        calls->unlink(beside.data);
    twi_text_free(&beside);
    return status;
}

tw_status twi_make_directories(const char *path, tw_error *error)
{
    tw_status status = TW_OK;
    struct stat about;
    char *part = twi_strdup(path);
    if (!part)
        return twi_fail_memory(error, "making a directory");
    for (char *end = part; status == TW_OK && *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char kept = *end;
        *end = 0;
        if (mkdir(part, 0777) != 0) {
            int reason = errno; /* not always EEXIST for what is there: EROFS, EACCES, EISDIR occur too */
            bool exists = stat(part, &about) == 0;
            errno = exists ? ENOTDIR : reason;
            if (!exists || !S_ISDIR(about.st_mode))
                status = twi_fail_file(error, "make directory", part);
        }
        *end = kept;
    }
    twi_free(part);
    return status;
}

struct dirent *twi_next_entry(DIR *directory, const char *path, tw_status *status, tw_error *error)
{
    errno = 0;
    struct dirent *entry = readdir(directory);
    if (!entry && errno != 0)
        *status = twi_fail_file(error, "list", path);
    return entry;
}

bool twi_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 || (errno != ENOENT && errno != ENOTDIR);
}
