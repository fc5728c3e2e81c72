/* files.c - kernels of whole files, their names, and the time. */
#include "base/file.h"

#include "base/memory.h"
#include "base/text.h"
#include "device/kernel.h"
#include "tensor/tensor.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGEST_FILE ((size_t)1 << 40)

/* A name as the system wants it; NULL: out of memory. */
static char *name_of(const tw_string *string)
{
    char *name = twi_alloc(string->size + 1);
    if (name && string->size)
        memcpy(name, string->data, string->size);
    return name;
}

static tw_status run_read(const twi_run *r)
{
    char *name = name_of(r->inputs[0]), *bytes = NULL;
    size_t size = 0;
    if (!name)
        return twi_fail_memory(r->error, r->node);
    tw_status status = twi_file_read_any(name, LARGEST_FILE, &bytes, &size, r->error);
    if (status == TW_OK && !twi_string_set(r->outputs[0], bytes, size))
        status = twi_fail_memory(r->error, r->node);
    twi_free(bytes);
    twi_free(name);
    return status;
}

/* With the folders that are not there yet, as TensorFlow's. */
static tw_status run_write(const twi_run *r)
{
    const tw_string *contents = r->inputs[1];
    char *name = name_of(r->inputs[0]), *end = name ? strrchr(name, '/') : NULL;
    tw_status status = name ? TW_OK : twi_fail_memory(r->error, r->node);
    if (end && end != name) {
        *end = 0;
        status = twi_make_directories(name, r->error);
        *end = '/';
    }
    if (status == TW_OK)
        status = twi_file_replace(name, contents->data, contents->size, r->error);
    twi_free(name);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In the order of their bytes; a folder that cannot be read has none. */
static tw_status run_matching(const twi_run *r)
{
    glob_t found = {0};
    tw_string *names;
    int flags = GLOB_NOSORT;
    tw_status status = TW_OK;
    for (int64_t i = 0; i < r->input_operands[0].elements && status == TW_OK; i++) {
        char *pattern = name_of((const tw_string *)r->inputs[0] + i);
        int failed = pattern ? glob(pattern, flags, NULL, &found) : GLOB_NOSPACE;
        if (failed == GLOB_NOSPACE)
            status = twi_fail_memory(r->error, r->node);
        flags |= GLOB_APPEND;
        twi_free(pattern);
    }
    if (status == TW_OK && found.gl_pathc)
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_names);
    if (status == TW_OK)
        status = twi_make_output(r, 0, TW_SHAPE((int64_t)found.gl_pathc), (void **)&names);
    for (size_t i = 0; i < found.gl_pathc && status == TW_OK; i++)
        if (!twi_string_set(&names[i], found.gl_pathv[i], strlen(found.gl_pathv[i])))
            status = twi_fail_memory(r->error, r->node);
    if (flags & GLOB_APPEND)
        globfree(&found);
    return status;
}

/* Seconds since 1970. */
static tw_status run_time(const twi_run *r)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *(double *)r->outputs[0] = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    return TW_OK;
}

const twi_kernel twi_cpu_files_kernels[] = {
    {"ReadFile", "plain", 0, NULL, run_read},
    {"WriteFile", "plain", 0, NULL, run_write},
    {"MatchingFiles", "plain", 0, NULL, run_matching},
    {"Timestamp", "plain", 0, NULL, run_time},
    {0},
};
