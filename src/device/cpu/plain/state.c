/* state.c - variables on the CPU: reads, assignments and optimizer updates, element by element.
 *
 * The input that is a variable is its own buffer. Each element is computed alone, so the bits do not depend on the
 * number of threads. The order of operations within a
 * formula is TensorFlow's, and half and bfloat16 round after every operation as it does. */
#include "base/memory.h"
#include "device/cpu/copy.h"
#include "device/cpu/plain/cmplx.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"
#include "device/kernel.h"
#include "device/resources.h"
#include "device/state/random.h"
#include "tensor/variant.h"

#include <math.h>
#include <string.h>

/* clang-format off */
/* for (i = 0; i < n; i++), by the team when it pays; EACH_VECTOR where the body can use vector instructions. */
#define EACH_ELEMENT                                                                                                   \
    _Pragma("omp parallel for num_threads(twi_team_for(r, n, n))")                                                     \
    for (int64_t i = 0; i < n; i++)
#define EACH_VECTOR                                                                                                    \
    _Pragma("omp parallel for simd num_threads(twi_team_for(r, n, n))")                                                \
    for (int64_t i = 0; i < n; i++)
/* clang-format on */

/* ---- checks ------------------------------------------------------------------------------------------------ */

/* Variables have the type the op was made for, and every non-scalar the shape of the variable. */
static tw_status prepare_update(twi_prepare *p)
{
    const twi_operand *variable = &p->inputs[0];
    for (int i = 0; i < p->num_inputs; i++) {
        const twi_operand *input = &p->inputs[i];
        tw_dtype type = twi_kernel_type(p->attrs);
        tw_status status = TW_OK;
        if (input->dtype == TW_RESOURCE && type)
            status = twi_resource_check_type(input->resource, type, p->op, p->node, p->error);
        if (status != TW_OK)
            return status;
        if (input->shape.rank > 0 && !tw_shape_equal(input->shape, variable->shape)) {
            char text[2][96];
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the variable has shape %s, input %d has shape %s",
                            p->op, p->node, tw_shape_text(variable->shape, text[0], sizeof text[0]), i,
                            tw_shape_text(input->shape, text[1], sizeof text[1]));
        }
    }
    return TW_OK;
}

/* ---- reads and assignments --------------------------------------------------------------------------------- */

static tw_status copy_value(const twi_run *r, const twi_operand *value, const void *from, void *to)
{
    if (!twi_owns_memory(value->dtype))
        return twi_copy_block(to, from, value->bytes, r->threads), TW_OK;
    bool fits = twi_copy_elements(value->elements, value->dtype, from, to);
    return fits ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status run_read(const twi_run *r)
{
    return copy_value(r, &r->output_operands[0], r->inputs[0], r->outputs[0]);
}

static tw_status run_assign(const twi_run *r)
{
    bool same = r->inputs[0] == r->inputs[1];
    return same ? TW_OK : copy_value(r, &r->input_operands[1], r->inputs[1], (void *)r->inputs[0]);
}

typedef struct counting {
    int64_t limit;
} counting;

static tw_status prepare_count(twi_prepare *p)
{
    tw_status status = prepare_update(p);
    if (status != TW_OK)
        return status;
    counting *c = twi_alloc(sizeof *c);
    if (!c)
        return twi_fail_memory(p->error, p->node);
    c->limit = twi_attr_int(p->attrs, "limit", 0);
    p->state = c;
    return TW_OK;
}

/* Each number that is drawn may need so many steps of the counter. */
static tw_status run_generator(const twi_run *r)
{
    twi_philox start;
    if (r->num_outputs) // it is read, too
        memcpy(r->outputs[0], r->inputs[0], r->output_operands[0].bytes);
    return twi_random_kept(r, *(const uint64_t *)r->inputs[2] * TWI_RANDOM_BLOCKS, &start);
}

static tw_status run_count(const twi_run *r)
{
    int64_t limit = ((const counting *)r->state)->limit;
    bool wide = r->output_operands[0].dtype == TW_INT64;
    int64_t value = wide ? *(const int64_t *)r->inputs[0] : *(const int32_t *)r->inputs[0];
    if (value >= limit)
        return twi_fail(r->error, TW_OUT_OF_RANGE, "Reached limit of %lld", (long long)limit);
    memcpy(r->outputs[0], r->inputs[0], r->output_operands[0].bytes);
    if (wide)
        ++*(int64_t *)r->inputs[0];
    else
        ++*(int32_t *)r->inputs[0];
    return TW_OK;
}

/* Integers wrap around, so they are added as unsigned numbers of their size. */
#define ADD_LOOP(EACH, T, load, store, sign)                                                                           \
    {                                                                                                                  \
        T *to = (T *)r->inputs[0];                                                                                     \
        const T *value = r->inputs[1];                                                                                 \
        EACH to[i] = store(load(to[i]) sign load(value[i]));                                                           \
        break;                                                                                                         \
    }

#define ADD_TYPES(sign)                                                                                                \
    tw_dtype dtype = r->input_operands[1].dtype;                                                                       \
    int64_t n = r->input_operands[1].elements * (tw_dtype_is_complex(dtype) ? 2 : 1);                                  \
    switch (dtype) {                                                                                                   \
    case TW_COMPLEX64: /* part by part */                                                                              \
    case TW_FLOAT32:                                                                                                   \
        ADD_LOOP(EACH_VECTOR, float, , , sign)                                                                         \
    case TW_COMPLEX128:                                                                                                \
    case TW_FLOAT64:                                                                                                   \
        ADD_LOOP(EACH_VECTOR, double, , , sign)                                                                        \
    case TW_FLOAT16:                                                                                                   \
        ADD_LOOP(EACH_ELEMENT, uint16_t, tw_half_to_float, tw_float_to_half, sign)                                     \
    case TW_BFLOAT16:                                                                                                  \
        ADD_LOOP(EACH_ELEMENT, uint16_t, tw_bfloat16_to_float, tw_float_to_bfloat16, sign)                             \
    case TW_INT8:                                                                                                      \
    case TW_UINT8:                                                                                                     \
        ADD_LOOP(EACH_VECTOR, uint8_t, , , sign)                                                                       \
    case TW_INT16:                                                                                                     \
    case TW_UINT16:                                                                                                    \
        ADD_LOOP(EACH_VECTOR, uint16_t, , , sign)                                                                      \
    case TW_INT32:                                                                                                     \
    case TW_UINT32:                                                                                                    \
        ADD_LOOP(EACH_VECTOR, uint32_t, , , sign)                                                                      \
    case TW_INT64:                                                                                                     \
    case TW_UINT64:                                                                                                    \
        ADD_LOOP(EACH_VECTOR, uint64_t, , , sign)                                                                      \
    default:                                                                                                           \
        break;                                                                                                         \
    }

static tw_status run_assign_add(const twi_run *r)
{
    ADD_TYPES(+)
    return TW_OK;
}

static tw_status run_assign_sub(const twi_run *r)
{
    ADD_TYPES(-)
    return TW_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------- */

static tw_status run_is_initialized(const twi_run *r)
{
    const twi_resource *variable = r->input_operands[0].resource;
    *(bool *)r->outputs[0] = variable && variable->initialized;
    return TW_OK;
}

/* state: whether a variable that has no value is no error. A kernel that is prepared may be shown no resource yet. */
static tw_status prepare_destroy(twi_prepare *p)
{
    const twi_resource *variable = p->inputs[0].resource;
    bool ignores = twi_attr_bool(p->attrs, "ignore_lookup_error", true);
    if (variable && variable->object)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': its input 0 is not the handle of a variable", p->op,
                        p->node);
    p->varies = true;
    return twi_keep(p, &ignores, sizeof ignores);
}

/* The memory stays, for plans that were made for it; what has no value cannot be read. */
static tw_status run_destroy(const twi_run *r)
{
    twi_resource *variable = r->input_operands[0].resource;
    bool was = variable && atomic_exchange(&variable->initialized, false);
    return was || *(const bool *)r->state ? TW_OK
                                          : twi_fail(r->error, TW_NOT_FOUND, "Resource localhost/%s does not exist.",
                                                     variable ? variable->name : "");
}

static tw_status run_variable_shape(const twi_run *r)
{
    tw_shape shape = r->input_operands[0].shape;
    for (int i = 0; i < shape.rank; i++)
        if (r->output_operands[0].dtype == TW_INT64)
            ((int64_t *)r->outputs[0])[i] = shape.dims[i];
        else
            ((int32_t *)r->outputs[0])[i] = (int32_t)shape.dims[i];
    return TW_OK;
}

/* ---- optimizers -------------------------------------------------------------------------------------------- */

static const bool nesterov_marker = true; /* state of an update that uses Nesterov's form; plain ones have NULL */

static tw_status prepare_optimizer(twi_prepare *p)
{
    if (twi_attr_bool(p->attrs, "use_nesterov", false))
        p->state = (void *)&nesterov_marker;
    return prepare_update(p);
}

#define VECTOR(T, name, k) T *name = (T *)r->inputs[k] /* a variable or slot: [n] */
#define GRADIENT(T, name, k) const T *name = r->inputs[k]
#define NUMBER(T, C, load, name, k) const C name = load(*(const T *)r->inputs[k])

/* The updates for storage type T computed in C. load: T to C; store: C to T; R rounds a C as storing it would. */
#define UPDATES(type, EACH, T, C, load, store, R)                                                                      \
    static void gradient_descent_##type(const twi_run *r)                                                              \
    {                                                                                                                  \
        int64_t n = r->input_operands[2].elements;                                                                     \
        VECTOR(T, var, 0);                                                                                             \
        NUMBER(T, C, load, alpha, 1);                                                                                  \
        GRADIENT(T, delta, 2);                                                                                         \
        EACH var[i] = store(load(var[i]) - R(alpha * load(delta[i])));                                                 \
    }                                                                                                                  \
                                                                                                                       \
    static void momentum_##type(const twi_run *r)                                                                      \
    {                                                                                                                  \
        int64_t n = r->input_operands[3].elements;                                                                     \
        VECTOR(T, var, 0);                                                                                             \
        VECTOR(T, accum, 1);                                                                                           \
        NUMBER(T, C, load, rate, 2);                                                                                   \
        GRADIENT(T, grad, 3);                                                                                          \
        NUMBER(T, C, load, momentum, 4);                                                                               \
        if (r->state) {                                                                                                \
            EACH                                                                                                       \
            {                                                                                                          \
                C a = R(R(load(accum[i]) * momentum) + load(grad[i]));                                                 \
                accum[i] = store(a);                                                                                   \
                var[i] = store(load(var[i]) - R(R(load(grad[i]) * rate) + R(R(a * momentum) * rate)));                 \
            }                                                                                                          \
        } else {                                                                                                       \
            EACH                                                                                                       \
            {                                                                                                          \
                C a = R(R(load(accum[i]) * momentum) + load(grad[i]));                                                 \
                accum[i] = store(a);                                                                                   \
                var[i] = store(load(var[i]) - R(a * rate));                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void adam_##type(const twi_run *r)                                                                          \
    {                                                                                                                  \
        int64_t n = r->input_operands[9].elements;                                                                     \
        VECTOR(T, var, 0);                                                                                             \
        VECTOR(T, m, 1);                                                                                               \
        VECTOR(T, v, 2);                                                                                               \
        NUMBER(T, C, load, beta1_power, 3);                                                                            \
        NUMBER(T, C, load, beta2_power, 4);                                                                            \
        NUMBER(T, C, load, rate, 5);                                                                                   \
        NUMBER(T, C, load, beta1, 6);                                                                                  \
        NUMBER(T, C, load, beta2, 7);                                                                                  \
        NUMBER(T, C, load, epsilon, 8);                                                                                \
        GRADIENT(T, grad, 9);                                                                                          \
        const C alpha = R(R(rate * R((C)SQRT_##C(R(1 - beta2_power)))) / R(1 - beta1_power));                          \
        const C keep1 = R(1 - beta1), keep2 = R(1 - beta2);                                                            \
        const bool nesterov = r->state;                                                                                \
        EACH                                                                                                           \
        {                                                                                                              \
            C g = load(grad[i]);                                                                                       \
            C m1 = R(load(m[i]) + R(R(g - load(m[i])) * keep1));                                                       \
            C v1 = R(load(v[i]) + R(R(R(g * g) - load(v[i])) * keep2));                                                \
            C direction = nesterov ? R(R(g * keep1) + R(beta1 * m1)) : m1;                                             \
            m[i] = store(m1);                                                                                          \
            v[i] = store(v1);                                                                                          \
            var[i] = store(load(var[i]) - R(R(direction * alpha) / R(R((C)SQRT_##C(v1)) + epsilon)));                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void rms_prop_##type(const twi_run *r)                                                                      \
    {                                                                                                                  \
        int64_t n = r->input_operands[7].elements;                                                                     \
        VECTOR(T, var, 0);                                                                                             \
        VECTOR(T, ms, 1);                                                                                              \
        VECTOR(T, mom, 2);                                                                                             \
        NUMBER(T, C, load, rate, 3);                                                                                   \
        NUMBER(T, C, load, rho, 4);                                                                                    \
        NUMBER(T, C, load, momentum, 5);                                                                               \
        NUMBER(T, C, load, epsilon, 6);                                                                                \
        GRADIENT(T, grad, 7);                                                                                          \
        const C keep = R(1 - rho);                                                                                     \
        EACH                                                                                                           \
        {                                                                                                              \
            C g = load(grad[i]);                                                                                       \
            C ms1 = R(load(ms[i]) + R(R(R(g * g) - load(ms[i])) * keep));                                              \
            C mom1 = R(R(load(mom[i]) * momentum) + R(R(g * rate) / R((C)SQRT_##C(R(epsilon + ms1)))));                \
            ms[i] = store(ms1);                                                                                        \
            mom[i] = store(mom1);                                                                                      \
            var[i] = store(load(var[i]) - mom1);                                                                       \
        }                                                                                                              \
    }

#define SQRT_float sqrtf
#define SQRT_double sqrt
#define SQRT_complex64 csqrtf
#define SQRT_complex128 csqrt
typedef float _Complex complex64;
typedef double _Complex complex128;
#define ROUND_HALF(x) tw_half_to_float(tw_float_to_half(x))
#define ROUND_BFLOAT16(x) tw_bfloat16_to_float(tw_float_to_bfloat16(x))

UPDATES(float, EACH_VECTOR, float, float, , , )
UPDATES(double, EACH_VECTOR, double, double, , , )
UPDATES(half, EACH_ELEMENT, uint16_t, float, tw_half_to_float, tw_float_to_half, ROUND_HALF)
UPDATES(bfloat16, EACH_ELEMENT, uint16_t, float, tw_bfloat16_to_float, tw_float_to_bfloat16, ROUND_BFLOAT16)
UPDATES(complex64, EACH_ELEMENT, complex64, complex64, , , )
UPDATES(complex128, EACH_ELEMENT, complex128, complex128, , , )

/* run() of an optimizer whose gradient is input k. */
#define RUN_UPDATE(update, k)                                                                                          \
    static tw_status run_##update(const twi_run *r)                                                                    \
    {                                                                                                                  \
        switch (r->input_operands[k].dtype) {                                                                          \
        case TW_FLOAT64:                                                                                               \
            update##_double(r);                                                                                        \
            break;                                                                                                     \
        case TW_FLOAT16:                                                                                               \
            update##_half(r);                                                                                          \
            break;                                                                                                     \
        case TW_BFLOAT16:                                                                                              \
            update##_bfloat16(r);                                                                                      \
            break;                                                                                                     \
        case TW_COMPLEX64:                                                                                             \
            update##_complex64(r);                                                                                     \
            break;                                                                                                     \
        case TW_COMPLEX128:                                                                                            \
            update##_complex128(r);                                                                                    \
            break;                                                                                                     \
        default:                                                                                                       \
            update##_float(r);                                                                                         \
        }                                                                                                              \
        return TW_OK;                                                                                                  \
    }

RUN_UPDATE(gradient_descent, 2)
RUN_UPDATE(momentum, 3)
RUN_UPDATE(adam, 9)
RUN_UPDATE(rms_prop, 7)

#define ANY_TYPE (TWI_STORED_TYPES | TWI_TYPE(TW_STRING))
#define ADDED_TYPES (TWI_NUMBER_TYPES | TWI_COMPLEX_TYPES)
#define UPDATED_TYPES (TWI_FLOAT_TYPES | TWI_COMPLEX_TYPES)

const twi_kernel twi_cpu_state_kernels[] = {
    {"VarHandleOp", "plain", 0},
    {"ReadVariableOp", "plain", ANY_TYPE, prepare_update, run_read},
    {"VarIsInitializedOp", "plain", 0, NULL, run_is_initialized},
    {"DestroyResourceOp", "plain", 0, prepare_destroy, run_destroy, twi_free},
    {"VariableShape", "plain", 0, NULL, run_variable_shape},
    {"AssignVariableOp", "plain", ANY_TYPE, prepare_update, run_assign},
    {"AssignAddVariableOp", "plain", ADDED_TYPES, prepare_update, run_assign_add},
    {"AssignSubVariableOp", "plain", ADDED_TYPES, prepare_update, run_assign_sub},
    {"RngReadAndSkip", "plain", 0, twi_random_prepare_kept, run_generator},
    {"RngSkip", "plain", 0, twi_random_prepare_kept, run_generator},
    {"ResourceCountUpTo", "plain", 0, prepare_count, run_count, twi_free},
    {"ResourceApplyGradientDescent", "plain", UPDATED_TYPES, prepare_optimizer, run_gradient_descent},
    {"ResourceApplyMomentum", "plain", UPDATED_TYPES, prepare_optimizer, run_momentum},
    {"ResourceApplyAdam", "plain", UPDATED_TYPES, prepare_optimizer, run_adam},
    {"ResourceApplyRMSProp", "plain", UPDATED_TYPES, prepare_optimizer, run_rms_prop},
    {0},
};
