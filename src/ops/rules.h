/* rules.h - what shape rules and gradient rules of src/ops are written with. */
#ifndef TWI_RULES_H
#define TWI_RULES_H

#include "graph/graph.h"
#include "ops/build.h"
#include "tensor/tensor.h"

#include <tower/ops.h>

#include <string.h>

/* The answer of a shape rule that refuses. */
#define TWI_REFUSE(c, ...) twi_fail((c)->error, TW_INVALID_ARGUMENT, __VA_ARGS__)

/* In every gradient rule: the node's inputs, its outputs and the gradients that flow in. */
#define X(i) tw_node_input(g->node, i)
#define Y(i) ((tw_output){g->node, i})
#define DY(i) (g->dy[i])
#define G (g->graph)

/* The single number of input i. False if it is not known. */
static inline bool twi_number_of(twi_inference *c, int i, int64_t *number)
{
    const tw_tensor *value = twi_ask_value(c, i);
    if (!value || value->elements != 1)
        return false;
    *number = twi_tensor_int(value, 0);
    return true;
}

/* Rules that several families share: of SegmentSum and UnsortedSegmentSum (gather.c). */
twi_shape_rule twi_segment_shape, twi_unsorted_segment_shape;
/* Of MatMul (math.c), BiasAdd (conv.c) and Reshape (array.c), and of their like on steps of a range (quantized.c). */
twi_shape_rule twi_matmul_shape, twi_bias_add_shape, twi_reshape_shape;
/* Of `count` values from input `first` on, joined along the axis that input `axis` says (slice.c). */
tw_status twi_concat_shape(twi_inference *c, int axis, int first, int count);

/* Nothing is known but how many axes there are. */
static inline tw_shape twi_unknown_of_rank(int rank)
{
    tw_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = -1;
    return shape;
}

/* Of a result (array.c). */
tw_status twi_check_rank(twi_inference *c, int rank);
/* *axis counted from the front; `limit` axes exist (array.c). */
tw_status twi_normal_axis(twi_inference *c, int64_t *axis, int limit);
/* The shape that input i spells: its dimensions if they are known, its rank if that is. -1 is allowed as an unknown
 * dimension when `open` (array.c). */
tw_status twi_spelled_shape(twi_inference *c, int i, bool open, tw_shape *shape);

static inline tw_status twi_expect_rank_at_least(twi_inference *c, int input, int rank)
{
    if (c->inputs[input].rank >= 0 && c->inputs[input].rank < rank)
        return TWI_REFUSE(c, "input %d has rank %d, expected at least %d", input, c->inputs[input].rank, rank);
    return TW_OK;
}

/* a and b as one dimension: what is known of either. False: they differ. */
static inline bool twi_merge_dims(int64_t a, int64_t b, int64_t *merged)
{
    *merged = a < 0 ? b : a;
    return a < 0 || b < 0 || a == b;
}

/* A constant of an output's type. */
static inline tw_output twi_number_like(twi_gradient *g, tw_output like, double value)
{
    return tw_scalar_of(g->graph, tw_output_dtype(like), value);
}

/* An op of one or two inputs without attributes of its own. */
static inline tw_output twi_unary(twi_gradient *g, const char *op, tw_output x)
{
    return twi_build(g->graph, op, &x, 1, TWI_NO_ATTRS);
}

static inline tw_output twi_binary(twi_gradient *g, const char *op, tw_output x, tw_output y)
{
    return twi_build(g->graph, op, TWI_INPUTS(x, y), TWI_NO_ATTRS);
}

#endif
