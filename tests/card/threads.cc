/* threads.cc - a kernel's threads on the host. Each runs until it must wait for others; then the next one runs. A fiber
 * that comes to its thread's end goes on with the next thread, so kernels without barriers never switch. */
#include "emulate.h"
#include "inside.h"

#include <cstdio>
#include <cstdlib>
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
    std::vector<char> stack = std::vector<char>(STACK);
    card_place here;
    unsigned number;  /* of the thread in its block */
    wait waits;
    int turn;         /* which of the two rooms of its warp's values comes next */
};

static struct {
    const std::function<void()> *kernel;
    card_place place;                /* of the block; without a thread */
    unsigned threads, next, ended;   /* of the block */
    std::vector<fiber *> idle, parked;
    fiber *current;
    ucontext_t scheduler;
    const void *stack;               /* the scheduler's, for the sanitizer */
    size_t stack_size;
    void *fake;
    std::vector<float> rooms[2];     /* a value a thread */
} block;

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

extern "C" float card_exchange(float value, int from)
{
    fiber *f = block.current;
    std::vector<float> &room = block.rooms[f->turn];
    unsigned first = f->number / WARP * WARP;
    f->turn = !f->turn;
    room[f->number] = value;
    park(AT_WARP);
    return room[first + (unsigned)from];
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
    LEAVE(&block.fake, f->stack.data(), f->stack.size());
    swapcontext(&block.scheduler, &f->context);
    ARRIVE(block.fake, nullptr, nullptr);
}

static fiber *new_fiber(void)
{
    fiber *f = new fiber;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack.data();
    f->context.uc_stack.ss_size = f->stack.size();
    f->context.uc_link = nullptr;
    makecontext(&f->context, live, 0);
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

void card::run_grid(dim3 grid, dim3 threads, size_t shared, const std::function<void()> &kernel)
{
    std::vector<float> dynamic((shared + 3) / 4, NAN);
    block.kernel = &kernel;
    block.threads = threads.x * threads.y * threads.z;
    block.place.threads = threads;
    block.place.blocks = grid;
    block.place.shared = dynamic.data();
    block.rooms[0].assign(block.threads + WARP, 0);
    block.rooms[1].assign(block.threads + WARP, 0);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                block.place.block = {x, y, z};
                run_block();
            }
}

void card_launch(dim3 grid, dim3 threads, size_t shared, cudaStream_t stream,
                                                        std::function<void()> kernel)
{
    std::lock_guard<std::recursive_mutex> guard(card::lock);
    bool fits = grid.x > 0 && grid.y > 0 && grid.y < 65536 && grid.z < 65536 && threads.x * threads.y * threads.z > 0 &&
                threads.x * threads.y * threads.z <= 1024 && shared <= 48 << 10;
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
