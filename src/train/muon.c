/* muon.c - the update of one matrix by Muon, as nodes: see tw_muon(). */
#include "train/muon.h"

#include <math.h>
#include <tower/ops.h>

static tw_output scaled(tw_graph *g, tw_output x, double factor)
{
    return tw_mul(g, x, tw_scalar_of(g, tw_output_dtype(x), factor));
}

static tw_output norm(tw_graph *g, tw_output x)
{
    return tw_sqrt(g, scaled(g, tw_l2_loss(g, x), 2));
}

/* The product with itself whose side is the shorter one of x [rows, columns]. */
static tw_output gram(tw_graph *g, tw_output x, bool tall)
{
    return tw_matmul_transposed(g, x, x, tall, !tall);
}

/* x [rows, columns] with all its singular values brought near 1. A norm of 0 stays one. */
static tw_output orthogonalize(tw_graph *g, tw_output x, bool tall, int iterations)
{
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    x = tw_div(g, x, tw_add(g, norm(g, x), tw_scalar_of(g, tw_output_dtype(x), 1e-7)));
    for (int i = 0; i < iterations; i++) {
        tw_output A = gram(g, x, tall);
        tw_output B = tw_add(g, scaled(g, A, b), scaled(g, tw_matmul(g, A, A), c));
        tw_output moved = tall ? tw_matmul(g, x, B) : tw_matmul(g, B, x);
        x = tw_add(g, scaled(g, x, a), moved);
    }
    return x;
}

tw_output twi_update_by_muon(tw_graph *g, const twi_muon_update *u)
{
    const tw_variable *v = u->variable;
    int64_t columns = v->shape.dims[v->shape.rank - 1], rows = 1;
    for (int i = 0; i < v->shape.rank - 1; i++)
        rows *= v->shape.dims[i];
    tw_output gathered = tw_add(g, tw_mul(g, tw_variable_read(g, u->accumulator), u->momentum), u->gradient);
    tw_output step = u->options->plain_momentum ? gathered : tw_add(g, u->gradient, tw_mul(g, gathered, u->momentum));
    tw_output straight =
        orthogonalize(g, tw_reshape(g, step, TW_SHAPE(rows, columns)), rows > columns, u->options->iterations);
    tw_output move = tw_mul(g, tw_reshape(g, straight, v->shape), u->rate);
    tw_output value = tw_variable_read(g, v);
    if (u->options->normalize)
        value = tw_mul(g, value, tw_div(g, tw_scalar_of(g, v->dtype, sqrt((double)columns)), norm(g, value)));
    tw_output parts[] = {tw_assign(g, u->accumulator->handle, gathered),
                         tw_assign(g, v->handle, tw_sub(g, value, move))};
    return tw_group(g, parts, 2);
}
