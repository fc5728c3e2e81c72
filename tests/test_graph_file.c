/* Graphs in files of every kind that TensorFlow writes (golden/make_files.py made them), and arrays of NumPy's. */
#include "testing.h"

#include <tower/tower.h>
#include <unistd.h>

#define FILES GOLDEN_DIR "/files/"

static const struct {
    const char *path, *format, *writer;
    bool is_text;
    int signatures;
} files[] = {
    {FILES "saved_model", "SavedModel", "2.21.0", false, 1},
    {FILES "saved_model/saved_model.pb", "SavedModel", "2.21.0", false, 1},
    {FILES "saved_model_text", "SavedModel", "2.21.0", true, 1},
    {FILES "whole.meta", "MetaGraphDef", "2.21.0", false, 0},
    {FILES "whole.meta.pbtxt", "MetaGraphDef", "2.21.0", true, 0},
    {FILES "graph.pbtxt", "GraphDef", "", true, 0},
    {FILES "events", "event file", "2.21.0", false, 0},
    {GOLDEN_DIR "/tf1_old.pb", "GraphDef", "", false, 0},
};
enum { FILES_IN_ALL = sizeof files / sizeof *files };

static void a_file_is_known_by_what_is_in_it(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int i = 0; i < FILES_IN_ALL; i++) {
        tw_graph *graph = tw_graph_create();
        tw_graph_about *about = NULL;
        assert_ok(tw_graph_load(graph, files[i].path, NULL, &about, &error));
        assert_string_equal(about->format, files[i].format);
        assert_string_equal(about->writer, files[i].writer);
        assert_int_equal(about->is_text, files[i].is_text);
        assert_int_equal(about->num_signatures, files[i].signatures);
        assert_true(tw_graph_num_nodes(graph) > 5);
        tw_graph_about_destroy(about);
        tw_graph_destroy(graph);
    }
}

/* What two graphs compute of the same numbers; those of the model's loss after one step are in make_files.py's
 * output. */
static double loss_of(const char *path, const char *checkpoint)
{
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    tw_session *session;
    tw_tensor *result = NULL;
    assert_ok(tw_graph_load(graph, path, NULL, NULL, &error));
    assert_ok(tw_session_create(graph, NULL, &session, &error));
    if (checkpoint) {
        tw_checkpoint *saved;
        assert_ok(tw_checkpoint_open(checkpoint, &saved, &error));
        assert_ok(tw_restore(session, saved, NULL, NULL, &error));
        tw_checkpoint_close(saved);
    }
    tw_tensor *x = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6});
    tw_feed feed = {tw_node_output(tw_graph_find(graph, "x"), 0), x};
    tw_output loss = tw_node_output(tw_graph_find(graph, "loss"), 0);
    assert_ok(tw_session_run(session, &feed, 1, &loss, 1, &result, &error));
    double value = tw_tensor_value(result, 0);
    tw_tensor_release(result);
    tw_tensor_release(x);
    tw_session_destroy(session);
    tw_graph_destroy(graph);
    return value;
}

static void every_file_holds_the_same_graph(void **state)
{
    (void)state;
    const char *values = FILES "saved_model/variables/variables";
    for (int i = 0; i < FILES_IN_ALL - 1; i++)
        assert_float_equal(loss_of(files[i].path, values), 5200.54, 0.01);
}

static void a_signature_says_what_is_fed_and_fetched(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    tw_graph_about *about;
    assert_ok(tw_graph_load(graph, FILES "saved_model", NULL, &about, &error));
    const tw_signature *s = &about->signatures[0];
    assert_string_equal(s->name, "serving_default");
    assert_string_equal(s->method, "tensorflow/serving/predict");
    assert_int_equal(s->num_inputs, 2);
    assert_int_equal(s->num_outputs, 2);
    assert_string_equal(s->inputs[0].name, "images");
    assert_ptr_equal(s->inputs[0].output.node, tw_graph_find(graph, "x"));
    assert_string_equal(s->inputs[1].name, "names");
    assert_string_equal(s->outputs[0].name, "named");
    assert_string_equal(s->outputs[1].name, "scores");
    assert_string_equal(about->tags, "serve");
    assert_message(about->variables, "files/saved_model/variables/variables");
    assert_ptr_equal(about->saver_restore.node, tw_graph_find(graph, "save_1/restore_all"));
    tw_graph_about_destroy(about);
    tw_graph_destroy(graph);
}

static void variables_begin_with_their_own_initializers(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    assert_ok(tw_graph_load(graph, FILES "whole.meta", NULL, NULL, &error));
    static const char *const names[][2] = {{"W", "W/Assign"}, {"b", "b/Assign"}, {"global_step", "global_step/Assign"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tw_variable *variable = tw_graph_find_variable(graph, names[i][0]);
        assert_non_null(variable);
        assert_string_equal(tw_node_name(variable->initializer.node), names[i][1]);
    }
    assert_int_equal(tw_get_collection(graph, "trainable_variables", NULL, NULL, 0), 2);
    bool found = false;
    for (int i = 0; i < tw_graph_num_collections(graph); i++)
        found |= strcmp(tw_graph_collection(graph, i), "train_op") == 0;
    assert_true(found);
    assert_null(tw_graph_collection(graph, tw_graph_num_collections(graph)));
    tw_graph_destroy(graph);
}

static const char *write_file(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/tower-graph-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void what_is_no_text_of_a_graph_is_refused_by_line(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"node {\n  name: 'a'\n  op 'Const'\n}", "line 3: expected ':' or '{', found ''Const''"},
        {"node {\n  name: 'a\n}", "line 2: expected the quote that ends a text"},
        {"node {\n  name: a\n}", "line 2: expected a text in quotes, found 'a'"},
        {"node { name: 'a'\n", "expected '}'"},
        {"node { name: 'a' op: 'Const' attr { key: 'dtype' value { type: DT_FLOATS } } }",
         "expected the name of a type, as DT_FLOAT, found 'DT_FLOATS"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value { i: 1.5 } } }", "expected a whole number, found '1.5"},
        {"versions { producer: 134 } node 3", "expected ':' or '{'"},
        {"node { name: 'a' op: 'Const' attr { key: 'dtype' value { type: } } }", "expected a value, found '}"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value { i: 99999999999999999999 } } }",
         "expected a whole number"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value { f: 1.5x } } }", "expected a number, found '1.5x"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value { i: 'x' } } }", "expected a number or a word"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value: 3 } }", "expected a message in braces, found '3"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value { list { i: [1 2] } } } }",
         "expected ',' or ']', found '2"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value { list { i: [1,", "expected a value"},
        {"node < name: 'a' op: 'NoOp' }", "expected the name of a field, found '}"},
        {"node < name: 'a' op: 'NoOp'", "expected '>'"},
        {"node { name: 'a\\", "expected the quote that ends a text"},
        {"node { name: 'a' op: 'NoOp' [any", "expected ':' or '{'"},
        {"node { name: 'a' op: 'NoOp' attr { key: 'n' value { b: maybe } } }", "expected true or false"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tw_error error = {0};
        tw_graph *graph = tw_graph_create();
        const char *path = write_file(wrong[i][0]);
        assert_fails(tw_graph_load(graph, path, NULL, NULL, &error), TW_INVALID_ARGUMENT, wrong[i][1]);
        assert_message(error.message, path);
        assert_int_equal(tw_graph_num_nodes(graph), 0);
        unlink(path);
        tw_graph_destroy(graph);
    }
}

/* Before a node is added, what it calls a variant is told by its attributes and inputs. */
static void variants_are_told_of_attributes_of_their_kind_alone(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"node { name: 's' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT64 } } }\n"
         "node { name: 'v' op: 'Placeholder' attr { key: 'dtype' value { type: DT_VARIANT } } }\n"
         "node { name: 'n' op: 'RaggedTensorToVariant' input: ['s', 'v'] attr { key: 'RAGGED_RANK' value { i: -5 } }\n"
         "  attr { key: 'Tvalues' value { type: DT_VARIANT } } attr { key: 'batched_input' value { b: true } } }",
         "RAGGED_RANK"},
        {"node { name: 's' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT64 } } }\n"
         "node { name: 'v' op: 'Placeholder' attr { key: 'dtype' value { type: DT_VARIANT } } }\n"
         "node { name: 'n' op: 'RaggedTensorToVariant' input: ['s', 'v'] attr { key: 'RAGGED_RANK' value { f: -5 } }\n"
         "  attr { key: 'Tvalues' value { type: DT_VARIANT } } attr { key: 'batched_input' value { b: true } } }",
         "attribute 'RAGGED_RANK' is a float, expected an int"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tw_error error = {0};
        tw_graph *graph = tw_graph_create();
        const char *path = write_file(wrong[i][0]);
        assert_fails(tw_graph_load(graph, path, NULL, NULL, &error), TW_INVALID_ARGUMENT, wrong[i][1]);
        assert_message(error.message, "'n'");
        unlink(path);
        tw_graph_destroy(graph);
    }
}

/* Numbers where shapes are expected: so many that as shapes they would lie far beyond their memory. */
static void numbers_are_not_looked_at_as_shapes(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    char *text = malloc(COUNT * 32 + 500), *at = text;
    at += sprintf(at, "node { name: 'n' op: 'IteratorV2' attr { key: 'output_shapes' value { list { i: 1");
    for (int i = 1; i < COUNT; i++)
        at += sprintf(at, " i: 1");
    at += sprintf(at, " } } } attr { key: 'output_types' value { list { type: DT_VARIANT");
    for (int i = 1; i < COUNT; i++)
        at += sprintf(at, " type: DT_VARIANT");
    sprintf(at, " } } } }");
    const char *path = write_file(text);
    free(text);
    assert_fails(tw_graph_load(graph, path, NULL, NULL, &error), TW_INVALID_ARGUMENT,
                 "IteratorV2 'n': attribute 'output_shapes' is ");
    unlink(path);
    tw_graph_destroy(graph);
}

static void a_text_may_be_written_in_all_its_ways(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    const char *path = write_file("# a graph\n"
                                  "version: 0\nnot_known { inner: [1, 2.5, 'x'] [type.of/any] { more: -3 } };\n"
                                  "node < name: \"te\" 'xt', op: 'Const' attr { key: 'dtype' value { type: 7 } }\n"
                                  "  attr { key: 'value' value { tensor { dtype: DT_STRING\n"
                                  "    tensor_shape { dim { size: 3 } }\n"
                                  "    string_val: ['a\\000b\\x21\\n\\x4111\\1011', '\\303\\244',\n"
                                  "      \"\\X4a\\x4g\\7\\'\\\"\\q\"] } } } >\n"
                                  "node { name: 'f' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }\n"
                                  "  attr { key: 'value' value { tensor { dtype: DT_FLOAT float_val: -1.5e0f } } } }\n"
                                  "node { name: 'd' op: 'Const' attr { key: 'dtype' value { type: DT_DOUBLE } }\n"
                                  "  attr { key: 'value' value { tensor { dtype: DT_DOUBLE double_val: -inf } } } }\n"
                                  "node { name: 't' op: 'Const' attr { key: 'dtype' value { type: DT_BOOL } }\n"
                                  "  attr { key: 'value' value { tensor { dtype: DT_BOOL\n"
                                  "    tensor_shape { dim { size: 6 } }\n"
                                  "    bool_val: [true, false, t, f, 1, 0] } } } }\n"
                                  "versions { producer: 0x80 bad_consumers: [] }");
    assert_ok(tw_graph_load(graph, path, &(tw_load_options){.prefix = "in"}, NULL, &error));
    unlink(path);
    const tw_tensor *text = tw_node_attr(tw_graph_find(graph, "in/text"), "value")->tensor;
    const tw_string *strings = tw_tensor_data(text);
    assert_int_equal(strings[0].size, 10);
    assert_memory_equal(strings[0].data, "a\0b!\nA11A1", 10);
    assert_memory_equal(strings[1].data, "\xc3\xa4", 2);
    assert_string_equal(strings[2].data, "J\x04g\a'\"q");
    assert_true(tw_node_attr(tw_graph_find(graph, "in/t"), "value")->tensor != NULL);
    assert_int_equal(tw_tensor_value(tw_node_attr(tw_graph_find(graph, "in/t"), "value")->tensor, 1), 0);
    assert_int_equal(tw_tensor_value(tw_node_attr(tw_graph_find(graph, "in/t"), "value")->tensor, 2), 1);
    assert_float_equal(tw_tensor_value(tw_node_attr(tw_graph_find(graph, "in/d"), "value")->tensor, 0), -INFINITY, 0);
    assert_float_equal(tw_tensor_value(tw_node_attr(tw_graph_find(graph, "in/f"), "value")->tensor, 0), -1.5, 0);
    tw_graph_destroy(graph);
}

/* As TensorFlow 1 names them, packed or in fields; a text that names other things there is passed over. */
static void a_text_names_the_files_of_a_model(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    tw_graph_about *about = NULL;
    const char *path = write_file(
        "meta_info_def { tags: 'serve' } graph_def { node { name: 'x' op: 'Placeholder'\n"
        "  attr { key: 'dtype' value { type: DT_STRING } } }\n"
        "  node { name: 'y' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } } }\n"
        "collection_def { key: 'saved_model_assets' value { any_list {\n"
        "  value { type_url: 'type.googleapis.com/tensorflow.AssetFileDef'\n"
        "    value: '\\n\\005\\n\\003x:0\\022\\005a.txt' }\n"
        "  value { [type.googleapis.com/tensorflow.AssetFileDef] < tensor_info { name: 'y:0' } filename: 'b.txt' > }\n"
        "  value { [type.googleapis.com/tensorflow.AssetFileDes] { filename: 'c.txt' } }\n"
        "} } }\n"
        "collection_def { key: 'others' value { any_list {\n"
        "  value { [type.googleapis.com/a.B] { filename: 'c' } } } }\n"
        "  [type.googleapis.com/tensorflow.AssetFileDef] { filename: 'd' } }");
    assert_ok(tw_graph_load(graph, path, NULL, &about, &error));
    unlink(path);
    assert_int_equal(about->num_assets, 2);
    assert_string_equal(about->assets[0].name, "a.txt");
    assert_string_equal(about->assets[1].name, "b.txt");
    tw_graph_about_destroy(about);
    tw_graph_destroy(graph);
    static const char *const wrong[][2] = {{": 1", "a message in braces"}, {" { filename: 3 }", "a text in quotes"}};
    for (int i = 0; i < 2; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "meta_info_def { } collection_def { value { any_list {\n"
                 "  value { [type.googleapis.com/tensorflow.AssetFileDef]%s } } } }", wrong[i][0]);
        path = write_file(text);
        graph = tw_graph_create();
        assert_fails(tw_graph_load(graph, path, NULL, NULL, &error), TW_INVALID_ARGUMENT, wrong[i][1]);
        unlink(path);
        tw_graph_destroy(graph);
    }
}

/* All that a MetaGraphDef says beside its nodes, and a packed VariableDef. */
static const char *const meta_graph[] = {
    "meta_info_def { tags: 'serve' tags: 'gpu' tensorflow_version: '2.0' }",
    "graph_def { node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }",
    "node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }",
    "attr { key: 'shape' value { shape { dim { size: 1 } } } } }",
    "node { name: 'r' op: 'ReadVariableOp' input: 'v' attr { key: 'dtype' value { type: DT_FLOAT } } }",
    "node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }",
    "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 1 } } } }",
    "node { name: 'a' op: 'AssignVariableOp' input: 'v' input: 'c'",
    "attr { key: 'dtype' value { type: DT_FLOAT } } } node { name: 'n' op: 'NoOp' input: '^a' } }",
    "saver_def { filename_tensor_name: 'x:0'",
    "save_tensor_name: 'x:0'",
    "restore_op_name: 'n' }",
    "collection_def { key: 'losses' value { node_list { value: 'r:0' value: 'c:0' } } }",
    "collection_def { key: 'train_op' value { node_list { value: 'n' } } }",
    "collection_def { key: 'trainable_variables' value { bytes_list {",
    "value: '\\n\\003v:0\\022\\001a\\032\\003r:0(\\0012\\003c:0' } } }",
    "collection_def { key: 'saved_model_main_op' value { node_list { value: 'n' } } }",
    "signature_def { key: 'serving_default' value { method_name: 'tensorflow/serving/predict'",
    "inputs { key: 'in' value { name: 'x:0' dtype: DT_STRING tensor_shape { unknown_rank: true } } }",
    "inputs { key: 'parts' value { coo_sparse { values_tensor_name: 'x:0' indices_tensor_name: 'r:0'",
    "dense_shape_tensor_name: 'c:0' } } } inputs { key: 'two' value { composite_tensor {",
    "components { name: 'r:0' } components { name: 'c:0' } } } }",
    "outputs { key: 'out' value { name: 'r:0' dtype: DT_FLOAT tensor_shape { dim { size: 1 } } } } } }",
    "signature_def { key: '__saved_model_init_op' value { outputs { key: '__saved_model_init_op'",
    "value { name: 'n' } } } }",
    "asset_file_def { tensor_info { name: 'x:0' } filename: 'words.txt' }",
};
enum { META_LINES = sizeof meta_graph / sizeof *meta_graph, MOST_TEXTS = 12 };

/* The line with its number-th text in quotes replaced; false: it has no such text. */
static bool changed_line(char *to, size_t size, const char *line, int number, const char *other)
{
    const char *begin = strchr(line, '\''), *end = begin ? strchr(begin + 1, '\'') : NULL;
    for (; end && number > 0; number--) {
        begin = strchr(end + 1, '\'');
        end = begin ? strchr(begin + 1, '\'') : NULL;
    }
    if (end)
        snprintf(to, size, "%.*s%s%s\n", (int)(begin + 1 - line), line, other, end);
    return end;
}

/* Whether the lines are a graph, with another in place of line `at`. */
static bool reads_meta_graph(int at, const char *other)
{
    char text[8000];
    size_t used = 0;
    tw_error error = {0};
    tw_graph_about *about = NULL;
    tw_graph *graph = tw_graph_create();
    for (int i = 0; i < META_LINES; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", i == at ? other : meta_graph[i]);
    const char *path = write_file(text);
    tw_status status = tw_graph_load(graph, path, NULL, &about, &error);
    if (status != TW_OK && (status == TW_INTERNAL || !strstr(error.message, path)))
        fail_msg("line %d is '%s': status %d, \"%s\"", at, other, status, error.message);
    if (status != TW_OK && strstr(error.message, ", which is not in the graph"))
        assert_int_equal(status, TW_NOT_FOUND);
    tw_graph_about_destroy(about);
    tw_graph_destroy(graph);
    unlink(path);
    return status == TW_OK;
}

static void a_meta_graph_that_names_what_is_not_there_is_refused_or_read(void **state)
{
    (void)state;
    static const char *const others[] = {"", "nope", "r:9", "^", "n", "v", "x:0"};
    int tried = 0, read = 0;
    char line[400];
    assert_true(reads_meta_graph(-1, ""));
    for (int i = 0; i < META_LINES; i++, tried++) {
        bool saves = strstr(meta_graph[i], "save_tensor_name"); /* who serves does not */
        assert_true(!saves || reads_meta_graph(i, "save_tensor_name: 'nope'"));
        read += reads_meta_graph(i, "");
        for (int k = 0; k < MOST_TEXTS; k++)
            for (size_t o = 0; o < sizeof others / sizeof *others; o++)
                if (changed_line(line, sizeof line, meta_graph[i], k, others[o])) {
                    read += reads_meta_graph(i, line);
                    tried++;
                }
    }
    assert_true(tried > 300 && read > 50 && tried - read > 50);
}

static void a_tensor_of_several_parts_has_each_in_a_signature(void **state)
{
    (void)state;
    static const char *const inputs[][2] = {{"in", "x"},           {"parts/indices", "r"}, {"parts/shape", "c"},
                                            {"parts/values", "x"}, {"two/0", "r"},         {"two/1", "c"}};
    char text[8000];
    size_t used = 0;
    tw_error error = {0};
    tw_graph_about *about = NULL;
    tw_graph *graph = tw_graph_create();
    for (int i = 0; i < META_LINES; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", meta_graph[i]);
    const char *path = write_file(text);
    assert_ok(tw_graph_load(graph, path, NULL, &about, &error));
    const tw_signature *s = &about->signatures[about->num_signatures - 1];
    assert_string_equal(s->name, "serving_default");
    assert_int_equal(s->num_inputs, sizeof inputs / sizeof *inputs);
    for (int i = 0; i < s->num_inputs; i++) {
        assert_string_equal(s->inputs[i].name, inputs[i][0]);
        assert_string_equal(tw_node_name(s->inputs[i].output.node), inputs[i][1]);
    }
    tw_graph_about_destroy(about);
    tw_graph_destroy(graph);
    unlink(path);
}

/* Every file cut short anywhere is refused or read, and leaves nothing behind. */
static void a_file_that_is_cut_short_does_no_harm(void **state)
{
    (void)state;
    for (int i = 1; i < FILES_IN_ALL; i++) {
        size_t size;
        if (i == 2)
            continue; /* a directory */
        char *bytes = read_whole(files[i].path, &size), path[] = "/tmp/tower-cut-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        for (size_t cut = 0; cut < size; cut += 1 + size / 61) {
            tw_error error = {0};
            tw_graph *graph = tw_graph_create();
            assert_int_equal(ftruncate(fd, 0), 0);
            assert_int_equal(pwrite(fd, bytes, cut, 0), (ssize_t)cut);
            tw_status status = tw_graph_load(graph, path, NULL, NULL, &error);
            assert_true(status == TW_OK || error.message[0]);
            assert_true(status == TW_OK ||
                        (tw_graph_num_nodes(graph) == 0 && tw_graph_num_variables(graph) == 0 &&
                         tw_graph_num_collections(graph) == 0 && tw_graph_status(graph) == TW_OK));
            tw_graph_destroy(graph);
        }
        close(fd);
        unlink(path);
        free(bytes);
    }
}

/* In binary, where a text's rules do not hold. */
static void a_graph_without_sense_is_refused_by_what_it_lacks(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"\n\13\n\3y y\22\4NoOp", "'y y' is not a valid node name"},
        {"\n\13\n\3y\33y\22\4NoOp", "is not a valid node name"},
        {"\n\5\n\3one", "this MetaGraphDef has no graph"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tw_graph *graph = tw_graph_create();
        tw_error error;
        const char *path = write_file(wrong[i][0]);
        assert_fails(tw_graph_load(graph, path, NULL, NULL, &error), TW_INVALID_ARGUMENT, wrong[i][1]);
        remove(path);
        tw_graph_destroy(graph);
    }
}

static void what_is_not_there_is_named(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    tw_graph_about *about;
    assert_fails(tw_graph_load(graph, FILES "nowhere.pb", NULL, NULL, &error), TW_NOT_FOUND, "nowhere.pb");
    assert_fails(tw_graph_load(graph, GOLDEN_DIR "/explain", NULL, NULL, &error), TW_NOT_FOUND,
                 "without a saved_model.pb");
    assert_ok(tw_graph_load(graph, FILES, NULL, NULL, &error)); /* beside its latest checkpoint, of parts */
    assert_non_null(tw_graph_find(graph, "sums"));
    tw_load_options just = {.size = sizeof just, .tags = "", .just_tags = true, .keep_message = true};
    assert_fails(tw_graph_load(graph, FILES "saved_model", &just, NULL, &error), TW_NOT_FOUND,
                 "no graph has the tag ''; there are 'serve'");
    just.tags = "serve";
    just.prefix = "just";
    assert_fails(tw_graph_load(graph, FILES, &just, NULL, &error), TW_DATA_LOSS, "should be a SavedModel are not");
    assert_ok(tw_graph_load(graph, FILES "saved_model", &just, &about, &error));
    assert_true(about->meta_graph_size > 1000 && *(const char *)about->meta_graph == (1 << 3 | 2));
    tw_graph_about_destroy(about);
    assert_fails(tw_graph_load(graph, FILES "saved_model", &(tw_load_options){.tags = "train"}, NULL, &error),
                 TW_NOT_FOUND, "no graph has the tag 'train'; there are 'serve'");
    assert_fails(tw_graph_load(graph, GOLDEN_DIR "/events", NULL, NULL, &error), TW_NOT_FOUND, "has no graph");
    tw_graph_destroy(graph);
}

/* ---- arrays -------------------------------------------------------------------------------------------------- */

static void arrays_come_back_as_they_were_written(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT64, TW_FLOAT16, TW_INT8, TW_INT16,
                                     TW_INT32,   TW_INT64,   TW_UINT8,   TW_BOOL};
    const tw_shape shapes[] = {TW_SCALAR, TW_SHAPE(3), TW_SHAPE(2, 0, 4), TW_SHAPE(2, 3, 4)};
    const char *path = write_file("");
    for (size_t i = 0; i < sizeof types / sizeof *types * 4; i++) {
        tw_error error = {0};
        tw_tensor *written = tw_tensor_create(types[i / 4], shapes[i % 4]), *read;
        for (size_t b = 0; b < tw_tensor_bytes(written); b++)
            ((uint8_t *)tw_tensor_data(written))[b] = types[i / 4] == TW_BOOL ? b % 2 : (uint8_t)(b * 37);
        assert_ok(tw_tensor_write_npy(written, path, &error));
        assert_ok(tw_tensor_read_npy(path, &read, &error));
        assert_int_equal(tw_tensor_dtype(read), types[i / 4]);
        assert_true(tw_shape_equal(tw_tensor_shape(read), shapes[i % 4]));
        assert_memory_equal(tw_tensor_data(read), tw_tensor_data(written), tw_tensor_bytes(written));
        tw_tensor_release(read);
        tw_tensor_release(written);
    }
    unlink(path);
}

/* As numpy.save() writes numpy.asfortranarray(numpy.arange(6, dtype='>i2').reshape(2, 3)). */
static void arrays_of_other_orders_are_turned(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *read;
    char path[] = "/tmp/tower-npy-XXXXXX", file[140] = "\x93NUMPY\1\0\x76";
    int fd = mkstemp(path);
    snprintf(file + 10, sizeof file - 10, "%-117s\n", "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }");
    memcpy(file + 128, "\0\0\0\3\0\1\0\4\0\2\0\5", 12);
    assert_int_equal(write(fd, file, sizeof file), sizeof file);
    assert_ok(tw_tensor_read_npy(path, &read, &error));
    for (int i = 0; i < 6; i++)
        assert_int_equal(((int16_t *)tw_tensor_data(read))[i], i);
    tw_tensor_release(read);
    assert_int_equal(ftruncate(fd, 139), 0);
    assert_fails(tw_tensor_read_npy(path, &read, &error), TW_DATA_LOSS, "cut short: 11 bytes");
    assert_int_equal(pwrite(fd, "U", 1, 22), 1);
    assert_fails(tw_tensor_read_npy(path, &read, &error), TW_UNIMPLEMENTED, "it holds '>U2'");
    assert_int_equal(ftruncate(fd, 30), 0);
    assert_fails(tw_tensor_read_npy(path, &read, &error), TW_DATA_LOSS, "cut short");
    close(fd);
    unlink(path);
    assert_fails(tw_tensor_read_npy(GOLDEN_DIR "/graph.pb", &read, &error), TW_DATA_LOSS, "it is not a .npy file");
    tw_tensor *text = tw_tensor_string("x", 1);
    assert_fails(tw_tensor_write_npy(text, "/tmp/never.npy", &error), TW_UNIMPLEMENTED, "NumPy has no type string");
    tw_tensor_release(text);
}

static void assert_says_what_is_unknown(const char *text, const char *fetched, const char *words)
{
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    tw_session *session;
    char path[] = "/tmp/tower-unknown-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    assert_ok(tw_graph_load(graph, path, NULL, NULL, &error));
    unlink(path);
    assert_ok(tw_session_create(graph, NULL, &session, &error));
    tw_output fetch = tw_node_output(tw_graph_find(graph, fetched), -1);
    assert_fails(tw_session_run(session, NULL, 0, &fetch, 1, NULL, &error), TW_NOT_FOUND, words);
    tw_session_destroy(session);
    tw_graph_destroy(graph);
}

/* A condition between an op that is not known, where it holds, and a constant: the Merge is no loop's. */
static void a_condition_on_an_unknown_op_says_which(void **state)
{
    (void)state;
    assert_says_what_is_unknown(
        "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }\n"
        "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
        "node { name: 's' op: 'Switch' input: 'x' input: 'p' attr { key: 'T' value { type: DT_FLOAT } } }\n"
        "node { name: 'u' op: 'Unheard' input: 's:1' }\n"
        "node { name: 'm' op: 'Merge' input: 's' input: 'u' attr { key: 'T' value { type: DT_FLOAT } }"
        " attr { key: 'N' value { i: 2 } } }\n",
        "m", "node 'm' (Merge): it needs 'u': Op type not registered 'Unheard' in this library");
}

/* A graph is read with nodes that cannot be; what is wrong with them is said when they are run. */
static void what_is_read_with_a_node_that_cannot_be_is_no_error(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    const char *path = write_file("node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_RESOURCE } }\n"
                                  "  attr { key: 'value' value { tensor { dtype: DT_RESOURCE tensor_shape { }\n"
                                  "    resource_handle_val { name: 'a' } } } } }");
    assert_ok(tw_graph_load(graph, path, NULL, NULL, &error));
    assert_string_equal(error.message, "");
    unlink(path);
    tw_graph_destroy(graph);
}

/* What goes round can be built up to the NextIteration. */
static void a_loop_over_an_unknown_op_says_which(void **state)
{
    (void)state;
#define OF(type) " attr { key: 'T' value { type: DT_" type " } }"
    assert_says_what_is_unknown(
        "node { name: 'x' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }"
        " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }\n"
        "node { name: 'e' op: 'Enter' input: 'x'" OF("FLOAT") " attr { key: 'frame_name' value { s: 'f' } } }\n"
        "node { name: 'm' op: 'Merge' input: 'e' input: 'n'" OF("FLOAT") " attr { key: 'N' value { i: 2 } } }\n"
        "node { name: 'l' op: 'Less' input: 'm' input: 'm'" OF("FLOAT") " }\n"
        "node { name: 'c' op: 'LoopCond' input: 'l' }\n"
        "node { name: 's' op: 'Switch' input: 'm' input: 'c'" OF("FLOAT") " }\n"
        "node { name: 'u' op: 'Unheard' input: 's:1' }\n"
        "node { name: 'n' op: 'NextIteration' input: 'u'" OF("FLOAT") " }\n"
        "node { name: 'y' op: 'Exit' input: 's'" OF("FLOAT") " }\n",
        "y", "node 'n' (NextIteration): it needs 'u': Op type not registered 'Unheard' in this library");
#undef OF
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_known_by_what_is_in_it),
        cmocka_unit_test(every_file_holds_the_same_graph),
        cmocka_unit_test(a_signature_says_what_is_fed_and_fetched),
        cmocka_unit_test(variables_begin_with_their_own_initializers),
        cmocka_unit_test(what_is_no_text_of_a_graph_is_refused_by_line),
        cmocka_unit_test(variants_are_told_of_attributes_of_their_kind_alone),
        cmocka_unit_test(numbers_are_not_looked_at_as_shapes),
        cmocka_unit_test(a_text_may_be_written_in_all_its_ways),
        cmocka_unit_test(a_text_names_the_files_of_a_model),
        cmocka_unit_test(a_meta_graph_that_names_what_is_not_there_is_refused_or_read),
        cmocka_unit_test(a_tensor_of_several_parts_has_each_in_a_signature),
        cmocka_unit_test(a_file_that_is_cut_short_does_no_harm),
        cmocka_unit_test(a_graph_without_sense_is_refused_by_what_it_lacks),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test(arrays_come_back_as_they_were_written),
        cmocka_unit_test(arrays_of_other_orders_are_turned),
        cmocka_unit_test(a_condition_on_an_unknown_op_says_which),
        cmocka_unit_test(a_loop_over_an_unknown_op_says_which),
        cmocka_unit_test(what_is_read_with_a_node_that_cannot_be_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
