/* collective.c - what several devices do together: a node on each, which meet (plan/meet.c). */
#include "ops/build.h"

#include <tower/ops.h>

const twi_op twi_collective_ops[] = {
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
