/* target_end.h - the end of what target.h began. */
#ifdef __clang__
_Pragma("clang attribute pop")
#else
_Pragma("GCC pop_options")
#endif
#undef TWI_TARGET
