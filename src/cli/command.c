/* command.c - finding commands and speaking for them; see command.h. */
#include "command.h"

#include "painter.h"
#include "signals.h"
#include "translate.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* One file of this folder defines each. */
extern const command train_command, plan_command, why_command, bench_command, eval_command, predict_command,
    export_command, sweep_command, data_fetch_command, data_info_command, checkpoint_ls_command, checkpoint_show_command,
    checkpoint_verify_command, show_command, run_command, devices_command, doctor_command, report_command,
    launch_command, version_command, help_command, completion_command, man_command;

const command *const commands[] = {
    &train_command,
    &sweep_command,
    &launch_command,
    &plan_command,
    &why_command,
    &bench_command,
    &eval_command,
    &report_command,
    &predict_command,
    &export_command,
    &data_fetch_command,
    &data_info_command,
    &checkpoint_ls_command,
    &checkpoint_show_command,
    &checkpoint_verify_command,
    &show_command,
    &run_command,
    &devices_command,
    &doctor_command,
    &version_command,
    &help_command,
    &completion_command,
    &man_command,
    NULL,
};

const command *find_command(int count, char **names, int *words)
{
    char both[128];
    snprintf(both, sizeof both, "%s %s", count > 0 ? names[0] : "", count > 1 ? names[1] : "");
    for (int i = 0; commands[i]; i++)
        if (count > 1 && strcmp(commands[i]->name, both) == 0) {
            *words = 2;
            return commands[i];
        }
    for (int i = 0; commands[i]; i++)
        if (count > 0 && strcmp(commands[i]->name, names[0]) == 0) {
            *words = 1;
            return commands[i];
        }
    return NULL;
}

const command *find_named(const char *asking, const char *first, const char *second)
{
    char *names[] = {(char *)first, (char *)second};
    int count = second ? 2 : 1, used = 0;
    const command *found = find_command(count, names, &used);
    if (found && used == count)
        return found;
    complain(asking, "there is no command '%s%s%s'; 'tower help' lists them", first, second ? " " : "",
             second ? second : "");
    return NULL;
}

bool is_group(const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; commands[i]; i++)
        if (strncmp(commands[i]->name, name, length) == 0 && commands[i]->name[length] == ' ')
            return true;
    return false;
}

/* What the library tells, such as a checkpoint that was passed over. */
static void show_log(void *user, int level, const char *text)
{
    (void)user;
    painter_pause();
    fprintf(stderr, "tower: %s%s\n", level == 0 ? "error: " : level == 1 ? "warning: " : "", text);
    painter_resume();
}

void show_warnings(void)
{
    tw_set_log(show_log, NULL, 1);
}

void show_details(void)
{
    tw_set_log(show_log, NULL, 3);
}

static tw_devices *among, *joined; /* joined: to complain */
static bool joins, silent;

static void ask_others(void *tasks, int number)
{
    tw_devices_asked(tasks, number);
}

void complain_among(tw_devices *tasks)
{
    among = tasks;
    signals_tell(tasks ? ask_others : NULL, tasks);
}

void complain_joining(bool wanted)
{
    int tasks;
    tw_task_started(&tasks);
    joins = wanted && tasks > 1;
    among = among == joined ? NULL : among;
    tw_devices_destroy(joined);
    joined = NULL;
}

bool complained(void)
{
    return !silent;
}

static bool is_to_say(const char *text)
{
    tw_error error;
    if (joins && tw_devices_create(TW_OPTIONS(tw_device_options, .tasks = true, .no_gpus = true, .cpu_threads = 1),
                                   &joined, &error) == TW_OK)
        among = joined;
    joins = false;
    return !among || tw_devices_is_to_say(among, text);
}

bool complain(const char *command, const char *format, ...)
{
    char text[8192]; /* written by one call: several tasks of a run may share a terminal */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if ((silent = !is_to_say(text)))
        return false;
    painter_pause();
    fflush(stdout);
    fprintf(stderr, "tower%s%s: %s\n", command ? " " : "", command ? command : "", text);
    painter_resume();
    return false;
}

static bool has_lost;

bool lost_another(void)
{
    return has_lost;
}

int failed(const char *command, const tw_error *error)
{
    char message[2 * sizeof error->message];
    complain(command, "%s", translate(error->message, message, sizeof message));
    int stop = error->status == TW_DEADLINE_EXCEEDED && among ? tw_devices_asked(among, signals_stop()) : 0;
    if (stop) /* a step that has waited in vain since then */
        return 128 + stop;
    has_lost |= error->status == TW_ABORTED;
    return error->status == TW_ABORTED ? EXIT_AGAIN : EXIT_FAILED;
}

/* A pipe whose reader went away is always ready to fail. */
static bool nobody_reads(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}

int finish_output(int code)
{
    errno = 0;
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (!lost || code != EXIT_DONE || nobody_reads())
        return code;
    if (errno == 0 && putchar('\n') == '\n') // lost by a line before: the reason is had by writing another
        fflush(stdout);
    complain(NULL, "cannot write to standard output: %s", errno ? strerror(errno) : "some of it was lost");
    return EXIT_FAILED;
}
