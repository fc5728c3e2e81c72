/* ahead.c - see ahead.h. */
#include "device/dataset/ahead.h"

#include "base/memory.h"
#include "base/thread.h"

#include <string.h>

typedef struct cell {
    tw_tensor **element; /* [num_components] */
    bool ready, end;
    tw_status status;
    tw_error error;
} cell;

struct twi_ahead {
    twi_ahead_options options;
    twi_monitor *monitor;  /* its lock guards all below */
    cell *cells;           /* [room] */
    int64_t pulled, given; /* elements so far */
    bool pulling, ended;   /* somebody pulls; there is nothing more to be pulled */
    atomic_bool stopping;  /* threads are to end */
    pthread_t *threads;
    int num_threads; /* that were started */
};

/* Pulls an element and works on it, with the lock given back meanwhile. */
static void fill(twi_ahead *a, cell *c)
{
    tw_tensor *from[TWI_ELEMENT] = {0};
    twi_pull pull = {.ending = &a->stopping, .error = &c->error};
    bool works = a->options.work != NULL, end;
    twi_monitor_leave(a->monitor);
    c->error.status = TW_OK;
    c->error.message[0] = 0;
    tw_status status = twi_iteration_next(a->options.source, &pull, works ? from : c->element);
    end = pull.end;
    twi_monitor_enter(a->monitor);
    a->pulling = false;
    a->ended = a->ended || (status == TW_OK && end);
    twi_monitor_notify(a->monitor);
    if (works && status == TW_OK && !end) {
        twi_monitor_leave(a->monitor);
        status = a->options.work(a->options.user, from, c->element, &end, &c->error);
        twi_monitor_enter(a->monitor);
    }
    twi_element_drop(from, TWI_ELEMENT);
    c->status = status;
    c->end = end;
    c->ready = true;
    twi_monitor_notify(a->monitor);
}

static void *work(void *argument)
{
    twi_ahead *a = argument;
    twi_monitor_enter(a->monitor);
    while (!a->stopping && !a->ended) {
        if (a->pulling || a->pulled - a->given >= a->options.room) {
            twi_monitor_wait(a->monitor);
            continue;
        }
        a->pulling = true;
        fill(a, &a->cells[a->pulled++ % a->options.room]);
    }
    twi_monitor_leave(a->monitor);
    return NULL;
}

tw_status twi_ahead_start(const twi_ahead_options *options, twi_monitor *monitor, twi_ahead **result, tw_error *error)
{
    tw_status status = TW_OK;
    twi_ahead *a = twi_alloc(sizeof *a);
    *result = NULL;
    if (!a)
        return twi_fail_memory(error, "making elements ahead");
    a->options = *options;
    a->monitor = monitor;
    a->cells = twi_alloc_array((size_t)options->room, sizeof *a->cells);
    a->threads = twi_alloc_array((size_t)options->threads, sizeof *a->threads);
    bool fits = a->cells && a->threads;
    for (int i = 0; i < options->room && fits; i++) {
        a->cells[i].element = twi_alloc_array((size_t)options->num_components + 1, sizeof(tw_tensor *));
        fits = a->cells[i].element != NULL;
    }
    if (!fits)
        status = twi_fail_memory(error, "making elements ahead");
    while (a->num_threads < options->threads && status == TW_OK) {
        status = twi_thread_start(&a->threads[a->num_threads], "tw-data", NULL, 0, work, a, error);
        a->num_threads += status == TW_OK;
    }
    if (status == TW_OK)
        *result = a;
    else
        twi_ahead_end(a);
    return status;
}

tw_status twi_ahead_next(twi_ahead *a, twi_pull *pull, tw_tensor **element)
{
    size_t bytes = sizeof(tw_tensor *) * (size_t)a->options.num_components;
    tw_status status = TW_OK;
    twi_monitor_enter(a->monitor);
    cell *c = &a->cells[a->given % a->options.room];
    while (!c->ready && !(a->ended && a->given == a->pulled) && status == TW_OK) {
        if (atomic_load(pull->ending))
            status = twi_fail(pull->error, TW_CANCELLED, "the run has ended");
        else
            twi_monitor_wait(a->monitor);
    }
    if (status == TW_OK && !c->ready) {
        pull->end = true;
    } else if (status == TW_OK) {
        memcpy(element, c->element, bytes);
        memset(c->element, 0, bytes);
        pull->end = c->end;
        status = c->status;
        if (status != TW_OK)
            twi_fail(pull->error, status, "%s", c->error.message);
        c->ready = false;
        a->given++;
        twi_monitor_notify(a->monitor);
    }
    twi_monitor_leave(a->monitor);
    return status;
}

void twi_ahead_end(twi_ahead *a)
{
    if (!a)
        return;
    twi_monitor_enter(a->monitor);
    atomic_store(&a->stopping, true);
    twi_monitor_notify(a->monitor);
    twi_monitor_leave(a->monitor);
    for (int i = 0; i < a->num_threads; i++)
        pthread_join(a->threads[i], NULL);
    for (int i = 0; a->cells && i < a->options.room; i++) {
        if (a->cells[i].element)
            twi_element_drop(a->cells[i].element, a->options.num_components);
        twi_free(a->cells[i].element);
    }
    twi_free(a->cells);
    twi_free(a->threads);
    twi_free(a);
}
