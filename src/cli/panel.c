/* panel.c - see panel.h. The training tells, the painter's thread reads: one lock between them, held for moments. */
#include "panel.h"

#include "clock.h"
#include "painter.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/data.h>

enum { MOST_DEVICES_SHOWN = 16, CURVE = 512, PAST = 64, LABEL = 11 };

typedef struct device_bar {
    char name[16];
    double compute, copies; /* shares of a step, smoothed; the rest is waiting */
} device_bar;

struct panel {
    pthread_mutex_t lock;
    panel_job job;
    int64_t done, saved, accuracy_step;
    double began, aside, latest; /* when; seconds that evaluations took; of training, at the last telling */
    double loss, weight;         /* weight: of what the smoothed loss has seen, below 1 */
    float rate;
    double accuracy, best; /* NaNs: none yet */
    bool stopping;
    float curve[CURVE]; /* the smoothed loss, each point of `stride` tellings */
    int points, stride, told;
    struct {
        double at; /* seconds of training */
        int64_t done;
    } past[PAST]; /* a ring, one a second: how fast it goes now */
    int num_past;
    double wants_after; /* the next timeline */
    bool has_bars;
    device_bar bars[MOST_DEVICES_SHOWN];
    int num_bars, num_devices;
};

/* ---- telling --------------------------------------------------------------------------------------------------- */

/* A full curve keeps every second point. */
static void add_point(panel *p)
{
    if (++p->told % p->stride)
        return;
    if (p->points == CURVE) {
        for (int i = 0; i < CURVE / 2; i++)
            p->curve[i] = p->curve[2 * i + 1];
        p->points = CURVE / 2;
        p->stride *= 2;
    }
    p->curve[p->points++] = (float)(p->loss / p->weight);
}

void panel_step(panel *p, int64_t done, float loss, float rate)
{
    static const double kept = 0.98;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->done = done;
    p->latest = seconds_now() - p->began - p->aside;
    p->loss = kept * p->loss + (1 - kept) * loss;
    p->weight = kept * p->weight + (1 - kept);
    p->rate = rate;
    add_point(p);
    if (p->num_past == 0 || p->latest - p->past[(p->num_past - 1) % PAST].at >= 1) {
        p->past[p->num_past % PAST].at = p->latest;
        p->past[p->num_past % PAST].done = done;
        p->num_past++;
    }
    pthread_mutex_unlock(&p->lock);
}

static device_bar *bar_of(panel *p, const char *device)
{
    const char *name = strstr(device, "/device:");
    name = name ? name + strlen("/device:") : device;
    for (int i = 0; i < p->num_bars; i++)
        if (strcmp(p->bars[i].name, name) == 0)
            return &p->bars[i];
    if (p->num_bars == MOST_DEVICES_SHOWN)
        return NULL;
    device_bar *bar = &p->bars[p->num_bars++];
    *bar = (device_bar){.compute = -1};
    snprintf(bar->name, sizeof bar->name, "%.15s", name);
    return bar;
}

/* Spans of a device are neighbours. */
void panel_timeline(panel *p, const tw_timeline *t)
{
    if (!p || t->seconds <= 0)
        return;
    pthread_mutex_lock(&p->lock);
    p->num_devices = 0;
    for (int i = 0; i < t->num_spans;) {
        const char *device = t->spans[i].device;
        double compute = 0, copies = 0;
        for (; i < t->num_spans && t->spans[i].device == device; i++) {
            double share = (t->spans[i].end - t->spans[i].begin) / t->seconds;
            if (t->spans[i].kind != TW_TIME_INPUT) /* which is waiting for a batch */
                *(t->spans[i].kernel ? &compute : &copies) += share;
        }
        device_bar *bar = bar_of(p, device);
        p->num_devices++;
        if (bar) {
            double kept = bar->compute < 0 ? 0 : 0.7;
            bar->compute = kept * bar->compute + (1 - kept) * compute;
            bar->copies = kept * bar->copies + (1 - kept) * copies;
        }
    }
    p->has_bars = true;
    pthread_mutex_unlock(&p->lock);
}

bool panel_wants_timeline(panel *p)
{
    double now = seconds_now();
    if (!p || now < p->wants_after)
        return false;
    p->wants_after = now + 1;
    return true;
}

void panel_accuracy(panel *p, int64_t step, double accuracy, double seconds)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->aside += seconds;
    p->accuracy = accuracy;
    p->accuracy_step = step;
    p->best = isnan(p->best) || accuracy > p->best ? accuracy : p->best;
    pthread_mutex_unlock(&p->lock);
}

void panel_saved(panel *p, int64_t step)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->saved = step;
    pthread_mutex_unlock(&p->lock);
}

void panel_stopping(panel *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_mutex_unlock(&p->lock);
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

/* "1,234,567" */
static const char *grouped(int64_t number, char *text, size_t size)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%" PRId64, number);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < size; i++) {
        if (i && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = 0;
    return text;
}

/* "0:42", "1:02:03", "3 d 4 h" */
static const char *duration(double seconds, char *text, size_t size)
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (s < 3600)
        snprintf(text, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
    else if (s < 48 * 3600)
        snprintf(text, size, "%d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
    else
        snprintf(text, size, "%" PRId64 " d %d h", s / 86400, (int)(s / 3600 % 24));
    return text;
}

/* By the last minute of training; 0 while it is not known. */
static double steps_per_second(const panel *p)
{
    int oldest = p->num_past > PAST ? p->num_past % PAST : 0;
    bool known = p->num_past >= 3;
    double seconds = p->latest - (known ? p->past[oldest].at : 0);
    int64_t steps = p->done - (known ? p->past[oldest].done : p->job.first);
    return seconds > 0.2 ? (double)steps / seconds : 0;
}

/* "1:02:03 left", with the evaluations to come as they were so far; nothing where it is not known or over. */
static const char *time_left(const panel *p, char *text, size_t size)
{
    char left[32];
    double steps = steps_per_second(p);
    *text = 0;
    if (steps > 0 && p->done < p->job.max_steps)
        snprintf(text, size, "%s left",
                 duration((double)(p->job.max_steps - p->done) / steps * (1 + p->aside / p->latest), left, sizeof left));
    return text;
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

static void label(picture *out, const char *name)
{
    picture_text(out, STYLE_DIM, " %s", name);
    picture_pad(out, LABEL);
}

static void draw_title(const panel *p, picture *out, const char *doing, double since)
{
    char state[64];
    int towers = tw_trainer_towers(p->job.trainer);
    snprintf(state, sizeof state, "%s",
             doing                         ? doing
             : p->stopping                 ? "stopping"
             : p->done >= p->job.max_steps ? "done"
                                           : "training");
    if (doing && since >= 1)
        snprintf(state, sizeof state, "%.40s, %.0f s", doing, since);
    picture_text(out, STYLE_BOLD, " %s", p->job.model);
    picture_text(out, STYLE_PLAIN, " on %s, %d tower%s, %" PRId64 " examples a step", p->job.data_set, towers,
                 towers == 1 ? "" : "s", p->job.examples);
    int column = out->columns - (int)strlen(state) - 1;
    if (column > out->column + 2) {
        picture_pad(out, column);
        picture_text(out, p->stopping ? STYLE_YELLOW : STYLE_GREEN, "%s", state);
    }
    picture_end_line(out);
}

static void draw_steps(const panel *p, picture *out)
{
    char done[32], all[32], right[32];
    double share = p->job.max_steps ? (double)p->done / (double)p->job.max_steps : 1;
    label(out, "step");
    picture_text(out, STYLE_BOLD, "%s", grouped(p->done, done, sizeof done));
    picture_text(out, STYLE_PLAIN, " of %s ", grouped(p->job.max_steps, all, sizeof all));
    snprintf(right, sizeof right, " %5.1f %%", 100 * share);
    int width = out->columns - out->column - (int)strlen(right) - 1;
    if (width >= 8)
        picture_bar(out, width, &share, (style[]){STYLE_GREEN}, 1);
    picture_text(out, STYLE_PLAIN, "%s", right);
    picture_end_line(out);
}

static void draw_time(const panel *p, picture *out, double now)
{
    char gone[32], left[40], speed[32];
    double steps = steps_per_second(p);
    label(out, "time");
    picture_text(out, STYLE_PLAIN, "%s", duration(now - p->began, gone, sizeof gone));
    if (*time_left(p, left, sizeof left))
        picture_text(out, STYLE_BOLD, ", %s", left);
    if (p->job.data_examples)
        picture_text(out, STYLE_PLAIN, "  epoch %.2f",
                     (double)p->done * (double)p->job.examples / (double)p->job.data_examples);
    if (steps > 0)
        picture_text(out, STYLE_PLAIN,
                     steps > 10 ? "  %s examples/s, %.3g ms a step" : "  %s examples/s, %.0f ms a step",
                     grouped((int64_t)(steps * (double)p->job.examples + 0.5), speed, sizeof speed), 1000 / steps);
    picture_end_line(out);
}

static void draw_loss(const panel *p, picture *out)
{
    label(out, "loss");
    if (p->weight > 0)
        picture_text(out, STYLE_BOLD, "%.4g", p->loss / p->weight);
    picture_pad(out, LABEL + 8);
    int width = out->columns - out->column - 2;
    if (p->points > 1 && width >= 8)
        picture_curve(out, width, p->curve, p->points);
    picture_end_line(out);
}

static void draw_rate(const panel *p, picture *out)
{
    if (isnan(p->rate) && isnan(p->accuracy) && !p->saved)
        return;
    label(out, "rate");
    if (isnan(p->rate))
        picture_text(out, STYLE_PLAIN, "-");
    else
        picture_text(out, STYLE_PLAIN, "%g", p->rate);
    if (!isnan(p->accuracy)) {
        picture_text(out, STYLE_DIM, "  accuracy ");
        picture_text(out, STYLE_BOLD, "%.3f", p->accuracy);
        picture_text(out, STYLE_PLAIN, " at step %" PRId64 ", best %.3f", p->accuracy_step, p->best);
    }
    if (p->saved)
        picture_text(out, STYLE_DIM, "  saved at step %" PRId64, p->saved);
    picture_end_line(out);
}

static void draw_devices(const panel *p, picture *out, int most)
{
    int shown = p->num_bars < most ? p->num_bars : most;
    for (int i = 0; i < shown; i++) {
        char right[64];
        const device_bar *b = &p->bars[i];
        double waiting = 1 - b->compute - b->copies;
        label(out, b->name);
        snprintf(right, sizeof right, " compute %3.0f %%  copies %3.0f %%  waiting %3.0f %%", 100 * b->compute,
                 100 * b->copies, 100 * (waiting > 0 ? waiting : 0));
        int width = out->columns - out->column - (int)strlen(right) - 1;
        if (width >= 6)
            picture_bar(out, width, (double[]){b->compute, b->copies}, (style[]){STYLE_GREEN, STYLE_YELLOW}, 2);
        picture_text(out, STYLE_PLAIN, "%s", right);
        picture_end_line(out);
    }
    if (p->num_devices > shown) {
        label(out, "");
        picture_text(out, STYLE_DIM, "and %d more devices", p->num_devices - shown);
        picture_end_line(out);
    }
}

/* Where there is no room for more. */
static void draw_one_line(const panel *p, picture *out)
{
    char left[40];
    picture_text(out, STYLE_PLAIN, "%" PRId64 "/%" PRId64, p->done, p->job.max_steps);
    if (p->weight > 0)
        picture_text(out, STYLE_BOLD, " loss %.4g", p->loss / p->weight);
    picture_text(out, STYLE_PLAIN, " %s", time_left(p, left, sizeof left));
    picture_end_line(out);
}

static void draw(void *user, picture *out, int rows, const char *doing, double since)
{
    enum { LINES = 6 };
    panel *p = user;
    pthread_mutex_lock(&p->lock);
    if (rows < LINES + 2 || out->columns < 50) {
        draw_one_line(p, out);
    } else {
        draw_title(p, out, doing, since);
        draw_steps(p, out);
        draw_time(p, out, seconds_now());
        draw_loss(p, out);
        draw_rate(p, out);
        if (p->has_bars)
            draw_devices(p, out, rows - LINES - 2);
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- beginning and ending -------------------------------------------------------------------------------------- */

panel *panel_open(const panel_job *job)
{
    panel *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->job = *job;
    p->done = job->first;
    p->began = seconds_now();
    p->wants_after = p->began + 0.5;
    p->accuracy = p->best = NAN;
    p->rate = NAN;
    p->stride = 1;
    painter_start(stdout, draw, p);
    return p;
}

void panel_close(panel *p)
{
    if (!p)
        return;
    painter_stop();
    pthread_mutex_destroy(&p->lock);
    free(p);
}
