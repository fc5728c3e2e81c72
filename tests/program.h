/* program.h - runs the program as a user does, in a directory of its own, and looks at what it printed. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "testing.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[256];
static char output[1 << 17]; /* of the latest run: standard output and error together */

static inline int make_directory(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/tower-cli-XXXXXX", base ? base : "/tmp");
    return mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

/* Entries of the header that were wrapped at 80 columns become lines again, so that tests can speak of their words. */
static inline void unwrap_entries(char *text)
{
    static const char gap[] = "\n                 ";
    for (char *at = text; (at = strstr(at, gap)); at++)
        if (at[sizeof gap - 1] != ' ') {
            *at = ' ';
            memmove(at + 1, at + sizeof gap - 1, strlen(at + sizeof gap - 1) + 1);
        }
}

/* Waits until a file says something, as long as the process $job may still write it: seen WHAT FILE. */
#define SEEN                                                                                                           \
    "seen() { until grep -q \"$1\" \"$2\" 2>/dev/null; do kill -0 $job 2>/dev/null && sleep 0.02 || return; done; }; "

/* Runs a line of sh in the test's directory, with $T as the program; returns the exit code, or 128+n after signal n. */
static inline int shell(const char *format, ...) TW_PRINTF(1, 2);
static inline int shell(const char *format, ...)
{
    char line[4096], command[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    snprintf(command, sizeof command, SEEN "cd '%s' && T='%s' && { %s; } 2>&1", directory, PROGRAM, line);
    fflush(stdout);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = 0;
    unwrap_entries(output);
    int ended = pclose(pipe);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

#define assert_runs(code, ...)                                                                                         \
    do {                                                                                                               \
        int ended_ = shell(__VA_ARGS__);                                                                               \
        if (ended_ != (code))                                                                                          \
            fail_msg("exit code %d instead of %d: %s", ended_, (code), output);                                        \
    } while (0)
#define assert_prints(part) assert_message(output, part)

static inline void assert_prints_not(const char *part)
{
    if (strstr(output, part))
        fail_msg("\"%s\" contains \"%s\"", output, part);
}

/* CIFAR-10 files of `count` examples each, all of class 3. */
static inline void write_cifar(const char *where, int count)
{
    assert_runs(0, "mkdir -p '%s'", where);
    for (int i = 0; i < 6; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s/%s%.0d%s", directory, where, i < 5 ? "data_batch_" : "test_batch",
                 i < 5 ? i + 1 : 0, ".bin");
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        for (int k = 0; k < count; k++) {
            fputc(3, file);
            for (int b = 0; b < 3072; b++)
                fputc(b < 1024 ? 10 : b < 2048 ? 20 : 30, file);
        }
        fclose(file);
    }
}

/* The number behind "NAME": in JSON, from `at` on. */
static inline double number_behind(const char *at, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(at, key);
    if (!found)
        fail_msg("no %s in %s", key, at);
    return strtod(found + strlen(key), NULL);
}

#endif
