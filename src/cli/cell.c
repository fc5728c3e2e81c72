/* cell.c - see cell.h. */
#include "cell.h"

#include "json.h" /* json_utf8_length */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Of a character's `length` bytes. Those of East Asia, and pictures of them, take two columns; marks above a letter,
 * which take none, are counted as letters. */
static int columns_of(const char *text, size_t length)
{
    static const uint32_t wide[][2] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6},
                                       {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
    uint32_t point = (unsigned char)text[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        point = point << 6 | ((unsigned char)text[i] & 0x3F);
    for (size_t i = 0; length > 2 && i < sizeof wide / sizeof *wide; i++)
        if (point >= wide[i][0] && point <= wide[i][1])
            return 2;
    return 1;
}

/* How many bytes of the text are shown in at most `most` columns; *columns: how many they take. */
static size_t fit(const char *text, int most, int *columns)
{
    size_t size = strlen(text), at = 0;
    *columns = 0;
    while (at < size) {
        size_t length = json_utf8_length(text + at, size - at);
        int more = length > 1 ? columns_of(text + at, length) : 1;
        if (*columns + more > most)
            break;
        *columns += more;
        at += length ? length : 1;
    }
    return at;
}

void print_cell(const char *text, int least, int most, bool right)
{
    int columns;
    size_t shown = fit(text, most, &columns);
    int blanks = columns < least ? least - columns : 0;
    printf("%*s", right ? blanks : 0, "");
    for (size_t i = 0; i < shown;) {
        size_t length = json_utf8_length(text + i, shown - i);
        bool moves = (unsigned char)text[i] < ' ' || text[i] == 0x7F || !length;
        if (moves)
            putchar('?');
        else
            fwrite(text + i, 1, length, stdout);
        i += length ? length : 1;
    }
    printf("%*s", right ? 0 : blanks, "");
}
