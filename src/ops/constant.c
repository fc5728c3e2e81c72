/* constant.c - what has a value before anything runs, or is fed: rows, shape rules, builders. */
#include "ops/gradients.h"
#include "ops/rules.h"
#include "ops/types.h"

/* ---- shape rules ------------------------------------------------------------------------------------------------- */

static tw_status const_shape(twi_inference *c)
{
    const tw_tensor *value = twi_attr_tensor(c->attrs, "value");
    if (!value)
        return TWI_REFUSE(c, "attribute 'value' holds no tensor");
    if (value->dtype != c->output_types[0])
        return TWI_REFUSE(c, "the value is %s, attribute 'dtype' says %s", tw_dtype_name(value->dtype),
                          tw_dtype_name(c->output_types[0]));
    if (value->dtype == TW_RESOURCE) /* whose elements are no bytes to copy */
        return TWI_REFUSE(c, "a constant is a handle: only nodes make these");
    c->outputs[0] = value->shape;
    return TW_OK;
}

static tw_status default_shape(twi_inference *c)
{
    return twi_merge_shapes(twi_attr_shape(c->attrs, "shape"), TW_UNKNOWN_SHAPE, &c->outputs[0], c->error);
}

/* The attribute's, which what is fed instead may need; the default must fit. */
static tw_status with_default_shape(twi_inference *c)
{
    tw_shape merged;
    c->outputs[0] = twi_attr_shape(c->attrs, "shape");
    return twi_merge_shapes(c->inputs[0], c->outputs[0], &merged, c->error);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

const twi_op twi_constant_ops[] = {
    {"Const", "", "output:dtype", "value:tensor; dtype:type", const_shape, twi_not_differentiable, TWI_CONSTANT},
    {"Placeholder", "", "output:dtype", "dtype:type; shape:shape=unknown", default_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_PLACEHOLDER},
    {"PlaceholderV2", "", "output:dtype", "dtype:type; shape:shape", default_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_PLACEHOLDER},
    {"PlaceholderWithDefault", "input:dtype", "output:dtype", "dtype:type; shape:shape", with_default_shape,
     twi_gradient_identity, TWI_STATEFUL | TWI_MAY_BE_FED, .planned_as = "Identity"},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------------- */

tw_output tw_constant(tw_graph *graph, tw_tensor *tensor)
{
    if (!tensor) {
        twi_graph_fail(
            graph, TW_INVALID_ARGUMENT,
            "tw_constant: the tensor is NULL; one is not made if its shape is not wholly known, or memory ran out");
        return (tw_output){0};
    }
    return twi_build(graph, "Const", NULL, 0,
                     TWI_ATTRS(tw_attr_tensor("value", tensor), tw_attr_type("dtype", tw_tensor_dtype(tensor))));
}

tw_output twi_constant_of(tw_graph *graph, tw_tensor *tensor)
{
    if (!tensor)
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory for a constant");
    tw_output output = tw_constant(graph, tensor);
    tw_tensor_release(tensor);
    return output;
}

tw_output tw_scalar(tw_graph *graph, float value)
{
    return twi_constant_of(graph, tw_tensor_float(value));
}

static bool is_number(tw_dtype dtype)
{
    return dtype != TW_STRING && dtype != TW_RESOURCE && dtype != TW_VARIANT && tw_dtype_size(dtype) > 0;
}

tw_output tw_scalar_of(tw_graph *graph, tw_dtype dtype, double value)
{
    if (!is_number(dtype)) {
        twi_graph_fail(graph, TW_INVALID_ARGUMENT, "a number of type %s", tw_dtype_name(dtype));
        return (tw_output){0};
    }
    tw_tensor *tensor = tw_tensor_create(dtype, TW_SCALAR);
    if (tensor)
        twi_tensor_set_number(tensor, 0, value);
    return twi_constant_of(graph, tensor);
}

tw_output tw_constant_floats(tw_graph *graph, tw_shape shape, const float *values)
{
    TWI_NEED_IN(graph, values, "values", (tw_output){0});
    return twi_constant_of(graph, tw_tensor_from(TW_FLOAT32, shape, values));
}

tw_output tw_constant_int32s(tw_graph *graph, tw_shape shape, const int32_t *values)
{
    TWI_NEED_IN(graph, values, "values", (tw_output){0});
    return twi_constant_of(graph, tw_tensor_from(TW_INT32, shape, values));
}

/* A constant that a builder adds for itself: the name tw_name() gave is for the op that follows. */
static tw_output helper_constant(tw_graph *graph, tw_tensor *tensor)
{
    if (!graph) {
        tw_tensor_release(tensor);
        return (tw_output){0};
    }
    const char *name = graph->next_name;
    graph->next_name = NULL;
    tw_output output = twi_constant_of(graph, tensor);
    graph->next_name = name;
    return output;
}

/* int32, or int64 if a value needs it. */
tw_output twi_constant_ints(tw_graph *graph, const int64_t *values, int count)
{
    bool narrow = true;
    for (int i = 0; i < count; i++)
        narrow = narrow && values[i] == (int32_t)values[i];
    tw_tensor *tensor = tw_tensor_create(narrow ? TW_INT32 : TW_INT64, TW_SHAPE(count));
    for (int i = 0; tensor && i < count; i++)
        if (narrow)
            ((int32_t *)tensor->data)[i] = (int32_t)values[i];
        else
            ((int64_t *)tensor->data)[i] = values[i];
    return helper_constant(graph, tensor);
}

tw_output twi_constant_int(tw_graph *graph, int64_t value)
{
    return helper_constant(graph, tw_tensor_int32((int32_t)value));
}

tw_output twi_constant_shape(tw_graph *graph, tw_shape shape)
{
    if (shape.rank <= TW_MAX_RANK)
        return twi_constant_ints(graph, shape.dims, shape.rank);
    tw_graph_fail(graph, TW_INVALID_ARGUMENT, "a shape of %d dimensions; at most %d", shape.rank, TW_MAX_RANK);
    return (tw_output){0};
}

tw_output twi_shape_tensor(tw_graph *graph, tw_output x)
{
    tw_shape shape = x.node ? tw_output_shape(x) : TW_UNKNOWN_SHAPE;
    return tw_shape_is_known(shape) ? twi_constant_shape(graph, shape) : tw_shape_of(graph, x);
}

tw_output tw_zeros(tw_graph *graph, tw_dtype dtype, tw_shape shape)
{
    return tw_fill(graph, twi_constant_shape(graph, shape), tw_scalar_of(graph, dtype, 0));
}

tw_output tw_ones(tw_graph *graph, tw_dtype dtype, tw_shape shape)
{
    return tw_fill(graph, twi_constant_shape(graph, shape), tw_scalar_of(graph, dtype, 1));
}

tw_output tw_placeholder(tw_graph *graph, tw_dtype dtype, tw_shape shape)
{
    return twi_build(graph, "Placeholder", NULL, 0,
                     TWI_ATTRS(tw_attr_type("dtype", dtype), tw_attr_shape("shape", shape)));
}

tw_output tw_placeholder_with_default(tw_graph *graph, tw_output value, tw_shape shape)
{
    return twi_build(graph, "PlaceholderWithDefault", &value, 1, TWI_ATTRS(tw_attr_shape("shape", shape)));
}
