/* event_file.c - event files for TensorBoard: records of Event messages, buffered, flushed every few seconds.
 * Lives here:  tw_event_writer. Never here: how records are framed (tfrecord.c), how values spread (base/histogram.c).
 */
#include "format/event_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/histogram.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "format/proto/event.pb-c.h"
#include "format/protobuf.h"
#include "base/tfrecord.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_NS (5 * INT64_C(1000000000))

struct tw_event_writer {
    char *path;
    pthread_mutex_t lock; /* over the rest, so that events of several threads do not mix */
    twi_file_writer *file;
    int64_t flushed_at; /* monotonic ns */
};

static tw_status add_bytes(tw_event_writer *writer, const void *bytes, size_t size, tw_error *error)
{
    tw_status status = TW_OK;
    int64_t now = twi_monotonic_ns();
    pthread_mutex_lock(&writer->lock);
    twi_record_write(writer->file, bytes, size);
    if (now - writer->flushed_at >= FLUSH_NS) {
        status = twi_file_flush(writer->file, error);
        writer->flushed_at = now;
    }
    pthread_mutex_unlock(&writer->lock);
    return status;
}

static tw_status add_event(tw_event_writer *writer, Twi__Event *event, tw_error *error)
{
    event->wall_time = twi_wall_seconds();
    uint8_t *bytes = twi_resize(NULL, twi__event__get_packed_size(event));
    if (!bytes)
        return twi_fail_memory(error, "writing an event");
    tw_status status = add_bytes(writer, bytes, twi__event__pack(event, bytes), error);
    twi_free(bytes);
    return status;
}

/* A new file, whose name nobody else has: by second, host, process and a number. */
static tw_status create_file(tw_event_writer *writer, const char *directory, const char *suffix, tw_error *error)
{
    tw_status status = TW_ALREADY_EXISTS;
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !*host)
        snprintf(host, sizeof host, "localhost");
    for (int number = 0; status == TW_ALREADY_EXISTS; number++) {
        twi_text path = {0};
        twi_text_printf(&path, "%s/events.out.tfevents.%010lld.%s.%ld.%d%s", directory, (long long)twi_wall_seconds(),
                        host, (long)getpid(), number, suffix);
        if (path.failed)
            return twi_fail_memory(error, "making an event file");
        status = twi_file_create_new(path.data, &writer->file, error);
        writer->path = path.data;
        if (status != TW_OK) {
            twi_text_free(&path);
            writer->path = NULL;
        }
    }
    return status;
}

tw_status twi_event_writer_create(const char *directory, const char *suffix, tw_event_writer **writer, tw_error *error)
{
    tw_status status = TW_OK;
    Twi__Event version = TWI__EVENT__INIT;
    tw_event_writer *made = twi_alloc(sizeof *made);
    *writer = NULL;
    if (!made)
        return twi_fail_memory(error, "making an event file");
    pthread_mutex_init(&made->lock, NULL);
    TWI_TRY(twi_make_directories(directory, error));
    TWI_TRY(create_file(made, directory, suffix, error));
    version.what_case = TWI__EVENT__WHAT_FILE_VERSION;
    version.file_version = "brain.Event:2";
    TWI_TRY(add_event(made, &version, error));
    TWI_TRY(tw_event_writer_flush(made, error));
    *writer = made;
    made = NULL;
done:
    if (made && made->path)
        twi_files()->unlink(made->path);
    tw_event_writer_close(made, NULL);
    return status;
}

tw_status tw_event_writer_create(const char *directory, tw_event_writer **writer, tw_error *error)
{
    TWI_NEED(directory, "directory", error);
    TWI_NEED(writer, "writer", error);
    return twi_event_writer_create(directory, "", writer, error);
}

const char *tw_event_writer_path(const tw_event_writer *writer)
{
    TWI_NEED_OR(writer, "");
    return writer->path;
}

static tw_status add_value(tw_event_writer *writer, Twi__Summary__Value *value, const char *tag, int64_t step,
                           tw_error *error)
{
    Twi__Summary summary = TWI__SUMMARY__INIT;
    Twi__Event event = TWI__EVENT__INIT;
    value->tag = (char *)tag;
    summary.n_value = 1;
    summary.value = &value;
    event.step = step;
    event.what_case = TWI__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return add_event(writer, &event, error);
}

tw_status tw_event_writer_add_scalar(tw_event_writer *writer, const char *tag, int64_t step, float value,
                                     tw_error *error)
{
    TWI_NEED(writer, "writer", error);
    Twi__Summary__Value stored = TWI__SUMMARY__VALUE__INIT;
    stored.value_case = TWI__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    stored.simple_value = value;
    return add_value(writer, &stored, tag, step, error);
}

/* As twi_histogram_add_floats(), of bfloat16: a block of floats at a time. */
static int64_t add_bfloats(twi_histogram *histogram, const uint16_t *values, int64_t count)
{
    enum { BLOCK = 1024 };
    float block[BLOCK];
    int64_t added = 0;
    for (int64_t wanted = 0; added == wanted && added < count;) {
        int size = count - added < BLOCK ? (int)(count - added) : BLOCK;
        for (int i = 0; i < size; i++) {
            uint32_t bits = (uint32_t)values[added + i] << 16;
            memcpy(&block[i], &bits, sizeof bits);
        }
        wanted = added + size;
        added += twi_histogram_add_floats(histogram, block, size);
    }
    return added;
}

/* The tag is for messages. */
static tw_status fill_histogram(twi_histogram *histogram, const tw_tensor *tensor, const char *tag, tw_error *error)
{
    tw_dtype dtype = tw_tensor_dtype(tensor);
    int64_t elements = tw_tensor_elements(tensor), added = 0;
    if (dtype == TW_STRING || dtype == TW_RESOURCE || dtype == TW_VARIANT)
        return twi_fail(error, TW_INVALID_ARGUMENT, "histogram '%s' needs numbers, not a tensor of type %s", tag,
                        tw_dtype_name(dtype));
    twi_histogram_start(histogram);
    if (dtype == TW_FLOAT32)
        added = twi_histogram_add_floats(histogram, tw_tensor_data(tensor), elements);
    else if (dtype == TW_BFLOAT16)
        added = add_bfloats(histogram, tw_tensor_data(tensor), elements);
    else
        for (double value; added < elements && isfinite(value = tw_tensor_value(tensor, added)); added++)
            twi_histogram_add(histogram, value);
    if (added == elements)
        return TW_OK;
    return twi_fail(error, TW_INVALID_ARGUMENT, "histogram '%s' has %s at element %lld", tag,
                    isnan(tw_tensor_value(tensor, added)) ? "a NaN" : "an infinity", (long long)added);
}

tw_status tw_event_writer_add_histogram(tw_event_writer *writer, const char *tag, int64_t step, const tw_tensor *tensor,
                                        tw_error *error)
{
    TWI_NEED(writer, "writer", error);
    TWI_NEED(tensor, "tensor", error);
    Twi__Summary__Value stored = TWI__SUMMARY__VALUE__INIT;
    Twi__HistogramProto proto = TWI__HISTOGRAM_PROTO__INIT;
    twi_histogram *histogram = twi_alloc(sizeof *histogram);
    if (!histogram)
        return twi_fail_memory(error, "writing a histogram");
    tw_status status = fill_histogram(histogram, tensor, tag, error);
    if (status == TW_OK) {
        proto.min = histogram->min;
        proto.max = histogram->max;
        proto.num = histogram->num;
        proto.sum = histogram->sum;
        proto.sum_squares = histogram->sum_squares;
        proto.n_bucket_limit = proto.n_bucket = (size_t)twi_histogram_squeeze(histogram);
        proto.bucket_limit = histogram->limits;
        proto.bucket = histogram->buckets;
        stored.value_case = TWI__SUMMARY__VALUE__VALUE_HISTO;
        stored.histo = &proto;
        status = add_value(writer, &stored, tag, step, error);
    }
    twi_free(histogram);
    return status;
}

tw_status tw_event_writer_add_summary(tw_event_writer *writer, int64_t step, const void *summary, size_t bytes,
                                      tw_error *error)
{
    TWI_NEED(summary, "summary", error);
    Twi__Event event = TWI__EVENT__INIT;
    twi_proto proto;
    twi_proto_start(&proto, bytes);
    event.summary = twi__summary__unpack(&proto.allocator, bytes, summary);
    if (proto.out_of_memory)
        return twi_fail_memory(error, "writing a summary");
    if (!event.summary)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%zu bytes that should be a serialized Summary are not one", bytes);
    event.step = step;
    event.what_case = TWI__EVENT__WHAT_SUMMARY;
    tw_status status = add_event(writer, &event, error);
    twi__summary__free_unpacked(event.summary, &proto.allocator);
    return status;
}

tw_status tw_event_writer_add_graph(tw_event_writer *writer, const void *graph_def, size_t bytes, tw_error *error)
{
    TWI_NEED(writer, "writer", error);
    TWI_NEED(graph_def, "graph_def", error);
    return twi_event_writer_add_graph(writer, 0, graph_def, bytes, error);
}

tw_status twi_event_writer_add_event(tw_event_writer *writer, const void *event, size_t bytes, tw_error *error)
{
    twi_proto proto;
    twi_proto_start(&proto, bytes);
    Twi__Event *read = twi__event__unpack(&proto.allocator, bytes, event);
    if (read)
        twi__event__free_unpacked(read, &proto.allocator);
    if (proto.out_of_memory)
        return twi_fail_memory(error, "writing an event");
    if (!read)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%zu bytes that should be a serialized Event are not one", bytes);
    return add_bytes(writer, event, bytes, error);
}

tw_status twi_event_writer_add_graph(tw_event_writer *writer, int64_t step, const void *graph_def, size_t bytes,
                                     tw_error *error)
{
    Twi__Event event = TWI__EVENT__INIT;
    event.step = step;
    event.what_case = TWI__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){bytes, (uint8_t *)graph_def};
    return add_event(writer, &event, error);
}

tw_status tw_event_writer_add_restart(tw_event_writer *writer, int64_t step, tw_error *error)
{
    TWI_NEED(writer, "writer", error);
    Twi__SessionLog log = TWI__SESSION_LOG__INIT;
    Twi__Event event = TWI__EVENT__INIT;
    log.status = TWI__SESSION_LOG__SESSION_STATUS__START;
    event.step = step;
    event.what_case = TWI__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    return add_event(writer, &event, error);
}

tw_status tw_event_writer_flush(tw_event_writer *writer, tw_error *error)
{
    TWI_NEED(writer, "writer", error);
    pthread_mutex_lock(&writer->lock);
    tw_status status = twi_file_flush(writer->file, error);
    writer->flushed_at = twi_monotonic_ns();
    pthread_mutex_unlock(&writer->lock);
    return status;
}

tw_status tw_event_writer_close(tw_event_writer *writer, tw_error *error)
{
    tw_status status = TW_OK;
    if (!writer)
        return TW_OK;
    if (writer->file)
        status = twi_file_close(writer->file, false, error);
    pthread_mutex_destroy(&writer->lock);
    twi_free(writer->path);
    twi_free(writer);
    return status;
}
