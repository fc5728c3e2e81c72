/* metadata.c - what a traced run tells of itself, a RunMetadata: when each device ran which node.
 * Never here:  tracing, which the session does. */
#include "capi.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Microseconds, and nanoseconds in a field of their own. */
static void write_time(wire *w, int micros, int nanos, double seconds)
{
    int64_t whole = llround(seconds * 1e9);
    wire_int(w, micros, (uint64_t)(whole / 1000));
    wire_int(w, nanos, (uint64_t)whole);
}

static void write_span(wire *device, const tw_span *span, double began)
{
    enum { NODE_STATS = 2, NODE_NAME = 1, START = 2, RUN_START = 3, RUN_END = 4, END = 5, LABEL = 8, SCHEDULED = 9 };
    enum { START_NANOS = 13, RUN_START_NANOS = 14, RUN_END_NANOS = 15, END_NANOS = 16, SCHEDULED_NANOS = 17 };
    wire node = {0};
    double length = span->end - span->begin;
    wire_text(&node, NODE_NAME, span->node);
    write_time(&node, START, START_NANOS, began + span->begin);
    write_time(&node, RUN_START, RUN_START_NANOS, 0);
    write_time(&node, RUN_END, RUN_END_NANOS, length);
    write_time(&node, END, END_NANOS, length);
    write_time(&node, SCHEDULED, SCHEDULED_NANOS, began + span->begin);
    wire_printf(&node, LABEL, "%s = %s()", span->node, span->op);
    wire_message(device, NODE_STATS, &node);
}

static bool is_first_of_device(const tw_timeline *timeline, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(timeline->spans[k].device, timeline->spans[i].device) == 0)
            return false;
    return true;
}

void write_step_stats(wire *metadata, const tw_timeline *timeline)
{
    enum { STEP_STATS = 1, DEV_STATS = 1, DEVICE = 1 };
    struct timespec now;
    wire stats = {0};
    clock_gettime(CLOCK_REALTIME, &now); /* the run has just ended */
    double began = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - timeline->seconds;
    for (int i = 0; i < timeline->num_spans; i++) {
        if (!is_first_of_device(timeline, i))
            continue;
        wire device = {0};
        wire_text(&device, DEVICE, timeline->spans[i].device);
        for (int k = i; k < timeline->num_spans; k++)
            if (strcmp(timeline->spans[k].device, timeline->spans[i].device) == 0)
                write_span(&device, &timeline->spans[k], began);
        wire_message(&stats, DEV_STATS, &device);
    }
    wire_message(metadata, STEP_STATS, &stats);
}
