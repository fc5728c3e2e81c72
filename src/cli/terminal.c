/* terminal.c - see terminal.h. */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
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

bool terminal_is_ours(FILE *file)
{
    pid_t front = tcgetpgrp(fileno(file));
    return front < 0 || front == getpgrp();
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
