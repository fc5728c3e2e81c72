/* examples.cu - a tower's batch, made of the bytes of a data set that lies on the card: a block takes an example's
 * image, crops, flips and standardises it on its way. Sums of bytes are whole numbers, exact in any order, and the rest
 * is the host's arithmetic (stream/distort.h), so the bits are the host's. */
#include "device/cuda/divide.cuh"
#include "device/cuda/typed.cuh"

/* What indices of a crop are divided by. */
struct crop {
    twi_divider width, channels;
};

/* The bytes of the crop's pixel (y, x); NULL beyond the image where all is 0 there. */
static __device__ __forceinline__ const uint8_t *bytes_of(const twi_distorter &d, const twi_distortion &by,
                                                          const uint8_t *image, int y, int x)
{
    int row = by.top + y, column = by.left + (by.flip ? d.out_width - 1 - x : x);
    if (twi_reflects(&d)) {
        row = twi_reflected(row, d.height);
        column = twi_reflected(column, d.width);
    }
    bool inside = row >= 0 && row < d.height && column >= 0 && column < d.width;
    return inside ? image + (row * d.width + column) * d.channels : NULL;
}

enum { SUMS = 2 * TWI_DISTORT_CHANNELS, SHARES = 16 }; /* of bytes and of squares; threads that add up one of them */

/* Adds up what each thread has found; sums[.][0] are the totals. */
static __device__ void add_up(uint64_t (&sums)[SUMS][THREADS])
{
    const int which = (int)threadIdx.x / SHARES, share = (int)threadIdx.x % SHARES;
    uint64_t sum = 0;
    __syncthreads();
    for (int i = share; which < SUMS && i < THREADS; i += SHARES)
        sum += sums[which][i];
    if (which < SUMS)
        sums[which][share] = sum; /* nobody else reads this one */
    __syncthreads();
    sum = 0;
    for (int i = 0; threadIdx.x < SUMS && i < SHARES; i++)
        sum += sums[threadIdx.x][i];
    if (threadIdx.x < SUMS)
        sums[threadIdx.x][0] = sum;
    __syncthreads();
}

/* Of the crop's bytes and their squares, channel by channel, thread 0 makes the standard. */
static __device__ void find_standard(const twi_distorter &d, const crop &by, const twi_distortion &drawn,
                                     const uint8_t *image, twi_standard *standard)
{
    __shared__ uint64_t sums[SUMS][THREADS];
    uint64_t sum[TWI_DISTORT_CHANNELS] = {}, square[TWI_DISTORT_CHANNELS] = {};
    for (unsigned pixel = threadIdx.x; pixel < (unsigned)(d.out_height * d.out_width); pixel += THREADS) {
        unsigned x, y = twi_divide(by.width, pixel, &x);
        const uint8_t *bytes = bytes_of(d, drawn, image, (int)y, (int)x);
        for (int c = 0; c < TWI_DISTORT_CHANNELS; c++) {
            uint32_t byte = bytes && c < d.channels ? bytes[c] : 0;
            sum[c] += byte;
            square[c] += byte * byte;
        }
    }
    for (int c = 0; c < TWI_DISTORT_CHANNELS; c++) {
        sums[c][threadIdx.x] = sum[c];
        sums[TWI_DISTORT_CHANNELS + c][threadIdx.x] = square[c];
    }
    add_up(sums);
    if (threadIdx.x == 0) {
        for (int c = 0; c < TWI_DISTORT_CHANNELS; c++) {
            sum[c] = sums[c][0];
            square[c] = sums[TWI_DISTORT_CHANNELS + c][0];
        }
        *standard = twi_standardise(&d, drawn.contrast, sum, square);
    }
    __syncthreads();
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    examples_kernel(twi_examples e, crop by, const uint8_t *images, const int32_t *labels, const int64_t *step,
                    T *batch, int32_t *batch_labels)
{
    __shared__ twi_standard standard;
    const twi_distorter &d = e.distorter;
    const int64_t k = twi_example_number(&e, *step, blockIdx.x);
    const int64_t index = twi_example_index(e.count, e.seed, e.shuffle, k);
    const twi_distortion drawn = twi_draw_distortion(&d, e.seed, k, e.count, index);
    const uint8_t *image = images + index * (d.height * d.width * d.channels);
    const unsigned values = (unsigned)(d.out_height * d.out_width * d.channels);
    T *out = batch + (int64_t)blockIdx.x * values;
    const bool standardises = twi_standardises(&d);
    if (threadIdx.x == 0)
        batch_labels[blockIdx.x] = labels[index];
    if (standardises)
        find_standard(d, by, drawn, image, &standard);
    for (unsigned i = threadIdx.x; i < values; i += THREADS) {
        unsigned c, x, y = twi_divide(by.width, twi_divide(by.channels, i, &c), &x);
        const uint8_t *bytes = bytes_of(d, drawn, image, (int)y, (int)x);
        float byte = bytes ? bytes[c] : 0;
        put(&out[i], standardises ? (byte - standard.mean[c]) * standard.scale + standard.shift[c]
                                  : byte * d.scale + d.offset);
    }
}

cudaError_t twi_cuda_examples(cudaStream_t stream, tw_dtype type, const twi_examples *examples, const void *images,
                              const void *labels, const void *step, void *batch, void *batch_labels)
{
    const twi_distorter *d = &examples->distorter;
    crop by = {twi_divider_of(d->out_width), twi_divider_of(d->channels)};
    FLOAT_TYPES(type, LAUNCH((unsigned)examples->batch, THREADS, 0, stream, examples_kernel<T>)(
                          *examples, by, (const uint8_t *)images, (const int32_t *)labels, (const int64_t *)step,
                          (T *)batch, (int32_t *)batch_labels))
    return cudaGetLastError();
}
