/* kernel.h - what computes: one row says which op, on which types, and the two halves.
 *
 * prepare() sees shapes, attributes and the device and does all that may be slow: choosing algorithms, building library
 * primitives, sizing scratch. run() gets pointers and may not allocate, look anything up or fail for any reason but the
 * data.
 *
 * A list goes from the fastest kernel for an op and type to one that takes whatever any of them takes: on a CPU the
 * plain C loop. Who does not take a node says TW_UNIMPLEMENTED, and the next row is asked. Rows before the last may say
 * so in prepare(), where only trying tells. The last says so in accepts(), which is asked before a node is placed: what
 * it accepts is not refused any more.
 *
 * Strings live on the host alone. Their buffers are arrays of tw_string, each output's own: empty at first, never
 * shared or used for anything else, freed with the plan. A kernel puts a value in with twi_string_set(), the one thing
 * that run() may allocate.
 *
 * Where an op's row says TWI_MAKES_SHAPE (graph/op.h), an output may have a shape that is found while the kernel runs:
 * its operand has -1 elements, and run() makes the tensor with twi_make_output(). Nobody reads it in the same plan;
 * such kernels are the host's.
 *
 * A kernel knows tensors, attributes and its device, and no graph. */
#ifndef TWI_KERNEL_H
#define TWI_KERNEL_H

#include "base/status.h"
#include "tensor/attr.h"

#include <stdatomic.h>

typedef struct twi_device twi_device;

/* State that lives longer than a step: a variable's buffer, a random stream, a data pipeline. The session's resource
 * table owns them; kernels reach them through an operand. */
typedef struct twi_resource {
    const char *name;
    tw_dtype dtype;         /* of a variable */
    tw_shape shape;
    twi_device *device;     /* where a variable lies; NULL: this is none */
    void *memory;           /* a variable's buffer, fixed once it is there; before the first run of a plan that uses it,
                               it may be NULL */
    struct twi_resource *before; /* of a variable that has another shape now: what it was before */
    atomic_bool left;       /* it is such a one: no plan that was made for it may begin any more */
    int64_t left_at;        /* by the table's clock */
    atomic_bool initialized; /* a variable has its value */
    int64_t counters[4];    /* of a stream of random numbers or data: where it stands. Checkpoints keep them, and a */
    int num_counters;       /* restored stream goes on from there; 0: a stream that has not begun, or none at all */
    atomic_bool counting;   /* somebody is at the counters: runs of several lanes draw from one stream */
    void *object;           /* of other resources (pipelines, queues) */
    void (*destroy)(void *object);
    void (*wake)(void *object); /* of a resource that run() may wait for: lets all who wait look at their run's `ending`.
                               Any thread may call; a queue takes its lock and broadcasts. NULL: nobody waits for it */
    struct twi_resource *next;
} twi_resource;

/* Finds or makes a resource by name while a kernel is prepared; NULL when out of memory. New ones are zeroed. The
 * session's (resources.c) stands behind it. */
typedef struct twi_resources {
    twi_resource *(*get)(struct twi_resources *self, const char *name);
} twi_resources;

/* The object behind an input source (tw_session_set_source). */
typedef struct twi_source {
    tw_status (*fill)(void *user, int tower, void *const *outputs, tw_error *error);
    void *user;
} twi_source;

/* An input or output as prepare() and run() see it. */
typedef struct twi_operand {
    tw_dtype dtype;              /* TW_RESOURCE: see resource */
    tw_shape shape;              /* fully known, but of an output that run() makes */
    int64_t elements;            /* -1: run() makes it */
    size_t bytes;
    const tw_tensor *value;      /* of an input that is constant and whose value is known on the host; else NULL */
    twi_resource *resource;      /* what a TW_RESOURCE input refers to: run() gets its memory as the pointer */
} twi_operand;

/* Elements of string outputs are tw_string. Their memory starts as zeros and keeps what the last run left there: free
 * the old data with twi_free() before writing a new twi_resize()d one; the plan frees the last. */

typedef struct twi_prepare {
    /* given */
    const char *op, *node;       /* names, for messages */
    const twi_attrs *attrs;
    const char *roles;           /* what each input is to the op, a letter each, as its row has it (graph/op.h); NULL: all
                                    are values */
    int num_inputs, num_outputs;
    const twi_operand *inputs;
    const twi_operand *outputs;
    twi_device *device;
    int threads;                 /* size of the team run() may use; 1 means no parallel region at all */
    twi_resources *resources;    /* NULL while folding constants */
    struct twi_comm *comm;       /* with the tasks that prepare the same at this moment; NULL: nobody does */
    tw_error *error;
    tw_error *refusal;           /* gets what the last row asked says, if all refuse; NULL: nobody wants it */
    /* filled in */
    void *state;                 /* given to run() and release(); if prepare() fails, to release() at once */
    size_t workspace;            /* bytes of scratch run() gets, aligned to 64; contents are lost between runs */
    bool can_overwrite[4];       /* input i may share its buffer with output 0 (the planner does so when i dies here
                                    and both have the same size); false by default */
    const void *touches;         /* what run() changes besides its operands and the workspace, by any address of it: two
                                    that touch the same are never done side by side; NULL: nothing */
    bool own_team;               /* run() works on threads of a library's own, of which a device has enough once */
    bool varies;                 /* run() looks at something of the host that changes from run to run (where a random
                                    stream stands), so that it cannot be recorded and replayed */
} twi_prepare;

/* Makes a copy of what prepare() has found out the state; the row's release() is twi_free(). */
tw_status twi_keep(twi_prepare *p, const void *state, size_t size);
/* Lets a size, as of the workspace, grow by so many bytes, up to a multiple of 64; returns where they begin. */
size_t twi_make_room(size_t *size, size_t bytes);

typedef struct twi_run {
    void *state;
    const void *const *inputs;   /* device pointers, 64-byte aligned */
    void *const *outputs;
    void *workspace;
    const twi_operand *input_operands;
    const twi_operand *output_operands;
    int num_inputs, num_outputs;
    int threads;
    const atomic_bool *ending;   /* the run is to end early, because a step failed or the session was cancelled: who
                                    waits in run() looks before each wait, and returns TW_CANCELLED */
    void *stream;                /* where a device with a queue of its own wants the work; NULL: here and now */
    const char *node;            /* for messages */
    tw_error *error;
} twi_run;

/* What who waits in run() looks at. Without a session nobody ends it. */
static inline bool twi_run_is_ending(const twi_run *r)
{
    return r->ending && atomic_load(r->ending);
}

/* Where output i of that shape is to be written, for all outputs alike: its memory in the plan, or a new tensor where
 * the shape was not known. Fails if the memory has another shape, or there is none. */
tw_status twi_make_output(const twi_run *r, int i, tw_shape shape, void **data);

typedef struct twi_kernel {
    const char *op;
    const char *name;            /* "onednn", "plain": shown by --verbose and in traces */
    uint64_t types;              /* accepted values of attribute dtype (or T), bits 1 << tw_dtype; 0: any */
    tw_status (*prepare)(twi_prepare *p);      /* NULL: nothing to prepare */
    tw_status (*run)(const twi_run *r);        /* NULL: output 0 is input 0, its buffer is shared (Reshape) */
    void (*release)(void *state);              /* NULL: nothing to free */
    /* Whether the row takes the node; NULL: all that `types` does. Cheap, and without memory of the device. Sees what
     * is given to prepare(), but for resources (operands' and the table), which may be NULL. TW_UNIMPLEMENTED says no,
     * with the reason in p->error; any other status is an error, and asking ends with it. */
    tw_status (*accepts)(const twi_prepare *p);
    /* The state depends on nothing but op, attributes, types, shapes, threads and device (no value, resource or name),
     * and no run() finds in it what another left: steps of one list whose nodes are alike may have one state. Worth
     * saying where prepare() is slow. */
    bool shares;
} twi_kernel;

#define TWI_TYPE(dtype) (UINT64_C(1) << (dtype))
#define TWI_FLOAT_TYPES (TWI_TYPE(TW_FLOAT16) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64))
#define TWI_UNSIGNED_TYPES (TWI_TYPE(TW_UINT8) | TWI_TYPE(TW_UINT16) | TWI_TYPE(TW_UINT32) | TWI_TYPE(TW_UINT64))
#define TWI_INT_TYPES                                                                                                  \
    (TWI_TYPE(TW_INT8) | TWI_TYPE(TW_INT16) | TWI_TYPE(TW_INT32) | TWI_TYPE(TW_INT64) | TWI_UNSIGNED_TYPES)
#define TWI_NUMBER_TYPES (TWI_FLOAT_TYPES | TWI_INT_TYPES) /* real ones */
#define TWI_COMPLEX_TYPES (TWI_TYPE(TW_COMPLEX64) | TWI_TYPE(TW_COMPLEX128))
#define TWI_QUANTIZED_TYPES                                                                                            \
    (TWI_TYPE(TW_QINT8) | TWI_TYPE(TW_QUINT8) | TWI_TYPE(TW_QINT16) | TWI_TYPE(TW_QUINT16) | TWI_TYPE(TW_QINT32))
#define TWI_STORED_TYPES                                                                                               \
    (TWI_NUMBER_TYPES | TWI_COMPLEX_TYPES | TWI_QUANTIZED_TYPES | TWI_TYPE(TW_BOOL)) /* of elements of fixed size */

/* The attribute whose type a kernel row's mask is compared with: dtype, else T, else the first of a type; NULL: none.
 * And that type. */
const twi_attr *twi_kernel_attr(const twi_attrs *attrs);
tw_dtype twi_kernel_type(const twi_attrs *attrs);

#endif
