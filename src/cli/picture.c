/* picture.c - see picture.h. */
#include "picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void picture_begin(picture *p, int columns, bool utf8, bool colour)
{
    p->columns = columns;
    p->utf8 = utf8;
    p->colour = colour;
    p->num_lines = p->column = 0;
    p->size = 0;
    p->bytes[0] = 0;
}

static void append(picture *p, const char *text, size_t size)
{
    if (p->size + size + 1 > sizeof p->bytes)
        return;
    memcpy(p->bytes + p->size, text, size);
    p->size += size;
    p->bytes[p->size] = 0;
}

static void switch_style(picture *p, style style, bool on)
{
    static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[36m"}; /* ORDER STYLE */
    const char *code = on ? codes[style] : "\033[0m";
    if (p->colour && style != STYLE_PLAIN)
        append(p, code, strlen(code));
}

void picture_text(picture *p, style style, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int room = p->columns - p->column, length = (int)strlen(text);
    if (length > room)
        length = room > 0 ? room : 0;
    for (int i = 0; i < length; i++) /* names of files may hold anything */
        text[i] = (unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~' ? '?' : text[i];
    switch_style(p, style, true);
    append(p, text, (size_t)length);
    switch_style(p, style, false);
    p->column += length;
}

void picture_pad(picture *p, int column)
{
    while (p->column < column && p->column < p->columns) {
        append(p, " ", 1);
        p->column++;
    }
}

static void draw_cells(picture *p, style style, const char *cell, int count)
{
    switch_style(p, style, true);
    for (; count > 0 && p->column < p->columns; count--, p->column++)
        append(p, cell, strlen(cell));
    switch_style(p, style, false);
}

void picture_bar(picture *p, int width, const double *shares, const style *styles, int count)
{
    static const char *const drawn[] = {"\u2588", "\u2593", "\u2592"}, *const plain[] = {"#", "+", "-"};
    double sum = 0;
    int filled = 0;
    for (int i = 0; i < count; i++) {
        sum += shares[i];
        int end = (int)(sum * width + 0.5);
        end = end > width ? width : end;
        draw_cells(p, styles[i], (p->utf8 ? drawn : plain)[i % 3], end - filled);
        filled = end > filled ? end : filled;
    }
    draw_cells(p, STYLE_DIM, p->utf8 ? "\u2591" : ".", width - filled);
}

/* Of the values from begin to end, at least one. */
static float mean_of(const float *values, int begin, int end)
{
    double sum = 0;
    end = end > begin ? end : begin + 1;
    for (int i = begin; i < end; i++)
        sum += values[i];
    return (float)(sum / (end - begin));
}

void picture_curve(picture *p, int width, const float *values, int count)
{
    static const char *const drawn[] = {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const plain[] = {"_", ".", ",", "-", "=", "+", "*", "#"};
    float points[512], least = 0, most = 0;
    int num = width < count ? width : count;
    num = num > 512 ? 512 : num;
    for (int i = 0; i < num; i++) {
        points[i] = mean_of(values, (int)((long long)i * count / num), (int)((long long)(i + 1) * count / num));
        least = i == 0 || points[i] < least ? points[i] : least;
        most = i == 0 || points[i] > most ? points[i] : most;
    }
    for (int i = 0; i < num; i++) {
        int level = most > least ? (int)((points[i] - least) / (most - least) * 7.999f) : 0;
        draw_cells(p, STYLE_CYAN, (p->utf8 ? drawn : plain)[level], 1);
    }
}

void picture_end_line(picture *p)
{
    if (p->num_lines == PICTURE_LINES)
        return;
    p->widths[p->num_lines++] = p->column;
    p->column = 0;
    append(p, "\n", 1);
}
