/* conditions.c - If and Case become Switch and Merge. */
#include "io/functions/lowering.h"

#include <string.h>

/* What runs where the side is taken. */
static tw_status add_side(twi_lowering *l, bool side)
{
    twi_functions *f = l->f;
    twi_attr_value type = twi_type_value("T", TW_BOOL);
    const char *input = TWI_PRINT("%s/pivot%s", l->name, side ? ":1" : "");
    return twi_lower_add(f, "Identity", TWI_PRINT("%s/%s", l->name, side ? "then" : "else"), l->device, &input, 1,
                         &type, 1);
}

static tw_status add_switches(twi_lowering *l)
{
    twi_functions *f = l->f;
    twi_attr_value type = twi_type_value("T", TW_BOOL);
    tw_status status =
        twi_lower_add_with_controls(l, "Switch", TWI_PRINT("%s/pivot", l->name), l->inputs[0], l->inputs[0], &type, 1);
    for (size_t i = 1; i < l->num_data && status == TW_OK; i++) {
        type = twi_type_value("T", twi_lower_type(l->node, "Tin", i - 1));
        status = twi_lower_add_with_controls(l, "Switch", TWI_PRINT("%s/switch_%zu", l->name, i - 1), l->inputs[i],
                                             l->inputs[0], &type, 1);
    }
    if (status == TW_OK)
        status = add_side(l, false);
    return status == TW_OK ? add_side(l, true) : status;
}

static tw_status inline_branch(twi_lowering *l, const Twi__FunctionDef *function, bool side, twi_function_call *c)
{
    twi_functions *f = l->f;
    const char *word = side ? "then" : "else";
    tw_status status = twi_lower_open(f, function, TWI_PRINT("%s/%s/", l->name, word), l->device,
                                      TWI_PRINT("^%s/%s", l->name, word), l->num_data - 1, c);
    for (size_t i = 0; i + 1 < l->num_data && status == TW_OK; i++)
        if (!(c->place.arguments[i] = TWI_PRINT("%s/switch_%zu%s", l->name, i, side ? ":1" : "")))
            status = twi_lower_fail_memory(f);
    return status == TW_OK ? twi_lower_inline(f, &c->place, c->results, c->controls) : status;
}

/* Runs when the side's effects are there. */
static tw_status add_done(twi_lowering *l, const char *word, const twi_function_call *c)
{
    twi_functions *f = l->f;
    twi_attr_value type = twi_type_value("T", TW_BOOL);
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (c->num_controls + 1));
    if (!inputs)
        return twi_lower_fail_memory(f);
    inputs[0] = TWI_PRINT("%s/%s", l->name, word);
    for (size_t i = 0; i < c->num_controls; i++)
        inputs[i + 1] = c->controls[i];
    return twi_lower_add(f, "Identity", TWI_PRINT("%s/%s_done", l->name, word), l->device, inputs, c->num_controls + 1,
                         &type, 1);
}

/* The results of both sides, [false] and [true], become one: sides[0]'s, whose only control is that it is done. */
static tw_status merge_sides(twi_lowering *l, twi_function_call sides[2])
{
    twi_functions *f = l->f;
    tw_status status;
    if (sides[0].num_results != sides[1].num_results)
        TWI_LEAVE(twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s): one branch gives %zu values, the other %zu",
                           l->name, l->node->op, sides[1].num_results, sides[0].num_results));
    for (size_t i = 0; i < sides[0].num_results; i++) {
        twi_attr_value attrs[] = {twi_type_value("T", twi_lower_type(l->node, "Tout", i)), twi_int_value("N", 2)};
        const char *inputs[] = {sides[0].results[i], sides[1].results[i]};
        char *name = TWI_PRINT("%s/merge_%zu", l->name, i);
        TWI_TRY(twi_lower_add(f, "Merge", name, l->device, inputs, 2, attrs, 2));
        sides[0].results[i] = name;
    }
    TWI_TRY(add_done(l, "else", &sides[0]));
    TWI_TRY(add_done(l, "then", &sides[1]));
    twi_attr_value attrs[] = {twi_type_value("T", TW_BOOL), twi_int_value("N", 2)};
    const char *inputs[] = {TWI_PRINT("%s/else_done", l->name), TWI_PRINT("%s/then_done", l->name)};
    TWI_TRY(twi_lower_add(f, "Merge", TWI_PRINT("%s/done", l->name), l->device, inputs, 2, attrs, 2));
    sides[0].controls = twi_arena_alloc(f->arena, sizeof(char *));
    sides[0].num_controls = 1;
    if (!sides[0].controls || !(sides[0].controls[0] = TWI_PRINT("^%s/done", l->name)))
        status = twi_lower_fail_memory(f);
done:
    return status;
}

tw_status twi_lower_if(twi_lowering *l)
{
    twi_functions *f = l->f;
    twi_function_call sides[2];
    tw_status status;
    TWI_TRY(add_switches(l));
    TWI_TRY(inline_branch(l, twi_lower_function(f, l->node, "else_branch"), false, &sides[0]));
    TWI_TRY(inline_branch(l, twi_lower_function(f, l->node, "then_branch"), true, &sides[1]));
    TWI_TRY(merge_sides(l, sides));
    TWI_TRY(twi_lower_add_outputs(f, l->name, l->device, l->node, "Tout", sides[0].results, sides[0].num_results,
                                  sides[0].controls, 1));
done:
    return status;
}

/* Whether the index is that branch's. */
static tw_status add_test(twi_lowering *level, const char *index, int32_t number)
{
    twi_functions *f = level->f;
    twi_attr_value compared = twi_type_value("T", TW_INT32);
    Twi__TensorProto value = TWI__TENSOR_PROTO__INIT;
    const char *there = TWI_PRINT("^%.*s", (int)strcspn(index, ":"), index);
    const char *inputs[] = {index, TWI_PRINT("%s/number", level->name)};
    value.dtype = TW_INT32;
    value.n_int_val = 1;
    value.int_val = twi_arena_copy(f->arena, &number, sizeof number);
    if (!value.int_val || !there || !inputs[1])
        return twi_lower_fail_memory(f);
    tw_status status = twi_lower_add_const(f, inputs[1], level->device, there, TW_SCALAR, &value);
    return status == TW_OK ? twi_lower_add(f, "Equal", level->inputs[0], level->device, inputs, 2, &compared, 1)
                           : status;
}

/* A level tells its branch from all behind it. What it takes is what the level before lets through. */
static tw_status open_level(twi_lowering *l, size_t number, const twi_lowering *before, const char **index,
                            twi_lowering *level)
{
    twi_functions *f = l->f;
    twi_attr_value type = twi_type_value("T", TW_INT32);
    char *last = TWI_PRINT("%s/level_%zu/index", l->name, number);
    *level = *l;
    level->name = TWI_PRINT("%s/level_%zu", l->name, number);
    level->inputs = twi_arena_copy(f->arena, l->inputs, sizeof *l->inputs * (l->node->n_input + 1));
    if (!last || !level->name || !level->inputs || !(level->inputs[0] = TWI_PRINT("%s/taken", level->name)))
        return twi_lower_fail_memory(f);
    for (size_t i = 1; i < l->num_data && before; i++)
        if (!(level->inputs[i] = TWI_PRINT("%s/switch_%zu", before->name, i - 1)))
            return twi_lower_fail_memory(f);
    tw_status status = add_test(level, *index, (int32_t)number);
    const char *switched[] = {*index, level->inputs[0]};
    if (status == TW_OK)
        status = twi_lower_add(f, "Switch", last, level->device, switched, 2, &type, 1);
    *index = last;
    return status == TW_OK ? add_switches(level) : status;
}

tw_status twi_lower_case(twi_lowering *l)
{
    twi_functions *f = l->f;
    size_t count = twi_lower_count_functions(f, l->node, "branches");
    twi_lowering *levels = twi_arena_alloc(f->arena, sizeof *levels * (count + 1));
    twi_function_call *branches = twi_arena_alloc(f->arena, sizeof *branches * (count + 1));
    const char *index = l->inputs[0];
    tw_status status = levels && branches && count ? TW_OK : twi_lower_fail_memory(f); /* count: once there were some */
    if (count == 1)
        return twi_lower_call_function(l, twi_lower_function(f, l->node, "branches"), 1);
    for (size_t i = 0; i + 1 < count && status == TW_OK; i++) {
        status = open_level(l, i, i ? &levels[i - 1] : NULL, &index, &levels[i]);
        if (status == TW_OK)
            status = inline_branch(&levels[i], twi_lower_function_at(f, l->node, "branches", i), true, &branches[i]);
    }
    if (status == TW_OK)
        status = inline_branch(&levels[count - 2], twi_lower_function_at(f, l->node, "branches", count - 1), false,
                               &branches[count - 1]);
    for (size_t i = count - 1; i > 0 && status == TW_OK; i--) {
        twi_function_call sides[2] = {branches[i], branches[i - 1]};
        status = merge_sides(&levels[i - 1], sides);
        branches[i - 1] = sides[0];
    }
    if (status == TW_OK)
        status = twi_lower_add_outputs(f, l->name, l->device, l->node, "Tout", branches[0].results,
                                       branches[0].num_results, branches[0].controls, 1);
    return status;
}
