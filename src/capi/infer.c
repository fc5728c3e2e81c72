/* infer.c - what shapes an operation that is not executed would give: it is built in a graph of its own, of
 * placeholders with the shapes that it is asked for.
 * Never here:  rules of shapes, which are the ops' (graph/shape.c). */
#include <tensorflow/c/c_api_experimental.h>

#include "eager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists ------------------------------------------------------------------------------------------------------ */

TF_ShapeAndTypeList *TF_NewShapeAndTypeList(int num_shapes)
{
    TF_ShapeAndTypeList *list = calloc(1, sizeof *list);
    TF_ShapeAndType *items = calloc((size_t)num_shapes + 1, sizeof *items);
    if (!list || !items) {
        free(list);
        free(items);
        return NULL;
    }
    *list = (TF_ShapeAndTypeList){.num_items = num_shapes, .items = items};
    return list;
}

void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList *shape_list, int index, const int64_t *dims, int num_dims)
{
    TF_ShapeAndType *item = &shape_list->items[index];
    int64_t *copy = num_dims > 0 ? calloc((size_t)num_dims, sizeof *copy) : NULL;
    free(item->dims);
    *item = (TF_ShapeAndType){.num_dims = copy || num_dims == 0 ? num_dims : -1, .dims = copy, .dtype = item->dtype};
    for (int i = 0; copy && i < num_dims; i++)
        copy[i] = dims[i] < 0 ? -1 : dims[i];
}

void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList *shape_list, int index)
{
    TF_ShapeAndTypeListSetShape(shape_list, index, NULL, -1);
}

void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList *shape_list, int index, TF_DataType dtype)
{
    shape_list->items[index].dtype = dtype;
}

void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList *shape_list)
{
    for (int i = 0; shape_list && i < shape_list->num_items; i++)
        free(shape_list->items[i].dims);
    if (shape_list)
        free(shape_list->items);
    free(shape_list);
}

void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList **shape_list_array, int num_items)
{
    for (int i = 0; shape_list_array && i < num_items; i++)
        TF_DeleteShapeAndTypeList(shape_list_array[i]);
    free(shape_list_array);
}

/* ---- inferring -------------------------------------------------------------------------------------------------- */

typedef struct inference {
    const TFE_Op *op;
    TF_Graph *graph;
    TF_OperationDescription *about;
    const TF_ShapeAndTypeList *shapes;
    TF_Tensor *const *values; /* [shapes->num_items] NULL each: not known; NULL: none is */
    int next;                 /* which of them comes next */
    TF_Status *status;
} inference;

/* The type that an argument's number `i` has been told to be; where it has not, any that the op takes. */
static TF_DataType type_of(const inference *f, const tw_op_info *row, const tw_op_argument *argument, int i)
{
    const char *name = argument->type_attr ? argument->type_attr : argument->types_attr;
    if (!name)
        return (TF_DataType)argument->dtype;
    TF_DataType told = described_type(f->about, name, i);
    if (told)
        return told;
    for (int k = 0; k < row->num_attrs; k++)
        if (strcmp(row->attrs[k].name, name) == 0 && row->attrs[k].num_types > 0)
            return (TF_DataType)row->attrs[k].types[0];
    return TF_FLOAT;
}

/* A constant of the next value, or a placeholder of the next shape. */
static TF_Output next_input(inference *f, TF_DataType type)
{
    TF_Tensor *value = f->values ? f->values[f->next] : NULL;
    const TF_ShapeAndType *shape = &f->shapes->items[f->next];
    char name[32];
    snprintf(name, sizeof name, "input_%d", f->next++);
    TF_OperationDescription *d = TF_NewOperation(f->graph, value ? "Const" : "Placeholder", name);
    if (!d) {
        set_no_memory(f->status);
        return (TF_Output){0};
    }
    TF_SetAttrType(d, "dtype", value ? TF_TensorType(value) : type);
    if (value)
        TF_SetAttrTensor(d, "value", value, f->status);
    else
        TF_SetAttrShape(d, "shape", shape->dims, shape->num_dims);
    if (is_ok(f->status))
        return (TF_Output){finish_operation(d, f->status), 0};
    delete_description(d);
    return (TF_Output){0};
}

/* The inputs of one argument: `length` of them, -1: it is no list. */
static void add_argument(inference *f, const tw_op_info *row, const tw_op_argument *argument, int length)
{
    int count = length < 0 ? 1 : length;
    if (count > f->shapes->num_items - f->next) {
        set_status(f->status, TF_INVALID_ARGUMENT, "Wrong number of inputs passed: %d, which ends before '%s' of %s",
                   f->shapes->num_items, argument->name, row->name);
        return;
    }
    TF_Output *inputs = calloc((size_t)count + 1, sizeof *inputs);
    if (!inputs)
        set_no_memory(f->status);
    for (int i = 0; i < count && is_ok(f->status); i++)
        inputs[i] = next_input(f, type_of(f, row, argument, i));
    if (is_ok(f->status) && length < 0)
        TF_AddInput(f->about, inputs[0]);
    else if (is_ok(f->status))
        TF_AddInputList(f->about, inputs, count);
    free(inputs);
}

static TF_Operation *build(inference *f)
{
    const char *name = TFE_OpGetName(f->op, f->status);
    const tw_op_info *row = find_op(name);
    f->graph = TF_NewGraph();
    f->about = f->graph ? TF_NewOperation(f->graph, name, "op") : NULL;
    if (!row)
        set_status(f->status, TF_UNIMPLEMENTED, "shapes are inferred of ops alone, and '%s' is a function", name);
    else if (!f->about)
        set_no_memory(f->status);
    else
        add_attrs(f->about, description_of(f->op));
    for (int i = 0; is_ok(f->status) && i < row->num_inputs; i++) {
        const tw_op_argument *argument = &row->inputs[i];
        bool is_list = argument->number_attr || argument->types_attr;
        int length = is_list ? TFE_OpGetInputLength((TFE_Op *)f->op, argument->name, f->status) : -1;
        if (is_ok(f->status))
            add_argument(f, row, argument, length);
    }
    if (is_ok(f->status) && f->next < f->shapes->num_items)
        set_status(f->status, TF_INVALID_ARGUMENT, "Wrong number of inputs passed: %d while %d expected of %s",
                   f->shapes->num_items, f->next, name);
    TF_OperationDescription *about = f->about;
    f->about = NULL;
    if (is_ok(f->status))
        return finish_operation(about, f->status);
    delete_description(about);
    return NULL;
}

static TF_ShapeAndTypeList *shapes_of(TF_Graph *graph, TF_Operation *operation, TF_Status *status)
{
    int count = TF_OperationNumOutputs(operation);
    TF_ShapeAndTypeList *list = TF_NewShapeAndTypeList(count);
    if (!list)
        set_no_memory(status);
    for (int i = 0; list && i < count && is_ok(status); i++) {
        TF_Output output = {operation, i};
        int num_dims = TF_GraphGetTensorNumDims(graph, output, status);
        int64_t *dims = calloc((size_t)(num_dims > 0 ? num_dims : 0) + 1, sizeof *dims);
        if (!dims)
            set_no_memory(status);
        else if (is_ok(status))
            TF_GraphGetTensorShape(graph, output, dims, num_dims, status);
        if (is_ok(status))
            TF_ShapeAndTypeListSetShape(list, i, dims, num_dims);
        free(dims);
    }
    if (is_ok(status))
        return list;
    TF_DeleteShapeAndTypeList(list);
    return NULL;
}

void TFE_InferShapes(TFE_Op *op, TF_ShapeAndTypeList *input_shapes, TF_Tensor **input_tensors,
                     TF_ShapeAndTypeList *input_tensor_as_shapes, TF_ShapeAndTypeList **input_resource_shapes_and_types,
                     TF_ShapeAndTypeList **output_shapes,
                     TF_ShapeAndTypeList ***output_resource_shapes_and_types, TF_Status *status)
{
    inference f = {.op = op, .shapes = input_shapes, .values = input_tensors, .status = status};
    (void)input_tensor_as_shapes;
    (void)input_resource_shapes_and_types;
    TF_SetStatus(status, TF_OK, "");
    *output_shapes = NULL;
    if (output_resource_shapes_and_types)
        *output_resource_shapes_and_types = NULL;
    TF_Operation *operation = build(&f);
    if (operation)
        *output_shapes = shapes_of(f.graph, operation, status);
    TF_DeleteGraph(f.graph);
}
