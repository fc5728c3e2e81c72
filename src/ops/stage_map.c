/* stage_map.c - staging areas with keys as nodes of a graph: filling and emptying them. */
#include "ops/rules.h"

static tw_status check_components(twi_inference *c)
{
    const twi_attr *types = twi_attr_find(c->attrs, "dtypes");
    if (twi_attr_int(c->attrs, "capacity", 0) < 0)
        return TWI_REFUSE(c, "attribute 'capacity' is %lld, expected 0 or more",
                          (long long)twi_attr_int(c->attrs, "capacity", 0));
    for (int i = 0; i < types->count; i++)
        if (types->types[i] == TW_RESOURCE || types->types[i] == TW_VARIANT)
            return TWI_REFUSE(c, "component %d is a %s, which cannot be staged", i, tw_dtype_name(types->types[i]));
    return TW_OK;
}

/* A key and indices, or indices alone. */
static tw_status keyed_shape(twi_inference *c)
{
    tw_status status = check_components(c);
    if (status == TW_OK)
        status = twi_expect_rank(c, 0, 0);
    return status == TW_OK ? twi_expect_rank(c, 1, 1) : status;
}

static tw_status next_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    tw_status status = check_components(c);
    return status == TW_OK ? twi_expect_rank(c, 0, 1) : status;
}

static tw_status size_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = TW_SCALAR;
    return check_components(c);
}

#define STATE TWI_STATEFUL | TWI_HOST_ONLY
#define TAKES twi_not_differentiable, STATE | TWI_MAKES_SHAPE
#define AREA(least) "capacity:int>=0=0; memory_limit:int>=0=0; dtypes:types" least "; "
#define NAMES "container:string=; shared_name:string="

#define OPS(prefix)                                                                                                    \
    {prefix "Stage",                                                                                                   \
     "key:int64, indices:int32, values:fake_dtypes",                                                                   \
     "",                                                                                                               \
     AREA("") "fake_dtypes:types>=1; " NAMES,                                                                          \
     keyed_shape,                                                                                                      \
     NULL,                                                                                                             \
     STATE},                                                                                                           \
        {prefix "Unstage", "key:int64, indices:int32", "values:dtypes", AREA(">=1") NAMES, keyed_shape, TAKES},        \
        {prefix "Peek", "key:int64, indices:int32", "values:dtypes", AREA(">=1") NAMES, keyed_shape, TAKES},           \
        {prefix "UnstageNoKey", "indices:int32", "key:int64, values:dtypes", AREA(">=1") NAMES, next_shape, TAKES},    \
        {prefix "Size", "", "size:int32", AREA("") NAMES, size_shape, twi_not_differentiable, STATE},                  \
        {prefix "IncompleteSize", "", "size:int32", AREA("") NAMES, size_shape, twi_not_differentiable, STATE},        \
    {                                                                                                                  \
        prefix "Clear", "", "", AREA("") NAMES, size_shape, NULL, STATE                                                \
    }

const twi_op twi_stage_map_ops[] = {
    OPS("Map"),
    OPS("OrderedMap"),
    {0},
};
