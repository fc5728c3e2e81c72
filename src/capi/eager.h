/* eager.h - what contexts and handles (eager.c) and operations that are executed (execute.c) share. */
#ifndef CAPI_EAGER_H
#define CAPI_EAGER_H

#include <tensorflow/c/eager/c_api.h>

#include "capi.h"

struct TFE_Context {
    TF_Graph *graph; /* of all operations that it has executed */
    TF_Session *session;
    bool soft_placement;
    pthread_key_t policy;  /* of a thread: one above its TFE_ContextDevicePlacementPolicy */
    TFE_ContextDevicePlacementPolicy first_policy;
    pthread_mutex_t lock;  /* of the next two */
    struct built_op *known[256]; /* by their keys */
    int num_built;
};

struct TFE_TensorHandle {
    int references;
    TF_Tensor *tensor; /* NULL: a resource, */
    TF_Output node;    /* which is what this node of the context makes; of no operation where there is a tensor */
    char *device;      /* in full */
};

/* Takes the tensor over; without one, and without a node that makes a resource, memory has run out. NULL: it did here.
 * device NULL: the first CPU. */
TFE_TensorHandle *new_handle(TF_Tensor *tensor, TF_Output node, const char *device, TF_Status *status);
static inline TFE_TensorHandle *retain_handle(TFE_TensorHandle *handle)
{
    __atomic_add_fetch(&handle->references, 1, __ATOMIC_RELAXED);
    return handle;
}
/* The handle itself, or that of the resource which its tensor names (TFE_TensorHandleResolve() has made it of another).
 * Yours. NULL: there is none, or no memory. */
TFE_TensorHandle *handle_in(TFE_Context *context, TFE_TensorHandle *handle, TF_Status *status);
/* What calls functions is built anew from now on: one of them is about to go. */
void forget_calls(TFE_Context *context);
void free_built(TFE_Context *context);
const TF_OperationDescription *description_of(const TFE_Op *op); /* its attributes and device */

#endif
