/* sweep.c - `tower sweep`: many trainings that differ in a few options, so many at once, and a table of what came of
 * them. Each is a `tower train` of its own, so a sweep knows nothing that a run's directory does not say. */
#include "clock.h"
#include "command.h"
#include "config.h"
#include "json.h"
#include "signals.h"
#include "training.h"
#include "whole_file.h"
#include "word.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_AXES = 8, MOST_VALUES = 64, MOST_RUNS = 1000, NAME_SIZE = 512 };

typedef struct settings {
    const char *file, *directory;
    int64_t at_once;
    int format;
} settings;

/* An option with the values that it takes. */
typedef struct axis {
    const char *name;
    char *values[MOST_VALUES]; /* in `text` */
    int count;
    char *text;
} axis;

typedef struct run_state {
    int choice[MOST_AXES]; /* of each axis' values */
    char name[NAME_SIZE];  /* "learning-rate=0.1,batch-size=32" */
    pid_t process;         /* 0: not running */
    bool ended;
    int code;
    /* what its output says */
    int64_t steps;
    double loss, accuracy, best, seconds;
    char error[256];
} run_state;

typedef struct sweep {
    const settings *s;
    presets grid;
    axis axes[MOST_AXES];
    int num_axes;
    run_state *runs;
    int count;
    char program[PATH_MAX];
    pid_t process; /* this one */
} sweep;

/* ---- the grid -------------------------------------------------------------------------------------------------- */

static bool split(axis *a, const char *file)
{
    char *rest;
    for (char *value = strtok_r(a->text, " \t", &rest); value; value = strtok_r(NULL, " \t", &rest)) {
        if (a->count == MOST_VALUES)
            return complain("sweep", "'%s': %s has more than %d values", file, a->name, MOST_VALUES);
        a->values[a->count++] = value;
    }
    return a->count > 0 || complain("sweep", "'%s': %s in [grid] has no values", file, a->name);
}

static bool read_grid(sweep *w)
{
    const char *file = w->s->file;
    if (w->grid.count == 0 || w->grid.count > MOST_AXES)
        return complain("sweep", "'%s': expected a section [grid] with 1 to %d options, found %d", file, MOST_AXES,
                        w->grid.count);
    w->count = 1;
    for (int i = 0; i < w->grid.count; i++) {
        axis *a = &w->axes[w->num_axes++];
        *a = (axis){.name = w->grid.items[i].name, .text = w->grid.items[i].text};
        if (!split(a, file))
            return false;
        w->count *= a->count;
        if (w->count > MOST_RUNS)
            return complain("sweep", "'%s': the grid has more than %d runs", file, MOST_RUNS);
    }
    w->runs = calloc((size_t)w->count, sizeof *w->runs);
    return w->runs || complain("sweep", "out of memory");
}

/* The first axis changes slowest. */
static void name_runs(sweep *w)
{
    for (int i = 0; i < w->count; i++) {
        run_state *r = &w->runs[i];
        int rest = i;
        size_t used = 0;
        for (int k = w->num_axes - 1; k >= 0; k--) {
            r->choice[k] = rest % w->axes[k].count;
            rest /= w->axes[k].count;
        }
        for (int k = 0; k < w->num_axes && used < sizeof r->name; k++)
            used += (size_t)snprintf(r->name + used, sizeof r->name - used, "%s%s=%s", k ? "," : "", w->axes[k].name,
                                     w->axes[k].values[r->choice[k]]);
        for (char *p = r->name; (p = strchr(p, '/'));)
            *p = '_';
        r->loss = r->accuracy = r->best = r->seconds = NAN;
    }
}

/* Each run has a directory of its own: else one would go on from what another has learned. */
static bool names_are_good(const sweep *w)
{
    enum { MOST_BELOW = NAME_SIZE + 96, MOST_FOLDER = PATH_MAX - MOST_BELOW };
    if (strlen(w->s->directory) > MOST_FOLDER)
        return complain("sweep", "--train-dir: the path is too long, expected at most %d bytes, found %zu", MOST_FOLDER,
                        strlen(w->s->directory));
    for (int i = 0; i < w->count; i++)
        if (strlen(w->runs[i].name) > NAME_MAX)
            return complain("sweep",
                            "'%s': the values of a run, '%.60s...', are the name of its directory, which may be %d "
                            "bytes long",
                            w->s->file, w->runs[i].name, NAME_MAX);
    for (int i = 0; i < w->count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(w->runs[i].name, w->runs[k].name) == 0)
                return complain("sweep",
                                "'%s': two runs would have the directory '%s': a value stands there twice, or values "
                                "differ in '/' and '_' alone",
                                w->s->file, w->runs[i].name);
    return true;
}

static void option_word(const sweep *w, const run_state *r, int axis, char word[NAME_SIZE])
{
    snprintf(word, NAME_SIZE, "--%s=%s", w->axes[axis].name, w->axes[axis].values[r->choice[axis]]);
}

/* A slip of the pen in one value is found before anything runs. */
static bool options_are_good(const sweep *w)
{
    presets common = {0};
    train_settings ignored;
    bool good = config_read("sweep", w->s->file, NULL, &common);
    for (int i = 0; i < w->count && good; i++) {
        char words[MOST_AXES][NAME_SIZE], *pointers[MOST_AXES];
        for (int k = 0; k < w->num_axes; k++) {
            option_word(w, &w->runs[i], k, words[k]);
            pointers[k] = words[k];
        }
        memset(&ignored, 0, sizeof ignored);
        good = options_parse("sweep", train_options, &common, w->num_axes, pointers, &ignored);
        options_free(train_options, &ignored);
    }
    presets_free(&common);
    return good;
}

/* ---- one run --------------------------------------------------------------------------------------------------- */

static void path_of(const sweep *w, const run_state *r, const char *file, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s%s", w->s->directory, r->name, file);
}

/* In the new process: goes on where an earlier sweep was ended. */
static void become_training(const sweep *w, const run_state *r, int log)
{
    char words[MOST_AXES][NAME_SIZE], directory[PATH_MAX], checkpoint[PATH_MAX];
    char *arguments[MOST_AXES + 10];
    int count = 0;
    path_of(w, r, "", directory);
    path_of(w, r, "/checkpoint", checkpoint);
    signals_end_with(w->process); /* it saves, and a sweep that is started again goes on with it */
    setpgid(0, 0); /* Ctrl-C reaches the sweep alone, which passes it on: two would end a run without saving */
    if (dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0) {
        complain("sweep", "cannot print into '%s/train.log': %s", directory, strerror(errno));
        _exit(EXIT_FAILED);
    }
    const char *const fixed[] = {w->program,    "train",   "--config", w->s->file,
                                 "--train-dir", directory, "--format", "json"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        arguments[count++] = (char *)fixed[i];
    if (access(checkpoint, F_OK) == 0 || errno != ENOENT)
        arguments[count++] = (char *)"--resume";
    for (int k = 0; k < w->num_axes; k++) {
        option_word(w, r, k, words[k]);
        arguments[count++] = words[k];
    }
    arguments[count] = NULL;
    signals_hand_on();
    execv(w->program, arguments);
    complain("sweep", "cannot start '%s': %s", w->program, strerror(errno));
    _exit(EXIT_FAILED);
}

static bool begin_run(const sweep *w, run_state *r)
{
    char directory[PATH_MAX], log[PATH_MAX];
    bool made;
    path_of(w, r, "", directory);
    path_of(w, r, "/train.log", log);
    if (!make_folders(directory, &made))
        return complain("sweep", "cannot make the directory '%s': %s", directory, strerror(errno));
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        return complain("sweep", "cannot write '%s': %s", log, strerror(errno));
    fflush(NULL);
    r->process = fork();
    if (r->process == 0)
        become_training(w, r, file);
    int reason = errno;
    close(file);
    return r->process > 0 || complain("sweep", "cannot start a process for '%s': %s", r->name, strerror(reason));
}

static void take_event(run_state *r, const cJSON *event)
{
    const char *name = json_text_of(event, "event");
    if (!name)
        return;
    if (strcmp(name, "step") == 0) {
        r->steps = json_integer_of(event, "step", -1) + 1;
        r->loss = json_number_of(event, "loss", NAN);
    } else if (strcmp(name, "evaluation") == 0) {
        r->accuracy = json_number_of(event, "precision_at_1", NAN);
        r->best = json_number_of(event, "best_precision_at_1", NAN);
    } else if (strcmp(name, "end") == 0) {
        r->seconds = json_number_of(event, "seconds", 0) + (isnan(r->seconds) ? 0 : r->seconds);
    } else if (strcmp(name, "error") == 0) {
        const char *message = json_text_of(event, "message");
        snprintf(r->error, sizeof r->error, "%s", message ? message : "");
    }
}

/* Lines that are no JSON are what it said on standard error. */
static void read_output(const sweep *w, run_state *r)
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    path_of(w, r, "/train.log", path);
    FILE *file = fopen(path, "r");
    errno = file ? 0 : errno;
    while (file && getline(&line, &room, file) > 0) {
        cJSON *event = cJSON_Parse(line);
        take_event(r, event);
        if (!event && line[0])
            snprintf(r->error, sizeof r->error, "%.*s", (int)strcspn(line, "\n"), line);
        cJSON_Delete(event);
    }
    if ((!file || !feof(file)) && r->code == EXIT_DONE) { /* what it came to is not known */
        r->code = EXIT_FAILED;
        snprintf(r->error, sizeof r->error, "cannot read its train.log: %s", strerror(errno));
    }
    free(line);
    if (file)
        fclose(file);
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

static void print_end_of(const sweep *w, const run_state *r, int ended)
{
    char time[64];
    if (w->s->format == FORMAT_JSON)
        return;
    printf("%s: %d of %d, %s: ", time_of_day(time, sizeof time), ended, w->count, r->name);
    if (r->code != EXIT_DONE)
        printf("failed with exit code %d: %s\n", r->code, r->error);
    else if (isnan(r->best))
        printf("loss %.4g\n", r->loss);
    else
        printf("loss %.4g, precision @ 1 %.3f\n", r->loss, r->best);
    fflush(stdout);
}

/* Whoever asked this process alone to stop meant all: they finish their step and save. */
static void pass_on_stop(const sweep *w)
{
    for (int i = 0; i < w->count; i++)
        if (w->runs[i].process > 0)
            kill(w->runs[i].process, SIGTERM);
}

/* Waits until one ends. Handlers do not interrupt system calls here (signals.c), so it looks for both, now and then. */
static bool wait_for_one(sweep *w, bool *told, int *running, int *ended)
{
    static const struct timespec a_while = {.tv_nsec = 20000000};
    int status;
    pid_t process;
    while ((process = waitpid(-1, &status, WNOHANG)) == 0) {
        if (signals_stop() && !*told)
            pass_on_stop(w);
        *told |= signals_stop() != 0;
        nanosleep(&a_while, NULL);
    }
    if (process < 0)
        return errno == EINTR;
    for (int i = 0; i < w->count; i++) {
        run_state *r = &w->runs[i];
        if (r->process != process)
            continue;
        r->process = 0;
        r->ended = true;
        r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        read_output(w, r);
        --*running;
        print_end_of(w, r, ++*ended);
    }
    return true;
}

static bool run_all(sweep *w)
{
    int running = 0, ended = 0, next = 0;
    bool good = true, told = false;
    while (good && (running > 0 || (next < w->count && !signals_stop()))) {
        if (next < w->count && running < w->s->at_once && !signals_stop()) {
            good = begin_run(w, &w->runs[next++]);
            running += good;
            continue;
        }
        good = wait_for_one(w, &told, &running, &ended);
    }
    while (running > 0 && wait_for_one(w, &told, &running, &ended))
        ;
    return good;
}

/* The one with the best accuracy, or where nobody measured it the lowest loss; -1: none came to its end. */
static int best_of(const sweep *w)
{
    int best = -1;
    for (int i = 0; i < w->count; i++) {
        const run_state *r = &w->runs[i], *b = best < 0 ? r : &w->runs[best];
        bool measured = !isnan(r->best);
        if (r->ended && r->code == EXIT_DONE && (best < 0 || (measured ? r->best > b->best : r->loss < b->loss)))
            best = i;
    }
    return best;
}

static int width_of(const axis *a)
{
    int width = (int)strlen(a->name);
    for (int i = 0; i < a->count; i++)
        width = (int)strlen(a->values[i]) > width ? (int)strlen(a->values[i]) : width;
    return width;
}

static void print_number(int width, const char *format, double number)
{
    char text[32];
    snprintf(text, sizeof text, format, number);
    printf("  %*s", width, isnan(number) ? "-" : text);
}

static void print_table(const sweep *w)
{
    int best = best_of(w);
    printf("\n ");
    for (int k = 0; k < w->num_axes; k++)
        printf("  %-*s", width_of(&w->axes[k]), w->axes[k].name);
    printf("  %9s  %9s  %9s  %9s  %9s\n", "steps", "loss", "accuracy", "best", "seconds");
    for (int i = 0; i < w->count; i++) {
        const run_state *r = &w->runs[i];
        printf("%c", i == best ? '*' : ' ');
        for (int k = 0; k < w->num_axes; k++)
            printf("  %-*s", width_of(&w->axes[k]), w->axes[k].values[r->choice[k]]);
        printf("  %9" PRId64, r->steps);
        print_number(9, "%.4g", r->loss);
        print_number(9, "%.3f", r->accuracy);
        print_number(9, "%.3f", r->best);
        print_number(9, "%.1f", r->seconds);
        printf("%s\n", !r->ended ? "  not run" : r->code != EXIT_DONE ? "  failed" : "");
    }
    if (best < 0)
        return;
    printf("next:\n  tower eval ");
    print_word(w->s->directory, w->runs[best].name);
    printf("\n");
}

static void print_json(const sweep *w)
{
    int best = best_of(w);
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_begin(&out, "runs", '[');
    for (int i = 0; i < w->count; i++) {
        const run_state *r = &w->runs[i];
        char directory[PATH_MAX];
        path_of(w, r, "", directory);
        json_begin(&out, NULL, '{');
        json_text(&out, "train_dir", directory);
        json_begin(&out, "options", '{');
        for (int k = 0; k < w->num_axes; k++)
            json_text(&out, w->axes[k].name, w->axes[k].values[r->choice[k]]);
        json_end(&out);
        json_integer(&out, "exit_code", r->ended ? r->code : -1);
        json_integer(&out, "steps", r->steps);
        json_number(&out, "loss", r->loss);
        json_number(&out, "precision_at_1", r->accuracy);
        json_number(&out, "best_precision_at_1", r->best);
        json_number(&out, "seconds", r->seconds);
        json_flag(&out, "best", i == best);
        json_end(&out);
    }
    json_end(&out);
    json_end(&out);
}

static int code_of(const sweep *w)
{
    if (signals_stop())
        return 128 + signals_stop();
    for (int i = 0; i < w->count; i++)
        if (!w->runs[i].ended || w->runs[i].code != EXIT_DONE)
            return EXIT_FAILED;
    return EXIT_DONE;
}

static int run(const void *given)
{
    const settings *s = given;
    sweep w = {.s = s, .process = getpid()};
    int code = EXIT_FAILED;
    ssize_t length = readlink("/proc/self/exe", w.program, sizeof w.program - 1);
    if (length <= 0) {
        complain("sweep", "cannot find the program itself in /proc: %s", strerror(errno));
        return code;
    }
    if (config_read("sweep", s->file, "grid", &w.grid)) {
        code = EXIT_USAGE;
        bool good = read_grid(&w);
        if (good)
            name_runs(&w);
        if (good && names_are_good(&w) && options_are_good(&w)) {
            signals_watch(NULL);
            if (s->format == FORMAT_TEXT)
                printf("%d runs, %" PRId64 " at once, below %s\n", w.count, s->at_once, s->directory);
            run_all(&w);
            if (s->format == FORMAT_JSON)
                print_json(&w);
            else
                print_table(&w);
            code = code_of(&w);
        }
    }
    presets_free(&w.grid);
    free(w.runs);
    return code;
}

static const option options[] = {
    {NULL, "FILE", OPTION_FILE, offsetof(settings, file),
     "options of all runs, as for 'tower train --config'; then, behind a line [grid], options with several values "
     "each, "
     "with blanks between"},
    {"train-dir", "DIR", OPTION_DIRECTORY, offsetof(settings, directory),
     "where each run gets a directory, named by its values", .initial = "sweep"},
    {"at-once", "K", OPTION_NUMBER, offsetof(settings, at_once), "train so many at a time", .initial = "1", .least = 1,
     .most = 256},
    FORMAT_OPTION(settings, format),
    {0},
};

const command sweep_command = {
    .name = "sweep",
    .summary = "train with every combination of some options, and compare",
    .description = "Trains once for every combination of the values in the file's [grid], so many at once, and prints "
                   "a table: steps, "
                   "the last loss, the last and the best accuracy (with eval-every), seconds; a star marks the best. "
                   "Each run is a "
                   "'tower train' with a directory of its own; what it prints is in its train.log.\n\n"
                   "Runs that are there already go on, or are left alone where they are done, so a sweep that was "
                   "ended is continued by "
                   "the same command. Runs at once share the cores: cpu-threads in the file says how many each takes.",
    .examples = "tower sweep rates.ini\ntower sweep rates.ini --at-once 2 --train-dir rates --format json",
    .exit_codes = "128+n stopped by signal n, after all runs have saved",
    .of_tasks = TASKS_NONE,
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
