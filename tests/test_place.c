/* Placement: rules, log and messages as TensorFlow's. */
#include "testing.h"

#include "base/array.h"
#include "base/text.h"
#include "device/kernel_index.h"
#include "place/colocation.h"
#include "place/place.h"

/* ---- a small world: ops and kernels of its own; the rules do not depend on what the library computes -- */

#define ANY_TYPE "{float,double,half,int32,int64,uint8,string}"

#define VARIABLE "container:string=; shared_name:string=; dtype:type; shape:shape"

static tw_status any_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

static const twi_op place_ops[] = {
    {"Const", "", "output:dtype", "dtype:type", any_shape, NULL, TWI_CONSTANT},
    {"Placeholder", "", "output:dtype", "dtype:type", any_shape, NULL, TWI_PLACEHOLDER},
    {"MatMul", "a:T, b:T", "product:T", "T:" ANY_TYPE, any_shape},
    {"Add", "x:T, y:T", "z:T", "T:" ANY_TYPE, any_shape},
    {"Identity", "input:T", "output:T", "T:type", any_shape, NULL, TWI_PASSES},
    {"Shape", "input:T", "output:int32", "T:type", any_shape, NULL, TWI_METADATA},
    {"RandomShuffle", "value:T", "output:T", "T:type", any_shape, NULL, TWI_STATEFUL | TWI_HOST_ONLY},
    {"Random", "shape:T", "output:dtype", "T:{int32,int64}; dtype:{float,double}", any_shape},
    {"NoOp", "", "", "", any_shape},
    {"Counter", "", "output:int64", "", any_shape, NULL, TWI_STATEFUL},
    {"Nowhere", "x:T", "y:T", "T:" ANY_TYPE "; note:string=a \"note\"", any_shape},
    {"VarHandleOp", "", "resource:resource", VARIABLE, any_shape, NULL, TWI_STATEFUL, .makes = TWI_MAKES_VARIABLE},
    {"ReadVariableOp", "resource:resource", "value:dtype", "dtype:type", any_shape, NULL, TWI_STATEFUL | TWI_READ, "r"},
    {"VariableV2", "", "ref:Ref(dtype)", VARIABLE, any_shape, NULL, TWI_STATEFUL, .makes = TWI_MAKES_VARIABLE,
     .planned_as = "VarHandleOp"},
    {"Assign", "ref:Ref(T), value:T", "output_ref:Ref(T)", "T:type", any_shape, NULL, 0, "w.",
     .planned_as = "AssignVariableOp"},
    {0},
};
const twi_op *const twi_op_families[] = {place_ops, NULL}; /* instead of the library's */

#define ROW(op)                                                                                                        \
    {                                                                                                                  \
        op, "plain", 0, NULL, NULL, NULL                                                                               \
    }
static const twi_kernel place_kernels[] = {
    ROW("Const"),          ROW("Placeholder"),
    ROW("MatMul"),         ROW("Add"),
    ROW("Identity"),       ROW("Shape"),
    ROW("RandomShuffle"),  ROW("NoOp"),
    ROW("Counter"),        ROW("VarHandleOp"),
    ROW("ReadVariableOp"), ROW("AssignVariableOp"),
    {"Random", "plain", TWI_TYPE(TW_FLOAT32), NULL, NULL, NULL},
    {0},
};
static const twi_kernel *const place_families[] = {place_kernels, NULL};

typedef struct world {
    tw_graph *graph;
    tw_devices *devices;
    const twi_device_ops *real[16];
    twi_device_ops cpu, gpu;
    twi_kernel_index *indexes[2]; /* of the kernels of CPUs, of GPUs */
    twi_placement placement;
    tw_error error;
} world;

static void set_kernels(world *w, const twi_kernel *const *cpu, const twi_kernel *const *gpu)
{
    twi_device_ops *ops[] = {&w->cpu, &w->gpu};
    for (int i = 0; i < 2; i++) {
        twi_kernel_index_free(w->indexes[i]);
        ops[i]->kernels = i ? gpu : cpu;
        w->indexes[i] = twi_kernel_index_make(ops[i]->kernels, ops[i]->lacks);
        assert_non_null(w->indexes[i]);
    }
    for (int i = 0; i < w->devices->count; i++)
        w->devices->items[i]->kernels = w->indexes[!w->devices->items[i]->is_host];
}

/* The library's devices with this file's kernels. */
static void open_world(world *w, int cpus, int gpus)
{
    *w = (world){0};
    assert_int_equal(
        tw_devices_create(&(tw_device_options){.cpu_devices = cpus, .virtual_gpus = gpus}, &w->devices, &w->error),
        TW_OK);
    for (int i = 0; i < w->devices->count; i++) {
        twi_device *d = w->devices->items[i];
        twi_device_ops *own = d->is_host ? &w->cpu : &w->gpu;
        w->real[i] = d->ops;
        *own = *d->ops;
        d->ops = own;
    }
    set_kernels(w, place_families, place_families);
    w->graph = tw_graph_create();
}

static void close_world(world *w)
{
    twi_placement_free(&w->placement);
    for (int i = 0; i < w->devices->count; i++)
        w->devices->items[i]->ops = w->real[i];
    tw_devices_destroy(w->devices);
    for (int i = 0; i < 2; i++)
        twi_kernel_index_free(w->indexes[i]);
    tw_graph_destroy(w->graph);
}

static tw_status place(world *w, bool soft)
{
    assert_string_equal(tw_graph_message(w->graph), "");
    w->error = (tw_error){0};
    return twi_place(w->graph, &(twi_placement_options){.soft = soft, .devices = w->devices}, &w->placement, &w->error);
}

static void assert_placed(world *w, bool soft)
{
    if (place(w, soft) != TW_OK)
        fail_msg("%s", w->error.message);
}

static tw_node *add(world *w, const char *op, const char *name, tw_dtype type, tw_node *x, tw_node *y)
{
    const char *attr = strcmp(op, "Const") == 0 || strcmp(op, "Placeholder") == 0 ? "dtype" : "T";
    tw_attr attrs[] = {tw_attr_type(attr, type)};
    tw_output inputs[] = {{x, 0}, {y, 0}};
    return tw_add_node(w->graph, op, name, inputs, (x != NULL) + (y != NULL), attrs, strcmp(op, "NoOp") != 0);
}

static tw_node *variable(world *w, const char *name, tw_dtype type)
{
    tw_attr attrs[] = {tw_attr_type("dtype", type), tw_attr_shape("shape", TW_SHAPE(3, 2)),
                       tw_attr_string("shared_name", name)};
    return tw_add_node(w->graph, "VarHandleOp", name, NULL, 0, attrs, 3);
}

static tw_node *read_variable(world *w, const char *name, tw_node *handle)
{
    tw_attr type = tw_attr_type("dtype", TW_FLOAT32);
    return tw_add_node(w->graph, "ReadVariableOp", name, &(tw_output){handle, 0}, 1, &type, 1);
}

/* "GPU:1" */
static const char *device_of(const world *w, const tw_node *node)
{
    return strstr(w->devices->items[w->placement.devices[node->id]]->text, "device:") + strlen("device:");
}

static const char *why(world *w, const tw_node *node)
{
    return twi_placement_why(&w->placement, node);
}

static int count_moves(world *w)
{
    int count = 0;
    for (int id = 0; id < w->placement.count; id++)
        count += twi_is_moved(&w->placement, w->graph->nodes.items[id]);
    return count;
}

/* ---- scopes ---------------------------------------------------------------------------------------------------- */

static void nested_device_scopes_request_as_in_tensorflow(void **state)
{
    (void)state;
    static const struct {
        const char *outer, *inner, *expected;
    } table[] = {
        {"/job:ps/task:0", "/device:GPU:0", "/job:ps/task:0/device:GPU:0"},
        {"/cpu:0", "/gpu:1", "/device:GPU:1"},
        {"/gpu:2", "/job:worker", "/job:worker/device:GPU:2"},
        {"/job:worker/task:1/cpu:0", "/task:3", "/job:worker/task:3/device:CPU:0"},
        {"/device:CPU:1", "/device:GPU", "/device:GPU:1"},
        {"/gpu:1", "", "/device:GPU:1"},
        {"", "", ""},
    };
    world w;
    open_world(&w, 1, 0);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        TW_DEVICE(w.graph, "%s", table[i].outer)
    TW_DEVICE(w.graph, "%s", table[i].inner)
    assert_string_equal(tw_node_device(add(&w, "Const", NULL, TW_FLOAT32, NULL, NULL)), table[i].expected);
    TW_DEVICE(w.graph, "/gpu:0")
    {
        tw_enter_no_device(w.graph);
        assert_string_equal(tw_node_device(add(&w, "Const", NULL, TW_FLOAT32, NULL, NULL)), "");
        TW_DEVICE(w.graph, "/task:1")
        assert_string_equal(tw_node_device(add(&w, "Const", NULL, TW_FLOAT32, NULL, NULL)), "/task:1");
        tw_leave_device(w.graph);
        assert_string_equal(tw_node_device(add(&w, "Const", NULL, TW_FLOAT32, NULL, NULL)), "/device:GPU:0");
    }
    close_world(&w);
}

static const char *matmuls_on_gpu_1(void *user, const tw_node *node)
{
    int *calls = user;
    ++*calls;
    return strcmp(tw_node_op(node), "MatMul") == 0 ? "/gpu:1" : NULL;
}

static void a_device_function_is_asked_for_every_new_node(void **state)
{
    (void)state;
    world w;
    int calls = 0;
    open_world(&w, 1, 2);
    tw_enter_device_function(w.graph, matmuls_on_gpu_1, &calls);
    tw_node *a = add(&w, "Const", "a", TW_FLOAT32, NULL, NULL), *b = add(&w, "MatMul", "b", TW_FLOAT32, a, a),
            *c = NULL;
    TW_DEVICE(w.graph, "/cpu:0")
    c = add(&w, "MatMul", "c", TW_FLOAT32, a, a);
    tw_leave_device(w.graph);
    assert_int_equal(calls, 3);
    assert_string_equal(tw_node_device(a), "");
    assert_string_equal(tw_node_device(b), "/device:GPU:1");
    assert_string_equal(tw_node_device(c), "/device:CPU:0"); /* the inner scope wins */
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, b), "GPU:1");
    close_world(&w);
}

static void variables_go_to_the_least_loaded_device(void **state)
{
    (void)state;
    /* The tutorial's variables; by hand: the smallest sum so far, the first among equals. */
    static const struct {
        const char *name;
        tw_shape shape;
        const char *expected;
    } table[] = {
        {"conv1/weights", {4, {5, 5, 3, 64}}, "/device:GPU:0"},  /*   4800,      0,      0 */
        {"conv1/biases", {1, {64}}, "/device:GPU:1"},            /*   4800,     64,      0 */
        {"conv2/weights", {4, {5, 5, 64, 64}}, "/device:GPU:2"}, /*   4800,     64, 102400 */
        {"conv2/biases", {1, {64}}, "/device:GPU:1"},            /*   4800,    128, 102400 */
        {"local3/weights", {2, {2304, 384}}, "/device:GPU:1"},   /*   4800, 884864, 102400 */
        {"local3/biases", {1, {384}}, "/device:GPU:0"},          /*   5184, 884864, 102400 */
        {"local4/weights", {2, {384, 192}}, "/device:GPU:0"},    /*  78912, 884864, 102400 */
        {"local4/biases", {1, {192}}, "/device:GPU:0"},          /*  79104, 884864, 102400 */
        {"softmax/weights", {2, {192, 10}}, "/device:GPU:0"},    /*  81024, 884864, 102400 */
        {"softmax/biases", {1, {10}}, "/device:GPU:0"},
    };
    const char *gpus[] = {"/gpu:0", "/gpu:1", "/gpu:2"};
    int64_t loads[3] = {0};
    tw_least_loaded spread = {gpus, 3, loads, "/gpu:2"};
    world w;
    open_world(&w, 1, 3);
    tw_enter_device_function(w.graph, tw_least_loaded_device, &spread);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", table[i].shape)};
        tw_node *handle = tw_add_node(w.graph, "VarHandleOp", table[i].name, NULL, 0, attrs, 2);
        if (strcmp(tw_node_device(handle), table[i].expected) != 0)
            fail_msg("%s went to %s, expected %s", table[i].name, tw_node_device(handle), table[i].expected);
    }
    assert_string_equal(tw_node_device(add(&w, "Const", NULL, TW_FLOAT32, NULL, NULL)), "/device:GPU:2");
    TW_DEVICE(w.graph, "/cpu:0")
    { /* decided already: kept, and not counted */
        assert_string_equal(tw_node_device(variable(&w, "v", TW_FLOAT32)), "/device:CPU:0");
    }
    tw_leave_device(w.graph);
    assert_int_equal(loads[0], 81034);
    assert_int_equal(loads[1], 884864);
    assert_int_equal(loads[2], 102400);
    close_world(&w);
}

/* ---- choosing -------------------------------------------------------------------------------------------------- */

static void gpus_come_before_cpus_and_low_numbers_first(void **state)
{
    (void)state;
    world w;
    open_world(&w, 2, 12);
    tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL),
            *free_node = add(&w, "Add", "free", TW_FLOAT32, p, p);
    tw_node *shuffle = add(&w, "RandomShuffle", "shuffle", TW_FLOAT32, p, NULL), *any = NULL, *ten = NULL, *cpu = NULL;
    tw_node *words = add(&w, "Placeholder", "words", TW_STRING, NULL, NULL);
    TW_DEVICE(w.graph, "/device:GPU:*")
    any = add(&w, "Add", "any", TW_FLOAT32, p, p);
    TW_DEVICE(w.graph, "/gpu:10")
    ten = add(&w, "Add", "ten", TW_FLOAT32, p, p);
    TW_DEVICE(w.graph, "/job:localhost/cpu:*")
    cpu = add(&w, "Add", "cpu", TW_FLOAT32, p, p);
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, free_node), "GPU:0");
    assert_string_equal(device_of(&w, any), "GPU:0");
    assert_string_equal(device_of(&w, ten), "GPU:10");
    assert_string_equal(device_of(&w, cpu), "CPU:0");
    assert_string_equal(device_of(&w, shuffle), "CPU:0"); /* no GPU has it */
    assert_string_equal(device_of(&w, words), "CPU:0");
    assert_int_equal(count_moves(&w), 0);
    assert_string_equal(why(&w, free_node),
                        "nothing was asked for, and this is the first (GPUs come before CPUs, lower "
                        "numbers first)");
    assert_string_equal(why(&w, ten), "'/device:GPU:10' was asked for");
    assert_string_equal(why(&w, shuffle), "nothing was asked for, and no GPU has a kernel for RandomShuffle of float");
    assert_message(why(&w, any), "'/device:GPU:*' was asked for, and this is the first");
    close_world(&w);
}

static void every_number_of_twelve_gpus_is_found(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 12);
    tw_node *nodes[12], *p = add(&w, "Placeholder", NULL, TW_FLOAT32, NULL, NULL);
    for (int i = 0; i < 12; i++)
        TW_DEVICE(w.graph, "/gpu:%d", i)
    nodes[i] = add(&w, "Identity", NULL, TW_FLOAT32, p, NULL);
    assert_placed(&w, false);
    for (int i = 0; i < 12; i++)
        assert_int_equal(w.placement.devices[nodes[i]->id], 1 + i);
    close_world(&w);
}

static void a_value_without_inputs_goes_where_all_its_consumers_are(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_node *one = add(&w, "Const", "one", TW_FLOAT32, NULL, NULL),
            *both = add(&w, "Const", "both", TW_FLOAT32, NULL, NULL);
    tw_node *unused = add(&w, "Const", "unused", TW_FLOAT32, NULL, NULL), *asked = NULL, *first = NULL, *second = NULL;
    tw_node *order = add(&w, "Const", "order", TW_FLOAT32, NULL, NULL);
    TW_DEVICE(w.graph, "/cpu:0")
    {
        asked = add(&w, "Const", "asked", TW_FLOAT32, NULL, NULL);
        tw_output inputs[] = {{NULL, -1}};
        inputs[0].node = order;
        tw_add_node(w.graph, "NoOp", "after", inputs, 1, NULL, 0);
    }
    TW_DEVICE(w.graph, "/gpu:1")
    first = add(&w, "Add", "first", TW_FLOAT32, one, both);
    TW_DEVICE(w.graph, "/cpu:0")
    second = add(&w, "Add", "second", TW_FLOAT32, both, both);
    TW_DEVICE(w.graph, "/gpu:1")
    add(&w, "Add", "third", TW_FLOAT32, asked, asked);
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, one), "GPU:1");
    assert_string_equal(why(&w, one), "it has no inputs, and all that use it are here");
    assert_string_equal(device_of(&w, both), "GPU:0"); /* its consumers differ: the first device */
    assert_string_equal(device_of(&w, unused), "GPU:0");
    assert_string_equal(device_of(&w, asked), "CPU:0"); /* a request is stronger */
    assert_string_equal(device_of(&w, order), "CPU:0"); /* control edges count */
    assert_string_equal(device_of(&w, first), "GPU:1");
    assert_string_equal(device_of(&w, second), "CPU:0");
    close_world(&w);
}

static void shape_is_read_where_its_input_is(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_node *p = add(&w, "Placeholder", NULL, TW_FLOAT32, NULL, NULL), *x = NULL, *y = NULL, *asked = NULL;
    TW_DEVICE(w.graph, "/cpu:0")
    x = add(&w, "Identity", "x", TW_FLOAT32, p, NULL);
    TW_DEVICE(w.graph, "/gpu:1")
    y = add(&w, "Identity", "y", TW_FLOAT32, p, NULL);
    tw_node *of_x = add(&w, "Shape", "of_x", TW_FLOAT32, x, NULL),
            *of_y = add(&w, "Shape", "of_y", TW_FLOAT32, y, NULL);
    TW_DEVICE(w.graph, "/gpu:0")
    asked = add(&w, "Shape", "asked", TW_FLOAT32, y, NULL);
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, of_x), "CPU:0");
    assert_string_equal(device_of(&w, of_y), "GPU:1");
    assert_string_equal(device_of(&w, asked), "GPU:0");
    assert_string_equal(why(&w, of_x), "it reads only the shape of 'x', which is here");
    close_world(&w);
}

/* ---- colocation ------------------------------------------------------------------------------------------------ */

static void users_of_a_variable_run_where_it_lives(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_node *on_cpu = NULL, *read = NULL;
    TW_DEVICE(w.graph, "/cpu:0")
    on_cpu = variable(&w, "on_cpu", TW_FLOAT32);
    TW_DEVICE(w.graph, "/gpu:1")
    read = read_variable(&w, "read", on_cpu);
    tw_node *anywhere = variable(&w, "anywhere", TW_FLOAT32), *read0 = NULL, *read1 = NULL;
    TW_DEVICE(w.graph, "/gpu:1")
    read1 = read_variable(&w, "read1", anywhere);
    TW_DEVICE(w.graph, "/gpu:0")
    read0 = read_variable(&w, "read0", anywhere);
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, on_cpu), "CPU:0");
    assert_string_equal(device_of(&w, read), "CPU:0");
    assert_string_equal(why(&w, read),
                        "colocated with 'on_cpu' (through a resource), where '/device:CPU:0' was asked for; "
                        "the '/device:GPU:1' asked for here gave way");
    assert_string_equal(device_of(&w, anywhere), "GPU:1"); /* asks nothing: the first user's request counts */
    assert_string_equal(device_of(&w, read0), "GPU:1");
    assert_string_equal(device_of(&w, read1), "GPU:1");
    close_world(&w);
}

static void reference_variables_pull_their_assignments(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SHAPE(2))};
    tw_node *v = NULL, *assign = NULL, *use = NULL;
    TW_DEVICE(w.graph, "/gpu:1")
    v = tw_add_node(w.graph, "VariableV2", "v", NULL, 0, attrs, 2);
    TW_DEVICE(w.graph, "/cpu:0")
    {
        tw_node *value = add(&w, "Const", "value", TW_FLOAT32, NULL, NULL);
        assign = add(&w, "Assign", "assign", TW_FLOAT32, v, value);
        use = add(&w, "Identity", "use", TW_FLOAT32, v, NULL); /* reads the value: not colocated */
    }
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, v), "GPU:1");
    assert_string_equal(device_of(&w, assign), "GPU:1");
    assert_string_equal(device_of(&w, use), "CPU:0");
    close_world(&w);
}

static tw_node *in_class(world *w, const char *name, const char *group)
{
    char text[64];
    snprintf(text, sizeof text, "loc:@%s", group);
    tw_string s = {text, strlen(text)};
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_strings("_class", &s, 1)};
    tw_output inputs[] = {{tw_graph_node(w->graph, 0), 0}};
    return tw_add_node(w->graph, "Identity", name, inputs, 1, attrs, 2);
}

static void nodes_of_one_class_share_a_device(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL), *head = NULL;
    TW_DEVICE(w.graph, "/gpu:1")
    head = add(&w, "Identity", "head", TW_FLOAT32, p, NULL);
    tw_node *follower = in_class(&w, "follower", "head"), *chained = in_class(&w, "chained", "follower");
    tw_node *stranger = in_class(&w, "stranger", "missing"), *friend = NULL;
    TW_DEVICE(w.graph, "/cpu:0")
    friend = in_class(&w, "friend", "missing");
    tw_node *scoped = NULL;
    TW_COLOCATE(w.graph, tw_node_output(head, 0))
    scoped = add(&w, "Add", "scoped", TW_FLOAT32, p, p);
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, head), "GPU:1");
    assert_string_equal(device_of(&w, follower), "GPU:1");
    assert_string_equal(device_of(&w, chained), "GPU:1");
    assert_string_equal(device_of(&w, scoped), "GPU:1");
    assert_string_equal(device_of(&w, stranger), "CPU:0"); /* a class needs no node of its name */
    assert_string_equal(device_of(&w, friend), "CPU:0");
    assert_string_equal(why(&w, follower), "colocated with 'head' (by _class), where '/device:GPU:1' was asked for");
    close_world(&w);
}

static void a_group_runs_where_all_its_members_can(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL);
    tw_node *shuffle = add(&w, "RandomShuffle", "shuffle", TW_FLOAT32, p, NULL),
            *follower = in_class(&w, "f", "shuffle");
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, shuffle), "CPU:0");
    assert_string_equal(device_of(&w, follower), "CPU:0");
    close_world(&w);
}

static void conflicting_requests_in_a_class_fail_unless_placement_is_soft(void **state)
{
    (void)state;
    static const struct {
        const char *head, *follower, *message;
        const char *soft; /* where the follower goes then */
    } table[] = {
        {"/gpu:0", "/gpu:1", "Cannot merge devices with incompatible ids: '/device:GPU:0' and '/device:GPU:1'",
         "GPU:0"},
        {"/cpu:0", "/gpu:1", "Cannot merge devices with incompatible types: '/device:CPU:0' and '/device:GPU:1'",
         "GPU:0"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        world w;
        open_world(&w, 1, 2);
        tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL), *follower = NULL;
        TW_DEVICE(w.graph, "%s", table[i].head)
        add(&w, "Identity", "head", TW_FLOAT32, p, NULL);
        TW_DEVICE(w.graph, "%s", table[i].follower)
        follower = in_class(&w, "follower", "head");
        assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
        assert_message(w.error.message,
                       "Cannot colocate nodes {{colocation_node head}} and {{colocation_node follower}}: ");
        assert_message(w.error.message, table[i].message);
        assert_placed(&w, true);
        assert_string_equal(device_of(&w, follower), table[i].soft);
        close_world(&w);
    }
}

static void a_class_that_no_device_can_serve_fails_unless_placement_is_soft(void **state)
{
    (void)state;
    static const twi_kernel only_add[] = {ROW("Add"), {0}};
    static const twi_kernel no_add[] = {ROW("Placeholder"), ROW("Identity"), {0}};
    static const twi_kernel *const gpu_families[] = {only_add, NULL}, *const cpu_families[] = {no_add, NULL};
    world w;
    open_world(&w, 1, 1);
    set_kernels(&w, cpu_families, gpu_families);
    tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL), *head = add(&w, "Add", "head", TW_FLOAT32, p, p);
    tw_node *follower = in_class(&w, "follower", "head");
    assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "because no device type supports both of those nodes and the other nodes colocated "
                                    "with them.");
    assert_message(w.error.message, "Colocation Debug Info:");
    assert_message(w.error.message, "supported_device_types_=[GPU]");
    assert_message(w.error.message, "  follower (Identity) ");
    assert_placed(&w, true);
    assert_string_equal(device_of(&w, head), "GPU:0");
    assert_string_equal(device_of(&w, follower), "CPU:0");
    close_world(&w);
}

/* ---- what cannot be -------------------------------------------------------------------------------------------- */

static void a_missing_device_fails_with_every_field_of_tensorflows_message(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 0);
    tw_string class = {"loc:@b_1", 8};
    tw_attr attrs[] = {tw_attr_shape("shape", TW_SHAPE(3, 2)), tw_attr_type("dtype", TW_FLOAT32),
                       tw_attr_strings("_class", &class, 1)};
    TW_DEVICE(w.graph, "/gpu:1")
    tw_add_node(w.graph, "VariableV2", "b_1", NULL, 0, attrs, 3);
    assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
    assert_int_equal(w.error.status, TW_INVALID_ARGUMENT);
    assert_string_equal(
        w.error.message,
        "Cannot assign a device for operation 'b_1': Operation was explicitly assigned to /device:GPU:1 "
        "but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device "
        "specification refers to a valid device. The nearest valid device is "
        "/job:localhost/replica:0/task:0/device:CPU:0.\n\t "
        "[[Node: b_1 = VariableV2[_class=[\"loc:@b_1\"], container=\"\", dtype=DT_FLOAT, shape=[3,2], "
        "shared_name=\"\", _device=\"/device:GPU:1\"]()]]");
    assert_int_equal(w.placement.count, 0); /* as it was */
    close_world(&w);
}

static void available_devices_are_listed_in_order_of_number(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 11);
    TW_DEVICE(w.graph, "/gpu:11")
    add(&w, "Const", "c", TW_FLOAT32, NULL, NULL);
    assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "device:GPU:2, /job:localhost/replica:0/task:0/device:GPU:3");
    assert_message(w.error.message, "device:GPU:9, /job:localhost/replica:0/task:0/device:GPU:10 ].");
    close_world(&w);
}

static void a_missing_kernel_fails_naming_type_and_kernels(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 1);
    tw_node *p = add(&w, "Placeholder", "p", TW_INT32, NULL, NULL);
    TW_DEVICE(w.graph, "/gpu:0")
    add(&w, "MatMul", "mm", TW_INT32, p, p);
    assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "Cannot assign a device for operation 'mm': Could not satisfy explicit device "
                                    "specification '/device:GPU:0' because no supported kernel for GPU devices is "
                                    "available. The nearest valid device is /job:localhost/replica:0/task:0/device:CPU:0."
                                    "\nColocation Debug Info:\nColocation group had the following types and "
                                    "supported devices: \nRoot Member(assigned_device_name_index_=-1 "
                                    "requested_device_name_='/device:GPU:0' assigned_device_name_='' "
                                    "resource_device_name_='' supported_device_types_=[CPU] possible_devices_=[]\n"
                                    "MatMul: CPU\n");
    assert_message(w.error.message, "\n  mm (MatMul) /device:GPU:0\n");
    assert_message(w.error.message,
                   "\nOp: MatMul\nNode attrs: T=DT_INT32\nRegistered kernels:\n  device='CPU'; T in [");
    assert_message(w.error.message, "\n  device='GPU'; T in [DT_FLOAT, DT_DOUBLE, DT_BOOL, DT_BFLOAT16, DT_HALF");
    assert_message(w.error.message, "[[Node: mm = MatMul[T=DT_INT32, _device=\"/device:GPU:0\"](p, p)]]");
    close_world(&w);
}

/* The type T of a random op is that of its shape; kernels are chosen by what it gives. */
static void kernels_are_told_apart_by_the_attribute_they_are_chosen_by(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 1);
    tw_output shape = tw_node_output(add(&w, "Placeholder", "shape", TW_INT32, NULL, NULL), 0);
    tw_add_node(w.graph, "Random", "noise", &shape, 1, (tw_attr[]){tw_attr_type("dtype", TW_FLOAT64)}, 1);
    assert_string_equal(tw_graph_message(w.graph), "");
    assert_placed(&w, false);
    assert_int_equal(twi_placement_check(&w.placement, tw_graph_find(w.graph, "noise"), &w.error), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "used by 'noise' with these attrs: [T=DT_INT32, dtype=DT_DOUBLE]\n");
    assert_message(w.error.message, "\n  device='CPU'; dtype in [DT_FLOAT]\n");
    close_world(&w);
}

static void an_op_without_any_kernel_fails_when_it_is_needed_and_not_before(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 1);
    tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL);
    tw_node *n = add(&w, "Nowhere", "n", TW_FLOAT32, p, NULL);
    assert_placed(&w, false);
    assert_int_equal(w.placement.devices[n->id], -1);
    assert_string_equal(why(&w, n), "no device has a kernel for Nowhere of float");
    assert_int_equal(twi_placement_check(&w.placement, p, &w.error), TW_OK);
    assert_int_equal(twi_placement_check(&w.placement, n, &w.error), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "No OpKernel was registered to support Op 'Nowhere' used by 'n' with these attrs: "
                                    "[T=DT_FLOAT, note=\"a \\\"note\\\"\"]\nRegistered devices: [GPU, CPU]\n"
                                    "Registered kernels:\n  <no registered kernels>\n");
    close_world(&w);
}

static void a_request_against_the_group_names_the_other_device(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 1);
    tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL);
    add(&w, "RandomShuffle", "shuffle", TW_FLOAT32, p, NULL);
    TW_DEVICE(w.graph, "/gpu:0")
    in_class(&w, "follower", "shuffle");
    assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "Could not satisfy explicit device specification '/device:GPU:0' because the node "
                                    "{{colocation_node follower}} was colocated with a group of nodes that required "
                                    "incompatible device '/device:GPU:0'. All available devices "
                                    "[/job:localhost/replica:0/task:0/device:CPU:0, "
                                    "/job:localhost/replica:0/task:0/device:GPU:0]. \nColocation Debug Info:");
    assert_placed(&w, true);
    close_world(&w);
}

static void a_malformed_device_in_a_graph_names_the_node(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 0);
    add(&w, "Const", "c", TW_FLOAT32, NULL, NULL)->device = "/gpu:x"; /* as a file may hold it */
    assert_int_equal(place(&w, true), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "Malformed device specification '/gpu:x'");
    assert_message(w.error.message, "[[Node: c = Const[");
    close_world(&w);
}

/* The table of what soft placement moved. */
static void assert_table(world *w, bool every_node, const char *expected)
{
    twi_arena arena = {0};
    tw_moves moves;
    assert_int_equal(twi_list_moves(&w->placement, &arena, &moves, &w->error), TW_OK);
    char *table = tw_moves_table(&moves, every_node);
    assert_string_equal(table, expected);
    tw_free(table);
    twi_arena_free(&arena);
}

/* ---- soft placement -------------------------------------------------------------------------------------------- */

static void soft_placement_replaces_what_cannot_be(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_node *p = add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL),
            *ints = add(&w, "Placeholder", "i", TW_INT32, NULL, NULL);
    tw_node *missing = NULL, *no_kernel = NULL, *shuffle = NULL, *possible = NULL, *no_cpu = NULL;
    TW_DEVICE(w.graph, "/gpu:5")
    missing = add(&w, "Add", "missing", TW_FLOAT32, p, p);
    TW_DEVICE(w.graph, "/gpu:1")
    {
        no_kernel = add(&w, "MatMul", "mm", TW_INT32, ints, ints);
        shuffle = add(&w, "RandomShuffle", "shuffle", TW_FLOAT32, p, NULL);
        possible = add(&w, "MatMul", "possible", TW_FLOAT32, p, p);
    }
    TW_DEVICE(w.graph, "/cpu:3")
    no_cpu = add(&w, "Add", "no_cpu", TW_FLOAT32, p, p);
    assert_placed(&w, true);
    assert_string_equal(device_of(&w, missing), "GPU:0"); /* the best existing one, not the CPU */
    assert_string_equal(device_of(&w, no_kernel), "CPU:0");
    assert_string_equal(device_of(&w, shuffle), "CPU:0");
    assert_string_equal(device_of(&w, possible), "GPU:1");
    assert_string_equal(device_of(&w, no_cpu), "GPU:0");
    assert_string_equal(why(&w, missing), "'/device:GPU:5' was asked for, but there is no such device; soft placement "
                                          "chose the first device that can run it");
    assert_string_equal(why(&w, no_kernel),
                        "'/device:GPU:1' was asked for, but it has no kernel for MatMul of int32; soft "
                        "placement chose the first device that can run it");
    assert_false(twi_is_moved(&w.placement, possible));
    assert_table(&w, false,
                 "moved                   nodes  asked for      runs on        bytes a step  why\n"
                 "all that asked              1  /device:GPU:5  /device:GPU:0             0  there is no such device\n"
                 "MatMul of int32             1  /device:GPU:1  /device:CPU:0             0  no kernel there for MatMul "
                 "of int32\n"
                 "RandomShuffle of float      1  /device:GPU:1  /device:CPU:0             0  no kernel there for "
                 "RandomShuffle of float\n"
                 "all that asked              1  /device:CPU:3  /device:GPU:0             0  there is no such device\n");
    assert_table(&w, true,
                 "moved                   node     asked for      runs on        bytes a step  why\n"
                 "Add of float            missing  /device:GPU:5  /device:GPU:0             0  there is no such device\n"
                 "MatMul of int32         mm       /device:GPU:1  /device:CPU:0             0  no kernel there for "
                 "MatMul of int32\n"
                 "RandomShuffle of float  shuffle  /device:GPU:1  /device:CPU:0             0  no kernel there for "
                 "RandomShuffle of float\n"
                 "Add of float            no_cpu   /device:CPU:3  /device:GPU:0             0  there is no such "
                 "device\n");
    close_world(&w);
}

static void soft_placement_never_changes_the_job(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 1);
    TW_DEVICE(w.graph, "/job:worker/gpu:0")
    add(&w, "Const", "c", TW_FLOAT32, NULL, NULL);
    assert_int_equal(place(&w, true), TW_INVALID_ARGUMENT);
    assert_message(w.error.message, "explicitly assigned to /job:worker/device:GPU:0 but available devices are");
    close_world(&w);
}

static void a_variable_without_kernel_on_its_device_takes_its_users_along(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 1);
    tw_node *v = NULL, *read = NULL;
    TW_DEVICE(w.graph, "/gpu:0")
    {
        v = variable(&w, "v", TW_INT32);
        tw_attr type = tw_attr_type("dtype", TW_INT32);
        read = tw_add_node(w.graph, "ReadVariableOp", "read", &(tw_output){v, 0}, 1, &type, 1);
    }
    assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
    assert_placed(&w, true);
    assert_string_equal(device_of(&w, v), "CPU:0");
    assert_string_equal(device_of(&w, read), "CPU:0");
    assert_message(why(&w, read), "giving up the device of the resource too");
    assert_int_equal(count_moves(&w), 2);
    close_world(&w);
}

/* ---- growing, logging ------------------------------------------------------------------------------------------ */

static void stateful_nodes_stay_when_the_graph_grows(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    tw_node *v = variable(&w, "v", TW_FLOAT32), *c = add(&w, "Const", "c", TW_FLOAT32, NULL, NULL);
    tw_node *counter = tw_add_node(w.graph, "Counter", "counter", NULL, 0, NULL, 0), *read = NULL;
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, v), "GPU:0");
    assert_string_equal(device_of(&w, c), "GPU:0");
    TW_DEVICE(w.graph, "/gpu:1")
    {
        read = read_variable(&w, "read", v); /* had it been there at first, the variable would be on GPU:1 */
        add(&w, "Add", "sum", TW_FLOAT32, c, c);
    }
    assert_placed(&w, false);
    assert_int_equal(w.placement.count, 5);
    assert_string_equal(device_of(&w, v), "GPU:0");
    assert_string_equal(device_of(&w, read), "GPU:0");
    assert_string_equal(device_of(&w, counter), "GPU:0");
    assert_string_equal(device_of(&w, c), "GPU:1"); /* keeps no state: follows its consumer */
    assert_string_equal(why(&w, v), "it keeps state, and was here before the graph grew");
    assert_string_equal(why(&w, read), "colocated with 'v' (through a resource), where it was before the graph grew; "
                                       "the '/device:GPU:1' asked for here gave way");
    close_world(&w);
}

/* Who asks to be beside both gets one of them. */
static void stateful_nodes_of_two_devices_stay_apart_when_the_graph_grows(void **state)
{
    (void)state;
    static const tw_string both[] = {{"loc:@v", 6}, {"loc:@w", 6}};
    for (int soft = 0; soft < 2; soft++) {
        world w;
        open_world(&w, 1, 2);
        tw_node *v = variable(&w, "v", TW_FLOAT32), *other = NULL;
        TW_DEVICE(w.graph, "/gpu:1")
        other = variable(&w, "w", TW_FLOAT32);
        assert_placed(&w, soft);
        tw_attr class = tw_attr_strings("_class", both, 2);
        tw_node *beside = tw_add_node(w.graph, "NoOp", "beside", NULL, 0, &class, 1);
        if (soft) {
            assert_placed(&w, true);
            assert_string_equal(device_of(&w, beside), "GPU:0");
        } else {
            assert_int_equal(place(&w, false), TW_INVALID_ARGUMENT);
            assert_message(w.error.message, "Cannot merge devices with incompatible ids");
        }
        assert_string_equal(device_of(&w, v), "GPU:0");
        assert_string_equal(device_of(&w, other), "GPU:1");
        close_world(&w);
    }
}

static void keep_line(void *user, const char *line)
{
    twi_text_printf(user, "%s\n", line);
}

static void the_log_has_tensorflows_form_and_order(void **state)
{
    (void)state;
    world w;
    twi_text log = {0};
    open_world(&w, 1, 1);
    tw_node *c = add(&w, "Const", "c", TW_FLOAT32, NULL, NULL);
    TW_NAME_SCOPE(w.graph, "tower_0")
    add(&w, "Add", "sum", TW_FLOAT32, c, c);
    TW_DEVICE(w.graph, "/cpu:0")
    add(&w, "Identity", "out", TW_FLOAT32, c, NULL);
    assert_placed(&w, false);
    twi_placement_log(w.graph, w.devices, &w.placement, keep_line, &log);
    assert_string_equal(
        twi_text_string(&log),
        "Device mapping:\n"
        "/job:localhost/replica:0/task:0/device:GPU:0 -> virtual GPU: one thread of the CPU, memory of its "
        "own without a limit\n"
        "tower_0/sum: (Add): /job:localhost/replica:0/task:0/device:GPU:0\n"
        "out: (Identity): /job:localhost/replica:0/task:0/device:CPU:0\n"
        "c: (Const): /job:localhost/replica:0/task:0/device:GPU:0\n");
    twi_text_free(&log);
    close_world(&w);

    open_world(&w, 1, 0);
    assert_placed(&w, false);
    twi_placement_log(w.graph, w.devices, &w.placement, keep_line, &log);
    assert_string_equal(twi_text_string(&log), "Device mapping: no known devices.\n");
    twi_text_free(&log);
    close_world(&w);
}

static void a_large_graph_is_placed_in_one_pass_over_its_edges(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 4);
    tw_node *last = add(&w, "Placeholder", NULL, TW_FLOAT32, NULL, NULL);
    for (int i = 0; i < 5000; i++)
        TW_DEVICE(w.graph, "/gpu:%d", i % 4)
        {
            char name[32];
            snprintf(name, sizeof name, "n%d", i);
            last = add(&w, "Add", name, TW_FLOAT32, last, add(&w, "Const", NULL, TW_FLOAT32, NULL, NULL));
        }
    assert_placed(&w, false);
    assert_string_equal(device_of(&w, last), "GPU:3");
    close_world(&w);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static int allocations_left;

static void *failing_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        free(block);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(block, bytes) : NULL;
}

/* A kernel's refusal moves a node unless it must be with a variable; what cannot be heeded is forgotten. */
static void a_refusal_moves_who_may_move(void **state)
{
    (void)state;
    world w;
    tw_error error = {0};
    open_world(&w, 1, 1);
    tw_enter_device(w.graph, "/gpu:0");
    tw_node *handle = variable(&w, "v", TW_FLOAT32), *read = read_variable(&w, "read", handle);
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SHAPE(3, 2))};
    tw_node *reference = tw_add_node(w.graph, "VariableV2", "reference", NULL, 0, attrs, 2);
    tw_node *assign = add(&w, "Assign", "assign", TW_FLOAT32, reference, read);
    tw_node *free_node = add(&w, "Identity", "free", TW_FLOAT32, read, NULL);
    tw_leave_device(w.graph);
    assert_placed(&w, false);
    assert_ok(twi_placement_refuse(&w.placement, free_node, "too large", &error));
    assert_int_equal(w.placement.refusals.count, 0); /* without soft placement */
    assert_placed(&w, true);
    assert_ok(twi_placement_refuse(&w.placement, handle, "too large", &error));
    assert_int_equal(w.placement.refusals.count, 0); /* it keeps state */

    assert_ok(twi_placement_refuse(&w.placement, assign, "too large", &error));
    assert_int_equal(w.placement.refusals.count, 1);
    assert_int_not_equal(twi_place_again(w.graph, &w.placement, 0), TW_OK);
    assert_int_equal(w.placement.refusals.count, 0);
    assert_string_equal(device_of(&w, assign), "GPU:0");

    assert_ok(twi_placement_refuse(&w.placement, free_node, "too large", &error));
    assert_ok(twi_place_again(w.graph, &w.placement, 0));
    assert_string_equal(device_of(&w, free_node), "CPU:0");
    assert_string_equal(device_of(&w, read), "GPU:0");
    assert_ok(twi_placement_refuse(&w.placement, free_node, "too large there too", &error));
    assert_int_equal(w.placement.refusals.count, 1); /* the host's word is final */
    close_world(&w);
}

static void running_out_of_memory_leaves_the_placement_as_it_was(void **state)
{
    (void)state;
    world w;
    open_world(&w, 1, 2);
    add(&w, "Placeholder", "p", TW_FLOAT32, NULL, NULL);
    tw_node *v = variable(&w, "v", TW_FLOAT32);
    TW_DEVICE(w.graph, "/gpu:9")
    read_variable(&w, "read", v);
    in_class(&w, "follower", "nobody");
    tw_status status = TW_UNKNOWN;
    int n = 0;
    for (; status != TW_OK && n < 100; n++) {
        allocations_left = n;
        tw_set_allocator(failing_resize, NULL);
        status = place(&w, true);
        tw_set_allocator(NULL, NULL);
        if (status != TW_OK) {
            assert_int_equal(status, TW_RESOURCE_EXHAUSTED);
            assert_int_equal(w.placement.count, 0);
        }
    }
    assert_int_equal(status, TW_OK);
    assert_true(n > 5);
    close_world(&w);
}

int main(void)
{
    unsetenv("TOWER_VIRTUAL_GPUS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_device_scopes_request_as_in_tensorflow),
        cmocka_unit_test(a_device_function_is_asked_for_every_new_node),
        cmocka_unit_test(variables_go_to_the_least_loaded_device),
        cmocka_unit_test(gpus_come_before_cpus_and_low_numbers_first),
        cmocka_unit_test(every_number_of_twelve_gpus_is_found),
        cmocka_unit_test(a_value_without_inputs_goes_where_all_its_consumers_are),
        cmocka_unit_test(shape_is_read_where_its_input_is),
        cmocka_unit_test(users_of_a_variable_run_where_it_lives),
        cmocka_unit_test(reference_variables_pull_their_assignments),
        cmocka_unit_test(nodes_of_one_class_share_a_device),
        cmocka_unit_test(a_group_runs_where_all_its_members_can),
        cmocka_unit_test(conflicting_requests_in_a_class_fail_unless_placement_is_soft),
        cmocka_unit_test(a_class_that_no_device_can_serve_fails_unless_placement_is_soft),
        cmocka_unit_test(a_missing_device_fails_with_every_field_of_tensorflows_message),
        cmocka_unit_test(available_devices_are_listed_in_order_of_number),
        cmocka_unit_test(a_missing_kernel_fails_naming_type_and_kernels),
        cmocka_unit_test(kernels_are_told_apart_by_the_attribute_they_are_chosen_by),
        cmocka_unit_test(an_op_without_any_kernel_fails_when_it_is_needed_and_not_before),
        cmocka_unit_test(a_request_against_the_group_names_the_other_device),
        cmocka_unit_test(a_malformed_device_in_a_graph_names_the_node),
        cmocka_unit_test(soft_placement_replaces_what_cannot_be),
        cmocka_unit_test(soft_placement_never_changes_the_job),
        cmocka_unit_test(a_variable_without_kernel_on_its_device_takes_its_users_along),
        cmocka_unit_test(stateful_nodes_stay_when_the_graph_grows),
        cmocka_unit_test(stateful_nodes_of_two_devices_stay_apart_when_the_graph_grows),
        cmocka_unit_test(the_log_has_tensorflows_form_and_order),
        cmocka_unit_test(a_large_graph_is_placed_in_one_pass_over_its_edges),
        cmocka_unit_test(a_refusal_moves_who_may_move),
        cmocka_unit_test(running_out_of_memory_leaves_the_placement_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
