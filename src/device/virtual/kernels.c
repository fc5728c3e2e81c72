/* kernels.c - which kernels a GPU has, for the GPUs that borrow the CPU's.
 *
 * As in TensorFlow, a GPU computes with floating-point types and lacks most arithmetic on integers; integer tensors
 * that say shapes, axes and indices may still pass through it (Const, Shape, Reshape, Add, ConcatV2...). So the rule
 * is: every type but strings, less what stands here. Ops that no GPU has at all carry TWI_HOST_ONLY in their own row.
 *
 * Two departures: complex, quantized and the larger unsigned types have no kernel on a GPU here, and what is of them
 * stays on the host, while TensorFlow's GPUs know some of them; and TensorFlow lets strings and queue handles pass
 * through Identity and Switch on a GPU; here no string ever lies in a GPU's memory. */
#include "device/virtual/virtual.h"

#include <string.h>

#define UINT8 TWI_TYPE(TW_UINT8)
#define INT8 TWI_TYPE(TW_INT8)
#define INT16 TWI_TYPE(TW_INT16)
#define INT32 TWI_TYPE(TW_INT32)
#define INT64 TWI_TYPE(TW_INT64)
#define BOOL TWI_TYPE(TW_BOOL)
#define HALF TWI_TYPE(TW_FLOAT16)
#define FLOAT TWI_TYPE(TW_FLOAT32)
#define DOUBLE TWI_TYPE(TW_FLOAT64)
#define SMALL (UINT8 | INT8 | INT16)
#define LARGE_UNSIGNED (TWI_TYPE(TW_UINT16) | TWI_TYPE(TW_UINT32) | TWI_TYPE(TW_UINT64))
#define HOST (TWI_COMPLEX_TYPES | TWI_QUANTIZED_TYPES | LARGE_UNSIGNED)
#define INTS (SMALL | INT32 | INT64)

/* Names are set between blanks. */
static const struct {
    uint64_t types;
    const char *ops;
} lacking[] = {
    /* arithmetic */
    {INTS, " MatMul BatchMatMul BatchMatMulV2 Mean ArgMax ArgMin SegmentSum "},
    {SMALL | INT64, " Prod Min UnsortedSegmentSum "},
    {SMALL, " AddN Sub Sum Max Cumsum Cumprod "},
    {INT8 | INT16, " Add AddV2 Abs "},
    {INT8, " FloorDiv "},
    {INT32, " TruncateDiv Pow "},
    {FLOAT | DOUBLE | INT64, " FloorMod Mod TruncateMod "},
    /* networks */
    {INTS, " BiasAdd BiasAddV1 BiasAddGrad Relu ReluGrad Relu6 Relu6Grad LeakyRelu LeakyReluGrad"
           " MaxPool MaxPoolGrad MaxPoolGradGrad MaxPoolWithArgmax ResizeNearestNeighbor "},
    {INTS | HALF, " ResizeBilinear "},
    {HALF, " LRN LRNGrad ResizeBilinearGrad "},
    {DOUBLE, " LogSoftmax SparseSoftmaxCrossEntropyWithLogits "},
    /* moving */
    {INTS | BOOL, " Split MirrorPad DynamicPartition "},
    {INTS, " MirrorPadGrad "},
    {SMALL | INT64 | BOOL, " SplitV ScatterNd "},
    {SMALL | INT64, " BroadcastTo "},
    {SMALL | BOOL, " GatherNd DynamicStitch "},
    {SMALL, " ZerosLike OnesLike OneHot GatherV2 Gather Select SelectV2 "},
    {SMALL | BOOL | HALF | FLOAT | DOUBLE, " Unique "},
    {HALF | INT16, " Where "},
    {UINT8 | INT16, " StridedSlice StridedSliceGrad Slice "},
    {UINT8 | INT8, " Pack Tile "},
    {INT8 | INT16, " ConcatV2 Concat Unpack "},
    {INT16 | INT64, " Pad PadV2 ReverseV2 "},
    {INT32 | BOOL, " PreventGradient "},
    /* variables */
    {SMALL | INT32,
     " VarHandleOp AssignVariableOp AssignAddVariableOp AssignSubVariableOp Assign AssignAdd AssignSub "},
    {SMALL | INT32 | BOOL, " VariableV2 Variable IsVariableInitialized "},
    {INTS | BOOL, " ResourceGather ResourceGatherNd "},
    {INTS | HALF, " ScatterAdd ScatterSub ResourceScatterAdd ResourceScatterSub ResourceScatterUpdate "},
    {INTS | HALF | BOOL, " ScatterUpdate "},
};

static bool names(const char *ops, const char *op)
{
    size_t length = strlen(op);
    for (const char *found = strstr(ops, op); found; found = strstr(found + 1, op))
        if (found[-1] == ' ' && found[length] == ' ')
            return true;
    return false;
}

uint64_t twi_gpu_lacks(const char *op)
{
    uint64_t types = *op ? TWI_TYPE(TW_STRING) | TWI_TYPE(TW_VARIANT) | HOST : UINT64_MAX;
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++)
        if (names(lacking[i].ops, op))
            types |= lacking[i].types;
    return types;
}
