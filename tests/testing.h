/* testing.h - what every test includes first: cmocka and a few checks of our own. */
#ifndef TESTING_H
#define TESTING_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tower/status.h>

enum { PATIENCE = 900 }; /* seconds that a test waits for what must come: they end what hangs and decide no more */

/* In the table of a program's tests, one in which sanitizers would see nothing that others do not show them: the thread
 * sanitizer, for it has no threads of its own kind, or all. cmocka passes over what has no function. */
#define unthreaded_test(test) ((struct CMUnitTest){#test, UNDER_THREAD_SANITIZER ? NULL : (test), NULL, NULL, NULL})
#define unsanitized_test(test) ((struct CMUnitTest){#test, UNDER_SANITIZER ? NULL : (test), NULL, NULL, NULL})
#ifdef __SANITIZE_THREAD__
enum { UNDER_SANITIZER = 1, UNDER_THREAD_SANITIZER = 1 };
#elif defined __SANITIZE_ADDRESS__
enum { UNDER_SANITIZER = 1, UNDER_THREAD_SANITIZER = 0 };
#else
enum { UNDER_SANITIZER = 0, UNDER_THREAD_SANITIZER = 0 };
#endif

/* The call succeeds; otherwise its message is the failure. `error` is a tw_error in scope. */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        if ((call) != TW_OK)                                                                                           \
            fail_msg("%s: %s", #call, error.message);                                                                  \
    } while (0)

/* The call fails with that status, and its message holds `part`. */
#define assert_fails(call, code, part)                                                                                 \
    do {                                                                                                               \
        error = (tw_error){0};                                                                                         \
        assert_int_equal((call), (code));                                                                              \
        assert_message(error.message, part);                                                                           \
    } while (0)

#define assert_message(message, part)                                                                                  \
    do {                                                                                                               \
        if (!strstr((message), (part)))                                                                                \
            fail_msg("\"%s\" does not contain \"%s\"", (message), (part));                                             \
    } while (0)

/* |a - b| <= tolerance * max(1, |b|), element by element. */
static inline void assert_floats_near(const float *a, const float *b, size_t count, double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)a[i] - b[i]) <= tolerance * fmax(1, fabs((double)b[i]))))
            fail_msg("element %zu: %.9g, expected %.9g", i, a[i], b[i]);
}

/* The bytes of a file, with a zero behind them; free() them. `size` may be NULL. */
static inline char *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, bytes, file), bytes);
    text[bytes] = 0;
    fclose(file);
    if (size)
        *size = bytes;
    return text;
}

#endif
