/* why.c - `tower why`: why a node is where it is, and what became of it. */
#include "command.h"
#include "json.h"
#include "training.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tower/explain.h>

typedef struct settings {
    train_settings train; /* first: its table follows ours */
    const char *node, *graph;
} settings;

/* ---- words ------------------------------------------------------------------------------------------------- */

/* Without what all devices of one process begin with. */
static const char *local(const char *device)
{
    static const char here[] = "/job:localhost/replica:0/task:0/";
    if (!device)
        return "nowhere";
    return strncmp(device, here, strlen(here)) == 0 ? device + strlen(here) - 1 : device;
}

static const char *const rules[] = {
    [TW_PLACED_FREELY] = "free",     [TW_PLACED_AS_ASKED] = "asked",       [TW_PLACED_SOFTLY] = "soft",
    [TW_PLACED_WITH_INPUT] = "input", [TW_PLACED_WITH_CONSUMERS] = "consumers", [TW_PLACED_EARLIER] = "earlier",
    [TW_PLACED_NOWHERE] = "nowhere",
};
static const char *const rejections[] = {
    [TW_REJECTED_BY_REQUEST] = "request", [TW_REJECTED_NO_KERNEL] = "no kernel", [TW_REJECTED_LATER] = "later",
    [TW_REJECTED_FOR_COPIES] = "copies",  [TW_REJECTED_STATE] = "state",
};
static const char *const links[] = {
    [TW_LINK_USES] = "uses", [TW_LINK_USED_BY] = "used by", [TW_LINK_NAMES] = "names", [TW_LINK_NAMED_BY] = "named by"};
static const char *const fates[] = {
    [TW_FATE_UNPLANNED] = "not needed", [TW_FATE_STEP] = "own kernel", [TW_FATE_FREE] = "no work",
    [TW_FATE_FED] = "fed",              [TW_FATE_CONSTANT] = "constant", [TW_FATE_JOINED] = "joined",
    [TW_FATE_DROPPED] = "dropped",      [TW_FATE_LATER] = "planned later",
};

/* ---- the story of one node --------------------------------------------------------------------------------- */

static void tell_rejected(const tw_rejected_device *r, const tw_explanation *e)
{
    const char *by = r->by ? tw_node_name(r->by) : "";
    printf("  %-10s %s: ", r == e->rejected ? "not on" : "", local(r->device));
    switch (r->why) {
    case TW_REJECTED_BY_REQUEST:
        printf("'%s' asked for %s\n", by, local(e->request));
        break;
    case TW_REJECTED_NO_KERNEL:
        printf("%s %s '%s'%s%s\n", r->refusal ? "its kernel refuses" : "it has no kernel for",
               r->by ? tw_node_op(r->by) : "", by, r->refusal ? ": " : "", r->refusal ? r->refusal : "");
        break;
    case TW_REJECTED_FOR_COPIES:
        printf("its values would have to be copied\n");
        break;
    case TW_REJECTED_STATE:
        printf("its state is elsewhere\n");
        break;
    default:
        printf(e->rule == TW_PLACED_SOFTLY ? "it would do, but soft placement takes another first\n"
                                           : "it would do, but comes after\n");
    }
}

static void tell_chain(const tw_explanation *e)
{
    static const char *const words[] = {[TW_LINK_USES] = "'%s' uses the resource of '%s'",
                                        [TW_LINK_USED_BY] = "'%s' makes what '%s' uses",
                                        [TW_LINK_NAMES] = "'%s' was colocated with '%s'",
                                        [TW_LINK_NAMED_BY] = "'%s' has '%s' colocated with it"};
    for (int i = 0; i < e->num_links; i++) {
        printf("  %-10s ", i ? "" : "chain");
        printf(words[e->chain[i].kind], tw_node_name(e->chain[i].node), tw_node_name(e->chain[i].with));
        putchar('\n');
    }
}

static void tell_fate(const tw_explanation *e)
{
    printf("  %-10s ", "became");
    switch (e->fate) {
    case TW_FATE_STEP:
        printf("a step of its own, kernel '%s'\n", e->kernel);
        break;
    case TW_FATE_FREE:
        printf("no work: its output is memory that is there already\n");
        break;
    case TW_FATE_FED:
        printf("what the run brings\n");
        break;
    case TW_FATE_CONSTANT:
        printf("a constant of the plan%s\n", tw_node_is_constant(e->node) ? "" : ", computed once");
        break;
    case TW_FATE_JOINED:
        printf("part of '%s' (%s)%s%s%s\n", e->became, e->became_op, e->kernel ? ", kernel '" : "",
               e->kernel ? e->kernel : "", e->kernel ? "'" : "");
        break;
    case TW_FATE_DROPPED:
        printf("nothing: after rewriting nobody needs it\n");
        break;
    case TW_FATE_LATER:
        printf("planned when the run has the values that shapes depend on\n");
        break;
    default:
        printf("nothing: no step needs it\n");
    }
}

static void tell_crossings(const tw_explanation *e)
{
    for (int i = 0; i < e->num_crossings; i++) {
        const tw_crossing *c = &e->crossings[i];
        printf("  %-10s %" PRId64 " bytes a step from %s to %s: ", i ? "" : "copies", c->bytes, local(c->from),
               local(c->to));
        printf(c->arrives ? "it reads '%s'\n" : "its value\n", c->tensor);
    }
    if (e->num_crossings == 0 && e->became)
        printf("  %-10s none\n", "copies");
}

static void tell_node(const tw_explanation *e)
{
    printf("%s (%s) is on %s\n", tw_node_name(e->node), tw_node_op(e->node), local(e->device));
    printf("  %-10s %s\n", "why", e->sentence);
    if (e->group_size > 1)
        printf("  %-10s %d nodes that must run where it runs\n", "group", e->group_size - 1);
    tell_chain(e);
    for (int i = 0; i < e->num_rejected; i++)
        tell_rejected(&e->rejected[i], e);
    tell_fate(e);
    tell_crossings(e);
}

/* ---- many nodes -------------------------------------------------------------------------------------------- */

static void print_table(tw_explanation *const *all, int count)
{
    int widest[2] = {4, 2};
    for (int i = 0; i < count; i++) {
        int name = (int)strlen(tw_node_name(all[i]->node)), op = (int)strlen(tw_node_op(all[i]->node));
        widest[0] = name > widest[0] ? name : widest[0];
        widest[1] = op > widest[1] ? op : widest[1];
    }
    printf("%-*s  %-*s  %-13s  %-9s  %-10s  %12s  %s\n", widest[0], "node", widest[1], "op", "device", "rule", "became",
           "bytes a step", "in");
    for (int i = 0; i < count; i++) {
        const tw_explanation *e = all[i];
        bool other = e->fate == TW_FATE_JOINED;
        printf("%-*s  %-*s  %-13s  %-9s  %-10s  %12" PRId64 "  %s\n", widest[0], tw_node_name(e->node), widest[1],
               tw_node_op(e->node), local(e->device), rules[e->rule], fates[e->fate], e->crossing_bytes,
               other ? e->became : e->kernel ? e->kernel : "");
    }
}

/* ---- json -------------------------------------------------------------------------------------------------- */

static void write_node(json *out, const tw_explanation *e)
{
    json_begin(out, NULL, '{');
    json_text(out, "node", tw_node_name(e->node));
    json_text(out, "op", tw_node_op(e->node));
    json_text(out, "device", e->device);
    json_text(out, "why", e->sentence);
    json_text(out, "rule", rules[e->rule]);
    json_text(out, "requested", e->requested);
    json_text(out, "decided_by", tw_node_name(e->decided_by));
    json_text(out, "request", e->request);
    json_begin(out, "obstacles", '[');
    for (int i = 0; i < e->num_obstacles; i++)
        json_text(out, NULL, tw_node_name(e->obstacles[i]));
    json_end(out);
    json_begin(out, "rejected", '[');
    for (int i = 0; i < e->num_rejected; i++) {
        json_begin(out, NULL, '{');
        json_text(out, "device", e->rejected[i].device);
        json_text(out, "why", rejections[e->rejected[i].why]);
        json_text(out, "by", e->rejected[i].by ? tw_node_name(e->rejected[i].by) : NULL);
        json_text(out, "refusal", e->rejected[i].refusal);
        json_end(out);
    }
    json_end(out);
    json_begin(out, "chain", '[');
    for (int i = 0; i < e->num_links; i++) {
        json_begin(out, NULL, '{');
        json_text(out, "node", tw_node_name(e->chain[i].node));
        json_text(out, "link", links[e->chain[i].kind]);
        json_text(out, "with", tw_node_name(e->chain[i].with));
        json_end(out);
    }
    json_end(out);
    json_text(out, "fate", fates[e->fate]);
    json_text(out, "became", e->became);
    json_text(out, "became_op", e->became_op);
    json_text(out, "kernel", e->kernel);
    json_begin(out, "crossings", '[');
    for (int i = 0; i < e->num_crossings; i++) {
        json_begin(out, NULL, '{');
        json_text(out, "tensor", e->crossings[i].tensor);
        json_text(out, "from", e->crossings[i].from);
        json_text(out, "to", e->crossings[i].to);
        json_integer(out, "bytes", e->crossings[i].bytes);
        json_flag(out, "arrives", e->crossings[i].arrives);
        json_end(out);
    }
    json_end(out);
    json_integer(out, "crossing_bytes", e->crossing_bytes);
    json_end(out);
}

static void print_json(tw_explanation *const *all, int count)
{
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_begin(&out, "nodes", '[');
    for (int i = 0; i < count; i++)
        write_node(&out, all[i]);
    json_end(&out);
    json_end(&out);
}

/* ---- finding nodes ----------------------------------------------------------------------------------------- */

static bool is_pattern(const char *text)
{
    return strpbrk(text, "*?") != NULL;
}

/* The name a few letters away, and the first that hold the word. */
static int complain_of(const char *word, const tw_graph *graph)
{
    enum { MOST = 4 };
    nearest near = {.word = word};
    const char *holds[MOST];
    int count = 0;
    for (int i = 0; i < tw_graph_num_nodes(graph); i++)
        nearest_consider(&near, tw_node_name(tw_graph_node(graph, i)));
    if (near.best)
        holds[count++] = near.best;
    for (int i = 0; i < tw_graph_num_nodes(graph) && count < MOST; i++) {
        const char *name = tw_node_name(tw_graph_node(graph, i));
        if (strstr(name, word) && name != near.best)
            holds[count++] = name;
    }
    complain("why", is_pattern(word) ? "no node's name fits '%s'" : "there is no node '%s'", word);
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s '%s'", i == 0 ? "did you mean" : i + 1 == count ? " or" : ",", holds[i]);
    if (count)
        fprintf(stderr, "?\n");
    return EXIT_FAILED;
}

/* Explains all nodes that fit, and prints that. */
static int answer(const settings *s, tw_session *session, tw_error *error)
{
    tw_graph *graph = tw_session_graph(session);
    int nodes = tw_graph_num_nodes(graph), count = 0, code = EXIT_DONE;
    tw_explanation **all = calloc((size_t)nodes + 1, sizeof *all);
    bool pattern = is_pattern(s->node);
    for (int i = 0; i < nodes && all && code == EXIT_DONE; i++) {
        const tw_node *node = tw_graph_node(graph, i);
        const char *name = tw_node_name(node);
        if (pattern ? fnmatch(s->node, name, 0) != 0 : strcmp(s->node, name) != 0)
            continue;
        if (tw_session_explain(session, node, &all[count], error) == TW_OK)
            count++;
        else
            code = failed("why", error);
    }
    if (!all)
        code = complain("why", "out of memory") ? EXIT_DONE : EXIT_FAILED;
    else if (code == EXIT_DONE && count == 0)
        code = complain_of(s->node, graph);
    else if (code == EXIT_DONE && s->train.job.format == FORMAT_JSON)
        print_json(all, count);
    else if (code == EXIT_DONE && pattern)
        print_table(all, count);
    else if (code == EXIT_DONE)
        tell_node(all[0]);
    for (int i = 0; i < count; i++)
        tw_explanation_destroy(all[i]);
    free(all);
    return code;
}

/* ---- the graph of a model, and of a file --------------------------------------------------------------------- */

static int explain_model(const settings *s, training *t)
{
    tw_error error = {0};
    tw_trainer *trainer = NULL;
    t->options.plan_only = true;
    if (tw_trainer_create(&t->options, &trainer, &error) != TW_OK)
        return failed("why", &error);
    int code = answer(s, tw_trainer_session(trainer), &error);
    tw_trainer_destroy(trainer);
    return code;
}

static int by_address(const void *a, const void *b)
{
    const tw_node *x = *(tw_node *const *)a, *y = *(tw_node *const *)b;
    return x < y ? -1 : x > y;
}

/* The nodes that somebody reads, sorted; *count of them, some more than once. NULL when out of memory. */
static const tw_node **list_read(const tw_graph *graph, size_t *count)
{
    size_t edges = 0;
    for (int i = 0; i < tw_graph_num_nodes(graph); i++)
        edges += (size_t)(tw_node_num_inputs(tw_graph_node(graph, i)) +
                          tw_node_num_control_inputs(tw_graph_node(graph, i)));
    const tw_node **read = calloc(edges + 1, sizeof *read);
    *count = 0;
    for (int i = 0; i < tw_graph_num_nodes(graph) && read; i++) {
        const tw_node *node = tw_graph_node(graph, i);
        for (int k = 0; k < tw_node_num_inputs(node); k++)
            read[(*count)++] = tw_node_input(node, k).node;
        for (int k = 0; k < tw_node_num_control_inputs(node); k++)
            read[(*count)++] = tw_node_control_input(node, k);
    }
    if (read)
        qsort(read, *count, sizeof *read, by_address);
    return read;
}

/* Plans all that nobody reads, which is what a graph is for: together, or what has no plan left out. Placeholders are
 * fed, `batch` in place of sizes that are not known. What is not planned is explained by its placement alone. */
static void plan_ends(tw_session *session, int64_t batch)
{
    tw_graph *graph = tw_session_graph(session);
    int nodes = tw_graph_num_nodes(graph), num_feeds = 0, num_ends = 0;
    size_t count;
    const tw_node **read = list_read(graph, &count);
    tw_feed_shape *feeds = calloc((size_t)nodes + 1, sizeof *feeds);
    tw_output *ends = calloc((size_t)nodes + 1, sizeof *ends);
    for (int i = 0; i < nodes && read && feeds && ends; i++) {
        tw_node *node = tw_graph_node(graph, i);
        tw_shape shape = tw_node_num_outputs(node) ? tw_output_shape(tw_node_output(node, 0)) : TW_UNKNOWN_SHAPE;
        for (int k = 0; k < shape.rank; k++)
            shape.dims[k] = shape.dims[k] < 0 ? batch : shape.dims[k];
        if (tw_node_is_placeholder(node) && tw_shape_is_known(shape))
            feeds[num_feeds++] = (tw_feed_shape){tw_node_output(node, 0), shape};
        else if (!bsearch(&node, read, count, sizeof *read, by_address))
            ends[num_ends++] = (tw_output){node, -1};
    }
    if (num_ends && tw_session_prepare(session, feeds, num_feeds, ends, num_ends, NULL) != TW_OK)
        for (int i = 0; i < num_ends; i++)
            tw_session_prepare(session, feeds, num_feeds, &ends[i], 1, NULL);
    free(read);
    free(feeds);
    free(ends);
}

static int explain_graph(const settings *s, tw_graph *graph, tw_devices *devices)
{
    tw_error error = {0};
    tw_session *session = NULL;
    int code = EXIT_FAILED;
    tw_session_options options = training_session_options(&s->train);
    options.devices = devices;
    if (tw_session_create(graph, &options, &session, &error) != TW_OK) {
        failed("why", &error);
    } else {
        plan_ends(session, s->train.batch_size == NOT_GIVEN ? 1 : s->train.batch_size);
        code = answer(s, session, &error);
    }
    tw_session_destroy(session);
    return code;
}

static int run(const void *given)
{
    const settings *s = given;
    if (!s->graph) {
        training t;
        int code = training_open("why", &s->train, TRAINING_WITHOUT_DATA, &t);
        if (code == EXIT_DONE) {
            code = explain_model(s, &t);
            training_close(&t);
        }
        return code;
    }
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    int code = EXIT_FAILED;
    if (tw_graph_load(graph, s->graph, NULL, NULL, &error) != TW_OK) {
        failed("why", &error);
    } else {
        job job = s->train.job;
        job_plan_for_started(&job);
        job.ps_tasks = job.plan_tasks > 0 ? cluster_servers(&s->train.cluster) : 0;
        tw_devices *devices = job_open_devices("why", &job);
        code = devices ? explain_graph(s, graph, devices) : EXIT_FAILED;
        tw_devices_destroy(devices);
    }
    tw_graph_destroy(graph);
    return code;
}

static const option options[] = {
    {NULL, "NODE", OPTION_TEXT, offsetof(settings, node), "a node's name, or a pattern of * and ? for a table of many"},
    {NULL, "MODEL", OPTION_CHOICE, offsetof(settings, train.job.model),
     "the network that is trained", .initial = "cifar10", .list_choices = job_model_names, .optional = true},
    {"graph", "FILE", OPTION_FILE, offsetof(settings, graph),
     "a graph of TensorFlow's instead of a network, in any file that 'tower run' reads: a GraphDef, a MetaGraphDef, a "
     "SavedModel, in binary or in text, or the directory of one; of train's options those of devices and placement "
     "count then, and --batch-size in place of sizes that placeholders leave open (without it 1)",
     .section = "the graph"},
    PLAN_TASKS_OPTION(settings),
    {.more = train_options + 1}, /* without its MODEL */
};

const command why_command = {
    .name = "why",
    .summary = "say why a node runs where it does, and what became of it",
    .description =
        "Builds, places and plans the job that 'tower train' would run with the same options, or the graph of a file, "
        "and explains a node: the rule that placed it, the node that decided for its group and the chain of "
        "colocation that leads there, the devices that were passed over and why, what the plan made of it, and what it "
        "makes cross between devices in a step. Nothing runs.\n\n"
        "A pattern gives a table, a line for each node: the rule is 'asked', 'free' (nothing was asked for), 'soft' "
        "(moved by soft placement), 'input' or 'consumers' (where what it reads, or who reads it, is).",
    .examples = "tower why tower_1/conv1/Conv2D cifar10 --virtual-gpus 2\n"
                "tower why '*/Momentum' resnet20 --virtual-gpus 1\n"
                "tower why 'logits*' --graph graph.pb --virtual-gpus 2\n"
                "tower why 'tower_1/*' cifar10 --tasks 2 --ps-hosts a",
    .of_tasks = TASKS_FIRST,
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
