/* image.c - ops on images [N,H,W,C] and on the bytes they come from; those that change sizes: resize.c. */
#include "graph/graph.h"
#include "ops/rules.h"

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

/* Colours are along the last axis: three of them. */
static tw_status color_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    c->outputs[0] = in;
    if (in.rank == 0 || (in.rank > 0 && in.dims[in.rank - 1] >= 0 && in.dims[in.rank - 1] != 3))
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "the last axis has 3 numbers, red, green and blue");
    if (c->num_inputs > 1 && in.rank >= 0 && in.rank < 3)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "images have rank 3 at least, not %d", in.rank);
    return c->num_inputs > 1 ? twi_expect_rank(c, 1, 0) : TW_OK;
}

/* 1 for the channel that `place` [...] names, of three, in the type of x; 0 for the others. */
static tw_output channel(twi_gradient *g, tw_output place, tw_output x)
{
    return tw_cast(G, tw_one_hot(G, place, 3), tw_output_dtype(x));
}

static tw_output channels_from(twi_gradient *g, tw_output x, int32_t red, int32_t green, int32_t blue)
{
    return tw_gather(G, x, tw_constant_int32s(G, TW_SHAPE(3), (int32_t[]){red, green, blue}), -1);
}

/* With `most` and `least` marking the greatest channel (of equals the first) and the least (the last): the value is the
 * greatest; the saturation the range, greatest less least, by it; the hue a sixth of the difference of the two channels
 * that follow the greatest, red behind blue, by the range. */
static void hsv_gradient(twi_gradient *g)
{
    tw_output x = X(0), dy[3], two = tw_scalar_of(G, TW_INT64, 2);
    tw_output backwards = channels_from(g, x, 2, 1, 0);
    tw_output most = channel(g, tw_arg_max(G, x, -1), x);
    tw_output least = channel(g, tw_sub(G, two, tw_arg_min(G, backwards, -1)), x);
    tw_output spread = tw_sub(G, most, least);
    tw_output value = tw_reduce_sum(G, tw_mul(G, x, most), TW_AXES(-1), true);
    tw_output range = tw_reduce_sum(G, tw_mul(G, x, spread), TW_AXES(-1), true);
    tw_output turn = tw_sub(G, channels_from(g, most, 2, 0, 1), channels_from(g, most, 1, 2, 0));
    tw_output following = tw_reduce_sum(G, tw_mul(G, x, turn), TW_AXES(-1), true);
    tw_split(G, DY(0), -1, dy, 3);
    tw_output by_range = tw_mul(G, twi_binary(g, "DivNoNan", following, range), spread);
    tw_output hue = twi_binary(g, "DivNoNan", tw_sub(G, turn, by_range), range);
    tw_output by_value = tw_mul(G, twi_binary(g, "DivNoNan", range, value), most);
    tw_output saturation = twi_binary(g, "DivNoNan", tw_sub(G, spread, by_value), value);
    tw_output sixth = tw_mul(G, dy[0], twi_number_like(g, x, 1.0 / 6));
    tw_output sum = tw_add(G, tw_mul(G, sixth, hue), tw_mul(G, dy[1], saturation));
    g->dx[0] = tw_add(G, sum, tw_mul(G, dy[2], most));
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
        return twi_fail(c->error, TW_UNIMPLEMENTED, "input has the highest rank there is, %d", TW_MAX_RANK);
    int64_t bytes = string_bytes(c);
    shape.dims[shape.rank++] = bytes < 0 ? -1 : bytes / (int64_t)tw_dtype_size(c->output_types[0]);
    c->outputs[0] = shape;
    return TW_OK;
}

/* What is shorter than fixed_length is filled up with zeros, what is longer cut. */
static tw_status decode_padded_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    int64_t size = (int64_t)tw_dtype_size(c->output_types[0]), length = -1;
    tw_status status = twi_expect_rank(c, 1, 0);
    if (status != TW_OK)
        return status;
    if (shape.rank == TW_MAX_RANK)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "input_bytes has the highest rank there is, %d", TW_MAX_RANK);
    const tw_tensor *given = twi_ask_value(c, 1);
    if (given)
        length = twi_tensor_int(given, 0);
    if (given && length <= 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "fixed_length (%lld) must be greater than zero",
                        (long long)length);
    if (given && length % size)
        return twi_fail(c->error, TW_INVALID_ARGUMENT,
                        "fixed_length (%lld) must be a multiple of the size of out_type (%lld)", (long long)length,
                        (long long)size);
    if (shape.rank >= 0)
        shape.dims[shape.rank++] = given ? length / size : -1;
    c->outputs[0] = shape;
    return TW_OK;
}

const twi_op twi_image_ops[] = {
    {"AdjustContrastv2", "images:T, contrast_factor:float", "output:T", "T:{half,float}=float", contrast_shape, NULL},
    {"RGBToHSV", "images:T", "output:T", "T:{half,bfloat16,float,double}=float", color_shape, hsv_gradient},
    {"HSVToRGB", "images:T", "output:T", "T:{half,bfloat16,float,double}=float", color_shape, NULL},
    {"AdjustHue", "images:T, delta:float", "output:T", "T:{half,float}=float", color_shape, NULL},
    {"AdjustSaturation", "images:T, scale:float", "output:T", "T:{half,float}=float", color_shape, NULL},
    {"DecodeRaw", "bytes:string", "output:out_type",
     "out_type:{half,float,double,int32,uint16,uint8,int16,int8,int64,complex64,complex128,bool,bfloat16}; "
     "little_endian:bool=true",
     decode_raw_shape, twi_not_differentiable, TWI_HOST_ONLY | TWI_MAKES_SHAPE},
    {"DecodePaddedRaw", "input_bytes:string, fixed_length:int32", "output:out_type",
     "out_type:{half,float,double,int32,uint16,uint8,int16,int8,int64,bfloat16}; little_endian:bool=true",
     decode_padded_shape, twi_not_differentiable, TWI_HOST_ONLY},
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
