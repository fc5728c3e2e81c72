/* for_stored.h - includes BODY for the float types as they are stored: elements are STORED, and LOAD and STORE turn
 * them into REAL and back, so that what is changed in place needs no widened copy. Otherwise as for_floats.h. */
#define ADD(a, b) ((a) + (b))
#define SUBTRACT(a, b) ((a) - (b))
#define MULTIPLY(a, b) ((a) * (b))
#define REAL double
#define STORED double
#define LOAD
#define STORE
#define NAME(f) f##_double
#include BODY
#undef REAL
#undef STORED
#undef NAME
#define REAL float
#define STORED float
#define NAME(f) f##_float
#include BODY
#undef STORED
#undef LOAD
#undef STORE
#undef NAME
#define STORED uint16_t
#define LOAD tw_half_to_float
#define STORE tw_float_to_half
#define NAME(f) f##_half
#include BODY
#undef LOAD
#undef STORE
#undef NAME
#define LOAD tw_bfloat16_to_float
#define STORE tw_float_to_bfloat16
#define NAME(f) f##_bfloat16
#include BODY
#undef REAL
#undef STORED
#undef LOAD
#undef STORE
#undef NAME
#undef ADD
#undef SUBTRACT
#undef MULTIPLY
