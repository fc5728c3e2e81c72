/* recording.c - work written down as a CUDA graph, of one card or of several: a node for each launch, an edge where one
 * must come after another.
 *
 * Each work is captured by itself, on the recorder of its card, into the one graph; so it comes after what it is said
 * to, and after nothing else. The graph is launched into the stream of the card that opened it, and streams of the
 * others wait: all that was handed to any of them before is done first, all that comes afterwards later. */
#include "device/cuda/cuda.h"

#include "base/array.h"
#include "base/log.h"
#include "device/cuda/launch.h"

#if CUDART_VERSION < 13000
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#endif

typedef TWI_ARRAY(cudaGraphNode_t) nodes;

typedef struct recording {
    cudaGraph_t graph;
    cudaGraphExec_t executable;   /* NULL until it is closed */
    nodes ends;                   /* of all works, one behind the other: nodes that have ended when a work has */
    TWI_ARRAY(int) first_end;     /* of each work */
    TWI_ARRAY(twi_cuda_device *) others; /* whose work is in it, but for who opened it */
} recording;

static _Thread_local const twi_cuda_device *writing; /* what this thread hands to that card is written down */

bool twi_cuda_is_recording(const twi_cuda_device *c)
{
    return writing == c;
}

tw_status twi_cuda_open_recording(twi_device *d, void **opened, tw_error *error)
{
    tw_status status;
    recording *r = twi_alloc(sizeof *r);
    if (!r)
        return twi_fail_memory(error, "recording");
    TWI_TRY(twi_cuda_use(d, error));
    TWI_CALL(d, error, cudaGraphCreate(&r->graph, 0));
    *opened = r;
    return TW_OK;
done:
    twi_free(r);
    return status;
}

void twi_cuda_forget(twi_device *d, void *recorded)
{
    recording *r = recorded;
    cudaSetDevice(((twi_cuda_device *)d)->ordinal);
    if (r->executable)
        cudaGraphExecDestroy(r->executable);
    if (r->graph)
        cudaGraphDestroy(r->graph);
    twi_array_free(&r->ends);
    twi_array_free(&r->first_end);
    twi_array_free(&r->others);
    twi_free(r);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool add_once(nodes *all, cudaGraphNode_t node)
{
    for (int i = 0; i < all->count; i++)
        if (all->items[i] == node)
            return true;
    return twi_push(all, node);
}

/* The ends of those works, each once. */
static tw_status find_ends(const recording *r, const int *works, int count, nodes *ends, tw_error *error)
{
    for (int i = 0; i < count; i++) {
        int work = works[i], end = work + 1 < r->first_end.count ? r->first_end.items[work + 1] : r->ends.count;
        for (int k = r->first_end.items[work]; k < end; k++)
            if (!add_once(ends, r->ends.items[k]))
                return twi_fail_memory(error, "recording");
    }
    return TW_OK;
}

static tw_status note_device(recording *r, twi_cuda_device *c, tw_error *error)
{
    for (int i = 0; i < r->others.count; i++)
        if (r->others.items[i] == c)
            return TW_OK;
    return twi_push(&r->others, c) ? TW_OK : twi_fail_memory(error, "recording");
}

tw_status twi_cuda_record(twi_device *d, void *recorded, const int *after, int num_after, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    recording *r = recorded;
    nodes ends = {0};
    tw_status status;
    TWI_TRY(twi_cuda_use(d, error));
    TWI_TRY(note_device(r, c, error));
    TWI_TRY(find_ends(r, after, num_after, &ends, error));
    pthread_mutex_lock(&c->recording);
    cudaError_t code = cudaStreamBeginCaptureToGraph(c->recorder, r->graph, ends.items, NULL, (size_t)ends.count,
                                                     cudaStreamCaptureModeThreadLocal);
    if (code == cudaSuccess) {
        writing = c;
    } else {
        pthread_mutex_unlock(&c->recording);
        status = twi_cuda_fail(error, d, "cudaStreamBeginCaptureToGraph", TWI_HERE, code);
    }
done:
    twi_array_free(&ends);
    return status;
}

/* What the work that is being written has come to: the nodes that the next one of its stream would come after. */
static tw_status note_ends(recording *r, twi_cuda_device *c, tw_error *error)
{
    tw_status status = TW_OK;
    enum cudaStreamCaptureStatus state;
    const cudaGraphNode_t *ends = NULL;
    const cudaGraphEdgeData *edges = NULL;
    size_t count = 0;
    if (!twi_push(&r->first_end, r->ends.count))
        return twi_fail_memory(error, "recording");
    TWI_CALL(&c->base, error, cudaStreamGetCaptureInfo(c->recorder, &state, NULL, NULL, &ends, &edges, &count));
    for (size_t i = 0; i < count; i++)
        if (!twi_push(&r->ends, ends[i]))
            return twi_fail_memory(error, "recording");
done:
    return status;
}

tw_status twi_cuda_recorded(twi_device *d, void *recorded, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    recording *r = recorded;
    cudaGraph_t graph = NULL;
    tw_status status = note_ends(r, c, error);
    cudaError_t code = cudaStreamEndCapture(c->recorder, &graph);
    if (code != cudaSuccess && status == TW_OK)
        status = twi_cuda_fail(error, d, "cudaStreamEndCapture", TWI_HERE, code);
    writing = NULL;
    pthread_mutex_unlock(&c->recording);
    return status;
}

/* A work is a planned node's; those of libraries are as many nodes of the graph as they launch kernels, most of which
 * nobody documents. */
tw_status twi_cuda_close_recording(twi_device *d, void *recorded, tw_error *error)
{
    recording *r = recorded;
    size_t count = 0;
    tw_status status;
    TWI_TRY(twi_cuda_use(d, error));
    TWI_CALL(d, error, cudaGraphGetNodes(r->graph, NULL, &count));
    twi_log(TWI_LOG_DETAIL, "a graph on %s: %zu kernels and copies of %d planned nodes", d->text, count,
            r->first_end.count);
    TWI_CALL(d, error, cudaGraphInstantiate(&r->executable, r->graph, 0));
    cudaGraph_t graph = r->graph;
    r->graph = NULL; /* whatever becomes of it, it is not to be destroyed twice */
    TWI_CALL(d, error, cudaGraphDestroy(graph));
    for (int i = 0; i < r->others.count; i++)
        if (&r->others.items[i]->base == d)
            r->others.items[i] = r->others.items[--r->others.count];
done:
    return status;
}

/* ---- doing ------------------------------------------------------------------------------------------------------- */

tw_status twi_cuda_replay(twi_device *d, void *recorded, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    const recording *r = recorded;
    tw_status status;
    for (int i = 0; i < r->others.count; i++) {
        TWI_TRY(twi_cuda_use(&r->others.items[i]->base, error));
        TWI_TRY(twi_cuda_wait_for(c, r->others.items[i], error));
    }
    TWI_TRY(twi_cuda_use(d, error));
    TWI_CALL(d, error, cudaGraphLaunch(r->executable, c->stream));
    for (int i = 0; i < r->others.count; i++)
        TWI_TRY(twi_cuda_wait_for(r->others.items[i], c, error));
done:
    return status;
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

/* A kernel of the device's on its counters, which are 0 and stay so, into the recording. */
static tw_status write_something(twi_cuda_device *c, void *recorded, const int *after, int num_after, tw_error *error)
{
    twi_device *d = &c->base;
    tw_error last = {0};
    tw_status status = twi_cuda_record(d, recorded, after, num_after, error);
    if (status != TW_OK)
        return status;
    TWI_CALL(d, error, twi_cuda_unary_run(c->recorder, TW_INT32, TWI_CUDA_NEGATIVE, 1, c->counters, c->counters));
done:
    if (twi_cuda_recorded(d, recorded, &last) != TW_OK && status == TW_OK) {
        *error = last;
        status = last.status;
    }
    return status;
}

/* Makes a graph of a kernel on each, and launches it. */
static tw_status try_together(twi_device *d, twi_device *other, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    void *recorded = NULL;
    static const int first[] = {0};
    tw_status status;
    TWI_TRY(twi_cuda_use(other, error));
    TWI_TRY(twi_cuda_open_recording(d, &recorded, error));
    TWI_TRY(write_something(c, recorded, NULL, 0, error));
    TWI_TRY(write_something((twi_cuda_device *)other, recorded, first, 1, error));
    TWI_TRY(twi_cuda_close_recording(d, recorded, error));
    TWI_TRY(twi_cuda_replay(d, recorded, error));
    TWI_CALL(d, error, cudaStreamSynchronize(c->stream));
done:
    if (recorded)
        twi_cuda_forget(d, recorded);
    return status;
}

/* Cards that see each other's memory should; whether they do is tried once. Parts of a card should, too: with graphs of
 * their own, which meet by events, four of an H200 took 2.6 times as long. */
bool twi_cuda_records_with(twi_device *d, twi_device *other)
{
    enum { NOT_TRIED, TOGETHER, APART };
    atomic_uchar *tried = &((twi_cuda_device *)d)->together[other->name.id % TWI_CUDA_MOST_DEVICES];
    tw_error error = {0};
    if (d->ops != other->ops || other->name.id >= TWI_CUDA_MOST_DEVICES || !d->ops->is_linked(d, other) ||
        !d->ops->is_linked(other, d))
        return false;
    if (*tried == NOT_TRIED) {
        *tried = try_together(d, other, &error) == TW_OK ? TOGETHER : APART;
        if (*tried == APART)
            twi_log(TWI_LOG_WARNING, "%s and %s record their steps apart: %s", d->text, other->text, error.message);
    }
    return *tried == TOGETHER;
}
