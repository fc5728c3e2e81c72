/* cancellation.c - managers that tell those who ask when something is cancelled, and keep calls of functions
 * (execute.c) from starting.
 * Never here:  ends of runs that are under way. */
#include "eager.h"

#include <stdlib.h>
#include <tensorflow/c/eager/c_api_experimental.h>

typedef struct listener {
    TFE_CancellationToken token;
    TFE_CancelCallback told;
    struct listener *next;
} listener;

struct TFE_CancellationManager {
    pthread_mutex_t lock;
    pthread_cond_t is_over; /* with `is_cancelled` */
    listener *listeners;
    TFE_CancellationToken next;
    bool is_cancelling, is_cancelled; /* never both */
};

TFE_CancellationManager *TFE_NewCancellationManager(void)
{
    TFE_CancellationManager *manager = calloc(1, sizeof *manager);
    if (manager) {
        pthread_mutex_init(&manager->lock, NULL);
        pthread_cond_init(&manager->is_over, NULL);
    }
    return manager;
}

bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager *manager)
{
    pthread_mutex_lock(&manager->lock);
    bool is_cancelled = manager->is_cancelled;
    pthread_mutex_unlock(&manager->lock);
    return is_cancelled;
}

bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager *manager)
{
    pthread_mutex_lock(&manager->lock);
    bool is_cancelling = manager->is_cancelling;
    pthread_mutex_unlock(&manager->lock);
    return is_cancelling;
}

/* Callbacks may ask the manager how it stands, so that they run without its lock. */
void TFE_CancellationManagerStartCancel(TFE_CancellationManager *manager)
{
    pthread_mutex_lock(&manager->lock);
    bool is_first = !manager->is_cancelling && !manager->is_cancelled;
    listener *next = is_first ? manager->listeners : NULL;
    if (is_first) {
        manager->is_cancelling = true;
        manager->listeners = NULL;
    }
    pthread_mutex_unlock(&manager->lock);
    if (!is_first)
        return;
    for (listener *l = next; l; l = next) {
        next = l->next;
        l->told.callback(l->told.context);
        free(l);
    }
    pthread_mutex_lock(&manager->lock);
    manager->is_cancelling = false;
    manager->is_cancelled = true;
    pthread_cond_broadcast(&manager->is_over);
    pthread_mutex_unlock(&manager->lock);
}

TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager *manager)
{
    pthread_mutex_lock(&manager->lock);
    TFE_CancellationToken token = manager->next++;
    pthread_mutex_unlock(&manager->lock);
    return token;
}

/* Where the token's listener is linked, or would be. */
static listener **find_listener(TFE_CancellationManager *manager, TFE_CancellationToken token)
{
    listener **at = &manager->listeners;
    while (*at && (*at)->token != token)
        at = &(*at)->next;
    return at;
}

bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager *manager, TFE_CancellationToken token,
                                             const TFE_CancelCallback *c_callback, const char *callback_name)
{
    (void)callback_name;
    pthread_mutex_lock(&manager->lock);
    bool is_open = !manager->is_cancelling && !manager->is_cancelled;
    listener **at = find_listener(manager, token);
    if (is_open && !*at)
        *at = calloc(1, sizeof **at);
    bool is_registered = is_open && *at;
    if (is_registered) {
        (*at)->token = token;
        (*at)->told = *c_callback;
    }
    pthread_mutex_unlock(&manager->lock);
    return is_registered;
}

static bool deregister(TFE_CancellationManager *manager, TFE_CancellationToken token, bool waits)
{
    pthread_mutex_lock(&manager->lock);
    bool is_open = !manager->is_cancelling && !manager->is_cancelled;
    listener **at = find_listener(manager, token), *gone = is_open ? *at : NULL;
    if (gone)
        *at = gone->next;
    while (waits && manager->is_cancelling)
        pthread_cond_wait(&manager->is_over, &manager->lock);
    pthread_mutex_unlock(&manager->lock);
    free(gone);
    return is_open;
}

bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager *manager, TFE_CancellationToken token)
{
    return deregister(manager, token, true);
}

bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager *manager, TFE_CancellationToken token)
{
    return deregister(manager, token, false);
}

void TFE_DeleteCancellationManager(TFE_CancellationManager *manager)
{
    if (!manager)
        return;
    TFE_CancellationManagerStartCancel(manager);
    pthread_cond_destroy(&manager->is_over);
    pthread_mutex_destroy(&manager->lock);
    free(manager);
}
