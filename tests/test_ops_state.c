/* test_ops_state.c - updates of variables: TensorFlow's numbers to the bit, shapes, refusals. */
#include "op_testing.h"

/* ---- numbers ----------------------------------------------------------------------------------------------- */

/* Runs the case's op on its first num_outputs inputs as variables, in the resource or in the reference form. */
static void run_update(op_lab *lab, const op_case *c, const char *op, tw_tensor *const *inputs, int threads)
{
    tw_error error = {0};
    bool is_reference = strncmp(op, "Resource", 8) != 0 && !strstr(op, "VariableOp");
    twi_resource variables[4] = {{0}};
    twi_operand in[OP_CASE_MOST], out = operand_of(inputs[0], false);
    const void *from[OP_CASE_MOST];
    void *to[] = {tw_tensor_data(inputs[0])};
    twi_attr attrs[OP_CASE_MOST + 1];
    for (int i = 0; i < c->num_inputs; i++) {
        in[i] = operand_of(inputs[i], false);
        from[i] = tw_tensor_data(inputs[i]);
        if (i < c->num_outputs) {
            variables[i] = (twi_resource){.name = "v", .dtype = in[i].dtype, .shape = in[i].shape, .initialized = true};
            in[i].resource = &variables[i];
            in[i].dtype = is_reference ? in[i].dtype : TW_RESOURCE;
        }
    }
    memcpy(attrs, c->attrs, sizeof c->attrs);
    attrs[c->num_attrs] = tw_attr_type(strstr(op, "VariableOp") ? "dtype" : "T", tw_tensor_dtype(inputs[0]));
    twi_attrs list = {attrs, c->num_attrs + 1};
    const twi_kernel *kernel;
    twi_prepare p = {.op = op, .node = "update", .attrs = &list, .num_inputs = c->num_inputs,
                     .num_outputs = is_reference, .inputs = in, .outputs = &out, .device = lab->devices->items[0],
                     .threads = threads, .error = &error};
    assert_ok(twi_device_prepare(lab->devices->items[0], &p, true, &kernel));
    assert_ok(kernel->run(&(twi_run){.state = p.state, .inputs = from, .outputs = to, .input_operands = in,
                                     .output_operands = &out, .num_inputs = c->num_inputs,
                                     .num_outputs = is_reference, .threads = threads, .node = "update",
                                     .error = &error}));
}

static void check_update(op_lab *lab, const op_case *c, const char *op, double tolerance)
{
    tw_tensor *inputs[OP_CASE_MOST];
    for (int i = 0; i < c->num_inputs; i++)
        inputs[i] = converted(c->inputs[i], tw_tensor_dtype(c->inputs[i]));
    run_update(lab, c, op, inputs, 1);
    for (int i = 0; i < c->num_outputs; i++)
        compare(c, i, inputs[i], tolerance);
    for (int i = 0; i < c->num_inputs; i++)
        tw_tensor_release(inputs[i]);
}

static void check_update_case(op_lab *lab, const op_case *c)
{
    char reference[64];
    check_update(lab, c, c->op, 0);
    if (strncmp(c->op, "Resource", 8) == 0)
        snprintf(reference, sizeof reference, "%s", c->op + 8);
    else
        snprintf(reference, sizeof reference, "%.*s", (int)(strstr(c->op, "VariableOp") - c->op), c->op);
    check_update(lab, c, reference, 0);
}

static void updates_agree_with_tensorflow_to_the_bit_in_both_forms(void **state)
{
    (void)state;
    op_lab lab = open_lab();
    op_case c = {0};
    int count = 0, number = 0;
    char *text = read_golden("ops_state.txt"), *lines = NULL;
    for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        char *rest = NULL;
        const char *head = strtok_r(line, " ", &rest);
        number++;
        if (!strcmp(head, "case")) {
            if (c.op[0])
                check_update_case(&lab, &c);
            forget_case(&c);
            c.file = "ops_state.txt";
            c.line = number;
            snprintf(c.op, sizeof c.op, "%s", strtok_r(NULL, " ", &rest));
            count++;
        } else if (!strcmp(head, "in")) {
            c.inputs[c.num_inputs++] = read_tensor(&c, &rest);
        } else if (!strcmp(head, "out")) {
            c.outputs[c.num_outputs++] = read_tensor(&c, &rest);
        } else if (!strcmp(head, "attr")) {
            read_attr(&c, &rest);
        }
    }
    check_update_case(&lab, &c);
    assert_int_equal(count, 4 * 6 + 9 * 2);
    forget_case(&c);
    twi_free(text);
    close_lab(&lab);
}

/* A large update: variables, then the gradient; scalars as Adam wants them. */
static void updates_have_the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    enum { N = 40001 };
    static const struct {
        const char *op;
        int num_variables, num_inputs, gradient;
    } updates[] = {
        {"ResourceApplyGradientDescent", 1, 3, 2},
        {"ResourceApplyMomentum", 2, 5, 3},
        {"ResourceApplyAdam", 3, 10, 9},
        {"ResourceApplyRMSProp", 3, 8, 7},
    };
    op_lab lab = open_lab();
    for (size_t u = 0; u < sizeof updates / sizeof updates[0]; u++) {
        tw_tensor *results[2] = {0};
        for (int way = 0; way < 2; way++) {
            op_case c = {.num_inputs = updates[u].num_inputs, .num_outputs = updates[u].num_variables};
            tw_tensor *inputs[OP_CASE_MOST];
            for (int i = 0; i < c.num_inputs; i++) {
                bool is_large = i < c.num_outputs || i == updates[u].gradient;
                inputs[i] = tw_tensor_create(TW_FLOAT32, is_large ? TW_SHAPE(N) : TW_SCALAR);
                for (int64_t k = 0; k < tw_tensor_elements(inputs[i]); k++)
                    set_value(inputs[i], k, is_large ? 0.1 + (double)((k * 37 + i * 11) % 101) / 64 : 0.5);
            }
            run_update(&lab, &c, updates[u].op, inputs, way ? 3 : 1);
            results[way] = inputs[0];
            for (int i = 1; i < c.num_inputs; i++)
                tw_tensor_release(inputs[i]);
        }
        assert_memory_equal(tw_tensor_data(results[0]), tw_tensor_data(results[1]), N * sizeof(float));
        tw_tensor_release(results[0]);
        tw_tensor_release(results[1]);
    }
    close_lab(&lab);
}

/* ---- shapes and refusals ----------------------------------------------------------------------------------- */

static tw_output variable(tw_graph *g, tw_dtype dtype, tw_shape shape)
{
    return tw_get_variable(g, "v", dtype, shape, (tw_initializer){0})->handle;
}

static void reads_and_updates_know_the_variables_shape(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output v = variable(g, TW_FLOAT64, TW_SHAPE(2, 3));
    tw_output read = tw_read_variable(g, v);
    assert_true(tw_shape_equal(tw_output_shape(read), TW_SHAPE(2, 3)));
    assert_int_equal(tw_output_dtype(read), TW_FLOAT64);
    assert_true(tw_shape_equal(tw_output_shape(tw_variable_shape(g, v)), TW_SHAPE(2)));
    assert_int_equal(tw_output_dtype(tw_is_initialized(g, v)), TW_BOOL);
    tw_graph_destroy(g);
}

static void a_value_of_another_shape_or_type_is_not_assigned(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_assign(g, variable(g, TW_FLOAT32, TW_SHAPE(2, 3)), tw_zeros(g, TW_FLOAT32, TW_SHAPE(3, 2)));
    assert_message(tw_graph_message(g), "the variable has shape [2,3], but input 1 has shape [3,2]");
    tw_graph_destroy(g);
    g = tw_graph_create();
    tw_assign_add(g, variable(g, TW_FLOAT32, TW_SHAPE(2)), tw_zeros(g, TW_FLOAT64, TW_SHAPE(2)));
    assert_message(tw_graph_message(g), "is double, expected float");
    tw_graph_destroy(g);
}

static void a_rate_that_is_no_scalar_is_refused(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output two = tw_zeros(g, TW_FLOAT32, TW_SHAPE(2));
    tw_apply_gradient_descent(g, variable(g, TW_FLOAT32, TW_SHAPE(2)), two, two);
    assert_message(tw_graph_message(g), "input 1 is a scalar, not [2]");
    tw_graph_destroy(g);
}

static void a_handle_of_another_type_is_refused_when_the_kernel_is_prepared(void **state)
{
    (void)state;
    tw_error error = {0};
    op_lab lab = open_lab();
    twi_resource v = {.name = "weights", .dtype = TW_FLOAT64, .shape = TW_SCALAR};
    twi_operand in = {.dtype = TW_RESOURCE, .shape = TW_SCALAR, .resource = &v}, out = {.dtype = TW_FLOAT32};
    twi_attr type = tw_attr_type("dtype", TW_FLOAT32);
    twi_attrs attrs = {&type, 1};
    const twi_kernel *kernel;
    twi_prepare p = {.op = "ReadVariableOp", .node = "read", .attrs = &attrs, .num_inputs = 1, .num_outputs = 1,
                     .inputs = &in, .outputs = &out, .device = lab.devices->items[0], .threads = 1, .error = &error};
    assert_fails(twi_device_prepare(lab.devices->items[0], &p, true, &kernel), TW_INVALID_ARGUMENT,
                 "variable 'weights' is double, the op works on float");
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_agree_with_tensorflow_to_the_bit_in_both_forms),
        cmocka_unit_test(updates_have_the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(reads_and_updates_know_the_variables_shape),
        cmocka_unit_test(a_value_of_another_shape_or_type_is_not_assigned),
        cmocka_unit_test(a_rate_that_is_no_scalar_is_refused),
        cmocka_unit_test(a_handle_of_another_type_is_refused_when_the_kernel_is_prepared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
