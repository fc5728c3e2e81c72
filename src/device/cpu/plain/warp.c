/* warp.c - ImageProjectiveTransformV2 and V3. What lies outside of the image is black, or of V3's value, or, by
 * fill_mode, the image again. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <strings.h>

typedef enum outside { FILLED, REFLECT, WRAP, EDGE } outside;

typedef struct warp {
    bool bilinear;
    outside outside;
} warp;

static tw_status prepare_warp(twi_prepare *p)
{
    static const char *const names[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
    const char *fill = twi_attr_string(p->attrs, "fill_mode", "CONSTANT");
    warp s = {.bilinear = strcasecmp(twi_attr_string(p->attrs, "interpolation", ""), "BILINEAR") == 0};
    tw_status status = twi_prepare_typed(p);
    int found = -1;
    for (int i = 0; i < 4; i++)
        if (strcasecmp(fill, names[i]) == 0)
            found = i;
    if (found < 0)
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': Invalid mode %s. Expected reflect, wrap, constant, or nearest", p->op, p->node, fill);
    s.outside = (outside)found;
    return status == TW_OK ? twi_keep(p, &s, sizeof s) : status;
}

/* A place along an axis of that length, led back into the image. */
static float inside(outside how, float at, int64_t length)
{
    float n = (float)length, last = n - 1;
    if (!(fabsf(at) < 1e15f)) /* nowhere */
        return how == FILLED ? -1 : 0;
    switch (how) {
    case FILLED:
        return at;
    case EDGE:
        return at < 0 ? 0 : at > last ? last : at;
    case WRAP:
        if (length <= 1)
            return 0;
        at += at < 0 ? n * (float)((int64_t)(-at / last) + 1) : at > last ? -n * (float)(int64_t)(at / last) : 0;
        return at < 0 ? 0 : at > last ? last : at;
    default:
        if (length <= 1)
            return 0;
        if (at < 0) {
            at += 2 * n * (float)(int64_t)(-at / (2 * n));
            at = at < -n ? at + 2 * n : -at - 1;
        } else if (at > last) {
            at -= 2 * n * (float)(int64_t)(at / (2 * n));
            at = at >= n ? 2 * n - at - 1 : at;
        }
        return at < 0 ? 0 : at > last ? last : at;
    }
}

#define BODY "device/cpu/plain/warp.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(warped)

#define WARP_ROWS(op)                                                                                                  \
    TWI_FLOAT_ROWS(op, prepare_warp, warped, twi_free),                                                                \
        {op, "plain", TWI_TYPE(TW_UINT8), prepare_warp, warped_uint8, twi_free},                                       \
        {op, "plain", TWI_TYPE(TW_INT32), prepare_warp, warped_int32, twi_free},                                       \
    {                                                                                                                  \
        op, "plain", TWI_TYPE(TW_INT64), prepare_warp, warped_int64, twi_free                                          \
    }

const twi_kernel twi_cpu_warp_kernels[] = {
    WARP_ROWS("ImageProjectiveTransformV2"),
    WARP_ROWS("ImageProjectiveTransformV3"),
    {0},
};
