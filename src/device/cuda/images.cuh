/* images.cuh - what kernels of images share, NHWC: four channels of a pixel a thread, which cells windows cover, and
 * local response normalization. Elements are counted in 32 bits. */
#ifndef TWI_CUDA_IMAGES_CUH
#define TWI_CUDA_IMAGES_CUH

#include "device/cuda/divide.cuh"
#include "device/cuda/vector.cuh"

/* ---- quads ------------------------------------------------------------------------------------------------------- */

/* A quad is four neighbouring channels, the last of a pixel perhaps fewer. Where the number of channels is a multiple
 * of four and the pointers allow it, all are WHOLE and move at once. */
enum { QUAD = 4 };

/* The quads of images, counted like their elements. */
struct quads {
    int channels, count;
    twi_divider each, columns, rows; /* each: quads of a pixel */
};

struct place {
    int n, row, column, c;
};

static inline quads quads_of(int64_t batch, int64_t rows, int64_t columns, int channels)
{
    int each = (channels + QUAD - 1) / QUAD;
    return {channels, (int)(batch * rows * columns * each), twi_divider_of(each), twi_divider_of(columns),
            twi_divider_of(rows)};
}

static __device__ __forceinline__ place place_of(const quads &q, unsigned i)
{
    unsigned own, column, row;
    unsigned pixel = twi_divide(q.each, i, &own);
    unsigned n = twi_divide(q.rows, twi_divide(q.columns, pixel, &column), &row);
    return {(int)n, (int)row, (int)column, (int)own * QUAD};
}

/* Where channel c of a pixel lies in images of these sides. */
static __device__ __forceinline__ unsigned element_of(const int side[2], int channels, int n, int row, int column, int c)
{
    return (unsigned)(((n * side[0] + row) * side[1] + column) * channels + c);
}

/* The quad at channel c of a pixel; 0 beyond its channels. */
template <bool WHOLE, typename T>
static __device__ __forceinline__ void take_quad(float (&values)[QUAD], const T *pixel, int c, int channels)
{
    if (WHOLE && c >= 0 && c < channels)
        widen(load<QUAD, QUAD>(pixel + c), values);
    else
        for (int k = 0; k < QUAD; k++)
            values[k] = !WHOLE && c + k >= 0 && c + k < channels ? to_float(pixel[c + k]) : 0;
}

/* `to` is where channel c lies. */
template <bool WHOLE, typename T>
static __device__ __forceinline__ void put_quad(T *to, const float (&values)[QUAD], int c, int channels)
{
    if (WHOLE)
        store<QUAD>(to, narrow<T, QUAD>(values));
    else
        for (int k = 0; k < QUAD; k++)
            if (c + k < channels)
                put(to + k, values[k]);
}

static __device__ __forceinline__ unsigned thread_of_launch(void)
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

/* A thread a quad, in blocks that are small enough to spread evenly over a card. */
enum { FEW_THREADS = 128 };

static inline unsigned blocks_of(const quads &q)
{
    return ((unsigned)q.count + FEW_THREADS - 1) / FEW_THREADS;
}

/* Runs the statement with WHOLE true or false. */
#define QUADS(whole, ...)                                                                                              \
    if (whole) {                                                                                                       \
        constexpr bool WHOLE = true;                                                                                   \
        __VA_ARGS__;                                                                                                   \
    } else {                                                                                                           \
        constexpr bool WHOLE = false;                                                                                  \
        __VA_ARGS__;                                                                                                   \
    }

/* Whether quads of these tensors are whole; a pointer may be NULL. */
static inline bool are_whole(int channels, const void *a, const void *b, const void *c, const void *d)
{
    return channels % QUAD == 0 && is_aligned(a) && is_aligned(b) && is_aligned(c) && is_aligned(d);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* A pool, and what its kernels divide by. */
struct pooling {
    twi_cuda_pool p;
    twi_divider stride[2];
};

static inline pooling pooling_of(const twi_cuda_pool *p)
{
    return {*p, {twi_divider_of(p->stride[0]), twi_divider_of(p->stride[1])}};
}

/* The cells [first, last) of window o of a side that lie inside the image. */
static __device__ __forceinline__ void cells_under(const twi_cuda_pool &p, int side, int o, int *first, int *last)
{
    int begin = o * p.stride[side] - p.before[side];
    *first = max(begin, 0);
    *last = min(begin + p.size[side], p.image[side]);
}

/* The windows [first, last) of a side that cover a cell, or the cells from it to the end of their stride. */
static __device__ __forceinline__ void windows_over(const pooling &pool, int side, int cell, int cells, int *first,
                                                    int *last)
{
    const twi_cuda_pool &p = pool.p;
    int start = cell + p.before[side] - p.size[side];
    *first = start < 0 ? 0 : (int)twi_quotient(pool.stride[side], (unsigned)start) + 1;
    *last = (int)twi_quotient(pool.stride[side], (unsigned)(cell + cells - 1 + p.before[side])) + 1;
    *last = min(*last, p.output[side]);
}

enum { AT_HAND = 3 }; /* cells of a row that are read before the first is looked at, so that none waits for another, */

/* and of up to ROWS rows; those that are wider come one by one, so that cells are met in their order. The first maximum
 * of a window, channel by channel, and which of its cells held it; -1: the window covers nothing. What a cell holds
 * `read` says: read(values, row, column) for the thread's quad. */
template <int ROWS, typename R>
static __device__ __forceinline__ void find_maximum(const twi_cuda_pool &p, int row, int column, R read,
                                                    float (&most)[QUAD], int (&cell)[QUAD])
{
    int h0, h1, w0, w1;
    cells_under(p, 0, row, &h0, &h1);
    cells_under(p, 1, column, &w0, &w1);
    const int top = row * p.stride[0] - p.before[0], left = column * p.stride[1] - p.before[1];
    const int rows = w1 - w0 <= AT_HAND ? ROWS : 1;
    bool first = true;
    for (int k = 0; k < QUAD; k++) {
        most[k] = 0;
        cell[k] = -1;
    }
    for (int h = h0; h < h1; h += rows)
        for (int w = w0; w < w1; w += AT_HAND) {
            const int last = min(h + rows, h1) - 1; /* it, or the last column, again changes nothing */
            float values[ROWS][AT_HAND][QUAD];
#pragma unroll
            for (int i = 0; i < ROWS * AT_HAND; i++)
                read(values[i / AT_HAND][i % AT_HAND], min(h + i / AT_HAND, last), min(w + i % AT_HAND, w1 - 1));
#pragma unroll
            for (int i = 0; i < ROWS * AT_HAND; i++)
                for (int k = 0; k < QUAD; k++)
                    if (float value = values[i / AT_HAND][i % AT_HAND][k]; (i == 0 && first) || value > most[k]) {
                        most[k] = value;
                        cell[k] = (h + i / AT_HAND - top) * p.size[1] + w + i % AT_HAND - left;
                    }
            first = false;
        }
}

/* The numbers of cells that a quad of windows chose. */
template <bool WHOLE>
static __device__ __forceinline__ void take_cells(int (&cells)[QUAD], const uint8_t *pixel, int c, int channels)
{
    if (WHOLE) {
        const vector<uint8_t, QUAD> all = load<QUAD, QUAD>(pixel + c);
        for (int k = 0; k < QUAD; k++)
            cells[k] = all.at[k];
    } else
        for (int k = 0; k < QUAD; k++)
            cells[k] = c + k < channels ? pixel[c + k] : 0;
}

template <bool WHOLE>
static __device__ __forceinline__ void put_cells(uint8_t *to, const int (&cells)[QUAD], int c, int channels)
{
    vector<uint8_t, QUAD> all;
    for (int k = 0; k < QUAD; k++)
        all.at[k] = (uint8_t)cells[k];
    if (WHOLE)
        store<QUAD>(to, all);
    else
        for (int k = 0; k < QUAD; k++)
            if (c + k < channels)
                to[k] = all.at[k];
}

/* A thread that gathers for pixels takes SIDE * SIDE of them, so that a window over several is looked at once. Runs the
 * statement with the SIDE that a pool's strides suggest. */
#define SIDES(p, ...)                                                                                                  \
    if ((p)->stride[0] == 2 && (p)->stride[1] == 2) {                                                                  \
        constexpr int SIDE = 2;                                                                                        \
        __VA_ARGS__;                                                                                                   \
    } else {                                                                                                           \
        constexpr int SIDE = 1;                                                                                        \
        __VA_ARGS__;                                                                                                   \
    }

static inline quads squares_of(const twi_cuda_pool *p, int side)
{
    return quads_of(p->batch, (p->image[0] + side - 1) / side, (p->image[1] + side - 1) / side, p->channels);
}

static inline quads windows_of(const twi_cuda_pool *p)
{
    return quads_of(p->batch, p->output[0], p->output[1], p->channels);
}

/* Adds what a window gives to those of the SIDE * SIDE pixels from `at` on that it chose. */
template <int SIDE>
static __device__ __forceinline__ void add_chosen(const twi_cuda_pool &p, const place &at, const int (&cells)[QUAD],
                                                  const float (&gradients)[QUAD], int row, int column,
                                                  float (&sums)[SIDE][SIDE][QUAD])
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int ky = at.row + y + p.before[0] - row * p.stride[0], kx = at.column + x + p.before[1] - column * p.stride[1];
            if (ky < 0 || ky >= p.size[0] || kx < 0 || kx >= p.size[1])
                continue;
            for (int k = 0; k < QUAD; k++)
                sums[y][x][k] += cells[k] == ky * p.size[1] + kx ? gradients[k] : 0;
        }
}

enum { BESIDE = 2 }; /* windows that are looked at before the first is added */

/* What the SIDE * SIDE pixels from `at` on collect from the windows that chose one of them, window by window in order.
 * What a window holds `look` says: look(cells, gradients, row, column). */
template <int SIDE, typename L>
static __device__ __forceinline__ void collect(const pooling &pool, const place &at, L look,
                                               float (&sums)[SIDE][SIDE][QUAD])
{
    const twi_cuda_pool &p = pool.p;
    int row0, row1, column0, column1;
    windows_over(pool, 0, at.row, SIDE, &row0, &row1);
    windows_over(pool, 1, at.column, SIDE, &column0, &column1);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int k = 0; k < QUAD; k++)
                sums[y][x][k] = 0;
    for (int row = row0; row < row1; row++)
        for (int column = column0; column < column1; column += BESIDE) {
            int cells[BESIDE][QUAD];
            float gradients[BESIDE][QUAD];
            for (int i = 0; i < BESIDE; i++)
                look(cells[i], gradients[i], row, min(column + i, column1 - 1));
            for (int i = 0; i < BESIDE && column + i < column1; i++)
                add_chosen(p, at, cells[i], gradients[i], row, column + i, sums);
        }
}

template <bool WHOLE, int SIDE, typename T>
static __device__ __forceinline__ void put_pixels(const twi_cuda_pool &p, const place &at, T *dx,
                                                  const float (&values)[SIDE][SIDE][QUAD])
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (at.row + y < p.image[0] && at.column + x < p.image[1])
                put_quad<WHOLE>(dx + element_of(p.image, p.channels, at.n, at.row + y, at.column + x, at.c),
                                values[y][x], at.c, p.channels);
}

/* ---- local response normalization -------------------------------------------------------------------------------- */

/* A block takes whole pixels, a thread one quad of them. */
enum { MOST_THREADS = TWI_CUDA_MOST_LRN_CHANNELS / (int)QUAD };

static inline unsigned threads_of(const quads &q)
{
    unsigned each = q.each.divisor;
    return each < THREADS ? THREADS / each * each : each;
}

static inline unsigned blocks_of_pixels(const quads &q)
{
    return ((unsigned)q.count + threads_of(q) - 1) / threads_of(q);
}

/* Bytes for so many floats of each element of a block. */
static inline size_t shared_of(const quads &q, int floats)
{
    return (size_t)threads_of(q) * QUAD * (size_t)floats * sizeof(float);
}

/* x^-beta, x > 0. The common exponents take no power: 1/4 is the root of a root. */
static __device__ __forceinline__ void to_minus(const float (&x)[QUAD], float beta, float (&power)[QUAD])
{
    if (beta == 0.75f || beta == 0.5f)
        for (int k = 0; k < QUAD; k++) {
            float root = rsqrtf(x[k]);
            power[k] = beta == 0.5f ? root : root * (root * rsqrtf(root));
        }
    else
        for (int k = 0; k < QUAD; k++)
            power[k] = beta == 1 ? 1 / x[k] : powf(x[k], -beta);
}

/* Sums over |j - (c + k)| <= radius of a pixel's values, or of their squares. */
template <bool WHOLE, bool SQUARES, typename T>
static __device__ __forceinline__ void sum_around(int radius, const T *pixel, int c, int channels, float (&sums)[QUAD])
{
    if (radius == QUAD) { /* the quads beside */
        float v[3][QUAD];
        for (int i = 0; i < 3; i++) {
            take_quad<WHOLE>(v[i], pixel, c + (i - 1) * QUAD, channels);
            for (int k = 0; k < QUAD; k++)
                v[i][k] *= SQUARES ? v[i][k] : 1;
        }
        float middle = v[0][3] + v[1][0] + v[1][1] + v[1][2] + v[1][3] + v[2][0]; /* is in all four sums */
        float left = v[0][1] + v[0][2], right = v[2][1] + v[2][2];
        sums[0] = v[0][0] + left + middle;
        sums[1] = left + middle + v[2][1];
        sums[2] = v[0][2] + middle + right;
        sums[3] = middle + (right + v[2][3]);
        return;
    }
    for (int k = 0; k < QUAD; k++) {
        int first = max(c + k - radius, 0), last = min(c + k + radius, channels - 1);
        sums[k] = 0;
        for (int j = first; j <= last; j++) {
            float value = to_float(pixel[j]);
            sums[k] += SQUARES ? value * value : value;
        }
    }
}

/* x * (bias + alpha * sum of squares around)^-beta, x the pixel's quad at c. */
template <bool WHOLE, typename T>
static __device__ __forceinline__ void normalize(const twi_cuda_lrn &l, const T *pixel, int c, int channels,
                                                 const float (&x)[QUAD], float (&y)[QUAD])
{
    float sums[QUAD], powers[QUAD];
    sum_around<WHOLE, true>(l.radius, pixel, c, channels, sums);
    for (int k = 0; k < QUAD; k++)
        sums[k] = l.bias + l.alpha * sums[k];
    to_minus(sums, l.beta, powers);
    for (int k = 0; k < QUAD; k++)
        y[k] = x[k] * powers[k];
}

/* The gradient of a normalization y of x at a thread's quad, where y's is dy: with s the sums of the forward pass, dy_c
 * * s_c^-beta - 2 alpha beta x_c * sum of dy_j y_j / s_j, j around c. All threads of the block come, with quads that
 * follow each other; `shared` has room for two. y NULL: it is computed again. */
static __device__ __forceinline__ void lrn_gradient(const twi_cuda_lrn &l, float *shared, int c, int channels,
                                                    const float (&x)[QUAD], const float *y, const float (&dy)[QUAD],
                                                    float (&dx)[QUAD])
{
    float *values = shared, *products = shared + blockDim.x * QUAD, sums[QUAD], powers[QUAD], product[QUAD];
    const int own = (int)threadIdx.x * QUAD, pixel = own - c, whole = (channels + QUAD - 1) / QUAD * QUAD;
    store<QUAD>(values + own, narrow<float, QUAD>(x));
    __syncthreads();
    sum_around<true, true>(l.radius, values + pixel, c, whole, sums);
    for (int k = 0; k < QUAD; k++)
        sums[k] = l.bias + l.alpha * sums[k];
    to_minus(sums, l.beta, powers);
    for (int k = 0; k < QUAD; k++)
        product[k] = dy[k] * __fdividef(y ? y[k] : x[k] * powers[k], sums[k]); /* 0 where sums exceed 2^126 */
    store<QUAD>(products + own, narrow<float, QUAD>(product));
    __syncthreads();
    sum_around<true, false>(l.radius, products + pixel, c, whole, sums);
    for (int k = 0; k < QUAD; k++)
        dx[k] = dy[k] * powers[k] + x[k] * (-2 * l.alpha * l.beta * sums[k]);
}

/* Where the ReLU before was shut nothing goes on. */
static __device__ __forceinline__ void shut(bool relu, const float (&x)[QUAD], float (&dx)[QUAD])
{
    for (int k = 0; k < QUAD; k++)
        if (relu && x[k] <= 0)
            dx[k] = 0;
}

/* Where a thread stands in a block that looks at `slots` whole pixels at once. */
struct standing {
    int slot, slots, c;
};

/* The gradient of a normalization by what was pooled in so many windows, which lies in shared memory then; `room` is
 * for two quads of each thread. A pixel that was not above 0 and was chosen all the same is where the ReLU was shut.
 * What was pooled, and the gradient behind, `read` says: read(x, dy, window). */
template <typename R>
static __device__ __forceinline__ void pooled_gradients(const twi_cuda_lrn &l, bool relu, const standing &own,
                                                        int windows, R read, float *room, float *gradients)
{
    const int padded = (l.channels + QUAD - 1) / QUAD * QUAD;
    for (int first = 0; first < windows; first += own.slots) { /* all threads come */
        const int window = first + own.slot;
        float x[QUAD] = {0, 0, 0, 0}, dy[QUAD] = {0, 0, 0, 0}, dx[QUAD];
        if (window < windows)
            read(x, dy, window);
        lrn_gradient(l, room, own.c, l.channels, x, NULL, dy, dx);
        shut(relu, x, dx);
        if (window < windows)
            store<QUAD>(gradients + window * padded + own.c, narrow<float, QUAD>(dx));
    }
    __syncthreads();
}

#endif
