/* test_run_command.c - `tower run`, as a user runs it on graphs that TensorFlow wrote. */
#include "program.h"

#include "golden/functions.h"
#include "golden/programs.h"

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

/* Nobody fills the queue. The signal is sent once the program handles it (number 15 is a bit of the fourth digit). */
static void who_waits_is_told_how_to_stop_at_once(void **state)
{
    (void)state;
    const char *graph =
        "node { name: 'q' op: 'FIFOQueueV2' attr { key: 'component_types' value { list { type: 1 } } } "
        "attr { key: 'shapes' value { list { shape { } } } } } node { name: 'x' op: 'QueueDequeueV2' input: 'q' "
        "attr { key: 'component_types' value { list { type: 1 } } } }";
    assert_runs(143,
                "echo \"%s\" >waits.pbtxt; $T run waits.pbtxt --fetch x 2>said & job=$!; "
                "seen 'SigCgt:.*[4567cdef][0-9a-f]\\{3\\}$' /proc/$job/status && kill -TERM $job; "
                "seen 'a second signal' said && { while kill -TERM $job; do sleep 0.2; done 2>killed; }; wait $job",
                graph);
    assert_runs(143, "mkfifo nobody; exec 8<>nobody; dd if=/dev/zero of=nobody oflag=nonblock 2>full; "
                     "$T run waits.pbtxt --fetch x 2>nobody & job=$!; " /* what it would say nobody reads */
                     "seen 'SigCgt:.*[4567cdef][0-9a-f]\\{3\\}$' /proc/$job/status; "
                     "for i in 1 2 3 4 5 6 7 8 9; do kill -TERM $job && sleep 0.2; done 2>killed; "
                     "kill -KILL $job 2>killed; wait $job");
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

static void what_outlives_a_run_is_told_and_what_is_no_file_stays(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --target train --fetch loss=loss.npy --steps 3 --save kept", GRAPH("towers"));
    assert_prints_not("step 3");
    assert_prints("loss.npy: loss, float []\nsaved as kept/model.ckpt-3\n");
    assert_runs(0, "$T run %s --fetch loss=loss.npy --format json", GRAPH("towers"));
    assert_prints_not("loss.npy");
    assert_runs(0, "mkfifo pipe && ln -s pipe link && $T run %s --target train --steps 3 --fetch loss=whole.npy",
                GRAPH("towers"));
    assert_runs(0, "cat pipe >through & $T run %s --target train --steps 3 --fetch loss=pipe && wait && test -p pipe",
                GRAPH("towers"));
    assert_runs(0, "cmp through whole.npy");
    assert_runs(0, "cat pipe >through & $T run %s --target train --steps 3 --fetch loss=link && wait && test -L link",
                GRAPH("towers"));
    assert_runs(0, "cmp through whole.npy");
    assert_runs(1, "$T run %s --fetch loss=nowhere/loss.npy", GRAPH("towers"));
    assert_prints("nowhere/loss.npy");
}

static void what_begins_runs_in_the_order_named(void **state)
{
    (void)state; /* the second turn copies v, which init has set and each turn adds to */
    assert_runs(0, "$T run %s --init init,cond/Merge,cond/Merge --fetch t", GOLDEN_DIR "/flow/looks_when_known.pb");
    assert_prints("t = [3] 1.390625 3.125 6.859375");
    assert_runs(1, "$T run %s --init cond/Merge,init --fetch t", GOLDEN_DIR "/flow/looks_when_known.pb");
    assert_prints("uninitialized");
}

/* Signatures of large models give more than a hundred values. */
static void hundreds_of_names_are_fetched(void **state)
{
    (void)state;
    assert_runs(0,
                "$T run %s --format json --fetch $(yes loss | head -n 300 | paste -sd,) | grep -o '\"loss\"' | wc -l",
                GRAPH("towers"));
    assert_prints("300\n");
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
    assert_runs(1, "printf \"node { name: 'a' op: 'Novel' } node { name: 'b' op: 'Identity' input: 'a' }\" > novel.pbtxt; "
                   "$T run novel.pbtxt --fetch b");
    assert_prints("it needs 'a': Op type not registered 'Novel'");
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
        tw_output x = tw_placeholder(tw_name(g, "%s", fed[i].name), fed[i].dtype, TW_SCALAR);
        tw_identity(tw_name(g, "%s", name), x);
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

static void store(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* ---- what is fed and fetched --------------------------------------------------------------------------------- */

#define FILES GOLDEN_DIR "/files/"

static void a_signatures_names_are_fed_and_fetched(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --signature serving_default --feed 'images=[[1,2,3]],names=[\"a,b\"]'", FILES "saved_model");
    assert_prints("step 1: named = [1] 'a,b' scores = [1,2] -50.09375 -25.421875\n");
    assert_runs(0, "$T run %s --feed 'images=[[1,2,3]],names=[\"a,b\"]'", FILES "saved_model");
    assert_prints("step 1: named = [1] 'a,b' scores = [1,2] -50.09375 -25.421875\n");
    assert_runs(2, "$T run %s", FILES "saved_model");
    assert_prints("nothing to run");
    assert_runs(0, "$T run %s --feed 'images=[1,2,3]' --fetch scores", FILES "saved_model_text");
    assert_prints("scores = [1,2] -50.09375 -25.421875\n");
    assert_runs(0, "$T run %s --feed 'words=[\"cat\",\"dog\"]' --fetch numbers", FILES "vocabulary");
    assert_prints("numbers = [2] 12 9");
    assert_runs(0, "echo dog >own.txt && $T run %s --feed 'words=[\"cat\",\"dog\"],path=own.txt' --fetch numbers",
                FILES "vocabulary");
    assert_prints("numbers = [2] 9 10");
    assert_runs(0, "$T run %s --fetch b,W", FILES "whole.meta"); /* the one a resource, the other a reference */
    assert_prints("b = [2] 0.125 -1 W = [3,2] 1 -2 0.5 4 3 0.25");
    assert_runs(2, "$T run %s --signature serving_defautl", FILES "saved_model");
    assert_prints("--signature: the graph has no 'serving_defautl'; did you mean 'serving_default'?");
    assert_runs(2, "$T run %s", FILES "saved_model");
    assert_prints("takes images (x)");
}

static void arrays_are_fed_and_written(void **state)
{
    (void)state;
    tw_error error = {0};
    char path[512];
    tw_tensor *batch = tw_tensor_from(TW_FLOAT64, TW_SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6}), *y;
    snprintf(path, sizeof path, "%s/batch.npy", directory);
    assert_ok(tw_tensor_write_npy(batch, path, &error));
    assert_runs(0, "$T run %s --feed x=@batch.npy --fetch y=y.npy,loss", FILES "whole.meta");
    assert_prints("step 1: loss = 229.867188\n");
    snprintf(path, sizeof path, "%s/y.npy", directory);
    assert_ok(tw_tensor_read_npy(path, &y, &error));
    static const float expected[] = {11.125f, 5.75f, 24.625f, 12.5f};
    assert_true(tw_shape_equal(tw_tensor_shape(y), TW_SHAPE(2, 2)));
    assert_floats_near(tw_tensor_data(y), expected, 4, 0);
    tw_tensor_release(y);
    tw_tensor_release(batch);
    assert_runs(0, "echo ' [[1, 2, 3],\n [4, 5, 6]]' > batch.txt; $T run %s --feed x=@batch.txt --fetch y --format json",
                FILES "whole.meta");
    assert_prints("{\"step\":1,\"y\":[[11.125,5.75],[24.625,12.5]]}");
    assert_runs(0, "printf 'a\\0b' > text; $T run %s --feed label=@text --fetch named=copy && cmp text copy",
                FILES "whole.meta");
}

/* A picture of 2 x 2 pixels: red, green; blue, white. */
static void a_picture_is_fed(void **state)
{
    (void)state;
    static const unsigned char png[] = {
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
        0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0xfd, 0xd4, 0x9a, 0x73, 0x00,
        0x00, 0x00, 0x12, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xc0, 0x00, 0xc2, 0x0c,
        0xff, 0x81, 0x00, 0x00, 0x1f, 0xee, 0x05, 0xfb, 0x0b, 0xd9, 0x68, 0x8b, 0x00, 0x00, 0x00, 0x00, 0x49,
        0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    char path[512];
    tw_error error = {0};
    void *bytes;
    size_t size;
    tw_graph *g = tw_graph_create();
    tw_identity(tw_name(g, "same"), tw_placeholder(tw_name(g, "x"), TW_FLOAT32, TW_SHAPE(-1, -1, -1, 3)));
    tw_identity(tw_name(g, "grey"), tw_placeholder(tw_name(g, "g"), TW_FLOAT32, TW_SHAPE(-1, 1, 1, 1)));
    assert_ok(tw_graph_export(g, &bytes, &size, &error));
    snprintf(path, sizeof path, "%s/pictures.pb", directory);
    store(path, bytes, size);
    snprintf(path, sizeof path, "%s/four.png", directory);
    store(path, png, sizeof png);
    tw_free(bytes);
    tw_graph_destroy(g);
    assert_runs(0, "$T run pictures.pb --feed x=@four.png,g=@four.png --fetch same,grey --format json");
    assert_prints("\"same\":[[[[255,0,0],[0,255,0]],[[0,0,255],[255,255,255]]]]");
    assert_prints("\"grey\":[[[[128]]]]");
    assert_runs(2, "$T run pictures.pb --feed x=@no.png --fetch same");
    assert_prints("no.png");
}

static void lists_are_read_as_they_are_meant(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"x=[[1,2,3],[4,5]]", "one list has 3 members, its neighbour 2"},
        {"x=[[1,2,3],4]", "a number stands beside a list"},
        {"x=[1,[2]]", "a list stands beside a number"},
        {"x=[[1,2,3]", "expected ']' at the end of a list"},
        {"x=[[1,2,3]]]", "expected nothing behind the list, found ']'"},
        {"x=[[1,2]]", "'x' is float: expected the shape [?,3], found [1,2]"},
        {"x=[[1,2,1e39]]", "expected a number that the type can hold, found '1e39'"},
        {"x=@nowhere.npy", "nowhere.npy"},
        {"label=[\"a]", "expected a quote at the end of a text"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_runs(2, "$T run %s --fetch y --feed '%s'", FILES "whole.meta", wrong[i][0]);
        assert_prints(wrong[i][1]);
    }
    assert_runs(0, "$T run %s --fetch named --feed 'label=[\"q\\u0000\\u00e4\\\"\",b c]' --format json", FILES "whole.meta");
    assert_prints("\"named\":[\"q\\u0000\xc3\xa4\\\"\",\"b c\"]");
    assert_runs(0, "$T run %s --fetch y --feed x=2", FILES "whole.meta");
    assert_prints("y = [1,2] 9.125 3.5\n");
}

/* A graph that gives of each type what it is fed. */
static void write_typed_graph(void)
{
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT64, TW_FLOAT16, TW_BFLOAT16, TW_INT64,  TW_INT32, TW_INT16,
                                     TW_INT8,    TW_UINT8,   TW_UINT16,  TW_UINT32,   TW_UINT64, TW_BOOL,  TW_STRING};
    char path[512], name[64];
    tw_error error = {0};
    void *bytes;
    size_t size;
    tw_graph *g = tw_graph_create();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(name, sizeof name, "to_%s", tw_dtype_name(types[i]));
        tw_output fed = tw_placeholder(tw_name(g, "%s", tw_dtype_name(types[i])), types[i], TW_UNKNOWN_SHAPE);
        tw_identity(tw_name(g, "%s", name), fed);
    }
    assert_ok(tw_graph_export(g, &bytes, &size, &error));
    snprintf(path, sizeof path, "%s/typed.pb", directory);
    store(path, bytes, size);
    tw_free(bytes);
    tw_graph_destroy(g);
}

static void values_of_every_type_are_fed_or_refused_by_what_the_type_holds(void **state)
{
    (void)state;
    static const struct {
        const char *type, *value, *prints; /* after "to_TYPE": as JSON */
        int code;
    } cases[] = {
        {"float", "1.5", "1.5", 0},
        {"float", "[]", "[]", 0},
        {"float", "[[], []]", "[[],[]]", 0},
        {"float", "[1, -inf, nan]", "[1,\"-Infinity\",\"NaN\"]", 0},
        {"double", "1e300", "1e+300", 0},
        {"half", "[0.5, 65504]", "[0.5,65504]", 0},
        {"half", "70000", "expected a number that the type can hold, found '70000'", 2},
        {"bfloat16", "[-2, 3.0e38]", "[-2,3.00", 0},
        {"int64", "[-9223372036854775808, 9223372036854775807]", "[-9223372036854775808,9223372036854775807]", 0},
        {"int64", "9223372036854775808", "found '9223372036854775808'", 2},
        {"int32", "2147483647", "2147483647", 0},
        {"int32", "2147483648", "found '2147483648'", 2},
        {"int16", "[-32768, 32767]", "[-32768,32767]", 0},
        {"int16", "32768", "found '32768'", 2},
        {"int8", "[-128, 127]", "[-128,127]", 0},
        {"int8", "-129", "found '-129'", 2},
        {"uint8", "[0, 255]", "[0,255]", 0},
        {"uint8", "-1", "found '-1'", 2},
        {"uint16", "[0, 65535]", "[0,65535]", 0},
        {"uint32", "4294967295", "4294967295", 0},
        {"uint32", "4294967296", "found '4294967296'", 2},
        {"uint64", "18446744073709551615", "18446744073709551615", 0},
        {"uint64", "18446744073709551616", "found '18446744073709551616'", 2},
        {"uint64", "-1", "found '-1'", 2},
        {"uint8", "1.5", "found '1.5'", 2},
        {"bool", "[true, false, 1, 0]", "[1,0,1,0]", 0},
        {"bool", "2", "found '2'", 2},
        {"bool", "truth", "found 'truth'", 2},
        {"string", "plain", "\"plain\"", 0},
        {"string", "\"in quotes\"", "\"in quotes\"", 0},
        {"string", "\"", "\"\\\"\"", 0},
        {"string", "[\"\\b\\f\\n\\r\\t\\\\\\q\", a b]", "[\"\\u0008\\u000c\\u000a\\u000d\\u0009\\\\q\",\"a b\"]", 0},
        {"string", "[\"\\u00e4\\u20ac\\u12\"]", "[\"\xc3\xa4\xe2\x82\xacu12\"]", 0},
        {"string", "[\"\\ud83d\\ude00\"]", "[\"\xf0\x9f\x98\x80\"]", 0},
        {"string", "[\"open]", "expected a quote at the end of a text", 2},
        {"float", "[[[[[[[[[[[[[1]]]]]]]]]]]]]", "expected at most 12 lists in each other", 2},
        {"float", "[1 2]", "[1,2]", 0},
        {"float", "[1,,2]", "expected a number that the type can hold, found ''", 2},
    };
    write_typed_graph();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_runs(cases[i].code, "$T run typed.pb --format json --fetch to_%s --feed '%s=%s'", cases[i].type,
                    cases[i].type, cases[i].value);
        assert_prints(cases[i].prints);
    }
    assert_runs(2, "$T run typed.pb --fetch to_int32 --feed \"int32=$(printf '1%%.0s' $(seq 600))\"");
    assert_prints("int32");
}

/* An array of one type for a placeholder of another: if it holds all of its numbers. */
static void arrays_of_other_types_are_fed_if_they_fit(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double number;
        const char *prints;
        int code;
    } cases[] = {
        {"float", 1.5, "[1.5]", 0},  {"double", 1.5, "[1.5]", 0},
        {"half", 1.5, "[1.5]", 0},   {"half", 1e6, "expected a number that the type can hold, found 1000000", 2},
        {"int32", -3, "[-3]", 0},    {"int32", 1.5, "found 1.5", 2},
        {"int16", 3e4, "[30000]", 0}, {"int16", 1e5, "found 100000", 2},
        {"uint8", -1, "found -1", 2}, {"bool", 1, "[1]", 0},
        {"int64", 5, "[5]", 0},      {"int8", 200, "found 200", 2},
    };
    char path[512];
    tw_error error = {0};
    write_typed_graph();
    snprintf(path, sizeof path, "%s/number.npy", directory);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_tensor *number = tw_tensor_from(TW_FLOAT64, TW_SHAPE(1), &cases[i].number);
        assert_ok(tw_tensor_write_npy(number, path, &error));
        tw_tensor_release(number);
        assert_runs(cases[i].code, "$T run typed.pb --format json --fetch to_%s --feed %s=@number.npy", cases[i].type,
                    cases[i].type);
        assert_prints(cases[i].prints);
    }
}

static void a_graph_is_trained_on_from_a_checkpoint(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --train-for 4 --fetch loss", GRAPH("towers"));
    char whole[64];
    snprintf(whole, sizeof whole, "%.20s", strstr(output, "step 4: "));
    assert_runs(0, "$T run %s --train-for 3 --save trained --save-every 2 && $T checkpoint ls trained", GRAPH("towers"));
    assert_prints("trained/model.ckpt-2");
    assert_prints("trained/model.ckpt-3");
    assert_runs(0, "$T run %s --restore trained --train-for 1 --fetch loss", GRAPH("towers"));
    assert_prints(whole);
}

/* A later TensorFlow's initializer, of an op that is not known. */
static void an_initial_value_that_a_checkpoint_has_need_not_be_made(void **state)
{
    (void)state;
    assert_runs(0, "sed '/name: \"W\\/initial_value\"/{n;s/Const/Novel/}' %s.pbtxt >novel.pbtxt; "
                   "$T run %s --feed x=1 --train-for 1 --save known", FILES "whole.meta", FILES "whole.meta");
    assert_runs(1, "$T run novel.pbtxt --feed x=1 --train-for 1 --fetch the_loss");
    assert_prints("it needs 'W/initial_value': Op type not registered 'Novel'");
    assert_runs(0, "$T run novel.pbtxt --restore known --feed x=1 --train-for 1");
}

/* As TensorFlow saves it: under the name of the whole, in parts. */
static void a_partitioned_variable_is_saved_and_restored(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --restore %s --fetch sums", FILES "parts.meta", FILES "parts");
    assert_prints("sums = [2] 40 5000\n");
    assert_runs(0, "$T run %s --init save/restore_all --feed save/Const=%s --fetch sums", FILES "parts.meta", FILES "parts");
    assert_prints("sums = [2] 40 5000\n");
    assert_runs(0, "$T run %s --target double --save parts && $T checkpoint show parts", FILES "parts.meta");
    assert_prints("m/table");
    assert_prints("[5,2]");
    assert_prints_not("part_0");
    assert_runs(0, "cmp parts/model.ckpt-1.index %s.index && cmp parts/model.ckpt-1.data-00000-of-00001 "
                   "%s.data-00000-of-00001", FILES "parts", FILES "parts");
    assert_runs(0, "$T run %s --fetch save/control_dependency --feed save/Const=own/parts && "
                   "$T run %s --restore own/parts --fetch sums", FILES "parts.meta", FILES "parts.meta");
    assert_prints("sums = [2] 20 2500\n");
}

/* As a Saver has them: by the last part of the table's name. */
static void what_tables_hold_is_saved_and_restored(void **state)
{
    (void)state;
    static const char graph[] =
        "node { name: \"in/t\" op: \"MutableHashTableV2\" attr { key: \"key_dtype\" value { type: DT_INT64 } }"
        " attr { key: \"value_dtype\" value { type: DT_INT64 } } }"
        "node { name: \"a/u\" op: \"MutableHashTableV2\" attr { key: \"key_dtype\" value { type: DT_INT64 } }"
        " attr { key: \"value_dtype\" value { type: DT_INT64 } } }"
        "node { name: \"b/u\" op: \"MutableHashTableV2\" attr { key: \"key_dtype\" value { type: DT_STRING } }"
        " attr { key: \"value_dtype\" value { type: DT_INT64 } } }"
        "node { name: \"k\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT64 } }"
        " attr { key: \"value\" value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 1 } } int64_val: 3 } } } }"
        "node { name: \"none\" op: \"Const\" attr { key: \"dtype\" value { type: DT_INT64 } }"
        " attr { key: \"value\" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: -1 } } } }"
        "node { name: \"found\" op: \"LookupTableFindV2\" input: \"in/t\" input: \"k\" input: \"none\""
        " attr { key: \"Tin\" value { type: DT_INT64 } } attr { key: \"Tout\" value { type: DT_INT64 } } }"
        "node { name: \"file\" op: \"Const\" attr { key: \"dtype\" value { type: DT_STRING } }"
        " attr { key: \"value\" value { tensor { dtype: DT_STRING tensor_shape { } string_val: \"tables\" } } } }"
        "node { name: \"names\" op: \"Const\" attr { key: \"dtype\" value { type: DT_STRING } }"
        " attr { key: \"value\" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } }"
        " string_val: \"t-keys\" string_val: \"t-values\" } } } }"
        "node { name: \"whole\" op: \"Const\" attr { key: \"dtype\" value { type: DT_STRING } }"
        " attr { key: \"value\" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } }"
        " string_val: \"\" string_val: \"\" } } } }"
        "node { name: \"save\" op: \"SaveV2\" input: \"file\" input: \"names\" input: \"whole\" input: \"k\""
        " input: \"k\" attr { key: \"dtypes\" value { list { type: DT_INT64 type: DT_INT64 } } } }";
    char path[600];
    snprintf(path, sizeof path, "%s/tables.pbtxt", directory);
    store(path, graph, sizeof graph - 1);
    assert_runs(0, "$T run tables.pbtxt --target save && "
                   "$T run tables.pbtxt --restore tables --fetch found --save own");
    assert_prints("found = [1] 3\n");
    assert_prints("what table 'b/u' holds is neither restored nor saved: another one's name ends alike");
    assert_runs(0, "$T checkpoint show own && $T run tables.pbtxt --restore own --fetch found");
    assert_prints("t-keys    int64");
    assert_prints("t-values  int64");
    assert_prints("found = [1] 3\n");
    assert_prints_not("u-keys");
}

/* What a metric counts with, for example, is of this run alone. */
static void local_variables_are_not_saved(void **state)
{
    (void)state;
#define VARIABLE(name)                                                                                                 \
    "node { name: \"" name "\" op: \"VariableV2\""                                                                     \
    " attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { } } } }"                  \
    "node { name: \"" name "/Assign\" op: \"Assign\" input: \"" name "\" input: \"one\" }"                             \
    "node { name: \"" name "/read\" op: \"Identity\" input: \"" name "\" }"
    static const char graph[] =
        "graph_def { node { name: \"one\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } }"
        " attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }"
        VARIABLE("seen") VARIABLE("kept") "}"
        "collection_def { key: \"local_variables\" value { bytes_list {"
        " value: \"\\n\\006seen:0\\022\\013seen/Assign\\032\\013seen/read:0\" } } }"
        "collection_def { key: \"variables\" value { bytes_list {"
        " value: \"\\n\\006kept:0\\022\\013kept/Assign\\032\\013kept/read:0\" } } }";
#undef VARIABLE
    char path[600];
    snprintf(path, sizeof path, "%s/locals.pbtxt", directory);
    store(path, graph, sizeof graph - 1);
    assert_runs(0, "$T run locals.pbtxt --fetch seen,kept --save locals && $T checkpoint show locals");
    assert_prints("seen = 1 kept = 1");
    assert_prints("kept    float");
    assert_prints_not("seen    float");
}

/* 0 / 0 has a sign on some processors. */
static void what_is_not_a_number_has_no_sign(void **state)
{
    (void)state;
    static const char graph[] =
        "node { name: \"zero\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } }"
        " attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }"
        "node { name: \"nothing\" op: \"RealDiv\" input: \"zero\" input: \"zero\" }"
        "node { name: \"opposite\" op: \"Neg\" input: \"nothing\" }";
    char path[600];
    snprintf(path, sizeof path, "%s/nothing.pbtxt", directory);
    store(path, graph, sizeof graph - 1);
    assert_runs(0, "$T run nothing.pbtxt --fetch nothing,opposite");
    assert_prints("nothing = nan opposite = nan\n");
}

static void a_graphs_own_summaries_are_written(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --feed x=1 --train-for 3 --summaries events --summaries-every 1 && "
                   "cat events/events.out.tfevents.* | grep -ac the_loss", FILES "whole.meta");
    assert_runs(0, "$T show events/events.out.tfevents.*");
    assert_prints("event file, 1");
}

static void soft_placement_is_told_once_as_a_table(void **state)
{
    (void)state;
    assert_runs(0, "$T run %s --fetch loss --target train --steps 3", GRAPH("towers"));
    const char *told = strstr(output, "soft placement");
    assert_non_null(told);
    assert_null(strstr(told + 1, "soft placement"));
    assert_prints("all that asked     43  /device:GPU:1  /device:CPU:0");
    assert_runs(0, "$T run %s --fetch loss --verbose", GRAPH("towers"));
    assert_prints("MatMul of float                               tower_1/hidden/MatMul ");
}

/* ---- programs of TensorFlow 1's kinds -------------------------------------------------------------------------- */

/* From the first values that the graph's own initializers draw. One thread: more have nothing to do in them. */
static void programs_train_with_tensorflows_losses(void **state)
{
    (void)state;
    enum { STEPS = sizeof golden_programs[0].losses / sizeof(float) };
    for (size_t i = 0; i < sizeof golden_programs / sizeof *golden_programs; i++) {
        const char *name = golden_programs[i].name;
        assert_runs(0,
                    "gzip -dc %s/programs/%s.meta.gz > %s.meta && "
                    "$T run %s.meta %s --steps %d --cpu-threads 1 --format json",
                    GOLDEN_DIR, name, name, name, golden_programs[i].arguments, STEPS);
        for (int step = 0; step < STEPS; step++) {
            char line[32];
            snprintf(line, sizeof line, "{\"step\":%d,", step + 1);
            assert_prints(line);
            float loss = (float)number_behind(strstr(output, line), golden_programs[i].fetched);
            float expected = golden_programs[i].losses[step];
            if (!(fabsf(loss - expected) <= golden_programs[i].spread * fabsf(expected)))
                fail_msg("%s, step %d: expected the loss %.9g, found %.9g", name, step + 1, expected, loss);
        }
    }
}

static void assert_function(const char *graph, const golden_function *golden, const char *options)
{
    enum { STEPS = sizeof golden->losses / sizeof(float) };
    assert_runs(0, "$T run %s --signature %s --feed x=0.75 --steps %d --format json %s", graph, golden->name, STEPS,
                options);
    for (int step = 0; step < STEPS; step++) {
        char line[32];
        snprintf(line, sizeof line, "{\"step\":%d,", step + 1);
        assert_prints(line);
        float loss = (float)number_behind(strstr(output, line), "loss"), expected = golden->losses[step];
        if (!(fabsf(loss - expected) <= 1e-5f * fabsf(expected)))
            fail_msg("%s, step %d: expected %.9g, found %.9g", golden->name, step + 1, expected, loss);
    }
}

static void signatures_of_tensorflow_2_train_as_they_do_there(void **state)
{
    (void)state;
    static const char *const devices[] = {"--cpu-threads 1", "--virtual-gpus 2"};
    assert_runs(0, "tar xzf %s/functions.tar.gz", GOLDEN_DIR);
    for (size_t i = 0; i < 2 * (sizeof golden_functions / sizeof *golden_functions); i++)
        assert_function("functions", &golden_functions[i / 2], devices[i % 2]);
}

/* All variables of these programs are called "Variable". */
static void a_checkpoint_of_objects_is_restored_by_the_keys_of_a_saved_model(void **state)
{
    (void)state;
    assert_runs(0, "tar xzf %s/functions.tar.gz", GOLDEN_DIR);
    assert_function("functions", &golden_later, "--restore functions/later/objects");
}

/* What TensorFlow reads by them was tried: tf.saved_model.load() of the model with such variables beside it. */
static void a_saved_model_is_saved_by_its_own_keys(void **state)
{
    (void)state;
    char expected[64];
    assert_runs(0, "tar xzf %s/functions.tar.gz && $T checkpoint show functions/variables/variables", GOLDEN_DIR);
    assert_prints("_CHECKPOINTABLE_OBJECT_GRAPH");
    assert_runs(0, "$T run functions --signature optimized --feed x=0.75 --steps 3 --save kept");
    assert_runs(0, "for set in functions/variables/variables kept; do $T checkpoint show $set | "
                   "awk '/ATTRIBUTES|OBJECT/ { print $1 }' >${set%%%%/*}.txt; done; diff functions.txt kept.txt");
    assert_runs(0, "$T run functions --signature optimized --feed x=0.75 --restore kept");
    snprintf(expected, sizeof expected, "%.60s", strstr(output, "loss"));
    assert_runs(0, "cp kept/*.index functions/variables/variables.index && "
                   "cp kept/*.data-00000-of-00001 functions/variables/variables.data-00000-of-00001 && "
                   "$T run functions --signature optimized --feed x=0.75");
    assert_prints(expected);
    /* the graph beside it knows them, too */
    assert_runs(0, "$T run kept --init Variable/IsInitialized/VarIsInitializedOp --restore kept --fetch Variable_6");
}

/* "rate" of the graph is trained and has the key by its name; "weight" is called "weight_1" there, and "weight" is what
 * was to initialize a copy: nothing gives it a value. TensorFlow goes on from the files in the same way. */
static void of_two_variables_of_one_object_what_is_trained_is_saved(void **state)
{
    (void)state;
    char expected[64];
    assert_runs(0, "tar xzf %s/functions.tar.gz && rm -rf kept", GOLDEN_DIR);
    assert_function("functions/objects", &golden_objects, "");
    assert_runs(0, "$T run functions/objects --signature objects --feed x=0.75 --steps 3 --save kept");
    assert_runs(0, "for set in functions/objects/variables/variables kept; do $T checkpoint show $set | "
                   "awk '/ATTRIBUTES|OBJECT|rate|weight|Var/ && !/variables$/ { print $1 }' >${set%%%%/*}.txt; done; "
                   "diff functions.txt kept.txt");
    assert_runs(0, "cp kept/*.index functions/objects/variables/variables.index && "
                   "cp kept/*.data-00000-of-00001 functions/objects/variables/variables.data-00000-of-00001 && "
                   "$T run functions/objects --signature objects --feed x=0.75");
    snprintf(expected, sizeof expected, "loss = %.9g", golden_objects.losses[3]);
    assert_prints(expected);
}

static void the_name_of_a_file_of_a_saved_model_is_no_variable_of_its_values(void **state)
{
    (void)state;
    assert_runs(0, "tar xzf %s/functions.tar.gz", GOLDEN_DIR);
    assert_function("functions/told", &golden_told, "");
    assert_function("functions/told", &golden_told, "--restore functions/told/variables/variables");
}

#define ELEMENTS                                                                                                       \
    "attr { key: 'output_types' value { list { type: DT_INT64 } } } "                                                 \
    "attr { key: 'output_shapes' value { list { shape { } } } } }\n"

static void an_iterator_without_data_names_what_gives_it_some(void **state)
{
    (void)state;
    assert_runs(1, "echo \"node { name: 'n' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } } "
                   "attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 2 } } } }\n"
                   "node { name: 'set' op: 'RangeDataset' input: 'n' input: 'n' input: 'n' " ELEMENTS
                   "node { name: 'it' op: 'IteratorV2' attr { key: 'shared_name' value { s: '' } } "
                   "attr { key: 'container' value { s: '' } } " ELEMENTS
                   "node { name: 'fill' op: 'MakeIterator' input: 'set' input: 'it' }\n"
                   "node { name: 'x' op: 'IteratorGetNext' input: 'it' " ELEMENTS "\" >empty.pbtxt; "
                   "$T run empty.pbtxt --fetch x");
    assert_prints("the iterator has not been initialized");
    assert_prints("tower run: what gives iterators their data is run by '--init fill'\n");
    assert_runs(0, "$T run empty.pbtxt --fetch x --init fill");
}

static void what_cannot_be_run_is_said(void **state)
{
    (void)state;
    assert_runs(2, "$T run %s", GRAPH("sgd"));
    assert_prints("name nodes with --fetch or --target\ninputs\n  x                              float [4,6]\n");
    assert_prints("outputs that nobody takes\n  loss ");
    assert_prints("what can be run and gives nothing\n  init\n");
    assert_runs(2, "$T run %s --fetch los", GRAPH("sgd"));
    assert_prints("the graph has no node 'los'; did you mean 'loss'?");
    assert_runs(2, "$T run %s --fetch loss --feed x=1 --feed x=2", GRAPH("sgd"));
    assert_prints("--feed: 'x' is fed twice");
    assert_runs(2, "$T run %s --fetch total --train-for 2", GRAPH("saver"));
    assert_prints("no collection 'train_op'");
    assert_runs(2, "$T run %s --fetch init", GRAPH("sgd"));
    assert_prints("'init' has no outputs; --target runs it");
    assert_runs(2, "$T run %s --fetch loss --feed x", GRAPH("sgd"));
    assert_prints("--feed: expected NAME=VALUE, found 'x'");
    assert_runs(1, "$T run %s --fetch loss --feed x=1", GRAPH("sgd"));
    assert_prints("You must feed a value for placeholder tensor 'y' with dtype int32 and shape [4]");
    assert_runs(0, "$T run %s --fetch loss --feed x=1,y=2", GRAPH("sgd"));
    const char *raw = "node { name: \"bytes\" op: \"Const\" attr { key: \"dtype\" value { type: DT_STRING } } attr { key: \"value\" "
                      "value { tensor { dtype: DT_STRING tensor_shape { } string_val: \"abc\" } } } } node { name: \"y\" "
                      "op: \"DecodeRaw\" input: \"bytes\" attr { key: \"out_type\" value { type: DT_FLOAT } } }";
    assert_runs(1, "echo '%s' >raw.pbtxt && $T run raw.pbtxt --fetch y", raw);
    assert_prints("DecodeRaw 'y': element 0 has 3 bytes, no multiple of 4");
    assert_runs(1, "$T run nowhere.pb --fetch loss");
    assert_prints("cannot open 'nowhere.pb': No such file");
    assert_runs(1, "$T run %s --fetch loss --soft-placement off", GRAPH("towers"));
    assert_prints("Cannot assign a device for operation");
    assert_runs(1, "$T run %s --fetch loss --target train", GRAPH("queues_tasks"));
    assert_prints("Cannot assign a device for operation");
    assert_prints("the graph has nodes for 2 tasks of job worker and 0 of job ps, and 1 task was started: 'tower "
                  "launch --tasks 2' or 'mpirun -n 2' before the command starts as many");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_prints_what_is_fetched_step_by_step),
        cmocka_unit_test(data_from_queues_end_well),
        cmocka_unit_test(who_waits_is_told_how_to_stop_at_once),
        cmocka_unit_test(variables_are_saved_and_restored),
        cmocka_unit_test(what_outlives_a_run_is_told_and_what_is_no_file_stays),
        cmocka_unit_test(what_begins_runs_in_the_order_named),
        cmocka_unit_test(hundreds_of_names_are_fetched),
        cmocka_unit_test(a_graphs_own_saver_saves_and_restores),
        cmocka_unit_test(numbers_are_printed_with_all_their_digits),
        cmocka_unit_test(what_is_no_number_of_a_placeholders_type_is_not_fed),
        cmocka_unit_test(a_signatures_names_are_fed_and_fetched),
        cmocka_unit_test(arrays_are_fed_and_written),
        cmocka_unit_test(a_picture_is_fed),
        cmocka_unit_test(lists_are_read_as_they_are_meant),
        cmocka_unit_test(values_of_every_type_are_fed_or_refused_by_what_the_type_holds),
        cmocka_unit_test(arrays_of_other_types_are_fed_if_they_fit),
        cmocka_unit_test(a_graph_is_trained_on_from_a_checkpoint),
        cmocka_unit_test(an_initial_value_that_a_checkpoint_has_need_not_be_made),
        cmocka_unit_test(a_partitioned_variable_is_saved_and_restored),
        cmocka_unit_test(what_tables_hold_is_saved_and_restored),
        cmocka_unit_test(local_variables_are_not_saved),
        cmocka_unit_test(what_is_not_a_number_has_no_sign),
        cmocka_unit_test(a_graphs_own_summaries_are_written),
        cmocka_unit_test(soft_placement_is_told_once_as_a_table),
        cmocka_unit_test(programs_train_with_tensorflows_losses),
        cmocka_unit_test(signatures_of_tensorflow_2_train_as_they_do_there),
        cmocka_unit_test(a_checkpoint_of_objects_is_restored_by_the_keys_of_a_saved_model),
        cmocka_unit_test(a_saved_model_is_saved_by_its_own_keys),
        cmocka_unit_test(of_two_variables_of_one_object_what_is_trained_is_saved),
        cmocka_unit_test(the_name_of_a_file_of_a_saved_model_is_no_variable_of_its_values),
        cmocka_unit_test(an_iterator_without_data_names_what_gives_it_some),
        cmocka_unit_test(what_cannot_be_run_is_said),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
