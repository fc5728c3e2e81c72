/* input.c - input that comes from outside the graph: a batch from the session's source of that name. */
#include "graph/op.h"

#include <string.h>
#include <tower/ops.h>

/* Each output has the shape the attribute gives it. */
static tw_status input_shape(twi_inference *c)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, "output_shapes");
    if (shapes->count != c->num_outputs)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "output_shapes has %d shapes for %d outputs", shapes->count,
                        c->num_outputs);
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = shapes->shapes[i];
    return TW_OK;
}

const twi_op twi_input_ops[] = {
    {"TowerInput", "", "components:output_types",
     "source:string; tower:int; output_types:types; output_shapes:shapes", input_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_HOST_ONLY},
    {0},
};

void tw_input(tw_graph *graph, const char *source, int tower, const tw_dtype *types, const tw_shape *shapes, int count,
              tw_output *outputs)
{
    tw_attr attrs[] = {
        tw_attr_string("source", source),
        tw_attr_int("tower", tower),
        tw_attr_types("output_types", types, count),
        tw_attr_shapes("output_shapes", shapes, count),
    };
    tw_node *node = tw_add_node(graph, "TowerInput", NULL, NULL, 0, attrs, 4);
    for (int i = 0; i < count; i++)
        outputs[i] = tw_node_output(node, i);
}
