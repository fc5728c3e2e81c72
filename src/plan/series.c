/* series.c - what a plan knows of stacks and TensorArrays: who works on which, how long it is, and which shape its
 * elements have, which it learns from what is put in.
 *
 * A run has them to itself: their resources are named by the plan. Plans of loops share those of the run's. */
#include "plan/specialize.h"

#include "tensor/variant.h"

#include <stdatomic.h>
#include <string.h>

/* The one behind a handle, which has come off a stack or from who has made it. */
static twi_series_facts *facts_of(twi_value handle)
{
    while (!handle.node->series && handle.node->op->makes == TWI_MAKES_NOTHING && handle.node->num_inputs)
        handle = twi_in(handle.node, handle.index < handle.node->num_inputs ? handle.index : 0);
    return handle.node->series;
}

static twi_series_table *table_of(const twi_copying *c)
{
    return c->p->request->series ? c->p->request->series : &c->p->plan->series;
}

static tw_status find_facts(twi_copying *c, const char *name, twi_series_facts **facts)
{
    twi_series_table *table = table_of(c);
    static atomic_int plans;
    if (!table->number)
        table->number = 1 + atomic_fetch_add(&plans, 1);
    *facts = twi_map_get(&table->by_name, name);
    if (*facts)
        return TW_OK;
    *facts = twi_arena_alloc(&table->arena, sizeof **facts);
    char *key = twi_arena_printf(&table->arena, "series/%d/%s", table->number, name);
    if (!*facts || !key || !twi_map_put(&table->by_name, key + (strlen(key) - strlen(name)), *facts))
        return twi_fail_memory(c->p->error, "planning a loop");
    **facts = (twi_series_facts){.key = key, .name = key + (strlen(key) - strlen(name)), .size = -1};
    return TW_OK;
}

static tw_status fail_unmade(const twi_copying *c, const tw_node *node)
{
    return twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s '%s': nobody has made what it works on", node->op->name,
                    node->name);
}

/* The gradient of an array is as long, and its elements are shaped alike. */
static tw_status make(twi_copying *c, const tw_node *node, const twi_value *inputs, twi_series_facts **facts)
{
    if (node->op->roles) { /* of a handle */
        twi_series_facts *base = facts_of(inputs[0]);
        if (!base)
            return fail_unmade(c, node);
        char *name = twi_arena_printf(&c->p->plan->arena, "%s@%s", base->name,
                                      twi_attr_string(&node->attrs, "source", ""));
        tw_status status = name ? find_facts(c, name, facts) : twi_fail_memory(c->p->error, "planning a loop");
        if (status == TW_OK)
            (*facts)->base = base;
        return status;
    }
    tw_status status = find_facts(c, node->name, facts);
    const twi_attr *shape = twi_attr_find(&node->attrs, "element_shape");
    const tw_tensor *size = node->num_inputs && inputs ? twi_constant(inputs[0]) : NULL;
    if (status == TW_OK && shape && tw_shape_is_known(shape->shape))
        (*facts)->shape = shape->shape, (*facts)->has_shape = true;
    if (status == TW_OK && size && shape && !twi_attr_bool(&node->attrs, "dynamic_size", false))
        (*facts)->size = (int64_t)tw_tensor_value(size, 0);
    return status;
}

static twi_series_facts *root(twi_series_facts *facts)
{
    while (facts && facts->base)
        facts = facts->base;
    return facts;
}

static bool is_same(const tw_tensor *a, const tw_tensor *b)
{
    return b && a->dtype == b->dtype && tw_shape_equal(a->shape, b->shape) &&
           memcmp(a->data, b->data, tw_tensor_bytes(a)) == 0;
}

/* Whether all elements are alike is known of a stack that one node pushes to: so what a gradient's loop pops of shapes,
 * which are constants where the loop is planned for them, are constants there, too. */
static tw_status learn_value(twi_copying *c, const tw_node *node, const twi_node *made, twi_series_facts *facts)
{
    tw_tensor *value = made->num_inputs == 2 ? twi_constant(twi_in(made, 1)) : NULL;
    bool alone = c->frames && c->frames->puts[twi_made_by(node->inputs[0].node)->id] == 1;
    bool first = !facts->filled && value && alone && !twi_owns_memory(value->dtype);
    if (first && !twi_push(&table_of(c)->values, value))
        return twi_fail_memory(c->p->error, "planning a loop");
    if (first)
        facts->value = tw_tensor_retain(value);
    else if (facts->value && !is_same(facts->value, value))
        facts->value = NULL;
    facts->filled = true;
    return TW_OK;
}

static void put(const twi_node *made, twi_series_facts *facts)
{
    int input = made->num_inputs > 2 ? 2 : 1;
    tw_shape shape = twi_shape(twi_in(made, input));
    if (made->num_inputs > 2 && twi_shape(twi_in(made, 1)).rank == 1 &&
        shape.rank > 0) { /* many, along the first axis */
        shape.rank--;
        memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)shape.rank);
    }
    if (!tw_shape_is_known(shape))
        return;
    facts->varies = facts->varies || (facts->has_shape && !tw_shape_equal(facts->shape, shape));
    facts->shape = shape;
    facts->has_shape = true;
}

/* What a loop takes off a stack of what is always the same need not be taken. */
static tw_status take_known(twi_copying *c, const twi_node *made, const twi_series_facts *facts, twi_value *folded)
{
    *folded = twi_out(twi_node_constant(c->region, made, "/known", facts->value), 0);
    return twi_region_check(c->region, c->p->error);
}

static void take(twi_node *made, const twi_series_facts *facts)
{
    tw_shape shape = facts->shape, indices = made->num_inputs > 1 ? twi_shape(twi_in(made, 1)) : TW_SCALAR;
    if (!facts->has_shape || facts->varies || shape.rank + indices.rank > TW_MAX_RANK)
        return;
    if (indices.rank == 1) {
        memmove(shape.dims + 1, shape.dims, sizeof *shape.dims * (size_t)shape.rank);
        shape.dims[0] = indices.dims[0];
        shape.rank++;
    }
    twi_node_set_shape(made, 0, shape);
}

static tw_status count(twi_copying *c, const twi_node *made, const twi_series_facts *facts, twi_value *folded)
{
    int32_t size = (int32_t)facts->size;
    tw_tensor *value = facts->size >= 0 ? tw_tensor_from(TW_INT32, TW_SCALAR, &size) : NULL;
    if (facts->size < 0)
        return TW_OK;
    *folded = twi_out(twi_node_constant(c->region, made, "/known", value), 0);
    tw_tensor_release(value);
    return twi_region_check(c->region, c->p->error);
}

/* An array that a round has made goes with its handle through a stack into a gradient's loop. */
static tw_status put_handle(twi_copying *c, const tw_node *node, twi_series_facts *handle, twi_series_facts *stack)
{
    if (!handle || (stack->handles && stack->handles != handle))
        return twi_fail(c->p->error, TW_UNIMPLEMENTED, "%s '%s' pushes handles of more than one array, or of none",
                        node->op->name, node->name);
    stack->handles = handle;
    return TW_OK;
}

static tw_status take_handle(twi_copying *c, const tw_node *node, const twi_series_facts *stack,
                             twi_series_facts **series)
{
    *series = stack->handles;
    return *series ? TW_OK
                   : twi_fail(c->p->error, TW_INVALID_ARGUMENT, "%s '%s': nobody has pushed what it gives",
                              node->op->name, node->name);
}

tw_status twi_copy_series(twi_copying *c, const tw_node *node, twi_node *made, const twi_value *inputs,
                          twi_value *folded)
{
    twi_series_facts *facts = NULL;
    if (node->op->makes == TWI_MAKES_SERIES) {
        tw_status status = make(c, node, inputs, &facts);
        made->series = facts;
        return status;
    }
    if (!twi_op_is(node->op, TWI_PUTS | TWI_TAKES | TWI_COUNTS))
        return TW_OK;
    facts = root(facts_of(twi_in(made, 0)));
    if (facts && twi_copy_gives_handle(node))
        return take_handle(c, node, facts, &made->series);
    if (facts && made->num_inputs == 2 && twi_dtype(twi_in(made, 1)) == TW_RESOURCE)
        return put_handle(c, node, facts_of(twi_in(made, 1)), facts);
    if (!facts)
        return fail_unmade(c, node);
    if (twi_op_is(node->op, TWI_PUTS)) {
        tw_status status = learn_value(c, node, made, facts);
        put(made, facts);
        return status;
    }
    if (twi_op_is(node->op, TWI_COUNTS))
        return count(c, made, facts, folded);
    if (facts->value && !facts->varies && c->p->request->frame && made->num_inputs == 1)
        return take_known(c, made, facts, folded);
    take(made, facts);
    return TW_OK;
}

/* What a stack or an array is called among those of the run; NULL: memory has run out. */
static const char *name_of(twi_copying *c, const tw_node *maker)
{
    const tw_node *base = maker->op->roles ? twi_made_by(maker->inputs[0].node) : NULL;
    const char *name = base ? name_of(c, base) : NULL;
    if (!base)
        return maker->name;
    const char *source = twi_attr_string(&maker->attrs, "source", "");
    return name ? twi_arena_printf(&c->p->plan->arena, "%s@%s", name, source) : NULL;
}

tw_status twi_series_vary(twi_copying *c, const tw_node *put)
{
    const tw_node *maker = twi_made_by(put->inputs[0].node);
    const char *name = maker->op->makes == TWI_MAKES_SERIES ? name_of(c, maker) : "";
    twi_series_facts *facts = NULL;
    tw_status status = name ? TW_OK : twi_fail_memory(c->p->error, "planning a loop");
    if (status == TW_OK && name[0])
        status = find_facts(c, name, &facts);
    if (facts)
        root(facts)->varies = true;
    return status;
}

tw_status twi_copy_outer_series(twi_copying *c, const tw_node *node)
{
    twi_series_facts *facts;
    const twi_value *base = node->op->roles ? &c->of[node->inputs[0].node->id].outputs[node->inputs[0].index] : NULL;
    tw_status status = twi_copy_gives_handle(node) ? take_handle(c, node, root(facts_of(*base)), &facts)
                                                   : make(c, node, base, &facts);
    if (status != TW_OK)
        return status;
    twi_node *made = twi_node_make(
        c->region,
        &(twi_wish){
            .op = twi_op_find("_Series"), .name = node->name, .origin = node, .rank = node->order, .device = -1});
    if (!made)
        return twi_region_check(c->region, c->p->error);
    made->series = facts;
    c->of[node->id].outputs[0] = twi_out(made, 0);
    return TW_OK;
}
