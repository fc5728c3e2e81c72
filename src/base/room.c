/* room.c - see room.h. */
#include "base/room.h"

#include "base/groups.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MUCH ((size_t)256 << 20)

/* The number behind a word of a file of lines; 0: there is none. */
static double number_of(const char *folder, const char *name, const char *word)
{
    char path[PATH_MAX], line[256];
    double number = 0;
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = size < (int)sizeof path ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, word, strlen(word)) == 0 && sscanf(line + strlen(word), "%lf", &number) == 1)
            break;
    if (file)
        fclose(file);
    return number;
}

/* What a group has taken counts files that were read, which are given up for whoever asks. */
static double left_of_group(const char *folder)
{
    double limit, taken;
    if (twi_read_numbers(folder, "memory.max", &limit, 1) && twi_read_numbers(folder, "memory.current", &taken, 1))
        return fmax(0, limit - taken + number_of(folder, "memory.stat", "file "));
    if (twi_read_numbers(folder, "memory.limit_in_bytes", &limit, 1) &&
        twi_read_numbers(folder, "memory.usage_in_bytes", &taken, 1))
        return fmax(0, limit - taken + number_of(folder, "memory.stat", "cache "));
    return INFINITY;
}

double twi_memory_left(const char *root)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/proc", root);
    double free = number_of(folder, "meminfo", "MemAvailable:"), swap = number_of(folder, "meminfo", "SwapFree:");
    return fmin(free > 0 ? 1024 * (free + swap) : INFINITY, twi_least_of_groups(root, "memory", left_of_group));
}

bool twi_has_room(size_t bytes)
{
    return bytes < MUCH || (double)bytes <= twi_memory_left("");
}

bool twi_may_have(size_t bytes)
{
    // by the system's call, not the heap's: a large block that came back would change how malloc() keeps others
    void *tried = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tried == MAP_FAILED)
        return false;
    munmap(tried, bytes);
    return true;
}
