/* help.h - what people read on a terminal about commands; made from the tables. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "command.h"

/* What the command does, how it is called, examples, options with defaults, exit codes. */
void print_help_on_command(FILE *file, const command *command);

/* The commands of a group ("data"), a line each; NULL: all. */
void print_help_on_group(FILE *file, const char *group);

/* "tower data fetch NAME [DIR] [options]" into text[size]. */
void usage_line(const command *command, char *text, size_t size);

/* "one of: text, json; default text", "default 128", "" : what follows a row's help. */
void value_note(const option *row, char *text, size_t size);

/* The heading that begins with a row, after the row `before` (NULL: it is the first); NULL if it stands under the one
 * before. */
const char *heading_of(const option *row, const option *before);

/* Writes text in lines of at most `width`, each but the first indented; `column` is where the first one stands. */
enum { HELP_WIDTH = 96 };
void print_wrapped(FILE *file, const char *text, size_t length, int column, int indent, int width);

/* "  name           words" on standard output, in lines of at most 80 columns. */
void print_entry(const char *name, const char *format, ...) TW_PRINTF(2, 3);

#endif
