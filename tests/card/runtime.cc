/* runtime.cc - the CUDA runtime: memory, streams, events, graphs, peers. See card.h.
 *
 * A stream is a queue. It is worked off when somebody waits for it, as late as that: a host that reads too early finds
 * rubbish. Where a stream waits for an event, the event's stream is worked off up to there first. Work that waits for
 * another process is tried again until it is done. */
#include "inside.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <pthread.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

std::recursive_mutex card::lock;
thread_local cudaError_t card::last_error;

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static struct {
    long calls, fail_at;
    bool for_good;     /* all that follow fail, too */
    std::string among; /* only calls that begin so are counted */
    std::string failed, leaks;
    std::map<std::string, long> seen, born;
    std::map<std::string, double> takes;
    bool opened[64];
} counted;

static bool is_thread(const char *which)
{
    static thread_local char name[16];
    if (!name[0])
        pthread_getname_np(pthread_self(), name, sizeof name);
    return strcmp(name, which) == 0;
}

/* What the plug-in does ahead, on a thread of its own, it does at any time: no call is counted, and none works where
 * one is to fail. So whoever needs what would have been done makes the call that fails. */
static bool is_ahead(void)
{
    return is_thread("tower-ahead");
}

bool card::fails(const char *call)
{
    if (is_ahead()) {
        counted.seen[std::string(call) + " ahead"]++;
        return counted.fail_at != 0;
    }
    counted.seen[call]++;
    if (strncmp(call, counted.among.c_str(), counted.among.size()) != 0)
        return false;
    counted.calls++;
    if (!counted.fail_at || counted.calls < counted.fail_at || (counted.calls > counted.fail_at && !counted.for_good))
        return false;
    counted.seen["failure"]++;
    std::string name = call;
    if (size_t version = name.find("_v2"); version != std::string::npos)
        name.resize(version); /* cuda.h gives some calls a newer version's name */
    if (counted.calls == counted.fail_at)
        counted.failed = name;
    else if ((" " + counted.failed + " ").find(" " + name + " ") == std::string::npos)
        counted.failed += " " + name;
    return true;
}

void card::born(const char *what, int change)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    counted.born[what] += change;
}

void card::seen(const char *what)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    counted.seen[what]++;
}

extern "C" void card_fail_at(long n)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    counted.calls = 0;
    counted.fail_at = n;
    counted.for_good = false;
    counted.among = counted.failed = "";
}

extern "C" void card_fail_among(const char *calls, long n)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    card_fail_at(n);
    counted.among = calls;
}

extern "C" void card_fail_from(long n)
{
    card_fail_at(n);
    counted.for_good = true;
}

extern "C" long card_calls(void)
{
    return counted.calls;
}

extern "C" const char *card_failed(void)
{
    return counted.failed.c_str();
}

extern "C" long card_count(const char *what)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    return counted.seen[what];
}

extern "C" void card_takes(const char *what, double ms)
{
    counted.takes[what] = ms;
}

extern "C" int card_opened(int ordinal)
{
    return counted.opened[ordinal];
}

extern "C" const char *card_leaks(void)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    counted.leaks = "";
    for (auto &[what, count] : counted.born)
        if (count)
            counted.leaks += (counted.leaks.empty() ? "" : ", ") + std::to_string(count) + " " + what;
    return counted.leaks.c_str();
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

extern "C" cudaError_t cudaGetLastError(void)
{
    cudaError_t code = card::last_error;
    card::last_error = cudaSuccess;
    return code;
}

extern "C" cudaError_t cudaPeekAtLastError(void)
{
    return card::last_error;
}

extern "C" const char *cudaGetErrorString(cudaError_t code)
{
    static thread_local char text[64];
    snprintf(text, sizeof text, "made-up error %d", (int)code);
    return code == cudaErrorMemoryAllocation ? "out of memory" : text;
}

extern "C" const char *cudaGetErrorName(cudaError_t)
{
    return "cudaErrorMadeUp";
}

/* ---- cards ------------------------------------------------------------------------------------------------------- */

static thread_local int current;

static int cards(void)
{
    const char *count = getenv("CARD_COUNT");
    return count ? atoi(count) : 2;
}

extern "C" cudaError_t cudaSetDevice(int ordinal)
{
    CALL(cudaErrorInvalidDevice)
    if (ordinal < 0 || ordinal >= cards())
        return cudaErrorInvalidDevice;
    current = ordinal;
    counted.opened[ordinal] = true;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGetDevice(int *ordinal)
{
    *ordinal = current;
    return cudaSuccess;
}

/* Of shared memory a block has as much as every card gives, and more where that is asked for. */
static const int SHARED = 48 << 10, MOST_SHARED = 227 << 10;
static std::map<const void *, size_t> shared_of_kernel;

size_t card::most_shared(const void *kernel)
{
    auto asked = shared_of_kernel.find(kernel);
    return asked == shared_of_kernel.end() ? SHARED : asked->second;
}

extern "C" cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    CALL(cudaErrorUnknown)
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > MOST_SHARED)
        return cudaErrorInvalidValue;
    shared_of_kernel[kernel] = (size_t)value;
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    CALL(cudaErrorUnknown)
    *available = (size_t)15 << 30;
    *total = (size_t)16 << 30;
    return cudaSuccess;
}

extern "C" cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int other)
{
    CALL(cudaErrorUnknown)
    *can = (ordinal ^ other) == 1; /* cards are tied in pairs */
    return cudaSuccess;
}

static bool peers[64][64];

extern "C" cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned)
{
    CALL(cudaErrorUnknown)
    cudaError_t code = peers[current][other] ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
    peers[current][other] = true;
    return code;
}

/* ---- streams, events, graphs ------------------------------------------------------------------------------------- */

typedef std::function<void()> work;
typedef std::function<bool()> attempt; /* false: it cannot be done yet */

struct CUevent_st {
    CUstream_st *stream = nullptr;
    uint64_t place = 0;
    double ms = 0; /* the stream's time */
    bool timed = false;
    bool of_node = false; /* a node of a graph records it */
    std::shared_ptr<double> clock = std::make_shared<double>(0); /* when it was come to */
};

struct CUgraphNode_st {
    work item;
    CUstream_st *stream;
    std::vector<CUgraphNode_st *> after;
};

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
    double ms = 0; /* that its work takes */
};

struct CUgraphExec_st {
    std::vector<work>
        nodes; /* in an order that the edges allow, as unlike the one in which they were written as can be */
    double ms = 0;
};

struct CUstream_st {
    int ordinal;
    std::deque<attempt> queue;
    uint64_t done = 0; /* entries worked off */
    CUgraph_st *records = nullptr;
    std::vector<CUgraphNode_st *> ends; /* what the next thing that is recorded comes after */
    std::thread::id recorder;
    bool spoiled = false; /* the recording */
    double ms = 0;        /* that its work has taken */
    void *context = nullptr;
};

thread_local void *card::context;

void card::set_context(cudaStream_t stream, void *context)
{
    stream->context = context;
}

void *card::context_of(cudaStream_t stream)
{
    return stream->context;
}

static double now; /* of all cards, in ms: a thing that is done takes a nanosecond */

/* As far as it can be done now; false: that is not all. What is being done counts as done where it leads back here. */
static bool work_off(CUstream_st *s, uint64_t place)
{
    while (s->done < place && !s->queue.empty()) {
        attempt next = std::move(s->queue.front());
        s->queue.pop_front();
        s->done++;
        if (!next()) {
            s->done--;
            s->queue.push_front(std::move(next));
            return false;
        }
        now += 1e-6;
    }
    return true;
}

/* Waits, in a call of the host's; meanwhile others may call. */
static void wait_for(CUstream_st *s, uint64_t place)
{
    while (!work_off(s, place)) {
        card::lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        card::lock.lock();
    }
}

static void finish(CUstream_st *s)
{
    wait_for(s, s->done + s->queue.size());
}

static bool lazy;

extern "C" void card_be_lazy(int yes)
{
    lazy = yes;
}

static attempt once(work item)
{
    return [item = std::move(item)] { return item(), true; };
}

static void put(CUstream_st *s, attempt item)
{
    if (lazy)
        item = [] { return true; };
    s->queue.push_back(std::move(item));
}

void card::enqueue(cudaStream_t s, work item)
{
    if (lazy)
        item = [] {};
    if (!s) {
        fprintf(stderr, "work on the stream that everybody shares\n");
        abort();
    }
    if (s->records) {
        s->records->nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{std::move(item), s, s->ends}));
        s->ends = {s->records->nodes.back().get()};
    } else
        put(s, once(std::move(item)));
}

void card::spend(cudaStream_t s, const std::string &what)
{
    auto found = counted.takes.find(what);
    double *ms = s->records ? &s->records->ms : &s->ms;
    *ms += found == counted.takes.end() ? 1 : found->second;
}

bool card::idle(void)
{
    static const bool idle = getenv("CARD_IDLE");
    return idle;
}

struct meeting {
    std::vector<std::pair<CUstream_st *, uint64_t>> places;
    attempt work;
    uint64_t world;
    bool done = false, hangs;
};

static std::vector<std::weak_ptr<meeting>> meetings; /* all that may be still to come */

/* Whether it has been held; false: not yet. */
static bool hold(meeting &m)
{
    if (m.done)
        return true;
    if (m.hangs)
        return false;
    m.done = true; /* for whoever comes to it on the way */
    for (auto &[s, place] : m.places)
        m.done = work_off(s, place) && m.done;
    return m.done = m.done && m.work();
}

void card::meet(size_t count, const std::function<cudaStream_t(size_t)> &stream, std::function<bool()> work,
                uint64_t world)
{
    const char *at = getenv("CARD_NCCL_AT");
    auto m = std::make_shared<meeting>();
    m->work = std::move(work);
    m->world = world;
    m->hangs = at && std::string(at) == "reduction";
    std::erase_if(meetings, [](auto &old) { return old.expired(); });
    meetings.push_back(m);
    for (size_t i = 0; i < count; i++)
        m->places.push_back({stream(i), stream(i)->done + stream(i)->queue.size()});
    for (size_t i = 0; i < count; i++)
        put(stream(i), [m] { return hold(*m); });
}

void card::release(uint64_t world)
{
    for (auto &some : meetings)
        if (auto m = some.lock(); m && m->world == world)
            m->done = true;
}

/* Whether work of the stream waits for a reduction that never ends. */
static bool is_stuck(CUstream_st *s)
{
    for (auto &some : meetings)
        if (auto m = some.lock(); m && m->hangs && !m->done)
            for (auto &[stream, place] : m->places)
                if (stream == s && place >= s->done)
                    return true;
    return false;
}

static std::vector<CUstream_st *> streams;

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    CALL(cudaErrorUnknown)
    *stream = new CUstream_st{current};
    streams.push_back(*stream);
    card::born("streams", 1);
    return cudaSuccess;
}

/* Events and other streams may go on to wait for what a stream has done that is no more. */
extern "C" cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    static std::vector<std::unique_ptr<CUstream_st>> gone;
    std::lock_guard<std::recursive_mutex> all(card::lock);
    finish(stream);
    std::erase(streams, stream);
    gone.emplace_back(stream);
    card::born("streams", -1);
    CALL(cudaErrorUnknown)
    return cudaSuccess;
}

/* What a thread may not do while it records. */
static bool spoils(void)
{
    bool any = false;
    for (CUstream_st *s : streams)
        if (s->records && s->recorder == std::this_thread::get_id())
            any = s->spoiled = true;
    return any;
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    CALL(cudaErrorUnknown)
    if (stream->records) {
        stream->spoiled = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    finish(stream);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    CALL(cudaErrorUnknown)
    if (is_stuck(stream)) {
        card_skip(is_thread("tower-nccl") ? 0.25 : 0); /* for the one that looks whether it is too late */
        return cudaErrorNotReady;
    }
    return work_off(stream, stream->done + stream->queue.size()) ? cudaSuccess : cudaErrorNotReady;
}

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    CALL(cudaErrorUnknown)
    *event = new CUevent_st{.timed = !(flags & cudaEventDisableTiming)};
    card::born("events", 1);
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    card::born("events", -1);
    CALL(cudaErrorUnknown)
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    CALL(cudaErrorUnknown)
    if (stream->records) {
        stream->spoiled = true; /* it could be; nobody here needs it */
        return cudaErrorStreamCaptureUnsupported;
    }
    if (event->timed)
        card::enqueue(stream, [clock = event->clock] { *clock = now; });
    event->stream = stream;
    event->place = stream->done + stream->queue.size();
    event->ms = stream->ms;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    CALL(cudaErrorUnknown)
    if (!stream->records || flags != cudaEventRecordExternal)
        return cudaErrorInvalidValue;
    card::enqueue(stream, [clock = event->clock] { *clock = now; });
    event->stream = stream;
    event->of_node = true;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    CALL(cudaErrorUnknown)
    if (spoils())
        return cudaErrorStreamCaptureUnsupported;
    if (event->stream)
        wait_for(event->stream, event->place);
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    CALL(cudaErrorUnknown)
    if (!begin->timed || !end->timed || !begin->stream || !end->stream ||
        begin->stream->ordinal != end->stream->ordinal)
        return cudaErrorInvalidResourceHandle;
    *ms = (float)((begin->of_node || end->of_node ? 0 : end->ms - begin->ms) + *end->clock - *begin->clock);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    CALL(cudaErrorUnknown)
    CUstream_st *other = event->stream;
    uint64_t place = event->place;
    if (stream->records || (other && other->records)) {
        spoils();
        return cudaErrorStreamCaptureIsolation;
    }
    if (other && other != stream)
        put(stream, [=] { return work_off(other, place); });
    return cudaSuccess;
}

static bool is_node_of(CUgraph_st *graph, CUgraphNode_st *node)
{
    for (auto &other : graph->nodes)
        if (other.get() == node)
            return true;
    return false;
}

extern "C" cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned)
{
    CALL(cudaErrorUnknown)
    *graph = new CUgraph_st;
    card::born("graphs", 1);
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                     const cudaGraphNode_t *after, const cudaGraphEdgeData *,
                                                     size_t count, cudaStreamCaptureMode)
{
    CALL(cudaErrorUnknown)
    if (stream->records)
        return cudaErrorIllegalState;
    if (getenv("CARD_APART") && !graph->nodes.empty() && graph->nodes[0]->stream != stream)
        return cudaErrorInvalidValue;
    std::vector<CUgraphNode_st *> ends(after, after + count);
    for (size_t i = 0; i < count; i++)
        if (!is_node_of(graph, after[i]) || std::find(after, after + i, after[i]) != after + i)
            return cudaErrorInvalidValue;
    stream->records = graph;
    stream->ends = ends;
    stream->recorder = std::this_thread::get_id();
    stream->spoiled = false;
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                                unsigned long long *, cudaGraph_t *, const cudaGraphNode_t **ends,
                                                const cudaGraphEdgeData **, size_t *count)
{
    CALL(cudaErrorUnknown)
    *status = !stream->records  ? cudaStreamCaptureStatusNone
              : stream->spoiled ? cudaStreamCaptureStatusInvalidated
                                : cudaStreamCaptureStatusActive;
    *ends = stream->ends.data();
    *count = stream->ends.size();
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    bool failed = card::fails(__func__);
    *graph = stream->spoiled ? nullptr : stream->records;
    stream->records = nullptr;
    return failed ? cudaErrorUnknown : *graph ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}

/* Nodes on the longest way through the graph. */
static long depth_of(const CUgraph_st *graph)
{
    std::map<CUgraphNode_st *, long> depth;
    long most = 0;
    for (auto &node : graph->nodes) {
        long &own = depth[node.get()];
        for (CUgraphNode_st *before : node->after)
            own = std::max(own, depth[before]);
        most = std::max(most, ++own);
    }
    return most;
}

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    CALL(cudaErrorUnknown)
    *exec = new CUgraphExec_st;
    (*exec)->ms = graph->ms;
    card::born("executable graphs", 1);
    long depth = depth_of(graph);
    for (long i = 0; i < depth; i++)
        card::seen("depth");
    if (getenv("CARD_TELLS"))
        fprintf(stderr, "a graph of %zu nodes, %ld one behind the other\n", graph->nodes.size(), depth);
    std::map<CUgraphNode_st *, size_t> left; /* edges that lead to a node and have not been gone yet */
    std::map<CUgraphNode_st *, std::vector<CUgraphNode_st *>> users;
    std::vector<CUgraphNode_st *> ready;
    for (auto &node : graph->nodes) {
        left[node.get()] = node->after.size();
        for (CUgraphNode_st *before : node->after)
            users[before].push_back(node.get());
        if (node->after.empty())
            ready.push_back(node.get());
    }
    while (!ready.empty()) { /* the one that was written last comes first */
        CUgraphNode_st *node = ready.back();
        ready.pop_back();
        (*exec)->nodes.push_back(node->item);
        for (CUgraphNode_st *user : users[node])
            if (--left[user] == 0)
                ready.push_back(user);
    }
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    CALL(cudaErrorUnknown)
    for (size_t i = 0; nodes && i < *count && i < graph->nodes.size(); i++)
        nodes[i] = graph->nodes[i].get();
    *count = graph->nodes.size();
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    card::born("graphs", -1);
    CALL(cudaErrorUnknown)
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    card::born("executable graphs", -1);
    CALL(cudaErrorUnknown)
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    CALL(cudaErrorLaunchFailure)
    for (const work &node : exec->nodes) {
        card::seen("node");
        card::enqueue(stream, node);
    }
    stream->ms += exec->ms;
    return cudaSuccess;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct piece {
    size_t bytes;
    bool pinned; /* the host's, page-locked */
    int ordinal;
};

static std::map<const char *, piece> pieces; /* by address */

static const piece *piece_of(const void *memory, size_t bytes)
{
    const char *start = (const char *)memory;
    auto after = pieces.upper_bound(start);
    if (after == pieces.begin())
        return nullptr;
    auto &[begin, found] = *--after;
    return (size_t)(start - begin) <= found.bytes && bytes <= found.bytes - (size_t)(start - begin) ? &found : nullptr;
}

bool card::on_card(const void *memory, size_t bytes)
{
    return piece_of(memory, bytes) != nullptr;
}

static cudaError_t take(void **memory, size_t bytes, bool pinned)
{
    void *start = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!start || bytes == 0)
        return free(start), cudaErrorMemoryAllocation;
    memset(start, 0xa5, bytes);
    pieces[(char *)start] = {bytes, pinned, current};
    card::born(pinned ? "page-locked blocks" : "blocks", 1);
    *memory = start;
    return cudaSuccess;
}

static cudaError_t give_back(void *memory)
{
    auto found = pieces.find((char *)memory);
    if (!memory)
        return cudaSuccess;
    if (found == pieces.end())
        return cudaErrorInvalidValue;
    for (size_t i = 0; i < streams.size(); i++) /* others may make some meanwhile */
        finish(streams[i]);
    card::born(found->second.pinned ? "page-locked blocks" : "blocks", -1);
    pieces.erase(found);
    free(memory);
    return cudaSuccess;
}

extern "C" cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    CALL(cudaErrorMemoryAllocation)
    return spoils() ? cudaErrorStreamCaptureUnsupported : take(memory, bytes, false);
}

extern "C" cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    CALL(cudaErrorMemoryAllocation)
    return spoils() ? cudaErrorStreamCaptureUnsupported : take(memory, bytes, true);
}

extern "C" cudaError_t cudaFree(void *memory)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    cudaError_t code = give_back(memory);
    return card::fails(__func__) ? cudaErrorUnknown : code;
}

extern "C" cudaError_t cudaFreeHost(void *memory)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    cudaError_t code = give_back(memory);
    return card::fails(__func__) ? cudaErrorUnknown : code;
}

extern "C" cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    CALL(cudaErrorUnknown)
    const piece *p = piece_of(memory, bytes);
    if (!p || p->pinned)
        return cudaErrorIllegalAddress;
    card::enqueue(stream, [=] { memset(memory, value, bytes); });
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                       cudaStream_t stream)
{
    CALL(cudaErrorUnknown)
    const piece *t = piece_of(to, bytes), *f = piece_of(from, bytes);
    bool to_card = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_card = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to_card != (t && !t->pinned) || from_card != (f && !f->pinned))
        return cudaErrorIllegalAddress;
    if ((!t || !f) && stream->records) {
        stream->spoiled = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    card::enqueue(stream, [=] { memmove(to, from, bytes); });
    if (kind == cudaMemcpyDeviceToDevice)
        card::seen("copy on a card");
    if (!t || !f) /* memory that is not page-locked: done when the call returns */
        finish(stream);
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemcpyPeerAsync(void *to, int to_ordinal, const void *from, int from_ordinal, size_t bytes,
                                           cudaStream_t stream)
{
    CALL(cudaErrorUnknown)
    const piece *t = piece_of(to, bytes), *f = piece_of(from, bytes);
    if (!t || !f || t->ordinal != to_ordinal || f->ordinal != from_ordinal || t->pinned || f->pinned)
        return cudaErrorIllegalAddress;
    card::enqueue(stream, [=] { memmove(to, from, bytes); });
    return cudaSuccess;
}
