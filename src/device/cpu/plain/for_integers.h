/* for_integers.h - includes BODY for the integer types; see typed.h. No include guard: it is meant to repeat. */
#define SUM uint64_t
#define ADD(a, b) ((REAL)((uint64_t)(a) + (uint64_t)(b)))
#define SUBTRACT(a, b) ((REAL)((uint64_t)(a) - (uint64_t)(b)))
#define MULTIPLY(a, b) ((REAL)((uint64_t)(a) * (uint64_t)(b)))
#define REAL int32_t
#define NAME(f) f##_int32
#include BODY
#undef REAL
#undef NAME
#define REAL int64_t
#define NAME(f) f##_int64
#include BODY
#undef REAL
#undef NAME
#define REAL int16_t
#define NAME(f) f##_int16
#include BODY
#undef REAL
#undef NAME
#define REAL int8_t
#define NAME(f) f##_int8
#include BODY
#undef REAL
#undef NAME
#define REAL uint8_t
#define NAME(f) f##_uint8
#include BODY
#undef REAL
#undef NAME
#define REAL uint16_t
#define NAME(f) f##_uint16
#include BODY
#undef REAL
#undef NAME
#define REAL uint32_t
#define NAME(f) f##_uint32
#include BODY
#undef REAL
#undef NAME
#define REAL uint64_t
#define NAME(f) f##_uint64
#include BODY
#undef REAL
#undef NAME
#undef SUM
#undef ADD
#undef SUBTRACT
#undef MULTIPLY
