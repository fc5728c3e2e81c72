/* log.c - see log.h. */
#include "base/log.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

static tw_log_function *log_function;
static void *log_user;
static int log_level;

void tw_set_log(tw_log_function *function, void *user, int level)
{
    log_function = function;
    log_user = user;
    log_level = level;
}

bool twi_log_wants(int level)
{
    return log_function && level <= log_level;
}

void twi_log(int level, const char *format, ...)
{
    if (!twi_log_wants(level))
        return;
    char text[TW_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_function(log_user, level, text);
}
