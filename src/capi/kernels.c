/* kernels.c - kernels of one's own: registering them, choosing one for a node, and what it is told when it is made.
 * What it computes with is in kernel_context.c.
 *
 * Tower knows an op's functions, which are the same for all of them; which kernel a node has is found when its first
 * plan is made, so it may be registered after the op, and after the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_op.h"

struct TF_KernelBuilder {
    own_kernel kernel;
    bool failed; /* out of memory */
};

/* An op that has been registered here, for ever. */
typedef struct own_op {
    char *name;
    shape_function *shape;
    int number;
    struct own_op *next;
} own_op;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static own_kernel *kernels; /* newest first */
static own_op *ops;         /* newest first */

/* ---- building --------------------------------------------------------------------------------------------------- */

static char *copy_text(TF_KernelBuilder *b, const char *text)
{
    char *copy = strdup(text ? text : "");
    b->failed = b->failed || !copy;
    return copy;
}

static TF_KernelBuilder *new_builder(const char *op, const char *device, own_kernel functions)
{
    TF_KernelBuilder *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->kernel = functions;
    b->kernel.op = copy_text(b, op);
    b->kernel.device = copy_text(b, device);
    return b;
}

TF_KernelBuilder *TF_NewKernelBuilder(const char *op_name, const char *device_name,
                                      void *(*create_func)(TF_OpKernelConstruction *),
                                      void (*compute_func)(void *, TF_OpKernelContext *), void (*delete_func)(void *))
{
    return new_builder(op_name, device_name,
                       (own_kernel){.create = create_func, .compute = compute_func, .destroy = delete_func});
}

TF_KernelBuilder *
TF_NewAsyncKernelBuilder(const char *op_name, const char *device_name, void *(*create_func)(TF_OpKernelConstruction *),
                         void (*compute_async_func)(void *, TF_OpKernelContext *, TF_AsyncOpKernelDoneCallback *done),
                         void (*delete_func)(void *))
{
    return new_builder(
        op_name, device_name,
        (own_kernel){.create = create_func, .compute_async = compute_async_func, .destroy = delete_func});
}

static void free_kernel(own_kernel *k)
{
    for (int i = 0; i < k->num_host_arguments; i++)
        free(k->host_arguments[i]);
    for (int i = 0; i < k->num_constraints; i++)
        free(k->constraints[i].attr);
    free(k->host_arguments);
    free(k->constraints);
    free(k->op);
    free(k->device);
    free(k->name);
    free(k->label);
}

void TF_DeleteKernelBuilder(TF_KernelBuilder *builder)
{
    if (builder)
        free_kernel(&builder->kernel);
    free(builder);
}

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder *kernel_builder, const char *attr_name, TF_DataType type,
                                     TF_Status *status)
{
    own_kernel *k = &kernel_builder->kernel;
    int i = 0;
    TF_SetStatus(status, TF_OK, "");
    if ((int)type <= 0 || (int)type >= 64) {
        set_status(status, TF_INVALID_ARGUMENT, "%d is no type for '%s' of a kernel of '%s'", type, attr_name, k->op);
        return;
    }
    while (i < k->num_constraints && strcmp(k->constraints[i].attr, attr_name) != 0)
        i++;
    if (i == k->num_constraints) {
        struct constraint *grown = realloc(k->constraints, sizeof *grown * ((size_t)i + 1));
        char *attr = copy_text(kernel_builder, attr_name);
        kernel_builder->failed = kernel_builder->failed || !grown;
        k->constraints = grown ? grown : k->constraints;
        if (kernel_builder->failed) {
            free(attr);
            set_no_memory(status);
            return;
        }
        k->constraints[k->num_constraints++] = (struct constraint){attr, 0};
    }
    k->constraints[i].types |= UINT64_C(1) << type;
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder *kernel_builder, const char *arg_name)
{
    own_kernel *k = &kernel_builder->kernel;
    char **grown = realloc(k->host_arguments, sizeof *grown * ((size_t)k->num_host_arguments + 1));
    char *name = grown ? copy_text(kernel_builder, arg_name) : NULL;
    k->host_arguments = grown ? grown : k->host_arguments;
    kernel_builder->failed = kernel_builder->failed || !name;
    if (name)
        k->host_arguments[k->num_host_arguments++] = name;
}

void TF_KernelBuilder_Priority(TF_KernelBuilder *kernel_builder, int32_t priority_number)
{
    kernel_builder->kernel.priority = priority_number;
}

void TF_KernelBuilder_Label(TF_KernelBuilder *kernel_builder, const char *label)
{
    free(kernel_builder->kernel.label);
    kernel_builder->kernel.label = copy_text(kernel_builder, label);
}

/* ---- registering ------------------------------------------------------------------------------------------------ */

bool is_own_op(const char *name)
{
    pthread_mutex_lock(&lock);
    const own_op *own = ops;
    while (own && strcmp(own->name, name) != 0)
        own = own->next;
    pthread_mutex_unlock(&lock);
    return own;
}

int num_own_ops(void)
{
    pthread_mutex_lock(&lock);
    int count = ops ? ops->number + 1 : 0;
    pthread_mutex_unlock(&lock);
    return count;
}

void write_own_ops(wire *list, int first, int end)
{
    enum { OP = 1 };
    for (int i = first; i < end; i++) {
        wire message = {0};
        pthread_mutex_lock(&lock);
        const own_op *op = ops;
        while (op->number != i)
            op = op->next;
        pthread_mutex_unlock(&lock);
        const tw_op_info *info = find_op(op->name);
        list->failed = list->failed || !info;
        if (info)
            write_op_def(&message, info);
        wire_message(list, OP, &message);
    }
}

static bool is_for_cpu(const own_kernel *kernel)
{
    return strcmp(kernel->device, "CPU") == 0;
}

void TF_RegisterKernelBuilder(const char *kernel_name, TF_KernelBuilder *builder, TF_Status *status)
{
    own_kernel *kernel = malloc(sizeof *kernel);
    TF_SetStatus(status, TF_OK, "");
    builder->kernel.name = copy_text(builder, kernel_name);
    if (builder->failed || !kernel)
        set_no_memory(status);
    else if (is_for_cpu(&builder->kernel) && find_op(builder->kernel.op) && !is_own_op(builder->kernel.op))
        set_status(status, TF_UNIMPLEMENTED, "kernel '%s': '%s' is an op of Tower's, whose kernels are not replaced",
                   kernel_name, builder->kernel.op);
    if (!is_ok(status)) {
        free(kernel);
        TF_DeleteKernelBuilder(builder);
        return;
    }
    *kernel = builder->kernel;
    free(builder);
    pthread_mutex_lock(&lock);
    kernel->next = kernels;
    kernels = kernel;
    pthread_mutex_unlock(&lock);
}

/* A list of types: numbers each for itself, or packed. */
static void allow_types(TF_KernelBuilder *b, const char *attr, wire_reader types, TF_Status *status)
{
    enum { TYPES = 6 };
    wire_field field;
    uint64_t number;
    while (is_ok(status) && wire_next(&types, &field)) {
        wire_reader packed = field.type == 2 ? wire_read(field.data, field.size) : (wire_reader){0};
        if (field.number != TYPES)
            continue;
        if (field.type == 0)
            TF_KernelBuilder_TypeConstraint(b, attr, (TF_DataType)field.value, status);
        while (field.type == 2 && is_ok(status) && wire_next_packed(&packed, &number))
            TF_KernelBuilder_TypeConstraint(b, attr, (TF_DataType)number, status);
    }
}

/* A constraint's types, of which there may be several. */
static void read_constraint(TF_KernelBuilder *b, const wire_field *constraint, TF_Status *status)
{
    enum { NAME = 1, ALLOWED = 2, LIST = 1 };
    char name[256] = "";
    wire_field field, list;
    wire_reader r = wire_read(constraint->data, constraint->size);
    while (is_ok(status) && wire_next(&r, &field)) {
        if (field.number == NAME)
            snprintf(name, sizeof name, "%.*s", (int)field.size, (const char *)field.data);
        wire_reader lists = field.number == ALLOWED ? wire_read(field.data, field.size) : (wire_reader){0};
        while (field.number == ALLOWED && wire_next(&lists, &list))
            if (list.number == LIST && list.type == 2)
                allow_types(b, name, wire_read(list.data, list.size), status);
    }
}

void TF_RegisterKernelBuilderWithKernelDef(const char *serialized_kernel_def, const char *name,
                                           TF_KernelBuilder *builder, TF_Status *status)
{
    enum { OP = 1, DEVICE_TYPE = 2, CONSTRAINT = 3, HOST_ARGUMENT = 4, LABEL = 5, PRIORITY = 6 };
    TF_SetStatus(status, TF_OK, "");
    wire_field field;
    size_t size = serialized_kernel_def ? strlen(serialized_kernel_def) : 0; /* it has no length */
    wire_reader r = wire_read(serialized_kernel_def, size);
    while (is_ok(status) && size && wire_next(&r, &field)) {
        char text[256];
        if (field.type == 2)
            snprintf(text, sizeof text, "%.*s", (int)field.size, (const char *)field.data);
        char **place = field.number == OP            ? &builder->kernel.op
                       : field.number == DEVICE_TYPE ? &builder->kernel.device
                                                     : NULL;
        if (place && field.type == 2) {
            free(*place);
            *place = copy_text(builder, text);
        }
        if (field.number == CONSTRAINT && field.type == 2)
            read_constraint(builder, &field, status);
        if (field.number == HOST_ARGUMENT && field.type == 2)
            TF_KernelBuilder_HostMemory(builder, text);
        if (field.number == LABEL && field.type == 2)
            TF_KernelBuilder_Label(builder, text);
        if (field.number == PRIORITY)
            builder->kernel.priority = (int32_t)field.value;
    }
    if (is_ok(status) && r.wrong)
        set_status(status, TF_INVALID_ARGUMENT, "kernel '%s': these bytes are no KernelDef", name);
    if (is_ok(status))
        TF_RegisterKernelBuilder(name, builder, status);
    else
        TF_DeleteKernelBuilder(builder);
}

static void write_kernel(wire *list, const own_kernel *k)
{
    enum { KERNEL = 1, OP = 1, DEVICE_TYPE = 2, CONSTRAINT = 3, HOST_ARGUMENT = 4, LABEL = 5, PRIORITY = 6 };
    enum { NAME = 1, ALLOWED = 2 };
    wire kernel = {0};
    wire_text(&kernel, OP, k->op);
    wire_text(&kernel, DEVICE_TYPE, k->device);
    for (int i = 0; i < k->num_constraints; i++) {
        wire constraint = {0};
        tw_dtype types[64];
        tw_attr allowed = {.kind = TW_ATTR_TYPES, .types = types};
        for (int t = 0; t < 64; t++)
            if (k->constraints[i].types >> t & 1)
                types[allowed.count++] = (tw_dtype)t;
        wire_text(&constraint, NAME, k->constraints[i].attr);
        write_attr_value(&constraint, ALLOWED, &allowed);
        wire_message(&kernel, CONSTRAINT, &constraint);
    }
    for (int i = 0; i < k->num_host_arguments; i++)
        wire_text(&kernel, HOST_ARGUMENT, k->host_arguments[i]);
    if (k->label)
        wire_text(&kernel, LABEL, k->label);
    if (k->priority)
        wire_int(&kernel, PRIORITY, (uint64_t)(int64_t)k->priority);
    wire_message(list, KERNEL, &kernel);
}

void write_own_kernels(wire *list, const char *op)
{
    pthread_mutex_lock(&lock);
    for (const own_kernel *k = kernels; k; k = k->next)
        if (!op || strcmp(k->op, op) == 0)
            write_kernel(list, k);
    pthread_mutex_unlock(&lock);
}

/* ---- choosing --------------------------------------------------------------------------------------------------- */

static const tw_attr *find_attr(const tw_op_node *node, const char *name)
{
    for (int i = 0; i < node->num_attrs; i++)
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    return NULL;
}

/* Whether the attribute is of a type, or a list of types, that a kernel takes. */
static bool is_allowed(const tw_attr *attr, uint64_t types)
{
    bool allowed = attr && (attr->kind == TW_ATTR_TYPE || attr->kind == TW_ATTR_TYPES);
    for (int i = 0; allowed && i < (attr->kind == TW_ATTR_TYPE ? 1 : attr->count); i++)
        allowed = types >> (attr->kind == TW_ATTR_TYPE ? attr->type : attr->types[i]) & 1;
    return allowed;
}

static bool takes(const own_kernel *k, const tw_op_node *node)
{
    const tw_attr *label = find_attr(node, "_kernel");
    const char *wanted = label && label->kind == TW_ATTR_STRING && label->s.data ? label->s.data : "";
    bool fits = strcmp(k->op, node->op) == 0 && is_for_cpu(k) && strcmp(k->label ? k->label : "", wanted) == 0;
    for (int i = 0; i < k->num_constraints && fits; i++)
        fits = is_allowed(find_attr(node, k->constraints[i].attr), k->constraints[i].types);
    return fits;
}

static tw_status fail(tw_error *error, tw_status status, const char *format, ...) TW_PRINTF(3, 4);

static tw_status fail(tw_error *error, tw_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

static tw_status choose(const tw_op_node *node, const own_kernel **chosen, tw_error *error)
{
    const own_kernel *best = NULL;
    bool equal = false;
    pthread_mutex_lock(&lock);
    for (const own_kernel *k = kernels; k; k = k->next)
        if (takes(k, node) && (!best || k->priority >= best->priority)) {
            equal = best && k->priority == best->priority;
            best = k;
        }
    pthread_mutex_unlock(&lock);
    *chosen = best;
    if (!best)
        return fail(error, TW_INVALID_ARGUMENT,
                    "No OpKernel was registered to support Op '%s' used by {{node %s}} with these attrs. Registered "
                    "devices: [CPU]",
                    node->op, node->name);
    if (equal)
        return fail(error, TW_INVALID_ARGUMENT,
                    "Multiple OpKernel registrations match NodeDef {{node %s}} of op '%s' at the same priority %d",
                    node->name, node->op, best->priority);
    return TW_OK;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

struct TF_OpKernelConstruction {
    const tw_op_node *node;
    tw_error failure;
};

static int length_in(const tw_op_node *node, const tw_op_argument *argument)
{
    const char *name = argument->number_attr ? argument->number_attr : argument->types_attr;
    const tw_attr *attr = name ? find_attr(node, name) : NULL;
    return !name ? 1 : !attr ? 0 : argument->number_attr ? (int)attr->i : attr->count;
}

/* Where each argument begins and ends among a node's inputs or outputs. */
static bool note_arguments(made_kernel *made, int which, const tw_op_node *node, const tw_op_argument *from, int count)
{
    int at = 0;
    made->arguments[which] = calloc((size_t)count + 1, sizeof *made->arguments[which]);
    for (int i = 0; i < count && made->arguments[which]; i++) {
        int length = length_in(node, &from[i]);
        made->arguments[which][i] = (struct argument){strdup(from[i].name), at, at + length};
        at += length;
        if (!made->arguments[which][i].name)
            return false;
        made->num_arguments[which]++;
    }
    return made->arguments[which];
}

static void free_made(made_kernel *made)
{
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < made->num_arguments[which]; i++)
            free(made->arguments[which][i].name);
        free(made->arguments[which]);
    }
    free(made->device);
    free(made);
}

static void destroy(void *kernel)
{
    made_kernel *made = kernel;
    if (made->kernel->destroy)
        made->kernel->destroy(made->made);
    free_made(made);
}

static tw_status create(void *user, const tw_op_node *node, void **kernel, tw_error *error)
{
    (void)user;
    TF_OpKernelConstruction construction = {.node = node};
    const own_kernel *chosen;
    const tw_op_info *op = find_op(node->op);
    tw_status status = choose(node, &chosen, error);
    if (status != TW_OK)
        return status;
    made_kernel *made = calloc(1, sizeof *made);
    if (!made)
        return fail(error, TW_RESOURCE_EXHAUSTED, "out of memory");
    made->kernel = chosen;
    made->device = strdup(node->device);
    if (!op || !made->device || !note_arguments(made, 0, node, op->inputs, op->num_inputs) ||
        !note_arguments(made, 1, node, op->outputs, op->num_outputs)) {
        free_made(made);
        return fail(error, TW_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (chosen->create)
        made->made = chosen->create(&construction);
    if (construction.failure.status != TW_OK) { /* it is made nevertheless */
        *error = construction.failure;
        destroy(made);
        return error->status;
    }
    *kernel = made;
    return TW_OK;
}

static tw_status infer(void *user, const tw_op_node *node, tw_shape *outputs, tw_error *error)
{
    return infer_own_shapes(((const own_op *)user)->shape, node, outputs, error);
}

tw_status register_own_op(const tw_op_info *op, shape_function *shape, tw_error *error)
{
    own_op *made = calloc(1, sizeof *made);
    char *name = made ? strdup(op->name) : NULL;
    tw_op_functions functions = TW_SIZED(tw_op_functions);
    if (made)
        *made = (own_op){.name = name, .shape = shape}; /* as soon as it is registered others may build its nodes */
    functions.user = made;
    functions.shape = infer;
    functions.create = create;
    functions.compute = compute_own;
    functions.destroy = destroy;
    tw_status status =
        name ? tw_op_register(op, &functions, error) : fail(error, TW_RESOURCE_EXHAUSTED, "out of memory");
    if (status != TW_OK) {
        free(name);
        free(made);
        return status;
    }
    pthread_mutex_lock(&lock);
    made->number = ops ? ops->number + 1 : 0;
    made->next = ops;
    ops = made;
    pthread_mutex_unlock(&lock);
    return TW_OK;
}

/* ---- what a kernel is told when it is made ---------------------------------------------------------------------- */

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction *ctx, TF_Status *status)
{
    if (ctx->failure.status == TW_OK)
        fail(&ctx->failure, (tw_status)TF_GetCode(status), "%s", TF_Message(status));
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction *ctx)
{
    return (TF_StringView){ctx->node->name, strlen(ctx->node->name)};
}

TF_Buffer *TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction *ctx, TF_Status *status)
{
    enum { NAME = 1, OP = 2, DEVICE = 4, ATTR = 5, KEY = 1, VALUE = 2 };
    wire def = {0};
    TF_SetStatus(status, TF_OK, "");
    wire_text(&def, NAME, ctx->node->name);
    wire_text(&def, OP, ctx->node->op);
    wire_text(&def, DEVICE, ctx->node->device);
    for (int i = 0; i < ctx->node->num_attrs; i++) {
        wire entry = {0};
        wire_text(&entry, KEY, ctx->node->attrs[i].name);
        write_attr_value(&entry, VALUE, &ctx->node->attrs[i]);
        wire_message(&def, ATTR, &entry);
    }
    TF_Buffer *buffer = new_buffer(&def);
    if (!buffer)
        set_no_memory(status);
    return buffer;
}

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction *ctx, const char *attr_name, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    return find_attr(ctx->node, attr_name);
}

static const char *kind_name(tw_attr_kind kind)
{
    static const char *const names[] = {
        [TW_ATTR_INT] = "int",          [TW_ATTR_FLOAT] = "float",          [TW_ATTR_BOOL] = "bool",
        [TW_ATTR_TYPE] = "type",        [TW_ATTR_STRING] = "string",        [TW_ATTR_SHAPE] = "shape",
        [TW_ATTR_TENSOR] = "tensor",    [TW_ATTR_INTS] = "list(int)",       [TW_ATTR_FLOATS] = "list(float)",
        [TW_ATTR_TYPES] = "list(type)", [TW_ATTR_STRINGS] = "list(string)", [TW_ATTR_SHAPES] = "list(shape)",
    };
    return names[kind];
}

static void set_missing(const tw_op_node *node, const char *name, TF_Status *status)
{
    set_status(status, TF_NOT_FOUND, "No attr named '%s' in NodeDef:\n\t [[{{node %s}}]]", name, node->name);
}

/* NULL: there is none of that kind, and the status says so. */
static const tw_attr *expect(const tw_op_node *node, const char *name, tw_attr_kind kind, TF_Status *status)
{
    const tw_attr *attr = find_attr(node, name);
    TF_SetStatus(status, TF_OK, "");
    if (!attr)
        set_missing(node, name, status);
    else if (attr->kind != kind)
        set_status(status, TF_INVALID_ARGUMENT, "AttrValue had value with type '%s' when '%s' expected",
                   kind_name(attr->kind), kind_name(kind));
    return is_ok(status) ? attr : NULL;
}

/* No op has one of a kind that Tower has not. */
static void expect_none(const tw_op_node *node, const char *name, const char *kind, TF_Status *status)
{
    const tw_attr *attr = find_attr(node, name);
    if (attr)
        set_status(status, TF_INVALID_ARGUMENT, "AttrValue had value with type '%s' when '%s' expected",
                   kind_name(attr->kind), kind);
    else
        set_missing(node, name, status);
}

static int32_t to_int32(const char *name, int64_t value, TF_Status *status)
{
    if (value != (int32_t)value)
        set_status(status, TF_INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32", name,
                   (long long)value);
    return (int32_t)value;
}

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction *ctx, const char *attr_name, int32_t *list_size,
                                         int32_t *total_size, TF_Status *status)
{
    const tw_attr *attr = find_attr(ctx->node, attr_name);
    *list_size = *total_size = -1;
    TF_SetStatus(status, TF_OK, "");
    if (!attr) {
        set_status(status, TF_INVALID_ARGUMENT, "Operation '%s' has no attr named '%s'.", ctx->node->name, attr_name);
        return;
    }
    if (attr->kind >= TW_ATTR_INTS)
        *list_size = attr->count;
    switch (attr->kind) {
    case TW_ATTR_STRING:
        *total_size = (int32_t)attr->s.size;
        break;
    case TW_ATTR_SHAPE:
        *total_size = attr->shape.rank;
        break;
    case TW_ATTR_STRINGS:
    case TW_ATTR_SHAPES:
        *total_size = 0;
        for (int i = 0; i < attr->count; i++)
            *total_size += attr->kind == TW_ATTR_STRINGS ? (int32_t)attr->strings[i].size
                           : attr->shapes[i].rank > 0    ? attr->shapes[i].rank
                                                         : 0;
        break;
    default:
        break;
    }
}

void get_own_type(const tw_op_node *node, const char *attr_name, TF_DataType *val, TF_Status *status)
{
    const tw_attr *attr = expect(node, attr_name, TW_ATTR_TYPE, status);
    if (attr)
        *val = (TF_DataType)attr->type;
}

void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction *ctx, const char *attr_name, TF_DataType *val,
                                         TF_Status *status)
{
    get_own_type(ctx->node, attr_name, val, status);
}

void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction *ctx, const char *attr_name, int32_t *val,
                                          TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_INT, status);
    int32_t value = attr ? to_int32(attr_name, attr->i, status) : 0;
    if (is_ok(status))
        *val = value;
}

void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction *ctx, const char *attr_name, int64_t *val,
                                          TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_INT, status);
    if (attr)
        *val = attr->i;
}

void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction *ctx, const char *attr_name, float *val,
                                          TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_FLOAT, status);
    if (attr)
        *val = attr->f;
}

void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction *ctx, const char *attr_name, TF_Bool *val,
                                         TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_BOOL, status);
    if (attr)
        *val = attr->b;
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction *ctx, const char *attr_name, char *val,
                                           size_t max_length, TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_STRING, status);
    if (attr && attr->s.size && max_length)
        memcpy(val, attr->s.data, attr->s.size < max_length ? attr->s.size : max_length);
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction *ctx, const char *attr_name, TF_Tensor **val,
                                           TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_TENSOR, status);
    TF_Tensor *tensor = attr ? tensor_from_tower(tw_tensor_retain(attr->tensor)) : NULL;
    if (tensor)
        *val = tensor;
    else if (attr)
        set_no_memory(status);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction *ctx, const char *attr_name, TF_DataType *vals,
                                             int max_vals, TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_TYPES, status);
    for (int i = 0; attr && i < smaller(attr->count, max_vals); i++)
        vals[i] = (TF_DataType)attr->types[i];
}

void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction *ctx, const char *attr_name, int32_t *vals,
                                              int max_vals, TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_INTS, status);
    for (int i = 0; attr && i < smaller(attr->count, max_vals) && is_ok(status); i++)
        vals[i] = to_int32(attr_name, attr->ints[i], status);
}

void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction *ctx, const char *attr_name, int64_t *vals,
                                              int max_vals, TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_INTS, status);
    for (int i = 0; attr && i < smaller(attr->count, max_vals); i++)
        vals[i] = attr->ints[i];
}

void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction *ctx, const char *attr_name, float *vals,
                                              int max_vals, TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_FLOATS, status);
    for (int i = 0; attr && i < smaller(attr->count, max_vals); i++)
        vals[i] = attr->floats[i];
}

void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction *ctx, const char *attr_name, char **values,
                                               size_t *lengths, int max_values, void *storage, size_t storage_size,
                                               TF_Status *status)
{
    const tw_attr *attr = expect(ctx->node, attr_name, TW_ATTR_STRINGS, status);
    char *at = storage;
    for (int i = 0; attr && i < smaller(attr->count, max_values) && is_ok(status); i++) {
        size_t size = attr->strings[i].size;
        values[i] = at;
        lengths[i] = size;
        if (size > storage_size - (size_t)(at - (char *)storage)) {
            set_status(status, TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of strings");
            return;
        }
        if (size)
            memcpy(at, attr->strings[i].data, size);
        at += size;
    }
}

void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction *ctx, const char *attr_name, TF_Bool *vals,
                                             int max_vals, TF_Status *status)
{
    (void)vals;
    (void)max_vals;
    expect_none(ctx->node, attr_name, "list(bool)", status);
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction *ctx, const char *attr_name, TF_Tensor **vals,
                                               int max_values, TF_Status *status)
{
    (void)vals;
    (void)max_values;
    expect_none(ctx->node, attr_name, "list(tensor)", status);
}

TF_Buffer *TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction *ctx, const char *attr_name,
                                                   TF_Status *status)
{
    expect_none(ctx->node, attr_name, "func", status);
    return NULL;
}
