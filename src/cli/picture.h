/* picture.h - lines for a terminal: text, bars and curves, each line cut at the terminal's width.
 *
 *     picture_begin(p, 80, true, true);
 *     picture_text(p, STYLE_BOLD, "step %d", 7);
 *     picture_end_line(p);
 */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <tower/status.h>

enum { PICTURE_LINES = 24, PICTURE_BYTES = 1 << 14 };

typedef enum style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_GREEN,
    STYLE_YELLOW,
    STYLE_CYAN
} style; /* ORDER STYLE */

typedef struct picture {
    int columns;
    bool utf8, colour;
    int num_lines, widths[PICTURE_LINES]; /* columns that each line takes */
    int column;                           /* of the line at hand */
    size_t size;
    char bytes[PICTURE_BYTES];
} picture;

void picture_begin(picture *p, int columns, bool utf8, bool colour);
/* ASCII only; what does not fit into the line is left out. */
void picture_text(picture *p, style style, const char *format, ...) TW_PRINTF(3, 4);
/* Blanks up to a column. */
void picture_pad(picture *p, int column);
/* Parts of a bar, as shares of `width` columns; what is left is empty. */
void picture_bar(picture *p, int width, const double *shares, const style *styles, int count);
/* A curve of `count` values, drawn in `width` columns between its least and its largest. */
void picture_curve(picture *p, int width, const float *values, int count);
void picture_end_line(picture *p);

#endif
