/* Graphs as files: one that TensorFlow wrote is read and gives TensorFlow's numbers, Tower's own come back as they
 * were, and what is wrong with a file is said by name. */
#include "testing.h"

#include "faulty_memory.h"
#include "golden/graph.h"
#include "messages_testing.h"

#include <tower/io.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/queue.h>
#include <tower/train.h>

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

static bytes read_golden(void)
{
    FILE *file = fopen(GOLDEN_DIR "/graph.pb", "rb");
    assert_non_null(file);
    bytes b = {malloc(1 << 16), 0};
    b.size = fread(b.data, 1, 1 << 16, file);
    fclose(file);
    return b;
}

static bytes export(const tw_graph *g)
{
    tw_error error = {0};
    void *data;
    bytes b;
    assert_ok(tw_graph_export(g, &data, &b.size, &error));
    b.data = data;
    return b;
}

static tw_graph *import(bytes b, const char *prefix)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    assert_ok(tw_graph_import(g, b.data, b.size, prefix, &error));
    return g;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void run(tw_graph *g, tw_session *s, const char *prefix, const char *name, const float *expected, int count)
{
    tw_error error = {0};
    char whole[200];
    tw_output outputs[3];
    const char *names[] = {"images", "labels", name};
    for (int i = 0; i < 3; i++) {
        snprintf(whole, sizeof whole, "%s%s", prefix, names[i]);
        assert_non_null(tw_graph_find(g, whole));
        outputs[i] = tw_node_output(tw_graph_find(g, whole), 0);
    }
    tw_tensor *images = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 6, 6, 2), golden_images);
    tw_tensor *labels = tw_tensor_from(TW_INT32, TW_SHAPE(2), golden_labels), *result = NULL;
    assert_ok(
        tw_session_run(s, (tw_feed[]){{outputs[0], images}, {outputs[1], labels}}, 2, &outputs[2], 1, &result, &error));
    assert_int_equal(tw_tensor_elements(result), count);
    for (int i = 0; i < count; i++) {
        float value = (float)tw_tensor_value(result, i);
        assert_floats_near(&value, &expected[i], 1, 2e-6);
    }
    tw_tensor_release(images);
    tw_tensor_release(labels);
    tw_tensor_release(result);
}

static void a_graph_by_tensorflow_computes_and_trains_as_there(void **state)
{
    (void)state;
    tw_error error = {0};
    bytes golden = read_golden();
    for (int i = 0; i < 2; i++) {
        const char *prefix = i ? "from/there/" : "";
        tw_graph *g = import(golden, i ? "from/there" : NULL);
        tw_session *s;
        char name[200];
        assert_int_equal(tw_graph_num_nodes(g), GOLDEN_NODES);
        assert_ok(tw_session_create(g, &(tw_session_options){.allow_soft_placement = true}, &s, &error));
        snprintf(name, sizeof name, "%sinit", prefix);
        tw_output init = tw_node_output(tw_graph_find(g, name), -1);
        assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
        run(g, s, prefix, "probabilities", golden_probabilities, 6);
        run(g, s, prefix, golden_gradient, golden_gradients, 72);
        run(g, s, prefix, "loss_after_training", golden_losses, 1); /* its input came before the step */
        run(g, s, prefix, "loss", golden_losses + 1, 1);
        run(g, s, prefix, "net/filters/Read/ReadVariableOp", golden_filters, 72);
        run(g, s, prefix, "net/biases/Read/ReadVariableOp", golden_biases, 4);
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
    free(golden.data);
}

static void constants_of_all_types_and_spellings_are_read(void **state)
{
    (void)state;
    bytes golden = read_golden();
    tw_graph *g = import(golden, NULL);
    tw_session *s;
    tw_error error = {0};
    assert_ok(tw_session_create(g, &(tw_session_options){.allow_soft_placement = true}, &s, &error));
    for (size_t i = 0; i < sizeof golden_constants / sizeof *golden_constants; i++)
        run(g, s, "", golden_constants[i].name, golden_constants[i].values, golden_constants[i].count);
    tw_output strings = tw_node_input(tw_graph_find(g, "constants/strings"), 0);
    const tw_string *values = tw_tensor_data(tw_node_attr(strings.node, "value")->tensor);
    assert_int_equal(values[0].size, 3);
    assert_memory_equal(values[0].data, "a\0b", 3);
    assert_int_equal(values[1].size, 0);
    assert_true(
        tw_shape_equal(tw_output_shape(tw_node_output(tw_graph_find(g, "constants/empty"), 0)), TW_SHAPE(0, 3)));
    tw_session_destroy(s);
    tw_graph_destroy(g);
    free(golden.data);
}

static void devices_control_inputs_and_colocation_are_kept_and_prefixed(void **state)
{
    (void)state;
    bytes golden = read_golden();
    tw_graph *g = import(golden, "p");
    tw_node *reshape = tw_graph_find(g, "p/Reshape"), *after = tw_graph_find(g, "p/loss_after_training");
    assert_string_equal(tw_node_device(tw_graph_find(g, "p/Conv2D")), "/device:GPU:1");
    assert_string_equal(tw_node_attr(reshape, "_class")->strings[0].data, "loc:@p/concat");
    assert_int_equal(tw_node_num_control_inputs(after), 1);
    assert_string_equal(tw_node_name(tw_node_control_input(after, 0)), "p/train");
    assert_null(tw_node_control_input(after, 1));
    assert_int_equal(tw_node_input(tw_graph_find(g, "p/concat"), 0).index, 1); /* "split:1" */
    assert_null(tw_node_input(reshape, tw_node_num_inputs(reshape)).node);
    assert_null(tw_node_input(reshape, -1).node);
    tw_graph_destroy(g);
    free(golden.data);
}

static void handles_that_are_assigned_and_read_become_variables(void **state)
{
    (void)state;
    tw_error error = {0};
    bytes golden = read_golden();
    tw_graph *g = import(golden, NULL);
    tw_variable *biases = tw_graph_find_variable(g, "net/biases");
    assert_int_equal(tw_graph_num_variables(g), 2);
    assert_true(tw_shape_equal(biases->shape, TW_SHAPE(4)) && biases->dtype == TW_FLOAT32 && !biases->trainable);
    tw_session *s;
    tw_tensor *value = NULL;
    tw_output init = tw_initialize_variables(g);
    assert_ok(tw_session_create(g, &(tw_session_options){.allow_soft_placement = true}, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    assert_ok(tw_session_get_variable(s, biases, &value, &error));
    assert_true(tw_tensor_value(value, 3) == 0.125);
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    free(golden.data);
}

/* ---- there and back ---------------------------------------------------------------------------------------------- */

/* Exported, imported and exported again it has the same bytes. */
static void assert_returns(const tw_graph *g)
{
    bytes first = export(g);
    tw_graph *copy = import(first, NULL);
    bytes second = export(copy);
    assert_int_equal(tw_graph_num_nodes(copy), tw_graph_num_nodes(g));
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    tw_free(first.data);
    tw_free(second.data);
    tw_graph_destroy(copy);
}

static void a_graph_that_is_written_and_read_is_the_same(void **state)
{
    (void)state;
    bytes golden = read_golden();
    tw_graph *g = import(golden, NULL);
    assert_returns(g);
    tw_graph_destroy(g);
    free(golden.data);

    g = tw_graph_create();
    assert_returns(g);
    tw_output inputs[] = {tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2, 24, 24, 3)), tw_placeholder(g, TW_INT32, TW_SHAPE(2))};
    tw_variable *step = tw_global_step(g);
    tw_optimizer *sgd = tw_momentum(g, tw_scalar(g, 0.1f), 0.9f, true);
    TW_DEVICE(g, "/gpu:0")
    TW_NAME_SCOPE(g, "tower_0")
    {
        tw_output loss = tw_model_loss(g, tw_model_find("cifar10"), inputs[0], inputs[1], TW_BFLOAT16);
        tw_moving_averages(g, 0.9f, step, tw_apply_gradients(sgd, tw_compute_gradients(sgd, loss), step));
    }
    tw_tensor *text = tw_tensor_string("a\0b", 3);
    tw_constant(g, text);
    tw_tensor_release(text);
    assert_string_equal(tw_graph_message(g), "");
    assert_returns(g);
    tw_graph_destroy(g);
}

static void what_brings_examples_is_written_as_placeholders(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_dtype types[] = {TW_FLOAT32, TW_INT32, TW_INT64};
    tw_shape shapes[] = {TW_SHAPE(2, 3), TW_SHAPE(2), TW_SCALAR};
    tw_output in[3];
    tw_input(tw_name(g, "in"), "examples", 0, types, shapes, 3, in);
    tw_scalar(tw_name(g, "in/output_1"), 1);
    TW_CONTROL(g, in[0])
        tw_identity(tw_name(g, "labels"), in[1]);
    tw_identity(tw_name(g, "step"), in[2]);
    bytes b = export(g);
    tw_graph *copy = import(b, NULL);
    static const char *const names[] = {"in", "in/output_1_", "in/output_2"};
    for (int i = 0; i < 3; i++) {
        tw_node *node = tw_graph_find(copy, names[i]);
        assert_non_null(node);
        assert_true(tw_node_is_placeholder(node));
        assert_int_equal(tw_output_dtype(tw_node_output(node, 0)), types[i]);
        assert_true(tw_shape_equal(tw_output_shape(tw_node_output(node, 0)), shapes[i]));
    }
    assert_string_equal(tw_node_name(tw_node_input(tw_graph_find(copy, "labels"), 0).node), "in/output_1_");
    assert_string_equal(tw_node_name(tw_node_control_input(tw_graph_find(copy, "labels"), 0)), "in");
    assert_string_equal(tw_node_name(tw_node_input(tw_graph_find(copy, "step"), 0).node), "in/output_2");
    tw_free(b.data);
    tw_graph_destroy(copy);
    tw_graph_destroy(g);
}

static void what_a_queue_or_a_reader_gives_is_written_as_it_is(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output names = tw_string_input_producer(g, (const char *[]){"a"}, 1, NULL), batch;
    tw_output record = tw_reader_read(tw_name(g, "read"), tw_fixed_length_record_reader(g, 0, 4, 0), names, NULL);
    tw_output number = tw_decode_raw(g, record, TW_INT32, true);
    tw_batch(g, &number, 1, TW_OPTIONS(tw_batch_options, .batch = 2), &batch);
    assert_string_equal(tw_graph_message(g), "");
    assert_returns(g);
    bytes b = export(g);
    tw_graph *copy = import(b, NULL);
    assert_string_equal(tw_node_op(tw_graph_find(copy, "read")), "ReaderReadV2");
    assert_string_equal(tw_node_op(tw_graph_find(copy, tw_node_name(batch.node))), "QueueDequeueManyV2");
    tw_free(b.data);
    tw_graph_destroy(copy);
    tw_graph_destroy(g);
}

/* ---- MetaGraphDefs, SavedModels -------------------------------------------------------------------------------- */

/* A line through points, one tower trained on by hand. */
typedef struct line {
    tw_graph *g;
    tw_output x, y, loss, train;
    tw_session *session;
} line;

static line make_line(void)
{
    tw_error error = {0};
    line l = {.g = tw_graph_create()};
    l.x = tw_placeholder(tw_name(l.g, "x"), TW_FLOAT32, TW_SHAPE(-1, 2));
    tw_variable *w = tw_get_variable(l.g, "w", TW_FLOAT32, TW_SHAPE(2, 1), (tw_initializer){.a = 0.5f});
    tw_variable *step = tw_global_step(l.g);
    tw_copy_variable(l.g, w, "w_of_tower_1");
    l.y = tw_matmul(tw_name(l.g, "y"), l.x, w->value);
    l.loss = tw_reduce_mean(tw_name(l.g, "loss"), tw_square(l.g, l.y), NULL, 0, false);
    tw_optimizer *sgd = tw_gradient_descent(l.g, tw_scalar(l.g, 0.125f));
    l.train = tw_apply_gradients(sgd, tw_compute_gradients(sgd, l.loss), step);
    tw_add_to_collection(l.g, "losses", l.loss);
    assert_string_equal(tw_graph_message(l.g), "");
    assert_ok(tw_session_create(l.g, NULL, &l.session, &error));
    tw_output init = tw_initialize_variables(l.g);
    assert_ok(tw_session_run(l.session, NULL, 0, &init, 1, NULL, &error));
    tw_tensor *x = tw_tensor_from(TW_FLOAT32, TW_SHAPE(1, 2), (float[]){1, 2});
    assert_ok(tw_session_run(l.session, &(tw_feed){l.x, x}, 1, &l.train, 1, NULL, &error));
    tw_tensor_release(x);
    return l;
}

static void destroy_line(line *l)
{
    tw_session_destroy(l->session);
    tw_graph_destroy(l->g);
}

static void a_meta_graph_has_collections_a_saver_and_signatures(void **state)
{
    (void)state;
    tw_error error = {0};
    line l = make_line();
    tw_signature_value in = {"points", l.x}, out = {"values", l.y};
    tw_signature signature = {.name = "serving_default", .inputs = &in, .num_inputs = 1, .outputs = &out, .num_outputs = 1};
    void *bytes;
    size_t size;
    int nodes = tw_graph_num_nodes(l.g);
    assert_ok(tw_meta_graph_export(l.g, &(tw_meta_graph_options){.tags = "a,b", .signatures = &signature, .num_signatures = 1},
                                   &bytes, &size, &error));
    assert_int_equal(tw_graph_num_nodes(l.g), nodes);
    tw_graph *copy = tw_graph_create();
    assert_ok(tw_meta_graph_import(copy, bytes, size, NULL, &error));
    assert_int_equal(tw_get_collection(copy, "train_op", NULL, NULL, 0), 1);
    assert_int_equal(tw_get_collection(copy, "losses", NULL, NULL, 0), 1);
    assert_int_equal(tw_get_collection(copy, "trainable_variables", NULL, NULL, 0), 1);
    assert_true(tw_graph_find_variable(copy, "w")->trainable);
    assert_string_equal(tw_node_name(tw_graph_find_variable(copy, "w")->initializer.node), "w/Assign");
    assert_non_null(tw_graph_find(copy, "save/restore_all"));
    assert_non_null(tw_graph_find(copy, "save/control_dependency"));
    tw_free(bytes);
    tw_graph_destroy(copy);
    destroy_line(&l);
}

static void a_saved_model_gives_what_the_session_gave(void **state)
{
    (void)state;
    tw_error error = {0};
    line l = make_line();
    char folder[] = "/tmp/tower-model-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    tw_signature_value in = {"points", l.x}, out = {"values", l.y};
    tw_signature signature = {.name = "serving_default", .inputs = &in, .num_inputs = 1, .outputs = &out, .num_outputs = 1};
    tw_meta_graph_options options = {.tags = "serve,gpu", .signatures = &signature, .num_signatures = 1};
    assert_ok(tw_saved_model_save(l.session, folder, &options, &error));
    assert_fails(tw_saved_model_save(l.session, folder, &options, &error), TW_ALREADY_EXISTS, folder);
    destroy_line(&l);

    tw_graph *graph = tw_graph_create();
    tw_graph_about *about;
    tw_session *session;
    tw_tensor *value = NULL, *x = tw_tensor_from(TW_FLOAT32, TW_SHAPE(1, 2), (float[]){1, 2});
    assert_fails(tw_graph_load(graph, folder, &(tw_load_options){.tags = "gpu,tpu"}, &about, &error), TW_NOT_FOUND,
                 "no graph has the tag 'gpu,tpu'; there are 'serve,gpu'");
    assert_ok(tw_graph_load(graph, folder, &(tw_load_options){.tags = "gpu,serve"}, &about, &error));
    assert_string_equal(about->format, "SavedModel");
    assert_string_equal(about->tags, "serve,gpu");
    assert_string_equal(about->signatures[0].method, "tensorflow/serving/predict");
    assert_string_equal(about->signatures[0].inputs[0].name, "points");
    assert_ok(tw_session_create(graph, NULL, &session, &error));
    tw_tensor *prefix = tw_tensor_string(about->variables, strlen(about->variables));
    tw_output restore = {about->saver_restore.node, -1};
    assert_ok(tw_session_run(session, &(tw_feed){about->saver_filename, prefix}, 1, &restore, 1, NULL, &error));
    tw_feed feed = {about->signatures[0].inputs[0].output, x};
    assert_ok(tw_session_run(session, &feed, 1, &about->signatures[0].outputs[0].output, 1, &value, &error));
    assert_float_equal(tw_tensor_value(value, 0), -0.375, 0); /* w: 0.5 - 0.125 * 2 * 1.5 * x */
    tw_tensor_release(value);
    tw_tensor_release(prefix);
    tw_tensor_release(x);
    tw_session_destroy(session);
    tw_graph_about_destroy(about);
    tw_graph_destroy(graph);
    static const char *const files[] = {"saved_model.pb", "variables/variables.index",
                                        "variables/variables.data-00000-of-00001", "variables", "."};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        assert_int_equal(remove(i == 4 ? folder : path), 0);
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static void a_file_in_order_keeps_its_order(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output late = tw_scalar(tw_name(g, "late"), 1), early = tw_scalar(tw_name(g, "early"), 2);
    tw_add(tw_name(g, "sum"), early, late);
    bytes b = export(g);
    tw_graph *copy = import(b, NULL);
    assert_string_equal(tw_node_name(tw_graph_node(copy, 0)), "late");
    assert_string_equal(tw_node_name(tw_graph_node(copy, 1)), "early");
    tw_free(b.data);
    tw_graph_destroy(copy);
    tw_graph_destroy(g);
}

static void names_that_differ_in_case_are_kept_and_new_ones_stay_clear(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_scalar(tw_name(g, "x"), 1);
    bytes b = export(g);
    tw_graph *other = tw_graph_create();
    tw_scalar(tw_name(other, "X"), 1);
    assert_ok(tw_graph_import(other, b.data, b.size, NULL, &error));
    assert_string_equal(tw_node_name(tw_graph_node(other, 1)), "x");
    tw_output next = tw_scalar(tw_name(other, "x"), 1);
    assert_string_equal(tw_node_name(next.node), "x_1");
    assert_fails(tw_graph_import(other, b.data, b.size, NULL, &error), TW_ALREADY_EXISTS,
                 "Node name 'x' already exists in the Graph");
    assert_int_equal(tw_graph_num_nodes(other), 3);
    assert_int_equal(tw_graph_status(other), TW_OK); /* nothing was added, nothing is latched */
    assert_ok(tw_graph_import(other, b.data, b.size, "again", &error));
    tw_free(b.data);
    tw_graph_destroy(other);
    tw_graph_destroy(g);
}

static void a_failed_graph_is_not_written(void **state)
{
    (void)state;
    tw_error error = {0};
    void *data;
    size_t size;
    tw_graph *g = tw_graph_create();
    tw_matmul(tw_name(g, "wrong"), tw_scalar(g, 1), tw_scalar(g, 2));
    assert_fails(tw_graph_export(g, &data, &size, &error), TW_INVALID_ARGUMENT, "wrong");
    tw_graph_destroy(g);
}

/* ---- bad files ----------------------------------------------------------------------------------------------------
 */

/* A small graph whose messages a test may spoil: two constants, their sum, a node that follows it. */
typedef struct small {
    Twi__GraphDef graph;
    Twi__VersionDef versions;
    Twi__NodeDef nodes[4], *node_list[4];
    char *inputs[4][3];
    Twi__NodeDef__AttrEntry entries[4][3], *entry_lists[4][3];
    Twi__AttrValue values[4][3];
    Twi__TensorProto tensor;
    Twi__TensorShapeProto shape;
    Twi__TensorShapeProto__Dim dims[1], *dim_list[1];
    Twi__AttrValue__ListValue list;
    ProtobufCBinaryData strings[1];
    float floats[1];
} small;

static Twi__AttrValue *add_attr(small *s, int node, const char *name, Twi__AttrValue__ValueCase kind)
{
    int i = (int)s->nodes[node].n_attr++;
    s->entries[node][i] = (Twi__NodeDef__AttrEntry)TWI__NODE_DEF__ATTR_ENTRY__INIT;
    s->values[node][i] = (Twi__AttrValue)TWI__ATTR_VALUE__INIT;
    s->entries[node][i].key = (char *)name;
    s->entries[node][i].value = &s->values[node][i];
    s->entry_lists[node][i] = &s->entries[node][i];
    s->nodes[node].attr = s->entry_lists[node];
    s->values[node][i].value_case = kind;
    return &s->values[node][i];
}

static small *make_small(void)
{
    static const char *const names[] = {"a", "b", "sum", "after"}, *const ops[] = {"Const", "Const", "AddV2", "NoOp"};
    static small s;
    s = (small){.graph = TWI__GRAPH_DEF__INIT, .versions = TWI__VERSION_DEF__INIT, .floats = {1.5f}};
    s.graph.n_node = 4;
    s.graph.node = s.node_list;
    s.graph.versions = &s.versions;
    s.versions.producer = 134;
    s.tensor = (Twi__TensorProto)TWI__TENSOR_PROTO__INIT;
    s.shape = (Twi__TensorShapeProto)TWI__TENSOR_SHAPE_PROTO__INIT;
    s.dims[0] = (Twi__TensorShapeProto__Dim)TWI__TENSOR_SHAPE_PROTO__DIM__INIT;
    s.dim_list[0] = &s.dims[0];
    s.shape.dim = s.dim_list;
    s.tensor.dtype = TW_FLOAT32;
    s.tensor.tensor_shape = &s.shape;
    s.tensor.n_float_val = 1;
    s.tensor.float_val = s.floats;
    s.list = (Twi__AttrValue__ListValue)TWI__ATTR_VALUE__LIST_VALUE__INIT;
    for (int i = 0; i < 4; i++) {
        s.nodes[i] = (Twi__NodeDef)TWI__NODE_DEF__INIT;
        s.nodes[i].name = (char *)names[i];
        s.nodes[i].op = (char *)ops[i];
        s.nodes[i].input = s.inputs[i];
        s.node_list[i] = &s.nodes[i];
    }
    for (int i = 0; i < 2; i++) {
        add_attr(&s, i, "dtype", TWI__ATTR_VALUE__VALUE_TYPE)->type = TW_FLOAT32;
        add_attr(&s, i, "value", TWI__ATTR_VALUE__VALUE_TENSOR)->tensor = &s.tensor;
        s.inputs[2][i] = (char *)names[i];
    }
    s.nodes[2].n_input = 2;
    s.inputs[3][0] = "^sum";
    s.nodes[3].n_input = 1;
    return &s;
}

static tw_status import_small(const small *s, tw_graph *g, tw_error *error)
{
    static uint8_t packed[4096];
    size_t size = twi__graph_def__get_packed_size(&s->graph);
    assert_true(size <= sizeof packed);
    twi__graph_def__pack(&s->graph, packed);
    return tw_graph_import(g, packed, size, NULL, error);
}

/* It is refused with these words, and the graph stays empty and well. */
static void assert_refused(const small *s, tw_status code, const char *words)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    assert_fails(import_small(s, g, &error), code, words);
    assert_int_equal(tw_graph_num_nodes(g), 0);
    assert_int_equal(tw_graph_status(g), TW_OK);
    tw_graph_destroy(g);
}

static void the_small_graph_is_good_before_it_is_spoiled(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    assert_ok(import_small(make_small(), g, &error));
    assert_int_equal(tw_graph_num_nodes(g), 4);
    tw_graph_destroy(g);
}

static void wrong_nodes_are_refused_by_name(void **state)
{
    (void)state;
    small *s = make_small();
    s->nodes[1].name = "a";
    assert_refused(s, TW_INVALID_ARGUMENT, "two nodes are called 'a'");
    s = make_small();
    s->nodes[3].name = "a b";
    assert_refused(s, TW_INVALID_ARGUMENT, "'a b' is not a valid node name");
    s->nodes[3].name = "";
    assert_refused(s, TW_INVALID_ARGUMENT, "'' is not a valid node name");
}

/* Fetching the node fails with these words; index -1: running it. */
static void assert_cannot_run(tw_graph *g, const char *name, const char *words)
{
    tw_error error = {0};
    tw_session *s;
    tw_output fetch = {tw_graph_find(g, name), -1};
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, NULL, 0, &fetch, 1, NULL, &error), TW_NOT_FOUND, words);
    tw_session_destroy(s);
}

/* Placing the graph reads them, whatever is to be run. */
static void devices_are_kept_as_the_file_has_them_and_refused_by_who_places_the_node(void **state)
{
    (void)state;
    static const char *const kept[] = {"/cpu:0", "/gpu:x", "foo\n", ""};
    for (int i = 0; i < 4; i++) {
        small *s = make_small();
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_session *session;
        s->nodes[2].device = (char *)kept[i];
        assert_ok(import_small(s, g, &error));
        assert_string_equal(tw_node_device(tw_graph_find(g, "sum")), kept[i]);
        tw_output fetch = tw_node_output(tw_graph_find(g, "a"), 0);
        tw_tensor *result = NULL;
        assert_ok(tw_session_create(g, NULL, &session, &error));
        if (i == 1 || i == 2) {
            assert_fails(tw_session_run(session, NULL, 0, &fetch, 1, &result, &error), TW_INVALID_ARGUMENT,
                         "Malformed device specification '");
            assert_non_null(strstr(error.message, "[[Node: sum = AddV2["));
        } else {
            assert_ok(tw_session_run(session, NULL, 0, &fetch, 1, &result, &error));
        }
        tw_tensor_release(result);
        tw_session_destroy(session);
        tw_graph_destroy(g);
    }
}

static void nodes_of_unknown_ops_are_kept_and_missed_when_they_are_needed(void **state)
{
    (void)state;
    static const char *const ops[] = {"Addd", "_Copy", "_Unknown"};
    for (int i = 0; i < 3; i++) {
        small *s = make_small();
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_session *session;
        tw_tensor *result = NULL;
        char words[100];
        s->nodes[2].op = (char *)ops[i];
        assert_ok(import_small(s, g, &error));
        assert_int_equal(tw_graph_num_nodes(g), 4);
        assert_true(tw_node_is_unknown(tw_graph_find(g, "sum")));
        assert_false(tw_node_is_unknown(tw_graph_find(g, "a")));
        tw_output fetch = tw_node_output(tw_graph_find(g, "a"), 0);
        assert_ok(tw_session_create(g, NULL, &session, &error));
        assert_ok(tw_session_run(session, NULL, 0, &fetch, 1, &result, &error)); /* who does not need it never minds */
        tw_tensor_release(result);
        tw_session_destroy(session);
        snprintf(words, sizeof words, "node 'sum' (%s): Op type not registered '%s'", ops[i], ops[i]);
        assert_cannot_run(g, "after", words); /* it comes after it */
        assert_cannot_run(g, "sum", words);
        tw_graph_destroy(g);
    }
    small *s = make_small();
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    s->nodes[0].op = "Foo";
    assert_ok(import_small(s, g, &error));
    assert_cannot_run(g, "sum", "node 'sum' (AddV2): it needs 'a': Op type not registered 'Foo' in this library");
    tw_graph_destroy(g);
}

static void a_call_of_a_function_that_is_not_there_is_missed_by_its_name(void **state)
{
    (void)state;
    small *s = make_small();
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    s->nodes[2].op = "PartitionedCall";
    add_attr(s, 2, "f", TWI__ATTR_VALUE__VALUE_FUNC)->func =
        (ProtobufCBinaryData){.len = 6, .data = (uint8_t *)"\x0a\x04" "gone"};
    assert_ok(import_small(s, g, &error));
    assert_cannot_run(g, "sum", "node 'sum' (PartitionedCall): it calls 'gone', and the graph has no such function");
    tw_graph_destroy(g);
}

/* As of a data set's generator of seeds, where a SavedModel of TensorFlow 2 has the data set beside its steps. */
static void a_constant_that_is_a_handle_is_missed_when_it_is_needed(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_RESOURCE, TW_VARIANT};
    for (int i = 0; i < 2; i++) {
        small *s = make_small();
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_session *session;
        tw_tensor *result = NULL;
        Twi__TensorProto handle = s->tensor;
        handle.dtype = types[i];
        s->values[0][0].type = types[i];
        s->values[0][1].tensor = &handle;
        assert_ok(import_small(s, g, &error));
        assert_true(tw_node_is_unknown(tw_graph_find(g, "a")));
        tw_output fetch = tw_node_output(tw_graph_find(g, "b"), 0);
        assert_ok(tw_session_create(g, NULL, &session, &error));
        assert_ok(tw_session_run(session, NULL, 0, &fetch, 1, &result, &error)); /* who does not need it never minds */
        tw_tensor_release(result);
        tw_session_destroy(session);
        assert_cannot_run(g, "sum", "node 'sum' (AddV2): it needs 'a': attribute 'value': a constant is a handle, "
                                    "which only the process has that wrote it");
        tw_graph_destroy(g);
    }
}

/* Of the attribute "_output_shapes" of the node, the first. */
static const Twi__TensorShapeProto *written_shape(const Twi__GraphDef *def, const char *name)
{
    for (size_t i = 0; i < def->n_node; i++)
        for (size_t k = 0; strcmp(def->node[i]->name, name) == 0 && k < def->node[i]->n_attr; k++)
            if (strcmp(def->node[i]->attr[k]->key, "_output_shapes") == 0)
                return def->node[i]->attr[k]->value->list->shape[0];
    fail_msg("no shapes of '%s' are written", name);
    return NULL;
}

/* TensorFlow refuses a graph that says of a handle what it does not say itself. */
static void handles_go_out_with_shapes_of_their_own_not_of_what_is_behind(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output size = tw_constant_int32s(g, TW_SCALAR, (int32_t[]){-1});
    tw_output row = tw_constant_int32s(g, TW_SHAPE(1), (int32_t[]){3});
    tw_attr type = tw_attr_type("elem_type", TW_FLOAT32);
    tw_attr types[] = {tw_attr_type("element_dtype", TW_FLOAT32), tw_attr_type("shape_type", TW_INT32)};
    tw_add_node(g, "StackV2", "stack", &size, 1, &type, 1);
    tw_add_node(g, "EmptyTensorList", "list", (tw_output[]){row, size}, 2, types, 2);
    tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(5), (tw_initializer){0});
    bytes b = export(g);
    Twi__GraphDef *def = twi__graph_def__unpack(NULL, b.size, b.data);
    assert_true(written_shape(def, "stack")->unknown_rank);
    static const char *const scalars[] = {"list", "v"};
    for (int i = 0; i < 2; i++) {
        assert_false(written_shape(def, scalars[i])->unknown_rank);
        assert_int_equal(written_shape(def, scalars[i])->n_dim, 0);
    }
    twi__graph_def__free_unpacked(def, NULL);
    tw_free(b.data);
    tw_graph_destroy(g);
}

static void unknown_nodes_go_out_as_they_came_in(void **state)
{
    (void)state;
    small *s = make_small();
    tw_error error = {0};
    tw_graph *g = tw_graph_create(), *again = tw_graph_create();
    void *bytes;
    size_t size;
    s->nodes[2].op = "Foo";
    s->nodes[2].device = "/gpu:7";
    add_attr(s, 2, "answer", TWI__ATTR_VALUE__VALUE_I)->i = 42;
    assert_ok(import_small(s, g, &error));
    assert_ok(tw_graph_export(g, &bytes, &size, &error));
    Twi__GraphDef *def = twi__graph_def__unpack(NULL, size, bytes);
    const Twi__NodeDef *node = def->node[2];
    assert_string_equal(node->op, "Foo");
    assert_string_equal(node->name, "sum");
    assert_string_equal(node->device, "/gpu:7");
    assert_int_equal(node->n_input, 2);
    assert_string_equal(node->input[1], "b");
    assert_int_equal(node->attr[0]->value->i, 42);
    twi__graph_def__free_unpacked(def, NULL);
    assert_ok(tw_graph_import(again, bytes, size, "p", &error));
    tw_free(bytes);
    assert_ok(tw_graph_export(again, &bytes, &size, &error));
    def = twi__graph_def__unpack(NULL, size, bytes);
    assert_string_equal(def->node[2]->name, "p/sum");
    assert_string_equal(def->node[2]->input[1], "p/b");
    twi__graph_def__free_unpacked(def, NULL);
    tw_free(bytes);
    tw_graph_destroy(g);
    tw_graph_destroy(again);
}

static void wrong_inputs_are_refused_by_name(void **state)
{
    (void)state;
    small *s = make_small();
    s->inputs[2][1] = "c";
    assert_refused(s, TW_INVALID_ARGUMENT, "node 'sum' (AddV2): input 'c' is not in the graph");
    static const char *const forms[] = {"b:", "b:-1", "b:1x", "b:99999999999999999999", "b: 0"};
    for (int i = 0; i < 5; i++) {
        s->inputs[2][1] = (char *)forms[i];
        assert_refused(s, TW_INVALID_ARGUMENT, "is not of the form node, node:1 or ^node");
    }
    s->inputs[2][1] = "b:1";
    assert_refused(s, TW_INVALID_ARGUMENT, "AddV2 'sum': input 1 names an output that does not exist");
    s = make_small();
    s->inputs[2][0] = "^a";
    assert_refused(s, TW_INVALID_ARGUMENT, "node 'sum' (AddV2): data input 'b' comes after a control input");
    s = make_small();
    s->nodes[2].n_input = 1;
    assert_refused(s, TW_INVALID_ARGUMENT, "AddV2 'sum': got 1 input, expected 2");
    s = make_small();
    s->inputs[2][1] = "sum";
    assert_refused(s, TW_INVALID_ARGUMENT, "node 'sum' (AddV2) depends on itself");
    s->inputs[2][1] = "^after";
    assert_refused(s, TW_INVALID_ARGUMENT, "depends on itself: the graph has a cycle");
}

static void wrong_attributes_are_refused_by_name(void **state)
{
    (void)state;
    small *s = make_small();
    s->values[1][0].type = TW_INT32;
    assert_refused(s, TW_INVALID_ARGUMENT, "Const 'b'");
    s = make_small();
    s->values[1][0].value_case = TWI__ATTR_VALUE__VALUE__NOT_SET;
    assert_refused(s, TW_INVALID_ARGUMENT, "node 'b' (Const): attribute 'dtype': it has no value");
    s = make_small();
    add_attr(s, 2, "T", TWI__ATTR_VALUE__VALUE_TYPE)->type = TW_BOOL;
    assert_refused(s, TW_INVALID_ARGUMENT, "AddV2 'sum'");
    s = make_small();
    s->strings[0] = (ProtobufCBinaryData){9, (uint8_t *)"loc:@gone"};
    s->list.n_s = 1;
    s->list.s = s->strings;
    add_attr(s, 2, "_class", TWI__ATTR_VALUE__VALUE_LIST)->list = &s->list;
    assert_refused(s, TW_INVALID_ARGUMENT, "node 'sum' (AddV2): attribute '_class': node 'gone' is not in the graph");
}

/* The small graph is read; a run of 'sum' fails and says why, one of 'a' does not mind. */
static void assert_carried(small *s, const char *why)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_tensor *value = NULL;
    assert_ok(import_small(s, g, &error));
    tw_node *sum = tw_graph_find(g, "sum");
    assert_true(tw_node_is_unknown(sum));
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_fails(tw_session_run(session, NULL, 0, &(tw_output){sum, -1}, 1, NULL, &error), TW_NOT_FOUND, why);
    assert_message(error.message, "AddV2");
    tw_output a = {tw_graph_find(g, "a"), 0};
    assert_ok(tw_session_run(session, NULL, 0, &a, 1, &value, &error));
    tw_tensor_release(value);
    tw_session_destroy(session);
    void *bytes;
    size_t size;
    assert_ok(tw_graph_export(g, &bytes, &size, &error)); /* as the file said */
    Twi__GraphDef *def = twi__graph_def__unpack(NULL, size, bytes);
    assert_string_equal(def->node[2]->op, "AddV2");
    assert_int_equal(def->node[2]->n_attr, s->nodes[2].n_attr);
    twi__graph_def__free_unpacked(def, NULL);
    tw_free(bytes);
    tw_graph_destroy(g);
}

static void what_is_not_supported_is_carried_until_it_is_needed(void **state)
{
    (void)state;
    small *s = make_small();
    s->values[1][0].type = 24;
    assert_carried(s, "it needs 'b': attribute 'dtype': data type 24 is not one of Tower's");
    s = make_small();
    s->values[1][0].type = 99;
    assert_carried(s, "data type 99 is not one of Tower's");
    s = make_small();
    add_attr(s, 2, "U", TWI__ATTR_VALUE__VALUE_B)->b = 1;
    assert_carried(s, "attribute 'U' is not known, and is not off");
    s = make_small();
    add_attr(s, 2, "f", TWI__ATTR_VALUE__VALUE_FUNC);
    assert_carried(s, "attribute 'f': functions are not supported");
}

static void attributes_of_newer_writers_pass_if_they_are_off(void **state)
{
    (void)state;
    tw_error error = {0};
    small *s = make_small();
    add_attr(s, 2, "grad_x", TWI__ATTR_VALUE__VALUE_B)->b = 0;
    add_attr(s, 2, "_mark", TWI__ATTR_VALUE__VALUE_FUNC);
    tw_graph *g = tw_graph_create();
    assert_ok(import_small(s, g, &error));
    tw_graph_destroy(g);
}

static void wrong_constants_are_refused_by_name(void **state)
{
    (void)state;
    small *s = make_small();
    s->shape.n_dim = 1;
    s->dims[0].size = -1;
    assert_refused(s, TW_INVALID_ARGUMENT, "node 'a' (Const): attribute 'value': a constant has the shape [?]");
    s->dims[0].size = -2;
    assert_refused(s, TW_INVALID_ARGUMENT, "dimension 0 of a shape is -2");
    s->dims[0].size = INT64_MAX;
    assert_refused(s, TW_INVALID_ARGUMENT, "a constant has the shape");
    s->dims[0].size = INT64_C(1) << 40;
    assert_refused(s, TW_RESOURCE_EXHAUSTED, "has few values in the file");
    s->dims[0].size = 2;
    s->tensor.tensor_content = (ProtobufCBinaryData){5, (uint8_t *)"12345"};
    assert_refused(s, TW_INVALID_ARGUMENT, "float [2] has 5 bytes of content, expected 8");
}

static void lists_of_absurd_length_are_refused(void **state)
{
    (void)state;
    static const int64_t lengths[] = {-1, 65536, INT64_C(1) << 32, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 5; i++) {
        small *s = make_small();
        s->nodes[2].op = "AddN";
        add_attr(s, 2, "N", TWI__ATTR_VALUE__VALUE_I)->i = lengths[i];
        assert_refused(s, TW_INVALID_ARGUMENT, "AddN 'sum': attribute 'N' is");
    }
    small *s = make_small();
    s->nodes[2].op = "Split";
    add_attr(s, 2, "num_split", TWI__ATTR_VALUE__VALUE_I)->i = INT32_MAX;
    assert_refused(s, TW_INVALID_ARGUMENT, "Split 'sum': attribute 'num_split' is 2147483647, expected 0 to 65535");
}

static void files_of_the_wrong_kind_or_time_are_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    assert_fails(tw_graph_import(g, "not a graph", 11, NULL, &error), TW_INVALID_ARGUMENT, "Invalid GraphDef");
    tw_graph_destroy(g);
    small *s = make_small();
    s->versions.min_consumer = 100000;
    assert_refused(s, TW_INVALID_ARGUMENT, "min consumer version 100000");
    s = make_small();
    int32_t bad = 134;
    s->versions.n_bad_consumers = 1;
    s->versions.bad_consumers = &bad;
    assert_refused(s, TW_INVALID_ARGUMENT, "disallows consumer version 134");
}

static void an_old_placeholder_of_no_dimensions_has_an_unknown_shape(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int k = 0; k < 4; k++) {
        int producer = 21 + k % 2;
        bool old = producer == 21 && k < 2; /* the second version must say its shape, so it means what it says */
        small *s = make_small();
        s->versions.producer = producer;
        s->nodes[3].op = k < 2 ? "Placeholder" : "PlaceholderV2";
        s->nodes[3].n_input = 0;
        add_attr(s, 3, "dtype", TWI__ATTR_VALUE__VALUE_TYPE)->type = TW_FLOAT32;
        Twi__TensorShapeProto scalar = TWI__TENSOR_SHAPE_PROTO__INIT;
        add_attr(s, 3, "shape", TWI__ATTR_VALUE__VALUE_SHAPE)->shape = &scalar;
        tw_graph *g = tw_graph_create();
        assert_ok(import_small(s, g, &error));
        assert_int_equal(tw_output_shape(tw_node_output(tw_graph_find(g, "after"), 0)).rank, old ? -1 : 0);
        tw_graph_destroy(g);
    }
}

static void damaged_files_never_crash(void **state)
{
    (void)state;
    tw_error error = {0};
    bytes golden = read_golden();
    uint32_t random = 1;
    for (size_t size = 0; size < golden.size; size += 131) {
        tw_graph *g = tw_graph_create();
        tw_graph_import(g, golden.data, size, NULL, &error);
        tw_graph_destroy(g);
    }
    for (int i = 0; i < 500; i++) {
        tw_graph *g = tw_graph_create();
        random = random * 1664525 + 1013904223;
        uint8_t *spoiled = &golden.data[(random >> 8) % golden.size], before = *spoiled;
        *spoiled ^= (uint8_t)(1u << (random >> 5) % 8);
        if (tw_graph_import(g, golden.data, golden.size, NULL, &error) != TW_OK)
            assert_int_equal(tw_graph_num_nodes(g), 0);
        *spoiled = before;
        tw_graph_destroy(g);
    }
    free(golden.data);
}

static void running_out_of_memory_loses_and_leaks_nothing(void **state)
{
    (void)state;
    small *s = make_small();
    bool failed = true;
    for (int n = 0; failed; n++) {
        tw_error error = {0};
        void *data = NULL;
        size_t size;
        fail_allocation(n);
        tw_graph *g = tw_graph_create();
        tw_status status = g ? import_small(s, g, &error) : TW_RESOURCE_EXHAUSTED;
        if (status == TW_OK)
            status = tw_graph_export(g, &data, &size, &error);
        tw_free(data);
        tw_graph_destroy(g);
        assert_int_equal(memory.live, 0);
        failed = stop_failing_allocations();
        assert_int_equal(status, failed ? TW_RESOURCE_EXHAUSTED : TW_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_by_tensorflow_computes_and_trains_as_there),
        cmocka_unit_test(constants_of_all_types_and_spellings_are_read),
        cmocka_unit_test(devices_control_inputs_and_colocation_are_kept_and_prefixed),
        cmocka_unit_test(handles_that_are_assigned_and_read_become_variables),
        cmocka_unit_test(a_graph_that_is_written_and_read_is_the_same),
        cmocka_unit_test(what_brings_examples_is_written_as_placeholders),
        cmocka_unit_test(what_a_queue_or_a_reader_gives_is_written_as_it_is),
        cmocka_unit_test(a_meta_graph_has_collections_a_saver_and_signatures),
        cmocka_unit_test(a_saved_model_gives_what_the_session_gave),
        cmocka_unit_test(a_file_in_order_keeps_its_order),
        cmocka_unit_test(names_that_differ_in_case_are_kept_and_new_ones_stay_clear),
        cmocka_unit_test(a_failed_graph_is_not_written),
        cmocka_unit_test(the_small_graph_is_good_before_it_is_spoiled),
        cmocka_unit_test(wrong_nodes_are_refused_by_name),
        cmocka_unit_test(devices_are_kept_as_the_file_has_them_and_refused_by_who_places_the_node),
        cmocka_unit_test(nodes_of_unknown_ops_are_kept_and_missed_when_they_are_needed),
        cmocka_unit_test(a_call_of_a_function_that_is_not_there_is_missed_by_its_name),
        cmocka_unit_test(a_constant_that_is_a_handle_is_missed_when_it_is_needed),
        cmocka_unit_test(unknown_nodes_go_out_as_they_came_in),
        cmocka_unit_test(handles_go_out_with_shapes_of_their_own_not_of_what_is_behind),
        cmocka_unit_test(wrong_inputs_are_refused_by_name),
        cmocka_unit_test(wrong_attributes_are_refused_by_name),
        cmocka_unit_test(what_is_not_supported_is_carried_until_it_is_needed),
        cmocka_unit_test(attributes_of_newer_writers_pass_if_they_are_off),
        cmocka_unit_test(wrong_constants_are_refused_by_name),
        cmocka_unit_test(lists_of_absurd_length_are_refused),
        cmocka_unit_test(files_of_the_wrong_kind_or_time_are_refused),
        cmocka_unit_test(an_old_placeholder_of_no_dimensions_has_an_unknown_shape),
        cmocka_unit_test(damaged_files_never_crash),
        cmocka_unit_test(running_out_of_memory_loses_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
