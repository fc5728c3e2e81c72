/* recording.c - work written down as a CUDA graph, of one card or of several: a node for each launch, an edge where one
 * must come after another.
 *
 * Each work is captured by itself, on the recorder of its card, into the one graph; so it comes after what it is said to,
 * and after nothing else. What the end of the step waits for longest goes before the rest where both could be done. The
 * graph is launched into the stream of the card that opened it, and the streams of the others wait: all that was handed
 * to any of them before is done first, all that comes afterwards later. */
#include "device/cuda/cuda.h"

#include "base/array.h"
#include "base/log.h"
#include "device/cuda/launch.h"

#include <stdlib.h>

#if CUDART_VERSION < 13000
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#endif

typedef TWI_ARRAY(cudaGraphNode_t) nodes;

typedef struct recording {
    cudaGraph_t graph;
    cudaGraphExec_t executable;   /* NULL until it is closed */
    nodes ends;                   /* of all works, one behind the other: nodes that have ended when a work has */
    TWI_ARRAY(int) first_end;     /* of each work */
    TWI_ARRAY(twi_cuda_device *) workers; /* of each work: whose it is */
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
    twi_array_free(&r->workers);
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

/* Behind the last of a work's ends. */
static int end_of(const recording *r, int work)
{
    return work + 1 < r->first_end.count ? r->first_end.items[work + 1] : r->ends.count;
}

/* The ends of those works, each once. */
static tw_status find_ends(const recording *r, const int *works, int count, nodes *ends, tw_error *error)
{
    for (int i = 0; i < count; i++) {
        int work = works[i];
        for (int k = r->first_end.items[work]; k < end_of(r, work); k++)
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
    if (!twi_push(&r->first_end, r->ends.count) || !twi_push(&r->workers, c))
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

/* ---- what is urgent ---------------------------------------------------------------------------------------------- */

typedef struct ways {
    cudaGraphNode_t *nodes, *from, *to; /* edges lead from a node to another */
    cudaGraphEdgeData *edges;           /* a library's kernel may begin before the one in front of it has ended */
    size_t num_nodes, num_edges;
    int *before, *behind;               /* nodes on the longest way that ends at each, and that begins there */
    twi_cuda_device **workers;          /* whose each is */
} ways;

static void release_ways(ways *w)
{
    twi_free(w->nodes);
    twi_free(w->from);
    twi_free(w->to);
    twi_free(w->edges);
    twi_free(w->before);
    twi_free(w->behind);
    twi_free(w->workers);
}

static tw_status read_graph(const recording *r, const twi_device *d, ways *w, tw_error *error)
{
    tw_status status = TW_OK;
    TWI_CALL(d, error, cudaGraphGetNodes(r->graph, NULL, &w->num_nodes));
    TWI_CALL(d, error, cudaGraphGetEdges(r->graph, NULL, NULL, NULL, &w->num_edges));
    w->nodes = twi_alloc_array(w->num_nodes + 1, sizeof *w->nodes);
    w->from = twi_alloc_array(w->num_edges + 1, sizeof *w->from);
    w->to = twi_alloc_array(w->num_edges + 1, sizeof *w->to);
    w->edges = twi_alloc_array(w->num_edges + 1, sizeof *w->edges);
    w->before = twi_alloc_array(w->num_nodes + 1, sizeof *w->before);
    w->behind = twi_alloc_array(w->num_nodes + 1, sizeof *w->behind);
    w->workers = twi_alloc_array(w->num_nodes + 1, sizeof *w->workers);
    if (!w->nodes || !w->from || !w->to || !w->edges || !w->before || !w->behind || !w->workers)
        return twi_fail_memory(error, "recording");
    TWI_CALL(d, error, cudaGraphGetNodes(r->graph, w->nodes, &w->num_nodes));
    if (w->num_edges)
        TWI_CALL(d, error, cudaGraphGetEdges(r->graph, w->from, w->to, w->edges, &w->num_edges));
done:
    return status;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const cudaGraphNode_t *)a, y = (uintptr_t) * (const cudaGraphNode_t *)b;
    return (x > y) - (x < y);
}

static size_t place_of(const ways *w, cudaGraphNode_t node)
{
    const cudaGraphNode_t *found = bsearch(&node, w->nodes, w->num_nodes, sizeof *w->nodes, by_address);
    return (size_t)(found - w->nodes);
}

/* A work's ends are known to be its own, and a node that is no end is only followed by nodes of the same work. */
static void find_workers(const recording *r, ways *w)
{
    for (int work = 0; work < r->workers.count; work++)
        for (int k = r->first_end.items[work]; k < end_of(r, work); k++)
            w->workers[place_of(w, r->ends.items[k])] = r->workers.items[work];
    for (bool found = true; found;) {
        found = false;
        for (size_t i = w->num_edges; i-- > 0;) {
            twi_cuda_device **from = &w->workers[place_of(w, w->from[i])], *to = w->workers[place_of(w, w->to[i])];
            found |= !*from && to;
            *from = *from ? *from : to;
        }
    }
}

static bool grow(int *ways, size_t one, size_t next_to)
{
    bool grows = ways[one] <= ways[next_to];
    if (grows)
        ways[one] = ways[next_to] + 1;
    return grows;
}

/* A way grows with each look at all edges, until none grows any more. Returns the length of the longest of all. */
static int measure(ways *w)
{
    int longest = 0;
    qsort(w->nodes, w->num_nodes, sizeof *w->nodes, by_address);
    for (size_t i = 0; i < w->num_nodes; i++)
        w->before[i] = w->behind[i] = 1;
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < w->num_edges; i++)
            grew |= grow(w->before, place_of(w, w->to[i]), place_of(w, w->from[i]));
        for (size_t i = w->num_edges; i-- > 0;)
            grew |= grow(w->behind, place_of(w, w->from[i]), place_of(w, w->to[i]));
    }
    for (size_t i = 0; i < w->num_nodes; i++)
        longest = w->before[i] > longest ? w->before[i] : longest;
    return longest;
}

/* The more nodes a way through a kernel lacks to be the longest, the less urgent it is. Copies have no priority. Of a
 * kernel this has to be said where it runs: on its card, in its part. */
static tw_status give_priority(const ways *w, size_t i, int longest, int least, int greatest, tw_error *error)
{
    enum cudaGraphNodeType type;
    twi_cuda_device *c = w->workers[i];
    int spare = longest - (w->before[i] + w->behind[i] - 1);
    cudaKernelNodeAttrValue value = {.priority = spare < least - greatest ? greatest + spare : least};
    tw_status status = TW_OK;
    TWI_CALL(&c->base, error, cudaGraphNodeGetType(w->nodes[i], &type));
    if (type != cudaGraphNodeTypeKernel)
        return TW_OK;
    TWI_TRY(twi_cuda_use(&c->base, error));
    TWI_TRY(twi_cuda_part_enter(c, error));
    cudaError_t code = cudaGraphKernelNodeSetAttribute(w->nodes[i], cudaLaunchAttributePriority, &value);
    twi_cuda_part_leave(c);
    if (code != cudaSuccess)
        status = twi_cuda_fail(error, &c->base, "cudaGraphKernelNodeSetAttribute", TWI_HERE, code);
done:
    return status;
}

/* The first kernel that takes none is told of; the others get theirs all the same. */
static tw_status give_priorities(const ways *w, int longest, int least, int greatest, tw_error *error)
{
    tw_status first = TW_OK;
    tw_error other = {0};
    for (size_t i = 0; i < w->num_nodes; i++) {
        tw_status status = give_priority(w, i, longest, least, greatest, first == TW_OK ? error : &other);
        first = first == TW_OK ? status : first;
    }
    return first;
}

/* Numbers of priorities fall from the least to the greatest. A graph without them is as right. Where all nodes are in a
 * row there is nobody to go before. */
static void set_priorities(const recording *r, twi_device *d)
{
    tw_error error = {0};
    ways w = {0};
    int least = 0, greatest = 0;
    tw_status status;
    TWI_TRY(twi_cuda_use(d, &error));
    TWI_CALL(d, &error, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    TWI_TRY(read_graph(r, d, &w, &error));
    int longest = measure(&w);
    find_workers(r, &w);
    if ((size_t)longest < w.num_nodes)
        status = give_priorities(&w, longest, least, greatest, &error);
done:
    if (status != TW_OK)
        twi_log(TWI_LOG_WARNING, "a recording is without some priorities: %s", error.message);
    release_ways(&w);
}

tw_status twi_cuda_close_recording(twi_device *d, void *recorded, tw_error *error)
{
    recording *r = recorded;
    tw_status status;
    set_priorities(r, d); /* which goes from card to card */
    TWI_TRY(twi_cuda_use(d, error));
    TWI_CALL(d, error, cudaGraphInstantiate(&r->executable, r->graph, cudaGraphInstantiateFlagUseNodePriority));
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

/* Cards that see each other's memory should; whether they do is tried once. Parts of a card should not: a card goes
 * through a graph of several contexts in one order, in which each thing waits for those before it. */
bool twi_cuda_records_with(twi_device *d, twi_device *other)
{
    enum { NOT_TRIED, TOGETHER, APART };
    atomic_uchar *tried = &((twi_cuda_device *)d)->together[other->name.id % TWI_CUDA_MOST_DEVICES];
    tw_error error = {0};
    if (d->ops != other->ops || ((twi_cuda_device *)d)->parts > 1 || other->name.id >= TWI_CUDA_MOST_DEVICES ||
        !d->ops->is_linked(d, other) || !d->ops->is_linked(other, d))
        return false;
    if (*tried == NOT_TRIED) {
        *tried = try_together(d, other, &error) == TW_OK ? TOGETHER : APART;
        if (*tried == APART)
            twi_log(TWI_LOG_WARNING, "%s and %s record their steps apart: %s", d->text, other->text, error.message);
    }
    return *tried == TOGETHER;
}
