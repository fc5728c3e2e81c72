/* fourier.c - Fourier transforms over the last axes: rows, gradient rules, builders.
 *
 * With the sum's matrix F, a gradient goes back through F's conjugate transpose, which is the inverse transform times
 * the number of elements. Of real numbers the transform is told by half of it; what stands for two numbers has twice
 * the share in what comes back, and half of it in what goes. */
#include "ops/rules.h"

enum { MOST_AXES = 3 };

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* Over how many axes: the op's name says it. */
static int axes_of(const twi_op *op)
{
    const char *digit = strpbrk(op->name, "23");
    return digit ? *digit - '0' : 1;
}

static tw_status complex_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    return twi_expect_rank_at_least(c, 0, axes_of(c->op));
}

/* The length along the axes, of real numbers; of their transform the last axis has half of it. */
static tw_status real_shape(twi_inference *c)
{
    int axes = axes_of(c->op);
    bool forward = tw_dtype_is_complex(c->output_types[0]);
    tw_shape in = c->inputs[0], out = in;
    tw_status status;
    if (twi_part_type(forward ? c->output_types[0] : c->input_types[0]) !=
        (forward ? c->input_types[0] : c->output_types[0]))
        return twi_fail(c->error, TW_UNIMPLEMENTED, "%s from %s", tw_dtype_name(c->output_types[0]),
                        tw_dtype_name(c->input_types[0]));
    TWI_TRY(twi_expect_rank_at_least(c, 0, axes));
    TWI_TRY(twi_expect_rank(c, 1, 1));
    const tw_tensor *lengths = twi_ask_value(c, 1);
    if (c->inputs[1].rank == 1 && c->inputs[1].dims[0] >= 0 && c->inputs[1].dims[0] != axes)
        return TWI_REFUSE(c, "fft_length must have shape [%d]", axes);
    for (int i = 0; i < axes && in.rank >= 0; i++) {
        int axis = in.rank - axes + i;
        int64_t length = lengths ? twi_tensor_int(lengths, i) : -1, half = length / 2 + 1, dim = in.dims[axis];
        bool last = i == axes - 1;
        int64_t least = last && !forward ? half : length;
        if (lengths && length < 0)
            return TWI_REFUSE(c, "fft_length[%d] must >= 0, but got: %lld", i, (long long)length);
        if (lengths && dim > 0 && dim < least)
            return TWI_REFUSE(c, "Input dimension %d must have length of at least %lld but got: %lld", axis,
                              (long long)least, (long long)dim);
        out.dims[axis] = !lengths ? -1 : last && forward && length ? half : length;
    }
    c->outputs[0] = out;
done:
    return status;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static const char *const complex_ops[] = {"FFT", "FFT2D", "FFT3D"}, *const complex_back[] = {"IFFT", "IFFT2D", "IFFT3D"};
static const char *const real_ops[] = {"RFFT", "RFFT2D", "RFFT3D"}, *const real_back[] = {"IRFFT", "IRFFT2D", "IRFFT3D"};

/* The product of the last dimensions of x, as a number of the type; where they are not known now, then when it runs. */
static tw_output size_of(twi_gradient *g, tw_output x, int axes, tw_dtype dtype)
{
    tw_shape shape = tw_output_shape(x);
    double size = 1;
    for (int i = 0; i < axes && size > 0; i++)
        size = shape.rank < axes || shape.dims[shape.rank - 1 - i] < 0
                   ? -1
                   : size * (double)shape.dims[shape.rank - 1 - i];
    if (size >= 0)
        return tw_scalar_of(G, dtype, size);
    tw_strided_slice_options last = {.begin = TW_SHAPE(-axes), .end = TW_SHAPE(0), .end_mask = 1};
    tw_output dims = tw_strided_slice(G, tw_shape_of(G, x), last);
    return tw_cast(G, tw_reduce_prod(G, dims, TW_AXES(0), false), dtype);
}

static tw_output over_size(twi_gradient *g, tw_output x, tw_output size)
{
    return tw_mul(G, x, tw_reciprocal(G, size));
}

static void forward_gradient(twi_gradient *g)
{
    int axes = axes_of(g->node->op);
    tw_output size = size_of(g, DY(0), axes, tw_output_dtype(DY(0)));
    g->dx[0] = tw_mul(G, twi_unary(g, complex_back[axes - 1], DY(0)), size);
}

static void inverse_gradient(twi_gradient *g)
{
    int axes = axes_of(g->node->op);
    tw_output size = size_of(g, DY(0), axes, tw_output_dtype(DY(0)));
    g->dx[0] = over_size(g, twi_unary(g, complex_ops[axes - 1], DY(0)), size);
}

static tw_output ones(twi_gradient *g, tw_output count, tw_dtype dtype, double value)
{
    return tw_fill(G, tw_reshape(G, count, TW_SHAPE(1)), tw_scalar_of(G, dtype, value));
}

/* 1 for what of half a transform stands for itself (the first, and the last of an even length), else `twice`. */
static tw_output mask(twi_gradient *g, tw_dtype dtype, double twice)
{
    int axes = axes_of(g->node->op);
    tw_output one = twi_constant_int(G, 1), two = twi_constant_int(G, 2);
    tw_strided_slice_options last = {.begin = TW_SHAPE(axes - 1), .end = TW_SHAPE(axes), .shrink_axis_mask = 1};
    tw_output length = tw_strided_slice(G, X(1), last), odd = tw_floor_mod(G, length, two);
    tw_output parts[] = {ones(g, one, dtype, 1),
                         ones(g, tw_floor_div(G, tw_sub(G, length, one), two), dtype, twice),
                         ones(g, tw_sub(G, one, odd), dtype, 1)};
    return tw_concat(G, parts, 3, 0);
}

/* x with zeros behind what it has, where it is known to have less than wanted. */
static tw_output pad_to(tw_graph *graph, tw_output x, tw_shape wanted)
{
    tw_shape has = tw_output_shape(x), none = has, more = has;
    bool is_short = false;
    for (int i = 0; i < has.rank; i++) {
        none.dims[i] = 0;
        more.dims[i] = has.rank == wanted.rank && has.dims[i] >= 0 && has.dims[i] < wanted.dims[i]
                           ? wanted.dims[i] - has.dims[i]
                           : 0;
        is_short = is_short || more.dims[i] > 0;
    }
    return is_short ? tw_pad(graph, x, none, more) : x;
}

/* How many of the last dimensions of x are known. */
static int known_of(tw_output x, int axes)
{
    tw_shape shape = tw_output_shape(x);
    int known = 0;
    while (known < axes && known < shape.rank && shape.dims[shape.rank - 1 - known] >= 0)
        known++;
    return known;
}

/* What was cut off before the transform had no part in it. */
static tw_output fill_up(twi_gradient *g, tw_output dx)
{
    int axes = axes_of(g->node->op);
    if (known_of(dx, axes) == axes && known_of(X(0), axes) == axes)
        return pad_to(G, dx, tw_output_shape(X(0)));
    tw_output more = tw_sub(G, twi_shape_tensor(G, X(0)), twi_shape_tensor(G, dx));
    tw_output sides[] = {tw_zeros_like(G, more), more};
    return twi_binary(g, "Pad", dx, tw_pack(G, sides, 2, 1));
}

static tw_output transform_with(twi_gradient *g, const char *op, tw_output x, const char *type, tw_dtype dtype)
{
    return twi_build(G, op, TWI_INPUTS(x, X(1)), TWI_ATTRS(tw_attr_type(type, dtype)));
}

static void real_gradient(twi_gradient *g)
{
    int axes = axes_of(g->node->op);
    tw_dtype dtype = tw_output_dtype(DY(0)), part = twi_part_type(dtype);
    tw_output half = tw_mul(G, DY(0), mask(g, dtype, 0.5));
    tw_output back = transform_with(g, real_back[axes - 1], half, "Treal", part);
    g->dx[0] = fill_up(g, tw_mul(G, back, size_of(g, back, axes, part)));
}

static void inverse_real_gradient(twi_gradient *g)
{
    int axes = axes_of(g->node->op);
    tw_dtype dtype = tw_output_dtype(X(0));
    tw_output back = transform_with(g, real_ops[axes - 1], DY(0), "Tcomplex", dtype);
    tw_output factor = over_size(g, mask(g, dtype, 2), size_of(g, DY(0), axes, dtype));
    g->dx[0] = fill_up(g, tw_mul(G, back, factor));
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define NUMBERS "Tcomplex:{complex64,complex128}=complex64"
#define PARTS "Treal:{float,double}=float; " NUMBERS
#define COMPLEX(name, gradient)                                                                                        \
    {                                                                                                                  \
        name, "input:Tcomplex", "output:Tcomplex", NUMBERS, complex_shape, gradient, TWI_HOST_ONLY                     \
    }
#define FORWARD(name)                                                                                                  \
    {                                                                                                                  \
        name, "input:Treal, fft_length:int32", "output:Tcomplex", PARTS, real_shape, real_gradient, TWI_HOST_ONLY      \
    }
#define INVERSE(name)                                                                                                  \
    {                                                                                                                  \
        name, "input:Tcomplex, fft_length:int32", "output:Treal", PARTS, real_shape, inverse_real_gradient,            \
            TWI_HOST_ONLY                                                                                              \
    }

const twi_op twi_fourier_ops[] = {
    COMPLEX("FFT", forward_gradient),    COMPLEX("IFFT", inverse_gradient),
    COMPLEX("FFT2D", forward_gradient),  COMPLEX("IFFT2D", inverse_gradient),
    COMPLEX("FFT3D", forward_gradient),  COMPLEX("IFFT3D", inverse_gradient),
    FORWARD("RFFT"),                     INVERSE("IRFFT"),
    FORWARD("RFFT2D"),                   INVERSE("IRFFT2D"),
    FORWARD("RFFT3D"),                   INVERSE("IRFFT3D"),
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

static bool has_axes(tw_graph *graph, const char *builder, int axes)
{
    if (axes >= 1 && axes <= MOST_AXES)
        return true;
    twi_graph_fail(graph, TW_INVALID_ARGUMENT, "%s: a transform over %d axes, expected 1 to %d", builder, axes,
                   MOST_AXES);
    return false;
}

tw_output tw_fft(tw_graph *graph, tw_output x, int axes)
{
    TWI_NEED_OR(graph, (tw_output){0});
    return has_axes(graph, "tw_fft", axes) ? twi_build(graph, complex_ops[axes - 1], &x, 1, TWI_NO_ATTRS)
                                           : (tw_output){0};
}

tw_output tw_inverse_fft(tw_graph *graph, tw_output x, int axes)
{
    TWI_NEED_OR(graph, (tw_output){0});
    return has_axes(graph, "tw_inverse_fft", axes) ? twi_build(graph, complex_back[axes - 1], &x, 1, TWI_NO_ATTRS)
                                                   : (tw_output){0};
}

/* As long along the last axes as the transform takes. */
static tw_output long_enough(tw_graph *graph, tw_output x, int axes, const int64_t *lengths, bool half)
{
    tw_shape wanted = tw_output_shape(x);
    for (int k = 0; k < axes && wanted.rank >= axes; k++)
        wanted.dims[wanted.rank - axes + k] = k == axes - 1 && half ? lengths[k] / 2 + 1 : lengths[k];
    return pad_to(graph, x, wanted);
}

static tw_output real_transform(tw_graph *graph, const char *builder, tw_output x, int axes, const int64_t *lengths,
                                bool forward)
{
    TWI_NEED_OR(graph, (tw_output){0});
    if (!has_axes(graph, builder, axes) || !x.node)
        return (tw_output){0};
    tw_shape shape = tw_output_shape(x);
    int64_t own[MOST_AXES];
    for (int i = 0; i < axes && !lengths; i++) {
        int64_t dim = shape.rank < axes ? -1 : shape.dims[shape.rank - axes + i];
        own[i] = dim > 0 && !forward && i == axes - 1 ? 2 * (dim - 1) : dim;
        if (dim < 0) {
            twi_graph_fail(graph, TW_INVALID_ARGUMENT, "%s: of '%s' the last dimensions are not known; give their lengths",
                           builder, x.node->name);
            return (tw_output){0};
        }
    }
    lengths = lengths ? lengths : own;
    tw_dtype dtype = tw_output_dtype(x);
    tw_attr type = forward ? tw_attr_type("Tcomplex", twi_complex_type(dtype)) : tw_attr_type("Treal", twi_part_type(dtype));
    tw_output inputs[] = {long_enough(graph, x, axes, lengths, !forward), twi_constant_ints(graph, lengths, axes)};
    return twi_build(graph, forward ? real_ops[axes - 1] : real_back[axes - 1], inputs, 2, &type, 1);
}

tw_output tw_real_fft(tw_graph *graph, tw_output x, int axes, const int64_t *lengths)
{
    return real_transform(graph, "tw_real_fft", x, axes, lengths, true);
}

tw_output tw_inverse_real_fft(tw_graph *graph, tw_output x, int axes, const int64_t *lengths)
{
    return real_transform(graph, "tw_inverse_real_fft", x, axes, lengths, false);
}
