/* kernels.c - which kernels a GPU has, for the GPUs that borrow the CPU's.
 *
 * As in TensorFlow, a GPU computes with floating-point types and lacks most arithmetic on integers; integer tensors
 * that say shapes, axes and indices may still pass through it (Const, Shape, Reshape, Add, ConcatV2...). So the rule
 * is: every type but strings, less what stands here. Ops that no GPU has at all carry TWI_HOST_ONLY in their own row.
 *
 * One departure: TensorFlow lets strings and queue handles pass through Identity and Switch on a GPU; here no string
 * ever lies in a GPU's memory. */
#include "device/virtual/virtual.h"

#include <string.h>

#define SMALL (TWI_TYPE(TW_INT8) | TWI_TYPE(TW_INT16) | TWI_TYPE(TW_UINT8))
#define INT32 TWI_TYPE(TW_INT32)
#define INT64 TWI_TYPE(TW_INT64)
#define BOOL TWI_TYPE(TW_BOOL)
#define HALF TWI_TYPE(TW_FLOAT16)
#define DOUBLE TWI_TYPE(TW_FLOAT64)

/* Names are set between blanks. */
static const struct {
    uint64_t types;
    const char *ops;
} lacking[] = {
    {SMALL | INT32 | INT64,
     " MatMul BatchMatMul BatchMatMulV2 Mean ArgMax ArgMin SegmentSum BiasAdd BiasAddV1 BiasAddGrad Relu ReluGrad Relu6"
     " Relu6Grad LeakyRelu LeakyReluGrad MaxPool MaxPoolGrad MaxPoolGradGrad MaxPoolWithArgmax MirrorPadGrad"
     " ResizeBilinear ResizeNearestNeighbor "},
    {SMALL | INT32 | INT64 | BOOL, " Split MirrorPad DynamicPartition ResourceGather "},
    {SMALL | INT32 | INT64 | HALF,
     " ScatterAdd ScatterSub ScatterUpdate ResourceScatterAdd ResourceScatterSub ResourceScatterUpdate "},
    {SMALL | INT32 | BOOL, " VariableV2 Variable IsVariableInitialized "},
    {SMALL | INT32,
     " VarHandleOp AssignVariableOp AssignAddVariableOp AssignSubVariableOp Assign AssignAdd AssignSub "},
    {SMALL | INT64, " BroadcastTo UnsortedSegmentSum Prod Min "},
    {SMALL | INT64 | BOOL, " SplitV ScatterNd "},
    {SMALL | BOOL, " GatherNd DynamicStitch Unique "},
    {SMALL,
     " ZerosLike OnesLike OneHot StridedSlice StridedSliceGrad Slice ConcatV2 Concat Pack Unpack Tile GatherV2 Gather"
     " Select SelectV2 Add AddV2 AddN Sub FloorDiv Abs Cumsum Cumprod Sum Max "},
    {TWI_TYPE(TW_INT16) | INT64, " Pad PadV2 ReverseV2 "},
    {INT32, " TruncateDiv Pow "},
    {INT32 | BOOL, " PreventGradient "},
    {INT64, " FloorMod Mod "},
    {HALF, " LRN LRNGrad "},
    {DOUBLE, " LogSoftmax SparseSoftmaxCrossEntropyWithLogits "},
};

static bool names(const char *ops, const char *op)
{
    size_t length = strlen(op);
    for (const char *found = strstr(ops, op); found; found = strstr(found + 1, op))
        if (found[-1] == ' ' && found[length] == ' ')
            return true;
    return false;
}

bool twi_gpu_supports(const char *op, tw_dtype type)
{
    if (type == TW_STRING || !*op)
        return false;
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++)
        if ((lacking[i].types & TWI_TYPE(type)) && names(lacking[i].ops, op))
            return false;
    return true;
}
