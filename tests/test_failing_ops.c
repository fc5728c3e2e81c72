/* test_failing_ops.c - each op of which TensorFlow's values are known, once in every type that it may have, is built,
 * differentiated, prepared and run with memory that fails wherever it has not failed yet: it says so, or gives its
 * values, and leaves nothing behind. */
#include "typed_testing.h"

#include "faulty_memory.h"

enum { MOST_SEEN = 1 << 14 };

static uint32_t seen[MOST_SEEN];
static int num_seen, tried;

/* Whether the op has had its turn with inputs of these types. */
static bool is_known(const twt_op *op)
{
    uint32_t hash = 2166136261u;
    for (const char *at = op->op; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    for (int i = 0; i < op->num_inputs; i++)
        hash = (hash ^ (unsigned)op->inputs[i]->dtype) * 16777619u;
    for (int i = 0; i < num_seen; i++)
        if (seen[i] == hash)
            return true;
    assert_true(num_seen < MOST_SEEN);
    seen[num_seen++] = hash;
    return false;
}

static tw_node *build(tw_graph *graph, const twt_op *op)
{
    tw_output inputs[TWT_MOST];
    for (int i = 0; i < op->num_inputs; i++)
        inputs[i] = tw_constant(graph, op->inputs[i]);
    return tw_add_node(graph, op->op, "n", inputs, op->num_inputs, op->attrs, op->num_attrs);
}

static bool fails_to_build(const twt_op *op)
{
    fail_at_new_place();
    tw_graph *graph = tw_graph_create();
    bool built = graph && build(graph, op);
    bool told = !graph || tw_graph_status(graph) == TW_RESOURCE_EXHAUSTED;
    tw_graph_destroy(graph);
    int live = memory.live;
    bool failed = stop_failing_allocations();
    if (live || (!built && !told))
        fail_msg("%s, an allocation of building fails: %d blocks are left", op->op, live);
    return failed;
}

static bool fails_to_run(twt_op *op)
{
    tw_error error = {0};
    tw_graph *graph = tw_graph_create();
    tw_node *node = build(graph, op);
    assert_non_null(node);
    fail_at_new_place();
    tw_status status = twt_run_node(op, node, twt_one_thread->items[0], &error);
    twt_op_release_outputs(op);
    int live = memory.live;
    bool failed = stop_failing_allocations();
    tw_graph_destroy(graph);
    if (live || (status != TW_OK && failed && status != TW_RESOURCE_EXHAUSTED))
        fail_msg("%s (%s), an allocation fails: status %d, \"%s\", %d blocks are left", op->op, op->kernel, status,
                 error.message, live);
    return failed;
}

/* The gradients of all that has one, with respect to all that goes in. */
static tw_status differentiate(const twt_op *op, tw_error *error)
{
    tw_output y[TWT_MOST], gradients[TWT_MOST];
    int count = 0;
    tw_graph *graph = tw_graph_create();
    tw_node *node = graph ? build(graph, op) : NULL;
    for (int i = 0; node && i < node->num_outputs; i++)
        if (twt_is_float(node->output_types[i]))
            y[count++] = (tw_output){node, i};
    if (count && node->num_inputs)
        tw_gradients(graph, y, count, NULL, node->inputs, node->num_inputs, gradients);
    error->status = graph ? tw_graph_status(graph) : TW_RESOURCE_EXHAUSTED;
    snprintf(error->message, sizeof error->message, "%s", graph ? tw_graph_message(graph) : "");
    tw_graph_destroy(graph);
    return error->status;
}

static bool fails_to_differentiate(const twt_op *op, tw_status undisturbed)
{
    tw_error error;
    fail_at_new_place();
    tw_status status = differentiate(op, &error);
    int live = memory.live;
    bool failed = stop_failing_allocations();
    if (live || (status != undisturbed && status != TW_RESOURCE_EXHAUSTED))
        fail_msg("%s, an allocation of its gradient fails: status %d, not %d, \"%s\", %d blocks are left", op->op,
                 status, undisturbed, error.message, live);
    return failed;
}

static void try(twt_op *op)
{
    tw_error error = {0};
    if (is_known(op))
        return;
    for (int plain = 0; plain < 2; plain++) {
        op->plain = plain;
        if (twt_run_on(op, plain, 1, &error) != TW_OK) /* and what is kept for the process is made */
            continue;
        twt_op_release_outputs(op);
        while (fails_to_run(op))
            ;
    }
    while (fails_to_build(op))
        ;
    tw_status status = differentiate(op, &error);
    while (fails_to_differentiate(op, status))
        ;
    tried++;
}

static void try_in_type(const twt_typed *t)
{
    twt_op op = twt_made(t, t->to, -1, 1);
    try(&op);
    twt_op_release(&op);
}

static void look(twt_case *c)
{
    if (c->failure || twi_op_is(twi_op_find(c->op.op), TWI_STATEFUL))
        return;
    try(&c->op);
    twt_in_each_type(c, try_in_type);
}

static void ops_survive_failing_memory(void **state)
{
    static const char *const files[] = {"ops_math.txt", "ops_array.txt",   "ops_nn.txt",    "ops_image.txt",
                                        "ops_rare.txt", "ops_complex.txt", "ops_other.txt", "ops_extra.txt"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        twt_each_case(files[i], look);
    assert_true(tried > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_survive_failing_memory),
    };
    return cmocka_run_group_tests(tests, twt_open_devices, twt_close_devices);
}
