/* c_api_experimental.h - of TensorFlow's experimental eager functions those that programs in one process call. */
#ifndef TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Makes an operation what TFE_NewOp() would make of this name and TFE_OpSetDevice() of this device (NULL: none). */
TF_CAPI_EXPORT extern void TFE_OpReset(TFE_Op *op_to_reset, const char *op_or_function_name,
                                       const char *raw_device_name, TF_Status *status);
/* What an operation has been told, as long as that lives; what another has not been told yet is added to it; and what
 * there is as a NameAttrList, with the name of the operation's type. */
typedef struct TFE_OpAttrs TFE_OpAttrs;
TF_CAPI_EXPORT extern const TFE_OpAttrs *TFE_OpGetAttrs(const TFE_Op *op);
TF_CAPI_EXPORT extern void TFE_OpAddAttrs(TFE_Op *op, const TFE_OpAttrs *attrs);
TF_CAPI_EXPORT extern void TFE_OpAttrsSerialize(const TFE_OpAttrs *attrs, TF_Buffer *buf, TF_Status *status);
/* Sets an attribute to a serialized AttrValue. */
TF_CAPI_EXPORT extern void TFE_OpSetAttrValueProto(const TFE_Op *op, const char *attr_name, const void *proto,
                                                   size_t proto_len, TF_Status *status);

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* Of each context another number. */
TF_CAPI_EXPORT extern uint64_t TFE_GetContextId(TFE_Context *ctx);
/* Whether devices that there are not are passed over is said when a context is made (allow_soft_placement):
 * TF_UNIMPLEMENTED if this is something else. */
TF_CAPI_EXPORT extern void TFE_ContextSetSoftDevicePlacement(TFE_Context *ctx, unsigned char enable, TF_Status *status);
/* A serialized FunctionDef, and the function: yours, TF_DeleteFunction(). TF_NOT_FOUND: there is none of the name. */
TF_CAPI_EXPORT extern void TFE_ContextGetFunctionDef(TFE_Context *ctx, const char *function_name, TF_Buffer *buf,
                                                     TF_Status *status);
TF_CAPI_EXPORT extern TF_Function *TFE_ContextGetFunction(TFE_Context *ctx, const char *name, TF_Status *status);
/* What is executed has been when TFE_Execute() returns. */
TF_CAPI_EXPORT extern void TFE_ContextAsyncWait(TFE_Context *ctx, TF_Status *status);
/* Change nothing. */
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetTfrt(TFE_ContextOptions *options, bool use_tfrt);
TF_CAPI_EXPORT extern void TFE_ContextEnableGraphCollection(TFE_Context *ctx);
TF_CAPI_EXPORT extern void TFE_ContextDisableGraphCollection(TFE_Context *ctx);
TF_CAPI_EXPORT extern void TFE_ContextSetLogDevicePlacement(TFE_Context *ctx, unsigned char enable, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_ContextSetRunEagerOpAsFunction(TFE_Context *ctx, unsigned char enable,
                                                              TF_Status *status);
TF_CAPI_EXPORT extern void TFE_ContextSetJitCompileRewrite(TFE_Context *ctx, unsigned char enable, TF_Status *status);
/* The name of the task, which all names of its devices begin with. */
TF_CAPI_EXPORT extern void TFE_HostAddressSpace(TFE_Context *ctx, TF_Buffer *buf);
/* Nothing, as long as nobody has asked that names be kept, which nobody can. */
TF_CAPI_EXPORT extern void TFE_GetExecutedOpNames(TFE_Context *ctx, TF_Buffer *buf, TF_Status *status);
/* A context's devices are those that its ConfigProto says (device_count): TF_UNIMPLEMENTED for another number. */
TF_CAPI_EXPORT extern void TFE_SetLogicalCpuDevices(TFE_Context *ctx, int num_cpus, const char *prefix,
                                                    TF_Status *status);
/* A serialized ServerDef, of which nothing is needed: a context is local. */
TF_CAPI_EXPORT extern void TFE_InitializeLocalOnlyContext(TFE_Context *ctx, int keep_alive_secs, const void *proto,
                                                          size_t proto_len, TF_Status *status);
/* There is none. */
TF_CAPI_EXPORT extern bool TFE_IsCustomDevice(TFE_Context *ctx, const char *device_name);

/* ---- executors: they have nothing to wait for -------------------------------------------------------------------- */

typedef struct TFE_Executor TFE_Executor;

TF_CAPI_EXPORT extern TFE_Executor *TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                                                    int in_flight_nodes_limit);
TF_CAPI_EXPORT extern void TFE_DeleteExecutor(TFE_Executor *executor);
TF_CAPI_EXPORT extern bool TFE_ExecutorIsAsync(TFE_Executor *executor);
TF_CAPI_EXPORT extern void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor *executor, TF_Status *status);
TF_CAPI_EXPORT extern void TFE_ExecutorClearError(TFE_Executor *executor);
TF_CAPI_EXPORT extern void TFE_ContextSetExecutorForThread(TFE_Context *ctx, TFE_Executor *executor);
/* One that is not asynchronous. Yours: TFE_DeleteExecutor(). */
TF_CAPI_EXPORT extern TFE_Executor *TFE_ContextGetExecutorForThread(TFE_Context *ctx);

/* ---- cancellation ------------------------------------------------------------------------------------------------ */

typedef struct TFE_CancellationManager TFE_CancellationManager;
typedef int64_t TFE_CancellationToken;
typedef struct TFE_CancelCallback {
    void (*callback)(void *context);
    void *context;
} TFE_CancelCallback;

/* Yours: TFE_DeleteCancellationManager(), which cancels what has not been. */
TF_CAPI_EXPORT extern TFE_CancellationManager *TFE_NewCancellationManager(void);
TF_CAPI_EXPORT extern void TFE_DeleteCancellationManager(TFE_CancellationManager *manager);
/* Runs all callbacks, in this thread; is "cancelling" as long as they run, and "cancelled" from then on. */
TF_CAPI_EXPORT extern void TFE_CancellationManagerStartCancel(TFE_CancellationManager *manager);
TF_CAPI_EXPORT extern bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager *manager);
TF_CAPI_EXPORT extern bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager *manager);
/* Another one each time. A token has one callback: the last that was registered. */
TF_CAPI_EXPORT extern TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager *manager);
/* False: it has been cancelled, or is about to be, and nothing is registered. */
TF_CAPI_EXPORT extern bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager *manager,
                                                                   TFE_CancellationToken token,
                                                                   const TFE_CancelCallback *c_callback,
                                                                   const char *callback_name);
/* False: the callback has been run. The first waits until all have been, so that no callback may ask for it. */
TF_CAPI_EXPORT extern bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager *manager,
                                                                     TFE_CancellationToken token);
TF_CAPI_EXPORT extern bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager *manager,
                                                                        TFE_CancellationToken token);
/* Calls of functions are TF_CANCELLED when they are executed after it has been; one that is under way goes on to its
 * end. The manager must live until then. */
TF_CAPI_EXPORT extern void TFE_OpSetCancellationManager(TFE_Op *op, TFE_CancellationManager *cancellation_manager,
                                                        TF_Status *status);

/* ---- handles of tensors ------------------------------------------------------------------------------------------ */

/* A tensor as TF_AllocateTensor() makes it, of as many bytes as its elements need. */
TF_CAPI_EXPORT extern TF_Tensor *TFE_AllocateHostTensor(TFE_Context *ctx, TF_DataType dtype, const int64_t *dims,
                                                        int num_dims, TF_Status *status);
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_NewTensorHandleFromTensor(TFE_Context *ctx, TF_Tensor *t,
                                                                      TF_Status *status);
/* "CPU", borrowed, and the 0 of "/device:CPU:0". */
TF_CAPI_EXPORT extern const char *TFE_TensorHandleDeviceType(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern int TFE_TensorHandleDeviceID(TFE_TensorHandle *h, TF_Status *status);
/* It has its value. */
TF_CAPI_EXPORT extern void TFE_TensorHandleGetStatus(TFE_TensorHandle *h, TF_Status *status);
/* Where the tensor lies, in the memory of the host, and how many bytes it has. NULL and 0: it is a resource. */
TF_CAPI_EXPORT extern void *TFE_TensorHandleDevicePointer(TFE_TensorHandle *h, TF_Status *status);
TF_CAPI_EXPORT extern size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle *h, TF_Status *status);

/* A handle of memory that is there, on the CPU; the deallocator is called when nobody needs it, and when there is no
 * handle, too. */
TF_CAPI_EXPORT extern TFE_TensorHandle *TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context *ctx, const char *device_name, TF_DataType dtype, const int64_t *dims, int num_dims, void *data,
    size_t len, void (*deallocator)(void *data, size_t len, void *arg), void *deallocator_arg, TF_Status *status);

/* ---- metrics that a program keeps of itself ---------------------------------------------------------------------- */

/* For each kind, Counter0 with no label to StringGauge4 with four:
 *
 *     TFE_MonitoringNewCounter1(name, status, description, label1), yours: TFE_MonitoringDeleteCounter1()
 *     TFE_MonitoringGetCellCounter1(counter, value_of_label1), the same cell for the same values, borrowed
 *
 * where New takes what the labels are called, and GetCell what they are. */
#define TFE_METRIC_LABELS_0
#define TFE_METRIC_LABELS_1 , const char *label1
#define TFE_METRIC_LABELS_2 TFE_METRIC_LABELS_1, const char *label2
#define TFE_METRIC_LABELS_3 TFE_METRIC_LABELS_2, const char *label3
#define TFE_METRIC_LABELS_4 TFE_METRIC_LABELS_3, const char *label4
#define TFE_METRIC_CELLS(kind, n)                                                                             \
    TF_CAPI_EXPORT extern void TFE_MonitoringDelete##kind##n(TFE_Monitoring##kind##n *metric);                \
    TF_CAPI_EXPORT extern TFE_Monitoring##kind##Cell *TFE_MonitoringGetCell##kind##n(                         \
        TFE_Monitoring##kind##n *metric TFE_METRIC_LABELS_##n);
#define TFE_METRIC(kind, n)                                                                                   \
    typedef struct TFE_Monitoring##kind##n TFE_Monitoring##kind##n;                                           \
    TF_CAPI_EXPORT extern TFE_Monitoring##kind##n *TFE_MonitoringNew##kind##n(                                \
        const char *name, TF_Status *status, const char *description TFE_METRIC_LABELS_##n);                  \
    TFE_METRIC_CELLS(kind, n)
#define TFE_METRIC_SAMPLER(n)                                                                                 \
    typedef struct TFE_MonitoringSampler##n TFE_MonitoringSampler##n;                                         \
    TF_CAPI_EXPORT extern TFE_MonitoringSampler##n *TFE_MonitoringNewSampler##n(                              \
        const char *name, TFE_MonitoringBuckets *buckets, TF_Status *status,                                  \
        const char *description TFE_METRIC_LABELS_##n);                                                       \
    TFE_METRIC_CELLS(Sampler, n)

typedef struct TFE_MonitoringCounterCell TFE_MonitoringCounterCell;
TF_CAPI_EXPORT extern void TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringCounterCell *cell, int64_t value);
TF_CAPI_EXPORT extern int64_t TFE_MonitoringCounterCellValue(TFE_MonitoringCounterCell *cell);
TFE_METRIC(Counter, 0)
TFE_METRIC(Counter, 1)
TFE_METRIC(Counter, 2)

typedef struct TFE_MonitoringIntGaugeCell TFE_MonitoringIntGaugeCell;
TF_CAPI_EXPORT extern void TFE_MonitoringIntGaugeCellSet(TFE_MonitoringIntGaugeCell *cell, int64_t value);
TF_CAPI_EXPORT extern int64_t TFE_MonitoringIntGaugeCellValue(TFE_MonitoringIntGaugeCell *cell);
TFE_METRIC(IntGauge, 0)
TFE_METRIC(IntGauge, 1)
TFE_METRIC(IntGauge, 2)

typedef struct TFE_MonitoringBoolGaugeCell TFE_MonitoringBoolGaugeCell;
TF_CAPI_EXPORT extern void TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringBoolGaugeCell *cell, bool value);
TF_CAPI_EXPORT extern bool TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringBoolGaugeCell *cell);
TFE_METRIC(BoolGauge, 0)
TFE_METRIC(BoolGauge, 1)
TFE_METRIC(BoolGauge, 2)

typedef struct TFE_MonitoringStringGaugeCell TFE_MonitoringStringGaugeCell;
TF_CAPI_EXPORT extern void TFE_MonitoringStringGaugeCellSet(TFE_MonitoringStringGaugeCell *cell, const char *value);
TF_CAPI_EXPORT extern void TFE_MonitoringStringGaugeCellValue(TFE_MonitoringStringGaugeCell *cell, TF_Buffer *buf);
TFE_METRIC(StringGauge, 0)
TFE_METRIC(StringGauge, 1)
TFE_METRIC(StringGauge, 2)
TFE_METRIC(StringGauge, 3)
TFE_METRIC(StringGauge, 4)

/* Samplers count values in buckets, whose limits are scale, scale * growth_factor, ..., bucket_count of them, and one
 * above all; what a cell has is a HistogramProto. */
typedef struct TFE_MonitoringBuckets TFE_MonitoringBuckets;
TF_CAPI_EXPORT extern TFE_MonitoringBuckets *TFE_MonitoringNewExponentialBuckets(double scale, double growth_factor,
                                                                                 int bucket_count);
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteBuckets(TFE_MonitoringBuckets *buckets);
typedef struct TFE_MonitoringSamplerCell TFE_MonitoringSamplerCell;
TF_CAPI_EXPORT extern void TFE_MonitoringSamplerCellAdd(TFE_MonitoringSamplerCell *cell, double value);
TF_CAPI_EXPORT extern void TFE_MonitoringSamplerCellValue(TFE_MonitoringSamplerCell *cell, TF_Buffer *buf);
TFE_METRIC_SAMPLER(0)
TFE_METRIC_SAMPLER(1)
TFE_METRIC_SAMPLER(2)

#ifdef __cplusplus
}
#endif
#endif
