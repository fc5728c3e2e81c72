/* conv.c - Conv2D and its gradients by cuDNN's legacy calls.
 * Lives here:  every legacy call of cuDNN, since they may go with its next version; operation graphs would replace this.
 *
 * Images are NHWC on both sides. Filters are [kh,kw,C,K] here and [K,kh,kw,C] there, so they are turned on the way, into
 * or out of the workspace. cuDNN pads both ends of a side alike; where ours differ, the image is padded by a copy first.
 * Only algorithms that give the same bits in every run are taken, and float products are of floats, not TF32. */
#ifdef TOWER_WITH_CUDNN
#include "base/memory.h"
#include "device/cuda/launch.h"
#include "device/cuda/libraries.h"
#include "tensor/window.h"

#include <string.h>

#define WORKSPACE_LIMIT ((size_t)256 << 20)
#define ALIGNMENT ((size_t)256)
#define MOST_ALGORITHMS 12

enum { FORWARD, BACKWARD_DATA, BACKWARD_FILTER };

typedef struct convolution {
    int direction;
    twi_convolution laid;
    tw_dtype type;
    const twi_cudnn *library;
    cudnnHandle_t handle;
    twi_cuda_device *device;
    cudnnTensorDescriptor_t image, output;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t convolution;
    int algorithm;                   /* of the direction's own enumeration */
    bool padded;                     /* the image is copied into a larger one, [N, sides, C] */
    int64_t sides[2];
    size_t filter_bytes, padded_bytes, workspace; /* parts of the run's workspace, in this order */
} convolution;

static void release(void *state)
{
    convolution *c = state;
    if (!c)
        return;
    if (c->image)
        c->library->cudnnDestroyTensorDescriptor(c->image);
    if (c->output)
        c->library->cudnnDestroyTensorDescriptor(c->output);
    if (c->filter)
        c->library->cudnnDestroyFilterDescriptor(c->filter);
    if (c->convolution)
        c->library->cudnnDestroyConvolutionDescriptor(c->convolution);
    twi_free(c);
}

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- preparing ----------------------------------------------------------------------------------------------------- */

static tw_status describe(twi_prepare *p, convolution *c)
{
    tw_status status = TW_OK;
    const twi_window *w = &c->laid.window;
    cudnnDataType_t type = c->type == TW_BFLOAT16  ? CUDNN_DATA_BFLOAT16
                           : c->type == TW_FLOAT16 ? CUDNN_DATA_HALF
                                                   : CUDNN_DATA_FLOAT;
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnCreateTensorDescriptor, &c->image);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnCreateTensorDescriptor, &c->output);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnCreateFilterDescriptor, &c->filter);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnCreateConvolutionDescriptor, &c->convolution);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnSetTensor4dDescriptor, c->image, CUDNN_TENSOR_NHWC, type,
                     (int)c->laid.batch, (int)c->laid.in_channels, (int)c->sides[0], (int)c->sides[1]);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnSetTensor4dDescriptor, c->output, CUDNN_TENSOR_NHWC, type,
                     (int)c->laid.batch, (int)c->laid.out_channels, (int)w->output[0], (int)w->output[1]);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnSetFilter4dDescriptor, c->filter, type, CUDNN_TENSOR_NHWC,
                     (int)c->laid.out_channels, (int)c->laid.in_channels, (int)w->size[0], (int)w->size[1]);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnSetConvolution2dDescriptor, c->convolution,
                     c->padded ? 0 : (int)w->before[0], c->padded ? 0 : (int)w->before[1], (int)w->stride[0],
                     (int)w->stride[1], (int)w->dilation[0], (int)w->dilation[1], CUDNN_CROSS_CORRELATION,
                     CUDNN_DATA_FLOAT);
    TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnSetConvolutionMathType, c->convolution,
                     c->type == TW_FLOAT32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH);
done:
    return status;
}

/* The first of the library's list, fastest first, that may be taken. */
#define CHOOSE(results, count)                                                                                         \
    for (int i = 0; i < (count); i++)                                                                                  \
        if ((results)[i].status == CUDNN_STATUS_SUCCESS && (results)[i].determinism == CUDNN_DETERMINISTIC &&          \
            (results)[i].memory <= WORKSPACE_LIMIT) {                                                                  \
            c->algorithm = (int)(results)[i].algo;                                                                     \
            c->workspace = (results)[i].memory;                                                                        \
            return TW_OK;                                                                                              \
        }

static tw_status choose_algorithm(twi_prepare *p, convolution *c)
{
    tw_status status = TW_OK;
    int count = 0;
    if (c->direction == FORWARD) {
        cudnnConvolutionFwdAlgoPerf_t results[MOST_ALGORITHMS];
        TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnGetConvolutionForwardAlgorithm_v7, c->handle, c->image,
                         c->filter, c->convolution, c->output, MOST_ALGORITHMS, &count, results);
        CHOOSE(results, count)
    } else if (c->direction == BACKWARD_DATA) {
        cudnnConvolutionBwdDataAlgoPerf_t results[MOST_ALGORITHMS];
        TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnGetConvolutionBackwardDataAlgorithm_v7, c->handle,
                         c->filter, c->output, c->convolution, c->image, MOST_ALGORITHMS, &count, results);
        CHOOSE(results, count)
    } else {
        cudnnConvolutionBwdFilterAlgoPerf_t results[MOST_ALGORITHMS];
        TWI_LIBRARY_CALL(p->device, p->error, c->library, cudnnGetConvolutionBackwardFilterAlgorithm_v7, c->handle,
                         c->image, c->output, c->convolution, c->filter, MOST_ALGORITHMS, &count, results);
        CHOOSE(results, count)
    }
    status = twi_fail(p->error, TW_UNIMPLEMENTED, "cuDNN has no algorithm of fixed order for this convolution");
done:
    return status;
}

static tw_status prepare(twi_prepare *p, int direction, const twi_operand *image, const twi_operand *filter,
                         const twi_operand *output)
{
    tw_status status;
    if (strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s supports NHWC only", p->op);
    convolution *c = twi_alloc(sizeof *c);
    if (!c)
        return twi_fail_memory(p->error, p->node);
    c->direction = direction;
    c->type = image->dtype;
    c->device = (twi_cuda_device *)p->device;
    TWI_TRY(twi_convolution_lay(p->attrs, false, image->shape, filter->shape, output->shape, &c->laid, p->error));
    const twi_window *w = &c->laid.window;
    for (int i = 0; i < 2; i++) {
        c->padded = c->padded || w->before[i] != w->after[i];
        c->sides[i] = w->image[i];
    }
    for (int i = 0; i < 2 && c->padded; i++)
        c->sides[i] += w->before[i] + w->after[i];
    c->filter_bytes = round_up((size_t)filter->elements * tw_dtype_size(c->type));
    if (c->padded)
        c->padded_bytes = round_up((size_t)(c->laid.batch * c->sides[0] * c->sides[1] * c->laid.in_channels) *
                                   tw_dtype_size(c->type));
    p->state = c;
    if (image->elements == 0 || filter->elements == 0 || output->elements == 0)
        return TW_OK; /* zeros */
    TWI_TRY(twi_cudnn_open(p->device, &c->library, &c->handle, p->error));
    pthread_mutex_lock(&c->device->cudnn_lock);
    status = describe(p, c);
    if (status == TW_OK)
        status = choose_algorithm(p, c);
    pthread_mutex_unlock(&c->device->cudnn_lock);
    p->workspace = ALIGNMENT + c->filter_bytes + c->padded_bytes + c->workspace;
done:
    if (status != TW_OK) {
        release(c);
        p->state = NULL;
    }
    return status;
}

static tw_status prepare_forward(twi_prepare *p)
{
    return prepare(p, FORWARD, &p->inputs[0], &p->inputs[1], &p->outputs[0]);
}

static tw_status prepare_backprop_input(twi_prepare *p)
{
    return prepare(p, BACKWARD_DATA, &p->outputs[0], &p->inputs[1], &p->inputs[2]);
}

static tw_status prepare_backprop_filter(twi_prepare *p)
{
    return prepare(p, BACKWARD_FILTER, &p->inputs[0], &p->outputs[0], &p->inputs[2]);
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

typedef struct rooms {
    char *filter, *image, *workspace;
} rooms;

static rooms rooms_of(const twi_run *r, const convolution *c)
{
    char *start = (char *)round_up((size_t)r->workspace);
    return (rooms){start, start + c->filter_bytes, start + c->filter_bytes + c->padded_bytes};
}

/* [kh,kw,C,K] to [K,kh,kw,C], or back. */
static cudaError_t turn_filter(const twi_run *r, const convolution *c, bool back, const void *from, void *to)
{
    int64_t cells = c->laid.window.size[0] * c->laid.window.size[1], in = c->laid.in_channels,
            out = c->laid.out_channels;
    twi_cuda_move move = {.rank = 2, .size = {cells * in, out}, .from = {out, 1}, .to = {1, cells * in}};
    if (back)
        move = (twi_cuda_move){.rank = 2, .size = {cells * in, out}, .from = {1, cells * in}, .to = {out, 1}};
    return twi_cuda_move_run(r->stream, (int)tw_dtype_size(c->type), &move, from, to);
}

/* The image into the middle of the padded one, whose rest is zero; or out of it. */
static cudaError_t pad_image(const twi_run *r, const convolution *c, bool back, const void *from, void *to)
{
    const twi_window *w = &c->laid.window;
    int64_t channels = c->laid.in_channels, size = (int64_t)tw_dtype_size(c->type);
    int64_t small[3] = {w->image[0] * w->image[1] * channels, w->image[1] * channels, 1};
    int64_t large[3] = {c->sides[0] * c->sides[1] * channels, c->sides[1] * channels, 1};
    int64_t offset = (w->before[0] * large[1] + w->before[1] * channels) * size;
    twi_cuda_move move = {.rank = 3, .size = {c->laid.batch, w->image[0], w->image[1] * channels}};
    memcpy(move.from, back ? large : small, sizeof small);
    memcpy(move.to, back ? small : large, sizeof small);
    if (back)
        return twi_cuda_move_run(r->stream, (int)size, &move, (const char *)from + offset, to);
    cudaError_t code = cudaMemsetAsync(to, 0, c->padded_bytes, r->stream);
    return code == cudaSuccess ? twi_cuda_move_run(r->stream, (int)size, &move, from, (char *)to + offset) : code;
}

static tw_status run_forward(const twi_run *r)
{
    convolution *c = r->state;
    tw_status status = TW_OK;
    float one = 1, zero = 0;
    if (!c->library)
        return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
    rooms room = rooms_of(r, c);
    const void *image = r->inputs[0];
    TWI_CALL(NULL, r->error, turn_filter(r, c, false, r->inputs[1], room.filter));
    if (c->padded) {
        TWI_CALL(NULL, r->error, pad_image(r, c, false, image, room.image));
        image = room.image;
    }
    pthread_mutex_lock(&c->device->cudnn_lock);
    int code = (int)c->library->cudnnConvolutionForward(
        c->handle, &one, c->image, image, c->filter, room.filter, c->convolution,
        (cudnnConvolutionFwdAlgo_t)c->algorithm, room.workspace, c->workspace, &zero, c->output, r->outputs[0]);
    pthread_mutex_unlock(&c->device->cudnn_lock);
    if (code)
        status = twi_library_fail(r->error, NULL, "cudnnConvolutionForward", c->library->text(code));
done:
    return status;
}

static tw_status run_backprop_input(const twi_run *r)
{
    convolution *c = r->state;
    tw_status status = TW_OK;
    float one = 1, zero = 0;
    if (!c->library)
        return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
    rooms room = rooms_of(r, c);
    void *image = c->padded ? room.image : r->outputs[0];
    TWI_CALL(NULL, r->error, turn_filter(r, c, false, r->inputs[1], room.filter));
    pthread_mutex_lock(&c->device->cudnn_lock);
    int code = (int)c->library->cudnnConvolutionBackwardData(
        c->handle, &one, c->filter, room.filter, c->output, r->inputs[2], c->convolution,
        (cudnnConvolutionBwdDataAlgo_t)c->algorithm, room.workspace, c->workspace, &zero, c->image, image);
    pthread_mutex_unlock(&c->device->cudnn_lock);
    if (code)
        TWI_TRY(twi_library_fail(r->error, NULL, "cudnnConvolutionBackwardData", c->library->text(code)));
    if (c->padded)
        TWI_CALL(NULL, r->error, pad_image(r, c, true, image, r->outputs[0]));
done:
    return status;
}

static tw_status run_backprop_filter(const twi_run *r)
{
    convolution *c = r->state;
    tw_status status = TW_OK;
    float one = 1, zero = 0;
    if (!c->library)
        return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
    rooms room = rooms_of(r, c);
    const void *image = r->inputs[0];
    if (c->padded) {
        TWI_CALL(NULL, r->error, pad_image(r, c, false, image, room.image));
        image = room.image;
    }
    pthread_mutex_lock(&c->device->cudnn_lock);
    int code = (int)c->library->cudnnConvolutionBackwardFilter(
        c->handle, &one, c->image, image, c->output, r->inputs[2], c->convolution,
        (cudnnConvolutionBwdFilterAlgo_t)c->algorithm, room.workspace, c->workspace, &zero, c->filter, room.filter);
    pthread_mutex_unlock(&c->device->cudnn_lock);
    if (code)
        TWI_TRY(twi_library_fail(r->error, NULL, "cudnnConvolutionBackwardFilter", c->library->text(code)));
    TWI_CALL(NULL, r->error, turn_filter(r, c, true, room.filter, r->outputs[0]));
done:
    return status;
}

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

const twi_kernel twi_cuda_conv_kernels[] = {
    {"Conv2D", "cudnn", FLOATS, prepare_forward, run_forward, release},
    {"Conv2DBackpropInput", "cudnn", FLOATS, prepare_backprop_input, run_backprop_input, release},
    {"Conv2DBackpropFilter", "cudnn", FLOATS, prepare_backprop_filter, run_backprop_filter, release},
    {0},
};
#else
#include "device/cuda/cuda.h"

const twi_kernel twi_cuda_conv_kernels[] = {{0}};
#endif
