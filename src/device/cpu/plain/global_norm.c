/* global_norm.c - BatchNormWithGlobalNormalization, as graphs of 2015 and 2016 have it: by a mean and a variance that
 * are given. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"

#include <math.h>

typedef struct global_norm {
    float epsilon;
    bool scales;
} global_norm;

#define BODY "device/cpu/plain/global_norm.inl"
#include "device/cpu/plain/for_floats.h"
#undef BODY

TWI_WIDENED(global_norm)

static tw_status prepare(twi_prepare *p)
{
    global_norm n = {twi_attr_float(p->attrs, "variance_epsilon", 0),
                     twi_attr_bool(p->attrs, "scale_after_normalization", false)};
    p->can_overwrite[0] = !twi_widened_bytes(p);
    p->workspace = twi_widened_bytes(p) + sizeof(double) * (size_t)p->inputs[1].elements;
    return twi_keep(p, &n, sizeof n);
}

const twi_kernel twi_cpu_global_norm_kernels[] = {
    TWI_FLOAT_ROWS("BatchNormWithGlobalNormalization", prepare, global_norm, twi_free),
    {0},
};
