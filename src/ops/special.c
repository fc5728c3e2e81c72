/* special.c - functions beyond those of math.c: inverse trigonometric and hyperbolic ones, of the gamma family, of
 * bits. Rows and gradient rules. */
#include "ops/rules.h"
#include "ops/types.h"

static void give(twi_gradient *g, int i, tw_output partial)
{
    g->dx[i] = twi_unbroadcast(G, tw_mul(G, partial, DY(0)), X(i), X(1 - i));
}

/* ---- one input --------------------------------------------------------------------------------------------- */

/* 1 + sign * x^2 */
static tw_output one_and_square(twi_gradient *g, double sign)
{
    tw_output square = tw_square(G, tw_conj(G, X(0))), one = twi_number_like(g, X(0), 1);
    return sign < 0 ? tw_sub(G, one, square) : tw_add(G, one, square);
}

static void asin_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, "Reciprocal", tw_sqrt(G, one_and_square(g, -1))));
}

static void acos_gradient(twi_gradient *g)
{
    asin_gradient(g);
    g->dx[0] = tw_neg(G, g->dx[0]);
}

static void atan_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, "Reciprocal", one_and_square(g, 1)));
}

static void atanh_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, "Reciprocal", one_and_square(g, -1)));
}

static void sinh_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, "Cosh", tw_conj(G, X(0))));
}

static void cosh_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, "Sinh", tw_conj(G, X(0))));
}

static void asinh_gradient(twi_gradient *g)
{
    g->dx[0] = tw_div(G, DY(0), twi_unary(g, "Cosh", tw_conj(G, Y(0))));
}

static void acosh_gradient(twi_gradient *g)
{
    g->dx[0] = tw_div(G, DY(0), twi_unary(g, "Sinh", tw_conj(G, Y(0))));
}

static void lgamma_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, "Digamma", X(0)));
}

static void digamma_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_binary(g, "Polygamma", twi_number_like(g, X(0), 1), X(0)));
}

static void erfc_gradient(twi_gradient *g)
{
    tw_output factor = twi_number_like(g, X(0), -1.1283791670955126); /* -2 / sqrt(pi) */
    g->dx[0] = tw_mul(G, tw_mul(G, DY(0), factor), tw_exp(G, tw_neg(G, tw_square(G, X(0)))));
}

/* dy * factor * e^(by * y^2) */
static void inverse_gradient(twi_gradient *g, double factor, double by)
{
    tw_output square = tw_mul(G, tw_square(G, Y(0)), twi_number_like(g, X(0), by));
    g->dx[0] = tw_mul(G, tw_mul(G, DY(0), twi_number_like(g, X(0), factor)), tw_exp(G, square));
}

static void erfinv_gradient(twi_gradient *g)
{
    inverse_gradient(g, 0.88622692545275801, 1); /* sqrt(pi) / 2 */
}

static void ndtri_gradient(twi_gradient *g)
{
    inverse_gradient(g, 2.5066282746310005, 0.5); /* sqrt(2 pi) */
}

/* I0' = I1, I1' = I0 - I1 / x, and e^-|x| is in both. */
static void bessel_0_gradient(twi_gradient *g)
{
    tw_output first = twi_unary(g, "BesselI1e", X(0));
    g->dx[0] = tw_mul(G, DY(0), tw_sub(G, first, tw_mul(G, tw_sign(G, X(0)), Y(0))));
}

static void whole_bessel_0_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, "BesselI1", X(0)));
}

/* At 0 TensorFlow says 1, where it is 1 / 2. */
static void whole_bessel_1_gradient(twi_gradient *g)
{
    tw_output is_zero = tw_equal(G, X(0), twi_number_like(g, X(0), 0)), one = tw_ones_like(G, X(0));
    tw_output safe = tw_select(G, is_zero, one, X(0));
    tw_output slope = tw_sub(G, twi_unary(g, "BesselI0", X(0)), tw_div(G, Y(0), safe));
    g->dx[0] = tw_mul(G, DY(0), tw_select(G, is_zero, one, slope));
}

static void bessel_1_gradient(twi_gradient *g)
{
    tw_output zero = twi_number_like(g, X(0), 0), is_zero = tw_equal(G, X(0), zero);
    tw_output safe = tw_select(G, is_zero, tw_ones_like(G, X(0)), X(0));
    tw_output slope = tw_sub(G, twi_unary(g, "BesselI0e", X(0)),
                             tw_mul(G, Y(0), tw_add(G, tw_sign(G, safe), twi_unary(g, "Reciprocal", safe))));
    tw_output half = tw_mul(G, tw_ones_like(G, X(0)), twi_number_like(g, X(0), 0.5));
    g->dx[0] = tw_mul(G, DY(0), tw_select(G, is_zero, half, slope));
}

/* Bessel functions J and Y: f0' = -f1, f1' = f0 - f1 / x. */
static void waves_0_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), tw_neg(G, twi_unary(g, "BesselJ1", X(0))));
}

static void waves_1_gradient(twi_gradient *g)
{
    tw_output is_zero = tw_equal(G, X(0), twi_number_like(g, X(0), 0)), ones = tw_ones_like(G, X(0));
    tw_output safe = tw_select(G, is_zero, ones, X(0)), half = tw_mul(G, ones, twi_number_like(g, X(0), 0.5));
    tw_output slope = tw_sub(G, twi_unary(g, "BesselJ0", X(0)), tw_div(G, Y(0), safe));
    g->dx[0] = tw_mul(G, DY(0), tw_select(G, is_zero, half, slope));
}

static void other_waves_0_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), tw_neg(G, twi_unary(g, "BesselY1", X(0))));
}

static void other_waves_1_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), tw_sub(G, twi_unary(g, "BesselY0", X(0)), tw_div(G, Y(0), X(0))));
}

/* K0' = -K1, K1' = -K0 - K1 / x; e^x times them adds the function itself. */
static void falling_0_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), tw_neg(G, twi_unary(g, "BesselK1", X(0))));
}

static void falling_1_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), tw_neg(G, tw_add(G, twi_unary(g, "BesselK0", X(0)), tw_div(G, Y(0), X(0)))));
}

static void scaled_falling_0_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), tw_sub(G, Y(0), twi_unary(g, "BesselK1e", X(0))));
}

static void scaled_falling_1_gradient(twi_gradient *g)
{
    tw_output rest = tw_add(G, twi_unary(g, "BesselK0e", X(0)), tw_div(G, Y(0), X(0)));
    g->dx[0] = tw_mul(G, DY(0), tw_sub(G, Y(0), rest));
}

/* y' = 1 - 2 x y */
static void dawson_gradient(twi_gradient *g)
{
    tw_output twice = tw_mul(G, twi_number_like(g, X(0), 2), tw_mul(G, X(0), Y(0)));
    g->dx[0] = tw_mul(G, DY(0), tw_sub(G, twi_number_like(g, X(0), 1), twice));
}

static void exponential_integral_gradient(twi_gradient *g)
{
    g->dx[0] = tw_mul(G, DY(0), tw_div(G, tw_exp(G, X(0)), X(0)));
}

static void fresnel_gradient(twi_gradient *g, const char *of)
{
    tw_output phase = tw_mul(G, tw_square(G, X(0)), twi_number_like(g, X(0), 1.5707963267948966)); /* pi / 2 */
    g->dx[0] = tw_mul(G, DY(0), twi_unary(g, of, phase));
}

static void fresnel_cosine_gradient(twi_gradient *g)
{
    fresnel_gradient(g, "Cos");
}

static void fresnel_sine_gradient(twi_gradient *g)
{
    fresnel_gradient(g, "Sin");
}

/* ln(x) / (1 - x), -1 at 1 */
static void spence_gradient(twi_gradient *g)
{
    tw_output one = twi_number_like(g, X(0), 1), is_one = tw_equal(G, X(0), one), ones = tw_ones_like(G, X(0));
    tw_output rest = tw_select(G, is_one, ones, tw_sub(G, one, X(0)));
    g->dx[0] = tw_mul(G, DY(0), tw_select(G, is_one, tw_neg(G, ones), tw_div(G, tw_log(G, X(0)), rest)));
}

/* ---- two inputs -------------------------------------------------------------------------------------------- */

/* The angle of the point (X(1), X(0)). */
static void atan2_gradient(twi_gradient *g)
{
    tw_output share = tw_div(G, DY(0), tw_add(G, tw_square(G, X(1)), tw_square(G, X(0))));
    g->dx[0] = twi_unbroadcast(G, tw_mul(G, X(1), share), X(0), X(1));
    g->dx[1] = twi_unbroadcast(G, tw_mul(G, tw_neg(G, X(0)), share), X(1), X(0));
}

static void xlogy_gradient(twi_gradient *g)
{
    tw_output x = tw_conj(G, X(0)), y = tw_conj(G, X(1));
    tw_output not_zero = tw_cast(G, tw_not_equal(G, x, twi_number_like(g, x, 0)), tw_output_dtype(x));
    give(g, 0, twi_binary(g, "Xlogy", not_zero, y));
    give(g, 1, twi_binary(g, "Xdivy", x, y));
}

static void xlog1py_gradient(twi_gradient *g)
{
    tw_output x = tw_conj(G, X(0)), y = tw_conj(G, X(1));
    tw_output not_zero = tw_cast(G, tw_not_equal(G, x, twi_number_like(g, x, 0)), tw_output_dtype(x));
    give(g, 0, twi_binary(g, "Xlog1py", not_zero, y));
    give(g, 1, twi_binary(g, "Xdivy", x, tw_add(G, y, twi_number_like(g, y, 1))));
}

/* sign * e^-x x^(a-1) / gamma(a) */
static void incomplete_gamma(twi_gradient *g, bool upper)
{
    tw_output a = X(0), x = X(1);
    tw_output by_a = twi_binary(g, "IgammaGradA", a, x);
    tw_output power = tw_mul(G, tw_sub(G, a, twi_number_like(g, X(0), 1)), tw_log(G, x));
    tw_output by_x = tw_exp(G, tw_sub(G, tw_add(G, tw_neg(G, x), power), twi_unary(g, "Lgamma", a)));
    give(g, 0, upper ? tw_neg(G, by_a) : by_a);
    give(g, 1, upper ? tw_neg(G, by_x) : by_x);
}

static void igamma_gradient(twi_gradient *g)
{
    incomplete_gamma(g, false);
}

static void igammac_gradient(twi_gradient *g)
{
    incomplete_gamma(g, true);
}

static void zeta_gradient(twi_gradient *g)
{
    tw_output next = twi_binary(g, "Zeta", tw_add(G, X(0), twi_number_like(g, X(0), 1)), X(1));
    give(g, 1, tw_mul(G, tw_neg(G, X(0)), next));
}

static void polygamma_gradient(twi_gradient *g)
{
    give(g, 1, twi_binary(g, "Polygamma", tw_add(G, X(0), twi_number_like(g, X(0), 1)), X(1)));
}

static void next_after_gradient(twi_gradient *g)
{
    give(g, 0, tw_ones_like(G, DY(0)));
    give(g, 1, tw_zeros_like(G, DY(0)));
}

/* ---- Betainc: a, b, x, of one shape but for scalars --------------------------------------------------------- */

static tw_status betainc_shape(twi_inference *c)
{
    tw_shape shape = TW_SCALAR;
    tw_status status = TW_OK;
    bool known = false;
    for (int i = 0; i < 3 && status == TW_OK; i++) {
        if (c->inputs[i].rank == 0)
            continue;
        status = known ? twi_merge_shapes(shape, c->inputs[i], &shape, c->error) : TW_OK;
        shape = known ? shape : c->inputs[i];
        known = true;
    }
    c->outputs[0] = shape;
    return status;
}

/* By x only: x^(a-1) (1-x)^(b-1) / B(a, b). */
static void betainc_gradient(twi_gradient *g)
{
    tw_output a = X(0), b = X(1), x = X(2), one = twi_number_like(g, x, 1);
    tw_output beta = tw_sub(G, tw_add(G, twi_unary(g, "Lgamma", a), twi_unary(g, "Lgamma", b)),
                            twi_unary(g, "Lgamma", tw_add(G, a, b)));
    tw_output powers = tw_add(G, tw_mul(G, tw_sub(G, b, one), twi_unary(g, "Log1p", tw_neg(G, x))),
                              tw_mul(G, tw_sub(G, a, one), tw_log(G, x)));
    g->dx[2] = twi_unbroadcast(G, tw_mul(G, DY(0), tw_exp(G, tw_sub(G, powers, beta))), x, Y(0));
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define FLOATS "{bfloat16,half,float,double}"
#define FIELD "{bfloat16,half,float,double,complex64,complex128}"
#define UNARY(name, types, gradient)                                                                                   \
    {                                                                                                                  \
        name, "x:T", "y:T", "T:" types, twi_shape_same, gradient, TWI_ELEMENTWISE                                      \
    }
#define BINARY(name, x, y, types, gradient)                                                                            \
    {                                                                                                                  \
        name, x ":T, " y ":T", "z:T", "T:" types, twi_shape_broadcast, gradient, TWI_ELEMENTWISE                       \
    }
#define BITS(name, flags)                                                                                              \
    {                                                                                                                  \
        name, "x:T, y:T", "z:T", "T:{" TWI_INTEGERS "}", twi_shape_broadcast, twi_not_differentiable,                  \
            TWI_ELEMENTWISE | flags                                                                                    \
    }

const twi_op twi_special_ops[] = {
    UNARY("Asin", FIELD, asin_gradient),
    UNARY("Acos", FIELD, acos_gradient),
    UNARY("Atan", FIELD, atan_gradient),
    UNARY("Sinh", FIELD, sinh_gradient),
    UNARY("Cosh", FIELD, cosh_gradient),
    UNARY("Asinh", FIELD, asinh_gradient),
    UNARY("Acosh", FIELD, acosh_gradient),
    UNARY("Atanh", FIELD, atanh_gradient),
    UNARY("Rint", FLOATS, twi_not_differentiable),
    UNARY("Lgamma", FLOATS, lgamma_gradient),
    UNARY("Digamma", FLOATS, digamma_gradient),
    UNARY("Erfc", FLOATS, erfc_gradient),
    UNARY("Erfinv", FLOATS, erfinv_gradient),
    UNARY("Ndtri", FLOATS, ndtri_gradient),
    UNARY("BesselI0", FLOATS, whole_bessel_0_gradient),
    UNARY("BesselI1", FLOATS, whole_bessel_1_gradient),
    UNARY("BesselI0e", FLOATS, bessel_0_gradient),
    UNARY("BesselI1e", FLOATS, bessel_1_gradient),
    UNARY("BesselJ0", FLOATS, waves_0_gradient),
    UNARY("BesselJ1", FLOATS, waves_1_gradient),
    UNARY("BesselY0", FLOATS, other_waves_0_gradient),
    UNARY("BesselY1", FLOATS, other_waves_1_gradient),
    UNARY("BesselK0", FLOATS, falling_0_gradient),
    UNARY("BesselK1", FLOATS, falling_1_gradient),
    UNARY("BesselK0e", FLOATS, scaled_falling_0_gradient),
    UNARY("BesselK1e", FLOATS, scaled_falling_1_gradient),
    UNARY("Dawsn", FLOATS, dawson_gradient),
    UNARY("Expint", FLOATS, exponential_integral_gradient),
    UNARY("FresnelCos", FLOATS, fresnel_cosine_gradient),
    UNARY("FresnelSin", FLOATS, fresnel_sine_gradient),
    UNARY("Spence", FLOATS, spence_gradient),
    {"Betainc", "a:T, b:T, x:T", "z:T", "T:{float,double}", betainc_shape, betainc_gradient},
    BINARY("Atan2", "y", "x", FLOATS, atan2_gradient),
    BINARY("Xlogy", "x", "y", FIELD, xlogy_gradient),
    BINARY("Xlog1py", "x", "y", FIELD, xlog1py_gradient),
    BINARY("Igamma", "a", "x", FLOATS, igamma_gradient),
    BINARY("Igammac", "a", "x", FLOATS, igammac_gradient),
    BINARY("IgammaGradA", "a", "x", FLOATS, NULL),
    BINARY("Zeta", "x", "q", "{float,double}", zeta_gradient),
    BINARY("Polygamma", "a", "x", "{float,double}", polygamma_gradient),
    {"NextAfter", "x1:T, x2:T", "output:T", "T:{double,float}=float", twi_shape_broadcast, next_after_gradient,
     TWI_ELEMENTWISE},
    BITS("BitwiseAnd", TWI_COMMUTATIVE),
    BITS("BitwiseOr", TWI_COMMUTATIVE),
    BITS("BitwiseXor", TWI_COMMUTATIVE),
    BITS("LeftShift", 0),
    BITS("RightShift", 0),
    UNARY("Invert", "{" TWI_INTEGERS "}", twi_not_differentiable),
    {"PopulationCount", "x:T", "y:uint8", "T:{" TWI_INTEGERS "}", twi_shape_same, twi_not_differentiable,
     TWI_ELEMENTWISE},
    {0},
};
