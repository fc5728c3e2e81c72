/* options.c - see options.h. */
#include "options.h"

#include "command.h" /* complain */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_NAME = 64 }; /* of options, commands and choices, with the final 0 */

/* ---- names that people mistype ----------------------------------------------------------------------------- */

/* Insertions, deletions, replacements and swaps of neighbours that make b of a. Longer words are never near. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][LONGEST_NAME], n = (int)strlen(b);
    if (strlen(a) >= LONGEST_NAME || n >= LONGEST_NAME)
        return INT_MAX;
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= n; j++)
        last[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[n];
}

void nearest_consider(nearest *nearest, const char *candidate)
{
    size_t length = strlen(nearest->word);
    int distance = edit_distance(nearest->word, candidate);
    if (length >= 3 && strncmp(nearest->word, candidate, length) == 0)
        distance = 1; /* the start of a name is as good as a slip of one key */
    int near_enough = 1 + (int)length / 4;
    if (distance <= near_enough && (!nearest->best || distance < nearest->distance)) {
        nearest->best = candidate;
        nearest->distance = distance;
    }
}

const char *option_choices(const option *row)
{
    return row->list_choices ? row->list_choices() : row->choices;
}

bool next_choice(const char **choices, char *choice, size_t size)
{
    size_t length = strcspn(*choices, "|");
    if (!**choices || length >= size)
        return false;
    memcpy(choice, *choices, length);
    choice[length] = 0;
    *choices += length + ((*choices)[length] == '|');
    return true;
}

const option *option_at(const option *row)
{
    while (row && !row->help)
        row = row->more;
    return row;
}

/* ---- values ------------------------------------------------------------------------------------------------ */

/* "--batch-size" or "MODEL", for messages. */
static const char *label(const option *row, char text[LONGEST_NAME])
{
    snprintf(text, LONGEST_NAME, "%s%s", row->name ? "--" : "", row->name ? row->name : row->argument);
    return text;
}

static bool parse_number(const char *command, const option *row, const char *text, int64_t *value)
{
    char name[LONGEST_NAME], *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool whole = end != text && !*end && !isspace((unsigned char)*text);
    if (whole && errno == 0 && number >= row->least && number <= row->most) {
        *value = number;
        return true;
    }
    if (row->most == INT64_MAX)
        return complain(command, "%s: expected a whole number of at least %" PRId64 ", found '%s'", label(row, name),
                        row->least, text);
    return complain(command, "%s: expected a whole number from %" PRId64 " to %" PRId64 ", found '%s'",
                    label(row, name), row->least, row->most, text);
}

static bool parse_real(const char *command, const option *row, const char *text, double *value)
{
    char name[LONGEST_NAME], *end;
    double number = strtod(text, &end);
    bool whole = end != text && !*end && !isspace((unsigned char)*text);
    if (whole && number >= (double)row->least && number <= (double)row->most && !(row->positive && number <= 0)) {
        *value = number;
        return true;
    }
    return complain(command, "%s: expected a number %s %" PRId64 " and at most %" PRId64 ", found '%s'",
                    label(row, name), row->positive ? "above" : "of at least", row->least, row->most, text);
}

/* "512M", "1.5G", "4096", "64KiB": K, M, G and T are powers of 1024. */
static bool parse_bytes(const char *command, const option *row, const char *text, int64_t *value)
{
    static const char units[] = "KMGT";
    char name[LONGEST_NAME], *end;
    double number = strtod(text, &end);
    bool good = end != text && isdigit((unsigned char)*text) && isfinite(number);
    const char *unit = good && *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    for (int i = 0; unit && i <= unit - units; i++)
        number *= 1024;
    if (unit)
        end++;
    if (unit && strcasecmp(end, "iB") == 0)
        end += 2;
    else if (*end == 'B' || *end == 'b')
        end++;
    good = good && !*end && number >= (double)row->least && number <= (double)row->most && number < 9e18;
    if (good) {
        *value = (int64_t)number;
        return true;
    }
    return complain(command, "%s: expected bytes such as 512M or 1.5G%s, found '%s'", label(row, name),
                    row->least > 0 ? ", more than none" : "", text);
}

static bool parse_choice(const char *command, const option *row, const char *text, int *value)
{
    char name[LONGEST_NAME], choice[LONGEST_NAME], best[LONGEST_NAME] = "", expected[256] = "";
    nearest near = {.word = text};
    const char *rest = option_choices(row);
    size_t used = 0;
    for (int i = 0; next_choice(&rest, choice, sizeof choice); i++) {
        if (strcasecmp(choice, text) == 0) {
            *value = i;
            return true;
        }
        nearest_consider(&near, choice);
        if (near.best == choice)
            near.best = memcpy(best, choice, sizeof best);
        if (used < sizeof expected)
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s", i ? ", " : "", choice);
    }
    return complain(command, "%s: expected one of %s, found '%s'%s%s%s", label(row, name), expected, text,
                    best[0] ? "; did you mean '" : "", best, best[0] ? "'?" : "");
}

static bool parse_flag(const char *command, const option *row, const char *text, bool *value)
{
    static const char *const words[] = {"off", "on", "false", "true", "no", "yes", "0", "1"}; /* odd: true */
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
        if (strcasecmp(text, words[i]) == 0) {
            *value = i % 2;
            return true;
        }
    char name[LONGEST_NAME];
    return complain(command, "%s: expected on or off, found '%s'", label(row, name), text);
}

static bool add_text(const char *command, const char *text, texts *list)
{
    const char **more = realloc(list->items, (size_t)(list->count + 1) * sizeof *more);
    if (!more)
        return complain(command, "out of memory");
    list->items = more;
    list->items[list->count++] = text;
    return true;
}

static bool parse_value(const char *command, const option *row, const char *text, void *settings) /* ORDER KIND */
{
    void *place = (char *)settings + row->at;
    char name[LONGEST_NAME];
    if (!*text && row->may_be_empty && row->kind != OPTION_TEXTS)
        return true;
    switch (row->kind) {
    case OPTION_FLAG:
        return parse_flag(command, row, text, place);
    case OPTION_NUMBER:
        return parse_number(command, row, text, place);
    case OPTION_REAL:
        return parse_real(command, row, text, place);
    case OPTION_BYTES:
        return parse_bytes(command, row, text, place);
    case OPTION_CHOICE:
        return parse_choice(command, row, text, place);
    case OPTION_TEXT:
    case OPTION_TEXTS:
    case OPTION_FILE:
    case OPTION_DIRECTORY:
        if (!*text && !row->may_be_empty)
            return complain(command, "%s: expected %s, found an empty text", label(row, name), row->argument);
        if (row->kind == OPTION_TEXTS)
            return add_text(command, text, place);
        *(const char **)place = text;
        return true;
    }
    return false;
}

static void set_default(const char *command, const option *row, void *settings)
{
    if (row->initial)
        parse_value(command, row, row->initial, settings);
    else if (row->kind == OPTION_NUMBER || row->kind == OPTION_BYTES)
        *(int64_t *)((char *)settings + row->at) = NOT_GIVEN;
    else if (row->kind == OPTION_REAL)
        *(double *)((char *)settings + row->at) = NAN;
    else if (row->kind == OPTION_CHOICE)
        *(int *)((char *)settings + row->at) = -1;
}

/* ---- texts of files ------------------------------------------------------------------------------------------- */

bool presets_add(presets *presets, const char *from, const char *name, const char *text, bool lenient)
{
    struct preset *more = realloc(presets->items, (size_t)(presets->count + 1) * sizeof *more);
    if (!more)
        return false;
    presets->items = more;
    struct preset *added = &more[presets->count];
    *added = (struct preset){.name = strdup(name), .text = strdup(text), .lenient = lenient};
    snprintf(added->from, sizeof added->from, "%s", from);
    presets->count++;
    return added->name && added->text;
}

void presets_free(presets *presets)
{
    for (int i = 0; i < presets->count; i++) {
        free(presets->items[i].name);
        free(presets->items[i].text);
    }
    free(presets->items);
    *presets = (struct presets){0};
}

bool option_text(const option *row, const void *settings, char *text, size_t size)
{
    const void *place = (const char *)settings + row->at;
    const char *rest, *path;
    switch (row->kind) {
    case OPTION_FLAG:
        return snprintf(text, size, "%s", *(const bool *)place ? "on" : "off") > 0;
    case OPTION_NUMBER:
    case OPTION_BYTES:
        return *(const int64_t *)place != NOT_GIVEN && snprintf(text, size, "%" PRId64, *(const int64_t *)place) > 0;
    case OPTION_REAL:
        return !isnan(*(const double *)place) && snprintf(text, size, "%.17g", *(const double *)place) > 0;
    case OPTION_CHOICE:
        rest = option_choices(row);
        for (int i = *(const int *)place; i >= 0 && next_choice(&rest, text, size); i--)
            if (i == 0)
                return true;
        return false;
    case OPTION_TEXT:
        return *(const char *const *)place && snprintf(text, size, "%s", *(const char *const *)place) > 0;
    case OPTION_FILE:
    case OPTION_DIRECTORY:
        path = *(const char *const *)place;
        if (!path)
            return false;
        if (size >= PATH_MAX && realpath(path, text))
            return true; /* which means the same from anywhere */
        return snprintf(text, size, "%s", path) > 0;
    case OPTION_TEXTS: /* several, and of one command that keeps no run */
        return false;
    }
    return false;
}

/* ---- words ------------------------------------------------------------------------------------------------- */

/* What `typed` is to a row: one of its names, or its name with "no" before it. */
typedef enum match { MATCH_NONE, MATCH_NAME, MATCH_NEGATION } match;

static match match_name(const char *typed, const char *name)
{
    if (strcmp(typed, name) == 0)
        return MATCH_NAME;
    return strncmp(typed, "no", 2) == 0 && strcmp(typed + 2, name) == 0 ? MATCH_NEGATION : MATCH_NONE;
}

/* By the row's own name, or one of the others; of a name that stands for a value, *value[LONGEST_NAME] is that. */
static match match_row(const option *row, const char *typed, char *value)
{
    char other[LONGEST_NAME];
    const char *others = row->also ? row->also : "";
    match found = match_name(typed, row->name);
    *value = 0;
    while (found == MATCH_NONE && next_choice(&others, other, sizeof other)) {
        char *stands_for = strchr(other, '=');
        if (stands_for)
            *stands_for++ = 0;
        found = match_name(typed, other);
        if (found != MATCH_NONE && stands_for)
            snprintf(value, LONGEST_NAME, "%s", stands_for);
    }
    return found;
}

/* Whether a row can be said to be off: by --noNAME, as absl's flags are. */
static bool is_switch(const option *row)
{
    char choice[LONGEST_NAME];
    const char *rest = row->kind == OPTION_CHOICE ? option_choices(row) : "";
    int found = 0;
    while (next_choice(&rest, choice, sizeof choice))
        found += strcmp(choice, "on") == 0 || strcmp(choice, "off") == 0;
    return row->kind == OPTION_FLAG || found == 2;
}

static bool is_called(const option *row, const char *typed)
{
    char value[LONGEST_NAME];
    return match_row(row, typed, value) == MATCH_NAME;
}

/* Before an option's name: two, or one as mpirun and absl's programs have it too; 0: the word is no option. */
static size_t count_dashes(const char *word)
{
    size_t dashes = strspn(word, "-");
    return dashes > 2 ? 2 : word[dashes] ? dashes : 0;
}

/* "batch-size" of "--batch_size=64"; false: the word is no option, or has a longer name than any. */
static bool read_name(const char *word, char name[LONGEST_NAME])
{
    size_t dashes = count_dashes(word), length = strcspn(word + dashes, "=");
    snprintf(name, LONGEST_NAME, "%.*s", (int)length, word + dashes);
    for (char *p = name; (p = strchr(p, '_'));)
        *p = '-';
    return dashes && length < LONGEST_NAME;
}

/* The row that a word such as "--batch_size=64" names; complains if there is none. *negated: with "no" before it. */
static const option *find_option(const char *command, const option *table, const char *word, bool *negated,
                                 char value[LONGEST_NAME])
{
    char typed[LONGEST_NAME];
    bool fits = read_name(word, typed);
    nearest near = {.word = typed};
    for (int negation = 0; negation < 2; negation++) /* a name that begins with "no" comes first */
        for (const option *row = table; fits && (row = option_at(row)); row++) {
            match match = row->name ? match_row(row, typed, value) : MATCH_NONE;
            *negated = match == MATCH_NEGATION;
            if (match == (negation ? MATCH_NEGATION : MATCH_NAME) && (!negation || is_switch(row) || *value))
                return row;
        }
    for (const option *row = table; (row = option_at(row)); row++)
        if (row->name) {
            nearest_consider(&near, row->name);
            if (row->also && !strpbrk(row->also, "|="))
                nearest_consider(&near, row->also);
        }
    complain(command, "unknown option '%.*s'%s%s%s", (int)strcspn(word, "="), word,
             near.best ? "; did you mean '--" : "", near.best ? near.best : "", near.best ? "'?" : "");
    return NULL;
}

/* A flag of another program that stands for a value of this row: on gives that, off the default. */
static bool parse_stand_in(const char *command, const option *row, const char *word, const char *stands_for,
                           bool negated, void *settings)
{
    const char *equals = strchr(word, '=');
    bool on = true;
    if (equals && !parse_flag(command, row, equals + 1, &on))
        return false;
    if (on != negated)
        return parse_value(command, row, stands_for, settings);
    set_default(command, row, settings);
    return true;
}

/* The row's value, from the option at words[*i] or the word behind it. */
static bool parse_words(const char *command, const option *row, bool negated, int count, char **words, int *i,
                        void *settings)
{
    const char *word = words[*i], *equals = strchr(word, '=');
    if (negated && equals)
        return complain(command, "%.*s takes no value, found '%s'", (int)(equals - word), word, equals + 1);
    if (equals)
        return parse_value(command, row, equals + 1, settings);
    bool is_alone = *i + 1 >= count || strncmp(words[*i + 1], "--", 2) == 0;
    if (negated || row->kind == OPTION_FLAG || (is_alone && is_switch(row)))
        return parse_value(command, row, negated ? "off" : "on", settings);
    if (*i + 1 >= count)
        return complain(command, "--%s: expected %s after it, found the end", row->name, row->argument);
    const char *value = words[++*i];
    if (strncmp(value, "--", 2) == 0)
        return complain(command, "--%s: expected %s, found the option '%s' (if that is the value, write --%s=%s)",
                        row->name, row->argument, value, row->name, value);
    return parse_value(command, row, value, settings);
}

/* Who says the same option again means the later; who says it by two names has not seen that they are one. `before` is
 * what it was in front of words[i]; NULL: not given. */
static bool names_agree(const char *command, const option *row, const char *before, char **words, int i,
                        const void *settings)
{
    char now[PATH_MAX], name[LONGEST_NAME], other[LONGEST_NAME], stands_for[LONGEST_NAME];
    if (!row->also || !before || !option_text(row, settings, now, sizeof now) || strcmp(before, now) == 0)
        return true;
    read_name(words[i], name);
    for (int k = 0; k < i; k++)
        if (read_name(words[k], other) && match_row(row, other, stands_for) == MATCH_NAME && !*stands_for &&
            strcmp(name, other) != 0)
            return complain(command, "%.*s says %s, and %.*s, which is the same option, %s",
                            (int)strcspn(words[k], "="), words[k], before, (int)strcspn(words[i], "="), words[i], now);
    return true;
}

/* Reads the option at words[*i], and its value, which may be the next word. */
static bool parse_option(const char *command, const option *table, int count, char **words, int *i, void *settings)
{
    char stands_for[LONGEST_NAME], before[PATH_MAX];
    bool negated;
    int at = *i;
    const option *row = find_option(command, table, words[at], &negated, stands_for);
    if (!row)
        return false;
    if (*stands_for)
        return parse_stand_in(command, row, words[at], stands_for, negated, settings);
    bool given = option_text(row, settings, before, sizeof before);
    return parse_words(command, row, negated, count, words, i, settings) &&
           names_agree(command, row, given ? before : NULL, words, at, settings);
}

/* The row that a text of a file is for; NULL: there is none. */
static const option *find_preset(const option *table, const char *name, nearest *near)
{
    char typed[LONGEST_NAME];
    snprintf(typed, sizeof typed, "%s", name);
    for (char *p = typed; (p = strchr(p, '_'));)
        *p = '-';
    for (const option *row = table; (row = option_at(row)); row++) {
        if (row->name ? is_called(row, typed) : strcasecmp(row->argument, typed) == 0)
            return row;
        if (row->name)
            nearest_consider(near, row->name);
    }
    return NULL;
}

/* Whether a word names an option that stands for the preset one. */
static bool is_put_aside(const option *table, const option *preset, int count, char **words)
{
    for (const option *row = table; (row = option_at(row)); row++)
        for (int i = 0; row->instead && preset->name && strcmp(row->instead, preset->name) == 0 && i < count; i++) {
            char typed[LONGEST_NAME];
            if (read_name(words[i], typed) && is_called(row, typed))
                return true;
        }
    return false;
}

static bool apply_presets(const char *command, const option *table, const presets *presets, int count, char **words,
                          void *settings)
{
    for (int i = 0; presets && i < presets->count; i++) {
        const struct preset *p = &presets->items[i];
        nearest near = {.word = p->name};
        const option *row = find_preset(table, p->name, &near);
        char where[sizeof p->from + 64];
        snprintf(where, sizeof where, "%s: %s", command, p->from);
        if (!row && !p->lenient)
            return complain(where, "there is no option '%s'%s%s%s", p->name, near.best ? "; did you mean '" : "",
                            near.best ? near.best : "", near.best ? "'?" : "");
        if (row && !is_put_aside(table, row, count, words) && !parse_value(where, row, p->text, settings))
            return false;
    }
    return true;
}

/* NULL: there are no more. */
static const option *next_operand(const option *row)
{
    while ((row = option_at(row)) && row->name)
        row++;
    return row;
}

void options_free(const option *table, void *settings)
{
    for (const option *row = table; (row = option_at(row)); row++)
        if (row->kind == OPTION_TEXTS) {
            texts *list = (texts *)((char *)settings + row->at);
            free(list->items);
            *list = (texts){0};
        }
}

bool options_parse(const char *command, const option *table, const presets *presets, int count, char **words,
                   void *settings)
{
    const option *operand = next_operand(table);
    bool options_ended = false, has_words = false;

    for (const option *row = table; (row = option_at(row)); row++)
        set_default(command, row, settings);
    if (!apply_presets(command, table, presets, count, words, settings))
        return false;
    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        if (!options_ended && strcmp(word, "--") == 0) {
            options_ended = true;
        } else if (!options_ended && count_dashes(word)) {
            if (!parse_option(command, table, count, words, &i, settings))
                return false;
        } else if (!operand) {
            return complain(command, "unexpected word '%s'", word);
        } else {
            if (!parse_value(command, operand, word, settings))
                return false;
            has_words |= operand->kind == OPTION_TEXTS;
            operand = operand->kind == OPTION_TEXTS ? operand : next_operand(operand + 1);
        }
    }
    if (operand && !operand->optional && !has_words)
        return complain(command, "expected %s: %s", operand->argument, operand->help);
    return true;
}

bool options_refused(const char *command, const refusal *list, int count, char **words)
{
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
        char typed[LONGEST_NAME];
        if (!read_name(words[i], typed))
            continue;
        for (const refusal *row = list; row->name; row++)
            if (strcmp(row->name, typed) == 0)
                return !complain(command, "%.*s is not supported because %s", (int)strcspn(words[i], "="), words[i],
                                 row->reason);
    }
    return false;
}
