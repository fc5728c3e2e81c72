/* status.c - see status.h. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#ifndef TOWER_VERSION
#define TOWER_VERSION "0.1.0"
#endif

const char *tw_status_text(tw_status status)
{
    switch (status) {
#define X(name, number, text)                                                                                          \
    case TW_##name:                                                                                                    \
        return text;
        TW_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

const char *tw_version(void)
{
    return TOWER_VERSION;
}

int tw_version_number(void)
{
    int major = 0, minor = 0, patch = 0;
    sscanf(TOWER_VERSION, "%d.%d.%d", &major, &minor, &patch);
    return major * 10000 + minor * 100 + patch;
}

tw_status twi_vfail(tw_error *error, tw_status code, const char *format, va_list arguments)
{
    if (!error)
        return code;
    error->status = code;
    int length = vsnprintf(error->message, sizeof error->message, format, arguments);
    if (length >= (int)sizeof error->message)
        memcpy(error->message + sizeof error->message - 4, "...", 4);
    return code;
}

tw_status twi_fail(tw_error *error, tw_status code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    twi_vfail(error, code, format, arguments);
    va_end(arguments);
    return code;
}

tw_status twi_fail_memory(tw_error *error, const char *what)
{
    return twi_fail(error, TW_RESOURCE_EXHAUSTED, "out of memory while %s", what);
}

tw_status twi_prefix(tw_error *error, const char *format, ...)
{
    if (!error)
        return TW_UNKNOWN;
    char old[TW_MESSAGE_SIZE], prefix[512];
    memcpy(old, error->message, sizeof old);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    return twi_fail(error, error->status, "%s: %s", prefix, old);
}
