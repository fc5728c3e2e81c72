/* loops.inl - the loops of loops.h over rows, pixels and images; built once a vector unit.
 * The including file says how wide vectors are (TWI_VECTOR_BYTES), what to call the table (TWI_LOOPS) and its name
 * (TWI_LOOPS_NAME), and sets the target of the compiler. */
#include "device/cpu/plain/typed.h" /* TWI_VECTOR_LOOP */
#include "device/cpu/vector/doubles.h"
#include "device/cpu/vector/rows.h"

#include <math.h>

/* Calls a loop with the form as a constant, so that no choice is left inside. */
#define WITH_FORM(form, loop, ...) ((form) == TWI_BFLOATS ? loop(TWI_BFLOATS, __VA_ARGS__) : loop(TWI_FLOATS, __VA_ARGS__))

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline const void *bytes_on(const void *p, size_t bytes)
{
    return (const char *)p + bytes;
}

/* ---- element by element ------------------------------------------------------------------------------------ */

static inline TWI_INLINE void cast_range(twi_form form, const twi_elements_job *j, int64_t i, int64_t end)
{
    twi_form to = form == TWI_FLOATS ? TWI_BFLOATS : TWI_FLOATS;
    for (; i + TWI_LANES <= end; i += TWI_LANES)
        twi_store(to, j->out, i, twi_load(form, j->a, i));
    if (i < end)
        twi_store_some(to, j->out, i, twi_load_some(form, j->a, i, TWI_FIRST(end - i)), TWI_FIRST(end - i));
}

static void cast(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_elements_job *j = job;
    (void)thread;
    WITH_FORM(j->form, cast_range, j, first * TWI_CHUNK, smaller(last * TWI_CHUNK, j->elements));
}

#define CAST_LOOP(op, from, from_type, to, to_type, value)                                                             \
    static void op##_##from##_##to##_loop(const void *job, int64_t first, int64_t last, int thread)                    \
    {                                                                                                                  \
        const twi_elements_job *j = job;                                                                               \
        const from_type *restrict xs = j->a;                                                                           \
        to_type *restrict ys = j->out;                                                                                 \
        int64_t end = smaller(last * TWI_CHUNK, j->elements);                                                          \
        (void)thread;                                                                                                  \
        TWI_VECTOR_LOOP                                                                                                \
        for (int64_t i = first * TWI_CHUNK; i < end; i++) {                                                            \
            from_type x = xs[i];                                                                                       \
            ys[i] = value;                                                                                             \
        }                                                                                                              \
    }
TWI_CASTS(CAST_LOOP)

/* A ReLU hands NaN on; its gradient passes where the ReLU's input, or its output, is positive, that of a ReLU6 where it is
 * also below 6. */
static inline TWI_INLINE twi_floats rectified(twi_rectifier kind, twi_floats x, float slope)
{
    if (kind == TWI_LEAKY_RELU)
        return twi_choose(x > 0, x, slope * x);
    twi_floats y = twi_pass(~(x <= 0), x);
    return kind == TWI_RELU6 ? twi_choose(y > 6, (twi_floats){0} + 6, y) : y;
}

static inline TWI_INLINE twi_floats rectified_gradient(twi_rectifier kind, twi_floats dy, twi_floats x, float slope)
{
    if (kind == TWI_LEAKY_RELU)
        return twi_choose(x > 0, dy, slope * dy);
    return twi_pass(kind == TWI_RELU6 ? (x > 0) & (x < 6) : x > 0, dy);
}

static inline TWI_INLINE void relu_some(twi_form form, twi_rectifier kind, bool gradient, const twi_elements_job *j,
                                        int64_t i, twi_lanes lanes)
{
    twi_floats a = twi_load_some(form, j->a, i, lanes);
    if (gradient)
        a = rectified_gradient(kind, a, twi_load_some(form, j->b, i, lanes), j->slope);
    else
        a = rectified(kind, a, j->slope);
    twi_store_some(form, j->out, i, a, lanes);
}

static inline TWI_INLINE void relu_of_kind(twi_form form, twi_rectifier kind, bool gradient, const twi_elements_job *j,
                                           int64_t i, int64_t end)
{
    for (; i + TWI_LANES <= end; i += TWI_LANES)
        relu_some(form, kind, gradient, j, i, TWI_ALL);
    if (i < end)
        relu_some(form, kind, gradient, j, i, TWI_FIRST(end - i));
}

static inline TWI_INLINE void relu_range(twi_form form, bool gradient, const twi_elements_job *j, int64_t i, int64_t end)
{
    if (j->rectifier == TWI_RELU)
        relu_of_kind(form, TWI_RELU, gradient, j, i, end);
    else if (j->rectifier == TWI_RELU6)
        relu_of_kind(form, TWI_RELU6, gradient, j, i, end);
    else
        relu_of_kind(form, TWI_LEAKY_RELU, gradient, j, i, end);
}

static void relu(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_elements_job *j = job;
    (void)thread;
    WITH_FORM(j->form, relu_range, false, j, first * TWI_CHUNK, smaller(last * TWI_CHUNK, j->elements));
}

static void relu_gradient(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_elements_job *j = job;
    (void)thread;
    WITH_FORM(j->form, relu_range, true, j, first * TWI_CHUNK, smaller(last * TWI_CHUNK, j->elements));
}

/* ---- functions ----------------------------------------------------------------------------------------------- */

typedef twi_floats some_floats;
typedef twi_doubles some_doubles;
enum { LANES_OF_floats = TWI_LANES, LANES_OF_doubles = TWI_DOUBLE_LANES };
#define ALL_floats TWI_ALL
#define ALL_doubles ((twi_lanes){true, TWI_DOUBLE_LANES})

static inline TWI_INLINE twi_floats load_floats(const float *p, int64_t i, twi_lanes lanes)
{
    return twi_load_some(TWI_FLOATS, p, i, lanes);
}

static inline TWI_INLINE void store_floats(float *p, int64_t i, twi_floats x, twi_lanes lanes)
{
    twi_store_some(TWI_FLOATS, p, i, x, lanes);
}

static inline TWI_INLINE twi_doubles load_doubles(const double *p, int64_t i, twi_lanes lanes)
{
    twi_doubles x = {0};
    memcpy(&x, p + i, (size_t)lanes.count * sizeof *p);
    return x;
}

static inline TWI_INLINE void store_doubles(double *p, int64_t i, twi_doubles x, twi_lanes lanes)
{
    memcpy(p + i, &x, (size_t)lanes.count * sizeof *p);
}

#define UNARY_LOOP_OF(kind, loop, expression)                                                                          \
    static void loop(const void *job, int64_t first, int64_t last, int thread)                                         \
    {                                                                                                                  \
        const twi_function_job own = *(const twi_function_job *)job, *j = &own;                                        \
        int64_t i = first * TWI_CHUNK, end = smaller(last * TWI_CHUNK, j->elements);                                   \
        (void)thread;                                                                                                  \
        for (; i + LANES_OF_##kind <= end; i += LANES_OF_##kind) {                                                     \
            some_##kind x = load_##kind(j->x, i, ALL_##kind);                                                          \
            store_##kind(j->out, i, expression, ALL_##kind);                                                           \
        }                                                                                                              \
        if (i < end) {                                                                                                 \
            some_##kind x = load_##kind(j->x, i, TWI_FIRST(end - i));                                                  \
            store_##kind(j->out, i, expression, TWI_FIRST(end - i));                                                   \
        }                                                                                                              \
    }
#define UNARY_LOOP(op, expression) UNARY_LOOP_OF(floats, op##_loop, expression)
#define UNARY_LOOP_OF_DOUBLES(op, expression) UNARY_LOOP_OF(doubles, op##_of_doubles_loop, expression)
TWI_UNARY_FUNCTIONS(UNARY_LOOP)
TWI_UNARY_FUNCTIONS_OF_DOUBLES(UNARY_LOOP_OF_DOUBLES)

/* Where a run begins in x, y and the output, of numbers of so many bytes. */
static inline twi_function_job run_of(const twi_function_job *j, int64_t run, size_t size)
{
    int64_t x, y;
    twi_broadcast_start(j->walk, run, &x, &y);
    return (twi_function_job){.x = bytes_on(j->x, (size_t)x * size), .y = bytes_on(j->y, (size_t)y * size),
                              .out = (char *)j->out + (size_t)(run * j->walk->run) * size};
}

#define OPERAND_OF(kind, number)                                                                                       \
    static inline TWI_INLINE some_##kind operand_of_##kind(bool moves, const number *p, int64_t i, twi_lanes lanes)    \
    {                                                                                                                  \
        return moves ? load_##kind(p, i, lanes) : (some_##kind){0} + *p;                                               \
    }
OPERAND_OF(floats, float)
OPERAND_OF(doubles, double)

/* Elements i to end of a run. An operand that does not move is not written to: it has one element, the output more. */
#define BINARY_LOOP_OF(kind, op, expression)                                                                           \
    static inline TWI_INLINE void op##_some(const twi_function_job *j, bool x_moves, bool y_moves, int64_t i,          \
                                            twi_lanes lanes)                                                           \
    {                                                                                                                  \
        some_##kind x = operand_of_##kind(x_moves, j->x, i, lanes), y = operand_of_##kind(y_moves, j->y, i, lanes);    \
        store_##kind(j->out, i, expression, lanes);                                                                    \
    }                                                                                                                  \
    static inline TWI_INLINE void op##_moving(const twi_function_job *j, bool x_moves, bool y_moves, int64_t i,        \
                                              int64_t end)                                                             \
    {                                                                                                                  \
        for (; i + LANES_OF_##kind <= end; i += LANES_OF_##kind)                                                       \
            op##_some(j, x_moves, y_moves, i, ALL_##kind);                                                             \
        if (i < end)                                                                                                   \
            op##_some(j, x_moves, y_moves, i, TWI_FIRST(end - i));                                                     \
    }                                                                                                                  \
    static inline void op##_range(const twi_broadcast *walk, twi_function_job j, int64_t i, int64_t end)               \
    {                                                                                                                  \
        if (walk->x_moves && walk->y_moves)                                                                            \
            op##_moving(&j, true, true, i, end);                                                                       \
        else if (walk->x_moves)                                                                                        \
            op##_moving(&j, true, false, i, end);                                                                      \
        else                                                                                                           \
            op##_moving(&j, false, true, i, end);                                                                      \
    }                                                                                                                  \
    static void op##_loop(const void *job, int64_t first, int64_t last, int thread)                                    \
    {                                                                                                                  \
        const twi_function_job *j = job;                                                                               \
        (void)thread;                                                                                                  \
        if (j->walk->runs == 1)                                                                                        \
            op##_range(j->walk, *j, first * TWI_CHUNK, smaller(last * TWI_CHUNK, j->elements));                        \
        for (int64_t run = first; run < last && j->walk->runs > 1; run++)                                              \
            op##_range(j->walk, run_of(j, run, sizeof(some_##kind) / LANES_OF_##kind), 0, j->walk->run);               \
    }
#define BINARY_LOOP(op, expression) BINARY_LOOP_OF(floats, op, expression)
#define BINARY_LOOP_OF_DOUBLES(op, expression) BINARY_LOOP_OF(doubles, op##_of_doubles, expression)
TWI_BINARY_FUNCTIONS(BINARY_LOOP)
TWI_BINARY_FUNCTIONS_OF_DOUBLES(BINARY_LOOP_OF_DOUBLES)

/* ---- Fourier transforms ---------------------------------------------------------------------------------------- */

#include "device/cpu/vector/transform.inl"

/* ---- random numbers -------------------------------------------------------------------------------------------- */

enum { BLOCKS = TWI_LANES / 2 }; /* of Philox at a time: each in the low halves of a vector's longs */

/* The bits of a float in [1, 2) each, as twi_uniform_float() has them. */
static inline TWI_INLINE twi_floats uniform_pairs(twi_longs low, twi_longs high)
{
    twi_words words = (twi_words)((low & 0xffffffffu) | high << 32);
    return (twi_floats)((words & 0x7fffff) | 127u << 23) - 1.0f;
}

/* BLOCKS blocks from the place where `philox` stands, whose lowest counter does not run over; see twi_philox_next(). */
static inline TWI_INLINE void uniform_blocks(const twi_philox *philox, float *out)
{
    twi_longs zero = {0}, c0 = zero + philox->counter[0], c1 = zero + philox->counter[1];
    twi_longs c2 = zero + philox->counter[2], c3 = zero + philox->counter[3];
    uint32_t k0 = philox->key[0], k1 = philox->key[1];
    double pairs[2][BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        c0[i] += (uint64_t)i;
    for (int round = 0; round < 10; round++) {
        twi_longs a = twi_product_of_words(c0, 0xD2511F53u), b = twi_product_of_words(c2, 0xCD9E8D57u);
        c0 = (b >> 32) ^ c1 ^ k0;
        c2 = (a >> 32) ^ c3 ^ k1;
        c1 = b;
        c3 = a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    twi_floats first = uniform_pairs(c0, c1), second = uniform_pairs(c2, c3);
    memcpy(pairs[0], &first, sizeof first);
    memcpy(pairs[1], &second, sizeof second);
    for (int i = 0; i < BLOCKS; i++) {
        memcpy(out + 4 * i, &pairs[0][i], sizeof(double));
        memcpy(out + 4 * i + 2, &pairs[1][i], sizeof(double));
    }
}

static void uniform(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_uniform_job *j = job;
    twi_philox here = j->start;
    int64_t i = first * TWI_CHUNK, end = smaller(last * TWI_CHUNK, j->elements);
    (void)thread;
    twi_philox_skip(&here, (uint64_t)i / 4);
    while (i < end) {
        if (i + 4 * BLOCKS <= end && here.counter[0] <= UINT32_MAX - BLOCKS) {
            uniform_blocks(&here, j->out + i);
            twi_philox_skip(&here, BLOCKS);
            i += 4 * BLOCKS;
            continue;
        }
        uint32_t words[4];
        twi_philox_next(&here, words);
        for (int k = 0; k < 4 && i < end; k++)
            j->out[i++] = twi_uniform_float(words[k]);
    }
}

/* ---- updates of many variables ------------------------------------------------------------------------------- */

/* One variable's share of an update. */
typedef struct updated {
    float *var;
    const float *values[2], *decays[2]; /* of each tower; a decay may be NULL */
    float rate, scale;
} updated;

enum update { DESCEND, DESCEND_WITH_DECAY, DESCEND_BY_MEAN, DESCEND_BY_MEAN_WITH_DECAY, FOLLOW };

static inline TWI_INLINE twi_floats gradient_of(const updated *u, int tower, bool decays, twi_floats x, int64_t i,
                                                twi_lanes lanes)
{
    twi_floats v = twi_load_some(TWI_FLOATS, u->values[tower], i, lanes);
    return decays && u->decays[tower] ? v + *u->decays[tower] * x : v;
}

static inline TWI_INLINE void update_some(enum update kind, const updated *u, int64_t i, twi_lanes lanes)
{
    bool decays = kind == DESCEND_WITH_DECAY || kind == DESCEND_BY_MEAN_WITH_DECAY;
    twi_floats x = twi_load_some(TWI_FLOATS, u->var, i, lanes), v = gradient_of(u, 0, decays, x, i, lanes);
    if (kind == DESCEND_BY_MEAN || kind == DESCEND_BY_MEAN_WITH_DECAY)
        v = (v + gradient_of(u, 1, decays, x, i, lanes)) * u->scale;
    x = x - (kind == FOLLOW ? (x - v) * u->rate : u->rate * v);
    twi_store_some(TWI_FLOATS, u->var, i, x, lanes);
}

static inline TWI_INLINE void update_range(enum update kind, const updated *u, int64_t i, int64_t end)
{
    for (; i + TWI_LANES <= end; i += TWI_LANES)
        update_some(kind, u, i, TWI_ALL);
    if (i < end)
        update_some(kind, u, i, TWI_FIRST(end - i));
}

/* Chunks first to last of all variables: of each those that are its own. */
static inline TWI_INLINE void update(const twi_update_job *j, bool follows, int64_t first, int64_t last)
{
    for (int v = 0; v < j->count; v++) {
        int64_t begin = first - j->first_chunk[v], end = last - j->first_chunk[v];
        int64_t i = begin < 0 ? 0 : begin * TWI_CHUNK;
        end = end < 0 ? 0 : smaller(end * TWI_CHUNK, j->elements[v]);
        updated u = {.var = (float *)j->vars[v], .values[0] = j->values[v], .rate = j->rate, .scale = j->scale};
        if (follows) {
            update_range(FOLLOW, &u, i, end);
            continue;
        }
        u.decays[0] = j->decays[v];
        if (j->towers == 2) {
            u.values[1] = j->values[j->count + v];
            u.decays[1] = j->decays[j->count + v];
            update_range(u.decays[0] || u.decays[1] ? DESCEND_BY_MEAN_WITH_DECAY : DESCEND_BY_MEAN, &u, i, end);
        } else {
            update_range(u.decays[0] ? DESCEND_WITH_DECAY : DESCEND, &u, i, end);
        }
    }
}

static void descend(const void *job, int64_t first, int64_t last, int thread)
{
    (void)thread;
    update(job, false, first, last);
}

static void follow(const void *job, int64_t first, int64_t last, int thread)
{
    (void)thread;
    update(job, true, first, last);
}

/* ---- sums of axes ------------------------------------------------------------------------------------------ */

/* As the plain kernels sum up, to the bit: in double, SUM_LANES neighbours each for itself. */
enum { SUM_LANES = 16, DOUBLES = TWI_LANES / 2, SUM_VECTORS = SUM_LANES / DOUBLES };

static inline TWI_INLINE void add_lanes(twi_doubles sums[SUM_VECTORS], const float *x)
{
#pragma GCC unroll 8
    for (int v = 0; v < SUM_VECTORS; v++) {
        twi_singles some;
        memcpy(&some, x + v * DOUBLES, sizeof some);
        sums[v] += __builtin_convertvector(some, twi_doubles);
    }
}

static inline int64_t start_of_reduced(const twi_reduction *d, int64_t k, int from)
{
    if (d->num_reduced - from == 1)
        return k * d->reduced_step[from];
    return twi_reduction_start(k, d->num_reduced - from, d->reduced_size + from, d->reduced_step + from);
}

/* Outputs first to last, each of runs of neighbours. */
static void sum_runs(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_sum_job *j = job;
    const twi_reduction *d = j->reduction;
    int64_t runs = d->run ? d->inputs / d->run : 0;
    (void)thread;
    for (int64_t o = first; o < last; o++) {
        const float *base = j->x + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);
        twi_doubles sums[SUM_VECTORS] = {{0}};
        double lanes[SUM_LANES], rest = 0;
        for (int64_t k = 0; k < runs; k++) {
            const float *at = base + start_of_reduced(d, k, d->run > 1);
            int64_t i = 0;
            for (; i + SUM_LANES <= d->run; i += SUM_LANES)
                add_lanes(sums, at + i);
            if (i == d->run)
                continue;
            memcpy(lanes, sums, sizeof lanes);
            for (rest = lanes[0]; i < d->run; i++)
                rest += (double)at[i];
            sums[0][0] = rest;
        }
        memcpy(lanes, sums, sizeof lanes);
        for (int i = 1; i < SUM_LANES; i++)
            lanes[0] += lanes[i];
        j->out[o] = (float)(lanes[0] / j->divisor);
    }
}

/* Groups of SUM_LANES neighbouring columns. */
static inline TWI_INLINE void sum_group(const twi_sum_job *j, const float *base, float *out, int groups)
{
    const twi_reduction *d = j->reduction;
    twi_doubles sums[TWI_SUM_COLUMNS / SUM_LANES][SUM_VECTORS] = {{{0}}};
    for (int64_t k = 0; k < d->inputs; k++) {
        const float *row = base + start_of_reduced(d, k, 0);
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++)
            add_lanes(sums[g], row + g * SUM_LANES);
    }
    for (int g = 0; g < groups; g++)
        for (int v = 0; v < SUM_VECTORS; v++) {
            twi_singles some = __builtin_convertvector(sums[g][v] / j->divisor, twi_singles);
            memcpy(out + g * SUM_LANES + v * DOUBLES, &some, sizeof some);
        }
}

static void sum_columns(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_sum_job *j = job;
    const twi_reduction *d = j->reduction;
    int64_t width = d->kept_size[0], blocks = (width + TWI_SUM_COLUMNS - 1) / TWI_SUM_COLUMNS;
    (void)thread;
    for (int64_t item = first; item < last; item++) {
        int64_t column = item % blocks * TWI_SUM_COLUMNS, o = item / blocks * width + column;
        int64_t end = smaller(width - column, TWI_SUM_COLUMNS), c = 0;
        const float *base = j->x + twi_reduction_start(o, d->num_kept, d->kept_size, d->kept_step);
        if (end == TWI_SUM_COLUMNS) {
            sum_group(j, base, j->out + o, TWI_SUM_COLUMNS / SUM_LANES);
            continue;
        }
        for (; c + SUM_LANES <= end; c += SUM_LANES)
            sum_group(j, base + c, j->out + o + c, 1);
        for (; c < end; c++) {
            double sum = 0;
            for (int64_t k = 0; k < d->inputs; k++)
                sum += (double)base[start_of_reduced(d, k, 0) + c];
            j->out[o + c] = (float)(sum / j->divisor);
        }
    }
}

/* ---- rows: biases and batch normalization ------------------------------------------------------------------ */

/* Defines a loop over rows that does `step` to all their vectors, with a job of its own, which no store can change. It
 * goes backwards: where it is the second pass over its rows, what the first read last is still in the cache. */
#define ROW_LOOP(name, step)                                                                                           \
    static inline TWI_INLINE void name##_range(twi_form form, const twi_rows_job *job, int64_t first, int64_t last)    \
    {                                                                                                                  \
        const twi_rows_job own = *job, *j = &own;                                                                      \
        for (int64_t row = last; row-- > first;) {                                                                     \
            int64_t c = 0, at = row * j->channels;                                                                     \
            for (; c + TWI_LANES <= j->channels; c += TWI_LANES)                                                       \
                step(form, j, at + c, c, TWI_ALL);                                                                     \
            if (c < j->channels)                                                                                       \
                step(form, j, at + c, c, TWI_FIRST(j->channels - c));                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(const void *job, int64_t first, int64_t last, int thread)                                        \
    {                                                                                                                  \
        const twi_rows_job *j = job;                                                                                   \
        (void)thread;                                                                                                  \
        WITH_FORM(j->form, name##_range, j, first, last);                                                              \
    }

static inline TWI_INLINE void add_bias_step(twi_form form, const twi_rows_job *j, int64_t at, int64_t c,
                                            twi_lanes lanes)
{
    twi_store_some(form, j->out, at,
                   twi_load_some(form, j->x, at, lanes) + twi_load_some(form, j->bias, c, lanes), lanes);
}
ROW_LOOP(add_bias, add_bias_step)

/* Numbers in a page of memory. As far ahead loops ask for what they need: the CPU does so too, but stops at a page's
 * end. */
static inline TWI_INLINE int64_t page(twi_form form)
{
    return 4096 / (int64_t)twi_form_bytes(form);
}

static inline TWI_INLINE void prefetch(twi_form form, const void *p, int64_t at)
{
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)at * twi_form_bytes(form)), 0, 2);
}

static inline TWI_INLINE twi_floats centred_at(twi_form form, const twi_rows_job *j, int64_t at, int64_t c,
                                               twi_lanes lanes)
{
    return twi_load_some(form, j->x, at, lanes) - twi_load_some(TWI_FLOATS, j->mean, c, lanes);
}

/* (x - mean) * factor + offset */
static inline TWI_INLINE twi_floats scaled(const twi_rows_job *j, twi_floats centred, int64_t c, twi_lanes lanes)
{
    return centred * twi_load_some(TWI_FLOATS, j->factor, c, lanes) + twi_load_some(TWI_FLOATS, j->offset, c, lanes);
}

static inline TWI_INLINE void normalize_step(twi_form form, const twi_rows_job *j, int64_t at, int64_t c,
                                             twi_lanes lanes)
{
    prefetch(form, j->x, at - page(form));
    prefetch(form, j->out, at - page(form));
    twi_floats y = scaled(j, centred_at(form, j, at, c, lanes), c, lanes);
    if (j->side) {
        prefetch(form, j->side, at - page(form));
        y += twi_load_some(form, j->side, at, lanes);
    }
    twi_store_some(form, j->out, at, j->relu ? twi_pass(~(y <= 0), y) : y, lanes);
}
ROW_LOOP(normalize_rows, normalize_step)

/* The gradient of what the normalization gave. */
static inline TWI_INLINE twi_floats gradient_at(twi_form form, const twi_rows_job *j, int64_t at, int64_t c,
                                                twi_floats centred, twi_lanes lanes, int64_t ahead)
{
    prefetch(form, j->x, at + ahead);
    prefetch(form, j->dy, at + ahead);
    twi_floats dy = twi_load_some(form, j->dy, at, lanes), y;
    if (j->more_dy) {
        prefetch(form, j->more_dy, at + ahead);
        dy += twi_load_some(form, j->more_dy, at, lanes);
    }
    if (!j->relu)
        return dy;
    if (j->y) {
        prefetch(form, j->y, at + ahead);
        y = twi_load_some(form, j->y, at, lanes);
    } else {
        y = scaled(j, centred, c, lanes);
    }
    return twi_pass(y > 0, dy);
}

/* dx = factor * (dy - mean_dy - (x - mean) * mean_product) */
static inline TWI_INLINE void normalize_gradient_step(twi_form form, const twi_rows_job *j, int64_t at, int64_t c,
                                                      twi_lanes lanes)
{
    twi_floats centred = centred_at(form, j, at, c, lanes);
    twi_floats dx = gradient_at(form, j, at, c, centred, lanes, -page(form)) -
                    twi_load_some(TWI_FLOATS, j->mean_dy, c, lanes) -
                    centred * twi_load_some(TWI_FLOATS, j->mean_product, c, lanes);
    twi_store_some(form, j->out, at, twi_load_some(TWI_FLOATS, j->factor, c, lanes) * dx, lanes);
}
ROW_LOOP(normalize_rows_gradient, normalize_gradient_step)

/* What is summed: values; squares; values, then squares of x - their mean in the chunk; dy and dy * (x - mean). */
enum sum { VALUES, SQUARES, MOMENTS, PRODUCTS };

/* Vectors of channels summed together, so that a row is read in whole cache lines. */
enum { TOGETHER = 4 };

static inline TWI_INLINE void sum_some(twi_form form, enum sum kind, const twi_rows_job *job, int64_t chunk, int64_t c,
                                       int vectors, twi_lanes lanes)
{
    const twi_rows_job own = *job, *j = &own;
    twi_floats sums[TOGETHER] = {0}, products[TOGETHER] = {0};
    int64_t begin = chunk * TWI_CHUNK_ROWS, end = smaller(begin + TWI_CHUNK_ROWS, j->rows);
    int64_t to = chunk * j->channels + c, ahead = (page(form) + j->channels - 1) / j->channels * j->channels;
    for (int64_t row = begin; row < end; row++)
        for (int v = 0; v < vectors; v++) {
            int64_t i = c + v * TWI_LANES, at = row * j->channels + i;
            if (kind != PRODUCTS) {
                twi_floats x = twi_load_some(form, j->x, at, lanes);
                sums[v] += kind == SQUARES ? x * x : x;
                continue;
            }
            twi_floats centred = centred_at(form, j, at, i, lanes);
            twi_floats dy = gradient_at(form, j, at, i, centred, lanes, ahead);
            sums[v] += dy;
            products[v] += dy * centred;
            if (j->masked) {
                prefetch(form, j->masked, at + ahead);
                twi_store_some(form, j->masked, at, dy, lanes);
            }
        }
    twi_floats mean[TOGETHER];
    for (int v = 0; v < vectors && kind == MOMENTS; v++)
        mean[v] = sums[v] / (float)(end - begin);
    /* the chunk is in the cache now; meanwhile the next one comes */
    for (int64_t row = begin; row < end && kind == MOMENTS; row++)
        for (int v = 0; v < vectors; v++) {
            int64_t at = row * j->channels + c + v * TWI_LANES;
            prefetch(form, j->x, at + TWI_CHUNK_ROWS * j->channels);
            twi_floats x = twi_load_some(form, j->x, at, lanes);
            products[v] += (x - mean[v]) * (x - mean[v]);
        }
    for (int v = 0; v < vectors; v++) {
        twi_store_some(TWI_FLOATS, j->sums, to + v * TWI_LANES, sums[v], lanes);
        if (kind == MOMENTS || kind == PRODUCTS)
            twi_store_some(TWI_FLOATS, j->products, to + v * TWI_LANES, products[v], lanes);
    }
}

static inline TWI_INLINE void sum_range(twi_form form, enum sum kind, const twi_rows_job *j, int64_t first,
                                        int64_t last)
{
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t c = 0;
        for (; c + TOGETHER * TWI_LANES <= j->channels; c += TOGETHER * TWI_LANES)
            sum_some(form, kind, j, chunk, c, TOGETHER, TWI_ALL);
        for (; c + TWI_LANES <= j->channels; c += TWI_LANES)
            sum_some(form, kind, j, chunk, c, 1, TWI_ALL);
        if (c < j->channels)
            sum_some(form, kind, j, chunk, c, 1, TWI_FIRST(j->channels - c));
    }
}

static void sum_rows(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_rows_job *j = job;
    (void)thread;
    WITH_FORM(j->form, sum_range, VALUES, j, first, last);
}

static void sum_squares(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_rows_job *j = job;
    (void)thread;
    WITH_FORM(j->form, sum_range, SQUARES, j, first, last);
}

static void sum_moments(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_rows_job *j = job;
    (void)thread;
    WITH_FORM(j->form, sum_range, MOMENTS, j, first, last);
}

static void sum_products(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_rows_job *j = job;
    (void)thread;
    WITH_FORM(j->form, sum_range, PRODUCTS, j, first, last);
}

/* ---- images ------------------------------------------------------------------------------------------------ */

/* Bytes of so many pixels. */
static inline TWI_INLINE size_t pixel_bytes(twi_form form, int64_t channels, int64_t pixels)
{
    return (size_t)(pixels * channels) * twi_form_bytes(form);
}

/* A thread's scratch for the normalization, ready for use. */
static inline TWI_INLINE float *lrn_scratch(const twi_image_job *j, int thread)
{
    float *scratch = (float *)(j->workspace + (size_t)thread * j->scratch);
    memset(scratch, 0, j->lrn_scratch);
    return scratch;
}

static inline TWI_INLINE void *image_scratch(const twi_image_job *j, int thread)
{
    return j->workspace + (size_t)thread * j->scratch + j->lrn_scratch;
}

static inline TWI_INLINE void normalize(twi_form form, twi_form out, const twi_lrn *l, int64_t pixels,
                                        const void *x, void *y, float *scratch)
{
    for (; pixels > 0; pixels -= TWI_LRN_PIXELS) {
        twi_lrn_pixels(form, out, l, smaller(pixels, TWI_LRN_PIXELS), x, y, scratch);
        x = bytes_on(x, pixel_bytes(form, l->channels, TWI_LRN_PIXELS));
        y = (char *)y + pixel_bytes(out, l->channels, TWI_LRN_PIXELS);
    }
}

static inline TWI_INLINE void normalize_gradient(twi_form in, twi_form form, twi_form out, const twi_lrn *l, bool relu,
                                                 int64_t pixels, const void *dy, const void *x, const void *y,
                                                 void *dx, float *scratch)
{
    for (; pixels > 0; pixels -= TWI_LRN_PIXELS) {
        twi_lrn_gradient_pixels(in, form, out, l, relu, smaller(pixels, TWI_LRN_PIXELS), dy, x, y, dx, scratch);
        dy = bytes_on(dy, pixel_bytes(in, l->channels, TWI_LRN_PIXELS));
        x = bytes_on(x, pixel_bytes(form, l->channels, TWI_LRN_PIXELS));
        y = y ? bytes_on(y, pixel_bytes(form, l->channels, TWI_LRN_PIXELS)) : NULL;
        dx = (char *)dx + pixel_bytes(out, l->channels, TWI_LRN_PIXELS);
    }
}

/* Output row i of all: its image, its place. */
static inline TWI_INLINE const void *image_of_row(twi_form form, const twi_image_job *j, int64_t i)
{
    const twi_pool *p = &j->pool;
    return bytes_on(j->input, pixel_bytes(form, p->channels, i / p->out_height * p->height * p->width));
}

static inline TWI_INLINE void max_pool_range(twi_form form, const twi_image_job *j, int64_t first, int64_t last)
{
    const twi_pool *p = &j->pool;
    size_t row = pixel_bytes(form, p->channels, p->out_width);
    for (int64_t i = first; i < last; i++)
        twi_max_row(form, form, p, image_of_row(form, j, i), i % p->out_height, TWI_MAXIMUM,
                    (char *)j->output + (size_t)i * row, NULL);
}

static void max_pool(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_image_job *j = job;
    (void)thread;
    WITH_FORM(j->form, max_pool_range, j, first, last);
}

/* Gradients of one image's rows from the windows' argmax. */
static inline TWI_INLINE void spread(twi_form from, twi_form to, const twi_pool *p, const void *gradient,
                                     const uint8_t *argmax, void *image)
{
    for (int64_t y = 0; y < p->height; y++)
        twi_spread_row(from, to, p, gradient, argmax, y,
                       (char *)image + pixel_bytes(to, p->channels, y * p->width));
}

/* Finds the maxima again: the op gets none from forward. */
static inline TWI_INLINE void max_pool_gradient_range(twi_form form, const twi_image_job *j, int64_t first,
                                                      int64_t last, int thread)
{
    const twi_pool *p = &j->pool;
    size_t image = pixel_bytes(form, p->channels, p->height * p->width);
    size_t pooled = pixel_bytes(form, p->channels, p->out_height * p->out_width);
    uint8_t *argmax = image_scratch(j, thread);
    for (int64_t n = first; n < last; n++) {
        for (int64_t oy = 0; oy < p->out_height; oy++)
            twi_max_row(form, form, p, bytes_on(j->input, (size_t)n * image), oy, TWI_ARGMAX, NULL,
                        argmax + oy * p->out_width * p->channels);
        spread(form, form, p, bytes_on(j->gradient, (size_t)n * pooled), argmax, (char *)j->output + (size_t)n * image);
    }
}

static void max_pool_gradient(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_image_job *j = job;
    WITH_FORM(j->form, max_pool_gradient_range, j, first, last, thread);
}

static inline TWI_INLINE void lrn_range(twi_form form, const twi_image_job *j, int64_t first, int64_t last,
                                        float *scratch)
{
    int64_t begin = first * TWI_LRN_PIXELS, pixels = smaller(last * TWI_LRN_PIXELS, j->pixels) - begin;
    size_t at = pixel_bytes(form, j->lrn.channels, begin);
    if (j->gradient)
        normalize_gradient(form, form, form, &j->lrn, false, pixels, bytes_on(j->gradient, at), bytes_on(j->input, at),
                           bytes_on(j->normalized, at), (char *)j->output + at, scratch);
    else
        normalize(form, form, &j->lrn, pixels, bytes_on(j->input, at), (char *)j->output + at, scratch);
}

static void lrn(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_image_job *j = job;
    WITH_FORM(j->form, lrn_range, j, first, last, lrn_scratch(j, thread));
}

/* ---- softmax ----------------------------------------------------------------------------------------------- */

/* A row is taken TWI_PAD classes at a time, however wide vectors are, so that sums have one order; each place of these has
 * a sum of its own, to which SUMMED groups are added at once. */
enum { SOFTMAX_VECTORS = TWI_PAD / TWI_LANES, SUMMED = 16 };

/* A group of a row; beyond its end lies what adds nothing. */
static inline TWI_INLINE void load_group(const float *x, int64_t c, int64_t classes, twi_floats group[SOFTMAX_VECTORS])
{
    float some[TWI_PAD];
    for (int i = 0; i < TWI_PAD; i++)
        some[i] = -INFINITY;
    if (c + TWI_PAD > classes)
        memcpy(some, x + c, (size_t)(classes - c) * sizeof *x);
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        group[v] = twi_load(TWI_FLOATS, c + TWI_PAD > classes ? some : x + c, v * TWI_LANES);
}

static inline TWI_INLINE void store_group(float *y, int64_t c, int64_t classes, const twi_floats group[SOFTMAX_VECTORS])
{
    if (c + TWI_PAD <= classes)
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            twi_store(TWI_FLOATS, y + c, v * TWI_LANES, group[v]);
    else
        memcpy(y + c, group, (size_t)(classes - c) * sizeof *y);
}

static inline TWI_INLINE float maximum_of_row(const float *x, int64_t classes)
{
    twi_floats most[SOFTMAX_VECTORS], group[SOFTMAX_VECTORS];
    float places[TWI_PAD], maximum = -INFINITY;
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        most[v] = (twi_floats){0} - INFINITY;
    for (int64_t c = 0; c < classes; c += TWI_PAD) {
        load_group(x, c, classes, group);
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            most[v] = twi_choose(group[v] > most[v], group[v], most[v]);
    }
    memcpy(places, most, sizeof places);
    for (int i = 0; i < TWI_PAD; i++)
        maximum = places[i] > maximum ? places[i] : maximum;
    return maximum;
}

/* y = e^(x - maximum), whose sum is returned. */
static inline TWI_INLINE float exponentials_of_row(const float *x, float *y, int64_t classes, float maximum)
{
    twi_floats sums[SOFTMAX_VECTORS] = {{0}}, group[SOFTMAX_VECTORS];
    float places[TWI_PAD];
    double total = 0;
    for (int64_t first = 0; first < classes; first += SUMMED * TWI_PAD) {
        twi_floats some[SOFTMAX_VECTORS] = {{0}};
        for (int64_t c = first; c < smaller(first + SUMMED * TWI_PAD, classes); c += TWI_PAD) {
            load_group(x, c, classes, group);
            for (int v = 0; v < SOFTMAX_VECTORS; v++) {
                group[v] = twi_exp_of_negative(group[v] - maximum);
                some[v] += group[v];
            }
            store_group(y, c, classes, group);
        }
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            sums[v] += some[v];
    }
    memcpy(places, sums, sizeof places);
    for (int i = 0; i < TWI_PAD; i++)
        total += (double)places[i];
    return (float)total;
}

static void softmax(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_softmax_job *j = job;
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const float *x = j->logits + row * j->classes;
        float *y = j->output + row * j->classes, maximum = maximum_of_row(x, j->classes);
        float sum = exponentials_of_row(x, y, j->classes, maximum);
        twi_floats group[SOFTMAX_VECTORS];
        float rest = j->logarithm ? logf(sum) : 0;
        for (int64_t c = 0; c < j->classes; c += TWI_PAD) {
            load_group(j->logarithm ? x : y, c, j->classes, group);
            for (int v = 0; v < SOFTMAX_VECTORS; v++)
                group[v] = j->logarithm ? group[v] - maximum - rest : group[v] / sum;
            store_group(y, c, j->classes, group);
        }
        if (!j->loss)
            continue;
        int64_t label = j->wide_labels ? ((const int64_t *)j->labels)[row] : ((const int32_t *)j->labels)[row];
        j->loss[row] = logf(sum) - (x[label] - maximum);
        y[label] -= 1;
    }
}

/* ---- depthwise convolutions -------------------------------------------------------------------------------- */

/* Cells begin to end - 1 of a window lie on the image, the first on `from`. */
typedef struct covered {
    int64_t begin, end, from;
} covered;

static inline covered cover(const twi_window *w, int side, int64_t output)
{
    int64_t start = output * w->stride[side] - w->before[side], dilation = w->dilation[side];
    int64_t begin = start < 0 ? (-start + dilation - 1) / dilation : 0;
    int64_t end = w->image[side] <= start ? 0 : (w->image[side] - start + dilation - 1) / dilation;
    return (covered){begin, smaller(end, w->size[side]), start + begin * dilation};
}

/* Channels c and after of one pixel: the sum over the cells, row by row. */
static inline TWI_INLINE void depthwise_some(twi_form form, const twi_depthwise_job *j, covered high, covered wide,
                                             int64_t image, int64_t pixel, int64_t c, twi_lanes lanes)
{
    const twi_window *w = &j->window;
    const int64_t down = w->dilation[0] * w->image[1] * j->channels, across = w->dilation[1] * j->channels;
    int64_t row = ((image * w->image[0] + high.from) * w->image[1] + wide.from) * j->channels + c;
    twi_floats sum = {0};
    for (int64_t y = high.begin; y < high.end; y++, row += down) {
        int64_t at = row, cell = (y * w->size[1] + wide.begin) * j->channels + c;
        for (int64_t x = wide.begin; x < wide.end; x++, at += across, cell += j->channels)
            sum += twi_load_some(form, j->input, at, lanes) * twi_load_some(form, j->filter, cell, lanes);
    }
    twi_store_some(form, j->output, pixel * j->channels + c, sum, lanes);
}

static inline TWI_INLINE void depthwise_range(twi_form form, const twi_depthwise_job *job, int64_t first, int64_t last)
{
    const twi_depthwise_job own = *job, *j = &own; /* which no store can change */
    for (int64_t row = first; row < last; row++) {
        covered high = cover(&j->window, 0, row % j->window.output[0]);
        for (int64_t column = 0; column < j->window.output[1]; column++) {
            covered wide = cover(&j->window, 1, column);
            int64_t image = row / j->window.output[0], pixel = row * j->window.output[1] + column, c = 0;
            for (; c + TWI_LANES <= j->channels; c += TWI_LANES)
                depthwise_some(form, j, high, wide, image, pixel, c, TWI_ALL);
            if (c < j->channels)
                depthwise_some(form, j, high, wide, image, pixel, c, TWI_FIRST(j->channels - c));
        }
    }
}

static void depthwise(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_depthwise_job *j = job;
    (void)thread;
    WITH_FORM(j->form, depthwise_range, j, first, last);
}

/* ---- a pool, then normalization ---------------------------------------------------------------------------- */

static inline TWI_INLINE void pool_lrn_range(twi_form form, const twi_image_job *j, int64_t first, int64_t last,
                                             float *scratch)
{
    const twi_pool *p = &j->pool;
    size_t row = pixel_bytes(form, p->channels, p->out_width);
    for (int64_t i = first; i < last; i++) {
        char *pooled = (char *)j->pooled + (size_t)i * row;
        twi_max_row(form, form, p, image_of_row(form, j, i), i % p->out_height, TWI_MAXIMUM | TWI_ARGMAX, pooled,
                    j->argmax_out + i * p->out_width * p->channels);
        normalize(form, form, &j->lrn, p->out_width, pooled, (char *)j->output + (size_t)i * row, scratch);
    }
}

static void pool_lrn(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_image_job *j = job;
    WITH_FORM(j->form, pool_lrn_range, j, first, last, lrn_scratch(j, thread));
}

/* The gradient of the pooled image goes to scratch, from there to the cells. */
static inline TWI_INLINE void pool_lrn_gradient_range(twi_form form, const twi_image_job *j, int64_t first,
                                                      int64_t last, float *scratch, void *between)
{
    const twi_pool *p = &j->pool;
    int64_t pixels = p->out_height * p->out_width;
    size_t pooled = pixel_bytes(form, p->channels, pixels);
    size_t image = pixel_bytes(form, p->channels, p->height * p->width);
    for (int64_t n = first; n < last; n++) {
        normalize_gradient(form, form, TWI_FLOATS, &j->lrn, j->relu, pixels, bytes_on(j->gradient, (size_t)n * pooled),
                           bytes_on(j->input, (size_t)n * pooled), NULL, between, scratch);
        spread(TWI_FLOATS, form, p, between, j->argmax + n * pixels * p->channels, (char *)j->output + (size_t)n * image);
    }
}

static void pool_lrn_gradient(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_image_job *j = job;
    WITH_FORM(j->form, pool_lrn_gradient_range, j, first, last, lrn_scratch(j, thread), image_scratch(j, thread));
}

/* ---- normalization, then a pool ---------------------------------------------------------------------------- */

static inline TWI_INLINE void lrn_pool_range(twi_form form, const twi_image_job *j, int64_t first, int64_t last,
                                             float *scratch, void *between)
{
    const twi_pool *p = &j->pool;
    size_t image = pixel_bytes(form, p->channels, p->height * p->width);
    size_t row = pixel_bytes(form, p->channels, p->out_width);
    for (int64_t n = first; n < last; n++) {
        normalize(form, TWI_FLOATS, &j->lrn, p->height * p->width, bytes_on(j->input, (size_t)n * image), between,
                  scratch);
        for (int64_t i = n * p->out_height; i < (n + 1) * p->out_height; i++)
            twi_max_row(TWI_FLOATS, form, p, between, i % p->out_height, TWI_MAXIMUM | TWI_ARGMAX,
                        (char *)j->output + (size_t)i * row, j->argmax_out + i * p->out_width * p->channels);
    }
}

static void lrn_pool(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_image_job *j = job;
    WITH_FORM(j->form, lrn_pool_range, j, first, last, lrn_scratch(j, thread), image_scratch(j, thread));
}

static inline TWI_INLINE void lrn_pool_gradient_range(twi_form form, const twi_image_job *j, int64_t first,
                                                      int64_t last, float *scratch, void *between)
{
    const twi_pool *p = &j->pool;
    int64_t pixels = p->height * p->width, pooled = p->out_height * p->out_width;
    size_t image = pixel_bytes(form, p->channels, pixels), out_image = pixel_bytes(form, p->channels, pooled);
    for (int64_t n = first; n < last; n++) {
        spread(form, TWI_FLOATS, p, bytes_on(j->gradient, (size_t)n * out_image), j->argmax + n * pooled * p->channels,
               between);
        normalize_gradient(TWI_FLOATS, form, form, &j->lrn, j->relu, pixels, between,
                           bytes_on(j->input, (size_t)n * image), NULL, (char *)j->output + (size_t)n * image, scratch);
    }
}

static void lrn_pool_gradient(const void *job, int64_t first, int64_t last, int thread)
{
    const twi_image_job *j = job;
    WITH_FORM(j->form, lrn_pool_gradient_range, j, first, last, lrn_scratch(j, thread), image_scratch(j, thread));
}

#define CAST_LOOP_OF(op, from, from_type, to, to_type, value) op##_##from##_##to##_loop,
#define LOOP_OF(op, expression) op##_loop,
#define LOOP_OF_DOUBLES(op, expression) op##_of_doubles_loop,
const twi_loops TWI_LOOPS = {
    .name = TWI_LOOPS_NAME,
    .cast = cast,
    .relu = relu,
    .relu_gradient = relu_gradient,
    .casts = {TWI_CASTS(CAST_LOOP_OF)},
    .functions = {TWI_UNARY_FUNCTIONS(LOOP_OF) TWI_BINARY_FUNCTIONS(LOOP_OF)
                  TWI_UNARY_FUNCTIONS_OF_DOUBLES(LOOP_OF_DOUBLES) TWI_BINARY_FUNCTIONS_OF_DOUBLES(LOOP_OF_DOUBLES)},
    .transform = transform,
    .uniform = uniform,
    .descend = descend,
    .follow = follow,
    .sum_runs = sum_runs,
    .sum_columns = sum_columns,
    .add_bias = add_bias,
    .sum_rows = sum_rows,
    .sum_squares = sum_squares,
    .sum_moments = sum_moments,
    .normalize_rows = normalize_rows,
    .sum_products = sum_products,
    .normalize_rows_gradient = normalize_rows_gradient,
    .softmax = softmax,
    .depthwise = depthwise,
    .max_pool = max_pool,
    .max_pool_gradient = max_pool_gradient,
    .lrn = lrn,
    .pool_lrn = pool_lrn,
    .pool_lrn_gradient = pool_lrn_gradient,
    .lrn_pool = lrn_pool,
    .lrn_pool_gradient = lrn_pool_gradient,
};
