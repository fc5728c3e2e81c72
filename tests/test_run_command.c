/* test_run_command.c - `tower run`, as a user runs it on graphs that TensorFlow wrote. */
#include "program.h"

#define GRAPH(name) GOLDEN_DIR "/tf1_" name ".meta"

static void it_prints_what_is_fetched_step_by_step(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --fetch loss --target train --steps 3", GRAPH("towers"));
    assert_prints("step 1: loss = 2.1301");
    assert_prints("step 3: loss = 2.0860");
    assert_runs(0, "$T run %s --fetch loss,hidden/biases/read --target train --steps 4 --print-every 2 --virtual-gpus 2",
                GRAPH("towers"));
    assert_prints("step 2: loss = 2.1079");
    assert_prints(" hidden/biases/read = [5] ");
    assert_prints_not("step 3");
    assert_runs(0, "$T run %s --fetch loss --format json", GRAPH("towers"));
    assert_prints("{\"step\":1,\"loss\":2.1301");
}

static void data_from_queues_end_well(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --fetch loss --target train --steps 100", GRAPH("queues"));
    assert_prints("step 6: loss = 1.087");
    assert_prints("the data ended after 6 steps");
}

static void variables_are_saved_and_restored(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --fetch loss --target train --steps 5", GRAPH("towers"));
    char whole[64];
    snprintf(whole, sizeof whole, "%.20s", strstr(output, "step 5: ") + strlen("step 5: "));
    assert_runs(0, "$T run %s --target train --steps 4 --save saved", GRAPH("towers"));
    assert_runs(0, "$T run %s --restore saved --fetch loss", GRAPH("towers"));
    assert_prints(whole);
}

static void a_graphs_own_saver_saves_and_restores(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --init save/restore_all --feed save/Const=%s/tf1_saver --fetch total --target train", GRAPH("saver"),
                GOLDEN_DIR);
    assert_runs(0, "$T run %s --init init --feed save/Const=here/model --fetch save/control_dependency && "
                   "$T checkpoint ls here", GRAPH("saver"));
    assert_prints("save/control_dependency = 'here/model'");
    assert_prints("model");
    assert_runs(1, "$T run %s --fetch needs_upper", GRAPH("saver"));
    assert_prints("it needs 'upper': Op type not registered 'StringUpper'");
}

static void what_cannot_be_run_is_said(void **state)
{
    (void)state;
    assert_runs(2, "$T run %s", GRAPH("sgd"));
    assert_prints("name nodes with --fetch or --target");
    assert_runs(2, "$T run %s --fetch los", GRAPH("sgd"));
    assert_prints("the graph has no node 'los'");
    assert_runs(2, "$T run %s --fetch init", GRAPH("sgd"));
    assert_prints("'init' has no outputs; --target runs it");
    assert_runs(2, "$T run %s --fetch loss --feed x", GRAPH("sgd"));
    assert_prints("--feed: expected NAME=NUMBER, found 'x'");
    assert_runs(1, "$T run %s --fetch loss --feed x=1", GRAPH("sgd"));
    assert_prints("You must feed a value for placeholder tensor 'y' with dtype int32 and shape [4]");
    assert_runs(0, "$T run %s --fetch loss --feed x=1,y=2", GRAPH("sgd"));
    assert_runs(1, "$T run nowhere.pb --fetch loss");
    assert_prints("cannot read 'nowhere.pb': No such file");
    assert_runs(1, "$T run %s --fetch loss --soft-placement off", GRAPH("towers"));
    assert_prints("Cannot assign a device for operation");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_prints_what_is_fetched_step_by_step),
        cmocka_unit_test(data_from_queues_end_well),
        cmocka_unit_test(variables_are_saved_and_restored),
        cmocka_unit_test(a_graphs_own_saver_saves_and_restores),
        cmocka_unit_test(what_cannot_be_run_is_said),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
