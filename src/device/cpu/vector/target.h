/* target.h - compiling a part of a file for a CPU that has more than the baseline:
 *
 *     #define TWI_TARGET "avx2"
 *     #include "device/cpu/vector/target.h"
 *     ... what only runs where the CPU has been asked ...
 *     #include "device/cpu/vector/target_end.h"
 *
 * GCC and Clang spell it differently. No include guard: it is meant to repeat. */
#define TWI_PRAGMA_TEXT(text) _Pragma(#text)
#define TWI_PRAGMA_OF(text) TWI_PRAGMA_TEXT(text)
#ifdef __clang__
TWI_PRAGMA_OF(clang attribute push(__attribute__((target(TWI_TARGET))), apply_to = function))
#else
_Pragma("GCC push_options")
TWI_PRAGMA_OF(GCC target(TWI_TARGET))
#endif
#undef TWI_PRAGMA_OF
#undef TWI_PRAGMA_TEXT
