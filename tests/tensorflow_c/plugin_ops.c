/* plugin_ops.c - a library that registers an op when it is loaded, and another when it is asked for its kernels. */
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

static void scalar_shape(TF_ShapeInferenceContext *ctx, TF_Status *status)
{
    TF_ShapeHandle *scalar = TF_ShapeInferenceContextScalar(ctx);
    TF_ShapeInferenceContextSetOutput(ctx, 0, scalar, status);
    TF_DeleteShapeHandle(scalar);
}

static void compute_answer(void *kernel, TF_OpKernelContext *ctx)
{
    TF_Status *status = TF_NewStatus();
    TF_Tensor *y = TF_AllocateOutput(ctx, 0, TF_FLOAT, NULL, 0, sizeof(float), status);
    (void)kernel;
    *(float *)TF_TensorData(y) = 42;
    TF_DeleteTensor(y);
    TF_DeleteStatus(status);
}

static void add_op(const char *name)
{
    TF_Status *status = TF_NewStatus();
    TF_OpDefinitionBuilder *b = TF_NewOpDefinitionBuilder(name);
    TF_OpDefinitionBuilderAddOutput(b, "answer: float");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(b, scalar_shape);
    TF_RegisterOpDefinition(b, status);
    TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", NULL, compute_answer, NULL), status);
    TF_DeleteStatus(status);
}

__attribute__((constructor)) static void begin(void)
{
    add_op("PluginAnswer");
}

void TF_InitKernel(void)
{
    add_op("PluginSecond");
}
