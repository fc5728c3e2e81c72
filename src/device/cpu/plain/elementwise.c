/* elementwise.c - arithmetic, comparisons, logic and conversion, element by element, in plain C.
 * Inputs of the binary ones broadcast. Results do not depend on the number of threads. */
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/plain/elementwise.h"
#include "device/cpu/vector/casts.h"
#include "tensor/tensor.h"

#include <string.h>
#include <tgmath.h>

#pragma GCC diagnostic ignored "-Wtype-limits" /* one body serves signed and unsigned types */

/* Integers wrap; a divisor of zero is an error before anything is divided, if anything is. */
static tw_status check_divisors(const twi_run *r, const void *values, size_t size)
{
    static const char zero[8];
    int64_t divisors = r->output_operands[0].elements ? r->input_operands[1].elements : 0;
    for (int64_t i = 0; i < divisors; i++)
        if (memcmp((const char *)values + (size_t)i * size, zero, size) == 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "integer division by zero");
    return TW_OK;
}

#define DIVISION(f)                                                                                                    \
    static __attribute__((unused)) tw_status NAME(f##_checked)(const twi_run *r)                                       \
    {                                                                                                                  \
        tw_status status = check_divisors(r, r->inputs[1], sizeof(REAL));                                              \
        return status == TW_OK ? NAME(f)(r) : status;                                                                  \
    }

/* Functions of floats: op, name, y from x. One more is one line more. */
#define FLOAT_UNARY_LIST(X)                                                                                            \
    X("Reciprocal", reciprocal, 1 / x)                                                                                 \
    X("Sqrt", square_root, sqrt(x))                                                                                    \
    X("Rsqrt", reciprocal_root, 1 / sqrt(x))                                                                           \
    X("Exp", exponential, exp(x))                                                                                      \
    X("Expm1", exponential_1, expm1(x))                                                                                \
    X("Log", logarithm, log(x))                                                                                        \
    X("Log1p", logarithm_1, log1p(x))                                                                                  \
    X("Sin", sine, sin(x))                                                                                             \
    X("Cos", cosine, cos(x))                                                                                           \
    X("Tan", tangent, tan(x))                                                                                          \
    X("Tanh", hyperbolic_tangent, tanh(x))                                                                             \
    X("Sigmoid", sigmoid, x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)))                                           \
    X("Erf", error_function, erf(x))                                                                                   \
    X("Floor", round_down, floor(x))                                                                                   \
    X("Ceil", round_up, ceil(x))                                                                                       \
    X("Round", round_even, rint(x))

#define BODY "device/cpu/plain/elementwise_any.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY
#define BODY "device/cpu/plain/elementwise_float.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY
#define BODY "device/cpu/plain/elementwise_integer.inl"
#include "device/cpu/plain/for_integers.h"

#define REAL bool
#define NAME(f) f##_bool
BINARY(logical_and, bool, x &&y)
BINARY(logical_or, bool, x || y)
BINARY(same, bool, x == y)
BINARY(differs, bool, x != y)
UNARY(logical_not, bool, !x)
#undef REAL
#undef NAME

tw_status twi_prepare_binary(twi_prepare *p)
{
    twi_broadcast *b = p->state = twi_alloc(sizeof *b);
    if (!b)
        return twi_fail_memory(p->error, "preparing an element-wise kernel");
    twi_broadcast_init(b, p->inputs[0].shape, p->inputs[1].shape, p->outputs[0].shape);
    return twi_prepare_elementwise(p);
}

tw_status twi_prepare_comparison(twi_prepare *p)
{
    tw_status status = twi_prepare_binary(p);
    memset(p->can_overwrite, 0, sizeof p->can_overwrite);
    return status;
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

static bool strings_equal(const tw_string *a, const tw_string *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static tw_status compare_strings(const twi_run *r, bool wanted)
{
    const twi_broadcast *b = r->state;
    bool *to = r->outputs[0];
    for (int64_t k = 0; k < b->runs; k++) {
        int64_t x, y;
        twi_broadcast_start(b, k, &x, &y);
        for (int64_t i = 0; i < b->run; i++)
            *to++ = strings_equal((const tw_string *)r->inputs[0] + x + (b->x_moves ? i : 0),
                                  (const tw_string *)r->inputs[1] + y + (b->y_moves ? i : 0)) == wanted;
    }
    return TW_OK;
}

static tw_status same_string(const twi_run *r)
{
    return compare_strings(r, true);
}

static tw_status differs_string(const twi_run *r)
{
    return compare_strings(r, false);
}

/* One behind the other. */
static bool join_strings(tw_string *to, const tw_string *x, const tw_string *y)
{
    twi_text both = {0};
    twi_text_append(&both, x->data ? x->data : "", x->size);
    twi_text_append(&both, y->data ? y->data : "", y->size);
    bool joined = !both.failed && twi_string_set(to, twi_text_string(&both), both.size);
    twi_text_free(&both);
    return joined;
}

static tw_status add_string(const twi_run *r)
{
    const twi_broadcast *b = r->state;
    tw_string *to = r->outputs[0];
    for (int64_t k = 0; k < b->runs; k++) {
        int64_t x, y;
        twi_broadcast_start(b, k, &x, &y);
        for (int64_t i = 0; i < b->run; i++)
            if (!join_strings(to++, (const tw_string *)r->inputs[0] + x + (b->x_moves ? i : 0),
                              (const tw_string *)r->inputs[1] + y + (b->y_moves ? i : 0)))
                return twi_fail_memory(r->error, r->node);
    }
    return TW_OK;
}

/* ---- conversion -------------------------------------------------------------------------------------------------- */

/* Floats are cut towards zero; out of range becomes the nearest integer, NaN 0 (TensorFlow leaves both undefined). */
static int64_t to_integer(double value, tw_dtype dtype, int64_t low, int64_t high)
{
    if (value != value)
        return 0;
    if (dtype == TW_UINT64 && value >= 0x1p63)
        return value >= 0x1p64 ? -1 : (int64_t)(uint64_t)value; /* its bits */
    return value <= (double)low ? low : value >= (double)high ? high : (int64_t)value;
}

static double read_float(const twi_operand *operand, const void *data, int64_t i)
{
    switch (operand->dtype) {
    case TW_FLOAT32:
        return ((const float *)data)[i];
    case TW_FLOAT64:
        return ((const double *)data)[i];
    case TW_FLOAT16:
        return tw_half_to_float(((const uint16_t *)data)[i]);
    default:
        return tw_bfloat16_to_float(((const uint16_t *)data)[i]);
    }
}

/* As a double, of a number beyond those of int64_t too. */
static double double_of_integer(tw_dtype dtype, const void *data, int64_t i)
{
    return dtype == TW_UINT64 ? (double)((const uint64_t *)data)[i] : (double)twi_integer_at(dtype, data, i);
}

static bool is_float(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
}

static void write_float(const twi_operand *operand, void *data, int64_t i, double value)
{
    switch (operand->dtype) {
    case TW_FLOAT32:
        ((float *)data)[i] = (float)value;
        break;
    case TW_FLOAT64:
        ((double *)data)[i] = value;
        break;
    case TW_FLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_half((float)value);
        break;
    default:
        ((uint16_t *)data)[i] = tw_float_to_bfloat16((float)value);
    }
}

static void integer_range(tw_dtype dtype, int64_t *low, int64_t *high)
{
    const uint64_t unsigned_types = TWI_UNSIGNED_TYPES | TWI_TYPE(TW_QUINT8) | TWI_TYPE(TW_QUINT16);
    bool is_unsigned = unsigned_types & TWI_TYPE(dtype);
    int bits = (int)(8 * tw_dtype_size(dtype)) - !is_unsigned;
    *high = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
    *low = is_unsigned ? 0 : -*high - 1;
}

/* To or from complex numbers, which are cast as their parts are: real numbers have no imaginary one, and take the
 * real. */
static tw_status cast_complex(const twi_run *r)
{
    twi_operand from = r->input_operands[0], to = r->output_operands[0];
    bool from_complex = tw_dtype_is_complex(from.dtype), to_complex = tw_dtype_is_complex(to.dtype);
    int64_t low, high, step = from_complex ? 2 : 1;
    integer_range(to.dtype, &low, &high);
    if (from_complex)
        from.dtype = twi_part_type(from.dtype);
    if (to_complex)
        to.dtype = twi_part_type(to.dtype);
    for (int64_t i = 0; i < to.elements; i++) {
        double real = is_float(from.dtype) ? read_float(&from, r->inputs[0], step * i)
                                           : double_of_integer(from.dtype, r->inputs[0], i);
        double imaginary = from_complex ? read_float(&from, r->inputs[0], 2 * i + 1) : 0;
        if (to_complex) {
            write_float(&to, r->outputs[0], 2 * i, real);
            write_float(&to, r->outputs[0], 2 * i + 1, imaginary);
        } else if (is_float(to.dtype)) {
            write_float(&to, r->outputs[0], i, real);
        } else {
            twi_put_integer(to.dtype, r->outputs[0], i,
                            to.dtype == TW_BOOL ? real != 0 : to_integer(real, to.dtype, low, high));
        }
    }
    return TW_OK;
}

static tw_status cast(const twi_run *r)
{
    const twi_operand *from = &r->input_operands[0], *to = &r->output_operands[0];
    const void *x = r->inputs[0];
    void *y = r->outputs[0];
    int64_t n = to->elements, low, high;
    if (tw_dtype_is_complex(from->dtype) || tw_dtype_is_complex(to->dtype))
        return cast_complex(r);
    integer_range(to->dtype, &low, &high);
    for (int64_t i = 0; i < n; i++) {
        if (is_float(from->dtype)) {
            double value = read_float(from, x, i);
            if (is_float(to->dtype))
                write_float(to, y, i, value);
            else
                twi_put_integer(to->dtype, y, i,
                                to->dtype == TW_BOOL ? value != 0 : to_integer(value, to->dtype, low, high));
        } else if (is_float(to->dtype)) {
            write_float(to, y, i, double_of_integer(from->dtype, x, i));
        } else {
            twi_put_integer(to->dtype, y, i, twi_integer_at(from->dtype, x, i));
        }
    }
    return TW_OK;
}

static tw_status float_to_bfloat16(const twi_run *r)
{
    const float *x = r->inputs[0];
    uint16_t *y = r->outputs[0];
    int64_t n = r->output_operands[0].elements;
    TWI_PARALLEL_ELEMENTS_LOOP(r, n)
    for (int64_t i = 0; i < n; i++)
        y[i] = twi_narrow_to_bfloat16(x[i]);
    return TW_OK;
}

static tw_status bfloat16_to_float(const twi_run *r)
{
    const uint16_t *x = r->inputs[0];
    uint32_t *y = r->outputs[0];
    int64_t n = r->output_operands[0].elements;
    TWI_PARALLEL_ELEMENTS_LOOP(r, n)
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint32_t)x[i] << 16;
    return TW_OK;
}

static bool casts(const twi_prepare *p, tw_dtype from, tw_dtype to)
{
    return p->inputs[0].dtype == from && p->outputs[0].dtype == to;
}

static tw_status accepts_to_bfloat16(const twi_prepare *p)
{
    return casts(p, TW_FLOAT32, TW_BFLOAT16) ? TW_OK : TW_UNIMPLEMENTED;
}

static tw_status accepts_from_bfloat16(const twi_prepare *p)
{
    return casts(p, TW_BFLOAT16, TW_FLOAT32) ? TW_OK : TW_UNIMPLEMENTED;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define NUMBER_BINARY(op, f)                                                                                           \
    TWI_FLOAT_ROWS(op, twi_prepare_binary, f, twi_free), TWI_INTEGER_ROWS(op, twi_prepare_binary, f, twi_free)
#define NUMBER_UNARY(op, f)                                                                                            \
    TWI_FLOAT_ROWS(op, twi_prepare_elementwise, f, NULL), TWI_INTEGER_ROWS(op, twi_prepare_elementwise, f, NULL)
#define SIGNED_UNARY(op, f)                                                                                            \
    TWI_FLOAT_ROWS(op, twi_prepare_elementwise, f, NULL), TWI_SIGNED_INTEGER_ROWS(op, twi_prepare_elementwise, f, NULL)
#define FLOAT_BINARY(op, f) TWI_FLOAT_ROWS(op, twi_prepare_binary, f, twi_free)
#define FLOAT_UNARY(op, f) TWI_FLOAT_ROWS(op, twi_prepare_elementwise, f, NULL)
#define FLOAT_TEST(op, f) TWI_FLOAT_ROWS(op, twi_prepare_typed, f, NULL)
#define COMPARISON(op, f)                                                                                              \
    TWI_FLOAT_ROWS(op, twi_prepare_comparison, f, twi_free), TWI_INTEGER_ROWS(op, twi_prepare_comparison, f, twi_free)
#define INTEGER_DIVISION(op, f) TWI_INTEGER_ROWS(op, twi_prepare_binary, f, twi_free)
/* By the integers that they are. */
#define QUANTIZED_ROWS(op, f)                                                                                          \
    {op, "plain", TWI_TYPE(TW_QINT8) | TWI_TYPE(TW_QUINT8), twi_prepare_comparison, f##_int8, twi_free},               \
        {op, "plain", TWI_TYPE(TW_QINT16) | TWI_TYPE(TW_QUINT16), twi_prepare_comparison, f##_int16, twi_free},        \
        {op, "plain", TWI_TYPE(TW_QINT32), twi_prepare_comparison, f##_int32, twi_free}
#define BOOL_ROW(op, prepare, f, release) {op, "plain", TWI_TYPE(TW_BOOL), prepare, f, release}

TWI_WIDENED(add)
TWI_WIDENED(sub)
TWI_WIDENED(mul)
TWI_WIDENED(mul_no_nan)
TWI_WIDENED(div)
TWI_WIDENED(div_no_nan)
TWI_WIDENED(xdivy)
TWI_WIDENED(truncate_div)
TWI_WIDENED(floor_div)
TWI_WIDENED(floor_mod)
TWI_WIDENED(mod)
TWI_WIDENED(maximum)
TWI_WIDENED(minimum)
TWI_WIDENED(squared_difference)
TWI_WIDENED(power)
TWI_WIDENED(same)
TWI_WIDENED(differs)
TWI_WIDENED(less)
TWI_WIDENED(less_equal)
TWI_WIDENED(greater)
TWI_WIDENED(greater_equal)
TWI_WIDENED(negative)
TWI_WIDENED(absolute)
TWI_WIDENED(sign)
TWI_WIDENED(square)
TWI_WIDENED(clip)
TWI_WIDENED(add_n)
#define WIDEN(op, f, expression) TWI_WIDENED(f)
FLOAT_UNARY_LIST(WIDEN)
TWI_WIDENED(is_nan)
TWI_WIDENED(is_inf)
TWI_WIDENED(is_finite)
TWI_WIDENED(sqrt_grad)
TWI_WIDENED(rsqrt_grad)
TWI_WIDENED(reciprocal_grad)
TWI_WIDENED(sigmoid_grad)
TWI_WIDENED(tanh_grad)
TWI_WIDENED(approximate)

static tw_status prepare_tolerance(twi_prepare *p)
{
    float *tolerance = twi_alloc(sizeof *tolerance);
    if (!tolerance)
        return twi_fail_memory(p->error, "preparing a comparison");
    *tolerance = twi_attr_float(p->attrs, "tolerance", 1e-5f);
    p->state = tolerance;
    return twi_prepare_typed(p);
}

/* Output 0 may lie over input 0 alone: the limits are read again and again. */
static tw_status prepare_clip(twi_prepare *p)
{
    tw_status status = twi_prepare_elementwise(p);
    p->can_overwrite[1] = p->can_overwrite[2] = false;
    return status;
}

#define ROW(op, f, expression) FLOAT_UNARY(op, f),

const twi_kernel twi_cpu_elementwise_kernels[] = {
    NUMBER_BINARY("Add", add),
    {"Add", "plain", TWI_TYPE(TW_STRING), twi_prepare_comparison, add_string, twi_free},
    NUMBER_BINARY("AddV2", add),
    NUMBER_BINARY("Sub", sub),
    NUMBER_BINARY("Mul", mul),
    FLOAT_BINARY("MulNoNan", mul_no_nan),
    FLOAT_BINARY("Div", div),
    INTEGER_DIVISION("Div", truncate_div_checked),
    FLOAT_BINARY("RealDiv", div),
    INTEGER_DIVISION("RealDiv", truncate_div_checked),
    FLOAT_BINARY("DivNoNan", div_no_nan),
    FLOAT_BINARY("Xdivy", xdivy),
    FLOAT_BINARY("TruncateDiv", truncate_div),
    INTEGER_DIVISION("TruncateDiv", truncate_div_checked),
    FLOAT_BINARY("FloorDiv", floor_div),
    INTEGER_DIVISION("FloorDiv", floor_div_checked),
    FLOAT_BINARY("FloorMod", floor_mod),
    INTEGER_DIVISION("FloorMod", floor_mod_checked),
    FLOAT_BINARY("Mod", mod),
    TWI_WIDE_INTEGER_ROWS("Mod", twi_prepare_binary, mod_checked, twi_free),
    FLOAT_BINARY("TruncateMod", mod),
    TWI_WIDE_INTEGER_ROWS("TruncateMod", twi_prepare_binary, mod_checked, twi_free),
    NUMBER_BINARY("Maximum", maximum),
    NUMBER_BINARY("Minimum", minimum),
    FLOAT_BINARY("SquaredDifference", squared_difference),
    TWI_WIDE_INTEGER_ROWS("SquaredDifference", twi_prepare_binary, squared_difference, twi_free),
    FLOAT_BINARY("Pow", power),
    TWI_SIGNED_INTEGER_ROWS("Pow", twi_prepare_binary, power_checked, twi_free),

    SIGNED_UNARY("Neg", negative),
    SIGNED_UNARY("Abs", absolute),
    SIGNED_UNARY("Sign", sign),
    NUMBER_UNARY("Square", square),
    FLOAT_UNARY_LIST(ROW)
    FLOAT_UNARY("Inv", reciprocal),
    TWI_WIDE_INTEGER_ROWS("Round", twi_prepare_elementwise, unchanged, NULL),
    FLOAT_UNARY("SqrtGrad", sqrt_grad),
    FLOAT_UNARY("RsqrtGrad", rsqrt_grad),
    FLOAT_UNARY("ReciprocalGrad", reciprocal_grad),
    FLOAT_UNARY("InvGrad", reciprocal_grad),
    FLOAT_UNARY("SigmoidGrad", sigmoid_grad),
    FLOAT_UNARY("TanhGrad", tanh_grad),
    TWI_FLOAT_ROWS("ClipByValue", prepare_clip, clip, NULL),
    TWI_INTEGER_ROWS("ClipByValue", prepare_clip, clip, NULL),
    NUMBER_UNARY("AddN", add_n),
    NUMBER_UNARY("AccumulateNV2", add_n),

    COMPARISON("Equal", same),
    COMPARISON("NotEqual", differs),
    COMPARISON("Less", less),
    COMPARISON("LessEqual", less_equal),
    COMPARISON("Greater", greater),
    COMPARISON("GreaterEqual", greater_equal),
    BOOL_ROW("Equal", twi_prepare_comparison, same_bool, twi_free),
    QUANTIZED_ROWS("Equal", same),
    QUANTIZED_ROWS("NotEqual", differs),
    BOOL_ROW("NotEqual", twi_prepare_comparison, differs_bool, twi_free),
    {"Equal", "plain", TWI_TYPE(TW_STRING), twi_prepare_comparison, same_string, twi_free},
    {"NotEqual", "plain", TWI_TYPE(TW_STRING), twi_prepare_comparison, differs_string, twi_free},
    TWI_FLOAT_ROWS("ApproximateEqual", prepare_tolerance, approximate, twi_free),
    {"LogicalAnd", "plain", 0, twi_prepare_binary, logical_and_bool, twi_free},
    {"LogicalOr", "plain", 0, twi_prepare_binary, logical_or_bool, twi_free},
    {"LogicalNot", "plain", 0, twi_prepare_elementwise, logical_not_bool, NULL},
    FLOAT_TEST("IsNan", is_nan),
    FLOAT_TEST("IsInf", is_inf),
    FLOAT_TEST("IsFinite", is_finite),

    {"Cast", "fast", 0, NULL, float_to_bfloat16, NULL, .accepts = accepts_to_bfloat16},
    {"Cast", "fast", 0, NULL, bfloat16_to_float, NULL, .accepts = accepts_from_bfloat16},
    {"Cast", "plain", 0, NULL, cast, NULL},
    {0},
};
