/* translate.h - the library speaks of its own options, "options.variables.staged"; the program's user knows flags. */
#ifndef CLI_TRANSLATE_H
#define CLI_TRANSLATE_H

#include <stddef.h>

/* Writes a message of the library, cut to size, in the program's words: options become the flags that set them,
 * "options.updates=asynchronous" the flag that does, tw_data_fetch("mnist", "data") the command. What has no flag stays
 * as it is. Returns text. */
char *translate(const char *message, char *text, size_t size);

#endif
