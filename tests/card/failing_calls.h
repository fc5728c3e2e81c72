/* failing_calls.h - jobs on cards that are not there (card.h), each in a process of its own, because the driver is asked
 * once a process; among them one whose calls fail in turn. */
#ifndef FAILING_CALLS_H
#define FAILING_CALLS_H

#include "testing.h"

#include "card.h"

#include <sys/wait.h>
#include <tower/tower.h>
#include <unistd.h>

enum { FINE, NOT_REACHED, BAD }; /* what became of a job; NOT_REACHED: it makes fewer calls than were to be made */

static char logged[2000];        /* the library's last warning: tw_set_log(log_it, NULL, 1) */

static inline void log_it(void *user, int level, const char *message)
{
    (void)user;
    (void)level;
    snprintf(logged, sizeof logged, "%s", message);
}

static inline int in_a_process(int (*test)(long), long n)
{
    int code;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(test(n));
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFEXITED(code) ? WEXITSTATUS(code) : BAD;
}

/* Calls 1, 1 + stride, ... of the job fail, one in each try, as far as it makes as many, and fewer than `most`. */
static inline void assert_failing_calls_are_answered(int (*try_one)(long), long stride, long least, long most)
{
    long n = 1;
    int bad = 0, result;
    for (; (result = in_a_process(try_one, n)) != NOT_REACHED && n < most; n += stride)
        bad += result == BAD;
    if (bad)
        fail_msg("%d of %ld calls are not answered well when they fail", bad, (n - 1) / stride);
    assert_true(n > least);
}

#endif
