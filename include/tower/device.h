/* device.h - the devices of this machine and of a session.
 *
 * Names are TensorFlow's: "/job:localhost/replica:0/task:0/device:GPU:0" in full, "/gpu:0" and "/cpu:0" for short.
 * Listing devices allocates nothing on them. */
#ifndef TOWER_DEVICE_H
#define TOWER_DEVICE_H

#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_devices tw_devices;

/* Which devices there shall be. Zero values are sensible. */
typedef struct tw_device_options {
    int cpu_devices;         /* CPU devices that divide the usable cores among them; 0: one with all cores */
    int cpu_threads;         /* team of each CPU device; 0: its share of the cores. Part of what decides bits */
    int virtual_gpus;        /* GPUs that run on the CPU with their own memory; 0: environment TOWER_VIRTUAL_GPUS, else none */
    size_t gpu_memory_limit; /* bytes for each GPU; 0: none (virtual) or what the plan needs (real) */
    bool no_gpus;            /* leave real GPUs alone */
} tw_device_options;

/* Opens devices. Yours: tw_devices_destroy(), after the sessions that use them. options NULL: all zero. */
TW_API tw_status tw_devices_create(const tw_device_options *options, tw_devices **devices, tw_error *error);
TW_API void tw_devices_destroy(tw_devices *devices); /* NULL is fine */

TW_API int tw_devices_count(const tw_devices *devices, const char *type); /* "CPU", "GPU" or NULL for all */

typedef struct tw_device_info {
    const char *name;        /* full; borrowed from the set */
    const char *type;        /* "CPU", "GPU" */
    const char *kind;        /* "cpu", "virtual", "cuda" */
    const char *description; /* for people */
    int threads;
    size_t memory_limit, memory_used, memory_peak; /* bytes; limit 0: none */
} tw_device_info;

/* About device i, from 0: CPU devices first. All empty beyond the last. */
TW_API tw_device_info tw_devices_info(const tw_devices *devices, int i);

/* Why there is no real GPU, in one plain line; "" if there is one. Borrowed, valid for ever. */
TW_API const char *tw_devices_why_no_gpu(void);

#ifdef __cplusplus
}
#endif
#endif
