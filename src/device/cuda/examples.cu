/* examples.cu - a tower's batch, made of the bytes of a data set that lies on the card: a block takes an example's image,
 * crops, flips and standardises it on its way. Sums of bytes are whole numbers, exact in any order, and the rest is the
 * host's arithmetic (device/distort.h), so the bits are the host's. */
#include "device/cuda/typed.cuh"

/* The byte of the crop's pixel (y, x) and a channel; beyond the image all is 0. */
static __device__ uint8_t byte_of(const twi_distorter &d, const twi_distortion &by, const uint8_t *image, int y, int x,
                                  int channel)
{
    int row = by.top + y, column = by.left + (by.flip ? d.out_width - 1 - x : x);
    bool inside = row >= 0 && row < d.height && column >= 0 && column < d.width;
    return inside ? image[(row * d.width + column) * d.channels + channel] : 0;
}

/* Adds up the crop's bytes and their squares channel by channel; thread 0 makes the standard of them. */
static __device__ void find_standard(const twi_distorter &d, const twi_distortion &by, const uint8_t *image,
                                     twi_standard *standard)
{
    __shared__ uint64_t sums[2][TWI_DISTORT_CHANNELS][THREADS];
    const int thread = (int)threadIdx.x;
    for (int c = 0; c < d.channels; c++) {
        uint64_t sum = 0, square = 0;
        for (int pixel = thread; pixel < d.out_height * d.out_width; pixel += THREADS) {
            uint32_t byte = byte_of(d, by, image, pixel / d.out_width, pixel % d.out_width, c);
            sum += byte;
            square += byte * byte;
        }
        sums[0][c][thread] = sum;
        sums[1][c][thread] = square;
    }
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread < half)
            for (int c = 0; c < d.channels; c++) {
                sums[0][c][thread] += sums[0][c][thread + half];
                sums[1][c][thread] += sums[1][c][thread + half];
            }
        __syncthreads();
    }
    if (thread == 0) {
        uint64_t sum[TWI_DISTORT_CHANNELS], square[TWI_DISTORT_CHANNELS];
        for (int c = 0; c < d.channels; c++) {
            sum[c] = sums[0][c][0];
            square[c] = sums[1][c][0];
        }
        *standard = twi_standardise(&d, by.contrast, sum, square);
    }
    __syncthreads();
}

static __global__ void examples_kernel(twi_examples e, const uint8_t *images, const int32_t *labels, const int64_t *step,
                                       float *batch, int32_t *batch_labels)
{
    __shared__ twi_standard standard;
    const twi_distorter &d = e.distorter;
    const int64_t k = twi_example_number(&e, *step, blockIdx.x);
    const int64_t index = twi_example_index(e.count, e.seed, e.shuffle, k);
    const twi_distortion by = twi_draw_distortion(&d, e.seed, k);
    const uint8_t *image = images + index * (d.height * d.width * d.channels);
    const int values = d.out_height * d.out_width * d.channels, row = d.out_width * d.channels;
    float *out = batch + (int64_t)blockIdx.x * values;
    const bool standardises = twi_standardises(&d);
    if (standardises)
        find_standard(d, by, image, &standard);
    for (int i = (int)threadIdx.x; i < values; i += THREADS) {
        int c = i % d.channels;
        float byte = byte_of(d, by, image, i / row, i % row / d.channels, c);
        out[i] = standardises ? (byte - standard.mean[c]) * standard.scale + standard.shift[c]
                              : byte * d.scale + d.offset;
    }
    if (threadIdx.x == 0)
        batch_labels[blockIdx.x] = labels[index];
}

cudaError_t twi_cuda_examples(cudaStream_t stream, const twi_examples *examples, const void *images, const void *labels,
                              const void *step, void *batch, void *batch_labels)
{
    LAUNCH((unsigned)examples->batch, THREADS, 0, stream, examples_kernel)(
        *examples, (const uint8_t *)images, (const int32_t *)labels, (const int64_t *)step, (float *)batch,
        (int32_t *)batch_labels);
    return cudaGetLastError();
}
