/* man.c - `tower man`: manual pages (man(7) source), made from the tables of commands. */
#include "command.h"
#include "help.h"
#include "whole_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tower/status.h>

typedef struct settings {
    const char *command, *subcommand, *directory;
} settings;

/* Text for roff: dashes that can be typed again, no accidental requests, one paragraph after another. */
static void print_roff(FILE *file, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (text[0] == '\n' && text[1] == '\n') {
            fputs("\n.PP\n", file);
            text++;
            line_start = true;
            continue;
        }
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", file);
        if (*text == '-')
            fputs("\\-", file);
        else if (*text == '\\')
            fputs("\\e", file);
        else
            fputc(*text, file);
        line_start = *text == '\n';
    }
}

static void print_header(FILE *file, const char *title, const char *summary)
{
    fprintf(file, ".TH \"");
    for (const char *p = title; *p; p++)
        fputc(toupper((unsigned char)*p), file);
    fprintf(file, "\" 1 \"\" \"tower %s\" \"Tower\"\n.SH NAME\n", tw_version());
    print_roff(file, title);
    fputs(" \\- ", file);
    print_roff(file, summary);
    fputc('\n', file);
}

/* The file name and the title of a command's page: "tower-data-fetch". */
static void page_name(const command *command, char *text, size_t size)
{
    snprintf(text, size, "tower-%s", command->name);
    for (char *p = text; (p = strchr(p, ' '));)
        *p = '-';
}

static void print_option(FILE *file, const option *row)
{
    char note[256];
    value_note(row, note, sizeof note);
    fputs(".TP\n", file);
    if (row->name) {
        fputs(".B \\-\\-", file);
        print_roff(file, row->name);
        if (row->argument)
            fprintf(file, " \\fI%s\\fR", row->argument);
    } else {
        fprintf(file, ".I %s", row->argument);
    }
    fputc('\n', file);
    print_roff(file, row->help);
    if (note[0]) {
        fputs(" (", file);
        print_roff(file, note);
        fputs(")", file);
    }
    fputs(".\n", file);
}

static void print_refusals(FILE *file, const refusal *list)
{
    fputs(".SH \"OPTIONS THAT ARE NOT HERE\"\n", file);
    for (; list->name; list++) {
        fputs(".TP\n.B \\-\\-", file);
        print_roff(file, list->name);
        fputs("\nnot supported because ", file);
        print_roff(file, list->reason);
        fputs(".\n", file);
    }
}

static void print_page(FILE *file, const command *command)
{
    char title[128], usage[512];
    page_name(command, title, sizeof title);
    usage_line(command, usage, sizeof usage);
    print_header(file, title, command->summary);
    fputs(".SH SYNOPSIS\n", file);
    print_roff(file, usage);
    fputs("\n.SH DESCRIPTION\n", file);
    print_roff(file, command->description);
    fputc('\n', file);
    const option *before = NULL;
    for (const option *row = command->options; (row = option_at(row)); before = row++) {
        const char *heading = heading_of(row, before);
        if (heading) {
            fputs(".SH \"", file);
            for (const char *p = heading; *p; p++)
                fputc(toupper((unsigned char)*p), file);
            fputs("\"\n", file);
        }
        print_option(file, row);
    }
    if (command->refusals)
        print_refusals(file, command->refusals);
    fputs(".SH EXAMPLES\n.EX\n", file);
    print_roff(file, command->examples);
    fputs("\n.EE\n.SH \"EXIT STATUS\"\n0 done, 1 failed, 2 wrong usage", file);
    if (command->exit_codes) {
        fputs(", ", file);
        print_roff(file, command->exit_codes);
    }
    fputs(".\n.SH \"SEE ALSO\"\n.BR tower (1)\n", file);
}

static void print_front_page(FILE *file)
{
    print_header(file, "tower", "train neural networks over several devices");
    fputs(".SH SYNOPSIS\ntower \\fICOMMAND\\fR [options]\n.SH DESCRIPTION\n", file);
    print_roff(file, "Trains neural networks over several devices: every device runs a copy of the network (a tower) "
                     "on its own part of the batch, and the gradients of all are averaged.\n\n"
                     "Options are written --name value or --name=value; underscores count as dashes.");
    fputs("\n.SH COMMANDS\n", file);
    for (int i = 0; commands[i]; i++) {
        char page[128];
        page_name(commands[i], page, sizeof page);
        fputs(".TP\n.BR ", file);
        print_roff(file, page);
        fputs(" (1)\n", file);
        print_roff(file, commands[i]->summary);
        fputs(".\n", file);
    }
    fputs(".SH ENVIRONMENT\n", file);
    static const char *const variables[][2] = {
        {"TOWER_VIRTUAL_GPUS", "how many virtual GPUs there are where no option says so"},
        {"TOWER_PLUGIN_PATH", "folders, separated by colons, in which plug-ins with devices (libtower_*.so) are looked for "
                              "before all others"},
        {"TOWER_ALGORITHM_CACHE", "off: real GPUs time the algorithms of NVIDIA's libraries in every run, and neither read "
                                  "nor write what was found in $XDG_CACHE_HOME/tower/algorithms or "
                                  "~/.cache/tower/algorithms"},
        {"TOWER_CONVOLUTIONS", "cudnn or tower: whose convolutions real GPUs may take, where both have some"},
        {"NO_COLOR", "no colours and no moving progress bars"},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        fprintf(file, ".TP\n.B %s\n", variables[i][0]);
        print_roff(file, variables[i][1]);
        fputs(".\n", file);
    }
    fputs(".SH \"EXIT STATUS\"\n0 done, 1 failed, 2 wrong usage, 128+n stopped by signal n.\n", file);
}

/* Writes one page into a file of the directory; `command` NULL: the front page. */
static bool write_page(const char *directory, const command *command)
{
    char name[128] = "tower", path[4096];
    if (command)
        page_name(command, name, sizeof name);
    if (snprintf(path, sizeof path, "%s/%s.1", directory, name) >= (int)sizeof path)
        return complain("man", "the path of the directory is too long");
    whole_file page;
    bool is_open = whole_file_open(&page, path);
    if (is_open && command)
        print_page(page.file, command);
    else if (is_open)
        print_front_page(page.file);
    return whole_file_close(&page, true) || complain("man", "cannot write '%s': %s", path, strerror(errno));
}

static int write_all(const char *directory)
{
    bool written = write_page(directory, NULL);
    for (int i = 0; written && commands[i]; i++)
        written = write_page(directory, commands[i]);
    return written ? EXIT_DONE : EXIT_FAILED;
}

static int run(const void *given)
{
    const settings *s = given;
    if (s->directory)
        return write_all(s->directory);
    if (!s->command) {
        print_front_page(stdout);
        return EXIT_DONE;
    }
    const command *found = find_named("man", s->command, s->subcommand);
    if (!found)
        return EXIT_USAGE;
    print_page(stdout, found);
    return EXIT_DONE;
}

static const option options[] = {
    {NULL, "COMMAND", OPTION_TEXT, offsetof(settings, command),
     "the command whose page is wanted; without it, the page on the program", .optional = true},
    {NULL, "WORD", OPTION_TEXT, offsetof(settings, subcommand), "the second word of commands that have two",
     .optional = true},
    {"directory", "DIR", OPTION_DIRECTORY, offsetof(settings, directory),
     "write all pages into this directory instead, as tower.1, tower-devices.1 and so on"},
    {0},
};

const command man_command = {
    .name = "man",
    .summary = "print the manual pages",
    .description = "Prints the source of a manual page, made from the same table that the command reads its options "
                   "by. The installed pages are these.",
    .examples = "tower man devices | man -l -\ntower man --directory /usr/local/share/man/man1",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
