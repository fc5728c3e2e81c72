/* sized.c - see sized.h. */
#include "base/sized.h"

#include "base/status.h"

#include <string.h>

/* How many bytes the caller's struct has. */
static tw_status find_size(const void *given, twi_size size, size_t *bytes, tw_error *error)
{
    size_t found;
    memcpy(&found, given, sizeof found);
    *bytes = found ? found : size.first;
    if (found && (found < sizeof found || found > size.known))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "%s.size is %zu, expected %zu, less in a program built for an older Tower, or 0 for its first "
                        "version: it was not set, or the program was built for a newer Tower",
                        size.type, found, size.known);
    return TW_OK;
}

tw_status twi_sized(void *into, const void *given, twi_size size, tw_error *error)
{
    size_t bytes = 0;
    tw_status status = given ? find_size(given, size, &bytes, error) : TW_OK;
    memset(into, 0, size.known);
    if (status == TW_OK && given)
        memcpy(into, given, bytes);
    memcpy(into, &size.known, sizeof size.known);
    return status;
}

tw_status twi_fill_sized(void *given, const void *from, twi_size size, tw_error *error)
{
    size_t bytes;
    tw_status status = find_size(given, size, &bytes, error);
    if (status == TW_OK && bytes > sizeof bytes)
        memcpy((char *)given + sizeof bytes, (const char *)from + sizeof bytes, bytes - sizeof bytes);
    return status;
}
