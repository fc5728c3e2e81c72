/* plugin.c - finding and opening libtower_cuda.so.
 * Never here:  anything that knows what CUDA is. */
#define _GNU_SOURCE /* dladdr */
#include "device/plugin.h"

#include "base/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libtower_cuda.so"

/* Part of the registry of devices: what is loaded into a process is the process's. */
static struct {
    pthread_once_t once;
    const twi_plugin *table;
    char why[600];
} opened = {.once = PTHREAD_ONCE_INIT};

/* A plug-in has a log of its own, which ends here. */
static void pass_on(void *user, int level, const char *message)
{
    (void)user;
    twi_log(level, "%s", message);
}

static void take(void *library, const char *path)
{
    twi_plugin_entry *entry = (twi_plugin_entry *)dlsym(library, TWI_PLUGIN_ENTRY);
    const twi_plugin *table = entry ? entry() : NULL;
    if (!table || table->version != TWI_PLUGIN_VERSION || table->device_size != sizeof(twi_device))
        snprintf(opened.why, sizeof opened.why, "%s belongs to another version of the library", path);
    else
        opened.table = table;
    if (opened.table)
        opened.table->set_log(pass_on, NULL, TWI_LOG_DETAIL);
}

/* True when there is such a file, whether it could be opened or not. */
static bool open_file(const char *path)
{
    if (access(path, F_OK) != 0)
        return false;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        take(library, path);
    else
        snprintf(opened.why, sizeof opened.why, "%s", dlerror());
    return true;
}

static bool open_in_folder(const char *folder, size_t length)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, FILE_NAME);
    return length > 0 && size < (int)sizeof path && open_file(path);
}

static bool open_in_path(const char *folders)
{
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        if (open_in_folder(folders, length))
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

static bool open_beside_library(void)
{
    Dl_info info;
    if (!dladdr((void *)twi_plugin_open, &info) || !info.dli_fname)
        return false;
    const char *end = strrchr(info.dli_fname, '/');
    return end && open_in_folder(info.dli_fname, (size_t)(end - info.dli_fname));
}

static void open_once(void)
{
    if (open_in_path(getenv("TOWER_PLUGIN_PATH")) || open_beside_library())
        return;
    void *library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    if (library)
        take(library, FILE_NAME);
    else
        snprintf(opened.why, sizeof opened.why,
                 "the CUDA plug-in (%s) was not found; options.virtual_gpus gives GPUs that run on the CPU", FILE_NAME);
}

const twi_plugin *twi_plugin_open(const char **why)
{
    pthread_once(&opened.once, open_once);
    *why = opened.why;
    return opened.table;
}
