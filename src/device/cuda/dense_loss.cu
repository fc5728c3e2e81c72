/* dense_loss.cu - the last two layers of a network, their loss, and the gradients of both, in one launch. A block takes
 * some rows from the first product to the last. What both ways need is read from memory once, all of it at once, and
 * stays in the block's shared memory, weights too where that has room for them; else the way back reads these again.
 * Sums have an order of their own, which sizes alone decide. */
#include "device/cuda/divide.cuh"
#include "device/cuda/large_shared.cuh"
#include "device/cuda/last_block.cuh"
#include "device/cuda/vector.cuh"

enum {
    ROWS = 2, /* of a block: with more the weights are read less often, with fewer more multiprocessors are at work */
    DENSE_THREADS = 512,
    WARP = 32,
    DEEP = 20,   /* vectors of weights that a thread has under way at once, */
    PIECES = 8,  /* and numbers of all else */
    SHARERS = 8, /* threads that share a row of weights on the way back */
    LEAST = 8,   /* numbers that a thread adds up before it meets others */
    LOSS_WARP = DENSE_THREADS / WARP - 1,
};

/* A number of each of the block's rows. */
struct alignas(ROWS * sizeof(float)) several {
    float at[ROWS];
};

/* What a launch knows beforehand: which weights are copied to the block's shared memory, and how many threads stand
 * side by side in each product. */
struct plan {
    bool weights, last_weights;
    twi_divider across, last_across;
};

/* What lies there, in this order. */
template <typename T> struct rooms {
    T *weights, *last_weights;
    several *x, *hidden, *logits, *parts;
    float *bias, *last_bias;
};

/* Bytes of so many numbers, such that vectors may follow. */
typedef vector<float, 4> sixteen_bytes;

template <typename T> static __host__ __device__ inline size_t room_for(int count)
{
    return ((size_t)count * sizeof(T) + sizeof(sixteen_bytes) - 1) / sizeof(sixteen_bytes) * sizeof(sixteen_bytes);
}

static_assert(DENSE_THREADS * 8 * sizeof(several) + TWI_CUDA_DENSE_WIDTH * (sizeof(several) + sizeof(float)) <
                  SMALL_SHARED,
              "what every card gives a block, without weights");

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Products are summed without rounding between: those of narrow numbers have none, and others are the better for it. */
static __device__ __forceinline__ void add_product(several *sum, const several &a, float b)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum->at[r] = fmaf(a.at[r], b, sum->at[r]);
}

/* Of a product x * w of w[inner, columns], V neighbouring columns are a thread's, and of w every so many rows. */
template <int V> struct share {
    int inner, columns, splits, group, split;
    twi_divider groups;
};

template <int V> static __device__ __forceinline__ share<V> share_of(int inner, int columns, const twi_divider &groups)
{
    unsigned group, split = twi_divide(groups, threadIdx.x, &group);
    const int splits = min((int)twi_quotient(groups, DENSE_THREADS), (inner + LEAST - 1) / LEAST);
    return {inner, columns, splits, (int)group, (int)split, groups};
}

/* Vectors of a thread's rows, from row k on. */
template <int V, int MANY, typename T> struct taken {
    raw<T, V> at[MANY];
};

template <int MANY, int V, typename T>
static __device__ __forceinline__ taken<V, MANY, T> take(const share<V> &s, const T *w, int k)
{
    taken<V, MANY, T> some = {};
#pragma unroll
    for (int i = 0; i < MANY; i++)
        if (s.split < s.splits && k + i * s.splits < s.inner)
            some.at[i] = *(const raw<T, V> *)(w + (k + i * s.splits) * s.columns + s.group * V);
    return some;
}

/* Adds what these give to the thread's sums. Where `kept` is given they are copied there. */
template <int V, int MANY, typename T>
static __device__ __forceinline__ void add_taken(const share<V> &s, const taken<V, MANY, T> &some, int k, T *kept,
                                                 const several *x, several (&sums)[V])
{
#pragma unroll
    for (int i = 0; i < MANY; i++)
        if (int row = k + i * s.splits; s.split < s.splits && row < s.inner) {
            const several own = x[row];
            if (kept)
                *(raw<T, V> *)(kept + row * s.columns + s.group * V) = some.at[i];
#pragma unroll
            for (int v = 0; v < V; v++)
                add_product(&sums[v], own, number_of(some.at[i], v));
        }
}

/* use(column, sum) for each column of x * w, of which the thread has taken its first. */
template <int V, int MANY, typename T, typename U>
static __device__ __forceinline__ void multiply(const share<V> &s, const taken<V, MANY, T> &some, const T *w, T *kept,
                                                const several *x, several *parts, U use)
{
    several sums[V] = {};
    add_taken(s, some, s.split, kept, x, sums);
    for (int k = s.split + MANY * s.splits; k < s.inner; k += MANY * s.splits)
        add_taken(s, take<MANY>(s, w, k), k, kept, x, sums);
    /* [splits, V, groups], so that neighbours touch neighbours */
    for (int v = 0; v < V && s.split < s.splits; v++)
        parts[(s.split * V + v) * (int)s.groups.divisor + s.group] = sums[v];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < s.columns; i += DENSE_THREADS) {
        several all = parts[i];
#pragma unroll 8
        for (int split = 1; split < s.splits; split++)
            for (int r = 0; r < ROWS; r++)
                all.at[r] += parts[split * s.columns + i].at[r];
        unsigned group, v = twi_divide(s.groups, (unsigned)i, &group);
        use((int)(group * V + v), all);
    }
    __syncthreads();
}

/* Each of SHARERS neighbours has as many numbers; the first gets the sum of all first ones, and so on. */
static __device__ __forceinline__ float add_among_sharers(float (&numbers)[SHARERS])
{
#pragma unroll
    for (int half = SHARERS / 2; half > 0; half /= 2) {
        const bool upper = threadIdx.x & half;
#pragma unroll
        for (int i = 0; i < half; i++) {
            float given = upper ? numbers[i] : numbers[i + half], own = upper ? numbers[i + half] : numbers[i];
            numbers[i] = own + __shfl_xor_sync(0xffffffffu, given, half);
        }
    }
    return numbers[0];
}

/* use(k, sum) for each number k of y * w', of w[outer, columns]. SHARERS threads take as many rows of w, V neighbours
 * at a time. */
template <int V, typename T, typename U>
static __device__ __forceinline__ void multiply_transposed(const T *w, int outer, int columns, const several *y, U use)
{
    const int lane = (int)threadIdx.x % SHARERS;
    for (int warp = (int)threadIdx.x / WARP * WARP; warp < outer; warp += DENSE_THREADS) {
        const int first = warp + (int)threadIdx.x % WARP - lane;
        several sums[SHARERS] = {}, own;
        for (int n = lane * V; n < columns; n += SHARERS * V) {
            raw<T, V> some[SHARERS] = {};
#pragma unroll
            for (int i = 0; i < SHARERS; i++)
                if (first + i < outer)
                    some[i] = *(const raw<T, V> *)(w + (first + i) * columns + n);
#pragma unroll
            for (int v = 0; v < V; v++) {
                own = y[n + v];
#pragma unroll
                for (int i = 0; i < SHARERS; i++)
                    add_product(&sums[i], own, number_of(some[i], v));
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float numbers[SHARERS];
            for (int i = 0; i < SHARERS; i++)
                numbers[i] = sums[i].at[r];
            own.at[r] = add_among_sharers(numbers);
        }
        if (first + lane < outer)
            use(first + lane, own);
    }
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* count numbers, one a thread in turn, by place(i) into shared memory; PIECES are under way at once. */
template <typename T, typename P>
static __device__ __forceinline__ void copy(const T *from, int count, int thread, int threads, P place)
{
    for (int first = thread; first < count; first += PIECES * threads) {
        T some[PIECES];
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            if (int at = first + i * threads; at < count)
                some[i] = from[at];
#pragma unroll
        for (int i = 0; i < PIECES; i++)
            if (int at = first + i * threads; at < count)
                place(at, some[i]);
    }
}

template <int V, typename T>
static __device__ __forceinline__ rooms<T> rooms_of(const twi_cuda_dense_loss &p, plan k, void *shared)
{
    rooms<T> in;
    in.weights = (T *)shared;
    in.last_weights = (T *)((char *)in.weights + (k.weights ? room_for<T>(p.inputs * p.hidden) : 0));
    in.x = (several *)((char *)in.last_weights + (k.last_weights ? room_for<T>(p.hidden * p.classes) : 0));
    in.hidden = in.x + p.inputs;
    in.logits = in.hidden + p.hidden;
    in.parts = in.logits + p.classes;
    in.bias = (float *)(in.parts + DENSE_THREADS * V);
    in.last_bias = in.bias + p.hidden;
    return in;
}

/* All but the weights of the first layer. Warps share it, so that none waits for memory twice. Rows beyond the last are
 * the last again, of which nobody keeps anything. */
template <typename T>
static __device__ __forceinline__ void take_in(const twi_cuda_dense_loss &p, plan k, const rooms<T> &in, int64_t row)
{
    constexpr int FOR_ROW = 2 * WARP, FOR_ROWS = ROWS * FOR_ROW, REST = FOR_ROWS + 2 * WARP;
    const int thread = (int)threadIdx.x, r = thread / FOR_ROW, lane = thread % WARP;
    if (thread < FOR_ROWS)
        copy((const T *)p.x + min(row + r, p.rows - 1) * p.inputs, p.inputs, thread % FOR_ROW, FOR_ROW,
             [&](int i, T x) { in.x[i].at[r] = to_float(x); });
    else if (thread < FOR_ROWS + WARP)
        copy((const T *)p.bias, p.hidden, lane, WARP, [&](int i, T x) { in.bias[i] = to_float(x); });
    else if (thread < REST)
        copy((const T *)p.last_bias, p.classes, lane, WARP, [&](int i, T x) { in.last_bias[i] = to_float(x); });
    else if (k.last_weights)
        copy((const T *)p.last_weights, p.hidden * p.classes, thread - REST, DENSE_THREADS - REST,
             [&](int i, T x) { in.last_weights[i] = x; });
}

/* What a layer gives of a sum, with its bias and rounded; with relu what is not above 0 is 0. */
template <typename T>
static __device__ __forceinline__ several layer(const several &sum, float bias, bool relu)
{
    several y;
    for (int r = 0; r < ROWS; r++) {
        float x = sum.at[r] + bias;
        y.at[r] = rounded<T>(relu && x <= 0 ? 0 : x);
    }
    return y;
}

/* What of a gradient a feature lets pass. */
template <typename T>
static __device__ __forceinline__ several passed(const several &gradient, const several &feature, bool relu)
{
    several y;
    for (int r = 0; r < ROWS; r++)
        y.at[r] = relu && !(feature.at[r] > 0) ? 0 : rounded<T>(gradient.at[r]);
    return y;
}

/* Number i of rows of n, as far as there are such. */
template <typename T>
static __device__ __forceinline__ void put_rows(void *to, int64_t row, int64_t rows, int n, int i, const several &x)
{
    for (int r = 0; r < ROWS; r++)
        if (row + r < rows)
            put((T *)to + (row + r) * n + i, x.at[r]);
}

/* ---- the loss ---------------------------------------------------------------------------------------------------- */

/* What a row's loss needs besides its logits. */
struct goal {
    int64_t label;
    float factor;
};

static __device__ __forceinline__ goal goal_of(const twi_cuda_dense_loss &p, int64_t row)
{
    goal g = {-1, *p.scale / p.divisor};
    if (row < p.rows)
        g.label = p.wide ? ((const int64_t *)p.labels)[row] : ((const int32_t *)p.labels)[row];
    return g;
}

/* The row's loss; its logits become their gradients. A warp's work. */
template <typename T>
static __device__ void lose(const twi_cuda_dense_loss &p, const goal &g, several *logits, int r, int64_t row)
{
    const int lane = (int)threadIdx.x % WARP;
    const bool known = g.label >= 0 && g.label < p.classes;
    float maximum = -INFINITY, sum = 0;
#pragma unroll 1
    for (int c = lane; c < p.classes; c += WARP)
        maximum = fmaxf(maximum, logits[c].at[r]);
    for (int step = WARP / 2; step > 0; step /= 2)
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, step));
    const float own = known ? logits[g.label].at[r] - maximum : 0;
#pragma unroll 1
    for (int c = lane; c < p.classes; c += WARP)
        sum += expf(logits[c].at[r] - maximum);
    for (int step = WARP / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
#pragma unroll 1
    for (int c = lane; c < p.classes; c += WARP) {
        float gradient = known ? expf(logits[c].at[r] - maximum) / sum - (c == g.label) : NAN;
        logits[c].at[r] = rounded<T>(gradient * g.factor);
        if (row < p.rows)
            put((T *)p.dlogits + row * p.classes + c, gradient * g.factor);
    }
    if (lane == 0 && row < p.rows)
        p.losses[row] = known ? logf(sum) - own : NAN;
}

/* The mean of all rows' losses, once they are there. A warp's work. */
static __device__ void average(const twi_cuda_dense_loss &p)
{
    float sum = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x % WARP; i < p.rows; i += WARP)
        sum += p.losses[i];
    for (int step = WARP / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % WARP == 0)
        *p.loss = sum / (float)p.rows;
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

template <int V, typename T>
static __global__ void __launch_bounds__(DENSE_THREADS, 1) dense_loss_kernel(twi_cuda_dense_loss p, plan k)
{
    DYNAMIC_SHARED(sixteen_bytes, shared);
    const rooms<T> in = rooms_of<V, T>(p, k, shared);
    const T *weights = (const T *)p.weights, *last_weights = (const T *)p.last_weights;
    const int64_t row = blockIdx.x * (int64_t)ROWS;
    const int warp = (int)threadIdx.x / WARP;
    const share<V> first = share_of<V>(p.inputs, p.hidden, k.across);
    const taken<V, DEEP, T> some = take<DEEP>(first, weights, first.split);
    const goal own = warp < ROWS ? goal_of(p, row + warp) : goal();
    take_in(p, k, in, row);
    __syncthreads();
    last_weights = k.last_weights ? in.last_weights : last_weights;
    multiply(first, some, weights, k.weights ? in.weights : NULL, in.x, in.parts, [&](int i, const several &sum) {
        in.hidden[i] = layer<T>(sum, in.bias[i], true);
        put_rows<T>(p.h, row, p.rows, p.hidden, i, in.hidden[i]);
    });
    const share<1> last = share_of<1>(p.hidden, p.classes, k.last_across);
    multiply(last, take<LEAST>(last, last_weights, last.split), last_weights, (T *)NULL, in.hidden, in.parts,
             [&](int i, const several &sum) { in.logits[i] = layer<T>(sum, in.last_bias[i], false); });
    if (warp < ROWS)
        lose<T>(p, own, in.logits, warp, row + warp);
    __syncthreads();
    multiply_transposed<1>(last_weights, p.hidden, p.classes, in.logits, [&](int i, const several &sum) {
        in.hidden[i] = passed<T>(sum, in.hidden[i], true);
        put_rows<T>(p.dhidden, row, p.rows, p.hidden, i, in.hidden[i]);
    });
    __syncthreads();
    if (warp == LOSS_WARP && comes_last_with_its_warp(p.counter, gridDim.x)) /* while the others go on */
        average(p);
    weights = k.weights ? in.weights : weights;
    multiply_transposed<V>(weights, p.inputs, p.hidden, in.hidden, [&](int i, const several &sum) {
        put_rows<T>(p.dx, row, p.rows, p.inputs, i, passed<T>(sum, in.x[i], p.relu));
    });
}

bool twi_cuda_dense_loss_fits(int64_t inputs, int64_t hidden, int64_t classes)
{
    return inputs > 0 && hidden > 0 && classes > 0 && inputs + hidden + classes <= TWI_CUDA_DENSE_WIDTH &&
           hidden <= DENSE_THREADS && classes <= DENSE_THREADS;
}

/* Whether so many more bytes of shared memory are to be had; they are taken then. */
static bool take_room(size_t *shared, size_t bytes, size_t most)
{
    bool fits = *shared + bytes <= most;
    *shared += fits ? bytes : 0;
    return fits;
}

template <int V, typename T> static cudaError_t launch(cudaStream_t stream, const twi_cuda_dense_loss &p)
{
    const unsigned blocks = (unsigned)((p.rows + ROWS - 1) / ROWS);
    size_t shared = (size_t)(p.inputs + p.hidden + p.classes + DENSE_THREADS * V) * sizeof(several) +
                          (size_t)(p.hidden + p.classes) * sizeof(float);
    plan k;
    k.across = twi_divider_of(p.hidden / V);
    k.last_across = twi_divider_of(p.classes);
    k.last_weights = take_room(&shared, room_for<T>(p.hidden * p.classes), p.shared);
    k.weights = take_room(&shared, room_for<T>(p.inputs * p.hidden), p.shared);
    return launch_large(blocks, DENSE_THREADS, shared, stream, dense_loss_kernel<V, T>, p, k);
}

template <typename T> static cudaError_t launch_wide(cudaStream_t stream, const twi_cuda_dense_loss &p)
{
    constexpr int V = width<T>::value;
    return p.hidden % V == 0 && is_aligned(p.weights) ? launch<V, T>(stream, p) : launch<1, T>(stream, p);
}

cudaError_t twi_cuda_dense_loss_run(cudaStream_t stream, tw_dtype type, const twi_cuda_dense_loss *p)
{
    FLOAT_TYPES(type, return launch_wide<T>(stream, *p))
}
