/* event_reader.c - reads event files: scalars, histograms and restarts, one by one.
 * Never here:  writing (event_file.c), how records are framed (base/tfrecord.c). */
#include "base/memory.h"
#include "base/status.h"
#include "base/tfrecord.h"
#include "format/proto/event.pb-c.h"
#include "format/protobuf.h"

#include <tower/io.h>

struct tw_event_reader {
    twi_record_reader *file;
    twi_proto proto;
    Twi__Event *event; /* whose values are being told; NULL: none */
    size_t next;       /* of them */
};

tw_status tw_event_reader_open(const char *path, tw_event_reader **reader, tw_error *error)
{
    TWI_NEED(path, "path", error);
    TWI_NEED(reader, "reader", error);
    *reader = NULL;
    tw_event_reader *made = twi_alloc(sizeof *made);
    if (!made)
        return twi_fail_memory(error, "reading an event file");
    tw_status status = twi_record_open(path, &made->file, error);
    if (status == TW_OK)
        *reader = made;
    else
        tw_event_reader_close(made);
    return status;
}

static void drop_event(tw_event_reader *r)
{
    if (r->event)
        twi__event__free_unpacked(r->event, &r->proto.allocator);
    r->event = NULL;
    r->next = 0;
}

void tw_event_reader_close(tw_event_reader *r)
{
    if (!r)
        return;
    drop_event(r);
    twi_record_close(r->file);
    twi_free(r);
}

static tw_status read_event(tw_event_reader *r, tw_error *error)
{
    const char *bytes;
    size_t size;
    drop_event(r);
    tw_status status = twi_record_next(r->file, &bytes, &size, error);
    if (status != TW_OK)
        return status;
    twi_proto_start(&r->proto, size);
    r->event = twi__event__unpack(&r->proto.allocator, size, (const uint8_t *)bytes);
    if (r->proto.out_of_memory)
        return twi_fail_memory(error, "reading an event");
    return r->event ? TW_OK : twi_fail(error, TW_DATA_LOSS, "%zu bytes that should be an Event are not one", size);
}

/* False: it is of a kind that is passed over. */
static bool take_value(const Twi__Event *from, const Twi__Summary__Value *value, tw_event *event)
{
    const Twi__HistogramProto *h = value->histo;
    *event = (tw_event){.step = from->step, .time = from->wall_time, .tag = value->tag ? value->tag : ""};
    if (value->value_case == TWI__SUMMARY__VALUE__VALUE_SIMPLE_VALUE) {
        event->kind = TW_EVENT_SCALAR;
        event->value = value->simple_value;
        return true;
    }
    if (value->value_case != TWI__SUMMARY__VALUE__VALUE_HISTO || !h)
        return false;
    event->kind = TW_EVENT_HISTOGRAM;
    event->min = h->min;
    event->max = h->max;
    event->sum = h->sum;
    event->num_buckets = (int)(h->n_bucket < h->n_bucket_limit ? h->n_bucket : h->n_bucket_limit);
    event->limits = h->bucket_limit;
    event->counts = h->bucket;
    return true;
}

static bool is_restart(const Twi__Event *event)
{
    return event->what_case == TWI__EVENT__WHAT_SESSION_LOG && event->session_log &&
           event->session_log->status == TWI__SESSION_LOG__SESSION_STATUS__START;
}

tw_status tw_event_reader_next(tw_event_reader *r, tw_event *event, tw_error *error)
{
    TWI_NEED(r, "reader", error);
    TWI_NEED(event, "event", error);
    for (;;) {
        const Twi__Event *e = r->event;
        while (e && e->what_case == TWI__EVENT__WHAT_SUMMARY && e->summary && r->next < e->summary->n_value)
            if (take_value(e, e->summary->value[r->next++], event))
                return TW_OK;
        tw_status status = read_event(r, error);
        if (status != TW_OK)
            return status;
        if (is_restart(r->event)) {
            *event =
                (tw_event){.kind = TW_EVENT_RESTART, .step = r->event->step, .time = r->event->wall_time, .tag = ""};
            return TW_OK;
        }
    }
}
