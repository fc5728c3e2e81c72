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
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define LEAVE(save, stack, size) __sanitizer_start_switch_fiber(save, stack, size)
#define ARRIVE(save, stack, size) __sanitizer_finish_switch_fiber(save, stack, size)
#else
#define LEAVE(save, stack, size)
#define ARRIVE(save, stack, size)
#endif

enum { STACK = 256 << 10, WARP = 32 };
enum wait { RUNS, AT_BLOCK, AT_WARP };

struct fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    card_place here;
    unsigned number;  /* of the thread in its block */
    wait waits;
    int turn;         /* which of the two rooms of its warp's values comes next */
};

static thread_local struct {
    const std::function<void()> *kernel;
    card_place place;                /* of the block; without a thread */
    unsigned threads, next, ended;   /* of the block */
    std::vector<fiber *> idle, parked;
    fiber *current;
    ucontext_t scheduler;
    const void *stack;               /* the scheduler's, for the sanitizer */
    size_t stack_size;
    void *fake;
    std::unique_ptr<card_words[]> rooms[2]; /* some words a thread */
    std::vector<std::unique_ptr<fiber>> fibers;
    std::minstd_rand chance;
    bool alone;                      /* no other block runs now */
} block __attribute__((tls_model("initial-exec"))); /* looked at by every call of a kernel's */

static void step_aside(void)
{
    if (!block.alone && block.chance() % 4 == 0)
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
    return &block.current->here;
}

extern "C" unsigned card_lane(void)
{
    return block.current->number % WARP;
}

static void park(wait waits)
{
    fiber *f = block.current;
    [[maybe_unused]] void *fake = nullptr;
    f->waits = waits;
    block.parked.push_back(f);
    LEAVE(&fake, block.stack, block.stack_size);
    swapcontext(&f->context, &block.scheduler);
    ARRIVE(fake, &block.stack, &block.stack_size);
}

extern "C" void card_sync_block(void)
{
    park(AT_BLOCK);
}

static const card_words *share(const void *own, size_t bytes)
{
    fiber *f = block.current;
    card_words *room = block.rooms[f->turn].get();
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
    ARRIVE(nullptr, &block.stack, &block.stack_size);
    for (;;) {
        fiber *f = block.current;
        while (block.next < block.threads) {
            unsigned n = f->number = block.next++;
            f->turn = 0;
            f->waits = RUNS;
            f->here = block.place;
            f->here.thread = {n % block.place.threads.x, n / block.place.threads.x % block.place.threads.y,
                              n / block.place.threads.x / block.place.threads.y};
            (*block.kernel)();
            block.ended++;
        }
        [[maybe_unused]] void *fake = nullptr;
        block.idle.push_back(f);
        LEAVE(&fake, block.stack, block.stack_size);
        swapcontext(&f->context, &block.scheduler);
        ARRIVE(fake, &block.stack, &block.stack_size);
    }
}

static void resume(fiber *f)
{
    block.current = f;
    f->waits = RUNS;
    LEAVE(&block.fake, f->stack.get(), STACK);
    swapcontext(&block.scheduler, &f->context);
    ARRIVE(block.fake, nullptr, nullptr);
}

/* Those that no thread of the host has; it gives them back, and begins anew with those it takes. */
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
        return f;
    }
    void give_back(std::vector<std::unique_ptr<fiber>> &some)
    {
        std::lock_guard<std::mutex> guard(lock);
        for (auto &f : some)
            all.push_back(std::move(f));
        some.clear();
    }
} fibers;

static fiber *new_fiber(void)
{
    block.fibers.push_back(fibers.take());
    fiber *f = block.fibers.back().get();
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack.get();
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = nullptr;
    makecontext(&f->context, live, 0);
    f->context.uc_stack.ss_size = 0; /* or the address sanitizer cleans what it knows of the stack at each switch */
    return f;
}

/* Threads that may go on: a warp all of whose living threads wait for each other, or the whole block. */
static std::vector<fiber *> released(void)
{
    std::vector<fiber *> out, rest;
    std::vector<bool> blocked(block.threads / WARP + 1);
    bool any_warp = false;
    for (fiber *f : block.parked) {
        any_warp = any_warp || f->waits == AT_WARP;
        if (f->waits == AT_BLOCK)
            blocked[f->number / WARP] = true;
    }
    for (fiber *f : block.parked)
        (!any_warp || !blocked[f->number / WARP] ? out : rest).push_back(f);
    block.parked.swap(rest);
    return out;
}

static void run_block(void)
{
    block.next = block.ended = 0;
    std::vector<fiber *> ready;
    while (block.ended < block.threads) {
        if (block.next < block.threads) {
            if (block.idle.empty())
                block.idle.push_back(new_fiber());
            fiber *f = block.idle.back();
            block.idle.pop_back();
            resume(f);
            continue;
        }
        ready = released();
        if (ready.empty()) {
            fprintf(stderr, "a kernel's threads wait for each other for ever\n");
            abort();
        }
        for (fiber *f : ready)
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
    block.kernel = l->kernel;
    block.chance.seed(seed);
    block.alone = alone;
    block.threads = threads.x * threads.y * threads.z;
    block.place.threads = threads;
    block.place.blocks = grid;
    block.place.shared = dynamic.data();
    for (auto &room : block.rooms)
        room.reset(new card_words[block.threads + WARP]());
    for (size_t i; (i = l->begun.fetch_add(1)) < l->order.size();) {
        unsigned n = l->order[i];
        block.place.block = {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
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
        helpers.emplace_back([&l, seed = (unsigned)chance()] {
            run_blocks(&l, seed, false);
            fibers.give_back(block.fibers);
        });
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
