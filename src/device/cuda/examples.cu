/* examples.cu - a tower's batch, made of the bytes of a data set that lies on the card: a block takes an example's image,
 * crops, flips and standardises it on its way. Sums of bytes are whole numbers, exact in any order, and the rest is the
 * host's arithmetic (stream/distort.h), so the bits are the host's. */
#include "device/cuda/divide.cuh"
#include "device/cuda/typed.cuh"

/* What indices of a crop are divided by. */
struct crop {
    twi_divider width, channels;
};

/* The bytes of the crop's pixel (y, x); NULL beyond the image, where all is 0. */
static __device__ __forceinline__ const uint8_t *bytes_of(const twi_distorter &d, const twi_distortion &by,
                                                          const uint8_t *image, int y, int x)
{
    int row = by.top + y, column = by.left + (by.flip ? d.out_width - 1 - x : x);
    bool inside = row >= 0 && row < d.height && column >= 0 && column < d.width;
    return inside ? image + (row * d.width + column) * d.channels : NULL;
}

static const int EXAMPLE_THREADS = 512, AT_HAND = 2; /* pixels that a thread asks for before it looks at the first */
enum { SUMS = 2 * TWI_DISTORT_CHANNELS, SHARES = 16 }; /* of bytes and of squares; threads that add up one of them */

/* Adds up what each thread has found. */
static __device__ void add_up(const uint32_t (&found)[SUMS][EXAMPLE_THREADS], uint64_t (&totals)[SUMS])
{
    __shared__ uint64_t shares[SUMS][SHARES];
    const int which = (int)threadIdx.x / SHARES, share = (int)threadIdx.x % SHARES;
    uint64_t sum = 0;
    __syncthreads();
    for (int i = share; which < SUMS && i < EXAMPLE_THREADS; i += SHARES)
        sum += found[which][i];
    if (which < SUMS)
        shares[which][share] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; threadIdx.x < SUMS && i < SHARES; i++)
        sum += shares[threadIdx.x][i];
    if (threadIdx.x < SUMS)
        totals[threadIdx.x] = sum;
    __syncthreads();
}

/* Of the crop's bytes and their squares, channel by channel, thread 0 makes the standard. */
static __device__ void find_standard(const twi_distorter &d, const crop &by, const twi_distortion &drawn,
                                     const uint8_t *image, twi_standard *standard)
{
    __shared__ uint32_t found[SUMS][EXAMPLE_THREADS];
    __shared__ uint64_t totals[SUMS];
    const unsigned pixels = (unsigned)(d.out_height * d.out_width);
    uint32_t sum[TWI_DISTORT_CHANNELS] = {}, square[TWI_DISTORT_CHANNELS] = {};
    for (unsigned first = threadIdx.x; first < pixels; first += AT_HAND * EXAMPLE_THREADS) {
        uint32_t byte[AT_HAND][TWI_DISTORT_CHANNELS];
        for (int i = 0; i < AT_HAND; i++) {
            unsigned pixel = first + (unsigned)i * EXAMPLE_THREADS, x, y = twi_divide(by.width, pixel, &x);
            const uint8_t *bytes = pixel < pixels ? bytes_of(d, drawn, image, (int)y, (int)x) : NULL;
            for (int c = 0; c < TWI_DISTORT_CHANNELS; c++)
                byte[i][c] = bytes && c < d.channels ? bytes[c] : 0;
        }
        for (int i = 0; i < AT_HAND; i++)
            for (int c = 0; c < TWI_DISTORT_CHANNELS; c++) {
                sum[c] += byte[i][c];
                square[c] += byte[i][c] * byte[i][c];
            }
    }
    for (int c = 0; c < TWI_DISTORT_CHANNELS; c++) {
        found[c][threadIdx.x] = sum[c];
        found[TWI_DISTORT_CHANNELS + c][threadIdx.x] = square[c];
    }
    add_up(found, totals);
    if (threadIdx.x == 0)
        *standard = twi_standardise(&d, drawn.contrast, totals, totals + TWI_DISTORT_CHANNELS);
    __syncthreads();
}

template <typename T>
static __global__ void __launch_bounds__(EXAMPLE_THREADS)
    examples_kernel(twi_examples e, crop by, const uint8_t *images, const int32_t *labels, const int64_t *step,
                    T *batch, int32_t *batch_labels)
{
    __shared__ twi_standard standard;
    const twi_distorter &d = e.distorter;
    const int64_t k = twi_example_number(&e, *step, blockIdx.x);
    const int64_t index = twi_example_index(e.count, e.seed, e.shuffle, k);
    const twi_distortion drawn = twi_draw_distortion(&d, e.seed, k);
    const uint8_t *image = images + index * (d.height * d.width * d.channels);
    const unsigned values = (unsigned)(d.out_height * d.out_width * d.channels);
    T *out = batch + (int64_t)blockIdx.x * values;
    const bool standardises = twi_standardises(&d);
    if (threadIdx.x == 0)
        batch_labels[blockIdx.x] = labels[index];
    if (standardises)
        find_standard(d, by, drawn, image, &standard);
    for (unsigned i = threadIdx.x; i < values; i += EXAMPLE_THREADS) {
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
    FLOAT_TYPES(type, LAUNCH((unsigned)examples->batch, EXAMPLE_THREADS, 0, stream, examples_kernel<T>)(
                          *examples, by, (const uint8_t *)images, (const int32_t *)labels, (const int64_t *)step,
                          (T *)batch, (int32_t *)batch_labels))
    return cudaGetLastError();
}
