/* painter.h - the last lines of a terminal, drawn again ten times a second by a thread of its own, and a line for
 * whatever takes longer than two seconds.
 *
 * The terminal is left as it is: no mode is changed but that Ctrl-C throws nothing away meanwhile (terminal.h), the
 * cursor stands below what was drawn, and what is drawn is at most as wide as the terminal, with the echo of Ctrl-C. So
 * whatever ends or stops the program, the shell finds its place. */
#ifndef CLI_PAINTER_H
#define CLI_PAINTER_H

#include "picture.h"

#include <stdio.h>

/* Draws into an empty picture; `doing` is what is under way (busy_begin), NULL if nothing, `since` seconds. */
typedef void painting(void *user, picture *picture, int rows, const char *doing, double since);

/* Calls `draw`, and from then on ten times a second from another thread; what it draws is shown at the end of `file`, a
 * moving terminal (terminal.h). */
void painter_start(FILE *file, painting *draw, void *user);
/* Draws a last time, leaves that where it is, and forgets `draw`. */
void painter_stop(void);

/* Anything else may be printed between these; what is shown makes room. Harmless where nothing is. */
void painter_pause(void);
void painter_resume(void);

/* What follows may take long: "planning". After two seconds that is said on standard error, unless a painting is shown,
 * which says it. A borrowed text, until busy_end(). Begun again, the inner one is said and the outer one goes on. */
void busy_begin(const char *what);
void busy_end(void);
/* Nothing is said from now on: what is printed is for programs. */
void busy_silence(void);

#endif
