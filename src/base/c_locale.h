/* c_locale.h - numbers and letters are written and read as in the C locale, whatever setlocale() the caller's program
 * has called: "0.1" is no 0 where decimals have commas, and "I" is the capital of "i" in Turkish, too.
 *
 * The compiler includes this before each file of the library, of libtensorflow.so.2 and of plug-ins (IN_C_LOCALE in
 * CMakeLists.txt), so that nobody has to think of it. What people read in their language, strerror(), is left alone. */
#ifndef TWI_C_LOCALE_H
#define TWI_C_LOCALE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

locale_t twi_c_locale(void);
int twi_snprintf(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int twi_vsnprintf(char *text, size_t size, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));
int twi_vasprintf(char **text, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
int twi_sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int twi_fscanf(FILE *file, const char *format, ...) __attribute__((format(scanf, 2, 3)));

#undef snprintf /* of a macro of the C library's own */
#undef vsnprintf
#undef tolower
#undef toupper
#undef isalpha
#undef isalnum
#undef isspace
#undef isprint
#define snprintf(...) twi_snprintf(__VA_ARGS__)
#define vsnprintf(text, size, format, arguments) twi_vsnprintf(text, size, format, arguments)
#define vasprintf(text, format, arguments) twi_vasprintf(text, format, arguments)
#define sscanf(...) twi_sscanf(__VA_ARGS__)
#define fscanf(...) twi_fscanf(__VA_ARGS__)
#define strtod(text, end) strtod_l(text, end, twi_c_locale())
#define strtof(text, end) strtof_l(text, end, twi_c_locale())
#define strcasecmp(a, b) strcasecmp_l(a, b, twi_c_locale())
#define strncasecmp(a, b, size) strncasecmp_l(a, b, size, twi_c_locale())
#define tolower(letter) tolower_l(letter, twi_c_locale())
#define toupper(letter) toupper_l(letter, twi_c_locale())
#define isalpha(letter) isalpha_l(letter, twi_c_locale())
#define isalnum(letter) isalnum_l(letter, twi_c_locale())
#define isspace(letter) isspace_l(letter, twi_c_locale())
#define isprint(letter) isprint_l(letter, twi_c_locale())

#endif
