/* config.h - options in a file: an INI file with a line "name = value" for each, under the names that they have on the
 * command line, without dashes; "model" is the network. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "options.h"

/* Adds what stands in the file before any section, or in the section `section` (NULL: before any), in order. Complains
 * in the name of `command` and returns false if it cannot be read. Sections that are not asked for are passed over. */
bool config_read(const char *command, const char *path, const char *section, presets *presets);

#endif
