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

/* ---- many at once --------------------------------------------------------------------------------------------------- */

/* The variable that the block works on: number v, elements from begin to before *end. */
static __device__ int64_t part_of_block(const int *first_block, const int64_t *elements, int *v, int64_t *end)
{
    *v = 0;
    while (first_block[*v + 1] <= (int)blockIdx.x)
        ++*v;
    int64_t begin = ((int)blockIdx.x - first_block[*v]) * (int64_t)CHUNK;
    *end = begin + CHUNK < elements[*v] ? begin + CHUNK : elements[*v];
    return begin;
}

static __device__ float value_of(const twi_cuda_many &m, int tower, int v, int64_t i, float var)
{
    float value = m.value[tower][v][i];
    return m.decay[tower][v] ? value + *m.decay[tower][v] * var : value;
}

static __global__ void many_kernel(bool descends, twi_cuda_many m)
{
    int v;
    int64_t end, begin = part_of_block(m.first_block, m.elements, &v, &end);
    float rate = *m.rate;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        float var = m.var[v][i], value = value_of(m, 0, v, i, var);
        if (m.towers == 2)
            value = (value + value_of(m, 1, v, i, var)) * m.scale;
        m.var[v][i] = var - (descends ? rate * value : (var - value) * rate);
    }
}

/* What storing a number as a T makes of it. */
template <typename T> static __device__ float R(float x)
{
    return rounded<T>(x);
}

template <typename T>
static __device__ float step_momentum(bool nesterov, const float *k, float var, float g, float *accumulated)
{
    float rate = k[0], momentum = k[1], a = R<T>(R<T>(*accumulated * momentum) + g);
    *accumulated = a;
    return var - (nesterov ? R<T>(R<T>(g * rate) + R<T>(R<T>(a * momentum) * rate)) : R<T>(a * rate));
}

/* alpha: the rate, made up for moments that start at 0. */
template <typename T>
static __device__ float step_adam(bool nesterov, const float *k, float alpha, float var, float g, float *m, float *v)
{
    float beta1 = k[3], keep1 = R<T>(1 - beta1), keep2 = R<T>(1 - k[4]), epsilon = k[5];
    float m1 = R<T>(*m + R<T>(R<T>(g - *m) * keep1));
    float v1 = R<T>(*v + R<T>(R<T>(R<T>(g * g) - *v) * keep2));
    float direction = nesterov ? R<T>(R<T>(g * keep1) + R<T>(beta1 * m1)) : m1;
    *m = m1;
    *v = v1;
    return var - R<T>(R<T>(direction * alpha) / R<T>(R<T>(sqrtf(v1)) + epsilon));
}

template <typename T>
static __device__ float step_rms_prop(const float *k, float var, float g, float *ms, float *mom)
{
    float rate = k[0], keep = R<T>(1 - k[1]), momentum = k[2], epsilon = k[3];
    float ms1 = R<T>(*ms + R<T>(R<T>(R<T>(g * g) - *ms) * keep));
    float mom1 = R<T>(R<T>(*mom * momentum) + R<T>(R<T>(g * rate) / R<T>(sqrtf(R<T>(epsilon + ms1)))));
    *ms = ms1;
    *mom = mom1;
    return var - mom1;
}

template <typename T>
static __device__ float gradient_of(const twi_cuda_update &u, int tower, int v, int64_t i, float var)
{
    float gradient = to_float(((const T *)u.gradient[tower][v])[i]);
    return u.decay[tower][v] ? gradient + to_float(*(const T *)u.decay[tower][v]) * var : gradient;
}

template <typename T> static __global__ void update_kernel(twi_cuda_update u)
{
    int v;
    int64_t end, begin = part_of_block(u.first_block, u.elements, &v, &end);
    T *vars = (T *)u.var[v], *first = (T *)u.slots[0][v], *second = (T *)u.slots[1][v];
    float k[TWI_CUDA_NUMBERS], alpha = 0, loss = u.loss[v] ? to_float(*(const T *)u.loss[v]) : 0;
    for (int i = 0; i < TWI_CUDA_NUMBERS; i++)
        k[i] = u.numbers[i] ? to_float(*(const T *)u.numbers[i]) : 0;
    if (u.rule == TWI_CUDA_ADAM)
        alpha = R<T>(R<T>(k[2] * R<T>(sqrtf(R<T>(1 - k[1])))) / R<T>(1 - k[0]));
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        float var = to_float(vars[i]), g = gradient_of<T>(u, 0, v, i, var);
        float one = to_float(first[i]), two = second ? to_float(second[i]) : 0;
        if (u.towers == 2)
            g = (g + gradient_of<T>(u, 1, v, i, var)) * u.scale;
        if (u.loss[v])
            var = R<T>(var - R<T>(var * loss));
        switch (u.rule) {
        case TWI_CUDA_MOMENTUM:
            var = step_momentum<T>(u.nesterov, k, var, g, &one);
            break;
        case TWI_CUDA_ADAM:
            var = step_adam<T>(u.nesterov, k, alpha, var, g, &one, &two);
            break;
        case TWI_CUDA_RMS_PROP:
            var = step_rms_prop<T>(k, var, g, &one, &two);
        }
        put(vars + i, var);
        put(first + i, one);
        if (second)
            put(second + i, two);
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------ */

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

/* Says which blocks work on which variable; returns how many there are. */
static int divide(int count, const int64_t *elements, int *first_block)
{
    int blocks = 0;
    for (int v = 0; v < count; v++) {
        first_block[v] = blocks;
        blocks += (int)((elements[v] + CHUNK - 1) / CHUNK);
    }
    return first_block[count] = blocks;
}

static cudaError_t launch_many(cudaStream_t stream, bool descends, twi_cuda_many *m)
{
    int blocks = divide(m->count, m->elements, m->first_block);
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

cudaError_t twi_cuda_update_many(cudaStream_t stream, tw_dtype type, twi_cuda_update *u)
{
    int blocks = divide(u->count, u->elements, u->first_block);
    if (blocks == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH((unsigned)blocks, THREADS, 0, stream, update_kernel<T>)(*u))
    return cudaGetLastError();
}
