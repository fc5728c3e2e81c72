/* loops_avx512.c - the loops for AVX-512. */
#include "device/cpu/vector/loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TWI_TARGET "avx512f,avx512bw,avx512dq,avx512vl"
#include "device/cpu/vector/target.h"
#define TWI_VECTOR_BYTES 64
#define TWI_LOOPS twi_loops_avx512
#define TWI_LOOPS_NAME "avx512"
#include "device/cpu/vector/loops.inl"
#include "device/cpu/vector/target_end.h"
#endif
