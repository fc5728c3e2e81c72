/* softmax.cu - softmax, the cross entropy of labels, and whether these are among the first choices. A warp takes a row;
 * its lanes meet in a tree of fixed order. */
#include "device/cuda/typed.cuh"

static const int LANES = 32, ROWS_OF_BLOCK = 8;

/* The maximum of a row, and the sum of exp(x - maximum), in every lane. */
template <typename T> static __device__ float sum_exponentials(const T *x, int64_t classes, float *sum)
{
    float maximum = -INFINITY, total = 0;
    for (int64_t c = threadIdx.x; c < classes; c += LANES)
        maximum = fmaxf(maximum, to_float(x[c]));
    for (int step = LANES / 2; step > 0; step /= 2)
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, step));
    for (int64_t c = threadIdx.x; c < classes; c += LANES)
        total += expf(to_float(x[c]) - maximum);
    for (int step = LANES / 2; step > 0; step /= 2)
        total += __shfl_xor_sync(0xffffffffu, total, step);
    *sum = total;
    return maximum;
}

template <typename T>
static __global__ void softmax_kernel(bool logarithm, int64_t rows, int64_t classes, const T *logits, T *y)
{
    int64_t row = blockIdx.x * (int64_t)ROWS_OF_BLOCK + threadIdx.y;
    if (row >= rows)
        return;
    const T *x = logits + row * classes;
    float sum, maximum = sum_exponentials(x, classes, &sum);
    for (int64_t c = threadIdx.x; c < classes; c += LANES) {
        float shifted = to_float(x[c]) - maximum;
        put(y + row * classes + c, logarithm ? shifted - logf(sum) : expf(shifted) / sum);
    }
}

template <typename T>
static __global__ void sparse_kernel(int64_t rows, int64_t classes, const T *logits, bool wide, const void *labels,
                                     T *loss, T *backprop)
{
    int64_t row = blockIdx.x * (int64_t)ROWS_OF_BLOCK + threadIdx.y;
    if (row >= rows)
        return;
    const T *x = logits + row * classes;
    int64_t label = integer_at(wide, labels, row);
    bool known = label >= 0 && label < classes;
    float sum, maximum = sum_exponentials(x, classes, &sum);
    for (int64_t c = threadIdx.x; c < classes; c += LANES)
        put(backprop + row * classes + c, known ? expf(to_float(x[c]) - maximum) / sum - (c == label) : NAN);
    if (threadIdx.x == 0)
        put(loss + row, known ? logf(sum) - (to_float(x[label]) - maximum) : NAN);
}

template <typename T>
static __global__ void dense_kernel(int64_t rows, int64_t classes, const T *logits, const T *labels, T *loss,
                                    T *backprop)
{
    int64_t row = blockIdx.x * (int64_t)ROWS_OF_BLOCK + threadIdx.y;
    if (row >= rows)
        return;
    const T *x = logits + row * classes, *label = labels + row * classes;
    float sum, maximum = sum_exponentials(x, classes, &sum), all = 0;
    for (int64_t c = threadIdx.x; c < classes; c += LANES) {
        float shifted = to_float(x[c]) - maximum, part = to_float(label[c]);
        all += part * (logf(sum) - shifted);
        put(backprop + row * classes + c, expf(shifted) / sum - part);
    }
    for (int step = LANES / 2; step > 0; step /= 2)
        all += __shfl_xor_sync(0xffffffffu, all, step);
    if (threadIdx.x == 0)
        put(loss + row, all);
}

/* ---- the mean of all losses and the gradient --------------------------------------------------------------------- */

static const int LOSS_THREADS = 1024;
static_assert(LOSS_THREADS == LANES * LANES, "a warp has a lane for each warp");

/* The best of the `lanes` neighbours, a power of two, that share a row; and the sum of theirs. */
static __device__ float largest_of(int lanes, float x)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

static __device__ float sum_of(int lanes, float x)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* One block, so that the mean needs no other launch. A row has more lanes where there are few rows or many classes; all
 * threads go through all turns, whose lanes meet. */
template <typename T, typename U>
static __global__ void __launch_bounds__(1024)
    loss_kernel(int64_t rows, int64_t classes, int lanes, const T *logits, bool wide, const void *labels,
                const float *scale, float divisor, float *loss, U *backprop)
{
    __shared__ float losses[LOSS_THREADS / LANES];
    int at_once = LOSS_THREADS / lanes, lane = (int)threadIdx.x % lanes;
    float factor = *scale / divisor, all = 0;
    for (int64_t first = 0; first < rows; first += at_once) {
        int64_t row = first + threadIdx.x / lanes, end = row < rows ? classes : 0;
        const T *x = logits + row * classes;
        int64_t label = row < rows ? integer_at(wide, labels, row) : 0;
        bool known = label >= 0 && label < classes;
        float maximum = -INFINITY, sum = 0;
        for (int64_t c = lane; c < end; c += lanes)
            maximum = fmaxf(maximum, to_float(x[c]));
        maximum = largest_of(lanes, maximum);
        for (int64_t c = lane; c < end; c += lanes)
            sum += expf(to_float(x[c]) - maximum);
        sum = sum_of(lanes, sum);
        for (int64_t c = lane; c < end; c += lanes) {
            float gradient = known ? expf(to_float(x[c]) - maximum) / sum - (c == label) : NAN;
            put(backprop + row * classes + c, gradient * factor);
        }
        if (lane == 0 && row < rows)
            all += known ? logf(sum) - (to_float(x[label]) - maximum) : NAN;
    }
    all = sum_of(LANES, all);
    if (threadIdx.x % LANES == 0)
        losses[threadIdx.x / LANES] = all;
    __syncthreads();
    if (threadIdx.x < LANES)
        all = sum_of(LANES, losses[threadIdx.x]);
    if (threadIdx.x == 0)
        *loss = all / (float)rows;
}

static __global__ void in_top_kernel(int64_t rows, int64_t classes, const float *predictions, bool wide,
                                     const void *targets, const void *k, bool *in)
{
    int64_t row = blockIdx.x * (int64_t)ROWS_OF_BLOCK + threadIdx.y;
    if (row >= rows)
        return;
    const float *x = predictions + row * classes;
    int64_t target = integer_at(wide, targets, row);
    bool known = target >= 0 && target < classes;
    float chosen = known ? x[target] : 0, above = 0, strange = 0;
    for (int64_t c = threadIdx.x; c < classes; c += LANES) {
        above += x[c] > chosen;
        strange += !(fabsf(x[c]) < INFINITY);
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
        above += __shfl_xor_sync(0xffffffffu, above, step);
        strange += __shfl_xor_sync(0xffffffffu, strange, step);
    }
    if (threadIdx.x == 0)
        in[row] = known && strange == 0 && above < (float)integer_at(wide, k, 0);
}

static unsigned softmax_blocks(int64_t rows)
{
    return (unsigned)((rows + ROWS_OF_BLOCK - 1) / ROWS_OF_BLOCK);
}

cudaError_t twi_cuda_softmax(cudaStream_t stream, tw_dtype type, bool logarithm, int64_t rows, int64_t classes,
                             const void *logits, void *y)
{
    if (rows == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(softmax_blocks(rows), dim3(LANES, ROWS_OF_BLOCK), 0, stream, softmax_kernel<T>)(
                          logarithm, rows, classes, (const T *)logits, (T *)y))
    return cudaGetLastError();
}

cudaError_t twi_cuda_sparse_cross_entropy(cudaStream_t stream, tw_dtype type, int64_t rows, int64_t classes,
                                          const void *logits, tw_dtype label_type, const void *labels, void *loss,
                                          void *backprop)
{
    bool wide = label_type == TW_INT64;
    if (rows == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(softmax_blocks(rows), dim3(LANES, ROWS_OF_BLOCK), 0, stream, sparse_kernel<T>)(
                          rows, classes, (const T *)logits, wide, labels, (T *)loss, (T *)backprop))
    return cudaGetLastError();
}

cudaError_t twi_cuda_cross_entropy(cudaStream_t stream, tw_dtype type, int64_t rows, int64_t classes,
                                   const void *logits, const void *labels, void *loss, void *backprop)
{
    if (rows == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(softmax_blocks(rows), dim3(LANES, ROWS_OF_BLOCK), 0, stream, dense_kernel<T>)(
                          rows, classes, (const T *)logits, (const T *)labels, (T *)loss, (T *)backprop))
    return cudaGetLastError();
}

/* Sixteen classes a lane, or fewer while all rows have their turn at once, as far as a warp goes. */
static int lanes_of(int64_t rows, int64_t classes)
{
    int lanes = 1;
    while (lanes < LANES && lanes < classes && (lanes * 16 < classes || lanes * 2 * rows <= LOSS_THREADS))
        lanes *= 2;
    return lanes;
}

template <typename T>
static cudaError_t launch_loss(cudaStream_t stream, tw_dtype to, int64_t rows, int64_t classes, const T *logits,
                               bool wide, const void *labels, const float *scale, float divisor, float *loss,
                               void *backprop)
{
    int lanes = lanes_of(rows, classes);
    if (to == TW_FLOAT32)
        LAUNCH(1, LOSS_THREADS, 0, stream, loss_kernel<T, float>)(rows, classes, lanes, logits, wide, labels, scale,
                                                                divisor, loss, (float *)backprop);
    else if (to == TW_BFLOAT16)
        LAUNCH(1, LOSS_THREADS, 0, stream, loss_kernel<T, __nv_bfloat16>)(rows, classes, lanes, logits, wide, labels,
                                                                        scale, divisor, loss, (__nv_bfloat16 *)backprop);
    else if (to == TW_FLOAT16)
        LAUNCH(1, LOSS_THREADS, 0, stream, loss_kernel<T, __half>)(rows, classes, lanes, logits, wide, labels, scale,
                                                                 divisor, loss, (__half *)backprop);
    else
        return cudaErrorInvalidValue;
    return cudaGetLastError();
}

cudaError_t twi_cuda_softmax_loss(cudaStream_t stream, tw_dtype type, tw_dtype to, int64_t rows, int64_t classes,
                                  const void *logits, tw_dtype label_type, const void *labels, const float *scale,
                                  float divisor, float *loss, void *backprop)
{
    FLOAT_TYPES(type, return launch_loss<T>(stream, to, rows, classes, (const T *)logits, label_type == TW_INT64, labels,
                                            scale, divisor, loss, backprop))
    return cudaErrorInvalidValue;
}

cudaError_t twi_cuda_in_top(cudaStream_t stream, int64_t rows, int64_t classes, const float *predictions,
                            tw_dtype target_type, const void *targets, const void *k, bool *in)
{
    if (rows == 0)
        return cudaSuccess;
    LAUNCH(softmax_blocks(rows), dim3(LANES, ROWS_OF_BLOCK), 0, stream, in_top_kernel)(
        rows, classes, predictions, target_type == TW_INT64, targets, k, in);
    return cudaGetLastError();
}
