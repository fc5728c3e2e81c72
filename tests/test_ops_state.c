/* test_ops_state.c - updates of variables: TensorFlow's numbers to the bit, shapes, refusals. */
#include "op_testing.h"

#include <tower/session.h>

/* ---- numbers ----------------------------------------------------------------------------------------------- */

static tw_devices *one_cpu(void)
{
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &devices, &error));
    return devices;
}

/* Runs the op on the first num_variables inputs as variables. */
static void run_update(const twt_op *op, int num_variables, int threads)
{
    tw_error error = {0};
    tw_devices *devices = one_cpu();
    twi_resource variables[4] = {{0}};
    twi_operand in[TWT_MOST];
    const void *from[TWT_MOST];
    twi_attr attrs[TWT_MOST + 1];
    for (int i = 0; i < op->num_inputs; i++) {
        in[i] = twt_operand(op->inputs[i], false);
        from[i] = op->inputs[i]->data;
        if (i < num_variables) {
            variables[i] = (twi_resource){.name = "v", .dtype = in[i].dtype, .shape = in[i].shape, .initialized = true};
            in[i].resource = &variables[i];
            in[i].dtype = TW_RESOURCE;
        }
    }
    memcpy(attrs, op->attrs, sizeof op->attrs);
    attrs[op->num_attrs] = tw_attr_type(strstr(op->op, "VariableOp") ? "dtype" : "T", op->inputs[0]->dtype);
    twi_attrs list = {attrs, op->num_attrs + 1};
    const twi_kernel *kernel;
    twi_prepare p = {.op = op->op, .node = "update", .attrs = &list, .num_inputs = op->num_inputs,
                     .inputs = in, .device = devices->items[0], .threads = threads, .error = &error};
    assert_ok(twi_device_prepare(devices->items[0], &p, false, &kernel));
    assert_ok(kernel->run(&(twi_run){.state = p.state, .inputs = from, .input_operands = in,
                                     .num_inputs = op->num_inputs, .threads = threads, .node = "update",
                                     .error = &error}));
    tw_devices_destroy(devices);
}

static void check_update(const twt_case *c)
{
    twt_op op = c->op;
    for (int i = 0; i < op.num_inputs; i++)
        op.inputs[i] = tw_tensor_from(op.inputs[i]->dtype, op.inputs[i]->shape, op.inputs[i]->data);
    run_update(&op, c->num_expected, 1);
    for (int i = 0; i < c->num_expected; i++) {
        twt_compare(c, i, op.inputs[i], op.op);
        twt_expect_same_bits(c, op.inputs[i], c->expected[i], "from TensorFlow's");
    }
    for (int i = 0; i < op.num_inputs; i++)
        tw_tensor_release(op.inputs[i]);
}

/* Checks the case, then forgets it. */
static void finish_case(twt_case *c)
{
    if (!c->op.op)
        return;
    check_update(c);
    twt_op_release(&c->op);
    for (int i = 0; i < c->num_expected; i++)
        tw_tensor_release(c->expected[i]);
    twi_arena_free(&c->arena);
}

static void updates_agree_with_tensorflow_to_the_bit(void **state)
{
    (void)state;
    tw_error error = {0};
    char path[512], *text, *rest = NULL;
    size_t size;
    twt_case c = {0};
    int cases = 0, number = 0;
    snprintf(path, sizeof path, "%s/ops_state.txt", GOLDEN_DIR);
    assert_ok(twi_file_read(path, (size_t)1 << 20, &text, &size, &error));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        number++;
        if (*line == '#')
            continue;
        if (strncmp(line, "case ", 5) != 0) {
            twt_read_line(&c, line);
            continue;
        }
        finish_case(&c);
        c = (twt_case){.file = "ops_state.txt", .line = number};
        c.op.op = twi_arena_strdup(&c.arena, line + 5);
        cases++;
    }
    finish_case(&c);
    assert_int_equal(cases, 4 * 6 + 9 * 2 + 6 * 6);
    twi_free(text);
}

/* A large update: variables, then scalars, and the gradient where the op wants it. */
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
    for (size_t u = 0; u < sizeof updates / sizeof updates[0]; u++) {
        twt_op ops[2] = {{0}};
        for (int way = 0; way < 2; way++) {
            twt_op *op = &ops[way];
            op->op = (char *)updates[u].op;
            op->num_inputs = updates[u].num_inputs;
            for (int i = 0; i < op->num_inputs; i++) {
                bool is_large = i < updates[u].num_variables || i == updates[u].gradient;
                op->inputs[i] = tw_tensor_create(TW_FLOAT32, is_large ? TW_SHAPE(N) : TW_SCALAR);
                float *values = op->inputs[i]->data;
                for (int64_t k = 0; k < op->inputs[i]->elements; k++)
                    values[k] = is_large ? 0.1f + (float)((k * 37 + i * 11) % 101) / 64 : 0.5f;
            }
            run_update(op, updates[u].num_variables, way ? 3 : 1);
        }
        for (int i = 0; i < updates[u].num_variables; i++)
            assert_memory_equal(ops[0].inputs[i]->data, ops[1].inputs[i]->data, N * sizeof(float));
        twt_op_release(&ops[0]);
        twt_op_release(&ops[1]);
    }
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
    tw_devices *devices = one_cpu();
    twi_resource v = {.name = "weights", .dtype = TW_FLOAT64, .shape = TW_SCALAR};
    twi_operand in = {.dtype = TW_RESOURCE, .shape = TW_SCALAR, .resource = &v}, out = {.dtype = TW_FLOAT32};
    twi_attr type = tw_attr_type("dtype", TW_FLOAT32);
    twi_attrs attrs = {&type, 1};
    const twi_kernel *kernel;
    twi_prepare p = {.op = "ReadVariableOp", .node = "read", .attrs = &attrs, .num_inputs = 1, .num_outputs = 1,
                     .inputs = &in, .outputs = &out, .device = devices->items[0], .threads = 1, .error = &error};
    assert_fails(twi_device_prepare(devices->items[0], &p, true, &kernel), TW_INVALID_ARGUMENT,
                 "variable 'weights' is double, the op works on float");
    tw_devices_destroy(devices);
}

/* ---- in a session ------------------------------------------------------------------------------------------ */

static double run_scalar(tw_session *s, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    assert_ok(tw_session_run(s, NULL, 0, &fetch, 1, &result, &error));
    double value = result ? tw_tensor_value(result, 0) : 0;
    tw_tensor_release(result);
    return value;
}

static void a_variable_counts_from_its_first_assignment(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_output v = variable(g, TW_INT64, TW_SCALAR), known = tw_is_initialized(g, v), read = tw_read_variable(g, v);
    tw_output one = tw_scalar_of(g, TW_INT64, 1), set = tw_assign(g, v, tw_scalar_of(g, TW_INT64, 40)), after = {0};
    tw_output up = tw_assign_add(g, v, one);
    TW_CONTROL(g, tw_assign_sub(g, v, tw_scalar_of(g, TW_INT64, 2)))
        after = tw_read_variable(g, v);
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_true(run_scalar(s, known) == 0);
    assert_fails(tw_session_run(s, NULL, 0, &up, 1, NULL, &error), TW_FAILED_PRECONDITION, "variable v");
    run_scalar(s, set);
    assert_true(run_scalar(s, known) == 1);
    run_scalar(s, up);
    run_scalar(s, up);
    assert_true(run_scalar(s, read) == 42);
    assert_true(run_scalar(s, after) == 40);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_agree_with_tensorflow_to_the_bit),
        cmocka_unit_test(updates_have_the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(reads_and_updates_know_the_variables_shape),
        cmocka_unit_test(a_value_of_another_shape_or_type_is_not_assigned),
        cmocka_unit_test(a_rate_that_is_no_scalar_is_refused),
        cmocka_unit_test(a_handle_of_another_type_is_refused_when_the_kernel_is_prepared),
        cmocka_unit_test(a_variable_counts_from_its_first_assignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
