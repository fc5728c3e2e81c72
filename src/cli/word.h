/* word.h - words of a line that a reader may paste into a shell. Never here: what the line is (whoever prints it). */
#ifndef CLI_WORD_H
#define CLI_WORD_H

/* Prints a path, or what is called `name` in it (NULL: the path itself), as one word: in quotes where a shell would
 * read something else, and never as an option. */
void print_word(const char *path, const char *name);

#endif
