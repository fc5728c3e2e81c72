/* recurrent.c - cells of recurrent networks as one op each, and an LSTM over all steps: rows, shape rules, gradient
 * rules. The gates of an LSTM stand side by side in its weights, in the order i, ci, f, o; in its second version i, f,
 * ci, o, without a bias of its own for f. */
#include "ops/rules.h"

/* Merges dimension `axis` of input i, of rank `rank`, into *dim. */
static tw_status take_dim(twi_inference *c, int i, int rank, int axis, int64_t *dim)
{
    tw_status status = twi_expect_rank(c, i, rank);
    if (status == TW_OK && c->inputs[i].rank == rank && !twi_merge_dims(*dim, c->inputs[i].dims[axis], dim))
        return TWI_REFUSE(c, "axis %d of input %d is %lld, expected %lld", axis, i, (long long)c->inputs[i].dims[axis],
                          (long long)*dim);
    return status;
}

/* Which inputs are what: an 'x' is [(T,)B,I], a 'c' [B,C], an 's' [T,B,C], 'w' [I+C,4C], 'p' [C], 'b' [4C], '.' a
 * scalar. */
typedef struct sizes {
    int64_t steps, batch, inputs, cells;
} sizes;

static tw_status read_sizes(twi_inference *c, const char *kinds, bool in_steps, sizes *z)
{
    *z = (sizes){-1, -1, -1, -1};
    tw_status status = TW_OK;
    int64_t four = -1;
    for (int i = 0; kinds[i] && status == TW_OK; i++) {
        int first = in_steps && (kinds[i] == 'x' || kinds[i] == 's');
        if (kinds[i] == 'x' || kinds[i] == 'c' || kinds[i] == 's') {
            if (first)
                status = take_dim(c, i, 3, 0, &z->steps);
            if (status == TW_OK)
                status = take_dim(c, i, first ? 3 : 2, first, &z->batch);
            if (status == TW_OK)
                status = take_dim(c, i, first ? 3 : 2, first + 1, kinds[i] == 'x' ? &z->inputs : &z->cells);
        } else if (kinds[i] == 'p') {
            status = take_dim(c, i, 1, 0, &z->cells);
        } else if (kinds[i] == 'b' || kinds[i] == 'w') {
            status = take_dim(c, i, kinds[i] == 'w' ? 2 : 1, kinds[i] == 'w', &four);
        }
    }
    if (status == TW_OK && four >= 0 && (four % 4 != 0 || !twi_merge_dims(z->cells, four / 4, &z->cells)))
        return TWI_REFUSE(c, "weights of %lld columns for %lld cells, expected four each", (long long)four,
                          (long long)z->cells);
    for (int i = 0; kinds[i] && status == TW_OK; i++) {
        int64_t rows = z->inputs < 0 || z->cells < 0 ? -1 : z->inputs + z->cells;
        if (kinds[i] == 'w')
            status = take_dim(c, i, 2, 0, &rows);
    }
    return status;
}

static tw_status cell_shape(twi_inference *c)
{
    sizes z;
    tw_status status = read_sizes(c, "xccwpppb", false, &z);
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = TW_SHAPE(z.batch, z.cells);
    return status;
}

static tw_status cell_grad_shape(twi_inference *c)
{
    sizes z;
    tw_status status = read_sizes(c, "xccwpppbcccccccc", false, &z);
    c->outputs[0] = TW_SHAPE(z.batch, z.cells);
    c->outputs[1] = TW_SHAPE(z.batch, z.cells < 0 ? -1 : 4 * z.cells);
    for (int i = 2; i < 5; i++)
        c->outputs[i] = TW_SHAPE(z.cells);
    return status;
}

static tw_status block_shape(twi_inference *c)
{
    sizes z;
    tw_status status = read_sizes(c, ".xccwpppb", true, &z);
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = TW_SHAPE(z.steps, z.batch, z.cells);
    return status == TW_OK ? twi_expect_rank(c, 0, 0) : status;
}

/* One gradient for each of x, cs_prev, h_prev, w, wci, wcf, wco and b. */
static tw_status block_grad_shape(twi_inference *c)
{
    sizes z;
    tw_status status = read_sizes(c, ".xccwpppbsssssssss", true, &z);
    for (int i = 0; i < 8; i++)
        c->outputs[i] = c->inputs[i + 1];
    return status == TW_OK ? twi_expect_rank(c, 0, 0) : status;
}

/* x, h_prev, w_ru [I+C,2C], w_c [I+C,C], b_ru [2C], b_c [C] */
static tw_status gru_sizes(twi_inference *c, int64_t *batch, int64_t *inputs, int64_t *cells)
{
    tw_status status;
    *batch = *inputs = *cells = -1;
    TWI_TRY(take_dim(c, 0, 2, 0, batch));
    TWI_TRY(take_dim(c, 0, 2, 1, inputs));
    TWI_TRY(take_dim(c, 1, 2, 0, batch));
    TWI_TRY(take_dim(c, 1, 2, 1, cells));
    int64_t rows = *inputs < 0 || *cells < 0 ? -1 : *inputs + *cells, two = *cells < 0 ? -1 : 2 * *cells;
    TWI_TRY(take_dim(c, 2, 2, 0, &rows));
    TWI_TRY(take_dim(c, 2, 2, 1, &two));
    TWI_TRY(take_dim(c, 3, 2, 0, &rows));
    TWI_TRY(take_dim(c, 3, 2, 1, cells));
    TWI_TRY(take_dim(c, 4, 1, 0, &two));
    TWI_TRY(take_dim(c, 5, 1, 0, cells));
done:
    return status;
}

static tw_status gru_shape(twi_inference *c)
{
    int64_t batch, inputs, cells;
    tw_status status = gru_sizes(c, &batch, &inputs, &cells);
    for (int i = 0; i < 4; i++)
        c->outputs[i] = TW_SHAPE(batch, cells);
    return status;
}

static tw_status gru_grad_shape(twi_inference *c)
{
    int64_t batch, inputs, cells;
    tw_status status = gru_sizes(c, &batch, &inputs, &cells);
    for (int i = 6; i < 10 && status == TW_OK; i++) {
        status = take_dim(c, i, 2, 0, &batch);
        if (status == TW_OK)
            status = take_dim(c, i, 2, 1, &cells);
    }
    c->outputs[0] = TW_SHAPE(batch, inputs);
    c->outputs[1] = c->outputs[2] = TW_SHAPE(batch, cells);
    c->outputs[3] = TW_SHAPE(batch, cells < 0 ? -1 : 2 * cells);
    return status;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static tw_output or_zeros(twi_gradient *g, int i)
{
    return DY(i).node ? DY(i) : tw_zeros_like(G, Y(i));
}

/* The first columns of `both`, as many as `first` has, and the rest. */
static void cut(twi_gradient *g, tw_output both, tw_output first, tw_output parts[2])
{
    int64_t columns = tw_output_shape(first).rank == 2 ? tw_output_shape(first).dims[1] : -1;
    if (columns < 0) {
        twi_graph_fail(G, TW_UNIMPLEMENTED, "the gradient of %s '%s' needs to know how long x is", g->node->op->name,
                       g->node->name);
        return;
    }
    parts[0] = tw_slice(G, both, TW_SHAPE(0, 0), TW_SHAPE(-1, columns));
    parts[1] = tw_slice(G, both, TW_SHAPE(0, columns), TW_SHAPE(-1, -1));
}

static tw_output beside(twi_gradient *g, tw_output x, tw_output y)
{
    tw_output both[] = {x, y};
    return tw_concat(G, both, 2, 1);
}

static void cell_gradient(twi_gradient *g)
{
    tw_output inputs[16], parts[2] = {{0}};
    for (int i = 0; i < 8; i++)
        inputs[i] = X(i);
    for (int i = 0; i < 6; i++)
        inputs[8 + i] = Y(i); /* i, cs, f, o, ci, co */
    inputs[14] = or_zeros(g, 1);
    inputs[15] = or_zeros(g, 6);
    tw_output first =
        twi_build(G, "LSTMBlockCellGrad", inputs, 16,
                  TWI_ATTRS(tw_attr_bool("use_peephole", twi_attr_bool(&g->node->attrs, "use_peephole", false))));
    if (!first.node)
        return;
    tw_output gates = tw_node_output(first.node, 1);
    cut(g, tw_matmul_transposed(G, gates, X(3), false, true), X(0), parts);
    g->dx[0] = parts[0];
    g->dx[1] = first;
    g->dx[2] = parts[1];
    g->dx[3] = tw_matmul_transposed(G, beside(g, X(0), X(2)), gates, true, false);
    for (int i = 0; i < 3; i++)
        g->dx[4 + i] = tw_node_output(first.node, 2 + i);
    g->dx[7] = tw_reduce_sum(G, gates, TW_AXES(0), false);
}

static void block_gradient_by(twi_gradient *g, const char *op)
{
    tw_output inputs[18];
    for (int i = 0; i < 9; i++)
        inputs[i] = X(i);
    for (int i = 0; i < 7; i++)
        inputs[9 + i] = Y(i);
    inputs[16] = or_zeros(g, 1);
    inputs[17] = or_zeros(g, 6);
    tw_output first =
        twi_build(G, op, inputs, 18,
                  TWI_ATTRS(tw_attr_bool("use_peephole", twi_attr_bool(&g->node->attrs, "use_peephole", false))));
    for (int i = 0; i < 8 && first.node; i++)
        g->dx[i + 1] = tw_node_output(first.node, i);
}

static void block_gradient(twi_gradient *g)
{
    block_gradient_by(g, "BlockLSTMGrad");
}

static void second_block_gradient(twi_gradient *g)
{
    block_gradient_by(g, "BlockLSTMGradV2");
}

static void gru_gradient(twi_gradient *g)
{
    tw_output inputs[10];
    for (int i = 0; i < 6; i++)
        inputs[i] = X(i);
    for (int i = 0; i < 3; i++)
        inputs[6 + i] = Y(i);
    inputs[9] = or_zeros(g, 3);
    tw_output first = twi_build(G, "GRUBlockCellGrad", inputs, 10, TWI_NO_ATTRS);
    if (!first.node)
        return;
    tw_output by_c = tw_node_output(first.node, 2), by_ru = tw_node_output(first.node, 3);
    g->dx[0] = first;
    g->dx[1] = tw_node_output(first.node, 1);
    g->dx[2] = tw_matmul_transposed(G, beside(g, X(0), X(1)), by_ru, true, false);
    g->dx[3] = tw_matmul_transposed(G, beside(g, X(0), tw_mul(G, X(1), Y(0))), by_c, true, false);
    g->dx[4] = tw_reduce_sum(G, by_ru, TW_AXES(0), false);
    g->dx[5] = tw_reduce_sum(G, by_c, TW_AXES(0), false);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define CELL "cs_prev:T, h_prev:T, w:T, wci:T, wcf:T, wco:T, b:T"
#define GATES "i:T, cs:T, f:T, o:T, ci:T, co:T"
#define ATTRS "forget_bias:float=1; cell_clip:float=3; use_peephole:bool=false; T:{half,float}"
#define SECOND_ATTRS "cell_clip:float=0; use_peephole:bool=false; T:{half,float}"
#define GRAD_ATTRS "use_peephole:bool; T:{half,float}"
#define BLOCK_GRAD                                                                                                     \
    "seq_len_max:int64, x:T, " CELL ", " GATES ", h:T, cs_grad:T, h_grad:T",                                           \
        "x_grad:T, cs_prev_grad:T, h_prev_grad:T, w_grad:T, wci_grad:T, wcf_grad:T, wco_grad:T, b_grad:T"
#define GRU "x:T, h_prev:T, w_ru:T, w_c:T, b_ru:T, b_c:T"

const twi_op twi_recurrent_ops[] = {
    {"LSTMBlockCell", "x:T, " CELL, GATES ", h:T", ATTRS, cell_shape, cell_gradient},
    {"LSTMBlockCellGrad", "x:T, " CELL ", " GATES ", cs_grad:T, h_grad:T",
     "cs_prev_grad:T, dicfo:T, wci_grad:T, wcf_grad:T, wco_grad:T", GRAD_ATTRS, cell_grad_shape, NULL},
    {"BlockLSTM", "seq_len_max:int64, x:T, " CELL, GATES ", h:T", ATTRS, block_shape, block_gradient},
    {"BlockLSTMV2", "seq_len_max:int64, x:T, " CELL, GATES ", h:T", SECOND_ATTRS, block_shape, second_block_gradient},
    {"BlockLSTMGrad", BLOCK_GRAD, GRAD_ATTRS, block_grad_shape, NULL},
    {"BlockLSTMGradV2", BLOCK_GRAD, GRAD_ATTRS, block_grad_shape, NULL},
    {"GRUBlockCell", GRU, "r:T, u:T, c:T, h:T", "T:{float}", gru_shape, gru_gradient},
    {"GRUBlockCellGrad", GRU ", r:T, u:T, c:T, d_h:T", "d_x:T, d_h_prev:T, d_c_bar:T, d_r_bar_u_bar:T", "T:{float}",
     gru_grad_shape, NULL},
    {0},
};
