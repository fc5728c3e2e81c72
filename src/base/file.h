/* file.h - files, through one small table that a test can replace to make the n-th call fail.
 * Lives here:  reading whole files and parts of them, and writes that are all or nothing.
 * Never here:  formats. */
#ifndef TWI_FILE_H
#define TWI_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tower/status.h>

struct twi_text;

/* The calls Tower makes on the file system when it writes; each behaves as the POSIX call of its name. */
typedef struct twi_file_calls {
    int (*open)(const char *path, int flags, unsigned mode);
    ssize_t (*write)(int fd, const void *bytes, size_t size);
    int (*fsync)(int fd);
    int (*close)(int fd);
    int (*rename)(const char *from, const char *to);
    int (*link)(const char *from, const char *to);
    int (*unlink)(const char *path);
} twi_file_calls;

extern const twi_file_calls twi_posix_files;
void twi_set_files(const twi_file_calls *calls); /* NULL restores POSIX; for tests */
const twi_file_calls *twi_files(void);

/* Appending writer; the first error latches and is reported by close. Short writes and EINTR are handled. Whatever lies
 * at the path, a symbolic link is never followed: in a directory that others may write to it could lead anywhere. */
typedef struct twi_file_writer twi_file_writer;
tw_status twi_file_create(const char *path, twi_file_writer **writer, tw_error *error);     /* instead of what was there */
tw_status twi_file_create_new(const char *path, twi_file_writer **writer, tw_error *error); /* TW_ALREADY_EXISTS */
tw_status twi_file_append(const char *path, twi_file_writer **writer, tw_error *error);     /* goes on at the end */
void twi_file_write(twi_file_writer *writer, const void *bytes, size_t size);
tw_status twi_file_flush(twi_file_writer *writer, tw_error *error); /* to the kernel */
/* Flushes, optionally fsyncs, closes and frees. A failed fsync is final for the file: it is never retried. */
tw_status twi_file_close(twi_file_writer *writer, bool sync, tw_error *error);

/* Reading parts of a file. Any number of threads may read from one reader. A pipe is refused: whoever opens one waits
 * until somebody writes to it, and a name in a folder may be anything's. */
typedef struct twi_file_reader twi_file_reader;
tw_status twi_file_open(const char *path, twi_file_reader **reader, tw_error *error);
/* The same on bytes that are there already; they are the reader's from now on, and freed if it cannot be made. */
tw_status twi_file_open_bytes(const char *path, char *bytes, size_t size, twi_file_reader **reader, tw_error *error);
uint64_t twi_file_size(const twi_file_reader *reader);
/* All `size` bytes from `offset` on; TW_DATA_LOSS if the file ends before. */
tw_status twi_file_read_at(const twi_file_reader *reader, uint64_t offset, void *bytes, size_t size, tw_error *error);
void twi_file_reader_close(twi_file_reader *reader); /* NULL is fine */

/* Looking at a file from front to back through a window, so that small pieces cost no calls each. */
typedef struct twi_file_window {
    const twi_file_reader *file; /* borrowed */
    char *bytes;                 /* of the file, from `offset` on */
    uint64_t offset;
    size_t size, capacity;
} twi_file_window;               /* all zeros but the file is a window that has seen nothing */
/* Points *bytes at `size` bytes from `offset` on, borrowed until the next call; TW_DATA_LOSS if the file ends
 * before. */
tw_status twi_file_look(twi_file_window *window, uint64_t offset, size_t size, const char **bytes, tw_error *error);
void twi_file_window_free(twi_file_window *window); /* the file stays open */

/* Reads a whole file; at most `limit` bytes (larger: TW_OUT_OF_RANGE). *bytes gets a final 0; twi_free() it. A pipe is
 * refused here too; what the user has named may be one (`tower show <(...)`), and is read to its end. */
tw_status twi_file_read(const char *path, size_t limit, char **bytes, size_t *size, tw_error *error);
tw_status twi_file_read_any(const char *path, size_t limit, char **bytes, size_t *size, tw_error *error);

/* Appends PATH.tmp-PID-RANDOM, the name under which what becomes PATH is written: nobody else has it or can guess
 * it. */
#define TWI_BESIDE ".tmp-"
void twi_name_beside(struct twi_text *name, const char *path);
bool twi_is_beside(const char *name); /* such a name, or its end */

/* Writes beside, syncs, renames, syncs the directory: afterwards path holds all of it or what it held
 * before. What is no file (/dev/null, a pipe) is written to instead. */
tw_status twi_file_replace(const char *path, const void *bytes, size_t size, tw_error *error);
tw_status twi_rename(const char *from, const char *to, tw_error *error);
tw_status twi_sync_directory_of(const char *path, tw_error *error);
tw_status twi_make_directories(const char *path, tw_error *error); /* like mkdir -p */
/* False only if it is known not to be there: what a disk does not tell of for the moment is neither written over nor
 * taken for abandoned, and whoever opens it hears why it cannot be. */
bool twi_file_exists(const char *path);

/* The next entry of an open directory; NULL at its end, and, with *status and the error, where it cannot be read: what
 * a disk does not give must not pass for what is not there. */
struct dirent *twi_next_entry(DIR *directory, const char *path, tw_status *status, tw_error *error);

/* Fills in error from errno: "cannot VERB 'PATH': REASON", with the status that fits. */
tw_status twi_fail_file(tw_error *error, const char *verb, const char *path);

#endif
