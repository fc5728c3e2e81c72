/* messages_testing.h - TensorFlow's messages field by field, for tests of what is written in them and of files that are
 * wrong in one field; and all events of a log. */
#ifndef MESSAGES_TESTING_H
#define MESSAGES_TESTING_H

#include "testing.h"

#include "base/tfrecord.h"
#include "format/proto/event.pb-c.h"
#include "format/proto/graph.pb-c.h"
#include "format/protobuf.h"

/* All events of a file; NULL beyond the last. */
typedef struct events {
    Twi__Event *items[2000];
    int count;
    tw_status end;
} events;

static inline events *read_events(const char *path)
{
    events *events = calloc(1, sizeof *events);
    twi_record_reader *reader;
    const char *bytes;
    size_t size;
    tw_error error = {0};
    assert_ok(twi_record_open(path, &reader, &error));
    while ((events->end = twi_record_next(reader, &bytes, &size, &error)) == TW_OK) {
        Twi__Event *event = twi__event__unpack(NULL, size, (const uint8_t *)bytes);
        assert_non_null(event);
        events->items[events->count++] = event;
    }
    twi_record_close(reader);
    return events;
}

static inline void free_events(events *events)
{
    for (int i = 0; i < events->count; i++)
        twi__event__free_unpacked(events->items[i], NULL);
    free(events);
}

#endif
