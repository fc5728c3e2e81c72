/* completion.c - `tower completion`: what a shell needs to complete the words of a command line, made from the tables.
 * The script stands for itself: completing a word does not run the program. */
#include "command.h"

#include <string.h>

typedef struct settings {
    int shell;
} settings;

enum { SHELL_BASH, SHELL_ZSH, SHELL_FISH }; /* as in the choices below */

/* What is done with each first word (group NULL), or with each second word of a group. command is NULL for a word that
 * is a group. */
typedef void visit_word(const char *group, const char *word, const command *command);

static void each_word(const char *group, visit_word *visit)
{
    size_t skip = group ? strlen(group) + 1 : 0;
    char last[64] = "";
    for (int i = 0; commands[i]; i++) {
        const char *name = commands[i]->name;
        if (group && (strncmp(name, group, skip - 1) != 0 || name[skip - 1] != ' '))
            continue;
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(name + skip, " "), name + skip);
        if (strcmp(word, last) != 0) /* commands of a group stand together */
            visit(group, word, group || !is_group(word) ? commands[i] : NULL);
        memcpy(last, word, sizeof last);
    }
}

static void each_group(void (*visit)(const char *group))
{
    for (int i = 0; commands[i]; i++) {
        const char *name = commands[i]->name;
        size_t length = strcspn(name, " ");
        if (!name[length] || (i > 0 && strncmp(commands[i - 1]->name, name, length + 1) == 0))
            continue;
        char group[64];
        snprintf(group, sizeof group, "%.*s", (int)length, name);
        visit(group);
    }
}

static void name_word(const char *group, const char *word, const command *command)
{
    (void)group, (void)command;
    printf(" %s", word);
}

static void print_choices(const char *choices)
{
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* ---- bash -------------------------------------------------------------------------------------------------- */

static void bash_group(const char *group)
{
    printf("    %s) words='", group);
    each_word(group, name_word);
    puts("' ;;");
}

/* Sets words and kind for the value of a row. */
static void bash_value(const option *row) /* ORDER KIND */
{
    if (row->kind == OPTION_CHOICE) {
        printf("words='");
        print_choices(option_choices(row));
        printf("'");
    } else {
        printf("kind=%s", row->kind == OPTION_FILE ? "-f" : row->kind == OPTION_DIRECTORY ? "-d" : "");
    }
}

static void bash_command(const command *command)
{
    printf("    '%s')\n        case $before in\n", command->name);
    for (const option *row = command->options; (row = option_at(row)); row++)
        if (row->name && row->argument) {
            printf("        --%s) ", row->name);
            bash_value(row);
            puts(" ;;");
        }
    printf("        *)\n            words='--help");
    for (const option *row = command->options; (row = option_at(row)); row++)
        if (row->name)
            printf(" --%s", row->name);
        else if (row->kind == OPTION_CHOICE) {
            putchar(' ');
            print_choices(option_choices(row));
        }
    puts("'");
    for (const option *row = command->options; (row = option_at(row)); row++)
        if (!row->name && row->kind != OPTION_CHOICE) {
            printf("            [[ $word == -* ]] || ");
            bash_value(row);
            putchar('\n');
        }
    puts("            ;;\n        esac ;;");
}

static void print_bash(void)
{
    puts("# bash completion for tower\n"
         "_tower()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= kind=\n"
         "    # bash makes three words of --name=value\n"
         "    [[ $word == = ]] && word=\n"
         "    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
         "    ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}");
    printf("    case $command in");
    char separator = ' ';
    for (int i = 0; commands[i]; i++) {
        const char *name = commands[i]->name;
        size_t length = strcspn(name, " ");
        if (name[length] && (i == 0 || strncmp(commands[i - 1]->name, name, length + 1) != 0)) {
            printf("%c%.*s", separator, (int)length, name);
            separator = '|';
        }
    }
    puts(separator == ' ' ? " -)" : ") ((COMP_CWORD > 2)) && command+=\" ${COMP_WORDS[2]}\" ;;");
    puts("    esac\n    case $command in");
    printf("    '') words='");
    each_word(NULL, name_word);
    puts(" --help --version' ;;");
    each_group(bash_group);
    for (int i = 0; commands[i]; i++)
        bash_command(commands[i]);
    puts("    esac\n"
         "    [[ $kind ]] && compopt -o filenames 2>/dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen $kind -W \"$words\" -- \"$word\")\n"
         "}\n"
         "complete -F _tower tower");
}

/* ---- zsh --------------------------------------------------------------------------------------------------- */

/* Inside single quotes, where _arguments and _describe give meaning to some characters. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (strchr(":[]\\", *text))
            printf("\\%c", *text);
        else if (*text == '\'')
            printf("'\\''");
        else
            putchar(*text);
    }
}

static void zsh_word(const char *group, const char *word, const command *command)
{
    (void)group;
    printf(" '%s:", word);
    if (command)
        zsh_text(command->summary);
    else
        each_word(word, name_word);
    putchar('\'');
}

static void zsh_group(const char *group)
{
    printf("    %s)\n        if ((CURRENT == 3)); then\n            words_of_group=(", group);
    each_word(group, zsh_word);
    puts(")\n            _describe command words_of_group\n            return\n        fi\n"
         "        command+=\" $words[3]\"\n        shift words; ((CURRENT--)) ;;");
}

static void zsh_value(const option *row) /* ORDER KIND */
{
    printf(":%s:", row->argument);
    if (row->kind == OPTION_CHOICE) {
        putchar('(');
        print_choices(option_choices(row));
        putchar(')');
    } else if (row->kind == OPTION_FILE) {
        printf("_files");
    } else if (row->kind == OPTION_DIRECTORY) {
        printf("_files -/");
    }
}

static void zsh_command(const command *command)
{
    printf("    '%s')\n        _arguments '--help[explain the command]'", command->name);
    for (const option *row = command->options; (row = option_at(row)); row++) {
        printf(" \\\n            '");
        if (row->name) {
            printf("--%s%s[", row->name, row->argument ? "=" : "");
            zsh_text(row->help);
            putchar(']');
        } else if (row->optional) {
            putchar(':');
        }
        if (row->argument)
            zsh_value(row);
        putchar('\'');
    }
    puts(" ;;");
}

static void print_zsh(void)
{
    puts("#compdef tower\n_tower() {\n    local command=$words[2]\n    local -a words_of_group\n"
         "    if ((CURRENT == 2)); then");
    printf("        words_of_group=(");
    each_word(NULL, zsh_word);
    puts(")\n        _describe command words_of_group\n        return\n    fi\n    case $command in");
    each_group(zsh_group);
    puts("    esac\n    shift words; ((CURRENT--))\n    case $command in");
    for (int i = 0; commands[i]; i++)
        zsh_command(commands[i]);
    puts("    esac\n}\n"
         "# autoloaded, this file is the function's first call\n"
         "if [[ $funcstack[1] == _tower ]]; then _tower; else compdef _tower tower; fi");
}

/* ---- fish -------------------------------------------------------------------------------------------------- */

static void fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void fish_word(const char *group, const char *word, const command *command)
{
    printf("complete -c tower -n '__tower_at%s%s' -a %s -d ", group ? " " : "", group ? group : "", word);
    if (command) {
        fish_text(command->summary);
    } else {
        putchar('\'');
        each_word(word, name_word);
        putchar('\'');
    }
    putchar('\n');
}

static void fish_group(const char *group)
{
    each_word(group, fish_word);
}

static void fish_command(const command *command)
{
    for (const option *row = command->options; (row = option_at(row)); row++) { /* ORDER KIND */
        printf("complete -c tower -n '__tower_in %s'", command->name);
        if (row->name)
            printf(" -l %s", row->name);
        if (row->kind == OPTION_CHOICE) {
            printf(row->name ? " -x -a '" : " -a '");
            print_choices(option_choices(row));
            putchar('\'');
        } else if (row->kind == OPTION_FILE) {
            printf(row->name ? " -r -F" : " -F");
        } else if (row->kind == OPTION_DIRECTORY) {
            printf("%s -a '(__fish_complete_directories (commandline -ct))'", row->name ? " -x" : "");
        } else if (row->name && row->argument) {
            printf(" -x");
        }
        printf(" -d ");
        fish_text(row->help);
        putchar('\n');
    }
}

static void print_fish(void)
{
    puts("# fish completion for tower\n"
         "function __tower_at # the words so far are exactly these\n"
         "    set -l words (commandline -opc)\n"
         "    test \"$words[2..-1]\" = \"$argv\"\n"
         "end\n"
         "function __tower_in # the words so far begin with these\n"
         "    set -l words (commandline -opc)\n"
         "    set -l last (math 1 + (count $argv))\n"
         "    test \"$words[2..$last]\" = \"$argv\"\n"
         "end\n"
         "complete -c tower -f");
    each_word(NULL, fish_word);
    each_group(fish_group);
    for (int i = 0; commands[i]; i++)
        fish_command(commands[i]);
}

/* ------------------------------------------------------------------------------------------------------------ */

static int run(const void *given)
{
    const settings *s = given;
    static void (*const printers[])(void) = {
        [SHELL_BASH] = print_bash,
        [SHELL_ZSH] = print_zsh,
        [SHELL_FISH] = print_fish,
    };
    printers[s->shell]();
    return EXIT_DONE;
}

static const option options[] = {
    {NULL, "SHELL", OPTION_CHOICE, offsetof(settings, shell), "the shell that the script is for",
     .choices = "bash|zsh|fish"},
    {0},
};

const command completion_command = {
    .name = "completion",
    .summary = "print a script that completes commands in a shell",
    .description = "Prints a script after which the shell completes the commands, options and values of tower when the "
                   "tab key is pressed. An installed tower brings these scripts along.",
    .examples = "source <(tower completion bash)\n"
                "tower completion zsh > ~/.zfunc/_tower\n"
                "tower completion fish > ~/.config/fish/completions/tower.fish",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
