/* round_trip.c - QuantizeAndDequantize: floats rounded to what integers of few bits can say of them. 0 stays 0: the
 * range is scaled until it fits into that of the integers, and not moved. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

typedef struct rounding {
    bool is_signed, range_given, narrow, half_up;
    int bits;        /* 0: input 3 says how many */
    float low, high; /* of attributes, which the first version has */
} rounding;

static tw_status prepare(twi_prepare *p)
{
    bool third = p->num_inputs == 4;
    rounding s = {.is_signed = twi_attr_bool(p->attrs, "signed_input", true),
                  .range_given = twi_attr_bool(p->attrs, "range_given", third),
                  .narrow = twi_attr_bool(p->attrs, "narrow_range", false),
                  .half_up = strcmp(twi_attr_string(p->attrs, "round_mode", ""), "HALF_UP") == 0,
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

#define BODY "device/cpu/plain/round_trip.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY

TWI_WIDENED(round_trip)

const twi_kernel twi_cpu_round_trip_kernels[] = {
    TWI_FLOAT_ROWS("QuantizeAndDequantize", prepare, round_trip, twi_free),
    TWI_FLOAT_ROWS("QuantizeAndDequantizeV2", prepare, round_trip, twi_free),
    TWI_FLOAT_ROWS("QuantizeAndDequantizeV3", prepare, round_trip, twi_free),
    {0},
};
