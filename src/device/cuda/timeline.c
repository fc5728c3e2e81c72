/* timeline.c - when a card has come where: events in its stream, or nodes of a graph that record them. Events know the
 * time between each other; what that is on the host's clock follows from one more, which the host waits for. */
#include "device/cuda/cuda.h"

#include "base/clock.h"
#include "base/memory.h"

typedef struct timeline {
    int count;
    cudaEvent_t now, *events; /* [count]; NULL: not marked yet */
} timeline;

void twi_cuda_close_timeline(twi_device *d, void *opened)
{
    timeline *t = opened;
    cudaSetDevice(((twi_cuda_device *)d)->ordinal);
    for (int i = 0; t->events && i < t->count; i++)
        if (t->events[i])
            cudaEventDestroy(t->events[i]);
    if (t->now)
        cudaEventDestroy(t->now);
    twi_free(t->events);
    twi_free(t);
}

tw_status twi_cuda_open_timeline(twi_device *d, int count, void **opened, tw_error *error)
{
    tw_status status;
    timeline *t = twi_alloc(sizeof *t);
    if (!t)
        return twi_fail_memory(error, "tracing a card");
    t->count = count;
    if (!(t->events = twi_alloc_array((size_t)count, sizeof *t->events)))
        TWI_LEAVE(twi_fail_memory(error, "tracing a card"));
    TWI_TRY(twi_cuda_use(d, error));
    TWI_CALL(d, error, cudaEventCreateWithFlags(&t->now, cudaEventDefault));
    *opened = t;
    return TW_OK;
done:
    twi_cuda_close_timeline(d, t);
    return status;
}

tw_status twi_cuda_mark(twi_device *d, void *opened, int number, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    timeline *t = opened;
    cudaEvent_t *event = &t->events[number];
    tw_status status;
    TWI_TRY(twi_cuda_use(d, error));
    if (!*event)
        TWI_CALL(d, error, cudaEventCreateWithFlags(event, cudaEventDefault));
    if (twi_cuda_is_recording(c))
        TWI_CALL(d, error, cudaEventRecordWithFlags(*event, c->recorder, cudaEventRecordExternal));
    else
        TWI_CALL(d, error, cudaEventRecord(*event, c->stream));
done:
    return status;
}

/* Lets the card come to `now`; *ns is the host's time then. The first time wakes everybody up. */
static tw_status meet(twi_cuda_device *c, const timeline *t, int64_t *ns, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < 2; i++) {
        TWI_CALL(&c->base, error, cudaEventRecord(t->now, c->stream));
        TWI_CALL(&c->base, error, cudaEventSynchronize(t->now));
        *ns = twi_monotonic_ns();
    }
done:
    return status;
}

tw_status twi_cuda_read_timeline(twi_device *d, void *opened, int64_t *ns, tw_error *error)
{
    timeline *t = opened;
    int64_t now = 0;
    tw_status status;
    TWI_TRY(twi_cuda_use(d, error));
    TWI_TRY(meet((twi_cuda_device *)d, t, &now, error));
    for (int i = 0; i < t->count; i++) {
        float ms = 0;
        if (t->events[i])
            TWI_CALL(d, error, cudaEventElapsedTime(&ms, t->events[i], t->now));
        ns[i] = t->events[i] ? now - (int64_t)((double)ms * 1e6) : 0;
    }
done:
    return status;
}
