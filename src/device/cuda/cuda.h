/* cuda.h - what the C files of the CUDA plug-in share.
 * Lives here:  the device, calls that may fail, the lists of kernels.
 * Never here:  kernels' launchers (launch.h), which .cu files see too.
 *
 * Every call of a library of NVIDIA's goes through TWI_CALL, so that each failure names the call, the device and what
 * the library says about it. */
#ifndef TWI_CUDA_H
#define TWI_CUDA_H

#include "base/arena.h"
#include "base/map.h"
#include "device/plugin.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

enum { TWI_CUDA_STAGES = 2, TWI_CUDA_MOST_CARDS = 64, TWI_CUDA_MOST_DEVICES = 256, TWI_CUDA_COUNTERS = 1024,
       TWI_CUDA_COUNTER_RANGES = 64 };
#define TWI_CUDA_STAGE_BYTES ((size_t)4 << 20)

/* Types of what is moved, kept and cast on a card. */
#define TWI_CUDA_MOVED_TYPES                                                                                           \
    (TWI_FLOAT_TYPES | TWI_TYPE(TW_INT8) | TWI_TYPE(TW_INT16) | TWI_TYPE(TW_INT32) | TWI_TYPE(TW_INT64) |              \
     TWI_TYPE(TW_UINT8) | TWI_TYPE(TW_BOOL))

struct twi_cuda_pool; /* launch.h */
struct twi_cuda_lrn;

/* A card as the driver describes it; nothing is allocated on it to ask. */
typedef struct twi_card {
    char name[96];
    char uuid[48];             /* "GPU-8a7e...": 16 bytes in hexadecimal */
    char pci[24];              /* "0000:1b:00.0" */
    size_t memory;             /* bytes */
    int capability;            /* 90 for 9.0 */
    int multiprocessors;
    int shared;                /* bytes of shared memory that a block may have that asks for it */
    int driver;                /* the CUDA that the driver knows: 13000 for 13.0 */
} twi_card;

typedef struct twi_cuda_device {
    twi_device base;
    twi_card card;
    int multiprocessors;         /* of the device: fewer than the card's where it is a part */
    int part, parts;             /* as in tw_device_info */
    bool tf32, fast;             /* as in tw_device_options */
    double collective_timeout;   /* as in tw_device_options, in seconds */
    int ordinal;                 /* the driver's number of the card; not the device's, which goes by PCI */
    pthread_mutex_t lock;        /* guards what follows; the stream itself may be used by any thread */
    atomic_bool opened;          /* has a context, and so all below; a card nobody uses never gets one */
    struct twi_cuda_part *share; /* of a card that is divided; NULL: the whole one (part.c) */
    cudaStream_t stream, recorder; /* where work happens; where it is written down (recording.c) */
    pthread_mutex_t recording;   /* held while somebody does */
    cudaEvent_t fence;           /* recorded and waited for under the lock */
    unsigned *counters;          /* [TWI_CUDA_COUNTER_RANGES][TWI_CUDA_COUNTERS] on the card, 0 between launches
                                    (last_block.cuh) */
    atomic_uint ranges_given;    /* of counters, to kernels in turn */
    void *stages[TWI_CUDA_STAGES];       /* page-locked, TWI_CUDA_STAGE_BYTES each */
    cudaEvent_t staged[TWI_CUDA_STAGES]; /* when the card is done with each */
    int next_stage;
    twi_map answers;             /* by op and shapes: what a library takes (choice.h); keys and values in the arena */
    twi_arena answer_texts;
    bool has_ahead;              /* the thread that works ahead has been started for this device */
    pthread_t ahead;
    void *cublas, *cudnn;        /* handles; NULL until a kernel needs one (libraries.h) */
    pthread_mutex_t cudnn_lock;
    cudaStream_t cudnn_stream;   /* that cuDNN's handle works on now */
    atomic_uchar together[TWI_CUDA_MOST_DEVICES]; /* by number: who has been tried to be recorded with (recording.c) */
    bool peers[TWI_CUDA_MOST_CARDS]; /* by ordinal: whose memory this card has asked to see */
} twi_cuda_device;

/* Makes the calling thread's CUDA calls go to the card; opens it when first called. */
tw_status twi_cuda_use(twi_device *d, tw_error *error);

/* In a function with a local `tw_status status` and a label `done`: a call of the CUDA runtime. `d` may be NULL where a
 * kernel does not know its device: its launch adds it. */
#define TWI_CALL(d, error, call)                                                                                       \
    do {                                                                                                               \
        cudaError_t code_ = (call);                                                                                    \
        if (code_ != cudaSuccess) {                                                                                    \
            status = twi_cuda_fail(error, d, #call, TWI_HERE, code_);                                                  \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* "/job:localhost/.../device:GPU:0: cudaMalloc: out of memory (device.c:98)"; `call` may go on with its arguments.
 * Returns the status that fits. */
tw_status twi_cuda_fail(tw_error *error, const twi_device *d, const char *call, const char *where, cudaError_t code);
#define TWI_HERE_LINE(line) #line
#define TWI_HERE_IN(file, line) file ":" TWI_HERE_LINE(line)
#define TWI_HERE TWI_HERE_IN(__FILE_NAME__, __LINE__)

/* The run() of a kernel that is one launch: `return TWI_LAUNCH(r, twi_cuda_unary(...));` */
#define TWI_LAUNCH(r, call) twi_cuda_launched((r), #call, TWI_HERE, (call))
tw_status twi_cuda_launched(const twi_run *r, const char *call, const char *where, cudaError_t code);

/* driver.c: what the driver knows of the cards, asked without the CUDA runtime, which would open them. */
int twi_cuda_count(const char **why);
tw_status twi_cuda_describe(int index, twi_card *card, tw_error *error);
int twi_cuda_ordinal(int index);

/* part.c: a card that is divided. Streams made of a part's own have its multiprocessors and no others. */
typedef struct twi_cuda_part twi_cuda_part;
int twi_cuda_part_size(int multiprocessors, int parts); /* of each; 0: too few */
tw_status twi_cuda_part_open(twi_cuda_device *c, tw_error *error);
tw_status twi_cuda_part_stream(twi_cuda_device *c, cudaStream_t *stream, tw_error *error);
/* In between, what the calling thread makes belongs to the part's own context, and not to the card's. */
tw_status twi_cuda_part_enter(twi_cuda_device *c, tw_error *error);
void twi_cuda_part_leave(twi_cuda_device *c);
void twi_cuda_part_close(twi_cuda_device *c); /* after its streams */

/* recording.c: what devices write down as a CUDA graph. */
tw_status twi_cuda_open_recording(twi_device *d, void **recording, tw_error *error);
tw_status twi_cuda_record(twi_device *d, void *recording, const int *after, int num_after, tw_error *error);
tw_status twi_cuda_recorded(twi_device *d, void *recording, tw_error *error);
tw_status twi_cuda_close_recording(twi_device *d, void *recording, tw_error *error);
tw_status twi_cuda_replay(twi_device *d, void *recording, tw_error *error);
void twi_cuda_forget(twi_device *d, void *recording);
bool twi_cuda_records_with(twi_device *d, twi_device *other);
bool twi_cuda_is_recording(const twi_cuda_device *c); /* the calling thread writes down what it hands to the card */

/* timeline.c: when a card has come where. */
tw_status twi_cuda_open_timeline(twi_device *d, int count, void **timeline, tw_error *error);
tw_status twi_cuda_mark(twi_device *d, void *timeline, int number, tw_error *error);
tw_status twi_cuda_read_timeline(twi_device *d, void *timeline, int64_t *ns, tw_error *error);
void twi_cuda_close_timeline(twi_device *d, void *timeline);

/* matmul.c: lets cuBLASLt make ready what its first answer needs. */
void twi_cuda_matmul_begin(twi_cuda_device *c);

/* pool.c, normalization.c: what the attributes of a pool of `image`, or of a local response normalization, say. */
tw_status twi_cuda_pool_of(const twi_prepare *p, const twi_operand *image, struct twi_cuda_pool *pool);
tw_status twi_cuda_lrn_of(const twi_prepare *p, const twi_operand *image, struct twi_cuda_lrn *lrn);

/* nccl.c */
const char *twi_nccl_version(const char **about); /* of the library, opened for it, *about its file; NULL: why not */
tw_status twi_nccl_finish(tw_error *error);     /* what this thread has started of reductions has ended, well or not */

/* device.c */
/* What `waiting` is handed from now on starts after what `device` has been handed so far. */
tw_status twi_cuda_wait_for(twi_cuda_device *waiting, twi_cuda_device *device, tw_error *error);
twi_device *twi_cuda_device_create(int index, int number, int part, int parts, tw_error *error); /* as "/gpu:number" */
/* Counters for the launches of the kernel that is prepared, which then touches them: TWI_CUDA_COUNTERS, 0 before and
 * after each. Some kernels share theirs with others, and are not done beside those. */
tw_status twi_cuda_take_counters(twi_prepare *p, unsigned **counters);
static inline const twi_cuda_device *twi_cuda_of(const twi_prepare *p)
{
    return (const twi_cuda_device *)p->device;
}
extern const twi_kernel *const twi_cuda_kernels[]; /* kernels.c */

#endif
