/* control.c - ops that do nothing but order, check or tell. */
#include "graph/graph.h"

#include <tower/ops.h>

static tw_status nothing_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

static tw_status assert_shape(twi_inference *c)
{
    return twi_expect_rank(c, 0, 0);
}

static void print_gradient(twi_gradient *g)
{
    g->dx[0] = g->dy[0];
}

static tw_status words_shape(twi_inference *c)
{
    return twi_expect_rank(c, 0, 0);
}

/* Only the program that wrote the graph has the function. */
static tw_status python_shape(twi_inference *c)
{
    return twi_fail(
        c->error, TW_UNIMPLEMENTED,
        "it calls a function of the Python program that made the graph, which no file holds; feed what it gives, "
        "or build that part of ops");
}

#define PYTHON "input:Tin", "output:Tout", "token:string; Tin:types; Tout:types; is_async:bool=false", python_shape

const twi_op twi_control_ops[] = {
    {"NoOp", "", "", "", nothing_shape, NULL, TWI_STATEFUL},
    {"ControlTrigger", "", "", "", nothing_shape, NULL, TWI_STATEFUL | TWI_MERGE}, /* of nothing but control inputs */
    {"Assert", "condition:bool, data:T", "", "T:types>=1; summarize:int=3", assert_shape, twi_not_differentiable,
     TWI_STATEFUL},
    {"Print", "input:T, data:U", "output:T", "T:type; U:types; message:string=; first_n:int=-1; summarize:int=3",
     twi_shape_same, print_gradient, TWI_STATEFUL | TWI_HOST_ONLY},
    {"PrintV2", "input:string", "", "output_stream:string=stderr; end:string=\n", words_shape, NULL,
     TWI_STATEFUL | TWI_HOST_ONLY},
    {"PyFunc", PYTHON, NULL, TWI_STATEFUL | TWI_HOST_ONLY},
    {"PyFuncStateless", PYTHON, NULL, TWI_HOST_ONLY},
    {"EagerPyFunc", PYTHON, NULL, TWI_STATEFUL | TWI_HOST_ONLY},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

tw_output tw_no_op(tw_graph *graph)
{
    return tw_node_output(tw_add_node(graph, "NoOp", NULL, NULL, 0, NULL, 0), -1);
}

tw_output tw_group(tw_graph *graph, const tw_output *outputs, int count)
{
    TWI_NEED_IN(graph, outputs || count <= 0, "outputs", (tw_output){0});
    graph = !graph || graph->next_name ? graph : tw_name(graph, "group_deps");
    tw_output *controls = twi_alloc_array((size_t)count + 1, sizeof *controls);
    if (!controls) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while grouping %d nodes", count);
        return (tw_output){0};
    }
    for (int i = 0; i < count; i++)
        controls[i] = (tw_output){outputs[i].node, -1};
    tw_node *node = tw_add_node(graph, "NoOp", NULL, controls, count, NULL, 0);
    twi_free(controls);
    return tw_node_output(node, -1);
}

/* op(first, data...) with attribute `summarize`. */
static tw_output add_with_data(tw_graph *graph, const char *op, tw_output first, const tw_output *data, int num_data,
                               const tw_attr *attrs, int num_attrs)
{
    tw_output *inputs = twi_alloc_array((size_t)num_data + 1, sizeof *inputs);
    if (!inputs) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding %s", op);
        return (tw_output){0};
    }
    inputs[0] = first;
    for (int i = 0; i < num_data; i++)
        inputs[1 + i] = data[i];
    tw_node *node = tw_add_node(graph, op, NULL, inputs, num_data + 1, attrs, num_attrs);
    twi_free(inputs);
    return tw_node_output(node, 0);
}

tw_output tw_assert(tw_graph *graph, tw_output condition, const tw_output *data, int num_data, int summarize)
{
    TWI_NEED_IN(graph, data || num_data <= 0, "data", (tw_output){0});
    tw_attr attrs[] = {tw_attr_int("summarize", summarize)};
    return add_with_data(graph, "Assert", condition, data, num_data, attrs, 1);
}

tw_output tw_print(tw_graph *graph, tw_output input, const tw_output *data, int num_data, const char *message)
{
    TWI_NEED_IN(graph, data || num_data <= 0, "data", (tw_output){0});
    tw_attr attrs[] = {tw_attr_string("message", message)};
    return add_with_data(graph, "Print", input, data, num_data, attrs, 1);
}
