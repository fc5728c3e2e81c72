/* show.c - `tower show`: what is inside of a graph. */
#include "command.h"
#include "json.h"
#include "outline.h"
#include "progress.h" /* bytes_text */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>

enum { MOST_LINES = 12 };

typedef struct settings {
    const char *graph, *tags;
    bool all;
    int format;
} settings;

/* A graph and what was counted in it. */
typedef struct view {
    const settings *settings;
    tw_graph *graph;
    tw_graph_about *about;
    outline outline;
    struct tally *ops, *unknown, *devices;
    int num_ops, num_unknown, num_devices;
    int most; /* lines of a list */
} view;

typedef struct tally {
    const char *name;
    int count;
    const tw_node *first;
} tally;

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* The op that the file says, of nodes that cannot be built, too. */
static const char *op_of(const tw_node *node)
{
    const tw_attr *op = tw_node_is_unknown(node) ? tw_node_attr(node, "op") : NULL;
    return op ? op->s.data : tw_node_op(node);
}

/* Whether a node is unknown for its own sake, and not for that of one whose output it takes. */
static bool is_strange(const tw_node *node)
{
    const tw_attr *why = tw_node_is_unknown(node) ? tw_node_attr(node, "why") : NULL;
    return why && strncmp(why->s.data, "it needs '", strlen("it needs '")) != 0;
}

static int compare_names(const void *a, const void *b)
{
    const tally *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : tw_node_number(left->first) - tw_node_number(right->first);
}

static int compare_counts(const void *a, const void *b)
{
    const tally *left = a, *right = b;
    return left->count != right->count ? right->count - left->count : strcmp(left->name, right->name);
}

/* Equal names become one, the most frequent first. */
static int sum_up(tally *list, int count)
{
    int kept = 0;
    qsort(list, (size_t)count, sizeof *list, compare_names);
    for (int i = 0; i < count; i++)
        if (kept && strcmp(list[kept - 1].name, list[i].name) == 0)
            list[kept - 1].count += list[i].count;
        else
            list[kept++] = list[i];
    qsort(list, (size_t)kept, sizeof *list, compare_counts);
    return kept;
}

static bool count_all(view *v)
{
    int count = tw_graph_num_nodes(v->graph);
    tally **lists[] = {&v->ops, &v->unknown, &v->devices};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!(*lists[i] = calloc((size_t)count + 1, sizeof **lists[i])))
            return false;
    for (int i = 0; i < count; i++) {
        const tw_node *node = tw_graph_node(v->graph, i);
        v->ops[v->num_ops++] = (tally){op_of(node), 1, node};
        v->devices[v->num_devices++] = (tally){tw_node_device(node), 1, node};
        if (is_strange(node))
            v->unknown[v->num_unknown++] = (tally){op_of(node), 1, node};
    }
    v->num_ops = sum_up(v->ops, v->num_ops);
    v->num_devices = sum_up(v->devices, v->num_devices);
    v->num_unknown = sum_up(v->unknown, v->num_unknown);
    return true;
}

/* 0: the graph leaves the shape open. */
static int64_t numbers_of(const tw_variable *variable)
{
    return tw_shape_is_known(variable->shape) ? tw_shape_elements(variable->shape) : 0;
}

static int64_t bytes_of(const tw_variable *variable)
{
    return numbers_of(variable) * (int64_t)tw_dtype_size(variable->dtype);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_more(const view *v, int count)
{
    if (count > v->most)
        printf("  and %d more (--all lists them)\n", count - v->most);
}

static void print_variables(const view *v)
{
    int count = tw_graph_num_variables(v->graph), trainable = 0;
    int64_t numbers = 0, bytes = 0;
    char text[128], size[32];
    for (int i = 0; i < count; i++) {
        const tw_variable *variable = tw_graph_variable(v->graph, i);
        trainable += variable->trainable;
        numbers += numbers_of(variable);
        bytes += bytes_of(variable);
    }
    if (count)
        printf("variables: %d, %d trainable, %" PRId64 " numbers, %s\n", count, trainable, numbers,
               bytes_text((double)bytes, size, sizeof size));
    for (int i = 0; i < count && i < v->most; i++) {
        const tw_variable *variable = tw_graph_variable(v->graph, i);
        printf("  %-38s %s %s%s\n", variable->name, tw_dtype_name(variable->dtype),
               tw_shape_text(variable->shape, text, sizeof text), variable->trainable ? "" : ", not trainable");
    }
    print_more(v, count);
    if (v->about->variables)
        printf("  their values: %s\n", v->about->variables);
}

static void print_tallies(const view *v, const char *heading, const tally *list, int count, bool names_first)
{
    if (count)
        printf("%s\n", heading);
    for (int i = 0; i < count && i < v->most; i++)
        if (names_first)
            printf("  %7d  %-24s %s%s\n", list[i].count, list[i].name, list[i].count > 1 ? "first " : "",
                   tw_node_name(list[i].first));
        else
            printf("  %7d  %s\n", list[i].count, list[i].name[0] ? list[i].name : "nothing");
    print_more(v, count);
}

static void print_collections(const view *v)
{
    int count = tw_graph_num_collections(v->graph);
    if (count)
        printf("collections\n");
    for (int i = 0; i < count; i++) {
        const char *name = tw_graph_collection(v->graph, i);
        printf("  %7d  %s\n", tw_get_collection(v->graph, name, NULL, NULL, 0), name);
    }
}

static void print_nodes(const view *v)
{
    char text[256];
    puts("nodes");
    for (int i = 0; i < tw_graph_num_nodes(v->graph); i++) {
        tw_node *node = tw_graph_node(v->graph, i);
        printf("  %s (%s)", tw_node_name(node), op_of(node));
        for (int k = 0; k < tw_node_num_outputs(node); k++)
            printf("%s %s", k ? "," : "", type_text(tw_node_output(node, k), text, sizeof text));
        printf("%s%s\n", *tw_node_device(node) ? " on " : "", tw_node_device(node));
    }
}

static void print_text(const view *v)
{
    const tw_graph_about *about = v->about;
    int nodes = tw_graph_num_nodes(v->graph);
    printf("%s: %s%s, %d node%s of %d op%s%s%s%s%s\n", v->settings->graph, about->format, about->is_text ? " in text" : "",
           nodes, nodes == 1 ? "" : "s", v->num_ops, v->num_ops == 1 ? "" : "s", *about->writer ? ", TensorFlow " : "",
           about->writer, *about->tags ? ", tags " : "", about->tags);
    outline_print(stdout, &v->outline, about, v->most);
    print_variables(v);
    print_collections(v);
    if (v->num_devices > 1 || (v->num_devices && v->devices[0].name[0]))
        print_tallies(v, "devices that nodes ask for", v->devices, v->num_devices, false);
    print_tallies(v, "ops", v->ops, v->num_ops, false);
    print_tallies(v, "ops that are not known here: what needs them cannot be run", v->unknown, v->num_unknown, true);
    if (v->settings->all)
        print_nodes(v);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void write_shape(json *out, tw_shape shape)
{
    if (shape.rank < 0) {
        json_text(out, "shape", NULL);
        return;
    }
    json_begin(out, "shape", '[');
    for (int i = 0; i < shape.rank; i++)
        json_integer(out, NULL, shape.dims[i]);
    json_end(out);
}

static void write_value(json *out, const char *key, tw_output output)
{
    char text[512];
    json_begin(out, NULL, '{');
    if (key)
        json_text(out, "key", key);
    json_text(out, "name", output_text(output, text, sizeof text));
    if (output.index >= 0) {
        json_text(out, "type", tw_dtype_name(tw_output_dtype(output)));
        write_shape(out, tw_output_shape(output));
    }
    json_end(out);
}

static void write_outputs(json *out, const char *key, const tw_output *list, int count)
{
    json_begin(out, key, '[');
    for (int i = 0; i < count; i++)
        write_value(out, NULL, list[i]);
    json_end(out);
}

static void write_signature_values(json *out, const char *key, const tw_signature_value *list, int count)
{
    json_begin(out, key, '[');
    for (int i = 0; i < count; i++)
        write_value(out, list[i].name, list[i].output);
    json_end(out);
}

static void write_tallies(json *out, const char *key, const tally *list, int count)
{
    json_begin(out, key, '{');
    for (int i = 0; i < count; i++)
        json_integer(out, list[i].name, list[i].count);
    json_end(out);
}

static void write_signatures(json *out, const tw_graph_about *about)
{
    json_begin(out, "signatures", '[');
    for (int i = 0; i < about->num_signatures; i++) {
        const tw_signature *s = &about->signatures[i];
        json_begin(out, NULL, '{');
        json_text(out, "name", s->name);
        json_text(out, "method", s->method);
        write_signature_values(out, "inputs", s->inputs, s->num_inputs);
        write_signature_values(out, "outputs", s->outputs, s->num_outputs);
        json_end(out);
    }
    json_end(out);
}

static void write_variables(json *out, const tw_graph *graph)
{
    json_begin(out, "variables", '[');
    for (int i = 0; i < tw_graph_num_variables(graph); i++) {
        const tw_variable *variable = tw_graph_variable(graph, i);
        json_begin(out, NULL, '{');
        json_text(out, "name", variable->name);
        json_text(out, "type", tw_dtype_name(variable->dtype));
        write_shape(out, variable->shape);
        json_flag(out, "trainable", variable->trainable);
        json_end(out);
    }
    json_end(out);
}

static void write_nodes(json *out, const tw_graph *graph)
{
    json_begin(out, "nodes", '[');
    for (int i = 0; i < tw_graph_num_nodes(graph); i++) {
        const tw_node *node = tw_graph_node(graph, i);
        json_begin(out, NULL, '{');
        json_text(out, "name", tw_node_name(node));
        json_text(out, "op", op_of(node));
        json_text(out, "device", tw_node_device(node));
        json_end(out);
    }
    json_end(out);
}

static void print_json(const view *v)
{
    const tw_graph_about *about = v->about;
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "file", v->settings->graph);
    json_text(&out, "format", about->format);
    json_flag(&out, "text", about->is_text);
    json_text(&out, "tensorflow", *about->writer ? about->writer : NULL);
    json_text(&out, "tags", *about->tags ? about->tags : NULL);
    json_integer(&out, "nodes_in_all", tw_graph_num_nodes(v->graph));
    write_signatures(&out, about);
    write_outputs(&out, "inputs", v->outline.inputs, v->outline.num_inputs);
    write_outputs(&out, "outputs", v->outline.outputs, v->outline.num_outputs);
    write_outputs(&out, "targets", v->outline.targets, v->outline.num_targets);
    write_variables(&out, v->graph);
    json_text(&out, "checkpoint", about->variables);
    json_begin(&out, "collections", '{');
    for (int i = 0; i < tw_graph_num_collections(v->graph); i++)
        json_integer(&out, tw_graph_collection(v->graph, i),
                     tw_get_collection(v->graph, tw_graph_collection(v->graph, i), NULL, NULL, 0));
    json_end(&out);
    write_tallies(&out, "devices", v->devices, v->num_devices);
    write_tallies(&out, "ops", v->ops, v->num_ops);
    write_tallies(&out, "unknown_ops", v->unknown, v->num_unknown);
    if (v->settings->all)
        write_nodes(&out, v->graph);
    json_end(&out);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int show(const void *given)
{
    const settings *s = given;
    tw_error error = {0};
    view v = {.settings = s, .graph = tw_graph_create(), .most = s->all ? INT32_MAX : MOST_LINES};
    tw_status status = tw_graph_load(v.graph, s->graph, &(tw_load_options){.tags = s->tags}, &v.about, &error);
    if (status == TW_OK && !(outline_make(v.graph, &v.outline) && count_all(&v))) {
        status = error.status = TW_RESOURCE_EXHAUSTED;
        snprintf(error.message, sizeof error.message, "out of memory while counting what is in '%s'", s->graph);
    }
    if (status == TW_OK && s->format == FORMAT_JSON)
        print_json(&v);
    else if (status == TW_OK)
        print_text(&v);
    outline_free(&v.outline);
    free(v.ops);
    free(v.unknown);
    free(v.devices);
    tw_graph_about_destroy(v.about);
    tw_graph_destroy(v.graph);
    return status == TW_OK ? EXIT_DONE : failed("show", &error);
}

static const option options[] = {
    {NULL, "GRAPH", OPTION_FILE, offsetof(settings, graph),
     "a GraphDef, a MetaGraphDef (.meta), a SavedModel, each in binary or in text, an event file, or the directory of a "
     "SavedModel or of checkpoints"},
    {"tags", "TAGS", OPTION_TEXT, offsetof(settings, tags),
     "of several graphs in a SavedModel the one with these (train,gpu); without it serve, or else the first"},
    {"all", NULL, OPTION_FLAG, offsetof(settings, all), "every line of each list, and every node"},
    FORMAT_OPTION(settings, format),
    {0},
};

const command show_command = {
    .name = "show",
    .summary = "show what is inside of a graph that TensorFlow wrote",
    .description =
        "Says what a file holds, whatever it is called: signatures, inputs (placeholders), outputs that nobody takes, what "
        "can be run and gives nothing (initializers, training), variables, collections, the devices that nodes ask for, "
        "ops with how many nodes of each there are, and those that Tower does not know. Nothing is run. Outputs that "
        "gradients, loops and optimizers leave over are counted; --all lists them, last.\n\n"
        "Of an output that is not its node's first, the name is node:1.",
    .examples = "tower show model.meta\n"
                "tower show saved_model/ --format json\n"
                "tower show events.out.tfevents.1700000000.host --all",
    .of_tasks = TASKS_FIRST,
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = show,
};
