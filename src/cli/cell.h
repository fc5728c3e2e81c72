/* cell.h - names that others have given, in the columns of a table: as wide as a terminal shows them, and without
 * characters that would move it. */
#ifndef CLI_CELL_H
#define CLI_CELL_H

#include <stdbool.h>

/* Prints a text in at least `least` columns and at most `most`, at the left of them or at the right. */
void print_cell(const char *text, int least, int most, bool right);

#endif
