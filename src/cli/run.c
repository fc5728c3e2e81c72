/* run.c - `tower run`: the steps of a graph that another program wrote. */
#include "command.h"
#include "job.h"
#include "json.h"
#include "signals.h"
#include "value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tower/tower.h>

enum { MOST_NAMES = 64, SHOWN = 8 };

typedef struct settings {
    job job; /* the devices, --format */
    const char *graph, *fetch, *target, *initialize, *feed, *restore, *save;
    int64_t steps, print_every;
    int soft_placement;
} settings;

/* What the names on the command line mean in the graph. */
typedef struct work {
    tw_graph *graph;
    tw_output fetches[2 * MOST_NAMES]; /* first those that are printed, then those that only run */
    char names[MOST_NAMES][256];       /* as they were typed */
    int num_printed, num_fetches;
    tw_tensor *results[2 * MOST_NAMES];
    tw_feed feeds[MOST_NAMES];
    int num_feeds;
    tw_output first;                   /* what is run once before the steps */
} work;

/* ---- the graph and its names --------------------------------------------------------------------------------------- */

static bool read_file(const char *path, char **bytes, size_t *size)
{
    size_t capacity = 1 << 16, got;
    FILE *file = fopen(path, "rb");
    *bytes = file ? malloc(capacity) : NULL;
    for (*size = 0; *bytes && (got = fread(*bytes + *size, 1, capacity - *size, file)) > 0;) {
        *size += got;
        if (*size < capacity)
            continue;
        char *larger = realloc(*bytes, capacity *= 2);
        if (!larger)
            free(*bytes);
        *bytes = larger;
    }
    bool whole = *bytes && !ferror(file);
    if (file)
        fclose(file);
    return whole || complain("run", "cannot read '%s': %s", path, strerror(errno));
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static tw_graph *read_graph(const char *path)
{
    char *bytes;
    size_t size;
    tw_error error = {0};
    if (!read_file(path, &bytes, &size))
        return NULL;
    tw_graph *graph = tw_graph_create();
    tw_status status = ends_in(path, ".meta") ? tw_meta_graph_import(graph, bytes, size, NULL, &error)
                                              : tw_graph_import(graph, bytes, size, NULL, &error);
    free(bytes);
    if (status == TW_OK)
        return graph;
    complain("run", "'%s': %s", path, error.message);
    tw_graph_destroy(graph);
    return NULL;
}

/* "loss" or "split:1". */
static bool find_output(const tw_graph *graph, const char *text, tw_output *output)
{
    char name[256];
    const char *colon = strrchr(text, ':');
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - text) : (int)strlen(text), text);
    tw_node *node = tw_graph_find(graph, name);
    int index = colon ? atoi(colon + 1) : 0;
    if (!node)
        return complain("run", "the graph has no node '%s'", name);
    if (tw_node_is_unknown(node)) { /* running it says why it cannot */
        *output = (tw_output){node, -1};
        return true;
    }
    if (colon && index >= tw_node_num_outputs(node))
        return complain("run", "'%s' has %d outputs, so there is no '%s'", name, tw_node_num_outputs(node), text);
    *output = tw_node_output(node, index);
    return true;
}

/* Copies the next of "a,b,c" into name and moves *list past it; false at the end. */
static bool next_name(const char **list, char name[256])
{
    size_t length = *list ? strcspn(*list, ",") : 0;
    if (!length)
        return false;
    snprintf(name, 256, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

static bool find_fetches(work *w, const settings *s)
{
    char name[256];
    for (const char *list = s->fetch; next_name(&list, name);) {
        tw_output *output = &w->fetches[w->num_printed];
        if (w->num_printed == MOST_NAMES)
            return complain("run", "--fetch: at most %d names", MOST_NAMES);
        if (!find_output(w->graph, name, output))
            return false;
        if (output->index < 0 && !tw_node_is_unknown(output->node))
            return complain("run", "--fetch: '%s' has no outputs; --target runs it", name);
        snprintf(w->names[w->num_printed++], sizeof w->names[0], "%s", name);
    }
    w->num_fetches = w->num_printed;
    for (const char *list = s->target; next_name(&list, name); w->num_fetches++) {
        if (w->num_fetches == w->num_printed + MOST_NAMES)
            return complain("run", "--target: at most %d names", MOST_NAMES);
        if (!find_output(w->graph, name, &w->fetches[w->num_fetches]))
            return false;
        w->fetches[w->num_fetches].index = -1;
    }
    return w->num_fetches > 0 || complain("run", "nothing to run: name nodes with --fetch or --target");
}

/* "keep_prob=1,is_training=0" */
static bool find_feeds(work *w, const settings *s)
{
    char text[256], shape[128];
    for (const char *list = s->feed; next_name(&list, text); w->num_feeds++) {
        char *value = strchr(text, '=');
        const char *expected = NULL;
        tw_feed *feed = &w->feeds[w->num_feeds];
        if (w->num_feeds == MOST_NAMES)
            return complain("run", "--feed: at most %d names", MOST_NAMES);
        if (value)
            *value++ = 0;
        if (value && !find_output(w->graph, text, &feed->output))
            return false;
        if (!value)
            return complain("run", "--feed: expected NAME=NUMBER, found '%s'", text);
        tw_dtype dtype = tw_output_dtype(feed->output);
        feed->tensor = value_filled(dtype, tw_output_shape(feed->output), value, &expected);
        if (expected)
            return complain("run", "--feed: '%s' is %s: expected %s, found '%s'", text, tw_dtype_name(dtype), expected,
                            value);
        if (!feed->tensor)
            return complain("run", "--feed: '%s' is %s %s; numbers of a known shape can be fed", text,
                            tw_dtype_name(dtype), tw_shape_text(tw_output_shape(feed->output), shape, sizeof shape));
    }
    return true;
}

/* The nodes named, or all variables' initial values. */
static bool find_first(work *w, const settings *s)
{
    tw_output nodes[MOST_NAMES];
    char name[256];
    int count = 0;
    for (const char *list = s->initialize; next_name(&list, name); count++)
        if (count == MOST_NAMES)
            return complain("run", "--init: at most %d names", MOST_NAMES);
        else if (!find_output(w->graph, name, &nodes[count]))
            return false;
    w->first = count ? tw_group(tw_name(w->graph, "tower_run_init"), nodes, count) : tw_initialize_variables(w->graph);
    return true;
}

/* ---- printing ------------------------------------------------------------------------------------------------------ */

static void print_text(const char *name, const tw_tensor *t)
{
    char shape[128];
    int64_t count = tw_tensor_elements(t);
    bool scalar = tw_tensor_shape(t).rank == 0;
    printf(" %s =", name);
    if (!scalar)
        printf(" %s", tw_shape_text(tw_tensor_shape(t), shape, sizeof shape));
    for (int64_t i = 0; i < count && i < SHOWN; i++) {
        putchar(' ');
        value_print(t, i);
    }
    printf("%s", count > SHOWN ? " ..." : "");
}

static void print_json(json *out, const char *name, const tw_tensor *t)
{
    bool scalar = tw_tensor_shape(t).rank == 0;
    if (!scalar)
        json_begin(out, name, '[');
    for (int64_t i = 0; i < tw_tensor_elements(t); i++)
        value_json(out, scalar ? name : NULL, t, i);
    if (!scalar)
        json_end(out);
}

static void print_step(const work *w, const settings *s, int64_t step)
{
    json out = {.file = stdout};
    if (s->job.format == FORMAT_JSON) {
        json_begin(&out, NULL, '{');
        json_integer(&out, "step", step);
        for (int i = 0; i < w->num_printed; i++)
            print_json(&out, w->names[i], w->results[i]);
        json_end(&out);
    } else {
        printf("step %lld:", (long long)step);
        for (int i = 0; i < w->num_printed; i++)
            print_text(w->names[i], w->results[i]);
        printf("\n");
    }
    fflush(stdout);
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

/* Until the steps are done, the data ends or a signal comes; *done counts the steps. */
static tw_status run_steps(work *w, const settings *s, tw_session *session, tw_coordinator *coordinator, int64_t *done,
                           tw_error *error)
{
    tw_status status = TW_OK;
    while (*done < s->steps && !signals_stop() && !tw_coordinator_should_stop(coordinator)) {
        status = tw_session_run(session, w->feeds, w->num_feeds, w->fetches, w->num_fetches, w->results, error);
        if (status != TW_OK)
            break;
        ++*done;
        if (w->num_printed && (*done % s->print_every == 0 || *done == s->steps))
            print_step(w, s, *done);
    }
    tw_coordinator_request_stop(coordinator, status == TW_OK ? NULL : error);
    tw_status joined = tw_coordinator_join(coordinator, 10, error);
    if (status == TW_OUT_OF_RANGE && joined == TW_OK && s->job.format != FORMAT_JSON)
        printf("the data ended after %lld steps\n", (long long)*done);
    return joined; /* it knows the first failure, and that an end is none */
}

static tw_status restore(tw_session *session, const char *path, tw_error *error)
{
    tw_checkpoint *checkpoint;
    tw_status status = tw_checkpoint_open(path, &checkpoint, error);
    if (status != TW_OK)
        return status;
    status = tw_restore(session, checkpoint, NULL, NULL, error);
    tw_checkpoint_close(checkpoint);
    return status;
}

static tw_status run_session(work *w, const settings *s, tw_devices *devices, tw_error *error)
{
    tw_session_options options = {.devices = devices, .allow_soft_placement = s->soft_placement};
    tw_session *session = NULL;
    tw_coordinator *coordinator = NULL;
    int64_t done = 0;
    tw_status status = tw_session_create(w->graph, &options, &session, error);
    if (status == TW_OK)
        status = tw_session_run(session, w->feeds, w->num_feeds, &w->first, 1, NULL, error);
    if (status == TW_OK && s->restore)
        status = restore(session, s->restore, error);
    if (status == TW_OK)
        status = tw_coordinator_create(&coordinator, error);
    if (status == TW_OK)
        status = tw_start_queue_runners(session, coordinator, error);
    if (status == TW_OK)
        status = run_steps(w, s, session, coordinator, &done, error);
    if (status == TW_OK && s->save)
        status = tw_save(session, s->save, done, NULL, error);
    tw_coordinator_destroy(coordinator);
    tw_session_destroy(session);
    return status;
}

static int run(const void *given)
{
    const settings *s = given;
    work w = {.graph = read_graph(s->graph)};
    tw_error error = {0};
    int code = EXIT_USAGE;
    if (!w.graph)
        return EXIT_FAILED;
    if (find_fetches(&w, s) && find_feeds(&w, s) && find_first(&w, s)) {
        tw_devices *devices = job_open_devices("run", &s->job);
        signals_watch();
        code = !devices                                        ? EXIT_FAILED
               : run_session(&w, s, devices, &error) != TW_OK ? failed("run", &error)
               : signals_stop()                               ? 128 + signals_stop()
                                                              : EXIT_DONE;
        for (int i = 0; i < w.num_fetches; i++)
            tw_tensor_release(w.results[i]);
        tw_devices_destroy(devices);
    }
    for (int i = 0; i < w.num_feeds; i++)
        tw_tensor_release(w.feeds[i].tensor);
    tw_graph_destroy(w.graph);
    return code;
}

static const option options[] = {
    {NULL, "GRAPH", OPTION_FILE, offsetof(settings, graph),
     "a GraphDef, or with the ending .meta a MetaGraphDef, as TensorFlow writes them (binary)"},
    {"fetch", "NAMES", OPTION_TEXT, offsetof(settings, fetch),
     "outputs to compute in each step and print: loss,accuracy or split:1"},
    {"target", "NAMES", OPTION_TEXT, offsetof(settings, target), "nodes to run in each step: train"},
    {"steps", "N", OPTION_NUMBER, offsetof(settings, steps), "how many", .initial = "1", .least = 1, .most = INT64_MAX},
    {"print-every", "N", OPTION_NUMBER, offsetof(settings, print_every), "steps between lines", .initial = "1",
     .least = 1, .most = INT64_MAX},
    {"feed", "NAME=NUMBER,...", OPTION_TEXT, offsetof(settings, feed),
     "what placeholders hold, the same number in every place: keep_prob=1; or a text: save/Const=model.ckpt-1000"},
    {"init", "NAMES", OPTION_TEXT, offsetof(settings, initialize),
     "nodes to run once before; without it all variables get their initial values"},
    {"restore", "PATH", OPTION_FILE, offsetof(settings, restore),
     "a checkpoint, or a directory for its latest, that variables get their values from afterwards"},
    {"save", "DIR", OPTION_DIRECTORY, offsetof(settings, save), "save a checkpoint of all variables there at the end"},
    VIRTUAL_GPUS_OPTION(settings),
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    {"soft-placement", "on|off", OPTION_CHOICE, offsetof(settings, soft_placement),
     "replace a device that does not exist, or cannot do an operation, by the best that does", .initial = "on",
     .choices = "off|on"},
    FORMAT_OPTION(settings, job.format),
    {0},
};

const command run_command = {
    .name = "run",
    .summary = "run the steps of a graph that TensorFlow wrote",
    .description =
        "Reads a graph, gives its variables their initial values, and runs what is asked for as often as is asked for, "
        "on the devices that the graph names or the nearest there are. Variables may be references, as in TensorFlow "
        "1. The queue runners of a MetaGraphDef are started before the steps and stopped after them; when the data "
        "ends before the steps do, that is a good end. A graph may have nodes of ops that Tower does not know, as long as "
        "nothing that is run needs them. Those of a Saver save and restore.\n\n"
        "Numbers are printed with as many digits as tell them from their neighbours. In JSON, which has neither, NaN and "
        "the infinities are the texts NaN, Infinity and -Infinity; bytes that are no UTF-8 are U+FFFD there and \\xNN in "
        "lines. What is fed must be a number of the placeholder's type: 1.5 is none of an int32.\n\n"
        "Ctrl-C finishes the step and leaves, after saving if --save is given.",
    .examples = "tower run model.meta --fetch loss --target train --steps 100 --print-every 10\n"
                "tower run frozen.pb --fetch probabilities --feed x=0.5\n"
                "tower run model.meta --init save/restore_all --feed save/Const=model.ckpt-1000 --fetch accuracy\n"
                "tower run model.ckpt-1000.meta --restore model.ckpt-1000 --fetch accuracy --virtual-gpus 2",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
