/* painter.c - see painter.h. One thread, one lock; what is shown is one block of lines at a time. */
#include "painter.h"

#include "clock.h"
#include "terminal.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NESTED = 8, ECHO_OF_A_KEY = 2 }; /* "^C" may come behind any line, which then must not wrap */
static const double pause_seconds = 0.1, patience = 2, plain_again = 15; /* of lines where nothing moves */

static struct {
    pthread_mutex_t lock;
    bool running; /* the thread is there */
    FILE *file;
    painting *draw; /* NULL: no painting, at most a line of what is under way */
    void *user;
    int paused;
    bool silent;
    struct {
        const char *what;
        double since;
    } doing[MOST_NESTED];
    int depth;
    double said; /* when what is under way was last said in a plain line */
    picture picture;
    int shown, widths[PICTURE_LINES]; /* lines that stand above the cursor, and the columns they take */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* After a stop the shell has written below what is shown. All threads block the signal (signals.h): it waits. */
static bool was_continued(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCONT);
    return sigtimedwait(&signals, NULL, &(struct timespec){0}) == SIGCONT;
}

/* ---- with the lock held ---------------------------------------------------------------------------------------- */

/* Goes to where what is shown begins. A terminal that has become narrower has broken its lines. */
static void rewind_shown(int columns)
{
    int up = 0;
    for (int i = 0; i < all.shown; i++)
        up += all.widths[i] > columns ? (all.widths[i] + columns - 1) / columns : 1;
    if (was_continued()) /* what stands there is history */
        up = 0;
    if (up)
        fprintf(all.file, "\033[%dA", up);
    fputs("\r", all.file);
    all.shown = 0;
}

static void erase(void)
{
    if (!all.file || !all.shown)
        return;
    rewind_shown(terminal_of(all.file).columns);
    fputs("\033[J", all.file);
    fflush(all.file);
    terminal_restore();
}

static void draw_busy(picture *p, const char *doing, double since)
{
    static const char turning[] = "|/-\\";
    picture_text(p, STYLE_DIM, "%c %s, %.0f s", turning[(int)(since * 5) % 4], doing, since);
    picture_end_line(p);
}

static void show(void)
{
    picture *p = &all.picture;
    terminal t = terminal_of(all.file);
    const char *doing = all.depth ? all.doing[all.depth - 1].what : NULL;
    double since = all.depth ? seconds_now() - all.doing[all.depth - 1].since : 0;
    if (!terminal_is_ours(all.file))
        return;
    picture_begin(p, t.columns - ECHO_OF_A_KEY, terminal_takes_utf8(), t.moving);
    if (all.draw)
        all.draw(all.user, p, t.rows, doing, since);
    else if (doing && since > patience)
        draw_busy(p, doing, since);
    if (!p->num_lines && !all.shown)
        return;
    terminal_keep_output(all.file);
    rewind_shown(t.columns);
    for (const char *line = p->bytes; *line;) { /* what stood there is overwritten, then cleared: nothing flickers */
        size_t length = strcspn(line, "\n");
        fwrite(line, 1, length, all.file);
        fputs("\033[K\n", all.file);
        line += length + (line[length] == '\n');
    }
    fputs("\033[J", all.file);
    fflush(all.file);
    all.shown = p->num_lines;
    memcpy(all.widths, p->widths, sizeof all.widths);
}

/* Where lines cannot be rewritten: one after two seconds, and then a few. */
static void say_plainly(void)
{
    double now = seconds_now();
    if (!all.depth || all.draw)
        return;
    double since = now - all.doing[all.depth - 1].since;
    if (since < patience || now - all.said < (since < 60 ? plain_again : 4 * plain_again))
        return;
    all.said = now;
    fprintf(stderr, "%s, %.0f s so far\n", all.doing[all.depth - 1].what, since);
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

static void *paint(void *unused)
{
    struct timespec nap = {0, (long)(pause_seconds * 1e9)};
    (void)unused;
    for (;;) {
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&all.lock);
        if (!all.paused && !all.silent && (all.draw || all.depth)) {
            if (all.draw || terminal_of(stderr).moving)
                show();
            else
                say_plainly();
        }
        pthread_mutex_unlock(&all.lock);
    }
    return NULL;
}

/* Never ends by itself: the process does. Signals are for the other threads. */
static void need_thread(void)
{
    pthread_t thread;
    sigset_t every, before;
    if (all.running)
        return;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    all.running = pthread_create(&thread, NULL, paint, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (all.running)
        pthread_detach(thread);
}

/* ---- for everybody --------------------------------------------------------------------------------------------- */

void painter_start(FILE *file, painting *draw, void *user)
{
    pthread_mutex_lock(&all.lock);
    erase();
    fflush(stdout);
    all.file = file;
    all.draw = draw;
    all.user = user;
    if (!all.paused)
        show();
    need_thread();
    pthread_mutex_unlock(&all.lock);
}

void painter_stop(void)
{
    pthread_mutex_lock(&all.lock);
    if (all.draw && !all.paused)
        show();
    terminal_restore();
    all.draw = NULL;
    all.shown = 0; /* what stands there stays */
    all.file = stderr;
    pthread_mutex_unlock(&all.lock);
}

void painter_pause(void)
{
    pthread_mutex_lock(&all.lock);
    if (all.paused++ == 0)
        erase();
    pthread_mutex_unlock(&all.lock);
}

void painter_resume(void)
{
    pthread_mutex_lock(&all.lock);
    all.paused--;
    pthread_mutex_unlock(&all.lock);
}

void busy_begin(const char *what)
{
    pthread_mutex_lock(&all.lock);
    if (all.depth < MOST_NESTED) {
        all.doing[all.depth].what = what;
        all.doing[all.depth].since = seconds_now();
        all.depth++;
    }
    if (!all.file)
        all.file = stderr;
    need_thread();
    pthread_mutex_unlock(&all.lock);
}

void busy_end(void)
{
    pthread_mutex_lock(&all.lock);
    if (all.depth)
        all.depth--;
    if (!all.draw)
        erase();
    all.said = 0;
    pthread_mutex_unlock(&all.lock);
}

void busy_silence(void)
{
    pthread_mutex_lock(&all.lock);
    all.silent = true;
    pthread_mutex_unlock(&all.lock);
}
