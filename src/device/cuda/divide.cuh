/* divide.cuh - quotients of indices by numbers that are known at launch: a multiplication and a shift, where a card
 * would run a subroutine. Made on the host, used on a card; plain C, so that a test can read it, too. */
#ifndef TWI_CUDA_DIVIDE_CUH
#define TWI_CUDA_DIVIDE_CUH

#include "base/anywhere.h"

#include <stdint.h>

/* Whoever divides holds his numerators, and so his counts of elements, to this. */
#define TWI_MOST_DIVIDED INT32_MAX

typedef struct twi_divider {
    uint32_t divisor, factor, shift;
} twi_divider;

/* Of a divisor from 1 to TWI_MOST_DIVIDED; any other becomes 1, for launches that have nothing to divide. With
 * 2^shift >= d and factor = ceil(2^(31 + shift) / d), factor * d exceeds 2^(31 + shift) by less than 2^shift; n < 2^31
 * times that is too little to lift n * factor / 2^(31 + shift) to the next whole number. */
static inline twi_divider twi_divider_of(int64_t divisor)
{
    twi_divider by = {divisor < 1 || divisor > TWI_MOST_DIVIDED ? 1 : (uint32_t)divisor, 0, 0};
    while ((uint64_t)1 << by.shift < by.divisor)
        by.shift++;
    by.factor = (uint32_t)((((uint64_t)1 << (31 + by.shift)) + by.divisor - 1) / by.divisor);
    return by;
}

/* n / divisor, n at most TWI_MOST_DIVIDED */
TWI_ANYWHERE uint32_t twi_quotient(twi_divider by, uint32_t n)
{
    return (uint32_t)((uint64_t)(2 * n) * by.factor >> 32) >> by.shift;
}

/* The same, and what is left over. */
TWI_ANYWHERE uint32_t twi_divide(twi_divider by, uint32_t n, uint32_t *rest)
{
    uint32_t quotient = twi_quotient(by, n);
    *rest = n - quotient * by.divisor;
    return quotient;
}

#endif
