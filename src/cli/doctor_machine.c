/* doctor_machine.c - what of processor, memory and time a process really gets here.
 * Never here:  devices (doctor.c). */
#define _GNU_SOURCE /* RLIMIT_..., CLOCK_THREAD_CPUTIME_ID */
#include "clock.h"
#include "findings.h"
#include "progress.h" /* bytes_text */

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <tower/device.h>

/* ---- cores ------------------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 256 };
static const double measured_seconds = 0.2;

/* What one thread gets when all compute at once. */
static void *compute(void *result)
{
    struct timespec used;
    double end = seconds_now() + measured_seconds;
    while (seconds_now() < end)
        ;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    *(double *)result = (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
    return NULL;
}

/* Cores' worth of time that so many threads are given, by the clock. */
static double measure_cores(int threads)
{
    pthread_t ids[MOST_THREADS];
    double got[MOST_THREADS], sum = 0, begin = seconds_now();
    int started = 0;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    while (started < threads && pthread_create(&ids[started], NULL, compute, &got[started]) == 0)
        started++;
    for (int i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
        sum += got[i];
    }
    return sum / (seconds_now() - begin);
}

static void look_at_cores(findings *all)
{
    tw_processor p = tw_processor_info();
    double had = measure_cores(p.usable);
    char quota[64] = "no quota";
    if (p.quota > 0)
        snprintf(quota, sizeof quota, "a quota of %.4g", p.quota);
    bool crowded = had < 0.75 * p.usable;
    finding *f =
        find(all, "processor", "cores", crowded ? VERDICT_WARNING : VERDICT_OK,
             "%d of the machine's %d may be used, %s: CPU devices divide %d; measured just now: %.1f to be had",
             p.allowed, p.online, quota, p.usable, had);
    if (crowded)
        advise(f, "something else takes the rest of the time ('top' shows it), or a limit that cannot be seen from in "
                  "here; steps are slower by as much");
}

/* The value behind "key" in a file of lines "key : value"; "" if there is none. */
static void read_value(const char *path, const char *key, char *value, size_t size)
{
    char line[8192];
    FILE *file = fopen(path, "re");
    *value = 0;
    while (file && !*value && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    if (file)
        fclose(file);
}

static void look_at_vectors(findings *all)
{
    char flags[8192], padded[8200], list[64] = "";
    static const char *const known[] = {"avx2", "avx512f", "avx512_bf16", "amx_bf16"};
    read_value("/proc/cpuinfo", "flags", flags, sizeof flags);
    snprintf(padded, sizeof padded, " %s ", flags);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char word[32];
        size_t used = strlen(list);
        snprintf(word, sizeof word, " %s ", known[i]);
        if (strstr(padded, word))
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", known[i]);
    }
    const char *loops = tw_processor_info().loops;
    bool narrow = strcmp(loops, "baseline") == 0;
    finding *f = find(all, "processor", "vectors", narrow ? VERDICT_WARNING : VERDICT_OK, "own loops use %s; it has %s",
                      loops, *list ? list : "none of the wide kinds");
    if (narrow)
        advise(f, "training works, several times slower than on a processor with AVX2");
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* A number in a file; -1: there is none, or it is "max". */
static double number_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    double number = -1;
    FILE *file = snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path ? fopen(path, "re") : NULL;
    if (file && fscanf(file, "%lf", &number) != 1)
        number = -1;
    if (file)
        fclose(file);
    return number;
}

/* Takes the group's limit, and what of it is used, if it is less than *limit. Version 1 says "none" by a huge number.
 */
static void take_limit(const char *folder, const char *limit_name, const char *used_name, double *limit, double *used)
{
    double found = number_in(folder, limit_name);
    if (found > 0 && found < 1e18 && (*limit < 0 || found < *limit)) {
        *limit = found;
        *used = number_in(folder, used_name);
    }
}

/* The least of the groups that this process is in, and those above them. */
static double limit_of_groups(double *used)
{
    char line[PATH_MAX], folder[2 * PATH_MAX];
    double limit = -1;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *group = strrchr(line, ':');
        bool second = strncmp(line, "0::", 3) == 0, first = strstr(line, ":memory:") != NULL;
        if (!group || !(first || second))
            continue;
        group[1 + strcspn(group + 1, "\n")] = 0;
        const char *mount = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
        snprintf(folder, sizeof folder, "%s%s", mount, group + 1);
        while (strlen(folder) >= strlen(mount)) {
            take_limit(folder, second ? "memory.max" : "memory.limit_in_bytes",
                       second ? "memory.current" : "memory.usage_in_bytes", &limit, used);
            *strrchr(folder, '/') = 0;
        }
    }
    if (file)
        fclose(file);
    return limit;
}

static double kilobytes_of(const char *key)
{
    char value[64];
    read_value("/proc/meminfo", key, value, sizeof value);
    return 1024 * strtod(value, NULL);
}

static void look_at_memory(findings *all)
{
    static const double little = 512.0 * (1 << 20);
    char left[32], total[32], capped[32];
    double used = 0, available = kilobytes_of("MemAvailable"), limit = limit_of_groups(&used);
    bytes_text(available, left, sizeof left);
    bytes_text(kilobytes_of("MemTotal"), total, sizeof total);
    if (limit > 0 && limit - used < available)
        available = limit - used;
    finding *f = find(all, "memory", "RAM", available < little ? VERDICT_WARNING : VERDICT_OK, "%s of %s available",
                      left, total);
    if (available < little)
        advise(f, "512 MiB are little: 'tower plan' says what a job will take, a smaller --batch-size takes less");
    if (limit > 0)
        find(all, "memory", "container", VERDICT_OK, "its control group may take %s, and has taken %s",
             bytes_text(limit, capped, sizeof capped), bytes_text(used, left, sizeof left));
    else
        find(all, "memory", "container", VERDICT_OK, "no control group limits memory");
}

static void look_at_huge_pages(findings *all)
{
    char mode[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (file && !fgets(mode, sizeof mode, file))
        *mode = 0;
    if (file)
        fclose(file);
    mode[strcspn(mode, "\n")] = 0;
    bool never = !*mode || strstr(mode, "[never]");
    finding *f = find(all, "memory", "huge pages", never ? VERDICT_NONE : VERDICT_OK, "%s",
                      !*mode  ? "this kernel has none"
                      : never ? "switched off"
                              : "for large blocks");
    if (*mode && never)
        advise(
            f,
            "the first steps are a little faster after 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled', "
            "as root");
}

/* Limits that get in the way; those that are far away are not worth a line. */
static void look_at_limits(findings *all)
{
    static const struct {
        const char *name, *flag;
        int which;
        double enough;
    } limits[] = {
        {"open files", "-n", RLIMIT_NOFILE, 256},
        {"processes", "-u", RLIMIT_NPROC, 256},
        {"address space", "-v", RLIMIT_AS, 16.0 * (1 << 30)},
        {"file size", "-f", RLIMIT_FSIZE, 4.0 * (1 << 30)},
        {"CPU seconds", "-t", RLIMIT_CPU, 1e9},
    };
    bool any = false;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)limits[i].which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
            (double)limit.rlim_cur >= limits[i].enough)
            continue;
        any = true;
        advise(find(all, "memory", limits[i].name, VERDICT_WARNING, "limited to %.0f", (double)limit.rlim_cur),
               "long runs may meet this limit; 'ulimit %s unlimited' lifts it, if that is allowed", limits[i].flag);
    }
    if (!any)
        find(all, "memory", "limits", VERDICT_OK, "none of the shell's (ulimit) is near");
}

void look_at_machine(findings *all)
{
    char model[128];
    read_value("/proc/cpuinfo", "model name", model, sizeof model);
    find(all, "processor", "model", VERDICT_OK, "%s", *model ? model : "not known");
    look_at_cores(all);
    look_at_vectors(all);
    look_at_memory(all);
    look_at_huge_pages(all);
    look_at_limits(all);
}
