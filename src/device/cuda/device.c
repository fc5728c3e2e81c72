/* device.c - a card as a device: its memory, its stream, copies to and from it.
 * Lives here:  the context, opened by the first call that needs one; staging for copies with the host; launching.
 * Never here:  listing (driver.c), kernels.
 *
 * All work of a device goes to one stream, so it happens in the order in which it was handed over, and no call but
 * read() and synchronize() waits for it. Two devices meet at events: see card_copy_from(). */
#define _GNU_SOURCE /* pthread_setname_np */
#include "device/cuda/cuda.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "device/cuda/choice.h"
#include "device/cuda/libraries.h" /* closing handles */

#include <stdio.h>
#include <string.h>

/* ---- failures -------------------------------------------------------------------------------------------------- */

tw_status twi_cuda_fail(tw_error *error, const twi_device *d, const char *call, const char *where, cudaError_t code)
{
    cudaGetLastError(); /* what can be forgotten shall not fail the next call, too */
    bool ours = strncmp(call, "twi_", 4) == 0; /* a launcher of a .cu file */
    return twi_fail(error, code == cudaErrorMemoryAllocation ? TW_RESOURCE_EXHAUSTED : TW_INTERNAL,
                    "%s%s%s%.*s: %s (%s)", d ? d->text : "", d ? ": " : "", ours ? "launching " : "",
                    (int)strcspn(call, "("), call, cudaGetErrorString(code), where);
}

tw_status twi_cuda_launched(const twi_run *r, const char *call, const char *where, cudaError_t code)
{
    return code == cudaSuccess ? TW_OK : twi_cuda_fail(r->error, NULL, call, where, code);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void close_card(twi_cuda_device *c)
{
    twi_cublas_close(c);
    twi_cudnn_close(c);
    for (int i = 0; i < TWI_CUDA_STAGES; i++) {
        if (c->staged[i])
            cudaEventDestroy(c->staged[i]);
        if (c->stages[i])
            cudaFreeHost(c->stages[i]);
        c->staged[i] = NULL;
        c->stages[i] = NULL;
    }
    if (c->counters)
        cudaFree(c->counters);
    if (c->fence)
        cudaEventDestroy(c->fence);
    if (c->stream)
        cudaStreamDestroy(c->stream);
    if (c->recorder)
        cudaStreamDestroy(c->recorder);
    c->counters = NULL;
    c->fence = NULL;
    c->stream = c->recorder = NULL;
    twi_cuda_part_close(c);
}

static tw_status make_stream(twi_cuda_device *c, cudaStream_t *stream, tw_error *error)
{
    tw_status status = TW_OK;
    if (c->share)
        return twi_cuda_part_stream(c, stream, error);
    TWI_CALL(&c->base, error, cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
done:
    return status;
}

static tw_status open_card(twi_cuda_device *c, tw_error *error)
{
    tw_status status = TW_OK;
    twi_device *d = &c->base;
    size_t counters = (size_t)TWI_CUDA_COUNTER_RANGES * TWI_CUDA_COUNTERS * sizeof *c->counters;
    if (c->parts > 1)
        TWI_TRY(twi_cuda_part_open(c, error));
    TWI_TRY(make_stream(c, &c->stream, error));
    TWI_TRY(make_stream(c, &c->recorder, error));
    TWI_CALL(d, error, cudaEventCreateWithFlags(&c->fence, cudaEventDisableTiming));
    TWI_CALL(d, error, cudaMalloc((void **)&c->counters, counters));
    TWI_CALL(d, error, cudaMemsetAsync(c->counters, 0, counters, c->stream));
    for (int i = 0; i < TWI_CUDA_STAGES; i++) {
        TWI_CALL(d, error, cudaHostAlloc(&c->stages[i], TWI_CUDA_STAGE_BYTES, cudaHostAllocPortable));
        TWI_CALL(d, error, cudaEventCreateWithFlags(&c->staged[i], cudaEventDisableTiming));
    }
    atomic_store(&c->opened, true);
done:
    if (status != TW_OK)
        close_card(c);
    return status;
}

/* What takes a tenth of a second and can be done beside the rest of a start: libraries are opened while the card's
 * context is made, and cuBLASLt makes itself ready while cuDNN does. What fails here fails again for who needs it. */
static void *work_ahead(void *card)
{
    pthread_setname_np(pthread_self(), "tower-ahead"); /* before the first call: the played card knows it by that */
    twi_libraries_open();
    twi_cuda_matmul_begin(card);
    return NULL;
}

/* Once in a process, for the device that is opened first. */
static void begin_ahead(twi_cuda_device *c)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    tw_error error = {0};
    if (!atomic_flag_test_and_set(&begun))
        c->has_ahead = twi_thread_start(&c->ahead, "tower-ahead", NULL, 0, work_ahead, c, &error) == TW_OK;
}

tw_status twi_cuda_use(twi_device *d, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    tw_status status = TW_OK;
    if (!atomic_load(&c->opened))
        begin_ahead(c);
    TWI_CALL(d, error, cudaSetDevice(c->ordinal)); /* which makes the card's context */
    if (!atomic_load(&c->opened)) {
        pthread_mutex_lock(&c->lock);
        status = atomic_load(&c->opened) ? TW_OK : open_card(c, error);
        pthread_mutex_unlock(&c->lock);
    }
done:
    return status;
}

tw_status twi_cuda_take_counters(twi_prepare *p, unsigned **counters)
{
    twi_cuda_device *c = (twi_cuda_device *)p->device;
    tw_status status = twi_cuda_use(p->device, p->error);
    if (status == TW_OK) {
        unsigned range = atomic_fetch_add(&c->ranges_given, 1) % TWI_CUDA_COUNTER_RANGES;
        *counters = c->counters + (size_t)range * TWI_CUDA_COUNTERS;
        p->touches = *counters;
    }
    return status;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static tw_status card_alloc(twi_device *d, size_t bytes, void **memory, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    tw_status status;
    void *start = NULL;
    TWI_TRY(twi_cuda_use(d, error));
    TWI_CALL(d, error, cudaMalloc(&start, bytes ? bytes : 1)); /* nothing has an address, too */
    TWI_CALL(d, error, cudaMemsetAsync(start, 0, bytes, c->stream));
    *memory = start;
    return TW_OK;
done:
    if (start)
        cudaFree(start);
    return status;
}

static void card_free(twi_device *d, void *memory, size_t bytes)
{
    (void)bytes;
    cudaSetDevice(((twi_cuda_device *)d)->ordinal);
    cudaFree(memory); /* waits for work that may still use it */
}

/* ---- copies with the host ---------------------------------------------------------------------------------------- */

static size_t part_size(size_t bytes, size_t done)
{
    return bytes - done < TWI_CUDA_STAGE_BYTES ? bytes - done : TWI_CUDA_STAGE_BYTES;
}

/* Returns when the host's bytes are on page-locked memory: the rest happens in the stream's order. */
static tw_status card_write(twi_device *d, void *to, const void *host, size_t bytes, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    tw_status status = twi_cuda_use(d, error);
    if (status != TW_OK)
        return status;
    pthread_mutex_lock(&c->lock);
    for (size_t at = 0, size; at < bytes; at += size) {
        int stage = c->next_stage;
        size = part_size(bytes, at);
        c->next_stage = (stage + 1) % TWI_CUDA_STAGES;
        TWI_CALL(d, error, cudaEventSynchronize(c->staged[stage]));
        memcpy(c->stages[stage], (const char *)host + at, size);
        TWI_CALL(d, error,
                 cudaMemcpyAsync((char *)to + at, c->stages[stage], size, cudaMemcpyHostToDevice, c->stream));
        TWI_CALL(d, error, cudaEventRecord(c->staged[stage], c->stream));
    }
done:
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* While the card fills one stage, the host empties the other. */
static tw_status card_read(twi_device *d, void *host, const void *from, size_t bytes, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    tw_status status = twi_cuda_use(d, error);
    if (status != TW_OK)
        return status;
    pthread_mutex_lock(&c->lock);
    size_t parts = (bytes + TWI_CUDA_STAGE_BYTES - 1) / TWI_CUDA_STAGE_BYTES;
    for (size_t part = 0; part < parts + (parts > 0); part++) {
        if (part < parts) {
            size_t at = part * TWI_CUDA_STAGE_BYTES;
            int stage = (int)(part % TWI_CUDA_STAGES);
            TWI_CALL(d, error, cudaEventSynchronize(c->staged[stage]));
            TWI_CALL(d, error,
                     cudaMemcpyAsync(c->stages[stage], (const char *)from + at, part_size(bytes, at),
                                     cudaMemcpyDeviceToHost, c->stream));
            TWI_CALL(d, error, cudaEventRecord(c->staged[stage], c->stream));
        }
        if (part > 0) {
            size_t at = (part - 1) * TWI_CUDA_STAGE_BYTES;
            int stage = (int)((part - 1) % TWI_CUDA_STAGES);
            TWI_CALL(d, error, cudaEventSynchronize(c->staged[stage]));
            memcpy((char *)host + at, c->stages[stage], part_size(bytes, at));
        }
    }
done:
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- copies between cards ---------------------------------------------------------------------------------------- */

tw_status twi_cuda_wait_for(twi_cuda_device *waiting, twi_cuda_device *device, tw_error *error)
{
    tw_status status = TW_OK;
    pthread_mutex_lock(&device->lock);
    TWI_CALL(&device->base, error, cudaEventRecord(device->fence, device->stream));
    TWI_CALL(&waiting->base, error, cudaStreamWaitEvent(waiting->stream, device->fence, 0));
done:
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Lets the card see the other's memory where the machine can do that; copies go through the host where it cannot. */
static tw_status meet(twi_cuda_device *c, const twi_cuda_device *other, tw_error *error)
{
    tw_status status = TW_OK;
    int can = 0;
    if (c->ordinal == other->ordinal || c->peers[other->ordinal])
        return TW_OK;
    TWI_CALL(&c->base, error, cudaDeviceCanAccessPeer(&can, c->ordinal, other->ordinal));
    if (can) {
        cudaError_t code = cudaDeviceEnablePeerAccess(other->ordinal, 0);
        if (code == cudaErrorPeerAccessAlreadyEnabled)
            cudaGetLastError();
        else if (code != cudaSuccess)
            TWI_TRY(twi_cuda_fail(error, &c->base, "cudaDeviceEnablePeerAccess", TWI_HERE, code));
    }
    c->peers[other->ordinal] = true;
done:
    return status;
}

/* On one card it is a plain copy, which may be recorded everywhere. */
static tw_status copy_on(twi_cuda_device *c, const twi_cuda_device *source, void *to, const void *from, size_t bytes,
                         cudaStream_t stream, tw_error *error)
{
    tw_status status = TW_OK;
    if (c->ordinal == source->ordinal)
        TWI_CALL(&c->base, error, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    else
        TWI_CALL(&c->base, error, cudaMemcpyPeerAsync(to, c->ordinal, from, source->ordinal, bytes, stream));
done:
    return status;
}

/* The copy is work of this card's stream. It starts when the other card has made the bytes, and the other goes on when
 * they have been read: its next kernel may write there (an update of the variable that was copied). In a recording
 * that is said by what comes after what. */
static tw_status card_copy_from(twi_device *d, void *to, twi_device *source, const void *from, size_t bytes,
                                tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d, *other = (twi_cuda_device *)source;
    tw_status status;
    TWI_TRY(twi_cuda_use(source, error));
    TWI_TRY(twi_cuda_use(d, error));
    TWI_TRY(meet(c, other, error));
    if (twi_cuda_is_recording(c))
        return copy_on(c, other, to, from, bytes, c->recorder, error);
    TWI_TRY(twi_cuda_wait_for(c, other, error));
    TWI_TRY(copy_on(c, other, to, from, bytes, c->stream, error));
    TWI_TRY(twi_cuda_wait_for(other, c, error));
done:
    return status;
}

/* Parts of a card. */
static bool card_shares_memory(const twi_device *d, const twi_device *other)
{
    return ((const twi_cuda_device *)d)->ordinal == ((const twi_cuda_device *)other)->ordinal;
}

static tw_status card_follow(twi_device *d, twi_device *other, tw_error *error)
{
    tw_status status;
    TWI_TRY(twi_cuda_use(other, error));
    TWI_TRY(twi_cuda_use(d, error));
    TWI_TRY(twi_cuda_wait_for((twi_cuda_device *)d, (twi_cuda_device *)other, error));
done:
    return status;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static tw_status card_launch(twi_device *d, const twi_kernel *kernel, const twi_run *run)
{
    tw_status status = twi_cuda_use(d, run->error);
    if (status != TW_OK)
        return status;
    twi_run own = *run;
    const twi_cuda_device *c = (twi_cuda_device *)d;
    own.stream = twi_cuda_is_recording(c) ? c->recorder : c->stream;
    status = kernel->run(&own);
    if (status != TW_OK)
        twi_prefix(run->error, "%s: %s '%s'", d->text, kernel->op, run->node);
    return status;
}

static tw_status card_synchronize(twi_device *d, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    tw_status status = TW_OK;
    if (!atomic_load(&c->opened))
        return TW_OK;
    TWI_TRY(twi_cuda_use(d, error));
    TWI_TRY(twi_nccl_finish(error));
    TWI_CALL(d, error, cudaStreamSynchronize(c->stream));
done:
    return status;
}

static void card_destroy(twi_device *d)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    if (c->has_ahead)
        pthread_join(c->ahead, NULL);
    if (atomic_load(&c->opened)) {
        cudaSetDevice(c->ordinal);
        close_card(c);
    }
    twi_answers_free(c);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->cudnn_lock);
    pthread_mutex_destroy(&c->recording);
    twi_free(c);
}

static bool card_is_linked(twi_device *d, twi_device *source)
{
    int can = 0, here = ((twi_cuda_device *)d)->ordinal, there = ((twi_cuda_device *)source)->ordinal;
    tw_status status = TW_OK;
    tw_error error = {0};
    if (here == there)
        return true;
    TWI_CALL(d, &error, cudaDeviceCanAccessPeer(&can, here, there));
done:
    if (status != TW_OK)
        twi_log(TWI_LOG_WARNING, "%s is taken not to see %s: %s", d->text, source->text, error.message);
    return can;
}

/* The library refuses two communicators on one card, and knows nothing of parts of one. */
static tw_status card_reduces(const twi_device *d, tw_error *error)
{
    const twi_cuda_device *c = (const twi_cuda_device *)d;
    if (c->parts > 1)
        return twi_fail(error, TW_INVALID_ARGUMENT, "NCCL works between whole cards, and %s is part %d of %d of one",
                        d->text, c->part + 1, c->parts);
    return TW_OK;
}

static void card_describe(const twi_device *d, tw_device_info *info)
{
    const twi_cuda_device *c = (const twi_cuda_device *)d;
    info->model = c->card.name;
    info->pci = c->card.pci;
    info->multiprocessors = c->multiprocessors;
    info->part = c->part;
    info->parts = c->parts;
}

static const twi_device_ops card_ops = {
    .type = "GPU",
    .kind = "cuda",
    .kernels = twi_cuda_kernels,
    .alloc = card_alloc,
    .free = card_free,
    .write = card_write,
    .read = card_read,
    .copy_from = card_copy_from,
    .is_linked = card_is_linked,
    .shares_memory = card_shares_memory,
    .follow = card_follow,
    .launch = card_launch,
    .synchronize = card_synchronize,
    .open_recording = twi_cuda_open_recording,
    .record = twi_cuda_record,
    .recorded = twi_cuda_recorded,
    .close_recording = twi_cuda_close_recording,
    .replay = twi_cuda_replay,
    .forget = twi_cuda_forget,
    .records_with = twi_cuda_records_with,
    .open_timeline = twi_cuda_open_timeline,
    .mark = twi_cuda_mark,
    .read_timeline = twi_cuda_read_timeline,
    .close_timeline = twi_cuda_close_timeline,
    .reduces = card_reduces,
    .describe = card_describe,
    .destroy = card_destroy,
};

twi_device *twi_cuda_device_create(int index, int number, int part, int parts, tw_error *error)
{
    twi_card card;
    if (twi_cuda_describe(index, &card, error) != TW_OK)
        return NULL;
    int multiprocessors = parts > 1 ? twi_cuda_part_size(card.multiprocessors, parts) : card.multiprocessors;
    if (multiprocessors == 0) {
        twi_fail(error, TW_INVALID_ARGUMENT, "%s has %d multiprocessors, which is too few for %d logical GPUs",
                 card.name, card.multiprocessors, parts);
        return NULL;
    }
    twi_cuda_device *c = twi_alloc(sizeof *c);
    if (!c) {
        twi_fail_memory(error, "opening a GPU");
        return NULL;
    }
    twi_device *d = &c->base;
    d->ops = &card_ops;
    d->name = (twi_device_name){.job = "localhost", .type = "GPU", .id = number};
    d->threads = 1;
    d->memory_limit = d->memory_total = card.memory / (size_t)parts;
    c->card = card;
    c->multiprocessors = multiprocessors;
    c->part = part;
    c->parts = parts > 1 ? parts : 0;
    c->ordinal = twi_cuda_ordinal(index);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->cudnn_lock, NULL);
    pthread_mutex_init(&c->recording, NULL);
    memcpy(d->name.uuid, card.uuid, sizeof d->name.uuid);
    twi_device_name_print(&d->name, d->text, sizeof d->text);
    int length = snprintf(d->description, sizeof d->description, "%.60s, %.1f GiB, %d multiprocessors, %s, %s",
                          card.name, (double)d->memory_total / (1 << 30), multiprocessors, card.uuid, card.pci);
    if (parts > 1 && length > 0 && length < (int)sizeof d->description)
        snprintf(d->description + length, sizeof d->description - (size_t)length, ", logical: part %d of %d", part + 1,
                 parts);
    return d;
}
