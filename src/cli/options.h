/* options.h - what a command takes, as one table of rows; and the parser that reads a command line by it.
 * The same rows feed --help, the manual pages and the shells' completion, so these cannot drift apart.
 *
 *     typedef struct settings { int64_t steps; bool resume; const char *directory; } settings;
 *     static const option options[] = {
 *         {NULL, "DIR", OPTION_DIRECTORY, offsetof(settings, directory), "..."},
 *         {"steps", "N", OPTION_NUMBER, offsetof(settings, steps), "...", .initial = "10", .least = 1, .most = 1000},
 *         {"resume", NULL, OPTION_FLAG, offsetof(settings, resume), "..."},
 *         {0},
 *     };
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the text of a value is read, and what lies at its place in the settings. ORDER KIND: grep it. */
typedef enum option_kind {
    OPTION_FLAG,      /* bool: there or not; also --name=on, --name=off (and true, false, yes, no, 1, 0) */
    OPTION_NUMBER,    /* int64_t in [least, most]; NOT_GIVEN if neither given nor with a default */
    OPTION_REAL,      /* double in [least, most], above 0 if `positive`; a NaN if neither given nor with a default */
    OPTION_BYTES,     /* int64_t in [least, most], as 512M or 1.5G (of 1024); NOT_GIVEN as a number's */
    OPTION_TEXT,      /* const char *; NULL if neither given nor with a default. So the next two: */
    OPTION_FILE,      /* a path; shells complete files */
    OPTION_DIRECTORY, /* a path; shells complete directories */
    OPTION_CHOICE,    /* int: the index of one of `choices`, in small or capital letters; -1 as OPTION_NUMBER's */
} option_kind;

#define NOT_GIVEN INT64_MIN

/* A row. Without a name it is an operand: a word by its position. A table ends with a row without help, which may lead
 * on to another table for the same settings: go through it with option_at(). */
typedef struct option {
    const char *name;     /* "batch-size", typed --batch-size or --batch_size; NULL: an operand */
    const char *argument; /* what stands for the value: "N", "DIR"; NULL for flags */
    option_kind kind;
    size_t at;           /* offset in the command's settings */
    const char *help;    /* a phrase: small first letter, no full stop */
    const char *initial; /* the default as one would type it; NULL: none */
    int64_t least, most; /* of a number */
    bool positive;       /* of a real */
    const char *choices; /* "text|json" */
    const char *(*list_choices)(void); /* the same, where they are known when the program runs */
    bool optional;       /* of an operand: may be left out */
    const char *also;    /* what a program that Tower answers to calls it; accepted as well */
    const char *section; /* heading it stands under in the help; NULL: that of the row before */
    const struct option *more; /* of a row without help: the table that follows */
} option;

/* The first row at `row` or in the tables that follow; NULL at the end:
 *
 *     for (const option *row = table; (row = option_at(row)); row++) */
const option *option_at(const option *row);

/* The row of --format, which every reporting command has; `member` of the settings is an int. */
#define FORMAT_OPTION(settings, member)                                                                                \
    {                                                                                                                  \
        "format", "FORMAT", OPTION_CHOICE, offsetof(settings, member), "text for people, json for programs",           \
            .initial = "text", .choices = "text|json"                                                                  \
    }
enum { FORMAT_TEXT, FORMAT_JSON };

/* Fills in *settings from defaults and words. On a wrong word it says on standard error what is wrong, in the name of
 * `command` ("data fetch"), and returns false; settings are then of no use. Texts point into `words`. */
bool options_parse(const char *command, const option *table, int count, char **words, void *settings);

/* A flag that a program has which this one answers to, and the reason why it is not here. A list ends with zeros. */
typedef struct refusal {
    const char *name; /* "horovod-device" */
    const char *reason;
} refusal;

/* True, and says so on standard error, if one of the words is such a flag. */
bool options_refused(const char *command, const refusal *list, int count, char **words);

/* ---- looking up names that people mistype ---- */

/* Offer candidates, then read `best`: the one nearest to `word`, NULL if none is near. */
typedef struct nearest {
    const char *word, *best;
    int distance;
} nearest;

void nearest_consider(nearest *nearest, const char *candidate);

/* "a|b|c"; NULL: the row is no choice. */
const char *option_choices(const option *row);
/* Copies the next of "a|b|c" into choice[size] and moves *choices past it; false at the end. */
bool next_choice(const char **choices, char *choice, size_t size);

#endif
