/* report.h - one HTML file about runs, from what stands in their train directories: event logs, run.json, step.json,
 * eval.jsonl. Nothing is asked of a network, neither now nor when it is opened.
 *
 *     report.c     the file, and what stands in it of each run
 *     curves.c     event logs: scalars and histograms
 *     placement.c  which groups of nodes run where, and what goes between them
 *     layout.c     where these are drawn: by Graphviz if it is there, otherwise in layers of our own
 *     pictures.c   an example of each class, from the run's data set
 *     page.html, page.css, page.js   what draws it, in the reader's browser; put into the program at build time */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include <tower/status.h>

enum { REPORT_MOST_RUNS = 16 };

/* Writes the page about the runs in these directories. */
tw_status report_write(const char *const *directories, int count, FILE *out, tw_error *error);

/* ---- pieces: each writes a JSON value ---- */

/* A text in quotes, from bytes of any kind. */
void report_text(FILE *out, const char *text);
/* An error with words. Returns the status. */
tw_status report_fail(tw_error *error, tw_status status, const char *format, ...) TW_PRINTF(3, 4);

/* {"curves": ..., "histograms": ...} members, with no braces; how many event files there were in *files. */
tw_status report_curves(const char *directory, FILE *out, int *files, tw_error *error);

struct cJSON;
/* The groups of step.json, laid out. */
void report_placement(const struct cJSON *step, FILE *out);
/* [{"class": name, "image": "data:..."}] of the data set that run.json names; null if it is not there. */
void report_pictures(const struct cJSON *run, FILE *out);

/* ---- layout ---- */

typedef struct report_box {
    const char *label;          /* decides how wide it is */
    double x, y, width, height; /* its middle; filled in */
} report_box;

enum { REPORT_CURVE = 64 };

typedef struct report_edge {
    int from, to;
    int num_points;
    double points[REPORT_CURVE][2]; /* of a chain of Bezier curves, 3 n + 1; or 2: a line. Filled in */
} report_edge;

/* Where boxes and edges lie, from the top left corner at (0, 0). *by is "Graphviz" or "layers". False: out of memory.
 */
bool report_layout(report_box *boxes, int num_boxes, report_edge *edges, int num_edges, double *width, double *height,
                   const char **by);

#endif
