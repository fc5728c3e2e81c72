/* component.c - which libraries this build stands on.
 * Lives here:  their names, purposes and versions, for people.
 * Never here:  use of those libraries, or decisions by version. */
#include "base/curl.h"

#include <archive.h>
#include <oneapi/dnnl/dnnl.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>
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

static const struct {
    const char *name, *purpose;
    void (*version)(char *text, size_t size);
} components[] = {
    {"oneDNN", "CPU kernels", say_onednn},
    {"zlib", "data sets in .gz", say_zlib},
    {"protobuf-c", "graphs and logs", say_protobuf},
    {"libarchive", "downloaded archives", say_archive},
    {"libcurl", "downloads", say_curl},
};

tw_component tw_component_at(int i)
{
    tw_component component = {0};
    if (i >= 0 && i < (int)(sizeof components / sizeof *components)) {
        component.name = components[i].name;
        component.purpose = components[i].purpose;
        components[i].version(component.version, sizeof component.version);
    }
    return component;
}
