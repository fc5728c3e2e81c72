/* stage_map.c - the ops of staging areas with keys; device/state/stage_map.h does the work. */
#include "device/state/stage_map.h"

#include "base/memory.h"

#include <string.h>

/* state: the area that has the name. */
static tw_status prepare_area(twi_prepare *p)
{
    const char *shared = twi_attr_string(p->attrs, "shared_name", ""), *name = *shared ? shared : p->node;
    if (twi_attr_int(p->attrs, "memory_limit", 0))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': memory_limit is not supported, capacity is", p->op,
                        p->node);
    if (twi_attr_find(p->attrs, "dtypes")->count > TWI_STAGE_COMPONENTS)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s' has %d components, the most are %d", p->op, p->node,
                        twi_attr_find(p->attrs, "dtypes")->count, TWI_STAGE_COMPONENTS);
    twi_resource *resource = p->resources->get(p->resources, name);
    if (!resource)
        return twi_fail_memory(p->error, p->node);
    tw_status status = twi_stage_map_make(resource, name, strncmp(p->op, "Ordered", 7) == 0,
                                          twi_attr_int(p->attrs, "capacity", 0), p->error);
    p->state = status == TW_OK ? twi_stage_map_of(resource) : NULL;
    return status;
}

static tw_status prepare_stage(twi_prepare *p)
{
    const twi_attr *types = twi_attr_find(p->attrs, "dtypes");
    tw_status status = prepare_area(p);
    if (status == TW_OK && types->count == 0)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': dtypes is empty, expected a type for each component",
                        p->op, p->node);
    if (status == TW_OK)
        status = twi_stage_map_types(p->state, types->types, types->count, p->error);
    if (status != TW_OK)
        twi_prefix(p->error, "%s '%s'", p->op, p->node);
    return status;
}

static tw_status run_stage(const twi_run *r)
{
    return twi_stage_map_put(r->state, r, *(const int64_t *)r->inputs[0], r->inputs[1], r->input_operands[1].elements,
                             2);
}

static tw_status take(const twi_run *r, twi_stage_taking how)
{
    int64_t key = *(const int64_t *)r->inputs[0];
    return twi_stage_map_take(r->state, r, how, &key, r->inputs[1], r->input_operands[1].elements, 0);
}

static tw_status run_unstage(const twi_run *r)
{
    return take(r, TWI_STAGE_TAKE);
}

static tw_status run_peek(const twi_run *r)
{
    return take(r, TWI_STAGE_PEEK);
}

static tw_status run_next(const twi_run *r)
{
    return twi_stage_map_take(r->state, r, TWI_STAGE_NEXT, r->outputs[0], r->inputs[0], r->input_operands[0].elements,
                              1);
}

static tw_status run_size(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)twi_stage_map_count(r->state, true);
    return TW_OK;
}

static tw_status run_begun(const twi_run *r)
{
    *(int32_t *)r->outputs[0] = (int32_t)twi_stage_map_count(r->state, false);
    return TW_OK;
}

static tw_status run_clear(const twi_run *r)
{
    twi_stage_map_clear(r->state);
    return TW_OK;
}

#define KERNELS(prefix)                                                                                                \
    {prefix "Stage", "plain", 0, prepare_stage, run_stage}, {prefix "Unstage", "plain", 0, prepare_area, run_unstage}, \
        {prefix "Peek", "plain", 0, prepare_area, run_peek},                                                           \
        {prefix "UnstageNoKey", "plain", 0, prepare_area, run_next},                                                   \
        {prefix "Size", "plain", 0, prepare_area, run_size},                                                           \
        {prefix "IncompleteSize", "plain", 0, prepare_area, run_begun},                                                \
    {                                                                                                                  \
        prefix "Clear", "plain", 0, prepare_area, run_clear                                                            \
    }

const twi_kernel twi_cpu_stage_map_kernels[] = {
    KERNELS("Map"),
    KERNELS("OrderedMap"),
    {0},
};
