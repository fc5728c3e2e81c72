/* word.c - see word.h. */
#include "word.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+=:,@%";
    return *text && !text[strspn(text, plain)];
}

/* Between quotes nothing means anything but their end. */
static void print_quoted(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            printf("'\\''");
        else
            putchar(*text);
}

void print_word(const char *path, const char *name)
{
    bool plain = is_plain(path) && (!name || is_plain(name));
    if (*path == '-')
        printf("./");
    printf("%s", plain ? "" : "'");
    print_quoted(path);
    if (name)
        putchar('/');
    print_quoted(name ? name : "");
    printf("%s", plain ? "" : "'");
}
