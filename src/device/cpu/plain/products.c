/* products.c - see products.h: the loops for each vector unit, and the choice among them. */
#include "device/cpu/plain/products.h"

#include <stddef.h>
#include <string.h>

enum {
    ROWS = 6,   /* that are multiplied together, each by eight columns */
    DEEP = 128, /* with WIDE: the part of b that stays in a cache */
    WIDE = 256,
};

#ifdef __x86_64__
#define TWI_TARGET "avx512f"
#include "device/cpu/vector/target.h"
#define UNIT "avx512"
#define BYTES 64
#define NAME(f) f##_avx512
#include "device/cpu/plain/products.inl"
#include "device/cpu/vector/target_end.h"

#define TWI_TARGET "avx2"
#include "device/cpu/vector/target.h"
#define UNIT "avx2"
#define BYTES 32
#define NAME(f) f##_avx2
#include "device/cpu/plain/products.inl"
#include "device/cpu/vector/target_end.h"
#endif

#define UNIT "baseline"
#define BYTES 16
#define NAME(f) f##_baseline
#include "device/cpu/plain/products.inl"

static const twi_products *const all[] = {
#ifdef __x86_64__
    &products_avx512,
    &products_avx2,
#endif
    &products_baseline,
    NULL,
};

const twi_products *const *twi_products_usable(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") ? all : __builtin_cpu_supports("avx2") ? all + 1 : all + 2;
#else
    return all;
#endif
}

const twi_products *twi_products_best(void)
{
    return twi_products_usable()[0];
}
