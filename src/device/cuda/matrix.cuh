/* matrix.cuh - a warp's products of small matrices on the card's matrix units, and bytes on their way to shared memory.
 *
 * Numbers travel in words of 32 bits: two of 16 bits, or one float, which is rounded to TF32 where it is multiplied. A
 * product is of 16 rows by 8 words with 8 words by 8 columns. What a lane holds of it (PTX, "Matrix Fragments for
 * mma.m16n8k16" and ".m16n8k8"), with g = lane / 4 and t = lane % 4: of the left matrix words t and t + 4 of rows g and
 * g + 8, of the right one words t and t + 4 of column g, of the sums columns 2t and 2t + 1 of rows g and g + 8. */
#ifndef TWI_CUDA_MATRIX_CUH
#define TWI_CUDA_MATRIX_CUH

#include "device/cuda/vector.cuh"

enum { TILE_ROWS = 16, TILE_COLUMNS = 8, TILE_WORDS = 8 };

typedef struct left {
    uint32_t at[4]; /* word t of rows g and g + 8, then word t + 4 */
} left;

typedef struct right {
    uint32_t at[2];
} right;

typedef struct sums {
    float at[4]; /* columns 2t and 2t + 1 of row g, then of row g + 8 */
} sums;

/* How many numbers a word has. */
template <typename T> static __host__ __device__ constexpr int in_word()
{
    return (int)(sizeof(uint32_t) / sizeof(T));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 /* which has none of this, and is given none of it to do */
static __device__ __forceinline__ uint32_t to_tf32(uint32_t word)
{
    return word;
}

template <typename T> static __device__ __forceinline__ void multiply_add(sums &, const left &, const right &)
{
    __trap();
}

static __device__ __forceinline__ void send(void *, const void *, bool)
{
    __trap();
}

static __device__ __forceinline__ void depart()
{
}

template <int N> static __device__ __forceinline__ void arrive()
{
}
#elif defined(__CUDACC__)
static __device__ __forceinline__ uint32_t to_tf32(uint32_t word)
{
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(word)));
    return rounded;
}

#define MULTIPLY(shape, types)                                                                                         \
    asm("mma.sync.aligned." shape ".row.col." types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(s.at[0]), "+f"(s.at[1]), "+f"(s.at[2]), "+f"(s.at[3])                                                   \
        : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b.at[0]), "r"(b.at[1]))

template <typename T> static __device__ __forceinline__ void multiply_add(sums &s, const left &a, const right &b)
{
    if constexpr (std::is_same<T, float>::value)
        MULTIPLY("m16n8k8", "f32.tf32.tf32.f32");
    else if constexpr (std::is_same<T, __half>::value)
        MULTIPLY("m16n8k16", "f32.f16.f16.f32");
    else
        MULTIPLY("m16n8k16", "f32.bf16.bf16.f32");
}
#undef MULTIPLY

/* 16 bytes, or as many zeros, to shared memory, where they are after arrive<N>() of all but the N latest departures. */
static __device__ __forceinline__ void send(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

static __device__ __forceinline__ void depart()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> static __device__ __forceinline__ void arrive()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else /* the played card's are in tests/card/emulate.h */
static inline uint32_t to_tf32(uint32_t word)
{
    return (word & 0x7f800000u) == 0x7f800000u ? word : (word + 0x1000u) & ~0x1fffu;
}

template <typename T> static inline void multiply_add(sums &s, const left &a, const right &b)
{
    const uint32_t own[] = {a.at[0], a.at[1], a.at[2], a.at[3], b.at[0], b.at[1]};
    const uint32_t(*lanes)[CARD_WORDS] = card_share(own);
    const int g = (int)card_lane() / 4, t = (int)card_lane() % 4;
    for (int i = 0; i < 4; i++)
        for (int word = 0; word < TILE_WORDS; word++) {
            T x[in_word<T>()], y[in_word<T>()];
            memcpy((void *)x, &lanes[g * 4 + word % 4][i / 2 + word / 4 * 2], sizeof x);
            memcpy((void *)y, &lanes[(2 * t + i % 2) * 4 + word % 4][4 + word / 4], sizeof y);
            for (int e = 0; e < in_word<T>(); e++)
                s.at[i] += to_float(x[e]) * to_float(y[e]);
        }
}

static inline void send(void *to, const void *from, bool there)
{
    if (there)
        memcpy(to, from, 16);
    else
        memset(to, 0, 16);
}

static inline void depart()
{
}

template <int N> static inline void arrive()
{
}
#endif

/* What is multiplied for a word. */
template <typename T> static __device__ __forceinline__ uint32_t factor(uint32_t word)
{
    return std::is_same<T, float>::value ? to_tf32(word) : word;
}

/* The first, or the second, numbers of two words of two. */
static __device__ __forceinline__ uint32_t first_of(uint32_t one, uint32_t two)
{
    return (one & 0xffffu) | (two << 16);
}

static __device__ __forceinline__ uint32_t second_of(uint32_t one, uint32_t two)
{
    return (one >> 16) | (two & 0xffff0000u);
}

#endif
