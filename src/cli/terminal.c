/* terminal.c - see terminal.h. */
#include "terminal.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

terminal terminal_of(FILE *file)
{
    struct winsize size;
    terminal t = {.columns = 80, .rows = 24};
    const char *kind = getenv("TERM"), *no_color = getenv("NO_COLOR");
    bool dumb = !kind || !*kind || strcmp(kind, "dumb") == 0 || (no_color && *no_color);
    if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        t.moving = !dumb;
        t.columns = size.ws_col;
        t.rows = size.ws_row;
    }
    return t;
}

static bool is_ours(int fd)
{
    pid_t front = tcgetpgrp(fd);
    return front < 0 || front == getpgrp();
}

bool terminal_is_ours(FILE *file)
{
    return is_ours(fileno(file));
}

static atomic_int kept = -1; // the terminal whose NOFLSH is our doing

/* Whether it was otherwise before. A shell that takes the terminal back meanwhile must not stop this process for it. */
static bool set_noflsh(int fd, bool on)
{
    struct termios modes;
    sigset_t stops, before;
    if (!is_ours(fd) || tcgetattr(fd, &modes) || !(modes.c_lflag & NOFLSH) == !on)
        return false;
    modes.c_lflag ^= NOFLSH;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    bool done = tcsetattr(fd, TCSANOW, &modes) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

void terminal_keep_output(FILE *file)
{
    static bool at_exit;
    if (!at_exit)
        at_exit = atexit(terminal_restore) == 0;
    if (set_noflsh(fileno(file), true))
        kept = fileno(file);
}

void terminal_restore(void)
{
    int fd = atomic_exchange(&kept, -1);
    if (fd >= 0)
        set_noflsh(fd, false);
}

bool terminal_takes_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *value = "";
    for (size_t i = 0; i < sizeof names / sizeof *names && !*value; i++) {
        const char *set = getenv(names[i]);
        value = set ? set : "";
    }
    const char *charset = strchr(value, '.');
    return charset && (strncasecmp(charset + 1, "utf-8", 5) == 0 || strncasecmp(charset + 1, "utf8", 4) == 0);
}
