/* report.c - `tower report`: the options, and where the page goes. What is in it: src/report/. */
#include "report/report.h"

#include "command.h"
#include "painter.h"
#include "whole_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

typedef struct settings {
    texts directories;
    const char *output;
} settings;

/* A browser never opens half of the page. */
static int write_file(const settings *s, const char *path)
{
    tw_error error = TW_NO_ERROR;
    whole_file page;
    if (!whole_file_open(&page, path)) {
        complain("report", "cannot write '%s': %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    busy_begin("reading event logs");
    tw_status status = report_write(s->directories.items, s->directories.count, page.file, &error);
    busy_end();
    long size = ftell(page.file);
    if (whole_file_close(&page, status == TW_OK)) {
        printf("%s (%.0f KiB); open it in a browser\n", path, (double)size / 1024);
        return EXIT_DONE;
    }
    if (status == TW_OK)
        complain("report", "cannot write '%s': %s", path, strerror(errno));
    else
        failed("report", &error);
    return EXIT_FAILED;
}

static int run(const void *given)
{
    const settings *s = given;
    char own[PATH_MAX];
    tw_error error = TW_NO_ERROR;
    if (s->directories.count > REPORT_MOST_RUNS) {
        complain("report", "expected at most %d directories, found %d", REPORT_MOST_RUNS, s->directories.count);
        return EXIT_USAGE;
    }
    if (s->output && strcmp(s->output, "-") == 0)
        return report_write(s->directories.items, s->directories.count, stdout, &error) == TW_OK
                   ? EXIT_DONE
                   : failed("report", &error);
    for (int i = 0; i < s->directories.count; i++)
        if (access(s->directories.items[i], F_OK) != 0) {
            complain("report", "there is no directory '%s'", s->directories.items[i]);
            return EXIT_FAILED;
        }
    const char *first = s->directories.items[0];
    size_t length = strlen(first);
    snprintf(own, sizeof own, "%s%sreport.html", first, length && first[length - 1] == '/' ? "" : "/");
    return write_file(s, s->output ? s->output : own);
}

static const option options[] = {
    {NULL, "DIR...", OPTION_TEXTS, offsetof(settings, directories),
     "train directories, one or more; up to 16 are compared"},
    {"output", "FILE", OPTION_FILE, offsetof(settings, output),
     "where to write the page; -: standard output. Without it report.html in the first directory"},
    {0},
};

const command report_command = {
    .name = "report",
    .summary = "make one HTML page about one or more runs",
    .description =
        "Writes one file that any browser opens, without a network, by light or in the dark, on paper too: curves of "
        "all "
        "runs in one chart, what differs between their options, the accuracy by class and what was taken for what, "
        "where the "
        "time of a step went, when each device did what, which groups of nodes run where, why, and what crosses "
        "between "
        "devices, who holds which memory, and how values are spread. Charts have their values on hover and a table "
        "behind them.\n\n"
        "All is read from what 'tower train' leaves in a train directory: event logs, run.json, step.json, eval.jsonl. "
        "What "
        "is not there is left out. The graph is laid out by Graphviz (the program 'dot') where it is installed.",
    .examples = "tower report cifar10_train\ntower report first second third --output compared.html",
    .of_tasks = TASKS_FIRST,
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
