/* own_op.h - ops and kernels of the program's own: what their files share. */
#ifndef CAPI_OWN_OP_H
#define CAPI_OWN_OP_H

#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

#include "capi.h"

typedef void shape_function(TF_ShapeInferenceContext *ctx, TF_Status *status);

/* -- op_shapes.c -- */
/* What calls a shape function; nothing is known where there is none (NULL). */
tw_status infer_own_shapes(shape_function *function, const tw_op_node *node, tw_shape *outputs, tw_error *error);

/* -- kernels.c -- */
tw_status register_own_op(const tw_op_info *op, shape_function *shape, tw_error *error);
bool is_own_op(const char *name);
int num_own_ops(void);
void write_own_ops(wire *list, int first, int end); /* of an OpList: those from number `first` to before `end` */
void get_own_type(const tw_op_node *node, const char *attr_name, TF_DataType *val, TF_Status *status);
void write_own_kernels(wire *list, const char *op); /* of a KernelList; those of any op (NULL) */

/* A kernel as it was registered, for ever. */
typedef struct own_kernel {
    char *op, *device, *name;
    char *label;
    int priority;
    char **host_arguments;
    int num_host_arguments;
    struct constraint {
        char *attr;
        uint64_t types; /* bits 1 << type */
    } * constraints;
    int num_constraints;
    void *(*create)(TF_OpKernelConstruction *);
    void (*compute)(void *, TF_OpKernelContext *);
    void (*compute_async)(void *, TF_OpKernelContext *, TF_AsyncOpKernelDoneCallback *);
    void (*destroy)(void *);
    struct own_kernel *next;
} own_kernel;

/* One that has been made for a node. */
typedef struct made_kernel {
    const own_kernel *kernel;
    void *made;
    char *device;
    int num_arguments[2]; /* of inputs and of outputs: */
    struct argument {
        char *name;
        int start, stop;
    } * arguments[2];
} made_kernel;

/* -- kernel_context.c -- */
tw_status compute_own(void *made, tw_op_run *run, tw_error *error);

/* -- tensor.c -- */
/* A tensor of values that are another's for now. When they are taken back, whoever still has it gets a copy of them. */
TF_Tensor *lend_tensor(TF_DataType type, const int64_t *dims, int num_dims, void *data, size_t bytes);
void take_back_tensor(TF_Tensor *tensor); /* which goes; NULL is fine */

#endif
