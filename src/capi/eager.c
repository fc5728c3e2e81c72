/* eager.c - contexts and handles of tensors, as far as they go without executing operations: bindings are linked with
 * them, and hand tensors from one part of a program to another. */
#include "capi.h"

#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/eager/c_api.h>

#define FIRST_CPU "/job:localhost/replica:0/task:0/device:CPU:0"

struct TFE_ContextOptions {
    TF_SessionOptions *session;
};

struct TFE_Context {
    tw_devices *devices;
};

struct TFE_TensorHandle {
    TF_Tensor *tensor;
};

/* ---- contexts --------------------------------------------------------------------------------------------------- */

TFE_ContextOptions *TFE_NewContextOptions(void)
{
    TFE_ContextOptions *options = calloc(1, sizeof *options);
    if (options && !(options->session = TF_NewSessionOptions())) {
        free(options);
        return NULL;
    }
    return options;
}

void TFE_ContextOptionsSetConfig(TFE_ContextOptions *options, const void *proto, size_t proto_len, TF_Status *status)
{
    TF_SetConfig(options->session, proto, proto_len, status);
}

void TFE_ContextOptionsSetAsync(TFE_ContextOptions *options, unsigned char enable)
{
    (void)options;
    (void)enable;
}

void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions *options, TFE_ContextDevicePlacementPolicy policy)
{
    (void)options;
    (void)policy;
}

void TFE_DeleteContextOptions(TFE_ContextOptions *options)
{
    if (options)
        TF_DeleteSessionOptions(options->session);
    free(options);
}

TFE_Context *TFE_NewContext(const TFE_ContextOptions *opts, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    TFE_Context *context = calloc(1, sizeof *context);
    if (!context) {
        set_no_memory(status);
        return NULL;
    }
    tw_devices_create(opts ? device_options_of(opts->session) : NULL, &context->devices, &error);
    set_error(status, &error);
    if (is_ok(status))
        return context;
    free(context);
    return NULL;
}

void TFE_DeleteContext(TFE_Context *ctx)
{
    if (ctx)
        tw_devices_destroy(ctx->devices);
    free(ctx);
}

TF_DeviceList *TFE_ContextListDevices(TFE_Context *ctx, TF_Status *status)
{
    return list_devices(ctx->devices, status);
}

/* ---- handles of tensors ----------------------------------------------------------------------------------------- */

static TF_Tensor *share(const TF_Tensor *tensor, TF_Status *status)
{
    TF_Tensor *shared = make_tensor(tensor->type, tensor->dims, tensor->num_dims, tensor->memory);
    if (shared)
        TF_SetStatus(status, TF_OK, "");
    else
        set_no_memory(status);
    return shared;
}

TFE_TensorHandle *TFE_NewTensorHandle(const TF_Tensor *t, TF_Status *status)
{
    TFE_TensorHandle *handle = calloc(1, sizeof *handle);
    if (handle && (handle->tensor = share(t, status)))
        return handle;
    set_no_memory(status);
    free(handle);
    return NULL;
}

void TFE_DeleteTensorHandle(TFE_TensorHandle *h)
{
    if (h)
        TF_DeleteTensor(h->tensor);
    free(h);
}

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle *h)
{
    return h->tensor->type;
}

int TFE_TensorHandleNumDims(TFE_TensorHandle *h, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    return h->tensor->num_dims;
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle *h, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    return TF_TensorElementCount(h->tensor);
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle *h, int dim_index, TF_Status *status)
{
    if (dim_index < 0 || dim_index >= h->tensor->num_dims) {
        set_status(status, TF_INVALID_ARGUMENT, "the tensor has %d dimensions, and no number %d", h->tensor->num_dims,
                   dim_index);
        return -1;
    }
    TF_SetStatus(status, TF_OK, "");
    return h->tensor->dims[dim_index];
}

const char *TFE_TensorHandleDeviceName(TFE_TensorHandle *h, TF_Status *status)
{
    (void)h;
    TF_SetStatus(status, TF_OK, "");
    return FIRST_CPU;
}

const char *TFE_TensorHandleBackingDeviceName(TFE_TensorHandle *h, TF_Status *status)
{
    return TFE_TensorHandleDeviceName(h, status);
}

TF_Tensor *TFE_TensorHandleResolve(TFE_TensorHandle *h, TF_Status *status)
{
    return share(h->tensor, status);
}

TFE_TensorHandle *TFE_TensorHandleCopySharingTensor(TFE_TensorHandle *h, TF_Status *status)
{
    return TFE_NewTensorHandle(h->tensor, status);
}

TFE_TensorHandle *TFE_TensorHandleCopyToDevice(TFE_TensorHandle *h, TFE_Context *ctx, const char *device_name,
                                               TF_Status *status)
{
    int device = tw_devices_find(ctx->devices, device_name);
    if (device < 0)
        set_status(status, TF_INVALID_ARGUMENT, "%s unknown device.", device_name);
    else if (strcmp(tw_devices_info(ctx->devices, device).name, FIRST_CPU) != 0)
        set_status(status, TF_UNIMPLEMENTED, "tensors of handles lie on %s, and cannot be copied to %s", FIRST_CPU,
                   tw_devices_info(ctx->devices, device).name);
    else
        return TFE_NewTensorHandle(h->tensor, status);
    return NULL;
}
