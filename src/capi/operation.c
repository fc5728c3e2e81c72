/* operation.c - what an operation is: its op, its inputs and who takes what it gives. Attributes are in attr.c.
 * Never here:  attributes (attr.c). */
#include "capi.h"

#include <string.h>
#include <tower/io.h>

enum { REFERENCE = 100 }; /* what a reference type is above its base */

const char *TF_OperationName(TF_Operation *oper)
{
    return tw_node_name(oper->node);
}

/* Of a node that could not be built, what the file calls it. */
const char *TF_OperationOpType(TF_Operation *oper)
{
    const tw_attr *op = tw_node_is_unknown(oper->node) ? tw_node_attr(oper->node, "op") : NULL;
    return op ? op->s.data : tw_node_op(oper->node);
}

const char *TF_OperationDevice(TF_Operation *oper)
{
    return tw_node_device(oper->node);
}

/* ---- outputs ---------------------------------------------------------------------------------------------------- */

int TF_OperationNumOutputs(TF_Operation *oper)
{
    return tw_node_num_outputs(oper->node);
}

static TF_DataType type_of(TF_Operation *oper, bool is_input, int index, tw_dtype dtype)
{
    int first;
    const tw_op_info *op = op_of(oper);
    const tw_op_argument *argument = !op ? NULL
                                         : find_argument(oper->node, is_input ? op->inputs : op->outputs,
                                                         is_input ? op->num_inputs : op->num_outputs, index, &first);
    return (TF_DataType)((int)dtype + (argument && argument->is_reference && dtype ? REFERENCE : 0));
}

TF_DataType TF_OperationOutputType(TF_Output oper_out)
{
    return type_of(oper_out.oper, false, oper_out.index,
                   tw_output_dtype((tw_output){oper_out.oper->node, oper_out.index}));
}

static int length_of(TF_Operation *oper, const char *arg_name, bool is_input, TF_Status *status)
{
    const tw_op_info *op = op_of(oper);
    const tw_op_argument *arguments = !op ? NULL : is_input ? op->inputs : op->outputs;
    int count = !op ? 0 : is_input ? op->num_inputs : op->num_outputs;
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < count; i++)
        if (strcmp(arguments[i].name, arg_name) == 0)
            return length_of_argument(oper->node, &arguments[i]);
    set_status(status, TF_INVALID_ARGUMENT, "%s arg '%s' not found", is_input ? "Input" : "Output", arg_name);
    return -1;
}

int TF_OperationOutputListLength(TF_Operation *oper, const char *arg_name, TF_Status *status)
{
    return length_of(oper, arg_name, false, status);
}

int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input *consumers, int max_consumers)
{
    int count = 0;
    TF_Graph *graph = oper_out.oper->graph;
    pthread_rwlock_rdlock(&graph->lock);
    for (int i = 0; i < oper_out.oper->num_consumers; i++) {
        TF_Input consumer = oper_out.oper->consumers[i];
        if (tw_node_input(consumer.oper->node, consumer.index).index != oper_out.index)
            continue;
        if (count < max_consumers)
            consumers[count] = consumer;
        count++;
    }
    pthread_rwlock_unlock(&graph->lock);
    return count;
}

int TF_OperationOutputNumConsumers(TF_Output oper_out)
{
    return TF_OperationOutputConsumers(oper_out, NULL, 0);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

int TF_OperationNumInputs(TF_Operation *oper)
{
    return tw_node_num_inputs(oper->node);
}

TF_DataType TF_OperationInputType(TF_Input oper_in)
{
    return type_of(oper_in.oper, true, oper_in.index,
                   tw_output_dtype(tw_node_input(oper_in.oper->node, oper_in.index)));
}

int TF_OperationInputListLength(TF_Operation *oper, const char *arg_name, TF_Status *status)
{
    return length_of(oper, arg_name, true, status);
}

TF_Output TF_OperationInput(TF_Input oper_in)
{
    TF_Graph *graph = oper_in.oper->graph;
    pthread_rwlock_rdlock(&graph->lock);
    TF_Output output = output_of(graph, tw_node_input(oper_in.oper->node, oper_in.index));
    pthread_rwlock_unlock(&graph->lock);
    return output;
}

void TF_OperationAllInputs(TF_Operation *oper, TF_Output *inputs, int max_inputs)
{
    for (int i = 0; i < max_inputs && i < tw_node_num_inputs(oper->node); i++)
        inputs[i] = TF_OperationInput((TF_Input){oper, i});
}

/* ---- control edges ---------------------------------------------------------------------------------------------- */

int TF_OperationNumControlInputs(TF_Operation *oper)
{
    return tw_node_num_control_inputs(oper->node);
}

int TF_OperationGetControlInputs(TF_Operation *oper, TF_Operation **control_inputs, int max_control_inputs)
{
    int count = tw_node_num_control_inputs(oper->node);
    pthread_rwlock_rdlock(&oper->graph->lock);
    for (int i = 0; i < count && i < max_control_inputs; i++)
        control_inputs[i] = operation_of(oper->graph, tw_node_control_input(oper->node, i));
    pthread_rwlock_unlock(&oper->graph->lock);
    return count;
}

int TF_OperationGetControlOutputs(TF_Operation *oper, TF_Operation **control_outputs, int max_control_outputs)
{
    pthread_rwlock_rdlock(&oper->graph->lock);
    int count = oper->num_controlled;
    for (int i = 0; i < count && i < max_control_outputs; i++)
        control_outputs[i] = oper->controlled[i];
    pthread_rwlock_unlock(&oper->graph->lock);
    return count;
}

int TF_OperationNumControlOutputs(TF_Operation *oper)
{
    return TF_OperationGetControlOutputs(oper, NULL, 0);
}

/* ---- as a message ----------------------------------------------------------------------------------------------- */

void TF_OperationToNodeDef(TF_Operation *oper, TF_Buffer *output_node_def, TF_Status *status)
{
    wire def = {0};
    tw_error error = TW_NO_ERROR;
    if (write_node_def(&def, oper, &error) == TW_OK)
        fill_buffer(output_node_def, &def, status);
    else
        set_error(status, &error);
}
