/* build.h - what the builders and gradient rules of src/ops share: adding a node in one line.
 *
 *     return twi_build(g, "MatMul", TWI_INPUTS(a, b), TWI_ATTRS(tw_attr_bool("transpose_a", true)));
 */
#ifndef TWI_BUILD_H
#define TWI_BUILD_H

#include "graph/graph.h"
#include "tensor/tensor.h"

#include <string.h>
#include <tower/graph.h>

#define TWI_COUNT(type, ...) ((int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type)))
#define TWI_INPUTS(...) (const tw_output[]){__VA_ARGS__}, TWI_COUNT(tw_output, __VA_ARGS__)
#define TWI_ATTRS(...) (const tw_attr[]){__VA_ARGS__}, TWI_COUNT(tw_attr, __VA_ARGS__)
#define TWI_NO_ATTRS NULL, 0

/* Adds a node and returns its first output; {NULL, 0} if the graph has failed. */
static inline tw_output twi_build(tw_graph *graph, const char *op, const tw_output *inputs, int num_inputs,
                                  const tw_attr *attrs, int num_attrs)
{
    tw_node *node = tw_add_node(graph, op, NULL, inputs, num_inputs, attrs, num_attrs);
    return node ? tw_node_output(node, 0) : (tw_output){0};
}

/* Attributes of a node that are not marks ("_class"), but for the one called `but` (NULL: none); returns how many. */
enum { TWI_MOST_LIKE = 16 };
static inline int twi_attrs_like(const tw_node *node, const char *but, tw_attr attrs[TWI_MOST_LIKE])
{
    int count = 0;
    for (int i = 0; i < node->attrs.count && count < TWI_MOST_LIKE; i++)
        if (node->attrs.items[i].name[0] != '_' && (!but || strcmp(node->attrs.items[i].name, but) != 0))
            attrs[count++] = node->attrs.items[i];
    return count;
}

/* Adds a node, with all attributes of another one that are not marks: an op's gradient takes its own. */
static inline tw_output twi_build_like(const tw_node *node, const char *op, const tw_output *inputs, int num_inputs)
{
    tw_attr attrs[TWI_MOST_LIKE];
    return twi_build(node->graph, op, inputs, num_inputs, attrs, twi_attrs_like(node, NULL, attrs));
}

/* The constant of a tensor that nobody else needs; NULL stands for memory that ran out. */
tw_output twi_constant_of(tw_graph *graph, tw_tensor *tensor);

/* Constants of integers, as ops take shapes, axes and the like: a vector, a scalar. */
tw_output twi_constant_ints(tw_graph *graph, const int64_t *values, int count);
tw_output twi_constant_int(tw_graph *graph, int64_t value);
tw_output twi_constant_shape(tw_graph *graph, tw_shape shape);

/* Axes as an attribute or a constant has them; returns how many. */
static inline int twi_copy_axes(const int *axes, int num_axes, int64_t values[TW_MAX_RANK])
{
    int count = axes ? num_axes < TW_MAX_RANK ? num_axes : TW_MAX_RANK : 0;
    for (int i = 0; i < count; i++)
        values[i] = axes[i];
    return count;
}

/* The shape of x as a tensor: a constant if it is known, else a Shape node. */
tw_output twi_shape_tensor(tw_graph *graph, tw_output x);

/* `gradient`, shaped as x and y broadcast together, summed down to the shape of x. Nothing is added where the shapes
 * known while building prove that nothing was broadcast. */
tw_output twi_unbroadcast(tw_graph *graph, tw_output gradient, tw_output x, tw_output y);
/* The same of matrices: their last two axes do not count. */
tw_output twi_unbroadcast_matrices(tw_graph *graph, tw_output gradient, tw_output x, tw_output y);

/* Gradient rules: dx of input i. */
#define TWI_GRADIENT_X(g, i) ((g)->node->inputs[i])

#endif
