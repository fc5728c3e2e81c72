/* shape_rules.c - shape rules that many ops share, and the helpers rules are written with.
 * Never here: the rule of a single op (src/ops). */
#include "graph/graph.h"

#include "tensor/tensor.h"

static tw_status unlike(tw_shape a, tw_shape b, const char *what, tw_error *error)
{
    char text_a[128], text_b[128];
    return twi_fail(error, TW_INVALID_ARGUMENT, "%s: %s and %s", what, tw_shape_text(a, text_a, sizeof text_a),
                    tw_shape_text(b, text_b, sizeof text_b));
}

/* An unknown dimension against one greater than 1 gives the latter; against 1 or unknown it stays unknown. */
tw_status twi_broadcast_shapes(tw_shape a, tw_shape b, tw_shape *out, tw_error *error)
{
    *out = TW_UNKNOWN_SHAPE;
    if (a.rank < 0 || b.rank < 0)
        return TW_OK;
    tw_shape result = {.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int i = 1; i <= result.rank; i++) {
        int64_t x = i <= a.rank ? a.dims[a.rank - i] : 1, y = i <= b.rank ? b.dims[b.rank - i] : 1;
        int64_t dim;
        if (x == y || y == 1)
            dim = x;
        else if (x == 1)
            dim = y;
        else if (x < 0 || y < 0)
            dim = x < 0 ? y : x;
        else
            return unlike(a, b, "shapes do not broadcast", error);
        result.dims[result.rank - i] = dim;
    }
    *out = result;
    return TW_OK;
}

tw_status twi_merge_shapes(tw_shape a, tw_shape b, tw_shape *out, tw_error *error)
{
    if (!tw_shape_compatible(a, b))
        return unlike(a, b, "shapes differ", error);
    tw_shape result = a.rank < 0 ? b : a;
    for (int i = 0; a.rank >= 0 && b.rank >= 0 && i < a.rank; i++)
        if (result.dims[i] < 0)
            result.dims[i] = b.dims[i];
    *out = result;
    return TW_OK;
}

tw_shape twi_shape_of_value(const tw_tensor *value)
{
    if (!value || value->shape.rank != 1 || value->elements > TW_MAX_RANK ||
        (value->dtype != TW_INT32 && value->dtype != TW_INT64))
        return TW_UNKNOWN_SHAPE;
    tw_shape shape = {.rank = (int)value->elements};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = twi_tensor_int(value, i);
    return shape;
}

tw_shape twi_ask_shape(twi_inference *c, int i)
{
    const tw_tensor *value = twi_ask_value(c, i);
    tw_output teller = c->is_building ? c->sources[i] : (tw_output){0};
    if (value || !teller.node || !twi_op_is(teller.node->op, TWI_METADATA) || c->inputs[i].rank != 1)
        return twi_shape_of_value(value);
    tw_output told = teller.node->inputs[teller.index];
    tw_shape shape = told.node->output_shapes[told.index];
    return tw_output_dtype(told) != TW_RESOURCE && shape.rank == c->inputs[i].dims[0] ? shape : TW_UNKNOWN_SHAPE;
}

tw_status twi_expect_rank(twi_inference *c, int input, int rank)
{
    char text[128];
    if (c->inputs[input].rank < 0 || c->inputs[input].rank == rank)
        return TW_OK;
    return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d has shape %s, expected rank %d", input,
                    tw_shape_text(c->inputs[input], text, sizeof text), rank);
}

tw_status twi_shape_scalar(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = TW_SCALAR;
    return TW_OK;
}

tw_status twi_shape_scalars(twi_inference *c)
{
    tw_status status = twi_shape_scalar(c);
    for (int i = 0; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    return status;
}

tw_status twi_shape_same(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = c->inputs[0];
    return TW_OK;
}

tw_status twi_shape_broadcast(twi_inference *c)
{
    return twi_broadcast_shapes(c->inputs[0], c->inputs[1], &c->outputs[0], c->error);
}

tw_status twi_shape_merged(twi_inference *c)
{
    tw_shape all = TW_UNKNOWN_SHAPE;
    for (int i = 0; i < c->num_inputs; i++) {
        tw_status status = twi_merge_shapes(all, c->inputs[i], &all, c->error);
        if (status != TW_OK)
            return status;
    }
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = all;
    return TW_OK;
}

tw_status twi_shape_unknown(twi_inference *c)
{
    (void)c; /* outputs start as unknown */
    return TW_OK;
}

tw_status twi_shape_from_attr(twi_inference *c)
{
    c->outputs[0] = twi_attr_shape(c->attrs, "shape");
    return TW_OK;
}
