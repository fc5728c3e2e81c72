/* test_run_command.c - `tower run`, as a user runs it on graphs that TensorFlow wrote. */
#include "program.h"

#include <math.h>
#include <tower/tower.h>

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

/* A graph that passes on what is fed, and has what is hard to write down. */
static const char *write_values(void)
{
    static char path[512];
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    static const struct {
        const char *name;
        tw_dtype dtype;
    } fed[] = {{"i", TW_INT32}, {"l", TW_INT64}, {"d", TW_FLOAT64}, {"f", TW_FLOAT32}, {"h", TW_FLOAT16}, {"u", TW_UINT8},
               {"b", TW_BOOL}};
    for (size_t i = 0; i < sizeof fed / sizeof *fed; i++) {
        char name[8];
        snprintf(name, sizeof name, "%s2", fed[i].name);
        tw_output x = tw_placeholder(tw_name(g, fed[i].name), fed[i].dtype, TW_SCALAR);
        tw_identity(tw_name(g, name), x);
    }
    tw_constant_floats(tw_name(g, "odd"), TW_SHAPE(4), (float[]){NAN, INFINITY, -INFINITY, 0.1f});
    tw_tensor *texts = tw_tensor_create(TW_STRING, TW_SHAPE(2));
    tw_tensor_set_string(texts, 0, "a\0b", 3);
    tw_tensor_set_string(texts, 1, "\xff\xc3\xa9", 3);
    tw_constant(tw_name(g, "texts"), texts);
    tw_tensor_release(texts);
    void *bytes;
    size_t size;
    assert_ok(tw_graph_export(g, &bytes, &size, &error));
    snprintf(path, sizeof path, "%s/values.pb", directory);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    tw_free(bytes);
    tw_graph_destroy(g);
    return path;
}

static void numbers_are_printed_with_all_their_digits(void **state)
{
    (void)state;
    const char *graph = write_values();
    assert_runs(0, "$T run %s --fetch l2,d2,f2 --feed l=9007199254740993,d=0.1,f=0.1 --format json", graph);
    assert_prints("{\"step\":1,\"l2\":9007199254740993,\"d2\":0.10000000000000001,\"f2\":0.100000001}");
    assert_runs(0, "$T run %s --fetch l2 --feed l=-9223372036854775808", graph);
    assert_prints("l2 = -9223372036854775808\n");
    assert_runs(0, "$T run %s --fetch odd,texts --format json", graph);
    assert_prints("\"odd\":[\"NaN\",\"Infinity\",\"-Infinity\",0.100000001],\"texts\":[\"a\\u0000b\",\"\\ufffd\xc3\xa9\"]}");
    assert_runs(0, "$T run %s --fetch odd,texts", graph);
    assert_prints("odd = [4] nan inf -inf 0.100000001 texts = [2] 'a\\x00b' '\\xff\xc3\xa9'\n");
}

static void what_is_no_number_of_a_placeholders_type_is_not_fed(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"i=1.5", "'i' is int32: expected a whole number from -2147483648 to 2147483647, found '1.5'"},
        {"i=2147483648", "found '2147483648'"},
        {"l=9223372036854775808", "expected a whole number from -9223372036854775808 to 9223372036854775807"},
        {"u=-1", "expected a whole number from 0 to 255, found '-1'"},
        {"b=2", "'b' is bool: expected 0 or 1, found '2'"},
        {"f=1e39", "'f' is float: expected a number that the type can hold, found '1e39'"},
        {"h=70000", "'h' is half: expected a number that the type can hold"},
        {"d=1e999", "'d' is double: expected a number, found '1e999'"},
        {"d=", "expected a number, found ''"},
        {"d=1x", "found '1x'"},
    };
    const char *graph = write_values();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_runs(2, "$T run %s --fetch %c2 --feed %s", graph, wrong[i][0][0], wrong[i][0]);
        assert_prints(wrong[i][1]);
    }
    assert_runs(0, "$T run %s --fetch i2,d2,f2,h2,u2,b2 --feed i=-2147483648,d=1e308,f=inf,h=-65504,u=255,b=1", graph);
    assert_prints("i2 = -2147483648 d2 = 1e+308 f2 = inf h2 = -65504 u2 = 255 b2 = 1");
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
        cmocka_unit_test(numbers_are_printed_with_all_their_digits),
        cmocka_unit_test(what_is_no_number_of_a_placeholders_type_is_not_fed),
        cmocka_unit_test(what_cannot_be_run_is_said),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
