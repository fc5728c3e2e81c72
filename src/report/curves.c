/* curves.c - what a run's event logs say: scalars as curves of a bounded number of points, histograms over time.
 * Never here:  colours, axes (page.js). */
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

enum { MOST_POINTS = 400, MOST_TAGS = 400, MOST_HISTOGRAM_TAGS = 48, MOST_TIMES = 24, BINS = 32, MOST_FILES = 4096 };

typedef struct point {
    int64_t step;
    double time;
    float value;
} point;

typedef struct spread { /* a histogram of one step */
    int64_t step;
    int count;
    double min, max;
    double *limits, *counts; /* [count], one block */
} spread;

typedef struct tag {
    char *name;
    point *points;
    spread *spreads;
    int num_points, room, num_spreads, spread_room;
} tag;

typedef struct run_log {
    tag tags[MOST_TAGS];
    int num_tags;
    bool out_of_memory;
} run_log;

/* ---- reading --------------------------------------------------------------------------------------------------- */

static tag *find_tag(run_log *l, const char *name)
{
    for (int i = 0; i < l->num_tags; i++)
        if (strcmp(l->tags[i].name, name) == 0)
            return &l->tags[i];
    if (l->num_tags == MOST_TAGS)
        return NULL;
    tag *made = &l->tags[l->num_tags];
    *made = (tag){.name = strdup(name)};
    l->num_tags += made->name != NULL;
    l->out_of_memory = l->out_of_memory || !made->name;
    return made->name ? made : NULL;
}

/* Room for one more of `size` bytes each; NULL when out of memory. */
static void *grow(run_log *l, void *items, int count, int *room, size_t size)
{
    if (count < *room)
        return items;
    int more = *room ? 2 * *room : 64;
    void *grown = realloc(items, size * (size_t)more);
    if (grown)
        *room = more;
    else
        l->out_of_memory = true;
    return grown;
}

static void add_scalar(run_log *l, const tw_event *e)
{
    tag *t = find_tag(l, e->tag);
    point *points = t ? grow(l, t->points, t->num_points, &t->room, sizeof *points) : NULL;
    if (!points)
        return;
    t->points = points;
    t->points[t->num_points++] = (point){e->step, e->time, e->value};
}

static void add_histogram(run_log *l, const tw_event *e)
{
    tag *t = find_tag(l, e->tag);
    spread *spreads = t ? grow(l, t->spreads, t->num_spreads, &t->spread_room, sizeof *spreads) : NULL;
    size_t bytes = sizeof(double) * (size_t)e->num_buckets;
    double *numbers = spreads && e->num_buckets ? malloc(2 * bytes) : NULL;
    if (spreads)
        t->spreads = spreads;
    if (!numbers)
        return;
    memcpy(numbers, e->limits, bytes);
    memcpy(numbers + e->num_buckets, e->counts, bytes);
    t->spreads[t->num_spreads++] = (spread){e->step, e->num_buckets, e->min, e->max, numbers, numbers + e->num_buckets};
}

/* A run that was resumed begins a new file, and what earlier ones say of later steps did not happen. */
static void forget_from(run_log *l, int64_t step)
{
    for (int i = 0; i < l->num_tags; i++) {
        tag *t = &l->tags[i];
        while (t->num_points && t->points[t->num_points - 1].step >= step)
            t->num_points--;
        while (t->num_spreads && t->spreads[t->num_spreads - 1].step >= step)
            free(t->spreads[--t->num_spreads].limits);
    }
}

static tw_status read_file(run_log *l, const char *path, tw_error *error)
{
    tw_event_reader *reader;
    tw_event event;
    tw_status status = tw_event_reader_open(path, &reader, error);
    if (status != TW_OK)
        return status;
    while ((status = tw_event_reader_next(reader, &event, error)) == TW_OK) {
        if (event.kind == TW_EVENT_SCALAR)
            add_scalar(l, &event);
        else if (event.kind == TW_EVENT_HISTOGRAM)
            add_histogram(l, &event);
        else
            forget_from(l, event.step);
    }
    tw_event_reader_close(reader);
    bool end = status == TW_OUT_OF_RANGE || status == TW_DATA_LOSS; // a killed run's file was cut there
    return end ? TW_OK : status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Their names begin with the second in which they were made. */
static tw_status read_directory(run_log *l, const char *directory, int *files, tw_error *error)
{
    char *names[MOST_FILES], path[PATH_MAX];
    DIR *folder = opendir(directory);
    *files = 0;
    if (!folder && errno == ENOENT)
        return report_fail(error, TW_NOT_FOUND, "there is no directory '%s'", directory);
    if (!folder)
        return report_fail(error, TW_UNAVAILABLE, "cannot list '%s': %s", directory, strerror(errno));
    tw_status status = TW_OK;
    errno = 0;
    for (struct dirent *entry; *files < MOST_FILES && (entry = readdir(folder)); errno = 0)
        if (strncmp(entry->d_name, "events.out.tfevents.", 20) == 0) {
            names[*files] = strdup(entry->d_name);
            l->out_of_memory = l->out_of_memory || !names[*files];
            *files += names[*files] != NULL;
        }
    if (errno)
        status = report_fail(error, TW_UNAVAILABLE, "cannot list '%s': %s", directory, strerror(errno));
    closedir(folder);
    qsort(names, (size_t)*files, sizeof *names, by_name);
    for (int i = 0; i < *files; i++) {
        if (status == TW_OK && snprintf(path, sizeof path, "%s/%s", directory, names[i]) < (int)sizeof path)
            status = read_file(l, path, error);
        free(names[i]);
    }
    if (status != TW_OK)
        return status;
    return l->out_of_memory ? report_fail(error, TW_RESOURCE_EXHAUSTED, "out of memory") : TW_OK;
}

/* ---- scalars --------------------------------------------------------------------------------------------------- */

static void write_number(FILE *out, double value, const char *format)
{
    if (isfinite(value))
        fprintf(out, format, value);
    else
        fputs("null", out);
}

/* Of so many neighbours each: the mean, and between which values it lies where there is more than one. */
static void write_curve(const tag *t, FILE *out)
{
    int each = (t->num_points + MOST_POINTS - 1) / MOST_POINTS;
    fputs("{\"x\":[", out);
    for (int i = 0; i < t->num_points; i += each)
        fprintf(out, "%s%lld", i ? "," : "",
                (long long)t->points[i + each <= t->num_points ? i + each - 1 : t->num_points - 1].step);
    fputs("],\"t\":[", out);
    for (int i = 0; i < t->num_points; i += each)
        fprintf(out, "%s%.2f", i ? "," : "",
                t->points[i + each <= t->num_points ? i + each - 1 : t->num_points - 1].time - t->points[0].time);
    static const char *const names[] = {"y", "low", "high"};
    for (int which = 0; which < (each > 1 ? 3 : 1); which++) {
        fprintf(out, "],\"%s\":[", names[which]);
        for (int i = 0; i < t->num_points; i += each) {
            double sum = 0, low = INFINITY, high = -INFINITY;
            int end = i + each < t->num_points ? i + each : t->num_points;
            for (int k = i; k < end; k++) {
                sum += t->points[k].value;
                low = fmin(low, t->points[k].value);
                high = fmax(high, t->points[k].value);
            }
            fputs(i ? "," : "", out);
            write_number(out, which == 0 ? sum / (end - i) : which == 1 ? low : high, "%.5g");
        }
    }
    fputs("]}", out);
}

/* ---- histograms ------------------------------------------------------------------------------------------------ */

/* The buckets of a log are many and uneven; here they become a few of one width, each bucket's count spread evenly. */
static void write_bins(const spread *s, double low, double high, FILE *out)
{
    double bins[BINS] = {0}, width = (high - low) / BINS;
    for (int i = 0; i < s->count; i++) {
        double begin = fmax(i ? s->limits[i - 1] : s->min, low), end = fmin(s->limits[i], high);
        if (s->counts[i] <= 0)
            continue;
        begin = fmin(fmax(begin, s->min), high);
        end = fmax(fmin(end, s->max), begin);
        for (int b = 0; b < BINS; b++) {
            double from = fmax(begin, low + b * width), to = fmin(end, low + (b + 1) * width);
            if (end > begin && to > from)
                bins[b] += s->counts[i] * (to - from) / (end - begin);
            else if (end <= begin && begin >= low + b * width && (begin < low + (b + 1) * width || b == BINS - 1)) {
                bins[b] += s->counts[i];
                break;
            }
        }
    }
    for (int b = 0; b < BINS; b++)
        fprintf(out, "%s%.3g", b ? "," : "", bins[b]);
}

static void write_histogram(const tag *t, FILE *out)
{
    double low = INFINITY, high = -INFINITY;
    int each = (t->num_spreads + MOST_TIMES - 1) / MOST_TIMES;
    for (int i = 0; i < t->num_spreads; i += each) {
        low = fmin(low, t->spreads[i].min);
        high = fmax(high, t->spreads[i].max);
    }
    if (!(high > low))
        high = low + fmax(fabs(low) * 1e-3, 1e-6);
    fputs("{\"low\":", out);
    write_number(out, low, "%.5g");
    fputs(",\"high\":", out);
    write_number(out, high, "%.5g");
    fputs(",\"x\":[", out);
    for (int i = 0; i < t->num_spreads; i += each)
        fprintf(out, "%s%lld", i ? "," : "", (long long)t->spreads[i].step);
    fputs("],\"counts\":[", out);
    for (int i = 0; i < t->num_spreads; i += each) {
        fputs(i ? ",[" : "[", out);
        write_bins(&t->spreads[i], low, high, out);
        fputs("]", out);
    }
    fputs("]}", out);
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

static void write_log(const run_log *l, FILE *out)
{
    int written = 0, histograms = 0;
    fputs("\"curves\":{", out);
    for (int i = 0; i < l->num_tags; i++)
        if (l->tags[i].num_points) {
            fputs(written++ ? "," : "", out);
            report_text(out, l->tags[i].name);
            fputs(":", out);
            write_curve(&l->tags[i], out);
        }
    fputs("},\"histograms\":{", out);
    for (int i = 0; i < l->num_tags && histograms < MOST_HISTOGRAM_TAGS; i++)
        if (l->tags[i].num_spreads) {
            fputs(histograms++ ? "," : "", out);
            report_text(out, l->tags[i].name);
            fputs(":", out);
            write_histogram(&l->tags[i], out);
        }
    fputs("}", out);
}

static void free_log(run_log *l)
{
    for (int i = 0; i < l->num_tags; i++) {
        tag *t = &l->tags[i];
        for (int k = 0; k < t->num_spreads; k++)
            free(t->spreads[k].limits);
        free(t->spreads);
        free(t->points);
        free(t->name);
    }
    free(l);
}

tw_status report_curves(const char *directory, FILE *out, int *files, tw_error *error)
{
    run_log *l = calloc(1, sizeof *l);
    if (!l)
        return report_fail(error, TW_RESOURCE_EXHAUSTED, "out of memory");
    tw_status status = read_directory(l, directory, files, error);
    if (status == TW_OK)
        write_log(l, out);
    free_log(l);
    return status;
}
