/* op_info.c - an op's row, for those outside (tower/op.h). Ops that only rewrites and the planner make are none of
 * theirs. */
#include "base/arena.h"
#include "base/memory.h"
#include "device/own.h"
#include "graph/op.h"

#include <tower/op.h>

/* What is given away, with what it points to. */
typedef struct described {
    tw_op_info info; /* first */
    twi_arena arena;
} described;

const char *tw_op_at(int i)
{
    for (const twi_op *const *family = twi_op_families; *family && i >= 0; family++)
        for (const twi_op *op = *family; op->name; op++)
            if (!twi_op_is(op, TWI_REWRITTEN) && i-- == 0)
                return op->name;
    const twi_own_op *own = twi_own_at(i);
    return own ? own->name : NULL;
}

static tw_op_argument *copy_arguments(twi_arena *arena, const twi_argument *from, int count)
{
    tw_op_argument *arguments = twi_arena_alloc(arena, sizeof *arguments * ((size_t)count + 1));
    for (int i = 0; i < count && arguments; i++)
        arguments[i] = (tw_op_argument){from[i].name,        from[i].dtype,     from[i].type_attr,
                                        from[i].number_attr, from[i].list_attr, from[i].is_ref};
    return arguments;
}

static bool copy_attr(twi_arena *arena, const twi_attr_spec *from, tw_op_attr *attr)
{
    tw_dtype *types = twi_arena_alloc(arena, sizeof *types * 64);
    *attr = (tw_op_attr){.name = from->name,
                         .kind = from->kind,
                         .is_optional = from->has_default,
                         .initial = from->value,
                         .types = types,
                         .strings = from->allowed_strings,
                         .num_strings = from->num_allowed_strings,
                         .has_minimum = from->has_minimum,
                         .minimum = from->minimum};
    for (int t = 0; t < 64 && types; t++)
        if (from->allowed_types >> t & 1)
            types[attr->num_types++] = (tw_dtype)t;
    return types;
}

/* What is fed gives that, and what neither takes nor gives anything only waits. */
static bool is_stateful(const twi_op *op, const twi_signature *s)
{
    return twi_op_is(op, TWI_STATEFUL) && !twi_op_is(op, TWI_PLACEHOLDER | TWI_MAY_BE_FED) &&
           (s->num_inputs || s->num_outputs);
}

static bool describe(const twi_op *op, described *d)
{
    const twi_signature *s = twi_op_signature(op);
    if (!s)
        return false;
    d->info = (tw_op_info){.name = op->name,
                           .inputs = copy_arguments(&d->arena, s->inputs, s->num_inputs),
                           .outputs = copy_arguments(&d->arena, s->outputs, s->num_outputs),
                           .attrs = twi_arena_alloc(&d->arena, sizeof *d->info.attrs * ((size_t)s->num_attrs + 1)),
                           .num_inputs = s->num_inputs,
                           .num_outputs = s->num_outputs,
                           .num_attrs = s->num_attrs,
                           .is_stateful = is_stateful(op, s),
                           .is_commutative = twi_op_is(op, TWI_COMMUTATIVE),
                           .is_differentiable = op->gradient};
    bool fits = d->info.inputs && d->info.outputs && d->info.attrs;
    for (int i = 0; i < s->num_attrs && fits; i++)
        fits = copy_attr(&d->arena, &s->attrs[i], &d->info.attrs[i]);
    return fits;
}

tw_status tw_op_describe(const char *name, tw_op_info **info, tw_error *error)
{
    TWI_NEED(name, "name", error);
    TWI_NEED(info, "info", error);
    const twi_op *op = twi_op_find(name);
    if (!op || twi_op_is(op, TWI_REWRITTEN))
        return twi_fail(error, TW_NOT_FOUND, "Op type not registered '%s' in this library", name);
    described *d = twi_alloc(sizeof *d);
    if (d && describe(op, d)) {
        *info = &d->info;
        return TW_OK;
    }
    tw_op_info_destroy(d ? &d->info : NULL);
    return twi_fail_memory(error, "describing an op");
}

void tw_op_info_destroy(tw_op_info *info)
{
    if (!info)
        return;
    described *d = (described *)info;
    twi_arena_free(&d->arena);
    twi_free(d);
}
