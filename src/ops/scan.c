/* scan.c - loops over the slices of tensors: tw_scan() and tw_map(), as TensorFlow builds them, on TensorArrays. */
#include "graph/blocks.h"
#include "ops/build.h"

#include <tower/ops.h>

/* An array of a scan: what orders the accesses to it is a value that goes round, if it is written. */
typedef struct array {
    tw_output handle, flow;
    tw_dtype dtype;
    int variable; /* of the loop */
} array;

typedef struct scan {
    tw_graph *graph;
    tw_scan_values v;
    twi_block *loop;
    tw_output size;    /* n, int32 */
    array *in, *out;   /* [num_elements], [num_results] */
    tw_output *values; /* [num_state] of the loop, then [num_elements] slices of the step */
} scan;

/* A shape without its first axis, or with one of n before it. */
static tw_shape row_of(tw_shape shape)
{
    tw_shape row = {.rank = shape.rank > 0 ? shape.rank - 1 : -1};
    for (int i = 0; i < row.rank; i++)
        row.dims[i] = shape.dims[i + 1];
    return row;
}

static tw_shape rows_of(int64_t n, tw_shape row)
{
    tw_shape shape = {.rank = row.rank >= 0 && row.rank < TW_MAX_RANK ? row.rank + 1 : -1, .dims = {n}};
    for (int i = 0; i + 1 < shape.rank; i++)
        shape.dims[i + 1] = row.dims[i];
    return shape;
}

/* For elements of that type and shape, beside `like`. */
static array make_array(tw_graph *graph, tw_output like, tw_shape shape, tw_output size)
{
    tw_dtype dtype = tw_output_dtype(like);
    tw_attr attrs[] = {tw_attr_type("dtype", dtype), tw_attr_shape("element_shape", shape)};
    twi_enter_host(graph, like);
    tw_node *node = tw_add_node(graph, "TensorArrayV3", "TensorArray", &size, 1, attrs, 2);
    twi_leave_host(graph);
    return (array){tw_node_output(node, 0), tw_node_output(node, 1), dtype, -1};
}

static tw_output numbers_below(tw_graph *graph, tw_output size)
{
    return tw_range(graph, twi_constant_int(graph, 0), size, twi_constant_int(graph, 1));
}

/* Beside the array, wherever the slices are computed with. */
static tw_output access_array(tw_graph *graph, const char *op, const tw_output *inputs, int num_inputs,
                              const tw_attr *attrs, int num_attrs)
{
    tw_enter_colocation(graph, inputs[0]);
    tw_output made = twi_build(graph, op, inputs, num_inputs, attrs, num_attrs);
    tw_leave_colocation(graph);
    return made;
}

/* The slices of x. */
static array take_apart(tw_graph *graph, tw_output x, tw_output size)
{
    array a = make_array(graph, x, row_of(tw_output_shape(x)), size);
    tw_output inputs[] = {a.handle, numbers_below(graph, size), x, a.flow};
    a.flow = access_array(graph, "TensorArrayScatterV3", inputs, 4, TWI_NO_ATTRS);
    return a;
}

static tw_output put_together(tw_graph *graph, const array *a, tw_output size)
{
    tw_output inputs[] = {a->handle, numbers_below(graph, size), a->flow};
    return access_array(graph, "TensorArrayGatherV3", inputs, 3, TWI_ATTRS(tw_attr_type("dtype", a->dtype)));
}

/* What is told where a row of the op's could not know it. */
static void tell_shape(tw_output output, tw_shape shape)
{
    if (output.node)
        output.node->output_shapes[output.index] = shape;
}

/* ---- its parts -------------------------------------------------------------------------------------------------- */

static bool check(tw_graph *graph, const tw_scan_values *v, bool has_function)
{
    bool given =
        (v->elements || v->num_elements <= 0) && (v->state || v->num_state <= 0) && (v->results || v->num_results <= 0);
    if (graph->error.status == TW_OK && (!has_function || !given))
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "scan: %s NULL",
                       has_function ? "values that it counts are" : "its function is");
    if (graph->error.status == TW_OK && v->num_elements <= 0 && !v->steps.node)
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "scan: of no elements, and nobody says how many steps there are");
    for (int i = 0; i < v->num_elements && graph->error.status == TW_OK; i++) {
        char text[128];
        tw_shape shape = tw_output_shape(v->elements[i]), first = tw_output_shape(v->elements[0]);
        bool fits = shape.rank != 0 && (shape.rank < 0 || first.rank < 1 || shape.dims[0] < 0 || first.dims[0] < 0 ||
                                        shape.dims[0] == first.dims[0]);
        if (!v->elements[i].node)
            twi_graph_fail(graph, TW_INVALID_ARGUMENT, "scan: element %d is a dead output", i);
        else if (!fits)
            twi_graph_fail(
                graph, TW_INVALID_ARGUMENT, "scan: element %d, '%s', is %s: expected slices as many as of '%s'", i,
                v->elements[i].node->name, tw_shape_text(shape, text, sizeof text), v->elements[0].node->name);
    }
    return graph->error.status == TW_OK;
}

/* How many slices there are. */
static tw_output count_slices(tw_graph *graph, const tw_scan_values *v)
{
    if (v->num_elements <= 0)
        return v->steps;
    tw_shape shape = tw_output_shape(v->elements[0]);
    if (shape.rank > 0 && shape.dims[0] >= 0)
        return twi_constant_int(graph, shape.dims[0]);
    return tw_strided_slice(
        graph, tw_shape_of(graph, v->elements[0]),
        (tw_strided_slice_options){.begin = TW_SHAPE(0), .end = TW_SHAPE(1), .shrink_axis_mask = 1});
}

static void read_slices(scan *s, tw_output step)
{
    for (int i = 0; i < s->v.num_elements; i++) {
        const array *a = &s->in[i];
        tw_output *slice = &s->values[s->v.num_state + i];
        *slice = access_array(s->graph, "TensorArrayReadV3", TWI_INPUTS(a->handle, step, a->flow),
                              TWI_ATTRS(tw_attr_type("dtype", a->dtype)));
        tell_shape(*slice, row_of(tw_output_shape(s->v.elements[i])));
    }
}

/* The array of a result is made when its type is known, outside, and goes round. */
static void write_results(scan *s, tw_output step)
{
    tw_graph *graph = s->graph;
    for (int i = 0; i < s->v.num_results && graph->error.status == TW_OK; i++) {
        tw_output result = s->v.results[i];
        if (!result.node)
            twi_graph_fail(graph, TW_INVALID_ARGUMENT, "scan: its function leaves result %d a dead output", i);
        twi_enter_block(graph, s->loop->outer, false);
        s->out[i] = make_array(graph, result, tw_output_shape(result), s->size);
        tw_leave_branch(graph);
        s->out[i].variable = twi_loop_variable(graph, s->loop, s->out[i].flow);
        tw_output flow = twi_loop_value(s->loop, s->out[i].variable);
        tw_output inputs[] = {s->out[i].handle, step, result, flow};
        flow = access_array(graph, "TensorArrayWriteV3", inputs, 4, TWI_NO_ATTRS);
        if (flow.node)
            twi_loop_next(graph, s->loop, s->out[i].variable, flow);
    }
}

static void gather_results(scan *s)
{
    for (int i = 0; i < s->v.num_results; i++) {
        tw_shape size = s->v.num_elements ? tw_output_shape(s->v.elements[0]) : TW_UNKNOWN_SHAPE;
        tw_shape row = tw_output_shape(s->v.results[i]);
        if (s->graph->error.status == TW_OK)
            s->out[i].flow = twi_loop_result(s->graph, s->loop, s->out[i].variable);
        s->v.results[i] = put_together(s->graph, &s->out[i], s->size);
        tell_shape(s->v.results[i], rows_of(size.rank > 0 ? size.dims[0] : -1, row));
    }
}

static void build(scan *s, tw_scan_function *function, void *user)
{
    tw_graph *graph = s->graph;
    s->size = count_slices(graph, &s->v);
    for (int i = 0; i < s->v.num_elements; i++)
        s->in[i] = take_apart(graph, s->v.elements[i], s->size);
    for (int i = 0; i < s->v.num_state; i++)
        s->values[i] = s->v.state[i];
    TW_LOOP(graph, s->values, s->v.num_state)
    {
        s->loop = twi_scope_loop(graph);
        tw_output step = tw_round_number(graph);
        tw_while(graph, tw_less(graph, step, s->v.steps.node ? tw_minimum(graph, s->v.steps, s->size) : s->size));
        read_slices(s, step);
        if (graph->error.status == TW_OK)
            function(user, graph, s->values + s->v.num_state, s->values, s->v.results);
        write_results(s, step);
    }
    gather_results(s);
    for (int i = 0; i < s->v.num_state; i++)
        s->v.state[i] = s->values[i];
}

void tw_scan(tw_graph *graph, tw_scan_function *function, void *user, tw_scan_values v)
{
    TWI_NEED_OR(graph, );
    scan s = {.graph = graph, .v = v};
    int elements = v.num_elements > 0 ? v.num_elements : 0, results = v.num_results > 0 ? v.num_results : 0;
    tw_enter_name_scope(graph, "%s", graph->next_name ? graph->next_name : "scan");
    graph->next_name = NULL;
    for (int i = 0; i < results && v.results; i++)
        v.results[i] = (tw_output){0};
    s.in = twi_arena_alloc(&graph->arena, sizeof *s.in * (size_t)(elements + results + 1));
    s.values = twi_arena_alloc(&graph->arena, sizeof *s.values * (size_t)(v.num_state + elements + 1));
    s.out = s.in ? s.in + elements : NULL;
    if (!s.in || !s.values)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while building a scan");
    if (check(graph, &v, function != NULL))
        build(&s, function, user);
    tw_leave_name_scope(graph);
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

typedef struct mapped {
    tw_map_function *function;
    void *user;
} mapped;

static void map_slice(void *user, tw_graph *graph, const tw_output *elements, tw_output *state, tw_output *results)
{
    const mapped *m = user;
    (void)state;
    m->function(m->user, graph, elements, results);
}

void tw_map(tw_graph *graph, tw_map_function *function, void *user, const tw_output *elements, int num_elements,
            tw_output *results, int num_results)
{
    TWI_NEED_OR(graph, );
    mapped m = {function, user};
    tw_scan(graph->next_name ? graph : tw_name(graph, "map"), function ? map_slice : NULL, &m,
            (tw_scan_values){
                .elements = elements, .num_elements = num_elements, .results = results, .num_results = num_results});
}
