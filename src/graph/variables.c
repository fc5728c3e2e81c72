/* variables.c - variables by name: a handle, an initializer and a read, named as TensorFlow names them:
 * X (VarHandleOp), X/Initializer/..., X/Assign, X/Read/ReadVariableOp. */
#include "graph/graph.h"
#include "tensor/tensor.h"

#include <math.h>

static tw_output one(tw_node *node)
{
    return tw_node_output(node, 0);
}

/* Takes the tensor; NULL stands for memory that ran out. */
static tw_output constant(tw_graph *graph, const char *name, tw_tensor *tensor)
{
    if (!tensor) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making a variable");
        return (tw_output){0};
    }
    tw_attr attrs[] = {tw_attr_tensor("value", tensor), tw_attr_type("dtype", tw_tensor_dtype(tensor))};
    tw_output output = one(tw_add_node(graph, "Const", name, NULL, 0, attrs, 2));
    tw_tensor_release(tensor);
    return output;
}

static tw_output scalar(tw_graph *graph, const char *name, tw_dtype dtype, double value)
{
    tw_tensor *tensor = tw_tensor_create(dtype, TW_SCALAR);
    if (tensor)
        twi_tensor_set_number(tensor, 0, value);
    return constant(graph, name, tensor);
}

static tw_output shape_constant(tw_graph *graph, tw_shape shape)
{
    int32_t dims[TW_MAX_RANK];
    for (int i = 0; i < shape.rank; i++)
        dims[i] = (int32_t)shape.dims[i];
    return constant(graph, "shape", tw_tensor_from(TW_INT32, TW_SHAPE(shape.rank), dims));
}

/* The remainder has the sign of the divisor, as in Python. */
static int64_t cut_seed(int64_t seed)
{
    seed %= INT32_MAX;
    return seed < 0 ? seed + INT32_MAX : seed;
}

void twi_op_seeds(const tw_graph *graph, int64_t op_seed, int64_t seeds[2])
{
    seeds[0] = seeds[1] = 0;
    TWI_NEED_OR(graph, );
    seeds[0] = graph->has_seed ? graph->seed : op_seed ? 87654321 : 0;
    seeds[1] = op_seed ? op_seed : graph->has_seed ? graph->nodes.count - graph->uncounted : 0;
    for (int i = 0; i < 2; i++)
        seeds[i] = cut_seed(seeds[i]);
    if (seeds[0] == 0 && seeds[1] == 0 && (graph->has_seed || op_seed))
        seeds[1] = INT32_MAX;
}

static tw_output random_values(tw_graph *graph, const char *op, tw_output shape, tw_dtype dtype, int64_t seed)
{
    int64_t seeds[2];
    twi_op_seeds(graph, seed, seeds);
    tw_attr attrs[] = {tw_attr_int("seed", seeds[0]), tw_attr_int("seed2", seeds[1]), tw_attr_type("dtype", dtype)};
    return one(tw_add_node(graph, op, NULL, &shape, 1, attrs, 3));
}

static tw_output binary(tw_graph *graph, const char *op, const char *name, tw_output a, tw_output b)
{
    return one(tw_add_node(graph, op, name, (tw_output[]){a, b}, 2, NULL, 0));
}

/* Receptive field x channels, as TensorFlow counts them. */
static void count_fans(tw_shape shape, double *in, double *out)
{
    double field = 1;
    for (int i = 0; i < shape.rank - 2; i++)
        field *= (double)shape.dims[i];
    *in = shape.rank < 1 ? 1 : shape.rank == 1 ? (double)shape.dims[0] : field * (double)shape.dims[shape.rank - 2];
    *out = shape.rank < 1 ? 1 : field * (double)shape.dims[shape.rank - 1];
}

static tw_output uniform_values(tw_graph *graph, tw_shape shape, tw_dtype dtype, double limit, int64_t seed)
{
    tw_output raw = random_values(graph, "RandomUniform", shape_constant(graph, shape), dtype, seed);
    tw_output scaled = binary(graph, "Mul", "mul", raw, scalar(graph, "scale", dtype, 2 * limit));
    return binary(graph, "AddV2", "random_uniform", scaled, scalar(graph, "mean", dtype, -limit));
}

/* [1, 1, channels, filters], ones on the diagonal */
static tw_output identity_filter(tw_graph *graph, int64_t channels, int64_t filters, tw_dtype dtype)
{
    tw_tensor *tensor = tw_tensor_create(TW_FLOAT32, TW_SHAPE(1, 1, channels, filters));
    for (int64_t i = 0; tensor && i < channels * filters; i++)
        ((float *)tw_tensor_data(tensor))[i] = i / filters == i % filters;
    tw_output identity = constant(graph, "identity", tensor);
    if (dtype == TW_FLOAT32)
        return identity;
    tw_attr to[] = {tw_attr_type("SrcT", TW_FLOAT32), tw_attr_type("DstT", dtype)};
    return one(tw_add_node(graph, "Cast", NULL, &identity, 1, to, 2));
}

static tw_output dirac_value(tw_graph *graph, tw_shape shape, tw_dtype dtype, int64_t seed)
{
    char text[128];
    if (shape.rank != 4 || tw_shape_elements(shape) < 1) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT,
                       "filters that pass channels on are [kh,kw,C,K], but here is a variable %s",
                       tw_shape_text(shape, text, sizeof text));
        return (tw_output){0};
    }
    int64_t channels = shape.dims[2], filters = shape.dims[3], same = channels < filters ? channels : filters;
    int32_t pads[8] = {0};
    for (int i = 0; i < 2; i++) {
        pads[2 * i] = (int32_t)(shape.dims[i] / 2);
        pads[2 * i + 1] = (int32_t)(shape.dims[i] - 1 - shape.dims[i] / 2);
    }
    tw_output passing = binary(graph, "Pad", "dirac", identity_filter(graph, channels, same, dtype),
                               constant(graph, "paddings", tw_tensor_from(TW_INT32, TW_SHAPE(4, 2), pads)));
    if (same == filters)
        return passing;
    double in, out;
    count_fans(shape, &in, &out);
    shape.dims[3] = filters - same;
    tw_output parts[] = {passing, uniform_values(graph, shape, dtype, sqrt(1 / in), seed),
                         scalar(graph, "axis", TW_INT32, 3)};
    tw_attr attrs[] = {tw_attr_int("N", 2)};
    return one(tw_add_node(graph, "ConcatV2", NULL, parts, 3, attrs, 1));
}

static tw_output initial_value(tw_graph *graph, tw_shape shape, tw_dtype dtype, tw_initializer init)
{
    if (init.kind == TW_INIT_DIRAC)
        return dirac_value(graph, shape, dtype, init.seed);
    static const struct {
        const char *scope, *op, *scale, *shift; /* TensorFlow's names; its `sub` is max - min, a constant here */
    } random[] = {
        [TW_INIT_UNIFORM] = {"random_uniform", "RandomUniform", "sub", "min"},
        [TW_INIT_NORMAL] = {"random_normal", "RandomStandardNormal", "stddev", "mean"},
        [TW_INIT_TRUNCATED_NORMAL] = {"truncated_normal", "TruncatedNormal", "stddev", "mean"},
        [TW_INIT_GLOROT_UNIFORM] = {"random_uniform", "RandomUniform", "sub", "min"},
    };
    if (init.kind == TW_INIT_CONSTANT) {
        if (shape.rank == 0)
            return scalar(graph, "Const", dtype, init.a);
        tw_output dims = shape_constant(graph, shape);
        return binary(graph, "Fill", "Const", dims, scalar(graph, "value", dtype, init.a));
    }
    double shift = init.a, scale = init.kind == TW_INIT_UNIFORM ? (double)init.b - init.a : init.b;
    if (init.kind == TW_INIT_GLOROT_UNIFORM) {
        double in, out;
        count_fans(shape, &in, &out);
        double limit = sqrt(6 / (in + out));
        shift = -limit;
        scale = 2 * limit;
    }
    tw_output value = {0};
    tw_enter_name_scope(graph, "%s", random[init.kind].scope);
    tw_output raw = random_values(graph, random[init.kind].op, shape_constant(graph, shape), dtype, init.seed);
    value = binary(graph, "Mul", "mul", raw, scalar(graph, random[init.kind].scale, dtype, scale));
    tw_output least = scalar(graph, random[init.kind].shift, dtype, shift);
    value = binary(graph, "AddV2", tw_name_scope(graph), value, least); /* has the scope's own name */
    tw_leave_name_scope(graph);
    return value;
}

tw_variable *tw_make_variable(tw_graph *graph, const char *name, const tw_new_variable *new)
{
    TWI_NEED_OR(graph, NULL);
    TWI_NEED_IN(graph, name, "name", NULL);
    TWI_NEED_IN(graph, new, "variable", NULL);
    if (graph->error.status != TW_OK)
        return NULL;
    if (tw_graph_find_variable(graph, name)) {
        twi_graph_fail(graph, TW_ALREADY_EXISTS, "variable '%s' is there already", name);
        return NULL;
    }
    if (new->copy_of && tw_graph_find_variable(graph, new->copy_of->name) != new->copy_of) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "variable '%s' cannot be a copy of '%s', which is of another graph",
                       name, new->copy_of->name);
        return NULL;
    }
    tw_variable *variable = twi_arena_alloc(&graph->arena, sizeof *variable);
    name = twi_arena_strdup(&graph->arena, name);
    if (!variable || !name) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making a variable");
        return NULL;
    }
    tw_dtype dtype = new->dtype;
    *variable = (tw_variable){.name = name,
                              .dtype = dtype,
                              .shape = new->shape,
                              .trainable = new->trainable,
                              .copy_of = new->copy_of};
    twi_enter_no_control(graph); /* a variable outlives the block that happened to make it first */
    twi_enter_absolute_scope(graph, "");
    tw_attr attrs[] = {tw_attr_type("dtype", dtype), tw_attr_shape("shape", new->shape),
                       tw_attr_string("shared_name", name)};
    variable->handle = one(tw_add_node(graph, "VarHandleOp", name, NULL, 0, attrs, 3));
    tw_leave_name_scope(graph);

    twi_enter_absolute_scope(graph, twi_arena_printf(&graph->arena, "%s/", name));
    tw_enter_colocation(graph, variable->handle);
    tw_output value = new->initial_value;
    if (!value.node) {
        tw_enter_name_scope(graph, "Initializer");
        value = initial_value(graph, new->shape, dtype, new->initializer);
        tw_leave_name_scope(graph);
    }
    variable->initializer = tw_node_output(
        tw_add_node(graph, "AssignVariableOp", "Assign", (tw_output[]){variable->handle, value}, 2, NULL, 0), -1);
    tw_leave_colocation(graph);
    tw_enter_name_scope(graph, "Read");
    tw_attr type = tw_attr_type("dtype", dtype);
    variable->value = one(tw_add_node(graph, "ReadVariableOp", NULL, &variable->handle, 1, &type, 1));
    tw_leave_name_scope(graph);
    tw_leave_name_scope(graph);
    tw_leave_control(graph);
    if (graph->error.status != TW_OK)
        return NULL;
    if (!twi_push(&graph->variables, variable) || !twi_map_put(&graph->variables_by_name, name, variable)) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making variable '%s'", name);
        return NULL;
    }
    tw_add_to_collection(graph, "variables", variable->value);
    if (new->trainable)
        tw_add_to_collection(graph, "trainable_variables", variable->value);
    return variable;
}

/* Nodes by the place of the variable they work on, in the graph's latest part. */
typedef struct uses {
    tw_node *assign, *read;
} uses;

/* A read, or in old graphs who passes on what a reference refers to. */
static bool gives_value(const tw_node *node)
{
    return twi_op_is(node->op, TWI_READ) ||
           (twi_op_is(node->op, TWI_PASSES) && node->output_types[0] != TW_RESOURCE &&
            !twi_output_is_reference((tw_output){(tw_node *)node, 0}));
}

/* Whether a node gives its variable what a checkpoint holds: that is no initial value. */
static bool restores(const tw_node *assign)
{
    const tw_node *from = assign->num_inputs > 1 ? assign->inputs[1].node : NULL;
    while (from && twi_op_is(from->op, TWI_PASSES) && from->num_inputs)
        from = from->inputs[0].node;
    return from && twi_op_is(from->op, TWI_RESTORE);
}

/* A variable without an initializer has none to run: it gets its value from a checkpoint, or not at all. */
static tw_status adopt_variable(tw_graph *graph, tw_node *maker, const uses *use)
{
    const char *shared = twi_attr_string(&maker->attrs, "shared_name", "");
    const char *name = *shared ? shared : maker->name;
    if (!use->read || tw_graph_find_variable(graph, name))
        return TW_OK;
    tw_variable *variable = twi_arena_alloc(&graph->arena, sizeof *variable);
    if (!variable)
        return TW_RESOURCE_EXHAUSTED;
    *variable = (tw_variable){.name = name,
                              .dtype = twi_attr_type(&maker->attrs, "dtype"),
                              .shape = maker->output_shapes[0],
                              .handle = one(maker),
                              .initializer = {use->assign, use->assign ? -1 : 0},
                              .value = one(use->read)};
    if (!twi_push(&graph->variables, variable) || !twi_map_put(&graph->variables_by_name, name, variable))
        return TW_RESOURCE_EXHAUSTED;
    tw_add_to_collection(graph, "variables", variable->value);
    return TW_OK;
}

tw_status twi_adopt_variables(tw_graph *graph, int first)
{
    tw_status status = TW_OK;
    int count = graph->nodes.count - first;
    if (count == 0) /* of an empty graph there are no items to be counted from */
        return TW_OK;
    tw_node **nodes = graph->nodes.items + first;
    uses *found = twi_alloc_array((size_t)count + 1, sizeof *found);
    for (int i = 0; i < count && found; i++) {
        tw_node *node = nodes[i], *maker = node->num_inputs ? node->inputs[0].node : NULL;
        if (!maker || !tw_node_is_variable(maker) || maker->id < first)
            continue;
        uses *use = &found[maker->id - first];
        if (!use->assign && twi_op_role(node->op, &node->attrs, 0) == 'w' && !restores(node))
            use->assign = node;
        if (!use->read && gives_value(node))
            use->read = node;
    }
    for (int i = 0; i < count && found && status == TW_OK; i++)
        if (tw_node_is_variable(nodes[i]))
            status = adopt_variable(graph, nodes[i], &found[i]);
    if (!found || status != TW_OK)
        status = twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while collecting variables");
    twi_free(found);
    return status;
}

tw_output tw_variable_initial_value(const tw_variable *variable)
{
    TWI_NEED_OR(variable, (tw_output){0});
    const tw_node *assign = variable->initializer.node;
    return assign && assign->num_inputs > 1 ? assign->inputs[1] : (tw_output){0};
}

static tw_variable *reuse_variable(tw_graph *graph, tw_variable *found, const char *name, tw_dtype dtype,
                                   tw_shape shape)
{
    char has[128], wants[128];
    if (!found) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT,
                       "Variable %s does not exist, or was not created with tw_get_variable(). Did you mean to call "
                       "tw_reuse_variables() only after the first tower?",
                       name);
        return NULL;
    }
    if (found->dtype == dtype && tw_shape_equal(found->shape, shape))
        return found;
    twi_graph_fail(graph, TW_INVALID_ARGUMENT, "Trying to share variable %s, but it is %s %s and %s %s was asked for",
                   name, tw_dtype_name(found->dtype), tw_shape_text(found->shape, has, sizeof has),
                   tw_dtype_name(dtype), tw_shape_text(shape, wants, sizeof wants));
    return NULL;
}

static tw_variable *find_or_make(tw_graph *graph, const char *name, tw_dtype dtype, tw_shape shape,
                                 tw_initializer init, bool trainable)
{
    if (graph->error.status != TW_OK)
        return NULL;
    const char *whole = twi_arena_printf(&graph->arena, "%s%s", twi_scope_variables(graph), name);
    if (!whole) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making variable '%s'", name);
        return NULL;
    }
    if (!tw_shape_is_known(shape)) {
        char text[128];
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "variable '%s': its shape %s must be fully known", whole,
                       tw_shape_text(shape, text, sizeof text));
        return NULL;
    }
    tw_variable *found = tw_graph_find_variable(graph, whole);
    if (twi_scope_reuses(graph))
        return reuse_variable(graph, found, whole, dtype, shape);
    if (found) {
        twi_graph_fail(graph, TW_ALREADY_EXISTS,
                       "Variable %s already exists. Did you mean to call tw_reuse_variables() before building the "
                       "next tower?",
                       whole);
        return NULL;
    }
    return tw_make_variable(graph, whole, &(tw_new_variable){dtype, shape, init, .trainable = trainable});
}

tw_variable *tw_get_variable(tw_graph *graph, const char *name, tw_dtype dtype, tw_shape shape, tw_initializer init)
{
    TWI_NEED_OR(graph, NULL);
    return tw_variable_here(graph, find_or_make(graph, name, dtype, shape, init, true));
}

tw_variable *tw_get_state_variable(tw_graph *graph, const char *name, tw_dtype dtype, tw_shape shape,
                                   tw_initializer init)
{
    TWI_NEED_OR(graph, NULL);
    return tw_variable_here(graph, find_or_make(graph, name, dtype, shape, init, false));
}

tw_variable *tw_variable_here(tw_graph *graph, tw_variable *variable)
{
    TWI_NEED_OR(graph, NULL);
    return graph->error.status == TW_OK ? twi_scope_getters(graph, variable) : NULL;
}

tw_variable *tw_copy_variable(tw_graph *graph, const tw_variable *variable, const char *name)
{
    TWI_NEED_OR(graph, NULL);
    TWI_NEED_IN(graph, name, "name", NULL);
    if (!variable || graph->error.status != TW_OK)
        return NULL;
    if (tw_graph_find_variable(graph, name)) {
        twi_graph_fail(graph, TW_ALREADY_EXISTS, "there is a variable '%s' already; it cannot be a copy of '%s'", name,
                       variable->name);
        return NULL;
    }
    return tw_make_variable(graph, name,
                            &(tw_new_variable){variable->dtype, variable->shape,
                                               .initial_value = tw_variable_initial_value(variable),
                                               .copy_of = variable});
}

tw_output tw_variable_read(tw_graph *graph, const tw_variable *variable)
{
    if (!variable)
        return (tw_output){0};
    tw_attr type = tw_attr_type("dtype", variable->dtype);
    return one(tw_add_node(graph, "ReadVariableOp", NULL, &variable->handle, 1, &type, 1));
}

int tw_graph_num_variables(const tw_graph *graph)
{
    TWI_NEED_OR(graph, 0);
    return graph->variables.count;
}

tw_variable *tw_graph_variable(const tw_graph *graph, int i)
{
    TWI_NEED_OR(graph, NULL);
    return graph->variables.items[i];
}

tw_variable *tw_graph_find_variable(const tw_graph *graph, const char *name)
{
    TWI_NEED_OR(graph && name, NULL);
    return twi_map_get(&graph->variables_by_name, name);
}

tw_output tw_initialize_variables(tw_graph *graph)
{
    TWI_NEED_OR(graph, (tw_output){0});
    int count = graph->variables.count;
    tw_output *inputs = twi_alloc_array((size_t)count + 1, sizeof *inputs);
    if (!inputs) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while collecting initializers");
        return (tw_output){0};
    }
    int given = 0;
    for (int i = 0; i < count; i++)
        if (graph->variables.items[i]->initializer.node)
            inputs[given++] = graph->variables.items[i]->initializer;
    tw_node *node = tw_add_node(graph, "NoOp", "init", inputs, given, NULL, 0);
    twi_free(inputs);
    return tw_node_output(node, -1);
}

tw_variable *tw_global_step(tw_graph *graph)
{
    TWI_NEED_OR(graph, NULL);
    tw_variable *found = tw_graph_find_variable(graph, "global_step");
    if (found || graph->error.status != TW_OK)
        return found;
    return tw_make_variable(graph, "global_step", &(tw_new_variable){TW_INT64, TW_SCALAR});
}
