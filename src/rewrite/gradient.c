/* gradient.c - the small nodes behind a gradient: weight decay, the cut out of a bucket, the cast, the order of a
 * filter's axes. */
#include "rewrite/gradient.h"

#include <string.h>

bool twi_is_read_of(twi_value value, twi_value handle)
{
    return twi_has_trait(value.node, TWI_READ) && (!handle.node || twi_same(twi_in(value.node, 0), handle));
}

twi_node *twi_find_link(twi_value value, twi_known op, const twi_node *user)
{
    twi_node *node = value.node;
    bool fits = twi_is(node, op) && node->device == user->device && !node->num_controls && twi_only_user(value) == user;
    return fits ? node : NULL;
}

twi_value twi_decay_of(twi_value term, twi_value handle, twi_value *variable)
{
    const twi_node *mul = twi_is(term.node, TWI_OP_Mul) ? term.node : NULL;
    for (int i = 0; mul && i < 2; i++)
        if (twi_is_read_of(twi_in(mul, i), handle) && twi_shape(twi_in(mul, 1 - i)).rank == 0 &&
            twi_uses_of(term)->count == 1) {
            *variable = twi_in(mul, i);
            return twi_in(mul, 1 - i);
        }
    return (twi_value){0};
}

static bool is_on_host(const twi_rewriting *r, const twi_node *node)
{
    return r->devices->items[node->device]->is_host;
}

void twi_split_decay(const twi_rewriting *r, twi_raw_gradient *g, const twi_node *reader, twi_value handle)
{
    const twi_node *sum = g->value.node;
    if (!twi_is(sum, TWI_OP_AddN) || sum->num_inputs != 2 || sum->num_controls ||
        (sum->device != reader->device && !(is_on_host(r, sum) && is_on_host(r, reader))) ||
        twi_only_user(g->value) != g->user)
        return;
    for (int i = 0; i < 2 && !g->decay.node; i++) {
        g->decay = twi_decay_of(twi_in(sum, i), handle, &g->variable);
        if (g->decay.node) {
            g->value = twi_in(sum, 1 - i);
            g->user = sum;
        }
    }
}

void twi_take_cast(const twi_rewriting *r, twi_raw_gradient *g, const twi_node *reader, const char *op)
{
    const twi_node *cast = twi_find_link(g->value, TWI_OP_Cast, g->user);
    tw_dtype from = cast ? twi_attr_type(&cast->attrs, "SrcT") : TW_FLOAT32;
    if ((from == TW_BFLOAT16 || from == TW_FLOAT16) && cast->device == reader->device &&
        twi_rewrite_has_kernel(r, reader, op, from)) {
        g->value = twi_in(cast, 0);
        g->user = cast;
    }
}

static int64_t offset_of(twi_cut *last, twi_value part)
{
    if (last->split != part.node || last->index > part.index)
        *last = (twi_cut){.split = part.node};
    for (; last->index < part.index; last->index++)
        last->offset += tw_shape_elements(twi_shape(twi_out(part.node, last->index)));
    return last->offset;
}

void twi_take_cut(const twi_rewriting *r, twi_cut *last, twi_raw_gradient *g, const twi_node *reader)
{
    const twi_node *shaped = twi_find_link(g->value, TWI_OP_Reshape, g->user);
    twi_value part = shaped ? twi_in(shaped, 0) : g->value;
    const twi_node *split = twi_find_link(part, TWI_OP_SplitV, shaped ? shaped : g->user);
    if (!split || split->device != reader->device || twi_shape(twi_in(split, 0)).rank != 1 ||
        twi_dtype(part) != TW_FLOAT32 || !twi_rewrite_has_kernel(r, reader, "_JoinGradients", TW_FLOAT32))
        return;
    g->offset = offset_of(last, part);
    g->cut = true;
    g->value = twi_in(split, 0);
    g->user = split;
}

void twi_find_conv(const twi_rewriting *r, twi_raw_gradient *g, const twi_node *reader)
{
    twi_node *conv = twi_find_link(g->value, TWI_OP_Conv2DBackpropFilter, g->user);
    bool fits = conv && conv->device == reader->device && conv->guard == reader->guard &&
                tw_shape_elements(twi_shape(g->value)) <= INT32_MAX &&
                strcmp(twi_attr_string(&conv->attrs, "data_format", "NHWC"), "NHWC") == 0 &&
                twi_rewrite_has_kernel(r, reader, "_TransposedFilterConv2DBackpropFilter", twi_dtype(g->value));
    g->conv = fits ? conv : NULL;
}

static twi_node *make_transposed(twi_rewriting *r, const twi_node *conv)
{
    twi_value inputs[] = {twi_in(conv, 0), twi_in(conv, 1), twi_in(conv, 2)};
    return twi_rewrite_make(r, conv, "/transposed", "_TransposedFilterConv2DBackpropFilter", inputs, 3,
                            conv->attrs.items, conv->attrs.count);
}

bool twi_make_transposed(twi_rewriting *r, twi_raw_gradient *gradients, int count)
{
    enum { MOST = 2 };
    twi_node *made[MOST];
    int before = r->region->nodes.count;
    bool fits = count <= MOST;
    for (int i = 0; i < count && fits; i++) {
        made[i] = gradients[i].conv ? make_transposed(r, gradients[i].conv) : NULL;
        fits = made[i] != NULL;
    }
    for (int i = 0; i < count && fits; i++) {
        gradients[i].value = twi_out(made[i], 0);
        gradients[i].transposed = true;
    }
    if (!fits)
        twi_rewrite_undo(r, before);
    return fits;
}

void twi_settle_transposed(const twi_raw_gradient *g)
{
    if (g->transposed)
        twi_move_controls(g->conv, g->value.node);
}
