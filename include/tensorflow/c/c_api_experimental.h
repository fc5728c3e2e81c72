/* c_api_experimental.h - of TensorFlow's experimental functions those that programs which use graphs call. */
#ifndef TENSORFLOW_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_C_API_EXPERIMENTAL_H_

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of XLA, and without effect: Tower has one way to run a graph. Those that answer say 0. */
TF_CAPI_EXPORT extern void TF_EnableXLACompilation(TF_SessionOptions *options, unsigned char enable);
TF_CAPI_EXPORT extern unsigned char TF_SetXlaEnableLazyCompilation(unsigned char enable);
TF_CAPI_EXPORT extern unsigned char TF_SetTfXlaCpuGlobalJit(unsigned char enable);
TF_CAPI_EXPORT extern void TF_SetXlaAutoJitMode(const char *mode);
TF_CAPI_EXPORT extern unsigned char TF_GetXlaAutoJitEnabled(void);
TF_CAPI_EXPORT extern void TF_SetXlaMinClusterSize(int size);
TF_CAPI_EXPORT extern unsigned char TF_GetXlaConstantFoldingDisabled(void);
TF_CAPI_EXPORT extern void TF_SetXlaConstantFoldingDisabled(unsigned char should_enable);

/* A ConfigProto for TF_SetConfig(), for programs that cannot write messages. NULL: memory ran out. */
TF_CAPI_EXPORT extern TF_Buffer *TF_CreateConfig(unsigned char enable_xla_compilation,
                                                 unsigned char gpu_memory_allow_growth, unsigned int num_cpu_devices);

/* RunOptions for TF_SessionRun(), which is traced or not. NULL: memory ran out. */
TF_CAPI_EXPORT extern TF_Buffer *TF_CreateRunOptions(unsigned char enable_full_trace);

/* The nodes of a graph, and of a function, with their ops, inputs and devices, for people to read; *len: how long the
 * text is. Yours: free(). NULL: memory ran out. */
TF_CAPI_EXPORT extern const char *TF_GraphDebugString(TF_Graph *graph, size_t *len);
TF_CAPI_EXPORT extern char *TF_FunctionDebugString(TF_Function *func, size_t *len);

TF_CAPI_EXPORT extern void TF_MakeInternalErrorStatus(TF_Status *status, const char *errMsg);

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

typedef struct TF_CheckpointReader TF_CheckpointReader;

/* Opens the checkpoint with this prefix, "model.ckpt-1000". NULL: the status says why. A reader is for one thread at a
 * time. */
TF_CAPI_EXPORT extern TF_CheckpointReader *TF_NewCheckpointReader(const char *filename, TF_Status *status);
TF_CAPI_EXPORT extern void TF_DeleteCheckpointReader(TF_CheckpointReader *reader);
TF_CAPI_EXPORT extern int TF_CheckpointReaderHasTensor(TF_CheckpointReader *reader, const char *name);
/* How many tensors it has, in the order of their names, and the name of one; NULL: there are not so many. */
TF_CAPI_EXPORT extern int TF_CheckpointReaderSize(TF_CheckpointReader *reader);
TF_CAPI_EXPORT extern const char *TF_CheckpointReaderGetVariable(TF_CheckpointReader *reader, int index);
/* 0 for a name that it has not; -1 dimensions. */
TF_CAPI_EXPORT extern TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader *reader, const char *name);
TF_CAPI_EXPORT extern int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader *reader, const char *name);
TF_CAPI_EXPORT extern void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader *reader, const char *name,
                                                               int64_t *dims, int num_dims, TF_Status *status);
/* Yours: TF_DeleteTensor(). */
TF_CAPI_EXPORT extern TF_Tensor *TF_CheckpointReaderGetTensor(TF_CheckpointReader *reader, const char *name,
                                                              TF_Status *status);

/* ---- ops --------------------------------------------------------------------------------------------------------- */

/* Whether the op may give something else each time. */
TF_CAPI_EXPORT extern int TF_OpIsStateful(const char *op_type, TF_Status *status);
/* The attribute that says how many tensors of one type the input is a list of. NULL: TF_NOT_FOUND if there is none. */
TF_CAPI_EXPORT extern const char *TF_GetNumberAttrForOpListInput(const char *op_name, int input_index,
                                                                 TF_Status *status);
/* Changes nothing: Tower has no flags of a program's command line. */
TF_CAPI_EXPORT extern void TF_InitMain(const char *usage, int *argc, char ***argv);


/* Whether an op has a kernel for attributes that are types: TF_NOT_FOUND, or TF_INVALID_ARGUMENT for a type that is
 * missing. What an attribute is told first stands. */
typedef struct TF_AttrBuilder TF_AttrBuilder;
TF_CAPI_EXPORT extern TF_AttrBuilder *TF_NewAttrBuilder(const char *op_name);
TF_CAPI_EXPORT extern void TF_DeleteAttrBuilder(TF_AttrBuilder *builder);
TF_CAPI_EXPORT extern void TF_AttrBuilderSetType(TF_AttrBuilder *builder, const char *attr_name, TF_DataType value);
TF_CAPI_EXPORT extern void TF_AttrBuilderSetTypeList(TF_AttrBuilder *builder, const char *attr_name,
                                                     const TF_DataType *values, int num_values);
TF_CAPI_EXPORT extern void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder *builder, const char *device_type,
                                                             TF_Status *status);

/* Shapes of which some or all dimensions are not known (-1 each, and -1 dimensions), and types (0: not known). */
typedef struct TF_ShapeAndType {
    int num_dims;
    int64_t *dims;
    TF_DataType dtype;
} TF_ShapeAndType;
typedef struct TF_ShapeAndTypeList {
    int num_items;
    TF_ShapeAndType *items;
} TF_ShapeAndTypeList;

TF_CAPI_EXPORT extern TF_ShapeAndTypeList *TF_NewShapeAndTypeList(int num_shapes); /* scalars */
TF_CAPI_EXPORT extern void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList *shape_list, int index, const int64_t *dims,
                                                       int num_dims);
TF_CAPI_EXPORT extern void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList *shape_list, int index);
TF_CAPI_EXPORT extern void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList *shape_list, int index, TF_DataType dtype);
TF_CAPI_EXPORT extern void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList *shape_list);
TF_CAPI_EXPORT extern void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList **shape_list_array, int num_items);

/* What shapes the operation would give if its inputs had these, and, of those whose tensors there are, these values.
 * *output_shapes is yours, TF_DeleteShapeAndTypeList(), and NULL when the status is not OK. Not heeded, and may be
 * NULL: input_tensor_as_shapes and what is told of resources, of which nothing is given. */
TF_CAPI_EXPORT extern void TFE_InferShapes(TFE_Op *op, TF_ShapeAndTypeList *input_shapes, TF_Tensor **input_tensors,
                                           TF_ShapeAndTypeList *input_tensor_as_shapes,
                                           TF_ShapeAndTypeList **input_resource_shapes_and_types,
                                           TF_ShapeAndTypeList **output_shapes,
                                           TF_ShapeAndTypeList ***output_resource_shapes_and_types,
                                           TF_Status *status);

/* A port of this machine that nobody listens at; 0: there is none. */
TF_CAPI_EXPORT extern int TF_PickUnusedPortOrDie(void);

/* A handle of a scalar that is copied. */
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_NewTensorHandleFromScalar(TF_DataType data_type, void *data, size_t len,
                                                                      TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
