/* emulate.h - lets a host's compiler read a .cu file: what a kernel sees of its place in the launch, and launching. It
 * is included before all else (-include). A thread of the host runs one block after another, so what a block shares is
 * that thread's. */
#ifndef CARD_EMULATE_H
#define CARD_EMULATE_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <functional>
#include <tuple>
#include <type_traits>

#undef __shared__
#define __shared__ static thread_local
/* Written out wherever it is called, it takes compilers minutes. */
#undef __forceinline__
#define __forceinline__ inline
#undef __launch_bounds__
#define __launch_bounds__(...)

/* The thread that runs now. */
struct card_place {
    uint3 thread, block;
    dim3 threads, blocks;
    void *shared;
};
extern "C" card_place *card_here(void);
#define threadIdx (card_here()->thread)
#define blockIdx (card_here()->block)
#define blockDim (card_here()->threads)
#define gridDim (card_here()->blocks)
#define DYNAMIC_SHARED(type, name) type *name = (type *)card_here()->shared

extern "C" void card_sync_block(void);
extern "C" float card_exchange(float value, int from);
extern "C" unsigned card_lane(void);
/* What each lane of the warp has given: of the lane's own words the first, and so on. */
enum { CARD_WORDS = 6 };
typedef uint32_t card_words[CARD_WORDS];
extern "C" const card_words *card_share(const uint32_t *own);
#define __syncthreads card_sync_block

/* Of the fences that threads come to, each sees what was written before all earlier ones; nothing else orders what
 * blocks do. */
extern "C" void card_fence(void);
#define __threadfence card_fence

static inline unsigned atomicInc(unsigned *counter, unsigned most)
{
    unsigned before = __atomic_load_n(counter, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(counter, &before, before >= most ? 0 : before + 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return before;
}

static inline void __syncwarp(void)
{
    card_exchange(0, (int)card_lane());
}

static inline float __shfl_sync(unsigned, float value, int from)
{
    return card_exchange(value, from);
}

static inline float __shfl_xor_sync(unsigned, float value, int step)
{
    return card_exchange(value, (int)card_lane() ^ step);
}

static inline float __shfl_down_sync(unsigned, float value, int step)
{
    int from = (int)card_lane() + step;
    return card_exchange(value, from < 32 ? from : (int)card_lane());
}

static inline unsigned __ballot_sync(unsigned, int chooses)
{
    const uint32_t own[CARD_WORDS] = {chooses != 0};
    const card_words *lanes = card_share(own);
    unsigned which = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        which |= lanes[lane][0] << lane;
    return which;
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

static inline float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

static inline float __fdividef(float x, float y)
{
    return x / y;
}

using std::max;
using std::min;

/* `number` tells kernels apart, as cudaFuncSetAttribute() does. */
void card_launch(const void *number, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                 std::function<void()> kernel);

template <typename... P> struct card_launcher {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    void (*kernel)(P...);
    void operator()(P... arguments) const
    {
        auto run = kernel;
        card_launch((const void *)run, grid, block, shared, stream, [=] { run(arguments...); });
    }
};

template <typename... P>
card_launcher<P...> card_launcher_of(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, void (*kernel)(P...))
{
    return {grid, block, shared, stream, kernel};
}
#define LAUNCH(blocks, threads, shared, stream, ...) card_launcher_of(blocks, threads, shared, stream, __VA_ARGS__)

#endif
