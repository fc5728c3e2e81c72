/* status.h - filling in a tw_error, and leaving a function that holds things. */
#ifndef TWI_STATUS_H
#define TWI_STATUS_H

#include <stdarg.h>
#include <tower/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes code and message into error (NULL is fine) and returns code: `return twi_fail(error, TW_NOT_FOUND, ...)`. */
tw_status twi_fail(tw_error *error, tw_status code, const char *format, ...) TW_PRINTF(3, 4);
tw_status twi_vfail(tw_error *error, tw_status code, const char *format, va_list arguments);

/* No error yet. For errors that are made by the thousand: the rest of its 2 KB stays as it is. */
static inline void twi_clear_error(tw_error *error)
{
    error->status = TW_OK;
    error->message[0] = 0;
}

/* Out of memory while doing `what`. */
tw_status twi_fail_memory(tw_error *error, const char *what);

/* Puts "prefix: " before a message that is already there; returns its status. */
tw_status twi_prefix(tw_error *error, const char *format, ...) TW_PRINTF(2, 3);

/* At the border: what a public function cannot do without. `given` is the parameter, `name` what the header calls it:
 *
 *     TWI_NEED(s, "session", error);                                  in functions that return a status
 *     TWI_NEED_OR(dataset, 0);                                        in others, with what they return instead
 *     TWI_NEED_IN(graph, outputs, "outputs", (tw_output){0});         in builders, which latch it
 *
 * Builders need nothing of the kind but where they look into a graph themselves: tw_add_node() and twi_graph_fail()
 * take none, and no graph has failed (tw_graph_status). */
#define TWI_NEED(given, name, error)                                                                                   \
    do {                                                                                                               \
        if (!(given))                                                                                                  \
            return twi_fail(error, TW_INVALID_ARGUMENT, "%s: %s is NULL", __func__, name);                             \
    } while (0)
#define TWI_NEED_OR(given, instead)                                                                                    \
    do {                                                                                                               \
        if (!(given))                                                                                                  \
            return instead;                                                                                            \
    } while (0)
#define TWI_NEED_IN(graph, given, name, instead)                                                                       \
    do {                                                                                                               \
        if (!(given)) {                                                                                                \
            tw_graph_fail(graph, TW_INVALID_ARGUMENT, "%s: %s is NULL", __func__, name);                               \
            return instead;                                                                                            \
        }                                                                                                              \
    } while (0)

/* In a function with a local `tw_status status` and a label `done` that cleans up. */
#define TWI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != TW_OK)                                                                                           \
            goto done;                                                                                                 \
    } while (0)

/* There, a failure of one's own: TWI_LEAVE(twi_fail(...)). */
#define TWI_LEAVE(failure)                                                                                             \
    do {                                                                                                               \
        status = (failure);                                                                                            \
        goto done;                                                                                                     \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
