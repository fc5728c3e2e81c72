/* sized.h - structs of callers that begin with their size, as the header that the caller was compiled with has it.
 *
 *     tw_session_options options;
 *     TWI_TRY(twi_sized(&options, given, TWI_SIZE(tw_session_options, trace), error));
 *
 * What the caller's struct does not reach is zero, so a new member's zero means what was so before there was one. A
 * size of 0 stands for the first version, which ends with the member named here ("trace"): that name never changes. */
#ifndef TWI_SIZED_H
#define TWI_SIZED_H

#include "base/status.h"

#include <stddef.h>

typedef struct twi_size {
    const char *type;
    size_t first, known; /* bytes of the first version, and of ours */
} twi_size;

#define TWI_SIZE(type, last) ((twi_size){#type, offsetof(type, last) + sizeof(((type *)0)->last), sizeof(type)})

/* Copies what the caller has of a struct, whose own size becomes ours; NULL: all zero. Fails with the struct's name if
 * its size cannot be. */
tw_status twi_sized(void *into, const void *given, twi_size size, tw_error *error);

/* The same in a builder, which latches it and returns. */
#define TWI_TAKE_IN(graph, into, given, size, instead)                                                                 \
    do {                                                                                                               \
        tw_error wrong_size_ = {0};                                                                                    \
        if (twi_sized(into, given, size, &wrong_size_) != TW_OK) {                                                     \
            tw_graph_fail(graph, wrong_size_.status, "%s", wrong_size_.message);                                       \
            return instead;                                                                                            \
        }                                                                                                              \
    } while (0)

/* The other way round: fills in what the caller's struct has room for, and leaves its size as it was. */
tw_status twi_fill_sized(void *given, const void *from, twi_size size, tw_error *error);

#endif
