/* summary_writer.c - see summary_writer.h. */
#include "device/state/summary_writer.h"

#include "base/clock.h"
#include "base/memory.h"
#include "format/event_file.h"

#include <pthread.h>

struct twi_summary_writer {
    pthread_mutex_t lock; /* guards all below */
    tw_event_writer *file;
    int64_t max_queue, flush_ns;
    int64_t queued, flushed_at; /* events since, monotonic ns */
};

static void destroy(void *object)
{
    twi_summary_writer *w = object;
    tw_event_writer_close(w->file, NULL);
    pthread_mutex_destroy(&w->lock);
    twi_free(w);
}

twi_summary_writer *twi_summary_writer_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

tw_status twi_summary_writer_make(twi_resource *resource, const char *node, tw_error *error)
{
    if (twi_summary_writer_of(resource))
        return TW_OK;
    if (resource->object || resource->memory)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "summary writer '%s': that name is taken by something that is no summary writer", node);
    twi_summary_writer *w = twi_alloc(sizeof *w);
    if (!w)
        return twi_fail_memory(error, "making a summary writer");
    pthread_mutex_init(&w->lock, NULL);
    resource->object = w;
    resource->destroy = destroy;
    return TW_OK;
}

tw_status twi_summary_writer_open(twi_summary_writer *w, const char *folder, const char *suffix, int64_t max_queue,
                                  int64_t flush_millis, tw_error *error)
{
    tw_status status = TW_OK;
    pthread_mutex_lock(&w->lock);
    if (!w->file) {
        status = twi_event_writer_create(folder, suffix, &w->file, error);
        w->max_queue = max_queue;
        w->flush_ns = flush_millis * 1000000;
        w->queued = 0;
        w->flushed_at = twi_monotonic_ns();
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

/* With the lock held. */
static tw_status need_file(const twi_summary_writer *w, tw_error *error)
{
    return w->file
               ? TW_OK
               : twi_fail(error, TW_NOT_FOUND, "the summary writer has no file: it was not initialized, or is closed");
}

static tw_status flush(twi_summary_writer *w, tw_error *error)
{
    w->queued = 0;
    w->flushed_at = twi_monotonic_ns();
    return tw_event_writer_flush(w->file, error);
}

tw_status twi_summary_writer_add(twi_summary_writer *w, twi_written what, int64_t step, const void *bytes, size_t size,
                                 tw_error *error)
{
    pthread_mutex_lock(&w->lock);
    tw_status status = need_file(w, error);
    if (status == TW_OK && what == TWI_WRITE_SUMMARY)
        status = tw_event_writer_add_summary(w->file, step, bytes, size, error);
    else if (status == TW_OK && what == TWI_WRITE_GRAPH)
        status = twi_event_writer_add_graph(w->file, step, bytes, size, error);
    else if (status == TW_OK)
        status = twi_event_writer_add_event(w->file, bytes, size, error);
    w->queued += status == TW_OK;
    if (status == TW_OK && (w->queued > w->max_queue || twi_monotonic_ns() - w->flushed_at > w->flush_ns))
        status = flush(w, error);
    pthread_mutex_unlock(&w->lock);
    return status;
}

tw_status twi_summary_writer_flush(twi_summary_writer *w, tw_error *error)
{
    pthread_mutex_lock(&w->lock);
    tw_status status = need_file(w, error);
    if (status == TW_OK)
        status = flush(w, error);
    pthread_mutex_unlock(&w->lock);
    return status;
}

tw_status twi_summary_writer_close(twi_summary_writer *w, tw_error *error)
{
    pthread_mutex_lock(&w->lock);
    tw_status status = tw_event_writer_close(w->file, error);
    w->file = NULL;
    pthread_mutex_unlock(&w->lock);
    return status;
}
