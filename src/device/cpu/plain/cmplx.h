/* cmplx.h - C's complex numbers, with CMPLX under clang too, of which glibc thinks that it has no way to make one. */
#ifndef TWI_CMPLX_H
#define TWI_CMPLX_H

#include <complex.h>

#ifndef CMPLX
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#endif

#endif
