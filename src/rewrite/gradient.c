/* gradient.c - the small nodes behind a gradient: weight decay, the cut out of a bucket, the cast, the turn of a filter. */
#include "rewrite/gradient.h"

#include <string.h>

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

bool twi_is_read_of(tw_output output, tw_output handle)
{
    if (!is(output.node, "ReadVariableOp"))
        return false;
    tw_output of = output.node->inputs[0];
    return !handle.node || (of.node == handle.node && of.index == handle.index);
}

tw_node *twi_find_link(const twi_rewriting *r, tw_output output, const char *op, const tw_node *user)
{
    tw_node *node = output.node;
    bool fits = is(node, op) && node->assigned == user->assigned && !node->num_control_inputs &&
                twi_rewrite_only_user(r, output) == user;
    return fits ? node : NULL;
}

tw_output twi_decay_of(const twi_rewriting *r, tw_output term, tw_output handle, tw_output *variable)
{
    const tw_node *mul = term.node;
    for (int i = 0; is(mul, "Mul") && i < 2; i++)
        if (twi_is_read_of(mul->inputs[i], handle) && tw_output_shape(mul->inputs[1 - i]).rank == 0 &&
            twi_rewrite_count_uses(r, term) == 1) {
            *variable = mul->inputs[i];
            return mul->inputs[1 - i];
        }
    return (tw_output){0};
}

static bool is_on_host(const twi_rewriting *r, const tw_node *node)
{
    return r->devices->items[node->assigned]->is_host;
}

void twi_split_decay(const twi_rewriting *r, twi_raw_gradient *g, const tw_node *reader, tw_output handle)
{
    const tw_node *sum = g->value.node;
    if (!is(sum, "AddN") || sum->num_inputs != 2 || sum->num_control_inputs ||
        (sum->assigned != reader->assigned && !(is_on_host(r, sum) && is_on_host(r, reader))) ||
        twi_rewrite_only_user(r, g->value) != g->user)
        return;
    for (int i = 0; i < 2 && !g->decay.node; i++) {
        g->decay = twi_decay_of(r, sum->inputs[i], handle, &g->variable);
        if (g->decay.node) {
            g->value = sum->inputs[1 - i];
            g->user = sum;
        }
    }
}

void twi_take_cast(const twi_rewriting *r, twi_raw_gradient *g, const tw_node *reader, const char *op)
{
    const tw_node *cast = twi_find_link(r, g->value, "Cast", g->user);
    tw_dtype from = cast ? twi_attr_type(&cast->attrs, "SrcT") : TW_FLOAT32;
    if ((from == TW_BFLOAT16 || from == TW_FLOAT16) && cast->assigned == reader->assigned &&
        twi_rewrite_has_kernel(r, reader, op, from)) {
        g->value = cast->inputs[0];
        g->user = cast;
    }
}

void twi_take_cut(const twi_rewriting *r, twi_raw_gradient *g, const tw_node *reader)
{
    const tw_node *shaped = twi_find_link(r, g->value, "Reshape", g->user);
    tw_output part = shaped ? shaped->inputs[0] : g->value;
    const tw_node *cut = twi_find_link(r, part, "SplitV", shaped ? shaped : g->user);
    if (!cut || cut->assigned != reader->assigned || tw_output_shape(cut->inputs[0]).rank != 1 ||
        tw_output_dtype(part) != TW_FLOAT32 || !twi_rewrite_has_kernel(r, reader, "_JoinGradients", TW_FLOAT32))
        return;
    for (int i = 0; i < part.index; i++)
        g->offset += tw_shape_elements(cut->output_shapes[i]);
    g->cut = true;
    g->value = cut->inputs[0];
    g->user = cut;
}

tw_node *twi_find_turnable(const twi_rewriting *r, const twi_raw_gradient *g, const tw_node *reader)
{
    tw_node *conv = twi_find_link(r, g->value, "Conv2DBackpropFilter", g->user);
    bool fits = conv && conv->assigned == reader->assigned && tw_shape_elements(tw_output_shape(g->value)) <= INT32_MAX &&
                strcmp(twi_attr_string(&conv->attrs, "data_format", "NHWC"), "NHWC") == 0 &&
                twi_rewrite_has_kernel(r, reader, "_TurnedConv2DBackpropFilter", tw_output_dtype(g->value));
    return fits ? conv : NULL;
}

void twi_take_turned(twi_rewriting *r, twi_raw_gradient *g, tw_node *conv)
{
    tw_node *turned = twi_rewrite_node(r, conv, "/turned", "_TurnedConv2DBackpropFilter", conv->inputs, 3,
                                       conv->attrs.items, conv->attrs.count);
    if (!turned)
        return;
    twi_rewrite_move_controls(r, conv, turned);
    g->value = (tw_output){turned, 0};
    g->turned = true;
}
