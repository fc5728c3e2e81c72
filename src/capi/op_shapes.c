/* op_shapes.c - what shape functions of ops of one's own work with: the shapes of inputs, which they look at, and those
 * of outputs, which they set. */
#include <stdio.h>
#include <stdlib.h>

#include "own_op.h"

struct TF_ShapeHandle {
    tw_shape shape;
};

struct TF_DimensionHandle {
    int64_t value;
};

struct TF_ShapeInferenceContext {
    const tw_op_node *node;
    tw_shape *outputs;
};

tw_status infer_own_shapes(shape_function *function, const tw_op_node *node, tw_shape *outputs, tw_error *error)
{
    TF_Status *status = function ? TF_NewStatus() : NULL;
    tw_status told = TW_OK;
    if (function && !status) {
        *error = (tw_error){TW_RESOURCE_EXHAUSTED, "out of memory"};
        return error->status;
    }
    if (function)
        function(&(TF_ShapeInferenceContext){node, outputs}, status);
    if (function && !is_ok(status)) {
        told = error->status = (tw_status)TF_GetCode(status);
        snprintf(error->message, sizeof error->message, "%s", TF_Message(status));
    }
    TF_DeleteStatus(status);
    return told;
}

/* ---- handles ---------------------------------------------------------------------------------------------------- */

static TF_ShapeHandle *new_handle(tw_shape shape)
{
    TF_ShapeHandle *handle = malloc(sizeof *handle);
    if (handle)
        handle->shape = shape;
    return handle;
}

TF_ShapeHandle *TF_NewShapeHandle(void)
{
    return new_handle(TW_UNKNOWN_SHAPE);
}

TF_ShapeHandle *TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext *ctx)
{
    (void)ctx;
    return new_handle(TW_SCALAR);
}

TF_ShapeHandle *TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext *ctx, size_t size)
{
    (void)ctx;
    return new_handle(TW_SHAPE((int64_t)size));
}

TF_DimensionHandle *TF_NewDimensionHandle(void)
{
    TF_DimensionHandle *handle = malloc(sizeof *handle);
    if (handle)
        handle->value = -1;
    return handle;
}

void TF_DeleteShapeHandle(TF_ShapeHandle *handle)
{
    free(handle);
}

void TF_DeleteDimensionHandle(TF_DimensionHandle *handle)
{
    free(handle);
}

/* ---- inputs and outputs ----------------------------------------------------------------------------------------- */

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext *ctx)
{
    return ctx->node->num_inputs;
}

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext *ctx, int i, TF_ShapeHandle *handle, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (i < 0 || i >= ctx->node->num_inputs)
        set_status(status, TF_INVALID_ARGUMENT, "input index out of range");
    else
        handle->shape = ctx->node->inputs[i];
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext *ctx, int i, TF_ShapeHandle *handle, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    if (i < 0 || i >= ctx->node->num_outputs)
        set_status(status, TF_INVALID_ARGUMENT, "output index out of range");
    else
        ctx->outputs[i] = handle->shape;
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    for (int i = 0; i < ctx->node->num_outputs; i++)
        ctx->outputs[i] = TW_UNKNOWN_SHAPE;
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext *ctx, const char *attr_name, TF_DataType *val,
                                          TF_Status *status)
{
    get_own_type(ctx->node, attr_name, val, status);
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle)
{
    (void)ctx;
    return handle->shape.rank;
}

int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle)
{
    (void)ctx;
    return handle->shape.rank >= 0;
}

/* False: Tower has no shapes of so many dimensions, and the status says so. */
static bool has_room(int64_t rank, TF_Status *status)
{
    if (rank < 0 || rank > TW_MAX_RANK)
        set_status(status, TF_INVALID_ARGUMENT, "a shape of %lld dimensions: there are from 0 to %d", (long long)rank,
                   TW_MAX_RANK);
    return is_ok(status);
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle, int64_t rank,
                                      TF_ShapeHandle *result, TF_Status *status)
{
    (void)ctx;
    TF_SetStatus(status, TF_OK, "");
    tw_shape shape = handle->shape;
    if (shape.rank >= 0 && shape.rank != rank)
        set_status(status, TF_INVALID_ARGUMENT, "Shape must be rank %lld but is rank %d", (long long)rank, shape.rank);
    if (shape.rank < 0 && has_room(rank, status)) {
        shape.rank = (int)rank;
        for (int i = 0; i < shape.rank; i++)
            shape.dims[i] = -1;
    }
    if (is_ok(status))
        result->shape = shape;
}

void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle, int64_t rank,
                                             TF_ShapeHandle *result, TF_Status *status)
{
    (void)ctx;
    TF_SetStatus(status, TF_OK, "");
    if (handle->shape.rank >= 0 && handle->shape.rank < rank)
        set_status(status, TF_INVALID_ARGUMENT, "Shape must be at least rank %lld but is rank %d", (long long)rank,
                   handle->shape.rank);
    else
        result->shape = handle->shape;
}

void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle, int64_t rank,
                                            TF_ShapeHandle *result, TF_Status *status)
{
    (void)ctx;
    TF_SetStatus(status, TF_OK, "");
    if (handle->shape.rank > rank)
        set_status(status, TF_INVALID_ARGUMENT, "Shape must be at most rank %lld but is rank %d", (long long)rank,
                   handle->shape.rank);
    else
        result->shape = handle->shape;
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *shape_handle, int64_t i,
                                 TF_DimensionHandle *result)
{
    (void)ctx;
    const tw_shape *shape = &shape_handle->shape;
    int64_t at = i < 0 ? i + shape->rank : i;
    result->value = at >= 0 && at < shape->rank ? shape->dims[at] : -1;
}

int TF_DimensionHandleValueKnown(TF_DimensionHandle *dim_handle)
{
    return dim_handle->value >= 0;
}

int64_t TF_DimensionHandleValue(TF_DimensionHandle *dim_handle)
{
    return dim_handle->value;
}

/* Of a shape whose rank is not known all of it alone is known to be all of it. */
void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *shape_handle, int64_t start,
                                      int64_t end, TF_ShapeHandle *result, TF_Status *status)
{
    (void)ctx;
    tw_shape from = shape_handle->shape, part = TW_SCALAR;
    int64_t rank = from.rank, first = start > rank ? rank : start, last = end > rank ? rank : end;
    TF_SetStatus(status, TF_OK, "");
    if (rank < 0) {
        result->shape = TW_UNKNOWN_SHAPE;
        return;
    }
    first = first < 0 ? first + rank : first;
    last = last < 0 ? last + rank : last;
    if (first < 0 || last < 0)
        set_status(status, TF_INVALID_ARGUMENT, "Subshape %s out of bounds: %lld, for shape with rank %d",
                   first < 0 ? "start" : "end", (long long)(first < 0 ? start : end), from.rank);
    else if (first > last)
        set_status(status, TF_INVALID_ARGUMENT,
                   "Subshape must have computed start <= end, but is %lld and %lld (computed from start %lld and end "
                   "%lld over shape with rank %d)",
                   (long long)first, (long long)last, (long long)start, (long long)end, from.rank);
    if (!is_ok(status))
        return;
    for (int64_t i = first; i < last; i++)
        part.dims[part.rank++] = from.dims[i];
    result->shape = part;
}

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *first,
                                               TF_ShapeHandle *second, TF_ShapeHandle *result, TF_Status *status)
{
    (void)ctx;
    tw_shape whole = first->shape;
    TF_SetStatus(status, TF_OK, "");
    if (first->shape.rank < 0 || second->shape.rank < 0) {
        result->shape = TW_UNKNOWN_SHAPE;
        return;
    }
    if (!has_room((int64_t)whole.rank + second->shape.rank, status))
        return;
    for (int i = 0; i < second->shape.rank; i++)
        whole.dims[whole.rank++] = second->shape.dims[i];
    result->shape = whole;
}
