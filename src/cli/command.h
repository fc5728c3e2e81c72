/* command.h - what a command of the program is, and the list of all. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "options.h"

#include <stdio.h>
#include <tower/device.h>

/* AGAIN (EX_TEMPFAIL): another task was lost, and to start again may help. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_AGAIN = 75 };

/* In the environment of what is started again, and not empty: `tower train` goes on as if --resume were given. */
#define RESUME_VARIABLE "TOWER_RESUME"

/* Who does it of the tasks that tower launch, mpirun or srun has started together: each for itself, the first for all,
 * all together, or nobody. */
typedef enum command_tasks { TASKS_EACH, TASKS_FIRST, TASKS_JOINED, TASKS_NONE } command_tasks;

typedef struct command {
    const char *name;        /* one word, or a group and a word: "data fetch" */
    const char *summary;     /* one line for lists: small first letter, no full stop */
    const char *description; /* for --help and the manual: paragraphs with an empty line between */
    const char *examples;    /* command lines, one a line */
    const char *exit_codes;  /* beyond the common 0, 1 and 2; NULL: none */
    const option *options;
    command_tasks of_tasks;
    const refusal *refusals; /* flags that are answered with a reason; NULL: none */
    size_t settings_bytes;
    /* Reads what files that the settings name say of the options; they are then read anew. Complains and returns false
     * if it cannot. NULL: there are no such files. */
    bool (*read_presets)(const void *settings, presets *presets);
    int (*run)(const void *settings); /* returns the exit code */
} command;

/* In the order in which help lists them; ends with NULL. */
extern const command *const commands[];

/* The command that the first words name, and in *words how many of them (1 or 2) are its name; NULL if none. */
const command *find_command(int count, char **names, int *words);

/* The command named by one or two words (second NULL: one); if there is none, `asking` complains and it is NULL. */
const command *find_named(const char *asking, const char *first, const char *second);

/* True if `name` is the first word of commands of two words, as "data" is. */
bool is_group(const char *name);

/* "tower data fetch: MESSAGE" on standard error; `command` NULL: "tower: MESSAGE". Returns false. */
bool complain(const char *command, const char *format, ...) TW_PRINTF(2, 3);

/* From here on what all tasks of that set complain of alike one says; NULL: there are none. Borrowed. */
void complain_among(tw_devices *tasks);

/* A task that complains before it has joined the others, of which it will do nothing more, joins them to find out whether
 * another says the same; false: no more, and it leaves them if it has. */
void complain_joining(bool wanted);
/* Whether this process is the one that has said what it complained of last. */
bool complained(void);

/* The same for an error of the library; returns EXIT_FAILED, EXIT_AGAIN if it comes of another task, or 128 and the
 * signal if a run that was asked to stop has waited for another task in vain since then. */
int failed(const char *command, const tw_error *error);

/* Whether one of those was so: a command that fails then ends with EXIT_AGAIN, whatever it returns. */
bool lost_another(void);

/* What standard error shows of what the library says: its warnings, or all. */
void show_warnings(void);
void show_details(void);

/* Flushes standard output and looks at whether all of it was written: a reader that went away is fine, a full disk is
 * not. Returns `code`, or EXIT_FAILED if that was 0 and output is lost. */
int finish_output(int code);

#endif
