/* input.c - input that comes from outside the graph: a batch from the session's source of that name; or one that is
 * made where it is used, of a data set that lies there.
 *
 * TowerData is a variable for what nobody trains: a data set, which the session is given (tw_session_set_variable),
 * or a batch that waits for its step. It is an op of its own because GPUs have no variables of bytes, as in
 * TensorFlow, and because it goes where it is asked for, not where variables go. */
#include "stream/examples.h"
#include "graph/graph.h"

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

/* images [count, height, width, channels], labels [count], a scalar. */
tw_status twi_shape_batch(twi_inference *c)
{
    twi_examples examples;
    tw_shape images = c->inputs[0], labels = c->inputs[1];
    int64_t batch = twi_attr_int(c->attrs, "batch", 0);
    tw_status status;
    TWI_TRY(twi_expect_rank(c, 0, 4));
    TWI_TRY(twi_expect_rank(c, 1, 1));
    TWI_TRY(twi_expect_rank(c, 2, 0));
    c->outputs[0] = (tw_shape){4, {batch, -1, -1, -1}};
    c->outputs[1] = (tw_shape){1, {batch}};
    if (!tw_shape_is_known(images) || !tw_shape_is_known(labels))
        return TW_OK;
    if (labels.dims[0] != images.dims[0])
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%lld images have %lld labels", (long long)images.dims[0],
                        (long long)labels.dims[0]);
    TWI_TRY(twi_examples_init(&examples, c->attrs, images, c->error));
    c->outputs[0].dims[1] = examples.distorter.out_height;
    c->outputs[0].dims[2] = examples.distorter.out_width;
    c->outputs[0].dims[3] = examples.distorter.channels;
done:
    return status;
}

const twi_op twi_input_ops[] = {
    {"TowerInput", "", "components:output_types", "source:string; tower:int; output_types:types; output_shapes:shapes",
     input_shape, twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY | TWI_INPUT, .written_as = "Placeholder"},
    {"TowerData", "", "resource:resource", "shared_name:string=; dtype:type; shape:shape", twi_shape_from_attr, NULL,
     TWI_STATEFUL, .makes = TWI_MAKES_DATA_SET, .written_as = "VarHandleOp"},
    {"TowerBatch", "images:uint8, labels:int32, step:int64", "batch:float, batch_labels:int32",
     "batch:int; examples:int; first:int=0; seed:int=0; shuffle:bool=true; augmentation:int=0; crop:int=0; "
     "scale:float=0; offset:float=0",
     twi_shape_batch, twi_not_differentiable, TWI_INPUT, .written_as = "Placeholder"},
    {0},
};

void tw_input(tw_graph *graph, const char *source, int tower, const tw_dtype *types, const tw_shape *shapes, int count,
              tw_output *outputs)
{
    TWI_NEED_IN(graph, outputs, "outputs", );
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
