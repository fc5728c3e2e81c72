/* experimental.c - of c_api_experimental.h what is about configurations and ops.
 * Never here:  readers of checkpoints (checkpoint.c), handles of tensors (eager.c). */
#include <tensorflow/c/c_api_experimental.h>

#include "capi.h"

#include <stdlib.h>
#include <string.h>

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

static void append_text(wire *text, const char *before, const wire_field *value, const char *behind)
{
    wire_append(text, before, strlen(before));
    if (value)
        wire_append(text, value->data, value->size);
    wire_append(text, behind, strlen(behind));
}

/* Those of its fields that say where it stands, by their numbers. */
static void append_node(wire *text, const wire_field *node)
{
    static const char *const names[] = {NULL, "  name: \"", "  op: \"", "  input: \"", "  device: \""};
    wire_field field;
    append_text(text, "node {\n", NULL, "");
    for (wire_reader r = wire_read(node->data, node->size); wire_next(&r, &field);)
        if (field.type == 2 && field.number < (int)(sizeof names / sizeof *names))
            append_text(text, names[field.number], &field, "\"\n");
    append_text(text, "}\n", NULL, "");
}

/* Of a message whose nodes are field `node`, and which is deleted; a function's name is in its signature. */
static char *describe(TF_Buffer *message, int node, bool is_function, size_t *len)
{
    enum { SIGNATURE = 1, NAME = 1 };
    wire text = {0};
    wire_field field, name;
    for (wire_reader r = wire_read(message->data, message->length); wire_next(&r, &field);) {
        wire_reader signature = is_function && field.number == SIGNATURE && field.type == 2
                                    ? wire_read(field.data, field.size)
                                    : (wire_reader){0};
        while (wire_next(&signature, &name))
            if (name.number == NAME && name.type == 2)
                append_text(&text, "name: \"", &name, "\"\n");
        if (field.number == node && field.type == 2)
            append_node(&text, &field);
    }
    TF_DeleteBuffer(message);
    *len = text.size;
    wire_append(&text, "", 1);
    if (!text.failed)
        return (char *)text.data;
    wire_free(&text);
    return NULL;
}

const char *TF_GraphDebugString(TF_Graph *graph, size_t *len)
{
    enum { NODE = 1 };
    TF_Status status = {0};
    TF_Buffer *def = TF_NewBuffer();
    if (def)
        TF_GraphToGraphDef(graph, def, &status);
    free(status.message);
    return def ? describe(def, NODE, false, len) : NULL;
}

char *TF_FunctionDebugString(TF_Function *func, size_t *len)
{
    enum { NODE = 3 };
    TF_Status status = {0};
    TF_Buffer *def = TF_NewBuffer();
    if (def)
        TF_FunctionToFunctionDef(func, def, &status);
    free(status.message);
    return def ? describe(def, NODE, true, len) : NULL;
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

struct TF_AttrBuilder {
    char *op;
    TF_OperationDescription *about; /* of no graph */
};

TF_AttrBuilder *TF_NewAttrBuilder(const char *op_name)
{
    TF_AttrBuilder *builder = calloc(1, sizeof *builder);
    if (!builder)
        return NULL;
    *builder = (TF_AttrBuilder){.op = strdup(op_name), .about = TF_NewOperation(NULL, op_name, "")};
    if (builder->op && builder->about)
        return builder;
    TF_DeleteAttrBuilder(builder);
    return NULL;
}

void TF_DeleteAttrBuilder(TF_AttrBuilder *builder)
{
    if (builder) {
        delete_description(builder->about);
        free(builder->op);
    }
    free(builder);
}

void TF_AttrBuilderSetType(TF_AttrBuilder *builder, const char *attr_name, TF_DataType value)
{
    if (!described_value(builder->about, attr_name))
        TF_SetAttrType(builder->about, attr_name, value);
}

void TF_AttrBuilderSetTypeList(TF_AttrBuilder *builder, const char *attr_name, const TF_DataType *values,
                               int num_values)
{
    if (!described_value(builder->about, attr_name))
        TF_SetAttrTypeList(builder->about, attr_name, values, num_values);
}

static bool takes_type(const tw_op_attr *attr, TF_DataType type)
{
    for (int i = 0; i < attr->num_types; i++)
        if ((TF_DataType)attr->types[i] == type)
            return true;
    return attr->num_types == 0;
}

void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder *builder, const char *device_type, TF_Status *status)
{
    const tw_op_info *op = find_op(builder->op);
    bool is_device = strcmp(device_type, "CPU") == 0 || strcmp(device_type, "GPU") == 0;
    TF_SetStatus(status, TF_OK, "");
    if (!op || !is_device)
        set_status(status, TF_NOT_FOUND, "No registered '%s' OpKernel for %s devices compatible with node {{node %s}}",
                   builder->op, device_type, builder->op);
    for (int i = 0; is_ok(status) && i < op->num_attrs; i++) {
        const tw_op_attr *attr = &op->attrs[i];
        if (attr->kind != TW_ATTR_TYPE || attr->is_optional)
            continue;
        if (!described_value(builder->about, attr->name))
            set_status(status, TF_INVALID_ARGUMENT, "OpKernel '%s' has constraint on attr '%s' not in NodeDef",
                       op->name, attr->name);
        else if (!takes_type(attr, described_type(builder->about, attr->name, 0)))
            set_status(status, TF_NOT_FOUND, "No registered '%s' OpKernel for %s devices with attribute '%s' of %s",
                       op->name, device_type, attr->name,
                       tw_dtype_name((tw_dtype)described_type(builder->about, attr->name, 0)));
    }
}

void TF_InitMain(const char *usage, int *argc, char ***argv)
{
    (void)usage;
    (void)argc;
    (void)argv;
}
