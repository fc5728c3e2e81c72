/* run.c - `tower run`: the steps of a graph that another program wrote. */
#include "command.h"
#include "cluster.h"
#include "feed.h"
#include "job.h"
#include "json.h"
#include "keys.h"
#include "moves.h"
#include "outline.h"
#include "progress.h"
#include "signals.h"
#include "tables.h"
#include "value.h"
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tower/tower.h>

extern const command run_command; /* below */

enum { MOST_NAMES = 4096, SHOWN = 8, LONGEST_NAME = 512, MOST_LINES = 20 };

typedef struct settings {
    job job; /* the devices, --format, --verbose */
    cluster cluster;
    const char *graph, *tags, *signature, *target, *initialize, *restore, *save, *summaries;
    texts feed, fetch;
    int64_t steps, train_for, print_every, save_every, summaries_every, keep;
    int soft_placement;
} settings;

/* Something that is printed, or written to a file at the end. */
typedef struct wanted {
    char name[LONGEST_NAME]; /* as it was typed */
    const char *path;        /* NULL: it is printed */
} wanted;

/* What the command line means in the graph. A run fetches what is printed, then runs what only runs; in steps of which
 * a summary is written those are fetched as well. */
typedef struct work {
    const settings *settings;
    tw_graph *graph;
    tw_graph_about *about;
    names names;
    wanted wanted[MOST_NAMES];
    int num_printed, num_fetches, num_summaries;
    bool is_printed; /* something of a step; else it is shown how many there were */
    int stopped_by;  /* a signal; 0: none */
    tw_output fetches[3 * MOST_NAMES];
    tw_tensor *results[3 * MOST_NAMES];
    tw_feed feeds[MOST_NAMES];
    int num_feeds;
    tw_output first[MOST_NAMES];     /* what is run once before the steps, one after the other */
    int num_first;
    const tw_variable *step_counter; /* NULL: the graph has none */
    keys keys;                       /* of a SavedModel's variables and tables */
    tables tables;                   /* that change; none where nothing is saved or restored */
    tw_devices *devices;
    tw_session *session;
    tw_event_writer *events; /* NULL: nobody asked for summaries, or another task writes them */
} work;

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static const tw_signature *find_signature(const tw_graph_about *about, const char *name)
{
    for (int i = 0; i < about->num_signatures; i++)
        if (strcmp(about->signatures[i].name, name) == 0)
            return &about->signatures[i];
    return NULL;
}

/* The signature that is asked for; without one its names count where there is but one, or the usual one. */
static bool choose_signature(work *w)
{
    const settings *s = w->settings;
    nearest near = {.word = s->signature};
    w->names = (names){"run", w->graph,
                       find_signature(w->about, s->signature ? s->signature : "serving_default")};
    if (!s->signature && !w->names.signature && w->about->num_signatures == 1)
        w->names.signature = &w->about->signatures[0];
    if (!s->signature || w->names.signature)
        return true;
    for (int i = 0; i < w->about->num_signatures; i++)
        nearest_consider(&near, w->about->signatures[i].name);
    return complain("run", "--signature: the graph has no '%s'%s%s%s", s->signature,
                    near.best ? "; did you mean '" : "", near.best ? near.best : "",
                    near.best ? "'?" : "; 'tower show' lists what it has");
}

/* Of a variable by its own name, which is its handle's, what is in it. */
static tw_output value_of(const work *w, tw_output output)
{
    for (int i = 0; i < tw_graph_num_variables(w->graph) && tw_output_dtype(output) == TW_RESOURCE; i++) {
        tw_variable *variable = tw_graph_variable(w->graph, i);
        if (variable->handle.node == output.node)
            return variable->value.node ? variable->value : tw_variable_read(w->graph, variable);
    }
    return output;
}

static bool add_wanted(work *w, const char *name, tw_output output)
{
    wanted *wanted = &w->wanted[w->num_printed];
    char *path;
    if (w->num_printed == MOST_NAMES)
        return complain("run", "--fetch: at most %d names", MOST_NAMES);
    snprintf(wanted->name, sizeof wanted->name, "%s", name);
    path = strchr(wanted->name, '=');
    if (path)
        *path++ = 0;
    wanted->path = path;
    w->is_printed = w->is_printed || !path;
    if (!output.node && !names_find(&w->names, wanted->name, &output))
        return false;
    if (output.index < 0 && !tw_node_is_unknown(output.node))
        return complain("run", "--fetch: '%s' has no outputs; --target runs it", wanted->name);
    w->fetches[w->num_printed++] = value_of(w, output);
    return true;
}

/* Whether all that a signature gives is fetched: it is named, or something is fed and nothing else is asked for. */
static bool wants_signature(const work *w)
{
    const settings *s = w->settings;
    bool alone = s->feed.count && !s->target && s->train_for == NOT_GIVEN;
    return s->fetch.count == 0 && w->names.signature && (s->signature || alone);
}

/* The names after --fetch; without them, those of the signature. */
static bool find_fetches(work *w)
{
    const settings *s = w->settings;
    char name[LONGEST_NAME];
    for (int i = 0; i < s->fetch.count; i++)
        for (const char *list = s->fetch.items[i]; next_name(&list, name, sizeof name);)
            if (!add_wanted(w, name, (tw_output){0}))
                return false;
    for (int i = 0; wants_signature(w) && i < w->names.signature->num_outputs; i++) {
        const tw_signature_value *value = &w->names.signature->outputs[i];
        if (!add_wanted(w, value->name, value->output))
            return false;
    }
    w->num_fetches = w->num_printed;
    return true;
}

static bool add_target(work *w, tw_output output)
{
    if (w->num_fetches == w->num_printed + MOST_NAMES)
        return complain("run", "--target: at most %d names", MOST_NAMES);
    w->fetches[w->num_fetches++] = (tw_output){output.node, -1};
    return true;
}

/* The names after --target; what trains, where that is asked for and has no name. */
static bool find_targets(work *w)
{
    const settings *s = w->settings;
    char name[LONGEST_NAME];
    tw_output output, train[MOST_NAMES];
    for (const char *list = s->target; next_name(&list, name, sizeof name);)
        if (!names_find(&w->names, name, &output) || !add_target(w, output))
            return false;
    if (s->target || s->train_for == NOT_GIVEN)
        return true;
    int count = tw_get_collection(w->graph, "train_op", NULL, train, MOST_NAMES);
    for (int i = 0; i < count && i < MOST_NAMES; i++)
        if (!add_target(w, train[i]))
            return false;
    return count > 0 || complain("run", "--train-for: the graph has no collection 'train_op' that says what trains; "
                                        "name it with --target");
}

/* The summaries that the program collected, if they are to be written and can be. */
static void find_summaries(work *w)
{
    tw_output found[MOST_NAMES];
    int count = w->settings->summaries ? tw_get_collection(w->graph, "summary_op", NULL, found, MOST_NAMES) : 0;
    if (count == 0 && w->settings->summaries)
        count = tw_get_collection(w->graph, "summaries", NULL, found, MOST_NAMES);
    for (int i = 0; i < count && i < MOST_NAMES; i++)
        if (found[i].index >= 0)
            w->fetches[w->num_fetches + w->num_summaries++] = found[i];
        else
            complain("run", "--summaries: '%s' is left out, its op is not known", tw_node_name(found[i].node));
    if (w->settings->summaries && w->num_summaries == 0)
        complain("run", "--summaries: the graph has none; its picture is written alone");
}

static bool is_needed(const bool *needed, tw_output output)
{
    return output.node && needed[tw_node_number(output.node)];
}

/* Marks what a run of the fetches may need, and what saving does. */
static void mark_needed(const work *w, bool *needed)
{
    for (int i = 0; i < w->num_fetches + w->num_summaries; i++)
        needed[tw_node_number(w->fetches[i].node)] = true;
    for (int i = tw_graph_num_nodes(w->graph) - 1; i >= 0; i--) {
        const tw_node *node = tw_graph_node(w->graph, i);
        for (int k = 0; needed[i] && k < tw_node_num_inputs(node); k++)
            needed[tw_node_number(tw_node_input(node, k).node)] = true;
        for (int k = 0; needed[i] && k < tw_node_num_control_inputs(node); k++)
            needed[tw_node_number(tw_node_control_input(node, k))] = true;
    }
}

/* Marks the nodes that cannot run: those of ops that are not known, and those that come after one. */
static void mark_unknown(const tw_graph *graph, bool *unknown)
{
    for (int i = 0; i < tw_graph_num_nodes(graph); i++) {
        const tw_node *node = tw_graph_node(graph, i);
        unknown[i] = tw_node_is_unknown(node);
        for (int k = 0; k < tw_node_num_inputs(node); k++)
            unknown[i] |= unknown[tw_node_number(tw_node_input(node, k).node)];
        for (int k = 0; k < tw_node_num_control_inputs(node); k++)
            unknown[i] |= unknown[tw_node_number(tw_node_control_input(node, k))];
    }
}

/* One node that runs the variables' own initializers and what else the file says has to be run. An initializer that
 * cannot run is left out if --restore has the value, or nothing that runs needs it; otherwise the run fails by its
 * name. */
static tw_output all_initializers(work *w)
{
    int variables = tw_graph_num_variables(w->graph), count = 0;
    size_t num_nodes = (size_t)tw_graph_num_nodes(w->graph) + 1;
    tw_output *nodes = calloc((size_t)(variables + w->about->num_initializers) + 1, sizeof *nodes);
    bool *needed = calloc(num_nodes, sizeof *needed), *unknown = calloc(num_nodes, sizeof *unknown);
    tw_checkpoint *checkpoint = NULL; /* one that cannot be opened is complained about when it is read */
    tw_output first = {0};
    if (w->settings->restore)
        tw_checkpoint_open(w->settings->restore, &checkpoint, NULL);
    if (nodes && needed && unknown) {
        mark_needed(w, needed);
        mark_unknown(w->graph, unknown);
        for (int i = 0; i < variables; i++) {
            const tw_variable *variable = tw_graph_variable(w->graph, i);
            bool restored = checkpoint && tw_checkpoint_find(checkpoint, variable->name) >= 0;
            if (variable->initializer.node && (!unknown[tw_node_number(variable->initializer.node)] ||
                                               (!restored && is_needed(needed, variable->handle))))
                nodes[count++] = variable->initializer;
        }
        for (int i = 0; i < w->about->num_initializers; i++)
            nodes[count++] = w->about->initializers[i];
        first = tw_group(tw_name(w->graph, "tower_run_init"), nodes, count);
    }
    tw_checkpoint_close(checkpoint);
    free(nodes);
    free(needed);
    free(unknown);
    return first;
}

/* The nodes named, or all initial values. */
static bool find_first(work *w)
{
    char name[LONGEST_NAME];
    for (const char *list = w->settings->initialize; next_name(&list, name, sizeof name); w->num_first++)
        if (w->num_first == MOST_NAMES)
            return complain("run", "--init: at most %d names", MOST_NAMES);
        else if (!names_find(&w->names, name, &w->first[w->num_first]))
            return false;
        else
            w->first[w->num_first].index = -1; /* to be run, not fetched */
    if (w->num_first == 0 && !w->about->variables)
        w->first[w->num_first++] = all_initializers(w);
    return true;
}

/* What the model's own files are, where it asks for them and --feed says nothing else. */
static bool feed_assets(work *w)
{
    for (int i = 0; i < w->about->num_assets; i++) {
        const tw_signature_value *asset = &w->about->assets[i];
        if (w->num_feeds == MOST_NAMES || asset->output.index < 0 || feeds_have(w->feeds, w->num_feeds, asset->output))
            continue;
        tw_tensor *path = tw_tensor_string(asset->name, strlen(asset->name));
        if (!path)
            return complain("run", "out of memory");
        w->feeds[w->num_feeds++] = (tw_feed){asset->output, path};
    }
    return true;
}

/* What the graph offers, for who asked for nothing. */
static bool offer(const work *w)
{
    outline outline;
    complain("run", "nothing to run: name nodes with --fetch or --target%s",
             w->about->num_signatures ? ", or a --signature" : "");
    if (!outline_make(w->graph, &outline))
        return complain("run", "out of memory");
    outline_print(stderr, &outline, w->about, MOST_LINES);
    outline_free(&outline);
    return false;
}

static bool understand(work *w)
{
    if (!choose_signature(w) || !find_fetches(w) || !find_targets(w))
        return false;
    if (w->num_fetches == 0)
        return offer(w);
    find_summaries(w);
    w->step_counter = tw_graph_find_variable(w->graph, "global_step");
    if ((w->settings->save || w->settings->restore || w->about->variables) &&
        (!keys_find("run", w->graph, &w->keys) || !tables_find("run", w->graph, &w->keys, &w->tables)))
        return false;
    return feeds_parse(&w->names, &w->settings->feed, w->feeds, &w->num_feeds, MOST_NAMES) && feed_assets(w) &&
           find_first(w);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

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

/* Arrays in arrays, as the shape says; *next is the element that comes next. */
static void print_nested(json *out, const char *name, const tw_tensor *t, int depth, int64_t *next)
{
    tw_shape shape = tw_tensor_shape(t);
    if (depth == shape.rank) {
        value_json(out, name, t, (*next)++);
        return;
    }
    json_begin(out, name, '[');
    for (int64_t i = 0; i < shape.dims[depth]; i++)
        print_nested(out, NULL, t, depth + 1, next);
    json_end(out);
}

static void print_step(const work *w, int64_t step)
{
    json out = {.file = stdout};
    if (w->settings->job.format == FORMAT_JSON) {
        json_begin(&out, NULL, '{');
        json_integer(&out, "step", step);
        for (int i = 0; i < w->num_printed; i++)
            if (!w->wanted[i].path)
                print_nested(&out, w->wanted[i].name, w->results[i], 0, &(int64_t){0});
        json_end(&out);
    } else {
        printf("step %lld:", (long long)step);
        for (int i = 0; i < w->num_printed; i++)
            if (!w->wanted[i].path)
                print_text(w->wanted[i].name, w->results[i]);
        printf("\n");
    }
    fflush(stdout);
}

/* A text goes into its file as it is, numbers as an array of NumPy's. */
static tw_status write_bytes(const char *path, const tw_tensor *t, tw_error *error)
{
    const tw_string *text = tw_tensor_data(t);
    if (whole_file_write(path, text->data ? text->data : "", text->size))
        return TW_OK;
    snprintf(error->message, sizeof error->message, "cannot write '%.1000s': %s", path, strerror(errno));
    return error->status = TW_INTERNAL;
}

static bool tells(const work *w)
{
    return w->settings->job.format != FORMAT_JSON;
}

/* What outlives the run is said after the steps, whose lines are for programs too. */
static void tell_file(const work *w, const wanted *wanted, const tw_tensor *t)
{
    char shape[128];
    if (tells(w))
        printf("%s: %s, %s %s\n", wanted->path, wanted->name, tw_dtype_name(tw_tensor_dtype(t)),
               tw_shape_text(tw_tensor_shape(t), shape, sizeof shape));
}

static tw_status write_files(const work *w, tw_error *error)
{
    tw_status status = TW_OK;
    for (int i = 0; i < w->num_printed && status == TW_OK && tw_devices_task(w->devices) == 0; i++) {
        const tw_tensor *t = w->results[i];
        if (!w->wanted[i].path || !t)
            continue;
        bool is_text = tw_tensor_dtype(t) == TW_STRING && tw_tensor_elements(t) == 1;
        status = is_text ? write_bytes(w->wanted[i].path, t, error) : tw_tensor_write_npy(t, w->wanted[i].path, error);
        if (status == TW_OK)
            tell_file(w, &w->wanted[i], t);
    }
    return status;
}

/* ---- what outlives the run --------------------------------------------------------------------------------------- */

/* The graph's own count of steps, or how many were run. */
static tw_status find_step(const work *w, int64_t done, int64_t *step, tw_error *error)
{
    tw_tensor *value = NULL;
    *step = done;
    if (!w->step_counter)
        return TW_OK;
    tw_status status = tw_session_get_variable(w->session, w->step_counter, &value, error);
    if (status == TW_OK && tw_tensor_elements(value) == 1)
        *step = (int64_t)tw_tensor_value(value, 0);
    tw_tensor_release(value);
    return status;
}

/* Variables of this run alone are in no checkpoint. */
static const char *name_in_checkpoint(const work *w, const char *name)
{
    tw_output local[MOST_NAMES];
    const tw_variable *variable = tw_graph_find_variable(w->graph, name);
    int count = tw_get_collection(w->graph, "local_variables", NULL, local, MOST_NAMES);
    for (int i = 0; i < count && i < MOST_NAMES; i++)
        if (variable && local[i].node == variable->value.node)
            return "";
    return NULL;
}

/* What a SavedModel's checkpoint is made of: its variables by the keys that its own has them by, and what else that
 * one holds, such as the objects that TensorFlow restores it by. */
typedef struct cargo {
    const work *work;
    tw_checkpoint *own;     /* NULL: the graph is no SavedModel */
    const char **names;     /* by the number of a variable's handle; NULL: its own in the graph; "": it is left out */
    tw_named_tensor *items; /* all that is saved beside variables, the tables' first */
    int count;
} cargo;

static const char *name_to_save(void *user, const char *name)
{
    const cargo *c = user;
    const tw_variable *variable = tw_graph_find_variable(c->work->graph, name);
    const char *local = name_in_checkpoint(c->work, name);
    if (local || !variable || !c->own)
        return local;
    return c->names[tw_node_number(variable->handle.node)];
}

static bool is_held(const cargo *c, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->items[i].name, name) == 0)
            return true;
    return false;
}

static bool has_value(const work *w, const tw_variable *variable)
{
    tw_tensor *value = NULL;
    bool has = tw_session_get_variable(w->session, variable, &value, NULL) == TW_OK;
    tw_tensor_release(value);
    return has;
}

/* By which keys the variables go. An object of Keras's has two in the graph, one of its name and a copy of it called
 * "Variable", and either may be what is trained, so a key is first that of one that the run needs; among others alike
 * the graph's own restoring knows more than a name. The other, and what nothing gives a value, is left out. */
static tw_status name_variables(cargo *c, bool *taken, tw_error *error)
{
    const tw_graph *graph = c->work->graph;
    bool *needed = calloc((size_t)tw_graph_num_nodes(graph) + 1, sizeof *needed);
    if (!needed) {
        snprintf(error->message, sizeof error->message, "out of memory");
        return error->status = TW_RESOURCE_EXHAUSTED;
    }
    mark_needed(c->work, needed);
    for (int rank = 0; rank < 4; rank++)
        for (int i = 0; i < tw_graph_num_variables(graph); i++) {
            const tw_variable *variable = tw_graph_variable(graph, i);
            bool is_spare = !is_needed(needed, variable->handle);
            if (rank != 2 * is_spare + !keys_of(&c->work->keys, variable->handle.node, 0))
                continue;
            const char *key = keys_of_variable(&c->work->keys, c->own, variable);
            const char **name = &c->names[tw_node_number(variable->handle.node)];
            int at = key ? tw_checkpoint_find(c->own, key) : -1;
            if (at >= 0 && !taken[at])
                *name = key;
            else if (is_spare && (at >= 0 || !has_value(c->work, variable)))
                *name = "";
            if (at >= 0)
                taken[at] = true;
        }
    free(needed);
    return TW_OK;
}

/* Each of the own checkpoint's tensors goes by: as a variable's value, a table's, or as it is. */
static tw_status fill_cargo(cargo *c, bool *taken, tw_error *error)
{
    int tables = c->count;
    tw_status status = name_variables(c, taken, error);
    for (int i = 0; i < tw_checkpoint_count(c->own) && status == TW_OK; i++) {
        const char *name = tw_checkpoint_name(c->own, i);
        tw_tensor *value = NULL;
        if (taken[i] || (tables && is_held(c, name)))
            continue;
        status = tw_checkpoint_read(c->own, name, &value, error);
        if (status == TW_OK)
            c->items[c->count++] = (tw_named_tensor){name, value, NULL};
    }
    return status;
}

static tw_status load_cargo(cargo *c, tw_error *error)
{
    const tables *tables = &c->work->tables;
    const char *path = c->work->about->variables;
    tw_status status = path ? tw_checkpoint_open(path, &c->own, error) : TW_OK;
    if (status != TW_OK)
        return status;
    int others = c->own ? tw_checkpoint_count(c->own) : 0;
    bool *taken = calloc((size_t)others + 1, sizeof *taken);
    c->names = calloc((size_t)tw_graph_num_nodes(c->work->graph) + 1, sizeof *c->names);
    c->items = calloc((size_t)(tables->num_held + others) + 1, sizeof *c->items);
    if (taken && c->names && c->items) {
        for (int i = 0; i < tables->num_held; i++)
            c->items[c->count++] = tables->held[i];
        status = c->own ? fill_cargo(c, taken, error) : TW_OK;
    } else {
        snprintf(error->message, sizeof error->message, "out of memory");
        status = error->status = TW_RESOURCE_EXHAUSTED;
    }
    free(taken);
    return status;
}

static void free_cargo(cargo *c)
{
    for (int i = c->work->tables.num_held; i < c->count; i++)
        tw_tensor_release((tw_tensor *)c->items[i].tensor);
    free(c->items);
    free(c->names);
    tw_checkpoint_close(c->own);
}

static tw_status save(work *w, int64_t done, int64_t *step, tw_error *error)
{
    tw_save_options options = TW_SIZED(tw_save_options);
    cargo cargo = {.work = w};
    tw_status status = find_step(w, done, step, error);
    if (status == TW_OK)
        status = tables_fetch(&w->tables, w->session, error);
    if (status == TW_OK)
        status = load_cargo(&cargo, error);
    options.keep = (int)w->settings->keep;
    options.meta_graph = true;
    options.extras = cargo.items;
    options.num_extras = cargo.count;
    options.rename = name_to_save;
    options.user = &cargo;
    if (status == TW_OK)
        status = tw_save(w->session, w->settings->save, *step, &options, error);
    free_cargo(&cargo);
    return status;
}

/* Summaries are messages whose concatenation is the message with all of them. */
static tw_status write_summaries(const work *w, int64_t done, tw_error *error)
{
    int64_t step;
    tw_status status = find_step(w, done, &step, error);
    for (int i = w->num_fetches; i < w->num_fetches + w->num_summaries && status == TW_OK; i++) {
        const tw_string *summary = tw_tensor_data(w->results[i]);
        if (w->events && tw_tensor_dtype(w->results[i]) == TW_STRING && tw_tensor_elements(w->results[i]) == 1)
            status = tw_event_writer_add_summary(w->events, step, summary->data, summary->size, error);
    }
    return status;
}

static tw_status open_events(work *w, tw_error *error)
{
    void *bytes = NULL;
    size_t size = 0;
    int64_t step = 0;
    tw_status status = find_step(w, 0, &step, error);
    if (tw_devices_task(w->devices) != 0)
        return status;
    if (status == TW_OK)
        status = tw_event_writer_create(w->settings->summaries, &w->events, error);
    if (status == TW_OK && step > 0)
        status = tw_event_writer_add_restart(w->events, step, error);
    if (status == TW_OK && tw_graph_export(w->graph, &bytes, &size, error) == TW_OK)
        status = tw_event_writer_add_graph(w->events, bytes, size, error);
    tw_free(bytes);
    return status;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* What variables get their values from. */
typedef struct source {
    work *work;
    tw_checkpoint *checkpoint;
    tw_checkpoint *own; /* what lies beside a SavedModel; NULL: the graph is none */
} source;

/* Another checkpoint of the objects that a SavedModel has, has their values by the same keys; so has one for the graph
 * that was written beside it. */
static const char *name_to_restore(void *user, const char *name)
{
    const source *from = user;
    const char *local = name_in_checkpoint(from->work, name);
    const tw_variable *variable = tw_graph_find_variable(from->work->graph, name);
    if (local || !variable || tw_checkpoint_find(from->checkpoint, name) >= 0)
        return local;
    const char *key = keys_of_variable(&from->work->keys, from->own ? from->own : from->checkpoint, variable);
    if (!key)
        return from->own ? "" : NULL; /* no value of the model's, but the name of a file */
    return tw_checkpoint_find(from->checkpoint, key) >= 0 ? key : NULL;
}

static tw_status open_source(source *from, const char *path, tw_error *error)
{
    const char *own = from->work->about->variables;
    tw_status status = tw_checkpoint_open(path, &from->checkpoint, error);
    return status == TW_OK && own ? tw_checkpoint_open(own, &from->own, error) : status;
}

static void close_source(source *from)
{
    tw_checkpoint_close(from->own);
    tw_checkpoint_close(from->checkpoint);
}

static tw_status restore(work *w, const char *path, tw_error *error)
{
    source from = {.work = w};
    tw_restore_options options = {.rename = name_to_restore, .user = &from};
    tw_status status = open_source(&from, path, error);
    if (status == TW_OK)
        status = tw_restore(w->session, from.checkpoint, &options, NULL, error);
    if (status == TW_OK)
        status = tables_restore(&w->tables, w->session, from.checkpoint, error);
    close_source(&from);
    return status;
}

static const char *name_if_empty(void *user, const char *name)
{
    const source *from = user;
    const tw_variable *variable = tw_graph_find_variable(from->work->graph, name);
    bool has = !variable || has_value(from->work, variable);
    const char *key = has ? NULL : key_by_name(from->checkpoint, variable);
    return key ? key : "";
}

/* The variables that a SavedModel's own restoring passes over, such as a learning rate of Keras's, though the values
 * are there. */
static tw_status restore_empty(work *w, const char *path, tw_error *error)
{
    source from = {.work = w};
    tw_restore_options options = {.rename = name_if_empty, .user = &from};
    tw_status status = tw_checkpoint_open(path, &from.checkpoint, error);
    if (status == TW_OK)
        status = tw_restore(w->session, from.checkpoint, &options, NULL, error);
    tw_checkpoint_close(from.checkpoint);
    return status;
}

/* A SavedModel's values lie beside it; its own restoring knows under which names. Then what else has to be run. */
static tw_status load_values(work *w, tw_error *error)
{
    const tw_graph_about *about = w->about;
    tw_tensor *path = tw_tensor_string(about->variables, strlen(about->variables));
    tw_feed feed = {about->saver_filename, path};
    tw_output node = {about->saver_restore.node, -1};
    bool has_own = path && node.node && !tw_node_is_unknown(node.node) && feed.output.index >= 0;
    tw_status status = has_own ? tw_session_run(w->session, &feed, 1, &node, 1, NULL, error)
                               : restore(w, about->variables, error);
    if (status == TW_OK && has_own)
        status = restore_empty(w, about->variables, error);
    tw_tensor_release(path);
    for (int i = 0; i < about->num_initializers && status == TW_OK; i++)
        status = tw_session_run(w->session, w->feeds, w->num_feeds, &about->initializers[i], 1, NULL, error);
    return status;
}

/* What comes before the first step. */
static tw_status begin(work *w, tw_error *error)
{
    const settings *s = w->settings;
    tw_status status = w->num_first == 0 && w->about->variables ? load_values(w, error) : TW_OK;
    for (int i = 0; i < w->num_first && status == TW_OK; i++)
        status = tw_session_run(w->session, w->feeds, w->num_feeds, &w->first[i], 1, NULL, error);
    if (status == TW_OK && s->restore)
        status = restore(w, s->restore, error);
    if (status == TW_OK && s->summaries)
        status = open_events(w, error);
    return status;
}

/* One step, and what is due after it. */
static tw_status step_once(work *w, int64_t first, int64_t done, int64_t steps, tw_error *error)
{
    const settings *s = w->settings;
    bool last = done == steps, summarize = w->num_summaries && (last || done % s->summaries_every == 0);
    int count = w->num_fetches + (summarize ? w->num_summaries : 0);
    tw_status status = tw_session_run(w->session, w->feeds, w->num_feeds, w->fetches, count, w->results, error);
    if (status == TW_OK && done == 1)
        status = moves_tell("run", w->session, s->job.verbose, error);
    if (status == TW_OK && w->is_printed && (last || done % s->print_every == 0))
        print_step(w, first + done);
    if (status == TW_OK && summarize)
        status = write_summaries(w, done, error);
    if (status == TW_OK && s->save && s->save_every > 0 && !last && done % s->save_every == 0)
        status = save(w, done, &(int64_t){0}, error);
    return status;
}

/* Until the steps are done, the data ends or a signal comes; *done counts the steps. */
static tw_status run_steps(work *w, tw_coordinator *coordinator, int64_t *done, tw_error *error)
{
    const settings *s = w->settings;
    int64_t steps = s->train_for != NOT_GIVEN ? s->train_for : s->steps, first = 0;
    tw_status status = s->train_for != NOT_GIVEN ? find_step(w, 0, &first, error) : TW_OK;
    progress progress = progress_to(stderr);
    progress.unit = "steps";
    progress.quiet = 2;
    while (status == TW_OK && *done < steps && !tw_coordinator_should_stop(coordinator)) {
        w->stopped_by = tw_devices_asked(w->devices, signals_stop()); /* of several tasks task 0 says it of all */
        status = tw_devices_share(w->devices, &w->stopped_by, sizeof w->stopped_by, error);
        if (w->stopped_by)
            break;
        if (status == TW_OK)
            status = step_once(w, first, *done + 1, steps, error);
        *done += status == TW_OK;
        if (!w->is_printed)
            progress_update(&progress, "running", *done, steps);
    }
    progress_end(&progress);
    tw_coordinator_request_stop(coordinator, status == TW_OK ? NULL : error);
    tw_status joined = tw_coordinator_join(coordinator, 10, error);
    if (status == TW_OUT_OF_RANGE && joined == TW_OK && tells(w))
        printf("the data ended after %lld steps\n", (long long)*done);
    return joined; /* it knows the first failure, and that an end is none */
}

static tw_status run_session(work *w, tw_error *error)
{
    const settings *s = w->settings;
    tw_session_options options = {.devices = w->devices, .allow_soft_placement = s->soft_placement};
    tw_coordinator *coordinator = NULL;
    int64_t done = 0, saved;
    tw_status status = tw_session_create(w->graph, &options, &w->session, error);
    if (status == TW_OK)
        status = begin(w, error);
    if (status == TW_OK)
        status = tw_coordinator_create(&coordinator, error);
    if (status == TW_OK)
        status = tw_start_queue_runners(w->session, coordinator, error);
    if (status == TW_OK)
        status = run_steps(w, coordinator, &done, error);
    if (status == TW_OK)
        status = write_files(w, error);
    if (status == TW_OK && s->save) {
        status = save(w, done, &saved, error);
        if (status == TW_OK && tells(w))
            printf("saved as %s/model.ckpt-%" PRId64 "\n", s->save, saved);
    }
    if (w->events) {
        tw_status closed = tw_event_writer_close(w->events, status == TW_OK ? error : NULL);
        status = status == TW_OK ? closed : status;
    }
    tw_coordinator_destroy(coordinator);
    tw_session_destroy(w->session);
    return status;
}

/* Those of all tasks that this one was started with. Returns the exit code. */
static int open_devices(work *w)
{
    job job = w->settings->job;
    int code;
    job.tasks = true;
    job.ps_tasks = cluster_servers(&w->settings->cluster);
    if (!(w->devices = job_open_tasks("run", &job, &code)))
        return code;
    if (!cluster_check("run", &w->settings->cluster, w->devices))
        return EXIT_USAGE;
    if ((code = job_options_agree("run", run_command.options, w->settings, w->devices)) != EXIT_DONE)
        return code;
    return job_leave_printing("run", w->devices) ? EXIT_DONE : EXIT_FAILED;
}

/* What gives iterators their data, which no run of variables' initializers does. */
static void advise_iterators(const work *w)
{
    const char *fills = "MakeIterator";
    char names[LONGEST_NAME] = "";
    size_t used = 0;
    for (int i = 0; i < tw_graph_num_nodes(w->graph) && used < sizeof names / 2; i++) {
        const tw_node *node = tw_graph_node(w->graph, i);
        const char *op = tw_node_op(node);
        if (strcmp(op, fills) == 0)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? "," : "", tw_node_name(node));
    }
    if (used)
        complain("run", "what gives iterators their data is run by '--init %s'%s", names,
                 tw_graph_num_variables(w->graph) ? ", with what initializes the variables named beside it" : "");
}

static int run_on_devices(work *w)
{
    tw_error error = {0};
    tw_status status = run_session(w, &error);
    int stop = w->stopped_by ? w->stopped_by : signals_stop();
    if (status == TW_OK)
        return stop ? 128 + stop : EXIT_DONE;
    int code = failed("run", &error);
    if (status == TW_FAILED_PRECONDITION && strstr(error.message, "iterator has not been initialized"))
        advise_iterators(w);
    if (status == TW_INVALID_ARGUMENT)
        cluster_advise("run", &w->settings->cluster, w->graph, w->devices);
    return code;
}

static int run(const void *given)
{
    work *w = calloc(1, sizeof *w);
    tw_error error = {0};
    int code;
    if (!w) {
        complain("run", "out of memory");
        return EXIT_FAILED;
    }
    int tasks;
    const char *say = tw_task_started(&tasks) ? NULL /* the first task does */
                                              : "tower run: the step in hand is finished first; a second signal ends at "
                                                "once\n";
    if (tasks > 1)
        signals_watch(say); /* who ends before all are there leaves the others to wait */
    const settings *s = w->settings = given;
    w->graph = tw_graph_create();
    if (tw_graph_load(w->graph, s->graph, &(tw_load_options){.tags = s->tags}, &w->about, &error) != TW_OK) {
        code = failed("run", &error);
    } else {
        code = open_devices(w);
        signals_watch(say);
        if (code == EXIT_DONE)
            code = understand(w) ? run_on_devices(w) : EXIT_USAGE;
        for (int i = 0; i < w->num_fetches + w->num_summaries; i++)
            tw_tensor_release(w->results[i]);
        job_close_tasks(w->devices);
    }
    feeds_release(w->feeds, w->num_feeds);
    tables_free(&w->tables);
    keys_free(&w->keys);
    tw_graph_about_destroy(w->about);
    tw_graph_destroy(w->graph);
    free(w);
    return code;
}

static const option options[] = {
    {NULL, "GRAPH", OPTION_FILE, offsetof(settings, graph),
     "a GraphDef, a MetaGraphDef (.meta), a SavedModel, each in binary or in text, an event file, or the directory of "
     "a "
     "SavedModel or of checkpoints"},
    {"fetch", "NAME[=FILE],...", OPTION_TEXTS, offsetof(settings, fetch),
     "outputs to compute in each step: printed, or at the end written to a file (numbers as .npy, a text as it is): "
     "loss,split:1 or y=out.npy; may be given several times"},
    {"target", "NAMES", OPTION_TEXT, offsetof(settings, target), "nodes to run in each step: train"},
    {"feed", "NAME=VALUE,...", OPTION_TEXTS, offsetof(settings, feed),
     "what placeholders hold: a number or a text for every place (dimensions that are not known are 1 then), a list "
     "[[1,2],[3,4]], or @FILE with an array of NumPy's (.npy), a picture (.png, .jpg) of pixels from 0 to 255, what "
     "could "
     "be typed, or for texts the text itself; may be given several times"},
    {"signature", "NAME", OPTION_TEXT, offsetof(settings, signature),
     "names to feed and fetch by are this signature's, and all it gives is fetched unless --fetch says less; without "
     "it those of serving_default count, or of the only one, and all it gives is fetched where something is fed and "
     "nothing else is asked for"},
    {"steps", "N", OPTION_NUMBER, offsetof(settings, steps), "how many", .initial = "1", .least = 1, .most = INT64_MAX},
    {"print-every", "N", OPTION_NUMBER, offsetof(settings, print_every), "steps between lines", .initial = "1",
     .least = 1, .most = INT64_MAX},
    {"tags", "TAGS", OPTION_TEXT, offsetof(settings, tags),
     "of several graphs in a SavedModel the one with these (train,gpu); without it serve, or else the first"},
    {"init", "NAMES", OPTION_TEXT, offsetof(settings, initialize),
     "nodes to run once before, one after the other as they are named; without it variables get the values beside a "
     "SavedModel, or run their own initializers",
     .section = "variables"},
    {"restore", "PATH", OPTION_FILE, offsetof(settings, restore),
     "a checkpoint, or a directory for its latest, that variables get their values from afterwards"},
    {"train-for", "N", OPTION_NUMBER, offsetof(settings, train_for),
     "run what trains N times: --target, or what the collection train_op names; steps are counted by global_step",
     .least = 1, .most = INT64_MAX},
    {"save", "DIR", OPTION_DIRECTORY, offsetof(settings, save),
     "save a checkpoint of all variables but local ones, and of what tables hold, there at the end; of a SavedModel by "
     "its keys, so that TensorFlow restores its objects from it"},
    {"save-every", "N", OPTION_NUMBER, offsetof(settings, save_every), "steps between checkpoints; 0: only at the end",
     .initial = "0", .most = INT64_MAX},
    {"keep", "N", OPTION_NUMBER, offsetof(settings, keep), "how many checkpoints stay; 0: all", .initial = "5",
     .most = INT32_MAX},
    {"summaries", "DIR", OPTION_DIRECTORY, offsetof(settings, summaries),
     "write the graph's own summaries there (of the collection summary_op, or summaries), for TensorBoard"},
    {"summaries-every", "N", OPTION_NUMBER, offsetof(settings, summaries_every), "steps between them", .initial = "100",
     .least = 1, .most = INT64_MAX},
    VIRTUAL_GPUS_OPTION(settings),
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    {"soft-placement", "on|off", OPTION_CHOICE, offsetof(settings, soft_placement),
     "replace a device that does not exist, or cannot do an operation, by the best that does", .initial = "on",
     .choices = "off|on"},
    VERBOSE_OPTION(settings),
    FORMAT_OPTION(settings, job.format),
    CLUSTER_OPTIONS(settings),
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
        "nothing that is run needs them. 'tower show GRAPH' lists what can be fed, fetched and run.\n\n"
        "Initial values come from the variables' own initializers, never from a Saver's nodes; these save and restore "
        "where --init or --target names them. What has all dimensions of a placeholder but the first is a batch of one. "
        "What is fed must be a number of the placeholder's type: 1.5 is none of an int32.\n\n"
        "Numbers are printed with as many digits as tell them from their neighbours. In JSON, which has neither, NaN and "
        "the infinities are the texts NaN, Infinity and -Infinity; bytes that are no UTF-8 are U+FFFD there and \\xNN in "
        "lines.\n\n"
        "As one of several tasks ('tower launch', mpirun) it runs the graph on the devices of all of them, where the graph "
        "says /job:worker/task:1 and the like: what crosses is sent. Task 0 prints and writes.\n\n"
        "Ctrl-C finishes the step and leaves, after saving if --save is given.",
    .examples = "tower run saved_model/ --signature serving_default --feed image=@cat.jpg\n"
                "tower run frozen.pb --feed x=@batch.npy --feed keep_prob=1 --fetch probabilities=out.npy\n"
                "tower run model.meta --fetch loss --target train --steps 100 --print-every 10\n"
                "tower run model.meta --train-for 1000 --fetch loss --save run --save-every 500 --summaries run\n"
                "tower run model.meta --restore run --train-for 1000 --save run\n"
                "tower launch -n 3 -- tower run model.meta --train-for 1000 --ps-hosts a --worker-hosts b,c\n"
                "tower run model.meta --init save/restore_all --feed save/Const=model.ckpt-1000 --fetch accuracy",
    .of_tasks = TASKS_JOINED,
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
