/* status.h - how Tower reports what went wrong.
 *
 * Every function that can fail returns a tw_status, 0 (TW_OK) on success. Functions that build a graph latch
 * their first error on the graph instead (tw_graph_status). Most functions take a `tw_error *error` last: when it
 * is not NULL and the call fails, it holds the status again and one plain sentence that names the thing, says what
 * was expected and what was found. On success it is left as it was. The library never prints and never exits.
 *
 * The codes and their numbers are those of TensorFlow (and of gRPC), so that they can be exchanged. */
#ifndef TOWER_STATUS_H
#define TOWER_STATUS_H

#include <tower/language.h>

#ifdef __cplusplus
extern "C" {
#endif

/*  X(NAME, number, "text")  */
#define TW_STATUS_LIST(X)                                                                                              \
    X(OK, 0, "ok")                                                                                                     \
    X(CANCELLED, 1, "cancelled")                                                                                       \
    X(UNKNOWN, 2, "unknown error")                                                                                     \
    X(INVALID_ARGUMENT, 3, "invalid argument")                                                                         \
    X(DEADLINE_EXCEEDED, 4, "deadline exceeded")                                                                       \
    X(NOT_FOUND, 5, "not found")                                                                                       \
    X(ALREADY_EXISTS, 6, "already exists")                                                                             \
    X(PERMISSION_DENIED, 7, "permission denied")                                                                       \
    X(RESOURCE_EXHAUSTED, 8, "resource exhausted")                                                                     \
    X(FAILED_PRECONDITION, 9, "failed precondition")                                                                   \
    X(ABORTED, 10, "aborted")                                                                                          \
    X(OUT_OF_RANGE, 11, "out of range")                                                                                \
    X(UNIMPLEMENTED, 12, "not implemented")                                                                            \
    X(INTERNAL, 13, "internal error")                                                                                  \
    X(UNAVAILABLE, 14, "unavailable")                                                                                  \
    X(DATA_LOSS, 15, "data loss")

typedef enum tw_status {
#define X(name, number, text) TW_##name = number,
    TW_STATUS_LIST(X)
#undef X
} tw_status;

#define TW_MESSAGE_SIZE 2048 /* bytes of a message, with its final 0; longer ones end in "..." */

/* An error, by value: no memory to free. Start it with `tw_error error = TW_NO_ERROR;` (in C also {0}). */
#define TW_NO_ERROR {TW_OK, ""}
typedef struct tw_error {
    tw_status status;
    char message[TW_MESSAGE_SIZE];
} tw_error;

/* The plain words for a status, for example "invalid argument". Never NULL. */
TW_API const char *tw_status_text(tw_status status);

/* The version of the library at run time, for example "0.1.0", and as major * 10000 + minor * 100 + patch. */
TW_API const char *tw_version(void);
TW_API int tw_version_number(void);

/* The revision of the sources that the library was made of, "97aa3eb83a7f", with "-dirty" behind it where they were
 * changed since; "" if that is not known. */
TW_API const char *tw_revision(void);

/* A library that this one stands on, as it was found at run time. */
typedef struct tw_component {
    const char *name;    /* "oneDNN"; NULL: there is no such component */
    const char *purpose; /* a few words */
    char version[32];    /* "2.6.3"; "" when this build was made, or this system is, without it */
    char path[256];      /* of the file it was loaded from, links followed; "" if it is part of another */
} tw_component;

/* The i-th component, from 0; the first without a name ends them. */
TW_API tw_component tw_component_at(int i);

/* Everything the library wants to tell a person while it works (a soft placement that moved a node, a kernel that was
 * passed over) goes through one callback, none by default. The text has no trailing newline and is borrowed for the
 * call. Any thread may call it, several at once; once tw_set_log() has returned, none calls what was set before. It
 * must not call tw_set_log() itself. tw_set_log() takes the last level that is told. */
typedef enum tw_log_level { TW_LOG_ERROR, TW_LOG_WARNING, TW_LOG_INFO, TW_LOG_DETAIL } tw_log_level;

typedef void tw_log_function(void *user, int level /* a tw_log_level */, const char *text);
TW_API void tw_set_log(tw_log_function *function, void *user, int level);

/* Where the library's memory comes from. `resize(user, NULL, n)` allocates, `resize(user, p, 0)` frees and returns
 * NULL; a failed call returns NULL and leaves the old block as it was. Call it before anything else; NULL restores
 * the C library's. Device memory (arenas, variables) does not come from here but from the device. */
typedef void *tw_resize_function(void *user, void *block, size_t bytes);
TW_API void tw_set_allocator(tw_resize_function *resize, void *user);

/* Frees memory that a function gave you where it says so. NULL is fine. */
TW_API void tw_free(void *block);

/* How many allocations the library has made so far, on the heap and from devices. A sealed training step makes
 * none: tests compare this before and after. */
TW_API int64_t tw_allocation_count(void);

#ifdef __cplusplus
}
#endif
#endif
