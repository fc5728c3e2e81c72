/* chrome_trace.c - see chrome_trace.h. The format is the JSON of chrome://tracing, which Perfetto opens. */
#include "run/chrome_trace.h"

#include "base/file.h"
#include "base/text.h"

/* Names hold letters, digits and _./\-> only, so the backslash is all there is to escape. */
static void append_quoted(twi_text *text, const char *name)
{
    twi_text_append(text, "\"", 1);
    for (; *name; name++) {
        if (*name == '\\' || *name == '"')
            twi_text_append(text, "\\", 1);
        twi_text_append(text, name, 1);
    }
    twi_text_append(text, "\"", 1);
}

static int64_t first_start(const twi_plan *plan)
{
    int64_t first = INT64_MAX;
    for (int d = 0; d < plan->num_lists; d++)
        for (int i = 0; i < plan->lists[d].count; i++)
            if (plan->trace->tracks[d].spans[i].started_ns && plan->trace->tracks[d].spans[i].started_ns < first)
                first = plan->trace->tracks[d].spans[i].started_ns;
    return first;
}

static void append_step(twi_text *text, const twi_plan *plan, twi_step_id id, int64_t start)
{
    const twi_step *step = &plan->lists[id.device].steps[id.position];
    const twi_node *node = plan->lists[id.device].nodes[id.position];
    const twi_span *span = twi_span_of(plan, id);
    const char *kernel = step->kernel ? step->kernel->name : "copy";
    twi_text_printf(text, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"%s\",\"args\":{",
                    id.device, (double)(span->started_ns - start) / 1e3,
                    (double)(span->ended_ns - span->started_ns) / 1e3, node->op->name);
    twi_text_printf(text, "\"kernel\":\"%s\",\"node\":", kernel);
    append_quoted(text, node->name);
    if (step->source)
        twi_text_printf(text, ",\"bytes\":%zu,\"from\":\"%s\"", step->bytes, step->source->text);
    twi_text_printf(text, "}}");
}

static void append_list(twi_text *text, const twi_plan *plan, int d, int64_t start)
{
    const twi_list *list = &plan->lists[d];
    for (int i = 0; i < list->count; i++)
        if ((list->steps[i].kernel || list->steps[i].source) && plan->trace->tracks[d].spans[i].started_ns)
            append_step(text, plan, (twi_step_id){d, i}, start);
}

tw_status twi_chrome_trace_write(twi_plan *const *parts, int count, const char *path, tw_error *error)
{
    twi_text text = {0};
    int64_t start = INT64_MAX;
    for (int k = 0; k < count; k++)
        start = first_start(parts[k]) < start ? first_start(parts[k]) : start;
    twi_text_printf(&text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":0}}");
    for (int d = 0; d < parts[0]->num_lists; d++) {
        twi_text_printf(&text, ",\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}", d,
                        parts[0]->lists[d].device->text);
        for (int k = 0; k < count; k++)
            append_list(&text, parts[k], d, start);
    }
    twi_text_printf(&text, "\n]}\n");
    tw_status status = text.failed ? twi_fail_memory(error, "writing a trace")
                                   : twi_file_replace(path, text.data, text.size, error);
    twi_text_free(&text);
    return status;
}
