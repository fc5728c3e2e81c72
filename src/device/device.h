/* device.h - what a device is: a small table of functions and the facts a session needs.
 * Lives here:  the table, the set of devices, finding kernels.
 * Never here:  graphs, placement, threads that run plans (src/run). */
#ifndef TWI_DEVICE_H
#define TWI_DEVICE_H

#include "device/kernel.h"
#include "device/name.h" /* twi_device_name */

#include <stdatomic.h>
#include <tower/device.h>

/* A kind of device. Every call may come from any thread; of a run, what goes to a device comes from one thread at a
 * time. */
typedef struct twi_device_ops {
    const char *type;                       /* "CPU", "GPU": the type in names */
    const char *kind;                       /* "cpu", "virtual", "cuda": for people */
    const twi_kernel *const *kernels;       /* families, fastest first, ended by NULL; each ended by a row without op */
    uint64_t (*lacks)(const char *op);      /* optional: types, bits TWI_TYPE(), for which the op's kernels are hidden;
                                               NULL hides none. Called once an op, so it may take its time */

    tw_status (*alloc)(twi_device *d, size_t bytes, void **memory, tw_error *error); /* 64-byte aligned, zeroed */
    void (*free)(twi_device *d, void *memory, size_t bytes);
    /* Copies; return when the destination holds the bytes as far as the destination's next kernel can tell. */
    tw_status (*write)(twi_device *d, void *to, const void *host, size_t bytes, tw_error *error);
    tw_status (*read)(twi_device *d, void *host, const void *from, size_t bytes, tw_error *error);
    tw_status (*copy_from)(twi_device *d, void *to, twi_device *source, const void *from, size_t bytes,
                           tw_error *error); /* between two of this kind; optional: NULL goes through the host */
    bool (*is_linked)(twi_device *d, twi_device *source); /* copy_from() does not go through the host; optional: it
                                                            never does */

    /* Optional, both or none: whether kernels of d may look at what lies on the other, of this kind, where it is; and
     * what d is handed from now on comes after what the other has been handed so far. */
    bool (*shares_memory)(const twi_device *d, const twi_device *other);
    tw_status (*follow)(twi_device *d, twi_device *other, tw_error *error);

    /* Runs a prepared kernel; optional: NULL calls kernel->run(). Virtual GPUs check every address here. */
    tw_status (*launch)(twi_device *d, const twi_kernel *kernel, const twi_run *run);
    /* Whether an address lies in the device's memory, if that is out of bounds for the others; optional: NULL means
     * that nobody can tell. */
    bool (*holds)(twi_device *d, const void *memory);
    tw_status (*synchronize)(twi_device *d, tw_error *error); /* optional: all launched work is done */
    /* Optional, all or none. A recording is work that is written down instead of done, and done at once whenever it is
     * replayed: of the device that opens it, and of others that record with it. Works are numbered from 0: what the
     * calling thread hands to a device (launch(), copy_from()) between record() and recorded() is one. It comes after
     * those that are named, and beside all others. close_recording() makes it ready for replay(); forget() frees it,
     * ready or not. A recording that has failed is good for nothing else. */
    tw_status (*open_recording)(twi_device *d, void **recording, tw_error *error);
    tw_status (*record)(twi_device *d, void *recording, const int *after, int num_after, tw_error *error);
    tw_status (*recorded)(twi_device *d, void *recording, tw_error *error); /* always ends what record() has begun */
    tw_status (*close_recording)(twi_device *d, void *recording, tw_error *error);
    tw_status (*replay)(twi_device *d, void *recording, tw_error *error);
    void (*forget)(twi_device *d, void *recording);
    bool (*records_with)(twi_device *d, twi_device *other); /* their work may be in one recording; of any kind */
    /* Optional, all or none: of a device whose queue is behind the host, which tells afterwards when it did what. It
     * notes the time at which it has done what it was handed before mark(), number 0 to count - 1; in a recording, what
     * the work of it was handed, at each replay. read_timeline(), when all is done: by twi_monotonic_ns(), 0 where
     * there is no mark. */
    tw_status (*open_timeline)(twi_device *d, int count, void **timeline, tw_error *error);
    tw_status (*mark)(twi_device *d, void *timeline, int number, tw_error *error);
    tw_status (*read_timeline)(twi_device *d, void *timeline, int64_t *ns, tw_error *error);
    void (*close_timeline)(twi_device *d, void *timeline);
    /* Optional: whether the backend's library may reduce between this device and others; says why not. */
    tw_status (*reduces)(const twi_device *d, tw_error *error);
    /* Optional: adds what is known of it beyond this contract: model, pci, multiprocessors, parts. */
    void (*describe)(const twi_device *d, tw_device_info *info);
    void (*destroy)(twi_device *d);         /* frees d */
} twi_device_ops;

/* What all devices have. A backend has a struct of its own that begins with this, for what only it knows. */
struct twi_device {
    const twi_device_ops *ops;
    struct tw_devices *set;                 /* that it belongs to; NULL while it stands alone */
    const struct twi_kernel_index *kernels; /* ops->kernels by op (kernel_index.h); the set's */
    twi_device_name name;                   /* complete: job, replica, task, type, id */
    char text[128];                         /* "/job:localhost/replica:0/task:0/device:GPU:0" */
    char description[192];                  /* for people: model, memory */
    char arithmetic[96];                    /* what it computes with, where another library or processor may give
                                               other bits: the same in all tasks. "" if nothing is known */
    int threads;                            /* of its team; part of what makes devices "of one kind" */
    const int *cores;                       /* [num_cores] the dispatcher and its team are bound to; NULL: anywhere */
    int num_cores;
    size_t memory_limit;                    /* bytes; 0: none */
    size_t memory_total;                    /* bytes it has in all; 0: not known */
    bool allow_growth;                      /* arenas grow from plan to plan instead of taking all at once */
    atomic_size_t memory_used, memory_peak;
    bool is_host;                           /* its memory may be read and written by anybody on the host */
    int task;                               /* the process it is in, as comm.h numbers them; name.task: in its job */
    bool absent;                            /* another task's (tasks.h): nothing runs on it here */
    struct twi_device *stand_in;            /* of one that is absent the like one of this task, where its kernels are
                                               asked and prepared, once for all that are alike; else NULL */
};

/* A set of devices in order of creation: CPUs first, then GPUs, each type by number. */
struct tw_devices {
    twi_device **items;
    int count;
    bool guarded; /* some device can tell when others touch its memory */
    struct twi_kernel_index **indexes; /* [num_indexes], one for each list of kernels; at most `count` */
    int num_indexes;
    struct twi_comm *comm;             /* with the tasks whose devices these are; NULL: they are all of this process, or
                                          there are more tasks only in plans */
    int task, tasks;                   /* this process, and of how many: 0 and 1 if it stands alone */
    twi_device_ops *absent;            /* [count] tables of those of other tasks; NULL: there are none */
};

/* Allocation with the limit checked and the use counted; the message names the device, the limit and the need. */
tw_status twi_device_alloc(twi_device *d, size_t bytes, const char *what, void **memory, tw_error *error);
void twi_device_free(twi_device *d, void *memory, size_t bytes);
/* Between any two devices, directly or through the host: a backend knows the insides of its own devices alone. */
tw_status twi_device_copy(twi_device *to, void *destination, twi_device *from, const void *source, size_t bytes,
                          tw_error *error);

/* Whether copies from one device of a kind to another do not go through the host. */
bool twi_device_is_linked(twi_device *to, twi_device *from);

/* Whether kernels of one look at what lies on the other where it is, so that nothing has to be copied. */
bool twi_device_sees(const twi_device *d, const twi_device *other);

/* Where kernels of a device are asked and prepared. */
static inline twi_device *twi_prepares_on(twi_device *d)
{
    return d->stand_in ? d->stand_in : d;
}

/* "/device:GPU:1": the part of the name that tells the devices of a process apart. */
const char *twi_device_local_name(const twi_device *d);
/* The device of d's set that holds an address; NULL: none says so, so it is the host's. */
const twi_device *twi_device_of_memory(const twi_device *d, const void *memory);

/* True when the device has some kernel for the op with this type (twi_kernel_type()), whatever the shapes. */
bool twi_device_has_kernel(const twi_device *d, const char *op, tw_dtype type);
/* Whether there is more than a plain one. */
bool twi_device_has_fast_kernel(const twi_device *d, const char *op, tw_dtype type);
/* True when the device hides what kernels there are for the op with this type. */
bool twi_device_lacks(const twi_device *d, const char *op, tw_dtype type);
/* True when the device has a row for the op with this type that takes whatever shapes there are: no need to ask. */
bool twi_device_takes_all(const twi_device *d, const char *op, tw_dtype type, bool plain_only);
/* Whether p->device has a row that takes the node p describes: TW_OK, or TW_UNIMPLEMENTED with what the last row for op
 * and type says (also as p->refusal, alone); any other status is an error, as of a library that was asked. Given must
 * be op, node, attrs and the operands' types and shapes, with values where they are known; resources need not be there.
 * Nothing is allocated on the device, though a question that only a library can answer opens it. With plain_only rows
 * that are not named "plain" are passed over. */
tw_status twi_device_accepts(const twi_prepare *p, bool plain_only);
/* Asks the rows in turn, fastest first: the first whose accepts() and prepare() do not say TW_UNIMPLEMENTED. Fills p.
 * Where twi_device_accepts() has said yes, this does not say TW_UNIMPLEMENTED. */
tw_status twi_device_prepare(twi_device *d, twi_prepare *p, bool plain_only, const twi_kernel **kernel);

/* The CPU's kernel families (device/cpu/kernels.c). */
extern const twi_kernel *const twi_cpu_kernels[];

#endif
