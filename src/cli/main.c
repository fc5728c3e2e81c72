/* main.c - the program `tower`: finds the command that the words name, reads its options, runs it.
 * Never here:  anything a command does. */
#include "command.h"
#include "help.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static bool asks_for_help(int count, char **words)
{
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
            return true;
    return false;
}

static int run_words(const command *command, int count, char **words)
{
    if (command->refusals && options_refused(command->name, command->refusals, count, words))
        return EXIT_USAGE;
    void *settings = calloc(1, command->settings_bytes ? command->settings_bytes : 1);
    if (!settings) {
        complain(command->name, "out of memory");
        return EXIT_FAILED;
    }
    int code = EXIT_USAGE;
    presets presets = {0};
    bool good = options_parse(command->name, command->options, NULL, count, words, settings);
    if (good && command->read_presets) {
        if (!command->read_presets(settings, &presets)) {
            code = EXIT_FAILED;
        } else if (presets.count) {
            options_free(command->options, settings);
            memset(settings, 0, command->settings_bytes);
            good = options_parse(command->name, command->options, &presets, count, words, settings);
        }
    }
    if (good && code == EXIT_USAGE)
        code = command->run(settings);
    else if (!good && complained())
        fprintf(stderr, "'tower %s --help' explains\n", command->name);
    options_free(command->options, settings);
    presets_free(&presets);
    free(settings);
    return code;
}

/* Whether this process is one that does it; else the exit code is in *code. That the others do nothing one of them
 * says, for they may have been started to do each something else. */
static bool is_to_do(const command *command, int *code)
{
    int tasks, task = tw_task_started(&tasks);
    bool refused = command->of_tasks == TASKS_NONE && tasks > 1;
    *code = refused ? EXIT_USAGE : EXIT_DONE;
    if (refused && task == 0)
        complain(command->name,
                 "it starts several runs, and the %d tasks that were started together are of one: start it by itself",
                 tasks);
    if (command->of_tasks == TASKS_FIRST && task == 1)
        complain(command->name, "task 0 alone does this, for all %d tasks", tasks);
    return !refused && (command->of_tasks != TASKS_FIRST || task == 0);
}

static int run(const command *command, int count, char **words)
{
    int code;
    if (!is_to_do(command, &code))
        return code;
    complain_joining(command->of_tasks == TASKS_JOINED);
    code = run_words(command, count, words);
    if (code == EXIT_FAILED && lost_another())
        code = EXIT_AGAIN;
    complain_joining(false);
    return code;
}

/* The first words name no command: a group without a word after it, or something unknown. */
static int explain_unknown(int count, char **words)
{
    bool in_group = is_group(words[0]);
    const char *group = in_group ? words[0] : NULL;
    const char *word = in_group ? (count > 1 ? words[1] : NULL) : words[0];
    if (asks_for_help(count, words) && (!word || word[0] == '-')) {
        print_help_on_group(stdout, group);
        return EXIT_DONE;
    }
    if (!word) {
        print_help_on_group(stderr, group);
        return EXIT_USAGE;
    }
    if (word[0] == '-' && !in_group) {
        complain(NULL, "unknown option '%s'; an option stands after the command", word);
    } else {
        nearest near = {.word = word};
        size_t skip = in_group ? strlen(group) + 1 : 0;
        for (int i = 0; commands[i]; i++)
            if (!in_group || (strncmp(commands[i]->name, group, skip - 1) == 0 && commands[i]->name[skip - 1] == ' '))
                nearest_consider(&near, commands[i]->name + skip);
        complain(group, "unknown command '%s'%s%s%s", word, near.best ? "; did you mean '" : "",
                 near.best ? near.best : "", near.best ? "'?" : "");
    }
    fprintf(stderr, "'tower%s%s --help' lists the commands\n", in_group ? " " : "", in_group ? group : "");
    return EXIT_USAGE;
}

/* Where standard input, output or error are closed, the next files would be opened in their places, and what is printed
 * would land in a checkpoint. */
static void fill_standard_places(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", O_RDWR); /* takes the lowest that is free */
}

/* A task of tower launch ends with what has started it, also where that is a script. */
static void follow_script(void)
{
    if (getenv("TOWER_TASK"))
        prctl(PR_SET_PDEATHSIG, SIGTERM);
}

int main(int argc, char **argv)
{
    fill_standard_places();
    follow_script();
    signals_begin();
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not end a training run */
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error of the write, and has a message */
    show_warnings();
    if (argc < 2) {
        print_help_on_group(stderr, NULL);
        return EXIT_USAGE;
    }
    char **words = argv + 1;
    int count = argc - 1, used;
    char version[] = "version";
    if (strcmp(words[0], "--version") == 0)
        words[0] = version;

    const command *command = find_command(count, words, &used);
    if (!command)
        return finish_output(explain_unknown(count, words));
    if (asks_for_help(count - used, words + used)) {
        print_help_on_command(stdout, command);
        return finish_output(EXIT_DONE);
    }
    return finish_output(run(command, count - used, words + used));
}
