/* name.h - device names: the one parser, the one printer, merging and matching.
 * "/job:worker/replica:0/task:1/device:GPU:0", its parts in any order, "/gpu:0", "gpu:0", "" (nothing asked). Instead
 * of a number a GPU may be given by its UUID, "gpu:GPU-8a7e...", or the beginning of one. */
#ifndef TWI_DEVICE_NAME_H
#define TWI_DEVICE_NAME_H

#include "base/status.h"

#include <stdbool.h>

typedef struct twi_device_name {
    char job[64];  /* "" if not given */
    char type[32]; /* "CPU", "GPU"; "" if not given */
    int replica, task, id; /* -1 if not given */
    char uuid[48]; /* "" if not given, or the device has none */
} twi_device_name;

#define TWI_NO_DEVICE ((twi_device_name){.replica = -1, .task = -1, .id = -1})

/* Fails with TW_INVALID_ARGUMENT: "Malformed device specification 'X'" and what is wrong with it. */
tw_status twi_device_name_parse(const char *text, twi_device_name *name, tw_error *error);
/* Canonical: components in order, "/device:GPU:0"; "/device:GPU:*" for a type without an id. Returns text. */
char *twi_device_name_print(const twi_device_name *name, char *text, size_t size);
/* What `inner` says wins, component by component; `outer` fills the rest (nested scopes). */
twi_device_name twi_device_name_override(const twi_device_name *outer, const twi_device_name *inner);
/* Both must hold (colocation). `soft`: differing types or ids are dropped instead of failing. */
tw_status twi_device_name_merge(const twi_device_name *a, const twi_device_name *b, bool soft, twi_device_name *out,
                                tw_error *error);
/* True if every component that `spec` gives equals the device's. */
bool twi_device_name_matches(const twi_device_name *spec, const twi_device_name *device);

#endif
