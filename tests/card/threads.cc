/* threads.cc - a kernel's threads on the host. Each runs until it must wait for others; then the next one of its block
 * runs. A fiber that comes to its thread's end goes on with the next thread, so kernels without barriers never switch.
 * Blocks run in a random order, each time in another one, and CARD_BLOCKS of them at once, on threads of the host that
 * step aside at random where blocks may meet. */
#include "emulate.h"
#include "inside.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <ucontext.h>
#include <vector>
#if defined __SANITIZE_ADDRESS__ || defined CARD_TELLS_STACKS
#include <sanitizer/common_interface_defs.h>
#define LEAVE(save, stack, size) __sanitizer_start_switch_fiber(save, stack, size)
#define ARRIVE(save, stack, size) __sanitizer_finish_switch_fiber(save, stack, size)
#else
#define LEAVE(save, stack, size)
#define ARRIVE(save, stack, size)
#endif
/* Sanitizers would take a jump for a return from all that stands on the stack. */
#define JUMPS __attribute__((noinline, no_sanitize_address, no_sanitize_thread))

enum { STACK = 256 << 10, WARP = 32, LINE = 64, PAGE = 4096 };
enum wait { RUNS, AT_BLOCK, AT_WARP };

typedef void *spot[5]; /* where a stack goes on: __builtin_setjmp(), which asks nothing of the system */

struct fiber {
    spot left;
    bool begun = false; /* or nothing is on its stack */
    std::unique_ptr<char[]> stack{new char[STACK]};
    card_place here;
    unsigned number;  /* of the thread in its block */
    wait waits;
    int turn;         /* which of the two rooms of its warp's values comes next */
    size_t size;      /* of its stack: tops that all lay alike in their pages would share few lines of a cache */

    fiber()
    {
        static std::atomic<size_t> made;
        size = STACK - made++ * 7 * LINE % PAGE;
    }
};

/* Those that no thread of the host has. */
static struct {
    std::mutex lock;
    std::vector<std::unique_ptr<fiber>> all;

    std::unique_ptr<fiber> take()
    {
        std::lock_guard<std::mutex> guard(lock);
        if (all.empty())
            return std::make_unique<fiber>();
        std::unique_ptr<fiber> f = std::move(all.back());
        all.pop_back();
        f->begun = false;
        return f;
    }
    void give_back(std::vector<std::unique_ptr<fiber>> &some)
    {
        std::lock_guard<std::mutex> guard(lock);
        for (auto &f : some)
            all.push_back(std::move(f));
    }
} fibers;

/* A thread of the host, which runs blocks. */
struct worker {
    const std::function<void()> *kernel;
    card_place place;                /* of the block; without a thread */
    unsigned threads, next, ended;   /* of the block */
    std::vector<fiber *> idle, parked, ready;
    std::vector<unsigned> at_block;  /* of each warp: how many of its threads wait for the block */
    fiber *current;
    spot left;                       /* the scheduler */
    const void *stack;               /* the scheduler's, for the sanitizer */
    size_t stack_size;
    void *fake;
    std::unique_ptr<card_words[]> rooms[2]; /* some words a thread */
    std::vector<std::unique_ptr<fiber>> fibers;
    std::minstd_rand chance;
    bool alone;                      /* no other block runs now */

    ~worker()
    {
        ::fibers.give_back(fibers);
    }
};

static thread_local worker *block __attribute__((tls_model("initial-exec"))); /* every call of a kernel's looks at it */

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

JUMPS static void go_on(spot &to)
{
    __builtin_longjmp(to, 1);
}

static void live(void);

JUMPS static void begin(fiber *f)
{
    ucontext_t context;
    f->begun = true;
    getcontext(&context);
    context.uc_stack.ss_sp = f->stack.get();
    context.uc_stack.ss_size = f->size;
    context.uc_link = nullptr;
    makecontext(&context, live, 0);
    setcontext(&context);
}

/* Returns when somebody goes on from there. */
JUMPS static void change(spot &from, fiber *to)
{
    if (__builtin_setjmp(from))
        return;
    if (!to)
        go_on(block->left);
    if (to->begun)
        go_on(to->left);
    begin(to);
}

static void leave(fiber *f)
{
    [[maybe_unused]] void *fake = nullptr;
    LEAVE(&fake, block->stack, block->stack_size);
    change(f->left, nullptr);
    ARRIVE(fake, &block->stack, &block->stack_size);
}

static void resume(fiber *f)
{
    block->current = f;
    f->waits = RUNS;
    LEAVE(&block->fake, f->stack.get(), f->size);
    change(block->left, f);
    ARRIVE(block->fake, nullptr, nullptr);
}

/* ---- what kernels ask for ---------------------------------------------------------------------------------------- */

static void step_aside(void)
{
    if (!block->alone && block->chance() % 4 == 0)
        std::this_thread::yield();
}

extern "C" void card_fence(void)
{
    static std::atomic<unsigned> fences;
    step_aside();
    fences.fetch_add(1, std::memory_order_acq_rel);
    step_aside();
}

extern "C" card_place *card_here(void)
{
    return &block->current->here;
}

extern "C" unsigned card_lane(void)
{
    return block->current->number % WARP;
}

static void park(wait waits)
{
    fiber *f = block->current;
    f->waits = waits;
    block->parked.push_back(f);
    leave(f);
}

extern "C" void card_sync_block(void)
{
    park(AT_BLOCK);
}

static const card_words *share(const void *own, size_t bytes)
{
    fiber *f = block->current;
    card_words *room = block->rooms[f->turn].get();
    f->turn = !f->turn;
    memcpy(room[f->number], own, bytes);
    park(AT_WARP);
    return room + f->number / WARP * WARP;
}

extern "C" const card_words *card_share(const uint32_t *own)
{
    return share(own, sizeof(card_words));
}

extern "C" float card_exchange(float value, int from)
{
    const card_words *room = share(&value, sizeof value);
    memcpy(&value, room[from], sizeof value);
    return value;
}

static void live(void)
{
    ARRIVE(nullptr, &block->stack, &block->stack_size);
    for (;;) {
        fiber *f = block->current;
        while (block->next < block->threads) {
            unsigned n = f->number = block->next++;
            f->turn = 0;
            f->waits = RUNS;
            f->here = block->place;
            f->here.thread = {n % block->place.threads.x, n / block->place.threads.x % block->place.threads.y,
                              n / block->place.threads.x / block->place.threads.y};
            (*block->kernel)();
            block->ended++;
        }
        block->idle.push_back(f);
        leave(f);
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static fiber *new_fiber(void)
{
    block->fibers.push_back(fibers.take());
    return block->fibers.back().get();
}

/* Takes the threads that may go on out of those that wait: warps all of whose living threads wait for each other, or
 * the whole block. */
static void release(void)
{
    size_t left = 0, waits = block->parked.size();
    unsigned at_block = 0;
    block->at_block.assign(block->threads / WARP + 1, 0);
    for (fiber *f : block->parked)
        if (f->waits == AT_BLOCK) {
            block->at_block[f->number / WARP]++;
            at_block++;
        }
    block->ready.clear();
    for (fiber *f : block->parked)
        if (at_block == waits || !block->at_block[f->number / WARP])
            block->ready.push_back(f);
        else
            block->parked[left++] = f;
    block->parked.resize(left);
}

static void run_block(void)
{
    block->next = block->ended = 0;
    while (block->ended < block->threads) {
        if (block->next < block->threads) {
            if (block->idle.empty())
                block->idle.push_back(new_fiber());
            fiber *f = block->idle.back();
            block->idle.pop_back();
            resume(f);
            continue;
        }
        release();
        if (block->ready.empty()) {
            fprintf(stderr, "a kernel's threads wait for each other for ever\n");
            abort();
        }
        for (fiber *f : block->ready)
            resume(f);
    }
}

/* Of the launch: its blocks in the order in which they begin. */
struct launch {
    dim3 grid, threads;
    size_t shared;
    const std::function<void()> *kernel;
    std::vector<unsigned> order;
    std::atomic<size_t> begun{0};
};

/* On a thread of the host: one block after another, until all have begun. */
static void run_blocks(launch *l, unsigned seed, bool alone)
{
    std::vector<float> dynamic((l->shared + 3) / 4, NAN);
    const dim3 grid = l->grid, threads = l->threads;
    static thread_local worker own;
    block = &own;
    block->kernel = l->kernel;
    block->chance.seed(seed);
    block->alone = alone;
    block->threads = threads.x * threads.y * threads.z;
    block->place.threads = threads;
    block->place.blocks = grid;
    block->place.shared = dynamic.data();
    for (auto &room : block->rooms)
        room.reset(new card_words[block->threads + WARP]());
    for (size_t i; (i = l->begun.fetch_add(1)) < l->order.size();) {
        unsigned n = l->order[i];
        block->place.block = {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
        run_block();
    }
}

void card::run_grid(dim3 grid, dim3 threads, size_t shared, const std::function<void()> &kernel)
{
    static std::mt19937 chance(1);
    static const char *const at_once = getenv("CARD_BLOCKS");
    launch l{grid, threads, shared, &kernel, std::vector<unsigned>((size_t)grid.x * grid.y * grid.z)};
    for (size_t i = 0; i < l.order.size(); i++)
        l.order[i] = (unsigned)i;
    std::shuffle(l.order.begin(), l.order.end(), chance);
    size_t others = std::min(l.order.size(), (size_t)(at_once ? atoi(at_once) : 1)) - 1;
    std::vector<std::thread> helpers;
    for (size_t i = 0; i < others; i++)
        helpers.emplace_back(run_blocks, &l, (unsigned)chance(), false);
    run_blocks(&l, (unsigned)chance(), others == 0);
    for (std::thread &helper : helpers)
        helper.join();
}

void card_launch(const void *number, dim3 grid, dim3 threads, size_t shared, cudaStream_t stream,
                 std::function<void()> kernel)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    bool fits = grid.x > 0 && grid.y > 0 && grid.y < 65536 && grid.z < 65536 && threads.x * threads.y * threads.z > 0 &&
                threads.x * threads.y * threads.z <= 1024 && shared <= card::most_shared(number);
    if (card::fails("launching"))
        card::last_error = cudaErrorLaunchFailure;
    else if (!fits)
        card::last_error = cudaErrorInvalidConfiguration;
    else {
        card::seen("kernel");
        card::enqueue(stream, [=] {
            if (!card::idle())
                card::run_grid(grid, threads, shared, kernel);
        });
    }
}
