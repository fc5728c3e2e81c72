/* cores.c - see cores.h. */
#define _GNU_SOURCE
#include "base/cores.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

atomic_int twi_awake_threads;

static cpu_set_t mask_of_process(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0 || CPU_COUNT(&set) == 0)
        CPU_SET(0, &set);
    return set;
}

/* ---- quotas of control groups --------------------------------------------------------------------------------- */

/* The first `count` numbers of a file; "max" is none. */
static bool read_numbers(const char *folder, const char *name, double *numbers, int count)
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

/* Cores' worth of time that a group may take; INFINITY: as it likes. */
static double quota_of_group(const char *folder)
{
    double time[2];
    bool known = read_numbers(folder, "cpu.max", time, 2) || /* version 2, then version 1 */
                 (read_numbers(folder, "cpu.cfs_quota_us", &time[0], 1) &&
                  read_numbers(folder, "cpu.cfs_period_us", &time[1], 1));
    return known && time[0] > 0 && time[1] > 0 ? time[0] / time[1] : INFINITY;
}

/* A group has no more than those it is in. */
static double quota_of_branch(const char *mount, const char *group)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder)
        return INFINITY;
    double least = quota_of_group(folder);
    while (strlen(folder) > strlen(mount)) {
        *strrchr(folder, '/') = 0;
        least = fmin(least, quota_of_group(folder));
    }
    return least;
}

static bool names_cpu(const char *controllers)
{
    for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == 3 && strncmp(at, "cpu", 3) == 0)
            return true;
    return false;
}

/* The smallest quota of the groups that /proc/self/cgroup names: a line "number:controllers:/group" for each tree,
 * without controllers for version 2's. A container that sees its own tree alone finds itself at the top of it. */
static double quota_of_process(const char *root)
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
        if (*controllers && !names_cpu(controllers))
            continue;
        /* version 1's tree is there by all of its controllers' names, and by each alone */
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, *controllers ? "/cpu" : "");
        least = fmin(least, quota_of_branch(mount, group));
    }
    if (file)
        fclose(file);
    return least;
}

/* ---- what there is, and who gets what ------------------------------------------------------------------------- */

twi_cores twi_find_cores(const char *root)
{
    cpu_set_t set = mask_of_process();
    int count = CPU_COUNT(&set);
    double quota = quota_of_process(root);
    bool limited = ceil(quota) < count;
    return (twi_cores){limited ? (int)ceil(quota) : count, limited, count, isfinite(quota) ? quota : 0};
}

twi_core_share twi_share_cores(twi_cores cores, int users, int user)
{
    int each = cores.count / users;
    bool bound = users > 1 && each > 0 && !cores.limited;
    return (twi_core_share){each ? each : 1, bound ? user * each : 0, bound ? each : 0};
}

int twi_usable_cores(void)
{
    return twi_find_cores("").count;
}

int twi_usable_core(int i)
{
    cpu_set_t set = mask_of_process();
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &set) && i-- == 0)
            return core;
    return 0;
}
