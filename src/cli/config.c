/* config.c - see config.h. */
#include "config.h"

#include "command.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LINES = 100000 }; // there are files without an end, as /dev/zero

typedef struct reading {
    const char *path, *section;
    presets *presets;
    FILE *file;
    int lines;
    bool failed;
} reading;

static char *next_line(char *line, int size, void *user)
{
    reading *r = user;
    return r->lines++ < MOST_LINES ? fgets(line, size, r->file) : NULL;
}

static int take(void *user, const char *section, const char *name, const char *value)
{
    reading *r = user;
    if (strcmp(section, r->section) != 0)
        return 1;
    r->failed |= !presets_add(r->presets, r->path, name, value, false);
    return !r->failed;
}

bool config_read(const char *command, const char *path, const char *section, presets *presets)
{
    reading r = {.path = path, .section = section ? section : "", .presets = presets, .file = fopen(path, "re")};
    int line = r.file ? ini_parse_stream(next_line, &r, take, &r) : -1, reason = errno;
    if (r.file && ferror(r.file)) /* a directory opens, and reads as nothing */
        line = -1;
    if (r.file)
        fclose(r.file);
    if (r.failed || line == -2)
        return complain(command, "out of memory while reading '%s'", path);
    if (line == -1)
        return complain(command, "cannot read '%s': %s", path, strerror(reason));
    if (r.lines > MOST_LINES)
        return complain(command, "'%s' has more than %d lines", path, MOST_LINES);
    if (line > 0)
        return complain(command, "'%s', line %d: expected 'name = value', '[section]' or a comment after ';' or '#'",
                        path, line);
    return true;
}
