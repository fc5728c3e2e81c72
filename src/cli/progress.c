/* progress.c - see progress.h. */
#include "progress.h"

#include "clock.h"
#include "terminal.h"

#include <string.h>

progress progress_to(FILE *file)
{
    return (progress){.file = file, .moving = terminal_of(file).moving};
}

char *bytes_text(double bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

/* "162.2 MiB", or "10000 examples". */
static char *amount_text(const progress *p, double amount, char *text, size_t size)
{
    if (!p->unit)
        return bytes_text(amount, text, size);
    snprintf(text, size, "%.0f %s", amount, p->unit);
    return text;
}

static void draw_bar(progress *p, int64_t done, int64_t total, double now)
{
    char all[32], rate_text[32], right[128], left[32] = "";
    double rate = now > p->started ? (double)(done - p->first) / (now - p->started) : 0;
    double fraction = total > 0 ? (double)done / (double)total : 0;
    if (rate > 0 && total > done) {
        int64_t rest = (int64_t)((double)(total - done) / rate) + 1;
        snprintf(left, sizeof left, ", %lld:%02lld left", (long long)(rest / 60), (long long)(rest % 60));
    }
    snprintf(right, sizeof right, "%3.0f%% of %s, %s/s%s", 100 * fraction,
             amount_text(p, (double)total, all, sizeof all), amount_text(p, rate, rate_text, sizeof rate_text), left);
    int room = terminal_of(p->file).columns - (int)strlen(p->what) - (int)strlen(right) - 5;
    fprintf(p->file, "\r%s ", p->what);
    if (room >= 10) {
        int filled = (int)(fraction * room);
        fputc('[', p->file);
        for (int i = 0; i < room; i++)
            fputc(i < filled ? '#' : '.', p->file);
        fputs("] ", p->file);
    }
    fprintf(p->file, "%s\033[K", right);
    fflush(p->file);
    p->line_open = true;
}

void progress_update(progress *p, const char *what, int64_t done, int64_t total)
{
    double now = seconds_now();
    if (strcmp(p->what, what) != 0) {
        progress_end(p);
        snprintf(p->what, sizeof p->what, "%s", what);
        p->first = done;
        p->started = now;
        p->shown = 0;
        p->tenths = -1;
    }
    bool finished = done >= total;
    if (now - p->started < p->quiet && p->tenths < 0)
        return;
    if (p->moving) {
        if (finished || now - p->shown >= 0.1) {
            draw_bar(p, done, total, now);
            p->shown = now;
            p->tenths = 0;
        }
        return;
    }
    int tenths = total > 0 ? (int)(10 * (double)done / (double)total) : 10;
    if (tenths != p->tenths) {
        char all[32];
        fprintf(p->file, "%s: %d%% of %s\n", what, 10 * tenths, amount_text(p, (double)total, all, sizeof all));
        p->tenths = tenths;
    }
}

bool progress_go_on(void *progress, const char *what, int64_t done, int64_t total)
{
    progress_update(progress, what, done, total);
    return true;
}

void progress_end(progress *p)
{
    if (p->line_open)
        fputc('\n', p->file);
    p->line_open = false;
}
