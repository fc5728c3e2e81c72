/* step_file.c - see step_file.h. */
#include "step_file.h"

#include "json.h"
#include "whole_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/explain.h>
#include <unistd.h>

enum { MOST_DEVICES_LISTED = 512, MOST_MEMORY_ITEMS = 60 };

/* The nodes of one plan, which are neighbours. */
typedef struct plan_nodes {
    const tw_planned_node *nodes;
    int count;
} plan_nodes;

static plan_nodes nodes_at(const tw_planned *planned, int first)
{
    const tw_planned_node *nodes = &planned->nodes[first];
    int count = 0;
    while (first + count < planned->num_nodes && nodes[count].lane == nodes->lane && nodes[count].plan == nodes->plan)
        count++;
    return (plan_nodes){nodes, count};
}

/* The traced plan, or else the largest, which is a step's. */
static plan_nodes nodes_of_step(const tw_planned *planned, const tw_timeline *timeline)
{
    plan_nodes best = {0};
    for (int i = 0; i < planned->num_nodes;) {
        plan_nodes plan = nodes_at(planned, i);
        if (timeline && plan.nodes->lane == timeline->lane && plan.nodes->plan == timeline->plan)
            return plan;
        best = plan.count > best.count ? plan : best;
        i += plan.count;
    }
    return best;
}

/* ---- nodes and edges ------------------------------------------------------------------------------------------- */

/* Reasons are long and few: each is written once, and nodes name it by its number. */
static int number_of_reason(const char **reasons, int *count, int room, const char *why)
{
    for (int i = *count; i-- > 0;) /* neighbours share them */
        if (strcmp(reasons[i], why) == 0)
            return i;
    if (*count == room)
        return -1;
    reasons[*count] = why;
    return (*count)++;
}

/* What a step does: kernels, copies, and what passes values on, so that edges lead through. */
static void write_nodes(json *out, plan_nodes plan)
{
    enum { MOST_REASONS = 2000 };
    const char **reasons = calloc(MOST_REASONS, sizeof *reasons);
    int num_reasons = 0;
    json_begin(out, "nodes", '[');
    for (int i = 0; i < plan.count; i++) {
        const tw_planned_node *node = &plan.nodes[i];
        json_begin(out, NULL, '[');
        json_text(out, NULL, node->name);
        json_text(out, NULL, node->op);
        json_text(out, NULL, node->device);
        json_text(out, NULL, node->kernel);
        json_integer(out, NULL, node->fate);
        json_integer(out, NULL, node->bytes);
        json_integer(out, NULL,
                     node->why && reasons ? number_of_reason(reasons, &num_reasons, MOST_REASONS, node->why) : -1);
        json_begin(out, NULL, '[');
        for (int k = 0; k < node->num_inputs; k++)
            json_integer(out, NULL, node->inputs[k]);
        json_end(out);
        json_end(out);
    }
    json_end(out);
    json_begin(out, "reasons", '[');
    for (int i = 0; i < num_reasons; i++)
        json_text(out, NULL, reasons[i]);
    json_end(out);
    free(reasons);
}

/* ---- what was measured ----------------------------------------------------------------------------------------- */

/* [node, kind, begin, duration] in microseconds. */
static void write_timeline(json *out, const tw_timeline *t)
{
    json_number(out, "seconds", t->seconds);
    json_begin(out, "kinds", '[');
    for (int k = 0; k < TW_TIME_KINDS; k++)
        json_text(out, NULL, tw_time_kind_name((tw_time_kind)k));
    json_end(out);
    json_begin(out, "spans", '[');
    for (int i = 0; i < t->num_spans; i++) {
        json_begin(out, NULL, '[');
        json_integer(out, NULL, t->spans[i].number);
        json_integer(out, NULL, t->spans[i].kind);
        json_real(out, NULL, t->spans[i].begin * 1e6, 7);
        json_real(out, NULL, (t->spans[i].end - t->spans[i].begin) * 1e6, 5);
        json_end(out);
    }
    json_end(out);
}

static void write_waterfall(json *out, tw_trainer *trainer)
{
    const char *devices[MOST_DEVICES_LISTED];
    int towers = tw_trainer_towers(trainer), count = towers < MOST_DEVICES_LISTED ? towers : MOST_DEVICES_LISTED;
    tw_waterfall parts;
    for (int i = 0; i < count; i++)
        devices[i] = tw_trainer_tower_device(trainer, i);
    if (tw_session_waterfall(tw_trainer_session(trainer), devices, count, &parts, NULL) != TW_OK)
        return;
    json_begin(out, "waterfall", '{');
    for (int k = 0; k < TW_TIME_KINDS; k++)
        json_number(out, tw_time_kind_name((tw_time_kind)k), parts.seconds[k]);
    json_number(out, "total", parts.total);
    json_end(out);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b)
{
    const tw_memory_item *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* The largest by name, the rest as a sum. */
static void write_memory_items(json *out, tw_device_memory *device)
{
    static const char *const uses[] = {"variable", "slot", "constant", "buffer", "input", "workspace", "rest"};
    int64_t others = 0;
    qsort(device->items, (size_t)device->num_items, sizeof *device->items, larger_first);
    json_begin(out, "items", '[');
    for (int i = 0; i < device->num_items; i++) {
        const tw_memory_item *item = &device->items[i];
        if (i >= MOST_MEMORY_ITEMS) {
            others += item->bytes;
            continue;
        }
        json_begin(out, NULL, '[');
        json_text(out, NULL, uses[item->use]);
        json_text(out, NULL, item->name);
        json_text(out, NULL, item->op);
        json_integer(out, NULL, item->bytes);
        json_end(out);
    }
    json_end(out);
    json_integer(out, "others", others);
}

static tw_status write_memory(json *out, tw_trainer *trainer, tw_error *error)
{
    tw_memory *memory;
    tw_status status = tw_session_memory(tw_trainer_session(trainer), &memory, error);
    if (status != TW_OK)
        return status;
    json_begin(out, "memory", '[');
    for (int i = 0; i < memory->num_devices; i++) {
        tw_device_memory *d = &memory->devices[i];
        json_begin(out, NULL, '{');
        json_text(out, "device", d->device);
        json_integer(out, "limit", d->limit);
        json_integer(out, "variables", d->variables);
        json_integer(out, "constants", d->constants);
        json_integer(out, "arena", d->arena);
        json_integer(out, "total", d->total);
        json_text(out, "fullest", d->fullest);
        write_memory_items(out, d);
        json_end(out);
    }
    json_end(out);
    tw_memory_destroy(memory);
    return TW_OK;
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

static void write_head(json *out, tw_trainer *trainer, int64_t step)
{
    json_text(out, "version", tw_version());
    json_integer(out, "step", step);
    json_integer(out, "examples", tw_trainer_examples(trainer));
    json_begin(out, "towers", '[');
    for (int i = 0; i < tw_trainer_towers(trainer); i++)
        json_text(out, NULL, tw_trainer_tower_device(trainer, i));
    json_end(out);
}

static tw_status write_all(json *out, tw_trainer *trainer, int64_t step, const tw_timeline *timeline, tw_error *error)
{
    tw_planned *planned;
    tw_status status = tw_session_planned(tw_trainer_session(trainer), &planned, error);
    if (status != TW_OK)
        return status;
    json_begin(out, NULL, '{');
    write_head(out, trainer, step);
    write_nodes(out, nodes_of_step(planned, timeline));
    tw_planned_destroy(planned);
    if (timeline) {
        write_timeline(out, timeline);
        write_waterfall(out, trainer);
    }
    status = write_memory(out, trainer, error);
    json_end(out);
    return status;
}

tw_status step_file_write(const char *directory, tw_trainer *trainer, int64_t step, const tw_timeline *timeline,
                          tw_error *error)
{
    char path[PATH_MAX];
    whole_file whole;
    if (snprintf(path, sizeof path, "%s/step.json", directory) >= (int)sizeof path)
        return TW_INVALID_ARGUMENT;
    bool is_open = whole_file_open(&whole, path);
    json out = {.file = whole.file};
    tw_status status = is_open ? write_all(&out, trainer, step, timeline, error) : TW_UNKNOWN;
    if (whole_file_close(&whole, status == TW_OK))
        return TW_OK;
    if (is_open && status != TW_OK)
        return status;
    if (error)
        snprintf(error->message, sizeof error->message, "cannot write %.1000s: %s", path, strerror(errno));
    return TW_UNKNOWN;
}
