/* placement.c - the nodes of a step in groups that a person can look at: by device and by scope, with what goes between
 * them.
 * Never here:  where a group is drawn (layout.c). */
#include "report.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 400, MOST_EDGES = 4000, SHOWN = 72 };

/* As in step.json: [name, op, device, kernel, fate, bytes, reason, [inputs]]. ORDER NODE */
enum { NAME, OP, DEVICE, KERNEL, FATE, BYTES, REASON, INPUTS };
enum { FATE_STEP = 1, FATE_FREE = 2 }; /* tw_fate */

typedef struct node {
    const char *name, *op, *device, *kernel;
    int fate, reason, num_inputs, group; /* group -1: none, it is passed through */
    int64_t bytes;
    int *inputs;
} node;

typedef struct group {
    char label[64];
    const char *device;
    int nodes, reason;
    int64_t bytes; /* that its nodes make */
    char ops[160];
} group;

typedef struct graph {
    node *nodes;
    int num_nodes;
    group groups[MOST_GROUPS];
    report_box boxes[MOST_GROUPS];
    int num_groups;
    report_edge edges[MOST_EDGES];
    struct {
        int64_t bytes;
        int tensors;
        bool crosses;
    } carried[MOST_EDGES];
    int num_edges;
} graph;

/* ---- reading --------------------------------------------------------------------------------------------------- */

static const char *text_at(const cJSON *array, int i)
{
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(array, i));
    return text ? text : "";
}

static int64_t number_at(const cJSON *array, int i)
{
    const cJSON *item = cJSON_GetArrayItem(array, i);
    return cJSON_IsNumber(item) && fabs(item->valuedouble) < 9e18 ? (int64_t)item->valuedouble : 0;
}

static bool read_node(const cJSON *from, node *to, int count)
{
    const cJSON *inputs = cJSON_GetArrayItem(from, INPUTS), *input;
    *to = (node){.name = text_at(from, NAME),
                 .op = text_at(from, OP),
                 .device = text_at(from, DEVICE),
                 .kernel = cJSON_GetStringValue(cJSON_GetArrayItem(from, KERNEL)),
                 .fate = (int)number_at(from, FATE),
                 .bytes = number_at(from, BYTES),
                 .reason = (int)number_at(from, REASON),
                 .group = -1};
    to->inputs = calloc((size_t)cJSON_GetArraySize(inputs) + 1, sizeof *to->inputs);
    if (!to->inputs)
        return false;
    cJSON_ArrayForEach(input, inputs)
    {
        int number = cJSON_IsNumber(input) ? (int)input->valuedouble : -1;
        if (number >= 0 && number < count)
            to->inputs[to->num_inputs++] = number;
    }
    return true;
}

static bool read_nodes(const cJSON *step, graph *g)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(step, "nodes"), *item;
    int count = cJSON_GetArraySize(list);
    bool good = true;
    g->nodes = calloc((size_t)count + 1, sizeof *g->nodes);
    cJSON_ArrayForEach(item, list)
    {
        good = good && g->nodes && read_node(item, &g->nodes[g->num_nodes], count);
        g->num_nodes += good;
    }
    return good && g->num_nodes > 0;
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

static bool is_copy(const node *n)
{
    return n->fate == FATE_STEP && !n->kernel;
}

/* What costs nothing and takes nothing in is state: a variable, a stream. */
static bool is_state(const node *n)
{
    return n->fate == FATE_FREE && n->num_inputs == 0;
}

/* Moves past "WORD_12/" if it stands there. Returns the number, -1: it does not. */
static int past_numbered(const char **at, const char *word)
{
    size_t length = strlen(word);
    char *end;
    if (strncmp(*at, word, length) != 0 || (*at)[length] != '_')
        return -1;
    long number = strtol(*at + length + 1, &end, 10);
    if (end == *at + length + 1 || *end != '/')
        return -1;
    *at = end + 1;
    return (int)number;
}

static bool past(const char **at, const char *prefix)
{
    size_t length = strlen(prefix);
    bool found = strncmp(*at, prefix, length) == 0;
    *at += found ? length : 0;
    return found;
}

/* What a node's group is called: "t0 conv1", "t0 grad conv1", "Momentum". With detail 1 without the layer, with 0
 * nothing: then there is one group for each device. */
static void label_of(const node *n, int detail, char *label, size_t size)
{
    const char *at = n->name;
    char layer[40];
    int tower = past_numbered(&at, "tower");
    bool gradients = past(&at, "gradients/");
    if (gradients)
        past_numbered(&at, "tower");
    snprintf(layer, sizeof layer, "%.*s", (int)strcspn(at, "/"), at);
    if (gradients && strlen(layer) > 5 && strcmp(layer + strlen(layer) - 5, "_grad") == 0)
        layer[strlen(layer) - 5] = 0;
    size_t length = strlen(layer), digits = length; /* "Mean_12" is another Mean */
    while (digits && layer[digits - 1] >= '0' && layer[digits - 1] <= '9')
        digits--;
    if (digits > 1 && digits < length && layer[digits - 1] == '_')
        layer[digits - 1] = 0;
    if (detail == 0)
        snprintf(label, size, "all nodes");
    else if (detail == 1 && tower >= 0)
        snprintf(label, size, "t%d%s", tower, gradients ? " gradients" : "");
    else if (tower >= 0)
        snprintf(label, size, "t%d %s%s", tower, gradients ? "grad " : "", layer);
    else
        snprintf(label, size, "%s%s", gradients ? "grad " : "", layer);
}

static int group_of(graph *g, const char *label, const char *device)
{
    for (int i = 0; i < g->num_groups; i++)
        if (strcmp(g->groups[i].label, label) == 0 && strcmp(g->groups[i].device, device) == 0)
            return i;
    if (g->num_groups == MOST_GROUPS)
        return -1;
    group *made = &g->groups[g->num_groups];
    *made = (group){.device = device, .reason = -1};
    snprintf(made->label, sizeof made->label, "%s", label);
    return g->num_groups++;
}

/* Names of ops, each once. */
static void note_op(group *to, const char *op)
{
    size_t used = strlen(to->ops), length = strlen(op);
    const char *found = strstr(to->ops, op);
    bool there = found && (found == to->ops || found[-1] == ' ') && (!found[length] || found[length] == ',');
    if (!there && used + length + 3 < sizeof to->ops)
        snprintf(to->ops + used, sizeof to->ops - used, "%s%s", used ? ", " : "", op);
}

static void make_groups(graph *g, int detail)
{
    char label[64];
    g->num_groups = 0;
    for (int i = 0; i < g->num_nodes; i++) {
        node *n = &g->nodes[i];
        n->group = -1;
        if (!is_state(n) && (n->fate != FATE_STEP || is_copy(n)))
            continue;
        if (is_state(n) && detail)
            snprintf(label, sizeof label, "variables");
        else
            label_of(n, detail, label, sizeof label);
        n->group = group_of(g, label, n->device);
        if (n->group < 0)
            continue;
        group *to = &g->groups[n->group];
        to->nodes++;
        if (is_state(n))
            continue;
        to->bytes += n->bytes;
        to->reason = to->reason < 0 ? n->reason : to->reason;
        note_op(to, n->op);
    }
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

/* The node that makes what comes in, behind copies and what passes it on; -1: nobody who is shown. */
static int maker_of(const graph *g, int i)
{
    int hops = 0;
    while (g->nodes[i].group < 0 && g->nodes[i].num_inputs > 0 && hops++ < 64)
        i = g->nodes[i].inputs[0];
    return g->nodes[i].group >= 0 ? i : -1;
}

static void add_edge(graph *g, int from, int to, int64_t bytes)
{
    int i = 0;
    if (from == to)
        return;
    while (i < g->num_edges && (g->edges[i].from != from || g->edges[i].to != to))
        i++;
    if (i == MOST_EDGES)
        return;
    if (i == g->num_edges) {
        g->edges[i] = (report_edge){.from = from, .to = to};
        g->carried[i].bytes = g->carried[i].tensors = 0;
        g->carried[i].crosses = strcmp(g->groups[from].device, g->groups[to].device) != 0;
        g->num_edges++;
    }
    g->carried[i].bytes += bytes;
    g->carried[i].tensors++;
}

/* A tensor that a group takes. */
typedef struct taking {
    int node, by;
} taking;

static int by_node(const void *a, const void *b)
{
    const taking *x = a, *y = b;
    return x->node != y->node ? x->node - y->node : x->by - y->by;
}

/* All takings, in order. NULL when out of memory. */
static taking *list_takings(const graph *g, int *count)
{
    size_t room = 1;
    for (int i = 0; i < g->num_nodes; i++)
        room += (size_t)g->nodes[i].num_inputs;
    taking *list = calloc(room, sizeof *list);
    *count = 0;
    for (int i = 0; list && i < g->num_nodes; i++)
        for (int k = 0; g->nodes[i].group >= 0 && k < g->nodes[i].num_inputs; k++)
            list[(*count)++] = (taking){g->nodes[i].inputs[k], g->nodes[i].group};
    if (list)
        qsort(list, (size_t)*count, sizeof *list, by_node);
    return list;
}

/* What several nodes of a group take goes there once. */
static void make_edges(graph *g)
{
    int count;
    taking *list = list_takings(g, &count);
    for (int i = 0; list && i < count; i++) {
        const node *taken = &g->nodes[list[i].node];
        int maker = maker_of(g, list[i].node);
        if (maker >= 0 && (i == 0 || by_node(&list[i], &list[i - 1]) != 0))
            add_edge(g, g->nodes[maker].group, list[i].by, taken->bytes ? taken->bytes : g->nodes[maker].bytes);
    }
    free(list);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void write_groups(const graph *g, FILE *out)
{
    fputs("\"groups\":[", out);
    for (int i = 0; i < g->num_groups; i++) {
        const group *from = &g->groups[i];
        fprintf(out,
                "%s{\"x\":%.1f,\"y\":%.1f,\"w\":%.1f,\"h\":%.1f,\"nodes\":%d,\"bytes\":%lld,\"reason\":%d,\"label\":",
                i ? "," : "", g->boxes[i].x, g->boxes[i].y, g->boxes[i].width, g->boxes[i].height, from->nodes,
                (long long)from->bytes, from->reason);
        report_text(out, from->label);
        fputs(",\"device\":", out);
        report_text(out, from->device);
        fputs(",\"ops\":", out);
        report_text(out, from->ops);
        fputs("}", out);
    }
    fputs("]", out);
}

static void write_edges(const graph *g, FILE *out)
{
    fputs(",\"edges\":[", out);
    for (int i = 0; i < g->num_edges; i++) {
        const report_edge *e = &g->edges[i];
        fprintf(out, "%s{\"from\":%d,\"to\":%d,\"bytes\":%lld,\"tensors\":%d,\"crosses\":%s,\"points\":[", i ? "," : "",
                e->from, e->to, (long long)g->carried[i].bytes, g->carried[i].tensors,
                g->carried[i].crosses ? "true" : "false");
        for (int k = 0; k < e->num_points; k++)
            fprintf(out, "%s[%.1f,%.1f]", k ? "," : "", e->points[k][0], e->points[k][1]);
        fputs("]}", out);
    }
    fputs("]", out);
}

void report_placement(const cJSON *step, FILE *out)
{
    enum { MOST_DETAIL = 2 };
    double width = 0, height = 0;
    const char *by = "";
    int detail = MOST_DETAIL;
    graph *g = calloc(1, sizeof *g);
    bool good = g && read_nodes(step, g);
    if (good) {
        for (make_groups(g, detail); g->num_groups > SHOWN && detail > 0;)
            make_groups(g, --detail);
        make_edges(g);
        for (int i = 0; i < g->num_groups; i++)
            g->boxes[i].label = g->groups[i].label;
        good =
            g->num_groups > 0 && report_layout(g->boxes, g->num_groups, g->edges, g->num_edges, &width, &height, &by);
    }
    if (good) {
        int64_t copied = 0;
        for (int i = 0; i < g->num_nodes; i++)
            copied += is_copy(&g->nodes[i]) ? g->nodes[i].bytes : 0;
        fprintf(out, "{\"width\":%.1f,\"height\":%.1f,\"copied\":%lld,\"by\":\"%s\",", width, height, (long long)copied,
                by);
        write_groups(g, out);
        write_edges(g, out);
        fputs("}", out);
    } else {
        fputs("null", out);
    }
    for (int i = 0; g && g->nodes && i < g->num_nodes; i++)
        free(g->nodes[i].inputs);
    if (g)
        free(g->nodes);
    free(g);
}
