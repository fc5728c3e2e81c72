/* series.c - stacks and TensorArrays: elements by number, that loops keep for each other.
 *
 * `flow` orders what is done to an array: each write gives the one that the next access takes. What shape an element
 * has is not said in the graph; a plan knows it from what is put in (plan/series.c), or takes what comes. */
#include "graph/op.h"

static tw_status push_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[1];
    return TW_OK;
}

#define ON(flags) TWI_STATEFUL | TWI_HOST_ONLY | (flags)

const twi_op twi_series_ops[] = {
    {"StackV2", "max_size:int32", "handle:resource", "elem_type:type; stack_name:string=", twi_shape_scalar, NULL,
     ON(0), .makes = TWI_MAKES_SERIES},
    {"StackPushV2", "handle:resource, elem:T", "output:T", "T:type; swap_memory:bool=false", push_shape, NULL,
     ON(TWI_PUTS), "q."},
    {"StackPopV2", "handle:resource", "elem:elem_type", "elem_type:type", twi_shape_unknown, NULL,
     ON(TWI_TAKES | TWI_MAKES_SHAPE), "q"},
    {"StackCloseV2", "handle:resource", "", "", twi_shape_unknown, NULL, ON(0), "q"},

    {"TensorArrayV3", "size:int32", "handle:resource, flow:float",
     "dtype:type; element_shape:shape=unknown; dynamic_size:bool=false; clear_after_read:bool=true; "
     "identical_element_shapes:bool=false; tensor_array_name:string=",
     twi_shape_scalar, NULL, ON(0), .makes = TWI_MAKES_SERIES},
    {"TensorArrayGradV3", "handle:resource, flow_in:float", "grad_handle:resource, flow_out:float", "source:string",
     twi_shape_scalar, NULL, ON(0), "q.", .makes = TWI_MAKES_SERIES},
    {"TensorArrayWriteV3", "handle:resource, index:int32, value:T, flow_in:float", "flow_out:float", "T:type",
     twi_shape_scalar, NULL, ON(TWI_PUTS), "q..."},
    {"TensorArrayReadV3", "handle:resource, index:int32, flow_in:float", "value:dtype", "dtype:type", twi_shape_unknown,
     NULL, ON(TWI_TAKES | TWI_MAKES_SHAPE), "q.."},
    {"TensorArrayScatterV3", "handle:resource, indices:int32, value:T, flow_in:float", "flow_out:float", "T:type",
     twi_shape_scalar, NULL, ON(TWI_PUTS), "q..."},
    {"TensorArrayGatherV3", "handle:resource, indices:int32, flow_in:float", "value:dtype",
     "dtype:type; element_shape:shape=unknown", twi_shape_unknown, NULL, ON(TWI_TAKES | TWI_MAKES_SHAPE), "q.."},
    {"TensorArraySplitV3", "handle:resource, value:T, lengths:int64, flow_in:float", "flow_out:float", "T:type",
     twi_shape_scalar, NULL, ON(0), "q..."},
    {"TensorArrayConcatV3", "handle:resource, flow_in:float", "value:dtype, lengths:int64",
     "dtype:type; element_shape_except0:shape=unknown", twi_shape_unknown, NULL, ON(TWI_MAKES_SHAPE), "q."},
    {"TensorArraySizeV3", "handle:resource, flow_in:float", "size:int32", "", twi_shape_scalar, NULL, ON(TWI_COUNTS),
     "q."},
    {"TensorArrayCloseV3", "handle:resource", "", "", twi_shape_unknown, NULL, ON(0), "q"},

    /* Made by the planner: one that was made outside of the loop. */
    {"_Series", "", "handle:resource", "", twi_shape_scalar, NULL, ON(TWI_REWRITTEN), .makes = TWI_MAKES_SERIES},
    {0},
};
