/* list.c - lists of tensors, which TensorFlow 2's loops hand from round to round and to their gradients.
 *
 * A list is a value (tensor/variant.h). As of a handle, the shape that rules see of it is that of what is behind it: of
 * its elements. It is learned from what is put in; where elements differ, or nothing is known, what is taken out has
 * the shape that comes (plan/border.c). */
#include "graph/graph.h"
#include "ops/build.h"
#include "tensor/variant.h"

#include <string.h>
#include <tower/ops.h>

/* The shape that input i spells; a scalar, -1, spells nothing. */
static tw_shape spelled(const twi_inference *c, int i)
{
    return twi_shape_of_value(c->input_values[i]);
}

static bool holds_lists(const twi_inference *c)
{
    return twi_attr_type(c->attrs, "element_dtype") == TW_VARIANT;
}

static tw_shape without_first(tw_shape shape)
{
    if (shape.rank < 1)
        return TW_UNKNOWN_SHAPE;
    shape.rank--;
    memmove(shape.dims, shape.dims + 1, sizeof *shape.dims * (size_t)shape.rank);
    return shape;
}

static tw_shape with_first(int64_t first, tw_shape shape)
{
    if (shape.rank < 0 || shape.rank == TW_MAX_RANK)
        return TW_UNKNOWN_SHAPE;
    memmove(shape.dims + 1, shape.dims, sizeof *shape.dims * (size_t)shape.rank);
    shape.dims[0] = first;
    shape.rank++;
    return shape;
}

/* Of the rows of input i; an array of lists is a list of them. */
static tw_shape row_of(const twi_inference *c, int i)
{
    return holds_lists(c) ? c->inputs[i] : without_first(c->inputs[i]);
}

/* Of that many elements in a row. */
static tw_shape rows_of(const twi_inference *c, int64_t count, tw_shape element)
{
    return holds_lists(c) ? element : with_first(count, element);
}

/* Of elements taken from the list that input 0 is, whose shape input `shape` spells as far as the graph knows it. */
static tw_shape taken(const twi_inference *c, int shape)
{
    tw_shape list = c->inputs[0], wanted = spelled(c, shape);
    if (holds_lists(c) || tw_shape_is_known(list))
        return list;
    return wanted;
}

/* ---- what makes lists -------------------------------------------------------------------------------------------- */

static tw_status made_shape(twi_inference *c)
{
    tw_shape shape = spelled(c, 0);
    c->outputs[0] = tw_shape_is_known(shape) && !holds_lists(c) ? shape : TWI_NO_ELEMENTS;
    return TW_OK;
}

/* Of rows along the first axis. */
static tw_status rows_shape(twi_inference *c)
{
    c->outputs[0] = row_of(c, 0);
    return TW_OK;
}

static tw_status split_shape(twi_inference *c)
{
    const tw_tensor *lengths = c->input_values[2];
    tw_shape row = without_first(c->inputs[0]);
    bool alike = lengths && lengths->elements > 0;
    for (int64_t i = 1; alike && i < lengths->elements; i++)
        alike = twi_tensor_int(lengths, i) == twi_tensor_int(lengths, 0);
    c->outputs[0] = alike ? with_first(twi_tensor_int(lengths, 0), row) : TW_UNKNOWN_SHAPE;
    return TW_OK;
}

/* ---- what changes them ------------------------------------------------------------------------------------------- */

static tw_status pushed_shape(twi_inference *c)
{
    c->outputs[0] = twi_join_elements(c->inputs[0], c->inputs[1]);
    return TW_OK;
}

static tw_status set_shape(twi_inference *c)
{
    c->outputs[0] = twi_join_elements(c->inputs[0], c->inputs[2]);
    return TW_OK;
}

static tw_status rows_set_shape(twi_inference *c)
{
    c->outputs[0] = twi_join_elements(c->inputs[0], row_of(c, 1));
    return TW_OK;
}

static tw_status popped_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    c->outputs[1] = taken(c, 1);
    return TW_OK;
}

static tw_status resized_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0];
    return TW_OK;
}

/* ---- what looks at them ------------------------------------------------------------------------------------------ */

static tw_status item_shape(twi_inference *c)
{
    c->outputs[0] = taken(c, 2);
    return TW_OK;
}

static tw_status stacked_shape(twi_inference *c)
{
    c->outputs[0] = rows_of(c, twi_attr_int(c->attrs, "num_elements", -1), taken(c, 1));
    return TW_OK;
}

static tw_status gathered_shape(twi_inference *c)
{
    c->outputs[0] = rows_of(c, c->inputs[1].rank == 1 ? c->inputs[1].dims[0] : -1, taken(c, 2));
    return TW_OK;
}

/* How long it is is known when it runs. */
static tw_status joined_shape(twi_inference *c)
{
    c->outputs[0] = with_first(-1, without_first(c->inputs[0]));
    c->outputs[1] = TW_SHAPE(-1);
    return TW_OK;
}

static tw_status element_shape(twi_inference *c)
{
    c->outputs[0] = c->inputs[0].rank >= 0 ? TW_SHAPE(c->inputs[0].rank) : TW_UNKNOWN_SHAPE;
    return TW_OK;
}

/* ---- optionals: lists that are empty, or have the components of a value ------------------------------------------ */

static tw_status some_shape(twi_inference *c)
{
    c->outputs[0] = c->num_inputs == 1 ? c->inputs[0] : TW_UNKNOWN_SHAPE;
    return TW_OK;
}

static tw_status none_shape(twi_inference *c)
{
    c->outputs[0] = TWI_NO_ELEMENTS;
    return TW_OK;
}

static tw_status components_shape(twi_inference *c)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, "output_shapes");
    for (int i = 0; i < c->num_outputs; i++) {
        bool told = shapes && i < shapes->count && c->output_types[i] != TW_VARIANT;
        c->outputs[i] = told ? shapes->shapes[i] : TW_UNKNOWN_SHAPE;
        if (c->num_outputs == 1 && (c->output_types[i] == TW_VARIANT || tw_shape_is_known(c->inputs[0])))
            c->outputs[i] = c->inputs[0];
    }
    return TW_OK;
}

/* ---- gradients: of a list, a list of the gradients of its elements ----------------------------------------------- */

static tw_output element_shape_of(tw_graph *graph, tw_output list)
{
    return twi_build(graph, "TensorListElementShape", &list, 1, TWI_ATTRS(tw_attr_type("shape_type", TW_INT32)));
}

static tw_output length_of(tw_graph *graph, tw_output list)
{
    return twi_build(graph, "TensorListLength", &list, 1, TWI_NO_ATTRS);
}

/* The shape of a tensor's rows; of lists it says nothing. */
static tw_output row_shape_of(tw_graph *graph, tw_output rows)
{
    tw_shape row = without_first(tw_output_shape(rows));
    if (tw_output_dtype(rows) == TW_VARIANT)
        return twi_constant_int(graph, -1);
    if (tw_shape_is_known(row))
        return twi_constant_ints(graph, row.dims, row.rank);
    return tw_slice(graph, tw_shape_of(graph, rows), TW_SHAPE(1), TW_SHAPE(-1));
}

/* A list, as output 0 of `op`, of elements of that type and shape. */
static tw_output make_list(tw_graph *graph, const char *op, tw_dtype dtype, const tw_output *inputs, int num_inputs)
{
    return twi_build(graph, op, inputs, num_inputs,
                     TWI_ATTRS(tw_attr_type("element_dtype", dtype), tw_attr_type("shape_type", TW_INT32)));
}

/* What an op with only the elements' type makes of its inputs. */
static tw_output make_of(tw_graph *graph, const char *op, tw_dtype dtype, const tw_output *inputs, int num_inputs)
{
    return twi_build(graph, op, inputs, num_inputs, TWI_ATTRS(tw_attr_type("element_dtype", dtype)));
}

/* An element that is like x. */
static tw_output get(tw_graph *graph, tw_output list, tw_output index, tw_output x)
{
    return make_of(graph, "TensorListGetItem", tw_output_dtype(x), TWI_INPUTS(list, index, twi_shape_tensor(graph, x)));
}

/* Rows of elements that are like those of x. */
static tw_output gather(tw_graph *graph, tw_output list, tw_output indices, tw_output x)
{
    return make_of(graph, "TensorListGather", tw_output_dtype(x), TWI_INPUTS(list, indices, row_shape_of(graph, x)));
}

static void push_gradient(twi_gradient *g)
{
    tw_output x = g->node->inputs[1];
    tw_attr type = tw_attr_type("element_dtype", tw_output_dtype(x));
    tw_output inputs[] = {g->dy[0], twi_shape_tensor(g->graph, x)};
    tw_node *pop = tw_add_node(g->graph, "TensorListPopBack", NULL, inputs, 2, &type, 1);
    g->dx[0] = tw_node_output(pop, 0);
    g->dx[1] = tw_node_output(pop, 1);
}

static void pop_gradient(twi_gradient *g)
{
    tw_dtype dtype = g->node->output_types[1];
    tw_output list = g->dy[0], x = g->dy[1];
    if (!list.node) {
        tw_output rest = {g->node, 0};
        list = make_list(g->graph, "TensorListReserve", dtype,
                         TWI_INPUTS(element_shape_of(g->graph, rest), length_of(g->graph, rest)));
    }
    if (!x.node)
        x = tw_zeros_like(g->graph, (tw_output){g->node, 1});
    g->dx[0] = make_of(g->graph, "TensorListPushBack", dtype, TWI_INPUTS(list, x));
}

static void set_gradient(twi_gradient *g)
{
    tw_output list = g->node->inputs[0], index = g->node->inputs[1], x = g->node->inputs[2];
    g->dx[0] = make_of(g->graph, "TensorListSetItem", tw_output_dtype(x),
                       TWI_INPUTS(g->dy[0], index, tw_zeros_like(g->graph, x)));
    if (twi_attr_bool(&g->node->attrs, "resize_if_index_out_of_bounds", false)) /* it may have been shorter */
        g->dx[0] = twi_build(g->graph, "TensorListResize", TWI_INPUTS(g->dx[0], length_of(g->graph, list)),
                             TWI_NO_ATTRS);
    g->dx[2] = get(g->graph, g->dy[0], index, x);
}

static void get_gradient(twi_gradient *g)
{
    tw_output list = g->node->inputs[0], index = g->node->inputs[1];
    tw_dtype dtype = tw_output_dtype(g->dy[0]);
    tw_output none = make_list(g->graph, "TensorListReserve", dtype,
                               TWI_INPUTS(element_shape_of(g->graph, list), length_of(g->graph, list)));
    g->dx[0] = make_of(g->graph, "TensorListSetItem", dtype, TWI_INPUTS(none, index, g->dy[0]));
}

static void resize_gradient(twi_gradient *g)
{
    tw_output size = length_of(g->graph, g->node->inputs[0]);
    g->dx[0] = twi_build(g->graph, "TensorListResize", TWI_INPUTS(g->dy[0], size), TWI_NO_ATTRS);
}

static void from_tensor_gradient(twi_gradient *g)
{
    tw_output x = g->node->inputs[0];
    tw_shape shape = tw_output_dtype(x) == TW_VARIANT ? TW_UNKNOWN_SHAPE : tw_output_shape(x);
    g->dx[0] = twi_build(g->graph, "TensorListStack", TWI_INPUTS(g->dy[0], row_shape_of(g->graph, x)),
                         TWI_ATTRS(tw_attr_type("element_dtype", tw_output_dtype(x)),
                                   tw_attr_int("num_elements", shape.rank > 0 ? shape.dims[0] : -1)));
}

static void stack_gradient(twi_gradient *g)
{
    tw_output dy = g->dy[0];
    g->dx[0] = make_list(g->graph, "TensorListFromTensor", tw_output_dtype(dy),
                         TWI_INPUTS(dy, element_shape_of(g->graph, g->node->inputs[0])));
}

/* An element may have been taken several times. */
static void gather_gradient(twi_gradient *g)
{
    tw_output list = g->node->inputs[0], dy = g->dy[0];
    tw_output sums = twi_build(g->graph, "UnsortedSegmentSum",
                               TWI_INPUTS(dy, g->node->inputs[1], length_of(g->graph, list)), TWI_NO_ATTRS);
    g->dx[0] = make_list(g->graph, "TensorListFromTensor", tw_output_dtype(dy),
                         TWI_INPUTS(sums, element_shape_of(g->graph, list)));
}

static void scatter_gradient(twi_gradient *g)
{
    g->dx[0] = gather(g->graph, g->dy[0], g->node->inputs[1], g->node->inputs[0]);
}

static void scatter_into_gradient(twi_gradient *g)
{
    tw_output x = g->node->inputs[1], indices = g->node->inputs[2];
    g->dx[0] = make_of(g->graph, "TensorListScatterIntoExistingList", tw_output_dtype(x),
                       TWI_INPUTS(g->dy[0], tw_zeros_like(g->graph, x), indices));
    g->dx[1] = gather(g->graph, g->dy[0], indices, x);
}

static void concat_gradient(twi_gradient *g)
{
    tw_output dy = g->dy[0], lengths = {g->node, 1};
    g->dx[0] = make_list(g->graph, "TensorListSplit", tw_output_dtype(dy),
                         TWI_INPUTS(dy, element_shape_of(g->graph, g->node->inputs[0]), lengths));
}

static void split_gradient(twi_gradient *g)
{
    g->dx[0] = make_of(g->graph, "TensorListConcat", tw_output_dtype(g->node->inputs[0]), TWI_INPUTS(g->dy[0]));
}

#define LIST "input_handle:variant"
#define SHAPE "element_shape:shape_type"
#define TYPES "element_dtype:type; shape_type:{int32,int64}"
#define TYPE "element_dtype:type"
#define TAKES TWI_HOST_ONLY | TWI_MAKES_SHAPE

const twi_op twi_list_ops[] = {
    {"EmptyTensorList", SHAPE ", max_num_elements:int32", "handle:variant", TYPES, made_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"TensorListReserve", SHAPE ", num_elements:int32", "handle:variant", TYPES, made_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"TensorListFromTensor", "tensor:element_dtype, " SHAPE, "output_handle:variant", TYPES, rows_shape,
     from_tensor_gradient, TWI_HOST_ONLY},
    {"TensorListScatter", "tensor:element_dtype, indices:int32, " SHAPE, "output_handle:variant", TYPES, rows_shape,
     scatter_gradient, TWI_HOST_ONLY},
    {"TensorListScatterV2", "tensor:element_dtype, indices:int32, " SHAPE ", num_elements:int32",
     "output_handle:variant", TYPES, rows_shape, scatter_gradient, TWI_HOST_ONLY},
    {"TensorListSplit", "tensor:element_dtype, " SHAPE ", lengths:int64", "output_handle:variant", TYPES, split_shape,
     split_gradient, TWI_HOST_ONLY},

    {"TensorListPushBack", LIST ", tensor:element_dtype", "output_handle:variant", TYPE, pushed_shape, push_gradient,
     TWI_HOST_ONLY},
    {"TensorListPopBack", LIST ", element_shape:int32", "output_handle:variant, tensor:element_dtype", TYPE,
     popped_shape, pop_gradient, TAKES},
    {"TensorListSetItem", LIST ", index:int32, item:element_dtype", "output_handle:variant",
     TYPE "; resize_if_index_out_of_bounds:bool=false", set_shape, set_gradient, TWI_HOST_ONLY},
    {"TensorListScatterIntoExistingList", LIST ", tensor:element_dtype, indices:int32", "output_handle:variant", TYPE,
     rows_set_shape, scatter_into_gradient, TWI_HOST_ONLY},
    {"TensorListConcatLists", "input_a:variant, input_b:variant", "output:variant", TYPE, pushed_shape, NULL,
     TWI_HOST_ONLY},
    {"TensorListResize", LIST ", size:int32", "output_handle:variant", "", resized_shape, resize_gradient,
     TWI_HOST_ONLY},

    {"TensorListGetItem", LIST ", index:int32, element_shape:Tshape", "item:element_dtype",
     TYPE "; Tshape:{int32,int64}=int32", item_shape, get_gradient, TAKES},
    {"TensorListStack", LIST ", element_shape:int32", "tensor:element_dtype", TYPE "; num_elements:int=-1",
     stacked_shape, stack_gradient, TAKES},
    {"TensorListGather", LIST ", indices:int32, element_shape:int32", "values:element_dtype", TYPE, gathered_shape,
     gather_gradient, TAKES},
    {"TensorListConcat", LIST, "tensor:element_dtype, lengths:int64", TYPE "; element_shape:shape=unknown",
     joined_shape, concat_gradient, TAKES},
    {"TensorListConcatV2", LIST ", " SHAPE ", leading_dims:int64", "tensor:element_dtype, lengths:int64", TYPES,
     joined_shape, concat_gradient, TAKES},
    {"TensorListLength", LIST, "length:int32", "", twi_shape_scalar, twi_not_differentiable, TWI_HOST_ONLY},
    {"TensorListElementShape", LIST, SHAPE, "shape_type:{int32,int64}", element_shape, twi_not_differentiable, TAKES},

    {"OptionalFromValue", "components:Toutput_types", "optional:variant", "Toutput_types:types>=1", some_shape, NULL,
     TWI_HOST_ONLY},
    {"OptionalNone", "", "optional:variant", "", none_shape, NULL, TWI_HOST_ONLY},
    {"OptionalHasValue", "optional:variant", "has_value:bool", "", twi_shape_scalar, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"OptionalGetValue", "optional:variant", "components:output_types",
     "output_types:types>=1; output_shapes:shapes>=1", components_shape, NULL, TAKES},
    {0},
};
