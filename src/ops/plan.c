/* plan.c - the ops only a planner makes: what is fed, what crosses from one device to another, and where a device waits
 * for a reduction that it has started; and what an import makes of a node that it cannot build. */
#include "graph/op.h"

const twi_op twi_plan_ops[] = {
    {"_Feed", "", "output:dtype", "dtype:type; shape:shape; index:int", twi_shape_from_attr, NULL,
     TWI_STATEFUL | TWI_REWRITTEN | TWI_FEED},
    {"_Copy", "input:T", "output:T", "T:type", twi_shape_same, NULL, TWI_REWRITTEN | TWI_COPY},
    /* `node` is the file's NodeDef, `why` the reason. Nobody takes anything from it: who would is one too. */
    {"_Unknown", "", "", "op:string; node:string; why:string", twi_shape_unknown, NULL,
     TWI_STATEFUL | TWI_REWRITTEN | TWI_UNKNOWN},
    {"_NcclDone", "reduced:T, input:T", "data:T", "reduction:string; T:type; num_devices:int; shared_name:string",
     twi_shape_same, NULL, TWI_STATEFUL | TWI_REWRITTEN},
    {0},
};
