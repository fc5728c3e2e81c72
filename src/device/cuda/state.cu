/* state.cu - updates of variables. Each element is computed alone and rounds as on the CPU. */
#include "device/cuda/typed.cuh"

static const int CHUNK = 4096; /* elements of a block */

template <typename T> static __global__ void add_kernel(float sign, int64_t n, T *var, const T *value)
{
    EACH(i, n)
        put(var + i, to_float(var[i]) + sign * to_float(value[i]));
}

template <typename U> static __global__ void add_integers(U sign, int64_t n, U *var, const U *value)
{
    EACH(i, n)
        var[i] += sign * value[i];
}

template <typename T> static __device__ float rounded(float x)
{
    T narrow;
    put(&narrow, x);
    return to_float(narrow);
}

template <typename T> static __global__ void descend_kernel(int64_t n, T *var, const T *alpha, const T *delta)
{
    float rate = to_float(*alpha);
    EACH(i, n)
        put(var + i, to_float(var[i]) - rounded<T>(rate * to_float(delta[i])));
}

static __device__ float value_of(const twi_cuda_many &m, int tower, int v, int64_t i, float var)
{
    float value = m.value[tower][v][i];
    return m.decay[tower][v] ? value + *m.decay[tower][v] * var : value;
}

static __global__ void many_kernel(bool descends, twi_cuda_many m)
{
    int v = 0;
    while (m.first_block[v + 1] <= (int)blockIdx.x)
        v++;
    int64_t begin = ((int)blockIdx.x - m.first_block[v]) * (int64_t)CHUNK, end = begin + CHUNK;
    float rate = *m.rate;
    if (end > m.elements[v])
        end = m.elements[v];
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        float var = m.var[v][i], value = value_of(m, 0, v, i, var);
        if (m.towers == 2)
            value = (value + value_of(m, 1, v, i, var)) * m.scale;
        m.var[v][i] = var - (descends ? rate * value : (var - value) * rate);
    }
}

cudaError_t twi_cuda_assign_add(cudaStream_t stream, tw_dtype type, int sign, int64_t n, void *var, const void *value)
{
    if (type == TW_INT64)
        LAUNCH(blocks_for(n), THREADS, 0, stream, add_integers<uint64_t>)((uint64_t)(int64_t)sign, n, (uint64_t *)var,
                                                            (const uint64_t *)value);
    else if (type == TW_INT32)
        LAUNCH(blocks_for(n), THREADS, 0, stream, add_integers<uint32_t>)((uint32_t)sign, n, (uint32_t *)var,
                                                            (const uint32_t *)value);
    else
        FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, add_kernel<T>)((float)sign, n, (T *)var,
                                                                               (const T *)value))
    return cudaGetLastError();
}

cudaError_t twi_cuda_descend(cudaStream_t stream, tw_dtype type, int64_t n, void *var, const void *alpha,
                             const void *delta)
{
    FLOAT_TYPES(type, LAUNCH(blocks_for(n), THREADS, 0, stream, descend_kernel<T>)(n, (T *)var, (const T *)alpha,
                                                                              (const T *)delta))
    return cudaGetLastError();
}

static cudaError_t launch_many(cudaStream_t stream, bool descends, twi_cuda_many *m)
{
    int blocks = 0;
    for (int v = 0; v < m->count; v++) {
        m->first_block[v] = blocks;
        blocks += (int)((m->elements[v] + CHUNK - 1) / CHUNK);
    }
    m->first_block[m->count] = blocks;
    if (blocks == 0)
        return cudaSuccess;
    LAUNCH((unsigned)blocks, THREADS, 0, stream, many_kernel)(descends, *m);
    return cudaGetLastError();
}

cudaError_t twi_cuda_descend_many(cudaStream_t stream, twi_cuda_many *many)
{
    return launch_many(stream, true, many);
}

cudaError_t twi_cuda_follow_many(cudaStream_t stream, twi_cuda_many *many)
{
    return launch_many(stream, false, many);
}
