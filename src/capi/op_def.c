/* op_def.c - the rows of Tower's ops: looking them up, and telling them as OpDefs.
 * Never here:  operations of a graph (operation.c). */
#include "own_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* Rows that somebody has asked for, for ever: a few hundred at most. */
typedef struct known_op {
    const char *name;
    tw_op_info *op;
    struct known_op *next;
} known_op;

enum { BUCKETS = 256 };
static known_op *known_ops[BUCKETS];
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned bucket_of(const char *name)
{
    unsigned hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % BUCKETS;
}

const tw_op_info *find_op(const char *name)
{
    tw_op_info *op = NULL;
    pthread_mutex_lock(&known_lock);
    known_op **bucket = &known_ops[bucket_of(name)];
    for (known_op *known = *bucket; known && !op; known = known->next)
        if (strcmp(known->name, name) == 0)
            op = known->op;
    known_op *added = op ? NULL : malloc(sizeof *added);
    if (added && tw_op_describe(name, &op, NULL) == TW_OK) {
        *added = (known_op){op->name, op, *bucket};
        *bucket = added;
    } else {
        free(added);
    }
    pthread_mutex_unlock(&known_lock);
    return op;
}

const tw_op_info *op_of(TF_Operation *operation)
{
    const tw_op_info *op = __atomic_load_n(&operation->op, __ATOMIC_ACQUIRE);
    if (!op && (op = find_op(tw_node_op(operation->node))))
        __atomic_store_n(&operation->op, op, __ATOMIC_RELEASE);
    return op;
}

int length_of_argument(const tw_node *node, const tw_op_argument *argument)
{
    const char *name = argument->number_attr ? argument->number_attr : argument->types_attr;
    const tw_attr *attr = name ? tw_node_attr(node, name) : NULL;
    return !name ? 1 : !attr ? 0 : argument->number_attr ? (int)attr->i : attr->count;
}

const tw_op_argument *find_argument(const tw_node *node, const tw_op_argument *arguments, int count, int index,
                                    int *first)
{
    *first = 0;
    for (int i = 0; i < count; i++) {
        int length = length_of_argument(node, &arguments[i]);
        if (index < *first + length)
            return &arguments[i];
        *first += length;
    }
    return NULL;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static void write_argument(wire *w, int field, const tw_op_argument *argument)
{
    enum { NAME = 1, TYPE = 3, TYPE_ATTR = 4, NUMBER_ATTR = 5, TYPE_LIST_ATTR = 6, IS_REF = 16 };
    wire message = {0};
    wire_text(&message, NAME, argument->name);
    if (argument->dtype != TW_INVALID_DTYPE)
        wire_int(&message, TYPE, (uint64_t)argument->dtype);
    if (argument->type_attr)
        wire_text(&message, TYPE_ATTR, argument->type_attr);
    if (argument->number_attr)
        wire_text(&message, NUMBER_ATTR, argument->number_attr);
    if (argument->types_attr)
        wire_text(&message, TYPE_LIST_ATTR, argument->types_attr);
    if (argument->is_reference)
        wire_int(&message, IS_REF, 1);
    wire_message(w, field, &message);
}

static const char *kind_text(tw_attr_kind kind)
{
    switch (kind) {
    case TW_ATTR_INT:
        return "int";
    case TW_ATTR_FLOAT:
        return "float";
    case TW_ATTR_BOOL:
        return "bool";
    case TW_ATTR_TYPE:
        return "type";
    case TW_ATTR_STRING:
        return "string";
    case TW_ATTR_SHAPE:
        return "shape";
    case TW_ATTR_TENSOR:
        return "tensor";
    case TW_ATTR_INTS:
        return "list(int)";
    case TW_ATTR_FLOATS:
        return "list(float)";
    case TW_ATTR_TYPES:
        return "list(type)";
    case TW_ATTR_STRINGS:
        return "list(string)";
    case TW_ATTR_SHAPES:
        return "list(shape)";
    }
    return "";
}

/* AttrValue's and AttrValue.ListValue's numbers of fields; those of a list are the same. */
enum { LIST = 1, S = 2, I = 3, F = 4, B = 5, TYPE = 6, SHAPE = 7, TENSOR = 8 };

static void write_shape(wire *w, tw_shape shape)
{
    enum { DIM = 2, UNKNOWN_RANK = 3, SIZE = 1 };
    wire message = {0};
    for (int i = 0; i < shape.rank; i++) {
        wire dim = {0};
        wire_int(&dim, SIZE, (uint64_t)shape.dims[i]);
        wire_message(&message, DIM, &dim);
    }
    if (shape.rank < 0)
        wire_int(&message, UNKNOWN_RANK, 1);
    wire_message(w, SHAPE, &message);
}

static void write_list(wire *w, const tw_attr *value)
{
    wire list = {0}, packed = {0};
    for (int i = 0; i < value->count; i++)
        switch (value->kind) {
        case TW_ATTR_INTS:
            wire_packed(&packed, (uint64_t)value->ints[i]);
            break;
        case TW_ATTR_TYPES:
            wire_packed(&packed, (uint64_t)value->types[i]);
            break;
        case TW_ATTR_FLOATS:
            wire_float(&list, F, value->floats[i]);
            break;
        case TW_ATTR_STRINGS:
            wire_bytes(&list, S, value->strings[i].data, value->strings[i].size);
            break;
        default:
            write_shape(&list, value->shapes[i]);
        }
    if (packed.size)
        wire_message(&list, value->kind == TW_ATTR_INTS ? I : TYPE, &packed);
    wire_message(w, LIST, &list);
}

void write_attr_value(wire *w, int field, const tw_attr *value)
{
    wire message = {0}, tensor = {0};
    switch (value->kind) {
    case TW_ATTR_INT:
        wire_int(&message, I, (uint64_t)value->i);
        break;
    case TW_ATTR_FLOAT:
        wire_float(&message, F, value->f);
        break;
    case TW_ATTR_BOOL:
        wire_int(&message, B, value->b);
        break;
    case TW_ATTR_TYPE:
        wire_int(&message, TYPE, (uint64_t)value->type);
        break;
    case TW_ATTR_STRING:
        wire_bytes(&message, S, value->s.data, value->s.size);
        break;
    case TW_ATTR_SHAPE:
        write_shape(&message, value->shape);
        break;
    case TW_ATTR_TENSOR:
        write_tower_tensor(&tensor, value->tensor);
        wire_message(&message, TENSOR, &tensor);
        break;
    default:
        write_list(&message, value);
    }
    wire_message(w, field, &message);
}

static void write_attr(wire *w, int field, const tw_op_attr *attr)
{
    enum { NAME = 1, KIND = 2, DEFAULT = 3, HAS_MINIMUM = 5, MINIMUM = 6, ALLOWED = 7 };
    wire message = {0}, allowed = {0}, list = {0}, packed = {0};
    wire_text(&message, NAME, attr->name);
    wire_text(&message, KIND, kind_text(attr->kind));
    if (attr->is_optional)
        write_attr_value(&message, DEFAULT, &attr->initial);
    if (attr->has_minimum)
        wire_int(&message, HAS_MINIMUM, 1);
    if (attr->minimum)
        wire_int(&message, MINIMUM, (uint64_t)(int64_t)attr->minimum);
    for (int i = 0; i < attr->num_types; i++)
        wire_packed(&packed, (uint64_t)attr->types[i]);
    for (int i = 0; i < attr->num_strings; i++)
        wire_text(&list, S, attr->strings[i]);
    if (attr->num_types)
        wire_message(&list, TYPE, &packed);
    if (attr->num_types || attr->num_strings) {
        wire_message(&allowed, LIST, &list);
        wire_message(&message, ALLOWED, &allowed);
    }
    wire_message(w, field, &message);
}

void write_op_def(wire *w, const tw_op_info *op)
{
    enum { NAME = 1, INPUT = 2, OUTPUT = 3, ATTR = 4, IS_STATEFUL = 17, IS_COMMUTATIVE = 18 };
    wire_text(w, NAME, op->name);
    for (int i = 0; i < op->num_inputs; i++)
        write_argument(w, INPUT, &op->inputs[i]);
    for (int i = 0; i < op->num_outputs; i++)
        write_argument(w, OUTPUT, &op->outputs[i]);
    for (int i = 0; i < op->num_attrs; i++)
        write_attr(w, ATTR, &op->attrs[i]);
    if (op->is_stateful)
        wire_int(w, IS_STATEFUL, 1);
    if (op->is_commutative)
        wire_int(w, IS_COMMUTATIVE, 1);
}

/* A function is an op of its graph: the first field of its FunctionDef is one's OpDef. */
static bool write_function_op(wire *w, const TF_Graph *graph, const char *name)
{
    enum { SIGNATURE = 1 };
    wire_field field;
    const TF_Function *function = find_function(graph, name);
    wire_reader r = function ? wire_read(function->def.data, function->def.size) : (wire_reader){0};
    while (function && wire_next(&r, &field))
        if (field.number == SIGNATURE && field.type == 2)
            wire_append(w, field.data, field.size);
    return function;
}

void set_not_registered(TF_Status *status, const char *op)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    set_status(status, TF_NOT_FOUND,
               "Op type not registered '%s' in binary running on %s. Make sure the Op is one that Tower has, or a "
               "function of the graph.",
               op, host);
}

void TF_GraphGetOpDef(TF_Graph *graph, const char *op_name, TF_Buffer *output_op_def, TF_Status *status)
{
    wire def = {0};
    const tw_op_info *op = find_op(op_name);
    pthread_rwlock_rdlock(&graph->lock);
    bool is_function = write_function_op(&def, graph, op_name);
    pthread_rwlock_unlock(&graph->lock);
    if (!is_function && op)
        write_op_def(&def, op);
    if (is_function || op) {
        fill_buffer(output_op_def, &def, status);
        return;
    }
    set_not_registered(status, op_name);
}

TF_Buffer *TF_GetAllOpList(void)
{
    enum { OP = 1 };
    wire list = {0}, message = {0};
    const char *name;
    for (int i = 0; (name = tw_op_at(i)); i++) {
        const tw_op_info *op = find_op(name);
        if (op)
            write_op_def(&message, op);
        wire_message(&list, OP, &message);
    }
    return new_buffer(&list);
}

/* There is one for a CPU of every op of Tower's; of the program's own those that it has registered. */
static void write_kernel(wire *w, const char *op)
{
    enum { KERNEL = 1, OP = 1, DEVICE_TYPE = 2 };
    wire kernel = {0};
    wire_text(&kernel, OP, op);
    wire_text(&kernel, DEVICE_TYPE, "CPU");
    wire_message(w, KERNEL, &kernel);
}

TF_Buffer *TF_GetAllRegisteredKernels(TF_Status *status)
{
    wire list = {0};
    const char *name;
    for (int i = 0; (name = tw_op_at(i)); i++)
        if (!is_own_op(name))
            write_kernel(&list, name);
    write_own_kernels(&list, NULL);
    TF_SetStatus(status, TF_OK, "");
    return new_buffer(&list);
}

TF_Buffer *TF_GetRegisteredKernelsForOp(const char *name, TF_Status *status)
{
    wire list = {0};
    if (find_op(name) && !is_own_op(name))
        write_kernel(&list, name);
    else
        write_own_kernels(&list, name);
    TF_SetStatus(status, TF_OK, "");
    return new_buffer(&list);
}
