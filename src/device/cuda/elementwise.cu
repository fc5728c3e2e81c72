/* elementwise.cu - arithmetic and conversion, element by element; what becomes of one is in arithmetic.cuh.
 *
 * The ops that networks are full of, of float types where operands lie side by side or are scalars, have kernels of
 * their own, which move vectors. For all else the op is a number that all threads share, so one kernel a type serves
 * them. */
#include "device/cuda/arithmetic.cuh"
#include "device/cuda/divide.cuh"
#include "device/cuda/vector.cuh"

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

template <twi_cuda_unary OP> struct unary_of {
    __device__ __forceinline__ float operator()(float x) const
    {
        return unary(OP, x);
    }
};

struct itself {
    __device__ __forceinline__ float operator()(float x) const
    {
        return x;
    }
};

template <twi_cuda_binary OP> struct binary_of {
    __device__ __forceinline__ float operator()(float x, float y) const
    {
        return binary(OP, x, y);
    }
};

/* y = f(x), V elements at once; those behind the last vector one by one. */
template <int V, typename F, typename X, typename Y> static __global__ void map_kernel(F f, int64_t n, const X *x, Y *y)
{
    EACH(i, n / V)
    {
        vector<X, V> from = load<V, V>(x + i * V);
        vector<Y, V> to;
#pragma unroll
        for (int v = 0; v < V; v++)
            put(&to.at[v], f(to_float(from.at[v])));
        store<V>(y + i * V, to);
    }
    EACH(i, n % V)
        put(y + n / V * V + i, f(to_float(x[n / V * V + i])));
}

/* An operand is a vector's elements, or one that stands for all of them. */
template <int V, typename T>
static __device__ __forceinline__ vector<T, V> operand(const T *x, bool goes, int64_t i)
{
    if (goes)
        return load<V, V>(x + i * V);
    vector<T, V> all;
    T one = *x;
#pragma unroll
    for (int v = 0; v < V; v++)
        all.at[v] = one;
    return all;
}

template <int V, typename F, typename T>
static __global__ void zip_kernel(F f, int64_t n, const T *x, bool x_goes, const T *y, bool y_goes, T *z)
{
    EACH(i, n / V)
    {
        vector<T, V> a = operand<V>(x, x_goes, i), b = operand<V>(y, y_goes, i);
#pragma unroll
        for (int v = 0; v < V; v++)
            put(&a.at[v], f(to_float(a.at[v]), to_float(b.at[v])));
        store<V>(z + i * V, a);
    }
    EACH(i, n % V)
    {
        int64_t at = n / V * V + i;
        put(z + at, f(to_float(x[x_goes ? at : 0]), to_float(y[y_goes ? at : 0])));
    }
}

typedef struct terms {
    const void *x[TWI_CUDA_MOST_TERMS];
} terms;

/* V is 1 where some term does not lie as vectors do. */
template <int V, typename T> static __global__ void add_n_kernel(int count, terms t, int64_t n, T *sum)
{
    EACH(i, n / V)
    {
        vector<T, V> to;
        float total[V] = {};
#pragma unroll 4
        for (int k = 0; k < count; k++) {
            vector<T, V> from = load<V, V>((const T *)t.x[k] + i * V);
#pragma unroll
            for (int v = 0; v < V; v++)
                total[v] = k ? total[v] + to_float(from.at[v]) : to_float(from.at[v]);
        }
#pragma unroll
        for (int v = 0; v < V; v++)
            put(&to.at[v], total[v]);
        store<V>(sum + i * V, to);
    }
    EACH(i, n % V)
    {
        int64_t at = n / V * V + i;
        float total = to_float(((const T *)t.x[0])[at]);
        for (int k = 1; k < count; k++)
            total += to_float(((const T *)t.x[k])[at]);
        put(sum + at, total);
    }
}

/* Channels last, `each` vectors of them. */
template <int V, typename T>
static __global__ void bias_vectors_kernel(uint32_t vectors, twi_divider each, bool relu, const T *x, const T *bias, T *y)
{
    EACH(i, vectors)
    {
        uint32_t channel;
        twi_divide(each, (uint32_t)i, &channel);
        vector<T, V> own = load<V, V>(x + i * V), add = load<V, V>(bias + channel * V);
#pragma unroll
        for (int v = 0; v < V; v++) {
            float sum = to_float(own.at[v]) + to_float(add.at[v]);
            put(&own.at[v], relu && sum <= 0 ? 0 : sum);
        }
        store<V>(y + i * V, own);
    }
}

/* ---- one element a thread ---------------------------------------------------------------------------------------- */

/* A walk as kernels take it: an index is divided by all sizes but the outermost, so with several axes it is below
 * 2^31. */
struct road {
    int rank;
    twi_divider size[TW_MAX_RANK];
    int64_t step[TWI_CUDA_MOST_WALKERS][TW_MAX_RANK];
};

static road road_of(const twi_cuda_walk *walk)
{
    road r = {};
    r.rank = walk->rank;
    for (int axis = 0; axis < walk->rank; axis++) {
        r.size[axis] = twi_divider_of(walk->size[axis]);
        for (int k = 0; k < TWI_CUDA_MOST_WALKERS; k++)
            r.step[k][axis] = walk->step[k][axis];
    }
    return r;
}

/* Where in each of N inputs element i of the output comes from. */
template <int N> static __device__ __forceinline__ void places_of(const road &r, int64_t i, int64_t places[N])
{
    for (int k = 0; k < N; k++)
        places[k] = r.rank ? 0 : i;
    for (int axis = r.rank - 1; axis >= 0; axis--) {
        int64_t at = i;
        if (axis > 0) {
            uint32_t rest;
            i = twi_divide(r.size[axis], (uint32_t)i, &rest);
            at = rest;
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            places[k] += at * r.step[k][axis];
    }
}

template <typename T> static __global__ void unary_kernel(twi_cuda_unary op, int64_t n, const T *x, T *y)
{
    EACH(i, n)
        unary_at(op, x + i, y + i);
}

template <typename T>
static __global__ void binary_kernel(twi_cuda_binary op, road walk, int64_t n, const T *x, const T *y, T *z)
{
    EACH(i, n)
    {
        int64_t at[2];
        places_of<2>(walk, i, at);
        binary_at(op, x + at[0], y + at[1], z + i);
    }
}

template <typename T>
static __global__ void compare_kernel(twi_cuda_compare op, road walk, int64_t n, const T *x, const T *y, bool *z)
{
    EACH(i, n)
    {
        int64_t at[2];
        places_of<2>(walk, i, at);
        z[i] = compare(op, wide(x[at[0]]), wide(y[at[1]]));
    }
}

template <typename T> static __global__ void test_kernel(twi_cuda_test op, int64_t n, const T *x, bool *y)
{
    EACH(i, n)
        y[i] = test(op, to_float(x[i]));
}

template <typename U>
static __global__ void select_kernel(road walk, int64_t n, const bool *condition, const U *x, const U *y, U *z)
{
    EACH(i, n)
    {
        int64_t at[3];
        places_of<3>(walk, i, at);
        z[i] = condition[at[0]] ? x[at[1]] : y[at[2]];
    }
}

template <typename T>
static __global__ void clip_kernel(int64_t n, const T *x, const T *low, bool low_steps, const T *high, bool high_steps,
                                   T *y)
{
    EACH(i, n)
    {
        T value = x[i], least = low[low_steps ? i : 0], most = high[high_steps ? i : 0];
        value = wide(value) > wide(most) ? most : value; /* NaN stays what it is */
        y[i] = wide(value) < wide(least) ? least : value;
    }
}

template <typename T>
static __global__ void leaky_kernel(float alpha, int64_t n, const T *gate, const T *x, T *y)
{
    EACH(i, n)
        put(y + i, to_float(gate[i]) > 0 ? to_float(x[i]) : alpha * to_float(x[i]));
}

template <typename T>
static __global__ void bias_kernel(int64_t n, int64_t channels, int64_t inner, bool relu, const T *x, const T *bias, T *y)
{
    EACH(i, n)
    {
        float sum = to_float(x[i]) + to_float(bias[i / inner % channels]);
        put(y + i, relu && sum <= 0 ? 0 : sum);
    }
}

static __global__ void cast_kernel(tw_dtype from, tw_dtype to, int64_t n, const void *x, void *y)
{
    EACH(i, n)
        cast_at(from, x, to, y, i);
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

template <typename F, typename X, typename Y>
static void map(cudaStream_t stream, F f, int64_t n, const X *x, Y *y)
{
    const int V = width<X>::value > width<Y>::value ? width<X>::value : width<Y>::value;
    LAUNCH(blocks_for(n / V + 1), THREADS, 0, stream, map_kernel<V, F, X, Y>)(f, n, x, y);
}

cudaError_t twi_cuda_unary_run(cudaStream_t stream, tw_dtype type, twi_cuda_unary op, int64_t n, const void *x, void *y)
{
    bool is_float = type != TW_INT32 && type != TW_INT64;
    if (op == TWI_CUDA_RELU && is_float && is_aligned(x) && is_aligned(y))
        FLOAT_TYPES(type, map(stream, unary_of<TWI_CUDA_RELU>(), n, (const T *)x, (T *)y))
    else
        NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, unary_kernel<T>)(op, n, (const T *)x, (T *)y))
    return cudaGetLastError();
}

/* Whether the input goes on with the output, or else stands still: what vectors are made of. */
static bool is_steady(const twi_cuda_walk *walk, int k, bool *goes)
{
    *goes = walk->rank == 0 || walk->step[k][0] == 1;
    return walk->rank == 0 || (walk->rank == 1 && walk->step[k][0] <= 1);
}

template <typename T, twi_cuda_binary OP>
static void zip(cudaStream_t stream, const twi_cuda_walk *walk, int64_t n, const T *x, const T *y, T *z)
{
    const int V = width<T>::value;
    bool x_goes, y_goes;
    is_steady(walk, 0, &x_goes);
    is_steady(walk, 1, &y_goes);
    LAUNCH(blocks_for(n / V + 1), THREADS, 0, stream, zip_kernel<V, binary_of<OP>, T>)(binary_of<OP>(), n, x, x_goes, y,
                                                                                      y_goes, z);
}

/* False if the op has no kernel of its own. */
template <typename T>
static bool zip_often(cudaStream_t stream, twi_cuda_binary op, const twi_cuda_walk *walk, int64_t n, const T *x, const T *y,
                      T *z)
{
    switch (op) {
    case TWI_CUDA_ADD:
    case TWI_CUDA_ADD_V2:
        zip<T, TWI_CUDA_ADD>(stream, walk, n, x, y, z);
        return true;
    case TWI_CUDA_SUBTRACT:
        zip<T, TWI_CUDA_SUBTRACT>(stream, walk, n, x, y, z);
        return true;
    case TWI_CUDA_MULTIPLY:
        zip<T, TWI_CUDA_MULTIPLY>(stream, walk, n, x, y, z);
        return true;
    case TWI_CUDA_MAXIMUM:
        zip<T, TWI_CUDA_MAXIMUM>(stream, walk, n, x, y, z);
        return true;
    case TWI_CUDA_RELU_GRAD:
        zip<T, TWI_CUDA_RELU_GRAD>(stream, walk, n, x, y, z);
        return true;
    default:
        return false;
    }
}

cudaError_t twi_cuda_binary_run(cudaStream_t stream, tw_dtype type, twi_cuda_binary op, const twi_cuda_walk *walk,
                                int64_t n, const void *x, const void *y, void *z)
{
    bool goes[2] = {}, is_float = type != TW_INT32 && type != TW_INT64, done = false;
    if (is_float && is_steady(walk, 0, &goes[0]) && is_steady(walk, 1, &goes[1]) && (!goes[0] || is_aligned(x)) &&
        (!goes[1] || is_aligned(y)) && is_aligned(z))
        FLOAT_TYPES(type, done = zip_often(stream, op, walk, n, (const T *)x, (const T *)y, (T *)z))
    if (!done) {
        NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, binary_kernel<T>)(op, road_of(walk), n, (const T *)x,
                                                                                   (const T *)y, (T *)z))
    }
    return cudaGetLastError();
}

cudaError_t twi_cuda_compare_run(cudaStream_t stream, tw_dtype type, twi_cuda_compare op, const twi_cuda_walk *walk,
                                 int64_t n, const void *x, const void *y, bool *z)
{
    if (type == TW_BOOL || type == TW_UINT8)
        LAUNCH(blocks_for(n), THREADS, 0, stream, compare_kernel<uint8_t>)(op, road_of(walk), n, (const uint8_t *)x,
                                                                       (const uint8_t *)y, z);
    else
        NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, compare_kernel<T>)(op, road_of(walk), n, (const T *)x,
                                                                                    (const T *)y, z))
    return cudaGetLastError();
}

cudaError_t twi_cuda_test_run(cudaStream_t stream, tw_dtype type, twi_cuda_test op, int64_t n, const void *x, bool *y)
{
    if (type == TW_BOOL)
        LAUNCH(blocks_for(n), THREADS, 0, stream, test_kernel<bool>)(op, n, (const bool *)x, y);
    else
        FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, test_kernel<T>)(op, n, (const T *)x, y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_select(cudaStream_t stream, int bytes, const twi_cuda_walk *walk, int64_t n, const bool *condition,
                            const void *x, const void *y, void *z)
{
    SIZED_TYPES(bytes, LAUNCH(blocks_for(n), THREADS, 0, stream, select_kernel<T>)(road_of(walk), n, condition,
                                                                                   (const T *)x, (const T *)y, (T *)z))
    return cudaGetLastError();
}

cudaError_t twi_cuda_clip(cudaStream_t stream, tw_dtype type, int64_t n, const void *x, const void *low, bool low_steps,
                          const void *high, bool high_steps, void *y)
{
    NUMBER_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, clip_kernel<T>)(
                           n, (const T *)x, (const T *)low, low_steps, (const T *)high, high_steps, (T *)y))
    return cudaGetLastError();
}

template <int V, typename T> static void add_n(cudaStream_t stream, int count, const terms &t, int64_t n, T *sum)
{
    LAUNCH(blocks_for(n / V + 1), THREADS, 0, stream, add_n_kernel<V, T>)(count, t, n, sum);
}

cudaError_t twi_cuda_leaky(cudaStream_t stream, tw_dtype type, float alpha, int64_t n, const void *gate, const void *x,
                           void *y)
{
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, leaky_kernel<T>)(alpha, n, (const T *)gate,
                                                                                 (const T *)x, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_add_n(cudaStream_t stream, tw_dtype type, int count, const void *const *x, int64_t n, void *sum)
{
    terms t = {};
    bool aligned = is_aligned(sum);
    for (int i = 0; i < count; i++) {
        t.x[i] = x[i];
        aligned = aligned && is_aligned(x[i]);
    }
    if (aligned)
        FLOAT_TYPES(type, add_n<width<T>::value>(stream, count, t, n, (T *)sum))
    else
        FLOAT_TYPES(type, add_n<1>(stream, count, t, n, (T *)sum))
    return cudaGetLastError();
}

template <typename X> static cudaError_t cast_floats(cudaStream_t stream, tw_dtype to, int64_t n, const X *x, void *y)
{
    FLOAT_TYPES(to, map(stream, itself(), n, x, (T *)y))
    return cudaGetLastError();
}

static bool is_cast_by_vectors(tw_dtype type, const void *x)
{
    return (type == TW_FLOAT32 || type == TW_BFLOAT16 || type == TW_FLOAT16) && is_aligned(x);
}

cudaError_t twi_cuda_cast(cudaStream_t stream, tw_dtype from, tw_dtype to, int64_t n, const void *x, void *y)
{
    if (is_cast_by_vectors(from, x) && is_cast_by_vectors(to, y))
        FLOAT_TYPES(from, return cast_floats(stream, to, n, (const T *)x, y))
    LAUNCH(blocks_for(n), THREADS, 0, stream, cast_kernel)(from, to, n, x, y);
    return cudaGetLastError();
}

template <int V, typename T>
static void add_bias(cudaStream_t stream, int64_t n, int64_t channels, bool relu, const T *x, const T *bias, T *y)
{
    LAUNCH(blocks_for(n / V), THREADS, 0, stream, bias_vectors_kernel<V, T>)(
        (uint32_t)(n / V), twi_divider_of(channels / V), relu, x, bias, y);
}

template <typename T>
static void add_biases(cudaStream_t stream, int64_t n, int64_t channels, bool relu, const T *x, const T *bias, T *y)
{
    const int V = width<T>::value;
    if (channels % V == 0 && is_aligned(x) && is_aligned(bias) && is_aligned(y))
        add_bias<V>(stream, n, channels, relu, x, bias, y);
    else
        add_bias<1>(stream, n, channels, relu, x, bias, y);
}

cudaError_t twi_cuda_bias_add(cudaStream_t stream, tw_dtype type, int64_t n, int64_t channels, int64_t inner, bool relu,
                              const void *x, const void *bias, void *y)
{
    if (inner == 1 && n <= TWI_MOST_DIVIDED)
        FLOAT_TYPES(type, add_biases(stream, n, channels, relu, (const T *)x, (const T *)bias, (T *)y))
    else
        FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, bias_kernel<T>)(
                              n, channels, inner, relu, (const T *)x, (const T *)bias, (T *)y))
    return cudaGetLastError();
}
