/* test_failing_graphs.c - each graph of golden/flow, golden/datasets and golden/files is read, planned and run, the
 * last asked about and written too, with memory that fails once wherever in the code it has not failed before, and for
 * good at some allocations spread over all: whatever call meets that says so, nothing crashes or leaks, and with memory
 * again the run ends as it did before. label: threads */
#include "testing.h"

#include "faulty_memory.h"

#include <dirent.h>
#include <tower/device.h>
#include <tower/explain.h>
#include <tower/graph.h>
#include <tower/io.h>
#include <tower/session.h>

enum { FOR_GOOD = UNDER_THREAD_SANITIZER ? 1 : 4, FETCHES = 12, ENOUGH = 1 << 30 };

typedef struct job {
    const char *file;
    char *bytes; /* NULL: the file is read where it lies, and the session asked about itself behind */
    size_t size;
    tw_devices *devices;
    tw_status ends; /* undisturbed, and what it says then */
    char says[TW_MESSAGE_SIZE];
} job;

/* The last nodes are run, with nothing fed: what they lack then is an error, too. */
static tw_status run_last(tw_session *s, tw_graph *g, tw_error *error)
{
    tw_output fetches[FETCHES];
    int count = 0;
    for (int i = tw_graph_num_nodes(g) - 1; i >= 0 && count < FETCHES; i--) {
        tw_node *node = tw_graph_node(g, i);
        if (!tw_node_is_placeholder(node) && !tw_node_is_unknown(node))
            fetches[count++] = (tw_output){node, -1};
    }
    return tw_session_run(s, NULL, 0, fetches, count, NULL, error);
}

/* What can be asked of a session that has run, and the graph written as TensorFlow's messages. */
static tw_status tell(tw_session *s, tw_graph *g, tw_error *error)
{
    tw_explanation *explanation = NULL;
    tw_moves *moves = NULL;
    tw_memory *memory = NULL;
    tw_planned *planned = NULL;
    tw_timeline *timeline = NULL;
    void *bytes = NULL;
    size_t size;
    tw_status status = tw_session_explain(s, tw_graph_node(g, tw_graph_num_nodes(g) - 1), &explanation, error);
    if (status == TW_OK)
        status = tw_session_moves(s, &moves, error);
    if (status == TW_OK)
        status = tw_session_memory(s, &memory, error);
    if (status == TW_OK)
        status = tw_session_planned(s, &planned, error);
    if (status == TW_OK)
        status = tw_session_timeline(s, &timeline, error);
    if (status == TW_OK)
        status = tw_meta_graph_export(g, NULL, &bytes, &size, error);
    tw_explanation_destroy(explanation);
    tw_moves_destroy(moves);
    tw_memory_destroy(memory);
    tw_planned_destroy(planned);
    tw_timeline_destroy(timeline);
    tw_free(bytes);
    return status;
}

static bool again_failed;
static int places_tried;

/* With a second try of what failed for want of memory. */
static tw_status again(tw_status status, bool *failed)
{
    *failed = status == TW_RESOURCE_EXHAUSTED && forgive_allocations();
    again_failed = again_failed || *failed;
    return status;
}

static tw_status read(tw_graph *g, const job *j, tw_error *error)
{
    tw_graph_about *about = NULL;
    if (j->bytes)
        return tw_graph_import(g, j->bytes, j->size, NULL, error);
    tw_status status = tw_graph_load(g, j->file, NULL, &about, error);
    tw_graph_about_destroy(about);
    return status;
}

static tw_status run(const job *j, tw_error *error)
{
    bool failed;
    again_failed = false;
    tw_graph *g = tw_graph_create();
    tw_session *s = NULL;
    tw_session_options options = {.devices = j->devices};
    tw_status status = TW_RESOURCE_EXHAUSTED;
    if (!g)
        return status;
    status = again(read(g, j, error), &failed);
    if (failed)
        status = read(g, j, error);
    if (status == TW_OK) {
        status = again(tw_session_create(g, &options, &s, error), &failed);
        if (failed)
            status = tw_session_create(g, &options, &s, error);
    }
    if (status == TW_OK) {
        status = again(run_last(s, g, error), &failed);
        if (failed)
            status = run_last(s, g, error);
    }
    if (status == TW_OK && !j->bytes) {
        status = again(tell(s, g, error), &failed);
        if (failed)
            status = tell(s, g, error);
    }
    tw_session_destroy(s);
    tw_graph_destroy(g);
    return status;
}

/* Whether an allocation has failed: `what` and number `n`, for messages. */
static bool survives(const job *j, const char *what, int n)
{
    tw_error error = {0};
    tw_status status = run(j, &error);
    int live = memory.live;
    bool failed = stop_failing_allocations();
    if (live != 0)
        fail_msg("%s, %s %d: %d blocks are left", j->file, what, n, live);
    if (status != TW_RESOURCE_EXHAUSTED && (status == TW_OK) != (j->ends == TW_OK)) /* one that fails may do so elsewhere */
        fail_msg("%s, %s %d: status %d, \"%s\"; without: %d, \"%s\"", j->file, what, n, status, error.message, j->ends,
                 j->says);
    return failed;
}

static void try_file(job *j)
{
    tw_error error = {0};
    j->ends = run(j, &error); /* what is kept for the process is made */
    snprintf(j->says, sizeof j->says, "%s", error.message);
    if (j->ends == TW_RESOURCE_EXHAUSTED) /* of itself */
        return;
    fail_allocation(ENOUGH);
    run(j, &error);
    int count = ENOUGH - (int)memory.countdown;
    stop_failing_allocations();
    for (int i = 0; i < FOR_GOOD; i++) {
        fail_allocations_from((int)((i + 0.3) * count / FOR_GOOD));
        survives(j, "for good from allocation", i);
    }
    bool failed = true;
    for (int n = 0; failed; n++) {
        fail_at_new_place();
        failed = survives(j, "new place", n) || again_failed;
        places_tried += failed;
    }
}

static tw_devices *open_devices(void)
{
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 1, .cpu_threads = 1), &devices, &error));
    return devices;
}

static void try_folder(const char *folder)
{
    char path[600];
    job j = {.devices = open_devices()};
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, folder);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!strstr(entry->d_name, ".pb") || strncmp(entry->d_name, "waits", 5) == 0) /* for ever, for what is not fed */
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", GOLDEN_DIR, folder, entry->d_name);
        j.file = entry->d_name;
        j.bytes = read_whole(path, &j.size);
        try_file(&j);
        free(j.bytes);
    }
    closedir(directory);
    tw_devices_destroy(j.devices);
}

static void graphs_with_control_flow_survive_failing_memory(void **state)
{
    (void)state;
    try_folder("flow");
}

static void graphs_with_data_sets_survive_failing_memory(void **state)
{
    (void)state;
    try_folder("datasets");
}

static void graphs_in_files_of_every_kind_survive_failing_memory(void **state)
{
    static const char *const files[] = {"parts.meta",  "vocabulary",  "whole.meta", /* the small ones are quick */
                                        "graph.pbtxt", "saved_model", "saved_model_text"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[600];
        job j = {.file = path, .devices = open_devices()};
        snprintf(path, sizeof path, "%s/files/%s", GOLDEN_DIR, files[i]);
        try_file(&j);
        tw_devices_destroy(j.devices);
    }
    print_message("%d places in the code where memory has failed\n", places_tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_with_control_flow_survive_failing_memory),
        cmocka_unit_test(graphs_with_data_sets_survive_failing_memory),
        cmocka_unit_test(graphs_in_files_of_every_kind_survive_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
