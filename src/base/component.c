/* component.c - which libraries this build stands on.
 * Lives here:  their names, purposes and versions, for people.
 * Never here:  use of those libraries, or decisions by version. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "base/curl.h"

#include <archive.h>
#include <limits.h>
#include <link.h>
#include <nettle/version.h>
#include <oneapi/dnnl/dnnl.h>
#include <png.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/status.h>
#include <zlib.h>

static void say_onednn(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "%d.%d.%d", version->major, version->minor, version->patch);
}

static void say_zlib(char *text, size_t size)
{
    snprintf(text, size, "%s", zlibVersion());
}

static void say_protobuf(char *text, size_t size)
{
    snprintf(text, size, "%s", protobuf_c_version());
}

static void say_png(char *text, size_t size)
{
    snprintf(text, size, "%s", png_get_libpng_ver(NULL));
}

static void say_nettle(char *text, size_t size)
{
    snprintf(text, size, "%d.%d", nettle_version_major(), nettle_version_minor());
}

/* Reported as "libarchive 3.6.2". */
static void say_archive(char *text, size_t size)
{
    const char *version = archive_version_string();
    const char *space = strrchr(version, ' ');
    snprintf(text, size, "%s", space ? space + 1 : version);
}

static void say_curl(char *text, size_t size)
{
#ifdef TOWER_WITH_CURL
    const twi_curl *lib = twi_curl_get();
    snprintf(text, size, "%s", lib ? lib->version_info(CURLVERSION_NOW)->version : "");
#else
    (void)size;
    text[0] = 0;
#endif
}

/* Libraries that do not say it: what stands behind ".so." in the file's name. */
static const struct {
    const char *name, *purpose, *file;
    void (*version)(char *text, size_t size);
} components[] = {
    {"oneDNN", "CPU kernels", "libdnnl.so", say_onednn},
    {"OpenMP", "threads of kernels", "libgomp.so", NULL},
    {"zlib", "packed files and data sets", "libz.so", say_zlib},
    {"protobuf-c", "graphs and logs", "libprotobuf-c.so", say_protobuf},
    {"RE2", "TensorFlow's regular expressions", "libre2.so", NULL},
    {"libpng", "pictures and summaries", "libpng16.so", say_png},
    {"libjpeg", "pictures", "libjpeg.so", NULL},
    {"Nettle", "hashes of data sets", "libnettle.so", say_nettle},
    {"libarchive", "downloaded archives", "libarchive.so", say_archive},
    {"libcurl", "downloads", "libcurl.so", say_curl},
};

/* ---- where they were loaded from -------------------------------------------------------------------------------- */

typedef struct wanted {
    const char *file; /* how its name begins */
    char *path;       /* [PATH_MAX], found */
} wanted;

static int look_at(struct dl_phdr_info *loaded, size_t size, void *user)
{
    wanted *w = user;
    const char *slash = strrchr(loaded->dlpi_name, '/');
    (void)size;
    return slash && strncmp(slash + 1, w->file, strlen(w->file)) == 0 && realpath(loaded->dlpi_name, w->path);
}

static void find_file(const char *file, tw_component *component)
{
    char path[PATH_MAX] = "";
    wanted w = {file, path};
    if (!dl_iterate_phdr(look_at, &w))
        return;
    const char *number = strstr(path, ".so.");
    snprintf(component->path, sizeof component->path, "%.*s", (int)sizeof component->path - 1, path);
    if (!component->version[0] && number)
        snprintf(component->version, sizeof component->version, "%.31s", number + strlen(".so."));
}

tw_component tw_component_at(int i)
{
    tw_component component = {0};
    if (i >= 0 && i < (int)(sizeof components / sizeof *components)) {
        component.name = components[i].name;
        component.purpose = components[i].purpose;
        if (components[i].version)
            components[i].version(component.version, sizeof component.version);
        find_file(components[i].file, &component);
    }
    return component;
}
