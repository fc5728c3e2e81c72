/* log.c - see log.h. */
#include "base/log.h"

#include "base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

/* Held for reading during a call back, so that nobody is called any more once tw_set_log() has returned. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static tw_log_function *log_function;
static void *log_user;
static atomic_int most = -1; /* levels above are not wanted; -1: none is */

void tw_set_log(tw_log_function *function, void *user, int level)
{
    pthread_rwlock_wrlock(&lock);
    log_function = function;
    log_user = user;
    atomic_store(&most, function ? level : -1);
    pthread_rwlock_unlock(&lock);
}

bool twi_log_wants(int level)
{
    return level <= atomic_load_explicit(&most, memory_order_relaxed);
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
    pthread_rwlock_rdlock(&lock);
    if (twi_log_wants(level)) /* still */
        log_function(log_user, level, text);
    pthread_rwlock_unlock(&lock);
}
