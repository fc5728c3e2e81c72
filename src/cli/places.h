/* places.h - where things lie when no option says so. */
#ifndef CLI_PLACES_H
#define CLI_PLACES_H

#include <stdbool.h>
#include <stddef.h>

/* The directory of a data set into path[size]: `given` if it is not NULL, else BASE/NAME, where BASE is
 * $TOWER_DATA_DIR, $XDG_CACHE_HOME/tower or ~/.cache/tower, the first that is set. False, with a complaint in the name
 * of `command`, when none is, or the path is too long. */
bool data_directory(const char *command, const char *given, const char *name, char *path, size_t size);

#endif
