/* backend.h - a backend: a row that says which devices of a kind there are, and makes them.
 * Lives here:  the row, the options that devices are made from.
 * Never here:  what a device can do (device.h), opening plug-ins (plugin.h).
 *
 * The rest of the library knows no kind of device by name. Two backends are built in, the CPU and virtual GPUs; others
 * come as plug-ins. Options are names and values, so that a backend may have some that nobody else knows, and a plug-in
 * does not depend on how the public struct is laid out. */
#ifndef TWI_BACKEND_H
#define TWI_BACKEND_H

#include "device/device.h"

/* An option that a backend takes. */
typedef struct twi_backend_option {
    const char *name;        /* a member of tw_device_options, or the backend's own */
    double least, most;      /* what is checked before the backend is asked */
    const char *environment; /* the variable that has the value where 0 is given; NULL: none */
} twi_backend_option;

/* What was given: as many values as the backend has options, in their order. */
typedef struct twi_options {
    const twi_backend_option *rows;
    const double *values;
} twi_options;

/* The value of an option that the backend takes; 0: not given. Flags are 0 or 1. */
double twi_option(const twi_options *options, const char *name);

typedef struct twi_backend {
    const char *kind;                  /* "cpu", "virtual", "cuda": as its devices' */
    const char *type;                  /* "CPU", "GPU": as its devices' */
    const twi_backend_option *options; /* ended by a row without a name */
    /* How many devices there shall be. Nothing is opened or allocated on any. If there are none, *why may be one plain
     * line, valid for ever, that says why not. */
    tw_status (*enumerate)(const twi_options *options, int *count, const char **why, tw_error *error);
    /* Device `index` of these, from 0; its number in names, "/gpu:number", counts the devices of its type. Its ops'
     * destroy() frees it. NULL: see error. */
    twi_device *(*create)(const twi_options *options, int index, int number, tw_error *error);
    /* The version of the library that reduces between its devices; NULL: *about says in one plain line why not, valid
     * for ever. Optional: there is no such library. */
    const char *(*collective)(const char **about);
} twi_backend;

typedef struct twi_backends {
    const twi_backend *const *items;
    int count;
} twi_backends;

/* ---- for backends with memory of their own ----------------------------------------------------------------------- */

#define TWI_MEMORY_OPTIONS                                                                                             \
    {"gpu_memory_limit", 0, 1e30, NULL}, {"gpu_memory_fraction", 0, 1, NULL}, {"allow_growth", 0, 1, NULL}

/* What these options say, on a device with its memory_total; `hint` goes behind the message where that is not known. */
tw_status twi_limit_memory(twi_device *d, const twi_options *options, const char *hint, tw_error *error);
/* That not both a limit and a fraction are given. */
tw_status twi_check_memory(const twi_options *options, tw_error *error);

#endif
