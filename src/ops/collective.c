/* collective.c - what several devices do together: a node on each, which meet (plan/meet.c). */
#include "ops/rules.h"

#include <tower/ops.h>

/* What tf.distribute leaves in the graph of one task: a group of that device alone, whose value is its input's. */
static tw_status alone_shape(twi_inference *c)
{
    int64_t size = twi_attr_int(c->attrs, "group_size", 1);
    tw_status status = c->num_inputs > 1 ? twi_expect_rank(c, 1, 0) : TW_OK;
    if (status == TW_OK && c->num_inputs > 1)
        twi_number_of(c, 1, &size);
    if (status == TW_OK && size != 1)
        status = twi_fail(c->error, TW_UNIMPLEMENTED, "a group of %lld devices; expected one of 1", (long long)size);
    return status == TW_OK ? twi_shape_same(c) : status;
}

#define GROUP "group_size:int; group_key:int; instance_key:int; "
#define HINTS "communication_hint:string=auto; timeout_seconds:float=0"
#define REDUCED "T:{bfloat16,float,half,double,int32,int64}; merge_op:{Min,Max,Mul,Add}; final_op:{Id,Div}; "
#define GATHERED "T:{float,half,double,int32,int64}; "
#define SENT "T:{bool,float,half,double,int32,int64}; "
#define MEMBER "input:T, group_size:int32, group_key:int32, instance_key:int32"
#define TOKENS ", ordering_token:Nordering_token*resource"
#define TOKEN_ATTRS "; is_stateless:bool=false; Nordering_token:int>=0=0"
#define ALONE alone_shape, NULL, TWI_STATEFUL
#define ALONE_BY_INPUTS ALONE | TWI_HOST_ONLY

const twi_op twi_collective_ops[] = {
    {"CollectiveReduce", "input:T", "data:T", REDUCED GROUP "subdiv_offsets:ints; wait_for:ints=[]; " HINTS, ALONE,
     .planned_as = "Identity"},
    {"CollectiveGather", "input:T", "data:T", GATHERED GROUP "shape:shape; " HINTS, ALONE, .planned_as = "Identity"},
    {"CollectiveBcastSend", "input:T", "data:T", SENT GROUP "shape:shape; " HINTS, ALONE, .planned_as = "Identity"},
    {"CollectiveReduceV2", MEMBER TOKENS, "data:T", REDUCED HINTS TOKEN_ATTRS "; max_subdivs_per_device:int=-1",
     ALONE_BY_INPUTS, "....h"},
    {"CollectiveGatherV2", MEMBER TOKENS, "data:T", GATHERED HINTS TOKEN_ATTRS, ALONE_BY_INPUTS, "....h"},
    {"CollectiveBcastSendV2", MEMBER, "data:T", SENT HINTS, ALONE_BY_INPUTS},
    {"NcclAllReduce", "input:T", "data:T",
     "reduction:{min,max,prod,sum}; T:{half,float,double,int32,int64}; num_devices:int; shared_name:string",
     twi_shape_same, NULL, TWI_STATEFUL | TWI_COLLECTIVE},
    {0},
};

tw_output tw_nccl_all_reduce(tw_graph *graph, tw_output input, int num_devices, const char *shared_name)
{
    return twi_build(graph, "NcclAllReduce", TWI_INPUTS(input),
                     TWI_ATTRS(tw_attr_string("reduction", "sum"), tw_attr_int("num_devices", num_devices),
                               tw_attr_string("shared_name", shared_name)));
}
