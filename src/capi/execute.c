/* execute.c - operations that are executed at once. Tower plans graphs, so each becomes an operation of the context's
 * graph, with placeholders for what it takes: it is built the first time, found again by all that it is but the values
 * of its inputs, and run with these as feeds. So the second time is a run like any other, and a program that computes
 * the same over and over leaves no more behind than the graph it could have built. What is new each time stays until
 * the context goes. Constants are therefore not built at all: they are their values.
 *
 * A resource (a variable, a table, a queue) is a node in Tower, not a value: a handle of one remembers the node, which
 * becomes an input of what takes it. Who executes VarHandleOp twice with one shared_name so gets one variable; the name
 * that TensorFlow keeps for what has none (ANONYMOUS) makes another one each time.
 * Never here:  what handles are, beyond making them of results. */
#include "eager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/eager/c_api_experimental.h>
#include <unistd.h>

struct TFE_Op {
    TFE_Context *context;
    char *name;
    TF_OperationDescription *about; /* attributes and device; inputs are these: */
    TFE_TensorHandle **inputs;
    int num_inputs;
    int *lengths; /* of the inputs, call by call; -1: a single one */
    int num_calls;
    bool is_flat; /* a list was given one by one, so that nobody knows which call is which argument */
    TFE_CancellationManager *cancellation; /* borrowed; NULL: nobody cancels it */
};

typedef struct built_op {
    wire key; /* its NodeDef without a name, then what its inputs are */
    TF_Operation *operation;
    TF_Output *feeds; /* [num_inputs] oper NULL: a resource, which is not fed */
    bool calls;       /* functions of the context */
    bool is_old;      /* and not found again */
    struct built_op *next;
} built_op;

/* ---- describing ------------------------------------------------------------------------------------------------- */

/* Ops without rows, which become what the functions do that their attributes name. */
static bool is_call(const char *name)
{
    static const char *const calls[] = {"PartitionedCall", "StatefulPartitionedCall", "If",   "StatelessIf", "While",
                                        "StatelessWhile",  "Case",                    "StatelessCase"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i], name) == 0)
            return true;
    return false;
}

static bool check_name(TFE_Context *context, const char *name, TF_Status *status)
{
    char host[256] = "";
    TF_SetStatus(status, TF_OK, "");
    if (find_op(name) || is_call(name) || TFE_ContextHasFunction(context, name))
        return true;
    gethostname(host, sizeof host - 1);
    set_status(status, TF_NOT_FOUND,
               "'%s' is neither a type of a primitive operation nor a name of a function registered in binary running "
               "on %s. Make sure the operation is one that Tower has, or a function of the context.",
               name, host);
    return false;
}

static void clear(TFE_Op *op)
{
    for (int i = 0; i < op->num_inputs; i++)
        TFE_DeleteTensorHandle(op->inputs[i]);
    delete_description(op->about);
    free(op->inputs);
    free(op->lengths);
    free(op->name);
    *op = (TFE_Op){.context = op->context};
}

static bool begin(TFE_Op *op, const char *name, TF_Status *status)
{
    if (!check_name(op->context, name, status))
        return false;
    op->name = strdup(name);
    op->about = TF_NewOperation(op->context->graph, name, "");
    if (!op->name || !op->about)
        set_no_memory(status);
    return is_ok(status);
}

TFE_Op *TFE_NewOp(TFE_Context *ctx, const char *op_or_function_name, TF_Status *status)
{
    TFE_Op *op = calloc(1, sizeof *op);
    if (!op) {
        set_no_memory(status);
        return NULL;
    }
    op->context = ctx;
    if (begin(op, op_or_function_name, status))
        return op;
    TFE_DeleteOp(op);
    return NULL;
}

void TFE_OpReset(TFE_Op *op_to_reset, const char *op_or_function_name, const char *raw_device_name, TF_Status *status)
{
    clear(op_to_reset);
    if (begin(op_to_reset, op_or_function_name, status) && raw_device_name)
        TFE_OpSetDevice(op_to_reset, raw_device_name, status);
}

void TFE_DeleteOp(TFE_Op *op)
{
    if (op)
        clear(op);
    free(op);
}

const char *TFE_OpGetName(const TFE_Op *op, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    return op->name;
}

TFE_Context *TFE_OpGetContext(const TFE_Op *op, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    return op->context;
}

void TFE_OpSetDevice(TFE_Op *op, const char *device_name, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (tw_device_is(device_name, NULL))
        TF_SetDevice(op->about, device_name);
    else
        set_status(status, TF_INVALID_ARGUMENT, "Malformed device specification '%s' in eager op: Name: %s",
                   device_name, op->name);
}

const char *TFE_OpGetDevice(const TFE_Op *op, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    return described_device(op->about);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* What an argument's inputs say of the op's attributes. What is told first stands, as in TensorFlow: bindings add
 * inputs and then set types to what they take for granted. */
static void infer(TFE_Op *op, const tw_op_argument *argument, TFE_TensorHandle *const *handles, int count)
{
    if (argument->number_attr)
        TFE_OpSetAttrInt(op, argument->number_attr, count);
    if (argument->type_attr && count > 0)
        TFE_OpSetAttrType(op, argument->type_attr, TFE_TensorHandleDataType(handles[0]));
    TF_DataType *types = argument->types_attr ? calloc((size_t)count + 1, sizeof *types) : NULL;
    for (int i = 0; types && i < count; i++)
        types[i] = TFE_TensorHandleDataType(handles[i]);
    if (types)
        TFE_OpSetAttrTypeList(op, argument->types_attr, types, count);
    free(types);
}

static void add_inputs(TFE_Op *op, TFE_TensorHandle *const *handles, int count, int length, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    TFE_TensorHandle **inputs = realloc(op->inputs, sizeof *inputs * (size_t)(op->num_inputs + count + 1));
    if (inputs)
        op->inputs = inputs;
    int *lengths = realloc(op->lengths, sizeof *lengths * (size_t)(op->num_calls + 1));
    if (lengths)
        op->lengths = lengths;
    if (!inputs || !lengths)
        set_no_memory(status);
    int before = op->num_inputs;
    for (int i = 0; i < count && is_ok(status); i++)
        if ((op->inputs[op->num_inputs] = handle_in(op->context, handles[i], status)))
            op->num_inputs++;
    if (!is_ok(status)) {
        while (op->num_inputs > before)
            TFE_DeleteTensorHandle(op->inputs[--op->num_inputs]);
        return;
    }
    const tw_op_info *row = find_op(op->name);
    const tw_op_argument *argument = row && op->num_calls < row->num_inputs ? &row->inputs[op->num_calls] : NULL;
    op->is_flat |= length < 0 && argument && (argument->number_attr || argument->types_attr);
    op->lengths[op->num_calls++] = length;
    if (argument && !op->is_flat)
        infer(op, argument, handles, count);
}

void TFE_OpAddInput(TFE_Op *op, TFE_TensorHandle *input, TF_Status *status)
{
    add_inputs(op, &input, 1, -1, status);
}

void TFE_OpAddInputList(TFE_Op *op, TFE_TensorHandle **inputs, int num_inputs, TF_Status *status)
{
    add_inputs(op, inputs, num_inputs, num_inputs, status);
}

int TFE_OpGetFlatInputCount(const TFE_Op *op, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    return op->num_inputs;
}

TFE_TensorHandle *TFE_OpGetFlatInput(const TFE_Op *op, int index, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (index >= 0 && index < op->num_inputs)
        return op->inputs[index];
    set_status(status, TF_INVALID_ARGUMENT, "'%s' has been given %d inputs, and no number %d", op->name,
               op->num_inputs, index);
    return NULL;
}

/* How many an attribute says: a number, or how many types it lists. -1: it has not been set. */
static int told_length(const TFE_Op *op, const tw_op_argument *argument)
{
    enum { LIST = 1, I = 3, TYPE = 6 };
    const char *name = argument->number_attr ? argument->number_attr : argument->types_attr;
    const wire *value = described_value(op->about, name);
    wire_field field, item;
    int length = 0;
    wire_reader r = value ? wire_read(value->data, value->size) : (wire_reader){0};
    while (value && wire_next(&r, &field)) {
        if (argument->number_attr && field.number == I)
            length = (int)field.value;
        wire_reader list = wire_read(field.data, field.number == LIST && field.type == 2 ? field.size : 0);
        while (argument->types_attr && field.number == LIST && wire_next(&list, &item)) {
            wire_reader packed = wire_read(item.data, item.type == 2 ? item.size : 0);
            for (uint64_t type; item.number == TYPE && item.type == 2 && wire_next_packed(&packed, &type);)
                length++;
            length += item.number == TYPE && item.type == 0;
        }
    }
    return value ? length : -1;
}

/* How many tensors an argument has. */
static int length_of(const TFE_Op *op, const tw_op_argument *argument, TF_Status *status)
{
    if (!argument->number_attr && !argument->types_attr)
        return 1;
    int length = told_length(op, argument);
    if (length < 0)
        set_status(status, TF_NOT_FOUND, "No attr named '%s' in NodeDef: it says how many '%s' of %s there are",
                   argument->number_attr ? argument->number_attr : argument->types_attr, argument->name, op->name);
    return length;
}

static int find_length(const TFE_Op *op, bool is_output, const char *name, TF_Status *status)
{
    const tw_op_info *row = find_op(op->name);
    const tw_op_argument *arguments = !row ? NULL : is_output ? row->outputs : row->inputs;
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; row && i < (is_output ? row->num_outputs : row->num_inputs); i++)
        if (strcmp(arguments[i].name, name) == 0)
            return length_of(op, &arguments[i], status);
    set_status(status, TF_INVALID_ARGUMENT, "%s '%s' not found", is_output ? "Output" : "Input", name);
    return -1;
}

int TFE_OpGetInputLength(TFE_Op *op, const char *input_name, TF_Status *status)
{
    return find_length(op, false, input_name, status);
}

int TFE_OpGetOutputLength(TFE_Op *op, const char *output_name, TF_Status *status)
{
    return find_length(op, true, output_name, status);
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

TF_AttrType TFE_OpNameGetAttrType(TFE_Context *ctx, const char *op_or_function_name, const char *attr_name,
                                  unsigned char *is_list, TF_Status *status)
{
    *is_list = 0;
    if (!check_name(ctx, op_or_function_name, status))
        return TF_ATTR_INT;
    const tw_op_info *row = find_op(op_or_function_name);
    for (int i = 0; row && i < row->num_attrs; i++)
        if (strcmp(row->attrs[i].name, attr_name) == 0) {
            *is_list = is_list_kind(row->attrs[i].kind);
            return type_of_kind(row->attrs[i].kind);
        }
    set_status(status, TF_INVALID_ARGUMENT, "Attribute '%s' does not exist for this operation", attr_name);
    return TF_ATTR_INT;
}

TF_AttrType TFE_OpGetAttrType(TFE_Op *op, const char *attr_name, unsigned char *is_list, TF_Status *status)
{
    return TFE_OpNameGetAttrType(op->context, op->name, attr_name, is_list, status);
}

void TFE_OpSetAttrString(TFE_Op *op, const char *attr_name, const void *value, size_t length)
{
    TF_SetAttrString(op->about, attr_name, value, length);
}

void TFE_OpSetAttrInt(TFE_Op *op, const char *attr_name, int64_t value)
{
    if (!described_value(op->about, attr_name))
        TF_SetAttrInt(op->about, attr_name, value);
}

void TFE_OpSetAttrFloat(TFE_Op *op, const char *attr_name, float value)
{
    TF_SetAttrFloat(op->about, attr_name, value);
}

void TFE_OpSetAttrBool(TFE_Op *op, const char *attr_name, unsigned char value)
{
    TF_SetAttrBool(op->about, attr_name, value);
}

void TFE_OpSetAttrType(TFE_Op *op, const char *attr_name, TF_DataType value)
{
    if (!described_value(op->about, attr_name))
        TF_SetAttrType(op->about, attr_name, value);
}

void TFE_OpSetAttrValueProto(const TFE_Op *op, const char *attr_name, const void *proto, size_t proto_len,
                             TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (!described_value(op->about, attr_name))
        TF_SetAttrValueProto(op->about, attr_name, proto, proto_len, status);
}

static bool check_rank(const char *attr_name, int num_dims, TF_Status *status)
{
    enum { MOST_DIMENSIONS = 254 };
    TF_SetStatus(status, TF_OK, "");
    if (num_dims > MOST_DIMENSIONS)
        set_status(status, TF_INVALID_ARGUMENT,
                   "Value specified for `%s` has %d dimensions which is over the limit of %d.", attr_name, num_dims,
                   MOST_DIMENSIONS);
    return is_ok(status);
}

void TFE_OpSetAttrShape(TFE_Op *op, const char *attr_name, const int64_t *dims, const int num_dims,
                        TF_Status *out_status)
{
    if (check_rank(attr_name, num_dims, out_status))
        TF_SetAttrShape(op->about, attr_name, dims, num_dims);
}

/* A NameAttrList. */
static void write_name_and_attrs(wire *w, const TFE_Op *op)
{
    enum { NAME = 1, ATTR = 2 };
    wire_text(w, NAME, op->name);
    write_attrs(op->about, w, ATTR);
}

static void write_function(wire *w, int field, const TFE_Op *op)
{
    wire function = {0};
    write_name_and_attrs(&function, op);
    wire_message(w, field, &function);
}

enum { LIST = 1, FUNC = 10 }; /* of an AttrValue, and of its list */

void TFE_OpSetAttrFunction(TFE_Op *op, const char *attr_name, const TFE_Op *value)
{
    wire message = {0};
    write_function(&message, FUNC, value);
    set_attr(op->about, attr_name, &message);
}

void TFE_OpSetAttrFunctionName(TFE_Op *op, const char *attr_name, const char *data, size_t length)
{
    TF_SetAttrFuncName(op->about, attr_name, data, length);
}

void TFE_OpSetAttrFunctionList(TFE_Op *op, const char *attr_name, const TFE_Op **value, int num_values)
{
    enum { LISTED_FUNC = 9 };
    wire message = {0}, list = {0};
    for (int i = 0; i < num_values; i++)
        write_function(&list, LISTED_FUNC, value[i]);
    wire_message(&message, LIST, &list);
    set_attr(op->about, attr_name, &message);
}

void TFE_OpSetAttrTensor(TFE_Op *op, const char *attr_name, TF_Tensor *tensor, TF_Status *status)
{
    TF_SetAttrTensor(op->about, attr_name, tensor, status);
}

void TFE_OpSetAttrStringList(TFE_Op *op, const char *attr_name, const void *const *values, const size_t *lengths,
                             int num_values)
{
    TF_SetAttrStringList(op->about, attr_name, values, lengths, num_values);
}

void TFE_OpSetAttrIntList(TFE_Op *op, const char *attr_name, const int64_t *values, int num_values)
{
    TF_SetAttrIntList(op->about, attr_name, values, num_values);
}

void TFE_OpSetAttrFloatList(TFE_Op *op, const char *attr_name, const float *values, int num_values)
{
    TF_SetAttrFloatList(op->about, attr_name, values, num_values);
}

void TFE_OpSetAttrBoolList(TFE_Op *op, const char *attr_name, const unsigned char *values, int num_values)
{
    TF_SetAttrBoolList(op->about, attr_name, values, num_values);
}

void TFE_OpSetAttrTypeList(TFE_Op *op, const char *attr_name, const TF_DataType *values, int num_values)
{
    if (!described_value(op->about, attr_name))
        TF_SetAttrTypeList(op->about, attr_name, values, num_values);
}

void TFE_OpSetAttrShapeList(TFE_Op *op, const char *attr_name, const int64_t **dims, const int *num_dims,
                            int num_values, TF_Status *out_status)
{
    TF_SetStatus(out_status, TF_OK, "");
    for (int i = 0; i < num_values; i++)
        if (!check_rank(attr_name, num_dims[i], out_status))
            return;
    TF_SetAttrShapeList(op->about, attr_name, dims, num_dims, num_values);
}

const TF_OperationDescription *description_of(const TFE_Op *op)
{
    return op->about;
}

/* An operation's attributes are the operation itself. */
const TFE_OpAttrs *TFE_OpGetAttrs(const TFE_Op *op)
{
    return (const TFE_OpAttrs *)op;
}

void TFE_OpAddAttrs(TFE_Op *op, const TFE_OpAttrs *attrs)
{
    add_attrs(op->about, ((const TFE_Op *)attrs)->about);
}

void TFE_OpAttrsSerialize(const TFE_OpAttrs *attrs, TF_Buffer *buf, TF_Status *status)
{
    const TFE_Op *op = (const TFE_Op *)attrs;
    wire message = {0};
    TF_SetStatus(status, TF_OK, "");
    write_name_and_attrs(&message, op);
    fill_buffer(buf, &message, status);
}

/* ---- building, once --------------------------------------------------------------------------------------------- */

#define SHARED_NAME "shared_name"
#define ANONYMOUS "cd2c89b7-88b7-44c8-ad83-06c2a9158347" /* TensorFlow's ResourceHandle::ANONYMOUS_NAME */

static bool is_anonymous(const TFE_Op *op)
{
    const wire *value = described_value(op->about, SHARED_NAME);
    wire_field field;
    wire_reader r = value ? wire_read(value->data, value->size) : (wire_reader){0};
    return value && wire_next(&r, &field) && wire_is_text(&field, ANONYMOUS);
}

static void write_key(const TFE_Op *op, wire *key)
{
    enum { OP = 2, DEVICE = 4, ATTR = 5 };
    wire_text(key, OP, op->name);
    wire_text(key, DEVICE, described_device(op->about));
    write_attrs(op->about, key, ATTR);
    wire_append(key, op->lengths, sizeof *op->lengths * (size_t)op->num_calls);
    for (int i = 0; i < op->num_inputs; i++) {
        const TFE_TensorHandle *input = op->inputs[i];
        wire_packed(key, input->tensor ? (uint64_t)input->tensor->type : (uint64_t)(uintptr_t)input->node.oper);
        wire_packed(key, input->tensor ? 0 : 1 + (uint64_t)input->node.index);
    }
}

static built_op **bucket_of(TFE_Context *context, const wire *key)
{
    unsigned hash = 2166136261u;
    for (size_t i = 0; i < key->size; i++)
        hash = (hash ^ key->data[i]) * 16777619u;
    return &context->known[hash % (sizeof context->known / sizeof *context->known)];
}

static void free_one(built_op *built)
{
    if (built) {
        wire_free(&built->key);
        free(built->feeds);
    }
    free(built);
}

/* The placeholder of a type for inputs number i: one serves all operations. */
static TF_Output placeholder(TFE_Context *context, TF_DataType type, int i, TF_Status *status)
{
    char name[64];
    snprintf(name, sizeof name, "input_%d_%d", i, (int)type);
    TF_Operation *found = TF_GraphOperationByName(context->graph, name);
    if (!found) {
        TF_OperationDescription *d = TF_NewOperation(context->graph, "Placeholder", name);
        if (d) {
            TF_SetAttrType(d, "dtype", type);
            found = TF_FinishOperation(d, status);
        } else {
            set_no_memory(status);
        }
    }
    return (TF_Output){found, 0};
}

static void add_operation(TFE_Op *op, built_op *built, TF_OperationDescription *d, TF_Status *status)
{
    TF_Output *inputs = calloc((size_t)op->num_inputs + 1, sizeof *inputs);
    TF_SetStatus(status, TF_OK, "");
    if (!inputs || !built->feeds)
        set_no_memory(status);
    for (int i = 0; i < op->num_inputs && is_ok(status); i++) {
        const TFE_TensorHandle *input = op->inputs[i];
        if (input->tensor)
            built->feeds[i] = placeholder(op->context, input->tensor->type, i, status);
        inputs[i] = input->tensor ? built->feeds[i] : input->node;
    }
    for (int i = 0, at = 0; i < op->num_calls && is_ok(status); i++) {
        if (op->lengths[i] < 0)
            TF_AddInput(d, inputs[at]);
        else
            TF_AddInputList(d, inputs + at, op->lengths[i]);
        at += op->lengths[i] < 0 ? 1 : op->lengths[i];
    }
    free(inputs);
    if (is_ok(status))
        built->operation = finish_operation(d, status);
    else
        delete_description(d);
}

static void fail_device(const TFE_Op *op, const char *why, TF_Status *status)
{
    set_status(status, TF_INVALID_ARGUMENT, "Could not satisfy device specification '%s' of %s: %s",
               described_device(op->about), op->name, why);
}

/* The device that was asked for; -1: none, or one of those that there are. False: there is no such device. */
static bool find_device(const TFE_Op *op, int *device, TF_Status *status)
{
    const char *asked = described_device(op->about);
    const tw_devices *devices = tw_session_devices(tower_session_of(op->context->session));
    *device = *asked && !op->context->soft_placement ? tw_devices_find(devices, asked) : -1;
    if (*asked && !op->context->soft_placement && *device < 0)
        fail_device(op, "there is no such device", status);
    return is_ok(status);
}

/* One that its device has no kernel for goes again: it would be in the way of all other runs of the graph. */
static void check_kernel(const TFE_Op *op, const TF_Operation *made, int device, int before, TF_Status *status)
{
    TF_Graph *graph = op->context->graph;
    const tw_devices *devices = tw_session_devices(tower_session_of(op->context->session));
    if (device < 0 || !find_op(op->name) || tw_devices_have_kernel(devices, device, made->node))
        return;
    fail_device(op, "it has no kernel for this op and type", status);
    begin_building(graph);
    take_back(graph, before);
    end_building(graph);
}

/* Takes the key over. */
static built_op *build(TFE_Op *op, wire *key, TF_Status *status)
{
    char name[256];
    int device;
    if (!find_device(op, &device, status)) {
        wire_free(key);
        return NULL;
    }
    snprintf(name, sizeof name, "%.200s_%d", op->name, op->context->num_built++);
    built_op *built = calloc(1, sizeof *built);
    TF_OperationDescription *d = describe_again(op->about, name);
    if (!built || !d) {
        set_no_memory(status);
        delete_description(d);
        free(built);
        wire_free(key);
        return NULL;
    }
    *built = (built_op){.key = *key, .calls = may_call(op->about), .is_old = is_anonymous(op)};
    if (built->is_old) /* what has no name goes by that of its node */
        TF_SetAttrString(d, SHARED_NAME, "", 0);
    built->feeds = calloc((size_t)op->num_inputs + 1, sizeof *built->feeds);
    int before = op->context->graph->num_operations;
    add_operation(op, built, d, status);
    if (is_ok(status))
        check_kernel(op, built->operation, device, before, status);
    if (is_ok(status))
        return built;
    free_one(built);
    return NULL;
}

static const built_op *find_or_build(TFE_Op *op, TF_Status *status)
{
    wire key = {0};
    write_key(op, &key);
    TF_SetStatus(status, TF_OK, "");
    if (key.failed) {
        set_no_memory(status);
        wire_free(&key);
        return NULL;
    }
    pthread_mutex_lock(&op->context->lock);
    built_op **bucket = bucket_of(op->context, &key), *built = *bucket;
    while (built &&
           (built->is_old || built->key.size != key.size || memcmp(built->key.data, key.data, key.size) != 0))
        built = built->next;
    if (built) {
        wire_free(&key);
    } else if ((built = build(op, &key, status))) {
        built->next = *bucket;
        *bucket = built;
    }
    pthread_mutex_unlock(&op->context->lock);
    return built;
}

/* They stay as they are, for they may be running. */
void forget_calls(TFE_Context *context)
{
    pthread_mutex_lock(&context->lock);
    for (size_t i = 0; i < sizeof context->known / sizeof *context->known; i++)
        for (built_op *built = context->known[i]; built; built = built->next)
            built->is_old |= built->calls;
    pthread_mutex_unlock(&context->lock);
}

void free_built(TFE_Context *context)
{
    for (size_t i = 0; i < sizeof context->known / sizeof *context->known; i++)
        for (built_op *built = context->known[i], *next; built; built = next) {
            next = built->next;
            free_one(built);
        }
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

typedef struct execution {
    TFE_Op *op;
    const built_op *built;
    int num_outputs, num_feeds, num_fetches;
    tw_feed *feeds;
    tw_output *fetches;  /* all outputs but resources, then the operation itself */
    tw_tensor **results;
    TF_Status *status;
} execution;

static bool is_resource(const execution *e, int output)
{
    return TF_OperationOutputType((TF_Output){e->built->operation, output}) == TF_RESOURCE;
}

/* The input that an output is. NULL: the output is made. */
static TF_Tensor *fed_as(const execution *e, int output)
{
    int fed = find_fed(e->feeds, e->num_feeds, (tw_output){e->built->operation->node, output});
    for (int i = 0; fed >= 0; i++)
        if (e->built->feeds[i].oper && fed-- == 0)
            return e->op->inputs[i]->tensor;
    return NULL;
}

static void collect(execution *e)
{
    tw_error error = TW_NO_ERROR;
    for (int i = 0; i < e->op->num_inputs; i++) {
        TF_Output feed = e->built->feeds[i];
        if (!feed.oper)
            continue;
        tw_tensor *tensor = tensor_to_tower(e->op->inputs[i]->tensor, &error);
        if (!tensor) {
            set_error(e->status, &error);
            return;
        }
        e->feeds[e->num_feeds++] = (tw_feed){{feed.oper->node, 0}, tensor};
    }
    for (int i = 0; i < e->num_outputs; i++)
        if (!is_resource(e, i))
            e->fetches[e->num_fetches++] = (tw_output){e->built->operation->node, fed_as(e, i) ? -1 : i};
    e->fetches[e->num_fetches] = (tw_output){e->built->operation->node, -1};
}

static void give(execution *e, TFE_TensorHandle **retvals)
{
    const char *device = tw_session_device(tower_session_of(e->op->context->session), e->built->operation->node);
    for (int i = 0, at = 0; i < e->num_outputs; i++) {
        bool resource = is_resource(e, i);
        const TF_Tensor *fed = resource ? NULL : fed_as(e, i);
        TF_Tensor *tensor = resource ? NULL : fed ? share_tensor(fed) : tensor_from_tower(e->results[at]);
        if (!resource)
            e->results[at++] = NULL;
        TF_Output node = {resource ? e->built->operation : NULL, i};
        if (is_ok(e->status))
            retvals[i] = new_handle(tensor, node, device, e->status);
        else
            TF_DeleteTensor(tensor);
    }
}

static void run(execution *e, TFE_TensorHandle **retvals)
{
    e->feeds = calloc((size_t)e->op->num_inputs + 1, sizeof *e->feeds);
    e->fetches = calloc((size_t)e->num_outputs + 1, sizeof *e->fetches);
    e->results = calloc((size_t)e->num_outputs + 1, sizeof *e->results);
    if (e->feeds && e->fetches && e->results)
        collect(e);
    else
        set_no_memory(e->status);
    if (is_ok(e->status))
        run_session(e->op->context->session, (run_settings){0}, e->feeds, e->num_feeds, e->fetches, e->num_fetches + 1,
                    e->results, e->status);
    if (is_ok(e->status))
        give(e, retvals);
    for (int i = 0; i < e->num_outputs && !is_ok(e->status); i++) {
        TFE_DeleteTensorHandle(retvals[i]);
        retvals[i] = NULL;
    }
    for (int i = 0; i < e->num_feeds; i++)
        tw_tensor_release(e->feeds[i].tensor);
    for (int i = 0; e->results && i < e->num_fetches; i++)
        tw_tensor_release(e->results[i]);
    free(e->feeds);
    free(e->fetches);
    free(e->results);
}

static bool check_room(int outputs, int *num_retvals, TF_Status *status)
{
    if (*num_retvals < outputs)
        set_status(status, TF_INVALID_ARGUMENT, "Expecting %d outputs, but *num_retvals is %d", outputs, *num_retvals);
    else
        *num_retvals = outputs;
    return is_ok(status);
}

/* The value of an attribute that is a tensor; NULL: it has none that could be read. */
static TF_Tensor *read_tensor(const wire *value)
{
    enum { TENSOR = 8 };
    wire_field field;
    TF_Status status = {0};
    TF_Tensor *tensor = NULL;
    wire_reader r = wire_read(value->data, value->size);
    while (wire_next(&r, &field) && !tensor)
        if (field.number == TENSOR && field.type == 2 && (tensor = TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof(float))))
            TF_TensorFromProto(&(TF_Buffer){field.data, field.size, NULL}, tensor, &status);
    bool is_read = tensor && is_ok(&status);
    free(status.message);
    if (is_read)
        return tensor;
    TF_DeleteTensor(tensor);
    return NULL;
}

/* What takes nothing and has a tensor for an attribute gives that. NULL: it is another op, or no sound constant, which
 * building it will tell. */
static TF_Tensor *constant_of(const TFE_Op *op)
{
    enum { TYPE = 6 };
    const tw_op_info *row = find_op(op->name);
    const wire *value = NULL, *dtype = NULL;
    wire_field field;
    if (!row || row->num_inputs > 0 || op->num_inputs > 0 || row->num_outputs != 1 || !row->outputs[0].type_attr)
        return NULL;
    for (int i = 0; i < row->num_attrs; i++)
        if (row->attrs[i].kind == TW_ATTR_TENSOR)
            value = described_value(op->about, row->attrs[i].name);
    dtype = described_value(op->about, row->outputs[0].type_attr);
    TF_Tensor *tensor = value && dtype ? read_tensor(value) : NULL;
    if (!tensor)
        return NULL;
    wire_reader r = wire_read(dtype->data, dtype->size);
    if (wire_next(&r, &field) && field.number == TYPE && field.value == (uint64_t)tensor->type)
        return tensor;
    TF_DeleteTensor(tensor);
    return NULL;
}

void TFE_OpSetCancellationManager(TFE_Op *op, TFE_CancellationManager *cancellation_manager, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    op->cancellation = cancellation_manager;
}

/* As in TensorFlow, operations that call no function run nevertheless. */
static bool is_cancelled(const TFE_Op *op)
{
    return op->cancellation && TFE_CancellationManagerIsCancelled(op->cancellation) &&
           (is_call(op->name) || TFE_ContextHasFunction(op->context, op->name));
}

void TFE_Execute(TFE_Op *op, TFE_TensorHandle **retvals, int *num_retvals, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (is_cancelled(op)) {
        set_status(status, TF_CANCELLED, "Function was cancelled before it was started");
        return;
    }
    TF_Tensor *constant = constant_of(op);
    if (constant && check_room(1, num_retvals, status)) {
        retvals[0] = new_handle(constant, (TF_Output){0}, NULL, status);
        return;
    }
    if (constant) {
        TF_DeleteTensor(constant);
        return;
    }
    execution e = {.op = op, .built = find_or_build(op, status), .status = status};
    if (!e.built)
        return;
    e.num_outputs = TF_OperationNumOutputs(e.built->operation);
    if (!check_room(e.num_outputs, num_retvals, status))
        return;
    for (int i = 0; i < e.num_outputs; i++)
        retvals[i] = NULL;
    run(&e, retvals);
}
