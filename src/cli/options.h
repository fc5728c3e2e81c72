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
    OPTION_FLAG,      /* bool: there or not; also --noname, --name=on, --name=off (and true, false, yes, no, 1, 0) */
    OPTION_NUMBER,    /* int64_t in [least, most]; NOT_GIVEN if neither given nor with a default */
    OPTION_REAL,      /* double in [least, most], above 0 if `positive`; a NaN if neither given nor with a default */
    OPTION_BYTES,     /* int64_t in [least, most], as 512M or 1.5G (of 1024); NOT_GIVEN as a number's */
    OPTION_TEXTS,     /* texts: may be given several times; as the last operand, any number of words */
    OPTION_TEXT,      /* const char *; NULL if neither given nor with a default. So the next two: */
    OPTION_FILE,      /* a path; shells complete files */
    OPTION_DIRECTORY, /* a path; shells complete directories */
    OPTION_CHOICE,    /* int: the index of one of `choices`, in small or capital letters; -1 as OPTION_NUMBER's. Of on and
                         off, --name alone is on and --noname off */
} option_kind;

#define NOT_GIVEN INT64_MIN

/* The values of an option that may be given several times, in their order. */
typedef struct texts {
    int count;
    const char **items; /* options_free() */
} texts;

/* A row. Without a name it is an operand: a word by its position. A table ends with a row without help, which may lead
 * on to another table for the same settings: go through it with option_at(). */
typedef struct option {
    const char *name;     /* "batch-size", typed --batch-size, --batch_size or -batch-size; NULL: an operand */
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
    bool may_be_empty;   /* its text, as if it were not given; of OPTION_TEXTS one among the others */
    bool once;           /* concerns one call of the command: a run does not remember it */
    const char *instead; /* the option that says the same in other words: giving one puts a remembered other aside */
    const char *also;    /* what programs that Tower answers to call it, accepted as well: "job-dir|checkpoint-dir"; a flag
                            that stands for a value is "use-fp16=float16" */
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
            .initial = "text", .choices = "text|json", .once = true                                                    \
    }
enum { FORMAT_TEXT, FORMAT_JSON };

/* Options as texts, out of a file: names are those of rows, or the argument of an operand in small letters
 * ("model"). */
typedef struct presets {
    struct preset {
        char *name, *text;
        char from[256]; /* the file, for messages */
        bool lenient;   /* a name that the table lacks is passed over */
    } *items;
    int count;
} presets;

/* False: memory ran out. */
bool presets_add(presets *presets, const char *from, const char *name, const char *text, bool lenient);
void presets_free(presets *presets);

/* Fills in *settings from defaults, then presets (NULL: none), then words: the later win. On a wrong word it says on
 * standard error what is wrong, in the name of `command` ("data fetch"), and returns false; settings are then of no
 * use. Texts point into `words` and presets. Either way options_free() afterwards. */
bool options_parse(const char *command, const option *table, const presets *presets, int count, char **words,
                   void *settings);
void options_free(const option *table, void *settings);

/* What one would type to get the value of the row, in text[size]; false: nothing, it is not given. */
bool option_text(const option *row, const void *settings, char *text, size_t size);

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
