/* cudnn_graph.c - descriptors and the graphs made of them; see cudnn_graph.h. */
#ifdef TOWER_WITH_CUDNN
#include "device/cuda/cudnn_graph.h"

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static void latch(twi_descriptors *d, const char *call, const char *where, int code)
{
    if (code != 0 && d->status == TW_OK)
        d->status = twi_library_fail(d->error, d->device, call, where, d->cudnn->text(code));
}

cudnnBackendDescriptor_t twi_descriptor(twi_descriptors *d, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t item = NULL;
    if (d->status == TW_OK && d->count >= TWI_MOST_DESCRIPTORS - 1) /* one place is for a configuration */
        d->status = twi_fail(d->error, TW_INTERNAL, "a graph of cuDNN has more than %d parts", TWI_MOST_DESCRIPTORS);
    if (d->status != TW_OK)
        return NULL;
    latch(d, "cudnnBackendCreateDescriptor", TWI_HERE,
          (int)d->cudnn->cudnnBackendCreateDescriptor(type, &item));
    if (d->status != TW_OK)
        return NULL;
    d->items[d->count++] = item;
    return item;
}

void twi_describe(twi_descriptors *d, cudnnBackendDescriptor_t item, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (d->status == TW_OK)
        latch(d, "cudnnBackendSetAttribute", TWI_HERE,
              (int)d->cudnn->cudnnBackendSetAttribute(item, name, type, count, values));
}

void twi_described(twi_descriptors *d, cudnnBackendDescriptor_t item)
{
    if (d->status == TW_OK)
        latch(d, "cudnnBackendFinalize", TWI_HERE, (int)d->cudnn->cudnnBackendFinalize(item));
}

void twi_descriptors_free(twi_descriptors *d)
{
    while (d->count > 0)
        d->cudnn->cudnnBackendDestroyDescriptor(d->items[--d->count]);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static cudnnDataType_t type_of(tw_dtype type)
{
    return type == TW_BFLOAT16 ? CUDNN_DATA_BFLOAT16 : type == TW_FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

/* [outer, height, width, channels] in memory; the library lists channels second. id 0: a value between two operations,
 * which is kept in float and has no memory. */
static cudnnBackendDescriptor_t tensor(twi_descriptors *d, tw_dtype type, int64_t id, int64_t outer,
                                       const int64_t side[2], int64_t channels)
{
    int64_t size[] = {outer, channels, side[0], side[1]};
    int64_t step[] = {side[0] * side[1] * channels, 1, side[1] * channels, channels};
    int64_t alignment = 16, own = id ? id : 100 + d->between++;
    bool is_between = id == 0;
    cudnnDataType_t number = is_between ? CUDNN_DATA_FLOAT : type_of(type);
    cudnnBackendDescriptor_t t = twi_descriptor(d, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    twi_describe(d, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &number);
    twi_describe(d, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size);
    twi_describe(d, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, step);
    twi_describe(d, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &own);
    twi_describe(d, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    twi_describe(d, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_between);
    twi_described(d, t);
    return t;
}

static cudnnBackendDescriptor_t window(twi_descriptors *d, const twi_conv_graph *c)
{
    int64_t sides = 2;
    cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t w = twi_descriptor(d, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    twi_describe(d, w, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    twi_describe(d, w, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    twi_describe(d, w, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &sides);
    twi_describe(d, w, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->before);
    twi_describe(d, w, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->after);
    twi_describe(d, w, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, c->dilation);
    twi_describe(d, w, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride);
    twi_described(d, w);
    return w;
}

/* y = mode(x, b); b NULL: of x alone. */
static cudnnBackendDescriptor_t pointwise(twi_descriptors *d, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                          cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    cudnnDataType_t number = CUDNN_DATA_FLOAT;
    cudnnNanPropagation_t nans = CUDNN_PROPAGATE_NAN; /* else a ReLU may make it 0, and a loss look well */
    cudnnBackendDescriptor_t what = twi_descriptor(d, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    twi_describe(d, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    twi_describe(d, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &number);
    if (mode == CUDNN_POINTWISE_RELU_FWD)
        twi_describe(d, what, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nans);
    twi_described(d, what);
    cudnnBackendDescriptor_t op = twi_descriptor(d, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    twi_describe(d, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &what);
    twi_describe(d, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    if (b)
        twi_describe(d, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
    twi_describe(d, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    twi_described(d, op);
    return op;
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/* What the library calls the parts of each direction. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, image, filter, output, alpha, beta;
} directions[] = {
    [TWI_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [TWI_CONV_BACKWARD_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [TWI_CONV_BACKWARD_FILTER] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

cudnnBackendDescriptor_t twi_conv_graph_make(twi_descriptors *d, const twi_conv_graph *c, cudnnHandle_t handle)
{
    static const int64_t one_pixel[2] = {1, 1};
    cudnnBackendDescriptor_t operations[3];
    int count = 0;
    float one = 1, zero = 0;
    bool more = c->bias || c->relu;
    cudnnBackendDescriptor_t image = tensor(d, c->type, TWI_CONV_IMAGE, c->batch, c->image, c->in_channels);
    cudnnBackendDescriptor_t filter = tensor(d, c->type, TWI_CONV_FILTER, c->out_channels, c->size, c->in_channels);
    cudnnBackendDescriptor_t output =
        tensor(d, c->type, more ? 0 : TWI_CONV_OUTPUT, c->batch, c->output, c->out_channels);
    cudnnBackendDescriptor_t places = window(d, c);
    cudnnBackendDescriptor_t op = twi_descriptor(d, directions[c->direction].type);
    twi_describe(d, op, directions[c->direction].window, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &places);
    twi_describe(d, op, directions[c->direction].image, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &image);
    twi_describe(d, op, directions[c->direction].filter, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &filter);
    twi_describe(d, op, directions[c->direction].output, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &output);
    twi_describe(d, op, directions[c->direction].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    twi_describe(d, op, directions[c->direction].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    twi_described(d, op);
    operations[count++] = op;
    if (c->bias) {
        cudnnBackendDescriptor_t bias = tensor(d, c->type, TWI_CONV_BIAS, 1, one_pixel, c->out_channels);
        cudnnBackendDescriptor_t sum =
            tensor(d, c->type, c->relu ? 0 : TWI_CONV_OUTPUT, c->batch, c->output, c->out_channels);
        operations[count++] = pointwise(d, CUDNN_POINTWISE_ADD, output, bias, sum);
        output = sum;
    }
    if (c->relu) {
        cudnnBackendDescriptor_t cut = tensor(d, c->type, TWI_CONV_OUTPUT, c->batch, c->output, c->out_channels);
        operations[count++] = pointwise(d, CUDNN_POINTWISE_RELU_FWD, output, NULL, cut);
    }
    cudnnBackendDescriptor_t graph = twi_descriptor(d, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    twi_describe(d, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
    if (handle)
        twi_describe(d, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    twi_described(d, graph);
    return d->status == TW_OK ? graph : NULL;
}
#else
typedef int nothing_here; /* a C file must not be empty */
#endif
