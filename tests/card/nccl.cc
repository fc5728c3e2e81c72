/* nccl.cc - NCCL's all-reduce: communicators that do not block, groups, sums on the host. What it is asked must be what
 * the library demands: a group of all ranks, one card each, nothing while something is in progress. */
#include "inside.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nccl.h>
#include <vector>

enum { PROGRESS = 2 }; /* how often something is still in progress when it is asked about; for what hangs less than 4 */

struct ncclComm {
    int rank, ranks, ordinal;
    uint64_t id;
    int progress = PROGRESS;
    bool finalized = false;
};

struct call {
    ncclComm *comm;
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    cudaStream_t stream;
};

static std::map<uint64_t, std::vector<ncclComm *>> worlds; /* by the id's number, [ranks] */
static thread_local bool grouped;
static thread_local std::vector<call> calls;
static int inside; /* how many threads are between the begin and the end of a group */

static int hung(void)
{
    const char *rank =
        getenv("CARD_NCCL_HANGS"); /* the rank that never comes to life, from the start or at a reduction */
    return rank ? atoi(rank) : -1;
}

static bool is_at(const char *what)
{
    const char *at = getenv("CARD_NCCL_AT");
    return at && std::string(at) == what;
}

static bool hangs_at(const char *what, int rank)
{
    return hung() == rank && is_at(what);
}

/* A call that does not come back. The thread that hangs in it does not count as being inside. */
static struct {
    std::mutex lock;
    std::condition_variable moved;
    std::string call;
    long at;
    bool let_go;
} hanging;

extern "C" void card_hang_at(const char *call, long n)
{
    hanging.call = call;
    hanging.at = n;
}

extern "C" void card_let_go(void)
{
    std::lock_guard<std::mutex> guard(hanging.lock);
    hanging.let_go = true;
    hanging.moved.notify_all();
}

static void enter(const char *call)
{
    std::unique_lock<std::mutex> guard(hanging.lock);
    if (hanging.call != call || --hanging.at != 0)
        return;
    {
        std::lock_guard<std::recursive_mutex> all(card::lock);
        inside -= grouped;
    }
    card_skip(2);
    hanging.moved.wait(guard, [] { return hanging.let_go; });
    std::lock_guard<std::recursive_mutex> all(card::lock);
    inside += grouped;
}

/* First line of a call of the library. */
#define NCCL(code)                                                                                                     \
    enter(__func__);                                                                                                   \
    CALL(code)

static float sum_of(const std::vector<call> &all, size_t i)
{
    float sum = 0;
    for (const call &c : all)
        sum += ((const float *)c.from)[i];
    return sum;
}

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
    CALL(ncclSystemError) /* waits for nobody */
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t)
{
    enter(__func__);
    return "made-up error";
}

const char *ncclGetLastError(ncclComm_t)
{
    enter(__func__);
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    NCCL(ncclSystemError)
    static uint64_t last;
    *id = {};
    *(uint64_t *)id->internal = ++last;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    NCCL(ncclInternalError)
    if (grouped || inside)
        return ncclInvalidUsage;
    grouped = true;
    inside++;
    return ncclSuccess;
}

static bool is_whole(const std::vector<call> &all)
{
    for (const call &c : all)
        if (c.comm->id != all[0].comm->id || c.count != all[0].count || c.type != all[0].type)
            return false;
    return all.size() == (size_t)all[0].comm->ranks;
}

ncclResult_t ncclGroupEnd(void)
{
    enter(__func__);
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    bool failed = card::fails(__func__);
    std::vector<call> all;
    all.swap(calls);
    if (!grouped)
        return ncclInvalidUsage;
    grouped = false;
    inside--;
    if (failed)
        return ncclInternalError;
    if (all.empty())
        return ncclInProgress;
    if (!is_whole(all))
        return ncclInvalidUsage; /* the others would wait for ever */
    card::meet(all.size(), [&](size_t i) { return all[i].stream; },
               [=] {
                   std::vector<float> sums(all[0].count);
                   for (size_t i = 0; i < sums.size(); i++)
                       sums[i] = sum_of(all, i);
                   for (const call &c : all)
                       std::copy(sums.begin(), sums.end(), (float *)c.to);
               },
               all[0].comm->id);
    for (const call &c : all)
        c.comm->progress = PROGRESS;
    return ncclInProgress;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    NCCL(ncclSystemError)
    if (is_at("refusal"))
        return ncclSystemError;
    uint64_t number = *(uint64_t *)id.internal;
    int ordinal;
    cudaGetDevice(&ordinal);
    std::vector<ncclComm *> &world = worlds[number];
    if (!grouped || config->blocking != 0 || rank != (int)world.size())
        return ncclInvalidUsage;
    for (ncclComm *other : world)
        if (other->ordinal == ordinal)
            return ncclInvalidUsage; /* two ranks on one card */
    *comm = new ncclComm{rank, ranks, ordinal, number};
    world.push_back(*comm);
    card::born("communicators", 1);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    NCCL(ncclInternalError)
    *state = comm->progress > 0 ? ncclInProgress : ncclSuccess;
    if (comm->progress > 0 && hangs_at(comm->finalized ? "end" : "init", comm->rank))
        card_skip(0.25); /* when it has been asked often enough for that the others are ready */
    else if (comm->progress > 0)
        comm->progress--;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    NCCL(ncclInternalError)
    if (!grouped || comm->progress || comm->finalized || type != ncclFloat32 || op != ncclSum)
        return ncclInvalidUsage;
    if (!card::on_card(from, 4 * count) || !card::on_card(to, 4 * count))
        return ncclInvalidArgument;
    calls.push_back({comm, from, to, count, type, stream});
    return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    NCCL(ncclInternalError)
    if (!grouped || comm->progress)
        return ncclInvalidUsage;
    comm->finalized = true;
    comm->progress = PROGRESS;
    return ncclInProgress;
}

static void forget(ncclComm_t comm)
{
    std::vector<ncclComm *> &world = worlds[comm->id];
    std::erase(world, comm);
    card::born("communicators", -1);
    delete comm;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    enter(__func__);
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    bool failed = card::fails(__func__);
    if (!comm->finalized || comm->progress)
        return ncclInvalidUsage;
    forget(comm);
    return failed ? ncclInternalError : ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    enter(__func__);
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    bool failed = card::fails(__func__);
    if (inside)
        return ncclInvalidUsage; /* somebody would be left in the library */
    card::release(comm->id);
    forget(comm);
    return failed ? ncclInternalError : ncclSuccess;
}
}
