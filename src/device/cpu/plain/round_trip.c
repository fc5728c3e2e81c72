/* round_trip.c - QuantizeAndDequantize: floats rounded to what integers of few bits can say of them. 0 stays 0: the
 * range is scaled until it fits into that of the integers, and not moved. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

typedef struct rounding {
    bool is_signed, range_given, narrow, half_up;
    int bits;        /* 0: input 3 says how many */
    int axis;        /* whose slices have ranges of their own; -1: there is one range */
    float low, high; /* of attributes, which the first version has */
} rounding;

static tw_status prepare(twi_prepare *p)
{
    bool third = p->num_inputs == 4;
    rounding s = {.is_signed = twi_attr_bool(p->attrs, "signed_input", true),
                  .range_given = twi_attr_bool(p->attrs, "range_given", third),
                  .narrow = twi_attr_bool(p->attrs, "narrow_range", false),
                  .half_up = strcmp(twi_attr_string(p->attrs, "round_mode", ""), "HALF_UP") == 0,
                  .axis = (int)twi_attr_int(p->attrs, "axis", -1),
                  .bits = third ? 0 : (int)twi_attr_int(p->attrs, "num_bits", 8),
                  .low = twi_attr_float(p->attrs, "input_min", 0),
                  .high = twi_attr_float(p->attrs, "input_max", 0)};
    tw_status status = twi_prepare_typed(p);
    if (!third && (s.bits < (s.is_signed ? 2 : 1) || s.bits > 62))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': num_bits is out of range: %d with signed_input %d",
                        p->op, p->node, s.bits, s.is_signed);
    p->can_overwrite[0] = true;
    return status == TW_OK ? twi_keep(p, &s, sizeof s) : status;
}

static tw_status find_bits(const twi_run *r, int *bits)
{
    const rounding *s = r->state;
    *bits = s->bits ? s->bits : *(const int32_t *)r->inputs[3];
    if (*bits >= (s->is_signed ? 2 : 1) && *bits <= 62)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': num_bits is out of range: %d with signed_input %d", r->node,
                    *bits, s->is_signed);
}

/* Element i of slice `slice` along the axis. */
static int64_t element_of(tw_shape shape, int axis, int64_t slice, int64_t i)
{
    int64_t inner = axis < 0 ? 1 : twi_elements_between(shape, axis + 1, shape.rank);
    return axis < 0 ? i : (i / inner * shape.dims[axis] + slice) * inner + i % inner;
}

#define BODY "device/cpu/plain/round_trip.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY

TWI_WIDENED(round_trip)

static tw_status prepare_gradient(twi_prepare *p)
{
    rounding s = {.axis = (int)twi_attr_int(p->attrs, "axis", -1)};
    tw_status status = twi_prepare_typed(p);
    p->can_overwrite[0] = true;
    return status == TW_OK ? twi_keep(p, &s, sizeof s) : status;
}

TWI_WIDENED(round_trip_grad)

const twi_kernel twi_cpu_round_trip_kernels[] = {
    TWI_FLOAT_ROWS("QuantizeAndDequantize", prepare, round_trip, twi_free),
    TWI_FLOAT_ROWS("QuantizeAndDequantizeV2", prepare, round_trip, twi_free),
    TWI_FLOAT_ROWS("QuantizeAndDequantizeV3", prepare, round_trip, twi_free),
    TWI_FLOAT_ROWS("QuantizeAndDequantizeV4", prepare, round_trip, twi_free),
    TWI_FLOAT_ROWS("QuantizeAndDequantizeV4Grad", prepare_gradient, round_trip_grad, twi_free),
    {0},
};
