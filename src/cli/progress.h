/* progress.h - how far something long has come, for people: one moving line on a terminal, a plain line now and then
 * everywhere else (also with NO_COLOR or TERM=dumb). */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct progress {
    FILE *file;
    const char *unit;      /* of what is counted; NULL: bytes, which are scaled */
    double quiet;          /* seconds that it may take before anything is shown */
    bool moving;           /* a terminal whose last line may be rewritten */
    bool line_open;        /* the moving line is there and not ended */
    char what[96];         /* whose progress was shown last */
    int tenths;            /* of it that were shown, for plain lines */
    int64_t first;         /* bytes that were there when it began */
    double started, shown; /* seconds on the monotonic clock */
} progress;

progress progress_to(FILE *file);

/* `done` of `total` bytes, or other units, of `what` are there. Shows it if it is time to. */
void progress_update(progress *progress, const char *what, int64_t done, int64_t total);

/* The same for those who ask whether to go on (tw_read_progress): always. `progress` is one. */
bool progress_go_on(void *progress, const char *what, int64_t done, int64_t total);

/* Ends the moving line, so that something else can be printed. */
void progress_end(progress *progress);

/* "162.2 MiB" into text[size]; returns text. */
char *bytes_text(double bytes, char *text, size_t size);

#endif
