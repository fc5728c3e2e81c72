/* loops_baseline.c - the loops for any CPU, in vectors that SSE2 and NEON have. */
#include "device/cpu/vector/loops.h"

#define TWI_VECTOR_BYTES 16
#define TWI_LOOPS twi_loops_baseline
#define TWI_LOOPS_NAME "baseline"
#include "device/cpu/vector/loops.inl"
