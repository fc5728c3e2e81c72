/* cores.c - see cores.h. */
#define _GNU_SOURCE
#include "base/cores.h"

#include "base/groups.h"

#include <math.h>
#include <sched.h>
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

/* Cores' worth of time that a group may take; INFINITY: as it likes. */
static double quota_of_group(const char *folder)
{
    double time[2];
    bool known = twi_read_numbers(folder, "cpu.max", time, 2) || /* version 2, then version 1 */
                 (twi_read_numbers(folder, "cpu.cfs_quota_us", &time[0], 1) &&
                  twi_read_numbers(folder, "cpu.cfs_period_us", &time[1], 1));
    return known && time[0] > 0 && time[1] > 0 ? time[0] / time[1] : INFINITY;
}

/* ---- what there is, and who gets what ------------------------------------------------------------------------- */

twi_cores twi_find_cores(const char *root)
{
    cpu_set_t set = mask_of_process();
    int count = CPU_COUNT(&set);
    double quota = twi_least_of_groups(root, "cpu", quota_of_group);
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
