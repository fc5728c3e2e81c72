/* complex.c - between complex numbers and their parts: rows, gradient rules, builders. What complex numbers share with
 * real ones is in math.c.
 *
 * A gradient by a complex number z = a + ib is dL/da + i dL/db, as in TensorFlow. */
#include "ops/rules.h"

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static void complex_gradient(twi_gradient *g)
{
    g->dx[0] = twi_unbroadcast(G, tw_real(G, DY(0)), X(0), X(1));
    g->dx[1] = twi_unbroadcast(G, tw_imaginary(G, DY(0)), X(1), X(0));
}

static tw_output zero_like(twi_gradient *g, tw_output x)
{
    return twi_number_like(g, x, 0);
}

static void real_gradient(twi_gradient *g)
{
    g->dx[0] = tw_complex(G, DY(0), zero_like(g, DY(0)));
}

static void imaginary_gradient(twi_gradient *g)
{
    g->dx[0] = tw_complex(G, zero_like(g, DY(0)), DY(0));
}

static void conj_gradient(twi_gradient *g)
{
    g->dx[0] = tw_conj(G, DY(0));
}

/* dy x / |x|, and 0 where x is 0. */
static void magnitude_gradient(twi_gradient *g)
{
    tw_output dy = tw_complex(G, DY(0), zero_like(g, DY(0))), y = tw_complex(G, Y(0), zero_like(g, DY(0)));
    g->dx[0] = twi_binary(g, "DivNoNan", tw_mul(G, dy, X(0)), y);
}

/* -dy / (Im(x) + i Re(x)) */
static void angle_gradient(twi_gradient *g)
{
    tw_output turned = tw_complex(G, tw_imaginary(G, X(0)), tw_real(G, X(0)));
    tw_output dy = tw_complex(G, DY(0), zero_like(g, DY(0)));
    g->dx[0] = tw_mul(G, tw_neg(G, dy), tw_reciprocal(G, turned));
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define COMPLEX "{complex64,complex128}"
#define PARTS "{float,double}"
#define PART(name, in, out, gradient)                                                                                  \
    {                                                                                                                  \
        name, in ":T", out ":Tout", "T:" COMPLEX "=complex64; Tout:" PARTS "=float", twi_shape_same, gradient,         \
            TWI_ELEMENTWISE | TWI_HOST_ONLY                                                                            \
    }

const twi_op twi_complex_ops[] = {
    {"Complex", "real:T, imag:T", "out:Tout", "T:" PARTS "=float; Tout:" COMPLEX "=complex64", twi_shape_broadcast,
     complex_gradient, TWI_ELEMENTWISE | TWI_HOST_ONLY},
    PART("Real", "input", "output", real_gradient),
    PART("Imag", "input", "output", imaginary_gradient),
    PART("ComplexAbs", "x", "y", magnitude_gradient),
    PART("Angle", "input", "output", angle_gradient),
    {"Conj", "input:T", "output:T", "T:" COMPLEX "=complex64", twi_shape_same, conj_gradient,
     TWI_ELEMENTWISE | TWI_HOST_ONLY},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

tw_output tw_complex(tw_graph *graph, tw_output real, tw_output imaginary)
{
    tw_dtype parts = real.node ? tw_output_dtype(real) : TW_FLOAT32;
    return twi_build(graph, "Complex", TWI_INPUTS(real, imaginary),
                     TWI_ATTRS(tw_attr_type("Tout", twi_complex_type(parts))));
}

static tw_output part_of(tw_graph *graph, const char *op, tw_output x)
{
    tw_dtype numbers = x.node ? tw_output_dtype(x) : TW_COMPLEX64;
    return twi_build(graph, op, TWI_INPUTS(x), TWI_ATTRS(tw_attr_type("Tout", twi_part_type(numbers))));
}

tw_output tw_real(tw_graph *graph, tw_output x)
{
    return part_of(graph, "Real", x);
}

tw_output tw_imaginary(tw_graph *graph, tw_output x)
{
    return part_of(graph, "Imag", x);
}

tw_output tw_angle(tw_graph *graph, tw_output x)
{
    return part_of(graph, "Angle", x);
}

tw_output tw_conj(tw_graph *graph, tw_output x)
{
    TWI_NEED_OR(graph, (tw_output){0});
    if (x.node && !tw_dtype_is_complex(tw_output_dtype(x)))
        return x;
    return twi_build(graph, "Conj", TWI_INPUTS(x), TWI_NO_ATTRS);
}
