/* signals.c - see signals.h. */
#include "signals.h"

#include "clock.h"
#include "terminal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static atomic_int stop_signal, save_wanted; /* what handlers may touch is a global */
static const char *notice;                  /* for stderr, when the first signal comes; NULL: none */

static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
static sigset_t inherited; /* what was blocked when the program began */

/* Who hears of it at once. */
static struct {
    pthread_mutex_t lock;
    void (*tell)(void *user, int number);
    void *user;
} listener = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void tell_listener(void)
{
    pthread_mutex_lock(&listener.lock);
    if (listener.tell && stop_signal)
        listener.tell(listener.user, stop_signal);
    pthread_mutex_unlock(&listener.lock);
}

void signals_tell(void (*tell)(void *user, int number), void *user)
{
    pthread_mutex_lock(&listener.lock);
    listener.tell = tell;
    listener.user = user;
    pthread_mutex_unlock(&listener.lock);
    tell_listener();
}

/* Handlers run while it is suspended, and at no other time: none is missed between two looks. */
static void *stand_by(void *unused)
{
    (void)unused;
    sigset_t mask = inherited;
    sigaddset(&mask, SIGCONT);
    for (;;) {
        sigsuspend(&mask);
        tell_listener();
    }
    return NULL;
}

/* What asks once may send more: timeout(1) signals its child and then its whole process group, mpirun hands on what the
 * terminal has sent already. So what comes within a second belongs to the first. */
static void note_stop(int number)
{
    enum { ONCE = 1 };
    static double asked; /* handlers run on one thread */
    if (stop_signal && seconds_now() - asked < ONCE)
        return;
    if (stop_signal) {
        terminal_restore();
        _exit(128 + number); /* the latest checkpoint is whole: saving renames only what is complete */
    }
    asked = seconds_now();
    stop_signal = number;
    struct pollfd heard = {.fd = STDERR_FILENO, .events = POLLOUT}; // a full pipe would keep the next signal waiting
    if (notice && poll(&heard, 1, 0) == 1 && write(STDERR_FILENO, notice, strlen(notice)) < 0)
        notice = NULL; /* nobody listens */
}

static void note_save(int number)
{
    (void)number;
    save_wanted = 1;
}

void signals_end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* nobody is there any more who would wait for what this process does */
        _exit(128 + SIGTERM);
}

static void watch(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return;
    sigaction(number, &action, NULL);
}

void signals_begin(void)
{
    pthread_t thread;
    sigset_t ours;
    watch(SIGUSR1, note_save);
    sigemptyset(&ours);
    sigaddset(&ours, SIGCONT);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        sigaddset(&ours, handled[i]);
    pthread_sigmask(SIG_BLOCK, &ours, &inherited);
    if (pthread_create(&thread, NULL, stand_by, NULL) == 0)
        pthread_detach(thread);
    else
        signals_hand_on(); /* rather anywhere than nowhere */
}

void signals_hand_on(void)
{
    signals_forget(); /* what comes before the other program is there would be noted here, and lost with this one */
    pthread_sigmask(SIG_SETMASK, &inherited, NULL);
}

void signals_watch(const char *say)
{
    notice = say;
    watch(SIGINT, note_stop);
    watch(SIGTERM, note_stop);
    watch(SIGHUP, note_stop);
}

void signals_forget(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            signal(numbers[i], SIG_DFL);
    }
}

int signals_stop(void)
{
    return stop_signal;
}

bool signals_take_save(void)
{
    return atomic_exchange(&save_wanted, 0);
}
