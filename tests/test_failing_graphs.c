/* test_failing_graphs.c - each graph of golden/flow and golden/datasets is read, planned and run with memory that fails
 * once wherever in the code it has not failed before, and for good at some allocations spread over all: whatever call
 * meets that says so, nothing crashes or leaks, and with memory again the run ends as it did before. label: threads */
#include "testing.h"

#include "faulty_memory.h"

#include <dirent.h>
#include <tower/device.h>
#include <tower/graph.h>
#include <tower/io.h>
#include <tower/session.h>

enum { FOR_GOOD = 4, FETCHES = 12, ENOUGH = 1 << 30 };

typedef struct job {
    const char *file;
    char *bytes;
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

static bool again_failed;
static int places_tried;

/* With a second try of what failed for want of memory. */
static tw_status again(tw_status status, bool *failed)
{
    *failed = status == TW_RESOURCE_EXHAUSTED && forgive_allocations();
    again_failed = again_failed || *failed;
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
    status = again(tw_graph_import(g, j->bytes, j->size, NULL, error), &failed);
    if (failed)
        status = tw_graph_import(g, j->bytes, j->size, NULL, error);
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

static void try_folder(const char *folder)
{
    char path[600];
    job j = {0};
    tw_error error = {0};
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, folder);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = 1, .cpu_threads = 1), &j.devices, &error));
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
    print_message("%d places in the code where memory has failed\n", places_tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_with_control_flow_survive_failing_memory),
        cmocka_unit_test(graphs_with_data_sets_survive_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
