/* places.c - see places.h. */
#include "places.h"

#include "command.h" /* complain */

#include <stdlib.h>

bool data_directory(const char *command, const char *given, const char *name, char *path, size_t size)
{
    static const char *const bases[][2] = {
        {"TOWER_DATA_DIR", ""}, {"XDG_CACHE_HOME", "/tower"}, {"HOME", "/.cache/tower"}};
    int length = -1;
    if (given)
        length = snprintf(path, size, "%s", given);
    for (size_t i = 0; length < 0 && i < sizeof bases / sizeof *bases; i++) {
        const char *base = getenv(bases[i][0]);
        if (base && *base)
            length = snprintf(path, size, "%s%s/%s", base, bases[i][1], name);
    }
    if (length < 0)
        return complain(command, "where does %s lie? Neither --data-dir nor TOWER_DATA_DIR nor HOME says so", name);
    if ((size_t)length >= size)
        return complain(command, "the path of the data directory is longer than %zu bytes", size - 1);
    return true;
}
