/* for_floats.h - includes BODY for float and double; see typed.h. No include guard: it is meant to repeat. */
#define SUM double
#define ADD(a, b) ((a) + (b))
#define SUBTRACT(a, b) ((a) - (b))
#define MULTIPLY(a, b) ((a) * (b))
#define REAL float
#define NAME(f) f##_float
#include BODY
#undef REAL
#undef NAME
#define REAL double
#define NAME(f) f##_double
#include BODY
#undef REAL
#undef NAME
#undef SUM
#undef ADD
#undef SUBTRACT
#undef MULTIPLY
