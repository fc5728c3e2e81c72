/* help.c - see help.h; and the command `tower help`. */
#include "help.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = HELP_WIDTH, MARGIN = 26 }; /* columns of text; where the help of an option begins */

/* ---- pieces ------------------------------------------------------------------------------------------------ */

void print_wrapped(FILE *file, const char *text, size_t length, int column, int indent, int width)
{
    while (length) {
        size_t word = 0;
        while (word < length && text[word] != ' ' && text[word] != '\n')
            word++;
        if (column > indent && column + 1 + (int)word > width) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', file);
            column++;
        }
        fwrite(text, 1, word, file);
        column += (int)word;
        size_t space = word < length;
        text += word + space;
        length -= word + space;
    }
    fputc('\n', file);
}

void print_entry(const char *name, const char *format, ...)
{
    enum { INDENT = 17, ENTRY_WIDTH = 80 };
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("  %-14s ", name);
    print_wrapped(stdout, text, strlen(text), INDENT, INDENT, ENTRY_WIDTH);
}

static void print_paragraphs(FILE *file, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        print_wrapped(file, text, length, 0, 0, WIDTH);
        fputc('\n', file);
        text += length + (end ? 2 : 0);
    }
}

static void print_indented_lines(FILE *file, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        fprintf(file, "  %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

void usage_line(const command *command, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "tower %s", command->name);
    bool options = false;
    for (const option *row = command->options; (row = option_at(row)) && used < size; row++)
        if (row->name)
            options = true;
        else
            used += (size_t)snprintf(text + used, size - used, row->optional ? " [%s]" : " %s", row->argument);
    if (options && used < size)
        snprintf(text + used, size - used, " [options]");
}

void value_note(const option *row, char *text, size_t size)
{
    char choice[64];
    const char *rest = option_choices(row);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; rest && used < size && next_choice(&rest, choice, sizeof choice); i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "one of: ", choice);
    if (row->initial && used < size)
        used += (size_t)snprintf(text + used, size - used, "%sdefault %s", used ? "; " : "", row->initial);
    const char *others = row->also ? row->also : "";
    for (bool first = true; used < size && next_choice(&others, choice, sizeof choice); first = false) {
        char *stands_for = strchr(choice, '=');
        if (stands_for)
            *stands_for++ = 0;
        used += (size_t)snprintf(text + used, size - used, "%s%s%s", !first ? ", " : used ? "; also " : "also ",
                                 strlen(choice) > 2 ? "--" : "-", choice);
        if (stands_for && used < size)
            used += (size_t)snprintf(text + used, size - used, " for %s", stands_for);
    }
}

const char *heading_of(const option *row, const option *before)
{
    if (row->section)
        return row->section;
    if (!row->name)
        return before ? NULL : "operands";
    return !before || !before->name ? "options" : NULL;
}

static void print_option(FILE *file, const option *row)
{
    char left[64], note[256], help[1024];
    if (!row->name)
        snprintf(left, sizeof left, "  %s", row->argument);
    else
        snprintf(left, sizeof left, "  --%s%s%s", row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
    value_note(row, note, sizeof note);
    snprintf(help, sizeof help, note[0] ? "%s (%s)" : "%s", row->help, note);

    fprintf(file, "%-*s", MARGIN, left);
    if (strlen(left) >= MARGIN)
        fprintf(file, "\n%*s", MARGIN, "");
    print_wrapped(file, help, strlen(help), MARGIN, MARGIN, WIDTH);
}

/* The names alone; each has its reason ready for who gives it. */
static void print_refusals(FILE *file, const refusal *list)
{
    int column = 2;
    fputs("\nanswered with the reason why they are not here:\n ", file);
    for (; list->name; list++) {
        int width = (int)strlen(list->name) + 3;
        if (column + width > WIDTH) {
            fputs("\n ", file);
            column = 2;
        }
        fprintf(file, " --%s", list->name);
        column += width;
    }
    fputc('\n', file);
}

/* ---- whole pages ------------------------------------------------------------------------------------------- */

void print_help_on_command(FILE *file, const command *command)
{
    char usage[512];
    usage_line(command, usage, sizeof usage);
    fprintf(file, "tower %s: %s\n\nusage: %s\n\n", command->name, command->summary, usage);
    print_paragraphs(file, command->description);
    fputs("examples:\n", file);
    print_indented_lines(file, command->examples);

    const option *before = NULL;
    for (const option *row = command->options; (row = option_at(row)); before = row++) {
        const char *heading = heading_of(row, before);
        if (heading)
            fprintf(file, "\n%s:\n", heading);
        print_option(file, row);
    }
    if (command->refusals)
        print_refusals(file, command->refusals);
    fprintf(file, "\nexit codes: 0 done, 1 failed, 2 wrong usage%s%s\n", command->exit_codes ? ", " : "",
            command->exit_codes ? command->exit_codes : "");
}

void print_help_on_group(FILE *file, const char *group)
{
    if (group)
        fprintf(file, "usage: tower %s COMMAND [options]\n\ncommands:\n", group);
    else
        fputs("tower trains neural networks over several devices.\n\nusage: tower COMMAND [options]\n\ncommands:\n",
              file);
    size_t length = group ? strlen(group) : 0;
    for (int i = 0; commands[i]; i++)
        if (!group || (strncmp(commands[i]->name, group, length) == 0 && commands[i]->name[length] == ' '))
            fprintf(file, "  %-20s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n'tower COMMAND --help' teaches one command, with examples.\n", file);
}

/* ---- tower help -------------------------------------------------------------------------------------------- */

typedef struct settings {
    const char *command, *subcommand;
} settings;

static int run(const void *given)
{
    const settings *s = given;
    if (!s->command || (!s->subcommand && is_group(s->command))) {
        print_help_on_group(stdout, s->command);
        return EXIT_DONE;
    }
    const command *found = find_named("help", s->command, s->subcommand);
    if (!found)
        return EXIT_USAGE;
    print_help_on_command(stdout, found);
    return EXIT_DONE;
}

static const option options[] = {
    {NULL, "COMMAND", OPTION_TEXT, offsetof(settings, command), "the command to explain; all are listed without it",
     .optional = true},
    {NULL, "WORD", OPTION_TEXT, offsetof(settings, subcommand), "the second word of commands that have two",
     .optional = true},
    {0},
};

const command help_command = {
    .name = "help",
    .summary = "explain a command, or list them all",
    .description = "Prints what 'tower COMMAND --help' prints.",
    .examples = "tower help\ntower help devices",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
