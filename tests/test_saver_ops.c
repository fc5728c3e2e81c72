/* test_saver_ops.c - the nodes of TensorFlow 1's Saver save and restore, in a graph and with a checkpoint that
 * TensorFlow wrote (golden/make_saver.py); what Tower does not know in that graph is in nobody's way. */
#include "testing.h"

#include <tower/io.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>
#include <unistd.h>

static char directory[] = "/tmp/tower-saver-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

typedef struct program {
    tw_graph *g;
    tw_session *s;
} program;

/* The graph with an op that nobody has: another of the same length in place of one that Tower has by now. */
static program open_program(void)
{
    static const char known[] = "UnicodeTranscode", novel[] = "NoSuchOpAnywhere";
    program p = {.g = tw_graph_create()};
    size_t size;
    tw_error error = {0};
    char *bytes = read_whole(GOLDEN_DIR "/tf1_saver.meta", &size);
    for (size_t i = 0; i + strlen(known) <= size; i++)
        if (memcmp(bytes + i, known, strlen(known)) == 0)
            memcpy(bytes + i, novel, strlen(novel));
    assert_ok(tw_meta_graph_import(p.g, bytes, size, NULL, &error));
    free(bytes);
    assert_ok(tw_session_create(p.g, NULL, &p.s, &error));
    return p;
}

static void close_program(program *p)
{
    tw_session_destroy(p->s);
    tw_graph_destroy(p->g);
}

static tw_output node(const program *p, const char *name)
{
    tw_output output = {tw_graph_find(p->g, name), -1};
    if (!output.node)
        fail_msg("there is no node '%s'", name);
    return output;
}

/* Runs a node, with the name of a checkpoint in the Saver's placeholder. */
static tw_status run_with(const program *p, const char *saver, const char *name, const char *path, tw_error *error)
{
    char placeholder[64], full[64];
    snprintf(placeholder, sizeof placeholder, "%s/Const", saver);
    snprintf(full, sizeof full, "%s/%s", saver, name);
    tw_feed feed = {tw_node_output(node(p, placeholder).node, 0), tw_tensor_string(path, strlen(path))};
    tw_output target = node(p, full);
    tw_status status = tw_session_run(p->s, &feed, 1, &target, 1, NULL, error);
    tw_tensor_release(feed.tensor);
    return status;
}

static void run_node(const program *p, const char *name)
{
    tw_error error = {0};
    tw_output target = node(p, name);
    assert_ok(tw_session_run(p->s, NULL, 0, &target, 1, NULL, &error));
}

/* The variables as they are `steps` training steps after their initial values. */
static void expect_variables(const program *p, int steps)
{
    static const char *const names[] = {"weights", "steps", "resource"};
    static const double first[3][6] = {{0, 0.25, 0.5, 0.75, 1, 1.25}, {7}, {1.5, -2.5}};
    for (int v = 0; v < 3; v++) {
        tw_error error = {0};
        tw_tensor *value = NULL;
        assert_ok(tw_session_get_variable(p->s, tw_graph_find_variable(p->g, names[v]), &value, &error));
        for (int64_t i = 0; i < tw_tensor_elements(value); i++)
            assert_true(tw_tensor_value(value, i) == first[v][i] + steps);
        tw_tensor_release(value);
    }
}

static void a_checkpoint_of_tensorflow_is_restored_by_the_graphs_own_nodes(void **state)
{
    (void)state;
    static const char *const savers[] = {"save", "sharded"};
    for (int i = 0; i < 2; i++) {
        tw_error error = {0};
        program p = open_program();
        assert_ok(run_with(&p, savers[i], "restore_all", GOLDEN_DIR "/tf1_saver", &error));
        expect_variables(&p, 1);
        run_node(&p, "train");
        expect_variables(&p, 2);
        close_program(&p);
    }
}

/* Also in parts that are then made one, which leaves nothing else behind. */
static void what_is_saved_by_nodes_is_read_by_nodes_and_by_tower(void **state)
{
    (void)state;
    static const char *const savers[] = {"save", "sharded"}, *const last[] = {"control_dependency", "Identity"};
    for (int i = 0; i < 2; i++) {
        tw_error error = {0};
        char path[100], command[200];
        program p = open_program();
        snprintf(path, sizeof path, "%s/%s/model-3", directory, savers[i]);
        run_node(&p, "init");
        for (int steps = 0; steps < 3; steps++)
            run_node(&p, "train");
        for (int twice = 0; twice < 2; twice++)
            assert_ok(run_with(&p, savers[i], last[i], path, &error));
        close_program(&p);
        snprintf(command, sizeof command, "test $(ls -A %s/%s | wc -l) = 2", directory, savers[i]);
        assert_int_equal(system(command), 0);

        p = open_program();
        assert_ok(run_with(&p, savers[1 - i], "restore_all", path, &error));
        expect_variables(&p, 3);
        close_program(&p);
        p = open_program();
        tw_checkpoint *checkpoint;
        assert_ok(tw_checkpoint_open(path, &checkpoint, &error));
        assert_int_equal(tw_checkpoint_count(checkpoint), 3);
        assert_ok(tw_restore(p.s, checkpoint, NULL, NULL, &error));
        expect_variables(&p, 3);
        tw_checkpoint_close(checkpoint);
        close_program(&p);
    }
}

static tw_output text(tw_graph *g, const char *words)
{
    tw_tensor *tensor = tw_tensor_string(words, strlen(words));
    tw_output output = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return output;
}

/* What an old graph's Saver has: a node for each tensor or part of one, and a pattern for the names of all files. */
static void an_old_checkpoint_is_restored_by_old_nodes(void **state)
{
    (void)state;
    static const tw_initializer zeros = {.a = 0};
    tw_error error = {0};
    tw_session *s;
    tw_tensor *value;
    tw_graph *g = tw_graph_create();
    tw_variable *grid = tw_get_variable(g, "grid", TW_INT64, TW_SHAPE(4, 5), zeros);
    tw_variable *rows = tw_get_variable(g, "rows", TW_FLOAT32, TW_SHAPE(100, 2), zeros);
    int32_t two = 2;
    tw_output name[] = {text(g, GOLDEN_DIR "/checkpoint_old_parts"), tw_constant_int32s(g, TW_SCALAR, &two)};
    tw_output files = tw_node_output(tw_add_node(g, "ShardedFilespec", "files", name, 2, NULL, 0), 0);
    tw_attr integers = tw_attr_type("dt", TW_INT64), floats = tw_attr_type("dt", TW_FLOAT32);
    tw_output of_grid[] = {files, text(g, "grid")}, of_rows[] = {files, text(g, "m/rows"), text(g, "600 3 60,100:1,2")};
    tw_output restored[] = {
        tw_assign(g, grid->handle, tw_node_output(tw_add_node(g, "Restore", NULL, of_grid, 2, &integers, 1), 0)),
        tw_assign(g, rows->handle, tw_node_output(tw_add_node(g, "RestoreSlice", NULL, of_rows, 3, &floats, 1), 0))};
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, restored, 2, NULL, &error));
    assert_ok(tw_session_get_variable(s, grid, &value, &error));
    for (int i = 0; i < 20; i++)
        assert_int_equal(tw_tensor_value(value, i), i);
    tw_tensor_release(value);
    assert_ok(tw_session_get_variable(s, rows, &value, &error));
    for (int i = 0; i < 200; i++)
        assert_int_equal(tw_tensor_value(value, i), (60 + i / 2) * 3 + 1 + i % 2);
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void what_does_not_fit_is_refused_in_tensorflows_words(void **state)
{
    (void)state;
    tw_error error = {0};
    program p = open_program();
    char path[100];
    assert_fails(run_with(&p, "save", "restore_all", "/nowhere/model", &error), TW_NOT_FOUND,
                 "Failed to find any matching files for /nowhere/model");
    struct {
        const char *name;
        tw_tensor *tensor;
        tw_status status;
        const char *words;
    } wrong[] = {
        {"weight", tw_tensor_float(1), TW_NOT_FOUND, "Key weights not found in checkpoint"},
        {"weights", tw_tensor_int64(1), TW_INVALID_ARGUMENT,
         "tensor_name = weights; expected dtype float does not equal original dtype int64"},
        {"weights", tw_tensor_float(1), TW_INVALID_ARGUMENT,
         "weights: Assign requires shapes of both tensors to match. lhs shape= [2,3] rhs shape= []"},
    };
    double two[] = {1, 2};
    tw_tensor *steps = tw_tensor_int64(1), *resource = tw_tensor_from(TW_FLOAT64, TW_SHAPE(2), two);
    snprintf(path, sizeof path, "%s/wrong-1", directory);
    for (int i = 0; i < 3; i++) {
        tw_named_tensor tensors[] = {{"resource", resource}, {"steps", steps}, {wrong[i].name, wrong[i].tensor}};
        assert_ok(tw_checkpoint_save(directory, "wrong", 1, tensors, 3, 0, &error));
        assert_fails(run_with(&p, "save", "restore_all", path, &error), wrong[i].status, wrong[i].words);
        tw_tensor_release(wrong[i].tensor);
    }
    tw_tensor_release(steps);
    tw_tensor_release(resource);
    close_program(&p);
}

static void what_the_graph_has_besides_is_missed_only_when_it_is_needed(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words;
    } needs[] = {
        {"coded", "node 'coded' (NoSuchOpAnywhere): Op type not registered 'NoSuchOpAnywhere' in this library"},
        {"needs_coded", "node 'needs_coded' (StringJoin): it needs 'coded': Op type not registered 'NoSuchOpAnywhere'"},
        {"after_coded", "node 'coded' (NoSuchOpAnywhere): Op type not registered"},
    };
    program p = open_program();
    run_node(&p, "init");
    run_node(&p, "total");
    run_node(&p, "loop/Exit");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        tw_error error = {0};
        tw_output target = node(&p, needs[i].name);
        assert_fails(tw_session_run(p.s, NULL, 0, &target, 1, NULL, &error), TW_NOT_FOUND, needs[i].words);
    }
    close_program(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_of_tensorflow_is_restored_by_the_graphs_own_nodes),
        cmocka_unit_test(what_is_saved_by_nodes_is_read_by_nodes_and_by_tower),
        cmocka_unit_test(an_old_checkpoint_is_restored_by_old_nodes),
        cmocka_unit_test(what_does_not_fit_is_refused_in_tensorflows_words),
        cmocka_unit_test(what_the_graph_has_besides_is_missed_only_when_it_is_needed),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
