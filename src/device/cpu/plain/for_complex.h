/* for_complex.h - includes BODY for the complex types; see typed.h. PART is the type of a part of REAL. No include
 * guard: it is meant to repeat. */
#define SUM double _Complex
#define ADD(a, b) ((a) + (b))
#define SUBTRACT(a, b) ((a) - (b))
#define MULTIPLY(a, b) ((a) * (b))
#define REAL float _Complex
#define PART float
#define NAME(f) f##_complex64
#include BODY
#undef REAL
#undef PART
#undef NAME
#define REAL double _Complex
#define PART double
#define NAME(f) f##_complex128
#include BODY
#undef REAL
#undef PART
#undef NAME
#undef SUM
#undef ADD
#undef SUBTRACT
#undef MULTIPLY
