/* scalars.cu - a program on scalars in one launch: a thread for each input and result, a warp for each step, so that
 * steps that do not wait for each other are taken side by side; what an op makes of its operands is what the kernels of
 * elementwise.cu make of one element. */
#include "device/cuda/arithmetic.cuh"

static const int SCALAR_THREADS = 512, WARP = 32;
static_assert(TWI_SCALARS_INPUTS <= SCALAR_THREADS && TWI_SCALARS_RESULTS <= SCALAR_THREADS &&
                  TWI_SCALARS_INPUTS + TWI_SCALARS_STEPS <= 256 && TWI_SCALARS_OPERANDS <= 256,
              "a thread for each, places in a byte");

static __device__ __forceinline__ uint64_t bytes_at(int bytes, const void *from)
{
    return bytes == 8   ? *(const uint64_t *)from
           : bytes == 4 ? *(const uint32_t *)from
           : bytes == 2 ? *(const uint16_t *)from
                        : *(const uint8_t *)from;
}

static __device__ __forceinline__ void put_bytes(int bytes, uint64_t value, void *to)
{
    if (bytes == 8)
        *(uint64_t *)to = value;
    else if (bytes == 4)
        *(uint32_t *)to = (uint32_t)value;
    else if (bytes == 2)
        *(uint16_t *)to = (uint16_t)value;
    else
        *(uint8_t *)to = (uint8_t)value;
}

static __device__ __forceinline__ float float_at(int type, const uint64_t *slot)
{
    return type == TW_FLOAT32 ? *(const float *)slot : (float)read_float((tw_dtype)type, slot, 0);
}

static __device__ __forceinline__ void put_float(int type, uint64_t *slot, float value)
{
    if (type == TW_FLOAT32)
        *(float *)slot = value;
    else
        write_float((tw_dtype)type, slot, 0, value);
}

static __device__ void take_unary(const twi_cuda_scalar_step &s, const uint64_t *x, uint64_t *y)
{
    twi_cuda_unary op = (twi_cuda_unary)s.op;
    if (s.type == TW_INT32)
        unary_at(op, (const int32_t *)x, (int32_t *)y);
    else if (s.type == TW_INT64)
        unary_at(op, (const int64_t *)x, (int64_t *)y);
    else
        put_float(s.to, y, unary(op, float_at(s.type, x)));
}

static __device__ void take_binary(const twi_cuda_scalar_step &s, const uint64_t *x, const uint64_t *y, uint64_t *z)
{
    twi_cuda_binary op = (twi_cuda_binary)s.op;
    if (s.type == TW_INT32)
        binary_at(op, (const int32_t *)x, (const int32_t *)y, (int32_t *)z);
    else if (s.type == TW_INT64)
        binary_at(op, (const int64_t *)x, (const int64_t *)y, (int64_t *)z);
    else
        put_float(s.to, z, binary(op, float_at(s.type, x), float_at(s.type, y)));
}

static __device__ bool take_compare(const twi_cuda_scalar_step &s, const uint64_t *x, const uint64_t *y)
{
    twi_cuda_compare op = (twi_cuda_compare)s.op;
    if (is_float((tw_dtype)s.type))
        return compare(op, float_at(s.type, x), float_at(s.type, y));
    return compare(op, read_integer((tw_dtype)s.type, x, 0), read_integer((tw_dtype)s.type, y, 0));
}

static __device__ bool take_test(const twi_cuda_scalar_step &s, const uint64_t *x)
{
    return test((twi_cuda_test)s.op, s.type == TW_BOOL ? (float)*(const bool *)x : float_at(s.type, x));
}

/* One after the other, as AddN does; lanes have looked for them side by side. */
static __device__ float add_many(const twi_cuda_scalar_step &s, const uint8_t *operands, const uint64_t *values)
{
    __shared__ float terms[TWI_SCALARS_OPERANDS];
    for (int i = (int)threadIdx.x % WARP; i < s.count; i += WARP)
        terms[s.first + i] = float_at(s.type, values + operands[i]);
    __syncwarp();
    float total = terms[s.first];
#pragma unroll 8
    for (int i = 1; i < s.count; i++)
        total += terms[s.first + i];
    return total;
}

/* All lanes of a warp come, and all write the same. */
static __device__ void take_step(const twi_cuda_scalars &p, const twi_cuda_scalar_step &s, const uint64_t *values,
                                 uint64_t *to)
{
    const uint8_t *operands = p.operands + s.first;
    const uint64_t *x = values + operands[0], *y = values + operands[s.count > 1];
    const uint64_t *last = values + operands[s.count - 1];
    switch (s.kind) {
    case TWI_CUDA_SCALAR_UNARY:
        take_unary(s, x, to);
        break;
    case TWI_CUDA_SCALAR_BINARY:
        take_binary(s, x, y, to);
        break;
    case TWI_CUDA_SCALAR_COMPARE:
        *(bool *)to = take_compare(s, x, y);
        break;
    case TWI_CUDA_SCALAR_TEST:
        *(bool *)to = take_test(s, x);
        break;
    case TWI_CUDA_SCALAR_CAST:
        cast_at((tw_dtype)s.type, x, (tw_dtype)s.to, to, 0);
        break;
    case TWI_CUDA_SCALAR_SELECT:
        *to = *(const bool *)x ? *y : *last;
        break;
    case TWI_CUDA_SCALAR_ADD_N:
        put_float(s.to, to, add_many(s, operands, values));
    }
}

static __global__ void __launch_bounds__(SCALAR_THREADS) scalars_kernel(twi_cuda_scalars p)
{
    __shared__ uint64_t values[TWI_SCALARS_INPUTS + TWI_SCALARS_STEPS];
    const int me = (int)threadIdx.x, warp = me / WARP;
    if (me < p.num_inputs)
        values[me] = bytes_at(p.input_bytes[me], p.inputs[me]);
    for (int level = 0; level < p.num_levels; level++) {
        __syncthreads();
        for (int i = warp; i < p.num_steps; i += SCALAR_THREADS / WARP)
            if (p.steps[i].level == level)
                take_step(p, p.steps[i], values, values + p.num_inputs + i);
    }
    __syncthreads();
    if (me < p.num_results)
        put_bytes(p.result_bytes[me], values[p.result_slots[me]], p.results[me]);
}

cudaError_t twi_cuda_scalars_run(cudaStream_t stream, const twi_cuda_scalars *scalars)
{
    LAUNCH(1, SCALAR_THREADS, 0, stream, scalars_kernel)(*scalars);
    return cudaGetLastError();
}
