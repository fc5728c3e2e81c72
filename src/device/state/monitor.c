/* monitor.c - see monitor.h. */
#include "device/state/monitor.h"

void twi_monitor_init(twi_monitor *m)
{
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
}

void twi_monitor_destroy(twi_monitor *m)
{
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
}

void twi_monitor_enter(twi_monitor *m)
{
    pthread_mutex_lock(&m->lock);
}

void twi_monitor_leave(twi_monitor *m)
{
    pthread_mutex_unlock(&m->lock);
}

void twi_monitor_wait(twi_monitor *m)
{
    pthread_cond_wait(&m->changed, &m->lock);
}

void twi_monitor_notify(twi_monitor *m)
{
    pthread_cond_broadcast(&m->changed);
}

void twi_monitor_wake(void *guarded)
{
    twi_monitor *m = guarded;
    twi_monitor_enter(m);
    twi_monitor_notify(m);
    twi_monitor_leave(m);
}
