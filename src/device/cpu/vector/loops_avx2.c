/* loops_avx2.c - the loops for AVX2. */
#include "device/cpu/vector/loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TWI_TARGET "avx2"
#include "device/cpu/vector/target.h"
#define TWI_VECTOR_BYTES 32
#define TWI_LOOPS twi_loops_avx2
#define TWI_LOOPS_NAME "avx2"
#include "device/cpu/vector/loops.inl"
#include "device/cpu/vector/target_end.h"
#endif
