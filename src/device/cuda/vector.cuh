/* vector.cuh - neighbouring elements moved at once, up to 16 bytes of them, and as floats. What else kernels say of
 * neighbours, quads of channels (images.cuh) and the elements of a thread (many.cuh), is said with these. */
#ifndef TWI_CUDA_VECTOR_CUH
#define TWI_CUDA_VECTOR_CUH

#include "device/cuda/typed.cuh"

template <typename T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) vector {
    T at[V];
};

/* How many elements of a type are moved at once; a power of two. */
template <typename T> struct width {
    static const int value = sizeof(T) > 2 ? 16 / sizeof(T) : 8;
};

/* A launcher asks for any vector, a kernel for its own. */
static __host__ __device__ inline bool is_aligned(const void *p, size_t bytes = 16)
{
    return (uintptr_t)p % bytes == 0;
}

/* V elements from p on, A of them at once: as many where p is aligned to that, else 1. */
template <typename T, int V, int A> struct mover {
    static __device__ __forceinline__ vector<T, V> load(const T *p)
    {
        vector<T, V> x;
#pragma unroll
        for (int v = 0; v < V; v++)
            x.at[v] = p[v];
        return x;
    }

    static __device__ __forceinline__ void store(T *p, const vector<T, V> &x)
    {
#pragma unroll
        for (int v = 0; v < V; v++)
            p[v] = x.at[v];
    }
};

template <typename T, int V> struct mover<T, V, V> {
    static __device__ __forceinline__ vector<T, V> load(const T *p)
    {
        return *(const vector<T, V> *)p;
    }

    static __device__ __forceinline__ void store(T *p, const vector<T, V> &x)
    {
        *(vector<T, V> *)p = x;
    }
};

template <int V, int A, typename T> static __device__ __forceinline__ vector<T, V> load(const T *p)
{
    return mover<T, V, A>::load(p);
}

template <int A, typename T, int V> static __device__ __forceinline__ void store(T *p, const vector<T, V> &x)
{
    mover<T, V, A>::store(p, x);
}

template <typename T, int V> static __device__ __forceinline__ void widen(const vector<T, V> &x, float *to)
{
#pragma unroll
    for (int v = 0; v < V; v++)
        to[v] = to_float(x.at[v]);
}

template <typename T, int V> static __device__ __forceinline__ vector<T, V> narrow(const float *x)
{
    vector<T, V> to;
#pragma unroll
    for (int v = 0; v < V; v++)
        put(&to.at[v], x[v]);
    return to;
}

/* What memory is moved by: of two bytes, half a word. */
template <size_t BYTES> struct word {
    typedef uint32_t type;
};

template <> struct word<2> {
    typedef uint16_t type;
};

/* V neighbours as they lie in memory. Words take fewer registers and instructions than numbers do. */
template <typename T, int V> union alignas(sizeof(vector<T, V>)) raw {
    typename word<sizeof(T) * V>::type words[sizeof(T) * V / sizeof(typename word<sizeof(T) * V>::type)];
    vector<T, V> numbers;
};

static __device__ __forceinline__ float number_of_word(uint32_t word, int, float)
{
    return __uint_as_float(word);
}

/* One instruction: a bfloat16 is the upper half of the float. */
static __device__ __forceinline__ float number_of_word(uint32_t word, int v, __nv_bfloat16)
{
    return __uint_as_float(v % 2 ? word & 0xffff0000u : word << 16);
}

static __device__ __forceinline__ float number_of_word(uint32_t word, int v, __half)
{
    return __half2float(__ushort_as_half((unsigned short)(word >> v % 2 * 16)));
}

template <typename T, int V> static __device__ __forceinline__ float number_of(const raw<T, V> &some, int v)
{
    return number_of_word(some.words[v * sizeof(T) / sizeof some.words[0]], v, T());
}

#endif
