/* build.c - operations are described step by step, as the NodeDef that a file would have of them, and added by the same
 * way as files are: so both know the same ops, attributes and functions.
 * Never here:  reading operations again (operation.c, attr.c). */
#include "capi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>
#include <unistd.h>

/* An attribute as its AttrValue. */
typedef struct described_attr {
    char *name;
    wire value;
} described_attr;

struct TF_OperationDescription {
    TF_Graph *graph;
    char *type, *name, *device;
    TF_Output *inputs; /* then what only comes before */
    int num_inputs, num_controls;
    int *lengths; /* of the inputs, call by call; -1: a single one */
    int num_calls;
    described_attr *attrs;
    int num_attrs;
    char **beside; /* "loc:@NAME", in order */
    int num_beside;
    bool failed; /* memory ran out */
};

/* AttrValue's numbers of fields; those of a list are the same. */
enum { LIST = 1, S = 2, I = 3, F = 4, B = 5, TYPE = 6, SHAPE = 7, TENSOR = 8, PLACEHOLDER = 9, FUNC = 10 };

TF_OperationDescription *TF_NewOperation(TF_Graph *graph, const char *op_type, const char *oper_name)
{
    TF_OperationDescription *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    *d = (TF_OperationDescription){.graph = graph, .type = strdup(op_type), .name = strdup(oper_name)};
    d->failed = !d->type || !d->name;
    return d;
}

static void clear_beside(TF_OperationDescription *d)
{
    for (int i = 0; i < d->num_beside; i++)
        free(d->beside[i]);
    d->num_beside = 0;
}

void delete_description(TF_OperationDescription *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->num_attrs; i++) {
        free(d->attrs[i].name);
        wire_free(&d->attrs[i].value);
    }
    clear_beside(d);
    free(d->beside);
    free(d->type);
    free(d->name);
    free(d->device);
    free(d->inputs);
    free(d->lengths);
    free(d->attrs);
    free(d);
}

/* Room for one more item of a list; false: memory ran out, which is remembered. */
static bool reserve(TF_OperationDescription *d, void *list, int count, size_t size)
{
    void **items = list,
         *grown = count & (count - 1) ? *items : realloc(*items, (count ? (size_t)count * 2 : 1) * size);
    if (grown)
        *items = grown;
    d->failed |= !grown;
    return grown;
}

void TF_SetDevice(TF_OperationDescription *desc, const char *device)
{
    free(desc->device);
    desc->device = strdup(device);
    desc->failed |= !desc->device;
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

static void add_input(TF_OperationDescription *d, TF_Output input)
{
    int all = d->num_inputs + d->num_controls;
    if (!reserve(d, &d->inputs, all, sizeof *d->inputs))
        return;
    if (d->num_controls) /* the order of those means nothing */
        d->inputs[all] = d->inputs[d->num_inputs];
    d->inputs[d->num_inputs++] = input;
}

static void add_call(TF_OperationDescription *d, int length)
{
    if (reserve(d, &d->lengths, d->num_calls, sizeof *d->lengths))
        d->lengths[d->num_calls++] = length;
}

void TF_AddInput(TF_OperationDescription *desc, TF_Output input)
{
    add_input(desc, input);
    add_call(desc, -1);
}

void TF_AddInputList(TF_OperationDescription *desc, const TF_Output *inputs, int num_inputs)
{
    for (int i = 0; i < num_inputs; i++)
        add_input(desc, inputs[i]);
    add_call(desc, num_inputs);
}

void TF_AddControlInput(TF_OperationDescription *desc, TF_Operation *input)
{
    int all = desc->num_inputs + desc->num_controls;
    if (reserve(desc, &desc->inputs, all, sizeof *desc->inputs)) {
        desc->inputs[all] = (TF_Output){input, -1};
        desc->num_controls++;
    }
}

/* Once each, in order. */
static void add_beside(TF_OperationDescription *d, const char *text, size_t length)
{
    char *copy = strndup(text, length);
    int at = 0, order = 1;
    while (copy && at < d->num_beside && (order = strcmp(copy, d->beside[at])) > 0)
        at++;
    if (!copy || (at < d->num_beside && order == 0) || !reserve(d, &d->beside, d->num_beside, sizeof *d->beside)) {
        d->failed |= !copy;
        free(copy);
        return;
    }
    memmove(d->beside + at + 1, d->beside + at, sizeof *d->beside * (size_t)(d->num_beside - at));
    d->beside[at] = copy;
    d->num_beside++;
}

void TF_ColocateWith(TF_OperationDescription *desc, TF_Operation *op)
{
    char *text = NULL;
    int length = asprintf(&text, "loc:@%s", TF_OperationName(op));
    if (length < 0) {
        desc->failed = true;
        return;
    }
    add_beside(desc, text, (size_t)length);
    free(text);
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static bool is_class(const char *name)
{
    return strcmp(name, "_class") == 0;
}

static described_attr *find_attr(const TF_OperationDescription *d, const char *name)
{
    for (int i = 0; i < d->num_attrs; i++)
        if (strcmp(d->attrs[i].name, name) == 0)
            return &d->attrs[i];
    return NULL;
}

const wire *described_value(const TF_OperationDescription *d, const char *name)
{
    const described_attr *attr = find_attr(d, name);
    return attr ? &attr->value : NULL;
}

TF_DataType described_type(const TF_OperationDescription *d, const char *name, int i)
{
    enum { LIST = 1, TYPE = 6 };
    const wire *value = described_value(d, name);
    wire_reader r = value ? wire_read(value->data, value->size) : (wire_reader){0};
    wire_field field, item;
    uint64_t type;
    while (value && wire_next(&r, &field)) {
        if (field.number == TYPE && field.type == 0)
            return (TF_DataType)field.value;
        wire_reader list = wire_read(field.data, field.number == LIST && field.type == 2 ? field.size : 0);
        while (wire_next(&list, &item)) {
            wire_reader packed = wire_read(item.data, item.type == 2 ? item.size : 0);
            while (wire_next_packed(&packed, &type))
                if (i-- == 0)
                    return (TF_DataType)type;
        }
    }
    return (TF_DataType)0;
}

void set_attr(TF_OperationDescription *d, const char *name, wire *value)
{
    described_attr *attr = find_attr(d, name);
    if (!attr && reserve(d, &d->attrs, d->num_attrs, sizeof *d->attrs)) {
        attr = &d->attrs[d->num_attrs++];
        *attr = (described_attr){.name = strdup(name)};
        d->failed |= !attr->name;
    }
    d->failed |= value->failed;
    if (!attr) {
        wire_free(value);
        return;
    }
    wire_free(&attr->value);
    attr->value = *value;
}

static void set_list(TF_OperationDescription *d, const char *name, wire *list)
{
    wire value = {0};
    wire_message(&value, LIST, list);
    set_attr(d, name, &value);
}

/* Numbers of a list, packed. */
static void set_packed(TF_OperationDescription *d, const char *name, int field, wire *numbers)
{
    wire list = {0};
    if (numbers->size)
        wire_message(&list, field, numbers);
    set_list(d, name, &list);
}

void TF_SetAttrString(TF_OperationDescription *desc, const char *attr_name, const void *value, size_t length)
{
    wire message = {0};
    wire_bytes(&message, S, value, length);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrStringList(TF_OperationDescription *desc, const char *attr_name, const void *const *values,
                          const size_t *lengths, int num_values)
{
    wire list = {0};
    if (is_class(attr_name))
        clear_beside(desc);
    for (int i = 0; i < num_values; i++)
        if (is_class(attr_name))
            add_beside(desc, values[i], lengths[i]);
        else
            wire_bytes(&list, S, values[i], lengths[i]);
    if (!is_class(attr_name))
        set_list(desc, attr_name, &list);
}

void TF_SetAttrInt(TF_OperationDescription *desc, const char *attr_name, int64_t value)
{
    wire message = {0};
    wire_int(&message, I, (uint64_t)value);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrIntList(TF_OperationDescription *desc, const char *attr_name, const int64_t *values, int num_values)
{
    wire numbers = {0};
    for (int i = 0; i < num_values; i++)
        wire_packed(&numbers, (uint64_t)values[i]);
    set_packed(desc, attr_name, I, &numbers);
}

void TF_SetAttrFloat(TF_OperationDescription *desc, const char *attr_name, float value)
{
    wire message = {0};
    wire_float(&message, F, value);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrFloatList(TF_OperationDescription *desc, const char *attr_name, const float *values, int num_values)
{
    wire list = {0};
    for (int i = 0; i < num_values; i++)
        wire_float(&list, F, values[i]);
    set_list(desc, attr_name, &list);
}

void TF_SetAttrBool(TF_OperationDescription *desc, const char *attr_name, unsigned char value)
{
    wire message = {0};
    wire_int(&message, B, value != 0);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrBoolList(TF_OperationDescription *desc, const char *attr_name, const unsigned char *values,
                        int num_values)
{
    wire numbers = {0};
    for (int i = 0; i < num_values; i++)
        wire_packed(&numbers, values[i] != 0);
    set_packed(desc, attr_name, B, &numbers);
}

void TF_SetAttrType(TF_OperationDescription *desc, const char *attr_name, TF_DataType value)
{
    wire message = {0};
    wire_int(&message, TYPE, (uint64_t)value);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrTypeList(TF_OperationDescription *desc, const char *attr_name, const TF_DataType *values, int num_values)
{
    wire numbers = {0};
    for (int i = 0; i < num_values; i++)
        wire_packed(&numbers, (uint64_t)values[i]);
    set_packed(desc, attr_name, TYPE, &numbers);
}

void TF_SetAttrPlaceholder(TF_OperationDescription *desc, const char *attr_name, const char *placeholder)
{
    wire message = {0};
    wire_text(&message, PLACEHOLDER, placeholder);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrFuncName(TF_OperationDescription *desc, const char *attr_name, const char *value, size_t length)
{
    enum { NAME = 1 };
    wire message = {0}, function = {0};
    wire_bytes(&function, NAME, value, length);
    wire_message(&message, FUNC, &function);
    set_attr(desc, attr_name, &message);
}

/* What is below 0 is not known. */
static void write_shape(wire *w, const int64_t *dims, int num_dims)
{
    enum { DIM = 2, UNKNOWN_RANK = 3, SIZE = 1 };
    wire shape = {0};
    for (int i = 0; i < num_dims; i++) {
        wire dim = {0};
        wire_int(&dim, SIZE, dims[i] < 0 ? (uint64_t)-1 : (uint64_t)dims[i]);
        wire_message(&shape, DIM, &dim);
    }
    if (num_dims < 0)
        wire_int(&shape, UNKNOWN_RANK, 1);
    wire_message(w, SHAPE, &shape);
}

void TF_SetAttrShape(TF_OperationDescription *desc, const char *attr_name, const int64_t *dims, int num_dims)
{
    wire message = {0};
    write_shape(&message, dims, num_dims);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrShapeList(TF_OperationDescription *desc, const char *attr_name, const int64_t *const *dims,
                         const int *num_dims, int num_shapes)
{
    wire list = {0};
    for (int i = 0; i < num_shapes; i++)
        write_shape(&list, dims[i], num_dims[i]);
    set_list(desc, attr_name, &list);
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription *desc, const char *attr_name, const void *proto,
                                size_t proto_len, TF_Status *status)
{
    wire message = {0};
    TF_SetStatus(status, TF_OK, "");
    if (!wire_is_message(proto, proto_len)) {
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable TensorShapeProto");
        return;
    }
    wire_bytes(&message, SHAPE, proto, proto_len);
    set_attr(desc, attr_name, &message);
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription *desc, const char *attr_name, const void *const *protos,
                                    const size_t *proto_lens, int num_shapes, TF_Status *status)
{
    wire list = {0};
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < num_shapes; i++) {
        if (!wire_is_message(protos[i], proto_lens[i])) {
            set_status(status, TF_INVALID_ARGUMENT, "Unparseable TensorShapeProto at index %d", i);
            wire_free(&list);
            return;
        }
        wire_bytes(&list, SHAPE, protos[i], proto_lens[i]);
    }
    set_list(desc, attr_name, &list);
}

static bool add_tensor(wire *w, const TF_Tensor *value, TF_Status *status)
{
    wire tensor = {0};
    if (write_tensor(&tensor, value)) {
        wire_message(w, TENSOR, &tensor);
        return true;
    }
    set_status(status, TF_UNIMPLEMENTED, "a tensor of handles or variants cannot be an attribute");
    return false;
}

void TF_SetAttrTensor(TF_OperationDescription *desc, const char *attr_name, TF_Tensor *value, TF_Status *status)
{
    TF_SetAttrTensorList(desc, attr_name, &value, -1, status);
}

/* num_values -1: it is no list. */
void TF_SetAttrTensorList(TF_OperationDescription *desc, const char *attr_name, TF_Tensor *const *values,
                          int num_values, TF_Status *status)
{
    wire message = {0};
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < (num_values < 0 ? 1 : num_values); i++)
        if (!add_tensor(&message, values[i], status)) {
            wire_free(&message);
            return;
        }
    if (num_values < 0)
        set_attr(desc, attr_name, &message);
    else
        set_list(desc, attr_name, &message);
}

/* The list that `_class` is, instead of what it was before. */
static bool read_class(TF_OperationDescription *d, const void *proto, size_t size)
{
    bool found = false;
    wire_field field, text;
    wire_reader r = wire_read(proto, size);
    while (wire_next(&r, &field)) {
        if (field.number != LIST || field.type != 2)
            continue;
        wire_reader list = wire_read(field.data, field.size);
        clear_beside(d);
        while (wire_next(&list, &text))
            if (text.number == S && text.type == 2)
                add_beside(d, (const char *)text.data, text.size);
        found = true;
    }
    return found;
}

void TF_SetAttrValueProto(TF_OperationDescription *desc, const char *attr_name, const void *proto, size_t proto_len,
                          TF_Status *status)
{
    wire message = {0};
    TF_SetStatus(status, TF_OK, "");
    if (!wire_is_message(proto, proto_len)) {
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable AttrValue proto");
    } else if (!is_class(attr_name)) {
        wire_append(&message, proto, proto_len);
        set_attr(desc, attr_name, &message);
    } else if (!read_class(desc, proto, proto_len)) {
        set_status(status, TF_INVALID_ARGUMENT, "Expected \"list\" field for \"_class\" attribute");
    }
}

/* ---- finishing -------------------------------------------------------------------------------------------------- */

/* How long each list of inputs is, which calls have told, are attributes of the op. */
static void set_lengths(TF_OperationDescription *d)
{
    const tw_op_info *op = find_op(d->type);
    for (int i = 0, at = 0; op && i < d->num_calls && i < op->num_inputs; i++) {
        const tw_op_argument *argument = &op->inputs[i];
        int length = d->lengths[i];
        if (length >= 0 && argument->number_attr && !find_attr(d, argument->number_attr))
            TF_SetAttrInt(d, argument->number_attr, length);
        if (length >= 0 && argument->types_attr && !find_attr(d, argument->types_attr)) {
            wire numbers = {0};
            for (int k = 0; k < length; k++) {
                TF_Output input = d->inputs[at + k];
                wire_packed(&numbers, (uint64_t)tw_output_dtype((tw_output){input.oper->node, input.index}));
            }
            set_packed(d, argument->types_attr, TYPE, &numbers);
        }
        at += length < 0 ? 1 : length;
    }
}

/* Whether lists were given where the op takes lists, and nowhere else. */
static bool check_calls(const TF_OperationDescription *d, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    const tw_op_info *op = find_op(d->type);
    for (int i = 0; op && i < d->num_calls && i < op->num_inputs && is_ok(status); i++) {
        const tw_op_argument *argument = &op->inputs[i];
        bool takes_list = argument->number_attr || argument->types_attr;
        if (takes_list && d->lengths[i] < 0)
            set_status(status, TF_INVALID_ARGUMENT,
                       "Single tensor passed to '%s', expected list while building NodeDef '%s'", argument->name,
                       d->name);
        if (!takes_list && d->lengths[i] >= 0)
            set_status(status, TF_INVALID_ARGUMENT,
                       "List provided to input '%s' when single Tensor expected while building NodeDef '%s'",
                       argument->name, d->name);
    }
    return is_ok(status);
}

static void write_class(TF_OperationDescription *d)
{
    wire list = {0};
    for (int i = 0; i < d->num_beside; i++)
        wire_text(&list, S, d->beside[i]);
    if (d->num_beside)
        set_list(d, "_class", &list);
}

bool may_call(const TF_OperationDescription *d)
{
    bool may = !find_op(d->type);
    for (int i = 0; i < d->num_attrs && !may; i++) {
        wire_field field;
        wire_reader r = wire_read(d->attrs[i].value.data, d->attrs[i].value.size);
        while (wire_next(&r, &field))
            may |= field.number == FUNC || field.number == LIST;
    }
    return may;
}

void write_attrs(const TF_OperationDescription *d, wire *w, int field)
{
    enum { KEY = 1, VALUE = 2 };
    for (int i = 0; i < d->num_attrs; i++) {
        wire entry = {0};
        wire_text(&entry, KEY, d->attrs[i].name);
        wire_bytes(&entry, VALUE, d->attrs[i].value.data, d->attrs[i].value.size);
        wire_message(w, field, &entry);
    }
}

static void write_def(const TF_OperationDescription *d, wire *def)
{
    enum { NODE = 1, NAME = 1, OP = 2, INPUT = 3, DEVICE = 4, ATTR = 5 };
    wire node = {0};
    wire_text(&node, NAME, d->name);
    wire_text(&node, OP, d->type);
    for (int i = 0; i < d->num_inputs + d->num_controls; i++) {
        TF_Output input = d->inputs[i];
        if (i < d->num_inputs)
            wire_printf(&node, INPUT, "%s:%d", TF_OperationName(input.oper), input.index);
        else
            wire_printf(&node, INPUT, "^%s", TF_OperationName(input.oper));
    }
    if (d->device)
        wire_text(&node, DEVICE, d->device);
    write_attrs(d, &node, ATTR);
    wire_message(def, NODE, &node);
    write_versions(def);
    if (may_call(d))
        write_library(def, d->graph);
}

/* The inputs, and whom it is to be beside, as the graph has them. */
static int lead_in(const TF_OperationDescription *d, tw_import_input *inputs)
{
    int count = 0;
    for (int i = 0; i < d->num_inputs + d->num_controls; i++)
        inputs[count++] = (tw_import_input){
            TF_OperationName(d->inputs[i].oper), d->inputs[i].index, {d->inputs[i].oper->node, d->inputs[i].index}};
    for (int i = 0; i < d->num_inputs && may_call(d); i++) /* for nodes of a function that wait for its argument */
        inputs[count++] = (tw_import_input){TF_OperationName(d->inputs[i].oper), -1, {d->inputs[i].oper->node, -1}};
    for (int i = 0; i < d->num_beside; i++) {
        const char *name = strncmp(d->beside[i], "loc:@", 5) == 0 ? d->beside[i] + 5 : d->beside[i];
        tw_node *beside = tw_graph_find(d->graph->tower, name);
        if (beside)
            inputs[count++] = (tw_import_input){name, -1, {beside, -1}};
    }
    return count;
}

static void fail_unknown(const TF_OperationDescription *d, TF_Status *status)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    set_status(
        status, TF_INVALID_ARGUMENT,
        "Op type not registered '%s' in binary running on %s. Make sure the Op is one that Tower has, or a function "
        "of the graph. while building NodeDef '%s'",
        d->type, host, d->name);
}

/* What is called as no op is may have any. */
static bool may_have(const tw_op_info *op, const char *attr)
{
    bool may = !op || *attr == '_';
    for (int i = 0; op && i < op->num_attrs && !may; i++)
        may = strcmp(op->attrs[i].name, attr) == 0;
    return may;
}

void add_attrs(TF_OperationDescription *d, const TF_OperationDescription *from)
{
    const tw_op_info *op = find_op(d->type);
    for (int i = 0; i < from->num_attrs; i++) {
        wire value = {0};
        if (!may_have(op, from->attrs[i].name) || described_value(d, from->attrs[i].name))
            continue;
        wire_append(&value, from->attrs[i].value.data, from->attrs[i].value.size);
        set_attr(d, from->attrs[i].name, &value);
    }
    d->failed |= from->failed;
}

TF_OperationDescription *describe_again(const TF_OperationDescription *d, const char *name)
{
    TF_OperationDescription *again = TF_NewOperation(d->graph, d->type, name);
    if (again)
        add_attrs(again, d);
    if (again && d->device)
        TF_SetDevice(again, d->device);
    return again;
}

const char *described_device(const TF_OperationDescription *d)
{
    return d->device ? d->device : "";
}

static bool check(const TF_OperationDescription *d, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < d->num_inputs + d->num_controls; i++)
        if (!d->inputs[i].oper || d->inputs[i].oper->graph != d->graph)
            set_status(status, TF_INVALID_ARGUMENT, "input %d of '%s' (%s) is %s", i, d->name, d->type,
                       d->inputs[i].oper ? "of another graph" : "missing");
        else if (i < d->num_inputs && d->inputs[i].index < 0)
            set_status(status, TF_INVALID_ARGUMENT,
                       "Node '%s' (type: '%s', num of outputs: %d) does not have output %d",
                       TF_OperationName(d->inputs[i].oper), TF_OperationOpType(d->inputs[i].oper),
                       TF_OperationNumOutputs(d->inputs[i].oper), d->inputs[i].index);
    if (d->failed)
        set_no_memory(status);
    else if (is_ok(status) && tw_graph_find(d->graph->tower, d->name))
        set_status(status, TF_INVALID_ARGUMENT, "Duplicate node name in graph: '%s'", d->name);
    return is_ok(status);
}

static bool keep_attrs(const TF_OperationDescription *d, TF_Operation *oper)
{
    bool kept = true;
    for (int i = 0; i < d->num_attrs && kept; i++)
        if (is_kept(d->attrs[i].name, strlen(d->attrs[i].name)))
            kept = keep_attr(oper, d->attrs[i].name, strlen(d->attrs[i].name), d->attrs[i].value.data,
                             d->attrs[i].value.size);
    return kept;
}

/* Whether what was made has what its row says at the least: Tower itself builds with less, too. */
bool check_minima(TF_Operation *made, TF_Status *status)
{
    const tw_op_info *op = op_of(made);
    for (int i = 0; op && i < op->num_attrs && is_ok(status); i++) {
        const tw_op_attr *row = &op->attrs[i];
        const tw_attr *attr = row->has_minimum ? tw_node_attr(made->node, row->name) : NULL;
        bool number = row->kind == TW_ATTR_INT;
        int64_t value = !attr ? row->minimum : number ? attr->i : attr->count;
        if (value < row->minimum)
            set_status(status, TF_INVALID_ARGUMENT, "%s for attr '%s' of %lld must be at least minimum %d: %s '%s'",
                       number ? "Value" : "Length", row->name, (long long)value, row->minimum, op->name,
                       TF_OperationName(made));
    }
    return is_ok(status);
}

static TF_Operation *add(TF_OperationDescription *d, TF_Status *status)
{
    wire def = {0};
    tw_error error = TW_NO_ERROR;
    tw_node *node = NULL;
    const char *name = d->name;
    int before = d->graph->num_operations;
    size_t most_inputs = 2 * (size_t)d->num_inputs + (size_t)d->num_controls + (size_t)d->num_beside + 1;
    tw_import_input *inputs = check(d, status) ? calloc(most_inputs, sizeof *inputs) : NULL;
    if (!is_ok(status))
        return NULL;
    set_lengths(d);
    write_class(d);
    write_def(d, &def);
    if (def.failed || d->failed || !inputs) {
        set_no_memory(status);
    } else {
        tw_import_options options = {.size = sizeof options,
                                     .inputs = inputs,
                                     .num_inputs = lead_in(d, inputs),
                                     .known_only = true,
                                     .any_names = true,
                                     .names = &name,
                                     .nodes = &node,
                                     .num_names = 1};
        tw_graph_import_with(d->graph->tower, def.data, def.size, &options, &error);
        if (error.status == TW_NOT_FOUND)
            fail_unknown(d, status);
        else if (error.status == TW_FAILED_PRECONDITION) /* it calls a function that is not there */
            set_status(status, TF_NOT_FOUND, "%s", error.message);
        else
            set_graph_error(status, &error);
    }
    free(inputs);
    wire_free(&def);
    if (is_ok(status) && !sync_graph(d->graph))
        set_no_memory(status);
    if (is_ok(status) && !check_minima(operation_of(d->graph, node), status))
        take_back(d->graph, before);
    if (is_ok(status) && !keep_attrs(d, operation_of(d->graph, node))) {
        take_back(d->graph, before);
        set_no_memory(status);
    }
    return is_ok(status) ? operation_of(d->graph, node) : NULL;
}

TF_Operation *finish_operation(TF_OperationDescription *desc, TF_Status *status)
{
    TF_Graph *graph = desc->graph;
    begin_building(graph);
    TF_Operation *made = add(desc, status);
    end_building(graph);
    delete_description(desc);
    return made;
}

TF_Operation *TF_FinishOperation(TF_OperationDescription *desc, TF_Status *status)
{
    if (check_calls(desc, status))
        return finish_operation(desc, status);
    delete_description(desc);
    return NULL;
}

/* The same here: who holds a graph's lock is not seen from outside. */
TF_OperationDescription *TF_NewOperationLocked(TF_Graph *graph, const char *op_type, const char *oper_name)
{
    return TF_NewOperation(graph, op_type, oper_name);
}

TF_Operation *TF_FinishOperationLocked(TF_OperationDescription *desc, TF_Status *status)
{
    return TF_FinishOperation(desc, status);
}
