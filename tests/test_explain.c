/* test_explain.c - what a session says of itself is so: the memory it plans is what devices then hold, the reasons it
 * names decide, what became of nodes is what runs. */
#include "memory_testing.h"

#include <tower/nn.h>
#include <tower/tower.h>

typedef struct fixture {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_error error;
} fixture;

static void open_devices(fixture *f, tw_device_options options)
{
    *f = (fixture){.g = tw_graph_create()};
    if (options.cpu_threads == 0)
        options.cpu_threads = 1;
    if (tw_devices_create(&options, &f->devices, &f->error) != TW_OK)
        fail_msg("%s", f->error.message);
}

static void open_session(fixture *f, tw_session_options options)
{
    options.devices = f->devices;
    assert_string_equal(tw_graph_message(f->g), "");
    if (tw_session_create(f->g, &options, &f->s, &f->error) != TW_OK)
        fail_msg("%s", f->error.message);
}

static void close_all(fixture *f)
{
    tw_session_destroy(f->s);
    tw_devices_destroy(f->devices);
    tw_graph_destroy(f->g);
}

#define ok(f, call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != TW_OK)                                                                                           \
            fail_msg("%s: %s", #call, (f)->error.message);                                                             \
    } while (0)

/* "GPU:1" */
static const char *short_name(const char *device)
{
    return device ? strstr(device, "device:") + strlen("device:") : "nowhere";
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* A layer on the first GPU, one on the second, their training step; a batch that is fed. */
typedef struct net {
    tw_output x, train, loss;
} net;

static net build_net(fixture *f)
{
    net n = {.x = tw_placeholder(f->g, TW_FLOAT32, TW_SHAPE(-1, 30))};
    tw_output hidden, logits;
    TW_DEVICE(f->g, "/gpu:0") {
        tw_variable *w =
            tw_get_variable(f->g, "w1", TW_FLOAT32, TW_SHAPE(30, 50), (tw_initializer){TW_INIT_NORMAL, 0, 1});
        hidden = tw_relu(f->g, tw_matmul(f->g, n.x, tw_variable_read(f->g, w)));
    }
    TW_DEVICE(f->g, "/gpu:1") {
        tw_variable *w =
            tw_get_variable(f->g, "w2", TW_FLOAT32, TW_SHAPE(50, 7), (tw_initializer){TW_INIT_NORMAL, 0, 1});
        logits = tw_matmul(f->g, hidden, tw_variable_read(f->g, w));
        n.loss = tw_reduce_mean(f->g, tw_square(f->g, logits), NULL, 0, false);
    }
    tw_optimizer *momentum = tw_momentum(f->g, tw_scalar(f->g, 0.1f), 0.9f, false);
    n.train = tw_apply_gradients(momentum, tw_compute_gradients(momentum, n.loss), NULL);
    return n;
}

static void assert_memory_is_as_planned(fixture *f, int held)
{
    tw_memory *memory;
    ok(f, tw_session_memory(f->s, &memory, &f->error));
    for (int d = 0; d < memory->num_devices; d++) {
        const tw_device_memory *m = &memory->devices[d];
        assert_items_add_up(m);
        assert_int_equal(m->total, m->variables + m->constants + m->arena);
        assert_int_equal(tw_devices_info(f->devices, d).memory_used, held ? m->total : 0);
        if (held)
            assert_true((int64_t)tw_devices_info(f->devices, d).memory_peak <= m->total);
    }
    tw_memory_destroy(memory);
}

static void run_net(fixture *f, const net *n, int rows)
{
    tw_tensor *x = tw_tensor_create(TW_FLOAT32, TW_SHAPE(rows, 30));
    ok(f, tw_session_run(f->s, &(tw_feed){n->x, x}, 1, &n->train, 1, NULL, &f->error));
    tw_tensor_release(x);
}

static void a_prepared_session_holds_nothing_until_it_runs_and_then_what_it_planned(void **state)
{
    (void)state;
    fixture f;
    open_devices(&f, (tw_device_options){.virtual_gpus = 2});
    net n = build_net(&f);
    tw_output initialize = tw_initialize_variables(f.g);
    open_session(&f, (tw_session_options){0});
    ok(&f, tw_session_prepare(f.s, NULL, 0, &initialize, 1, &f.error));
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){n.x, TW_SHAPE(64, 30)}, 1, &n.train, 1, &f.error));
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){n.x, TW_SHAPE(8, 30)}, 1, &n.train, 1, &f.error));
    assert_memory_is_as_planned(&f, 0);

    ok(&f, tw_session_run(f.s, NULL, 0, &initialize, 1, NULL, &f.error));
    run_net(&f, &n, 8);
    size_t after_small = tw_devices_info(f.devices, 1).memory_used;
    run_net(&f, &n, 64);
    assert_memory_is_as_planned(&f, 1);
    assert_true(tw_devices_info(f.devices, 1).memory_used < after_small + 256); /* buffers were taken at once; constants
                                                                                   come with their plan */
    for (int i = 0; i < 3; i++)
        run_net(&f, &n, 64);
    assert_memory_is_as_planned(&f, 1);
    run_net(&f, &n, 80); /* a plan that nobody prepared */
    assert_memory_is_as_planned(&f, 1);
    close_all(&f);
}

static void memory_that_may_grow_is_taken_as_plans_need_it(void **state)
{
    (void)state;
    fixture f;
    open_devices(&f, (tw_device_options){.virtual_gpus = 2, .allow_growth = true});
    net n = build_net(&f);
    tw_output initialize = tw_initialize_variables(f.g);
    open_session(&f, (tw_session_options){0});
    ok(&f, tw_session_prepare(f.s, NULL, 0, &initialize, 1, &f.error));
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){n.x, TW_SHAPE(64, 30)}, 1, &n.train, 1, &f.error));
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){n.x, TW_SHAPE(8, 30)}, 1, &n.train, 1, &f.error));
    ok(&f, tw_session_run(f.s, NULL, 0, &initialize, 1, NULL, &f.error));
    size_t first = tw_devices_info(f.devices, 1).memory_used;
    run_net(&f, &n, 8);
    size_t second = tw_devices_info(f.devices, 1).memory_used;
    run_net(&f, &n, 64);
    size_t third = tw_devices_info(f.devices, 1).memory_used;
    assert_true(first < second && second < third);
    assert_memory_is_as_planned(&f, 1); /* in the end it is the same */
    close_all(&f);
}

static void memory_is_listed_by_use_with_names(void **state)
{
    (void)state;
    fixture f;
    tw_memory *memory;
    open_devices(&f, (tw_device_options){.virtual_gpus = 2, .gpu_memory_limit = 1 << 20});
    net n = build_net(&f);
    open_session(&f, (tw_session_options){0});
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){n.x, TW_SHAPE(64, 30)}, 1, &n.train, 1, &f.error));
    ok(&f, tw_session_memory(f.s, &memory, &f.error));
    const tw_device_memory *gpu = &memory->devices[1];
    assert_string_equal(short_name(gpu->device), "GPU:0");
    assert_int_equal(gpu->limit, 1 << 20);
    assert_int_equal(gpu->items[0].use, TW_MEMORY_VARIABLE);
    assert_string_equal(gpu->items[0].name, "w1");
    assert_int_equal(gpu->items[0].bytes, 30 * 50 * 4);
    assert_int_equal(gpu->items[1].use, TW_MEMORY_SLOT);
    assert_string_equal(gpu->items[1].name, "w1/Momentum");
    bool input = false;
    for (int i = 0; i < gpu->num_items; i++)
        input |= gpu->items[i].use == TW_MEMORY_INPUT && gpu->items[i].bytes == 64 * 30 * 4;
    assert_true(input);
    assert_non_null(gpu->fullest);
    tw_memory_destroy(memory);
    close_all(&f);
}

static void shapes_of_what_is_fed_must_be_known_to_prepare(void **state)
{
    (void)state;
    fixture f;
    open_devices(&f, (tw_device_options){.virtual_gpus = 2});
    net n = build_net(&f);
    open_session(&f, (tw_session_options){0});
    tw_error error;
    assert_fails(tw_session_prepare(f.s, &(tw_feed_shape){n.x, TW_SHAPE(-1, 30)}, 1, &n.train, 1, &error),
                 TW_INVALID_ARGUMENT, "its shape must be wholly known");
    assert_fails(tw_session_prepare(f.s, &(tw_feed_shape){n.x, TW_SHAPE(4, 31)}, 1, &n.train, 1, &error),
                 TW_INVALID_ARGUMENT, "[4,31]");
    assert_fails(tw_session_prepare(f.s, NULL, 0, &n.train, 1, &error), TW_INVALID_ARGUMENT, "You must feed");
    close_all(&f);
}

/* ---- reasons --------------------------------------------------------------------------------------------------- */

/* A group of three on a missing device, or one without kernels; parts can be left out. */
typedef struct parts {
    const char *asked;      /* of the head */
    bool first, second;     /* two integer products, which no GPU can run, in the head's group */
} parts;

static tw_output build_group(tw_graph *g, parts p)
{
    tw_tensor *values = tw_tensor_from(TW_INT32, TW_SHAPE(2, 2), (int32_t[]){1, 2, 3, 4});
    tw_output ints = tw_constant(g, values), head = {0};
    tw_tensor_release(values);
    TW_DEVICE(g, "%s", p.asked)
        head = tw_identity(tw_name(g, "head"), tw_placeholder(g, TW_FLOAT32, TW_SHAPE(2)));
    TW_COLOCATE(g, head) {
        if (p.first)
            tw_matmul(tw_name(g, "first"), ints, ints);
        if (p.second)
            tw_matmul(tw_name(g, "second"), ints, ints);
        tw_identity(tw_name(g, "follower"), head);
    }
    return head;
}

/* Where the head of such a group goes; its explanation, if wanted, is the caller's. */
static void place_group(fixture *f, parts p, int gpus, tw_explanation **why)
{
    open_devices(f, (tw_device_options){.virtual_gpus = gpus});
    tw_output head = build_group(f->g, p);
    open_session(f, (tw_session_options){.allow_soft_placement = true});
    ok(f, tw_session_explain(f->s, head.node, why, &f->error));
}

static void assert_goes(parts p, int gpus, const char *device)
{
    fixture f;
    tw_explanation *why;
    place_group(&f, p, gpus, &why);
    assert_string_equal(short_name(why->device), device);
    tw_explanation_destroy(why);
    close_all(&f);
}

static void taking_away_what_a_move_names_undoes_it_and_less_does_not(void **state)
{
    (void)state;
    fixture f;
    tw_explanation *why;
    parts both = {"/gpu:1", true, true}, missing = {"/gpu:5", false, false};

    place_group(&f, both, 2, &why);
    assert_int_equal(why->rule, TW_PLACED_SOFTLY);
    assert_int_equal(why->obstacle, TW_OBSTACLE_NO_KERNEL);
    assert_int_equal(why->num_obstacles, 2);
    assert_string_equal(tw_node_name(why->obstacles[0]), "first");
    assert_string_equal(tw_node_name(why->obstacles[1]), "second");
    assert_string_equal(short_name(why->device), "CPU:0");
    tw_explanation_destroy(why);
    close_all(&f);
    assert_goes((parts){"/gpu:1", true, false}, 2, "CPU:0");
    assert_goes((parts){"/gpu:1", false, true}, 2, "CPU:0");
    assert_goes((parts){"/gpu:1", false, false}, 2, "GPU:1");

    place_group(&f, missing, 2, &why);
    assert_int_equal(why->obstacle, TW_OBSTACLE_NO_DEVICE);
    assert_string_equal(short_name(why->device), "GPU:0");
    tw_explanation_destroy(why);
    close_all(&f);
    assert_goes(missing, 6, "GPU:5");
}

static void a_follower_names_who_decides_and_the_chain_to_it(void **state)
{
    (void)state;
    fixture f;
    tw_explanation *why;
    open_devices(&f, (tw_device_options){.virtual_gpus = 2});
    tw_variable *v = NULL;
    tw_output read, colocated, other;
    TW_DEVICE(f.g, "/gpu:1")
        v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){0});
    TW_DEVICE(f.g, "/gpu:0")
        other = tw_variable_read(f.g, v);
    read = tw_variable_read(f.g, v);
    TW_COLOCATE(f.g, read)
        colocated = tw_identity(f.g, tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(3)));
    open_session(&f, (tw_session_options){0});
    ok(&f, tw_session_explain(f.s, colocated.node, &why, &f.error));
    assert_int_equal(why->rule, TW_PLACED_AS_ASKED);
    assert_ptr_equal(why->decided_by, v->handle.node);
    assert_string_equal(why->request, "/device:GPU:1");
    assert_int_equal(why->num_links, 2);
    assert_ptr_equal(why->chain[0].node, colocated.node);
    assert_ptr_equal(why->chain[0].with, read.node);
    assert_int_equal(why->chain[0].kind, TW_LINK_NAMES);
    assert_ptr_equal(why->chain[1].with, v->handle.node);
    assert_int_equal(why->chain[1].kind, TW_LINK_USES);
    assert_int_equal(why->num_rejected, 2);
    assert_string_equal(short_name(why->rejected[0].device), "GPU:0");
    assert_int_equal(why->rejected[0].why, TW_REJECTED_BY_REQUEST);
    assert_ptr_equal(why->rejected[0].by, v->handle.node);
    tw_explanation_destroy(why);

    ok(&f, tw_session_explain(f.s, other.node, &why, &f.error));
    assert_true(why->gave_way);
    assert_string_equal(why->requested, "/device:GPU:0");
    tw_explanation_destroy(why);
    close_all(&f);
}

static void soft_placement_can_wrap_numbers_around_or_prefer_the_cpu(void **state)
{
    (void)state;
    static const struct {
        tw_soft_choice choice;
        const char *where[3]; /* of gpu:2, gpu:3, gpu:5 with two GPUs */
    } cases[] = {
        {TW_SOFT_LOWEST, {"GPU:0", "GPU:0", "GPU:0"}},
        {TW_SOFT_WRAP, {"GPU:0", "GPU:1", "GPU:1"}},
        {TW_SOFT_CPU, {"CPU:0", "CPU:0", "CPU:0"}},
    };
    static const int numbers[] = {2, 3, 5};
    for (size_t i = 0; i < 3; i++) {
        fixture f;
        tw_output outputs[3];
        open_devices(&f, (tw_device_options){.virtual_gpus = 2});
        tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(2));
        for (int k = 0; k < 3; k++)
            TW_DEVICE(f.g, "/gpu:%d", numbers[k])
                outputs[k] = tw_relu(f.g, x);
        open_session(&f, (tw_session_options){.allow_soft_placement = true, .soft_choice = cases[i].choice});
        ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){x, TW_SHAPE(2)}, 1, outputs, 3, &f.error));
        for (int k = 0; k < 3; k++)
            assert_string_equal(short_name(tw_session_device(f.s, outputs[k].node)), cases[i].where[k]);
        close_all(&f);
    }
}

/* ---- what moves cost --------------------------------------------------------------------------------------------- */

/* An integer product in the middle of what runs on a GPU: its operands come to the CPU and its result goes back. */
static tw_output build_detour(fixture *f)
{
    tw_output end = {0};
    TW_DEVICE(f->g, "/gpu:0") {
        tw_variable *v = tw_get_variable(f->g, "v", TW_FLOAT32, TW_SHAPE(16, 16), (tw_initializer){0});
        tw_output ints = tw_cast(f->g, tw_variable_read(f->g, v), TW_INT32);
        end = tw_cast(f->g, tw_matmul(tw_name(f->g, "detour"), ints, ints), TW_FLOAT32);
    }
    return end;
}

static void a_costly_move_is_refused_beyond_the_budget_with_the_table(void **state)
{
    (void)state;
    tw_error error;
    static const struct {
        int64_t budget;
        bool allowed;
    } cases[] = {{0, true}, {2048, true}, {2047, false}, {-1, false}};
    for (size_t i = 0; i < 4; i++) {
        fixture f;
        open_devices(&f, (tw_device_options){.virtual_gpus = 1});
        tw_output end = build_detour(&f);
        open_session(&f, (tw_session_options){.allow_soft_placement = true, .soft_budget = cases[i].budget});
        if (cases[i].allowed) {
            tw_moves *moves;
            ok(&f, tw_session_prepare(f.s, NULL, 0, &end, 1, &f.error));
            ok(&f, tw_session_moves(f.s, &moves, &f.error));
            assert_true(moves->planned);
            assert_int_equal(moves->num_nodes, 1);
            assert_int_equal(moves->bytes, 2048); /* 16 x 16 integers there and back */
            assert_int_equal(moves->groups[0].bytes, 2048);
            assert_string_equal(moves->groups[0].op, "MatMul");
            tw_moves_destroy(moves);
        } else {
            assert_fails(tw_session_prepare(f.s, NULL, 0, &end, 1, &error), TW_FAILED_PRECONDITION,
                         "soft placement makes 2048 bytes cross between devices in a step, the budget is ");
            assert_message(error.message,
                           "MatMul of int32      1  /device:GPU:0  /device:CPU:0          2048  no kernel "
                           "there for MatMul of int32");
        }
        close_all(&f);
    }
}

/* ---- what became of nodes ---------------------------------------------------------------------------------------- */

static tw_explanation *explain(fixture *f, tw_output output)
{
    tw_explanation *why;
    ok(f, tw_session_explain(f->s, output.node, &why, &f->error));
    return why;
}

static void an_explanation_says_what_the_plan_made_of_a_node(void **state)
{
    (void)state;
    fixture f;
    open_devices(&f, (tw_device_options){.virtual_gpus = 1});
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(-1, 8)), product, sum, end, two, back;
    TW_DEVICE(f.g, "/gpu:0") {
        tw_variable *w = tw_get_variable(f.g, "w", TW_FLOAT32, TW_SHAPE(8, 8), (tw_initializer){.a = 1});
        tw_variable *b = tw_get_variable(f.g, "b", TW_FLOAT32, TW_SHAPE(8), (tw_initializer){.a = 1});
        product = tw_matmul(f.g, x, tw_variable_read(f.g, w));
        sum = tw_bias_add(f.g, product, tw_variable_read(f.g, b));
        end = tw_relu(f.g, sum);
        two = tw_add(f.g, tw_scalar(f.g, 1), tw_scalar(f.g, 1));
        end = tw_mul(f.g, end, two);
    }
    TW_DEVICE(f.g, "/cpu:0")
        back = tw_tanh(f.g, end);
    tw_output unused = tw_tanh(f.g, back);
    open_session(&f, (tw_session_options){0});
    tw_explanation *before = explain(&f, product);
    assert_int_equal(before->fate, TW_FATE_UNPLANNED);
    tw_explanation_destroy(before);
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){x, TW_SHAPE(4, 8)}, 1, &back, 1, &f.error));

    tw_explanation *why[] = {explain(&f, x),   explain(&f, product), explain(&f, sum),    explain(&f, two),
                             explain(&f, end), explain(&f, back),    explain(&f, unused)};
    static const tw_fate fates[] = {TW_FATE_FED,  TW_FATE_JOINED, TW_FATE_JOINED,   TW_FATE_CONSTANT,
                                    TW_FATE_STEP, TW_FATE_STEP,   TW_FATE_UNPLANNED};
    for (int i = 0; i < 7; i++)
        if (why[i]->fate != fates[i])
            fail_msg("node %d: fate %d, expected %d", i, why[i]->fate, fates[i]);
    assert_string_equal(why[1]->became, why[2]->became); /* product and sum are one kernel */
    assert_int_equal(why[0]->num_crossings, 1);          /* the batch goes to the GPU */
    assert_false(why[0]->crossings[0].arrives);
    assert_int_equal(why[0]->crossing_bytes, 4 * 8 * 4);
    assert_true(why[1]->crossings[0].arrives);
    assert_int_equal(why[4]->num_crossings, 1); /* and the result comes back */
    assert_string_equal(short_name(why[4]->crossings[0].to), "CPU:0");
    assert_non_null(why[4]->kernel);
    for (int i = 0; i < 7; i++)
        tw_explanation_destroy(why[i]);
    close_all(&f);
}

/* The planned node of an op; NULL: there is none. */
static const tw_planned_node *find_planned(const tw_planned *planned, const char *op, int plan)
{
    for (int i = 0; i < planned->num_nodes; i++)
        if (strcmp(planned->nodes[i].op, op) == 0 && planned->nodes[i].plan == plan)
            return &planned->nodes[i];
    return NULL;
}

static void all_plans_are_listed_node_by_node(void **state)
{
    (void)state;
    fixture f;
    tw_planned *planned;
    open_devices(&f, (tw_device_options){.virtual_gpus = 1});
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(4)), y, z;
    TW_DEVICE(f.g, "/gpu:0")
        y = tw_tanh(f.g, x);
    TW_DEVICE(f.g, "/cpu:0")
        z = tw_sigmoid(f.g, y);
    open_session(&f, (tw_session_options){0});
    ok(&f, tw_session_planned(f.s, &planned, &f.error));
    assert_int_equal(planned->num_nodes, 0);
    assert_int_equal(planned->num_plans, 0);
    tw_planned_destroy(planned);
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){x, TW_SHAPE(4)}, 1, &y, 1, &f.error));
    ok(&f, tw_session_prepare(f.s, &(tw_feed_shape){x, TW_SHAPE(4)}, 1, &z, 1, &f.error));
    ok(&f, tw_session_planned(f.s, &planned, &f.error));
    assert_int_equal(planned->num_plans, 2);
    assert_null(find_planned(planned, "Sigmoid", 0));
    const tw_planned_node *sigmoid = find_planned(planned, "Sigmoid", 1), *tanh = find_planned(planned, "Tanh", 1);
    assert_true(sigmoid && tanh && find_planned(planned, "Tanh", 0));
    assert_string_equal(short_name(sigmoid->device), "CPU:0");
    assert_string_equal(short_name(tanh->device), "GPU:0");
    assert_string_equal(tanh->name, tw_node_name(y.node));
    assert_int_equal(tanh->fate, TW_FATE_STEP);
    assert_non_null(tanh->kernel);
    assert_int_equal(tanh->read, 4 * sizeof(float));
    assert_int_equal(tanh->written, 4 * sizeof(float));
    assert_int_equal(find_planned(planned, "_Feed", 1)->fate, TW_FATE_FED);
    assert_int_equal(find_planned(planned, "_Feed", 1)->written, 0);
    assert_int_equal(find_planned(planned, "_Copy", 1)->fate, TW_FATE_STEP);
    assert_null(find_planned(planned, "_Copy", 1)->kernel);
    tw_planned_destroy(planned);
    close_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prepared_session_holds_nothing_until_it_runs_and_then_what_it_planned),
        cmocka_unit_test(memory_that_may_grow_is_taken_as_plans_need_it),
        cmocka_unit_test(memory_is_listed_by_use_with_names),
        cmocka_unit_test(shapes_of_what_is_fed_must_be_known_to_prepare),
        cmocka_unit_test(taking_away_what_a_move_names_undoes_it_and_less_does_not),
        cmocka_unit_test(a_follower_names_who_decides_and_the_chain_to_it),
        cmocka_unit_test(soft_placement_can_wrap_numbers_around_or_prefer_the_cpu),
        cmocka_unit_test(a_costly_move_is_refused_beyond_the_budget_with_the_table),
        cmocka_unit_test(an_explanation_says_what_the_plan_made_of_a_node),
        cmocka_unit_test(all_plans_are_listed_node_by_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
