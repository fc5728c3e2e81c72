/* test_show_command.c - `tower show`, as a user runs it on files that TensorFlow wrote. */
#include "program.h"

#define FILES GOLDEN_DIR "/files/"

static void it_says_what_is_in_a_file(void **state)
{
    (void)state;
    assert_runs(0, "$T show %s", FILES "saved_model");
    assert_prints("saved_model: SavedModel, 149 nodes of 42 ops, TensorFlow 2.21.0, tags serve\n"
                  "signature serving_default, tensorflow/serving/predict\n"
                  "  takes images (x)                     float [?,3]\n");
    assert_prints("  gives scores (y)                     float [?,2]\n");
    assert_prints("inputs\n  x                              float [?,3]\n");
    assert_prints("  keep                           float [], has a value\n");
    assert_prints("what can be run and gives nothing\n  init\n");
    assert_prints("variables: 4, 2 trainable, 15 numbers, 64 bytes\n  W                                      float [3,2]\n");
    assert_prints("global_step                            int64 [], not trainable\n");
    assert_prints("saved_model/variables/variables\n");
    assert_prints("        1  summaries\n");
    assert_prints("devices that nodes ask for\n");
    assert_prints("       15  /device:CPU:0\n");
    assert_prints("ops\n       34  Const\n");
    assert_prints("more (--all lists them)\n");
    assert_runs(0, "$T show %s --all", FILES "graph.pbtxt");
    assert_prints("GraphDef in text, ");
    assert_prints("nodes\n  x (Placeholder) float [?,3]\n");
    assert_prints_not("--all lists them");
}

static void ops_that_are_not_known_are_listed(void **state)
{
    (void)state;
    assert_runs(0, "printf \"node { name: 'a' op: 'Novel' } node { name: 'c' op: 'Novel' } "
                   "node { name: 'b' op: 'Identity' input: 'a' }\" > novel.pbtxt; $T show novel.pbtxt");
    assert_prints("ops that are not known here: what needs them cannot be run\n"
                  "        2  Novel                    first a\n");
    assert_runs(0, "$T show novel.pbtxt --format json");
    assert_prints("\"unknown_ops\":{\"Novel\":2}");
}

static void functions_of_data_sets_are_no_inputs_or_outputs(void **state)
{
    (void)state;
    assert_runs(0, "$T show %s", GOLDEN_DIR "/datasets/choosing.pb");
    assert_prints("inputs\n  bound                          int64 []\noutputs that nobody takes\n");
    assert_prints_not("predicate");
}

static void what_gradients_and_optimizers_leave_over_is_counted(void **state)
{
    (void)state;
    assert_runs(0, "$T show %s", GOLDEN_DIR "/tf1_sgd.meta");
    assert_prints("  loss                           float []\n"
                  "  steps_done                     int64 []\n"
                  "  step_after                     int64 []\n"
                  "  and 2 more\n");
    assert_runs(0, "$T show %s --all", GOLDEN_DIR "/tf1_sgd.meta");
    assert_prints("  step_after                     int64 []\n"
                  "  gradients/zeros_like           float [4,3]\n");
}

static void programs_read_it_as_json(void **state)
{
    (void)state;
    assert_runs(0, "$T show %s --format json --all", FILES "saved_model");
    assert_prints("\"format\":\"SavedModel\",\"text\":false,\"tensorflow\":\"2.21.0\",\"tags\":\"serve\",\"nodes_in_all\":149,"
                  "\"signatures\":[{\"name\":\"serving_default\",\"method\":\"tensorflow/serving/predict\",\"inputs\":[{"
                  "\"key\":\"images\",\"name\":\"x\",\"type\":\"float\",\"shape\":[-1,3]},");
    assert_prints("{\"name\":\"W\",\"type\":\"float\",\"shape\":[3,2],\"trainable\":true}");
    assert_prints("\"nodes\":[{\"name\":\"x\",\"op\":\"Placeholder\",\"device\":\"\"}");
}

static void what_is_no_graph_is_said(void **state)
{
    (void)state;
    assert_runs(1, "$T show nowhere.pb");
    assert_prints("tower show: cannot open 'nowhere.pb': No such file");
    assert_runs(1, "$T show .");
    assert_prints("is a directory without a saved_model.pb");
    assert_runs(2, "$T show");
    assert_prints("expected GRAPH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_is_in_a_file),
        cmocka_unit_test(ops_that_are_not_known_are_listed),
        cmocka_unit_test(functions_of_data_sets_are_no_inputs_or_outputs),
        cmocka_unit_test(what_gradients_and_optimizers_leave_over_is_counted),
        cmocka_unit_test(programs_read_it_as_json),
        cmocka_unit_test(what_is_no_graph_is_said),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
