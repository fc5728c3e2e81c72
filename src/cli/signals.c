/* signals.c - see signals.h. */
#include "signals.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t stop_signal, save_wanted; /* what handlers may touch is a global */

static void note_stop(int number)
{
    if (stop_signal)
        _exit(128 + number); /* the latest checkpoint is whole: saving renames only what is complete */
    stop_signal = number;
}

static void note_save(int number)
{
    (void)number;
    save_wanted = 1;
}

static void watch(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return;
    sigaction(number, &action, NULL);
}

void signals_watch(void)
{
    watch(SIGINT, note_stop);
    watch(SIGTERM, note_stop);
    watch(SIGHUP, note_stop);
    watch(SIGUSR1, note_save);
}

void signals_forget(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
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
    bool wanted = save_wanted;
    save_wanted = 0;
    return wanted;
}
