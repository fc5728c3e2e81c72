/* whole_file.h - a file that is there as a whole or not at all: it is written beside its place, brought to the disk,
 * and renamed, so that nobody ever reads half of one and what was there before stays if something fails. What is no
 * file (/dev/null, a pipe) is written to as it is. */
#ifndef CLI_WHOLE_FILE_H
#define CLI_WHOLE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct whole_file {
    FILE *file; /* to write to; NULL: it could not be opened */
    char path[PATH_MAX], beside[PATH_MAX + 48]; /* beside "": it is written in its place */
} whole_file;

/* Opens what is to be at `path`. False, with errno, where that cannot be written. */
bool whole_file_open(whole_file *whole, const char *path);

/* Puts it in its place if all was `good` so far; else, or if that fails, nothing of it is left. Returns whether it is
 * in its place; errno says why it is not. Nothing happens where it could not be opened. */
bool whole_file_close(whole_file *whole, bool good);

/* All three in one. */
bool whole_file_write(const char *path, const void *bytes, size_t size);

/* A line, which must have its end, behind those that a file has: all of it, brought to the disk, or nothing. What an
 * earlier process left of a line is ended first, so that this one is not lost with it. */
bool whole_line_append(const char *path, const char *line, size_t size);

/* The folder with those above it, as mkdir -p; *made: whether any of them was not there. False, with errno. */
bool make_folders(const char *path, bool *made);

#endif
