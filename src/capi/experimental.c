/* experimental.c - of c_api_experimental.h what is about configurations and ops.
 * Never here:  readers of checkpoints (checkpoint.c), handles of tensors (eager.c). */
#include <tensorflow/c/c_api_experimental.h>

#include "capi.h"

/* ---- XLA, which there is not ------------------------------------------------------------------------------------ */

void TF_EnableXLACompilation(TF_SessionOptions *options, unsigned char enable)
{
    (void)options;
    (void)enable;
}

unsigned char TF_SetXlaEnableLazyCompilation(unsigned char enable)
{
    (void)enable;
    return 0;
}

unsigned char TF_SetTfXlaCpuGlobalJit(unsigned char enable)
{
    (void)enable;
    return 0;
}

void TF_SetXlaAutoJitMode(const char *mode)
{
    (void)mode;
}

unsigned char TF_GetXlaAutoJitEnabled(void)
{
    return 0;
}

void TF_SetXlaMinClusterSize(int size)
{
    (void)size;
}

unsigned char TF_GetXlaConstantFoldingDisabled(void)
{
    return 0;
}

void TF_SetXlaConstantFoldingDisabled(unsigned char should_enable)
{
    (void)should_enable;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

TF_Buffer *TF_CreateConfig(unsigned char enable_xla_compilation, unsigned char gpu_memory_allow_growth,
                           unsigned int num_cpu_devices)
{
    enum { DEVICE_COUNT = 1, INTER_OP_THREADS = 5, GPU_OPTIONS = 6, GRAPH_OPTIONS = 10 };
    enum { KEY = 1, VALUE = 2, ALLOW_GROWTH = 4, OPTIMIZER_OPTIONS = 3, GLOBAL_JIT_LEVEL = 5, ON = 1 };
    wire config = {0}, devices = {0}, gpu = {0}, optimizer = {0}, graph = {0};
    wire_text(&devices, KEY, "CPU");
    wire_int(&devices, VALUE, num_cpu_devices);
    wire_message(&config, DEVICE_COUNT, &devices);
    wire_int(&config, INTER_OP_THREADS, 1);
    if (gpu_memory_allow_growth)
        wire_int(&gpu, ALLOW_GROWTH, 1);
    wire_message(&config, GPU_OPTIONS, &gpu);
    wire_int(&optimizer, GLOBAL_JIT_LEVEL, enable_xla_compilation ? ON : (uint64_t)-1);
    wire_message(&graph, OPTIMIZER_OPTIONS, &optimizer);
    wire_message(&config, GRAPH_OPTIONS, &graph);
    return new_buffer(&config);
}

TF_Buffer *TF_CreateRunOptions(unsigned char enable_full_trace)
{
    enum { TRACE_LEVEL = 1, FULL_TRACE = 3 };
    wire options = {0};
    if (enable_full_trace)
        wire_int(&options, TRACE_LEVEL, FULL_TRACE);
    return new_buffer(&options);
}

void TF_MakeInternalErrorStatus(TF_Status *status, const char *errMsg)
{
    TF_SetStatus(status, TF_INTERNAL, errMsg);
}

/* ---- ops -------------------------------------------------------------------------------------------------------- */

static const tw_op_info *find_registered(const char *name, TF_Status *status)
{
    const tw_op_info *op = find_op(name);
    TF_SetStatus(status, TF_OK, "");
    if (!op)
        set_not_registered(status, name);
    return op;
}

int TF_OpIsStateful(const char *op_type, TF_Status *status)
{
    const tw_op_info *op = find_registered(op_type, status);
    return op && op->is_stateful;
}

const char *TF_GetNumberAttrForOpListInput(const char *op_name, int input_index, TF_Status *status)
{
    const tw_op_info *op = find_registered(op_name, status);
    bool is_there = op && input_index >= 0 && input_index < op->num_inputs;
    const char *attr = is_there ? op->inputs[input_index].number_attr : NULL;
    if (op && !is_there)
        set_status(status, TF_INVALID_ARGUMENT, "%d out of range for %s", input_index, op_name);
    else if (op && !attr)
        set_status(status, TF_NOT_FOUND, "%s does not have number_attr() defined.", op_name);
    return attr;
}

void TF_InitMain(const char *usage, int *argc, char ***argv)
{
    (void)usage;
    (void)argc;
    (void)argv;
}
