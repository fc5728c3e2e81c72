/* state.cu - updates of variables. Each element is computed alone and rounds as on the CPU. */
#include "device/cuda/many.cuh"

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

/* ---- updates, many at once --------------------------------------------------------------------------------------- */

template <typename T>
static __device__ float step_momentum(bool nesterov, const float *k, float var, float g, float *accumulated)
{
    float rate = k[0], momentum = k[1], a = rounded<T>(rounded<T>(*accumulated * momentum) + g);
    *accumulated = a;
    float ahead = rounded<T>(g * rate) + rounded<T>(rounded<T>(a * momentum) * rate);
    return var - rounded<T>(nesterov ? ahead : a * rate);
}

/* Rounds where it is kept, as on the CPU. */
static __device__ inline float step_adagrad(const float *k, float var, float g, float *accumulated)
{
    float rate = k[0], epsilon = k[1];
    *accumulated += g * g;
    return var - g * rate / (sqrtf(*accumulated) + epsilon);
}

/* alpha: the rate, made up for moments that start at 0. */
template <typename T>
static __device__ float step_adam(bool nesterov, const float *k, float alpha, float var, float g, float *m, float *v)
{
    float beta1 = k[3], keep1 = rounded<T>(1 - beta1), keep2 = rounded<T>(1 - k[4]), epsilon = k[5];
    float m1 = rounded<T>(*m + rounded<T>(rounded<T>(g - *m) * keep1));
    float v1 = rounded<T>(*v + rounded<T>(rounded<T>(rounded<T>(g * g) - *v) * keep2));
    float direction = nesterov ? rounded<T>(rounded<T>(g * keep1) + rounded<T>(beta1 * m1)) : m1;
    *m = m1;
    *v = v1;
    return var - rounded<T>(rounded<T>(direction * alpha) / rounded<T>(rounded<T>(sqrtf(v1)) + epsilon));
}

template <typename T>
static __device__ float step_rms_prop(const float *k, float var, float g, float *ms, float *mom)
{
    float rate = k[0], keep = rounded<T>(1 - k[1]), momentum = k[2], epsilon = k[3];
    float ms1 = rounded<T>(*ms + rounded<T>(rounded<T>(rounded<T>(g * g) - *ms) * keep));
    float move = rounded<T>(rounded<T>(g * rate) / rounded<T>(sqrtf(rounded<T>(epsilon + ms1))));
    float mom1 = rounded<T>(rounded<T>(*mom * momentum) + move);
    *ms = ms1;
    *mom = mom1;
    return var - mom1;
}

/* A tower's gradient, with the decay of the variable x. */
template <typename T>
static __device__ __forceinline__ void gradient_of(const twi_cuda_update &u, int tower, int v, int64_t at, int count,
                                                   const float *x, float *g)
{
    load_gradient((tw_dtype)u.type[tower][v], u.gradient[tower][v], u.elements[v], u.columns[v], at, count, g);
    if (u.decay[tower][v])
        for (int i = 0; i < TOGETHER; i++)
            g[i] += to_float(*(const T *)u.decay[tower][v]) * x[i];
}

template <typename T, twi_cuda_rule RULE>
static __device__ __forceinline__ float step(bool nesterov, const float *k, float alpha, float x, float g, float *one,
                                             float *two)
{
    switch (RULE) {
    case TWI_CUDA_DESCENT:
        return x - rounded<T>(k[0] * g);
    case TWI_CUDA_FOLLOWING:
        return x - rounded<T>(rounded<T>(x - g) * k[0]);
    case TWI_CUDA_MOMENTUM:
        return step_momentum<T>(nesterov, k, x, g, one);
    case TWI_CUDA_ADAGRAD:
        return step_adagrad(k, x, g, one);
    case TWI_CUDA_ADAM:
        return step_adam<T>(nesterov, k, alpha, x, g, one, two);
    default:
        return step_rms_prop<T>(k, x, g, one, two);
    }
}

template <typename T, twi_cuda_rule RULE> static __global__ void update_kernel(twi_cuda_update u)
{
    constexpr int SLOTS = RULE < TWI_CUDA_MOMENTUM ? 0 : RULE < TWI_CUDA_ADAM ? 1 : 2;
    int v = array_of_block(u.count, u.first_block);
    int64_t at = ((int)blockIdx.x - u.first_block[v]) * (int64_t)CHUNK + (int)threadIdx.x * TOGETHER;
    int count = (int)min(u.elements[v] - at, (int64_t)TOGETHER);
    if (count <= 0)
        return;
    float x[TOGETHER], g[TOGETHER], other[TOGETHER], slots[2][TOGETHER] = {{0}};
    float k[TWI_CUDA_NUMBERS], alpha = 0;
    T *var = (T *)u.var[v] + at;
    load(var, count, x);
    for (int i = 0; i < SLOTS; i++)
        load((const T *)u.slots[i][v] + at, count, slots[i]);
    for (int i = 0; i < TWI_CUDA_NUMBERS; i++)
        k[i] = u.numbers[i] ? to_float(*(const T *)u.numbers[i]) : 0;
    if (RULE == TWI_CUDA_ADAM)
        alpha = rounded<T>(rounded<T>(k[2] * rounded<T>(sqrtf(rounded<T>(1 - k[1])))) / rounded<T>(1 - k[0]));
    gradient_of<T>(u, 0, v, at, count, x, g);
    if (u.towers == 2) {
        gradient_of<T>(u, 1, v, at, count, x, other);
        for (int i = 0; i < TOGETHER; i++)
            g[i] = (g[i] + other[i]) * u.scale;
    }
    if (u.loss[v])
        for (int i = 0; i < TOGETHER; i++)
            x[i] = rounded<T>(x[i] - rounded<T>(x[i] * to_float(*(const T *)u.loss[v])));
    for (int i = 0; i < TOGETHER; i++)
        x[i] = step<T, RULE>(u.nesterov, k, alpha, x[i], g[i], &slots[0][i], &slots[1][i]);
    store(var, count, x);
    for (int i = 0; i < SLOTS; i++)
        store((T *)u.slots[i][v] + at, count, slots[i]);
    if (u.average[v]) {
        T *average = (T *)u.average[v] + at;
        const float weight = to_float(*(const T *)u.weight);
        load(average, count, other);
        for (int i = 0; i < TOGETHER; i++)
            other[i] = step<T, TWI_CUDA_FOLLOWING>(false, &weight, 0, other[i], x[i], NULL, NULL);
        store(average, count, other);
    }
}

/* ---- launchers --------------------------------------------------------------------------------------------------- */

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

static_assert(sizeof(twi_cuda_update) < 32 << 10, "what a kernel is called with");

#define UPDATE(rule)                                                                                                   \
    case rule:                                                                                                         \
        FLOAT_TYPES(type, LAUNCH(blocks, THREADS, 0, stream, update_kernel<T, rule>)(*u))                              \
        break;

cudaError_t twi_cuda_update_many(cudaStream_t stream, tw_dtype type, twi_cuda_update *u)
{
    unsigned blocks = 0;
    for (int v = 0; v < u->count; v++) {
        u->first_block[v] = (int)blocks;
        blocks += chunks_of(u->elements[v]);
    }
    if (blocks == 0)
        return cudaSuccess;
    switch (u->rule) {
        UPDATE(TWI_CUDA_DESCENT)
        UPDATE(TWI_CUDA_FOLLOWING)
        UPDATE(TWI_CUDA_MOMENTUM)
        UPDATE(TWI_CUDA_ADAGRAD)
        UPDATE(TWI_CUDA_ADAM)
        UPDATE(TWI_CUDA_RMS_PROP)
    }
    return cudaGetLastError();
}
