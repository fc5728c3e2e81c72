/* test_datasets.c - what iterators of data sets promise besides their elements: who waits is woken, an iterator goes on
 * after an error, threads end with the session, and memory that runs out is an error. label: threads */
#include "faulty_memory.h"
#include "golden_graph.h"
#include "testing.h"

#include <dirent.h>
#include <pthread.h>
#include <tower/graph.h>
#include <tower/io.h>
#include <tower/ops.h>
#include <tower/queue.h>
#include <tower/session.h>

static tw_status run(tw_graph *g, tw_session *s, const char *name, int index, tw_tensor **result, tw_error *error)
{
    tw_output fetch = {tw_graph_find(g, name), index};
    assert_non_null(fetch.node);
    return tw_session_run(s, NULL, 0, &fetch, 1, result, error);
}

static int count_threads(void)
{
    int count = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "Threads: %d", &count);
    fclose(file);
    return count;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* With elements made ahead that nobody takes, and after a part of an epoch. */
static void threads_of_iterators_end_with_their_session(void **state)
{
    (void)state;
    static const char *const starts[] = {"MakeIterator", "MakeIterator_1", "MakeIterator_2"};
    static const char *const gives[] = {"IteratorGetNext", "IteratorGetNext_1", "IteratorGetNext_2"};
    int before = 0;
    for (int round = 0; round < 3; round++) {
        tw_error error = {0};
        tw_session *s;
        tw_graph *g = read_golden_graph("datasets", "from_memory_and_ahead");
        tw_tensor *value = NULL;
        assert_ok(tw_session_create(g, NULL, &s, &error));
        for (int i = 0; i < 3; i++) {
            assert_ok(run(g, s, starts[i], -1, NULL, &error));
            assert_ok(run(g, s, gives[i], 0, &value, &error));
            assert_ok(run(g, s, starts[i], -1, NULL, &error)); /* begins anew with the old one's threads at work */
            assert_ok(run(g, s, gives[i], 0, &value, &error));
        }
        tw_tensor_release(value);
        tw_session_destroy(s);
        tw_graph_destroy(g);
        if (round == 0) /* libraries may keep theirs */
            before = count_threads();
        else
            assert_int_equal(count_threads(), before);
    }
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

typedef struct waiter {
    tw_graph *g;
    tw_session *s;
    tw_status status;
    tw_error error;
} waiter;

static void *wait_for_element(void *user)
{
    waiter *w = user;
    tw_tensor *value = NULL;
    w->status = run(w->g, w->s, "next", 0, &value, &w->error);
    tw_tensor_release(value);
    return NULL;
}

/* Whether the function of a map waits for a queue or a thread that makes elements ahead does: both end. */
static void cancelling_a_session_wakes_who_waits_for_an_element(void **state)
{
    (void)state;
    static const char *const graphs[] = {"waits", "waits_ahead", "waits_beside"};
    for (int i = 0; i < 3; i++) {
        waiter w = {.g = read_golden_graph("datasets", graphs[i])};
        tw_error error = {0};
        tw_tensor *size = NULL;
        pthread_t thread;
        assert_ok(tw_session_create(w.g, NULL, &w.s, &error));
        assert_ok(run(w.g, w.s, "begin", -1, NULL, &error));
        assert_int_equal(pthread_create(&thread, NULL, wait_for_element, &w), 0);
        do { /* the queue has one element, which the function takes before it waits for another */
            tw_output fetch = {tw_graph_find(w.g, "size"), 0};
            assert_ok(tw_session_run_in(w.s, 1, NULL, 0, &fetch, 1, &size, &error));
        } while (tw_tensor_value(size, 0) > 0);
        tw_tensor_release(size);
        tw_session_cancel(w.s);
        pthread_join(thread, NULL);
        if (w.status != TW_CANCELLED)
            fail_msg("%s: status %d, %s", graphs[i], w.status, w.error.message);
        tw_session_destroy(w.s);
        tw_graph_destroy(w.g);
    }
}

/* ---- wrong arguments --------------------------------------------------------------------------------------------- */

enum { MOST_NODES = 64 };

/* All nodes of an op, or of two; returns how many. */
static int find_all(const tw_graph *g, const char *op, const char *or, tw_output found[MOST_NODES], int index)
{
    int count = 0;
    for (int i = 0; i < tw_graph_num_nodes(g) && count < MOST_NODES; i++) {
        tw_node *node = tw_graph_node(g, i);
        if (strcmp(tw_node_op(node), op) == 0 || strcmp(tw_node_op(node), or) == 0)
            found[count++] = (tw_output){node, index};
    }
    return count;
}

/* Every iterator begins with another value of a constant and gives two elements: or says what is wrong. */
static void try_value(tw_graph *g, tw_session *s, const char *name, tw_output constant, tw_tensor *value)
{
    tw_output begins[MOST_NODES], gives[MOST_NODES];
    tw_feed feed = {constant, value};
    int count = find_all(g, "MakeIterator", "", begins, -1), next = find_all(g, "IteratorGetNext", "", gives, 0);
    for (int i = 0; i < count + 2 * next; i++) {
        tw_error error = {0};
        tw_tensor *result = NULL;
        tw_output fetch = i < count ? begins[i] : gives[(i - count) % next];
        bool has_value = i >= count && tw_dtype_size(tw_output_dtype(fetch)) > 0;
        fetch.index = has_value ? 0 : -1;
        tw_status status = tw_session_run(s, i < count ? &feed : NULL, i < count, &fetch, 1,
                                          has_value ? &result : NULL, &error);
        if (status == TW_INTERNAL || (status != TW_OK && !error.message[0]))
            fail_msg("%s, %s: status %d, \"%s\"", name, tw_node_name(constant.node), status, error.message);
        tw_tensor_release(result);
    }
}

static void try_values(const char *name)
{
    static const int64_t numbers[] = {-1, 0, 2};
    tw_graph *g = read_golden_graph("datasets", name);
    tw_session *s;
    tw_error error = {0};
    tw_output constants[MOST_NODES];
    assert_ok(tw_session_create(g, NULL, &s, &error));
    for (int i = find_all(g, "Const", "", constants, 0) - 1; i >= 0; i--) {
        tw_dtype dtype = tw_output_dtype(constants[i]);
        tw_shape shape = tw_output_shape(constants[i]);
        for (size_t k = 0; k < 2 * sizeof numbers / sizeof *numbers; k++) {
            tw_tensor *value = tw_tensor_create(dtype, k % 2 ? TW_SHAPE(2) : shape);
            for (int64_t e = 0; dtype == TW_INT64 && e < tw_tensor_elements(value); e++)
                ((int64_t *)tw_tensor_data(value))[e] = numbers[k / 2];
            if (dtype == TW_INT64 || k < 2)
                try_value(g, s, name, constants[i], value);
            tw_tensor_release(value);
        }
    }
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void arguments_that_are_wrong_are_refused_or_give_elements(void **state)
{
    (void)state;
    DIR *directory = opendir(GOLDEN_DIR "/datasets");
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char name[256];
        snprintf(name, sizeof name, "%s", entry->d_name);
        char *end = strstr(name, ".pb");
        if (!end || strncmp(name, "waits", 5) == 0 || strcmp(name, "maps.pb") == 0) /* for ever; counts down to zero */
            continue;
        *end = 0;
        try_values(name);
    }
    closedir(directory);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void an_error_of_a_function_names_its_node_and_the_next_element_comes(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *s;
    tw_tensor *value = NULL;
    tw_graph *g = read_golden_graph("datasets", "failing_maps");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(run(g, s, "MakeIterator", -1, NULL, &error));
    for (int i = 0; i < 2; i++)
        assert_ok(run(g, s, "IteratorGetNext", 0, &value, &error));
    assert_fails(run(g, s, "IteratorGetNext", 0, &value, &error), TW_INVALID_ARGUMENT, "MapDataset/f/CheckNumerics");
    assert_message(error.message, "IteratorGetNext");
    assert_ok(run(g, s, "IteratorGetNext", 0, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 1);
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void a_session_without_memory_fails_and_leaves_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"groups", "windows", "padded_batches"};
    for (int k = 0; k < 3; k++) {
        tw_graph *g = read_golden_graph("datasets", names[k]);
        int failures = 0;
        for (int n = 0, ends = 0; !ends; n += 1 + n / 8) {
            tw_error error = {0};
            tw_session *s = NULL;
            tw_tensor *value = NULL;
            fail_allocation(n);
            tw_status status = tw_session_create(g, NULL, &s, &error);
            if (status == TW_OK)
                status = run(g, s, "MakeIterator", -1, NULL, &error);
            for (int i = 0; i < 3 && status == TW_OK; i++)
                status = run(g, s, "IteratorGetNext", 0, &value, &error);
            ends = !memory.failed;
            failures += status != TW_OK;
            assert_true(status == TW_OK || status == TW_RESOURCE_EXHAUSTED);
            tw_tensor_release(value);
            tw_session_destroy(s);
            stop_failing_allocations();
            assert_int_equal(memory.live, 0);
        }
        assert_true(failures > 20);
        tw_graph_destroy(g);
    }
}

/* A node of a data set of numbers. An iterator, which has no inputs, has two attributes more. */
static tw_output add(tw_graph *g, const char *op, const char *name, const tw_output *inputs, int num_inputs)
{
    const tw_dtype types[] = {TW_INT64};
    const tw_shape shapes[] = {TW_SCALAR};
    const tw_attr attrs[] = {tw_attr_types("output_types", types, 1), tw_attr_shapes("output_shapes", shapes, 1),
                             tw_attr_string("shared_name", ""), tw_attr_string("container", "")};
    return tw_node_output(tw_add_node(g, op, name, inputs, num_inputs, attrs, num_inputs ? 2 : 4), 0);
}

/* Each data set is of the one before, or of it twice. */
static void assert_refused(int depth, bool twice)
{
    tw_error error = {0};
    tw_session *s;
    tw_graph *g = tw_graph_create();
    tw_tensor *value = tw_tensor_int64(5);
    tw_output five = tw_constant(g, value);
    tw_output inputs[] = {five, five, five};
    tw_output set = add(g, "RangeDataset", NULL, inputs, 3);
    for (int i = 0; i < depth; i++) {
        tw_output next[] = {set, twice ? set : five};
        set = add(g, twice ? "ConcatenateDataset" : "TakeDataset", NULL, next, 2);
    }
    tw_output iterator = add(g, "IteratorV2", NULL, NULL, 0);
    tw_node *start = tw_add_node(g, "MakeIterator", NULL, (tw_output[]){set, iterator}, 2, NULL, 0);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(run(g, s, tw_node_name(start), -1, NULL, &error), TW_RESOURCE_EXHAUSTED, "lie in each other");
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void data_sets_that_lie_in_each_other_without_end_are_refused(void **state)
{
    (void)state;
    assert_refused(1000, false);
    assert_refused(40, true);
}

/* ---- counted, and kept in a file --------------------------------------------------------------------------------- */

/* How many elements a data set of `op` over the numbers 0 to 2 gives before it ends, or fails. */
static int count_elements(const char *op, tw_tensor *argument, tw_error *error)
{
    tw_session *s;
    tw_graph *g = tw_graph_create();
    tw_tensor *numbers[] = {tw_tensor_int64(0), tw_tensor_int64(3), tw_tensor_int64(1)};
    tw_output range[] = {tw_constant(g, numbers[0]), tw_constant(g, numbers[1]), tw_constant(g, numbers[2])};
    tw_output set[] = {add(g, "RangeDataset", NULL, range, 3), tw_constant(g, argument)};
    tw_output from[] = {add(g, op, NULL, set, 2), add(g, "IteratorV2", NULL, NULL, 0)};
    tw_add_node(g, "MakeIterator", "start", from, 2, NULL, 0);
    add(g, "IteratorGetNext", "next", &from[1], 1);
    assert_string_equal(tw_graph_message(g), "");
    assert_int_equal(tw_session_create(g, NULL, &s, error), TW_OK);
    tw_tensor *element = NULL;
    int count = 0;
    tw_status status = run(g, s, "start", -1, NULL, error);
    while (status == TW_OK && (status = run(g, s, "next", 0, &element, error)) == TW_OK)
        assert_true(tw_tensor_value(element, 0) == count++);
    tw_tensor_release(element);
    for (int k = 0; k < 3; k++)
        tw_tensor_release(numbers[k]);
    tw_tensor_release(argument);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    return count;
}

static void a_data_set_has_as_many_elements_as_is_said(void **state)
{
    static const struct {
        int64_t said;
        int given;
        const char *says; /* NULL: it ends */
    } cases[] = {{3, 3, NULL},
                 {-2, 3, NULL}, /* nobody knows how many */
                 {4, 3, "expected to contain 4 elements but contained only 3"},
                 {2, 2, "expected to contain 2 elements but contained at least 3"},
                 {0, 0, "expected to contain 0 elements but contained at least 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        int count = count_elements("AssertCardinalityDataset", tw_tensor_int64(cases[i].said), &error);
        assert_int_equal(count, cases[i].given);
        assert_int_equal(error.status, cases[i].says ? TW_FAILED_PRECONDITION : TW_OUT_OF_RANGE);
        if (cases[i].says)
            assert_message(error.message, cases[i].says);
    }
}

/* A table in the place of a data set: how many elements there are nobody knows, and asking for one says what it is. */
static void what_is_no_data_set_has_no_elements(void **state)
{
    static const char *const ops[] = {"ParallelBatchDataset", "RepeatDataset", "ConcatenateDataset", "ZipDataset"};
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        tw_error error = {0};
        tw_session *s;
        tw_graph *g = tw_graph_create();
        tw_tensor *one = tw_tensor_int64(1), *count = NULL, *element = NULL;
        tw_attr types[] = {tw_attr_type("key_dtype", TW_STRING), tw_attr_type("value_dtype", TW_INT64)};
        tw_output table = tw_node_output(tw_add_node(g, "MutableHashTableV2", NULL, NULL, 0, types, 2), 0);
        tw_output number = tw_constant(g, one), no = tw_cast(g, tw_scalar(g, 0), TW_BOOL);
        tw_output inputs[] = {table, i < 2 ? number : table, number, no};
        tw_output set[] = {add(g, ops[i], "set", inputs, i ? 2 : 4), number};
        tw_add_node(g, "DatasetCardinality", "count", set, 1, NULL, 0);
        add(g, "GetElementAtIndex", "element", set, 2);
        assert_string_equal(tw_graph_message(g), "");
        assert_ok(tw_session_create(g, NULL, &s, &error));
        if (i < 3) { /* the components of what is zipped are counted when it is made */
            assert_ok(run(g, s, "count", 0, &count, &error));
            assert_int_equal(tw_tensor_value(count, 0), -2);
        }
        assert_int_not_equal(run(g, s, "element", 0, &element, &error), TW_OK);
        assert_string_not_equal(error.message, "");
        tw_tensor_release(count);
        tw_tensor_release(one);
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
}

static tw_tensor *text_of(const char *text)
{
    tw_tensor *made = tw_tensor_create(TW_STRING, TW_SCALAR);
    assert_int_equal(tw_tensor_set_string(made, 0, text, strlen(text)), TW_OK);
    return made;
}

static void elements_are_kept_in_a_file_for_the_next_program(void **state)
{
    char directory[] = "/tmp/tower-cache-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/kept", directory);
    for (int i = 0; i < 2; i++) { /* made, then read */
        tw_error error = {0};
        assert_int_equal(count_elements("CacheDataset", text_of(path), &error), 3);
        assert_int_equal(error.status, TW_OUT_OF_RANGE);
    }
    tw_error error = {0};
    char command[128];
    snprintf(command, sizeof command, "printf x >%s.index", path);
    assert_int_equal(system(command), 0);
    assert_int_equal(count_elements("CacheDataset", text_of(path), &error), 0);
    assert_message(error.message, "the cache '");
    snprintf(path, sizeof path, "%s/nowhere/kept", directory);
    assert_int_equal(count_elements("CacheDataset", text_of(path), &error), 3);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_that_are_wrong_are_refused_or_give_elements),
        cmocka_unit_test(threads_of_iterators_end_with_their_session),
        cmocka_unit_test(cancelling_a_session_wakes_who_waits_for_an_element),
        cmocka_unit_test(an_error_of_a_function_names_its_node_and_the_next_element_comes),
        cmocka_unit_test(a_session_without_memory_fails_and_leaves_nothing),
        cmocka_unit_test(data_sets_that_lie_in_each_other_without_end_are_refused),
        cmocka_unit_test(a_data_set_has_as_many_elements_as_is_said),
        cmocka_unit_test(what_is_no_data_set_has_no_elements),
        cmocka_unit_test(elements_are_kept_in_a_file_for_the_next_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
