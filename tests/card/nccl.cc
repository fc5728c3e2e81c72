/* nccl.cc - NCCL's all-reduce: communicators that do not block, groups, sums on the host. What it is asked must be what
 * the library demands: a group of all ranks of the process, one card each, nothing while something is in progress.
 *
 * Ranks meet in memory that they share, be they of one process or of several. It has no name: a number says which file
 * of which process it is, so nothing is left of it when those who have it are gone, however they end. Sums are added in
 * the order of ranks. */
#include "inside.h"

#include <atomic>
#include <csignal>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <memory>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

enum { PROGRESS = 2 }; /* how often something is still in progress when it is asked about; for what hangs less than 4 */

enum { MOST_RANKS = 16, MOST_FLOATS = 8 << 20 };

/* What a number stands for. The memory is taken where it is written to. */
struct meeting_place {
    std::atomic<int> joined; /* ranks */
    struct {
        std::atomic<uint64_t> brought, taken; /* the latest sum that it has given its part to, and has */
        size_t count;                         /* of floats that it has brought */
    } ranks[MOST_RANKS];
    float brought[MOST_RANKS][MOST_FLOATS];
};

/* The ranks of this process. */
struct world {
    meeting_place *place;
    int file; /* -1: another process's */
    uint64_t sums = 0;
    std::vector<ncclComm *> own; /* in order */

    world(meeting_place *place, int file) : place(place), file(file)
    {
    }
    ~world()
    {
        munmap(place, sizeof *place);
        if (file >= 0)
            close(file);
    }
};

struct ncclComm {
    int rank, ranks, ordinal;
    uint64_t id;
    std::shared_ptr<struct world> world;
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

/* What is in an id. */
struct number {
    int32_t process, file;
    uint64_t world;
};

static std::map<uint64_t, std::shared_ptr<world>> worlds; /* by their number */
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
    std::string call; /* or what its name begins with */
    long at;
    bool let_go, kills;
    std::string found;
} hanging;

extern "C" void card_hang_at(const char *call, long n)
{
    hanging.call = call;
    hanging.at = n;
}

extern "C" void card_die_at(const char *call, long n)
{
    card_hang_at(call, n);
    hanging.kills = true;
}

extern "C" const char *card_hung(void)
{
    return hanging.found.c_str();
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
    bool meant = !hanging.call.empty() && strncmp(call, hanging.call.c_str(), hanging.call.size()) == 0;
    if (!meant || --hanging.at != 0)
        return;
    if (hanging.kills)
        raise(SIGKILL);
    hanging.found = call;
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

/* NULL: its process is gone. */
static std::shared_ptr<world> enter_world(const number &n)
{
    std::shared_ptr<world> &found = worlds[n.world];
    if (found)
        return found;
    std::string path = "/proc/" + std::to_string(n.process) + "/fd/" + std::to_string(n.file);
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void *place = mmap(nullptr, sizeof(meeting_place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (file >= 0)
        close(file);
    if (place == MAP_FAILED)
        return nullptr;
    return found = std::make_shared<world>((meeting_place *)place, n.process == getpid() ? n.file : -1);
}

/* A sum of all ranks, as far as this process has part in it. */
struct sum {
    std::shared_ptr<struct world> world;
    std::vector<call> calls;
    uint64_t number;
    bool brought = false;
};

static bool all_have_taken(const sum &s, uint64_t number)
{
    const meeting_place *place = s.world->place;
    for (int i = 0; i < s.calls[0].comm->ranks; i++)
        if (place->ranks[i].taken < number)
            return false;
    return true;
}

static bool all_have_brought(const sum &s)
{
    const meeting_place *place = s.world->place;
    for (int i = 0; i < s.calls[0].comm->ranks; i++)
        if (place->ranks[i].brought < s.number)
            return false;
    return true;
}

static void bring(sum &s)
{
    for (const call &c : s.calls) {
        auto &own = s.world->place->ranks[c.comm->rank];
        memcpy(s.world->place->brought[c.comm->rank], c.from, c.count * sizeof(float));
        own.count = c.count;
        own.brought = s.number;
    }
    s.brought = true;
}

static void take(const sum &s)
{
    const meeting_place *place = s.world->place;
    const call &first = s.calls[0];
    std::vector<float> sums(first.count);
    for (int rank = 0; rank < first.comm->ranks; rank++) {
        if (place->ranks[rank].count != first.count) {
            fprintf(stderr, "ranks that reduce other counts than each other would wait for ever\n");
            abort();
        }
        for (size_t i = 0; i < first.count; i++)
            sums[i] += place->brought[rank][i];
    }
    for (const call &c : s.calls)
        std::copy(sums.begin(), sums.end(), (float *)c.to);
    for (const call &c : s.calls)
        s.world->place->ranks[c.comm->rank].taken = s.number;
}

/* False: others have not come yet. */
static bool add_up(sum &s)
{
    if (!s.brought && all_have_taken(s, s.number - 1))
        bring(s);
    if (!s.brought || !all_have_brought(s))
        return false;
    take(s);
    return true;
}

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
    CALL(ncclSystemError) /* waits for nobody */
    const char *given = getenv("CARD_NCCL");
    *version = given ? atoi(given) : NCCL_VERSION_CODE;
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
    int file = memfd_create("ranks of NCCL", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(meeting_place)) != 0)
        return ncclSystemError;
    *id = {};
    number n{getpid(), file, (uint64_t)getpid() << 32 | ++last};
    memcpy(id->internal, &n, sizeof n);
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
    return all.size() == all[0].comm->world->own.size() && all[0].count <= MOST_FLOATS;
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
    std::shared_ptr<world> w = all[0].comm->world;
    card::meet(all.size(), [&](size_t i) { return all[i].stream; },
               [s = sum{w, all, ++w->sums}]() mutable { return add_up(s); }, all[0].comm->id);
    for (const call &c : all)
        c.comm->progress = PROGRESS;
    return ncclInProgress;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    NCCL(ncclSystemError)
    if (is_at("refusal"))
        return ncclSystemError;
    number n;
    memcpy(&n, id.internal, sizeof n);
    int ordinal;
    cudaGetDevice(&ordinal);
    std::shared_ptr<world> w = enter_world(n);
    if (!w)
        return ncclSystemError;
    if (!grouped || config->blocking != 0 || rank < 0 || rank >= ranks || ranks > MOST_RANKS)
        return ncclInvalidUsage;
    for (ncclComm *other : w->own)
        if (other->ordinal == ordinal || other->rank >= rank)
            return ncclInvalidUsage; /* two ranks on one card */
    *comm = new ncclComm{rank, ranks, ordinal, n.world, w};
    w->own.push_back(*comm);
    w->place->joined++;
    card::born("communicators", 1);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    NCCL(ncclInternalError)
    *state = comm->progress > 0 ? ncclInProgress : ncclSuccess;
    if (comm->world->place->joined < comm->ranks)
        return ncclSuccess; /* when the others have come it goes on */
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
    std::erase(comm->world->own, comm);
    if (comm->world->own.empty())
        worlds.erase(comm->id);
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
