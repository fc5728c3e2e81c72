/* crash.c - see tower/crash.h and crash.h. The handler calls only what signal-safety(7) allows: all it writes but
 * numbers and where devices are was put together when the report was asked for. */
#define _GNU_SOURCE
#include "base/crash.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <tower/crash.h>
#include <unistd.h>

enum { MOST_PLACES = 256, STACK_BYTES = 65536 };
enum { PATIENCE = 10 }; /* seconds for the report and for other handlers */

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}};
enum { NUM_SIGNALS = sizeof signals / sizeof *signals };

/* What handlers read is a global. */
static twi_crash_place places[MOST_PLACES], nowhere;
static atomic_llong latest_step;
static atomic_bool wanted, reported;
static volatile sig_atomic_t ending; /* the signal that the process ends by */
static bool announces;
static char folder[PATH_MAX], versions[4096];
static struct sigaction before[NUM_SIGNALS];
static char stack[STACK_BYTES]; /* of the thread that asks for reports, so that one whose own is full can be reported */

/* ---- places ------------------------------------------------------------------------------------------------------ */

twi_crash_place *twi_crash_take_place(const char *device)
{
    for (int i = 0; i < MOST_PLACES; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&places[i].device, &none, device))
            return &places[i];
    }
    return &nowhere;
}

void twi_crash_give_back(twi_crash_place *place)
{
    if (!place || place == &nowhere)
        return;
    twi_crash_be_at(place, NULL, NULL);
    atomic_store(&place->device, NULL);
}

void twi_crash_note_step(int64_t step)
{
    atomic_store_explicit(&latest_step, step, memory_order_relaxed);
}

/* ---- the report, in a handler ------------------------------------------------------------------------------------ */

static void put(int file, const char *text)
{
    (void)!write(file, text, strlen(text));
}

/* The number's digits, at the end of digits[24]. */
static const char *in_digits(unsigned long long number, unsigned base, char digits[24])
{
    char *at = digits + 23;
    *at = 0;
    do
        *--at = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    return at;
}

static const char *name_of(int number)
{
    for (int i = 0; i < NUM_SIGNALS; i++)
        if (signals[i].number == number)
            return signals[i].name;
    return "";
}

static void report_path(char path[PATH_MAX + 64], long long step)
{
    char digits[24];
    stpcpy(stpcpy(stpcpy(stpcpy(path, folder), "/crash-"), in_digits((unsigned long long)step, 10, digits)), ".txt");
}

static void report_signal(int file, int number, const siginfo_t *about)
{
    char digits[24], thread[17] = "";
    prctl(PR_GET_NAME, thread);
    put(file, "ended by  signal ");
    put(file, in_digits((unsigned long long)number, 10, digits));
    put(file, " (");
    put(file, name_of(number));
    if (number != SIGABRT && about->si_code > 0) { /* not sent by a process */
        put(file, ", address 0x");
        put(file, in_digits((uintptr_t)about->si_addr, 16, digits));
    }
    put(file, "), in thread '");
    put(file, thread);
    put(file, "' of process ");
    put(file, in_digits((unsigned long long)getpid(), 10, digits));
    put(file, "\n");
}

static void report_places(int file)
{
    bool rests = true;
    for (int i = 0; i < MOST_PLACES; i++) {
        const char *device = atomic_load(&places[i].device), *op = atomic_load(&places[i].op),
                   *node = atomic_load(&places[i].node);
        if (!device || !op || !node)
            continue;
        rests = false;
        put(file, device);
        put(file, " is at ");
        put(file, op);
        put(file, " '");
        put(file, node);
        put(file, "'\n");
    }
    if (rests)
        put(file, "no device is at anything\n");
}

static void report(int number, const siginfo_t *about)
{
    char path[PATH_MAX + 64], digits[24];
    long long step = atomic_load(&latest_step);
    report_path(path, step);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    put(file, versions);
    report_signal(file, number, about);
    put(file, "step      ");
    put(file, in_digits((unsigned long long)step, 10, digits));
    put(file, "\n");
    report_places(file);
    put(file,
        "\nCheckpoints that were saved are whole: a run that is resumed goes on from the newest, and ends with the "
        "bits "
        "that it\nwould have had. If it ends so again: 'tower doctor' looks at the machine; a signal at the same node "
        "each time is a bug,\nof Tower or of a library above, and this file is what a report of it needs.\n\n");
    close(file);
    if (!announces)
        return;
    put(STDERR_FILENO, "tower: ended by ");
    put(STDERR_FILENO, name_of(number));
    put(STDERR_FILENO, "; ");
    put(STDERR_FILENO, path);
    put(STDERR_FILENO, " says where\n");
}

/* Another's handler may wait for a lock that the signal came under, as Open MPI's does, which prints where it was. The
 * other threads go on all the while: they tell the other tasks that this one is there. */
static void on_alarm(int number)
{
    sigset_t awaited;
    (void)number;
    signal(ending, SIG_DFL);
    raise(ending);
    sigemptyset(&awaited);
    sigaddset(&awaited, ending);
    pthread_sigmask(SIG_UNBLOCK, &awaited, NULL); /* blocked where its handler was interrupted */
}

static void end_in_time(int number)
{
    sigset_t awaited;
    struct sigaction action = {.sa_handler = on_alarm};
    sigemptyset(&action.sa_mask);
    ending = number;
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &awaited, NULL);
    alarm(PATIENCE);
}

/* The signal is left to whom it would have gone to: it comes again when this returns. */
static void on_signal(int number, siginfo_t *about, void *context)
{
    (void)context;
    int saved = errno;
    if (atomic_exchange(&reported, true))
        for (;;)
            pause(); /* another thread reports, and its signal ends this one too */
    end_in_time(number);
    report(number, about);
    for (int i = 0; i < NUM_SIGNALS; i++)
        sigaction(signals[i].number, &before[i], NULL);
    errno = saved;
    raise(number);
}

/* ---- asking for it ----------------------------------------------------------------------------------------------- */

static void write_versions(void)
{
    size_t used = (size_t)snprintf(versions, sizeof versions, "tower     %s (%s)\n", tw_version(),
                                   tw_revision()[0] ? tw_revision() : "revision not known");
    for (int i = 0; tw_component_at(i).name && used < sizeof versions; i++) {
        tw_component c = tw_component_at(i);
        if (c.version[0])
            used += (size_t)snprintf(versions + used, sizeof versions - used, "library   %s %s\n", c.name, c.version);
    }
}

static void give_stack(void)
{
    stack_t now, own = {.ss_sp = stack, .ss_size = sizeof stack};
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE))
        sigaltstack(&own, NULL);
}

tw_status tw_set_crash_report(const char *directory, bool announce, tw_error *error)
{
    if (directory && strlen(directory) >= sizeof folder)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the name of the directory for reports of a crash is too long");
    if (directory && access(directory, W_OK) != 0)
        return twi_fail(error, TW_NOT_FOUND, "reports of a crash cannot be written to '%.1000s': %s", directory,
                        strerror(errno));
    bool was_wanted = atomic_exchange(&wanted, directory != NULL);
    if (directory) {
        snprintf(folder, sizeof folder, "%s", directory);
        announces = announce;
        write_versions();
        give_stack();
    }
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NUM_SIGNALS && was_wanted != (directory != NULL); i++)
        sigaction(signals[i].number, directory ? &action : &before[i], directory ? &before[i] : NULL);
    return TW_OK;
}
