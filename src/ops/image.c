/* image.c - ops on images [N,H,W,C] and on the bytes they come from. */
#include "graph/graph.h"

#include <tower/ops.h>

static tw_status contrast_shape(twi_inference *c)
{
    if (c->inputs[0].rank >= 0 && c->inputs[0].rank < 3) {
        char text[96];
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "images have shape [...,H,W,C], not %s",
                        tw_shape_text(c->inputs[0], text, sizeof text));
    }
    c->outputs[0] = c->inputs[0];
    return twi_expect_rank(c, 1, 0);
}

/* Bytes of each string: of a constant, or of the records that a reader of fixed length gives; -1 if not known. */
static int64_t string_bytes(const twi_inference *c)
{
    const tw_tensor *value = c->input_values[0];
    tw_output source = c->sources[0];
    if (value && tw_tensor_elements(value) > 0)
        return (int64_t)((const tw_string *)tw_tensor_data(value))[0].size;
    while (twi_op_is(source.node->op, TWI_PASSES))
        source = source.node->inputs[source.index];
    const tw_node *reader = source.node->num_inputs ? source.node->inputs[0].node : NULL;
    bool is_record = reader && reader->op->makes == TWI_MAKES_READER && source.index == 1; /* output 0 is its key */
    return is_record ? twi_attr_int(&reader->attrs, "record_bytes", -1) : -1;
}

/* The input's shape and one dimension more: as many values as the bytes hold. */
static tw_status decode_raw_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    if (shape.rank < 0)
        return TW_OK;
    if (shape.rank == TW_MAX_RANK)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "input has the highest rank there is, %d", TW_MAX_RANK);
    int64_t bytes = string_bytes(c);
    shape.dims[shape.rank++] = bytes < 0 ? -1 : bytes / (int64_t)tw_dtype_size(c->output_types[0]);
    c->outputs[0] = shape;
    return TW_OK;
}

static tw_status resize_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status != TW_OK)
        return status;
    tw_shape in = c->inputs[0], size = twi_shape_of_value(c->input_values[1]);
    if (size.rank >= 0 && size.rank != 2)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "size has %d elements, expected 2 (height and width)",
                        size.rank);
    c->outputs[0] = (tw_shape){4,
                               {in.rank < 0 ? -1 : in.dims[0], size.rank < 0 ? -1 : size.dims[0],
                                size.rank < 0 ? -1 : size.dims[1], in.rank < 0 ? -1 : in.dims[3]}};
    return TW_OK;
}

const twi_op twi_image_ops[] = {
    {"AdjustContrastv2", "images:T, contrast_factor:float", "output:T", "T:{half,float}=float", contrast_shape, NULL},
    {"DecodeRaw", "bytes:string", "output:out_type",
     "out_type:{half,float,double,int32,uint8,int16,int8,int64,bool}; little_endian:bool=true", decode_raw_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"ResizeNearestNeighbor", "images:T, size:int32", "resized_images:T",
     "T:{int8,uint8,int16,int32,int64,half,float,double,bfloat16}; align_corners:bool=false; "
     "half_pixel_centers:bool=false",
     resize_shape, NULL},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

static tw_output add(tw_graph *graph, const char *op, const tw_output *inputs, int num_inputs, const tw_attr *attrs,
                     int num_attrs)
{
    return tw_node_output(tw_add_node(graph, op, NULL, inputs, num_inputs, attrs, num_attrs), 0);
}

tw_output tw_adjust_contrast(tw_graph *graph, tw_output images, tw_output factor)
{
    return add(graph, "AdjustContrastv2", (tw_output[]){images, factor}, 2, NULL, 0);
}

tw_output tw_decode_raw(tw_graph *graph, tw_output bytes, tw_dtype dtype, bool little_endian)
{
    tw_attr attrs[] = {tw_attr_type("out_type", dtype), tw_attr_bool("little_endian", little_endian)};
    return add(graph, "DecodeRaw", &bytes, 1, attrs, 2);
}

tw_output tw_resize_nearest_neighbor(tw_graph *graph, tw_output images, tw_output size, bool align_corners,
                                     bool half_pixel_centers)
{
    tw_attr attrs[] = {tw_attr_bool("align_corners", align_corners),
                       tw_attr_bool("half_pixel_centers", half_pixel_centers)};
    return add(graph, "ResizeNearestNeighbor", (tw_output[]){images, size}, 2, attrs, 2);
}
