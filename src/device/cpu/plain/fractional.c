/* fractional.c - fractional pooling in plain C: regions that are drawn as TensorFlow draws them, for the same seeds.
 *
 * Bounds of rows and columns are outputs 1 and 2; the gradients get them back. Of regions that overlap, the bound
 * belongs to both sides. */
#include "base/memory.h"
#include "device/cpu/plain/random_double.h"
#include "device/cpu/plain/typed.h"
#include "device/state/random.h"

#include <math.h>

typedef struct fractional {
    bool pseudo_random, overlapping;
    uint64_t seeds[2];
    twi_resource *stream; /* of regions that differ from run to run; NULL: the seeds say them */
} fractional;

typedef struct regions {
    int64_t batch, channels, in[2], out[2];
    const int64_t *bounds[2]; /* [out + 1] */
    bool overlapping;
} regions;

/* Cells of one region; rows are counted through all images. */
typedef struct place {
    int64_t top, bottom, left, right;
} place;

static int64_t end_of(const regions *g, int side, int64_t i)
{
    int64_t end = g->bounds[side][i + 1] + g->overlapping;
    return end < g->in[side] ? end : g->in[side];
}

static place begin_of(const regions *g, int64_t row, int64_t column)
{
    int64_t image = row / g->out[0] * g->in[0], i = row % g->out[0];
    return (place){image + g->bounds[0][i], image + end_of(g, 0, i), g->bounds[1][column], end_of(g, 1, column)};
}

static int64_t cells_of(const place *p)
{
    return (p->bottom - p->top) * (p->right - p->left);
}

/* ---- drawing bounds ---------------------------------------------------------------------------------------------- */

/* ceil(alpha * (i + u)) for one u, which leaves the first and the last region their size. */
static void draw_pseudo(int64_t in, int64_t out, twi_philox *philox, int64_t *bounds)
{
    uint32_t words[4];
    double alpha = (double)in / (double)out;
    int64_t k = in / out;
    double at_first = (double)(k + 2) / alpha - 1, at_last = (double)(in + 1 - k) / alpha - (double)(out - 1);
    twi_philox_next(philox, words);
    double u = twi_uniform_double(words[0], words[1]) * fmin(at_first, at_last);
    bounds[0] = 0;
    bounds[out] = in;
    for (int64_t i = 1; i < out; i++)
        bounds[i] = (int64_t)ceil(alpha * ((double)i + u)) - 1;
}

/* Sizes k and k + 1, shuffled. */
static void draw_shuffled(int64_t in, int64_t out, twi_philox *philox, int64_t *bounds)
{
    uint32_t words[4] = {0};
    int64_t *sizes = bounds + 1;
    for (int64_t i = 0; i < out; i++)
        sizes[i] = in / out + (i < in % out);
    for (int64_t i = 0; i < out - 1; i++) {
        if (i % 4 == 0)
            twi_philox_next(philox, words);
        int64_t other = i + words[i % 4] % (uint32_t)(out - i), kept = sizes[i];
        sizes[i] = sizes[other];
        sizes[other] = kept;
    }
    bounds[0] = 0;
    for (int64_t i = 0; i < out; i++)
        bounds[i + 1] += bounds[i];
}

/* One axis takes whole blocks of the generator: a word for each size, or two in all. */
static void draw_axis(const fractional *f, int64_t in, int64_t out, twi_philox *philox, int64_t *bounds)
{
    twi_philox own = *philox;
    twi_philox_skip(philox, f->pseudo_random ? 1 : (uint64_t)(out + 3) / 4);
    if (f->pseudo_random)
        draw_pseudo(in, out, &own, bounds);
    else
        draw_shuffled(in, out, &own, bounds);
}

static regions regions_of(tw_shape x)
{
    return (regions){.batch = x.dims[0], .channels = x.dims[3], .in = {x.dims[1], x.dims[2]}};
}

static regions draw_regions(const twi_run *r)
{
    const fractional *f = r->state;
    tw_shape y = r->output_operands[0].shape;
    regions g = regions_of(r->input_operands[0].shape);
    twi_philox philox = f->stream ? twi_random_take(f->stream, (uint64_t)(y.dims[1] + y.dims[2] + 8))
                                  : twi_philox_seed(f->seeds[0], f->seeds[1]);
    g.overlapping = f->overlapping;
    for (int side = 0; side < 2; side++) {
        g.out[side] = y.dims[1 + side];
        draw_axis(f, g.in[side], g.out[side], &philox, r->outputs[1 + side]);
        g.bounds[side] = r->outputs[1 + side];
    }
    return g;
}

/* Bounds as a gradient is given them: they must lie in the image, and rise. */
static tw_status given_regions(const twi_run *r, tw_shape x, int dy, regions *g)
{
    const fractional *f = r->state;
    tw_shape y = r->input_operands[dy].shape;
    *g = regions_of(x);
    g->overlapping = f->overlapping;
    for (int side = 0; side < 2; side++) {
        g->out[side] = y.dims[1 + side];
        g->bounds[side] = r->inputs[dy + 1 + side];
        if (r->input_operands[dy + 1 + side].elements != g->out[side] + 1 || y.dims[0] != x.dims[0] ||
            y.dims[3] != x.dims[3])
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': the gradient has not the shape that the bounds say",
                            r->node);
        for (int64_t i = 0; i < g->out[side]; i++)
            if (g->bounds[side][i] < 0 || g->bounds[side][i] >= g->bounds[side][i + 1] ||
                g->bounds[side][i + 1] > g->in[side])
                return twi_fail(r->error, TW_INVALID_ARGUMENT,
                                "'%s': the bounds %lld and %lld are not those of a region", r->node,
                                (long long)g->bounds[side][i], (long long)g->bounds[side][i + 1]);
    }
    return TW_OK;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

#define BODY "device/cpu/plain/fractional.inl"
#include "device/cpu/plain/for_floats.h"
#define ADD(a, b) ((REAL)((uint64_t)(a) + (uint64_t)(b)))
#define REAL int32_t
#define NAME(f) f##_int32
#include BODY
#undef REAL
#undef NAME
#define REAL int64_t
#define NAME(f) f##_int64
#include BODY

static tw_status prepare(twi_prepare *p)
{
    fractional f = {
        .pseudo_random = twi_attr_bool(p->attrs, "pseudo_random", false),
        .overlapping = twi_attr_bool(p->attrs, "overlapping", false),
        .seeds = {(uint64_t)twi_attr_int(p->attrs, "seed", 0), (uint64_t)twi_attr_int(p->attrs, "seed2", 0)}};
    bool draws = p->num_outputs == 3, seeded = f.seeds[0] || f.seeds[1];
    if (draws && seeded && !twi_attr_bool(p->attrs, "deterministic", false))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "Both seed and seed2 should be 0 if deterministic is false.");
    if (draws && !seeded) {
        tw_status status = twi_random_find(p, &f.stream);
        if (status != TW_OK)
            return status;
    }
    return twi_keep(p, &f, sizeof f);
}

static tw_status prepare_average_grad(twi_prepare *p)
{
    p->workspace = sizeof(double) * (size_t)p->outputs[0].elements;
    return prepare(p);
}

#define ROWS(op, prepare, f)                                                                                           \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float, twi_free},                                                 \
        {op, "plain", TWI_TYPE(TW_FLOAT64), prepare, f##_double, twi_free},                                            \
        {op, "plain", TWI_TYPE(TW_INT32), prepare, f##_int32, twi_free},                                               \
    {                                                                                                                  \
        op, "plain", TWI_TYPE(TW_INT64), prepare, f##_int64, twi_free                                                  \
    }

const twi_kernel twi_cpu_fractional_kernels[] = {
    ROWS("FractionalMaxPool", prepare, fractional_max),
    ROWS("FractionalMaxPoolGrad", prepare, fractional_max_grad),
    ROWS("FractionalAvgPool", prepare, fractional_average),
    ROWS("FractionalAvgPoolGrad", prepare_average_grad, fractional_average_grad),
    {0},
};
