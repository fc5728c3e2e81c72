/* processor.c - what of this machine's processor is to be had, for people who ask. */
#include "base/cores.h"
#include "device/cpu/vector/loops.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tower/device.h>
#include <unistd.h>

static char name[128];

static void find_name(void)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !*name && fgets(line, sizeof line, file)) {
        const char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (!colon)
            continue;
        colon += 1 + strspn(colon + 1, " ");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    if (file)
        fclose(file);
}

tw_processor tw_processor_info(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_name);
    twi_cores cores = twi_find_cores("");
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return (tw_processor){
        .online = online > cores.allowed ? (int)online : cores.allowed,
        .allowed = cores.allowed,
        .quota = cores.quota,
        .usable = cores.count,
        .loops = twi_loops_best()->name,
        .name = name,
    };
}
