/* failing_calls.h - jobs on cards that are not there (card.h), each in a process of its own, because the driver is
 * asked once a process; among them one whose calls fail in turn. */
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
    print_message("%ld calls failed\n", (n - 1 + stride - 1) / stride);
    if (bad)
        fail_msg("%d of %ld calls are not answered well when they fail", bad, (n - 1) / stride);
    assert_true(n > least);
}

/* Whether the text has the name of a call that failed. Those that may be silent are passed over; with none but such it
 * is well. NULL: none may be. */
static inline bool names_a_failed_call(const char *text, bool (*may_be_silent)(const char *call))
{
    char calls[2000], *rest = calls, *call;
    bool found = false, any = false;
    snprintf(calls, sizeof calls, "%s", card_failed());
    while ((call = strsep(&rest, " "))) {
        any |= !may_be_silent || !may_be_silent(call);
        found |= strstr(text, call) != NULL;
    }
    return found || !any;
}

#endif
