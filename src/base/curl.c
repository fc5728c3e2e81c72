/* curl.c - see curl.h. */
#include "base/curl.h"

#ifdef TOWER_WITH_CURL

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static twi_curl functions;
static const twi_curl *opened; /* NULL before, and without libcurl */

/* ISO C knows no conversion of a data pointer to one of a function; POSIX promises that the bytes are the same. */
static int find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* The library stays open to the end: its own threads and atexit functions could outlive anything else. */
static void open_library(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library && find(library, "curl_global_init", &functions.global_init) &&
        find(library, "curl_easy_init", &functions.easy_init) &&
        find(library, "curl_easy_setopt", &functions.easy_setopt) &&
        find(library, "curl_easy_perform", &functions.easy_perform) &&
        find(library, "curl_easy_getinfo", &functions.easy_getinfo) &&
        find(library, "curl_easy_strerror", &functions.easy_strerror) &&
        find(library, "curl_easy_cleanup", &functions.easy_cleanup) &&
        find(library, "curl_version_info", &functions.version_info) &&
        functions.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        opened = &functions;
}

const twi_curl *twi_curl_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return opened;
}

#endif
