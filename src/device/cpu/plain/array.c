/* array.c - values that are passed on, arrays that are made of nothing, and what shapes are.
 * Never here: cutting, joining and moving (slice.c, rearrange.c, gather.c). */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "tensor/variant.h"

#include <math.h>
#include <string.h>

/* ---- the same elements ------------------------------------------------------------------------------------------- */

static tw_status run_identity_n(const twi_run *r)
{
    for (int i = 0; i < r->num_inputs; i++) {
        const twi_operand *operand = &r->input_operands[i];
        twi_move move = {0};
        if (operand->dtype == TW_RESOURCE) /* the planner hands it on */
            continue;
        if (operand->dtype == TW_VARIANT) {
            twi_copy_owned(operand->dtype, r->inputs[i], r->outputs[i], 1);
            continue;
        }
        twi_move_axis(&move, operand->elements, 1, 1);
        tw_status status = twi_move_elements(r, &move, operand->dtype, r->inputs[i], r->outputs[i]);
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

/* Bits of nan and infinity found among the elements. */
enum { HAS_NAN = 1, HAS_INF = 2 };

static int numeric_flaws(const twi_operand *operand, const void *data)
{
    tw_tensor view = {.dtype = operand->dtype, .data = (void *)data};
    int flaws = 0;
    for (int64_t i = 0; i < operand->elements; i++) {
        double value = tw_tensor_value(&view, i);
        flaws |= isnan(value) ? HAS_NAN : isinf(value) ? HAS_INF : 0;
    }
    return flaws;
}

static tw_status prepare_check_numerics(twi_prepare *p)
{
    p->state = (void *)twi_attr_string(p->attrs, "message", "");
    p->can_overwrite[0] = true;
    return TW_OK;
}

static tw_status run_check_numerics(const twi_run *r)
{
    static const char *const names[] = {"", "NaN", "Inf", "Inf and NaN"};
    int flaws = numeric_flaws(&r->input_operands[0], r->inputs[0]);
    if (flaws)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "%s : Tensor had %s values", (const char *)r->state,
                        names[flaws]);
    return r->inputs[0] == r->outputs[0] ? TW_OK : run_identity_n(r);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* What does not fit into int32 is refused before the step. */
static tw_status check_integer(const twi_prepare *p, int i, int64_t value)
{
    if (p->outputs[i].dtype == TW_INT64 || value <= INT32_MAX)
        return TW_OK;
    return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': %lld is too large for int32; set out_type to int64", p->op,
                    p->node, (long long)value);
}

static tw_status prepare_shape(twi_prepare *p)
{
    tw_status status = TW_OK;
    for (int i = 0; i < p->num_outputs; i++)
        for (int k = 0; k < p->inputs[i].shape.rank && status == TW_OK; k++)
            status = check_integer(p, i, p->inputs[i].shape.dims[k]);
    return status;
}

static tw_status run_shape(const twi_run *r)
{
    for (int i = 0; i < r->num_outputs; i++)
        for (int k = 0; k < r->input_operands[i].shape.rank; k++)
            twi_output_int(r, i, k, r->input_operands[i].shape.dims[k]);
    return TW_OK;
}

/* Of an array of lists, which is a list of them. */
static tw_status run_count(const twi_run *r)
{
    const twi_tensor_list *list = *(twi_tensor_list *const *)r->inputs[0];
    twi_output_int(r, 0, 0, list ? list->count : 0);
    return TW_OK;
}

static tw_status prepare_size(twi_prepare *p)
{
    return check_integer(p, 0, p->inputs[0].elements);
}

static tw_status run_size(const twi_run *r)
{
    twi_output_int(r, 0, 0, r->input_operands[0].elements);
    return TW_OK;
}

static tw_status run_rank(const twi_run *r)
{
    twi_output_int(r, 0, 0, r->input_operands[0].shape.rank);
    return TW_OK;
}

/* Dimension i of `rank` of the shape that an input spells; shorter shapes have ones in front. */
static int64_t spelled_dimension(const twi_run *r, int input, int i, int rank)
{
    int64_t own = i - (rank - r->input_operands[input].elements);
    return own < 0 ? 1 : twi_input_int(r, input, own);
}

static bool same_shapes(const twi_run *r)
{
    int64_t n = r->input_operands[0].elements;
    bool same = n == r->input_operands[1].elements;
    for (int64_t i = 0; i < n && same; i++)
        same = twi_input_int(r, 0, i) == twi_input_int(r, 1, i);
    return same;
}

/* The axes to sum the gradient of each side of a broadcast over. Where both sides have 1, both count. */
static tw_status run_broadcast_gradient_args(const twi_run *r)
{
    int64_t n[2] = {r->input_operands[0].elements, r->input_operands[1].elements}, rank = n[0] > n[1] ? n[0] : n[1];
    int64_t count[2] = {0, 0};
    for (int i = 0; i < rank && !same_shapes(r); i++) {
        int64_t dim[2] = {spelled_dimension(r, 0, i, (int)rank), spelled_dimension(r, 1, i, (int)rank)};
        if (dim[0] != dim[1] && dim[0] != 1 && dim[1] != 1)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': axis %d has sizes %lld and %lld, which do not broadcast", r->node, i,
                            (long long)dim[0], (long long)dim[1]);
        for (int k = 0; k < 2; k++)
            if (dim[k] == 1 && count[k]++ < r->output_operands[k].elements)
                twi_output_int(r, k, count[k] - 1, i);
    }
    for (int k = 0; k < 2; k++)
        if (count[k] != r->output_operands[k].elements)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': %lld axes of side %d were repeated, planned were %lld", r->node, (long long)count[k],
                            k, (long long)r->output_operands[k].elements);
    return TW_OK;
}

/* The shape that both sides are broadcast to. */
static tw_status run_broadcast_args(const twi_run *r)
{
    int rank = (int)r->output_operands[0].elements;
    for (int i = 0; i < rank; i++) {
        int64_t a = spelled_dimension(r, 0, i, rank), b = spelled_dimension(r, 1, i, rank);
        if (a != b && a != 1 && b != 1)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': axis %d has sizes %lld and %lld, which do not broadcast", r->node, i, (long long)a,
                            (long long)b);
        twi_output_int(r, 0, i, a == 1 ? b : a);
    }
    return TW_OK;
}

/* Where each value begins within their join. */
static tw_status run_concat_offset(const twi_run *r)
{
    int rank = (int)r->input_operands[1].elements, axis;
    int64_t offset = 0;
    tw_status status = twi_input_axis(r, 0, 0, rank, &axis);
    for (int i = 0; i < r->num_outputs && status == TW_OK; i++) {
        if (r->input_operands[i + 1].elements != rank)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': value %d has %lld axes, value 0 has %d", r->node, i,
                            (long long)r->input_operands[i + 1].elements, rank);
        for (int k = 0; k < rank; k++) {
            int64_t dim = twi_input_int(r, i + 1, k);
            if (k != axis && dim != twi_input_int(r, 1, k))
                return twi_fail(r->error, TW_INVALID_ARGUMENT,
                                "'%s': axis %d has size %lld in value %d and %lld in value 0, joined is axis %d",
                                r->node, k, (long long)dim, i, (long long)twi_input_int(r, 1, k), axis);
            twi_output_int(r, i, k, k == axis ? offset : 0);
        }
        offset += twi_input_int(r, i + 1, axis);
    }
    return status;
}

/* ---- numbers and vectors that follow the order of axes --------------------------------------------------------- */

enum { MOST_AXES = 8 };

typedef struct formats {
    int axes;
    int to[MOST_AXES], from[MOST_AXES]; /* where an axis goes, and where axis i comes from */
} formats;

/* Without batch and channels, where a vector has places for neither. */
static int letters(const char *format, bool spatial, char *kept)
{
    int count = 0;
    for (; *format && count < MOST_AXES; format++)
        if (!spatial || !strchr("NC", *format))
            kept[count++] = *format;
    kept[count] = 0;
    return count;
}

static tw_status prepare_formats(twi_prepare *p)
{
    const char *src = twi_attr_string(p->attrs, "src_format", "NHWC");
    const char *dst = twi_attr_string(p->attrs, "dst_format", "NCHW");
    char from[MOST_AXES + 1], to[MOST_AXES + 1];
    bool is_vector = strcmp(p->op, "DataFormatVecPermute") == 0;
    int64_t places = p->inputs[0].shape.rank ? p->inputs[0].shape.dims[0] : -1;
    formats found = {0}, *f = &found;
    bool spatial = is_vector && places == (int64_t)strlen(src) - 2;
    f->axes = letters(src, spatial, from);
    bool fits = letters(dst, spatial, to) == f->axes && strlen(src) <= MOST_AXES && strlen(src) == strlen(dst);
    for (int i = 0; i < f->axes && fits; i++) {
        const char *there = strchr(to, from[i]);
        fits = there && strchr(from, from[i]) == &from[i];
        f->to[i] = there ? (int)(there - to) : 0;
        f->from[f->to[i]] = i;
    }
    if (!fits)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': dst_format '%s' is no order of src_format '%s'", p->node,
                        dst, src);
    if (is_vector && (places != f->axes || p->inputs[0].elements % (places ? places : 1)))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "'%s': expected %d or %d rows for the format '%s', got %lld",
                        p->node, (int)strlen(src), (int)strlen(src) - 2, src, (long long)places);
    p->state = twi_alloc(sizeof found);
    if (!p->state)
        return twi_fail_memory(p->error, p->node);
    memcpy(p->state, f, sizeof found);
    return TW_OK;
}

static tw_status run_dim_map(const twi_run *r)
{
    const formats *f = r->state;
    for (int64_t i = 0; i < r->input_operands[0].elements; i++) {
        int64_t axis = twi_input_int(r, 0, i);
        if (axis < -f->axes)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': there is no axis %lld of %d", r->node,
                            (long long)axis, f->axes);
        twi_output_int(r, 0, i, f->to[(axis < 0 ? axis + f->axes : axis) % f->axes]); /* as TensorFlow counts on */
    }
    return TW_OK;
}

static tw_status run_vec_permute(const twi_run *r)
{
    const formats *f = r->state;
    int64_t width = r->input_operands[0].elements / (f->axes ? f->axes : 1);
    for (int i = 0; i < f->axes; i++)
        for (int64_t k = 0; k < width; k++)
            twi_output_int(r, 0, i * width + k, twi_input_int(r, 0, f->from[i] * width + k));
    return TW_OK;
}

static tw_status run_invert_permutation(const twi_run *r)
{
    int64_t n = r->input_operands[0].elements;
    for (int64_t i = 0; i < n; i++)
        twi_output_int(r, 0, i, -1);
    const twi_run written = {.inputs = (const void *const *)r->outputs, .input_operands = r->output_operands};
    for (int64_t i = 0; i < n; i++) {
        int64_t to = twi_input_int(r, 0, i);
        if (to < 0 || to >= n)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': number %lld is %lld, which is not between 0 and %lld",
                            r->node, (long long)i, (long long)to, (long long)n - 1);
        if (twi_input_int(&written, 0, to) >= 0)
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld is duplicated in the permutation", r->node,
                            (long long)to);
        twi_output_int(r, 0, to, i);
    }
    return TW_OK;
}

/* ---- new elements ------------------------------------------------------------------------------------------------ */

static tw_status run_fill(const twi_run *r)
{
    const twi_operand *output = &r->output_operands[0];
    return twi_fill_elements(r, output->elements, output->dtype, r->inputs[1], r->outputs[0]);
}

static tw_status run_zeros_like(const twi_run *r)
{
    const twi_operand *output = &r->output_operands[0];
    return twi_clear_elements(r, output->elements, output->dtype, r->outputs[0]);
}

/* The number 1 of a type. */
static const void *one_of(tw_dtype dtype)
{
    static const struct {
        float f32;
        double f64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t half, bfloat16;
        _Alignas(uint64_t) float c64[2]; /* they are moved as whole words */
        _Alignas(uint64_t) double c128[2];
    } one = {1, 1, 1, 1, 1, 1, 0x3c00, 0x3f80, {1, 0}, {1, 0}};
    switch (dtype) {
    case TW_FLOAT32:
        return &one.f32;
    case TW_FLOAT64:
        return &one.f64;
    case TW_FLOAT16:
        return &one.half;
    case TW_BFLOAT16:
        return &one.bfloat16;
    case TW_COMPLEX64:
        return one.c64;
    case TW_COMPLEX128:
        return one.c128;
    case TW_INT16:
    case TW_UINT16:
        return &one.i16;
    case TW_INT32:
    case TW_UINT32:
        return &one.i32;
    case TW_INT64:
    case TW_UINT64:
        return &one.i64;
    default: /* int8, uint8, bool */
        return &one.i8;
    }
}

static tw_status run_ones_like(const twi_run *r)
{
    const twi_operand *output = &r->output_operands[0];
    return twi_fill_elements(r, output->elements, output->dtype, one_of(output->dtype), r->outputs[0]);
}

#define NUMBER(T, i) (*(const T *)r->inputs[i])

/* TensorFlow adds the step again and again, which for floats differs from i * delta. */
#define RANGE(type, T, C, load, store)                                                                                 \
    static void range_##type(const twi_run *r)                                                                         \
    {                                                                                                                  \
        T *to = r->outputs[0], value = NUMBER(T, 0);                                                                   \
        const T delta = NUMBER(T, 2);                                                                                  \
        for (int64_t i = 0; i < r->output_operands[0].elements; i++) {                                                 \
            to[i] = value;                                                                                             \
            value = store((C)load(value) + (C)load(delta));                                                            \
        }                                                                                                              \
    }

/* The last point is the end itself, whatever rounding made of it. */
#define LIN_SPACE(type, T, C, load, store)                                                                             \
    static void lin_space_##type(const twi_run *r)                                                                     \
    {                                                                                                                  \
        T *to = r->outputs[0];                                                                                         \
        const int64_t n = r->output_operands[0].elements;                                                              \
        const C start = load(NUMBER(T, 0)), stop = load(NUMBER(T, 1));                                                 \
        const C step = n > 1 ? load(store(load(store(stop - start)) / (C)(n - 1))) : 0;                                \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = store(start + load(store(step * (C)i)));                                                           \
        if (n > 1)                                                                                                     \
            to[n - 1] = NUMBER(T, 1);                                                                                  \
    }

RANGE(float, float, float, , )
RANGE(double, double, double, , )
RANGE(bfloat16, uint16_t, float, tw_bfloat16_to_float, tw_float_to_bfloat16)
RANGE(int32, int32_t, uint32_t, , (int32_t))
RANGE(int64, int64_t, uint64_t, , (int64_t))
LIN_SPACE(float, float, float, , )
LIN_SPACE(double, double, double, , )
LIN_SPACE(bfloat16, uint16_t, float, tw_bfloat16_to_float, tw_float_to_bfloat16)

static tw_status run_range(const twi_run *r)
{
    switch (r->output_operands[0].dtype) {
    case TW_FLOAT32:
        range_float(r);
        break;
    case TW_FLOAT64:
        range_double(r);
        break;
    case TW_BFLOAT16:
        range_bfloat16(r);
        break;
    case TW_INT64:
        range_int64(r);
        break;
    default:
        range_int32(r);
    }
    return TW_OK;
}

static tw_status run_lin_space(const twi_run *r)
{
    switch (r->output_operands[0].dtype) {
    case TW_FLOAT64:
        lin_space_double(r);
        break;
    case TW_BFLOAT16:
        lin_space_bfloat16(r);
        break;
    default:
        lin_space_float(r);
    }
    return TW_OK;
}

#define RANGE_TYPES                                                                                                    \
    (TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64) | TWI_TYPE(TW_INT32) | TWI_TYPE(TW_INT64))
#define LIN_SPACE_TYPES (TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_FLOAT64))

const twi_kernel twi_cpu_array_kernels[] = {
    /* never run: the plan writes constants and feeds, and passes buffers on */
    {"Const", "plain", 0},
    {"Placeholder", "plain", 0},
    {"PlaceholderV2", "plain", 0},
    {"PlaceholderWithDefault", "plain", 0},
    {"Identity", "plain", 0},
    {"RefIdentity", "plain", 0},
    {"StopGradient", "plain", 0},
    {"Snapshot", "plain", 0},
    {"GuaranteeConst", "plain", 0},
    {"PreventGradient", "plain", 0},
    {"EnsureShape", "plain", 0},
    {"Bitcast", "plain", 0},
    {"Reshape", "plain", 0},
    {"ExpandDims", "plain", 0},
    {"Squeeze", "plain", 0},

    {"IdentityN", "plain", 0, NULL, run_identity_n},
    {"CheckNumerics", "plain", TWI_FLOAT_TYPES, prepare_check_numerics, run_check_numerics},
    {"Shape", "plain", TWI_TYPE(TW_VARIANT), NULL, run_count},
    {"Shape", "plain", 0, prepare_shape, run_shape},
    {"ShapeN", "plain", 0, prepare_shape, run_shape},
    {"Size", "plain", 0, prepare_size, run_size},
    {"Rank", "plain", 0, NULL, run_rank},
    {"BroadcastArgs", "plain", 0, NULL, run_broadcast_args},
    {"BroadcastGradientArgs", "plain", 0, NULL, run_broadcast_gradient_args},
    {"ConcatOffset", "plain", 0, NULL, run_concat_offset},
    {"DataFormatDimMap", "plain", 0, prepare_formats, run_dim_map, twi_free},
    {"DataFormatVecPermute", "plain", 0, prepare_formats, run_vec_permute, twi_free},
    {"InvertPermutation", "plain", 0, NULL, run_invert_permutation},
    {"Fill", "plain", TWI_MOVED_TYPES, NULL, run_fill},
    {"ZerosLike", "plain", TWI_MOVED_TYPES, NULL, run_zeros_like},
    {"OnesLike", "plain", TWI_NUMBER_TYPES | TWI_COMPLEX_TYPES | TWI_TYPE(TW_BOOL), NULL, run_ones_like},
    {"Range", "plain", RANGE_TYPES, NULL, run_range},
    {"LinSpace", "plain", LIN_SPACE_TYPES, NULL, run_lin_space},
    {0},
};
