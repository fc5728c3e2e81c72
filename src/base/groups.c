/* groups.c - see groups.h. */
#include "base/groups.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool twi_read_numbers(const char *folder, const char *name, double *numbers, int count)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name), found = 0;
    FILE *file = size < (int)sizeof path ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    while (found < count && fscanf(file, "%lf", &numbers[found]) == 1)
        found++;
    fclose(file);
    return found == count;
}

/* A group has no more than those it is in. */
static double least_of_branch(const char *mount, const char *group, double (*of_group)(const char *folder))
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder)
        return INFINITY;
    double least = of_group(folder);
    while (strlen(folder) > strlen(mount)) {
        *strrchr(folder, '/') = 0;
        least = fmin(least, of_group(folder));
    }
    return least;
}

static bool names(const char *controllers, const char *controller)
{
    for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == strlen(controller) && strncmp(at, controller, strlen(controller)) == 0)
            return true;
    return false;
}

/* /proc/self/cgroup has a line "number:controllers:/group" for each tree, without controllers for version 2's. A
 * container that sees its own tree alone finds itself at the top of it. Version 1's tree is there by all of its
 * controllers' names, and by each alone. */
double twi_least_of_groups(const char *root, const char *controller, double (*of_group)(const char *folder))
{
    char path[PATH_MAX], line[PATH_MAX], mount[PATH_MAX];
    double least = INFINITY;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = *controllers++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (*controllers && !names(controllers, controller))
            continue;
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, *controllers ? "/" : "",
                 *controllers ? controller : "");
        least = fmin(least, least_of_branch(mount, group, of_group));
    }
    if (file)
        fclose(file);
    return least;
}
