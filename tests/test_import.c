/* A graph becomes a part of another, and what was built can be taken back: tw_graph_import_with(),
 * tw_graph_take_back(), tw_node_export(), tw_output_refine(), tw_op_describe(). */
#include "testing.h"

#include <tower/tower.h>

typedef struct bytes {
    void *data;
    size_t size;
} bytes;

/* sum = x + y, twice = sum * 2, both as a message; free with tw_free(). */
static bytes small_graph(void)
{
    bytes b;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(tw_name(g, "x"), TW_FLOAT32, TW_SHAPE(2));
    tw_output y = tw_placeholder(tw_name(g, "y"), TW_FLOAT32, TW_SHAPE(2));
    tw_output two = tw_scalar(tw_name(g, "two"), 2);
    tw_output sum = tw_add(tw_name(g, "sum"), x, y);
    tw_mul(tw_name(g, "twice"), sum, two);
    assert_ok(tw_graph_export(g, &b.data, &b.size, &error));
    tw_graph_destroy(g);
    return b;
}

static void inputs_are_led_to_the_graph(void **state)
{
    (void)state;
    tw_error error = {0};
    bytes b = small_graph();
    tw_graph *g = tw_graph_create();
    tw_output mine = tw_constant_floats(tw_name(g, "mine"), TW_SHAPE(2), (float[]){3, 4});
    tw_import_input inputs[] = {{"x", 0, mine}, {"y", 0, mine}, {"none", 0, mine}};
    const char *names[] = {"twice", "none", "two"};
    tw_node *nodes[3] = {NULL}, *after[] = {mine.node};
    tw_import_options options = {.size = sizeof options,
                                 .prefix = "p",
                                 .device = "/cpu:0",
                                 .inputs = inputs,
                                 .num_inputs = 3,
                                 .after = after,
                                 .num_after = 1,
                                 .names = names,
                                 .nodes = nodes,
                                 .num_names = 3};
    assert_ok(tw_graph_import_with(g, b.data, b.size, &options, &error));
    assert_true(inputs[0].used && inputs[1].used && !inputs[2].used);
    assert_string_equal(tw_node_name(nodes[0]), "p/twice");
    assert_null(nodes[1]);
    assert_string_equal(tw_node_device(nodes[0]), "/cpu:0");
    assert_ptr_equal(tw_node_control_input(nodes[2], 0), mine.node);
    assert_int_equal(tw_node_num_control_inputs(nodes[0]), 0);
    tw_session *session;
    tw_tensor *result = NULL;
    tw_output twice = {nodes[0], 0};
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &twice, 1, &result, &error));
    assert_float_equal(tw_tensor_value(result, 1), 16, 0);
    tw_tensor_release(result);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_free(b.data);
}

static void names_that_are_taken_are_changed_or_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    bytes b = small_graph();
    tw_graph *g = tw_graph_create();
    tw_import_options rename = {.size = sizeof rename, .rename = true};
    for (int i = 0; i < 3; i++)
        assert_ok(tw_graph_import_with(g, b.data, b.size, &rename, &error));
    tw_node *last = tw_graph_find(g, "twice_2");
    assert_non_null(last);
    assert_string_equal(tw_node_name(tw_node_input(last, 0).node), "sum_2");
    int before = tw_graph_num_nodes(g);
    assert_fails(tw_graph_import_with(g, b.data, b.size, NULL, &error), TW_ALREADY_EXISTS,
                 "Node name 'x' already exists");
    assert_int_equal(tw_graph_num_nodes(g), before);
    tw_graph_destroy(g);
    tw_free(b.data);
}

static void import_that_fails_leaves_nothing_behind(void **state)
{
    (void)state;
    tw_error error = {0};
    bytes b = small_graph();
    tw_graph *g = tw_graph_create();
    tw_output mine = tw_constant_floats(tw_name(g, "mine"), TW_SHAPE(3), (float[]){3, 4, 5});
    tw_import_input wrong[] = {{"x", 0, mine}}, none[] = {{"x", 0, {mine.node, 4}}}, missing[] = {{"x", 0, {0}}};
    tw_import_options options = {.size = sizeof options, .inputs = wrong, .num_inputs = 1};
    assert_fails(tw_graph_import_with(g, b.data, b.size, &options, &error), TW_INVALID_ARGUMENT, "sum");
    assert_int_equal(tw_graph_num_nodes(g), 1);
    assert_null(tw_graph_find(g, "y"));
    options.inputs = none;
    assert_fails(tw_graph_import_with(g, b.data, b.size, &options, &error), TW_INVALID_ARGUMENT, "output 4 of 'mine'");
    options.inputs = missing;
    assert_fails(tw_graph_import_with(g, b.data, b.size, &options, &error), TW_INVALID_ARGUMENT,
                 "no node of the graph");
    options.inputs = NULL;
    assert_fails(tw_graph_import_with(g, b.data, b.size, &options, &error), TW_INVALID_ARGUMENT, "inputs is NULL");
    assert_int_equal(tw_graph_status(g), TW_OK);
    options.num_inputs = 0;
    assert_ok(tw_graph_import_with(g, b.data, b.size, &options, &error)); /* under the same names */
    tw_graph_destroy(g);
    tw_free(b.data);
}

static void what_was_built_can_be_taken_back(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(tw_name(g, "x"), TW_FLOAT32, TW_SHAPE(2));
    int before = tw_graph_num_nodes(g);
    tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0});
    tw_add_to_collection(g, "losses", tw_add(g, x, v->value));
    tw_matmul(g, x, x);
    assert_int_not_equal(tw_graph_status(g), TW_OK);
    tw_graph_take_back(g, before);
    assert_int_equal(tw_graph_status(g), TW_OK);
    assert_int_equal(tw_graph_num_nodes(g), before);
    assert_int_equal(tw_graph_num_variables(g), 0);
    assert_null(tw_graph_find_variable(g, "v"));
    assert_null(tw_graph_find(g, "v"));
    assert_int_equal(tw_get_collection(g, "losses", NULL, NULL, 0), 0);
    assert_int_equal(tw_graph_num_collections(g), 0);
    v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0});
    assert_string_equal(tw_node_name(v->handle.node), "v");
    assert_int_equal(tw_graph_num_variables(g), 1);
    tw_graph_destroy(g);
}

static void shapes_become_known_and_are_never_forgotten(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(g, TW_FLOAT32, TW_UNKNOWN_SHAPE);
    assert_ok(tw_output_refine(x, TW_SHAPE(2, -1), &error));
    assert_ok(tw_output_refine(x, TW_SHAPE(-1, 3), &error));
    assert_ok(tw_output_refine(x, TW_UNKNOWN_SHAPE, &error));
    assert_true(tw_shape_equal(tw_output_shape(x), TW_SHAPE(2, 3)));
    assert_fails(tw_output_refine(x, TW_SHAPE(2, 5), &error), TW_INVALID_ARGUMENT, "Placeholder:0");
    assert_true(tw_shape_equal(tw_output_shape(x), TW_SHAPE(2, 3)));
    tw_graph_destroy(g);
}

static void rows_of_ops_can_be_read(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_op_info *op;
    int count = 0, stateful = 0;
    for (const char *name; (name = tw_op_at(count)); count++) {
        assert_ok(tw_op_describe(name, &op, &error));
        assert_string_equal(op->name, name);
        stateful += op->is_stateful;
        for (int i = 0; i < op->num_attrs; i++) {
            const tw_op_attr *attr = &op->attrs[i];
            int rank = attr->kind == TW_ATTR_SHAPE && attr->is_optional ? attr->initial.shape.rank : 0;
            if (rank < -1 || rank > TW_MAX_RANK)
                fail_msg("%s: its %s is of rank %d where nothing is said", name, attr->name, rank);
        }
        tw_op_info_destroy(op);
    }
    assert_true(count > 500 && stateful > 50);
    assert_ok(tw_op_describe("AddN", &op, &error));
    assert_string_equal(op->inputs[0].name, "inputs");
    assert_string_equal(op->inputs[0].type_attr, "T");
    assert_string_equal(op->inputs[0].number_attr, "N");
    assert_int_equal(op->num_outputs, 1);
    tw_op_info_destroy(op);
    assert_ok(tw_op_describe("VariableV2", &op, &error));
    assert_true(op->outputs[0].is_reference && op->is_stateful);
    tw_op_info_destroy(op);
    assert_fails(tw_op_describe("_Unknown", &op, &error), TW_NOT_FOUND, "_Unknown");
    assert_null(tw_op_at(-1));
}

static void node_is_written_with_its_attributes(void **state)
{
    (void)state;
    void *data;
    size_t size;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output x = tw_placeholder(tw_name(g, "x"), TW_FLOAT32, TW_SHAPE(2));
    assert_int_equal(tw_node_num_attrs(x.node), 2);
    assert_string_equal(tw_node_attr_at(x.node, 0)->name, "dtype");
    assert_null(tw_node_attr_at(x.node, 2));
    assert_ok(tw_node_export(x.node, &data, &size, &error));
    assert_memory_equal(data, "\x0a\x01x\x12\x0bPlaceholder", 16);
    tw_free(data);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_are_led_to_the_graph),
        cmocka_unit_test(names_that_are_taken_are_changed_or_refused),
        cmocka_unit_test(import_that_fails_leaves_nothing_behind),
        cmocka_unit_test(what_was_built_can_be_taken_back),
        cmocka_unit_test(shapes_become_known_and_are_never_forgotten),
        cmocka_unit_test(rows_of_ops_can_be_read),
        cmocka_unit_test(node_is_written_with_its_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
