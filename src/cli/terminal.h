/* terminal.h - what the thing that output goes to can do. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

typedef struct terminal {
    bool moving;       /* what was written last may be rewritten: it is a terminal, not dumb, and nobody set NO_COLOR. One
                          without a size is none: Open MPI's tasks have such, whose output may go to a file */
    int columns, rows; /* 80 and 24 where nobody knows */
} terminal;

terminal terminal_of(FILE *file);

/* Whether this process may write to it now: not from the background, where the shell's own lines stand. */
bool terminal_is_ours(FILE *file);

/* A key that sends a signal, as Ctrl-C, throws away what a terminal has not yet read of what was written, the midst of
 * a line too. From now on, if this process may write to it, it does not (NOFLSH), until terminal_restore(), which
 * handlers of signals may call, or exit(). Who is killed leaves it so, which nobody else notices. */
void terminal_keep_output(FILE *file);
void terminal_restore(void);

/* Whether texts are UTF-8 here, by the environment's LC_ALL, LC_CTYPE and LANG. */
bool terminal_takes_utf8(void);

#endif
