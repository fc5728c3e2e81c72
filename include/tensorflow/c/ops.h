/* ops.h - ops of one's own: what one takes and gives, and which shapes its outputs have. What computes it is registered
 * by kernels.h.
 *
 *     TF_OpDefinitionBuilder *b = TF_NewOpDefinitionBuilder("AddOne");
 *     TF_OpDefinitionBuilderAddAttr(b, "T: {float, double}");
 *     TF_OpDefinitionBuilderAddInput(b, "x: T");
 *     TF_OpDefinitionBuilderAddOutput(b, "y: T");
 *     TF_OpDefinitionBuilderSetShapeInferenceFunction(b, same_shape);
 *     TF_RegisterOpDefinition(b, status);
 *
 * An op that has been registered is there for all graphs and contexts, and stays. */
#ifndef TENSORFLOW_C_OPS_H_
#define TENSORFLOW_C_OPS_H_

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext; /* borrowed for a call of the shape function */
typedef struct TF_ShapeHandle TF_ShapeHandle;                     /* a shape, which may be unknown in part */
typedef struct TF_DimensionHandle TF_DimensionHandle;

/* ---- what an op is ---------------------------------------------------------------------------------------------- */

TF_CAPI_EXPORT extern TF_OpDefinitionBuilder *TF_NewOpDefinitionBuilder(const char *op_name);
/* Takes the builder, whether it is well or not. TF_INVALID_ARGUMENT: what it was told contradicts itself, or a text of
 * it cannot be read; TF_ALREADY_EXISTS; TF_UNIMPLEMENTED: references, handles, variants, and attributes that are
 * functions or lists of bools or tensors. */
TF_CAPI_EXPORT extern void TF_RegisterOpDefinition(TF_OpDefinitionBuilder *builder, TF_Status *status);
/* One that is not registered. */
TF_CAPI_EXPORT extern void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder *builder);

/* "NAME: KIND", "NAME: KIND >= 2", "NAME: KIND = DEFAULT". KIND is string, int, float, bool, type, shape, tensor, a set
 * of types or texts ({int32, int64}, {'a', 'b'}; numbertype, realnumbertype, quantizedtype), or list(KIND). DEFAULT is
 * as in text of protocol buffers: 3, 0.5, true, 'text', DT_FLOAT, { dim { size: 2 } }, [1, 2]. */
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder *builder, const char *attr_spec);
/* "NAME: TYPE", where TYPE is that of its elements (int32), an attribute that is one (T), a list of as many as an
 * attribute says (N * int32, N * T), or an attribute that is a list of types. */
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder *builder, const char *input_spec);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder *builder, const char *output_spec);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder *builder, bool is_commutative);
/* One whose nodes give something else each time, or do something: they are run as often as they are asked for. */
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder *builder, bool is_stateful);
/* These change nothing here. */
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder *builder, bool is_aggregate);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder *builder,
                                                                             bool allows_uninitialized_input);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder *builder, int version,
                                                            const char *explanation);

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Called when an operation is built, and again when a run has shapes that are known; a status that is not TF_OK refuses
 * them. Outputs that it does not set, and all of an op without such a function, have shapes that are not known. */
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder *builder, void (*shape_inference_func)(TF_ShapeInferenceContext *ctx, TF_Status *status));

/* Handles are yours; what is called `result` is one that is given another value. */
TF_CAPI_EXPORT extern TF_ShapeHandle *TF_NewShapeHandle(void); /* nothing is known of it */
TF_CAPI_EXPORT extern TF_DimensionHandle *TF_NewDimensionHandle(void);
TF_CAPI_EXPORT extern void TF_DeleteShapeHandle(TF_ShapeHandle *handle);
TF_CAPI_EXPORT extern void TF_DeleteDimensionHandle(TF_DimensionHandle *handle);
TF_CAPI_EXPORT extern TF_ShapeHandle *TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext *ctx);
TF_CAPI_EXPORT extern TF_ShapeHandle *TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext *ctx,
                                                                             size_t size);

TF_CAPI_EXPORT extern int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext *ctx);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext *ctx, int i,
                                                            TF_ShapeHandle *handle, TF_Status *status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext *ctx, int i,
                                                             TF_ShapeHandle *handle, TF_Status *status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext *ctx, TF_Status *status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext *ctx, const char *attr_name,
                                                                TF_DataType *val, TF_Status *status);

TF_CAPI_EXPORT extern int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext *ctx,
                                                           TF_ShapeHandle *handle); /* -1: not known */
TF_CAPI_EXPORT extern int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle);
/* The shape if its rank is that, or at least or most that; of one of unknown rank so many unknown dimensions, or it
 * itself. */
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle,
                                                            int64_t rank, TF_ShapeHandle *result, TF_Status *status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext *ctx,
                                                                   TF_ShapeHandle *handle, int64_t rank,
                                                                   TF_ShapeHandle *result, TF_Status *status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *handle,
                                                                  int64_t rank, TF_ShapeHandle *result,
                                                                  TF_Status *status);
/* Dimension i; below 0 from the end. */
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *shape_handle,
                                                       int64_t i, TF_DimensionHandle *result);
TF_CAPI_EXPORT extern int TF_DimensionHandleValueKnown(TF_DimensionHandle *dim_handle);
TF_CAPI_EXPORT extern int64_t TF_DimensionHandleValue(TF_DimensionHandle *dim_handle); /* -1: not known */
/* Dimensions from `start` to before `end`, each below 0 from the end, and the rank if it is more. */
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext *ctx, TF_ShapeHandle *shape_handle,
                                                            int64_t start, int64_t end, TF_ShapeHandle *result,
                                                            TF_Status *status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext *ctx,
                                                                     TF_ShapeHandle *first, TF_ShapeHandle *second,
                                                                     TF_ShapeHandle *result, TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
